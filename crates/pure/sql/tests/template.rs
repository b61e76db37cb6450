//! Rewriting by template: what matches, what comes of it, what is refused, and that values are
//! carried whole.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use sql::Lexing;
use sql::template::{Read, Rewritten, Template, Unusable, fingerprint};

fn rewritten(template: &Template, sql: &[u8]) -> Option<Rewritten> {
    let found = template.apply(sql, Read::PLAIN);
    if found.is_some() {
        assert_eq!(
            fingerprint(sql, Lexing::Escapes),
            template.fingerprint(),
            "{}",
            String::from_utf8_lossy(sql)
        );
    }
    found
}

/// The text without the blanks around values.
fn text(template: &Template, sql: &str) -> Option<String> {
    let made = String::from_utf8(rewritten(template, sql.as_bytes())?.text).unwrap();
    Some(made.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_statement_matches_whatever_its_blanks_case_comments_and_quotes() {
    let template = Template::compile(
        "SELECT * FROM t WHERE a = ?",
        "SELECT * FROM u WHERE b = ? LIMIT 10",
    )
    .unwrap();
    for sql in [
        "SELECT * FROM t WHERE a = 5",
        "select*from t where a=5",
        "select * from t where A = 5",
        "  SELECT\n*\tFROM `t`\nWHERE `a` = 5 ; ",
        "SELECT /*+ NO_INDEX */ * FROM t -- x\n WHERE a # y\n = 5",
        "SELECT /*! * */ FROM t WHERE a = 5",
    ] {
        assert_eq!(
            text(&template, sql).as_deref(),
            Some("SELECT * FROM u WHERE b = 5 LIMIT 10"),
            "{sql}"
        );
    }
    assert_eq!(
        text(&template, "/* hostgroup=1 */ SELECT * FROM t WHERE a=5").unwrap(),
        "/* hostgroup=1 */ SELECT * FROM u WHERE b = 5 LIMIT 10"
    );
    for sql in [
        "SELECT * FROM T WHERE a = 5",
        "SELECT * FROM t WHERE a = b",
        "SELECT * FROM t WHERE a = 5 AND 1",
        "SELECT * FROM t WHERE a = 5; SELECT 1",
        "SELECT * FROM t WHERE a = (5)",
        "SELECT * FROM t WHERE a = 5 -5",
        "SELECT * FROM t WHERE a = f(5)",
        "SELECT * FROM t WHERE a = 5 OR 1=1",
        "SELECT 'SELECT * FROM t WHERE a = 5'",
        "/* SELECT * FROM t WHERE a = 5 */",
        "SELECT * FROM t WHERE a = 5 /*!80000 OR 1 */",
        "SELECT * FROM t WHERE a = 5 /*M! OR 1 */",
        "SELECT * FROM t WHERE a = 'open",
        "SELECT * FROM t WHERE a = \"x\\\" OR \"",
        "EXPLAIN SELECT * FROM t WHERE a = 5",
        "SELECT * FROM t",
        "",
    ] {
        assert_eq!(text(&template, sql), None, "{sql}");
    }
}

#[test]
fn values_are_carried_by_position_number_or_name() {
    let made = |pattern, replacement, sql| {
        text(&Template::compile(pattern, replacement).unwrap(), sql).unwrap()
    };
    let sql = "SELECT a FROM t WHERE a = 1 AND b = 'x'";
    assert_eq!(
        made(
            "SELECT a FROM t WHERE a = ? AND b = ?",
            "SELECT a FROM u WHERE a = ? AND b = ?",
            sql
        ),
        "SELECT a FROM u WHERE a = 1 AND b = 'x'"
    );
    assert_eq!(
        made(
            "SELECT a FROM t WHERE a = ? AND b = ?",
            "SELECT a FROM u WHERE b = ?2 AND a = ?1 OR c = ?1",
            sql
        ),
        "SELECT a FROM u WHERE b = 'x' AND a = 1 OR c = 1"
    );
    assert_eq!(
        made(
            "SELECT a FROM t WHERE a = :id AND b = :kind",
            "CALL by_kind(:kind, :id)",
            sql
        ),
        "CALL by_kind( 'x' , 1 )"
    );
    assert_eq!(
        made(
            "SELECT a FROM t WHERE a = ? AND b = :kind",
            "SELECT 1 FROM u WHERE a = ?1",
            sql
        ),
        "SELECT 1 FROM u WHERE a = 1"
    );
    // A literal in the pattern matches itself alone.
    let template =
        Template::compile("SELECT a FROM t WHERE a = ? AND b = 'x'", "SELECT 1").unwrap();
    assert!(
        text(&template, sql).is_some()
            && text(&template, "SELECT a FROM t WHERE a = 1 AND b = 'y'").is_none()
    );
}

#[test]
fn values_stay_what_they_were_byte_for_byte() {
    let template = Template::compile(
        "UPDATE t SET a = ? WHERE b = ?",
        "UPDATE u SET a = ?1 WHERE c = ?2 AND a <> ?1",
    )
    .unwrap();
    let values: [&[u8]; 18] = [
        b"5",
        b"-5",
        b"+1.5e-3",
        b".5",
        b"0x1F",
        b"0b01",
        b"X'00ff'",
        b"b'101'",
        b"N'x'",
        b"'it''s'",
        br"'it\'s \\'",
        b"\"say \"\"x\"\"\"",
        b"'nul\0 and \xff\xfe'",
        b"_utf8mb4'x'",
        b"_binary X'00'",
        b"'a' 'b'",
        b"NULL",
        b"TIMESTAMP '2024-02-29 00:00:00'",
    ];
    for value in values {
        let sql = [b"update t set a=", value, b" where b=", value].concat();
        let made = rewritten(&template, &sql)
            .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&sql)));
        let wanted = [
            b"UPDATE u SET a =  ",
            value,
            b"  WHERE c =  ",
            value,
            b"  AND a <>  ",
            value,
            b" ",
        ]
        .concat();
        assert_eq!(made.text, wanted, "{}", String::from_utf8_lossy(&made.text));
    }
    let escapes = br"UPDATE t SET a = '\' WHERE b = 'x'";
    let read = |sql: &[u8], lexing| {
        template.apply(
            sql,
            Read {
                lexing,
                ..Read::PLAIN
            },
        )
    };
    assert!(read(escapes, Lexing::Escapes).is_none() && read(escapes, Lexing::NoEscapes).is_some());
    assert!(
        read(
            b"UPDATE t SET a = '\xbf' WHERE b = 1",
            Lexing::Shifts(sql::Shift::Gbk)
        )
        .is_none()
    );
}

