//! Connections that other cores wait for.

use crate::connection::backend::Backend;
use crate::connection::lease::Unreported;
use crate::cores::neighbours::LEND_WAY;
use crate::cores::word::{Wanted, Why};
use crate::session::key::Key;
use rt::Instant;
use std::cell::RefCell;
use std::time::Duration;

/// So long a wish that could not be granted is remembered: who still waits asks again before.
const REMEMBERED: Duration = Duration::from_millis(60);
/// Wishes of other cores that a hostgroup remembers.
const WISHES_MAX: usize = 64;

/// A wish of another core.
struct Wish {
    core: u32,
    wanted: Wanted,
    at: Instant,
}

/// Wishes that other cores have of a hostgroup.
#[derive(Default)]
pub(crate) struct Wishes(RefCell<Vec<Wish>>);

impl Wishes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub(crate) fn remember(&self, core: u32, wanted: Wanted, now: Instant) {
        let mut all = self.0.borrow_mut();
        // One for each core, reason and kind: who waits first there.
        let same = |wish: &Wish| {
            let (one, other) = (&wish.wanted, &wanted);
            let reason = std::mem::discriminant(&one.why) == std::mem::discriminant(&other.why);
            wish.core == core && reason && one.caps == other.caps && one.user == other.user
        };
        all.retain(|wish| !same(wish) && now - wish.at < REMEMBERED);
        if all.len() < WISHES_MAX {
            all.push(Wish {
                core,
                wanted,
                at: now,
            });
        }
    }

    /// Whether somebody there waits for the pace, whom a connection of this kind would serve.
    pub(crate) fn wants(&self, key: &Key, now: Instant) -> bool {
        let is_wanted = |wish: &Wish| {
            let wanted = &wish.wanted;
            matches!(wanted.why, Why::Pace { .. })
                && now - wish.at < REMEMBERED
                && key.client.is_none()
                && key.caps == wanted.caps
                && *key.user == *wanted.user
        };
        self.0.borrow().iter().any(is_wanted)
    }

    /// The oldest wish that this connection would grant, of those that are older than who waits
    /// here since then: `room` says it of those who want room.
    pub(crate) fn take_for(
        &self,
        backend: &Backend,
        now: Instant,
        room: bool,
        since: Option<Instant>,
    ) -> Option<(u32, Wanted)> {
        let mut all = self.0.borrow_mut();
        if all.is_empty() {
            return None;
        }
        all.retain(|wish| now - wish.at < REMEMBERED);
        let is_first = |why| match why {
            Why::Pace { since: theirs } => since.is_none_or(|since| theirs + LEND_WAY < since),
            Why::Spare | Why::Copies | Why::NoRoom => room,
        };
        let at = all
            .iter()
            .position(|wish| is_first(wish.wanted.why) && is_fit(backend, &wish.wanted))?;
        let wish = all.remove(at);
        Some((wish.core, wish.wanted))
    }
}

/// Could the session that asks bring its state there? Whoever takes it there says that in the end.
pub(crate) fn is_fit(backend: &Backend, wanted: &Wanted) -> bool {
    backend.key.caps == wanted.caps && *backend.key.user == *wanted.user && may_travel(backend)
}

/// Whether a connection may go to another core. What only this core can know does not travel; nor
/// does a compressed stream, nor what was opened for the clients of one address.
pub(crate) fn may_travel(backend: &Backend) -> bool {
    backend.key.client.is_none()
        && backend.local.owned.is_none()
        && backend.local.unreported == Unreported::Nothing
        && !backend.local.strange_variables
        && backend.conn.compression().is_none()
}
