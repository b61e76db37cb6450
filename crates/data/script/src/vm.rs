//! The VM of a core, and the environments of its sessions.

use crate::ask::{Ask, Reply};
use crate::meaning::Reading;
use crate::outcome::{Outcome, Row};
use crate::response::{Bad, Response};
use crate::shared::{Keep, Kept};
use crate::text::{Level, hooks_of_the_greeting, may_read_results, may_wait};
use lua::lint::Known;
use lua::required::Module;
use mlua::debug::{Debug, DebugEvent};
use mlua::{
    FromLuaMulti, Function, HookTriggers, IntoLuaMulti, Lua, MultiValue, Table, Value, VmState,
};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use wire::caps::Caps;
use wire::command::COM_STMT_EXECUTE;

/// Instructions between two looks at the clock.
const STEPS: u32 = 100_000;
/// Looks at the clock that a millisecond of a hook has at most: a clock that stands still ends it,
/// too. No machine comes to so many.
const LOOKS_PER_MS: u64 = 100;
/// Functions of a stack that are looked at.
const STACK_MAX: usize = 64;
/// Flags of an execution that ask for a cursor.
const CURSORS: u8 = 7;
/// Queries that one command may queue.
const QUEUED_MAX: usize = 100_000;

/// How much scripts may use.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all scripts of a core.
    pub memory_max: usize,
}

/// State of a server, as scripts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Nobody has a connection to it.
    #[default]
    Unknown,
    /// The proxy is connected to it.
    Up,
    /// New work does not go there, or a script has taken it out.
    Down,
}

/// A server, as `proxy.backends` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// Hostgroup.
    pub hostgroup: u32,
    /// Host, or path of a socket.
    pub host: String,
    /// Port; 0 for a socket.
    pub port: u16,
    /// Whether the server is of a hostgroup for reads.
    pub is_reader: bool,
    /// State.
    pub standing: Standing,
    /// Sessions that have chosen it, or are on it.
    pub clients: u32,
    /// Connections that are at hand for the session's user.
    pub idle_own: u32,
    /// Connections that are idle for anybody.
    pub idle_any: u32,
}

impl Server {
    /// Key of a note about it, among the values that scripts share.
    #[must_use]
    pub fn note(&self, field: &str) -> Vec<u8> {
        format!("\0{field} {}:{}", self.host, self.port).into_bytes()
    }
}

/// A script's choice of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Chosen {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// No server, until it names one.
    Nowhere,
    /// This one.
    At(Server),
}

/// Wishes of a script about its session, beside those for a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The connection is closed behind the answer.
    pub closes: bool,
    /// Server of what runs next.
    pub chosen: Chosen,
}

/// The session that a hook runs for. What is asked here is asked while a hook runs.
pub trait Host {
    /// Microseconds of a clock that goes forward.
    fn now_us(&self) -> u64;
    /// Microseconds since 1970.
    fn wall_us(&self) -> u64;
    /// A line for the log, of `print` or of a mistake.
    fn log(&self, line: &str);
    /// Text that is appended to a log of the script's own.
    fn append(&self, file: &str, text: &[u8]);
    /// A call of a hook is over.
    fn ran(&self, call: Call<'_>);
    /// Does what a hook waits for.
    fn ask<'a>(&'a self, ask: Ask) -> Pin<Box<dyn Future<Output = Reply> + 'a>>;
    /// Gives a connection of the script's back, if it is one of this session's.
    fn close(&self, connection: u32);
    /// Bytes that stand in for what the client proved its password with, or none without one.
    fn stand_in(&self) -> Vec<u8>;
    /// Servers, those that are written to first.
    fn servers(&self) -> Vec<Server>;
    /// Place of the server that the session is on among those, from 1; 0 for none.
    fn current(&self) -> usize;
    /// A note that scripts have made of a server, by the name of the field.
    fn noted(&self, server: &Server, field: &str) -> Option<Kept>;
    /// Makes such a note, or takes it away.
    ///
    /// # Errors
    /// Words for the script's author: there is no room.
    fn note(&self, server: &Server, field: &str, value: Option<Kept>) -> Result<(), String>;
    /// The client's user.
    fn user(&self) -> String;
    /// The current schema, or empty.
    fn schema(&self) -> String;
    /// The session's number.
    fn thread(&self) -> u32;
    /// Version of the servers, such as 50114.
    fn version(&self) -> u32;
    /// Address of the client, and the one that it came to: host or path, and port, 0 for none.
    fn ends(&self) -> [(String, u16); 2];
    /// How the session's texts are read.
    fn reading(&self) -> Reading;
    /// Returns the capabilities that the client agreed on.
    fn caps(&self) -> Caps;
    /// Character set of the connections of [`Ask::Query`]; none where a backslash may be a part of a
    /// character.
    fn charset(&self) -> Option<&'static str>;
    /// A setting of the script's row.
    fn setting(&self, name: &str) -> Option<Kept>;
    /// Does this to a value that the script's sessions share. A new one lasts for so many
    /// microseconds, or for ever.
    ///
    /// # Errors
    /// Words for the script's author.
    fn shared(&self, key: &[u8], what: Keep, ttl_us: Option<u64>) -> Result<Option<Kept>, String>;
}

/// A call of a hook, for the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its name; `main` is the main chunk.
    pub hook: &'static str,
    /// Microseconds that it ran.
    pub us: u64,
    /// Times that it waited.
    pub waits: u64,
    /// HTTP calls that it has made, and those of them that had no answer.
    pub http: (u64, u64),
    /// Why it failed.
    pub error: Option<&'a str>,
}

/// A script's wish for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// As if there were no script; at this server, if the script has chosen one.
    Forward(Chosen),
    /// This is the answer; what is queued runs behind it.
    Answer(Response),
    /// Ask [`Scripted::next`].
    Queue,
}

/// A script's wish for the answer to a queued query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The client gets it.
    PassOn,
    /// The client gets this instead.
    Instead(Response),
    /// The client gets nothing of it.
    Ignore,
}

