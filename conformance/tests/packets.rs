//! What no client library asks for, in raw packets: the answers through Millrace are those of the
//! server, byte for byte.
#![forbid(unsafe_code)]

use conformance::clients::{Client, app};
use conformance::compare::difference;
use conformance::definitions;
use conformance::dynamic;
use conformance::moved;
use conformance::proxy::{DRIVERS, Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::watch::watched;
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::{Arc, OnceLock};
use wire::caps::{self, Caps};
use wire::response::Expect;

/// Steps of a client; the text is all that it saw.
type Script = fn(&mut Raw) -> Result<String, String>;

/// Name, capabilities besides the plain ones, script.
const SCRIPTS: &[(&str, Caps, Script)] = &[
    ("a_cursor_gives_its_rows_bit_by_bit", 0, a_cursor),
    (
        "a_cursor_gives_its_rows_bit_by_bit_without_eof",
        caps::DEPRECATE_EOF,
        a_cursor,
    ),
    (
        "cursors_end_with_reset_close_and_execution",
        caps::DEPRECATE_EOF,
        cursors_end,
    ),
    ("two_cursors_of_one_text_are_two", 0, two_cursors),
    (
        "what_has_no_rows_opens_no_cursor",
        caps::DEPRECATE_EOF,
        no_cursor,
    ),
    (
        "unknown_statements_are_refused_in_the_words_of_servers",
        0,
        unknown_statements,
    ),
    (
        "a_changed_table_is_seen_by_the_next_execution",
        caps::DEPRECATE_EOF,
        a_changed_table,
    ),
    (
        "a_call_that_fails_halfway_is_not_repeated",
        caps::DEPRECATE_EOF,
        a_call_that_fails_halfway,
    ),
    (
        "a_statement_means_what_it_meant_when_it_was_prepared",
        caps::DEPRECATE_EOF,
        prepared_modes,
    ),
    ("long_data_serves_one_execution", 0, long_data),
    ("nothing_but_null_needs_no_types", 0, nulls_without_types),
    (
        "nothing_but_null_needs_no_types_without_eof",
        caps::DEPRECATE_EOF,
        nulls_without_types,
    ),
    (
        "nothing_but_null_needs_no_types_among_attributes",
        caps::QUERY_ATTRIBUTES,
        nulls_without_types,
    ),
    (
        "parameters_that_move_keep_type_and_value",
        0,
        parameters_of_all_types,
    ),
    (
        "parameters_that_move_keep_type_and_value_without_eof",
        caps::DEPRECATE_EOF,
        parameters_of_all_types,
    ),
    (
        "parameters_that_move_keep_type_and_value_among_attributes",
        caps::DEPRECATE_EOF | caps::QUERY_ATTRIBUTES,
        parameters_of_all_types,
    ),
    ("parameters_that_move_come_ahead_too", 0, parameters_ahead),
    ("parameters_may_be_left_out", 0, parameters_left_out),
    (
        "parameters_may_be_left_out_without_eof",
        caps::DEPRECATE_EOF,
        parameters_left_out,
    ),
    (
        "query_attributes_are_read_where_they_were_sent",
        caps::DEPRECATE_EOF | caps::QUERY_ATTRIBUTES | caps::MULTI_STATEMENTS,
        attributes_of_queries,
    ),
    (
        "query_attributes_of_executions",
        caps::QUERY_ATTRIBUTES,
        attributes_of_executions,
    ),
    (
        "query_attributes_of_every_type",
        caps::QUERY_ATTRIBUTES,
        attributes_of_every_type,
    ),
    (
        "query_attributes_that_are_none",
        caps::QUERY_ATTRIBUTES,
        attributes_that_are_none,
    ),
    (
        "who_has_not_agreed_sends_no_query_attributes",
        0,
        attributes_of_queries,
    ),
    (
        "several_statements_are_answered_one_after_another",
        caps::MULTI_STATEMENTS,
        several,
    ),
    (
        "several_statements_without_eof",
        caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF,
        several,
    ),
    (
        "several_statements_with_session_tracking",
        caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF | caps::SESSION_TRACK,
        several,
    ),
    (
        "an_error_ends_several_statements",
        caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF,
        several_with_error,
    ),
    (
        "what_cannot_be_taken_apart_goes_whole",
        caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF,
        several_whole,
    ),
    (
        "who_did_not_ask_may_not_send_several",
        caps::DEPRECATE_EOF,
        several_not_asked,
    ),
    ("statements_are_prepared_in_sql", 0, dynamic::plain),
    (
        "statements_are_prepared_in_sql_without_eof",
        caps::DEPRECATE_EOF,
        dynamic::plain,
    ),
    (
        "what_is_wrong_with_statements_in_sql",
        caps::DEPRECATE_EOF,
        dynamic::errors,
    ),
    ("quotes_within_statements_in_sql", 0, dynamic::quotes),
    ("statements_in_sql_from_variables", 0, dynamic::variables),
    (
        "what_statements_in_sql_leave",
        caps::DEPRECATE_EOF,
        dynamic::leaves,
    ),
    (
        "programs_use_the_names_of_their_session",
        caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF,
        dynamic::programs,
    ),
    (
        "statements_are_executed_immediately",
        caps::DEPRECATE_EOF,
        dynamic::immediate,
    ),
    (
        "statements_in_sql_among_several",
        caps::MULTI_STATEMENTS,
        dynamic::several,
    ),
    (
        "a_name_that_is_prepared_anew_in_vain",
        caps::DEPRECATE_EOF,
        dynamic::in_vain,
    ),
    (
        "a_change_of_state_by_statements_in_sql_is_told",
        caps::DEPRECATE_EOF | caps::SESSION_TRACK,
        dynamic::told,
    ),
    (
        "procedures_are_called_by_name",
        caps::DEPRECATE_EOF,
        dynamic::called,
    ),
    (
        "parameters_that_move_are_found_by_statements_in_sql",
        caps::DEPRECATE_EOF,
        dynamic::moved,
    ),
    (
        "calls_have_several_results_and_out_parameters",
        caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF,
        calls,
    ),
    (
        "calls_of_clients_with_eof_have_out_parameters",
        caps::MULTI_STATEMENTS,
        calls,
    ),
    (
        "an_execution_asks_for_a_file_where_servers_prepare_that",
        caps::LOCAL_FILES,
        an_executed_file,
    ),
    (
        "an_execution_asks_for_a_file_without_eof",
        caps::LOCAL_FILES | caps::DEPRECATE_EOF,
        an_executed_file,
    ),
    (
        "a_file_of_the_client_is_loaded",
        caps::LOCAL_FILES | caps::DEPRECATE_EOF,
        a_file,
    ),
    (
        "a_file_among_several_statements",
        caps::LOCAL_FILES | caps::MULTI_STATEMENTS,
        a_file_among_several,
    ),
    (
        "every_answer_tells_whether_a_transaction_is_open",
        0,
        transactions_told,
    ),
    (
        "every_answer_tells_whether_a_transaction_is_open_without_eof",
        caps::DEPRECATE_EOF,
        transactions_told,
    ),
    (
        "a_client_without_files_is_refused_by_the_server",
        0,
        no_file,
    ),
    (
        "columns_are_described_where_the_session_wants_that",
        OPTIONAL | caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF,
        definitions::left_out,
    ),
    (
        "columns_are_described_where_the_session_wants_that_with_eof",
        OPTIONAL | caps::MULTI_STATEMENTS,
        definitions::left_out,
    ),
    (
        "columns_are_described_to_those_who_cannot_do_without",
        caps::DEPRECATE_EOF,
        definitions::left_out,
    ),
    (
        "columns_are_described_to_those_who_cannot_do_without_with_eof",
        0,
        definitions::left_out,
    ),
    (
        "what_clients_remember_of_columns_is_not_said_again",
        caps::MARIADB_CACHE_METADATA | caps::DEPRECATE_EOF,
        definitions::remembered,
    ),
    (
        "what_clients_remember_of_columns_is_not_said_again_with_eof",
        caps::MARIADB_CACHE_METADATA,
        definitions::remembered,
    ),
];

const OPTIONAL: Caps = caps::OPTIONAL_METADATA;

fn a_cursor(raw: &mut Raw) -> Result<String, String> {
    let mut seen =
        raw.prepare("SELECT id, id * 2 AS twice FROM conf.numbers WHERE id < ? ORDER BY id")?;
    seen += &raw.execute(0, 1, b"\0\x01\x03\0\x08\0\0\0")?;
    for rows in [2, 3, 1] {
        seen += &raw.fetch(0, rows)?;
        seen += &raw.query("SELECT 'between'")?;
    }
    seen += &raw.fetch(0, 100)?;
    seen += &raw
        .fetch(0, 1)?
        .replace(&format!("({})", raw.statements[0]), "(N)");
    // Types that were bound before need not come again.
    seen += &raw.execute(0, 1, b"\0\0\x03\0\0\0")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.fetch(0, 2)?;
    Ok(seen)
}

fn cursors_end(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("SELECT id FROM conf.numbers ORDER BY id")?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 1)?;
    let reset = raw.statement(0x1A, 0);
    seen += &raw.ask(&reset, Expect::Simple)?;
    seen += &raw
        .fetch(0, 1)?
        .replace(&format!("({})", raw.statements[0]), "(N)");
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 1)?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 1)?;
    let close = raw.statement(0x19, 0);
    raw.send(0, &close)?;
    seen += &raw.query("SELECT 'closed'")?;
    seen += &raw.prepare("SELECT id FROM conf.numbers WHERE id = 7")?;
    seen += &raw.execute(1, 1, b"")?;
    seen += &raw.fetch(1, 1)?;
    seen += &raw.fetch(1, 1)?;
    Ok(seen)
}

