//! What a core counts of statements: by digest, by class, by error, and what the firewall noticed.

mod alarms;
mod commands;
mod digests;
mod errors;

pub(crate) use alarms::{Alarmed, Alarms, Raised};
pub(crate) use commands::Commands;
pub(crate) use digests::{Digests, Seen};
pub(crate) use errors::Errors;
