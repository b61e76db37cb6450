//! Writes to sharded tables beside plain changes, compared with one table of all rows: INSERTs without a
//! list of columns, new keys, rows of queries.
#![forbid(unsafe_code)]

use conformance::by_hand;
use conformance::library;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row, Value, WhiteListFsHandler};
use std::fmt::Write as _;
use wire::caps;
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "random_changes_and_transactions_are_those_of_one_server",
            at_random,
        ),
        (
            "values_of_queries_inside_a_change_are_read_first",
            by_values,
        ),
        (
            "an_insert_without_columns_goes_where_its_key_belongs",
            unlisted,
        ),
        (
            "rows_with_a_new_key_move_as_one_server_changes_them",
            rekeyed,
        ),
        ("rows_of_a_query_are_inserted_where_they_belong", selected),
        ("rows_of_a_file_are_loaded_where_they_belong", loaded),
    ])
}

/// Two servers with two partitions each of `t`, and tables with all rows on the first.
struct World {
    one: Server,
    two: Server,
    proxy: Proxy,
}

/// Columns whose values are easily changed on their way.
const COLUMNS: &str = "(id INT NOT NULL, name VARCHAR(40) CHARACTER SET utf8mb4, x INT NOT NULL DEFAULT 0, \
     d DECIMAL(10,3), at TIMESTAMP(3) NULL DEFAULT NULL, f FLOAT, b VARBINARY(20), l VARCHAR(20) CHARACTER SET latin1, \
     g INT GENERATED ALWAYS AS (x * 2) STORED, n INT NOT NULL DEFAULT 7, PRIMARY KEY (id, n), KEY (x))";
const USERS: &str = "(nickname VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, id INT NOT NULL, age INT, PRIMARY KEY (id))";
const DECISIONS: &str = "CREATE DATABASE millrace; CREATE TABLE millrace.decisions (transaction VARCHAR(64) CHARACTER SET ascii PRIMARY KEY, \
    outcome VARCHAR(8) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB; \
    GRANT SELECT, INSERT ON millrace.decisions TO monitor@'%'";
const MAP: &str = "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_table, default_hostgroup) \
        VALUES ('t', 'id', 'INT', 'MOD(4)', 't_default', 1), ('s', 'id', 'INT', 'MOD(4)', 's_default', 1), \
        ('users', 'nickname', 'VARCHAR', 'PREFIX(3)', 'users_default', 1); \
     INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id) VALUES \
        ('t', '0', '0', 1), ('t', '1', '1', 2), ('t', '2', '2', 1), ('t', '3', '3', 2), \
        ('s', '0', '0', 1), ('s', '1', '1', 2), ('s', '2', '2', 1), ('s', '3', '3', 2), \
        ('users', 'nick1', 'mar', 1), ('users', 'nick2', 'foo', 2); \
     LOAD MYSQL SHARDS TO RUNTIME; \
     UPDATE mysql_users SET attributes = '{\"partition_changes\":\"xa\"}'; LOAD MYSQL USERS TO RUNTIME; \
     SET mysql-sharding_decisions = 'millrace.decisions'; SET mysql-sharding_decisions_hostgroup = 1; \
     SET mysql-enable_load_data_local_infile = 'true'; LOAD MYSQL VARIABLES TO RUNTIME";

fn world(driver: Driver, vendor: Vendor) -> Result<World, String> {
    let options = ["--local-infile=1"];
    let (one, two) = (
        Server::start_with(vendor, &options)?,
        Server::start_with(vendor, &options)?,
    );
    for server in [&one, &two] {
        server.root(by_hand::CREATE_USER)?;
        server
            .root("CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; GRANT ALL ON *.* TO app@'%'")?;
        if vendor == Vendor::MySql {
            server.root("GRANT XA_RECOVER_ADMIN ON *.* TO monitor@'%'")?;
        }
    }
    let make = |names: &[&str], columns: &str| {
        let all = names
            .iter()
            .map(|name| format!("CREATE TABLE {name} {columns}"));
        all.collect::<Vec<_>>().join("; ")
    };
    one.root(&format!(
        "USE conf; {}; {}; {}; CREATE TABLE plain (id INT, x INT); {DECISIONS}",
        make(
            &["t_default", "t_0", "t_2", "s_default", "s_0", "s_2"],
            COLUMNS
        ),
        make(&["whole_t", "whole_s"], COLUMNS),
        make(&["users_default", "users_nick1", "whole_users"], USERS),
    ))?;
    two.root(&format!(
        "USE conf; {}; {}",
        make(&["t_1", "t_3", "s_1", "s_3"], COLUMNS),
        make(&["users_nick2"], USERS),
    ))?;
    let mut wish = Wish::in_front_of(&one);
    for (server, hostgroup) in [(&one, 1), (&two, 2)] {
        wish.add(hostgroup, server);
    }
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(MAP)?;
    Ok(World { one, two, proxy })
}

/// A client of the proxy, and one of the server that has all rows.
struct Beside {
    vendor: Vendor,
    parts: Conn,
    whole: Conn,
}

impl Beside {
    async fn of(vendor: Vendor, it: &World) -> Result<Self, String> {
        let words = |error: mysql_async::Error| error.to_string();
        Ok(Self {
            vendor,
            parts: library::come_in(it.proxy.port).await.map_err(words)?,
            whole: library::come_in(it.one.port).await.map_err(words)?,
        })
    }

    /// Says a statement to both, in which `{t}` is a table; what both answer, and rows of `t` and `s`
    /// then, must be the same.
    async fn say(&mut self, sql: &str) -> Result<String, String> {
        self.say_with(sql, &[]).await
    }

    async fn say_with(&mut self, sql: &str, values: &[Value]) -> Result<String, String> {
        let found = said(&mut self.parts, &named(sql, ""), values).await;
        let wanted = said(&mut self.whole, &named(sql, "whole_"), values).await;
        let vendor = self.vendor;
        expect(found == wanted, || {
            format!("{vendor}: {sql}: {found} instead of {wanted}")
        })?;
        self.compare(sql).await?;
        Ok(found)
    }

