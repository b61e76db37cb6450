//! `mysql_hostgroup_attributes`: what holds for one hostgroup instead of the variables.

use super::replay::quoted;
use super::{Checksum, HOSTGROUP_MAX, Replay, Writers};
use crate::admission::{Admission, Concurrency, Order};
use crate::refusal::{Notices, Refusals};
use crate::{HostgroupAttributesRow, Split};
use serde_json::Value;

/// One row; `Default` is a hostgroup without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostgroupAttributes {
    /// Servers that may be ONLINE at once: where there are more, as when two take themselves for
    /// the writer, none of them takes work until a LOAD says which does.
    pub max_num_online_servers: u32,
    /// autocommit of its connections; `None` leaves it to the client.
    pub autocommit: Option<bool>,
    /// Idle connections kept, in percent of max_connections; `None` for mysql-free_connections_pct.
    pub free_connections_pct: Option<u32>,
    /// Statement run on new connections; `None` for mysql-init_connect.
    pub init_connect: Option<Box<str>>,
    /// Whether connections are shared between clients.
    pub multiplex: bool,
    /// Whether connections are opened ahead.
    pub connection_warming: bool,
    /// Connections opened per second at most.
    pub throttle_connections_per_sec: u32,
    /// Session variables that are not brought onto its connections, in lower case.
    pub ignore_session_variables: Box<[Box<str>]>,
    /// `hostgroup_settings.handle_warnings`; `None` for mysql-handle_warnings.
    pub handle_warnings: Option<bool>,
    /// `hostgroup_settings.max_connections`: connections to all its servers together; `None` for no
    /// limit of its own.
    pub max_connections: Option<u32>,
    /// `hostgroup_settings.statements_per_sec`: so many statements are sent to it in a second.
    pub statements_per_sec: Option<u32>,
    /// Who waits for its servers, and for how long.
    pub admission: Admission,
    /// `hostgroup_settings.pipelining`: so many statements of several sessions may be in flight on
    /// one connection; 0 for none but one.
    pub pipelining: u32,
    /// `hostgroup_settings.read_hostgroup` and what belongs to it: this hostgroup writes, that one
    /// reads.
    pub split: Option<Split>,
    /// `hostgroup_settings.proxy_protocol`: the version of the header that its servers are sent
    /// first; 0 for none.
    pub proxy_protocol: u8,
    /// `hostgroup_settings.monitor_slave_lag_when_null`; `None` for
    /// mysql-monitor_slave_lag_when_null.
    pub monitor_slave_lag_when_null: Option<u32>,
    /// `hostgroup_settings.writers`: who of several servers that may write gets writes.
    pub writers: Writers,
    /// `hostgroup_settings.fallback_hostgroup` and what belongs to it: where statements go while
    /// nobody serves here.
    pub fallback: Option<Fallback>,
    /// `hostgroup_settings.transaction_replay` and what belongs to it; `None` where a transaction ends
    /// with its server.
    pub replay: Option<Replay>,
    /// `hostgroup_settings.weight_zero`: what servers of weight 0 are for.
    pub weight_zero: WeightZero,
    /// `hostgroup_settings.balance`: how one of its servers is chosen.
    pub balance: Balance,
    /// `hostgroup_settings.dns`: which addresses of a server's name are used.
    pub dns: Dns,
    /// `hostgroup_settings.slow_start_ms`: milliseconds in which a server that comes back gets its
    /// weight little by little; 0 for at once.
    pub slow_start_ms: u32,
    /// Purposes for which the binary logs of the hostgroup's servers are followed.
    pub log_use: LogUse,
    /// `hostgroup_settings.read_after_write`: what a session reads elsewhere by the split must show
    /// what it has written here.
    pub reads_see_writes: bool,
    /// Defaults of servers that are discovered.
    pub servers_defaults: ServersDefaults,
    row: Option<Box<HostgroupAttributesRow>>,
}

impl Default for HostgroupAttributes {
    fn default() -> Self {
        Self {
            max_num_online_servers: 1_000_000,
            autocommit: None,
            free_connections_pct: None,
            init_connect: None,
            multiplex: true,
            connection_warming: false,
            throttle_connections_per_sec: 1_000_000,
            ignore_session_variables: Box::default(),
            handle_warnings: None,
            max_connections: None,
            statements_per_sec: None,
            admission: Admission::default(),
            pipelining: 0,
            split: None,
            proxy_protocol: 0,
            monitor_slave_lag_when_null: None,
            writers: Writers::default(),
            fallback: None,
            replay: None,
            weight_zero: WeightZero::default(),
            balance: Balance::default(),
            dns: Dns::default(),
            slow_start_ms: 0,
            log_use: LogUse::default(),
            reads_see_writes: false,
            servers_defaults: ServersDefaults::default(),
            row: None,
        }
    }
}

