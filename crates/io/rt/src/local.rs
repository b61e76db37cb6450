//! Signals inside one core: `Notify` (something changed), `Bell` (the same for one listener, which
//! costs less) and `oneshot` (one value, one reader). Not `Send`, no atomics.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Wakes tasks that wait for a change. A `notify_one` that finds nobody waiting is remembered
/// (once), so the pattern "look, then wait" loses no signal.
#[derive(Default)]
pub struct Notify {
    waiting: RefCell<VecDeque<Rc<Waiting>>>,
    stored: Cell<bool>,
}

struct Waiting {
    told: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Notify {
    /// Nobody waits, nothing is stored.
    pub fn new() -> Self {
        Self::default()
    }

    /// Resolves at the next notification. Cancel-safe: a notification given to a dropped wait goes
    /// to the next.
    pub fn wait(&self) -> Wait<'_> {
        Wait {
            notify: self,
            place: None,
        }
    }

    /// Wakes the one that waits longest, or lets the next `wait` return at once.
    pub fn notify_one(&self) {
        let first = self.waiting.borrow_mut().pop_front();
        match first {
            Some(w) => w.tell(),
            None => self.stored.set(true),
        }
    }

    /// Wakes everybody who waits now; stores nothing.
    pub fn notify_all(&self) {
        let all = std::mem::take(&mut *self.waiting.borrow_mut());
        for w in all {
            w.tell();
        }
    }
}

impl Waiting {
    fn tell(&self) {
        self.told.set(true);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The future of [`Notify::wait`].
pub struct Wait<'a> {
    notify: &'a Notify,
    place: Option<Rc<Waiting>>,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(place) = &self.place {
            if place.told.get() {
                self.place = None;
                return Poll::Ready(());
            }
            *place.waker.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if self.notify.stored.take() {
            return Poll::Ready(());
        }
        let place = Rc::new(Waiting {
            told: Cell::new(false),
            waker: RefCell::new(Some(cx.waker().clone())),
        });
        self.notify.waiting.borrow_mut().push_back(place.clone());
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else {
            return;
        };
        if place.told.get() {
            // We were told but never looked: pass it on.
            self.notify.notify_one();
        } else {
            self.notify
                .waiting
                .borrow_mut()
                .retain(|w| !Rc::ptr_eq(w, &place));
        }
    }
}

/// Wakes the one task that listens. A ring that finds nobody listening is remembered, once.
#[derive(Default)]
pub struct Bell {
    rung: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Bell {
    /// Silent.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rings.
    pub fn ring(&self) {
        self.rung.set(true);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Resolves when it rings, or has rung since somebody last heard it. Cancel-safe. Of two
    /// listeners only the last is woken.
    pub fn heard(&self) -> impl Future<Output = ()> + '_ {
        poll_fn(|cx| {
            if self.rung.take() {
                return Poll::Ready(());
            }
            let mut waker = self.waker.borrow_mut();
            if waker.as_ref().is_none_or(|old| !old.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
            Poll::Pending
        })
    }
}

/// One value from one task to another of the same core.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Rc::new(Shot {
        value: RefCell::new(None),
        waker: RefCell::new(None),
        gone: Cell::new(false),
    });
    (Sender(shared.clone()), Receiver(shared))
}

struct Shot<T> {
    value: RefCell<Option<T>>,
    waker: RefCell<Option<Waker>>,
    gone: Cell<bool>, // one side was dropped
}

/// The giving end of [`oneshot`].
pub struct Sender<T>(Rc<Shot<T>>);

/// The taking end of [`oneshot`]: await it; `None` if the sender was dropped.
pub struct Receiver<T>(Rc<Shot<T>>);

impl<T> Sender<T> {
    /// Hands the value over; gives it back if nobody waits for it any more.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.0.gone.get() {
            return Err(value);
        }
        *self.0.value.borrow_mut() = Some(value);
        Ok(())
    }

    /// Has the receiver been dropped?
    pub fn is_closed(&self) -> bool {
        self.0.gone.get()
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.gone.set(true);
        let waker = self.0.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let value = self.0.value.borrow_mut().take();
        if value.is_some() || self.0.gone.get() {
            return Poll::Ready(value);
        }
        *self.0.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.gone.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll<F: Future + Unpin>(f: &mut F) -> Poll<F::Output> {
        Pin::new(f).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_notification_without_a_waiter_is_kept_once() {
        let n = Notify::new();
        n.notify_one();
        n.notify_one();
        assert!(poll(&mut n.wait()).is_ready());
        assert!(poll(&mut n.wait()).is_pending());
    }

    #[test]
    fn a_notification_given_to_a_dropped_wait_goes_to_the_next() {
        let n = Notify::new();
        let (mut a, mut b) = (n.wait(), n.wait());
        assert!(poll(&mut a).is_pending() && poll(&mut b).is_pending());
        n.notify_one();
        drop(a);
        assert!(poll(&mut b).is_ready());
    }

    #[test]
    fn notify_all_wakes_all_and_stores_nothing() {
        let n = Notify::new();
        let (mut a, mut b) = (n.wait(), n.wait());
        assert!(poll(&mut a).is_pending() && poll(&mut b).is_pending());
        n.notify_all();
        assert!(poll(&mut a).is_ready() && poll(&mut b).is_ready());
        assert!(poll(&mut n.wait()).is_pending());
    }

    #[test]
    fn a_oneshot_delivers_or_says_that_nobody_is_left() {
        let (tx, mut rx) = oneshot();
        assert!(poll(&mut rx).is_pending());
        tx.send(7).unwrap();
        assert_eq!(poll(&mut rx), Poll::Ready(Some(7)));
        let (tx, mut rx) = oneshot::<u8>();
        drop(tx);
        assert_eq!(poll(&mut rx), Poll::Ready(None));
        let (tx, rx) = oneshot();
        drop(rx);
        assert_eq!(tx.send(1), Err(1));
    }
}
