//! Writes of a session are told with each answer, and statements find servers that have them.

use crate::command::job::Job;
use crate::command::settings::LAST_GTID;
use crate::known::shared_writes::{INTERVALS_MAX, Known, Shared};
use crate::session::Session;
use backend::{Backend, Shows};
use bridge::Counter;
use gtid::Set;
use plan::{Age, MustSee, Plan, Sight};
use sql::CommandCounter;
use wire::response::Response;
use wire::track::Change;

impl Session {
    /// A statement was answered: what it has written there.
    pub(crate) fn learn_written(&mut self, backend: &Backend, job: &Job<'_>, response: &Response) {
        if !backend.place().collects_gtids() {
            return;
        }
        let (class, hostgroup) = (job.class, job.plan.hostgroup());
        // A MariaDB that tells of changes tells of this one: all of the domain up to it was written
        // before.
        let by_variable = backend.hello.is_mariadb() && backend.tells_all();
        let mut told = false;
        for change in response.changes() {
            let gtids = match change {
                Change::Gtids(gtids) => gtids,
                Change::Variable { name, value } if by_variable && name == LAST_GTID => value,
                _ => continue,
            };
            if !gtids.is_empty() {
                self.remembered.written.at(hostgroup).told(gtids);
                self.shares_write(hostgroup, Some(gtids));
                self.core.tally.up(Counter::GtidSessionCollected);
                told = true;
            }
        }
        if told {
            return;
        }
        let failed = self.turn.failed;
        let writes = match backend.tells_gtids() || by_variable {
            // What is told of nothing has changed nothing, unless the server keeps no GTIDs.
            true => !failed && (class.ddl || response.affected_rows() > 0),
            false => class.may_write(),
        };
        if writes {
            let there = self.remembered.written.at(hostgroup);
            let is_open = backend.holds.has(backend::Hold::Transaction);
            (there.open, there.unsure) = (is_open, there.unsure || !is_open);
            if !is_open {
                self.shares_write(hostgroup, None);
            }
        } else if class.ends_transaction && self.remembered.written.of(hostgroup).is_some() {
            let there = self.remembered.written.at(hostgroup);
            let is_gone = class.command == CommandCounter::Rollback;
            if std::mem::take(&mut there.open) && !is_gone {
                self.has_written_at(hostgroup);
            }
        }
    }

    /// Something was written there of which no GTID is known: what must see it is read there.
    pub(crate) fn has_written_at(&mut self, hostgroup: u32) {
        self.remembered.written.at(hostgroup).unsure = true;
        self.shares_write(hostgroup, None);
    }

    /// Other sessions of its user hear of a write, if they share theirs: of these GTIDs, or of none.
    fn shares_write(&self, hostgroup: u32, gtids: Option<&[u8]>) {
        if !self.user.shares_writes() {
            return;
        }
        let text = gtids.and_then(|gtids| std::str::from_utf8(gtids).ok());
        let what = match text.and_then(|text| text.parse().ok()) {
            Some(set) => Shared {
                set,
                told: Some(self.entry.since.get()),
                unsure: None,
            },
            None => Shared {
                unsure: Some(self.core.rt.now()),
                ..Shared::default()
            },
        };
        self.core.share_write(&self.user.username, hostgroup, what);
    }

    /// Takes in what other sessions of its user have written, if this plan must see it.
    pub(crate) fn hears_of_writes(&mut self, plan: &Plan) {
        if !self.user.shares_writes() {
            return;
        }
        if let Some(MustSee::Written(source)) = plan.must_see() {
            let known = self.core.shared_writes(&self.user.username, source);
            let there = self.remembered.written.at(source);
            there.others_unsure = matches!(known, Known::Unsure);
            if let Known::Within(set) = known {
                there.set.union(&set);
                there.set.coarsen(INTERVALS_MAX);
            }
        }
    }

    /// The branch of a transaction on a hostgroup has ended, of which no GTID is known.
    pub(crate) fn has_ended_at(&mut self, hostgroup: u32, is_committed: bool) {
        if self.remembered.written.of(hostgroup).is_some() {
            let there = self.remembered.written.at(hostgroup);
            if std::mem::take(&mut there.open) && is_committed {
                self.has_written_at(hostgroup);
            }
        }
    }

    /// Returns what a server must have executed to serve this plan.
    pub(crate) fn must_see<'a>(&'a self, plan: &'a Plan) -> Option<Shows<'a>> {
        Some(match plan.must_see()? {
            MustSee::Written(source) => Shows::Gtids(&self.remembered.written.of(source)?.set),
            MustSee::These(gtids) => Shows::Gtids(gtids),
            MustSee::Aged(age) => self.of_age(plan.hostgroup(), age),
        })
    }

    /// `mysql-aurora_max_lag_ms_only_read_from_replicas`: where fewer replicas are so fresh, the writer reads as
    /// well.
    fn of_age(&self, hostgroup: u32, age: Age) -> Shows<'static> {
        let ms = age.not_before(self.core.rt.wall_us() / 1000);
        let epoch = self.core.epoch();
        let v = &epoch.snapshot.variables;
        let enough = v.mysql_aurora_max_lag_ms_only_read_from_replicas;
        let replicas = || self.core.pools.replicas_as_of(hostgroup, ms) as u64;
        Shows::NotBefore {
            ms,
            or_writes: age.max_lag_ms.is_some() && replicas() < enough,
        }
    }

    /// Whether the server of the hostgroup that the session is bound to shows this, or some that
    /// takes new work.
    fn is_shown(&self, hostgroup: u32, what: Shows<'_>) -> bool {
        // It stays on the connection that it has there, whose server may be any.
        match self.held.iter().find(|(of, _)| *of == hostgroup) {
            Some((_, backend)) => backend.place().shows(what),
            None => self.core.pools.shows(hostgroup, what),
        }
    }
}

impl Sight for Session {
    fn takes(&self, hostgroup: u32, for_ms: u64) -> bool {
        self.core.pools.takes(hostgroup, for_ms)
    }

    fn sees(&self, hostgroup: u32, writer: u32) -> bool {
        match self.remembered.written.of(writer) {
            None => true,
            Some(there) if there.unsure || there.others_unsure || there.open => false,
            Some(there) => self.has(hostgroup, &there.set),
        }
    }

    fn has(&self, hostgroup: u32, gtids: &Set) -> bool {
        self.is_shown(hostgroup, Shows::Gtids(gtids))
    }

    fn is_fresh(&self, hostgroup: u32, age: Age) -> bool {
        self.is_shown(hostgroup, self.of_age(hostgroup, age))
    }
}