/// `hostgroup_settings.weight_zero`: purpose of a hostgroup's servers of weight 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightZero {
    /// They get nothing.
    #[default]
    Never,
    /// They serve when no other can.
    Last,
}

impl WeightZero {
    fn named(name: &str) -> Option<Self> {
        match name {
            "never" => Some(Self::Never),
            "last" => Some(Self::Last),
            _ => None,
        }
    }
}

/// `hostgroup_settings.dns`: use of the addresses of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dns {
    /// One at a time: the first that answers.
    #[default]
    First,
    /// All of them, as if each had a row of its own.
    All,
}

impl Dns {
    fn named(name: &str) -> Option<Self> {
        match name {
            "first" => Some(Self::First),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

/// `hostgroup_settings.balance`: what decides which server of a hostgroup is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// Weights alone, in turn.
    #[default]
    Weight,
    /// Connections in use, for its weight.
    LeastOutstanding,
    /// How soon it answers, times what it has to do, for its weight.
    Latency,
}

impl Balance {
    /// In `hostgroup_settings`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weight => "weight",
            Self::LeastOutstanding => "least_outstanding",
            Self::Latency => "latency",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Weight, Self::LeastOutstanding, Self::Latency]
            .into_iter()
            .find(|one| one.name() == name)
    }
}

/// Purposes for which the binary logs of a hostgroup's servers are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogUse {
    /// `hostgroup_settings.causal_reads`: they tell what a server has executed that has no reader at
    /// `gtid_port`.
    pub causal_reads: bool,
    /// `hostgroup_settings.cache_invalidate`: they tell which tables anybody has changed, whose
    /// answers then are of no use.
    pub cache_invalidate: bool,
}

impl LogUse {
    /// Either's.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            causal_reads: self.causal_reads || other.causal_reads,
            cache_invalidate: self.cache_invalidate || other.cache_invalidate,
        }
    }
}

/// Where statements of a hostgroup go while nobody serves there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// `fallback_hostgroup`.
    pub hostgroup: u32,
    /// `fallback_writes`: what may write goes there as well.
    pub writes: bool,
    /// `return_after_ms`: milliseconds that somebody must have served again before they return.
    pub return_after_ms: u32,
}

/// `servers_defaults`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServersDefaults {
    /// `mysql_servers.weight`.
    pub weight: Option<u32>,
    /// `mysql_servers.max_connections`.
    pub max_connections: Option<u32>,
    /// `mysql_servers.use_ssl`.
    pub use_ssl: Option<bool>,
}

impl HostgroupAttributes {
    /// The row it was made from, if there is one.
    #[must_use]
    pub fn row(&self) -> Option<&HostgroupAttributesRow> {
        self.row.as_deref()
    }

