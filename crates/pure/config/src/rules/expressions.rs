//! The expressions of a chain, compiled: those that are in force already are taken over, and
//! whoever helps compiles the others.

use super::Rules;
use super::check::modifiers;
use crate::pattern::Workbench;
use crate::{Dialect, Pattern, RuleRow};
use std::collections::HashMap;

/// Who does long work: in steps, between which others get the processor, and perhaps several at
/// once.
pub trait Help: Sync {
    /// Called between steps.
    fn pause(&self) {}

    /// Has done all of these when it returns, in whatever order.
    fn share(&self, steps: Vec<Step<'_>>) {
        for step in steps {
            step();
        }
    }
}

/// Work that needs none of the others to be done.
pub type Step<'s> = Box<dyn FnOnce() + Send + 's>;

/// Nobody helps, and nobody else waits for the processor.
#[derive(Debug)]
pub struct Alone;

impl Help for Alone {}

/// A step compiles so many, which takes some milliseconds: their workbench is used again.
const STEP_LEN: usize = 64;

/// An expression, or what is wrong with it.
pub(super) type Compiled = Result<Pattern, String>;

/// Those of a rule.
#[derive(Default)]
pub(super) struct Expressions {
    /// Of `match_digest`.
    pub(super) digest: Option<Compiled>,
    /// Of `match_pattern`.
    pub(super) text: Option<Compiled>,
}

/// Parts by which two expressions are the same under one dialect.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Wanted<'r> {
    text: &'r str,
    caseless: bool,
    /// Whether what matches is replaced.
    replaces: bool,
}

/// Expression that is compiled once.
struct Making<'r> {
    wanted: Wanted<'r>,
    /// So many rules have yet to get it.
    uses: usize,
    made: Option<Compiled>,
}

/// By `match_digest` and by `match_pattern`.
fn wanted(row: &RuleRow) -> [Option<Wanted<'_>>; 2] {
    let (caseless, ..) = modifiers(row.re_modifiers.as_deref());
    let digest = row.match_digest.as_deref().map(|text| Wanted {
        text,
        caseless,
        replaces: false,
    });
    let replaces = row.replace_pattern.is_some();
    [
        digest,
        row.match_pattern.as_deref().map(|text| Wanted {
            text,
            caseless,
            replaces,
        }),
    ]
}

/// Those of each row. What is wrong with one is told to all that have it.
pub(super) fn all(
    rows: &[RuleRow],
    dialect: Dialect,
    before: &Rules,
    help: &dyn Help,
) -> Vec<Expressions> {
    let known = if before.dialect == Some(dialect) {
        known(before)
    } else {
        HashMap::new()
    };
    let (mut all, mut numbers): (Vec<Making<'_>>, HashMap<Wanted<'_>, usize>) = Default::default();
    let mut number = |wanted| {
        let number = *numbers.entry(wanted).or_insert_with(|| {
            let made = known.get(&wanted).map(|pattern| Ok((*pattern).clone()));
            all.push(Making {
                wanted,
                uses: 0,
                made,
            });
            all.len() - 1
        });
        all[number].uses += 1;
        number
    };
    let by_row: Vec<_> = rows
        .iter()
        .map(|row| wanted(row).map(|one| one.map(&mut number)))
        .collect();
    let mut missing: Vec<_> = all
        .iter_mut()
        .filter(|making| making.made.is_none())
        .collect();
    let steps = missing.chunks_mut(STEP_LEN).map(|some| -> Step<'_> {
        Box::new(move || {
            let mut bench = Workbench::default();
            for making in some {
                making.made = Some(making.wanted.compiled(&mut bench, dialect));
                help.pause();
            }
        })
    });
    help.share(steps.collect());
    let mut take = |number: usize| {
        let making = &mut all[number];
        making.uses -= 1;
        if making.uses == 0 {
            making.made.take()
        } else {
            making.made.clone()
        }
    };
    let of_a_row = |[digest, text]: [Option<usize>; 2]| Expressions {
        digest: digest.and_then(&mut take),
        text: text.and_then(&mut take),
    };
    by_row.into_iter().map(of_a_row).collect()
}

