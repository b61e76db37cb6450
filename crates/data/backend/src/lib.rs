//! Connections to servers: open one, share it, bring a session's state onto it, and know why it
//! cannot be shared. The path of a command: [`Pools::acquire`] → [`Backend::sync`] → send → learn →
//! [`Pools::release`].
#![forbid(unsafe_code)]

mod acquire;
mod admission;
mod ask;
mod backend;
mod choice;
mod connect;
mod crowded;
mod exactly;
mod failure;
mod gtids;
mod hold;
mod kill;
mod lane;
mod lease;
mod left;
mod lend;
mod linger;
mod meant;
mod own;
mod pace;
mod passwords;
mod ping;
mod place;
#[cfg(feature = "planted")]
pub mod planted;
mod pools;
mod prepared;
mod queue;
mod relayed;
mod reset;
mod room;
mod server;
mod slots;
mod state;
mod sync;
mod tally;
#[cfg(test)]
mod testing;
mod through;
mod track;
mod warm;

pub use acquire::Spare;
pub use ask::{Shown, Unread};
pub use backend::{Backend, Idle, NOBODY};
pub use connect::{any_init_connect, init_connect, probe_when_silent};
pub use exactly::Seen;
pub use failure::BackendFailed;
pub use gtids::{Shows, ask_for_the_same_gtids};
pub use hold::{Answered, Hold, Holds, MODES, is_call, is_select};
pub use kill::Killing;
pub use lane::{ANSWER_LEN_MAX, Execution, Joined, Landed, Lane, Request};
pub use lease::{Lasting, Lease, Local, Unreported};
pub use lend::{Speak, Word};
pub use linger::Lingers;
pub use own::{Owned, is_only_about_user_lock, is_only_user_lock};
pub use place::Place;
pub use pools::{Executes, OwnModes, Pools, SHIFTING, Want};
pub use prepared::{Bindings, Interest, Prepared, Remembered, Statements};
pub use relayed::{Greeted, NotLetIn};
pub use slots::{is_ours, slot_name};
pub use state::{CHARSET_VARIABLES, Names, State, UserValue, value_len_max};
pub use sync::{ACCESS, DEFAULT, ISOLATION, ROLE, Sees, begins_otherwise, characteristic};
pub use tally::Tally;
pub use through::Like;
pub use track::Tracking;
