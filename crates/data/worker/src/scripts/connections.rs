//! Connections of a script's own: it has asked for them, and says on them what it likes. Each is
//! nobody else's until the script gives it back or its session ends, and is reset then.

use crate::command::reads::limit_ms;
use crate::command::settings::sees_user_variables;
use crate::core::guests::Owner;
use crate::core::{Core, alone};
use backend::{Backend, BackendFailed, Hold, State, Tracking, Want};
use bridge::Failure;
use config::{Password, Snapshot, User};
use net::{NetError, Secret};
use rt::{Chunk, Either};
use script::{Connect, Counts, Outcome, Reply};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::attributes::Attributes;
use wire::caps::Caps;
use wire::response::{Expect, Follow, Response};
use wire::{packet, response};

/// Connections that a script may have at once in a session.
const CONNECTIONS_MAX: usize = 16;
/// So long a statement of a script may take, where `mysql-default_query_timeout` says more.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3600);

/// The connections of one script in one session.
pub(crate) struct Connections {
    core: Rc<Core>,
    /// By number; none while a statement runs on it.
    all: RefCell<BTreeMap<u32, Option<Box<Backend>>>>,
    /// Bytes that a result may have.
    len_max: usize,
}

impl Drop for Connections {
    fn drop(&mut self) {
        let all = std::mem::take(self.all.get_mut());
        for backend in all.into_values().flatten() {
            self.core.pools.give_up(backend);
        }
    }
}

/// A place where a connection is wanted: a hostgroup, and one server of it if one was named.
type At<'a> = (u32, Option<(&'a str, u16)>);

impl Connections {
    pub(crate) fn new(core: Rc<Core>, len_max: usize) -> Self {
        Self {
            core,
            all: RefCell::default(),
            len_max,
        }
    }

    /// A connection for a script.
    pub(crate) async fn connect(&self, owner: &Owner, session: u32, wish: &Connect) -> Reply {
        if owner.is_at_console && wish.user.is_none() {
            let words = "an operator at the console is no user of the servers: name one of mysql_users, with his password";
            return Reply::Refused(words.into());
        }
        if owner.user.username.is_empty() && owner.secret.is_relayed() && wish.user.is_none() {
            let words = "nobody has logged in yet: name one of mysql_users, with his password";
            return Reply::Refused(words.into());
        }
        if owner.user.username.is_empty() && wish.user.is_none() {
            let words = "a timer asks as the first of the script's usernames whose password mysql_users has in clear, and there is none";
            return Reply::Refused(words.into());
        }
        if self.all.borrow().len() >= CONNECTIONS_MAX {
            let words = format!("a script has {CONNECTIONS_MAX} connections in a session at most");
            return Reply::Refused(words);
        }
        let epoch = self.core.epoch();
        let snapshot = &epoch.snapshot;
        let account = account(snapshot, owner, wish);
        let at = place(snapshot, owner, wish);
        let ((user, secret), at) = match (account, at) {
            (Ok(account), Ok(at)) => (account, at),
            (Err(words), _) | (_, Err(words)) => return Reply::Refused(words),
        };
        let state = State::new(&wish.schema, owner.collation);
        let sees = sees_user_variables(&sql::class(b"DO 1"));
        let want = Want {
            hostgroup: at.0,
            user: &user.username,
            secret: &secret,
            caps: owner.caps,
            collation: owner.collation,
            session,
            attributes: &owner.attributes,
            client: None,
            state: &state,
            snapshot,
            user_variables: sees,
            remembered: None,
            tracking: Tracking::On,
            new_connection: false,
            must_see: None,
            like: None,
            executes: None,
            priority: user.priority().unwrap_or(config::PRIORITY_USUAL),
            cost_ns: None,
            waits: false,
            at: None,
        };
        let acquired = match at.1 {
            None => Box::pin(self.core.pools.acquire(&want)).await,
            Some(server) => Box::pin(self.core.pools.acquire_at(&want, server)).await,
        };
        let mut backend = match acquired {
            Ok(backend) => backend,
            Err(failed) => return Reply::Refused(words(&failed)),
        };
        // A script has it for as long as it likes.
        backend.lands();
        alone::takes(&mut backend);
        // Whatever it will be told, nobody else finds anything of it.
        backend.holds.add(Hold::Untold);
        if let Err(failed) = alone::come_with(&mut backend, &state, (sees, Tracking::On)).await {
            self.core.pools.abandon(backend);
            return Reply::Refused(words(&failed));
        }
        let id = self.core.scripting.next_connection();
        self.all.borrow_mut().insert(id, Some(backend));
        Reply::Connected(id)
    }

