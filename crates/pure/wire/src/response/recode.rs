//! A response written anew for a client whose caps differ from those of the backend: with or without CLIENT_DEPRECATE_EOF
//! and CLIENT_SESSION_TRACK. So all backend connections can have both, whatever their clients have.
//!
//! Rows are copied, not read: only their sequence numbers change, since an EOF more or less before them moves all that follow.

use super::{Expect, Follow, Response, Taken, Watch};
use crate::caps::{self, Caps};
use crate::packet::{self, HEADER_LEN};
use crate::track::Wish;
use crate::{Malformed, ok, status};
use std::rc::Rc;

/// Follows one response and writes it for the client as it comes.
#[derive(Debug)]
pub struct Recode {
    response: Response,
    server: Caps,
    client: Caps,
    /// What is added to the server's sequence numbers.
    shift: u8,
    /// Number of the packet that was written last.
    last_seq: u8,
    /// The packet being copied is full: the next one continues it.
    full: bool,
    /// An EOF is due before the next packet.
    eof_due: bool,
    /// SERVER_STATUS_* flags of such an EOF.
    status: u16,
    /// SERVER_STATUS_* flags that every result has besides its own.
    more: u16,
    /// Which session changes the client is told; all if `None`.
    wish: Option<Rc<Wish>>,
}

impl Recode {
    /// Waits for the answer to a command, as [`Response::expect`]. `status`: the connection's flags before the command, for an EOF
    /// that the server does not send; the flags after the command come too late for it.
    pub fn expect(expect: Expect, server: Caps, client: Caps, status: u16) -> Self {
        let response = Response::expect(expect, server);
        Self { response, server, client, shift: 0, last_seq: 0, full: false, eof_due: false, status, more: 0, wish: None }
    }

    /// As [`Response::to_packet`].
    #[must_use]
    pub fn to_packet(mut self, sent: u8) -> Self {
        self.response = self.response.to_packet(sent);
        self
    }

    /// The client's packet numbers are `sent` ahead of the server's, wrapping: the response is one of several to one command, or what the client sent
    /// took other packets than what the server was sent. If `more`, another response follows.
    #[must_use]
    pub fn after(mut self, sent: u8, more: bool) -> Self {
        (self.shift, self.last_seq) = (sent, sent);
        self.more = if more { status::MORE_RESULTS } else { 0 };
        self.status |= self.more;
        self
    }

    /// The client is told no other session changes than these.
    #[must_use]
    pub fn telling(mut self, wish: Option<Rc<Wish>>) -> Self {
        self.wish = wish;
        self
    }

    /// True if a client with these caps needs it; if not, bytes can be passed on as they are.
    pub const fn is_needed(server: Caps, client: Caps) -> bool {
        (server ^ client) & (caps::DEPRECATE_EOF | caps::SESSION_TRACK) != 0
    }

    /// Follows the next bytes of the connection and appends what the client is to get for them. After an error neither
    /// connection is of any more use.
    pub fn follow(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Follow, Malformed> {
        let Self { response, server, client, shift, last_seq, full, eof_due, status, more, wish } = self;
        let cursor = matches!(response.expect, Expect::Execute);
        let mut copy =
            Copy { out, server: *server, client: *client, cursor, shift, last_seq, full, eof_due, status: *status, more: *more, wish: wish.as_deref() };
        let followed = response.walk(bytes, &mut copy)?;
        if matches!(followed, Follow::Ended { .. }) {
            copy.eof_if_due();
        }
        Ok(followed)
    }

    /// What the response said; its positions are those of the server's bytes, and its last sequence number is the server's.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Number of the last packet that the client was sent.
    pub fn last_seq(&self) -> u8 {
        self.last_seq
    }

    /// As [`Response::resume`]. The packets of the file have to be numbered for the server: see [`crate::infile`].
    pub fn resume(&mut self) {
        self.response.resume();
    }
}

/// [`Recode`] while it writes.
struct Copy<'a> {
    out: &'a mut Vec<u8>,
    server: Caps,
    client: Caps,
    /// A cursor may be opened.
    cursor: bool,
    shift: &'a mut u8,
    last_seq: &'a mut u8,
    full: &'a mut bool,
    eof_due: &'a mut bool,
    status: u16,
    more: u16,
    wish: Option<&'a Wish>,
}

