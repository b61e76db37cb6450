//! Statements that name or hold others: PREPARE, EXECUTE, DEALLOCATE PREPARE and MariaDB's EXECUTE
//! IMMEDIATE, taken apart.

use crate::lexing::Lexing;
use crate::parts::{Part, Parts};
use crate::words::{Kind, Token, Words, unquote};
use crate::{Against, Class, CommandCounter, Leaves, Reads};
use std::borrow::Cow;
use std::ops::Range;

/// Statement that names or holds another, taken apart. Names are in lower case: they know no upper
/// case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dynamic<'a> {
    /// PREPARE name FROM source.
    Prepare {
        /// Its name.
        name: String,
        /// Where the name stands.
        name_at: Range<usize>,
        /// Source of what is prepared; `None` for an expression that only a server can tell.
        source: Option<Source<'a>>,
        /// Where the source stands.
        source_at: Range<usize>,
    },
    /// EXECUTE name [USING …].
    Execute {
        /// The name of what is executed.
        name: String,
        /// Where the name stands.
        name_at: Range<usize>,
        /// As of [`Self::Immediate`].
        computes: bool,
    },
    /// EXECUTE IMMEDIATE source [USING …].
    Immediate {
        /// Source of what is executed.
        source: Source<'a>,
        /// Where the source stands.
        source_at: Range<usize>,
        /// Some argument is more than a literal or a user variable: MariaDB takes any expression,
        /// which may do what the text inside does not show.
        /// <https://mariadb.com/kb/en/execute-immediate/>
        computes: bool,
    },
    /// DEALLOCATE PREPARE name, DROP PREPARE name.
    Deallocate {
        /// The name that is given back.
        name: String,
        /// Where the name stands.
        name_at: Range<usize>,
    },
}

/// Where the text of a statement comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source<'a> {
    /// Text that was written down.
    Text(Cow<'a, [u8]>),
    /// Value of this user variable.
    Variable(String),
}

/// Takes a statement apart; `None` for one that is none of them, and where it is not certain what a
/// server would read. `ansi_quotes`: double quotes make a name.
#[must_use]
pub fn dynamic(sql: &[u8], lexing: Lexing, ansi_quotes: bool) -> Option<Dynamic<'_>> {
    let executable =
        memchr::memmem::find(sql, b"/*!").is_some() || memchr::memmem::find(sql, b"/*M!").is_some();
    // What a string says with a backslash in it, nobody knows.
    let unsure = matches!(lexing, Lexing::Unsure { .. }) && memchr::memchr(b'\\', sql).is_some();
    if executable || unsure || lexing.shifts() && !sql.is_ascii() || lexing.respaced(sql).is_some()
    {
        return None;
    }
    let reading = Reading {
        escapes: lexing.escapes(),
        ansi_quotes,
    };
    let mut words = lexing.words(sql);
    let verb = words.next()?;
    if verb.is("PREPARE") {
        let (name, name_at) = name(words.next()?)?;
        if !words.next()?.is("FROM") {
            return None;
        }
        let from = words.peek()?.start;
        let (source, end) = match reading.source(&mut words) {
            Some((source, end)) if is_over(&mut words) => (Some(source), end),
            _ => (None, sql.len()),
        };
        return Some(Dynamic::Prepare {
            name,
            name_at,
            source,
            source_at: from..end,
        });
    }
    if verb.is("EXECUTE") {
        let token = words.next()?;
        if token.is("IMMEDIATE")
            && !words
                .peek()
                .is_none_or(|next| next.is("USING") || next.is_sign(b';'))
        {
            let from = words.peek()?.start;
            let (source, end) = reading.source(&mut words)?;
            let computes = computes(sql, &mut words, lexing)?;
            return Some(Dynamic::Immediate {
                source,
                source_at: from..end,
                computes,
            });
        }
        let (name, name_at) = name(token)?;
        let computes = computes(sql, &mut words, lexing)?;
        return Some(Dynamic::Execute {
            name,
            name_at,
            computes,
        });
    }
    if verb.is_any(&["DEALLOCATE", "DROP"]) && words.next()?.is("PREPARE") {
        let (name, name_at) = name(words.next()?)?;
        return is_over(&mut words).then_some(Dynamic::Deallocate { name, name_at });
    }
    None
}

