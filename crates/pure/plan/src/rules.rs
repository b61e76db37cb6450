//! The chain of `mysql_query_rules`: which rules match, and what they set.

use crate::trace::{Besides, Miss, Trace};
use crate::{By, Plan, SessionFacts, Statement, rewrite};
use config::{Asked, Candidate, GaveUp, Memo, Rule, Rules, Snapshot};

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
    /// The rule by which it could not be rewritten, since PCRE gave up.
    pub(crate) unmade: Option<(&'a Rule, u32)>,
}

impl End<'_> {
    /// No server is asked.
    pub(crate) const fn is_answered(&self) -> bool {
        self.ok.is_some() || self.error.is_some() || self.unmade.is_some()
    }
}

/// Inputs that the walk reads and does not change.
#[derive(Clone, Copy)]
struct Walk<'a, 'f> {
    rules: &'a Rules,
    session: &'f SessionFacts<'f>,
    statement: &'f Statement<'f>,
    random: u64,
}

/// Looks at the rules in the order of rule_id and lets those that match set what they set; a later
/// one overrules an earlier one. A flagOUT leads forward only, unless
/// mysql-query_processor_iterations allows to begin again.
pub(crate) fn walk<'a, T: Trace>(
    plan: &mut Plan,
    snapshot: &'a Snapshot,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    random: u64,
    mut memo: Option<&mut Memo>,
    trace: &mut T,
) -> End<'a> {
    let rules: &Rules = &snapshot.rules;
    let mut end = End {
        flag: session.next_flag_in.unwrap_or(0),
        applied: false,
        ok: None,
        error: None,
        unmade: None,
    };
    if rules.chain().is_empty() {
        return end;
    }
    let walk = Walk {
        rules,
        session,
        statement,
        random,
    };
    let mut iterations = snapshot.variables.mysql_query_processor_iterations;
    let mut from = 0;
    while let Some(next) = walk.on(
        from,
        iterations > 0,
        plan,
        &mut end,
        memo.as_deref_mut(),
        trace,
    ) {
        // Only beginning again is counted.
        iterations -= u64::from(next == 0);
        from = next;
    }
    end
}

impl<'a> Walk<'a, '_> {
    /// From a position on, until the candidates are others: because the flag has changed or the
    /// text was rewritten. Answers where to go on, if not all is said.
    #[inline]
    fn on<T: Trace>(
        self,
        from: u32,
        may_begin_again: bool,
        plan: &mut Plan,
        end: &mut End<'a>,
        memo: Option<&mut Memo>,
        trace: &mut T,
    ) -> Option<u32> {
        let Walk {
            rules,
            session,
            statement,
            random,
        } = self;
        let candidates = match T::LOOKS_AT {
            Besides::Nothing => rules.candidates(&self.asked(plan, end.flag), from, memo),
            Besides::Unsure => rules.candidates_and_unsure(&self.asked(plan, end.flag), from),
            Besides::Everything => rules.all_from(from),
        };
        let mut before = None;
        for Candidate {
            position,
            digest_matches,
        } in candidates
        {
            if matches!(T::LOOKS_AT, Besides::Unsure) && before.replace(position) == Some(position)
            {
                continue;
            }
            let Some(rule) = rules.chain().get(position as usize) else {
                continue;
            };
            let mut gave_up = false;
            let missed = misses(
                rule,
                end.flag,
                session,
                statement,
                plan,
                digest_matches,
                &mut || gave_up = true,
            );
            plan.gave_up |= gave_up;
            if let Some(why) = missed {
                trace.missed(rule, why);
                continue;
            }
            plan.why.hit(position);
            let flag = end.flag;
            let out = flag_out(rule, random.rotate_left(position & 63));
            end.flag = out.unwrap_or(flag);
            set(plan, rule, position);
            if rule.ok_msg.is_some() {
                end.ok = Some((rule, position));
            }
            if rule.error_msg.is_some() {
                end.error = Some((rule, position));
            }
            let rewritten = rewrite::apply(plan, rule, statement.text).unwrap_or_else(|GaveUp| {
                (plan.gave_up, end.unmade) = (true, Some((rule, position)));
                false
            });
            trace.matched(rule, end.flag);
            if rule.apply {
                end.applied = true;
                return None;
            }
            if out.is_some() && may_begin_again {
                return Some(0);
            }
            if end.flag != flag || rewritten && rules.candidates_by_text() {
                return Some(position + 1);
            }
        }
        None
    }

    fn asked<'t>(&'t self, plan: &'t Plan, flag: u32) -> Asked<'t> {
        Asked {
            flag,
            user: &self.session.user.username,
            schema: self.session.schema,
            client_addr: self.session.client_addr,
            proxy_addr: self.session.proxy_addr,
            proxy_port: self.session.proxy_port,
            digest: self
                .statement
                .digest
                .map(|digest| (digest.hash, digest.text)),
            text: text(plan, self.statement),
        }
    }
}

