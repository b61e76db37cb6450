//! Beside the client's own statements: copies for mirrors, sessions with nothing between their sockets, and
//! who follows a server's log.

pub(crate) mod mirror;
pub(crate) mod replica;
pub(crate) mod through;
