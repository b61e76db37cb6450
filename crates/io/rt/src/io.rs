//! The seam between the core and its drivers: an enum, so that no type parameter leaves this crate.

use crate::chunk::Chunk;
use crate::conn::{Conn, Listening, State};
use crate::core::{Core, Instant};
use crate::handed::{Handed, Kind};
#[cfg(target_os = "linux")]
use crate::readiness::Epoll;
#[cfg(any(target_os = "freebsd", test))]
use crate::readiness::Kqueue;
use crate::readiness::Readiness;
use crate::sim::Sim;
#[cfg(target_os = "linux")]
use crate::uring::Uring;
use crate::{Address, Driver, ListenOptions, Listener, Socket};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

/// How long a driver may sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Not,
    Until(Instant),
    Forever,
}

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
    pub(crate) fn send_news(&self, core: &Rc<Core>) {
        each!(self, d => d.send_news(core));
    }

    /// Sleeps at most as long as `wait` says, and takes in what happened.
    pub(crate) fn turn(&self, core: &Rc<Core>, wait: Wait) {
        each!(self, d => d.turn(core, wait));
    }

    /// Nothing is in the inbox: is there something in the kernel that can be had at once?
    pub(crate) fn read(
        &self,
        core: &Rc<Core>,
        conn: &Rc<Conn>,
        state: &mut State,
        cx: &Context<'_>,
    ) -> Option<io::Result<Chunk>> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Uring(_) => None, // all that there is, is in the inbox
            #[cfg(target_os = "linux")]
            Self::Epoll(d) => d.read(core, conn, state, cx),
            #[cfg(any(target_os = "freebsd", test))]
            Self::Kqueue(d) => d.read(core, conn, state, cx),
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

    /// The socket was dropped.
    pub(crate) fn release(&self, core: &Rc<Core>, conn: &Rc<Conn>) {
        each!(self, d => d.release(core, conn));
    }

    /// The dropped socket has had its time.
    pub(crate) fn abort(&self, conn: &Rc<Conn>) {
        each!(self, d => d.abort(conn));
    }

    pub(crate) async fn connect(&self, core: &Rc<Core>, to: &Address) -> io::Result<Socket> {
        each!(self, d => d.connect(core, to).await)
    }

    pub(crate) fn listen(
        &self,
        core: &Rc<Core>,
        at: &Address,
        o: ListenOptions,
    ) -> io::Result<Listener> {
        each!(self, d => d.listen(core, at, o))
    }

    pub(crate) fn poll_accept(
        &self,
        listening: &Rc<Listening>,
        cx: &Context<'_>,
    ) -> Poll<io::Result<Handed>> {
        each!(self, d => d.poll_accept(listening, cx))
    }

    /// As [`Listener::look_again`].
    pub(crate) fn look_again(&self, listening: &Rc<Listening>) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Uring(d) => d.look_again(listening),
            _ => {
                let _of_the_others_each_is_told_of_all = listening;
            }
        }
    }

    /// As [`Listener::accept_last`].
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
    pub(crate) fn adopt(&self, core: &Rc<Core>, handed: Handed) -> io::Result<Socket> {
        match (self, handed.0) {
            #[cfg(target_os = "linux")]
            (Self::Uring(d), Kind::Fd(fd)) => Ok(d.adopt_fd(core, fd)),
            #[cfg(target_os = "linux")]
            (Self::Epoll(d), Kind::Fd(fd)) => d.adopt_fd(core, fd),
            #[cfg(any(target_os = "freebsd", test))]
            (Self::Kqueue(d), Kind::Fd(fd)) => d.adopt_fd(core, fd),
            (Self::Sim(d), Kind::Sim(away)) => d.adopt(core, away.arrives()),
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
    pub(crate) fn close(&self, core: &Rc<Core>) {
        each!(self, d => d.close(core));
    }
}
