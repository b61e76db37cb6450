//! We log in to a server.

use crate::tls::{self, Connector};
use crate::{Conn, NetError};
use std::fmt;
use std::sync::Arc;
use wire::auth::{self, Nonce, Plugin};
use wire::caps::{self, Caps};
use wire::connect_attributes::ConnectAttributes;
use wire::ed25519;
use wire::frame::Algorithm;
use wire::handshake::{AuthReply, ChangeUser, First, Greeting, Login, SslRequest};
use wire::packet;

/// Bytes of a packet before we are in.
pub(crate) const LOGIN_LEN_MAX: usize = 1 << 20;

/// Knowledge that we have of a user's password.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// There is none.
    None,
    /// The password.
    Clear(String),
    /// SHA1(password), learnt from a client's native login: good for native logins elsewhere.
    NativeStage1([u8; 20]),
    /// A server has let the client in by what it has said there: good for nothing else.
    Relayed,
}

impl Secret {
    /// Whether nobody but a server has seen a proof.
    #[must_use]
    pub const fn is_relayed(&self) -> bool {
        matches!(self, Self::Relayed)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// As whom, and how, to log in.
#[derive(Debug)]
pub struct Account<'a> {
    /// User.
    pub user: &'a str,
    /// Password.
    pub secret: &'a Secret,
    /// Schema to begin in.
    pub database: Option<&'a str>,
    /// Capabilities that we would like; the server's offer limits them.
    pub caps: Caps,
    /// Collation of the connection.
    pub charset: u16,
    /// Connection attributes.
    pub attributes: &'a ConnectAttributes,
    /// Compression, if the server has it.
    pub compression: Option<Compression>,
    /// TLS is required when this is there.
    pub tls: Option<&'a Connector>,
    /// Name of the server, for TLS.
    pub host: &'a str,
    /// Whether the server gets proofs of the password only, whatever it asks for: nobody has looked
    /// at its certificate, and it has no need of more.
    pub never_in_clear: bool,
}

/// The compression that we would like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// If the server has it; else zlib.
    pub algorithm: Algorithm,
    /// Level of zlib for what we send.
    pub zlib_level: i32,
    /// Level of zstd, for both directions.
    pub zstd_level: u8,
}

impl Compression {
    /// The one of the server's algorithms to ask for.
    fn among(self, offered: Caps) -> Caps {
        match self.algorithm {
            Algorithm::Zstd if caps::has(offered, caps::ZSTD) => caps::ZSTD,
            _ => caps::COMPRESS,
        }
    }
}

/// A server that let us in.
#[derive(Debug, Clone)]
pub struct Hello {
    /// Its version.
    pub version: String,
    /// The numbers at the beginning of its version, without the `5.5.5-` that MariaDB has had there.
    pub numbers: [u32; 3],
    mariadb: bool,
    /// Its id of the connection.
    pub thread_id: u32,
    /// Capabilities that both sides have.
    pub caps: Caps,
    /// Capabilities that the server has offered, whether or not we asked for them.
    pub offered: Caps,
    /// SERVER_STATUS_* flags.
    pub status: u16,
    /// The id of the collation that it gives to sessions by itself; of one above 255 the low byte.
    pub collation: u8,
    /// Proof that let us in, to be said again by [`log_in_again`].
    pub proof: Arc<Proof>,
}

/// Proof that a login went by.
#[derive(Debug)]
pub struct Proof {
    secret: Secret,
    plugin: Plugin,
    nonce: Nonce,
    charset: u16,
}

impl Proof {
    /// Returns the proof of a client that has proven its password to the server itself.
    pub(crate) fn relayed(plugin: Plugin, nonce: Nonce, charset: u16) -> Self {
        Self {
            secret: Secret::Relayed,
            plugin,
            nonce,
            charset,
        }
    }

    /// Whether [`log_in_again`] has something to say.
    #[must_use]
    pub const fn can_be_said_again(&self) -> bool {
        !self.secret.is_relayed()
    }

    /// Challenge that it answered last.
    pub(crate) const fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Collation that the login asked for.
    #[must_use]
    pub fn charset(&self) -> u16 {
        self.charset
    }
}

impl Hello {
    /// Whether it says that it is MariaDB.
    #[must_use]
    pub const fn is_mariadb(&self) -> bool {
        self.mariadb
    }
}

/// Why a server did not let us in.
#[derive(Debug)]
pub enum Refused {
    /// The way to it, or its protocol.
    Net(NetError),
    /// Refusal that the server has sent.
    Server {
        /// Error number.
        code: u16,
        /// SQLSTATE.
        state: [u8; 5],
        /// Its words.
        message: String,
    },
    /// Request of the server for a proof that we cannot give.
    Impossible(String),
    /// Lack of TLS at the server.
    NoTls,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(error) => write!(f, "{error}"),
            Self::Server { code, message, .. } => write!(f, "error {code}: {message}"),
            Self::Impossible(what) => f.write_str(what),
            Self::NoTls => f.write_str("use_ssl=1, but the server does not offer TLS"),
        }
    }
}

