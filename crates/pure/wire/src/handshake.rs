//! How a client gets in: the greeting, the login, and the packets of authentication.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html>
//! <https://mariadb.com/kb/en/connection/> The server greets, the client may ask for TLS, then it
//! logs in; the server says OK, ERR, "use another plugin" or "go on".

use crate::caps::{self, Caps};
use crate::connect_attributes::ConnectAttributes;
use crate::ok;
use crate::read::Reader;
use crate::write::Write as _;
use crate::{Malformed, auth::Nonce};

/// Protocol::HandshakeV10: the first packet, from the server.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html>
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Such as `8.0.41` or `5.5.5-10.11.6-MariaDB`.
    pub server_version: String,
    /// The connection id, as KILL wants it.
    pub thread_id: u32,
    /// The nonce of the authentication; has no zero byte.
    pub scramble: Nonce,
    /// Capabilities that the server offers.
    pub caps: Caps,
    /// Default collation, lower eight bits of its id.
    pub charset: u8,
    /// SERVER_STATUS_* flags.
    pub status: u16,
    /// The plugin that the scramble is meant for.
    pub auth_plugin: String,
}

/// The first packet of a server: a greeting, or a refusal ("too many connections", "host is
/// blocked").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First<'a> {
    /// The server is willing to talk.
    Greeting(Greeting),
    /// Refusal of the server to talk.
    Refused(ok::Err<'a>),
}

impl<'a> First<'a> {
    /// Reads the first payload that a server sends.
    pub fn read(payload: &'a [u8]) -> Result<Self, Malformed> {
        if payload.first() == Some(&ok::ERR_HEADER) {
            return ok::Err::read(payload).map(First::Refused);
        }
        Greeting::read(payload).map(First::Greeting)
    }
}

impl Greeting {
    /// Reads a payload which is no ERR packet; see [`First`] for one that may be.
    pub fn read(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        match r.u8()? {
            10 => {}
            ok::ERR_HEADER => return Err(Malformed::new("ERR packet instead of a greeting")),
            9 => {
                return Err(Malformed::new(
                    "the server speaks protocol 9, from before MySQL 3.21",
                ));
            }
            _ => return Err(Malformed::new("greeting with an unknown protocol version")),
        }
        let server_version = text(r.nul_str()?);
        let thread_id = r.u32()?;
        let first: [u8; 8] = r.array()?;
        r.u8()?; // a zero that ended the nonce before 4.1
        let mut caps = Caps::from(r.u16()?);
        if !caps::has(caps, caps::PROTOCOL_41) || r.is_empty() {
            return Err(Malformed::new("the server is older than MySQL 4.1"));
        }
        let charset = r.u8()?;
        let status = r.u16()?;
        caps |= Caps::from(r.u16()?) << 16;
        let nonce_len = usize::from(r.u8()?);
        r.take(6)?;
        let extended = r.u32()?;
        if !caps::has(caps, caps::LONG_PASSWORD) {
            caps |= Caps::from(extended) << 32;
        }
        // The rest of the nonce is as long as promised but never less than 13, the last of them a
        // zero.
        let second = r.take(r.left().min(nonce_len.saturating_sub(8).max(13)))?;
        let mut scramble = [0; 20];
        let (head, tail) = scramble.split_at_mut(8);
        head.copy_from_slice(&first);
        tail.copy_from_slice(
            second
                .get(..12)
                .ok_or(Malformed::new("greeting with a short nonce"))?,
        );
        let auth_plugin = if caps::has(caps, caps::PLUGIN_AUTH) {
            text(r.nul_str_or_rest())
        } else {
            "mysql_native_password".to_owned()
        };
        Ok(Self {
            server_version,
            thread_id,
            scramble,
            caps,
            charset,
            status,
            auth_plugin,
        })
    }

