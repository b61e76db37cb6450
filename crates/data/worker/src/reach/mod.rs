//! A statement reaches its connection, and finds there what it needs.

pub(crate) mod alike;
pub(crate) mod asked;
pub(crate) mod branch;
pub(crate) mod cutoff;
pub(crate) mod demoted;
pub(crate) mod elsewhere;
pub(crate) mod insert_id;
pub(crate) mod names;
pub(crate) mod prepared;
pub(crate) mod ready;
pub(crate) mod want;
