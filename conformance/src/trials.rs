//! A list of named tests that need a MariaDB: all count as ignored where there is none.

use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::proxy::{DRIVERS, Driver};
use crate::servers::Vendor;
use crate::watch::watched;

/// A test: its servers and proxies are its own.
pub type Test = fn(Driver) -> Result<(), String>;

/// Runs each test on both drivers, and ends the process.
pub fn run(tests: &[(&'static str, Test)]) -> ! {
    let arguments = Arguments::from_args();
    let missing = Vendor::MariaDb.programs().err();
    if let Some(why) = &missing {
        eprintln!("SKIPPED: every test of this programme: {why}");
    }
    let trials = tests.iter().flat_map(|&(name, test)| {
        let ignored = missing.is_some();
        DRIVERS.iter().map(move |&driver| {
            let name = format!("{driver}::{name}");
            let runs = name.clone();
            Trial::test(name, move || {
                watched(&runs, || test(driver)).map_err(Failed::from)
            })
            .with_ignored_flag(ignored)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit()
}

/// Checks, with words that say what was found.
pub fn expect(fine: bool, words: impl FnOnce() -> String) -> Result<(), String> {
    if fine { Ok(()) } else { Err(words()) }
}

/// Asks until this is the answer; gives up after half a minute.
///
/// # Errors
/// The last answer, or that of an attempt that failed.
pub fn soon(
    wanted: &str,
    mut attempt: impl FnMut() -> Result<String, String>,
) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let said = attempt()?;
        if said == wanted {
            return Ok(());
        }
        expect(Instant::now() < until, || {
            format!("wanted {wanted:?}, there is {said:?}")
        })?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks until the last line of the answer is this one; gives up after a while.
pub fn until(wanted: &str, ask: impl Fn() -> Result<String, String>) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let said = ask()?;
        let last = said.lines().last().unwrap_or_default();
        if last == wanted || begun.elapsed() > Duration::from_secs(20) {
            return same(last, wanted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Are the two texts alike, but for blanks at their ends?
pub fn same(found: &str, wanted: &str) -> Result<(), String> {
    expect(found.trim() == wanted.trim(), || {
        format!("wanted:\n{}\nfound:\n{}", wanted.trim(), found.trim())
    })
}
