//! A command under way: values and pure functions. None of them knows a session or a core.

pub(crate) mod ahead;
pub(crate) mod asked;
pub(crate) mod cursor;
pub(crate) mod cut;
pub(crate) mod dynamic;
pub(crate) mod follower;
pub(crate) mod in_sql;
pub(crate) mod job;
pub(crate) mod prepared;
pub(crate) mod preparing;
pub(crate) mod reads;
pub(crate) mod settings;
pub(crate) mod trouble;
pub(crate) mod withheld;
pub(crate) mod writes;
