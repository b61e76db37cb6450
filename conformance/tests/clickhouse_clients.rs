//! ClickHouse behind MySQL's protocol, as clients, tools and applications see it.
#![forbid(unsafe_code)]

use conformance::by_hand::Raw;
use conformance::clickhouse::{ClickHouse, Engine, Front};
use conformance::clients::{Client, Login, Runner};
use conformance::process::{output, resident_kib};
use conformance::proxy::{Driver, command_line};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use std::process::Command;
use std::thread;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("clients_see_types_as_those_of_a_mysql", types),
        ("clients_see_types_of_a_current_engine_so_too", current),
        ("what_tools_ask_at_their_start_is_answered", tools),
        ("inspectors_of_drivers_find_tables_and_columns", inspectors),
        ("batches_of_prepared_inserts_are_written", batches),
        ("a_heavy_digest_of_mysql_goes_to_clickhouse", analytics),
        ("ten_million_rows_pass_in_constant_memory", many),
        ("sixty_four_clients_get_what_they_ask_for", crowd),
        (
            "limits_and_settings_are_those_of_user_statement_and_quota",
            limits,
        ),
        ("an_operator_sees_whether_clickhouse_is_there", health),
        ("the_proxy_may_be_its_own_server_twice", twice),
    ])
}

const LOGIN: (&str, &str) = ("clicku", "clickp");

fn login(port: u16) -> Login<'static> {
    let (user, password) = LOGIN;
    Login {
        port,
        user,
        password,
    }
}

/// Libraries that each read all types. All that are here, where everything is tried.
fn libraries() -> Vec<Client> {
    let mut all = vec![
        Client::PyMySql,
        Client::ConnectorPython,
        Client::Go,
        Client::Node,
        Client::Java,
        Client::Rust,
    ];
    if trials::everything() {
        all.extend([
            Client::ConnectorPythonC,
            Client::C,
            Client::MariaDbJava,
            Client::MariaDbNode,
            Client::PhpMysqli,
            Client::Ruby,
        ]);
    }
    all
}

/// A column of both: its type here and there, and values at its bounds, as literals of both.
type Column = (&'static str, &'static str, &'static str, &'static str);

/// Has libraries read the same values from both, by texts and by a prepared statement.
fn compared(front: &Front, columns: &[Column], engine: impl Fn(&str) -> Outcome) -> Outcome {
    let maria = Server::start(Vendor::MariaDb)?;
    let list = |of: fn(&Column) -> &str| {
        let each = columns.iter().enumerate();
        let each = each.map(|(nth, column)| format!("c{nth} {}", of(column)));
        each.collect::<Vec<_>>().join(", ")
    };
    let values = |of: fn(&Column) -> &str| columns.iter().map(of).collect::<Vec<_>>().join(", ");
    let (least, most) = (values(|column| column.2), values(|column| column.3));
    let rows = format!("INSERT INTO bounds VALUES (1, {least}), (2, {most})");
    maria.root(&format!(
        "USE conf; CREATE TABLE bounds (n INT NOT NULL, {}) CHARACTER SET utf8mb4; {rows}",
        list(|column| column.1)
    ))?;
    engine(&format!(
        "CREATE TABLE bounds (n Int32, {}) ENGINE = Memory",
        list(|column| column.0)
    ))?;
    engine(&rows)?;
    let folder = front.proxy.data();
    let scenario = folder.join("bounds.scenario");
    std::fs::write(
        &scenario,
        "connect database=conf tls=off\nquery SELECT * FROM bounds ORDER BY n\n\
         prepare all :: SELECT * FROM bounds WHERE n > ? ORDER BY n\nexecute all :: i:0\n",
    )
    .map_err(|error| error.to_string())?;
    let mut tried = 0;
    for client in libraries() {
        if let Some(why) = client.missing() {
            eprintln!("SKIPPED: {client}: {why}");
            continue;
        }
        let mut runner = Runner::new(client, folder);
        let theirs = runner.run(conformance::clients::app(maria.port), &scenario)?;
        let ours = runner.run(login(front.port), &scenario)?;
        let rows = |said: &str| {
            let rows = said.lines().filter(|line| line.starts_with("  row "));
            rows.map(str::to_owned).collect::<Vec<_>>()
        };
        let wanted = rows(&theirs);
        expect(wanted.len() >= 2, || format!("{client}: {theirs}"))?;
        same(&rows(&ours).join("\n"), &wanted.join("\n"))
            .map_err(|why| format!("{client}: {why}\n{ours}"))?;
        tried += 1;
    }
    expect(tried > 1, || "no library is here".to_owned())
}

