//! Topologies: rows that say between which hostgroups servers move by what they say of themselves.
//! One file for each shape of rows.

mod aurora;
mod pair;
mod quartet;

pub use aurora::Aurora;
pub use pair::{CheckType, Replication, Writers};
pub use quartet::{AlsoReads, Quartet};

use crate::AuroraHostgroupRow;
use crate::refusal::Refusals;
use crate::{GaleraHostgroupRow, GroupReplicationHostgroupRow, Refusal, ReplicationHostgroupRow};
use std::sync::Arc;

/// One row that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// Row of `mysql_replication_hostgroups`.
    Replication(Replication),
    /// Row of `mysql_group_replication_hostgroups`.
    Group(Quartet),
    /// Row of `mysql_galera_hostgroups`.
    Galera(Quartet),
    /// Row of `mysql_aws_aurora_hostgroups`.
    Aurora(Aurora),
}

/// Kind of a topology: servers of one kind are asked the same question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopologyKind {
    /// A source with replicas that follow it, told apart by `read_only`.
    Replication,
    /// MySQL Group Replication.
    Group,
    /// Galera.
    Galera,
    /// Amazon's Aurora.
    Aurora,
}

impl TopologyKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Replication, Self::Group, Self::Galera, Self::Aurora];
}

impl Topology {
    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> TopologyKind {
        match self {
            Self::Replication(_) => TopologyKind::Replication,
            Self::Group(_) => TopologyKind::Group,
            Self::Galera(_) => TopologyKind::Galera,
            Self::Aurora(_) => TopologyKind::Aurora,
        }
    }

    /// The hostgroups between which its servers move, the writers' first.
    #[must_use]
    pub fn hostgroups(&self) -> Vec<u32> {
        match self {
            Self::Replication(pair) => vec![pair.writer, pair.reader],
            Self::Group(four) | Self::Galera(four) => four.hostgroups().to_vec(),
            Self::Aurora(aurora) => vec![aurora.writer, aurora.reader],
        }
    }

    /// The hostgroup of its writers.
    #[must_use]
    pub const fn writers(&self) -> u32 {
        match self {
            Self::Replication(pair) => pair.writer,
            Self::Aurora(aurora) => aurora.writer,
            Self::Group(four) | Self::Galera(four) => four.writer,
        }
    }

    /// The hostgroup of those that only read.
    #[must_use]
    pub const fn readers(&self) -> u32 {
        match self {
            Self::Replication(pair) => pair.reader,
            Self::Aurora(aurora) => aurora.reader,
            Self::Group(four) | Self::Galera(four) => four.reader,
        }
    }

    /// The hostgroup of those that are of no use, where there is one.
    #[must_use]
    pub const fn offline(&self) -> Option<u32> {
        match self {
            Self::Replication(_) | Self::Aurora(_) => None,
            Self::Group(four) | Self::Galera(four) => Some(four.offline),
        }
    }

    /// Distance that a server may be behind by its own word before it gets nothing new: transactions, or
    /// Aurora's milliseconds; 0 for any distance.
    #[must_use]
    pub const fn behind_max(&self) -> u32 {
        match self {
            Self::Replication(_) => 0,
            Self::Group(four) | Self::Galera(four) => four.max_transactions_behind,
            Self::Aurora(aurora) => aurora.max_lag_ms,
        }
    }

    /// Whether the operator wants it to be followed.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        match self {
            Self::Replication(_) => true,
            Self::Group(four) | Self::Galera(four) => four.active,
            Self::Aurora(aurora) => aurora.active,
        }
    }
}

/// The rows of all tables of topologies.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "each type names its table")]
pub struct TopologyRows {
    pub replication: Vec<ReplicationHostgroupRow>,
    pub groups: Vec<GroupReplicationHostgroupRow>,
    pub galera: Vec<GaleraHostgroupRow>,
    pub aurora: Vec<AuroraHostgroupRow>,
}

impl TopologyRows {
    pub(super) fn build(self, refused: &mut Vec<Refusal>) -> Vec<Arc<Topology>> {
        let mut taken = Taken::default();
        let pairs = pair::build(self.replication, &mut taken, refused);
        let groups = quartet::build(self.groups, &mut taken, refused);
        let galera = quartet::build(self.galera, &mut taken, refused);
        let aurora = aurora::build(self.aurora, &mut taken, refused);
        let pairs = pairs.into_iter().map(Topology::Replication);
        let groups = groups.into_iter().map(Topology::Group);
        let galera = galera.into_iter().map(Topology::Galera);
        let aurora = aurora.into_iter().map(Topology::Aurora);
        let all = pairs.chain(groups).chain(galera).chain(aurora);
        all.map(Arc::new).collect()
    }
}

const HOSTGROUP_MAX: i64 = i32::MAX as i64;

/// Hostgroups that are in a topology already. A hostgroup is in one.
#[derive(Default)]
struct Taken(Vec<(u32, &'static str, i64)>);

impl Taken {
    /// Numbers of the hostgroups of one row, the writers' first; a row that is not active takes none.
    fn hostgroups<const N: usize>(
        &mut self,
        refusals: &mut Refusals,
        is_active: bool,
        columns: [(&'static str, i64); N],
    ) -> [u32; N] {
        let (_, row) = columns[0];
        let key = || format!("writer_hostgroup {row}");
        let numbers = columns
            .map(|(column, value)| refusals.number::<u32>(key, column, value, (0, HOSTGROUP_MAX)));
        for (at, (column, _)) in columns.iter().enumerate() {
            let number = numbers[at];
            if let Some(other) = numbers[..at].iter().position(|other| *other == number) {
                let other = columns[other].0;
                let words = format!("is {number}, and so is {other}: they must differ");
                refusals.add(key, column, words);
            }
            let owner = self.0.iter().find(|(taken, ..)| *taken == number);
            if let Some((_, table, writer)) = owner
                && is_active
            {
                let words = format!(
                    "belongs to writer_hostgroup {writer} of {table} already: a hostgroup is in one \
                     topology"
                );
                refusals.add(key, column, words);
            }
        }
        if is_active {
            let table = refusals.table();
            self.0.extend(numbers.map(|number| (number, table, row)));
        }
        numbers
    }
}
