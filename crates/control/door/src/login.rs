//! Who is it? The greeting, the client's proof, and a second chance with a plugin that both know.

use crate::conn::{Broken, Conn};
use crate::{Entry, Host, Refused};
use rt::Rt;
use wire::auth::{self, Nonce, Plugin};
use wire::caps::{self, Caps};
use wire::errors;
use wire::handshake::{AuthSwitch, Greeting, Login, is_ssl_request, write_auth_more};
use wire::ok;
use wire::resultset::UTF8MB4;
use wire::status;

/// What a door offers, besides TLS where there is a certificate. No compression, no session
/// tracking.
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
    let greeting = Greeting {
        server_version: host.server_version(),
        thread_id: id,
        scramble: nonce,
        caps: OFFERED | if acceptor.is_some() { caps::SSL } else { 0 },
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
    login.caps &= OFFERED;
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
    let password = match host.entry(user, &peer) {
        Entry::Password(password) => Some(password),
        Entry::Nobody => None,
        Entry::Refuse(refused) => {
            refuse(conn, &refused).await?;
            return Ok(false);
        }
    };
    // Nobody has a password that nobody knows: the exchange looks the same.
    let wanted = password
        .clone()
        .unwrap_or_else(|| format!("{:x}{:x}", rt.random(), rt.random()));
    let known = Plugin::by_name(plugin.unwrap_or(Plugin::MysqlNative.name()));
    let mut given = response.to_vec();
    let mut right = known.is_some_and(|plugin| is_right(plugin, &wanted, &nonce, &given));
    let mut used = known.unwrap_or(Plugin::MysqlNative);
    if !right && !wanted.is_empty() && (known.is_none() || given.len() != proof_len(used)) {
        // Its proof was for another plugin or another nonce: ask again, with a plugin that both
        // know.
        used = if known == Some(Plugin::CachingSha2) {
            Plugin::CachingSha2
        } else {
            Plugin::MysqlNative
        };
        let nonce = fresh(rt);
        let switch = AuthSwitch {
            plugin: used.name().into(),
            data: nonce.to_vec(),
        };
        conn.send(|out| switch.write(out)).await?;
        given = conn.payload(LOGIN_BYTES_MAX).await?;
        right = is_right(used, &wanted, &nonce, &given);
    }
    if !right || password.is_none() {
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
    if used == Plugin::CachingSha2 && !wanted.is_empty() {
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

fn is_right(plugin: Plugin, password: &str, nonce: &Nonce, given: &[u8]) -> bool {
    if password.is_empty() {
        // Some clients send a single zero for "none".
        return matches!(given, [] | [0]);
    }
    match plugin {
        Plugin::MysqlNative => {
            auth::native_verify(&auth::native_stage2(password.as_bytes()), nonce, given).is_some()
        }
        Plugin::CachingSha2 => {
            auth::sha2_verify(&auth::sha2_stage2(password.as_bytes()), nonce, given)
        }
        // The password itself is not asked for on a port without TLS.
        Plugin::ClearPassword | Plugin::Sha256 | Plugin::Ed25519 => false,
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
