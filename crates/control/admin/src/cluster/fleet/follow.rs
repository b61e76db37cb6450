//! Following the store: what is later there than here is taken over.

use super::membership::{Stands, stands};
use crate::cluster::decide::Sum;
use crate::cluster::subjects::{At, SUBJECTS, Subject};
use crate::cluster::sums;
use crate::said::Said;
use crate::shared::Shared;
use config::Snapshot;
use fleet::{Books, Failed, Seen, Truth, Verdict, decide};
use rt::{Either, select};
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

/// How often a proxy says that it lives, and looks whether it has missed something.
const LIVES: Duration = Duration::from_secs(3);
/// How soon a store that is silent is asked again.
const AGAIN: Duration = Duration::from_millis(300);
/// How soon a truth that cannot be used is tried again.
const TRIED_AGAIN: Duration = Duration::from_secs(30);

impl Shared {
    /// Follows the store, as long as there is one.
    pub(crate) async fn keep_fleet(self: Rc<Self>) {
        loop {
            let Some(books) = self.books() else {
                self.cluster.fleet.bell.heard().await;
                continue;
            };
            if let Err(failed) = self.follow_store(&books).await {
                self.is_silent(&failed);
                let rung = self.cluster.fleet.bell.heard();
                let _or_rung = self.rt.timeout(AGAIN, rung).await;
            }
        }
    }

    fn is_silent(&self, failed: &Failed) {
        let (now_s, mut lost) = (self.now_s(), self.cluster.fleet.lost.borrow_mut());
        if lost.is_none() {
            (self.hooks.log)(&format!(
                "fleet: the store is silent, and this proxy is alone from now on: {failed}"
            ));
        }
        let since = lost.as_ref().map_or(now_s, |(since, _)| *since);
        *lost = Some((since, failed.to_string()));
        drop(lost);
        self.cluster.fleet.looked.notify_all();
    }

    fn is_there(&self, seen: &Seen) {
        let fleet = &self.cluster.fleet;
        if let Some((since, _)) = fleet.lost.take() {
            let s = self.now_s().saturating_sub(since);
            (self.hooks.log)(&format!("fleet: the store answers again, after {s} s"));
        }
        let before = fleet.seen.replace(Some(seen.clone()));
        if let Some(before) = before.filter(|before| before.revision > seen.revision) {
            (self.hooks.log)(&format!(
                "fleet: the store went back from revision {} to {}: it was wiped, or is an old backup",
                before.revision, seen.revision
            ));
        }
        fleet.looked.notify_all();
    }

    fn is_current(&self, books: &Rc<Books>) -> bool {
        self.books().is_some_and(|now| Rc::ptr_eq(&now, books))
    }

    /// Until the store is silent, or another one.
    async fn follow_store(&self, books: &Rc<Books>) -> Result<(), Failed> {
        let (mut lease, mut said, mut watch) = (None, None, None);
        let mut lived = self.rt.now();
        while self.is_current(books) {
            let written = self.cluster.fleet.written.get();
            let seen = books.look().await?;
            self.is_there(&seen);
            if watch.is_none() {
                watch = Some(books.watch(&seen).await?);
            }
            self.obey(books, &seen, written).await?;
            let status = self.status();
            if lease.is_none() || said.as_ref() != Some(&status) {
                match books.say(&status, lease).await {
                    Ok(given) => (lease, said) = (Some(given), Some(status)),
                    Err(Failed::Said(_)) if lease.is_some() => {
                        // It has ended, with what was said under it.
                        lease = None;
                        continue;
                    }
                    Err(failed) => return Err(failed),
                }
            }
            if let Some(given) = lease.filter(|_| self.rt.now() - lived >= LIVES) {
                lived = self.rt.now();
                if !books.live(given).await? {
                    lease = None;
                    continue;
                }
            }
            let Some(rings) = &mut watch else { continue };
            let waiting = select(rings.next(), self.cluster.fleet.bell.heard());
            if let Ok(Either::Left(Err(_))) = self.rt.timeout(LIVES, waiting).await {
                // Its node has gone; the next look asks another.
                watch = None;
            }
        }
        Ok(())
    }

    /// Takes over what is later than what is here. `written`: truths that had been written here
    /// before the look.
    async fn obey(&self, books: &Books, seen: &Seen, written: u64) -> Result<(), Failed> {
        let variables = self.snapshot.borrow().variables.clone();
        for (at, subject) in SUBJECTS.iter().enumerate() {
            let truth = seen.modules.get(subject.name);
            if truth.is_some() && self.settle_one(at).await.is_err() {
                let words = "a defect ended its checksum; the log has it";
                self.note_stand(at, stands("behind", words));
                continue;
            }
            if self.cluster.fleet.written.get() != written {
                // The bell has rung for it: it is looked at anew.
                return Ok(());
            }
            let now = if (subject.counts)(&variables) {
                self.stand(books, (at, subject), truth).await?
            } else {
                stands("own", "its admin-checksum variable is false")
            };
            if self.cluster.fleet.written.get() == written {
                self.note_stand(at, now);
            }
        }
        Ok(())
    }

