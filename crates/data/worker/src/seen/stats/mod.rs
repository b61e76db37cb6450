//! What a core counts of statements: by digest, by class, by hostgroup, by error, and what the
//! firewall noticed.

mod alarms;
mod commands;
mod digests;
mod errors;
mod latencies;

pub(crate) use alarms::{Alarmed, Alarms, Raised};
pub(crate) use commands::Commands;
pub(crate) use digests::{Bounds, Digests, Listing, Seen};
pub(crate) use errors::{Errors, Failed};
pub(crate) use latencies::Latencies;
