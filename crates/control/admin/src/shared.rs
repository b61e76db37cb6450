//! What all sessions of the admin port share, and how the port is served.

use crate::aside::Aside;
use crate::automatic::Automatic;
use crate::cluster::Cluster;
use crate::cores::Cores;
use crate::engine::{Engine, View};
use crate::hooks::Hooks;
use crate::kept::Keeper;
use crate::moves::Moves;
use crate::open::Admin;
use crate::session::Session;
use crate::taken::Kept;
use crate::{access, desk, file};
use bridge::ToCore;
use config::Snapshot;
use door::{Door, Entry, Host, Limits, Refused, Who};
use net::tls::Acceptor;
use rt::local::Notify;
use rt::mailbox::Sender;
use rt::{Address, Instant, Listener, Rt};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether the cores accept clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    Welcome,
    /// Some cores could not be told of the latest PAUSE or RESUME.
    PartlyWelcome,
    Paused,
    /// No clients at all: `PROXYSQL STOP` or `--no-start`.
    Stopped,
}

/// Shared by all sessions, on the one thread of the admin port.
pub(crate) struct Shared {
    pub(crate) rt: Rt,
    pub(crate) engine: RefCell<Engine>,
    pub(crate) stats: RefCell<Engine>,
    pub(crate) snapshot: RefCell<Snapshot>,
    pub(crate) cores: Cores,
    pub(crate) aside: Aside,
    pub(crate) hooks: Hooks,
    pub(crate) config: Option<PathBuf>,
    pub(crate) acceptor: RefCell<Option<Acceptor>>,
    pub(crate) started: Instant,
    pub(crate) clients: Cell<Clients>,
    /// Where this process listens for operators: a LOAD changes only where the next will.
    pub(crate) open_at: Vec<Address>,
    /// Which `runtime_` tables are filled already, for which generation.
    pub(crate) filled: RefCell<HashMap<String, u64>>,
    /// The proxies that share the configuration.
    pub(crate) cluster: Cluster,
    /// Keeps what is in force for the case of a crash.
    pub(crate) keeper: Keeper,
    /// Another process is about to take over, or has: what is changed here would be lost.
    pub(crate) handed_over: Cell<bool>,
    /// Whether operators could only read before that.
    was_read_only: Cell<bool>,
    /// Partitions that move.
    pub(crate) moves: Moves,
    /// Tables whose partitions are made by themselves.
    pub(crate) automatic: Automatic,
    loading: Cell<bool>,
    loaded: Notify,
}

impl Admin {
    /// Serves the admin port until it is dropped: run it on an executor thread of its own.
    pub async fn serve(
        mut self,
        rt: Rt,
        listeners: Vec<Listener>,
        cores: Vec<Sender<ToCore>>,
        hooks: Hooks,
    ) {
        let (letters, wanted) = (self.letters.take(), self.wanted.take());
        let mut shared = self.share(rt.clone(), cores, hooks);
        match Aside::thread() {
            Ok(aside) => shared.aside = aside,
            Err(error) => (shared.hooks.log)(&format!(
                "long work on the admin port holds up its operators: no thread for it: {error}"
            )),
        }
        shared.open_at = listeners.iter().map(Listener::local).collect();
        let shared = Rc::new(shared);
        rt.spawn(shared.clone().housekeeping());
        rt.spawn(shared.clone().keep_company());
        rt.spawn(shared.clone().keep_fleet());
        rt.spawn(shared.clone().keep_shares());
        rt.spawn(shared.clone().tell_health());
        rt.spawn(shared.clone().keep_moves());
        if let Some(letters) = letters {
            rt.spawn(desk::serve(shared.clone(), letters));
        }
        if let Some(wanted) = wanted {
            rt.spawn(shared.clone().make_partitions(wanted));
        }
        let door = Door::new(Rc::new(Port(shared)), Limits::default());
        for listener in listeners {
            rt.spawn(door.clone().serve(rt.clone(), listener));
        }
        std::future::pending::<()>().await;
    }

