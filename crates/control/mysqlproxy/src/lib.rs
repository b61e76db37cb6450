//! The options of MySQL Proxy, for who comes from there: what is said on a command line or in a
//! `--defaults-file` becomes rows in memory, for one process.
//!
//! docs/features/scripts.md
#![forbid(unsafe_code)]

mod address;
mod asked;
mod declared;
mod folder;
mod given;
mod ini;
mod said;

pub use folder::Files;
pub use given::Given;
pub use said::{Own, Wish};
