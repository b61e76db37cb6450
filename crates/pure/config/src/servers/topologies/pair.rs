//! Pairs of hostgroups between which servers move by what they say of themselves:
//! `mysql_replication_hostgroups`.

use super::Taken;
use crate::refusal::Refusals;
use crate::{Refusal, ReplicationHostgroupRow};
use std::fmt;

/// Variables that a server is asked for to know whether it may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckType {
    /// `@@global.read_only`.
    #[default]
    ReadOnly,
    /// `@@global.innodb_read_only`.
    InnodbReadOnly,
    /// `@@global.super_read_only`.
    SuperReadOnly,
    /// Either of the first two makes it a reader.
    Either,
    /// Only both of the first two make it a reader.
    Both,
}

impl CheckType {
    const ALL: [Self; 5] = [
        Self::ReadOnly,
        Self::InnodbReadOnly,
        Self::SuperReadOnly,
        Self::Either,
        Self::Both,
    ];

    /// As the table spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::InnodbReadOnly => "innodb_read_only",
            Self::SuperReadOnly => "super_read_only",
            Self::Either => "read_only|innodb_read_only",
            Self::Both => "read_only&innodb_read_only",
        }
    }

    /// From the table, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|check| check.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for CheckType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One row of `mysql_replication_hostgroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replication {
    /// Where servers are that may write.
    pub writer: u32,
    /// Where servers are that only read.
    pub reader: u32,
    /// By what a server tells which it is.
    pub check: CheckType,
    /// For the operator.
    pub comment: Box<str>,
}

/// Which of several servers that say that they may write gets writes:
/// `hostgroup_settings.writers`, ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writers {
    /// The present writer stays, the others only read.
    #[default]
    First,
    /// None of them, until one is left.
    None,
    /// All of them, as ProxySQL does.
    All,
}

impl Writers {
    pub(in crate::servers) fn named(name: &str) -> Option<Self> {
        match name {
            "first" => Some(Self::First),
            "none" => Some(Self::None),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

pub(super) fn build(
    rows: impl IntoIterator<Item = ReplicationHostgroupRow>,
    taken: &mut Taken,
    refused: &mut Vec<Refusal>,
) -> Vec<Replication> {
    let mut refusals = Refusals::of("mysql_replication_hostgroups");
    let mut built: Vec<Replication> = Vec::new();
    for row in rows {
        let key = || format!("writer_hostgroup {}", row.writer_hostgroup);
        let hostgroups = [
            ("writer_hostgroup", row.writer_hostgroup),
            ("reader_hostgroup", row.reader_hostgroup),
        ];
        let [writer, reader] = taken.hostgroups(&mut refusals, true, hostgroups);
        let check = CheckType::named(&row.check_type).unwrap_or_else(|| {
            let names = CheckType::ALL.map(CheckType::name).join(", ");
            let words = format!("must be one of {names}; '{}' is not", row.check_type);
            refusals.add(key, "check_type", words);
            CheckType::default()
        });
        built.push(Replication {
            writer,
            reader,
            check,
            comment: row.comment.as_str().into(),
        });
    }
    refused.extend(refusals.into_list());
    built.sort_unstable_by_key(|pair| pair.writer);
    built
}

impl Replication {
    pub(in crate::servers) fn row(&self) -> ReplicationHostgroupRow {
        ReplicationHostgroupRow {
            writer_hostgroup: self.writer.into(),
            reader_hostgroup: self.reader.into(),
            check_type: self.check.name().into(),
            comment: self.comment.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(writer_hostgroup: i64, reader_hostgroup: i64) -> ReplicationHostgroupRow {
        ReplicationHostgroupRow {
            writer_hostgroup,
            reader_hostgroup,
            ..ReplicationHostgroupRow::default()
        }
    }

    #[test]
    fn pairs_are_kept_in_order_and_list_themselves_back() {
        let mut refused = Vec::new();
        let either = ReplicationHostgroupRow {
            check_type: "READ_ONLY|innodb_read_only".into(),
            ..row(10, 11)
        };
        let built = build([row(20, 21), either], &mut Taken::default(), &mut refused);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(built[0].check, CheckType::Either);
        assert_eq!(built[1].row(), row(20, 21));
    }

    #[test]
    fn a_hostgroup_in_two_pairs_or_in_both_roles_is_refused() {
        let strange = ReplicationHostgroupRow {
            check_type: "writable".into(),
            ..row(5, 6)
        };
        let mut refused = Vec::new();
        let rows = [row(1, 1), row(2, 3), row(4, 2), strange];
        build(rows, &mut Taken::default(), &mut refused);
        let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), 3, "{words:?}");
        assert!(words[0].contains("they must differ"), "{words:?}");
        assert!(
            words[1]
                .contains("belongs to writer_hostgroup 2 of mysql_replication_hostgroups already"),
            "{words:?}"
        );
        assert!(words[2].contains("'writable' is not"), "{words:?}");
    }
}
