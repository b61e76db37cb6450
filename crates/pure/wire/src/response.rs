//! Where a response ends: follows what a server sends, packet header by packet header, and never
//! copies a row.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_prepare.html>
//! <https://mariadb.com/kb/en/result-set-packets/>
//!
//! ```text
//! Query, Execute ─> First ─┬─ OK ──────────────────────────────┬─(more results)─> First
//!                          ├─ ERR ─> Ended                     └────────────────> Ended
//!                          ├─ 0xFB file name ─> Ended (LOCAL INFILE; resume() ─> First)
//!                          └─ count ─> Definitions ─> [EOF] ─> Rows ─┬─ row ─> Rows
//!                                                                    ├─ EOF or OK(0xFE) ─> as after OK above
//!                                                                    └─ ERR ─> Ended
//! Prepare ─> Prepared ─> Definitions of parameters ─> [EOF] ─> Definitions of columns ─> [EOF] ─> Ended
//! FieldList ─> Fields ─ EOF, OK(0xFE) or ERR ─> Ended        [EOF] only without CLIENT_DEPRECATE_EOF;
//!                                                             definitions may be left out, where caps allow it
//! Fetch, Binlog ─> Rows      Simple ─> one OK, EOF or ERR      Line ─> one packet of text or ERR
//! ```
//!
//! Chunks begin and end anywhere. Rows, definitions and other payloads are stepped over; only
//! packets that decide something are looked at, where they lie if they are whole, else gathered in
//! a buffer of at most [`TAKEN_LEN_MAX`].

use crate::caps::{self, Caps};
use crate::packet::{self, HEADER_LEN, MAX_PAYLOAD};
use crate::read::Reader;
use crate::{Malformed, definition, ok, status};

mod again;
mod recode;
mod report;
mod sift;
mod sum;

pub use again::{Again, Head, fuzz_again};
pub use recode::{Recode, fuzz_recode};
pub use sift::{Sift, Sifted};
pub use sum::{RowSum, Summed};

/// Command that was asked, and so the shape that its answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// COM_QUERY: any number of results.
    Query,
    /// COM_STMT_EXECUTE: the same, with binary rows.
    Execute,
    /// COM_STMT_PREPARE.
    Prepare,
    /// COM_FIELD_LIST.
    FieldList,
    /// One OK, EOF or ERR: COM_PING, COM_INIT_DB, COM_RESET_CONNECTION, COM_STMT_RESET,
    /// COM_SET_OPTION, COM_DEBUG, ...
    Simple,
    /// COM_STATISTICS: one packet of text.
    Line,
    /// COM_STMT_FETCH: rows without definitions.
    Fetch,
    /// COM_BINLOG_DUMP: events until the server has no more, which may be never.
    Binlog,
}

/// How far a response has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// All of the chunk belongs to the response, and more of it must come.
    More,
    /// The response ended.
    Ended {
        /// So many bytes of the chunk belonged to it; what follows is the answer to the next
        /// command.
        used: usize,
    },
}

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Well. Also what is said before the end is known.
    Ok,
    /// With an error, which may come after rows.
    Err {
        /// Error number.
        code: u16,
        /// SQLSTATE.
        state: [u8; 5],
        /// Words.
        message: &'a [u8],
    },
    /// The server wants this file of the client: relay what the client sends until its empty
    /// packet, then [`Response::resume`].
    LocalInfile(&'a [u8]),
}

/// The packet that ended a response without error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail<'a> {
    /// An OK packet with header 0x00: write it anew with [`ok::Ok::write`].
    Ok(ok::Ok<'a>),
    /// The end of rows, an EOF or an OK with header 0xFE: write it anew with [`ok::Ok::write_end`].
    End(ok::Ok<'a>),
}

/// Statement that a COM_STMT_PREPARE made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The id that the server gave it.
    pub id: u32,
    /// Columns of its result, 0 when it has none (or they are not known before it is executed).
    pub columns: u16,
    /// Its parameters.
    pub params: u16,
}

/// Where the statement id lies in a response to COM_STMT_PREPARE which is no error (its byte 4 is
/// 0): always here, because it is the first packet.
pub const PREPARED_ID_AT: std::ops::Range<usize> = 5..9;

