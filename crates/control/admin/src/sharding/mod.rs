//! Sharded tables on the admin port: `HSCALE …`, and partitions that are added, moved, or made by themselves.
//!
//! | to see | read |
//! |---|---|
//! | what an operator says | `hscale.rs` |
//! | what is added, and what is in its way | `adding.rs` |
//! | columns besides the key that tell where rows are | `lookups.rs` |
//! | how a move goes on | `moves.rs`, with its `records.rs` |
//! | which rows go, and the map at the cut | `splits.rs` |
//! | two that come together, and the map at the cut | `merges.rs` |
//! | what is made by itself | `automatic.rs` |
//! | tables that get other names | `renames.rs` |
//! | a partition's server and its gate | `partitions.rs` |

pub(crate) mod adding;
pub(crate) mod automatic;
pub(crate) mod hscale;
pub(crate) mod lookups;
pub(crate) mod merges;
pub(crate) mod moves;
pub(crate) mod partitions;
pub(crate) mod records;
pub(crate) mod renames;
pub(crate) mod splits;
