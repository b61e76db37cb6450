//! Scripts on a core: their VMs, the facts of their sessions, and sessions of other cores that are guests here.
//!
//! Cores send each other errands, since a script runs on one core.

use crate::core::Core;
use crate::core::calls::Calls;
use crate::core::roster::Entry;
use bridge::{HookRow, HttpCalls};
use config::User;
use net::Secret;
use script::{Call, Failed, Limits, Scripted, Server, Shared, Vm};
use sql::Lexing;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::caps::Caps;
use wire::connect_attributes::ConnectAttributes;

/// Bytes that the scripts of one `proxy.global` may use on a core.
const MEMORY_MAX: usize = 256 << 20;

/// Lua on this core.
pub(crate) struct Scripting {
    /// One for each `proxy.global`, from the first session on that has such a script: what a script
    /// does to Lua is seen by those alone that share a table with it.
    vms: RefCell<HashMap<Box<str>, Rc<Vm>>>,
    /// The scripts that were compiled.
    of: RefCell<Option<Arc<config::Scripts>>>,
    /// Limit of the lines that scripts write to the log.
    pub(crate) lines: Limit,
    pub(crate) hooks: Hooks,
    pub(crate) guests: Guests,
    /// Values that scripts share over all cores.
    pub(crate) shared: Shared,
    pub(crate) calls: Calls,
    last_connection: Cell<u32>,
}

/// Scripts with rows: those of a LOAD, and as many that were there before.
const NAMED_MAX: usize = 2000;
/// Bytes of an error that are kept.
const ERROR_LEN_MAX: usize = 1000;

/// Costs of hooks on this core.
#[derive(Default)]
pub(crate) struct Hooks {
    /// By the names of their scripts.
    all: RefCell<HashMap<Box<str>, Vec<HookRow>>>,
}

