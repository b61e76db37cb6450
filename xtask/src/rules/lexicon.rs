//! One noun per idea, spelled the same everywhere; `docs/lexicon.md` is the referee.

use super::Complaint;
use crate::tree::Tree;

const PAGE: &str = "docs/lexicon.md";

/// Words that the lexicon has to define.
const WORDS: &[&str] = &[
    "client",
    "server",
    "backend",
    "session",
    "command",
    "statement",
    "digest",
    "plan",
    "stage",
    "leg",
    "hold",
    "core",
    "snapshot",
    "generation",
    "epoch",
    "hostgroup",
];

/// Ends of type names that say nothing; a noun of the domain says what it is.
const EMPTY_NOUNS: &[&str] = &["Manager", "Handler", "Util", "Utils", "Helper", "Context"];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = undefined_words(tree);
    for (path, text) in tree
        .ending(".rs")
        .filter(|(path, _)| path.starts_with("crates/"))
    {
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = declared(line, &["struct ", "enum ", "trait "])
                && let Some(noun) = EMPTY_NOUNS.iter().find(|noun| name.ends_with(**noun))
            {
                found.push(Complaint::line(
                    path,
                    index,
                    format!("{name}: '{noun}' says nothing, use a noun of the domain"),
                ));
            }
            if let Some(name) = declared(line, &["fn "])
                && name.starts_with("get_")
            {
                found.push(Complaint::line(
                    path,
                    index,
                    format!("{name}: the noun alone is the name, without get_"),
                ));
            }
        }
    }
    found
}

fn undefined_words(tree: &Tree) -> Vec<Complaint> {
    let Some(page) = tree.text(PAGE) else {
        return Vec::new();
    };
    let page = page.to_lowercase();
    // A definition stands in bold (`**leg**`), in code (`` `leg` ``) or as the first cell of a
    // table row.
    let defined = |word: &str| {
        [
            format!("**{word}"),
            format!("`{word}"),
            format!("| {word}"),
            format!("## {word}"),
        ]
        .iter()
        .any(|form| page.contains(form))
    };
    WORDS
        .iter()
        .filter(|word| !defined(word))
        .map(|word| Complaint::file(PAGE, format!("does not define '{word}'")))
        .collect()
}

/// The name that a line declares with one of these keywords.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let mut rest = line.trim_start();
    for prefix in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async "] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    let name = keywords
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword))?;
    let end = name
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    name.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn an_empty_noun_and_a_getter_are_refused() {
        let text = "//! x\npub struct PoolManager;\npub(crate) fn get_user() {}\nstruct Pool;\nfn target() {}\n";
        assert_eq!(
            places(check, &[("crates/a/src/lib.rs", text)]),
            ["crates/a/src/lib.rs:2", "crates/a/src/lib.rs:3"]
        );
    }

    #[test]
    fn a_lexicon_without_a_word_is_refused() {
        let page: String = WORDS
            .iter()
            .skip(1)
            .map(|word| format!("- **{word}**: …\n"))
            .collect();
        let found = check(&Tree::of(&[(PAGE, &page)]));
        assert_eq!(found, [Complaint::file(PAGE, "does not define 'client'")]);
    }
}
