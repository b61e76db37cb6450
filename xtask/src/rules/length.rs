//! A function of more than eight hundred tokens is two functions, and `main()` stays small.
//!
//! Tokens, not lines: they are what a reader reads, and no formatter changes them.

use std::collections::{BTreeMap, BTreeSet};

use super::Complaint;
use crate::tokens::{functions, tokens};
use crate::tree::Tree;

const FUNCTION_MAX: usize = 800;
/// `main()` and what stands beside it decide nothing, so they stay small together.
const MAIN_MAX: usize = 11_000;
/// Functions that are longer, each with the length that it may have: it only shrinks.
const LIST: &str = "xtask/long-functions.txt";

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let known = read_list(tree.text(LIST).unwrap_or_default());
    let mut met = BTreeSet::new();
    let mut found = Vec::new();
    let mut main = 0;
    for (path, text) in tree.ending(".rs") {
        let tokens = tokens(text);
        if path.starts_with("crates/millrace/src/") {
            main += tokens.len();
        }
        for (name, length) in functions(&tokens) {
            let allowed = known.get(&(path, name)).copied();
            if length > FUNCTION_MAX {
                met.insert((path, name));
            }
            if length > allowed.unwrap_or(FUNCTION_MAX) {
                let max = allowed.unwrap_or(FUNCTION_MAX);
                let words =
                    format!("`{name}` has {length} tokens, more than {max}: it is two functions");
                found.push(Complaint::file(path, words));
            }
        }
    }
    if main > MAIN_MAX {
        let words =
            format!("has {main} tokens, more than {MAIN_MAX}: what decides belongs into a crate");
        found.push(Complaint::file("crates/millrace/src", words));
    }
    for (path, name) in known.keys().filter(|key| !met.contains(key)) {
        let words = format!("`{name}` of {path} is not that long any more: strike it out");
        found.push(Complaint::file(LIST, words));
    }
    found
}

/// Path and name → the tokens that it may have.
fn read_list(list: &str) -> BTreeMap<(&str, &str), usize> {
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let max = words.next()?.parse().ok()?;
            Some(((words.next()?, words.next()?), max))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_long_function_is_refused_unless_it_is_listed_and_no_longer_than_that() {
        let long = format!("fn f() {{ {} }}", "x;".repeat(450));
        let list = "# why\n1000 a.rs f\n850 b.rs f\n1000 d.rs f\n";
        let files = [
            (LIST, list),
            ("a.rs", long.as_str()),
            ("b.rs", long.as_str()),
            ("c.rs", long.as_str()),
            ("d.rs", "fn f() {}"),
        ];
        assert_eq!(places(check, &files), ["b.rs", "c.rs", LIST]);
    }

    #[test]
    fn main_is_refused_when_its_files_together_are_long() {
        let half = "x;\n".repeat(3500);
        let files = [
            ("crates/millrace/src/main.rs", half.as_str()),
            ("crates/millrace/src/signals.rs", half.as_str()),
        ];
        assert_eq!(places(check, &files), ["crates/millrace/src"]);
    }
}
