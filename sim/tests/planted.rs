//! Bugs planted in the pool and in sessions are seen by the oracles.
#![cfg(debug_assertions)]

use backend::Hold;
use backend::planted::{
    ANOTHER_OF_LANE, ANSWER_NEXT, ANY_SLOT, ASK_AGAIN, BEGIN_THERE, COPY_ALL, FORGET_HOLD,
    FORGET_LEFT, FORGET_LENT, FORGET_ROLE, FORGET_SETS, FORGET_TABLES, FORGET_WRITES, GO_ON,
    HANG_UP, KEEP_COPIES, KEEP_STATE, KEEP_THROUGH, KILL_ANOTHER, KILL_ANYBODY, LEAVE_UNASKED,
    LOOK_EARLY, MISS_MARKS, NAMES_EXPLAIN, NEVER_DISTURBED, NO_PACE, OLD_TYPES, PASS_OVER,
    REPEAT_COMMITS, SAY_IGNORED, SPOIL_FILE, STAY_THERE, TAKE_ANY_STATE, TELL_OTHERS, TELL_STALE,
    TRUST_MARKS, WORK_OFFLINE,
};
use sim::Weather::{self, Calm, Fickle, Stormy};
use sim::succession::{Cluster, MARKED, run as cluster};
use sim::{Doing, World, run};
use std::cell::Cell;
use std::thread::LocalKey;

/// So many worlds may have a bug before it is seen.
const SEEDS: u64 = 150;
/// Seeds of worlds that have shown a bug, by the test's name: they are played first, since to look for
/// them takes most of the time. Where they show nothing any more, the test looks again, and says what
/// to write here: `cargo test -p sim --test planted -- --nocapture`.
const SHOWN_IN: &[(&str, &[u64])] = &[
    ("a_mark_that_is_looked_for_too_early_is_seen", &[53]),
    ("a_mark_that_is_taken_to_be_there_is_seen", &[5]),
    ("a_mark_that_nobody_finds_is_seen", &[65]),
    ("a_client_that_is_sent_away_without_a_word_is_seen", &[1]),
    ("a_client_that_is_sent_too_much_at_once_is_seen", &[5]),
    ("a_commit_that_is_said_again_is_seen", &[75]),
    (
        "a_connection_that_is_released_in_its_transaction_is_seen",
        &[0, 1],
    ),
    ("a_connection_that_outlives_its_only_client_is_seen", &[0]),
    (
        "a_connection_that_outlives_the_end_of_service_is_seen",
        &[10],
    ),
    (
        "a_connection_that_wants_a_new_password_and_is_given_back_is_seen",
        &[9],
    ),
    (
        "a_connection_whose_variables_do_not_travel_to_another_core_is_seen",
        &[1],
    ),
    ("a_copy_of_what_is_of_its_connection_is_seen", &[3]),
    ("a_core_that_goes_round_and_round_is_seen", &[9]),
    ("a_count_of_rows_of_another_statement_is_seen", &[1]),
    ("a_cursor_that_keeps_no_connection_is_seen", &[3, 4]),
    ("a_file_of_which_a_byte_is_another_is_seen", &[0]),
    ("a_handler_that_keeps_no_connection_is_seen", &[1]),
    ("a_memory_that_is_left_unasked_is_seen", &[14]),
    (
        "a_prepared_transaction_whose_connection_is_reset_is_seen",
        &[62],
    ),
    ("a_procedure_that_keeps_no_connection_is_seen", &[55]),
    (
        "a_reader_that_lacks_what_its_session_has_written_is_seen",
        &[1],
    ),
    (
        "a_result_that_a_script_ignores_and_that_is_said_all_the_same_is_seen",
        &[0],
    ),
    ("a_role_of_another_session_is_seen", &[0, 5]),
    (
        "a_savepoint_that_is_looked_for_on_another_connection_is_seen",
        &[5],
    ),
    ("a_schema_that_is_passed_over_is_seen", &[1]),
    ("a_sequence_that_keeps_no_connection_is_seen", &[85]),
    (
        "a_set_that_does_what_it_did_in_another_state_is_seen",
        &[49],
    ),
    ("a_set_that_is_not_replayed_is_seen", &[0]),
    ("a_statement_behind_one_that_failed_is_seen", &[1]),
    ("a_statement_that_is_ended_for_another_is_seen", &[1]),
    ("a_statement_that_is_not_prepared_anew_is_seen", &[0]),
    ("a_temporary_table_that_keeps_no_connection_is_seen", &[2]),
    ("a_transaction_that_begins_on_a_reader_is_seen", &[1]),
    ("a_user_lock_that_keeps_no_connection_is_seen", &[1]),
    ("a_variable_beside_one_that_is_named_is_seen", &[16]),
    (
        "a_variable_of_a_procedure_that_nobody_asked_for_is_seen",
        &[101],
    ),
    (
        "a_word_for_the_next_transaction_that_keeps_no_connection_is_seen",
        &[6],
    ),
    ("an_answer_from_before_a_write_is_seen", &[7]),
    ("an_answer_that_another_of_a_lane_gets_is_seen", &[77]),
    ("an_execution_of_what_another_has_prepared_is_seen", &[50]),
    ("an_offline_server_that_is_given_work_is_seen", &[1]),
    ("another_statement_by_that_name_is_seen", &[1, 4]),
    ("found_rows_that_keep_no_connection_are_seen", &[6]),
    ("locked_tables_that_keep_no_connection_are_seen", &[22]),
    ("rows_in_bulk_that_are_read_by_other_types_are_seen", &[79]),
    ("warnings_of_another_session_are_seen", &[11]),
    ("warnings_that_keep_no_connection_are_seen", &[0]),
    ("what_a_copy_has_left_to_the_next_is_seen", &[11]),
    ("what_is_kept_from_who_one_was_before_is_seen", &[0]),
];

