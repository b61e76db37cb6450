//! The simulated world: virtual time and an in-memory network, both made from a seed, for the same
//! code that ships.
//!
//! Time stands still while tasks run and jumps to the next event when none is ready, so an hour of
//! timeouts costs nothing. Every choice comes from the seed, so a run that fails is a number that
//! anyone can replay. A run always ends: with its main future, with the limits, or with a panic
//! that says that nothing can ever happen.
//!
//! ```
//! use rt::sim::{Faults, run};
//! let faults = Faults { split: 0.5, reset: 0.01, shuffle: true, ..Faults::perfect() };
//! let took = run(7, faults, |rt| async move {
//!     let began = rt.now();
//!     rt.sleep(std::time::Duration::from_secs(3600)).await;
//!     rt.now() - began
//! });
//! assert!(took.as_secs() == 3600);
//! ```

mod world;

use crate::chunk::{Chunk, Pool};
use crate::conn::{Conn, Listening, NOWHERE, State, errno};
use crate::core::{Clock, Core, Rt};
use crate::executor::Executor;
use crate::handed::{Away, Handed, Kind};
use crate::io::{Io, Wait};
use crate::random::Random;
use crate::{Address, ListenOptions, Listener, Socket};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use world::World;

/// Faults of the network, and how often they happen. Probabilities are from 0 to 1; all zero is a
/// perfect network.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Faults {
    /// Bytes travel at least so long, one way.
    pub latency_min: Duration,
    /// ... and at most so long.
    pub latency_max: Duration,
    /// Arriving bytes come in two pieces, cut anywhere (and the second may be cut again).
    pub split: f64,
    /// The kernel takes only some of the bytes of a send at once.
    pub partial: f64,
    /// Some bytes, and all behind them on their connection, are late by up to `stall_max`.
    pub stall: f64,
    /// How late.
    pub stall_max: Duration,
    /// A send resets its connection instead.
    pub reset: f64,
    /// A connect is refused although somebody listens.
    pub refuse: f64,
    /// A connect is never answered: it fails after two minutes.
    pub lose_connect: f64,
    /// Ready tasks run in any order.
    pub shuffle: bool,
    /// The processor is slow: a turn takes up to so long, and does not always come to all tasks
    /// that are ready.
    pub slow: Duration,
}

impl Faults {
    /// Nothing goes wrong, and nothing takes time.
    pub fn perfect() -> Self {
        Self::default()
    }
}

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

/// Runs `main` in a world made from `seed`. The same seed, faults and code make the same run.
pub fn run<T, F: Future<Output = T>>(seed: u64, faults: Faults, main: impl FnOnce(Rt) -> F) -> T {
    run_with(seed, faults, Limits::default(), main)
}

/// [`run`] with limits of your own.
pub fn run_with<T, F: Future<Output = T>>(
    seed: u64,
    faults: Faults,
    limits: Limits,
    main: impl FnOnce(Rt) -> F,
) -> T {
    let pool = Pool::new(BUFFERS).expect("sixteen megabytes of address space");
    let exec = Executor::enter(None).expect("one world per thread at a time");
    // An hour after the beginning of the clock, so that "an hour ago" is a moment too.
    let now = Rc::new(Cell::new(3_600_000_000_000));
    let sim = Sim {
        world: RefCell::new(World::new(
            Random::keyed([seed, 1, 2, 3]),
            faults,
            now.clone(),
            pool.clone(),
        )),
        now: now.clone(),
        began: now.get(),
        turns: Cell::new(0),
        seed,
        limits,
        spare: RefCell::default(),
    };
    let core = Core::new(
        exec,
        Io::Sim(sim),
        pool,
        Clock::Virtual(now),
        Duration::ZERO,
        Random::seeded(seed),
    );
    core.drive(main)
}

const BUFFERS: u16 = 1024;

/// A turn takes so long even if nothing happens, so that a task which only yields gets older too.
const TURN_NS: u64 = 1_000;

/// The hand of the tester in the world: [`Rt::sim_faults`].
#[derive(Clone)]
pub struct Hand(Rc<Core>);

impl Hand {
    fn world<T>(&self, f: impl FnOnce(&mut World) -> T) -> T {
        match &self.0.io {
            Io::Sim(sim) => f(&mut sim.world.borrow_mut()),
            _ => unreachable!("a Hand is made by sim_faults only"),
        }
    }

    /// The faults of now.
    pub fn get(&self) -> Faults {
        self.world(|w| w.faults.clone())
    }

    /// Other faults from now on.
    pub fn set(&self, faults: Faults) {
        self.world(|w| w.faults = faults);
    }

    /// The host of this address dies: its listeners refuse, all its connections are reset.
    /// Listeners stay where they are and accept again after [`restore`](Self::restore).
    pub fn crash(&self, at: &Address) {
        self.world(|w| w.crash(at));
    }

    /// A crashed address is back.
    pub fn restore(&self, at: &Address) {
        self.world(|w| w.restore(at));
    }

