//! Room for one more connection to a server: two limits, over all cores together. A server has
//! `max_connections` of its row; a hostgroup may have `max_connections` in its
//! `hostgroup_settings`, for all of its servers together. In a fleet this proxy has a share of each.

use rt::permits::{Permits, Registry};
use std::sync::Arc;

/// A hostgroup without a limit of its own.
pub(crate) const UNLIMITED: u32 = u32::MAX;

/// Counts that one connection is part of: at its server, and in its hostgroup, whether or not that
/// has a limit (it may get one).
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) of_server: Arc<Permits>,
    pub(crate) of_group: Arc<Permits>,
}

impl Room {
    /// Of a server in a hostgroup: one that is in two hostgroups counts in each by itself.
    pub(crate) fn of(registry: &Registry, hostgroup: u32, host: &str, port: u16) -> Self {
        Self {
            of_server: registry.shared(&format!("server {hostgroup} {host}:{port}")),
            of_group: registry.shared(&format!("hostgroup {hostgroup}")),
        }
    }

    /// A connection is closed.
    pub(crate) fn give(&self) {
        self.of_server.give();
        self.of_group.give();
    }
}
