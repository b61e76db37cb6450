//! Whoever follows a server's log: registered, it keeps a connection; its log comes as it is, and
//! nothing else goes that way.

use crate::command::trouble::{Ended, Failed, Heard};
use crate::forward::relay::{Ask, doubt_interrupted, relay};
use crate::known::answer::{Complaint, killed};
use crate::known::epoch::Epoch;
use crate::session::Session;
use crate::session::through::{Said, Through, open};
use backend::{Backend, BackendFailed, Hold, Idle, Like, Tracking};
use bridge::Counter;
use rt::Chunk;
use std::ops::ControlFlow;
use wire::command::COM_BINLOG_DUMP;
use wire::response::{Expect, Outcome};
use wire::{caps, command, packet};

/// Capabilities that change only how statements are executed and answered, of which a log has none.
const OF_STATEMENTS: caps::Caps = caps::MARIADB_BULK
    | caps::MARIADB_CACHE_METADATA
    | caps::MARIADB_EXTENDED_TYPES
    | caps::OPTIONAL_METADATA;

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
