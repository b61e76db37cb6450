//! Scripts of raw clients about the definitions of columns, which a session may do without: MySQL's
//! optional metadata, and what clients of MariaDB remember.

use crate::raw::Raw;
use wire::caps;
use wire::response::Expect;

/// Statements that make procedures for [`left_out`].
const PROCEDURES: &[&str] = &[
    "DROP PROCEDURE IF EXISTS conf.turns",
    "DROP PROCEDURE IF EXISTS conf.stays",
    "CREATE PROCEDURE conf.turns(INOUT x INT) BEGIN SELECT id FROM conf.numbers WHERE id < 3 ORDER BY id; SET resultset_metadata = NONE; \
     SELECT 'bare' AS words; SET resultset_metadata = FULL; SELECT 'full' AS words; SET x = x + 1; END",
    "CREATE PROCEDURE conf.stays(INOUT x INT) BEGIN SET resultset_metadata = NONE; SELECT 'bare' AS words; SET x = x + 1; END",
];

/// An INT of 5.
const FIVE: &[u8] = b"\0\x01\x03\0\x05\0\0\0";

/// MySQL's `resultset_metadata`, in whatever answers with columns.
///
/// # Errors
/// The connection broke, or what came was no answer.
pub fn left_out(raw: &mut Raw) -> Result<String, String> {
    let mut seen = String::new();
    for sql in PROCEDURES {
        // It depends on who was here before what they say.
        raw.query(sql)?;
    }
    let wide = format!("SELECT {}", vec!["1"; 300].join(", "));
    seen += &raw.ask(b"\x02conf", Expect::Simple)?;
    for setting in ["FULL", "NONE", "FULL"] {
        for sql in [
            &format!("SET resultset_metadata = {setting}"),
            "SELECT @@resultset_metadata, id FROM conf.numbers WHERE id < 4 ORDER BY id",
            "SELECT id FROM conf.numbers WHERE id < 0",
            &wide,
            "SELECT no_such_column",
            "SHOW WARNINGS",
            "SHOW COUNT(*) ERRORS",
            "SELECT FOUND_ROWS()",
            "SHOW SESSION VARIABLES LIKE 'resultset_m%'",
            "PREPARE s FROM 'SELECT ? + 1 AS more'",
            "SET @a = 6 + 1",
            "EXECUTE s USING @a",
            "SELECT @a",
            "SELECT 1 + 1 INTO @b",
            "SELECT @b + 1",
            "BEGIN",
            "SELECT 'in a transaction'",
            "COMMIT",
            "SET @x = 1",
            "CALL conf.two_results(4)",
            "CHECK TABLE conf.scratch",
        ] {
            seen += &format!("{sql:.60}\n{}", raw.query(sql)?);
        }
        if raw.has(caps::MULTI_STATEMENTS) {
            seen += &raw.query(
                "SELECT 1 AS one; SET @c = 2; SELECT 2 AS two, 3 AS three; SELECT no_such_column",
            )?;
        }
        let nth = raw.statements.len();
        seen += &raw.prepare("SELECT id, ? AS param FROM conf.numbers WHERE id < 4 ORDER BY id")?;
        seen += &raw.prepare("DO ?")?;
        seen += &raw.prepare("CALL conf.gives_back(?, ?, ?)")?;
        // What was prepared before, too.
        for nth in (0..=nth).step_by(3) {
            seen += &raw.execute(nth, 0, FIVE)?;
            seen += &raw.execute(nth, 1, FIVE)?;
            seen += &raw.fetch(nth, 2)?;
            seen += &raw.fetch(nth, 2)?;
        }
        seen += &raw.execute(nth + 1, 0, FIVE)?;
        seen += &raw.execute(nth + 2, 0, b"\x02\x01\x03\0\x06\0\xfd\0\x05\0\0\0\x02hi")?;
        seen += &raw.ask(b"\x04scratch\0", Expect::FieldList)?;
    }
    seen += &settings(raw)?;
    Ok(without_early_flags(raw, &seen))
}

