//! A client logs in to us: greeting, TLS when it asks, and whichever password plugin it speaks.

use crate::tls::Acceptor;
use crate::{Conn, NetError, Secret};
use rt::Rt;
use std::fmt;
use std::net::SocketAddr;
use wire::auth::{self, Nonce, Plugin};
use wire::handshake::{
    AuthSwitch, ChangeUser, Greeting, Login, SslRequest, is_ssl_request, write_auth_more,
};
use wire::{caps, crypt, ed25519, status};

/// Bytes of a packet before the client is known.
const LOGIN_LEN_MAX: usize = 128 << 10;

/// Rounds of a hash between two turns of others: a tenth of a millisecond.
const ROUNDS_AT_ONCE: u32 = 200;

/// Greeting and offers that we show at the door.
#[derive(Debug, Clone)]
pub struct Door {
    /// Version that we claim.
    pub server_version: String,
    /// Id of the session, as KILL wants it.
    pub thread_id: u32,
    /// Capabilities that we offer. `SSL` is added when `tls` is there.
    pub caps: caps::Caps,
    /// Collation of the greeting.
    pub charset: u8,
    /// Plugin that the greeting names.
    pub plugin: Plugin,
    /// Nonce that the client proves its password with.
    pub nonce: Nonce,
    /// Our certificate.
    pub tls: Option<Acceptor>,
}

/// How a user proves who it is.
#[derive(Debug, Clone)]
pub enum Credential {
    /// No password.
    Empty,
    /// The password.
    Clear(String),
    /// SHA1(SHA1(password)): only `mysql_native_password` can be checked.
    Native([u8; 20]),
    /// `$A$005$…`: the password itself must come, over TLS or sealed with our key.
    CachingSha2(String),
}

/// Whom a name stands for. There are two credentials while a password is being changed: either will
/// do.
#[derive(Debug, Clone)]
pub enum Found {
    /// A user.
    User(Vec<Credential>),
    /// Nobody. The client is asked as if it were the user of these credentials, which must be none
    /// that it could know, and refused.
    Nobody(Vec<Credential>),
}

/// A client that is in.
#[derive(Debug)]
pub struct Entered {
    /// Login as the client has said it; `caps` are those of both.
    pub login: Login,
    /// Secret that can be used to log in to servers as this user.
    pub secret: Secret,
    /// The nonce of this connection: COM_CHANGE_USER needs it again.
    pub nonce: Nonce,
    /// For the OK, as in [`Proven`].
    pub vouch: Vec<u8>,
}

/// Secret and words that there are of a client that has proven who it is.
#[derive(Debug)]
pub struct Proven {
    /// Secret that can be used to log in to servers as this user.
    pub secret: Secret,
    /// Words of the OK on our certificate over TLS ([`auth::vouch`]); empty where there is nothing
    /// to say them with.
    pub vouch: Vec<u8>,
}

/// Why a client is not in.
#[derive(Debug)]
pub enum LoginFailed {
    /// The connection did not get that far.
    Net(NetError),
    /// The caller does not want the client that a header names.
    TurnedAway,
    /// Wrong user or password.
    Denied {
        /// The user it claimed to be.
        user: String,
        /// Whether it gave a password.
        with_password: bool,
    },
}

impl fmt::Display for LoginFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(error) => write!(f, "{error}"),
            Self::TurnedAway => f.write_str("the client is turned away"),
            Self::Denied { user, .. } => write!(f, "access denied for user '{user}'"),
        }
    }
}

impl std::error::Error for LoginFailed {}

impl<E: Into<NetError>> From<E> for LoginFailed {
    fn from(error: E) -> Self {
        Self::Net(error.into())
    }
}

/// Hears whom a header of the PROXY protocol names, if there is one; false turns the client away.
pub type Heard<'a> = &'a mut dyn FnMut(Option<SocketAddr>) -> bool;

