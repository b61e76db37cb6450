//! Which statements may go to a reader: `reading.txt`, each in several spellings, and what the
//! session's mode means for it.
#![expect(clippy::disallowed_methods, reason = "a test reads its data")]

use sql::{Against, Lexing, Unread, class, class_without_escapes, reading, reads_lists};

fn verdict(sql: &[u8], harmless: bool) -> Result<(), Unread> {
    reading(&class(sql), sql, Lexing::Escapes, |_| harmless)?;
    if reads_lists(sql, Lexing::Escapes, "shop") {
        Err(Unread::Words(Against::Server))
    } else {
        Ok(())
    }
}

fn bytes(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = line.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |at: usize| {
            tail.get(at)
                .and_then(|b| char::from(*b).to_digit(16))
                .map(|d| d as u8)
        };
        (rest, _) = match (first, tail) {
            (b'\\', [b'n', tail @ ..]) => (tail, out.push(b'\n')),
            (b'\\', [b't', tail @ ..]) => (tail, out.push(b'\t')),
            (b'\\', [b'x', ..]) => {
                let (high, low) = (hex(1).expect("\\xHH"), hex(2).expect("\\xHH"));
                (&tail[3..], out.push(high << 4 | low))
            }
            _ => (tail, out.push(*first)),
        };
    }
    out
}

#[test]
fn statements_go_where_the_text_says_in_every_spelling() {
    let text = std::fs::read_to_string("tests/reading.txt").expect("beside this file");
    let mut wanted = "";
    let (mut lines, mut wrong) = (0, Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(section) = line.strip_prefix("== ") {
            wanted = section;
            continue;
        }
        if line.is_empty() || line.starts_with("# ") && !line.ends_with('1') {
            continue;
        }
        lines += 1;
        let sql = bytes(line);
        let open = sql.ends_with(b"unterminated")
            || sql.windows(2).any(|w| w == b"--" || w == b"\\G")
            || sql.contains(&b'#');
        let mut spellings = vec![
            sql.clone(),
            sql.to_ascii_lowercase(),
            [b"/* app=x */ ", &sql[..]].concat(),
            [b"\n\t (", &sql[..]].concat(),
        ];
        if !open {
            spellings.push([&sql[..], b" ;"].concat());
            spellings.push([&sql[..], b" -- x\n"].concat());
        }
        for spelling in spellings {
            let (harmless, wanted) = match wanted.strip_prefix("even if routines are harmless: ") {
                Some(reason) => (true, reason),
                None => (wanted == "reader, if routines are harmless", wanted),
            };
            let told = verdict(&spelling, harmless);
            let right = match &told {
                Ok(()) => wanted.starts_with("reader"),
                Err(why) => why.to_string().starts_with(wanted),
            };
            if !right || harmless && told.is_ok() && verdict(&spelling, false).is_ok() {
                let told = told.map_or_else(|why| why.to_string(), |()| "reader".into());
                wrong.push(format!(
                    "reading.txt:{number}: {}: {told}; wanted: {wanted}",
                    String::from_utf8_lossy(&spelling)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines > 400, "{lines}");
}

#[test]
fn a_session_in_such_a_schema_reads_what_a_server_lists() {
    for (schema, sql, wanted) in [
        ("performance_schema", "SELECT * FROM threads", true),
        ("Sys", "SELECT 1", true),
        ("information_schema", "SELECT * FROM processlist", true),
        ("information_schema", "SELECT * FROM columns", false),
        ("shop", "SELECT * FROM processlist", false),
        ("shop", "SELECT * FROM \"mysql\".gtid_slave_pos", true),
    ] {
        assert_eq!(
            reads_lists(sql.as_bytes(), Lexing::Escapes, schema),
            wanted,
            "{sql} in {schema}"
        );
    }
}

#[test]
fn the_routines_that_are_called_are_told_with_their_schemas() {
    let asked = |sql: &str| {
        let names = std::cell::RefCell::new(Vec::new());
        let _ = reading(
            &class(sql.as_bytes()),
            sql.as_bytes(),
            Lexing::Escapes,
            |routine| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                names
                    .borrow_mut()
                    .push((routine.schema.as_deref().map(text), text(&routine.name)));
                true
            },
        );
        names
            .into_inner()
            .into_iter()
            .map(|(s, n)| s.map_or_else(|| n.clone(), |s| format!("{s}.{n}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        asked("SELECT f(1), shop.g(2), `a b`.`c``d` (3), COUNT(*)"),
        ["f", "shop.g", "a b.c`d"]
    );
    assert_eq!(asked("CALL `shop` . p(f(1))"), ["shop.p", "f"]);
    assert_eq!(asked("CALL p"), ["p"]);
}

#[test]
fn where_strings_end_is_the_sessions_to_say() {
    let sql = br"SELECT '\', @a:=1 -- '";
    assert!(reading(&class(sql), sql, Lexing::Escapes, |_| false).is_ok());
    assert!(
        reading(&class_without_escapes(sql), sql, Lexing::NoEscapes, |_| {
            false
        })
        .is_err()
    );
    // In GBK the backslash belongs to the character before it, and the quote ends the string.
    let sql = b"SELECT '\xbf\\', @a:=1 -- '";
    assert!(reading(&class(sql), sql, Lexing::Escapes, |_| false).is_ok());
    assert_eq!(
        reading(&class(sql), sql, Lexing::Shifts(sql::Shift::Gbk), |_| false),
        Err(Unread::Unclear)
    );
    assert!(
        reading(
            &class(b"SELECT 'a'"),
            b"SELECT 'a'",
            Lexing::Shifts(sql::Shift::Gbk),
            |_| false
        )
        .is_ok()
    );
}

#[test]
fn a_transaction_that_only_reads_says_so_when_it_starts() {
    for (sql, only) in [
        ("START TRANSACTION READ ONLY", true),
        (
            "start transaction with consistent snapshot, read only",
            true,
        ),
        (
            "START TRANSACTION READ ONLY, WITH CONSISTENT SNAPSHOT;",
            true,
        ),
        ("START TRANSACTION READ WRITE", false),
        ("START TRANSACTION", false),
        ("START TRANSACTION; SELECT 1 READ ONLY", false),
        ("BEGIN", false),
        ("START SLAVE READ ONLY", false),
    ] {
        assert_eq!(class(sql.as_bytes()).begins_read_only, only, "{sql}");
    }
}
