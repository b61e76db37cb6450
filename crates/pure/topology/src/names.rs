//! Names of servers: at which of its addresses a row is served, and what becomes of the others. Each
//! address is checked by itself.
//!
//! docs/decisions/0048-an-address-has-its-health.md

use crate::place::{Elsewhere, Place, Placed, Serves, Why};
use crate::seen::{Observed, Reach, Seen, ServerKey};
use config::{Dns, Server, Servers};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Addresses of a name, as it was looked up last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Whereabouts {
    /// Addresses to which it leads, in their order.
    pub now: Vec<IpAddr>,
    /// Addresses to which it led, and where connections still are.
    pub before: Vec<IpAddr>,
}

impl ServerKey {
    /// Of an address.
    #[must_use]
    pub fn at(ip: IpAddr, port: u16) -> Self {
        Self {
            host: ip.to_string().into(),
            port,
        }
    }
}

impl Observed {
    /// The address at which a row with this name is served, where one at a time is: the first that
    /// answers. Where none has, it is the first that may, else the first. `None` for what is no name,
    /// or was not looked up.
    #[must_use]
    pub fn lead(&self, host: &str, port: u16) -> Option<IpAddr> {
        let now = &self.names.get(host)?.now;
        let worth = |ip: &&IpAddr| match self.of(&ServerKey::at(**ip, port)).reach {
            Reach::Well => 0,
            Reach::Unknown => 1,
            Reach::Missing(_) => 2,
        };
        // Of equals it is the first.
        now.iter().min_by_key(worth).copied()
    }

    /// Takes what was seen of the address at which a row is served for what was seen of the row.
    #[must_use]
    pub fn by_address(&self, row: &ServerKey) -> Option<&Seen> {
        let ip = self.lead(&row.host, row.port)?;
        Some(self.of(&ServerKey::at(ip, row.port)))
    }

    /// Properties that only one server can have.
    pub(crate) fn identities(&self, key: &ServerKey) -> impl Iterator<Item = Identity> {
        let address = match self.lead(&key.host, key.port) {
            Some(ip) => ServerKey::at(ip, key.port),
            None => key.clone(),
        };
        let uuid = self.of(key).uuid.clone().map(Identity::Uuid);
        uuid.into_iter().chain([Identity::Address(address)])
    }
}

/// A property of one server alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identity {
    /// Its `server_uuid`.
    Uuid(Arc<str>),
    /// Its address.
    Address(ServerKey),
}

/// The places of a row by itself: one, or one for each address of its name.
pub(crate) fn places_of(
    row: &Arc<Server>,
    declared: &Servers,
    observed: &Observed,
    elsewhere: &mut Elsewhere,
) -> Vec<Place> {
    let one = |server: Arc<Server>, at: Option<IpAddr>| Place {
        server,
        at,
        serves: Serves::Yes,
        why: None,
    };
    let whereabouts = observed.names.get(&*row.hostname);
    let Some(whereabouts) = whereabouts.filter(|_| row.port != 0) else {
        return vec![one(row.clone(), None)];
    };
    let name: Arc<str> = row.hostname.as_ref().into();
    let lead = observed.lead(&name, row.port);
    let all = declared.dns(row.hostgroup) == Dns::All && !whereabouts.now.is_empty();
    let mut is_elsewhere = |ip: IpAddr, why: Why| {
        let key = ServerKey::at(ip, row.port);
        let why = match &observed.of(&key).reach {
            Reach::Missing(why) if !observed.is_blind() => Why::Missing(why.clone()),
            _ => why,
        };
        elsewhere.insert(key, (name.clone(), why));
    };
    for ip in &whereabouts.before {
        is_elsewhere(*ip, Why::LeftBehind);
    }
    if !all {
        for ip in whereabouts.now.iter().filter(|ip| Some(**ip) != lead) {
            is_elsewhere(*ip, Why::NotTheFirst(lead.unwrap_or(*ip)));
        }
        return vec![one(row.clone(), lead)];
    }
    // Nobody need try one that no check has seen while there are others.
    let is_seen = |ip: &IpAddr| observed.of(&ServerKey::at(*ip, row.port)).reach != Reach::Unknown;
    let (seen, unseen): (Vec<&IpAddr>, Vec<&IpAddr>) =
        whereabouts.now.iter().partition(|ip| is_seen(ip));
    let used = if seen.is_empty() {
        unseen
    } else {
        for ip in unseen {
            is_elsewhere(*ip, Why::Unchecked);
        }
        seen
    };
    elsewhere.insert(ServerKey::of(row), (name, Why::ByAddress));
    let at = |ip: &IpAddr| {
        let made = Server {
            hostname: ip.to_string().into(),
            ..Server::clone(row)
        };
        one(Arc::new(made), None)
    };
    used.into_iter().map(at).collect()
}

/// An address of a name, and the row's port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name.
    pub host: Arc<str>,
    /// Address and port, which is how it is known to [`Observed::of`].
    pub key: ServerKey,
    /// Reason why it gets nothing new; `None` if it is in use.
    pub why: Option<Why>,
}

/// The addresses of all names that were looked up.
#[must_use]
pub fn addresses(declared: &Servers, observed: &Observed, placed: &Placed) -> Vec<Address> {
    let rows = declared.iter().flat_map(|hostgroup| &hostgroup.servers);
    let keys: BTreeSet<ServerKey> = rows.map(|row| ServerKey::of(row)).collect();
    let found = placed.found.keys().cloned();
    let keys: BTreeSet<ServerKey> = keys.into_iter().chain(found).collect();
    let mut all = Vec::new();
    for row in keys.iter().filter(|row| row.port != 0) {
        let Some(whereabouts) = observed.names.get(&row.host) else {
            continue;
        };
        for ip in whereabouts.now.iter().chain(&whereabouts.before) {
            let key = ServerKey::at(*ip, row.port);
            let why = placed.elsewhere.get(&key).map(|(_, why)| why.clone());
            all.push(Address {
                host: row.host.clone(),
                key,
                why,
            });
        }
    }
    all
}

impl Placed {
    /// Forgets of the addresses that get nothing those that get something by another row.
    pub(crate) fn forget_used(&mut self) {
        for place in self.hostgroups.values().flatten() {
            self.elsewhere.remove(&place.key_at());
        }
    }

    /// Whether what is open at a place that is no more may end there: its name leads elsewhere, or
    /// the row was served by name and is by address now. `at`: the address of its name.
    pub(crate) fn is_elsewhere(&self, row: &Server, at: Option<IpAddr>) -> Option<bool> {
        let key = match at {
            Some(ip) => ServerKey::at(ip, row.port),
            None => ServerKey::of(row),
        };
        if let Some((_, why)) = self.elsewhere.get(&key) {
            return Some(!matches!(why, Why::Missing(_)));
        }
        let here = self.hostgroups.get(&row.hostgroup).into_iter().flatten();
        let is_it =
            |place: &&Place| place.server.hostname == row.hostname && place.server.port == row.port;
        let same = here.into_iter().find(is_it).filter(|place| place.at != at);
        same.map(|place| !matches!(place.serves, Serves::No(_)))
    }
}

impl Place {
    /// The address and port at which it is, if that is known; else its row's host.
    #[must_use]
    pub fn key_at(&self) -> ServerKey {
        match self.at {
            Some(ip) => ServerKey::at(ip, self.server.port),
            None => ServerKey::of(&self.server),
        }
    }
}
