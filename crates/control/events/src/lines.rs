//! Lines for an operator: time, thread, words; to standard error, or to a file that can be
//! reopened.
//!
//! A core must not wait for whoever takes them: a pipe may be full for as long as nobody reads, and
//! a disk may hang. A thread of its own writes; what it has no room for is dropped and counted.

use crate::messages::Messages;
use crate::scripts::Files;
use bridge::{FileWork, Mail, MessageRow};
use mail::Mails;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lines that wait to be written at most.
const WAITING_MAX: usize = 4096;

/// Between two attempts to find room for a letter that must not be lost.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Lines that are kept for who wants to see the last.
const RECENT_MAX: usize = 300;

/// How long whoever wants to see them waits for who writes.
const RECENT_WITHIN: Duration = Duration::from_millis(200);

/// How long whoever has the log reopened waits for the lines before.
const REOPENED_WITHIN: Duration = Duration::from_secs(5);

/// Where lines go.
#[derive(Clone)]
pub struct Log {
    /// Of a regular file.
    path: Option<PathBuf>,
    letters: SyncSender<Letter>,
    lost: Arc<AtomicU64>,
    /// Those of scripts.
    files: Option<Files>,
    /// Whoever sends mails of scripts.
    mails: Option<Mails>,
}

enum Letter {
    Line(String),
    /// From now on it is written there.
    Reopened(File, Written),
    Written(Written),
    /// The last lines go there.
    Recent(Sender<Vec<String>>),
    /// Messages by their forms go there; whether they are counted anew from now on.
    Counts(bool, Sender<Vec<MessageRow>>),
}

/// Sender that is dropped when what was sent before is written.
type Written = Sender<()>;

impl Log {
    /// To standard error.
    pub fn stderr() -> io::Result<Self> {
        Self::to(File::from(io::stderr().as_fd().try_clone_to_owned()?), None)
    }

    /// To a file, which is appended to.
    pub fn file(path: &Path) -> io::Result<Self> {
        Self::to(appended(path)?, Some(path))
    }

    fn to(file: File, path: Option<&Path>) -> io::Result<Self> {
        let is_regular = file.metadata()?.is_file();
        let why = if is_regular {
            "the disk has not taken the log"
        } else {
            "nobody has read the log"
        };
        let path = path.filter(|_| is_regular).map(Path::to_owned);
        Self::written_by(path, move |unread, lost| write(file, unread, lost, why))
    }

    fn written_by(
        path: Option<PathBuf>,
        write: impl FnOnce(&Receiver<Letter>, &AtomicU64) + Send + 'static,
    ) -> io::Result<Self> {
        let (letters, unread) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = lost.clone();
        thread::Builder::new()
            .name("log".into())
            .spawn(move || write(&unread, &counted))?;
        Ok(Self {
            path,
            letters,
            lost,
            files: None,
            mails: None,
        })
    }

    /// Scripts have their files in this folder from now on. Without a thread for them they have none.
    #[must_use]
    pub fn with_files_in(mut self, folder: &Path) -> Self {
        let own = self.clone();
        let files = Files::below(folder.join("script-logs"), move |words| own.line(words));
        match files {
            Ok(files) => self.files = Some(files),
            Err(error) => self.line(&format!("scripts have no files for their logs: {error}")),
        }
        self
    }

    /// Mails of scripts are sent from now on. Without a thread for them none is.
    #[must_use]
    pub fn with_mails(mut self) -> Self {
        let own = self.clone();
        match Mails::begin(move |words| own.line(words)) {
            Ok(mails) => self.mails = Some(mails),
            Err(error) => self.line(&format!("scripts send no mails: {error}")),
        }
        self
    }

