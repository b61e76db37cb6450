//! Our side of a login: what is offered, who is turned away, and in which words.

use crate::core::Core;
use crate::core::audit::Newcomer;
use crate::known::answer;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::known::hosts::turned_away;
use crate::login::packing;
use crate::login::relayed::Refused;
use bridge::Counter;
use config::{Password, Variables};
use net::{Conn, Credential, Door, Found, LoginFailed, NetError};
use rt::{Address, Socket};
use std::net::IpAddr;
use std::time::Duration;
use wire::auth::Plugin;
use wire::{caps, errors};

/// Capabilities that we offer to clients.
pub(crate) const OFFERED: caps::Caps = caps::LONG_PASSWORD
    | caps::FOUND_ROWS
    | caps::LONG_FLAG
    | caps::CONNECT_WITH_DB
    | caps::NO_SCHEMA
    | caps::IGNORE_SPACE
    | caps::PROTOCOL_41
    | caps::INTERACTIVE
    | caps::IGNORE_SIGPIPE
    | caps::TRANSACTIONS
    | caps::RESERVED
    | caps::SECURE_CONNECTION
    | caps::MULTI_STATEMENTS
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS
    | caps::PLUGIN_AUTH
    | caps::CONNECT_ATTRS
    | caps::PLUGIN_AUTH_LENENC
    | caps::EXPIRED_PASSWORDS
    | caps::SESSION_TRACK;

