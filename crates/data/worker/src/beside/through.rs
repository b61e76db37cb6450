//! A session with nothing between its sockets: of a `fast_forward` user, or one that follows a
//! server's log. Bytes go as they come; all that is looked at is where a command begins, so that
//! nobody becomes somebody else unseen.

use crate::command::trouble::Ended;
use crate::core::Core;
use crate::core::roster::Entry;
use crate::known::answer::{Complaint, cut_off, killed};
use crate::known::epoch::Epoch;
use crate::session::Session;
use crate::session::through::{Came, Event, Log, Said, Stopped, Through, follows_log, open};
use backend::{Backend, Idle};
use bridge::Counter;
use net::{Conn, NetError};
use rt::{Chunk, Either};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use wire::command;
use wire::command::{COM_CHANGE_USER, COM_QUIT, COM_SLEEP, COM_STATISTICS, COM_STMT_PREPARE};
use wire::downstream::Downstream;
use wire::upstream::{Begins, Then, Upstream};

/// How often a session looks whether it has been silent for too long, if that is later.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Whether the server may have said all that it has to say to this command: no answer ends within a
/// packet.
const fn may_be_answered(command: u8, said: &Downstream) -> bool {
    match command {
        // The log of one who has no other business here.
        _ if follows_log(command) => false,
        // A line, and columns that no EOF need follow.
        COM_STATISTICS | COM_STMT_PREPARE => said.is_between(),
        _ => said.may_have_ended(),
    }
}

impl Session {
    /// Carries bytes between the client and its backend until the session ends, or the client wants
    /// to become somebody else, or the server refuses to let its log be followed: what the client
    /// says is still to be read then.
    pub(crate) async fn go_through(&mut self) -> Result<(), Ended> {
        let Some(mut through) = self.through.take() else {
            return Ok(());
        };
        let Through {
            backend,
            last,
            log,
            is_due,
            ..
        } = &mut *through;
        let hostgroup = backend.place().server().hostgroup;
        // Nobody else will ever have it.
        backend.idle = Idle::Doubtful;
        self.entry.comes("Fast Forward");
        self.entry.begins("Fast Forward", b"", self.core.rt.now());
        self.entry.works_on(hostgroup, backend);
        self.core.tally.up(Counter::ClientConnectionsForwarded);
        let ended = self.carry(backend, *last, log, is_due).await;
        self.core.tally.down(Counter::ClientConnectionsForwarded);
        self.entry.rests(self.core.rt.now());
        if through.log.is_some() && ended.is_ok() {
            return self.end_log(through.backend);
        }
        through.waits = true;
        self.through = Some(through);
        if ended.is_err() {
            self.leave_through();
        }
        ended
    }

    /// Whether its bytes go to its backend as they come.
    pub(crate) fn goes_through(&self) -> bool {
        self.through.as_ref().is_some_and(|through| !through.waits)
    }

    /// Whether it wants to become somebody else before it was told what it has asked for: what we
    /// say would be taken for that.
    pub(crate) fn is_due_through(&self) -> bool {
        self.through.as_ref().is_some_and(|through| through.is_due)
    }

    /// Closes the connection that was this client's.
    pub(crate) fn leave_through(&mut self) {
        if let Some(through) = self.through.take() {
            through.close(&self.core);
        }
    }

    /// A connection for who it becomes. The one that it has is given back first if the new one
    /// would have to wait for it, and closed at once if its server is cut off: none is left then if
    /// there is an error.
    pub(crate) async fn change_through(
        &mut self,
        epoch: &Epoch,
        said: &Said<'_>,
    ) -> Result<Option<Box<Through>>, Complaint> {
        let is_there = |through: &Through| {
            through.backend.place().server().hostgroup == said.user.default_hostgroup
        };
        if self.through.as_deref().is_some_and(is_there)
            && self.core.pools.is_full(said.user.default_hostgroup)
        {
            self.leave_through();
        }
        let (core, entry) = (self.core.clone(), self.entry.clone());
        let old = &mut self.through;
        let told = async {
            while !entry.killed.get() && !entry.interrupted.get() {
                if let Some(cut) = old.take_if(|through| through.backend.place().is_cut_off()) {
                    cut.close(&core);
                }
                entry.bell.heard().await;
            }
        };
        let opened = open(&self.core, epoch, &self.client, &self.entry, said, told).await?;
        Ok(opened.map(Through::new))
    }

