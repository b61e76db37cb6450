//! Does a statement look as if somebody had put SQL into one of its values?
//!
//! libinjection looks at what a user typed. A proxy sees the whole statement, where every quote is
//! closed and `WHERE` is the application's own; asked about whole statements, libinjection calls
//! most plain SELECTs an injection. So this looks for the joints: a condition that is always true
//! behind OR, a UNION of constants or of the server's secrets behind a condition, a delay inside a
//! condition, a comment that swallows the rest of a string, a second statement whose end is
//! commented out. The fingerprint of a joint is the kinds of the tokens around it, in letters like
//! libinjection's.
//!
//! It is a net with holes: whoever knows it can write around it. What cannot be written around is a
//! list of digests.

use crate::lexing::Lexing;
use crate::tables::SYSTEM_SCHEMAS;
use crate::words::{Kind, Token, Words};

/// Tokens that are looked at behind UNION.
const AHEAD_MAX: usize = 64;
/// Tokens of a fingerprint.
const TOKENS_MAX: usize = 5;

/// The fingerprint of what looks like an injection; `None` for a statement that does not.
#[must_use]
pub fn injection(text: &[u8], lexing: Lexing) -> Option<String> {
    if matches!(lexing, Lexing::Unsure { .. }) && lexing.hides(text) {
        return Lexing::EITHER
            .into_iter()
            .find_map(|lexing| injection(text, lexing));
    }
    if let Some(spaced) = lexing.respaced(text) {
        return found(text, lexing).or_else(|| found(&spaced, lexing));
    }
    found(text, lexing)
}

fn found(text: &[u8], lexing: Lexing) -> Option<String> {
    let mut words = lexing.words(text);
    let mut before: Option<Token<'_>> = None;
    // A condition, or a list of values, has begun: values come from outside there. `here`: in this
    // SELECT.
    let (mut inside, mut here) = (false, false);
    let mut stacked: Option<String> = None;
    while let Some(token) = words.next() {
        let from = before.map_or(0, |before| before.end());
        if inside && swallows_a_string(text.get(from..token.start).unwrap_or_default()) {
            return Some(print(before, token, words) + "c");
        }
        let found = match token.kind {
            Kind::Word => match token.text.first().map(u8::to_ascii_uppercase) {
                Some(b'O' | b'X') if token.is_any(&["OR", "XOR"]) => {
                    always_true(words.clone(), true, false)
                }
                Some(b'A') if token.is("AND") => always_true(words.clone(), false, true),
                Some(b'S' | b'W' | b'H' | b'V')
                    if token.is_any(&["WHERE", "HAVING", "VALUES", "SET"]) =>
                {
                    (inside, here) = (true, true);
                    false
                }
                Some(b'S') if token.is("SELECT") => {
                    here = false;
                    false
                }
                Some(b'U') if token.is("UNION") => {
                    here && before.is_some_and(ends_a_value)
                        && takes_nothing_or_secrets(words.clone())
                }
                Some(b'S' | b'B') if token.is_any(&["SLEEP", "BENCHMARK"]) => {
                    inside && words.is_before(b'(')
                }
                Some(b'E' | b'U') if token.is_any(&["EXTRACTVALUE", "UPDATEXML"]) => {
                    has_constant_first(words.clone())
                }
                _ => false,
            },
            Kind::Sign if token.is_sign(b'|') && words.is_before(b'|') => {
                let mut behind = words.clone();
                behind.next();
                always_true(behind, false, false)
            }
            Kind::Sign if token.is_sign(b';') && before.is_some_and(ends_a_value) => {
                if words.peek().is_some_and(|next| next.is_any(&CHANGES)) {
                    stacked = Some(print(before, token, words.clone()));
                }
                false
            }
            _ => false,
        };
        if found {
            return Some(print(before, token, words));
        }
        before = Some(token);
    }
    let last = before?;
    let rest = text.get(last.end()..).unwrap_or_default();
    if inside && swallows_a_string(rest) {
        return Some([letter(&last), 'c'].into_iter().collect());
    }
    stacked
        .filter(|_| Comments { rest }.next().is_some())
        .map(|print| print + "c")
}

/// How a second statement begins that somebody stacked on the first.
const CHANGES: [&str; 9] = [
    "DROP", "DELETE", "INSERT", "UPDATE", "ALTER", "CREATE", "GRANT", "TRUNCATE", "SHUTDOWN",
];

/// Functions, behind which a `(` follows.
const REVEALING: [&str; 8] = [
    "VERSION",
    "DATABASE",
    "SCHEMA",
    "USER",
    "CURRENT_USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "LOAD_FILE",
];

fn is_number(token: &Token<'_>) -> bool {
    token.kind == Kind::Word && token.text.first().is_some_and(u8::is_ascii_digit)
}

fn is_constant(token: &Token<'_>) -> bool {
    token.kind == Kind::String || is_number(token) || token.is_any(&["NULL", "TRUE", "FALSE"])
}

