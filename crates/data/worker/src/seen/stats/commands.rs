//! Statements by class, with a histogram of their times.

use bridge::{CommandRow, LATENCY_BOUNDS_US, Latency};
use sql::CommandCounter;
use std::cell::RefCell;

#[derive(Clone, Default)]
struct Class {
    total_us: u64,
    count: u64,
    counts: [u64; 12],
    latency: Latency<u64>,
    max_us: u64,
}

/// A row per class.
pub(crate) struct Commands(RefCell<Vec<Class>>);

impl Default for Commands {
    fn default() -> Self {
        Self(RefCell::new(vec![
            Class::default();
            CommandCounter::ALL.len()
        ]))
    }
}

impl Commands {
    pub(crate) fn count(&self, command: CommandCounter, us: u64) {
        let mut all = self.0.borrow_mut();
        let Some(class) = all.get_mut(command as usize) else {
            return;
        };
        class.total_us += us;
        class.count += 1;
        let at = LATENCY_BOUNDS_US
            .iter()
            .position(|bound| us <= *bound)
            .unwrap_or(LATENCY_BOUNDS_US.len());
        class.counts[at] += 1;
        class.latency.count(us);
        class.max_us = class.max_us.max(us);
    }

    pub(crate) fn rows(&self, reset: bool) -> Vec<CommandRow> {
        let mut all = self.0.borrow_mut();
        let rows = CommandCounter::ALL
            .iter()
            .zip(all.iter())
            .map(|(command, class)| CommandRow {
                command: command.name().into(),
                total_time_us: class.total_us,
                count: class.count,
                counts: class.counts,
                latency: class.latency.clone(),
                max_us: class.max_us,
            })
            .collect();
        if reset {
            all.fill(Class::default());
        }
        rows
    }
}
