//! A response written anew for a client whose caps differ from those of the backend: with or
//! without CLIENT_DEPRECATE_EOF and CLIENT_SESSION_TRACK. So all backend connections can have both,
//! whatever their clients have. And with the byte that says whether the definitions of columns
//! follow, for clients that expect it. And without MariaDB's extended types, for clients that did
//! not ask for them ([`definition`]).
//!
//! Rows are copied, not read: only their sequence numbers change, since an EOF more or less before
//! them moves all that follow.
//!
//! An EOF before rows says the warnings of the statement if its end came in the same chunk, else 0.
//! The flags of an EOF before rows are those of the connection before the command, because the
//! server says its own only behind the rows. For a CALL that is not enough: the flags before the
//! row of OUT parameters tell a client that it is them. So [`Recode::of_a_call`] keeps back what it
//! writes until it is known whether a second row follows.
//!
//! Clients with MARIADB_CLIENT_CACHE_METADATA remember what they were told of a statement's
//! columns. So [`Recode::spare`] keeps the definitions back until all of them are here, and leaves
//! them out if they are what the client was told last.

use super::{Expect, Follow, Response, Taken, Watch};
use crate::caps::{self, Caps};
use crate::outline::Outline;
use crate::packet::{self, HEADER_LEN, MAX_PAYLOAD};
use crate::track::Wish;
use crate::{Malformed, definition, ok, status};
use std::sync::Arc;

/// Follows one response and writes it for the client as it comes.
#[derive(Debug)]
pub struct Recode {
    response: Response,
    server: Caps,
    client: Caps,
    /// Number that is added to the server's sequence numbers.
    shift: u8,
    /// Number of the packet that was written last.
    last_seq: u8,
    /// The packet being copied is full: the next one continues it.
    full: bool,
    /// An EOF is due before the next packet.
    eof_due: bool,
    /// SERVER_STATUS_* flags of such an EOF.
    status: u16,
    /// Warnings of what was prepared: each EOF of the answer says them again.
    prepared_warnings: u16,
    /// SERVER_STATUS_* flags that every result has besides its own.
    more: u16,
    /// Columns of what is executed, as the client knows them, until the first result has come.
    known: Option<u32>,
    /// SERVER_STATUS_METADATA_CHANGED, if they are others now.
    changed: u16,
    /// Insert id of an OK that has changed rows, in place of the server's; 0 for the server's.
    insert_id: u64,
    /// Which session changes the client is told; all if `None`.
    wish: Option<Arc<Wish>>,
    /// Results are those of a CALL: each is followed by something, and one of a single row may be
    /// the OUT parameters.
    call: bool,
    /// SERVER_PS_OUT_PARAMS and what comes with it, of the server's EOF before the rows: MySQL's
    /// EOF behind them does not say so again.
    out_params: u16,
    /// Bytes that are kept back: from an EOF on whose flags are not known, or from a number of
    /// columns on whose definitions are not all here.
    kept: Vec<u8>, // <= KEPT_LEN_MAX and one chunk
    /// Columns of what is executed, as the client remembers them, and whether it needs not be told
    /// the same again.
    spare: Option<Spare>,
    /// Where in what is written the flags of that EOF are, and how many rows there were before it.
    open: Option<Open>,
}

/// Columns that the client remembers.
#[derive(Debug, Clone, Copy)]
struct Spare {
    told: Option<Outline>,
    may: bool,
    /// Results whose columns have begun.
    results: u8,
    /// Where in what is written the packet begins whose definitions are kept back.
    at: Option<usize>,
    /// The last of them has begun.
    last: bool,
}

/// An EOF before rows whose flags are not known yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Where its packet begins.
    at: usize,
    /// Rows that have begun behind it.
    rows: u8,
}