/// A script's wish for a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtLogin {
    /// Nothing: it goes on.
    PassOn,
    /// The client gets this instead of an answer.
    Instead(Response),
    /// Payload of the login packet that goes to the server in its place.
    Login(Vec<u8>),
}

/// A queued query.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    id: f64,
    /// A command with its first byte, without a packet's header.
    pub packet: Vec<u8>,
    /// Its answer is to be collected.
    pub is_collected: bool,
    /// Where it goes, if the script says so.
    pub route: Route,
    /// Server that it goes to, if the script has chosen one.
    pub chosen: Chosen,
    /// The script looks at numbers of its answer only, and neither replaces nor drops it.
    pub is_unread: bool,
    /// The script sees rows of its answer as they come: [`crate::Passage`].
    pub is_streamed: bool,
}

/// Facts of a server's greeting.
#[derive(Debug, Clone)]
pub struct Greeted {
    /// Challenge for the proof.
    pub challenge: Vec<u8>,
    /// Version of the server, such as 50114.
    pub version: u32,
    /// Number of the connection there.
    pub thread: u32,
    /// Address of the server, `host:port`.
    pub server: String,
}

/// A script's word on a statement's way; it beats rules and hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Route {
    /// Hostgroup.
    pub hostgroup: Option<u32>,
    /// Milliseconds that its result may be had from the cache; 0 for none.
    pub cache_ttl_ms: Option<u32>,
}

/// A script that has failed: where, and why, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Failed {
    pub(crate) fn of(hook: &str, error: &mlua::Error) -> Self {
        let words = match error {
            mlua::Error::CallbackError { cause, .. } => cause.to_string(),
            error => error.to_string(),
        };
        let first = words.lines().next().unwrap_or_default();
        let first = ["runtime error: ", "syntax error: ", "memory error: "]
            .iter()
            .find_map(|kind| first.strip_prefix(kind))
            .unwrap_or(first);
        Self(format!("({hook}) {first}"))
    }
}

/// Compiles a script, without running it: what its author should know, or why it cannot run.
/// `chunk` names it in messages.
///
/// # Errors
/// Lua's words, with the line.
pub fn check(chunk: &str, text: &str) -> Result<Vec<String>, String> {
    let limits = Limits {
        memory_max: 64 << 20,
    };
    let vm = Vm::new(limits).map_err(|failed| failed.0)?;
    vm.check(chunk, text).map_err(|failed| failed.0)?;
    let never = hooks_of_the_greeting(text);
    let told = |hook| {
        format!(
            "has {hook}(), which is called only where logins are relayed (mysql-relay_logins), and for a script that serves all users"
        )
    };
    Ok(never.into_iter().map(told).collect())
}

/// Facts that a hook which runs now may ask.
#[derive(Default)]
pub(crate) struct Now {
    host: RefCell<Option<Rc<dyn Host>>>,
    servers: RefCell<Option<Vec<Server>>>,
    outcome: RefCell<Option<Outcome>>,
    /// Number of the outcome: a script may keep what it looked at, and look again too late.
    serial: Cell<u32>,
    last_serial: Cell<u32>,
    until_us: Cell<u64>,
    /// Looks at the clock that are left in this turn.
    looks: Cell<u64>,
}

impl Now {
    /// The session whose hook runs.
    pub(crate) fn host(&self) -> Option<Rc<dyn Host>> {
        self.host.borrow().clone()
    }

    /// Looks at the answer that the hook looks at; at an empty one without any.
    pub(crate) fn outcome<R>(&self, looks: impl FnOnce(&Outcome) -> R) -> R {
        match self.outcome.borrow().as_ref() {
            Some(outcome) => looks(outcome),
            None => looks(&Outcome::default()),
        }
    }

    /// Looks at one of several results, from 1; without a number at the answer as a whole.
    pub(crate) fn part<R: Default>(
        &self,
        part: Option<usize>,
        looks: impl FnOnce(&Outcome) -> R,
    ) -> R {
        let outcome = self.outcome.borrow();
        let part = outcome.as_ref().and_then(|one| part_of(one, part));
        part.map(looks).unwrap_or_default()
    }

    /// Whether the time of the hook that runs is over.
    fn is_over(&self) -> bool {
        let host = self.host.borrow();
        let is_late = |host: &Rc<dyn Host>| host.now_us() > self.until_us.get();
        host.as_ref()
            .is_some_and(|host| self.looks.get() == 0 || is_late(host))
    }

    /// A number of steps was done. Whether the time of the hook is over.
    fn looks_up(&self) -> bool {
        self.looks.set(self.looks.get().saturating_sub(1));
        self.is_over()
    }
}

/// Lines of scripts that were run, by the file.
#[derive(Debug, Default)]
pub(crate) struct Lines(RefCell<BTreeMap<String, BTreeSet<u32>>>);

impl Lines {
    fn ran(&self, debug: &Debug<'_>) {
        let source = debug.source();
        let path = source
            .source
            .as_deref()
            .and_then(|source| source.strip_prefix('@'));
        let line = debug
            .current_line()
            .and_then(|line| u32::try_from(line).ok());
        if let (Some(path), Some(line)) = (path, line) {
            let mut all = self.0.borrow_mut();
            match all.get_mut(path) {
                Some(lines) => drop(lines.insert(line)),
                None => drop(all.insert(path.to_owned(), [line].into())),
            }
        }
    }

    /// Whether a line of this file was run.
    pub(crate) fn has(&self, path: &str, line: u32) -> bool {
        let all = self.0.borrow();
        all.get(path).is_some_and(|lines| lines.contains(&line))
    }
}

/// A script's text, and what it requires.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// Its name in messages.
    pub chunk: &'a str,
    /// Lua.
    pub text: &'a Arc<str>,
    /// Files beside it that it may require.
    pub modules: &'a [Module],
}

/// A script on this core, for all of its sessions.
struct Compiled {
    of: Arc<str>,
    main: Function,
    /// Modules: those that are loaded, and the texts of its own.
    library: Table,
}

