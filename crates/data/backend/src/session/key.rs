//! For whom a connection was opened.

use std::net::IpAddr;
use std::rc::Rc;
use wire::caps;

/// For whom a connection was opened: those who are equal in this may share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) user: Rc<str>,
    /// Capability bits that a connection cannot change any more.
    pub(crate) caps: caps::Caps,
    /// The client for whom we speak, where servers are told by the PROXY protocol.
    pub(crate) client: Option<IpAddr>,
}

/// Capabilities that follow the client, because they change what statements mean or answer.
pub(crate) const OF_CLIENT: caps::Caps = caps::FOUND_ROWS
    | caps::NO_SCHEMA
    | caps::LOCAL_FILES
    | caps::IGNORE_SPACE
    | caps::INTERACTIVE
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS
    | caps::EXPIRED_PASSWORDS
    // What it allows to set, a session without it would find set.
    | caps::OPTIONAL_METADATA;
