//! A statement and facts of the session go in, a plan comes out.

use crate::command::job::{Text, What};
use crate::decide::written_keys;
use crate::known::epoch::Epoch;
use crate::session::Session;
use bridge::Counter;
use plan::{Answered, Plan, SessionFacts};
use shards::{Described, LookedUp, Making, Numbering};
use sql::bound::Bound;
use sql::{Class, Lexing};
use std::rc::Rc;

impl Session {
    /// Look-ups that were asked and told for the statement that has come in; none where no table has any.
    fn looked_up(&self, epoch: &Epoch) -> Option<Rc<LookedUp>> {
        let has_any = epoch.snapshot.shards.has_lookups();
        has_any.then(|| self.looked.clone())
    }

    /// Facts that servers have told for a decision.
    pub(crate) fn knowledge(&self, epoch: &Epoch) -> (Rc<Described>, Option<Rc<LookedUp>>) {
        (epoch.descriptions.known(), self.looked_up(epoch))
    }

    /// A statement with these facts, and with what a script says of it.
    pub(crate) fn with_knowledge<'a>(
        &self,
        epoch: &Epoch,
        (described, looked): &'a (Rc<Described>, Option<Rc<LookedUp>>),
        statement: plan::Statement<'a>,
    ) -> plan::Statement<'a> {
        plan::Statement {
            routed: self.routed(),
            columns: self.known_columns(epoch, described),
            looked: looked.as_deref(),
            ..statement
        }
    }
}

/// Returns the statement that a plan is decided for.
pub(crate) fn asked<'a>(
    read: Text<'a>,
    what: What<'a>,
    lexing: Lexing,
    digest: Option<plan::Digest<'a>>,
    (parameters, settled): (Option<&'a [Bound]>, Settled),
) -> plan::Statement<'a> {
    let text = read.sql;
    let comment =
        sql::words::may_have_comment(text).then(|| sql::words::first_comment(text, lexing));
    plan::Statement {
        text,
        digest,
        comment: comment.flatten().map(|at| &text[at]),
        prepared: what.sent_anyway(text),
        parameters,
        prepares: matches!(what, What::Prepare(preparing) if preparing.naming.is_none()),
        guarded: what.guarded(),
        routed: plan::Routed::default(),
        numbers: settled.numbers,
        making: settled.making,
        columns: None,
        looked: None,
        answered: None,
    }
}

/// Things that a statement over a sharded table may have had to wait for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settled {
    /// Numbers that its rows get.
    pub(crate) numbers: Numbering,
    /// Whether all partitions are known.
    pub(crate) making: Making,
}

impl From<Numbering> for Settled {
    fn from(numbers: Numbering) -> Self {
        Self {
            numbers,
            ..Self::default()
        }
    }
}

/// The command for a plan. Rows of an execution that have got numbers go as a text, with all values
/// in it.
pub(crate) fn as_planned<'t>(what: What<'t>, plan: &Plan) -> What<'t> {
    match what {
        What::Execute(execution) if plan.gather.is_none() && plan.numbered().is_some() => {
            What::Query(&execution.attributes)
        }
        _ => what,
    }
}

/// Writes the digest of a text, unless it is known; its hash.
pub(crate) fn write_digest(
    epoch: &Epoch,
    text: Text<'_>,
    what: What<'_>,
    digest: &mut Vec<u8>,
) -> u64 {
    match (what, text.judged) {
        (_, Some(judged)) => {
            digest.clear();
            digest.extend_from_slice(&judged.digest.1);
            judged.digest.0
        }
        (What::Execute(execution), None) if std::ptr::eq(text.sql, &*execution.prepared().sql) => {
            execution.prepared().digest(&epoch.digest, digest)
        }
        _ => sql::digest(text.sql, &epoch.digest, digest),
    }
}

impl Session {
    /// Decides what would become of a statement that has waited for this; nothing of it happens.
    pub(crate) fn decide_with(
        &self,
        epoch: &Epoch,
        read: Text<'_>,
        what: What<'_>,
        settled: impl Into<Settled>,
    ) -> Plan {
        self.decide_again(epoch, read, (what, settled.into()), None)
    }

