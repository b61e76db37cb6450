//! The driver of the simulated world: time that jumps, and a network in memory.

use super::world::World;
use crate::address::Address;
use crate::chunk::Chunk;
use crate::conn::{Begun, Conn, Listening, NOWHERE, State, errno};
use crate::handed::{Away, Handed, Kind};
use crate::hub::{Hub, Wait};
use crate::listen::ListenOptions;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A turn takes so long even if nothing happens, so that a task which only yields gets older too.
const TURN_NS: u64 = 1_000;

/// When a run is stopped by a panic.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So much virtual time.
    pub time_max: Duration,
    /// So many turns of the core.
    pub turns_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time_max: Duration::from_secs(7 * 24 * 3600),
            turns_max: 50_000_000,
        }
    }
}

/// The driver.
pub(crate) struct Sim {
    pub(super) world: RefCell<World>,
    pub(super) now: Rc<Cell<u64>>,
    pub(super) began: u64,
    pub(super) turns: Cell<u64>,
    pub(super) seed: u64,
    pub(super) limits: Limits,
    pub(super) spare: RefCell<Vec<Rc<Conn>>>,
}

impl Sim {
    pub(crate) fn turn(&self, hub: &Hub, wait: Wait) {
        self.turns.set(self.turns.get() + 1);
        let mut world = self.world.borrow_mut();
        self.now.set(self.now.get() + TURN_NS + world.slowness());
        let happened = world.happen();
        if !happened && !matches!(wait, Wait::Not) && !hub.exec.remote().is_told() {
            let timer = match wait {
                Wait::Until(at) => Some(at.as_ns()),
                Wait::Not | Wait::Forever => None,
            };
            let next = [timer, world.next_event()].into_iter().flatten().min();
            let Some(next) = next else {
                drop(world);
                self.stop(hub, "deadlock: nothing can ever happen");
            };
            self.now.set(self.now.get().max(next));
            world.happen();
        }
        drop(world);
        if self.turns.get() > self.limits.turns_max {
            self.stop(hub, "the limit of turns is reached");
        }
        if Duration::from_nanos(self.now.get() - self.began) > self.limits.time_max {
            self.stop(hub, "the limit of virtual time is reached");
        }
    }

    fn stop(&self, hub: &Hub, why: &str) -> ! {
        panic!(
            "{why} (seed {}, after {:?} of virtual time and {} turns; {} tasks live, {} have panicked)",
            self.seed,
            Duration::from_nanos(self.now.get() - self.began),
            self.turns.get(),
            hub.exec.live(),
            hub.panics(),
        );
    }

    pub(crate) fn shuffle(&self) -> Option<u64> {
        self.world.borrow_mut().shuffle()
    }

    pub(crate) fn dawdles(&self) -> bool {
        self.world.borrow_mut().dawdles()
    }

    pub(crate) fn send_news(&self, hub: &Hub) {
        let mut news = self.spare.borrow_mut();
        hub.swap_news(&mut news);
        for conn in news.drain(..) {
            conn.state.borrow_mut().dirty = false;
            self.world.borrow_mut().pump(conn.place.get());
        }
    }

    pub(crate) fn made_room(&self, conn: &Rc<Conn>) {
        self.world.borrow_mut().made_room(conn.place.get());
    }

    pub(crate) fn release(&self, conn: &Rc<Conn>) -> bool {
        let state = conn.state.borrow();
        let unsent = state.unsent > 0 && state.send_error == 0 && conn.place.get() != NOWHERE;
        drop(state);
        if !unsent {
            self.world.borrow_mut().pump(conn.place.get());
        }
        unsent
    }

    pub(crate) fn abort(&self, conn: &Rc<Conn>) {
        self.world.borrow_mut().abort(conn.place.get());
    }

    pub(crate) fn connect(&self, to: &Address) -> io::Result<Begun> {
        Ok(Begun::Conn(self.world.borrow_mut().connect(to)))
    }

    pub(crate) fn poll_connected(&self, conn: &Rc<Conn>, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = conn.state.borrow_mut();
        match state.connected {
            Some(result @ ..0) => Poll::Ready(Err(errno(-result))),
            Some(_) => Poll::Ready(Ok(())),
            None => {
                state.wait_to_write(cx);
                Poll::Pending
            }
        }
    }

    pub(crate) fn listen(&self, at: &Address, o: ListenOptions) -> io::Result<Rc<Listening>> {
        self.world.borrow_mut().listen(at, o)
    }

    pub(crate) fn poll_accept(
        &self,
        listening: &Rc<Listening>,
        cx: &Context<'_>,
    ) -> Poll<io::Result<Handed>> {
        match self.world.borrow_mut().accept(listening.place.get()) {
            Some(conn) => Poll::Ready(Ok(Handed(Kind::Sim(Away::from(conn.place.get()))))),
            None if listening.place.get() == NOWHERE => Poll::Ready(Err(errno(libc::EBADF))),
            None => {
                listening.state.borrow_mut().waker.register(cx);
                Poll::Pending
            }
        }
    }

    pub(crate) fn adopt(&self, place: u32) -> io::Result<Rc<Conn>> {
        let conn = self
            .world
            .borrow()
            .conn(place)
            .ok_or_else(|| errno(libc::EBADF))?;
        {
            let mut state = conn.state.borrow_mut();
            (state.parting, state.handed) = (false, false);
        }
        Ok(conn)
    }

    /// All cores are in this world: nothing has to be let go of.
    pub(crate) fn let_go(&self, _: &Conn) {}

    pub(crate) fn unlisten(&self, listening: &Rc<Listening>) {
        self.world
            .borrow_mut()
            .unlisten(listening.place.replace(NOWHERE));
    }

    pub(crate) fn read(&self) -> Option<io::Result<Chunk>> {
        None // all that has arrived is in the inbox
    }

    pub(crate) fn is_quiet(&self, _: &Conn, _: &mut State) -> bool {
        true
    }

    pub(crate) fn close(&self, _: &Hub) {
        self.world.borrow_mut().close();
    }
}
