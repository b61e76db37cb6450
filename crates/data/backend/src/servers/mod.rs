//! A server as this core knows it, whoever is connected to it.

pub(crate) mod choice;
pub(crate) mod flight;
pub(crate) mod room;
pub(crate) mod said;
pub(crate) mod server;
