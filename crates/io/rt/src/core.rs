//! A core: one thread, its tasks, its timers and its driver, and the loop that turns them. `Rt` is
//! the handle of it.

use crate::chunk::Pool;
use crate::conn::Conn;
use crate::executor::{Executor, Next};
use crate::io::{Io, Wait};
use crate::random::Random;
use crate::resolve::Names;
use crate::timer::{Key, Wheel};
use crate::turns::{Clockwork, Turns};
use crate::vigil::Vigil;
use crate::{Address, Driver, ListenOptions, Listener, Socket, resolve, sys};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::ops::{Add, Sub};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// So many polls, then the driver gets its turn, however many tasks are still ready.
const POLLS_PER_TURN: u32 = 256;

/// So many receives that are ready at once (epoll), then the task must let others run.
const READS_PER_POLL: u32 = 32;

/// Time that a dropped socket gets for sending the rest.
pub(crate) const LINGER: Duration = Duration::from_secs(1);

const TICK_NS: u64 = 1_000_000;

/// The clock is looked at once in so many polls: reading it costs about as much as a tenth of a
/// short poll.
const POLLS_PER_LOOK: u32 = 8;

/// A moment on the monotonic clock (all cores share it), or on the simulator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The moment at so many nanoseconds of that clock.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds of that clock.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// From `earlier` to this; zero if it is not earlier.
    pub const fn elapsed_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, d: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.elapsed_since(earlier)
    }
}

/// The time is over, and the future was not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time is over")
    }
}

impl std::error::Error for Elapsed {}

pub(crate) enum Clock {
    Real,
    /// Nanoseconds; the simulator moves it.
    Virtual(Rc<Cell<u64>>),
}

type PanicHook = Rc<dyn Fn(&str)>;

pub(crate) struct Core {
    pub(crate) exec: Executor,
    pub(crate) io: Io,
    pub(crate) pool: Rc<Pool>,
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    began_ns: u64,
    looked: Cell<u64>, // the clock when it was last looked at
    beat: Arc<AtomicU64>,
    turns: Clockwork,
    vigil: Vigil,
    wheel: RefCell<Wheel>,
    random: RefCell<Random>,
    news: RefCell<Vec<Rc<Conn>>>, // connections with something new to send
    yielded: RefCell<Vec<Waker>>,
    reads_left: Cell<u32>,
    panics: Cell<u64>,
    hook: RefCell<Option<PanicHook>>,
}