impl Hooks {
    pub(crate) fn count(&self, script: &str, call: Call<'_>, now_s: impl FnOnce() -> u64) {
        let mut all = self.all.borrow_mut();
        if !all.contains_key(script) && all.len() < NAMED_MAX {
            all.insert(script.into(), Vec::new());
        }
        let Some(rows) = all.get_mut(script) else {
            return;
        };
        let at = rows.iter().position(|row| row.hook == call.hook);
        let at = at.unwrap_or_else(|| {
            rows.push(HookRow {
                script: script.into(),
                hook: call.hook,
                calls: 0,
                errors: 0,
                waits: 0,
                sum_us: 0,
                max_us: 0,
                http_calls: 0,
                http_errors: 0,
                last_error: "".into(),
                last_error_at: 0,
                within_10_us: 0,
                within_100_us: 0,
                within_1_ms: 0,
                within_10_ms: 0,
                within_100_ms: 0,
                longer: 0,
                memory_bytes: 0,
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.calls += 1;
        row.waits += call.waits;
        row.http_calls += call.http.0;
        row.http_errors += call.http.1;
        row.sum_us += call.us;
        row.max_us = row.max_us.max(call.us);
        *row.took(call.us) += 1;
        if let Some(error) = call.error {
            let words = error.get(..ERROR_LEN_MAX).unwrap_or(error);
            (row.last_error, row.last_error_at) = (words.into(), now_s());
            row.errors += 1;
        }
    }

    /// All rows; from now on others, if it is so.
    pub(crate) fn rows(&self, reset: bool) -> Vec<HookRow> {
        let mut all = self.all.borrow_mut();
        let rows = all.values().flatten().cloned().collect();
        if reset {
            all.clear();
        }
        rows
    }
}

/// Lines that the scripts of a core may say in a second.
const LINES_MAX: u32 = 1000;

/// A limit of so many in a second.
#[derive(Default)]
pub(crate) struct Limit {
    since: Cell<Option<rt::Instant>>,
    said: Cell<u32>,
}

/// Room for one more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Some,
    /// A new second has begun, and so many were left out in the last one.
    Again {
        left_out: u32,
    },
    None,
}

impl Limit {
    pub(crate) fn take(&self, now: rt::Instant) -> Room {
        let is_old = |since| now - since >= Duration::from_secs(1);
        if self.since.get().is_none_or(is_old) {
            self.since.set(Some(now));
            let left_out = self.said.replace(1).saturating_sub(LINES_MAX);
            return match left_out {
                0 => Room::Some,
                left_out => Room::Again { left_out },
            };
        }
        self.said.set(self.said.get().saturating_add(1));
        match self.said.get() > LINES_MAX {
            true => Room::None,
            false => Room::Some,
        }
    }
}

impl Scripting {
    /// Without a VM yet.
    pub(crate) fn with(shared: Shared, calls: HttpCalls) -> Self {
        Self {
            vms: RefCell::default(),
            of: RefCell::default(),
            lines: Limit::default(),
            hooks: Hooks::default(),
            guests: Guests::default(),
            shared,
            calls: Calls::new(calls),
            last_connection: Cell::default(),
        }
    }

    /// Number of one more connection of a script: no two of a core have the same.
    pub(crate) fn next_connection(&self) -> u32 {
        let next = self.last_connection.get().wrapping_add(1);
        self.last_connection.set(next);
        next
    }

    /// The VM of a script, with these in force.
    pub(crate) fn vm(
        &self,
        scripts: &Arc<config::Scripts>,
        script: &config::Script,
    ) -> Result<Rc<Vm>, Failed> {
        let mut vms = self.vms.borrow_mut();
        let mut of = self.of.borrow_mut();
        if of.as_ref().is_none_or(|of| !Arc::ptr_eq(of, scripts)) {
            // A session that began before may need the VM of a script that is gone by now.
            vms.retain(|name, vm| {
                let is_active = || scripts.active().iter().any(|one| one.globals == *name);
                Rc::strong_count(vm) > 1 || is_active()
            });
            vms.values().for_each(|vm| vm.forget_compiled());
            *of = Some(scripts.clone());
        }
        if let Some(vm) = vms.get(&script.globals) {
            return Ok(vm.clone());
        }
        let limits = Limits {
            memory_max: MEMORY_MAX,
        };
        let vm = Rc::new(Vm::new(limits)?);
        vms.insert(script.globals.clone(), vm.clone());
        Ok(vm)
    }

    /// Costs of hooks, with the memory of their scripts; from now on others, if it is so.
    pub(crate) fn rows(&self, reset: bool) -> Vec<HookRow> {
        let (vms, of) = (self.vms.borrow(), self.of.borrow());
        let scripts = of.as_ref().map_or(&[][..], |of| of.active());
        let used = |script: &str| {
            let found = scripts.iter().find(|one| *one.name == *script);
            let vm = found.and_then(|one| vms.get(&one.globals));
            vm.map_or(0, |vm| vm.used() as u64)
        };
        let mut rows = self.hooks.rows(reset);
        for row in &mut rows {
            row.memory_bytes = used(&row.script);
        }
        rows
    }
}

/// Words of a client about itself, before anybody has checked them.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) user: String,
    pub(crate) schema: String,
    /// Bytes that scripts see as its password: the native scramble, else some that mean nothing.
    pub(crate) stand_in: Vec<u8>,
    /// Plugin that it means to prove its password by.
    pub(crate) auth_plugin: String,
}

/// Facts that a script asks its session for.
pub(crate) struct Facts {
    pub(crate) core: Rc<Core>,
    /// None where the session is another core's, or not in yet: nobody tells us of a KILL.
    pub(crate) entry: RefCell<Option<Rc<Entry>>>,
    pub(crate) id: u32,
    pub(crate) client: (String, u16),
    owner: RefCell<Rc<Owner>>,
    pub(crate) schema: RefCell<Rc<str>>,
    pub(crate) lexing: Cell<Lexing>,
    /// The user that a client says it is, before anybody has checked that.
    pub(crate) claimed: RefCell<Option<String>>,
    /// The plugin that it has named then.
    pub(crate) auth_plugin: RefCell<Option<String>>,
    /// Connections at hand, where nobody could open more.
    pub(crate) own_pools: RefCell<Option<Rc<OwnPools>>>,
}

impl Facts {
    /// Facts of this session, on this core.
    pub(crate) fn new(core: Rc<Core>, visitor: &Visitor, entry: Option<Rc<Entry>>) -> Self {
        Self {
            core,
            entry: RefCell::new(entry),
            id: visitor.id,
            client: visitor.client.clone(),
            owner: RefCell::new(Rc::new(visitor.owner.clone())),
            schema: RefCell::new((&*visitor.schema).into()),
            lexing: Cell::default(),
            claimed: RefCell::default(),
            auth_plugin: RefCell::default(),
            own_pools: RefCell::default(),
        }
    }

    /// A client says who it is, and nobody has checked that: scripts see it, and get no connections
    /// for it.
    pub(crate) fn claims(&self, claim: &Claim) {
        self.claimed.replace(Some(claim.user.clone()));
        self.auth_plugin.replace(Some(claim.auth_plugin.clone()));
        self.schema.replace((&*claim.schema).into());
        let owner = Owner {
            stand_in: claim.stand_in.clone(),
            ..(*self.owner()).clone()
        };
        self.owner.replace(Rc::new(owner));
    }

    /// The session is this owner's.
    pub(crate) fn belongs_to(&self, owner: &Owner) {
        self.claimed.replace(None);
        self.owner.replace(Rc::new(owner.clone()));
    }

    /// Whose session it is.
    pub(crate) fn owner(&self) -> Rc<Owner> {
        self.owner.borrow().clone()
    }

    /// Resolves when somebody ends the session, or its statement.
    pub(crate) async fn told(&self) {
        let entry = self.entry.borrow().clone();
        match entry {
            Some(entry) => entry.told(false).await,
            None => std::future::pending().await,
        }
    }
}

/// Work that another core shall do.
pub(crate) struct Errand(pub(crate) Work);

type Work = Box<dyn FnOnce(&Rc<Core>) + Send>;

impl std::fmt::Debug for Errand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Errand")
    }
}

