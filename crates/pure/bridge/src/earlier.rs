//! What was counted earlier and nobody has had: added to what is counted now, and bounded.

use crate::{Report, report::same_server};
use std::cmp::Reverse;

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