impl Core {
    pub(crate) fn new(
        exec: Executor,
        io: Io,
        pool: Rc<Pool>,
        clock: Clock,
        watch: Duration,
        random: Random,
    ) -> Rc<Self> {
        let began_ns = match &clock {
            Clock::Real => sys::monotonic_ns(),
            Clock::Virtual(ns) => ns.get(),
        };
        Rc::new(Self {
            exec,
            io,
            pool,
            clock,
            names: Names::default(),
            began_ns,
            looked: Cell::new(began_ns),
            turns: Clockwork::starting(began_ns, sys::thread_cpu_ns()),
            beat: Arc::new(AtomicU64::new(began_ns)),
            vigil: Vigil::new(watch),
            wheel: RefCell::new(Wheel::new()),
            random: RefCell::new(random),
            news: RefCell::default(),
            yielded: RefCell::default(),
            reads_left: Cell::new(READS_PER_POLL),
            panics: Cell::new(0),
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
        for words in self.exec.close() {
            self.report_panic(&words);
        }
        self.yielded.take();
        self.io.close(self);
        self.exec.leave();
        ended.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn run_tasks<T>(&self, mut main: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        for polls in 0..POLLS_PER_TURN {
            if polls % POLLS_PER_LOOK == POLLS_PER_LOOK - 1 {
                self.look();
            }
            if self.io.dawdles() {
                return None;
            }
            let next = self.exec.next(self.io.shuffle());
            self.reads_left.set(READS_PER_POLL);
            match next? {
                Next::Main => {
                    let waker = self.exec.main_waker();
                    if let Poll::Ready(result) =
                        main.as_mut().poll(&mut Context::from_waker(&waker))
                    {
                        return Some(result);
                    }
                }
                Next::Task(task) => {
                    if let Err(words) = self.exec.poll(task) {
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
        self.io.send_news(self);
        self.exec.collect_remote();
        for waker in self.yielded.take() {
            waker.wake();
        }
        let wait = if self.exec.ready() > 0 {
            Wait::Not
        } else {
            match self.wheel.borrow().next_tick() {
                None => Wait::Forever,
                Some(tick) => Wait::Until(Instant(
                    self.began_ns.saturating_add(tick.saturating_mul(TICK_NS)),
                )),
            }
        };
        self.turns.end(self.look().0, sys::thread_cpu_ns);
        match wait {
            Wait::Until(_) | Wait::Forever if self.vigil.is_kept() => self.watch(wait),
            _ => self.io.turn(self, wait),
        }
        let now_ns = self.look().0;
        self.beat.store(now_ns, Ordering::Relaxed);
        self.turns.begin(now_ns, sys::thread_cpu_ns);
        self.exec.collect_remote();
        self.fire_timers();
    }

    /// Looks for a while where that is worth it, then sleeps.
    fn watch(self: &Rc<Self>, wait: Wait) {
        let began_ns = self.now().0;
        if let Some(look_ns) = self.vigil.begins() {
            loop {
                self.io.turn(self, Wait::Not);
                let took_ns = self.look().0.saturating_sub(began_ns);
                if self.has_work() {
                    return self.vigil.found(took_ns);
                }
                if took_ns >= look_ns {
                    break self.vigil.missed();
                }
            }
        }
        self.io.turn(self, wait);
        self.vigil.slept(self.look().0.saturating_sub(began_ns));
    }

    fn has_work(&self) -> bool {
        self.exec.ready() > 0 || self.exec.remote().is_told() || !self.news.borrow().is_empty()
    }

    /// Wakes whose time has come.
    pub(crate) fn fire_timers(&self) {
        let mut wheel = self.wheel.borrow_mut();
        if wheel.next_tick().is_some() {
            let tick = self.look().0.saturating_sub(self.began_ns) / TICK_NS;
            wheel.advance(tick);
        }
    }

    /// The clock as it was when it was last looked at: at the beginning of a turn, and every few
    /// polls.
    pub(crate) fn now(&self) -> Instant {
        Instant(match &self.clock {
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

    /// Ends a dropped connection in a second if it still has something to send then.
    pub(crate) fn linger(self: &Rc<Self>, conn: &Rc<Conn>) {
        let (core, conn) = (self.clone(), Rc::downgrade(conn));
        self.exec.spawn(Box::pin(async move {
            Sleep::until(&core, core.now() + LINGER).await;
            if let Some(conn) = Weak::upgrade(&conn) {
                core.io.abort(&conn);
            }
        }));
    }

    pub(crate) fn panics(&self) -> u64 {
        self.panics.get()
    }

    fn report_panic(&self, words: &str) {
        self.panics.set(self.panics.get() + 1);
        let hook = self.hook.borrow().clone();
        if let Some(hook) = hook {
            hook(words);
        }
    }

    fn tick_of(&self, at: Instant) -> u64 {
        at.0.saturating_sub(self.began_ns).div_ceil(TICK_NS)
    }
}

/// The handle of the core that this thread is. Cloning is cheap; it cannot leave its thread.
#[derive(Clone)]
pub struct Rt(pub(crate) Rc<Core>);

impl Rt {
    /// Starts a task. A panic in it is caught, counted and told to the hook; the core lives on.
    pub fn spawn(&self, f: impl Future<Output = ()> + 'static) {
        self.0.exec.spawn(Box::pin(f));
    }

    /// Now, as of the beginning of this turn or some microseconds later; virtual in the simulator.
    /// It costs nothing.
    pub fn now(&self) -> Instant {
        self.0.now()
    }

    /// Now, from the clock itself: for spans shorter than a turn.
    pub fn precise_now(&self) -> Instant {
        self.0.look()
    }

    /// Unix time in microseconds; virtual in the simulator.
    pub fn wall_us(&self) -> u64 {
        match &self.0.clock {
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
            self.0.yielded.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Connects, with TCP_NODELAY. There is no time limit but the kernel's: use
    /// [`timeout`](Self::timeout).
    pub async fn connect(&self, to: &Address) -> io::Result<Socket> {
        self.0.io.connect(&self.0, to).await
    }

    /// Listens.
    pub fn listen(&self, at: &Address, o: ListenOptions) -> io::Result<Listener> {
        self.0.io.listen(&self.0, at, o)
    }

    /// Finds the addresses of a host: literal IPs, and the path of a unix socket (port 0), at once;
    /// names by the system's resolver on a helper thread, remembered for five seconds, and longer
    /// while the resolver has no answer.
    pub async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<Address>> {
        self.resolve_within(host, port, Duration::MAX).await
    }

    /// Finds the addresses of a host, as [`resolve`](Self::resolve); whoever knows addresses from
    /// before waits no longer than `patience` for newer ones.
    pub async fn resolve_within(
        &self,
        host: &str,
        port: u16,
        patience: Duration,
    ) -> io::Result<Vec<Address>> {
        resolve::resolve(self, host, port, patience).await
    }

    /// Addresses of a name by asking now, whatever is known. What [`Rt::resolve`] says stays as it
    /// is.
    pub async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        resolve::ask(self, host).await
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
        self.0.panics()
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
        self.0.exec.live()
    }

    /// Receive buffers of this core: (free, all).
    pub fn buffers(&self) -> (usize, usize) {
        (self.0.pool.available(), self.0.pool.count())
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
            .get_or_insert_with(|| Sleep::until(this.core, this.core.now() + this.d));
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
        if this.alarm.core.now() >= this.at {
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
        if self.core.now() >= self.at {
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