/// Lua, on one core.
pub struct Vm {
    lua: Lua,
    session: Table,
    /// Those of its functions that were called.
    known: RefCell<Vec<(&'static str, Function)>>,
    now: Rc<Now>,
    /// Scripts that were compiled, by their texts.
    compiled: RefCell<Vec<Compiled>>,
}

impl fmt::Debug for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vm({} bytes)", self.lua.used_memory())
    }
}

impl Vm {
    /// An empty one.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(limits: Limits) -> Result<Self, Failed> {
        Self::made(limits, None).map_err(|error| Failed::of("start", &error))
    }

    /// One that tells which lines of scripts it has run.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn watched(limits: Limits, lines: Rc<Lines>) -> Result<Self, Failed> {
        Self::made(limits, Some(lines)).map_err(|error| Failed::of("start", &error))
    }

    fn made(limits: Limits, lines: Option<Rc<Lines>>) -> Result<Self, mlua::Error> {
        let lua = Lua::new();
        let now = Rc::new(Now::default());
        if lines.is_some() {
            // Compiled code has no lines.
            lua.load("jit.off()").exec()?;
        }
        guard(&lua, &now, lines)?;
        tame(&lua, &now)?;
        let of = now.clone();
        crate::patterns::put_in(&lua, Rc::new(move || of.is_over()))?;
        let native = natives(&lua, &now)?;
        let session: Table = lua
            .load(include_str!("proxy.lua"))
            .set_name("=proxy")
            .call(native)?;
        lua.set_memory_limit(limits.memory_max)?;
        Ok(Self {
            lua,
            known: RefCell::default(),
            session,
            now,
            compiled: RefCell::default(),
        })
    }

    /// Bytes that all scripts use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.lua.used_memory()
    }

    /// Compiles a script, without running it. `chunk` names it in messages.
    ///
    /// # Errors
    /// Lua's words, with the line.
    pub fn check(&self, chunk: &str, text: &str) -> Result<(), Failed> {
        let loaded = self.lua.load(text).set_name(format!("@{chunk}"));
        let loaded = loaded.into_function();
        loaded.map(drop).map_err(|error| Failed::of("load", &error))
    }

    /// Returns what there is without being defined: globals, and tables whose fields are known.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn known(&self) -> Result<Known, Failed> {
        type Names = (BTreeSet<String>, BTreeSet<String>);
        let names: (Vec<String>, Vec<String>) = self.call("names", ())?;
        let (globals, proxy): Names =
            (names.0.into_iter().collect(), names.1.into_iter().collect());
        let tables: BTreeMap<String, Vec<String>> = self.call("known", ())?;
        let tables = tables.into_iter();
        let mut fields: BTreeMap<_, BTreeSet<_>> = tables
            .map(|(name, fields)| (name, fields.into_iter().collect()))
            .collect();
        fields.insert("proxy".into(), proxy);
        Ok(Known { globals, fields })
    }

    /// Drops what was compiled: other scripts are in force.
    pub fn forget_compiled(&self) {
        self.compiled.borrow_mut().clear();
    }

    fn compile(&self, code: Code<'_>) -> Result<(Function, Table), Failed> {
        let mut compiled = self.compiled.borrow_mut();
        let known = compiled.iter().find(|one| Arc::ptr_eq(&one.of, code.text));
        if let Some(known) = known {
            return Ok((known.main.clone(), known.library.clone()));
        }
        let failed = |error| Failed::of("load", &error);
        let loaded = self.lua.load(&**code.text);
        let loaded = loaded.set_name(format!("@{}", code.chunk));
        let main = loaded.into_function().map_err(failed)?;
        let library = self.library(code).map_err(failed)?;
        compiled.push(Compiled {
            of: code.text.clone(),
            main: main.clone(),
            library: library.clone(),
        });
        Ok((main, library))
    }

    fn library(&self, code: Code<'_>) -> Result<Table, mlua::Error> {
        let modules = code.modules;
        let texts = modules.iter().map(|module| &module.text);
        let mut texts = texts.chain([code.text]);
        let reads_nothing = !texts.clone().any(|text| may_read_results(text));
        let waits = texts.any(|text| may_wait(text));
        let files = self.lua.create_table()?;
        for module in modules {
            let file = self.lua.create_table()?;
            file.set("chunk", &*module.chunk)?;
            file.set("text", &*module.text)?;
            files.set(&*module.name, file)?;
        }
        let library = self.lua.create_table()?;
        library.set("loaded", self.lua.create_table()?)?;
        library.set("files", files)?;
        library.set("waits", waits)?;
        library.set("reads_nothing", reads_nothing)?;
        Ok(library)
    }

    /// Runs a script's main chunk for one more session.
    ///
    /// # Errors
    /// The chunk does not compile, raises, or takes too long.
    pub async fn session(
        self: &Rc<Self>,
        name: &str,
        code: Code<'_>,
        level: Level,
        host: Rc<dyn Host>,
        hook_ms_max: u32,
    ) -> Result<Scripted, Failed> {
        let begun = (host, false);
        self.begun(name, code, level, begun, hook_ms_max).await
    }

    /// Runs a script's main chunk for the script itself: a session that has its timers.
    ///
    /// # Errors
    /// As [`Self::session`].
    pub async fn own_session(
        self: &Rc<Self>,
        name: &str,
        code: Code<'_>,
        host: Rc<dyn Host>,
        hook_ms_max: u32,
    ) -> Result<Scripted, Failed> {
        let level = Level::of(code.text);
        let begun = (host, true);
        self.begun(name, code, level, begun, hook_ms_max).await
    }

    async fn begun(
        self: &Rc<Self>,
        name: &str,
        code: Code<'_>,
        level: Level,
        (host, is_own): (Rc<dyn Host>, bool),
        hook_ms_max: u32,
    ) -> Result<Scripted, Failed> {
        let (main, library) = self.compile(code)?;
        let waits = library.get("waits").unwrap_or_default();
        let level_number = match level {
            Level::V06 => 6,
            Level::V08 => 8,
        };
        let failed = |error| Failed::of("load", &error);
        let new = self.function("new").map_err(failed)?;
        let made = new.call((name, main, level_number, library.clone()));
        let mut scripted = Scripted {
            vm: self.clone(),
            session: made.map_err(failed)?,
            level,
            host,
            hook_ms_max,
            waits,
            reads_nothing: library.get("reads_nothing").unwrap_or_default(),
            hooks: ["read_query", "read_query_result"],
        };
        if is_own {
            self.call::<()>("own", scripted.session.clone())?;
        }
        let mut turns = scripted.turns(None);
        match scripted.hook::<()>(&mut turns, "main", ()).await {
            Ok(()) if self.call("is_of_today", scripted.session.clone())? => {
                scripted.hooks = ["on.statement", "on.result"];
                Ok(scripted)
            }
            Ok(()) => Ok(scripted),
            Err(Failed(words)) => Err(Failed(words.replacen("(main)", "(load)", 1))),
        }
    }

    pub(crate) fn call<R: FromLuaMulti>(
        &self,
        name: &'static str,
        args: impl IntoLuaMulti,
    ) -> Result<R, Failed> {
        let failed = |error| Failed::of(name, &error);
        self.function(name)
            .map_err(failed)?
            .call(args)
            .map_err(failed)
    }

    pub(crate) const fn lua(&self) -> &Lua {
        &self.lua
    }

    fn function(&self, name: &'static str) -> Result<Function, mlua::Error> {
        let mut known = self.known.borrow_mut();
        if let Some((_, function)) = known.iter().find(|(of, _)| *of == name) {
            return Ok(function.clone());
        }
        let function: Function = self.session.get(name)?;
        known.push((name, function.clone()));
        Ok(function)
    }
}

