//! A script's tests, run without a server: its hooks run in a VM as they do between clients and
//! servers, and the test says what a server would answer.

use crate::ask::{Ask, FileAsk, HttpWish, Reply};
use crate::host::{Call, Failed, Host, Server, Standing};
use crate::meaning::Reading;
use crate::outcome::{Counts, Outcome as Answered, Row};
use crate::packed::Packing;
use crate::passage::Passage;
use crate::response::{Bad, Reader, Response, Room};
use crate::scripted::{Decision, Item, Route, Scripted, Verdict};
use crate::shared::{Keep, Kept, Shared};
use crate::vm::{Code, Limits, Lines, Vm};
use bridge::Letter;
use config::{Folders, Place, Script};
use lua::syntax;
use mlua::{Error, Function, Lua, MultiValue, Table, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use wire::caps::{self, Caps};
use wire::command::{COM_QUERY, COM_STMT_EXECUTE, COM_STMT_PREPARE};
use wire::response as follow;

const CAPS: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;
/// Autocommit.
const STATUS: u16 = wire::status::AUTOCOMMIT;
/// Microseconds that pass for a hook at each look at the clock.
const TICK_US: u64 = 1000;
/// Times that timers run while a test waits once.
const TICKS_MAX: usize = 100_000;
/// Microseconds since 1970 when a test begins.
const BEGIN_US: u64 = 1_800_000_000_000_000;

/// Results of the tests.
pub(crate) struct Ran {
    /// In the order of the file.
    pub(crate) outcomes: Vec<Outcome>,
    /// Lines that were never run, of each file of the script, if somebody wants to know.
    pub(crate) never: Vec<(String, Vec<u32>)>,
}

/// Result of one test.
pub(crate) struct Outcome {
    /// Name of its function.
    pub(crate) name: String,
    /// Lines that the test printed.
    pub(crate) said: Vec<String>,
    /// Why it failed.
    pub(crate) error: Option<String>,
}

/// Runs the tests of a script: the functions of a file whose names begin with `test_`.
pub(crate) fn run(
    script: &Arc<Script>,
    (path, text): (&str, &str),
    coverage: bool,
    limits: Limits,
) -> Result<Ran, String> {
    let lines = coverage.then(Rc::<Lines>::default);
    let vm = match &lines {
        Some(lines) => Vm::watched(limits, lines.clone()),
        None => Vm::new(limits),
    };
    let vm = Rc::new(vm.map_err(|failed| failed.0)?);
    let mut outcomes = Vec::new();
    for name in names(path, text)? {
        let bench = Rc::new(Bench::new(vm.clone(), script.clone()));
        let ran = of_one(&bench, (path, text), &name);
        let error = ran.err().map(|error| words(&error));
        let said = bench.host.said.take();
        outcomes.push(Outcome { name, said, error });
    }
    let never = lines.map_or_else(Vec::new, |lines| never(script, &lines));
    Ok(Ran { outcomes, never })
}

fn words(error: &Error) -> String {
    let words = match error {
        Error::CallbackError { cause, .. } => cause.to_string(),
        error => error.to_string(),
    };
    let first = words.lines().next().unwrap_or_default();
    first.trim_start_matches("runtime error: ").to_owned()
}

/// Names of the tests, in the order of the file.
fn names(path: &str, text: &str) -> Result<Vec<String>, String> {
    let list = || -> Result<Vec<(usize, String)>, Error> {
        let (lua, globals) = begun(path, text, None)?;
        let _kept_until_here = lua;
        let mut found = Vec::new();
        for pair in globals.pairs::<Value, Value>() {
            if let (Value::String(name), Value::Function(test)) = pair? {
                let name = name.to_string_lossy();
                if name.starts_with("test_") {
                    found.push((test.info().line_defined.unwrap_or(0), name));
                }
            }
        }
        found.sort();
        Ok(found)
    };
    let found = list().map_err(|error| words(&error))?;
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

/// Runs one test, with everything around it new.
fn of_one(bench: &Rc<Bench>, (path, text): (&str, &str), name: &str) -> Result<(), Error> {
    let (lua, globals) = begun(path, text, Some(bench))?;
    let client: Function = globals.raw_get("=client")?;
    let client: Table = client.call(())?;
    bench.host.client.replace(Some(client.clone()));
    bench.host.packing.replace(Some(Packing::load(&lua)?));
    let test: Function = globals.get(name)?;
    let ran = test.call::<()>(client);
    bench.host.client.replace(None);
    bench.host.packing.replace(None);
    if let Some(session) = bench.session.borrow_mut().take() {
        session
            .disconnect_client()
            .map_err(|failed| Error::runtime(failed.0))?;
    }
    ran
}

/// A VM in which the file of the tests has run, and its globals.
fn begun(path: &str, text: &str, bench: Option<&Rc<Bench>>) -> Result<(Lua, Table), Error> {
    let lua = Lua::new();
    let globals = lua.globals();
    let native = lua.create_table()?;
    if let Some(bench) = bench {
        natives(&lua, &native, bench)?;
        let of = bench.clone();
        let print = lua.create_function(move |lua, values: MultiValue| {
            let tostring: Function = lua.globals().get("tostring")?;
            let said = values
                .into_iter()
                .map(|value| tostring.call::<String>(value));
            let said = said.collect::<Result<Vec<_>, _>>()?.join("\t");
            of.host.said.borrow_mut().push(said);
            Ok(())
        })?;
        globals.set("print", print)?;
    }
    let prelude = lua.load(include_str!("bench.lua")).set_name("=bench");
    let client: Function = prelude.call((native, globals.clone()))?;
    globals.raw_set("=client", client)?;
    lua.load(text).set_name(format!("@{path}")).exec()?;
    Ok((lua, globals))
}

/// Functions that `bench.lua` calls.
fn natives(lua: &Lua, native: &Table, bench: &Rc<Bench>) -> Result<(), Error> {
    let of = bench.clone();
    native.set(
        "query",
        lua.create_function(move |lua, (client, text): (Table, mlua::LuaString)| {
            let packet = [&[COM_QUERY], &*text.as_bytes()].concat();
            told(lua, of.converse(lua, &client, &packet))
        })?,
    )?;
    let of = bench.clone();
    type Execution = (Table, mlua::LuaString, Table);
    native.set(
        "execute",
        lua.create_function(move |lua, (client, text, values): Execution| {
            let packet = [&[COM_STMT_PREPARE], &*text.as_bytes()].concat();
            let prepared = match of.converse(lua, &client, &packet) {
                Ok((prepared, _)) if prepared.get(4) == Some(&0) => prepared,
                other => return told(lua, other),
            };
            let id = prepared.get(5..9).unwrap_or_default();
            let packet = execution(id, &values)?;
            told(lua, of.converse(lua, &client, &packet))
        })?,
    )?;
    let of = bench.clone();
    native.set(
        "facts",
        lua.create_function(move |_, facts: Table| {
            for (name, fact) in [
                ("user", &of.host.user),
                ("schema", &of.host.schema),
                ("client", &of.host.address),
            ] {
                if let Some(said) = facts.get::<Option<String>>(name)? {
                    fact.replace(said);
                }
            }
            Ok(())
        })?,
    )?;
    let of = bench.clone();
    native.set(
        "setting",
        lua.create_function(move |_, (name, value): (String, Value)| {
            let kept = match value {
                Value::Boolean(flag) => Kept::Flag(flag),
                Value::Integer(number) => Kept::Number(number as f64),
                Value::Number(number) => Kept::Number(number),
                Value::String(text) => Kept::Text(text.as_bytes().to_vec()),
                _ => {
                    return Err(Error::runtime(
                        "a setting is a text, a number, true or false",
                    ));
                }
            };
            of.host.settings.borrow_mut().insert(name, kept);
            Ok(())
        })?,
    )?;
    let of = bench.clone();
    native.set(
        "pass",
        lua.create_function(move |_, ms: f64| {
            let passed = (ms.max(0.0) * 1000.0) as u64;
            of.pass(passed).map_err(Error::runtime)
        })?,
    )
}

/// A COM_STMT_EXECUTE.
fn execution(id: &[u8], values: &Table) -> Result<Vec<u8>, Error> {
    let count: usize = values.get("n")?;
    let mut packet = [&[COM_STMT_EXECUTE], id, &[0, 1, 0, 0, 0]].concat();
    if count == 0 {
        return Ok(packet);
    }
    let (mut nulls, mut types, mut bytes) = (vec![0_u8; count.div_ceil(8)], Vec::new(), Vec::new());
    for at in 0..count {
        types.push(match values.raw_get::<Value>(at + 1)? {
            Value::Nil => {
                nulls[at / 8] |= 1 << (at % 8);
                6
            }
            Value::Boolean(flag) => {
                bytes.push(u8::from(flag));
                1
            }
            Value::Integer(number) => {
                bytes.extend_from_slice(&number.to_le_bytes());
                8
            }
            Value::Number(number) => {
                bytes.extend_from_slice(&number.to_le_bytes());
                5
            }
            Value::String(text) => {
                wire::write::Write::lenenc_bytes(&mut bytes, &text.as_bytes());
                253
            }
            _ => {
                return Err(Error::runtime(
                    "a value of an execution is a text, a number, true, false or nil",
                ));
            }
        });
        types.push(0);
    }
    packet.extend_from_slice(&nulls);
    packet.push(1);
    packet.extend_from_slice(&types);
    packet.extend_from_slice(&bytes);
    Ok(packet)
}

/// An answer and whether its rows are binary, or why there is none.
type Answer = Result<(Vec<u8>, bool), String>;

/// Returns what the client gets, as a test sees it; or nothing, and words.
fn told(lua: &Lua, answer: Answer) -> Result<(Option<Table>, Option<String>), Error> {
    let (bytes, is_binary) = match answer {
        Ok(answer) => answer,
        Err(words) => return Ok((None, Some(words))),
    };
    let answered = answered(bytes, is_binary);
    let table = lua.create_table()?;
    let counts = answered.counts;
    if counts.failed {
        let error = lua.create_table()?;
        let first = answered.first().unwrap_or_default();
        let code = first.get(1..3).and_then(|code| code.try_into().ok());
        error.set("code", code.map_or(0, u16::from_le_bytes))?;
        error.set(
            "state",
            lua.create_string(first.get(4..9).unwrap_or_default())?,
        )?;
        error.set(
            "message",
            lua.create_string(first.get(9..).unwrap_or_default())?,
        )?;
        table.set("error", error)?;
        return Ok((Some(table), None));
    }
    if !counts.has_rows {
        table.set("affected_rows", counts.affected as f64)?;
        table.set("insert_id", counts.insert_id as f64)?;
        return Ok((Some(table), None));
    }
    let read = answered.columns();
    let names = (0..read.shapes.len()).map(|at| lua.create_string(answered.names(at)[0]));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let list = lua.create_table()?;
    let put = |row: &Row<'_>| {
        let one = lua.create_table()?;
        for (at, shape) in read.shapes.iter().enumerate() {
            let Some(value) = row.text(at) else { continue };
            let value = match std::str::from_utf8(&value)
                .ok()
                .and_then(|text| text.parse::<f64>().ok())
            {
                Some(number) if crate::outcome::kind(shape.kind) != "t" => Value::Number(number),
                _ => Value::String(lua.create_string(value)?),
            };
            one.raw_set(at + 1, &value)?;
            if let Some(name) = names.get(at) {
                one.raw_set(name, value)?;
            }
        }
        list.raw_push(one)
    };
    let mut at = 0;
    while let Some(done) = answered.row(at, put) {
        done?;
        at += 1;
    }
    table.set("columns", names)?;
    table.set("rows", list)?;
    Ok((Some(table), None))
}

/// An answer with its numbers.
fn answered(bytes: Vec<u8>, is_binary: bool) -> Answered {
    let expect = match is_binary {
        true => follow::Expect::Execute,
        false => follow::Expect::Query,
    };
    let mut response = follow::Response::expect(expect, CAPS);
    // What was written here is well formed.
    let _followed = response.follow(&bytes);
    let counts = Counts {
        failed: matches!(response.outcome(), follow::Outcome::Err { .. }),
        has_rows: response.columns() > 0,
        rows: response.rows(),
        bytes: bytes.len() as u64,
        status: response.status(),
        warnings: response.warnings(),
        affected: response.affected_rows(),
        insert_id: response.insert_id(),
    };
    Answered::new(Some(bytes), CAPS, is_binary, counts)
}

/// A client, a script and a server, for one test.
struct Bench {
    vm: Rc<Vm>,
    script: Arc<Script>,
    host: Rc<Made>,
    session: RefCell<Option<Rc<Scripted>>>,
    /// Texts that the server has prepared; the first one has the id 1.
    prepared: RefCell<Vec<Vec<u8>>>,
    /// Microseconds between the calls of each timer, and when the next one is.
    timers: RefCell<Vec<(u64, u64)>>,
}

impl Bench {
    fn new(vm: Rc<Vm>, script: Arc<Script>) -> Self {
        Self {
            host: Rc::new(Made::of(&script)),
            vm,
            script,
            session: RefCell::default(),
            prepared: RefCell::default(),
            timers: RefCell::default(),
        }
    }

    /// Time passes, and timers run that are due.
    fn pass(&self, us: u64) -> Result<(), String> {
        let session = self.session()?;
        let until = self.host.passed_us.get().saturating_add(us);
        for _ in 0..TICKS_MAX {
            let timers = self.timers.borrow().clone();
            let due = timers.iter().enumerate();
            let due = due.min_by_key(|(_, (_, next))| *next);
            let Some((at, (period, next))) = due.filter(|(_, (_, next))| *next <= until) else {
                self.host.passed_us.set(until);
                return Ok(());
            };
            self.host.passed_us.set(*next);
            done(session.tick(at)).map_err(|Failed(words)| words)?;
            if let Some(timer) = self.timers.borrow_mut().get_mut(at) {
                timer.1 = next.saturating_add(*period);
            }
        }
        Err(format!("timers have run {TICKS_MAX} times at once"))
    }

    /// The session, which begins with the first command.
    fn session(&self) -> Result<Rc<Scripted>, String> {
        if let Some(session) = self.session.borrow().as_ref() {
            return Ok(session.clone());
        }
        let script = &self.script;
        let code = Code {
            chunk: &script.chunk,
            text: &script.text,
            modules: &script.modules,
            has_folders: !script.folders.is_empty(),
        };
        let (host, ms_max) = (self.host.clone(), script.hook_ms_max);
        let begins = Scripted::begin_own(&self.vm, &script.name, code, host, ms_max);
        let session = Rc::new(done(begins).map_err(|failed| failed.0)?);
        let periods = session.periods().map_err(|failed| failed.0)?;
        let now = self.host.passed_us.get();
        let timers = periods.into_iter().map(|ms| (ms * 1000, now + ms * 1000));
        self.timers.replace(timers.collect());
        let said = done(session.has_logged_in(b"\0\0\0\x02\0\0\0"));
        said.map_err(|failed| failed.0)?;
        Ok(self.session.borrow_mut().insert(session).clone())
    }

    /// A command of the client, by way of the script.
    fn converse(&self, lua: &Lua, client: &Table, packet: &[u8]) -> Answer {
        let session = self.session()?;
        let words = |Failed(words): Failed| words;
        let mut answer = None;
        match done(session.read_query(packet)).map_err(words)? {
            Decision::Forward(_) => return self.serve(lua, client, packet, Route::default()),
            Decision::Answer(response) => answer = Some(written(&response, packet)),
            Decision::Queue => {}
            Decision::Unsayable(failed) => return Err(failed.0),
        }
        while let Some(item) = session.next().map_err(words)? {
            let (bytes, is_binary) = self.serve(lua, client, &item.packet, item.route)?;
            if item.is_streamed {
                let mut passage = Passage::new(CAPS, is_binary, item.is_collected, usize::MAX);
                let mut out = Vec::new();
                passage.follow(&session, &bytes, &mut out).map_err(words)?;
                if !passage.is_kept() {
                    answer.get_or_insert((out, is_binary));
                    continue;
                }
            }
            let verdict = judged(&session, &item, (&bytes, is_binary)).map_err(words)?;
            let new = match verdict {
                Verdict::PassOn => (bytes, is_binary),
                Verdict::Instead(response) => written(&response, &item.packet),
                Verdict::Ignore => continue,
                Verdict::Unsayable(failed) => return Err(failed.0),
            };
            answer.get_or_insert(new);
        }
        answer.ok_or_else(|| "the script has left the client without an answer".into())
    }

    /// Returns the server's answer.
    fn serve(&self, lua: &Lua, client: &Table, packet: &[u8], route: Route) -> Answer {
        let text = match packet.split_first() {
            Some((&COM_QUERY, text)) => text.to_vec(),
            Some((&COM_STMT_PREPARE, text)) => {
                let mut prepared = self.prepared.borrow_mut();
                prepared.push(text.to_vec());
                let places = sql::Lexing::Escapes.words(text);
                let places = places.filter(|token| token.is_sign(b'?')).count();
                let mut out = Vec::new();
                let mut writer = wire::resultset::Writer::new(&mut out, 0, CAPS, STATUS);
                let id = u32::try_from(prepared.len()).unwrap_or(u32::MAX);
                writer.prepared(id, u16::try_from(places).unwrap_or(u16::MAX), &[]);
                return Ok((out, false));
            }
            Some((&COM_STMT_EXECUTE, rest)) => {
                let id = rest.first_chunk().map_or(0, |id| u32::from_le_bytes(*id));
                let prepared = self.prepared.borrow();
                let at = (id as usize).checked_sub(1);
                let text = at.and_then(|at| prepared.get(at));
                text.cloned().ok_or("there is no such prepared statement")?
            }
            _ => return Err("a script's test knows queries and executions".into()),
        };
        let words = |error: Error| words(&error);
        sent(lua, client, &text, route).map_err(words)?;
        let response = self.host.reply(&text)?;
        Ok(written(&response, packet))
    }
}

/// Notes what has come to the server, and where.
fn sent(lua: &Lua, client: &Table, text: &[u8], route: Route) -> Result<(), Error> {
    let (texts, routes): (Table, Table) = (client.get("sent")?, client.get("routes")?);
    texts.raw_push(lua.create_string(text)?)?;
    let way = lua.create_table()?;
    way.set("hostgroup", route.hostgroup)?;
    way.set("cache_ttl", route.cache_ttl_ms)?;
    routes.raw_push(way)
}

fn judged(
    session: &Scripted,
    item: &Item,
    (bytes, is_binary): (&[u8], bool),
) -> Result<Verdict, Failed> {
    let mut outcome = answered(bytes.to_vec(), is_binary);
    if !item.is_collected {
        outcome.packets = None;
    }
    done(session.read_query_result(item, outcome))
}

/// A response as bytes, for a command, and whether its rows are binary.
fn written(response: &Response, packet: &[u8]) -> (Vec<u8>, bool) {
    let is_binary = packet.first() == Some(&COM_STMT_EXECUTE);
    let mut out = Vec::new();
    response.write(&mut out, 0, (CAPS, STATUS, 0), is_binary);
    (out, is_binary)
}

/// Looks at a future until it is done: nothing here waits.
fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}