    async fn stand(
        &self,
        books: &Books,
        (at, subject): (At, &Subject),
        truth: Option<&Truth>,
    ) -> Result<Stands, Failed> {
        let own = self.cluster.fleet.own(at);
        let verdict = self.judge(at, truth);
        let theirs = truth.map_or(0, |truth| truth.head.generation);
        if verdict != Verdict::Take {
            // What is about to be taken over was not looked at yet: an operator who says LOAD now
            // is the slower one.
            self.cluster.fleet.with_own(at, |own| {
                own.revision = truth.map_or(0, |truth| truth.revision);
            });
        }
        let settles = "it is not followed until somebody says LOAD";
        let words = match verdict {
            Verdict::Empty => return Ok(stands("own", "")),
            Verdict::Diverged => return Ok(stands("diverged", "")),
            Verdict::Gone => format!(
                "the store had generation {} of it and has none any more: {settles}",
                own.generation
            ),
            Verdict::Back => format!(
                "the store had generation {} of it and has {theirs}, another one: {settles}",
                own.generation
            ),
            Verdict::Same | Verdict::Note => {
                if let Some(truth) = truth {
                    self.has(at, truth);
                }
                return Ok(stands("in force", ""));
            }
            Verdict::Take => {
                let Some(truth) = truth else {
                    return Ok(stands("own", ""));
                };
                return self.take_truth(books, (at, subject), truth).await;
            }
        };
        let state = match verdict {
            Verdict::Gone => "gone",
            _ => "back",
        };
        Ok(stands(state, words))
    }

    fn judge(&self, at: At, truth: Option<&Truth>) -> Verdict {
        let own = self.cluster.fleet.own(at);
        let checksum = self
            .cluster
            .own
            .borrow()
            .get(at)
            .and_then(|own| own.checksum);
        let is_equal = truth.is_some_and(|truth| {
            checksum.is_some_and(|checksum| sums::text(checksum) == truth.head.checksum)
        });
        let here = fleet::Own {
            generation: own.generation,
            id: &own.id,
            is_equal,
            is_diverged: own.is_diverged,
        };
        decide(
            here,
            truth.map(|truth| (truth.head.generation, &*truth.head.id)),
        )
    }

    async fn take_truth(
        &self,
        books: &Books,
        (at, subject): (At, &Subject),
        truth: &Truth,
    ) -> Result<Stands, Failed> {
        let own = self.cluster.fleet.own(at);
        if let Some((id, when)) = &own.tried
            && *id == truth.head.id
            && self.rt.now() - *when < TRIED_AGAIN
        {
            return Ok(stands("behind", own.error));
        }
        let variables = self.snapshot.borrow().variables.clone();
        let pieces = match self.fetch(books, subject, truth, &variables).await {
            Ok(pieces) => pieces,
            Err(Failed::Said(words)) => return Ok(self.cannot(at, truth, words)),
            Err(lost) => return Err(lost),
        };
        let _alone = self.alone().await;
        if self.settle_one(at).await.is_err() || self.judge(at, Some(truth)) != Verdict::Take {
            // An operator was faster here; the next look sees what he has done.
            return Ok(stands("behind", "it is loaded here just now"));
        }
        let theirs = Sum {
            version: truth.head.generation.saturating_add(1),
            epoch: truth.head.at_s,
            checksum: sums::number(&truth.head.checksum).unwrap_or_default(),
        };
        let from = format!("the store, loaded on {}", truth.head.by);
        let joins = own.tried.is_none() && own.state.is_empty();
        let differs = joins.then(|| {
            let count = differing(subject, &self.snapshot.borrow(), &pieces);
            format!(
                "fleet: {}: {count} rows here differ from those of the store, which replace them",
                subject.name
            )
        });
        match self.take_in(subject, at, theirs, pieces, &from).await {
            Ok(()) => {
                self.has(at, truth);
                differs.iter().for_each(|words| (self.hooks.log)(words));
                Ok(stands("in force", ""))
            }
            Err(Said::Sql(words) | Said::Coded(_, _, words)) => Ok(self.cannot(at, truth, words)),
        }
    }

    fn cannot(&self, at: At, truth: &Truth, words: String) -> Stands {
        self.cluster.fleet.with_own(at, |own| {
            own.tried = Some((truth.head.id.clone(), self.rt.now()));
            own.revision = truth.revision;
        });
        stands(
            "behind",
            format!(
                "generation {} cannot be used here: {words}",
                truth.head.generation
            ),
        )
    }
}

/// How many rows are here and not there, or there and not here.
fn differing(subject: &Subject, here: &Snapshot, there: &fleet::Pieces) -> usize {
    let mut theirs: HashSet<(&str, &[u8])> = HashSet::new();
    for (table, rows) in there {
        theirs.extend(rows.split(|byte| *byte == b'\n').map(|row| (&**table, row)));
    }
    let (mut own, mut equal) = (0, 0);
    sums::lines(subject.module, here, &mut |table, line| {
        own += 1;
        equal += usize::from(theirs.contains(&(table, line)));
    });
    // A row that was edited is one here and one there.
    theirs.len().max(own) - equal
}