    /// Runs a statement on a connection for nothing else. `told` as for [`Self::execute`].
    pub(crate) async fn query(
        &self,
        owner: &Owner,
        session: u32,
        (wish, sql): (&Connect, &[u8]),
        told: impl Future<Output = ()>,
    ) -> Reply {
        match self.connect(owner, session, wish).await {
            Reply::Connected(connection) => {
                let reply = self.execute(connection, sql, told).await;
                self.close(connection);
                reply
            }
            refused => refused,
        }
    }

    /// Gives one back.
    pub(crate) fn close(&self, connection: u32) {
        if let Some(Some(backend)) = self.all.borrow_mut().remove(&connection) {
            self.core.pools.give_up(backend);
        }
    }

    /// Runs a statement. `told` ends it: somebody has killed the session, or its statement.
    pub(crate) async fn execute(
        &self,
        connection: u32,
        sql: &[u8],
        told: impl Future<Output = ()>,
    ) -> Reply {
        let taken = self
            .all
            .borrow_mut()
            .get_mut(&connection)
            .and_then(Option::take);
        let Some(backend) = taken.filter(|backend| !backend.place().is_cut_off()) else {
            self.all.borrow_mut().remove(&connection);
            return Reply::Refused("the connection to the server is gone".into());
        };
        // Dropped in its middle, it is of nobody's use.
        let mut running = Running(&self.core, Some(backend));
        let Some(backend) = running.1.as_mut() else {
            return Reply::Refused("the connection to the server is gone".into());
        };
        let limit = limit_ms(None, &self.core.epoch().snapshot.variables);
        let limit = Duration::from_millis(limit).min(ANSWERED_WITHIN);
        let asked = rt::select(Box::pin(self.on(backend, sql)), Box::pin(told));
        let answered = match self.core.rt.timeout(limit, asked).await {
            Ok(Either::Left(answered)) => answered,
            Ok(Either::Right(())) => Ok(Err("the statement was interrupted".to_owned())),
            Err(_late) => Ok(Err(format!("the statement took more than {limit:?}"))),
        };
        let reply = match answered {
            Ok(Ok(reply)) => {
                let backend = running.1.take();
                self.all.borrow_mut().insert(connection, backend);
                return reply;
            }
            Ok(Err(words)) => words,
            Err(failed) => words(&failed),
        };
        self.all.borrow_mut().remove(&connection);
        Reply::Refused(reply)
    }

    /// A statement on its server, and the answer. Words where the connection is of no use after it.
    async fn on(
        &self,
        backend: &mut Backend,
        sql: &[u8],
    ) -> Result<Result<Reply, String>, BackendFailed> {
        let (mut command, caps) = (Vec::with_capacity(sql.len() + 16), backend.hello.caps);
        let mut next = 0;
        packet::append_with(&mut command, &mut next, |out| {
            wire::attributes::write_query(out, sql, &Attributes::default(), caps);
        });
        backend.send(Chunk::from(command)).await?;
        let expected = Response::expect(Expect::Query, caps);
        let mut response = expected.to_packet(next.wrapping_sub(1));
        let mut bytes = Vec::new();
        loop {
            let chunk = backend.recv().await?;
            let followed = response
                .follow(&chunk)
                .map_err(|malformed| BackendFailed::BrokeAfter(NetError::Malformed(malformed)))?;
            let used = match followed {
                Follow::More => chunk.len(),
                Follow::Ended { used } => used,
            };
            if bytes.len() + used > self.len_max {
                let words = "the result has more bytes than the script's result_mb_max allows";
                return Ok(Err(words.into()));
            }
            bytes.extend_from_slice(chunk.get(..used).unwrap_or_default());
            if let Follow::Ended { used } = followed {
                if matches!(response.outcome(), response::Outcome::LocalInfile(_)) {
                    let words = "the server wants a file, and a script has none";
                    return Ok(Err(words.into()));
                }
                backend.ended(used, chunk.len());
                break;
            }
        }
        // It stays there after a reset: USE, and the end of a schema, are for the next one to know.
        let _is_untold_anyway = alone::learn_schema(backend, &response);
        if response.is_session_track_lost() {
            backend.retire();
        }
        Ok(Ok(replied(&response, bytes, caps)))
    }
}

