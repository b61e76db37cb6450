//! Who serves where, and why. *Declared* is what the operator wants ([`config::Servers`]), *observed*
//! what checks have seen of the servers ([`Observed`]), *placed* what follows ([`placed`]). The last
//! is a pure function of the first two: every core and the admin port compute the same.
//!
//! docs/decisions/0032-declared-observed-placed.md
#![forbid(unsafe_code)]

mod checks;
mod kinds;
mod members;
mod moved;
mod names;
mod node;
mod place;
mod placed;
mod probe;
mod seen;
mod twins;

pub use checks::{Checked, Fault, Limits};
pub use kinds::{Kind, Pace, Standing, kind};
pub use names::{Address, Whereabouts, addresses};
pub use node::{Aurora, Galera, Group};
pub use place::{Behind, Elsewhere, Place, Placed, Policy, Serves, Why};
pub use placed::placed;
pub use probe::{
    NUMBER_QUESTION, Rows, channels, fuzz_probe, has_applied_all, heartbeat_question, lag_question,
    lags,
};
pub use seen::{Channels, Lag, Observed, Peers, Reach, Role, Seen, ServerKey, Told};
