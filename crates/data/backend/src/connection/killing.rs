//! A statement or connection that a server is to end.

use crate::connection::place::Place;
use config::Snapshot;
use net::Secret;
use rt::Address;
use std::net::SocketAddr;
use std::rc::Rc;

/// A connection to a server whose statement is to end, and who may say so.
pub struct Killing {
    /// Where it leads.
    pub place: Rc<Place>,
    /// The address there: by its name, another server might be found that knows the number, too.
    pub address: Address,
    /// Our end of it, as the server was to see it: by that it is told from another of the same
    /// number.
    pub our_end: Address,
    /// The server's number of it.
    pub thread_id: u32,
    /// Only the statement; else the connection.
    pub statement_only: bool,
    /// As whom it was opened: nobody else may end it.
    pub user: String,
    /// The password.
    pub secret: Secret,
    /// The client for whom it was opened.
    pub client: Option<SocketAddr>,
    /// Timeouts and TLS.
    pub snapshot: Snapshot,
}

impl std::fmt::Debug for Killing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Killing {} of {:?}", self.thread_id, self.place)
    }
}
