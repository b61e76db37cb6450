//! One connection to a server, and what is known to be set on it.

use crate::connection::lease::{Lasting, Lease, Local, Unreported};
use crate::connection::place::{Place, bump};
use crate::connection::slots::Slots;
use crate::failure::BackendFailed;
use crate::servers::flight::Slot;
use crate::session::hold::{Hold, Holds};
use crate::session::key::Key;
use crate::session::prepared::Here;
use crate::session::state::State;
use crate::tally::Tally;
use bridge::{Counter, FreeConnectionRow};
use net::{Conn, Hello, NetError};
use rt::{Address, Chunk, Instant};
use std::net::SocketAddr;
use std::rc::Rc;
use wire::response::{Expect, Follow, Outcome, Response};
use wire::track::Change;
use wire::{errors, packet};

/// Of an answer that is looked at, so much is kept: one row of one number is all that matters.
pub(crate) const GLIMPSE_LEN_MAX: usize = 4096;

/// Whether a connection may be shared again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Its last response has ended and nothing more came.
    Proven,
    /// Something is or may be on its way: it must be closed.
    Doubtful,
}

/// Number that a connection has in [`Backend::last_session`] after a statement of no session; a new
/// one has 0.
pub const NOBODY: u64 = u64::MAX;

/// A connection to a server. Dropped, it is closed and its permit given back.
#[derive(Debug)]
pub struct Backend {
    /// The connection.
    pub conn: Conn,
    /// Greeting that the server sent at login.
    pub hello: Hello,
    /// Why it cannot be shared.
    pub holds: Holds,
    /// Whether its protocol state is known.
    pub idle: Idle,
    /// The server was told to end what was its last command, and may have been told too late: it
    /// hits what runs there next. Until another is answered there it goes to nobody else, whatever
    /// held it in the meantime.
    pub interrupted: bool,
    pub(crate) place: Rc<Place>,
    pub(crate) key: Key,
    /// Who the server was told is at our end.
    pub(crate) told_client: Option<SocketAddr>,
    pub(crate) state: State,
    /// Statements that the connection began with, see `mysql-init_connect`; a reset undoes them.
    pub(crate) init_connect: Option<Rc<str>>,
    pub(crate) prepared: Here,
    /// Statements that are prepared there in SQL, by names of ours.
    pub(crate) slots: Slots,
    /// Was a statement sent that is too large for the connection to be used for another session?
    pub(crate) retired: bool,
    pub(crate) tally: Rc<Tally>,
    pub(crate) in_use: bool,
    /// Slot of the statement in flight on it, where those are limited.
    pub(crate) slot: Option<Slot>,
    /// Its connection lives on, on another core, and its permit with it.
    pub(crate) lent: bool,
    /// Properties that go with the connection from core to core.
    pub lasting: Lasting,
    /// Knowledge that this core has of the connection.
    pub local: Local,
    /// Properties that belong to the session that has the connection.
    pub lease: Lease,
}

impl Drop for Backend {
    fn drop(&mut self) {
        if !self.lent {
            self.place.room.give();
        }
        if self.in_use {
            self.place.end_use();
        }
        self.tally.down(Counter::ServerConnectionsConnected);
        self.tally.add(
            Counter::StmtServerActiveTotal,
            0u64.wrapping_sub((self.prepared.len() + self.slots.len()) as u64),
        );
    }
}

impl Backend {
    /// Where it leads.
    #[must_use]
    pub fn place(&self) -> &Rc<Place> {
        &self.place
    }

    /// Our end, as the server was to see it: that of the client for whom it was opened, where
    /// servers are told by the PROXY protocol.
    #[must_use]
    pub fn our_end(&self) -> Address {
        self.told_client
            .map_or_else(|| self.conn.socket().local(), Address::Tcp)
    }