/// A script in the way of one client.
pub struct Scripted {
    pub(crate) vm: Rc<Vm>,
    pub(crate) session: Table,
    level: Level,
    host: Rc<dyn Host>,
    hook_ms_max: u32,
    /// Its hooks run in coroutines.
    waits: bool,
    /// Nothing in its texts could look at rows, or put something in their place.
    reads_nothing: bool,
    /// Those that see commands and answers.
    hooks: [&'static str; 2],
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scripted({:?})", self.level)
    }
}

/// A hook from its beginning to its end, over the turns between which it waits.
pub(crate) struct Turns {
    /// Answer that the hook looks at.
    pub(crate) outcome: Option<Outcome>,
    /// The last result that it got from a server itself.
    got: Option<Outcome>,
    serial: u32,
    /// Microseconds that it may still run.
    left_us: u64,
    /// Microseconds that it has run.
    pub(crate) used_us: u64,
    waits: u64,
    /// HTTP calls, and those without an answer.
    http: (u64, u64),
    /// The script has it.
    is_there: bool,
}

impl Scripted {
    /// Asks the script about a command, given without a packet's header.
    ///
    /// # Errors
    /// The hook raised, ran for too long, or made up what cannot be sent.
    pub async fn read_query(&self, packet: &[u8]) -> Result<Decision, Failed> {
        let mut turns = self.turns(None);
        let packet = self.string(packet)?;
        let hook = self.hooks[0];
        let (decision, queued, chosen): (f64, usize, Option<usize>) =
            self.hook(&mut turns, hook, packet).await?;
        if queued > QUEUED_MAX {
            return Err(Failed(format!(
                "({hook}) {queued} queries were queued; {QUEUED_MAX} are the most"
            )));
        }
        match decision as i64 {
            1 if queued > 0 => Ok(Decision::Queue),
            2 => {
                let source = turns.got.take();
                let response = self.response(&mut turns, hook, source.as_ref());
                response.map(Decision::Answer)
            }
            _ => {
                if queued > 0 {
                    self.forget();
                }
                Ok(Decision::Forward(self.chosen(chosen)))
            }
        }
    }

    /// The next queued query.
    ///
    /// # Errors
    /// There is no memory.
    pub fn next(&self) -> Result<Option<Item>, Failed> {
        type Next = (
            Option<f64>,
            Option<mlua::LuaString>,
            bool,
            Option<u32>,
            Option<u32>,
            Option<usize>,
            bool,
        );
        let next: Next = self.vm.call("next", self.session.clone())?;
        let (Some(id), Some(packet), needed, hostgroup, cache_ttl_ms, chosen, is_streamed) = next
        else {
            return Ok(None);
        };
        let has_hook: bool = self.vm.call("has_result_hook", self.session.clone())?;
        let is_collected = has_hook && (needed || self.level == Level::V06);
        let mut packet = packet.as_bytes().to_vec();
        if is_collected && let [COM_STMT_EXECUTE, _, _, _, _, flags, ..] = &mut packet[..] {
            // With a cursor the rows would come later.
            *flags &= !CURSORS;
        }
        Ok(Some(Item {
            id,
            packet,
            is_collected,
            is_unread: self.reads_nothing,
            is_streamed,
            route: Route {
                hostgroup,
                cache_ttl_ms,
            },
            chosen: self.chosen(chosen),
        }))
    }

    /// The server at this place of `proxy.backends`.
    fn chosen(&self, at: Option<usize>) -> Chosen {
        match at {
            None => Chosen::Unsaid,
            Some(0) => Chosen::Nowhere,
            // One that is gone by now is no choice.
            Some(at) => {
                let mut servers = self.host.servers();
                match at <= servers.len() {
                    true => Chosen::At(servers.swap_remove(at - 1)),
                    false => Chosen::Unsaid,
                }
            }
        }
    }

    /// Milliseconds between the calls of each of its timers.
    ///
    /// # Errors
    /// There is no memory.
    pub fn periods(&self) -> Result<Vec<u64>, Failed> {
        self.vm.call("periods", self.session.clone())
    }

