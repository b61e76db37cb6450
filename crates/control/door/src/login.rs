//! Who is it? The greeting, the client's proof, and a second chance with a plugin that both know.

use crate::conn::{Broken, Conn};
use crate::{Entry, Host, Refused};
use net::Credential;
use rt::Rt;
use wire::auth::{self, Nonce, Plugin};
use wire::caps::{self, Caps};
use wire::crypt;
use wire::errors;
use wire::handshake::{AuthSwitch, Greeting, Login, is_ssl_request, write_auth_more};
use wire::ok;
use wire::resultset::UTF8MB4;
use wire::status;

/// Capabilities that a door offers, besides TLS where there is a certificate. No compression, no
/// session tracking.
pub(crate) const OFFERED: Caps = caps::LONG_PASSWORD
    | caps::FOUND_ROWS
    | caps::LONG_FLAG
    | caps::CONNECT_WITH_DB
    | caps::IGNORE_SPACE
    | caps::PROTOCOL_41
    | caps::INTERACTIVE
    | caps::TRANSACTIONS
    | caps::RESERVED
    | caps::SECURE_CONNECTION
    | caps::MULTI_STATEMENTS
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS
    | caps::PLUGIN_AUTH
    | caps::CONNECT_ATTRS
    | caps::PLUGIN_AUTH_LENENC
    | caps::DEPRECATE_EOF;

/// A login is not longer than this: attributes have 64 KiB at most.
const LOGIN_BYTES_MAX: usize = 128 * 1024;

/// Somebody who has proven who he is, or has been told that he has not.
pub(crate) enum Outcome {
    In(Login),
    Refused,
}

/// Greets, and lets the client prove who it is. The final OK is not sent yet.
pub(crate) async fn greet<H: Host>(
    host: &H,
    conn: &mut Conn,
    id: u32,
    rt: &Rt,
) -> Result<Outcome, Broken> {
    let nonce = fresh(rt);
    let acceptor = host.acceptor();
    let files = if host.takes_files() {
        caps::LOCAL_FILES
    } else {
        0
    };
    let offered = OFFERED | files;
    let greeting = Greeting {
        server_version: host.server_version(),
        thread_id: id,
        scramble: nonce,
        caps: offered | if acceptor.is_some() { caps::SSL } else { 0 },
        charset: UTF8MB4 as u8,
        status: status::AUTOCOMMIT,
        auth_plugin: Plugin::MysqlNative.name().into(),
    };
    conn.send(|out| greeting.write(out)).await?;
    let mut payload = conn.payload(LOGIN_BYTES_MAX).await?;
    if is_ssl_request(&payload) {
        let Some(acceptor) = acceptor else {
            return refuse(
                conn,
                &Refused::new(errors::HANDSHAKE, "This port does not speak TLS"),
            )
            .await;
        };
        conn.accept_tls(&acceptor).await?;
        payload = conn.payload(LOGIN_BYTES_MAX).await?;
    }
    let mut login = match Login::read(&payload) {
        Ok(login) => login,
        Err(malformed) => {
            return refuse(
                conn,
                &Refused::new(errors::HANDSHAKE, malformed.to_string()),
            )
            .await;
        }
    };
    login.caps &= offered;
    let plugin = login.auth_plugin.clone();
    if prove(
        host,
        conn,
        &login.user,
        plugin.as_deref(),
        &login.auth_response,
        nonce,
        rt,
    )
    .await?
    {
        Ok(Outcome::In(login))
    } else {
        Ok(Outcome::Refused)
    }
}

