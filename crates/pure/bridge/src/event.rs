//! A statement as the events log has it. Cores write it in ProxySQL's format 1, whichever the file
//! is to have; the log's thread reads it again.
//!
//! A record is a `u64` (little-endian): how many bytes follow. Then a byte, the kind; then
//! length-encoded integers and strings of the protocol, in the order of [`Event`]'s fields. The
//! server is there if a hostgroup is (`u64::MAX` is none), the statement's id if the kind has one.
//! ProxySQL counts the statement's id in the length where it is not written, too, so lengths of its
//! files may be too large.

use crate::Reply;
use wire::Malformed;
use wire::read::Reader;
use wire::write::Write as _;

/// Bytes before what the length counts.
const HEADER_LEN: usize = 8;
/// A length-encoded integer has no more.
const INT_LEN_MAX: usize = 9;
/// No statement is longer.
const RECORD_LEN_MAX: usize = 2 << 30;
/// The hostgroup of what no server was asked.
const NO_HOSTGROUP: u64 = u64::MAX;

/// Command that came from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// COM_QUERY.
    Query,
    /// COM_STMT_EXECUTE.
    Execute,
    /// COM_STMT_PREPARE.
    Prepare,
    /// Another of ProxySQL's: logins are in its audit log.
    Other(u8),
}

impl EventKind {
    const fn number(self) -> u8 {
        match self {
            Self::Query => 0,
            Self::Execute => 16,
            Self::Prepare => 17,
            Self::Other(number) => number,
        }
    }

    const fn of(number: u8) -> Self {
        match number {
            0 => Self::Query,
            16 => Self::Execute,
            17 => Self::Prepare,
            number => Self::Other(number),
        }
    }

    const fn has_statement_id(self) -> bool {
        matches!(self, Self::Execute | Self::Prepare)
    }

    /// As format 2 has it.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Query => "COM_QUERY".into(),
            Self::Execute => "COM_STMT_EXECUTE".into(),
            Self::Prepare => "COM_STMT_PREPARE".into(),
            Self::Other(number) => format!("event {number}"),
        }
    }
}

/// A statement that has been answered, or had to be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Kind of the command that came.
    pub kind: EventKind,
    /// Number of the session.
    pub session: u64,
    /// Who asked.
    pub user: &'a [u8],
    /// The schema of the session.
    pub schema: &'a [u8],
    /// Where he is: `address:port`.
    pub client: &'a [u8],
    /// Hostgroup and `address:port` of the server that was asked; none if none was.
    pub server: Option<(u64, &'a [u8])>,
    /// When it came, in microseconds since 1970.
    pub began_us: u64,
    /// When it had its answer.
    pub ended_us: u64,
    /// The client's id of a prepared statement; 0 for what is none.
    pub statement_id: u64,
    /// As the server said.
    pub rows_affected: u64,
    /// As the server said.
    pub insert_id: u64,
    /// Rows that the client was sent.
    pub rows_sent: u64,
    /// Hash of the digest; 0 if there is none.
    pub digest: u64,
    /// The statement.
    pub text: &'a [u8],
}

impl<'a> Event<'a> {
    /// Appends it as a record.
    pub fn write(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.u64(0);
        out.u8(self.kind.number());
        out.lenenc_int(self.session);
        out.lenenc_bytes(self.user);
        out.lenenc_bytes(self.schema);
        out.lenenc_bytes(self.client);
        match self.server {
            Some((hostgroup, server)) => {
                out.lenenc_int(hostgroup);
                out.lenenc_bytes(server);
            }
            None => out.lenenc_int(NO_HOSTGROUP),
        }
        out.lenenc_int(self.began_us);
        out.lenenc_int(self.ended_us);
        if self.kind.has_statement_id() {
            out.lenenc_int(self.statement_id);
        }
        for number in [
            self.rows_affected,
            self.insert_id,
            self.rows_sent,
            self.digest,
        ] {
            out.lenenc_int(number);
        }
        out.lenenc_bytes(self.text);
        let len = (out.len() - begin - HEADER_LEN) as u64;
        if let Some(at) = out.get_mut(begin..begin + HEADER_LEN) {
            at.copy_from_slice(&len.to_le_bytes());
        }
    }

    /// Whether it is about a prepared statement.
    #[must_use]
    pub const fn has_statement_id(&self) -> bool {
        self.kind.has_statement_id()
    }

    /// The first record of some bytes, and how long it is. None if it may go on behind them.
    pub fn read(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let mut reader = Reader::new(bytes);
        let Ok(said) = reader.u64() else {
            return Ok(None);
        };
        let body = reader.peek();
        let left = usize::try_from(said)
            .ok()
            .filter(|left| *left <= RECORD_LEN_MAX)
            .ok_or(Malformed::new("a record is too long to be one"))?;
        // ProxySQL's length may be too large by an integer, which is not missing then.
        if body.len() < left.saturating_sub(INT_LEN_MAX) {
            return Ok(None);
        }
        let mut reader = Reader::new(body.get(..left).unwrap_or(body));
        let event = match Self::body(&mut reader) {
            Ok(event) => event,
            Err(_) if body.len() < left => return Ok(None),
            Err(malformed) => return Err(malformed),
        };
        let read = body.len().min(left) - reader.left();
        if left - read > INT_LEN_MAX {
            return Err(Malformed::new("a record has more bytes than fields"));
        }
        Ok(Some((event, HEADER_LEN + read)))
    }

