//! Whether `CONNECTION_ID()` in a text is the session's number, which no server knows, or has to be
//! the number by which the server lists its connections.

use crate::words::{Kind, Token, unquote};
use crate::{Lexing, lists};

/// Number of a session, for where a text asks for it.
#[derive(Debug, Clone, Copy)]
pub struct OwnNumber {
    /// The number.
    pub number: u32,
    /// Place in the text: what stands before this byte keeps the server's number.
    pub from: usize,
}

/// Tables of `information_schema` that list connections by their numbers, beside those of InnoDB.
const TABLES: &[&[u8]] = &[b"processlist", b"metadata_lock_info"];
/// Functions that take or give such a number.
const FUNCTIONS: &[&str] = &["IS_USED_LOCK", "PS_THREAD_ID", "PS_CURRENT_THREAD_ID"];

/// From which byte on `CONNECTION_ID()` in this text is the session's own number; `None` if all of
/// it is about the server's: it compares it with what the server lists, explains a statement or
/// defines something that others use later. `schema`: the current one.
#[must_use]
pub fn own_number_from(sql: &[u8], lexing: Lexing, schema: &str) -> Option<usize> {
    if lexing.shifts() && !sql.is_ascii() || lexing.hides(sql) || lists::all_of(schema.as_bytes()) {
        return None;
    }
    let tokens = tokens_of(sql, lexing)?;
    let first = tokens.iter().position(|token| !token.is_sign(b'('))?;
    if tokens[first].is_any(&["SHOW", "EXPLAIN", "DESC", "DESCRIBE", "KILL"])
        || asks_the_server(&tokens, schema)
    {
        return None;
    }
    // A text that is made up on the server may be a KILL there.
    if tokens
        .iter()
        .any(|token| token.is_any(&["KILL", "PREPARE", "EXECUTE"]))
        && has_word(sql, b"kill")
    {
        return None;
    }
    if !tokens
        .iter()
        .any(|token| token.is_any(&["CREATE", "ALTER"]))
    {
        return Some(0);
    }
    // Of a definition only the rows that it begins with are of now.
    let mut head = tokens[first..].iter();
    let table = head.find(|token| !token.is_any(&["CREATE", "OR", "REPLACE", "TEMPORARY"]))?;
    let defines_once = tokens[first + 1..]
        .iter()
        .all(|token| !token.is_any(&["CREATE", "ALTER"]) && !token.is_sign(b';'));
    if !tokens[first].is("CREATE") || !table.is("TABLE") || !defines_once {
        return None;
    }
    head.find(|token| token.is("SELECT"))
        .map(|token| token.start)
}

/// The tokens of a text that may be written anew: of so many at most, each of which takes 32 bytes
/// meanwhile. `None` also if an executable comment is in it that servers read in different ways.
pub(crate) fn tokens_of(sql: &[u8], lexing: Lexing) -> Option<Vec<Token<'_>>> {
    const TOKENS_MAX: usize = 1_000_000;
    let mut words = lexing.words(sql);
    let tokens: Vec<Token<'_>> = words.by_ref().take(TOKENS_MAX + 1).collect();
    (tokens.len() <= TOKENS_MAX && !words.is_conditional()).then_some(tokens)
}

/// Whether these letters stand somewhere.
fn has_word(sql: &[u8], letters: &[u8]) -> bool {
    sql.windows(letters.len())
        .any(|some| some.eq_ignore_ascii_case(letters))
}

