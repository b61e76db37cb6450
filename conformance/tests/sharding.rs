//! Tables that are spread over two servers, set up with the commands of HSCALE's page: what has one
//! partition goes there and nowhere else, and everything else is refused in a sentence.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::library;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon, vendors_in_turn};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_point_statement_goes_to_the_server_of_its_partition",
            points,
        ),
        (
            "returning_and_queries_inside_a_delete_call_tables_as_the_statement_does",
            qualified,
        ),
        (
            "a_catalogue_tells_of_each_table_once_by_its_logical_name",
            catalogue,
        ),
        (
            "what_cannot_be_done_on_partitions_is_refused_in_a_sentence",
            refused,
        ),
        (
            "rows_of_several_partitions_come_as_one_result_in_the_session_s_state",
            several,
        ),
        (
            "what_reads_several_partitions_ends_at_all_of_their_servers",
            ended,
        ),
        (
            "a_transaction_stays_on_the_server_of_its_partition",
            transactions,
        ),
        (
            "what_is_prepared_with_its_key_runs_where_its_partition_is",
            prepared,
        ),
        (
            "what_only_reads_goes_to_the_readers_of_its_partition",
            readers,
        ),
        (
            "truncate_and_alter_are_done_by_one_partition_after_another",
            in_turn,
        ),
        (
            "a_table_that_is_renamed_has_its_new_name_in_the_map_and_nowhere_else",
            renamed,
        ),
        (
            "a_write_to_a_partition_ends_the_use_of_what_was_cached_of_it",
            cached,
        ),
    ])
}

/// Two servers, the first in hostgroups 0 and 1, the second in 2; on them the tables that HSCALE's
/// commands, given as the page has them, ask for.
struct Sharded {
    one: Server,
    two: Server,
    proxy: Proxy,
}

const COLUMNS: &str =
    "(id INT PRIMARY KEY, nickname VARCHAR(40) NOT NULL, x INT NOT NULL DEFAULT 0)";

/// A70, A71, A90: the quote that the first line of the page lacks is given back.
const COMMANDS: &str = "HSCALE SETUP_TABLE(‘users‘, ‘nickname‘, ‘users_default‘, 1, ‘PREFIX(3)‘);
HSCALE ADD_PARTITION(‘users’, ‘nick1′, ‘mar’, 1);
HSCALE ADD_PARTITION('users', 'nick2', 'foo', 2);
HSCALE SETUP_TABLE('small', 'category', 'small_default', 1, 'NONE()');
HSCALE ADD_PARTITION('small', 'books', 'books', 2)";

fn sharded(driver: Driver, vendor: Vendor) -> Result<Sharded, String> {
    let (one, two) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&one, &two] {
        server.root(by_hand::CREATE_USER)?;
    }
    // HSCALE looks whether rows have to move.
    one.root(
        "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; GRANT SELECT ON conf.* TO monitor@'%'",
    )?;
    one.root(&format!(
        "USE conf; CREATE TABLE users {COLUMNS}; RENAME TABLE users TO users_default;
         CREATE TABLE users_nick1 LIKE users_default;
         CREATE TABLE small_default (id INT UNSIGNED NOT NULL, category ENUM('books', 'hardware', 'software') NOT NULL, PRIMARY KEY(id)) ENGINE=MEMORY"
    ))?;
    two.root(&format!(
        "USE conf; CREATE TABLE users_nick2 {COLUMNS};
         CREATE TABLE small_books (id INT UNSIGNED NOT NULL, category ENUM('books', 'hardware', 'software') NOT NULL, PRIMARY KEY(id)) ENGINE=MEMORY"
    ))?;
    let mut wish = Wish::in_front_of(&one);
    for (server, hostgroup) in [(&one, 1), (&two, 2)] {
        let row = format!(
            ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup} }}",
            server.port
        );
        wish.servers.push_str(&row);
    }
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(COMMANDS)?;
    Ok(Sharded { one, two, proxy })
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    asked(&mut client, "USE conf")?;
    Ok(client)
}

/// Returns the rows that a server has itself.
fn rows(server: &Server, table: &str) -> Result<String, String> {
    let said = server.root(&format!(
        "SELECT GROUP_CONCAT(id, nickname ORDER BY id) FROM conf.{table}"
    ))?;
    Ok(said.lines().last().unwrap_or_default().trim().to_owned())
}

fn error(client: &mut Raw, sql: &str) -> String {
    match client.ask(sql) {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => error.to_string(),
    }
}

