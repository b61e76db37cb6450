//! Responses of real servers followed to their end, whole and cut everywhere.

use wire::caps::{self, Caps};
use wire::ok;
use wire::packet;
use wire::response::{
    Expect, Follow, Outcome, PREPARED_ID_AT, Prepared, Recode, Response, Summed, Tail,
};
use wire::status;
use wire::track::Change;
use wire::types::Type;

const OLD: Caps = caps::PROTOCOL_41 | caps::TRANSACTIONS;
const NEW: Caps = OLD | caps::DEPRECATE_EOF | caps::SESSION_TRACK;

const MARIADB: &str = include_str!("captures/mariadb-10.11.txt");
const MYSQL: &str = include_str!("captures/mysql-9.7.txt");

/// The bytes that MariaDB sent under `name`.
fn capture(name: &str) -> Vec<u8> {
    capture_of(MARIADB, name)
}

/// The bytes that a server sent under `name`.
fn capture_of(server: &str, name: &str) -> Vec<u8> {
    let hex = server
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(": "))
        .unwrap_or_else(|| panic!("no capture {name}"));
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex"))
        .collect()
}

/// Everything a response can be asked, as text that two of them can be compared by.
fn summary(r: &Response) -> String {
    format!(
        "{:?} status {:04x}{} warnings {} affected {} insert {} rows {} columns {} results {} prepared {:?} seq {} tail {:?} track {:?}",
        r.outcome(),
        r.status(),
        if r.is_status_known() { "" } else { "?" },
        r.warnings(),
        r.affected_rows(),
        r.insert_id(),
        r.rows(),
        r.columns(),
        r.results(),
        r.prepared(),
        r.last_seq(),
        r.tail(),
        r.changes().collect::<Vec<_>>(),
    )
}

/// Follows `bytes` in one piece; the response must end with their last one.
fn follow(expect: Expect, caps: Caps, bytes: &[u8]) -> Response {
    let mut r = Response::expect(expect, caps);
    assert_eq!(r.follow(bytes), Ok(Follow::Ended { used: bytes.len() }));
    assert!(r.is_ended());
    r
}

/// Follows `bytes` in one piece, then with other bytes behind, cut into two at every position, and
/// byte by byte: the result must not differ.
fn follow_everywhere(expect: Expect, caps: Caps, bytes: &[u8]) -> Response {
    let r = follow(expect, caps, bytes);
    let want = summary(&r);

    let mut more = bytes.to_vec();
    more.extend_from_slice(bytes);
    let mut again = Response::expect(expect, caps);
    assert_eq!(
        again.follow(&more),
        Ok(Follow::Ended { used: bytes.len() }),
        "bytes of the next response were eaten"
    );
    assert_eq!(summary(&again), want);

    for cut in 0..bytes.len() {
        again.restart(expect, caps);
        assert_eq!(
            again.follow(&bytes[..cut]),
            Ok(Follow::More),
            "ended early at {cut}"
        );
        assert!(!again.is_ended());
        assert_eq!(
            again.follow(&bytes[cut..]),
            Ok(Follow::Ended {
                used: bytes.len() - cut
            }),
            "cut at {cut}"
        );
        assert_eq!(summary(&again), want, "cut at {cut}");
    }
    again.restart(expect, caps);
    for (i, b) in bytes.iter().enumerate() {
        let end = i + 1 == bytes.len();
        assert_eq!(
            again.follow(&[*b]),
            Ok(if end {
                Follow::Ended { used: 1 }
            } else {
                Follow::More
            })
        );
    }
    assert_eq!(summary(&again), want, "byte by byte");
    r
}

