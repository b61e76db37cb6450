//! A doc comment begins with a noun or a verb, so that it says by itself what it is about.

use super::Complaint;
use crate::tree::Tree;

/// Beginnings whose meaning stands elsewhere.
const BANNED: [&str; 3] = ["What ", "It ", "The same"];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree.ending(".rs") {
        let mut inside = false;
        for (index, line) in text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("/// ");
            let begins = comment.filter(|_| !inside).and_then(|words| {
                let mut banned = BANNED.iter();
                banned.find(|banned| words.starts_with(**banned))
            });
            if let Some(word) = begins {
                let word = word.trim_end();
                let words = format!("a doc comment begins with '{word}': name the thing");
                found.push(Complaint::line(path, index, words));
            }
            inside = line.trim_start().starts_with("///");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_comment_whose_subject_stands_elsewhere_is_refused() {
        let text = [
            "/// What a client says.",
            "fn a() {}",
            "/// Bytes of a piece.",
            "/// It has some.",
            "fn b() {}",
            "    /// The same, for others.",
            "    c: u8,",
            "// What is no doc comment.",
            "/// Items.",
        ];
        let text = text.join("\n");
        assert_eq!(places(check, &[("a.rs", &text)]), ["a.rs:1", "a.rs:6"]);
    }
}