/// Where the arguments of an EXECUTE stand, if each is a user variable; its name ends at
/// `name_end`.
#[must_use]
pub fn variables_given(sql: &[u8], lexing: Lexing, name_end: usize) -> Option<Vec<Range<usize>>> {
    let mut words = lexing.words(sql);
    words.skip_to(name_end);
    let mut all = Vec::new();
    match words.next() {
        Some(token) if token.is("USING") => {}
        Some(token) if !token.is_sign(b';') => return None,
        _ => return Some(all),
    }
    loop {
        let at = words.next().filter(|at| at.is_sign(b'@'))?;
        let named = words.next().filter(|named| {
            named.start == at.end() && named.kind != Kind::Sign && named.is_whole()
        })?;
        all.push(at.start..named.end());
        match words.next() {
            Some(token) if token.is_sign(b',') => {}
            Some(token) if !token.is_sign(b';') => return None,
            _ => return Some(all),
        }
    }
}

/// Reads of a statement that another one before it on the same connection would change.
pub const DISTURBED: Reads = Reads::WARNINGS
    .with(Reads::FOUND_ROWS)
    .with(Reads::PROFILE)
    .with(Reads::SEQUENCE)
    .with(Reads::CURRVAL)
    .with(Reads::ROW_COUNT);

/// Whether a text with this class, which is prepared or executed by name, does the same wherever it
/// is, as far as what it leaves is known: it may be prepared anywhere, and is to rules what it
/// would be by itself.
#[must_use]
pub fn goes_anywhere(class: &Class<'_>) -> bool {
    const NAMES: Leaves = Leaves::SQL_PREPARE
        .with(Leaves::SQL_EXECUTE)
        .with(Leaves::SQL_DEALLOCATE);
    let calls = class.command == CommandCounter::Call && class.against == Some(Against::Procedure);
    let opaque =
        class.leaves.intersects(NAMES) || class.leaves.intersects(Leaves::UNKNOWN_STATE) && !calls;
    !class.multi && !class.local_infile && !opaque && !class.reads.intersects(DISTURBED)
}

/// How strings are read.
#[derive(Clone, Copy)]
struct Reading {
    escapes: bool,
    ansi_quotes: bool,
}

impl Reading {
    /// A string, or `@name`; and where it ends.
    fn source<'a>(self, words: &mut Words<'a>) -> Option<(Source<'a>, usize)> {
        let token = words.next()?;
        if token.kind == Kind::String && !(self.ansi_quotes && token.text.starts_with(b"\"")) {
            return Some((Source::Text(string(token.text, self.escapes)?), token.end()));
        }
        if !token.is_sign(b'@') {
            return None;
        }
        variable(words, token).map(|(name, end)| (Source::Variable(name), end))
    }
}

/// The name of the user variable that begins with this `@`, in lower case, and where it ends;
/// `None` where that is not certain.
pub(crate) fn variable(words: &mut Words<'_>, at: Token<'_>) -> Option<(String, usize)> {
    let named = words
        .next()
        .filter(|named| named.start == at.end() && named.kind != Kind::Sign && named.is_whole())?;
    // `@a.b` is one name.
    let plain = named.text.is_ascii() && !words.is_before(b'.') && !words.is_before(b'@');
    let name = String::from_utf8(unquote(named.text).into_owned())
        .ok()?
        .to_lowercase();
    plain.then(|| (name, named.end()))
}

/// Returns what a literal says, without its quotes.
#[must_use]
pub fn string(literal: &[u8], escapes: bool) -> Option<Cow<'_, [u8]>> {
    let [quote @ (b'\'' | b'"'), rest @ ..] = literal else {
        return None;
    };
    let inside = rest.strip_suffix(&[*quote])?;
    let special = |byte: &u8| byte == quote || escapes && *byte == b'\\';
    if !inside.iter().any(special) {
        return Some(Cow::Borrowed(inside));
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if escapes => match bytes.next()? {
                b'0' => out.push(0),
                b'b' => out.push(8),
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b't' => out.push(b'\t'),
                b'Z' => out.push(26),
                // These are for LIKE, which reads them itself.
                wild @ (b'%' | b'_') => out.extend([b'\\', wild]),
                other => out.push(other),
            },
            // Two of them are one.
            _ if byte == *quote => out.push(bytes.next().filter(|next| next == quote)?),
            _ => out.push(byte),
        }
    }
    Some(Cow::Owned(out))
}

