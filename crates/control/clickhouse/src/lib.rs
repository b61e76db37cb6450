//! ClickHouse behind the MySQL protocol: what a client of MySQL says is asked of a ClickHouse over HTTP,
//! and its blocks come back as rows, one block in memory at a time.
//!
//! A client is a session with a connection of its own to ClickHouse. What MySQL's clients ask at their
//! start and of a catalogue is answered or put into ClickHouse's words (`dialect.rs`); everything else
//! is ClickHouse's own language.
#![forbid(unsafe_code)]

mod cells;
mod data;
mod dialect;
mod errors;
mod facts;
mod health;
mod hints;
mod literals;
mod load;
mod native;
mod query;
mod roster;
mod schema;
mod session;
mod types;
mod zone;

pub use native::fuzz_native;

use bridge::Lines;
use config::{ClickhouseUsers, Snapshot, Variables};
use door::{Behind, Door, Entry, Host, Limits, Refused, Who};
use health::Health;
use net::tls::Acceptor;
use query::Asker;
use roster::Roster;
use rt::{Address, ListenOptions, Listener, Rt};
use session::Session;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Configuration that is in force.
#[derive(Debug, Clone)]
pub(crate) struct Force {
    pub(crate) variables: Arc<Variables>,
    pub(crate) users: Arc<ClickhouseUsers>,
    acceptor: Acceptor,
}

/// The server, for as many threads as serve it.
#[derive(Debug, Clone)]
pub struct Server {
    force: Arc<Mutex<Arc<Force>>>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) health: Arc<Health>,
}

impl Server {
    /// Under this configuration, with this certificate. `note` hears whether ClickHouse is there.
    #[must_use]
    pub fn new(snapshot: &Snapshot, acceptor: Acceptor, note: impl Lines + 'static) -> Self {
        let force = Force {
            variables: snapshot.variables.clone(),
            users: snapshot.clickhouse.clone(),
            acceptor,
        };
        Self {
            force: Arc::new(Mutex::new(Arc::new(force))),
            roster: Arc::default(),
            health: Arc::new(Health::new(note)),
        }
    }

    fn put(&self, force: Force) {
        *self.force.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(force);
    }

    pub(crate) fn force(&self) -> Arc<Force> {
        self.force
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Serves until it is dropped, as the `nth` of so many threads. The first of them looks whether
    /// ClickHouse is there; nothing depends on that.
    pub async fn serve(self, rt: Rt, listeners: Vec<Listener>, nth: u32, of: u32) {
        let host = Rc::new(Port {
            server: self,
            rt: rt.clone(),
        });
        if nth == 0 {
            let port = host.clone();
            rt.spawn(
                async move { drop(port.look(&Asker::of_the_port(&port.server.force())).await) },
            );
        }
        let door = Door::numbered(host, Limits::default(), nth, of);
        for listener in listeners {
            rt.spawn(door.clone().serve(rt.clone(), listener));
        }
        std::future::pending::<()>().await;
    }
}

/// Options of the listeners of its threads, each of which has its own.
#[must_use]
pub fn shared() -> ListenOptions {
    ListenOptions {
        reuse_port: true,
        ..ListenOptions::default()
    }
}

impl Behind for Server {
    /// Statements that run end under the old one.
    fn load(&self, snapshot: &Snapshot) {
        let force = Force {
            variables: snapshot.variables.clone(),
            users: snapshot.clickhouse.clone(),
            ..Force::clone(&self.force())
        };
        self.put(force);
    }

    fn offer(&self, acceptor: &Acceptor) {
        let force = Force {
            acceptor: acceptor.clone(),
            ..Force::clone(&self.force())
        };
        self.put(force);
    }
}

impl Force {
    /// Whether this is the account that only looks whether the server is there.
    pub(crate) fn is_monitor(&self, user: &str) -> bool {
        self.users.named(user).is_none() && user == &*self.variables.mysql_monitor_username
    }
}

/// The port, on one thread.
pub(crate) struct Port {
    pub(crate) server: Server,
    pub(crate) rt: Rt,
}

impl Port {
    /// Looks whether ClickHouse answers; an error is an answer.
    ///
    /// # Errors
    /// ClickHouse does not answer.
    pub(crate) async fn look(&self, asker: &Asker) -> Result<(), Refused> {
        let asked = asker.little(&self.rt, "TabSeparated", "SELECT 1").await;
        let asked = match asked {
            Err(refused) if errors::is_gone(&refused) => Err(refused),
            Ok(_) | Err(_) => Ok(()),
        };
        self.note(asker, asked.as_ref().err());
        asked
    }

    /// Notes whether it was there when it was asked.
    pub(crate) fn note(&self, asker: &Asker, gone: Option<&Refused>) {
        let health = &self.server.health;
        let at = || format!("{}:{}", asker.place.host, asker.place.port);
        match gone {
            None => health.is_up(at),
            Some(why) => health.is_down(at, why),
        }
    }
}

impl Host for Port {
    type Session = Session;

    fn server_version(&self) -> String {
        self.server
            .force()
            .variables
            .mysql_server_version
            .to_string()
    }

    fn acceptor(&self) -> Option<Acceptor> {
        Some(self.server.force().acceptor.clone())
    }

    fn takes_files(&self) -> bool {
        true
    }

    fn entry(&self, user: &str, _: &Address) -> Entry {
        let force = self.server.force();
        if let Some(known) = force.users.named(user) {
            return Entry::of(std::iter::once(&known.password));
        }
        if force.is_monitor(user) {
            return Entry::password(force.variables.mysql_monitor_password.to_string());
        }
        Entry::Nobody
    }

    fn session(self: &Rc<Self>, who: Who) -> Result<Session, Refused> {
        Session::begin(self.clone(), who)
    }
}
