//! The corpus of this crate's fuzz target, replayed, with more of the same.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]

use std::path::Path;

#[test]
fn whatever_scripts_hand_back_is_refused_or_can_be_read() {
    let folder = Path::new("../../../fuzz/corpus/script_handed_back");
    let mut inputs = 0;
    for file in std::fs::read_dir(folder).expect("a corpus") {
        let input = std::fs::read(file.expect("entry").path()).expect("a file");
        for end in 0..=input.len() {
            script::fuzz_handed_back(&input[..end]);
        }
        inputs += 1;
    }
    assert!(inputs > 0, "there is no corpus");
    // Scripts of chance, the same each time.
    let mut state = 1u64;
    for _ in 0..3000 {
        let input: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(120)
        .collect();
        script::fuzz_handed_back(&input);
    }
}
