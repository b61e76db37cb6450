//! Transactions over partitions on two servers: a branch on each, and all of them or none.
#![forbid(unsafe_code)]

use conformance::beside::{self, asked, held};
use conformance::by_hand::Raw;
use conformance::halves::{World, error, log_in};
use conformance::library;
use conformance::proxy::Driver;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon, vendors_in_turn};
use mysql_async::prelude::Queryable as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "a_transaction_has_a_branch_on_each_hostgroup_that_it_needs",
            branches,
        ),
        (
            "a_transaction_ends_with_its_deadlock_its_server_or_its_coordinator",
            losses,
        ),
        (
            "sums_of_a_bank_are_exact_while_proxy_and_servers_are_killed",
            bank,
        ),
    ])
}

const ATTRIBUTES: &str = r#"{"partition_changes":"xa","transactions":"xa"}"#;
/// SERVER_STATUS_IN_TRANS, _AUTOCOMMIT, _IN_TRANS_READONLY.
const IN_TRANS: u16 = 1;
const AUTOCOMMIT: u16 = 2;
const READ_ONLY: u16 = 0x2000;

/// The flags of the OK that a statement is answered with, of those three.
fn flags(client: &mut Raw, sql: &str) -> Result<u16, String> {
    let words = |error: std::io::Error| format!("{sql}: {error}");
    client.query(sql).map_err(words)?;
    let packet = client.packet().map_err(words)?;
    expect(packet.first() == Some(&0), || format!("{sql}: {packet:?}"))?;
    // Behind rows and id, which are small here.
    let flags = packet.get(3..5).ok_or("a short OK")?;
    let flags = u16::from_le_bytes([flags[0], flags[1]]);
    Ok(flags & (IN_TRANS | AUTOCOMMIT | READ_ONLY))
}

fn flagged(client: &mut Raw, sql: &str, wanted: u16) -> Outcome {
    let found = flags(client, sql)?;
    expect(found == wanted, || {
        format!("{sql}: {found} instead of {wanted}")
    })
}

fn all(client: &mut Raw, statements: &[&str]) -> Outcome {
    statements
        .iter()
        .try_for_each(|statement| asked(client, statement).map(drop))
}

/// The rows of all partitions, as a client sees them.
fn seen(client: &mut Raw) -> Result<String, String> {
    let rows = asked(client, "SELECT id, x FROM t ORDER BY id")?;
    let rows: Vec<_> = rows.iter().map(|row| row.join(":")).collect();
    Ok(rows.join(","))
}

/// The last line of a server's answer.
fn last(server: &Server, sql: &str) -> Result<String, String> {
    let said = server.root(sql)?;
    Ok(said.lines().last().unwrap_or_default().trim().to_owned())
}

fn fails(client: &mut Raw, sql: &str, words: &str) -> Outcome {
    let said = match client.ask(sql) {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => error.to_string(),
    };
    expect(said.contains(words), || format!("{sql}: {said}"))
}

/// A duplicate key, which MySQL calls one of the table: it is the logical one.
fn duplicate(client: &mut Raw, sql: &str, table: &str) -> Outcome {
    let said = match client.ask(sql) {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => error.to_string(),
    };
    let ends = [
        format!("for key '{table}.PRIMARY'"),
        "for key 'PRIMARY'".into(),
    ];
    expect(ends.iter().any(|end| said.contains(end)), || {
        format!("{sql}: {said}")
    })
}

/// How often a server was told these since it was started.
fn told(server: &Server) -> Result<Vec<u64>, String> {
    let names = [
        "begin",
        "commit",
        "xa_start",
        "xa_end",
        "xa_prepare",
        "xa_commit",
    ];
    let said = server.root("SHOW GLOBAL STATUS LIKE 'Com\\_%'")?;
    let of = |name: &str| {
        let name = format!("Com_{name}");
        let mut lines = said.lines().map(str::split_whitespace);
        lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
    };
    names
        .iter()
        .map(|name| of(name).ok_or_else(|| format!("{name} in {said}")))
        .collect()
}

/// How often a server is told these while a client does this.
fn costs(server: &Server, client: &mut Raw, statements: &[&str]) -> Result<Vec<u64>, String> {
    let before = told(server)?;
    all(client, statements)?;
    let after = told(server)?;
    Ok(after
        .iter()
        .zip(before)
        .map(|(now, then)| now - then)
        .collect())
}

/// Part of a test before one world.
type Check = fn(&World) -> Outcome;

