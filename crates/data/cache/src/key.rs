//! The key: everything that could change a byte of the answer, each part with its length, so that
//! no two questions share one.

use std::net::IpAddr;
use wire::caps::{self, Caps};

/// Capabilities that change nothing of a result's packets, or only its EOFs, the byte that says
/// whether columns are described and the types that are told of them, which an entry has in all
/// forms. All others are a part of the
/// key, also those that nobody knows yet. Who wants no definitions has set a variable, which is in
/// the key.
const WITHOUT_EFFECT: Caps = caps::LONG_PASSWORD
    | caps::CONNECT_WITH_DB
    | caps::COMPRESS
    | caps::ODBC
    | caps::LOCAL_FILES
    | caps::INTERACTIVE
    | caps::SSL
    | caps::IGNORE_SIGPIPE
    | caps::TRANSACTIONS
    | caps::RESERVED
    | caps::SECURE_CONNECTION
    | caps::PLUGIN_AUTH
    | caps::CONNECT_ATTRS
    | caps::PLUGIN_AUTH_LENENC
    | caps::EXPIRED_PASSWORDS
    | caps::SESSION_TRACK
    | caps::DEPRECATE_EOF
    | caps::OPTIONAL_METADATA
    | caps::MARIADB_CACHE_METADATA
    | caps::MARIADB_EXTENDED_TYPES
    | caps::ZSTD
    | caps::MULTI_FACTOR
    | caps::SSL_VERIFY_SERVER_CERT
    | caps::REMEMBER_OPTIONS
    // What these allow is never kept, or is in the key by itself: several statements, several
    // results, attributes, bulk executions.
    | caps::MULTI_STATEMENTS
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS
    | caps::QUERY_ATTRIBUTES
    | caps::MARIADB_BULK
    | caps::MARIADB_BULK_UNIT_RESULTS;

/// In the first byte: binary rows.
const BINARY: u8 = 1;
/// In the first byte: there are query attributes.
const ATTRIBUTES: u8 = 2;
/// In the first byte: it is for clients of one address.
const CLIENT: u8 = 4;

/// The character set of a session, as its state has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset<'a> {
    /// Collation of the login.
    Collation(u16),
    /// Words that follow SET, as written.
    Written(&'a str),
}

/// Parts of a prepared statement's execution besides its text.
#[derive(Debug, Clone, Copy)]
pub struct Binary<'a> {
    /// The schema in which it was prepared: its names were resolved there.
    pub schema: &'a str,
    /// COM_STMT_EXECUTE from the flags on: types and values of the parameters.
    pub params: &'a [u8],
}

/// Who asks what, and how.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// User.
    pub user: &'a str,
    /// Current schema; empty for none.
    pub schema: &'a str,
    /// Where it would be sent: other servers may have other rows.
    pub hostgroup: u32,
    /// Of the client.
    pub caps: Caps,
    /// Character set.
    pub charset: Charset<'a>,
    /// The text that would be sent, without comments before and behind it that mean nothing.
    pub text: &'a [u8],
    /// For a prepared statement.
    pub binary: Option<Binary<'a>>,
    /// Query attributes, as far as an answer may depend on them.
    pub attributes: &'a [u8],
    /// Where the client is, if servers are told: to them it is another account, perhaps with other
    /// rights.
    pub client: Option<IpAddr>,
}

impl Question<'_> {
    /// Appends the key. `variables`: what the client has set, by name in a fixed order; `long`:
    /// parameters that came as long data.
    pub fn write<'v>(
        &self,
        variables: impl Iterator<Item = (&'v str, &'v str)>,
        long: impl Iterator<Item = (u16, &'v [u8])>,
        out: &mut Vec<u8>,
    ) {
        let binary = if self.binary.is_some() { BINARY } else { 0 };
        let attributes = if self.attributes.is_empty() {
            0
        } else {
            ATTRIBUTES
        };
        out.push(binary | attributes | if self.client.is_some() { CLIENT } else { 0 });
        out.extend_from_slice(&self.hostgroup.to_le_bytes());
        part(out, self.user.as_bytes());
        part(out, self.schema.as_bytes());
        part(out, self.text);
        out.extend_from_slice(&(self.caps & !WITHOUT_EFFECT).to_le_bytes());
        match self.charset {
            Charset::Collation(id) => {
                out.push(0);
                out.extend_from_slice(&id.to_le_bytes());
            }
            Charset::Written(words) => {
                out.push(1);
                part(out, words.as_bytes());
            }
        }
        if let Some(Binary { schema, params }) = self.binary {
            part(out, schema.as_bytes());
            part(out, params);
            for (param, data) in long {
                out.push(1);
                out.extend_from_slice(&param.to_le_bytes());
                part(out, data);
            }
            out.push(0);
        }
        if !self.attributes.is_empty() {
            part(out, self.attributes);
        }
        match self.client {
            Some(IpAddr::V4(ip)) => part(out, &ip.octets()),
            Some(IpAddr::V6(ip)) => part(out, &ip.octets()),
            None => {}
        }
        // The rest is variables, in pairs.
        for (name, value) in variables {
            part(out, name.as_bytes());
            part(out, value.as_bytes());
        }
    }
}

/// Its length and then its bytes: where one part ends and the next begins is never a question of
/// what is in them.
fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Contents of a key, for those who list the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<'a> {
    /// User.
    pub user: &'a [u8],
    /// Schema.
    pub schema: &'a [u8],
    /// Hostgroup.
    pub hostgroup: u32,
    /// A prepared statement's binary rows.
    pub binary: bool,
    /// Text.
    pub text: &'a [u8],
}