    /// Calls the function of a timer, from 0 on.
    ///
    /// # Errors
    /// It raised, or ran for too long.
    pub async fn tick(&self, timer: usize) -> Result<(), Failed> {
        let mut turns = self.turns(None);
        self.hook(&mut turns, "every", timer + 1).await
    }

    /// Drops what is still queued.
    pub fn forget(&self) {
        let _nothing_is_queued_then = self.vm.call::<()>("forget", self.session.clone());
    }

    /// Shows the script the answer to a query that it has queued.
    ///
    /// # Errors
    /// The hook raised, ran for too long, or made up what cannot be sent.
    pub async fn read_query_result(
        &self,
        item: &Item,
        outcome: Outcome,
    ) -> Result<Verdict, Failed> {
        let packet = self.string(&item.packet)?;
        let args = (item.id, packet, outcome.query_us, outcome.response_us);
        let mut turns = self.turns(Some(outcome));
        let hook = self.hooks[1];
        let decision: f64 = self.hook(&mut turns, hook, args).await?;
        match decision as i64 {
            0 => Ok(Verdict::PassOn),
            2 => {
                let source = turns.outcome.take();
                let response = self.response(&mut turns, hook, source.as_ref());
                response.map(Verdict::Instead)
            }
            4 => Ok(Verdict::Ignore),
            other => {
                let line = format!(
                    "(read_query_result) has returned {other}, which is none of its values: the result is dropped"
                );
                self.host.log(&line);
                Ok(Verdict::Ignore)
            }
        }
    }

    /// Shows the script the login of its client, which is over: `packet` was the answer. What the
    /// script says instead of it, if it does.
    ///
    /// # Errors
    /// A hook raised, ran for too long, or made up what cannot be sent.
    pub async fn has_logged_in(&self, packet: &[u8]) -> Result<Option<Response>, Failed> {
        match self.read_auth().await? {
            AtLogin::Instead(response) => return Ok(Some(response)),
            AtLogin::Login(_) => {
                let line = "(read_auth) what it queues is left out: the client is in already";
                self.host.log(line);
            }
            AtLogin::PassOn => {}
        }
        self.read_auth_result(packet).await
    }

    /// Shows the script the login of its client.
    ///
    /// # Errors
    /// The hook raised, ran for too long, or made up what cannot be sent.
    pub async fn read_auth(&self) -> Result<AtLogin, Failed> {
        let mut turns = self.turns(None);
        let (decision, packet): (f64, Option<mlua::LuaString>) =
            self.hook(&mut turns, "read_auth", ()).await?;
        Ok(match (decision as i64, packet) {
            (1, Some(packet)) => AtLogin::Login(packet.as_bytes().to_vec()),
            (2, _) => AtLogin::Instead(self.response(&mut turns, "read_auth", None)?),
            _ => AtLogin::PassOn,
        })
    }

    /// Shows the script the answer to a login. An answer of its own is said instead.
    ///
    /// # Errors
    /// As [`Self::read_auth`].
    pub async fn read_auth_result(&self, packet: &[u8]) -> Result<Option<Response>, Failed> {
        let mut turns = self.turns(None);
        let packet = self.string(packet)?;
        let decision: f64 = self.hook(&mut turns, "read_auth_result", packet).await?;
        match decision as i64 {
            2 => self
                .response(&mut turns, "read_auth_result", None)
                .map(Some),
            _ => Ok(None),
        }
    }

    /// Tells the script that its client has gone.
    ///
    /// # Errors
    /// The hook raised, or ran for too long.
    pub fn disconnect_client(&self) -> Result<(), Failed> {
        let mut turns = self.turns(None);
        let done = self.turn(&mut turns, || {
            self.vm
                .call::<bool>("disconnect_client", self.session.clone())
        });
        turns.is_there = *done.as_ref().unwrap_or(&true);
        self.tell_of_call(&turns, "disconnect_client", done.as_ref().err());
        done.map(drop)
    }

    /// Wishes of the script about its session.
    #[must_use]
    pub fn wishes(&self) -> Wishes {
        type Said = (bool, Option<usize>);
        let said = self.vm.call::<Said>("wishes", self.session.clone());
        let (closes, chosen) = said.unwrap_or_default();
        Wishes {
            closes,
            chosen: self.chosen(chosen),
        }
    }

    /// Asks the script for a server before the client is greeted. An answer is said instead of a
    /// greeting.
    ///
    /// # Errors
    /// The hook raised, ran for too long, or made up what cannot be sent.
    pub async fn connect_server(&self) -> Result<(Chosen, Option<Response>), Failed> {
        let mut turns = self.turns(None);
        let (decision, chosen): (f64, Option<usize>) =
            self.hook(&mut turns, "connect_server", ()).await?;
        let said = match decision as i64 {
            2 => Some(self.response(&mut turns, "connect_server", None)?),
            _ => None,
        };
        Ok((self.chosen(chosen), said))
    }

    /// Shows the script a server's greeting. An answer is said instead of it.
    ///
    /// # Errors
    /// As [`Self::connect_server`].
    pub async fn read_handshake(&self, greeted: &Greeted) -> Result<Option<Response>, Failed> {
        let mut turns = self.turns(None);
        let challenge = self.string(&greeted.challenge)?;
        let args = (challenge, greeted.version, greeted.thread, &*greeted.server);
        let decision: f64 = self.hook(&mut turns, "read_handshake", args).await?;
        match decision as i64 {
            // The original took both for the same.
            1 | 2 => self.response(&mut turns, "read_handshake", None).map(Some),
            _ => Ok(None),
        }
    }

    fn string(&self, bytes: &[u8]) -> Result<mlua::LuaString, Failed> {
        let made = self.vm.lua.create_string(bytes);
        made.map_err(|error| Failed::of("read_query", &error))
    }

    fn response(
        &self,
        turns: &mut Turns,
        hook: &str,
        source: Option<&Outcome>,
    ) -> Result<Response, Failed> {
        self.turn(turns, || {
            let value: Value = self.vm.call("response", self.session.clone())?;
            let made = Response::of(&value, source);
            made.map_err(|Bad(words)| Failed(format!("({hook}) {words}")))
        })
    }

