//! The connections that a session keeps, by hostgroup. Most sessions keep none most of the time.

use crate::core::roster::{Entry, Holding, draws};
use backend::{Backend, Hold, Idle, Pools, Unreported};
use rt::Instant;
use sql::{Class, Leaves};

/// Whether others may wait for something that the session has there, or may not see it yet.
pub(crate) fn may_lock(backend: &Backend) -> bool {
    let locks = [
        Hold::Transaction,
        Hold::AutocommitOff,
        Hold::Xa,
        Hold::Branch,
        Hold::TableLock,
        Hold::UserLock,
        Hold::Handler,
        Hold::Routine,
        Hold::Procedure,
        Hold::UnknownState,
        Hold::Untold,
    ];
    locks.iter().any(|hold| backend.holds.has(*hold))
        || backend.local.unreported != Unreported::Nothing
}

/// Connections kept by a session.
#[derive(Default)]
pub(crate) struct Held(pub(crate) Vec<(u32, Box<Backend>)>);

impl Held {
    pub(crate) fn take(&mut self, hostgroup: u32) -> Option<Box<Backend>> {
        let at = self.0.iter().position(|(h, _)| *h == hostgroup)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(crate) fn put(&mut self, hostgroup: u32, mut backend: Box<Backend>) {
        backend.lands();
        self.0.push((hostgroup, backend));
    }

    /// Keeps a connection for as long as anything holds it, and gives back one that nothing does.
    pub(crate) fn keep_or_release(
        &mut self,
        hostgroup: u32,
        mut backend: Box<Backend>,
        pools: &Pools,
    ) {
        if backend.idle == Idle::Proven && !backend.holds.is_empty() {
            pools.has_landed(&mut backend);
            self.put(hostgroup, backend);
        } else {
            pools.release(backend);
        }
    }

    /// One of a server that is cut off.
    pub(crate) fn has_cut_off(&self) -> bool {
        self.0
            .iter()
            .any(|(_, backend)| backend.place().is_cut_off())
    }

    pub(crate) fn take_cut_off(&mut self) -> Option<(u32, Box<Backend>)> {
        let at = self
            .0
            .iter()
            .position(|(_, backend)| backend.place().is_cut_off())?;
        Some(self.0.swap_remove(at))
    }

    /// Those of which this is true.
    pub(crate) fn take_all_that(
        &mut self,
        is: impl Fn(&Backend) -> bool,
    ) -> Vec<(u32, Box<Backend>)> {
        let (taken, left) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(_, backend)| is(backend));
        self.0 = left;
        taken
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Backend)> {
        self.0
            .iter()
            .map(|(hostgroup, backend)| (*hostgroup, &**backend))
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Box<Backend>> {
        self.0.drain(..).map(|(_, backend)| backend)
    }

    /// When the next hold ends that ends by itself.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.0
            .iter()
            .filter_map(|(_, backend)| backend.ends_by_itself())
            .min()
    }

    /// Ends the holds whose time is over; one that nothing holds any more.
    pub(crate) fn take_free(&mut self, now: Instant) -> Option<Box<Backend>> {
        self.0
            .iter_mut()
            .for_each(|(_, backend)| backend.end_in_time(now));
        let at = self
            .0
            .iter()
            .position(|(_, backend)| backend.holds.is_empty())?;
        Some(self.0.swap_remove(at).1)
    }

    /// One that is like this.
    pub(crate) fn take_that(
        &mut self,
        is: impl Fn(u32, &Backend) -> bool,
    ) -> Option<(u32, Box<Backend>)> {
        let at = self
            .0
            .iter()
            .position(|(hostgroup, backend)| is(*hostgroup, backend))?;
        Some(self.0.swap_remove(at))
    }

    /// Those of which this is true are kept for no time any more.
    pub(crate) fn end_delays(&mut self, is: impl Fn(&Backend) -> bool) {
        for (_, backend) in self.0.iter_mut().filter(|(_, backend)| is(backend)) {
            backend.holds.remove(Hold::Delay);
        }
    }

    /// The id of an insert there is over, and not known.
    pub(crate) fn forget_inserts(&mut self) {
        for (_, backend) in self
            .0
            .iter_mut()
            .filter(|(_, backend)| backend.holds.has(Hold::InsertId))
        {
            backend.holds.remove(Hold::InsertId);
            backend.lasting.insert_id = None;
        }
    }

