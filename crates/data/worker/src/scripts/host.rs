//! What a script finds around it: the VM of its core, and its session's facts, connections and
//! lines in the log.

use crate::core::Core;
use crate::core::roster::Entry;
use crate::scripts::calls::Calls;
use crate::scripts::connections::{Connections, Owner};
use crate::scripts::home::{Guests, Visitor};
use crate::scripts::servers::{self, At, OwnPools};
use bridge::{HookRow, HttpCalls};
use config::Setting;
use script::{
    Ask, Call, Connect, Failed, Host, Keep, Kept, Limits, Reading, Reply, Server, Shared, Vm,
};
use sql::Lexing;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that the scripts of a core may use.
const MEMORY_MAX: usize = 256 << 20;
/// So long a script may sleep at once.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Lua on this core, from the first session on that has a script.
pub(crate) struct Scripting {
    vm: OnceCell<Rc<Vm>>,
    /// The scripts that were compiled.
    of: RefCell<Option<Arc<config::Scripts>>>,
    /// Limit of the lines that scripts write to the log.
    lines: Limit,
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
    fn count(&self, script: &str, call: Call<'_>, now_s: impl FnOnce() -> u64) {
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
struct Limit {
    since: Cell<Option<rt::Instant>>,
    said: Cell<u32>,
}

/// Room for one more.
#[derive(Debug, PartialEq, Eq)]
enum Room {
    Some,
    /// A new second has begun, and so many were left out in the last one.
    Again {
        left_out: u32,
    },
    None,
}

impl Limit {
    fn take(&self, now: rt::Instant) -> Room {
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
            vm: OnceCell::default(),
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

    /// The VM, with these scripts in force.
    pub(crate) fn vm(&self, scripts: &Arc<config::Scripts>) -> Result<Rc<Vm>, Failed> {
        let vm = match self.vm.get() {
            Some(vm) => vm.clone(),
            None => {
                let limits = Limits {
                    memory_max: MEMORY_MAX,
                };
                let vm = Rc::new(Vm::new(limits)?);
                self.vm.get_or_init(|| vm).clone()
            }
        };
        let mut of = self.of.borrow_mut();
        if of.as_ref().is_none_or(|of| !Arc::ptr_eq(of, scripts)) {
            vm.forget_compiled();
            *of = Some(scripts.clone());
        }
        Ok(vm)
    }
}

/// Words of a client about itself, before anybody has checked them.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) user: String,
    pub(crate) schema: String,
    /// Bytes that scripts see as its password: the native scramble, else some that mean nothing.
    pub(crate) stand_in: Vec<u8>,
}

/// Facts that a script asks its session for.
pub(crate) struct Facts {
    pub(crate) core: Rc<Core>,
    /// None where the session is another core's, or not in yet: nobody tells us of a KILL.
    pub(crate) entry: RefCell<Option<Rc<Entry>>>,
    id: u32,
    client: (String, u16),
    owner: RefCell<Rc<Owner>>,
    pub(crate) schema: RefCell<Rc<str>>,
    pub(crate) lexing: Cell<Lexing>,
    /// The user that a client says it is, before anybody has checked that.
    claimed: RefCell<Option<String>>,
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
            own_pools: RefCell::default(),
        }
    }

    /// A client says who it is, and nobody has checked that: scripts see it, and get no connections
    /// for it.
    pub(crate) fn claims(&self, claim: &Claim) {
        self.claimed.replace(Some(claim.user.clone()));
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
    fn owner(&self) -> Rc<Owner> {
        self.owner.borrow().clone()
    }

    /// Resolves when somebody ends the session, or its statement.
    async fn told(&self) {
        let entry = self.entry.borrow().clone();
        match entry {
            Some(entry) => entry.told(false).await,
            None => std::future::pending().await,
        }
    }
}

/// One script's view of its session, with the connections that it has of its own.
pub(crate) struct View {
    script: Arc<config::Script>,
    facts: Rc<Facts>,
    connections: Connections,
}

impl View {
    /// One script's.
    pub(crate) fn new(facts: Rc<Facts>, script: Arc<config::Script>) -> Self {
        Self {
            connections: Connections::new(facts.core.clone(), script.result_len_max),
            script,
            facts,
        }
    }
}

impl Host for View {
    fn now_us(&self) -> u64 {
        self.facts.core.rt.precise_now().as_ns() / 1000
    }

    fn wall_us(&self) -> u64 {
        self.facts.core.rt.wall_us()
    }

    fn log(&self, line: &str) {
        let scripting = &self.facts.core.scripting;
        match scripting.lines.take(self.facts.core.rt.now()) {
            Room::Some => self.facts.core.note(&format!("script: {line}")),
            Room::Again { left_out } => self.facts.core.note(&format!(
                "script: {line} ({left_out} lines of scripts before it were left out)"
            )),
            Room::None => {}
        }
    }

