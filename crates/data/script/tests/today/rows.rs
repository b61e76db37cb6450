//! Rows on their way, and answers of several results.

use crate::*;

/// A session whose statement has gone to the server, and the script sees the rows of its answer.
fn streams(hook: &str) -> World {
    let world = world(&format!("function m.on.rows(s, r)\n{hook}\nend"));
    let item = becomes(&world, &query("SELECT 1")).expect("a queue");
    assert!(item.is_streamed && !item.is_collected);
    world
}

/// Bytes that go on of an answer that comes in such pieces, or the words of a failure.
fn through(world: &World, bytes: &[u8], piece: usize, is_binary: bool) -> Result<Vec<u8>, String> {
    let mut passage = Passage::new(CAPS, is_binary, false, 1000);
    let mut out = Vec::new();
    for piece in bytes.chunks(piece) {
        let taken = passage.follow(&world.script.0, piece, &mut out);
        taken.map_err(|failed| failed.0)?;
    }
    Ok(out)
}

const PEOPLE: [(i64, Option<&str>); 3] = [(1, Some("4711")), (2, None), (3, Some("0815"))];

#[test]
fn rows_pass_through_a_function_as_they_come() {
    let world = streams(
        "assert(r.columns[2] == 'card' and r.fields[1].org_table == 'users' and r.number == 1)
         return r:map(function(row)
           if row.id == 2 then return false end
           row.card = 'xx' .. row.card:sub(3)
         end, { 'id', 'card' }, function(count) print(count) end)",
    );
    for is_binary in [false, true] {
        let before = packets(&PEOPLE, is_binary);
        let after = packets(&[(1, Some("xx11")), (3, Some("xx15"))], is_binary);
        for piece in 1..=before.len() {
            assert_eq!(
                through(&world, &before, piece, is_binary),
                Ok(after.clone()),
                "{piece}"
            );
            assert_eq!(world.host.lines.take(), ["3"]);
        }
    }
}

#[test]
fn rows_that_nobody_sees_are_as_they_were() {
    let nothing = [
        "",
        "return r",
        "return m.pass()",
        "return r:map(function() end, { 'none', optional = true })",
        "return r:map(function(row) return row end)",
        "return r:map(function() return false end, {})",
    ];
    for hook in nothing {
        let world = streams(hook);
        for is_binary in [false, true] {
            let bytes = packets(&PEOPLE, is_binary);
            for piece in [1, 7, bytes.len()] {
                assert_eq!(
                    through(&world, &bytes, piece, is_binary),
                    Ok(bytes.clone()),
                    "{hook}"
                );
            }
        }
    }
}

#[test]
fn columns_go_as_another_type_where_the_script_says_so() {
    let world = streams(
        "return r:map(function(row) if row.id == 2 then row.id = 'two' end end, { 'id', as = 'string' })",
    );
    let columns = [Column::text("id"), Column::text("card")];
    for is_binary in [false, true] {
        let out = through(&world, &packets(&PEOPLE, is_binary), 5, is_binary).unwrap();
        let read = match is_binary {
            true => wire::rows::read_executed(&out, CAPS),
            false => wire::rows::read(&out, CAPS),
        };
        let read = read.unwrap();
        assert_eq!(read.shapes[0].kind, columns[0].kind);
        let ids = read.rows.iter().map(|row| row[0].clone().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), [&b"1"[..], b"two", b"3"]);
    }
    let world = streams("return r:map(function(row) row.id = 'two' end, { 'id' })");
    let failed = through(&world, &packets(&PEOPLE, true), 500, true).unwrap_err();
    assert!(
        failed.contains("'two' is no value of the type that column 'id' has"),
        "{failed}"
    );
}

#[test]
fn each_of_several_results_is_asked_about() {
    let world = streams(
        "if r.number == 2 then return m.error(1, 'HY000', 'no') end
        return r:map(function() return false end, { 1 })",
    );
    let mut bytes = Vec::new();
    let more = 2 | wire::status::MORE_RESULTS;
    let mut seq = 0;
    for status in [more, more, 2] {
        let mut writer = Writer::new(&mut bytes, seq, CAPS, status);
        writer.columns(&columns());
        writer.text_row([Some(&b"1"[..]), None]);
        writer.end(0);
        seq = writer.last_seq();
    }
    let mut wanted = Vec::new();
    let mut writer = Writer::new(&mut wanted, 0, CAPS, more);
    writer.columns(&columns());
    writer.end(0);
    writer.err(&wire::ok::Err {
        code: 1,
        state: *b"HY000",
        message: b"no",
    });
    for piece in [1, 9, bytes.len()] {
        assert_eq!(through(&world, &bytes, piece, false), Ok(wanted.clone()));
    }
}

