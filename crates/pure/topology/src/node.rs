//! Words of nodes about themselves, by the kind of their cluster.

/// Row of an instance about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Aurora {
    /// Its `SESSION_ID` is `MASTER_SESSION_ID`.
    pub is_writer: bool,
    /// Milliseconds that it is taken to be behind.
    pub lag_ms: u32,
    /// Milliseconds that it says.
    pub said_ms: u32,
}

/// Variables and status of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Galera {
    /// `wsrep_cluster_status` is `Primary`.
    pub is_primary: bool,
    /// `wsrep_ready`.
    pub is_ready: bool,
    /// `wsrep_local_state`: 1 joining, 2 donor or desynced, 3 joined, 4 synced.
    pub local_state: u32,
    /// `wsrep_local_recv_queue`.
    pub recv_queue: u32,
    /// `read_only`.
    pub read_only: bool,
    /// `wsrep_desync`.
    pub desync: bool,
    /// `wsrep_reject_queries` is not `NONE`.
    pub rejects: bool,
    /// `wsrep_sst_donor_rejects_queries`.
    pub donor_rejects: bool,
    /// `pxc_maint_mode` is not `DISABLED`; only Percona's nodes have it.
    pub in_maintenance: bool,
}

/// Rows of a member about itself and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Group {
    /// `MEMBER_STATE` is `ONLINE`.
    pub is_online: bool,
    /// Whether the member can reach more than half of the members.
    pub has_quorum: bool,
    /// `MEMBER_ROLE` is `PRIMARY`.
    pub is_primary: bool,
    /// `read_only`.
    pub read_only: bool,
    /// `COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE`.
    pub queue: u32,
}
