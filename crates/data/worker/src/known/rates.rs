//! Rates of users, hostgroups and rules, with their turns over all cores.

use hashbrown::HashMap;
use rt::permits::{Permits, Registry};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Counters of the rates that statements have asked for under a configuration. The locks of the
/// registry are taken once for each.
#[derive(Default)]
pub(crate) struct Rates {
    users: RefCell<HashMap<Box<str>, Arc<Permits>>>,
    hostgroups: RefCell<HashMap<u32, Arc<Permits>>>,
    rules: RefCell<HashMap<i64, Arc<Permits>>>,
}

impl fmt::Debug for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rates").finish_non_exhaustive()
    }
}

/// Whose rate it is.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    User(&'a str),
    Hostgroup(u32),
    Rule(i64),
}

impl fmt::Display for Whose<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "user {name}"),
            Self::Hostgroup(id) => write!(f, "hostgroup {id}"),
            Self::Rule(id) => write!(f, "rule {id}"),
        }
    }
}

impl Rates {
    pub(crate) fn of(&self, whose: Whose<'_>, registry: &Registry) -> Arc<Permits> {
        let new = || registry.shared(&format!("rate of {whose}"));
        match whose {
            Whose::User(name) => {
                let mut users = self.users.borrow_mut();
                let known = users.entry_ref(name);
                known.or_insert_with(new).clone()
            }
            Whose::Hostgroup(id) => {
                let mut hostgroups = self.hostgroups.borrow_mut();
                hostgroups.entry(id).or_insert_with(new).clone()
            }
            Whose::Rule(id) => {
                let mut rules = self.rules.borrow_mut();
                rules.entry(id).or_insert_with(new).clone()
            }
        }
    }
}
