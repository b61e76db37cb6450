//! The tasks of a core: `!Send` futures in a slab, and a queue of those that want to be polled.
//!
//! A waker may go to any thread, because `Waker` is `Send`. It is an `Arc` of a small header that
//! knows the core's number. On the core's own thread a wake pushes onto a thread-local queue;
//! elsewhere it goes through a locked queue and a bell. A flag in the header keeps a task from
//! standing in a queue twice.

use crate::bell::Bell;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The number that the main future has instead of a place in the slab.
const MAIN: u32 = u32::MAX;

thread_local! {
    static HERE: Here = const { Here { core: Cell::new(0), ready: RefCell::new(VecDeque::new()) } };
}

/// Knowledge that a thread has of the core that runs on it.
struct Here {
    core: Cell<u64>, // 0: none
    ready: RefCell<VecDeque<Id>>,
}

/// A task, or one that has ended: then the generation does not match.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Id {
    place: u32,
    generation: u32,
}

/// Target that a waker points to.
struct Header {
    core: u64,
    id: Id,
    queued: AtomicBool, // it stands in one of the queues
    remote: Arc<Remote>,
}

impl Wake for Header {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: the poll that follows sees what the waking thread wrote before. Pairs with the
        // swap in `poll`.
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let pushed = HERE.try_with(|here| {
            let mine = here.core.get() == self.core;
            if mine {
                here.ready.borrow_mut().push_back(self.id);
            }
            mine
        });
        if pushed != Ok(true) {
            self.remote.push(self.id);
        }
    }
}

/// Wakes from other threads.
pub(crate) struct Remote {
    queue: Mutex<Vec<Id>>,
    told: AtomicBool, // the bell has been rung since the queue was last emptied
    bell: Option<Bell>,
}

impl Remote {
    fn push(&self, id: Id) {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(id);
        if !self.told.swap(true, Ordering::AcqRel)
            && let Some(bell) = &self.bell
        {
            bell.ring();
        }
    }

    /// Returns the bell that wakes the core out of its sleep.
    pub(crate) fn bell(&self) -> Option<&Bell> {
        self.bell.as_ref()
    }

    pub(crate) fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    future: Boxed,
    waker: Waker,
    header: Arc<Header>,
}

struct Place {
    generation: u32,
    task: Option<Task>, // None while it is polled, and when the place is free
}

/// The slab, and the way in and out of the ready queue.
pub(crate) struct Executor {
    core: u64,
    places: RefCell<Vec<Place>>,
    free: RefCell<Vec<u32>>,
    remote: Arc<Remote>,
    main: (Waker, Arc<Header>),
    live: Cell<usize>,
    closing: Cell<bool>,
}

/// Future that is next in the ready queue.
pub(crate) enum Next {
    Main,
    Task(Ready),
}

pub(crate) struct Ready(Id);