    pub(super) fn check(
        row: HostgroupAttributesRow,
        refusals: &mut Refusals,
        notices: &mut Notices,
    ) -> Self {
        let key = || format!("hostgroup_id {}", row.hostgroup_id);
        let unset = HostgroupAttributesRow::default();
        let clients = "is kept, but has no effect: autocommit is as each client sets it";
        let travel = "is kept, but has no effect: what a session has set is brought to every connection that serves it";
        let without_effect = [
            ("autocommit", row.autocommit != unset.autocommit, clients),
            (
                "ignore_session_variables",
                !matches!(row.ignore_session_variables.trim(), "" | "[]"),
                travel,
            ),
        ];
        let set = without_effect.into_iter().filter(|(_, set, _)| *set);
        set.for_each(|(column, _, words)| notices.add(key, column, words));
        let mut settings = Members::of(
            &row.hostgroup_settings,
            "hostgroup_settings",
            &key,
            refusals,
        );
        let handle_warnings = settings
            .number("handle_warnings", (0, 1))
            .map(|value| value == 1);
        let monitor_slave_lag_when_null = settings.lag_when_null();
        let max_connections = settings.number("max_connections", (1, i64::from(u32::MAX) - 1));
        let statements_per_sec =
            settings.number("statements_per_sec", (1, i64::from(crate::RATE_MAX)));
        let pipelining = settings.number("pipelining", (0, 64)).unwrap_or(0);
        let admission = settings.admission(pipelining);
        let proxy_protocol = settings
            .number("proxy_protocol", (0, 2))
            .map_or(0, |version| version as u8);
        let writers = settings.word("writers", Writers::named, "'first', 'none' or 'all'");
        let fallback = settings.fallback(row.hostgroup_id);
        let replay = settings.replay();
        let balance = settings.balance();
        let dns = settings.dns();
        let slow_start_ms = settings.number("slow_start_ms", (0, 3_600_000));
        let weight_zero = settings.weight_zero();
        let log_use = settings.log_use();
        let reads_see_writes = settings.reads_see_writes();
        let split = settings.split();
        if split
            .as_ref()
            .is_some_and(|split| i64::from(split.read_hostgroup) == row.hostgroup_id)
        {
            settings
                .refuse("has a 'read_hostgroup' that is this hostgroup: nothing would be split");
        }
        settings.end();
        let defaults = Members::of(&row.servers_defaults, "servers_defaults", &key, refusals);
        let servers_defaults = defaults.servers_defaults();
        let ignored = names(&row.ignore_session_variables).unwrap_or_else(|words| {
            refusals.add(key, "ignore_session_variables", words);
            Box::default()
        });
        let autocommit: i8 = refusals.number(key, "autocommit", row.autocommit, (-1, 1));
        Self {
            max_num_online_servers: refusals.number(
                key,
                "max_num_online_servers",
                row.max_num_online_servers,
                (0, 1_000_000),
            ),
            autocommit: (autocommit >= 0).then_some(autocommit == 1),
            free_connections_pct: Some(refusals.number(
                key,
                "free_connections_pct",
                row.free_connections_pct,
                (0, 100),
            )),
            init_connect: (!row.init_connect.is_empty()).then(|| row.init_connect.as_str().into()),
            multiplex: refusals.flag(key, "multiplex", row.multiplex),
            connection_warming: refusals.flag(key, "connection_warming", row.connection_warming),
            throttle_connections_per_sec: refusals.number(
                key,
                "throttle_connections_per_sec",
                row.throttle_connections_per_sec,
                (1, 1_000_000),
            ),
            ignore_session_variables: ignored,
            handle_warnings,
            max_connections,
            statements_per_sec,
            admission,
            pipelining,
            split,
            proxy_protocol,
            monitor_slave_lag_when_null,
            writers: writers.unwrap_or_default(),
            fallback,
            replay,
            weight_zero: weight_zero.unwrap_or_default(),
            balance: balance.unwrap_or_default(),
            dns: dns.unwrap_or_default(),
            slow_start_ms: slow_start_ms.unwrap_or_default(),
            log_use,
            reads_see_writes,
            servers_defaults,
            row: Some(Box::new(row)),
        }
    }
}

fn names(json: &str) -> Result<Box<[Box<str>]>, String> {
    if json.is_empty() {
        return Ok(Box::default());
    }
    serde_json::from_str::<Vec<String>>(json)
        .map(|names| {
            names
                .into_iter()
                .map(|name| name.to_ascii_lowercase().into())
                .collect()
        })
        .map_err(|_| r#"must be a JSON array of names such as ["sql_mode"]"#.into())
}

/// The members of a JSON object in a column: each is taken once; what nobody took is refused.
struct Members<'a, K: Fn() -> String> {
    members: serde_json::Map<String, Value>,
    column: &'static str,
    key: &'a K,
    refusals: &'a mut Refusals,
}

impl<'a, K: Fn() -> String> Members<'a, K> {
    fn of(json: &str, column: &'static str, key: &'a K, refusals: &'a mut Refusals) -> Self {
        let members = match serde_json::from_str(json) {
            _ if json.is_empty() => serde_json::Map::new(),
            Ok(Value::Object(members)) => members,
            Ok(_) => {
                refusals.add(key, column, "must be a JSON object such as {}");
                serde_json::Map::new()
            }
            Err(error) => {
                refusals.add(key, column, format!("must be JSON or empty: {error}"));
                serde_json::Map::new()
            }
        };
        Self {
            members,
            column,
            key,
            refusals,
        }
    }

    fn number(&mut self, name: &str, (min, max): (i64, i64)) -> Option<u32> {
        let value = self.members.remove(name)?;
        let fitting = value.as_i64().filter(|value| (min..=max).contains(value));
        if fitting.is_none() {
            let words =
                format!("has '{name}', which must be from {min} to {max}; '{value}' is not");
            self.refusals.add(self.key, self.column, words);
        }
        fitting.and_then(|value| u32::try_from(value).ok())
    }

