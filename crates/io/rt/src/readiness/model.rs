//! A kqueue for tests on Linux: two epoll instances stand for the two filters, and an eventfd for
//! the user's event, so that the driver meets real sockets.

use super::epoll::Epoll;
use super::kernel::Kernel as _;
use super::kqueue::Queue;
use crate::bell::Bell;
use crate::kevent::{
    EV_ADD, EV_CLEAR, EV_DELETE, EV_EOF, EVFILT_READ, EVFILT_USER, EVFILT_WRITE, Kevent,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const EDGE: u32 = libc::EPOLLET as u32;
const HALF: u32 = libc::EPOLLRDHUP as u32;
const GONE: u32 = (libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// The filters of a kqueue, each by an epoll of its own; `all` tells when one has something.
pub(crate) struct Model {
    all: Epoll,
    read: Epoll,
    write: Epoll,
    /// Value that each filter of a descriptor was added with.
    udata: RefCell<BTreeMap<(i16, RawFd), usize>>,
}

impl Model {
    fn of(&self, filter: i16) -> &Epoll {
        match filter {
            EVFILT_READ => &self.read,
            EVFILT_WRITE => &self.write,
            _ => unreachable!("a core has no other filter of descriptors"),
        }
    }

    /// Adds a filter, or gives one that is there another value, as EV_ADD does.
    fn add(&self, change: &Kevent) -> io::Result<()> {
        let fd = change.ident as RawFd;
        let bits = match change.filter {
            EVFILT_READ => IN | HALF,
            _ => OUT,
        };
        let edge = if change.flags & EV_CLEAR != 0 {
            EDGE
        } else {
            0
        };
        let epoll = self.of(change.filter);
        // One of a descriptor that was closed since is gone already.
        epoll.remove(fd);
        epoll.add(fd, bits | edge, change.ident as u64)?;
        let mut udata = self.udata.borrow_mut();
        udata.insert((change.filter, fd), change.udata);
        Ok(())
    }

    /// Moves events of one filter to the end of `events`, which have `n`.
    fn collect(&self, filter: i16, events: &mut [Kevent], n: usize) -> io::Result<usize> {
        let mut bits = vec![Epoll::BLANK; events.len() - n];
        if bits.is_empty() {
            return Ok(n);
        }
        let came = self.of(filter).wait(&mut bits, Some(Duration::ZERO))?;
        let udata = self.udata.borrow();
        let mut at = n;
        for bits in &bits[..came] {
            let (what, ident) = (bits.events, bits.u64);
            let Some(udata) = udata.get(&(filter, ident as RawFd)) else {
                continue;
            };
            let over = match filter {
                EVFILT_READ => what & (HALF | GONE) != 0,
                _ => what & GONE != 0,
            };
            let flags = if over { EV_CLEAR | EV_EOF } else { EV_CLEAR };
            events[at] = Kevent::new(ident as usize, filter, flags, *udata);
            at += 1;
        }
        Ok(at)
    }
}

impl Queue for Model {
    fn open(bell: &Bell) -> io::Result<Self> {
        let model = Self {
            all: Epoll::new()?,
            read: Epoll::new()?,
            write: Epoll::new()?,
            udata: RefCell::default(),
        };
        model.all.add(model.read.fd(), IN, 0)?;
        model.all.add(model.write.fd(), IN, 0)?;
        model.all.add(bell.fd(), IN | EDGE, bell.fd() as u64)?;
        Ok(model)
    }

    fn change(&self, changes: &[Kevent]) -> io::Result<()> {
        for change in changes {
            match change.filter {
                EVFILT_USER => {} // rung by the eventfd
                _ if change.flags & EV_ADD != 0 => self.add(change)?,
                _ if change.flags & EV_DELETE != 0 => {
                    let fd = change.ident as RawFd;
                    self.of(change.filter).remove(fd);
                    self.udata.borrow_mut().remove(&(change.filter, fd));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn wait(&self, events: &mut [Kevent], at_most: Option<Duration>) -> io::Result<usize> {
        let mut which = [Epoll::BLANK; 3];
        let came = self.all.wait(&mut which, at_most)?;
        let mut n = self.collect(EVFILT_READ, events, 0)?;
        n = self.collect(EVFILT_WRITE, events, n)?;
        if which[..came].iter().any(|event| event.u64 != 0) && n < events.len() {
            events[n] = Kevent::ringing();
            n += 1;
        }
        Ok(n)
    }
}