/// The session that the script finds around it.
struct Made {
    user: RefCell<String>,
    schema: RefCell<String>,
    address: RefCell<String>,
    settings: RefCell<BTreeMap<String, Kept>>,
    shared: Shared,
    /// Microseconds that have passed by the test's word.
    passed_us: Cell<u64>,
    looked: Cell<u64>,
    /// Lines that the test and its script have printed.
    said: RefCell<Vec<String>>,
    /// The test's client, which knows the server's answers.
    client: RefCell<Option<Table>>,
    /// Functions that pack those answers, in the VM of the test.
    packing: RefCell<Option<Packing>>,
    name: Box<str>,
    /// Files that the script has written.
    files: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Made {
    fn of(script: &Script) -> Self {
        let settings = script.settings.iter().map(|(name, setting)| {
            let kept = match setting {
                config::Setting::Number(number) => Kept::Number(number.0),
                config::Setting::Text(text) => Kept::Text(text.as_bytes().to_vec()),
                config::Setting::Flag(flag) => Kept::Flag(*flag),
            };
            (name.to_string(), kept)
        });
        Self {
            user: RefCell::new("app".into()),
            schema: RefCell::new("shop".into()),
            address: RefCell::new("192.0.2.1".into()),
            settings: RefCell::new(settings.collect()),
            shared: Shared::default(),
            passed_us: Cell::default(),
            looked: Cell::default(),
            said: RefCell::default(),
            client: RefCell::default(),
            packing: RefCell::default(),
            name: script.name.clone(),
            files: RefCell::default(),
        }
    }

    /// Does a deed with a file that the script has written.
    fn file(&self, place: Place, ask: FileAsk) -> Reply {
        let (Place::Own(name) | Place::At(name)) = place;
        let mut files = self.files.borrow_mut();
        let found = match &ask {
            FileAsk::Read => files.get(&name).cloned(),
            FileAsk::Remove | FileAsk::Rename(_) => files.remove(&name),
        };
        match (found, ask) {
            (None, _) => Reply::Refused("No such file or directory".into()),
            (Some(text), FileAsk::Rename(Place::Own(to) | Place::At(to))) => {
                files.insert(to, text);
                Reply::File(Vec::new())
            }
            (Some(text), _) => Reply::File(text),
        }
    }

    /// The server's answer to a text.
    fn reply(&self, text: &[u8]) -> Result<Response, String> {
        let client = self.client.borrow().clone();
        let client = client.ok_or("the test is over")?;
        let ask = || -> Result<Value, Error> {
            let reply: Function = client.get("reply")?;
            reply.call((client.clone(), mlua::BString::from(text)))
        };
        let made = ask().map_err(|error| words(&error))?;
        let packing = self.packing.borrow();
        let reader = Reader {
            room: Room::of(self.result_len_max()),
            packing: packing.as_ref().ok_or("the test is over")?,
        };
        Response::of(&made, None, &reader).map_err(|Bad(words)| words)
    }

    /// The answer to an HTTP call.
    fn called(&self, wish: &HttpWish) -> Reply {
        let method = if wish.is_post { "POST" } else { "GET" };
        let host = &wish.host;
        let asked = format!("{method} {host}:{}{}", wish.port, wish.target);
        self.notes("called", asked.as_bytes());
        let client = self.client.borrow().clone();
        let ask = || -> Result<(u16, mlua::BString), Error> {
            let client = client.ok_or_else(|| Error::runtime("the test is over"))?;
            let reply: Function = client.get("answered")?;
            reply.call((client, asked, mlua::BString::from(&*wish.body)))
        };
        match ask() {
            Ok((status, body)) => Reply::Http(status, body.to_vec(), Vec::new()),
            Err(error) => Reply::Refused(words(&error)),
        }
    }

    fn notes(&self, list: &str, text: &[u8]) {
        let client = self.client.borrow().clone();
        if let Some(Ok(list)) = client.map(|client| client.get::<Table>(list)) {
            // A test that has taken its list away has none.
            let _noted = list.raw_push(mlua::BString::from(text));
        }
    }
}

impl Host for Made {
    fn now_us(&self) -> u64 {
        self.looked.set(self.looked.get() + TICK_US);
        self.looked.get()
    }

