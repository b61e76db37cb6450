//! Numbers of sequences: taken from a table in blocks, and given to the rows of INSERTs.
//!
//! A block is a core's own, so that most rows need no question. What is left of it when the process ends, or
//! when another map is loaded, is given to nobody: there are gaps, as behind AUTO_INCREMENT.
//!
//! docs/features/sequences.md

use crate::command::job::{Job, Text, What};
use crate::command::trouble::Ended;
use crate::core::alone;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::partitions::asking::{Stopped, not_supported};
use crate::partitions::said::{refusal, say};
use crate::session::Session;
use backend::State;
use plan::{Answer, Plan};
use shards::{Numbering, Numbers, Sequences, Table};
use std::ops::Range;
use wire::attributes::Attributes;

impl Session {
    /// Numbers for the rows of a statement that have none; the complaint if they cannot be had.
    /// Nothing is taken for a statement that needs none, or that will not be sent.
    pub(crate) async fn numbers_for(
        &mut self,
        epoch: &Epoch,
        read: Text<'_>,
        what: What<'_>,
    ) -> Result<Result<Numbering, Complaint>, Ended> {
        if !matches!(what, What::Query(_) | What::Execute(_)) {
            return Ok(Ok(Numbering::Untaken));
        }
        let mut plan = self.decide_with(epoch, read, what, Numbering::Untaken);
        let Some(Answer::Number { table, count }) = plan.answer.take() else {
            return Ok(Ok(Numbering::Untaken));
        };
        if let What::Execute(execution) = what
            && !(execution.known.means_as_now(&self.state)
                && execution.known.schema == self.state.schema)
        {
            return Ok(Err(sentence(
                "its rows get numbers from a sequence, and it was prepared in another schema or sql_mode; prepare it anew",
            )));
        }
        let map = epoch.snapshot.shards.clone();
        if let Some(numbers) = self.core.numbers.give(&map, table, count) {
            return Ok(Ok(Numbering::Taken(numbers)));
        }
        let variables = &epoch.snapshot.variables;
        let (Some(sequences), Some(table)) = (variables.sequences(), map.numbered(table)) else {
            return Ok(Err(sentence(
                "its rows get numbers from a sequence, and no table is named that has it; set mysql-sharding_sequences to schema.table",
            )));
        };
        let block = u32::try_from(variables.mysql_sharding_sequence_block).unwrap_or(u32::MAX);
        let wanted = count.max(block);
        let taking = self.take_block(epoch, Box::new(plan), &sequences, (&**table, wanted));
        match Box::pin(taking).await {
            Ok(taken) => {
                let own = taken.start..taken.start + u64::from(count);
                if wanted > count {
                    self.core
                        .numbers
                        .keep(&map, table.number, own.end..taken.end);
                }
                Ok(Ok(Numbering::Taken(Numbers {
                    first: own.start,
                    count,
                })))
            }
            Err(stopped) => stopped.complaint(self.entry.killed.get()).map(Err),
        }
    }

    /// Takes a block from the table of sequences. `plan`: what was decided of the statement; of its
    /// way only time limits count here.
    async fn take_block(
        &self,
        epoch: &Epoch,
        mut plan: Box<Plan>,
        sequences: &Sequences,
        (table, count): (&Table, u32),
    ) -> Result<Range<u64>, Stopped> {
        let name = table.kept_as();
        let sql = sequences.take(&name, count);
        let class = sql::class(sql.as_bytes());
        plan.leg.hostgroup = sequences.hostgroup;
        plan.leg.statement = plan::Text::AsIs;
        let attributes = Attributes::default();
        let job = Job {
            epoch,
            text: sql.as_bytes(),
            class: &class,
            plan: &plan,
            digest: None,
            what: What::Query(&attributes),
            stays: false,
            usual: false,
            ahead: None,
        };
        let asking = self.asking(&job, false);
        let state = State::new("", self.collation);
        let connection = self.connection_for(&job, (&asking, &state), sequences.hostgroup);
        let mut backend = connection.await?;
        alone::takes(&mut backend);
        let taken = async {
            alone::come_to(&mut backend, &state, &class).await?;
            alone::before(&mut backend, &class);
            say(&mut backend, sql.as_bytes(), None).await
        };
        let taken = self.unless_stopped(&asking, Box::pin(taken)).await??;
        alone::learn(&mut backend, &class, &taken.response);
        let said = refusal(&taken);
        if let Some((code, _)) = said
            && let wire::response::Outcome::Err { message, .. } = taken.response.outcome()
        {
            self.count_error(&backend, code, message);
        }
        let end = taken.response.insert_id();
        alone::gives_back(&self.core, backend);
        if let Some((_, complaint)) = said {
            let words = format!(
                "the sequence of {name} gave no numbers: {}",
                complaint.words
            );
            return Err(Stopped::Said(Complaint { words, ..complaint }));
        }
        let count = u64::from(count);
        match end.checked_sub(count).filter(|first| *first > 0) {
            Some(first) => Ok(first..end),
            None => Err(Stopped::Said(sentence(&format!(
                "the sequence of {name} has no row from 1 on; {}",
                sequences.how_to_begin(&name)
            )))),
        }
    }
}

fn sentence(words: &str) -> Complaint {
    not_supported(format!("HSCALE-1000: {words}"))
}
