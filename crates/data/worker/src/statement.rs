//! A statement from its text to its statistics: classify, decide, do, count.

pub(crate) mod absorb;
pub(crate) mod bulk;
pub(crate) mod cached;
pub(crate) mod cursor;
pub(crate) mod dynamic;
pub(crate) mod express;
pub(crate) mod inside;
pub(crate) mod on_reader;
pub(crate) mod prepared;
pub(crate) mod preparing;
pub(crate) mod several;
pub(crate) mod usual;

use crate::command::job::{Digested, Job, Text, Told, What};
use crate::command::preparing::bare;
use crate::command::trouble::Ended;
use crate::core::rates::{Next, Turn};
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::partitions::gathering::{gathers, not_supported};
use crate::partitions::made::Made;
use crate::partitions::{changing, from_query, in_turn, loading, written_keys};
use crate::seen::stats::{Bounds, Seen};
use crate::session::Session;
use crate::statement::inside::may_hold_others;
use crate::statement::preparing::quiet;
use bridge::{Auditable, Counter, Traced};
use plan::{Answer, Gather, Plan, SessionFacts};
use rt::Instant;
use shards::{Making, Numbering};
use sql::bound::Bound;
use sql::{Class, CommandCounter, Lexing};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use wire::response::Expect;

/// Returns the statement that a plan is decided for.
fn asked<'a>(
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

/// A statement that has come in: its command, what it has waited for, and the configuration that it
/// runs under if another has come meanwhile.
type CameIn<'t> = (What<'t>, Settled, Option<Rc<Epoch>>);

/// Whether rows of a statement may have to be numbered.
fn wants_numbers(epoch: &Epoch, class: &Class<'_>) -> bool {
    epoch.snapshot.shards.has_sequences() && class.inserts
}

/// Whether a statement may have to wait for numbers, or for a partition.
fn asks_first(epoch: &Epoch, class: &Class<'_>) -> bool {
    let map = &epoch.snapshot.shards;
    map.asks_first() && (map.has_automatic() || map.has_lookups() || class.inserts)
}

/// The command for a plan. Rows of an execution that have got numbers go as a text, with all values
/// in it.
fn as_planned<'t>(what: What<'t>, plan: &Plan) -> What<'t> {
    match what {
        What::Execute(execution) if plan.gather.is_none() && plan.numbered().is_some() => {
            What::Query(&execution.attributes)
        }
        _ => what,
    }
}

