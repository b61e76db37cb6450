//! What clients do to their connections, for the audit log.

use bridge::Audited;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Takes what clients do to the log's thread. It does not wait; `false` if there was no room.
pub type Audits = Arc<dyn Fn(Audited) -> bool + Send + Sync>;

/// This core's clients, as the audit log sees them.
pub(crate) struct Auditor {
    pub(crate) hand: Audits,
    /// When sessions came, in microseconds since 1970, by their number: of those that have come while
    /// there was a log.
    pub(crate) came: RefCell<HashMap<u32, u64>>,
}

impl Auditor {
    pub(crate) fn new(hand: Audits) -> Self {
        Self {
            hand,
            came: RefCell::default(),
        }
    }
}
