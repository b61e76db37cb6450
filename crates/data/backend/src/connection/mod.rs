//! A connection to a server, and all that we say on it ourselves.
//!
//! - `backend`: the connection; `place`: the server in its hostgroup; `lease`: what is known of a
//!   connection, by how long that lasts; `slots`: names of ours there.
//! - `ask`, `left`, `track`, `gtids`, `glimpse`: what a server tells of it.
//! - `settings`, `reset`, `bring`: another state; `prepare`: statements there.
//! - `ends`: when it is given back by itself; `killing`, `meant`: which one a server is to end.

pub(crate) mod ask;
pub(crate) mod backend;
pub(crate) mod bring;
pub(crate) mod ends;
pub(crate) mod glimpse;
pub(crate) mod gtids;
pub(crate) mod killing;
pub(crate) mod lease;
pub(crate) mod left;
pub(crate) mod meant;
pub(crate) mod place;
pub(crate) mod prepare;
pub(crate) mod reset;
pub(crate) mod settings;
pub(crate) mod slots;
pub(crate) mod track;