#[test]
fn every_captured_response_ends_where_it_ends_however_it_is_cut() {
    let kind = |name: &str| match name {
        "greeting" => None,
        "prepare" | "prepareset" | "prepareins" | "preparecols" | "prepareerr" => {
            Some(Expect::Prepare)
        }
        "execute" | "execcursor" | "execcall" => Some(Expect::Execute),
        "fetch1" | "fetch9" => Some(Expect::Fetch),
        "fieldlist" => Some(Expect::FieldList),
        "statistics" => Some(Expect::Line),
        "use" | "ping" | "setoption" | "stmtreset" | "resetconn" => Some(Expect::Simple),
        _ => Some(Expect::Query),
    };
    let mut seen = 0;
    let lines = [MARIADB, MYSQL]
        .into_iter()
        .flat_map(|server| server.lines().map(move |line| (server, line)));
    for (server, line) in lines.filter(|(_, l)| !l.starts_with('#')) {
        let (name, _) = line.split_once(':').expect("name");
        let (caps, what) = name.split_once(' ').expect("caps");
        if let Some(expect) = kind(what) {
            let r = follow_everywhere(
                expect,
                if caps == "new" { NEW } else { OLD },
                &capture_of(server, name),
            );
            assert_eq!(
                matches!(r.outcome(), Outcome::Err { .. }),
                ["error", "multierr", "prepareerr", "killed"].contains(&what),
                "{name}"
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 128);
}

#[test]
fn a_result_set_counts_its_rows_and_columns_with_both_forms_of_its_end() {
    for server in [MARIADB, MYSQL] {
        for (caps, name) in [(OLD, "old select"), (NEW, "new select")] {
            let r = follow(Expect::Query, caps, &capture_of(server, name));
            assert_eq!(
                (r.outcome(), r.rows(), r.columns(), r.results()),
                (Outcome::Ok, 3, 3, 1),
                "{name}"
            );
            assert_ne!(r.status() & status::AUTOCOMMIT, 0);
            assert!(matches!(r.tail(), Some(Tail::End(_))));
            let r = follow(
                Expect::Query,
                caps,
                &capture_of(server, &name.replace("select", "empty")),
            );
            assert_eq!((r.rows(), r.columns()), (0, 3));
        }
    }
}

#[test]
fn an_ok_tells_affected_rows_insert_id_and_words() {
    for (caps, name) in [(OLD, "old insert"), (NEW, "new insert")] {
        let bytes = capture(name);
        let r = follow(Expect::Query, caps, &bytes);
        assert_eq!(
            (r.affected_rows(), r.insert_id(), r.tail_start()),
            (3, 1, Some(0))
        );
        let Some(Tail::Ok(ok)) = r.tail() else {
            panic!("{:?}", r.tail())
        };
        assert_eq!(ok.info, b"Records: 3  Duplicates: 0  Warnings: 0");
        let mut again = Vec::new();
        ok.write(&mut again, caps);
        assert_eq!(again, bytes[4..]);
    }
}

#[test]
fn results_of_several_statements_are_one_response() {
    for server in [MARIADB, MYSQL] {
        for (caps, name) in [(OLD, "old multi"), (NEW, "new multi")] {
            let r = follow(Expect::Query, caps, &capture_of(server, name));
            assert_eq!(
                (r.results(), r.rows(), r.affected_rows(), r.insert_id()),
                (5, 4, 1, 4),
                "{name}"
            );
        }
        let r = follow(Expect::Query, NEW, &capture_of(server, "new call"));
        assert_eq!((r.results(), r.rows()), (3, 5));
    }
}

#[test]
fn an_error_ends_everything_even_after_rows() {
    for (caps, name) in [(OLD, "old multierr"), (NEW, "new multierr")] {
        let r = follow(Expect::Query, caps, &capture(name));
        let Outcome::Err {
            code,
            state,
            message,
        } = r.outcome()
        else {
            panic!("{name}")
        };
        assert_eq!(
            (code, &state, message),
            (1146, b"42S02", &b"Table 'test.nope' doesn't exist"[..])
        );
        assert_eq!((r.rows(), r.results()), (1, 1));
    }
    // In the middle of the rows: the server was told to stop.
    let mut bytes = capture("old select");
    bytes.truncate(bytes.len() - 9);
    let seq = follow(Expect::Query, OLD, &capture("old select")).last_seq();
    packet::append(
        &mut bytes,
        &mut seq.clone(),
        b"\xff\x25\x05#70100Query execution was interrupted",
    );
    let r = follow_everywhere(Expect::Query, OLD, &bytes);
    assert!(matches!(r.outcome(), Outcome::Err { code: 1317, .. }));
    assert_eq!(r.rows(), 3);
}

#[test]
fn session_changes_of_all_results_are_kept() {
    let r = follow(Expect::Query, NEW, &capture("new begin"));
    assert_ne!(r.status() & status::IN_TRANS, 0);
    assert_eq!(
        r.changes().collect::<Vec<_>>(),
        [
            Change::TransactionState(b"T_______"),
            Change::TransactionCharacteristics(b"START TRANSACTION;")
        ]
    );
    let r = follow(Expect::Query, NEW, &capture("new schema"));
    let schemas: Vec<_> = r
        .changes()
        .filter(|c| matches!(c, Change::Schema(_)))
        .collect();
    assert_eq!(
        schemas,
        [
            Change::Schema(b"other"),
            Change::Schema(b""),
            Change::Schema(b"test")
        ]
    );
    let r = follow(Expect::Query, NEW, &capture("new multi"));
    let variables: Vec<_> = r
        .changes()
        .filter(|c| matches!(c, Change::Variable { .. }))
        .collect();
    assert_eq!(
        variables,
        [
            Change::Variable {
                name: b"autocommit",
                value: b"OFF"
            },
            Change::Variable {
                name: b"autocommit",
                value: b"ON"
            }
        ]
    );
}

#[test]
fn session_changes_of_mysql_come_with_every_result() {
    let r = follow(Expect::Query, NEW, &capture_of(MYSQL, "new begin"));
    assert_eq!(
        r.changes().collect::<Vec<_>>(),
        [
            Change::Variable {
                name: b"statement_id",
                value: b"91"
            },
            Change::TransactionState(b"T_______"),
            Change::TransactionCharacteristics(b"START TRANSACTION;")
        ]
    );
    let r = follow(Expect::Query, NEW, &capture_of(MYSQL, "new multi"));
    let autocommit = |c: &Change<'_>| {
        matches!(
            c,
            Change::Variable {
                name: b"autocommit",
                ..
            }
        )
    };
    assert_eq!(r.changes().filter(autocommit).count(), 2);
    let r = follow(Expect::Query, NEW, &capture_of(MYSQL, "new schema"));
    assert_eq!(
        r.changes()
            .filter(|c| matches!(c, Change::Schema(_)))
            .count(),
        3
    );
    let r = follow(Expect::Simple, NEW, &capture_of(MYSQL, "new use"));
    assert_eq!(
        r.changes().collect::<Vec<_>>(),
        [Change::Schema(b"test"), Change::State(true)]
    );
}

#[test]
fn the_last_ok_can_be_written_anew_for_a_client_without_session_tracking() {
    let bytes = capture("new begin");
    let r = follow(Expect::Query, NEW, &bytes);
    let Some(Tail::Ok(ok)) = r.tail() else {
        panic!()
    };
    let client = NEW & !caps::SESSION_TRACK;
    let mut payload = Vec::new();
    ok.write(&mut payload, client);
    assert_eq!(payload, [0, 0, 0, 3, 0, 0, 0]);

    // After rows, behind other bytes: tail_start() says where it began.
    let mut bytes = capture("new select");
    let at = bytes.len() - 11;
    bytes.truncate(at);
    let mut seq = follow(Expect::Query, NEW, &capture("new select")).last_seq();
    packet::append(
        &mut bytes,
        &mut seq,
        b"\xfe\0\0\x02\x40\0\0\0\x07\x01\x05\x04test",
    );
    let r = follow_everywhere(Expect::Query, NEW, &bytes);
    assert_eq!(r.tail_start(), Some(at));
    let Some(Tail::End(ok)) = r.tail() else {
        panic!()
    };
    let mut payload = Vec::new();
    ok.write_end(&mut payload, client);
    assert_eq!(payload, [0xFE, 0, 0, 2, 0, 0, 0]);
    payload.clear();
    ok.write_end(&mut payload, OLD);
    assert_eq!(payload, [0xFE, 0, 0, 2, 0]);
}

#[test]
fn a_prepared_statement_is_known_by_id_and_its_id_can_be_found() {
    for server in [MARIADB, MYSQL] {
        for (caps, name) in [(OLD, "old prepare"), (NEW, "new prepare")] {
            let bytes = capture_of(server, name);
            let mut r = follow_everywhere(Expect::Prepare, caps, &bytes);
            assert_eq!(
                r.prepared(),
                Some(Prepared {
                    id: 1,
                    columns: 3,
                    params: 2
                })
            );
            assert_eq!(bytes[PREPARED_ID_AT], [1, 0, 0, 0]);
            r.restart(Expect::Prepare, caps);
            assert_eq!(r.follow(&bytes[..20]), Ok(Follow::More));
            assert_eq!(r.prepared_id_at(), Some(5));
            assert_eq!(r.follow(&bytes[20..21]), Ok(Follow::More));
            assert_eq!(r.prepared_id_at(), None);
        }
        for (name, columns, params) in [
            ("prepareset", 0, 0),
            ("prepareins", 0, 1),
            ("preparecols", 2, 0),
        ] {
            for (caps, which) in [(OLD, "old"), (NEW, "new")] {
                let r = follow(
                    Expect::Prepare,
                    caps,
                    &capture_of(server, &format!("{which} {name}")),
                );
                let p = r.prepared().expect("prepared");
                assert_eq!((p.columns, p.params), (columns, params), "{which} {name}");
            }
        }
    }
}

#[test]
fn a_cursor_ends_the_execution_before_its_rows() {
    for server in [MARIADB, MYSQL] {
        for (caps, which) in [(OLD, "old"), (NEW, "new")] {
            let r = follow(
                Expect::Execute,
                caps,
                &capture_of(server, &format!("{which} execcursor")),
            );
            assert_eq!((r.rows(), r.columns()), (0, 3));
            assert_ne!(r.status() & status::CURSOR_EXISTS, 0);
            let r = follow(
                Expect::Fetch,
                caps,
                &capture_of(server, &format!("{which} fetch9")),
            );
            assert_eq!(r.rows(), 3);
            assert_ne!(r.status() & status::LAST_ROW_SENT, 0);
        }
    }
}

#[test]
fn a_request_for_a_local_file_stops_and_goes_on_after_the_file() {
    let mut r = follow_everywhere(Expect::Query, NEW, &capture("new infile"));
    assert_eq!(r.outcome(), Outcome::LocalInfile(b"/tmp/f"));
    assert!(r.tail().is_none());
    r.resume();
    assert!(!r.is_ended());
    let done = capture("new infiledone");
    assert_eq!(r.follow(&done), Ok(Follow::Ended { used: done.len() }));
    assert_eq!((r.outcome(), r.affected_rows()), (Outcome::Ok, 2));
    // MariaDB prepares it, too.
    let executed = follow_everywhere(Expect::Execute, NEW, &capture("new infile"));
    assert_eq!(executed.outcome(), Outcome::LocalInfile(b"/tmp/f"));
}

/// A result set of one column whose rows have these lengths.
fn result_of(rows: &[usize], first: u8, caps: Caps) -> Vec<u8> {
    let mut out = Vec::new();
    let mut seq = 1;
    packet::append(&mut out, &mut seq, &[1]);
    packet::append_with(&mut out, &mut seq, |o| {
        wire::resultset::Column::text("x").write(o, caps);
    });
    if !caps::has(caps, caps::DEPRECATE_EOF) {
        packet::append(&mut out, &mut seq, b"\xfe\0\0\x02\0");
    }
    for len in rows {
        let mut row = vec![b'r'; *len];
        row[0] = first;
        packet::append(&mut out, &mut seq, &row);
    }
    let end: &[u8] = if caps::has(caps, caps::DEPRECATE_EOF) {
        b"\xfe\0\0\x02\0\0\0"
    } else {
        b"\xfe\0\0\x02\0"
    };
    packet::append(&mut out, &mut seq, end);
    out
}

#[test]
fn rows_of_any_size_are_followed_in_chunks_of_any_size() {
    const M: usize = packet::MAX_PAYLOAD;
    for caps in [OLD, NEW] {
        // 0xFE as the first byte of a row is a value of 16 MiB or more, and no EOF.
        for (rows, first) in [
            (&[1, M - 1, M, M + 1, 2 * M, 5][..], b'x'),
            (&[M + 20, 2 * M + 3][..], 0xFE),
        ] {
            let bytes = result_of(rows, first, caps);
            for chunk in [1 << 14, 1_000_003, M, M + 4, bytes.len()] {
                let mut r = Response::expect(Expect::Query, caps);
                let mut last = Follow::More;
                for piece in bytes.chunks(chunk) {
                    assert_eq!(last, Follow::More);
                    last = r.follow(piece).expect("well formed");
                }
                assert!(matches!(last, Follow::Ended { .. }) && r.is_ended());
                assert_eq!(r.rows(), rows.len() as u64);
            }
        }
    }
}

#[test]
fn the_tail_of_a_split_row_is_not_taken_for_an_end() {
    // The second packet of the row begins with 0xFE or 0xFF: bytes of a value, not an EOF or an
    // error.
    for tail in [&b"\xfe\0\0\x02\0"[..], b"\xff\x25\x05#70100Query", b""] {
        let mut row = vec![b'x'; packet::MAX_PAYLOAD];
        row.extend_from_slice(tail);
        let mut bytes = result_of(&[], b'x', NEW);
        bytes.truncate(bytes.len() - 11);
        let mut seq = 3;
        packet::append(&mut bytes, &mut seq, &row);
        packet::append(&mut bytes, &mut seq, b"\xfe\0\0\x02\0\0\0");
        let near = bytes.len() - 11 - tail.len() - 6;
        for cut in near..bytes.len() {
            let mut r = Response::expect(Expect::Query, NEW);
            assert_eq!(r.follow(&bytes[..cut]), Ok(Follow::More));
            assert_eq!(
                r.follow(&bytes[cut..]),
                Ok(Follow::Ended {
                    used: bytes.len() - cut
                })
            );
            assert_eq!((r.rows(), r.outcome()), (1, Outcome::Ok));
        }
    }
}

#[test]
fn what_our_own_servers_write_is_followed_too() {
    use wire::execute::Value;
    use wire::resultset::{Column, Writer};
    for caps in [
        OLD,
        NEW,
        OLD | caps::DEPRECATE_EOF,
        OLD | caps::SESSION_TRACK,
    ] {
        let columns = [
            Column::integer("n"),
            Column::text("t"),
            Column::double("d"),
            Column::blob("b"),
        ];
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out, 0, caps, status::AUTOCOMMIT);
        w.columns(&columns);
        w.text_row([Some(&b"1"[..]), None, Some(b"1.5"), Some(b"")]);
        w.end(7);
        let r = follow_everywhere(Expect::Query, caps, &out);
        assert_eq!(
            (r.rows(), r.columns(), r.status(), r.warnings()),
            (1, 4, status::AUTOCOMMIT, 7)
        );

        out.clear();
        let mut w = Writer::new(&mut out, 0, caps, status::AUTOCOMMIT);
        w.columns(&columns);
        w.binary_row(
            &columns,
            &[
                Value::Int(-1),
                Value::Null,
                Value::Double(1.5),
                Value::Bytes(b"xyz"),
            ],
        );
        w.binary_row(&columns, &[]);
        w.end(0);
        assert_eq!(follow_everywhere(Expect::Execute, caps, &out).rows(), 2);

        out.clear();
        Writer::new(&mut out, 0, caps, 0).prepared(9, 2, &columns);
        let r = follow_everywhere(Expect::Prepare, caps, &out);
        assert_eq!(
            r.prepared(),
            Some(Prepared {
                id: 9,
                columns: 4,
                params: 2
            })
        );

        out.clear();
        Writer::new(&mut out, 0, caps, 0).field_list(&columns);
        assert_eq!(
            follow_everywhere(Expect::FieldList, caps, &out).columns(),
            4
        );

        out.clear();
        Writer::new(&mut out, 0, caps, 2).ok(&ok::Ok {
            affected: 300,
            info: b"words",
            ..ok::Ok::default()
        });
        let r = follow_everywhere(Expect::Simple, caps, &out);
        assert_eq!((r.affected_rows(), r.status()), (300, 2));

        out.clear();
        Writer::new(&mut out, 0, caps, 0).line(b"Uptime: 1");
        follow_everywhere(Expect::Line, caps, &out);
    }
    assert_eq!(Column::integer("x").kind, Type::LONGLONG);
}

