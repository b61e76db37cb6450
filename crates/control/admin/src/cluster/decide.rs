//! Whether a proxy takes over what another one has. Nobody leads: each compares what it has itself
//! with what it was told, and the newer counts.

/// Version, epoch and checksum of a module as it is in force somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    /// How often it was loaded: 1 after a start, and where what was loaded is for nobody else yet
    /// ([`super::Cluster::loaded`]); 0 where it is not shared.
    pub(crate) version: u64,
    /// When what is in force was made, in seconds since 1970; whoever takes it over keeps that.
    /// Each LOAD has a later one than what it replaces.
    pub(crate) epoch: u64,
    /// See [`super::sums::checksum`].
    pub(crate) checksum: u64,
}

/// The latest epoch that another proxy can have. A later one is garbage: no LOAD here could be
/// behind it.
const EPOCH_MAX: u64 = i64::MAX as u64 / 2;

impl Sum {
    /// Whether another proxy can have said so.
    pub(crate) fn is_possible(self) -> bool {
        self.epoch <= EPOCH_MAX && self.version <= EPOCH_MAX
    }

    /// After a LOAD at this time (seconds since 1970), where no other proxy is known to have a
    /// later epoch than `elsewhere`. Clocks differ, and may go back.
    pub(crate) fn loaded(self, now_s: u64, elsewhere: u64, checksum: u64) -> Self {
        let epoch = now_s
            .max(self.epoch.saturating_add(1))
            .max(elsewhere.saturating_add(1));
        Self {
            version: self.version.saturating_add(1),
            epoch,
            checksum,
        }
    }

    /// After it was taken over.
    pub(crate) fn taken(self, theirs: Self) -> Self {
        Self {
            version: self.version.saturating_add(1),
            ..theirs
        }
    }
}

/// Decision about a module of another proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Both have the same.
    Same,
    /// One of them does not share it.
    Apart,
    /// The other has only been started: what it has from a file or from disk is nobody else's.
    Unloaded,
    /// Module that is no newer than what was here before rows were edited without a LOAD: nobody
    /// can say which one is meant.
    Past,
    /// Ours is newer: it is the other that takes over.
    Ours,
    /// Both were changed in the same second, and nobody can say which one is meant.
    Conflict,
    /// Theirs is newer, and has not been seen often enough.
    Later,
    /// Module that is taken over.
    Pull,
}

/// Kinship of two that differ, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kin {
    /// Nothing.
    Unknown,
    /// They had what we have, and went on from there.
    Theirs,
    /// Ours has replaced what they have.
    Ours,
}

