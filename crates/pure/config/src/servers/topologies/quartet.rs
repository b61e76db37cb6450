//! Four hostgroups of a cluster whose nodes all hold the same data: `mysql_galera_hostgroups` and
//! `mysql_group_replication_hostgroups`.

use super::Taken;
use crate::refusal::Refusals;
use crate::{QuartetRow, Refusal};

/// One row of `mysql_galera_hostgroups` or `mysql_group_replication_hostgroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quartet {
    /// Hostgroup of those that get writes.
    pub writer: u32,
    /// Hostgroup of those that could get writes, while others do.
    pub backup_writer: u32,
    /// Hostgroup of those that only read.
    pub reader: u32,
    /// Hostgroup of those that are of no use now.
    pub offline: u32,
    /// Whether the row is followed.
    pub active: bool,
    /// Writers at most.
    pub max_writers: u32,
    /// Readers besides those that only read.
    pub also_reads: AlsoReads,
    /// Transactions that a node may still have to apply before it gets nothing new; 0 for any number.
    pub max_transactions_behind: u32,
    /// For the operator.
    pub comment: Option<Box<str>>,
}

/// Readers besides those that only read: `writer_is_also_reader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AlsoReads {
    /// Nobody.
    #[default]
    Nobody,
    /// Writers and backup writers.
    All,
    /// Backup writers.
    Backups,
}

impl AlsoReads {
    const ALL: [Self; 3] = [Self::Nobody, Self::All, Self::Backups];

    /// Whether a writer reads as well.
    #[must_use]
    pub const fn has_writers(self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether a backup writer reads as well.
    #[must_use]
    pub const fn has_backups(self) -> bool {
        matches!(self, Self::All | Self::Backups)
    }
}

impl Quartet {
    /// All four: writer, backup writer, reader, offline.
    #[must_use]
    pub const fn hostgroups(&self) -> [u32; 4] {
        [self.writer, self.backup_writer, self.reader, self.offline]
    }

    pub(in crate::servers) fn row<const GALERA: bool>(&self) -> QuartetRow<GALERA> {
        QuartetRow {
            writer_hostgroup: self.writer.into(),
            backup_writer_hostgroup: self.backup_writer.into(),
            reader_hostgroup: self.reader.into(),
            offline_hostgroup: self.offline.into(),
            active: self.active.into(),
            max_writers: self.max_writers.into(),
            writer_is_also_reader: self.also_reads as i64,
            max_transactions_behind: self.max_transactions_behind.into(),
            comment: self.comment.as_deref().map(str::to_owned),
        }
    }
}

pub(super) fn build<const GALERA: bool>(
    rows: impl IntoIterator<Item = QuartetRow<GALERA>>,
    taken: &mut Taken,
    refused: &mut Vec<Refusal>,
) -> Vec<Quartet> {
    const MAX: (i64, i64) = (0, u32::MAX as i64);
    let mut refusals = Refusals::of(QuartetRow::<GALERA>::TABLE);
    let mut built: Vec<Quartet> = Vec::new();
    for row in rows {
        let key = || format!("writer_hostgroup {}", row.writer_hostgroup);
        let active = refusals.flag(key, "active", row.active);
        let hostgroups = [
            ("writer_hostgroup", row.writer_hostgroup),
            ("backup_writer_hostgroup", row.backup_writer_hostgroup),
            ("reader_hostgroup", row.reader_hostgroup),
            ("offline_hostgroup", row.offline_hostgroup),
        ];
        let [writer, backup_writer, reader, offline] =
            taken.hostgroups(&mut refusals, active, hostgroups);
        let also = row.writer_is_also_reader;
        let also: usize = refusals.number(key, "writer_is_also_reader", also, (0, 2));
        let behind = row.max_transactions_behind;
        built.push(Quartet {
            writer,
            backup_writer,
            reader,
            offline,
            active,
            max_writers: refusals.number(key, "max_writers", row.max_writers, MAX),
            also_reads: AlsoReads::ALL[also],
            max_transactions_behind: refusals.number(key, "max_transactions_behind", behind, MAX),
            comment: row.comment.as_deref().map(Into::into),
        });
    }
    refused.extend(refusals.into_list());
    built.sort_unstable_by_key(|four| four.writer);
    built
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GaleraHostgroupRow;

    fn row(first: i64) -> GaleraHostgroupRow {
        GaleraHostgroupRow {
            writer_hostgroup: first,
            backup_writer_hostgroup: first + 1,
            reader_hostgroup: first + 2,
            offline_hostgroup: first + 3,
            ..GaleraHostgroupRow::default()
        }
    }

    fn refused(rows: Vec<GaleraHostgroupRow>) -> Vec<String> {
        let mut refused = Vec::new();
        build(rows, &mut Taken::default(), &mut refused);
        refused.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rows_are_kept_in_order_and_list_themselves_back() {
        let mut refused = Vec::new();
        let second = GaleraHostgroupRow {
            writer_is_also_reader: 2,
            max_writers: 3,
            comment: Some("a".into()),
            ..row(10)
        };
        let rows = [row(20), second.clone()];
        let built = build(rows, &mut Taken::default(), &mut refused);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(built[0].also_reads, AlsoReads::Backups);
        assert_eq!(built[0].row(), second);
        assert_eq!(built[1].row(), row(20));
    }

    #[test]
    fn a_hostgroup_that_another_row_has_is_refused_unless_this_one_is_not_followed() {
        let mut other = row(12);
        let words = refused(vec![row(10), other.clone()]);
        assert_eq!(words.len(), 2, "{words:?}");
        assert!(words[0].contains("mysql_galera_hostgroups already"));
        other.active = 0;
        assert!(refused(vec![row(10), other]).is_empty());
        let strange = GaleraHostgroupRow {
            writer_is_also_reader: 3,
            max_writers: -1,
            ..row(10)
        };
        assert_eq!(refused(vec![strange]).len(), 2);
    }
}