#[test]
fn packets_out_of_order_are_refused() {
    let mut bytes = capture("new select");
    let r = follow(Expect::Query, NEW, &bytes);
    assert_eq!(r.last_seq(), 8);
    // the count of columns is lost: definitions are taken for it, or the order shows
    bytes.drain(..5);
    assert!(Response::expect(Expect::Query, NEW).follow(&bytes).is_err());
    let mut bytes = capture("new select");
    let last = bytes.len() - 8;
    bytes[last] += 1;
    assert!(Response::expect(Expect::Query, NEW).follow(&bytes).is_err());
}

/// Words of a server before it closes an idle connection, and its words on a command, differ in
/// their number only.
#[test]
fn what_was_said_before_the_command_came_is_no_answer_to_it() {
    let error = |seq| [&[17, 0, 0, seq, 0xFF, 0xBF, 0x0F], &b"#HY000Too idle"[..]].concat();
    let row = |seq| [2, 0, 0, seq, 1, b'x'];
    for client in [NEW, OLD] {
        for (sent, seq, fits) in [
            (0, 1, true),
            (0, 0, false),
            (0, 2, false),
            (2, 3, true),
            (2, 0, false),
            (255, 0, true),
        ] {
            for expect in [
                Expect::Query,
                Expect::Execute,
                Expect::Prepare,
                Expect::Simple,
                Expect::Fetch,
            ] {
                let bytes = error(seq);
                let got = Response::expect(expect, NEW).to_packet(sent).follow(&bytes);
                assert_eq!(got.is_ok(), fits, "{expect:?} {sent} {seq}");
                let mut recode = Recode::expect(expect, NEW, client, 2).to_packet(sent);
                assert_eq!(
                    recode.follow(&bytes, &mut Vec::new()).is_ok(),
                    fits,
                    "{expect:?} {sent} {seq}"
                );
                assert_eq!(
                    Summed::expect(expect, NEW)
                        .to_packet(sent)
                        .follow(&bytes)
                        .is_ok(),
                    fits
                );
            }
            assert_eq!(
                Response::expect(Expect::Fetch, NEW)
                    .to_packet(sent)
                    .follow(&row(seq))
                    .is_ok(),
                fits,
                "{sent} {seq}"
            );
        }
    }
}

