//! `#![forbid(unsafe_code)]` at the root of every crate but `io/rt`.

use super::Complaint;
use crate::tree::Tree;

const FORBID: &str = "#![forbid(unsafe_code)]";
const MAY: &str = "crates/io/rt/";

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let is_root = |path: &str| {
        let program = path.ends_with("build.rs") && !path.contains("src/");
        path.ends_with("src/lib.rs")
            || path.ends_with("src/main.rs")
            || path.contains("src/bin/")
            || program
    };
    tree.ending(".rs")
        .filter(|(path, _)| is_root(path) && !path.starts_with(MAY))
        .filter(|(_, text)| !text.lines().any(|line| line.trim() == FORBID))
        .map(|(path, _)| {
            Complaint::file(path, format!("is the root of a crate and lacks {FORBID}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_crate_root_that_does_not_forbid_unsafe_is_refused() {
        let files = [
            ("crates/io/rt/src/lib.rs", "//! May.\n"),
            (
                "crates/pure/sql/src/lib.rs",
                "//! May not.\n// #![forbid(unsafe_code)] in a comment does not count\n",
            ),
            ("crates/pure/sql/src/words.rs", "//! Not a root.\n"),
            (
                "crates/pure/wire/src/lib.rs",
                "//! Says it.\n#![forbid(unsafe_code)]\n",
            ),
        ];
        assert_eq!(places(check, &files), ["crates/pure/sql/src/lib.rs"]);
    }
}
