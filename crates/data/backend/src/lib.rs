//! Connections to servers: open one, share it, bring a session's state onto it, and know why it
//! cannot be shared. The path of a command: [`Pools::acquire`] → [`Backend::sync`] → send → learn →
//! [`Pools::release`].
//!
//! Folders from the ground up; each knows those before it, and none behind it:
//!
//! 1. `session`: what a session has and wants, `servers`: what is known of a server.
//! 2. `connection`: one connection, and what is said on it.
//! 3. `cores`: what cores say to each other, `hostgroup`: who waits, and who is chosen.
//! 4. `pool`: all servers, and their idle connections.
//! 5. `open`: new connections, `find`: a connection for a command, `lanes`: one for several.
//! 6. `upkeep`: things done without any command.
#![forbid(unsafe_code)]

mod connection;
mod cores;
mod failure;
mod find;
mod hostgroup;
mod lanes;
mod open;
#[cfg(debug_assertions)]
pub mod planted;
mod pool;
mod servers;
mod session;
mod tally;
#[cfg(test)]
mod testing;
mod upkeep;

pub use connection::ask::Shown;
pub use connection::backend::{Backend, Idle, NOBODY};
pub use connection::gtids::ask_for_the_same_gtids;
pub use connection::killing::Killing;
pub use connection::lease::{Lasting, Lease, Local, Unread, Unreported};
pub use connection::place::Place;
pub use connection::slots::{is_ours, slot_name};
pub use cores::neighbours::Speak;
pub use cores::word::Word;
pub use failure::BackendFailed;
pub use find::copies::Spare;
pub use find::exactly::Seen;
pub use hostgroup::lane::{ANSWER_LEN_MAX, Execution, Joined, Landed, Lane, Request};
pub use hostgroup::linger::Lingers;
pub use open::connect::{any_init_connect, init_connect, probe_when_silent};
pub use open::relayed::{Greeted, NotLetIn};
pub use pool::own_modes::{OwnModes, SHIFTING};
pub use pool::pools::Pools;
pub use session::hold::{Answered, Hold, Holds, MODES, is_call, is_select};
pub use session::need::begins_otherwise;
pub use session::own::{Owned, is_only_about_user_lock, is_only_user_lock};
pub use session::prepared::{Bindings, Interest, Prepared, Remembered, Statements};
pub use session::state::{Names, Sees, State, UserValue};
pub use session::variables::{
    ACCESS, CHARSET_VARIABLES, DEFAULT, ISOLATION, ROLE, characteristic, value_len_max,
};
pub use session::want::{Executes, Like, Shows, Tracking, Want};
pub use tally::Tally;
