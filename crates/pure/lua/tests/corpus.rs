//! Corpora of this crate's fuzz targets, replayed.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]

use std::path::Path;

type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("lua_tokenizer", lua::tokenizer::fuzz_tokenizer),
    ("lua_pattern", lua::pattern::fuzz_pattern),
    ("lua_syntax", lua::syntax::fuzz_syntax),
];

#[test]
fn every_corpus_is_there_and_no_input_of_it_panics() {
    for (name, body) in TARGETS {
        let folder = Path::new("../../../fuzz/corpus").join(name);
        let files = std::fs::read_dir(&folder).expect("a corpus");
        let mut inputs = 0;
        for file in files {
            let input = std::fs::read(file.expect("entry").path()).expect("a file");
            for end in 0..=input.len() {
                body(&input[..end]);
            }
            inputs += 1;
        }
        assert!(inputs > 0, "{name} has no corpus");
    }
}