    /// Writes the payload. Extended bits are written where MariaDB has them, if LONG_PASSWORD is
    /// not among the caps.
    pub fn write(&self, out: &mut Vec<u8>) {
        let [c0, c1, c2, c3, e0, e1, e2, e3] = self.caps.to_le_bytes();
        out.u8(10);
        out.nul_str(self.server_version.as_bytes());
        out.u32(self.thread_id);
        out.bytes(&self.scramble[..8]);
        out.u8(0);
        out.bytes(&[c0, c1]);
        out.u8(self.charset);
        out.u16(self.status);
        out.bytes(&[c2, c3]);
        out.u8(if caps::has(self.caps, caps::PLUGIN_AUTH) {
            21
        } else {
            0
        });
        out.bytes(&[0; 6]);
        out.bytes(&if caps::has(self.caps, caps::LONG_PASSWORD) {
            [0; 4]
        } else {
            [e0, e1, e2, e3]
        });
        out.bytes(&self.scramble[8..]);
        out.u8(0);
        if caps::has(self.caps, caps::PLUGIN_AUTH) {
            out.nul_str(self.auth_plugin.as_bytes());
        }
    }
}

/// The first 32 bytes of a login, alone: the client wants TLS before it says who it is.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_ssl_request.html>
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SslRequest {
    /// Capabilities that the client will use; it repeats them in the login.
    pub caps: Caps,
    /// The largest packet that it wants to see.
    pub max_packet: u32,
    /// The collation of the connection, lower eight bits of its id.
    pub charset: u8,
}

/// True if this payload is an SSLRequest and not a login: it has the bit, and nothing after the
/// fixed part.
pub fn is_ssl_request(payload: &[u8]) -> bool {
    payload.len() == FIXED_LEN
        && SslRequest::read(payload).is_ok_and(|s| caps::has(s.caps, caps::SSL))
}

/// Length of what SSLRequest and login have in common.
const FIXED_LEN: usize = 32;

impl SslRequest {
    /// Reads the fixed part of an SSLRequest or of a login.
    pub fn read(payload: &[u8]) -> Result<Self, Malformed> {
        Self::read_from(&mut Reader::new(payload))
    }

    fn read_from(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        // Clients of 3.x send only 16 bits here; a missing PROTOCOL_41 among the first 16 tells.
        let low = r.peek().first_chunk::<2>().map(|b| u16::from_le_bytes(*b));
        if low.is_some_and(|low| !caps::has(Caps::from(low), caps::PROTOCOL_41)) {
            return Err(PRE_41);
        }
        let mut caps = Caps::from(r.u32()?);
        let max_packet = r.u32()?;
        let charset = r.u8()?;
        r.take(19)?;
        let extended = r.u32()?;
        if !caps::has(caps, caps::LONG_PASSWORD) {
            caps |= Caps::from(extended) << 32;
        }
        Ok(Self {
            caps,
            max_packet,
            charset,
        })
    }

    /// Writes the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        let [c0, c1, c2, c3, e0, e1, e2, e3] = self.caps.to_le_bytes();
        out.bytes(&[c0, c1, c2, c3]);
        out.u32(self.max_packet);
        out.u8(self.charset);
        out.bytes(&[0; 19]);
        out.bytes(&if caps::has(self.caps, caps::LONG_PASSWORD) {
            [0; 4]
        } else {
            [e0, e1, e2, e3]
        });
    }
}

/// A login from before MySQL 4.1: to be answered with an error that says so.
pub const PRE_41: Malformed =
    Malformed::new("the client speaks the protocol of before MySQL 4.1, which is not supported");

/// Protocol::HandshakeResponse41: who the client is.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_response.html>
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// Capabilities that the client will use of those that were offered. It may name more than were
    /// offered: intersect.
    pub caps: Caps,
    /// The largest packet that the client wants to see.
    pub max_packet: u32,
    /// The collation of the connection; a login only has room for the lower eight bits of its id.
    pub charset: u16,
    /// User name.
    pub user: String,
    /// The answer to the scramble; what it means depends on the plugin.
    pub auth_response: Vec<u8>,
    /// The schema to begin in.
    pub database: Option<String>,
    /// The plugin that made `auth_response`; `None` from clients that know only
    /// mysql_native_password.
    pub auth_plugin: Option<String>,
    /// Connection attributes, such as `program_name`.
    pub attributes: ConnectAttributes,
    /// Level of zstd compression, 0 when it is not used.
    pub zstd_level: u8,
}