/// Whatever sets it, and what it is then.
fn settings(raw: &mut Raw) -> Result<String, String> {
    let mut seen = String::new();
    for sql in [
        "SET SESSION resultset_metadata = 'none'",
        "SET @@resultset_metadata = 1",
        "SET @@session.resultset_metadata = 0",
        "SET resultset_metadata = DEFAULT",
        "SET resultset_metadata = 2",
        "SET resultset_metadata = ''",
        "SET resultset_metadata = NULL",
        "SET GLOBAL resultset_metadata = NONE",
        "SET LOCAL resultset_metadata = (SELECT 'NONE')",
        "SET resultset_metadata = CONCAT('fu', 'll')",
        "SET resultset_metadata = \"none\"",
        "SELECT @@global.resultset_metadata",
        "SET sql_mode = DEFAULT, resultset_metadata = FULL, no_such_variable = 1",
        "SET resultset_metadata = FULL, @y = 1",
        "SELECT /*+ SET_VAR(resultset_metadata = NONE) */ 1",
        "CALL conf.turns(@x)",
        "CALL conf.stays(@x)",
        "SET resultset_metadata = FULL",
        "SET resultset_metadata = NONE",
    ] {
        seen += &format!("{sql}\n{}", raw.query(sql)?);
        seen += &raw.query("SELECT @@resultset_metadata")?;
        seen += &raw.query("SELECT 'plain' AS words")?;
    }
    // COM_RESET_CONNECTION.
    seen += &raw.ask(b"\x1f", Expect::Simple)?;
    seen += &raw.query("SELECT @@resultset_metadata")?;
    Ok(seen)
}

/// MariaDB's: what a client was told of a statement's columns is not said again.
///
/// # Errors
/// The connection broke, or what came was no answer.
pub fn remembered(raw: &mut Raw) -> Result<String, String> {
    raw.query("DROP TABLE IF EXISTS conf.redefined")?;
    let mut seen = raw.query("CREATE TABLE conf.redefined (id INT, words VARCHAR(20))")?;
    seen += &raw.query("INSERT INTO conf.redefined VALUES (1, 'one'), (2, 'two')")?;
    for sql in [
        "SELECT id, words FROM conf.redefined ORDER BY id",
        "SELECT id, ? AS param FROM conf.redefined ORDER BY id",
        "SELECT * FROM conf.redefined ORDER BY id",
        "CALL conf.two_results(?)",
        "INSERT INTO conf.redefined VALUES (3, 'three') RETURNING id",
        "DO 1",
        "SELECT id FROM conf.redefined WHERE id < 0",
        "SELECT id FROM conf.numbers ORDER BY id LIMIT 300",
        "EXPLAIN SELECT 1",
    ] {
        seen += &raw.prepare(sql)?;
    }
    for _ in 0..3 {
        seen += &raw.execute(0, 0, b"")?;
        seen += &raw.execute(1, 0, FIVE)?;
        seen += &raw.query("SELECT id, words FROM conf.redefined ORDER BY id")?;
        seen += &raw.execute(2, 0, b"")?;
        seen += &raw.execute(3, 0, FIVE)?;
        seen += &raw.execute(4, 0, b"")?;
        for nth in 5..9 {
            seen += &raw.execute(nth, 0, b"")?;
        }
        seen += &raw.query("CALL conf.two_results(1)")?;
    }
    // A parameter of another type, and back.
    for params in [
        &b"\0\x01\xfd\0\x02ab"[..],
        b"\0\x01\xfd\0\x02cd",
        FIVE,
        FIVE,
    ] {
        seen += &raw.execute(1, 0, params)?;
    }
    for _ in 0..2 {
        seen += &raw.execute(0, 1, b"")?;
        seen += &raw.fetch(0, 1)?;
        seen += &raw.fetch(0, 9)?;
        seen += &raw.execute(0, 0, b"")?;
    }
    seen += &raw.query("ALTER TABLE conf.redefined ADD more INT")?;
    for _ in 0..2 {
        seen += &raw.execute(2, 0, b"")?;
    }
    seen += &raw.query("ALTER TABLE conf.redefined DROP more, MODIFY words VARCHAR(40)")?;
    for _ in 0..2 {
        seen += &raw.execute(2, 0, b"")?;
        seen += &raw.execute(0, 0, b"")?;
    }
    seen += &raw.query("SET NAMES latin1")?;
    for _ in 0..2 {
        seen += &raw.execute(2, 0, b"")?;
    }
    seen += &raw.query("SET NAMES utf8mb4")?;
    if raw.has(caps::MARIADB_CACHE_METADATA) {
        // The last one that was prepared.
        raw.statements.push(u32::MAX);
        let last = raw.statements.len() - 1;
        seen += &raw.execute(last, 0, b"")?;
    }
    seen += &raw.query("DROP TABLE conf.redefined")?;
    seen += &raw.execute(0, 0, b"")?;
    Ok(without_early_flags(raw, &seen))
}

