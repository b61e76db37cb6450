//! What all sessions of a soak were told: promises to be kept, errors that a fault explains, and
//! what must not have happened.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Fate of an insert, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Acknowledgement of the insert, or of its COMMIT.
    Acknowledged,
    /// Nobody knows: the answer did not come.
    Unknown,
    /// Rollback of the insert, or loss of its transaction before COMMIT was asked for.
    Never,
}

/// The book.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Something may break: errors have an excuse.
    pub(crate) rough: AtomicBool,
    pub(crate) over: AtomicBool,
    pub(crate) answered: AtomicU64,
    fates: Mutex<HashMap<String, Fate>>,
    excuses: Mutex<BTreeMap<String, u64>>,
    violations: Mutex<Vec<String>>,
    /// Who was told that the common user lock is his.
    locked_by: Mutex<Option<String>>,
}

impl Ledger {
    pub(crate) fn fate(&self, tag: &str, fate: Fate) {
        self.fates
            .lock()
            .expect("nobody panics with it")
            .insert(tag.to_owned(), fate);
    }

    pub(crate) fn accuse(&self, words: String) {
        let mut violations = self.violations.lock().expect("nobody panics with it");
        if violations.len() < 50 {
            eprintln!("VIOLATION: {words}");
            violations.push(words);
        }
    }

    /// An error that a fault explains, counted by its words without numbers.
    pub(crate) fn excuse(&self, words: &str) {
        let words = words
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .take(70)
            .collect();
        *self
            .excuses
            .lock()
            .expect("nobody panics with it")
            .entry(words)
            .or_default() += 1;
    }

    /// The common lock is given to somebody. Who had it before may be gone without having said so.
    pub(crate) fn lock(&self, who: &str) {
        *self.locked_by.lock().expect("nobody panics with it") = Some(who.to_owned());
    }

    /// Was it this one's all the time?
    pub(crate) fn unlock(&self, who: &str) -> bool {
        self.locked_by
            .lock()
            .expect("nobody panics with it")
            .take_if(|by| by == who)
            .is_some()
    }

    /// Checks that what was acknowledged is there once, what was rolled back is not, and anything
    /// else at most once.
    pub(crate) fn judge(&self, there: &HashMap<String, u64>) {
        for (tag, fate) in self.fates.lock().expect("nobody panics with it").iter() {
            let n = there.get(tag).copied().unwrap_or(0);
            let right = match fate {
                Fate::Acknowledged => n == 1,
                Fate::Unknown => n <= 1,
                Fate::Never => n == 0,
            };
            if !right {
                self.accuse(format!(
                    "{tag} is there {n} times, and its client was told {fate:?}"
                ));
            }
        }
    }

    /// A line for who reads the output, and all that must not have happened.
    pub(crate) fn close(&self) -> Result<String, String> {
        let excuses = self.excuses.lock().expect("nobody panics with it");
        let fates = self.fates.lock().expect("nobody panics with it");
        let acknowledged = fates
            .values()
            .filter(|fate| **fate == Fate::Acknowledged)
            .count();
        let mut words = format!(
            "{} answered, {acknowledged} writes acknowledged",
            self.answered.load(Ordering::Relaxed)
        );
        for (excuse, n) in excuses.iter() {
            words.push_str(&format!("\n    {n} times excused: {excuse}"));
        }
        let violations = self.violations.lock().expect("nobody panics with it");
        if violations.is_empty() {
            Ok(words)
        } else {
            Err(format!("{}\n{words}", violations.join("\n")))
        }
    }
}
