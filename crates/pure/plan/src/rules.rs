//! The chain of `mysql_query_rules`: which rules match, and what they set.

use crate::outcome::Legs;
use crate::trace::{Miss, Trace};
use crate::{By, Plan, SessionFacts, Statement, Text, rewrite};
use config::{Rule, Rules, Snapshot};

/// Where the chain ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<'a> {
    /// Its flag.
    pub(crate) flag: u32,
    /// The last rule that matched said apply=1.
    pub(crate) applied: bool,
    /// The rule that has the answer, and its position: OK_msg and error_msg.
    pub(crate) ok: Option<(&'a Rule, u32)>,
    pub(crate) error: Option<(&'a Rule, u32)>,
}

/// Looks at the rules in the order of rule_id and lets those that match set what they set; a later one overrules an
/// earlier one. A flagOUT leads forward only, unless mysql-query_processor_iterations allows to begin again.
pub(crate) fn walk<'a, T: Trace>(
    plan: &mut Plan,
    snapshot: &'a Snapshot,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    random: u64,
    trace: &mut T,
) -> End<'a> {
    let rules: &Rules = &snapshot.rules;
    let mut end = End { flag: session.next_flag_in.unwrap_or(0), applied: false, ok: None, error: None };
    if rules.chain().is_empty() {
        return end;
    }
    let mut iterations = snapshot.variables.mysql_query_processor_iterations;
    loop {
        let again = if T::WHOLE_CHAIN {
            round(0..rules.chain().len(), plan, rules, session, statement, random, iterations > 0, &mut end, trace)
        } else {
            let candidates = rules.candidates(&session.user.username, session.schema);
            round(candidates, plan, rules, session, statement, random, iterations > 0, &mut end, trace)
        };
        if !again {
            return end;
        }
        iterations -= 1;
    }
}

/// Once through the chain. Answers whether to begin again.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the facts of the decision; grouping them would name nothing")]
fn round<'a, T: Trace>(
    positions: impl Iterator<Item = usize>,
    plan: &mut Plan,
    rules: &'a Rules,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    random: u64,
    may_begin_again: bool,
    end: &mut End<'a>,
    trace: &mut T,
) -> bool {
    for position in positions {
        let Some(rule) = rules.chain().get(position) else { continue };
        if let Some(why) = misses(rule, end.flag, session, statement, plan) {
            trace.missed(rule, why);
            continue;
        }
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        plan.why.hit(position);
        let out = flag_out(rule, random.rotate_left(position & 63));
        end.flag = out.unwrap_or(end.flag);
        set(plan, rule, position);
        if rule.ok_msg.is_some() {
            end.ok = Some((rule, position));
        }
        if rule.error_msg.is_some() {
            end.error = Some((rule, position));
        }
        rewrite::apply(plan, rule, statement.text);
        trace.matched(rule, end.flag);
        if rule.apply {
            end.applied = true;
            return false;
        }
        if out.is_some() && may_begin_again {
            return true;
        }
    }
    false
}

/// The first reason why a rule does not match.
#[inline]
fn misses(rule: &Rule, flag: u32, session: &SessionFacts<'_>, statement: &Statement<'_>, plan: &Plan) -> Option<Miss> {
    if rule.flag_in != flag {
        return Some(Miss::FlagIn(flag));
    }
    if rule.username.as_deref().is_some_and(|name| *name != *session.user.username) {
        return Some(Miss::Username);
    }
    if rule.schemaname.as_deref().is_some_and(|name| name != session.schema) {
        return Some(Miss::Schemaname);
    }
    if rule.client_addr.as_ref().is_some_and(|pattern| !pattern.is_match(session.client_addr)) {
        return Some(Miss::ClientAddr);
    }
    if rule.proxy_addr.as_deref().is_some_and(|address| address != session.proxy_addr) {
        return Some(Miss::ProxyAddr);
    }
    if rule.proxy_port.is_some_and(|port| port != session.proxy_port) {
        return Some(Miss::ProxyPort);
    }
    if rule.digest.is_some() || rule.match_digest.is_some() {
        let Some(digest) = &statement.digest else { return Some(Miss::NoDigest) };
        if rule.digest.is_some_and(|hash| hash != digest.hash) {
            return Some(Miss::Digest);
        }
        // The digest is of what the client sent, whatever earlier rules have made of it.
        if rule.match_digest.as_ref().is_some_and(|it| it.is_match(digest.text) == rule.negate_match_pattern) {
            return Some(Miss::MatchDigest);
        }
    }
    if let Some(pattern) = &rule.match_pattern {
        let text = match &plan.legs {
            Legs::One([leg]) => leg.statement.of(statement.text),
            Legs::Many(_) => statement.text,
        };
        if pattern.is_match(text) == rule.negate_match_pattern {
            return Some(Miss::MatchPattern);
        }
    }
    None
}

fn flag_out(rule: &Rule, random: u64) -> Option<u32> {
    let Some(outs) = &rule.flag_outs else { return rule.flag_out };
    crate::pick_by(outs, |(_, weight)| *weight, random).and_then(|at| outs.get(at)).map(|(flag, _)| *flag)
}

#[inline]
fn set(plan: &mut Plan, rule: &Rule, position: u32) {
    if let Some(hostgroup) = rule.destination_hostgroup {
        plan.send_to(hostgroup, By::Rule(position));
    }
    overrule(&mut plan.cache_ttl_ms, rule.cache_ttl_ms);
    overrule(&mut plan.cache_empty_result, rule.cache_empty_result);
    overrule(&mut plan.cache_timeout_ms, rule.cache_timeout_ms);
    overrule(&mut plan.reconnect, rule.reconnect);
    overrule(&mut plan.timeout_ms, rule.timeout_ms);
    overrule(&mut plan.retries, rule.retries);
    overrule(&mut plan.delay_ms, rule.delay_ms);
    overrule(&mut plan.next_flag_in, rule.next_flag_in);
    overrule(&mut plan.multiplex, rule.multiplex);
    overrule(&mut plan.log, rule.log);
}

#[inline]
fn overrule<T: Copy>(earlier: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *earlier = later;
    }
}

impl Plan {
    /// The statement of the one leg that rules deal with.
    pub(crate) fn statement_mut(&mut self) -> Option<&mut Text> {
        match &mut self.legs {
            Legs::One([leg]) => Some(&mut leg.statement),
            Legs::Many(_) => None,
        }
    }
}
