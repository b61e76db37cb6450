//! Our certificate: the operator's files in the data directory, or ones that are made there.

use net::tls::{Acceptor, SelfSigned};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Names as ProxySQL has them, so that existing files go on serving.
const CA: &str = "proxysql-ca.pem";
const CERTIFICATE: &str = "proxysql-cert.pem";
const KEY: &str = "proxysql-key.pem";

/// Certificate and key in PEM, and who signs the certificates of clients.
pub struct Pair {
    /// The certificate, and those that lead to an authority.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
    /// Empty if there is none: clients are not asked for certificates then.
    pub authorities: Vec<u8>,
}

impl Pair {
    /// Reads them; makes them first where there are none. A file of the operator's is never written
    /// over.
    pub fn in_folder(datadir: &Path) -> Result<Self, String> {
        let at = |name: &str| datadir.join(name);
        let said = |name: &str, error: io::Error| format!("{}: {error}", at(name).display());
        let there: Vec<_> = [CA, KEY, CERTIFICATE]
            .into_iter()
            .filter(|name| is_taken(&at(name)))
            .collect();
        if there.is_empty() {
            let made = SelfSigned::generate()?;
            // One of before would say that all were written.
            let _missing = fs::remove_file(unfinished(datadir, CERTIFICATE));
            for (name, pem, mode) in [(CA, &made.ca, 0o644), (KEY, &made.key, 0o600)] {
                write(&unfinished(datadir, name), pem, mode).map_err(|e| said(name, e))?;
            }
            let (written, complete) = (begun(datadir), unfinished(datadir, CERTIFICATE));
            write(&written, &made.certificate, 0o644).map_err(|e| said(CERTIFICATE, e))?;
            fs::rename(written, complete).map_err(|e| said(CERTIFICATE, e))?;
            finish(datadir)?;
        } else if !is_taken(&at(CERTIFICATE)) && is_taken(&unfinished(datadir, CERTIFICATE)) {
            // All were written, and an end came while they got their names.
            finish(datadir)?;
        } else if !there.contains(&CERTIFICATE) || !there.contains(&KEY) {
            return Err(format!(
                "the data directory {} has {}, but a certificate needs {CERTIFICATE} and {KEY}: put both there, or none of {CA}, {CERTIFICATE} and {KEY} to \
                 have all made",
                datadir.display(),
                there.join(" and ")
            ));
        }
        Ok(Self {
            certificate: fs::read(at(CERTIFICATE)).map_err(|e| said(CERTIFICATE, e))?,
            key: fs::read(at(KEY)).map_err(|e| said(KEY, e))?,
            authorities: match fs::read(at(CA)) {
                Ok(authorities) => authorities,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(said(CA, error)),
            },
        })
    }

    /// Both belong together and can be used.
    pub fn acceptor(&self) -> Result<Acceptor, String> {
        Acceptor::asking(&self.certificate, &self.key, &self.authorities).map_err(|error| {
            format!("{CERTIFICATE}, {KEY} and {CA} in the data directory cannot be used: {error}")
        })
    }
}

/// Where a file is until all are written.
fn unfinished(datadir: &Path, name: &str) -> PathBuf {
    datadir.join(format!(".{name}.millrace.tmp"))
}

/// Where the certificate is until all of it is written.
fn begun(datadir: &Path) -> PathBuf {
    unfinished(datadir, CERTIFICATE).with_extension("new")
}

/// Something has this name, be it a link that leads nowhere.
fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Gives them their names, where they do not have them yet: the certificate last, whose other name
/// says that all were written.
fn finish(datadir: &Path) -> Result<(), String> {
    for name in [KEY, CA, CERTIFICATE] {
        let (from, to) = (unfinished(datadir, name), datadir.join(name));
        if !is_taken(&to) {
            fs::rename(&from, &to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!(
                "millrace-certificate-{name}-{}",
                std::process::id()
            ));
            fs::remove_dir_all(&path).ok();
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<_> = fs::read_dir(&self.0)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort_unstable();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn what_the_operator_has_put_there_is_never_written_over() {
        for (name, text) in [(CA, "mine"), (KEY, "mine"), (CERTIFICATE, "mine")] {
            let folder = Folder::new(name);
            fs::write(folder.0.join(name), text).unwrap();
            let refused = Pair::in_folder(&folder.0).err().unwrap();
            assert!(refused.contains(&format!("has {name}, but")), "{refused}");
            assert_eq!(folder.names(), [name]);
            assert_eq!(fs::read_to_string(folder.0.join(name)).unwrap(), text);
        }
        let folder = Folder::new("link");
        std::os::unix::fs::symlink("not-mounted-yet.pem", folder.0.join(CERTIFICATE)).unwrap();
        let refused = Pair::in_folder(&folder.0).err().unwrap();
        assert!(
            refused.contains(&format!("has {CERTIFICATE}, but")),
            "{refused}"
        );
        fs::write(folder.0.join(KEY), "mine").unwrap();
        assert!(Pair::in_folder(&folder.0).is_err());
        assert_eq!(folder.names(), [CERTIFICATE, KEY]);
        assert!(folder.0.join(CERTIFICATE).is_symlink());
        let folder = Folder::new("pair");
        fs::write(folder.0.join(KEY), "key").unwrap();
        fs::write(folder.0.join(CERTIFICATE), "certificate").unwrap();
        let pair = Pair::in_folder(&folder.0).unwrap();
        assert_eq!(
            (&*pair.certificate, &*pair.key, &*pair.authorities),
            (&b"certificate"[..], &b"key"[..], &b""[..])
        );
    }

    #[test]
    fn an_end_at_any_moment_of_making_them_is_made_good_by_the_next_start() {
        let folder = Folder::new("made");
        let made = Pair::in_folder(&folder.0).unwrap();
        made.acceptor().unwrap();
        assert_eq!(folder.names(), [CA, CERTIFICATE, KEY]);
        // Half of them written: they are made anew.
        let folder = Folder::new("half");
        fs::write(unfinished(&folder.0, CA), "ha").unwrap();
        fs::write(begun(&folder.0), "ha").unwrap();
        fs::write(unfinished(&folder.0, CERTIFICATE), "").unwrap();
        Pair::in_folder(&folder.0).unwrap().acceptor().unwrap();
        assert_eq!(folder.names(), [CA, CERTIFICATE, KEY]);
        // The name that says that all were written is gone while they are not.
        let folder = Folder::new("begun");
        fs::write(unfinished(&folder.0, CERTIFICATE), "of before").unwrap();
        fs::create_dir(unfinished(&folder.0, KEY)).unwrap();
        assert!(Pair::in_folder(&folder.0).is_err());
        assert!(!is_taken(&unfinished(&folder.0, CERTIFICATE)));
        // All written, and some named.
        for named in [&[KEY][..], &[KEY, CA]] {
            let folder = Folder::new("named");
            for (name, pem) in [
                (CA, &made.authorities),
                (KEY, &made.key),
                (CERTIFICATE, &made.certificate),
            ] {
                let to = if named.contains(&name) {
                    folder.0.join(name)
                } else {
                    unfinished(&folder.0, name)
                };
                fs::write(to, pem).unwrap();
            }
            let pair = Pair::in_folder(&folder.0).unwrap();
            assert_eq!(
                (pair.certificate, pair.key),
                (made.certificate.clone(), made.key.clone())
            );
            assert_eq!(folder.names(), [CA, CERTIFICATE, KEY]);
        }
    }
}
