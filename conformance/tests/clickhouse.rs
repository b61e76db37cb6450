//! ClickHouse behind MySQL's protocol: the server that Debian has, and clients of MySQL.
#![forbid(unsafe_code)]

use conformance::by_hand::Raw;
use conformance::clickhouse::{ClickHouse, Engine, Front};
use conformance::clients::Login;
use conformance::process::{output, resident_kib};
use conformance::proxy::{Driver, command_line};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};

use conformance::watch::HANGS;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("a11_to_a18_the_seeds_script_works_as_it_is_pasted", seed),
        ("every_type_is_what_clickhouse_itself_says", types),
        ("types_of_a_current_engine_are_what_they_say", current),
        ("clients_of_several_languages_read_the_same", clients),
        ("statements_are_prepared_and_rows_written", written),
        (
            "the_file_of_rules_has_the_answers_of_mysqls_functions",
            rewritten,
        ),
        ("what_goes_wrong_in_mid_result_is_no_row", broken),
        ("whoever_says_kill_or_goes_away_ends_it_there", ended),
        ("a_slow_reader_of_much_takes_no_memory", slow),
        (
            "what_drivers_and_pools_say_is_taken_and_the_monitor_may_little",
            said,
        ),
        ("clickhouse_is_asked_over_tls", sealed),
    ])
}

fn login(port: u16) -> Login<'static> {
    Login {
        port,
        user: "clicku",
        password: "clickp",
    }
}

fn come_in(front: &Front) -> Result<Raw, String> {
    Raw::log_in_as(&login(front.port), 0, 0).map_err(|error| error.to_string())
}

/// A11, A12, A13, A14, A15, A16, A18: the proxy is its own server, with one core and one connection,
/// and the monitor finds it there.
fn seed(driver: Driver) -> Outcome {
    let house = ClickHouse::start()?;
    house.ask("CREATE TABLE tablename (id UInt32, created DateTime) ENGINE = Memory")?;
    house.ask("INSERT INTO tablename VALUES (1, '2018-03-05 00:00:00'), (2, '2018-03-07 00:00:00'), (3, '2018-11-01 00:00:00')")?;
    let quick = "monitor_enabled = true\nmonitor_ping_interval = 100\n\
                 monitor_connect_interval = 1000\nmonitor_read_only_interval = 100";
    let mut front = Front::start(driver, &house, quick)?;
    front
        .proxy
        .admin("SET mysql-threads = 1; SAVE MYSQL VARIABLES TO DISK")?;
    front.proxy.restart()?;
    let (proxy, port) = (&front.proxy, front.port);
    proxy.admin(
        "INSERT INTO clickhouse_users (username,password) VALUES ('clicku','clickp');\n\
         LOAD CLICKHOUSE USERS TO RUNTIME;\nSAVE CLICKHOUSE USERS TO DISK;",
    )?;
    proxy.admin(
        "INSERT INTO mysql_users(username,password) SELECT username, password FROM clickhouse_users;\n\
         LOAD MYSQL USERS TO RUNTIME;\nSAVE MYSQL USERS TO DISK;",
    )?;
    proxy.admin(&format!(
        "INSERT INTO mysql_servers(hostname,port,max_connections) VALUES ('127.0.0.1',{port},1);\n\
         SAVE MYSQL SERVERS TO DISK;\nLOAD MYSQL SERVERS TO RUNTIME;"
    ))?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (active,match_pattern,replace_pattern,re_modifiers) VALUES\n\
         (1,\"FROM_UNIXTIME\\(`created`, '%Y-%m'\\)\", 'substring(toString(toDate(created)),1,7)',\"CASELESS,GLOBAL\");\n\
         LOAD MYSQL QUERY RULES TO RUNTIME;\nSAVE MYSQL QUERY RULES TO DISK;",
    )?;
    let asked = "SELECT COUNT(`id`), FROM_UNIXTIME(`created`, '%Y-%m') AS `date` FROM `tablename` GROUP BY FROM_UNIXTIME(`created`, '%Y-%m')";
    for _ in 0..3 {
        let said = command_line(proxy.port, "clicku", "clickp", &[], asked)?;
        let mut rows: Vec<_> = said.lines().collect();
        rows.sort_unstable();
        same(&rows.join("\n"), "1\t2018-11\n2\t2018-03")?;
    }
    // The monitor has looked many times, a minute long where everything is tried, and has nothing
    // against it; nor have clients, meanwhile.
    let looks = if trials::everything() { 600 } else { 50 };
    let mut seen = 0;
    while seen < looks {
        let said = command_line(proxy.port, "clicku", "clickp", &[], asked)?;
        same(&said.lines().count().to_string(), "2")?;
        let sql = format!(
            "SELECT COUNT(*) FROM monitor.mysql_server_ping_log WHERE port = {port} AND ping_error IS NULL"
        );
        seen = proxy.admin(&sql)?.trim().parse().unwrap_or(0);
        same(
            proxy
                .admin("SELECT DISTINCT status FROM runtime_mysql_servers")?
                .trim(),
            "ONLINE",
        )?;
    }
    let lost = proxy
        .admin("SELECT COUNT(*) FROM monitor.mysql_server_ping_log WHERE ping_error IS NOT NULL")?;
    same(lost.trim(), "0")?;
    let log = proxy.log();
    expect(!log.contains("does not answer"), || log.clone())
}