fn two_cursors(raw: &mut Raw) -> Result<String, String> {
    let mut seen = String::new();
    for _ in 0..3 {
        seen += &raw.prepare("SELECT id FROM conf.numbers ORDER BY id")?;
    }
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.execute(1, 1, b"")?;
    seen += &raw.fetch(1, 1)?;
    seen += &raw.execute(2, 1, b"")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.fetch(2, 3)?;
    seen += &raw.fetch(1, 2)?;
    Ok(seen)
}

fn no_cursor(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("UPDATE conf.scratch SET words = 'x' WHERE id = 123456")?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.prepare(
        "SELECT id FROM conf.numbers WHERE id = (SELECT id FROM conf.numbers WHERE id < 4)",
    )?;
    seen += &raw.execute(1, 1, b"")?;
    seen += &raw.prepare("SHOW TABLES FROM conf2")?;
    seen += &raw.execute(2, 0, b"")?;
    Ok(seen)
}

fn unknown_statements(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.execute(0, 0, b"")?;
    seen += &raw.fetch(0, 1)?;
    let reset = raw.statement(0x1A, 0);
    seen += &raw.ask(&reset, Expect::Simple)?;
    let close = raw.statement(0x19, 0);
    raw.send(0, &close)?;
    seen += &raw.query("SELECT 'still here'")?;
    Ok(seen)
}