/// So much is kept back of a result of a CALL; a longer row goes without SERVER_PS_OUT_PARAMS
/// before it.
const KEPT_LEN_MAX: usize = MAX_PAYLOAD;
/// Longer definitions are said again each time.
const DEFINITIONS_LEN_MAX: usize = 1 << 20;
/// Flags that the row of OUT parameters has.
const OUT_PARAMS: u16 = status::PS_OUT_PARAMS | status::MORE_RESULTS;
/// Where the number of warnings is in the packet of an EOF.
const EOF_WARNINGS: std::ops::Range<usize> = HEADER_LEN + 1..HEADER_LEN + 3;
/// Where the flags are in the packet of an EOF.
const EOF_FLAGS: std::ops::Range<usize> = HEADER_LEN + 3..HEADER_LEN + 5;
/// Where the number of warnings is in what COM_STMT_PREPARE is answered with first.
const PREPARED_WARNINGS: std::ops::Range<usize> = 10..12;
/// Length of what COM_STMT_PREPARE is answered with first, without the byte that says whether
/// definitions follow.
const PREPARED_LEN: usize = 12;

impl Recode {
    /// Waits for the answer to a command, as [`Response::expect`]. `status`: the connection's flags
    /// before the command, for an EOF that the server does not send; the flags after the command
    /// come too late for it.
    pub fn expect(expect: Expect, server: Caps, client: Caps, status: u16) -> Self {
        let mut response = Response::expect(expect, server);
        response.take_definitions_for(client);
        Self {
            response,
            server,
            client,
            shift: 0,
            last_seq: 0,
            full: false,
            eof_due: false,
            status,
            prepared_warnings: 0,
            more: 0,
            known: None,
            changed: 0,
            insert_id: 0,
            wish: None,
            call: false,
            out_params: 0,
            kept: Vec::new(),
            spare: None,
            open: None,
        }
    }

    /// As [`Response::to_packet`].
    #[must_use]
    pub fn to_packet(mut self, sent: u8) -> Self {
        self.response = self.response.to_packet(sent);
        self
    }

    /// The client's packet numbers are `sent` ahead of the server's, wrapping: the response is one
    /// of several to one command, or what the client sent took other packets than what the server
    /// was sent. If `more`, another response follows.
    #[must_use]
    pub fn after(mut self, sent: u8, more: bool) -> Self {
        (self.shift, self.last_seq) = (sent, sent);
        self.more = if more { status::MORE_RESULTS } else { 0 };
        self.status |= self.more;
        self
    }

    /// Every flag that the client is told has these SERVER_STATUS_* as well: they are of a transaction
    /// on another connection, of which this server knows nothing. After [`Recode::after`].
    #[must_use]
    pub fn besides(mut self, flags: u16) -> Self {
        self.more |= flags;
        self.status |= flags;
        self
    }

    /// An OK that has changed rows has this insert id: the number of the first row that was numbered
    /// here, and not by the server.
    pub fn numbering(&mut self, first: u64) {
        self.insert_id = first;
    }

    /// The client is told no other session changes than these.
    #[must_use]
    pub fn telling(mut self, wish: Option<Arc<Wish>>) -> Self {
        self.wish = wish;
        self
    }

    /// The client knows of so many columns of what is executed: with another number of them it is
    /// told so (SERVER_STATUS_METADATA_CHANGED).
    pub fn knowing(&mut self, columns: u16) {
        self.known = Some(columns.into());
    }

    /// The client remembers this of the columns of what is executed, which is no CALL. If `may`,
    /// the same is not said again.
    pub fn spare(&mut self, told: Option<Outline>, may: bool) {
        let executed = self.response.expect == Expect::Execute
            && caps::has(self.client, caps::MARIADB_CACHE_METADATA);
        self.spare = executed.then_some(Spare {
            told,
            may,
            results: 0,
            at: None,
            last: false,
        });
    }

    /// Returns what the client remembers now of the columns of what is executed.
    pub fn told(&self) -> Option<Outline> {
        self.spare.and_then(|spare| spare.told)
    }

    /// Notes that what was asked is a CALL, if it is run.
    pub fn of_a_call(&mut self) {
        self.call = matches!(self.response.expect, Expect::Query | Expect::Execute);
    }

    /// True if a client with these caps needs it; if not, bytes can be passed on as they are.
    pub const fn is_needed(server: Caps, client: Caps) -> bool {
        (server ^ client) & (caps::DEPRECATE_EOF | caps::SESSION_TRACK) != 0
            || definition::differs(server, client)
            || caps::tells_of_definitions(server) != caps::tells_of_definitions(client)
    }