    fn wall_us(&self) -> u64 {
        BEGIN_US.saturating_add(self.passed_us.get())
    }

    fn log(&self, line: &str) {
        self.notes("log", line.as_bytes());
    }

    fn place(&self, file: &str) -> Result<Place, String> {
        Folders::default().place(file)
    }

    fn append(&self, file: &Place, text: &[u8]) {
        let (Place::Own(name) | Place::At(name)) = file;
        self.notes("log", &[name.as_bytes(), b": ", text].concat());
        let mut files = self.files.borrow_mut();
        let before = files.entry(name.clone()).or_default();
        before.extend_from_slice(text);
    }

    fn empty(&self, file: &Place) {
        let (Place::Own(name) | Place::At(name)) = file;
        self.files.borrow_mut().insert(name.clone(), Vec::new());
    }

    /// Nothing but what the test has set: it runs everywhere in the same way.
    fn environment(&self, _: &str) -> Option<String> {
        None
    }

    fn mail(&self, mail: Letter) -> Result<(), String> {
        let words = format!("mail to {}: {}", mail.to.join(", "), mail.subject);
        self.notes("log", words.as_bytes());
        Ok(())
    }

    fn ran(&self, _: Call<'_>) {}

    fn ask<'a>(&'a self, ask: Ask) -> Pin<Box<dyn Future<Output = Reply> + 'a>> {
        let reply = match ask {
            Ask::Sleep(us) => {
                self.passed_us.set(self.passed_us.get().saturating_add(us));
                Reply::Slept
            }
            Ask::Connect(_) => Reply::Connected(1),
            Ask::File(place, ask) => self.file(place, ask),
            Ask::Http(wish) => self.called(&wish),
            Ask::Execute { sql, .. } | Ask::Query(sql, _) => {
                self.notes("asked", &sql);
                match self.reply(&sql) {
                    Ok(Response::Err { message, .. }) => {
                        Reply::Refused(String::from_utf8_lossy(&message).into_owned())
                    }
                    Ok(Response::Ok {
                        affected,
                        insert_id,
                    }) => Reply::Changed(affected, insert_id),
                    Ok(response) => {
                        let (bytes, _) = written(&response, &[COM_QUERY]);
                        Reply::Rows(answered(bytes, false))
                    }
                    Err(words) => Reply::Refused(words),
                }
            }
        };
        Box::pin(std::future::ready(reply))
    }