    /// Decides the same of a statement whose partitions have answered this.
    pub(crate) fn decide_again(
        &self,
        epoch: &Epoch,
        read: Text<'_>,
        (what, settled): (What<'_>, Settled),
        answered: Option<&Answered>,
    ) -> Plan {
        let (lexing, parameters) = (self.lexing_of(what), written_keys::values(epoch, what));
        let mut buffer = Vec::new();
        let digest = epoch
            .digests
            .then(|| write_digest(epoch, read, what, &mut buffer));
        let digest = digest.map(|hash| plan::Digest {
            hash,
            text: &buffer,
        });
        let known = self.knowledge(epoch);
        let values = (parameters.as_deref(), settled);
        let statement = asked(read, what, lexing, digest, values);
        let statement = plan::Statement {
            answered,
            ..self.with_knowledge(epoch, &known, statement)
        };
        self.decide(epoch, read.class, (what.prepared_in(), lexing), &statement)
    }

    /// `prepared_in`: as [`What::prepared_in`].
    pub(crate) fn decide(
        &self,
        epoch: &Epoch,
        class: &Class<'_>,
        (prepared_in, lexing): (Option<&Rc<str>>, Lexing),
        statement: &plan::Statement<'_>,
    ) -> Plan {
        let v = &epoch.snapshot.variables;
        let default_hostgroup = self.user.default_hostgroup;
        // With autocommit off everything is in a transaction, begun or about to begin.
        let implicit = (!self.state.autocommit).then_some(default_hostgroup);
        let lock_on_set = v.mysql_set_query_lock_on_hostgroup == 1;
        // Locks of users are of no transaction: they are asked for and released where the session
        // has them.
        let user_lock = self.held.user_lock(class, statement.text);
        let facts = SessionFacts {
            user: &self.user,
            schema: self.schema_of(epoch, class, prepared_in),
            client_addr: &self.entry.client.0,
            proxy_addr: &self.local,
            proxy_port: self.local_port,
            in_transaction: if user_lock.is_some()
                || self.locks_beside_reader(class, statement.text)
            {
                None
            } else {
                let home = self.home_of(class, statement.text);
                home.or_else(|| self.held.transaction()).or(implicit)
            },
            begun: self.global.is_some() || self.held.transaction().is_some(),
            branches: self.has_branches(epoch),
            locked: user_lock
                .or_else(|| self.held.asked_for(class))
                .or_else(|| self.held.lock(default_hostgroup, lock_on_set)),
            next_flag_in: self.next_flag_in,
            autocommit: self.state.autocommit,
            split: self.split_facts(class, lexing),
        };
        let plan = || {
            let random = self.core.rt.random();
            plan::plan_with(
                &epoch.snapshot,
                &facts,
                statement,
                random,
                &mut epoch.memo.borrow_mut(),
            )
        };
        if !v.mysql_stats_time_query_processor {
            return plan();
        }
        let began = self.core.rt.precise_now();
        let plan = plan();
        let took =
            u64::try_from((self.core.rt.precise_now() - began).as_nanos()).unwrap_or(u64::MAX);
        self.core.tally.add(Counter::QueryProcessorTimeNsec, took);
        plan
    }

    /// Sends a remade statement to the connection that it is bound to. The statement of which rules
    /// made it may not have been bound.
    pub(crate) fn follow(&self, plan: &mut Plan) {
        if !self.held.is_empty()
            && let Some(hostgroup) = plan
                .remade()
                .and_then(|text| self.held.asked_for(&self.lexing().class(text)))
        {
            plan.follow(hostgroup);
        }
    }

    /// The schema that a decision goes by. `prepared_in`: as [`What::prepared_in`].
    pub(crate) fn schema_of<'s>(
        &'s self,
        epoch: &'s Epoch,
        class: &'s Class<'_>,
        prepared_in: Option<&'s Rc<str>>,
    ) -> &'s str {
        match (&class.use_db, &**prepared_in.unwrap_or(&self.state.schema)) {
            (Some(name), _) => name,
            (None, "") => &epoch.snapshot.variables.mysql_default_schema,
            (None, schema) => schema,
        }
    }
}
