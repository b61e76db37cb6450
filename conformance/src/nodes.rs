//! Nodes of a cluster behind a proxy: who is where, and a client that writes whatever happens.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::by_hand::Raw;
use crate::proxy::Proxy;
use crate::servers::Server;
use crate::trials::{expect, same, soon};

/// Groups of `mysql_servers`: all of these in hostgroup 0, the first with the highest weight.
pub fn rows(nodes: &[Server]) -> String {
    let row = |(at, node): (usize, &Server)| {
        format!(
            "{{ address = \"127.0.0.1\", port = {}, hostgroup = 0, weight = {} }}",
            node.port,
            nodes.len() - at
        )
    };
    let rows = nodes.iter().enumerate().map(row);
    rows.collect::<Vec<_>>().join(",\n")
}

/// Nodes by their letters: `a` is the first.
pub struct Nodes<'p> {
    letters: BTreeMap<String, char>,
    proxy: &'p Proxy,
}

impl<'p> Nodes<'p> {
    /// In this order.
    pub fn of(nodes: &[Server], proxy: &'p Proxy) -> Self {
        Self::named(nodes.iter().map(|node| node.port.to_string()), proxy)
    }

    /// By their ports or their names.
    pub fn named(names: impl Iterator<Item = String>, proxy: &'p Proxy) -> Self {
        let letters = names.zip('a'..='z').collect();
        Self { letters, proxy }
    }

    /// Nodes of each hostgroup; `-a` does not serve there.
    pub fn places(&self) -> Result<String, String> {
        let said = self
            .proxy
            .admin("SELECT hostgroup_id, port, hostname, status FROM runtime_mysql_servers")?;
        let mut hostgroups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for line in said.lines() {
            let mut cells = line.split('\t');
            let mut cell = || cells.next().unwrap_or_default();
            let (hostgroup, port, host, status) = (cell(), cell(), cell(), cell());
            let letter = self.letters.get(port).or_else(|| self.letters.get(host));
            let letter = letter.copied().unwrap_or('?');
            let mark = if status == "ONLINE" { "" } else { "-" };
            let there = hostgroups.entry(hostgroup).or_default();
            there.push(format!("{mark}{letter}"));
        }
        let told = hostgroups.into_iter().map(|(hostgroup, mut nodes)| {
            nodes.sort_unstable();
            format!("{hostgroup}: {}", nodes.join(" "))
        });
        Ok(told.collect::<Vec<_>>().join(", "))
    }

    /// Waits until they are there.
    pub fn soon(&self, wanted: &str) -> Result<(), String> {
        soon(wanted, || self.places())
    }

    /// Waits until they are so, or so.
    pub fn soon_one_of(&self, wanted: &[&str]) -> Result<(), String> {
        let mut last = String::new();
        let found = soon("true", || {
            last = self.places()?;
            Ok(wanted.contains(&last.as_str()).to_string())
        });
        found.map_err(|_| format!("wanted one of {wanted:?}, there is {last:?}"))
    }

    /// Waits until the operator reads this.
    pub fn eventually(&self, wanted: &str, sql: &str) -> Result<(), String> {
        soon(wanted, || Ok(self.proxy.admin(sql)?.trim().to_owned()))
    }
}

/// A client that writes numbers one after the other, each with the port of who wrote it. A number
/// that failed is not tried again.
pub struct Writes {
    over: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: JoinHandle<Written>,
}

/// Answers that the client has got.
#[derive(Default)]
pub struct Written {
    /// Numbers that are written.
    done: Vec<u64>,
    /// The last error.
    last: String,
}

/// Between two attempts that fail.
const PAUSE: Duration = Duration::from_millis(20);

impl Writes {
    /// Table that it needs.
    pub const TABLE: &'static str = "CREATE DATABASE kept; \
        CREATE TABLE kept.numbers (n BIGINT PRIMARY KEY, port INT) ENGINE=InnoDB;";

    /// Begins.
    pub fn start(proxy: &Proxy) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicU64::new(0));
        let (port, ends, counts) = (proxy.port, over.clone(), count.clone());
        let thread = thread::spawn(move || {
            let mut written = Written::default();
            let mut client = None;
            for n in 1.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                match write(&mut client, port, n) {
                    Ok(()) => {
                        written.done.push(n);
                        counts.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => {
                        written.last = error.to_string();
                        client = None;
                        thread::sleep(PAUSE);
                    }
                }
            }
            written
        });
        Self {
            over,
            count,
            thread,
        }
    }

    /// Waits until so many more are written.
    pub fn go_on(&self, many: u64) -> Result<(), String> {
        let wanted = self.count.load(Ordering::Relaxed) + many;
        let is_there = || Ok((self.count.load(Ordering::Relaxed) >= wanted).to_string());
        soon("true", is_there).map_err(|_| "nothing more is written".into())
    }

    /// Ends.
    pub fn stop(self) -> Result<Written, String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| "the client panicked".to_owned())
    }
}