fn types(driver: Driver) -> Outcome {
    const COLUMNS: &[Column] = &[
        ("Int8", "TINYINT NOT NULL", "-128", "127"),
        ("UInt8", "TINYINT UNSIGNED NOT NULL", "0", "255"),
        ("Int16", "SMALLINT NOT NULL", "-32768", "32767"),
        ("UInt16", "SMALLINT UNSIGNED NOT NULL", "0", "65535"),
        ("Int32", "INT NOT NULL", "-2147483648", "2147483647"),
        ("UInt32", "INT UNSIGNED NOT NULL", "0", "4294967295"),
        (
            "Int64",
            "BIGINT NOT NULL",
            "-9223372036854775808",
            "9223372036854775807",
        ),
        (
            "UInt64",
            "BIGINT UNSIGNED NOT NULL",
            "0",
            "18446744073709551615",
        ),
        ("Float32", "FLOAT", "-0.5", "1000.5"),
        ("Float64", "DOUBLE", "-2.5e-300", "1.7976931348623157e308"),
        (
            "Decimal(9, 3)",
            "DECIMAL(9, 3) NOT NULL",
            "-999999.999",
            "0.001",
        ),
        (
            "Decimal(18, 2)",
            "DECIMAL(18, 2) NOT NULL",
            "-9999999999999999.99",
            "0.00",
        ),
        (
            "Decimal(38, 3)",
            "DECIMAL(38, 3) NOT NULL",
            "-12345678901234567890123456.789",
            "99999999999999999999999999999999999.999",
        ),
        ("Date", "DATE NOT NULL", "'1970-01-02'", "'2105-12-31'"),
        (
            "DateTime",
            "DATETIME NOT NULL",
            "'1970-01-01 00:00:01'",
            "'2105-12-31 23:59:59'",
        ),
        ("String", "TEXT NOT NULL", "''", "'it\\'s Ärger 😀'"),
        ("String", "BLOB NOT NULL", "unhex('00FF10')", "unhex('FE')"),
        ("FixedString(3)", "CHAR(3) NOT NULL", "'abc'", "'xyz'"),
        (
            "UUID",
            "CHAR(36) NOT NULL",
            "'00000000-0000-0000-0000-000000000000'",
            "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'",
        ),
        (
            "Enum8('a' = -128, 'b' = 127)",
            "ENUM('a', 'b') NOT NULL",
            "'a'",
            "'b'",
        ),
        (
            "Enum16('x' = -32768, 'y' = 32767)",
            "ENUM('x', 'y') NOT NULL",
            "'x'",
            "'y'",
        ),
        ("Nullable(Int32)", "INT", "NULL", "7"),
        ("Nullable(String)", "TEXT", "'some'", "NULL"),
        (
            "Nullable(DateTime)",
            "DATETIME",
            "NULL",
            "'2018-06-26 10:00:00'",
        ),
    ];
    let house = ClickHouse::start()?;
    house.ask("CREATE DATABASE conf")?;
    let front = Front::with_user(driver, &house)?;
    compared(&front, COLUMNS, |sql| {
        command_line(front.port, LOGIN.0, LOGIN.1, &["conf"], sql).map(drop)
    })
}

fn current(driver: Driver) -> Outcome {
    const COLUMNS: &[Column] = &[
        (
            "Int128",
            "DECIMAL(39, 0) NOT NULL",
            "-170141183460469231731687303715884105728",
            "170141183460469231731687303715884105727",
        ),
        (
            "UInt128",
            "DECIMAL(39, 0) NOT NULL",
            "0",
            "340282366920938463463374607431768211455",
        ),
        (
            "Int256",
            "VARCHAR(80) NOT NULL",
            "'-57896044618658097711785492504343953926634992332820282019728792003956564819968'",
            "'57896044618658097711785492504343953926634992332820282019728792003956564819967'",
        ),
        (
            "Decimal(65, 30)",
            "DECIMAL(65, 30) NOT NULL",
            "'-1.000000000000000000000000000001'",
            "'99999999999999999999999999999999999.999999999999999999999999999999'",
        ),
        ("Bool", "BOOL NOT NULL", "false", "true"),
        ("Date32", "DATE NOT NULL", "'1900-01-01'", "'2299-12-31'"),
        (
            "DateTime64(3, 'UTC')",
            "DATETIME(3) NOT NULL",
            "'1900-01-01 00:00:00.001'",
            "'2299-12-31 23:59:59.999'",
        ),
        (
            "DateTime64(6, 'UTC')",
            "DATETIME(6) NOT NULL",
            "'1969-12-31 23:59:59.999999'",
            "'2020-01-02 03:04:05.000001'",
        ),
        (
            "IPv4",
            "VARCHAR(15) NOT NULL",
            "'0.0.0.0'",
            "'255.255.255.255'",
        ),
        ("IPv6", "VARCHAR(39) NOT NULL", "'::1'", "'2001:db8::ff'"),
        ("LowCardinality(String)", "TEXT NOT NULL", "'low'", "''"),
        ("LowCardinality(Nullable(String))", "TEXT", "NULL", "'x'"),
        ("Nullable(Bool)", "BOOL", "NULL", "true"),
    ];
    let (port, front) = Engine::front(driver)?;
    let Some(_engine) = Engine::start(port, &front)? else {
        return Ok(());
    };
    let ask = |sql: &str| front.ask(sql);
    compared(&front, COLUMNS, |sql| ask(sql).map(drop))?;
    // JSON comes as its text without anybody's asking, also in what follows.
    for _ in 0..2 {
        same(
            &ask("SELECT 1, '{\"a\":{\"b\":[1,2]}}'::JSON AS j")?,
            "1\t{\"a\":{\"b\":[1,2]}}",
        )?;
    }
    same(
        &ask("SELECT '{\"a\":1}'::JSON AS j; SELECT '{\"b\":1}'::JSON AS j; SELECT 7")?,
        "{\"a\":1}\n{\"b\":1}\n7",
    )
}

