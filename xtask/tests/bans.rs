//! The bans of `crates/*/clippy.toml` bite: clippy refuses a broken example under each folder's
//! file.
#![expect(
    clippy::unwrap_used,
    reason = "a test without the usual harness, which clippy does not see as one"
)]

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use libtest_mimic::{Arguments, Trial};

/// Clippy's words about a small crate that stands under the folder's `clippy.toml`.
fn clippy_about(folder: &str, body: &str) -> (bool, String) {
    let root = xtask::tree::project_root();
    let here = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("bans-{folder}-{}", std::process::id()));
    fs::create_dir_all(here.join("src")).unwrap();
    let manifest = "[package]\nname = \"broken\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
                    [lints.clippy]\ndisallowed_methods = \"deny\"\ndisallowed_types = \"deny\"\ndisallowed_macros = \"deny\"\n";
    fs::write(here.join("Cargo.toml"), manifest).unwrap();
    fs::write(
        here.join("src/lib.rs"),
        format!("//! A broken example.\n{body}\n"),
    )
    .unwrap();
    fs::copy(
        root.join("crates").join(folder).join("clippy.toml"),
        here.join("clippy.toml"),
    )
    .unwrap();
    let out = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["clippy", "--offline", "--quiet", "--target-dir"])
        .arg(here.join("target"))
        .current_dir(&here)
        .env_remove("RUSTFLAGS")
        .env_remove("CLIPPY_CONF_DIR")
        .env_remove("CARGO_MANIFEST_DIR")
        .output()
        .unwrap();
    fs::remove_dir_all(&here).unwrap();
    (
        out.status.success(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    )
}

fn clippy_is_here() -> bool {
    Command::new("cargo")
        .args(["clippy", "--version"])
        .output()
        .is_ok_and(|out| out.status.success())
}

fn refuses(folder: &str, body: &str, reason: &str) {
    let (fine, words) = clippy_about(folder, body);
    assert!(!fine, "clippy let this pass under {folder}/: {body}");
    assert!(
        words.contains(reason),
        "clippy refused {body}, but not for '{reason}':\n{words}"
    );
}

fn accepts(folder: &str, body: &str) {
    let (fine, words) = clippy_about(folder, body);
    assert!(fine, "clippy refused this under {folder}/: {body}\n{words}");
    // A path in clippy.toml that leads nowhere bans nothing; clippy warns about it.
    assert!(
        !words.contains("does not refer to"),
        "a ban of {folder}/clippy.toml names nothing:\n{words}"
    );
}

fn pure_code_has_no_clock_lock_file_or_socket() {
    accepts(
        "pure",
        "/// Adds.\npub fn add(a: u64, b: u64) -> u64 { a + b }",
    );
    refuses(
        "pure",
        "/// x\npub fn now() -> std::time::Instant { std::time::Instant::now() }",
        "time is an argument here",
    );
    refuses(
        "pure",
        "/// x\npub struct Shared(pub std::sync::Mutex<u8>);",
        "nothing here is shared",
    );
    refuses(
        "pure",
        "/// x\npub fn read() { let _ = std::fs::read(\"x\"); }",
        "pure code reads no files",
    );
    refuses(
        "pure",
        "/// x\npub struct Peer(pub std::net::TcpStream);",
        "sockets live in io/rt",
    );
    refuses(
        "pure",
        "/// x\npub fn say() { println!(\"x\"); }",
        "pure code does no I/O",
    );
}

fn a_core_has_no_lock_never_blocks_and_asks_the_runtime_for_the_time() {
    accepts(
        "data",
        "/// Holds.\npub struct Own(pub std::cell::Cell<u64>, pub std::rc::Rc<u8>);",
    );
    refuses(
        "data",
        "/// x\npub struct Shared(pub std::sync::Mutex<u8>);",
        "send a message",
    );
    refuses(
        "data",
        "/// x\npub struct Shared(pub std::sync::RwLock<u8>);",
        "send a message",
    );
    refuses(
        "data",
        "/// x\npub fn now() -> std::time::Instant { std::time::Instant::now() }",
        "ask rt.now()",
    );
    refuses(
        "data",
        "/// x\npub fn wait() { std::thread::sleep(std::time::Duration::ZERO); }",
        "use rt.sleep",
    );
    refuses(
        "data",
        "/// x\npub struct Peer(pub std::net::TcpStream);",
        "use rt::Socket",
    );
}

fn the_runtime_does_not_sleep_and_the_control_plane_does_not_exit() {
    accepts(
        "io",
        "/// Fine here.\npub fn now() -> std::time::Instant { std::time::Instant::now() }",
    );
    refuses(
        "io",
        "/// x\npub fn wait() { std::thread::sleep(std::time::Duration::ZERO); }",
        "use rt.sleep",
    );
    accepts(
        "control",
        "/// Fine here.\npub struct Shared(pub std::sync::Mutex<u8>);",
    );
    refuses(
        "control",
        "/// x\npub fn end() { std::process::exit(1); }",
        "only main() ends the process",
    );
}

fn main() {
    let here = clippy_is_here();
    if !here {
        eprintln!(
            "SKIPPED: clippy is not installed, so the bans of crates/*/clippy.toml are not tried"
        );
    }
    let tests: &[(&str, fn())] = &[
        (
            "pure_code_has_no_clock_lock_file_or_socket",
            pure_code_has_no_clock_lock_file_or_socket,
        ),
        (
            "a_core_has_no_lock_never_blocks_and_asks_the_runtime_for_the_time",
            a_core_has_no_lock_never_blocks_and_asks_the_runtime_for_the_time,
        ),
        (
            "the_runtime_does_not_sleep_and_the_control_plane_does_not_exit",
            the_runtime_does_not_sleep_and_the_control_plane_does_not_exit,
        ),
    ];
    let trials = tests.iter().map(|&(name, test)| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!here)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
