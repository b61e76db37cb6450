//! A statement from its text to its statistics: classify, decide, do, count.

pub(crate) mod absorb;
pub(crate) mod bulk;
pub(crate) mod cached;
pub(crate) mod count;
pub(crate) mod cursor;
pub(crate) mod dynamic;
pub(crate) mod express;
pub(crate) mod fetching;
pub(crate) mod internal;
pub(crate) mod kill;
pub(crate) mod prepared;
pub(crate) mod preparing;
pub(crate) mod rates;
pub(crate) mod several;
pub(crate) mod usual;
pub(crate) mod warned;

use crate::command::job::{Digested, Job, Text, Told, What};
use crate::command::trouble::Ended;
use crate::decide::facts::{Settled, as_planned, asked, write_digest};
use crate::decide::inside::may_hold_others;
use crate::decide::written_keys;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::partitions::asking::not_supported;
use crate::partitions::gathering::{Gathered, gathers};
use crate::partitions::{changing, from_query, in_turn, loading, renaming, values};
use crate::session::Session;
use crate::statement::preparing::quiet;
use crate::statement::rates::{Next, Turn};
use bridge::Counter;
use gather::Recipe;
use plan::{Answer, Answered, Gather, Plan, Values};
use shards::Making;
use sql::Class;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::ControlFlow;
use wire::response::Expect;

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

    /// Reads the queries inside of a change, and makes it as their values say.
    async fn by_values(&mut self, job: &Job<'_>, values: &Values) -> Result<Told, Ended> {
        let refused = Told {
            row_count: -1,
            ..Told::default()
        };
        let text = match Box::pin(values::put_in(self, job, values)).await? {
            Ok(text) => text,
            Err(complaint) => {
                self.refuse(&complaint).await?;
                return Ok(refused);
            }
        };
        let settled = Settled {
            making: Making::Asked,
            ..Settled::default()
        };
        let (read, answered) = (Text::of(job.text, job.class), Answered::Values(text));
        let mut plan = self.decide_again(job.epoch, read, (job.what, settled), Some(&answered));
        self.follow(&mut plan);
        // All values stand in the text.
        let what = job.what.attributes().map_or(job.what, What::Query);
        let remade = self.class_of_remade(what, &plan);
        let job = Job {
            plan: &plan,
            class: remade.as_deref().unwrap_or(job.class),
            what,
            digest: job.digest,
            ..*job
        };
        if let ControlFlow::Break(_) = self.refuse_or_say(&job).await? {
            return Ok(refused);
        }
        if let Some(transaction) = self.global.clone()
            && let Some(complaint) = self.would_need_outcome(&job, &transaction)
        {
            self.refuse(&complaint).await?;
            return Ok(refused);
        }
        match &job.plan.gather {
            None => self.forward(&job).await,
            Some(gather) => Box::pin(self.at_several(&job, gather)).await,
        }
    }

    /// Has several partitions do it.
    async fn at_several(&mut self, job: &Job<'_>, gather: &Gather) -> Result<Told, Ended> {
        if let Some(values) = &gather.values {
            return Box::pin(self.by_values(job, values)).await;
        }
        match (&gather.recipe, &gather.from_query, &gather.loaded) {
            (Some(recipe), Some(from), _) => {
                Box::pin(from_query::insert(self, job, (gather, recipe, from))).await
            }
            (Some(recipe), None, _) => Box::pin(self.gathered(job, (gather, recipe))).await,
            (None, _, Some(loaded)) => Box::pin(loading::load(self, job, (gather, loaded))).await,
            (None, ..) if !gather.renames.is_empty() => {
                Box::pin(renaming::run(self, job, gather)).await
            }
            (None, ..) if gather.in_turn => Box::pin(in_turn::run(self, job, gather)).await,
            (None, ..) => Box::pin(changing::change(self, job, gather)).await,
        }
    }

    /// Reads several partitions; as another plan says where their answers cannot be put together as this
    /// one does.
    async fn gathered(
        &mut self,
        job: &Job<'_>,
        (gather, recipe): (&Gather, &Recipe),
    ) -> Result<Told, Ended> {
        let mut ended = self.gather(job, (gather, recipe)).await?;
        let mut tried = Vec::new();
        loop {
            let (answered, complaint) = match ended {
                Gathered::Told(told) => return Ok(told),
                Gathered::Unmerged(answered, complaint) => (answered, complaint),
            };
            let present = tried.last().map_or(gather, |(gather, _)| gather);
            let Some(other) = self.otherwise(job, (present, &answered)) else {
                self.refuse(&complaint).await?;
                return Ok(Told {
                    row_count: -1,
                    ..Told::default()
                });
            };
            ended = self.gather_so(job, (&other.0, &other.1)).await?;
            tried.push(other);
        }
    }

    /// Another way to have the rows of a statement, now that its partitions have answered.
    fn otherwise(
        &self,
        job: &Job<'_>,
        (gather, answered): (&Gather, &Answered),
    ) -> Option<(Gather, Recipe)> {
        let read = Text::of(job.text, job.class);
        let again = (job.what, Settled::default());
        let plan = self.decide_again(job.epoch, read, again, Some(answered));
        let mut other = *plan.gather?;
        let recipe = other.recipe.take().filter(|_| other.from_query.is_none())?;
        let is_new = other.finishing != gather.finishing || other.parts != gather.parts;
        is_new.then_some((other, recipe))
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
                && (gather.finishing.is_some()
                    || gather.from_query.is_some()
                    || gather.values.is_some()) =>
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
}
