//! Several statements in one text, as SQLite reads them: a backslash escapes nothing, and a trigger
//! has a body.

/// The statements of `sql`, without the `;` between them; what is only blank or comment is left
/// out.
pub fn statements(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = end_of(rest);
            let (statement, tail) = rest.split_at(end);
            rest = tail.strip_prefix(';').unwrap_or(tail);
            if !is_blank(statement) {
                return Some(statement.trim());
            }
        }
        None
    })
}

/// The text with blanks in place of quoted parts and comments; every other byte stays where it is.
pub(crate) fn bare(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    while out.len() < sql.len() {
        let at = out.len();
        let (token, len) = token(&sql[at..]);
        let is_hidden =
            matches!(token, Token::Blank) || sql[at..].starts_with(['\'', '"', '`', '[']);
        if is_hidden {
            out.extend(std::iter::repeat_n(' ', len));
        } else {
            out.push_str(&sql[at..at + len]);
        }
    }
    out
}

/// Kind of a token, as far as it matters here.
enum Token<'a> {
    Blank,
    Semicolon,
    Word(&'a str),
    Other,
}

/// The first token of a text that is not empty, and its length.
fn token(sql: &str) -> (Token<'_>, usize) {
    let bytes = sql.as_bytes();
    let to = |end: &str, from: usize| {
        sql[from..]
            .find(end)
            .map_or(sql.len(), |at| from + at + end.len())
    };
    let run = |is: fn(u8) -> bool| {
        bytes
            .iter()
            .position(|byte| !is(*byte))
            .unwrap_or(bytes.len())
    };
    match bytes[0] {
        b';' => (Token::Semicolon, 1),
        b'\'' => (Token::Other, to("'", 1)),
        b'"' => (Token::Other, to("\"", 1)),
        b'`' => (Token::Other, to("`", 1)),
        b'[' => (Token::Other, to("]", 1)),
        b'-' if bytes.starts_with(b"--") => (Token::Blank, to("\n", 2)),
        b'/' if bytes.starts_with(b"/*") => (Token::Blank, to("*/", 2)),
        byte if byte.is_ascii_whitespace() => {
            (Token::Blank, run(|byte| byte.is_ascii_whitespace()))
        }
        byte if is_word(byte) => {
            let len = run(is_word);
            (Token::Word(&sql[..len]), len)
        }
        _ => (Token::Other, sql.chars().next().map_or(1, char::len_utf8)),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn is_blank(sql: &str) -> bool {
    let mut rest = sql;
    while !rest.is_empty() {
        let (Token::Blank, len) = token(rest) else {
            return false;
        };
        rest = &rest[len..];
    }
    true
}

/// Where the first statement ends: at its `;`, or at the end of the text.
fn end_of(sql: &str) -> usize {
    if !sql.contains(';') {
        return sql.len();
    }
    let (mut at, mut words) = (0, 0);
    // CREATE [TEMP|TEMPORARY] TRIGGER … END: semicolons stand inside.
    let (mut creates, mut is_trigger, mut ended) = (false, false, false);
    while at < sql.len() {
        let (token, len) = token(&sql[at..]);
        match token {
            Token::Semicolon if !is_trigger || ended => return at,
            Token::Word(word) => {
                creates |= words == 0 && word.eq_ignore_ascii_case("create");
                is_trigger |= creates && words <= 2 && word.eq_ignore_ascii_case("trigger");
                ended = word.eq_ignore_ascii_case("end");
                words += 1;
            }
            Token::Semicolon | Token::Other => ended = false,
            Token::Blank => {}
        }
        at += len;
    }
    sql.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(sql: &str) -> Vec<&str> {
        statements(sql).collect()
    }

    #[test]
    fn statements_end_at_semicolons_that_stand_alone() {
        assert_eq!(split("SELECT 1; SELECT 2;"), ["SELECT 1", "SELECT 2"]);
        assert_eq!(
            split("SELECT ';', \";\", `;`, [;] -- ;\n, 1 /* ; */;;  ; DELETE"),
            ["SELECT ';', \";\", `;`, [;] -- ;\n, 1 /* ; */", "DELETE"]
        );
        assert_eq!(
            split("SELECT 'a\\'; SELECT 'it''s;'"),
            ["SELECT 'a\\'", "SELECT 'it''s;'"]
        );
        assert_eq!(split(" ; -- nothing"), [""; 0]);
        assert_eq!(split("SELECT 'open; SELECT 2"), ["SELECT 'open; SELECT 2"]);
        assert_eq!(split("SELECT 'ä'; SELECT ü"), ["SELECT 'ä'", "SELECT ü"]);
    }

    #[test]
    fn a_trigger_is_one_statement() {
        let trigger =
            "CREATE TEMP TRIGGER t AFTER INSERT ON x BEGIN DELETE FROM y; UPDATE z SET a=1; END";
        assert_eq!(
            split(&format!("{trigger}; SELECT 1")),
            [trigger, "SELECT 1"]
        );
        assert_eq!(split("CREATE TABLE end(a); SELECT 1").len(), 2);
    }
}
