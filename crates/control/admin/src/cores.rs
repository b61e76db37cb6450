//! The data cores as the admin port sees them: messages go out, answers come back or do not come in time.

use bridge::{Ask, FlushCache, Killed, Report, ToCore};
use config::Snapshot;
use rt::mailbox::{self, Sender};
use rt::{Address, Rt};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// How long cores may take to answer. They look into their mailboxes many times a millisecond.
const ANSWER: Duration = Duration::from_secs(5);

/// The mailboxes of all cores.
pub(crate) struct Cores {
    rt: Rt,
    senders: Vec<Sender<ToCore>>,
    /// What the cores were given. Whoever drops a snapshot last takes it apart, a million users or twenty thousand
    /// expressions; that shall be this thread, since a core has sessions that wait.
    given: RefCell<Vec<Arc<Snapshot>>>,
}

impl Cores {
    pub(crate) fn new(rt: Rt, senders: Vec<Sender<ToCore>>) -> Self {
        Self { rt, senders, given: RefCell::default() }
    }

    /// How many snapshots are not taken apart yet.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.given.borrow().len()
    }

    /// Takes apart what no core works under any more.
    pub(crate) fn sweep(&self) {
        // On its way to the core, the whole has two owners; later, its parts have.
        let in_use = |snapshot: &Arc<Snapshot>| Arc::strong_count(snapshot) > 1 || Arc::strong_count(&snapshot.rules) > 1;
        self.given.borrow_mut().retain(in_use);
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.senders.len()
    }

    /// Sends each core a message that answers, and gathers the answers that come in time.
    async fn gather<T: Send + 'static>(&self, message: impl Fn(bridge::Reply<T>) -> ToCore) -> Vec<T> {
        let (answers, arrived) = mailbox::channel(self.senders.len().max(1));
        for sender in &self.senders {
            let answers = answers.clone();
            // Nobody waits any more if it comes too late.
            let reply: bridge::Reply<T> = Box::new(move |answer| drop(answers.try_send(answer)));
            drop(sender.try_send(message(reply)));
        }
        // What is left are the replies' own: when the last is used or dropped, the mailbox ends.
        drop(answers);
        let mut all = Vec::new();
        let until = self.rt.now() + ANSWER;
        while let Ok(Some(answer)) = self.rt.timeout(until - self.rt.now(), arrived.recv()).await {
            all.push(answer);
        }
        all
    }

    /// Puts a configuration into force; how many cores have confirmed it.
    pub(crate) async fn load(&self, snapshot: &Snapshot) -> usize {
        let message = |done| {
            let snapshot = Arc::new(snapshot.for_core());
            self.given.borrow_mut().push(Arc::clone(&snapshot));
            ToCore::Load { snapshot, done }
        };
        let confirmed = self.gather(message).await.len();
        self.sweep();
        confirmed
    }

    /// What all cores report, joined; `None` if there is none.
    pub(crate) async fn ask(&self, what: Ask, reset: bool) -> Option<Report> {
        let reports = self.gather(|reply| ToCore::Ask { what, reset, reply }).await;
        reports.into_iter().reduce(|mut all, report| {
            all.merge(report);
            all
        })
    }

    /// Ends a session; whether there was one.
    pub(crate) async fn kill(&self, session: u32) -> bool {
        let message = |reply| ToCore::Kill { session, statement_only: false, owner: None, reply };
        self.gather(message).await.into_iter().any(|killed| killed == Killed::Done)
    }

    /// Drops results from the cache; how many.
    pub(crate) async fn flush_cache(&self, which: &FlushCache) -> u64 {
        self.gather(|reply| ToCore::FlushCache { which: which.clone(), reply }).await.into_iter().sum()
    }

    /// Stops or resumes accepting clients.
    pub(crate) fn accept(&self, accept: bool) {
        for sender in &self.senders {
            drop(sender.try_send(ToCore::Accept(accept)));
        }
    }
}

/// Whether this is this machine.
pub(crate) fn is_local(address: &Address) -> bool {
    address.ip().is_none_or(|ip| ip.to_canonical().is_loopback())
}