    /// Session that its hooks run for.
    pub(crate) fn host(&self) -> &dyn Host {
        &*self.host
    }

    pub(crate) fn turns(&self, outcome: Option<Outcome>) -> Turns {
        let serial = self.vm.now.last_serial.get().wrapping_add(1).max(1);
        self.vm.now.last_serial.set(serial);
        Turns {
            outcome,
            got: None,
            serial,
            left_us: u64::from(self.hook_ms_max) * 1000,
            used_us: 0,
            waits: 0,
            http: (0, 0),
            is_there: true,
        }
    }

    /// Runs a hook to its end, and tells what it has cost.
    async fn hook<R: FromLuaMulti>(
        &self,
        turns: &mut Turns,
        name: &'static str,
        args: impl IntoLuaMulti,
    ) -> Result<R, Failed> {
        let done = self.run(turns, name, args).await;
        self.tell_of_call(turns, name, done.as_ref().err());
        done
    }

    fn tell_of_call(&self, turns: &Turns, hook: &'static str, failed: Option<&Failed>) {
        if turns.is_there {
            self.host.ran(Call {
                hook,
                us: turns.used_us,
                waits: turns.waits,
                http: turns.http,
                error: failed.map(|failed| &*failed.0),
            });
        }
    }

    /// Runs a hook to its end, and does what it waits for.
    async fn run<R: FromLuaMulti>(
        &self,
        turns: &mut Turns,
        name: &'static str,
        args: impl IntoLuaMulti,
    ) -> Result<R, Failed> {
        if !self.waits {
            let args = (self.session.clone(), args);
            let (is_there, made) = self.turn(turns, || self.vm.call::<(bool, R)>(name, args))?;
            turns.is_there = is_there;
            return Ok(made);
        }
        let lua = &self.vm.lua;
        let failed = |error| Failed::of(name, &error);
        let begin = self.vm.function("begin").map_err(failed)?;
        let args = (self.session.clone(), name, args);
        let mut said: MultiValue = self.turn(turns, || begin.call(args).map_err(failed))?;
        while matches!(said.pop_front(), Some(Value::Boolean(true))) {
            let ask = Ask::of(lua, said).map_err(failed)?;
            turns.waits += 1;
            let is_http = matches!(ask, Ask::Http(_));
            let reply = self.host.ask(ask).await;
            if is_http {
                turns.http.0 += 1;
                turns.http.1 += u64::from(matches!(reply, Reply::Refused(_)));
            }
            let resume = self.vm.function("resume").map_err(failed)?;
            said = self.turn(turns, || {
                let mut args = reply.told(lua).map_err(failed)?;
                args.push_front(Value::Table(self.session.clone()));
                resume.call(args).map_err(failed)
            })?;
            if let Reply::Rows(outcome) = reply {
                turns.got = Some(outcome);
            }
        }
        let (is_there, made) = <(bool, R)>::from_lua_multi(said, lua).map_err(failed)?;
        turns.is_there = is_there;
        Ok(made)
    }

    /// A turn of a hook: it sees its session, and its time passes.
    pub(crate) fn turn<R>(
        &self,
        turns: &mut Turns,
        runs: impl FnOnce() -> Result<R, Failed>,
    ) -> Result<R, Failed> {
        let now = &self.vm.now;
        let began = self.host.now_us();
        now.until_us.set(began.saturating_add(turns.left_us));
        now.looks.set(turns.left_us.div_ceil(1000) * LOOKS_PER_MS);
        now.host.replace(Some(self.host.clone()));
        now.servers.replace(None);
        now.serial.set(turns.serial);
        now.outcome.replace(turns.outcome.take());
        let done = runs();
        // What it looked at is gone until it goes on.
        turns.outcome = now.outcome.replace(None);
        now.serial.set(0);
        now.host.replace(None);
        now.until_us.set(u64::MAX);
        now.looks.set(u64::MAX);
        let took = self.host.now_us().saturating_sub(began);
        turns.left_us = turns.left_us.saturating_sub(took);
        turns.used_us += took;
        done
    }
}

/// Ends hooks that run for too long, be it in compiled code: LuaJIT is built so that it looks.
fn guard(lua: &Lua, now: &Rc<Now>, lines: Option<Rc<Lines>>) -> Result<(), mlua::Error> {
    let now = now.clone();
    let steps = HookTriggers::new().every_nth_instruction(STEPS);
    let triggers = match lines {
        Some(_) => steps.every_line(),
        None => steps,
    };
    lua.set_global_hook(triggers, move |_, debug| {
        if let (Some(lines), DebugEvent::Line) = (&lines, debug.event()) {
            lines.ran(debug);
            return Ok(VmState::Continue);
        }
        if now.looks_up() {
            return Err(mlua::Error::runtime("the hook has run for too long"));
        }
        Ok(VmState::Continue)
    })
}

/// Takes away what would block the core, end the process, or reach its files.
fn tame(lua: &Lua, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let globals = lua.globals();
    for library in ["io", "package"] {
        globals.set(library, Value::Nil)?;
    }
    for function in ["dofile", "loadfile"] {
        let words = format!("{function} is not available to this script");
        let refuse = lua.create_function(move |_, _: MultiValue| {
            Err::<(), _>(mlua::Error::runtime(words.clone()))
        })?;
        globals.set(function, refuse)?;
    }
    let os: Table = globals.get("os")?;
    for function in [
        "execute",
        "exit",
        "remove",
        "rename",
        "tmpname",
        "setlocale",
        "getenv",
    ] {
        os.set(function, Value::Nil)?;
    }
    let now = now.clone();
    let print = lua.create_function(move |lua, values: MultiValue| {
        let tostring: Function = lua.globals().get("tostring")?;
        let words = values
            .into_iter()
            .map(|value| tostring.call::<String>(value))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(host) = now.host.borrow().as_ref() {
            host.log(&words.join("\t"));
        }
        Ok(())
    })?;
    globals.set("print", print)
}

