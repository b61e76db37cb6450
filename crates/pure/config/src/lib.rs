//! Rows of the operator's tables to one immutable [`Snapshot`]: checked, compiled, ready for
//! lookups.
//!
//! Every `build` gathers all it has to refuse and then answers either the whole or all the
//! refusals: nothing is half applied. What was accepted and has less effect than its row says is
//! told as notices.
#![forbid(unsafe_code)]

mod admission;
mod clickhouse;
mod events;
mod fast_routing;
mod feeds;
mod firewall;
mod folders;
mod http_hosts;
mod networks;
mod pattern;
mod proxies;
mod refusal;
mod rest;
mod rewrites;
mod rows;
mod rules;
mod schedule;
mod scripts;
mod servers;
mod shards;
mod snapshot;
mod split;
mod spreads;
mod traces;
mod users;
mod variables;

pub use self::scripts::{
    BucketRunner, FILE, Given, LOG4LUA_CONFIG, OnError, Script, ScriptApi, ScriptRow, Scripts,
    Serves, Setting,
};
pub use self::shards::{
    ShardLookupRow, ShardPartitionRow, ShardTableRow, shard_map, shard_map_with,
};
pub use ::shards::Declared as ShardRows;
pub use admission::{Admission, Concurrency, Order, PRIORITY_MAX, PRIORITY_USUAL};
pub use clickhouse::{ClickhouseUser, ClickhouseUsers};
pub use events::{AuditLog, EventsForm, EventsLog, Logs};
pub use fast_routing::FastRouting;
pub use feeds::{CausalReads, CausedBy};
pub use firewall::{Firewall, Mode};
pub use folders::{Folders, Place};
pub use http_hosts::HttpHosts;
pub use networks::in_networks;
pub use pattern::{Dialect, GaveUp, Pattern, Replacement, fuzz_pattern, fuzz_replacement};
pub use proxies::Proxies;
pub use refusal::Refusal;
pub use rest::RestRoutes;
pub use rewrites::Rewrites;
pub use rows::AuroraHostgroupRow;
pub use rows::{ClickhouseSettingsRow, ClickhouseUserRow};
pub use rows::{FastRoutingRow, FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow};
pub use rows::{GaleraHostgroupRow, GroupReplicationHostgroupRow, QuartetRow};
pub use rows::{
    HostgroupAttributesRow, ProxyRow, ReplicationHostgroupRow, RewriteRow, RuleRow, ServerRow,
    SslParamsRow, UserRow,
};
pub use rows::{RestRouteRow, SchedulerRow};
pub use rules::{
    AddressPattern, Alone, Asked, Candidate, Candidates, Help, Memo, Repeats, Rule, Rules, Step,
};
pub use schedule::Schedule;
pub use servers::{AlsoReads, Aurora, Quartet, Topology, TopologyKind, TopologyRows};
pub use servers::{
    Balance, CheckType, Checksum, Dns, Fallback, Hostgroup, HostgroupAttributes, LogUse, Replay,
    Replication, Server, Servers, ServersDefaults, SslParams, Status, WeightZero, Writers,
};
pub use snapshot::Snapshot;
use snapshot::{RATE_MAX, rate};
pub use split::Split;
pub use spreads::{SpreadCount, SpreadWidth, Spreads};
pub use traces::{Collector, Traces};
pub use users::{
    Attributes, CausalScope, Certificate, PartitionChanges, Password, Transactions, User, Users,
    UsersBuilder,
};
pub use variables::{
    Effect, Kind, REGISTRY, Variable, Variables, credentials, interfaces, is_known_to_everybody,
    only_from_here,
};
