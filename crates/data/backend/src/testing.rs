//! For tests: a core in a simulated world with one server that several addresses answer for.

use crate::connection::place::Place;
use crate::pool::pools::Pools;
use crate::servers::room::Room;
use crate::session::state::State;
use crate::session::want::Want;
use crate::tally::Tally;
use config::{Server, Snapshot, Status};
use net::Secret;
use rt::Rt;
use rt::permits::Registry;
use rt::sim::{Faults, Limits};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::connect_attributes::ConnectAttributes;

/// Runs a test with the pools of a core and the place of the server that is called `several`.
pub(crate) fn with_several<F: Future<Output = ()>>(test: impl FnOnce(Rt, Pools, Rc<Place>) -> F) {
    let limits = Limits {
        time_max: Duration::from_secs(60),
        turns_max: 100_000,
    };
    rt::sim::run_with(1, Faults::perfect(), limits, |rt| {
        let registry = Registry::new();
        let pools = Pools::new(
            rt.clone(),
            registry.clone(),
            Rc::new(Tally::default()),
            |_| (),
        );
        let row = server("several");
        let room = Room::of(&registry, 0, "several", 3306);
        let known = crate::servers::server::Server::of(&row);
        let place = Place::new(Arc::new(row), room, known);
        test(rt, pools, place)
    });
}

/// A place of hostgroup 0 to which nobody connects.
pub(crate) fn place() -> Rc<Place> {
    place_of("nowhere", 1)
}

/// A place of hostgroup 0 with a name and a weight, to which nobody connects.
pub(crate) fn place_of(hostname: &str, weight: u32) -> Rc<Place> {
    let registry = Registry::new();
    let row = Server {
        weight,
        ..server(hostname)
    };
    let room = Room::of(&registry, 0, hostname, 3306);
    let known = crate::servers::server::Server::of(&row);
    Place::new(Arc::new(row), room, known)
}

/// Returns the want on hostgroup 0 of somebody who has not set anything.
pub(crate) fn want<'a>(
    snapshot: &'a Snapshot,
    state: &'a State,
    attributes: &'a ConnectAttributes,
) -> Want<'a> {
    Want::of_nobody(("app", &Secret::None), snapshot, state, attributes)
}

pub(crate) fn server(hostname: &str) -> Server {
    Server {
        hostgroup: 0,
        hostname: hostname.into(),
        port: 3306,
        status: Status::Online,
        weight: 1,
        compression: false,
        max_connections: 10,
        max_replication_lag: 0,
        use_ssl: false,
        max_latency_ms: 0,
        gtid_port: 0,
        comment: "".into(),
        ssl: None,
        ssl_of_users: Box::default(),
    }
}

/// Who serves where nobody has looked.
pub(crate) fn placed(snapshot: &Snapshot) -> topology::Placed {
    let policy = topology::Policy::of(&snapshot.variables);
    topology::placed(&snapshot.servers, &topology::Observed::default(), &policy)
}
