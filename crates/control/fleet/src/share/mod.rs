//! Limits that hold for a whole fleet.
//!
//! | to see | read |
//! |---|---|
//! | who gives, and who gets | `settle.rs` |
//! | what a proxy obeys and says | `partner.rs` |
//! | what stands in the store | `ledger.rs` |

mod ledger;
mod partner;
mod settle;
#[cfg(test)]
mod simulation;

pub use ledger::{Ledger, Limit, Need, Part, Report};
pub use partner::{Partner, Use};
pub use settle::{LIMITS_MAX, MEMBERS_MAX, settle};