fn branches(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = World::new(driver, vendor, ATTRIBUTES)?;
        let checks: &[(&str, Check)] = &[
            ("commit", commits),
            ("rollback", rolls_back),
            ("autocommit", without_autocommit),
            ("savepoints", savepoints),
            ("taken back", taken_back),
            ("phases", phases),
            ("what ends it", ends),
            ("finished", finished),
            ("refused", refused),
            ("interrupted", interrupted),
            ("prepared", prepared),
            ("kept for an id", kept_for_an_id),
        ];
        for (name, check) in checks {
            for server in [&it.one, &it.two] {
                server.root(match std::ptr::eq(server, &it.one) {
                    true => {
                        "DELETE FROM conf.t_0; DELETE FROM conf.t_2; DELETE FROM conf.t_default"
                    }
                    false => "DELETE FROM conf.t_1; DELETE FROM conf.t_3",
                })?;
            }
            check(&it).map_err(|words| format!("{vendor}, {name}: {words}\n{}", it.proxy.log()))?;
            same(&it.prepared()?, "0 0").map_err(|words| format!("{vendor}, {name}: {words}"))?;
        }
    }
    Ok(())
}

fn commits(it: &World) -> Outcome {
    let mut client = it.filled()?;
    flagged(&mut client, "BEGIN", IN_TRANS | AUTOCOMMIT)?;
    same(&held(&it.proxy, &client)?, "")?;
    flagged(
        &mut client,
        "UPDATE t SET x = x + 1 WHERE id = 0",
        IN_TRANS | AUTOCOMMIT,
    )?;
    flagged(
        &mut client,
        "UPDATE t SET x = x + 1 WHERE id = 1",
        IN_TRANS | AUTOCOMMIT,
    )?;
    same(
        &held(&it.proxy, &client)?,
        "Branch Branch Transaction Transaction",
    )?;
    // All partitions of both servers, over the connections that have written.
    same(&seen(&mut client)?, "0:1,1:1,2:0,3:0")?;
    same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
    flagged(
        &mut client,
        "UPDATE t SET x = x + 10",
        IN_TRANS | AUTOCOMMIT,
    )?;
    let sum = "SELECT SUM(x), COUNT(*) FROM t FOR UPDATE";
    same(&asked(&mut client, sum)?.concat().join(" "), "42 4")?;
    let one = "SELECT x FROM t WHERE id = 3 FOR UPDATE";
    same(&asked(&mut client, one)?.concat().concat(), "10")?;
    same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
    flagged(&mut client, "COMMIT", AUTOCOMMIT)?;
    same(&it.rows()?, "0:11,2:10 1:11,3:10")?;
    same(&held(&it.proxy, &client)?, "")?;
    soon("0", || it.decisions())?;
    let counted = "SELECT Variable_Value > 0 FROM stats_mysql_global WHERE Variable_Name = 'Millrace_partition_transactions'";
    same(&it.proxy.admin(counted)?, "1")?;
    // What is plain is where BEGIN goes, and of the same transaction.
    all(
        &mut client,
        &[
            "DELETE FROM whole",
            "BEGIN",
            "INSERT INTO whole (id) VALUES (1)",
        ],
    )?;
    all(
        &mut client,
        &["UPDATE t SET x = 0 WHERE id = 3", "SELECT 1"],
    )?;
    same(
        &asked(&mut client, "SELECT COUNT(*) FROM whole")?
            .concat()
            .concat(),
        "1",
    )?;
    all(&mut client, &["ROLLBACK"])?;
    same(
        &asked(&mut client, "SELECT COUNT(*) FROM whole")?
            .concat()
            .concat(),
        "0",
    )?;
    same(&it.rows()?, "0:11,2:10 1:11,3:10")
}

fn rolls_back(it: &World) -> Outcome {
    let mut client = it.filled()?;
    all(
        &mut client,
        &[
            "START TRANSACTION",
            "UPDATE t SET x = 5 WHERE id = 2",
            "DELETE FROM t",
        ],
    )?;
    same(&seen(&mut client)?, "")?;
    flagged(&mut client, "ROLLBACK", AUTOCOMMIT)?;
    same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
    // Somebody leaves in the middle; somebody begins anew.
    let mut leaving = log_in(it.proxy.port)?;
    all(&mut leaving, &["BEGIN", "UPDATE t SET x = 5"])?;
    drop(leaving);
    all(&mut client, &["UPDATE t SET x = 6"])?;
    all(&mut client, &["BEGIN", "UPDATE t SET x = 5"])?;
    client
        .command(&[0x1f])
        .and_then(|()| client.packet())
        .map_err(|error| error.to_string())?;
    // Nothing is locked when that is answered.
    for (server, table) in [(&it.one, "t_0"), (&it.two, "t_3")] {
        let sql =
            format!("SET innodb_lock_wait_timeout = 1; SELECT x FROM conf.{table} FOR UPDATE");
        same(&last(server, &sql)?, "6")?;
    }
    same(&it.rows()?, "0:6,2:6 1:6,3:6")
}

