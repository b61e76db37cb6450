//! A Rust file opens with a `//!` line.

use super::Complaint;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    tree.ending(".rs")
        .filter(|(_, text)| !text.lines().next().unwrap_or_default().starts_with("//! "))
        .map(|(path, _)| {
            Complaint::file(
                path,
                "does not open with a //! line that says what it is for",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_file_without_an_opening_is_refused() {
        let files = [
            ("a.rs", "//! What it is.\nfn a() {}\n"),
            ("b.rs", "fn b() {}\n//! Too late.\n"),
            ("c.rs", ""),
        ];
        assert_eq!(places(check, &files), ["b.rs", "c.rs"]);
    }
}
