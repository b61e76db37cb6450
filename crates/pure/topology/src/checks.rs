//! From the answers of checks to what is seen: how often a server may be silent before that counts.
//! An answer is life: who says that the check may not log in, or has no room, is there.

use crate::kinds::Pace;
use crate::seen::{Channels, Lag, Peers, Reach, Role, Seen};
use config::TopologyKind;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Why a check has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nobody answers, or not in time.
    Silent(Arc<str>),
    /// The server answers, and not the question.
    Says {
        /// Its error number.
        code: u16,
        /// Its words.
        words: Arc<str>,
    },
}

/// How often checks may fail before that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `mysql-monitor_ping_max_failures`.
    pub pings: u32,
    /// `mysql-monitor_replication_lag_count`.
    pub lag: u32,
}

/// A server with its row of failures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// Observations that follow from the checks.
    pub seen: Seen,
    pings_lost: u32,
    roles: BTreeMap<TopologyKind, InARow>,
    /// Checks in a row that found it too far behind, and the last of them.
    behind: u32,
}

/// Checks of one kind of topology.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct InARow {
    lost: u64,
    /// Checks that found it too far behind.
    behind: u64,
    /// Distances lately, the last at the end.
    lately: VecDeque<u32>,
}

impl Checked {
    /// Begins with what was seen of another address of the name, until this one has been asked.
    #[must_use]
    pub fn instead_of(other: &Seen) -> Self {
        Self {
            seen: Seen {
                told: other.told.clone(),
                lag: other.lag,
                ..Seen::default()
            },
            ..Self::default()
        }
    }

