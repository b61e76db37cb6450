//! Rows with which several partitions answer a change (RETURNING). The client gets them in the order of the
//! statement's rows, once the change is made.

use crate::command::job::{Job, Told};
use crate::command::trouble::Ended;
use crate::forward::relay::too_many;
use crate::partitions::asking::{Stopped, are_alike, broke, columns_of, not_supported};
use crate::partitions::legs::WAITING_MAX;
use crate::partitions::said::Answer;
use crate::session::Session;
use bridge::Counter;
use plan::Part;
use rt::CHUNK_LEN;
use wire::caps::Caps;
use wire::row_stream::{Row, RowStream};
use wire::rows::Shape;

/// Rows of a partition, or of all.
pub(crate) struct Returned {
    shapes: Vec<Shape>,
    definitions: Vec<Vec<u8>>,
    /// With their places in the statement.
    rows: Vec<(usize, Row)>,
    bytes: usize,
    /// Whether the columns of all are of the same kinds.
    are_alike: bool,
}

impl Returned {
    /// Of one part's answer, of which no more than [`WAITING_MAX`] bytes were kept.
    pub(crate) fn of(part: &Part, answer: &Answer, caps: Caps) -> Result<Self, Stopped> {
        if answer.bytes.len() > WAITING_MAX {
            return Err(too_much());
        }
        let mut stream = RowStream::new(caps);
        stream.push(&answer.bytes);
        let mut rows = Vec::new();
        while let Some(row) = stream.next_row().map_err(broke)? {
            rows.push(row);
        }
        let (given, told) = (&part.rows, rows.len());
        let first = given.first().copied().unwrap_or_default();
        let is_run = given.last().is_none_or(|last| last - first < given.len());
        let rows: Vec<_> = match told == given.len() {
            true => given.iter().copied().zip(rows).collect(),
            // Those that are not told are some of these.
            false if is_run => rows.into_iter().map(|row| (first, row)).collect(),
            false => {
                let words = format!(
                    "HSCALE-1000: a partition has got {} rows of it and tells of {told}, and which ones is not known; INSERT them row by row",
                    given.len()
                );
                return Err(Stopped::Said(not_supported(words)));
            }
        };
        Ok(Self {
            shapes: stream.shapes().to_vec(),
            definitions: stream.definitions().to_vec(),
            rows,
            bytes: answer.bytes.len(),
            are_alike: true,
        })
    }

    /// Adds those of another part.
    pub(crate) fn add(&mut self, part: Self) {
        self.are_alike &= are_alike(&columns_of(&self.shapes), &columns_of(&part.shapes));
        self.bytes = self.bytes.saturating_add(part.bytes);
        self.rows.extend(part.rows);
    }

    /// Whether there are any.
    pub(crate) const fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Looks whether they can be told, before the change is made for good.
    pub(crate) fn may_be_told(&self, session: &Session, job: &Job<'_>) -> Result<(), Stopped> {
        session.may_put_together(job)?;
        if !self.are_alike {
            let words = "HSCALE-1000: the tables of its partitions differ in the types of these columns; make them alike";
            return Err(Stopped::Said(not_supported(words)));
        }
        if self.bytes > WAITING_MAX {
            return Err(too_much());
        }
        let most = job.plan.rows_max();
        if let Some(most) = most.filter(|most| self.rows.len() as u64 > *most) {
            session.core.tally.up(Counter::RowsLimited);
            return Err(Stopped::Said(too_many(most)));
        }
        Ok(())
    }

    /// Tells the client.
    pub(crate) async fn tell(
        mut self,
        session: &mut Session,
        job: &Job<'_>,
        warnings: u16,
    ) -> Result<Told, Ended> {
        // Rows of one place stay as they came.
        self.rows.sort_by_key(|(place, _)| *place);
        let (mut bytes, mut seq) = (Vec::new(), session.turn.sent);
        let described = (&*self.shapes, &*self.definitions);
        let form = session.heads(job, described, (&mut bytes, &mut seq));
        for (_, row) in &self.rows {
            let mut writer = session.writer(&mut bytes, seq, form.flags);
            form.row(&mut writer, row).map_err(|_| Ended::Broken)?;
            seq = writer.last_seq();
            if bytes.len() >= CHUNK_LEN {
                session.turn.sent = seq;
                session.hand_over(std::mem::take(&mut bytes)).await?;
            }
        }
        let mut writer = session.writer(&mut bytes, seq, form.flags);
        writer.end(warnings);
        session.turn.sent = writer.last_seq();
        session.turn.failed = false;
        session.hand_over(bytes).await?;
        let rows_sent = self.rows.len() as u64;
        session.recall_read(job, rows_sent, false);
        Ok(Told {
            rows_sent,
            row_count: -1,
            ..Told::default()
        })
    }
}

fn too_much() -> Stopped {
    let words = format!(
        "HSCALE-1000: more than {} MiB of rows of its RETURNING would wait here until all partitions have made the change; change fewer rows at once",
        WAITING_MAX >> 20
    );
    Stopped::Said(not_supported(words))
}