/// The whole login. `header`: whoever connects may say for whom he speaks, and this hears it. The
/// final OK or ERR is left to the caller, who may have reasons of its own to refuse.
///
/// # Errors
/// [`LoginFailed::Denied`] after a proper exchange; the caller answers 1045.
pub async fn welcome(
    conn: &mut Conn,
    door: &Door,
    header: Option<Heard<'_>>,
    find: impl Fn(&str) -> Found,
) -> Result<Entered, LoginFailed> {
    let mut login = introduce(conn, door, header).await?;
    let response = std::mem::take(&mut login.auth_response);
    let plugin = claimed(login.caps, login.auth_plugin.as_deref());
    let switchable = caps::has(login.caps, caps::PLUGIN_AUTH);
    // The nonce was one for the plugin that the greeting names: who uses another may wait for a
    // nonce of its own.
    let ask = switchable && response.is_empty() && plugin != Some(door.plugin);
    let proof = Proof {
        user: &login.user,
        plugin,
        response,
        switchable,
        ask,
    };
    let Proven { secret, vouch } = check(conn, door.tls.as_ref(), door.nonce, proof, &find).await?;
    Ok(Entered {
        login,
        secret,
        nonce: door.nonce,
        vouch,
    })
}

/// The greeting, TLS if the client wants it, and what it says of itself: its capabilities are those of
/// both. Nobody has looked at its proof then.
///
/// # Errors
/// As [`welcome`], save that nobody is denied.
pub async fn introduce(
    conn: &mut Conn,
    door: &Door,
    header: Option<Heard<'_>>,
) -> Result<Login, LoginFailed> {
    let offered = door.caps | if door.tls.is_some() { caps::SSL } else { 0 };
    let greeting = Greeting {
        server_version: door.server_version.clone(),
        thread_id: door.thread_id,
        scramble: door.nonce,
        caps: offered,
        charset: door.charset,
        status: status::AUTOCOMMIT,
        auth_plugin: door.plugin.name().to_owned(),
    };
    let mut payload = Vec::with_capacity(128);
    greeting.write(&mut payload);
    conn.restart_at(0);
    conn.reply(&payload).await?;

    // Whoever reads the answer to a header that is none has sent a login behind it: its number is
    // 1.
    match header {
        Some(heard) => match conn.proxied_client().await {
            Ok(client) if heard(client) => {}
            Ok(_) => {
                conn.restart_at(2);
                return Err(LoginFailed::TurnedAway);
            }
            Err(error) => {
                conn.restart_at(2);
                return Err(error.into());
            }
        },
        None if conn.begins_proxied().await? => {
            conn.restart_at(2);
            let what =
                "a PROXY header from an address that mysql-proxy_protocol_networks does not name";
            return Err(NetError::Malformed(wire::Malformed::new(what)).into());
        }
        None => {}
    }
    let mut packet = conn.packet(LOGIN_LEN_MAX).await?;
    if is_ssl_request(packet.payload()) {
        SslRequest::read(packet.payload())?;
        let Some(acceptor) = &door.tls else {
            return Err(NetError::Tls(
                "the client asked for TLS, which was not offered".to_owned(),
            )
            .into());
        };
        conn.accept_tls(acceptor).await?;
        packet = conn.packet(LOGIN_LEN_MAX).await?;
    }
    let mut login = Login::read(packet.payload())?;
    drop(packet);
    login.caps &= offered;
    Ok(login)
}

/// COM_CHANGE_USER: the client proves who it is once more, by the preferred plugin if it can. It is
/// asked for its proof even if it has sent one: so do servers, and libmysqlclient sends none
/// before. <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_change_user.html>
///
/// # Errors
/// As [`welcome`].
pub async fn authenticate_again(
    conn: &mut Conn,
    tls: Option<&Acceptor>,
    nonce: Nonce,
    change: &ChangeUser,
    caps: caps::Caps,
    preferred: Plugin,
    find: impl Fn(&str) -> Found,
) -> Result<Proven, LoginFailed> {
    let switchable = caps::has(caps, caps::PLUGIN_AUTH);
    let plugin = if switchable {
        Some(preferred)
    } else {
        claimed(caps, None)
    };
    let proof = Proof {
        user: &change.user,
        plugin,
        response: change.auth_response.clone(),
        switchable,
        ask: switchable,
    };
    check(conn, tls, nonce, proof, &find).await
}

