//! The driver that is told who is ready, and then makes plain system calls: over epoll where
//! io_uring is forbidden, over kqueue on FreeBSD.
//!
//! Nothing is read before a task asks for it, so backpressure needs no code here: what is not read
//! stays in the kernel.

#[cfg(target_os = "linux")]
mod epoll;
mod kernel;
#[cfg(any(target_os = "freebsd", test))]
mod kqueue;
#[cfg(all(target_os = "linux", test))]
mod model;
#[cfg(all(target_os = "linux", test))]
mod suites;

use crate::address::Address;
use crate::bell::Bell;
use crate::chunk::{CHUNK_LEN, Chunk};
use crate::conn::{Begun, Conn, Listening, NOWHERE, State, errno};
use crate::handed::{Handed, Kind};
use crate::hub::{Hub, LINGER, Wait};
use crate::inherit::have_left;
use crate::listen::ListenOptions;
use crate::sys::{self, RawAddress};
use kernel::{Kernel, News, Watched};
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(crate) use epoll::Epoll;
/// The kqueue of a core; on Linux, in tests of this crate, a model of one.
#[cfg(target_os = "freebsd")]
pub(crate) type Kqueue = kqueue::Kqueue<std::sync::Arc<crate::kevent::Calls>>;
#[cfg(all(target_os = "linux", test))]
pub(crate) type Kqueue = kqueue::Kqueue<model::Model>;

const EVENTS_PER_TURN: usize = 512;
const PIECES_PER_SEND: usize = 32;

/// The driver of readiness over one of the kernels.
pub(crate) struct Readiness<K: Kernel> {
    kernel: K,
    table: RefCell<Vec<Entry>>,
    free: RefCell<Vec<u32>>,
    conns: Cell<usize>,
    events: RefCell<Vec<K::Event>>,
    spare: RefCell<Vec<Rc<Conn>>>,
}

enum Entry {
    Free,
    Conn(Rc<Conn>),
    Listening(Rc<Listening>),
}

impl<K: Kernel> Readiness<K> {
    /// Opens the driver of a core that this bell wakes.
    pub(crate) fn new(bell: &Bell) -> io::Result<Self> {
        Ok(Self {
            kernel: K::open(bell)?,
            table: RefCell::default(),
            free: RefCell::default(),
            conns: Cell::new(0),
            events: RefCell::new(vec![K::BLANK; EVENTS_PER_TURN]),
            spare: RefCell::default(),
        })
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
        if place == NOWHERE {
            return;
        }
        // The entry is dropped, and with it maybe the descriptor, when nothing is borrowed.
        let entry = std::mem::replace(&mut self.table.borrow_mut()[place as usize], Entry::Free);
        if matches!(entry, Entry::Conn(_)) {
            self.conns.set(self.conns.get() - 1);
        }
        self.free.borrow_mut().push(place);
    }

    fn adopt(&self, conn: Conn) -> io::Result<Rc<Conn>> {
        let conn = Rc::new(conn);
        conn.place.set(self.enter(Entry::Conn(conn.clone())));
        self.conns.set(self.conns.get() + 1);
        let place = conn.place.get();
        let added = self.kernel.watch(conn.fd(), Watched::Connection, place);
        if added.is_err() {
            self.leave(&conn.place);
        }
        added.map(|()| conn)
    }

    pub(crate) fn adopt_fd(&self, fd: OwnedFd) -> io::Result<Rc<Conn>> {
        let conn = Conn::new(Some(fd), None, None);
        conn.state.borrow_mut().writable = true;
        self.adopt(conn)
    }

    /// Leaves a connection to another core, which hears of what comes from now on. Closing our
    /// descriptor would not end our listening, since that core has a copy.
    pub(crate) fn let_go(&self, conn: &Conn) {
        self.kernel.forget(conn.fd(), Watched::Connection);
    }

    pub(crate) fn turn(&self, hub: &Hub, wait: Wait) {
        let at_most = match wait {
            Wait::Not => Some(Duration::ZERO),
            Wait::Forever => None,
            Wait::Until(at) => Some(at.elapsed_since(hub.look())),
        };
        let mut events = self.events.borrow_mut();
        // An error can only be EINTR: the next turn waits again.
        let n = self.kernel.wait(&mut events, at_most).unwrap_or(0);
        for news in events[..n].iter().filter_map(K::news) {
            // Descriptors close between turns only, so the entry is the one that the event speaks
            // of.
            match self.table.borrow().get(news.place as usize) {
                Some(Entry::Conn(conn)) => tell(hub, conn, news),
                Some(Entry::Listening(listening)) => {
                    let mut state = listening.state.borrow_mut();
                    state.readable = true;
                    state.waker.fire();
                }
                Some(Entry::Free) | None => {}
            }
        }
    }

