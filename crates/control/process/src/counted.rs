//! Totals on their way from a process to the one that takes over from it: as words that another version
//! understands, and as what that process adds to its own.

use bridge::{
    Ask, Before, Check, CommandRow, Counter, Counts, DigestRow, Done, ErrorRow, HostgroupRow,
    Latency, PoolRow, Report, ServerState, Totals, Width,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Kinds that are told again and again.
pub(crate) const OFTEN: &[Ask] = &[Ask::Global, Ask::Pool, Ask::Commands, Ask::Hostgroups];
/// Kinds that are told when the process begins to leave, and when it ends: they may have very many rows.
pub(crate) const SELDOM: &[Ask] = &[Ask::Errors, Ask::Digests];
/// All of them, in that order.
pub(crate) const ALL: &[Ask] = &[
    Ask::Global,
    Ask::Pool,
    Ask::Commands,
    Ask::Hostgroups,
    Ask::Errors,
    Ask::Digests,
];
/// Bytes of digests, and of errors, at most; those that were seen last go along.
const BYTES_MAX: usize = 32 << 20;
/// Rows of a word at most.
const ROWS_MAX: usize = 1000;
/// Time that a process which has begun to leave has to tell what it has counted.
const TELLS_WITHIN: Duration = Duration::from_secs(5);

/// A part of the totals of one kind. The last one of a kind replaces what was told of it before.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// Name of the kind.
    #[serde(default)]
    of: String,
    /// Its rows, by the names of their columns.
    #[serde(default)]
    rows: Value,
    /// Whether more rows follow.
    #[serde(default)]
    more: bool,
}

impl Counted {
    fn all<T: Serialize>(of: &str, rows: &[T]) -> Vec<Self> {
        let mut words: Vec<_> = rows.chunks(ROWS_MAX).map(|rows| word(of, &rows)).collect();
        if words.is_empty() {
            words.push(word(of, &rows));
        }
        let last = words.len() - 1;
        words[..last].iter_mut().for_each(|word| word.more = true);
        words
    }

    /// Words for these totals.
    pub(crate) fn of(totals: Totals) -> Vec<Self> {
        let reports = totals.reports.into_iter().flat_map(of_report);
        let monitor = totals.monitor.iter().map(|done| {
            let checks = Check::ALL.iter().zip(done.checks);
            let checks = checks.map(|(check, counts)| (check.table().to_owned(), counts));
            let names = [done.names_looked_up, done.names_found, done.names_changed];
            let monitor = Monitor {
                checks: checks.collect(),
                names_looked_up: names[0],
                names_found: names[1],
                names_changed: names[2],
            };
            word("monitor", &monitor)
        });
        monitor.chain(reports).collect()
    }
}

fn word(of: &str, rows: &impl Serialize) -> Counted {
    Counted {
        of: of.to_owned(),
        rows: serde_json::to_value(rows).unwrap_or_default(),
        more: false,
    }
}

fn of_report(mut report: Report) -> Vec<Counted> {
    report.shorten(BYTES_MAX);
    match report {
        Report::Global(counts) => {
            let values = Counter::ALL
                .iter()
                .map(|one| (one.name(), counts.value(*one)));
            vec![word("global", &values.collect::<BTreeMap<_, _>>())]
        }
        Report::Pool(rows) => Counted::all(
            "pool",
            &rows.into_iter().map(Pool::from).collect::<Vec<_>>(),
        ),
        Report::Commands(rows) => {
            let rows: Vec<_> = rows.into_iter().map(Command::from).collect();
            Counted::all("commands", &rows)
        }
        Report::Hostgroups(rows) => {
            let rows: Vec<_> = rows.into_iter().map(Hostgroup::from).collect();
            Counted::all("hostgroups", &rows)
        }
        Report::Errors(rows) => {
            let rows: Vec<_> = rows.into_iter().map(Erred::from).collect();
            Counted::all("errors", &rows)
        }
        Report::Digests(rows) => {
            let rows: Vec<_> = rows.into_iter().map(Digest::from).collect();
            Counted::all("digests", &rows)
        }
        _ => Vec::new(),
    }
}

