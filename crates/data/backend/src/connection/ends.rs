//! When a connection is given back that is kept only for what it remembers, or for a time.

use crate::connection::backend::Backend;
use crate::connection::lease::Unreported;
use crate::session::hold::Hold;
use rt::Instant;

impl Backend {
    /// When the next of those holds ends that end by themselves.
    #[must_use]
    pub fn ends_by_itself(&self) -> Option<Instant> {
        let delay = self
            .lease
            .delayed_until
            .filter(|_| self.holds.has(Hold::Delay));
        self.lingers_until().into_iter().chain(delay).min()
    }

    /// When it is asked for what it remembers of a statement (the id of an insert, warnings) and
    /// what programs have left, if nothing else keeps it and that ends by itself.
    #[must_use]
    pub fn lingers_until(&self) -> Option<Instant> {
        // Whether there still is a lock is asked then, too.
        let lock = if self.doubts_locks() {
            Hold::UserLock
        } else {
            Hold::Unread
        };
        let left = self.says_what_is_left();
        let programs = if left.is_some() {
            [Hold::Procedure, Hold::Routine]
        } else {
            [Hold::Unread; 2]
        };
        let found = if self.lease.found_rows_until.is_some() {
            Hold::FoundRows
        } else {
            Hold::Unread
        };
        if !self.holds.are_only(&[
            Hold::InsertId,
            Hold::Diagnostics,
            Hold::Unread,
            lock,
            found,
            programs[0],
            programs[1],
        ]) {
            return None;
        }
        let ends = [
            (Hold::InsertId, self.lease.insert_id_until),
            (Hold::Diagnostics, self.lease.warnings_until),
            (Hold::FoundRows, self.lease.found_rows_until),
        ];
        let mut remembered = None;
        for (_, until) in ends.iter().filter(|(hold, _)| self.holds.has(*hold)) {
            remembered = remembered.max(Some((*until)?));
        }
        if remembered.is_none() {
            if self.local.unreported == Unreported::Nothing {
                return left;
            }
            remembered = self.lease.warnings_until;
        }
        remembered.map(|until| left.map_or(until, |left| until.max(left)))
    }

    /// Ends the holds whose time is over.
    pub fn end_in_time(&mut self, now: Instant) {
        if self.lease.delayed_until.is_some_and(|until| until <= now) {
            self.holds.remove(Hold::Delay);
        }
    }
}
