//! What a statement says: its digest, its class, its SET assignments. Functions of the text alone.
#![forbid(unsafe_code)]

pub mod class;
pub mod digest;
pub mod set;
pub mod spooky;
pub mod words;

pub use class::{Class, CommandCounter, Leaves, Reads, class};
pub use digest::{DigestOptions, Digested, digest, digest_with_comment};
