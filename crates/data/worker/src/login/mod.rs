//! From an accepted socket to a session, and whom a session becomes: logins by password, by certificate and
//! by the server, compression, a change of user, and sessions of another process.

pub(crate) mod certificate;
pub(crate) mod change_user;
pub(crate) mod console;
pub(crate) mod door;
pub(crate) mod forget;
pub(crate) mod greet;
pub(crate) mod moving;
pub(crate) mod packing;
pub(crate) mod relayed;
pub(crate) mod schemas;
