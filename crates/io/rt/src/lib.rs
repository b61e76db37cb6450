//! The runtime of a core: executor, timers, sockets and mailboxes over io_uring, epoll or a simulated world.
#![allow(unsafe_code, reason = "this crate is where the kernel is met; every block says why it is sound")]

mod address;
mod chunk;
mod conn;
mod core;
mod driver;
mod epoll;
mod executor;
mod io;
pub mod local;
pub mod mailbox;
pub mod permits;
mod random;
mod resolve;
mod select;
pub mod sim;
mod socket;
mod sys;
mod timer;
mod uring;

pub use address::{Address, NotAnAddress};
pub use chunk::{CHUNK_LEN, Chunk};
pub use core::{Elapsed, Instant, Rt};
pub use driver::{Driver, NotADriver, Options, choose, run, run_with};
pub use select::{Either, select};
pub use socket::{ListenOptions, Listener, Socket};
