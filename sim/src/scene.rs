//! Worlds with a plot: what once went wrong, in the order in which it did.

use crate::client::{Client, Due, Reply, Row};
use crate::server::{LOAD, SLEEPER};
use crate::world::{Stage, World, perform};
use crate::{Verdict, Weather};
use rt::local::{Receiver, oneshot};
use std::time::Duration;
use wire::caps;

/// Nothing takes so long where nobody waits for ever.
const SOON: Duration = Duration::from_secs(1);
/// Clients of a crowd.
const CROWD: usize = 24;

fn small(cores: u32) -> World {
    let calm = World::with(1, Weather::Calm);
    World {
        clients: 2,
        cores,
        connections: 1,
        users: 1,
        depth: 0,
        courier: false,
        split: None,
        cached: false,
        missing: [None; 2],
        expires: false,
        mirror: false,
        bytes_per_second: 0,
        pace: 0,
        operator: false,
        script: None,
        faults: rt::sim::Faults::perfect(),
        ..calm
    }
}

impl Stage {
    /// Says it and waits for the answer.
    async fn done(&self, client: &mut Client, sql: &str) {
        let reply = self
            .rt
            .timeout(
                SOON,
                client.ask(&[b"\x03", sql.as_bytes()].concat(), Due::Text),
            )
            .await;
        let well = matches!(reply, Ok(Ok(Reply::Ok | Reply::Rows(_))));
        self.judge
            .check(well, "client", || format!("{sql}: {reply:?}"));
    }

    /// Says a statement while others speak, and gives the client back when it is answered.
    fn begun(&self, mut client: Client, sql: &'static str) -> Receiver<Client> {
        let (tell, done) = oneshot();
        let stage = self.clone();
        self.rt.spawn(async move {
            stage.done(&mut client, sql).await;
            let _nobody = tell.send(client);
        });
        done
    }

    /// Somebody says this in a while, whatever comes of it, and leaves.
    fn said_after(&self, pause: Duration, mut client: Client, sql: String) -> Receiver<bool> {
        let (tell, done) = oneshot();
        let rt = self.rt.clone();
        self.rt.spawn(async move {
            rt.sleep(pause).await;
            let said = client
                .ask(&[b"\x03", sql.as_bytes()].concat(), Due::Text)
                .await;
            let _nobody = tell.send(said.is_ok());
        });
        done
    }

    /// One of a crowd: it asks, and is answered, many times.
    fn asks_on(&self, number: usize, mut client: Client, times: usize) -> Receiver<()> {
        let (tell, done) = oneshot();
        let stage = self.clone();
        self.rt.spawn(async move {
            for time in 0..times {
                let tag = format!("c{number}-{time}");
                let sql = format!("SELECT '{tag}' FROM few");
                let reply = stage.rt.timeout(SOON, client.ask(&[b"\x03", sql.as_bytes()].concat(), Due::Text)).await;
                let own = |row: &Row| row.iter().flatten().any(|value| *value == tag);
                let well = matches!(&reply, Ok(Ok(Reply::Rows(rows))) if !rows.is_empty() && rows.iter().all(own));
                stage.judge.check(well, "client", || format!("{sql}: {reply:?}"));
            }
            let _nobody = tell.send(());
        });
        done
    }
}

/// A session that waits for one server keeps a connection to another, for its warnings, and that
/// one is broken.
#[must_use]
pub fn what_is_spare_is_broken() -> Verdict {
    perform(&small(1), |stage| async move {
        let (mut one, mut other) = (stage.enter().await, stage.enter().await);
        stage.done(&mut other, "BEGIN").await;
        stage
            .done(&mut other, "INSERT INTO log VALUES ('c1-1')")
            .await;
        stage.done(&mut one, "SELECT 'c0-1' FROM warny").await;
        stage.replica.hang_up();
        stage.rt.sleep(Duration::from_micros(200)).await;
        let waits = stage.begun(one, "INSERT INTO log VALUES ('c0-2')");
        stage.rt.sleep(Duration::from_millis(10)).await;
        stage.done(&mut other, "COMMIT").await;
        let _until_it_is_done = waits.await;
    })
}

/// Two sessions on two cores each keep a connection, for the warnings or the id of a statement,
/// that the other waits for.
#[must_use]
pub fn each_has_what_the_other_wants() -> Verdict {
    perform(&small(2), |stage| async move {
        let (mut one, mut other) = (stage.enter().await, stage.enter().await);
        stage.done(&mut one, "SELECT 'c0-1' FROM warny").await;
        stage
            .done(&mut other, "INSERT INTO ids VALUES ('c1-1'),('c1-1x')")
            .await;
        let (writes, reads) = (
            stage.begun(one, "INSERT INTO log VALUES ('c0-2')"),
            stage.begun(other, "SELECT 'c1-2' FROM few"),
        );
        let _until_both_are_done = (writes.await, reads.await);
    })
}

