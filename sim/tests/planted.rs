//! Bugs planted in the pool (feature `planted`) are seen by the oracles: `cargo test -p sim --features planted`.
#![cfg(feature = "planted")]

use backend::Hold;
use backend::planted::{FORGET_HOLD, FORGET_LENT, FORGET_SETS, KILL_ANOTHER, NEVER_DISTURBED, NO_PACE, TELL_OTHERS};
use sim::{Weather, World, run};

/// So many calm worlds may have a bug before it is seen.
const SEEDS: u64 = 50;

/// Plays worlds until the oracles have said all of this.
fn assert_seen(words: &[&str]) {
    let mut told = Vec::new();
    for seed in 0..SEEDS {
        told.extend(run(&World::with(seed, Weather::Calm)).violations);
        if words.iter().all(|words| told.iter().any(|line: &String| line.contains(words))) {
            return;
        }
    }
    panic!("{words:?}: {told:#?}");
}

/// That does not hold a connection.
fn assert_missed(hold: Hold, words: &[&str]) {
    FORGET_HOLD.set(Some(hold));
    assert_seen(words);
    FORGET_HOLD.set(None);
}

#[test]
fn a_connection_that_is_released_in_its_transaction_is_seen() {
    assert_missed(Hold::Transaction, &["the transaction moved", "the connection has", "log: "]);
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
fn warnings_that_keep_no_connection_are_seen() {
    assert_missed(Hold::Diagnostics, &["SHOW WARNINGS: ["]);
}

#[test]
fn found_rows_that_keep_no_connection_are_seen() {
    assert_missed(Hold::FoundRows, &["SELECT FOUND_ROWS(): ["]);
}

#[test]
fn a_count_of_rows_of_another_statement_is_seen() {
    NEVER_DISTURBED.set(true);
    assert_seen(&["ROW_COUNT()"]);
    NEVER_DISTURBED.set(false);
}

#[test]
fn a_statement_that_is_ended_for_another_is_seen() {
    KILL_ANOTHER.set(true);
    assert_seen(&["Query execution was interrupted"]);
    KILL_ANOTHER.set(false);
}

#[test]
fn a_connection_whose_variables_do_not_travel_to_another_core_is_seen() {
    FORGET_LENT.set(true);
    assert_seen(&["the connection has"]);
    FORGET_LENT.set(false);
}

#[test]
fn a_client_that_is_sent_too_much_at_once_is_seen() {
    NO_PACE.set(true);
    assert_seen(&["bytes per second"]);
    NO_PACE.set(false);
}

#[test]
fn a_set_that_is_not_replayed_is_seen() {
    FORGET_SETS.set(true);
    assert_seen(&["the connection has"]);
    FORGET_SETS.set(false);
}

#[test]
fn warnings_of_another_session_are_seen() {
    TELL_OTHERS.set(true);
    assert_seen(&["SHOW WARNINGS: [["]);
    TELL_OTHERS.set(false);
}

#[test]
fn without_them_nothing_is_seen() {
    let told: Vec<_> = (0..20).flat_map(|seed| run(&World::with(seed, Weather::Calm)).violations).collect();
    assert!(told.is_empty(), "{told:#?}");
}