/// A70 to A74, A88, A90: the application's texts stay as they are.
fn points(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = sharded(driver, vendor)?;
        let mut client = log_in(&it.proxy)?;
        for sql in [
            "INSERT INTO users (id, nickname) VALUES (1, 'marvel')",
            "INSERT INTO users (id, nickname) VALUES (2, 'martin'), (3, 'MARY')",
            "INSERT INTO conf.users SET id = 4, nickname = 'foobar'",
            "REPLACE INTO users (nickname, id) VALUES ('footaliciuos', 5)",
            "INSERT INTO users (id, nickname) VALUES (6, 'anna') ON DUPLICATE KEY UPDATE users.x = users.x + 1",
            "INSERT INTO small (id, category) VALUES (1, 'books')",
            "INSERT INTO small (id, category) VALUES (2, 'hardware')",
            "INSERT INTO small (id, category) VALUES (3, 'software')",
            "UPDATE users SET users.x = 7 WHERE users.nickname = 'foobar'",
            "DELETE FROM users WHERE users.nickname = 'martin' AND users.id = 2",
        ] {
            asked(&mut client, sql)?;
        }
        same(&rows(&it.one, "users_nick1")?, "1marvel,3MARY")?;
        same(&rows(&it.two, "users_nick2")?, "4foobar,5footaliciuos")?;
        same(&rows(&it.one, "users_default")?, "6anna")?;
        for (sql, wanted) in [
            ("SELECT id FROM users WHERE nickname = 'MARVEL'", "1"),
            (
                "SELECT users.id, u.x FROM users JOIN users u USING (nickname) WHERE users.nickname = 'foobar'",
                "4 7",
            ),
            (
                "SELECT conf.users.* FROM conf.users WHERE conf.users.nickname = 'anna'",
                "6 anna 0",
            ),
            (
                "SELECT count(*) FROM users WHERE nickname IN ('marvel', 'mary', 'martin')",
                "2",
            ),
            (
                "SELECT id, category FROM small WHERE small.category='books' /* Added */ /* some */ /* comments */ /* to */",
                "1 books",
            ),
            ("SELECT id FROM small WHERE category = 'software'", "3"),
            (
                "SELECT /* hscale.partition(users) = 'nick2' */ max(id) FROM users",
                "5",
            ),
        ] {
            let found = asked(&mut client, sql)?;
            let found = found
                .iter()
                .map(|row| row.join(" "))
                .collect::<Vec<_>>()
                .join(", ");
            expect(found == wanted, || {
                format!("{vendor}: {sql}: {found} instead of {wanted}")
            })?;
        }
        // A83: its columns, from one partition.
        let columns = asked(&mut client, "DESC users")?;
        same(
            &columns
                .iter()
                .map(|row| row[0].clone())
                .collect::<Vec<_>>()
                .join(" "),
            "id nickname x",
        )?;
        // The name of the table in the result is the one that was asked for.
        client
            .query("SELECT id FROM users WHERE nickname = 'foobar'")
            .map_err(|error| error.to_string())?;
        client.packet().map_err(|error| error.to_string())?;
        let column = client.packet().map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&column).into_owned();
        expect(told.contains("\u{5}users\u{b}users_nick2"), || {
            format!("{vendor}: {told:?}")
        })?;
        // Digests have the table's name, whatever partition a statement needs.
        let digests = "SELECT SUM(INSTR(digest_text, 'users_nick') > 0), SUM(INSTR(digest_text, 'users') > 0) > 9 FROM stats_mysql_query_digest";
        same(&it.proxy.admin(digests)?, "0\t1")?;
        counted(&it, &mut log_in(&it.proxy)?)?;
        // Plain tables are where they were.
        let mut other = log_in(&it.proxy)?;
        same(
            &asked(&mut other, "SELECT count(*) > 0 FROM numbers")?
                .concat()
                .concat(),
            "1",
        )?;
    }
    Ok(())
}

/// SQLAlchemy qualifies what RETURNING tells; a query inside may call another partition alike.
fn qualified(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = sharded(driver, vendor)?;
        let mut client = log_in(&it.proxy)?;
        let mut says = |sql: &str, wanted: &str| {
            let found = asked(&mut client, sql)?;
            let found: Vec<_> = found.iter().map(|row| row.join(" ")).collect();
            expect(found.join(", ") == wanted, || {
                format!("{vendor}: {sql}: {found:?} instead of {wanted}")
            })
        };
        says("INSERT INTO users (id, nickname) VALUES (1, 'marvel')", "")?;
        says("INSERT INTO users (id, nickname) VALUES (6, 'anna')", "")?;
        // Both partitions are on one server.
        says(
            "DELETE FROM users WHERE users.nickname = 'marvel' AND EXISTS (SELECT 1 FROM users WHERE users.nickname = 'anna' AND users.id = 7)",
            "",
        )?;
        same(&rows(&it.one, "users_nick1")?, "1marvel")?;
        says(
            "DELETE FROM users WHERE users.nickname = 'marvel' AND EXISTS (SELECT 1 FROM users WHERE users.nickname = 'anna' AND users.id = 6)",
            "",
        )?;
        same(&rows(&it.one, "users_nick1")?, "NULL")?;
        if vendor == Vendor::MariaDb {
            says(
                "INSERT INTO users (id, nickname) VALUES (2, 'foobar') RETURNING users.id, users.nickname AS n, users.id + 1, conf.users.x",
                "2 foobar 3 0",
            )?;
            says(
                "INSERT INTO conf.users (id, nickname) VALUES (3, 'foobar') RETURNING users.*",
                "3 foobar 0",
            )?;
            says(
                "DELETE FROM users WHERE nickname = 'foobar' AND id = 3 RETURNING users.id i, (SELECT MAX(users.id) FROM users WHERE users.nickname = 'foobar')",
                "3 3",
            )?;
            let words = error(
                &mut client,
                "INSERT INTO users (id, nickname) VALUES (4, 'foobar') RETURNING (SELECT MAX(users.id) FROM users)",
            );
            expect(
                words.contains("its RETURNING reads the sharded table users"),
                || words,
            )?;
        }
    }
    Ok(())
}

