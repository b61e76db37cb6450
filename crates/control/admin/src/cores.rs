//! The data cores as the admin port sees them: messages go out, answers come back or do not come in
//! time.

use crate::aside::{Aside, give_way};
use crate::hooks::Renewed;
use crate::taken::{Kept, Taken};
use bridge::{Ask, Earlier, FlushCache, Killed, Report, ToCore};
use config::{Rules, Snapshot};
use rt::local;
use rt::mailbox::{self, SendError, Sender};
use rt::{Instant, Rt};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long cores may take to answer. They look into their mailboxes many times a millisecond.
const ANSWER: Duration = Duration::from_secs(5);

/// How often one whose mailbox is full is tried again.
const AGAIN: Duration = Duration::from_millis(5);

/// Some cores have not answered in time: what the others said is not the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silent {
    /// How many have answered.
    pub(crate) answered: usize,
    /// How many there are.
    pub(crate) all: usize,
}

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answered, all } = self;
        write!(
            f,
            "only {answered} of {all} cores have answered within {} seconds, and a part is not shown as the whole; try again",
            ANSWER.as_secs()
        )
    }
}

/// A part of a snapshot.
pub(crate) type Part = Arc<dyn Any + Send + Sync>;

fn parts(snapshot: &Snapshot) -> [Part; 8] {
    let Snapshot {
        generation: _,
        variables,
        users,
        servers,
        rules,
        shards,
        scripts,
        rewrites,
        firewall,
        proxies: _,
        schedule: _,
        rest: _,
        clickhouse: _,
    } = snapshot;
    [
        variables.clone(),
        users.clone(),
        servers.clone(),
        rules.clone(),
        shards.clone(),
        scripts.clone(),
        rewrites.clone(),
        firewall.clone(),
    ]
}

/// Frees parts of snapshots that nobody works under any more.
fn free(parts: Vec<Part>, aside: &Aside) {
    if parts.is_empty() {
        return;
    }
    aside.later(move || {
        for part in parts {
            match part.downcast::<Rules>().map(Arc::into_inner) {
                Ok(Some(rules)) => rules.take_apart(&give_way),
                Ok(None) | Err(_) => give_way(),
            }
        }
    });
}

/// Rules that are copied, and the copies.
type Copies = (Option<Arc<Rules>>, Vec<Arc<Rules>>);

/// The mailboxes of all cores.
pub(crate) struct Cores {
    rt: Rt,
    senders: Vec<Sender<ToCore>>,
    /// Of what the cores were given, what may still be in use. Whoever drops such a part last frees
    /// it, a million users or twenty thousand expressions; that shall not be a core, which has
    /// sessions that wait.
    given: RefCell<Vec<Part>>,
    /// The rules that the cores have, each its own, and what these are copies of.
    copies: RefCell<Copies>,
    /// Cores that have not confirmed the latest configuration.
    behind: RefCell<Arc<AtomicUsize>>,
    /// Counts that the cores have given away and nobody has had.
    kept: Rc<Kept>,
    /// Counts of the process before.
    earlier: Earlier,
}

impl Cores {
    /// `copies`: the rules of this snapshot that each core has, if it has been given one.
    pub(crate) fn new(
        rt: Rt,
        senders: Vec<Sender<ToCore>>,
        snapshot: &Snapshot,
        copies: Vec<Arc<Rules>>,
        (kept, earlier): (Kept, Earlier),
    ) -> Self {
        let of = (copies.len() == senders.len()).then(|| snapshot.rules.clone());
        let (given, copies, behind) = (
            RefCell::default(),
            RefCell::new((of, copies)),
            RefCell::default(),
        );
        let cores = Self {
            rt,
            senders,
            given,
            copies,
            behind,
            kept: Rc::new(kept),
            earlier,
        };
        cores.note(snapshot);
        cores
            .copies
            .borrow()
            .1
            .iter()
            .for_each(|rules| cores.note_part(rules.clone()));
        cores
    }