    /// A row of `stats_mysql_free_connections`, of a hostgroup that it is idle in.
    pub(crate) fn free_row(&self, hostgroup: u32, now: Instant) -> FreeConnectionRow {
        let ms = |since| u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        let set = |name| {
            let value = self.state.variable(name)?;
            Some(value.trim_matches(['\'', '"']).to_owned())
        };
        let (bytes_received, bytes_sent) = self.conn.bytes();
        FreeConnectionRow {
            descriptor: self.conn.socket().descriptor(),
            hostgroup,
            host: self.place.host().clone(),
            port: self.place.server().port,
            user: self.key.user.as_ref().into(),
            schema: self.state.schema.as_ref().into(),
            init_connect: self.init_connect.as_deref().map(Into::into),
            time_zone: set("time_zone"),
            sql_mode: set("sql_mode"),
            autocommit: self.state.autocommit,
            idle_ms: ms(self.lasting.since),
            age_ms: ms(self.lasting.opened),
            bytes_received,
            bytes_sent,
            queries: self.lasting.queries,
            server_thread_id: self.hello.thread_id,
            server_version: self.hello.version.as_str().into(),
        }
    }

    /// The statement has ended for which it was left in a schema that its session is not in.
    pub fn strays_no_more(&mut self) {
        self.lease.strays = false;
    }

    /// Whether a session's statement of this number was the last command there.
    #[must_use]
    pub fn is_undisturbed(&self, session: u64, statement: u32) -> bool {
        #[cfg(debug_assertions)]
        if crate::planted::NEVER_DISTURBED.get() {
            return true;
        }
        self.lasting.last_session == session && self.local.undisturbed == Some(statement)
    }

    /// A statement of this session runs there now.
    pub fn serves(&mut self, session: u64) {
        if self.lasting.last_session != session {
            self.local.finder = None;
            self.local.others_warnings = self.lasting.warnings_left;
            self.lasting.last_session = session;
        }
    }

    /// Returns the state that is set on the connection.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether the default of a variable, by its name in a [`State`], is not what this connection
    /// began with: one that was set to its default is no more as it was.
    #[must_use]
    pub fn begins_otherwise(&self, name: &str) -> bool {
        self.lasting.ways.begins_otherwise(name)
    }

    /// Returns the state that is set on the connection, to be corrected by what a statement of the
    /// session has just set.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// Sends a command. From here on its protocol state is unknown until the response has ended.
    ///
    /// # Errors
    /// [`BackendFailed::BrokeBefore`] when the connection was seen closed before anything was sent.
    pub async fn send(&mut self, command: Chunk) -> Result<(), BackendFailed> {
        self.begins(command.len())?;
        if !self.lasting.closing.is_empty() {
            let closing = std::mem::take(&mut self.lasting.closing);
            self.conn
                .send_commands(closing)
                .await
                .map_err(BackendFailed::BrokeAfter)?;
        }
        self.conn
            .send_commands(command)
            .await
            .map_err(BackendFailed::BrokeAfter)
    }

    /// Sends a command, if it goes out as it is and nothing has to be waited for: takes it then.
    /// Whether it has.
    ///
    /// # Errors
    /// As [`Backend::send`].
    pub fn queue(&mut self, command: &mut Vec<u8>) -> Result<bool, BackendFailed> {
        let is_plain = self.lasting.closing.is_empty() && self.conn.compression().is_none();
        if !is_plain || self.conn.socket().is_full() {
            return Ok(false);
        }
        self.begins(command.len())?;
        self.conn
            .queue(std::mem::take(command))
            .map_err(BackendFailed::BrokeAfter)?;
        Ok(true)
    }

    /// A command of so many bytes is about to be sent.
    fn begins(&mut self, len: usize) -> Result<(), BackendFailed> {
        if self.idle == Idle::Proven && !self.conn.is_idle() {
            return Err(BackendFailed::BrokeBefore(NetError::Closed));
        }
        self.idle = Idle::Doubtful;
        self.local.undisturbed = None;
        self.lasting.queries += 1;
        bump(&self.place.numbers.queries, 1);
        bump(&self.place.numbers.sent, len as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesSent, len as u64);
        Ok(())
    }

    /// Whoever has it keeps it as long as it is held; nobody else gets it.
    pub fn retire(&mut self) {
        self.retired = true;
    }

