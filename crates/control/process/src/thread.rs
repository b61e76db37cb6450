//! A thread with an executor of its own, which says when it serves and when it ends.

use crate::end::Event;
use rt::Rt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

/// Word of a thread that it serves: said once, to whoever began it.
#[derive(Debug)]
pub struct Ready(mpsc::Sender<Result<(), String>>);

impl Ready {
    /// Says it.
    pub fn say(self) {
        // Whoever started it may have given up.
        let _gone = self.0.send(Ok(()));
    }
}

/// Runs `main` on an executor of a thread of its own, with a stack of so many bytes. Returns when it has said
/// that it is ready. When it ends, for whatever reason, `events` get the name and the reason.
///
/// # Errors
/// There is no thread to be had, or it has ended before it was ready: its own words, or that a defect ended it.
pub fn begin_thread<F>(
    name: String,
    stack_bytes: usize,
    events: mpsc::Sender<Event>,
    options: impl Into<rt::Options>,
    main: impl FnOnce(Rt, Ready) -> F + Send + 'static,
) -> Result<(), String>
where
    F: Future<Output = Result<(), String>>,
{
    let (tell, ready) = mpsc::channel();
    let options = options.into();
    let (called, failed) = (name.clone(), tell.clone());
    let body = move || {
        // A defect outside of all sessions would end this thread without a word: its sessions
        // gone, its mailbox unread.
        let run = AssertUnwindSafe(|| rt::run_with(options, |rt| main(rt, Ready(tell))));
        let ended = match catch_unwind(run) {
            Ok(ended) => ended
                .map_err(|error| error.to_string())
                .and_then(|ended| ended),
            Err(_said_already) => Err("a defect ended it".to_owned()),
        };
        // Heard if it was not ready yet.
        let _serving = failed.send(ended.clone());
        // Nobody listens any more when the process ends anyway.
        let _late = events.send(Event::Ended(called, ended));
    };
    thread::Builder::new()
        .name(name)
        .stack_size(stack_bytes)
        .spawn(body)
        .map_err(|error| error.to_string())?;
    ready
        .recv()
        .unwrap_or_else(|_gone| Err("it ended before it was ready".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_a_defect_ends_says_so_before_it_is_ready_and_later() {
        let (events, happens) = mpsc::channel();
        let readiness = rt::Driver::READINESS;
        let small = 1 << 20;
        let begun = begin_thread(
            "early".into(),
            small,
            events.clone(),
            readiness,
            |_rt, _ready| async { panic!("a defect") },
        );
        assert_eq!(begun, Err("a defect ended it".to_owned()));
        let begun = begin_thread(
            "late".into(),
            small,
            events,
            readiness,
            |_rt, ready| async {
                ready.say();
                panic!("a defect")
            },
        );
        assert_eq!(begun, Ok(()));
        let ended = |_| match happens.recv() {
            Ok(Event::Ended(name, Err(words))) => format!("{name}: {words}"),
            _ => panic!("something else"),
        };
        let mut both = [0, 1].map(ended);
        both.sort_unstable();
        assert_eq!(
            both,
            ["early: a defect ended it", "late: a defect ended it"]
        );
    }
}
