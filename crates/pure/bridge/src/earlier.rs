//! What was counted earlier and nobody has had: added to what is counted now, and bounded.

use crate::metric::Kind;
use crate::report::same_server;
use crate::{Ask, CommandRow, Counter, DigestRow, Done, ErrorRow, HostgroupRow, Latency, PoolRow};
use crate::{Report, Width};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Totals of a process, which go on in the one that takes over from it.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Reports of all cores, joined.
    pub reports: Vec<Report>,
    /// Work of the monitor, if it has told that in time.
    pub monitor: Option<Done>,
}

/// Knowledge of what the process before has counted, and counts while both serve.
pub trait Before: Send + Sync {
    /// Whether its totals of this kind are known; else whoever asks should ask again soon, so that he sees no
    /// total go down.
    fn is_known(&self, what: Ask) -> bool;

    /// Its totals of this kind, without those that were given to somebody who counts anew; all of them are
    /// given if it is `reset`.
    fn report(&self, what: Ask, reset: bool) -> Option<Report>;

    /// Work of its monitor.
    fn monitor(&self) -> Done;
}

/// Counts of the process before.
pub type Earlier = Arc<dyn Before>;

/// There was no process before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Before for Nobody {
    fn is_known(&self, _what: Ask) -> bool {
        true
    }

    fn report(&self, _what: Ask, _reset: bool) -> Option<Report> {
        None
    }

    fn monitor(&self) -> Done {
        Done::default()
    }
}

impl Report {
    /// Adds what the same cores counted before. What is only so at a moment stays as it is now, and
    /// so does who is there.
    pub fn and_before(&mut self, before: Self) {
        match (&mut *self, before) {
            (Self::Pool(now), Self::Pool(before)) => {
                for row in before {
                    if let Some(now) = now.iter_mut().find(|now| same_server(now, &row)) {
                        now.ok += row.ok;
                        now.err += row.err;
                        now.used_max = now.used_max.max(row.used_max);
                        now.queries += row.queries;
                        now.queries_gtid_sync += row.queries_gtid_sync;
                        now.bytes_sent += row.bytes_sent;
                        now.bytes_received += row.bytes_received;
                    }
                }
            }
            (Self::Cores(now), Self::Cores(before)) => {
                for row in before {
                    if let Some(now) = now.iter_mut().find(|now| now.core == row.core) {
                        now.turns += row.turns;
                        now.busy_us += row.busy_us;
                        now.longest_us = now.longest_us.max(row.longest_us);
                        now.longest_cpu_us = now.longest_cpu_us.max(row.longest_cpu_us);
                        now.long += row.long;
                        now.long_cpu += row.long_cpu;
                    }
                }
            }
            (Self::ClientHosts(now), Self::ClientHosts(before)) => {
                for row in before {
                    match now.iter_mut().find(|now| now.address == row.address) {
                        Some(now) => {
                            now.errors += row.errors;
                            now.last_s = now.last_s.max(row.last_s);
                        }
                        None => now.push(row),
                    }
                }
            }
            (_, before) => self.merge(before),
        }
    }

    /// Leaves out what is only so at a moment, as far as it would be added up.
    pub fn keep_totals(&mut self) {
        if let Self::Global(counts) = self {
            let moments = Counter::ALL
                .iter()
                .filter(|counter| counter.metric().kind == Kind::Gauge);
            moments.for_each(|counter| counts.set(*counter, 0));
        }
    }

