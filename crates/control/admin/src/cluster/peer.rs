//! Another proxy, and what is known of it.

use super::decide::Sum;
use super::subjects::{At, SUBJECTS};
use super::sums;
use config::ProxyRow;
use line::Rows;
use rt::local::Bell;
use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// A module of another proxy.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub(crate) sum: Sum,
    /// Its checksum before this one, if it had been loaded then or since.
    pub(super) had: Option<u64>,
    /// When it became so here, and when it was asked for last; seconds since 1970, 0 for never.
    pub(crate) changed_s: u64,
    pub(crate) updated_s: u64,
    /// Looks in a row that have found it other than ours.
    pub(crate) looks: u64,
    /// Version, epoch and checksum that could not be taken over, and until when it is not tried
    /// again.
    pub(super) refused: Option<(Sum, Instant)>,
}

/// Facts that are known of another proxy.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) seen: [Seen; SUBJECTS.len()],
    pub(crate) looked: Option<Instant>,
    pub(crate) ping: Duration,
    pub(crate) fine: u64,
    pub(crate) failed: u64,
    /// Uptime in seconds, statements, clients that are here, clients that were here.
    pub(crate) metrics: [u64; 4],
    pub(crate) measured: Option<Instant>,
    pub(crate) response: Duration,
    /// Why the last look failed, as it was said last, and when.
    pub(super) why: Option<String>,
    pub(super) told: Option<Instant>,
    /// The module that is coming from there, and since when.
    pub(super) pulling: Option<(At, Instant)>,
}

/// Who has answered at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    /// Nobody yet.
    Nobody,
    /// This proxy.
    Itself,
    /// Another one.
    Another,
}

/// A row of `proxysql_servers` that is in force.
pub(crate) struct Peer {
    pub(crate) row: ProxyRow,
    pub(crate) known: RefCell<Known>,
    met: Cell<Met>,
    pub(super) gone: Cell<bool>,
    pub(super) bell: Bell,
    /// Whether it is a ProxySQL.
    pub(super) speaks_proxysql: Cell<bool>,
    /// Which servers it takes over, if it is a ProxySQL that has said so.
    pub(super) algorithm: RefCell<Option<String>>,
}

impl Peer {
    pub(super) fn new(row: ProxyRow) -> Self {
        Self {
            row,
            known: RefCell::default(),
            met: Cell::new(Met::Nobody),
            gone: Cell::new(false),
            bell: Bell::new(),
            speaks_proxysql: Cell::new(false),
            algorithm: RefCell::default(),
        }
    }

    /// Whether it is not in the list any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// Who has answered there, and said what it has.
    pub(crate) fn met(&self) -> Met {
        self.met.get()
    }

    /// This one has.
    pub(super) fn meets(&self, who: Met) {
        self.met.set(who);
    }

    /// As the log names it.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.row.hostname, self.row.port)
    }

    /// Whether it has answered when it was looked at last.
    pub(super) fn answers(&self) -> bool {
        let known = self.known.borrow();
        known.looked.is_some() && known.why.is_none()
    }

    pub(super) fn take_in(&self, rows: &Rows, names: &Names, now_s: u64) {
        let mut known = self.known.borrow_mut();
        for (name, seen) in names.iter().zip(&mut known.seen) {
            let sum = rows
                .iter()
                .find_map(|row| read_sum(row, name))
                .unwrap_or_default();
            if sum != seen.sum {
                if sum.checksum != seen.sum.checksum {
                    (seen.changed_s, seen.looks) = (now_s, 0);
                    seen.had = (seen.sum.version > 0).then_some(seen.sum.checksum);
                }
                seen.sum = sum;
            }
        }
    }

    /// Counts how long each module has been other than ours.
    pub(super) fn compare(&self, own: impl Fn(At) -> Sum, now_s: u64) {
        let mut known = self.known.borrow_mut();
        for (at, seen) in known.seen.iter_mut().enumerate() {
            seen.updated_s = now_s;
            seen.looks = if seen.sum.checksum == own(at).checksum {
                0
            } else {
                seen.looks + 1
            };
        }
    }

    pub(super) fn seen(&self, at: At) -> Seen {
        self.known
            .borrow()
            .seen
            .get(at)
            .copied()
            .unwrap_or_default()
    }
}

/// The names of modules as a proxy has them.
type Names = [&'static str; SUBJECTS.len()];

/// A row of `runtime_checksums_values`, if it is of this module.
pub(super) fn read_sum(row: &[Option<Vec<u8>>], name: &str) -> Option<Sum> {
    let text = |at: usize| std::str::from_utf8(row.get(at)?.as_deref()?).ok();
    if text(0)? != name {
        return None;
    }
    let checksum = sums::number(text(3)?).unwrap_or_default();
    Some(Sum {
        version: text(1)?.parse().ok()?,
        epoch: text(2)?.parse().ok()?,
        checksum,
    })
}

/// How long ago, in milliseconds.
pub(crate) fn ms_since(rt: &Rt, at: Option<Instant>) -> u64 {
    at.map_or(0, |at| {
        u64::try_from((rt.now() - at).as_millis()).unwrap_or(u64::MAX)
    })
}
