//! Events: a header of 19 bytes, a body by its type, and a checksum where the log has them.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html>

use crate::gtids;
use gtid::{Gtid, Set};
use sql::Lexing;
use wire::Malformed;
use wire::read::Reader;

pub(crate) const HEADER_LEN: usize = 19;
/// Bytes of a checksum.
pub(crate) const CHECKSUM_LEN: usize = 4;
/// NO_BACKSLASH_ESCAPES in the mode of a session.
const NO_ESCAPES: u64 = 1 << 20;
/// A length in the header of rows, which counts itself.
const ROWS_V2_EXTRA: usize = 2;
/// Flags of a MariaDB's GTID: the transaction is a single event.
const STANDALONE: u8 = 1;

/// Types of events. Those from 160 on are MariaDB's.
mod types {
    pub(super) const QUERY: u8 = 2;
    pub(super) const ROTATE: u8 = 4;
    pub(super) const FORMAT: u8 = 15;
    pub(super) const XID: u8 = 16;
    pub(super) const EXECUTE_LOAD: u8 = 18;
    pub(super) const TABLE_MAP: u8 = 19;
    pub(super) const INCIDENT: u8 = 26;
    pub(super) const HEARTBEAT: u8 = 27;
    pub(super) const GTID: u8 = 33;
    pub(super) const ANONYMOUS: u8 = 34;
    pub(super) const PREVIOUS_GTIDS: u8 = 35;
    pub(super) const XA_PREPARE: u8 = 38;
    pub(super) const PARTIAL_UPDATE: u8 = 39;
    pub(super) const PAYLOAD: u8 = 40;
    pub(super) const HEARTBEAT_2: u8 = 41;
    pub(super) const TAGGED_GTID: u8 = 42;
    pub(super) const MARIADB_GTID: u8 = 162;
    pub(super) const GTID_LIST: u8 = 163;
    pub(super) const QUERY_PACKED: u8 = 165;
}

/// Content of an event, as far as anybody asks.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The events that follow, up to the next of these, end with a checksum or do not.
    Format {
        /// They do.
        has_checksums: bool,
    },
    /// The log goes on in this file. The name may have a checksum behind it.
    File(&'a [u8]),
    /// All transactions of the files before.
    Before(Set),
    /// A transaction begins.
    Begins {
        /// Its GTID; none if the server keeps none.
        gtid: Option<Gtid>,
        /// Whether it goes on to a commit; none if the next text tells.
        to_commit: Option<bool>,
    },
    /// A table that the events behind it change.
    Table(Table<'a>),
    /// Rows of one that were changed.
    Rows(Rows<'a>),
    /// A statement.
    Text(Text<'a>),
    /// A statement that is compressed, MariaDB's way.
    PackedText(Text<'a>),
    /// A transaction that is compressed, MySQL's way.
    Payload(&'a [u8]),
    /// The transaction is over; or prepared, for somebody else to end it.
    Commits,
    /// Something is missing in the log.
    Incident,
    /// Something that says nothing of transactions and tables.
    Other,
}

/// A table, by the number that events of rows have for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Table<'a> {
    /// Its number in this log.
    pub number: u64,
    /// Its schema.
    pub schema: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Types of its columns, and what is needed to read rows.
    pub columns: &'a [u8],
}

/// How rows were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// They are new.
    Insert,
    /// They were changed: each is there twice, before and after.
    Update,
    /// They are gone.
    Delete,
}

/// Rows that were changed. [`Rows::read`] has their values.
#[derive(Debug, PartialEq, Eq)]
pub struct Rows<'a> {
    /// How.
    pub change: Change,
    /// Number of their table.
    pub table: u64,
    /// Whether they are compressed, MariaDB's way.
    pub is_packed: bool,
    /// Whether of documents only parts are told, which no other row has.
    pub is_partial: bool,
    /// Columns and values, as they are.
    pub values: &'a [u8],
}

/// A statement.
#[derive(Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The schema of names that have none.
    pub schema: &'a [u8],
    /// Where its strings end.
    pub lexing: Lexing,
    /// The statement.
    pub sql: &'a [u8],
}

impl<'a> Event<'a> {
    /// Reads an event whose checksum is right, or cut off.
    pub(crate) fn read(kind: u8, body: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let r = &mut reader;
        let begins = |gtid, to_commit| Self::Begins { gtid, to_commit };
        Ok(match kind {
            types::FORMAT => Self::Format {
                has_checksums: has_checksums(body)?,
            },
            types::ROTATE => {
                let _position = r.u64()?;
                Self::File(r.rest())
            }
            types::PREVIOUS_GTIDS => Self::Before(gtids::set(r)?),
            types::GTID_LIST => Self::Before(gtids::list(r)?),
            types::GTID => begins(Some(gtids::mysql(r)?), None),
            types::TAGGED_GTID => begins(Some(gtids::tagged(r)?), None),
            types::ANONYMOUS => begins(None, None),
            types::MARIADB_GTID => {
                let gtid = gtids::mariadb(r)?;
                begins(Some(gtid), Some(r.u8()? & STANDALONE == 0))
            }
            types::TABLE_MAP => Self::Table(table(r)?),
            types::QUERY => Self::Text(text(r, 0)?),
            types::QUERY_PACKED => Self::PackedText(text(r, 0)?),
            // The number of its file, two places in the text, and what is done with duplicates.
            types::EXECUTE_LOAD => Self::Text(text(r, 13)?),
            types::XID | types::XA_PREPARE => Self::Commits,
            types::PAYLOAD => Self::Payload(body),
            types::INCIDENT => Self::Incident,
            _ => match rows(kind) {
                Some((change, is_second, is_packed)) => {
                    let rows = rows_of(r, change, is_second, is_packed)?;
                    Self::Rows(Rows {
                        is_partial: kind == types::PARTIAL_UPDATE,
                        ..rows
                    })
                }
                None => Self::Other,
            },
        })
    }
}

/// Whether an event of this type may have a checksum that the log's format does not tell: those that
/// a server makes up before it, or for nobody else.
pub(crate) const fn is_made_up(kind: u8) -> bool {
    matches!(
        kind,
        types::ROTATE | types::HEARTBEAT | types::HEARTBEAT_2 | types::FORMAT
    )
}

/// Whether an event says only that its log has nothing more: up to its end, and in the file that it
/// names.
pub(crate) const fn is_heartbeat(kind: u8) -> bool {
    kind == types::HEARTBEAT
}

/// <https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Format__description__event.html>
fn has_checksums(body: &[u8]) -> Result<bool, Malformed> {
    let version = Reader::new(body).u16()?;
    if version != 4 {
        return Err(Malformed::new("a log of a format that is not known"));
    }
    // Its own checksum is behind this byte in any case.
    match body.len().checked_sub(1 + CHECKSUM_LEN).map(|at| body[at]) {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(Malformed::new("a log has checksums that are not known")),
    }
}

fn table<'a>(r: &mut Reader<'a>) -> Result<Table<'a>, Malformed> {
    let number = number(r)?;
    let _flags = r.u16()?;
    let mut name = || -> Result<&'a [u8], Malformed> {
        let len = r.u8()?;
        let name = r.take(usize::from(len))?;
        let _zero = r.u8()?;
        Ok(name)
    };
    let (schema, name) = (name()?, name()?);
    Ok(Table {
        number,
        schema,
        name,
        columns: r.rest(),
    })
}