/// Packets that decide something are never longer than this, or the response is refused: OK packets
/// with session changes can be some tens of KiB, everything else is far smaller.
pub const TAKEN_LEN_MAX: usize = 1 << 20;
/// So many bytes of session changes are kept of one response.
pub const CHANGES_LEN_MAX: usize = 1 << 20;
/// A result set with more columns is refused; servers stop at 4096.
pub const COLUMNS_MAX: u64 = 65535;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    First,
    Definitions(Then),
    DefinitionsEof(Then),
    Rows,
    Simple,
    Prepared,
    Fields,
    Line,
    Ended,
}

impl Next {
    fn of(expect: Expect) -> Self {
        match expect {
            Expect::Query | Expect::Execute => Self::First,
            Expect::Prepare => Self::Prepared,
            Expect::FieldList => Self::Fields,
            Expect::Simple => Self::Simple,
            Expect::Line => Self::Line,
            Expect::Fetch | Expect::Binlog => Self::Rows,
        }
    }
}

/// Packets that come after definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Rows,
    PreparedColumns,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Skip,
    Take,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    None,
    Ok,
    End,
    Eof,
    Err,
    Infile,
}

/// Meaning of a packet that decides something, for whoever writes it for a client with other caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// Packet that is the same for every client.
    AsIs,
    /// The number of columns, and whether their definitions follow.
    Columns,
    /// Statement that was prepared, and whether definitions follow.
    Prepared,
    /// The definition of a column or parameter, where it may have to be written anew.
    Definition,
    /// The EOF between definitions and what follows them.
    DefinitionsEof,
    /// An OK packet.
    Ok,
    /// The end of rows, in either form.
    End,
}

/// Somebody who looks on while a response is followed: [`Recode`], or nobody.
trait Watch {
    /// A packet begins that is stepped over; `held` is what of its payload had been gathered
    /// already.
    fn begin(&mut self, _len: usize, _seq: u8, _held: &[u8]) {}
    /// Payload of the packet that has begun.
    fn pass(&mut self, _bytes: &[u8]) {}
    /// Whole rows with their headers; the last may be cut, then `pass` brings the rest.
    fn rows(&mut self, _bytes: &[u8]) {}
    /// The packet that has begun is the last of definitions which no EOF follows, or there are
    /// none.
    fn definitions_end(&mut self) {}
    /// A packet that decides something. `at` is where its header begins in the chunk, if all of it
    /// lies there.
    fn take(&mut self, _taken: Taken, _seq: u8, _payload: &[u8], _at: Option<usize>) {}
}

impl Watch for () {}

/// Any sequence number may come next.
const ANY_SEQ: u16 = 0x100;

/// Follows one response. Keep it for the next one with [`Response::restart`]: its buffers are
/// reused.
#[derive(Debug)]
pub struct Response {
    caps: Caps,
    expect: Expect,
    next: Next,
    /// Bytes of the current packet's payload that are still to be stepped over.
    skip: usize, // <= MAX_PAYLOAD
    /// The current packet was full: the next one continues its payload.
    continued: bool,
    next_seq: u16, // <= ANY_SEQ
    definitions_left: u32,
    /// Definitions decide something, too: they are another's form.
    takes_definitions: bool,
    /// The beginning of a packet that the last chunk cut before it could be judged, or while it has
    /// to be whole.
    held: Vec<u8>, // <= HEADER_LEN + TAKEN_LEN_MAX
    form: Form,
    /// Payload of the last OK with words or changes, of the ERR, or of the file request.
    last: Vec<u8>, // <= TAKEN_LEN_MAX
    changes: Vec<u8>, // <= CHANGES_LEN_MAX
    tail_start: Option<usize>,
    prepared_id_at: Option<usize>,
    said: Said,
}

/// Sum of what packets have said so far.
#[derive(Debug, Clone, Copy, Default)]
struct Said {
    status: u16,
    status_known: bool,
    changes_lost: bool,
    warnings: u16,
    affected_last: u64,
    affected_rows: u64,
    insert_id_last: u64,
    insert_id: u64,
    rows: u64,
    columns: u32,
    results: u32,
    prepared: Option<Prepared>,
    /// The definitions of the last columns, or of what was prepared, are left out.
    bare: bool,
}