/// `past`: the epoch that this proxy had before a start that found other rows than were saved with
/// it, 0 if there is none. `looks`: how many in a row have found them different; `enough`: so many
/// must, 0 for never.
pub(crate) fn decide(
    (own, past): (Sum, u64),
    theirs: Sum,
    kin: Kin,
    looks: u64,
    enough: u64,
) -> Verdict {
    let is_same_time = own.version > 1 && own.epoch == theirs.epoch;
    if own.version == 0 || theirs.version == 0 || enough == 0 {
        Verdict::Apart
    } else if own.checksum == theirs.checksum {
        Verdict::Same
    } else if theirs.version == 1 {
        Verdict::Unloaded
    } else if own.version == 1 && theirs.epoch <= past {
        Verdict::Past
    } else if is_same_time && kin == Kin::Unknown {
        Verdict::Conflict
    } else if is_same_time && kin == Kin::Ours || own.version > 1 && own.epoch > theirs.epoch {
        Verdict::Ours
    } else if looks < enough {
        Verdict::Later
    } else {
        Verdict::Pull
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sum(version: u64, epoch: u64, checksum: u64) -> Sum {
        Sum {
            version,
            epoch,
            checksum,
        }
    }

    #[test]
    fn the_newer_of_two_counts_and_what_was_only_started_never_does() {
        for (own, theirs, looks, enough, verdict) in [
            (sum(2, 10, 7), sum(9, 90, 7), 9, 3, Verdict::Same),
            (sum(2, 10, 7), sum(2, 11, 8), 2, 3, Verdict::Later),
            (sum(2, 10, 7), sum(2, 11, 8), 3, 3, Verdict::Pull),
            (sum(2, 11, 7), sum(2, 10, 8), 9, 3, Verdict::Ours),
            (sum(2, 10, 7), sum(2, 10, 8), 9, 3, Verdict::Conflict),
            (sum(2, 10, 7), sum(1, 11, 8), 9, 3, Verdict::Unloaded),
            // One that was just started takes what was loaded, be that older than its start.
            (sum(1, 90, 7), sum(2, 10, 8), 3, 3, Verdict::Pull),
            (sum(1, 90, 7), sum(2, 90, 8), 3, 3, Verdict::Pull),
            (sum(1, 90, 7), sum(1, 91, 8), 9, 3, Verdict::Unloaded),
            // Where somebody does not share, or never takes over.
            (sum(0, 0, 0), sum(2, 10, 8), 9, 3, Verdict::Apart),
            (sum(2, 10, 7), sum(0, 0, 0), 9, 3, Verdict::Apart),
            (sum(2, 10, 7), sum(2, 11, 8), 9, 0, Verdict::Apart),
        ] {
            assert_eq!(
                decide((own, 0), theirs, Kin::Unknown, looks, enough),
                verdict,
                "{own:?} {theirs:?} {looks} {enough}"
            );
            let other = if verdict == Verdict::Conflict {
                [Verdict::Pull, Verdict::Ours]
            } else {
                [verdict; 2]
            };
            let decided =
                [Kin::Theirs, Kin::Ours].map(|kin| decide((own, 0), theirs, kin, looks, enough));
            assert_eq!(
                decided, other,
                "in the same second it counts who went on from whom: {own:?} {theirs:?}"
            );
        }
    }

    #[test]
    fn what_is_no_newer_than_what_was_here_before_is_nobody_elses() {
        let of = |own: Sum, theirs: Sum| decide((own, 20), theirs, Kin::Unknown, 9, 3);
        assert_eq!(of(sum(1, 90, 7), sum(5, 20, 8)), Verdict::Past);
        assert_eq!(of(sum(1, 90, 7), sum(5, 21, 8)), Verdict::Pull);
        assert_eq!(of(sum(1, 90, 7), sum(1, 20, 8)), Verdict::Unloaded);
        assert_eq!(of(sum(2, 90, 7), sum(5, 20, 8)), Verdict::Ours);
        assert_eq!(of(sum(1, 90, 7), sum(5, 20, 7)), Verdict::Same);
    }

    #[test]
    fn what_nobody_can_have_is_no_sum() {
        for (version, epoch, is_possible) in [
            (5, 40_000_000_000, true),
            (1, EPOCH_MAX, true),
            (2, u64::MAX, false),
            (2, EPOCH_MAX + 1, false),
            (u64::MAX, 5, false),
        ] {
            assert_eq!(
                sum(version, epoch, 7).is_possible(),
                is_possible,
                "{version} {epoch}"
            );
        }
    }

    #[test]
    fn a_load_is_newer_than_what_it_replaces_whatever_the_clock_says() {
        let fast_clock = sum(4, 5000, 1);
        let slow = sum(2, 100, 2).taken(fast_clock);
        assert_eq!(slow, sum(3, 5000, 1));
        let edited = slow.loaded(160, 0, 3);
        assert_eq!(edited, sum(4, 5001, 3));
        assert_eq!(
            decide((fast_clock, 0), edited, Kin::Unknown, 1, 1),
            Verdict::Pull
        );
        assert_eq!(
            decide((edited, 0), fast_clock, Kin::Unknown, 1, 1),
            Verdict::Ours
        );
        assert_eq!(edited.loaded(9000, 0, 4), sum(5, 9000, 4));
        assert_eq!(
            edited.loaded(9000, 9005, 4),
            sum(5, 9006, 4),
            "another proxy has the same with a later epoch"
        );
        assert_eq!(edited.loaded(0, u64::MAX, 4).epoch, u64::MAX);
    }

    /// Three proxies, edited in any order: the last edit is everywhere in the end, and nothing is
    /// passed round for ever.
    #[test]
    fn what_was_edited_last_is_everywhere_in_the_end() {
        for seed in 0_u64..2000 {
            let mut chance = seed;
            let mut below = |n: u64| {
                chance = chance
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (chance >> 33) % n
            };
            let mut all = [sum(1, 1000, 1); 3];
            let clocks = [below(50), below(50), below(50)];
            let (mut last, mut checksum) = (1, 1);
            for edit in 0..below(6) {
                let at = below(3) as usize;
                checksum += 1;
                all[at] = all[at].loaded(2000 + edit + clocks[at], 0, checksum);
                last = checksum;
                // Between two edits by people there is time enough.
                assert!(settle(&mut all, &mut below), "seed {seed}");
            }
            assert!(
                all.iter().all(|sum| sum.checksum == last),
                "seed {seed}: {all:?}"
            );
        }
    }

    fn settle(all: &mut [Sum; 3], below: &mut impl FnMut(u64) -> u64) -> bool {
        for _ in 0..1000 {
            let (one, other) = (below(3) as usize, below(3) as usize);
            if decide((all[one], 0), all[other], Kin::Unknown, 1, 1) == Verdict::Pull {
                all[one] = all[one].taken(all[other]);
            }
        }
        let pulls = |one: Sum| {
            all.iter()
                .any(|other| decide((one, 0), *other, Kin::Unknown, 1, 1) == Verdict::Pull)
        };
        !all.iter().any(|sum| pulls(*sum))
    }
}
