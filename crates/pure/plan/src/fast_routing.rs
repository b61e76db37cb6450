//! `mysql_query_rules_fast_routing`: looked at when the chain has ended, unless its last match said
//! apply=1.

use crate::rules::End;
use crate::trace::Trace;
use crate::{By, Plan, SessionFacts};
use config::Rules;

pub(crate) fn look<T: Trace>(
    plan: &mut Plan,
    rules: &Rules,
    session: &SessionFacts<'_>,
    end: End<'_>,
    trace: &mut T,
) {
    if rules.fast().is_empty() {
        return;
    }
    if end.applied {
        trace.saw("fast routing", || {
            "not looked at: the last rule said apply=1".into()
        });
        return;
    }
    let found = rules
        .fast()
        .hostgroup(&session.user.username, session.schema, end.flag);
    if let Some(hostgroup) = found {
        plan.send_to(hostgroup, By::FastRouting);
    }
    trace.saw("fast routing", || {
        let key = format!(
            "user '{}', schema '{}', flag {}",
            session.user.username, session.schema, end.flag
        );
        match found {
            Some(hostgroup) => format!("{key}: hostgroup {hostgroup}"),
            None => format!("{key}: no row"),
        }
    });
}