/// The statement as earlier rules have rewritten it.
fn text<'t>(plan: &'t Plan, statement: &Statement<'t>) -> &'t [u8] {
    plan.leg.statement.of(statement.text)
}

/// The first reason why a rule does not match.
#[inline]
fn misses(
    rule: &Rule,
    flag: u32,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    plan: &Plan,
    digest_matches: bool,
    gave_up: &mut dyn FnMut(),
) -> Option<Miss> {
    if rule.flag_in != flag {
        return Some(Miss::FlagIn(flag));
    }
    if rule
        .username
        .as_deref()
        .is_some_and(|name| *name != *session.user.username)
    {
        return Some(Miss::Username);
    }
    if rule
        .schemaname
        .as_deref()
        .is_some_and(|name| name != session.schema)
    {
        return Some(Miss::Schemaname);
    }
    if rule
        .client_addr
        .as_ref()
        .is_some_and(|pattern| !pattern.is_match(session.client_addr))
    {
        return Some(Miss::ClientAddr);
    }
    if rule
        .proxy_addr
        .as_deref()
        .is_some_and(|address| address != session.proxy_addr)
    {
        return Some(Miss::ProxyAddr);
    }
    if rule
        .proxy_port
        .is_some_and(|port| port != session.proxy_port)
    {
        return Some(Miss::ProxyPort);
    }
    if rule.digest.is_some() || rule.match_digest.is_some() {
        let Some(digest) = &statement.digest else {
            return Some(Miss::NoDigest);
        };
        if rule.digest.is_some_and(|hash| hash != digest.hash) {
            return Some(Miss::Digest);
        }
        // The digest is of what the client sent, whatever earlier rules have made of it.
        if !digest_matches
            && rule
                .match_digest
                .as_ref()
                .is_some_and(|it| !rule.fits(it, digest.text, gave_up))
        {
            return Some(Miss::MatchDigest);
        }
    }
    if rule
        .match_pattern
        .as_ref()
        .is_some_and(|it| !rule.fits(it, text(plan, statement), gave_up))
    {
        return Some(Miss::MatchPattern);
    }
    None
}

/// The column is a later word than the draw, as in ProxySQL.
fn flag_out(rule: &Rule, random: u64) -> Option<u32> {
    let drawn = || {
        let outs = rule.flag_outs.as_deref()?;
        crate::pick_by(outs, |(_, weight)| *weight, random)
            .and_then(|at| outs.get(at))
            .map(|(flag, _)| *flag)
    };
    rule.flag_out.or_else(drawn)
}

#[inline]
fn set(plan: &mut Plan, rule: &Rule, position: u32) {
    if let Some(hostgroup) = rule.destination_hostgroup {
        plan.send_to(hostgroup, By::Rule(position));
    }
    overrule(&mut plan.cache_ttl_ms, rule.cache_ttl_ms);
    overrule(&mut plan.cache_empty_result, rule.cache_empty_result);
    overrule(&mut plan.cache_timeout_ms, rule.cache_timeout_ms);
    overrule(&mut plan.cache_invalidate, rule.cache_invalidate);
    overrule(&mut plan.reconnect, rule.reconnect);
    overrule(&mut plan.timeout_ms, rule.timeout_ms);
    overrule(&mut plan.retries, rule.retries);
    overrule(&mut plan.delay_ms, rule.delay_ms);
    overrule(&mut plan.next_flag_in, rule.next_flag_in);
    overrule(&mut plan.multiplex, rule.multiplex);
    overrule(&mut plan.log, rule.log);
    overrule(&mut plan.trace, rule.trace);
    overrule(&mut plan.rows_max, rule.rows_max.map(Box::new));
    overrule(&mut plan.gtid_from_hostgroup, rule.gtid_from_hostgroup);
    plan.wish.hear(rule);
}

#[inline]
fn overrule<T>(earlier: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *earlier = later;
    }
}