impl Response {
    /// Waits for the answer to a command that was sent on a connection with these caps, whatever
    /// number it begins with: see [`Response::to_packet`].
    pub fn expect(expect: Expect, caps: Caps) -> Self {
        Self {
            caps,
            expect,
            next: Next::of(expect),
            skip: 0,
            continued: false,
            next_seq: ANY_SEQ,
            definitions_left: 0,
            takes_definitions: false,
            held: Vec::new(),
            form: Form::None,
            last: Vec::new(),
            changes: Vec::new(),
            tail_start: None,
            prepared_id_at: None,
            said: Said::default(),
        }
    }

    /// The last packet of the command had this number, so the answer begins with the one after it.
    /// What begins otherwise is no answer: a server that closes a connection says so, unasked, with
    /// number 0.
    #[must_use]
    pub fn to_packet(mut self, sent: u8) -> Self {
        self.next_seq = u16::from(sent.wrapping_add(1));
        self
    }

    /// Takes the definitions of columns, where a client with these caps has them in another form.
    fn take_definitions_for(&mut self, client: Caps) {
        self.takes_definitions = definition::differs(self.caps, client);
    }

    /// Waits for the answer to another command; everything about the former one is forgotten.
    pub fn restart(&mut self, expect: Expect, caps: Caps) {
        self.caps = caps;
        self.expect = expect;
        self.next = Next::of(expect);
        self.skip = 0;
        self.continued = false;
        self.next_seq = ANY_SEQ;
        self.definitions_left = 0;
        self.takes_definitions = false;
        self.form = Form::None;
        [&mut self.held, &mut self.last, &mut self.changes]
            .into_iter()
            .for_each(empty);
        self.tail_start = None;
        self.prepared_id_at = None;
        self.said = Said::default();
    }

    /// After [`Outcome::LocalInfile`] and the client's file: waits for what the server says to it.
    pub fn resume(&mut self) {
        if self.form == Form::Infile {
            self.form = Form::None;
            self.last.clear();
            self.next = Next::First;
            // The client's packets were numbered in between.
            self.next_seq = ANY_SEQ;
        }
    }

