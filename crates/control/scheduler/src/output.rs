//! Words of programs, line by line to the log, at a bounded rate.

use crate::Note;
use std::io::{BufRead as _, BufReader, PipeReader, Read as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of all programs that are logged in a second at most.
const LINES_A_SECOND: u32 = 50;
/// Bytes of a line; a longer one is several.
const LINE_BYTES: u64 = 1000;
/// Programs that are listened to at once. One that ended may have left a child that still speaks.
const LISTENED_MAX: usize = 64;
const SECOND: Duration = Duration::from_secs(1);

/// The way of programs' words to the log.
#[derive(Clone)]
pub(crate) struct Output {
    note: Note,
    budget: Arc<Mutex<Budget>>,
    /// One clone for each thread that listens.
    listeners: Arc<()>,
}

/// Lines that may still be logged in this second.
struct Budget {
    since: Instant,
    left: u32,
    dropped: u64,
}

impl Output {
    pub(crate) fn new(note: Note) -> Self {
        let budget = Budget {
            since: Instant::now(),
            left: LINES_A_SECOND,
            dropped: 0,
        };
        Self {
            note,
            budget: Arc::new(Mutex::new(budget)),
            listeners: Arc::new(()),
        }
    }

    /// Standard output and standard error of a program of this row.
    pub(crate) fn of(&self, id: i64) -> (Stdio, Stdio) {
        self.listen(id)
            .unwrap_or_else(|| (Stdio::null(), Stdio::null()))
    }

    fn listen(&self, id: i64) -> Option<(Stdio, Stdio)> {
        if Arc::strong_count(&self.listeners) > LISTENED_MAX {
            self.say(&format!(
                "scheduler {id}: nothing of it is logged: {LISTENED_MAX} programs have left somebody who still speaks"
            ));
            return None;
        }
        let (reads, writes) = std::io::pipe().ok()?;
        let second = writes.try_clone().ok()?;
        let listener = self.clone();
        thread::Builder::new()
            .name(format!("scheduled {id}"))
            .spawn(move || listener.hear(id, reads))
            .ok()?;
        Some((writes.into(), second.into()))
    }

    /// Logs what is said, until all who could say something are gone.
    fn hear(self, id: i64, reads: PipeReader) {
        // For as long as this thread lives, it counts.
        let _counted = self.listeners.clone();
        let mut reads = BufReader::new(reads);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reads.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            let text = text.replace(|sign: char| sign.is_control() && sign != '\t', "?");
            self.say(&format!("scheduler {id}: {text}"));
        }
    }

    /// One line, if there is room for it.
    fn say(&self, words: &str) {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now - budget.since >= SECOND {
            let dropped = budget.dropped;
            *budget = Budget {
                since: now,
                left: LINES_A_SECOND,
                dropped: 0,
            };
            if dropped > 0 {
                (self.note)(&dropped_words(dropped));
            }
        }
        match budget.left.checked_sub(1) {
            Some(left) => {
                budget.left = left;
                (self.note)(words);
            }
            None => budget.dropped += 1,
        }
    }

    /// Says what was dropped, if it was a second ago and nobody has said anything since.
    pub(crate) fn look(&self) {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        if budget.dropped > 0 && budget.since.elapsed() >= SECOND {
            (self.note)(&dropped_words(std::mem::take(&mut budget.dropped)));
        }
    }

    /// Whether there is something that [`Self::look`] will say.
    pub(crate) fn has_dropped(&self) -> bool {
        let budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.dropped > 0
    }
}

fn dropped_words(dropped: u64) -> String {
    format!(
        "scheduler: {dropped} lines of programs were dropped: {LINES_A_SECOND} are logged in a second"
    )
}