fn is_name(token: &Token<'_>, names: &[&str]) -> bool {
    let quoted = |name: &&str| {
        token
            .text
            .get(1..token.text.len() - 1)
            .is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes()))
    };
    token.is_any(names) || token.kind == Kind::Name && names.iter().any(quoted)
}

fn is_one_of(token: &Token<'_>, signs: &[u8]) -> bool {
    token.kind == Kind::Sign && signs.contains(&token.text[0])
}

fn ends_a_value(token: Token<'_>) -> bool {
    is_constant(&token) || token.is_sign(b')')
}

/// Signs and words before a value.
#[derive(Clone, Copy, Default)]
struct Before {
    /// By NOT or `!`, once or three times.
    negated: bool,
    /// By `~`, which makes something other than 0 of nearly every number.
    inverted: bool,
}

/// The next token that is neither a bracket that opens nor the sign of a number nor a NOT; and what
/// was before it.
fn next_value<'a>(words: &mut Words<'a>) -> Option<(Token<'a>, Before)> {
    let mut before = Before::default();
    for token in words {
        if token.is("NOT") || token.is_sign(b'!') {
            before.negated = !before.negated;
        } else if token.is_sign(b'~') {
            before.inverted = true;
        } else if !is_one_of(&token, b"(-+") {
            return Some((token, before));
        }
    }
    None
}

/// A condition of constants alone that is true, as far as can be seen. `bare`: one constant is
/// enough; `strings`: both must be strings.
fn always_true(mut words: Words<'_>, bare: bool, strings: bool) -> bool {
    let Some((left, Before { negated, inverted })) =
        next_value(&mut words).filter(|(left, _)| is_constant(left))
    else {
        return false;
    };
    while words.is_before(b')') {
        words.next();
    }
    let alone = bare && ((inverted || is_true(&left)) != negated);
    let Some(operator) = words.next() else {
        return alone;
    };
    if operator.is_any(&["LIMIT", "ORDER", "GROUP", "AND", "OR"]) || operator.is_sign(b';') {
        return alone;
    }
    if !is_one_of(&operator, b"=<>!")
        && !operator.is_any(&["LIKE", "RLIKE", "REGEXP", "IS", "IN", "BETWEEN", "NOT"])
    {
        return false;
    }
    let mut equals = operator.is_sign(b'=') && !negated;
    while let Some(more) = words
        .peek()
        .filter(|more| is_one_of(more, b"=<>") || more.is_any(&["LIKE", "IN"]))
    {
        equals &= more.is_sign(b'=');
        words.next();
    }
    let Some((right, _)) = next_value(&mut words).filter(|(right, _)| is_constant(right)) else {
        return false;
    };
    if equals && is_number(&left) && is_number(&right) && left.text != right.text {
        // `1 = 0` is how query builders write an empty list.
        return false;
    }
    // What is added to, or the argument of something, is not the whole side.
    let goes_on = words.peek().is_some_and(|next| is_one_of(&next, b"+*/.%"));
    !goes_on && (!strings || left.kind == Kind::String && right.kind == Kind::String)
}

fn is_true(constant: &Token<'_>) -> bool {
    constant.is("TRUE")
        || is_number(constant)
            && constant
                .text
                .iter()
                .any(|digit| (b'1'..=b'9').contains(digit))
}

/// UNION SELECT of constants without a table, or of what the server says of itself.
fn takes_nothing_or_secrets(words: Words<'_>) -> bool {
    let mut words = words
        .skip_while(|token| token.is_any(&["ALL", "DISTINCT"]) || token.is_sign(b'('))
        .take(AHEAD_MAX)
        .peekable();
    if !words.next().is_some_and(|token| token.is("SELECT")) {
        return false;
    }
    let (mut constants, mut from) = (true, false);
    while let Some(token) = words.next() {
        let next = words.peek();
        let before = |sign: u8| next.is_some_and(|next| next.is_sign(sign));
        let secret = is_name(&token, &SYSTEM_SCHEMAS) && before(b'.')
            || token.is_any(&REVEALING) && before(b'(')
            || token.is_any(&["OUTFILE", "DUMPFILE"])
            || token.is_sign(b'@') && before(b'@');
        if secret {
            return true;
        }
        if token.is("FROM") {
            from = true;
        } else if from {
            constants &= token.is("DUAL");
        } else {
            constants &= is_constant(&token) || is_one_of(&token, b",-)");
        }
    }
    constants
}

fn has_constant_first(mut words: Words<'_>) -> bool {
    words.next().is_some_and(|token| token.is_sign(b'('))
        && next_value(&mut words).is_some_and(|(token, _)| is_number(&token))
}

