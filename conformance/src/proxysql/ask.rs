//! Looks at a peer, and what comes of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, OptsBuilder, Row, SslOpts, Value};
use tokio::runtime::Runtime;

use super::texts::{self, Rows};
use super::{ENOUGH, State, lock, now_s};

/// Between two looks; ProxySQL's shortest is 10 ms.
const EVERY: Duration = Duration::from_millis(50);
/// Before a peer of another version is asked again; with ProxySQL it is 30 s.
const STRANGER: Duration = Duration::from_millis(300);

/// Follows the peer until the end of the model.
pub(super) fn follow(port: u16, password: &str, state: &Mutex<State>, ended: &AtomicBool) {
    let Ok(rt) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    // Connections end in it.
    let _within = rt.enter();
    while !ended.load(Ordering::Relaxed) {
        // A peer that is gone, or says an error, is asked anew.
        let _ended = Follower {
            rt: &rt,
            port,
            password,
            state,
        }
        .converse(ended);
        thread::sleep(EVERY);
    }
}

struct Follower<'a> {
    rt: &'a Runtime,
    port: u16,
    password: &'a str,
    state: &'a Mutex<State>,
}

impl Follower<'_> {
    fn connect(&self) -> Result<Conn, Error> {
        let tls = SslOpts::default()
            .with_danger_accept_invalid_certs(true)
            .with_danger_skip_domain_validation(true);
        let opts = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port)
            .user(Some("cluster"))
            .pass(Some(self.password))
            .prefer_socket(false)
            .max_allowed_packet(Some(64 << 20))
            .wait_timeout(Some(1000))
            .stmt_cache_size(0)
            .ssl_opts(tls);
        self.rt.block_on(Conn::new(opts))
    }

    fn ask(&self, conn: &mut Conn, sql: &str) -> Result<Rows, Error> {
        let rows: Vec<Row> = self.rt.block_on(conn.query(sql))?;
        let cell = |value: Value| match value {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        };
        let cells = |row: Row| row.unwrap().into_iter().map(cell).collect();
        Ok(rows.into_iter().map(cells).collect())
    }

    fn converse(&self, ended: &AtomicBool) -> Result<(), Error> {
        let mut conn = self.connect()?;
        let version = self.ask(&mut conn, "SELECT @@version")?;
        let ours = lock(self.state).version;
        if version.first().map(|row| texts::line(row)).as_deref() != Some(ours) {
            lock(self.state).strangers += 1;
            thread::sleep(STRANGER);
            return Ok(());
        }
        self.ask(
            &mut conn,
            "PROXYSQL CLUSTER_NODE_UUID 01234567-89ab-4cde-8f01-23456789abcd 127.0.0.1:6032",
        )?;
        let mut before = Rows::new();
        while !ended.load(Ordering::Relaxed) {
            let all = self.ask(&mut conn, "SELECT GLOBAL_CHECKSUM()")?;
            if all != before {
                let sql = "SELECT * FROM runtime_checksums_values ORDER BY name";
                let rows = self.ask(&mut conn, sql)?;
                self.note(&rows);
                before = all;
            }
            self.ask(
                &mut conn,
                "SELECT * FROM stats_mysql_global ORDER BY Variable_Name",
            )?;
            self.decide();
            thread::sleep(EVERY);
        }
        Ok(())
    }

    /// Keeps what the peer has announced.
    fn note(&self, rows: &Rows) {
        let mut state = lock(self.state);
        for row in rows {
            let text = |at: usize| {
                let cell = row.get(at).cloned().flatten().unwrap_or_default();
                String::from_utf8_lossy(&cell).into_owned()
            };
            let number = |at: usize| text(at).parse().unwrap_or(0);
            let seen = state.peer.entry(text(0)).or_default();
            let looks = if seen.2 == text(3) { seen.3 } else { 0 };
            *seen = (number(1), number(2), text(3), looks);
        }
    }

    /// Counts looks that differ, and takes over what is newer there.
    fn decide(&self) {
        let mut due = Vec::new();
        {
            let mut state = lock(self.state);
            let State { peer, modules, .. } = &mut *state;
            for (name, module) in modules.iter() {
                let Some((version, epoch, checksum, looks)) = peer.get_mut(*name) else {
                    continue;
                };
                *looks = if *checksum == module.checksum {
                    0
                } else {
                    *looks + 1
                };
                let is_newer = module.version == 1 || *epoch > module.epoch;
                if *version > 1 && is_newer && *looks >= ENOUGH {
                    due.push((*name, *epoch, checksum.clone()));
                }
            }
            // What monitors have moved is no business of theirs.
            due.retain(|(name, ..)| {
                *name != "mysql_servers" || !modules.contains_key("mysql_servers_v2")
            });
        }
        for (name, epoch, checksum) in due {
            if let Err(why) = self.pull(name, epoch, &checksum) {
                lock(self.state).failures.push(format!("{name}: {why}"));
            }
        }
    }

    fn pull(&self, name: &'static str, epoch: u64, announced: &str) -> Result<(), String> {
        let words = |error: Error| error.to_string();
        let version = lock(self.state).version;
        let mut conn = self.connect().map_err(words)?;
        let mut results = Vec::new();
        for (text, columns) in texts::texts(version, name) {
            let rows = self
                .ask(&mut conn, &text)
                .map_err(|error| format!("{text}: {error}"))?;
            if let Some(row) = rows.iter().find(|row| row.len() != columns) {
                return Err(format!("{text}: {} columns", row.len()));
            }
            results.push(rows);
        }
        let came = texts::checksum(name, &results);
        if came != announced {
            return Err(format!("what came has {came}, {announced} was announced"));
        }
        let mut state = lock(self.state);
        let Some(module) = state.modules.get_mut(name) else {
            return Ok(());
        };
        if name.ends_with("_variables") {
            // It has the variables that it knows, and no others.
            let known = |row: &Vec<Option<Vec<u8>>>| {
                let mut here = module.results.iter().flatten();
                here.any(|other| other.first() == row.first())
            };
            results[0].retain(known);
        }
        module.version += 1;
        module.checksum = texts::checksum(name, &results);
        module.epoch = if module.checksum == announced {
            epoch
        } else {
            now_s()
        };
        module.results = results;
        Ok(())
    }
}
