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
    let mut words = bridge::utc(u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    words.truncate(words.len() - 3);
    words
}