/// `None`: one that we do not know.
fn claimed(caps: caps::Caps, name: Option<&str>) -> Option<Plugin> {
    match name {
        Some(name) if caps::has(caps, caps::PLUGIN_AUTH) => Plugin::by_name(name),
        _ => Some(Plugin::MysqlNative),
    }
}

struct Proof<'a> {
    user: &'a str,
    plugin: Option<Plugin>,
    response: Vec<u8>,
    switchable: bool,
    /// Ask for the proof even if the plugin is right, where there is something to prove.
    ask: bool,
}

async fn check(
    conn: &mut Conn,
    tls: Option<&Acceptor>,
    nonce: Nonce,
    proof: Proof<'_>,
    find: &impl Fn(&str) -> Found,
) -> Result<Proven, LoginFailed> {
    let Proof {
        user,
        mut plugin,
        mut response,
        switchable,
        ask,
    } = proof;
    let denied = |with_password| LoginFailed::Denied {
        user: user.to_owned(),
        with_password,
    };
    // An unknown user goes the whole way of a known one, so that the answers do not tell them
    // apart.
    let (credentials, known) = match find(user) {
        Found::User(credentials) => (credentials, true),
        Found::Nobody(credentials) => (credentials, false),
    };
    let wanted = wanted_plugin(&credentials, plugin, conn.is_private());
    // The greeting's nonce is none for client_ed25519.
    if ask || plugin != Some(wanted) || wanted == Plugin::Ed25519 {
        if !switchable {
            return Err(denied(!response.is_empty()));
        }
        let mut payload = Vec::with_capacity(64);
        let data = if wanted == Plugin::Ed25519 {
            ed25519::nonce(&nonce).to_vec()
        } else {
            nonce.to_vec()
        };
        AuthSwitch {
            plugin: wanted.name().to_owned(),
            data,
        }
        .write(&mut payload);
        conn.reply(&payload).await?;
        response = conn.packet(LOGIN_LEN_MAX).await?.payload().to_vec();
        plugin = Some(wanted);
    }
    let with_password = !matches!(response.as_slice(), [] | [0]);
    let secret = match plugin {
        Some(Plugin::CachingSha2) => sha2(conn, tls, &nonce, &credentials, &response).await?,
        Some(Plugin::ClearPassword) if conn.is_private() => {
            Box::pin(clear(
                &conn.socket().rt(),
                &credentials,
                auth::clear_password(&response),
            ))
            .await
        }
        Some(Plugin::MysqlNative) => credentials
            .iter()
            .find_map(|credential| native(credential, &nonce, &response)),
        Some(Plugin::Ed25519) => credentials
            .iter()
            .find_map(|credential| signed(credential, &nonce, &response)),
        _ => None,
    };
    let secret = secret
        .filter(|_| known)
        .ok_or_else(|| denied(with_password))?;
    let vouch = vouch(plugin, &secret, &nonce, conn.own_fingerprint());
    Ok(Proven { secret, vouch })
}

/// Whatever version we claim: clients ask by what they are themselves. Of the other plugins they
/// take none, as the password itself came, or may have come.
fn vouch(
    plugin: Option<Plugin>,
    secret: &Secret,
    nonce: &Nonce,
    certificate: Option<[u8; 32]>,
) -> Vec<u8> {
    let Some(certificate) = certificate else {
        return Vec::new();
    };
    match (plugin, secret) {
        (Some(Plugin::MysqlNative), Secret::Clear(password)) => auth::vouch(
            &auth::native_stage2(password.as_bytes()),
            nonce,
            &certificate,
        ),
        (Some(Plugin::MysqlNative), Secret::NativeStage1(stage1)) => {
            auth::vouch(&auth::native_stage2_of(stage1), nonce, &certificate)
        }
        (Some(Plugin::Ed25519), Secret::Clear(password)) => {
            auth::vouch(&ed25519::public(password.as_bytes()), nonce, &certificate)
        }
        _ => Vec::new(),
    }
}