/// Plays worlds until the oracles have said all of this.
fn assert_shown(world: impl Fn(u64) -> World, words: &[&str]) {
    let here = std::thread::current();
    let name = here.name().unwrap_or_default();
    let known = SHOWN_IN.iter().find(|(of, _)| *of == name);
    let known = known.map_or(&[][..], |(_, seeds)| seeds);
    if said(&world, known.iter().copied(), words).is_ok() {
        return;
    }
    match said(&world, 0..SEEDS, words) {
        Ok(seeds) => println!("SHOWN_IN: (\"{name}\", &{seeds:?}),"),
        Err(told) => panic!("{words:?}: {told:#?}"),
    }
}

/// Seeds of the worlds in which the oracles have said all of this; or what they have said instead.
fn said(
    world: impl Fn(u64) -> World,
    seeds: impl Iterator<Item = u64>,
    words: &[&str],
) -> Result<Vec<u64>, Vec<String>> {
    let (mut told, mut shown) = (Vec::new(), Vec::new());
    let mut missing = words.to_vec();
    for seed in seeds {
        let violations = run(&world(seed)).violations;
        let before = missing.len();
        missing.retain(|words| !violations.iter().any(|line| line.contains(words)));
        if missing.len() < before {
            shown.push(seed);
        }
        if missing.is_empty() {
            return Ok(shown);
        }
        told.extend(violations);
    }
    Err(told)
}

/// As [`assert_shown`], in worlds of this weather.
fn assert_said(weather: Weather, words: &[&str]) {
    assert_shown(|seed| World::with(seed, weather), words);
}

/// This bug is seen.
fn assert_seen(bug: &'static LocalKey<Cell<bool>>, weather: Weather, words: &[&str]) {
    bug.set(true);
    assert_said(weather, words);
    bug.set(false);
}

/// Checks that the oracles see it if this does not hold a connection.
fn assert_missed(hold: Hold, words: &[&str]) {
    FORGET_HOLD.set(Some(hold));
    assert_said(Calm, words);
    FORGET_HOLD.set(None);
}

#[test]
fn a_connection_that_is_released_in_its_transaction_is_seen() {
    assert_missed(
        Hold::Transaction,
        &["the transaction moved", "the connection has", "log: "],
    );
}

#[test]
fn a_savepoint_that_is_looked_for_on_another_connection_is_seen() {
    assert_missed(Hold::Transaction, &["error 1305: SAVEPOINT s"]);
}

#[test]
fn a_temporary_table_that_keeps_no_connection_is_seen() {
    assert_missed(Hold::TemporaryTable, &["has a temporary table"]);
}

#[test]
fn locked_tables_that_keep_no_connection_are_seen() {
    assert_missed(Hold::TableLock, &["has locked tables"]);
}

#[test]
fn a_user_lock_that_keeps_no_connection_is_seen() {
    assert_missed(Hold::UserLock, &["RELEASE_LOCK"]);
}

#[test]
fn a_cursor_that_keeps_no_connection_is_seen() {
    assert_missed(Hold::Cursor, &["has a cursor", "FETCH"]);
}

#[test]
fn a_procedure_that_keeps_no_connection_is_seen() {
    assert_missed(Hold::Procedure, &["@b"]);
}

#[test]
fn a_variable_of_a_procedure_that_nobody_asked_for_is_seen() {
    assert_seen(&FORGET_LEFT, Calm, &["@b"]);
}

#[test]
fn a_variable_beside_one_that_is_named_is_seen() {
    assert_seen(&NAMES_EXPLAIN, Calm, &["@b"]);
}

