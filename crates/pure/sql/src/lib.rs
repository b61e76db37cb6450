//! What a statement says: its digest, its class, its SET assignments. Functions of the text alone.
#![forbid(unsafe_code)]

mod blank;
pub mod class;
mod counters;
mod counts;
pub mod digest;
pub mod dynamic;
mod functions;
pub mod grammar;
mod hidden;
mod injection;
mod inner;
mod kill;
pub mod literal;
mod marks;
mod numbers;
pub mod own;
mod parts;
mod reading;
pub mod set;
mod shift;
pub mod split;
pub mod spooky;
pub mod tables;
mod tail;
pub mod template;
pub mod user_variables;
mod volatile;
pub mod words;

pub use blank::Blank;
pub use class::{Class, class, class_without_escapes};
pub use counters::CommandCounter;
pub use counts::{Counts, fuzz_with_counts, with_counts};
pub use digest::{DigestOptions, Digested, digest, digest_with_comment};
pub use hidden::{Shape, quotes_matter, shape};
pub use injection::{fuzz_injection, injection};
pub use inner::without_inner;
pub use kill::{Kill, Whom, kill};
pub use marks::{Leaves, Reads};
pub use reading::{Against, Lexing, Routine, Unread, calls, fuzz_reading, reading, reads_alike};
pub use shift::Shift;
pub use split::split;
pub use tables::{names, tables_read};
pub use tail::{without_tail, without_tail_of_prepared};
pub use volatile::is_volatile;