impl Wanted<'_> {
    fn compiled(self, bench: &mut Workbench, dialect: Dialect) -> Compiled {
        match self.replaces {
            true => Pattern::compile(self.text, self.caseless, dialect),
            false => Pattern::to_match(bench, self.text, self.caseless, dialect),
        }
    }
}

/// Returns the expressions that were compiled for the rules of before.
fn known(before: &Rules) -> HashMap<Wanted<'_>, &Pattern> {
    let mut known = HashMap::new();
    for rule in &before.chain {
        let patterns = [&rule.match_digest, &rule.match_pattern];
        known.extend(
            wanted(rule.row())
                .into_iter()
                .zip(patterns)
                .filter_map(|(wanted, pattern)| wanted.zip(pattern.as_ref())),
        );
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Variables;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts what is compiled: there is a pause after each, and one before each rule is checked.
    #[derive(Default)]
    struct Counting {
        steps: AtomicUsize,
        pauses: AtomicUsize,
    }

    impl Help for Counting {
        fn pause(&self) {
            self.pauses.fetch_add(1, Ordering::Relaxed);
        }

        fn share(&self, mut steps: Vec<Step<'_>>) {
            self.steps.fetch_add(steps.len(), Ordering::Relaxed);
            // In whatever order.
            while let Some(step) = steps.pop() {
                step();
            }
        }
    }

    fn row(rule_id: i64, text: &str) -> RuleRow {
        RuleRow {
            rule_id,
            active: 1,
            match_pattern: Some(text.into()),
            ..RuleRow::default()
        }
    }

    fn built(before: &Rules, rows: &[RuleRow], variables: &Variables) -> (Rules, usize) {
        let help = Counting::default();
        let made = Rules::build_with_help(before, rows.to_vec(), [], variables, &help).unwrap();
        let only_checked = Counting::default();
        Rules::build_with_help(&made, rows.to_vec(), [], variables, &only_checked).unwrap();
        assert_eq!(
            only_checked.steps.into_inner(),
            0,
            "nothing is compiled twice"
        );
        (
            made,
            help.pauses.into_inner() - only_checked.pauses.into_inner(),
        )
    }

    #[test]
    fn only_what_is_new_is_compiled() {
        let variables = Variables::default();
        let mut rows: Vec<_> = (0..200)
            .map(|n| row(n, &format!("from t{n} where [a-z]+")))
            .collect();
        let (first, compiled) = built(&Rules::default(), &rows, &variables);
        assert_eq!(compiled, 200);
        // Another place in the chain makes no other expression; another text, case or purpose does.
        rows.reverse();
        rows.iter_mut()
            .zip(500..)
            .for_each(|(row, rule_id)| row.rule_id = rule_id);
        rows[3] = row(503, "other");
        rows[4].re_modifiers = Some(String::new());
        rows[5].replace_pattern = Some("x".into());
        rows[6].match_digest = rows[7].match_pattern.clone();
        rows[8].active = 0;
        rows.push(rows[3].clone());
        rows[200].rule_id = 900;
        let (second, compiled) = built(&first, &rows, &variables);
        assert_eq!(compiled, 3);
        for rule in second.chain() {
            let text = rule
                .row()
                .match_pattern
                .as_deref()
                .unwrap()
                .replace("[a-z]+", "x");
            let pattern = rule.match_pattern.as_ref().unwrap();
            assert!(
                pattern.is_match(text.as_bytes()) && !pattern.is_match(b"from t7"),
                "{text}"
            );
            assert_eq!(
                pattern.is_match(text.to_ascii_uppercase().as_bytes()),
                rule.rule_id != 504,
                "{text}"
            );
        }
        // RE2 reads them anew.
        let re2 = Variables {
            mysql_query_processor_regex: 2,
            ..Variables::default()
        };
        assert_eq!(built(&second, &rows, &re2).1, 199);
    }

    #[test]
    fn what_is_wrong_with_an_expression_is_said_of_each_rule_that_has_it() {
        let rows = [row(1, "a(b"), row(2, "ab"), row(3, "a(b")];
        let refused = Rules::build(rows, [], &Variables::default()).unwrap_err();
        let said: Vec<_> = refused.iter().map(|refusal| &*refusal.row).collect();
        assert_eq!(said, ["rule_id 1", "rule_id 3"]);
    }
}
