//! Scripts of raw packets: PREPARE, EXECUTE and DEALLOCATE PREPARE in SQL.

use crate::raw::Raw;

/// Each of them, one after the other.
fn each(raw: &mut Raw, statements: &[&str]) -> Result<String, String> {
    let mut seen = String::new();
    for sql in statements {
        seen += &format!("{sql}\n");
        seen += &raw.query(sql)?;
    }
    Ok(seen)
}

/// What applications do.
pub fn plain(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        "PREPARE read_some FROM 'SELECT id, id * ? AS times FROM conf.numbers WHERE id < ? ORDER BY id'",
        "SET @a = 3, @b = 4",
        "EXECUTE read_some USING @a, @b",
        "EXECUTE READ_SOME USING @b, @a",
        "SET @a = 'x', @b = 2.5",
        "EXECUTE read_some USING @a, @b",
        "SHOW WARNINGS",
        "EXECUTE read_some USING @a, @nothing",
        "DEALLOCATE PREPARE read_some",
        "EXECUTE read_some USING @a, @b",
        "SHOW WARNINGS",
        "PREPARE w FROM \"INSERT INTO conf.counted (words) VALUES (?), ('it''s')\"",
        "BEGIN",
        "EXECUTE w USING @a",
        "SELECT LAST_INSERT_ID() > 0, ROW_COUNT()",
        "ROLLBACK",
        "EXECUTE w USING @a",
        "SELECT ROW_COUNT()",
        "DROP PREPARE w",
        "SELECT ROW_COUNT()",
        "DELETE FROM conf.counted",
    ])
}

/// What goes wrong.
pub fn errors(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        "EXECUTE nobody",
        "SHOW WARNINGS",
        "DEALLOCATE PREPARE nobody",
        "DROP PREPARE nobody",
        "PREPARE s FROM 'SELEC 1'",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT 1; SELECT 2'",
        "PREPARE s FROM 'SELECT * FROM conf.no_such_table'",
        "PREPARE s FROM 'SELECT ?'",
        "EXECUTE s",
        "EXECUTE s USING @a, @b",
        "EXECUTE s USING",
        "EXECUTE s garbage",
        "PREPARE s FROM 'SELEC 1'",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT 1' garbage",
        "PREPARE s",
        "PREPARE s FROM ''",
        "PREPARE s FROM @nothing",
        "PREPARE t FROM 'PREPARE s FROM \"SELECT 1\"'",
        "PREPARE t FROM 'EXECUTE s'",
        "PREPARE t FROM 'DEALLOCATE PREPARE s'",
        "PREPARE t FROM 'INSERT INTO conf.scratch VALUES (?, ?)'",
        "SET @a = 1, @b = 'x'",
        "EXECUTE t USING @a, @b",
        "EXECUTE t USING @a, @b",
        "SHOW WARNINGS",
        "DEALLOCATE PREPARE t",
        "DEALLOCATE PREPARE t",
        "DELETE FROM conf.scratch",
    ])
}

/// Quotes in quotes, names in backticks, modes that change what both mean.
pub fn quotes(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        r#"PREPARE s FROM 'SELECT ''it''''s'', "a\"b", ''c\\''''d'', ?'"#,
        "EXECUTE s USING @nothing",
        r#"PREPARE `My Name` FROM "SELECT 'x' AS `a b`, '%\\_' LIKE '%\_'" "#,
        "EXECUTE `my name`",
        "/* why */ EXECUTE /* this */ `MY NAME` -- now",
        "PREPARE s FROM 'SELECT ''é'', HEX(''é''), ''\\n'' = CHAR(10)'",
        "EXECUTE s",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "EXECUTE s",
        r"PREPARE s FROM 'SELECT ''\'', ''\n'''",
        "EXECUTE s",
        "SET sql_mode = 'ANSI_QUOTES'",
        "EXECUTE s",
        "PREPARE s FROM \"SELECT 1\"",
        "EXECUTE s",
        "PREPARE \"s\" FROM 'SELECT \"id\" FROM conf.numbers WHERE id < 3'",
        "EXECUTE s",
        "SET sql_mode = DEFAULT",
        "EXECUTE s",
        "DEALLOCATE PREPARE s",
        "EXECUTE `my name`",
        "SET NAMES latin1",
        "EXECUTE `my name`",
        "PREPARE s FROM 'SELECT ''\u{e9}'', HEX(''\u{e9}'')'",
        "EXECUTE s",
        "SET NAMES utf8mb4",
        "EXECUTE s",
    ])
}

/// Texts from variables, literals and computed.
pub fn variables(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        "SET @q = 'SELECT ? + 1 AS n'",
        "PREPARE s FROM @q",
        "SET @q = 'gone', @one = 1",
        "EXECUTE s USING @one",
        "SET @q = CONCAT('SELECT ''a''', ', ? AS b')",
        "PREPARE s FROM @q",
        "EXECUTE s USING @one",
        "BEGIN",
        "SELECT CONCAT('SELECT id FROM conf.numbers WHERE id = ', MAX(id)) INTO @q FROM conf.numbers WHERE id < 5",
        "PREPARE s FROM @q",
        "EXECUTE s",
        "COMMIT",
        "EXECUTE s",
        "SET @q = 5",
        "PREPARE s FROM @q",
        "SET @q = NULL",
        "PREPARE s FROM @q",
        "SET @q = 'SELECT ''é'''",
        "PREPARE s FROM @q",
        "EXECUTE s",
        "PREPARE s FROM 'SELECT ? INTO @out'",
        "EXECUTE s USING @one",
        "SELECT @out",
        "PREPARE s FROM 'SET @out = ? + 1'",
        "EXECUTE s USING @one",
        "EXECUTE s USING @out",
        "SELECT @out",
        "DEALLOCATE PREPARE s",
    ])
}

