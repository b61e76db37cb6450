//! Several statements in flight on one connection.
//!
//! - `join`: a statement gets in; `run`: the task that sends and reads.

pub(crate) mod join;
pub(crate) mod run;