impl Executor {
    /// Makes this thread a core; `Err` if it is one already.
    pub(crate) fn enter(bell: Option<Bell>) -> Result<Self, &'static str> {
        static CORES: AtomicU64 = AtomicU64::new(1);
        let core = CORES.fetch_add(1, Ordering::Relaxed);
        HERE.with(|here| {
            if here.core.get() != 0 {
                return Err("this thread is a core already");
            }
            here.core.set(core);
            here.ready.borrow_mut().clear();
            Ok(())
        })?;
        let remote = Arc::new(Remote {
            queue: Mutex::new(Vec::new()),
            told: AtomicBool::new(false),
            bell,
        });
        let header = Arc::new(Header {
            core,
            id: Id {
                place: MAIN,
                generation: 0,
            },
            queued: AtomicBool::new(false),
            remote: remote.clone(),
        });
        let main = (Waker::from(header.clone()), header);
        main.0.wake_by_ref();
        Ok(Self {
            core,
            places: RefCell::default(),
            free: RefCell::default(),
            remote,
            main,
            live: Cell::new(0),
            closing: Cell::new(false),
        })
    }

    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// How many tasks live.
    pub(crate) fn live(&self) -> usize {
        self.live.get()
    }

    pub(crate) fn spawn(&self, future: Boxed) {
        if self.closing.get() {
            return;
        }
        let place = self.free.borrow_mut().pop();
        let mut places = self.places.borrow_mut();
        let place = place.unwrap_or_else(|| {
            places.push(Place {
                generation: 0,
                task: None,
            });
            u32::try_from(places.len() - 1).expect("fewer tasks than 2^32 fit in memory")
        });
        let slot = &mut places[place as usize];
        let header = Arc::new(Header {
            core: self.core,
            id: Id {
                place,
                generation: slot.generation,
            },
            queued: AtomicBool::new(false),
            remote: self.remote.clone(),
        });
        let waker = Waker::from(header.clone());
        waker.wake_by_ref();
        slot.task = Some(Task {
            future,
            waker,
            header,
        });
        self.live.set(self.live.get() + 1);
    }

    /// Wakes that came from other threads join the local queue.
    pub(crate) fn collect_remote(&self) {
        if !self.remote.is_told() {
            return;
        }
        // First the flag, then the queue: whoever pushes after us rings again.
        self.remote.told.swap(false, Ordering::AcqRel);
        let woken = std::mem::take(
            &mut *self
                .remote
                .queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        HERE.with(|here| here.ready.borrow_mut().extend(woken));
    }

    pub(crate) fn ready(&self) -> usize {
        HERE.with(|here| here.ready.borrow().len())
    }

    /// Takes the next task; with `shuffle`, any of those that are ready.
    pub(crate) fn next(&self, shuffle: Option<u64>) -> Option<Next> {
        let id = HERE.with(|here| {
            let mut ready = here.ready.borrow_mut();
            match shuffle {
                Some(random) if ready.len() > 1 => {
                    let n = ready.len() as u64;
                    ready.swap_remove_front((random % n) as usize)
                }
                _ => ready.pop_front(),
            }
        })?;
        Some(if id.place == MAIN {
            Next::Main
        } else {
            Next::Task(Ready(id))
        })
    }

    pub(crate) fn main_waker(&self) -> Waker {
        self.main.1.queued.swap(false, Ordering::AcqRel);
        self.main.0.clone()
    }

    /// Polls a task. A panic ends the task and comes back as words.
    pub(crate) fn poll(&self, ready: Ready) -> Result<(), String> {
        let Id { place, generation } = ready.0;
        let task = {
            let mut places = self.places.borrow_mut();
            match places.get_mut(place as usize) {
                Some(slot) if slot.generation == generation => slot.task.take(),
                _ => None,
            }
        };
        // A stale wake: the task has ended.
        let Some(mut task) = task else { return Ok(()) };
        // Before the poll, so that a wake during it counts. Acquire: see `wake_by_ref`.
        task.header.queued.swap(false, Ordering::AcqRel);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            task.future
                .as_mut()
                .poll(&mut Context::from_waker(&task.waker))
        }));
        if let Ok(Poll::Pending) = polled {
            self.places.borrow_mut()[place as usize].task = Some(task);
            return Ok(());
        }
        {
            let slot = &mut self.places.borrow_mut()[place as usize];
            slot.generation = slot.generation.wrapping_add(1);
        }
        self.free.borrow_mut().push(place);
        self.live.set(self.live.get() - 1);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(task)));
        match (polled, dropped) {
            (Err(panic), _) | (_, Err(panic)) => Err(panic_words(&*panic)),
            _ => Ok(()),
        }
    }

    /// Drops every task; none can be spawned after that. Returns the words of those that panicked
    /// in their drop.
    pub(crate) fn close(&self) -> Vec<String> {
        self.closing.set(true);
        let tasks: Vec<Task> = self
            .places
            .borrow_mut()
            .iter_mut()
            .filter_map(|p| p.task.take())
            .collect();
        self.live.set(0);
        let mut panics = Vec::new();
        for task in tasks {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(task))) {
                panics.push(panic_words(&*panic));
            }
        }
        panics
    }

    /// This thread is no core any more. Wakes that still come go to a queue that nobody reads.
    pub(crate) fn leave(&self) {
        let _ = HERE.try_with(|here| {
            if here.core.get() == self.core {
                here.core.set(0);
                here.ready.borrow_mut().clear();
            }
        });
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Words of a panic that was caught.
pub fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_string())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_string())
}
