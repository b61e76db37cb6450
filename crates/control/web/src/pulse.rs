//! The pulse: counters of the last minutes, asked for every two seconds while the page is served.

use crate::listing::cell;
use crate::plot::Line;
use crate::work::Work;
use bridge::{Latency, Table};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(2);
/// Samples that are kept: ten minutes.
const SAMPLES_MAX: usize = 300;
/// Samples between the two whose difference is a rate or a quantile.
const WINDOW: usize = 3;

const COUNTERS: &str = "SELECT Variable_Name, Variable_Value FROM stats_mysql_global WHERE Variable_Name IN \
    ('Questions', 'Slow_queries', 'Client_Connections_connected', 'Client_Connections_non_idle', \
     'Server_Connections_connected', 'generated_error_packets', 'Query_Cache_count_GET_OK', 'Query_Cache_count_GET')";
const ERRORS: &str = "SELECT 'errors', coalesce(sum(count_star), 0) FROM stats_mysql_errors";
const TIMES: &str = "SELECT histogram FROM stats_mysql_hostgroup_latency";

/// Counters at one moment.
#[derive(Debug, Clone, Default)]
struct Sample {
    /// Seconds since 1970.
    at: u64,
    counters: BTreeMap<Box<str>, f64>,
    times: Latency<u64>,
}

/// The last samples, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pulse(VecDeque<Sample>);

/// Takes samples for ever.
pub(crate) async fn take(work: Rc<Work>) {
    work.pulse.borrow_mut().0.clear();
    loop {
        // One that cannot be had leaves a gap.
        if let Some(sample) = sample(&work).await {
            let all = &mut work.pulse.borrow_mut().0;
            all.push_back(sample);
            if all.len() > SAMPLES_MAX {
                all.pop_front();
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn sample(work: &Work) -> Option<Sample> {
    let mut sample = Sample {
        at: now_s(),
        ..Sample::default()
    };
    for sql in [COUNTERS, ERRORS] {
        let table = work.desk.ask(None, sql).await.ok()?;
        for row in &table.rows {
            let value = cell(row, 1).parse().unwrap_or(0.0);
            sample.counters.insert(cell(row, 0).into(), value);
        }
    }
    sample.times = times(&work.desk.ask(None, TIMES).await.ok()?);
    Some(sample)
}

/// The times of all hostgroups, from the histograms that the admin port shows.
fn times(table: &Table) -> Latency<u64> {
    let mut all = Latency::default();
    for row in &table.rows {
        let buckets: Vec<(u64, u64)> = serde_json::from_str(cell(row, 0)).unwrap_or_default();
        for (longest_us, count) in buckets {
            all.count_bucket(longest_us, count);
        }
    }
    all
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl Pulse {
    /// Moments of the samples.
    pub(crate) fn moments(&self) -> Vec<u64> {
        self.0.iter().map(|sample| sample.at).collect()
    }

    /// A counter as it was.
    pub(crate) fn level(&self, name: &'static str, counter: &str) -> Line {
        let values = self.0.iter();
        Line {
            name,
            values: values
                .map(|sample| sample.counters.get(counter).copied())
                .collect(),
        }
    }

    /// The growth of counters in a second.
    pub(crate) fn rate(&self, name: &'static str, counters: &[&str]) -> Line {
        let growth = |before: &Sample, now: &Sample| {
            let of = |sample: &Sample| -> f64 {
                let each = counters
                    .iter()
                    .filter_map(|counter| sample.counters.get(*counter));
                each.sum()
            };
            // Somebody may have counted from 0 again.
            (of(now) - of(before)).max(0.0) / (now.at - before.at).max(1) as f64
        };
        self.between(name, |before, now| Some(growth(before, now)))
    }

    /// The time that so many thousandths of the statements did not exceed, in microseconds.
    pub(crate) fn quantile(&self, name: &'static str, thousandths: u64) -> Line {
        self.between(name, |before, now| {
            let times = now.times.since(&before.times);
            (times.total() > 0).then(|| times.quantile(thousandths) as f64)
        })
    }

    fn between(&self, name: &'static str, of: impl Fn(&Sample, &Sample) -> Option<f64>) -> Line {
        let values = (0..self.0.len()).map(|at| match at.checked_sub(WINDOW) {
            Some(before) => of(&self.0[before], &self.0[at]),
            None if at > 0 => of(&self.0[0], &self.0[at]),
            None => None,
        });
        Line {
            name,
            values: values.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64, questions: f64, times: &str) -> Sample {
        let table = Table {
            names: vec!["histogram".into()],
            rows: vec![vec![Some(times.into())]],
        };
        Sample {
            at,
            counters: [("Questions".into(), questions)].into(),
            times: super::times(&table),
        }
    }

    #[test]
    fn rates_and_quantiles_are_those_of_the_last_samples() {
        let mut pulse = Pulse::default();
        pulse.0.extend([
            sample(10, 100.0, "[[95,10]]"),
            sample(12, 120.0, "[[95,12]]"),
            sample(14, 120.0, "[[95,12]]"),
            sample(16, 160.0, "[[95,12],[1535,3]]"),
            sample(18, 0.0, "[]"),
        ]);
        let rate = pulse.rate("statements", &["Questions", "none"]);
        assert_eq!(
            rate.values,
            [None, Some(10.0), Some(5.0), Some(10.0), Some(0.0)]
        );
        let p99 = pulse.quantile("p99", 990);
        assert_eq!(
            p99.values,
            [None, Some(95.0), Some(95.0), Some(1535.0), None]
        );
        assert_eq!(pulse.level("x", "Questions").values[2], Some(120.0));
        assert_eq!(pulse.moments(), [10, 12, 14, 16, 18]);
        // Whatever stands there, it is no panic.
        assert_eq!(
            times(&Table {
                names: Vec::new(),
                rows: vec![vec![None], vec![Some("{".into())]]
            })
            .total(),
            0
        );
    }
}
