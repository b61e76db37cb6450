//! Look-ups: asked before it is known where a statement goes, and told of its rows before it is sent.
//!
//! docs/features/look-ups.md

use crate::command::job::{Job, Text, What};
use crate::command::trouble::Ended;
use crate::core::alone;
use crate::decide::facts::Settled;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::partitions::asking::Stopped;
use crate::partitions::said::{refusal, say};
use crate::partitions::whole_rows::rows_of;
use crate::session::Session;
use bridge::Counter;
use plan::{Answer, Plan};
use shards::{Asked, LookedUp, Wanted};
use std::rc::Rc;
use wire::attributes::Attributes;

/// Answers may ask for others: of an UPDATE, first where its rows are, then their entries.
const TURNS_MAX: usize = 8;
/// ER_LOCK_DEADLOCK: two statements write the same entries in another order.
const DEADLOCK: u16 = 1213;
/// So often such a statement is tried.
const TRIES: usize = 3;

impl Session {
    /// Asks and tells the look-ups that a statement needs; the complaint if that cannot be done.
    pub(crate) async fn ask_lookups(
        &mut self,
        epoch: &Epoch,
        read: Text<'_>,
        (what, settled): (What<'_>, Settled),
    ) -> Result<Option<Complaint>, Ended> {
        self.looked = Rc::default();
        Rc::make_mut(&mut self.looked).in_bytes = !self.state.speaks_utf8();
        for _ in 0..TURNS_MAX {
            let mut plan = self.decide_with(epoch, read, what, settled);
            let Some(Answer::LookUp(wanted)) = plan.answer.take() else {
                return Ok(None);
            };
            match Box::pin(self.settle_lookups(epoch, plan, what, &wanted)).await {
                Ok(looked) => self.looked = Rc::new(looked),
                Err(stopped) => return stopped.complaint(self.entry.killed.get()).map(Some),
            }
        }
        Ok(None)
    }

    /// `plan`: what was decided of the statement; of its way only time limits count here.
    async fn settle_lookups(
        &self,
        epoch: &Epoch,
        mut plan: Plan,
        what: What<'_>,
        wanted: &Wanted,
    ) -> Result<LookedUp, Stopped> {
        let mut looked = (*self.looked).clone();
        plan.leg.statement = plan::Text::AsIs;
        for asked in &wanted.asks {
            let rows = self.ask_lookup(epoch, &mut plan, what, asked).await?;
            looked.answered(asked, &rows);
            self.core.tally.up(Counter::LookupsAsked);
            if looked.has_missed(asked) {
                self.core.tally.up(Counter::LookupsMissed);
            }
        }
        for asked in &wanted.writes {
            self.tell_lookup(epoch, &mut plan, what, asked).await?;
            looked.has_written(asked);
            self.core.tally.up(Counter::LookupsWritten);
        }
        Ok(looked)
    }

    async fn ask_lookup(
        &self,
        epoch: &Epoch,
        plan: &mut Plan,
        what: What<'_>,
        asked: &Asked,
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, Stopped> {
        plan.leg.hostgroup = asked.hostgroup;
        let class = sql::class(&asked.text);
        let attributes = Attributes::default();
        let job = job(epoch, plan, (&*asked.text, &class), &attributes);
        let mut asking = self.asking(&job, false).as_stored();
        if let Some(schema) = what.prepared_in() {
            asking.state.schema = schema.clone();
        }
        let texts = [(asked.hostgroup, &*asked.text)];
        Ok(rows_of(self, &job, &asking, &texts).await?.concat())
    }

    async fn tell_lookup(
        &self,
        epoch: &Epoch,
        plan: &mut Plan,
        what: What<'_>,
        asked: &Asked,
    ) -> Result<(), Stopped> {
        plan.leg.hostgroup = asked.hostgroup;
        let class = sql::class(&asked.text);
        let attributes = Attributes::default();
        let job = job(epoch, plan, (&*asked.text, &class), &attributes);
        let mut asking = self.asking(&job, false);
        if let Some(schema) = what.prepared_in() {
            asking.state.schema = schema.clone();
        }
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let connection = self.connection_for(&job, (&asking, &asking.state), asked.hostgroup);
            let mut backend = connection.await?;
            alone::takes(&mut backend);
            let told = async {
                alone::come_to(&mut backend, &asking.state, &class).await?;
                alone::before(&mut backend, &class);
                say(&mut backend, &asked.text, None).await
            };
            let told = self.unless_stopped(&asking, Box::pin(told)).await??;
            alone::learn(&mut backend, &class, &told.response);
            let said = refusal(&told);
            if let Some((code, _)) = said
                && let wire::response::Outcome::Err { message, .. } = told.response.outcome()
            {
                self.count_error(&backend, code, message);
            }
            alone::gives_back(&self.core, backend);
            match said {
                None => return Ok(()),
                Some((DEADLOCK, _)) if tries > 0 => {}
                Some((_, complaint)) => return Err(Stopped::Said(complaint)),
            }
        }
    }
}

/// A text for a look-up's server.
const fn job<'a>(
    epoch: &'a Epoch,
    plan: &'a Plan,
    (text, class): (&'a [u8], &'a sql::Class<'a>),
    attributes: &'a Attributes,
) -> Job<'a> {
    Job {
        epoch,
        text,
        class,
        plan,
        digest: None,
        what: What::Query(attributes),
        stays: false,
        usual: false,
        ahead: None,
    }
}