    /// A ping, or the login before it, has ended.
    pub fn ping(&mut self, answer: Result<Duration, Fault>, limits: &Limits) {
        match answer {
            Ok(took) => {
                self.is_there();
                self.seen.ping_us = Some(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
            Err(Fault::Says { .. }) => self.is_there(),
            Err(Fault::Silent(why)) => {
                self.is_silent();
                if self.pings_lost >= limits.pings {
                    self.seen.reach = Reach::Missing(why);
                    // What it has said of its role is old by now, and old still when it is back.
                    self.seen
                        .told
                        .values_mut()
                        .for_each(|told| told.is_missed = true);
                }
            }
        }
    }

    /// Nobody has answered a check of any kind. It counts as a ping that was lost, but only a ping finds
    /// out that nobody is there: a question can take long where a ping does not.
    pub fn is_silent(&mut self) {
        self.pings_lost = self.pings_lost.saturating_add(1);
    }

    fn is_there(&mut self) {
        self.pings_lost = 0;
        self.seen.reach = Reach::Well;
    }

    /// Takes an answer to a kind of topology. `max`: more transactions still to apply count only when it
    /// was so in as many checks as the operator wants; 0 for any number.
    pub fn told(&mut self, kind: TopologyKind, answer: Result<Role, Fault>, max: u32, pace: &Pace) {
        let row = self.roles.entry(kind).or_default();
        let told = self.seen.told.entry(kind).or_default();
        match answer {
            Ok(role) => {
                row.lately.push_back(role.behind());
                while row.lately.len() > pace.worst_of {
                    row.lately.pop_front();
                }
                let worst = row.lately.iter().copied().max();
                let role = role.with_behind(worst.unwrap_or_default());
                let is_behind = max > 0 && role.behind() > max;
                row.lost = 0;
                row.behind = if is_behind { row.behind + 1 } else { 0 };
                told.is_missed = false;
                told.role = if is_behind && row.behind < pace.behind {
                    role.with_behind(told.role.behind())
                } else {
                    role
                };
            }
            // It keeps its place.
            Err(Fault::Says { .. }) => row.lost = 0,
            Err(Fault::Silent(_)) => {
                row.lost = row.lost.saturating_add(1);
                told.is_missed |= row.lost >= pace.lost;
            }
        }
    }

    /// Takes the servers that it knows.
    pub fn knows(&mut self, kind: TopologyKind, peers: Peers) {
        if self.seen.peers.get(&kind) != Some(&peers) {
            self.seen.peers.insert(kind, peers);
        }
    }

    /// Takes what it says of its sources.
    pub fn replicates(&mut self, channels: Option<Channels>) {
        self.seen.channels = channels;
    }

    /// Forgets a kind that asks no more.
    pub fn forget(&mut self, kind: TopologyKind) {
        if kind == TopologyKind::Replication {
            self.seen.channels = None;
        }
        self.roles.remove(&kind);
        self.seen.told.remove(&kind);
        self.seen.peers.remove(&kind);
    }

    /// Takes in the answer to how far the server is behind. `max_s`: more counts only when it was
    /// so in as many checks as the operator wants.
    pub fn lag(&mut self, answer: Result<Lag, Fault>, max_s: u32, limits: &Limits) {
        let Ok(lag) = answer else { return };
        let is_over = matches!(lag, Lag::Seconds(seconds) if max_s > 0 && seconds > max_s);
        self.behind = if is_over {
            self.behind.saturating_add(1)
        } else {
            0
        };
        if !is_over || self.behind >= limits.lag {
            self.seen.lag = lag;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Aurora, Group};
    use crate::seen::Told;

    const LIMITS: Limits = Limits { pings: 3, lag: 2 };

    fn silent() -> Fault {
        Fault::Silent("timeout".into())
    }

    fn says() -> Fault {
        Fault::Says {
            code: 1045,
            words: "Access denied".into(),
        }
    }

    #[test]
    fn sources_are_taken_and_forgotten_with_the_pair_that_asks_for_them() {
        let mut one = Checked::default();
        let channels = Channels {
            own: 7,
            from: vec![1],
        };
        one.replicates(Some(channels.clone()));
        assert_eq!(one.seen.channels, Some(channels.clone()));
        one.forget(TopologyKind::Galera);
        assert_eq!(one.seen.channels, Some(channels.clone()));
        one.forget(TopologyKind::Replication);
        assert_eq!(one.seen.channels, None);
        one.replicates(Some(channels));
        one.replicates(None);
        assert_eq!(one.seen.channels, None);
    }

    #[test]
    fn pings_that_are_lost_in_a_row_count_and_an_answer_is_life() {
        let mut one = Checked::default();
        for _ in 0..2 {
            one.ping(Err(silent()), &LIMITS);
        }
        assert_eq!(one.seen.reach, Reach::Unknown);
        one.ping(Err(says()), &LIMITS);
        assert_eq!(one.seen.reach, Reach::Well);
        for _ in 0..3 {
            assert_eq!(one.seen.reach, Reach::Well);
            one.ping(Err(silent()), &LIMITS);
        }
        assert_eq!(one.seen.reach, Reach::Missing("timeout".into()));
        one.ping(Ok(Duration::from_micros(120)), &LIMITS);
        assert_eq!((one.seen.reach, one.seen.ping_us), (Reach::Well, Some(120)));
    }

    #[test]
    fn any_silence_counts_and_a_ping_finds_out() {
        let mut one = Checked::default();
        let kind = TopologyKind::Replication;
        one.told(kind, Ok(Role::ReadOnly(false)), 0, &PACE);
        one.ping(Ok(Duration::from_micros(120)), &LIMITS);
        (0..5).for_each(|_| one.is_silent());
        assert_eq!(one.seen.reach, Reach::Well, "questions may take long");
        one.ping(Ok(Duration::from_micros(120)), &LIMITS);
        (0..2).for_each(|_| one.is_silent());
        assert!(!one.seen.told(kind).is_missed);
        one.ping(Err(silent()), &LIMITS);
        assert_eq!(one.seen.reach, Reach::Missing("timeout".into()));
        assert!(one.seen.told(kind).is_missed);
        one.ping(Ok(Duration::from_micros(120)), &LIMITS);
        assert!(
            one.seen.told(kind).is_missed,
            "it is there, and has not said yet what it is now"
        );
        one.told(kind, Ok(Role::ReadOnly(true)), 0, &PACE);
        assert!(!one.seen.told(kind).is_missed);
    }

    const PACE: Pace = Pace {
        interval_ms: 1000,
        timeout_ms: 800,
        lost: 2,
        behind: 2,
        worst_of: 1,
    };

    #[test]
    fn a_server_that_may_not_be_asked_for_its_role_keeps_it() {
        let mut one = Checked::default();
        let kind = TopologyKind::Replication;
        let mut told = |answer| {
            one.told(kind, answer, 0, &PACE);
            one.seen.told(kind)
        };
        let writes = |is_missed| Told {
            role: Role::ReadOnly(false),
            is_missed,
        };
        assert_eq!(told(Ok(Role::ReadOnly(false))), writes(false));
        assert_eq!(told(Err(silent())), writes(false));
        assert_eq!(told(Err(says())), writes(false));
        assert_eq!(told(Err(silent())), writes(false));
        assert_eq!(told(Err(silent())), writes(true));
        assert_eq!(told(Err(says())), writes(true));
        assert_eq!(told(Ok(Role::ReadOnly(false))), writes(false));
    }

    #[test]
    fn transactions_still_to_apply_count_when_there_were_too_many_for_as_many_checks() {
        let mut one = Checked::default();
        let kind = TopologyKind::Group;
        let mut queue = |queue| {
            let member = Group {
                queue,
                ..Group::default()
            };
            one.told(kind, Ok(Role::Group(member)), 10, &PACE);
            one.seen.told(kind).role.behind()
        };
        assert_eq!([3, 30, 4, 30, 40, 5].map(&mut queue), [3, 3, 4, 4, 40, 5]);
    }

    #[test]
    fn the_worst_of_some_checks_counts() {
        let mut one = Checked::default();
        let kind = TopologyKind::Aurora;
        let pace = Pace {
            worst_of: 2,
            ..PACE
        };
        let mut lag = |lag_ms| {
            let instance = Aurora {
                lag_ms,
                ..Aurora::default()
            };
            one.told(kind, Ok(Role::Aurora(instance)), 0, &pace);
            one.seen.told(kind).role.behind()
        };
        assert_eq!([3, 30, 4, 5].map(&mut lag), [3, 30, 30, 5]);
    }

    #[test]
    fn lag_counts_when_it_was_too_much_for_as_many_checks() {
        let mut one = Checked::default();
        one.lag(Ok(Lag::Seconds(3)), 10, &LIMITS);
        one.lag(Ok(Lag::Seconds(30)), 10, &LIMITS);
        assert_eq!(one.seen.lag, Lag::Seconds(3));
        one.lag(Err(silent()), 10, &LIMITS);
        one.lag(Ok(Lag::Seconds(40)), 10, &LIMITS);
        assert_eq!(one.seen.lag, Lag::Seconds(40));
        one.lag(Ok(Lag::Seconds(0)), 10, &LIMITS);
        assert_eq!(one.seen.lag, Lag::Seconds(0));
    }
}
