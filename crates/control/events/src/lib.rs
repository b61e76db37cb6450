//! The events log and the audit log: statements and clients, written to files by a thread that may
//! wait for a disk (docs/features/events-log.md, docs/features/audit-log.md); and lines for an operator.
#![forbid(unsafe_code)]

mod audit;
mod file;
mod hand;
mod json;
pub mod lines;
mod log;
mod messages;
mod scripts;
mod show;

pub use hand::{hand_audited, hand_over, write_what_is_left};
pub use log::{Letter, Log};
pub use show::{Unshown, show};