#[test]
fn a_script_that_fails_at_a_row_can_be_passed_by_or_ends_the_answer() {
    let text = "return r:map(function(row) if row.id == 3 then error('here') end row.card = 'x' end, { 1, 2 })";
    let world = streams(text);
    let bytes = packets(&PEOPLE, false);
    for passes in [true, false] {
        let mut passage = Passage::new(CAPS, false, false, 1000);
        let mut out = Vec::new();
        // The first row comes alone.
        let failed = bytes
            .chunks(6)
            .find_map(|piece| passage.follow(&world.script.0, piece, &mut out).err());
        let failed = failed.expect("a failure").0;
        assert!(failed.starts_with("(on.rows) t.lua:3: here"), "{failed}");
        if passes {
            assert!(passage.let_pass(&mut out));
            assert_eq!(passage.follow(&world.script.0, b"", &mut out), Ok(()));
            assert!(!passage.is_refused());
        } else {
            let error = Response::Err {
                code: 1,
                state: *b"HY000",
                message: b"no".to_vec(),
            };
            passage.refuse(&error, &mut out);
            assert!(passage.is_refused());
            assert!(out.ends_with(b"#HY000no"), "{out:?}");
        }
    }
    let calls = world.host.calls.take();
    assert!(
        calls.iter().any(|call| call.starts_with("on.rows 0 Some(")),
        "{calls:?}"
    );
}

#[test]
fn mistakes_with_rows_on_their_way_are_told() {
    for (hook, words) in [
        (
            "return 7",
            "on.rows must return nothing, the result, or what r:map or m.error makes; it returned a number",
        ),
        (
            "return m.result { affected_rows = 1 }",
            "it returned what m.result has made",
        ),
        (
            "print(r.row_count)",
            "r.row_count is known when all rows are",
        ),
        (
            "for row in r:rows() do end",
            "r.rows is known when all rows are",
        ),
        ("print(r.colums)", "a result has no 'colums'"),
        (
            "return r:map(function() end, { 'none' })",
            "the result has no column 'none'",
        ),
        (
            "return r:map(function() end, { 1, as = 'text' })",
            "the type 'text', which there is not",
        ),
        (
            "return r:map(function() return 7 end, { 1 })",
            "must return a row, or false; it returned a number",
        ),
        (
            "return r:map(function() s:query('SELECT 1') end, { 1 })",
            "a query waits for a server",
        ),
        (
            "return r:map(function() while true do end end, { 1 })",
            "the hook has run for too long",
        ),
    ] {
        let failed = through(&streams(hook), &packets(&PEOPLE, false), 500, false).unwrap_err();
        assert!(failed.contains(words), "{hook}: {failed}");
    }
    let world = streams("return r:map(function() end, { 'card' })");
    let long = "x".repeat(2000);
    let failed = through(&world, &packets(&[(1, Some(&long))], false), 50, false).unwrap_err();
    assert!(
        failed.contains("a row has more bytes than result_mb_max allows"),
        "{failed}"
    );
}

#[test]
fn an_answer_without_rows_is_kept_for_the_other_hook() {
    let world = world(
        "function m.on.rows(s, r) return m.error(1, 'HY000', 'no') end
        function m.on.result(s, r) return m.result { affected_rows = r.affected_rows + 1 } end",
    );
    let item = becomes(&world, &query("UPDATE t SET a = 1")).unwrap();
    assert!(item.is_streamed && item.is_collected);
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, 0, CAPS, 2).ok(&wire::ok::Ok {
        affected: 3,
        ..Default::default()
    });
    let mut passage = Passage::new(CAPS, false, true, 1000);
    let mut out = Vec::new();
    passage.follow(&world.script.0, &bytes, &mut out).unwrap();
    assert!(passage.is_kept() && passage.last_seq().is_none() && out == bytes);
    let counts = Counts {
        affected: 3,
        ..Counts::default()
    };
    let outcome = Outcome::new(Some(bytes), CAPS, false, counts);
    let verdict = world.script.read_query_result(&item, outcome);
    let wanted = Response::Ok {
        affected: 4,
        insert_id: 0,
    };
    assert_eq!(verdict, Ok(Verdict::Instead(wanted)));
}