/// The plugin to use: the client's own where it can prove all that we store, else the one that can.
fn wanted_plugin(credentials: &[Credential], client: Option<Plugin>, private: bool) -> Plugin {
    let any = |is: fn(&Credential) -> bool| credentials.iter().any(is);
    match client {
        // Only the password itself can be compared with that hash, and it can be compared with
        // everything.
        Some(Plugin::ClearPassword)
            if private && any(|c| matches!(c, Credential::CachingSha2(_))) =>
        {
            Plugin::ClearPassword
        }
        _ if any(|c| matches!(c, Credential::CachingSha2(_))) => Plugin::CachingSha2,
        _ if any(|c| matches!(c, Credential::Native(_))) => Plugin::MysqlNative,
        Some(Plugin::ClearPassword) if private => Plugin::ClearPassword,
        Some(Plugin::Ed25519) if !any(|c| matches!(c, Credential::Empty)) => Plugin::Ed25519,
        Some(plugin @ (Plugin::MysqlNative | Plugin::CachingSha2)) => plugin,
        _ => Plugin::CachingSha2,
    }
}

fn signed(credential: &Credential, nonce: &Nonce, response: &[u8]) -> Option<Secret> {
    let Credential::Clear(password) = credential else {
        return None;
    };
    ed25519::verify(password.as_bytes(), &ed25519::nonce(nonce), response)
        .then(|| Secret::Clear(password.clone()))
}

fn native(credential: &Credential, nonce: &Nonce, response: &[u8]) -> Option<Secret> {
    match credential {
        Credential::Empty => response.is_empty().then_some(Secret::None),
        Credential::Clear(password) => {
            let stage2 = auth::native_stage2(password.as_bytes());
            auth::native_verify(&stage2, nonce, response).map(|_| Secret::Clear(password.clone()))
        }
        Credential::Native(stage2) => {
            auth::native_verify(stage2, nonce, response).map(Secret::NativeStage1)
        }
        Credential::CachingSha2(_) => None,
    }
}

async fn clear(rt: &Rt, credentials: &[Credential], password: Option<&[u8]>) -> Option<Secret> {
    let password = password?;
    let mut right = false;
    for credential in credentials {
        right = match credential {
            Credential::Empty => password.is_empty(),
            Credential::Clear(stored) => auth::same(stored.as_bytes(), password),
            Credential::Native(stage2) => auth::same(&auth::native_stage2(password), stage2),
            Credential::CachingSha2(stored) => is_of_hash(rt, stored.as_bytes(), password).await,
        };
        if right {
            break;
        }
    }
    let password = String::from_utf8(password.to_vec()).ok()?;
    right.then_some(if password.is_empty() {
        Secret::None
    } else {
        Secret::Clear(password)
    })
}

/// Milliseconds of work or more, and the other sessions of the core do not wait for it.
async fn is_of_hash(rt: &Rt, stored: &[u8], password: &[u8]) -> bool {
    let Some(mut verification) = crypt::Verification::new(stored, password) else {
        return false;
    };
    loop {
        match verification.go_on(ROUNDS_AT_ONCE) {
            Some(is) => return is,
            None => rt.yield_now().await,
        }
    }
}

/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html>
async fn sha2(
    conn: &mut Conn,
    tls: Option<&Acceptor>,
    nonce: &Nonce,
    credentials: &[Credential],
    response: &[u8],
) -> Result<Option<Secret>, LoginFailed> {
    if matches!(response, [] | [0]) {
        return Ok(credentials
            .iter()
            .any(|credential| matches!(credential, Credential::Empty))
            .then_some(Secret::None));
    }
    for credential in credentials {
        if let Credential::Clear(password) = credential
            && auth::sha2_verify(&auth::sha2_stage2(password.as_bytes()), nonce, response)
        {
            more(conn, &[auth::FAST_OK]).await?;
            return Ok(Some(Secret::Clear(password.clone())));
        }
    }
    // A wrong scramble is asked for in full as well: to the client it looks like a server whose
    // cache is cold.
    more(conn, &[auth::FULL]).await?;
    let mut answer = conn.packet(LOGIN_LEN_MAX).await?.payload().to_vec();
    if conn.is_private() {
        return Ok(Box::pin(clear(
            &conn.socket().rt(),
            credentials,
            auth::clear_password(&answer),
        ))
        .await);
    }
    let Some(tls) = tls else { return Ok(None) };
    if answer == [auth::ASK_KEY_CACHING_SHA2] {
        if tls.public_pem().is_empty() {
            return Ok(None);
        }
        more(conn, tls.public_pem()).await?;
        answer = conn.packet(LOGIN_LEN_MAX).await?.payload().to_vec();
    }
    let password = tls
        .open(&answer)
        .and_then(|sealed| auth::unxor_password(&sealed, nonce));
    Ok(Box::pin(clear(&conn.socket().rt(), credentials, password.as_deref())).await)
}

