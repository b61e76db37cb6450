//! Whoever follows a server's log: registered, it keeps a connection; its log comes as it is, and
//! nothing else goes that way.

use crate::beside::through::{Said, Through, open};
use crate::command::trouble::{Ended, Failed, Heard};
use crate::forward::relay::{Ask, doubt_interrupted, relay};
use crate::known::answer::{Complaint, killed};
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Backend, BackendFailed, Hold, Idle, Like, Tracking};
use bridge::Counter;
use rt::Chunk;
use std::ops::ControlFlow;
use wire::command::{COM_BINLOG_DUMP, COM_QUIT};
use wire::response::{Expect, Follow, Outcome, Response};
use wire::{Malformed, caps, command, packet};

/// Byte by which a replica acknowledges each transaction that it has, while it follows a
/// semi-synchronous log: no command, but it looks like one.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/semisync__replica_8h.html>
const ACKNOWLEDGED: u8 = 0xEF;

/// Capabilities that change only how statements are executed and answered, of which a log has none.
const OF_STATEMENTS: caps::Caps = caps::MARIADB_BULK
    | caps::MARIADB_CACHE_METADATA
    | caps::MARIADB_EXTENDED_TYPES
    | caps::OPTIONAL_METADATA;

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

impl Session {
    /// COM_REGISTER_SLAVE: the server knows the client by its connection, which is the session's
    /// from then on.
    pub(crate) async fn register_replica(
        &mut self,
        epoch: &Epoch,
        payload: &[u8],
    ) -> Result<(), Ended> {
        let ControlFlow::Continue(mut backend) = self.say_to_log_server(epoch, payload).await?
        else {
            return Ok(());
        };
        let kept = backend.holds;
        let limit_ms = epoch.snapshot.variables.mysql_default_query_timeout;
        let ask = Ask {
            limit_ms,
            ..Ask::for_all_of(Expect::Simple)
        };
        match relay(self, &mut backend, &ask).await {
            Ok(reply) if matches!(reply.response().outcome(), Outcome::Err { .. }) => {
                doubt_interrupted(&mut backend);
                self.keep_or_give_back(backend);
                Ok(())
            }
            Ok(_) => {
                // No reset takes that away for certain.
                backend.retire();
                backend.holds.add(Hold::Replica);
                self.keep_or_give_back(backend);
                Ok(())
            }
            Err(trouble) => {
                self.core.pools.abandon(backend);
                if trouble.heard != Heard::Nothing {
                    return Err(Ended::Broken);
                }
                self.end_or_refuse(trouble.why, kept.carry_state()).await
            }
        }
    }

    /// COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID: bytes go as they come until the log ends.
    pub(crate) async fn follow_log(&mut self, epoch: &Epoch, payload: &[u8]) -> Result<(), Ended> {
        let ControlFlow::Continue(backend) = self.say_to_log_server(epoch, payload).await? else {
            return Ok(());
        };
        self.through = Some(Through::follow_log(
            backend,
            payload.first().copied().unwrap_or(COM_BINLOG_DUMP),
        ));
        Ok(())
    }

    /// The server has refused to let its log be followed: the connection has all that it had.
    pub(crate) fn end_log(&mut self, mut backend: Box<Backend>) -> Result<(), Ended> {
        if !backend.conn.is_idle() {
            self.core.pools.release(backend);
            return Err(Ended::Broken);
        }
        backend.idle = Idle::Proven;
        self.keep_or_give_back(backend);
        Ok(())
    }

    fn keep_or_give_back(&mut self, backend: Box<Backend>) {
        let hostgroup = backend.place().server().hostgroup;
        self.held
            .keep_or_release(hostgroup, backend, &self.core.pools);
    }

