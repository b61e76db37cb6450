//! Statements as ClickHouse reads them: where quotes and comments end, and values in the place of `?`.

use std::borrow::Cow;
use wire::execute::Value;

/// Character sets before a text of MySQL's whose bytes are those of ClickHouse's text. Drivers write the
/// first of them before bytes that they put into a statement.
const INTRODUCERS: &[&str] = &["_binary", "_utf8mb4", "_utf8mb3", "_utf8", "_ascii"];

/// Kind of what is at a place of a statement, and how long it is.
enum Piece {
    /// Quoted, or a comment.
    Hidden(usize),
    /// Anything else: one byte.
    Byte(u8),
}

fn piece(sql: &[u8], at: usize) -> Piece {
    let rest = &sql[at..];
    let until = |end: &[u8], from: usize| {
        let found = rest[from.min(rest.len())..]
            .windows(end.len())
            .position(|window| window == end);
        found.map_or(rest.len(), |found| from + found + end.len())
    };
    match rest[0] {
        quote @ (b'\'' | b'"' | b'`') => Piece::Hidden(quoted_len(rest, quote)),
        b'-' if rest.starts_with(b"--") => Piece::Hidden(until(b"\n", 2)),
        b'/' if rest.starts_with(b"/*") => Piece::Hidden(until(b"*/", 2)),
        byte => Piece::Byte(byte),
    }
}

/// Bytes of what is quoted at the beginning of a text, with its quotes.
pub(crate) fn quoted_len(rest: &[u8], quote: u8) -> usize {
    let mut end = 1;
    while end < rest.len() && rest[end] != quote {
        end += if rest[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(rest.len())
}

/// Calls with the place of every byte that is neither quoted nor a comment.
fn bare(sql: &[u8], mut each: impl FnMut(usize, u8)) {
    let mut at = 0;
    while at < sql.len() {
        at += match piece(sql, at) {
            Piece::Hidden(len) => len,
            Piece::Byte(byte) => {
                each(at, byte);
                1
            }
        };
    }
}

/// The statements of a text.
pub(crate) fn statements(sql: &[u8]) -> Vec<&[u8]> {
    let (mut found, mut from) = (Vec::new(), 0);
    bare(sql, |at, byte| {
        if byte == b';' {
            found.push(&sql[from..at]);
            from = at + 1;
        }
    });
    found.push(&sql[from..]);
    found.retain(|statement| !is_blank(statement));
    found
}

fn is_blank(sql: &[u8]) -> bool {
    let mut is_blank = true;
    bare(sql, |_, byte| is_blank &= byte.is_ascii_whitespace());
    is_blank && !sql.iter().any(|byte| matches!(byte, b'\'' | b'"' | b'`'))
}

/// The statement without what only texts of MySQL have: a character set before them, and `\Z` in them.
pub(crate) fn plain(sql: &[u8]) -> Cow<'_, [u8]> {
    let (mut out, mut from, mut at) = (Vec::new(), 0, 0);
    while at < sql.len() {
        let Piece::Hidden(len) = piece(sql, at) else {
            at += 1;
            continue;
        };
        let (begin, end) = (at, at + len);
        at = end;
        if sql[begin] != b'\'' {
            continue;
        }
        if let Some(word) = introducer(&sql[from..begin]) {
            out.extend_from_slice(&sql[from..from + word]);
            from = begin;
        }
        let mut inside = begin;
        while inside + 1 < end {
            let is_escape = sql[inside] == b'\\';
            if is_escape && sql[inside + 1] == b'Z' {
                out.extend_from_slice(&sql[from..inside]);
                out.extend_from_slice(b"\\x1A");
                from = inside + 2;
            }
            inside += if is_escape { 2 } else { 1 };
        }
    }
    if from == 0 {
        return Cow::Borrowed(sql);
    }
    out.extend_from_slice(&sql[from..]);
    Cow::Owned(out)
}

/// Where the character set begins that ends what stands before a text.
fn introducer(before: &[u8]) -> Option<usize> {
    let before = before.trim_ascii_end();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'`');
    let word = before.iter().rposition(|byte| !is_word(byte));
    let word = word.map_or(0, |at| at + 1);
    let is_known = |known: &&str| before[word..].eq_ignore_ascii_case(known.as_bytes());
    INTRODUCERS.iter().any(is_known).then_some(word)
}

