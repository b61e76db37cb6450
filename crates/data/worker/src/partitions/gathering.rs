//! Rows of several partitions, put together as they arrive. All partitions are asked at once, each on a
//! connection that is nobody's; what is not needed yet waits at the servers.

use crate::command::job::{Job, Told, What};
use crate::command::trouble::Ended;
use crate::core::alone;
use crate::forward::relay::too_many;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Answering, Asking, Stopped, broke, not_supported};
use crate::partitions::finishing;
use crate::session::Session;
use bridge::{Counter, Failure, Retry};
use gather::{Column, Merge, Recipe, Step};
use plan::{Answered, Gather};
use rt::CHUNK_LEN;
use std::ops::ControlFlow;
use wire::Malformed;
use wire::outline::Count;
use wire::resultset::Writer;
use wire::row_stream::Row;
use wire::rows::Shape;

/// Result that the client gets.
struct Shown {
    /// Not sent yet.
    bytes: Vec<u8>,
    /// Number of the last packet.
    seq: u8,
    rows: u64,
    /// Something was sent.
    has_begun: bool,
    /// Why rows could not be put together, where they may be in another way.
    unmerged: Option<Answered>,
}

/// How reading several partitions has ended.
pub(crate) enum Gathered {
    /// The client has its answer.
    Told(Told),
    /// The rows could not be put together so, for this reason. Another plan may be made, knowing it; else
    /// the client is told this.
    Unmerged(Answered, Complaint),
}

impl Shown {
    /// Rows that cannot be put together, for this reason.
    fn beyond(&mut self, words: String) -> Stopped {
        self.unmerged = Some(Answered::Beyond(words.clone()));
        Stopped::Said(not_supported(format!("HSCALE-1000: {words}")))
    }
}

/// Begins to put rows together, if columns of these types can be.
fn merge<'r>(
    recipe: &'r Recipe,
    columns: Vec<Column>,
    parts: usize,
    shown: &mut Shown,
) -> Result<Merge<'r>, Stopped> {
    recipe
        .listed(&columns)
        .map_err(|words| shown.beyond(words))?;
    match Merge::new(recipe, columns.clone(), parts) {
        Ok(merge) => Ok(merge),
        Err(words) => {
            let stopped = shown.beyond(words);
            shown.unmerged = Some(Answered::Columns(columns));
            Err(stopped)
        }
    }
}

/// A recipe with the limit that the session has set, where the statement has none of its own. A server
/// that finishes a statement keeps to it by itself.
fn limited(gather: &Gather, recipe: &Recipe, asking: &Asking<'_>) -> Option<Recipe> {
    let rows = asking.limit_of_session()?;
    let is_open = gather.finishing.is_none() && recipe.limit.is_none();
    is_open.then(|| Recipe {
        limit: Some(rows),
        ..recipe.clone()
    })
}

/// How rows are written.
pub(crate) struct Form {
    /// SERVER_STATUS_*.
    pub(crate) flags: u16,
    /// Columns of a result of the binary protocol; none for one of texts.
    binary: Option<Vec<Shape>>,
}

impl Form {
    /// Writes a row.
    pub(crate) fn row(&self, writer: &mut Writer<'_>, row: &Row) -> Result<(), Malformed> {
        let cells = row.iter().map(Option::as_deref);
        match &self.binary {
            Some(shapes) => writer.binary_row_of_text(shapes, cells)?,
            None => writer.text_row(cells),
        }
        Ok(())
    }
}

/// Whether a statement that reads several partitions is one that can be put together: it means the
/// same on any connection.
pub(crate) fn gathers(job: &Job<'_>) -> bool {
    let is_row = match job.what {
        What::Query(_) => true,
        What::Execute(execution) => !execution.is_bulk(),
        _ => false,
    };
    let is_file = |gather: &Gather| gather.loaded.is_some() && matches!(job.what, What::Query(_));
    let gather = job.plan.gather.as_deref();
    gather.is_none_or(|gather| is_file(gather) || is_row && alone::is_free(job.class))
}