fn without_autocommit(it: &World) -> Outcome {
    let mut client = it.filled()?;
    flagged(&mut client, "SET autocommit = 0", 0)?;
    asked(&mut client, "SELECT 1")?;
    same(&held(&it.proxy, &client)?, "")?;
    flagged(&mut client, "UPDATE t SET x = 1 WHERE id = 3", IN_TRANS)?;
    flagged(&mut client, "UPDATE t SET x = 1 WHERE id = 0", IN_TRANS)?;
    same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
    flagged(&mut client, "COMMIT", 0)?;
    same(&it.rows()?, "0:1,2:0 1:0,3:1")?;
    // The next one begins by itself.
    flagged(&mut client, "UPDATE t SET x = 7", IN_TRANS)?;
    flagged(&mut client, "ROLLBACK", 0)?;
    same(&seen(&mut client)?, "0:1,1:0,2:0,3:1")?;
    same(
        &held(&it.proxy, &client)?,
        "Branch Branch Transaction Transaction",
    )?;
    asked(&mut client, "UPDATE t SET x = 9 WHERE id = 1")?;
    flagged(&mut client, "SET autocommit = 1", AUTOCOMMIT)?;
    same(&it.rows()?, "0:1,2:0 1:9,3:1")?;
    same(&held(&it.proxy, &client)?, "")
}

fn savepoints(it: &World) -> Outcome {
    let mut client = it.filled()?;
    all(
        &mut client,
        &[
            "BEGIN",
            "SAVEPOINT `first`",
            "UPDATE t SET x = 1 WHERE id = 0",
        ],
    )?;
    all(
        &mut client,
        &["SAVEPOINT a", "UPDATE t SET x = 2 WHERE id = 0"],
    )?;
    // This branch begins behind the savepoint.
    all(
        &mut client,
        &["UPDATE t SET x = 2 WHERE id = 1", "UPDATE t SET x = x + 10"],
    )?;
    same(&seen(&mut client)?, "0:12,1:12,2:10,3:10")?;
    all(&mut client, &["ROLLBACK TO SAVEPOINT A"])?;
    same(&seen(&mut client)?, "0:1,1:0,2:0,3:0")?;
    all(
        &mut client,
        &["UPDATE t SET x = 3 WHERE id = 3", "RELEASE SAVEPOINT a"],
    )?;
    fails(&mut client, "ROLLBACK TO a", "1305")?;
    flagged(&mut client, "COMMIT", AUTOCOMMIT)?;
    same(&it.rows()?, "0:1,2:0 1:0,3:3")?;
    all(
        &mut client,
        &[
            "BEGIN",
            "UPDATE t SET x = 4",
            "SAVEPOINT b",
            "UPDATE t SET x = 5",
        ],
    )?;
    all(&mut client, &["ROLLBACK TO b", "COMMIT"])?;
    same(&it.rows()?, "0:4,2:4 1:4,3:4")
}

fn taken_back(it: &World) -> Outcome {
    let mut client = it.filled()?;
    all(&mut client, &["BEGIN", "UPDATE t SET x = 1 WHERE id = 0"])?;
    // 4 and 5 are written before 3 is found to be there.
    duplicate(&mut client, "INSERT INTO t (id) VALUES (4), (5), (3)", "t")?;
    duplicate(&mut client, "INSERT INTO t (id) VALUES (1)", "t")?;
    same(&seen(&mut client)?, "0:1,1:0,2:0,3:0")?;
    all(
        &mut client,
        &["INSERT INTO t (id) VALUES (4), (5)", "COMMIT"],
    )?;
    same(&it.rows()?, "0:1,2:0,4:0 1:0,3:0,5:0")
}

fn phases(it: &World) -> Outcome {
    let mut client = it.filled()?;
    // BEGIN, COMMIT, and the verbs of XA.
    let writes_one = [
        "BEGIN",
        "SELECT * FROM t",
        "UPDATE t SET x = 1 WHERE id = 0",
        "COMMIT",
    ];
    let counted = costs(&it.one, &mut client, &writes_one)?;
    expect(counted == [0, 0, 1, 1, 0, 1], || format!("{counted:?}"))?;
    let reads = ["BEGIN", "SELECT * FROM t LOCK IN SHARE MODE", "COMMIT"];
    let counted = costs(&it.two, &mut client, &reads)?;
    expect(counted == [0, 0, 1, 1, 0, 1], || format!("{counted:?}"))?;
    let writes_both = ["BEGIN", "UPDATE t SET x = 2", "COMMIT"];
    let counted = costs(&it.two, &mut client, &writes_both)?;
    expect(counted == [0, 0, 1, 1, 1, 1], || format!("{counted:?}"))?;
    // Who does not wish for it has what everybody had.
    let attributes = |of: &str| {
        it.proxy.admin(&format!(
            "UPDATE mysql_users SET attributes = '{of}'; LOAD MYSQL USERS TO RUNTIME"
        ))
    };
    attributes("{}")?;
    let mut plain = log_in(it.proxy.port)?;
    let one = ["BEGIN", "UPDATE t SET x = 3 WHERE id = 0", "COMMIT"];
    let begins = ["/* hostgroup=1 */ BEGIN", one[1], one[2]];
    let counted = costs(&it.one, &mut plain, &begins)?;
    expect(counted == [1, 1, 0, 0, 0, 0], || format!("{counted:?}"))?;
    attributes(ATTRIBUTES)?;
    same(&it.rows()?, "0:3,2:2 1:2,3:2")
}