    /// Lets the session stay who it was, on the connection that it had, with nothing of what it had
    /// set. A MariaDB that refuses a change of user does so.
    pub(crate) async fn stay_through(&mut self) -> Result<(), Ended> {
        let Some(mut through) = self.through.take() else {
            return Ok(());
        };
        let limit_ms = self
            .core
            .epoch()
            .snapshot
            .variables
            .mysql_connect_timeout_server_max;
        let renewed = self
            .watched(
                limit_ms,
                through.backend.renew(),
                self.entry.told_to_leave(),
            )
            .await;
        (through.last, through.waits) = (COM_SLEEP, false);
        self.through = Some(through);
        if renewed.is_err() {
            self.leave_through();
        }
        renewed.map_err(|_| Ended::Broken)
    }

    async fn carry(
        &mut self,
        backend: &mut Backend,
        mut last: u8,
        log: &mut Option<Box<Log>>,
        is_due: &mut bool,
    ) -> Result<(), Ended> {
        // Whether the client waits for an answer, as far as one can tell without looking at
        // answers.
        let waits = Rc::new(Cell::new(last != COM_SLEEP));
        let mut stop = pin!(stopped(
            self.core.clone(),
            self.entry.clone(),
            waits.clone()
        ));
        let (mut upstream, mut downstream) = (Upstream::default(), Downstream::default());
        let mut kept = Vec::new();
        let mut nap = None;
        let mut reads = true;
        if follows_log(last) {
            self.entry.command.set(command::name(last));
        }
        let ended = loop {
            match next(
                &mut self.client,
                reads,
                &mut backend.conn,
                &mut nap,
                stop.as_mut(),
            )
            .await
            {
                Event::Down(Ok(chunk)) if !chunk.is_empty() => {
                    downstream.follow(&chunk);
                    waits.set(!may_be_answered(last, &downstream));
                    self.entry.since.set(self.core.rt.now());
                    backend.carried_down(chunk.len());
                    let came = match log.as_mut().map(|log| log.follow(&chunk)) {
                        None => Came::More,
                        Some(Ok(came)) => came,
                        Some(Err(_malformed)) => break Ended::Broken,
                    };
                    let per_second = self
                        .core
                        .epoch()
                        .snapshot
                        .variables
                        .mysql_throttle_max_bytes_per_second_to_client;
                    if per_second > 0 {
                        let pause =
                            self.entry
                                .pace
                                .spend(self.core.rt.now(), chunk.len(), per_second);
                        let rt = self.core.rt.clone();
                        nap = Some(Box::pin(async move { rt.sleep(pause).await }) as Nap);
                    }
                    if self.client.queue(chunk).is_err() {
                        break Ended::Gone;
                    }
                    match came {
                        Came::More => {}
                        // Nothing else will run here.
                        Came::Begun => self.let_go(),
                        Came::Refused if last == COM_QUIT => break Ended::ByClient,
                        Came::Refused if !upstream.is_between() => break Ended::Broken,
                        Came::Refused => {
                            if !kept.is_empty() {
                                self.client.put_back(Chunk::from(kept));
                            }
                            return Ok(());
                        }
                        Came::Ended => {
                            let told = rt::select(
                                self.client.flush(),
                                rt::select(stop.as_mut(), self.core.rt.sleep(LOOK_AGAIN)),
                            );
                            let _sent_or_told = told.await;
                            break Ended::Broken;
                        }
                    }
                }
                Event::Up(Ok(chunk)) if !chunk.is_empty() => {
                    let mut chunk = glued(&mut kept, chunk);
                    let (mut commands, mut begun, mut asks) = (0, Vec::new(), false);
                    let packed = backend.conn.compression().is_some();
                    // A client that compresses counts from frames that its server has never seen.
                    // One that unpacks does not look, and has no number for commands.
                    let recounts = log.is_none() && self.client.compression().is_some();
                    let asked = recounts.then(|| downstream.next_number().max(u8::from(packed)));
                    let passed = upstream.follow(&mut chunk, asked, |at, begins| {
                        let passes = match begins {
                            Begins::File => log.is_none(),
                            Begins::Command(command) if log.is_some() => Log::lets_through(command),
                            Begins::Command(command) => command != COM_CHANGE_USER,
                        };
                        asks |= passes && begins == Begins::File;
                        if let (Begins::Command(command), true) = (begins, passes) {
                            asks |= command::has_answer(command);
                            commands += u64::from(log.is_none());
                            last = if command == COM_QUIT || log.is_none() {
                                command
                            } else {
                                last
                            };
                        }
                        if packed && passes {
                            begun.push((at, begins));
                        }
                        passes
                    });
                    if recounts {
                        // A command behind a file that breaks off is no more of it.
                        self.client.in_order(upstream.is_in_file());
                    }
                    if passed.then == Then::OutOfOrder {
                        // In the middle of an answer there is no room for words.
                        break if waits.get() {
                            Ended::Broken
                        } else {
                            Ended::Told(out_of_order())
                        };
                    }
                    if passed.len < chunk.len() {
                        let front = chunk.split_to(passed.len);
                        let rest = std::mem::replace(&mut chunk, front);
                        if passed.then == Then::Stop {
                            self.client.put_back(rest);
                            reads = false;
                        } else {
                            kept = rest.into_vec();
                        }
                    }
                    waits.set(waits.get() || asks);
                    if commands > 0 && follows_log(last) {
                        self.entry.command.set(command::name(last));
                    }
                    self.entry.since.set(self.core.rt.now());
                    self.core.tally.add(Counter::Questions, commands);
                    backend.carried_up(chunk.len(), commands);
                    if send_up(&mut backend.conn, chunk, &begun).is_err() {
                        break Ended::Broken;
                    }
                    if passed.then == Then::Stop && log.is_none() {
                        *is_due = waits.get() || !downstream.is_between();
                        return Ok(());
                    }
                }
                Event::Down(_) => {
                    // All that it has said before.
                    let told = rt::select(
                        self.client.flush(),
                        rt::select(stop.as_mut(), self.core.rt.sleep(LOOK_AGAIN)),
                    );
                    let _sent_or_told = told.await;
                    break if last == COM_QUIT {
                        Ended::ByClient
                    } else {
                        Ended::Broken
                    };
                }
                Event::Up(_) if last == COM_QUIT => break Ended::ByClient,
                Event::Up(_) => {
                    if waits.get() {
                        self.core.tally.up(Counter::KilledBackendConnections);
                        if self
                            .core
                            .epoch()
                            .snapshot
                            .variables
                            .mysql_kill_backend_connection_when_disconnect
                        {
                            self.end_on_server(backend);
                        }
                    }
                    break Ended::Gone;
                }
                Event::Broken => {
                    break if last == COM_QUIT {
                        Ended::ByClient
                    } else {
                        Ended::Gone
                    };
                }
                Event::Stopped(Stopped::Interrupted) => {
                    let _told_by_the_answer = self.interrupt_on_server(backend);
                    // Nobody waits for what becomes of that, and a session may keep it after its
                    // log.
                    backend.retire();
                    stop.set(stopped(
                        self.core.clone(),
                        self.entry.clone(),
                        waits.clone(),
                    ));
                }
                Event::Stopped(why) => {
                    if waits.get() {
                        self.end_on_server(backend);
                        // Whatever has come of the answer, these would be words in the middle of
                        // it.
                        break Ended::Broken;
                    }
                    break Ended::Told(match why {
                        Stopped::CutOff => cut_off(),
                        Stopped::Silent => silent(),
                        Stopped::Killed | Stopped::Interrupted => killed(),
                    });
                }
            }
        };
        Err(ended)
    }
}

