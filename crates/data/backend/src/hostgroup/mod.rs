//! A hostgroup on this core.
//!
//! - `group`: all of it. `queue`, `admission`: who waits; `linger`: who could leave.
//! - `chooser`: which server is next; `full`, `shares`, `spare`: who has room.
//! - `lane`: connections on which several statements are in flight.

pub(crate) mod admission;
pub(crate) mod chooser;
pub(crate) mod full;
pub(crate) mod group;
pub(crate) mod lane;
pub(crate) mod linger;
pub(crate) mod queue;
pub(crate) mod shares;
pub(crate) mod spare;