/// The version that we say we are.
fn claimed(epoch: &Epoch) -> [u32; 3] {
    let words = &*epoch.snapshot.variables.mysql_server_version;
    // MariaDB before 11 says so to clients that know no number of two digits.
    let own = words
        .strip_prefix("5.5.5-")
        .filter(|_| epoch.claims_mariadb())
        .unwrap_or(words);
    let mut numbers = own
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

/// Returns the capabilities of MySQL's own, which a MariaDB server does not offer.
fn of_mysql(epoch: &Epoch) -> caps::Caps {
    match epoch.claims_mariadb() {
        true => 0,
        false if claimed(epoch) >= [8, 0, 3] => caps::QUERY_ATTRIBUTES | caps::OPTIONAL_METADATA,
        false => caps::QUERY_ATTRIBUTES,
    }
}

/// Adds capabilities of MariaDB's own to those offered. Bulk execute is one, where all servers are
/// known to have it. Extended types of columns are another, and are left empty where a server has
/// none. The third is that clients remember columns, which is between them and us. A greeting that
/// has bits of MariaDB's own leaves out the one that stands for MySQL.
fn with_mariadbs(core: &Core, epoch: &Epoch, offered: caps::Caps) -> caps::Caps {
    if !epoch.claims_mariadb() {
        return offered;
    }
    let bulk = epoch.snapshot.variables.mysql_enable_bulk_execute && core.pools.all_have_bulk();
    let bulk = if bulk { caps::MARIADB_BULK } else { 0 };
    let remember = if claimed(epoch) >= [10, 6, 0] {
        caps::MARIADB_CACHE_METADATA
    } else {
        0
    };
    let types = if claimed(epoch) >= [10, 5, 2] {
        caps::MARIADB_EXTENDED_TYPES
    } else {
        0
    };
    match bulk | types | remember {
        0 => offered,
        own => offered & !caps::LONG_PASSWORD | own,
    }
}

/// Those of the bits of `mysql-server_capabilities` that an operator may take away. The others of
/// its default no login works without; the rest have variables of their own, or are offered always.
const MAY_BE_TAKEN_AWAY: caps::Caps = caps::FOUND_ROWS;

/// Returns what a login is checked against: the user's row; of a name that nobody has, somebody's.
pub(crate) fn found(core: &Core, user: &str) -> Found {
    let users = &core.epoch().snapshot.users;
    if let Some(row) = users.frontend(user) {
        return Found::User(row.passwords().map(credential).collect());
    }
    // A client that gave a right one would be answered as if it were let in.
    let unknown = || Credential::Clear(format!("{:x}{:x}", core.rt.random(), core.rt.random()));
    let decoy = |password: &Password| match password {
        Password::Clear(_) => unknown(),
        password => credential(password),
    };
    Found::Nobody(users.decoy(user).map_or_else(
        || vec![unknown()],
        |row| row.passwords().map(decoy).collect(),
    ))
}

fn credential(password: &Password) -> Credential {
    match password {
        Password::Empty => Credential::Empty,
        Password::Clear(password) => Credential::Clear(password.to_string()),
        Password::Native(stage2) => Credential::Native(*stage2),
        other => Credential::CachingSha2(other.text()),
    }
}

/// Host and port of a client; a Unix socket is localhost.
pub(crate) fn client_of(socket: &Socket) -> (String, u16) {
    match socket.peer() {
        Address::Tcp(at) => (at.ip().to_canonical().to_string(), at.port()),
        Address::Unix(_) => ("localhost".to_owned(), 0),
    }
}

pub(crate) fn local_of(socket: &Socket) -> (String, u16) {
    match socket.local() {
        Address::Tcp(at) => (at.ip().to_canonical().to_string(), at.port()),
        Address::Unix(path) => (path.display().to_string(), 0),
    }
}

/// Returns the door with what the greeting of session `id` says.
pub(crate) fn door(core: &Core, epoch: &Epoch, id: u32) -> Door {
    let v = &epoch.snapshot.variables;
    let mut random = [0; 20];
    for piece in random.chunks_mut(8) {
        piece.copy_from_slice(&core.rt.random().to_le_bytes()[..piece.len()]);
    }
    let deprecate = if v.mysql_enable_client_deprecate_eof {
        caps::DEPRECATE_EOF
    } else {
        0
    };
    let files = if v.mysql_enable_load_data_local_infile {
        caps::LOCAL_FILES
    } else {
        0
    };
    let collation = default_collation(v);
    Door {
        server_version: v.mysql_server_version.to_string(),
        thread_id: id,
        caps: with_mariadbs(
            core,
            epoch,
            OFFERED & !(MAY_BE_TAKEN_AWAY & !v.mysql_server_capabilities)
                | of_mysql(epoch)
                | deprecate
                | files
                | packing::offered(v),
        ),
        charset: u8::try_from(collation).unwrap_or(33),
        plugin: preferred_plugin(v),
        nonce: wire::auth::nonce(random),
        tls: if v.mysql_have_ssl {
            core.acceptor()
        } else {
            None
        },
    }
}

/// Counts, and tells, why a client is not in. `address` is the one that it came from.
pub(crate) async fn is_not_in(
    core: &Core,
    conn: Conn,
    id: u32,
    refused: Refused,
    (client, local): (&(String, u16), &(String, u16)),
    address: Option<IpAddr>,
) {
    let (user, complaint) = match refused {
        Refused::Ours(LoginFailed::Denied {
            user,
            with_password,
        }) => {
            let complaint = denied(&user, &client.0, with_password);
            (user, complaint)
        }
        Refused::There(complaint, user) => (user, complaint),
        Refused::Ours(LoginFailed::TurnedAway) => {
            return refuse_next(core, conn, &turned_away(&client.0)).await;
        }
        Refused::Ours(LoginFailed::Net(error)) => {
            core.tally.up(Counter::ClientConnectionsAborted);
            // Who only looks whether somebody is here is none who tries.
            core.login_failed(address.filter(|_| conn.bytes().0 > 0));
            if let NetError::Malformed(what) = &error {
                turn_away(core, conn, &client.0, what).await;
            }
            return;
        }
    };
    core.tally.up(Counter::ClientConnectionsAborted);
    if complaint.code == errors::ACCESS_DENIED.number {
        core.tally.up(Counter::AccessDeniedWrongPassword);
        core.login_failed(address);
    }
    let who = Newcomer::new(core, id, (&user, None), (client, local), conn.is_tls());
    refuse_newcomer(core, conn, who, &complaint).await;
}

/// Tells a client, and an operator, that what it says makes no sense.
async fn turn_away(core: &Core, conn: Conn, client: &str, what: &wire::Malformed) {
    core.tally.up(Counter::UnexpectedFrontendPackets);
    core.note_seldom(&format!(
        "a client of {client} was turned away: {}",
        what.what
    ));
    let complaint = Complaint::new(errors::HANDSHAKE, what.to_string());
    refuse_next(core, conn, &complaint).await;
}

/// The collation that a client gets for the one that it asks for, by
/// `mysql-handle_unknown_charset`.
pub(crate) fn known_charset(
    core: &Core,
    v: &Variables,
    client: &(String, u16),
    asked: u16,
) -> Result<u16, Complaint> {
    if let Some(complaint) = wide_charset(asked) {
        return Err(complaint);
    }
    if wire::charset::by_id(asked).is_some() {
        return Ok(asked);
    }
    let unknown = format!(
        "Client {}:{} asks for the unknown character set {asked}",
        client.0, client.1
    );
    match v.mysql_handle_unknown_charset {
        0 => {
            core.note_seldom(&format!(
                "{unknown}: it is turned away (mysql-handle_unknown_charset)"
            ));
            return Err(Complaint::with(
                1115,
                "42000",
                format!("Unknown character set: '{asked}'"),
            ));
        }
        1 => core.note_seldom(&format!(
            "{unknown}: it gets {}",
            v.mysql_default_collation_connection
        )),
        _ => {}
    }
    Ok(default_collation(v))
}

/// The refusal of a character set in which nobody may speak: servers could not read statements byte
/// by byte.
pub(crate) fn wide_charset(asked: u16) -> Option<Complaint> {
    let collation = wire::charset::by_id(asked).filter(|collation| collation.is_wide())?;
    let words = format!(
        "Variable 'character_set_client' can't be set to the value of '{}'",
        collation.charset
    );
    Some(Complaint::with(1231, "42000", words))
}

fn default_collation(v: &Variables) -> u16 {
    wire::charset::by_name(&v.mysql_default_collation_connection).map_or(33, |c| c.id)
}

pub(crate) fn preferred_plugin(v: &Variables) -> Plugin {
    Plugin::by_name(&v.mysql_default_authentication_plugin).unwrap_or(Plugin::MysqlNative)
}

pub(crate) fn denied(user: &str, host: &str, with_password: bool) -> Complaint {
    let with = if with_password { "YES" } else { "NO" };
    let words = format!(
        "ProxySQL Error: Access denied for user '{user}'@'{host}' (using password: {with})"
    );
    Complaint::new(errors::ACCESS_DENIED, words)
}

/// Tells a client that as many are here as may be.
pub(crate) async fn too_many(core: &Core, conn: Conn) {
    core.tally.up(Counter::AccessDeniedMaxConnections);
    let complaint = Complaint::new(errors::TOO_MANY_CONNECTIONS, "Too many connections");
    refuse(core, conn, 0, &complaint).await;
}

pub(crate) async fn refuse(core: &Core, mut conn: Conn, seq: u8, complaint: &Complaint) {
    core.tally.up(Counter::GeneratedErrorPackets);
    // The client may be gone already; nobody is left to tell.
    let told = core
        .rt
        .timeout(
            Duration::from_secs(1),
            conn.send(answer::error(seq, complaint)),
        )
        .await;
    if let Ok(Ok(())) = told {
        conn.dismiss(&core.rt).await;
    }
}

/// As [`refuse_next`], and the audit log hears of it.
pub(crate) async fn refuse_newcomer(core: &Core, conn: Conn, who: Newcomer, complaint: &Complaint) {
    who.refuse(core, complaint);
    refuse_next(core, conn, complaint).await;
}

/// As the next packet of the login's dialogue.
pub(crate) async fn refuse_next(core: &Core, mut conn: Conn, complaint: &Complaint) {
    core.tally.up(Counter::GeneratedErrorPackets);
    let mut payload = Vec::new();
    wire::ok::Err {
        code: complaint.code,
        state: complaint.state,
        message: complaint.words.as_bytes(),
    }
    .write(&mut payload);
    let told = core
        .rt
        .timeout(Duration::from_secs(1), conn.reply(&payload))
        .await;
    if let Ok(Ok(())) = told {
        conn.dismiss(&core.rt).await;
    }
}
