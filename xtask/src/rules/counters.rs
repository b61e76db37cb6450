//! A counter that is declared is counted somewhere: a row that stays 0 would say something that is
//! not so.

use super::Complaint;
use crate::tree::Tree;

const DECLARED: &str = "crates/pure/bridge/src/counters.rs";

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let text = tree.text(DECLARED).unwrap_or_default();
    let counting: Vec<&str> = tree
        .ending(".rs")
        .filter(|(path, _)| path.starts_with("crates/") && *path != DECLARED)
        .map(|(_, text)| text)
        .collect();
    text.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let (name, rest) = line.trim().split_once(", \"")?;
            let declared = rest.ends_with("\";") && name.chars().all(char::is_alphanumeric);
            let used = format!("Counter::{name}");
            let counted = |text: &&str| {
                let ends = |at: usize| {
                    text[at + used.len()..]
                        .chars()
                        .next()
                        .is_none_or(|next| !next.is_alphanumeric())
                };
                text.match_indices(&used).any(|(at, _)| ends(at))
            };
            (declared && !counting.iter().any(counted))
                .then(|| Complaint::line(DECLARED, index, format!("nobody counts {name}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_counter_that_nobody_counts_is_refused() {
        let declared = "counters! {\n    Questions, \"Questions\", \"Asked.\";\n    Question, \"Question\", \"Never.\";\n}\n";
        let files = [
            (DECLARED, declared),
            (
                "crates/data/worker/src/a.rs",
                "tally.up(Counter::Questions);\n",
            ),
        ];
        assert_eq!(
            places(check, &files),
            ["crates/pure/bridge/src/counters.rs:3"]
        );
    }
}