impl Session {
    /// Reads several partitions, and gives the client one result.
    pub(crate) async fn gather(
        &mut self,
        job: &Job<'_>,
        (gather, recipe): (&Gather, &Recipe),
    ) -> Result<Gathered, Ended> {
        if let ControlFlow::Break(told) = self.wait_as_asked(job).await? {
            return Ok(Gathered::Told(told));
        }
        self.core.tally.up(Counter::StatementsGathered);
        self.gather_so(job, (gather, recipe)).await
    }

    /// Does so as the plan or another one says.
    pub(crate) async fn gather_so(
        &mut self,
        job: &Job<'_>,
        (gather, recipe): (&Gather, &Recipe),
    ) -> Result<Gathered, Ended> {
        let Some(transaction) = self.global.clone() else {
            let asking = self.asking(job, recipe.same_moment);
            return self.gather_by(job, (gather, recipe), &asking).await;
        };
        let asking = self.asking_branches(job, transaction, recipe.same_moment);
        let asking = Box::pin(asking).await?;
        let told = self.gather_by(job, (gather, recipe), &asking).await;
        let back = self.take_back(&asking);
        told.and_then(|told| back.map(|()| told))
    }

    async fn gather_by(
        &mut self,
        job: &Job<'_>,
        (gather, recipe): (&Gather, &Recipe),
        asking: &Asking<'_>,
    ) -> Result<Gathered, Ended> {
        let mut tries = self.tries(job);
        loop {
            let mut shown = Shown {
                bytes: Vec::new(),
                seq: self.turn.sent,
                rows: 0,
                has_begun: false,
                unmerged: None,
            };
            let mut parts = Vec::with_capacity(gather.parts.len());
            let put_together = self
                .put_together(job, (gather, recipe, asking), &mut parts, &mut shown)
                .await;
            let is_whole = put_together.is_ok();
            let is_gone = matches!(put_together, Err(Stopped::Gone));
            // Only the server that finishes a statement has answered then.
            let elsewhere = gather.finishing.as_ref().map(|_| asking.elsewhere());
            let asked = elsewhere.as_ref().unwrap_or(asking);
            self.part_from(parts, asked, is_whole, is_gone).await;
            let complaint = match put_together {
                Ok(()) => {
                    self.recall_read(job, shown.rows, false);
                    return Ok(Gathered::Told(Told {
                        rows_sent: shown.rows,
                        row_count: -1,
                        ..Told::default()
                    }));
                }
                Err(Stopped::Gone) => return Err(Ended::Gone),
                Err(Stopped::Told) if self.entry.killed.get() && shown.has_begun => {
                    return Err(Ended::Broken);
                }
                Err(Stopped::Told) if self.entry.killed.get() => {
                    return Err(Ended::Told(Complaint::interrupted()));
                }
                Err(Stopped::Told) => Complaint::interrupted(),
                Err(Stopped::Failed(failed)) => {
                    let is_over =
                        shown.has_begun || asking.legs.is_some() || failed.retry() == Retry::Never;
                    if !is_over && tries > 0 {
                        tries -= 1;
                        self.core.tally.up(Counter::StatementsRetried);
                        continue;
                    }
                    self.tells_of_lost_branch(&failed)
                }
                Err(Stopped::Said(complaint)) if gather.finishing.is_some() => {
                    finishing::explained(complaint)
                }
                Err(Stopped::Said(complaint)) => complaint,
            };
            if let Some(answered) = shown.unmerged.take().filter(|_| !shown.has_begun) {
                return Ok(Gathered::Unmerged(answered, complaint));
            }
            if shown.has_begun {
                // An error may come instead of the next row.
                self.show(&mut shown).await?;
            }
            self.refuse(&complaint).await?;
            return Ok(Gathered::Told(Told {
                rows_sent: shown.rows,
                row_count: -1,
                ..Told::default()
            }));
        }
    }