/// Statements of graphical clients and of drivers, from before their user says anything. Those with
/// an answer must have that.
fn tools(driver: Driver) -> Outcome {
    const ASKED: &[(&str, &str)] = &[
        // DBeaver.
        ("SELECT DATABASE()", "shop"),
        ("SHOW ENGINES", ""),
        ("SHOW CHARSET", ""),
        ("SHOW COLLATION", ""),
        ("SHOW PLUGINS", ""),
        ("SHOW PRIVILEGES", ""),
        (
            "SHOW VARIABLES LIKE 'lower_case_table_names'",
            "lower_case_table_names\t0",
        ),
        (
            "SELECT @@GLOBAL.character_set_server,@@GLOBAL.collation_server",
            "utf8mb4\tutf8mb4_general_ci",
        ),
        ("SHOW FULL TABLES FROM `shop`", "t\tBASE TABLE"),
        ("SHOW TABLE STATUS FROM `shop`", "t\tMergeTree"),
        (
            "SELECT * FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = 'information_schema' AND t.TABLE_NAME = 'CHECK_CONSTRAINTS'",
            "",
        ),
        (
            "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='shop' AND TABLE_NAME='t' ORDER BY ORDINAL_POSITION",
            "def\tshop\tt\ta\t1",
        ),
        (
            "SELECT kc.CONSTRAINT_NAME,kc.TABLE_NAME,kc.COLUMN_NAME,kc.ORDINAL_POSITION FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE kc \
             WHERE kc.TABLE_SCHEMA='shop' AND kc.REFERENCED_TABLE_NAME IS NULL AND kc.TABLE_NAME='t' ORDER BY kc.CONSTRAINT_NAME,kc.ORDINAL_POSITION",
            "",
        ),
        ("SHOW CREATE TABLE `shop`.`t`", "t\tCREATE TABLE"),
        (
            "SELECT version(), @@version_comment AS v",
            "8.0.11\tClickHouse behind Millrace",
        ),
        // MySQL Workbench.
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "",
        ),
        ("SELECT CONNECTION_ID() > 0 FROM DUAL", "1"),
        ("SET CHARACTER SET utf8", ""),
        ("SET SQL_SAFE_UPDATES=1", ""),
        ("SELECT USER()", "clicku@%"),
        ("SELECT CURRENT_USER()", "clicku@%"),
        ("SHOW SESSION STATUS LIKE 'Ssl_cipher'", ""),
        (
            "SHOW SESSION VARIABLES LIKE 'sql_mode'",
            "sql_mode\tSTRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
        ),
        ("SHOW DATABASES", "default\nshop\nsystem"),
        ("SHOW FULL COLUMNS FROM `shop`.`t`", "a\ttinyint unsigned"),
        ("SHOW INDEX FROM `shop`.`t`", ""),
        ("SHOW TRIGGERS FROM `shop`", ""),
        ("SHOW PROCEDURE STATUS WHERE Db='shop'", ""),
        (
            "SELECT st.* FROM performance_schema.events_statements_current st WHERE st.thread_id = 1",
            "",
        ),
        // Navicat.
        ("SET NAMES utf8mb4", ""),
        (
            "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA",
            "default\tutf8mb4",
        ),
        (
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop' ORDER BY TABLE_SCHEMA, TABLE_TYPE",
            "shop\tt\tBASE TABLE",
        ),
        (
            "SELECT TABLE_NAME, CHECK_OPTION, IS_UPDATABLE, SECURITY_TYPE, DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'shop'",
            "",
        ),
        ("SHOW FUNCTION STATUS WHERE Db = 'shop'", ""),
        ("SHOW EVENTS FROM `shop`", ""),
        ("SELECT `a`, `b` FROM `shop`.`t` LIMIT 0, 1000", "1\tx"),
        // SQLyog.
        ("SHOW PROFILES", ""),
        ("SET PROFILING = 1", ""),
        (
            "SELECT `DEFAULT_COLLATION_NAME` FROM `information_schema`.`SCHEMATA` WHERE `SCHEMA_NAME`='shop'",
            "utf8mb4_general_ci",
        ),
        ("SHOW FULL FIELDS FROM `shop`.`t`", "a\ttinyint unsigned"),
        ("SHOW KEYS FROM `t` FROM `shop`", ""),
        ("USE `shop`", ""),
        // Metabase, and what drivers of its kind ask.
        (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop' AND table_name = 't'",
            "t",
        ),
        (
            "SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, CASE WHEN TABLE_TYPE='BASE TABLE' THEN CASE WHEN \
             TABLE_SCHEMA = 'mysql' OR TABLE_SCHEMA = 'performance_schema' OR TABLE_SCHEMA = 'sys' THEN 'SYSTEM TABLE' ELSE 'TABLE' END \
             WHEN TABLE_TYPE='TEMPORARY' THEN 'LOCAL_TEMPORARY' ELSE TABLE_TYPE END AS TABLE_TYPE, TABLE_COMMENT AS REMARKS \
             FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'shop' HAVING TABLE_TYPE IN ('TABLE','VIEW',null,null,null) \
             ORDER BY TABLE_TYPE, TABLE_SCHEMA, TABLE_NAME",
            "shop\tNULL\tt\tTABLE",
        ),
        (
            "SELECT @@session.auto_increment_increment AS auto_increment_increment, @@max_allowed_packet AS m, @@time_zone AS z",
            "1\t67108864\tSYSTEM",
        ),
        ("SELECT SLEEP(0)", "0"),
        (
            "SELECT count(*) FROM `shop`.`t` WHERE `d` >= '2018-01-01 00:00:00'",
            "1",
        ),
        ("SHOW WARNINGS", ""),
    ];
    let house = ClickHouse::start()?;
    house.ask("CREATE DATABASE shop")?;
    house.ask("CREATE TABLE shop.t (a UInt8, b Nullable(String), c Decimal(9,2), d DateTime) ENGINE = MergeTree ORDER BY a")?;
    house.ask("INSERT INTO shop.t VALUES (1, 'x', 1.5, '2018-01-01 00:00:00')")?;
    let front = Front::with_user(driver, &house)?;
    let mut wrong = String::new();
    for (sql, wanted) in ASKED {
        match command_line(front.port, LOGIN.0, LOGIN.1, &["shop"], sql) {
            Ok(said) if said.trim().starts_with(wanted) => {}
            other => wrong += &format!("{sql}\n  wanted {wanted:?}\n  found {other:?}\n"),
        }
    }
    expect(wrong.is_empty(), || wrong)
}

