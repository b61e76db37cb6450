//! Connections are opened.

pub(crate) mod connect;
pub(crate) mod kill;
pub(crate) mod relayed;
pub(crate) mod taken;