    /// Nothing arrives at or from this address any more; nothing is lost either.
    pub fn freeze(&self, at: &Address) {
        self.world(|w| w.freeze(at));
    }

    /// A frozen address is back, and all that waited arrives.
    pub fn thaw(&self, at: &Address) {
        self.world(|w| w.thaw(at));
    }

    /// How many connections are open, counting both ends.
    pub fn open(&self) -> usize {
        self.world(|w| w.open())
    }
}

impl Rt {
    /// The tester's hand in the simulated world; `None` in the real one.
    pub fn sim_faults(&self) -> Option<Hand> {
        matches!(self.0.io, Io::Sim(_)).then(|| Hand(self.0.clone()))
    }
}

/// The driver.
pub(crate) struct Sim {
    world: RefCell<World>,
    now: Rc<Cell<u64>>,
    began: u64,
    turns: Cell<u64>,
    seed: u64,
    limits: Limits,
    spare: RefCell<Vec<Rc<Conn>>>,
}

impl Sim {
    pub(crate) fn turn(&self, core: &Rc<Core>, wait: Wait) {
        self.turns.set(self.turns.get() + 1);
        let mut world = self.world.borrow_mut();
        self.now.set(self.now.get() + TURN_NS + world.slowness());
        let happened = world.happen();
        if !happened && !matches!(wait, Wait::Not) && !core.exec.remote().is_told() {
            let timer = match wait {
                Wait::Until(at) => Some(at.as_ns()),
                Wait::Not | Wait::Forever => None,
            };
            let next = [timer, world.next_event()].into_iter().flatten().min();
            let Some(next) = next else {
                drop(world);
                self.stop(core, "deadlock: nothing can ever happen");
            };
            self.now.set(self.now.get().max(next));
            world.happen();
        }
        drop(world);
        if self.turns.get() > self.limits.turns_max {
            self.stop(core, "the limit of turns is reached");
        }
        if Duration::from_nanos(self.now.get() - self.began) > self.limits.time_max {
            self.stop(core, "the limit of virtual time is reached");
        }
    }

    fn stop(&self, core: &Core, why: &str) -> ! {
        panic!(
            "{why} (seed {}, after {:?} of virtual time and {} turns; {} tasks live, {} have panicked)",
            self.seed,
            Duration::from_nanos(self.now.get() - self.began),
            self.turns.get(),
            core.exec.live(),
            core.panics(),
        );
    }

    pub(crate) fn shuffle(&self) -> Option<u64> {
        self.world.borrow_mut().shuffle()
    }

    pub(crate) fn dawdles(&self) -> bool {
        self.world.borrow_mut().dawdles()
    }

    pub(crate) fn send_news(&self, core: &Rc<Core>) {
        let mut news = self.spare.borrow_mut();
        core.swap_news(&mut news);
        for conn in news.drain(..) {
            conn.state.borrow_mut().dirty = false;
            self.world.borrow_mut().pump(conn.place.get());
        }
    }

    pub(crate) fn made_room(&self, conn: &Rc<Conn>) {
        self.world.borrow_mut().made_room(conn.place.get());
    }

    pub(crate) fn release(&self, core: &Rc<Core>, conn: &Rc<Conn>) {
        let unsent = {
            let state = conn.state.borrow();
            state.unsent > 0 && state.send_error == 0
        };
        if unsent && conn.place.get() != NOWHERE {
            core.linger(conn);
        } else {
            self.world.borrow_mut().pump(conn.place.get());
        }
    }

    pub(crate) fn abort(&self, conn: &Rc<Conn>) {
        self.world.borrow_mut().abort(conn.place.get());
    }

    pub(crate) async fn connect(&self, core: &Rc<Core>, to: &Address) -> io::Result<Socket> {
        let conn = self.world.borrow_mut().connect(to);
        let socket = Socket::new(core.clone(), conn);
        let result = poll_fn(|cx| {
            let mut state = socket.conn().state.borrow_mut();
            if let Some(result) = state.connected {
                return Poll::Ready(result);
            }
            state.wait_to_write(cx);
            Poll::Pending
        })
        .await;
        if result < 0 {
            Err(errno(-result))
        } else {
            Ok(socket)
        }
    }

    pub(crate) fn listen(
        &self,
        core: &Rc<Core>,
        at: &Address,
        o: ListenOptions,
    ) -> io::Result<Listener> {
        let listening = self.world.borrow_mut().listen(at, o)?;
        Ok(Listener::new(core.clone(), listening))
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

    pub(crate) fn adopt(&self, core: &Rc<Core>, place: u32) -> io::Result<Socket> {
        let conn = self
            .world
            .borrow()
            .conn(place)
            .ok_or_else(|| errno(libc::EBADF))?;
        {
            let mut state = conn.state.borrow_mut();
            (state.parting, state.handed) = (false, false);
        }
        Ok(Socket::new(core.clone(), conn))
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

    pub(crate) fn close(&self, _: &Rc<Core>) {
        self.world.borrow_mut().close();
    }
}