#[test]
fn nonsense_is_refused_and_never_panics() {
    let cases: &[&[u8]] = &[
        b"\0\0\0\x01",                               // an empty packet
        b"\x01\0\0\x01\xfb",                         // a file without a name is a file all the same
        b"\x01\0\0\x01\0",                           // an OK that ends too early
        b"\x02\0\0\x01\x01\x01",                     // a count of columns with something behind it
        b"\x09\0\0\x01\xfe\xff\xff\xff\xff\0\0\0\0", // four billion columns
        b"\xff\xff\xff\x01\0",                       // an OK of 16 MiB
        b"\x02\0\0\x01\xff\x01",                     // an ERR without its number
    ];
    for (i, bytes) in cases.iter().enumerate() {
        let got = Response::expect(Expect::Query, NEW).follow(bytes);
        assert_eq!(got.is_err(), i != 1, "{bytes:02x?}: {got:?}");
    }
    // A final packet over its bound is refused at its header, before anything is gathered.
    assert!(
        Response::expect(Expect::Simple, NEW)
            .follow(b"\x01\0\x10\x01\0")
            .is_err()
    );
}

/// Answers that both servers sent for the same thing to clients with and without DEPRECATE_EOF
/// (session tracking aside).
const PAIRS: &[(&str, Expect)] = &[
    ("ddl", Expect::Query),
    ("insert", Expect::Query),
    ("select", Expect::Query),
    ("empty", Expect::Query),
    ("error", Expect::Query),
    ("multi", Expect::Query),
    ("multierr", Expect::Query),
    ("call", Expect::Query),
    ("use", Expect::Simple),
    ("setoption", Expect::Simple),
    ("fieldlist", Expect::FieldList),
    ("prepare", Expect::Prepare),
    ("prepareset", Expect::Prepare),
    ("prepareins", Expect::Prepare),
    ("preparecols", Expect::Prepare),
    ("prepareerr", Expect::Prepare),
    ("execute", Expect::Execute),
    ("execcursor", Expect::Execute),
    ("fetch9", Expect::Fetch),
    ("infile", Expect::Query),
    ("schema", Expect::Query),
];