    async fn compare(&mut self, sql: &str) -> Outcome {
        for rows in [
            "SELECT * FROM {t} ORDER BY id, n",
            "SELECT * FROM {s} ORDER BY id, n",
            "SELECT * FROM {users} ORDER BY id",
        ] {
            let found = shown(&mut self.parts, &named(rows, "")).await?;
            let wanted = shown(&mut self.whole, &named(rows, "whole_")).await?;
            let vendor = self.vendor;
            expect(found == wanted, || {
                format!("{vendor}: {sql}: {rows}: {found} instead of {wanted}")
            })?;
        }
        Ok(())
    }

    /// Only the proxy is asked; the error that it gives.
    async fn refused(&mut self, sql: &str, words: &str) -> Outcome {
        let found = said(&mut self.parts, &named(sql, ""), &[]).await;
        let vendor = self.vendor;
        expect(found.contains(words), || {
            format!("{vendor}: {sql}: {found} instead of {words}")
        })?;
        self.compare(sql).await
    }
}

/// A statement with names of tables.
fn named(sql: &str, before: &str) -> String {
    ["t", "s", "users"]
        .iter()
        .fold(sql.to_owned(), |sql, table| {
            sql.replace(&format!("{{{table}}}"), &format!("{before}{table}"))
        })
}

/// Returns what a client is told of a change.
async fn said(conn: &mut Conn, sql: &str, values: &[Value]) -> String {
    let done = match values.is_empty() {
        true => conn.query_drop(sql).await,
        false => conn.exec_drop(sql, values.to_vec()).await,
    };
    match done {
        Ok(()) => format!(
            "{} rows, {}, {} warnings",
            conn.affected_rows(),
            conn.info(),
            conn.get_warnings()
        ),
        // A sentence of ours is told: no server says such a thing.
        Err(mysql_async::Error::Server(error)) if error.message.contains("HSCALE") => error.message,
        Err(mysql_async::Error::Server(error)) => format!("error {}", error.code),
        Err(error) => format!("{error}"),
    }
}

async fn shown(conn: &mut Conn, sql: &str) -> Result<String, String> {
    let rows: Vec<Row> = conn
        .query(sql)
        .await
        .map_err(|error| format!("{sql}: {error}"))?;
    let rows = rows.into_iter().map(|row| format!("{:?}", row.unwrap()));
    Ok(rows.collect::<Vec<_>>().join("\n"))
}

