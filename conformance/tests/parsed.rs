//! What a LOAD refuses because no server can parse it: servers are asked.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;

use conformance::beside::asked;
use conformance::by_hand::{CREATE_USER, Raw};
use conformance::cache::root;
use conformance::proxy::Driver;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect};
use sql::grammar::mistake;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[("what_a_load_refuses_no_server_can_parse", refused)])
}

fn refused(driver: Driver) -> Outcome {
    let mut servers = Servers::start()?;
    tables(&mut servers)?;
    broken(driver, &mut servers)?;
    keywords(&mut servers)
}

/// Errors of parsing itself, and what a server complains of on the way, before it has read the
/// rest: an alias twice or none, a table that is none to delete from, ORDER BY beside ROLLUP, a
/// variable, character set, collation or type that it does not know, an alias for what a function
/// is given. After them, nobody knows whether it could have parsed it.
const IN_PARSING: [&str; 12] = [
    "1064 ", "1149 ", "1066 ", "1109 ", "1115 ", "1193 ", "1221 ", "1248 ", "1273 ", "1327 ",
    "1583 ", "4161 ",
];

/// Servers in several modes, to each of which one connection is open.
struct Servers(Vec<(String, Server, Raw)>);

impl Servers {
    fn start() -> Result<Self, String> {
        let mut servers = Vec::new();
        for vendor in vendors() {
            let modes: &[&str] = if vendor == Vendor::MariaDb {
                &["", "ANSI_QUOTES", "ORACLE"]
            } else {
                &["", "ANSI_QUOTES"]
            };
            for mode in modes {
                let server = Server::start(vendor)?;
                // MariaDB wants a schema before it parses on.
                server.root(&format!(
                    "{CREATE_USER} CREATE DATABASE IF NOT EXISTS nothing"
                ))?;
                let mut client = Raw::log_in(server.port).map_err(|error| error.to_string())?;
                for sql in ["USE nothing", &format!("SET sql_mode = '{mode}'")] {
                    asked(&mut client, sql)?;
                }
                servers.push((format!("{vendor} {mode}"), server, client));
            }
        }
        Ok(Self(servers))
    }

    /// The servers that can parse it, and what they then say. What it names need not exist.
    fn parse(&mut self, sql: &str) -> Vec<String> {
        let quoted = sql.replace('\\', "\\\\").replace('\'', "''");
        let said = |client: &mut Raw| match client.ask(&format!("PREPARE s FROM '{quoted}'")) {
            Ok(_) => Some("OK".to_owned()),
            // Names in the arguments of a CALL are looked up on the way, too.
            Err(error) => Some(error.to_string()).filter(|words| {
                let looks_up = words.starts_with("1054 ") && words.ends_with("in 'CALL'");
                !looks_up && !IN_PARSING.iter().any(|code| words.starts_with(code))
            }),
        };
        self.0
            .iter_mut()
            .filter_map(|(name, _, client)| Some(format!("{name}: {}", said(client)?)))
            .collect()
    }
}

fn table() -> Result<(Vec<String>, Vec<String>), String> {
    let path = root().join("crates/pure/sql/tests/grammar.txt");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (mut taken, mut refused, mut takes) = (Vec::new(), Vec::new(), true);
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        match line.strip_prefix("== ") {
            Some(section) => takes = section == "taken",
            None if takes => taken.push(line.to_owned()),
            None => refused.extend(line.split_once(" | ").map(|(sql, _)| sql.to_owned())),
        }
    }
    Ok((taken, refused))
}

/// The table of the crate is right about servers.
fn tables(servers: &mut Servers) -> Outcome {
    let (taken, refused) = table()?;
    let mut wrong = Vec::new();
    for sql in &taken {
        // What only other versions take is there as well.
        if servers.parse(sql).is_empty() && !sql.contains("ANALYSE") {
            wrong.push(format!("no server can parse: {sql}"));
        }
    }
    for sql in &refused {
        let by = servers.parse(sql).join(", ");
        if !by.is_empty() {
            wrong.push(format!("{by} can parse: {sql}"));
        }
    }
    expect(wrong.is_empty(), || wrong.join("\n"))
}

