//! What stands in the store of limits that hold for a whole fleet, as JSON: the ledger that one proxy
//! writes, and what each says of itself.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A proxy's need of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u32, u32)", into = "(u32, u32, u32, u32)")]
pub struct Need {
    /// The limit, as its configuration has it.
    pub max: u32,
    /// Most that it has used lately,
    pub used: u32,
    /// and most that had to wait for more.
    pub waiting: u32,
    /// All that it has, or may take without asking.
    pub held: u32,
}

impl Need {
    /// All that it would use.
    pub fn all(self) -> u32 {
        self.used.saturating_add(self.waiting)
    }
}

impl From<(u32, u32, u32, u32)> for Need {
    fn from((max, used, waiting, held): (u32, u32, u32, u32)) -> Self {
        Self {
            max,
            used,
            waiting,
            held,
        }
    }
}

impl From<Need> for (u32, u32, u32, u32) {
    fn from(need: Need) -> Self {
        (need.max, need.used, need.waiting, need.held)
    }
}

/// Report of a proxy on its limits, for as long as it lives.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Other at each start.
    pub uuid: String,
    /// The machine and the port for operators.
    pub name: String,
    /// The ledger that it obeys.
    pub turn: u64,
    /// By limit; those that it hardly uses are left out, unless the ledger has them.
    pub needs: BTreeMap<String, Need>,
}

/// Part of a limit that one proxy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u64)", into = "(u32, u32, u64)")]
pub struct Part {
    /// Its share.
    pub share: u32,
    /// All that it may have: what it had before its share was lowered, until it says that it has
    /// less.
    // share <= most
    pub most: u32,
    /// The turn in which the share was lowered last.
    pub since: u64,
}

impl From<(u32, u32, u64)> for Part {
    fn from((share, most, since): (u32, u32, u64)) -> Self {
        Self { share, most, since }
    }
}

impl From<Part> for (u32, u32, u64) {
    fn from(part: Part) -> Self {
        (part.share, part.most, part.since)
    }
}

/// A limit, and who has how much of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// All that there is.
    pub budget: u32,
    /// In the order of [`Ledger::members`].
    pub parts: Vec<Part>,
}

/// Who has how much of each limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Grows with each writing.
    pub turn: u64,
    /// Uuids of the proxies that have parts, in order.
    pub members: Vec<String>,
    /// By name.
    pub limits: BTreeMap<String, Limit>,
}

impl Ledger {
    /// Whether this proxy has parts.
    pub fn has(&self, uuid: &str) -> bool {
        self.at(uuid).is_some()
    }

    fn at(&self, uuid: &str) -> Option<usize> {
        self.members.iter().position(|member| member == uuid)
    }

    /// The part of a proxy of a limit, if both are in the ledger.
    pub fn part(&self, limit: &str, uuid: &str) -> Option<Part> {
        let limit = self.limits.get(limit)?;
        limit.parts.get(self.at(uuid)?).copied()
    }
}
