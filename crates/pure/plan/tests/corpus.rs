//! The corpus of the fuzz target of this crate, replayed.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]

#[test]
fn no_input_of_the_corpus_finds_a_disagreement() {
    let folder = "../../../fuzz/corpus/plan_rules";
    let files: Vec<_> = std::fs::read_dir(folder)
        .expect(folder)
        .map(|file| file.expect("entry").path())
        .collect();
    assert!(!files.is_empty());
    for path in files {
        plan::differential::fuzz_rules(&std::fs::read(&path).expect("a file that can be read"));
    }
}
