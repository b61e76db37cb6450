//! Tasks that a core is not a core without: one that a defect ends is begun again.

use crate::core::Core;
use rt::Rt;
use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// Pause before a task is begun again: a defect that is there each time must not take all of a
/// processor.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs a task until it ends by itself. `name` is how an operator reads of it; `begin` makes it,
/// and makes it anew after a defect.
pub(crate) fn lasting<F>(core: &Rc<Core>, name: String, begin: impl FnMut() -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let host = core.clone();
    let again = again(core.rt.clone(), begin, move |words| {
        host.note(&format!(
            "a defect ended the task '{name}' of the core, which is begun again: {words}"
        ));
    });
    core.rt.spawn(again);
}

/// Runs a task until it ends by itself; `hears` the words of each panic.
async fn again<F: Future<Output = ()>>(rt: Rt, mut begin: impl FnMut() -> F, hears: impl Fn(&str)) {
    while let Err(words) = watched(begin()).await {
        rt.panicked(&words);
        hears(&words);
        rt.sleep(PAUSE).await;
    }
}

/// Outcome of a task: done, or the words of its panic.
async fn watched(task: impl Future<Output = ()>) -> Result<(), String> {
    let mut task = Box::pin(task);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Err(panic) => Poll::Ready(Err(rt::panic_words(&*panic))),
        },
    )
    .await
}

/// Something that each begin of a task takes over, if it is there still: the first has it.
pub(crate) struct Once<T>(Cell<Option<T>>);

impl<T> Once<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Cell::new(Some(value)))
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_task_that_a_defect_ends_is_begun_again_and_one_that_ends_is_not() {
        let (begun, said, panics) = rt::run(rt::Driver::READINESS, |rt| async move {
            let (begun, said) = (Cell::new(0), RefCell::new(Vec::new()));
            let begin = || {
                begun.set(begun.get() + 1);
                let (nth, pause) = (begun.get(), rt.clone());
                async move {
                    pause.sleep(Duration::from_millis(1)).await;
                    assert!(nth > 2, "defect {nth}");
                }
            };
            let hears = |words: &str| said.borrow_mut().push(words.to_owned());
            again(rt.clone(), begin, hears).await;
            (begun.get(), said.take(), rt.panics())
        })
        .unwrap();
        assert_eq!((begun, panics), (3, 2));
        assert_eq!(said, ["defect 1", "defect 2"]);
    }
}
