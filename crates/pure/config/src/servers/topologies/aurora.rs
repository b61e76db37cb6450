//! Two hostgroups of a cluster of Amazon's Aurora: `mysql_aws_aurora_hostgroups`.

use super::Taken;
use crate::refusal::Refusals;
use crate::{AuroraHostgroupRow, Refusal};

/// One row of `mysql_aws_aurora_hostgroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aurora {
    /// Hostgroup of the writer.
    pub writer: u32,
    /// Hostgroup of the replicas.
    pub reader: u32,
    /// Whether the row is followed.
    pub active: bool,
    /// Port of servers that the cluster tells of.
    pub port: u16,
    /// End of the address of an instance, behind its name; begins with a dot.
    pub domain: Box<str>,
    /// Milliseconds that a replica may be behind before it gets nothing new.
    pub max_lag_ms: u32,
    /// Milliseconds between checks.
    pub check_interval_ms: u32,
    /// Milliseconds that a check may take.
    pub check_timeout_ms: u32,
    /// Whether the writer reads as well.
    pub writer_reads: bool,
    /// Weight of a replica that the cluster tells of.
    pub new_reader_weight: u32,
    /// Milliseconds that are added to what a replica says.
    pub add_lag_ms: u32,
    /// Milliseconds that a replica is behind at least.
    pub min_lag_ms: u32,
    /// Checks of which the largest lag counts.
    pub lag_num_checks: u32,
    /// For the operator.
    pub comment: Option<Box<str>>,
}

impl Aurora {
    /// How far a replica is taken to be behind that says this.
    #[must_use]
    pub fn estimated_ms(&self, lag_ms: u32) -> u32 {
        lag_ms.saturating_add(self.add_lag_ms).max(self.min_lag_ms)
    }

    pub(in crate::servers) fn row(&self) -> AuroraHostgroupRow {
        AuroraHostgroupRow {
            writer_hostgroup: self.writer.into(),
            reader_hostgroup: self.reader.into(),
            active: self.active.into(),
            aurora_port: self.port.into(),
            domain_name: self.domain.to_string(),
            max_lag_ms: self.max_lag_ms.into(),
            check_interval_ms: self.check_interval_ms.into(),
            check_timeout_ms: self.check_timeout_ms.into(),
            writer_is_also_reader: self.writer_reads.into(),
            new_reader_weight: self.new_reader_weight.into(),
            add_lag_ms: self.add_lag_ms.into(),
            min_lag_ms: self.min_lag_ms.into(),
            lag_num_checks: self.lag_num_checks.into(),
            comment: self.comment.as_deref().map(str::to_owned),
        }
    }
}

pub(super) fn build(
    rows: impl IntoIterator<Item = AuroraHostgroupRow>,
    taken: &mut Taken,
    refused: &mut Vec<Refusal>,
) -> Vec<Aurora> {
    let mut refusals = Refusals::of("mysql_aws_aurora_hostgroups");
    let mut built: Vec<Aurora> = Vec::new();
    for row in rows {
        let key = || format!("writer_hostgroup {}", row.writer_hostgroup);
        let active = refusals.flag(key, "active", row.active);
        let hostgroups = [
            ("writer_hostgroup", row.writer_hostgroup),
            ("reader_hostgroup", row.reader_hostgroup),
        ];
        let [writer, reader] = taken.hostgroups(&mut refusals, active, hostgroups);
        if !row.domain_name.starts_with('.') {
            let words = format!("must begin with a dot; '{}' does not", row.domain_name);
            refusals.add(key, "domain_name", words);
        }
        let writer_reads = row.writer_is_also_reader;
        let writer_reads = refusals.flag(key, "writer_is_also_reader", writer_reads);
        let port = refusals.number(key, "aurora_port", row.aurora_port, (1, 65_535));
        let mut number = |column, value, range| refusals.number(key, column, value, range);
        let ms = 600_000;
        built.push(Aurora {
            writer,
            reader,
            active,
            port,
            domain: row.domain_name.as_str().into(),
            max_lag_ms: number("max_lag_ms", row.max_lag_ms, (10, ms)),
            check_interval_ms: number("check_interval_ms", row.check_interval_ms, (100, ms)),
            check_timeout_ms: number("check_timeout_ms", row.check_timeout_ms, (80, 3000)),
            writer_reads,
            new_reader_weight: number("new_reader_weight", row.new_reader_weight, (0, 10_000_000)),
            add_lag_ms: number("add_lag_ms", row.add_lag_ms, (0, ms)),
            min_lag_ms: number("min_lag_ms", row.min_lag_ms, (0, ms)),
            lag_num_checks: number("lag_num_checks", row.lag_num_checks, (1, 16)),
            comment: row.comment.as_deref().map(Into::into),
        });
    }
    refused.extend(refusals.into_list());
    built.sort_unstable_by_key(|aurora| aurora.writer);
    built
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_list_themselves_back_and_what_cannot_be_is_refused() {
        let row = AuroraHostgroupRow {
            lag_num_checks: 3,
            comment: Some("a".into()),
            ..AuroraHostgroupRow::default()
        };
        let mut refused = Vec::new();
        let built = build([row.clone()], &mut Taken::default(), &mut refused);
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!(built[0].row(), row);
        assert_eq!([0, 5].map(|ms| built[0].estimated_ms(ms)), [30, 35]);
        let strange = AuroraHostgroupRow {
            domain_name: "x".into(),
            lag_num_checks: 17,
            ..row
        };
        build([strange], &mut Taken::default(), &mut refused);
        assert_eq!(refused.len(), 2, "{refused:?}");
    }
}
