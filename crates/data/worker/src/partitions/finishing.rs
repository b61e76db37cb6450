//! A statement that one server finishes: the rows that it needs are copied there, into temporary tables
//! of one connection, and the statement runs beside them.
//!
//! docs/decisions/0051-what-cannot-be-merged-is-finished-on-a-server.md

use crate::command::job::Job;
use crate::core::alone;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Answering, Asking, Stopped, broke, not_supported};
use crate::partitions::said::{refusal, say};
use crate::session::Session;
use backend::{Backend, Hold};
use gather::{BEFORE_COPIES, BEHIND_COPIES, Layout};
use plan::{Finishing, Gather, Part};
use shards::Copied;

/// Bytes of rows that are written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// MySQL has been asked to read a temporary table twice.
const CANNOT_REOPEN: u16 = 1137;

/// Rows and bytes that were copied, and may be.
struct Copying<'s, 'j, 'g> {
    session: &'s Session,
    job: &'s Job<'j>,
    finishing: &'g Finishing,
    /// How the statement is asked.
    asking: &'s Asking<'j>,
    /// How rows are read.
    reading: Asking<'j>,
    rows: u64,
    bytes: u64,
}

/// Copies what the statement needs, and asks it. In a transaction rows are read over its own connections,
/// and so as it has left them; the connection that is asked then is none of these.
pub(crate) async fn finish(
    session: &Session,
    job: &Job<'_>,
    (gather, finishing): (&Gather, &Finishing),
    asking: &Asking<'_>,
) -> Result<Answering, Stopped> {
    let reading = asking.as_stored();
    // Copies are no part of the transaction whose rows they are.
    let asking = &asking.elsewhere();
    let mut copying = Copying {
        session,
        job,
        finishing,
        asking,
        reading,
        rows: 0,
        bytes: 0,
    };
    let hostgroup = finishing.hostgroup;
    let mut scratch = session
        .connection_for(job, (asking, &asking.state), hostgroup)
        .await?;
    session.entry.works_on(hostgroup, &scratch);
    alone::takes(&mut scratch);
    let copied = copying.copy(gather, &mut scratch).await;
    if let Some(table) = job.epoch.snapshot.shards.numbered(gather.table) {
        let mut memo = job.epoch.memo.borrow_mut();
        memo.count_copied(table, copying.rows);
    }
    match copied {
        Ok(()) => session.ask_on(job, asking, &finishing.text, scratch).await,
        Err(stopped) => {
            // Copies go with their connection.
            if !matches!(stopped, Stopped::Gone) {
                session.end_on_server(&scratch);
            }
            session.core.pools.abandon(scratch);
            Err(stopped)
        }
    }
}

/// The error of a server that finishes a statement, in words that say what to do.
pub(crate) fn explained(complaint: Complaint) -> Complaint {
    if complaint.code != CANNOT_REOPEN {
        return complaint;
    }
    not_supported(
        "HSCALE-1000: a query of WITH reads a table and is named twice, and MySQL reads a copy of a table once; write the query in place of its name",
    )
}

