//! The events log: statements, written to files by a thread that may wait for a disk. See docs/features/events-log.md.
#![forbid(unsafe_code)]

mod file;
mod json;
mod log;
mod show;

pub use log::{Letter, Log};
pub use show::{Unshown, show};
