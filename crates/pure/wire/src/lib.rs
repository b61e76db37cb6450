//! The MySQL client/server protocol as MySQL 9 and MariaDB 11 speak it: bytes to values and back.
//!
//! Both directions: we are a server to our clients and a client to our servers. Nothing here does
//! I/O; every `read` is total (bytes from the network never panic) and borrows where it can.
//!
//! | to see | read |
//! |---|---|
//! | how bytes are cut into packets | [`packet`] |
//! | compression | [`frame`] |
//! | for whom a balancer speaks | [`proxied`] |
//! | how somebody gets in | [`handshake`], [`auth`], [`crypt`], [`connect_attributes`] |
//! | what a client may ask | [`command`], [`execute`], [`moved`], [`attributes`] |
//! | where the answer ends | [`response`] (the hot path) |
//! | a file that a client sends | [`infile`] |
//! | where commands begin, and no more | [`upstream`] |
//! | what an answer says | [`ok`], [`resultset`], [`outline`], [`types`] |
//! | names of numbers | [`caps`], [`status`], [`errors`], [`charset`] |
#![forbid(unsafe_code)]

pub mod attributes;
pub mod auth;
pub mod bulk;
pub mod caps;
pub mod charset;
mod codes;
mod collations;
pub mod command;
pub mod connect_attributes;
pub mod crypt;
pub mod definition;
pub mod downstream;
pub mod ed25519;
pub mod errors;
pub mod execute;
pub mod frame;
pub mod handshake;
pub mod infile;
pub mod moved;
pub mod ok;
pub mod outline;
pub mod packet;
pub mod proxied;
pub mod read;
mod read_text;
pub mod response;
pub mod resultset;
pub mod roles;
pub mod row_cells;
pub mod row_stream;
pub mod rows;
pub mod status;
pub mod track;
pub mod types;
pub mod upstream;
pub mod write;

/// Bytes that are not what the protocol promises at this point. The peer is broken, hostile, or out
/// of step: the connection they came from cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Words for what was being read and what was wrong with it; they contain nothing that the peer
    /// sent.
    pub what: &'static str,
}

impl Malformed {
    /// Names what was wrong.
    pub const fn new(what: &'static str) -> Self {
        Self { what }
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed packet: {}", self.what)
    }
}

impl std::error::Error for Malformed {}