    /// Follows the next bytes of the connection, cut anywhere. After an error the connection is of
    /// no more use.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<Follow, Malformed> {
        self.walk(bytes, &mut ())
    }

    /// Follows, and tells `watch` what it sees.
    fn walk(&mut self, bytes: &[u8], watch: &mut impl Watch) -> Result<Follow, Malformed> {
        self.tail_start = None;
        self.prepared_id_at = None;
        let mut at = 0; // <= bytes.len()
        loop {
            if self.skip > 0 {
                let n = self.skip.min(bytes.len() - at);
                watch.pass(&bytes[at..at + n]);
                at += n;
                self.skip -= n;
                if self.skip > 0 {
                    return Ok(Follow::More);
                }
            }
            if self.next == Next::Ended && !self.continued {
                return Ok(Follow::Ended { used: at });
            }
            if !self.held.is_empty() {
                match self.fill(&bytes[at..], watch)? {
                    Some(n) => at += n,
                    None => return Ok(Follow::More),
                }
                continue;
            }
            if self.next == Next::Rows && !self.continued {
                let from = at;
                at = self.skip_rows(bytes, at);
                watch.rows(&bytes[from..at]);
                if self.skip > 0 {
                    return Ok(Follow::More);
                }
            }
            let rest = &bytes[at..];
            let Some((h, payload)) = rest.split_first_chunk::<HEADER_LEN>() else {
                self.held.extend_from_slice(rest);
                return Ok(Follow::More);
            };
            let (len, seq) = packet::header(h);
            if self.continued {
                self.step_over(len, seq)?;
                watch.begin(len, seq, &[]);
                at += HEADER_LEN;
                continue;
            }
            let first = match payload.first() {
                Some(&first) if len > 0 => first,
                None if len > 0 => {
                    self.held.extend_from_slice(rest);
                    return Ok(Follow::More);
                }
                _ => return Err(Malformed::new("empty packet in a response")),
            };
            match self.judge(first, len)? {
                Verdict::Skip => {
                    self.step_over(len, seq)?;
                    watch.begin(len, seq, &[]);
                    self.skipped(watch);
                    at += HEADER_LEN;
                }
                Verdict::Take => {
                    let Some(payload) = payload.get(..len) else {
                        self.held.extend_from_slice(rest);
                        return Ok(Follow::More);
                    };
                    self.number(seq)?;
                    let taken = self.take(payload, Some(at))?;
                    watch.take(taken, seq, payload, Some(at));
                    self.taken(taken, watch);
                    at += HEADER_LEN + len;
                }
            }
        }
    }

    /// The loop that most bytes go through: rows that nothing is to be said about. Stops before any
    /// packet that is something else, and at the end of the chunk. Leaves in `skip` what a cut row
    /// still has to come.
    #[inline]
    fn skip_rows(&mut self, bytes: &[u8], mut at: usize) -> usize {
        let (mut rows, mut next_seq) = (self.said.rows, self.next_seq);
        while let Some(&[a, b, c, seq, first]) = bytes.get(at..).and_then(<[u8]>::first_chunk::<5>)
        {
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let in_order = next_seq == u16::from(seq) || next_seq == ANY_SEQ;
            if first >= ok::EOF_HEADER || len == 0 || len == MAX_PAYLOAD || !in_order {
                break;
            }
            next_seq = u16::from(seq.wrapping_add(1));
            rows += 1;
            let end = at + HEADER_LEN + len;
            if end > bytes.len() {
                self.skip = end - bytes.len();
                at = bytes.len();
                break;
            }
            at = end;
        }
        (self.said.rows, self.next_seq) = (rows, next_seq);
        at
    }

    /// Gives `held` what it needs from `bytes` and deals with the packet in it. `None` if all of
    /// `bytes` was not enough, else how many were taken.
    #[cold]
    #[inline(never)]
    fn fill(&mut self, bytes: &[u8], watch: &mut impl Watch) -> Result<Option<usize>, Malformed> {
        let mut used = 0;
        loop {
            let need = self.held_need()?;
            if self.held.len() >= need {
                break;
            }
            let n = (need - self.held.len()).min(bytes.len() - used);
            if n == 0 {
                return Ok(None);
            }
            self.held.extend_from_slice(&bytes[used..used + n]);
            used += n;
        }
        let mut held = std::mem::take(&mut self.held);
        let (h, payload) = held
            .split_first_chunk::<HEADER_LEN>()
            .expect("held_need asks for a header first");
        let (len, seq) = packet::header(h);
        if self.continued {
            self.step_over(len, seq)?;
            watch.begin(len, seq, &[]);
        } else if let Some(&first) = payload.first() {
            match self.judge(first, len)? {
                Verdict::Skip => {
                    self.step_over(len, seq)?;
                    self.skip -= payload.len();
                    watch.begin(len, seq, payload);
                    self.skipped(watch);
                }
                Verdict::Take => {
                    self.number(seq)?;
                    let taken = self.take(payload, None)?;
                    watch.take(taken, seq, payload, None);
                    self.taken(taken, watch);
                }
            }
        }
        held.clear();
        self.held = held;
        Ok(Some(used))
    }

    /// How many bytes `held` must have before anything can be done with it: a header, a first byte,
    /// or the whole packet.
    fn held_need(&self) -> Result<usize, Malformed> {
        let Some((h, payload)) = self.held.split_first_chunk::<HEADER_LEN>() else {
            return Ok(HEADER_LEN);
        };
        let (len, _) = packet::header(h);
        if self.continued {
            return Ok(HEADER_LEN);
        }
        match payload.first() {
            _ if len == 0 => Err(Malformed::new("empty packet in a response")),
            None => Ok(HEADER_LEN + 1),
            Some(&first) => Ok(match self.judge(first, len)? {
                Verdict::Skip => HEADER_LEN + 1,
                Verdict::Take => HEADER_LEN + len,
            }),
        }
    }

    /// Packets of one response are numbered without a gap; one that is not comes from another
    /// response, and nothing of this connection can be trusted any more.
    #[inline]
    fn number(&mut self, seq: u8) -> Result<(), Malformed> {
        if self.next_seq != u16::from(seq) && self.next_seq != ANY_SEQ {
            return Err(Malformed::new("packets out of order"));
        }
        self.next_seq = u16::from(seq.wrapping_add(1));
        Ok(())
    }

    #[inline]
    fn step_over(&mut self, len: usize, seq: u8) -> Result<(), Malformed> {
        self.number(seq)?;
        self.skip = len;
        self.continued = len == MAX_PAYLOAD;
        Ok(())
    }

    /// Is this a packet that decides something, or one to step over?
    #[inline]
    fn judge(&self, first: u8, len: usize) -> Result<Verdict, Malformed> {
        let take = match self.next {
            Next::First | Next::DefinitionsEof(_) | Next::Simple | Next::Prepared => true,
            Next::Definitions(_) => first == ok::ERR_HEADER || self.takes_definitions,
            Next::Line => first == ok::ERR_HEADER,
            Next::Fields => first >= ok::EOF_HEADER || self.takes_definitions,
            Next::Rows => match first {
                ok::ERR_HEADER => true,
                // A text row that begins with 0xFE has a value of 16 MiB or more there, so its
                // packet is full.
                ok::EOF_HEADER => len < MAX_PAYLOAD,
                _ => false,
            },
            Next::Ended => false,
        };
        match (take, len > TAKEN_LEN_MAX) {
            (false, _) => Ok(Verdict::Skip),
            (true, false) => Ok(Verdict::Take),
            (true, true) => Err(Malformed::new(
                "packet of a response is longer than it can be",
            )),
        }
    }

    /// The packet was one to step over: what comes after it?
    #[inline]
    fn skipped(&mut self, watch: &mut impl Watch) {
        match self.next {
            Next::Rows => self.said.rows += 1,
            Next::Definitions(then) => {
                self.definitions_left -= 1; // definitions() never enters this state with 0
                if self.definitions_left == 0 {
                    if caps::has(self.caps, caps::DEPRECATE_EOF) {
                        watch.definitions_end();
                        self.after_definitions(then);
                    } else {
                        self.next = Next::DefinitionsEof(then);
                    }
                }
            }
            Next::Fields => self.said.columns = self.said.columns.saturating_add(1),
            Next::Line => self.next = Next::Ended,
            _ => {}
        }
    }

    fn definitions(&mut self, count: u32, then: Then) {
        debug_assert!(count > 0);
        match (self.said.bare, caps::has(self.caps, caps::DEPRECATE_EOF)) {
            (false, _) => {
                self.definitions_left = count;
                self.next = Next::Definitions(then);
            }
            (true, true) => self.after_definitions(then),
            // Their EOF is there all the same.
            (true, false) => self.next = Next::DefinitionsEof(then),
        }
    }

    /// Goes on behind a packet that was taken. Where definitions are left out, no EOF may stand for
    /// their end.
    fn taken(&mut self, taken: Taken, watch: &mut impl Watch) {
        if taken == Taken::Definition {
            self.skipped(watch);
        } else if self.said.bare && caps::has(self.caps, caps::DEPRECATE_EOF) {
            let ends = match (taken, self.said.prepared) {
                (Taken::Columns, _) => 1,
                (Taken::Prepared, Some(p)) => u8::from(p.params > 0) + u8::from(p.columns > 0),
                _ => 0,
            };
            (0..ends).for_each(|_| watch.definitions_end());
        }
    }

    fn after_definitions(&mut self, then: Then) {
        match (then, self.said.prepared) {
            (Then::Rows, _) => self.next = Next::Rows,
            (Then::PreparedColumns, Some(p)) if p.columns > 0 => {
                self.definitions(p.columns.into(), Then::End)
            }
            _ => self.next = Next::Ended,
        }
    }

    /// A packet that decides something. `at` is where it begins in the chunk, if it lies there as a
    /// whole.
    fn take(&mut self, payload: &[u8], at: Option<usize>) -> Result<Taken, Malformed> {
        let Some(&first) = payload.first() else {
            return Err(Malformed::new("empty packet in a response"));
        };
        if first == ok::ERR_HEADER {
            // What is prepared cannot fail any more, and a client with CLIENT_DEPRECATE_EOF would
            // not expect a packet here.
            if matches!(
                self.next,
                Next::DefinitionsEof(Then::PreparedColumns | Then::End)
            ) {
                return Err(Malformed::new("error after a statement was prepared"));
            }
            ok::Err::read(payload)?;
            self.form = Form::Err;
            self.keep(payload);
            self.tail_start = at;
            self.next = Next::Ended;
            return Ok(Taken::AsIs);
        }
        match self.next {
            Next::First => self.take_first(first, payload, at),
            Next::Definitions(_) => Ok(Taken::Definition),
            Next::Fields if first < ok::EOF_HEADER => Ok(Taken::Definition),
            Next::DefinitionsEof(then) => {
                self.take_eof(payload)?;
                // A cursor was opened: its rows come by COM_STMT_FETCH.
                if then == Then::Rows
                    && self.expect == Expect::Execute
                    && self.said.status & status::CURSOR_EXISTS != 0
                {
                    self.finish(Form::Eof, at);
                    return Ok(Taken::End);
                }
                self.after_definitions(then);
                Ok(Taken::DefinitionsEof)
            }
            Next::Rows | Next::Fields | Next::Simple
                if first == ok::EOF_HEADER && !self.eof_is_ok(payload) =>
            {
                self.take_eof(payload)?;
                self.finish(Form::Eof, at);
                Ok(Taken::End)
            }
            Next::Rows | Next::Fields | Next::Simple
                if first == ok::OK_HEADER || first == ok::EOF_HEADER =>
            {
                self.take_ok(payload, at)
            }
            Next::Prepared if first == ok::OK_HEADER => self.take_prepared(payload, at),
            _ => Err(Malformed::new("packet that has no place in this response")),
        }
    }

    fn take_eof(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        if payload.len() >= 9 {
            return Err(Malformed::new("EOF packet that is too long for one"));
        }
        // MySQL says only before the row of OUT parameters that it is them, and that something
        // follows.
        let before = if self.next == Next::Rows {
            self.said.status
        } else {
            0
        };
        (self.said.warnings, self.said.status) = ok::read_eof(payload)?;
        if before & status::PS_OUT_PARAMS != 0 {
            self.said.status |= before & (status::PS_OUT_PARAMS | status::MORE_RESULTS);
        }
        self.said.status_known = true;
        (self.said.affected_last, self.said.insert_id_last) = (0, 0);
        self.last.clear();
        Ok(())
    }

    /// With CLIENT_DEPRECATE_EOF an 0xFE packet is an OK packet, of 7 bytes at least.
    /// COM_SET_OPTION and COM_DEBUG are answered with 5 bytes by servers that forgot them.
    fn eof_is_ok(&self, payload: &[u8]) -> bool {
        caps::has(self.caps, caps::DEPRECATE_EOF) && payload.len() >= 7
    }

    fn take_first(
        &mut self,
        first: u8,
        payload: &[u8],
        at: Option<usize>,
    ) -> Result<Taken, Malformed> {
        match first {
            ok::OK_HEADER => self.take_ok(payload, at),
            // MariaDB prepares LOAD DATA, too.
            0xFB if matches!(self.expect, Expect::Query | Expect::Execute) => {
                self.form = Form::Infile;
                self.keep(payload);
                self.tail_start = at;
                self.next = Next::Ended;
                Ok(Taken::AsIs)
            }
            _ => {
                let mut r = Reader::new(payload);
                let count = r.lenenc_int()?;
                self.said.bare = caps::tells_of_definitions(self.caps) && !follows(r.u8()?)?;
                if count == 0 || count > COLUMNS_MAX || !r.is_empty() {
                    return Err(Malformed::new("impossible number of columns"));
                }
                self.said.columns = count as u32;
                self.definitions(self.said.columns, Then::Rows);
                Ok(Taken::Columns)
            }
        }
    }

    fn take_ok(&mut self, payload: &[u8], at: Option<usize>) -> Result<Taken, Malformed> {
        let ok = ok::Ok::read(payload, self.caps)?;
        (
            self.said.affected_last,
            self.said.insert_id_last,
            self.said.status,
            self.said.warnings,
        ) = (ok.affected, ok.insert_id, ok.status, ok.warnings);
        self.said.status_known = true;
        self.said.affected_rows = self.said.affected_rows.saturating_add(ok.affected);
        if ok.insert_id != 0 {
            self.said.insert_id = ok.insert_id;
        }
        if !ok.changes.is_empty() {
            if self.changes.len() + ok.changes.len() <= CHANGES_LEN_MAX {
                self.changes.extend_from_slice(ok.changes);
            } else {
                self.said.changes_lost = true;
            }
        }
        if ok.info.is_empty() && ok.changes.is_empty() {
            self.last.clear();
        } else {
            self.keep(payload);
        }
        let (form, taken) = if payload[0] == ok::OK_HEADER {
            (Form::Ok, Taken::Ok)
        } else {
            (Form::End, Taken::End)
        };
        self.finish(form, at);
        Ok(taken)
    }

    /// Returns what ROW_COUNT() is after the response: -1 after rows and after an error.
    #[must_use]
    pub fn row_count(&self) -> i64 {
        match self.form {
            Form::Ok => i64::try_from(self.said.affected_last).unwrap_or(i64::MAX),
            _ => -1,
        }
    }

    /// A result is complete; the response may go on.
    fn finish(&mut self, form: Form, at: Option<usize>) {
        self.said.results = self.said.results.saturating_add(1);
        let more = matches!(self.expect, Expect::Query | Expect::Execute)
            && self.said.status & status::MORE_RESULTS != 0;
        if more {
            self.next = Next::First;
        } else {
            self.form = form;
            self.tail_start = at;
            self.next = Next::Ended;
        }
    }

    fn take_prepared(&mut self, payload: &[u8], at: Option<usize>) -> Result<Taken, Malformed> {
        let mut r = Reader::new(payload);
        r.u8()?;
        let prepared = Prepared {
            id: r.u32()?,
            columns: r.u16()?,
            params: r.u16()?,
        };
        // A filler and the warnings, which servers before 5.0 leave out, and what is behind them.
        let is_whole = r.left() >= 3;
        if is_whole {
            r.u8()?;
            self.said.warnings = r.u16()?;
        }
        self.said.bare =
            is_whole && caps::has(self.caps, caps::OPTIONAL_METADATA) && !follows(r.u8()?)?;
        self.prepared_id_at = at.map(|at| at + HEADER_LEN + 1);
        self.said.columns = prepared.columns.into();
        self.said.prepared = Some(prepared);
        self.said.results = 1;
        if prepared.params > 0 {
            self.definitions(prepared.params.into(), Then::PreparedColumns);
        } else {
            self.after_definitions(Then::PreparedColumns);
        }
        Ok(Taken::Prepared)
    }

    fn keep(&mut self, payload: &[u8]) {
        self.last.clear();
        self.last.extend_from_slice(payload);
    }
}

