//! Body of the fuzz target of this crate.

use crate::recipe::recipe;
use shards::Leg;
use sql::Lexing;
use sql::tree::{DoubleQuotes, tree};

/// Reads anything as a SELECT over several partitions without a panic: what a partition is asked is a
/// SELECT again.
#[doc(hidden)]
pub fn fuzz_recipe(data: &[u8]) {
    let read = |text| tree(text, Lexing::Escapes, DoubleQuotes::Strings);
    let Some(asked) = read(data) else {
        return;
    };
    let Ok(recipe) = recipe(data, &asked) else {
        return;
    };
    let leg = Leg {
        hostgroup: 0,
        partitions: Vec::new(),
        cuts: Vec::new(),
        rows: Vec::new(),
    };
    let sent = recipe.text(&leg, data);
    assert!(read(&sent).is_some(), "{}", String::from_utf8_lossy(&sent));
}
