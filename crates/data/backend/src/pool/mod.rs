//! All servers of this core, and the connections that wait there: taken, given back, lent to other cores.

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
