//! `admin-ssl_keylog_file`: the file of TLS secrets follows the configuration.

use config::Snapshot;
use door::Behind;
use net::tls::Acceptor;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Hears what an operator should read.
type Note = Box<dyn Fn(&str) + Send + Sync>;

/// The file that the secrets of TLS sessions go to, if there is one.
pub struct Secrets {
    note: Note,
    file: Mutex<Box<str>>,
}

impl Secrets {
    /// As this configuration has it.
    #[must_use]
    pub fn new(snapshot: &Snapshot, note: Note) -> Self {
        let file = Mutex::default();
        let secrets = Self { note, file };
        secrets.load(snapshot);
        secrets
    }
}

impl Behind for Secrets {
    fn load(&self, snapshot: &Snapshot) {
        let wanted = &snapshot.variables.admin_ssl_keylog_file;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if **file == **wanted {
            return;
        }
        match net::keys::log_to(Some(Path::new(&**wanted)).filter(|_| !wanted.is_empty())) {
            Ok(()) => {
                if !wanted.is_empty() {
                    (self.note)(&format!(
                        "the secrets of TLS sessions are written to {wanted} (admin-ssl_keylog_file): who has them reads the traffic"
                    ));
                }
                file.clone_from(wanted);
            }
            Err(error) => (self.note)(&format!(
                "admin-ssl_keylog_file: {wanted} cannot be written: {error}; nothing has changed"
            )),
        }
    }

    fn offer(&self, _: &Acceptor) {}
}
