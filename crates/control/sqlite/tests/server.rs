//! The embedded server over its sockets.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[path = "../../door/tests/client/mod.rs"]
mod client;

use client::{Client, Got};
use config::UserRow;
use rt::{Address, Driver, ListenOptions, Rt};
use sqlite::{Server, Users};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wire::auth::Plugin;
use wire::status::{AUTOCOMMIT, IN_TRANS, NO_BACKSLASH_ESCAPES};
use wire::types::Type;

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn one(name: &str, password: &str) -> Arc<config::Users> {
    let row = UserRow {
        username: name.into(),
        password: Some(password.into()),
        ..UserRow::default()
    };
    Arc::new(config::Users::build([row], &config::Variables::default()).unwrap())
}

fn with<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Rt, Address) -> F) {
    let directory = Directory(
        std::env::temp_dir().join(format!("millrace-sqlite-{name}-{}", std::process::id())),
    );
    std::fs::create_dir_all(&directory.0).unwrap();
    let server = Server::new(
        &directory.0,
        Users::new(one("demo", "demo")),
        "8.0.11-millrace",
    );
    server.prepare("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b REAL, c BLOB, d INT NOT NULL DEFAULT 0)").unwrap();
    let main = |rt: Rt| async move {
        let listener = rt
            .listen(&"127.0.0.1:0".parse().unwrap(), ListenOptions::default())
            .unwrap();
        let at = listener.local();
        rt.spawn(server.serve(rt.clone(), vec![listener]));
        test(rt, at).await;
    };
    rt::run(Driver::READINESS, main).unwrap();
}

#[test]
fn who_may_come_in_can_change_while_it_serves() {
    let directory = Directory(
        std::env::temp_dir().join(format!("millrace-sqlite-users-{}", std::process::id())),
    );
    std::fs::create_dir_all(&directory.0).unwrap();
    let users = Users::new(one("old", "1"));
    let server = Server::new(&directory.0, users.clone(), "8.0.11-millrace");
    let main = |rt: Rt| async move {
        let listener = rt
            .listen(&"127.0.0.1:0".parse().unwrap(), ListenOptions::default())
            .unwrap();
        let at = listener.local();
        rt.spawn(server.serve(rt.clone(), vec![listener]));
        let comes_in = async |name: &str, password: &str| {
            Client::login(&rt, &at, name, password, Plugin::MysqlNative, 0)
                .await
                .is_ok()
        };
        assert!(comes_in("old", "1").await && !comes_in("new", "2").await);
        users.replace(one("new", "2"));
        assert!(!comes_in("old", "1").await && comes_in("new", "2").await);
    };
    rt::run(Driver::READINESS, main).unwrap();
}

async fn enter(rt: &Rt, at: &Address) -> Client {
    Client::login(rt, at, "demo", "demo", Plugin::CachingSha2, 0)
        .await
        .unwrap_or_else(|refused| panic!("{refused:?}"))
}

