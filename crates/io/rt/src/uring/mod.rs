//! The fast driver: io_uring with one ring a core and one system call a turn.
//!
//! Every connection keeps one multishot receive in the kernel, which takes its buffers from a ring
//! that all connections share; so an idle connection owns none. It keeps at most one send in the
//! kernel, for the order's sake, and what is queued behind it goes with the next one, gathered. All
//! that the kernel reads from or writes to belongs to the table here until the completion has come,
//! whatever tasks and futures do meanwhile: that is why this is sound. A send for whose end nobody
//! waits does not wait either, and has a completion only if not all of it went; else it is over
//! when the call that handed it over is.

mod ring;

use crate::address::Address;
use crate::bell::Bell;
use crate::chunk::{Buffer, Chunk, Pool};
use crate::conn::{
    Begun, Conn, Finish, Flying, Listening, NOWHERE, PIECES_MAX, Receiving, State, UNREAD_MAX,
    errno,
};
use crate::gathered::{Gathered, SEND_MAX};
use crate::handed::{Handed, Kind as From};
use crate::hub::{Hub, LINGER, Wait};
use crate::inherit::have_left;
use crate::listen::ListenOptions;
use crate::sys::{self, RawAddress};
use io_uring::{cqueue, opcode, squeue, types};
use ring::{Buffers, Done, GROUP, PATIENT, QUICK, Ring};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll};

/// Several pieces that together are at most so long are copied into one; that costs less than a
/// list of them.
const COPY_MAX: usize = 4 * 1024;

/// So many pieces go with one send.
const PIECES_PER_SEND: usize = 64;

/// So many buffers lie in the kernel's ring at first. Few, so that they stay in the cache; the
/// number doubles when they run out.
const BUFFERS_AT_FIRST: usize = 64;

/// So many accepted connections may wait for `accept`; then they wait in the kernel.
const ACCEPTED_MAX: usize = 256;

/// Subject of a completion, in the top byte of its user data. The rest is the place in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Receive = 1,
    Send = 2,
    Connect = 3,
    Accept = 4,
    Bell = 5,
    Cancel = 6,
}

impl Kind {
    fn data(self, place: u32) -> u64 {
        (self as u64) << 56 | u64::from(place)
    }

    fn of(data: u64) -> Option<Self> {
        [
            Self::Receive,
            Self::Send,
            Self::Connect,
            Self::Accept,
            Self::Bell,
            Self::Cancel,
        ]
        .into_iter()
        .find(|kind| *kind as u64 == data >> 56)
    }
}

enum Entry {
    Free,
    Conn(Rc<Conn>),
    Listening(Rc<Listening>),
}

pub(crate) struct Uring {
    // The ring goes before the buffers, and both before the pool.
    ring: RefCell<Option<Ring>>, // None when the core has ended
    buffers: RefCell<Buffers>,
    buffers_wanted: Cell<usize>,
    pool: Rc<Pool>,
    table: RefCell<Vec<Entry>>,
    free: RefCell<Vec<u32>>,
    starved: RefCell<Vec<Rc<Conn>>>,
    spare: RefCell<Vec<Rc<Conn>>>,
    done: RefCell<Vec<Done>>,
    quick: RefCell<Vec<Rc<Conn>>>, // whose sends will say nothing if they go whole
    quick_left: Cell<bool>,        // some of them since an earlier turn
    can_be_silent: bool,
    bell: RawFd,
}

/// Does io_uring, with all that we need of it, work here?
pub(crate) fn probe() -> io::Result<()> {
    ring::probe()
}

impl Uring {
    pub(crate) fn new(pool: Rc<Pool>, bell: &Bell) -> io::Result<Self> {
        let ring = Ring::of_a_core()?;
        let buffers = Buffers::new(&ring, pool.count())?;
        let can_be_silent = Ring::can_be_silent();
        let this = Self {
            ring: RefCell::new(Some(ring)),
            buffers: RefCell::new(buffers),
            buffers_wanted: Cell::new(BUFFERS_AT_FIRST.min(pool.count())),
            pool,
            table: RefCell::default(),
            free: RefCell::default(),
            starved: RefCell::default(),
            spare: RefCell::default(),
            done: RefCell::default(),
            quick: RefCell::default(),
            quick_left: Cell::new(false),
            can_be_silent,
            bell: bell.fd(),
        };
        this.listen_for_bell();
        Ok(this)
    }