/// Functions that `proxy.lua` calls.
fn natives(lua: &Lua, now: &Rc<Now>) -> Result<Table, mlua::Error> {
    let native = lua.create_table()?;
    native.set("constants", crate::constants::table(lua)?)?;
    native.set("modules", crate::modules::native(lua)?)?;
    native.set(
        "written",
        lua.create_function(|_, name: String| Ok(crate::modules::written(&name)))?,
    )?;
    native.set(
        "refused",
        lua.create_function(|_, name: String| Ok(crate::modules::refused(&name)))?,
    )?;
    of_log(lua, &native, now)?;
    let of = now.clone();
    native.set(
        "close",
        lua.create_function(move |_, connection: u32| {
            if let Some(host) = of.host.borrow().as_ref() {
                host.close(connection);
            }
            Ok(())
        })?,
    )?;
    native.set(
        "md5",
        lua.create_function(|_, text: mlua::LuaString| Ok(lua::md5::hex(&text.as_bytes())))?,
    )?;
    native.set("pid", lua.create_function(|_, ()| Ok(std::process::id()))?)?;
    let of = now.clone();
    native.set(
        "wall",
        lua.create_function(move |_, ()| {
            let host = of.host.borrow();
            let us = host.as_ref().map_or(0, |host| host.wall_us());
            Ok((us / 1_000_000, us % 1_000_000))
        })?,
    )?;
    let of = now.clone();
    native.set(
        "is_over",
        lua.create_function(move |_, ()| Ok(of.is_over()))?,
    )?;
    of_outcome(lua, &native, now)?;
    crate::api::put_in(lua, &native, now)?;
    of_session(lua, &native, now)?;
    Ok(native)
}

/// Those that are about logs.
fn of_log(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let of = now.clone();
    native.set(
        "log",
        lua.create_function(move |_, line: mlua::LuaString| {
            if let Some(host) = of.host() {
                host.log(&line.to_string_lossy());
            }
            Ok(())
        })?,
    )?;
    let of = now.clone();
    native.set(
        "append",
        lua.create_function(move |_, (file, text): (String, mlua::LuaString)| {
            if let Some(host) = of.host.borrow().as_ref() {
                host.append(&file, &text.as_bytes());
            }
            Ok(())
        })?,
    )?;
    // The first function in the script's own files: path, line, its kind and name, and the stack.
    native.set(
        "caller",
        lua.create_function(|lua, ()| {
            let mut found = None;
            for level in 1..STACK_MAX {
                let of = |debug: &Debug<'_>| {
                    let source = debug.source();
                    let path = source.source?.strip_prefix('@')?.to_owned();
                    let defined = source.line_defined.unwrap_or(0);
                    let name = debug.names().name.map(Cow::into_owned);
                    Some((path, debug.current_line(), source.what, defined, name))
                };
                match lua.inspect_stack(level, of) {
                    None => break,
                    Some(None) => {}
                    Some(Some(at)) => {
                        found = Some((level, at));
                        break;
                    }
                }
            }
            let Some((level, (path, line, what, defined, name))) = found else {
                return Ok((None, None, None, None));
            };
            let method = match (what, name) {
                ("main", _) => "main chunk".to_owned(),
                (_, Some(name)) => format!("function '{name}'"),
                (_, None) => format!("function <{path}:{defined}>"),
            };
            let stack = lua.traceback(None, level)?;
            Ok((Some(path), line, Some(method), Some(stack)))
        })?,
    )
}

/// Those that are about the servers and the client.
fn of_session(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let of = now.clone();
    let servers = |of: &Now| {
        let host = of.host.borrow();
        let ask = || host.as_ref().map(|host| host.servers()).unwrap_or_default();
        of.servers.borrow_mut().get_or_insert_with(ask).clone()
    };
    native.set(
        "backends",
        lua.create_function(move |_, ()| Ok(servers(&of).len()))?,
    )?;
    let of = now.clone();
    let at_place = move |at: f64| {
        let all = servers(&of);
        (at >= 1.0)
            .then(|| all.get(at as usize - 1).cloned())
            .flatten()
    };
    let find = at_place.clone();
    native.set(
        "backend",
        lua.create_function(move |lua, at: f64| {
            find(at).map(|server| shown(lua, &server)).transpose()
        })?,
    )?;
    of_notes(lua, native, now, at_place)?;
    let of = now.clone();
    native.set(
        "current",
        lua.create_function(move |_, ()| Ok(of.host().map_or(0, |host| host.current())))?,
    )?;
    let of = now.clone();
    native.set(
        "client",
        lua.create_function(move |lua, what: String| {
            let host = of.host.borrow();
            let Some(host) = host.as_ref() else {
                return Ok((Value::Nil, None));
            };
            let text = |text: String| Ok::<_, mlua::Error>(Value::String(lua.create_string(text)?));
            let [src, dst] = host.ends();
            let end =
                |(host, port): (String, u16)| Ok((text(host)?, Some(port).filter(|p| *p != 0)));
            match &*what {
                "schema" => Ok((text(host.schema())?, None)),
                "user" => Ok((text(host.user())?, None)),
                "thread" => Ok((Value::Number(host.thread().into()), None)),
                "version" => Ok((Value::Number(host.version().into()), None)),
                "stand_in" => Ok((Value::String(lua.create_string(host.stand_in())?), None)),
                "src" => end(src),
                _ => end(dst),
            }
        })?,
    )
}

/// A server, as `proxy.lua` has it.
fn shown(lua: &Lua, server: &Server) -> Result<Table, mlua::Error> {
    let table = lua.create_table()?;
    table.set("host", &*server.host)?;
    table.set("port", Some(server.port).filter(|port| *port != 0))?;
    table.set("type", if server.is_reader { 2 } else { 1 })?;
    let state = match server.standing {
        Standing::Unknown => 0,
        Standing::Up => 1,
        Standing::Down => 2,
    };
    table.set("state", state)?;
    table.set("clients", server.clients)?;
    table.set("idle_own", server.idle_own)?;
    table.set("idle_any", server.idle_any)?;
    Ok(table)
}

