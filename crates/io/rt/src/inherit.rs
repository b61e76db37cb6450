//! Listeners that one process leaves to the next: an upgrade refuses nobody, since the kernel's queue
//! of connections stays while either process has it open.

use crate::Address;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// Listeners of this process, each by a descriptor of its own.
static OPEN: Mutex<Vec<(u64, Address, OwnedFd)>> = Mutex::new(Vec::new());
/// Listeners that another process has left to this one, and that nobody here has asked for yet.
static INHERITED: Mutex<Vec<(Address, OwnedFd)>> = Mutex::new(Vec::new());
/// Whether this process has left its listeners to another.
static LEFT: AtomicBool = AtomicBool::new(false);
/// Tasks that wait for that.
static WAIT: Mutex<Vec<Waker>> = Mutex::new(Vec::new());

/// Entry of a listener among those that could be left. Dropped, it is none any more.
#[derive(Debug)]
pub struct Registered(u64);

impl Registered {
    /// Enters one that was opened for `at`. None if that cannot be: it is left to nobody then.
    pub fn of(at: &Address, listener: &impl AsFd) -> Option<Self> {
        let own = listener.as_fd().try_clone_to_owned().ok()?;
        let mut open = OPEN.lock().ok()?;
        let number = open.last().map_or(0, |(number, ..)| number + 1);
        open.push((number, at.clone(), own));
        Some(Self(number))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Ok(mut open) = OPEN.lock() {
            open.retain(|(number, ..)| *number != self.0);
        }
    }
}

/// Duplicates of all listeners of this process, with the addresses that they were asked for by.
///
/// # Errors
/// The process has no descriptors left.
pub fn listeners() -> io::Result<Vec<(Address, OwnedFd)>> {
    let Ok(open) = OPEN.lock() else {
        return Ok(Vec::new());
    };
    open.iter()
        .map(|(_, at, fd)| Ok((at.clone(), fd.try_clone()?)))
        .collect()
}

/// Has [`Rt::listen`](crate::Rt::listen) take these instead of opening its own, each once.
pub fn inherit(listeners: Vec<(Address, OwnedFd)>) {
    if let Ok(mut inherited) = INHERITED.lock() {
        inherited.extend(listeners);
    }
}

/// Whether one is left that was opened for this address.
pub fn is_inherited(at: &Address) -> bool {
    INHERITED
        .lock()
        .is_ok_and(|all| all.iter().any(|(of, _)| of == at))
}

/// Closes those that nobody has asked for; their addresses.
pub fn close_inherited() -> Vec<Address> {
    let left = INHERITED.lock().map(|mut all| std::mem::take(&mut *all));
    left.unwrap_or_default()
        .into_iter()
        .map(|(at, _)| at)
        .collect()
}

/// Takes the one that was opened for this address.
pub fn take_inherited(at: &Address) -> Option<OwnedFd> {
    let mut all = INHERITED.lock().ok()?;
    let place = all.iter().position(|(of, _)| of == at)?;
    Some(all.remove(place).1)
}

/// Accepts nothing any more: another process does, with the same listeners. What this one has
/// accepted already is its own.
pub fn leave_listeners() {
    LEFT.store(true, Ordering::SeqCst);
    if let Ok(mut wait) = WAIT.lock() {
        wait.drain(..).for_each(Waker::wake);
    }
}

/// Whether this process has left its listeners to another.
pub fn have_left() -> bool {
    LEFT.load(Ordering::Relaxed)
}

/// Resolves when this process has left its listeners to another, on any executor.
pub async fn left() {
    poll_fn(|context| {
        if let Ok(mut wait) = WAIT.lock()
            && !wait.iter().any(|waker| waker.will_wake(context.waker()))
        {
            wait.push(context.waker().clone());
        }
        match LEFT.load(Ordering::SeqCst) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}