    fn listen_for_bell(&self) {
        let poll = opcode::PollAdd::new(types::Fd(self.bell), libc::POLLIN as u32)
            .multi(true)
            .build();
        self.push(poll, Kind::Bell, 0);
    }

    /// Queues an operation. What it points to is in the table: in the `Flying` of a `Conn`, or
    /// nothing.
    fn push(&self, entry: squeue::Entry, kind: Kind, place: u32) {
        if let Some(ring) = &mut *self.ring.borrow_mut() {
            // SAFETY: sends and connects point into the `flying` of a connection in the table,
            // which stays there until the completion (see `settle`, `sent` and `close`), and whose
            // pieces do not move with it: they are boxed, on the heap or in the pool. Receives use
            // buffers lent by the pool, which outlives the ring. The others point nowhere.
            unsafe { ring.push(entry.user_data(kind.data(place))) };
        }
    }

    fn cancel(&self, kind: Kind, place: u32) {
        self.push(
            opcode::AsyncCancel::new(kind.data(place)).build(),
            Kind::Cancel,
            place,
        );
    }

    fn enter(&self, entry: Entry) -> u32 {
        let mut table = self.table.borrow_mut();
        if let Some(place) = self.free.borrow_mut().pop() {
            table[place as usize] = entry;
            return place;
        }
        table.push(entry);
        u32::try_from(table.len() - 1).expect("descriptors are ints")
    }

    fn leave(&self, place: &Cell<u32>) {
        let place = place.replace(NOWHERE);
        if place != NOWHERE {
            // The entry is dropped, and with it the descriptor, when nothing is borrowed.
            let _entry =
                std::mem::replace(&mut self.table.borrow_mut()[place as usize], Entry::Free);
            self.free.borrow_mut().push(place);
        }
    }

    fn conn_at(&self, place: u32) -> Option<Rc<Conn>> {
        match self.table.borrow().get(place as usize) {
            Some(Entry::Conn(conn)) => Some(conn.clone()),
            _ => None,
        }
    }

    fn adopt(&self, conn: Conn) -> Rc<Conn> {
        let conn = Rc::new(conn);
        conn.place.set(self.enter(Entry::Conn(conn.clone())));
        conn
    }

    pub(crate) fn adopt_fd(&self, fd: OwnedFd) -> Rc<Conn> {
        let conn = self.adopt(Conn::new(Some(fd), None, None));
        self.receive(&conn, &mut conn.state.borrow_mut());
        conn
    }

    /// Nothing is received here any more once the cancellation has come back.
    pub(crate) fn let_go(&self, conn: &Conn) {
        self.stop_receiving(conn, &mut conn.state.borrow_mut());
    }

    // Turns.

    pub(crate) fn turn(&self, hub: &Hub, wait: Wait) {
        self.lend_buffers();
        // One that the kernel did not take in the turn before may be waited for by now.
        let left = self.quick_left.get();
        let wait = match wait {
            _ if left => None,
            Wait::Not => None,
            Wait::Forever => Some(None),
            Wait::Until(at) => Some(Some(at.elapsed_since(hub.look()))),
        };
        let mut done = self.done.take();
        let mut all_told = false;
        if let Some(ring) = &mut *self.ring.borrow_mut() {
            ring.enter(wait);
            // Before its words are taken: what is handed over from here on has not been heard.
            all_told = ring.has_told_all();
            ring.reap(&mut done);
        }
        for &done in &done {
            self.complete(done);
        }
        done.clear();
        *self.done.borrow_mut() = done;
        if all_told {
            self.settle_quick();
        }
        self.quick_left.set(!self.quick.borrow().is_empty());
    }

