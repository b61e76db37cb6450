//! The runtime of a core: executor, timers, sockets and mailboxes over io_uring, epoll or a simulated world.
#![allow(unsafe_code, reason = "this crate is where the kernel is met; every block says why it is sound")]

mod address;
pub mod local;
pub mod mailbox;
pub mod permits;
mod seam;

pub use address::{Address, NotAnAddress};
pub use seam::*;