impl std::error::Error for Refused {}

impl<E: Into<NetError>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Net(error.into())
    }
}

/// Logs in.
///
/// # Errors
/// [`Refused`]; the connection is then of no use.
pub async fn login(conn: &mut Conn, account: &Account<'_>) -> Result<Hello, Refused> {
    if account.secret.is_relayed() {
        return Err(known_to_the_server());
    }
    let greeting = greeting(conn).await?;
    let agreed = agree(conn, &greeting, account).await?;
    let mut nonce = greeting.scramble;
    // A server of ours or of the field may name a default that this account does not use: it will
    // switch us. So it does where we cannot use it, while no proof at all would be the one of no
    // password.
    let plugin = Plugin::by_name(&greeting.auth_plugin)
        .filter(|plugin| matches!(plugin, Plugin::MysqlNative | Plugin::CachingSha2))
        .filter(|plugin| first_response(*plugin, account.secret, &nonce).is_some())
        .unwrap_or(Plugin::MysqlNative);
    let response = first_response(plugin, account.secret, &nonce).unwrap_or_default();
    introduce_us(conn, account, agreed, plugin.name(), response).await?;
    let (status, plugin) = converse(
        conn,
        account.secret,
        agreed,
        (plugin, account.never_in_clear),
        &mut nonce,
    )
    .await?;
    let proof = Proof {
        secret: account.secret.clone(),
        plugin,
        nonce,
        charset: account.charset,
    };
    Ok(let_in(conn, greeting, account, agreed, status, proof))
}

/// The first packet of a server.
///
/// # Errors
/// It lets nobody in, or there is none.
pub async fn greeting(conn: &mut Conn) -> Result<Greeting, Refused> {
    let packet = conn.packet(LOGIN_LEN_MAX).await?;
    match First::read(packet.payload())? {
        First::Greeting(greeting) => Ok(greeting),
        First::Refused(error) => Err(said(&error)),
    }
}

/// Agrees on what both sides speak; TLS is begun if the account wants it.
pub(crate) async fn agree(
    conn: &mut Conn,
    greeting: &Greeting,
    account: &Account<'_>,
) -> Result<Caps, Refused> {
    let mut wanted = account.caps
        | caps::PROTOCOL_41
        | caps::SECURE_CONNECTION
        | caps::PLUGIN_AUTH
        | caps::PLUGIN_AUTH_LENENC;
    if account.database.is_some() {
        wanted |= caps::CONNECT_WITH_DB;
    }
    if !account.attributes.is_empty() {
        wanted |= caps::CONNECT_ATTRS;
    }
    if account.tls.is_some() {
        wanted |= caps::SSL;
    }
    if let Some(compression) = account.compression {
        wanted |= compression.among(greeting.caps);
    }
    let agreed = wanted & greeting.caps;
    if let Some(connector) = account.tls {
        if !caps::has(greeting.caps, caps::SSL) {
            return Err(Refused::NoTls);
        }
        let request = SslRequest {
            caps: agreed,
            max_packet: 1 << 30,
            charset: (account.charset & 0xFF) as u8,
        };
        let mut payload = Vec::with_capacity(32);
        request.write(&mut payload);
        conn.reply(&payload).await?;
        conn.connect_tls(connector, account.host).await?;
    }
    Ok(agreed)
}

/// Says as whom to log in, with the first proof.
pub(crate) async fn introduce_us(
    conn: &mut Conn,
    account: &Account<'_>,
    agreed: Caps,
    plugin: &str,
    response: Vec<u8>,
) -> Result<(), Refused> {
    let login = Login {
        caps: agreed,
        max_packet: 1 << 30,
        charset: account.charset,
        user: account.user.to_owned(),
        auth_response: response,
        database: account.database.map(str::to_owned),
        auth_plugin: Some(plugin.to_owned()),
        attributes: account.attributes.clone(),
        zstd_level: account
            .compression
            .map_or(0, |compression| compression.zstd_level),
    };
    let mut payload = Vec::with_capacity(256);
    login.write(&mut payload);
    conn.reply(&payload).await?;
    Ok(())
}

/// The server is convinced: compression begins, if it was agreed on.
pub(crate) fn let_in(
    conn: &mut Conn,
    greeting: Greeting,
    account: &Account<'_>,
    agreed: Caps,
    status: u16,
    proof: Proof,
) -> Hello {
    if let (Some(compression), Some(algorithm)) = (account.compression, Algorithm::agreed(agreed)) {
        let level = if algorithm == Algorithm::Zstd {
            i32::from(compression.zstd_level)
        } else {
            compression.zlib_level
        };
        conn.compress_to_server(algorithm, level);
    }
    let version = greeting.server_version;
    Hello {
        numbers: numbers(&version),
        mariadb: version.to_ascii_lowercase().contains("mariadb"),
        version,
        thread_id: greeting.thread_id,
        caps: agreed,
        offered: greeting.caps,
        status,
        collation: greeting.charset,
        proof: Arc::new(proof),
    }
}

