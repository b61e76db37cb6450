//! Connections that are opened.
//!
//! - `taken`: room for one; `connect`: a usual one; `relayed`: one whose client proves who it is.
//! - `kill`: one on which a server is told to end something.

pub(crate) mod connect;
pub(crate) mod kill;
pub(crate) mod relayed;
pub(crate) mod taken;
