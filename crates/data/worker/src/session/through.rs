//! A session with nothing between its sockets: the server's side, and a log on its way.

use crate::core::Core;
use crate::core::roster::Entry;
use crate::known::answer::{Complaint, killed};
use crate::known::epoch::Epoch;
use backend::{Backend, Like, State, Want};
use config::User;
use net::{Conn, NetError, Secret};
use rt::{Chunk, Either};
use std::rc::Rc;
use wire::command::{COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, COM_QUIT, COM_SLEEP};
use wire::connect_attributes::ConnectAttributes;
use wire::response::{Expect, Follow, Response};
use wire::{Malformed, caps, packet};

/// A connection that is one client's, with nothing between.
pub(crate) struct Through {
    pub(crate) backend: Box<Backend>,
    /// The command that was sent last; [`COM_SLEEP`] before the first.
    pub(crate) last: u8,
    /// The client wants to become somebody else; if that is refused, it may go on here.
    pub(crate) waits: bool,
    /// Whether the client asked to become somebody else before an answer was there. What comes next
    /// is not to that wish, nor to what we ask.
    pub(crate) is_due: bool,
    /// Of whoever is here for a log alone.
    pub(crate) log: Option<Box<Log>>,
}

impl Through {
    pub(crate) fn new(backend: Box<Backend>) -> Box<Self> {
        Box::new(Self {
            backend,
            last: COM_SLEEP,
            waits: false,
            is_due: false,
            log: None,
        })
    }

    /// For as long as a log lasts, which this command asks for.
    pub(crate) fn follow_log(backend: Box<Backend>, command: u8) -> Box<Self> {
        let log = Some(Box::new(Log::new(backend.hello.caps)));
        Box::new(Self {
            backend,
            last: command,
            waits: false,
            is_due: false,
            log,
        })
    }

    pub(crate) fn close(self, core: &Core) {
        #[cfg(debug_assertions)]
        if backend::planted::KEEP_THROUGH.get() {
            return std::mem::forget(self);
        }
        core.pools.abandon(self.backend);
    }
}

/// Whether the answer to it is a log that does not end.
pub(crate) const fn follows_log(command: u8) -> bool {
    matches!(command, COM_BINLOG_DUMP | COM_BINLOG_DUMP_GTID)
}

/// Words of a client's login, as far as a server has to hear them.
pub(crate) struct Said<'a> {
    pub(crate) user: &'a User,
    pub(crate) secret: &'a Secret,
    pub(crate) collation: u16,
    pub(crate) attributes: &'a ConnectAttributes,
    pub(crate) like: Like<'a>,
}

/// The connection for a `fast_forward` user; none if its server has not all that clients are
/// offered. Waits no longer than the client does, and than `told` says that it may.
///
/// # Errors
/// What the client is to be told.
pub(crate) async fn open(
    core: &Rc<Core>,
    epoch: &Epoch,
    client: &Conn,
    entry: &Entry,
    said: &Said<'_>,
    told: impl Future<Output = ()>,
) -> Result<Option<Box<Backend>>, Complaint> {
    let state = State::new("", said.collation);
    let want = want(epoch, entry, said, &state);
    let gone = rt::select(client.socket().closed(), told);
    match rt::select(core.pools.open_like(&want), gone).await {
        Either::Left(opened) => opened.map_err(|failure| Complaint::of(&failure)),
        Either::Right(_) => Err(killed()),
    }
}

/// Returns what a connection for one client alone is opened with.
pub(crate) fn want<'a>(
    epoch: &'a Epoch,
    entry: &Entry,
    said: &Said<'a>,
    state: &'a State,
) -> Want<'a> {
    Want {
        hostgroup: said.user.default_hostgroup,
        caps: said.like.caps,
        collation: said.collation,
        session: entry.id,
        client: entry.address,
        like: Some(Like {
            database: said.like.database.filter(|name| !name.is_empty()),
            ..said.like
        }),
        ..Want::of_nobody(
            (&said.user.username, said.secret),
            &epoch.snapshot,
            state,
            said.attributes,
        )
    }
}

