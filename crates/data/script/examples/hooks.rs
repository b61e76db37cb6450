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

use script::{Counts, Outcome};
use session::{query, world};
use std::hint::black_box;
use std::time::Instant;
use wire::resultset::{Column, Writer};

/// The allocator that the proxy has (decision 0021).
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
    for (name, rows, text) in [
        ("answer of 1 row, unread", 1, UNREAD),
        ("answer of 1 row, copied", 1, COPIED),
        ("answer of 1,000 rows, unread", 1000, UNREAD),
        ("answer of 1,000 rows, read", 1000, READ),
        ("answer of 1,000 rows, copied", 1000, COPIED),
        ("answer of 1,000 rows, r:rows", 1000, ROWS),
        ("answer of 1,000 rows, r:map", 1000, MAPPED),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let world = world(text);
        let turns = (turns / rows).max(1);
        for _ in 0..2 {
            world.host.calls.take();
            let began = Instant::now();
            for _ in 0..turns {
                world.script.read_query(&packet).unwrap();
                let item = world.script.next().unwrap().unwrap();
                let judged = world.script.read_query_result(&item, answer(rows));
                black_box(judged).unwrap();
            }
            let each = began.elapsed().as_nanos() / u128::from(turns);
            println!("{each:6} ns  {name}");
        }
    }
}

/// A result of a number and a text.
fn answer(rows: u32) -> Outcome {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 0, 0, 2);
    writer.columns(&[Column::integer("id"), Column::text("name")]);
    for row in 0..rows {
        let id = row.to_string();
        writer.text_row([Some(id.as_bytes()), Some(&b"a text of a row"[..])]);
    }
    writer.end(0);
    let counts = Counts {
        has_rows: true,
        rows: rows.into(),
        status: 2,
        ..Counts::default()
    };
    Outcome::new(Some(out), 0, false, counts)
}

const UNREAD: &str = "
    function read_query(packet)
      proxy.queries:append(1, packet, { resultset_is_needed = true })
      return proxy.PROXY_SEND_QUERY
    end
    function read_query_result(inj)
      if inj.id == 2 then for row in inj.resultset.rows do end end
    end";
const READ: &str = "
    function read_query(packet)
      proxy.queries:append(1, packet, { resultset_is_needed = true })
      return proxy.PROXY_SEND_QUERY
    end
    function read_query_result(inj)
      local n = 0
      for row in inj.resultset.rows do n = n + #row[2] end
    end";
const COPIED: &str = "
    function read_query(packet)
      proxy.queries:append(1, packet, { resultset_is_needed = true })
      return proxy.PROXY_SEND_QUERY
    end
    function read_query_result(inj)
      local fields, rows = {}, {}
      for at, field in ipairs(inj.resultset.fields) do fields[at] = { type = field.type, name = field.name } end
      for row in inj.resultset.rows do rows[#rows + 1] = row end
      proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
      return proxy.PROXY_SEND_RESULT
    end";
const ROWS: &str = "
    local m = require('millrace')
    function m.on.statement(s) end
    function m.on.result(s, r)
      local n = 0
      for row in r:rows() do n = n + row.id end
    end";
const MAPPED: &str = "
    local m = require('millrace')
    function m.on.statement(s) end
    function m.on.result(s, r) return r:map(function(row) row.name = 'x' end, { 'name' }) end";
