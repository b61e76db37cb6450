//! What ProxySQL 2.7.1 answered, replayed: the same, or a difference that is named here and in
//! docs/compatibility.md.

use crate::engine::{Reply, View};
use crate::open::Options;
use crate::said::Said;
use crate::tables;
use crate::testing::{self, Bench, Directory};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const COMMANDS: &str = include_str!("../../tests/golden/commands_and_errors.txt");
const SHOWS: &str = include_str!("../../tests/golden/show_and_select.txt");
const STATS_USER: &str = include_str!("../../tests/golden/stats_user.txt");

/// Statements that are answered differently on purpose: what ours begins with, and why. Each has
/// its line in docs/compatibility.md.
const DIFFERENT: &[(&str, &str, &str)] = &[
    (
        "SHOW TABLES LIKE '%rules%'",
        "columns [\"tables\"]\nrows 6\nmysql_firewall",
        "lists of tables are always sorted",
    ),
    (
        "SHOW TABLES FROM stats LIKE '%digest%'",
        "columns [\"tables\"]\nrows 2",
        "a schema may be named together with a pattern",
    ),
    (
        "SHOW GLOBAL VARIABLES LIKE 'mysql-max%'",
        "columns [\"Variable_name\", \"Value\"]\nrows 6",
        "GLOBAL is understood",
    ),
    (
        "SHOW ALL VARIABLES",
        "columns [\"Variable_name\", \"Value\"]\nrows 2",
        "variables of our own",
    ),
    (
        "SHOW VARIABLES",
        "columns [\"Variable_name\", \"Value\"]\nrows 2",
        "variables of our own",
    ),
    (
        "show variables",
        "columns [\"Variable_name\", \"Value\"]\nrows 2",
        "variables of our own",
    ),
    (
        "SHOW MYSQL VARIABLES",
        "columns [\"Variable_name\", \"Value\"]\nrows 2",
        "variables of our own",
    ),
    (
        "SAVE MYSQL VARIABLES TO DISK",
        "OK affected=2",
        "variables of our own",
    ),
    (
        "SHOW ADMIN VARIABLES",
        "columns [\"Variable_name\", \"Value\"]\nrows 6",
        "variables of our own",
    ),
    (
        "SAVE ADMIN VARIABLES TO DISK",
        "OK affected=6",
        "variables of our own",
    ),
    (
        "SHOW MYSQL STATUS",
        "columns [\"Variable_name\", \"Value\"]\nrows 1",
        "counters of our own",
    ),
    (
        "LOAD CLICKHOUSE USERS TO RUNTIME",
        "OK affected=0",
        "the tables exist without --clickhouse-server, and so do their commands",
    ),
    (
        "SHOW PROMETHEUS METRICS",
        "columns [\"Data\"]\nrows 1",
        "metrics of our own",
    ),
    (
        "SHOW CHARSET",
        "columns [\"Charset\", \"Default collation\"]\nrows 41",
        "the collations of MySQL 8 and MariaDB, with the right defaults",
    ),
    (
        "SHOW COLLATION",
        "columns [\"Id\", \"Collation\", \"Charset\", \"Default\"]\nrows 1309",
        "the collations of MySQL 8 and MariaDB",
    ),
    (
        "SHOW COLUMNS FROM mysql_servers",
        "columns [\"Field\"",
        "as SHOW FIELDS, which dump tools need",
    ),
    (
        "SELECT CONCAT(@@version, ' ', @@version_comment)",
        "columns [\":version || ' Admin Module'\"]",
        "the column has another name",
    ),
    (
        "SELECT @@global.mysql-max_connections",
        "columns [\"@@global.mysql-max_connections\"]\nrows 1\n10000",
        "a scope is understood",
    ),
    (
        "USE nosuch",
        "ERROR 1049 28000 ProxySQL Admin Error: Unknown database 'nosuch'",
        "an unknown schema is an error",
    ),
    (
        "SHOW WARNINGS",
        "columns [\"Level\", \"Code\", \"Message\"]\nrows 0",
        "graphical tools ask it",
    ),
    (
        "SHOW ERRORS",
        "columns [\"Level\", \"Code\", \"Message\"]\nrows 0",
        "graphical tools ask it",
    ),
    (
        "SHOW FULL TABLES FROM main",
        "columns [\"Tables_in_main\", \"Table_type\"]",
        "graphical tools ask it",
    ),
    (
        "SHOW TABLE STATUS",
        "columns [\"Name\", \"Engine\"",
        "graphical tools ask it",
    ),
    (
        "SHOW STATUS",
        "columns [\"Variable_name\", \"Value\"]\nrows 1",
        "graphical tools ask it",
    ),
    (
        "SHOW GLOBAL STATUS",
        "columns [\"Variable_name\", \"Value\"]\nrows 1",
        "graphical tools ask it",
    ),
    (
        "SHOW ENGINES",
        "columns [\"Engine\"",
        "graphical tools ask it",
    ),
    (
        "SHOW INDEX FROM mysql_servers",
        "columns [\"Table\"",
        "graphical tools ask it",
    ),
    (
        "DESCRIBE mysql_servers",
        "columns [\"Field\"",
        "graphical tools ask it",
    ),
    (
        "DESC mysql_servers",
        "columns [\"Field\"",
        "graphical tools ask it",
    ),
    (
        "KILL QUERY 999999",
        "ERROR 1045 28000 ProxySQL Admin Error: Unknown thread id",
        "as on the traffic port",
    ),
    (
        "KILL 999999",
        "ERROR 1045 28000 ProxySQL Admin Error: Unknown thread id",
        "as on the traffic port",
    ),
    (
        ";",
        "ERROR 1045 28000 ProxySQL Admin Error: not an error",
        "a lone ; is an empty statement",
    ),
    (
        "SELECT CONFIG INTO OUTFILE DATADIR/out.cnf",
        "OK affected=8",
        "other comments in the file",
    ),
    (
        "SELECT CONFIG FILE",
        "columns [\"Data\"]\nrows 1\n# Written by Millrace",
        "other comments in the file",
    ),
    (
        "LOAD MYSQL VARIABLES TO RUNTIME",
        "OK affected=0 mysql-threads takes effect at the next start",
        "the answer says what a LOAD does not change yet",
    ),
    (
        "LOAD MYSQL VARIABLES TO RUNTIME",
        "ERROR 1045 28000 ProxySQL Admin Error: MYSQL VARIABLES not loaded",
        "bad values and unknown names are refused with every reason",
    ),
    (
        "SELECT variable_value FROM global_variables WHERE variable_name='mysql-max_connections'",
        "columns [\"variable_value\"]\nrows 1\n-1",
        "what was refused stays in memory, to be corrected",
    ),
    (
        "SELECT variable_value FROM global_variables WHERE variable_name='mysql-poll_timeout'",
        "columns [\"variable_value\"]\nrows 1\nzzz",
        "what was refused stays in memory, to be corrected",
    ),
    (
        "SELECT * FROM global_variables WHERE variable_name='mysql-nosuch'",
        "columns [\"variable_name\", \"variable_value\"]\nrows 1",
        "what was refused stays in memory, to be corrected",
    ),
    (
        "DELETE FROM global_variables WHERE variable_name IN ('mysql-nosuch','nosuch-x')",
        "OK affected=2",
        "what was refused stays in memory, to be corrected",
    ),
    (
        "LOAD MYSQL QUERY RULES TO RUNTIME",
        "ERROR 1045 28000 ProxySQL Admin Error: MYSQL QUERY RULES not loaded",
        "a pattern that is no expression is refused",
    ),
    (
        "SELECT rule_id FROM runtime_mysql_query_rules",
        "columns [\"rule_id\"]\nrows 0",
        "a pattern that is no expression is refused",
    ),
    (
        "DROP TABLE mysql_servers",
        "ERROR 1045 28000 ProxySQL Admin Error: table mysql_servers may not be dropped",
        "tables of the proxy cannot be dropped",
    ),
    (
        "ATTACH DATABASE 'FILE' AS y",
        "ERROR 1045 28000 ProxySQL Admin Error: ATTACH is not allowed",
        "other files are out of reach",
    ),
    (
        "CHECKSUM MYSQL VARIABLES",
        "columns [\"table\", \"checksum\"]\nrows 1\nMYSQL VARIABLES\t0x",
        "another value",
    ),
    (
        "VACUUM",
        "OK affected=0",
        "affected rows are those of the statement itself",
    ),
    (
        "SELECT 1",
        "columns [\"1\"]",
        "ProxySQL hangs after PROXYSQL STOP",
    ),
    (
        "SELECT CONCAT('a','b')",
        "columns [\"CONCAT('a','b')\"]\nrows 1\nab",
        "a newer SQLite",
    ),
    (
        "SELECT IF(1,2,3)",
        "columns [\"IF(1,2,3)\"]\nrows 1\n2",
        "a newer SQLite",
    ),
    (
        "SELECT sqlite_version()",
        "columns [\"sqlite_version()\"]\nrows 1\n3.",
        "a newer SQLite",
    ),
    (
        "SELECT * FROM stats_mysql_global LIMIT 2",
        "columns [\"Variable_Name\", \"Variable_Value\"]\nrows 2\nProxySQL_Uptime\t",
        "a younger process",
    ),
    (
        "SHOW VARIABLES LIKE 'mysql-max%'",
        "columns [\"Variable_name\", \"Value\"]\nrows 1\nmysql-max_allowed_packet\t67108864",
        "the statistics user sees the value in force",
    ),
    (
        "SHOW MYSQL QUERY RULES",
        "columns [\"rule_id\"",
        "many guess that it is there",
    ),
    (
        "LOAD LDAP VARIABLES TO RUNTIME",
        "ERROR 1045 28000 ProxySQL Admin Error: LDAP is a plugin",
        "a reason is told",
    ),
    (
        "LOAD MYSQL LDAP MAPPING TO RUNTIME",
        "ERROR 1045 28000 ProxySQL Admin Error: LDAP is a plugin",
        "a reason is told",
    ),
    (
        "LOAD DEBUG TO RUNTIME",
        "ERROR 1045 28000 ProxySQL Admin Error: DEBUG is in",
        "a reason is told",
    ),
    (
        "SAVE DEBUG TO DISK",
        "ERROR 1045 28000 ProxySQL Admin Error: DEBUG is in",
        "a reason is told",
    ),
    (
        "LOAD PGSQL SERVERS TO RUNTIME",
        "ERROR 1045 28000 ProxySQL Admin Error: Millrace does not speak",
        "a reason is told",
    ),
    (
        "CHECKSUM TABLE mysql_servers",
        "ERROR 1045 28000 ProxySQL Admin Error: use CHECKSUM",
        "the form is told",
    ),
    (
        "CHECKSUM ADMIN VARIABLES",
        "ERROR 1045 28000 ProxySQL Admin Error: use CHECKSUM",
        "the form is told",
    ),
    (
        "CHECKSUM BOGUS",
        "ERROR 1045 28000 ProxySQL Admin Error: use CHECKSUM",
        "the form is told",
    ),
    (
        "SELECT NOW() > 0",
        "columns [\"NOW() > 0\"]\nrows 1\n1",
        "functions of MySQL's that scripts use",
    ),
    (
        "SELECT UNIX_TIMESTAMP() > 0",
        "columns [\"UNIX_TIMESTAMP() > 0\"]\nrows 1\n1",
        "functions of MySQL's that scripts use",
    ),
    (
        "SELECT LEFT('abc',2)",
        "columns [\"LEFT('abc',2)\"]\nrows 1\nab",
        "functions of MySQL's that scripts use",
    ),
];