/// Values at the bounds of their types, by the protocol of texts and by that of prepared statements.
fn types(driver: Driver) -> Outcome {
    const VALUES: &[&str] = &[
        "toInt8(-128), toInt8(127), toUInt8(255)",
        "toInt16(-32768), toUInt16(65535)",
        "toInt32(-2147483648), toUInt32(4294967295)",
        "toInt64('-9223372036854775808'), toUInt64('18446744073709551615')",
        "toFloat32(0.1), toFloat64(-1.5), toFloat64(1e300)",
        "toDecimal32('-0.001', 3), toDecimal64('99.99', 2), toDecimal128('12345678901234567890123456.789', 3)",
        "toDate('1970-01-02'), toDate('2105-12-31')",
        "toDateTime('1970-01-01 00:00:01', 'UTC'), toDateTime('2018-06-26 10:00:00', 'Europe/Berlin')",
        "'it''s', 'Ärger', ''",
        "toFixedString('abc', 3), toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')",
        "CAST('b' AS Enum8('a' = -1, 'b' = 2)), CAST('x' AS Enum16('x' = 1000))",
        "NULL, toNullable(7), CAST(NULL AS Nullable(String))",
        "toLowCardinality('low'), toLowCardinality(toNullable('x'))",
    ];
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    let mut raw = come_in(&front)?;
    for values in VALUES {
        let sql = format!("SELECT {values}");
        let theirs = house
            .ask(&sql)?
            .trim_end_matches('\n')
            .replace("\\N", "NULL")
            .replace("\\'", "'");
        same(front.ask(&sql)?.trim_end_matches('\n'), &theirs)
            .map_err(|why| format!("{sql}: {why}"))?;
        let rows = raw.ask(&sql).map_err(|error| error.to_string())?;
        same(&rows.concat().join("\t"), &theirs).map_err(|why| format!("{sql}: {why}"))?;
    }
    same(
        front
            .ask("SELECT [1, 2], [toNullable('a\"b'), NULL], (1, 'x')")?
            .trim(),
        "[1,2]\t[\"a\\\\\"b\",null]\t[1,\"x\"]",
    )?;
    // Bytes that are no text come as they are.
    same(
        front
            .ask("SELECT hex(unhex('FF00')), length(unhex('FF00'))")?
            .trim(),
        "FF00\t2",
    )?;
    let bytes = raw
        .ask("SELECT unhex('FFFE')")
        .map_err(|error| error.to_string())?;
    expect(bytes.len() == 1, || format!("{bytes:?}"))?;
    // No rows have columns, too.
    let names = command_line(
        front.port,
        "clicku",
        "clickp",
        &["--table", "--column-names"],
        "SELECT 1 AS a WHERE 0",
    );
    expect(names.is_ok(), || format!("{names:?}"))?;
    let said = front.ask("SET time_zone = 'Europe/Berlin'; SELECT toDateTime(1530000000)")?;
    same(said.trim(), "2018-06-26 10:00:00")
}

