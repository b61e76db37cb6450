//! `mirror_hostgroup` and `mirror_flagOUT`: a copy of the statement goes elsewhere, and nobody
//! waits for its answer.

use crate::outcome::{Leg, Mirror};
use crate::trace::Trace;
use crate::{Case, Plan, SessionFacts, Statement, Text, fast_routing, rules};
use config::Rule;

/// Wish of rules and hints for a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Where it goes.
    pub(crate) hostgroup: Option<u32>,
    /// The flag with which it goes through the chain by itself.
    flag: Option<u32>,
    compare: bool,
}

impl Wish {
    pub(crate) const NONE: Self = Self {
        hostgroup: None,
        flag: None,
        compare: false,
    };

    /// A rule matches.
    #[inline]
    pub(crate) fn hear(&mut self, rule: &Rule) {
        self.hostgroup = rule.mirror_hostgroup.or(self.hostgroup);
        self.flag = rule.mirror_flag_out.or(self.flag);
        self.compare = rule.mirror_compare.unwrap_or(self.compare);
    }

    const fn is_none(&self) -> bool {
        self.hostgroup.is_none() && self.flag.is_none()
    }
}

/// The copy begins as the statement has become. With mirror_flagOUT it goes through the chain once
/// more, from that flag on, and may be rewritten and sent elsewhere again; a copy has no copies,
/// and hints do not concern it.
#[inline]
pub(crate) fn copy<T: Trace>(plan: &mut Plan, case: Case<'_>, random: u64, trace: &mut T) {
    if !plan.wish.is_none() && plan.answer.is_none() {
        make(plan, case, random, trace);
    }
}

#[cold]
fn make<T: Trace>(plan: &mut Plan, case: Case<'_>, random: u64, trace: &mut T) {
    let Case {
        snapshot,
        session,
        statement,
    } = case;
    let wish = plan.wish;
    let mut copy = Plan::to(wish.hostgroup.unwrap_or(session.user.default_hostgroup));
    let text = plan.leg.statement.of(statement.text);
    if let Some(flag) = wish.flag {
        trace.saw("mirror", || {
            format!("a copy goes through the rules with flag {flag}")
        });
        let session = SessionFacts {
            next_flag_in: Some(flag),
            ..*session
        };
        let statement = Statement { text, ..*statement };
        let end = rules::walk(
            &mut copy, snapshot, &session, &statement, random, None, trace,
        );
        fast_routing::look(&mut copy, &snapshot.rules, &session, end, trace);
        for &position in copy.why.hits() {
            plan.why.hit(position);
        }
        plan.gave_up |= copy.gave_up;
        if end.is_answered() {
            trace.saw("mirror", || {
                "a rule answers the copy: it goes nowhere".to_owned()
            });
            return;
        }
    }
    let hostgroup = copy.hostgroup();
    trace.saw("mirror", || format!("a copy goes to hostgroup {hostgroup}"));
    let rewritten = match copy.leg.statement {
        Text::Rewritten(text) => Text::Rewritten(text),
        Text::AsIs => plan.leg.statement.clone(),
    };
    let leg = Leg {
        hostgroup,
        statement: rewritten,
    };
    plan.mirror = Some(Box::new(Mirror {
        leg,
        timeout_ms: copy.timeout_ms,
        delay_ms: copy.delay_ms,
        compare: wish.compare,
    }));
}
