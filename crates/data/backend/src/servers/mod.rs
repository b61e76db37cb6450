//! A server as this core knows it, whoever is connected to it.
//!
//! - `server`: an address, and whether it is well; `said`: what it has said of itself.
//! - `room`: limits of connections; `flight`: limits of statements in flight.
//! - `choice`: what is known for the choice among servers.

pub(crate) mod choice;
pub(crate) mod flight;
pub(crate) mod room;
pub(crate) mod said;
pub(crate) mod server;
