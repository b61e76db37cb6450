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
mod placed;
mod probe;
mod seen;
mod twins;

pub use checks::{Checked, Fault, Limits};
pub use kinds::{Aurora, Galera, Group, Kind, Pace, Standing, kind};
pub use names::{Address, Elsewhere, Whereabouts, addresses};
pub use placed::{Behind, Place, Placed, Policy, Serves, Why, placed};
pub use probe::{Rows, fuzz_probe, heartbeat_question, lag_question, lags};
pub use seen::{Lag, Observed, Peers, Reach, Role, Seen, ServerKey, Told};
