//! A LOAD for all proxies: written into the store first, if nobody else was faster, then put into
//! force here.

use super::membership::stands;
use super::secrets::{self, seal};
use crate::cluster::knowledge::uuid;
use crate::cluster::subjects::{At, MILLRACE, SUBJECTS, at};
use crate::cluster::{pieces, sums};
use crate::parts::Pieces;
use crate::said::{Said, because};
use crate::shared::Shared;
use crate::tables::Module;
use config::Snapshot;
use fleet::{Books, Failed, Head, Truth, Written};
use std::rc::Rc;
use std::time::Duration;

/// So long the OK of a LOAD waits for the other proxies.
const WAITS: Duration = Duration::from_secs(1);

/// For whom a LOAD is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All proxies of the fleet.
    All,
    /// This one, until the next truth.
    Here,
}

/// Outcome of a LOAD for the truth of the fleet.
#[derive(Debug, Clone)]
pub(crate) enum Share {
    /// A new one.
    Written(At, Truth),
    /// Nothing: it is for this proxy only.
    Diverges(At),
}

impl Shared {
    /// Before a LOAD: what it loads becomes the truth. `None` where the module is no fleet's.
    pub(crate) async fn share_load(
        &self,
        module: Module,
        next: &Snapshot,
        reach: Reach,
    ) -> Result<Option<Share>, Said> {
        let variables = self.snapshot.borrow().variables.clone();
        let stays = variables.admin_cluster_store == next.variables.admin_cluster_store;
        let books = self.books();
        let found = at(module).filter(|at| (SUBJECTS[*at].counts)(&variables));
        let (Some(books), Some(at), true) = (books, found, stays) else {
            return match reach {
                Reach::All => Ok(None),
                Reach::Here => Err(Said::Sql(format!(
                    "{} is not shared with a fleet: say LOAD without LOCAL",
                    module.words()
                ))),
            };
        };
        if reach == Reach::Here {
            return Ok(Some(Share::Diverges(at)));
        }
        let (snapshot, helpers) = (next.clone(), self.aside.helpers());
        let work = move || {
            let pause = || config::Help::pause(&helpers);
            let pieces = pieces::pieces(module, &snapshot, &pause);
            (pieces, sums::checksum(module, &snapshot, &pause))
        };
        let made = self.aside.done(work).await;
        let (pieces, checksum) = made.ok_or("a defect ended the LOAD; the log has it")?;
        // A key that is set by this LOAD counts already.
        self.write_truth(&books, at, pieces, checksum, &next.variables)
            .await
            .map(Some)
    }

    async fn write_truth(
        &self,
        books: &Rc<Books>,
        at: At,
        pieces: Pieces,
        checksum: u64,
        variables: &config::Variables,
    ) -> Result<Share, Said> {
        let (subject, fleet) = (&SUBJECTS[at], &self.cluster.fleet);
        let name = subject.name;
        let refused = |words: String| {
            Said::Sql(format!(
                "{} not loaded, nothing was changed: {words}",
                subject.module.words()
            ))
        };
        if let Some((since, why)) = fleet.lost.borrow().as_ref() {
            let s = self.now_s().saturating_sub(*since);
            return Err(refused(format!(
                "the store has been silent for {s} s ({why}); LOAD {} TO RUNTIME LOCAL is for this proxy only",
                subject.module.words()
            )));
        }
        let seen = fleet.seen.borrow().clone();
        let seen = seen
            .ok_or_else(|| refused("the store has not been looked at yet; try again".to_owned()))?;
        let key = seal(variables).map_err(refused)?;
        let is_secret = secrets::may_be_in(subject.module);
        if let Some(whose) = secrets::clear(&pieces).filter(|_| key.is_none()) {
            return Err(refused(format!(
                "{whose} would be in the store in clear: set admin-cluster_key_file, on every proxy"
            )));
        }
        let own = fleet.own(at);
        let latest = latest(own.generation, name, &seen);
        let head = Head {
            generation: latest + 1,
            id: uuid(self.rt.random(), self.rt.random()),
            checksum: sums::text(checksum),
            by: self.fleet_name(),
            at_s: self.now_s(),
            version: MILLRACE.to_owned(),
            ..Head::default()
        };
        let text = self.aside.done(move || fleet::write(&pieces)).await;
        let text = text.ok_or("a defect ended the LOAD; the log has it")?;
        let key = key.filter(|_| is_secret);
        let wrote = books.write(name, (head.clone(), own.revision), &text, key.as_ref());
        match wrote.await {
            Ok(Written::Done(revision)) => {
                let (books, log) = (books.clone(), self.rt.clone());
                log.spawn(async move {
                    // What is left is dropped behind the next one.
                    let _silent = books.prune(name, revision).await;
                });
                Ok(Share::Written(at, Truth { head, revision }))
            }
            Ok(Written::Slower(truth)) => {
                fleet.ring();
                let who = truth.map_or_else(
                    || "somebody has removed it from the store".to_owned(),
                    |truth| {
                        let Head { by, generation, .. } = truth.head;
                        format!("{by} was faster, with generation {generation}")
                    },
                );
                Err(refused(format!("{who}: look at it, and say LOAD again")))
            }
            Err(failed) => {
                fleet.ring();
                Err(refused(match failed {
                    Failed::Said(words) => format!("the store says: {words}"),
                    Failed::Lost(words) => format!(
                        "the store did not answer ({words}); if it has it all the same, it comes into force when it answers again; LOAD {} TO RUNTIME LOCAL is for this proxy only",
                        subject.module.words()
                    ),
                }))
            }
        }
    }