/// Work of the monitor.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Monitor {
    /// Checks that were good and that failed, by the table of their kind.
    checks: BTreeMap<String, [u64; 2]>,
    names_looked_up: u64,
    names_found: u64,
    names_changed: u64,
}

impl From<Monitor> for Done {
    fn from(told: Monitor) -> Self {
        let mut done = Self {
            names_looked_up: told.names_looked_up,
            names_found: told.names_found,
            names_changed: told.names_changed,
            ..Self::default()
        };
        for (counts, check) in done.checks.iter_mut().zip(Check::ALL) {
            *counts = told.checks.get(check.table()).copied().unwrap_or_default();
        }
        done
    }
}

/// Declares the word of a row, which has these fields of it, and how it becomes a row again.
macro_rules! words {
    ($($(#[$about:meta])* $word:ident of $row:ident: $($field:ident: $type:ty),*; $($other:ident: $value:expr),*;)*) => {
        $(
            $(#[$about])*
            #[derive(Default, Serialize, Deserialize)]
            #[serde(default)]
            struct $word {
                $($field: $type,)*
            }

            impl From<$row> for $word {
                fn from(row: $row) -> Self {
                    Self { $($field: row.$field.into(),)* }
                }
            }

            impl From<$word> for $row {
                fn from(word: $word) -> Self {
                    Self { $($field: word.$field.into(),)* $($other: $value,)* }
                }
            }
        )*
    };
}

words! {
    /// Server in a hostgroup.
    Pool of PoolRow: hostgroup: u32, host: Text, port: u16, ok: u64, err: u64, used_max: u64, queries: u64, queries_gtid_sync: u64,
        bytes_sent: u64, bytes_received: u64; state: ServerState::Online, used: 0, free: 0, latency_us: 0;
    /// Class of statements.
    Command of CommandRow: command: Text, total_time_us: u64, count: u64, counts: [u64; 12], latency: Times, max_us: u64;;
    /// Hostgroup.
    Hostgroup of HostgroupRow: hostgroup: i64, count: u64, latency: Times, max_us: u64;;
    /// Errors of a kind.
    Erred of ErrorRow: hostgroup: u32, host: Text, port: u16, user: Text, client_address: Text, schema: Text, errno: u16,
        count: u64, first_seen: u64, last_seen: u64, last_error: Text;;
    /// Digest.
    Digest of DigestRow: hostgroup: i64, schema: Text, user: Text, client_address: Text, digest: u64, text: Text,
        shown: Option<bool>, guarded: u64, alike: bool, count: u64, first_seen: u64, last_seen: u64, sum_time_us: u64,
        min_time_us: u64, max_time_us: u64, rows_affected: u64, rows_sent: u64, latency: Times;;
}

/// A text of a row.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Text(String);

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        Self((*text).to_owned())
    }
}

impl From<Text> for Arc<str> {
    fn from(text: Text) -> Self {
        text.0.into()
    }
}

impl From<Cow<'static, str>> for Text {
    fn from(text: Cow<'static, str>) -> Self {
        Self(text.into_owned())
    }
}

impl From<Text> for Cow<'static, str> {
    fn from(text: Text) -> Self {
        text.0.into()
    }
}

/// How times are spread: (longest in microseconds, how many) of each part.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Times(Vec<(u64, u64)>);

impl<W: Width> From<Latency<W>> for Times {
    fn from(latency: Latency<W>) -> Self {
        Self(latency.buckets().collect())
    }
}

impl<W: Width> From<Times> for Latency<W> {
    fn from(times: Times) -> Self {
        let mut latency = Self::default();
        for (longest_us, times) in times.0 {
            latency.count_bucket(longest_us, times);
        }
        latency
    }
}

/// Totals of the process that is taken over from, as it tells them.
#[derive(Default)]
pub(crate) struct Told(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether it will tell, and until when it should have.
    tells: bool,
    until: Option<Instant>,
    /// Rows of a kind of which more are to come.
    parts: Vec<Value>,
    kinds: HashMap<&'static str, Kind>,
    monitor: Done,
}

