//! What no client library asks for, in raw packets: the answers through Millrace are those of the server, byte for byte.
#![forbid(unsafe_code)]

use conformance::clients::{Client, app};
use conformance::compare::difference;
use conformance::proxy::{DRIVERS, Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::{Arc, OnceLock};
use wire::caps::{self, Caps};
use wire::response::Expect;

/// What a client does; the text is all that it saw.
type Script = fn(&mut Raw) -> Result<String, String>;

/// Name, capabilities besides the plain ones, script.
const SCRIPTS: &[(&str, Caps, Script)] = &[
    ("a_cursor_gives_its_rows_bit_by_bit", 0, a_cursor),
    ("a_cursor_gives_its_rows_bit_by_bit_without_eof", caps::DEPRECATE_EOF, a_cursor),
    ("cursors_end_with_reset_close_and_execution", caps::DEPRECATE_EOF, cursors_end),
    ("two_cursors_of_one_text_are_two", 0, two_cursors),
    ("what_has_no_rows_opens_no_cursor", caps::DEPRECATE_EOF, no_cursor),
    ("unknown_statements_are_refused_in_the_words_of_servers", 0, unknown_statements),
    ("a_changed_table_is_seen_by_the_next_execution", caps::DEPRECATE_EOF, a_changed_table),
    ("long_data_serves_one_execution", 0, long_data),
];

fn a_cursor(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("SELECT id, id * 2 AS twice FROM conf.numbers WHERE id < ? ORDER BY id")?;
    seen += &raw.execute(0, 1, b"\0\x01\x03\0\x08\0\0\0")?;
    for rows in [2, 3, 1] {
        seen += &raw.fetch(0, rows)?;
        seen += &raw.query("SELECT 'between'")?;
    }
    seen += &raw.fetch(0, 100)?;
    seen += &raw.fetch(0, 1)?.replace(&format!("({})", raw.statements[0]), "(N)");
    // Types that were bound before need not come again.
    seen += &raw.execute(0, 1, b"\0\0\x03\0\0\0")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.fetch(0, 2)?;
    Ok(seen)
}

fn cursors_end(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("SELECT id FROM conf.numbers ORDER BY id")?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 1)?;
    let reset = raw.statement(0x1A, 0);
    seen += &raw.ask(&reset, Expect::Simple)?;
    seen += &raw.fetch(0, 1)?.replace(&format!("({})", raw.statements[0]), "(N)");
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 1)?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 1)?;
    let close = raw.statement(0x19, 0);
    raw.send(0, &close)?;
    seen += &raw.query("SELECT 'closed'")?;
    seen += &raw.prepare("SELECT id FROM conf.numbers WHERE id = 7")?;
    seen += &raw.execute(1, 1, b"")?;
    seen += &raw.fetch(1, 1)?;
    seen += &raw.fetch(1, 1)?;
    Ok(seen)
}

fn two_cursors(raw: &mut Raw) -> Result<String, String> {
    let mut seen = String::new();
    for _ in 0..3 {
        seen += &raw.prepare("SELECT id FROM conf.numbers ORDER BY id")?;
    }
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.execute(1, 1, b"")?;
    seen += &raw.fetch(1, 1)?;
    seen += &raw.execute(2, 1, b"")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.fetch(2, 3)?;
    seen += &raw.fetch(1, 2)?;
    Ok(seen)
}

fn no_cursor(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("UPDATE conf.scratch SET words = 'x' WHERE id = 123456")?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.prepare("SELECT id FROM conf.numbers WHERE id = (SELECT id FROM conf.numbers WHERE id < 4)")?;
    seen += &raw.execute(1, 1, b"")?;
    seen += &raw.prepare("SHOW TABLES FROM conf2")?;
    seen += &raw.execute(2, 0, b"")?;
    Ok(seen)
}

fn unknown_statements(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.execute(0, 0, b"")?;
    seen += &raw.fetch(0, 1)?;
    let reset = raw.statement(0x1A, 0);
    seen += &raw.ask(&reset, Expect::Simple)?;
    let close = raw.statement(0x19, 0);
    raw.send(0, &close)?;
    seen += &raw.query("SELECT 'still here'")?;
    Ok(seen)
}

