//! Tables of a fleet for operators.

use crate::cluster::subjects::SUBJECTS;
use crate::engine::SqlError;
use crate::grid::Grid;
use crate::said::Said;
use crate::see::observe::{Into, signed};
use crate::shared::Shared;
use bridge::{FleetFacts, HeldFacts, ShareFacts};
use fleet::{Held, Shares, Status};
use rusqlite::Connection;

impl Shared {
    /// Knowledge of the fleet, for the metrics; none where there is no store.
    pub(crate) fn fleet_facts(&self) -> Option<FleetFacts> {
        self.books()?;
        Some(FleetFacts {
            silent_s: self.silence().map_or(0, |(s, _)| s),
            modules: self.held_facts(),
            shares: self.share_facts(),
        })
    }

    /// For how many seconds the store has been silent, and why.
    fn silence(&self) -> Option<(u64, String)> {
        let lost = self.cluster.fleet.lost.borrow();
        let (since, why) = lost.as_ref()?;
        Some((self.now_s().saturating_sub(*since), why.to_string()))
    }

    /// All modules of all proxies that live, this one the last.
    fn held_facts(&self) -> Vec<HeldFacts> {
        let seen = self.cluster.fleet.seen.borrow();
        let own = self.status();
        let silent = self
            .silence()
            .map(|(s, why)| format!("the store has been silent for {s} s: {why}"));
        let others = seen.iter().flat_map(|seen| &seen.proxies);
        let others = others.filter(|proxy| proxy.name != own.name);
        let mut all = Vec::new();
        for proxy in others.chain([&own]) {
            for subject in &SUBJECTS {
                let truth = seen
                    .as_ref()
                    .and_then(|seen| seen.modules.get(subject.name));
                let nothing = Held::default();
                let held = proxy.modules.get(subject.name).unwrap_or(&nothing);
                let is_late = truth.is_some_and(|truth| truth.head.id != held.id);
                let (state, error) = match (&*held.state, &silent) {
                    ("in force", None) if is_late => ("behind", &held.error),
                    ("", _) => ("own", silent.as_ref().unwrap_or(&held.error)),
                    (state, Some(silent)) => (state, silent),
                    (state, None) => (state, &held.error),
                };
                all.push(HeldFacts {
                    proxy: proxy.name.clone(),
                    address: proxy.address.clone(),
                    version: proxy.version.clone(),
                    module: subject.name,
                    state: state.to_owned(),
                    generation: held.generation,
                    truth: truth.map_or(0, |truth| truth.head.generation),
                    error: error.clone(),
                });
            }
        }
        all
    }

    /// Fills `stats_millrace_fleet`: a row a proxy and module. Nothing where there is no store.
    pub(crate) fn fill_fleet(&self, conn: &Connection, table: &str) -> Result<(), SqlError> {
        let mut into = Into::table(conn, table, 8)?;
        if self.books().is_none() {
            return Ok(());
        }
        for held in self.held_facts() {
            #[rustfmt::skip]
            into.row(&[
                &held.proxy, &held.address, &held.version, &held.module, &held.state, &signed(held.generation),
                &signed(held.truth), &held.error,
            ])?;
        }
        Ok(())
    }

    /// Proxies of the fleet in which another generation of a module is in force than in the store, and the store if it
    /// is silent. Nobody where there is no store.
    pub(crate) fn fleet_without(&self, module: &str) -> Vec<String> {
        if self.books().is_none() {
            return Vec::new();
        }
        if self.cluster.fleet.lost.borrow().is_some() {
            return vec!["the store, which is silent".to_owned()];
        }
        let seen = self.cluster.fleet.seen.borrow();
        let Some(seen) = &*seen else {
            return vec!["the store, which has not been read yet".to_owned()];
        };
        let truth = seen.modules.get(module).map(|truth| &truth.head.id);
        let own = self.status();
        let has_it = |proxy: &&Status| {
            let held = proxy.modules.get(module);
            held.zip(truth).is_some_and(|(held, id)| held.has(id))
        };
        let all = seen.proxies.iter().filter(|proxy| proxy.name != own.name);
        let others = all.chain([&own]).filter(|proxy| !has_it(proxy));
        others.map(|proxy| proxy.name.to_string()).collect()
    }

    /// Parts of all limits for the whole fleet; none where there is no store.
    fn share_facts(&self) -> Vec<ShareFacts> {
        let shares = self.cluster.fleet.shares.borrow();
        let Some(Shares {
            ledger, reports, ..
        }) = &*shares
        else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for (name, limit) in &ledger.limits {
            for (uuid, part) in ledger.members.iter().zip(&limit.parts) {
                let report = reports.iter().find(|report| report.uuid == *uuid);
                let need = report.and_then(|report| report.needs.get(name));
                let need = need.copied().unwrap_or_default();
                all.push(ShareFacts {
                    what: name.clone(),
                    proxy: report.map_or(uuid, |report| &report.name).clone(),
                    is_own: uuid == self.cluster.uuid(),
                    budget: limit.budget,
                    share: part.share,
                    has: need.held.max(part.share),
                    used: need.used,
                    wanted: need.all(),
                });
            }
        }
        all
    }

    /// Fills `stats_millrace_shares`: a row a limit and proxy. Nothing where there is no store.
    pub(crate) fn fill_shares(&self, conn: &Connection, table: &str) -> Result<(), SqlError> {
        let mut into = Into::table(conn, table, 7)?;
        for part in self.share_facts() {
            #[rustfmt::skip]
            into.row(&[
                &part.what, &part.proxy, &part.budget, &part.share, &part.has, &part.used, &part.wanted,
            ])?;
        }
        Ok(())
    }

    /// `SHOW FLEET HISTORY`: the latest generation of each module first.
    pub(crate) async fn fleet_history(&self) -> Result<Grid, Said> {
        let names = [
            "module",
            "generation",
            "loaded_by",
            "loaded_at",
            "bytes",
            "checksum",
            "sealed",
        ];
        let mut grid = Grid::new(names);
        for subject in &SUBJECTS {
            let (books, _) = self.fleets(subject.name)?;
            let history = books.history(subject.name).await;
            let history = history.map_err(|failed| Said::Sql(format!("the store: {failed}")))?;
            for head in history {
                let sealed = if head.is_sealed { "1" } else { "0" };
                let numbers = [head.generation, head.at_s, head.bytes as u64];
                let [generation, at_s, bytes] = numbers.map(|number| number.to_string());
                let cells = [
                    subject.name,
                    &generation,
                    &head.by,
                    &at_s,
                    &bytes,
                    &head.checksum,
                    sealed,
                ];
                grid.push_row(cells.map(Some));
            }
        }
        Ok(grid)
    }
}
