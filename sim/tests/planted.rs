//! Bugs planted in the pool (feature `planted`) are seen by the oracles: `cargo test -p sim --features planted`.
#![cfg(feature = "planted")]

use sim::{Weather, World, run};
use std::cell::Cell;
use std::thread::LocalKey;

/// What the oracles say of twenty calm worlds with this bug.
fn complaints(bug: &'static LocalKey<Cell<bool>>) -> Vec<String> {
    bug.set(true);
    let told = (0..20).flat_map(|seed| run(&World::with(seed, Weather::Calm)).violations).collect();
    bug.set(false);
    told
}

#[test]
fn a_connection_that_is_released_too_early_is_seen() {
    let told = complaints(&backend::planted::RELEASE_EARLY);
    assert!(
        told.iter().any(|words| words.contains("the transaction moved") || words.contains("the connection has")),
        "{told:#?}"
    );
    assert!(told.iter().any(|words| words.starts_with("log: ")), "{told:#?}");
}

#[test]
fn a_set_that_is_not_replayed_is_seen() {
    let told = complaints(&backend::planted::FORGET_SETS);
    assert!(told.iter().any(|words| words.contains("the connection has")), "{told:#?}");
}

#[test]
fn without_them_nothing_is_seen() {
    let told: Vec<String> = (0..20).flat_map(|seed| run(&World::with(seed, Weather::Calm)).violations).collect();
    assert!(told.is_empty(), "{told:#?}");
}
