//! Waiting for the first of two things.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Which of two futures was ready first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    Left(A),
    /// The second one.
    Right(B),
}

/// Resolves with whichever is ready first; `a` is asked first. The other is dropped.
pub fn select<A: Future, B: Future>(a: A, b: B) -> Select<A, B> {
    Select { a, b }
}

/// The future of [`select`]. A struct and not an `async fn`, which would have room for both futures
/// twice: once as arguments and once pinned.
pub struct Select<A, B> {
    a: A,
    b: B,
}

impl<A: Future, B: Future> Future for Select<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: both fields are pinned with the struct: nothing moves them out, there is no
        // `Drop`, and `Unpin` is theirs.
        let (a, b) = unsafe {
            let this = self.get_unchecked_mut();
            (
                Pin::new_unchecked(&mut this.a),
                Pin::new_unchecked(&mut this.b),
            )
        };
        if let Poll::Ready(a) = a.poll(cx) {
            return Poll::Ready(Either::Left(a));
        }
        b.poll(cx).map(Either::Right)
    }
}