/// One statement and its answer, as they were recorded.
struct Recorded<'g> {
    sql: &'g str,
    lines: Vec<&'g str>,
}

fn recordings(text: &str) -> Vec<Recorded<'_>> {
    let mut all: Vec<Recorded<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(sql) = line.strip_prefix(">>> ") {
            all.push(Recorded {
                sql,
                lines: Vec::new(),
            });
        } else if line.starts_with("---") {
            break;
        } else if let Some(last) = all.last_mut() {
            last.lines.push(line);
        }
    }
    for recorded in &mut all {
        while recorded.lines.last().is_some_and(|line| {
            line.is_empty() || line.starts_with("(connection") || line.starts_with("!!!")
        }) {
            recorded.lines.pop();
        }
    }
    all
}

/// Whether a row of a list of tables is one of a table that ProxySQL does not have.
fn is_ours(row: &[String]) -> bool {
    let name = row
        .first()
        .map_or("", String::as_str)
        .trim_start_matches("runtime_")
        .trim_end_matches("_reset");
    row.len() == 1 && tables::all().any(|table| table.is_ours() && table.name == name)
}

/// Ours in the form of the recording; where rows were cut there, they are cut here.
fn shown(said: &Result<Reply, Said>, recorded: &Recorded<'_>) -> String {
    let mut out = String::new();
    match said {
        Ok(Reply::Done { affected, info }) => {
            // The recording has the length of the words in front of them.
            let _ = write!(out, "OK affected={affected} {info}");
        }
        Ok(Reply::Rows(grid)) => {
            let rows: Vec<_> = grid
                .texts()
                .into_iter()
                .filter(|row| !is_ours(row))
                .collect();
            let _ = write!(out, "columns {:?}\nrows {}\n", grid.names, rows.len());
            let cut = if recorded.lines.last() == Some(&"...") {
                25
            } else {
                usize::MAX
            };
            for row in rows.iter().take(cut) {
                out += &row.join("\t").replace('\n', "\\n");
                out.push('\n');
            }
        }
        Err(Said::Sql(words)) => {
            let _ = write!(out, "ERROR 1045 28000 ProxySQL Admin Error: {words}");
        }
        Err(Said::Coded(code, _, words)) => {
            let _ = write!(out, "ERROR {code} 28000 ProxySQL Admin Error: {words}");
        }
    }
    out.trim_end().to_owned()
}

