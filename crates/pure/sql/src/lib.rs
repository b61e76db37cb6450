//! What a statement says: its digest, its class, its SET assignments. Functions of the text alone.
#![forbid(unsafe_code)]

pub mod class;
mod counters;
pub mod digest;
mod functions;
mod kill;
pub mod literal;
mod marks;
mod reading;
pub mod set;
pub mod spooky;
pub mod tables;
mod volatile;
pub mod user_variables;
pub mod words;

pub use class::{Class, class, class_without_escapes};
pub use counters::CommandCounter;
pub use digest::{DigestOptions, Digested, digest, digest_with_comment};
pub use kill::{Kill, kill};
pub use marks::{Leaves, Reads};
pub use reading::{Against, Lexing, Routine, Unread, fuzz_reading, reading};
pub use tables::{names, tables_read};
pub use volatile::is_volatile;
