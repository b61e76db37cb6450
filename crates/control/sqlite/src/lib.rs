//! The embedded SQLite backend: SQLite's dialect over the MySQL protocol, so that a first query
//! works with nothing installed.
//!
//! Each client has an SQLite connection of its own on one file in WAL mode: transactions are
//! isolated, readers do not wait. What MySQL clients say at their start (`dialect.rs`) is answered;
//! everything else is SQLite's own language.
#![forbid(unsafe_code)]

mod dialect;
mod errors;
mod functions;
mod rows;
mod session;

use config::Snapshot;
use door::{Behind, Door, Entry, Host, Limits, Refused, Who};
use net::tls::Acceptor;
use rt::{Address, Listener, Rt};
use session::Session;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the database in the data directory.
pub const FILE: &str = "sqlite3server.db";

/// The embedded server.
#[derive(Debug, Clone)]
pub struct Server {
    file: PathBuf,
    users: Users,
    version: String,
    tls: Tls,
    read_only: ReadOnly,
}

/// Whether statements that write are refused (`sqliteserver-read_only`): the operator can change
/// that while it serves, for transactions that are open as well.
#[derive(Debug, Clone, Default)]
pub struct ReadOnly(Arc<AtomicBool>);

impl ReadOnly {
    /// From now on so.
    pub fn set(&self, refuses: bool) {
        self.0.store(refuses, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Who may come in: others can, while it serves.
#[derive(Debug, Clone, Default)]
pub struct Users(Arc<Mutex<Arc<config::Users>>>);

impl Users {
    /// These.
    #[must_use]
    pub fn new(users: Arc<config::Users>) -> Self {
        Self(Arc::new(Mutex::new(users)))
    }

    /// From now on others.
    pub fn replace(&self, users: Arc<config::Users>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = users;
    }

    fn entry(&self, name: &str) -> Entry {
        let users = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match users.frontend(name) {
            Some(user) => Entry::of(user.passwords()),
            None => Entry::Nobody,
        }
    }
}

/// The certificate of the embedded server: none, or one that can be replaced while it serves.
#[derive(Debug, Clone, Default)]
pub struct Tls(Arc<Mutex<Option<Acceptor>>>);

impl Tls {
    /// Offers TLS, with this certificate, to clients that come from now on.
    pub fn offer(&self, acceptor: Acceptor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(acceptor);
    }

    fn acceptor(&self) -> Option<Acceptor> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Parts of the embedded server that can be replaced while it serves.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// The certificate.
    pub tls: Tls,
    /// The users.
    pub users: Users,
    /// Whether it refuses to write.
    pub read_only: ReadOnly,
}

impl Embedded {
    /// As this configuration has it.
    #[must_use]
    pub fn new(snapshot: &Snapshot, acceptor: Acceptor) -> Self {
        let tls = Tls::default();
        tls.offer(acceptor);
        let read_only = ReadOnly::default();
        read_only.set(snapshot.variables.sqliteserver_read_only);
        Self {
            tls,
            users: Users::new(snapshot.users.clone()),
            read_only,
        }
    }
}

impl Behind for Embedded {
    fn load(&self, snapshot: &Snapshot) {
        self.users.replace(snapshot.users.clone());
        self.read_only
            .set(snapshot.variables.sqliteserver_read_only);
    }

    fn offer(&self, acceptor: &Acceptor) {
        self.tls.offer(acceptor.clone());
    }
}

impl Server {
    /// On the file in `datadir`, for these users. `version` is what the greeting says.
    pub fn new(datadir: &Path, users: Users, version: impl Into<String>) -> Self {
        Self {
            file: datadir.join(FILE),
            users,
            version: version.into(),
            tls: Tls::default(),
            read_only: ReadOnly::default(),
        }
    }

    /// Writes as long as this does not say otherwise.
    pub fn set_read_only(&mut self, read_only: ReadOnly) {
        self.read_only = read_only;
    }

    /// Offers TLS with the certificate that is, or will be, in there.
    pub fn set_tls(&mut self, tls: Tls) {
        self.tls = tls;
    }

    /// Makes the file if it is missing, and runs statements that prepare it, such as a table with a
    /// greeting.
    pub fn prepare(&self, statements: &str) -> Result<(), String> {
        let conn = session::open(&self.file)
            .map_err(|error| format!("{}: {error}", self.file.display()))?;
        conn.execute_batch(statements)
            .map_err(|error| format!("{}: {error}", self.file.display()))
    }

    /// Serves until it is dropped: run it on an executor thread of its own, since SQLite computes
    /// in that thread.
    pub async fn serve(self, rt: Rt, listeners: Vec<Listener>) {
        let door = Door::new(
            Rc::new(Port {
                server: self,
                rt: rt.clone(),
            }),
            Limits::default(),
        );
        for listener in listeners {
            rt.spawn(door.clone().serve(rt.clone(), listener));
        }
        std::future::pending::<()>().await;
    }
}

struct Port {
    server: Server,
    rt: Rt,
}

impl Host for Port {
    type Session = Session;

    fn server_version(&self) -> String {
        self.server.version.clone()
    }

    fn acceptor(&self) -> Option<Acceptor> {
        self.server.tls.acceptor()
    }

    fn entry(&self, user: &str, _: &Address) -> Entry {
        self.server.users.entry(user)
    }

    fn session(self: &Rc<Self>, who: Who) -> Result<Session, Refused> {
        let Server {
            file,
            version,
            read_only,
            ..
        } = &self.server;
        Session::begin(file, version, who, self.rt.clone(), read_only.clone())
    }
}
