//! A script in the way of one client: its hooks, and what they wish.

use crate::ask::{Ask, Reply};
use crate::host::{Call, Chosen, Failed, Host, Wishes};
use crate::natives::numbers;
use crate::outcome::Outcome;
use crate::response::{Bad, PackedResult, Reader, Response, Room};
use crate::text::Level;
use crate::vm::{Code, Vm};
use mlua::{FromLuaMulti, IntoLuaMulti, LuaString, MultiValue, Table, Value};
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use wire::command::COM_STMT_EXECUTE;

/// Instructions that a millisecond of a hook has at most: a clock that stands still ends it, too. No
/// machine comes to so many.
const STEPS_PER_MS: u64 = 10_000_000;
/// Flags of an execution that ask for a cursor.
const CURSORS: u8 = 7;
/// Queries that one command may queue.
const QUEUED_MAX: usize = 100_000;

/// A script's wish for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// As if there were no script; at this server, if the script has chosen one.
    Forward(Chosen),
    /// This is the answer; what is queued runs behind it.
    Answer(Response),
    /// Ask [`Scripted::next`].
    Queue,
    /// An answer, and one that cannot be sent.
    Unsayable(Failed),
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
    /// The client gets something else, which cannot be sent.
    Unsayable(Failed),
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
    /// Plugin that the challenge is meant for.
    pub auth_plugin: String,
}

