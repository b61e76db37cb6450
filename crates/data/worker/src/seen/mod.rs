//! What a core counts and tells of its sessions: statistics, the events log, the audit log, traces, and the
//! operator's log.

pub(crate) mod audit;
pub(crate) mod complaints;
pub(crate) mod events;
pub(crate) mod firewall;
pub(crate) mod internal;
pub(crate) mod received;
pub(crate) mod stats;
pub(crate) mod traces;