/// The comments up to the end of a line in what stands between two tokens, each without its mark.
struct Comments<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Comments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let rest = self.rest;
            let start = match rest {
                [] => return None,
                [b'#', ..] => 1,
                [b'-', b'-', ..] => 2,
                [b'/', b'*', inside @ ..] => {
                    // The text of an executable comment is tokens, so only its mark can be here.
                    let executable = matches!(inside, [b'!', ..] | [b'M' | b'm', b'!', ..]);
                    let length = if executable {
                        Some(0)
                    } else {
                        memchr::memmem::find(inside, b"*/").map(|length| length + 2)
                    };
                    self.rest = inside
                        .get(length.unwrap_or(inside.len())..)
                        .unwrap_or_default();
                    continue;
                }
                [_, more @ ..] => {
                    self.rest = more;
                    continue;
                }
            };
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            self.rest = &rest[end..];
            return Some(rest.get(start..end).unwrap_or_default());
        }
    }
}

/// A comment that swallows one end of a string: it has half of its quotes, or goes on as a
/// condition does behind a value.
fn swallows_a_string(between: &[u8]) -> bool {
    // Blanks are what is there nearly always.
    between.len() > 1 && Comments { rest: between }.any(is_half_a_string)
}

fn is_half_a_string(comment: &[u8]) -> bool {
    let mut quotes = 0_usize;
    let mut words = false;
    for (at, byte) in comment.iter().enumerate() {
        let letter = |at: usize| comment.get(at).is_some_and(u8::is_ascii_alphabetic);
        match byte {
            // An apostrophe between letters is English.
            b'\'' if at > 0 && letter(at - 1) && letter(at + 1) => {}
            b'\'' => {
                quotes += 1;
                let behind = comment.get(at + 1..).unwrap_or_default().trim_ascii_start();
                let goes_on = |word: &[u8]| {
                    behind
                        .get(..word.len())
                        .is_some_and(|text| text.eq_ignore_ascii_case(word))
                };
                if goes_on(b"AND ") || goes_on(b"OR ") || goes_on(b"LIMIT ") {
                    return true;
                }
            }
            b' ' | b')' | b';' => {}
            _ => words = true,
        }
    }
    quotes % 2 == 1 || quotes > 0 && !words
}

fn print(before: Option<Token<'_>>, at: Token<'_>, after: Words<'_>) -> String {
    before
        .into_iter()
        .chain([at])
        .chain(after)
        .take(TOKENS_MAX)
        .map(|token| letter(&token))
        .collect()
}

fn letter(token: &Token<'_>) -> char {
    match token.kind {
        Kind::String => 's',
        Kind::Name => 'n',
        Kind::Sign => match token.text {
            [sign @ (b'(' | b')' | b',' | b';' | b'.')] => char::from(*sign),
            [b'@'] => 'v',
            _ => 'o',
        },
        Kind::Word if is_number(token) => '1',
        Kind::Word if token.is_any(&["AND", "OR", "XOR"]) => '&',
        Kind::Word if token.is("UNION") => 'U',
        Kind::Word if token.is_any(&["SELECT", "INSERT", "UPDATE", "DELETE", "DROP"]) => 'E',
        Kind::Word if token.is_any(&["LIKE", "IN", "IS", "NOT", "BETWEEN", "REGEXP", "RLIKE"]) => {
            'o'
        }
        Kind::Word if token.is_any(&["NULL", "TRUE", "FALSE"]) => '1',
        Kind::Word
            if token.is_any(&[
                "FROM", "WHERE", "LIMIT", "ORDER", "GROUP", "BY", "ALL", "INTO", "VALUES", "SET",
            ]) =>
        {
            'k'
        }
        Kind::Word => 'n',
    }
}

/// Fuzz target: any text has a short fingerprint of known letters, or none.
pub fn fuzz_injection(data: &[u8]) {
    for lexing in [
        Lexing::Escapes,
        Lexing::NoEscapes,
        Lexing::Shifts(crate::Shift::Gbk),
    ] {
        if let Some(print) = injection(data, lexing) {
            assert!(
                !print.is_empty() && print.len() <= TOKENS_MAX + 1,
                "{print}"
            );
            assert!(
                print
                    .chars()
                    .all(|letter| "(),;.snvo1&UEkc".contains(letter)),
                "{print}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(sql: &str) -> Option<String> {
        injection(sql.as_bytes(), Lexing::Escapes)
    }

    #[test]
    fn a_fingerprint_is_the_kinds_of_the_tokens_around_the_joint() {
        assert_eq!(
            print("SELECT a FROM t WHERE b = '' OR 1=1").as_deref(),
            Some("s&1o1")
        );
        assert_eq!(
            print("SELECT a FROM t WHERE b = 1 UNION ALL SELECT NULL, NULL").as_deref(),
            Some("1UkE1")
        );
        assert_eq!(
            print("SELECT a FROM t WHERE b = 'x' -- ' AND c = 'y'").as_deref(),
            Some("sc")
        );
        assert_eq!(
            print("SELECT a FROM t WHERE b = 1; DROP TABLE t -- x").as_deref(),
            Some("1;Ennc")
        );
    }

    #[test]
    fn strings_end_where_the_session_says() {
        let sql = br"SELECT a FROM t WHERE b = '\' OR 1=1 -- '";
        assert_eq!(injection(sql, Lexing::Escapes), None);
        assert_eq!(injection(sql, Lexing::NoEscapes).as_deref(), Some("s&1o1"));
    }
}