    fn close(&self, _: u32) {}

    fn stand_in(&self) -> Vec<u8> {
        b"stand-in".to_vec()
    }

    fn auth_plugin(&self) -> Option<String> {
        None
    }

    fn servers(&self) -> Vec<Server> {
        vec![Server {
            host: "192.0.2.2".into(),
            port: 3306,
            standing: Standing::Up,
            clients: 1,
            idle_own: 1,
            idle_any: 1,
            ..Server::default()
        }]
    }

    fn current(&self) -> usize {
        1
    }

    fn noted(&self, server: &Server, field: &str) -> Option<Kept> {
        let key = server.note(field);
        let kept = self.shared.keep((&self.name, &key), Keep::Get, (0, None));
        kept.ok().flatten()
    }

    fn note(&self, server: &Server, field: &str, value: Option<Kept>) -> Result<(), String> {
        let key = server.note(field);
        let kept = self
            .shared
            .keep((&self.name, &key), Keep::Set(value), (0, None));
        kept.map(drop)
    }

    fn user(&self) -> String {
        self.user.borrow().clone()
    }

    fn schema(&self) -> String {
        self.schema.borrow().clone()
    }

    fn thread(&self) -> u32 {
        1
    }

    fn version(&self) -> u32 {
        80000
    }

    fn ends(&self) -> [(String, u16); 2] {
        [
            (self.address.borrow().clone(), 50000),
            ("192.0.2.3".into(), 6033),
        ]
    }

