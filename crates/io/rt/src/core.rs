//! A core: one thread, its tasks, its timers and its driver, and the loop that turns them. `Rt` is
//! the handle of it.

use crate::conn::Conn;
use crate::driver::Driver;
use crate::executor::Next;
use crate::hub::{Clock, Hub, LINGER, Wait};
use crate::instant::Instant;
use crate::io::Io;
use crate::names::Names;
use crate::random::Random;
use crate::sys;
use crate::timer::{Key, Wheel};
use crate::turns::{Clockwork, Turns};
use crate::vigil::Vigil;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// So many polls, then the driver gets its turn, however many tasks are still ready.
const POLLS_PER_TURN: u32 = 256;

const TICK_NS: u64 = 1_000_000;

/// The clock is looked at once in so many polls: reading it costs about as much as a tenth of a
/// short poll.
const POLLS_PER_LOOK: u32 = 8;

/// The time is over, and the future was not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time is over")
    }
}

impl std::error::Error for Elapsed {}

type PanicHook = Rc<dyn Fn(&str)>;

pub(crate) struct Core {
    pub(crate) hub: Hub,
    pub(crate) io: Io,
    pub(crate) names: Names,
    began_ns: u64,
    beat: Arc<AtomicU64>,
    turns: Clockwork,
    vigil: Vigil,
    wheel: RefCell<Wheel>,
    random: RefCell<Random>,
    hook: RefCell<Option<PanicHook>>,
}

impl Core {
    pub(crate) fn new(hub: Hub, io: Io, watch: Duration, random: Random) -> Rc<Self> {
        let began_ns = hub.now().as_ns();
        Rc::new(Self {
            hub,
            io,
            names: Names::default(),
            began_ns,
            turns: Clockwork::starting(began_ns, sys::thread_cpu_ns()),
            beat: Arc::new(AtomicU64::new(began_ns)),
            vigil: Vigil::new(watch),
            wheel: RefCell::new(Wheel::new()),
            random: RefCell::new(random),
            hook: RefCell::default(),
        })
    }

    /// Turns until `main` is ready, then drops every task and gives the driver a second to send
    /// what is queued.
    pub(crate) fn drive<T, F: Future<Output = T>>(
        self: &Rc<Self>,
        main: impl FnOnce(Rt) -> F,
    ) -> T {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut main = pin!(main(Rt(self.clone())));
            loop {
                if let Some(result) = self.run_tasks(main.as_mut()) {
                    return result;
                }
                self.turn();
            }
        }));
        for words in self.hub.exec.close() {
            self.report_panic(&words);
        }
        drop(self.hub.yielded());
        self.io.close(&self.hub);
        self.hub.exec.leave();
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn run_tasks<T>(&self, mut main: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        for polls in 0..POLLS_PER_TURN {
            if polls % POLLS_PER_LOOK == POLLS_PER_LOOK - 1 {
                self.hub.look();
            }
            if self.io.dawdles() {
                return None;
            }
            let next = self.hub.exec.next(self.io.shuffle());
            self.hub.begins_to_read();
            match next? {
                Next::Main => {
                    let waker = self.hub.exec.main_waker();
                    if let Poll::Ready(result) =
                        main.as_mut().poll(&mut Context::from_waker(&waker))
                    {
                        return Some(result);
                    }
                }
                Next::Task(task) => {
                    if let Err(words) = self.hub.exec.poll(task) {
                        self.report_panic(&words);
                    }
                }
            }
        }
        None
    }

    /// Sends what the tasks have queued, waits for the kernel if no task is ready, and wakes those
    /// that are due.
    fn turn(self: &Rc<Self>) {
        self.io.send_news(&self.hub);
        self.hub.exec.collect_remote();
        for waker in self.hub.yielded() {
            waker.wake();
        }
        let wait = if self.hub.exec.ready() > 0 {
            Wait::Not
        } else {
            match self.wheel.borrow().next_tick() {
                None => Wait::Forever,
                Some(tick) => Wait::Until(Instant::from_ns(
                    self.began_ns.saturating_add(tick.saturating_mul(TICK_NS)),
                )),
            }
        };
        self.turns.end(self.hub.look().as_ns(), sys::thread_cpu_ns);
        match wait {
            Wait::Until(_) | Wait::Forever if self.vigil.is_kept() => self.watch(wait),
            _ => self.io.turn(&self.hub, wait),
        }
        let now_ns = self.hub.look().as_ns();
        self.beat.store(now_ns, Ordering::Relaxed);
        self.turns.begin(now_ns, sys::thread_cpu_ns);
        self.hub.exec.collect_remote();
        self.fire_timers();
    }

    /// Looks for a while where that is worth it, then sleeps.
    fn watch(self: &Rc<Self>, wait: Wait) {
        let began_ns = self.hub.now().as_ns();
        if let Some(look_ns) = self.vigil.begins() {
            loop {
                self.io.turn(&self.hub, Wait::Not);
                let took_ns = self.hub.look().as_ns().saturating_sub(began_ns);
                if self.has_work() {
                    return self.vigil.found(took_ns);
                }
                if took_ns >= look_ns {
                    break self.vigil.missed();
                }
            }
        }
        self.io.turn(&self.hub, wait);
        self.vigil
            .slept(self.hub.look().as_ns().saturating_sub(began_ns));
    }

    fn has_work(&self) -> bool {
        self.hub.exec.ready() > 0 || self.hub.exec.remote().is_told() || self.hub.is_news()
    }

    /// Wakes whose time has come.
    pub(crate) fn fire_timers(&self) {
        let mut wheel = self.wheel.borrow_mut();
        if wheel.next_tick().is_some() {
            let tick = self.hub.look().as_ns().saturating_sub(self.began_ns) / TICK_NS;
            wheel.advance(tick);
        }
    }

    /// Ends a dropped connection in a second if it still has something to send then.
    pub(crate) fn linger(self: &Rc<Self>, conn: &Rc<Conn>) {
        let (core, conn) = (self.clone(), Rc::downgrade(conn));
        self.hub.exec.spawn(Box::pin(async move {
            Sleep::until(&core, core.hub.now() + LINGER).await;
            if let Some(conn) = Weak::upgrade(&conn) {
                core.io.abort(&conn);
            }
        }));
    }

    fn report_panic(&self, words: &str) {
        self.hub.count_panic();
        let hook = self.hook.borrow().clone();
        if let Some(hook) = hook {
            hook(words);
        }
    }

    fn tick_of(&self, at: Instant) -> u64 {
        at.as_ns().saturating_sub(self.began_ns).div_ceil(TICK_NS)
    }
}

