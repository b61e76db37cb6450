//! A login at a server: what we say there, and what its refusal is about.

use crate::failure::BackendFailed;
use crate::session::key::OF_CLIENT;
use crate::session::want::{Like, Want};
use config::{Server, Variables};
use net::tls::Connector;
use net::{Account, Compression, Refused, Secret};
use wire::connect_attributes::ConnectAttributes;
use wire::frame::Algorithm;
use wire::{caps, errors};

/// Capabilities that every connection of ours has, if the server does.
const ALWAYS: caps::Caps = caps::LONG_PASSWORD
    | caps::LONG_FLAG
    | caps::PROTOCOL_41
    | caps::TRANSACTIONS
    | caps::SECURE_CONNECTION
    | caps::PLUGIN_AUTH
    | caps::PLUGIN_AUTH_LENENC
    | caps::SESSION_TRACK
    | caps::DEPRECATE_EOF
    | caps::QUERY_ATTRIBUTES
    | caps::MARIADB_BULK
    | caps::MARIADB_EXTENDED_TYPES;

/// Attributes that a connection sends for a client that has sent none.
pub(crate) const UNNAMED: &[(&str, &str)] =
    &[("_client_name", "millrace"), ("program_name", "millrace")];

/// Why an attempt failed.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// Another try, or another server, may do.
    Again(String),
    /// Nobody was reached at that address: another of the server's may do.
    Unreached(String),
    /// The server is well and takes no more connections, of anybody or of this account: those that
    /// are open go on, and one of them may serve.
    Full {
        /// Nobody else's either.
        of_all: bool,
        why: String,
    },
    /// This machine has no more of what a connection needs. It says nothing of any server.
    Lacking(String),
    /// Nobody will do better: tell the client.
    Final(BackendFailed),
}

/// Who we say we are, and for whom.
pub(crate) fn attributes_of(want: &Want<'_>) -> ConnectAttributes {
    let id = want.session.to_string();
    let own = [("millrace_session_id", id.as_str())];
    let own = if want.session == 0 { &[][..] } else { &own };
    want.attributes.with(own, UNNAMED)
}

/// As whom to log in, and how.
pub(crate) fn account<'a>(
    want: &Want<'a>,
    secret: &'a Secret,
    attributes: &'a ConnectAttributes,
    server: &'a Server,
    tls: Option<&'a Connector>,
) -> Account<'a> {
    Account {
        user: want.user,
        secret,
        database: want.like.and_then(|like| like.database),
        caps: want
            .like
            .map_or(ALWAYS | (want.caps & OF_CLIENT), Like::caps),
        charset: at_login(want.collation),
        attributes,
        compression: server
            .compression
            .then(|| compression(&want.snapshot.variables)),
        tls,
        host: &server.hostname,
        never_in_clear: false,
    }
}

/// The collation that a login asks for. It has one byte for it; with 0 the server's own is what
/// comes of it, as of any that it does not know.
fn at_login(collation: u16) -> u16 {
    if collation > 255 { 0 } else { collation }
}

/// To servers with `compression = 1`.
fn compression(v: &Variables) -> Compression {
    Compression {
        algorithm: if *v.mysql_server_compression_algorithm == *Algorithm::Zstd.name() {
            Algorithm::Zstd
        } else {
            Algorithm::Zlib
        },
        zlib_level: i32::try_from(v.mysql_protocol_compression_level).unwrap_or(i32::MAX),
        zstd_level: u8::try_from(v.mysql_server_compression_zstd_level).unwrap_or(u8::MAX),
    }
}

/// Whom a server's refusal is about: this login, all of them now, or the server.
pub(crate) fn of_refusal(refused: Refused) -> Attempt {
    match refused {
        Refused::Server {
            code,
            state,
            message,
        } => match code {
            // Full: the server (max_connections), or this account (max_user_connections,
            // MAX_CONNECTIONS_PER_HOUR).
            1040 | 1203 | 1226 => Attempt::Full {
                of_all: code == 1040,
                why: format!("error {code}: {message}"),
            },
            // Out of memory or threads, shutting down, blocked, or in offline_mode: another
            // server may do.
            1041 | 1053 | 1129 | 1135 | 3032 => Attempt::Again(format!("error {code}: {message}")),
            _ => Attempt::Final(BackendFailed::Refused {
                code,
                state,
                message,
            }),
        },
        // No numbers of the client libraries' own: MariaDB's would tell of a malformed packet
        // instead.
        Refused::Impossible(what) => refused_by_us(errors::NOT_SUPPORTED_AUTH_MODE, what),
        refused @ Refused::NoTls => {
            refused_by_us(errors::SECURE_TRANSPORT_REQUIRED, refused.to_string())
        }
        Refused::Net(error) => Attempt::Again(error.to_string()),
    }
}

pub(crate) fn refused_by_us(code: errors::Code, message: String) -> Attempt {
    let state = code.state.as_bytes().try_into().unwrap_or(*b"HY000");
    Attempt::Final(BackendFailed::Refused {
        code: code.number,
        state,
        message,
    })
}