/// A script's word on a statement's way; it beats rules and hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Route {
    /// Hostgroup.
    pub hostgroup: Option<u32>,
    /// Milliseconds that its result may be had from the cache; 0 for none.
    pub cache_ttl_ms: Option<u32>,
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
    /// Its author has heard that queries were dropped.
    has_told: Cell<bool>,
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
    /// Runs a script's main chunk for one more session.
    ///
    /// # Errors
    /// The chunk does not compile, raises, or takes too long.
    pub async fn begin(
        vm: &Rc<Vm>,
        name: &str,
        code: Code<'_>,
        level: Level,
        host: Rc<dyn Host>,
        hook_ms_max: u32,
    ) -> Result<Self, Failed> {
        let begun = (host, false);
        Self::begun(vm, name, code, level, begun, hook_ms_max).await
    }

    /// Runs a script's main chunk for the script itself: a session that has its timers.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub async fn begin_own(
        vm: &Rc<Vm>,
        name: &str,
        code: Code<'_>,
        host: Rc<dyn Host>,
        hook_ms_max: u32,
    ) -> Result<Self, Failed> {
        let level = Level::of(code.text);
        let begun = (host, true);
        Self::begun(vm, name, code, level, begun, hook_ms_max).await
    }

    async fn begun(
        vm: &Rc<Vm>,
        name: &str,
        code: Code<'_>,
        level: Level,
        (host, is_own): (Rc<dyn Host>, bool),
        hook_ms_max: u32,
    ) -> Result<Self, Failed> {
        let (main, library) = vm.compile(code)?;
        let waits = library.get("waits").unwrap_or_default();
        let level_number = match level {
            Level::V06 => 6,
            Level::V08 => 8,
        };
        let failed = |error| Failed::of("load", &error);
        let new = vm.function("new").map_err(failed)?;
        let made = new.call((name, main, level_number, library.clone()));
        let mut scripted = Self {
            vm: vm.clone(),
            session: made.map_err(failed)?,
            level,
            host,
            hook_ms_max,
            waits,
            reads_nothing: library.get("reads_nothing").unwrap_or_default(),
            hooks: ["read_query", "read_query_result"],
            has_told: Cell::default(),
        };
        if is_own {
            vm.call::<()>("own", scripted.session.clone())?;
        }
        let mut turns = scripted.turns(None);
        match scripted.hook::<()>(&mut turns, "main", ()).await {
            Ok(()) if vm.call("is_of_today", scripted.session.clone())? => {
                scripted.hooks = ["on.statement", "on.result"];
                Ok(scripted)
            }
            Ok(()) => Ok(scripted),
            Err(Failed(words)) => Err(Failed(words.replacen("(main)", "(load)", 1))),
        }
    }

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
                Ok(response.map_or_else(Decision::Unsayable, Decision::Answer))
            }
            _ => {
                if queued > 0 {
                    self.forget();
                    self.tell_of_dropped(hook, queued);
                }
                Ok(Decision::Forward(self.chosen(chosen)))
            }
        }
    }

    /// Tells the author once that what was queued is not sent.
    fn tell_of_dropped(&self, hook: &str, queued: usize) {
        if !self.has_told.replace(true) {
            let line = format!(
                "({hook}) has queued queries ({queued}) and not returned proxy.PROXY_SEND_QUERY: they are dropped, and the command goes on as it is"
            );
            self.host.log(&line);
        }
    }

    /// The next queued query.
    ///
    /// # Errors
    /// There is no memory.
    pub fn next(&self) -> Result<Option<Item>, Failed> {
        type Next = (
            Option<f64>,
            Option<LuaString>,
            bool,
            Option<u32>,
            Option<u32>,
            Option<usize>,
            bool,
            bool,
        );
        let next: Next = self.vm.call("next", self.session.clone())?;
        let (
            Some(id),
            Some(packet),
            needed,
            hostgroup,
            cache_ttl_ms,
            chosen,
            is_streamed,
            has_hook,
        ) = next
        else {
            return Ok(None);
        };
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
    /// The hook raised, or ran for too long.
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
        let (query_us, response_us) = (outcome.query_us, outcome.response_us);
        let numbers = numbers(Some(&outcome));
        let mut turns = self.turns(Some(outcome));
        // A tuple that is the last of another one goes on as its own values.
        let args = (
            item.id,
            packet,
            query_us,
            response_us,
            turns.serial,
            numbers,
        );
        let hook = self.hooks[1];
        let done = self.run::<f64>(&mut turns, hook, args).await;
        let done = done.map_err(|failed| failed.at(turns.outcome.as_ref()));
        self.tell_of_call(&turns, hook, done.as_ref().err());
        match done? as i64 {
            0 => Ok(Verdict::PassOn),
            2 => {
                let source = turns.outcome.take();
                let response = self.response(&mut turns, hook, source.as_ref());
                Ok(response.map_or_else(Verdict::Unsayable, Verdict::Instead))
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
        let (decision, packet): (f64, Option<LuaString>) =
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
        let (server, plugin) = (&*greeted.server, &*greeted.auth_plugin);
        let args = (challenge, greeted.version, greeted.thread, server, plugin);
        let decision: f64 = self.hook(&mut turns, "read_handshake", args).await?;
        match decision as i64 {
            // The original took both for the same.
            1 | 2 => self.response(&mut turns, "read_handshake", None).map(Some),
            _ => Ok(None),
        }
    }

    fn string(&self, bytes: &[u8]) -> Result<LuaString, Failed> {
        let made = self.vm.lua().create_string(bytes);
        made.map_err(|error| Failed::of("read_query", &error))
    }

    fn response(
        &self,
        turns: &mut Turns,
        hook: &str,
        source: Option<&Outcome>,
    ) -> Result<Response, Failed> {
        self.turn(turns, || {
            type Said = (
                Value,
                Option<LuaString>,
                Option<LuaString>,
                Option<usize>,
                Option<Table>,
            );
            let said: Said = self.vm.call("result", self.session.clone())?;
            let made = match said {
                (_, Some(columns), rows, left, list) => {
                    let left = left.zip(list);
                    let result = PackedResult {
                        columns,
                        rows,
                        left,
                    };
                    Response::of_packed(&result, source, &self.reader())
                }
                (value, ..) => Response::of(&value, source, &self.reader()),
            };
            made.map_err(|Bad(words)| Failed(format!("({hook}) {words}")))
        })
    }

    /// Reads what it makes up.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            room: Room::of(self.host.result_len_max()),
            packing: self.vm.packing(),
        }
    }

    /// Session that its hooks run for.
    pub(crate) fn host(&self) -> &dyn Host {
        &*self.host
    }

    pub(crate) fn turns(&self, outcome: Option<Outcome>) -> Turns {
        let serial = self.vm.now().last_serial.get().wrapping_add(1).max(1);
        self.vm.now().last_serial.set(serial);
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
        let lua = self.vm.lua();
        let failed = |error| Failed::of(name, &error);
        let begin = self.vm.function("begin").map_err(failed)?;
        let args = (self.session.clone(), name, args);
        let mut said: MultiValue = self.turn(turns, || begin.call(args).map_err(failed))?;
        while matches!(said.pop_front(), Some(Value::Boolean(true))) {
            let place = |name: &str| self.host.place(name);
            let ask = Ask::of(lua, said, place).map_err(failed)?;
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
        let now = self.vm.now();
        let began = self.host.now_us();
        now.until_us.set(began.saturating_add(turns.left_us));
        now.steps.set(turns.left_us.div_ceil(1000) * STEPS_PER_MS);
        now.depth.begins();
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
        now.steps.set(u64::MAX);
        self.vm.calms_down();
        if done.as_ref().is_err_and(Failed::is_for_memory) {
            // LuaJIT raises before it looks for garbage, and the next session has none of it.
            let _as_far_as_it_goes = self.vm.lua().gc_collect();
        }
        let took = self.host.now_us().saturating_sub(began);
        turns.left_us = turns.left_us.saturating_sub(took);
        turns.used_us += took;
        done
    }
}