/// The literal that says this.
#[must_use]
pub fn literal(text: &[u8], escapes: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    out.push(b'\'');
    for &byte in text {
        if byte == b'\'' || escapes && byte == b'\\' {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
    out
}

/// A name that is the same to every server, and where it stands.
fn name(token: Token<'_>) -> Option<(String, Range<usize>)> {
    let named = matches!(token.kind, Kind::Word | Kind::Name) && token.is_whole();
    let text = unquote(token.text);
    let plain = !text.is_empty()
        && text.is_ascii()
        && !text.iter().any(u8::is_ascii_control)
        && text.trim_ascii().len() == text.len();
    let name = String::from_utf8(text.into_owned())
        .ok()?
        .to_ascii_lowercase();
    (named && plain).then(|| (name, token.start..token.end()))
}

fn is_over(words: &mut Words<'_>) -> bool {
    words.all(|token| token.is_sign(b';'))
}

/// Whether some argument has to be computed, up to the end; `None` if there is neither USING with
/// something behind it nor the end.
fn computes(sql: &[u8], words: &mut Words<'_>, lexing: Lexing) -> Option<bool> {
    match words.next() {
        None => Some(false),
        Some(token) if token.is("USING") => {
            words.peek()?;
            Some(!are_plain(sql.get(token.end()..)?, lexing))
        }
        Some(token) => (token.is_sign(b';') && is_over(words)).then_some(false),
    }
}

/// Whether these arguments are literals, user variables, parameters, DEFAULT and IGNORE, and
/// nothing else.
fn are_plain(arguments: &[u8], lexing: Lexing) -> bool {
    let mut parts = Parts::of(arguments, lexing);
    loop {
        let plain = match parts.next() {
            Some(Part::Value(_)) => true,
            // `@a` or `@'a'`.
            Some(Part::Sign(b'@')) => matches!(parts.next(), Some(Part::Name(_) | Part::Value(_))),
            Some(Part::Keyword(word)) => {
                word.eq_ignore_ascii_case(b"DEFAULT") || word.eq_ignore_ascii_case(b"IGNORE")
            }
            _ => false,
        };
        match parts.next() {
            Some(Part::Sign(b',')) if plain => {}
            end => return plain && end.is_none() && parts.is_sound(),
        }
    }
}

/// Body of a fuzz target: a literal says what it was made of, wherever a backslash escapes or does
/// not, and is one token.
pub fn fuzz_dynamic(data: &[u8]) {
    for escapes in [true, false] {
        let written = literal(data, escapes);
        assert_eq!(string(&written, escapes).as_deref(), Some(data));
        let mut words = if escapes {
            Words::new(&written)
        } else {
            Words::without_escapes(&written)
        };
        assert!(words.next().is_some_and(|token| token.text == written) && words.next().is_none());
    }
    for lexing in [
        Lexing::Escapes,
        Lexing::NoEscapes,
        Lexing::Shifts(crate::Shift::Gbk),
    ] {
        let _read = dynamic(data, lexing, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> String {
        let part = |at: &Range<usize>| sql[at.clone()].to_owned();
        let source = |source: &Source<'_>| match source {
            Source::Text(text) => format!("text {}", String::from_utf8_lossy(text)),
            Source::Variable(name) => format!("@{name}"),
        };
        match dynamic(sql.as_bytes(), Lexing::Escapes, false) {
            None => "as it is".to_owned(),
            Some(Dynamic::Prepare {
                name,
                name_at,
                source: None,
                source_at,
            }) => {
                format!("prepare {name} {} ? {}", part(&name_at), part(&source_at))
            }
            Some(Dynamic::Prepare {
                name,
                name_at,
                source: Some(from),
                source_at,
            }) => {
                format!(
                    "prepare {name} {} {} {}",
                    part(&name_at),
                    source(&from),
                    part(&source_at)
                )
            }
            Some(Dynamic::Execute { name, name_at, .. }) => {
                format!("execute {name} {}", part(&name_at))
            }
            Some(Dynamic::Immediate {
                source: from,
                source_at,
                ..
            }) => {
                format!("immediate {} {}", source(&from), part(&source_at))
            }
            Some(Dynamic::Deallocate { name, name_at }) => {
                format!("deallocate {name} {}", part(&name_at))
            }
        }
    }

    #[test]
    fn what_names_or_holds_statements_is_taken_apart() {
        for (sql, wanted) in [
            (
                "PREPARE S FROM 'SELECT 1'",
                "prepare s S text SELECT 1 'SELECT 1'",
            ),
            (
                "/* a */ prepare `My S` from \"it's\" ; ",
                "prepare my s `My S` text it's \"it's\"",
            ),
            (
                r"PREPARE s FROM 'a''b\'c\\d\ne\%'",
                "prepare s s text a'b'c\\d\ne\\% 'a''b\\'c\\\\d\\ne\\%'",
            ),
            ("PREPARE s FROM @Text", "prepare s s @text @Text"),
            ("PREPARE s FROM @`a b`", "prepare s s @a b @`a b`"),
            (
                "PREPARE s FROM CONCAT('a', @b)",
                "prepare s s ? CONCAT('a', @b)",
            ),
            ("PREPARE s FROM 'a' 'b'", "prepare s s ? 'a' 'b'"),
            ("PREPARE s FROM _utf8'a'", "prepare s s ? _utf8'a'"),
            ("PREPARE s FROM @@version", "prepare s s ? @@version"),
            ("PREPARE s FROM @a.b", "prepare s s ? @a.b"),
            ("PREPARE s 'SELECT 1'", "as it is"),
            ("PREPARE é FROM 'SELECT 1'", "as it is"),
            ("PREPARE 's' FROM 'SELECT 1'", "as it is"),
            ("EXECUTE s", "execute s s"),
            ("EXECUTE `s` USING @a, @b;", "execute s `s`"),
            ("EXECUTE s USING", "as it is"),
            ("EXECUTE s @a", "as it is"),
            ("/*!40101 EXECUTE s */", "as it is"),
            (
                "EXECUTE IMMEDIATE 'SELECT ?' USING 1",
                "immediate text SELECT ? 'SELECT ?'",
            ),
            ("EXECUTE IMMEDIATE @q", "immediate @q @q"),
            ("EXECUTE IMMEDIATE CONCAT('a')", "as it is"),
            ("EXECUTE immediate", "execute immediate immediate"),
            ("DEALLOCATE PREPARE S;", "deallocate s S"),
            ("DROP PREPARE s", "deallocate s s"),
            ("DROP PREPARE s, t", "as it is"),
            ("DROP TABLE t", "as it is"),
            ("SELECT 1", "as it is"),
        ] {
            assert_eq!(read(sql), wanted, "{sql}");
        }
    }

    #[test]
    fn the_mode_and_the_character_set_decide_what_a_string_says() {
        let text = |sql: &'static str, lexing, ansi| match dynamic(sql.as_bytes(), lexing, ansi) {
            Some(Dynamic::Prepare {
                source: Some(Source::Text(text)),
                ..
            }) => Some(String::from_utf8_lossy(&text).into_owned()),
            _ => None,
        };
        assert_eq!(
            text(r"PREPARE s FROM 'a\n'", Lexing::NoEscapes, false).as_deref(),
            Some(r"a\n")
        );
        assert_eq!(
            text(
                r"PREPARE s FROM 'a\n'",
                Lexing::Unsure { shifts: false },
                false
            ),
            None
        );
        assert_eq!(
            text(
                "PREPARE s FROM 'a'",
                Lexing::Unsure { shifts: false },
                false
            )
            .as_deref(),
            Some("a")
        );
        assert_eq!(text("PREPARE s FROM \"a\"", Lexing::Escapes, true), None);
        assert_eq!(
            text(
                "PREPARE s FROM 'é'",
                Lexing::Shifts(crate::Shift::Gbk),
                false
            ),
            None
        );
        assert_eq!(
            text("PREPARE s FROM 'é'", Lexing::Escapes, false).as_deref(),
            Some("é")
        );
    }

    #[test]
    fn an_argument_that_is_more_than_a_value_is_computed() {
        for (arguments, wanted) in [
            ("5", false),
            (
                "-5, +1.5e3, 'a' 'b', _utf8mb4'c', X'00', DATE '2024-01-01', NULL, TRUE",
                false,
            ),
            ("@a, @`b c`, @'d', @\"e\" ;", false),
            ("DEFAULT, ignore, ?", false),
            ("@a /* b */, 5 -- c", false),
            ("5+5", true),
            ("5 -5", true),
            ("SLEEP(0)", true),
            ("@a, LOAD_FILE('/etc/passwd')", true),
            ("`SLEEP`(0)", true),
            ("@@read_only", true),
            ("@@global.init_connect", true),
            ("@a := 5", true),
            ("@a.b", true),
            ("(5)", true),
            ("-@a", true),
            ("NOT 1", true),
            ("CURRENT_USER", true),
            ("NOW()", true),
            ("a", true),
            ("5 COLLATE utf8mb4_bin", true),
            ("5,", true),
            ("5 'a'", true),
            ("'a", true),
        ] {
            for before in [
                "EXECUTE s USING ",
                "EXECUTE IMMEDIATE 'SELECT ?' USING ",
                "execute immediate @q using ",
            ] {
                let sql = format!("{before}{arguments}");
                let found = match dynamic(sql.as_bytes(), Lexing::Escapes, false) {
                    Some(
                        Dynamic::Execute { computes, .. } | Dynamic::Immediate { computes, .. },
                    ) => computes,
                    other => panic!("{sql}: {other:?}"),
                };
                assert_eq!(found, wanted, "{sql}");
            }
        }
    }

    #[test]
    fn arguments_that_are_variables_are_found() {
        let given = |sql: &str| {
            let all = variables_given(sql.as_bytes(), Lexing::Escapes, "EXECUTE s".len());
            all.map(|all| {
                all.into_iter()
                    .map(|at| sql[at].to_owned())
                    .collect::<Vec<_>>()
                    .join("|")
            })
        };
        for (sql, wanted) in [
            ("EXECUTE s", Some("")),
            ("EXECUTE s ;", Some("")),
            (
                "EXECUTE s USING @a, /* b */ @`b c`, @'d';",
                Some("@a|@`b c`|@'d'"),
            ),
            ("EXECUTE s USING @a, 5", None),
            ("EXECUTE s USING @a.b", None),
            ("EXECUTE s USING @@a", None),
            ("EXECUTE s USING f(1), 2", None),
            ("EXECUTE s USING @a := 5", None),
            ("EXECUTE s USING", None),
            ("EXECUTE s @a", None),
        ] {
            assert_eq!(given(sql).as_deref(), wanted, "{sql}");
        }
    }

    #[test]
    fn what_nobody_can_follow_stays_where_it_is() {
        let goes = |text: &str| goes_anywhere(&crate::class(text.as_bytes()));
        for text in [
            "SELECT a FROM t WHERE b = ?",
            "INSERT INTO t VALUES (?)",
            "SELECT 1 INTO @x",
            "SET @x = ?",
            "CREATE TEMPORARY TABLE t (a INT)",
            "SELECT LAST_INSERT_ID()",
            "COMMIT",
            "KILL 5",
            "CALL p(?)",
        ] {
            assert!(goes(text), "{text}");
        }
        for text in [
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT()",
            "CALL p(ROW_COUNT())",
            "SHOW WARNINGS",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "EXECUTE s",
            "SELECT 1; SELECT 2",
            "CALL p(); CALL q()",
            "SELEC 1",
        ] {
            assert!(!goes(text), "{text}");
        }
    }

    #[test]
    fn a_literal_says_what_it_was_made_of() {
        for data in [
            "",
            "SELECT 'it''s' , \"a\\\\b\"",
            "\\",
            "'",
            "\\'",
            "a\\%b\\n\0",
            "é\\é",
        ] {
            fuzz_dynamic(data.as_bytes());
        }
    }
}