    /// Takes away what was counted when `given` was reported by the same cores. Rows in which nothing is left go, and
    /// the extremes of all times stay.
    pub fn take_away(&mut self, given: &Self) {
        match (self, given) {
            (Self::Pool(now), Self::Pool(given)) => {
                let key = |row: &PoolRow| (row.hostgroup, row.host.clone(), row.port);
                each_pair(now, given, key, |now, given| {
                    less(&mut now.ok, given.ok);
                    less(&mut now.err, given.err);
                    less(&mut now.queries, given.queries);
                    less(&mut now.queries_gtid_sync, given.queries_gtid_sync);
                    less(&mut now.bytes_sent, given.bytes_sent);
                    less(&mut now.bytes_received, given.bytes_received);
                });
            }
            (Self::Commands(now), Self::Commands(given)) => {
                let key = |row: &CommandRow| row.command.clone();
                each_pair(now, given, key, |now, given| {
                    less(&mut now.total_time_us, given.total_time_us);
                    less(&mut now.count, given.count);
                    for (now, given) in now.counts.iter_mut().zip(given.counts) {
                        less(now, given);
                    }
                    fewer(&mut now.latency, &given.latency);
                });
            }
            (Self::Hostgroups(now), Self::Hostgroups(given)) => {
                each_pair(
                    now,
                    given,
                    |row: &HostgroupRow| row.hostgroup,
                    |now, given| {
                        less(&mut now.count, given.count);
                        fewer(&mut now.latency, &given.latency);
                    },
                );
                now.retain(|row| row.count > 0);
            }
            (Self::Errors(now), Self::Errors(given)) => {
                let key = |row: &ErrorRow| {
                    let server = (row.hostgroup, row.host.clone(), row.port, row.errno);
                    let who = (row.user.clone(), row.client_address.clone());
                    (server, who, row.schema.clone())
                };
                each_pair(now, given, key, |now, given| {
                    less(&mut now.count, given.count);
                });
                now.retain(|row| row.count > 0);
            }
            (Self::Digests(now), Self::Digests(given)) => {
                let key = |row: &DigestRow| {
                    let who = (row.user.clone(), row.client_address.clone());
                    (row.hostgroup, row.digest, row.schema.clone(), who)
                };
                each_pair(now, given, key, |now, given| {
                    less(&mut now.count, given.count);
                    less(&mut now.sum_time_us, given.sum_time_us);
                    less(&mut now.rows_affected, given.rows_affected);
                    less(&mut now.rows_sent, given.rows_sent);
                    fewer(&mut now.latency, &given.latency);
                });
                now.retain(|row| row.count > 0);
            }
            _ => {}
        }
    }

    /// How many rows of those that can be many.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Digests(rows) => rows.len(),
            Self::Errors(rows) => rows.len(),
            Self::Alarms(rows) => rows.len(),
            Self::Mirror(rows) => rows.len(),
            Self::Hostgroups(rows) => rows.len(),
            _ => 0,
        }
    }

    /// Keeps within so many bytes what was seen last; how many rows were too many. What cannot be
    /// large stays whole.
    pub fn shorten(&mut self, bytes_max: usize) -> usize {
        match self {
            Self::Digests(rows) => shorten(
                rows,
                bytes_max,
                |row| row.last_seen,
                |row| {
                    [&row.schema, &row.user, &row.client_address, &row.text]
                        .map(|text| text.len())
                        .iter()
                        .sum()
                },
            ),
            Self::Errors(rows) => shorten(
                rows,
                bytes_max,
                |row| row.last_seen,
                |row| {
                    [
                        &row.host,
                        &row.user,
                        &row.client_address,
                        &row.schema,
                        &row.last_error,
                    ]
                    .map(|text| text.len())
                    .iter()
                    .sum()
                },
            ),
            Self::Alarms(rows) => shorten(
                rows,
                bytes_max,
                |row| row.last_seen,
                |row| {
                    [
                        &row.user,
                        &row.client_address,
                        &row.schema,
                        &row.text,
                        &row.fingerprint,
                    ]
                    .map(|text| text.len())
                    .iter()
                    .sum()
                },
            ),
            Self::Mirror(rows) => shorten(
                rows,
                bytes_max,
                |row| row.last_difference_at,
                |row| row.text.len() + row.last_difference.len(),
            ),
            _ => 0,
        }
    }
}

fn less(now: &mut u64, given: u64) {
    *now = now.saturating_sub(given);
}

fn fewer<W: Width>(now: &mut Latency<W>, given: &Latency<W>) {
    *now = now.since(given);
}

fn each_pair<T, K: Eq + Hash>(
    now: &mut [T],
    given: &[T],
    key: impl Fn(&T) -> K,
    mut pair: impl FnMut(&mut T, &T),
) {
    let given: HashMap<K, &T> = given.iter().map(|row| (key(row), row)).collect();
    for row in now {
        if let Some(given) = given.get(&key(row)) {
            pair(row, given);
        }
    }
}

/// A text on the heap: what counts it, and what the memory manager rounds up to.
const TEXT_BYTES: usize = 32;

/// `texts` says the bytes of the texts of a row, of which there are at most five.
fn shorten<T>(
    rows: &mut Vec<T>,
    bytes_max: usize,
    last_seen: impl Fn(&T) -> u64,
    texts: impl Fn(&T) -> usize,
) -> usize {
    let bytes = |row: &T| size_of::<T>() + 5 * TEXT_BYTES + texts(row);
    if rows.iter().map(bytes).sum::<usize>() <= bytes_max {
        return 0;
    }
    rows.sort_by_key(|row| Reverse(last_seen(row)));
    let (mut used, all) = (0, rows.len());
    let fitting = rows.iter().take_while(|row| {
        used += bytes(row);
        used <= bytes_max
    });
    let fitting = fitting.count();
    rows.truncate(fitting);
    rows.shrink_to_fit();
    all - fitting
}