    /// Sends the command on a connection that looks like the client's and has what the session has
    /// set: the server looks at variables. Breaks if the client was told that it cannot be.
    async fn say_to_log_server(
        &mut self,
        epoch: &Epoch,
        payload: &[u8],
    ) -> Result<ControlFlow<(), Box<Backend>>, Ended> {
        self.next_statement();
        self.core.tally.up(Counter::Questions);
        self.entry.begins(
            payload.first().map_or("", |byte| command::name(*byte)),
            b"",
            self.core.rt.now(),
        );
        if self.held.transaction().is_some() {
            self.refuse(&Complaint::with(
                1047,
                "08S01",
                "A log is not followed while a transaction is open",
            ))
            .await?;
            return Ok(ControlFlow::Break(()));
        }
        self.read_all_back().await?;
        let mut backend = match self.log_connection(epoch).await {
            Ok(backend) => backend,
            Err(complaint) => {
                self.refuse(&complaint).await?;
                return Ok(ControlFlow::Break(()));
            }
        };
        self.entry.works_on(self.user.default_hostgroup, &backend);
        let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
        packet::append(&mut framed, &mut 0, payload);
        let kept = backend.holds;
        let work = async {
            backend
                .sync(&self.state, backend::Sees::Variables, None, Tracking::Any)
                .await?;
            backend.send(Chunk::from(framed)).await
        };
        let limit_ms = epoch.snapshot.variables.mysql_connect_timeout_server_max;
        let Err(why) = self.watched(limit_ms, work, self.entry.told_to_end()).await else {
            return Ok(ControlFlow::Continue(backend));
        };
        let alive = backend.idle == Idle::Proven
            && matches!(
                why,
                Failed::Backend(
                    BackendFailed::Sync { .. } | BackendFailed::Unfit | BackendFailed::Kept
                )
            );
        if alive {
            self.keep_or_give_back(backend);
        } else {
            self.core.pools.abandon(backend);
        }
        self.end_or_refuse(why, !alive && kept.carry_state())
            .await?;
        Ok(ControlFlow::Break(()))
    }

    /// The connection to the user's own hostgroup that the session holds, or one that is opened.
    async fn log_connection(&mut self, epoch: &Epoch) -> Result<Box<Backend>, Complaint> {
        let hostgroup = self.user.default_hostgroup;
        if let Some(backend) = self.held.take(hostgroup) {
            // What follows is not looked at, so it has to look the same on both sides.
            if (backend.hello.caps ^ self.caps) & caps::SHAPE & !OF_STATEMENTS == 0 {
                return Ok(backend);
            }
            if backend.holds.need_reset() {
                self.held.put(hostgroup, backend);
                return Err(Complaint::with(
                    1047,
                    "08S01",
                    "A log is not followed while the session keeps a connection for something else",
                ));
            }
            if backend.holds.has(Hold::Diagnostics) {
                self.lose_warnings();
            }
            self.core.pools.give_up(backend);
        }
        let schema = self.state.schema.clone();
        let like = Like {
            caps: self.caps & !(OF_STATEMENTS & !caps::MARIADB_BULK),
            database: Some(&schema),
        };
        let said = Said {
            user: &self.user,
            secret: &self.secret,
            collation: self.collation,
            attributes: &self.attributes,
            like,
        };
        let opened = Box::pin(open(
            &self.core,
            epoch,
            &self.client,
            &self.entry,
            &said,
            self.entry.told_to_end(),
        ))
        .await?;
        let words = "The server cannot do all that clients of this proxy are offered: its log is not followed here";
        let mut backend = opened.ok_or_else(|| Complaint::with(1047, "08S01", words))?;
        // It is nobody else's, whatever becomes of it; and nothing was sent there yet.
        backend.retire();
        backend.idle = Idle::Proven;
        Ok(backend)
    }

    /// For a command that has come to nothing. `lost`: something of the session went with the
    /// connection, or a part of the answer was said.
    async fn end_or_refuse(&mut self, why: Failed, lost: bool) -> Result<(), Ended> {
        let complaint = match why {
            Failed::Client => return Err(Ended::Gone),
            Failed::Backend(failure) => Complaint::of(&failure),
            _ => return Err(Ended::Told(killed())),
        };
        if lost {
            Err(Ended::Told(complaint))
        } else {
            self.refuse(&complaint).await
        }
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
