//! A client logs in at a server through us. Nobody but the server knows its password: a connection can be
//! opened while the client is there to prove it, and not again.
//!
//! docs/decisions/0042-a-login-is-relayed.md

use crate::connection::backend::{Backend, Idle};
use crate::connection::lease::OpenedAs;
use crate::connection::place::Place;
use crate::failure::BackendFailed;
use crate::hostgroup::chooser::working;
use crate::open::taken::Taken;
use crate::pool::pools::Pools;
use crate::session::hold::Hold;
use crate::session::key::{Key, OF_CLIENT};
use crate::session::login::{Attempt, account, attributes_of, of_refusal};
use crate::session::state::State;
use crate::session::variables::ROLE;
use crate::session::want::Want;
use config::{Server, Snapshot};
use net::tls::Acceptor;
use net::{Conn, NetError, Refused, RelayFailed, Secret, Unsaid};
use rt::Instant;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::connect_attributes::ConnectAttributes;
use wire::handshake::{ChangeUser, Greeting, Login};

/// Error number of a server that is full.
const TOO_MANY: u16 = 1040;
/// So long a server may take to notice that a connection was closed.
const GIVES_ROOM: Duration = Duration::from_millis(20);
/// So long a server is left alone that did not let in a client that another had let in: each try costs its
/// clients time, and counts among its aborted connects.
const BESIDE_AGAIN: Duration = Duration::from_secs(600);

/// A server that has greeted, and waits for a login.
pub struct Greeted {
    room: Taken,
    conn: Conn,
    greeting: Greeting,
    as_told: (OpenedAs, Instant),
}

impl fmt::Debug for Greeted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Greeted by {:?}", self.room.place())
    }
}

impl Greeted {
    /// Returns the server.
    #[must_use]
    pub fn server(&self) -> Arc<Server> {
        self.room.place().server()
    }

    /// Returns the greeting that the server has sent.
    #[must_use]
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }
}

/// Why a client was not let in.
#[derive(Debug)]
pub enum NotLetIn {
    /// Fault of the client: it left, or what it says makes no sense.
    ByClient(NetError),
    /// The server refused it, or broke off.
    Refused(BackendFailed),
}

impl Pools {
    /// Reaches a server of the hostgroup: of those that serve and that `may` be reached, the one with the fewest
    /// connections; those that have just failed come last. Each is tried once. The connection counts among its
    /// `max_connections`.
    ///
    /// # Errors
    /// What the client is to be told where none lets anybody in: a server's own words if there are any.
    pub async fn greeted(
        &self,
        hostgroup: u32,
        client: Option<SocketAddr>,
        snapshot: &Snapshot,
        may: impl Fn(&Server) -> bool,
    ) -> Result<Greeted, BackendFailed> {
        let (state, attributes) = (State::new("", 45), ConnectAttributes::default());
        let want = Want {
            hostgroup,
            client,
            ..Want::of_nobody(("", &Secret::Relayed), snapshot, &state, &attributes)
        };
        let group = self.group(hostgroup);
        let (mut places, all): (Vec<_>, Vec<_>) = {
            let now = self.rt.now();
            let all = group.places.borrow().clone();
            (working(&all, now).cloned().collect(), all)
        };
        places.retain(|place| may(&place.server()));
        places.sort_by_key(|place| (place.known.has_failed(self.rt.now()), place.taken()));
        let mut why = all_are_down();
        for place in &places {
            let has_room = place.make_room(&all, self.rt.now(), &self.tally);
            let room = has_room
                .then(|| Taken::of(place, place.row_max()))
                .flatten();
            let Some(room) = room else {
                why = refused(TOO_MANY, *b"08004", "Too many connections");
                continue;
            };
            let failed = match self.greeted_if_full(room, place, &want).await {
                Ok(greeted) => return Ok(greeted),
                Err(Silent::Attempt(failed)) => failed,
                Err(Silent::Refused(code, state, message)) => {
                    why = refused(code, state, &message);
                    let words = BackendFailed::Refused {
                        code,
                        state,
                        message,
                    };
                    Attempt::Again(format!("error {code}: {words}"))
                }
            };
            self.has_failed_to_open(place, &want, &failed);
        }
        Err(why)
    }

