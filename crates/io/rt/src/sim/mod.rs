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

pub(crate) mod driver;
mod faults;
mod world;

pub use driver::Limits;
pub use faults::Faults;

use crate::address::Address;
use crate::chunk::Pool;
use crate::core::{Core, Rt};
use crate::executor::Executor;
use crate::hub::{Clock, Hub};
use crate::io::Io;
use crate::random::Random;
use driver::Sim;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;
use world::World;

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
        Hub::new(exec, pool, Clock::Virtual(now)),
        Io::Sim(sim),
        Duration::ZERO,
        Random::seeded(seed),
    );
    core.drive(main)
}

const BUFFERS: u16 = 1024;

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
