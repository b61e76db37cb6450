//! `replace_pattern`: what `match_pattern` matched, in the text as earlier rules have left it, is
//! replaced.

use crate::{Plan, Text};
use config::{GaveUp, Rule};

/// Answers whether the text has changed.
pub(crate) fn apply(plan: &mut Plan, rule: &Rule, original: &[u8]) -> Result<bool, GaveUp> {
    let (Some(pattern), Some((replacement, everywhere))) = (&rule.match_pattern, &rule.replace)
    else {
        return Ok(false);
    };
    let statement = &mut plan.leg.statement;
    let Some(replaced) = pattern.replace(statement.of(original), replacement, *everywhere)? else {
        return Ok(false);
    };
    *statement = Text::Rewritten(replaced);
    Ok(true)
}