    async fn put_together(
        &mut self,
        job: &Job<'_>,
        (gather, recipe, asking): (&Gather, &Recipe, &Asking<'_>),
        parts: &mut Vec<Answering>,
        shown: &mut Shown,
    ) -> Result<(), Stopped> {
        self.may_put_together(job)?;
        let limited = limited(gather, recipe, asking);
        let recipe = limited.as_ref().unwrap_or(recipe);
        match &gather.finishing {
            Some(finishing) => {
                let finished = finishing::finish(self, job, (gather, finishing), asking);
                parts.push(Box::pin(finished).await?);
            }
            None => {
                let asked = gather.parts.iter();
                let asked: Vec<_> = asked.map(|part| (part.hostgroup, &*part.text)).collect();
                // Each partition would keep to it, and nobody to all of it.
                let unlimited = asking.limit_of_session().map(|_| asking.unlimited());
                let asking = unlimited.as_ref().unwrap_or(asking);
                self.ask_all(job, asking, &asked, parts).await?;
            }
        }
        self.until_described(parts, asking).await?;
        let columns = parts.first().map(Answering::columns).unwrap_or_default();
        self.are_alike(parts)?;
        let visible = columns.len().saturating_sub(recipe.hidden);
        let mut merge = merge(recipe, columns, parts.len(), shown)?;
        let described = (
            &parts[0].rows.shapes()[..visible],
            &parts[0].rows.definitions()[..visible],
        );
        let form = self.heads(job, described, (&mut shown.bytes, &mut shown.seq));
        let in_order = merge.is_in_order();
        loop {
            match merge.step() {
                Step::Needs(at) => {
                    let at = self.next_row_of(parts, at, in_order, asking).await?;
                    let row = parts[at].rows.next_row().map_err(broke)?;
                    merge.give(at, row).map_err(|words| shown.beyond(words))?;
                }
                Step::Row(mut row) => {
                    if let Some(names) = &recipe.names {
                        names.say(&mut row);
                    }
                    if job.plan.rows_max().is_some_and(|most| shown.rows >= most) {
                        self.core.tally.up(Counter::RowsLimited);
                        return Err(Stopped::Said(too_many(shown.rows)));
                    }
                    let mut writer = self.writer(&mut shown.bytes, shown.seq, form.flags);
                    form.row(&mut writer, &row).map_err(broke)?;
                    shown.seq = writer.last_seq();
                    shown.rows += 1;
                    if shown.bytes.len() >= CHUNK_LEN {
                        self.show(shown).await.map_err(|_| Stopped::Gone)?;
                    }
                }
                Step::Done => break,
                Step::Failed(words) => return Err(shown.beyond(words)),
            }
        }
        let mut writer = self.writer(&mut shown.bytes, shown.seq, form.flags);
        writer.end(0);
        shown.seq = writer.last_seq();
        self.show(shown).await.map_err(|_| Stopped::Gone)?;
        self.turn.failed = false;
        Ok(())
    }

    /// Writes the head of a result: its columns, as a partition has described them.
    pub(crate) fn heads(
        &self,
        job: &Job<'_>,
        (shapes, definitions): (&[Shape], &[Vec<u8>]),
        (bytes, seq): (&mut Vec<u8>, &mut u8),
    ) -> Form {
        let mut flags = self.flags() | self.turn.flags();
        let mut binary = None;
        if let What::Execute(execution) = job.what {
            let columns = u32::try_from(shapes.len()).unwrap_or_default();
            flags |= execution.columns_flags(Count::Columns(columns));
            // Definitions are sent whole, and may differ from those that were remembered.
            execution.outline.set(None);
            binary = Some(shapes.to_vec());
        }
        let definitions = definitions.iter().map(Vec::as_slice);
        let mut writer = self.writer(bytes, *seq, flags);
        writer.columns_as_said(definitions);
        *seq = writer.last_seq();
        Form { flags, binary }
    }

    /// Sends what is there.
    async fn show(&mut self, shown: &mut Shown) -> Result<(), Ended> {
        shown.has_begun = true;
        self.turn.sent = shown.seq;
        let bytes = std::mem::take(&mut shown.bytes);
        let sent = Counter::QueriesFrontendsBytesSent;
        self.core.tally.add(sent, bytes.len() as u64);
        self.hand_over(bytes).await
    }
}