    pub(crate) fn share(self, rt: Rt, cores: Vec<Sender<ToCore>>, hooks: Hooks) -> Shared {
        let read_only = self.snapshot.variables.admin_read_only;
        let keeper = self
            .keeps_in
            .as_deref()
            .map(|datadir| Keeper::begin(datadir, &self.snapshot));
        let keeper = keeper.transpose().unwrap_or_else(|error| {
            (hooks.log)(&format!(
                "what is in force is not kept for a crash: {error}"
            ));
            None
        });
        let shared = Shared {
            started: rt.now(),
            cluster: Cluster::begin(&rt, &self.engine, self.uuid),
            cores: Cores::new(
                rt.clone(),
                cores,
                &self.snapshot,
                self.copies,
                Kept::counted_by(self.undelivered),
            ),
            aside: Aside::Here,
            rt,
            engine: RefCell::new(self.engine),
            stats: RefCell::new(self.stats),
            snapshot: RefCell::new(self.snapshot),
            hooks,
            config: self.config,
            acceptor: RefCell::new(self.acceptor),
            clients: Cell::new(if self.closed {
                Clients::Stopped
            } else {
                Clients::Welcome
            }),
            open_at: Vec::new(),
            filled: RefCell::default(),
            keeper: keeper.unwrap_or_default(),
            handed_over: Cell::new(false),
            was_read_only: Cell::new(false),
            moves: Moves::default(),
            automatic: Automatic::default(),
            loading: Cell::new(false),
            loaded: Notify::new(),
        };
        drop(shared.engine.borrow_mut().set_read_only(read_only));
        shared
    }
}

impl Shared {
    pub(crate) fn engine(&self, view: View) -> &RefCell<Engine> {
        match view {
            View::Admin => &self.engine,
            View::Stats => &self.stats,
        }
    }

    /// Counts an answer for as long as it waits to be read: those of statistics users have a bound
    /// together.
    pub(crate) fn hold(&self, view: View, bytes: usize) -> Held {
        let held = self.engine(view).borrow().held().clone();
        held.fetch_add(bytes, Ordering::Relaxed);
        Held { held, bytes }
    }

    /// Changes of what is in force happen one after the other: each builds on the one before.
    pub(crate) async fn alone(&self) -> Alone<'_> {
        while self.loading.replace(true) {
            self.loaded.wait().await;
        }
        Alone(self)
    }

    /// Another process begins to take over, or has failed to. Answers when what is in force is kept
    /// for it.
    pub(crate) async fn hand_over(&self, begins: bool, reply: bridge::Reply<()>) {
        self.stop_moves(begins).await;
        let _alone = self.alone().await;
        let mut engine = self.engine.borrow_mut();
        if begins && !self.handed_over.get() {
            self.was_read_only.set(engine.is_read_only());
        }
        self.handed_over.set(begins);
        drop(engine.set_read_only(begins || self.was_read_only.get()));
        drop(engine);
        self.keeper.settle(reply);
    }

    /// The configuration file, read anew.
    pub(crate) fn config_file(&self) -> Result<file::File, String> {
        let path = self
            .config
            .as_ref()
            .ok_or("there is no configuration file")?;
        file::File::read(path).map_err(|refusal| refusal.to_string())
    }
}

/// An answer that waits to be read.
pub(crate) struct Held {
    held: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// For as long as it lives, nobody else changes what is in force.
pub(crate) struct Alone<'s>(&'s Shared);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.loading.set(false);
        self.0.loaded.notify_all();
    }
}

/// The port as its door sees it.
pub(crate) struct Port(pub(crate) Rc<Shared>);

impl Host for Port {
    type Session = Session;

    fn server_version(&self) -> String {
        self.0
            .snapshot
            .borrow()
            .variables
            .mysql_server_version
            .to_string()
    }

    fn acceptor(&self) -> Option<Acceptor> {
        let wanted = self.0.snapshot.borrow().variables.mysql_have_ssl;
        if wanted {
            self.0.acceptor.borrow().clone()
        } else {
            None
        }
    }

    fn prefix(&self) -> &'static str {
        "ProxySQL Error: "
    }

    fn entry(&self, user: &str, peer: &Address) -> Entry {
        access::entry(&self.0.snapshot.borrow().variables, user, peer)
    }

    fn session(self: &Rc<Self>, who: Who) -> Result<Session, Refused> {
        let view = access::view(&self.0.snapshot.borrow().variables, &who.user);
        Ok(Session::new(self.0.clone(), who, view))
    }
}