    /// How many sets of rules are not freed yet.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.given
            .borrow()
            .iter()
            .filter(|part| part.is::<Rules>())
            .count()
    }

    /// Has freed what nobody works under any more.
    pub(crate) fn sweep(&self, aside: &Aside) {
        let is_unused = |part: &mut Part| Arc::strong_count(part) == 1;
        free(
            self.given.borrow_mut().extract_if(.., is_unused).collect(),
            aside,
        );
    }

    /// From now on this is to be freed when nobody uses it any more.
    fn note(&self, snapshot: &Snapshot) {
        parts(snapshot)
            .into_iter()
            .for_each(|part| self.note_part(part));
    }

    fn note_part(&self, part: Part) {
        let mut given = self.given.borrow_mut();
        if !given.iter().any(|known| Arc::ptr_eq(known, &part)) {
            given.push(part);
        }
    }

    /// A snapshot for each core, with rules of its own: made anew if they are others than those it
    /// has.
    async fn for_cores(&self, snapshot: &Snapshot, aside: &Aside) -> Vec<Arc<Snapshot>> {
        let (of, mut rules) = self.copies.borrow().clone();
        if !of.is_some_and(|of| Arc::ptr_eq(&of, &snapshot.rules)) {
            let (of, count) = (snapshot.rules.clone(), self.senders.len());
            let copies = move || {
                (0..count)
                    .map(|_| Arc::new(of.for_core(&give_way)))
                    .collect()
            };
            rules = match aside.done(copies).await {
                Some(rules) => rules,
                // A defect, which the log has: all cores share the one that was made, until the
                // next LOAD.
                None => {
                    let shared = Arc::new(snapshot.clone());
                    return vec![shared; count];
                }
            };
            self.copies
                .replace((Some(snapshot.rules.clone()), rules.clone()));
        }
        rules
            .into_iter()
            .map(|rules| {
                Arc::new(Snapshot {
                    rules,
                    ..snapshot.clone()
                })
            })
            .collect()
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.senders.len()
    }

    /// Leaves each core its message, again and again where a mailbox is full; how many could not be
    /// told until then.
    async fn tell(&self, messages: Vec<ToCore>, until: Instant) -> usize {
        let mut full: Vec<_> = self.senders.iter().zip(messages).collect();
        loop {
            let again =
                full.into_iter()
                    .filter_map(|(sender, message)| match sender.try_send(message) {
                        Err(SendError::Full(message)) => Some((sender, message)),
                        // Of a core that has ended nothing more is to be had.
                        Ok(()) | Err(SendError::Closed(_)) => None,
                    });
            full = again.collect();
            if full.is_empty() || self.rt.now() >= until {
                return full.len();
            }
            self.rt.sleep(AGAIN).await;
        }
    }

    /// Sends each core a message that answers, and gathers the answers that come in time; and how
    /// many could not be told.
    async fn gather<T: Send + 'static>(
        &self,
        message: impl Fn(bridge::Reply<T>) -> ToCore,
    ) -> (Vec<T>, usize) {
        let (answers, arrived) = mailbox::channel(self.senders.len().max(1));
        let with_reply = |_: &Sender<ToCore>| {
            let answers = answers.clone();
            // Nobody waits any more if it comes too late.
            message(Box::new(move |answer| drop(answers.try_send(answer))))
        };
        let messages = self.senders.iter().map(with_reply).collect();
        // What is left are the replies' own: when the last is used or dropped, the mailbox ends.
        drop(answers);
        let until = self.rt.now() + ANSWER;
        let untold = self.tell(messages, until).await;
        let mut all = Vec::new();
        while let Ok(Some(answer)) = self.rt.timeout(until - self.rt.now(), arrived.recv()).await {
            all.push(answer);
        }
        (all, untold)
    }

    /// Puts a configuration into force; how many cores have confirmed it, and how many could not be
    /// told of it.
    pub(crate) async fn load(&self, snapshot: &Snapshot, aside: &Aside) -> (usize, usize) {
        let behind = Arc::new(AtomicUsize::new(self.senders.len()));
        self.behind.replace(behind.clone());
        let mut all = self.for_cores(snapshot, aside).await;
        // The first core's is taken first: rules that are the same stay with who counts their hits.
        all.reverse();
        let all = RefCell::new(all);
        self.note(snapshot);
        all.borrow().iter().for_each(|snapshot| self.note(snapshot));
        let message = |done: bridge::Reply<()>| {
            let behind = behind.clone();
            let done = Box::new(move |()| {
                behind.fetch_sub(1, Ordering::Relaxed);
                done(());
            });
            let snapshot = all.borrow_mut().pop().expect("there is one for each core");
            ToCore::Load { snapshot, done }
        };
        let (confirmed, untold) = self.gather(message).await;
        self.sweep(aside);
        (confirmed.len(), untold)
    }

    /// How many cores still work by an older configuration than the latest. One that was late has
    /// caught up when it confirms.
    pub(crate) fn behind(&self) -> usize {
        self.behind.borrow().load(Ordering::Relaxed)
    }

    /// The answers of all cores, or how many there are.
    async fn everybody<T: Send + 'static>(
        &self,
        message: impl Fn(bridge::Reply<T>) -> ToCore,
    ) -> Result<Vec<T>, Silent> {
        let (answers, all) = (self.gather(message).await.0, self.senders.len());
        if answers.len() == all {
            Ok(answers)
        } else {
            Err(Silent {
                answered: answers.len(),
                all,
            })
        }
    }

    /// Waits for the totals of the process before, as long as for a core.
    async fn know_before(&self, what: Ask) {
        let until = self.rt.now() + ANSWER;
        while !self.earlier.is_known(what) && self.rt.now() < until {
            self.rt.sleep(AGAIN).await;
        }
    }

    /// Asks all cores, and joins what they report with what was counted before and nobody has had.
    pub(crate) async fn ask(&self, what: Ask) -> Result<Report, Silent> {
        self.know_before(what).await;
        let reports = self
            .everybody(|reply| ToCore::Ask {
                what,
                reset: false,
                reply,
            })
            .await?;
        let joined = reports.into_iter().reduce(|mut all, report| {
            all.merge(report);
            all
        });
        let mut report = joined.ok_or(Silent {
            answered: 0,
            all: 0,
        })?;
        self.kept.add_to(what, &mut report);
        if let Some(before) = self.earlier.report(what, false) {
            report.and_before(before);
        }
        Ok(report)
    }

    /// Asks all cores as [`Cores::ask`] does, and has them count anew.
    pub(crate) async fn take(&self, what: Ask) -> Result<Taken, Silent> {
        self.know_before(what).await;
        // Nobody is asked unless everybody listens.
        self.everybody(|reply| ToCore::Ask {
            what: Ask::Rules,
            reset: false,
            reply,
        })
        .await?;
        let all = self.senders.len();
        let (answers, arrived) = mailbox::channel::<Report>(all.max(1));
        let with_reply = |_: &Sender<ToCore>| {
            let answers = answers.clone();
            let reply = Box::new(move |report| drop(answers.try_send(report)));
            ToCore::Ask {
                what,
                reset: true,
                reply,
            }
        };
        let messages = self.senders.iter().map(with_reply).collect();
        drop(answers);
        // Whoever asks may go meanwhile: what a core gives then, or gives late, is not lost.
        let (tell, told) = local::oneshot();
        let answered = Rc::new(Cell::new(0));
        let (kept, counted) = (self.kept.clone(), answered.clone());
        self.rt.spawn(async move {
            let mut taken: Option<Taken> = None;
            while let Some(report) = arrived.recv().await {
                counted.set(counted.get() + 1);
                match &mut taken {
                    Some(taken) => taken.merge(report),
                    None => taken = Some(Taken::new(kept.clone(), what, report)),
                }
            }
            if let Some(taken) = taken {
                drop(tell.send(taken));
            }
        });
        let until = self.rt.now() + ANSWER;
        self.tell(messages, until).await;
        let taken = self.rt.timeout(until - self.rt.now(), told).await;
        match taken {
            Ok(Some(taken)) if answered.get() == all => {
                Ok(taken.and_before(self.earlier.report(what, true)))
            }
            _ => Err(Silent {
                answered: answered.get(),
                all,
            }),
        }
    }

    /// Rows that wait for whoever asks next.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.kept.waiting()
    }

    /// Rows that were taken from the cores, could not be delivered and were too many to be kept.
    pub(crate) fn lost(&self) -> u64 {
        self.kept.lost()
    }

    /// Ends a session, or only what it runs; whether there was one.
    pub(crate) async fn kill(&self, session: u32, statement_only: bool) -> Result<bool, Silent> {
        let message = |reply| ToCore::Kill {
            session,
            statement_only,
            owner: None,
            reply,
        };
        let (answers, _untold) = self.gather(message).await;
        match answers.contains(&Killed::Done) {
            false if answers.len() < self.senders.len() => Err(Silent {
                answered: answers.len(),
                all: self.senders.len(),
            }),
            killed => Ok(killed),
        }
    }

    /// Closes the gate of a partition; whether all that went through before is over.
    pub(crate) async fn close_gate(&self, partition: &str, within: Duration) -> bool {
        let partition: Arc<str> = partition.into();
        let closed = self.gather(|done| ToCore::Gate {
            partition: partition.clone(),
            closed_for: Some(within),
            done,
        });
        closed.await.0.len() == self.senders.len()
    }

    /// Opens it again. A core that cannot be told opens it by itself.
    pub(crate) async fn open_gate(&self, partition: &str) {
        let partition: Arc<str> = partition.into();
        let opened = self.gather(|done| ToCore::Gate {
            partition: partition.clone(),
            closed_for: None,
            done,
        });
        opened.await;
    }

    /// Drops results from the cache; how many.
    pub(crate) async fn flush_cache(&self, which: &FlushCache) -> Result<u64, Silent> {
        Ok(self
            .everybody(|reply| ToCore::FlushCache {
                which: which.clone(),
                reply,
            })
            .await?
            .into_iter()
            .sum())
    }

    /// Has them hand over what waits for the events log.
    pub(crate) async fn hand_over_events(&self) -> Result<(), Silent> {
        self.everybody(|done| ToCore::HandOverEvents { done })
            .await
            .map(drop)
    }

    /// Has them forget who has failed to log in.
    pub(crate) async fn flush_client_hosts(&self) -> Result<(), Silent> {
        self.everybody(|done| ToCore::FlushClientHosts { done })
            .await
            .map(drop)
    }

    /// Has them use another certificate; how many could not be told.
    pub(crate) async fn reload_tls(&self, renewed: &Renewed) -> usize {
        let message = |_: &Sender<ToCore>| ToCore::ReloadTls {
            certificate: renewed.certificate.clone(),
            key: renewed.key.clone(),
            authorities: renewed.authorities.clone(),
        };
        self.tell(
            self.senders.iter().map(message).collect(),
            self.rt.now() + ANSWER,
        )
        .await
    }

    /// Stops or resumes accepting clients; how many cores could not be told.
    pub(crate) async fn accept(&self, accept: bool) -> usize {
        let messages = self
            .senders
            .iter()
            .map(|_| ToCore::Accept(accept))
            .collect();
        self.tell(messages, self.rt.now() + ANSWER).await
    }

    /// Ends every client, and lets none in.
    pub(crate) async fn close(&self) -> Result<(), Silent> {
        self.everybody(|done| ToCore::Close { done })
            .await
            .map(drop)
    }
}