impl Errand {
    pub(crate) fn run(self, core: &Rc<Core>) {
        (self.0)(core);
    }
}

/// A core that a guest comes from, and its number there.
pub(crate) type Key = (u32, u64);

/// Sessions of other cores whose scripts run here.
#[derive(Default)]
pub(crate) struct Guests {
    pub(crate) all: RefCell<HashMap<Key, Rc<Guest>>>,
    pub(crate) last: Cell<u64>,
}

pub(crate) struct Guest {
    pub(crate) runs: Scripted,
    pub(crate) facts: Rc<Facts>,
}

/// A session as its script sees it, on its way to another core.
pub(crate) struct Visitor {
    pub(crate) id: u32,
    /// Address of the client, or the place that it came from and 0.
    pub(crate) client: (String, u16),
    pub(crate) schema: String,
    pub(crate) owner: Owner,
}

/// Whose connections they are.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) user: Arc<User>,
    pub(crate) secret: Secret,
    pub(crate) caps: Caps,
    pub(crate) collation: u16,
    pub(crate) attributes: ConnectAttributes,
    /// Bytes that scripts get in the place of what the client proved its password with; none where
    /// the user has no password.
    pub(crate) stand_in: Vec<u8>,
    /// Address that the client came to.
    pub(crate) local: (Box<str>, u16),
    /// Whether they are those of an operator at the console.
    pub(crate) is_at_console: bool,
}

/// A server in a hostgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) hostgroup: u32,
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
}

impl At {
    pub(crate) fn is(&self, hostgroup: u32, host: &str, port: u16) -> bool {
        self.hostgroup == hostgroup && *self.host == *host && self.port == port
    }
}

impl From<&Server> for At {
    fn from(server: &Server) -> Self {
        Self {
            hostgroup: server.hostgroup,
            host: server.host.as_str().into(),
            port: server.port,
        }
    }
}

/// Connections of a session whose login was relayed: no others can be opened for it, wherever its
/// script runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnPools {
    /// Server at which it has logged in.
    pub(crate) current: Option<At>,
    /// Connections at hand, by server: those of its user, and those of anybody.
    pub(crate) at_hand: Vec<(At, u32, u32)>,
}