/// The handle of the core that this thread is. Cloning is cheap; it cannot leave its thread.
#[derive(Clone)]
pub struct Rt(pub(crate) Rc<Core>);

impl Rt {
    /// Starts a task. A panic in it is caught, counted and told to the hook; the core lives on.
    pub fn spawn(&self, f: impl Future<Output = ()> + 'static) {
        self.0.hub.exec.spawn(Box::pin(f));
    }

    /// Now, as of the beginning of this turn or some microseconds later; virtual in the simulator.
    /// It costs nothing.
    pub fn now(&self) -> Instant {
        self.0.hub.now()
    }

    /// Now, from the clock itself: for spans shorter than a turn.
    pub fn precise_now(&self) -> Instant {
        self.0.hub.look()
    }

    /// Unix time in microseconds; virtual in the simulator.
    pub fn wall_us(&self) -> u64 {
        match &self.0.hub.clock {
            Clock::Real => sys::wall_us(),
            // A day in 2026, so that code which looks at dates sees a plausible one.
            Clock::Virtual(ns) => 1_780_000_000_000_000 + ns.get() / 1_000,
        }
    }

    /// A number from this core's generator, seeded by the OS; by the seed in the simulator.
    pub fn random(&self) -> u64 {
        self.0.random.borrow_mut().next()
    }

    /// Waits at least `d`. Granularity: a millisecond.
    pub async fn sleep(&self, d: Duration) {
        Sleep::until(&self.0, self.now() + d).await;
    }

    /// Waits until `t` has come.
    pub async fn sleep_until(&self, t: Instant) {
        Sleep::until(&self.0, t).await;
    }

