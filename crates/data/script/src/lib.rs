//! Lua between a client and its server: scripts as MySQL Proxy had them, and those of `require("millrace")`.
//!
//! A core has one [`Vm`]. Each client has a [`Scripted`] for each script that serves it: an
//! environment of its own, in which the script's main chunk has run. Whoever lives the session asks
//! [`Scripted::read_query`] for each command, sends what is queued, and hands each answer to
//! [`Scripted::read_query_result`]. Nothing here waits, reads a clock or touches a disk.
//!
//! docs/features/scripts.md
#![forbid(unsafe_code)]

mod api;
mod ask;
mod bench;
mod buckets;
pub mod cli;
mod constants;
mod fuzz;
mod host;
mod meaning;
mod modules;
mod natives;
mod now;
mod outcome;
mod packed;
mod passage;
mod patterns;
mod proto;
mod response;
mod scripted;
mod sees;
mod shared;
mod text;
mod tokens;
mod url;
mod vm;

pub use ask::{Ask, Connect, FileAsk, HttpWish, Reply};
pub use buckets::bucket;
pub use fuzz::fuzz_handed_back;
pub use host::{Call, Chosen, Failed, Host, Server, Standing, Wishes};
pub use meaning::{Reading, charset};
pub use outcome::{Counts, Outcome};
pub use passage::Passage;
pub use proto::version;
pub use response::{Bad, Response};
pub use scripted::{AtLogin, Decision, Greeted, Item, Route, Scripted, Verdict};
pub use shared::{Keep, Kept, Shared};
pub use text::{Level, hooks_of_the_greeting, is_of_today, judges_logins, may_have_timers};
pub use vm::{Code, Limits, Vm, check};