/// KILL QUERY is said while a server is about to ask for a file: of what was said to the server,
/// nothing hits the statement behind.
#[must_use]
pub fn a_file_is_not_wanted_any_more(seed: u64) -> Verdict {
    let mut world = World { seed, ..small(1) };
    (world.faults.latency_max, world.connections) = (Duration::from_millis(5), 2);
    perform(&world, |stage| async move {
        let (mut one, other) = (stage.enter().await, stage.enter().await);
        stage.done(&mut one, "CREATE TEMPORARY TABLE t1").await;
        let kill = format!("KILL QUERY {}", one.number);
        let done = stage.said_after(Duration::from_micros(seed % 50 * 300), other, kill);
        one.file = ("f".to_owned(), vec![vec![7; 100]; 3]);
        let load = format!("{LOAD}'f' INTO TABLE log");
        let loaded = stage
            .rt
            .timeout(
                SOON,
                one.ask(&[b"\x03", load.as_bytes()].concat(), Due::Filed),
            )
            .await;
        let well = matches!(loaded, Ok(Ok(Reply::Ok | Reply::Err { code: 1317, .. })));
        stage
            .judge
            .check(well, "client", || format!("{load}: {loaded:?}"));
        // It may be said in a moment in which nothing runs.
        let _said = done.await;
        for _ in 0..9 {
            stage.done(&mut one, "SELECT tag FROM t1").await;
        }
    })
}

/// KILL QUERY is said while a transaction begins: too late for that, it ends nothing.
#[must_use]
pub fn a_transaction_begins_before_it_is_ended(seed: u64) -> Verdict {
    let mut world = World { seed, ..small(1) };
    (world.faults.latency_max, world.connections) = (Duration::from_millis(5), 2);
    perform(&world, |stage| async move {
        let (mut one, other) = (stage.enter().await, stage.enter().await);
        stage.done(&mut one, "SELECT 'c0-1' FROM few").await;
        let kill = format!("KILL QUERY {}", one.number);
        let done = stage.said_after(Duration::from_micros(seed % 50 * 300), other, kill);
        let begun = stage
            .rt
            .timeout(SOON, one.ask(b"\x03BEGIN", Due::Text))
            .await;
        let well = matches!(begun, Ok(Ok(Reply::Ok | Reply::Err { code: 1317, .. })));
        stage
            .judge
            .check(well, "client", || format!("BEGIN: {begun:?}"));
        // It may be said in a moment in which nothing runs.
        let _said = done.await;
        for sql in [
            "SELECT 'c0-2' FROM few",
            "SELECT 'c0-3' FROM state FOR UPDATE",
            "COMMIT",
            "SELECT 'c0-4' FROM few",
        ] {
            stage.done(&mut one, sql).await;
        }
    })
}

/// KILL QUERY is said while two things are asked of a connection with a transaction, before
/// something is prepared: the statement ends, or nothing does.
#[must_use]
pub fn two_questions_are_interrupted(seed: u64) -> Verdict {
    let mut world = World { seed, ..small(1) };
    (world.faults.latency_max, world.connections) = (Duration::from_millis(5), 2);
    perform(&world, |stage| async move {
        let (mut one, other) = (stage.enter().await, stage.enter().await);
        for sql in [
            "SET @a='x'",
            "BEGIN",
            "INSERT INTO fires VALUES ('c0-1')",
            "SET @b=@a",
        ] {
            stage.done(&mut one, sql).await;
        }
        let _nobody_knows_it = stage
            .rt
            .timeout(SOON, one.ask(b"\x03EXECUTE nobody USING @a", Due::Text))
            .await;
        let kill = format!("KILL QUERY {}", one.number);
        let done = stage.said_after(Duration::from_micros(seed % 50 * 400), other, kill);
        let prepared = stage
            .rt
            .timeout(
                SOON,
                one.ask(b"\x03PREPARE p FROM 'SELECT ?, ? FROM named'", Due::Text),
            )
            .await;
        let well = matches!(prepared, Ok(Ok(Reply::Ok | Reply::Err { code: 1317, .. })));
        stage
            .judge
            .check(well, "client", || format!("PREPARE: {prepared:?}"));
        let _said = done.await;
        for sql in ["SELECT 'c0-2' FROM few", "COMMIT"] {
            stage.done(&mut one, sql).await;
        }
    })
}