fn wanted(recorded: &Recorded<'_>) -> String {
    let first = recorded.lines.first().copied().unwrap_or_default();
    if let Some(rest) = first.strip_prefix("OK affected=") {
        let affected = rest.split(' ').next().unwrap_or_default();
        let info = rest.split_once("message=b").map_or("", |(_, rest)| {
            rest.rsplit_once(" warnings").map_or("", |(info, _)| info)
        });
        let info: String = info[1..info.len() - 1].chars().skip(1).collect();
        return format!("OK affected={affected} {info}")
            .trim_end()
            .to_owned();
    }
    if let Some(rest) = first.strip_prefix("ERROR (") {
        let (code, rest) = rest.split_once(", ").unwrap();
        let words = rest.rsplit_once(") sqlstate").unwrap().0;
        let words = words[1..words.len() - 1].replace("\\'", "'");
        return format!("ERROR {code} 28000 {words}");
    }
    let columns = first.split_once(": ").unwrap().1;
    let names = columns.trim_matches(['[', ']']);
    let names: Vec<_> = split_python(names);
    let count = recorded.lines[2].strip_prefix("rows: ").unwrap();
    let mut out = format!("columns {names:?}\nrows {count}\n");
    for row in recorded.lines[3..].iter().filter(|line| **line != "...") {
        out += row;
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// A list of texts as Python writes it.
fn split_python(list: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = list;
    while let Some(quote) = rest.chars().next() {
        let mut end = 1;
        while !rest[end..].starts_with(quote) || rest[..end].ends_with('\\') {
            end += 1;
        }
        all.push(rest[1..end].replace("\\'", "'"));
        rest = rest[end + 1..].trim_start_matches(", ");
    }
    all
}

async fn replay(
    bench: &Bench,
    view: View,
    text: &str,
    datadir: &str,
    used: &mut BTreeSet<&str>,
) -> Vec<String> {
    let mut differences = Vec::new();
    for recorded in recordings(text) {
        let sql = recorded.sql.replace("DATADIR", datadir);
        let ours = shown(&bench.ask(view, &sql).await, &recorded).replace(datadir, "DATADIR");
        let theirs = wanted(&recorded);
        if ours == theirs {
            continue;
        }
        if let Some((sql, ..)) = DIFFERENT
            .iter()
            .find(|(sql, begin, _)| *sql == recorded.sql && ours.starts_with(begin))
        {
            used.insert(sql);
        } else {
            differences.push(format!(
                "{}\n  theirs: {theirs}\n  ours:   {ours}",
                recorded.sql
            ));
        }
    }
    differences
}

#[test]
fn statements_are_answered_as_they_were_recorded() {
    let directory = Directory::new("golden");
    let datadir = directory.0.to_string_lossy().into_owned();
    // As many settings as the recorded one had.
    let config = directory.0.join("proxysql.cnf");
    let text = "admin_variables={ mysql_ifaces=\"127.0.0.1:18032\" refresh_interval=2000 }\n\
                mysql_variables={ interfaces=\"127.0.0.1:18033\" threads=2 monitor_enabled=true max_allowed_packet=67108864 }";
    std::fs::write(&config, text).unwrap();
    let options = Options {
        datadir: Some(directory.0.clone()),
        config: Some(config),
        ..Options::default()
    };
    testing::with(options, |bench| async move {
        let mut used = BTreeSet::new();
        let mut differences = replay(&bench, View::Admin, SHOWS, &datadir, &mut used).await;
        differences.extend(replay(&bench, View::Admin, COMMANDS, &datadir, &mut used).await);
        differences.extend(replay(&bench, View::Stats, STATS_USER, &datadir, &mut used).await);
        differences.extend(
            DIFFERENT
                .iter()
                .filter(|(sql, ..)| !used.contains(sql))
                .map(|(sql, ..)| format!("{sql} is no different")),
        );
        assert!(
            differences.is_empty(),
            "{} differences:\n{}",
            differences.len(),
            differences.join("\n")
        );
    });
}

/// A38: the tables are declared as ProxySQL declares them, byte for byte; in two `runtime_` tables
/// it breaks lines elsewhere.
#[test]
fn tables_are_declared_as_they_were_recorded() {
    const RECORDED: &[(&str, &str)] = &[
        (
            "main",
            include_str!("../../tests/golden/show_create_main.sql"),
        ),
        (
            "disk",
            include_str!("../../tests/golden/show_create_disk.sql"),
        ),
        (
            "stats",
            include_str!("../../tests/golden/show_create_stats.sql"),
        ),
        (
            "monitor",
            include_str!("../../tests/golden/show_create_monitor.sql"),
        ),
        (
            "stats_history",
            include_str!("../../tests/golden/show_create_stats_history.sql"),
        ),
    ];
    testing::with(Options::default(), |bench| async move {
        let mut count = 0;
        for (schema, text) in RECORDED {
            let mut listed = Vec::new();
            for part in text.split("-- ").skip(1) {
                let (head, ddl) = part.split_once('\n').unwrap();
                let table = head.split(' ').next().unwrap();
                let ddl = ddl.trim_end().strip_suffix(';').unwrap();
                let ours = &bench.rows(&format!("SHOW CREATE TABLE {table}")).await[0];
                if table == "main.runtime_mysql_query_rules" || table == "main.runtime_mysql_users"
                {
                    assert_eq!(
                        ours[1].split_whitespace().collect::<String>(),
                        ddl.split_whitespace().collect::<String>()
                    );
                } else {
                    assert_eq!(ours[1], ddl, "{table}");
                }
                listed.push(vec![table.split_once('.').unwrap().1.to_owned()]);
                count += 1;
            }
            let mut ours = bench.rows(&format!("SHOW TABLES FROM {schema}")).await;
            ours.retain(|row| !is_ours(row));
            assert_eq!(ours, listed, "{schema}");
        }
        assert_eq!(
            count,
            tables::copies()
                .iter()
                .filter(|copy| !copy.table.is_ours())
                .count()
        );
    });
}

#[test]
fn variables_and_their_defaults_are_those_of_proxysql() {
    let recorded = include_str!("../../tests/golden/global_variables.tsv");
    testing::with(Options::default(), |bench| async move {
        let ours = bench.rows("SELECT * FROM global_variables").await;
        let mut other = Vec::new();
        for line in recorded.lines().skip(1) {
            let (name, value) = line.split_once('\t').unwrap_or((line, ""));
            let found = ours
                .iter()
                .find(|row| row[0] == name)
                .unwrap_or_else(|| panic!("{name} is missing"));
            if found[1] != value {
                other.push(name);
            }
        }
        // The recorded process had other ports, threads and limits than the defaults.
        let set = [
            "admin-mysql_ifaces",
            "mysql-interfaces",
            "mysql-threads",
            "mysql-max_connections",
        ];
        assert_eq!(
            other
                .into_iter()
                .filter(|name| !set.contains(name))
                .collect::<Vec<_>>(),
            [""; 0]
        );
    });
}
