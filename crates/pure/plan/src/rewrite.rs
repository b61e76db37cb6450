//! `replace_pattern`: what `match_pattern` matched, in the text as earlier rules have left it, is replaced.

use crate::{Plan, Text};
use config::Rule;

/// Answers whether the text has changed.
pub(crate) fn apply(plan: &mut Plan, rule: &Rule, original: &[u8]) -> bool {
    let (Some(pattern), Some((replacement, everywhere))) = (&rule.match_pattern, &rule.replace) else { return false };
    let Some(statement) = plan.statement_mut() else { return false };
    let Some(replaced) = pattern.replace(statement.of(original), replacement, *everywhere) else { return false };
    *statement = Text::Rewritten(replaced);
    true
}
