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

/// Says what applications do.
pub fn plain(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
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
        ],
    )
}

/// Says what goes wrong.
pub fn errors(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
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
        ],
    )
}

/// Quotes in quotes, names in backticks, modes that change what both mean.
pub fn quotes(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
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
        ],
    )
}

/// Texts from variables, literals and computed.
pub fn variables(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
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
        ],
    )
}

/// Statements that leave something, or ask for what others left.
pub fn leaves(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
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
        ],
    )
}

/// Programs that use names of the session, and leave some.
pub fn programs(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
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
        ],
    )
}

/// EXECUTE IMMEDIATE, which is MariaDB's: MySQL knows no such thing.
pub fn immediate(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
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
        ],
    )
}

/// In a text with several statements.
pub fn several(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
            "SET @a = 2; PREPARE s FROM 'SELECT ? AS n; '; EXECUTE s USING @a",
            "PREPARE s FROM 'SELECT ? AS n'; EXECUTE s USING @a; DEALLOCATE PREPARE s; EXECUTE s",
            "PREPARE s FROM 'SELECT ? AS n'; DEALLOCATE PREPARE s; SELECT 'end'",
        ],
    )
}

/// Asks what a name means after a PREPARE that fails: what it meant before, or nothing.
pub fn in_vain(raw: &mut Raw) -> Result<String, String> {
    let mut seen = each(
        raw,
        &[
            "SET @number = 5, @null = NULL, @empty = '', @wrong = 'SELEC 1', @accent = 'SELEC ''\u{e9}'''",
        ],
    )?;
    for source in [
        "'SELEC 1'",
        "'SELECT 1' garbage",
        "''",
        "@nothing",
        "@null",
        "@number",
        "@empty",
        "@wrong",
        "@accent",
        "@wrong garbage",
        "CONCAT('SELEC', ' 1')",
        "CONCAT('SELECT 1'",
        "CONCAT('SELECT ', no_such_column)",
        "CONCAT('SELECT ', conf.no_such_function())",
        "CONCAT('SELECT ', NULL)",
        "(SELECT 'SELECT 1')",
        "EXTRACTVALUE('<a>', '/b[')",
        "5",
        "NULL",
        "'CALL conf.no_such_procedure()'",
        "'SELECT FOUND_ROWS() garbage, from'",
        "'EXECUTE s'",
    ] {
        for before in [
            "'SELECT ''before'''",
            "'SELECT FOUND_ROWS() > 0, ''before'''",
            "CONCAT('SELECT ', '''before''')",
        ] {
            let (first, again) = (
                format!("PREPARE s FROM {before}"),
                format!("PREPARE s FROM {source}"),
            );
            seen += &each(
                raw,
                &[
                    "PREPARE other FROM 'SELECT ''other'''",
                    &first,
                    &again,
                    "EXECUTE s",
                    "SHOW WARNINGS",
                    "EXECUTE other",
                    "DEALLOCATE PREPARE s",
                    "EXECUTE s",
                    "DEALLOCATE PREPARE other",
                ],
            )?;
        }
    }
    Ok(seen)
}

/// With session_track_state_change.
pub fn told(raw: &mut Raw) -> Result<String, String> {
    let mut seen = each(
        raw,
        &[
            "PREPARE first FROM 'SELECT 1'",
            "DEALLOCATE PREPARE first",
            "PREPARE first FROM 'SELECT 1'",
            "SET session_track_state_change = 1",
            "DEALLOCATE PREPARE first",
            "DEALLOCATE PREPARE first",
            "SHOW WARNINGS",
            "PREPARE s FROM 'SELECT ?'",
            "EXECUTE s USING @a",
            "DEALLOCATE PREPARE `S`",
            "SELECT ROW_COUNT()",
            "PREPARE s FROM 'SELEC ?'",
            "SELECT 1",
            "BEGIN",
            "PREPARE s FROM 'INSERT INTO conf.counted (words) VALUES (''told'')'",
            "EXECUTE s",
            "/* why */ DROP PREPARE s -- now",
            "EXECUTE s",
            "SELECT ROW_COUNT()",
            "ROLLBACK",
            "PREPARE s FROM 'SELECT FOUND_ROWS() > 0'",
            "DEALLOCATE PREPARE s",
            "SELECT CAST('x' AS SIGNED)",
        ],
    )?;
    let silence = std::time::Duration::from_millis(50);
    // The session has the warnings by then, and the connection is given back.
    std::thread::sleep(silence);
    seen += &each(raw, &["PREPARE s FROM 'SELECT 1'"])?;
    std::thread::sleep(silence);
    seen += &each(
        raw,
        &[
            "SHOW WARNINGS",
            "SET session_track_state_change = 0",
            "DEALLOCATE PREPARE s",
        ],
    )?;
    Ok(seen)
}