    /// Notes that the rows of a LOAD are in force here.
    pub(crate) fn is_shared_now(&self, share: Option<&Share>) {
        match share {
            None => {}
            Some(Share::Written(at, truth)) => {
                let written = &self.cluster.fleet.written;
                written.set(written.get() + 1);
                self.has(*at, truth);
                self.note_stand(*at, stands("in force", ""));
            }
            Some(Share::Diverges(at)) => {
                self.cluster
                    .fleet
                    .with_own(*at, |own| own.is_diverged = true);
                self.note_stand(*at, stands("diverged", ""));
            }
        }
        self.cluster.fleet.ring();
    }

    /// Where it is in force after a moment, for the OK.
    pub(crate) async fn told_by_fleet(&self, share: Option<Share>) -> Option<String> {
        let (at, truth) = match share? {
            Share::Written(at, truth) => (at, truth),
            Share::Diverges(_) => {
                return Some("in force on this proxy only, until the next LOAD of it".to_owned());
            }
        };
        let (name, until) = (SUBJECTS[at].name, self.rt.now() + WAITS);
        loop {
            let (have, all, others) = self.who_has(name, &truth.head.id);
            let left = until - self.rt.now();
            if others.is_empty() || left.is_zero() {
                let mut words = format!("in force on {have} of {all} proxies");
                if !others.is_empty() {
                    words += &format!(", not yet on {}", others.join(", "));
                }
                (self.hooks.log)(&format!("fleet: {name}: {words}"));
                return Some(words);
            }
            let _late = self
                .rt
                .timeout(left, self.cluster.fleet.looked.wait())
                .await;
        }
    }

    /// How many proxies have a generation in force, of how many, and the names of the others.
    fn who_has(&self, name: &str, id: &str) -> (usize, usize, Vec<String>) {
        let seen = self.cluster.fleet.seen.borrow();
        let all = seen.iter().flat_map(|seen| &seen.proxies);
        let own = self.status();
        // Of this name there may be one that was killed and has not been forgotten yet.
        let all = all.filter(|proxy| proxy.name != own.name).chain([&own]);
        let (mut have, mut others) = (0, Vec::new());
        for proxy in all {
            match proxy.modules.get(name) {
                Some(held) if held.has(id) => have += 1,
                Some(held) if !held.error.is_empty() => {
                    others.push(format!("{} ({})", proxy.name, held.error));
                }
                _ => others.push(proxy.name.clone()),
            }
        }
        (have, have + others.len(), others)
    }

    /// `FLEET ROLLBACK module TO n`: what was the truth once becomes it again.
    pub(crate) async fn roll_back(&self, name: &str, generation: u64) -> Result<String, Said> {
        let (books, at) = self.fleets(name)?;
        let (subject, variables) = (&SUBJECTS[at], self.snapshot.borrow().variables.clone());
        let said = |failed: Failed| Said::Sql(format!("the store: {failed}"));
        let history = books.history(subject.name).await.map_err(said)?;
        let head = history
            .into_iter()
            .find(|head| head.generation == generation);
        let head = head.ok_or_else(|| {
            Said::Sql(format!(
                "the store keeps no generation {generation} of {}: SHOW FLEET HISTORY has those that it keeps",
                subject.name
            ))
        })?;
        let checksum = sums::number(&head.checksum).unwrap_or_default();
        let truth = Truth { head, revision: 0 };
        let pieces = self
            .fetch(&books, subject, &truth, &variables)
            .await
            .map_err(said)?;
        let share = {
            let _alone = self.alone().await;
            let (now, helpers) = (self.snapshot.borrow().clone(), self.aside.helpers());
            let (module, copy) = (subject.module, pieces.clone());
            let built = self
                .aside
                .done(move || pieces::built(module, &copy, &now, &helpers).map(drop))
                .await;
            built
                .ok_or("a defect ended it; the log has it")?
                .map_err(|refused| because(module.words(), &refused))?;
            self.write_truth(&books, at, pieces, checksum, &variables)
                .await?
        };
        // It is taken over here as everywhere.
        self.cluster.fleet.ring();
        let told = self.told_by_fleet(Some(share)).await;
        Ok(told.unwrap_or_default())
    }

    /// The books, and the module of this name.
    pub(super) fn fleets(&self, name: &str) -> Result<(Rc<Books>, At), Said> {
        let books = self
            .books()
            .ok_or("admin-cluster_store is empty: there is no fleet")?;
        let at = SUBJECTS
            .iter()
            .position(|subject| subject.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| Said::Sql(format!("'{name}' is nothing that proxies share")))?;
        Ok((books, at))
    }
}

/// The latest generation of a module that is known anywhere: what an operator loads is later.
fn latest(own: u64, name: &str, seen: &fleet::Seen) -> u64 {
    let elsewhere = seen.proxies.iter().filter_map(|proxy| {
        let held = proxy.modules.get(name)?;
        Some(held.generation)
    });
    let truth = seen.modules.get(name).map(|truth| truth.head.generation);
    elsewhere.chain(truth).chain([own]).max().unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::{Held, Seen, Status};

    #[test]
    fn a_load_is_later_than_what_any_proxy_has_seen() {
        let mut seen = Seen::default();
        assert_eq!(latest(0, "m", &seen), 0);
        let held = Held {
            generation: 7,
            ..Held::default()
        };
        // Of a store that was wiped: others remember.
        seen.proxies.push(Status {
            modules: [("m".to_owned(), held)].into(),
            ..Status::default()
        });
        assert_eq!((latest(3, "m", &seen), latest(9, "m", &seen)), (7, 9));
        assert_eq!(latest(3, "other", &seen), 3);
        let head = Head {
            generation: 12,
            ..Head::default()
        };
        seen.modules.insert("m".into(), Truth { head, revision: 1 });
        assert_eq!(latest(9, "m", &seen), 12);
    }
}