fn numbers(version: &str) -> [u32; 3] {
    let own = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut parts = own
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

/// COM_CHANGE_USER to who we are already: the session is as after a login, in this schema. Returns
/// the SERVER_STATUS_* flags.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_change_user.html>
///
/// # Errors
/// [`Refused`]; the connection is then of no use.
pub async fn log_in_again(
    conn: &mut Conn,
    hello: &Hello,
    user: &str,
    schema: &str,
    attributes: &ConnectAttributes,
) -> Result<u16, Refused> {
    let proof = &*hello.proof;
    let mut nonce = proof.nonce;
    let response = first_response(proof.plugin, &proof.secret, &nonce);
    let plugin = if response.is_some() {
        proof.plugin
    } else {
        Plugin::MysqlNative
    };
    let change = ChangeUser {
        user: user.to_owned(),
        auth_response: response.unwrap_or_default(),
        database: (!schema.is_empty()).then(|| schema.to_owned()),
        charset: Some(proof.charset),
        auth_plugin: Some(plugin.name().to_owned()),
        attributes: attributes.clone(),
    };
    let mut payload = Vec::with_capacity(256);
    change.write(&mut payload, hello.caps);
    let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
    packet::append(&mut framed, &mut 0, &payload);
    conn.send_commands(framed).await?;
    converse(conn, &proof.secret, hello.caps, (plugin, false), &mut nonce)
        .await
        .map(|(status, _)| status)
}

/// Until the server says yes or no: its status flags, and by which plugin it was convinced.
async fn converse(
    conn: &mut Conn,
    secret: &Secret,
    agreed: Caps,
    (mut plugin, never_in_clear): (Plugin, bool),
    nonce: &mut Nonce,
) -> Result<(u16, Plugin), Refused> {
    loop {
        let packet = conn.packet(LOGIN_LEN_MAX).await?;
        match AuthReply::read(packet.payload(), agreed)? {
            AuthReply::Ok(ok) => return Ok((ok.status, plugin)),
            AuthReply::Err(error) => return Err(said(&error)),
            AuthReply::NextFactor => {
                return Err(Refused::Impossible(
                    "the server asks for a second authentication factor".to_owned(),
                ));
            }
            AuthReply::Switch(switch) => {
                let Some(asked) = Plugin::by_name(&switch.plugin) else {
                    let what = format!(
                        "the server asks for authentication plugin '{}', which is not supported",
                        switch.plugin
                    );
                    return Err(Refused::Impossible(what));
                };
                plugin = asked;
                if !matches!(plugin, Plugin::ClearPassword) {
                    *nonce = switch.nonce()?;
                }
                let response = match plugin {
                    Plugin::ClearPassword | Plugin::Sha256 if never_in_clear => {
                        return Err(asks_for_it());
                    }
                    Plugin::Ed25519 => {
                        let password = terminated(secret).map_err(|_| no_clear(plugin))?;
                        let nonce = switch.data.as_slice().try_into().map_err(|_| {
                            Refused::Impossible(
                                "the server's nonce for client_ed25519 is not one of 32 bytes"
                                    .to_owned(),
                            )
                        })?;
                        ed25519::sign(&password[..password.len() - 1], nonce).to_vec()
                    }
                    Plugin::ClearPassword | Plugin::Sha256 if conn.is_private() => {
                        terminated(secret)?
                    }
                    Plugin::Sha256 => vec![auth::ASK_KEY_SHA256],
                    Plugin::ClearPassword => {
                        let what = "the server asks for the password in clear, but the connection is neither TLS nor a Unix socket";
                        return Err(Refused::Impossible(what.to_owned()));
                    }
                    _ => first_response(plugin, secret, nonce).ok_or_else(|| no_clear(plugin))?,
                };
                conn.reply(&response).await?;
            }
            AuthReply::More(data) => match (plugin, data) {
                (Plugin::CachingSha2, [auth::FAST_OK]) => {}
                (Plugin::CachingSha2 | Plugin::Sha256, _) if never_in_clear => {
                    return Err(asks_for_it());
                }
                (Plugin::CachingSha2, [auth::FULL]) if conn.is_private() => {
                    let response = terminated(secret)?;
                    conn.reply(&response).await?;
                }
                (Plugin::CachingSha2, [auth::FULL]) => {
                    conn.reply(&[auth::ASK_KEY_CACHING_SHA2]).await?
                }
                (Plugin::CachingSha2 | Plugin::Sha256, pem) => {
                    let password = terminated(secret)?;
                    let sealed = tls::seal(
                        pem,
                        &auth::xor_password(&password[..password.len() - 1], nonce),
                    )?;
                    conn.reply(&sealed).await?;
                }
                (plugin, _) => {
                    let what = format!(
                        "the server continues {} in a way we do not know",
                        plugin.name()
                    );
                    return Err(Refused::Impossible(what));
                }
            },
        }
    }
}

fn first_response(plugin: Plugin, secret: &Secret, nonce: &Nonce) -> Option<Vec<u8>> {
    match (plugin, secret) {
        (_, Secret::None) => Some(Vec::new()),
        (Plugin::CachingSha2, Secret::Clear(password)) => {
            Some(auth::sha2_scramble(password.as_bytes(), nonce))
        }
        (Plugin::MysqlNative, Secret::Clear(password)) => {
            Some(auth::native_scramble(password.as_bytes(), nonce))
        }
        (Plugin::MysqlNative, Secret::NativeStage1(stage1)) => {
            Some(auth::native_from_stage1(stage1, nonce).to_vec())
        }
        _ => None,
    }
}

/// The password and a zero byte.
fn terminated(secret: &Secret) -> Result<Vec<u8>, Refused> {
    let mut bytes = match secret {
        Secret::None => Vec::new(),
        Secret::Clear(password) => password.as_bytes().to_vec(),
        Secret::NativeStage1(_) => return Err(no_clear(Plugin::CachingSha2)),
        Secret::Relayed => return Err(known_to_the_server()),
    };
    bytes.push(0);
    Ok(bytes)
}

fn no_clear(plugin: Plugin) -> Refused {
    Refused::Impossible(format!(
        "the server asks for {}, but mysql_users holds only a hash of mysql_native_password: store the password in clear or as a caching_sha2_password hash",
        plugin.name()
    ))
}

/// Nothing that was said for a client once can be said again.
fn known_to_the_server() -> Refused {
    let what = "only the server that has let this user in knows the password";
    Refused::Impossible(what.to_owned())
}

fn asks_for_it() -> Refused {
    Refused::Impossible(
        "it asks for the password itself, and gets no more than a proof of it".to_owned(),
    )
}

pub(crate) fn said(error: &wire::ok::Err<'_>) -> Refused {
    Refused::Server {
        code: error.code,
        state: error.state,
        message: String::from_utf8_lossy(error.message).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::sim::{Faults, Limits};
    use std::time::Duration;
    use wire::handshake::AuthSwitch;

    #[test]
    fn who_never_gets_a_password_in_clear_does_not_by_asking_for_it() {
        let switch = |plugin: Plugin| {
            let mut payload = Vec::new();
            AuthSwitch {
                plugin: plugin.name().into(),
                data: vec![7; 20],
            }
            .write(&mut payload);
            payload
        };
        let full = vec![wire::handshake::AUTH_MORE_HEADER, auth::FULL];
        for (asked, answer) in [
            (full, Some(vec![auth::ASK_KEY_CACHING_SHA2])),
            (switch(Plugin::Sha256), Some(vec![auth::ASK_KEY_SHA256])),
            (switch(Plugin::ClearPassword), None),
        ] {
            for never_in_clear in [false, true] {
                let limits = Limits {
                    time_max: Duration::from_secs(60),
                    turns_max: 100_000,
                };
                let (asked, answer) = (asked.clone(), answer.clone().filter(|_| !never_in_clear));
                rt::sim::run_with(1, Faults::perfect(), limits, |rt| async move {
                    let at: rt::Address = "10.0.0.1:6032".parse().unwrap();
                    let listener = rt.listen(&at, rt::ListenOptions::default()).unwrap();
                    let (ours, theirs) = (
                        rt.connect(&at).await.unwrap(),
                        listener.accept().await.unwrap(),
                    );
                    let mut other = Conn::new(theirs);
                    other.reply(&asked).await.unwrap();
                    let (mut conn, secret, mut nonce) =
                        (Conn::new(ours), Secret::Clear("s3cret".into()), [7; 20]);
                    let login = async {
                        let said = converse(
                            &mut conn,
                            &secret,
                            caps::PLUGIN_AUTH,
                            (Plugin::CachingSha2, never_in_clear),
                            &mut nonce,
                        );
                        rt.timeout(Duration::from_secs(1), said).await
                    };
                    let refused = matches!(login.await, Ok(Err(Refused::Impossible(_))));
                    assert_eq!(refused, answer.is_none());
                    drop(conn);
                    let heard = other
                        .packet(1000)
                        .await
                        .ok()
                        .map(|packet| packet.payload().to_vec());
                    assert_eq!(heard, answer);
                });
            }
        }
    }
}
