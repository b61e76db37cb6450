//! What once went wrong does not any more.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use sim::Verdict;
use sim::scene::{
    a_crowd_asks_briefly, a_fetch_is_refused, a_file_is_not_wanted_any_more,
    a_name_comes_where_a_trigger_was, a_password_is_set_where_nothing_was_refused,
    a_successor_has_the_number, a_transaction_begins_before_it_is_ended,
    an_id_is_asked_for_on_a_reader, each_has_what_the_other_wants,
    nothing_is_lost_with_a_connection, two_cores_copy_by_turns, two_crowds_ask_briefly,
    two_questions_are_interrupted, what_is_spare_is_broken,
};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A core that goes round and round never comes back, and the world's time stands still with it.
fn hold(scene: fn() -> Verdict) {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let _nobody = tell.send(scene());
    });
    let verdict = told
        .recv_timeout(Duration::from_secs(60))
        .expect("a core goes round and round");
    assert!(verdict.violations.is_empty(), "{:#?}", verdict.story);
}

#[test]
fn a_session_that_waits_asks_a_broken_connection_once() {
    hold(what_is_spare_is_broken);
}

#[test]
fn sessions_of_two_cores_give_each_other_what_they_only_remember_by() {
    hold(each_has_what_the_other_wants);
}

#[test]
fn a_file_that_is_not_wanted_any_more_is_said_to_be_once() {
    let mut once = 0;
    for seed in 0..200 {
        let verdict = a_file_is_not_wanted_any_more(seed);
        let said = verdict
            .story
            .iter()
            .filter(|line| line.contains("KILL QUERY"))
            .count();
        assert!(
            verdict.violations.is_empty() && said <= 1,
            "{seed}: {:#?}",
            verdict.story
        );
        once += said;
    }
    assert!(once > 50, "{once}");
}

#[test]
fn a_kill_query_that_comes_too_late_for_a_begin_ends_nothing() {
    let mut late = 0;
    for seed in 0..200 {
        let verdict = a_transaction_begins_before_it_is_ended(seed);
        assert!(
            verdict.violations.is_empty(),
            "{seed}: {:#?}",
            verdict.story
        );
        late += verdict
            .story
            .iter()
            .filter(|line| line.contains("server") && line.contains("KILL QUERY"))
            .count();
    }
    assert!(late > 20, "{late}");
}

#[test]
fn a_kill_query_between_two_questions_ends_no_transaction() {
    for seed in 0..200 {
        let verdict = two_questions_are_interrupted(seed);
        assert!(
            verdict.violations.is_empty(),
            "{seed}: {:#?}",
            verdict.story
        );
    }
}

#[test]
fn a_connection_of_which_nothing_is_to_be_told_may_break() {
    for seed in 0..100 {
        let verdict = nothing_is_lost_with_a_connection(seed);
        assert!(
            verdict.violations.is_empty(),
            "{seed}: {:#?}",
            verdict.story
        );
    }
}

#[test]
fn what_is_refused_has_no_rows() {
    hold(a_fetch_is_refused);
}

#[test]
fn a_new_password_that_the_writer_hears_first_is_one_for_the_reader_too() {
    hold(a_password_is_set_where_nothing_was_refused);
}

#[test]
fn a_reader_is_told_the_id_that_the_writer_has_made() {
    hold(an_id_is_asked_for_on_a_reader);
}

#[test]
fn what_a_trigger_has_set_stays_where_a_name_comes() {
    hold(a_name_comes_where_a_trigger_was);
}

#[test]
fn a_kill_hits_nobody_at_a_servers_successor() {
    hold(a_successor_has_the_number);
}

#[test]
fn a_crowd_waits_for_lanes_that_are_full() {
    let (mut shared, mut waited) = (0, 0);
    for seed in 0..30 {
        let verdict = a_crowd_asks_briefly(seed);
        assert!(
            verdict.violations.is_empty(),
            "{seed}: {:#?}",
            verdict.violations
        );
        shared += verdict.between[0];
        waited += verdict.between[3];
    }
    println!("{shared} in lanes, {waited} of them had waited");
    assert!(
        shared > 10_000 && waited > 1_000,
        "{shared} in lanes, {waited} had waited"
    );
}

#[test]
fn a_lane_that_is_never_without_work_gives_way_to_another_core() {
    let mut shared = 0;
    for seed in 0..5 {
        let verdict = two_crowds_ask_briefly(seed);
        assert!(
            verdict.violations.is_empty(),
            "{seed}: {:#?}",
            verdict.violations
        );
        shared += verdict.between[0];
    }
    // Where somebody waits everywhere, nobody joins.
    assert!(shared > 50, "{shared} in lanes");
}

#[test]
fn copies_of_one_core_do_not_keep_those_of_another_waiting() {
    for seed in 0..50 {
        let verdict = two_cores_copy_by_turns(seed);
        assert!(
            verdict.violations.is_empty(),
            "{seed}: {:#?}",
            verdict.violations
        );
        assert_eq!(
            (verdict.answered, verdict.hits.get("a copy")),
            (0, Some(&160)),
            "{seed}"
        );
    }
}