fn a_changed_table(raw: &mut Raw) -> Result<String, String> {
    let mut seen =
        raw.query("CREATE OR REPLACE VIEW conf.changing AS SELECT id FROM conf.numbers")?;
    seen += &raw.prepare("SELECT * FROM conf.changing WHERE id < 4 ORDER BY id")?;
    seen += &raw.execute(0, 0, b"")?;
    seen += &raw.query("CREATE OR REPLACE VIEW conf.changing AS SELECT 'new' AS words, id, id + 1 FROM conf.numbers")?;
    seen += &raw.execute(0, 0, b"")?;
    seen += &raw.execute(0, 1, b"")?;
    seen += &raw.fetch(0, 2)?;
    seen += &raw.query("DROP VIEW conf.changing")?;
    seen += &raw.execute(0, 0, b"")?;
    Ok(seen)
}

/// Error of a statement inside of a procedure, which is not about the CALL itself: that must not be
/// run again.
fn a_call_that_fails_halfway(raw: &mut Raw) -> Result<String, String> {
    raw.query("DROP TABLE IF EXISTS conf.done")?;
    raw.query("DROP PROCEDURE IF EXISTS conf.halfway")?;
    let mut seen = raw.query("CREATE TABLE conf.done (n INT)")?;
    for fails in [
        "EXECUTE nosuch",
        "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1615, MESSAGE_TEXT = 'to be prepared anew'",
    ] {
        seen += &raw.query(&format!(
            "CREATE PROCEDURE conf.halfway() BEGIN INSERT INTO conf.done VALUES (1); {fails}; END"
        ))?;
        seen += &raw.prepare("CALL conf.halfway()")?;
        let nth = raw.statements.len() - 1;
        seen += &raw.execute(nth, 0, b"")?;
        seen += &raw.query("SELECT COUNT(*) FROM conf.done")?;
        seen += &raw.query("DROP PROCEDURE conf.halfway")?;
    }
    raw.query("DROP TABLE conf.done")?;
    Ok(seen)
}

fn long_data(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("SELECT ? AS a, LENGTH(?) AS b")?;
    for piece in ["one ", "two ", "three"] {
        let head = raw.statement(0x18, 0);
        raw.send(0, &[&head[..], &[0, 0], piece.as_bytes()].concat())?;
    }
    seen += &raw.execute(0, 0, b"\0\x01\xfd\0\xfd\0\x03xyz")?;
    seen += &raw.execute(0, 0, b"\0\x01\xfd\0\xfd\0\x01q\x05after")?;
    let reset = raw.statement(0x1A, 0);
    let head = raw.statement(0x18, 0);
    raw.send(0, &[&head[..], &[1, 0], b"forgotten"].concat())?;
    seen += &raw.ask(&reset, Expect::Simple)?;
    seen += &raw.execute(0, 0, b"\x02\x01\xfd\0\xfd\0\x01q")?;
    Ok(seen)
}

/// Type and flag as bound, and a value of it.
const VALUES: &[(u8, u8, &[u8])] = &[
    (0x01, 0x00, b"\x85"),
    (0x01, 0x80, b"\x85"),
    (0x02, 0x00, b"\x39\x85"),
    (0x02, 0x80, b"\x39\x85"),
    (0x03, 0x00, b"\x39\x30\0\x80"),
    (0x03, 0x80, b"\x39\x30\0\x80"),
    (0x08, 0x00, b"\x39\x30\0\0\0\0\0\x80"),
    (0x08, 0x80, b"\x39\x30\0\0\0\0\0\x80"),
    (0x04, 0x00, b"\0\0\x20\xc0"),
    (0x05, 0x00, b"\0\0\0\0\0\0\x04\xc0"),
    (0x0a, 0x00, b"\x04\xea\x07\x02\x1c"),
    (0x0c, 0x00, b"\x07\xea\x07\x02\x1c\x17\x3b\x3a"),
    (0x0c, 0x00, b"\x0b\xea\x07\x02\x1c\x17\x3b\x3a\x01\x02\0\0"),
    (0x0c, 0x00, b"\0"),
    (0x07, 0x00, b"\x07\xea\x07\x02\x1c\x17\x3b\x3a"),
    (0x0b, 0x00, b"\x08\x01\x02\0\0\0\x03\x04\x05"),
    (0x0b, 0x00, b"\x0c\0\0\0\0\0\x03\x04\x05\x01\x02\0\0"),
    (0x0b, 0x00, b"\0"),
    (0xf6, 0x00, b"\x0512.34"),
    (0xfd, 0x00, b"\x07words \xc3\xbc"),
    (0xfe, 0x00, b"\0"),
    (0xfc, 0x00, b"\x03\0\xff\x01"),
    (0xfb, 0x00, b"\xfc\x00\x01"),
];

