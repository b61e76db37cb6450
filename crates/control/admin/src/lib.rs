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
mod adding;
mod answer;
mod aside;
mod authority;
mod automatic;
mod beside;
mod build;
#[cfg(test)]
mod careful;
mod cluster;
pub mod commands;
mod cores;
mod desk;
mod digests;
#[cfg(test)]
mod durability;
pub mod engine;
mod events;
mod extended;
pub mod file;
#[cfg(test)]
mod firewall;
mod force;
mod functions;
#[cfg(test)]
mod golden;
pub mod grid;
mod health;
#[cfg(test)]
mod honest;
mod hooks;
mod hscale;
mod kept;
mod layers;
mod learn;
mod loading;
mod moves;
mod observe;
mod open;
mod partitions;
mod parts;
mod private;
#[cfg(test)]
mod published;
mod records;
mod refresh;
mod route;
mod rows;
mod said;
#[cfg(test)]
mod scripts;
mod serve;
mod session;
mod shape;
mod shared;
mod splits;
pub mod tables;
mod taken;
#[cfg(test)]
mod testing;
mod verbs;

pub use access::{socket_mode, traffic, web_address};
pub use hooks::{CheckScript, Hooks, Renewed, Told};
pub use observe::STACK_BYTES;
pub use open::{Admin, Findings, Laid, Options, Recall, Start, check};
pub use private::keep_private;
