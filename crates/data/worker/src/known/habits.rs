//! Habits of statements: how long they take, and whether they fit on a connection with others in flight.

use backend::ANSWER_LEN_MAX;
use hashbrown::HashMap;
use rt::Instant;
use std::cell::RefCell;
use std::time::Duration;

/// So often a statement must have been answered quickly and briefly before it joins.
const KNOWN: u32 = 4;
/// Time of a quick answer at most, in microseconds, on the average.
const QUICK_US: u64 = 10_000;
/// Length of a brief answer at most, in bytes.
const BRIEF_LEN_MAX: u64 = ANSWER_LEN_MAX as u64 / 4;
/// After one that was not as expected, a statement stays alone for so long.
const ALONE: Duration = Duration::from_secs(10);
/// Time after which it is looked at again what a statement takes on a connection of its own.
const FRESH: Duration = Duration::from_secs(1);
/// Digests that are remembered.
const DIGESTS_MAX: usize = 4096;

/// Knowledge of answers, by digest and hostgroup.
#[derive(Default)]
pub(crate) struct Brief(RefCell<HashMap<(u64, u32), Habit, foldhash::fast::RandomState>>);

#[derive(Default)]
struct Habit {
    times: u32,
    average_us: u64,
    /// When it was last answered in a lane.
    in_lane: Option<Instant>,
    elsewhere: Option<Elsewhere>,
    alone_until: Option<Instant>,
}

/// How long it takes on a connection of its own.
#[derive(Clone, Copy)]
struct Elsewhere {
    average_us: u64,
    seen: Instant,
    /// When one was last sent to see.
    looked: Instant,
}

/// How long a statement took, where.
#[derive(Clone, Copy)]
pub(crate) enum Took {
    /// In a lane, from when it was the first: it kept the others waiting for so long.
    InLane(Duration),
    /// On a connection of its own. A busy server has it wait for many others meanwhile.
    Alone(Duration),
}

impl Brief {
    pub(crate) fn is_known(&self, key: (u64, u32), now: Instant) -> bool {
        self.0.borrow().get(&key).is_some_and(|habit| {
            habit.times >= KNOWN
                && habit.average_us <= QUICK_US
                && habit.alone_until.is_none_or(|until| until <= now)
        })
    }

    /// Learns from an answer. What lanes tell counts more than what a busy server needs elsewhere,
    /// or statements would leave them when they help most.
    pub(crate) fn answered(&self, key: (u64, u32), took: Took, bytes: u64, now: Instant) {
        let mut all = self.0.borrow_mut();
        if all.len() >= DIGESTS_MAX && !all.contains_key(&key) {
            // Rare, and those that matter are soon known again.
            all.clear();
        }
        let habit = all.entry(key).or_default();
        if bytes > BRIEF_LEN_MAX {
            habit.alone_until = Some(now + ALONE);
            return;
        }
        let took = match took {
            Took::InLane(took) => {
                habit.in_lane = Some(now);
                took
            }
            Took::Alone(took) => {
                let us = micros(took);
                let before = habit
                    .elsewhere
                    .filter(|elsewhere| now - elsewhere.seen < ALONE);
                let average_us = before.map_or(us, |elsewhere| mean_with(elsewhere.average_us, us));
                habit.elsewhere = Some(Elsewhere {
                    average_us,
                    seen: now,
                    looked: now,
                });
                if habit.in_lane.is_some_and(|at| now - at < ALONE) {
                    return;
                }
                took
            }
        };
        let us = micros(took);
        habit.average_us = if habit.times == 0 {
            us
        } else {
            mean_with(habit.average_us, us)
        };
        habit.times = habit.times.saturating_add(1);
    }

    /// How long it takes on a connection of its own, if that was seen lately. Where that was a
    /// second ago one statement is told nothing: it waits for no lane that is full, and is seen.
    pub(crate) fn elsewhere(&self, key: (u64, u32), now: Instant) -> Duration {
        let mut all = self.0.borrow_mut();
        let Some(elsewhere) = all.get_mut(&key).and_then(|habit| habit.elsewhere.as_mut()) else {
            return Duration::ZERO;
        };
        if now - elsewhere.seen >= ALONE {
            return Duration::ZERO;
        }
        if now - elsewhere.looked >= FRESH {
            elsewhere.looked = now;
            return Duration::ZERO;
        }
        Duration::from_micros(elsewhere.average_us)
    }

