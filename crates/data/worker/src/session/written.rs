//! Writes of a session as GTIDs, for each hostgroup: a rule may want a statement to see them elsewhere
//! (`gtid_from_hostgroup`). No memory of a server's: they are told with each answer.
//!
//! docs/features/causal-reads.md

use crate::known::shared_writes::INTERVALS_MAX;
use gtid::Set;

/// Writes of a session, by hostgroup. Most sessions never have any.
#[derive(Debug, Default)]
pub(crate) struct Written(Option<Box<ByHostgroup>>);

type ByHostgroup = Vec<(u32, There)>;

/// In one hostgroup.
#[derive(Debug, Default)]
pub(crate) struct There {
    pub(crate) set: Set,
    /// Whether the session has written what no GTID was told of.
    pub(crate) unsure: bool,
    /// Whether another session of its user may have, where they share their writes.
    pub(crate) others_unsure: bool,
    /// So does the transaction that is open, as long as nothing is told of it.
    pub(crate) open: bool,
}

impl Written {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn at(&mut self, hostgroup: u32) -> &mut There {
        let all = self.0.get_or_insert_default();
        let known = all.iter().position(|(of, _)| *of == hostgroup);
        let at = known.unwrap_or_else(|| {
            all.push((hostgroup, There::default()));
            all.len() - 1
        });
        &mut all[at].1
    }

    pub(crate) fn of(&self, hostgroup: u32) -> Option<&There> {
        let found = self.0.as_ref()?.iter().find(|(of, _)| *of == hostgroup);
        found.map(|(_, there)| there)
    }
}

impl There {
    /// The server has told these of it.
    pub(crate) fn told(&mut self, gtids: &[u8]) {
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