/// The byte that says whether definitions follow.
fn follows(byte: u8) -> Result<bool, Malformed> {
    match byte {
        0 | 1 => Ok(byte == 1),
        _ => Err(Malformed::new(
            "number of columns that does not say whether they are described",
        )),
    }
}

/// Empties a buffer, and gives its memory back if one large packet has blown it up.
fn empty(buffer: &mut Vec<u8>) {
    if buffer.capacity() > 4096 {
        *buffer = Vec::new();
    }
    buffer.clear();
}

/// Fuzz target: any bytes as any response, in one chunk and cut by the first bytes, end the same
/// way.
pub fn fuzz_response(data: &[u8]) {
    let [kind, cut, bytes @ ..] = data else {
        return;
    };
    let expect = [
        Expect::Query,
        Expect::Execute,
        Expect::Prepare,
        Expect::FieldList,
        Expect::Simple,
        Expect::Line,
        Expect::Fetch,
        Expect::Binlog,
    ][usize::from(kind & 7)];
    let mut caps = caps::PROTOCOL_41;
    if kind & 8 != 0 {
        caps |= caps::DEPRECATE_EOF;
    }
    if kind & 16 != 0 {
        caps |= caps::SESSION_TRACK;
    }
    if kind & 32 != 0 {
        caps |= if kind & 64 != 0 {
            caps::MARIADB_CACHE_METADATA
        } else {
            caps::OPTIONAL_METADATA
        };
    }
    let mut whole = Response::expect(expect, caps);
    let want = whole.follow(bytes);
    let mut pieces = Response::expect(expect, caps);
    let mut got = Ok(Follow::More);
    let mut at = 0;
    for chunk in bytes.chunks(usize::from(*cut) % 16 + 1) {
        got = pieces.follow(chunk);
        match got {
            Ok(Follow::More) => at += chunk.len(),
            Ok(Follow::Ended { used }) => {
                got = Ok(Follow::Ended { used: at + used });
                break;
            }
            Err(_) => break,
        }
    }
    match (want, got) {
        (Ok(want), Ok(got)) => {
            assert_eq!(want, got);
            assert_eq!(
                format!("{:?} {:?}", whole.outcome(), whole.tail()),
                format!("{:?} {:?}", pieces.outcome(), pieces.tail())
            );
            assert_eq!(
                (whole.rows(), whole.results(), whole.last_seq()),
                (pieces.rows(), pieces.results(), pieces.last_seq())
            );
        }
        (want, got) => assert_eq!(want.is_err(), got.is_err()),
    }
}
