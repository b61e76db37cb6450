//! What all drivers keep of a connection or a listener: what arrived and was not read, what was
//! handed over and is not sent, and who waits for it.

use crate::address::Address;
use crate::chunk::Chunk;
#[cfg(target_os = "linux")]
use crate::gathered::Gathered;
use crate::inherit::Registered;
use crate::sys;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Context, Waker};

/// A connection stops receiving when it has this many bytes unread.
pub(crate) const UNREAD_MAX: usize = 64 * 1024;

/// ... or this many pieces: each may hold a buffer of the pool.
pub(crate) const PIECES_MAX: usize = 16;

/// `send` waits while this many bytes or more are unsent.
pub(crate) const UNSENT_MAX: usize = 64 * 1024;

/// Pieces up to this size are worth copying together.
pub(crate) const SMALL: usize = 2 * 1024;

/// No place in a driver's table.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Beginning of a connect.
pub(crate) enum Begun {
    /// A connection that is there, or will be. Dropped by its socket, it goes on no further.
    Conn(Rc<Conn>),
    /// A backlog that is full. It is tried again in a moment.
    Full,
}

pub(crate) struct Conn {
    /// Where the driver keeps it; `NOWHERE` before it begins and after it is over.
    pub(crate) place: Cell<u32>,
    fd: Option<OwnedFd>, // None in the simulator
    peer: OnceCell<Address>,
    local: OnceCell<Address>,
    pub(crate) state: RefCell<State>,
}

#[derive(Default)]
pub(crate) struct State {
    // Receiving. unread is the sum of inbox.
    pub(crate) inbox: VecDeque<Chunk>,
    pub(crate) unread: usize,
    pub(crate) eof: bool,
    pub(crate) recv_error: i32, // errno; 0: none
    pub(crate) reader: WakeSlot,
    pub(crate) watcher: WakeSlot, // waits for the end, not for bytes

    // Sending. unsent is the sum of outbox and flying.
    pub(crate) outbox: VecDeque<Chunk>,
    pub(crate) flying: Flying,
    pub(crate) unsent: usize,
    pub(crate) send_error: i32,
    pub(crate) writers: Vec<Waker>,
    pub(crate) dirty: bool, // it is on the core's list of those with something new to send

    pub(crate) finish: Finish,

    /// Whether the connection leaves this core: nothing more is received here.
    pub(crate) parting: bool,
    /// Whether the same end in the same simulated world is somebody else's.
    pub(crate) handed: bool,

    /// The `Socket` is gone; what is unsent has some time left.
    pub(crate) dropped: bool,

    // Connecting: None while it goes on or never began.
    pub(crate) connected: Option<i32>,

    // Of the driver of readiness: what the last edges said.
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) hung_up: bool,

    // Of the uring driver.
    pub(crate) receiving: Receiving,
    pub(crate) quick: bool, // what flies says nothing when it has gone whole
}

/// The end of our side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Finish {
    #[default]
    No,
    /// When all is sent.
    Asked,
    Done,
}

/// The multishot receive of a connection in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Receiving {
    /// Not in the kernel.
    #[default]
    Off,
    /// In the kernel.
    Armed,
    /// In the kernel, and its cancellation is on the way.
    Cancelling,
    /// Not in the kernel because no buffer was free; it starts again when some are.
    Starved,
}

/// Memory that the kernel reads from or writes to until its completion comes. It is dropped no
/// sooner.
#[derive(Default)]
pub(crate) enum Flying {
    #[default]
    None,
    One(Chunk),
    #[cfg(target_os = "linux")]
    Many(Box<Gathered>),
    Connect(
        #[cfg_attr(target_os = "linux", expect(dead_code, reason = "the kernel reads it"))]
        Box<sys::RawAddress>,
    ),
}

impl Flying {
    /// Bytes that are on their way out.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None | Self::Connect(_) => 0,
            Self::One(chunk) => chunk.len(),
            #[cfg(target_os = "linux")]
            Self::Many(many) => many.len(),
        }
    }
}

/// One waiting task. The waker stays when it has been used, because the same task will wait here
/// again.
#[derive(Default)]
pub(crate) struct WakeSlot {
    waker: Option<Waker>,
    armed: bool,
}