/// Types of a current engine that Debian's server does not have yet.
fn current(driver: Driver) -> Outcome {
    const VALUES: &[(&str, &str)] = &[
        (
            "toInt128('-170141183460469231731687303715884105728')",
            "-170141183460469231731687303715884105728",
        ),
        (
            "toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935')",
            "115792089237316195423570985008687907853269984665640564039457584007913129639935",
        ),
        (
            "toDecimal256('-1.000000000000000000000000000001', 30), true",
            "-1.000000000000000000000000000001\t1",
        ),
        (
            "toDate32('1900-01-01'), toDate32('2299-12-31')",
            "1900-01-01\t2299-12-31",
        ),
        (
            "toDateTime64('1969-12-31 23:59:59.999', 3, 'UTC')",
            "1969-12-31 23:59:59.999",
        ),
        (
            "toDateTime64('2020-01-02 03:04:05.123456789', 9, 'Asia/Tokyo')",
            "2020-01-02 03:04:05.123456789",
        ),
        (
            "toIPv4('127.0.0.1'), toIPv6('2001:db8::ff')",
            "127.0.0.1\t2001:db8::ff",
        ),
        (
            "map('a', 1, 'b', 2), CAST((1, 'x') AS Tuple(a UInt8, b String))",
            "{\"a\":1,\"b\":2}\t{\"a\":1,\"b\":\"x\"}",
        ),
        (
            "CAST(['a', NULL, 'a'] AS Array(LowCardinality(Nullable(String))))",
            "[\"a\",null,\"a\"]",
        ),
        (
            "toLowCardinality(toNullable('x')), toDateTime('2018-06-26 10:00:00', 'Europe/Berlin')",
            "x\t2018-06-26 10:00:00",
        ),
        (
            "'{\"a\":1}'::JSON SETTINGS output_format_native_write_json_as_string = 1",
            "{\"a\":1}",
        ),
        ("'{\"a\":1}'::JSON", "{\"a\":1}"),
    ];
    let (port, front) = Engine::front(driver)?;
    let Some(_engine) = Engine::start(port, &front)? else {
        return Ok(());
    };
    for (values, wanted) in VALUES {
        let said = front
            .ask(&format!("SELECT {values}"))
            .map_err(|why| format!("{values}: {why}"))?;
        same(&said, wanted).map_err(|why| format!("{values}: {why}"))?;
    }
    let refused = front.ask("SELECT sumState(number) FROM numbers(3)");
    expect(
        matches!(&refused, Err(words) if words.contains("convert it")),
        || format!("{refused:?}"),
    )
}

/// Checks what these clients read; only the form of a truth, of bytes and of nothing is their
/// language's.
fn clients(driver: Driver) -> Outcome {
    const SQL: &str = "SELECT toInt8(-128), toUInt64('18446744073709551615'), toDecimal64('-99.99', 2), toDate('2105-12-31'), \
         toDateTime('2018-06-26 10:00:00', 'Europe/Berlin'), toFloat32(0.5), 'Ärger', CAST(NULL AS Nullable(Int32)), [1, 2], \
         CAST('b' AS Enum8('a' = -1, 'b' = 2))";
    const READ: &str =
        "-128|18446744073709551615|-99.99|2105-12-31|2018-06-26 10:00:00|0.5|Ärger|null|[1,2]|b";
    const PYTHON: &str = "import pymysql, mysql.connector, sys\n\
         as_whom = dict(host='127.0.0.1', port=int(sys.argv[1]), user='clicku', password='clickp', database='default')\n\
         show = lambda row: '|'.join('null' if cell is None else str(cell) for cell in row)\n\
         one = pymysql.connect(**as_whom, charset='utf8mb4').cursor()\n\
         one.execute(sys.argv[2])\n\
         print(show(one.fetchone()))\n\
         for prepared in (False, True):\n\
         \x20   conn = mysql.connector.connect(**as_whom, use_pure=True)\n\
         \x20   two = conn.cursor(prepared=prepared)\n\
         \x20   two.execute(sys.argv[2])\n\
         \x20   print(show(two.fetchone()))\n";
    const JAVA: &str = "import java.sql.*;\n\
         public class Reads { public static void main(String[] a) throws Exception {\n\
         for (String more : new String[] {\"\", \"&useServerPrepStmts=true\"}) {\n\
         String url = \"jdbc:mysql://127.0.0.1:\" + a[0] + \"/default?user=clicku&password=clickp&sslMode=DISABLED\" + more;\n\
         try (Connection c = DriverManager.getConnection(url); PreparedStatement s = c.prepareStatement(a[1]); ResultSet r = s.executeQuery()) {\n\
         r.next(); StringBuilder out = new StringBuilder();\n\
         for (int i = 1; i <= r.getMetaData().getColumnCount(); i++) out.append(i > 1 ? \"|\" : \"\").append(r.getString(i));\n\
         new java.io.PrintStream(System.out, true, \"UTF-8\").println(out); } } } }\n";
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    let port = front.port.to_string();
    let run = |client: &str, command: &dyn Fn(&str) -> Command| -> Outcome {
        let script = conformance::cache::root().join("scripts/clients.sh");
        let (fine, folder) = output(Command::new(script).arg(client), HANGS)?;
        if !fine {
            eprintln!("SKIPPED: {client}: {folder}");
            return Ok(());
        }
        let (fine, said) = output(&mut command(folder.trim()), HANGS)?;
        let rows: Vec<_> = said.lines().collect();
        let same = fine && rows.len() > 1 && rows.iter().all(|row| *row == READ);
        expect(same, || format!("{client}: {said}"))
    };
    run("python", &|folder| {
        let mut command = Command::new(format!("{folder}/venv/bin/python"));
        command.env("PYTHONIOENCODING", "utf-8");
        command.args(["-c", PYTHON, &port, SQL]);
        command
    })?;
    let source = front.proxy.data().join("Reads.java");
    std::fs::write(&source, JAVA).map_err(|error| error.to_string())?;
    run("java", &|folder| {
        let mut command = Command::new("java");
        command.args(["-Dfile.encoding=UTF-8", "-Dsun.jnu.encoding=UTF-8", "-cp"]);
        command
            .env("LC_ALL", "C.UTF-8")
            .arg(format!("{folder}/lib/*"));
        command.arg(&source).args([&port, SQL]);
        command
    })
}