    /// The next bytes of a response.
    ///
    /// # Errors
    /// The end of the connection is one.
    pub async fn recv(&mut self) -> Result<Chunk, BackendFailed> {
        let chunk = self.conn.recv().await.map_err(BackendFailed::BrokeAfter)?;
        if chunk.is_empty() {
            return Err(BackendFailed::BrokeAfter(NetError::Closed));
        }
        if let Some(seen) = &mut self.lease.glimpse
            && seen.len() < GLIMPSE_LEN_MAX
        {
            seen.extend_from_slice(&chunk);
        }
        bump(&self.place.numbers.received, chunk.len() as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesRecv, chunk.len() as u64);
        Ok(chunk)
    }

    /// A response has ended after `used` of the bytes of the last chunk, of which there were `len`.
    pub fn ended(&mut self, used: usize, len: usize) {
        self.idle = if used == len {
            Idle::Proven
        } else {
            Idle::Doubtful
        };
        self.interrupted = false;
    }

    /// A command of our own whose response nobody reads: OK, or the server's error.
    pub(crate) async fn command(
        &mut self,
        payload: &[u8],
        expect: Expect,
    ) -> Result<Response, BackendFailed> {
        let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
        packet::append(&mut framed, &mut 0, payload);
        self.send(Chunk::from(framed)).await?;
        let mut response =
            Response::expect(expect, self.hello.caps).to_packet(packet::last_seq(payload.len()));
        loop {
            let chunk = self.recv().await?;
            match response
                .follow(&chunk)
                .map_err(|malformed| BackendFailed::BrokeAfter(malformed.into()))?
            {
                Follow::More => {}
                Follow::Ended { used } => {
                    self.ended(used, chunk.len());
                    let refused = match response.outcome() {
                        Outcome::Err { code, .. } => Some(code),
                        _ => None,
                    };
                    if response.warnings() > 0 || refused.is_some() {
                        // No session's.
                        (self.lasting.warnings_left, self.local.others_warnings) = (true, true);
                    }
                    if refused == Some(errors::MUST_CHANGE_PASSWORD.number) {
                        // It stays so when the user has a new password.
                        self.retire();
                    }
                    self.has_told(&response);
                    return Ok(response);
                }
            }
        }
    }

    /// More bytes of the client that belong to the command that was sent last.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn pass(&mut self, bytes: Chunk) -> Result<(), BackendFailed> {
        bump(&self.place.numbers.sent, bytes.len() as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesSent, bytes.len() as u64);
        self.conn
            .send(bytes)
            .await
            .map_err(BackendFailed::BrokeAfter)
    }

    /// A statement has failed there of which its client is told nothing.
    pub fn has_failed_unseen(&mut self) {
        (self.local.undisturbed, self.local.finder) = (None, None);
        (self.lasting.warnings_left, self.local.others_warnings) = (true, true);
    }

    /// A statement of the session that keeps this connection is about to run: it counts among those
    /// in flight, and waits for nobody, since others may wait for what the session has here.
    pub fn takes_off(&mut self) {
        if self.place.in_flight.is_limited() && self.slot.is_none() {
            self.slot = self.place.in_flight.slot(false).ok().flatten();
        }
    }

    /// Nothing is in flight on it any more, or nobody counts what is.
    pub fn lands(&mut self) {
        self.slot = None;
    }

    /// Whether the server tells of every change that it can.
    #[must_use]
    pub fn tells_all(&self) -> bool {
        self.lasting.tracking.is_some()
    }

    /// A command of ours was answered, and nobody reads what that tells. What a statement before
    /// has had to tell may be among it, and is told once.
    pub(crate) fn has_told(&mut self, response: &Response) {
        // Of transactions it tells what the command itself has begun or ended.
        let of_before = |change: Change<'_>| match change {
            Change::TransactionState(_)
            | Change::TransactionCharacteristics(_)
            | Change::Gtids(_) => false,
            Change::State(has_changed) => has_changed,
            _ => true,
        };
        if self.local.unreported == Unreported::Change && response.changes().any(of_before) {
            self.holds.add(Hold::UnknownState);
        }
    }
}

/// The server's error as ours.
pub(crate) fn refusal(response: &Response) -> Result<(), BackendFailed> {
    match response.outcome() {
        Outcome::Err {
            code,
            state,
            message,
        } => Err(BackendFailed::Sync {
            code,
            state,
            message: String::from_utf8_lossy(message).into_owned(),
        }),
        _ => Ok(()),
    }
}
