//! Hub of a core: its clock, its tasks, its buffers, and the connections that have something to send. Tasks, sockets and
//! the driver share it; of its core a driver sees this and no more.

use crate::chunk::Pool;
use crate::conn::Conn;
use crate::executor::Executor;
use crate::instant::Instant;
use crate::sys;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// So many receives that are ready at once (epoll), then the task must let others run.
const READS_PER_POLL: u32 = 32;

/// Time that a dropped socket gets for sending the rest.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

/// How long a driver may sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Not,
    Until(Instant),
    Forever,
}

pub(crate) enum Clock {
    Real,
    /// Nanoseconds; the simulator moves it.
    Virtual(Rc<Cell<u64>>),
}

pub(crate) struct Hub {
    pub(crate) exec: Executor,
    pub(crate) pool: Rc<Pool>,
    pub(crate) clock: Clock,
    looked: Cell<u64>,            // the clock when it was last looked at
    news: RefCell<Vec<Rc<Conn>>>, // connections with something new to send
    yielded: RefCell<Vec<Waker>>,
    reads_left: Cell<u32>,
    panics: Cell<u64>,
}

impl Hub {
    pub(crate) fn new(exec: Executor, pool: Rc<Pool>, clock: Clock) -> Self {
        let began_ns = match &clock {
            Clock::Real => sys::monotonic_ns(),
            Clock::Virtual(ns) => ns.get(),
        };
        Self {
            exec,
            pool,
            clock,
            looked: Cell::new(began_ns),
            news: RefCell::default(),
            yielded: RefCell::default(),
            reads_left: Cell::new(READS_PER_POLL),
            panics: Cell::new(0),
        }
    }

    /// The clock as it was when it was last looked at: at the beginning of a turn, and every few
    /// polls.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_ns(match &self.clock {
            Clock::Real => self.looked.get(),
            Clock::Virtual(ns) => ns.get(),
        })
    }

    /// The clock now.
    pub(crate) fn look(&self) -> Instant {
        if let Clock::Real = self.clock {
            self.looked.set(sys::monotonic_ns());
        }
        self.now()
    }

    /// This connection's outbox has something for the driver.
    pub(crate) fn has_news(&self, conn: Rc<Conn>) {
        self.news.borrow_mut().push(conn);
    }

    /// Whether a connection has something for the driver.
    pub(crate) fn is_news(&self) -> bool {
        !self.news.borrow().is_empty()
    }

    /// Takes the list of those with something new to send, and leaves `spare` in its place.
    pub(crate) fn swap_news(&self, spare: &mut Vec<Rc<Conn>>) {
        std::mem::swap(&mut *self.news.borrow_mut(), spare);
    }

    /// May the task that runs now read once more? If not, it is woken in the next turn.
    pub(crate) fn may_read(&self, cx: &Context<'_>) -> bool {
        let left = self.reads_left.get();
        if left == 0 {
            self.yielded.borrow_mut().push(cx.waker().clone());
            return false;
        }
        self.reads_left.set(left - 1);
        true
    }

    /// The next task may read as often as any.
    pub(crate) fn begins_to_read(&self) {
        self.reads_left.set(READS_PER_POLL);
    }

    /// Has whoever this wakes woken in the next turn.
    pub(crate) fn yields(&self, waker: Waker) {
        self.yielded.borrow_mut().push(waker);
    }

    /// Takes those who are to be woken in this turn.
    pub(crate) fn yielded(&self) -> Vec<Waker> {
        self.yielded.take()
    }

    /// Counts a task that has panicked.
    pub(crate) fn count_panic(&self) {
        self.panics.set(self.panics.get() + 1);
    }

    /// How many tasks have panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.get()
    }
}