/// Rows that are written one way are read the other.
fn written(driver: Driver) -> Outcome {
    use mysql_async::prelude::Queryable as _;
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    front.ask(
        "CREATE TABLE w (a Int64, s String, d DateTime, f Float64) ENGINE = MergeTree ORDER BY a",
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let done: Result<_, mysql_async::Error> = runtime.block_on(async {
        let options = conformance::library::options(front.port).user(Some("clicku")).pass(Some("clickp")).db_name(Some("default"));
        let mut conn = mysql_async::Conn::new(options).await?;
        let rows = [(-1_i64, "it's \\ \0 ?", "2020-01-02 03:04:05", 0.5_f64), (2, "Ärger", "2020-01-02 03:04:06", -1e100)];
        for row in rows {
            conn.exec_drop("INSERT INTO w VALUES (?, ?, ?, ?)", row).await?;
        }
        let read: Vec<(i64, String, String, f64)> = conn
            .exec("SELECT a, s, toString(d), f FROM w WHERE a >= ? AND s != ? ORDER BY a", (-1, "none"))
            .await?;
        let nobody: Vec<i64> = conn.exec("SELECT a FROM w WHERE s = ?", ("none",)).await?;
        conn.query_drop("INSERT INTO w VALUES (3, 'a', '2020-01-01 00:00:00', 1), (4, 'b;', '2020-01-01 00:00:00', 2)").await?;
        let affected = conn.affected_rows();
        conn.disconnect().await?;
        Ok((read, nobody, affected))
    });
    let (read, nobody, affected) = done.map_err(|error| error.to_string())?;
    same(
        &format!("{read:?}"),
        "[(-1, \"it's \\\\ \\0 ?\", \"2020-01-02 03:04:05\", 0.5), (2, \"Ärger\", \"2020-01-02 03:04:06\", -1e100)]",
    )?;
    same(&format!("{nobody:?} {affected}"), "[] 2")?;
    front.ask("INSERT INTO w SELECT a + 10, s, d, f FROM w")?;
    same(front.ask("SELECT count() FROM w")?.trim(), "8")?;
    let file = front.proxy.data().join("rows.csv");
    std::fs::write(
        &file,
        "a,s,d,f\n20,\"x,y\",2020-01-01 00:00:00,1.5\n21,,2020-01-01 00:00:00,2\n",
    )
    .map_err(|error| error.to_string())?;
    let load = |more: &str| {
        let sql = format!(
            "LOAD DATA LOCAL INFILE '{}' INTO TABLE w FIELDS TERMINATED BY ',' ENCLOSED BY '\"' {more}",
            file.display()
        );
        command_line(front.port, "clicku", "clickp", &["--local-infile=1"], &sql)
    };
    load("IGNORE 1 LINES (a, s, d, f)")?;
    same(
        &front.ask("SELECT a, s, f FROM w WHERE a IN (20, 21) ORDER BY a")?,
        "20\tx,y\t1.5\n21\t\t2",
    )?;
    let refused = load("(a, nosuch)");
    expect(refused.is_err(), || "a column that is not there".to_owned())?;
    front.ask("ALTER TABLE w DROP PARTITION tuple()")?;
    front.ask("INSERT INTO w (a) SELECT number FROM system.numbers LIMIT 8")?;
    let read_only = front
        .proxy
        .admin("SET clickhouse-read_only = 1; LOAD CLICKHOUSE VARIABLES TO RUNTIME");
    expect(read_only.is_ok(), || format!("{read_only:?}"))?;
    let refused = front.ask("INSERT INTO w SELECT a, s, d, f FROM w");
    expect(
        matches!(&refused, Err(words) if words.contains("ERROR 1290")),
        || format!("{refused:?}"),
    )?;
    same(front.ask("SELECT count() FROM w")?.trim(), "8")
}

/// Statements as an application says them to a MariaDB, and through the rules to a ClickHouse with the
/// same rows.
fn rewritten(driver: Driver) -> Outcome {
    const ROWS: &str = "(1, '2018-03-05 01:02:03', 'Anna', 7), (2, '2018-03-04 23:59:59', ' b ', -7), (3, '2019-12-31 12:00:00', '', 0)";
    const ASKED: &[&str] = &[
        "SELECT id, FROM_UNIXTIME(UNIX_TIMESTAMP(created), '%Y-%m-%d') FROM r ORDER BY id",
        "SELECT id, FROM_UNIXTIME(UNIX_TIMESTAMP(created)) FROM r ORDER BY id",
        "SELECT DATE_FORMAT(created, '%Y-%m') AS m, COUNT(*) FROM r GROUP BY DATE_FORMAT(created, '%Y-%m') ORDER BY m",
        "SELECT date_format(created, '%Y-%m-%d %H:%i:%s'), DATE_FORMAT(created, '%H:%i') FROM r ORDER BY id",
        "SELECT YEAR(created), MONTH(created), DAY(created), HOUR(created), MINUTE(created), SECOND(created), QUARTER(created) FROM r ORDER BY id",
        "SELECT DATE(created), DAYOFWEEK(created), WEEKDAY(created) FROM r ORDER BY id",
        "SELECT DATEDIFF(created, '2018-01-01') FROM r WHERE DATEDIFF(DATE(created), '2018-03-01') > 3 ORDER BY id",
        "SELECT DATE_ADD(created, INTERVAL 1 DAY), DATE_SUB(created, INTERVAL 2 HOUR) FROM r ORDER BY id",
        "SELECT IFNULL(NULLIF(s, ''), 'none'), GROUP_CONCAT(id) FROM r GROUP BY s ORDER BY s",
        "SELECT GROUP_CONCAT(id SEPARATOR '; ') FROM r WHERE id < 3",
        "SELECT ABS(n), GREATEST(n, 1), LEAST(n, 1), MOD(n, 4) FROM r ORDER BY id",
        "SELECT LOCATE('n', s), LEFT(s, 2), RIGHT(s, 2), CONCAT('<', TRIM(s), '>'), UPPER(s) FROM r ORDER BY id",
        "SELECT MAX(ABS(n)), YEAR(FROM_UNIXTIME(1530000000)) FROM r",
    ];
    let house = ClickHouse::start()?;
    let maria = Server::start(Vendor::MariaDb)?;
    maria.root(&format!(
        "SET GLOBAL time_zone = '+00:00'; CREATE TABLE conf.r (id INT, created DATETIME, s VARCHAR(20), n INT); INSERT INTO conf.r VALUES {ROWS}"
    ))?;
    house.ask("CREATE TABLE r (id Int32, created DateTime, s String, n Int32) ENGINE = Memory")?;
    house.ask(&format!("INSERT INTO r VALUES {ROWS}"))?;
    let front = Front::with_user(driver, &house)?;
    let rules =
        std::fs::read_to_string(conformance::cache::root().join("etc/clickhouse-rules.sql"));
    let rules = rules.map_err(|error| error.to_string())?;
    front.proxy.admin(&format!(
        "INSERT INTO mysql_users(username,password) SELECT username, password FROM clickhouse_users; LOAD MYSQL USERS TO RUNTIME; \
         INSERT INTO mysql_servers(hostname,port) VALUES ('127.0.0.1',{}); LOAD MYSQL SERVERS TO RUNTIME; \
         INSERT INTO mysql_query_rules (rule_id, active, username, flagOUT) VALUES (6000, 1, 'clicku', 6090); {rules}",
        front.port
    ))?;
    let mut differences = String::new();
    for sql in ASKED {
        let theirs = command_line(maria.port, "app", "secret", &["conf"], sql)?;
        match command_line(front.proxy.port, "clicku", "clickp", &[], sql) {
            Ok(ours) if ours == theirs => {}
            other => differences += &format!("{sql}\n  wanted {theirs:?}\n  found {other:?}\n"),
        }
    }
    expect(differences.is_empty(), || differences)
}

/// An error behind rows, and an end that is none.
fn broken(driver: Driver) -> Outcome {
    let mut house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    let refused = front.ask("SELECT nosuch FROM system.one");
    expect(
        matches!(&refused, Err(words) if words.contains("ERROR 1054") && words.contains("ClickHouse 47")),
        || format!("{refused:?}"),
    )?;
    let mut raw = come_in(&front)?;
    raw.query("SELECT number, throwIf(number = 3000000) FROM system.numbers LIMIT 4000000")
        .map_err(|error| error.to_string())?;
    let mut rows = 0_u64;
    let ended = raw.each_row(|_| rows += 1);
    let words = ended
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    expect(words.contains("ClickHouse 395"), || {
        format!("{rows} rows, then {words:?}")
    })?;
    // The session goes on.
    let rows = raw.ask("SELECT 7").map_err(|error| error.to_string())?;
    same(&rows.concat().concat(), "7")?;
    raw.query("SELECT number FROM system.numbers")
        .map_err(|error| error.to_string())?;
    let mut seen = 0_u64;
    let ended = raw.each_row(|_| {
        seen += 1;
        if seen == 100_000 {
            house.kill();
        }
    });
    let words = ended
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    expect(words.contains("ClickHouse is lost"), || {
        format!("{seen} rows, then {words:?}")
    })?;
    let refused = front.ask("SELECT 1");
    expect(
        matches!(&refused, Err(words) if words.contains("ERROR 1429")),
        || format!("{refused:?}"),
    )
}

/// KILL QUERY, KILL, and a client that is gone: nothing runs there any more.
fn ended(driver: Driver) -> Outcome {
    const LONG: &str = "SELECT count() FROM system.numbers WHERE NOT ignore(number)";
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    let mut raw = come_in(&front)?;
    raw.query(LONG).map_err(|error| error.to_string())?;
    soon("1", || house.running())?;
    front.ask(&format!("KILL QUERY {}", raw.id))?;
    let words = raw
        .packet()
        .map(|packet| String::from_utf8_lossy(&packet).into_owned());
    expect(
        matches!(&words, Ok(words) if words.contains("interrupted")),
        || format!("{words:?}"),
    )?;
    soon("0", || house.running())?;
    let rows = raw.ask("SELECT 7").map_err(|error| error.to_string())?;
    same(&rows.concat().concat(), "7")?;
    raw.query(LONG).map_err(|error| error.to_string())?;
    soon("1", || house.running())?;
    front.ask(&format!("KILL {}", raw.id))?;
    expect(raw.packet().is_err(), || {
        "a killed client has an answer".to_owned()
    })?;
    soon("0", || house.running())?;
    // One who does not read can be killed, too.
    let mut still = come_in(&front)?;
    still
        .query("SELECT number FROM system.numbers")
        .map_err(|error| error.to_string())?;
    soon("1", || house.running())?;
    front.ask(&format!("KILL {}", still.id))?;
    soon("0", || house.running())?;
    let mut gone = come_in(&front)?;
    gone.query(LONG).map_err(|error| error.to_string())?;
    soon("1", || house.running())?;
    drop(gone);
    soon("0", || house.running())
}

/// A result of hundreds of megabytes, read with pauses, in less memory than a tenth of it.
fn slow(driver: Driver) -> Outcome {
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    front.ask("SELECT 1")?;
    let before = resident_kib(front.proxy.id());
    let mut raw = come_in(&front)?;
    raw.query("SELECT number, concat('row of some length, number ', toString(number)) FROM system.numbers LIMIT 3000000")
        .map_err(|error| error.to_string())?;
    let (mut rows, mut most) = (0_u64, 0);
    raw.each_row(|_| {
        rows += 1;
        if rows % 300_000 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            most = most.max(resident_kib(front.proxy.id()));
        }
    })
    .map_err(|error| error.to_string())?;
    same(&rows.to_string(), "3000000")?;
    expect(most < before + 30_000, || {
        format!("{before} KiB, then {most}")
    })
}