/// The bytes without what depends on the moment: status of EOF packets in the middle, and the flag
/// for session changes.
fn comparable(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some((len, _)) = packet::whole(&bytes[at..]) {
        if len == 5 && bytes[at + 4] == 0xFE {
            bytes[at + 7] = 0;
            bytes[at + 8] = 0;
        }
        at += 4 + len;
    }
    bytes
}

#[test]
fn a_response_is_written_anew_as_the_server_itself_would_have_written_it() {
    for (server, own) in [(MARIADB, 0), (MYSQL, caps::LONG_PASSWORD)] {
        let [old_caps, new_caps] = [OLD, NEW].map(|caps| caps | own);
        for (what, expect) in PAIRS {
            let (old, new) = (
                capture_of(server, &format!("old {what}")),
                capture_of(server, &format!("new {what}")),
            );
            for chunk in [1, 2, 3, 7, 1000] {
                let mut out = Vec::new();
                let mut recode = Recode::expect(*expect, new_caps, OLD, 2);
                for piece in new.chunks(chunk) {
                    recode.follow(piece, &mut out).expect("well formed");
                }
                assert!(recode.response().is_ended());
                // A MariaDB that is asked for no session tracking sets its flag in EOF packets all
                // the same.
                assert_eq!(
                    comparable(out.clone()),
                    comparable(old.clone()),
                    "new to old: {what} by {chunk}"
                );

                // And back again, as far as the session changes are not lost.
                let plain = caps::DEPRECATE_EOF | OLD;
                let mut back = Vec::new();
                let mut recode = Recode::expect(*expect, old_caps, plain, 2);
                for piece in out.chunks(chunk) {
                    recode.follow(piece, &mut back).expect("well formed");
                }
                let mut want = Vec::new();
                Recode::expect(*expect, new_caps, plain, 2)
                    .follow(&new, &mut want)
                    .expect("well formed");
                assert_eq!(back, want, "old to new: {what} by {chunk}");
            }
        }
    }
}

