//! What a session has written, as GTIDs, for each hostgroup: a rule may want a statement to see it
//! elsewhere (`gtid_from_hostgroup`). No memory of a server's: it is told with each answer.
//!
//! docs/features/causal-reads.md

use crate::command::job::Job;
use crate::command::settings::LAST_GTID;
use crate::session::Session;
use backend::{Backend, Shows};
use bridge::Counter;
use gtid::Set;
use plan::{Age, MustSee, Plan, Sight};
use sql::CommandCounter;
use wire::response::Response;
use wire::track::Change;

/// Numbers of a source that a session remembers one by one. The gaps between older ones are filled:
/// a server must then have what others wrote between them, too.
const INTERVALS_MAX: usize = 16;

/// Writes of a session, by hostgroup. Most sessions never have any.
#[derive(Debug, Default)]
pub(crate) struct Written(Option<Box<ByHostgroup>>);

type ByHostgroup = Vec<(u32, There)>;

/// In one hostgroup.
#[derive(Debug, Default)]
struct There {
    set: Set,
    /// Whether the session has written what no GTID was told of.
    unsure: bool,
    /// So does the transaction that is open, as long as nothing is told of it.
    open: bool,
}

impl Written {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn at(&mut self, hostgroup: u32) -> &mut There {
        let all = self.0.get_or_insert_default();
        let known = all.iter().position(|(of, _)| *of == hostgroup);
        let at = known.unwrap_or_else(|| {
            all.push((hostgroup, There::default()));
            all.len() - 1
        });
        &mut all[at].1
    }

    fn of(&self, hostgroup: u32) -> Option<&There> {
        let found = self.0.as_ref()?.iter().find(|(of, _)| *of == hostgroup);
        found.map(|(_, there)| there)
    }
}

impl There {
    /// The server has told these of it.
    fn told(&mut self, gtids: &[u8]) {
        let read = std::str::from_utf8(gtids).map(str::parse::<Set>);
        let Ok(Ok(set)) = read else {
            self.unsure = true;
            return;
        };
        self.set.union(&set);
        self.set.coarsen(INTERVALS_MAX);
        // Whatever was written before has lower numbers.
        (self.unsure, self.open) = (false, false);
    }
}

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
        } else if class.ends_transaction && self.remembered.written.of(hostgroup).is_some() {
            let there = self.remembered.written.at(hostgroup);
            let is_gone = class.command == CommandCounter::Rollback;
            there.unsure |= std::mem::take(&mut there.open) && !is_gone;
        }
    }

    /// Something was written there of which no GTID is known: what must see it is read there.
    pub(crate) fn has_written_at(&mut self, hostgroup: u32) {
        self.remembered.written.at(hostgroup).unsure = true;
    }

    /// The branch of a transaction on a hostgroup has ended, of which no GTID is known.
    pub(crate) fn has_ended_at(&mut self, hostgroup: u32, is_committed: bool) {
        if self.remembered.written.of(hostgroup).is_some() {
            let there = self.remembered.written.at(hostgroup);
            there.unsure |= std::mem::take(&mut there.open) && is_committed;
        }
    }

    /// Returns what a server must have executed to serve this plan.
    pub(crate) fn must_see<'a>(&'a self, plan: &'a Plan) -> Option<Shows<'a>> {
        Some(match plan.must_see()? {
            MustSee::Written(source) => Shows::Gtids(&self.remembered.written.of(source)?.set),
            MustSee::These(gtids) => Shows::Gtids(gtids),
            MustSee::Aged(age) => self.of_age(age),
        })
    }

    fn of_age(&self, age: Age) -> Shows<'static> {
        Shows::NotBefore(age.not_before(self.core.rt.wall_us() / 1000))
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
            Some(there) if there.unsure || there.open => false,
            Some(there) => self.has(hostgroup, &there.set),
        }
    }

    fn has(&self, hostgroup: u32, gtids: &Set) -> bool {
        self.is_shown(hostgroup, Shows::Gtids(gtids))
    }

    fn is_fresh(&self, hostgroup: u32, age: Age) -> bool {
        self.is_shown(hostgroup, self.of_age(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn what_is_told_is_remembered_by_hostgroup_and_bounded() {
        let mut written = Written::default();
        assert!(written.of(1).is_none());
        for number in 0..100 {
            let gtid = format!("{A}:{}", 1 + 2 * number);
            written.at(1).told(gtid.as_bytes());
        }
        let there = written.of(1).unwrap();
        assert_eq!(there.set.intervals(), INTERVALS_MAX);
        assert!(there.set.contains_set(&format!("{A}:1").parse().unwrap()));
        assert!(!there.unsure && written.of(2).is_none());
        written.at(1).told(b"strange");
        assert!(written.of(1).unwrap().unsure);
        written.at(1).told(format!("{A}:500").as_bytes());
        assert!(!written.of(1).unwrap().unsure);
    }
}
