//! A list of named tests that need a MariaDB: all count as ignored where there is none.

use std::cell::Cell;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::proxy::{DRIVERS, Driver};
use crate::servers::{Vendor, vendors};
use crate::watch::{HANGS, watched};

/// A test: its servers and proxies are its own.
pub type Test = fn(Driver) -> Result<(), String>;

/// Runs each test on one driver, the next test on the next one: what is tried is above the drivers,
/// which only move bytes. Ends the process.
pub fn run(tests: &[(&'static str, Test)]) -> ! {
    if everything() {
        run_on(DRIVERS, tests)
    }
    run_each(None, tests.iter().zip(DRIVERS.chunks(1).cycle()), 2)
}

/// Runs each test on both drivers, and ends the process: what is tried is how bytes, deadlines or
/// messages between cores arrive.
pub fn run_on_both(tests: &[(&'static str, Test)]) -> ! {
    run_on(DRIVERS, tests)
}

/// Runs each test on the driver that is the default: what is tried is the work of threads that are no
/// cores. Ends the process.
pub fn run_once(tests: &[(&'static str, Test)]) -> ! {
    run_on(&[Driver::Uring], tests)
}

/// As [`run_once`]; all count as ignored where something is missing.
pub fn run_once_unless(missing: Option<&str>, tests: &[(&'static str, Test)]) -> ! {
    run_each(missing, tests.iter().map(|test| (test, &DRIVERS[..1])), 1)
}

/// Runs each test on these drivers, and ends the process.
pub fn run_on(drivers: &'static [Driver], tests: &[(&'static str, Test)]) -> ! {
    run_each(None, tests.iter().map(|test| (test, drivers)), 1)
}

/// Whether tests run that only prove again what others prove: `make test EVERYTHING=1`.
#[must_use]
pub fn everything() -> bool {
    std::env::var_os("MILLRACE_TEST_EVERYTHING").is_some()
}

thread_local! {
    /// Number of the test that this thread runs, by which vendors take turns.
    static TURN: Cell<usize> = const { Cell::new(0) };
}

/// Vendors for a test of what is the proxy's own, and alike before each of them: the next one for each test of a
/// programme, another one with the other driver, and both with `make test EVERYTHING=1`. A test of what a server
/// says or remembers takes [`vendors`].
pub fn vendors_in_turn() -> Vec<Vendor> {
    let mut all = vendors();
    if !everything() {
        let at = TURN.get() % all.len().max(1);
        all = all.into_iter().skip(at).take(1).collect();
    }
    all
}

/// So many neighbours have the same vendor ([`vendors_in_turn`]): where drivers take turns, too, each meets both.
fn run_each<'a>(
    missing: Option<&str>,
    tests: impl Iterator<Item = (&'a (&'static str, Test), &'static [Driver])>,
    neighbours: usize,
) -> ! {
    let arguments = Arguments::from_args();
    let missing = missing.map(str::to_owned);
    let missing = missing.or_else(|| Vendor::MariaDb.programs().err());
    if let Some(why) = &missing {
        eprintln!("SKIPPED: every test of this programme: {why}");
    }
    let trials = tests
        .enumerate()
        .flat_map(|(place, (&(name, test), drivers))| {
            let ignored = missing.is_some();
            drivers.iter().enumerate().map(move |(at, &driver)| {
                let name = format!("{driver}::{name}");
                let runs = name.clone();
                Trial::test(name, move || {
                    TURN.set(place / neighbours + at);
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

/// Time between the first two questions of who waits for an answer.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Waits before the next question, and returns how long to wait before the one after it. Most questions
/// begin a client, which takes more of the processor than what is waited for.
fn paused(pause: Duration) -> Duration {
    std::thread::sleep(pause);
    (pause * 3 / 2).min(Duration::from_millis(150))
}

/// Asks until this is the answer; gives up when it never will be ([`HANGS`]).
///
/// # Errors
/// The last answer, or that of an attempt that failed.
pub fn soon(
    wanted: &str,
    mut attempt: impl FnMut() -> Result<String, String>,
) -> Result<(), String> {
    let until = Instant::now() + HANGS;
    let mut pause = SHORTEST_PAUSE;
    loop {
        let said = attempt()?;
        if said == wanted {
            return Ok(());
        }
        expect(Instant::now() < until, || {
            format!("wanted {wanted:?}, there is {said:?}")
        })?;
        pause = paused(pause);
    }
}

/// Asks until the last line of the answer is this one; gives up when it never will be ([`HANGS`]).
pub fn until(wanted: &str, ask: impl Fn() -> Result<String, String>) -> Result<(), String> {
    let begun = Instant::now();
    let mut pause = SHORTEST_PAUSE;
    loop {
        let said = ask()?;
        let last = said.lines().last().unwrap_or_default();
        if last == wanted || begun.elapsed() > HANGS {
            return same(last, wanted);
        }
        pause = paused(pause);
    }
}

/// Are the two texts alike, but for blanks at their ends?
pub fn same(found: &str, wanted: &str) -> Result<(), String> {
    expect(found.trim() == wanted.trim(), || {
        format!("wanted:\n{}\nfound:\n{}", wanted.trim(), found.trim())
    })
}
