//! Scripts on a core, and those in a session's way.
//!
//! docs/features/scripts.md

pub(crate) mod chain;
pub(crate) mod collected;
pub(crate) mod connections;
pub(crate) mod door;
pub(crate) mod files;
pub(crate) mod home;
pub(crate) mod host;
pub(crate) mod rows;
pub(crate) mod servers;
pub(crate) mod timers;