    /// Settles sends that went quickly: what was handed over and has not complained has gone whole.
    fn settle_quick(&self) {
        if self.quick.borrow().is_empty() {
            return;
        }
        let mut quick = self.quick.take();
        for conn in quick.drain(..) {
            let mut state = conn.state.borrow_mut();
            if std::mem::take(&mut state.quick) {
                let whole = state.flying.len();
                drop(state);
                if let Some(ring) = &mut *self.ring.borrow_mut() {
                    ring.ended_in_silence(1);
                }
                self.sent(&conn, i32::try_from(whole).unwrap_or(i32::MAX));
            }
        }
        // Its room is used again, unless one of them has begun another.
        let mut left = self.quick.borrow_mut();
        if left.is_empty() {
            *left = quick;
        }
    }

    fn complete(&self, done: Done) {
        let place = done.data as u32;
        match Kind::of(done.data) {
            Some(Kind::Receive) => {
                // Taken first, so that it goes back to the pool whatever follows.
                let buffer =
                    cqueue::buffer_select(done.flags).and_then(|index| self.pool.returned(index));
                if let Some(conn) = self.conn_at(place) {
                    self.received(&conn, done, buffer);
                }
            }
            Some(Kind::Send) => {
                if let Some(conn) = self.conn_at(place) {
                    self.sent(&conn, done.result);
                }
            }
            Some(Kind::Connect) => {
                if let Some(conn) = self.conn_at(place) {
                    self.connected(&conn, done.result);
                }
            }
            Some(Kind::Accept) => self.accepted(place, done),
            Some(Kind::Bell) if !cqueue::more(done.flags) => self.listen_for_bell(),
            // A rung bell: the core looks at its remote queue in every turn.
            Some(Kind::Bell | Kind::Cancel) | None => {}
        }
    }

    /// Tops the kernel's ring up, and starts the receives that found it empty.
    fn lend_buffers(&self) {
        let lent = self.pool.lent();
        if lent < self.buffers_wanted.get() {
            let mut buffers = self.buffers.borrow_mut();
            for _ in lent..self.buffers_wanted.get() {
                let Some((index, start)) = self.pool.lend() else {
                    break;
                };
                buffers.add(index, start);
            }
            buffers.publish();
        }
        if self.starved.borrow().is_empty() || self.pool.lent() == 0 {
            return;
        }
        for conn in self.starved.take() {
            let mut state = conn.state.borrow_mut();
            if state.receiving == Receiving::Starved {
                state.receiving = Receiving::Off;
                self.receive(&conn, &mut state);
            }
        }
    }

    // Receiving.

    /// Starts the multishot receive, if it should run and does not.
    fn receive(&self, conn: &Conn, state: &mut State) {
        if state.receiving == Receiving::Off && state.is_open() && conn.place.get() != NOWHERE {
            state.receiving = Receiving::Armed;
            let entry = opcode::RecvMulti::new(types::Fd(conn.fd()), GROUP).build();
            self.push(entry, Kind::Receive, conn.place.get());
        }
    }

    fn stop_receiving(&self, conn: &Conn, state: &mut State) {
        if state.receiving == Receiving::Armed {
            state.receiving = Receiving::Cancelling;
            self.cancel(Kind::Receive, conn.place.get());
        }
    }

    fn received(&self, conn: &Rc<Conn>, done: Done, buffer: Option<Buffer>) {
        let mut state = conn.state.borrow_mut();
        if let (Some(buffer), Ok(len @ 1..)) = (buffer, usize::try_from(done.result)) {
            let chunk = Chunk::pooled(buffer, len);
            // When few buffers are left they must not lie in queues: the bytes move to the heap.
            state.arrived(if self.pool.is_low() {
                Chunk::from(&chunk[..])
            } else {
                chunk
            });
        }
        if !cqueue::more(done.flags) {
            state.receiving = Receiving::Off;
            match -done.result {
                0 => state.ended(0),
                libc::ENOBUFS => {
                    self.buffers_wanted
                        .set((self.buffers_wanted.get() * 2).min(self.pool.count()));
                    if state.is_open() && !state.is_full() {
                        state.receiving = Receiving::Starved;
                        self.starved.borrow_mut().push(conn.clone());
                    }
                }
                // Ours, or the kernel wants us to ask again (its completion queue was full).
                libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
                code @ 1.. => state.ended(code),
                _ => {}
            }
        }
        if state.dropped {
            drop(state);
            self.settle(conn);
        } else if state.parting {
            // Who hands it over waits for this.
            state.reader.fire();
        } else if state.is_full() {
            self.stop_receiving(conn, &mut state);
        } else {
            self.receive(conn, &mut state);
        }
    }