/// Writes the digest of a text, unless it is known; its hash.
fn write_digest(epoch: &Epoch, text: Text<'_>, what: What<'_>, digest: &mut Vec<u8>) -> u64 {
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
    pub(crate) fn whole<'t>(
        &'t mut self,
        epoch: &'t Epoch,
        text: &'t [u8],
        class: &'t Class<'t>,
        name: &'static str,
        what: What<'t>,
    ) -> impl Future<Output = Result<(), Ended>> {
        self.whole_of(epoch, Text::of(text, class), name, what)
    }

    /// [`Session::whole`], of a text of which more may be known.
    pub(crate) async fn whole_of(
        &mut self,
        epoch_before: &Epoch,
        read: Text<'_>,
        name: &'static str,
        what: What<'_>,
    ) -> Result<(), Ended> {
        let Text {
            sql: text, class, ..
        } = read;
        let began = self.core.rt.now();
        let (mut what, mut settled, mut fresh) = (what, Settled::default(), None);
        let unsettled = OnceCell::new();
        if self.comes_in_first(epoch_before, read, what) {
            match Box::pin(self.come_in((epoch_before, read), what, &unsettled)).await? {
                ControlFlow::Break(()) => return Ok(()),
                ControlFlow::Continue(changed) => (what, settled, fresh) = changed,
            }
        }
        let epoch = fresh.as_deref().unwrap_or(epoch_before);
        self.forget_flag(epoch);
        self.next_statement();
        self.core.tally.up(Counter::Questions);
        self.entry.begins(name, text, began);
        self.note_received(class, text, what);

        // What shall we do? Pure: nothing has happened yet.
        let mut buffer = self.core.scratch.take();
        let digest = epoch
            .digests
            .then(|| write_digest(epoch, read, what, &mut buffer));
        let doing = &self.core.doing;
        doing.begins(self.entry.id, digest.unwrap_or_default());
        let lexing = self.lexing_of(what);
        let parameters = written_keys::values(epoch, what);
        let known = self.knowledge(epoch);
        let statement = asked(
            read,
            what,
            lexing,
            digest.map(|hash| plan::Digest {
                hash,
                text: &buffer,
            }),
            (parameters.as_deref(), settled),
        );
        let statement = self.with_knowledge(epoch, &known, statement);
        let mut plan = self.decide(epoch, class, (what.prepared_in(), lexing), &statement);
        // What is refused ends nothing.
        if plan.answer.is_none() && !matches!(what, What::Prepare(_)) && self.reads_on().is_some() {
            if let Some(complaint) = Box::pin(self.leave_reader(epoch, class, (text, what))).await?
            {
                return self.refuse(&complaint).await;
            }
            plan = self.decide(epoch, class, (what.prepared_in(), lexing), &statement);
        }
        let _under_way = self.core.gates.enter(&plan);
        self.go_where_somebody_serves(epoch, class, &mut plan);
        let digested = digest.map(|hash| Digested { hash, text: buffer });
        self.count_decision(epoch, &plan);
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
        let what = as_planned(what, &plan);
        self.follow(&mut plan);
        self.go_to_its_partition(epoch, what, &plan);
        let remade = self.class_of_remade(what, &plan);
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
            stays: false,
            usual: self.is_usual(epoch, class, what, &plan),
            ahead: None,
        };
        self.remember_decision(&job, read.judged);
        let told = match self.stages(&job).await {
            Ok(told) => told,
            Err(ended) => {
                // Nobody reads an answer any more, but a server may have done it.
                self.breaks_off(&job, &digested, began);
                return Err(ended);
            }
        };
        self.remember_it(&job, told, autocommit);
        self.log_warnings(&job, &digested).await?;
        self.count(&job, digested, began, told);
        Ok(())
    }

    /// Counts the rules that matched, and expressions on which PCRE gave up.
    fn count_decision(&self, epoch: &Epoch, plan: &Plan) {
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
        #[cfg(feature = "planted")]
        if backend::planted::FORGET_WRITES.get() {
            self.wrote = None;
        }
    }

    /// Class of the statement that rules or the map have made of another.
    fn class_of_remade<'p>(&self, what: What<'_>, plan: &'p Plan) -> Option<Box<Class<'p>>> {
        let text = plan.remade()?;
        Some(Box::new(match what {
            What::Prepare(_) => quiet(self.lexing().class(text)),
            // What its words outside ask for is still asked for.
            What::Dynamic(dynamic) => {
                self.class_of_inner(text, self.lexing(), self.lexing().class(dynamic.outer))
            }
            _ => self.lexing().class(text),
        }))
    }

    /// Whether a statement may have to wait for something before it is decided.
    fn comes_in_first(&self, epoch: &Epoch, read: Text<'_>, what: What<'_>) -> bool {
        !self.core.gates.are_open()
            || asks_first(epoch, read.class)
            || self.wants_columns(epoch, read, what)
    }

    /// Takes the numbers that a statement's rows want, has its partitions made, asks and tells look-ups,
    /// and waits while a gate on its way is closed. `unsettled` gets the answer if there are no numbers, or no partition.
    async fn come_in<'t>(
        &mut self,
        (epoch, read): (&Epoch, Text<'_>),
        mut what: What<'t>,
        unsettled: &'t OnceCell<Complaint>,
    ) -> Result<ControlFlow<(), CameIn<'t>>, Ended> {
        let (mut settled, mut fresh) = (Settled::default(), None);
        if self.wants_columns(epoch, read, what)
            && let Some(complaint) = self.columns_for(epoch, read, what).await?
        {
            what = What::Refused(unsettled.get_or_init(|| complaint));
        }
        if wants_numbers(epoch, read.class) {
            match self.numbers_for(epoch, read, what).await? {
                Ok(taken) => settled.numbers = taken,
                Err(complaint) => what = What::Refused(unsettled.get_or_init(|| complaint)),
            }
        }
        if epoch.snapshot.shards.has_automatic() && !matches!(what, What::Refused(_)) {
            match self.partitions_for(epoch, read, (what, settled)).await? {
                Made::IsThere => {}
                Made::Now(now) => (settled.making, fresh) = (Making::Asked, now),
                Made::Told => return Ok(ControlFlow::Break(())),
                Made::Not(complaint) => what = What::Refused(unsettled.get_or_init(|| complaint)),
            }
        }
        loop {
            let now = fresh.as_deref().unwrap_or(epoch);
            if now.snapshot.shards.has_lookups()
                && !matches!(what, What::Refused(_))
                && let Some(complaint) = self.ask_lookups(now, read, (what, settled)).await?
            {
                what = What::Refused(unsettled.get_or_init(|| complaint));
            }
            if self.core.gates.are_open() {
                return Ok(ControlFlow::Continue((what, settled, fresh)));
            }
            match self.wait_at_gates(now, read, (what, settled)).await? {
                ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
                ControlFlow::Continue(None) => {
                    return Ok(ControlFlow::Continue((what, settled, fresh)));
                }
                // Another map may have other look-ups.
                ControlFlow::Continue(later) => fresh = later,
            }
        }
    }

    /// Has a statement wait while a gate on its way is closed; the configuration that it runs under
    /// then. A transaction that is open there does not wait: the gate's partition waits for it.
    async fn wait_at_gates(
        &mut self,
        epoch: &Epoch,
        read: Text<'_>,
        (what, settled): (What<'_>, Settled),
    ) -> Result<ControlFlow<(), Option<Rc<Epoch>>>, Ended> {
        let mut fresh: Option<Rc<Epoch>> = None;
        loop {
            let now = fresh.as_deref().unwrap_or(epoch);
            let plan = self.decide_with(now, read, what, settled);
            let is_in_transaction = self.goes_to_a_branch(&plan);
            let gates = self.core.gates.clone();
            let until = gates.in_the_way(&plan);
            let Some(until) = until.filter(|_| plan.answer.is_none() && !is_in_transaction) else {
                return Ok(ControlFlow::Continue(fresh));
            };
            let rt = self.core.rt.clone();
            if self
                .pause_while_wanted(gates.wait(&rt, until))
                .await?
                .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            gates.open_those_over(rt.now());
            fresh = Some(self.core.epoch());
        }
    }

    /// Decides what would become of a statement that has waited for this; nothing of it happens.
    pub(crate) fn decide_with(
        &self,
        epoch: &Epoch,
        read: Text<'_>,
        what: What<'_>,
        settled: impl Into<Settled>,
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
        let values = (parameters.as_deref(), settled.into());
        let statement = asked(read, what, lexing, digest, values);
        let statement = self.with_knowledge(epoch, &known, statement);
        self.decide(epoch, read.class, (what.prepared_in(), lexing), &statement)
    }

    /// The stages, in order. A stage that has answered breaks; one that has not lets it through.
    async fn stages(&mut self, job: &Job<'_>) -> Result<Told, Ended> {
        if let Some(wish) = &job.epoch.traces
            && !job.what.is_init_db()
        {
            let said = (job.text, job.what.attributes());
            let (tracer, rt) = (&self.core.tracer, &self.core.rt);
            tracer.begins(self.entry.id, rt, wish, said, job.plan.trace);
        }
        if job.usual {
            if job.epoch.rates.is_some()
                && let ControlFlow::Break(told) = Box::pin(self.wait_for_turn(job)).await?
            {
                return Ok(told);
            }
            self.note_unwatched(job);
            let told = self.forward(job).await?;
            self.keep(job);
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.refuse_or_say(job).await? {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.settle_prepared(job).await? {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = Box::pin(self.bounds(job)).await? {
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
        if let ControlFlow::Break(told) = self.recall_values(job).await? {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.cached(job).await? {
            self.recall_read(job, told.rows_sent, self.turn.failed);
            return Ok(told);
        }
        if job.epoch.rates.is_some()
            && let ControlFlow::Break(told) = Box::pin(self.wait_for_turn(job)).await?
        {
            return Ok(told);
        }
        let pair = self.copy_to_mirror(job);
        let told = match &job.plan.gather {
            None => self.forward(job).await,
            Some(gather) => Box::pin(self.at_several(job, gather)).await,
        };
        self.compare_with_mirror(job, pair);
        let told = told?;
        self.keep(job);
        if self.global.is_some() {
            Box::pin(self.settle_branches()).await?;
        }
        Ok(told)
    }

    /// Has several partitions do it.
    async fn at_several(&mut self, job: &Job<'_>, gather: &Gather) -> Result<Told, Ended> {
        match (&gather.recipe, &gather.from_query, &gather.loaded) {
            (Some(recipe), Some(from), _) => {
                Box::pin(from_query::insert(self, job, (gather, recipe, from))).await
            }
            (Some(recipe), None, _) => Box::pin(self.gather(job, (gather, recipe))).await,
            (None, _, Some(loaded)) => Box::pin(loading::load(self, job, (gather, loaded))).await,
            (None, ..) if gather.in_turn => Box::pin(in_turn::run(self, job, gather)).await,
            (None, ..) => Box::pin(changing::change(self, job, gather)).await,
        }
    }

    /// Waits until what has a rate may be sent. A transaction does not wait, since others wait for
    /// it: its statements count, and those behind it wait longer.
    async fn wait_for_turn(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let Some(rates) = &job.epoch.rates else {
            return Ok(ControlFlow::Continue(()));
        };
        let (core, user) = (self.core.clone(), self.user.clone());
        let at_once = !self.held.is_empty();
        let mut turn = Turn::of(rates, (&user, job), core.permits(), core.rt.now());
        loop {
            let (pause, goes) = match turn.next(core.rt.now(), at_once) {
                Next::Goes(pause) if pause.is_zero() => return Ok(ControlFlow::Continue(())),
                Next::Goes(pause) => (pause, true),
                Next::Waits(pause) => (pause, false),
                Next::Refused(complaint) => {
                    self.refuse(&complaint).await?;
                    return Ok(ControlFlow::Break(Told::default()));
                }
            };
            let slept = self.pause_while_wanted(core.rt.sleep(pause)).await?;
            if goes || slept.is_break() {
                return Ok(slept);
            }
        }
    }

    /// Forgets a flag that no rule in force sets. Such a flag is of rules that are gone: nothing
    /// would ever lead away from it.
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

    /// Sends what a rule answers by itself, or the firewall's refusal.
    async fn refuse_or_say(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        match &job.plan.answer {
            Some(Answer::Say(words)) => match job.what {
                What::Prepare(preparing) => self.pretend_to_prepare(job, preparing).await?,
                _ => self.say(words).await?,
            },
            Some(Answer::NotSupported(words)) => {
                self.refuse(&Complaint::new(
                    wire::errors::NOT_SUPPORTED_YET,
                    words.to_string(),
                ))
                .await?;
            }
            Some(
                Answer::Number { .. }
                | Answer::Partition { .. }
                | Answer::Columns(_)
                | Answer::LookUp(_),
            ) => {
                let changed = || {
                    not_supported(
                        "HSCALE-1000: the map of sharded tables has changed meanwhile; say it again",
                    )
                };
                match job.what {
                    What::Refused(complaint) => self.refuse(complaint).await?,
                    _ => self.refuse(&changed()).await?,
                }
            }
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
            None if let (Some(gather), What::Prepare(preparing)) = (&job.plan.gather, job.what)
                && (gather.finishing.is_some() || gather.from_query.is_some()) =>
            {
                self.pretend_to_prepare(job, preparing).await?;
            }
            None if !gathers(job) => {
                let words = "HSCALE-1000: several partitions are read or changed by statements without variables only, of one row of values; write the values out";
                let complaint = Complaint::new(wire::errors::NOT_SUPPORTED_YET, words);
                self.refuse(&complaint).await?;
            }
            None => match job.what {
                What::Refused(complaint) => self.refuse(complaint).await?,
                _ => return Ok(ControlFlow::Continue(())),
            },
        }
        Ok(ControlFlow::Break(Told::default()))
    }

    /// Its session ends in the middle of it.
    fn breaks_off(&self, job: &Job<'_>, digested: &Option<Digested>, began: Instant) {
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

    fn count(&mut self, job: &Job<'_>, digested: Option<Digested>, began: Instant, told: Told) {
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
            let sent = job.sent();
            if !self.has_digest_of_sent(job) {
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
