//! Rates: how many statements a second of a user's clients, to a hostgroup, or that a rule matches are sent.
//! What is beyond waits for its turn; what would wait too long is refused.

use crate::command::job::Job;
use crate::known::answer::Complaint;
use crate::known::rates::{Rates, Whose};
use config::User;
use rt::Instant;
use rt::permits::{Permits, Registry};
use std::sync::Arc;
use std::time::Duration;
use wire::errors;

/// Turns are taken so long ahead,
const AHEAD: Duration = Duration::from_millis(250);
/// and who has none looks again no sooner than after this.
const LOOK_MIN: Duration = Duration::from_millis(10);

impl Rates {
    /// Those that a statement of this user has.
    fn all<'a>(&self, user: &'a User, job: &Job<'_>, registry: &Registry) -> Vec<Rate<'a>> {
        let snapshot = &job.epoch.snapshot;
        let hostgroup = job.plan.hostgroup();
        let of_user = user.statements_per_sec();
        let of_user = of_user.map(|per_s| (Whose::User(&user.username), per_s));
        let group = snapshot.servers.hostgroup(hostgroup);
        let of_group = group.and_then(|group| group.attributes.statements_per_sec);
        let of_group = of_group.map(|per_s| (Whose::Hostgroup(hostgroup), per_s));
        let of_rules = job.plan.why.hits().iter().filter_map(|at| {
            let rule = snapshot.rules.chain().get(*at as usize)?;
            Some((Whose::Rule(rule.rule_id), rule.statements_per_sec?))
        });
        let all = of_user.into_iter().chain(of_group).chain(of_rules);
        all.map(|(whose, per_s)| Rate {
            whose,
            per_s,
            permits: self.of(whose, registry),
        })
        .collect()
    }
}

/// A rate that a statement has.
struct Rate<'a> {
    whose: Whose<'a>,
    per_s: u32,
    permits: Arc<Permits>,
}

/// The rates of one statement.
pub(crate) struct Turn<'a> {
    rates: Vec<Rate<'a>>,
    begun: Instant,
    limit: Duration,
    /// Whether the statement is counted among those who wait.
    waits: bool,
}

/// Next step of a statement that has rates.
pub(crate) enum Next {
    /// Time after which the statement is sent; it has taken its turn.
    Goes(Duration),
    /// Time after which the statement looks again.
    Waits(Duration),
    /// Refusal, because the statement would wait too long.
    Refused(Complaint),
}

impl<'a> Turn<'a> {
    pub(crate) fn of(
        rates: &Rates,
        (user, job): (&'a User, &Job<'_>),
        registry: &Registry,
        now: Instant,
    ) -> Self {
        let ms = job
            .epoch
            .snapshot
            .variables
            .mysql_connect_timeout_server_max;
        Self {
            rates: rates.all(user, job, registry),
            begun: now,
            limit: Duration::from_millis(ms),
            waits: false,
        }
    }

    /// Takes a turn at each rate, if all come up soon. Turns are not taken far ahead: in a fleet a
    /// share may grow, and who waits shall have something of it. `at_once`: it cannot wait, since
    /// it holds what others wait for; those behind it wait longer.
    pub(crate) fn next(&mut self, now: Instant, at_once: bool) -> Next {
        let wait = |rate: &Rate<'_>| rate.permits.until_turn(now.as_ns(), rate.per_s);
        let Some((longest, of)) = self
            .rates
            .iter()
            .map(|rate| (wait(rate), rate))
            .max_by_key(|(wait, _)| *wait)
        else {
            return Next::Goes(Duration::ZERO);
        };
        if at_once || longest <= AHEAD {
            for rate in &self.rates {
                rate.permits.take_turn(now.as_ns(), rate.per_s);
            }
            return Next::Goes(if at_once { Duration::ZERO } else { longest });
        }
        // Those who wait already would have to be sent before.
        let line = Duration::from_secs(of.permits.taken().into()) / of.per_s;
        if now - self.begun >= self.limit || !self.waits && line >= self.limit {
            of.permits.refuse();
            return Next::Refused(too_many(of, line.max(longest)));
        }
        if !self.waits {
            self.waits = true;
            for rate in &self.rates {
                rate.permits.try_take(u32::MAX);
            }
        }
        Next::Waits((longest - AHEAD).clamp(LOOK_MIN, AHEAD))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.rates.iter().for_each(|rate| rate.permits.give());
        }
    }
}

fn too_many(rate: &Rate<'_>, wait: Duration) -> Complaint {
    let (whose, per_s, ms) = (rate.whose, rate.per_s, wait.as_millis());
    Complaint::new(
        errors::PROXY_CONNECT_TIMEOUT,
        format!(
            "Too many statements of {whose}: {per_s} are sent in a second (statements_per_sec), and this one would wait {ms}ms; send fewer, or send it again later"
        ),
    )
}
