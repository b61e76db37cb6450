//! `OK_msg` and `error_msg`: the client gets its answer at once. OK goes before the error, whichever rule said it.

use crate::rules::End;
use crate::{Answer, By, Plan, SessionFacts};
use std::sync::Arc;

/// Such a statement is counted in the user's default hostgroup.
pub(crate) fn instead(plan: &mut Plan, session: &SessionFacts<'_>, end: End<'_>) {
    let said = match (end.ok, end.error) {
        (Some((rule, position)), _) => rule.ok_msg.as_ref().map(|text| (Answer::Say(Arc::clone(text)), position)),
        (None, Some((rule, position))) => rule.error_msg.as_ref().map(|text| (Answer::Refuse(Arc::clone(text)), position)),
        (None, None) => None,
    };
    if let Some((answer, position)) = said {
        plan.send_to(session.user.default_hostgroup, By::Rule(position));
        plan.answer = Some(answer);
    }
}