fn ends(it: &World) -> Outcome {
    let mut client = it.filled()?;
    let both = [
        "UPDATE t SET x = x + 1 WHERE id = 2",
        "UPDATE t SET x = x + 1 WHERE id = 3",
    ];
    // BEGIN and DDL commit, as they do on a server.
    all(&mut client, &["BEGIN", both[0], both[1], "BEGIN"])?;
    same(&it.rows()?, "0:0,2:1 1:0,3:1")?;
    all(
        &mut client,
        &[both[0], both[1], "CREATE TABLE IF NOT EXISTS made (a INT)"],
    )?;
    same(&it.rows()?, "0:0,2:2 1:0,3:2")?;
    same(&held(&it.proxy, &client)?, "")?;
    all(&mut client, &["BEGIN", both[0], both[1]])?;
    flagged(&mut client, "COMMIT AND CHAIN", IN_TRANS | AUTOCOMMIT)?;
    all(&mut client, &[both[0], both[1]])?;
    flagged(&mut client, "ROLLBACK AND CHAIN", IN_TRANS | AUTOCOMMIT)?;
    same(&it.rows()?, "0:0,2:3 1:0,3:3")?;
    all(&mut client, &[both[0], both[1], "COMMIT RELEASE"])?;
    same(&it.rows()?, "0:0,2:4 1:0,3:4")?;
    expect(client.ask("SELECT 1").is_err(), || {
        "it is still there".into()
    })?;
    let mut client = log_in(it.proxy.port)?;
    let begin = "START TRANSACTION READ ONLY";
    flagged(&mut client, begin, IN_TRANS | AUTOCOMMIT | READ_ONLY)?;
    same(&seen(&mut client)?, "0:0,1:0,2:4,3:4")?;
    fails(&mut client, both[0], "1792")?;
    flagged(&mut client, "COMMIT", AUTOCOMMIT)
}

/// A SELECT that no merging puts together sees what its transaction has written.
fn finished(it: &World) -> Outcome {
    let mut client = it.filled()?;
    let mut other = log_in(it.proxy.port)?;
    let cell = |client: &mut Raw, sql: &str| {
        let rows = asked(client, sql)?;
        let rows: Vec<_> = rows.iter().map(|row| row.join(":")).collect();
        Ok::<_, String>(rows.join(","))
    };
    let distinct = "SELECT COUNT(DISTINCT x) FROM t";
    let joined = "SELECT t.id, t.x, whole.x FROM t JOIN whole ON whole.id = t.id ORDER BY t.id";
    all(
        &mut client,
        &[
            "DELETE FROM whole",
            "BEGIN",
            "UPDATE t SET x = 7 WHERE id = 0",
            "UPDATE t SET x = 8 WHERE id = 3",
            "INSERT INTO t (id, x) VALUES (5, 9), (6, 9)",
            "INSERT INTO whole (id, x) VALUES (3, 1), (6, 2)",
        ],
    )?;
    same(&cell(&mut client, distinct)?, "4")?;
    same(&cell(&mut client, joined)?, "3:8:1,6:9:2")?;
    let inside = "SELECT id FROM t WHERE x = (SELECT MAX(x) FROM t) ORDER BY id";
    same(&cell(&mut client, inside)?, "5,6")?;
    same(&cell(&mut other, distinct)?, "1")?;
    same(&cell(&mut other, joined)?, "")?;
    // Plain tables have a branch, too. The connection with the copies is not the transaction's.
    same(
        &held(&it.proxy, &client)?,
        "Branch Branch Branch Transaction Transaction Transaction",
    )?;
    // Its error ends no transaction, and nor does a change that follows.
    fails(&mut client, "SELECT COUNT(DISTINCT nothing) FROM t", "1054")?;
    all(&mut client, &["UPDATE t SET x = x + 1 WHERE id IN (0, 3)"])?;
    same(&cell(&mut client, joined)?, "3:9:1,6:9:2")?;
    // Values of queries inside a change are the transaction's as well.
    all(
        &mut client,
        &[
            "UPDATE t SET x = x + 10 WHERE id IN (SELECT id FROM whole)",
            "DELETE FROM whole WHERE x IN (SELECT x - 18 FROM t WHERE id IN (3, 6))",
        ],
    )?;
    same(
        &cell(
            &mut client,
            "SELECT id, x FROM t WHERE id IN (3, 6) ORDER BY id",
        )?,
        "3:19,6:19",
    )?;
    same(&cell(&mut client, "SELECT id FROM whole")?, "6")?;
    same(&cell(&mut other, "SELECT COUNT(*) FROM whole")?, "0")?;
    all(&mut client, &["ROLLBACK"])?;
    same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
    // A snapshot is the transaction's as well, and a transaction that only reads may be finished.
    for begin in ["START TRANSACTION", "START TRANSACTION READ ONLY"] {
        all(&mut client, &[begin])?;
        same(&cell(&mut client, distinct)?, "1")?;
        all(&mut other, &["UPDATE t SET x = id"])?;
        same(&cell(&mut other, distinct)?, "4")?;
        same(&cell(&mut client, distinct)?, "1")?;
        flagged(&mut client, "COMMIT", AUTOCOMMIT)?;
        same(&cell(&mut client, distinct)?, "4")?;
        all(&mut other, &["UPDATE t SET x = 0"])?;
    }
    // The first statement begins it, where nothing else does.
    flagged(&mut client, "SET autocommit = 0", 0)?;
    same(&cell(&mut client, distinct)?, "1")?;
    all(&mut other, &["UPDATE t SET x = id"])?;
    same(&cell(&mut client, distinct)?, "1")?;
    flagged(&mut client, "SET autocommit = 1", AUTOCOMMIT)?;
    same(&cell(&mut client, distinct)?, "4")
}

