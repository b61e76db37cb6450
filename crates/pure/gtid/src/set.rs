//! A set, as sorted intervals of numbers for each source.

use std::collections::BTreeMap;
use std::fmt;

/// Whose numbers they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A server of MySQL by its `server_uuid`, and the tag of its numbers, if they have one.
    MySql {
        /// The sixteen bytes.
        uuid: [u8; 16],
        /// At most 32 characters, in lower case.
        tag: Option<Box<str>>,
    },
    /// A replication domain of MariaDB. Whichever server wrote there, its numbers grow.
    MariaDb {
        /// `gtid_domain_id`.
        domain: u32,
    },
}

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gtid {
    /// Whose number it is.
    pub source: Source,
    /// From 1 on.
    pub number: u64,
}

/// First and last of numbers that follow each other.
pub type Interval = (u64, u64); // first <= last

/// Transactions. Of MariaDB's a set has all numbers of a domain up to its highest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    sources: BTreeMap<Source, Vec<Interval>>, // sorted, disjoint, with gaps between
}

impl Set {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// How many intervals there are: what the set costs.
    #[must_use]
    pub fn intervals(&self) -> usize {
        self.sources.values().map(Vec::len).sum()
    }

    /// Each source with its intervals, in order. Of MariaDB's there is one, from 1 on.
    pub fn iter(&self) -> impl Iterator<Item = (&Source, &[Interval])> {
        let all = self.sources.iter();
        all.map(|(source, intervals)| (source, intervals.as_slice()))
    }

    /// Adds a transaction. The next number of a source allocates nothing.
    pub fn add(&mut self, source: &Source, number: u64) {
        self.add_interval(source, (number, number));
    }

    /// Adds all numbers from a first to a last one.
    pub fn add_interval(&mut self, source: &Source, (first, last): Interval) {
        if first > last || last == 0 {
            return;
        }
        let all_before = matches!(source, Source::MariaDb { .. });
        let first = if all_before { 1 } else { first };
        let Some(all) = self.sources.get_mut(source) else {
            self.sources.insert(source.clone(), vec![(first, last)]);
            return;
        };
        if let Some((_, end)) = all.last_mut()
            && *end < u64::MAX
            && first == *end + 1
        {
            *end = last;
            return;
        }
        // Those that it touches become one with it.
        let from = all.partition_point(|(_, end)| end.saturating_add(1) < first);
        let to = all.partition_point(|(begin, _)| *begin <= last.saturating_add(1));
        let touched = &all[from..to];
        let begin = touched
            .first()
            .map_or(first, |(begin, _)| first.min(*begin));
        let end = touched.last().map_or(last, |(_, end)| last.max(*end));
        all.splice(from..to, [(begin, end)]);
    }

    /// Adds all of another.
    pub fn union(&mut self, other: &Self) {
        for (source, intervals) in &other.sources {
            for interval in intervals {
                self.add_interval(source, *interval);
            }
        }
    }

    /// Whether a transaction is in it.
    #[must_use]
    pub fn contains(&self, gtid: &Gtid) -> bool {
        self.has(&gtid.source, (gtid.number, gtid.number))
    }

    /// Whether all of another are in it.
    #[must_use]
    pub fn contains_set(&self, other: &Self) -> bool {
        let mut all = other.sources.iter();
        all.all(|(source, intervals)| intervals.iter().all(|one| self.has(source, *one)))
    }

    fn has(&self, source: &Source, (first, last): Interval) -> bool {
        let Some(all) = self.sources.get(source) else {
            return false;
        };
        let at = all.partition_point(|(_, end)| *end < first);
        all.get(at)
            .is_some_and(|(begin, end)| *begin <= first && last <= *end)
    }

    /// Has at most so many intervals of each source, by filling the lowest gaps: who asks for it
    /// then asks for more, never for less.
    pub fn coarsen(&mut self, intervals_max: usize) {
        for all in self.sources.values_mut() {
            let over = all.len().saturating_sub(intervals_max.max(1));
            if over > 0 {
                let (begin, end) = (all[0].0, all[over].1);
                all.splice(..=over, [(begin, end)]);
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql { uuid, tag } => {
                for (at, byte) in uuid.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                match tag {
                    Some(tag) => write!(f, ":{tag}"),
                    None => Ok(()),
                }
            }
            Self::MariaDb { domain } => write!(f, "{domain}"),
        }
    }
}

impl fmt::Display for Set {
    /// As the servers write it. Of MariaDB's the server that wrote is not kept, and is 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (source, intervals)) in self.sources.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            if let Source::MariaDb { domain } = source {
                let highest = intervals.last().map_or(0, |(_, end)| *end);
                write!(f, "{domain}-0-{highest}")?;
                continue;
            }
            write!(f, "{source}")?;
            for (first, last) in intervals {
                match first == last {
                    true => write!(f, ":{first}")?,
                    false => write!(f, ":{first}-{last}")?,
                }
            }
        }
        Ok(())
    }
}
