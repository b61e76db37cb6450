//! From an accepted socket to a session: login, limits, and the first OK.

use crate::core::audit::Newcomer;
use crate::core::roster::Entry;
use crate::core::{Core, Seat, operators};
use crate::known::answer;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::known::hosts::turned_away;
use crate::login::certificate::unfit;
use crate::login::door::{
    client_of, denied, door, found, is_not_in, known_charset, local_of, refuse, refuse_newcomer,
    too_many,
};
use crate::login::relayed::{LetIn, Refused};
use crate::login::{console, packing, relayed};
use crate::scripts::door::Early;
use crate::session::through::{Said, Through};
use crate::session::{Session, through};
use backend::{Backend, Greeted, Like};
use bridge::{Auditable, Counter};
use config::{User, in_networks};
use net::{Conn, Door, Entered, Heard};
use rt::{Address, Socket};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::frame::Algorithm;

/// The session of a client that is allowed in; `None` after it was told why not.
pub(crate) async fn enter(core: &Rc<Core>, socket: Socket) -> Option<Session> {
    let mut client = client_of(&socket);
    let local = local_of(&socket);
    let mut conn = Conn::new(socket);
    let epoch = core.epoch();
    let v = &epoch.snapshot.variables;
    backend::probe_when_silent(conn.socket(), v);
    let trusted = match conn.socket().peer() {
        Address::Tcp(at) => {
            !v.mysql_proxy_protocol_networks.is_empty()
                && in_networks(&v.mysql_proxy_protocol_networks, at.ip())
        }
        Address::Unix(_) => false,
    };
    let peer = conn.socket().peer().ip().map(|ip| ip.to_canonical());
    if !trusted && peer.is_some_and(|peer| core.turns_away(peer)) {
        refuse(core, conn, 0, &turned_away(&client.0)).await;
        return None;
    }
    if operators::is_at(&core.console, &local) {
        return Box::pin(console::enter(core, conn, client, local)).await;
    }
    let Some(seat) = core.seat(v.mysql_max_connections) else {
        too_many(core, conn).await;
        return None;
    };
    let id = core.next_session_id();
    let ends = (&client, &local);
    let (greeted, mut early) =
        match Box::pin(relayed::greeted(core, &epoch, &conn, (id, ends))).await {
            Ok(Some((greeted, early))) => (Some(greeted), early),
            Ok(None) => (None, None),
            Err(complaint) => {
                core.tally.up(Counter::ClientConnectionsAborted);
                refuse(core, conn, 0, &complaint).await;
                return None;
            }
        };
    let door = match &greeted {
        Some(greeted) => relayed::door(door(core, &epoch, id), &epoch, greeted.greeting()),
        None => door(core, &epoch, id),
    };
    let limit = Duration::from_millis(v.mysql_connect_timeout_client);
    let mut named = None;
    let mut hear = |header: Option<SocketAddr>| {
        named = header.map(|at| SocketAddr::new(at.ip().to_canonical(), at.port()));
        !named
            .map(|at| at.ip())
            .or(peer)
            .is_some_and(|ip| core.turns_away(ip))
    };
    let hear: Option<Heard<'_>> = if trusted { Some(&mut hear) } else { None };
    let greeted = greeted.zip(Some(early.as_deref_mut()));
    let login = logs_in(core, &epoch, &mut conn, (&door, hear), greeted);
    let outcome = core.rt.timeout(limit, login).await;
    if let Some(at) = named {
        client = (at.ip().to_string(), at.port());
    }
    let address = named.map(|at| at.ip()).or(peer);
    let (mut entered, at_server) = match outcome {
        Ok(Ok(came)) => came,
        Ok(Err(refused)) => {
            is_not_in(core, conn, id, refused, (&client, &local), address).await;
            return None;
        }
        Err(_late) => {
            core.tally.up(Counter::ClientConnectionsAborted);
            core.login_failed(address);
            return None;
        }
    };
    let named = (&*entered.login.user, entered.login.database.as_deref());
    let who = Newcomer::new(core, id, named, (&client, &local), conn.is_tls());
    // It may have been loaded while the client thought about its password.
    let epoch = core.epoch();
    let v = &epoch.snapshot.variables;
    let (own, backend) = at_server.unzip();
    let row = || epoch.snapshot.users.frontend(&entered.login.user).cloned();
    let Some(user) = own.or_else(row) else {
        core.tally.up(Counter::AccessDeniedWrongPassword);
        core.tally.up(Counter::ClientConnectionsAborted);
        let complaint = denied(&entered.login.user, &client.0, true);
        refuse_newcomer(core, conn, who, &complaint).await;
        return None;
    };
    if let Some(complaint) = unfit(core, &user, &conn) {
        core.tally.up(Counter::ClientConnectionsAborted);
        core.login_failed(address);
        refuse_newcomer(core, conn, who, &complaint).await;
        return None;
    }
    let algorithm = Algorithm::agreed(entered.login.caps);
    if algorithm.is_none() && packing::is_required(v) {
        core.tally.up(Counter::ClientConnectionsAborted);
        refuse_newcomer(core, conn, who, &packing::missing()).await;
        return None;
    }
    match known_charset(core, v, &client, entered.login.charset) {
        Ok(known) => entered.login.charset = known,
        Err(complaint) => {
            core.tally.up(Counter::ClientConnectionsAborted);
            refuse_newcomer(core, conn, who, &complaint).await;
            return None;
        }
    }
    let Some(user_seat) = core.user_seat(&user.username, user.max_connections) else {
        core.tally.up(Counter::AccessDeniedMaxUserConnections);
        let words = format!(
            "User '{}' has exceeded the 'max_user_connections' resource (current value: {})",
            user.username, user.max_connections
        );
        refuse_newcomer(core, conn, who, &Complaint::with(1226, "42000", words)).await;
        return None;
    };
    core.login_succeeded(address);
    let entry = Rc::new(Entry::new(id, client, core.rt.now()));
    core.enrol(entry.clone());
    let login = &entered.login;
    let named = login.database.as_deref();
    let database = named.or(user.default_schema.as_deref());
    let said = Said {
        user: &user,
        secret: &entered.secret,
        collation: login.charset,
        attributes: &login.attributes,
        like: Like {
            caps: login.caps,
            database,
        },
    };
    let opened = if user.fast_forward {
        let told = entry.told_to_end();
        Box::pin(through::open(core, &epoch, &conn, &entry, &said, told))
            .await
            .map(|backend| backend.map(Through::new))
    } else if backend.is_some() {
        Ok(None)
    } else {
        Box::pin(core.has_schema(&epoch, &entry, &said, named))
            .await
            .map(|()| None)
    };
    let through = match opened {
        Ok(through) => through,
        Err(complaint) => {
            core.session_ended(id);
            core.tally.up(Counter::ClientConnectionsAborted);
            refuse_newcomer(core, conn, who, &complaint).await;
            return None;
        }
    };
    let mut payload = Vec::with_capacity(16);
    // Servers tell who comes in which schema that is, and so do we: C's library goes back there
    // when it connects anew.
    let schema = wire::track::schema(database.unwrap_or(""));
    let first = wire::ok::Ok {
        affected: 0,
        insert_id: 0,
        status: answer::flags(true) | core.pools.own_modes().flags,
        warnings: 0,
        info: &entered.vouch,
        changes: &schema,
    };
    first.write(&mut payload, entered.login.caps);
    if conn.reply(&payload).await.is_err() {
        core.session_ended(id);
        return None;
    }
    if let Some(algorithm) = algorithm {
        conn.compress(
            algorithm,
            packing::level(v, algorithm, entered.login.zstd_level),
        );
    }
    let seats: [Seat; 2] = [seat, user_seat];
    let mut session = Session::new(core.clone(), conn, entered, user, entry, local, seats);
    session.through = through;
    if let Some(backend) = backend {
        session.keeps_login(backend);
        if let Some(early) = early {
            session.was_seen_by(early);
        }
    }
    session.audit(Auditable::ConnectOk, None);
    Some(session)
}

/// A client that is in: if a server has let it in, as whom, and on which connection.
type In = (Entered, Option<(Arc<User>, Box<Backend>)>);

/// The login, here or at the server that has greeted.
async fn logs_in(
    core: &Core,
    epoch: &Epoch,
    conn: &mut Conn,
    (door, hear): (&Door, Option<Heard<'_>>),
    greeted: Option<(Greeted, Option<&mut Early>)>,
) -> Result<In, Refused> {
    let Some(greeted) = greeted else {
        let login = net::welcome(conn, door, hear, |user| found(core, user)).await;
        return login.map(|entered| (entered, None)).map_err(Refused::Ours);
    };
    let entering = relayed::enter(core, epoch, conn, (door, hear), greeted);
    let LetIn {
        entered,
        user,
        backend,
    } = Box::pin(entering).await?;
    Ok((entered, Some((user, backend))))
}