/// Lets the client prove that it is `user`; if it cannot, it is told so.
pub(crate) async fn prove<H: Host>(
    host: &H,
    conn: &mut Conn,
    user: &str,
    plugin: Option<&str>,
    response: &[u8],
    nonce: Nonce,
    rt: &Rt,
) -> Result<bool, Broken> {
    let peer = conn.peer();
    let known_as = match host.entry(user, &peer) {
        Entry::User(credentials) => Some(credentials),
        Entry::Nobody => None,
        Entry::Refuse(refused) => {
            refuse(conn, &refused).await?;
            return Ok(false);
        }
    };
    // Nobody has a password that nobody knows: the exchange looks the same.
    let is_known = known_as.is_some();
    let unknown = || Credential::Clear(format!("{:x}{:x}", rt.random(), rt.random()));
    let wanted = known_as.unwrap_or_else(|| vec![unknown()]);
    let is_open = wanted.iter().any(|one| matches!(one, Credential::Empty));
    // Of that hash only the password itself can be compared.
    let is_hashed = |one: &Credential| matches!(one, Credential::CachingSha2(_));
    let in_clear = wanted.iter().any(is_hashed) && conn.is_tls();
    let known = Plugin::by_name(plugin.unwrap_or(Plugin::MysqlNative.name()));
    let mut given = response.to_vec();
    let mut right = known.is_some_and(|plugin| {
        wanted
            .iter()
            .any(|one| is_right(plugin, one, &nonce, &given))
    });
    let mut used = known.unwrap_or(Plugin::MysqlNative);
    if !right && !is_open && (in_clear || known.is_none() || given.len() != proof_len(used)) {
        // Its proof was for another plugin or another nonce: ask again, with a plugin that both
        // know.
        let only_native = |one: &Credential| matches!(one, Credential::Native(_));
        used = match known {
            _ if in_clear => Plugin::CachingSha2,
            Some(Plugin::CachingSha2) if !wanted.iter().all(only_native) => Plugin::CachingSha2,
            _ => Plugin::MysqlNative,
        };
        let nonce = fresh(rt);
        let switch = AuthSwitch {
            plugin: used.name().into(),
            data: nonce.to_vec(),
        };
        conn.send(|out| switch.write(out)).await?;
        given = conn.payload(LOGIN_BYTES_MAX).await?;
        if in_clear {
            conn.send(|out| write_auth_more(out, &[auth::FULL])).await?;
            given = conn.payload(LOGIN_BYTES_MAX).await?;
            used = Plugin::ClearPassword;
        }
        right = wanted.iter().any(|one| is_right(used, one, &nonce, &given));
    }
    if !right || !is_known {
        let host_name = peer
            .ip()
            .map_or_else(|| "localhost".to_owned(), |ip| ip.to_string());
        let using = if given.is_empty() { "NO" } else { "YES" };
        let words = format!(
            "{}Access denied for user '{user}'@'{host_name}' (using password: {using})",
            host.prefix()
        );
        refuse(conn, &Refused::new(errors::ACCESS_DENIED, words)).await?;
        return Ok(false);
    }
    if used == Plugin::CachingSha2 && !is_open {
        conn.send(|out| write_auth_more(out, &[auth::FAST_OK]))
            .await?;
    }
    Ok(true)
}

fn proof_len(plugin: Plugin) -> usize {
    match plugin {
        Plugin::MysqlNative => 20,
        Plugin::CachingSha2 => 32,
        Plugin::ClearPassword | Plugin::Sha256 | Plugin::Ed25519 => usize::MAX,
    }
}

fn is_right(plugin: Plugin, wanted: &Credential, nonce: &Nonce, given: &[u8]) -> bool {
    match (plugin, wanted) {
        // Some clients send a single zero for "none".
        (_, Credential::Empty) => matches!(given, [] | [0]),
        (Plugin::MysqlNative, Credential::Clear(password)) => {
            auth::native_verify(&auth::native_stage2(password.as_bytes()), nonce, given).is_some()
        }
        (Plugin::MysqlNative, Credential::Native(stage2)) => {
            auth::native_verify(stage2, nonce, given).is_some()
        }
        (Plugin::CachingSha2, Credential::Clear(password)) => {
            auth::sha2_verify(&auth::sha2_stage2(password.as_bytes()), nonce, given)
        }
        // It was asked for over TLS alone.
        (Plugin::ClearPassword, Credential::Clear(password)) => {
            auth::clear_password(given).is_some_and(|said| auth::same(said, password.as_bytes()))
        }
        (Plugin::ClearPassword, Credential::CachingSha2(stored)) => auth::clear_password(given)
            .is_some_and(|password| crypt::verify(stored.as_bytes(), password)),
        _ => false,
    }
}

async fn refuse(conn: &mut Conn, refused: &Refused) -> Result<Outcome, Broken> {
    let err = ok::Err {
        code: refused.code,
        state: refused.state,
        message: refused.message.as_bytes(),
    };
    conn.send(|out| err.write(out)).await?;
    Ok(Outcome::Refused)
}

pub(crate) fn fresh(rt: &Rt) -> Nonce {
    let mut random = [0; 20];
    for eight in random.chunks_mut(8) {
        eight.copy_from_slice(&rt.random().to_le_bytes()[..eight.len()]);
    }
    auth::nonce(random)
}