/// Types that a MariaDB tells of in a field of their own, in whatever answers with columns.
///
/// # Errors
/// The connection broke, or what came was no answer.
pub fn typed(raw: &mut Raw) -> Result<String, String> {
    const READ: &str = "SELECT id, doc, u, at, place, words FROM conf.typed ORDER BY id";
    raw.ask(b"\x02conf", Expect::Simple)?;
    let mut seen = raw.query(READ)?;
    seen += &raw.query("SELECT JSON_ARRAY(1) AS made, 1 AS one")?;
    seen += &raw.query("SELECT 1 AS one; SELECT doc FROM conf.typed WHERE id = 1")?;
    seen += &raw.query("SHOW WARNINGS")?;
    seen += &raw.query("SELECT no_such_column")?;
    seen += &raw.query("SHOW WARNINGS")?;
    let nth = raw.statements.len();
    seen += &raw.prepare(READ)?;
    seen += &raw.prepare("SELECT doc, ? AS param FROM conf.typed WHERE id < ? ORDER BY id")?;
    for _ in 0..2 {
        seen += &raw.execute(nth, 0, b"")?;
        seen += &raw.execute(nth + 1, 0, b"\0\x01\x03\0\x03\0\x05\0\0\0\x09\0\0\0")?;
        seen += &raw.execute(nth, 1, b"")?;
        seen += &raw.fetch(nth, 1)?;
        seen += &raw.fetch(nth, 9)?;
    }
    seen += &raw.ask(b"\x04typed\0", Expect::FieldList)?;
    Ok(without_early_flags(raw, &seen))
}

/// The table that [`typed`] reads.
pub const TYPED: [&str; 2] = [
    "CREATE OR REPLACE TABLE conf.typed (id INT PRIMARY KEY, doc JSON, u UUID, at INET6, place POINT, words VARCHAR(20))",
    "INSERT INTO conf.typed VALUES (1, '{\"k\": 1}', UUID(), '::1', POINT(1, 2), 'one'), (2, NULL, NULL, NULL, NULL, NULL)",
];

/// Whether a line is an EOF, and whether another packet follows it.
fn eof(lines: &[&str], at: usize) -> (bool, bool) {
    let number = |at: usize| {
        let number = lines.get(at)?.split_whitespace().next()?;
        number.parse::<u32>().ok()
    };
    let is_eof = lines[at]
        .trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
        .starts_with("\\xfe");
    let next = number(at).map(|number| number + 1);
    (is_eof, next.is_some() && next == number(at + 1))
}

/// Masks the warnings of EOFs before rows in what was seen. Millrace says those of the rows
/// there, too, where a server has only those of its optimizer.
#[must_use]
pub fn without_early_warnings(seen: &str) -> String {
    let lines: Vec<&str> = seen.lines().collect();
    let mut plain = String::new();
    for (at, line) in lines.iter().enumerate() {
        match line.split_once("\\xfe\\x0") {
            Some((head, rest)) if eof(&lines, at) == (true, true) => {
                plain += &format!("{head}\\xfe\\x0N{}\n", rest.get(1..).unwrap_or_default());
            }
            _ => plain += &format!("{line}\n"),
        }
    }
    plain
}

/// Masks the flags and warnings of an EOF before rows in what was seen. Millrace says those of the
/// connection before the statement there.
#[must_use]
pub fn without_early_flags(raw: &Raw, seen: &str) -> String {
    let lines: Vec<&str> = seen.lines().collect();
    let mut plain = String::new();
    for (at, line) in lines.iter().enumerate() {
        let (is_eof, goes_on) = eof(&lines, at);
        if goes_on && is_eof && !raw.has(caps::DEPRECATE_EOF) {
            plain.push_str("    EOF\n");
        } else if is_eof && !raw.has(caps::DEPRECATE_EOF) {
            // MariaDB leaves SERVER_SESSION_STATE_CHANGED (0x4000) there for a while, also for
            // those who do not track.
            plain.push_str(
                &line
                    .strip_suffix('@')
                    .map_or_else(|| (*line).to_owned(), |rest| format!("{rest}\\x00")),
            );
            plain.push('\n');
        } else {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    plain
}
