//! INSERT and REPLACE of a query whose rows go to several partitions: the rows are read, and inserted where
//! their keys belong. All of them are, or none.

use crate::command::job::{Job, Told};
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Answering, Asking, Stopped, broke, not_supported};
use crate::partitions::made::{Made, answer};
use crate::partitions::{changing, finishing};
use crate::session::Session;
use bridge::{Counter, Failure, Retry};
use config::PartitionChanges;
use gather::{Merge, Recipe, Step};
use plan::{Gather, Part};
use shards::{FromQuery, KeyCell, Table};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use wire::row_stream::Row;
use wire::rows::Shape;
use wire::types::Type;

/// Bytes of rows that are written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// Words of the answer.
const WORDS: &[&str] = &["Records", "Duplicates", "Warnings"];
/// Number of the collation of bytes.
pub(crate) const BINARY: u16 = 63;

/// Rows that are to be inserted, by where they go.
struct Rows<'a> {
    from_query: &'a FromQuery,
    table: Option<&'a Table>,
    shapes: Vec<Shape>,
    /// By hostgroup and table.
    texts: BTreeMap<(u32, String), Texts>,
    rows: u64,
    bytes: u64,
    rows_max: u64,
    bytes_max: u64,
}

/// INSERTs of one partition.
struct Texts {
    /// For people.
    partition: String,
    /// Up to the first row.
    begin: Vec<u8>,
    whole: Vec<Vec<u8>>,
    last: Vec<u8>,
}

/// Reads the rows of a statement's query, and inserts them.
pub(crate) async fn insert(
    session: &mut Session,
    job: &Job<'_>,
    (gather, recipe, from_query): (&Gather, &Recipe, &FromQuery),
) -> Result<Told, Ended> {
    if let ControlFlow::Break(told) = session.wait_as_asked(job).await? {
        return Ok(told);
    }
    let mut tries = session.tries(job);
    let read = loop {
        let mut asking = session.asking(job, recipe.same_moment);
        asking.state.set("character_set_results", "utf8mb4");
        asking.state.unset("sql_select_limit");
        let mut parts = Vec::new();
        let read = read(
            session,
            job,
            (gather, recipe, from_query),
            &asking,
            &mut parts,
        );
        let read = Box::pin(read).await;
        let is_gone = matches!(read, Err(Stopped::Gone));
        session
            .part_from(parts, &asking, read.is_ok(), is_gone)
            .await;
        match read {
            Err(Stopped::Failed(failed)) if failed.retry() != Retry::Never && tries > 0 => {
                tries -= 1;
                session.core.tally.up(Counter::StatementsRetried);
            }
            other => break other,
        }
    };
    let complaint = match read.and_then(|parts| may_change(session, job, parts)) {
        Ok(parts) if parts.is_empty() => {
            return answer(session, &Made::of_no_rows(WORDS)).await;
        }
        Ok(parts) => {
            let change = Gather::of(parts, gather.table);
            return Box::pin(changing::change(session, job, &change)).await;
        }
        Err(Stopped::Gone) => return Err(Ended::Gone),
        Err(Stopped::Told) if session.entry.killed.get() => {
            return Err(Ended::Told(Complaint::interrupted()));
        }
        Err(Stopped::Told) => Complaint::interrupted(),
        Err(Stopped::Failed(failed)) => Complaint::of(&failed),
        Err(Stopped::Said(complaint)) if gather.finishing.is_some() => {
            finishing::explained(complaint)
        }
        Err(Stopped::Said(complaint)) => complaint,
    };
    session.refuse(&complaint).await?;
    Ok(Told {
        row_count: -1,
        ..Told::default()
    })
}

/// Looks whether the user may change all partitions that get rows.
fn may_change(session: &Session, job: &Job<'_>, parts: Vec<Part>) -> Result<Vec<Part>, Stopped> {
    let mut names: Vec<&str> = parts.iter().map(|part| &*part.partitions).collect();
    names.dedup();
    if names.len() > 1 && session.user.partition_changes() == PartitionChanges::Refuse {
        return Err(refused(&format!(
            "its rows go to {} partitions, and one is all that a change of this user can have; say it for each partition with the hint hscale.partition(table) = 'name', or have an operator set partition_changes to xa in the user's attributes",
            names.len()
        )));
    }
    let hostgroups = parts.iter().map(|part| part.hostgroup);
    let is_alone = hostgroups.clone().min() == hostgroups.max();
    if !is_alone && job.epoch.snapshot.variables.decisions().is_none() {
        return Err(refused(
            "its rows go to several partitions, and no table is named in which the outcome would be written; set mysql-sharding_decisions to schema.table",
        ));
    }
    Ok(parts)
}

