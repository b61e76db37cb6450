//! The events log: statements, written to files by a thread that may wait for a disk
//! (docs/features/events-log.md); and lines for an operator.
#![forbid(unsafe_code)]

mod file;
mod json;
pub mod lines;
mod log;
mod show;

pub use log::{Letter, Log};
pub use show::{Unshown, show};