    fn word<T>(&mut self, name: &str, named: impl Fn(&str) -> Option<T>, which: &str) -> Option<T> {
        let value = self.members.remove(name)?;
        let known = value.as_str().and_then(named);
        if known.is_none() {
            let words = format!("has '{name}', which must be {which}; '{value}' is not");
            self.refusals.add(self.key, self.column, words);
        }
        known
    }

    fn refuse(&mut self, words: &str) {
        self.refusals.add(self.key, self.column, words);
    }

    fn split(&mut self) -> Option<Split> {
        Split::take(&mut self.members, |words| {
            self.refusals.add(self.key, self.column, words)
        })
        .flatten()
    }

    fn fallback(&mut self, own: i64) -> Option<Fallback> {
        let hostgroup = self.number("fallback_hostgroup", (0, HOSTGROUP_MAX));
        let writes = self.number("fallback_writes", (0, 1));
        let return_after_ms = self.number("return_after_ms", (0, 86_400_000));
        if hostgroup.is_some_and(|hostgroup| i64::from(hostgroup) == own) {
            self.refuse("has a 'fallback_hostgroup' that is this hostgroup");
        }
        if hostgroup.is_none() && (writes.is_some() || return_after_ms.is_some()) {
            self.refuse("has 'fallback_writes' or 'return_after_ms' without 'fallback_hostgroup'");
        }
        Some(Fallback {
            hostgroup: hostgroup?,
            writes: writes == Some(1),
            return_after_ms: return_after_ms.unwrap_or(0),
        })
    }

    fn replay(&mut self) -> Option<Replay> {
        const SIZE_MAX: i64 = 1 << 30;
        let said = self.number("transaction_replay", (0, 1));
        let before = self.members.len();
        let max_size = self.number("transaction_replay_max_size", (1, SIZE_MAX));
        let attempts = self.number("transaction_replay_attempts", (1, 1000));
        let timeout_ms = self.number("transaction_replay_timeout_ms", (1, 3_600_000));
        let on_deadlock = self.number("transaction_replay_retry_on_deadlock", (0, 1));
        let which = "'full', 'no_insert_id' or 'result_only'";
        let checksum = self.word("transaction_replay_checksum", Checksum::named, which);
        let table = "a table as 'schema.table', of letters, digits, '_' and '$'";
        let marks = self.word("transaction_replay_marks", quoted, table);
        if said.is_none() && self.members.len() < before {
            self.refuse("has members of 'transaction_replay' without 'transaction_replay'");
        }
        let usual = Replay::default();
        (said == Some(1)).then(|| Replay {
            max_size: max_size.unwrap_or(usual.max_size),
            attempts: attempts.unwrap_or(usual.attempts),
            timeout_ms: timeout_ms.unwrap_or(usual.timeout_ms),
            retry_on_deadlock: on_deadlock == Some(1),
            checksum: checksum.unwrap_or_default(),
            marks,
        })
    }

    fn lag_when_null(&mut self) -> Option<u32> {
        self.number("monitor_slave_lag_when_null", (0, 604_800))
    }

    fn dns(&mut self) -> Option<Dns> {
        self.word("dns", Dns::named, "'first' or 'all'")
    }

    fn weight_zero(&mut self) -> Option<WeightZero> {
        self.word("weight_zero", WeightZero::named, "'never' or 'last'")
    }

    fn balance(&mut self) -> Option<Balance> {
        let ways = "'weight', 'least_outstanding' or 'latency'";
        self.word("balance", Balance::named, ways)
    }

    fn admission(&mut self, pipelining: u32) -> Admission {
        let order = self.word("admission", Order::named, "'fifo' or 'priority'");
        let queue_max = self.number("queue_max", (0, 1_000_000));
        let queue_ms = self.number("queue_ms", (0, 3_600_000));
        Admission {
            order: order.unwrap_or_default(),
            queue_max: queue_max.unwrap_or_default(),
            queue_ms: queue_ms.unwrap_or_default(),
            concurrency: self.concurrency(pipelining),
        }
    }

