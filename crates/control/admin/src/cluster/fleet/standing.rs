//! Standing of this proxy in its fleet: the store that is in force, what is in force of it here, and what the
//! others are told of that.

use super::membership::Stands;
use super::secrets::seal;
use crate::cluster::subjects::{At, MILLRACE, SUBJECTS, Subject};
use crate::engine::SqlError;
use crate::shared::Shared;
use config::Variables;
use fleet::{Books, Failed, Held, Place, Status, Truth};
use std::rc::Rc;

impl Shared {
    /// The books of the store that is in force; another store is another fleet.
    pub(super) fn books(&self) -> Option<Rc<Books>> {
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

    /// Whether this proxy exchanges with ProxySQLs for its fleet: the first of those that live does.
    /// Two of them for a moment do no harm, since what they write has a guard.
    pub(in crate::cluster) fn is_bridge(&self) -> bool {
        let fleet = &self.cluster.fleet;
        if fleet.lost.borrow().is_some() {
            return false;
        }
        let seen = fleet.seen.borrow();
        let living = seen.iter().flat_map(|seen| &seen.proxies);
        let first = living.map(|status| &*status.uuid).min();
        first.is_some_and(|uuid| uuid == self.cluster.uuid())
    }

    /// The truth is in force here.
    pub(super) fn has(&self, at: At, truth: &Truth) {
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

    pub(super) fn note_stand(&self, at: At, now: Stands) {
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

    /// By what others know this proxy.
    pub(super) fn fleet_name(&self) -> String {
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
    pub(super) fn status(&self) -> Status {
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
            version: MILLRACE.to_owned(),
            modules: modules.collect(),
        }
    }

    /// Reads what the store has of a module.
    pub(super) async fn fetch(
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
}
