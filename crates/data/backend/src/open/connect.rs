//! Opening a connection: resolve, connect, TLS, log in, init_connect; each step under one deadline.

use crate::connection::backend::{Backend, Idle};
use crate::connection::lease::{Lasting, Lease, Local, OpenedAs};
use crate::connection::place::Place;
use crate::connection::slots::Slots;
use crate::failure::BackendFailed;
use crate::open::taken::Taken;
use crate::pool::pools::Pools;
use crate::session::hold::Holds;
use crate::session::key::Key;
use crate::session::login::{Attempt, account, attributes_of, of_refusal, refused_by_us};
use crate::session::need::Ways;
use crate::session::passwords::{is_wrong_password, passwords};
use crate::session::prepared::Here;
use crate::session::state::{Collations, Names, State};
use crate::session::want::Want;
use bridge::Counter;
use config::{Server, Snapshot, Variables};
use net::tls::{Connector, Settings};
use net::{Conn, Secret};
use rt::{Address, Instant};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use wire::{caps, errors};

/// So long at least an address of several has to answer a connect: further away is no server.
const SHARE_MIN: Duration = Duration::from_millis(250);

impl Pools {
    /// Opens a connection to the server whose room was taken; it is given back on failure, and when
    /// nobody waits any more.
    pub(crate) async fn open(
        &self,
        room: Taken,
        want: &Want<'_>,
        key: Key,
    ) -> Result<Box<Backend>, Attempt> {
        if want.secret.is_relayed() {
            return Err(Attempt::Final(BackendFailed::Unproven));
        }
        let place = &room.place().clone();
        let limit = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server);
        let begun = self.rt.now();
        // Another may come while it logs in.
        let opened_as = place.opened_as();
        let result = match self.addresses_of(place, limit).await {
            Ok(addresses) => {
                let said = self
                    .rt
                    .timeout(limit, self.log_in_at_one_of(&addresses, place, want))
                    .await;
                let late = || {
                    Attempt::Again(format!(
                        "no answer within {} ms (mysql-connect_timeout_server)",
                        limit.as_millis()
                    ))
                };
                said.unwrap_or_else(|_| Err(late()))
            }
            Err(unknown) => Err(unknown),
        };
        match result {
            Ok(logged_in) => {
                let as_told = (opened_as, begun);
                self.takes_over(room, want, key, logged_in, as_told).await
            }
            Err(failed) => {
                self.has_failed_to_open(place, want, &failed);
                Err(failed)
            }
        }
    }

    /// A server has let us in, in an attempt that has `begun` then: the connection is one of ours, once all
    /// is said on it that is said before anything else.
    pub(crate) async fn takes_over(
        &self,
        mut room: Taken,
        want: &Want<'_>,
        key: Key,
        (conn, hello): (Conn, net::Hello),
        (opened_as, begun): (OpenedAs, Instant),
    ) -> Result<Box<Backend>, Attempt> {
        let place = &room.place().clone();
        let limit = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server);
        let now = self.rt.now();
        self.note_greeting(place, &hello);
        place.lets_in(want);
        place.begin_use();
        self.tally.up(Counter::ServerConnectionsCreated);
        self.tally.up(Counter::ServerConnectionsConnected);
        let knows = Collations::of(&hello.version);
        let mut state = State::new("", want.collation);
        if want.collation > 255 && state.names.words_for(knows).is_some() {
            // The login could not say it, and the server knows it: a SET NAMES will.
            state.names = Names::Unknown;
        }
        let is_its_own = state.names != Names::Unknown && state.names.words_for(knows).is_none();
        let ways = Ways::of_login(knows, want.caps, hello.caps);
        let mut holds = Holds::default();
        holds.status(hello.status);
        let told_client = key.client.and(want.client);
        let mut backend = Box::new(Backend {
            conn,
            hello,
            holds,
            idle: Idle::Proven,
            interrupted: false,
            place: place.clone(),
            key,
            told_client,
            state,
            init_connect: None,
            prepared: Here::default(),
            slots: Slots::new(self.rt.random()),
            retired: false,
            tally: self.tally.clone(),
            in_use: true,
            slot: room.take_slot(),
            lent: false,
            lasting: Lasting::new(opened_as, ways, now),
            local: Local::default(),
            lease: Lease::default(),
        });
        room.keep();
        let left = limit.saturating_sub(now - begun);
        let begins = self
            .begin_there(&mut backend, want, is_its_own, left, limit)
            .await;
        if !matches!(begins, Err(Attempt::Again(_))) {
            // One that lets everybody in and says no more is not well.
            place.connected(now - begun, now);
        }
        if let Err(failed) = begins {
            drop(backend);
            self.has_failed_to_open(place, want, &failed);
            return Err(failed);
        }
        self.note_modes(&backend);
        Ok(backend)
    }

    /// Asks and says what comes before anything else on a connection, within the rest of the time
    /// (`left` of `limit`).
    async fn begin_there(
        &self,
        backend: &mut Backend,
        want: &Want<'_>,
        is_its_own: bool,
        left: Duration,
        limit: Duration,
    ) -> Result<(), Attempt> {
        let until = self.rt.now() + left;
        if is_its_own {
            let asked = self
                .rt
                .timeout(left, backend.ask_what_is_made_of(want.collation))
                .await;
            let answer = asked
                .map_err(|_| "no answer".to_owned())
                .and_then(|said| said.map_err(|failed| failed.to_string()));
            answer.map_err(|why| Attempt::Again(format!("asked for its character set: {why}")))?;
        }
        if backend.place.collects_gtids.get() {
            let left = until - self.rt.now();
            let asked = self.rt.timeout(left, backend.ask_for_gtids()).await;
            let failed = match asked {
                Ok(Ok(())) => None,
                Ok(Err(failed)) => Some(failed.to_string()),
                Err(_) => Some("no answer".to_owned()),
            };
            if let Some(why) = failed {
                return Err(Attempt::Again(format!("asked to tell GTIDs: {why}")));
            }
        }
        let Some(text) = init_connect(want.snapshot, want.hostgroup) else {
            return Ok(());
        };
        let now = self.rt.now();
        let left = if until > now {
            until - now
        } else {
            Duration::ZERO
        };
        match self.rt.timeout(left, backend.begin(text.into())).await {
            Ok(Ok(())) => Ok(()),
            // A server runs none for who has to give a new password first.
            Ok(Err(failed))
                if failed.is_sandbox() && caps::has(want.caps, caps::EXPIRED_PASSWORDS) =>
            {
                Ok(())
            }
            Ok(Err(failed)) => Err(Attempt::Final(failed)),
            Err(_) => {
                let limit_ms = limit.as_millis();
                Err(Attempt::Again(format!(
                    "init_connect has no answer within {limit_ms} ms (mysql-connect_timeout_server)"
                )))
            }
        }
    }

    /// An attempt has failed: what that says of the server is remembered, and told.
    pub(crate) fn has_failed_to_open(&self, place: &Place, want: &Want<'_>, failed: &Attempt) {
        if let Attempt::Final(BackendFailed::Refused { code, message, .. }) = failed {
            place.refused();
            // Each client of this user would have it told again.
            if place.known.may_tell(self.rt.now()) {
                let (host, port) = (place.host(), place.server().port);
                self.note(&format!(
                    "{host}:{port} does not let user '{}' in: error {code}: {message}",
                    want.user
                ));
            }
        }
        if let Attempt::Full { of_all, why } = failed {
            place.said_full((!of_all).then_some(want.user), self.rt.now());
            place.refused();
            self.tally.up(Counter::ServerConnectionsAborted);
            if place.known.may_tell(self.rt.now()) {
                let (host, port) = (place.host(), place.server().port);
                self.note(&format!(
                    "{host}:{port} takes no more connections of user '{}': {why}",
                    want.user
                ));
            }
        }
        if let Attempt::Lacking(why) = failed {
            // As if all servers were full: nobody is let in anywhere before a connection is closed.
            place.said_full(None, self.rt.now());
            self.tally.up(Counter::ServerConnectionsAborted);
            if place.known.may_tell(self.rt.now()) {
                self.note(&format!(
                    "cannot connect to {}:{}: {why}",
                    place.host(),
                    place.server().port
                ));
            }
        }
        if let Attempt::Again(why) | Attempt::Unreached(why) = failed {
            // Who comes back may be another version, or be configured otherwise.
            place.tracks.take();
            place.known.made_of.take();
            place.own_modes.take();
            place.failed(
                self.rt.now(),
                want.snapshot.variables.mysql_shun_on_failures,
                Duration::from_secs(want.snapshot.variables.mysql_shun_recovery_time_sec),
            );
            self.tally.up(Counter::ServerConnectionsAborted);
            self.have_looked_at(place.host(), place.server().port);
            if place.known.may_tell(self.rt.now()) {
                self.note(&format!(
                    "cannot connect to {}:{}: {why}",
                    place.host(),
                    place.server().port
                ));
            }
        }
    }

    /// Where a server is. That nobody says so within the `limit` says nothing of the server: its
    /// connections go on, and it is shunned only where it has none, so that others are asked at
    /// once.
    pub(crate) async fn addresses_of(
        &self,
        place: &Rc<Place>,
        limit: Duration,
    ) -> Result<Vec<Address>, Attempt> {
        let server = place.server();
        if let Some(ip) = place.at() {
            return Ok(vec![SocketAddr::new(ip, server.port).into()]);
        }
        let asked = self
            .rt
            .resolve_within(&server.hostname, server.port, limit / 2);
        let why = match self.rt.timeout(limit, asked).await {
            Ok(Ok(addresses)) => return Ok(addresses),
            Ok(Err(error)) => error.to_string(),
            Err(_late) => format!(
                "no answer within {} ms (mysql-connect_timeout_server)",
                limit.as_millis()
            ),
        };
        let why = format!("nobody says where '{}' is: {why}", server.hostname);
        // The room for those that are to be opened counts, too.
        Err(if place.taken() > place.opening.get() {
            Attempt::Lacking(why)
        } else {
            Attempt::Again(why)
        })
    }

    /// At the first address that somebody answers at, if only with an error: a name may have one at
    /// which the server does not listen, or nobody is. Where nobody was a moment ago, it is tried
    /// last; but for the last, none has more than its share of the time.
    async fn log_in_at_one_of(
        &self,
        addresses: &[Address],
        place: &Rc<Place>,
        want: &Want<'_>,
    ) -> Result<(Conn, net::Hello), Attempt> {
        let mut failed = Attempt::Again(format!("'{}' has no address", place.server().hostname));
        let v = &want.snapshot.variables;
        let limit = Duration::from_millis(v.mysql_connect_timeout_server);
        let share =
            (limit / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX)).max(SHARE_MIN);
        let addresses = place.known.silent_last(
            addresses,
            self.rt.now(),
            Duration::from_secs(v.mysql_shun_recovery_time_sec),
        );
        for (at, address) in (1..).zip(&addresses) {
            let patience = if at == addresses.len() {
                Duration::MAX
            } else {
                share
            };
            match self.log_in_at(address, patience, place, want).await {
                Err(Attempt::Unreached(why)) => failed = Attempt::Again(why),
                // Where an address cannot be used from here at all, what another one said counts.
                Err(Attempt::Lacking(why)) if at == 1 => failed = Attempt::Lacking(why),
                Err(Attempt::Lacking(_)) => {}
                answered => return answered,
            }
        }
        Err(failed)
    }

    /// Logs in to the server, which is at this address: with the password that it knew last, then
    /// with the other, if there is one. `patience`: for somebody to be there.
    pub(crate) async fn log_in_at(
        &self,
        address: &Address,
        patience: Duration,
        place: &Rc<Place>,
        want: &Want<'_>,
    ) -> Result<(Conn, net::Hello), Attempt> {
        let passwords = passwords(want);
        let [first, second] = passwords.as_slice() else {
            return self
                .log_in_with(
                    passwords.first().unwrap_or(want.secret),
                    address,
                    patience,
                    place,
                    want,
                )
                .await;
        };
        let knows_second = place.known.knows_second(want.user);
        let (one, other) = if knows_second {
            (second, first)
        } else {
            (first, second)
        };
        let begun = self.log_in_with(one, address, patience, place, want).await;
        if !matches!(&begun, Err(Attempt::Final(BackendFailed::Refused { code, .. })) if is_wrong_password(*code))
        {
            return begun;
        }
        let again = self
            .log_in_with(other, address, patience, place, want)
            .await;
        if again.is_ok() {
            place.known.has_known(want.user, !knows_second);
        }
        again
    }

    async fn log_in_with(
        &self,
        secret: &Secret,
        address: &Address,
        patience: Duration,
        place: &Rc<Place>,
        want: &Want<'_>,
    ) -> Result<(Conn, net::Hello), Attempt> {
        let mut conn = self.reach(address, patience, place, want).await?;
        let tls = self.connector(&place.server(), want)?;
        let attributes = attributes_of(want);
        let server = place.server();
        let account = account(want, secret, &attributes, &server, tls.as_ref());
        match net::login(&mut conn, &account).await {
            Ok(hello) => Ok((conn, hello)),
            Err(refused) => Err(of_refusal(refused)),
        }
    }

    /// A connection over which nobody has said anything, save for whom it is.
    pub(crate) async fn reach(
        &self,
        address: &Address,
        patience: Duration,
        place: &Place,
        want: &Want<'_>,
    ) -> Result<Conn, Attempt> {
        let connected = self
            .rt
            .timeout(patience, self.rt.connect(address))
            .await
            .unwrap_or_else(|_late| {
                place.known.is_silent(address, self.rt.now());
                Err(std::io::ErrorKind::TimedOut.into())
            });
        let socket = connected.map_err(|error| match rt::is_short_of(&error) {
            Some(what) => Attempt::Lacking(format!("this machine has no more {what}: {error}")),
            None => Attempt::Unreached(error.to_string()),
        })?;
        probe_when_silent(&socket, &want.snapshot.variables);
        let mut conn = Conn::new(socket);
        let version = place.proxy_protocol.get();
        if version > 0 {
            let to = match conn.socket().peer() {
                Address::Tcp(at) => Some(at),
                Address::Unix(_) => None,
            };
            let mut header = Vec::with_capacity(128);
            wire::proxied::write(&mut header, version, want.client, to);
            conn.send(header)
                .await
                .map_err(|error| Attempt::Again(error.to_string()))?;
        }
        Ok(conn)
    }

    /// TLS towards a server, by its row and the parameters that fit it best.
    pub(crate) fn connector(
        &self,
        server: &Server,
        want: &Want<'_>,
    ) -> Result<Option<Connector>, Attempt> {
        if !server.use_ssl || server.port == 0 {
            return Ok(None);
        }
        let v = &want.snapshot.variables;
        let settings = match server.ssl_for(want.user) {
            Some(own) => Settings {
                ca: own.ca.to_string(),
                capath: own.capath.to_string(),
                cert: own.cert.to_string(),
                key: own.key.to_string(),
                cipher: own.cipher.to_string(),
                crl: own.crl.to_string(),
                crlpath: own.crlpath.to_string(),
                versions: own.tls_versions().map(str::to_owned).collect(),
            },
            None => Settings {
                ca: v.mysql_ssl_p2s_ca.to_string(),
                capath: v.mysql_ssl_p2s_capath.to_string(),
                cert: v.mysql_ssl_p2s_cert.to_string(),
                key: v.mysql_ssl_p2s_key.to_string(),
                cipher: v.mysql_ssl_p2s_cipher.to_string(),
                crl: v.mysql_ssl_p2s_crl.to_string(),
                crlpath: v.mysql_ssl_p2s_crlpath.to_string(),
                versions: Vec::new(),
            },
        };
        let mut known = self.connectors.borrow_mut();
        if let Some(connector) = known.get(&settings) {
            return Ok(Some(connector.clone()));
        }
        match Connector::new(&settings) {
            Ok(connector) => {
                known.insert(settings, connector.clone());
                Ok(Some(connector))
            }
            Err(message) => {
                self.note(&format!(
                    "TLS to {}:{}: {message}",
                    server.hostname, server.port
                ));
                let message =
                    "TLS to the server is not configured right; the proxy's log has the reason"
                        .to_owned();
                Err(refused_by_us(errors::SECURE_TRANSPORT_REQUIRED, message))
            }
        }
    }
}