    fn append(&self, file: &str, text: &[u8]) {
        self.facts.core.append(file, text);
    }

    fn ran(&self, call: Call<'_>) {
        let core = &self.facts.core;
        core.scripting
            .hooks
            .count(&self.script.name, call, || core.rt.wall_us() / 1_000_000);
    }

    fn ask<'a>(&'a self, ask: Ask) -> Pin<Box<dyn Future<Output = Reply> + 'a>> {
        let (facts, core) = (&*self.facts, &self.facts.core);
        Box::pin(async move {
            match ask {
                Ask::Sleep(us) => {
                    let most = Duration::from_micros(us).min(SLEEP_MAX);
                    let _time_or_told =
                        rt::select(core.rt.sleep(most), Box::pin(facts.told())).await;
                    Reply::Slept
                }
                Ask::Connect(wish) => {
                    let owner = facts.owner();
                    self.connections.connect(&owner, facts.id, &wish).await
                }
                Ask::Http(wish) => {
                    let calls = &core.scripting.calls;
                    calls.make(&self.script, wish, facts.told()).await
                }
                Ask::Query(sql) => {
                    let wish = Connect {
                        schema: facts.schema.borrow().to_string(),
                        ..Connect::default()
                    };
                    let owner = facts.owner();
                    self.connections
                        .query(&owner, facts.id, (&wish, &sql), facts.told())
                        .await
                }
                Ask::Execute { connection, sql } => {
                    self.connections
                        .execute(connection, &sql, facts.told())
                        .await
                }
            }
        })
    }

    fn close(&self, connection: u32) {
        self.connections.close(connection);
    }

    fn stand_in(&self) -> Vec<u8> {
        self.facts.owner().stand_in.clone()
    }

    fn servers(&self) -> Vec<Server> {
        let own = self.facts.own_pools.borrow().clone();
        let (core, owner) = (&self.facts.core, self.facts.owner());
        servers::servers(core, &owner, &self.script.globals, own.as_deref())
    }

    fn current(&self) -> usize {
        let own = self.facts.own_pools.borrow().clone();
        let servers = self.servers();
        match own {
            None if self.facts.owner().secret.is_relayed() => 0,
            None => servers.len().min(1),
            Some(own) => {
                let at = |server: &Server| own.current == Some(At::from(server));
                servers.iter().position(at).map_or(0, |at| at + 1)
            }
        }
    }

    fn noted(&self, server: &Server, field: &str) -> Option<Kept> {
        servers::noted(&self.facts.core, &self.script.globals, server, field)
    }

    fn note(&self, server: &Server, field: &str, value: Option<Kept>) -> Result<(), String> {
        let globals = &self.script.globals;
        servers::note(&self.facts.core, globals, (server, field), value)
    }

    fn user(&self) -> String {
        let claimed = self.facts.claimed.borrow().clone();
        claimed.unwrap_or_else(|| self.facts.owner().user.username.to_string())
    }

    fn schema(&self) -> String {
        self.facts.schema.borrow().to_string()
    }

    fn thread(&self) -> u32 {
        self.facts.id
    }

    fn version(&self) -> u32 {
        let epoch = self.facts.core.epoch();
        script::version(&epoch.snapshot.variables.mysql_server_version)
    }

    fn reading(&self) -> Reading {
        let epoch = self.facts.core.epoch();
        Reading {
            digest: epoch.digest.clone(),
            lexing: self.facts.lexing.get(),
        }
    }

    fn caps(&self) -> wire::caps::Caps {
        self.facts.owner().caps
    }

    fn charset(&self) -> Option<&'static str> {
        script::charset(self.facts.owner().collation)
    }

    fn setting(&self, name: &str) -> Option<Kept> {
        let found = self.script.settings.iter().find(|(of, _)| **of == *name);
        found.map(|(_, setting)| match setting {
            Setting::Number(number) => Kept::Number(number.0),
            Setting::Text(text) => Kept::Text(text.as_bytes().to_vec()),
            Setting::Flag(flag) => Kept::Flag(*flag),
        })
    }

    fn shared(&self, key: &[u8], what: Keep, ttl_us: Option<u64>) -> Result<Option<Kept>, String> {
        let shared = &self.facts.core.scripting.shared;
        shared.keep((&self.script.globals, key), what, (self.now_us(), ttl_us))
    }

    fn ends(&self) -> [(String, u16); 2] {
        let owner = self.facts.owner();
        let local = &owner.local;
        [self.facts.client.clone(), (local.0.to_string(), local.1)]
    }
}
