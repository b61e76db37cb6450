//! Several proxies with one configuration: each looks at the others' checksums and takes over what
//! is newer than its own.
//!
//! | to see | read |
//! |---|---|
//! | which modules are shared | `subjects.rs` |
//! | whether something is taken over | `decide.rs` |
//! | what a checksum is of | `sums.rs`, made by `settle.rs` |
//! | what is known of all proxies | `knowledge.rs`, of another one `peer.rs` |
//! | looking at another proxy | `look.rs`, over `line.rs` |
//! | giving a module away, and taking one over | `take.rs`, in `pieces.rs` |
//! | the tables | `show.rs` |
//! | one truth for all in a store | `fleet/` |
//! | ProxySQLs among the others | `proxysql/` |

mod decide;
mod fleet;
mod knowledge;
mod look;
mod peer;
mod pieces;
mod proxysql;
mod settle;
mod show;
mod subjects;
mod sums;
mod take;
#[cfg(test)]
mod tests;

pub(crate) use fleet::{Reach, Share};
pub(crate) use knowledge::{Arrived, Cluster};
pub(crate) use proxysql::check_version;
pub(crate) use subjects::MILLRACE;
