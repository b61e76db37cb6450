//! All servers of this core, and the connections that wait there.
//!
//! - `pools`: all of them. `own_modes`, `greeting`, `serving`, `report`: what is known of them.
//! - `admit`: who is before whom. `take`, `release`: an idle connection goes out and comes back.
//! - `lend`, `borrow`: one goes to another core, or comes from there.

pub(crate) mod admit;
pub(crate) mod borrow;
pub(crate) mod greeting;
pub(crate) mod lend;
pub(crate) mod own_modes;
pub(crate) mod pools;
pub(crate) mod release;
pub(crate) mod report;
pub(crate) mod serving;
pub(crate) mod take;
