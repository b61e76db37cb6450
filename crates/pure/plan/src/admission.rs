//! Who of those who wait is first, and how many statements a server gets at once: two sums, over
//! times that are arguments.

use config::{Concurrency, PRIORITY_MAX, PRIORITY_USUAL, Rules, User};

/// Waiting time that one step of priority is worth.
const STEP_NS: u64 = 500_000_000;
/// Cost at which a statement stands half a step behind one that costs nothing; a statement that
/// nobody knows counts as such a one.
const HALF_COST_NS: u64 = 100_000_000;

/// The priority of a statement: of the last rule that names one, else of its user, else the usual
/// one. `hits`: positions of the rules that matched. With it comes the rule that named it.
#[must_use]
pub fn priority(user: Option<&User>, rules: &Rules, hits: &[u32]) -> (u8, Option<i64>) {
    let named = hits.iter().rev().find_map(|at| {
        let rule = rules.chain().get(*at as usize)?;
        Some((rule.priority?, Some(rule.rule_id)))
    });
    named.unwrap_or_else(|| {
        let of_user = user.and_then(User::priority);
        (of_user.unwrap_or(PRIORITY_USUAL), None)
    })
}

/// The rank of a statement in its line, as nanoseconds of the clock by which it came: the least is
/// first. Two ranks keep their order however long both wait, so that waiting moves a statement only
/// before those who come later. `cost_ns`: time for which statements of its digest usually keep a
/// connection.
#[must_use]
pub fn rank_ns(came_ns: u64, priority: u8, cost_ns: Option<u64>) -> u64 {
    let steps = u64::from(PRIORITY_MAX.saturating_sub(priority));
    let cost_ns = u128::from(cost_ns.unwrap_or(HALF_COST_NS));
    let of_step = u128::from(STEP_NS) * cost_ns / (cost_ns + u128::from(HALF_COST_NS));
    let behind = steps * STEP_NS + u64::try_from(of_step).unwrap_or(STEP_NS);
    came_ns.saturating_add(behind)
}

/// The limit of statements in flight at a server, and what it follows from.
///
/// Its gradient is that of <https://github.com/Netflix/concurrency-limits>, with the least latency
/// in place of a long-term mean, as in TCP Vegas (<https://doi.org/10.1145/190314.190317>). Decline
/// of throughput counts as in Heiss and Wagner, "Adaptive Load Control in Transaction Processing
/// Systems" (VLDB 1991).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// Statements in flight at most.
    limit: f64,
    /// The least mean latency of a window, in nanoseconds; 0 before there was one.
    base_ns: f64,
    /// Answers per nanosecond: moving mean, and the greatest one that is remembered.
    rate: f64,
    best: f64,
    /// The limit at which that one was seen.
    best_at: f64,
    /// Limit just below the one at which the server got beyond its peak; 0 if it did not.
    peak: f64,
    /// 1 while it is beyond the peak.
    beyond: f64,
    /// Windows since the last probe began.
    since_probe: f64,
    /// The limit before the probe that is on; 0 if none is.
    before: f64,
}

/// Answers of a server that were seen for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Answers that began.
    pub answers: u32,
    /// Mean of the time to them.
    pub latency_ns: u64,
    /// The most statements that were in flight.
    pub most: u32,
    /// Its length.
    pub length_ns: u64,
}

/// The limit before anything is known.
const FIRST: u32 = 20;
/// Latency above the baseline that is accepted, as a factor.
const TOLERANCE: f64 = 2.0;
/// The least gradient. A latency for which it would be less is of a server beyond its peak.
const STEEPEST: f64 = 0.5;
/// Part of the way to the next limit that one window goes.
const STEP: f64 = 0.2;
/// Part of the best throughput below which a server is beyond its peak,
const DECLINE: f64 = 0.95;
/// where its latency is above the baseline by that factor.
const LOADED: f64 = 1.1;
/// The limit beyond the peak, as a part of the one before, and the highest until the next probe.
const RETREAT: f64 = 0.9;
/// Weight of a window in the moving mean of throughput.
const OF_RATE: f64 = 0.25;
/// Windows after which that mean is one,
const SETTLED: f64 = 8.0;
/// and standard deviations of chance by which it may be below the best.
const NOISES: f64 = 2.0;
/// Windows from one probe to the next,
const PROBE_AFTER: f64 = 100.0;
/// and of a probe: in the first ones what was sent before drains,
const PROBE_WINDOWS: f64 = 2.0;
/// which takes no more than so many.
const DRAINS_WITHIN: f64 = 16.0;
/// The limit in a probe, as a part of the one before.
const OF_PROBE: f64 = 0.25;
/// Factor by which the highest limit rises with a probe: the server may have more to give by now.
const RISE: f64 = 1.1;
/// Factor of the baseline from one probe to the next from which on statements are dearer.
const DEARER: f64 = 1.5;
/// Factor by which the best throughput is forgotten with a probe.
const FORGET: f64 = 0.98;
/// Part by which an unused limit sinks, and by which the baseline rises, with each window.
const SINK: f64 = 1.0 / 64.0;

/// So many words are a [`Limit`].
pub const LIMIT_WORDS: usize = 9;

impl Limit {
    /// The limit at the beginning.
    #[must_use]
    pub fn first(bounds: Concurrency) -> Self {
        Self {
            limit: f64::from(FIRST.clamp(bounds.min, bounds.max.max(bounds.min))),
            base_ns: 0.0,
            rate: 0.0,
            best: 0.0,
            best_at: 0.0,
            peak: 0.0,
            beyond: 0.0,
            since_probe: 0.0,
            before: 0.0,
        }
    }

