//! The console: a port at which scripts answer operators, as the admin plugin of MySQL Proxy had it. Who
//! comes there has a session like any other, with scripts in its way and no server behind them.
//!
//! docs/features/scripts.md

use crate::core::Core;
use crate::core::roster::Entry;
use crate::login::door;
use crate::login::door::OFFERED;
use crate::session::Session;
use bridge::Auditable;
use config::{Password, User};
use net::{Conn, Credential, Door, Entered, Found, LoginFailed, Secret};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Version in the greeting, which tools of MySQL Proxy look at.
const VERSION: &str = "5.0.99-agent-admin";
/// Operators who may be there at once, over all cores.
const OPERATORS_MAX: u32 = 100;
/// Name under which they are counted: no user has it.
const COUNTED_AS: &str = "\0console";

/// The session of an operator; `None` after he was told why there is none.
pub(crate) async fn enter(
    core: &Rc<Core>,
    mut conn: Conn,
    client: (String, u16),
    local: (String, u16),
) -> Option<Session> {
    let epoch = core.epoch();
    let v = &epoch.snapshot.variables;
    let seats = core
        .seat(v.mysql_max_connections)
        .zip(core.user_seat(COUNTED_AS, OPERATORS_MAX));
    let Some((seat, own)) = seats else {
        door::too_many(core, conn).await;
        return None;
    };
    let id = core.next_session_id();
    let door = Door {
        server_version: VERSION.to_owned(),
        caps: OFFERED,
        ..door::door(core, &epoch, id)
    };
    let address = conn.socket().peer().ip().map(|ip| ip.to_canonical());
    let is_here = address.is_none_or(|ip| ip.is_loopback());
    let only_here = Cell::new(false);
    let unknown = format!("{:x}{:x}", core.rt.random(), core.rt.random());
    let find = |name: &str| {
        let mut all = config::credentials(&v.admin_admin_credentials);
        match all.find(|(of, _)| *of == name) {
            Some(pair) if !is_here && config::is_known_to_everybody(pair) => {
                only_here.set(true);
                Found::Nobody(vec![Credential::Clear(unknown.clone())])
            }
            Some((_, password)) => Found::User(vec![Credential::Clear(password.to_owned())]),
            None => Found::Nobody(vec![Credential::Clear(unknown.clone())]),
        }
    };
    let limit = Duration::from_millis(v.mysql_connect_timeout_client);
    let login = net::welcome(&mut conn, &door, None, find);
    let entered = match core.rt.timeout(limit, login).await {
        Ok(Ok(entered)) => entered,
        Ok(Err(LoginFailed::Denied {
            user,
            with_password,
        })) => {
            core.login_failed(address);
            let mut complaint = door::denied(&user, &client.0, with_password);
            if only_here.get() {
                complaint.words = config::only_from_here(&user);
            }
            door::refuse_next(core, conn, &complaint).await;
            return None;
        }
        Ok(Err(_)) | Err(_) => return None,
    };
    core.login_succeeded(address);
    let entry = Rc::new(Entry::new(id, client, core.rt.now()));
    core.enrol(entry.clone());
    let mut payload = Vec::with_capacity(16);
    let first = wire::ok::Ok {
        status: crate::known::answer::flags(true),
        ..wire::ok::Ok::default()
    };
    first.write(&mut payload, entered.login.caps);
    if conn.reply(&payload).await.is_err() {
        core.session_ended(id);
        return None;
    }
    let user = Arc::new(operator(&entered.login.user));
    // No server takes him for anybody.
    let entered = Entered {
        secret: Secret::Relayed,
        ..entered
    };
    let mut session = Session::new(core.clone(), conn, entered, user, entry, local, [seat, own]);
    session.is_of_an_operator();
    session.audit(Auditable::ConnectOk, None);
    Some(session)
}

fn operator(name: &str) -> User {
    User {
        username: name.into(),
        password: Password::Empty,
        use_ssl: false,
        default_hostgroup: 0,
        default_schema: None,
        schema_locked: false,
        transaction_persistent: false,
        fast_forward: false,
        max_connections: OPERATORS_MAX,
        attributes: None,
        comment: None,
    }
}
