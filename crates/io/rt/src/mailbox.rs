//! Bounded messages between threads: any thread sends without waiting, one task awaits.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// A mailbox that holds at most `capacity` messages.
pub fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        capacity,
        inner: Mutex::new(Inner {
            queue: VecDeque::new(),
            waker: None,
            senders: 1,
            open: true,
        }),
    });
    (Sender(shared.clone()), Receiver(shared))
}

struct Shared<T> {
    capacity: usize,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    queue: VecDeque<T>, // queue.len() <= capacity
    waker: Option<Waker>,
    senders: usize,
    open: bool, // the receiver lives
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts messages in. Clone it for every thread that has something to say.
pub struct Sender<T>(Arc<Shared<T>>);

/// Takes messages out. May travel to its thread before it is first awaited.
pub struct Receiver<T>(Arc<Shared<T>>);

/// Why a message could not be left; it comes back.
#[derive(Debug, PartialEq, Eq)]
pub enum SendError<T> {
    /// The mailbox holds as many messages as it may.
    Full(T),
    /// Nobody will ever read it.
    Closed(T),
}

impl<T> SendError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(m) | Self::Closed(m) => m,
        }
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the mailbox is full",
            Self::Closed(_) => "the mailbox has no reader any more",
        })
    }
}

impl<T> Sender<T> {
    /// Leaves a message, or gives it back at once.
    pub fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        let waker = {
            let mut inner = self.0.lock();
            if !inner.open {
                return Err(SendError::Closed(message));
            }
            if inner.queue.len() >= self.0.capacity {
                return Err(SendError::Full(message));
            }
            inner.queue.push_back(message);
            inner.waker.take()
        };
        // Outside the lock: the woken thread wants it next.
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.0.lock().queue.len()
    }

    /// Does no message wait?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut inner = self.0.lock();
            inner.senders -= 1;
            if inner.senders == 0 {
                inner.waker.take()
            } else {
                None
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// The next message; `None` when every sender is gone and nothing is left. Cancel-safe.
    pub async fn recv(&self) -> Option<T> {
        std::future::poll_fn(|cx| {
            let mut inner = self.0.lock();
            if let Some(message) = inner.queue.pop_front() {
                return Poll::Ready(Some(message));
            }
            if inner.senders == 0 {
                return Poll::Ready(None);
            }
            inner.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// A message that is there already.
    pub fn try_recv(&self) -> Option<T> {
        self.0.lock().queue.pop_front()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let left = {
            let mut inner = self.0.lock();
            inner.open = false;
            inner.waker = None;
            std::mem::take(&mut inner.queue)
        };
        // Messages may own senders of their own: drop them outside the lock.
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_mailbox_gives_the_message_back() {
        let (tx, rx) = channel(1);
        tx.try_send(1).unwrap();
        assert_eq!(tx.try_send(2), Err(SendError::Full(2)));
        assert_eq!(rx.try_recv(), Some(1));
        drop(rx);
        assert_eq!(tx.try_send(3), Err(SendError::Closed(3)));
    }
}