    /// Statements in flight at most.
    #[must_use]
    pub fn now(&self) -> u32 {
        // At least one, and far below the bound: a cast does not change it.
        self.limit.round().max(1.0) as u32
    }

    /// The least latency lately, in nanoseconds.
    #[must_use]
    pub fn base_ns(&self) -> u64 {
        self.base_ns as u64
    }

    /// As words, in which threads can share it without a lock.
    #[must_use]
    pub fn to_words(self) -> [u64; LIMIT_WORDS] {
        let Self {
            limit,
            base_ns,
            rate,
            best,
            best_at,
            peak,
            beyond,
            since_probe,
            before,
        } = self;
        [
            limit,
            base_ns,
            rate,
            best,
            best_at,
            peak,
            beyond,
            since_probe,
            before,
        ]
        .map(f64::to_bits)
    }

    /// Of words that [`Limit::to_words`] has made; words that are all 0 are none.
    #[must_use]
    pub fn from_words(words: [u64; LIMIT_WORDS]) -> Option<Self> {
        let [
            limit,
            base_ns,
            rate,
            best,
            best_at,
            peak,
            beyond,
            since_probe,
            before,
        ] = words.map(f64::from_bits);
        (limit > 0.0).then_some(Self {
            limit,
            base_ns,
            rate,
            best,
            best_at,
            peak,
            beyond,
            since_probe,
            before,
        })
    }

    /// The limit after a window.
    #[must_use]
    pub fn after(self, window: &Window, bounds: Concurrency) -> Self {
        if window.answers == 0 || window.length_ns == 0 || window.latency_ns == 0 {
            return self;
        }
        let next = if self.before > 0.0 {
            self.probed(window)
        } else {
            self.followed(window)
        };
        let (min, max) = (f64::from(bounds.min), f64::from(bounds.max.max(bounds.min)));
        Self {
            limit: next.limit.clamp(min, max),
            ..next
        }
    }

    /// After a window of a probe.
    fn probed(mut self, window: &Window) -> Self {
        self.since_probe += 1.0;
        let is_drained = window.most <= self.now();
        if self.since_probe < PROBE_WINDOWS || !is_drained && self.since_probe < DRAINS_WITHIN {
            return self;
        }
        let latency = window.latency_ns as f64;
        // Statements that have become dearer by themselves are fewer in the same time.
        let dearer = latency / self.base_ns;
        self.best *= if dearer > DEARER {
            1.0 / dearer
        } else {
            FORGET
        };
        self.base_ns = latency;
        self.peak *= RISE;
        (self.rate, self.since_probe) = (0.0, 0.0);
        (self.limit, self.before) = (self.before, 0.0);
        self
    }

    /// After any other.
    fn followed(mut self, window: &Window) -> Self {
        let latency = window.latency_ns as f64;
        if self.base_ns == 0.0 {
            self.base_ns = latency;
        }
        if latency < self.base_ns {
            self.base_ns += (latency - self.base_ns) * OF_RATE;
        }
        if f64::from(window.most) * 2.0 < self.limit {
            return self.unused(window);
        }
        let rate = f64::from(window.answers) / window.length_ns as f64;
        self.rate = match self.rate > 0.0 {
            true => self.rate + (rate - self.rate) * OF_RATE,
            false => rate,
        };
        self.since_probe += 1.0;
        let is_settled = self.since_probe >= SETTLED;
        if is_settled && self.rate > self.best {
            (self.best, self.best_at) = (self.rate, self.limit);
        }
        // Chance alone has the mean go up and down by so much.
        let noise = (OF_RATE / (2.0 - OF_RATE) / f64::from(window.answers)).sqrt();
        let declines = is_settled
            && self.limit > self.best_at
            && self.rate < self.best * (DECLINE - NOISES * noise)
            && latency > self.base_ns * LOADED;
        let gradient = self.base_ns * TOLERANCE / latency;
        let is_beyond = declines || gradient < STEEPEST;
        if is_beyond {
            self.limit *= RETREAT;
            // How far latency alone takes it down says nothing of where the peak is.
            let tells = declines || self.beyond == 0.0;
            if tells && (self.peak == 0.0 || self.limit < self.peak) {
                self.peak = self.limit;
            }
        } else {
            let wanted = self.limit * gradient.min(1.0) + self.limit.sqrt();
            self.limit += (wanted - self.limit) * STEP;
            if self.peak > 0.0 {
                self.limit = self.limit.min(self.peak);
            }
        }
        self.beyond = f64::from(u8::from(is_beyond));
        if self.since_probe >= PROBE_AFTER {
            (self.since_probe, self.before) = (0.0, self.limit);
            self.limit *= OF_PROBE;
        }
        self
    }

    /// After a window in which the limit was not reached by half: whatever the latency is, it is
    /// not for what is in flight.
    fn unused(mut self, window: &Window) -> Self {
        self.base_ns += (window.latency_ns as f64 - self.base_ns) * SINK;
        let enough = (f64::from(window.most) * 2.0).max(f64::from(FIRST));
        if self.limit > enough {
            self.limit += (enough - self.limit) * SINK;
        }
        (self.rate, self.best, self.peak) = (0.0, 0.0, 0.0);
        self
    }
}