/// Two results, and an OK behind them.
fn three() -> Outcome {
    let (mut bytes, mut seq) = (Vec::new(), 0);
    let more = 2 | wire::status::MORE_RESULTS;
    for (at, (id, card)) in PEOPLE.iter().enumerate().take(2) {
        let status = more | u16::from(at == 1) << 5;
        let mut writer = Writer::new(&mut bytes, seq, CAPS, status);
        writer.columns(&columns());
        writer.text_row([Some(id.to_string().as_bytes()), card.map(str::as_bytes)]);
        writer.end(u16::from(at == 0));
        seq = writer.last_seq();
    }
    Writer::new(&mut bytes, seq, CAPS, 2).ok(&wire::ok::Ok {
        affected: 3,
        ..Default::default()
    });
    let counts = Counts {
        has_rows: true,
        rows: 1,
        ..Counts::default()
    };
    Outcome::new(Some(bytes), CAPS, false, counts)
}

#[test]
fn an_answer_of_several_results_is_a_list() {
    let judged = |text: &str| {
        let world = world(&format!("function m.on.result(s, r)\n{text}\nend"));
        let item = becomes(&world, &query("q")).unwrap();
        let verdict = world.script.read_query_result(&item, three());
        (verdict.map_err(|failed| failed.0), world.host.lines.take())
    };
    let written = |text: &str| {
        let (Ok(Verdict::Instead(response)), _) = judged(text) else {
            panic!("no answer")
        };
        let mut out = Vec::new();
        response.write(&mut out, 0, (CAPS, 2, 0), false);
        out
    };
    let before = three().packets.unwrap();
    let reads = "local all = r.results
        print(#all, all[1].row_count, all[2].warnings, all[3].affected_rows, all[3].has_rows, #all[3].fields)
        for row in all[1]:rows() do print(row.id, row.card) end
        for row in all[2]:rows() do print(row.id, row.card) end";
    let (verdict, lines) = judged(reads);
    assert_eq!(verdict, Ok(Verdict::PassOn));
    assert_eq!(lines, ["3\t1\t0\t3\tfalse\t0", "1\t4711", "2\tnil"]);
    // As they are, with flags and warnings of their own.
    assert_eq!(
        written("return { r.results[1], r.results[2], r.results[3] }"),
        *before
    );
    let same = "return { r.results[1]:map(function() end, { 1 }), r.results[2]:map(function() end), r.results[3] }";
    assert_eq!(written(same), *before);
    let masked = written(
        "return { r.results[1]:map(function(row) row.card = 'xxxx' end, { 'card' }), r.results[2], r.results[3] }",
    );
    let shown = String::from_utf8_lossy(&before).replace("4711", "xxxx");
    assert_eq!(String::from_utf8_lossy(&masked), shown);
    // One that was not the last is the last now, and the other way round.
    let swapped = written("return { r.results[3], m.result { affected_rows = 7 }, r.results[1] }");
    let parts = wire::rows::results(&swapped, CAPS);
    let last = parts.len() - 1;
    let status = |at: usize| {
        let mut follows = wire::response::Response::expect(wire::response::Expect::Query, CAPS);
        follows.follow(parts[at]).unwrap();
        follows.status() & wire::status::MORE_RESULTS != 0
    };
    assert_eq!(
        (parts.len(), status(0), status(1), status(last)),
        (3, true, true, false)
    );
    for (text, words) in [
        ("return { r }", "must return results in its list"),
        ("return { 7 }", "must return results in its list"),
        ("return {}", "or a list of results; it returned a table"),
        (
            "return { m.error(1, 'HY000', 'no'), r.results[1] }",
            "an error in its list that is not the last result",
        ),
        (
            "return r.results[1].results",
            "one of several results has no 'results'",
        ),
        (
            "return r:map(function() end, { 1 })",
            "the answer has several results: r.results is a list of them",
        ),
    ] {
        let words_of = judged(text).0.unwrap_err();
        assert!(words_of.contains(words), "{text}: {words_of}");
    }
}