/// MySQL says of a parameter what kind of value it wants there, which is another one where the
/// parameter was moved to.
fn outline(prepared: &str) -> String {
    format!(
        "{}\n{} packets\n",
        prepared.lines().next().unwrap_or_default(),
        prepared.lines().count()
    )
}

fn prepared_modes(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query("SET sql_mode = 'PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'")?;
    let concat = "SELECT 'a' || 'b' AS ab, '\\' AS one";
    seen += &raw.prepare(concat)?;
    seen += &raw.execute(0, 0, b"")?;
    seen += &raw.query("SET sql_mode = ''")?;
    seen += &raw.execute(0, 0, b"")?;
    seen += &raw.query("SET NAMES latin1")?;
    seen += &raw.query("BEGIN")?;
    seen += &raw.execute(0, 0, b"")?;
    seen += &raw.query("COMMIT")?;
    // The same text again, as it is read now.
    seen += &raw.prepare("SELECT 1 || 0 AS ab, ? AS x")?;
    seen += &raw.execute(1, 0, b"\0\x01\xfd\0\x02\xfc\xfc")?;
    seen += &raw.query("SELECT @@sql_mode, @@character_set_client")?;
    seen += &raw.execute(0, 0, b"")?;
    Ok(seen)
}

fn nulls_without_types(raw: &mut Raw) -> Result<String, String> {
    let attributed = raw.has(caps::QUERY_ATTRIBUTES);
    let count = |params: u8| if attributed { vec![params] } else { Vec::new() };
    let name: &[u8] = if attributed { b"\0" } else { b"" };
    let bare = |params: u8, nulls: u8| [&count(params)[..], &[nulls, 0]].concat();
    let mut seen = outline(&raw.prepare("SELECT ? AS a, ? AS b, 1 AS c")?);
    seen += &raw.execute(0, 0, &bare(2, 3))?;
    seen += &raw.execute(0, 0, &bare(2, 3))?;
    let bound = [
        &count(2)[..],
        b"\0\x01\x03\0",
        name,
        b"\xfd\0",
        name,
        b"\x07\0\0\0\x01x",
    ]
    .concat();
    seen += &raw.execute(0, 0, &bound)?;
    seen += &raw.execute(0, 0, &bare(2, 3))?;
    seen += &outline(&raw.prepare("INSERT INTO conf.scratch (id, words) VALUES (5, ?)")?);
    seen += &raw.execute(1, 0, &bare(1, 1))?;
    seen += &outline(
        &raw.prepare("SELECT id, words FROM conf.scratch WHERE id = 5 OR id = ? OR words = ?")?,
    );
    seen += &raw.execute(2, 1, &bare(2, 3))?;
    seen += &raw.fetch(2, 5)?;
    seen += &raw.query("DELETE FROM conf.scratch")?;
    seen += &outline(&raw.prepare("SELECT ? AS long_data, ? AS nothing")?);
    let head = raw.statement(0x18, 3);
    raw.send(0, &[&head[..], &[0, 0], b"long"].concat())?;
    seen += &code_of(&raw.execute(3, 0, &bare(2, 2))?);
    // Where not all are NULL the types are missed; MySQL has several numbers for that.
    seen += &outline(&raw.prepare("SELECT ? AS a, ? AS b")?);
    let refused = raw.execute(4, 0, &[&bare(2, 1)[..], b"\x07\0\0\0"].concat())?;
    seen += if refused.starts_with(r"  1 \xff") {
        "refused\n"
    } else {
        &refused
    };
    seen += &raw.query("SELECT 'behind'")?;
    Ok(seen)
}

fn parameters_of_all_types(raw: &mut Raw) -> Result<String, String> {
    let mut seen = outline(&raw.prepare("SELECT ? AS a, ? AS b, ? AS c")?);
    let long = [b'l'; 256];
    let attributed = raw.has(caps::QUERY_ATTRIBUTES);
    let count: &[u8] = if attributed { b"\x03" } else { b"" };
    let name: &[u8] = if attributed { b"\0" } else { b"" };
    for (kind, flag, value) in VALUES {
        let value = if *kind == 0xfb {
            &[value, &long[..]].concat()
        } else {
            *value
        };
        let seven = b"\x07\0\0\0";
        // The value and NULL, NULL and the value, and each where the other was without saying its
        // type again.
        let bound = |nulls: u8, types: [[u8; 2]; 3], values: &[&[u8]]| {
            let types = types.map(|kind| [&kind[..], name].concat()).concat();
            [count, &[nulls, 1], &types, &values.concat()].concat()
        };
        let (own, int, null) = ([*kind, *flag], [3, 0], [6, 0]);
        seen += &raw.execute(0, 0, &bound(2, [own, null, int], &[value, seven]))?;
        seen += &raw.execute(0, 0, &bound(0, [int, own, int], &[seven, value, seven]))?;
        seen += &raw.execute(0, 0, &bound(1, [null, int, own], &[seven, value]))?;
        seen += &raw.execute(0, 0, &[count, &[3, 0], value].concat())?;
        seen += &raw.execute(0, 0, &[count, &[7, 0]].concat())?;
    }
    Ok(definitions::without_early_warnings(&seen))
}