async fn more(conn: &mut Conn, data: &[u8]) -> Result<(), NetError> {
    let mut payload = Vec::with_capacity(data.len() + 1);
    write_auth_more(&mut payload, data);
    conn.reply(&payload).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::sim::{Faults, Limits};
    use std::time::Duration;

    #[test]
    fn others_have_their_turn_while_a_password_is_hashed() {
        let limits = Limits {
            time_max: Duration::from_secs(60),
            turns_max: 100_000,
        };
        rt::sim::run_with(1, Faults::perfect(), limits, |rt| async move {
            let stored = crypt::create(b"secret", [b'x'; crypt::SALT_LEN]).unwrap();
            let credentials = [
                Credential::Empty,
                Credential::CachingSha2(String::from_utf8(stored).unwrap()),
            ];
            let turns = std::rc::Rc::new(std::cell::Cell::new(0));
            let (counts, own) = (turns.clone(), rt.clone());
            rt.spawn(async move {
                loop {
                    counts.set(counts.get() + 1);
                    own.yield_now().await;
                }
            });
            assert!(matches!(
                clear(&rt, &credentials, Some(b"secret")).await,
                Some(Secret::Clear(_))
            ));
            assert!(turns.get() >= 20, "{} turns", turns.get());
            assert!(clear(&rt, &credentials, Some(b"other")).await.is_none());
            assert!(clear(&rt, &credentials, None).await.is_none());
        });
    }

    /// All that a client sees that claims to be `user` and does not know the password; the last
    /// packet is the server's.
    fn seen(plugin: Plugin, found: &Found) -> Vec<Vec<u8>> {
        let found = found.clone();
        let limits = Limits {
            time_max: Duration::from_secs(60),
            turns_max: 100_000,
        };
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let result = seen.clone();
        rt::sim::run_with(1, Faults::perfect(), limits, |rt| async move {
            let at: rt::Address = "10.0.0.1:3306".parse().unwrap();
            let listener = rt.listen(&at, rt::ListenOptions::default()).unwrap();
            let (said, heard) = (
                rt.connect(&at).await.unwrap(),
                listener.accept().await.unwrap(),
            );
            rt.spawn(async move {
                let mut conn = Conn::new(heard);
                let caps = caps::PROTOCOL_41 | caps::SECURE_CONNECTION | caps::PLUGIN_AUTH;
                let (server_version, nonce) = ("8.0.0".to_owned(), [7; 20]);
                let plugin = Plugin::CachingSha2;
                let door = Door {
                    server_version,
                    thread_id: 1,
                    caps,
                    charset: 45,
                    plugin,
                    nonce,
                    tls: None,
                };
                let denied = welcome(&mut conn, &door, None, |_| found.clone()).await;
                assert!(
                    matches!(denied, Err(LoginFailed::Denied { .. })),
                    "{denied:?}"
                );
                conn.reply(b"denied").await.unwrap();
                conn.flush().await.unwrap();
            });
            let mut client = Conn::new(said);
            client.packet(1000).await.unwrap();
            let mut answer = Vec::new();
            let login = Login {
                caps: caps::PROTOCOL_41 | caps::SECURE_CONNECTION | caps::PLUGIN_AUTH,
                user: "somebody".to_owned(),
                auth_response: vec![1; 20],
                auth_plugin: Some(plugin.name().to_owned()),
                ..Login::default()
            };
            login.write(&mut answer);
            loop {
                client.reply(&answer).await.unwrap();
                let packet = client.packet(1000).await.unwrap().payload().to_vec();
                let over = packet == b"denied";
                seen.borrow_mut().push(packet);
                if over {
                    break;
                }
                answer = vec![1; 20];
            }
        });
        result.take()
    }

    /// Computed by hand with another library.
    #[test]
    fn the_certificate_is_vouched_for_by_what_a_plugin_has_of_the_password() {
        let nonce = *b"abcdefghijKLMNOPQRST";
        let certificate: [u8; 32] = std::array::from_fn(|i| i as u8);
        let clear = || Secret::Clear("secret".to_owned());
        let native =
            b"\x01EE6327B321D9B379948CA2454CA50CD6AEB11702228334EEDC965A23CA468650".to_vec();
        let signed =
            b"\x01FED6E9E72879B2D9C7B7C299482F57D95225476EDFA933648E369DE3263E4AD0".to_vec();
        for (plugin, secret, wanted) in [
            (Plugin::MysqlNative, clear(), native.clone()),
            (
                Plugin::MysqlNative,
                Secret::NativeStage1(auth::native_stage1(b"secret")),
                native,
            ),
            (Plugin::Ed25519, clear(), signed),
            (Plugin::MysqlNative, Secret::None, Vec::new()),
            (Plugin::CachingSha2, clear(), Vec::new()),
            (Plugin::ClearPassword, clear(), Vec::new()),
        ] {
            assert_eq!(
                vouch(Some(plugin), &secret, &nonce, Some(certificate)),
                wanted,
                "{plugin:?}"
            );
            assert!(
                vouch(Some(plugin), &secret, &nonce, None).is_empty(),
                "without TLS: {plugin:?}"
            );
        }
    }

    #[test]
    fn a_client_is_asked_for_what_proves_each_of_two_passwords() {
        let clear = Credential::Clear("new".to_owned());
        let native = Credential::Native([3; 20]);
        let crypt = Credential::CachingSha2(String::new());
        for (credentials, client, wanted) in [
            (
                vec![clear.clone(), clear.clone()],
                Plugin::Ed25519,
                Plugin::Ed25519,
            ),
            (
                vec![clear.clone(), clear.clone()],
                Plugin::MysqlNative,
                Plugin::MysqlNative,
            ),
            (
                vec![clear.clone(), native.clone()],
                Plugin::Ed25519,
                Plugin::MysqlNative,
            ),
            (
                vec![native.clone(), clear.clone()],
                Plugin::CachingSha2,
                Plugin::MysqlNative,
            ),
            (
                vec![native.clone(), crypt.clone()],
                Plugin::MysqlNative,
                Plugin::CachingSha2,
            ),
            (
                vec![crypt.clone(), clear],
                Plugin::ClearPassword,
                Plugin::ClearPassword,
            ),
            (
                vec![native, crypt],
                Plugin::ClearPassword,
                Plugin::ClearPassword,
            ),
        ] {
            assert_eq!(
                wanted_plugin(&credentials, Some(client), true),
                wanted,
                "{credentials:?} of {client:?}"
            );
        }
    }

    #[test]
    fn a_name_that_nobody_has_is_asked_what_a_user_of_its_credential_is_asked() {
        let crypt = format!("$A$005${}{}", "s".repeat(20), "h".repeat(43));
        let credentials = [
            Credential::Empty,
            Credential::Clear("secret".to_owned()),
            Credential::Native([3; 20]),
            Credential::CachingSha2(crypt),
        ];
        let mut different = 0;
        for plugin in [Plugin::MysqlNative, Plugin::CachingSha2, Plugin::Ed25519] {
            let mut before = None;
            for credential in credentials
                .iter()
                .map(|one| vec![one.clone()])
                .chain([credentials.to_vec()])
            {
                let user = seen(plugin, &Found::User(credential.clone()));
                assert_eq!(
                    user,
                    seen(plugin, &Found::Nobody(credential.clone())),
                    "{credential:?}"
                );
                different += u32::from(before.is_some_and(|before| before != user));
                before = Some(user);
            }
        }
        assert!(
            different > 1,
            "kinds are asked differently, so nobody must be of one kind only"
        );
    }
}
