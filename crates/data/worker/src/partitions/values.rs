//! A change with queries inside that read other partitions: their values are read first, over the
//! connections of the transaction if one is open, and put in their place.
//!
//! docs/features/sharded-writes.md

use crate::command::job::Job;
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Asking, Stopped, not_supported};
use crate::partitions::finishing;
use crate::partitions::from_query::{BINARY, is_number, merged, refused, write};
use crate::session::Session;
use bridge::{Counter, Failure as _, Retry};
use gather::{Recipe, Row};
use plan::{Gather, Values};
use shards::{Cut, Inner, Means, cut};
use wire::rows::Shape;
use wire::types::Type;

/// Stands for no row, which is none of a list and NULL for a value.
const NO_ROW: &[u8] = b"SELECT NULL FROM DUAL WHERE 1 = 0";
/// Stands for a row, whichever.
const A_ROW: &[u8] = b"SELECT 1";
/// A column that a query inside has not.
const UNKNOWN_COLUMN: u16 = 1054;
/// A value of more than one row.
const MORE_ROWS: u16 = 1242;

/// Values of a query that were read.
struct Read {
    means: Means,
    text: Vec<u8>,
    rows: u64,
}

/// Bounds of all that is read for one statement.
struct Bounds {
    rows: u64,
    bytes: u64,
    rows_max: u64,
    bytes_max: u64,
}

/// Reads the queries inside of a change. Its text with their values, or why there is none.
pub(crate) async fn put_in(
    session: &mut Session,
    job: &Job<'_>,
    values: &Values,
) -> Result<Result<Vec<u8>, Complaint>, Ended> {
    let mut recipes = values
        .reads
        .iter()
        .filter_map(|(_, read)| read.recipe.as_ref());
    let same_moment = recipes.any(|recipe| recipe.same_moment);
    let mut tries = session.tries(job);
    let read = loop {
        let mut asking = match session.global.clone() {
            None => session.asking(job, same_moment),
            Some(transaction) => {
                Box::pin(session.asking_branches(job, transaction, same_moment)).await?
            }
        };
        asking.state.set("character_set_results", "utf8mb4");
        asking.state.unset("sql_select_limit");
        let read = Box::pin(read(session, job, values, &asking)).await;
        session.take_back(&asking)?;
        match read {
            Err(Stopped::Failed(failed))
                if asking.legs.is_none() && failed.retry() != Retry::Never && tries > 0 =>
            {
                tries -= 1;
                session.core.tally.up(Counter::StatementsRetried);
            }
            other => break other,
        }
    };
    Ok(match read {
        Ok(text) => Ok(text),
        Err(Stopped::Gone) => return Err(Ended::Gone),
        Err(Stopped::Told) if session.entry.killed.get() => {
            return Err(Ended::Told(Complaint::interrupted()));
        }
        Err(Stopped::Told) => Err(Complaint::interrupted()),
        Err(Stopped::Failed(failed)) => Err(session.tells_of_lost_branch(&failed)),
        Err(Stopped::Said(complaint)) if complaint.code == UNKNOWN_COLUMN => {
            Err(not_supported(format!(
                "HSCALE-1000: a query inside of it is read first, without the tables around it: {}; join the tables, or name the key",
                complaint.words
            )))
        }
        Err(Stopped::Said(complaint)) => Err(complaint),
    })
}

async fn read(
    session: &Session,
    job: &Job<'_>,
    values: &Values,
    asking: &Asking<'_>,
) -> Result<Vec<u8>, Stopped> {
    let variables = &job.epoch.snapshot.variables;
    let mut bounds = Bounds {
        rows: 0,
        bytes: 0,
        rows_max: variables.mysql_sharding_insert_max_rows,
        bytes_max: variables.mysql_sharding_insert_max_MB << 20,
    };
    let mut cuts = Vec::new();
    for (inner, gather) in &values.reads {
        let Some(recipe) = &gather.recipe else {
            return Err(refused(
                "a query inside of it cannot be read first; say it alone",
            ));
        };
        let read = one(session, job, (inner, gather, recipe), asking, &mut bounds);
        cuts.push(Cut {
            at: inner.at.clone(),
            with: Box::pin(read).await?,
        });
    }
    Ok(cut(&values.text, &cuts))
}