    /// After the file was moved away. When it returns, all that was said before is in the old one,
    /// unless a disk is slow.
    pub fn reopen(&self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let file = appended(path)?;
        if self.send_within(REOPENED_WITHIN, |written| Letter::Reopened(file, written)) {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the disk has not taken the lines before",
            ))
        }
    }

    /// One line.
    pub fn line(&self, words: &str) {
        let thread = thread::current();
        let line = format!("{} [{}] {words}\n", now(), thread.name().unwrap_or("-"));
        if let Err(TrySendError::Full(_)) = self.letters.try_send(Letter::Line(line)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Says [`Log::line`], for who has no log.
    #[must_use]
    pub fn to_note(&self) -> Box<dyn Fn(&str) + Send + Sync> {
        let log = self.clone();
        Box::new(move |words| log.line(words))
    }

    /// Asks [`Log::messages`], for who has no log.
    #[must_use]
    pub fn to_messages(&self) -> Box<dyn Fn(bool) -> Vec<MessageRow> + Send> {
        let log = self.clone();
        Box::new(move |reset| log.messages(reset))
    }

    /// The last lines, oldest first; none while a disk hangs.
    #[must_use]
    pub fn recent(&self) -> Vec<String> {
        let (tell, told) = channel();
        if self.letters.try_send(Letter::Recent(tell)).is_err() {
            return Vec::new();
        }
        told.recv_timeout(RECENT_WITHIN).unwrap_or_default()
    }

    /// Messages since the process began, or since they were last counted anew, by their forms; none
    /// while a disk hangs. `reset`: they are counted anew.
    #[must_use]
    pub fn messages(&self, reset: bool) -> Vec<MessageRow> {
        let (tell, told) = channel();
        if self.letters.try_send(Letter::Counts(reset, tell)).is_err() {
            return Vec::new();
        }
        told.recv_timeout(RECENT_WITHIN).unwrap_or_default()
    }

    /// Waits until what was said is written, but not for ever.
    pub fn finish(&self, within: Duration) {
        self.send_within(within, Letter::Written);
    }

    /// Sends a letter behind all lines, and waits until they are written; whether there was room
    /// for it.
    fn send_within(&self, within: Duration, letter: impl FnOnce(Written) -> Letter) -> bool {
        let until = Instant::now() + within;
        let (tell, written) = channel();
        let mut letter = letter(tell);
        // Whoever takes the lines may be slow, and no more than that.
        while let Err(TrySendError::Full(unsent)) = self.letters.try_send(letter) {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(FULL_PAUSE);
            letter = unsent;
        }
        let _late = written.recv_timeout(until.saturating_duration_since(Instant::now()));
        true
    }
}

impl bridge::Lines for Log {
    fn line(&self, words: &str) {
        Self::line(self, words);
    }

    fn file(&self, work: FileWork) {
        match &self.files {
            Some(files) => files.take(work),
            None => work.is_done(Err("scripts have no files here".into())),
        }
    }

    fn mail(&self, mail: Mail) {
        if let Some(mails) = &self.mails {
            mails.send(mail);
        }
    }
}

fn appended(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Writes what comes, until nobody can send any more. `why` may lines have been dropped?
fn write(mut file: File, unread: &Receiver<Letter>, lost: &AtomicU64, why: &str) {
    let mut recent = VecDeque::with_capacity(RECENT_MAX);
    let mut messages = Messages::default();
    for letter in unread {
        // Heard when the lines that were dropped are told, too.
        let _written = match letter {
            // A full disk must not stop the traffic, and there is nobody else to tell.
            Letter::Line(line) => {
                let _unwritable = file.write_all(line.as_bytes());
                let said = line
                    .split_once(" [")
                    .and_then(|(_, said)| said.split_once("] "));
                if let Some((thread, words)) = said {
                    messages.count(thread, words.trim_end());
                }
                if recent.len() == RECENT_MAX {
                    recent.pop_front();
                }
                recent.push_back(line);
                None
            }
            Letter::Recent(tell) => {
                let lines = recent
                    .iter()
                    .map(|line: &String| line.trim_end().to_owned());
                let _gone = tell.send(lines.collect());
                None
            }
            Letter::Counts(reset, tell) => {
                let _gone = tell.send(messages.rows(reset));
                None
            }
            Letter::Reopened(anew, written) => {
                file = anew;
                Some(written)
            }
            Letter::Written(written) => Some(written),
        };
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _unwritable = writeln!(
                file,
                "{} [log] {lost} lines were dropped here: {why}",
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
        let log = Log::to(File::from(OwnedFd::from(writes)), None).unwrap();
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
        let own = log.clone();
        thread::spawn(move || {
            // Until then there may be no room for one more line.
            own.finish(Duration::from_secs(60));
            own.line("the last");
        });
        assert!(lines.any(|line| line.ends_with("] the last")));
        log.finish(Duration::from_secs(60));
    }

    #[test]
    fn the_end_waits_for_a_pipe_that_is_read_slowly() {
        let (reads, writes) = io::pipe().unwrap();
        let mut behind = writes.try_clone().unwrap();
        let log = Log::to(File::from(OwnedFd::from(writes)), None).unwrap();
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
            "nobody has read the log",
        );
        let said: Vec<_> = BufReader::new(reads).lines().map(Result::unwrap).collect();
        assert!(
            said.len() == 1 && said[0].contains("[log] 3 lines were dropped here"),
            "{said:?}"
        );
    }

    /// A disk that hangs is a thread that writes nothing.
    #[test]
    fn nobody_waits_for_a_disk_that_hangs() {
        let path = std::env::temp_dir().join(format!("millrace-hangs-{}", std::process::id()));
        let (go_on, hangs) = channel::<()>();
        let file = appended(&path).unwrap();
        let log = Log::written_by(Some(path.clone()), move |unread, lost| {
            let _goes_on = hangs.recv();
            write(file, unread, lost, "the disk has not taken the log");
        })
        .unwrap();
        (0..WAITING_MAX + 7).for_each(|n| log.line(&n.to_string()));
        log.finish(Duration::ZERO);
        drop(go_on);
        log.finish(Duration::from_secs(60));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("] 0"), "{}", lines[0]);
        assert!(
            lines[1].ends_with("[log] 7 lines were dropped here: the disk has not taken the log"),
            "{}",
            lines[1]
        );
        let last = format!("] {}", WAITING_MAX - 1);
        assert!(lines.last().unwrap().ends_with(&last) && lines.len() == WAITING_MAX + 1);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_last_lines_can_be_seen() {
        let path = std::env::temp_dir().join(format!("millrace-recent-{}", std::process::id()));
        let log = Log::file(&path).unwrap();
        (0..RECENT_MAX + 5).for_each(|n| log.line(&n.to_string()));
        log.finish(Duration::from_secs(60));
        let recent = log.recent();
        assert_eq!(recent.len(), RECENT_MAX);
        assert!(recent[0].ends_with("] 5"), "{}", recent[0]);
        let counted = log.messages(true);
        assert_eq!(
            (counted.len(), counted[0].times),
            (1, RECENT_MAX as u64 + 5)
        );
        assert_eq!(log.messages(false), []);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_is_opened_anew_between_two_lines() {
        let path = std::env::temp_dir().join(format!("millrace-log-{}", std::process::id()));
        let moved = path.with_extension("moved");
        let log = Log::file(&path).unwrap();
        log.line("first");
        std::fs::rename(&path, &moved).unwrap();
        log.reopen().unwrap();
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert!(read(&moved).ends_with("] first\n"));
        log.line("second");
        log.finish(Duration::from_secs(60));
        assert!(read(&path).ends_with("] second\n"));
        assert_eq!(read(&moved).lines().count(), 1);
        [path, moved]
            .iter()
            .for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
