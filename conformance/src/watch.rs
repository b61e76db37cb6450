//! A test that does not end is named, with what it waits for: one that hangs would otherwise hold
//! the whole run until somebody kills it, and its programme's output with it. A test that is slow
//! is waited for.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

/// Time after which a single step hangs: an answer, a start, a state that comes by itself. Steps
/// take a second where nothing else runs. The limit is for what never ends, however slow a machine.
pub const HANGS: Duration = Duration::from_secs(300);

/// Limit of what may take any time: a build.
pub const A_DAY: Duration = Duration::from_secs(86_400);

/// Minutes after which a programme hangs in which nothing moves ([`moves`]), unless
/// `MILLRACE_TEST_MINUTES` says another number.
const MINUTES: u64 = 15;

static RUNNING: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());

/// How often a test has begun, had an answer, or ended.
static MOVES: AtomicU64 = AtomicU64::new(0);

/// Number of builds that run.
static BUILDS: AtomicU64 = AtomicU64::new(0);

/// Runs the test. The programme ends with 101 if nothing moves for [`MINUTES`], except
/// where somebody wants tests to go on for as long as they please (`MILLRACE_SOAK_MINUTES`,
/// `MILLRACE_STRESS`).
pub fn watched<R>(name: &str, test: impl FnOnce() -> R) -> R {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Some(limit) = limit() {
            thread::spawn(move || watch(limit));
        }
    });
    /// Not running any more, even if it panicked.
    struct Running<'a>(&'a str);
    impl Drop for Running<'_> {
        fn drop(&mut self) {
            if let Ok(mut running) = RUNNING.lock() {
                running.retain(|(name, _)| name != self.0);
            }
            moves();
        }
    }
    if let Ok(mut running) = RUNNING.lock() {
        running.push((name.to_owned(), Instant::now()));
    }
    moves();
    let _running = Running(name);
    let begun = Instant::now();
    let outcome = test();
    if env::var_os("MILLRACE_TEST_TIMES").is_some() {
        eprintln!("{} ms: {name}", begun.elapsed().as_millis());
    }
    outcome
}

/// Says that something moves: a test has an answer, however long it was on its way.
pub fn moves() {
    MOVES.fetch_add(1, Ordering::Relaxed);
}

/// Runs a build, which may take any time: nothing hangs meanwhile.
pub fn building<R>(build: impl FnOnce() -> R) -> R {
    BUILDS.fetch_add(1, Ordering::Relaxed);
    let built = build();
    BUILDS.fetch_sub(1, Ordering::Relaxed);
    built
}

/// Seconds without a move after which a programme hangs.
fn limit() -> Option<u64> {
    if env::var_os("MILLRACE_SOAK_MINUTES").is_some() || env::var_os("MILLRACE_STRESS").is_some() {
        return None;
    }
    let minutes = env::var("MILLRACE_TEST_MINUTES")
        .ok()
        .and_then(|minutes| minutes.parse().ok())
        .unwrap_or(MINUTES);
    Some(60 * minutes)
}

fn watch(limit: u64) {
    let (mut before, mut still) = (0, 0);
    loop {
        // Seconds are counted here, not by a clock: where this thread is kept waiting, so are the
        // tests.
        thread::sleep(Duration::from_secs(1));
        let now = MOVES.load(Ordering::Relaxed);
        let moved = now != before || BUILDS.load(Ordering::Relaxed) > 0;
        (before, still) = (now, if moved { 0 } else { still + 1 });
        if still < limit {
            continue;
        }
        let eldest = RUNNING.lock().ok().and_then(|running| {
            let (name, begun) = running.first()?;
            Some((name.clone(), begun.elapsed()))
        });
        if let Some((name, since)) = eldest {
            println!(
                "test {name} ... FAILED: it has run for {since:?}, and nothing has moved for {limit} s\n{}",
                circumstances()
            );
            println!("test result: FAILED. 0 passed; 1 failed; 0 ignored");
            process::exit(101);
        }
    }
}

/// Tells what this process and its children wait for in the kernel, and the ends of their logs.
fn circumstances() -> String {
    let mut words = String::new();
    let me = process::id();
    let _ = writeln!(words, "{}", threads(me));
    for child in children(me) {
        let _ = writeln!(words, "{}", threads(child));
    }
    let ours = format!("millrace-{me}-");
    for folder in listed(&env::temp_dir()).into_iter().filter(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&ours))
    }) {
        for log in listed(&folder).into_iter().filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().contains("log"))
                && path.is_file()
        }) {
            let text = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            let _ = writeln!(
                words,
                "the end of {}:\n{}",
                log.display(),
                lines[lines.len().saturating_sub(10)..].join("\n")
            );
        }
    }
    words
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// A line for the process and one for each of its first threads: its name, its state, what it waits
/// for, its system call.
fn threads(id: u32) -> String {
    let process = PathBuf::from(format!("/proc/{id}"));
    let told = |path: PathBuf| {
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default())
            .replace('\0', " ")
            .trim()
            .to_owned()
    };
    let mut words = format!("process {id}: {}", told(process.join("cmdline")));
    for thread in listed(&process.join("task")).into_iter().take(12) {
        let status = told(thread.join("status"));
        let state = status
            .lines()
            .find(|line| line.starts_with("State:"))
            .unwrap_or_default()
            .to_owned();
        let (name, waits, call) = (
            told(thread.join("comm")),
            told(thread.join("wchan")),
            told(thread.join("syscall")),
        );
        let _ = write!(words, "\n  {name}: {state} {waits} {call}");
    }
    words
}

/// All below, by the parents that `/proc/PID/stat` names.
fn children(id: u32) -> Vec<u32> {
    let of = |path: &Path| -> Option<(u32, u32)> {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // The name is in brackets and may have any in it; behind it stand the state and the parent.
        let parent = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        Some((stat.split(' ').next()?.parse().ok()?, parent))
    };
    let all: Vec<(u32, u32)> = listed(Path::new("/proc"))
        .iter()
        .filter_map(|path| of(path))
        .collect();
    let mut below = vec![id];
    let mut at = 0;
    while at < below.len() {
        let parent = below[at];
        below.extend(
            all.iter()
                .filter(|(_, one)| *one == parent)
                .map(|(id, _)| *id),
        );
        at += 1;
    }
    below.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_is_known_until_the_end_however_it_comes() {
        let running = |wanted: &str| {
            RUNNING
                .lock()
                .unwrap()
                .iter()
                .any(|(name, _)| name == wanted)
        };
        assert!(watched("this one", || running("this one")));
        assert!(!running("this one"));
        let panicked = std::panic::catch_unwind(|| watched("that one", || panic!("for the test")));
        assert!(panicked.is_err());
        assert!(!running("that one"));
    }

    #[test]
    fn what_a_process_and_its_children_wait_for_is_told() {
        let mut child = process::Command::new("sleep").arg("60").spawn().unwrap();
        let words = circumstances();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(words.contains("sleep 60"), "{words}");
        assert!(
            words.contains(&format!("process {}", process::id())),
            "{words}"
        );
    }
}