async fn one(
    session: &Session,
    job: &Job<'_>,
    (inner, gather, recipe): (&Inner, &Gather, &Recipe),
    asking: &Asking<'_>,
    bounds: &mut Bounds,
) -> Result<Vec<u8>, Stopped> {
    let mut read = Read {
        means: inner.means,
        text: Vec::new(),
        rows: 0,
    };
    let each = &mut |shapes: &[Shape], row: Option<&Row>| match row {
        None => read.may_have(shapes),
        Some(row) => read.add(shapes, row, bounds),
    };
    let mut parts = Vec::new();
    let merged = merged(session, job, (gather, recipe), asking, (&mut parts, each));
    let merged = Box::pin(merged).await;
    let is_gone = matches!(merged, Err(Stopped::Gone));
    let elsewhere = gather.finishing.as_ref().map(|_| asking.elsewhere());
    let asked = elsewhere.as_ref().unwrap_or(asking);
    session
        .part_from(parts, asked, merged.is_ok(), is_gone)
        .await;
    match merged {
        Ok(()) => Ok(read.text()),
        Err(Stopped::Said(complaint)) if gather.finishing.is_some() => {
            Err(Stopped::Said(finishing::explained(complaint)))
        }
        Err(stopped) => Err(stopped),
    }
}

impl Read {
    /// Refuses values that a text cannot have as they are.
    fn may_have(&self, shapes: &[Shape]) -> Result<(), Stopped> {
        let has = |kinds: &[Type]| {
            let mut shapes = shapes.iter().filter(|_| self.means != Means::Exists);
            shapes.any(|shape| kinds.contains(&shape.kind))
        };
        if has(&[Type::FLOAT]) {
            return Err(refused(
                "a FLOAT that is read has six digits of its value; select it + 0e0",
            ));
        }
        if has(&[Type::JSON, Type::GEOMETRY]) {
            return Err(refused(
                "a query inside of it has JSON or geometry, and is read first; cast it to CHAR",
            ));
        }
        Ok(())
    }

    fn add(&mut self, shapes: &[Shape], row: &Row, bounds: &mut Bounds) -> Result<(), Stopped> {
        self.rows += 1;
        if self.means == Means::Exists {
            return Ok(());
        }
        if self.means == Means::One && self.rows > 1 {
            let words = "Subquery returns more than 1 row";
            return Err(Stopped::Said(Complaint::with(MORE_ROWS, "21000", words)));
        }
        let before = self.text.len();
        let is_tuple = self.means == Means::List && row.len() > 1;
        if before > 0 {
            self.text.extend_from_slice(b", ");
        }
        if is_tuple {
            self.text.push(b'(');
        }
        for (at, (shape, cell)) in shapes.iter().zip(row).enumerate() {
            if at > 0 {
                self.text.extend_from_slice(b", ");
            }
            literal(shape, cell.as_deref(), &mut self.text);
        }
        if is_tuple {
            self.text.push(b')');
        }
        bounds.count((self.text.len() - before) as u64)
    }

    fn text(self) -> Vec<u8> {
        match self.means {
            _ if self.rows == 0 => NO_ROW.into(),
            Means::Exists => A_ROW.into(),
            Means::List | Means::One => self.text,
        }
    }
}

impl Bounds {
    fn count(&mut self, bytes: u64) -> Result<(), Stopped> {
        self.rows += 1;
        self.bytes += bytes;
        let limit = if self.rows_max > 0 && self.rows > self.rows_max {
            format!("mysql-sharding_insert_max_rows allows {}", self.rows_max)
        } else if self.bytes_max > 0 && self.bytes > self.bytes_max {
            let megabytes = self.bytes_max >> 20;
            format!("mysql-sharding_insert_max_MB allows {megabytes}")
        } else {
            return Ok(());
        };
        Err(refused(&format!(
            "queries inside of it have more rows than may be read first: {limit}; change fewer rows at once"
        )))
    }
}

/// Writes a value. Plain letters have no character set before them: a partition is told by them.
fn literal(shape: &Shape, cell: Option<&[u8]>, out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\'' | b'\\');
    let is_text = shape.charset != BINARY && shape.kind != Type::BIT && !is_number(shape);
    match cell {
        Some(cell) if is_text && cell.iter().all(is_plain) => {
            out.push(b'\'');
            out.extend_from_slice(cell);
            out.push(b'\'');
        }
        _ => write(shape, cell, out),
    }
}
