//! Keeping of what is in force in a file, so that a process that is begun again after a crash goes on
//! with it and not with what was saved some time.

use crate::engine::{Engine, SqlError};
use crate::layers;
use crate::parts;
use crate::private::keep_private;
use crate::tables::{self, Module, Schema};
use bridge::Reply;
use config::Snapshot;
use rusqlite::Connection;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// Name of the file in the data directory.
const FILE: &str = "millrace_runtime.db";

/// Modules as they are in force, on their way to the file. A LOAD does not wait for it.
#[derive(Default)]
pub(crate) struct Keeper(Option<Sender<Letter>>);

enum Letter {
    Keep(Vec<Module>, Snapshot),
    /// Answered when all that came before is in the file.
    Settle(Reply<()>),
}

impl Keeper {
    /// Starts a thread that keeps what is in force now and what is loaded later.
    pub(crate) fn begin(datadir: &Path, now: &Snapshot) -> std::io::Result<Self> {
        let (letters, unread) = mpsc::channel();
        let path = datadir.join(FILE);
        thread::Builder::new()
            .name("keeper".into())
            .spawn(move || obey(&path, &unread))?;
        drop(letters.send(Letter::Keep(Module::ALL.to_vec(), now.clone())));
        Ok(Self(Some(letters)))
    }

    /// This module is in force as here.
    pub(crate) fn keep(&self, module: Module, now: &Snapshot) {
        if let Some(letters) = &self.0 {
            drop(letters.send(Letter::Keep(vec![module], now.clone())));
        }
    }

    /// Answers when all of it is in the file; at once where nothing is kept.
    pub(crate) fn settle(&self, told: Reply<()>) {
        let asked = match &self.0 {
            Some(letters) => letters
                .send(Letter::Settle(told))
                .map_err(|unsent| unsent.0),
            None => Err(Letter::Settle(told)),
        };
        if let Err(Letter::Settle(told)) = asked {
            told(());
        }
    }
}

fn obey(path: &Path, unread: &Receiver<Letter>) {
    while let Ok(first) = unread.recv() {
        // Of each module the newest counts.
        let mut newest: HashMap<&'static str, (Module, Snapshot)> = HashMap::new();
        let (mut waiting, mut last) = (Vec::new(), None);
        for letter in [first].into_iter().chain(unread.try_iter()) {
            match letter {
                Letter::Keep(modules, snapshot) => {
                    for module in modules {
                        newest.insert(module.words(), (module, snapshot.clone()));
                    }
                    last = Some(snapshot);
                }
                Letter::Settle(told) => waiting.push(told),
            }
        }
        let all: Vec<_> = newest.into_values().collect();
        if write(path, &all).is_err() {
            // Of another version, or broken: a part of it must not pass for the whole.
            remove(path);
            let whole =
                last.map(|last| Module::ALL.iter().map(|one| (*one, last.clone())).collect());
            if whole.is_some_and(|whole: Vec<_>| write(path, &whole).is_err()) {
                remove(path);
            }
        }
        waiting.into_iter().for_each(|told| told(()));
    }
}

fn write(path: &Path, modules: &[(Module, Snapshot)]) -> Result<(), SqlError> {
    keep_private(path);
    let conn = Connection::open(path)?;
    // A process that crashes takes nothing from the kernel; a machine that does begins with what
    // was saved.
    conn.pragma_update(None, "synchronous", "OFF")?;
    let change = conn.unchecked_transaction()?;
    let tables: Vec<_> = tables::copies()
        .iter()
        .filter(|copy| copy.schema == Schema::Disk)
        .map(|copy| copy.ddl("main"))
        .collect();
    change.execute_batch(&tables.join(";"))?;
    for (module, snapshot) in modules {
        if let Some(part) = parts::of(*module) {
            part.write(&change, "main", snapshot, &|_| true)?;
        }
    }
    Ok(change.commit()?)
}

fn remove(path: &Path) {
    for end in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let _none = fs::remove_file(PathBuf::from(name));
    }
}

/// Brings what was in force last into memory; whether there was anything.
pub(crate) fn recall(engine: &Engine, datadir: &Path) -> Result<bool, SqlError> {
    let path = datadir.join(FILE);
    if !path.exists() {
        return Ok(false);
    }
    engine.beside(&path, || {
        let whole = is_whole(engine.conn())?;
        if whole {
            layers::all_from(engine, "kept")?;
        }
        Ok(whole)
    })
}

