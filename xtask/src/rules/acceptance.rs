//! Acceptance cases: what a test names exists in the list, and what is due is named by a test.

use std::collections::{BTreeMap, BTreeSet};

use super::Complaint;
use crate::tree::Tree;

const LIST: &str = "xtask/acceptance.txt";
/// Test data in which a comment may name a case, besides Rust.
const KINDS: &[&str] = &[".rs", ".txt", ".scenario"];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(list) = tree.text(LIST) else {
        return Vec::new();
    };
    let (cases, mut found) = read_list(list);
    let mut named = BTreeSet::new();
    for (path, text) in tree
        .files()
        .filter(|(path, _)| KINDS.iter().any(|kind| path.ends_with(kind)))
    {
        if path.starts_with("xtask/") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            for number in numbers_in_comment(line) {
                named.insert(number);
                if !cases.contains_key(&number) {
                    found.push(Complaint::line(
                        path,
                        index,
                        format!("names A{number}, which {LIST} does not have"),
                    ));
                }
            }
        }
    }
    let unnamed = cases
        .iter()
        .filter(|(number, due)| **due && !named.contains(number));
    found.extend(unnamed.map(|(number, _)| {
        Complaint::file(LIST, format!("A{number} is due, and no test names it"))
    }));
    found
}

/// Number → is it due?
fn read_list(list: &str) -> (BTreeMap<u32, bool>, Vec<Complaint>) {
    let mut cases = BTreeMap::new();
    let mut found = Vec::new();
    for (index, line) in list.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let range = words.next().and_then(|word| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            Some((
                first.strip_prefix('A')?.parse::<u32>().ok()?,
                last.strip_prefix('A')?.parse::<u32>().ok()?,
            ))
        });
        match (range, words.next()) {
            (Some((first, last)), Some(state @ ("due" | "later"))) => {
                cases.extend((first..=last).map(|number| (number, state == "due")));
            }
            _ => found.push(Complaint::line(
                LIST,
                index,
                "is not `A1 due|later words` or `A1-A9 later words`",
            )),
        }
    }
    (cases, found)
}

/// The `A12` of a comment: `/// A12, A13: …` or, in data, `# A12: …`. Elsewhere A12 may be
/// anything.
fn numbers_in_comment(line: &str) -> Vec<u32> {
    let line = line.trim_start();
    if !line.starts_with("//") && !line.starts_with('#') {
        return Vec::new();
    }
    line.split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|word| word.strip_prefix('A')?.parse().ok())
        .filter(|number| (1..1000).contains(number))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_case_that_does_not_exist_and_a_due_one_without_a_test_are_refused() {
        let files = [
            (LIST, "# list\nA1 due one\nA2 due two\nA3-A9 later more\n"),
            (
                "crates/a/tests/a.rs",
                "//! x\n/// A1, A4: proven\nfn a() {}\n/// A12: unheard of\nlet a = A99;\n",
            ),
        ];
        assert_eq!(places(check, &files), ["crates/a/tests/a.rs:4", LIST]);
    }

    #[test]
    fn a_line_of_the_list_that_cannot_be_read_is_refused() {
        assert_eq!(
            places(check, &[(LIST, "A1 soon one\n")]),
            ["xtask/acceptance.txt:1"]
        );
    }
}