/// Questions about tables as clients, ORMs and drivers ask them, of the schema `{db}`.
const QUESTIONS: &[&str] = &[
    "SHOW TABLES",
    "SHOW FULL TABLES",
    "SHOW TABLES FROM {db} LIKE 'us%'",
    "SHOW FULL TABLES IN `{db}` WHERE Table_type = 'BASE TABLE' AND Tables_in_{db} LIKE '%s%'",
    // Django.
    "SELECT table_name, table_type, table_comment FROM information_schema.tables WHERE table_schema = DATABASE()",
    "SELECT column_name, data_type, character_maximum_length, numeric_precision, numeric_scale, extra, column_default, collation_name, CASE WHEN column_type LIKE '% unsigned' THEN 1 ELSE 0 END AS is_unsigned, column_comment FROM information_schema.columns WHERE table_name = 'users' AND table_schema = DATABASE()",
    "SELECT kc.`constraint_name`, kc.`column_name`, kc.`referenced_table_name`, kc.`referenced_column_name`, c.`constraint_type` FROM information_schema.key_column_usage AS kc, information_schema.table_constraints AS c WHERE kc.table_schema = DATABASE() AND c.table_schema = kc.table_schema AND c.constraint_name = kc.constraint_name AND c.constraint_type != 'CHECK' AND kc.table_name = 'users' AND c.table_name = kc.table_name ORDER BY kc.`ordinal_position`",
    "SELECT engine FROM information_schema.tables WHERE table_name = 'users' AND table_schema = '{db}'",
    // SQLAlchemy.
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = '{db}' AND table_name = 'users'",
    "SELECT table_schema, table_name, column_name FROM information_schema.columns WHERE (table_schema, table_name, lower(column_name)) IN (('{db}', 'users', 'id'))",
    // Drivers and programs with windows.
    "SELECT TABLE_SCHEMA = '{db}' AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, CASE WHEN TABLE_TYPE = 'BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END AS TABLE_TYPE, TABLE_COMMENT AS REMARKS FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = '{db}' HAVING TABLE_TYPE IN ('TABLE') ORDER BY TABLE_TYPE, TABLE_NAME",
    "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, ORDINAL_POSITION, IS_NULLABLE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = '{db}' AND TABLE_NAME LIKE 'users' AND COLUMN_NAME LIKE '%' ORDER BY TABLE_NAME, ORDINAL_POSITION",
    "SELECT TABLE_NAME, COLUMN_NAME, SEQ_IN_INDEX AS KEY_SEQ, 'PRIMARY' AS PK_NAME FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_SCHEMA = '{db}' AND TABLE_NAME = 'users' AND INDEX_NAME = 'PRIMARY' ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
    "SELECT TABLE_NAME, NON_UNIQUE, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_SCHEMA = '{db}' ORDER BY 1, 3, 4",
    "SELECT A.REFERENCED_TABLE_NAME, A.TABLE_NAME, A.COLUMN_NAME, R.UPDATE_RULE FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE A JOIN INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS R ON R.CONSTRAINT_NAME = A.CONSTRAINT_NAME AND R.CONSTRAINT_SCHEMA = A.TABLE_SCHEMA AND R.TABLE_NAME = A.TABLE_NAME WHERE A.TABLE_SCHEMA = '{db}' AND A.TABLE_NAME = 'referring'",
    "SELECT information_schema.tables.table_name FROM information_schema.tables LEFT JOIN information_schema.columns c ON c.table_name = tables.table_name AND c.table_schema = tables.table_schema AND c.ordinal_position = 2 WHERE tables.table_schema = '{db}' AND c.column_name = 'nickname'",
    "SHOW COLUMNS FROM users",
    "SHOW INDEX FROM users",
];

async fn told(conn: &mut Conn, sql: &str) -> Result<String, String> {
    let words = |error: mysql_async::Error| format!("{sql}: {error}");
    let mut result = conn.query_iter(sql).await.map_err(words)?;
    let columns = result.columns();
    let titles = columns.iter().flat_map(|columns| columns.iter());
    let titles: Vec<_> = titles
        .map(|column| column.name_str().into_owned())
        .collect();
    let rows: Vec<mysql_async::Row> = result.collect().await.map_err(words)?;
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|row| format!("{:?}", row.unwrap()))
        .collect();
    if !sql.contains("ORDER BY") && !sql.starts_with("SHOW") {
        rows.sort();
    }
    Ok(format!("{}\n{}", titles.join(" "), rows.join("\n")))
}

/// A schema with the same tables, none of them sharded, is told alike.
#[tokio::main(flavor = "current_thread")]
async fn catalogue(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = sharded(driver, vendor)?;
        it.one.root("CREATE DATABASE twin; GRANT ALL ON *.* TO app@'%'; USE conf; CREATE TABLE referring (x INT PRIMARY KEY, y INT, FOREIGN KEY (y) REFERENCES users_default (id))")?;
        let tables = it
            .one
            .root("SELECT table_name FROM information_schema.tables WHERE table_schema = 'conf'")?;
        for table in tables.lines().map(str::trim) {
            let logical = match table {
                "users_default" => "users",
                "small_default" => "small",
                "users_nick1" | "referring" | "table_name" | "TABLE_NAME" => continue,
                other => other,
            };
            it.one
                .root(&format!("CREATE TABLE twin.{logical} LIKE conf.{table}"))?;
        }
        it.one.root("CREATE TABLE twin.referring (x INT PRIMARY KEY, y INT, FOREIGN KEY (y) REFERENCES twin.users (id))")?;
        let words = |error: mysql_async::Error| error.to_string();
        let mut parts = library::come_in(it.proxy.port).await.map_err(words)?;
        let mut whole = library::come_in(it.one.port).await.map_err(words)?;
        parts.query_drop("USE conf").await.map_err(words)?;
        whole.query_drop("USE twin").await.map_err(words)?;
        for question in QUESTIONS {
            let found = told(&mut parts, &question.replace("{db}", "conf")).await?;
            let wanted = told(&mut whole, &question.replace("{db}", "twin")).await?;
            let found = found.replace("conf", "twin");
            expect(found == wanted, || {
                format!("{vendor}: {question}: {found}\ninstead of\n{wanted}")
            })?;
        }
        // Prepared, inside of a transaction, and for all columns.
        let sql = "SELECT * FROM information_schema.columns WHERE table_schema = ? AND table_name LIKE ? ORDER BY table_name, ordinal_position";
        parts.query_drop("BEGIN").await.map_err(words)?;
        let rows: Vec<mysql_async::Row> =
            parts.exec(sql, ("conf", "users%")).await.map_err(words)?;
        let names = rows.iter().map(|row| {
            let cell = |at: usize| row.get::<String, _>(at).unwrap_or_default();
            format!("{}.{}", cell(2), cell(3))
        });
        same(
            &names.collect::<Vec<_>>().join(" "),
            "users.id users.nickname users.x",
        )?;
        parts.query_drop("COMMIT").await.map_err(words)?;
        let status: Vec<mysql_async::Row> = parts
            .query("SHOW TABLE STATUS WHERE Name LIKE 'user%'")
            .await
            .map_err(words)?;
        let names: Vec<String> = status.iter().filter_map(|row| row.get("Name")).collect();
        same(&names.join(" "), "users")?;
        // Rows of all partitions that are there.
        it.one.root("USE conf; INSERT INTO users_default (id, nickname) VALUES (1, 'a'), (2, 'b'); INSERT INTO users_nick1 (id, nickname) VALUES (3, 'mar'); ANALYZE TABLE users_default, users_nick1")?;
        let count = "SELECT table_rows FROM information_schema.tables WHERE table_schema = 'conf' AND table_name = 'users'";
        soon("3", || {
            let mut client = log_in(&it.proxy)?;
            if vendor == Vendor::MySql {
                asked(&mut client, "SET information_schema_stats_expiry = 0")?;
            }
            Ok(asked(&mut client, count)?.concat().concat())
        })?;
    }
    Ok(())
}

