//! Work that takes long, on a thread of its own that gives way: twenty thousand expressions take a
//! second to compile and a while to be freed.
//!
//! Operators are answered meanwhile. And whoever waits for the processor, a core most of all, gets
//! it between two steps of the work: the kernel alone would let him wait for the end of a time
//! slice, which is several milliseconds.

use config::{Help, Step};
use rt::mailbox;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

type Work = Box<dyn FnOnce() + Send>;

/// Where such work is done, one piece after the other.
pub(crate) enum Aside {
    /// On this thread.
    Thread(mpsc::Sender<Work>),
    /// At once, by whoever asks: where there is no other thread, as in a simulated world.
    Here,
}

/// Gives way to others between two steps.
pub(crate) fn give_way() {
    thread::yield_now();
}

/// No more threads than this work on a LOAD: it shall be soon done, and leave processors for the
/// cores.
const THREADS_MAX: usize = 4;

/// Threads that come for the steps of one work, beside the one whose work it is, and go when they
/// are done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Helpers {
    /// With the one whose work it is.
    threads: usize, // 1 <= threads <= THREADS_MAX
}

impl Help for Helpers {
    fn pause(&self) {
        give_way();
    }

    fn share(&self, steps: Vec<Step<'_>>) {
        let helpers = self.threads.min(steps.len()).saturating_sub(1);
        let left = Mutex::new(steps.into_iter());
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some(step) = next() {
                step();
            }
        };
        thread::scope(|scope| {
            for _ in 0..helpers {
                // Without it, the others do what there is.
                drop(
                    thread::Builder::new()
                        .name("helper".into())
                        .spawn_scoped(scope, work),
                );
            }
            work();
        });
    }
}

impl Aside {
    /// A thread that ends with this.
    pub(crate) fn thread() -> std::io::Result<Self> {
        let (give, take) = mpsc::channel::<Work>();
        let body = move || {
            for work in take {
                // Whoever waits for what comes of it hears that nothing does; the thread is there
                // for the next.
                let _told_by_the_hook = catch_unwind(AssertUnwindSafe(work));
            }
        };
        thread::Builder::new().name("aside".into()).spawn(body)?;
        Ok(Self::Thread(give))
    }

    /// Who helps with what is done here.
    pub(crate) fn helpers(&self) -> Helpers {
        let threads = match self {
            Self::Here => 1,
            Self::Thread(_) => thread::available_parallelism()
                .map_or(1, usize::from)
                .min(THREADS_MAX),
        };
        Helpers { threads }
    }

    /// Does it, and says what came of it; `None` if it panicked.
    pub(crate) async fn done<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mailbox::channel(1);
        self.later(move || drop(tell.try_send(work())));
        told.recv().await
    }

    /// Does it when it can.
    pub(crate) fn later(&self, work: impl FnOnce() + Send + 'static) {
        let work: Work = Box::new(work);
        match self {
            Self::Here => work(),
            // The thread ends after this only.
            Self::Thread(give) => drop(give.send(work)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_elsewhere_and_a_panic_ends_only_the_work() {
        let answers = rt::run(rt::Driver::READINESS, |_| async {
            let aside = Aside::thread().unwrap();
            let here = thread::current().id();
            let elsewhere = aside.done(move || thread::current().id() != here).await;
            let failed = aside
                .done(|| -> u8 { panic!("as it should in this test") })
                .await;
            (elsewhere, failed, aside.done(|| 7).await)
        });
        assert_eq!(answers.unwrap(), (Some(true), None, Some(7)));
    }

    #[test]
    fn steps_are_shared_among_threads_and_all_done_in_the_end() {
        for threads in 1..=THREADS_MAX {
            let mut done = [0; 100];
            let met = std::sync::Barrier::new(threads);
            let steps = done.iter_mut().enumerate().map(|(at, done)| -> Step<'_> {
                let met = &met;
                Box::new(move || {
                    // As many at once as there are threads.
                    if at < threads {
                        met.wait();
                    }
                    *done += 1;
                })
            });
            Helpers { threads }.share(steps.collect());
            assert_eq!(done, [1; 100]);
        }
        Helpers { threads: 2 }.share(Vec::new());
        assert_eq!(Aside::Here.helpers().threads, 1);
    }
}