fn refused(it: &World) -> Outcome {
    let mut client = it.filled()?;
    all(&mut client, &["BEGIN", "UPDATE t SET x = 1 WHERE id = 3"])?;
    let outside = "outside of the connections of the transaction";
    fails(&mut client, "UPDATE t SET id = 4 WHERE id = 3", outside)?;
    // Nothing of that has ended it.
    same(&seen(&mut client)?, "0:0,1:0,2:0,3:1")?;
    // A definition does, as on one server.
    all(&mut client, &["ALTER TABLE t ADD COLUMN defined INT"])?;
    all(&mut client, &["ROLLBACK"])?;
    same(&seen(&mut client)?, "0:0,1:0,2:0,3:1")?;
    all(
        &mut client,
        &[
            "ALTER TABLE t DROP COLUMN defined",
            "BEGIN",
            "UPDATE t SET x = 1 WHERE id = 3",
        ],
    )?;
    all(
        &mut client,
        &["COMMIT", "START TRANSACTION WITH CONSISTENT SNAPSHOT"],
    )?;
    fails(
        &mut client,
        "UPDATE t SET x = 1 WHERE id = 3",
        "a transaction is open on hostgroup",
    )?;
    all(&mut client, &["ROLLBACK"])?;
    it.proxy
        .admin("SET mysql-sharding_decisions = ''; LOAD MYSQL VARIABLES TO RUNTIME")?;
    all(&mut client, &["BEGIN", "UPDATE t SET x = 2 WHERE id = 3"])?;
    let outcome = "no table is named in which the outcome would be written";
    fails(&mut client, "UPDATE t SET x = 2 WHERE id = 0", outcome)?;
    all(&mut client, &["COMMIT"])?;
    it.proxy.admin(
        "SET mysql-sharding_decisions = 'millrace.decisions'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    same(&it.rows()?, "0:0,2:0 1:0,3:2")
}

fn interrupted(it: &World) -> Outcome {
    let mut client = it.filled()?;
    let mut other = log_in(it.two.port)?;
    all(
        &mut other,
        &["BEGIN", "SELECT * FROM t_3 WHERE id = 3 FOR UPDATE"],
    )?;
    let waits = || {
        last(
            &it.two,
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE info LIKE 'UPDATE `t_3`%'",
        )
    };
    let mut killer = log_in(it.proxy.port)?;
    let kill = format!("KILL QUERY {}", client.id);
    // One partition: the transaction goes on.
    all(&mut client, &["BEGIN", "UPDATE t SET x = 1 WHERE id = 1"])?;
    client
        .query("UPDATE t SET x = 1 WHERE id = 3")
        .map_err(|error| error.to_string())?;
    soon("1", waits)?;
    asked(&mut killer, &kill)?;
    let said = error(&mut client);
    expect(said.starts_with("1317"), || said.clone())?;
    all(&mut client, &["UPDATE t SET x = 1 WHERE id = 0", "COMMIT"])?;
    same(&it.rows()?, "0:1,2:0 1:1,3:0")?;
    // Several: it ends.
    all(&mut client, &["BEGIN", "UPDATE t SET x = 2 WHERE id = 1"])?;
    client
        .query("UPDATE t SET x = 3")
        .map_err(|error| error.to_string())?;
    soon("1", waits)?;
    asked(&mut killer, &kill)?;
    let said = error(&mut client);
    expect(said.starts_with("1317"), || said.clone())?;
    fails(&mut client, "SELECT 1", "1402")?;
    fails(&mut client, "COMMIT", "1402")?;
    all(&mut other, &["ROLLBACK"])?;
    soon("0", waits)?;
    all(&mut client, &["UPDATE t SET x = x + 1"])?;
    same(&it.rows()?, "0:2,2:1 1:2,3:1")
}

#[tokio::main(flavor = "current_thread")]
async fn prepared(it: &World) -> Outcome {
    drop(it.filled()?);
    let words = |error: mysql_async::Error| error.to_string();
    let mut conn = library::come_in(it.proxy.port).await.map_err(words)?;
    let update = "UPDATE t SET x = x + ? WHERE id = ?";
    let sum = "SELECT SUM(x) FROM t WHERE id < ?";
    for ends in ["COMMIT", "ROLLBACK"] {
        conn.query_drop("START TRANSACTION").await.map_err(words)?;
        for id in 0..4 {
            conn.exec_drop(update, (id + 1, id)).await.map_err(words)?;
        }
        conn.exec_drop("UPDATE t SET x = x + ? WHERE id IN (?, ?)", (100, 0, 1))
            .await
            .map_err(words)?;
        let found: Option<i64> = conn.exec_first(sum, (4,)).await.map_err(words)?;
        let wanted = match ends {
            "COMMIT" => 210,
            _ => 420,
        };
        expect(found == Some(wanted), || format!("{ends}: {found:?}"))?;
        let distinct = "SELECT COUNT(DISTINCT x) FROM t WHERE x > ?";
        let found: Option<i64> = conn.exec_first(distinct, (0,)).await.map_err(words)?;
        expect(found == Some(4), || format!("{ends}, finished: {found:?}"))?;
        // COMMIT and ROLLBACK are prepared as well.
        conn.exec_drop(ends, ()).await.map_err(words)?;
    }
    same(&it.rows()?, "0:101,2:3 1:102,3:4")
}

/// A connection is kept for `LAST_INSERT_ID()` while its branch ends with a statement that has failed, and
/// the next one begins there. Nothing else keeps it then: reads of several partitions go on.
fn kept_for_an_id(it: &World) -> Outcome {
    let silence = |ms: u32| {
        let set = [
            "handle_warnings_delay_ms",
            "auto_increment_delay_multiplex_timeout_ms",
        ];
        let set = set.map(|name| format!("SET mysql-{name} = {ms}"));
        set.iter().try_for_each(|one| beside::set(&it.proxy, one))
    };
    silence(10_000)?;
    let mut client = it.filled()?;
    all(&mut client, &["DELETE FROM numbered", "BEGIN"])?;
    all(&mut client, &["INSERT INTO numbered (k) VALUES (1)"])?;
    let made = asked(&mut client, "SELECT id FROM numbered WHERE k = 1")?;
    let again = format!(
        "INSERT INTO numbered (k, id) VALUES (1, {})",
        made.concat().concat()
    );
    duplicate(&mut client, &again, "numbered")?;
    flagged(&mut client, "COMMIT", AUTOCOMMIT)?;
    same(&held(&it.proxy, &client)?, "InsertId")?;
    all(
        &mut client,
        &["BEGIN", "SELECT * FROM numbered WHERE k = 1"],
    )?;
    same(&held(&it.proxy, &client)?, "Branch InsertId Transaction")?;
    all(&mut client, &["COMMIT"])?;
    let count = asked(&mut client, "SELECT COUNT(*) FROM numbered")?;
    same(&count.concat().concat(), "1")?;
    let last = asked(&mut client, "SELECT LAST_INSERT_ID()")?;
    same(&last.concat().concat(), &made.concat().concat())?;
    silence(5)
}

fn losses(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        deadlock(driver, vendor).map_err(|words| format!("{vendor}: {words}"))?;
    }
    // What is in doubt ends as for single changes, which are killed in all ways.
    coordinator_killed(driver, Vendor::MariaDb)
}