/// The beginning of a packet that had to wait, and what follows it.
fn glued(kept: &mut Vec<u8>, chunk: Chunk) -> Chunk {
    if kept.is_empty() {
        return chunk;
    }
    let mut all = std::mem::take(kept);
    all.extend_from_slice(&chunk);
    Chunk::from(all)
}

/// To the server. `begun`: what begins where, if it is compressed.
///
/// A server that unpacks looks at the numbers of frames and not at those of the packets in them. So
/// what may be a file begins a frame, with the number that is next: it is taken for one where the
/// server has asked for it, and for a command nowhere, as long as the number is not that of a
/// command.
fn send_up(server: &mut Conn, mut chunk: Chunk, begun: &[(usize, Begins)]) -> Result<(), NetError> {
    let mut from = 0;
    for (begin, begins) in begun {
        let before = chunk.split_to(begin - from);
        server.queue(before)?;
        match begins {
            Begins::Command(_) => server.begin_command(),
            Begins::File if server.is_next_frame_first() => {
                return Err(NetError::Malformed(wire::Malformed::new(
                    "packets out of order",
                )));
            }
            Begins::File => {}
        }
        from = *begin;
    }
    server.queue(chunk)
}

/// For so long a client is sent nothing.
type Nap = Pin<Box<dyn Future<Output = ()>>>;

