//! A fleet: proxies with one truth in a store. Each looks into it when something is written, takes
//! over what is later than what it has, and says what it has.
//!
//! | to see | read |
//! |---|---|
//! | a LOAD for all | `load.rs` |
//! | which rows are secret | `secrets.rs` |
//! | limits that hold for all | `shares.rs` |
//! | the table, and the history | `show.rs` |
//! | the store, and who is right | the crate `fleet` |

mod load;
mod secrets;
mod shares;
mod show;

use super::{At, SUBJECTS, Subject, Sum, sums};
use crate::engine::SqlError;
use crate::said::Said;
use crate::shared::Shared;
use config::{Snapshot, Variables};
use fleet::{Books, Failed, Held, Place, Seal, Seen, Shares, Status, Truth, Verdict, decide};
pub(crate) use load::{Reach, Share};
use rt::local::{Bell, Notify};
use rt::{Either, Instant, select};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

/// How often a proxy says that it lives, and looks whether it has missed something.
const LIVES: Duration = Duration::from_secs(3);
/// How soon a store that is silent is asked again.
const AGAIN: Duration = Duration::from_millis(300);
/// How soon a truth that cannot be used is tried again.
const TRIED_AGAIN: Duration = Duration::from_secs(30);
/// A key file is not longer, in bytes.
const KEY_FILE_MAX: u64 = 1 << 20;

/// State of a module here, beside its rows in force.
#[derive(Debug, Clone, Default)]
struct Own {
    /// The latest generation that was in force here, or is under what was loaded here only,
    generation: u64,
    /// and its name.
    id: String,
    /// Revision of the truth as it was looked at last: a LOAD replaces nothing that was not.
    revision: u64,
    is_diverged: bool,
    /// As [`Held`] has it.
    state: &'static str,
    error: String,
    /// A truth that could not be used, and when that was tried.
    tried: Option<(String, Instant)>,
}

/// The store of a fleet, by the text that names it.
type Named = (String, Option<Rc<Books>>);

/// Part of this proxy in a fleet.
#[derive(Default)]
pub(super) struct Membership {
    books: RefCell<Named>,
    own: RefCell<[Own; SUBJECTS.len()]>,
    /// Contents of the store at the last look.
    seen: RefCell<Option<Seen>>,
    looked: Notify,
    /// Since when the store is silent, in seconds since 1970, and why.
    lost: RefCell<Option<(u64, String)>>,
    /// Truths that were written here: a look from before one of them has nothing to say.
    written: Cell<u64>,
    /// Rings when something was loaded here.
    bell: Bell,
    /// Rings then, too: a bell has one listener.
    shares_bell: Bell,
    /// Shares of all limits, as the store had them at the last look.
    shares: RefCell<Option<Shares>>,
    /// Why limits were not shared out anew, as it was said last.
    refused: RefCell<String>,
}

impl Membership {
    pub(super) fn ring(&self) {
        self.bell.ring();
        self.shares_bell.ring();
    }

    fn own(&self, at: At) -> Own {
        self.own.borrow().get(at).cloned().unwrap_or_default()
    }

    fn with_own<T>(&self, at: At, change: impl FnOnce(&mut Own) -> T) -> Option<T> {
        self.own.borrow_mut().get_mut(at).map(change)
    }
}

/// State of a module when the store has been looked at.
struct Stands {
    state: &'static str,
    error: String,
}