#[tokio::main(flavor = "current_thread")]
async fn unlisted(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        let mut both = Beside::of(vendor, &it).await?;
        for sql in [
            "INSERT INTO {t} VALUES (1, 'a', 1, 1.5, '2008-12-24 10:00:00.125', 1.25, x'00ff', 'é', DEFAULT, 7)",
            "INSERT INTO {t} VALUES (2, 'it''s', 2, NULL, NULL, NULL, NULL, NULL, DEFAULT, 7), (3, 'ä', 3, 2, NULL, 0.1, '', '', DEFAULT, 8), (4, '', 4, -1, NULL, -0.5, NULL, NULL, DEFAULT, 7)",
            "insert ignore {t} value (1, 'b', 2, 1, NULL, 1, 'b', 'b', DEFAULT, 7), (5, 'b', 2, 1, NULL, 1, 'b', 'b', DEFAULT, 7)",
            "REPLACE INTO {t} VALUES (1, 'r', 9, 9, NULL, 9, 'r', 'r', DEFAULT, 7), (6, 'r', 9, 9, NULL, 9, 'r', 'r', DEFAULT, 7)",
            "INSERT INTO {t} VALUES (1, 'u', 0, 0, NULL, 0, NULL, NULL, DEFAULT, 7), (9, 'u', 0, 0, NULL, 0, NULL, NULL, DEFAULT, 7) ON DUPLICATE KEY UPDATE x = VALUES(x) + 100",
            "INSERT INTO {t} VALUES (1, 'u', 0, 0, NULL, 0, NULL, NULL, DEFAULT, 7)",
            "INSERT INTO {t} VALUES (1, 'u')",
            "INSERT INTO {t} (id, name) VALUES (1, 'u', 3)",
            "INSERT INTO {users} VALUES ('marvel', 1, 30), ('foobar', 2, 31), ('other', 3, 32)",
        ] {
            both.say(sql).await?;
        }
        let values = |id: i32| -> Vec<Value> {
            vec![
                id.into(),
                "prepared ü".into(),
                5.into(),
                "1.125".into(),
                Value::NULL,
                2.5_f32.into(),
                b"\xff\0".to_vec().into(),
                "é".into(),
                7.into(),
            ]
        };
        for id in [21, 22, 23, 21] {
            let sql = "INSERT INTO {t} VALUES (?, ?, ?, ?, ?, ?, ?, ?, DEFAULT, ?)";
            both.say_with(sql, &values(id)).await?;
        }
        both.refused("INSERT INTO {t} VALUES ()", "must have a value for id")
            .await?;
        // Another order, through the proxy: it is known at once.
        for sql in [
            "ALTER TABLE {t} ADD COLUMN z INT FIRST",
            "INSERT INTO {t} VALUES (77, 31, 'a', 1, 1.5, NULL, 1.25, 'b', 'é', DEFAULT, 7)",
            "INSERT INTO {t} VALUES (31, 'a', 1, 1.5, NULL, 1.25, 'b', 'é', DEFAULT, 7)",
        ] {
            let done = both.say(sql).await?;
            // Duplicates and the like are counted by ALTER differently.
            expect(!done.contains("1235"), || {
                format!("{vendor}: {sql}: {done}")
            })?;
        }
        // By somebody else: after an error of a server it is known.
        both.say("INSERT INTO {t} VALUES (77, 34, 'a', 1, 1.5, NULL, 1.25, 'b', 'é', DEFAULT, 7)")
            .await?;
        for (server, tables) in [
            (&it.one, &["t_default", "t_0", "t_2", "whole_t"][..]),
            (&it.two, &["t_1", "t_3"][..]),
        ] {
            for table in tables {
                server.root(&format!("ALTER TABLE conf.{table} DROP COLUMN z"))?;
            }
        }
        let short = "INSERT INTO {t} VALUES (32, 'a', 1, 1.5, NULL, 1.25, 'b', 'é', DEFAULT, 7)";
        let long = "INSERT INTO {t} VALUES (77, 33, 'a', 1, 1.5, NULL, 1.25, 'b', 'é', DEFAULT, 7)";
        let first = said(&mut both.parts, &named(long, ""), &[]).await;
        same(&first, "error 1054")?;
        both.say(short).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn rekeyed(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        let mut both = Beside::of(vendor, &it).await?;
        for sql in [
            "INSERT INTO {t} (id, name, x, d, at, f, b, l) VALUES (1, 'ä', 1, 1.5, '2008-10-26 02:30:00.125', 0.1, x'00ff', 'é'), \
               (2, 'it''s \\\\', 2, NULL, NULL, 16777217, '', NULL), (3, NULL, 3, 1, '2008-12-24', 1e30, x'5c27', 'ü'), (5, 'e', 5, 1, NULL, 1, 'e', 'e')",
            "INSERT INTO {users} (nickname, id, age) VALUES ('marvel', 1, 30), ('foobar', 2, 31), ('other', 3, 32), ('marc', 4, 33)",
            // To the partition where it is.
            "UPDATE {users} SET nickname = 'Marvin', age = 40 WHERE nickname = 'marvel'",
            "UPDATE {users} SET nickname = 'Marvin', age = 40 WHERE nickname = 'marvin'",
            "UPDATE {t} SET id = 5 WHERE id = 1",
            "UPDATE {t} SET id = 5, x = 6 WHERE id = 5",
            "UPDATE {t} SET id = id, x = x + 1 WHERE id = 5",
            // To another one.
            "UPDATE {users} SET nickname = 'foo', age = age + 1 WHERE nickname = 'marvin'",
            "UPDATE {t} SET id = 8, x = x + 10 WHERE id = 5",
            "UPDATE {t} SET id = 3, n = 9 WHERE id = 2",
            "UPDATE {t} SET id = '7', name = CONCAT(COALESCE(name, ''), '!') WHERE id = 3 AND n = 7",
            "UPDATE {t} SET id = 6, n = x WHERE id IN (3, 7, 8)",
            "UPDATE {users} SET nickname = 'nobody' WHERE id = 3",
            "UPDATE {users} SET nickname = 'foobar' WHERE id = 2",
            "UPDATE {users} SET nickname = 'marx' WHERE age > 30",
            "UPDATE {users} SET nickname = 'marx' WHERE id = 99",
            "UPDATE {users} SET nickname = 'fool' WHERE nickname = 'nothing'",
            // A row is there already.
            "INSERT INTO {t} (id, name, n) VALUES (10, 'ten', 1), (11, 'eleven', 1)",
            "UPDATE {t} SET id = 11 WHERE id = 10",
            "UPDATE {t} SET id = 11, n = 2 WHERE id = 10",
        ] {
            both.say(sql).await?;
        }
        let update = "UPDATE {t} SET id = ?, name = ? WHERE id = ?";
        for (to, from) in [(14, 6), (14, 14), (18, 14), (21, 18)] {
            let values = [to.into(), "it's \\ é".into(), from.into()];
            both.say_with(update, &values).await?;
        }
        let values = ["Fool".into(), "marx".into()];
        both.say_with(
            "UPDATE {users} SET nickname = ? WHERE nickname = ?",
            &values,
        )
        .await?;
        for (sql, words) in [
            (
                "UPDATE {t} SET id = id + 1 WHERE id = 21",
                "must be written out",
            ),
            (
                "UPDATE IGNORE {t} SET id = 20 WHERE id = 21",
                "leave IGNORE out",
            ),
            (
                "UPDATE {t} SET id = 20 WHERE id = 21 LIMIT 1",
                "up to a LIMIT",
            ),
            (
                "UPDATE {users} SET nickname = 'märz' WHERE id = 1",
                "is not certain",
            ),
        ] {
            both.refused(sql, words).await?;
        }
        // Rows to which others point stay, as does what is more than may be.
        it.two.root("CREATE TABLE conf.pointing (id INT, FOREIGN KEY (id) REFERENCES conf.users_nick2 (id) ON DELETE CASCADE) ENGINE=InnoDB")?;
        both.refused(
            "UPDATE {users} SET nickname = 'marble' WHERE nickname = 'fool'",
            "foreign key",
        )
        .await?;
        it.two.root("DROP TABLE conf.pointing")?;
        it.proxy
            .admin("SET mysql-sharding_insert_max_rows = 1; LOAD MYSQL VARIABLES TO RUNTIME")?;
        both.refused(
            "UPDATE {users} SET nickname = 'marble' WHERE nickname = 'fool'",
            "mysql-sharding_insert_max_rows allows 1",
        )
        .await?;
        it.proxy
            .admin("SET mysql-sharding_insert_max_rows = 0; LOAD MYSQL VARIABLES TO RUNTIME")?;
        // A trigger gives another key.
        it.two.root("CREATE TRIGGER conf.other BEFORE UPDATE ON conf.users_nick2 FOR EACH ROW SET NEW.nickname = 'xyz'")?;
        both.refused(
            "UPDATE {users} SET nickname = 'marble' WHERE nickname = 'fool'",
            "a trigger may have changed it",
        )
        .await?;
        it.two.root("DROP TRIGGER conf.other")?;
        both.say("UPDATE {users} SET nickname = 'marble' WHERE nickname = 'fool'")
            .await?;
        // One partition is all that this user may change.
        it.proxy
            .admin("UPDATE mysql_users SET attributes = ''; LOAD MYSQL USERS TO RUNTIME")?;
        both.parts = library::come_in(it.proxy.port)
            .await
            .map_err(|error| error.to_string())?;
        both.refused(
            "UPDATE {users} SET nickname = 'fool' WHERE nickname = 'marble'",
            "partition_changes to xa",
        )
        .await?;
        both.say("UPDATE {users} SET nickname = 'Marc', age = 1 WHERE nickname = 'marble'")
            .await?;
        let prepared = it.two.root("XA RECOVER")?;
        expect(!prepared.contains("millrace-"), || prepared.clone())?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn selected(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        let mut both = Beside::of(vendor, &it).await?;
        for sql in [
            "INSERT INTO {t} (id, name, x, d, at, f, b, l) VALUES (1, 'ä', 1, 1.5, '2008-10-25 02:30:00.125', 0.5, x'00ff', 'é'), \
               (2, 'it''s \\\\', 2, NULL, NULL, 16777217, '', NULL), (3, NULL, 3, 1, '2008-12-24', 1e30, x'5c27', 'ü'), (5, 'e', 5, 1, NULL, 1, 'e', 'e')",
            // Beside each other.
            "INSERT INTO {s} (id, name, x, d, at, f, b, l) SELECT id, name, x, d, at, f, b, l FROM {t} ORDER BY id",
            "INSERT INTO {s} (id, name, x) SELECT id, name, x FROM {t}",
            "INSERT IGNORE INTO {s} (name, id, n) SELECT name, id, x FROM {t} WHERE id IN (1, 2)",
            "REPLACE INTO {s} (id, x, name) SELECT a.id, a.x + b.x, b.name FROM {t} a JOIN {t} b ON a.id = b.id",
            "INSERT INTO {s} (id, x) SELECT id, x FROM {t} WHERE id = 3 LIMIT 1 ON DUPLICATE KEY UPDATE x = VALUES(x) + 1000",
            "INSERT INTO {t} (id, name, x, n) SELECT id, name, x, n + 10 FROM {t}",
            // Elsewhere.
            "INSERT INTO {t} (id, name, x, d, at, b, l, n) SELECT id + 100, name, x, d, at, b, l, n FROM {s}",
            "INSERT INTO {t} (id, name, f, n) SELECT id + 200, name, f + 0e0, n FROM {t} WHERE id < 10",
            "INSERT INTO {users} (nickname, id, age) SELECT CASE x WHEN 1 THEN 'mar' WHEN 2 THEN 'foo' ELSE 'other' END, id, x FROM {s}",
            "INSERT INTO {s} (id, name, n) SELECT age, nickname, id + 1000 FROM {users}",
            "INSERT INTO {s} SELECT id + 300, name, x, d, at, f + 0e0, b, l, NULL, n FROM {t} WHERE id < 3",
            "INSERT INTO {t} (id, x, n) SELECT x, COUNT(*), 500 FROM {t} GROUP BY x",
            "INSERT INTO {t} (id, x, n) SELECT MAX(x) + 10, COUNT(DISTINCT name), 501 FROM {t}",
            "REPLACE INTO {t} (id, x, n) SELECT x, 7, 500 FROM {t} WHERE n = 500",
            "INSERT IGNORE INTO {t} (id, x, n) SELECT x, 7, 500 FROM {t} WHERE n = 500",
            "INSERT INTO {t} (id, x, n) SELECT x, 7, 500 FROM {t} WHERE n = 500",
            "INSERT INTO {t} (id, n) SELECT id, 600 FROM {t} WHERE id = 12345",
            "INSERT INTO {t} (id, n) SELECT id + 1, 600 FROM {t} WHERE id = 12345",
            "INSERT INTO {t} (id, n) (SELECT 41, 600 UNION ALL SELECT 42, 600)",
            "INSERT INTO {t} (id, x, n) SELECT id, x, 601 FROM plain",
        ] {
            both.say(sql).await?;
        }
        it.one
            .root("INSERT INTO conf.plain VALUES (51, 1), (52, 2), (53, NULL)")?;
        for sql in [
            "INSERT INTO {t} (id, x, n) SELECT id, COALESCE(x, 9), 602 FROM plain",
            "INSERT INTO {t} (id, x, n) SELECT id, x, 603 FROM plain",
        ] {
            both.say(sql).await?;
        }
        let values = [700.into(), "it's".into(), 3.into()];
        both.say_with(
            "INSERT INTO {t} (id, name, n) SELECT id + ?, ?, 604 FROM {t} WHERE id < ?",
            &values,
        )
        .await?;
        let values = [605.into(), 3.into()];
        both.say_with(
            "INSERT INTO {t} (id, n) SELECT id, ? FROM {s} WHERE id = ?",
            &values,
        )
        .await?;
        // Into a plain table, from several partitions.
        let count = "SELECT COUNT(*), SUM(x) FROM plain";
        same(
            &said(
                &mut both.parts,
                "INSERT INTO plain SELECT id, x FROM s WHERE x < 4",
                &[],
            )
            .await,
            &said(
                &mut both.whole,
                "INSERT INTO plain SELECT id, x FROM whole_s WHERE x < 4",
                &[],
            )
            .await,
        )?;
        let rows = it.one.root(&format!("USE conf; {count}"))?;
        expect(!rows.contains("NULL"), || rows.clone())?;
        for (sql, words) in [
            (
                "INSERT INTO {t} (id, f, n) SELECT id + 1, f, 9 FROM {t}",
                "FLOAT",
            ),
            (
                "INSERT INTO {t} (x, n) SELECT id, 9 FROM {t}",
                "must have a value for id",
            ),
            (
                "INSERT INTO {users} (nickname, id) SELECT 'märz', 77",
                "is not certain",
            ),
            (
                "INSERT INTO {t} (id, n) SELECT id + 1, 9 FROM {s} ON DUPLICATE KEY UPDATE x = 1",
                "ON DUPLICATE KEY",
            ),
            (
                "CREATE TABLE copied SELECT * FROM {t}",
                "CREATE the table first",
            ),
            (
                "EXPLAIN INSERT INTO {t} (id, n) SELECT id + 1, 9 FROM {s}",
                "EXPLAIN the query alone",
            ),
            ("DROP TABLE {t}", "take its rows out of mysql_shard_tables"),
            (
                "RENAME TABLE {t} TO u, away TO v",
                "rename each kind by itself",
            ),
        ] {
            both.refused(sql, words).await?;
        }
        both.parts
            .query_drop("CREATE TABLE like_t LIKE t")
            .await
            .map_err(|error| format!("{vendor}: {error}"))?;
        it.one.root("INSERT INTO conf.like_t (id) VALUES (1)")?;
        it.proxy
            .admin("SET mysql-sharding_insert_max_rows = 3; LOAD MYSQL VARIABLES TO RUNTIME")?;
        both.refused(
            "INSERT INTO {t} (id, n) SELECT id + 1, 9999 FROM {t}",
            "mysql-sharding_insert_max_rows allows 3",
        )
        .await?;
    }
    Ok(())
}

/// A file, the table that it is for, and what is said of it behind the table's name. Of fields in quotes
/// and of lines that are no rows there is everything.
const FILES: &[(&str, &str, &str)] = &[
    (
        "1\tä\t1\t1.5\n2\tit's \\\\ \\t\\\n.\t2\t\\N\n3\t\\N\t3\t\n-4\tx\t4\t4",
        "t",
        "(id, name, x, d)",
    ),
    (
        "id,name,x\r\n\"5\",\"a \"\"quoted\"\", name\r\n\",5\r\n6,NULL,6\r\n7,\"NULL\",7\r\n8,un\"quoted,8\r\n",
        "t",
        "CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (id, name, x)",
    ),
    (
        "marvel|1|30|more|and more\nfoobar|2|31\n|3|\\N\n",
        "users",
        "FIELDS TERMINATED BY '|'",
    ),
    // Some are there, and some have too many fields.
    (
        "marvel\t1\t99\nmaria\t11\t40\textra\nfool\t12\t41\n",
        "users",
        "",
    ),
    (
        "1\tagain\t1\t1\n21\tnew\t1\t1\n22\tnew\t1\t1\n",
        "t",
        "(id, name, x, d)",
    ),
    (
        "junk\nrow:31,a,1\nno row\nand row:32,b,2\n",
        "t",
        "COLUMNS TERMINATED BY ',' LINES STARTING BY 'row:' (id, name, x)",
    ),
    (
        "41;'it''s';1\n42;'a;b';2\n43;'';3\n",
        "t",
        "FIELDS TERMINATED BY ';' ENCLOSED BY '\\'' ESCAPED BY '' (id, name, x)",
    ),
    (
        "\"51\",\"a\"\"b\"\n\"52\",\"c\"\n",
        "t",
        "FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY '\"' (id, name)",
    ),
    (
        "a--61==b--62==c--63==",
        "t",
        "FIELDS TERMINATED BY '--' LINES TERMINATED BY '==' (name, id)",
    ),
    ("", "t", "(id, name)"),
    ("only a head\n", "t", "IGNORE 1 ROWS (id, name)"),
];

/// A client that sends any file of this folder.
/// Queries inside of an UPDATE or DELETE that read other partitions, other tables, or plain ones.
#[tokio::main(flavor = "current_thread")]
async fn by_values(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        let mut both = Beside::of(vendor, &it).await?;
        it.one
            .root("INSERT INTO conf.plain VALUES (1, 1), (6, 2), (9, NULL)")?;
        for sql in [
            "INSERT INTO {t} (id, name, x, d, at, f, b, l) VALUES (1, 'marvel', 1, 1.5, '2008-10-25 02:30:00.125', 0.5, x'00ff', 'é'), \
               (2, 'it''s \\\\', 2, NULL, NULL, 16777217, '', NULL), (3, 'foobar', 3, 1, '2008-12-24', 1e30, x'5c27', 'ü'), (4, 'ä', 4, 1, NULL, 1, 'e', 'e'), \
               (5, 'other', 5, 7, NULL, 2, NULL, 'x'), (6, 'y', 6, 8, NULL, 2, 'b', 'z'), (7, 'z', 7, 9, NULL, 2, 'c', 'z'), (8, 'z', 8, 9, NULL, 2, 'c', 'z')",
            "INSERT INTO {s} (id, name, x, d, at, f, b, l, n) SELECT id + 1, name, x, d, at, f + 0e0, b, l, id FROM {t}",
            "INSERT INTO {users} (nickname, id, age) VALUES ('marvel', 1, 30), ('foobar', 2, 31), ('other', 3, 32), ('zzz', 4, NULL)",
            "UPDATE {t} SET x = x + 1 WHERE id IN (SELECT id FROM {s} WHERE x > 3)",
            "UPDATE {t} SET x = x + 1 WHERE id IN (SELECT id FROM {s} WHERE x > 3000)",
            "UPDATE {t} SET x = x + 1 WHERE id NOT IN (SELECT id FROM {s} WHERE x > 3000)",
            "UPDATE {t} SET x = x + 1 WHERE id NOT IN (SELECT age FROM {users})",
            "UPDATE {t} SET x = x + 1 WHERE id IN (SELECT age - 28 FROM {users})",
            "UPDATE {t} SET x = x + 1 WHERE id IN (SELECT id FROM plain) AND x > (SELECT MIN(age) - 28 FROM {users})",
            "UPDATE {t} SET x = (SELECT MAX(age) FROM {users}), d = (SELECT AVG(x) FROM {s}) WHERE id = 1",
            "UPDATE {t} SET x = COALESCE((SELECT age FROM {users} WHERE nickname = 'nobody'), 77) WHERE id IN (1, 2)",
            "UPDATE {t} SET x = x + 1 WHERE id = (SELECT id FROM {s} ORDER BY id LIMIT 1)",
            "UPDATE {t} SET x = 1 WHERE id = (SELECT id FROM {s})",
            "UPDATE {users} SET age = age + 1 WHERE nickname IN (SELECT name COLLATE utf8mb4_general_ci FROM {t})",
            "UPDATE {users} SET age = age + 1 WHERE id IN (SELECT DISTINCT x FROM {t}) OR nickname = (SELECT MAX(name) COLLATE utf8mb4_general_ci FROM {s} WHERE name > 'a')",
            "UPDATE {s} SET x = x + 1 WHERE at IN (SELECT at FROM {t})",
            "UPDATE {s} SET x = x + 1 WHERE b IN (SELECT b FROM {t} WHERE id < 4)",
            "UPDATE {s} SET x = x + 1 WHERE l IN (SELECT l FROM {t} WHERE id < 4)",
            "UPDATE {s} SET x = x + 1 WHERE d > (SELECT AVG(d) FROM {t})",
            "UPDATE {s} SET x = x + 1, name = (SELECT nickname FROM {users} ORDER BY nickname DESC LIMIT 1) WHERE (id, n) IN (SELECT id + 1, id FROM {t} WHERE x > 4)",
            "UPDATE {s} SET x = x + 1 WHERE EXISTS (SELECT 1 FROM {users} WHERE age > 30)",
            "UPDATE {s} SET x = x + 1 WHERE NOT EXISTS (SELECT 1 FROM {users} WHERE age > 30)",
            "UPDATE {t} SET id = (SELECT MAX(id) + 100 FROM {s}) WHERE id = 5",
            "DELETE FROM {t} WHERE id IN (SELECT age - 28 FROM {users} WHERE age IS NOT NULL)",
            "DELETE FROM {s} WHERE {s}.x IN (SELECT {t}.x FROM {t} WHERE {t}.id > 3)",
            "DELETE FROM {s} WHERE x IN (SELECT COUNT(*) FROM {t} GROUP BY x HAVING COUNT(*) > 1)",
            "DELETE FROM {users} WHERE id IN (WITH w AS (SELECT COUNT(DISTINCT x) AS c FROM {t}) SELECT c FROM w)",
        ] {
            let done = both.say(sql).await?;
            expect(!done.contains("HSCALE"), || {
                format!("{vendor}: {sql}: {done}")
            })?;
        }
        both.say_with(
            "UPDATE {t} SET x = ? WHERE id IN (SELECT id FROM {s} WHERE x > ?)",
            &[9.into(), 3.into()],
        )
        .await?;
        for (sql, words) in [
            (
                "DELETE FROM {t} WHERE x > (SELECT AVG(x) FROM {s} WHERE s.name = t.name)",
                "is read first, without the tables around it",
            ),
            (
                "UPDATE {t} SET x = 1 WHERE f IN (SELECT f FROM {s})",
                "a FLOAT that is read",
            ),
            (
                "UPDATE {t} SET x = 1 WHERE x > ALL (SELECT x FROM {s})",
                "in a query inside another",
            ),
            (
                "UPDATE {t} SET x = 1 WHERE id IN (SELECT id FROM {s} WHERE x > RAND())",
                "in a query inside another",
            ),
        ] {
            both.refused(sql, words).await?;
        }
        // A plain table may be changed by what sharded ones have.
        let delete =
            |t: &str| format!("DELETE FROM plain WHERE id IN (SELECT id FROM {t} WHERE id > 5)");
        let count = "SELECT COUNT(*), SUM(id) FROM conf.plain";
        let done = said(&mut both.parts, &delete("t"), &[]).await;
        same(&done, "1 rows, , 0 warnings")?;
        expect(it.one.root(count)?.contains("2\t10"), || "plain".into())?;
        // What is read first has its bounds.
        it.proxy
            .admin("SET mysql-sharding_insert_max_rows = 2; LOAD MYSQL VARIABLES TO RUNTIME")?;
        both.refused(
            "UPDATE {t} SET x = 1 WHERE id IN (SELECT id + 1 FROM {s})",
            "queries inside of it have more rows than may be read first",
        )
        .await?;
    }
    Ok(())
}