    /// Follows the next bytes of the connection and appends what the client is to get for them.
    /// After an error neither connection is of any more use.
    pub fn follow(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Follow, Malformed> {
        let Self {
            response,
            server,
            client,
            shift,
            last_seq,
            full,
            eof_due,
            status,
            prepared_warnings,
            more,
            known,
            changed,
            insert_id,
            wish,
            call,
            out_params,
            kept,
            spare,
            open,
        } = self;
        let back = open
            .as_mut()
            .map(|open| &mut open.at)
            .or_else(|| spare.as_mut()?.at.as_mut());
        if let Some(back) = back {
            *back = out.len();
            if out.is_empty() {
                std::mem::swap(out, kept);
            } else {
                out.append(kept);
            }
        }
        let executes = matches!(response.expect, Expect::Execute);
        let wish = wish.as_deref();
        let (server, client, status, more, call) = (*server, *client, *status, *more, *call);
        let mut copy = Copy {
            out,
            server,
            client,
            executes,
            shift,
            last_seq,
            full,
            eof_due,
            status,
            prepared_warnings,
            more,
            known,
            changed,
            insert_id: *insert_id,
            wish,
            call,
            out_params,
            spare,
            open,
            eof_at: None,
        };
        let followed = response.walk(bytes, &mut copy)?;
        if matches!(followed, Follow::Ended { .. }) {
            copy.definitions_are_here();
            copy.eof_if_due();
            copy.close_if(|_, _| true);
        }
        copy.close_if(|_, len| len > KEPT_LEN_MAX);
        copy.define_if_long();
        match open.map(|open| open.at).or_else(|| spare.as_ref()?.at) {
            Some(0) => std::mem::swap(out, kept),
            Some(at) => *kept = out.split_off(at),
            None => {}
        }
        if response.is_bare() && !caps::tells_of_definitions(client) {
            return Err(Malformed::new(
                "columns without definitions, for a client that needs them",
            ));
        }
        Ok(followed)
    }

    /// Returns what the response said; its positions are those of the server's bytes, and its last
    /// sequence number is the server's.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Number of the last packet that the client was sent.
    pub fn last_seq(&self) -> u8 {
        self.last_seq
    }

    /// As [`Response::resume`]. The packets of the file have to be numbered for the server: see
    /// [`crate::infile`].
    pub fn resume(&mut self) {
        self.response.resume();
    }
}

/// [`Recode`] while it writes.
struct Copy<'a> {
    out: &'a mut Vec<u8>,
    server: Caps,
    client: Caps,
    /// Whether the response answers an execution: a cursor may be opened.
    executes: bool,
    shift: &'a mut u8,
    last_seq: &'a mut u8,
    full: &'a mut bool,
    eof_due: &'a mut bool,
    status: u16,
    prepared_warnings: &'a mut u16,
    more: u16,
    known: &'a mut Option<u32>,
    changed: &'a mut u16,
    insert_id: u64,
    wish: Option<&'a Wish>,
    call: bool,
    out_params: &'a mut u16,
    spare: &'a mut Option<Spare>,
    open: &'a mut Option<Open>,
    /// Where the EOF before rows was written, if that was in this chunk.
    eof_at: Option<usize>,
}

