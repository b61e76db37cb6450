//! Sessions of users whom only a server knows: while there are no users of our own, a client gets a
//! server's greeting, and proves to that server who it is. Its session keeps the connection.
//!
//! docs/decisions/0042-a-login-is-relayed.md

use crate::command::trouble::Ended;
use crate::core::Core;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::login::door::known_charset;
use crate::scripts::door;
use crate::scripts::door::{Early, Ends};
use crate::scripts::servers::is_taken_out;
use crate::session::Session;
use crate::talk::relayed::hostgroup;
use backend::{Backend, BackendFailed, Greeted, Names, NotLetIn, State, Want};
use bridge::Auditable;
use config::{Password, Snapshot, User};
use net::{Conn, Door, Entered, Heard, LoginFailed, Secret};
use rt::Address;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::auth::Plugin;
use wire::handshake::{ChangeUser, Greeting};
use wire::{caps, ok};

/// Capabilities that a server has of its own vendor: a client of the other is not offered them.
const OF_A_VENDOR: caps::Caps = caps::QUERY_ATTRIBUTES
    | caps::OPTIONAL_METADATA
    | caps::MARIADB_BULK
    | caps::MARIADB_CACHE_METADATA
    | caps::MARIADB_EXTENDED_TYPES;

/// A client that a server has let in.
pub(crate) struct LetIn {
    pub(crate) entered: Entered,
    pub(crate) user: Arc<User>,
    pub(crate) backend: Box<Backend>,
}

/// Why it is not in.
pub(crate) enum Refused {
    /// As of any login.
    Ours(LoginFailed),
    /// A server's word; with the name of who wanted in.
    There(Complaint, String),
}

/// A server that greets a client, and the scripts that have met the client before.
type Greets = (Greeted, Option<Box<Early>>);

