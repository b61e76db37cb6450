//! `replace_pattern`: what `match_pattern` matched, in the text as earlier rules have left it, is replaced.

use crate::{Plan, Text};
use config::Rule;

pub(crate) fn apply(plan: &mut Plan, rule: &Rule, original: &[u8]) {
    let (Some(pattern), Some((replacement, everywhere))) = (&rule.match_pattern, &rule.replace) else { return };
    let Some(statement) = plan.statement_mut() else { return };
    if let Some(replaced) = pattern.replace(statement.of(original), replacement, *everywhere) {
        *statement = Text::Rewritten(replaced);
    }
}