/// Runs a programme of a client's language with the port for its argument.
fn ran(client: &str, command: impl Fn(&str) -> Command) -> Result<Option<String>, String> {
    let script = conformance::cache::root().join("scripts/clients.sh");
    let (fine, folder) = output(Command::new(script).arg(client), HANGS)?;
    if !fine {
        eprintln!("SKIPPED: {client}: {folder}");
        return Ok(None);
    }
    let (fine, said) = output(&mut command(folder.trim()), HANGS)?;
    if fine { Ok(Some(said)) } else { Err(said) }
}

fn inspectors(driver: Driver) -> Outcome {
    const PYTHON: &str = "import sys, sqlalchemy\n\
         url = 'mysql+pymysql://clicku:clickp@127.0.0.1:%s/shop' % sys.argv[1]\n\
         engine = sqlalchemy.create_engine(url)\n\
         seen = sqlalchemy.inspect(engine)\n\
         print('shop' in seen.get_schema_names(), seen.get_table_names(), seen.get_view_names())\n\
         print([(one['name'], str(one['type']), one['nullable']) for one in seen.get_columns('t')])\n\
         print(seen.get_pk_constraint('t')['constrained_columns'], seen.get_foreign_keys('t'), seen.get_indexes('t'))\n\
         with engine.connect() as conn:\n\
         \x20   print(conn.execute(sqlalchemy.text('SELECT a, b FROM t WHERE a = :a'), {'a': 1}).fetchall())\n";
    const JAVA: &str = "import java.sql.*;\n\
         public class Looks { public static void main(String[] a) throws Exception {\n\
         for (String how : new String[] {\"mysql\", \"mysql:true\", \"mariadb\"}) {\n\
         String url = \"jdbc:\" + how.split(\":\")[0] + \"://127.0.0.1:\" + a[0] + \"/shop?user=clicku&password=clickp&sslMode=DISABLE\"\n\
         + (how.startsWith(\"mysql\") ? \"D&useInformationSchema=\" + how.endsWith(\"true\") : \"\");\n\
         try (Connection c = DriverManager.getConnection(url)) {\n\
         DatabaseMetaData m = c.getMetaData(); StringBuilder out = new StringBuilder(how);\n\
         try (ResultSet r = m.getCatalogs()) { while (r.next()) if (r.getString(1).equals(\"shop\")) out.append(\" catalog\"); }\n\
         try (ResultSet r = m.getTables(\"shop\", null, \"%\", new String[] {\"TABLE\", \"VIEW\"})) { while (r.next()) out.append(\" table \").append(r.getString(\"TABLE_NAME\")); }\n\
         try (ResultSet r = m.getColumns(\"shop\", null, \"t\", \"%\")) { while (r.next()) out.append(' ').append(r.getString(\"COLUMN_NAME\")); }\n\
         try (ResultSet r = m.getPrimaryKeys(\"shop\", null, \"t\")) { while (r.next()) out.append(\" key\"); }\n\
         try (ResultSet r = m.getIndexInfo(\"shop\", null, \"t\", false, true)) { while (r.next()) out.append(\" index\"); }\n\
         try (ResultSet r = m.getImportedKeys(\"shop\", null, \"t\")) { while (r.next()) out.append(\" imported\"); }\n\
         System.out.println(out); } } } }\n";
    let house = ClickHouse::start()?;
    house.ask("CREATE DATABASE shop")?;
    house.ask("CREATE TABLE shop.t (a UInt8, b Nullable(String), c Decimal(9,2), d DateTime) ENGINE = MergeTree ORDER BY a")?;
    house.ask("INSERT INTO shop.t VALUES (1, 'x', 1.5, '2018-01-01 00:00:00')")?;
    let front = Front::with_user(driver, &house)?;
    let port = front.port.to_string();
    let said = ran("python", |folder| {
        let mut command = Command::new(format!("{folder}/venv/bin/python"));
        command.args(["-c", PYTHON, &port]);
        command
    })?;
    if let Some(said) = said {
        same(
            &said,
            "True ['t'] []\n[('a', 'TINYINT', False), ('b', 'VARCHAR(65535)', True), ('c', 'DECIMAL(9, 2)', False), ('d', 'DATETIME', False)]\n\
             [] [] []\n[(1, 'x')]",
        )?;
    }
    let source = front.proxy.data().join("Looks.java");
    std::fs::write(&source, JAVA).map_err(|error| error.to_string())?;
    let said = ran("java", |folder| {
        let mut command = Command::new("java");
        command.args(["-Dmariadb.logging.disable=true", "-cp"]);
        command.arg(format!("{folder}/lib/*"));
        command.arg(&source).arg(&port);
        command
    })?;
    if let Some(said) = said {
        same(
            &said,
            "mysql catalog table t a b c d\nmysql:true catalog table t a b c d\nmariadb catalog table t a b c d",
        )?;
    }
    Ok(())
}