/// Checks the answers to what is no statement of ClickHouse's.
fn said(driver: Driver) -> Outcome {
    let house = ClickHouse::start()?;
    let front = Front::with_user(driver, &house)?;
    front.ask("CREATE TABLE t (a UInt8, b Nullable(String)) ENGINE = MergeTree ORDER BY a")?;
    for (sql, wanted) in [
        (
            "SELECT @@version_comment LIMIT 1",
            "ClickHouse behind Millrace",
        ),
        (
            "SET NAMES utf8mb4; SET autocommit=1; SET sql_mode='ANSI'; SELECT @@sql_mode",
            "ANSI",
        ),
        (
            "SHOW VARIABLES LIKE 'lower_case%'",
            "lower_case_table_names\t0",
        ),
        ("SHOW TABLES", "t"),
        ("SHOW FULL TABLES FROM `default`", "t\tBASE TABLE"),
        (
            "SHOW COLUMNS FROM t",
            "a\ttinyint unsigned\tNO\t\tNULL\t\nb\tvarchar(65535)\tYES\t\tNULL",
        ),
        (
            "SELECT TABLE_NAME FROM information_schema.tables WHERE TABLE_SCHEMA = 'default'",
            "t",
        ),
        ("USE information_schema; SELECT DATABASE()", "default"),
        (
            "SET max_threads = 1; SELECT value FROM system.settings WHERE name = 'max_threads'",
            "1",
        ),
        (
            "SET max_execution_time = 2500; SELECT value FROM system.settings WHERE name = 'max_execution_time'",
            "3",
        ),
        (
            "SET wait_timeout = 100; START TRANSACTION; COMMIT; SELECT 1",
            "1",
        ),
        (
            "BEGIN; INSERT INTO t VALUES (1, NULL); ROLLBACK; SHOW WARNINGS",
            "Warning\t1196\tSome non-transactional changed tables couldn't be rolled back",
        ),
        (
            "SHOW CREATE TABLE t",
            "t\tCREATE TABLE `t` (\\n  `a` tinyint unsigned NOT NULL,",
        ),
    ] {
        let said = front.ask(sql).map_err(|why| format!("{sql}: {why}"))?;
        expect(said.trim().starts_with(wanted), || {
            format!("{sql}: {said:?}")
        })?;
    }
    let refused = front.ask("SET nosuch = 1");
    expect(
        matches!(&refused, Err(words) if words.contains("ERROR 1193")),
        || format!("{refused:?}"),
    )?;
    let mut raw = come_in(&front)?;
    raw.command(&[0x1f]).map_err(|error| error.to_string())?;
    expect(raw.packet().is_ok_and(|packet| packet[0] == 0), || {
        "COM_RESET_CONNECTION".to_owned()
    })?;
    let monitor = |sql: &str| command_line(front.port, "monitor", "monitor", &[], sql);
    same(
        monitor(
            "SET wait_timeout = 10; SELECT @@read_only; SHOW REPLICA STATUS; SHOW SLAVE STATUS",
        )?
        .trim(),
        "0",
    )?;
    expect(monitor("SELECT 1").is_err(), || {
        "the monitor may ask ClickHouse".to_owned()
    })?;
    expect(
        command_line(front.port, "clicku", "wrong", &[], "SELECT 1").is_err(),
        || "a wrong password".to_owned(),
    )?;
    // A user's own settings, and the door says what it is.
    front.proxy.admin(
        "INSERT INTO clickhouse_user_settings (username, settings, max_rows) VALUES ('clicku', '{\"max_threads\": 2}', 10); \
         LOAD CLICKHOUSE USERS TO RUNTIME",
    )?;
    same(
        front
            .ask("SELECT value FROM system.settings WHERE name = 'max_threads'")?
            .trim(),
        "2",
    )?;
    let refused = front.ask("SELECT number FROM system.numbers LIMIT 100");
    expect(
        matches!(&refused, Err(words) if words.contains("ClickHouse 396")),
        || format!("{refused:?}"),
    )
}