    /// FOUND_ROWS() is about another statement from now on. Whether one of these knew.
    pub(crate) fn end_found_rows(&mut self) -> bool {
        let mut found = false;
        for (_, backend) in self
            .0
            .iter_mut()
            .filter(|(_, backend)| backend.holds.has(Hold::FoundRows))
        {
            backend.holds.remove(Hold::FoundRows);
            found = true;
        }
        found
    }

    /// Whether a statement has left warnings on a connection of ours.
    pub(crate) fn warns(&self, statement: u32) -> bool {
        self.0.iter().any(|(_, backend)| {
            backend.holds.has(Hold::Diagnostics) && backend.local.undisturbed == Some(statement)
        })
    }

    /// Warnings of the statements before this one are over, wherever it went. Whether there were
    /// any.
    pub(crate) fn end_warnings(&mut self, statement: u32) -> bool {
        let mut found = false;
        for (_, backend) in &mut self.0 {
            if backend.holds.has(Hold::Diagnostics) && backend.local.undisturbed != Some(statement)
            {
                backend.holds.remove(Hold::Diagnostics);
                // What the statement that failed has changed is still to be told.
                backend.holds.put(
                    Hold::Unread,
                    backend.holds.has(Hold::Unread)
                        || backend.local.unreported != Unreported::Nothing,
                );
                found = true;
            }
        }
        found
    }

    /// Why, all of them together.
    pub(crate) fn holds(&self) -> impl Iterator<Item = Hold> {
        self.0.iter().flat_map(|(_, backend)| backend.holds.iter())
    }

    pub(crate) fn with(&self, hold: Hold) -> Option<u32> {
        self.0
            .iter()
            .find(|(_, backend)| backend.holds.has(hold))
            .map(|(hostgroup, _)| *hostgroup)
    }

    /// Whether the connection of a hostgroup has this hold.
    pub(crate) fn has(&self, hostgroup: u32, hold: Hold) -> bool {
        self.0
            .iter()
            .any(|(h, backend)| *h == hostgroup && backend.holds.has(hold))
    }

    /// Whether a transaction is open, and not only announced by SET TRANSACTION.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.holds()
            .any(|hold| matches!(hold, Hold::Transaction | Hold::Xa))
    }

    /// Returns the flags by which servers tell of the transactions that are open.
    pub(crate) fn transaction_flags(&self) -> u16 {
        self.0.iter().fold(0, |flags, (_, backend)| {
            flags | backend.holds.transaction_flags()
        })
    }

    /// Where a transaction is open, or the next one is to begin.
    pub(crate) fn transaction(&self) -> Option<u32> {
        self.with(Hold::Transaction)
            .or_else(|| self.with(Hold::Xa))
            .or_else(|| self.with(Hold::NextTransaction))
    }

    /// A connection to the session's own hostgroup that has what others do not have draws all
    /// statements to it: there they are right, elsewhere they would not see it.
    pub(crate) fn lock(&self, default_hostgroup: u32, lock_on_set: bool) -> Option<u32> {
        let (_, backend) = self
            .0
            .iter()
            .find(|(hostgroup, _)| *hostgroup == default_hostgroup)?;
        draws(backend.holds, lock_on_set).then_some(default_hostgroup)
    }

    /// Where the session has its GET_LOCK()s, for a statement that is only about them: what also
    /// reads rows may be of a transaction elsewhere.
    pub(crate) fn user_lock(&self, class: &Class<'_>, text: &[u8]) -> Option<u32> {
        let about = class
            .leaves
            .intersects(Leaves::GET_LOCK | Leaves::RELEASE_LOCK)
            && !class.multi
            && !class.may_write();
        if about && backend::is_only_user_lock(text) {
            self.with(Hold::UserLock)
        } else {
            None
        }
    }
}

impl Entry {
    /// Which connections it holds now, and why.
    pub(crate) fn shows_held(&self, held: &Held, now: Instant) {
        let mut holding = self.holding.borrow_mut();
        if held.is_empty() && holding.is_empty() {
            return;
        }
        let shown = held.iter().map(|(hostgroup, backend)| {
            let server_thread_id = backend.hello.thread_id;
            let before = holding
                .iter()
                .find(|old| old.hostgroup == hostgroup && old.server_thread_id == server_thread_id);
            Holding {
                hostgroup,
                place: backend.place().clone(),
                server_thread_id,
                holds: backend.holds,
                since: before.map_or(now, |old| old.since),
            }
        });
        let shown = shown.collect();
        *holding = shown;
    }
}
