//! One core of the data plane: it accepts clients and lives their sessions. Read `life/live.rs`
//! first.
#![forbid(unsafe_code)]

mod beside;
mod command;
mod core;
mod decide;
mod forward;
mod known;
mod life;
mod login;
mod memory;
mod obey;
mod partitions;
mod reach;
mod replay;
mod scripts;
mod seen;
mod session;
mod statement;
mod talk;

pub use crate::core::peers::{FromPeer, Peer};
pub use crate::core::{Core, Kept, Setup, Wants, mailboxes};
pub use crate::life::serve::run;
pub use crate::seen::audit::Audits;
pub use crate::seen::events::Hand;
pub use crate::seen::traces::TakeTraced;
pub use crate::talk::kill::core_of;
