//! What cores say to each other of their connections.

use crate::cores::lent::Lent;
use rt::Instant;
use std::sync::Arc;
use wire::caps::Caps;

/// Message from one core's pools to another's.
#[derive(Debug)]
pub enum Word {
    /// Somebody waits for an idle connection.
    Wanted(Wanted),
    /// Here is one.
    Lent(Box<Lent>),
    /// There is none to spare: the number of the wish.
    NotLent(u64),
    /// A server has said what it can do.
    Met(Met),
    /// A server has no room for another prepared statement: a number of whoever waits for it.
    Crowded(Crowded, u64),
    /// Answer to [`Word::Crowded`], with its number: what nobody needed there was closed.
    Uncrowded(u64),
    /// A slot of a hostgroup's server is free.
    Slot(u32),
    /// The last who waits for a hostgroup is to leave.
    Shed(u32),
}

/// A server that has as many prepared statements as it may.
#[derive(Debug, Clone)]
pub struct Crowded {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    /// How many those are, as far as it says so.
    pub(crate) allowed: Option<u32>,
}

/// Word of what a server's greeting has told, to whoever has not met it.
#[derive(Debug, Clone)]
pub struct Met {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    pub(crate) bulk: bool,
}

/// Connection that somebody waits for.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub(crate) hostgroup: u32,
    /// Of this server, whose turn it is; of any if `None`.
    pub(crate) at: Option<(Arc<str>, u16)>,
    pub(crate) user: Arc<str>,
    pub(crate) caps: Caps,
    /// Of the asking core; 0 when nobody waits for the answer itself.
    pub(crate) number: u64,
    pub(crate) why: Why,
}

/// Why somebody asks the other cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Wish for a connection in place of a new one: the asking core would open one.
    Spare,
    /// For a copy, of which no client may know.
    Copies,
    /// No room is left at its servers: one that fits nobody is to be closed for it.
    NoRoom,
    /// So many were opened in this second. Nothing is to be closed for that; what comes free is for
    /// it before those who have waited less.
    Pace {
        /// Since when it waits.
        since: Instant,
    },
}
