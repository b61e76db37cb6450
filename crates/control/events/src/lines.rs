//! Lines for an operator: time, thread, words; to standard error, or to a file that can be
//! reopened.
//!
//! A core must not wait for whoever reads them. A file takes a line at once; a pipe, a terminal or
//! a socket may be full for as long as nobody reads: a thread of its own writes there, and what it
//! has no room for is dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lines that wait for a reader at most.
const WAITING_MAX: usize = 4096;

/// Between two attempts to find room for a last letter.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Where lines go.
#[derive(Clone)]
pub struct Log {
    path: Option<PathBuf>,
    to: To,
}

#[derive(Clone)]
enum To {
    File(Arc<Mutex<File>>),
    Thread {
        letters: SyncSender<Letter>,
        lost: Arc<AtomicU64>,
    },
}

enum Letter {
    Line(String),
    /// What was sent before is written when this is dropped.
    Written(#[expect(dead_code, reason = "that it is dropped is the message")] Sender<()>),
}

impl Log {
    /// To standard error.
    pub fn stderr() -> io::Result<Self> {
        Ok(Self {
            path: None,
            to: to(File::from(io::stderr().as_fd().try_clone_to_owned()?))?,
        })
    }

    /// To a file, which is appended to.
    pub fn file(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: Some(path.to_owned()),
            to: to(appended(path)?)?,
        })
    }

    /// After the file was moved away.
    pub fn reopen(&self) -> io::Result<()> {
        if let (Some(path), To::File(file)) = (&self.path, &self.to) {
            *file.lock().unwrap_or_else(PoisonError::into_inner) = appended(path)?;
        }
        Ok(())
    }

    /// One line.
    pub fn line(&self, words: &str) {
        let thread = thread::current();
        let line = format!("{} [{}] {words}\n", now(), thread.name().unwrap_or("-"));
        match &self.to {
            // A full disk must not stop the traffic, and there is nobody else to tell.
            To::File(file) => {
                let _unwritable = file
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .write_all(line.as_bytes());
            }
            To::Thread { letters, lost } => {
                if let Err(TrySendError::Full(_)) = letters.try_send(Letter::Line(line)) {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Waits until what was said is written, but not for ever.
    pub fn finish(&self, within: Duration) {
        if let To::Thread { letters, .. } = &self.to {
            let until = Instant::now() + within;
            let (tell, written) = channel();
            let mut letter = Letter::Written(tell);
            // Its reader may be slow, and no more than that.
            while let Err(TrySendError::Full(unsent)) = letters.try_send(letter) {
                if Instant::now() >= until {
                    return;
                }
                thread::sleep(FULL_PAUSE);
                letter = unsent;
            }
            let _late = written.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

fn appended(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn to(file: File) -> io::Result<To> {
    if file.metadata()?.is_file() {
        return Ok(To::File(Arc::new(Mutex::new(file))));
    }
    let (letters, unread) = sync_channel(WAITING_MAX);
    let lost = Arc::new(AtomicU64::new(0));
    let counted = lost.clone();
    thread::Builder::new()
        .name("log".into())
        .spawn(move || write(file, &unread, &counted))?;
    Ok(To::Thread { letters, lost })
}

fn write(mut file: File, unread: &Receiver<Letter>, lost: &AtomicU64) {
    for letter in unread {
        // Nobody may be reading any more, and there is nobody else to tell.
        if let Letter::Line(line) = &letter {
            let _unwritable = file.write_all(line.as_bytes());
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _unwritable = writeln!(
                file,
                "{} [log] {lost} lines were dropped here: nobody has read the log",
                now()
            );
        }
    }
}

/// UTC, as `2026-01-31 23:59:59.123`.
fn now() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut words = bridge::utc(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    words.truncate(words.len() - 3);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::fd::OwnedFd;

    #[test]
    fn nobody_waits_for_a_pipe_that_is_not_read_and_its_reader_is_told_what_is_missing() {
        let (reads, writes) = io::pipe().unwrap();
        let log = Log {
            path: None,
            to: to(File::from(OwnedFd::from(writes))).unwrap(),
        };
        // More than the pipe and the mailbox hold.
        let words = "x".repeat(200);
        (0..WAITING_MAX + 5_000).for_each(|n| log.line(&format!("{n} {words}")));
        let mut lines = BufReader::new(reads).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().contains("] 0 x"));
        let told = lines
            .find(|line| line.contains("lines were dropped here"))
            .unwrap();
        assert!(told.contains(" [log] "), "{told}");
        // All the others are there, in order.
        log.line("the last");
        assert!(lines.any(|line| line.ends_with("] the last")));
        log.finish(Duration::from_secs(60));
    }

    #[test]
    fn the_end_waits_for_a_pipe_that_is_read_slowly() {
        let (reads, writes) = io::pipe().unwrap();
        let mut behind = writes.try_clone().unwrap();
        let log = Log {
            path: None,
            to: to(File::from(OwnedFd::from(writes))).unwrap(),
        };
        let words = "x".repeat(200);
        let all = WAITING_MAX + 5_000;
        (0..all).for_each(|_| log.line(&words));
        let reader = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            let mut lines = Vec::new();
            for line in BufReader::new(reads).lines() {
                lines.push(line.unwrap());
                if lines.len() % 500 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            lines
        });
        log.finish(Duration::from_secs(60));
        writeln!(behind, "finished").unwrap();
        drop((log, behind));
        let lines = reader.join().unwrap();
        assert_eq!(lines.last().unwrap(), "finished");
        let written = lines.iter().filter(|line| line.ends_with(&words)).count();
        let dropped = |line: &String| {
            line.split_once(" lines were dropped")?
                .0
                .rsplit(' ')
                .next()?
                .parse::<usize>()
                .ok()
        };
        assert_eq!(
            written + lines.iter().filter_map(dropped).sum::<usize>(),
            all
        );
        assert!(written >= WAITING_MAX, "{written}");
    }

    #[test]
    fn the_end_says_what_was_dropped_after_the_last_line() {
        let (reads, writes) = io::pipe().unwrap();
        let (letters, unread) = sync_channel(1);
        letters.send(Letter::Written(channel().0)).unwrap();
        drop(letters);
        write(
            File::from(OwnedFd::from(writes)),
            &unread,
            &AtomicU64::new(3),
        );
        let said: Vec<_> = BufReader::new(reads).lines().map(Result::unwrap).collect();
        assert!(
            said.len() == 1 && said[0].contains("[log] 3 lines were dropped here"),
            "{said:?}"
        );
    }

    #[test]
    fn a_file_has_its_lines_at_once_and_is_opened_anew() {
        let path = std::env::temp_dir().join(format!("millrace-log-{}", std::process::id()));
        let moved = path.with_extension("moved");
        let log = Log::file(&path).unwrap();
        log.line("first");
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .ends_with("] first\n")
        );
        std::fs::rename(&path, &moved).unwrap();
        log.reopen().unwrap();
        log.line("second");
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .ends_with("] second\n")
        );
        assert_eq!(std::fs::read_to_string(&moved).unwrap().lines().count(), 1);
        [path, moved]
            .iter()
            .for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
