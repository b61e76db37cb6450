//! A statement from its text to its statistics: classify, decide, do, count.

use crate::answer::Complaint;
use crate::dynamic::Dynamic;
use crate::epoch::Epoch;
use crate::inside::may_hold_others;
use crate::preparing::{Preparing, bare, quiet};
use crate::session::{Ended, Session};
use crate::stats::{Bounds, Seen};
use bridge::Counter;
use plan::{Answer, Guarded, Plan, SessionFacts, SplitFacts};
use rt::Instant;
use sql::{Class, Lexing};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::rc::Rc;
use wire::attributes::Attributes;
use wire::response::Expect;

/// What is to be done, all decided.
pub(crate) struct Job<'a> {
    pub(crate) epoch: &'a Epoch,
    /// What rules are asked with: what the client sent, or what a template has made of it.
    pub(crate) text: &'a [u8],
    /// Of what a server gets.
    pub(crate) class: &'a Class<'a>,
    pub(crate) plan: &'a Plan,
    /// Hash of its digest.
    pub(crate) digest: Option<u64>,
    pub(crate) what: What<'a>,
}

impl<'a> Job<'a> {
    /// The text that a server gets.
    pub(crate) fn sent(&self) -> &'a [u8] {
        self.what.sent(self.plan, self.text)
    }

    /// No rule has rewritten it.
    pub(crate) fn is_as_written(&self) -> bool {
        self.plan.remade().is_none()
    }
}

