//! A Rust file of more than a thousand lines holds a second noun, unless it is a list.

use super::Complaint;
use crate::tree::Tree;

const LINES_MAX: usize = 1000;
/// `main()` and what stands beside it decide nothing, so they stay small together.
const MAIN_LINES_MAX: usize = 1000;

/// Longer files, each with its reason.
const LISTS: &[(&str, &str)] = &[
    (
        "crates/pure/wire/src/collations.rs",
        "a table: every collation that MySQL and MariaDB know",
    ),
    (
        "crates/pure/config/src/variables/registry.rs",
        "a registry: one declaration per variable",
    ),
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut main = 0;
    for (path, text) in tree.ending(".rs") {
        let lines = text.lines().count();
        if lines > LINES_MAX && !LISTS.iter().any(|(list, _)| *list == path) {
            let words = format!(
                "has {lines} lines, more than {LINES_MAX}: give its second noun a file of its own"
            );
            found.push(Complaint::file(path, words));
        }
        if path.starts_with("crates/millrace/src/") {
            main += lines;
        }
    }
    if main > MAIN_LINES_MAX {
        let words = format!(
            "has {main} lines, more than {MAIN_LINES_MAX}: what decides belongs into a crate"
        );
        found.push(Complaint::file("crates/millrace/src", words));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_long_file_is_refused_unless_it_is_a_list() {
        let long = "//! x\n".repeat(1001);
        let files = [
            (LISTS[0].0, long.as_str()),
            ("b.rs", long.as_str()),
            ("c.rs", "//! x\n"),
        ];
        assert_eq!(places(check, &files), ["b.rs"]);
    }

    #[test]
    fn main_is_refused_when_its_files_together_are_long() {
        let half = "//! x\n".repeat(600);
        let files = [
            ("crates/millrace/src/main.rs", half.as_str()),
            ("crates/millrace/src/signals.rs", half.as_str()),
        ];
        assert_eq!(places(check, &files), ["crates/millrace/src"]);
    }
}