/// Those that are about scripts' notes of servers.
fn of_notes(
    lua: &Lua,
    native: &Table,
    now: &Rc<Now>,
    find: impl Fn(f64) -> Option<Server> + Clone + 'static,
) -> Result<(), mlua::Error> {
    let (of, at_place) = (now.clone(), find.clone());
    native.set(
        "noted",
        lua.create_function(move |lua, (at, field): (f64, String)| {
            let (Some(host), Some(server)) = (of.host(), at_place(at)) else {
                return Ok(Value::Nil);
            };
            match host.noted(&server, &field) {
                None => Ok(Value::Nil),
                Some(Kept::Number(number)) => Ok(Value::Number(number)),
                Some(Kept::Flag(flag)) => Ok(Value::Boolean(flag)),
                Some(Kept::Text(text)) => lua.create_string(text).map(Value::String),
            }
        })?,
    )?;
    let of = now.clone();
    native.set(
        "note",
        lua.create_function(move |_, (at, field, value): (f64, String, Value)| {
            let value = match value {
                Value::Number(number) => Some(Kept::Number(number)),
                Value::Integer(number) => Some(Kept::Number(number as f64)),
                Value::String(text) => Some(Kept::Text(text.as_bytes().to_vec())),
                _ => None,
            };
            let (Some(host), Some(server)) = (of.host(), find(at)) else {
                return Ok(());
            };
            let noted = host.note(&server, &field, value);
            // It is shown at once.
            of.servers.replace(None);
            noted.map_err(mlua::Error::runtime)
        })?,
    )
}

/// Those that are about the answer that a hook looks at.
fn of_outcome(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let of = now.clone();
    native.set(
        "serial",
        lua.create_function(move |_, ()| Ok(of.serial.get()))?,
    )?;
    let of = now.clone();
    native.set(
        "is_collected",
        lua.create_function(move |_, ()| {
            let outcome = of.outcome.borrow();
            Ok(outcome.as_ref().is_some_and(|one| one.packets.is_some()))
        })?,
    )?;
    let of = now.clone();
    native.set(
        "counts",
        lua.create_function(move |lua, part| counts(lua, &of, part))?,
    )?;
    let of = now.clone();
    native.set(
        "fields",
        lua.create_function(move |lua, part| fields(lua, &of, part))?,
    )?;
    let of = now.clone();
    native.set(
        "results",
        lua.create_function(move |_, ()| Ok(of.outcome(|outcome| outcome.parts().len())))?,
    )?;
    let of = now.clone();
    native.set(
        "row",
        lua.create_function(move |lua, (at, part): (usize, Option<usize>)| {
            let read = |row: &Row<'_>| {
                let table = lua.create_table_with_capacity(row.len(), 0)?;
                for at in 0..row.len() {
                    if let Some(value) = row.text(at) {
                        table.raw_set(at + 1, lua.create_string(value)?)?;
                    }
                }
                Ok::<_, mlua::Error>(table)
            };
            let at = at.saturating_sub(1);
            of.part(part, |outcome| outcome.row(at, read)).transpose()
        })?,
    )?;
    let of = now.clone();
    native.set(
        "first",
        lua.create_function(move |lua, part| {
            let outcome = of.outcome.borrow();
            let outcome = outcome.as_ref().and_then(|one| part_of(one, part));
            let first = outcome.and_then(Outcome::first);
            first.map(|first| lua.create_string(first)).transpose()
        })?,
    )
}

/// One of several results, from 1; without a number the answer as a whole.
fn part_of(outcome: &Outcome, part: Option<usize>) -> Option<&Outcome> {
    match part {
        None => Some(outcome),
        Some(part) => outcome.parts().get(part.checked_sub(1)?),
    }
}

fn counts(lua: &Lua, now: &Now, part: Option<usize>) -> Result<Table, mlua::Error> {
    let table = lua.create_table()?;
    let outcome = now.outcome.borrow();
    let outcome = outcome.as_ref().and_then(|one| part_of(one, part));
    let Some(counts) = outcome.map(|outcome| outcome.counts) else {
        return Ok(table);
    };
    let flag = |bit: u16| counts.status & bit != 0;
    let flags = lua.create_table()?;
    flags.set("in_trans", flag(wire::status::IN_TRANS))?;
    flags.set("auto_commit", flag(wire::status::AUTOCOMMIT))?;
    flags.set("no_good_index_used", flag(0x10))?;
    flags.set("no_index_used", flag(0x20))?;
    table.set("flags", flags)?;
    table.set("has_rows", counts.has_rows)?;
    table.set("row_count", counts.rows as f64)?;
    table.set("bytes", counts.bytes as f64)?;
    table.set("warning_count", counts.warnings)?;
    table.set("query_status", if counts.failed { 255 } else { 0 })?;
    if !counts.has_rows && !counts.failed {
        table.set("affected_rows", counts.affected as f64)?;
        table.set("insert_id", counts.insert_id as f64)?;
    }
    Ok(table)
}

fn fields(lua: &Lua, now: &Now, part: Option<usize>) -> Result<Table, mlua::Error> {
    let table = lua.create_table()?;
    let outcome = now.outcome.borrow();
    let Some(outcome) = outcome.as_ref().and_then(|one| part_of(one, part)) else {
        return Ok(table);
    };
    for (at, shape) in outcome.columns().shapes.iter().enumerate() {
        let field = lua.create_table()?;
        let [name, org_name, of, org_of] = outcome.names(at);
        field.set("type", shape.kind.0)?;
        field.set("name", lua.create_string(name)?)?;
        field.set("org_name", lua.create_string(org_name)?)?;
        field.set("table", lua.create_string(of)?)?;
        field.set("org_table", lua.create_string(org_of)?)?;
        table.raw_set(at + 1, field)?;
    }
    Ok(table)
}