/// Statements are counted by the partitions that they need, and a LOAD of rules forgets none.
fn counted(it: &Sharded, client: &mut Raw) -> Outcome {
    it.proxy.admin("SELECT * FROM stats_mysql_shards_reset")?;
    for sql in [
        "SELECT id FROM users WHERE nickname = 'foobar'",
        "SELECT id FROM users WHERE nickname IN ('marvel', 'foobar')",
        "SELECT COUNT(*) FROM users",
    ] {
        asked(client, sql)?;
    }
    it.proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, apply) VALUES (1, 1, 'nothing', 0); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    for sql in [
        "SELECT id FROM users ORDER BY RAND()",
        "TRUNCATE users WAIT 5",
    ] {
        error(client, sql);
    }
    asked(client, "SELECT 1")?;
    let told = it.proxy.admin("SELECT * FROM stats_mysql_shards")?;
    same(&told, "\tusers\t1\t1\t2\t1\t9\t3\t1\t5")
}

fn refused(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = sharded(driver, vendor)?;
        // No server finishes what partitions cannot do.
        it.proxy
            .admin("SET mysql-sharding_scratch = 'off'; LOAD MYSQL VARIABLES TO RUNTIME")?;
        let mut client = log_in(&it.proxy)?;
        for (sql, words) in [
            (
                "SELECT DISTINCT id FROM users FOR UPDATE",
                "beside DISTINCT or groups",
            ),
            (
                "SELECT id FROM users WHERE id > @x",
                "asks its connection for something",
            ),
            (
                "INSERT INTO users (id, nickname) VALUES (1, 'marvel'), (2, 'foobar')",
                "it changes 2 partitions",
            ),
            (
                "INSERT INTO users (id, nickname) VALUES (1, CONCAT('mar', 'vel'))",
                "must be written out",
            ),
            (
                "INSERT INTO users (id, nickname) VALUES (1, 'märchen')",
                "is not certain",
            ),
            (
                "UPDATE users SET nickname = 'foo' WHERE nickname = 'marvel'",
                "some may move to `users_nick2`",
            ),
            (
                "SELECT * FROM users LEFT JOIN small ON users.id = small.id",
                "do not lie beside each other",
            ),
            (
                "SELECT * FROM users, numbers WHERE nickname = 'marvel'",
                "plain table numbers",
            ),
            (
                "ALTER TABLE users RENAME TO others, ADD COLUMN y INT",
                "another name, and more",
            ),
            ("TABLE users", "say SELECT * FROM before its name"),
            (
                "SELECT id INTO @x FROM users WHERE nickname = 'marvel'",
                "read them, and SET the variables",
            ),
            (
                "CREATE TEMPORARY TABLE users (id INT)",
                "give it another one",
            ),
        ] {
            let said = error(&mut client, sql);
            let is_so = said.starts_with("1235 42000 HSCALE-1000: ")
                && said.contains(words)
                && said.contains(" - query was '");
            expect(is_so, || format!("{vendor}: {sql}: {said}"))?;
        }
        // Nothing of it was done.
        for (server, table) in [
            (&it.one, "users_nick1"),
            (&it.one, "users_default"),
            (&it.two, "users_nick2"),
        ] {
            same(&rows(server, table)?, "NULL")?;
        }
        let told = it
            .proxy
            .admin("EXPLAIN ROUTE 'SELECT * FROM users WHERE nickname = ''foobar''' IN conf")?;
        expect(told.contains("point: users.nick2 on hostgroup 2"), || {
            told.clone()
        })?;
    }
    Ok(())
}

/// Three rows, one in each partition.
fn filled(it: &Sharded) -> Result<Raw, String> {
    let mut client = log_in(&it.proxy)?;
    for sql in [
        "INSERT INTO users (id, nickname) VALUES (1, 'marvel')",
        "INSERT INTO users (id, nickname) VALUES (2, 'foobar')",
        "INSERT INTO users (id, nickname) VALUES (3, 'anna')",
    ] {
        asked(&mut client, sql)?;
    }
    Ok(client)
}