impl Login {
    /// Reads the payload. The optional parts are read as leniently as the servers do: several old
    /// clients stop early.
    pub fn read(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        let SslRequest {
            caps,
            max_packet,
            charset,
        } = SslRequest::read_from(&mut r)?;
        let mut login = Self {
            caps,
            max_packet,
            charset: u16::from(charset),
            ..Self::default()
        };
        login.user = text(r.nul_str_or_rest());
        login.auth_response = if caps::has(caps, caps::PLUGIN_AUTH_LENENC) {
            if r.is_empty() {
                &[][..]
            } else {
                r.lenenc_bytes()?
            }
        } else if caps::has(caps, caps::SECURE_CONNECTION) {
            if r.is_empty() {
                &[][..]
            } else {
                let n = usize::from(r.u8()?);
                r.take(n)?
            }
        } else {
            r.nul_str_or_rest()
        }
        .to_vec();
        if caps::has(caps, caps::CONNECT_WITH_DB) {
            login.database = Some(text(r.nul_str_or_rest())).filter(|d| !d.is_empty());
        }
        if caps::has(caps, caps::PLUGIN_AUTH) {
            login.auth_plugin = Some(text(r.nul_str_or_rest())).filter(|p| !p.is_empty());
        }
        if caps::has(caps, caps::CONNECT_ATTRS) && !r.is_empty() {
            login.attributes = ConnectAttributes::read(&mut r)?;
        }
        if caps::has(caps, caps::ZSTD) && !r.is_empty() {
            login.zstd_level = r.u8()?;
        }
        Ok(login)
    }

    /// Writes the payload. Which optional parts are written, and how, follows from `caps`.
    pub fn write(&self, out: &mut Vec<u8>) {
        SslRequest {
            caps: self.caps,
            max_packet: self.max_packet,
            charset: self.charset as u8,
        }
        .write(out);
        out.nul_str(self.user.as_bytes());
        if caps::has(self.caps, caps::PLUGIN_AUTH_LENENC) {
            out.lenenc_bytes(&self.auth_response);
        } else if caps::has(self.caps, caps::SECURE_CONNECTION) {
            let short = &self.auth_response[..self.auth_response.len().min(255)];
            out.u8(short.len() as u8);
            out.bytes(short);
        } else {
            out.nul_str(&self.auth_response);
        }
        if caps::has(self.caps, caps::CONNECT_WITH_DB) {
            out.nul_str(self.database.as_deref().unwrap_or_default().as_bytes());
        }
        if caps::has(self.caps, caps::PLUGIN_AUTH) {
            out.nul_str(self.auth_plugin.as_deref().unwrap_or_default().as_bytes());
        }
        if caps::has(self.caps, caps::CONNECT_ATTRS) {
            self.attributes.write(out);
        }
        if caps::has(self.caps, caps::ZSTD) {
            out.u8(self.zstd_level);
        }
    }
}

/// COM_CHANGE_USER: a new login on an open connection.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_change_user.html>
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeUser {
    /// User name.
    pub user: String,
    /// The answer to the scramble of the greeting.
    pub auth_response: Vec<u8>,
    /// The schema to begin in.
    pub database: Option<String>,
    /// The collation of the connection; `None` keeps the server's default.
    pub charset: Option<u16>,
    /// The plugin that made `auth_response`.
    pub auth_plugin: Option<String>,
    /// Connection attributes.
    pub attributes: ConnectAttributes,
}