/// A deadlock on one server ends the transaction on both; a lost server, too.
fn deadlock(driver: Driver, vendor: Vendor) -> Outcome {
    let mut it = World::new(driver, vendor, ATTRIBUTES)?;
    let mut one = it.filled()?;
    let mut two = log_in(it.proxy.port)?;
    // The second has written less on the server that sees it, and is the victim.
    all(
        &mut one,
        &[
            "INSERT INTO t (id, x) VALUES (4, 0), (8, 0), (12, 0)",
            "BEGIN",
        ],
    )?;
    all(&mut one, &["UPDATE t SET x = 1 WHERE id IN (0, 4, 8, 12)"])?;
    all(
        &mut two,
        &[
            "BEGIN",
            "UPDATE t SET x = 2 WHERE id = 1",
            "UPDATE t SET x = 2 WHERE id = 2",
        ],
    )?;
    one.query("UPDATE t SET x = 1 WHERE id = 2")
        .map_err(|error| error.to_string())?;
    soon("1", || it.one.transactions("trx_state = 'LOCK WAIT'"))?;
    fails(&mut two, "UPDATE t SET x = 2 WHERE id = 0", "1213")?;
    let said = error(&mut one);
    expect(said == "[]", || said.clone())?;
    // It is over, and what it did on the other server is gone.
    flagged(&mut two, "UPDATE t SET x = x + 5 WHERE id = 1", AUTOCOMMIT)?;
    flagged(&mut one, "COMMIT", AUTOCOMMIT)?;
    same(&it.rows()?, "0:1,2:1,4:1,8:1,12:1 1:5,3:0")?;

    for ends in ["ROLLBACK", "COMMIT"] {
        all(
            &mut one,
            &[
                "BEGIN",
                "UPDATE t SET x = 7 WHERE id = 0",
                "UPDATE t SET x = 7 WHERE id = 3",
            ],
        )?;
        it.two.kill();
        if ends == "ROLLBACK" {
            fails(&mut one, "UPDATE t SET x = 7 WHERE id = 1", "1402")?;
            // Nothing of it is done by itself.
            fails(&mut one, "UPDATE t SET x = 7 WHERE id = 2", "1402")?;
            flagged(&mut one, ends, AUTOCOMMIT)?;
        } else {
            fails(&mut one, ends, "1402")?;
        }
        it.two.restart()?;
        soon("0:1,2:1,4:1,8:1,12:1 1:5,3:0", || it.rows())?;
        soon("1", || {
            Ok(u8::from(one.ask("SELECT x FROM t WHERE id = 3").is_ok()).to_string())
        })?;
    }
    all(&mut one, &["BEGIN", "UPDATE t SET x = 9", "COMMIT"])?;
    same(&it.rows()?, "0:9,2:9,4:9,8:9,12:9 1:9,3:9")
}

