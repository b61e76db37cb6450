//! Things done without any command.
//!
//! - `adopt`: another configuration; `hear`: words of other cores.
//! - `sweep`: now and then; `ping`, `warm`: idle connections are asked, or opened ahead.
//! - `crowded`: a server takes no more prepared statements.

pub(crate) mod adopt;
pub(crate) mod crowded;
pub(crate) mod hear;
pub(crate) mod ping;
pub(crate) mod sweep;
pub(crate) mod warm;