impl<'a> Read<'a> {
    /// Reads the first parts of a key that [`Question::write`] made.
    #[must_use]
    pub fn of(key: &'a [u8]) -> Option<Self> {
        let (&flags, key) = key.split_first()?;
        let (hostgroup, key) = key.split_first_chunk::<4>()?;
        let (user, key) = take(key)?;
        let (schema, key) = take(key)?;
        let (text, _) = take(key)?;
        Some(Self {
            user,
            schema,
            hostgroup: u32::from_le_bytes(*hostgroup),
            binary: flags & BINARY != 0,
            text,
        })
    }
}

fn take(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = key.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Question<'static> = Question {
        user: "ann",
        schema: "shop",
        hostgroup: 1,
        caps: caps::PROTOCOL_41,
        charset: Charset::Collation(45),
        text: b"SELECT 1",
        binary: None,
        attributes: b"",
        client: None,
    };

    fn key(question: Question<'_>, variables: &[(&str, &str)], long: &[(u16, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        question.write(variables.iter().copied(), long.iter().copied(), &mut out);
        out
    }

    #[test]
    fn no_two_questions_share_a_key() {
        let execute = |schema, params| Question {
            binary: Some(Binary { schema, params }),
            ..PLAIN
        };
        let keys = [
            key(PLAIN, &[], &[]),
            key(
                Question {
                    user: "bob",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    schema: "shop2",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    schema: "",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    hostgroup: 2,
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    caps: caps::PROTOCOL_41 | caps::FOUND_ROWS,
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    caps: caps::PROTOCOL_41 | caps::IGNORE_SPACE,
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    caps: caps::PROTOCOL_41 | caps::NO_SCHEMA,
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    caps: caps::PROTOCOL_41 | caps::MARIADB_PROGRESS,
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    caps: caps::PROTOCOL_41 | 1 << 60,
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    charset: Charset::Collation(8),
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    charset: Charset::Written("NAMES utf8mb4"),
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    charset: Charset::Written("NAMES latin1"),
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    text: b"SELECT 2",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    text: b"select 1",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(PLAIN, &[("sql_mode", "'ANSI'")], &[]),
            key(PLAIN, &[("sql_mode", "''")], &[]),
            key(PLAIN, &[("time_zone", "''")], &[]),
            key(PLAIN, &[("resultset_metadata", "NONE")], &[]),
            key(
                Question {
                    attributes: b"a",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    attributes: b"b",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(PLAIN, &[("sql_mode", "''"), ("time_zone", "'+01:00'")], &[]),
            key(
                Question {
                    client: Some([10, 1, 0, 1].into()),
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    client: Some([10, 2, 0, 1].into()),
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    client: Some([0; 16].into()),
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(
                Question {
                    client: Some([10, 1, 0, 1].into()),
                    attributes: b"a",
                    ..PLAIN
                },
                &[],
                &[],
            ),
            key(execute("shop", b""), &[], &[]),
            key(execute("other", b""), &[], &[]),
            key(execute("shop", b"\x00\x01\x03\x00\x2a"), &[], &[]),
            key(execute("shop", b"\x00\x01\x03\x00\x2b"), &[], &[]),
            key(execute("shop", b""), &[], &[(0, b"a")]),
            key(execute("shop", b""), &[], &[(1, b"a")]),
            key(execute("shop", b""), &[], &[(0, b"a"), (1, b"")]),
            key(execute("shop", b""), &[("sql_mode", "''")], &[]),
        ];
        let mut sorted = keys.to_vec();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), keys.len());
    }

    #[test]
    fn bytes_that_move_from_one_part_to_the_next_are_another_key() {
        let a = key(
            Question {
                user: "an",
                schema: "nshop",
                ..PLAIN
            },
            &[],
            &[],
        );
        let b = key(
            Question {
                user: "ann",
                schema: "shop",
                ..PLAIN
            },
            &[],
            &[],
        );
        let c = key(PLAIN, &[("a", "bc")], &[]);
        let d = key(PLAIN, &[("ab", "c")], &[]);
        assert_ne!(a, b);
        assert_ne!(c, d);
        // What a client sends as text can not pass for the parts behind it.
        let tail = &key(PLAIN, &[("a", "b")], &[])[key(PLAIN, &[], &[]).len()..];
        let text = [PLAIN.text, tail].concat();
        assert_ne!(
            key(
                Question {
                    text: &text,
                    ..PLAIN
                },
                &[],
                &[]
            ),
            key(PLAIN, &[("a", "b")], &[])
        );
    }

    #[test]
    fn both_eof_forms_and_tls_share_a_key() {
        let more = caps::OPTIONAL_METADATA
            | caps::MARIADB_CACHE_METADATA
            | caps::MARIADB_EXTENDED_TYPES
            | caps::DEPRECATE_EOF
            | caps::SESSION_TRACK
            | caps::SSL
            | caps::CONNECT_ATTRS
            | caps::MULTI_STATEMENTS;
        assert_eq!(
            key(
                Question {
                    caps: caps::PROTOCOL_41 | more,
                    ..PLAIN
                },
                &[],
                &[]
            ),
            key(PLAIN, &[], &[])
        );
    }

    #[test]
    fn a_key_can_be_read_and_rubbish_cannot() {
        let key = key(PLAIN, &[("a", "b")], &[]);
        let read = Read {
            user: b"ann",
            schema: b"shop",
            hostgroup: 1,
            binary: false,
            text: b"SELECT 1",
        };
        assert_eq!(Read::of(&key), Some(read));
        for cut in 0..key.len().min(40) {
            let _ = Read::of(&key[..cut]);
        }
        assert_eq!(
            Read::of(&[
                0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF
            ]),
            None
        );
    }
}
