//! Part of this proxy in a fleet: what it knows of the store, and how its modules stand to it.

use crate::cluster::subjects::{At, SUBJECTS};
use fleet::{Books, Seen, Shares};
use rt::Instant;
use rt::local::{Bell, Notify};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// State of a module here, beside its rows in force.
#[derive(Debug, Clone, Default)]
pub(super) struct Own {
    /// The latest generation that was in force here, or is under what was loaded here only,
    pub(super) generation: u64,
    /// and its name.
    pub(super) id: String,
    /// Revision of the truth as it was looked at last: a LOAD replaces nothing that was not.
    pub(super) revision: u64,
    pub(super) is_diverged: bool,
    /// As [`Held`] has it.
    pub(super) state: &'static str,
    pub(super) error: String,
    /// A truth that could not be used, and when that was tried.
    pub(super) tried: Option<(String, Instant)>,
}

/// The store of a fleet, by the text that names it.
type Named = (String, Option<Rc<Books>>);

/// Part of this proxy in a fleet.
#[derive(Default)]
pub(in crate::cluster) struct Membership {
    pub(super) books: RefCell<Named>,
    pub(super) own: RefCell<[Own; SUBJECTS.len()]>,
    /// Contents of the store at the last look.
    pub(super) seen: RefCell<Option<Seen>>,
    pub(super) looked: Notify,
    /// Since when the store is silent, in seconds since 1970, and why.
    pub(super) lost: RefCell<Option<(u64, String)>>,
    /// Truths that were written here: a look from before one of them has nothing to say.
    pub(super) written: Cell<u64>,
    /// Rings when something was loaded here.
    pub(super) bell: Bell,
    /// Rings then, too: a bell has one listener.
    pub(super) shares_bell: Bell,
    /// Shares of all limits, as the store had them at the last look.
    pub(super) shares: RefCell<Option<Shares>>,
    /// Why limits were not shared out anew, as it was said last.
    pub(super) refused: RefCell<String>,
}

impl Membership {
    pub(in crate::cluster) fn ring(&self) {
        self.bell.ring();
        self.shares_bell.ring();
    }

    pub(super) fn own(&self, at: At) -> Own {
        self.own.borrow().get(at).cloned().unwrap_or_default()
    }

    pub(super) fn with_own<T>(&self, at: At, change: impl FnOnce(&mut Own) -> T) -> Option<T> {
        self.own.borrow_mut().get_mut(at).map(change)
    }
}

/// State of a module when the store has been looked at.
pub(super) struct Stands {
    pub(super) state: &'static str,
    pub(super) error: String,
}

pub(super) fn stands(state: &'static str, error: impl Into<String>) -> Stands {
    Stands {
        state,
        error: error.into(),
    }
}