/// A condition on a table `a`, whose queries read tables other than `own`.
fn condition(own: &str, below: &mut dyn FnMut(usize) -> usize) -> String {
    let other = if own == "{t}" { "{s}" } else { "{t}" };
    let (k, m) = (below(12), 1 + below(9));
    let one = match below(16) {
        0 => format!("id = {k}"),
        1 => format!("id IN ({k}, {m}, 5)"),
        2 => format!("id BETWEEN {k} AND {}", k + m),
        3 => format!("x > {m}"),
        4 => format!("name LIKE '%{m}%'"),
        5 => "name IS NULL".into(),
        6 => format!("id IN (SELECT id FROM {other} WHERE x > {m})"),
        7 => format!("id NOT IN (SELECT id FROM {other} WHERE n < {m})"),
        8 => format!("x = (SELECT MAX(x) FROM {other} WHERE id > {k})"),
        9 => format!("x >= (SELECT AVG(x) FROM {other})"),
        10 => format!("(id, n) IN (SELECT id, n FROM {other} WHERE x < {m})"),
        11 => format!("EXISTS (SELECT 1 FROM {other} WHERE x = {m})"),
        12 => format!("name IN (SELECT name FROM {other} WHERE id = {k})"),
        13 => "id IN (SELECT id FROM plain)".into(),
        14 => format!("x IN (SELECT COUNT(DISTINCT x) FROM {other} GROUP BY n)"),
        _ => {
            format!("id = {k} AND EXISTS (SELECT 1 FROM {other} o WHERE o.id = {k} AND o.x > {m})")
        }
    };
    match below(4) {
        0 => format!("{one} AND n > {}", below(6)),
        1 => format!("NOT ({one})"),
        2 => format!("({one} OR x = {k})"),
        _ => one,
    }
}

