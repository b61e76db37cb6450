//! The files of the log: `<name>.00000001` and so on, each begun behind the last one there is.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file that is written.
pub(crate) struct Open {
    file: File,
    pub(crate) path: PathBuf,
    /// Bytes of whole records in it.
    pub(crate) len: u64,
}

/// Nothing more was written.
pub(crate) struct Failed {
    pub(crate) error: io::Error,
    /// There are whole records only in the file. If not, nothing may be written behind them.
    pub(crate) is_whole: bool,
}

impl Open {
    /// Begins the next one of this name.
    ///
    /// # Errors
    /// In an operator's words.
    pub(crate) fn next(folder: &Path, name: &str) -> Result<Self, String> {
        let cannot = |words: &str| format!("mysql-eventslog_filename = '{name}': {words}");
        let base = folder.join(name);
        let (Some(parent), Some(file_name), false) =
            (base.parent(), base.file_name(), name.ends_with('/'))
        else {
            return Err(cannot(
                "that is a directory, and not the beginning of a file's name",
            ));
        };
        if name.contains('\0') {
            return Err(cannot("no file can be called so"));
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => cannot(&format!(
                "the directory {} does not exist",
                parent.display()
            )),
            io::ErrorKind::NotADirectory => {
                cannot(&format!("{} is not a directory", parent.display()))
            }
            _ => cannot(&format!(
                "no file can be begun in {}: {error}",
                parent.display()
            )),
        };
        let mut number = last_number(parent, file_name).map_err(failed)?;
        loop {
            number += 1;
            let mut name = file_name.to_owned();
            name.push(format!(".{number:08}"));
            let path = parent.join(name);
            // There are statements in it, with their values.
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o640)
                .open(&path)
            {
                Ok(file) => return Ok(Self { file, path, len: 0 }),
                // Somebody was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// A device on which there is never room.
    #[cfg(test)]
    pub(crate) fn that_is_full() -> Self {
        let path = PathBuf::from("/dev/full");
        Self {
            file: OpenOptions::new().write(true).open(&path).unwrap(),
            path,
            len: 0,
        }
    }

    /// Writes whole records, all or none: what was written of them when it failed is taken away
    /// again.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        let Err(error) = self.file.write_all(bytes) else {
            self.len += bytes.len() as u64;
            return Ok(());
        };
        let taken_back = self
            .file
            .set_len(self.len)
            .and_then(|()| self.file.seek(io::SeekFrom::Start(self.len)));
        Err(Failed {
            error,
            is_whole: taken_back.is_ok(),
        })
    }
}

/// The highest number that a file of this name has; 0 if there is none.
fn last_number(folder: &Path, name: &OsStr) -> io::Result<u64> {
    let name = name.as_encoded_bytes();
    let mut last = 0;
    for entry in fs::read_dir(folder)? {
        let found = entry?.file_name();
        let number = found
            .as_encoded_bytes()
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(b"."));
        let number = number
            .filter(|digits| digits.len() >= 8)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        last = last.max(number.and_then(|digits| digits.parse().ok()).unwrap_or(0));
    }
    Ok(last)
}