fn is_whole(conn: &Connection) -> Result<bool, SqlError> {
    let known = "SELECT count(*) FROM kept.sqlite_master WHERE name = 'global_variables'";
    if conn.query_row(known, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(false);
    }
    let count = "SELECT count(*) FROM kept.global_variables";
    Ok(conn.query_row(count, [], |row| row.get::<_, i64>(0))? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::{Admin, Options, Recall};
    use crate::testing::{self, Directory};
    use std::time::{Duration, Instant};

    fn options(directory: &Directory, recalls: bool) -> Options {
        let recall = if recalls {
            Recall::AfterACrash
        } else {
            Recall::No
        };
        Options {
            datadir: Some(directory.0.clone()),
            keep: true,
            recall,
            ..Options::default()
        }
    }

    #[test]
    fn what_was_loaded_and_not_saved_is_recalled_after_a_crash_and_only_then() {
        let directory = Directory::new("kept");
        testing::with(options(&directory, false), |bench| async move {
            bench
                .script(
                    "INSERT INTO mysql_servers (hostname) VALUES ('saved'); LOAD MYSQL SERVERS TO RUNTIME; SAVE MYSQL SERVERS TO DISK; \
                     INSERT INTO mysql_servers (hostname) VALUES ('loaded'); LOAD MYSQL SERVERS TO RUNTIME; \
                     INSERT INTO mysql_servers (hostname) VALUES ('edited'); \
                     SET mysql-max_connections = 77; LOAD MYSQL VARIABLES TO RUNTIME",
                )
                .await;
            // The keeper has its own time.
            let begun = Instant::now();
            let path = directory.0.join(FILE);
            loop {
                let conn = Connection::open(&path).unwrap();
                let sql = "SELECT count(*) FROM mysql_servers, global_variables WHERE variable_value = '77'";
                let count = conn.query_row(sql, [], |row| row.get::<_, i64>(0));
                if count.is_ok_and(|count| count == 2) {
                    break;
                }
                assert!(begun.elapsed() < Duration::from_secs(60));
                thread::sleep(Duration::from_millis(10));
            }
            let began_with = |recall| {
                let admin = Admin::open(&options(&directory, recall)).unwrap();
                let rows = admin.snapshot().servers.rows();
                let names: Vec<_> = rows.into_iter().map(|row| row.hostname).collect();
                (
                    names.join(" "),
                    admin.snapshot().variables.mysql_max_connections,
                )
            };
            assert_eq!(began_with(true), ("loaded saved".to_owned(), 77));
            assert_eq!(began_with(false), ("saved".to_owned(), 10_000));
            // What is none of ours, or half of it, is no reason not to start.
            fs::write(&path, "no database").unwrap();
            assert_eq!(began_with(true), ("saved".to_owned(), 10_000));
            fs::write(&path, "").unwrap();
            assert_eq!(began_with(true), ("saved".to_owned(), 10_000));
        });
    }

    /// A file of what was kept, as this version writes it, and then changed by `change`; what another
    /// process begins with that takes over.
    fn taken_over(name: &str, change: &str) -> Result<String, String> {
        let directory = Directory::new(name);
        let path = directory.0.join(FILE);
        let mut snapshot = Snapshot::default();
        let rows = ["a", "b"].map(|hostname| config::ServerRow {
            hostname: hostname.into(),
            max_latency_ms: 7,
            ..config::ServerRow::default()
        });
        let servers = config::Servers::build(rows, Vec::new(), Vec::new());
        snapshot.servers = std::sync::Arc::new(servers.unwrap());
        let all: Vec<_> = Module::ALL
            .iter()
            .map(|one| (*one, snapshot.clone()))
            .collect();
        write(&path, &all).unwrap();
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch(change).unwrap();
        drop(conn);
        let heir = Options {
            recall: Recall::FromAnother,
            ..options(&directory, false)
        };
        let admin = Admin::open(&heir).map_err(|against| {
            let all: Vec<_> = against.iter().map(ToString::to_string).collect();
            all.join("; ")
        })?;
        let rows = admin.snapshot().servers.rows();
        let row = |row: &config::ServerRow| format!("{} {}", row.hostname, row.max_latency_ms);
        let rows: Vec<_> = rows.iter().map(row).collect();
        // What this version keeps from now on is whole again, whatever the file was.
        write(&path, &all)
            .or_else(|_| {
                remove(&path);
                write(&path, &all)
            })
            .unwrap();
        Ok(rows.join(" "))
    }

    #[test]
    fn what_another_version_has_kept_is_taken_over_or_refused_in_words() {
        let said = |name: &str, change: &str| taken_over(name, change);
        assert_eq!(said("kept-same", ""), Ok("a 7 b 7".to_owned()));
        // An older version has fewer columns, and tables.
        let older = "ALTER TABLE mysql_servers DROP COLUMN max_latency_ms; DROP TABLE scheduler; \
                     DELETE FROM global_variables WHERE variable_name = 'mysql-max_connections'";
        assert_eq!(said("kept-older", older), Ok("a 0 b 0".to_owned()));
        // What a newer one has is of no use where it says something.
        let newer = "ALTER TABLE mysql_servers ADD COLUMN mood VARCHAR NOT NULL DEFAULT 'calm'; CREATE TABLE moods (a)";
        assert_eq!(said("kept-newer", newer), Ok("a 7 b 7".to_owned()));
        for (change, unknown) in [
            (
                "UPDATE mysql_servers SET mood = 'bad' WHERE hostname = 'a'",
                "mysql_servers (mood)",
            ),
            ("INSERT INTO moods VALUES (1)", "moods"),
        ] {
            let refused = said("kept-much-newer", &format!("{newer}; {change}")).unwrap_err();
            let wanted = format!(
                "what is in force in the other process cannot be used: it is of a newer version, and this one does not know {unknown}"
            );
            assert_eq!(refused, wanted);
        }
        let nothing = said("kept-nothing", "DELETE FROM global_variables").unwrap_err();
        assert_eq!(
            nothing,
            "the other process has not kept what is in force there"
        );
    }
}