/// Clients who write numbers in transactions that are run again elsewhere, and whose COMMITs leave marks:
/// whatever becomes of the writer, none of them reads an error.
pub struct Marked {
    over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Result<u64, String>>>,
}

impl Marked {
    /// Tables that they need beside that of [`Writes`].
    pub const TABLES: &'static str = "CREATE TABLE kept.marked (c INT, n INT, PRIMARY KEY (c, n)) ENGINE=InnoDB; \
        CREATE TABLE kept.marks (proxy BIGINT UNSIGNED NOT NULL, slot INT UNSIGNED NOT NULL, \
        mark BIGINT UNSIGNED NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, \
        PRIMARY KEY (proxy, slot)) ENGINE=InnoDB;";

    /// Begins, on hostgroup 0.
    pub fn start(proxy: &Proxy) -> Result<Self, String> {
        proxy.admin(
            "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, \
             '{\"transaction_replay\": 1, \"transaction_replay_timeout_ms\": 300000, \
             \"transaction_replay_attempts\": 1000, \"transaction_replay_marks\": \"kept.marks\"}'); \
             LOAD MYSQL SERVERS TO RUNTIME",
        )?;
        let over = Arc::new(AtomicBool::new(false));
        let client = |c: u32| {
            let (port, over) = (proxy.port, over.clone());
            thread::spawn(move || {
                let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
                let mut count = 0;
                while !over.load(Ordering::Relaxed) {
                    let insert = format!("INSERT INTO kept.marked VALUES ({c}, {count})");
                    for sql in ["BEGIN", &insert, "COMMIT"] {
                        client
                            .ask(sql)
                            .map_err(|error| format!("client {c}, {sql}: {error}"))?;
                    }
                    count += 1;
                }
                Ok(count)
            })
        };
        Ok(Self {
            clients: (0..6).map(client).collect(),
            over,
        })
    }

    /// Ends, and says whether this server has each number once that a client was told of, and no other.
    pub fn are_in(self, server: &Server) -> Result<(), String> {
        self.over.store(true, Ordering::Relaxed);
        let mut told = 0;
        for client in self.clients {
            told += client
                .join()
                .map_err(|_| "a client has panicked".to_owned())??;
        }
        let there = || {
            let said = server.root("SELECT COUNT(*) FROM kept.marked")?;
            Ok(said.lines().last().unwrap_or_default().to_owned())
        };
        soon(&told.to_string(), there)
    }
}

fn write(client: &mut Option<Raw>, port: u16, n: u64) -> io::Result<()> {
    let client = match client {
        Some(client) => client,
        None => client.insert(Raw::log_in(port)?),
    };
    let sql = format!("INSERT INTO kept.numbers VALUES ({n}, @@port)");
    client.ask(&sql).map(drop)
}

impl Written {
    /// Whether this server has them all, written by these in turn.
    pub fn are_in(&self, server: &Server, writers: &[u16]) -> Result<(), String> {
        // Numbers of which the client knows nothing may be there.
        let last = self.done.last().copied().unwrap_or_default();
        let arrived = || {
            let sql = format!("SELECT COUNT(*) FROM kept.numbers WHERE n = {last}");
            Ok(server
                .root(&sql)?
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned())
        };
        soon("1", arrived)?;
        let said = server.root("SELECT n, port FROM kept.numbers ORDER BY n")?;
        let rows = said
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once('\t'));
        let rows: BTreeMap<u64, u16> = rows
            .filter_map(|(n, port)| Some((n.parse().ok()?, port.parse().ok()?)))
            .collect();
        let lost: Vec<_> = self.done.iter().filter(|n| !rows.contains_key(n)).collect();
        expect(lost.is_empty(), || {
            format!("{lost:?} are lost; {}", self.last)
        })?;
        let mut turns: Vec<u16> = rows.into_values().collect();
        turns.dedup();
        same(&format!("{turns:?}"), &format!("{writers:?}"))
    }
}