async fn read(
    session: &Session,
    job: &Job<'_>,
    (gather, recipe, from_query): (&Gather, &Recipe, &FromQuery),
    asking: &Asking<'_>,
    parts: &mut Vec<Answering>,
) -> Result<Vec<Part>, Stopped> {
    let map = &job.epoch.snapshot.shards;
    let table = from_query.table.and_then(|number| map.numbered(number));
    let mut rows = None;
    let each = &mut |shapes: &[Shape], row: Option<&Row>| {
        let Some(row) = row else {
            let of = (from_query, table.map(|table| &**table));
            rows = Some(Rows::of(of, shapes.to_vec(), job)?);
            return Ok(());
        };
        rows.as_mut().map_or(Ok(()), |rows| rows.add(row))
    };
    merged(session, job, (gather, recipe), asking, (parts, each)).await?;
    Ok(rows.map_or_else(Vec::new, Rows::parts))
}

/// Takes the columns of a result, and then each row of it.
pub(crate) type EachRow<'a> = dyn FnMut(&[Shape], Option<&Row>) -> Result<(), Stopped> + 'a;

/// Reads the rows of a query as they are put together.
pub(crate) async fn merged(
    session: &Session,
    job: &Job<'_>,
    (gather, recipe): (&Gather, &Recipe),
    asking: &Asking<'_>,
    (parts, each): (&mut Vec<Answering>, &mut EachRow<'_>),
) -> Result<(), Stopped> {
    session.may_put_together(job)?;
    match &gather.finishing {
        Some(finishing) => {
            let finished = finishing::finish(session, job, (gather, finishing), asking);
            parts.push(Box::pin(finished).await?);
        }
        None => {
            let asked = gather.parts.iter();
            let asked: Vec<_> = asked.map(|part| (part.hostgroup, &*part.text)).collect();
            session.ask_all(job, asking, &asked, parts).await?;
        }
    }
    session.until_described(parts, asking).await?;
    session.are_alike(parts)?;
    let columns = parts.first().map(Answering::columns).unwrap_or_default();
    let visible = columns.len().saturating_sub(recipe.hidden);
    let shapes = parts.first().map_or(&[][..], |part| part.rows.shapes());
    let shapes: Vec<Shape> = shapes.iter().take(visible).copied().collect();
    each(&shapes, None)?;
    let mut merge = Merge::new(recipe, columns, parts.len()).map_err(|words| refused(&words))?;
    let in_order = merge.is_in_order();
    loop {
        match merge.step() {
            Step::Needs(at) => {
                let at = session.next_row_of(parts, at, in_order, asking).await?;
                let row = parts[at].rows.next_row().map_err(broke)?;
                merge.give(at, row).map_err(|words| refused(&words))?;
            }
            Step::Row(row) => each(&shapes, Some(&row))?,
            Step::Done => return Ok(()),
            Step::Failed(words) => return Err(refused(&words)),
        }
    }
}

impl<'a> Rows<'a> {
    fn of(
        (from_query, table): (&'a FromQuery, Option<&'a Table>),
        shapes: Vec<Shape>,
        job: &Job<'_>,
    ) -> Result<Self, Stopped> {
        if let Some(named) = from_query.columns.filter(|named| *named != shapes.len()) {
            return Err(refused(&format!(
                "its query has {} columns, and {named} are named; select as many as there are",
                shapes.len(),
            )));
        }
        if shapes.iter().any(|shape| shape.kind == Type::FLOAT) {
            return Err(refused(
                "a FLOAT that is read has six digits of its value; select it + 0e0",
            ));
        }
        let variables = &job.epoch.snapshot.variables;
        Ok(Self {
            from_query,
            table,
            shapes,
            texts: BTreeMap::new(),
            rows: 0,
            bytes: 0,
            rows_max: variables.mysql_sharding_insert_max_rows,
            bytes_max: variables.mysql_sharding_insert_max_MB << 20,
        })
    }

    /// Takes a row, for the partition of its key.
    fn add(&mut self, row: &Row) -> Result<(), Stopped> {
        let at = self.from_query.key;
        let cell = row.get(at).and_then(Option::as_deref);
        let key = match cell {
            None => KeyCell::Null,
            Some(text) if self.shapes.get(at).is_some_and(is_number) => KeyCell::Number(text),
            Some(text) => KeyCell::Text(text),
        };
        let home = self.from_query.home(self.table, key);
        let home = home.map_err(|words| refused(&words))?;
        let place = (home.hostgroup, home.table.clone());
        let begins = || self.from_query.begins(&home);
        let texts = self.texts.entry(place).or_insert_with(|| Texts {
            begin: begins(),
            partition: home.partition.clone(),
            whole: Vec::new(),
            last: Vec::new(),
        });
        let before = texts.last.len();
        match texts.last.is_empty() {
            true => texts.last.extend_from_slice(&texts.begin),
            false => texts.last.push(b','),
        }
        let mut sign = b'(';
        for (shape, cell) in self.shapes.iter().zip(row) {
            texts.last.push(sign);
            sign = b',';
            write(shape, cell.as_deref(), &mut texts.last);
        }
        texts.last.push(b')');
        self.rows += 1;
        self.bytes += (texts.last.len() - before) as u64;
        if texts.last.len() >= WRITTEN_AT_ONCE {
            texts.whole.push(std::mem::take(&mut texts.last));
        }
        let limit = if self.rows_max > 0 && self.rows > self.rows_max {
            format!("mysql-sharding_insert_max_rows allows {}", self.rows_max)
        } else if self.bytes_max > 0 && self.bytes > self.bytes_max {
            let megabytes = self.bytes_max >> 20;
            format!("mysql-sharding_insert_max_MB allows {megabytes}")
        } else {
            return Ok(());
        };
        Err(refused(&format!(
            "its query has more rows than may be inserted at once: {limit}; insert fewer at once"
        )))
    }

    /// The INSERTs, partition by partition.
    fn parts(self) -> Vec<Part> {
        let mut parts = Vec::new();
        for ((hostgroup, _), texts) in self.texts {
            let partition = texts.partition;
            let last = (!texts.last.is_empty()).then_some(texts.last);
            parts.extend(texts.whole.into_iter().chain(last).map(|text| Part {
                writer: hostgroup,
                hostgroup,
                partitions: partition.as_str().into(),
                text: text.into(),
                rows: Box::default(),
            }));
        }
        parts
    }
}

pub(crate) fn refused(words: &str) -> Stopped {
    Stopped::Said(not_supported(format!("HSCALE-1000: {words}")))
}

/// Whether values of a column are numbers.
pub(crate) fn is_number(shape: &Shape) -> bool {
    [
        Type::TINY,
        Type::SHORT,
        Type::LONG,
        Type::LONGLONG,
        Type::INT24,
        Type::YEAR,
        Type::DECIMAL,
        Type::NEWDECIMAL,
        Type::DOUBLE,
    ]
    .contains(&shape.kind)
}

/// Writes a value so that it has its type, whatever the session has set: bytes that are not plain are
/// written as digits.
pub(crate) fn write(shape: &Shape, cell: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(cell) = cell else {
        return out.extend_from_slice(b"NULL");
    };
    if is_number(shape) {
        out.extend_from_slice(cell);
        if shape.kind == Type::DOUBLE && !cell.iter().any(u8::is_ascii_alphabetic) {
            out.extend_from_slice(b"e0");
        }
        return;
    }
    let is_bits = shape.kind == Type::BIT;
    let is_moment = [Type::DATE, Type::TIME, Type::DATETIME, Type::TIMESTAMP].contains(&shape.kind);
    if !is_bits && !is_moment {
        let is_bytes = shape.charset == BINARY && shape.kind != Type::JSON;
        out.extend_from_slice(if is_bytes { b"_binary" } else { b"_utf8mb4" });
    }
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\'' | b'\\');
    if !is_bits && cell.iter().all(is_plain) {
        out.push(b'\'');
        out.extend_from_slice(cell);
        return out.push(b'\'');
    }
    out.extend_from_slice(b" 0x");
    for byte in cell {
        for digit in [byte >> 4, byte & 15] {
            out.push(b"0123456789abcdef"[usize::from(digit)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_their_types() {
        let said = |kind: Type, charset: u16, cell: &[u8]| {
            let shape = Shape {
                kind,
                charset,
                ..Shape::UNTOLD
            };
            let mut out = Vec::new();
            write(&shape, Some(cell), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(said(Type::LONG, 63, b"-7"), "-7");
        assert_eq!(said(Type::DOUBLE, 63, b"1.5"), "1.5e0");
        assert_eq!(said(Type::DOUBLE, 63, b"1e20"), "1e20");
        assert_eq!(said(Type::NEWDECIMAL, 63, b"1.50"), "1.50");
        assert_eq!(said(Type::VAR_STRING, 45, b"a b"), "_utf8mb4'a b'");
        assert_eq!(said(Type::VAR_STRING, 45, b"it's"), "_utf8mb4 0x69742773");
        assert_eq!(said(Type::VAR_STRING, 63, b"\\"), "_binary 0x5c");
        assert_eq!(said(Type::BIT, 63, b"\x01"), " 0x01");
        assert_eq!(said(Type::JSON, 63, b"{}"), "_utf8mb4'{}'");
        assert_eq!(said(Type::DATE, 63, b"2008-12-24"), "'2008-12-24'");
    }
}