/// Reads attribute `a`.
const READ_A: &str = "SELECT mysql_query_attribute_string('a') AS a";

fn attributes_of_queries(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query_with(&[("a", "one")], READ_A)?;
    seen += &raw.query(READ_A)?;
    seen += &raw.query_with(&[("b", "two"), ("a", "first"), ("a", "second")], READ_A)?;
    seen += &raw.query_with(&[("a", "")], READ_A)?;
    seen += &raw.query_with(&[("a", &"x".repeat(70_000))], READ_A)?;
    seen += &raw.query_with(&[("a", "of all")], &format!("{READ_A}; SELECT 1; {READ_A}"))?;
    seen += &raw.query_with(&[("a", "wrong")], "SELECT nonsense FROM")?;
    if raw.has(caps::QUERY_ATTRIBUTES) {
        seen += &raw.query_with(
            &[("a", "set")],
            "SET @read = mysql_query_attribute_string('a')",
        )?;
        seen += &raw.query_with(&[("a", "nobody looks")], "SELECT @read")?;
    }
    let many: Vec<String> = (0..300).map(|n| format!("name {n}")).collect();
    let mut many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "v")).collect();
    many.push(("a", "the last of many"));
    seen += &raw.query_with(&many, READ_A)?;
    Ok(seen)
}

fn attributes_of_executions(raw: &mut Raw) -> Result<String, String> {
    let mut seen = outline(&raw.prepare(READ_A)?);
    if raw.statements.is_empty() {
        return Ok(seen);
    }
    seen += &raw.execute_with(0, &[("a", "one")])?;
    seen += &raw.execute_with(0, &[])?;
    seen += &raw.execute(0, 8, b"\0")?;
    seen += &raw.execute_with(0, &[("a", "again"), ("b", "more")])?;
    // Without their types nobody knows them.
    seen += &code_of(&raw.execute(0, 8, b"\x01\0\0\x05again")?);
    seen +=
        &outline(&raw.prepare("SELECT ? AS x, mysql_query_attribute_string('a') AS a, mysql_query_attribute_string('p') AS p")?);
    seen += &raw.execute(1, 8, b"\x02\0\x01\x03\0\0\xfe\0\x01a\x07\0\0\0\x02aa")?;
    // The parameter has a name too, and is found by it.
    seen += &raw.execute(1, 0, b"\x02\x02\x01\xfd\0\x01p\xfe\0\x01a\x02pp")?;
    seen += &raw.execute(1, 0, b"\x01\0\0\x02qq")?;
    seen += &raw.execute(1, 0, b"\x01\0\x01\xfd\0\0\x02rr")?;
    // Sent ahead, with an attribute behind it.
    let head = raw.statement(0x18, 1);
    raw.send(0, &[&head[..], &[0, 0], b"long"].concat())?;
    seen += &raw.execute(1, 8, b"\x02\0\x01\xfc\0\0\xfe\0\x01a\x02aa")?;
    Ok(seen)
}

fn attributes_of_every_type(raw: &mut Raw) -> Result<String, String> {
    if !raw.has(caps::QUERY_ATTRIBUTES) {
        return Ok(String::new());
    }
    let mut seen = String::new();
    // The text among them is a byte longer than it says: MySQL reads on as it can, and we refuse.
    for (kind, flag, value) in VALUES.iter().filter(|(kind, ..)| *kind != 0xfd) {
        let long = [b'l'; 256];
        let value = if *kind == 0xfb {
            &[value, &long[..]].concat()
        } else {
            *value
        };
        let head = [
            b"\x03\x02\x01\0\x01",
            &[*kind, *flag][..],
            b"\x01a\xfe\0\x01b",
        ]
        .concat();
        let reads = b"\x04lastSELECT mysql_query_attribute_string('a') AS a, mysql_query_attribute_string('b') AS b";
        let answer = raw.ask(&[&head, value, &reads[..]].concat(), Expect::Query)?;
        seen += &if answer.contains('#') {
            code_of(&answer)
        } else {
            answer
        };
    }
    Ok(seen)
}

fn attributes_that_are_none(raw: &mut Raw) -> Result<String, String> {
    if !raw.has(caps::QUERY_ATTRIBUTES) {
        return Ok(String::new());
    }
    let mut seen = String::new();
    for wrong in [
        &b"\x03\0\x02SELECT 1"[..],
        b"\x03\x01\x01\0\0\x02v1SELECT 1",
        b"\x03\x05\x01\0\x01\x03\0SELECT 1",
    ] {
        seen += &code_of(&raw.ask(wrong, Expect::Query)?);
        seen += &raw.query("SELECT 'still here'")?;
    }
    Ok(seen)
}