impl WakeSlot {
    pub(crate) fn register(&mut self, cx: &Context<'_>) {
        self.armed = true;
        match &self.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => self.waker = Some(cx.waker().clone()),
        }
    }

    pub(crate) fn fire(&mut self) {
        if self.armed {
            self.armed = false;
            if let Some(waker) = &self.waker {
                waker.wake_by_ref();
            }
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Conn {
    pub(crate) fn new(fd: Option<OwnedFd>, peer: Option<Address>, local: Option<Address>) -> Self {
        let once = |address: Option<Address>| address.map_or_else(OnceCell::new, OnceCell::from);
        Self {
            place: Cell::new(NOWHERE),
            fd,
            peer: once(peer),
            local: once(local),
            state: RefCell::default(),
        }
    }

    /// The descriptor; -1, which no call accepts, in the simulator.
    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Another descriptor of the same connection; none where there are no descriptors.
    ///
    /// # Errors
    /// The process has too many.
    pub(crate) fn duplicate(&self) -> io::Result<Option<OwnedFd>> {
        self.fd.as_ref().map(OwnedFd::try_clone).transpose()
    }

    pub(crate) fn peer(&self) -> Address {
        self.peer
            .get_or_init(|| sys::peer_address(self.fd()).unwrap_or(Address::Unix(PathBuf::new())))
            .clone()
    }

    pub(crate) fn local(&self) -> Address {
        self.local
            .get_or_init(|| sys::local_address(self.fd()).unwrap_or(Address::Unix(PathBuf::new())))
            .clone()
    }
}

impl State {
    /// Has the reader so much to do that no more should arrive?
    pub(crate) fn is_full(&self) -> bool {
        self.unread >= UNREAD_MAX || self.inbox.len() >= PIECES_MAX
    }

    /// May bytes still come?
    pub(crate) fn is_open(&self) -> bool {
        !self.eof && self.recv_error == 0 && !self.dropped && !self.parting
    }

    /// Has the peer ended the connection, or its half of it?
    pub(crate) fn is_over(&self) -> bool {
        self.eof || self.hung_up || self.recv_error != 0 || self.send_error != 0
    }

    /// Bytes arrived. Small ones join a piece that waits already, so that a slow reader of many
    /// small messages holds few buffers.
    pub(crate) fn arrived(&mut self, chunk: Chunk) {
        if self.dropped {
            return;
        }
        self.unread += chunk.len();
        match self.inbox.back_mut() {
            None => self.inbox.push_back(chunk),
            Some(last) if chunk.len() <= SMALL => {
                if !last.try_append(&chunk, 2 * SMALL) {
                    // A Vec with room for its followers.
                    let mut bytes = Vec::with_capacity(2 * SMALL);
                    bytes.extend_from_slice(&chunk);
                    self.inbox.push_back(bytes.into());
                }
            }
            Some(_) => self.inbox.push_back(chunk),
        }
        self.reader.fire();
    }

    /// No more bytes will arrive: the peer closed (0), or an error.
    pub(crate) fn ended(&mut self, errno: i32) {
        if errno == 0 {
            self.eof = true;
        } else if self.recv_error == 0 {
            self.recv_error = errno;
        }
        self.reader.fire();
        self.watcher.fire();
    }

    /// Nothing can be sent any more; what was queued is forgotten. A send in the kernel stays until
    /// it completes.
    pub(crate) fn send_failed(&mut self, errno: i32) {
        if self.send_error == 0 {
            self.send_error = errno;
        }
        for chunk in self.outbox.drain(..) {
            self.unsent -= chunk.len();
        }
        self.reader.fire();
        self.watcher.fire();
        self.wake_writers();
    }

    /// `n` more bytes are with the kernel.
    pub(crate) fn sent(&mut self, n: usize) {
        self.unsent -= n;
        if self.unsent < UNSENT_MAX && !self.writers.is_empty() {
            self.wake_writers();
        }
    }

    /// Is it time to tell the peer that no more will come? True once.
    pub(crate) fn may_finish(&mut self) -> bool {
        let now = self.finish == Finish::Asked && self.unsent == 0;
        if now {
            self.finish = Finish::Done;
        }
        now
    }

    pub(crate) fn wake_writers(&mut self) {
        for waker in self.writers.drain(..) {
            waker.wake();
        }
    }

    pub(crate) fn wait_to_write(&mut self, cx: &Context<'_>) {
        if !self.writers.iter().any(|w| w.will_wake(cx.waker())) {
            self.writers.push(cx.waker().clone());
        }
    }

    /// The socket was dropped: nobody reads, nobody waits.
    pub(crate) fn abandon(&mut self) {
        self.dropped = true;
        self.inbox = VecDeque::new();
        self.unread = 0;
        self.reader.clear();
        self.watcher.clear();
        self.writers.clear();
    }
}

/// The first error of a connection, as the operating system would say it.
pub(crate) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// A listener and what it has accepted.
pub(crate) struct Listening {
    pub(crate) place: Cell<u32>,
    pub(crate) fd: Option<OwnedFd>, // None in the simulator
    pub(crate) local: Address,
    pub(crate) state: RefCell<Accepting>,
    /// That it may be left to another process.
    pub(crate) registered: RefCell<Option<Registered>>,
}

#[derive(Default)]
pub(crate) struct Accepting {
    /// Accepted by the kernel, not yet asked for (uring).
    pub(crate) queue: VecDeque<OwnedFd>,
    pub(crate) error: i32,
    pub(crate) waker: WakeSlot,
    pub(crate) readable: bool,   // readiness
    pub(crate) armed: Receiving, // uring
    pub(crate) dropped: bool,
}

impl Listening {
    pub(crate) fn new(fd: Option<OwnedFd>, local: Address) -> Self {
        Self {
            place: Cell::new(NOWHERE),
            registered: RefCell::new(fd.as_ref().and_then(|fd| Registered::of(&local, fd))),
            fd,
            local,
            state: RefCell::default(),
        }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}