/// The server that greets client `id`; none if logins are checked here. Scripts choose it, and one
/// that they have taken out greets nobody who does not ask for it by name.
///
/// # Errors
/// What the client is to be told instead of a greeting.
pub(crate) async fn greeted(
    core: &Rc<Core>,
    epoch: &Epoch,
    conn: &Conn,
    (id, ends): (u32, Ends<'_>),
) -> Result<Option<Greets>, Complaint> {
    let v = &epoch.snapshot.variables;
    if !(v.mysql_relay_logins && epoch.snapshot.users.is_empty()) {
        return Ok(None);
    }
    let peer = match conn.socket().peer() {
        Address::Tcp(at) => Some(at),
        Address::Unix(_) => None,
    };
    // A script may wait in its middle; nobody waits for it longer than for a client.
    let limit = Duration::from_millis(v.mysql_connect_timeout_client);
    let late = |_late| {
        let words = "a script takes longer than mysql-connect_timeout_client before the greeting";
        Complaint::with(1105, "07000", words)
    };
    let met = door::meet(core, epoch, id, ends);
    let mut early = core.rt.timeout(limit, met).await.map_err(late)??;
    let named = early.as_ref().and_then(|early| early.server()).cloned();
    let hostgroup = named
        .as_ref()
        .map_or_else(|| hostgroup(epoch), |server| server.hostgroup);
    let scripts = epoch.snapshot.scripts.active();
    let may = |row: &config::Server| match &named {
        Some(named) => *row.hostname == *named.host && row.port == named.port,
        None => !is_taken_out(core, scripts, row),
    };
    let greeted = core
        .pools
        .greeted(hostgroup, peer, &epoch.snapshot, may)
        .await;
    let greeted = greeted.map_err(told)?;
    if let Some(early) = &mut early {
        let shown = core.rt.timeout(limit, early.greeted(&greeted)).await;
        shown.map_err(late)??;
    }
    Ok(Some((greeted, early)))
}

/// The hostgroup to whose servers such a user proves himself besides the one at which he logs in.
fn beside(snapshot: &Snapshot, own: u32) -> Option<u32> {
    let v = &snapshot.variables;
    let both = [
        v.mysql_relay_logins_hostgroup,
        v.mysql_relay_logins_beside_hostgroup,
    ];
    let mut both = both.into_iter().filter_map(|one| u32::try_from(one).ok());
    both.find(|one| *one != own)
}

/// A server's words as they are.
fn told(failure: BackendFailed) -> Complaint {
    match failure {
        BackendFailed::Refused {
            code,
            state,
            message,
        } => Complaint {
            code,
            state,
            words: message,
        },
        other => Complaint::of(&other),
    }
}

/// Our door, with what a server says of itself and of the proof that it wants.
pub(crate) fn door(door: Door, epoch: &Epoch, greeting: &Greeting) -> Door {
    let is_mariadb = greeting.server_version.contains("MariaDB");
    let offered = match is_mariadb == epoch.claims_mariadb() {
        true => door.caps,
        false => door.caps & !OF_A_VENDOR | caps::LONG_PASSWORD,
    };
    Door {
        server_version: greeting.server_version.clone(),
        charset: greeting.charset,
        plugin: Plugin::by_name(&greeting.auth_plugin).unwrap_or(Plugin::MysqlNative),
        nonce: greeting.scramble,
        caps: offered,
        ..door
    }
}

/// The login, at the server that has greeted. Scripts that have met the client judge it.
pub(crate) async fn enter(
    core: &Core,
    epoch: &Epoch,
    conn: &mut Conn,
    (door, header): (&Door, Option<Heard<'_>>),
    (greeted, mut early): (Greeted, Option<&mut Early>),
) -> Result<LetIn, Refused> {
    let login = net::introduce(conn, door, header).await;
    let mut login = login.map_err(Refused::Ours)?;
    let gone = |error| Refused::Ours(LoginFailed::Net(error));
    let mut is_own = true;
    if let Some(early) = &mut early {
        let said = early.said(&login).await;
        let other = said.map_err(|complaint| Refused::There(complaint, login.user.clone()))?;
        is_own = other.is_none();
        login = other.unwrap_or(login);
    }
    let early = early.as_deref();
    let state = State::new("", login.charset);
    let client = match conn.socket().peer() {
        Address::Tcp(at) => Some(at),
        Address::Unix(_) => None,
    };
    let want = Want {
        hostgroup: greeted.server().hostgroup,
        caps: login.caps,
        collation: login.charset,
        session: door.thread_id,
        client,
        ..Want::of_nobody(
            (&login.user, &Secret::Relayed),
            &epoch.snapshot,
            &state,
            &login.attributes,
        )
    };
    let said = (&login, door.tls.as_ref());
    let opened = core.pools.log_in_for(greeted, conn, said, &want).await;
    let (backend, mut unsaid) = match opened {
        Ok(opened) => opened,
        Err(NotLetIn::ByClient(error)) => return Err(gone(error)),
        Err(NotLetIn::Refused(failure)) => {
            let complaint = judged_ill(early, told(failure)).await;
            return Err(Refused::There(complaint, login.user.clone()));
        }
    };
    if let Err(complaint) = judged_well(early).await {
        core.pools.abandon(backend);
        return Err(Refused::There(complaint, login.user.clone()));
    }
    let own = want.hostgroup;
    // Another proof can be had of the client itself, and not of one that a script has made up.
    if let Some(beside) = beside(&epoch.snapshot, own).filter(|_| is_own) {
        let want = Want {
            hostgroup: beside,
            ..want
        };
        let asked = core.pools.log_in_beside(conn, &mut unsaid, &want);
        asked.await.map_err(gone)?;
    }
    unsaid.tell(conn).await.map_err(gone)?;
    login.auth_response = Vec::new();
    Ok(LetIn {
        user: Arc::new(user(&login.user, own)),
        entered: Entered {
            login,
            secret: Secret::Relayed,
            nonce: door.nonce,
            vouch: Vec::new(),
        },
        backend,
    })
}

/// Shows scripts that a server has let a client in.
///
/// # Errors
/// Words of one that does not.
async fn judged_well(early: Option<&Early>) -> Result<(), Complaint> {
    let Some(early) = early else { return Ok(()) };
    let mut packet = Vec::new();
    let ok = ok::Ok {
        status: wire::status::AUTOCOMMIT,
        ..ok::Ok::default()
    };
    ok.write(&mut packet, caps::PROTOCOL_41);
    early.judged(&packet).await
}

/// Shows scripts the refusal of a server; the words that the client gets.
async fn judged_ill(early: Option<&Early>, complaint: Complaint) -> Complaint {
    let Some(early) = early else { return complaint };
    let mut packet = Vec::new();
    let error = ok::Err {
        code: complaint.code,
        state: complaint.state,
        message: complaint.words.as_bytes(),
    };
    error.write(&mut packet);
    early.judged(&packet).await.err().unwrap_or(complaint)
}

/// Somebody of whom no row says anything.
fn user(name: &str, hostgroup: u32) -> User {
    User {
        username: name.into(),
        password: Password::Empty,
        use_ssl: false,
        default_hostgroup: hostgroup,
        default_schema: None,
        schema_locked: false,
        transaction_persistent: true,
        fast_forward: false,
        // As of a row that says nothing of it.
        max_connections: 10_000,
        attributes: None,
        comment: None,
    }
}

impl Session {
    /// COM_RESET_CONNECTION. The connections of a login that was relayed stay its own.
    pub(crate) async fn starts_over(&mut self, names: Names) {
        let core: Rc<Core> = self.core.clone();
        let mut own = Vec::new();
        if self.is_relayed() {
            let held: Vec<_> = self.held.drain().collect();
            for backend in held {
                own.extend(core.pools.start_over(backend).await);
            }
        }
        self.let_go_of_locks().await;
        self.forget_everything(names);
        own.into_iter()
            .for_each(|backend| self.keeps_login(backend));
    }

    /// COM_CHANGE_USER of whom only a server knows: the proof goes to that server, on the connection of
    /// the login. Whoever is refused there is nobody, and the session ends.
    pub(crate) async fn changes_user_there(
        &mut self,
        epoch: &Epoch,
        body: &[u8],
    ) -> Result<(), Ended> {
        let change = self.read_change(body)?;
        let core: Rc<Core> = self.core.clone();
        let v = &epoch.snapshot.variables;
        if !(v.mysql_relay_logins && epoch.snapshot.users.is_empty()) {
            let words = "COM_CHANGE_USER: this user has logged in at a server, and logins are checked here by now; connect anew";
            return self.refuse(&Complaint::with(1235, "42000", words)).await;
        }
        let own = self.user.default_hostgroup;
        let user = Arc::new(user(&change.user, own));
        let asked = change.charset.unwrap_or(self.collation);
        let fits = known_charset(&core, v, &self.entry.client, asked);
        let fits = fits.and_then(|collation| Ok((collation, self.seat_for(&user)?)));
        let (collation, seat) = match fits {
            Ok(fits) => fits,
            Err(complaint) => return self.is_turned_away(&complaint).await,
        };
        // Whoever it is from now on: what it held elsewhere ends, as at a server.
        let Some(login) = self.held.take(own) else {
            return Err(Ended::Broken);
        };
        self.let_go_of_locks().await;
        self.let_go();
        let change = ChangeUser {
            charset: Some(collation),
            ..change
        };
        let state = State::new("", collation);
        let want = Want {
            hostgroup: own,
            caps: self.caps,
            collation,
            session: self.entry.id,
            client: self.entry.address,
            ..Want::of_nobody(
                (&change.user, &Secret::Relayed),
                &epoch.snapshot,
                &state,
                &change.attributes,
            )
        };
        let acceptor = core.acceptor();
        let said = (&change, acceptor.as_ref());
        let limit = Duration::from_millis(v.mysql_connect_timeout_client);
        let done = core
            .pools
            .change_user_for(login, &mut self.client, said, &want);
        let (backend, unsaid) = match core.rt.timeout(limit, Box::pin(done)).await {
            Ok(Ok(done)) => done,
            Ok(Err(NotLetIn::Refused(failure))) => {
                return self.is_turned_away(&told(failure)).await;
            }
            Ok(Err(NotLetIn::ByClient(_))) | Err(_) => return Err(Ended::Gone),
        };
        unsaid.tell(&mut self.client).await?;
        if let Some(seat) = seat {
            self.seats[1] = seat;
        }
        // MariaDB lets who stays himself keep his role, MySQL does not.
        let stays = user.username == self.user.username && epoch.claims_mariadb();
        let role = self.state.variable(backend::ROLE).filter(|_| stays);
        let role = role.map(str::to_owned);
        self.state = State::new(change.database.as_deref().unwrap_or(""), collation);
        if let Some(role) = role {
            self.state.set(backend::ROLE, &role);
        }
        self.collation = collation;
        self.attributes = Rc::new(change.attributes);
        self.becomes(user);
        self.keeps_login(backend);
        self.tells_that_it_is_in(&[]).await
    }

    async fn is_turned_away(&mut self, complaint: &Complaint) -> Result<(), Ended> {
        self.audit(Auditable::ChangeUserErr, Some(&complaint.words));
        self.tells_that_it_is_not_in(complaint).await?;
        Err(Ended::Broken)
    }
}
