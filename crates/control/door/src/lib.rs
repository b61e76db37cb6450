//! A MySQL front door for control threads that answer SQL themselves: the admin port and the
//! embedded SQLite server.
//!
//! The door knows the protocol and its limits; what is behind it is a [`Host`] that knows passwords
//! and makes an [`Answer`] for each client. Nothing here is on the way of the proxied traffic.
#![forbid(unsafe_code)]

mod answer;
pub mod catalog;
mod conn;
pub mod dialect;
pub mod hello;
pub mod listen;
mod login;
mod open;
mod out;
mod session;
pub mod split;
mod statements;

pub use answer::{Answer, Behind, Entry, Host, Prepared, Refused, Who, text};
pub use open::{Door, Limits};
pub use out::{Done, Out};