    pub(crate) fn made_room(&self, conn: &Rc<Conn>) {
        let mut state = conn.state.borrow_mut();
        // Half empty, so that it does not stop and start with every piece.
        if state.receiving == Receiving::Off
            && state.unread < UNREAD_MAX / 2
            && state.inbox.len() < PIECES_MAX / 2
        {
            self.receive(conn, &mut state);
        }
    }

    pub(crate) fn is_quiet(&self, conn: &Conn, state: &mut State) -> bool {
        state.receiving == Receiving::Armed || sys::peek(conn.fd()) == 0
    }

    // Sending.

    pub(crate) fn send_news(&self, hub: &Hub) {
        let mut news = self.spare.borrow_mut();
        hub.swap_news(&mut news);
        for conn in news.drain(..) {
            let mut state = conn.state.borrow_mut();
            state.dirty = false;
            self.send(&conn, &mut state, true);
            let dropped = state.dropped;
            drop(state);
            if dropped {
                self.settle(&conn);
            }
        }
    }

    /// Starts a send, if there is something to send and none in the kernel. `sleeps`: the core
    /// looks at nothing else before it may sleep.
    fn send(&self, conn: &Rc<Conn>, state: &mut State, sleeps: bool) {
        if !matches!(state.flying, Flying::None) || conn.place.get() == NOWHERE {
            return;
        }
        let Some(first) = state.outbox.pop_front() else {
            if state.may_finish() {
                sys::finish(conn.fd());
            }
            return;
        };
        let fd = types::Fd(conn.fd());
        state.flying = if state.outbox.is_empty() {
            Flying::One(first)
        } else {
            gather(first, state)
        };
        // Nobody waits for it to be over, and nothing is to follow.
        let ends_nothing = state.writers.is_empty()
            && state.finish == Finish::No
            && !state.dropped
            && state.outbox.is_empty();
        let quick = sleeps && self.can_be_silent && ends_nothing && state.flying.len() < SEND_MAX;
        let flags = if quick { QUICK } else { PATIENT };
        let entry = match &state.flying {
            Flying::One(chunk) => {
                let len = chunk.len().min(SEND_MAX) as u32;
                opcode::Send::new(fd, chunk.as_ptr(), len)
                    .flags(flags)
                    .build()
            }
            Flying::Many(many) => opcode::SendMsg::new(fd, many.header())
                .flags(flags as u32)
                .build(),
            Flying::None | Flying::Connect(_) => return,
        };
        state.quick = quick;
        if quick {
            self.quick.borrow_mut().push(conn.clone());
            return self.push(
                entry.flags(squeue::Flags::SKIP_SUCCESS),
                Kind::Send,
                conn.place.get(),
            );
        }
        self.push(entry, Kind::Send, conn.place.get());
    }

    fn sent(&self, conn: &Rc<Conn>, result: i32) {
        let mut state = conn.state.borrow_mut();
        let flown = std::mem::take(&mut state.flying);
        state.quick = false;
        let mut n = usize::try_from(result).unwrap_or(0);
        state.unsent -= n;
        // What did not go goes back to the front, in order.
        match flown {
            Flying::One(mut chunk) => {
                chunk.advance(n);
                if !chunk.is_empty() {
                    state.outbox.push_front(chunk);
                }
            }
            Flying::Many(many) => {
                let mut rest = many.into_chunks();
                rest.retain_mut(|chunk| {
                    let gone = chunk.len().min(n);
                    chunk.advance(gone);
                    n -= gone;
                    !chunk.is_empty()
                });
                for chunk in rest.into_iter().rev() {
                    state.outbox.push_front(chunk);
                }
            }
            Flying::None | Flying::Connect(_) => {}
        }
        match -result {
            libc::EINTR | libc::EAGAIN => {}
            code @ 1.. => state.send_failed(code),
            _ => state.sent(0),
        }
        if state.send_error != 0 && state.unsent > 0 {
            // It failed while this one flew.
            let code = state.send_error;
            state.send_failed(code);
        }
        self.send(conn, &mut state, false);
        let dropped = state.dropped;
        drop(state);
        if dropped {
            self.settle(conn);
        }
    }