impl Copy<'_> {
    fn packet(&mut self, mut seq: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        *self.last_seq = seq;
        packet::append_with(self.out, &mut seq, fill);
    }

    /// Reads what an OK or EOF said; [`Response::take`] has read it before, so it can be read.
    fn said<'p>(&self, payload: &'p [u8]) -> ok::Ok<'p> {
        let said = match ok::Ok::read(payload, self.server) {
            Ok(ok) if payload.len() >= 7 => ok,
            _ => {
                let (warnings, status) = ok::read_eof(payload).unwrap_or_default();
                ok::Ok {
                    warnings,
                    status,
                    ..ok::Ok::default()
                }
            }
        };
        let insert_id = match self.insert_id {
            first if first > 0 && said.affected > 0 => first,
            _ => said.insert_id,
        };
        ok::Ok {
            status: said.status | self.more | *self.changed,
            insert_id,
            ..said
        }
    }

    /// The number of columns, for a client that may want to hear whether their definitions follow.
    fn columns(&mut self, payload: &[u8], seq: u8) {
        let (count, follow) = match payload.split_last() {
            Some((follow, count)) if caps::tells_of_definitions(self.server) => (count, *follow),
            _ => (payload, 1),
        };
        if let Some(known) = self.known.take()
            && crate::outline::columns(payload, self.server)
                .is_ok_and(|(columns, _)| columns != u64::from(known))
        {
            *self.changed = status::METADATA_CHANGED;
        }
        if let Some(spare) = self.spare {
            spare.results = spare.results.saturating_add(1);
            // Of several results nobody knows which one the client remembers.
            (spare.at, spare.told) = if spare.results == 1 {
                (Some(self.out.len()), spare.told)
            } else {
                (None, None)
            };
        }
        let tells = caps::tells_of_definitions(self.client);
        self.packet(seq, |o| {
            o.extend_from_slice(count);
            o.extend(tells.then_some(follow));
        });
    }

    /// Writes what was prepared, for a client that may want to hear whether definitions follow.
    fn prepared(&mut self, payload: &[u8], seq: u8) {
        let follow = if caps::has(self.server, caps::OPTIONAL_METADATA) {
            payload.get(PREPARED_LEN).copied()
        } else {
            None
        };
        let tells = caps::has(self.client, caps::OPTIONAL_METADATA);
        if let Some(&[low, high]) = payload.get(PREPARED_WARNINGS) {
            *self.prepared_warnings = u16::from_le_bytes([low, high]);
        }
        self.packet(seq, |o| {
            let from = o.len();
            o.extend_from_slice(&payload[..payload.len().min(PREPARED_LEN)]);
            if tells {
                o.resize(from + PREPARED_LEN, 0);
                o.push(follow.unwrap_or(1));
            }
        });
    }

    /// No more definitions come: those that were kept back are left out, if the client remembers
    /// them.
    fn definitions_are_here(&mut self) {
        let Some(spare) = self.spare else { return };
        spare.last = false;
        let Some(at) = spare.at.take() else { return };
        let bytes = &self.out[at..];
        let Some((len, _)) = packet::whole(bytes) else {
            return;
        };
        let (first, definitions) = bytes.split_at(HEADER_LEN + len);
        let columns = crate::outline::columns(&first[HEADER_LEN..], self.client)
            .map_or(0, |(columns, _)| columns as u32);
        let outline = Outline::of(definitions, columns);
        if spare.may && outline.is_some() && outline == spare.told {
            let end = at + first.len();
            self.out.truncate(end);
            self.out[end - 1] = 0;
            *self.shift = self.shift.wrapping_sub(columns as u8);
            *self.last_seq = self.last_seq.wrapping_sub(columns as u8);
        }
        spare.told = outline;
    }

    /// Keeps no definitions back that are very long.
    fn define_if_long(&mut self) {
        if let Some(spare) = self.spare
            && spare
                .at
                .is_some_and(|at| self.out.len() - at > DEFINITIONS_LEN_MAX)
        {
            (spare.at, spare.told) = (None, None);
        }
    }

    /// The EOF that the client wants and the server did not send. It waits for the next packet,
    /// because a cursor has only one.
    fn eof_if_due(&mut self) {
        if std::mem::take(self.eof_due) {
            *self.shift = self.shift.wrapping_add(1);
            // Behind each result of a CALL there is another, if only its OK.
            let flags = self.status | *self.changed;
            let status = flags | if self.call { status::MORE_RESULTS } else { 0 };
            self.eof_at = Some(self.out.len());
            *self.open = self.call.then_some(Open {
                at: self.out.len(),
                rows: 0,
            });
            let warnings = *self.prepared_warnings;
            self.packet(self.last_seq.wrapping_add(1), |o| {
                ok::write_eof(o, warnings, status)
            });
        }
    }

    /// A row begins: with the second one the result is not the OUT parameters.
    fn row(&mut self) {
        if let Some(open) = self.open {
            open.rows += 1;
        }
        self.close_if(|rows, _| rows > 1);
    }

    /// Keeps nothing back any more if so; `if_so` gets the rows, and the bytes that are kept.
    fn close_if(&mut self, if_so: impl FnOnce(u8, usize) -> bool) {
        if self
            .open
            .is_some_and(|open| if_so(open.rows, self.out.len() - open.at))
        {
            *self.open = None;
        }
    }

    /// The rows of an execution are over: where the EOF before them is still here, the warnings of
    /// the statement are said there, too. Programs with MariaDB's library read them there. Answers
    /// to a text have 0, as servers have it where rows make the warnings.
    fn warn_early(&mut self, warnings: u16) {
        let early = self.eof_at.take();
        if !self.executes {
            return;
        }
        let at = self.open.map(|open| open.at).or(early);
        if let Some(said) = at
            .and_then(|at| self.out.get_mut(at..))
            .and_then(|packet| packet.get_mut(EOF_WARNINGS))
        {
            said.copy_from_slice(&warnings.to_le_bytes());
        }
    }

    /// The rows are over, with these flags behind them: now those before them are known.
    fn close(&mut self, behind: u16) {
        let Some(open) = self.open.take() else { return };
        if let Some(flags) = self
            .out
            .get_mut(open.at..)
            .and_then(|packet| packet.get_mut(EOF_FLAGS))
        {
            flags.copy_from_slice(&(behind & !status::SESSION_STATE_CHANGED).to_le_bytes());
        }
    }
}

