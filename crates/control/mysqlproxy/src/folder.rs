//! Where a process has its files: a data directory, or a folder for this process alone.

use crate::Given;
use admin::file::Settings;
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Where a process has its files, unless it is told otherwise.
const DATADIR: &str = "/var/lib/millrace";

/// Where a process has its files.
#[derive(Debug)]
pub struct Files {
    /// Certificate, lock, and what is written down.
    pub datadir: PathBuf,
    /// The log, where it goes to a file.
    pub errorlog: PathBuf,
    /// The process id.
    pub pidfile: PathBuf,
    /// The log goes to its file also in the foreground.
    pub has_log: bool,
    _own: Option<Folder>,
}

impl Files {
    /// By what the options of MySQL Proxy say, the command line (`named`), and a configuration file.
    /// Begun by those options, in the foreground and without a data directory, a process has a folder
    /// of its own, for as long as this value lives.
    ///
    /// # Errors
    /// There can be no such folder.
    pub fn of(
        given: Option<&Given>,
        named: Option<PathBuf>,
        settings: &Settings,
    ) -> Result<Self, Vec<String>> {
        let path = |text: &Option<String>| text.as_ref().map(PathBuf::from);
        let named = named.or_else(|| path(&settings.datadir));
        let own = match given.filter(|given| named.is_none() && !given.is_behind) {
            Some(_) => Some(Folder::new().map_err(|error| {
                let at = std::env::temp_dir();
                let at = at.display();
                vec![format!(
                    "no folder can be made in {at}: {error}; name one with --datadir"
                )]
            })?),
            None => None,
        };
        let own_path = own.as_ref().map(|folder| folder.path().to_owned());
        // Processes that belong together find each other there.
        let datadir = own_path.or(named).unwrap_or_else(|| DATADIR.into());
        let log = given.and_then(|given| given.log.clone());
        let pidfile = given.and_then(|given| given.pidfile.clone());
        let in_datadir = |name| datadir.join(name);
        Ok(Self {
            has_log: log.is_some(),
            errorlog: log
                .or_else(|| path(&settings.errorlog))
                .unwrap_or_else(|| in_datadir("millrace.log")),
            pidfile: pidfile
                .or_else(|| path(&settings.pidfile))
                .unwrap_or_else(|| in_datadir("millrace.pid")),
            datadir,
            _own: own,
        })
    }
}

/// A folder that is removed with all that is in it when it is dropped. Nobody else may look into it.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes one where temporary files are.
    ///
    /// # Errors
    /// There can be none.
    pub(crate) fn new() -> io::Result<Self> {
        let number = RandomState::new().hash_one(std::process::id());
        let path = std::env::temp_dir().join(format!("millrace-{number:016x}"));
        // One that is there already is somebody else's.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone_already = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_s_own_and_goes_with_its_owner() {
        let (one, other) = (Folder::new().unwrap(), Folder::new().unwrap());
        assert_ne!(one.path(), other.path());
        fs::write(one.path().join("key"), "secret").unwrap();
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }
}