impl Copy<'_> {
    fn packet(&mut self, mut seq: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        *self.last_seq = seq;
        packet::append_with(self.out, &mut seq, fill);
    }

    /// What an OK or EOF said; [`Response::take`] has read it before, so it can be read.
    fn said<'p>(&self, payload: &'p [u8]) -> ok::Ok<'p> {
        let said = match ok::Ok::read(payload, self.server) {
            Ok(ok) if payload.len() >= 7 => ok,
            _ => {
                let (warnings, status) = ok::read_eof(payload).unwrap_or_default();
                ok::Ok { warnings, status, ..ok::Ok::default() }
            }
        };
        ok::Ok { status: said.status | self.more, ..said }
    }

    /// The EOF that the client wants and the server did not send. It waits for the next packet, because a cursor has only one.
    fn eof_if_due(&mut self) {
        if std::mem::take(self.eof_due) {
            *self.shift = self.shift.wrapping_add(1);
            let status = self.status;
            self.packet(self.last_seq.wrapping_add(1), |o| ok::write_eof(o, 0, status));
        }
    }
}

impl Watch for Copy<'_> {
    fn begin(&mut self, len: usize, seq: u8, held: &[u8]) {
        if !*self.full {
            self.eof_if_due();
        }
        *self.full = len == packet::MAX_PAYLOAD;
        *self.last_seq = seq.wrapping_add(*self.shift);
        self.out.extend_from_slice(&packet::make_header(len, *self.last_seq));
        self.out.extend_from_slice(held);
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn rows(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.eof_if_due();
        let mut at = self.out.len();
        self.out.extend_from_slice(bytes);
        while let Some(h) = self.out.get_mut(at..).and_then(|o| o.first_chunk_mut::<HEADER_LEN>()) {
            let (len, seq) = packet::header(h);
            *self.last_seq = seq.wrapping_add(*self.shift);
            h[3] = *self.last_seq;
            at += HEADER_LEN + len;
        }
    }

    fn definitions_end(&mut self) {
        *self.eof_due = !caps::has(self.client, caps::DEPRECATE_EOF);
    }

    fn take(&mut self, taken: Taken, seq: u8, payload: &[u8], _: Option<usize>) {
        let ok = match taken {
            Taken::AsIs => ok::Ok::default(),
            Taken::DefinitionsEof | Taken::Ok | Taken::End => self.said(payload),
        };
        let wished = self.wish.filter(|_| !ok.changes.is_empty() && caps::has(self.client, caps::SESSION_TRACK));
        let wished = wished.map(|wish| wish.of(ok.changes));
        let ok = wished.as_ref().map_or(ok, |changes| ok.with_changes(changes));
        if taken == Taken::End && self.cursor && ok.status & status::CURSOR_EXISTS != 0 {
            *self.eof_due = false;
        }
        self.eof_if_due();
        let client = self.client;
        let out_seq = seq.wrapping_add(*self.shift);
        match taken {
            Taken::DefinitionsEof if caps::has(client, caps::DEPRECATE_EOF) => *self.shift = self.shift.wrapping_sub(1),
            Taken::DefinitionsEof => self.packet(out_seq, |o| ok::write_eof(o, ok.warnings, ok.status)),
            Taken::AsIs => self.packet(out_seq, |o| o.extend_from_slice(payload)),
            Taken::Ok => self.packet(out_seq, |o| ok.write(o, client)),
            Taken::End => self.packet(out_seq, |o| ok.write_end(o, client)),
        }
    }
}

/// Fuzz target: a response that can be followed, written for a client with any other caps, is one that can be followed
/// with those, and says the same. The first byte chooses kind and caps, the second the chunks.
pub fn fuzz_recode(data: &[u8]) {
    let [kind, cut, bytes @ ..] = data else { return };
    let expect =
        [Expect::Query, Expect::Execute, Expect::Prepare, Expect::FieldList, Expect::Simple, Expect::Line, Expect::Fetch]
            [usize::from(kind & 7) % 7];
    let with = |eof: u8, track: u8| {
        caps::PROTOCOL_41
            | if kind & eof != 0 { caps::DEPRECATE_EOF } else { 0 }
            | if kind & track != 0 { caps::SESSION_TRACK } else { 0 }
    };
    let (server, client) = (with(8, 16), with(32, 64));
    let mut recode = Recode::expect(expect, server, client, status::AUTOCOMMIT);
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
    let end = again.follow(&out).expect("what was written for the client is well formed");
    assert_eq!(end, Follow::Ended { used: out.len() });
    let first = recode.response();
    assert_eq!(format!("{:?}", again.outcome()), format!("{:?}", first.outcome()));
    assert_eq!(
        (again.rows(), again.columns(), again.results(), again.prepared(), again.last_seq()),
        (first.rows(), first.columns(), first.results(), first.prepared(), recode.last_seq())
    );
}
