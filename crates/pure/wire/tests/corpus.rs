//! The corpus of every fuzz target of this crate, replayed.
#![expect(
    clippy::disallowed_methods,
    reason = "a corpus is files; the crate itself has none"
)]

use std::path::Path;

type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("wire_packet", wire::packet::fuzz_packet),
    ("wire_proxied", wire::proxied::fuzz_proxied),
    ("wire_frame", wire::frame::fuzz_frame),
    ("wire_ok", wire::ok::fuzz_ok),
    ("wire_rows", wire::rows::fuzz_rows),
    ("wire_row_stream", wire::row_stream::fuzz_row_stream),
    ("wire_greeting", wire::handshake::fuzz_greeting),
    ("wire_login", wire::handshake::fuzz_login),
    ("wire_change_user", wire::handshake::fuzz_change_user),
    ("wire_command", wire::command::fuzz_command),
    ("wire_execute", wire::execute::fuzz_execute),
    ("wire_attributes", wire::attributes::fuzz_attributes),
    ("wire_moved", wire::moved::fuzz_moved),
    ("wire_response", wire::response::fuzz_response),
    ("wire_again", wire::response::fuzz_again),
    ("wire_recode", wire::response::fuzz_recode),
    ("wire_crypt", wire::crypt::fuzz_crypt),
    ("wire_infile", wire::infile::fuzz_infile),
    ("wire_upstream", wire::upstream::fuzz_upstream),
];

fn fuzz() -> &'static Path {
    Path::new("../../../fuzz")
}

/// The inputs of a target, each with its path.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(target);
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

#[test]
fn every_corpus_is_there_and_no_input_of_it_panics() {
    for (target, run) in TARGETS {
        let inputs = corpus(target);
        assert!(!inputs.is_empty(), "{target} has no corpus");
        for (path, input) in inputs {
            std::panic::catch_unwind(|| run(&input))
                .unwrap_or_else(|_| panic!("{target} panics at {path}"));
        }
    }
}

#[test]
fn every_target_of_this_crate_is_a_fuzz_binary_and_the_other_way_round() {
    let mut files: Vec<String> = std::fs::read_dir(fuzz().join("fuzz_targets"))
        .expect("fuzz_targets")
        .map(|f| {
            f.expect("entry")
                .path()
                .file_stem()
                .expect("name")
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.starts_with("wire_"))
        .collect();
    files.sort();
    let mut targets: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
    targets.sort_unstable();
    assert_eq!(files, targets);
}

/// Not a fuzzer, but enough to notice a broken check on the way: every input cut everywhere, and
/// with every bit flipped.
#[test]
fn small_damage_to_any_input_panics_nowhere() {
    for (target, run) in TARGETS.iter().filter(|(name, _)| *name != "wire_crypt") {
        for (path, input) in corpus(target) {
            let survive = |damaged: &[u8], how: String| {
                std::panic::catch_unwind(|| run(damaged))
                    .unwrap_or_else(|_| panic!("{target} panics at {path} {how}"));
            };
            for cut in 0..input.len() {
                survive(&input[..cut], format!("cut at {cut}"));
            }
            let mut damaged = input.clone();
            for bit in 0..input.len() * 8 {
                damaged[bit / 8] ^= 1 << (bit % 8);
                survive(&damaged, format!("with bit {bit} flipped"));
                damaged[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
