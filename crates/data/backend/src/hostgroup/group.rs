//! A hostgroup on this core: its servers, who waits for them, and who is chosen.

use crate::connection::place::Place;
use crate::cores::wish::Wishes;
use crate::hostgroup::admission::Admission;
use crate::hostgroup::chooser::Chooser;
use crate::hostgroup::lane::Lanes;
use crate::hostgroup::linger::Lingering;
use crate::hostgroup::queue::Queue;
use crate::servers::room::UNLIMITED;
use crate::session::want::Want;
use bridge::HostgroupPoolRow;
use rt::Instant;
use rt::permits::Permits;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// A hostgroup of this core.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) places: RefCell<Vec<Rc<Place>>>,
    /// Commands of this core that wait for a connection.
    pub(crate) queue: Queue,
    /// Those of them who may not open one yet: so many were opened in the last second.
    pub(crate) paced: Queue,
    /// Who waits in which order, and for how long.
    pub(crate) admission: Admission,
    /// Copies for mirrors that have one of its connections, over all cores.
    pub(crate) copies: OnceCell<Arc<Permits>>,
    /// Connections opened in the last second, over all cores; counted where that is limited.
    pub(crate) opened: OnceCell<Arc<Permits>>,
    /// How many may be, as the last configuration says.
    pub(crate) pace_max: Cell<Option<u64>>,
    /// When other cores were last asked for a connection for a copy.
    pub(crate) asked_for_spare: Cell<Option<Instant>>,
    /// When one came while copies waited.
    pub(crate) spare_came: Cell<Option<Instant>>,
    pub(crate) chooser: Chooser,
    pub(crate) lanes: Lanes,
    pub(crate) lingering: Lingering,
    /// Connections that other cores wait for.
    pub(crate) wishes: Wishes,
    /// When an operator was last told that somebody waited in vain.
    pub(crate) told: Cell<Option<Instant>>,
    /// Idle connections kept, in percent of `max_connections`, where the hostgroup says otherwise
    /// than the variable.
    pub(crate) free_pct: Cell<Option<u32>>,
    /// When somebody last found that nobody served.
    pub(crate) idle_since: Cell<Option<Instant>>,
    /// Whether connections are opened ahead until there are so many.
    pub(crate) warms: Cell<bool>,
}

impl Group {
    /// Whether some server takes work of whoever wants this, were it not for those before it.
    pub(crate) fn may_serve(&self, want: &Want<'_>, now: Instant) -> bool {
        let places = self.places.borrow();
        places.iter().any(|place| place.serves_for(want, now))
    }

    /// Its row of `stats_mysql_hostgroup_pool`, of this core; none where it has neither a server
    /// nor anybody who waits.
    pub(crate) fn report(&self, hostgroup: u32, now: Instant) -> Option<HostgroupPoolRow> {
        let places = self.places.borrow();
        let first = places.first();
        if first.is_none() && self.queue.is_empty() && self.paced.is_empty() {
            return None;
        }
        let max = first.map_or(UNLIMITED, |place| place.group_max.get());
        let since = [self.queue.longest_since(), self.paced.longest_since()]
            .into_iter()
            .flatten()
            .min();
        let longest = since.map_or(0, |since| (now - since).as_millis());
        Some(HostgroupPoolRow {
            hostgroup,
            connections: first.map_or(0, |place| place.room.of_group.taken().into()),
            max: (max != UNLIMITED).then_some(max),
            used: places.iter().map(|place| place.numbers.used.get()).sum(),
            free: places
                .iter()
                .map(|place| place.idle.borrow().len() as u64)
                .sum(),
            waiting: (self.queue.len() + self.paced.len()) as u64,
            longest_wait_ms: u64::try_from(longest).unwrap_or(u64::MAX),
        })
    }
}
