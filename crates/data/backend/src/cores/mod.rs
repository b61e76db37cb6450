//! Cores and each other's connections.
//!
//! - `word`: what they say; `lent`: a connection on its way; `wish`: those that are waited for.
//! - `neighbours`: the other cores, as this one reaches them.

pub(crate) mod lent;
pub(crate) mod neighbours;
pub(crate) mod wish;
pub(crate) mod word;