/// A client without CLIENT_DEPRECATE_EOF learns from the EOF before a row that it is the OUT
/// parameters.
#[test]
fn the_flags_before_the_rows_of_a_call_are_those_of_the_server() {
    fn flags_of_ends(bytes: &[u8]) -> Vec<u16> {
        let mut all = Vec::new();
        let mut at = 0;
        while let Some((len, _)) = packet::whole(&bytes[at..]) {
            if len == 7 && bytes[at + 4] == 0xFE {
                all.push(u16::from_le_bytes([bytes[at + 7], bytes[at + 8]]) & !0x4000);
            }
            at += 4 + len;
        }
        all
    }
    /// Without what depends on the moment: session changes (which MariaDB tells everybody of), and
    /// how a table was read.
    fn flags_of_eofs(bytes: &[u8]) -> Vec<u16> {
        let mut all = Vec::new();
        let mut at = 0;
        while let Some((len, _)) = packet::whole(&bytes[at..]) {
            if len == 5 && bytes[at + 4] == 0xFE {
                all.push(
                    u16::from_le_bytes([bytes[at + 7], bytes[at + 8]])
                        & !(0x4000 | 0x0020 | 0x0010),
                );
            }
            at += 4 + len;
        }
        all
    }
    for (server, own) in [(MARIADB, 0), (MYSQL, caps::LONG_PASSWORD)] {
        for (what, expect) in [("execcall", Expect::Execute), ("call", Expect::Query)] {
            let (old, new) = (
                capture_of(server, &format!("old {what}")),
                capture_of(server, &format!("new {what}")),
            );
            for chunk in [1, 2, 5, 16, 100, 1000] {
                let mut out = Vec::new();
                let mut recode = Recode::expect(expect, NEW | own, OLD, 2);
                recode.of_a_call();
                for piece in new.chunks(chunk) {
                    let mut next = Vec::new();
                    recode.follow(piece, &mut next).expect("well formed");
                    out.append(&mut next);
                }
                assert!(recode.response().is_ended());
                assert_eq!(
                    comparable(out.clone()),
                    comparable(old.clone()),
                    "{what} by {chunk}"
                );
                assert_eq!(
                    flags_of_eofs(&out),
                    flags_of_eofs(&old),
                    "{what} by {chunk}"
                );
                assert_eq!(recode.last_seq(), follow(expect, OLD, &old).last_seq());

                // And from a server without it.
                let plain = OLD | caps::DEPRECATE_EOF;
                let (mut back, mut want) = (Vec::new(), Vec::new());
                let mut recode = Recode::expect(expect, OLD | own, plain, 2);
                for piece in old.chunks(chunk) {
                    recode.follow(piece, &mut back).expect("well formed");
                }
                Recode::expect(expect, NEW | own, plain, 2)
                    .follow(&new, &mut want)
                    .expect("well formed");
                assert_eq!(
                    flags_of_ends(&back),
                    flags_of_ends(&want),
                    "{what} by {chunk}"
                );
            }
        }
    }
}

