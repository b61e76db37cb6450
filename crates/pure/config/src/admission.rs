//! Rules for those who wait for a hostgroup's servers: in which order and for how long, and how many statements
//! each of them gets at once.

use serde_json::Value;

/// The highest priority of a statement; the lowest is 0.
pub const PRIORITY_MAX: u8 = 10;
/// Priority of a statement for which neither its user nor a rule names one.
pub const PRIORITY_USUAL: u8 = 5;

/// `admission`, `queue_max`, `queue_ms` and `concurrency` of `hostgroup_settings`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admission {
    /// Order in which statements wait.
    pub order: Order,
    /// `queue_max`: so many statements wait at most, all cores together; 0 for no bound.
    pub queue_max: u32,
    /// `queue_ms`: milliseconds that a statement waits at most; 0 for
    /// mysql-connect_timeout_server_max alone.
    pub queue_ms: u32,
    /// Bounds of the limit of statements in flight at each server, if there is one.
    pub concurrency: Option<Concurrency>,
}

/// `hostgroup_settings.admission`: order in which statements wait for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Order of their coming.
    #[default]
    Fifo,
    /// By priority, then by what they usually cost.
    Priority,
}

/// `concurrency_min` and `concurrency_max`, where `concurrency` is `adaptive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// The limit is never lower.
    pub min: u32,
    /// The limit is never higher.
    pub max: u32,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { min: 4, max: 1000 }
    }
}

impl Order {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "fifo" => Some(Self::Fifo),
            "priority" => Some(Self::Priority),
            _ => None,
        }
    }
}

impl Admission {
    /// Whether anything but the order of coming decides who waits, and for how long.
    #[must_use]
    pub fn is_used(&self) -> bool {
        *self != Self::default()
    }
}

/// Reads the member `priority` of `attributes`. What is wrong is told in words that follow its
/// name.
pub(crate) fn priority(value: &Value) -> Result<u8, String> {
    let fitting = value
        .as_u64()
        .and_then(|priority| u8::try_from(priority).ok());
    fitting
        .filter(|priority| *priority <= PRIORITY_MAX)
        .ok_or_else(|| format!("must be a whole number from 0 to {PRIORITY_MAX}; {value} is not"))
}
