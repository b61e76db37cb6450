//! Servers as scripts see them, and the state in which a script has put one.

use crate::core::Core;
use crate::core::guests::{At, OwnPools, Owner};
use config::{Script, Snapshot, Status};
use script::{Keep, Kept, Server, Standing};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// Field of the note by which a script takes a server out.
const STATE: &str = "state";
/// Field of the number of sessions that are on a server.
const CLIENTS: &str = "clients";
/// Numbers of sessions belong to no script: no name is empty.
const EVERYBODY: &str = "";

/// Hostgroups whose servers a script sees, and whether they are for reads.
fn hostgroups(snapshot: &Snapshot, owner: &Owner) -> Vec<(u32, bool)> {
    let v = &snapshot.variables;
    let relays = v.mysql_relay_logins && snapshot.users.is_empty();
    if owner.secret.is_relayed() && (relays || !owner.is_at_console) {
        let [own, beside] = [
            v.mysql_relay_logins_hostgroup,
            v.mysql_relay_logins_beside_hostgroup,
        ]
        .map(|hostgroup| u32::try_from(hostgroup).ok());
        let own = own.into_iter().map(|own| (own, false));
        let beside = beside.filter(|beside| u64::from(*beside) != v.mysql_relay_logins_hostgroup);
        return own.chain(beside.map(|beside| (beside, true))).collect();
    }
    let own: BTreeSet<u32> = match owner.is_at_console {
        true => snapshot
            .users
            .iter()
            .map(|user| user.default_hostgroup)
            .collect(),
        false => [owner.user.default_hostgroup].into(),
    };
    let split = |own: &u32| {
        let hostgroup = snapshot.servers.hostgroup(*own)?;
        Some(hostgroup.attributes.split.as_ref()?.read_hostgroup)
    };
    let readers: BTreeSet<u32> = own.iter().filter_map(split).collect();
    let readers = readers.difference(&own).map(|readers| (*readers, true));
    own.iter().map(|own| (*own, false)).chain(readers).collect()
}

/// Servers of these hostgroups, as rows have them.
pub(crate) fn rows(
    snapshot: &Snapshot,
    owner: &Owner,
) -> impl Iterator<Item = (u32, bool, Arc<config::Server>)> {
    let rows = hostgroups(snapshot, owner)
        .into_iter()
        .flat_map(|(hostgroup, is_reader)| {
            let found = snapshot.servers.hostgroup(hostgroup);
            let servers = found.map(|found| found.servers.clone()).unwrap_or_default();
            let of = move |server| (hostgroup, is_reader, server);
            servers.into_iter().map(of)
        });
    rows.collect::<Vec<_>>().into_iter()
}

/// Servers as a script sees them that has this `proxy.global`. `own`: what is at hand where the
/// session is, if that is known.
pub(crate) fn servers(
    core: &Core,
    owner: &Owner,
    globals: &str,
    own: Option<&OwnPools>,
) -> Vec<Server> {
    let epoch = core.epoch();
    let user = &*owner.user.username;
    let of_row = |(hostgroup, is_reader, row): (u32, bool, Arc<config::Server>)| {
        let seen = core.pools.seen(hostgroup, (&row.hostname, row.port), user);
        let mut server = Server {
            hostgroup,
            host: row.hostname.to_string(),
            port: row.port,
            is_reader,
            ..Server::default()
        };
        let is_out = noted(core, globals, &server, STATE).is_some();
        server.standing = match seen.connected {
            _ if is_out || row.status != Status::Online || !seen.serves => Standing::Down,
            0 => Standing::Unknown,
            _ => Standing::Up,
        };
        server.clients = match noted(core, EVERYBODY, &server, CLIENTS) {
            Some(Kept::Number(number)) => number as u32,
            _ => 0,
        };
        let is_it = |(at, ..): &&(At, u32, u32)| at.is(hostgroup, &server.host, server.port);
        (server.idle_own, server.idle_any) = match own {
            Some(own) => own
                .at_hand
                .iter()
                .find(is_it)
                .map(|(_, own, any)| (*own, *any))
                .unwrap_or_default(),
            None if owner.secret.is_relayed() => (seen.idle_own, seen.idle_any),
            // Another one is opened for whoever wants one.
            None if server.standing == Standing::Down => (0, 0),
            None => (seen.idle_own.max(1), seen.idle_any.max(1)),
        };
        server
    };
    rows(&epoch.snapshot, owner).map(of_row).collect()
}

/// A note that scripts with this `proxy.global` have made of a server.
pub(crate) fn noted(core: &Core, globals: &str, server: &Server, field: &str) -> Option<Kept> {
    let key = (globals, &*server.note(field));
    let kept = core.scripting.shared.keep(key, Keep::Get, (0, None));
    kept.ok().flatten()
}

/// Makes such a note, or takes it away.
///
/// # Errors
/// Words for the script's author: there is no room.
pub(crate) fn note(
    core: &Core,
    globals: &str,
    (server, field): (&Server, &str),
    value: Option<Kept>,
) -> Result<(), String> {
    let key = (globals, &*server.note(field));
    let kept = core.scripting.shared.keep(key, Keep::Set(value), (0, None));
    kept.map(drop)
}

/// Whether one of these scripts has taken a server out.
pub(crate) fn is_taken_out(core: &Core, scripts: &[Arc<Script>], row: &config::Server) -> bool {
    let server = Server {
        host: row.hostname.to_string(),
        port: row.port,
        ..Server::default()
    };
    let mut scripts = scripts.iter().filter(|script| script.serves_all());
    scripts.any(|script| noted(core, &script.globals, &server, STATE).is_some())
}

/// Counts one session more, or less, that is on a server.
fn count(core: &Core, at: &At, by: f64) {
    let server = Server {
        host: at.host.to_string(),
        port: at.port,
        ..Server::default()
    };
    let key = (EVERYBODY, &*server.note(CLIENTS));
    // Without room for the number it stays zero.
    let _no_room = core.scripting.shared.keep(key, Keep::Add(by), (0, None));
}

/// A session that counts as one on a server.
pub(crate) struct Counted {
    core: Rc<Core>,
    pub(crate) at: At,
}

impl Counted {
    pub(crate) fn on(core: &Rc<Core>, at: At) -> Self {
        count(core, &at, 1.0);
        Self {
            core: core.clone(),
            at,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        count(&self.core, &self.at, -1.0);
    }
}