/// An error without its words: sequence number, header and code.
fn code_of(answer: &str) -> String {
    format!("{}\n", answer.split('#').next().unwrap_or_default())
}

fn parameters_ahead(raw: &mut Raw) -> Result<String, String> {
    let mut seen = outline(&raw.prepare("SELECT ? AS a, ? AS b, ? AS c")?);
    for (param, piece) in [(2, "third "), (0, "first"), (2, "again")] {
        let head = raw.statement(0x18, 0);
        raw.send(0, &[&head[..], &[param, 0], piece.as_bytes()].concat())?;
    }
    seen += &raw.execute(0, 0, b"\0\x01\xfd\0\x03\0\xfc\0\x07\0\0\0")?;
    seen += &raw.execute(0, 0, b"\x01\0\x08\0\0\0\x04last")?;
    let head = raw.statement(0x18, 0);
    raw.send(0, &[&head[..], &[1, 0], b"second"].concat())?;
    seen += &raw.execute(0, 0, b"\x05\x01\xfd\0\xfd\0\xfd\0")?;
    Ok(definitions::without_early_warnings(&seen))
}

fn parameters_left_out(raw: &mut Raw) -> Result<String, String> {
    let mut seen = String::new();
    for text in [
        "SELECT id FROM conf.numbers WHERE (? IS NULL OR 1 = 1) AND id < ? ORDER BY id",
        "SELECT 'none' AS a FROM DUAL WHERE ? IS NULL OR ? IS NULL OR 1 = 1",
    ] {
        seen += &outline(&raw.prepare(text)?);
    }
    for nth in [0, 1] {
        seen += &raw.execute(nth, 0, b"\0\x01\xfd\0\x03\0\x05words\x03\0\0\0")?;
        seen += &raw.execute(nth, 0, b"\x01\0\x02\0\0\0")?;
        seen += &raw.execute(nth, 0, b"\x02\0\x03any")?;
    }
    Ok(seen)
}

fn several(raw: &mut Raw) -> Result<String, String> {
    let mut seen =
        raw.query("SELECT 1; SELECT 'two', 3;SELECT words FROM conf2.only_here WHERE id = 2 ;")?;
    seen += &raw.query("DELETE FROM conf.scratch; INSERT INTO conf.scratch VALUES (1, 'a'), (2, 'b'); SELECT ROW_COUNT(); SELECT words FROM conf.scratch WHERE id = 2")?;
    seen +=
        &raw.query("USE conf2; SELECT DATABASE(); SET @v = 5; SELECT @v, ';', \"; SELECT\"; DO 1")?;
    seen += &raw.query(
        "INSERT INTO conf.counted (words) VALUES ('x'); SELECT LAST_INSERT_ID() > 0; ROLLBACK",
    )?;
    seen += &raw.query("BEGIN; UPDATE conf.scratch SET words = 'c' WHERE id = 1; SELECT words FROM conf.scratch WHERE id = 1; ROLLBACK; SELECT words FROM conf.scratch WHERE id = 1")?;
    seen += &raw.query("SELECT 1 /* one ; */; -- two ;\n SELECT 2")?;
    Ok(seen)
}

fn several_with_error(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query("DELETE FROM conf.scratch; INSERT INTO conf.scratch VALUES (1, 'a'); SELECT 1 FROM no_such_schema.t; INSERT INTO conf.scratch VALUES (2, 'b')")?;
    seen += &raw.query("SELECT COUNT(*) FROM conf.scratch")?;
    seen += &raw.query("SELECT 1; SELEC 2; SELECT 3")?;
    seen += &raw.query("INSERT INTO conf.scratch VALUES (1, 'again'); SELECT 2")?;
    seen += &raw.query("SELECT 'fine'")?;
    Ok(seen)
}

fn several_whole(raw: &mut Raw) -> Result<String, String> {
    let mut seen =
        raw.query("DROP PROCEDURE IF EXISTS conf.made; CREATE PROCEDURE conf.made() BEGIN SELECT 1 AS a; SELECT 2 AS b; END")?;
    seen += &raw.query("CALL conf.made()")?;
    seen += &raw.query("SELECT 1; /*!50000 SELECT 2 */; SELECT 3")?;
    seen += &raw.query("SELECT 1;; SELECT 2")?;
    seen += &raw.query("SELECT 1; SELECT '\\'; SELECT 2")?;
    seen += &raw.query("DROP PROCEDURE conf.made")?;
    Ok(seen)
}

fn several_not_asked(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query("SELECT 1; SELECT 2")?;
    seen += &raw.query("SELECT 1;")?;
    seen += &raw.ask(&[0x1B, 0, 0], Expect::Simple)?;
    seen += &raw.query("SELECT 1; SELECT 2")?;
    seen += &raw.query("SELECT 1; /*!50000 SELECT 2 */; SELECT 3")?;
    seen += &raw.ask(&[0x1B, 1, 0], Expect::Simple)?;
    seen += &raw.query("SELECT 1; SELECT 2")?;
    seen += &raw.query("SELECT 1; /*!50000 SELECT 2 */; SELECT 3")?;
    Ok(seen)
}

