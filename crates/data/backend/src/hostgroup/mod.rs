//! A hostgroup on this core: its servers, who waits for them, and who is chosen.

pub(crate) mod admission;
pub(crate) mod chooser;
pub(crate) mod full;
pub(crate) mod group;
pub(crate) mod lane;
pub(crate) mod linger;
pub(crate) mod queue;
pub(crate) mod shares;
pub(crate) mod spare;
