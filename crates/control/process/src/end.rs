//! What ends the process, and how it ends.

use crate::handover::Successor;
use bridge::ToCore;
use rt::mailbox::Sender;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long sessions may take to go to a process that has taken over; the cores end them sooner.
const LEAVES_WITHIN: Duration = Duration::from_secs(48 * 3600);
/// How soon a core that could not be told to drain is told again.
const TOLD_AGAIN: Duration = Duration::from_millis(100);

/// Event that can happen to the process.
pub enum Event {
    /// A signal that asks for logs that are opened anew.
    Reopen,
    /// Any other signal.
    Signal,
    /// `PROXYSQL SHUTDOWN`, or (`true`) at once.
    Shutdown(bool),
    /// A core has no sessions any more, or its time for that is over.
    Drained,
    /// Another process has taken over.
    Left(Successor),
    /// A thread has ended, and how.
    Ended(String, Result<(), String>),
}

/// Everybody who has to do with the end of the process.
pub struct End<'a> {
    /// For cores that have drained.
    pub events: &'a mpsc::Sender<Event>,
    /// The cores.
    pub cores: &'a [Sender<ToCore>],
    /// Opens the logs anew.
    pub reopen: &'a dyn Fn(),
    /// Called when the end begins: how long it may take.
    pub may_take: &'a dyn Fn() -> Duration,
    /// Hears what an operator should read.
    pub note: &'a dyn Fn(&str),
}

impl End<'_> {
    /// Waits for what ends the proxy. The first wish to end drains, for as long as that may take;
    /// the second ends at once. `upgrade`: the thread that sends sessions to a process that takes
    /// over, which sends all that it has.
    ///
    /// # Errors
    /// A thread has ended with an error.
    pub fn wait(
        &self,
        happens: &mpsc::Receiver<Event>,
        upgrade: Option<JoinHandle<()>>,
    ) -> Result<(), String> {
        let successor = self.wait_for(happens)?;
        if let (Some(successor), Some(upgrade)) = (successor, upgrade) {
            successor.is_all();
            drop(upgrade.join());
        }
        Ok(())
    }

    fn wait_for(&self, happens: &mpsc::Receiver<Event>) -> Result<Option<Successor>, String> {
        let mut successor = None;
        let (mut draining, mut left, mut untold): (Option<Instant>, _, Vec<_>) =
            (None, self.cores.len(), Vec::new());
        loop {
            let patience =
                match draining.map(|until| until.saturating_duration_since(Instant::now())) {
                    None => Duration::MAX,
                    Some(left) if untold.is_empty() => left,
                    Some(left) => left.min(TOLD_AGAIN),
                };
            match happens.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout)
                    if draining.is_some_and(|until| Instant::now() >= until) =>
                {
                    (self.note)(&format!("{left} cores have not drained in time: ending"));
                    return Ok(successor);
                }
                Err(RecvTimeoutError::Timeout) => {
                    untold.retain(|core| !told_to_end(core, self.events, successor.as_ref()));
                }
                Err(RecvTimeoutError::Disconnected) | Ok(Event::Shutdown(true)) => {
                    return Ok(successor);
                }
                Ok(Event::Reopen) => (self.reopen)(),
                Ok(Event::Signal | Event::Shutdown(false)) if draining.is_some() => {
                    (self.note)("ending at once");
                    return Ok(successor);
                }
                Ok(Event::Signal | Event::Shutdown(false)) => {
                    draining = Some(Instant::now() + (self.may_take)());
                    untold = self.cores.to_vec();
                    untold.retain(|core| !told_to_end(core, self.events, None));
                    if !untold.is_empty() {
                        (self.note)(&format!(
                            "{} cores do not listen yet; a second signal ends at once",
                            untold.len()
                        ));
                    }
                }
                Ok(Event::Left(next)) => {
                    (self.note)(
                        "another process has taken over: sessions go there when they are idle; a signal ends at once",
                    );
                    // Each core has its own deadline.
                    draining = Some(Instant::now() + LEAVES_WITHIN);
                    let next = successor.insert(next);
                    untold = self.cores.to_vec();
                    untold.retain(|core| !told_to_end(core, self.events, Some(next)));
                }
                Ok(Event::Ended(name, Err(error))) => return Err(format!("{name}: {error}")),
                Ok(Event::Drained) => {
                    left -= 1;
                    if left == 0 {
                        (self.note)("drained");
                        return Ok(successor);
                    }
                }
                Ok(Event::Ended(name, Ok(()))) => (self.note)(&format!("{name} has ended")),
            }
        }
    }
}

/// Whether a core could be told that the end has begun, or that another process goes on.
fn told_to_end(
    core: &Sender<ToCore>,
    events: &mpsc::Sender<Event>,
    successor: Option<&Successor>,
) -> bool {
    let tell = events.clone();
    let done = Box::new(move |()| drop(tell.send(Event::Drained)));
    let letter = match successor {
        Some(next) => ToCore::Leave {
            take: next.take(),
            done,
        },
        None => ToCore::Drain { done },
    };
    core.try_send(letter).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::mailbox;
    use std::cell::RefCell;
    use std::thread;

    #[test]
    fn a_core_that_cannot_be_told_to_drain_is_told_when_it_can_and_waited_for_only_so_long() {
        for (may_take, wanted) in [(500, "have not drained in time"), (60_000, "drained")] {
            let (full, unread) = mailbox::channel(1);
            assert!(full.try_send(ToCore::Accept(true)).is_ok());
            let (events, happens) = mpsc::channel();
            events.send(Event::Shutdown(false)).unwrap();
            let core = thread::spawn(move || {
                // The first does nothing any more, the second for a while.
                thread::sleep(Duration::from_millis(if may_take == 500 {
                    2000
                } else {
                    300
                }));
                rt::run(rt::Driver::READINESS, |_rt| async move {
                    drop(unread.recv().await);
                    if let Some(ToCore::Drain { done }) = unread.recv().await {
                        done(());
                    }
                })
            });
            let (began, said) = (Instant::now(), RefCell::new(Vec::new()));
            let ended = End {
                events: &events,
                cores: &[full],
                reopen: &|| {},
                may_take: &|| Duration::from_millis(may_take),
                note: &|words| said.borrow_mut().push(words.to_owned()),
            }
            .wait(&happens, None);
            // Behind it the core's mailbox is closed.
            assert_eq!(ended, Ok(()));
            let took = began.elapsed();
            assert!(took < Duration::from_secs(50), "{took:?}");
            core.join().unwrap().unwrap();
            let said = said.into_inner().join("; ");
            assert!(said.contains(wanted), "{said}");
        }
    }
}
