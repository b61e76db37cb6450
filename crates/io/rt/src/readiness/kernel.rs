//! The seam between the driver of readiness and what tells it who is ready: epoll or kqueue.

use crate::bell::Bell;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Kind of a descriptor that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Connection, which may get readable and writable.
    Connection,
    /// Listener, which only ever gets readable.
    Listener,
}

/// Change of a descriptor, in words that both kernels share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// Number that was given with the descriptor.
    pub(crate) place: u32,
    /// Bytes, an end, an error or a client wait to be taken.
    pub(crate) readable: bool,
    /// A connect has ended, or bytes may be sent again.
    pub(crate) writable: bool,
    /// The peer has ended its half or the whole; bytes from before may still wait.
    pub(crate) ended: bool,
}

/// Interface of an operating system that tells of readiness once, when it begins: by edges.
///
/// The driver is generic over it, so a core makes no indirect call on its way to the kernel.
pub(crate) trait Kernel: Sized {
    /// Event as this kernel writes it.
    type Event: Copy;
    /// Value that is there before the kernel has written any.
    const BLANK: Self::Event;

    /// Opens the interface for a core that this bell wakes.
    fn open(bell: &Bell) -> io::Result<Self>;

    /// Tells of this descriptor from now on, and at once of what is so already. Closing the
    /// descriptor ends that, unless another one of the same connection is open.
    fn watch(&self, fd: RawFd, kind: Watched, place: u32) -> io::Result<()>;

    /// Tells of this descriptor no more, though it stays open.
    fn forget(&self, fd: RawFd, kind: Watched);

    /// Waits for events, at most so long (`None`: for ever), and says how many there are.
    fn wait(&self, events: &mut [Self::Event], at_most: Option<Duration>) -> io::Result<usize>;

    /// Meaning of an event; none for the bell, since a core looks at its remote queue in every turn.
    fn news(event: &Self::Event) -> Option<News>;
}