fn in_words(rows: &[Vec<String>]) -> String {
    let line = |row: &Vec<String>| row.join(" ");
    rows.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// A84, A89: all partitions are asked as the session would ask one, and rows go on as they arrive.
fn several(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = sharded(driver, vendor)?;
        let mut client = filled(&it)?;
        let mut says = |sql: &str, wanted: &str| {
            let rows = asked(&mut client, sql)?;
            same(&in_words(&rows), wanted).map_err(|words| format!("{vendor}: {sql}: {words}"))
        };
        says("SELECT id FROM users ORDER BY id DESC", "3, 2, 1")?;
        says("SELECT FOUND_ROWS()", "3")?;
        says(
            "SELECT COUNT(*), SUM(id), MAX(nickname) FROM users WHERE id > 1",
            "2 5 foobar",
        )?;
        says("SHOW WARNINGS", "")?;
        says("SELECT id FROM users WHERE nickname LIKE 'mar%'", "1")?;
        says("SELECT id FROM users ORDER BY id LIMIT 1, 1", "2")?;
        says("SELECT COUNT(DISTINCT x) FROM (SELECT 1 AS x) AS y", "1")?;
        // What the session has set holds there, too.
        says("SET sql_mode = 'ANSI_QUOTES', time_zone = '+03:00'", "")?;
        says(
            "SELECT \"id\", @@time_zone FROM users ORDER BY \"id\"",
            "1 +03:00, 2 +03:00, 3 +03:00",
        )?;
        says("SET sql_mode = DEFAULT, time_zone = DEFAULT", "")?;
        // One statement has one time.
        for _ in 0..3 {
            let rows = asked(&mut client, "SELECT NOW(6), id FROM users ORDER BY id")?;
            let times: std::collections::BTreeSet<_> = rows.iter().map(|row| &row[0]).collect();
            same(&times.len().to_string(), "1")?;
        }
        let mut says = |sql: &str, wanted: &str| {
            let rows = asked(&mut client, sql)?;
            same(&in_words(&rows), wanted).map_err(|words| format!("{vendor}: {sql}: {words}"))
        };
        says(
            "SELECT COUNT(*) FROM users WHERE NOW(6) = FROM_UNIXTIME(0)",
            "0",
        )?;
        // No transaction is begun by a read of several partitions; in one that is open there is none.
        says("SET autocommit = 0", "")?;
        says("SELECT id FROM users ORDER BY id", "1, 2, 3")?;
        says("INSERT INTO users (id, nickname) VALUES (9, 'marvin')", "")?;
        let said = error(&mut client, "SELECT id FROM users");
        expect(
            said.contains("a transaction is open on hostgroup 1"),
            || said.clone(),
        )?;
        for sql in ["ROLLBACK", "SET autocommit = 1"] {
            asked(&mut client, sql)?;
        }
        // What a server refuses is said, and the next statement runs.
        it.two.root("RENAME TABLE conf.users_nick2 TO conf.gone")?;
        let said = error(&mut client, "SELECT id FROM users ORDER BY id");
        expect(said.starts_with("1146 42S02"), || said.clone())?;
        it.two.root("RENAME TABLE conf.gone TO conf.users_nick2")?;
        let before = connections(&it)?;
        for _ in 0..50 {
            let rows = asked(&mut client, "SELECT id FROM users ORDER BY id LIMIT 1")?;
            same(&in_words(&rows), "1")?;
        }
        let after = connections(&it)?;
        expect(after <= before + 4, || {
            format!("{vendor}: {before} connections became {after}")
        })?;
        // Many rows, more than are in memory at once.
        for (server, table, key) in [
            (&it.one, "users_nick1", "mar"),
            (&it.two, "users_nick2", "foo"),
        ] {
            let deep = match vendor {
                Vendor::MariaDb => "max_recursive_iterations",
                _ => "cte_max_recursion_depth",
            };
            server.root(&format!(
                "SET {deep} = 100000; INSERT INTO conf.{table} (id, nickname) WITH RECURSIVE n (i) AS \
                 (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 21000) SELECT i, CONCAT('{key}', i) FROM n"
            ))?;
        }
        for order in ["", " ORDER BY id"] {
            client
                .query(&format!("SELECT id, REPEAT('x', 1000) FROM users{order}"))
                .map_err(|error| error.to_string())?;
            let mut rows = 0;
            client
                .each_row(|_| rows += 1)
                .map_err(|error| error.to_string())?;
            same(&rows.to_string(), &(2 * 20_001 + 3).to_string())?;
        }
        same(&in_words(&asked(&mut client, "SELECT 1")?), "1")?;
    }
    Ok(())
}

/// Connections that were ever made to both servers.
fn connections(it: &Sharded) -> Result<u64, String> {
    let mut all = 0;
    for server in [&it.one, &it.two] {
        let said = server.root("SHOW GLOBAL STATUS LIKE 'Connections'")?;
        let number = said.split_whitespace().last().unwrap_or_default();
        // Of these one is the question's.
        all += number.parse::<u64>().map_err(|error| error.to_string())? - 1;
    }
    Ok(all)
}

/// Nobody runs what a client does not wait for any more.
fn ended(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = sharded(driver, vendor)?;
        let mut client = filled(&it)?;
        let sleeps = "SELECT SLEEP(20), id FROM users";
        let none_sleeps = |it: &Sharded| {
            let count = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE info LIKE '%SLEEP(20)%' AND info NOT LIKE '%PROCESSLIST%'";
            let of = |server: &Server| {
                let said = server.root(count)?;
                Ok::<_, String>(said.lines().last().unwrap_or_default().trim().to_owned())
            };
            Ok(format!("{} {}", of(&it.one)?, of(&it.two)?))
        };
        let id = in_words(&asked(&mut client, "SELECT CONNECTION_ID()")?);
        // KILL QUERY: the session goes on.
        client.query(sleeps).map_err(|error| error.to_string())?;
        soon("2 1", || none_sleeps(&it))?;
        let mut other = log_in(&it.proxy)?;
        asked(&mut other, &format!("KILL QUERY {id}"))?;
        let said = client.rows().err().map(|error| error.to_string());
        expect(
            said.as_ref().is_some_and(|said| said.starts_with("1317")),
            || format!("{said:?}"),
        )?;
        soon("0 0", || none_sleeps(&it))?;
        same(
            &in_words(&asked(&mut client, "SELECT COUNT(*) FROM users")?),
            "3",
        )?;
        // Its time is over.
        it.proxy
            .admin("SET mysql-default_query_timeout = 1000; LOAD MYSQL VARIABLES TO RUNTIME")?;
        let said = error(&mut client, sleeps);
        expect(said.contains("query_timeout exceeded"), || said.clone())?;
        soon("0 0", || none_sleeps(&it))?;
        it.proxy
            .admin("SET mysql-default_query_timeout = 36000000; LOAD MYSQL VARIABLES TO RUNTIME")?;
        // The client leaves.
        let mut leaving = log_in(&it.proxy)?;
        leaving.query(sleeps).map_err(|error| error.to_string())?;
        soon("2 1", || none_sleeps(&it))?;
        drop(leaving);
        soon("0 0", || none_sleeps(&it))?;
        it.proxy.admin(
            "SET mysql-connect_timeout_server_max = 1000; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        // A server goes: an error, no half of a result, and the session lives.
        client.query(sleeps).map_err(|error| error.to_string())?;
        soon("2 1", || none_sleeps(&it))?;
        it.two.kill();
        let said = client.rows().err().map(|error| error.to_string());
        expect(said.is_some(), || "half of a result".into())?;
        same(
            &in_words(&asked(
                &mut client,
                "SELECT id FROM users WHERE nickname = 'marvel'",
            )?),
            "1",
        )?;
    }
    Ok(())
}

