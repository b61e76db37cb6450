//! Files that only their owner can read: there are passwords in them.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// For its owner, to read and to write.
const PRIVATE: u32 = 0o600;
/// As many links in a row as Linux follows.
const LINKS_MAX: usize = 40;

/// Writes the file. What stood there before stays until all of it is written, unless the place
/// allows nothing but to write over it.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let path = meant(path);
    let before = fs::metadata(&path).ok();
    if before.as_ref().is_some_and(|there| !there.is_file()) {
        return Err(io::Error::other("it is not a file"));
    }
    match replace(&path, text, before.as_ref()) {
        // A file that is a mount of its own, or a folder of somebody else.
        Err(error) if before.is_some() && is_the_places_fault(&error) => write_over(&path, text),
        outcome => outcome,
    }
}

/// Makes the file of a SQLite database if it is not there, and takes from all but its owner what
/// they may do with it and with what SQLite has left beside it; new files beside it SQLite makes
/// like it. What fails here, SQLite says better, or [`others_may`].
///
/// A file that is there is not opened: closing it would end SQLite's locks on it.
pub fn keep_private(database: &Path) {
    let path = meant(database);
    let _there = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(&path);
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut path = path.clone().into_os_string();
        path.push(suffix);
        if others_may(Path::new(&path)) {
            let _not_ours = fs::set_permissions(&path, Permissions::from_mode(PRIVATE));
        }
    }
}

/// Whether anybody but its owner may do something with a file.
pub(crate) fn others_may(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| there.is_file() && there.mode() & 0o077 != 0)
}

/// A link leads to the file that is meant, also where it is not there yet.
fn meant(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or_else(|| Path::new("")).join(target);
    }
    path
}

fn is_the_places_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceBusy | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

/// Where the text is until it is whole: a name that nobody else uses.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.millrace-{}.tmp", std::process::id()))
}

fn replace(path: &Path, text: &str, before: Option<&fs::Metadata>) -> io::Result<()> {
    let beside = beside(path);
    // A crash may have left one behind.
    let _none = fs::remove_file(&beside);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE)
        .open(&beside)?;
    if let Some(before) = before {
        // Only root may give files away; to others the file is their own.
        let _kept = fchown(&file, Some(before.uid()), Some(before.gid()));
    }
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _gone = fs::remove_file(&beside);
        return written;
    }
    // It is there. A folder that cannot be synced makes it no less so.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."));
    let _synced = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

fn write_over(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
    }
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Directory;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_can_only_be_written_over_is_written_over_and_is_private_before() {
        let directory = Directory::new("private-over");
        let file = directory.0.join("c.cnf");
        fs::write(&file, "a longer text of before").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        write_over(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        // EBUSY, EACCES, EPERM, EROFS; not ENOSPC, ENOENT.
        for (number, is) in [
            (16, true),
            (13, true),
            (1, true),
            (30, true),
            (28, false),
            (2, false),
        ] {
            assert_eq!(
                is_the_places_fault(&io::Error::from_raw_os_error(number)),
                is,
                "{number}"
            );
        }
    }

    /// Root may write into it all the same; others have to write over the file.
    #[test]
    fn a_folder_that_may_not_be_written_keeps_nobody_from_saving() {
        let directory = Directory::new("private-folder");
        let file = directory.0.join("c.cnf");
        fs::write(&file, "of before").unwrap();
        fs::set_permissions(&directory.0, Permissions::from_mode(0o555)).unwrap();
        let written = write(&file, "new");
        fs::set_permissions(&directory.0, Permissions::from_mode(0o755)).unwrap();
        written.unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_yet_stays_a_link_and_files_of_others_stay() {
        let directory = Directory::new("private-link");
        let [file, link, others] =
            ["c.cnf", "link.cnf", "c.cnf.tmp"].map(|name| directory.0.join(name));
        symlink("c.cnf", &link).unwrap();
        fs::write(&others, "somebody's").unwrap();
        write(&link, "new").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_to_string(&others).unwrap(), "somebody's");
        assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 3);
    }
}