/// The kernel asks whether the other end is still there when nothing was heard of it for
/// `mysql-tcp_keepalive_time` (0: for as long as the system says): one that lost its power or its
/// network says no farewell. Of a Unix socket there is nothing to ask, and traffic does not depend
/// on it.
pub fn probe_when_silent(socket: &rt::Socket, variables: &Variables) {
    if variables.mysql_use_tcp_keepalive {
        let idle = u32::try_from(variables.mysql_tcp_keepalive_time).unwrap_or(u32::MAX);
        let _best_effort = socket.keepalive(Some(idle));
    }
}

/// `init_connect` of the hostgroup, else of the proxy; none if empty.
#[must_use]
pub fn init_connect(snapshot: &Snapshot, hostgroup: u32) -> Option<&str> {
    let own = snapshot
        .servers
        .hostgroup(hostgroup)
        .and_then(|h| h.attributes.init_connect.as_deref());
    let text = own.unwrap_or(&snapshot.variables.mysql_init_connect);
    (!text.is_empty() && text != "(null)").then_some(text)
}

/// Whether there is a hostgroup whose connections begin with one.
#[must_use]
pub fn any_init_connect(snapshot: &Snapshot) -> bool {
    // A hostgroup that nobody has is as mysql-init_connect says.
    snapshot.servers.begins() || init_connect(snapshot, u32::MAX).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::cell::RefCell;
    use wire::connect_attributes::ConnectAttributes;

    #[test]
    fn a_name_leads_to_the_first_of_its_addresses_that_somebody_is_at() {
        testing::with_several(|rt, pools, place| async move {
            let addresses: Vec<Address> = ["10.9.9.1:3306", "10.9.9.2:3306", "10.9.9.3:3306"]
                .iter()
                .map(|at| at.parse().unwrap())
                .collect();
            let came = Rc::new(RefCell::new(Vec::new()));
            for at in &addresses[1..] {
                let listener = rt.listen(at, rt::ListenOptions::default()).unwrap();
                let (came, at) = (came.clone(), at.clone());
                rt.spawn(async move {
                    while listener.accept().await.is_ok() {
                        came.borrow_mut().push(at.clone());
                    }
                });
            }
            let (attributes, state, snapshot) = (
                ConnectAttributes::default(),
                State::new("", 45),
                Snapshot::default(),
            );
            let want = testing::want(&snapshot, &state, &attributes);
            // Who has let us in and left without a word is not asked again elsewhere.
            let failed = pools.log_in_at_one_of(&addresses, &place, &want).await;
            assert!(matches!(failed, Err(Attempt::Again(_))));
            assert_eq!(*came.borrow(), addresses[1..2]);
            let failed = pools.log_in_at_one_of(&addresses[..1], &place, &want).await;
            assert!(matches!(failed, Err(Attempt::Again(_))));
            // Nobody says anything at the second for its share of the time: then the third, which
            // is first for a while.
            rt.sim_faults().unwrap().freeze(&addresses[1]);
            for (at_most_ms, third) in [(600, 1), (50, 2)] {
                let begun = rt.now();
                let failed = pools.log_in_at_one_of(&addresses[1..], &place, &want).await;
                assert!(matches!(failed, Err(Attempt::Again(_))));
                assert_eq!(
                    came.borrow()
                        .iter()
                        .filter(|at| **at == addresses[2])
                        .count(),
                    third
                );
                assert!(
                    rt.now() - begun < Duration::from_millis(at_most_ms),
                    "{:?}",
                    rt.now() - begun
                );
            }
            rt.sleep(Duration::from_secs(
                snapshot.variables.mysql_shun_recovery_time_sec,
            ))
            .await;
            rt.sim_faults().unwrap().thaw(&addresses[1]);
            let before = came
                .borrow()
                .iter()
                .filter(|at| **at == addresses[1])
                .count();
            let failed = pools.log_in_at_one_of(&addresses[1..], &place, &want).await;
            assert!(matches!(failed, Err(Attempt::Again(_))));
            assert!(
                came.borrow()
                    .iter()
                    .filter(|at| **at == addresses[1])
                    .count()
                    > before
            );
        });
    }
}
