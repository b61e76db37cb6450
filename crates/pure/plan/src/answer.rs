//! `OK_msg` and `error_msg`: the client gets its answer at once. OK goes before the error,
//! whichever rule said it. What a rule should have rewritten and could not is refused: the operator
//! wants it sent otherwise, or not at all.

use crate::rules::End;
use crate::{Answer, By, Plan, SessionFacts};
use config::Rule;
use std::sync::Arc;

/// Such a statement is counted in the user's default hostgroup.
pub(crate) fn instead(plan: &mut Plan, session: &SessionFacts<'_>, end: End<'_>) {
    let said = match (end.ok, end.error) {
        (Some((rule, position)), _) => rule
            .ok_msg
            .as_ref()
            .map(|text| (Answer::Say(Arc::clone(text)), position)),
        (None, Some((rule, position))) => rule
            .error_msg
            .as_ref()
            .map(|text| (Answer::Refuse(Arc::clone(text)), position)),
        (None, None) => end
            .unmade
            .map(|(rule, position)| (Answer::Refuse(unmade(rule)), position)),
    };
    if let Some((answer, position)) = said {
        plan.send_to(session.user.default_hostgroup, By::Rule(position));
        plan.answer = Some(answer);
    }
}

#[cold]
fn unmade(rule: &Rule) -> Arc<str> {
    format!("the statement cannot be rewritten as rule_id {} has it: its match_pattern takes too many steps on it", rule.rule_id)
        .into()
}
