//! What a core counts of statements: by digest, by class, by error.

mod commands;
mod digests;
mod errors;

pub(crate) use commands::Commands;
pub(crate) use digests::{Digests, Seen};
pub(crate) use errors::Errors;
