//! Rows of the operator's tables to one immutable [`Snapshot`]: checked, compiled, ready for
//! lookups.
//!
//! Every `build` gathers all it has to refuse and then answers either the whole or all the
//! refusals: nothing is half applied. What was accepted and has less effect than its row says is
//! told as notices.
#![forbid(unsafe_code)]

mod events;
mod fast_routing;
mod firewall;
mod networks;
mod pattern;
mod proxies;
mod refusal;
mod rewrites;
mod rows;
mod rules;
mod servers;
mod snapshot;
mod split;
mod users;
mod variables;

pub use events::{EventsForm, EventsLog};
pub use fast_routing::FastRouting;
pub use firewall::{Firewall, Mode};
pub use networks::in_networks;
pub use pattern::{Dialect, GaveUp, Pattern, Replacement, fuzz_pattern, fuzz_replacement};
pub use proxies::Proxies;
pub use refusal::Refusal;
pub use rewrites::Rewrites;
pub use rows::{FastRoutingRow, FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow};
pub use rows::{
    HostgroupAttributesRow, ProxyRow, RewriteRow, RuleRow, ServerRow, SslParamsRow, UserRow,
};
pub use rules::{
    AddressPattern, Alone, Asked, Candidate, Candidates, Help, Memo, Rule, Rules, Step,
};
pub use servers::{
    Hostgroup, HostgroupAttributes, Server, Servers, ServersDefaults, SslParams, Status,
};
pub use snapshot::Snapshot;
pub use split::Split;
pub use users::{Attributes, Certificate, Password, User, Users, UsersBuilder};
pub use variables::{Effect, Kind, REGISTRY, Variable, Variables, interfaces};
