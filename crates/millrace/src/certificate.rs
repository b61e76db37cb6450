//! Our certificate: the operator's files in the data directory, or ones that are made there.

use net::tls::{Acceptor, SelfSigned};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Names as ProxySQL has them, so that existing files go on serving.
const CA: &str = "proxysql-ca.pem";
const CERTIFICATE: &str = "proxysql-cert.pem";
const KEY: &str = "proxysql-key.pem";

/// Certificate and key in PEM, and who signs the certificates of clients.
pub(crate) struct Pair {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
    /// Empty if there is none: clients are not asked for certificates then.
    pub(crate) authorities: Vec<u8>,
}

impl Pair {
    /// Reads them; makes them first where there are none.
    pub(crate) fn in_folder(datadir: &Path) -> Result<Self, String> {
        let said = |name: &str, error: io::Error| format!("{}: {error}", datadir.join(name).display());
        if !datadir.join(CERTIFICATE).exists() && !datadir.join(KEY).exists() {
            let made = SelfSigned::generate()?;
            write(&datadir.join(CA), &made.ca, 0o644).map_err(|e| said(CA, e))?;
            write(&datadir.join(KEY), &made.key, 0o600).map_err(|e| said(KEY, e))?;
            write(&datadir.join(CERTIFICATE), &made.certificate, 0o644).map_err(|e| said(CERTIFICATE, e))?;
        }
        Ok(Self {
            certificate: fs::read(datadir.join(CERTIFICATE)).map_err(|e| said(CERTIFICATE, e))?,
            key: fs::read(datadir.join(KEY)).map_err(|e| said(KEY, e))?,
            authorities: match fs::read(datadir.join(CA)) {
                Ok(authorities) => authorities,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(said(CA, error)),
            },
        })
    }

    /// Both belong together and can be used.
    pub(crate) fn acceptor(&self) -> Result<Acceptor, String> {
        Acceptor::asking(&self.certificate, &self.key, &self.authorities)
            .map_err(|error| format!("{CERTIFICATE}, {KEY} and {CA} in the data directory cannot be used: {error}"))
    }
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
