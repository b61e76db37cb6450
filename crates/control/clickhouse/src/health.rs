//! Whether ClickHouse is there, as far as anybody has noticed: an operator is told of each change.

use bridge::Lines;
use door::Refused;
use std::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const UP: u8 = 1;
const DOWN: u8 = 2;

/// Knowledge of it, over all threads.
pub(crate) struct Health {
    known: AtomicU8,
    note: Box<dyn Lines>,
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Health({})", self.known.load(Ordering::Relaxed))
    }
}

impl Health {
    pub(crate) fn new(note: impl Lines + 'static) -> Self {
        Self {
            known: AtomicU8::new(UNKNOWN),
            note: Box::new(note),
        }
    }

    /// ClickHouse has answered.
    pub(crate) fn is_up(&self, at: impl Fn() -> String) {
        if self.known.load(Ordering::Relaxed) != UP
            && self.known.swap(UP, Ordering::Relaxed) == DOWN
        {
            self.note
                .line(&format!("clickhouse: {} answers again", at()));
        }
    }

    /// ClickHouse has not answered, and why.
    pub(crate) fn is_down(&self, at: impl Fn() -> String, why: &Refused) {
        if self.known.swap(DOWN, Ordering::Relaxed) != DOWN {
            self.note.line(&format!(
                "warning: clickhouse: {} does not answer, and statements get error {}: {}",
                at(),
                why.code,
                why.message
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn an_operator_is_told_of_changes_once() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let hears = said.clone();
        let note = move |words: &str| hears.lock().unwrap().push(words.to_owned());
        let health = Health::new(note);
        let at = || "a:1".to_owned();
        let why = crate::errors::unreachable("refused");
        health.is_up(at);
        assert!(said.lock().unwrap().is_empty(), "it is there at the start");
        (0..3).for_each(|_| health.is_down(at, &why));
        (0..3).for_each(|_| health.is_up(at));
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("a:1 does not answer") && said[0].contains("1429"));
        assert_eq!(said[1], "clickhouse: a:1 answers again");
    }
}