fn stands(state: &'static str, error: impl Into<String>) -> Stands {
    Stands {
        state,
        error: error.into(),
    }
}

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

    /// The books of the store that is in force; another store is another fleet.
    fn books(&self) -> Option<Rc<Books>> {
        let fleet = &self.cluster.fleet;
        let text = self
            .snapshot
            .borrow()
            .variables
            .admin_cluster_store
            .to_string();
        if fleet.books.borrow().0 == text {
            return fleet.books.borrow().1.clone();
        }
        fleet.own.take();
        fleet.seen.take();
        fleet.lost.take();
        let books = match Place::parse(&text) {
            Ok(place) => {
                self.remember(&place.prefix);
                Some(Rc::new(Books::new(self.rt.clone(), place)))
            }
            Err(_) if text.is_empty() => None,
            Err(words) => {
                (self.hooks.log)(&format!("fleet: admin-cluster_store {words}"));
                None
            }
        };
        fleet.books.replace((text, books.clone()));
        books
    }

    /// Which generations this proxy had in force before its start.
    fn remember(&self, prefix: &str) {
        let engine = self.engine.borrow();
        for (at, subject) in SUBJECTS.iter().enumerate() {
            let sql = "SELECT generation, id FROM disk.fleet_generations WHERE prefix = ?1 AND module = ?2";
            let found = engine.conn().query_row(sql, [prefix, subject.name], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            });
            if let Ok((generation, id)) = found {
                self.cluster.fleet.with_own(at, |own| {
                    (own.generation, own.id) = (generation.unsigned_abs(), id);
                });
            }
        }
    }

    /// Keeps a generation for the next start.
    fn keep_generation(&self, at: At) {
        let text = self.cluster.fleet.books.borrow().0.clone();
        let (Ok(place), Some(subject)) = (Place::parse(&text), SUBJECTS.get(at)) else {
            return;
        };
        let own = self.cluster.fleet.own(at);
        let generation = i64::try_from(own.generation).unwrap_or(i64::MAX);
        let sql = "INSERT OR REPLACE INTO disk.fleet_generations VALUES (?1, ?2, ?3, ?4)";
        let kept = self
            .engine
            .borrow()
            .conn()
            .execute(sql, (place.prefix, subject.name, generation, own.id));
        if let Err(error) = kept.map_err(SqlError::from) {
            let words = format!("fleet: a generation is not kept: {}", error.0);
            (self.hooks.log)(&words);
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

    /// Whether this proxy exchanges with ProxySQLs for its fleet: the first of those that live does.
    /// Two of them for a moment do no harm, since what they write has a guard.
    pub(super) fn is_bridge(&self) -> bool {
        let fleet = &self.cluster.fleet;
        if fleet.lost.borrow().is_some() {
            return false;
        }
        let seen = fleet.seen.borrow();
        let living = seen.iter().flat_map(|seen| &seen.proxies);
        let first = living.map(|status| &*status.uuid).min();
        first.is_some_and(|uuid| uuid == self.cluster.uuid())
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

    /// The truth is in force here.
    fn has(&self, at: At, truth: &Truth) {
        let is_new = self.cluster.fleet.with_own(at, |own| {
            let is_new = own.id != truth.head.id || own.generation != truth.head.generation;
            (own.generation, own.id) = (truth.head.generation, truth.head.id.clone());
            (own.revision, own.is_diverged, own.tried) = (truth.revision, false, None);
            is_new
        });
        if is_new == Some(true) {
            self.keep_generation(at);
        }
    }

    fn note_stand(&self, at: At, now: Stands) {
        let Some(subject) = SUBJECTS.get(at) else {
            return;
        };
        let is_new = self.cluster.fleet.with_own(at, |own| {
            let is_new = own.state != now.state || own.error != now.error;
            (own.state, own.error) = (now.state, now.error.clone());
            is_new
        });
        if is_new == Some(true) && ["behind", "back", "gone"].contains(&now.state) {
            (self.hooks.log)(&format!("fleet: {}: {}", subject.name, now.error));
        }
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

    async fn fetch(
        &self,
        books: &Books,
        subject: &Subject,
        truth: &Truth,
        variables: &Variables,
    ) -> Result<fleet::Pieces, Failed> {
        let seal = seal(variables).map_err(Failed::Said)?;
        let text = books.text(subject.name, &truth.head, seal.as_ref()).await?;
        let read = self.aside.done(move || fleet::read(&text)).await;
        read.flatten()
            .ok_or_else(|| Failed::Said("what the store has of it is no module".to_owned()))
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

    /// By what others know this proxy.
    fn fleet_name(&self) -> String {
        let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty());
        let host = host.unwrap_or("millrace");
        let listens = self.open_at.iter().map(ToString::to_string);
        let port = listens
            .filter_map(|address| address.rsplit_once(':')?.1.parse::<u16>().ok())
            .next();
        format!("{host}:{}", port.unwrap_or_default())
    }

    /// Returns what this proxy says of itself.
    fn status(&self) -> Status {
        let own = self.cluster.fleet.own.borrow();
        let listens: Vec<_> = self.open_at.iter().map(ToString::to_string).collect();
        let modules = SUBJECTS.iter().zip(own.iter()).map(|(subject, own)| {
            let held = Held {
                generation: own.generation,
                id: own.id.clone(),
                state: own.state.to_owned(),
                error: own.error.clone(),
            };
            (subject.name.to_owned(), held)
        });
        Status {
            uuid: self.cluster.uuid().to_owned(),
            name: self.fleet_name(),
            address: listens.join(";"),
            version: super::MILLRACE.to_owned(),
            modules: modules.collect(),
        }
    }
}

/// The key of this proxy, if it has one.
fn seal(variables: &Variables) -> Result<Option<Seal>, String> {
    let path = &*variables.admin_cluster_key_file;
    if path.is_empty() {
        return Ok(None);
    }
    let said = |words: String| format!("admin-cluster_key_file {path}: {words}");
    let size = std::fs::metadata(path).map_err(|error| said(error.to_string()))?;
    if size.len() > KEY_FILE_MAX {
        return Err(said("is too long for a key".to_owned()));
    }
    let file = std::fs::read(path).map_err(|error| said(error.to_string()))?;
    Seal::of(&file).map(Some).map_err(said)
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
