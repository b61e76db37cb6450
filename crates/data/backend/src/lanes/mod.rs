//! Several statements in flight on one connection.

pub(crate) mod join;
pub(crate) mod run;
