//! The corpus of every fuzz target of this crate, replayed.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]

use std::path::Path;

type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("sql_digest", sql::digest::fuzz_digest),
    ("sql_class", sql::class::fuzz_class),
    ("sql_set", sql::set::fuzz_set),
    ("sql_skeleton", sql::fuzz_skeleton),
    ("sql_split", sql::split::fuzz_split),
    ("sql_insert", sql::fuzz_insert),
    ("sql_tree", sql::tree::fuzz_tree),
    ("sql_values", sql::fuzz_values),
    ("sql_reading", sql::fuzz_reading),
    ("sql_template", sql::template::fuzz_template),
    ("sql_injection", sql::fuzz_injection),
];

/// The inputs of a target, each with its path.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new("../../../fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    files
        .map(|f| f.expect("entry").path())
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read(&path).expect("a file that can be read"),
            )
        })
        .collect()
}

fn survive(target: &Target, input: &[u8], what: &dyn Fn() -> String) {
    std::panic::catch_unwind(|| target.1(input))
        .unwrap_or_else(|_| panic!("{} panics: {}", target.0, what()));
}

#[test]
fn every_corpus_is_there_and_no_input_of_it_panics() {
    for target in TARGETS {
        let inputs = corpus(target.0);
        assert!(!inputs.is_empty(), "{} has no corpus", target.0);
        for (path, input) in inputs {
            survive(target, &input, &|| path.clone());
        }
    }
}

/// Not a fuzzer, but enough to notice a broken check on the way: pieces of all inputs in any order,
/// with single bytes changed. The same ones every time.
#[test]
fn damaged_and_mixed_inputs_panic_nowhere() {
    let rounds: u64 = std::env::var("SQL_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(3000);
    let inputs: Vec<Vec<u8>> = TARGETS
        .iter()
        .flat_map(|t| corpus(t.0))
        .map(|(_, input)| input)
        .collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    for _ in 0..rounds {
        let mut mixed = vec![below(256) as u8, below(256) as u8, below(64) as u8];
        for _ in 0..1 + below(4) {
            let from = &inputs[below(inputs.len())];
            let start = below(from.len());
            let end = start + below(from.len() - start + 1);
            mixed.extend_from_slice(&from[start..end]);
        }
        for _ in 0..below(4) {
            let at = below(mixed.len());
            const BYTES: &[u8] = b"'\"`()*/-+!#;,.@= \n\\?0aN\x00\xff";
            mixed[at] = BYTES[below(BYTES.len())];
        }
        for target in TARGETS {
            let text = if target.0 == "sql_digest" {
                &mixed[..]
            } else {
                &mixed[3..]
            };
            survive(target, text, &|| {
                format!("{:?}", String::from_utf8_lossy(text))
            });
        }
    }
}
