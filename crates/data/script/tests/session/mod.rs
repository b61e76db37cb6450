//! A session that is made up, and its world.
#![allow(dead_code, missing_docs, reason = "each test uses a part of it")]

use bridge::Letter;
use config::{Folders, Place};
use lua::required::Module;
use script::{
    Ask, Call, Chosen, Code, Decision, Failed, Host, Item, Level, Limits, Outcome, Reply, Response,
    Scripted, Server, Standing, Verdict, Vm, Wishes,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// A command that goes on as it came.
pub(crate) const FORWARD: Decision = Decision::Forward(Chosen::Unsaid);

#[derive(Default)]
pub(crate) struct Session {
    time_us: Cell<u64>,
    /// A clock that goes, in place of the one that is looked at.
    clock: Option<Instant>,
    pub(crate) lines: RefCell<Vec<String>>,
    pub(crate) files: RefCell<Vec<(String, String)>>,
    pub(crate) mails: RefCell<Vec<Letter>>,
    pub(crate) asked: RefCell<Vec<Ask>>,
    pub(crate) replies: RefCell<VecDeque<Reply>>,
    pub(crate) closed: RefCell<Vec<u32>>,
    pub(crate) calls: RefCell<Vec<String>>,
    pub(crate) shared: script::Shared,
}

impl Session {
    /// One by a clock that goes.
    pub(crate) fn of(clock: Instant) -> Self {
        Self {
            clock: Some(clock),
            ..Self::default()
        }
    }
}

impl Host for Session {
    /// Time passes when somebody looks.
    #[allow(
        clippy::disallowed_methods,
        reason = "a script's time is a real clock's here"
    )]
    fn now_us(&self) -> u64 {
        if let Some(clock) = self.clock {
            return u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX);
        }
        self.time_us.set(self.time_us.get() + 100);
        self.time_us.get()
    }

    fn wall_us(&self) -> u64 {
        1_200_000_000_000_005
    }

    fn log(&self, line: &str) {
        self.lines.borrow_mut().push(line.to_owned());
    }

    fn place(&self, file: &str) -> Result<Place, String> {
        Folders::parse("/srv").expect("a folder").place(file)
    }

    fn append(&self, file: &Place, text: &[u8]) {
        let text = String::from_utf8_lossy(text).into_owned();
        let (Place::Own(name) | Place::At(name)) = file;
        self.files.borrow_mut().push((name.clone(), text));
    }

    fn empty(&self, file: &Place) {
        self.append(file, b"(empty)");
    }

    fn environment(&self, name: &str) -> Option<String> {
        (name == "LANG").then(|| "C".to_owned())
    }

    fn mail(&self, mail: Letter) -> Result<(), String> {
        if mail.host == "refused" {
            return Err("refused:25 is none".into());
        }
        self.mails.borrow_mut().push(mail);
        Ok(())
    }

    fn ran(&self, call: Call<'_>) {
        let said = format!("{} {} {:?}", call.hook, call.waits, call.error);
        self.calls.borrow_mut().push(said);
    }

    /// Answers at the second look.
    fn ask<'a>(&'a self, ask: Ask) -> Pin<Box<dyn Future<Output = Reply> + 'a>> {
        self.asked.borrow_mut().push(ask);
        Box::pin(async {
            let mut was_looked_at = false;
            std::future::poll_fn(|_| match std::mem::replace(&mut was_looked_at, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            let reply = self.replies.borrow_mut().pop_front();
            reply.unwrap_or_else(|| Reply::Refused("nobody answers".into()))
        })
    }

    fn close(&self, connection: u32) {
        self.closed.borrow_mut().push(connection);
    }

    fn stand_in(&self) -> Vec<u8> {
        b"stand-in".to_vec()
    }

    fn auth_plugin(&self) -> Option<String> {
        Some("mysql_native_password".into())
    }

    fn servers(&self) -> Vec<Server> {
        let server = |host: &str, is_reader| {
            let mut server = Server {
                host: host.into(),
                port: 3306,
                is_reader,
                standing: Standing::Up,
                clients: 3,
                idle_own: 2,
                idle_any: 4,
                ..Server::default()
            };
            if self.noted(&server, "state").is_some() {
                server.standing = Standing::Down;
            }
            server
        };
        vec![server("10.0.0.1", false), server("::1", true)]
    }

    fn current(&self) -> usize {
        1
    }

    fn noted(&self, server: &Server, field: &str) -> Option<script::Kept> {
        let key = server.note(field);
        let kept = self.shared.keep(("s", &key), script::Keep::Get, (0, None));
        kept.expect("reading needs no room")
    }

    fn note(
        &self,
        server: &Server,
        field: &str,
        value: Option<script::Kept>,
    ) -> Result<(), String> {
        let key = server.note(field);
        let kept = self
            .shared
            .keep(("s", &key), script::Keep::Set(value), (0, None));
        kept.map(drop)
    }

    fn user(&self) -> String {
        "app".into()
    }

    fn schema(&self) -> String {
        "shop".into()
    }

    fn thread(&self) -> u32 {
        7
    }

    fn version(&self) -> u32 {
        50114
    }

    fn result_len_max(&self) -> usize {
        1 << 20
    }

    fn reading(&self) -> script::Reading {
        script::Reading::default()
    }

    fn caps(&self) -> wire::caps::Caps {
        wire::caps::PROTOCOL_41
    }

    fn charset(&self) -> Option<&'static str> {
        Some("utf8mb4")
    }

    fn setting(&self, name: &str) -> Option<script::Kept> {
        (name == "limit").then_some(script::Kept::Number(3.0))
    }

    fn shared(
        &self,
        key: &[u8],
        what: script::Keep,
        ttl_us: Option<u64>,
    ) -> Result<Option<script::Kept>, String> {
        let times = (self.time_us.get(), ttl_us);
        self.shared.keep(("test", key), what, times)
    }

    fn ends(&self) -> [(String, u16); 2] {
        [("10.0.0.9".into(), 50000), ("/run/m.sock".into(), 0)]
    }
}

