//! The corpora of the fuzz targets of this crate, replayed.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]

#[test]
fn no_input_of_the_corpus_is_matched_otherwise_than_by_pcre() {
    replay("../../../fuzz/corpus/config_pattern", config::fuzz_pattern);
}

#[test]
fn no_input_of_the_corpus_is_replaced_otherwise_than_by_perl() {
    replay(
        "../../../fuzz/corpus/config_replacement",
        config::fuzz_replacement,
    );
}

fn replay(folder: &str, fuzz: fn(&[u8])) {
    let files: Vec<_> = std::fs::read_dir(folder)
        .expect(folder)
        .map(|file| file.expect("entry").path())
        .collect();
    assert!(!files.is_empty());
    for path in files {
        fuzz(&std::fs::read(&path).expect("a file that can be read"));
    }
}