fn a_changed_table(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query("CREATE OR REPLACE VIEW conf.changing AS SELECT id FROM conf.numbers")?;
    seen += &raw.prepare("SELECT * FROM conf.changing WHERE id < 4 ORDER BY id")?;
    seen += &raw.execute(0, 0, b"")?;
    seen += &raw.query("CREATE OR REPLACE VIEW conf.changing AS SELECT 'new' AS words, id, id + 1 FROM conf.numbers")?;
    seen += &raw.execute(0, 0, b"")?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.query("DROP VIEW conf.changing")?;
    seen += &raw.execute(0, 0, b"")?;
    Ok(seen)
}

fn long_data(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("SELECT ? AS a, LENGTH(?) AS b")?;
    for piece in ["one ", "two ", "three"] {
        let head = raw.statement(0x18, 0);
        raw.send(0, &[&head[..], &[0, 0], piece.as_bytes()].concat())?;
    }
    seen += &raw.execute(0, 0, b"\0\x01\xfd\0\xfd\0\x03xyz")?;
    seen += &raw.execute(0, 0, b"\0\x01\xfd\0\xfd\0\x01q\x05after")?;
    let reset = raw.statement(0x1A, 0);
    let head = raw.statement(0x18, 0);
    raw.send(0, &[&head[..], &[1, 0], b"forgotten"].concat())?;
    seen += &raw.ask(&reset, Expect::Simple)?;
    seen += &raw.execute(0, 0, b"\x02\x01\xfd\0\xfd\0\x01q")?;
    Ok(seen)
}

/// A server and the proxies before it.
struct Stand {
    server: Server,
    proxies: [OnceLock<Result<Proxy, String>>; 2],
}

impl Stand {
    fn compare(&self, driver: Driver, caps: Caps, script: Script) -> Result<(), String> {
        let place = DRIVERS.iter().position(|one| *one == driver).unwrap_or_default();
        let proxy = self.proxies[place].get_or_init(|| Proxy::start(driver, &Wish::in_front_of(&self.server)));
        let through = proxy.as_ref().map_err(Clone::clone)?.port;
        let direct = script(&mut Raw::log_in(self.server.port, caps)?)?;
        let seen = script(&mut Raw::log_in(through, caps)?)?;
        difference(&direct, &seen).map_or(Ok(()), |words| Err(format!("{words}\n\ndirect:\n{direct}\n\nthrough:\n{seen}")))
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let mut stands = Vec::new();
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let missing = vendor.programs().err();
        if let Some(why) = &missing {
            eprintln!("SKIPPED: raw packets against {vendor}: {why}");
        }
        let stand: Arc<OnceLock<Result<Stand, String>>> = Arc::default();
        stands.push(stand.clone());
        for (name, caps, script) in SCRIPTS {
            for driver in DRIVERS {
                let stand = stand.clone();
                let test = move || {
                    let stand = stand.get_or_init(|| begin(vendor)).as_ref().map_err(Clone::clone)?;
                    stand.compare(*driver, *caps, *script).map_err(Failed::from)
                };
                trials.push(Trial::test(format!("on_{vendor}::{driver}::{name}"), test).with_ignored_flag(missing.is_some()));
            }
        }
    }
    // Scripts share tables: one after the other.
    let conclusion = libtest_mimic::run(&Arguments { test_threads: Some(1), ..arguments }, trials);
    drop(stands);
    conclusion.exit();
}

fn begin(vendor: Vendor) -> Result<Stand, String> {
    let server = Server::start(vendor)?;
    // The first full login of an account is over TLS; raw logins are quick ones.
    let _ = Client::MariaDbCli.run(app(server.port), &conformance::cache::root().join("conformance/scenarios/warm-up.txt"));
    Ok(Stand { server, proxies: [OnceLock::new(), OnceLock::new()] })
}
