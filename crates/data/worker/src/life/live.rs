//! One client's life, top to bottom.

use crate::beside::through::silent;
use crate::command::trouble::{Ended, Failed};
use crate::core::Core;
use crate::core::roster::Entry;
use crate::known::answer::{Complaint, Turn, cut_off, going_down, killed};
use crate::login::greet;
use crate::session::Session;
use bridge::{Auditable, Counter};
use net::{NetError, Packet};
use rt::{Either, Rt, Socket};
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use wire::{command, errors};

/// How long the rest of a command that is too large may take to come.
const SKIPPED: Duration = Duration::from_secs(600);
/// How long a client that has said goodbye may take to read what is left of its answer.
const UNREAD: Duration = Duration::from_secs(60);

/// Whoever comes to a core.
pub(crate) enum Comer {
    /// A client that has not said anything yet.
    Client(Socket),
    /// A session of the process before.
    Session(Box<Session>),
}

impl Comer {
    /// Its session, if it is let in.
    async fn enters(self, core: &Rc<Core>) -> Option<Session> {
        match self {
            Self::Client(socket) => greet::enter(core, socket).await,
            Self::Session(session) => Some(*session),
        }
    }
}

/// From accept to close.
pub(crate) async fn live(core: Rc<Core>, comer: Comer) {
    // Who is it?
    let Some(mut session) = Box::pin(comer.enters(&core)).await else {
        return;
    };
    core.tally.up(Counter::ClientConnectionsConnected);
    core.user_came(&session.user_name);
    let on_leaving = Leaving {
        core: core.clone(),
        entry: session.entry.clone(),
    };

    // What does it want? One command at a time, each under one configuration.
    let ended = loop {
        if session.goes_through()
            && let Err(ended) = Box::pin(session.go_through()).await
        {
            break ended;
        }
        let packet = match session.next_command().await {
            Ok(packet) => packet,
            Err(ended) => break ended,
        };
        let epoch = core.epoch();
        core.tally.up(Counter::ClientConnectionsNonIdle);
        // On the heap only while it lasts: an idle session has no room for it.
        let obeyed = rt::recycled(|| session.take(&epoch, packet.payload())).await;
        core.tally.down(Counter::ClientConnectionsNonIdle);
        // A command that ends the session has not ended itself: what is said last is its answer.
        if let Err(ended) = obeyed {
            break ended;
        }
        if session.entry.released.get() {
            break Ended::ByClient;
        }
        session.entry.rests(core.rt.now());
        session.entry.shows_held(&session.held, core.rt.now());
        session.lingers();
    };

    // Leave nothing behind.
    Box::pin(session.leave(ended)).await;
    drop(on_leaving);
}

impl Session {
    /// The next command, or why there is none. A silent client is sent away after `wait_timeout`,
    /// sooner inside a transaction; who is in the middle of a command is not silent as long as
    /// something of it comes.
    async fn next_command(&mut self) -> Result<Packet, Ended> {
        self.may_go_on().await?;
        let limit = usize::try_from(
            self.core
                .epoch()
                .snapshot
                .variables
                .mysql_max_allowed_packet,
        )
        .unwrap_or(usize::MAX);
        let mut until = self.core.rt.now() + self.patience()?;
        let mut came = self.client.bytes().0;
        loop {
            if self.core.is_left() && Box::pin(self.goes_elsewhere()).await {
                return Err(Ended::Elsewhere);
            }
            let wakes = self.held.next_end().map_or(until, |end| until.min(end));
            let next = self.alarm.until(
                wakes,
                rt::select(self.client.packet(limit), self.entry.bell.heard()),
            );
            let large = match next.await {
                Ok(Either::Left(Ok(packet))) => return Ok(packet),
                Ok(Either::Left(Err(NetError::TooLarge { .. }))) => true,
                Ok(Either::Left(Err(NetError::Malformed(malformed)))) => {
                    return Err(self.cannot_be_read(&malformed));
                }
                Ok(Either::Left(Err(_))) => return Err(Ended::Gone),
                Ok(Either::Right(())) => false,
                Err(_late) if self.core.rt.now() < until => false,
                Err(_late) if self.client.bytes().0 > came => {
                    came = self.client.bytes().0;
                    until = self.core.rt.now() + self.patience()?;
                    false
                }
                Err(_silent) => return Err(Ended::Told(silent())),
            };
            if large {
                Box::pin(self.refuse_large(limit)).await?;
            } else {
                Box::pin(self.let_go_in_time()).await?;
                self.may_go_on().await?;
            }
        }
    }