/// A87: one server's transactions are as they are without shards.
fn transactions(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = sharded(driver, vendor)?;
        let mut client = log_in(&it.proxy)?;
        let there = "INSERT INTO users (id, nickname) VALUES (1, 'foo')";
        let elsewhere = "INSERT INTO users (id, nickname) VALUES (2, 'mar')";
        for (begin, end, left) in [
            ("/* hostgroup=2 */ BEGIN", "ROLLBACK", "NULL"),
            ("/* hostgroup=2 */ BEGIN", "COMMIT", "1foo"),
        ] {
            asked(&mut client, begin)?;
            asked(&mut client, there)?;
            let said = error(&mut client, elsewhere);
            expect(
                said.contains("a transaction is open on hostgroup 2"),
                || format!("{vendor}: {said}"),
            )?;
            asked(&mut client, end)?;
            same(&rows(&it.two, "users_nick2")?, left)?;
        }
        // The first statement says where it begins.
        asked(&mut client, "SET autocommit = 0")?;
        asked(&mut client, "DELETE FROM users WHERE nickname = 'foo'")?;
        same(&rows(&it.two, "users_nick2")?, "1foo")?;
        asked(&mut client, "ROLLBACK")?;
        asked(&mut client, "DELETE FROM users WHERE nickname = 'foo'")?;
        asked(&mut client, "COMMIT")?;
        same(&rows(&it.two, "users_nick2")?, "NULL")?;
        asked(&mut client, elsewhere)?;
        asked(&mut client, "COMMIT")?;
        same(&rows(&it.one, "users_nick1")?, "2mar")?;
    }
    Ok(())
}

/// A key that is a parameter says its partition at each execution.
async fn by_parameters(it: &Sharded, vendor: Vendor, client: &mut Conn) -> Outcome {
    let words = |error: mysql_async::Error| error.to_string();
    let insert = "INSERT INTO users (id, nickname) VALUES (?, ?)";
    let insert = client.prep(insert).await.map_err(words)?;
    for (id, nickname) in [(10, "marvel"), (11, "foobaz"), (12, "anna"), (13, "martin")] {
        client
            .exec_drop(&insert, (id, nickname))
            .await
            .map_err(words)?;
    }
    same(&rows(&it.one, "users_nick1")?, "10marvel,13martin")?;
    same(&rows(&it.one, "users_default")?, "12anna")?;
    same(&rows(&it.two, "users_nick2")?, "4foobar,5foo,11foobaz")?;
    let by_key = client
        .prep("SELECT id FROM users WHERE nickname = ?")
        .await
        .map_err(words)?;
    for (nickname, wanted) in [
        ("marvel", Some(10)),
        ("foobaz", Some(11)),
        ("anna", Some(12)),
        ("MARTIN", Some(13)),
        ("nobody", None),
    ] {
        let found: Option<i32> = client
            .exec_first(&by_key, (nickname,))
            .await
            .map_err(words)?;
        expect(found == wanted, || {
            format!("{vendor}: {nickname}: {found:?} instead of {wanted:?}")
        })?;
    }
    let update = "UPDATE users SET x = ? WHERE nickname = ?";
    client.exec_drop(update, (8, "anna")).await.map_err(words)?;
    let deleted = client
        .exec_iter("DELETE FROM users WHERE nickname = ?", ("marvel",))
        .await
        .map_err(words)?
        .affected_rows();
    expect(deleted == 1, || format!("{vendor}: {deleted} rows"))?;
    let said = client
        .exec_drop(
            "INSERT INTO users (id, nickname) VALUES (?, ?), (?, ?)",
            ("20", "mary", "21", "foo"),
        )
        .await;
    let said = said.map_or_else(words, |()| "done".into());
    expect(said.contains("it changes 2 partitions"), || {
        format!("{vendor}: {said}")
    })?;
    let several = "SELECT id, nickname FROM users WHERE nickname IN (?, ?, ?) ORDER BY id DESC";
    let found: Vec<(i32, String)> = client
        .exec(several, ("foo", "nobody", "martin"))
        .await
        .map_err(words)?;
    let wanted = [(13, "martin".to_owned()), (5, "foo".to_owned())];
    expect(found == wanted, || format!("{vendor}: {found:?}"))?;
    let pair = "INSERT INTO users (id, nickname) VALUES (?, ?), (?, ?)";
    client
        .exec_drop(pair, (20, "mary", 21, "marc"))
        .await
        .map_err(words)?;
    same(&rows(&it.one, "users_nick1")?, "13martin,20mary,21marc")?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn prepared(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = sharded(driver, vendor)?;
        it.two
            .root("INSERT INTO conf.users_nick2 (id, nickname) VALUES (4, 'foobar'), (5, 'foo')")?;
        let words = |error: mysql_async::Error| error.to_string();
        let mut client = library::come_in(it.proxy.port).await.map_err(words)?;
        client.query_drop("USE conf").await.map_err(words)?;
        let sql = "SELECT id FROM users WHERE nickname = 'foobar' AND id > ?";
        let statement = client.prep(sql).await.map_err(words)?;
        for (least, wanted) in [(1, Some(4)), (4, None), (0, Some(4))] {
            let found: Option<i32> = client
                .exec_first(&statement, (least,))
                .await
                .map_err(words)?;
            expect(found == wanted, || {
                format!("{vendor}: {found:?} instead of {wanted:?}")
            })?;
        }
        by_parameters(&it, vendor, &mut client).await?;
        // The map changes: what was prepared reads the table that is there now.
        it.two
            .root("RENAME TABLE conf.users_nick2 TO conf.users_n2")?;
        it.proxy.admin(
            "UPDATE mysql_shard_partitions SET physical_table = 'users_n2' WHERE partition_name = 'nick2'; LOAD MYSQL SHARDS TO RUNTIME",
        )?;
        let again: Option<i32> = client.exec_first(&statement, (1,)).await.map_err(words)?;
        expect(again == Some(4), || format!("{vendor}: {again:?}"))?;
        let statement = client
            .prep(sql.replace("id >", "1 <"))
            .await
            .map_err(words)?;
        let found: Option<i32> = client.exec_first(&statement, (2,)).await.map_err(words)?;
        expect(found == Some(4), || format!("{vendor}: {found:?}"))?;
    }
    Ok(())
}