/// Statements that leave something, or ask for what others left.
pub fn leaves(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        "PREPARE made FROM 'CREATE TEMPORARY TABLE conf.made_here (a INT)'",
        "EXECUTE made",
        "EXECUTE made",
        "PREPARE fill FROM 'INSERT INTO conf.made_here VALUES (?), (? + 1)'",
        "SET @n = 7",
        "EXECUTE fill USING @n, @n",
        "PREPARE look FROM 'SELECT SQL_CALC_FOUND_ROWS a FROM conf.made_here ORDER BY a LIMIT ?'",
        "SET @n = 1",
        "EXECUTE look USING @n",
        "SELECT FOUND_ROWS()",
        "PREPARE found FROM 'SELECT FOUND_ROWS()'",
        "EXECUTE look USING @n",
        "EXECUTE found",
        "DEALLOCATE PREPARE found",
        "EXECUTE look USING @n",
        "DROP TEMPORARY TABLE conf.made_here",
        "EXECUTE look USING @n",
        "DEALLOCATE PREPARE look",
        "DEALLOCATE PREPARE fill",
        "DEALLOCATE PREPARE made",
        "PREPARE warn FROM 'SELECT CAST(? AS SIGNED)'",
        "SET @n = 'x'",
        "EXECUTE warn USING @n",
        "SHOW WARNINGS",
        "EXECUTE warn USING @n",
        "DEALLOCATE PREPARE warn",
        "SHOW WARNINGS",
        "USE conf2",
        "PREPARE here FROM 'SELECT DATABASE()'",
        "EXECUTE here",
        "USE conf",
        "EXECUTE here",
        "PREPARE lock_it FROM 'SELECT GET_LOCK(''dynamic'', 0)'",
        "EXECUTE lock_it",
        "SELECT IS_USED_LOCK('dynamic') = CONNECTION_ID()",
        "SELECT RELEASE_LOCK('dynamic')",
        "PREPARE c FROM 'COMMIT'",
        "BEGIN",
        "EXECUTE c",
        "SELECT 'after'",
    ])
}

/// Programs that use names of the session, and leave some.
pub fn programs(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        "DROP PROCEDURE IF EXISTS conf.dynamic_executes",
        "DROP PROCEDURE IF EXISTS conf.dynamic_prepares",
        "CREATE PROCEDURE conf.dynamic_executes() EXECUTE mine",
        "CREATE PROCEDURE conf.dynamic_prepares() PREPARE yours FROM 'SELECT ''yours'''",
        "PREPARE mine FROM 'SELECT ''mine'', ?'",
        "PREPARE other FROM 'SELECT ''other'''",
        "CALL conf.dynamic_executes()",
        "PREPARE mine FROM 'SELECT ''mine'''",
        "CALL conf.dynamic_executes()",
        "EXECUTE other",
        "CALL conf.dynamic_prepares()",
        "EXECUTE yours",
        "DEALLOCATE PREPARE yours",
        "EXECUTE yours",
        "DEALLOCATE PREPARE other",
        "EXECUTE other",
        "EXECUTE mine",
        "DEALLOCATE PREPARE mine",
        "EXECUTE mine",
        "DROP PROCEDURE conf.dynamic_executes",
        "DROP PROCEDURE conf.dynamic_prepares",
    ])
}

/// EXECUTE IMMEDIATE, which is MariaDB's: MySQL knows no such thing.
pub fn immediate(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        "EXECUTE IMMEDIATE 'SELECT 1 AS one'",
        "EXECUTE IMMEDIATE 'SELECT ? + ?' USING 1, 2.5",
        "SET @q = 'SELECT ''q'', ?', @a = 'x'",
        "EXECUTE IMMEDIATE @q USING @a",
        "EXECUTE IMMEDIATE 'SELEC 1'",
        "EXECUTE IMMEDIATE 'SELECT ?'",
        "EXECUTE IMMEDIATE 'INSERT INTO conf.counted (words) VALUES (?)' USING 'now'",
        "EXECUTE IMMEDIATE CONCAT('SELECT ', '5')",
        "EXECUTE IMMEDIATE 'PREPARE s FROM ''SELECT 1'''",
        "PREPARE immediate FROM 'SELECT ''a name'''",
        "EXECUTE immediate",
        "DEALLOCATE PREPARE immediate",
        "PREPARE s FROM 'SELECT ?, ?'",
        "EXECUTE s USING 1, 'x'",
        "EXECUTE s USING @a, LAST_INSERT_ID() > 0",
        "EXECUTE s USING @a := 5, @a",
        "SELECT @a",
        "EXECUTE s USING @a, @a",
        "PREPARE s FROM CONCAT('SELECT ', '6')",
        "EXECUTE s",
        "DEALLOCATE PREPARE s",
        "DELETE FROM conf.counted",
    ])
}

/// In a text with several statements.
pub fn several(raw: &mut Raw) -> Result<String, String> {
    each(raw, &[
        "SET @a = 2; PREPARE s FROM 'SELECT ? AS n; '; EXECUTE s USING @a",
        "PREPARE s FROM 'SELECT ? AS n'; EXECUTE s USING @a; DEALLOCATE PREPARE s; EXECUTE s",
        "PREPARE s FROM 'SELECT ? AS n'; DEALLOCATE PREPARE s; SELECT 'end'",
    ])
}
