//! The admin port: ProxySQL's tables and commands over SQLite, and the way from rows to what is in
//! force.
//!
//! | to see | read |
//! |---|---|
//! | which tables there are | [`tables`] |
//! | what an operator can say | [`commands`] |
//! | what is done with it | `answer.rs` |
//! | how rows become a snapshot | `parts/`, `build.rs` |
//! | how it all begins | `open.rs` |
//! | how other proxies get it | [`cluster`] |
#![forbid(unsafe_code)]

mod access;
mod answer;
mod aside;
mod build;
mod changed;
mod cluster;
pub mod commands;
mod cores;
mod desk;
pub mod engine;
mod events;
pub mod file;
mod force;
pub mod grid;
mod hooks;
mod kept;
mod layers;
mod loading;
mod open;
mod parts;
mod private;
mod rows;
mod said;
mod see;
mod serve;
mod session;
mod sharding;
mod shared;
pub mod tables;
mod taken;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod verbs;

pub use access::{socket_mode, traffic, web_address};
pub use hooks::{CheckScript, Hooks, Renewed, Told};
pub use open::{Admin, Findings, Laid, Options, Recall, Start, check};
pub use private::keep_private;
pub use see::observe::STACK_BYTES;
