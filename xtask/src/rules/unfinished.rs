//! No note that says that something is not done: it is done, or it is an issue.

use super::Complaint;
use crate::tree::Tree;

/// Written in two halves, so that this file does not complain about itself.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("HA", "CK:"),
    concat!("unimpl", "emented!("),
    concat!("to", "do!("),
];
const KINDS: &[&str] = &[
    ".rs", ".toml", ".sh", ".py", ".js", ".go", ".java", ".md", "Makefile", ".ci/run",
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree
        .files()
        .filter(|(path, _)| KINDS.iter().any(|kind| path.ends_with(kind)))
    {
        // The manifest names the lint that bans one of them.
        for (index, line) in text.lines().enumerate() {
            if let Some(mark) = MARKS.iter().find(|mark| line.contains(**mark)) {
                found.push(Complaint::line(
                    path,
                    index,
                    format!("says {mark}: finish it, or open an issue"),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_note_about_unfinished_work_is_refused() {
        let note = format!("//! x\n// {}: later\n", MARKS[0]);
        let call = format!("//! x\nfn a() {{ {}) }}\n", MARKS[5]);
        let files = [
            ("a.rs", note.as_str()),
            ("b.rs", call.as_str()),
            ("c.rs", "//! Done.\n"),
            ("d.bin", note.as_str()),
        ];
        assert_eq!(places(check, &files), ["a.rs:2", "b.rs:2"]);
    }
}