async fn done(client: &Client, sql: &str) -> (u64, u64, u16) {
    match client.query(sql).await {
        Got::Ok {
            affected,
            insert_id,
            status,
            ..
        } => (affected, insert_id, status & !NO_BACKSLASH_ESCAPES),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn rows_keys_and_types_are_those_of_the_data() {
    with("types", |rt, at| async move {
        let client = enter(&rt, &at).await;
        assert_eq!(
            done(
                &client,
                "INSERT INTO t (a, b, c) VALUES ('x', 1.5, x'00FF'), ('y', 2, NULL)"
            )
            .await,
            (2, 1, AUTOCOMMIT)
        );
        assert_eq!(done(&client, "UPDATE t SET d = 5").await.0, 2);
        let got = client
            .query("SELECT id, a, b, c, d, count(*) OVER () AS n, NULL AS empty FROM t ORDER BY id")
            .await;
        let Got::Rows { columns, rows, .. } = &got else {
            panic!("{got:?}")
        };
        let kinds: Vec<_> = columns.iter().map(|(_, kind)| Type(*kind)).collect();
        let (integer, text) = (Type::LONGLONG, Type::VAR_STRING);
        assert_eq!(
            kinds,
            [
                integer,
                text,
                Type::DOUBLE,
                Type::BLOB,
                integer,
                integer,
                text
            ]
        );
        assert_eq!(rows[0][3].as_deref(), Some(&[0, 0xFF][..]));
        assert_eq!(got.texts()[1], ["2", "y", "2", "NULL", "5", "2", "NULL"]);
        assert_eq!(
            client
                .query("SELECT last_insert_id(), row_count(), version(), database()")
                .await
                .texts(),
            [["1", "2", "8.0.11-millrace", "main"]]
        );
    });
}

#[test]
fn transactions_are_isolated_and_the_flags_tell_of_them() {
    with("transactions", |rt, at| async move {
        let (one, two) = (enter(&rt, &at).await, enter(&rt, &at).await);
        assert_eq!(
            done(&one, "START TRANSACTION").await.2,
            AUTOCOMMIT | IN_TRANS
        );
        assert_eq!(
            done(&one, "INSERT INTO t (a) VALUES ('mine')").await.2,
            AUTOCOMMIT | IN_TRANS
        );
        assert_eq!(two.query("SELECT count(*) FROM t").await.texts(), [["0"]]);
        assert_eq!(done(&one, "COMMIT").await.2, AUTOCOMMIT);
        assert_eq!(two.query("SELECT count(*) FROM t").await.texts(), [["1"]]);
        // autocommit=0: the next statement begins a transaction.
        assert_eq!(done(&one, "SET autocommit=0").await.2, 0);
        assert_eq!(done(&one, "DELETE FROM t").await.2, IN_TRANS);
        assert_eq!(one.query("SELECT @@autocommit").await.texts(), [["0"]]);
        assert_eq!(done(&one, "ROLLBACK").await.2, 0);
        assert_eq!(done(&one, "SET autocommit=1").await.2, AUTOCOMMIT);
        assert_eq!(two.query("SELECT a FROM t").await.texts(), [["mine"]]);
        // A connection that is reset keeps nothing.
        done(&one, "BEGIN").await;
        done(&one, "DELETE FROM t").await;
        one.command(0x1F, b"").await;
        assert_eq!(
            one.answer(false).await.status() & !NO_BACKSLASH_ESCAPES,
            AUTOCOMMIT
        );
        assert_eq!(one.query("SELECT count(*) FROM t").await.texts(), [["1"]]);
    });
}

#[test]
fn who_waits_for_a_lock_does_not_stop_the_thread() {
    with("locks", |rt, at| async move {
        let (one, two, three) = (
            enter(&rt, &at).await,
            enter(&rt, &at).await,
            enter(&rt, &at).await,
        );
        done(&one, "BEGIN").await;
        done(&one, "INSERT INTO t (a) VALUES ('one')").await;
        two.command(3, b"INSERT INTO t (a) VALUES ('two')").await;
        rt.sleep(Duration::from_millis(30)).await;
        // The thread is free: others are answered, and the lock can be given back.
        assert_eq!(three.query("SELECT count(*) FROM t").await.texts(), [["0"]]);
        done(&one, "COMMIT").await;
        assert!(matches!(
            two.answer(false).await,
            Got::Ok { affected: 1, .. }
        ));
        // What was read is out of date: the transaction has to begin again.
        done(&one, "BEGIN").await;
        one.query("SELECT * FROM t").await;
        done(&two, "UPDATE t SET d = 1").await;
        assert_eq!(one.query("UPDATE t SET d = 2").await.code(), 1213);
        assert_eq!(
            one.query("SELECT count(*) FROM t").await.status() & IN_TRANS,
            0
        );
    });
}

#[test]
fn errors_have_the_numbers_of_mysql() {
    with("errors", |rt, at| async move {
        let client = enter(&rt, &at).await;
        done(&client, "INSERT INTO t (a) VALUES ('x')").await;
        for (sql, code) in [
            ("SELEC 1", 1064),
            ("SELECT 1; SELECT 2", 1064),
            ("", 1065),
            ("SELECT * FROM nosuch", 1146),
            ("SELECT nosuch FROM t", 1054),
            ("SELECT nosuch(1)", 1305),
            ("INSERT INTO t (a) VALUES ('x')", 1062),
            ("INSERT INTO t (d) VALUES (NULL)", 1048),
            ("CREATE TABLE t (a INT)", 1050),
            ("INSERT INTO t VALUES (1)", 1136),
            ("USE nosuch", 1049),
            ("ATTACH '/tmp/x' AS y", 1148),
            ("SET @a = 1", 1148),
        ] {
            assert_eq!(client.query(sql).await.code(), code, "{sql}");
        }
    });
}

#[test]
fn prepared_statements_have_parameters_and_binary_rows() {
    with("prepared", |rt, at| async move {
        let client = enter(&rt, &at).await;
        let (insert, columns, params) = client
            .prepare("INSERT INTO t (a, d) VALUES (?, ?)")
            .await
            .unwrap();
        assert_eq!((columns, params), (0, 2));
        assert!(matches!(
            client.execute(insert, &[Some("it's"), Some("7")]).await,
            Got::Ok {
                affected: 1,
                insert_id: 1,
                ..
            }
        ));
        assert!(matches!(
            client.execute(insert, &[None, Some("8")]).await,
            Got::Ok {
                affected: 1,
                insert_id: 2,
                ..
            }
        ));
        let (select, columns, params) = client
            .prepare("SELECT d, a FROM t WHERE d >= ? ORDER BY d")
            .await
            .unwrap();
        assert_eq!((columns, params), (2, 1));
        let Got::Rows { rows, .. } = client.execute(select, &[Some("7")]).await else {
            panic!("rows")
        };
        assert_eq!(
            rows[0][0].as_deref(),
            Some(&b"\0\0\x07\0\0\0\0\0\0\0\x04it's"[..])
        );
        assert_eq!(
            rows[1][0].as_deref(),
            Some(&b"\0\x08\x08\0\0\0\0\0\0\0"[..])
        );
        assert_eq!(
            client
                .prepare("SELECT nosuch FROM t")
                .await
                .unwrap_err()
                .code(),
            1054
        );
        let (set, columns, params) = client.prepare("SET NAMES utf8mb4").await.unwrap();
        assert_eq!((columns, params), (0, 0));
        assert!(matches!(client.execute(set, &[]).await, Got::Ok { .. }));
    });
}

#[test]
fn a_long_result_is_streamed_while_others_are_answered() {
    with("stream", |rt, at| async move {
        let slow = enter(&rt, &at).await;
        slow.command(
            3,
            b"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x < 300000) SELECT x, 'some text' FROM n",
        )
        .await;
        let other = enter(&rt, &at).await;
        assert_eq!(other.query("SELECT 1").await.texts(), [["1"]]);
        assert_eq!(slow.answer(false).await.texts().len(), 300_000);
    });
}

#[test]
fn what_clients_ask_at_their_start_is_answered() {
    with("start", |rt, at| async move {
        let client = enter(&rt, &at).await;
        for sql in [
            "SET NAMES utf8mb4",
            "SET SESSION sql_mode='ANSI'",
            "SET character_set_results = NULL",
            "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE */",
            "UNLOCK TABLES",
            "USE `main`",
        ] {
            done(&client, sql).await;
        }
        assert_eq!(
            client
                .query("select @@version_comment limit 1")
                .await
                .texts(),
            [["SQLite inside of Millrace"]]
        );
        assert_eq!(
            client
                .query("SHOW VARIABLES LIKE 'lower_case%'")
                .await
                .texts(),
            [["lower_case_table_names", "0"]]
        );
        assert_eq!(
            client.query("SHOW DATABASES").await.texts(),
            [["information_schema"], ["main"]]
        );
        assert_eq!(client.query("SHOW TABLES").await.texts(), [["t"]]);
        assert_eq!(
            client.query("SHOW FULL TABLES LIKE 't%'").await.texts(),
            [["t", "BASE TABLE"]]
        );
        assert_eq!(client.query("DESCRIBE t").await.texts().len(), 5);
        assert_eq!(client.query("SHOW WARNINGS").await.texts().len(), 0);
        assert_eq!(
            client.query("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()").await.texts(),
            [["t"]]
        );
        assert_eq!(
            client
                .query("SELECT @@character_set_client, @@nosuch")
                .await
                .texts(),
            [["utf8mb4", "NULL"]]
        );
        client.command(0x04, b"t\0").await;
        for name in ["id", "a", "b", "c", "d"] {
            let payload = client.packet().await.unwrap();
            assert!(
                payload
                    .windows(name.len())
                    .any(|part| part == name.as_bytes())
            );
        }
        assert_eq!(client.packet().await.unwrap()[0], 0xFE);
        assert_eq!(client.query("SELECT 1").await.texts(), [["1"]]);
    });
}