/// A statement that changes `{t}` or `{s}`.
fn change(below: &mut dyn FnMut(usize) -> usize) -> String {
    let (own, other) = match below(2) {
        0 => ("{t}", "{s}"),
        _ => ("{s}", "{t}"),
    };
    let (k, m, n) = (below(12), below(9), below(7));
    let value = ["x + 1", "x * 2 - id", "LENGTH(COALESCE(name, ''))", "n"][below(4)];
    match below(12) {
        0 | 1 => format!(
            "INSERT INTO {own} (id, n, x, name) VALUES ({k}, {n}, {m}, 'a{m}'), ({m}, {n}, {k}, NULL)"
        ),
        2 => format!(
            "INSERT INTO {own} (id, n, x) VALUES ({k}, {n}, {m}) ON DUPLICATE KEY UPDATE x = x + {m}, name = 'dup'"
        ),
        3 => format!(
            "REPLACE INTO {own} (n, id, x, name) VALUES ({n}, {k}, {m}, 'r{n}'), ({n}, {m}, 1, 'r')"
        ),
        4 => format!(
            "INSERT IGNORE INTO {own} (id, n, x, name) SELECT id, n + 1, x, name FROM {other} WHERE {}",
            condition(own, below)
        ),
        5 => format!(
            "INSERT IGNORE INTO {own} (id, n, x) SELECT x, {n}, COUNT(*) FROM {other} GROUP BY x"
        ),
        6 => format!(
            "UPDATE {own} a JOIN {other} b ON a.id = b.id AND a.n = b.n SET a.x = b.x + {m} WHERE b.x > {k}"
        ),
        7 => format!(
            "DELETE a FROM {own} a LEFT JOIN {other} b ON a.id = b.id WHERE b.id IS NULL AND a.x > {}",
            m + 4
        ),
        8 => format!("UPDATE {own} SET id = {k}, n = n + 20 WHERE id = {m} AND n = {n}"),
        9 => format!(
            "DELETE FROM {own} WHERE n > 3 AND {}",
            condition(own, below)
        ),
        10 => format!(
            "UPDATE {own} SET x = COALESCE((SELECT MAX(x) FROM {other} WHERE id < {k}), {m}) WHERE {}",
            condition(own, below)
        ),
        _ => format!(
            "UPDATE {own} SET x = {value} WHERE {}",
            condition(own, below)
        ),
    }
}

