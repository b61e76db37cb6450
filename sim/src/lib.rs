//! The simulator: Millrace's own core, fake servers and random clients in one thread, in a world
//! made from a seed.
//!
//! ```text
//!  programme.rs ── client.rs ──> worker::run (what ships) ──> server.rs ── mind.rs
//!       └───────────── judge.rs: the story, and what must never happen ─────┘
//! ```
#![forbid(unsafe_code)]

mod belongings;
mod chance;
mod client;
mod cores;
mod judge;
mod mind;
mod programme;
pub mod scene;
mod scripts;
mod server;
pub mod succession;
mod world;

pub use judge::Verdict;
pub use scripts::Doing;
pub use world::{Weather, World, run};