    fn body(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let kind = EventKind::of(reader.u8()?);
        let session = reader.lenenc_int()?;
        let (user, schema, client) = (
            reader.lenenc_bytes()?,
            reader.lenenc_bytes()?,
            reader.lenenc_bytes()?,
        );
        let server = match reader.lenenc_int()? {
            NO_HOSTGROUP => None,
            hostgroup => Some((hostgroup, reader.lenenc_bytes()?)),
        };
        let (began_us, ended_us) = (reader.lenenc_int()?, reader.lenenc_int()?);
        let statement_id = if kind.has_statement_id() {
            reader.lenenc_int()?
        } else {
            0
        };
        let (rows_affected, insert_id) = (reader.lenenc_int()?, reader.lenenc_int()?);
        let (rows_sent, digest) = (reader.lenenc_int()?, reader.lenenc_int()?);
        let text = reader.lenenc_bytes()?;
        Ok(Self {
            kind,
            session,
            user,
            schema,
            client,
            server,
            began_us,
            ended_us,
            statement_id,
            rows_affected,
            insert_id,
            rows_sent,
            digest,
            text,
        })
    }
}

/// Records of one core on their way to the events log.
pub struct Events {
    /// Whole records, one after the other.
    pub bytes: Vec<u8>,
    /// How many.
    pub records: u64,
    /// Called when they are written, or will not be.
    pub done: Reply<Fate>,
}

/// Fate of records that were handed over. Those that are neither written nor lost came when there
/// was no log any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fate {
    /// They are in files.
    pub written: u64,
    /// They should be, and never will.
    pub lost: u64,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} records in {} bytes", self.records, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: Event<'_> = Event {
        kind: EventKind::Query,
        session: 300,
        user: b"app",
        schema: b"shop",
        client: b"10.0.0.1:5000",
        server: Some((7, b"db1:3306")),
        began_us: 0x0006_0000_0000_0001,
        ended_us: 0x0006_0000_0000_0002,
        statement_id: 0,
        rows_affected: 1,
        insert_id: 0x01_0000,
        rows_sent: 251,
        digest: 0x1122_3344_5566_7788,
        text: b"INSERT INTO t VALUES (1)",
    };

    /// By hand, from the description of the format.
    fn query_by_hand() -> Vec<u8> {
        let mut body = vec![0];
        body.extend([0xfc, 0x2c, 0x01]);
        body.extend(b"\x03app\x04shop\x0d10.0.0.1:5000\x07\x08db1:3306");
        body.extend([0xfe, 1, 0, 0, 0, 0, 0, 6, 0]);
        body.extend([0xfe, 2, 0, 0, 0, 0, 0, 6, 0]);
        body.push(1);
        body.extend([0xfd, 0, 0, 1]);
        body.extend([0xfc, 251, 0]);
        body.extend([0xfe, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        body.extend(b"\x18INSERT INTO t VALUES (1)");
        let mut record = (body.len() as u64).to_le_bytes().to_vec();
        record.extend(body);
        record
    }

    #[test]
    fn a_record_is_byte_for_byte_what_the_format_says() {
        let mut out = b"before".to_vec();
        QUERY.write(&mut out);
        assert_eq!(out[6..], query_by_hand());
        assert_eq!(
            Event::read(&query_by_hand()),
            Ok(Some((QUERY, query_by_hand().len())))
        );
    }

    #[test]
    fn an_execution_has_an_id_and_what_no_server_was_asked_has_none() {
        let executed = Event {
            kind: EventKind::Execute,
            statement_id: 5,
            server: None,
            text: b"SELECT ?",
            ..QUERY
        };
        let mut out = Vec::new();
        executed.write(&mut out);
        let mut by_hand = vec![16, 0xfc, 0x2c, 0x01];
        by_hand.extend(b"\x03app\x04shop\x0d10.0.0.1:5000");
        by_hand.extend([0xfe, 255, 255, 255, 255, 255, 255, 255, 255]);
        by_hand.extend([0xfe, 1, 0, 0, 0, 0, 0, 6, 0, 0xfe, 2, 0, 0, 0, 0, 0, 6, 0]);
        by_hand.push(5);
        by_hand.extend([
            1, 0xfd, 0, 0, 1, 0xfc, 251, 0, 0xfe, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
        ]);
        by_hand.extend(b"\x08SELECT ?");
        assert_eq!(out[..8], (by_hand.len() as u64).to_le_bytes());
        assert_eq!(out[8..], by_hand);
        assert_eq!(Event::read(&out), Ok(Some((executed, out.len()))));
    }

    #[test]
    fn proxysqls_length_may_count_an_id_that_is_not_there() {
        let mut record = query_by_hand();
        record[0] += 1;
        let len = record.len();
        // At the end of a file, and before another record.
        assert_eq!(Event::read(&record), Ok(Some((QUERY, len))));
        record.extend(query_by_hand());
        assert_eq!(Event::read(&record), Ok(Some((QUERY, len))));
    }

    #[test]
    fn a_record_that_is_not_whole_is_none_and_nonsense_is_an_error() {
        let whole = query_by_hand();
        for end in 0..whole.len() {
            assert_eq!(Event::read(&whole[..end]), Ok(None), "{end}");
        }
        let mut long = whole.clone();
        long[0] += 20;
        long.extend([0; 40]);
        assert!(Event::read(&long).is_err());
        let mut short = whole;
        short[0] -= 10;
        assert!(Event::read(&short).is_err());
        assert!(Event::read(&[0xff; 8]).is_err());
    }
}