/// SELECTs of which a transaction must see what it has written.
const READS: &[&str] = &[
    "SELECT COUNT(DISTINCT x), SUM(x) / 2, MAX(name) FROM {t}",
    "SELECT a.id, a.n, b.n FROM {t} a JOIN {s} b ON a.x = b.x ORDER BY a.id, a.n, b.id, b.n",
    "SELECT x, COUNT(*) FROM {s} GROUP BY x ORDER BY x",
    "SELECT id, n FROM {t} WHERE x > (SELECT AVG(x) FROM {s}) ORDER BY id, n",
    "SELECT id, n FROM {s} UNION SELECT id, n FROM {t} ORDER BY id, n",
    "SELECT {t}.id, plain.x FROM {t} JOIN plain ON plain.id = {t}.id ORDER BY {t}.id, {t}.n, plain.x",
];

/// A statement that is refused is said to the other server neither.
#[tokio::main(flavor = "current_thread")]
async fn at_random(driver: Driver) -> Outcome {
    let turns = if trials::everything() { 600 } else { 120 };
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        it.proxy.admin("UPDATE mysql_users SET attributes = '{\"partition_changes\":\"xa\",\"transactions\":\"xa\"}'; LOAD MYSQL USERS TO RUNTIME")?;
        it.one
            .root("INSERT INTO conf.plain VALUES (1, 1), (6, 2), (9, NULL)")?;
        let mut both = Beside::of(vendor, &it).await?;
        let mut seed: u64 = if driver == Driver::Epoll { 21 } else { 22 };
        let mut below = |limit: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % limit
        };
        let (mut is_open, mut refused, mut history) = (false, Vec::new(), Vec::new());
        for _ in 0..turns {
            let sql = match below(8) {
                0 if is_open => ["COMMIT", "ROLLBACK"][below(2)].to_owned(),
                0 => "BEGIN".to_owned(),
                _ => change(&mut below),
            };
            let found = said(&mut both.parts, &named(&sql, ""), &[]).await;
            if found.contains("HSCALE") {
                refused.push(format!("{sql}: {found}"));
                continue;
            }
            match &*sql {
                "BEGIN" => is_open = true,
                "COMMIT" | "ROLLBACK" => is_open = false,
                _ => {}
            }
            history.push(sql.clone());
            let wanted = said(&mut both.whole, &named(&sql, "whole_"), &[]).await;
            let told = || format!("{vendor}: {}", history.join(";\n"));
            expect(found == wanted, || {
                format!("{}: {found} instead of {wanted}", told())
            })?;
            both.compare(&sql)
                .await
                .map_err(|words| format!("{}: {words}", told()))?;
            let read = READS[below(READS.len())];
            let found = shown(&mut both.parts, &named(read, "")).await;
            let wanted = shown(&mut both.whole, &named(read, "whole_")).await;
            expect(found == wanted, || {
                format!("{}: {read}: {found:?} instead of {wanted:?}", told())
            })?;
        }
        expect(refused.len() * 4 < turns, || {
            format!(
                "{vendor}: {} are refused: {}",
                refused.len(),
                refused.join("\n")
            )
        })?;
        expect(history.len() > turns / 2, || {
            format!("{vendor}: {} only", history.len())
        })?;
    }
    Ok(())
}

