//! Secrets of TLS sessions in a file, for who has to read recorded traffic
//! (`admin-ssl_keylog_file`). A line a secret, in NSS' key log format, which packet analysers read.
//!
//! A thread of its own writes: nobody who shakes hands waits for a disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Lines that wait to be written at most; further ones are left out.
const WAITING_MAX: usize = 4096;

static LINES: Mutex<Option<SyncSender<String>>> = Mutex::new(None);

/// Appends the secrets of all sessions that begin from now on to this file, which only its owner
/// may read; to none if there is no path.
///
/// # Errors
/// The file cannot be opened. What was there before goes on.
pub fn log_to(path: Option<&Path>) -> io::Result<()> {
    let lines = match path {
        None => None,
        Some(path) => {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(path)?;
            let (lines, unread) = sync_channel(WAITING_MAX);
            thread::Builder::new()
                .name("keys".into())
                .spawn(move || write(file, &unread))?;
            Some(lines)
        }
    };
    *LINES.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    Ok(())
}

/// A session has this secret.
pub(crate) fn has(line: &str) {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lines) = &*lines {
        let _left_out = lines.try_send(format!("{line}\n"));
    }
}

/// Writes until there is another file, or none.
fn write(mut file: File, unread: &Receiver<String>) {
    for line in unread {
        let _full = file.write_all(line.as_bytes());
    }
}
