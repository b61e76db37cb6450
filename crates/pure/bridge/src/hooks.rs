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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::merge;

    #[test]
    fn a_hook_of_two_cores_is_one_row() {
        let row = |hook, us, at: u64| HookRow {
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
        };
        let mut all = vec![row("read_query", 5, 20)];
        merge(&mut all, vec![row("main", 1, 0), row("read_query", 7, 10)]);
        assert_eq!(all.len(), 2);
        let shown = (all[0].calls, all[0].errors, all[0].sum_us, all[0].max_us);
        assert_eq!(shown, (4, 2, 12, 7));
        assert_eq!(&*all[0].last_error, "at 20");
    }
}