/// How many parameters a statement has.
pub(crate) fn params(sql: &[u8]) -> usize {
    let mut count = 0;
    bare(sql, |_, byte| count += usize::from(byte == b'?'));
    count
}

/// The statement with its values.
pub(crate) fn bound(sql: &[u8], values: &[Value<'_>]) -> Vec<u8> {
    let (mut out, mut from, mut values) = (Vec::with_capacity(sql.len() + 64), 0, values.iter());
    bare(sql, |at, byte| {
        if byte == b'?' {
            out.extend_from_slice(&sql[from..at]);
            literal(values.next().unwrap_or(&Value::Null), &mut out);
            from = at + 1;
        }
    });
    out.extend_from_slice(&sql[from..]);
    out
}

fn literal(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        // Two signs in a row would begin a comment.
        Value::Int(number) if *number < 0 => out.extend_from_slice(format!(" {number}").as_bytes()),
        Value::Int(_) | Value::Uint(_) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Float(number) => out.extend_from_slice(format!(" {number:e}").as_bytes()),
        Value::Double(number) => out.extend_from_slice(format!(" {number:e}").as_bytes()),
        Value::Bytes(bytes) => quoted(bytes, out),
        other => quoted(other.to_string().as_bytes(), out),
    }
}

/// A text as a literal: any bytes.
pub(crate) fn quoted(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => out.extend([b'\\', *byte]),
            0 => out.extend_from_slice(b"\\0"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
}

/// Returns the literal of a text.
pub(crate) fn text(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quoted(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// How many rows the VALUES of an INSERT have: ClickHouse does not always say how many it wrote.
pub(crate) fn rows(sql: &[u8]) -> u64 {
    let (mut depth, mut rows, mut word, mut inside) = (0_i64, 0, Vec::new(), false);
    bare(sql, |_, byte| {
        let is_word = byte.is_ascii_alphanumeric() || byte == b'_';
        if is_word && depth == 0 && !inside {
            word.push(byte.to_ascii_lowercase());
            return;
        }
        inside |= word == b"values";
        word.clear();
        match byte {
            b'(' => {
                rows += u64::from(inside && depth == 0);
                depth += 1;
            }
            b')' => depth -= 1,
            _ => {}
        }
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_place_of_marks_that_are_no_text() {
        let sql = b"SELECT ?, '?', `?`, a-? /* ? */ FROM t WHERE s = ? -- ?";
        assert_eq!(params(sql), 3);
        let values = [Value::Uint(7), Value::Int(-1), Value::Bytes(b"it's \\ \0")];
        let bound = bound(sql, &values);
        let wanted = br"SELECT 7, '?', `?`, a- -1 /* ? */ FROM t WHERE s = 'it\'s \\ \0' -- ?";
        assert_eq!(
            String::from_utf8_lossy(&bound),
            String::from_utf8_lossy(wanted)
        );
    }

    #[test]
    fn texts_of_mysql_become_those_of_clickhouse() {
        for (sql, wanted) in [
            (
                r"INSERT INTO t VALUES (_binary'a\'\Z_binary', _UTF8MB4 'b'),(_binary '\\Z\Z')",
                r"INSERT INTO t VALUES ('a\'\x1A_binary', 'b'),('\\Z\x1A')",
            ),
            ("_binary''", "''"),
        ] {
            assert_eq!(String::from_utf8_lossy(&plain(sql.as_bytes())), wanted);
        }
        for sql in [
            r"SELECT '_binary', t._binary = 'x', _latin1'x', `_binary` 'x' -- _binary'\Z'",
            "SELECT x_binary'a', _binary, 1",
            "",
            "'",
            r"'\",
        ] {
            assert!(matches!(plain(sql.as_bytes()), Cow::Borrowed(same) if same == sql.as_bytes()));
        }
    }

    #[test]
    fn statements_end_where_clickhouse_says_and_rows_are_counted() {
        let texts = |sql: &'static str| {
            let found = statements(sql.as_bytes()).into_iter();
            found
                .map(|one| String::from_utf8_lossy(one).trim().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            texts("SELECT ';\\';'; SELECT 2 -- ;\n; ;"),
            ["SELECT ';\\';'", "SELECT 2 -- ;"]
        );
        assert_eq!(
            rows(b"INSERT INTO values_of (a, b) VALUES (1, 'a)('), ((2), f(3))"),
            2
        );
        assert_eq!(rows(b"INSERT INTO t SELECT (1), (2)"), 0);
    }
}
