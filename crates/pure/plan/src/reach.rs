//! Where a statement goes when nobody serves where it was going: a hostgroup may be empty, or all of
//! its servers down, too far behind, or offline. What was observed is an argument.

use crate::fresh::Needs;
use crate::{Age, By, Plan};
use config::Servers;
use gtid::Set;
use sql::Class;

/// Knowledge of the servers when a statement is about to go somewhere.
pub trait Sight {
    /// Whether somebody in a hostgroup takes new work, and has for so many milliseconds.
    fn takes(&self, hostgroup: u32, for_ms: u64) -> bool;

    /// Whether somebody in a hostgroup takes new work who has all that the session has written in
    /// that of the `writer`.
    fn sees(&self, hostgroup: u32, writer: u32) -> bool;

    /// Whether somebody in a hostgroup takes new work who has all of these.
    fn has(&self, hostgroup: u32, gtids: &Set) -> bool;

    /// Whether somebody in a hostgroup takes new work who is known to be so fresh.
    fn is_fresh(&self, hostgroup: u32, age: Age) -> bool;
}

/// Writes that a server must have to serve a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MustSee<'p> {
    /// Writes of the session in this hostgroup.
    Written(u32),
    /// These transactions.
    These(&'p Set),
    /// Everything that the writer had so long ago.
    Aged(Age),
}

/// Fate of a plan when it meets the servers, in one word for a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The statement goes where it was going.
    AsPlanned,
    /// From this hostgroup, in which nobody serves, elsewhere.
    Moved(u32),
}

impl Plan {
    /// Sends it elsewhere if nobody serves where it was going: to the
    /// `hostgroup_settings.fallback_hostgroup` of its hostgroup, in one step, or else, what the
    /// split has led to readers, to the `writer`. Transactions and the session's state keep it where
    /// it was. What must see writes that nobody there has goes to where they were made. A partition
    /// without readers is read at its writer.
    pub fn settle(
        &mut self,
        servers: &Servers,
        writer: u32,
        class: &Class<'_>,
        sight: &impl Sight,
    ) -> Settled {
        if let Some(gather) = &mut self.gather {
            for part in &mut gather.parts {
                let takes = |hostgroup| sight.takes(hostgroup, 0);
                if part.hostgroup != part.writer && !takes(part.hostgroup) {
                    part.hostgroup = part.writer;
                }
            }
            return Settled::AsPlanned;
        }
        let was = self.hostgroup();
        self.fall_back(servers, class, sight);
        let home = match self.why.by {
            By::Read => Some((writer, By::NoReader)),
            By::ShardRead(writer) => Some((writer, By::Shard)),
            _ => None,
        };
        if let Some((writer, by)) = home.filter(|_| !sight.takes(was, 0)) {
            self.send_to(writer, by);
            self.fall_back(servers, class, sight);
        }
        let hostgroup = self.hostgroup();
        let sees = self.must_see().is_none_or(|what| match what {
            MustSee::Written(source) => sight.sees(hostgroup, source),
            MustSee::These(gtids) => sight.has(hostgroup, gtids),
            MustSee::Aged(age) => sight.is_fresh(hostgroup, age),
        });
        if let Some(source) = self.source_of_what_it_sees().filter(|_| !sees) {
            self.send_to(source, By::Fresh);
        }
        match was == self.hostgroup() {
            true => Settled::AsPlanned,
            false => Settled::Moved(was),
        }
    }

    /// Returns what a server must have for this statement. None where it goes to the hostgroup that
    /// has it, or has no choice.
    #[must_use]
    pub fn must_see(&self) -> Option<MustSee<'_>> {
        let is_free = !matches!(self.why.by, By::Transaction | By::Lock);
        let source = self.source_of_what_it_sees()?;
        if !is_free || source == self.hostgroup() {
            return None;
        }
        match (self.gtid_from_hostgroup, &self.bounds) {
            (Some(source), _) => Some(MustSee::Written(source)),
            (None, Some(bounds)) => {
                let (needs, _) = bounds.must_have.as_ref()?;
                Some(match needs {
                    Needs::Gtids(gtids) => MustSee::These(gtids),
                    Needs::Age(age) => MustSee::Aged(*age),
                })
            }
            (None, None) => None,
        }
    }

    /// Whether some servers may not have what it must see.
    #[must_use]
    pub fn is_causal(&self) -> bool {
        self.source_of_what_it_sees().is_some()
    }

    /// The hostgroup that has what it must see, if anybody has.
    fn source_of_what_it_sees(&self) -> Option<u32> {
        let of_bounds = || Some(self.bounds.as_ref()?.must_have.as_ref()?.1);
        self.gtid_from_hostgroup.or_else(of_bounds)
    }

    fn fall_back(&mut self, servers: &Servers, class: &Class<'_>, sight: &impl Sight) {
        let hostgroup = self.hostgroup();
        let fallback = servers
            .hostgroup(hostgroup)
            .and_then(|hostgroup| hostgroup.attributes.fallback)
            .filter(|fallback| class.plain_read || fallback.writes);
        if let Some(fallback) = fallback
            && !matches!(self.why.by, By::Transaction | By::Lock)
            && !sight.takes(hostgroup, fallback.return_after_ms.into())
            && sight.takes(fallback.hostgroup, 0)
        {
            self.send_to(fallback.hostgroup, By::Fallback);
        }
    }
}