/// Whether it names what lists connections.
fn asks_the_server(tokens: &[Token<'_>], schema: &str) -> bool {
    tokens.iter().any(|token| token.is_any(FUNCTIONS)) || lists::named(tokens, schema, TABLES)
}

/// Returns what stands for the call or the variable that begins with this token, and the last
/// token. That is a value of its type and width, since the one that it decides between is still
/// there. Servers warn of it as ever. `sets`: the text is a SET.
pub(crate) fn own_number(
    tokens: &[Token<'_>],
    at: usize,
    own: OwnNumber,
    sets: bool,
) -> Option<(usize, String)> {
    let [first, rest @ ..] = tokens.get(at..)? else {
        return None;
    };
    if first.start < own.from {
        return None;
    }
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let is_named = |token: &Token<'_>, name: &str| {
        matches!(token.kind, Kind::Word | Kind::Name)
            && unquote(token.text).eq_ignore_ascii_case(name.as_bytes())
    };
    let (last, asked) = match rest {
        [open, close, ..]
            if is_named(first, "CONNECTION_ID") && open.is_sign(b'(') && close.is_sign(b')') =>
        {
            if before.is_some_and(|before| before.is_sign(b'.') || before.is_sign(b'@')) {
                return None;
            }
            (at + 2, "CONNECTION_ID()")
        }
        [other, name, ..]
            if first.is_sign(b'@') && other.is_sign(b'@') && is_named(name, THREAD) =>
        {
            (at + 2, VARIABLE)
        }
        [other, scope, dot, name, ..]
            if first.is_sign(b'@')
                && other.is_sign(b'@')
                && scope.is_any(&["SESSION", "LOCAL"])
                && dot.is_sign(b'.')
                && is_named(name, THREAD) =>
        {
            (at + 4, VARIABLE)
        }
        _ => return None,
    };
    let is_set = |next: &Token<'_>| next.is_sign(b'=') || next.is_sign(b':');
    if asked == VARIABLE && sets && tokens.get(last + 1).is_some_and(is_set) {
        return None;
    }
    Some((
        last,
        format!("IF(1,CAST({} AS UNSIGNED),{asked})", own.number),
    ))
}

/// The variable that `CONNECTION_ID()` is, unless a client sets it.
const THREAD: &str = "pseudo_thread_id";
const VARIABLE: &str = "@@pseudo_thread_id";

/// The text with the session's number wherever it asks for it, a column under the title that it
/// had; `None` if it does not.
#[must_use]
pub fn with_own_number(sql: &[u8], lexing: Lexing, own: OwnNumber) -> Option<Vec<u8>> {
    crate::with_counts(
        sql,
        lexing,
        crate::Counts {
            own: Some(own),
            ..crate::Counts::default()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(sql: &str) -> Option<String> {
        let from = own_number_from(sql.as_bytes(), Lexing::Escapes, "shop")?;
        let own = OwnNumber { number: 7, from };
        with_own_number(sql.as_bytes(), Lexing::Escapes, own)
            .map(|text| String::from_utf8(text).expect("it was text"))
    }

    #[test]
    fn the_sessions_number_stands_wherever_it_is_asked_for() {
        let seven = "IF(1,CAST(7 AS UNSIGNED),CONNECTION_ID())";
        let thread = "IF(1,CAST(7 AS UNSIGNED),@@pseudo_thread_id)";
        for (sql, wanted) in [
            (
                "SELECT CONNECTION_ID() + 0",
                format!("SELECT {seven} + 0 AS `CONNECTION_ID() + 0`"),
            ),
            (
                "SELECT CONNECTION_ID() = ? mine",
                format!("SELECT {seven} = ? mine"),
            ),
            (
                "select 1, connection_id ( ) me",
                format!("select 1, {seven} me"),
            ),
            (
                "SELECT @@pseudo_thread_id",
                format!("SELECT {thread} AS `@@pseudo_thread_id`"),
            ),
            (
                "SELECT @@session.Pseudo_Thread_Id x",
                format!("SELECT {thread} x"),
            ),
            (
                "INSERT INTO locks VALUES (1, CONNECTION_ID(), ?)",
                format!("INSERT INTO locks VALUES (1, {seven}, ?)"),
            ),
            (
                "INSERT INTO locks VALUES (1) RETURNING id, CONNECTION_ID()",
                format!("INSERT INTO locks VALUES (1) RETURNING id, {seven} AS `CONNECTION_ID()`"),
            ),
            (
                "UPDATE locks SET owner = CONNECTION_ID() WHERE owner IN (0, CONNECTION_ID())",
                format!("UPDATE locks SET owner = {seven} WHERE owner IN (0, {seven})"),
            ),
            (
                "SET @x = CONNECTION_ID(), @y = @@pseudo_thread_id",
                format!("SET @x = {seven}, @y = {thread}"),
            ),
            (
                "SET @@pseudo_thread_id = CONNECTION_ID()",
                format!("SET @@pseudo_thread_id = {seven}"),
            ),
            ("CALL p(CONNECTION_ID())", format!("CALL p({seven})")),
            (
                "SELECT CONNECTION_ID(), table_name FROM information_schema.tables",
                format!(
                    "SELECT {seven} AS `CONNECTION_ID()`, table_name FROM information_schema.tables"
                ),
            ),
            (
                "CREATE TABLE t (a INT DEFAULT (CONNECTION_ID())) SELECT CONNECTION_ID() AS b",
                format!("CREATE TABLE t (a INT DEFAULT (CONNECTION_ID())) SELECT {seven} AS b"),
            ),
            (
                "CREATE TEMPORARY TABLE t AS SELECT CONNECTION_ID() AS b",
                format!("CREATE TEMPORARY TABLE t AS SELECT {seven} AS b"),
            ),
            (
                "SELECT 1; SELECT CONNECTION_ID() a",
                format!("SELECT 1; SELECT {seven} a"),
            ),
            (
                "DELETE l FROM locks l JOIN systems sys ON sys.id = l.system WHERE l.owner = CONNECTION_ID()",
                format!(
                    "DELETE l FROM locks l JOIN systems sys ON sys.id = l.system WHERE l.owner = {seven}"
                ),
            ),
            (
                "UPDATE sys SET sys.a = 1 WHERE sys.owner = CONNECTION_ID()",
                format!("UPDATE sys SET sys.a = 1 WHERE sys.owner = {seven}"),
            ),
            (
                "INSERT INTO sys VALUES (1) ON DUPLICATE KEY UPDATE sys.owner = CONNECTION_ID()",
                format!("INSERT INTO sys VALUES (1) ON DUPLICATE KEY UPDATE sys.owner = {seven}"),
            ),
            (
                "UPDATE t SET returning = CONNECTION_ID()",
                format!("UPDATE t SET returning = {seven}"),
            ),
            (
                "SELECT returning + CONNECTION_ID()",
                format!("SELECT returning + {seven} AS `returning + CONNECTION_ID()`"),
            ),
            (
                "SELECT returning, CONNECTION_ID() n",
                format!("SELECT returning, {seven} n"),
            ),
            (
                "INSERT INTO t (returning) VALUES (CONNECTION_ID())",
                format!("INSERT INTO t (returning) VALUES ({seven})"),
            ),
            (
                "SELECT t.returning, CONNECTION_ID()",
                format!("SELECT t.returning, {seven} AS `CONNECTION_ID()`"),
            ),
            (
                "SELECT a FROM t ORDER BY returning, CONNECTION_ID()",
                format!("SELECT a FROM t ORDER BY returning, {seven}"),
            ),
            (
                "DELETE FROM t WHERE a = 1 RETURNING (CONNECTION_ID())",
                format!("DELETE FROM t WHERE a = 1 RETURNING ({seven}) AS `(CONNECTION_ID())`"),
            ),
        ] {
            assert_eq!(replaced(sql).as_deref(), Some(&*wanted), "{sql}");
        }
    }

    #[test]
    fn what_the_server_lists_is_compared_with_its_own_number() {
        for sql in [
            "SELECT * FROM information_schema.processlist WHERE id = CONNECTION_ID()",
            "SELECT * FROM `information_schema` . `PROCESSLIST` WHERE id = CONNECTION_ID()",
            "SELECT trx_id FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()",
            "SELECT thread_id FROM performance_schema.threads WHERE processlist_id = CONNECTION_ID()",
            "SELECT * FROM sys.session WHERE conn_id = CONNECTION_ID()",
            "SELECT * FROM mysql.general_log WHERE thread_id = CONNECTION_ID()",
            "SELECT * FROM t, sys.session WHERE conn_id = CONNECTION_ID()",
            "SELECT * FROM sys.session sys WHERE sys.conn_id = CONNECTION_ID()",
            "SELECT sys.ps_is_account_enabled(sys, 'x'), CONNECTION_ID() FROM t sys",
            "SELECT IS_USED_LOCK('a') = CONNECTION_ID()",
            "SELECT PS_THREAD_ID(CONNECTION_ID())",
            "SHOW STATUS WHERE CONNECTION_ID() > 0",
            "EXPLAIN SELECT * FROM t WHERE id = CONNECTION_ID()",
            "KILL CONNECTION_ID()",
            "BEGIN NOT ATOMIC KILL QUERY CONNECTION_ID(); END",
            "EXECUTE IMMEDIATE CONCAT('KILL ', CONNECTION_ID())",
            "CREATE VIEW v AS SELECT CONNECTION_ID()",
            "CREATE TABLE t (a INT DEFAULT (CONNECTION_ID()))",
            "ALTER TABLE t ADD b INT DEFAULT (CONNECTION_ID())",
            "CREATE PROCEDURE p() SELECT CONNECTION_ID()",
            "CREATE TABLE t SELECT 1; CREATE VIEW v AS SELECT CONNECTION_ID()",
            "BEGIN NOT ATOMIC CREATE VIEW v AS SELECT CONNECTION_ID(); END",
            "SELECT shop.connection_id(), @connection_id(), 'CONNECTION_ID()', connection_id FROM t",
            "SELECT @@global.pseudo_thread_id",
            "SET @@session.pseudo_thread_id = 7",
            "SET @@pseudo_thread_id := 7",
        ] {
            assert_eq!(replaced(sql), None, "{sql}");
        }
        for schema in ["performance_schema", "SYS", "mysql"] {
            assert_eq!(
                own_number_from(
                    b"SELECT * FROM threads WHERE id = CONNECTION_ID()",
                    Lexing::Escapes,
                    schema
                ),
                None
            );
        }
        let listed = |sql: &[u8]| own_number_from(sql, Lexing::Escapes, "information_schema");
        assert_eq!(
            listed(b"SELECT * FROM processlist WHERE id = CONNECTION_ID()"),
            None
        );
        assert_eq!(listed(b"SELECT CONNECTION_ID() FROM tables"), Some(0));
    }
}
