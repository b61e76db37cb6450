//! A statement is over: it is counted, logged and traced.

use crate::command::job::{Digested, Job, Told, What};
use crate::known::epoch::Epoch;
use crate::seen::stats::{Bounds, Seen};
use crate::session::Session;
use bridge::{Auditable, Counter, Traced};
use plan::Plan;
use rt::Instant;
use sql::CommandCounter;

impl Session {
    /// Counts the rules that matched, and expressions on which PCRE gave up.
    pub(crate) fn count_decision(&self, epoch: &Epoch, plan: &Plan) {
        epoch.count(plan);
        let given_up = u64::from(plan.gave_up) + epoch.memo.borrow_mut().take_gave_up();
        if given_up > 0 {
            self.core.tally.add(Counter::ExpressionsGivenUp, given_up);
        }
    }

    /// Notes what a statement that was done leaves for those behind it. `autocommit`: as it was
    /// before.
    pub(crate) fn remember_it(&mut self, job: &Job<'_>, told: Told, autocommit: bool) {
        // What is prepared leaves ROW_COUNT() as it was, unless it fails.
        let counts = self.turn.failed
            || !matches!(job.what, What::Prepare(preparing) if preparing.naming.is_none());
        self.remembered.uncounted.set(!counts);
        if counts {
            self.remembered
                .row_count
                .set(if self.turn.failed { -1 } else { told.row_count });
        }
        self.settle_past(job);
        if job.class.ddl && !job.epoch.snapshot.shards.is_empty() {
            self.core.forget_columns();
        }
        if job.class.use_db.is_some() && !self.turn.failed {
            self.audit(Auditable::InitDb, None);
        }
        if (job.class.ends_transaction || job.class.begins_transaction) && !self.turn.failed {
            // One that is open now has begun with it, or begins with the next.
            self.entry.transaction_since.set(None);
        }
        // What it commits by the way was written before.
        if job.class.may_write() || !autocommit && self.state.autocommit {
            self.wrote = Some(self.core.rt.now());
        }
        #[cfg(debug_assertions)]
        if backend::planted::FORGET_WRITES.get() {
            self.wrote = None;
        }
    }

    /// Its session ends in the middle of it.
    pub(crate) fn breaks_off(&self, job: &Job<'_>, digested: &Option<Digested>, began: Instant) {
        self.log_if_wanted(job, job.digest, began, Told::default());
        self.ends_trace(job, digested.as_ref(), began, None);
    }

    /// Its trace is whole. `told`: none if its session has ended in the middle.
    fn ends_trace(
        &self,
        job: &Job<'_>,
        digested: Option<&Digested>,
        began: Instant,
        told: Option<Told>,
    ) {
        let facts = || {
            let asked = self.entry.server.borrow();
            let asked = asked.as_ref().filter(|_| self.entry.asks_a_server());
            let schema = job.what.prepared_in().unwrap_or(&self.state.schema);
            let is_well = told.is_some() && !self.turn.failed;
            let told = told.unwrap_or_default();
            let text =
                digested.map(|digested| String::from_utf8_lossy(&digested.text).into_owned());
            Traced {
                command: job.class.command.name(),
                session: u64::from(self.entry.id),
                user: self.user_name.to_string(),
                schema: schema.to_string(),
                client: self.entry.client.0.to_string(),
                server: asked.map(|(place, _)| (place.host().to_string(), place.server().port)),
                hostgroup: job.plan.hostgroup(),
                digest: digested.map_or(0, |digested| digested.hash),
                text: text.unwrap_or_default(),
                rows_sent: told.rows_sent,
                cached: told.from_cache,
                error: (!is_well).then_some(0),
                ..Traced::default()
            }
        };
        let slow = job.epoch.traces.as_ref().and_then(|wish| wish.slow);
        let (tracer, rt) = (&self.core.tracer, &self.core.rt);
        tracer.ends(self.entry.id, rt, (began, slow), facts);
    }

    pub(crate) fn count(
        &mut self,
        job: &Job<'_>,
        digested: Option<Digested>,
        began: Instant,
        told: Told,
    ) {
        self.ends_trace(job, digested.as_ref(), began, Some(told));
        if !job.what.is_init_db() {
            let known = digested.as_ref().map(|known| (known.hash, &*known.text));
            self.count_known(job, known, began, told);
        }
        if let Some(Digested { text, .. }) = digested {
            self.core.scratch.give(text);
        }
    }

    /// Counts a statement with this digest, in all tables that have it.
    pub(crate) fn count_known(
        &self,
        job: &Job<'_>,
        digested: Option<(u64, &[u8])>,
        began: Instant,
        told: Told,
    ) {
        let Job { epoch, plan, .. } = *job;
        let v = &epoch.snapshot.variables;
        let took = self.core.rt.now() - began;
        let time_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // What the firewall refuses is in a table of its own: these digests are what it may learn
        // from.
        let refused = plan
            .alarm
            .as_ref()
            .is_some_and(|alarm| alarm.action.refuses());
        let hostgroup = if told.from_cache {
            -1
        } else {
            i64::from(plan.hostgroup())
        };
        if job.class.command == CommandCounter::SelectForUpdate && !self.state.autocommit {
            self.core.tally.up(Counter::SelectsForUpdateInAutocommit0);
        }
        if v.mysql_commands_stats {
            self.core.commands.count(job.class.command, time_us);
            if !refused {
                self.core.latencies.count(hostgroup, time_us);
            }
        }
        if took.as_millis() >= u128::from(v.mysql_long_query_time) {
            self.core.tally.up(Counter::SlowQueries);
        }
        let Some((mut hash, mut text)) = digested else {
            return self.log_if_wanted(job, None, began, told);
        };
        let mut of_sent = Vec::new();
        if v.mysql_query_digests && !refused {
            // Partitions of a table are counted by its name, as the client said it.
            let is_mapped = job.digest.is_some() && plan.partition.is_some();
            let sent = if is_mapped { job.text } else { job.sent() };
            if !is_mapped && !self.has_digest_of_sent(job) {
                hash = sql::digest(sent, &epoch.digest, &mut of_sent);
                text = &of_sent;
            }
            let unnamed;
            let mut schema = job.what.prepared_in().unwrap_or(&self.state.schema);
            if schema.is_empty() {
                unnamed = self.core.default_schema(&v.mysql_default_schema);
                schema = &unnamed;
            }
            let seen = Seen {
                hostgroup,
                schema,
                user: &self.user_name,
                client_address: if v.mysql_query_digests_track_hostname {
                    &self.entry.client.0
                } else {
                    ""
                },
                digest: hash,
                text,
                shape: plan.alarm.as_ref().and_then(|alarm| alarm.shape()),
                alike: epoch.digests_alike || text.len() >= epoch.digest.max_digest_length,
                time_us,
                now_s: self.core.rt.wall_us() / 1_000_000,
                rows_affected: told.rows_affected,
                rows_sent: told.rows_sent,
            };
            if !self.core.digests.count(&seen, Bounds::of(v), || {
                self.shape(sent, self.lexing_of(job.what))
            }) {
                self.core.tally.up(Counter::DigestsDropped);
            }
        }
        self.log_if_wanted(job, Some(hash), began, told);
    }

    /// The events log. Where there is none, this is one comparison.
    fn log_if_wanted(&self, job: &Job<'_>, digest: Option<u64>, began: Instant, told: Told) {
        if let Some(usual) = job.epoch.logs
            && job.plan.log.unwrap_or(usual)
        {
            self.log(job, digest.unwrap_or(0), began, told);
        }
    }
}
