//! The files of a log: `<name>.00000001` and so on, each begun behind the last one there is. Whatever
//! fails is told once, and tried again.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A file that could not be begun is tried again so often.
const AGAIN: Duration = Duration::from_secs(1);

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
    /// Begins the next one of this name, which is the value of the variable.
    ///
    /// # Errors
    /// In an operator's words.
    pub(crate) fn next(folder: &Path, variable: &str, name: &str) -> Result<Self, String> {
        let cannot = |words: &str| format!("{variable} = '{name}': {words}");
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

/// A log in an operator's words.
pub(crate) struct Words {
    /// The log itself.
    pub(crate) log: &'static str,
    /// Variable that names its files.
    pub(crate) variable: &'static str,
    /// One or many of its records.
    pub(crate) records: &'static str,
    /// Counter of the records that are not in it.
    pub(crate) dropped: &'static str,
}

/// The file of a log that is written, and those before and behind it.
pub(crate) struct Files {
    folder: PathBuf,
    note: Rc<dyn Fn(&str)>,
    words: Words,
    /// Name of the files; none while there is no log.
    name: Option<Box<str>>,
    pub(crate) open: Option<Open>,
    /// Records that were lost since it cannot be written.
    failing: Option<u64>,
    /// When a file could not be begun.
    tried: Option<Instant>,
}

impl Files {
    /// `folder`: where names without `/` in front are. `note` takes a line for an operator.
    pub(crate) fn new(folder: PathBuf, note: Rc<dyn Fn(&str)>, words: Words) -> Self {
        Self {
            folder,
            note,
            words,
            name: None,
            open: None,
            failing: None,
            tried: None,
        }
    }

    /// No log any more.
    pub(crate) fn end(&mut self) {
        (self.name, self.open, self.failing) = (None, None, None);
    }

    /// Files of this name from now on. `anew`: what is open is not gone on with.
    ///
    /// # Errors
    /// No file can be begun: all stays as it was, unless `anyway`.
    pub(crate) fn begin(&mut self, name: &str, anew: bool, anyway: bool) -> Result<(), String> {
        if !anew && self.open.is_some() && self.name.as_deref() == Some(name) {
            return Ok(());
        }
        match Open::next(&self.folder, self.words.variable, name) {
            Ok(open) => {
                (self.name, self.open, self.tried) = (Some(name.into()), Some(open), None);
                Ok(())
            }
            Err(words) => {
                if anyway {
                    (self.name, self.open) = (Some(name.into()), None);
                    self.failed(&words);
                }
                Err(words)
            }
        }
    }

    /// Begins the next one. What is open stays open if there can be no other.
    ///
    /// # Errors
    /// In an operator's words.
    pub(crate) fn next(&mut self) -> Result<(), String> {
        let Some(name) = &self.name else {
            return Ok(());
        };
        match Open::next(&self.folder, self.words.variable, name) {
            Ok(open) => {
                (self.open, self.tried) = (Some(open), None);
                Ok(())
            }
            Err(words) => {
                let first = self.tried.replace(Instant::now()).is_none();
                match &self.open {
                    Some(open) if first => (self.note)(&format!(
                        "{} goes on in {}: {words}",
                        self.words.log,
                        open.path.display()
                    )),
                    Some(_) => {}
                    None => self.failed(&words),
                }
                Err(words)
            }
        }
    }

    /// The file for the next records: another, if what is open has so many bytes. One that is full is
    /// better than none.
    pub(crate) fn with_room(&mut self, bytes_max: u64) -> Option<&mut Open> {
        let is_full = self.open.as_ref().is_none_or(|open| open.len >= bytes_max);
        if is_full && self.tried.is_none_or(|tried| tried.elapsed() >= AGAIN) {
            let _told = self.next();
        }
        self.open.as_mut()
    }

    /// Writes whole records into the open file. Whether they are there.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        let Err(failed) = open.write(bytes) else {
            return true;
        };
        let words = format!(
            "{} cannot be written: {}",
            open.path.display(),
            failed.error
        );
        if !failed.is_whole {
            self.open = None;
        }
        self.failed(&words);
        false
    }

    /// So many of the records that came were lost: none, if it is well again.
    pub(crate) fn lost(&mut self, records: u64) {
        match &mut self.failing {
            Some(so_far) if records > 0 => *so_far += records,
            None => {}
            Some(so_far) => {
                let Words { log, records, .. } = self.words;
                (self.note)(&format!(
                    "{log} is written again; {so_far} {records} are not in it"
                ));
                self.failing = None;
            }
        }
    }

    /// Told once, until it is well again.
    fn failed(&mut self, why: &str) {
        if self.failing.is_none() {
            let Words {
                log,
                records,
                dropped,
                ..
            } = self.words;
            (self.note)(&format!(
                "{log}: {why}; until that is well {records} are not in it ({dropped}), and traffic goes on"
            ));
            self.failing = Some(0);
        }
    }

    /// Tells an operator of a defect.
    pub(crate) fn note(&self, words: &str) {
        (self.note)(words);
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