#[test]
fn warnings_that_keep_no_connection_are_seen() {
    assert_missed(Hold::Diagnostics, &["SHOW WARNINGS: ["]);
}

#[test]
fn found_rows_that_keep_no_connection_are_seen() {
    assert_missed(Hold::FoundRows, &["SELECT FOUND_ROWS(): ["]);
}

#[test]
fn a_count_of_rows_of_another_statement_is_seen() {
    assert_seen(&NEVER_DISTURBED, Calm, &["ROW_COUNT()"]);
}

#[test]
fn a_connection_whose_variables_do_not_travel_to_another_core_is_seen() {
    assert_seen(&FORGET_LENT, Calm, &["the connection has"]);
}

#[test]
fn a_client_that_is_sent_too_much_at_once_is_seen() {
    assert_seen(&NO_PACE, Calm, &["bytes per second"]);
}

#[test]
fn a_set_that_is_not_replayed_is_seen() {
    assert_seen(&FORGET_SETS, Calm, &["the connection has"]);
}

#[test]
fn a_role_of_another_session_is_seen() {
    assert_seen(&FORGET_ROLE, Calm, &["the connection has", "\"reader\""]);
}

#[test]
fn a_word_for_the_next_transaction_that_keeps_no_connection_is_seen() {
    assert_missed(Hold::NextTransaction, &["the connection has"]);
}

#[test]
fn another_statement_by_that_name_is_seen() {
    assert_seen(&ANY_SLOT, Calm, &["EXECUTE p", "EXECUTE q"]);
}

#[test]
fn what_is_kept_from_who_one_was_before_is_seen() {
    assert_seen(&KEEP_STATE, Calm, &["the connection has"]);
}

#[test]
fn a_statement_behind_one_that_failed_is_seen() {
    assert_seen(
        &GO_ON,
        Calm,
        &["is there 1 times, and its client was told Never"],
    );
}

#[test]
fn a_prepared_transaction_whose_connection_is_reset_is_seen() {
    assert_missed(Hold::Xa, &["error 1031"]);
}

#[test]
fn a_statement_that_is_not_prepared_anew_is_seen() {
    assert_seen(&TELL_STALE, Calm, &["error 1615", "error 1243"]);
}

#[test]
fn warnings_of_another_session_are_seen() {
    assert_seen(&TELL_OTHERS, Calm, &["SHOW WARNINGS: [["]);
}

/// In worlds where KILL is said more often.
#[test]
fn a_statement_that_is_ended_for_another_is_seen() {
    KILL_ANOTHER.set(true);
    let world = |seed| World {
        kills: 4,
        ..World::with(seed, Calm)
    };
    assert_shown(world, &["Query execution was interrupted"]);
    KILL_ANOTHER.set(false);
}

#[test]
fn a_kill_that_hits_whoever_has_the_number_by_now_is_seen() {
    KILL_ANYBODY.set(true);
    let told = sim::scene::a_successor_has_the_number().violations;
    KILL_ANYBODY.set(false);
    assert!(
        told.iter()
            .any(|told| told.contains("c1-2") || told.contains("COMMIT")),
        "{told:#?}"
    );
}

#[test]
fn a_client_that_is_sent_away_without_a_word_is_seen() {
    assert_seen(&HANG_UP, Fickle, &["was closed in silence"]);
}

#[test]
fn a_file_of_which_a_byte_is_another_is_seen() {
    assert_seen(&SPOIL_FILE, Calm, &["was inserted by nobody"]);
}

#[test]
fn rows_in_bulk_that_are_read_by_other_types_are_seen() {
    assert_seen(&OLD_TYPES, Calm, &["rows that nobody can read"]);
}

#[test]
fn a_connection_that_outlives_its_only_client_is_seen() {
    assert_seen(
        &KEEP_THROUGH,
        Calm,
        &["are left of clients who had them to themselves"],
    );
}

#[test]
fn a_core_that_goes_round_and_round_is_seen() {
    assert_seen(&ASK_AGAIN, Stormy, &["asked for ever"]);
}

#[test]
fn an_offline_server_that_is_given_work_is_seen() {
    assert_seen(&WORK_OFFLINE, Calm, &["was opened while it was offline"]);
}

#[test]
fn a_connection_that_outlives_the_end_of_service_is_seen() {
    assert_seen(
        &STAY_THERE,
        Fickle,
        &["was open although it was OFFLINE_HARD"],
    );
}

#[test]
fn a_reader_that_lacks_what_its_session_has_written_is_seen() {
    assert_seen(&FORGET_WRITES, Calm, &["is missing on server b"]);
}