    pub(crate) fn send_news(&self, hub: &Hub) {
        let mut news = self.spare.borrow_mut();
        hub.swap_news(&mut news);
        for conn in news.drain(..) {
            let mut state = conn.state.borrow_mut();
            state.dirty = false;
            send_outbox(&conn, &mut state);
            if state.may_finish() {
                sys::finish(conn.fd());
            }
            let done = state.dropped && state.unsent == 0;
            drop(state);
            if done {
                self.leave(&conn.place);
            }
        }
    }

    pub(crate) fn read(
        &self,
        hub: &Hub,
        conn: &Rc<Conn>,
        state: &mut State,
        cx: &Context<'_>,
    ) -> Option<io::Result<Chunk>> {
        if !state.readable {
            return None;
        }
        if !hub.may_read(cx) {
            return None;
        }
        let result = receive(hub, conn);
        match &result {
            Ok(chunk) if chunk.is_empty() => state.ended(0),
            // Less than was asked for: the kernel has no more, and what comes later is a new edge.
            // An end that the last edge told of has no edge of its own.
            Ok(chunk) => state.readable = chunk.len() == CHUNK_LEN || state.hung_up,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                state.readable = false;
                return None;
            }
            Err(e) => state.ended(e.raw_os_error().unwrap_or(libc::EIO)),
        }
        Some(result)
    }

    pub(crate) fn made_room(&self, _: &Rc<Conn>) {}

    pub(crate) fn is_quiet(&self, conn: &Conn, state: &mut State) -> bool {
        if state.readable && sys::peek(conn.fd()) == 0 {
            // The last read took exactly what there was.
            state.readable = false;
        }
        !state.readable
    }

    pub(crate) fn release(&self, conn: &Rc<Conn>) -> bool {
        let state = conn.state.borrow();
        let unsent = conn.place.get() != NOWHERE && state.unsent > 0 && state.send_error == 0;
        drop(state);
        if !unsent {
            self.leave(&conn.place);
        }
        unsent
    }

    pub(crate) fn abort(&self, conn: &Rc<Conn>) {
        if conn.place.get() != NOWHERE {
            sys::shutdown(conn.fd());
            self.leave(&conn.place);
        }
    }

    pub(crate) fn connect(&self, to: &Address) -> io::Result<Begun> {
        let raw = RawAddress::of(to)?;
        let fd = sys::stream_socket(to, true)?;
        let conn = Conn::new(Some(fd), Some(to.clone()), None);
        sys::no_delay(conn.fd(), to)?;
        match sys::connect(conn.fd(), &raw) {
            Ok(()) => {
                let mut state = conn.state.borrow_mut();
                (state.writable, state.connected) = (true, Some(0));
                drop(state);
                self.adopt(conn).map(Begun::Conn)
            }
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {
                self.adopt(conn).map(Begun::Conn)
            }
            // A unix listener whose backlog is full has no other way to say so.
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(Begun::Full),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn poll_connected(&self, conn: &Rc<Conn>, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = conn.state.borrow_mut();
        if state.connected.is_some() {
            // At once.
            return Poll::Ready(Ok(()));
        }
        if state.writable {
            return Poll::Ready(sys::take_error(conn.fd()));
        }
        state.wait_to_write(cx);
        Poll::Pending
    }

    pub(crate) fn listen(&self, at: &Address, o: ListenOptions) -> io::Result<Rc<Listening>> {
        let fd = sys::listener(at, o, true)?;
        let mut listening = Listening::new(Some(fd), at.clone());
        listening.local = sys::local_address(listening.fd())?;
        let listening = Rc::new(listening);
        listening
            .place
            .set(self.enter(Entry::Listening(listening.clone())));
        let place = listening.place.get();
        let added = self.kernel.watch(listening.fd(), Watched::Listener, place);
        if added.is_err() {
            self.unlisten(&listening);
        }
        added.map(|()| listening)
    }

    pub(crate) fn poll_accept(
        &self,
        listening: &Rc<Listening>,
        cx: &Context<'_>,
    ) -> Poll<io::Result<Handed>> {
        let mut state = listening.state.borrow_mut();
        while state.readable && !have_left() {
            match sys::accept(listening.fd()) {
                Ok(fd) => return Poll::Ready(Ok(Handed(Kind::Fd(fd)))),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => state.readable = false,
                // The one that we would have accepted left before.
                Err(e) if matches!(e.raw_os_error(), Some(libc::ECONNABORTED | libc::EINTR)) => {}
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        if listening.place.get() == NOWHERE {
            return Poll::Ready(Err(errno(libc::EBADF)));
        }
        state.waker.register(cx);
        Poll::Pending
    }

    pub(crate) fn unlisten(&self, listening: &Rc<Listening>) {
        if listening.place.get() != NOWHERE {
            self.kernel.forget(listening.fd(), Watched::Listener);
            self.leave(&listening.place);
        }
    }

    pub(crate) fn close(&self, hub: &Hub) {
        let until = hub.look() + LINGER;
        loop {
            self.send_news(hub);
            if !self.anybody_sends() || hub.look() >= until {
                break;
            }
            self.turn(hub, Wait::Until(until));
        }
        let table = std::mem::take(&mut *self.table.borrow_mut());
        self.free.borrow_mut().clear();
        for entry in &table {
            match entry {
                Entry::Conn(conn) => {
                    conn.place.set(NOWHERE);
                    sys::shutdown(conn.fd());
                    let mut state = conn.state.borrow_mut();
                    state.send_failed(libc::ESHUTDOWN);
                    state.ended(libc::ESHUTDOWN);
                }
                Entry::Listening(listening) => listening.place.set(NOWHERE),
                Entry::Free => {}
            }
        }
    }

    fn anybody_sends(&self) -> bool {
        self.conns.get() > 0
            && self.table.borrow().iter().any(|entry| match entry {
                Entry::Conn(conn) => {
                    let state = conn.state.borrow();
                    state.dropped && state.unsent > 0
                }
                _ => false,
            })
    }
}

/// Takes in what has changed for a connection.
fn tell(hub: &Hub, conn: &Rc<Conn>, news: News) {
    let mut state = conn.state.borrow_mut();
    if news.readable {
        state.readable = true;
        if news.ended {
            state.hung_up = true;
            state.watcher.fire();
        }
        state.reader.fire();
    }
    if news.writable && !state.writable {
        state.writable = true;
        if state.outbox.is_empty() {
            state.wake_writers(); // one that connects
        } else if !state.dirty {
            state.dirty = true;
            hub.has_news(conn.clone());
        }
    }
}

/// Reads once, into a pooled buffer; to the heap when the pool runs low.
fn receive(hub: &Hub, conn: &Conn) -> io::Result<Chunk> {
    let low = hub.pool.is_low();
    let Some(mut buffer) = hub.pool.take() else {
        let mut bytes = vec![0; CHUNK_LEN];
        let n = read_some(conn, &mut bytes)?;
        return Ok(Chunk::from(&bytes[..n]));
    };
    let n = read_some(conn, buffer.bytes_mut())?;
    if n == 0 {
        return Ok(Chunk::empty());
    }
    let chunk = Chunk::pooled(buffer, n);
    Ok(if low { Chunk::from(&chunk[..]) } else { chunk })
}

fn read_some(conn: &Conn, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match sys::recv(conn.fd(), into) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Hands over as much of the outbox as the kernel takes.
fn send_outbox(conn: &Conn, state: &mut State) {
    while state.writable && !state.outbox.is_empty() {
        let sent = match (state.outbox.len(), state.outbox.front()) {
            // As most often: nothing to be gathered.
            (1, Some(only)) => sys::send(conn.fd(), &[IoSlice::new(only)]),
            _ => send_several(conn, state),
        };
        match sent {
            Ok(n) => {
                take_front(state, n);
                state.sent(n);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => state.writable = false,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => state.send_failed(e.raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

/// Sends as many pieces as fit into one call.
fn send_several(conn: &Conn, state: &State) -> io::Result<usize> {
    let mut pieces = [IoSlice::new(&[]); PIECES_PER_SEND];
    let mut used = 0;
    for (piece, chunk) in pieces.iter_mut().zip(&state.outbox) {
        *piece = IoSlice::new(chunk);
        used += 1;
    }
    sys::send(conn.fd(), &pieces[..used])
}

/// Drops `n` bytes from the front of the outbox.
fn take_front(state: &mut State, mut n: usize) {
    while n > 0
        && let Some(first) = state.outbox.front_mut()
    {
        if first.len() > n {
            first.advance(n);
            return;
        }
        n -= first.len();
        state.outbox.pop_front();
    }
}
