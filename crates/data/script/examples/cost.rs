//! Nanoseconds of a hook that sees a statement, of both APIs. `cargo run --release -p script --example cost`
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "it measures, and shows what it has measured"
)]

#[path = "../tests/session/mod.rs"]
mod session;

use session::{query, world};
use std::hint::black_box;
use std::time::Instant;

const TURNS: u32 = 200_000;

fn main() {
    let packet = query("SELECT a, b FROM t WHERE id = 5");
    for (name, text) in [
        ("read_query, empty", "function read_query(packet) end"),
        (
            "m.on.statement, empty",
            "local m = require('millrace') function m.on.statement(s) end",
        ),
        (
            "m.on.statement, s.text",
            "local m = require('millrace') function m.on.statement(s) if s.text:byte() == 1 then return m.pass() end end",
        ),
        (
            "m.on.statement, s.kind and s.digest",
            "local m = require('millrace') function m.on.statement(s) if s.kind == s.digest then return m.pass() end end",
        ),
        (
            "m.on.statement, m.shared.add",
            "local m = require('millrace') function m.on.statement(s) m.shared.add('n') end",
        ),
    ] {
        let world = world(text);
        for _ in 0..2 {
            world.host.calls.take();
            let began = Instant::now();
            for _ in 0..TURNS {
                black_box(world.script.read_query(black_box(&packet))).unwrap();
            }
            let each = began.elapsed().as_nanos() / u128::from(TURNS);
            println!("{each:6} ns  {name}");
        }
    }
}