    fn result_len_max(&self) -> usize {
        64 << 20
    }

    fn reading(&self) -> Reading {
        Reading::default()
    }

    fn caps(&self) -> Caps {
        CAPS
    }

    fn charset(&self) -> Option<&'static str> {
        Some("utf8mb4")
    }

    fn setting(&self, name: &str) -> Option<Kept> {
        self.settings.borrow().get(name).cloned()
    }

    fn shared(&self, key: &[u8], what: Keep, ttl_us: Option<u64>) -> Result<Option<Kept>, String> {
        let times = (self.passed_us.get(), ttl_us);
        self.shared.keep((&self.name, key), what, times)
    }
}

/// Lines of a script and of what it requires that were not run.
fn never(script: &Script, ran: &Lines) -> Vec<(String, Vec<u32>)> {
    let files = script
        .modules
        .iter()
        .map(|module| (&*module.chunk, &*module.text));
    let files = [(&*script.chunk, &*script.text)].into_iter().chain(files);
    let missing = files.map(|(chunk, text)| {
        let lines = syntax::read(text).map(|block| syntax::lines(&block));
        let lines = lines.unwrap_or_default().into_iter();
        let never = lines.filter(|line| !ran.has(chunk, *line));
        (chunk.to_owned(), never.collect())
    });
    missing.collect()
}
