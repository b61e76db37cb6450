//! A core and a client from their beginning to their end.

pub(crate) mod keeper;
pub(crate) mod live;
pub(crate) mod orders;
pub(crate) mod peers;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod settle;
