//! Which server of a hostgroup is chosen: by weight in turn, by what is outstanding, or by how soon
//! each answers.

use crate::connection::place::Place;
use bridge::ChoiceRow;
use config::{Balance, HostgroupAttributes, WeightZero};
use rt::Instant;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Shares are so many times as large as weights while somebody starts slowly.
const STEPS: u32 = 256;

impl Place {
    /// Takes over what the server's hostgroup says of choices. `among_others`: other servers served
    /// before this one.
    pub(crate) fn is_chosen_by(
        &self,
        attributes: Option<&HostgroupAttributes>,
        among_others: bool,
        now: Instant,
    ) {
        let of = |zero| attributes.is_some_and(|one| one.weight_zero == zero);
        self.choice
            .is_last
            .set(of(WeightZero::Last) && self.weight() == 0);
        let is_timed = attributes.is_some_and(|one| one.balance == Balance::Latency);
        self.choice.is_timed.set(is_timed);
        let slow_ms = attributes.map_or(0, |one| one.slow_start_ms);
        self.choice
            .slow_start
            .set(Duration::from_millis(slow_ms.into()));
        let serves = self.is_working();
        let before = self.choice.served.replace(Some(serves));
        let is_back = serves && before.map_or(among_others, |served| !served);
        if is_back && slow_ms > 0 {
            self.choice.back_since.set(Some(now));
        }
    }

    /// Whether it served when servers were placed last.
    pub(crate) fn served(&self) -> bool {
        self.choice.served.get() == Some(true)
    }

    /// Its weight among those that may have the turn.
    pub(crate) fn share(&self, now: Instant) -> u32 {
        let weight = self.weight().max(self.is_last().into());
        if self.choice.slow_start.get().is_zero() {
            return weight;
        }
        let whole = u64::from(weight) * u64::from(STEPS);
        let started = whole * u64::from(self.started_pct(now)) / 100;
        u32::try_from(started).unwrap_or(u32::MAX).max(1)
    }

    /// Percentage of its weight that it has by now.
    fn started_pct(&self, now: Instant) -> u32 {
        let slow_start = self.choice.slow_start.get();
        let since = self.choice.back_since.get().max(self.known.back_since(now));
        let passed = since.map_or(slow_start, |since| now - since);
        if passed >= slow_start {
            return 100;
        }
        let pct = passed.as_millis() * 100 / slow_start.as_millis().max(1);
        u32::try_from(pct).unwrap_or(100)
    }

    /// Whether its answers are to be timed.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.choice.is_timed.get() || self.in_flight.is_limited()
    }

    /// An answer has begun with these bytes, so long after it was asked for.
    #[cold]
    pub fn has_answered(&self, took: Duration, begins: &[u8], now: Instant) {
        let is_error = begins.get(wire::packet::HEADER_LEN) == Some(&0xff);
        self.choice.answers.add(took, is_error, now);
        if !is_error {
            self.in_flight.was_in_flight(took, now);
        }
    }

    /// Microseconds until it begins an answer; 0 where nothing is known.
    fn answers_us(&self, now: Instant) -> u64 {
        self.choice.answers.mean_ns(now) / 1000
    }

    /// Its row of `stats_mysql_choice`.
    pub(crate) fn report_choice(&self, balance: Balance, now: Instant) -> ChoiceRow {
        let server = self.server();
        ChoiceRow {
            hostgroup: server.hostgroup,
            host: self.host().clone(),
            port: server.port,
            balance: balance.name(),
            weight: server.weight,
            started_pct: self.started_pct(now),
            used: self.numbers.used.get(),
            answers_us: self.answers_us(now),
        }
    }

    /// Returns what one more statement at the server has before it; of two servers the one with
    /// less is chosen.
    fn burden(&self, balance: Balance, now: Instant) -> u128 {
        let used = u128::from(self.numbers.used.get());
        match balance {
            Balance::Weight | Balance::LeastOutstanding => used,
            Balance::Latency => (used + 1) * u128::from(self.choice.answers.mean_ns(now)),
        }
    }
}

/// How a hostgroup chooses among its servers.
#[derive(Default)]
pub(crate) struct Chooser {
    pub(crate) balance: Cell<Balance>,
    /// Number drawn for a choice, the same until somebody has had the turn: a server is asked for
    /// an idle connection, and for room for a new one.
    drawn: Cell<u64>,
}