impl ChangeUser {
    /// Reads what follows the command byte.
    pub fn read(body: &[u8], caps: Caps) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let mut change = Self {
            user: text(r.nul_str_or_rest()),
            ..Self::default()
        };
        if r.is_empty() {
            return Ok(change);
        }
        change.auth_response = if caps::has(caps, caps::SECURE_CONNECTION) {
            let n = usize::from(r.u8()?);
            r.take(n)?
        } else {
            r.nul_str_or_rest()
        }
        .to_vec();
        change.database = Some(text(r.nul_str_or_rest())).filter(|d| !d.is_empty());
        if !r.is_empty() {
            change.charset = Some(r.u16()?);
        }
        if caps::has(caps, caps::PLUGIN_AUTH) {
            change.auth_plugin = Some(text(r.nul_str_or_rest())).filter(|p| !p.is_empty());
        }
        if caps::has(caps, caps::CONNECT_ATTRS) && !r.is_empty() {
            change.attributes = ConnectAttributes::read(&mut r)?;
        }
        Ok(change)
    }

    /// Writes the payload, command byte included.
    pub fn write(&self, out: &mut Vec<u8>, caps: Caps) {
        out.u8(crate::codes::COM_CHANGE_USER);
        out.nul_str(self.user.as_bytes());
        if caps::has(caps, caps::SECURE_CONNECTION) {
            let short = &self.auth_response[..self.auth_response.len().min(255)];
            out.u8(short.len() as u8);
            out.bytes(short);
        } else {
            out.nul_str(&self.auth_response);
        }
        out.nul_str(self.database.as_deref().unwrap_or_default().as_bytes());
        out.u16(self.charset.unwrap_or(0));
        if caps::has(caps, caps::PLUGIN_AUTH) {
            out.nul_str(self.auth_plugin.as_deref().unwrap_or_default().as_bytes());
        }
        if caps::has(caps, caps::CONNECT_ATTRS) {
            self.attributes.write(out);
        }
    }
}

/// Protocol::AuthSwitchRequest: "use this plugin instead, with this nonce".
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_auth_switch_request.html>
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthSwitch {
    /// The plugin to use.
    pub plugin: String,
    /// Its first data; the scramble (20 bytes) for the plugins that have one. Without the trailing
    /// zero.
    pub data: Vec<u8>,
}

impl AuthSwitch {
    /// Reads the payload. The one-byte form of old servers asks for `mysql_old_password`.
    pub fn read(payload: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(payload);
        if r.u8()? != ok::EOF_HEADER {
            return Err(Malformed::new("auth switch with another header"));
        }
        if r.is_empty() {
            return Ok(Self {
                plugin: "mysql_old_password".to_owned(),
                data: Vec::new(),
            });
        }
        let plugin = text(r.nul_str_or_rest());
        let data = r.rest();
        let ended = if ends_with_zero(&plugin) {
            data.strip_suffix(&[0]).unwrap_or(data)
        } else {
            data
        };
        Ok(Self {
            plugin,
            data: ended.to_vec(),
        })
    }

    /// Writes the payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.u8(ok::EOF_HEADER);
        out.nul_str(self.plugin.as_bytes());
        out.bytes(&self.data);
        if ends_with_zero(&self.plugin) {
            out.u8(0);
        }
    }

    /// The data as the nonce of the password plugins.
    pub fn nonce(&self) -> Result<Nonce, Malformed> {
        self.data
            .get(..20)
            .and_then(|d| d.try_into().ok())
            .ok_or(Malformed::new("auth switch with a short nonce"))
    }
}

/// Whether a zero follows the nonce. That of `client_ed25519` has all its bytes at random, and ends
/// with the packet.
fn ends_with_zero(plugin: &str) -> bool {
    plugin != crate::auth::Plugin::Ed25519.name()
}

/// Writes the payload of Protocol::AuthMoreData.
pub fn write_auth_more(out: &mut Vec<u8>, data: &[u8]) {
    out.u8(AUTH_MORE_HEADER);
    out.bytes(data);
}

/// First byte of AuthMoreData.
pub const AUTH_MORE_HEADER: u8 = 0x01;

