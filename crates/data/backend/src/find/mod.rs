//! A command gets its connection.

pub(crate) mod acquire;
pub(crate) mod copies;
pub(crate) mod exactly;
pub(crate) mod pace;
pub(crate) mod through;
