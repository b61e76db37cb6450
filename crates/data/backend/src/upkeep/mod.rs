//! What is done without any command: for another configuration, now and then, or because another core says so.

pub(crate) mod adopt;
pub(crate) mod crowded;
pub(crate) mod hear;
pub(crate) mod ping;
pub(crate) mod sweep;
pub(crate) mod warm;