/// Bytes that have moved, or something that has happened.
pub(crate) enum Event {
    /// From the client.
    Up(Result<Chunk, NetError>),
    /// From the server.
    Down(Result<Chunk, NetError>),
    /// One of the sockets cannot send any more.
    Broken,
    Stopped(Stopped),
}

/// Why it is not to go on as it was.
pub(crate) enum Stopped {
    Killed,
    /// Only what it runs.
    Interrupted,
    CutOff,
    /// Nobody has said anything for `mysql-wait_timeout`.
    Silent,
}

/// Byte by which a replica acknowledges each transaction that it has, while it follows a
/// semi-synchronous log: no command, but it looks like one.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/semisync__replica_8h.html>
const ACKNOWLEDGED: u8 = 0xEF;

/// Header and first byte of a packet.
const HEAD_LEN: usize = packet::HEADER_LEN + 1;

/// A server's log on its way. Only its first packet is looked at: numbers begin anew in the middle
/// of it, after each event that wants to be acknowledged.
pub(crate) struct Log {
    /// A refusal, if it is one.
    answer: Response,
    /// So much of the first packet.
    head: Vec<u8>, // <= HEAD_LEN
    /// The server has said more than that it refuses.
    begun: bool,
}

/// How far a log has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// Its first bytes.
    Begun,
    More,
    /// The server does not let it be followed: the session goes on.
    Refused,
    /// Refusal with something behind it that belongs to nothing.
    Ended,
}

impl Log {
    pub(crate) fn new(server: caps::Caps) -> Self {
        Self {
            answer: Response::expect(Expect::Binlog, server).to_packet(0),
            head: Vec::new(),
            begun: false,
        }
    }

    /// Whether what a client says in the middle of a log is the server's business. It obeys nothing
    /// else until the log ends.
    pub(crate) const fn lets_through(command: u8) -> bool {
        matches!(command, ACKNOWLEDGED | COM_QUIT)
    }

    /// Follows what has come, until it is known whether the log has begun. A refusal is the last of
    /// it.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> Result<Came, Malformed> {
        if self.begun {
            return Ok(Came::More);
        }
        let lacks = (HEAD_LEN - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..lacks]);
        if self
            .head
            .get(packet::HEADER_LEN)
            .is_some_and(|first| *first != wire::ok::ERR_HEADER)
        {
            self.begun = true;
            return Ok(Came::Begun);
        }
        Ok(match self.answer.follow(bytes)? {
            Follow::More => Came::More,
            Follow::Ended { used } if used == bytes.len() => Came::Refused,
            Follow::Ended { .. } => Came::Ended,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what becomes of these bytes, cut so that no more than so many come at once; `More`
    /// is left out.
    fn came(bytes: &[u8], cut: usize) -> Vec<Came> {
        let mut log = Log::new(caps::PROTOCOL_41 | caps::DEPRECATE_EOF);
        bytes
            .chunks(cut)
            .map(|piece| log.follow(piece).unwrap())
            .filter(|came| *came != Came::More)
            .collect()
    }

    fn framed(packets: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (seq, payload) in packets {
            packet::append(&mut out, &mut seq.clone(), payload);
        }
        out
    }

    #[test]
    fn a_log_whose_numbers_begin_anew_goes_on() {
        let event: &[u8] = b"\x00\xef\x01event of some length";
        let bytes = framed(&[
            (1, event),
            (2, event),
            (3, event),
            (1, event),
            (2, event),
            (1, b"\xff\xd4\x04#HY000gone"),
        ]);
        for cut in [1, 3, 5, 30, 64, bytes.len()] {
            assert_eq!(came(&bytes, cut), [Came::Begun], "{cut}");
        }
    }

    #[test]
    fn only_an_error_that_comes_first_and_alone_is_a_refusal() {
        let error: &[u8] = b"\xff\xcb\x04#42000Access denied";
        let bytes = framed(&[(1, error)]);
        for cut in [1, 4, 5, 6, bytes.len()] {
            assert_eq!(came(&bytes, cut), [Came::Refused], "{cut}");
        }
        assert_eq!(
            came(&framed(&[(1, error), (1, error)]), 1000),
            [Came::Ended]
        );
        assert_eq!(
            came(&framed(&[(1, b"\xfe\0\0\x02\0")]), 1000),
            [Came::Begun]
        );
    }
}
