//! A connection between two cores: it belongs to none, and any may adopt it.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::OwnedFd;

/// A connection that no core has. It may cross threads, to cores with the same driver. Dropped, it
/// is closed.
pub struct Handed(pub(crate) Kind);

pub(crate) enum Kind {
    Fd(OwnedFd),
    Sim(Away),
}

thread_local! {
    /// Ends of the simulated world that nobody adopted: it closes them when it goes on.
    static LEFT: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// The place of an end in the simulated world.
pub(crate) struct Away(u32);

impl Away {
    pub(crate) const fn from(place: u32) -> Self {
        Self(place)
    }

    pub(crate) const fn arrives(self) -> u32 {
        let place = self.0;
        std::mem::forget(self);
        place
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        let _at_the_end_of_the_thread = LEFT.try_with(|left| left.borrow_mut().push(self.0));
    }
}

/// The ends that were left since this was asked last.
pub(crate) fn left() -> Vec<u32> {
    LEFT.take()
}

/// Why a connection was not handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotHanded {
    /// Connection that was not idle, or did not stay so: it is only to be dropped.
    Over,
    /// The process has no descriptor left for it: it is idle, and stays as it was.
    Stays,
}

impl Handed {
    /// A connection that came from another process.
    pub fn of(fd: OwnedFd) -> Self {
        Self(Kind::Fd(fd))
    }

    /// Its descriptor, for another process; none in a simulated world.
    pub fn into_fd(self) -> Option<OwnedFd> {
        match self.0 {
            Kind::Fd(fd) => Some(fd),
            Kind::Sim(_) => None,
        }
    }
}

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Fd(fd) => write!(f, "Handed({fd:?})"),
            Kind::Sim(away) => write!(f, "Handed(sim {})", away.0),
        }
    }
}
