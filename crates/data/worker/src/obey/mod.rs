//! A client's command is obeyed, by way of the scripts if there are any.

pub(crate) mod alive;
pub(crate) mod command;
pub(crate) mod servers;
pub(crate) mod shown;
pub(crate) mod statistics;
