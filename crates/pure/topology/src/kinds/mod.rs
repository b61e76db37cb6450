//! Kinds of topologies, one file a kind: what its servers are asked and how often, what their answers
//! say, and who therefore serves where.

mod aurora;
mod galera;
mod group;
mod quartet;
mod replication;

use crate::members::{Assigned, Member};
use crate::place::Policy;
use crate::probe::Rows;
use crate::seen::{Observed, Peers, Role, ServerKey};
use config::{Servers, Topology, TopologyKind, Variables};
use std::sync::Arc;

/// Pace of a question: how often it is put, and how long there is to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Milliseconds from one to the next.
    pub interval_ms: u64,
    /// Milliseconds that there are for an answer.
    pub timeout_ms: u64,
    /// Checks lost in a row that count.
    pub lost: u64,
    /// Checks in a row that must find a server too far behind.
    pub behind: u64,
    /// Checks of which the worst counts.
    pub worst_of: usize,
}

/// Rights of a server in its topology, by its own word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is known.
    Unseen,
    /// Writing. Of several the one with the lowest number is the best.
    MayWrite(u8),
    /// Reading only, and why.
    Reads(&'static str),
    /// No use, and why.
    NoUse(&'static str),
}

/// Ways of a kind of topology.
pub trait Kind: Sync {
    /// Question to a server of this version.
    fn question(&self, topology: &Topology, version: &str) -> String;

    /// Role by an answer; else why that is no answer.
    fn told(&self, topology: &Topology, rows: &Rows) -> Result<Role, &'static str>;

    /// Name of the server in its cluster, where that is worth a column.
    fn name(&self, _rows: &Rows) -> Option<Arc<str>> {
        None
    }

    /// Servers that it knows, by that answer.
    fn peers(&self, _topology: &Topology, _rows: &Rows) -> Peers {
        Peers::default()
    }

    /// Second question, for the servers that this one knows, and how many of the first come to one of
    /// it. `None` where there is no such question.
    fn asks_for_peers(&self, _variables: &Variables) -> Option<(&'static str, u64)> {
        None
    }

    /// Servers that the server with this key knows, by the answer to [`Kind::asks_for_peers`].
    fn told_peers(&self, _key: &ServerKey, _rows: &Rows) -> Peers {
        Peers::default()
    }

    /// Role by an error with this number. Most say nothing: the server cannot be checked.
    fn told_by_error(&self, _code: u16) -> Option<Role> {
        None
    }

    /// Pace of the question.
    fn pace(&self, topology: &Topology, variables: &Variables) -> Pace;

    /// Standing by a role.
    fn standing(&self, role: &Role) -> Standing;

    /// Words for an operator when that has changed.
    fn words(&self, role: &Role) -> String {
        match self.standing(role) {
            Standing::Unseen => "does not say how it is".to_owned(),
            Standing::MayWrite(_) => "says that it may write".to_owned(),
            Standing::Reads(why) => format!("says that it only reads: {why}"),
            Standing::NoUse(why) => format!("says that it is of no use: {why}"),
        }
    }
}

/// Assignment of servers to the hostgroups of a topology.
pub(crate) trait Assign: Kind {
    fn assign(
        &self,
        topology: &Topology,
        members: &[Member],
        declared: &Servers,
        observed: &Observed,
        policy: &Policy,
    ) -> Assigned;
}

/// Finds the ways of a kind.
#[must_use]
pub fn kind(kind: TopologyKind) -> &'static dyn Kind {
    of(kind)
}

pub(crate) fn of(kind: TopologyKind) -> &'static dyn Assign {
    match kind {
        TopologyKind::Replication => &replication::Ways,
        TopologyKind::Group => &group::Ways,
        TopologyKind::Galera => &galera::Ways,
        TopologyKind::Aurora => &aurora::Ways,
    }
}

/// A cell as text; empty if it is NULL.
fn text(cell: Option<&Option<Vec<u8>>>) -> &str {
    let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// A cell of a variable that is ON or OFF.
fn is_on(text: &str) -> bool {
    // MariaDB 12 has several kinds of read_only.
    ["1", "ON", "YES", "NO_LOCK", "NO_LOCK_NO_ADMIN"]
        .iter()
        .any(|on| on.eq_ignore_ascii_case(text))
}

/// A topology that adds nothing to what servers say.
#[cfg(test)]
pub(crate) fn any() -> Topology {
    use config::{CheckType, Replication};
    Topology::Replication(Replication {
        writer: 0,
        reader: 1,
        check: CheckType::default(),
        comment: Box::default(),
    })
}
