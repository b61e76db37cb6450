//! Another configuration, or other findings of checks: which servers there are from now on, and
//! what holds for them.

use crate::connection::gtids::Sources;
use crate::connection::place::Place;
use crate::find::pace::pace_of;
use crate::open::connect::init_connect;
use crate::pool::pools::Pools;
use crate::servers::room::{self, Room};
use config::{Balance, Server, Snapshot};
use hashbrown::{HashMap, HashSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use topology::{Placed, Serves};

impl Pools {
    /// Work with these servers from now on. Connections to servers that left close when they are
    /// given back.
    pub fn adopt(&self, snapshot: &Snapshot, placed: &Placed) {
        self.renew();
        self.max_age.set(Duration::from_millis(
            snapshot.variables.mysql_connection_max_age_ms,
        ));
        self.free_pct
            .set(snapshot.variables.mysql_free_connections_pct);
        self.adopt_pings(&snapshot.variables);
        let now = self.rt.now();
        let mut groups = self.groups.borrow_mut();
        for id in placed.hostgroups.keys() {
            groups.entry(*id).or_default();
        }
        for hostgroup in snapshot.servers.iter() {
            groups.entry(hostgroup.id).or_default();
        }
        let sources = Sources::of(snapshot);
        for (id, group) in groups.iter() {
            group.free_pct.set(
                snapshot
                    .servers
                    .hostgroup(*id)
                    .and_then(|h| h.attributes.free_connections_pct),
            );
            let attributes = snapshot.servers.hostgroup(*id).map(|one| &one.attributes);
            group
                .chooser
                .balance
                .set(attributes.map_or(Balance::Weight, |one| one.balance));
            let mut places = group.places.borrow_mut();
            let among_others = places.iter().any(|place| place.served());
            let here = placed.hostgroups.get(id).map_or(&[][..], Vec::as_slice);
            let moved = |row: &Server, at| placed.has_moved(&snapshot.servers, row, at);
            self.adopt_places(&mut places, here, moved);
            let header = snapshot
                .servers
                .hostgroup(*id)
                .map_or(0, |h| h.attributes.proxy_protocol);
            let max = snapshot
                .servers
                .hostgroup(*id)
                .and_then(|h| h.attributes.max_connections);
            let begins = init_connect(snapshot, *id);
            let online = here
                .iter()
                .filter(|place| place.serves == Serves::Yes)
                .count();
            let online_max = snapshot
                .servers
                .hostgroup(*id)
                .map(|h| h.attributes.max_num_online_servers);
            let too_many = online_max.is_some_and(|max| online > max as usize);
            for place in places.iter() {
                place.is_chosen_by(attributes, among_others, now);
                place.group_max.set(max.unwrap_or(room::UNLIMITED));
                place.one_of_too_many.set(too_many);
                place.shrink();
                place.speaks(header);
                place.begins_with(begins);
                place.collects(sources.has(*id));
                place
                    .hides_gtids
                    .set(!snapshot.variables.mysql_client_session_track_gtid);
                place
                    .resets_by_login
                    .set(snapshot.variables.mysql_reset_connection_algorithm == 1);
            }
            // What is to go is not kept for what it remembers.
            group
                .lingering
                .press_of(|place| !place.keeps() || place.is_over());
            let admission = attributes.map(|one| one.admission).unwrap_or_default();
            group.admission.settings.set(admission);
            group.admission.limited.set(admission.concurrency.is_some());
            for place in places.iter() {
                place.limits(admission.concurrency, &self.registry);
            }
            group.warms.set(warms(snapshot, *id));
            group.pace_max.set(Some(pace_of(snapshot, *id)));
            group.paced.call();
            group.queue.call();
        }
        drop(groups);
        self.servers.sweep();
        self.compare_servers();
        self.adopted.notify_all();
    }

    /// The servers of a hostgroup. Connections of those that left close when they are given back.
    /// `moved`: those that serve elsewhere in their topology now, or whose name leads elsewhere, and
    /// end what they have here.
    fn adopt_places(
        &self,
        places: &mut Vec<Rc<Place>>,
        here: &[topology::Place],
        moved: impl Fn(&Server, Option<IpAddr>) -> bool,
    ) {
        let now = self.rt.now();
        // There may be thousands in one hostgroup, and sessions wait meanwhile.
        type Key<'a> = (&'a str, u16, Option<IpAddr>);
        type ByAddress<'a, T> = HashMap<Key<'a>, T, foldhash::fast::RandomState>;
        let new: ByAddress<'_, &topology::Place> = here
            .iter()
            .map(|one| ((&*one.server.hostname, one.server.port, one.at), one))
            .collect();
        for place in places.iter() {
            let old = place.server();
            match new.get(&(&*old.hostname, old.port, place.at())) {
                Some(placed) => place.update(placed, now),
                None => place.leave(moved(&old, place.at())),
            }
        }
        places.retain(|place| !place.is_done());
        let known: Vec<_> = places
            .iter()
            .map(|place| (place.server(), place.at()))
            .collect();
        let known: HashSet<Key<'_>, foldhash::fast::RandomState> = known
            .iter()
            .map(|(server, at)| (&*server.hostname, server.port, *at))
            .collect();
        for one in here {
            let row = &one.server;
            if !known.contains(&(&*row.hostname, row.port, one.at)) {
                let room = Room::of(&self.registry, row.hostgroup, &row.hostname, row.port);
                let place = Place::new(row.clone(), room, self.servers.of(row, one.at));
                place.update(one, now);
                places.push(place);
            }
        }
    }

    /// Of a configuration.
    fn adopt_pings(&self, v: &config::Variables) {
        let (every, limit) = (
            v.mysql_ping_interval_server_msec,
            v.mysql_ping_timeout_server,
        );
        self.pings.set(Some((
            Duration::from_millis(every),
            Duration::from_millis(limit),
        )));
        self.log_unhealthy.set(v.mysql_log_unhealthy_connections);
        self.resets_max.set(v.mysql_connpoll_reset_queue_length);
    }
}

/// Whether connections to a hostgroup are opened ahead. A row says it for its hostgroup, whatever
/// the variable says.
fn warms(snapshot: &Snapshot, hostgroup: u32) -> bool {
    let own = snapshot
        .servers
        .hostgroup(hostgroup)
        .map(|group| &group.attributes)
        .filter(|attributes| attributes.row().is_some());
    own.map_or(snapshot.variables.mysql_connection_warming, |attributes| {
        attributes.connection_warming
    })
}
