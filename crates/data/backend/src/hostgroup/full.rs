//! Whether a server, or its hostgroup, has room for one more connection, and what is closed where
//! there is none.

use crate::connection::place::Place;
use crate::servers::room::UNLIMITED;
use crate::servers::said::BELIEVED;
use crate::tally::Tally;
use bridge::Counter;
use rt::Instant;
use std::time::Duration;

impl Place {
    /// Room for a connection, unless the server has `max` or its hostgroup as many as it may.
    pub(crate) fn try_take(&self, max: u32) -> bool {
        if !self.room.of_group.try_take(self.group_max.get()) {
            return false;
        }
        let taken = self.room.of_server.try_take(max);
        if !taken {
            self.room.of_group.give();
        }
        taken
    }

    /// No other connection may be opened to it now.
    pub(crate) fn is_full(&self) -> bool {
        self.taken() >= self.server_max() || self.is_group_full()
    }

    pub(crate) fn is_group_full(&self) -> bool {
        self.room.of_group.taken() >= self.group_max()
    }

    /// There are more connections than there may be: a LOAD has lowered a limit, or other proxies
    /// have got more of it.
    pub(crate) fn is_over(&self) -> bool {
        self.taken() > self.server_max() || self.room.of_group.taken() > self.group_max()
    }

    /// As many as this proxy may have to it.
    pub(crate) fn server_max(&self) -> u32 {
        self.room.of_server.of(self.row_max())
    }

    /// As many as this proxy may have in its hostgroup.
    pub(crate) fn group_max(&self) -> u32 {
        self.room.of_group.of(self.group_max.get())
    }

    /// As many as may ever be open to it.
    pub(crate) fn connections_max(&self) -> u32 {
        self.server_max().min(self.group_max())
    }

    /// Connections of this core.
    pub(crate) fn own(&self) -> u64 {
        self.numbers.used.get() + self.idle.borrow().len() as u64
    }

    /// Notes that the server has said that it takes no more connections, of this user or (`None`)
    /// of anybody.
    pub(crate) fn said_full(&self, user: Option<&str>, now: Instant) {
        self.known.full.said(user, now);
    }

    /// Whether it said so a moment ago.
    pub(crate) fn said_to_be_full(&self, user: &str, now: Instant) -> bool {
        self.has_said_full(user, now, BELIEVED)
    }

    /// Whether it said so within that time, which is no longer than a second.
    pub(crate) fn has_said_full(&self, user: &str, now: Instant, within: Duration) -> bool {
        self.known.full.is_for(user, now, within)
    }

    /// Whether others are asked first: it said so a moment ago, or could not be connected to, where
    /// an idle connection of another is closed to open one.
    pub(crate) fn comes_last(&self, user: &str, now: Instant) -> bool {
        self.said_to_be_full(user, now)
            || self.group_max.get() != UNLIMITED && self.known.has_failed(now)
    }

    /// Closes the idle connection of this user that was used longest ago, for one that is not
    /// counted here; whether there was one.
    pub(crate) fn give_up_idle(&self, user: &str, tally: &Tally) -> bool {
        let mut idle = self.idle.borrow_mut();
        let Some(at) = idle.iter().position(|backend| *backend.key.user == *user) else {
            return false;
        };
        let closed = idle.remove(at);
        drop(idle);
        drop(closed);
        tally.up(Counter::MyhgmPoolDestroy);
        true
    }

    /// As [`Place::give_up_idle`], of whichever user.
    pub(crate) fn give_up_oldest(&self, tally: &Tally) -> bool {
        let mut idle = self.idle.borrow_mut();
        if idle.is_empty() {
            return false;
        }
        let closed = idle.remove(0);
        drop(idle);
        drop(closed);
        tally.up(Counter::MyhgmPoolDestroy);
        true
    }

    /// Closes what is idle and too much.
    pub(crate) fn shrink(&self) {
        while self.is_over() {
            let mut idle = self.idle.borrow_mut();
            if idle.is_empty() {
                return;
            }
            drop(idle.remove(0));
        }
    }
}
