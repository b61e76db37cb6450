//! Rows that an UPDATE has given a key of another partition go there, in the transaction of the UPDATE.
//!
//! A row travels as copies do: each value is what it was.

use crate::partitions::asking::{Asking, Stopped, broke, not_supported};
use crate::partitions::said::{error_of, refusal, say};
use backend::{Backend, Hold};
use config::Variables;
use gather::{BEFORE_COPIES, BEHIND_COPIES, Layout};
use rt::Chunk;
use shards::{Columns, Place, Rekeyed};
use wire::attributes::Attributes;
use wire::packet;
use wire::response::{Expect, Follow, Response};
use wire::row_stream::{Row, RowStream};

/// Bytes of rows that are written at once.
const WRITTEN_AT_ONCE: usize = 256 << 10;
/// How rows are read: as they are stored, and all of them.
const AS_STORED: &str = "SET character_set_results = NULL, sql_select_limit = 18446744073709551615";

/// Rows on their way from one partition to another.
pub(crate) struct Carrier<'a> {
    pub(crate) rekeyed: &'a Rekeyed,
    rows_max: u64,
    bytes_max: u64,
    speaks_utf8: bool,
    rows: u64,
    bytes: u64,
}

/// Rows of one partition, with their columns.
pub(crate) struct Taken {
    layout: Layout,
    pub(crate) rows: Vec<Row>,
}

