//! Who serves now, and what a read there sees.

use crate::connection::place::Place;
use crate::cores::neighbours::LOOK_AGAIN;
use crate::pool::pools::Pools;
use crate::session::want::Shows;
use bridge::Executed;
use std::rc::Rc;
use std::time::Duration;
use topology::ServerKey;

impl Pools {
    /// Whether some server of the hostgroup takes new work now, and one has at every look for so
    /// many milliseconds.
    #[must_use]
    pub fn takes(&self, hostgroup: u32, for_ms: u64) -> bool {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        let Some(group) = groups.get(&hostgroup) else {
            return false;
        };
        if !group.places.borrow().iter().any(|place| place.serves(now)) {
            group.idle_since.set(Some(now));
            return false;
        }
        let since = group.idle_since.get();
        since.is_none_or(|since| now - since >= Duration::from_millis(for_ms))
    }

    /// Resolves when no server of the hostgroup takes new work that must see these.
    pub async fn until_nobody_serves(&self, hostgroup: u32, must_see: Option<Shows<'_>>) {
        let shows = || must_see.is_none_or(|what| self.shows(hostgroup, what));
        while self.takes(hostgroup, 0) && shows() {
            let _placed_anew_or_time_to_look =
                self.rt.timeout(LOOK_AGAIN, self.are_placed_anew()).await;
        }
    }

    /// Resolves when servers are placed anew, by an operator or by what checks have seen.
    pub async fn are_placed_anew(&self) {
        self.adopted.wait().await;
    }

    /// Whether some server of the hostgroup takes new work now, and a read there sees this.
    #[must_use]
    pub fn shows(&self, hostgroup: u32, what: Shows<'_>) -> bool {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        groups.get(&hostgroup).is_some_and(|group| {
            let places = group.places.borrow();
            let shows = |place: &Rc<Place>| place.serves(now) && place.shows(what);
            places.iter().any(shows)
        })
    }

    /// Servers of the hostgroup that take new work now and have everything that was committed before this time,
    /// in milliseconds since 1970. A writer is none of them.
    #[must_use]
    pub fn replicas_as_of(&self, hostgroup: u32, ms: u64) -> usize {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        groups.get(&hostgroup).map_or(0, |group| {
            let what = Shows::NotBefore {
                ms,
                or_writes: false,
            };
            let places = group.places.borrow();
            let is_one = |place: &&Rc<Place>| {
                !place.is_reading_writer.get() && place.serves(now) && place.shows(what)
            };
            places.iter().filter(is_one).count()
        })
    }

    /// A reader of a server's binary log has told what the server has executed.
    pub fn executed(&self, server: &ServerKey, what: &Executed) {
        let server = self.server_at(server);
        let mut known = server.executed.borrow_mut();
        match (what, known.as_mut()) {
            (Executed::All(all), _) => *known = Some(gtid::Set::clone(all)),
            (Executed::More(more), Some(known)) => known.union(more),
            // What is behind a feed that nobody has begun says nothing.
            (Executed::More(_), None) => {}
            (Executed::Unknown, _) => *known = None,
        }
    }

    /// Everything that servers of a hostgroup have executed, as far as their feeds tell; `None` if no feed of theirs
    /// tells anything.
    #[must_use]
    pub fn executed_in(&self, hostgroup: u32) -> Option<gtid::Set> {
        let groups = self.groups.borrow();
        let places = groups.get(&hostgroup)?.places.borrow();
        let mut all: Option<gtid::Set> = None;
        for place in places.iter().filter(|place| !place.has_left()) {
            if let Some(executed) = &*place.known.executed.borrow() {
                all.get_or_insert_default().union(executed);
            }
        }
        all
    }

    /// A check has told how old at most what a server shows is: it has everything that its source
    /// had at this time, in milliseconds since 1970; 0 if nobody knows.
    pub fn is_as_of(&self, server: &ServerKey, ms: u64) {
        if let Some(server) = self.servers.at(&server.host, server.port) {
            server.as_of_ms.set(ms);
        }
    }
}