fn replied(response: &Response, bytes: Vec<u8>, caps: Caps) -> Reply {
    match response.outcome() {
        response::Outcome::Err { message, .. } => {
            Reply::Refused(String::from_utf8_lossy(message).into_owned())
        }
        _ if response.columns() > 0 => {
            Reply::Rows(Outcome::new(Some(bytes), caps, false, Counts::default()))
        }
        _ => Reply::Changed(response.affected_rows(), response.insert_id()),
    }
}

/// A connection with a statement on it. Dropped so, it is closed.
struct Running<'a>(&'a Core, Option<Box<Backend>>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(backend) = self.1.take() {
            self.0.pools.abandon(backend);
        }
    }
}

/// Returns the words of a failure that the script may read.
fn words(failed: &BackendFailed) -> String {
    failed.to_client().2
}

/// As whom a script connects: the session's user by what stands in for his password, or whoever's
/// password it knows.
fn account(
    snapshot: &Snapshot,
    owner: &Owner,
    wish: &Connect,
) -> Result<(Arc<User>, Secret), String> {
    let name = wish.user.as_deref().unwrap_or(&owner.user.username);
    let is_own = *name == *owner.user.username;
    if is_own && (wish.user.is_none() || wire::auth::same(&wish.password, &owner.stand_in)) {
        return Ok((owner.user.clone(), owner.secret.clone()));
    }
    let refused = || {
        format!(
            "access denied for user '{name}': he is none of mysql_users, or has another password"
        )
    };
    let user = snapshot.users.frontend(name).ok_or_else(refused)?;
    let given = &*wish.password;
    let fits = |password: &Password| match password {
        Password::Empty => given.is_empty(),
        Password::Clear(clear) => wire::auth::same(clear.as_bytes(), given),
        Password::Native(stage2) => wire::auth::same(&wire::auth::native_stage2(given), stage2),
        Password::CachingSha2(_) => false,
    };
    if !user.passwords().any(fits) {
        return Err(refused());
    }
    let secret = match given.is_empty() {
        true => Secret::None,
        false => Secret::Clear(String::from_utf8_lossy(given).into_owned()),
    };
    Ok((user.clone(), secret))
}

/// Where a script connects to: a server that is declared, or where the session's statements go.
fn place<'w>(snapshot: &Snapshot, owner: &Owner, wish: &'w Connect) -> Result<At<'w>, String> {
    let own = match wish.hostgroup {
        None => owner.user.default_hostgroup,
        Some(hostgroup) if snapshot.servers.hostgroup(hostgroup).is_some() => hostgroup,
        Some(hostgroup) => return Err(format!("hostgroup {hostgroup} has no servers")),
    };
    let Some(host) = wish.host.as_deref() else {
        return Ok((own, None));
    };
    if host == "localhost" && wish.port.is_none() {
        return Ok((own, None));
    }
    let port = wish.port.unwrap_or(3306);
    if *owner.local.0 == *host && owner.local.1 == port {
        return Ok((own, None));
    }
    let of_own = snapshot.servers.hostgroup(own).into_iter();
    for hostgroup in of_own.chain(snapshot.servers.iter()) {
        let is_it = |server: &&Arc<config::Server>| {
            *server.hostname == *host && (server.port == port || server.port == 0)
        };
        if let Some(server) = hostgroup.servers.iter().find(is_it) {
            let one_of_several = hostgroup.servers.len() > 1;
            return Ok((
                server.hostgroup,
                one_of_several.then_some((host, server.port)),
            ));
        }
    }
    Err(format!(
        "{host}:{port} is none of the servers in mysql_servers"
    ))
}
