//! A connection on its way to another core.

use crate::connection::backend::{Backend, Idle};
use crate::connection::lease::{Lasting, Lease, Local};
use crate::connection::place::Place;
use crate::connection::slots::Slots;
use crate::servers::room::Room;
use crate::session::hold::Holds;
use crate::session::key::Key;
use crate::session::prepared::Here;
use crate::session::state::{Names, State, UserValue, UserVariables, Variables};
use crate::tally::Tally;
use net::{Conn, Hello, Parted};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use wire::caps::Caps;

/// A connection on its way. Dropped, it is closed and its permit given back.
pub struct Lent {
    pub(crate) conn: Option<Parted>,
    pub(crate) permit: Option<Room>,
    pub(crate) hostgroup: u32,
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    pub(crate) at: Option<IpAddr>,
    pub(crate) hello: Hello,
    user: Box<str>,
    caps: Caps,
    /// Nothing holds it: modes are all that there is.
    holds: Holds,
    /// None once it has arrived.
    state: Option<SentState>,
    pub(crate) init_connect: Option<Box<str>>,
    /// Number of the first slot: the names there are used again from it on.
    first_slot: u32,
    pub(crate) lasting: Lasting,
    pub(crate) number: u64,
}

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lent({} {}:{})", self.hostgroup, self.host, self.port)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            permit.give();
        }
    }
}

impl Lent {
    pub(crate) fn of(backend: &mut Backend, conn: Parted, number: u64) -> Self {
        // Statements that are prepared there are this core's to know.
        backend.close_all_prepared();
        // Its permit is not given back when the rest of it is dropped.
        backend.lent = true;
        let server = backend.place.server();
        Self {
            conn: Some(conn),
            permit: Some(backend.place.room.clone()),
            hostgroup: server.hostgroup,
            host: backend.place.host().clone(),
            port: server.port,
            at: backend.place.at(),
            hello: backend.hello.clone(),
            user: (&*backend.key.user).into(),
            caps: backend.key.caps,
            holds: Holds::with_modes(backend.holds.modes(), backend.state.autocommit),
            state: Some(SentState::from(&backend.state)),
            init_connect: backend.init_connect.as_deref().map(Into::into),
            first_slot: backend.slots.first(),
            lasting: backend.lasting.clone(),
            number,
        }
    }

    /// The state that is set there, once.
    pub(crate) fn take_state(&mut self) -> Option<State> {
        self.state.take().map(State::from)
    }

    /// Loses all of it but what each connection has.
    #[cfg(debug_assertions)]
    pub(crate) fn forget_state(&mut self) {
        if let Some(state) = &mut self.state {
            (state.variables, state.user) = (None, Vec::new());
        }
    }

    /// Returns the connection as this core has it from now on, idle at the place of its server.
    pub(crate) fn arrive(
        &mut self,
        place: &Rc<Place>,
        (conn, state): (Conn, State),
        tally: &Rc<Tally>,
    ) -> Backend {
        Backend {
            conn,
            hello: self.hello.clone(),
            holds: self.holds,
            idle: Idle::Proven,
            interrupted: false,
            place: place.clone(),
            key: Key {
                user: (&*self.user).into(),
                caps: self.caps,
                client: None,
            },
            told_client: None,
            state,
            init_connect: self.init_connect.take().map(|text| (&*text).into()),
            prepared: Here::default(),
            slots: Slots::beginning_at(self.first_slot),
            retired: false,
            tally: tally.clone(),
            in_use: false,
            slot: None,
            lent: false,
            local: Local::after(&self.lasting),
            lasting: self.lasting.clone(),
            lease: Lease::default(),
        }
    }
}

/// [`Names`] between threads.
#[derive(Debug)]
enum SentNames {
    Collation(u16),
    Written(Box<str>),
    Unknown,
}

impl From<&Names> for SentNames {
    fn from(names: &Names) -> Self {
        match names {
            Names::Collation(id) => Self::Collation(*id),
            Names::Written(words) => Self::Written((&**words).into()),
            Names::Unknown => Self::Unknown,
        }
    }
}

impl From<&SentNames> for Names {
    fn from(names: &SentNames) -> Self {
        match names {
            SentNames::Collation(id) => Self::Collation(*id),
            SentNames::Written(words) => Self::Written((&**words).into()),
            SentNames::Unknown => Self::Unknown,
        }
    }
}

/// A user variable between threads.
#[derive(Debug)]
struct SentValue {
    name: Box<str>,
    literal: Box<str>,
    names: Option<SentNames>,
    null: bool,
}

/// [`State`] between threads.
#[derive(Debug)]
struct SentState {
    schema: Box<str>,
    names: SentNames,
    autocommit: bool,
    variables: Option<Variables>,
    user: Vec<SentValue>,
}

impl From<&State> for SentState {
    fn from(state: &State) -> Self {
        let State {
            schema,
            names,
            autocommit,
            variables,
            user: _,
        } = state;
        let sent = |(name, value): (&str, &UserValue)| SentValue {
            name: name.into(),
            literal: value.literal.clone(),
            names: value.names.as_ref().map(SentNames::from),
            null: value.null,
        };
        Self {
            schema: (&**schema).into(),
            names: SentNames::from(names),
            autocommit: *autocommit,
            variables: variables.as_deref().cloned(),
            user: state.user_variables().map(sent).collect(),
        }
    }
}

impl From<SentState> for State {
    fn from(sent: SentState) -> Self {
        let SentState {
            schema,
            names,
            autocommit,
            variables,
            user,
        } = sent;
        let value = |sent: SentValue| {
            let value = UserValue {
                literal: sent.literal,
                names: sent.names.as_ref().map(Names::from),
                null: sent.null,
            };
            (sent.name, value)
        };
        let user: UserVariables = user.into_iter().map(value).collect();
        Self {
            schema: (&*schema).into(),
            names: Names::from(&names),
            autocommit,
            variables: variables.map(Rc::new),
            user: (!user.is_empty()).then(|| Rc::new(user)),
        }
    }
}
