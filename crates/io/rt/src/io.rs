//! The seam between the core and its drivers: an enum, so that no type parameter leaves this crate.

use crate::address::Address;
use crate::chunk::Chunk;
use crate::conn::{Begun, Conn, Listening, State};
use crate::driver::Driver;
use crate::handed::{Handed, Kind};
use crate::hub::{Hub, Wait};
use crate::listen::ListenOptions;
#[cfg(target_os = "linux")]
use crate::readiness::Epoll;
#[cfg(any(target_os = "freebsd", test))]
use crate::readiness::Kqueue;
use crate::readiness::Readiness;
use crate::sim::driver::Sim;
#[cfg(target_os = "linux")]
use crate::uring::Uring;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

pub(crate) enum Io {
    #[cfg(target_os = "linux")]
    Uring(Uring),
    #[cfg(target_os = "linux")]
    Epoll(Readiness<Epoll>),
    #[cfg(any(target_os = "freebsd", test))]
    Kqueue(Readiness<Kqueue>),
    Sim(Sim),
}

macro_rules! each {
    ($self:ident, $driver:ident => $call:expr) => {
        match $self {
            #[cfg(target_os = "linux")]
            Io::Uring($driver) => $call,
            #[cfg(target_os = "linux")]
            Io::Epoll($driver) => $call,
            #[cfg(any(target_os = "freebsd", test))]
            Io::Kqueue($driver) => $call,
            Io::Sim($driver) => $call,
        }
    };
}

impl Io {
    pub(crate) fn driver(&self) -> Driver {
        match self {
            #[cfg(target_os = "linux")]
            Self::Uring(_) => Driver::Uring,
            #[cfg(target_os = "linux")]
            Self::Epoll(_) => Driver::Epoll,
            #[cfg(any(target_os = "freebsd", test))]
            Self::Kqueue(_) => Driver::Kqueue,
            Self::Sim(_) => Driver::Sim,
        }
    }

    /// Starts the sends that tasks have queued.
    pub(crate) fn send_news(&self, hub: &Hub) {
        each!(self, d => d.send_news(hub));
    }

    /// Sleeps at most as long as `wait` says, and takes in what happened.
    pub(crate) fn turn(&self, hub: &Hub, wait: Wait) {
        each!(self, d => d.turn(hub, wait));
    }

    /// Nothing is in the inbox: is there something in the kernel that can be had at once?
    pub(crate) fn read(
        &self,
        hub: &Hub,
        conn: &Rc<Conn>,
        state: &mut State,
        cx: &Context<'_>,
    ) -> Option<io::Result<Chunk>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Uring(_) => None, // all that there is, is in the inbox
            #[cfg(target_os = "linux")]
            Self::Epoll(d) => d.read(hub, conn, state, cx),
            #[cfg(any(target_os = "freebsd", test))]
            Self::Kqueue(d) => d.read(hub, conn, state, cx),
            Self::Sim(d) => d.read(),
        }
    }

    /// The reader has taken a piece from the inbox.
    pub(crate) fn made_room(&self, conn: &Rc<Conn>) {
        each!(self, d => d.made_room(conn));
    }

    /// Inbox and outbox are empty: is the kernel's side quiet too?
    pub(crate) fn is_quiet(&self, conn: &Conn, state: &mut State) -> bool {
        each!(self, d => d.is_quiet(conn, state))
    }

    /// The socket was dropped. Returns whether it has a second for what it has not sent yet.
    pub(crate) fn release(&self, conn: &Rc<Conn>) -> bool {
        each!(self, d => d.release(conn))
    }

    /// The dropped socket has had its time.
    pub(crate) fn abort(&self, conn: &Rc<Conn>) {
        each!(self, d => d.abort(conn));
    }

    /// Begins to connect.
    pub(crate) fn connect(&self, to: &Address) -> io::Result<Begun> {
        each!(self, d => d.connect(to))
    }

    /// Whether a connection that was begun is there.
    pub(crate) fn poll_connected(&self, conn: &Rc<Conn>, cx: &Context<'_>) -> Poll<io::Result<()>> {
        each!(self, d => d.poll_connected(conn, cx))
    }

    pub(crate) fn listen(&self, at: &Address, o: ListenOptions) -> io::Result<Rc<Listening>> {
        each!(self, d => d.listen(at, o))
    }

    pub(crate) fn poll_accept(
        &self,
        listening: &Rc<Listening>,
        cx: &Context<'_>,
    ) -> Poll<io::Result<Handed>> {
        each!(self, d => d.poll_accept(listening, cx))
    }

    /// As `Listener::look_again`.
    pub(crate) fn look_again(&self, listening: &Rc<Listening>) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Uring(d) => d.look_again(listening),
            _ => {
                let _of_the_others_each_is_told_of_all = listening;
            }
        }
    }

    /// As `Listener::accept_last`.
    pub(crate) fn poll_last(
        &self,
        listening: &Rc<Listening>,
        cx: &Context<'_>,
    ) -> Poll<Option<Handed>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Uring(d) => d.poll_last(listening, cx),
            // They accept only when somebody asks.
            _ => {
                let _nobody_waits = (listening, cx);
                Poll::Ready(None)
            }
        }
    }

    /// A connection that another core, or nobody yet, had.
    pub(crate) fn adopt(&self, handed: Handed) -> io::Result<Rc<Conn>> {
        match (self, handed.0) {
            #[cfg(target_os = "linux")]
            (Self::Uring(d), Kind::Fd(fd)) => Ok(d.adopt_fd(fd)),
            #[cfg(target_os = "linux")]
            (Self::Epoll(d), Kind::Fd(fd)) => d.adopt_fd(fd),
            #[cfg(any(target_os = "freebsd", test))]
            (Self::Kqueue(d), Kind::Fd(fd)) => d.adopt_fd(fd),
            (Self::Sim(d), Kind::Sim(away)) => d.adopt(away.arrives()),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a connection of another driver",
            )),
        }
    }

    /// Begins to let go of a connection that will be another core's. It is let go of when nothing
    /// of it is with the kernel.
    pub(crate) fn let_go(&self, conn: &Rc<Conn>) {
        each!(self, d => d.let_go(conn));
    }

    /// The listener was dropped.
    pub(crate) fn unlisten(&self, listening: &Rc<Listening>) {
        each!(self, d => d.unlisten(listening));
    }

    /// A number to choose the next ready task by; `None`: the first.
    pub(crate) fn shuffle(&self) -> Option<u64> {
        match self {
            Self::Sim(d) => d.shuffle(),
            _ => None,
        }
    }

    /// Whether the turn ends before the next ready task.
    pub(crate) fn dawdles(&self) -> bool {
        match self {
            Self::Sim(d) => d.dawdles(),
            _ => false,
        }
    }

    /// The core ends: a second for what is queued, then everything is closed.
    pub(crate) fn close(&self, hub: &Hub) {
        each!(self, d => d.close(hub));
    }
}
