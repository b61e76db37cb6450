//! What must not be stale: not from the cache, and where what it must see is visible.
//!
//! `gtid_from_hostgroup` of a rule names the hostgroup whose writes a statement must see: it goes to
//! a server that has them, and where none has ([`Plan::settle`]) to that hostgroup. The hint `min_gtid` does the same for one transaction, and
//! `max_lag_ms` and `min_epoch_ms` for an age, where the read/write split or a topology knows the writer of its hostgroup.

use crate::hints::number;
use crate::split::split_of;
use crate::trace::Trace;
use crate::{By, Plan, SessionFacts};
use config::Snapshot;
use gtid::Set;
use std::fmt;

/// How old at most what a statement reads may be, as its hints have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// How far a server may be behind; 0 to 600000.
    pub max_lag_ms: Option<u32>,
    /// As it was then or later, in milliseconds since 1970.
    pub min_epoch_ms: Option<u64>,
    /// A transaction that it must see, `uuid:number` or `domain-server-number`.
    pub min_gtid: Option<Box<str>>,
    /// Needs that a server must meet for it, and the hostgroup that has it if nobody else has.
    pub(crate) must_have: Option<(Needs, u32)>,
}

/// Needs of a statement with bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Needs {
    Gtids(Set),
    Age(Age),
}

/// How old at most what a statement reads may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Age {
    /// Milliseconds behind the writer at most.
    pub max_lag_ms: Option<u32>,
    /// As it was then or later, in milliseconds since 1970.
    pub min_epoch_ms: Option<u64>,
}

impl Age {
    /// The time, in milliseconds since 1970, of which a server must have everything. `now_ms`: the
    /// time now.
    #[must_use]
    pub fn not_before(self, now_ms: u64) -> u64 {
        let by_lag = self
            .max_lag_ms
            .map_or(0, |lag| now_ms.saturating_sub(lag.into()));
        by_lag.max(self.min_epoch_ms.unwrap_or(0))
    }
}

/// The largest `max_lag_ms` that ProxySQL takes.
const LAG_MS_MAX: u32 = 600_000;

impl Bounds {
    /// Takes over what a hint says, whose name is in lower case; `None` if its name is another,
    /// false if its value makes no sense.
    pub(crate) fn hear(&mut self, key: &str, value: &str) -> Option<bool> {
        let (was, heard) = (
            self.clone(),
            match key {
                "max_lag_ms" => {
                    self.max_lag_ms = number(value).filter(|lag| *lag <= LAG_MS_MAX);
                    self.max_lag_ms.is_some()
                }
                "min_epoch_ms" => {
                    self.min_epoch_ms = number(value);
                    self.min_epoch_ms.is_some()
                }
                "min_gtid" => {
                    let is_whole =
                        |(source, number): &(&str, &str)| !source.is_empty() && !number.is_empty();
                    let has_source = value.split_once(':').filter(is_whole).is_some();
                    let makes_sense = has_source || gtid_of(value).is_some();
                    self.min_gtid = makes_sense.then(|| value.into());
                    makes_sense
                }
                _ => return None,
            },
        );
        if !heard {
            *self = was;
        }
        Some(heard)
    }

    /// Needs that they are for a server; `None` if they ask for a transaction and an age at once.
    fn needs(&self) -> Option<Needs> {
        let age = Age {
            max_lag_ms: self.max_lag_ms,
            min_epoch_ms: self.min_epoch_ms,
        };
        match &self.min_gtid {
            None => Some(Needs::Age(age)),
            Some(gtid) if age == Age::default() => gtid_of(gtid).map(Needs::Gtids),
            Some(_) => None,
        }
    }
}

fn gtid_of(text: &str) -> Option<Set> {
    text.parse().ok().filter(|set: &Set| !set.is_empty())
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.max_lag_ms.map(|lag| format!("max_lag_ms={lag}")),
            self.min_epoch_ms
                .map(|epoch| format!("min_epoch_ms={epoch}")),
            self.min_gtid
                .as_ref()
                .map(|gtid| format!("min_gtid={gtid}")),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

/// Sends it where it cannot be stale, whatever rules, fast routing, split and hints have found; a
/// transaction and a session's state stay where they are.
#[inline]
pub(crate) fn look<T: Trace>(
    plan: &mut Plan,
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    trace: &mut T,
) {
    if plan.gtid_from_hostgroup.is_some() || plan.bounds.is_some() {
        turn(plan, snapshot, session, trace);
    }
}

#[cold]
fn turn<T: Trace>(plan: &mut Plan, snapshot: &Snapshot, session: &SessionFacts<'_>, trace: &mut T) {
    let routed = plan.hostgroup();
    // What is in it may be older than what is asked for.
    plan.uncache();
    if let Some(writer) = plan.gtid_from_hostgroup {
        trace.saw("freshness", || match writer == routed {
            true => format!("hostgroup {writer} sees its own writes"),
            false => format!(
                "hostgroup {routed}, on a server that has what the session wrote in {writer} (gtid_from_hostgroup); hostgroup {writer} where none has"
            ),
        });
        return;
    }
    let writer = writer_of(snapshot, session, routed);
    if let (Some(writer), Some(bounds)) = (writer, &mut plan.bounds)
        && let Some(needs) = bounds.needs()
    {
        trace.saw("freshness", || {
            let has = match &needs {
                Needs::Gtids(set) => format!("has {set} (min_gtid)"),
                Needs::Age(_) => format!("is known to be so fresh ({bounds})"),
            };
            format!("hostgroup {routed}, on a server that {has}; hostgroup {writer}, the writer, where none has")
        });
        bounds.must_have = Some((needs, writer));
        return;
    }
    if let Some(writer) = writer {
        plan.send_to(writer, By::Fresh);
    }
    trace.saw("freshness", || match writer {
        Some(writer) => format!("hostgroup {writer}, the writer: nobody can tell whether a server of {routed} has what is asked for"),
        None => format!("hostgroup {routed}, as routed: neither a read/write split nor a topology says that it only reads for another one, so nothing keeps the bound"),
    });
}

/// The hostgroup whose reads go to `reader`, if the read/write split knows exactly one, its topology has one, or the
/// user's own is one.
fn writer_of(snapshot: &Snapshot, session: &SessionFacts<'_>, reader: u32) -> Option<u32> {
    if split_of(snapshot, session.user).is_some_and(|split| split.read_hostgroup == reader) {
        return Some(session.user.default_hostgroup);
    }
    if !snapshot.servers.splits() {
        return of_topology(snapshot, reader);
    }
    let reads_there = |hostgroup: &&config::Hostgroup| {
        hostgroup
            .attributes
            .split
            .as_ref()
            .is_some_and(|split| split.read_hostgroup == reader)
    };
    let mut writers = snapshot
        .servers
        .iter()
        .filter(reads_there)
        .map(|hostgroup| hostgroup.id);
    match writers.next() {
        None => of_topology(snapshot, reader),
        only => only.filter(|_| writers.next().is_none()),
    }
}

/// The hostgroup of the writers of the topology whose replicas are in this one.
fn of_topology(snapshot: &Snapshot, reader: u32) -> Option<u32> {
    let topologies = snapshot.servers.topologies().iter();
    let mut of_it = topologies.filter(|one| one.is_active() && one.readers() == reader);
    of_it.next().map(|one| one.writers())
}
