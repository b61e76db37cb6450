//! A client's command is obeyed, by way of the scripts if there are any.

pub(crate) mod statistics;
