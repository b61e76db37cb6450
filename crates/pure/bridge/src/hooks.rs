//! What the hooks of scripts cost, and how they fail.

use crate::observed::observed;
use std::sync::Arc;

observed! {
    /// A row of `stats_millrace_scripts`.
    pub struct HookRow, ends ",
    PRIMARY KEY(script_name, hook))":
    /// Its script.
    script: Arc<str>, "script_name VARCHAR NOT NULL", key;
    /// Its name; `main` is the script's main chunk.
    hook: &'static str, "hook VARCHAR NOT NULL", key;
    /// Times that it was called.
    calls: u64, "calls INTEGER NOT NULL", sum;
    /// Times that it failed.
    errors: u64, "errors INTEGER NOT NULL", sum;
    /// Times that it waited for a server, or slept.
    waits: u64, "waits INTEGER NOT NULL", sum;
    /// Microseconds that it ran, of all calls together, without those that it waited.
    sum_us: u64, "sum_time INTEGER NOT NULL", sum;
    /// Microseconds of the call that ran longest.
    max_us: u64, "max_time INTEGER NOT NULL", max;
    /// HTTP calls that it has made.
    http_calls: u64, "http_calls INTEGER NOT NULL", sum;
    /// Those that had no answer.
    http_errors: u64, "http_errors INTEGER NOT NULL", sum;
    /// Words of the last error.
    last_error: Arc<str>, "last_error VARCHAR NOT NULL", latest(last_error_at);
    /// Unix seconds of it; 0 if there was none.
    last_error_at: u64, "last_error_at INTEGER NOT NULL", max;
    /// Calls that ran for 10 microseconds at most, without what they waited.
    within_10_us: u64, "cnt_10us INTEGER NOT NULL", sum;
    /// Those that ran for longer, and 100 microseconds at most.
    within_100_us: u64, "cnt_100us INTEGER NOT NULL", sum;
    /// Those up to a millisecond.
    within_1_ms: u64, "cnt_1ms INTEGER NOT NULL", sum;
    /// Those up to 10 milliseconds.
    within_10_ms: u64, "cnt_10ms INTEGER NOT NULL", sum;
    /// Those up to 100 milliseconds.
    within_100_ms: u64, "cnt_100ms INTEGER NOT NULL", sum;
    /// All that ran for longer.
    longer: u64, "cnt_longer INTEGER NOT NULL", sum;
    /// Bytes that Lua has for the script, of all sessions, on the cores where the hook has run.
    memory_bytes: u64, "memory_bytes INTEGER NOT NULL", sum;
}

impl HookRow {
    /// Count of the calls that ran for so many microseconds.
    pub fn took(&mut self, us: u64) -> &mut u64 {
        match us {
            0..=10 => &mut self.within_10_us,
            11..=100 => &mut self.within_100_us,
            101..=1_000 => &mut self.within_1_ms,
            1_001..=10_000 => &mut self.within_10_ms,
            10_001..=100_000 => &mut self.within_100_ms,
            _ => &mut self.longer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::merge;

    fn row(hook: &'static str, us: u64, at: u64) -> HookRow {
        HookRow {
            script: "s".into(),
            hook,
            calls: 2,
            errors: at.min(1),
            waits: 1,
            sum_us: us,
            max_us: us,
            http_calls: 0,
            http_errors: 0,
            last_error: format!("at {at}").into(),
            last_error_at: at,
            within_10_us: 2,
            within_100_us: 0,
            within_1_ms: 0,
            within_10_ms: 0,
            within_100_ms: 0,
            longer: 0,
            memory_bytes: 100,
        }
    }

    #[test]
    fn a_hook_of_two_cores_is_one_row() {
        let mut all = vec![row("read_query", 5, 20)];
        merge(&mut all, vec![row("main", 1, 0), row("read_query", 7, 10)]);
        assert_eq!(all.len(), 2);
        let shown = (all[0].calls, all[0].errors, all[0].sum_us, all[0].max_us);
        assert_eq!(shown, (4, 2, 12, 7));
        assert_eq!(&*all[0].last_error, "at 20");
        assert_eq!((all[0].within_10_us, all[0].memory_bytes), (4, 200));
    }

    #[test]
    fn every_time_has_its_column() {
        let mut row = row("main", 0, 0);
        for us in [0, 10, 11, 1_000, 1_001, 100_000, 100_001, u64::MAX] {
            *row.took(us) += 1;
        }
        let counted = [
            row.within_10_us,
            row.within_100_us,
            row.within_1_ms,
            row.within_10_ms,
            row.within_100_ms,
            row.longer,
        ];
        assert_eq!(counted, [4, 1, 1, 1, 1, 2]);
    }
}