fn calls(raw: &mut Raw) -> Result<String, String> {
    raw.query("DROP PROCEDURE IF EXISTS conf.out_of")?;
    let mut seen = raw.query("CREATE PROCEDURE conf.out_of(IN a INT, OUT b INT, INOUT c VARCHAR(10)) BEGIN SELECT a; SET b = a + 1; SET c = CONCAT(c, '!'); END")?;
    seen += &raw.query("SELECT 0; CALL conf.two_results(7); SELECT 9")?;
    seen += &raw.query("CALL conf.fails_after_one(); SELECT 1")?;
    seen += &raw.prepare("CALL conf.out_of(?, ?, ?)")?;
    seen += &raw.execute(0, 0, b"\x02\x01\x03\0\x03\0\xfd\0\x05\0\0\0\x03abc")?;
    seen += &raw.prepare("CALL conf.two_results(?)")?;
    seen += &raw.execute(1, 0, b"\0\x01\x03\0\x05\0\0\0")?;
    // Results of no row and of many, an error behind a row, a value that does not come in one
    // piece.
    let bodies = [
        "SELECT 1 FROM conf.numbers WHERE 0; SELECT id FROM conf.numbers WHERE id BETWEEN 3 AND 40 ORDER BY id; SET a = 3",
        "SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'",
        "SELECT REPEAT('wide', 20000); SET a = 2",
        "START TRANSACTION; SELECT 4; SET a = 5",
    ];
    for body in bodies {
        raw.query("DROP PROCEDURE IF EXISTS conf.out_of_much")?;
        seen += &raw.query(&format!(
            "CREATE PROCEDURE conf.out_of_much(OUT a INT, OUT b MEDIUMTEXT) BEGIN SET b = REPEAT('long', 20000); {body}; END"
        ))?;
        seen += &raw.prepare("CALL conf.out_of_much(?, ?)")?;
        let nth = raw.statements.len() - 1;
        seen += &raw.execute(nth, 0, b"\x03\x01\x03\0\xfd\0")?;
        seen += &raw.query("COMMIT")?;
    }
    raw.query("DROP PROCEDURE conf.out_of_much")?;
    seen += &raw.query("SET @c = 'x'; CALL conf.out_of(1, @b, @c); SELECT @b, @c")?;
    seen += &raw.query("DROP PROCEDURE conf.out_of")?;
    // A MariaDB that is asked for no session tracking sets its flag in EOF packets all the same,
    // now and then.
    let lines = seen
        .lines()
        .map(|line| match line.split_once(r" \xfe\x00\x00") {
            Some((before, flags)) if flags.ends_with(['@', 'P']) => {
                let (low, high) = flags.split_at(flags.len() - 1);
                format!(
                    r"{before} \xfe\x00\x00{low}{}",
                    if high == "@" { r"\x00" } else { r"\x10" }
                )
            }
            _ => line.to_owned(),
        });
    Ok(lines.map(|line| line + "\n").collect())
}

fn a_file(raw: &mut Raw) -> Result<String, String> {
    let load =
        "LOAD DATA LOCAL INFILE '/client/side' INTO TABLE conf.scratch FIELDS TERMINATED BY ','";
    let mut seen = raw.query("DELETE FROM conf.scratch")?;
    seen += &raw.query(load)?;
    let large: String = (100..5000).map(|n| format!("{n},number {n}\n")).collect();
    for (seq, piece) in [
        (2, "1,one\n2,tw"),
        (3, "o\n3,three\n"),
        (4, large.as_str()),
        (5, ""),
    ] {
        raw.send(seq, piece.as_bytes())?;
    }
    seen += &raw.answer(Expect::Query)?;
    seen += &raw.query("SELECT COUNT(*), MAX(words) FROM conf.scratch")?;
    // A duplicate key in the middle: the server reads the rest all the same.
    seen += &raw.query(&load.replace("INTO", "REPLACE INTO"))?;
    raw.send(2, b"1,first\n1,second\n")?;
    raw.send(3, b"")?;
    seen += &raw.answer(Expect::Query)?;
    // An empty file: what a client sends that cannot read it.
    seen += &raw.query(load)?;
    raw.send(2, b"")?;
    seen += &raw.answer(Expect::Query)?;
    seen += &raw.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.no_such_table")?;
    seen += &raw.query("DELETE FROM conf.scratch")?;
    Ok(seen)
}

/// MariaDB prepares LOAD DATA, MySQL does not.
fn an_executed_file(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query("DELETE FROM conf.scratch")?;
    seen += &raw.prepare(
        "LOAD DATA LOCAL INFILE '/client/side' INTO TABLE conf.scratch FIELDS TERMINATED BY ','",
    )?;
    for row in [&b"1,one\n"[..], b"2,two\n"] {
        if raw.statements.is_empty() {
            break;
        }
        seen += &raw.execute(0, 0, b"")?;
        raw.send(2, row)?;
        raw.send(3, b"")?;
        seen += &raw.answer(Expect::Execute)?;
    }
    seen += &raw.query("SELECT * FROM conf.scratch WHERE id BETWEEN 1 AND 9 ORDER BY id")?;
    seen += &raw.query("DELETE FROM conf.scratch")?;
    Ok(seen)
}