/// Bytes that are kept back of a CALL are not lost, neither when its row is too long to be kept,
/// nor when an error follows it.
#[test]
fn nothing_of_a_call_is_kept_for_ever() {
    for length in [10, packet::MAX_PAYLOAD - 1, packet::MAX_PAYLOAD + 5] {
        let (old, new) = (
            result_of(&[length], b'x', OLD),
            result_of(&[length], b'x', NEW),
        );
        let failed = |bytes: &[u8], end: usize| {
            let start = bytes.len() - end - 4;
            let mut bytes = bytes.to_vec();
            let seq = bytes[start + 3];
            bytes.truncate(start);
            bytes.extend_from_slice(
                &[&[13, 0, 0, seq, 0xFF, 0x52, 0x04], &b"#42000ohno"[..]].concat(),
            );
            bytes
        };
        for (old, new) in [
            (old.clone(), new.clone()),
            (failed(&old, 5), failed(&new, 7)),
        ] {
            for chunk in [1 << 14, new.len()] {
                let mut recode = Recode::expect(Expect::Query, NEW, OLD, 2);
                recode.of_a_call();
                let mut out = Vec::new();
                for piece in new.chunks(chunk) {
                    let mut next = Vec::new();
                    recode.follow(piece, &mut next).expect("well formed");
                    out.append(&mut next);
                }
                assert!(recode.response().is_ended());
                assert!(
                    comparable(out) == comparable(old.clone()),
                    "{length} by {chunk}"
                );
            }
        }
    }
}

#[test]
fn rows_of_any_size_are_written_anew() {
    const M: usize = packet::MAX_PAYLOAD;
    let lengths = [1, M, 3, M + 1, 2];
    let (old, new) = (
        result_of(&lengths, b'x', OLD),
        result_of(&lengths, b'x', NEW),
    );
    for (from, to, bytes, want) in [(OLD, NEW, &old, &new), (NEW, OLD, &new, &old)] {
        for chunk in [1 << 14, M + 4, bytes.len()] {
            let mut out = Vec::new();
            let mut recode = Recode::expect(Expect::Query, from, to, 2);
            for piece in bytes.chunks(chunk) {
                recode.follow(piece, &mut out).expect("well formed");
            }
            assert!(out == *want, "{chunk}");
            assert_eq!(recode.response().rows(), 5);
        }
    }
    assert!(Recode::is_needed(NEW, OLD) && !Recode::is_needed(NEW, NEW | caps::FOUND_ROWS));
}