/// Procedures that are called by EXECUTE, with values that they give back.
pub fn called(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
            "DROP PROCEDURE IF EXISTS conf.dynamic_doubles",
            "DROP PROCEDURE IF EXISTS conf.dynamic_runs",
            "CREATE PROCEDURE conf.dynamic_doubles(IN n INT, OUT twice INT, INOUT more INT) SET twice = n * 2, more = more + n, @aside = n",
            "CREATE PROCEDURE conf.dynamic_runs(n INT) EXECUTE other USING @n",
            "PREPARE other FROM 'SELECT ''other'', ?'",
            "PREPARE c FROM 'CALL conf.dynamic_doubles(?, ?, ?)'",
            "SET @n = 3, @more = 10",
            "EXECUTE c USING @n, @twice, @more",
            "SELECT @twice, @more, @aside",
            "EXECUTE c USING @n, @twice, @more",
            "SELECT @twice, @more, @aside",
            "EXECUTE c USING @n",
            "PREPARE r FROM 'CALL conf.dynamic_runs(?)'",
            "EXECUTE r USING @n",
            "EXECUTE other USING @n",
            "DEALLOCATE PREPARE r",
            "EXECUTE r USING @n",
            "DEALLOCATE PREPARE other",
            "EXECUTE c USING @n, @twice, @more",
            "SELECT @twice, @more",
            "DEALLOCATE PREPARE c",
            "DEALLOCATE PREPARE c",
            "PREPARE c FROM 'CALL conf.no_such_procedure(?)'",
            "EXECUTE c USING @n",
            "PREPARE c FROM 'CALL conf.dynamic_doubles(1, @twice, @more)'",
            "EXECUTE c",
            "SELECT @twice, @more, @aside",
            "EXECUTE IMMEDIATE 'CALL conf.dynamic_doubles(?, ?, ?)' USING 7, @twice, @more",
            "SELECT @twice, @more, @aside",
            "EXECUTE IMMEDIATE 'CALL conf.dynamic_doubles(8, @twice, @more)'",
            "SELECT @twice, @more, @aside",
            "DEALLOCATE PREPARE c",
            "DROP PROCEDURE conf.dynamic_doubles",
            "DROP PROCEDURE conf.dynamic_runs",
        ],
    )
}

/// Statements whose parameters a template moves.
pub fn moved(raw: &mut Raw) -> Result<String, String> {
    each(
        raw,
        &[
            "USE conf",
            "SET @a = 1, @b = 'x', @c = 2.5",
            "PREPARE s FROM 'SELECT ? AS a, ? AS b'",
            "EXECUTE s USING @a, @b",
            "EXECUTE s USING @b, @nothing",
            "EXECUTE s USING @a",
            "EXECUTE s USING @a, @b, @c",
            "EXECUTE s",
            "SHOW WARNINGS",
            "PREPARE i FROM 'INSERT INTO scratch (id, words) VALUES (?, ?)'",
            "EXECUTE i USING @a, @b",
            "SELECT id, words FROM scratch",
            "DEALLOCATE PREPARE i",
            "PREPARE n FROM 'SELECT ''none'' AS a FROM DUAL WHERE ? IS NULL OR ? IS NULL OR 1 = 1'",
            "EXECUTE n USING @a, @b",
            "EXECUTE n",
            "/* why */ EXECUTE `S` /* with */ USING @b, /* what */ @nothing -- end",
            "EXECUTE s USING 5, 'x, @y'",
            "EXECUTE s USING 1 + 1, LAST_INSERT_ID() > 5",
            "DROP PROCEDURE IF EXISTS conf.dynamic_moved",
            "CREATE PROCEDURE conf.dynamic_moved() EXECUTE s USING @b, @a",
            // MySQL remembers of what types a statement's arguments were.
            "PREPARE s FROM 'SELECT ? AS a, ? AS b'",
            "CALL conf.dynamic_moved()",
            "EXECUTE s USING @a, @b",
            "PREPARE s FROM 'SELECT ? AS a, ? AS b'",
            "EXECUTE s USING @x := 5, @x",
            "EXECUTE s USING @x, @a",
            "DEALLOCATE PREPARE s",
            "EXECUTE s USING @a, @b",
            "DROP PROCEDURE conf.dynamic_moved",
        ],
    )
}