#[test]
fn a_double_quote_is_no_value_where_it_may_make_a_name() {
    let ansi = Read {
        ansi_quotes: true,
        ..Read::PLAIN
    };
    let template =
        |pattern: &str, replacement: &str| Template::compile(pattern, replacement).unwrap();
    let in_statement = template(
        "UPDATE t SET a = ? WHERE b = ?",
        "UPDATE u SET a = ? WHERE b = ?",
    );
    for (sql, matches) in [
        (&br#"UPDATE t SET a = "x" WHERE b = 5"#[..], false),
        (br#"UPDATE t SET a = 'y' "x" WHERE b = 5"#, false),
        (br#"UPDATE "t" SET a = 4 WHERE b = 5"#, false),
        (br#"UPDATE t SET a = '{"x": 1}' WHERE b = 5 -- "z""#, true),
    ] {
        assert_eq!(
            in_statement.apply(sql, ansi).is_some(),
            matches,
            "{}",
            String::from_utf8_lossy(sql)
        );
    }
    assert!(
        in_statement
            .apply(br#"UPDATE t SET a = "x" WHERE b = 5"#, Read::PLAIN)
            .is_some()
    );
    for (template, fitting) in [
        (
            template(r#"SELECT a FROM t WHERE b = "x""#, "SELECT 1"),
            r#"SELECT a FROM t WHERE b = "x""#,
        ),
        (template("SELECT 1", r#"SELECT "x""#), "SELECT 1"),
    ] {
        let fitting = fitting.as_bytes();
        assert!(
            template.apply(fitting, Read::PLAIN).is_some()
                && template.apply(fitting, ansi).is_none()
        );
    }
}

#[test]
fn letters_of_the_operator_are_for_sessions_that_speak_as_he_does() {
    let latin1 = Read {
        utf8: false,
        ..Read::PLAIN
    };
    let written = Template::compile(
        "DELETE FROM t WHERE id = ?",
        "UPDATE t SET state = 'gelöscht' WHERE id = ?",
    )
    .unwrap();
    let sql = b"DELETE FROM t WHERE id = 5";
    assert!(written.apply(sql, Read::PLAIN).is_some() && written.apply(sql, latin1).is_none());
    let ascii = Template::compile(
        "DELETE FROM t WHERE id = ?",
        "UPDATE t SET state = 'gone' WHERE id = ?",
    )
    .unwrap();
    assert!(ascii.apply(sql, latin1).is_some());
}

#[test]
fn a_backslash_in_a_pattern_is_another_value_where_it_does_not_escape() {
    let template = Template::compile(r"SELECT a FROM t WHERE b = 'a\\b'", "SELECT 1").unwrap();
    let sql = br"SELECT a FROM t WHERE b = 'a\\b'";
    assert!(template.apply(sql, Read::PLAIN).is_some());
    assert!(
        template
            .apply(
                sql,
                Read {
                    lexing: Lexing::NoEscapes,
                    ..Read::PLAIN
                }
            )
            .is_none()
    );
}

#[test]
fn parameters_are_followed_where_they_go() {
    let template = Template::compile(
        "SELECT a FROM t WHERE a = ? AND b = ? AND c = ?",
        "SELECT a FROM u WHERE c = ?3 AND a = ?1 AND d = ?3",
    )
    .unwrap();
    let params = |sql: &str| {
        rewritten(&template, sql.as_bytes())
            .map(|made| (made.params, made.params_before))
            .unwrap()
    };
    assert_eq!(
        params("SELECT a FROM t WHERE a = ? AND b = ? AND c = ?"),
        (vec![2, 0, 2], 3)
    );
    assert_eq!(
        params("SELECT a FROM t WHERE a = 5 AND b = ? AND c = ?"),
        (vec![1, 1], 2)
    );
    assert_eq!(
        params("SELECT a FROM t WHERE a = ? AND b = ? AND c = 'x?'"),
        (vec![0], 2)
    );
    assert_eq!(
        params("SELECT a FROM t WHERE a = 1 AND b = 2 AND c = 3"),
        (vec![], 0)
    );
}

#[test]
fn what_cannot_be_used_is_refused_with_the_reason() {
    for (pattern, replacement, words) in [
        ("", "SELECT 1", "pattern is empty"),
        (" ; ", "SELECT 1", "pattern is empty"),
        (
            "SELECT 'a",
            "SELECT 1",
            "pattern ends inside a string, a name or a comment",
        ),
        (
            "SELECT 1 /* x",
            "SELECT 1",
            "pattern ends inside a string, a name or a comment",
        ),
        (
            "SELECT (1",
            "SELECT 1",
            "pattern has parentheses that do not match",
        ),
        (
            "SELECT 1; SELECT 2",
            "SELECT 1",
            "pattern is more than one statement",
        ),
        (
            "SELECT /*!80000 1 */",
            "SELECT 1",
            "pattern has an executable comment that not every server executes",
        ),
        (
            "SELECT :a, :a",
            "SELECT 1",
            "pattern has ':a' twice; a name stands for one value",
        ),
        (
            "SELECT ?1",
            "SELECT 1",
            "pattern numbers a placeholder; there it is '?' or ':name'",
        ),
        ("SELECT ?", "", "replacement is empty"),
        (
            "SELECT ?",
            "SELECT ?, ?",
            "replacement has more '?' than pattern has placeholders, which is 1",
        ),
        (
            "SELECT ?",
            "SELECT ?2",
            "replacement has '?2', but pattern has 1 placeholders",
        ),
        (
            "SELECT ?",
            "SELECT ?0",
            "replacement has '?0', but pattern has 1 placeholders",
        ),
        (
            "SELECT ?",
            "SELECT :a",
            "replacement has ':a', which is not in pattern",
        ),
        (
            "SELECT ?, ?",
            "SELECT ?, ?1",
            "replacement has '?' beside '?N'; number all of them or none",
        ),
        (
            "SELECT ?",
            "SELECT 'x",
            "replacement ends inside a string, a name or a comment",
        ),
        (
            "SELECT ?",
            "SELECT ? -- x",
            "replacement ends inside a string, a name or a comment",
        ),
        (
            "SELECT ?",
            "SELECT 1))",
            "replacement has parentheses that do not match",
        ),
        (
            "SELECT ?",
            "SELEC ?",
            "replacement does not begin as a statement that is known",
        ),
        (
            "SELECT ?",
            "SELECT a ?",
            "replacement would read differently with the value -5: SELECT a  -5 ",
        ),
        (
            "SELECT ?",
            "SELECT 'x' ?",
            "replacement would read differently with the value -5: SELECT 'x'  -5 ",
        ),
    ] {
        let refused = Template::compile(pattern, replacement).map_err(|unusable| match unusable {
            Unusable::Pattern(words) => format!("pattern {words}"),
            Unusable::Replacement(words) => format!("replacement {words}"),
        });
        assert_eq!(refused.unwrap_err(), words, "{pattern} -> {replacement}");
    }
}
