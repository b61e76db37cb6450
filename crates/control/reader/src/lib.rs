//! Servers' binary logs, followed. [`follow`] does it; `millrace binlog-reader` tells others what
//! comes of it. [`follow_table`] has the rows of one table.
//!
//! `follow.rs` follows one server; `serve.rs` has clients, and what they are told; `wish.rs` has the
//! flags.
//!
//! docs/features/binlog-reader.md
#![forbid(unsafe_code)]

mod follow;
mod serve;
mod wish;

pub use follow::{Changed, Server, Told, follow, follow_table};
pub use wish::{Wish, run};
