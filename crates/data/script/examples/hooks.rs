//! Nanoseconds of a hook that sees a statement, of both APIs. `cargo run --release -p script --example hooks`; a part
//! of a name and a number of turns may follow, for counting instructions.
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
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next().unwrap_or_default();
    let turns = arguments
        .next()
        .map_or(TURNS, |turns| turns.parse().unwrap());
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
        (
            "read_query, tokenizer",
            "local t = require('mysql.tokenizer')
             function read_query(packet)
               for _, one in ipairs(t.tokenize(packet:sub(2))) do
                 if one.token_name == 'TK_SQL_DROP' then return end
               end
             end",
        ),
        (
            "read_query, a loop of 1,000 sums",
            "function read_query(packet)
               local n = 0
               for i = 1, 1000 do n = n + i % 7 end
               return n < 0 and 1 or nil
             end",
        ),
        (
            "read_query, a table of 50 texts",
            "function read_query(packet)
               local all = {}
               for i = 1, 50 do all[#all + 1] = packet:sub(2, 5) .. i end
               if #table.concat(all, ',') == 1 then return 1 end
             end",
        ),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let world = world(text);
        for _ in 0..2 {
            world.host.calls.take();
            let began = Instant::now();
            for _ in 0..turns {
                black_box(world.script.read_query(black_box(&packet))).unwrap();
            }
            let each = began.elapsed().as_nanos() / u128::from(turns);
            println!("{each:6} ns  {name}");
        }
    }
}
