//! The data directory: made if it is missing, writable, and for one process alone.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// The directory is ours while this lives; the kernel gives it back even after kill -9.
#[derive(Debug)]
pub struct Owned(File);

impl Owned {
    /// Descriptor of the lock, for a process that takes over.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

/// Goes on with a lock that another process has left. Both have it until that one ends.
pub(crate) fn inherit(lock: OwnedFd) -> Result<Owned, String> {
    let mut file = File::from(lock);
    let written = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.set_len(0))
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(|error| format!("the lock of the data directory: {error}"))?;
    Ok(Owned(file))
}

/// Removes a file that has the number of a process, if it is this number: another process may have
/// taken over.
pub fn remove_pidfile(path: &Path, id: u32) {
    let is_own = fs::read_to_string(path).is_ok_and(|text| text.trim() == id.to_string());
    if is_own {
        let _gone = fs::remove_file(path);
    }
}

/// Takes the directory for this process.
///
/// # Errors
/// It cannot be made or written, or another process has it; the words are for an operator.
pub fn take(datadir: &Path) -> Result<Owned, String> {
    let shown = datadir.display();
    if datadir.exists() && !datadir.is_dir() {
        return Err(format!(
            "the data directory {shown} is not a directory: choose another with -D"
        ));
    }
    if !datadir.is_dir() {
        // For its owner, and for a group that may read the events log: there are passwords in it.
        let made = fs::create_dir_all(datadir.parent().unwrap_or(datadir))
            .and_then(|()| DirBuilder::new().mode(0o750).create(datadir));
        made.map_err(|error| format!("the data directory {shown} cannot be made: {error}"))?;
    }
    let path = datadir.join("millrace.lock");
    let unusable = |error: io::Error| {
        format!(
            "the data directory {shown} cannot be written by this user: {}: {error}",
            path.display()
        )
    };
    let mut file = File::options()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let owner = fs::read_to_string(&path).unwrap_or_default();
            return Err(format!(
                "the data directory {shown} is used by another Millrace (process {}): choose another with -D, or stop that one",
                owner.trim()
            ));
        }
        Err(TryLockError::Error(error)) => return Err(unusable(error)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(unusable)?;
    Ok(Owned(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_directory_has_one_owner_and_is_free_when_he_is_gone() {
        let folder = std::env::temp_dir().join(format!("millrace-folder-{}", std::process::id()));
        let owned = take(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o750);
        let refused = take(&folder).unwrap_err();
        assert!(
            refused.contains(&format!(
                "another Millrace (process {})",
                std::process::id()
            )),
            "{refused}"
        );
        drop(owned);
        drop(take(&folder).unwrap());
        let file = folder.join("file");
        fs::write(&file, "").unwrap();
        assert!(take(&file).unwrap_err().contains("is not a directory"));
        assert!(
            take(&file.join("below"))
                .unwrap_err()
                .contains("cannot be made")
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