    fn concurrency(&mut self, pipelining: u32) -> Option<Concurrency> {
        let named = |word: &str| match word {
            "off" => Some(false),
            "adaptive" => Some(true),
            _ => None,
        };
        let adapts = self.word("concurrency", named, "'off' or 'adaptive'") == Some(true);
        let bounds =
            ["concurrency_min", "concurrency_max"].map(|name| self.number(name, (1, 100_000)));
        if !adapts {
            if bounds != [None; 2] {
                self.refuse(
                    "has 'concurrency_min' or 'concurrency_max' without 'concurrency': 'adaptive'",
                );
            }
            return None;
        }
        if pipelining > 1 {
            self.refuse(
                "has 'concurrency' beside 'pipelining': statements that share a connection are not counted one by one",
            );
        }
        let usual = Concurrency::default();
        let (min, max) = match bounds {
            [Some(min), Some(max)] => (min, max),
            [Some(min), None] => (min, usual.max.max(min)),
            [None, max] => {
                let max = max.unwrap_or(usual.max);
                (usual.min.min(max), max)
            }
        };
        if min > max {
            self.refuse(&format!(
                "has 'concurrency_min' above 'concurrency_max': {min} and {max}"
            ));
        }
        Some(Concurrency { min, max })
    }

    fn reads_see_writes(&mut self) -> bool {
        let named = |word: &str| match word {
            "time" => Some(false),
            "gtid" => Some(true),
            _ => None,
        };
        let said = self.word("read_after_write", named, "'time' or 'gtid'");
        said.unwrap_or_default()
    }

    fn servers_defaults(mut self) -> ServersDefaults {
        let defaults = ServersDefaults {
            weight: self.number("weight", (0, 10_000_000)),
            max_connections: self.number("max_connections", (0, i64::from(u32::MAX))),
            use_ssl: self.number("use_ssl", (0, 1)).map(|value| value == 1),
        };
        self.end();
        defaults
    }

    fn log_use(&mut self) -> LogUse {
        let mut by_log = |name: &str, usual: &str| {
            let named = |word: &str| match word {
                "binlog" => Some(true),
                word => (word == usual).then_some(false),
            };
            let which = format!("'{usual}' or 'binlog'");
            self.word(name, named, &which).unwrap_or_default()
        };
        LogUse {
            causal_reads: by_log("causal_reads", "reader"),
            cache_invalidate: by_log("cache_invalidate", "proxy"),
        }
    }

