//! A list of named tests that need a MariaDB: all count as ignored where there is none.

use libtest_mimic::{Arguments, Failed, Trial};

use crate::proxy::{DRIVERS, Driver};
use crate::servers::Vendor;

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
            Trial::test(format!("{driver}::{name}"), move || test(driver).map_err(Failed::from)).with_ignored_flag(ignored)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit()
}

/// Checks, with words that say what was found.
pub fn expect(fine: bool, words: impl FnOnce() -> String) -> Result<(), String> {
    if fine { Ok(()) } else { Err(words()) }
}

/// Are the two texts alike, but for blanks at their ends?
pub fn same(found: &str, wanted: &str) -> Result<(), String> {
    expect(found.trim() == wanted.trim(), || format!("wanted:\n{}\nfound:\n{}", wanted.trim(), found.trim()))
}
