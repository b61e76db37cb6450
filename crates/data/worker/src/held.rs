//! The connections that a session keeps, by hostgroup. Most sessions keep none most of the time.

use backend::{Backend, Hold, Holds, Unreported};
use rt::Instant;
use sql::{Class, Leaves, Reads};

/// Whether a connection to the user's own hostgroup with these draws all of the session's
/// statements there.
pub(crate) fn draws(holds: Holds, lock_on_set: bool) -> bool {
    let has = |any: &[Hold]| any.iter().any(|hold| holds.has(*hold));
    has(&[
        Hold::TemporaryTable,
        Hold::TableLock,
        Hold::SqlPrepare,
        Hold::Handler,
    ]) || (lock_on_set
        && has(&[
            Hold::UserVariable,
            Hold::Procedure,
            Hold::Untold,
            Hold::UnknownState,
        ]))
}

/// Whether others may wait for something that the session has there, or may not see it yet.
pub(crate) fn may_lock(backend: &Backend) -> bool {
    let locks = [
        Hold::Transaction,
        Hold::AutocommitOff,
        Hold::Xa,
        Hold::TableLock,
        Hold::UserLock,
        Hold::Handler,
        Hold::Routine,
        Hold::Procedure,
        Hold::UnknownState,
        Hold::Untold,
    ];
    locks.iter().any(|hold| backend.holds.has(*hold)) || backend.unreported != Unreported::Nothing
}

/// Connections kept by a session.
#[derive(Default)]
pub(crate) struct Held(Vec<(u32, Box<Backend>)>);

impl Held {
    pub(crate) fn take(&mut self, hostgroup: u32) -> Option<Box<Backend>> {
        let at = self.0.iter().position(|(h, _)| *h == hostgroup)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(crate) fn put(&mut self, hostgroup: u32, backend: Box<Backend>) {
        self.0.push((hostgroup, backend));
    }

    /// One of a server that is cut off.
    pub(crate) fn has_cut_off(&self) -> bool {
        self.0
            .iter()
            .any(|(_, backend)| backend.place().is_cut_off())
    }

    pub(crate) fn take_cut_off(&mut self) -> Option<Box<Backend>> {
        let at = self
            .0
            .iter()
            .position(|(_, backend)| backend.place().is_cut_off())?;
        Some(self.0.swap_remove(at).1)
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
        is: impl Fn(&Backend) -> bool,
    ) -> Option<(u32, Box<Backend>)> {
        let at = self.0.iter().position(|(_, backend)| is(backend))?;
        Some(self.0.swap_remove(at))
    }

    /// One that only what it remembers of a statement keeps, and for long enough, or `at_once`.
    pub(crate) fn take_due(&mut self, now: Instant, at_once: bool) -> Option<(u32, Box<Backend>)> {
        self.take_that(|backend| {
            backend
                .lingers_until()
                .is_some_and(|until| at_once || until <= now)
        })
    }

    /// The id of an insert there is over, and not known.
    pub(crate) fn forget_inserts(&mut self) {
        for (_, backend) in self
            .0
            .iter_mut()
            .filter(|(_, backend)| backend.holds.has(Hold::InsertId))
        {
            backend.holds.remove(Hold::InsertId);
            backend.insert_id = None;
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
            backend.holds.has(Hold::Diagnostics) && backend.undisturbed == Some(statement)
        })
    }

    /// Warnings of the statements before this one are over, wherever it went. Whether there were
    /// any.
    pub(crate) fn end_warnings(&mut self, statement: u32) -> bool {
        let mut found = false;
        for (_, backend) in &mut self.0 {
            if backend.holds.has(Hold::Diagnostics) && backend.undisturbed != Some(statement) {
                backend.holds.remove(Hold::Diagnostics);
                // What the statement that failed has changed is still to be told.
                backend.holds.put(
                    Hold::Unread,
                    backend.holds.has(Hold::Unread) || backend.unreported != Unreported::Nothing,
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

    fn with(&self, hold: Hold) -> Option<u32> {
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

    /// The hostgroups whose connection has this hold.
    /// Where something was set that is still to be asked for, or may have been.
    pub(crate) fn unread(&self) -> Vec<u32> {
        let unread = |backend: &Backend| {
            backend.holds.has(Hold::Unread) || backend.unreported != Unreported::Nothing
        };
        self.0
            .iter()
            .filter(|(_, backend)| unread(backend))
            .map(|(hostgroup, _)| *hostgroup)
            .collect()
    }

    /// Whether a transaction is open, and not only announced by SET TRANSACTION.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.holds()
            .any(|hold| matches!(hold, Hold::Transaction | Hold::Xa))
    }

    /// What servers say in their flags of the transactions that are open.
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

    /// Where the statement finds what it asks the connection for.
    pub(crate) fn asked_for(&self, class: &Class<'_>) -> Option<u32> {
        const VARIABLES: Reads = Reads::USER_VARIABLE.with(Reads::XPATH);
        if class.reads.is_empty() || self.0.is_empty() {
            return None;
        }
        [
            (Reads::WARNINGS, Hold::Diagnostics),
            (Reads::LAST_INSERT_ID, Hold::InsertId),
            (Reads::FOUND_ROWS, Hold::FoundRows),
            (VARIABLES, Hold::UserVariable),
            (VARIABLES, Hold::Procedure),
            (VARIABLES, Hold::Untold),
            (VARIABLES, Hold::Routine),
            (Reads::PREPARED, Hold::SqlPrepare),
            (Reads::HANDLER, Hold::Handler),
            (Reads::SEQUENCE.with(Reads::CURRVAL), Hold::Sequence),
        ]
        .into_iter()
        // What writes goes where writes go: the number of rows goes along.
        .filter(|(_, hold)| *hold != Hold::FoundRows || !class.may_write())
        .find_map(|(reads, hold)| {
            if class.reads.intersects(reads) {
                self.with(hold)
            } else {
                None
            }
        })
    }
}