async fn sends_files(port: u16, files: &[String]) -> Result<Conn, String> {
    let handler = WhiteListFsHandler::new(files);
    let options = library::options(port).local_infile_handler(Some(handler));
    let conn = Conn::new(options).await;
    conn.map_err(|error| error.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn loaded(driver: Driver) -> Outcome {
    let words = |error: std::io::Error| error.to_string();
    let folder = std::env::temp_dir().join(format!("millrace-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(words)?;
    let name = |number: usize| folder.join(number.to_string()).display().to_string();
    let mut files: Vec<String> = Vec::new();
    for (number, (file, ..)) in FILES.iter().enumerate() {
        files.push(name(number));
        std::fs::write(name(number), file).map_err(words)?;
    }
    // Several batches for each partition.
    let mut many = String::new();
    for id in 1000..9000 {
        let _ = writeln!(many, "{id}\t{}\t{}", "ä\\\\".repeat(9 + id % 3), id % 7);
        many.push_str(&format!("{}\t{}\t0\n", id + 10_000, "long".repeat(9)).repeat(1));
    }
    let (big, bad, empty) = (FILES.len(), FILES.len() + 1, FILES.len() + 2);
    for (number, file) in [
        (big, many.as_str()),
        (bad, "71\tfine\nseven\tbad\n72\tfine\n"),
        (empty, "71\tfine\n\n72\tfine\n"),
    ] {
        files.push(name(number));
        std::fs::write(name(number), file).map_err(words)?;
    }
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        let mut both = Beside {
            vendor,
            parts: sends_files(it.proxy.port, &files).await?,
            whole: sends_files(it.one.port, &files).await?,
        };
        let load = |number: usize, how: &str, table: &str, rest: &str| {
            let file = name(number);
            format!("LOAD DATA LOCAL INFILE '{file}' {how} INTO TABLE {{{table}}} {rest}")
        };
        for (number, (_, table, rest)) in FILES.iter().enumerate() {
            both.say(&load(number, "", table, rest)).await?;
        }
        for (number, how) in [(0, "REPLACE"), (1, "IGNORE"), (3, "REPLACE")] {
            let (_, table, rest) = FILES[number];
            both.say(&load(number, how, table, rest)).await?;
        }
        both.say(&load(big, "", "t", "(id, name, x)")).await?;
        for (number, rest, words) in [
            (bad, "(id, name)", "row 2 of the file: which partition"),
            (empty, "(id, name)", "row 2 of the file: which partition"),
            (0, "(id, name, @x)", "not understood"),
            (0, "(name, x)", "must have a value for id"),
            (
                0,
                "FIELDS TERMINATED BY '' (id, name)",
                "ASCII of their own",
            ),
            (0, "CHARACTER SET gbk (id, name)", "CHARACTER SET"),
        ] {
            both.refused(&load(number, "", "t", rest), words).await?;
        }
        both.refused(
            "LOAD DATA INFILE '/nothing' INTO TABLE {t}",
            "LOAD DATA LOCAL",
        )
        .await?;
        broken_off(vendor, &it)?;
        // One partition is all that this user may change.
        it.proxy
            .admin("UPDATE mysql_users SET attributes = ''; LOAD MYSQL USERS TO RUNTIME")?;
        both.parts = sends_files(it.proxy.port, &files).await?;
        both.say("DELETE FROM {t} WHERE id = 1").await?;
        both.refused(
            &load(0, "", "t", "(id, name, x, d)"),
            "partition_changes to xa",
        )
        .await?;
        let prepared = it.two.root("XA RECOVER")?;
        expect(!prepared.contains("millrace-"), || prepared.clone())?;
    }
    std::fs::remove_dir_all(&folder).map_err(words)
}

/// A client that leaves in the middle, and one whose statement is ended: no partition has rows.
fn broken_off(vendor: Vendor, it: &World) -> Outcome {
    const LOAD: &[u8] =
        b"\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.s FIELDS TERMINATED BY ',' (id, name)";
    let log_in = || raw::Raw::log_in(it.proxy.port, caps::LOCAL_FILES | caps::DEPRECATE_EOF);
    let rows: String = (0..300_000)
        .map(|id| format!("{id},name of {id}\n"))
        .collect();
    let counted = || {
        let said = it.one.root("SELECT COUNT(*) FROM conf.s_0 FOR UPDATE")?;
        Ok::<_, String>(said.lines().last().unwrap_or_default().trim().to_owned())
    };
    let loads = || it.one.transactions("trx_rows_modified > 0");
    for ends in ["leaves", "killed", "ends"] {
        let mut client = log_in()?;
        let asks = client.ask(LOAD, Expect::Query)?;
        expect(asks.contains("wants a file"), || {
            format!("{vendor}: {asks}")
        })?;
        client.send(2, rows.as_bytes())?;
        soon("1", loads).map_err(|words| {
            let _ = client.send(3, b"");
            format!("{words}: {:?}", client.answer(Expect::Query))
        })?;
        match ends {
            "leaves" => drop(client),
            "killed" => {
                it.proxy.admin(&format!("KILL QUERY {}", client.id))?;
                client.send(3, b"1,again\n")?;
                client.send(4, b"")?;
                let said = client.answer(Expect::Query)?;
                expect(said.contains("70100"), || format!("{vendor}: {said}"))?;
                let said = client.query("SELECT 1")?;
                expect(!said.contains("70100"), || format!("{vendor}: {said}"))?;
            }
            _ => {
                client.send(3, b"bad,row\n1,again\n")?;
                client.send(4, b"")?;
                let said = client.answer(Expect::Query)?;
                expect(said.contains("row 300001 of the file"), || {
                    format!("{vendor}: {said}")
                })?;
            }
        }
        soon("0", loads)?;
        same(&counted()?, "0")?;
    }
    Ok(())
}