/// One kind of them.
struct Kind {
    told: Report,
    /// Part of it that somebody has got who counts anew.
    given: Option<Report>,
}

impl Told {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it will tell.
    pub(crate) fn expect(&self) {
        self.state().tells = true;
    }

    /// Notes that it knows that this process serves.
    pub(crate) fn begins(&self) {
        self.state().until = Some(Instant::now() + TELLS_WITHIN);
    }

    /// Notes that it has ended.
    pub(crate) fn ends(&self) {
        self.state().tells = false;
    }

    /// Takes a part of what it tells.
    pub(crate) fn hear(&self, said: Counted) {
        let mut state = self.state();
        if said.of == "monitor" {
            let told = serde_json::from_value::<Monitor>(said.rows);
            state.monitor = told.map_or(state.monitor, Done::from);
            return;
        }
        let Some(what) = ALL.iter().find(|what| name(**what) == said.of) else {
            return;
        };
        if said.of != "global" {
            let Value::Array(rows) = said.rows else {
                return;
            };
            state.parts.extend(rows);
            if said.more {
                return;
            }
            let rows = Value::Array(mem::take(&mut state.parts));
            state.replace(*what, rows);
        } else {
            state.replace(*what, said.rows);
        }
    }
}

impl State {
    fn replace(&mut self, what: Ask, rows: Value) {
        let Some(told) = read(what, rows) else { return };
        match self.kinds.get_mut(name(what)) {
            Some(kind) => kind.told = told,
            None => _ = self.kinds.insert(name(what), Kind { told, given: None }),
        }
    }
}

/// Name of a kind of reports.
const fn name(what: Ask) -> &'static str {
    match what {
        Ask::Global => "global",
        Ask::Pool => "pool",
        Ask::Commands => "commands",
        Ask::Hostgroups => "hostgroups",
        Ask::Errors => "errors",
        Ask::Digests => "digests",
        _ => "",
    }
}

/// A report of rows; none if they make no sense.
fn read(what: Ask, rows: Value) -> Option<Report> {
    fn all<W: for<'w> Deserialize<'w>, R: From<W>>(rows: Value) -> Option<Vec<R>> {
        let words: Vec<W> = serde_json::from_value(rows).ok()?;
        Some(words.into_iter().map(R::from).collect())
    }
    Some(match what {
        Ask::Global => {
            let told: HashMap<String, Value> = serde_json::from_value(rows).ok()?;
            let mut counts = Counts::zero();
            for counter in Counter::ALL {
                let value = told.get(counter.name()).and_then(Value::as_u64);
                counts.set(*counter, value.unwrap_or(0));
            }
            let mut report = Report::Global(counts);
            // One that was a total there may be none here.
            report.keep_totals();
            report
        }
        Ask::Pool => Report::Pool(all::<Pool, _>(rows)?),
        Ask::Commands => Report::Commands(all::<Command, _>(rows)?),
        Ask::Hostgroups => Report::Hostgroups(all::<Hostgroup, _>(rows)?),
        Ask::Errors => Report::Errors(all::<Erred, _>(rows)?),
        Ask::Digests => Report::Digests(all::<Digest, _>(rows)?),
        _ => return None,
    })
}

impl Before for Told {
    fn is_known(&self, what: Ask) -> bool {
        let state = self.state();
        let is_late = || state.until.is_some_and(|until| Instant::now() >= until);
        let comes = state.tells && ALL.contains(&what);
        !comes || state.kinds.contains_key(name(what)) || is_late()
    }

    fn report(&self, what: Ask, reset: bool) -> Option<Report> {
        let mut state = self.state();
        let ended = !state.tells;
        let kind = state.kinds.get_mut(name(what))?;
        let mut report = kind.told.clone();
        if let Some(given) = &kind.given {
            report.take_away(given);
        }
        if reset && what != Ask::Global {
            kind.given = Some(kind.told.clone());
            if ended {
                // Nothing more will come of it.
                state.kinds.remove(name(what));
            }
        }
        Some(report)
    }

    fn monitor(&self) -> Done {
        self.state().monitor
    }
}

#[cfg(test)]
mod tests;