    /// How long it may be silent from now on.
    fn patience(&self) -> Result<Duration, Ended> {
        let epoch = self.core.epoch();
        let v = &epoch.snapshot.variables;
        let mut patience = if v.mysql_wait_timeout == 0 {
            u64::MAX >> 24
        } else {
            v.mysql_wait_timeout
        };
        // The client's own, in seconds; a server, too, sends it away then.
        if let Some(own) = self
            .state
            .variable("wait_timeout")
            .and_then(|own| own.parse::<u64>().ok())
        {
            patience = patience.min(own.max(1).saturating_mul(1000));
        }
        if self.held.is_in_transaction() {
            patience = patience.min(v.mysql_max_transaction_idle_time);
            let Some(left) = self
                .entry
                .transaction_left(self.core.rt.now(), v.mysql_max_transaction_time)
            else {
                let words = "The client was disconnected by the proxy because its transaction was open for longer than mysql-max_transaction_time";
                return Err(Ended::Told(Complaint::with(4031, "HY000", words)));
            };
            patience = patience.min(left);
        } else {
            self.entry.transaction_since.set(None);
        }
        Ok(Duration::from_millis(patience))
    }

    /// Whether it is to end while it waits: somebody ended it, its server is cut off, or the proxy
    /// drains.
    async fn may_go_on(&mut self) -> Result<(), Ended> {
        if self.entry.killed.get() {
            return Err(Ended::Told(killed()));
        }
        if self.leave_cut_off() {
            Box::pin(self.replay_at_rest(cut_off())).await?;
        }
        if self.core.is_draining() && self.held.is_empty() {
            return Err(Ended::Told(going_down()));
        }
        Ok(())
    }

    /// The client's compressed frames say nothing: what is said of it last is the answer to the
    /// command that was in them.
    fn cannot_be_read(&mut self, malformed: &wire::Malformed) -> Ended {
        self.core.tally.up(Counter::UnexpectedFrontendPackets);
        self.note_end(&format!("it has sent {malformed}"));
        self.entry.command.set("Error");
        self.turn = Turn::after(0);
        let words = format!("Couldn't uncompress communication packet: {malformed}");
        Ended::Told(Complaint::new(errors::NET_UNCOMPRESS, words))
    }

    /// A command that is too large is read to its end and dropped; the session goes on.
    async fn refuse_large(&mut self, limit: usize) -> Result<(), Ended> {
        let (entry, rt) = (self.entry.clone(), self.core.rt.clone());
        let wait_timeout = match self.core.epoch().snapshot.variables.mysql_wait_timeout {
            0 => SKIPPED,
            patience => Duration::from_millis(patience),
        };
        let (begun, came) = (rt.now(), Cell::new(0));
        let skipped = {
            let mut skipping = pin!(rt::select(self.client.skip(&came), entry.told_to_leave()));
            loop {
                let before = came.get();
                let patience = wait_timeout.min(SKIPPED.saturating_sub(rt.now() - begun));
                match rt.timeout(patience, skipping.as_mut()).await {
                    Ok(Either::Left(Err(NetError::Malformed(malformed)))) => break Err(malformed),
                    Ok(Either::Left(skipped)) => break Ok(Some(skipped?)),
                    Ok(Either::Right(())) => break Ok(None),
                    Err(_late) if came.get() > before && !patience.is_zero() => {}
                    Err(_silent) => return Err(Ended::Gone),
                }
            }
        };
        let Some((code, seq)) = skipped.map_err(|malformed| self.cannot_be_read(&malformed))?
        else {
            // It breaks off in the middle of a command: there is no way on.
            self.may_go_on().await?;
            return Err(Ended::Gone);
        };
        if code == command::COM_STMT_PREPARE {
            // What refers to the last statement that was prepared is about this one.
            self.statements.next_id();
        }
        self.turn = Turn {
            sent: seq,
            ..Turn::after(0)
        };
        let words = format!("Got a packet bigger than 'mysql-max_allowed_packet' bytes ({limit})");
        let complaint = Complaint::with(1153, "08S01", words);
        if !command::has_answer(code) {
            // A piece of a parameter: the client would take what is said of it for the answer to
            // what it sends next, which must not run without that piece.
            return Err(Ended::Told(complaint));
        }
        self.refuse(&complaint).await
    }

    /// Gives back what was held for a time that is over.
    async fn let_go_in_time(&mut self) -> Result<(), Ended> {
        self.let_go_of_free();
        let left = self.leave_remembered(self.core.rt.now()).await;
        self.entry.shows_held(&self.held, self.core.rt.now());
        match left {
            // What the session has set went with the connection: a client that went on would not
            // know.
            Err(why @ (Failed::Client | Failed::Backend(_))) => Err(why.ends()),
            // Who told it to end is asked next.
            _ => Ok(()),
        }
    }

