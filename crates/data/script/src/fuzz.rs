//! Fuzzing of what scripts hand back: a script is made from bytes, whose answers, return codes and queued
//! packets are of any type. Whatever it says is refused in words, or is an answer that a client reads.

use crate::ask::{Ask, Reply};
use crate::host::{Call, Host, Server};
use crate::meaning::Reading;
use crate::outcome::{Counts, Outcome};
use crate::response::Response;
use crate::scripted::{Decision, Scripted, Verdict};
use crate::shared::{Keep, Kept};
use crate::text::Level;
use crate::vm::{Code, Limits, Vm};
use bridge::Letter;
use config::Place;
use std::fmt::Write as _;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use wire::caps::{self, Caps};
use wire::command::COM_QUERY;
use wire::response::{Expect, Follow, Response as Following};
use wire::resultset::{Column, Writer};

const CAPS: Caps = caps::PROTOCOL_41 | caps::MULTI_RESULTS | caps::PS_MULTI_RESULTS;
/// Tables in tables at most.
const DEPTH_MAX: u32 = 6;
/// Names that `proxy.response` and its parts have.
const NAMES: [&str; 16] = [
    "type",
    "resultset",
    "resultsets",
    "fields",
    "rows",
    "packets",
    "errmsg",
    "errcode",
    "errno",
    "sqlstate",
    "name",
    "affected_rows",
    "insert_id",
    "mapped",
    "columns",
    "n",
];
/// Numbers that mean something somewhere, or nothing anywhere.
const NUMBERS: [&str; 16] = [
    "0", "1", "2", "4", "255", "250", "-1", "-6", "0/0", "1/0", "-1/0", "1e308", "2^53", "0.5",
    "4097", "-2^63",
];
/// Bytes that are no text.
const PIECES: [&str; 8] = [
    "\\000",
    "\\254",
    "\\255#HY000",
    "\\000\\001\\000",
    "\\001\\002\\003",
    "é",
    "1",
    "2008-12-24",
];

/// A script's text, made from bytes.
struct Maker<'a> {
    data: std::slice::Iter<'a, u8>,
}

impl Maker<'_> {
    fn byte(&mut self) -> u8 {
        self.data.next().copied().unwrap_or(0)
    }

    fn one_of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        let at = usize::from(self.byte());
        all.get(at % all.len()).copied().unwrap_or_default()
    }

    /// An expression of Lua.
    fn value(&mut self, depth: u32) -> String {
        match self.byte() % 12 {
            0 => "nil".into(),
            1 => "true".into(),
            2 | 3 => self.one_of(&NUMBERS).into(),
            4 | 5 => {
                let (one, other) = (self.one_of(&PIECES), self.one_of(&PIECES));
                format!("\"{one}{other}\"")
            }
            6 => format!("(\"{}\"):rep(300)", self.one_of(&PIECES)),
            7 => self
                .one_of(&[
                    "function() end",
                    "newproxy()",
                    "coroutine.create(print)",
                    "print",
                ])
                .into(),
            8 => format!(
                "setmetatable({}, {{ __index = function() error(\"no\") end }})",
                self.table(depth)
            ),
            _ => self.table(depth),
        }
    }

    fn table(&mut self, depth: u32) -> String {
        if depth == DEPTH_MAX {
            return "{}".into();
        }
        let mut text = "{ ".to_owned();
        for _ in 0..self.byte() % 5 {
            match self.byte() % 4 {
                0 => text.push_str(&self.value(depth + 1)),
                _ => {
                    let _ = write!(text, "{} = ", self.one_of(&NAMES));
                    text.push_str(&self.value(depth + 1));
                }
            }
            text.push_str(", ");
        }
        text.push('}');
        text
    }

    /// Names along which a value comes to where it is looked at.
    fn answer(&mut self) -> String {
        let value = self.value(1);
        match self.byte() % 6 {
            0 => value,
            1 => format!(
                "{{ type = 0, resultset = {{ fields = {value}, rows = {} }} }}",
                self.value(2)
            ),
            2 => format!(
                "{{ type = 0, resultset = {{ fields = {{ {{ name = \"a\", type = {} }} }}, rows = {{ {{ {value} }} }} }} }}",
                self.one_of(&NUMBERS)
            ),
            3 => format!(
                "{{ type = 0, resultsets = {{ {value}, {} }} }}",
                self.value(2)
            ),
            4 => format!(
                "{{ type = 255, errmsg = {value}, errcode = {}, sqlstate = {} }}",
                self.value(5),
                self.value(5)
            ),
            _ => format!("{{ type = 250, packets = {{ {value} }} }}"),
        }
    }

    fn script(&mut self) -> String {
        let mut hooks = String::new();
        for hook in ["read_query", "read_query_result"] {
            let (answer, id, packet, options) =
                (self.answer(), self.value(4), self.value(5), self.value(4));
            let code = match self.byte() % 4 {
                0 => self.value(4),
                1 => "1".into(),
                _ => "2".into(),
            };
            let _ = writeln!(
                hooks,
                "function {hook}(packet)
                   pcall(function() proxy.queries:append({id}, {packet}, {options}) end)
                   proxy.queries:append(1, \"\\3x\")
                   pcall(function() proxy.connection.backend_ndx = {} end)
                   proxy.response = {answer}
                   return {code}
                 end",
                self.value(5)
            );
        }
        hooks
    }
}

