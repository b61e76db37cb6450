//! Values that a core counts and tells: statistics, the events log, the audit log, traces. None of them
//! knows a session.

pub(crate) mod audit;
pub(crate) mod compare;
pub(crate) mod events;
pub(crate) mod stats;
pub(crate) mod traces;
