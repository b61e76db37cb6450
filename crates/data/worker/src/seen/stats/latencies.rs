//! Statements by hostgroup, with a histogram of their times: all of them, whatever becomes of their
//! digests.

use bridge::{HostgroupRow, Latency};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::cell::RefCell;

/// Hostgroups at most: a client can name any in a hint. What has no row is not counted here.
const GROUPS_MAX: usize = 4096;

/// A row per hostgroup.
#[derive(Default)]
pub(crate) struct Latencies(RefCell<HashTable<HostgroupRow>>);

/// Hostgroups are small numbers, and a table looks at the highest bits first.
const fn hash(hostgroup: i64) -> u64 {
    hostgroup
        .cast_unsigned()
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Latencies {
    pub(crate) fn count(&self, hostgroup: i64, us: u64) {
        let mut groups = self.0.borrow_mut();
        let full = groups.len() >= GROUPS_MAX;
        match groups.entry(
            hash(hostgroup),
            |row| row.hostgroup == hostgroup,
            |row| hash(row.hostgroup),
        ) {
            Entry::Occupied(mut entry) => {
                let row = entry.get_mut();
                row.count += 1;
                row.latency.count(us);
                row.max_us = row.max_us.max(us);
            }
            Entry::Vacant(_) if full => {}
            Entry::Vacant(entry) => {
                let mut latency = Latency::default();
                latency.count(us);
                entry.insert(HostgroupRow {
                    hostgroup,
                    count: 1,
                    latency,
                    max_us: us,
                });
            }
        }
    }

    pub(crate) fn rows(&self, reset: bool) -> Vec<HostgroupRow> {
        let mut groups = self.0.borrow_mut();
        if reset {
            std::mem::take(&mut *groups).into_iter().collect()
        } else {
            groups.iter().cloned().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hostgroup_has_a_row_and_there_are_not_too_many() {
        let latencies = Latencies::default();
        for (hostgroup, us) in [(1, 7), (-1, 2), (1, 90)] {
            latencies.count(hostgroup, us);
        }
        let mut rows = latencies.rows(true);
        rows.sort_by_key(|row| row.hostgroup);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.hostgroup, row.count, row.max_us, row.latency.total()))
            .collect();
        assert_eq!(seen, [(-1, 1, 2, 1), (1, 2, 90, 2)]);
        (0..2 * GROUPS_MAX as i64).for_each(|hostgroup| latencies.count(hostgroup, 1));
        assert_eq!(latencies.rows(false).len(), GROUPS_MAX);
    }
}