/// Asks a port of HTTPS, with the right authority, another one, and none.
fn sealed(driver: Driver) -> Outcome {
    let (house, other) = (ClickHouse::with_tls()?, ClickHouse::with_tls()?);
    let front = Front::to(driver, house.https, "")?;
    front.let_in()?;
    let set = |values: &str| {
        let loaded = format!("{values}; LOAD CLICKHOUSE VARIABLES TO RUNTIME");
        front.proxy.admin(&loaded)
    };
    let refused = |words: &str| {
        let said = front.ask("SELECT 7");
        let found = |said: &str| said.contains("ERROR 1429") && said.contains(words);
        expect(matches!(&said, Err(said) if found(said)), || {
            format!("wanted {words:?}, found {said:?}")
        })
    };
    let ca = |of: &ClickHouse| format!("SET clickhouse-tls_ca = '{}'", of.authority().display());
    // That port understands nothing but TLS.
    expect(front.ask("SELECT 7").is_err(), || "no TLS".to_owned())?;
    set("SET clickhouse-tls = true")?;
    same(&front.ask("SELECT 7")?, "7")?;
    set(&ca(&house))?;
    same(&front.ask("SELECT 7")?, "7")?;
    sealed_traffic(&front, &house)?;
    set(&ca(&other))?;
    refused("the certificate is refused: ")?;
    set(&format!(
        "{}; SET clickhouse-hostname = '127.0.0.2'",
        ca(&house)
    ))?;
    refused("the certificate is refused: IP address mismatch")?;
    set("SET clickhouse-hostname = 'localhost'")?;
    same(&front.ask("SELECT 7")?, "7")?;
    set("SET clickhouse-tls_ca = '/nosuch/ca.pem'")?;
    refused("the file of authorities '/nosuch/ca.pem' cannot be used: No such file or directory")?;
    // ClickHouse's own port for HTTP answers a TLS greeting only if there is an end of a line in its random bytes.
    let plain = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = plain
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    std::thread::spawn(move || {
        for mut client in plain.incoming().flatten() {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    set(&format!(
        "{}; SET clickhouse-http_port = {port}",
        ca(&house)
    ))?;
    refused("the other side does not speak TLS")
}

/// Rows both ways through TLS, and the end of a statement that a KILL asks for.
fn sealed_traffic(front: &Front, house: &ClickHouse) -> Outcome {
    const ROWS: u64 = 300_000;
    front.ask("CREATE TABLE s (a UInt64, b String) ENGINE = Memory")?;
    let rows = (0..20_000_u64).map(|row| format!("({row}, 'row {row}')"));
    let insert = format!(
        "INSERT INTO s VALUES {}",
        rows.collect::<Vec<_>>().join(", ")
    );
    let mut raw = come_in(front)?;
    let failed = |error: std::io::Error| error.to_string();
    raw.query(&insert).map_err(failed)?;
    let done = raw.packet().map_err(failed)?;
    expect(done[0] == 0, || String::from_utf8_lossy(&done).into_owned())?;
    same(
        &front.ask("SELECT count(), sum(a), uniqExact(b) FROM s")?,
        "20000\t199990000\t20000",
    )?;
    raw.query(&format!(
        "SELECT number, concat('of ', toString(number)) FROM system.numbers LIMIT {ROWS}"
    ))
    .map_err(failed)?;
    let mut rows = 0;
    raw.each_row(|_| rows += 1).map_err(failed)?;
    same(&rows.to_string(), &ROWS.to_string())?;
    raw.query("SELECT count() FROM system.numbers WHERE NOT ignore(number)")
        .map_err(failed)?;
    soon("1", || house.running())?;
    front.ask(&format!("KILL {}", raw.id))?;
    soon("0", || house.running())
}
