//! Tables in which a server lists what it knows of itself.

use crate::Lexing;
use crate::words::{Kind, Token, unquote};
use std::borrow::Cow;

/// Schemas of which all is such.
const LISTS: &[&[u8]] = &[b"performance_schema", b"sys", b"mysql"];

/// Tables of `information_schema` in which servers differ from their replicas, beside those of
/// InnoDB.
const OF_SERVERS: &[&[u8]] = &[
    b"processlist",
    b"metadata_lock_info",
    b"global_variables",
    b"session_variables",
    b"system_variables",
    b"global_status",
    b"session_status",
    b"slave_status",
    b"user_statistics",
    b"client_statistics",
    b"table_statistics",
    b"index_statistics",
    b"thread_pool_stats",
    b"wsrep_membership",
    b"wsrep_status",
];

/// Whether a text reads what a server lists of itself: its variables, clients, locks, positions.
/// `schema`: the current one.
#[must_use]
pub fn reads_lists(sql: &[u8], lexing: Lexing, schema: &str) -> bool {
    let is_there = schema.eq_ignore_ascii_case("information_schema");
    if all_of(schema.as_bytes()) {
        return true;
    }
    // Most texts have no dot behind such a name.
    let may_name = |dot: usize| {
        let before = sql[..dot].trim_ascii_end();
        let before = before
            .strip_suffix(b"`")
            .or_else(|| before.strip_suffix(b"\""))
            .unwrap_or(before);
        let ends = |name: &[u8]| {
            before.len() >= name.len()
                && before[before.len() - name.len()..].eq_ignore_ascii_case(name)
        };
        ends(b"information_schema")
            || LISTS.iter().any(|list| ends(list))
            || before.ends_with(b"*/")
    };
    if !is_there && !memchr::memchr_iter(b'.', sql).any(may_name) {
        return false;
    }
    let tokens: Vec<Token<'_>> = lexing.words(sql).collect();
    named(&tokens, schema, OF_SERVERS)
}

/// Whether a schema has nothing but such tables.
pub(crate) fn all_of(schema: &[u8]) -> bool {
    LISTS.iter().any(|name| schema.eq_ignore_ascii_case(name))
}

fn name<'a>(token: &Token<'a>) -> Option<Cow<'a, [u8]>> {
    matches!(token.kind, Kind::Word | Kind::Name).then(|| unquote(token.text))
}

/// Which of [`LISTS`] stand alone somewhere, as the name of a table or its alias would: not before
/// a dot nor behind one.
fn standing_alone(tokens: &[Token<'_>]) -> Vec<bool> {
    let sign = |at: Option<usize>, signs: &[u8]| {
        at.and_then(|at| tokens.get(at))
            .is_some_and(|token| signs.iter().any(|sign| token.is_sign(*sign)))
    };
    let mut alone = vec![false; LISTS.len()];
    for (at, token) in tokens.iter().enumerate() {
        if let Some(name) = name(token)
            && let Some(which) = LISTS
                .iter()
                .position(|list| name.eq_ignore_ascii_case(list))
            && !sign(Some(at + 1), b".")
            && !sign(at.checked_sub(1), b".@")
        {
            alone[which] = true;
        }
    }
    alone
}

/// Whether the name of a schema that is followed by a dot is that, and not a table's, or its alias
/// in this text: `alone`, [`standing_alone`].
fn is_schema(tokens: &[Token<'_>], at: usize, alone: bool) -> bool {
    const OF_TABLES: &[&str] = &[
        "FROM",
        "JOIN",
        "STRAIGHT_JOIN",
        "INTO",
        "UPDATE",
        "TABLE",
        "TABLES",
        "CALL",
    ];
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let of_tables = |before: &Token<'_>| {
        before.is_any(OF_TABLES) && !at.checked_sub(2).is_some_and(|key| tokens[key].is("KEY"))
    };
    // A routine's, or a column's of its table.
    let goes_on = tokens
        .get(at + 3)
        .is_some_and(|next| next.is_sign(b'(') || next.is_sign(b'.'));
    before.is_some_and(of_tables) || goes_on || !alone
}

/// Whether a text names a table of such a schema, or one of `information_schema` that is among
/// `tables` (in lower case) or begins with `INNODB_`. `schema`: the current one.
pub(crate) fn named(tokens: &[Token<'_>], schema: &str, tables: &[&[u8]]) -> bool {
    let of_information = schema.eq_ignore_ascii_case("information_schema");
    let alone = standing_alone(tokens);
    tokens.iter().enumerate().any(|(at, token)| {
        let dotted = tokens.get(at + 1).is_some_and(|next| next.is_sign(b'.'));
        // Behind a string there is no dot, unless ANSI_QUOTES make a name of it.
        let quoted =
            || Some(unquote(token.text)).filter(|_| dotted && token.text.starts_with(b"\""));
        let Some(name_here) = name(token).or_else(quoted) else {
            return false;
        };
        let list = LISTS
            .iter()
            .position(|list| name_here.eq_ignore_ascii_case(list));
        if dotted && list.is_some_and(|list| is_schema(tokens, at, alone[list])) {
            return true;
        }
        let table = if dotted && name_here.eq_ignore_ascii_case(b"information_schema") {
            tokens.get(at + 2).and_then(name)
        } else {
            Some(name_here).filter(|_| of_information)
        };
        table.is_some_and(|table| {
            let begins = table
                .get(..7)
                .is_some_and(|begin| begin.eq_ignore_ascii_case(b"innodb_"));
            begins || tables.iter().any(|known| table.eq_ignore_ascii_case(known))
        })
    })
}