/// A server closes a connection while it is asked what a statement has changed that failed, and was
/// none.
#[must_use]
pub fn nothing_is_lost_with_a_connection(seed: u64) -> Verdict {
    let mut world = World { seed, ..small(1) };
    (world.faults.latency_max, world.connections) = (Duration::from_millis(5), 2);
    perform(&world, |stage| async move {
        let mut one = stage.enter().await;
        // From now on the server tells of changes.
        stage
            .done(&mut one, "INSERT INTO fires VALUES ('c0-1')")
            .await;
        let unknown = stage
            .rt
            .timeout(SOON, one.ask(b"\x03EXECUTE nobody USING @a", Due::Text))
            .await;
        let well = matches!(unknown, Ok(Ok(Reply::Err { code: 1243, .. })));
        stage
            .judge
            .check(well, "client", || format!("EXECUTE: {unknown:?}"));
        stage
            .done(&mut one, "SELECT 'c0-2' FROM state FOR UPDATE")
            .await;
        stage.master.hang_up();
        stage.done(&mut one, "SELECT 'c0-3' FROM few").await;
    })
}

/// A row is inserted, and a READ ONLY transaction on a reader asks for its id at once, twice: of
/// the second row, too.
#[must_use]
pub fn an_id_is_asked_for_on_a_reader() -> Verdict {
    let world = World {
        connections: 2,
        split: Some(0),
        ..small(1)
    };
    perform(&world, |stage| async move {
        let mut one = stage.enter().await;
        for id in ["1", "2"] {
            stage
                .done(&mut one, "INSERT INTO ids VALUES ('c0-1')")
                .await;
            stage.done(&mut one, "START TRANSACTION READ ONLY").await;
            let told = stage
                .rt
                .timeout(
                    SOON,
                    one.ask(b"\x03SELECT 'c0-2', LAST_INSERT_ID()", Due::Text),
                )
                .await;
            let has = |rows: &[Row]| rows.iter().flatten().flatten().any(|value| value == id);
            let well = matches!(&told, Ok(Ok(Reply::Rows(rows))) if has(rows));
            stage
                .judge
                .check(well, "client", || format!("{told:?} instead of {id}"));
            stage.done(&mut one, "COMMIT").await;
        }
    })
}

/// A reader has said that the password has expired, and the new one is the first that the writer
/// hears.
#[must_use]
pub fn a_password_is_set_where_nothing_was_refused() -> Verdict {
    perform(&small(1), |stage| async move {
        stage.judge.expire();
        let mut one = stage.enter_as(SLEEPER, caps::EXPIRED_PASSWORDS).await;
        let refused = stage
            .rt
            .timeout(SOON, one.ask(b"\x03SELECT 'c0-1' FROM few", Due::Text))
            .await;
        let well = matches!(refused, Ok(Ok(Reply::Err { code: 1820, .. })));
        stage.judge.check(well, "client", || format!("{refused:?}"));
        stage
            .done(&mut one, "ALTER USER USER() IDENTIFIED BY 'grist'")
            .await;
        stage.done(&mut one, "SELECT 'c0-2' FROM few").await;
    })
}

/// Rows are fetched of what nobody has prepared.
#[must_use]
pub fn a_fetch_is_refused() -> Verdict {
    perform(&small(1), |stage| async move {
        let mut one = stage.enter().await;
        stage
            .done(&mut one, "INSERT INTO log VALUES ('c0-1')")
            .await;
        let refused = stage
            .rt
            .timeout(
                SOON,
                one.ask(b"\x1C\x09\0\0\0\x01\0\0\0", Due::Fetched { columns: 1 }),
            )
            .await;
        stage.judge.check(
            matches!(refused, Ok(Ok(Reply::Err { .. }))),
            "client",
            || format!("{refused:?}"),
        );
        let told = stage
            .rt
            .timeout(SOON, one.ask(b"\x03SELECT ROW_COUNT()", Due::Text))
            .await;
        let well = matches!(&told, Ok(Ok(Reply::Rows(rows))) if rows == &[[Some("-1".to_owned())]]);
        stage.judge.check(well, "client", || format!("{told:?}"));
    })
}