impl Chooser {
    /// Position of the one that is next, of servers that may have the turn: of two that are drawn by
    /// weight the one with less to do for its weight, of equals the one whose turn it is.
    pub(crate) fn next(&self, open: &[&Rc<Place>], now: Instant) -> Option<usize> {
        let balance = self.balance.get();
        if balance == Balance::Weight || open.len() < 2 {
            return next_turn(open, now);
        }
        let drawn = self.drawn.get();
        let one = plan::pick_by(open, |place| place.share(now), drawn)?;
        let share_but_one = |place: &&Rc<Place>| match Rc::ptr_eq(place, open[one]) {
            true => 0,
            false => place.share(now),
        };
        let Some(other) = plan::pick_by(open, share_but_one, drawn.rotate_left(32)) else {
            return Some(one);
        };
        let [a, b] = [open[one], open[other]];
        // Divided by weights, without dividing.
        let weighed =
            |place: &Place, by: &Place| place.burden(balance, now) * u128::from(by.share(now));
        Some(match weighed(a, b).cmp(&weighed(b, a)) {
            std::cmp::Ordering::Less => one,
            std::cmp::Ordering::Greater => other,
            std::cmp::Ordering::Equal => [one, other][next_turn(&[a, b], now)?],
        })
    }

    /// A server has had a turn, its own or that of another. `draw`: a number for the next choice.
    pub(crate) fn had(
        &self,
        open: &[&Rc<Place>],
        server: &Rc<Place>,
        now: Instant,
        draw: impl Fn() -> u64,
    ) {
        if self.balance.get() != Balance::Weight {
            self.drawn.set(draw());
        }
        had_turn(open, server, now);
    }
}

/// Those of a hostgroup that may have the turn: of all that take the work those with a weight, or
/// else those that serve last.
pub(crate) fn in_turn(
    places: &[Rc<Place>],
    takes: impl Fn(&Place) -> bool,
) -> impl Iterator<Item = &Rc<Place>> {
    let mut with_weight = places.iter().filter(|place| !place.is_last());
    // Most hostgroups have none that serve last, and nobody is asked twice there.
    let all = places.iter().all(|place| !place.is_last()) || !with_weight.any(|place| takes(place));
    let mut places = places.iter();
    std::iter::from_fn(move || places.find(|place| (all || !place.is_last()) && takes(place)))
}

/// As [`in_turn`], of all that take work now.
pub(crate) fn working(places: &[Rc<Place>], now: Instant) -> impl Iterator<Item = &Rc<Place>> {
    in_turn(places, move |place| place.serves(now))
}

/// Position of the one whose turn it is by weight.
fn next_turn(open: &[&Rc<Place>], now: Instant) -> Option<usize> {
    plan::turn_of(
        open.iter()
            .map(|place| (place.share(now), place.choice.credit.get())),
    )
}

