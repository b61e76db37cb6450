//! What stands in the store, as JSON.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A generation of a module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The number: each LOAD has a later one than all before.
    pub generation: u64,
    /// A name that no other generation has, also none of that number.
    pub id: String,
    /// Keys that have its text,
    pub parts: usize,
    /// and how many bytes that is.
    pub bytes: usize,
    /// Of its rows.
    pub checksum: String,
    /// The proxy on which it was loaded.
    pub by: String,
    /// When, in seconds since 1970.
    pub at_s: u64,
    /// The version of that proxy: others may know other tables.
    pub version: String,
    /// Whether the text is sealed.
    pub is_sealed: bool,
}

/// Module as a proxy has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    /// The generation that it has in force, or had last before it diverged; 0 for none.
    pub generation: u64,
    /// The name of that generation.
    pub id: String,
    /// `in force`, `behind`, `diverged`, `back`, `gone`, or `own`: what nobody has written yet.
    pub state: String,
    /// Why it has not what the store has, if it has not.
    pub error: String,
}

impl Held {
    /// Whether this generation is in force there.
    pub fn has(&self, id: &str) -> bool {
        self.state == "in force" && self.id == id
    }
}

/// Status of a proxy as it says itself, for as long as it lives.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Other at each start.
    pub uuid: String,
    /// The machine and the port for operators.
    pub name: String,
    /// Where it listens for operators.
    pub address: String,
    /// Of Millrace.
    pub version: String,
    /// By the module's name.
    pub modules: BTreeMap<String, Held>,
}