    // Ending.

    pub(crate) fn release(&self, conn: &Rc<Conn>) -> bool {
        if conn.place.get() == NOWHERE {
            return false;
        }
        let mut state = conn.state.borrow_mut();
        self.stop_receiving(conn, &mut state);
        if matches!(state.flying, Flying::Connect(_)) {
            self.cancel(Kind::Connect, conn.place.get());
        }
        let unsent = state.unsent > 0 && state.send_error == 0;
        drop(state);
        if !unsent {
            self.settle(conn);
        }
        unsent
    }

    /// Lets go of a dropped connection when the kernel has nothing of it any more.
    fn settle(&self, conn: &Rc<Conn>) {
        let mut state = conn.state.borrow_mut();
        self.stop_receiving(conn, &mut state);
        let over = state.dropped
            && state.outbox.is_empty()
            && matches!(state.flying, Flying::None)
            && matches!(state.receiving, Receiving::Off | Receiving::Starved);
        drop(state);
        if over {
            self.leave(&conn.place);
        }
    }

    pub(crate) fn abort(&self, conn: &Rc<Conn>) {
        if conn.place.get() == NOWHERE {
            return;
        }
        // The send in the kernel, if any, ends with an error.
        sys::shutdown(conn.fd());
        conn.state.borrow_mut().send_failed(libc::ETIMEDOUT);
        self.settle(conn);
    }

    // Connecting and accepting.

    pub(crate) fn connect(&self, to: &Address) -> io::Result<Begun> {
        let raw = RawAddress::of(to)?;
        if matches!(to, Address::Unix(_)) {
            return self.connect_unix(to, &raw);
        }
        let conn = Conn::new(Some(sys::stream_socket(to, false)?), Some(to.clone()), None);
        sys::no_delay(conn.fd(), to)?;
        let conn = self.adopt(conn);
        let mut state = conn.state.borrow_mut();
        let raw = Box::new(raw);
        let entry = opcode::Connect::new(types::Fd(conn.fd()), raw.as_ptr(), raw.len()).build();
        state.flying = Flying::Connect(raw);
        self.push(entry, Kind::Connect, conn.place.get());
        drop(state);
        Ok(Begun::Conn(conn))
    }

