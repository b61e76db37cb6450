//! Readiness by epoll(7), edge-triggered.

use super::kernel::{Kernel, News, Watched};
use crate::bell::Bell;
use crate::sys::checked;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::time::Duration;

const BELL: u64 = u64::MAX;

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const EDGE: u32 = libc::EPOLLET as u32;
const HALF: u32 = libc::EPOLLRDHUP as u32;
const GONE: u32 = (libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// An epoll instance.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    /// Opens one that watches nothing.
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; fresh, and nobody else's.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: see above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn add(&self, fd: RawFd, events: u32, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: `event` is readable.
        checked(unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event)
        })
        .map(drop)
    }

    /// Its own descriptor, which another instance may watch.
    #[cfg(test)]
    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(super) fn remove(&self, fd: RawFd) {
        // SAFETY: null is allowed for DEL. An error means that it is gone already.
        unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, null_mut()) };
    }
}

impl Kernel for Epoll {
    type Event = libc::epoll_event;
    const BLANK: Self::Event = libc::epoll_event {
        events: 0,
        u64: BELL,
    };

    fn open(bell: &Bell) -> io::Result<Self> {
        let epoll = Self::new()?;
        epoll.add(bell.fd(), IN | EDGE, BELL)?;
        Ok(epoll)
    }

    fn watch(&self, fd: RawFd, kind: Watched, place: u32) -> io::Result<()> {
        let events = match kind {
            Watched::Connection => IN | OUT | HALF | EDGE,
            Watched::Listener => IN | EDGE,
        };
        self.add(fd, events, u64::from(place))
    }

    fn forget(&self, fd: RawFd, _kind: Watched) {
        self.remove(fd);
    }

    fn wait(&self, events: &mut [Self::Event], at_most: Option<Duration>) -> io::Result<usize> {
        // Rounded up: a turn too early would only be repeated.
        let ms = at_most.map_or(-1, |most| {
            let ms = most.as_nanos().div_ceil(1_000_000);
            libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX)
        });
        let max = libc::c_int::try_from(events.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: `events` is writable for `max` entries.
        let n =
            checked(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), max, ms) })?;
        Ok(n as usize)
    }

    fn news(event: &Self::Event) -> Option<News> {
        let (bits, data) = (event.events, event.u64);
        (data != BELL).then_some(News {
            place: data as u32,
            readable: bits & (IN | HALF | GONE) != 0,
            writable: bits & (OUT | GONE) != 0,
            ended: bits & (HALF | GONE) != 0,
        })
    }
}