    pub(crate) fn was_unfit(&self, key: (u64, u32), now: Instant) {
        if let Some(habit) = self.0.borrow_mut().get_mut(&key) {
            habit.alone_until = Some(now + ALONE);
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The mean of about eight.
fn mean_with(mean: u64, one: u64) -> u64 {
    mean - mean / 8 + one / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_joins_when_it_is_known_to_be_quick_and_brief() {
        let (brief, key) = (Brief::default(), (7, 1));
        let at = |s: u64| Instant::from_ns(s * 1_000_000_000);
        for _ in 0..KNOWN {
            assert!(!brief.is_known(key, at(0)));
            brief.answered(key, Took::Alone(Duration::from_micros(200)), 100, at(0));
        }
        assert!(brief.is_known(key, at(0)));
        assert!(!brief.is_known((7, 2), at(0)));
        // One long answer, and it stays alone for a while.
        brief.answered(
            key,
            Took::Alone(Duration::from_micros(200)),
            BRIEF_LEN_MAX + 1,
            at(1),
        );
        assert!(!brief.is_known(key, at(2)));
        assert!(brief.is_known(key, at(60)));
        brief.was_unfit(key, at(60));
        assert!(!brief.is_known(key, at(61)));
        // Slow ones make it slow.
        (0..50).for_each(|_| {
            brief.answered(key, Took::Alone(Duration::from_millis(100)), 100, at(100))
        });
        assert!(!brief.is_known(key, at(200)));
    }

    #[test]
    fn a_busy_server_makes_nothing_slow_that_lanes_answer_quickly() {
        let (brief, key) = (Brief::default(), (7, 1));
        let at = |s: u64| Instant::from_ns(s * 1_000_000_000);
        (0..KNOWN)
            .for_each(|_| brief.answered(key, Took::Alone(Duration::from_millis(9)), 100, at(0)));
        brief.answered(key, Took::InLane(Duration::from_micros(50)), 100, at(1));
        let alone = |s| {
            (0..50).for_each(|_| {
                brief.answered(key, Took::Alone(Duration::from_millis(30)), 100, at(s))
            })
        };
        alone(2);
        assert!(brief.is_known(key, at(2)));
        // A long answer counts wherever it came.
        brief.answered(key, Took::Alone(Duration::ZERO), BRIEF_LEN_MAX + 1, at(2));
        assert!(!brief.is_known(key, at(3)));
        // So long others wait for a lane; and one looks now and then whether that is still true.
        let slow = brief.elsewhere(key, at(2));
        assert!(
            slow > Duration::from_millis(25) && slow <= Duration::from_millis(30),
            "{slow:?}"
        );
        assert_eq!(brief.elsewhere(key, at(4)), Duration::ZERO);
        assert_eq!(brief.elsewhere(key, at(4)), slow);
        assert_eq!(brief.elsewhere((7, 2), at(4)), Duration::ZERO);
        // Nobody has gone there for long: the server may be idle by now.
        assert_eq!(brief.elsewhere(key, at(5)), Duration::ZERO);
        assert_eq!(brief.elsewhere(key, at(5)), slow);
        assert_eq!(
            [brief.elsewhere(key, at(12)), brief.elsewhere(key, at(12))],
            [Duration::ZERO; 2]
        );
        // Lanes have told nothing for a while.
        alone(40);
        assert!(!brief.is_known(key, at(40)));
        // What keeps others waiting is slow in lanes, too.
        (0..200).for_each(|_| {
            brief.answered(key, Took::InLane(Duration::from_micros(50)), 100, at(50))
        });
        assert!(brief.is_known(key, at(50)));
        (0..50).for_each(|_| {
            brief.answered(key, Took::InLane(Duration::from_millis(30)), 100, at(51))
        });
        assert!(!brief.is_known(key, at(51)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let brief = Brief::default();
        for digest in 0..3 * DIGESTS_MAX as u64 {
            brief.answered(
                (digest, 0),
                Took::Alone(Duration::ZERO),
                1,
                Instant::from_ns(0),
            );
        }
        assert!(brief.0.borrow().len() <= DIGESTS_MAX);
    }
}
