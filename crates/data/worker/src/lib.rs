//! One core of the data plane: it accepts clients and lives their sessions. Read `session.rs`
//! first.
#![forbid(unsafe_code)]

mod beside;
mod command;
mod core;
mod forward;
mod known;
mod login;
mod memory;
mod obey;
mod partitions;
mod replay;
mod scripts;
mod seen;
mod session;
mod statement;

pub use crate::core::peers::{FromPeer, Peer};
pub use crate::core::{Core, Kept, MakePartition, Setup, mailboxes, run};
pub use crate::seen::audit::Audits;
pub use crate::seen::events::Hand;
pub use crate::seen::traces::TakeTraced;
pub use crate::session::kill::core_of;