/// The proxy is killed between PREPARE and the outcome.
fn coordinator_killed(driver: Driver, vendor: Vendor) -> Outcome {
    let mut it = World::new(driver, vendor, ATTRIBUTES)?;
    drop(it.filled()?);
    let [first, second] = [0, 1].map(|id| format!("UPDATE t SET x = 1 WHERE id = {id}"));
    let (client, mut holder) = it.in_doubt(&["BEGIN", &first, &second, "COMMIT"])?;
    it.proxy.kill();
    drop(client);
    // What the dead proxy has said last is done.
    asked(&mut holder, "UNLOCK TABLES")?;
    soon("0", || it.waits())?;
    same(&it.prepared()?, "1 1")?;
    it.proxy.restart()?;
    soon("0 0", || it.prepared())?;
    same(&it.rows()?, "0:1,2:0 1:1,3:0")
}

const ACCOUNTS: u64 = 16;
const SUM: i64 = 16_000;
/// Sessions that are there at once in the end.
const CROWD: usize = 200;

/// Numbers that look like chance.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Two accounts, in the order in which everybody locks them: servers, partitions, rows.
    fn accounts(&mut self) -> [u64; 2] {
        let mut both = [self.below(ACCOUNTS), self.below(ACCOUNTS)];
        both.sort_by_key(|id| (id % 2, id % 4, *id));
        both
    }
}

/// Moves money in one transaction. `None`: the client is gone, or the statement was refused.
fn transfers(client: &mut Raw, dice: &mut Dice) -> std::io::Result<()> {
    let [from, to] = dice.accounts();
    let money = dice.below(50);
    client.ask("BEGIN")?;
    client.ask(&format!("UPDATE t SET x = x - {money} WHERE id = {from}"))?;
    client.ask(&format!("UPDATE t SET x = x + {money} WHERE id = {to}"))?;
    match dice.below(8) {
        0 => client.ask("ROLLBACK"),
        _ => client.ask("COMMIT"),
    }
    .map(drop)
}

/// Adds all accounts up, with their rows locked.
fn sums(client: &mut Raw) -> std::io::Result<String> {
    client.ask("BEGIN")?;
    let sum = client.ask("SELECT SUM(x) FROM t LOCK IN SHARE MODE")?;
    client.ask("COMMIT")?;
    Ok(sum.concat().concat())
}

/// Work of a bank's clients, and whether they are to stop.
#[derive(Default)]
struct Work {
    stop: AtomicBool,
    transfers: AtomicU64,
    sums: AtomicU64,
    /// Sums that are none.
    wrong: Mutex<Vec<String>>,
}

