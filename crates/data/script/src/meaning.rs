//! Facts of a statement's text that scripts may ask for.

use sql::tables_mentioned;
use sql::{DigestOptions, Lexing};

/// How the session's texts are read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Of the statistics.
    pub digest: DigestOptions,
    /// Where strings end.
    pub lexing: Lexing,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            digest: DigestOptions::default(),
            lexing: Lexing::Escapes,
        }
    }
}

/// A text as it is known to rules and statistics.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// `select`, `create_table`: a row of `stats_mysql_commands_counters`, in small letters.
    pub(crate) kind: String,
    /// Of `stats_mysql_query_digest`.
    pub(crate) digest: String,
    pub(crate) digest_text: Vec<u8>,
    /// Tables, with their schemas where they are written; each once, and perhaps something that is none.
    pub(crate) tables: Vec<Vec<u8>>,
}

impl Meaning {
    pub(crate) fn of(text: &[u8], reading: Reading) -> Self {
        let mut digest_text = Vec::new();
        let hash = sql::digest(text, &reading.digest, &mut digest_text);
        let mut tables = Vec::new();
        tables_mentioned(text, reading.lexing, |schema, name| {
            let whole = match schema {
                Some(schema) => [schema, b".", name].concat(),
                None => name.to_vec(),
            };
            if !tables.contains(&whole) {
                tables.push(whole);
            }
        });
        Self {
            kind: reading
                .lexing
                .class(text)
                .command
                .name()
                .to_ascii_lowercase(),
            digest: format!("0x{hash:016X}"),
            digest_text,
            tables,
        }
    }
}

/// Name of a collation's character set, for a text that could be read in two ways; none where a
/// backslash or a quote may be a part of a character.
///
/// <https://mariadb.com/kb/en/supported-character-sets-and-collations/>
#[must_use]
pub const fn charset(collation: u16) -> Option<&'static str> {
    Some(match collation {
        45 | 46 | 224..=247 | 255..=323 | 576..=607 | 2304..=2559 => "utf8mb4",
        33 | 76 | 83 | 192..=215 | 223 | 2048..=2303 => "utf8",
        5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => "latin1",
        11 | 65 => "ascii",
        63 => "binary",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_as_statistics_know_it() {
        let of = |text: &str| Meaning::of(text.as_bytes(), Reading::default());
        let select = of("SELECT a FROM t JOIN x.u WHERE a = 1 AND b IN (SELECT c FROM t)");
        assert_eq!(select.kind, "select");
        assert_eq!(select.tables, [b"t".to_vec(), b"x.u".to_vec()]);
        assert_eq!(
            String::from_utf8_lossy(&select.digest_text),
            "SELECT a FROM t JOIN x.u WHERE a = ? AND b IN (SELECT c FROM t)"
        );
        assert_eq!(select.digest.len(), 18);
        assert_eq!(of("create table t (a int)").kind, "create_table");
        assert_eq!(of("nonsense").kind, "unknown");
    }
}