/// Reads six bytes.
fn number(r: &mut Reader<'_>) -> Result<u64, Malformed> {
    let (low, high) = (r.u32()?, r.u16()?);
    Ok(u64::from(high) << 32 | u64::from(low))
}

/// How rows are changed by an event of this type, whether its header is of the second version, and
/// whether it is compressed.
const fn rows(kind: u8) -> Option<(Change, bool, bool)> {
    Some(match kind {
        23 => (Change::Insert, false, false),
        24 => (Change::Update, false, false),
        25 => (Change::Delete, false, false),
        30 => (Change::Insert, true, false),
        // One of parts of documents.
        31 | types::PARTIAL_UPDATE => (Change::Update, true, false),
        32 => (Change::Delete, true, false),
        166 => (Change::Insert, false, true),
        167 => (Change::Update, false, true),
        168 => (Change::Delete, false, true),
        169 => (Change::Insert, true, true),
        170 => (Change::Update, true, true),
        171 => (Change::Delete, true, true),
        _ => return None,
    })
}

fn rows_of<'a>(
    r: &mut Reader<'a>,
    change: Change,
    is_second: bool,
    is_packed: bool,
) -> Result<Rows<'a>, Malformed> {
    let table = number(r)?;
    let _flags = r.u16()?;
    if is_second {
        let extra = usize::from(r.u16()?).checked_sub(ROWS_V2_EXTRA);
        r.take(extra.ok_or(Malformed::new("rows with a header that is too short"))?)?;
    }
    Ok(Rows {
        change,
        table,
        is_packed,
        is_partial: false,
        values: r.rest(),
    })
}

/// `more`: bytes of the header that this kind of statement has besides.
fn text<'a>(r: &mut Reader<'a>, more: usize) -> Result<Text<'a>, Malformed> {
    let (_thread, _seconds) = (r.u32()?, r.u32()?);
    let schema_len = r.u8()?;
    let _error = r.u16()?;
    let status_len = r.u16()?;
    r.take(more)?;
    let lexing = lexing(r.take(usize::from(status_len))?);
    let schema = r.take(usize::from(schema_len))?;
    let _zero = r.u8()?;
    Ok(Text {
        schema,
        lexing,
        sql: r.rest(),
    })
}

/// Where strings end, by the variables of a statement; the mode is the second at most. What its
/// character set does is not looked at: of a text that is not all ASCII nothing is sure.
fn lexing(status: &[u8]) -> Lexing {
    let mut r = Reader::new(status);
    let mut mode = || -> Result<u64, Malformed> {
        let mut kind = r.u8()?;
        if kind == 0 {
            r.take(4)?;
            kind = r.u8()?;
        }
        match kind {
            1 => r.u64(),
            _ => Err(Malformed::new("a statement without a mode")),
        }
    };
    match mode() {
        Ok(mode) if mode & NO_ESCAPES != 0 => Lexing::NoEscapes,
        Ok(_) => Lexing::Escapes,
        Err(_) => Lexing::Unsure { shifts: true },
    }
}