impl Copying<'_, '_, '_> {
    /// Makes and fills all copies. The connection is a session's own from then on, until a reset.
    async fn copy(&mut self, gather: &Gather, scratch: &mut Backend) -> Result<(), Stopped> {
        let asking = self.asking;
        let come = alone::come_to(scratch, &asking.state, &asking.class);
        self.session
            .unless_stopped(asking, Box::pin(come))
            .await??;
        scratch.holds.add(Hold::TemporaryTable);
        self.tell(scratch, BEFORE_COPIES.as_bytes()).await?;
        let mut parts = &gather.parts[..];
        for table in &self.finishing.what.tables {
            let (own, others) = parts
                .split_at_checked(table.sources.len())
                .unwrap_or_default();
            parts = others;
            self.table(table, own, scratch).await?;
        }
        self.tell(scratch, BEHIND_COPIES.as_bytes()).await
    }

    /// Copies one table, as often as it is named.
    async fn table(
        &mut self,
        table: &Copied,
        own: &[Part],
        scratch: &mut Backend,
    ) -> Result<(), Stopped> {
        let layout = self.layout(table, own).await?;
        let Some((first, others)) = table.copies.split_first() else {
            return Ok(());
        };
        self.tell(scratch, layout.creates(first).as_bytes()).await?;
        self.fill((table, &layout, first), own, scratch).await?;
        for copy in others {
            self.tell(scratch, layout.creates(copy).as_bytes()).await?;
            self.tell(scratch, layout.repeats(first, copy).as_bytes())
                .await?;
        }
        Ok(())
    }

    /// The columns of a table, which must be the same in each of its partitions.
    async fn layout(&self, table: &Copied, own: &[Part]) -> Result<Layout, Stopped> {
        let questions = table.sources.iter();
        let questions: Vec<_> = questions
            .map(|source| Layout::question(&source.table).into_bytes())
            .collect();
        let asked = own.iter().zip(&questions);
        let asked: Vec<_> = asked
            .map(|(part, question)| (part.hostgroup, &question[..]))
            .collect();
        let mut parts = Vec::new();
        let read = self.layouts(&asked, table, &mut parts).await;
        self.part_from(parts, &read).await;
        let mut layouts = read?;
        let said = |words: &str| Stopped::Said(not_supported(format!("HSCALE-1000: {words}")));
        let first = layouts
            .pop()
            .ok_or_else(|| said("a table of it has no partition"))?;
        if layouts.iter().any(|other| *other != first) {
            return Err(said(
                "the tables of its partitions differ in the types of these columns; make them alike",
            ));
        }
        let is_ascii = first.is_ascii() && table.copies.iter().all(|copy| copy.is_ascii());
        if !is_ascii && !self.asking.state.speaks_utf8() {
            return Err(said(
                "names in it are not ASCII, and it is finished on a server that they are told in UTF-8; SET NAMES utf8mb4 first",
            ));
        }
        Ok(first)
    }

    async fn layouts(
        &self,
        asked: &[(u32, &[u8])],
        table: &Copied,
        parts: &mut Vec<Answering>,
    ) -> Result<Vec<Layout>, Stopped> {
        let (session, reading) = (self.session, &self.reading);
        session.ask_all(self.job, reading, asked, parts).await?;
        session.until_described(parts, reading).await?;
        let mut layouts = Vec::new();
        for at in 0..parts.len() {
            let mut rows = Vec::new();
            loop {
                session.next_row_of(parts, at, true, reading).await?;
                match parts[at].rows.next_row().map_err(broke)? {
                    Some(row) => rows.push(row),
                    None => break,
                }
            }
            let columns = &self.finishing.what.columns;
            let layout = Layout::read(&rows, columns, table.key.as_deref());
            layouts.push(
                layout.map_err(|words| {
                    Stopped::Said(not_supported(format!("HSCALE-1000: {words}")))
                })?,
            );
        }
        Ok(layouts)
    }

    /// Reads a table's rows at all of its partitions, and writes them.
    async fn fill(
        &mut self,
        copy: (&Copied, &Layout, &str),
        own: &[Part],
        scratch: &mut Backend,
    ) -> Result<(), Stopped> {
        let selects = copy.1.selects().into_bytes();
        let texts: Vec<_> = own
            .iter()
            .map(|part| [&selects[..], &part.text].concat())
            .collect();
        let asked = own.iter().zip(&texts);
        let asked: Vec<_> = asked
            .map(|(part, text)| (part.hostgroup, &text[..]))
            .collect();
        for asked in self.rounds(&asked) {
            let mut parts = Vec::new();
            let filled = self.write_rows(copy, &asked, &mut parts, scratch).await;
            self.part_from(parts, &filled).await;
            filled?;
        }
        Ok(())
    }

    /// Partitions that are read at once: each on a connection of its own, but those of one hostgroup one
    /// after another where it has only the transaction's. So no rows of them wait here.
    fn rounds<'q>(&self, asked: &[(u32, &'q [u8])]) -> Vec<Vec<(u32, &'q [u8])>> {
        if self.reading.legs.is_none() {
            return vec![asked.to_vec()];
        }
        let mut rounds: Vec<Vec<(u32, &[u8])>> = Vec::new();
        for one in asked {
            let is_free = |round: &&mut Vec<(u32, &[u8])>| round.iter().all(|(at, _)| *at != one.0);
            match rounds.iter_mut().find(is_free) {
                Some(round) => round.push(*one),
                None => rounds.push(vec![*one]),
            }
        }
        rounds
    }

    async fn write_rows(
        &mut self,
        (table, layout, copy): (&Copied, &Layout, &str),
        asked: &[(u32, &[u8])],
        parts: &mut Vec<Answering>,
        scratch: &mut Backend,
    ) -> Result<(), Stopped> {
        let session = self.session;
        session
            .ask_all(self.job, &self.reading, asked, parts)
            .await?;
        session.until_described(parts, &self.reading).await?;
        session.are_alike(parts)?;
        let begin = layout.inserts(copy).into_bytes();
        let mut insert = begin.clone();
        loop {
            let at = session.next_row_of(parts, 0, false, &self.reading).await?;
            let row = parts[at].rows.next_row().map_err(broke)?;
            let is_last = row.is_none();
            if let Some(row) = row {
                let cells = row.iter().flatten();
                self.count(table, cells.map(|cell| cell.len() as u64).sum())?;
                if insert.len() > begin.len() {
                    insert.push(b',');
                }
                layout.write(&row, &mut insert);
            }
            let is_full = insert.len() >= WRITTEN_AT_ONCE;
            if is_full || is_last && insert.len() > begin.len() {
                self.tell(scratch, &insert).await?;
                insert.truncate(begin.len());
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Counts a row; the error names the limit that it exceeds.
    fn count(&mut self, table: &Copied, bytes: u64) -> Result<(), Stopped> {
        self.rows += 1;
        self.bytes += bytes;
        let variables = &self.job.epoch.snapshot.variables;
        let rows_max = variables.mysql_sharding_scratch_max_rows;
        let mb_max = variables.mysql_sharding_scratch_max_MB;
        let (many, allows) = if rows_max > 0 && self.rows > rows_max {
            (
                "rows",
                format!("mysql-sharding_scratch_max_rows allows {rows_max}"),
            )
        } else if mb_max > 0 && self.bytes > mb_max << 20 {
            (
                "megabytes",
                format!("mysql-sharding_scratch_max_MB allows {mb_max}"),
            )
        } else {
            return Ok(());
        };
        let name = &table.shown;
        let words = format!(
            "HSCALE-1000: more {many} of {name} would be copied to the server that finishes it than may be: {allows}; name the key, or other columns of {name}, in its WHERE"
        );
        Err(Stopped::Said(not_supported(words)))
    }

    /// Says a statement without rows to the server that finishes it.
    async fn tell(&self, scratch: &mut Backend, text: &[u8]) -> Result<(), Stopped> {
        let said = Box::pin(say(scratch, text, None));
        let said = self.session.unless_stopped(self.asking, said).await??;
        let Some((code, complaint)) = refusal(&said) else {
            return Ok(());
        };
        self.session
            .count_error(scratch, code, complaint.words.as_bytes());
        let hostgroup = self.finishing.hostgroup;
        Err(Stopped::Said(Complaint {
            words: format!(
                "{} (while rows were copied to hostgroup {hostgroup}, where the statement is finished)",
                complaint.words
            ),
            ..complaint
        }))
    }

    async fn part_from<T>(&self, parts: Vec<Answering>, read: &Result<T, Stopped>) {
        let is_gone = matches!(read, Err(Stopped::Gone));
        self.session
            .part_from(parts, &self.reading, read.is_ok(), is_gone)
            .await;
    }
}