/// Reply of a server while it authenticates us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthReply<'a> {
    /// We are in.
    Ok(ok::Ok<'a>),
    /// We are not.
    Err(ok::Err<'a>),
    /// Try another plugin.
    Switch(AuthSwitch),
    /// Data for the plugin in use; for caching_sha2_password see [`crate::auth::FAST_OK`] and its
    /// neighbours.
    More(&'a [u8]),
    /// Another factor is asked for, which we do not have.
    NextFactor,
}

impl<'a> AuthReply<'a> {
    /// Reads the payload.
    pub fn read(payload: &'a [u8], caps: Caps) -> Result<Self, Malformed> {
        match payload.first() {
            Some(&ok::OK_HEADER) => ok::Ok::read(payload, caps).map(AuthReply::Ok),
            Some(&ok::ERR_HEADER) => ok::Err::read(payload).map(AuthReply::Err),
            Some(&ok::EOF_HEADER) => AuthSwitch::read(payload).map(AuthReply::Switch),
            Some(&AUTH_MORE_HEADER) => Ok(AuthReply::More(&payload[1..])),
            Some(2) => Ok(AuthReply::NextFactor),
            _ => Err(Malformed::new("packet that has no place in authentication")),
        }
    }
}

/// Names are compared as text; bytes that are not UTF-8 become U+FFFD, which no configured name
/// contains.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fuzz target: a login or SSLRequest of any bytes is read or refused; what was read survives being
/// written.
pub fn fuzz_login(data: &[u8]) {
    is_ssl_request(data);
    if let Ok(login) = Login::read(data) {
        let mut out = Vec::new();
        login.write(&mut out);
        let again = Login::read(&out).expect("our own login is well formed");
        assert_eq!(
            (again.caps, &again.attributes),
            (login.caps, &login.attributes)
        );
        assert!(login.user.contains('\0') || again.user == login.user);
    }
}

/// Fuzz target: the same for COM_CHANGE_USER; the first byte chooses the caps.
pub fn fuzz_change_user(data: &[u8]) {
    let Some((&bits, body)) = data.split_first() else {
        return;
    };
    let mut caps = caps::PROTOCOL_41;
    for (i, bit) in [
        caps::SECURE_CONNECTION,
        caps::PLUGIN_AUTH,
        caps::CONNECT_ATTRS,
    ]
    .into_iter()
    .enumerate()
    {
        if bits >> i & 1 != 0 {
            caps |= bit;
        }
    }
    if let Ok(change) = ChangeUser::read(body, caps) {
        let mut out = Vec::new();
        change.write(&mut out, caps);
        let again = ChangeUser::read(&out[1..], caps).expect("our own packet is well formed");
        assert_eq!(
            (again.user, again.attributes),
            (change.user, change.attributes)
        );
    }
}

/// Fuzz target: whatever a server says first or while it authenticates us.
pub fn fuzz_greeting(data: &[u8]) {
    if let Ok(First::Greeting(greeting)) = First::read(data) {
        let mut out = Vec::new();
        greeting.write(&mut out);
        let again = Greeting::read(&out).expect("our own greeting is well formed");
        assert_eq!(
            (again.caps, again.scramble, &again.server_version),
            (greeting.caps, greeting.scramble, &greeting.server_version)
        );
    }
    AuthReply::read(data, caps::PROTOCOL_41 | caps::SESSION_TRACK).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Greeting of MariaDB 10.11.19.
    const MARIADB: &[u8] =
        b"\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x09\0\0\0q)s+zE*@\0\xfe\xf7\x08\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0ExMVJM({V{-f\0mysql_native_password\0";

    #[test]
    fn a_greeting_of_mariadb_is_read_with_its_extended_bits_and_written_back() {
        let g = Greeting::read(MARIADB).expect("greeting");
        assert_eq!(
            (g.server_version.as_str(), g.thread_id, &g.scramble),
            (
                "5.5.5-10.11.19-MariaDB-0+deb12u1",
                9,
                b"q)s+zE*@ExMVJM({V{-f"
            )
        );
        assert_eq!(
            (g.charset, g.status, g.auth_plugin.as_str()),
            (8, 2, "mysql_native_password")
        );
        assert!(!caps::has(g.caps, caps::LONG_PASSWORD));
        assert_eq!(g.caps >> 32, 0x1D);
        let mut out = Vec::new();
        g.write(&mut out);
        assert_eq!(out, MARIADB);
    }

    #[test]
    fn a_server_that_refuses_says_why_instead_of_greeting() {
        let First::Refused(err) = First::read(b"\xff\x10\x04Too many connections").expect("error")
        else {
            panic!()
        };
        assert_eq!(
            (err.code, err.message),
            (1040, &b"Too many connections"[..])
        );
        assert!(Greeting::read(b"\xff\x10\x04Too many connections").is_err());
        assert!(First::read(b"").is_err());
        assert!(First::read(b"SSH-2.0-OpenSSH_9.2p1\r\n").is_err());
    }

    #[test]
    fn a_cut_greeting_is_refused_at_every_length() {
        // Only the name of the plugin may be cut: its terminating zero is optional.
        let name = MARIADB.len() - b"mysql_native_password\0".len();
        for n in 0..name - 1 {
            assert!(Greeting::read(&MARIADB[..n]).is_err(), "{n}");
        }
    }

    fn login() -> Login {
        Login {
            caps: caps::LONG_PASSWORD
                | caps::PROTOCOL_41
                | caps::SECURE_CONNECTION
                | caps::CONNECT_WITH_DB
                | caps::PLUGIN_AUTH
                | caps::PLUGIN_AUTH_LENENC
                | caps::CONNECT_ATTRS,
            max_packet: 1 << 24,
            charset: 255,
            user: "alice".into(),
            auth_response: vec![1; 32],
            database: Some("shop".into()),
            auth_plugin: Some("caching_sha2_password".into()),
            attributes: of(&[("_pid", "42"), ("program_name", "mysql")]),
            zstd_level: 0,
        }
    }

    fn of(pairs: &[(&str, &str)]) -> ConnectAttributes {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn written(login: &Login) -> Vec<u8> {
        let mut out = Vec::new();
        login.write(&mut out);
        out
    }

    #[test]
    fn a_login_comes_back_in_every_form_of_its_auth_response() {
        let full = login();
        for (drop, response) in [
            (0, vec![1; 300]),
            (caps::PLUGIN_AUTH_LENENC, vec![1; 20]),
            (
                caps::PLUGIN_AUTH_LENENC | caps::SECURE_CONNECTION,
                b"OLDPASSW".to_vec(),
            ),
        ] {
            let login = Login {
                caps: full.caps & !drop,
                auth_response: response,
                ..full.clone()
            };
            assert_eq!(Login::read(&written(&login)), Ok(login));
        }
        let zstd = Login {
            caps: full.caps | caps::ZSTD | caps::COMPRESS,
            zstd_level: 3,
            ..full
        };
        assert_eq!(Login::read(&written(&zstd)), Ok(zstd));
    }

    #[test]
    fn a_login_of_a_mariadb_client_has_its_extended_bits() {
        let login = Login {
            caps: login().caps & !caps::LONG_PASSWORD | caps::MARIADB_BULK,
            ..login()
        };
        assert_eq!(Login::read(&written(&login)), Ok(login));
    }

    #[test]
    fn clients_that_stop_early_are_let_in() {
        let login = Login {
            attributes: of(&[]),
            ..login()
        };
        let bytes = written(&login);
        // The user and nothing else, without its zero.
        let user = Login::read(&bytes[..32 + 5]).expect("lenient");
        assert_eq!(
            (
                user.user.as_str(),
                user.auth_response.len(),
                user.database,
                user.auth_plugin
            ),
            ("alice", 0, None, None)
        );
        // Up to the plugin, whose zero is missing; attributes are promised and do not come.
        let plugin = Login::read(&bytes[..bytes.len() - 2]).expect("lenient");
        assert_eq!(plugin, login);
        // No user at all: a client that wants to be anonymous.
        assert_eq!(Login::read(&bytes[..32]).map(|l| l.user), Ok(String::new()));
    }

    #[test]
    fn a_client_without_plugins_means_the_native_one() {
        let caps = caps::LONG_PASSWORD | caps::PROTOCOL_41 | caps::SECURE_CONNECTION;
        let login = Login {
            caps,
            auth_response: vec![7; 20],
            database: None,
            auth_plugin: None,
            attributes: of(&[]),
            ..login()
        };
        assert_eq!(Login::read(&written(&login)), Ok(login));
    }

    #[test]
    fn what_is_older_than_4_1_is_refused_by_that_name() {
        // MySQL 3.23: 16 bits of caps, 24 bits of packet size, user, password in one string.
        assert_eq!(Login::read(b"\x85\x24\0\0\0root\0AAAAAAAA"), Err(PRE_41));
    }

    #[test]
    fn promises_that_are_not_kept_are_refused() {
        let mut bytes = written(&Login {
            attributes: of(&[]),
            ..login()
        });
        bytes.pop();
        bytes.extend_from_slice(b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f");
        assert!(Login::read(&bytes).is_err(), "attributes of 2^63 bytes");
        let mut bytes = written(&login());
        bytes.truncate(32 + 6 + 1 + 5);
        assert!(Login::read(&bytes).is_err(), "an auth response that is cut");
        for n in 0..32 {
            assert!(Login::read(&bytes[..n]).is_err());
        }
        let many = of(&[(&"a".repeat(40_000), &"b".repeat(40_000))]);
        assert!(
            Login::read(&written(&Login {
                attributes: many,
                ..login()
            }))
            .is_err(),
            "attributes over 64 KiB"
        );
        let many = of(&vec![("", ""); 32_767]);
        assert!(
            Login::read(&written(&Login {
                attributes: many,
                ..login()
            }))
            .is_ok(),
            "as many as servers take"
        );
    }

    #[test]
    fn a_request_for_tls_is_told_from_a_login() {
        let mut request = Vec::new();
        SslRequest {
            caps: login().caps | caps::SSL,
            max_packet: 1 << 24,
            charset: 45,
        }
        .write(&mut request);
        assert_eq!(request.len(), 32);
        assert!(is_ssl_request(&request));
        assert_eq!(SslRequest::read(&request).map(|r| r.charset), Ok(45));
        assert!(!is_ssl_request(&written(&login())));
        // Inside of TLS the login has the bit as well.
        assert!(!is_ssl_request(&written(&Login {
            caps: login().caps | caps::SSL,
            ..login()
        })));
    }

    #[test]
    fn change_user_comes_back() {
        let caps = login().caps;
        let change = ChangeUser {
            user: "bob".into(),
            auth_response: vec![3; 20],
            database: Some("test".into()),
            charset: Some(45),
            auth_plugin: Some("mysql_native_password".into()),
            attributes: of(&[("a", "b")]),
        };
        let mut out = Vec::new();
        change.write(&mut out, caps);
        assert_eq!(out[0], 0x11);
        assert_eq!(ChangeUser::read(&out[1..], caps), Ok(change));
        // The shortest that exists.
        let short = ChangeUser::read(b"bob\0\0\0", caps).expect("short");
        assert_eq!(
            (
                short.user.as_str(),
                short.auth_response.len(),
                short.database,
                short.charset
            ),
            ("bob", 0, None, None)
        );
        assert!(ChangeUser::read(b"bob\0\x14short", caps).is_err());
    }

    #[test]
    fn the_packets_of_authentication_are_told_apart() {
        let caps = caps::PROTOCOL_41;
        let mut out = Vec::new();
        let switch = AuthSwitch {
            plugin: "caching_sha2_password".into(),
            data: b"01234567890123456789".to_vec(),
        };
        switch.write(&mut out);
        assert_eq!(out.last(), Some(&0));
        assert_eq!(
            AuthReply::read(&out, caps),
            Ok(AuthReply::Switch(switch.clone()))
        );
        assert_eq!(switch.nonce(), Ok(*b"01234567890123456789"));
        assert_eq!(
            AuthSwitch::read(b"\xfe").map(|s| s.plugin),
            Ok("mysql_old_password".into())
        );
        assert!(
            AuthSwitch {
                data: vec![1; 19],
                ..switch
            }
            .nonce()
            .is_err()
        );

        out.clear();
        write_auth_more(&mut out, &[crate::auth::FULL]);
        assert_eq!(AuthReply::read(&out, caps), Ok(AuthReply::More(&[4])));
        assert!(matches!(
            AuthReply::read(b"\0\0\0\x02\0\0\0", caps),
            Ok(AuthReply::Ok(_))
        ));
        assert!(matches!(
            AuthReply::read(b"\xff\x15\x04#28000no", caps),
            Ok(AuthReply::Err(_))
        ));
        assert_eq!(
            AuthReply::read(b"\x02plugin\0", caps),
            Ok(AuthReply::NextFactor)
        );
        assert!(AuthReply::read(b"", caps).is_err() && AuthReply::read(b"\x07", caps).is_err());
    }
}
