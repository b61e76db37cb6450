//! What can be parsed: `grammar.txt`, and every statement of the other tables of these tests that a
//! server takes.
#![expect(clippy::disallowed_methods, reason = "a test reads its data")]

use sql::grammar::mistake;

#[test]
fn what_servers_take_is_taken_and_what_is_refused_says_why() {
    let text = std::fs::read_to_string("tests/grammar.txt").expect("beside this file");
    let mut taken = true;
    let (mut lines, mut wrong) = (0, Vec::new());
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        if let Some(section) = line.strip_prefix("== ") {
            taken = section == "taken";
            continue;
        }
        lines += 1;
        let (sql, wanted) = if taken {
            (line, None)
        } else {
            line.split_once(" | ")
                .map(|(sql, why)| (sql, Some(why)))
                .expect("why")
        };
        for sql in [sql, &format!("{sql} ;")] {
            let found = mistake(sql);
            if found.as_deref() != wanted {
                wrong.push(format!("{sql}\n    {found:?}\n    {wanted:?}"));
            }
        }
    }
    assert!(
        lines > 200 && wrong.is_empty(),
        "{} of {lines}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn nothing_that_other_tests_hold_for_a_statement_is_refused() {
    let reading = std::fs::read_to_string("tests/reading.txt").expect("beside this file");
    let refused: Vec<_> = reading
        .lines()
        .filter(|line| !line.starts_with("== ") && !line.starts_with("# ") && !line.is_empty())
        .filter_map(|line| Some(format!("{line}: {}", mistake(line)?)))
        .collect();
    // These three are there for what they are taken for, and are none.
    let wanted = [
        "SELECT lock FROM t: lacks a value before 'lock FROM t'",
        "CALL 5: lacks a procedure before '5'",
        "CALL: lacks a procedure at its end",
    ];
    assert_eq!(refused, wanted);
}

#[test]
fn values_of_templates_are_values() {
    for sql in [
        "SELECT a FROM t WHERE b = :b AND c IN (:c, :d) LIMIT :e",
        "SELECT ?2, ?1",
        "CALL by_kind(:kind, :id)",
    ] {
        assert_eq!(mistake(sql), None, "{sql}");
    }
    assert!(
        mistake("SELECT a FROM :t").is_some()
            && mistake("SELECT a FROM t WHERE b = :b :c").is_some()
    );
}

#[test]
fn depth_and_bytes_of_any_kind_are_taken() {
    for sql in [
        format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("SELECT {}", "CASE ".repeat(5000)),
    ] {
        let _ = mistake(&sql);
    }
    for sql in [
        "",
        ";",
        "é",
        "SELECT é FROM t",
        "SELECT 'é' é FROM t",
        "(",
        ")",
        "SELECT (",
        "SELECT @",
        "@",
        "SELECT a.",
        "UPDATE t SET a =",
    ] {
        sql::grammar::fuzz_grammar(sql.as_bytes());
    }
}
