//! Whoever follows a server's log: registered, it keeps a connection; its log comes as it is, and nothing else goes that way.

use crate::answer::Complaint;
use crate::epoch::Epoch;
use crate::relay::{Ask, Failed, relay};
use crate::session::{Ended, Session, killed};
use crate::through::{Said, Through, open};
use backend::{Backend, BackendFailed, Hold, Idle, Like, Tracking};
use bridge::{Counter, Failure};
use rt::Chunk;
use std::ops::ControlFlow;
use wire::command::{COM_BINLOG_DUMP, COM_QUIT};
use wire::response::{Expect, Follow, Outcome, Response};
use wire::{Malformed, caps, command, packet};

/// What a replica says of each transaction that it has, while it follows a semi-synchronous log: no command, but it looks like one.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/semisync__replica_8h.html>
const ACKNOWLEDGED: u8 = 0xEF;

/// A server's log on its way.
pub(crate) struct Log {
    answer: Response,
    /// The server has said more than that it refuses.
    begun: bool,
}

/// How far a log has come.
pub(crate) enum Came {
    /// Its first bytes.
    Begun,
    More,
    /// The server does not let it be followed: the session goes on.
    Refused,
    /// No more will come.
    Ended,
}

impl Log {
    pub(crate) fn new(server: caps::Caps) -> Self {
        Self { answer: Response::expect(Expect::Binlog, server).to_packet(0), begun: false }
    }

    /// Whether what a client says in the middle of a log is the server's business. It obeys nothing else until the log ends.
    pub(crate) const fn lets_through(command: u8) -> bool {
        matches!(command, ACKNOWLEDGED | COM_QUIT)
    }

    /// Follows what has come. A refusal is the last of it.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> Result<Came, Malformed> {
        if let Follow::Ended { used } = self.answer.follow(bytes)? {
            let refused = !self.begun && matches!(self.answer.outcome(), Outcome::Err { .. }) && self.answer.rows() == 0;
            return Ok(if refused && used == bytes.len() { Came::Refused } else { Came::Ended });
        }
        if self.begun || self.answer.rows() == 0 {
            return Ok(Came::More);
        }
        self.begun = true;
        Ok(Came::Begun)
    }
}

impl Session {
    /// COM_REGISTER_SLAVE: the server knows the client by its connection, which is the session's from then on.
    pub(crate) async fn register_replica(&mut self, epoch: &Epoch, payload: &[u8]) -> Result<(), Ended> {
        let ControlFlow::Continue(mut backend) = self.say_to_log_server(epoch, payload).await? else { return Ok(()) };
        let kept = backend.holds;
        let limit_ms = epoch.snapshot.variables.mysql_default_query_timeout;
        let ask = Ask { limit_ms, ..Ask::for_all_of(Expect::Simple) };
        match relay(self, &mut backend, &ask).await {
            Ok(reply) if matches!(reply.response().outcome(), Outcome::Err { .. }) => {
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
            Err((why, answered)) => {
                backend.idle = Idle::Doubtful;
                self.core.pools.release(backend);
                self.end_or_refuse(why, answered || kept.carry_state()).await
            }
        }
    }

    /// COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID: bytes go as they come until the log ends.
    pub(crate) async fn follow_log(&mut self, epoch: &Epoch, payload: &[u8]) -> Result<(), Ended> {
        let ControlFlow::Continue(backend) = self.say_to_log_server(epoch, payload).await? else { return Ok(()) };
        self.through = Some(Through::follow_log(backend, payload.first().copied().unwrap_or(COM_BINLOG_DUMP)));
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
        if backend.idle == Idle::Proven && !backend.holds.is_empty() {
            let hostgroup = backend.place().server().hostgroup;
            self.held.put(hostgroup, backend);
        } else {
            self.core.pools.release(backend);
        }
    }

    /// Sends the command on a connection that looks like the client's and has what the session has set: the server looks at variables.
    /// Breaks if the client was told that it cannot be.
    async fn say_to_log_server(&mut self, epoch: &Epoch, payload: &[u8]) -> Result<ControlFlow<(), Box<Backend>>, Ended> {
        self.entry.next_statement();
        self.core.tally.up(Counter::Questions);
        self.entry.begins(payload.first().map_or("", |byte| command::name(*byte)), b"", self.core.rt.now());
        if self.held.transaction().is_some() {
            self.refuse(&Complaint::with(1047, "08S01", "A log is not followed while a transaction is open")).await?;
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
            backend.sync(&self.state, backend::Sees::Variables, None, Tracking::Any).await?;
            backend.send(Chunk::from(framed)).await
        };
        let limit_ms = epoch.snapshot.variables.mysql_connect_timeout_server_max;
        let Err(why) = self.watched(limit_ms, work, self.entry.told_to_end()).await else { return Ok(ControlFlow::Continue(backend)) };
        let alive = backend.idle == Idle::Proven && matches!(why, Failed::Backend(BackendFailed::Sync { .. } | BackendFailed::Unfit));
        if alive {
            backend.holds = if kept.is_empty() { backend.holds } else { kept };
            self.keep_or_give_back(backend);
        } else {
            backend.idle = Idle::Doubtful;
            self.core.pools.release(backend);
        }
        self.end_or_refuse(why, !alive && kept.carry_state()).await?;
        Ok(ControlFlow::Break(()))
    }

    /// The connection to the user's own hostgroup that the session holds, or one that is opened.
    async fn log_connection(&mut self, epoch: &Epoch) -> Result<Box<Backend>, Complaint> {
        let hostgroup = self.user.default_hostgroup;
        if let Some(backend) = self.held.take(hostgroup) {
            // What follows is not looked at, so it has to look the same on both sides.
            if (backend.hello.caps ^ self.caps) & caps::SHAPE & !caps::MARIADB_BULK == 0 {
                return Ok(backend);
            }
            if backend.holds.need_reset() {
                self.held.put(hostgroup, backend);
                return Err(Complaint::with(1047, "08S01", "A log is not followed while the session keeps a connection for something else"));
            }
            if backend.holds.has(Hold::Diagnostics) {
                self.lose_warnings();
            }
            self.core.pools.give_up(backend);
        }
        let schema = self.state.schema.clone();
        let like = Like { caps: self.caps, database: Some(&schema) };
        let said = Said { user: &self.user, secret: &self.secret, collation: self.collation, attributes: &self.attributes, like };
        let opened = Box::pin(open(&self.core, epoch, &self.client, &self.entry, &said)).await?;
        let words = "The server cannot do all that clients of this proxy are offered: its log is not followed here";
        let mut backend = opened.ok_or_else(|| Complaint::with(1047, "08S01", words))?;
        // It is nobody else's, whatever becomes of it; and nothing was sent there yet.
        backend.retire();
        backend.idle = Idle::Proven;
        Ok(backend)
    }

    /// For a command that has come to nothing. `lost`: something of the session went with the connection, or a part of the answer was said.
    async fn end_or_refuse(&mut self, why: Failed, lost: bool) -> Result<(), Ended> {
        let complaint = match why {
            Failed::Client => return Err(Ended::Gone),
            Failed::Backend(failure) => {
                let (code, sqlstate, words) = failure.to_client();
                Complaint::with(code, sqlstate, words)
            }
            _ => return Err(Ended::Told(killed())),
        };
        if lost { Err(Ended::Told(complaint)) } else { self.refuse(&complaint).await }
    }
}
