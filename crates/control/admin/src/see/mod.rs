//! Tables that are filled when operators read them, and answers that are made of what is known.
//!
//! | to see | read |
//! |---|---|
//! | how a table is filled | `refresh.rs`, with rows by `observe.rs` and `extended.rs` |
//! | what threads beside the cores say | `beside.rs` |
//! | what would become of a statement | `route.rs` |
//! | what has run | `digests.rs`, and `learn.rs` for the firewall |
//! | whether the proxy lives | `health.rs` |

pub(crate) mod beside;
pub(crate) mod digests;
pub(crate) mod extended;
pub(crate) mod health;
pub(crate) mod learn;
pub(crate) mod observe;
pub(crate) mod refresh;
pub(crate) mod route;
