//! The decision, told: every rule that was looked at, why it did not match or what it set, and the
//! end.

use crate::trace::{Besides, Miss, Trace};
use crate::{Plan, SessionFacts, Statement, decide};
use config::{Rule, Rules, Snapshot};
use std::fmt;

/// How a plan came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Things that were looked at, in order; the last step is the decision.
    pub steps: Vec<Step>,
    /// The decision: what [`crate::plan`] answers.
    pub plan: Plan,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which rule, if it was one.
    pub rule_id: Option<i64>,
    /// Thing that was looked at: a rule's conditions, `fast routing`, `hint`, `freshness`,
    /// `transaction`, `session`, `decision`.
    pub what: String,
    /// Result of the look, in words.
    pub outcome: String,
}

/// Columns of [`Explanation::rows`].
pub const COLUMNS: [&str; 4] = ["step", "rule_id", "what", "outcome"];

/// Decides as [`crate::plan`] does, and tells how.
#[must_use]
pub fn explain(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    random: u64,
) -> Explanation {
    let mut listener = Listener {
        rules: &snapshot.rules,
        steps: Vec::new(),
    };
    let plan = decide(snapshot, session, statement, random, None, &mut listener);
    Explanation {
        steps: listener.steps,
        plan,
    }
}

impl Explanation {
    /// As rows of a table with the columns of [`COLUMNS`].
    pub fn rows(&self) -> impl Iterator<Item = [Option<String>; 4]> + '_ {
        (1..).zip(&self.steps).map(|(number, step): (usize, _)| {
            let rule_id = step.rule_id.map(|rule_id| rule_id.to_string());
            [
                Some(number.to_string()),
                rule_id,
                Some(step.what.clone()),
                Some(step.outcome.clone()),
            ]
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule_id {
            Some(rule_id) => write!(f, "rule {rule_id} [{}]: {}", self.what, self.outcome),
            None => write!(f, "{}: {}", self.what, self.outcome),
        }
    }
}

struct Listener<'a> {
    rules: &'a Rules,
    steps: Vec<Step>,
}

impl Listener<'_> {
    fn rule(&mut self, rule: &Rule, outcome: String) {
        self.steps.push(Step {
            rule_id: Some(rule.rule_id),
            what: conditions(rule),
            outcome,
        });
    }
}

impl Trace for Listener<'_> {
    const LOOKS_AT: Besides = Besides::Everything;

    fn missed(&mut self, rule: &Rule, why: Miss) {
        self.rule(rule, format!("no: {}", why.words(rule)));
    }

    fn matched(&mut self, rule: &Rule, flag: u32) {
        self.rule(rule, format!("yes: {}", effects(rule, flag)));
    }

    fn saw(&mut self, what: &str, outcome: impl FnOnce() -> String) {
        self.steps.push(Step {
            rule_id: None,
            what: what.into(),
            outcome: outcome(),
        });
    }

    fn decided(&mut self, plan: &Plan) {
        let outcome = plan.shown(self.rules).to_string();
        self.steps.push(Step {
            rule_id: None,
            what: "decision".into(),
            outcome,
        });
    }
}

/// Returns what a rule asks, in the columns' names.
fn conditions(rule: &Rule) -> String {
    let row = rule.row();
    let mut parts = Vec::new();
    if rule.flag_in != 0 {
        parts.push(format!("flagIN={}", rule.flag_in));
    }
    let texts = [
        ("username", &row.username),
        ("schemaname", &row.schemaname),
        ("client_addr", &row.client_addr),
        ("proxy_addr", &row.proxy_addr),
    ];
    let asked = |(name, text): (&str, &Option<String>)| {
        text.as_deref()
            .filter(|text| !text.is_empty())
            .map(|text| format!("{name}={text}"))
    };
    parts.extend(texts.into_iter().filter_map(asked));
    parts.extend(rule.proxy_port.map(|port| format!("proxy_port={port}")));
    parts.extend(row.digest.as_ref().map(|digest| format!("digest={digest}")));
    parts.extend(
        row.match_digest
            .as_ref()
            .map(|text| format!("match_digest={text}")),
    );
    parts.extend(
        row.match_pattern
            .as_ref()
            .map(|text| format!("match_pattern={text}")),
    );
    if rule.negate_match_pattern {
        parts.push("negate_match_pattern=1".into());
    }
    if parts.is_empty() {
        "anything".into()
    } else {
        parts.join(" ")
    }
}

/// Returns what a rule sets, in the columns' names.
fn effects(rule: &Rule, flag: u32) -> String {
    let row = rule.row();
    let mut parts = Vec::new();
    let numbers = [
        (
            "destination_hostgroup",
            rule.destination_hostgroup.map(i64::from),
        ),
        ("cache_ttl", row.cache_ttl),
        ("cache_empty_result", row.cache_empty_result),
        ("cache_timeout", row.cache_timeout),
        ("reconnect", row.reconnect),
        ("timeout", row.timeout),
        ("retries", row.retries),
        ("delay", row.delay),
        ("next_query_flagIN", row.next_query_flagIN),
        ("multiplex", row.multiplex),
        ("mirror_hostgroup", row.mirror_hostgroup),
        ("mirror_flagOUT", row.mirror_flagOUT),
        (
            "gtid_from_hostgroup",
            rule.gtid_from_hostgroup.map(i64::from),
        ),
        (
            "max_rows",
            rule.rows_max.and_then(|rows| i64::try_from(rows).ok()),
        ),
        ("log", row.log),
    ];
    parts.extend(
        numbers
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={value}"))),
    );
    let switches = [
        ("cache_invalidate", rule.cache_invalidate),
        ("mirror_compare", rule.mirror_compare),
        ("trace", rule.trace),
    ];
    parts.extend(
        switches
            .into_iter()
            .filter_map(|(name, on)| on.map(|on| format!("{name}={on}"))),
    );
    let texts = [
        ("replace_pattern", &row.replace_pattern),
        ("error_msg", &row.error_msg),
        ("OK_msg", &row.OK_msg),
    ];
    parts.extend(
        texts
            .into_iter()
            .filter_map(|(name, text)| text.as_ref().map(|text| format!("{name}='{text}'"))),
    );
    if rule.flag_out.is_some() || rule.flag_outs.is_some() {
        parts.push(format!("flagOUT={flag}"));
    }
    if rule.apply {
        parts.push("apply=1".into());
    }
    if parts.is_empty() {
        "sets nothing".into()
    } else {
        parts.join(" ")
    }
}