#[test]
fn an_answer_from_before_a_write_is_seen() {
    assert_seen(
        &FORGET_TABLES,
        Calm,
        &["FROM red.log", "is missing on server a"],
    );
}

#[test]
fn what_a_copy_has_left_to_the_next_is_seen() {
    assert_seen(&KEEP_COPIES, Calm, &["the copy finds"]);
}

#[test]
fn a_copy_of_what_is_of_its_connection_is_seen() {
    assert_seen(&COPY_ALL, Calm, &["a copy of BEGIN"]);
}

#[test]
fn a_transaction_that_begins_on_a_reader_is_seen() {
    assert_seen(
        &BEGIN_THERE,
        Calm,
        &["BEGIN on connection", "of a server that only reads"],
    );
}

#[test]
fn a_handler_that_keeps_no_connection_is_seen() {
    assert_missed(Hold::Handler, &["error 1109"]);
}

#[test]
fn a_sequence_that_keeps_no_connection_is_seen() {
    assert_missed(Hold::Sequence, &["LASTVAL(s)"]);
}

#[test]
fn a_schema_that_is_passed_over_is_seen() {
    assert_seen(&PASS_OVER, Calm, &["and its client is in"]);
}

#[test]
fn a_connection_that_wants_a_new_password_and_is_given_back_is_seen() {
    assert_missed(
        Hold::ExpiredPassword,
        &["error 1820: You must reset your password"],
    );
}

#[test]
fn a_commit_that_is_said_again_is_seen() {
    assert_seen(&REPEAT_COMMITS, Fickle, &["is there 2 times"]);
}

#[test]
fn a_result_that_a_script_ignores_and_that_is_said_all_the_same_is_seen() {
    let world = |seed| World {
        script: Some(Doing::Injects),
        ..World::with(seed, Calm)
    };
    assert!((0..5).all(|seed| run(&world(seed)).violations.is_empty()));
    SAY_IGNORED.set(true);
    assert_shown(world, &["client"]);
    SAY_IGNORED.set(false);
}

#[test]
fn without_them_nothing_is_seen() {
    let told: Vec<_> = (0..20)
        .flat_map(|seed| run(&World::with(seed, Calm)).violations)
        .collect();
    assert!(told.is_empty(), "{told:#?}");
}

#[test]
fn an_answer_that_another_of_a_lane_gets_is_seen() {
    assert_seen(&ANSWER_NEXT, Calm, &["somebody else's row"]);
}

#[test]
fn an_execution_of_what_another_has_prepared_is_seen() {
    assert_seen(&ANOTHER_OF_LANE, Calm, &["instead of"]);
}

#[test]
fn a_set_that_does_what_it_did_in_another_state_is_seen() {
    assert_seen(&TAKE_ANY_STATE, Calm, &["the connection has"]);
}

#[test]
fn a_memory_that_is_left_unasked_is_seen() {
    assert_seen(&LEAVE_UNASKED, Calm, &["LAST_INSERT_ID()"]);
}

/// A cluster whose COMMITs leave marks, and whose successors have not applied all that they got.
fn careless(seed: u64) -> Cluster {
    Cluster {
        settings: MARKED,
        is_calm: false,
        careless: 100,
        stalls: 100,
        ..Cluster::of(seed)
    }
}

/// Plays clusters whose writer is replaced until the oracles say this.
fn seen_in_clusters(bug: &'static LocalKey<Cell<bool>>, of: impl Fn(u64) -> Cluster, words: &str) {
    bug.set(true);
    let here = std::thread::current();
    let name = here.name().unwrap_or_default();
    let known = SHOWN_IN.iter().find(|(of, _)| *of == name);
    let known = known.map_or(&[][..], |(_, seeds)| seeds);
    let shows = |seed: &u64| {
        let violations = cluster(&of(*seed)).violations;
        violations.iter().any(|line| line.contains(words))
    };
    let found = known.iter().copied().chain(0..SEEDS).find(shows);
    bug.set(false);
    let seed = found.unwrap_or_else(|| panic!("{SEEDS} clusters have not shown it"));
    if !known.contains(&seed) {
        println!("SHOWN_IN: (\"{name}\", &[{seed}]),");
    }
}

#[test]
fn a_mark_that_nobody_finds_is_seen() {
    seen_in_clusters(&MISS_MARKS, careless, "is there 2 times");
}

#[test]
fn a_mark_that_is_looked_for_too_early_is_seen() {
    seen_in_clusters(&LOOK_EARLY, careless, "is there 2 times");
}

#[test]
fn a_mark_that_is_taken_to_be_there_is_seen() {
    seen_in_clusters(
        &TRUST_MARKS,
        careless,
        "is acknowledged, and was lost before",
    );
}