    /// Waits for `f`, at most `d`. Costs nothing if `f` is ready at once: the timer is set only
    /// when it is not.
    pub fn timeout<F: Future>(&self, d: Duration, f: F) -> Timeout<'_, F> {
        Timeout {
            core: &self.0,
            d,
            sleep: None,
            f,
        }
    }

    /// Lets the other tasks and the driver have a turn.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|cx| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            self.0.hub.yields(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The driver this core runs on; never `Auto`.
    pub fn driver(&self) -> Driver {
        self.0.io.driver()
    }

    /// Returns what the turns of this core have taken, those before the one that asks; with `reset`
    /// they are counted anew.
    pub fn turns(&self, reset: bool) -> Turns {
        self.0.turns.told(reset)
    }

    /// How many tasks of this core have panicked.
    pub fn panics(&self) -> u64 {
        self.0.hub.panics()
    }

    /// When the last turn of this core began, in nanoseconds of [`crate::clock_ns`]; for a thread
    /// that watches whether it still turns. A core without tasks turns only when it is woken.
    pub fn beat(&self) -> Arc<AtomicU64> {
        self.0.beat.clone()
    }

    /// Counts a panic that was caught inside of a task, and tells it to the hook.
    pub fn panicked(&self, words: &str) {
        self.0.report_panic(words);
    }

    /// Calls `hook` with the words of every panic of a task from now on.
    pub fn on_panic(&self, hook: impl Fn(&str) + 'static) {
        *self.0.hook.borrow_mut() = Some(Rc::new(hook));
    }

    /// How many tasks live on this core.
    pub fn tasks(&self) -> usize {
        self.0.hub.exec.live()
    }

    /// Receive buffers of this core: (free, all).
    pub fn buffers(&self) -> (usize, usize) {
        (self.0.hub.pool.available(), self.0.hub.pool.count())
    }
}

/// The future of [`Rt::timeout`]. A struct and not an `async fn`, which would have room for `f`
/// twice: once as an argument and once pinned.
pub struct Timeout<'a, F> {
    core: &'a Rc<Core>,
    d: Duration,
    sleep: Option<Sleep>,
    f: F,
}

impl<F: Future> Future for Timeout<'_, F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `f` is pinned with the struct: nothing moves it out, there is no `Drop`, and
        // `Unpin` is its own.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let f = unsafe { Pin::new_unchecked(&mut this.f) };
        if let Poll::Ready(output) = f.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        let sleep = this
            .sleep
            .get_or_insert_with(|| Sleep::until(this.core, this.core.hub.now() + this.d));
        Pin::new(sleep).poll(cx).map(|()| Err(Elapsed))
    }
}

/// A timer that outlives what it limits. A task that waits a thousand times a second, each time with a limit
/// of hours, sets it once: while it is set for no later than the limit it stays as it is, and the task that
/// it wakes too early sets it anew.
///
/// Whoever waits with it is in one task; several waits at once are fine.
pub struct Alarm {
    core: Rc<Core>,
    key: Cell<Option<Key>>,
}

impl Alarm {
    /// Of this core.
    pub fn new(rt: &Rt) -> Self {
        Self {
            core: rt.0.clone(),
            key: Cell::new(None),
        }
    }

    /// Waits for `f`, until `at` at the latest. Whatever is ready is asked first.
    pub fn until<F: Future>(&self, at: Instant, f: F) -> Until<'_, F> {
        Until { alarm: self, at, f }
    }

    /// Has the task woken at this moment or before.
    fn set(&self, at: Instant, waker: &Waker) {
        let mut wheel = self.core.wheel.borrow_mut();
        let tick = self.core.tick_of(at);
        if let Some(key) = self.key.get() {
            if wheel.pending(key, waker).is_some_and(|its| its <= tick) {
                return;
            }
            wheel.remove(key);
        }
        self.key.set(Some(wheel.insert(tick, waker.clone())));
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Alarm")
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.core.wheel.borrow_mut().remove(key);
        }
    }
}

/// The future of [`Alarm::until`].
pub struct Until<'a, F> {
    alarm: &'a Alarm,
    at: Instant,
    f: F,
}

impl<F: Future> Future for Until<'_, F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `f` is pinned with the struct: nothing moves it out, there is no `Drop`, and
        // `Unpin` is its own.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let f = unsafe { Pin::new_unchecked(&mut this.f) };
        if let Poll::Ready(output) = f.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if this.alarm.core.hub.now() >= this.at {
            return Poll::Ready(Err(Elapsed));
        }
        this.alarm.set(this.at, cx.waker());
        Poll::Pending
    }
}

/// Waits for a moment. Sets its timer at the first poll, and takes it back when dropped.
pub(crate) struct Sleep {
    core: Rc<Core>,
    at: Instant,
    key: Option<Key>,
}

impl Sleep {
    pub(crate) fn until(core: &Rc<Core>, at: Instant) -> Self {
        Self {
            core: core.clone(),
            at,
            key: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(key) = self.key {
            let fired = self.core.wheel.borrow_mut().poll(key, cx.waker());
            return if fired {
                Poll::Ready(())
            } else {
                Poll::Pending
            };
        }
        if self.core.hub.now() >= self.at {
            return Poll::Ready(());
        }
        let tick = self.core.tick_of(self.at);
        let key = self
            .core
            .wheel
            .borrow_mut()
            .insert(tick, cx.waker().clone());
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.core.wheel.borrow_mut().remove(key);
        }
    }
}
