//! The corpus of the fuzz target of this crate, replayed: as it is, cut everywhere, and with every bit
//! flipped.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]

#[test]
fn no_answer_of_the_corpus_panics_nor_does_small_damage_to_it() {
    let folder = "../../../fuzz/corpus/topology_probe";
    let files: Vec<_> = std::fs::read_dir(folder)
        .expect(folder)
        .map(|file| file.expect("entry").path())
        .collect();
    assert!(!files.is_empty());
    for path in files {
        let whole = std::fs::read(&path).expect("a file that can be read");
        for end in 0..=whole.len() {
            topology::fuzz_probe(&whole[..end]);
        }
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            topology::fuzz_probe(&damaged);
        }
    }
}