impl<'a> Carrier<'a> {
    pub(crate) fn of(rekeyed: &'a Rekeyed, variables: &Variables, asking: &Asking<'_>) -> Self {
        Self {
            rekeyed,
            rows_max: variables.mysql_sharding_insert_max_rows,
            bytes_max: variables.mysql_sharding_insert_max_MB << 20,
            speaks_utf8: asking.state.speaks_utf8(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Reads the rows that do not belong to a partition any more.
    pub(crate) async fn take(
        &mut self,
        backend: &mut Backend,
        place: &Place,
    ) -> Result<Taken, Stopped> {
        // What is set here goes with a reset.
        backend.holds.add(Hold::Untold);
        tell(backend, AS_STORED.as_bytes()).await?;
        self.may_leave(backend, place).await?;
        let layout = self.layout(backend, &place.table).await?;
        let limit = match self.rows_max {
            0 => String::new(),
            most => format!(" LIMIT {}", most - self.rows.min(most) + 1),
        };
        let selects = format!("{}FROM {} WHERE ", layout.selects(), place.table);
        let text = [
            selects.as_bytes(),
            &self.rekeyed.condition,
            limit.as_bytes(),
            b" FOR UPDATE",
        ];
        let (mut rows, mut bytes) = (Vec::new(), self.bytes);
        let bytes_max = self.bytes_max;
        read(backend, &text.concat(), |row: Row| {
            let cells = row.iter().flatten();
            bytes += cells.map(|cell| cell.len() as u64).sum::<u64>();
            if bytes_max == 0 || bytes <= bytes_max {
                rows.push(row);
            }
        })
        .await?;
        self.bytes = bytes;
        self.rows += rows.len() as u64;
        let exceeds = |most: u64, now: u64| most > 0 && now > most;
        let limit = if exceeds(self.rows_max, self.rows) {
            format!("mysql-sharding_insert_max_rows allows {}", self.rows_max)
        } else if exceeds(self.bytes_max, self.bytes) {
            let megabytes = self.bytes_max >> 20;
            format!("mysql-sharding_insert_max_MB allows {megabytes}")
        } else {
            return Ok(Taken { layout, rows });
        };
        Err(refused(&format!(
            "more rows would move to another partition than may: {limit}; change fewer rows at once"
        )))
    }

    /// Refuses rows that other tables point to: they would go with them, or be left alone.
    async fn may_leave(&self, backend: &mut Backend, place: &Place) -> Result<(), Stopped> {
        let hex = |text: &str| {
            let digits = text.bytes().map(|byte| format!("{byte:02x}"));
            format!("_utf8mb4 0x{}", digits.collect::<String>())
        };
        let schema = match &*place.schema {
            "" => "DATABASE()".to_owned(),
            schema => hex(schema),
        };
        let text = format!(
            "SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = {schema} \
             AND REFERENCED_TABLE_SCHEMA = {schema} AND REFERENCED_TABLE_NAME = {} LIMIT 1",
            hex(&place.name)
        );
        let mut is_pointed_to = false;
        read(backend, text.as_bytes(), |_| is_pointed_to = true).await?;
        match is_pointed_to {
            false => Ok(()),
            true => Err(refused(
                "rows would move to another partition, and another table has a foreign key to them; DELETE the row and INSERT it anew",
            )),
        }
    }

    async fn layout(&self, backend: &mut Backend, table: &str) -> Result<Layout, Stopped> {
        let mut rows = Vec::new();
        let question = Layout::question(table);
        read(backend, question.as_bytes(), |row| rows.push(row)).await?;
        let layout = Layout::read(&rows, &Columns::All, None).map_err(|words| refused(&words))?;
        if !layout.is_ascii() && !self.speaks_utf8 {
            return Err(refused(
                "names in it are not ASCII, and rows that move are told them in UTF-8; SET NAMES utf8mb4 first",
            ));
        }
        Ok(layout.stored())
    }

    /// Writes rows where they belong.
    pub(crate) async fn put(&self, backend: &mut Backend, taken: &Taken) -> Result<(), Stopped> {
        let table = &self.rekeyed.to.table;
        backend.holds.add(Hold::Untold);
        tell(backend, BEFORE_COPIES.as_bytes()).await?;
        if self.layout(backend, table).await? != taken.layout {
            return Err(refused(
                "the tables of its partitions differ in their columns; make them alike",
            ));
        }
        let begin = taken.layout.inserts(table).into_bytes();
        let mut insert = begin.clone();
        for row in &taken.rows {
            if insert.len() > begin.len() {
                insert.push(b',');
            }
            taken.layout.write(row, &mut insert);
            if insert.len() >= WRITTEN_AT_ONCE {
                tell(backend, &insert).await?;
                insert.truncate(begin.len());
            }
        }
        if insert.len() > begin.len() {
            tell(backend, &insert).await?;
        }
        // What follows is written as the statement is.
        tell(backend, BEHIND_COPIES.as_bytes()).await.map(drop)
    }

    /// Removes rows from where they do not belong.
    pub(crate) async fn leave(
        &self,
        backend: &mut Backend,
        place: &Place,
        taken: &Taken,
    ) -> Result<(), Stopped> {
        let begin = format!("DELETE FROM {} WHERE ", place.table);
        let text = [begin.as_bytes(), &self.rekeyed.condition].concat();
        match tell(backend, &text).await? == taken.rows.len() as u64 {
            true => Ok(()),
            false => Err(refused(
                "rows that moved to another partition have not all left theirs; look for a trigger that keeps them",
            )),
        }
    }

    /// Looks whether all rows were carried that have got the key.
    pub(crate) fn has_carried(&self, wanted: u64) -> Result<(), Stopped> {
        if self.rows == wanted {
            return Ok(());
        }
        Err(refused(&format!(
            "{wanted} rows have got the key, and {} have it now; a trigger may have changed it; DELETE the rows and INSERT them anew",
            self.rows
        )))
    }
}

fn refused(words: &str) -> Stopped {
    Stopped::Said(not_supported(format!("HSCALE-1000: {words}")))
}

/// Says a statement without rows; how many rows it has changed.
async fn tell(backend: &mut Backend, text: &[u8]) -> Result<u64, Stopped> {
    let said = say(backend, text, None).await?;
    match refusal(&said) {
        None => Ok(said.response.affected_rows()),
        Some((_, complaint)) => Err(Stopped::Said(complaint)),
    }
}

/// Asks on a connection, and reads all rows of the answer.
async fn read(
    backend: &mut Backend,
    text: &[u8],
    mut each: impl FnMut(Row),
) -> Result<(), Stopped> {
    let (mut command, caps) = (Vec::with_capacity(text.len() + 16), backend.hello.caps);
    let mut next = 0;
    packet::append_with(&mut command, &mut next, |out| {
        wire::attributes::write_query(out, text, &Attributes::default(), caps);
    });
    backend.send(Chunk::from(command)).await?;
    let mut response = Response::expect(Expect::Query, caps).to_packet(next.wrapping_sub(1));
    let mut rows = RowStream::new(caps);
    loop {
        let chunk = backend.recv().await?;
        let has_ended = match response.follow(&chunk).map_err(broke)? {
            Follow::More => {
                rows.push(&chunk);
                false
            }
            Follow::Ended { used } => {
                rows.push(chunk.get(..used).unwrap_or_default());
                backend.ended(used, chunk.len());
                true
            }
        };
        if has_ended && let Some((_, complaint)) = error_of(&response) {
            return Err(Stopped::Said(complaint));
        }
        rows.describe().map_err(broke)?;
        while rows.has_row() {
            match rows.next_row().map_err(broke)? {
                Some(row) => each(row),
                None => break,
            }
        }
        if has_ended {
            return Ok(());
        }
    }
}