    async fn leave(mut self, ended: Ended) {
        if matches!(ended, Ended::Elsewhere) && self.leave_for_another().await {
            return;
        }
        self.let_go();
        self.leave_scripts();
        self.leave_through();
        let ended = match ended {
            // As servers do: whoever is ended by another's KILL hears no word of it, idle or not.
            // (PHP logs a warning for a packet that comes unasked, and who reads 1317 takes the
            // connection for one that goes on.)
            Ended::Told(_) if self.entry.by_client.get() => Ended::Broken,
            // Its server is lost, and it ends as it would before that server: by the close alone
            // each library finds its own number, for which programs look to know that a connection
            // is of no more use.
            Ended::Told(complaint) if complaint.is_of_libraries() => {
                self.core.tally.up(Counter::ClientConnectionsLost);
                self.note_end(&complaint.words);
                Ended::Broken
            }
            ended => ended,
        };
        let by_us = matches!(ended, Ended::Told(_) | Ended::Broken);
        let by_client = matches!(ended, Ended::ByClient);
        if by_client {
            self.audit(Auditable::Quit, None);
        }
        let why = match &ended {
            Ended::Told(complaint) => Some(&*complaint.words),
            _ => None,
        };
        self.audit(Auditable::Close, why);
        match ended {
            Ended::ByClient => {}
            Ended::Told(complaint) => {
                self.core.tally.up(Counter::ClientConnectionsAborted);
                // The client reads it as the answer to whatever it says next, as with a server that
                // kills it.
                let seq = if self.entry.command.get() == "Sleep" {
                    0
                } else {
                    self.turn.next()
                };
                let told = self.told(seq, &complaint);
                let told = self.client.send(told);
                let _late = self.core.rt.timeout(Duration::from_secs(1), told).await;
            }
            Ended::Gone | Ended::Broken | Ended::Elsewhere => {
                self.core.tally.up(Counter::ClientConnectionsAborted)
            }
        }
        if by_client {
            let core = self.core.clone();
            read_to_its_end(
                &core.rt,
                self.client.socket(),
                self.entry.told_to_leave(),
                || core.is_draining(),
            )
            .await;
        }
        drop(self.seats);
        match by_us {
            true => self.client.dismiss(&self.core.rt).await,
            false => self.client.finish(&self.core.rt).await,
        }
    }
}

/// A client that says goodbye behind a statement may read its answer later. A server has all of it in its
/// kernel by then; of ours a part may wait here.
async fn read_to_its_end(
    rt: &Rt,
    socket: &Socket,
    told: impl Future<Output = ()>,
    drains: impl Fn() -> bool,
) {
    let mut told = pin!(told);
    let until = rt.now() + UNREAD;
    while socket.unsent() > 0 && rt.now() < until && !drains() {
        if rt
            .timeout(
                Duration::from_secs(1),
                rt::select(socket.flush(), told.as_mut()),
            )
            .await
            .is_ok()
        {
            return;
        }
    }
}

/// Takes the session off the lists, however it ends: a panic too.
struct Leaving {
    core: Rc<Core>,
    entry: Rc<Entry>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.core.user_went(&self.entry.user.borrow());
        self.entry.holding.take();
        self.core.tally.down(Counter::ClientConnectionsConnected);
        self.core.session_ended(self.entry.id);
        self.core.tracer.forget(self.entry.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::Conn;
    use rt::sim::{Faults, Limits};

    /// Returns how much a client reads that has said goodbye and then does nothing for so long.
    fn read_after(pause: Duration) -> usize {
        const ANSWER: usize = 1 << 20;
        let limits = Limits {
            time_max: Duration::from_secs(3600),
            turns_max: 10_000_000,
        };
        let read = Rc::new(Cell::new(0));
        let came = read.clone();
        rt::sim::run_with(1, Faults::perfect(), limits, |rt| async move {
            let at: rt::Address = "10.0.0.1:6033".parse().unwrap();
            let listener = rt.listen(&at, rt::ListenOptions::default()).unwrap();
            let (client, server) = (
                rt.connect(&at).await.unwrap(),
                listener.accept().await.unwrap(),
            );
            let reader = rt.clone();
            rt.spawn(async move {
                reader.sleep(pause).await;
                while let Ok(chunk) = client.recv().await
                    && !chunk.is_empty()
                {
                    came.set(came.get() + chunk.len());
                    reader.sleep(Duration::from_millis(100)).await;
                }
            });
            server.queue(vec![b'x'; ANSWER]).unwrap();
            let conn = Conn::new(server);
            read_to_its_end(&rt, conn.socket(), std::future::pending(), || false).await;
            conn.finish(&rt).await;
            rt.sleep(UNREAD).await;
        });
        read.get()
    }

    #[test]
    fn who_says_goodbye_may_read_his_answer_later_but_not_for_ever() {
        assert_eq!(read_after(UNREAD / 2), 1 << 20);
        assert!(read_after(UNREAD * 2) < 1 << 20);
    }

    fn size_of_future<A, B, F>(_: fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// Ten thousand clients that only wait should cost little memory.
    #[test]
    fn a_session_is_small() {
        let size = size_of_future(live) + size_of::<Entry>();
        assert!(size <= 1312, "{size}");
    }
}