pub(crate) fn vm() -> Rc<Vm> {
    let limits = Limits {
        memory_max: 64 << 20,
    };
    Rc::new(Vm::new(limits).expect("there is memory"))
}

pub(crate) struct World {
    pub(crate) host: Rc<Session>,
    pub(crate) script: Script,
}

/// A script whose hooks are waited for.
pub(crate) struct Script(pub(crate) Scripted);

impl Script {
    pub(crate) fn read_query(&self, packet: &[u8]) -> Result<Decision, Failed> {
        done(self.0.read_query(packet))
    }

    pub(crate) fn read_query_result(
        &self,
        item: &Item,
        outcome: Outcome,
    ) -> Result<Verdict, Failed> {
        done(self.0.read_query_result(item, outcome))
    }

    pub(crate) fn has_logged_in(&self) -> Result<Option<Response>, Failed> {
        done(self.0.has_logged_in(b"\0\0\0\x02\0\0\0"))
    }

    pub(crate) fn next(&self) -> Result<Option<Item>, Failed> {
        self.0.next()
    }

    pub(crate) fn connect_server(&self) -> Result<(Chosen, Option<Response>), Failed> {
        done(self.0.connect_server())
    }

    pub(crate) fn wishes(&self) -> Wishes {
        self.0.wishes()
    }

    pub(crate) fn disconnect_client(&self) -> Result<(), Failed> {
        self.0.disconnect_client()
    }
}

/// Looks at a future until it is done.
pub(crate) fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return done;
        }
    }
}

pub(crate) fn begin(vm: &Rc<Vm>, text: &str) -> Result<World, Failed> {
    begin_with(vm, &text.into(), &[])
}

/// A session of a script with files beside it. One text is one script.
pub(crate) fn begin_with(
    vm: &Rc<Vm>,
    text: &Arc<str>,
    modules: &[Module],
) -> Result<World, Failed> {
    begin_before(vm, text, modules, Rc::new(Session::default()))
}

/// A session before a host that is given.
pub(crate) fn begin_before(
    vm: &Rc<Vm>,
    text: &Arc<str>,
    modules: &[Module],
    host: Rc<Session>,
) -> Result<World, Failed> {
    let code = Code {
        chunk: "t.lua",
        text,
        modules,
        has_folders: false,
    };
    let script = Scripted::begin(vm, "test", code, Level::of(text), host.clone(), 10);
    let script = Script(done(script)?);
    Ok(World { host, script })
}

pub(crate) fn world(text: &str) -> World {
    begin(&vm(), text).expect("a script that runs")
}

pub(crate) fn query(text: &str) -> Vec<u8> {
    [b"\x03", text.as_bytes()].concat()
}