fn cached(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = sharded(driver, vendor)?;
        it.two
            .root("INSERT INTO conf.users_nick2 (id, nickname) VALUES (4, 'foobar')")?;
        it.proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, cache_ttl, attributes, apply) VALUES (1, 1, '^SELECT x FROM users', 600000, '{\"cache_invalidate\":true}', 1); \
             LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let mut client = log_in(&it.proxy)?;
        let read = "SELECT x FROM users WHERE nickname = 'foobar'";
        same(&asked(&mut client, read)?.concat().concat(), "0")?;
        it.two.root("UPDATE conf.users_nick2 SET x = 1")?;
        same(&asked(&mut client, read)?.concat().concat(), "0")?;
        asked(
            &mut client,
            "UPDATE users SET x = x + 1 WHERE nickname = 'foobar'",
        )?;
        same(&asked(&mut client, read)?.concat().concat(), "2")?;
    }
    Ok(())
}

/// Indexes that are made and dropped are so at each partition.
fn indexed(it: &Sharded, client: &mut Raw) -> Outcome {
    let found = || -> Result<String, String> {
        let sql = "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'conf' AND INDEX_NAME = 'by_y'";
        let all = [it.one.root(sql)?, it.two.root(sql)?];
        let last = all.map(|said| said.lines().last().unwrap_or_default().trim().to_owned());
        Ok(last.join(" "))
    };
    asked(client, "CREATE INDEX by_y USING BTREE ON users (y)")?;
    same(&found()?, "2 1")?;
    asked(client, "DROP INDEX by_y ON conf.users")?;
    same(&found()?, "0 0")
}

/// A change of the table that fails at one partition says where it was done, and can be resumed.
fn in_turn(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = sharded(driver, vendor)?;
        let mut client = filled(&it)?;
        asked(
            &mut client,
            "ALTER TABLE users ADD COLUMN y INT NOT NULL DEFAULT 7, ADD INDEX (nickname)",
        )?;
        let rows = asked(&mut client, "SELECT id, y FROM users ORDER BY id")?;
        same(&in_words(&rows), "1 7, 2 7, 3 7")?;
        let told = |columns: &str| {
            it.proxy.admin(&format!(
                "SELECT {columns} FROM stats_mysql_shard_ddl WHERE ddl_id = (SELECT MAX(ddl_id) FROM stats_mysql_shard_ddl) ORDER BY number"
            ))
        };
        same(
            &told("partitions, hostgroup, state, error")?,
            "users (default)\t1\tdone\t\nusers.nick1\t1\tdone\t\nusers.nick2\t2\tdone",
        )?;
        // One partition has it already: the others wait, and are done by a hint.
        it.one
            .root("ALTER TABLE conf.users_nick1 ADD COLUMN z INT")?;
        let said = error(&mut client, "ALTER TABLE conf.users ADD COLUMN z INT");
        let is_so = said.starts_with("1060") && said.contains("1 of 3 partitions have done it");
        expect(is_so, || format!("{vendor}: {said}"))?;
        same(&told("state")?, "done\nfailed\nwaits")?;
        asked(
            &mut client,
            "/* hscale.partition(users) = 'nick2' */ ALTER TABLE conf.users ADD COLUMN z INT",
        )?;
        let rows = asked(&mut client, "SELECT id, z FROM users ORDER BY id")?;
        same(&in_words(&rows), "1 NULL, 2 NULL, 3 NULL")?;
        indexed(&it, &mut client).map_err(|error| format!("{vendor}: {error}"))?;
        // It would end a transaction.
        asked(&mut client, "/* hostgroup=1 */ BEGIN")?;
        asked(
            &mut client,
            "SELECT id FROM users WHERE nickname = 'marvel'",
        )?;
        let said = error(&mut client, "TRUNCATE TABLE users");
        expect(said.contains("a transaction is open"), || said.clone())?;
        asked(&mut client, "ROLLBACK")?;
        asked(&mut client, "TRUNCATE TABLE users")?;
        same(
            &in_words(&asked(&mut client, "SELECT COUNT(*) FROM users")?),
            "0",
        )?;
        created(&it, &mut client).map_err(|error| format!("{vendor}: {error}"))?;
    }
    Ok(())
}

/// Each partition gets the table that it lacks, also from a client that commits by itself.
fn created(it: &Sharded, client: &mut Raw) -> Outcome {
    it.one.root("DROP TABLE conf.users_nick1")?;
    it.two.root("DROP TABLE conf.users_nick2")?;
    let columns = "(id INT, nickname VARCHAR(40) NOT NULL, y INT NOT NULL DEFAULT 7, PRIMARY KEY (id, nickname))";
    let said = error(client, &format!("CREATE TABLE users {columns}"));
    let is_there = said.starts_with("1050") && said.contains("0 of 3 partitions have done it");
    expect(is_there, || said.clone())?;
    asked(client, "SET autocommit = 0")?;
    asked(
        client,
        &format!("CREATE TABLE IF NOT EXISTS conf.users {columns}"),
    )?;
    asked(client, "SET autocommit = 1")?;
    for (id, key) in [(1, "marvel"), (2, "foobar"), (3, "else")] {
        let insert = format!("INSERT INTO users (id, nickname, y) VALUES ({id}, '{key}', {id})");
        asked(client, &insert)?;
    }
    let rows = asked(client, "SELECT id, y FROM users ORDER BY id")?;
    same(&in_words(&rows), "1 1, 2 2, 3 3")
}