    fn end(self) {
        for name in self.members.keys() {
            self.refusals.add(
                self.key,
                self.column,
                format!("has '{name}', which is not known"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Servers;

    #[test]
    fn the_json_columns_are_read_and_what_is_in_them_is_checked() {
        let row = HostgroupAttributesRow {
            hostgroup_id: 7,
            autocommit: 0,
            ignore_session_variables: r#"["SQL_MODE","time_zone"]"#.into(),
            hostgroup_settings: r#"{"handle_warnings":0,"pipelining":16,"max_connections":40}"#
                .into(),
            servers_defaults: r#"{"weight":5,"use_ssl":1}"#.into(),
            ..HostgroupAttributesRow::default()
        };
        let servers = Servers::build([], [row.clone()], []).unwrap();
        let attributes = &servers.hostgroup(7).unwrap().attributes;
        assert_eq!(attributes.autocommit, Some(false));
        assert_eq!(
            attributes
                .ignore_session_variables
                .iter()
                .map(|n| &**n)
                .collect::<Vec<_>>(),
            ["sql_mode", "time_zone"]
        );
        assert_eq!(
            (
                attributes.handle_warnings,
                attributes.pipelining,
                attributes.max_connections
            ),
            (Some(false), 16, Some(40))
        );
        let defaults = ServersDefaults {
            weight: Some(5),
            max_connections: None,
            use_ssl: Some(true),
        };
        assert_eq!(attributes.servers_defaults, defaults);
        assert_eq!(servers.attributes_rows(), [row]);
    }

    #[test]
    fn a_limit_of_connections_that_is_no_number_of_them_is_refused() {
        for strange in ["0", "-1", "4294967295", "1.5", "\"40\"", "null", "true"] {
            let row = HostgroupAttributesRow {
                hostgroup_id: 7,
                hostgroup_settings: format!("{{\"max_connections\":{strange}}}"),
                ..HostgroupAttributesRow::default()
            };
            let refusals = Servers::build([], [row], []).unwrap_err();
            let words = refusals
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ");
            assert!(
                words.contains("'max_connections', which must be from 1 to 4294967294"),
                "{strange}: {words}"
            );
        }
    }

    #[test]
    fn what_is_read_elsewhere_may_have_to_show_what_was_written() {
        let sees = |settings: &str| {
            let row = HostgroupAttributesRow {
                hostgroup_id: 7,
                hostgroup_settings: settings.into(),
                ..HostgroupAttributesRow::default()
            };
            let servers = Servers::build([], [row], []);
            servers.map(|servers| servers.hostgroup(7).unwrap().attributes.reads_see_writes)
        };
        assert_eq!(sees(r#"{"read_after_write": "gtid"}"#), Ok(true));
        assert_eq!(sees(r#"{"read_after_write": "time"}"#), Ok(false));
        assert_eq!(sees("{}"), Ok(false));
        assert!(sees(r#"{"read_after_write": 1}"#).is_err());
    }

    #[test]
    fn logs_are_followed_for_what_is_said() {
        let logs = |settings: &str| {
            let row = HostgroupAttributesRow {
                hostgroup_id: 7,
                hostgroup_settings: settings.into(),
                ..HostgroupAttributesRow::default()
            };
            let servers = Servers::build([], [row], []);
            servers.map(|servers| servers.hostgroup(7).unwrap().attributes.log_use)
        };
        assert_eq!(logs("{}").unwrap(), LogUse::default());
        let by_log = logs(r#"{"causal_reads": "binlog"}"#).unwrap();
        assert!(by_log.causal_reads && !by_log.cache_invalidate);
        let by_log = logs(r#"{"cache_invalidate": "binlog", "causal_reads": "reader"}"#).unwrap();
        assert!(by_log.cache_invalidate && !by_log.causal_reads);
        let refusals = logs(r#"{"causal_reads": "log"}"#).unwrap_err();
        let words = refusals[0].to_string();
        assert!(
            words.contains("'causal_reads', which must be 'reader' or 'binlog'"),
            "{words}"
        );
    }

    #[test]
    fn who_waits_and_how_many_are_let_in_is_said_for_each_hostgroup() {
        let admission = |settings: &str| {
            let row = HostgroupAttributesRow {
                hostgroup_id: 7,
                hostgroup_settings: settings.into(),
                ..HostgroupAttributesRow::default()
            };
            let servers = Servers::build([], [row], []);
            let words = |refusals: Vec<crate::Refusal>| refusals[0].to_string();
            servers
                .map(|servers| servers.hostgroup(7).unwrap().attributes.admission)
                .map_err(words)
        };
        let unused = admission("{}").unwrap();
        assert!(unused == Admission::default() && !unused.is_used());
        assert_eq!(
            admission(
                r#"{"admission":"priority","queue_max":9,"queue_ms":100,"concurrency":"adaptive"}"#
            ),
            Ok(Admission {
                order: Order::Priority,
                queue_max: 9,
                queue_ms: 100,
                concurrency: Some(Concurrency { min: 4, max: 1000 }),
            })
        );
        let bounds = |settings: &str| {
            let bounds = admission(&format!(r#"{{"concurrency":"adaptive",{settings}}}"#));
            bounds.map(|one| one.concurrency.map(|one| (one.min, one.max)))
        };
        assert_eq!(bounds(r#""concurrency_max":2"#), Ok(Some((2, 2))));
        assert_eq!(bounds(r#""concurrency_min":2000"#), Ok(Some((2000, 2000))));
        for (settings, words) in [
            (r#""concurrency_min":9,"concurrency_max":8"#, "9 and 8"),
            (r#""pipelining":2"#, "beside 'pipelining'"),
            (r#""concurrency_min":0"#, "must be from 1 to 100000"),
        ] {
            let said = bounds(settings).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
        for (settings, words) in [
            (r#"{"concurrency_min":9}"#, "without 'concurrency'"),
            (r#"{"concurrency":7}"#, "must be 'off' or 'adaptive'"),
            (r#"{"admission":"lifo"}"#, "must be 'fifo' or 'priority'"),
        ] {
            let said = admission(settings).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn strange_members_are_refused() {
        let row = HostgroupAttributesRow {
            ignore_session_variables: "{}".into(),
            hostgroup_settings: r#"{"handle_warnings":7,"x":1}"#.into(),
            servers_defaults: "nonsense".into(),
            ..HostgroupAttributesRow::default()
        };
        let refusals = Servers::build([], [row], []).unwrap_err();
        let columns: Vec<_> = refusals.iter().map(|refusal| refusal.column).collect();
        assert_eq!(
            columns,
            [
                "hostgroup_settings",
                "hostgroup_settings",
                "servers_defaults",
                "ignore_session_variables"
            ]
        );
    }
}