fn a_file_among_several(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query("SELECT 'before'; SELECT 1 FROM conf2.only_here WHERE id = 1; LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.scratch; SELECT 'after'")?;
    let last = seen
        .lines()
        .rev()
        .find_map(|line| line.trim().split(' ').next()?.parse::<u8>().ok())
        .unwrap_or_default();
    raw.send(last + 1, b"77\tseven\n")?;
    raw.send(last + 2, b"")?;
    seen += &raw.answer(Expect::Query)?;
    seen += &raw.query("DELETE FROM conf.scratch")?;
    Ok(seen)
}

/// Drivers send a COMMIT only where the last flags told of a transaction.
fn transactions_told(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.prepare("SELECT 1")?;
    for sql in [
        "SELECT 1",
        "BEGIN",
        "INSERT INTO conf.scratch VALUES (1, 'x')",
        "COMMIT",
        "START TRANSACTION READ ONLY",
        "COMMIT AND CHAIN",
        "ROLLBACK",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET autocommit = 0",
        "INSERT INTO conf.scratch VALUES (2, 'x')",
        "SET autocommit = 1",
    ] {
        seen += &format!("{sql}\n{}", raw.query(sql)?);
        // COM_PING, COM_STMT_RESET, COM_SET_OPTION: nobody asks a server.
        seen += &raw.ask(&[0x0E], Expect::Simple)?;
        let reset = raw.statement(0x1A, 0);
        seen += &raw.ask(&reset, Expect::Simple)?;
        seen += &raw.ask(&[0x1B, 1, 0], Expect::Simple)?;
        // The numbers differ; the flags come last.
        seen += raw
            .query("SELECT CONNECTION_ID()")?
            .lines()
            .last()
            .unwrap_or_default();
        seen += "\n";
    }
    Ok(seen)
}

fn no_file(raw: &mut Raw) -> Result<String, String> {
    let mut seen = raw.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.scratch")?;
    seen += &raw.query("SELECT 1")?;
    Ok(seen)
}

/// A server and the proxies before it.
struct Stand {
    server: Server,
    proxies: [OnceLock<Result<Proxy, String>>; 2],
}

impl Stand {
    fn compare(
        &self,
        driver: Driver,
        caps: Caps,
        script: Script,
        moves: bool,
    ) -> Result<(), String> {
        let place = DRIVERS
            .iter()
            .position(|one| *one == driver)
            .unwrap_or_default();
        let proxy = self.proxies[place].get_or_init(|| {
            let mut wish = Wish::in_front_of(&self.server);
            wish.variables
                .push_str("    enable_load_data_local_infile = true\n");
            let proxy = Proxy::start(driver, &wish)?;
            moved::load(&proxy)?;
            Ok(proxy)
        });
        let proxy = proxy.as_ref().map_err(Clone::clone)?;
        let anew = "DELETE FROM conf.child; DELETE FROM conf.scratch; TRUNCATE conf.counted";
        self.server.root(anew)?;
        let direct = script(&mut Raw::log_in(self.server.port, caps)?)?;
        self.server.root(anew)?;
        let seen = script(&mut Raw::log_in(proxy.port, caps)?)?;
        if moves {
            moved::was_used(proxy)?;
        }
        difference(&direct, &seen).map_or(Ok(()), |words| {
            Err(format!("{words}\n\ndirect:\n{direct}\n\nthrough:\n{seen}"))
        })
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let mut stands = Vec::new();
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let missing = vendor.programs().err();
        if let Some(why) = &missing {
            eprintln!("SKIPPED: raw packets against {vendor}: {why}");
        }
        let stand: Arc<OnceLock<Result<Stand, String>>> = Arc::default();
        stands.push(stand.clone());
        for (name, caps, script) in SCRIPTS {
            for driver in DRIVERS {
                let stand = stand.clone();
                let test = move || {
                    let stand = stand
                        .get_or_init(|| begin(vendor))
                        .as_ref()
                        .map_err(Clone::clone)?;
                    stand
                        .compare(*driver, *caps, *script, name.starts_with("parameters_"))
                        .map_err(Failed::from)
                };
                let name = format!("on_{vendor}::{driver}::{name}");
                let runs = name.clone();
                trials.push(
                    Trial::test(name, move || watched(&runs, test))
                        .with_ignored_flag(missing.is_some()),
                );
            }
        }
    }
    // Scripts share tables: one after the other.
    let conclusion = libtest_mimic::run(
        &Arguments {
            test_threads: Some(1),
            ..arguments
        },
        trials,
    );
    drop(stands);
    conclusion.exit();
}

fn begin(vendor: Vendor) -> Result<Stand, String> {
    let server = Server::start(vendor)?;
    // The first full login of an account is over TLS; raw logins are quick ones.
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    Ok(Stand {
        server,
        proxies: [OnceLock::new(), OnceLock::new()],
    })
}