/// A trigger sets a variable in a transaction, where nobody asks for it, and then what was prepared
/// under another value comes by its name.
#[must_use]
pub fn a_name_comes_where_a_trigger_was() -> Verdict {
    perform(&small(1), |stage| async move {
        let mut one = stage.enter().await;
        for sql in [
            "PREPARE p FROM 'SELECT ?, ? FROM named'",
            "SET time_zone='+01:00', sql_mode='ANSI'",
            "BEGIN",
            "INSERT INTO fires VALUES ('c0-1')",
        ] {
            stage.done(&mut one, sql).await;
        }
        let _nobody_understands_it = stage
            .rt
            .timeout(SOON, one.ask(b"\x03SELEKT 1", Due::Text))
            .await;
        let told = stage
            .rt
            .timeout(SOON, one.ask(b"\x03SELECT 'c0-2' FROM state", Due::Text))
            .await;
        let set = |rows: &[Row]| {
            rows.iter()
                .flatten()
                .flatten()
                .any(|value| value == "'c0-1'")
        };
        let well = matches!(&told, Ok(Ok(Reply::Rows(rows))) if set(rows));
        stage.judge.check(well, "client", || format!("{told:?}"));
    })
}

/// A server is gone without a word, and another at its address has given the number of a connection
/// to somebody else, before the first one's client has had enough.
#[must_use]
pub fn a_successor_has_the_number() -> Verdict {
    let world = World {
        connections: 2,
        ..small(1)
    };
    perform(&world, |stage| async move {
        let (mut one, mut other) = (stage.enter().await, stage.enter().await);
        stage.done(&mut one, "BEGIN").await;
        stage
            .done(&mut one, "INSERT INTO log VALUES ('c0-1')")
            .await;
        let wait = Duration::from_millis(1);
        let slow = stage
            .rt
            .timeout(wait, one.ask(b"\x03SELECT 'c0-2' FROM slow", Due::Text))
            .await;
        stage
            .judge
            .check(slow.is_err(), "client", || format!("{slow:?}"));
        stage.master.supplant();
        stage.done(&mut other, "BEGIN").await;
        stage
            .done(&mut other, "INSERT INTO log VALUES ('c1-1')")
            .await;
        drop(one);
        stage.rt.sleep(Duration::from_millis(500)).await;
        stage.done(&mut other, "SELECT 'c1-2' FROM few").await;
        stage.done(&mut other, "COMMIT").await;
    })
}

/// Many ask briefly before two connections, on each of which two statements may be in flight, and
/// each is answered what it has asked.
#[must_use]
pub fn a_crowd_asks_briefly(seed: u64) -> Verdict {
    let mut world = World {
        seed,
        connections: 2,
        depth: 2,
        ..small(1)
    };
    world.faults.latency_max = Duration::from_micros(300);
    perform(&world, |stage| async move {
        let mut all = Vec::new();
        for _ in 0..CROWD {
            all.push(stage.enter().await);
        }
        // It is known to be brief.
        for _ in 0..8 {
            stage.done(&mut all[0], "SELECT 'c0-1' FROM few").await;
        }
        let busy: Vec<_> = all
            .into_iter()
            .enumerate()
            .map(|(number, client)| stage.asks_on(number, client, 40))
            .collect();
        for one in busy {
            let _until_it_is_done = one.await;
        }
    })
}

/// Many ask briefly on two cores before one connection, which is a lane on one of them and never
/// without work, and the other core has its turn.
#[must_use]
pub fn two_crowds_ask_briefly(seed: u64) -> Verdict {
    let mut world = World {
        seed,
        connections: 1,
        depth: 4,
        ..small(2)
    };
    world.faults.latency_max = Duration::from_millis(5);
    perform(&world, |stage| async move {
        let mut all = Vec::new();
        for _ in 0..CROWD {
            all.push(stage.enter().await);
        }
        for client in all.iter_mut().take(2) {
            for _ in 0..8 {
                stage.done(client, "SELECT 'c0-1' FROM few").await;
            }
        }
        let busy: Vec<_> = all
            .into_iter()
            .enumerate()
            .map(|(number, client)| stage.asks_on(number, client, 300))
            .collect();
        for one in busy {
            let _until_it_is_done = one.await;
        }
    })
}

/// Copies of two cores wait for the one connection that a mirror takes, on which a copy takes its
/// time.
#[must_use]
pub fn two_cores_copy_by_turns(seed: u64) -> Verdict {
    let mut world = World {
        seed,
        clients: 4,
        connections: 1,
        mirror: true,
        ..small(2)
    };
    world.faults.latency_max = Duration::from_millis(1);
    perform(&world, |stage| async move {
        let mut all = Vec::new();
        for _ in 0..world.clients {
            all.push(stage.enter().await);
        }
        let busy: Vec<_> = all
            .into_iter()
            .enumerate()
            .map(|(number, client)| stage.asks_on(number, client, 40))
            .collect();
        for one in busy {
            let _until_it_is_done = one.await;
        }
        // Each waits at most until the ones before it are done.
        stage.rt.sleep(Duration::from_secs(30)).await;
    })
}