/// A session without anything around it.
struct Nothing;

impl Host for Nothing {
    fn now_us(&self) -> u64 {
        0
    }

    fn wall_us(&self) -> u64 {
        0
    }

    fn log(&self, _: &str) {}

    fn place(&self, file: &str) -> Result<Place, String> {
        Ok(Place::Own(file.into()))
    }

    fn append(&self, _: &Place, _: &[u8]) {}

    fn empty(&self, _: &Place) {}

    fn environment(&self, _: &str) -> Option<String> {
        None
    }
    fn mail(&self, _: Letter) -> Result<(), String> {
        Ok(())
    }

    fn ran(&self, _: Call<'_>) {}

    fn ask<'a>(&'a self, _: Ask) -> Pin<Box<dyn Future<Output = Reply> + 'a>> {
        Box::pin(std::future::ready(Reply::Slept))
    }

    fn close(&self, _: u32) {}

    fn stand_in(&self) -> Vec<u8> {
        Vec::new()
    }

    fn auth_plugin(&self) -> Option<String> {
        None
    }

    fn servers(&self) -> Vec<Server> {
        vec![Server::default()]
    }

    fn current(&self) -> usize {
        1
    }

    fn noted(&self, _: &Server, _: &str) -> Option<Kept> {
        None
    }

    fn note(&self, _: &Server, _: &str, _: Option<Kept>) -> Result<(), String> {
        Ok(())
    }

    fn user(&self) -> String {
        String::new()
    }

    fn schema(&self) -> String {
        String::new()
    }

    fn thread(&self) -> u32 {
        1
    }

    fn version(&self) -> u32 {
        80000
    }

    fn ends(&self) -> [(String, u16); 2] {
        [const { (String::new(), 0) }; 2]
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
        None
    }

    fn setting(&self, _: &str) -> Option<Kept> {
        None
    }

    fn shared(&self, _: &[u8], _: Keep, _: Option<u64>) -> Result<Option<Kept>, String> {
        Ok(None)
    }
}

/// The outcome of what waits for nothing.
fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("a script that asks nobody waits"),
    }
}

/// An answer is one that a client reads to its end. What a script writes byte by byte is its own.
fn check(response: &Response) {
    for (is_binary, expect) in [(false, Expect::Query), (true, Expect::Execute)] {
        for caps in [CAPS, CAPS | caps::DEPRECATE_EOF, caps::PROTOCOL_41] {
            let response = response.for_client(caps, is_binary);
            let mut out = Vec::new();
            response.write(&mut out, 0, (caps, 2, 0), is_binary);
            if matches!(*response, Response::Raw(_)) {
                continue;
            }
            let mut following = Following::expect(expect, caps);
            let followed = following.follow(&out);
            assert_eq!(
                followed,
                Ok(Follow::Ended { used: out.len() }),
                "{response:?}"
            );
        }
    }
}

fn source() -> Outcome {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 0, CAPS, 2);
    writer.columns(&[Column::text("a"), Column::unsigned("b")]);
    writer.text_row([Some(&b"x"[..]), Some(b"1")]);
    writer.end(0);
    let counts = Counts {
        has_rows: true,
        rows: 1,
        ..Counts::default()
    };
    Outcome::new(Some(out), CAPS, false, counts)
}

thread_local! {
    static VM: Rc<Vm> = Rc::new(
        Vm::new(Limits { memory_max: 64 << 20 }).expect("there is memory for one")
    );
}

/// Fuzz target: whatever scripts hand back is refused in words, or is an answer that a client reads.
pub fn fuzz_handed_back(data: &[u8]) {
    let text: Arc<str> = Maker { data: data.iter() }.script().into();
    let code = Code {
        chunk: "t.lua",
        text: &text,
        modules: &[],
        has_folders: true,
    };
    let vm = VM.with(Rc::clone);
    vm.forget_compiled();
    let script = done(Scripted::begin(
        &vm,
        "fuzz",
        code,
        Level::V06,
        Rc::new(Nothing),
        100,
    ));
    let script = script.unwrap_or_else(|failed| panic!("{failed}\n{text}"));
    let decided = done(script.read_query(&[COM_QUERY, b'x']));
    if let Ok(Decision::Answer(response)) = &decided {
        check(response);
    }
    let mut items = Vec::new();
    if matches!(decided, Ok(Decision::Queue | Decision::Answer(_))) {
        while let Ok(Some(item)) = script.next() {
            items.push(item);
        }
    }
    if let Some(item) = items.first()
        && let Ok(Verdict::Instead(response)) = done(script.read_query_result(item, source()))
    {
        check(&response);
    }
    let _wishes = script.wishes();
}
