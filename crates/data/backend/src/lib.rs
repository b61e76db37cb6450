//! Connections to servers: open one, share it, bring a session's state onto it, and know why it
//! cannot be shared. The path of a command: [`Pools::acquire`] → [`Backend::sync`] → send → learn →
//! [`Pools::release`].
#![forbid(unsafe_code)]

mod acquire;
mod admission;
mod ask;
mod backend;
mod bring;
mod choice;
mod chooser;
mod connect;
mod crowded;
mod ends;
mod exactly;
mod failure;
mod flight;
mod full;
mod glimpse;
mod gtids;
mod hold;
mod key;
mod kill;
mod killing;
mod lane;
mod lease;
mod left;
mod lend;
mod linger;
mod login;
mod meant;
mod own;
mod pace;
mod passwords;
mod ping;
mod place;
#[cfg(feature = "planted")]
pub mod planted;
mod pools;
mod prepare;
mod prepared;
mod queue;
mod relayed;
mod reset;
mod room;
mod said;
mod server;
mod settings;
mod shares;
mod slots;
mod spare;
mod state;
mod sync;
mod tally;
#[cfg(test)]
mod testing;
mod through;
mod track;
mod variables;
mod want;
mod warm;

pub use acquire::Spare;
pub use ask::Shown;
pub use backend::{Backend, Idle, NOBODY};
pub use connect::{any_init_connect, init_connect, probe_when_silent};
pub use exactly::Seen;
pub use failure::BackendFailed;
pub use gtids::ask_for_the_same_gtids;
pub use hold::{Answered, Hold, Holds, MODES, is_call, is_select};
pub use killing::Killing;
pub use lane::{ANSWER_LEN_MAX, Execution, Joined, Landed, Lane, Request};
pub use lease::{Lasting, Lease, Local, Unread, Unreported};
pub use lend::{Speak, Word};
pub use linger::Lingers;
pub use own::{Owned, is_only_about_user_lock, is_only_user_lock};
pub use place::Place;
pub use pools::{OwnModes, Pools, SHIFTING};
pub use prepared::{Bindings, Interest, Prepared, Remembered, Statements};
pub use relayed::{Greeted, NotLetIn};
pub use slots::{is_ours, slot_name};
pub use state::{Names, Sees, State, UserValue};
pub use sync::begins_otherwise;
pub use tally::Tally;
pub use variables::{
    ACCESS, CHARSET_VARIABLES, DEFAULT, ISOLATION, ROLE, characteristic, value_len_max,
};
pub use want::{Executes, Like, Shows, Tracking, Want};
