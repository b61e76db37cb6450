//! The list of rules. A rule looks at the whole tree and says what it does not like.

use std::fmt;

use crate::tree::Tree;

mod acceptance;
mod circles;
mod comments;
mod counters;
mod dependencies;
mod documents;
mod hosts;
mod layers;
mod length;
mod lexicon;
mod manifest;
mod opening;
mod unfinished;
mod unsafety;

/// One thing that a rule does not like, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The file, with the line where there is one (`crates/io/rt/src/lib.rs:12`).
    pub at: String,
    /// One sentence.
    pub words: String,
}

impl Complaint {
    fn file(path: &str, words: impl Into<String>) -> Self {
        Self {
            at: path.to_owned(),
            words: words.into(),
        }
    }

    fn line(path: &str, index: usize, words: impl Into<String>) -> Self {
        Self {
            at: format!("{path}:{}", index + 1),
            words: words.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.at, self.words)
    }
}

/// A rule.
pub struct Rule {
    /// Demand of the rule, as a sentence.
    pub asks: &'static str,
    /// The check.
    pub check: fn(&Tree) -> Vec<Complaint>,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        asks: "a Rust file opens with a //! line that lets a reader decide to stay",
        check: opening::check,
    },
    Rule {
        asks: "a doc comment begins with a noun or a verb, and names the thing",
        check: comments::check,
    },
    Rule {
        asks: "a function has at most 800 tokens, or is on the list of those that shrink",
        check: length::check,
    },
    Rule {
        asks: "a crate depends only on those that its folder may know",
        check: dependencies::check,
    },
    Rule {
        asks: "at most three files of a crate know each other in a circle, or it is on the list of those that shrink",
        check: circles::check,
    },
    Rule {
        asks: "a folder of a crate in layers knows none that stands above it",
        check: layers::check,
    },
    Rule {
        asks: "a crate takes the workspace's lints, and each library a sentence of reason",
        check: manifest::check,
    },
    Rule {
        asks: "unsafe code lives in io/rt and nowhere else",
        check: unsafety::check,
    },
    Rule {
        asks: "nothing is left unfinished with a note in the code",
        check: unfinished::check,
    },
    Rule {
        asks: "every page under docs/ is linked from another, and no link is dead",
        check: documents::check,
    },
    Rule {
        asks: "one noun per idea: the lexicon's words, and none that it replaces",
        check: lexicon::check,
    },
    Rule {
        asks: "an acceptance case that a test names exists, and those that are due are named",
        check: acceptance::check,
    },
    Rule {
        asks: "a counter that is declared is counted",
        check: counters::check,
    },
    Rule {
        asks: "the tree stands alone: no registry's host, no path out of it",
        check: hosts::check,
    },
];

/// Everything that any rule does not like.
pub fn check_all(tree: &Tree) -> Vec<Complaint> {
    RULES.iter().flat_map(|rule| (rule.check)(tree)).collect()
}

/// The rules as a list for people.
pub fn describe() -> String {
    RULES
        .iter()
        .map(|rule| format!("  - {}\n", rule.asks))
        .collect()
}

/// Words of a check for the tests: the places, then the sentences.
#[cfg(test)]
fn places(check: fn(&Tree) -> Vec<Complaint>, files: &[(&str, &str)]) -> Vec<String> {
    check(&Tree::of(files))
        .into_iter()
        .map(|complaint| complaint.at)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_tree_is_tidy() {
        let tree = Tree::of_this_project().unwrap();
        assert!(tree.len() > 50, "the tree was not found");
        let complaints: Vec<String> = check_all(&tree).iter().map(Complaint::to_string).collect();
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }
}