/// Batches of prepared INSERTs, one by one and made into one statement, as MariaDB answers them: on the
/// port itself, and through the proxy in front of it.
fn batches(driver: Driver) -> Outcome {
    const ROWS: u32 = 400;
    const COLUMNS: &str = "n BIGINT, words TEXT, bytes BLOB, whole BIGINT";
    let house = ClickHouse::start()?;
    let maria = Server::start(Vendor::MariaDb)?;
    maria.root(&format!(
        "CREATE TABLE conf.in_batches ({COLUMNS}) CHARACTER SET utf8mb4"
    ))?;
    house.ask("CREATE DATABASE conf")?;
    house.ask("CREATE TABLE conf.in_batches (n Int64, words Nullable(String), bytes String, whole Nullable(Int64)) ENGINE = Memory")?;
    let front = Front::with_user(driver, &house)?;
    front.proxy.admin(&format!(
        "INSERT INTO mysql_users (username, password) SELECT username, password FROM clickhouse_users; LOAD MYSQL USERS TO RUNTIME; \
         INSERT INTO mysql_servers (hostname, port) VALUES ('127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        front.port
    ))?;
    let scenario = front.proxy.data().join("batches.scenario");
    std::fs::write(&scenario, batches_of(ROWS)).map_err(|error| error.to_string())?;
    let mut tried = 0;
    for client in [Client::Java, Client::MariaDbJava, Client::PyMySql] {
        if let Some(why) = client.missing() {
            eprintln!("SKIPPED: {client}: {why}");
            continue;
        }
        let mut runner = Runner::new(client, front.proxy.data());
        let mut seen = |at: Login<'_>| -> Result<String, String> {
            maria.root("TRUNCATE conf.in_batches")?;
            house.ask("TRUNCATE TABLE conf.in_batches")?;
            let said = runner.run(at, &scenario)?;
            let counts = |line: &str| line.strip_prefix("  affected=").map(shortened);
            let told = said.lines().filter_map(|line| {
                let is_told = line.starts_with("  row ") || line.starts_with("  error ");
                counts(line).or_else(|| is_told.then(|| line.to_owned()))
            });
            Ok(told.collect::<Vec<_>>().join("\n"))
        };
        let wanted = seen(conformance::clients::app(maria.port))?;
        let is_fine = wanted.contains(&ROWS.to_string()) && !wanted.contains("  error ");
        expect(is_fine, || format!("{client}: {wanted}"))?;
        for port in [front.port, front.proxy.port] {
            same(&seen(login(port))?, &wanted).map_err(|why| format!("{client}: {why}"))?;
        }
        tried += 1;
    }
    expect(tried > 0, || "no library is here".to_owned())
}

