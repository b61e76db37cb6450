//! The corpus of every fuzz target of this crate, replayed, whole and cut short.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

type Target = (&'static str, fn(&[u8]));

#[test]
fn every_corpus_is_there_and_no_input_of_it_panics() {
    let targets: [Target; 2] = [("gtid_set", gtid::fuzz_set), ("gtid_feed", gtid::fuzz_feed)];
    for (target, run) in targets {
        let files = std::fs::read_dir(format!("../../../fuzz/corpus/{target}")).unwrap();
        let inputs: Vec<Vec<u8>> = files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .collect();
        assert!(!inputs.is_empty(), "{target} has no corpus");
        for input in inputs {
            for end in 0..=input.len() {
                run(&input[..end]);
                run(&input[end..]);
            }
        }
    }
}
