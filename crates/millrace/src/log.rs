//! Lines for an operator: time, thread, words; to standard error, or to a file that can be reopened.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where lines go.
#[derive(Clone)]
pub(crate) struct Log {
    path: Option<PathBuf>,
    file: Arc<Mutex<Option<File>>>,
}

impl Log {
    /// To standard error.
    pub(crate) fn stderr() -> Self {
        Self { path: None, file: Arc::default() }
    }

    /// To a file, which is appended to.
    pub(crate) fn file(path: &Path) -> std::io::Result<Self> {
        let log = Self { path: Some(path.to_owned()), file: Arc::default() };
        log.reopen()?;
        Ok(log)
    }

    /// After the file was moved away.
    pub(crate) fn reopen(&self) -> std::io::Result<()> {
        if let Some(path) = &self.path {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            *self.file.lock().expect("nobody panics while writing a line") = Some(file);
        }
        Ok(())
    }

    /// One line.
    pub(crate) fn line(&self, words: &str) {
        let thread = std::thread::current();
        let line = format!("{} [{}] {words}\n", now(), thread.name().unwrap_or("-"));
        let mut file = self.file.lock().expect("nobody panics while writing a line");
        // A full disk must not stop the traffic, and there is nobody else to tell.
        let _unwritable = match &mut *file {
            Some(file) => file.write_all(line.as_bytes()),
            None => std::io::stderr().write_all(line.as_bytes()),
        };
    }
}

/// UTC, as `2026-01-31 23:59:59.123`.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}.{:03}", since.subsec_millis())
}

/// The date of a day, counted from 1970-01-01. Years begin in March, so that the odd day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_453), (2025, 12, 31));
    }
}