impl Watch for Copy<'_> {
    fn begin(&mut self, len: usize, seq: u8, held: &[u8]) {
        if !*self.full {
            if self.spare.is_some_and(|spare| spare.last) {
                self.definitions_are_here();
            }
            self.eof_if_due();
            self.row();
        }
        *self.full = len == MAX_PAYLOAD;
        *self.last_seq = seq.wrapping_add(*self.shift);
        self.out
            .extend_from_slice(&packet::make_header(len, *self.last_seq));
        self.out.extend_from_slice(held);
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn rows(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.definitions_are_here();
        self.eof_if_due();
        let mut at = self.out.len();
        let mut rows = 0u32;
        self.out.extend_from_slice(bytes);
        while let Some(h) = self
            .out
            .get_mut(at..)
            .and_then(|o| o.first_chunk_mut::<HEADER_LEN>())
        {
            let (len, seq) = packet::header(h);
            *self.last_seq = seq.wrapping_add(*self.shift);
            h[3] = *self.last_seq;
            at += HEADER_LEN + len;
            rows += 1;
        }
        (0..rows.min(2)).for_each(|_| self.row());
    }

    fn definitions_end(&mut self) {
        // Where nothing stands between two of them.
        self.eof_if_due();
        if let Some(spare) = self.spare {
            spare.last = true;
        }
        *self.eof_due = !caps::has(self.client, caps::DEPRECATE_EOF);
    }

    fn take(&mut self, taken: Taken, seq: u8, payload: &[u8], _: Option<usize>) {
        if taken == Taken::Definition {
            self.eof_if_due();
            let (server, client) = (self.server, self.client);
            return self.packet(seq.wrapping_add(*self.shift), |out| {
                definition::write(out, payload, server, client);
            });
        }
        let ok = match taken {
            Taken::AsIs | Taken::Columns | Taken::Prepared | Taken::Definition => ok::Ok::default(),
            Taken::DefinitionsEof | Taken::Ok | Taken::End => self.said(payload),
        };
        let wished = self
            .wish
            .filter(|_| !ok.changes.is_empty() && caps::has(self.client, caps::SESSION_TRACK));
        let wished = wished.map(|wish| wish.of(ok.changes));
        let ok = wished
            .as_ref()
            .map_or(ok, |changes| ok.with_changes(changes));
        if taken == Taken::End && self.executes && ok.status & status::CURSOR_EXISTS != 0 {
            *self.eof_due = false;
        }
        self.definitions_are_here();
        self.eof_if_due();
        let mut ok = ok;
        let out_params = std::mem::take(self.out_params);
        if taken == Taken::DefinitionsEof && ok.status & status::PS_OUT_PARAMS != 0 {
            *self.out_params = ok.status & OUT_PARAMS;
        }
        if taken == Taken::End {
            ok.status |= out_params;
            self.warn_early(ok.warnings);
            self.close(ok.status);
            // MySQL takes them away behind the row, MariaDB does not.
            let of_mysql = caps::has(self.server, caps::LONG_PASSWORD);
            if ok.status & status::PS_OUT_PARAMS != 0
                && of_mysql
                && !caps::has(self.client, caps::DEPRECATE_EOF)
            {
                ok.status &= !OUT_PARAMS;
            }
        }
        *self.open = None;
        let client = self.client;
        let out_seq = seq.wrapping_add(*self.shift);
        match taken {
            Taken::DefinitionsEof if caps::has(client, caps::DEPRECATE_EOF) => {
                *self.shift = self.shift.wrapping_sub(1)
            }
            Taken::DefinitionsEof => {
                self.packet(out_seq, |o| ok::write_eof(o, ok.warnings, ok.status))
            }
            Taken::AsIs | Taken::Definition => {
                self.packet(out_seq, |o| o.extend_from_slice(payload))
            }
            Taken::Columns => self.columns(payload, out_seq),
            Taken::Prepared => self.prepared(payload, out_seq),
            Taken::Ok => self.packet(out_seq, |o| ok.write(o, client)),
            Taken::End => self.packet(out_seq, |o| ok.write_end(o, client)),
        }
    }
}