/// A83: tables on servers keep their names, and who may not rename them renames nothing.
fn renamed(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = sharded(driver, vendor)?;
        let mut client = filled(&it)?;
        let mut says = |sql: &str, wanted: &str| {
            let said = match client.ask(sql) {
                Ok(rows) => in_words(&rows),
                Err(error) => error.to_string(),
            };
            let is_so = said == wanted || wanted.len() > 3 && said.contains(wanted);
            expect(is_so, || {
                format!("{vendor}: {sql}: {said} instead of {wanted}")
            })
        };
        let ids = |table: &str| format!("SELECT id FROM {table} ORDER BY id");
        says("RENAME TABLE users TO people", "")?;
        says(&ids("people"), "1, 2, 3")?;
        says("SELECT id FROM users WHERE nickname = 'marvel'", "1146")?;
        says("SHOW TABLES LIKE '%e%'", "people")?;
        says(
            "INSERT INTO people (id, nickname) VALUES (4, 'football')",
            "",
        )?;
        same(&rows(&it.two, "users_nick2")?, "2foobar,4football")?;
        // Names change places, in one statement.
        says(
            "RENAME TABLE conf.people TO conf.between, small TO people, conf.between TO conf.small",
            "",
        )?;
        says(
            "SELECT nickname FROM small WHERE nickname = 'marvel'",
            "marvel",
        )?;
        says("SELECT COUNT(*) FROM people WHERE category = 'books'", "0")?;
        says("ALTER TABLE people RENAME TO kinds", "")?;
        says("ALTER TABLE small RENAME conf.people", "")?;
        let kept = "SELECT GROUP_CONCAT(table_name || ' ' || physical_name, '; ') FROM (SELECT * FROM disk.mysql_shard_tables ORDER BY 2)";
        same(&it.proxy.admin(kept)?, "kinds small; people users")?;
        // What would not be one on a server is none.
        for (sql, words) in [
            ("RENAME TABLE people TO numbers", "1050"),
            (
                "RENAME TABLE people TO kinds",
                "another table would get its name",
            ),
            (
                "RENAME TABLE numbers TO people",
                "another table would get its name",
            ),
            ("RENAME TABLE people TO other.people", "stays in its schema"),
            (
                "RENAME TABLE people TO a, numbers TO b",
                "rename each kind by itself",
            ),
            (
                "ALTER TABLE people RENAME TO a, ADD COLUMN y INT",
                "another name, and more",
            ),
            (
                "RENAME TABLE IF EXISTS people TO a",
                "another name, and more",
            ),
        ] {
            says(sql, words)?;
        }
        // What an operator has not loaded is not loaded with it.
        let comments = |words: &str| format!("UPDATE mysql_shard_tables SET comment = '{words}'");
        it.proxy.admin(&comments("later"))?;
        says("RENAME TABLE people TO a", "an operator changes them")?;
        it.proxy.admin(&comments(""))?;
        // Two schemas have the table, and the map has it in any.
        it.one.root("CREATE DATABASE twin; CREATE TABLE twin.users_default (id INT); GRANT SELECT ON twin.* TO monitor@'%'")?;
        says(
            "RENAME TABLE people TO a",
            "all of them would get the new name",
        )?;
        it.one.root("DROP DATABASE twin")?;
        // A table that is not there is noticed.
        it.two.root("RENAME TABLE conf.users_nick2 TO conf.gone")?;
        says("RENAME TABLE people TO a", "1146")?;
        it.two.root("RENAME TABLE conf.gone TO conf.users_nick2")?;
        let _ = says;
        it.two.root("REVOKE DROP ON *.* FROM open@'%'")?;
        it.proxy.restart()?;
        let mut client = log_in(&it.proxy)?;
        let said = error(&mut client, "RENAME TABLE people TO a");
        expect(said.starts_with("1142"), || format!("{vendor}: {said}"))?;
        same(
            &in_words(&asked(&mut client, &ids("people"))?),
            "1, 2, 3, 4",
        )?;
        for table in ["a", "users"] {
            let said = error(&mut client, &format!("SELECT 1 FROM {table}"));
            expect(said.starts_with("1146"), || format!("{vendor}: {said}"))?;
        }
    }
    Ok(())
}

/// The reader has other rows than its writer, so that it is seen who was asked.
fn readers(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = sharded(driver, vendor)?;
        it.two
            .root("INSERT INTO conf.users_nick2 (id, nickname) VALUES (4, 'foobar')")?;
        it.one.root(&format!(
            "CREATE TABLE conf.users_nick2 {COLUMNS}; INSERT INTO conf.users_nick2 (id, nickname) VALUES (9, 'foobar')"
        ))?;
        it.proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (5, '127.0.0.1', {}); \
             INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (2, '{{\"read_hostgroup\":5}}'); \
             LOAD MYSQL SERVERS TO RUNTIME",
            it.one.port
        ))?;
        let mut client = log_in(&it.proxy)?;
        let mut id = |sql: &str| Ok::<_, String>(asked(&mut client, sql)?.concat().concat());
        let read = "SELECT id FROM users WHERE nickname = 'foobar'";
        same(&id(read)?, "9")?;
        same(&id(&format!("{read} FOR UPDATE"))?, "4")?;
        same(&id(&format!("/* hostgroup=2 */ {read}"))?, "4")?;
        id("/* hostgroup=2 */ BEGIN")?;
        same(&id(read)?, "4")?;
        id("COMMIT")?;
        same(&id(read)?, "9")?;
        it.proxy.admin(
            "UPDATE mysql_servers SET status = 'OFFLINE_HARD' WHERE hostgroup_id = 5; LOAD MYSQL SERVERS TO RUNTIME",
        )?;
        same(&id(read)?, "4")?;
    }
    Ok(())
}