/// Words and signs of a text, with their blanks.
fn pieces(sql: &str) -> Vec<&str> {
    let mut ends: Vec<usize> = sql::words::Words::new(sql.as_bytes())
        .map(|token| token.start)
        .collect();
    ends.push(sql.len());
    ends.windows(2)
        .filter_map(|pair| sql.get(*pair.first()?..*pair.get(1)?))
        .collect()
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

/// Statements of the table with something left out, put in, exchanged or doubled. Half of what
/// servers refuse is refused here; nothing that one takes.
fn broken(driver: Driver, servers: &mut Servers) -> Outcome {
    let (taken, _) = table()?;
    let mut chance = Chance(if driver == Driver::Uring { 1 } else { 2 });
    let all: Vec<&str> = taken.iter().flat_map(|sql| pieces(sql)).collect();
    let (mut wrong, mut refused_there, mut refused_here) = (Vec::new(), 0, 0);
    for sql in &taken {
        for _ in 0..15 {
            let mut parts: Vec<String> = pieces(sql).into_iter().map(str::to_owned).collect();
            for _ in 0..=chance.below(2) {
                let at = chance.below(parts.len());
                let next = (at + 1) % parts.len().max(1);
                let other = all
                    .get(chance.below(all.len()))
                    .map(|piece| format!("{piece} "))
                    .unwrap_or_default();
                match chance.below(5) {
                    0 if parts.len() > 1 => drop(parts.remove(at)),
                    1 => parts.insert(at, other),
                    2 => parts.swap(at, next),
                    3 => parts.insert(
                        at,
                        format!("{} ", parts.get(at).cloned().unwrap_or_default()),
                    ),
                    _ => parts.splice(at..=at, [other]).for_each(drop),
                }
            }
            let broken = parts.concat();
            let here = mistake(&broken);
            let by = servers.parse(&broken).join(", ");
            refused_there += usize::from(by.is_empty());
            refused_here += usize::from(by.is_empty() && here.is_some());
            if let Some(why) = here.filter(|_| !by.is_empty()) {
                wrong.push(format!("{by} can parse: {broken}: {why}"));
            }
        }
    }
    println!("{refused_here} of {refused_there} statements that no server can parse are refused");
    expect(wrong.is_empty(), || {
        format!("{} are wrong\n{}", wrong.len(), wrong.join("\n"))
    })?;
    expect(2 * refused_here > refused_there, || {
        format!("only {refused_here} of {refused_there} are refused")
    })
}

/// Each word that a server knows, in each place where one may stand.
fn keywords(servers: &mut Servers) -> Outcome {
    const PLACES: [&str; 30] = [
        "SELECT W FROM t",
        "SELECT a W FROM t",
        "SELECT a W b FROM t",
        "SELECT a AS W FROM t",
        "SELECT a b W FROM t",
        "SELECT W a FROM t",
        "SELECT W * FROM t",
        "SELECT 1 + W",
        "SELECT a = W 1",
        "SELECT W(a) FROM t",
        "SELECT f(W) FROM t",
        "SELECT f(a, W) FROM t",
        "SELECT f(a W) FROM t",
        "SELECT (W) FROM t",
        "SELECT a W (b) FROM t",
        "SELECT a FROM W",
        "SELECT a FROM t W",
        "SELECT a FROM t AS W",
        "SELECT a FROM t W u",
        "SELECT a FROM t u W",
        "SELECT a FROM t W JOIN u",
        "SELECT a FROM t WHERE W",
        "SELECT a FROM t WHERE a W",
        "SELECT a FROM t WHERE a W b",
        "SELECT a FROM t WHERE a IS W",
        "SELECT a FROM t ORDER BY a W",
        "SELECT a FROM t LIMIT 1 W",
        "INSERT INTO t (W) VALUES (W)",
        "UPDATE t SET W = W",
        "DELETE W FROM t",
    ];
    let mut words = BTreeSet::new();
    for (_, _, client) in &mut servers.0 {
        words.extend(asked(client, "SELECT word FROM information_schema.keywords")?.concat());
    }
    // What servers that are not here know.
    words.extend(
        [
            "MINUS",
            "PRIOR",
            "LEVEL",
            "QUALIFY",
            "TABLESAMPLE",
            "CONNECT",
            "NOCYCLE",
            "FULL",
            "VECTOR",
        ]
        .map(str::to_owned),
    );
    words.retain(|word| {
        word.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    });
    let mut wrong = Vec::new();
    for word in &words {
        for place in PLACES {
            let sql = place
                .replace('W', "\0")
                .replace("\0HERE", "WHERE")
                .replace('\0', word);
            let Some(why) = mistake(&sql) else { continue };
            let by = servers.parse(&sql).join(", ");
            if !by.is_empty() {
                wrong.push(format!("{by} can parse: {sql}: {why}"));
            }
        }
    }
    expect(words.len() > 500, || format!("only {} words", words.len()))?;
    expect(wrong.is_empty(), || {
        format!("{} are wrong\n{}", wrong.len(), wrong.join("\n"))
    })
}