/// Counts of affected rows, the same in a row as one.
fn shortened(counts: &str) -> String {
    let mut counts: Vec<_> = counts.trim_matches(['[', ']']).split(", ").collect();
    let all = counts.len();
    counts.dedup();
    format!("{all} counts: {}", counts.join(", "))
}

/// Steps that write few rows of each type and many rows, without and with rewriteBatchedStatements.
fn batches_of(many: u32) -> String {
    let mut steps = String::new();
    for (rewrite, base) in [("off", 0), ("on", 100_000)] {
        steps += &format!("connect database=conf tls=off rewrite={rewrite}\n");
        steps += &format!(
            "batch INSERT INTO in_batches (n, words, bytes, whole) VALUES (?, ?, ?, ?) :: i:{} | s:it's \\ Ärger 😀 | b:00ff275c1a0a | n: \
             :: i:{} | n: | b: | i:-9223372036854775808 :: i:{} | s:? | b:41 | i:7\n",
            base + 1,
            base + 2,
            base + 3
        );
        steps += &format!(
            "query SELECT n, words, hex(bytes), whole FROM in_batches WHERE n > {base} ORDER BY n\n"
        );
        let rows =
            (0..many - 3).map(|row| format!(" :: i:{} | s:row {row} | b:ff", base + 10 + row));
        steps += "batch INSERT INTO in_batches (n, words, bytes) VALUES (?, ?, ?)";
        steps += &format!("{}\n", rows.collect::<String>());
        steps += "query SELECT COUNT(*) FROM in_batches\n";
    }
    steps + "query SELECT COUNT(DISTINCT words), MAX(n) FROM in_batches\n"
}

/// One table is in both. What is heavy goes to ClickHouse by its digest, in the words of
/// ClickHouse; what is said in a transaction, and everything else, stays.
fn analytics(driver: Driver) -> Outcome {
    const HEAVY: &str = "SELECT DATE_FORMAT(created, '%Y-%m') AS m, COUNT(*), SUM(n) FROM sales GROUP BY DATE_FORMAT(created, '%Y-%m') ORDER BY m";
    const LIGHT: &str = "SELECT n FROM sales WHERE id = 2";
    const ROWS: &str = "INSERT INTO conf.sales VALUES (1, '2018-03-05 01:02:03', 7), (2, '2018-03-06 00:00:00', 5), (3, '2018-11-01 00:00:00', -1)";
    let house = ClickHouse::start()?;
    let maria = Server::start(Vendor::MariaDb)?;
    house.ask("CREATE DATABASE conf")?;
    house.ask("CREATE TABLE conf.sales (id Int32, created DateTime, n Int32) ENGINE = MergeTree ORDER BY id")?;
    house.ask(ROWS)?;
    maria.root("CREATE TABLE conf.sales (id INT PRIMARY KEY, created DATETIME, n INT)")?;
    maria.root(ROWS)?;
    let front = Front::start(driver, &house, "")?;
    let proxy = &front.proxy;
    proxy.admin(&format!(
        "INSERT INTO clickhouse_users (username, password) VALUES ('app', 'secret'); LOAD CLICKHOUSE USERS TO RUNTIME; \
         INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('app', 'secret', 0); LOAD MYSQL USERS TO RUNTIME; \
         INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', {}), (60, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        maria.port, front.port
    ))?;
    let ask = |sql: &str| command_line(proxy.port, "app", "secret", &["conf"], sql);
    let wanted = ask(HEAVY)?;
    same(&wanted, "2018-03\t2\t12\n2018-11\t1\t-1")?;
    let digest = proxy.admin(
        "SELECT digest FROM stats_mysql_query_digest WHERE hostgroup = 0 AND digest_text LIKE 'SELECT DATE_FORMAT%'",
    )?;
    expect(digest.trim().starts_with("0x"), || digest.clone())?;
    let rules =
        std::fs::read_to_string(conformance::cache::root().join("etc/clickhouse-rules.sql"));
    let rules = rules.map_err(|error| error.to_string())?;
    proxy.admin(&format!(
        "INSERT INTO mysql_query_rules (rule_id, active, digest, destination_hostgroup, flagOUT) VALUES (6000, 1, '{}', 60, 6090); {rules}",
        digest.trim()
    ))?;
    let route = proxy.admin(&format!(
        "EXPLAIN ROUTE '{}' AS app IN conf",
        HEAVY.replace('\'', "''")
    ))?;
    expect(
        route.contains(&front.port.to_string()) && !route.contains(&maria.port.to_string()),
        || route.clone(),
    )?;
    let counted = |hostgroup: u32, like: &str| {
        let sql = format!(
            "SELECT COALESCE(SUM(count_star), 0) FROM stats_mysql_query_digest WHERE hostgroup = {hostgroup} AND digest_text LIKE '{like}%'"
        );
        proxy.admin(&sql).map(|said| said.trim().to_owned())
    };
    // What applications set comes along.
    same(
        &ask(&format!(
            "SET NAMES utf8mb4; SET SESSION time_zone = '+00:00'; SET sql_mode = 'ANSI_QUOTES'; SET @who = 'me'; {HEAVY}; {LIGHT}"
        ))?,
        &format!("{}\n5", wanted.trim()),
    )?;
    let all =
        proxy.admin("SELECT hostgroup, count_star, digest_text FROM stats_mysql_query_digest")?;
    same(&counted(60, "SELECT formatDateTime")?, "1").map_err(|why| format!("{why}\n{all}"))?;
    same(&counted(60, "SELECT n")?, "0")?;
    // A transaction stays where it is, and ClickHouse's words are none of MySQL's.
    let stays = ask(&format!("BEGIN; {LIGHT}; {HEAVY}; COMMIT"));
    expect(
        matches!(&stays, Err(words) if words.starts_with('5') && words.contains("ERROR 1305")),
        || format!("{stays:?}"),
    )?;
    same(&counted(60, "SELECT formatDateTime")?, "1")
}

