//! Futures on the heap whose memory is used again: for what is large and begins often.
//!
//! `Box::pin` of a future of some KiB costs more than it seems: the future is made on the stack and
//! copied, and blocks of that size are beyond what the allocator has at hand. Here the memory is
//! there first, and the future is made in it.

use std::alloc::Layout;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// Blocks of one thread that wait to be used again, at most this many of all sizes together.
const KEPT: usize = 64;

thread_local! {
    static FREE: RefCell<Free> = const { RefCell::new(Free(Vec::new())) };
}

/// Every block is of the global allocator, of the layout beside it, and nobody else's.
struct Free(Vec<(Layout, NonNull<u8>)>);

impl Drop for Free {
    fn drop(&mut self) {
        for (layout, block) in self.0.drain(..) {
            // SAFETY: what `Free` promises; the layout is not of size 0, as `take` has seen to.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        }
    }
}

/// A block of this layout, which is not of size 0: one that was given back, or a new one.
fn take(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "a future of size 0 needs no memory");
    let kept = FREE.try_with(|free| {
        let free = &mut free.borrow_mut().0;
        let at = free.iter().rposition(|(of, _)| *of == layout)?;
        Some(free.swap_remove(at).1)
    });
    if let Ok(Some(block)) = kept {
        return block;
    }
    // SAFETY: the size is not 0.
    let block = unsafe { std::alloc::alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| std::alloc::handle_alloc_error(layout))
}

/// Gives a block back that `take` gave for this layout, and in which nothing lives any more.
///
/// # Safety
///
/// As said: the block is `take`'s, of this very layout, and the caller's alone.
unsafe fn give(layout: Layout, block: NonNull<u8>) {
    let kept = FREE.try_with(|free| {
        let free = &mut free.borrow_mut().0;
        let room = free.len() < KEPT;
        if room {
            free.push((layout, block));
        }
        room
    });
    if kept != Ok(true) {
        // SAFETY: the caller's promise; nobody kept it.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
    }
}

/// A future in memory of its own, pinned there; as `Pin<Box<F>>`, but for where the memory comes
/// from and goes to.
#[derive(Debug)]
pub struct Recycled<F> {
    /// A living `F` that nobody else knows of.
    future: NonNull<F>,
}

/// The future that `make` makes, in memory that an earlier one has left.
///
/// # Panics
///
/// For a future without size.
pub fn recycled<F: Future>(make: impl FnOnce() -> F) -> Recycled<F> {
    /// If `make` panics, the block goes back.
    struct Empty(Layout, NonNull<u8>);
    impl Drop for Empty {
        fn drop(&mut self) {
            // SAFETY: it is of `take` for this layout, and nothing was written to it.
            unsafe { give(self.0, self.1) };
        }
    }
    let layout = Layout::new::<F>();
    let block = Empty(layout, take(layout));
    let future = block.1.cast::<F>();
    // SAFETY: the block is of `F`'s layout and ours alone.
    unsafe { future.as_ptr().write(make()) };
    std::mem::forget(block);
    Recycled { future }
}

impl<F: Future> Future for Recycled<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: it lives until `drop`, is only reached through this exclusive reference, and
        // never moves: the block stays where it is when `Recycled` moves.
        unsafe { Pin::new_unchecked(self.get_mut().future.as_mut()) }.poll(cx)
    }
}

impl<F> Drop for Recycled<F> {
    fn drop(&mut self) {
        /// Gives the block back though the future panics when dropped.
        struct Back<F>(NonNull<F>);
        impl<F> Drop for Back<F> {
            fn drop(&mut self) {
                // SAFETY: `take` gave it for this layout, and what lived there was dropped just
                // before.
                unsafe { give(Layout::new::<F>(), self.0.cast()) };
            }
        }
        let back = Back(self.future);
        // SAFETY: it lives, and nobody asks for it after this.
        unsafe { back.0.as_ptr().drop_in_place() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::Waker;

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    async fn large(seed: u8, held: Rc<()>) -> u64 {
        let bytes = [seed; 3000];
        std::future::pending::<()>().await;
        drop(held);
        bytes.iter().map(|b| u64::from(*b)).sum()
    }

    #[test]
    fn the_memory_is_used_again_and_what_lived_there_was_dropped() {
        let held = Rc::new(());
        let mut first = recycled(|| large(1, held.clone()));
        let place = first.future;
        assert!(
            Pin::new(&mut first)
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert_eq!(Rc::strong_count(&held), 2);
        drop(first);
        assert_eq!(Rc::strong_count(&held), 1);
        let second = recycled(|| large(2, held.clone()));
        assert_eq!(second.future.cast::<u8>(), place.cast());
        let third = recycled(|| large(3, held.clone()));
        assert_ne!(third.future, second.future);
    }

    #[test]
    fn other_layouts_have_other_memory() {
        let small = recycled(|| async { 7u8 });
        let place = small.future.cast::<u8>();
        assert_eq!(poll(small), Poll::Ready(7));
        let wide = recycled(|| std::future::ready([1u128; 4]));
        assert_ne!(wide.future.cast::<u8>(), place);
        assert_eq!(poll(wide), Poll::Ready([1; 4]));
    }

    #[test]
    fn a_panic_loses_nothing() {
        let died = std::panic::catch_unwind(|| poll(recycled(|| async { panic!("inside") })));
        assert!(died.is_err());
        let unmade = std::panic::catch_unwind(|| {
            recycled(|| -> std::future::Ready<[u64; 9]> { panic!("before") })
        });
        assert!(unmade.is_err());
        assert_eq!(
            poll(recycled(|| std::future::ready([4u64; 9]))),
            Poll::Ready([4; 9])
        );
    }

    #[test]
    fn only_so_many_blocks_are_kept() {
        let many: Vec<_> = (0..2 * KEPT)
            .map(|n| recycled(move || std::future::ready([n; 100])))
            .collect();
        drop(many);
        assert_eq!(FREE.with(|free| free.borrow().0.len()), KEPT);
    }
}