    /// As [`Self::greeted_at`]. Where the server is full, what is idle here makes room, one after another.
    async fn greeted_if_full(
        &self,
        room: Taken,
        place: &Rc<Place>,
        want: &Want<'_>,
    ) -> Result<Greeted, Silent> {
        let limit = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server);
        let until = self.rt.now() + limit;
        let (mut said, mut gave) = (self.greeted_at(room, place, want).await, false);
        while matches!(said, Err(Silent::Refused(TOO_MANY, ..))) && self.rt.now() < until {
            gave |= place.give_up_oldest(&self.tally);
            let room = gave.then(|| Taken::of(place, place.row_max())).flatten();
            let Some(room) = room else {
                break;
            };
            // The server has to notice, and others may be quicker.
            self.rt.sleep(GIVES_ROOM).await;
            said = self.greeted_at(room, place, want).await;
        }
        said
    }

    async fn greeted_at(
        &self,
        room: Taken,
        place: &Rc<Place>,
        want: &Want<'_>,
    ) -> Result<Greeted, Silent> {
        let limit = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server);
        let as_told = (place.opened_as(), self.rt.now());
        let reached = async {
            let mut conn = self.reach_one_of(place, limit, want).await?;
            match net::greeting(&mut conn).await {
                Ok(greeting) => Ok((conn, greeting)),
                Err(Refused::Server {
                    code,
                    state,
                    message,
                }) => Err(Silent::Refused(code, state, message)),
                Err(refused) => Err(Silent::Attempt(of_refusal(refused))),
            }
        };
        let (conn, greeting) = self.rt.timeout(limit, reached).await.map_err(|_late| {
            let limit_ms = limit.as_millis();
            Attempt::Again(format!(
                "no greeting within {limit_ms} ms (mysql-connect_timeout_server)"
            ))
        })??;
        Ok(Greeted {
            room,
            conn,
            greeting,
            as_told,
        })
    }

    /// At the first of its addresses at which somebody is.
    async fn reach_one_of(
        &self,
        place: &Rc<Place>,
        limit: Duration,
        want: &Want<'_>,
    ) -> Result<Conn, Attempt> {
        let addresses = self.addresses_of(place, limit).await?;
        let share = limit / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut failed = Attempt::Again(format!("'{}' has no address", place.server().hostname));
        for address in &addresses {
            match self.reach(address, share, place, want).await {
                Ok(conn) => return Ok(conn),
                Err(why) => failed = why,
            }
        }
        Err(failed)
    }

    /// Logs in for a client that is there to prove who it is. `login` is what it has said; `own` has the key
    /// that it was offered; `want` is what its session will want.
    ///
    /// # Errors
    /// [`NotLetIn`]; the connection is closed.
    pub async fn log_in_for(
        &self,
        greeted: Greeted,
        client: &mut Conn,
        (login, own): (&Login, Option<&Acceptor>),
        want: &Want<'_>,
    ) -> Result<(Box<Backend>, Unsaid), NotLetIn> {
        let Greeted {
            room,
            mut conn,
            greeting,
            as_told,
        } = greeted;
        let place = room.place().clone();
        let server = place.server();
        let fails = |failed: Attempt| {
            self.has_failed_to_open(&place, want, &failed);
            NotLetIn::Refused(match failed {
                Attempt::Final(failed) => failed,
                _ => BackendFailed::BrokeBefore(NetError::Closed),
            })
        };
        let tls = self.connector(&server, want).map_err(fails)?;
        let attributes = attributes_of(want);
        let mut account = account(want, want.secret, &attributes, &server, tls.as_ref());
        account.database = login.database.as_deref();
        let patience = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server);
        let said = net::log_in_for(
            &mut conn,
            greeting,
            &account,
            client,
            (login, own),
            patience,
        );
        let (hello, unsaid) = match said.await {
            Ok(said) => said,
            Err(RelayFailed::Client(error)) => return Err(NotLetIn::ByClient(error)),
            Err(RelayFailed::Server(Refused::Server {
                code,
                state,
                message,
            })) => {
                // What is remembered of the server depends on the number; the client hears the words.
                let told = refused(code, state, &message);
                let _remembered = fails(of_refusal(Refused::Server {
                    code,
                    state,
                    message,
                }));
                return Err(NotLetIn::Refused(told));
            }
            Err(RelayFailed::Server(other)) => return Err(fails(of_refusal(other))),
        };
        let key = Key {
            user: want.user.into(),
            caps: want.caps & OF_CLIENT,
            client: place.client_of(want),
        };
        let logged_in = (conn, hello);
        let opened = Box::pin(self.takes_over(room, want, key, logged_in, as_told)).await;
        let mut backend = opened.map_err(fails)?;
        backend.state.schema = login.database.as_deref().unwrap_or_default().into();
        Ok((backend, unsaid))
    }

    /// Logs in to one server of another hostgroup, too, where the user has no connection that is idle: once
    /// the session has begun nobody could. The connection is idle then. That it cannot be is no matter.
    ///
    /// # Errors
    /// The client is gone.
    pub async fn log_in_beside(
        &self,
        client: &mut Conn,
        unsaid: &mut Unsaid,
        want: &Want<'_>,
    ) -> Result<(), NetError> {
        if !unsaid.may_be_asked(client) {
            return Ok(());
        }
        let now = self.rt.now();
        let group = self.group(want.hostgroup);
        let lacks = |place: &Rc<Place>| {
            let refused = place.refused_beside.get();
            let idle = place.idle.borrow();
            refused.is_none_or(|since| now - since >= BESIDE_AGAIN)
                && !idle.iter().any(|backend| *backend.key.user == *want.user)
        };
        let found = {
            let places = group.places.borrow();
            let mut open = working(&places, now);
            open.find(|place| lacks(place)).cloned()
        };
        let room = found.and_then(|place| Taken::of(&place, place.row_max()));
        let Some(room) = room else {
            return Ok(());
        };
        let place = room.place().clone();
        let opened = Box::pin(self.open_beside(room, client, unsaid, want)).await?;
        match opened {
            Some(backend) => self.release(backend),
            None => place.refused_beside.set(Some(self.rt.now())),
        }
        Ok(())
    }

    async fn open_beside(
        &self,
        room: Taken,
        client: &mut Conn,
        unsaid: &mut Unsaid,
        want: &Want<'_>,
    ) -> Result<Option<Box<Backend>>, NetError> {
        let place = room.place().clone();
        let server = place.server();
        let greeted = match self.greeted_at(room, &place, want).await {
            Ok(greeted) => greeted,
            Err(Silent::Attempt(failed)) => {
                self.has_failed_to_open(&place, want, &failed);
                return Ok(None);
            }
            Err(Silent::Refused(..)) => return Ok(None),
        };
        let Greeted {
            room,
            mut conn,
            greeting,
            as_told,
        } = greeted;
        let Ok(tls) = self.connector(&server, want) else {
            return Ok(None);
        };
        let attributes = attributes_of(want);
        let account = account(want, want.secret, &attributes, &server, tls.as_ref());
        let patience = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server);
        let said =
            net::log_in_beside(&mut conn, greeting, &account, client, unsaid, patience).await?;
        let Some(hello) = said else {
            return Ok(None);
        };
        let key = Key {
            user: want.user.into(),
            caps: want.caps & OF_CLIENT,
            client: place.client_of(want),
        };
        let opened = self.takes_over(room, want, key, (conn, hello), as_told);
        Ok(Box::pin(opened).await.ok())
    }

    /// COM_CHANGE_USER of a client on the connection of its login: it is there to prove who it becomes.
    /// `own` has the key that it was offered; `want` is what its session will want.
    ///
    /// # Errors
    /// [`NotLetIn`]; the connection is closed.
    pub async fn change_user_for(
        &self,
        backend: Box<Backend>,
        client: &mut Conn,
        (change, own): (&ChangeUser, Option<&Acceptor>),
        want: &Want<'_>,
    ) -> Result<(Box<Backend>, Unsaid), NotLetIn> {
        let mut kept = Changing(self, Some(backend));
        let Some(backend) = kept.1.as_mut() else {
            return Err(NotLetIn::Refused(BackendFailed::CutOff));
        };
        let broke = || NotLetIn::Refused(BackendFailed::BrokeBefore(NetError::Closed));
        let in_xa = backend.holds.has(Hold::Xa) || backend.holds.has(Hold::Branch);
        let is_fit = backend.idle == Idle::Proven && backend.conn.is_idle() && !in_xa;
        if !is_fit {
            return Err(broke());
        }
        backend.lasting.closing.clear();
        backend.local.undisturbed = None;
        // Until it is known what has come of it.
        backend.idle = Idle::Doubtful;
        let said = ChangeUser {
            attributes: attributes_of(want),
            ..change.clone()
        };
        let patience = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server);
        let said = (&said, want.caps, own);
        let hello = backend.hello.clone();
        let done = net::change_user_for(&mut backend.conn, &hello, client, said, patience).await;
        let (status, proof, unsaid) = match done {
            Ok(done) => done,
            Err(failed) => {
                return Err(match failed {
                    RelayFailed::Client(error) => NotLetIn::ByClient(error),
                    RelayFailed::Server(Refused::Server {
                        code,
                        state,
                        message,
                    }) => NotLetIn::Refused(refused(code, state, &message)),
                    RelayFailed::Server(other) => match of_refusal(other) {
                        Attempt::Final(failed) => NotLetIn::Refused(failed),
                        _ => broke(),
                    },
                });
            }
        };
        backend.idle = Idle::Proven;
        backend.hello.proof = Arc::new(proof);
        if backend.key.user != change.user.as_str().into() {
            backend.state.unset(ROLE);
            backend.key.user = change.user.as_str().into();
        }
        backend.state.schema = change.database.as_deref().unwrap_or_default().into();
        if backend.is_as_new(status, true).await.is_err() {
            return Err(broke());
        }
        let backend = kept.1.take().ok_or_else(broke)?;
        Ok((backend, unsaid))
    }

    /// The session starts over on a connection that only its server could open anew: as after a login, in
    /// the schema in which it is. None if that cannot be: it is closed.
    pub async fn start_over(&self, mut backend: Box<Backend>) -> Option<Box<Backend>> {
        if backend.idle == Idle::Proven && backend.conn.is_idle() {
            self.reset(&mut backend).await;
        }
        if backend.idle == Idle::Proven {
            return Some(backend);
        }
        self.release(backend);
        None
    }
}

/// A connection whose user changes. Dropped so, it is closed.
struct Changing<'a>(&'a Pools, Option<Box<Backend>>);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        if let Some(backend) = self.1.take() {
            self.0.abandon(backend);
        }
    }
}

/// Why a server has not greeted.
enum Silent {
    Attempt(Attempt),
    /// Its first packet is an error.
    Refused(u16, [u8; 5], String),
}

impl From<Attempt> for Silent {
    fn from(failed: Attempt) -> Self {
        Self::Attempt(failed)
    }
}

fn refused(code: u16, state: [u8; 5], message: &str) -> BackendFailed {
    BackendFailed::Refused {
        code,
        state,
        message: message.to_owned(),
    }
}

/// As MySQL Proxy says it.
fn all_are_down() -> BackendFailed {
    refused(1105, *b"07000", "(proxy) all backends are down")
}