    /// A unix socket connects at once or not at all; when the backlog is full it says EAGAIN, which
    /// is no reason to poll.
    fn connect_unix(&self, to: &Address, raw: &RawAddress) -> io::Result<Begun> {
        let fd = sys::stream_socket(to, true)?;
        let conn = Conn::new(Some(fd), Some(to.clone()), None);
        match sys::connect(conn.fd(), raw) {
            Ok(()) => {
                sys::blocking(conn.fd())?;
                let conn = self.adopt(conn);
                conn.state.borrow_mut().connected = Some(0);
                Ok(Begun::Conn(conn))
            }
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(Begun::Full),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn poll_connected(&self, conn: &Rc<Conn>, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = conn.state.borrow_mut();
        match state.connected {
            Some(result @ ..0) => Poll::Ready(Err(errno(-result))),
            Some(_) => {
                self.receive(conn, &mut state);
                Poll::Ready(Ok(()))
            }
            None => {
                state.wait_to_write(cx);
                Poll::Pending
            }
        }
    }

    fn connected(&self, conn: &Rc<Conn>, result: i32) {
        let mut state = conn.state.borrow_mut();
        state.flying = Flying::None;
        state.connected = Some(result);
        state.wake_writers();
        let dropped = state.dropped;
        drop(state);
        if dropped {
            self.settle(conn);
        }
    }

    pub(crate) fn listen(&self, at: &Address, o: ListenOptions) -> io::Result<Rc<Listening>> {
        let fd = sys::listener(at, o, false)?;
        let mut listening = Listening::new(Some(fd), at.clone());
        listening.local = sys::local_address(listening.fd())?;
        let listening = Rc::new(listening);
        listening
            .place
            .set(self.enter(Entry::Listening(listening.clone())));
        self.accept(&listening);
        Ok(listening)
    }

    /// Starts the multishot accept, if it should run and does not.
    fn accept(&self, listening: &Listening) {
        let mut state = listening.state.borrow_mut();
        let wants = !state.dropped && !have_left();
        if state.armed == Receiving::Off && wants && state.queue.len() < ACCEPTED_MAX {
            state.armed = Receiving::Armed;
            let entry = opcode::AcceptMulti::new(types::Fd(listening.fd()))
                .flags(libc::SOCK_CLOEXEC)
                .build();
            self.push(entry, Kind::Accept, listening.place.get());
        }
    }

    fn accepted(&self, place: u32, done: Done) {
        // SAFETY: a result that is no error is a fresh descriptor, and this completion its only
        // mention. It is taken here, first, so that it is closed whatever follows.
        let fd = (done.result >= 0).then(|| unsafe { OwnedFd::from_raw_fd(done.result) });
        let listening = match self.table.borrow().get(place as usize) {
            Some(Entry::Listening(listening)) => listening.clone(),
            _ => return,
        };
        let mut state = listening.state.borrow_mut();
        match (fd, -done.result) {
            (Some(fd), _) if !state.dropped => state.queue.push_back(fd),
            (Some(_), _)
            | (None, libc::ECANCELED | libc::ECONNABORTED | libc::EINTR | libc::EAGAIN) => {}
            (None, code) => state.error = code,
        }
        state.waker.fire();
        if !cqueue::more(done.flags) {
            state.armed = Receiving::Off;
            let (dropped, failed) = (state.dropped, state.error != 0);
            drop(state);
            if dropped {
                self.leave(&listening.place);
            } else if !failed {
                self.accept(&listening);
            }
        } else if state.queue.len() >= ACCEPTED_MAX && state.armed == Receiving::Armed {
            state.armed = Receiving::Cancelling;
            self.cancel(Kind::Accept, place);
        }
    }

    pub(crate) fn poll_accept(
        &self,
        listening: &Rc<Listening>,
        cx: &Context<'_>,
    ) -> Poll<io::Result<Handed>> {
        let mut state = listening.state.borrow_mut();
        if let Some(fd) = state.queue.pop_front() {
            let again = state.queue.len() < ACCEPTED_MAX / 2 && state.error == 0;
            drop(state);
            if again {
                self.accept(listening);
            }
            return Poll::Ready(Ok(Handed(From::Fd(fd))));
        }
        if listening.place.get() == NOWHERE {
            return Poll::Ready(Err(errno(libc::EBADF)));
        }
        match std::mem::take(&mut state.error) {
            0 => state.waker.register(cx),
            code => return Poll::Ready(Err(errno(code))),
        }
        drop(state);
        // After an error it starts again here, when somebody wants to accept.
        self.accept(listening);
        Poll::Pending
    }

    /// The accept begins anew behind its cancellation, and sees who waits.
    pub(crate) fn look_again(&self, listening: &Listening) {
        let mut state = listening.state.borrow_mut();
        if state.armed == Receiving::Armed {
            state.armed = Receiving::Cancelling;
            self.cancel(Kind::Accept, listening.place.get());
        }
    }

    pub(crate) fn poll_last(
        &self,
        listening: &Rc<Listening>,
        cx: &Context<'_>,
    ) -> Poll<Option<Handed>> {
        let mut state = listening.state.borrow_mut();
        if let Some(fd) = state.queue.pop_front() {
            return Poll::Ready(Some(Handed(From::Fd(fd))));
        }
        if state.armed == Receiving::Armed {
            state.armed = Receiving::Cancelling;
            self.cancel(Kind::Accept, listening.place.get());
        }
        if state.armed != Receiving::Cancelling {
            return Poll::Ready(None);
        }
        state.waker.register(cx);
        Poll::Pending
    }

    pub(crate) fn unlisten(&self, listening: &Rc<Listening>) {
        if listening.place.get() == NOWHERE {
            return;
        }
        if !have_left() {
            // At once, so that nobody connects while the cancellation is on its way.
            sys::shutdown(listening.fd());
        }
        let mut state = listening.state.borrow_mut();
        state.queue.clear();
        match state.armed {
            Receiving::Armed => {
                state.armed = Receiving::Cancelling;
                self.cancel(Kind::Accept, listening.place.get());
            }
            Receiving::Cancelling => {}
            Receiving::Off | Receiving::Starved => {
                drop(state);
                self.leave(&listening.place);
            }
        }
    }

    // The end.

    pub(crate) fn close(&self, hub: &Hub) {
        let until = hub.look() + LINGER;
        loop {
            self.send_news(hub);
            if !self.anybody_sends() || hub.look() >= until {
                break;
            }
            self.turn(hub, Wait::Until(until));
        }
        // Everything that is still in the kernel comes back, cancelled.
        for entry in &*self.table.borrow() {
            if let Entry::Conn(conn) = entry {
                sys::shutdown(conn.fd());
                let mut state = conn.state.borrow_mut();
                state.send_failed(libc::ESHUTDOWN);
                state.ended(libc::ESHUTDOWN);
            }
        }
        let all = opcode::AsyncCancel2::new(types::CancelBuilder::any().all()).build();
        self.push(all, Kind::Cancel, 0);
        let until = hub.look() + LINGER;
        while self.pending() > 0 && hub.look() < until {
            self.turn_to_end(hub, Wait::Until(until));
        }
        let lost = self.pending() > 0;
        let ring = self.ring.take();
        let table = self.table.take();
        for entry in &table {
            match entry {
                Entry::Conn(conn) => conn.place.set(NOWHERE),
                Entry::Listening(listening) => listening.place.set(NOWHERE),
                Entry::Free => {}
            }
        }
        if lost {
            // The kernel kept something beyond all reason. It may still write to it, so nobody may
            // have that memory again.
            std::mem::forget((ring, table, self.pool.clone()));
        }
    }

    fn pending(&self) -> usize {
        self.ring.borrow().as_ref().map_or(0, Ring::pending)
    }

    /// A turn that starts nothing new.
    fn turn_to_end(&self, hub: &Hub, wait: Wait) {
        let Wait::Until(until) = wait else { return };
        let (mut done, mut all_told) = (Vec::new(), false);
        if let Some(ring) = &mut *self.ring.borrow_mut() {
            ring.enter(Some(Some(until.elapsed_since(hub.look()))));
            all_told = ring.has_told_all();
            ring.reap(&mut done);
        }
        for done in done {
            match Kind::of(done.data) {
                Some(Kind::Bell) => {} // nobody listens any more
                Some(Kind::Accept) => {
                    if let Ok(fd @ 0..) = RawFd::try_from(done.result) {
                        // SAFETY: fresh, and this completion is its only mention.
                        drop(unsafe { OwnedFd::from_raw_fd(fd) });
                    }
                }
                _ => self.complete(done),
            }
        }
        if all_told {
            self.settle_quick();
        }
    }

    fn anybody_sends(&self) -> bool {
        self.table.borrow().iter().any(|entry| match entry {
            Entry::Conn(conn) => {
                let state = conn.state.borrow();
                state.dropped && state.unsent > 0
            }
            _ => false,
        })
    }
}

/// Takes more from the outbox to go with `first`.
fn gather(first: Chunk, state: &mut State) -> Flying {
    let together = first.len() + state.outbox.iter().map(|c| c.len()).sum::<usize>();
    if together <= COPY_MAX {
        let mut bytes = Vec::with_capacity(together);
        bytes.extend_from_slice(&first);
        for chunk in state.outbox.drain(..) {
            bytes.extend_from_slice(&chunk);
        }
        return Flying::One(bytes.into());
    }
    let more = state.outbox.len().min(PIECES_PER_SEND - 1);
    let mut chunks = Vec::with_capacity(more + 1);
    chunks.push(first);
    chunks.extend(state.outbox.drain(..more));
    Flying::Many(Gathered::of(chunks))
}