/// Ten million rows of hundreds of megabytes, in less than a tenth of them.
fn many(driver: Driver) -> Outcome {
    const ROWS: u64 = 10_000_000;
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    front.ask("SELECT 1")?;
    let before = resident_kib(front.proxy.id());
    let mut raw = Raw::log_in_as(&login(front.port), 0, 0).map_err(|error| error.to_string())?;
    raw.query(&format!(
        "SELECT number, concat('a row: ', toString(number)) FROM system.numbers LIMIT {ROWS}"
    ))
    .map_err(|error| error.to_string())?;
    let (mut rows, mut bytes, mut most) = (0_u64, 0_u64, 0);
    raw.each_row(|row| {
        rows += 1;
        bytes += row.len() as u64;
        if rows % 500_000 == 0 {
            most = most.max(resident_kib(front.proxy.id()));
        }
    })
    .map_err(|error| error.to_string())?;
    same(&rows.to_string(), &ROWS.to_string())?;
    expect(bytes > 200 << 20, || format!("{bytes} bytes"))?;
    println!(
        "{ROWS} rows, {} MiB: {before} KiB before, at most {most} KiB",
        bytes >> 20
    );
    expect(most < before + 20_000, || {
        format!("{before} KiB, then {most}")
    })
}

/// Each client gets its own rows, whatever the others ask.
fn crowd(driver: Driver) -> Outcome {
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    let ask = |nth: u64| -> Outcome {
        let failed = |error: std::io::Error| format!("client {nth}: {error}");
        let mut raw = Raw::log_in_as(&login(front.port), 0, 0).map_err(failed)?;
        for round in 0..5 {
            let rows = 1 + (nth * 7 + round * 131) % 3000;
            let sql = format!("SELECT number + {nth}, 'of {nth}' FROM system.numbers LIMIT {rows}");
            let found = raw.ask(&sql).map_err(failed)?;
            let wanted = (0..rows).map(|row| vec![(row + nth).to_string(), format!("of {nth}")]);
            expect(found.iter().cloned().eq(wanted), || {
                format!("client {nth}: {sql}: {} rows", found.len())
            })?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..64).map(|nth| scope.spawn(move || ask(nth))).collect();
        let mut ended = clients.into_iter().map(|client| client.join());
        ended.try_for_each(|ended| ended.map_err(|_| "a client panicked".to_owned())?)
    })
}