/// Waits for whichever comes first. Each direction goes on while the other waits.
///
/// `reads`: whether what the client says is wanted; else only that it leaves.
async fn next(
    client: &mut Conn,
    reads: bool,
    server: &mut Conn,
    nap: &mut Option<Nap>,
    mut stop: Pin<&mut impl Future<Output = Stopped>>,
) -> Event {
    poll_fn(|cx| {
        if nap
            .as_mut()
            .is_some_and(|nap| nap.as_mut().poll(cx).is_ready())
        {
            *nap = None;
        }
        match server.poll_room(cx) {
            Poll::Ready(Ok(())) if !reads => {
                if pin!(client.socket().closed()).poll(cx).is_ready() {
                    return Poll::Ready(Event::Up(Ok(Chunk::default())));
                }
            }
            Poll::Ready(Ok(())) => {
                if let Poll::Ready(came) = client.poll_recv(cx) {
                    return Poll::Ready(Event::Up(came));
                }
            }
            Poll::Ready(Err(_)) => return Poll::Ready(Event::Broken),
            // What it has said may have to wait for long; that it has left does not.
            Poll::Pending => {
                if pin!(client.socket().closed()).poll(cx).is_ready() {
                    return Poll::Ready(Event::Up(Ok(Chunk::default())));
                }
            }
        }
        match client.poll_room(cx) {
            Poll::Ready(Ok(())) if nap.is_some() => {}
            Poll::Ready(Ok(())) => {
                if let Poll::Ready(came) = server.poll_recv(cx) {
                    return Poll::Ready(Event::Down(came));
                }
            }
            Poll::Ready(Err(_)) => return Poll::Ready(Event::Broken),
            Poll::Pending => {}
        }
        stop.as_mut().poll(cx).map(Event::Stopped)
    })
    .await
}

async fn stopped(core: Rc<Core>, entry: Rc<Entry>, waits: Rc<Cell<bool>>) -> Stopped {
    let told = async {
        loop {
            if entry.killed.get() {
                return Stopped::Killed;
            }
            if entry.cut.get() {
                return Stopped::CutOff;
            }
            if entry.interrupted.take() {
                return Stopped::Interrupted;
            }
            entry.bell.heard().await;
        }
    };
    let silent = async {
        loop {
            let patience = core.epoch().snapshot.variables.mysql_wait_timeout;
            let silence = core.rt.now() - entry.since.get();
            let left = Duration::from_millis(patience).saturating_sub(silence);
            if patience > 0 && left.is_zero() && !waits.get() {
                return;
            }
            let nap = if patience > 0 && !left.is_zero() {
                left.min(LOOK_AGAIN)
            } else {
                LOOK_AGAIN
            };
            core.rt.sleep(nap).await;
        }
    };
    match rt::select(told, silent).await {
        Either::Left(why) => why,
        Either::Right(()) => Stopped::Silent,
    }
}

/// For a client that has said nothing for too long.
pub(crate) fn silent() -> Complaint {
    Complaint::with(
        4031,
        "HY000",
        "The client was disconnected by the proxy because of inactivity",
    )
}

/// For a client whose packets do not follow each other.
fn out_of_order() -> Complaint {
    Complaint::with(1156, "08S01", "Got packets out of order")
}
