//! State that all sessions of the admin port share.

use crate::aside::Aside;
use crate::cluster::Cluster;
use crate::cores::Cores;
use crate::engine::{Engine, View};
use crate::file;
use crate::hooks::Hooks;
use crate::kept::Keeper;
use crate::open::Admin;
use crate::sharding::records::Moves;
use crate::taken::Kept;
use bridge::ToCore;
use config::Snapshot;
use net::tls::Acceptor;
use rt::local::Notify;
use rt::mailbox::Sender;
use rt::{Address, Instant, Rt};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
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
    pub(crate) was_read_only: Cell<bool>,
    /// Partitions that move.
    pub(crate) moves: Moves,
    /// Session that has inserted last, and the number of its row.
    pub(crate) inserted: Cell<(u32, i64)>,
    loading: Cell<bool>,
    loaded: Notify,
}

impl Shared {
    /// Makes of what the admin side begins with what it serves by.
    pub(crate) fn new(admin: Admin, rt: Rt, cores: Vec<Sender<ToCore>>, hooks: Hooks) -> Self {
        let read_only = admin.snapshot.variables.admin_read_only;
        let keeper = admin
            .keeps_in
            .as_deref()
            .map(|datadir| Keeper::begin(datadir, &admin.snapshot));
        let keeper = keeper.transpose().unwrap_or_else(|error| {
            (hooks.log)(&format!(
                "what is in force is not kept for a crash: {error}"
            ));
            None
        });
        let shared = Self {
            started: rt.now(),
            cluster: Cluster::begin(&rt, &admin.engine, admin.uuid),
            cores: Cores::new(
                rt.clone(),
                cores,
                &admin.snapshot,
                admin.copies,
                (Kept::counted_by(admin.undelivered), hooks.earlier.clone()),
            ),
            aside: Aside::Here,
            rt,
            engine: RefCell::new(admin.engine),
            stats: RefCell::new(admin.stats),
            snapshot: RefCell::new(admin.snapshot),
            hooks,
            config: admin.config,
            acceptor: RefCell::new(admin.acceptor),
            clients: Cell::new(if admin.closed {
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
            inserted: Cell::default(),
            loading: Cell::new(false),
            loaded: Notify::new(),
        };
        drop(shared.engine.borrow_mut().set_read_only(read_only));
        shared
    }

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

    /// Seconds since 1970.
    pub(crate) fn now_s(&self) -> u64 {
        self.rt.wall_us() / 1_000_000
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