impl Work {
    /// Does this again and again until it is told to stop.
    fn until_stopped(&self, port: u16, mut once: impl FnMut(&mut Raw) -> std::io::Result<()>) {
        let mut client = None;
        while !self.stop.load(Ordering::Relaxed) {
            let Some(open) = &mut client else {
                client = log_in(port).ok();
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            let error = match once(open) {
                Ok(()) => continue,
                Err(error) => error,
            };
            let goes_on = error.kind() == std::io::ErrorKind::Other && open.ask("ROLLBACK").is_ok();
            if !goes_on {
                client = None;
            }
        }
    }

    fn transfer(&self, port: u16, seed: u64) {
        let mut dice = Dice(seed);
        self.until_stopped(port, |client| {
            transfers(client, &mut dice)?;
            self.transfers.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
    }

    fn sum(&self, port: u16) {
        self.until_stopped(port, |client| {
            let sum = sums(client)?;
            self.sums.fetch_add(1, Ordering::Relaxed);
            if sum != SUM.to_string()
                && let Ok(mut wrong) = self.wrong.lock()
            {
                wrong.push(sum);
            }
            Ok(())
        });
    }

    /// Waits until everybody has done more.
    fn goes_on(&self) -> Outcome {
        let done = || {
            let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
            (of(&self.transfers), of(&self.sums))
        };
        let (transfers, sums) = done();
        soon("more", || {
            let (now, then) = (done(), (transfers + 5, sums + 2));
            Ok(match now.0 > then.0 && now.1 > then.1 {
                true => "more".to_owned(),
                false => format!("{now:?} instead of {then:?}"),
            })
        })
    }

    /// Kills the proxy and a server, which is the one with the outcomes or the other one.
    fn kill_all(&self, it: &mut World, vendor: Vendor) -> Outcome {
        self.goes_on()?;
        it.proxy.kill();
        it.proxy.restart()?;
        self.goes_on()?;
        let server = match vendor {
            Vendor::MariaDb => &mut it.two,
            Vendor::MySql => &mut it.one,
        };
        server.kill();
        server.restart()?;
        self.goes_on()
    }
}

fn bank(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = World::new(driver, vendor, ATTRIBUTES)?;
        let mut client = log_in(it.proxy.port)?;
        let rows: Vec<_> = (0..ACCOUNTS).map(|id| format!("({id}, 1000)")).collect();
        let insert = format!("INSERT INTO t (id, x) VALUES {}", rows.join(", "));
        asked(&mut client, &insert)?;
        for server in [&it.one, &it.two] {
            server.root("SET GLOBAL innodb_lock_wait_timeout = 2")?;
        }
        it.proxy.admin("SET mysql-connect_timeout_server_max = 2000; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK")?;
        let (work, port) = (Work::default(), it.proxy.port);
        thread::scope(|scope| {
            for seed in 1..4 {
                let work = &work;
                scope.spawn(move || work.transfer(port, seed));
            }
            scope.spawn(|| work.sum(port));
            let killed = work.kill_all(&mut it, vendor);
            work.stop.store(true, Ordering::Relaxed);
            killed.map_err(|words| format!("{vendor}: {words}\n{}", it.proxy.log()))
        })?;
        let wrong = work.wrong.into_inner().map_err(|error| error.to_string())?;
        expect(wrong.is_empty(), || {
            format!("{vendor}: {wrong:?}\n{}", it.proxy.log())
        })?;
        soon("0 0", || it.prepared())?;
        crowd(&it).map_err(|words| format!("{vendor}: {words}\n{}", it.proxy.log()))?;
        let mut client = log_in(it.proxy.port)?;
        let sum = sums(&mut client).map_err(|error| error.to_string())?;
        same(&sum, &SUM.to_string())?;
        eprintln!(
            "{vendor}: {:?} transfers, {:?} sums",
            work.transfers, work.sums
        );
    }
    Ok(())
}

/// Many sessions at once, which end in every way, leave nothing behind.
fn crowd(it: &World) -> Outcome {
    thread::scope(|scope| {
        let all: Vec<_> = (0..CROWD)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = log_in(it.proxy.port)?;
                    let mut dice = Dice(number as u64 + 100);
                    for _ in 0..3 {
                        if transfers(&mut client, &mut dice).is_err() {
                            let _gone_or_not = client.ask("ROLLBACK");
                        }
                    }
                    // Every third one leaves in the middle.
                    if number % 3 == 0 {
                        let [from, _] = dice.accounts();
                        let _refused_or_not = client.ask("BEGIN").and_then(|_| {
                            client.ask(&format!("UPDATE t SET x = 0 WHERE id = {from}"))
                        });
                    }
                    Ok::<_, String>(())
                })
            })
            .collect();
        all.into_iter()
            .try_for_each(|one| one.join().map_err(|_| "a client has panicked".to_owned())?)
    })?;
    soon("0 0", || it.prepared())?;
    let left = "SELECT (SELECT COUNT(*) FROM stats_mysql_session_holds) || ' ' || (SELECT SUM(ConnUsed) FROM stats_mysql_connection_pool)";
    soon("0 0", || Ok(it.proxy.admin(left)?.trim().to_owned()))?;
    for server in [&it.one, &it.two] {
        soon("0", || server.transactions("TRUE"))?;
    }
    Ok(())
}