/// What is sent to the server.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    /// COM_QUERY with the text of the plan, and what the client has sent along.
    Query(&'a Attributes),
    /// This payload as it is.
    Raw(&'a [u8], Expect),
    /// COM_STMT_PREPARE.
    Prepare(&'a Preparing),
    /// COM_STMT_EXECUTE.
    Execute(&'a crate::prepared::Execution<'a>),
    /// COM_QUERY with an EXECUTE or DEALLOCATE of a statement that the session knows by name, or an
    /// EXECUTE IMMEDIATE.
    Dynamic(&'a Dynamic<'a>),
    /// Nothing: this is the answer.
    Refused(&'a Complaint),
}

impl<'a> What<'a> {
    /// The text that a server gets for the client's.
    pub(crate) fn sent(self, plan: &'a Plan, text: &'a [u8]) -> &'a [u8] {
        match self {
            What::Query(_) | What::Prepare(_) => plan.remade().unwrap_or(text),
            What::Execute(execution) => &execution.prepared.sql,
            What::Dynamic(dynamic) => match dynamic.prepared() {
                Some(prepared) => &prepared.sql,
                None => plan.remade().unwrap_or(text),
            },
            What::Raw(..) | What::Refused(_) => text,
        }
    }

    /// Whether it is COM_INIT_DB.
    pub(crate) const fn is_init_db(self) -> bool {
        matches!(self, What::Raw([wire::command::COM_INIT_DB, ..], _))
    }

    /// The schema that what is executed was prepared in, empty for none: it means that one,
    /// wherever its session is now. `None` for what was not prepared.
    pub(crate) fn prepared_in(self) -> Option<&'a Rc<str>> {
        match self {
            What::Execute(execution) => Some(&execution.prepared.schema),
            What::Dynamic(dynamic) => dynamic.prepared().map(|prepared| &prepared.schema),
            What::Query(_) | What::Raw(..) | What::Prepare(_) | What::Refused(_) => None,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) rows_affected: u64,
    pub(crate) rows_sent: u64,
    pub(crate) insert_id: u64,
    /// What ROW_COUNT() is after it, if it did not fail.
    pub(crate) row_count: i64,
    /// No server was asked.
    pub(crate) from_cache: bool,
}

/// The digest of a statement.
pub(crate) struct Digested {
    hash: u64,
    text: Vec<u8>,
}

impl Session {
    /// COM_INIT_DB is `USE` without SQL, and no statement: it goes where the rules send its schema,
    /// and neither they nor the statistics hear of it otherwise.
    pub(crate) async fn init_db(&mut self, epoch: &Epoch, schema: &[u8]) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendInitDb);
        let mut class = sql::class(b"USE x");
        class.use_db = std::str::from_utf8(schema).ok().map(Cow::Borrowed);
        let mut payload = vec![0x02];
        payload.extend_from_slice(schema);
        self.whole(
            epoch,
            b"USE ?",
            &class,
            "Init DB",
            What::Raw(&payload, Expect::Simple),
        )
        .await
    }

    /// COM_FIELD_LIST: the columns of a table, for old clients.
    pub(crate) async fn field_list(&mut self, epoch: &Epoch, payload: &[u8]) -> Result<(), Ended> {
        let class = sql::class(b"SHOW COLUMNS");
        self.whole(
            epoch,
            b"SHOW COLUMNS",
            &class,
            "Field List",
            What::Raw(payload, Expect::FieldList),
        )
        .await
    }

    /// COM_PROCESS_INFO: what SHOW PROCESSLIST says, where a server still knows the command.
    pub(crate) async fn process_info(
        &mut self,
        epoch: &Epoch,
        payload: &[u8],
    ) -> Result<(), Ended> {
        let class = sql::class(b"SHOW PROCESSLIST");
        self.whole(
            epoch,
            b"SHOW PROCESSLIST",
            &class,
            "Processlist",
            What::Raw(payload, Expect::Query),
        )
        .await
    }

    /// Decide, do, count. The class is that of what would be sent if no rule changed it.
    pub(crate) async fn whole(
        &mut self,
        epoch: &Epoch,
        text: &[u8],
        class: &Class<'_>,
        name: &'static str,
        what: What<'_>,
    ) -> Result<(), Ended> {
        let began = self.core.rt.now();
        self.forget_flag(epoch);
        self.entry.next_statement();
        self.core.tally.up(Counter::Questions);
        self.entry.begins(name, text, began);
        self.note_received(class, text, what);

        // What shall we do? Pure: nothing has happened yet.
        let mut buffer = self.core.scratch.take();
        let digest = epoch
            .digests
            .then(|| sql::digest(text, &epoch.digest, &mut buffer));
        let lexing = self.lexing_of(what);
        let comment =
            sql::words::may_have_comment(text).then(|| sql::words::first_comment(text, lexing));
        let comment = comment.flatten().map(|at| &text[at]);
        let prepared = match what {
            What::Execute(execution) => Some(&*execution.prepared.sql),
            What::Dynamic(dynamic) => dynamic.sent_anyway(text),
            What::Raw(..) => Some(text),
            What::Query(_) | What::Prepare(_) | What::Refused(_) => None,
        };
        let guarded = match what {
            _ if what.is_init_db() => Guarded::Schema,
            What::Raw(..) => Guarded::Nothing,
            _ => Guarded::Text,
        };
        let digest_of = digest.map(|hash| plan::Digest {
            hash,
            text: &buffer,
        });
        let statement = plan::Statement {
            text,
            digest: digest_of,
            comment,
            prepared,
            guarded,
        };
        let mut plan = self.decide(epoch, class, (what.prepared_in(), lexing), &statement);
        // What is refused ends nothing.
        if plan.answer.is_none() && !matches!(what, What::Prepare(_)) && self.reads_on().is_some() {
            if let Some(complaint) = Box::pin(self.leave_reader(epoch, class, (text, what))).await?
            {
                return self.refuse(&complaint).await;
            }
            plan = self.decide(epoch, class, (what.prepared_in(), lexing), &statement);
        }
        if plan.why.by == plan::By::Read && !self.core.pools.takes(plan.hostgroup()) {
            plan.read_from_the_writer(self.user.default_hostgroup);
        }
        let digested = digest.map(|hash| Digested { hash, text: buffer });
        epoch.count(&plan);
        let given_up = u64::from(plan.gave_up) + epoch.memo.borrow_mut().take_gave_up();
        if given_up > 0 {
            self.core.tally.add(Counter::ExpressionsGivenUp, given_up);
        }
        if let Some(alarm) = &plan.alarm {
            self.raise(
                epoch,
                alarm,
                self.schema_of(epoch, class, what.prepared_in()),
                what.sent(&plan, text),
            );
        }
        if plan.answer.is_none() && may_hold_others(epoch, class, what) {
            let sent = what.sent(&plan, text).to_vec();
            Box::pin(self.look_inside(epoch, (class, what.prepared_in()), &sent, &mut plan))
                .await?;
        }

        // Rules have made another statement of it: what follows is about that one.
        self.follow(&mut plan);
        let remade = plan.remade().map(|text| {
            Box::new(match what {
                What::Prepare(_) => quiet(self.lexing().class(text)),
                // What its words outside ask for is still asked for.
                What::Dynamic(dynamic) => {
                    self.class_of_inner(text, self.lexing(), self.lexing().class(dynamic.outer))
                }
                _ => self.lexing().class(text),
            })
        });
        let class = remade.as_deref().unwrap_or(class);

        // Do it.
        let autocommit = self.state.autocommit;
        let job = Job {
            epoch,
            text,
            class,
            plan: &plan,
            digest,
            what,
        };
        let told = match self.stages(&job).await {
            Ok(told) => told,
            Err(ended) => {
                // Nobody reads an answer any more, but a server may have done it.
                self.log_if_wanted(&job, job.digest, began, Told::default());
                return Err(ended);
            }
        };
        // What is prepared leaves ROW_COUNT() as it was, unless it fails.
        let counts = self.turn.failed
            || !matches!(what, What::Prepare(preparing) if preparing.naming.is_none());
        self.entry.counted.set(counts);
        if counts {
            self.entry
                .row_count
                .set(if self.turn.failed { -1 } else { told.row_count });
        }
        self.settle_past(&job);
        if (class.ends_transaction || class.begins_transaction) && !self.turn.failed {
            // One that is open now has begun with it, or begins with the next.
            self.entry.transaction_since.set(None);
        }
        // What it commits by the way was written before.
        if class.may_write() || !autocommit && self.state.autocommit {
            self.wrote = Some(self.core.rt.now());
        }
        #[cfg(feature = "planted")]
        if backend::planted::FORGET_WRITES.get() {
            self.wrote = None;
        }

        self.count(&job, digested, began, told);
        Ok(())
    }

    /// The stages, in order. A stage that has answered breaks; one that has not lets it through.
    async fn stages(&mut self, job: &Job<'_>) -> Result<Told, Ended> {
        if let ControlFlow::Break(told) = self.refuse_or_say(job).await? {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.settle_prepared(job).await? {
            return Ok(told);
        }
        self.pass_flag_on(job);
        if let ControlFlow::Break(told) = self.deallocated(job).await? {
            return Ok(told);
        }
        if job.class.kills
            && let ControlFlow::Break(told) = Box::pin(self.kill_stage(job)).await?
        {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.recall_warnings(job).await? {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.recall(job).await? {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.absorb(job).await? {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.cached(job).await? {
            self.recall_read(job, told.rows_sent, self.turn.failed);
            return Ok(told);
        }
        let pair = self.copy_to_mirror(job);
        let told = self.forward(job).await;
        if job.plan.mirror.is_some()
            && let (Some(side), Some(pair)) = (self.core.verdicts.take(self.entry.id), pair)
        {
            let now_s = self.core.rt.wall_us() / 1_000_000;
            if !pair.client_said(&self.core.verdicts, side, now_s, &job.epoch.digest) {
                self.core.tally.up(Counter::VerdictsDropped);
            }
        }
        let told = told?;
        self.keep(job);
        Ok(told)
    }

    /// What no rule in force sets is of rules that are gone: nothing would ever lead away from it.
    fn forget_flag(&mut self, epoch: &Epoch) {
        if self
            .next_flag_in
            .is_some_and(|flag| !epoch.snapshot.rules.leaves_flag(flag))
        {
            self.next_flag_in = None;
        }
    }

    /// The flag for the session's next statement (`next_query_flagIN`). It follows statements that
    /// were done: not those that were refused or that a rule answers, and preparing one is not
    /// doing it.
    fn pass_flag_on(&mut self, job: &Job<'_>) {
        if !matches!(job.what, What::Prepare(_)) {
            self.next_flag_in = job.plan.next_flag_in.or(self.next_flag_in);
        }
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
            proxy_addr: &self.local.0,
            proxy_port: self.local.1,
            in_transaction: if user_lock.is_some()
                || self.locks_beside_reader(class, statement.text)
            {
                None
            } else {
                self.held.transaction().or(implicit)
            },
            locked: user_lock
                .or_else(|| self.held.asked_for(class))
                .or_else(|| self.held.lock(default_hostgroup, lock_on_set)),
            next_flag_in: self.next_flag_in,
            autocommit: self.state.autocommit,
            split: SplitFacts {
                lexing,
                ..self.split_facts(class)
            },
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

    /// What rules have made of a statement may be bound to a connection as the statement before was
    /// not.
    fn follow(&self, plan: &mut Plan) {
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

    /// What a rule answers by itself, or the firewall refuses.
    async fn refuse_or_say(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        match &job.plan.answer {
            Some(Answer::Say(words)) => match job.what {
                What::Prepare(preparing) => self.pretend_to_prepare(job, preparing).await?,
                _ => self.say(words).await?,
            },
            Some(Answer::Refuse(words)) => {
                self.refuse(&Complaint::new(
                    wire::errors::NOT_ALLOWED,
                    words.to_string(),
                ))
                .await?;
            }
            None if job.class.local_infile
                && !job
                    .epoch
                    .snapshot
                    .variables
                    .mysql_enable_load_data_local_infile =>
            {
                let words = "Unsupported 'LOAD DATA LOCAL INFILE' command";
                self.refuse(&Complaint::with(1047, "HY000", words)).await?;
            }
            None => match job.what {
                What::Refused(complaint) => self.refuse(complaint).await?,
                _ => return Ok(ControlFlow::Continue(())),
            },
        }
        Ok(ControlFlow::Break(Told::default()))
    }

    fn count(&mut self, job: &Job<'_>, digested: Option<Digested>, began: Instant, told: Told) {
        let Job {
            epoch, plan, class, ..
        } = *job;
        if job.what.is_init_db() {
            self.core
                .scratch
                .give(digested.map(|digested| digested.text).unwrap_or_default());
            return;
        }
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
        if v.mysql_commands_stats {
            self.core.commands.count(class.command, time_us);
            if !refused {
                self.core.latencies.count(hostgroup, time_us);
            }
        }
        if took.as_millis() >= u128::from(v.mysql_long_query_time) {
            self.core.tally.up(Counter::SlowQueries);
        }
        let Some(Digested { mut hash, mut text }) = digested else {
            return self.log_if_wanted(job, None, began, told);
        };
        if v.mysql_query_digests && !refused {
            let sent = job.sent();
            if !self.has_digest_of_sent(job) {
                hash = sql::digest(sent, &epoch.digest, &mut text);
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
                text: &text,
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
        self.core.scratch.give(text);
        self.log_if_wanted(job, Some(hash), began, told);
    }

    /// Rules are asked with the digest of what came; counted and cached is what went. Whether both
    /// are one.
    pub(crate) fn has_digest_of_sent(&self, job: &Job<'_>) -> bool {
        let sent = job.sent();
        let is_bare =
            || !job.epoch.digest.keep_comment && *sent == *bare(job.text, self.lexing_of(job.what));
        job.digest.is_some() && (std::ptr::eq(sent, job.text) || is_bare())
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
