//! A fleet: proxies with one truth in a store. Each looks into it when something is written, takes
//! over what is later than what it has, and says what it has.
//!
//! | to see | read |
//! |---|---|
//! | how this proxy stands in it | `standing.rs`, by `membership.rs` |
//! | taking over what is later | `follow.rs` |
//! | a LOAD for all | `load.rs` |
//! | which rows are secret, and the key | `secrets.rs` |
//! | limits that hold for all | `shares.rs` |
//! | the table, and the history | `show.rs` |
//! | the store, and who is right | the crate `fleet` |

mod follow;
mod load;
mod membership;
mod secrets;
mod shares;
mod show;
mod standing;

pub(crate) use load::{Reach, Share};
pub(super) use membership::Membership;