fn limits(driver: Driver) -> Outcome {
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    let setting = |before: &str, hint: &str, name: &str| {
        let sql = format!("{before}SELECT {hint} value FROM system.settings WHERE name = '{name}'");
        // Without this, the command line leaves hints out.
        let said = command_line(front.port, LOGIN.0, LOGIN.1, &["--comments"], &sql)?;
        Ok::<_, String>(said.trim().to_owned())
    };
    same(
        &setting("", "/*+ SET_VAR(max_threads = 3) */", "max_threads")?,
        "3",
    )?;
    same(
        &setting("", "/*+ MAX_EXECUTION_TIME(1500) */", "max_execution_time")?,
        "2",
    )?;
    same(
        &setting(
            "SET max_threads = 2; ",
            "/*+ SET_VAR(max_threads = 3) SET_VAR(sql_mode = '') */",
            "max_threads",
        )?,
        "3",
    )?;
    let refused = setting("", "/*+ SET_VAR(nosuch = 1) */", "max_threads");
    expect(
        matches!(&refused, Err(words) if words.contains("ERROR 1193") && words.contains("nosuch")),
        || format!("{refused:?}"),
    )?;
    // Nobody gives himself more time than he has.
    front.proxy.admin(
        "INSERT INTO clickhouse_user_settings (username, max_ms, max_queries) VALUES ('clicku', 4000, 1); LOAD CLICKHOUSE USERS TO RUNTIME",
    )?;
    same(&setting("", "", "max_execution_time")?, "4")?;
    same(
        &setting("SET max_execution_time = 2000; ", "", "max_execution_time")?,
        "2",
    )?;
    same(
        &setting("SET max_execution_time = 60000; ", "", "max_execution_time")?,
        "4",
    )?;
    same(
        &setting("", "/*+ MAX_EXECUTION_TIME(0) */", "max_execution_time")?,
        "4",
    )?;
    let mut raw = Raw::log_in_as(&login(front.port), 0, 0).map_err(|error| error.to_string())?;
    raw.query("SELECT count() FROM system.numbers WHERE NOT ignore(number)")
        .map_err(|error| error.to_string())?;
    soon("1", || house.running())?;
    let refused = front.ask("SELECT 1");
    expect(
        matches!(&refused, Err(words) if words.contains("statements running")),
        || format!("{refused:?}"),
    )?;
    let ended = raw.packet();
    expect(
        matches!(&ended, Ok(packet) if packet[0] == 0xFF && packet[1..3] == 3024_u16.to_le_bytes()),
        || format!("{ended:?}"),
    )?;
    // A quota of ClickHouse's own, of a user that only its rows name.
    front.proxy.admin(
        "DELETE FROM clickhouse_user_settings; \
         INSERT INTO clickhouse_user_settings (username, clickhouse_user) VALUES ('clicku', 'few'); LOAD CLICKHOUSE USERS TO RUNTIME",
    )?;
    let said = (0..4).map(|_| front.ask("SELECT 7")).collect::<Vec<_>>();
    expect(
        said[0].as_ref().is_ok_and(|said| said.trim() == "7")
            && matches!(&said[3], Err(words) if words.contains("ERROR 1226") && words.contains("ClickHouse 201")),
        || format!("{said:?}"),
    )
}

/// ClickHouse is not there at the start, comes, and goes: the log, the server's status, and what a
/// client reads.
fn health(driver: Driver) -> Outcome {
    let mut house = ClickHouse::start()?;
    house.kill();
    let quick = "monitor_enabled = true\nmonitor_ping_interval = 100\nmonitor_ping_timeout = 5000\nmonitor_connect_timeout = 5000";
    let front = Front::start(driver, &house, quick)?;
    front.let_in()?;
    front.proxy.admin(&format!(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (60, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        front.port
    ))?;
    let status = || {
        let sql = "SELECT status FROM runtime_mysql_servers";
        front.proxy.admin(sql).map(|said| said.trim().to_owned())
    };
    soon("SHUNNED", status)?;
    expect(front.proxy.says("clickhouse: 127.0.0.1:"), || {
        front.proxy.log()
    })?;
    let refused = front.ask("SELECT 1");
    expect(
        matches!(&refused, Err(words) if words.contains("ERROR 1429")),
        || format!("{refused:?}"),
    )?;
    house.restart()?;
    soon("ONLINE", status)?;
    same(&front.ask("SELECT 7")?, "7")?;
    expect(front.proxy.says("answers again"), || front.proxy.log())?;
    house.kill();
    soon("SHUNNED", status)
}

/// Traffic goes round: from the proxy to itself, and from there to the port of ClickHouse, with one
/// core, and one connection for each way.
fn twice(driver: Driver) -> Outcome {
    let house = ClickHouse::start()?;
    let mut front = Front::with_user(driver, &house)?;
    front.proxy.admin(
        "SET mysql-threads = 1; SAVE MYSQL VARIABLES TO DISK; SAVE CLICKHOUSE USERS TO DISK",
    )?;
    front.proxy.restart()?;
    let (proxy, port) = (&front.proxy, front.port);
    proxy.admin(&format!(
        "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('clicku', 'clickp', 60); LOAD MYSQL USERS TO RUNTIME; \
         INSERT INTO mysql_servers (hostgroup_id, hostname, port, max_connections) VALUES (60, '127.0.0.1', {port}, 1), (61, '127.0.0.1', {}, 1); \
         LOAD MYSQL SERVERS TO RUNTIME; \
         INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern, destination_hostgroup, apply) \
         VALUES (1, 1, '^SELECT \\+1, (.*)$', 'SELECT 1, \\1', 61, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        proxy.port
    ))?;
    thread::scope(|scope| {
        let ask = |nth: u32| -> Outcome {
            for round in 0..10 {
                let sql = format!("SELECT +1, {}", nth * 100 + round);
                let said = command_line(proxy.port, "clicku", "clickp", &[], &sql)?;
                same(&said, &format!("1\t{}", nth * 100 + round))?;
            }
            Ok(())
        };
        let clients: Vec<_> = (0..4).map(|nth| scope.spawn(move || ask(nth))).collect();
        let mut ended = clients.into_iter().map(|client| client.join());
        ended.try_for_each(|ended| ended.map_err(|_| "a client panicked".to_owned())?)
    })?;
    let sent = proxy.admin("SELECT hostgroup, SUM(Queries) > 39 FROM stats_mysql_connection_pool GROUP BY 1 ORDER BY 1")?;
    same(&sent, "60\t1\n61\t1")
}