/// Fuzz target: a response that can be followed, written for a client with any other caps, is one
/// that can be followed with those, and says the same. The first byte chooses kind and caps, the
/// second the chunks.
pub fn fuzz_recode(data: &[u8]) {
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
    ][usize::from(kind & 7) % 7];
    let with = |eof: u8, track: u8| {
        caps::PROTOCOL_41
            | if kind & eof != 0 {
                caps::DEPRECATE_EOF
            } else {
                0
            }
            | if kind & track != 0 {
                caps::SESSION_TRACK
            } else {
                0
            }
    };
    let byte = |bit: u8| {
        if cut & bit != 0 {
            caps::OPTIONAL_METADATA
        } else {
            0
        }
    };
    let types = |set: bool| if set { caps::MARIADB_EXTENDED_TYPES } else { 0 };
    let (server, client) = (
        with(8, 16) | byte(64) | types(cut & 2 != 0),
        with(32, 64) | byte(128) | types(cut & 4 != 0),
    );
    let mut recode = Recode::expect(expect, server, client, status::AUTOCOMMIT);
    if kind & 128 != 0 {
        recode.of_a_call();
    }
    let mut out = Vec::new();
    for chunk in bytes.chunks(usize::from(*cut) % 64 + 1) {
        match recode.follow(chunk, &mut out) {
            Ok(Follow::More) => {}
            Ok(Follow::Ended { .. }) => break,
            Err(_) => return,
        }
    }
    if !recode.response().is_ended() {
        return;
    }
    let mut again = Response::expect(expect, client);
    let end = again
        .follow(&out)
        .expect("what was written for the client is well formed");
    assert_eq!(end, Follow::Ended { used: out.len() });
    let first = recode.response();
    assert_eq!(
        format!("{:?}", again.outcome()),
        format!("{:?}", first.outcome())
    );
    assert_eq!(
        (
            again.rows(),
            again.columns(),
            again.results(),
            again.prepared(),
            again.last_seq()
        ),
        (
            first.rows(),
            first.columns(),
            first.results(),
            first.prepared(),
            recode.last_seq()
        )
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};

    const NEW: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;
    const OLD: Caps = caps::PROTOCOL_41;
    const BYTES: [Caps; 3] = [0, caps::OPTIONAL_METADATA, caps::MARIADB_CACHE_METADATA];

    /// Caps of a server and a client, with every difference in EOFs and types.
    fn forms() -> impl Iterator<Item = (Caps, Caps)> {
        let types = [0, caps::MARIADB_EXTENDED_TYPES];
        let each = move |eofs| types.map(|types| eofs | types);
        let all = move || [NEW, OLD].into_iter().flat_map(each);
        all().flat_map(move |server| all().map(move |client| (server, client)))
    }

    /// Two columns and two rows; `bare`: without their definitions.
    fn result(caps: Caps, names: &[&str], bare: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 0, caps, 2);
        if bare {
            writer = writer.bare();
        }
        writer.columns(
            &names
                .iter()
                .map(|name| Column::text(*name))
                .collect::<Vec<_>>(),
        );
        for row in ["x", "yz"] {
            writer.text_row(names.iter().map(|_| Some(row.as_bytes())));
        }
        writer.end(0);
        out
    }

    /// Two results of a column each, without rows.
    fn two_results(caps: Caps) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 0, caps, 2 | status::MORE_RESULTS);
        writer.columns(&[Column::text("a")]);
        writer.end(0);
        writer.status = 2;
        writer.columns(&[Column::text("a")]);
        writer.end(0);
        out
    }

    fn recoded(mut recode: Recode, bytes: &[u8], piece: usize) -> (Vec<u8>, Recode) {
        let mut out = Vec::new();
        for chunk in bytes.chunks(piece) {
            recode.follow(chunk, &mut out).unwrap();
        }
        assert!(recode.response().is_ended(), "{piece}");
        (out, recode)
    }

    #[test]
    fn every_form_of_a_result_becomes_every_other_however_it_is_cut() {
        for (server, client) in forms() {
            for (there, here) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 0)] {
                for bare in [false, there == 1 && here == 1] {
                    let (server, client) = (server | BYTES[there], client | BYTES[here]);
                    let (came, wanted) = (
                        result(server, &["a", "b"], bare),
                        result(client, &["a", "b"], bare),
                    );
                    for piece in (1..40).chain([came.len()]) {
                        let (out, recode) = recoded(
                            Recode::expect(Expect::Query, server, client, 2),
                            &came,
                            piece,
                        );
                        assert_eq!(out, wanted, "{server:x} {client:x} {piece}");
                        assert_eq!(recode.response().is_bare(), bare);
                    }
                }
            }
        }
    }

    #[test]
    fn the_answer_to_a_preparation_says_whether_definitions_follow() {
        let answer = |caps, params, columns: &[Column], bare| {
            let mut out = Vec::new();
            let writer = Writer::new(&mut out, 0, caps, 2);
            let mut writer = if bare { writer.bare() } else { writer };
            writer.prepared(7, params, columns);
            out
        };
        for (server, client) in forms() {
            for (params, columns) in [(0, 0), (0, 2), (3, 0), (3, 2)] {
                for (there, here) in [(0, 0), (0, 1), (0, 2), (1, 1), (1, 0)] {
                    for bare in [false, there == 1 && here == 1] {
                        let columns: Vec<_> =
                            (0..columns).map(|n| Column::text(n.to_string())).collect();
                        let (server, client) = (server | BYTES[there], client | BYTES[here]);
                        let (came, wanted) = (
                            answer(server, params, &columns, bare),
                            answer(client, params, &columns, bare),
                        );
                        for piece in (1..40).chain([came.len()]) {
                            let (out, _) = recoded(
                                Recode::expect(Expect::Prepare, server, client, 2),
                                &came,
                                piece,
                            );
                            assert_eq!(
                                out,
                                wanted,
                                "{server:x} {client:x} {params} {} {piece}",
                                columns.len()
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_eof_before_rows_has_the_warnings_where_the_end_is_at_hand() {
        let came = |warnings| {
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out, 0, NEW, 2 | status::MORE_RESULTS);
            writer.columns(&[Column::text("a")]);
            writer.text_row([Some(&b"x"[..])]);
            writer.end(warnings);
            writer.status = 2;
            writer.columns(&[Column::text("a")]);
            writer.end(warnings + 1);
            out
        };
        let eofs = |piece| {
            let bytes = came(3);
            let recode = Recode::expect(Expect::Execute, NEW, OLD, 2);
            let (out, _) = recoded(recode, &bytes, piece);
            let mut found = Vec::new();
            let mut at = 0;
            while let Some((len, _)) = packet::whole(&out[at..]) {
                if len == 5 && out[at + HEADER_LEN] == ok::EOF_HEADER {
                    found.push(out[at + EOF_WARNINGS.start]);
                }
                at += HEADER_LEN + len;
            }
            found
        };
        assert_eq!(eofs(1000), [3, 3, 4, 4]);
        // The EOF waits for the next packet, which is the end where there are no rows.
        assert_eq!(eofs(1), [0, 3, 4, 4]);
    }

    #[test]
    fn a_transaction_elsewhere_is_in_every_flag() {
        for (server, client) in forms() {
            for (bytes, expect) in [
                (result(server, &["a", "b"], false), Expect::Query),
                (two_results(server), Expect::Query),
                (vec![7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0], Expect::Simple),
            ] {
                for piece in (1..40).chain([1000]) {
                    let recode = Recode::expect(expect, server, client, 2)
                        .after(0, false)
                        .besides(status::IN_TRANS);
                    let (out, _) = recoded(recode, &bytes, piece);
                    let (mut again, mut at) = (Response::expect(expect, client), 0);
                    while let Some((len, _)) = packet::whole(&out[at..]) {
                        again.follow(&out[at..at + HEADER_LEN + len]).unwrap();
                        at += HEADER_LEN + len;
                        if len == 5 && out[at - len] == ok::EOF_HEADER {
                            assert_eq!(out[at - 2] & 3, 3, "{server:x} {client:x} {piece}");
                        }
                    }
                    assert_eq!(again.status() & 3, 3, "{server:x} {client:x} {piece}");
                }
            }
        }
    }

    #[test]
    fn other_columns_than_the_client_knows_are_told_in_every_flag() {
        for client in [NEW, OLD, NEW | caps::MARIADB_CACHE_METADATA] {
            for (known, wanted) in [(2, 0), (1, status::METADATA_CHANGED), (9, 0x400)] {
                for piece in (1..60).chain([1000]) {
                    let mut recode = Recode::expect(Expect::Execute, NEW, client, 2);
                    recode.knowing(known);
                    let (out, _) = recoded(recode, &result(NEW, &["a", "b"], false), piece);
                    let mut again = Response::expect(Expect::Execute, client);
                    again.follow(&out).unwrap();
                    assert_eq!(again.status() & status::METADATA_CHANGED, wanted);
                }
            }
        }
    }

    #[test]
    fn a_client_that_needs_definitions_never_goes_without() {
        let mut recode = Recode::expect(Expect::Query, NEW | caps::OPTIONAL_METADATA, NEW, 2);
        let bare = result(NEW | caps::OPTIONAL_METADATA, &["a"], true);
        assert!(recode.follow(&bare, &mut Vec::new()).is_err());
    }

    #[test]
    fn what_a_client_remembers_is_not_said_again_however_it_is_cut() {
        for server in [NEW, OLD] {
            for client in [
                NEW | caps::MARIADB_CACHE_METADATA,
                OLD | caps::MARIADB_CACHE_METADATA,
            ] {
                let asked = |names: &[&str], told, may, piece| {
                    let mut recode = Recode::expect(Expect::Execute, server, client, 2);
                    recode.spare(told, may);
                    let (out, recode) = recoded(recode, &result(server, names, false), piece);
                    (out, recode.told(), recode.last_seq())
                };
                let (whole, last) = (
                    result(client, &["a", "b"], false),
                    if caps::has(client, caps::DEPRECATE_EOF) {
                        6
                    } else {
                        7
                    },
                );
                let bare = result(client, &["a", "b"], true);
                for piece in (1..60).chain([1000]) {
                    let (out, told, seq) = asked(&["a", "b"], None, true, piece);
                    assert_eq!((out, seq), (whole.clone(), last), "{piece}");
                    assert!(told.is_some());
                    assert_eq!(
                        asked(&["a", "b"], told, true, piece),
                        (bare.clone(), told, last - 2),
                        "{piece}"
                    );
                    assert_eq!(
                        asked(&["a", "b"], told, false, piece),
                        (whole.clone(), told, last),
                        "{piece}"
                    );
                    let (out, others, _) = asked(&["a", "c"], told, true, piece);
                    assert_eq!(out, result(client, &["a", "c"], false), "{piece}");
                    assert_ne!(others, told);
                }
            }
        }
    }

    #[test]
    fn of_several_results_nothing_is_remembered() {
        let client = NEW | caps::MARIADB_CACHE_METADATA;
        for piece in 1..60 {
            let mut recode = Recode::expect(Expect::Execute, NEW, client, 2);
            recode.spare(None, true);
            let (out, recode) = recoded(recode, &two_results(NEW), piece);
            assert_eq!((out, recode.told()), (two_results(client), None), "{piece}");
        }
    }
}