fn had_turn(open: &[&Rc<Place>], server: &Rc<Place>, now: Instant) {
    let total = open.iter().map(|place| i64::from(place.share(now))).sum();
    for place in open {
        let had_it = Rc::ptr_eq(place, server);
        let credit = place.choice.credit.get();
        let credit = plan::credit_after(place.share(now), credit, total, had_it);
        place.choice.credit.set(credit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    fn settled(attributes: &HostgroupAttributes, places: &[Rc<Place>], ms: u64) {
        for place in places {
            place.is_chosen_by(Some(attributes), false, at(ms));
        }
    }

    fn slowly() -> HostgroupAttributes {
        let mut attributes = HostgroupAttributes::default();
        attributes.slow_start_ms = 10_000;
        attributes
    }

    /// Turns of each of these, of so many.
    fn turns(chooser: &Chooser, places: &[Rc<Place>], n: usize, ms: u64) -> Vec<usize> {
        let open: Vec<_> = working(places, at(ms)).collect();
        let seed = Cell::new(7_u64);
        let draw = || {
            let next = seed.get().wrapping_mul(6_364_136_223_846_793_005);
            seed.set(next.wrapping_add(1_442_695_040_888_963_407));
            seed.get()
        };
        let mut counts = vec![0; open.len()];
        for _ in 0..n {
            let next = chooser.next(&open, at(ms)).unwrap();
            chooser.had(&open, open[next], at(ms), draw);
            counts[next] += 1;
        }
        counts
    }

    #[test]
    fn servers_of_weight_zero_serve_when_no_other_can() {
        let places = [
            testing::place_of("a", 1),
            testing::place_of("b", 0),
            testing::place_of("c", 0),
        ];
        let names = || {
            let all = working(&places, at(0));
            all.map(|place| place.host().to_string())
                .collect::<Vec<_>>()
        };
        let settle = |weight_zero| {
            let mut attributes = HostgroupAttributes::default();
            attributes.weight_zero = weight_zero;
            settled(&attributes, &places, 0);
        };
        assert_eq!(names(), ["a"]);
        settle(WeightZero::Last);
        assert_eq!(names(), ["a"]);
        places[0].leave(false);
        assert_eq!(names(), ["b", "c"]);
        assert_eq!(turns(&Chooser::default(), &places, 4, 0), [2, 2]);
        settle(WeightZero::Never);
        assert!(names().is_empty());
    }

    #[test]
    fn the_one_with_less_outstanding_for_its_weight_is_chosen() {
        let chooser = Chooser::default();
        chooser.balance.set(Balance::LeastOutstanding);
        let places = [testing::place_of("a", 1), testing::place_of("b", 3)];
        assert_eq!(turns(&chooser, &places, 400, 0), [100, 300]);
        places[1].begin_use();
        assert_eq!(turns(&chooser, &places, 400, 0), [400, 0]);
        places[0].begin_use();
        assert_eq!(turns(&chooser, &places, 400, 0), [0, 400]);
    }

    #[test]
    fn the_busiest_of_several_is_chosen_least() {
        let chooser = Chooser::default();
        chooser.balance.set(Balance::LeastOutstanding);
        let places = ["a", "b", "c", "d"].map(|name| testing::place_of(name, 1));
        let even = turns(&chooser, &places, 400, 0);
        assert!(even.iter().all(|n| (80..=120).contains(n)), "{even:?}");
        places[2].begin_use();
        let without = turns(&chooser, &places, 400, 0);
        assert_eq!(without[2], 0);
    }

    #[test]
    fn the_one_that_answers_sooner_is_chosen_and_the_other_tried_again() {
        let chooser = Chooser::default();
        chooser.balance.set(Balance::Latency);
        let places = [testing::place_of("a", 1), testing::place_of("b", 1)];
        let answers = |place: usize, ms, now, begins: &[u8]| {
            places[place].has_answered(Duration::from_millis(ms), begins, at(now));
        };
        answers(0, 10, 0, &[0; 5]);
        answers(1, 3, 0, &[0; 5]);
        assert_eq!(turns(&chooser, &places, 10, 0), [0, 10]);
        // Four at once take as long as one there.
        for _ in 0..4 {
            places[1].begin_use();
        }
        assert_eq!(turns(&chooser, &places, 10, 0), [10, 0]);
        // Errors are said soon by who does nothing.
        answers(0, 1, 1, &[9, 0, 0, 1, 0xff]);
        assert_eq!(places[0].answers_us(at(1)), 10_000);
        answers(0, 2, 1, &[0; 5]);
        assert_eq!(places[0].answers_us(at(1)), 9_000);
        assert_eq!(places[0].answers_us(at(20_001)), 2_250);
        answers(0, 7, 20_001, &[0; 5]);
        assert_eq!(places[0].answers_us(at(20_001)), 7_000);
    }

    #[test]
    fn a_server_that_comes_back_gets_its_weight_little_by_little() {
        let chooser = Chooser::default();
        let places = [testing::place_of("a", 1), testing::place_of("b", 1)];
        let attributes = slowly();
        // Both begin: nobody is behind the other.
        settled(&attributes, &places, 0);
        assert_eq!(turns(&chooser, &places, 100, 0), [50, 50]);
        // As one that was not there when the other served.
        places[1].is_chosen_by(Some(&attributes), false, at(1000));
        assert_eq!(places[1].started_pct(at(1000)), 100);
        places[1].choice.served.set(Some(false));
        places[1].is_chosen_by(Some(&attributes), false, at(1000));
        let share = |ms| turns(&Chooser::default(), &places, 400, ms)[1];
        let shares = [share(1000), share(3000), share(6000), share(11_000)];
        let wanted = [2, 67, 133, 200];
        for (share, wanted) in shares.iter().zip(wanted) {
            assert!(share.abs_diff(wanted) <= 3, "{shares:?}");
        }
    }

    #[test]
    fn a_server_that_was_shunned_starts_slowly() {
        let attributes = slowly();
        let place = testing::place_of("a", 1);
        place.is_chosen_by(Some(&attributes), false, at(0));
        place.failed(at(0), 1, Duration::from_secs(10));
        assert!(!place.serves(at(9999)) && place.serves(at(10_000)));
        assert_eq!(place.started_pct(at(15_000)), 50);
        place.connected(Duration::ZERO, at(15_000));
        assert_eq!(place.started_pct(at(15_000)), 50);
        place.failed(at(30_000), 1, Duration::from_secs(10));
        place.connected(Duration::ZERO, at(31_000));
        assert_eq!(place.started_pct(at(32_000)), 10);
    }
}
