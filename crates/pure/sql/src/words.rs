//! Cheap tokens of SQL text: what is blank, what is a comment, where a word, a string or a
//! statement ends.

use crate::lexing::Lexing;
use crate::shift::Shift;
use std::borrow::Cow;
use std::ops::Range;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Letters, digits, `_`, `$` and bytes above 0x7F: a keyword, a name or (part of) a number.
    Word,
    /// A name in backquotes.
    Name,
    /// A string in `'` or `"`.
    String,
    /// Any other byte.
    Sign,
}

/// One token: its text stands at `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Kind of the token.
    pub kind: Kind,
    /// As written, with its quotes.
    pub text: &'a [u8],
    /// Where it begins.
    pub start: usize,
}

impl Token<'_> {
    /// Just after it.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this keyword, in any case.
    #[must_use]
    pub fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword.as_bytes())
    }

    /// Whether it is one of these keywords.
    #[must_use]
    pub fn is_any(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(keyword))
    }

    /// Whether it is this sign.
    #[must_use]
    pub fn is_sign(&self, sign: u8) -> bool {
        self.kind == Kind::Sign && self.text == [sign]
    }

    /// Whether it begins with `$$` or `$tag$`: to MySQL 9 the beginning of a text that ends with
    /// the same, the body of a routine or library.
    #[must_use]
    pub fn is_dollar_quote(&self) -> bool {
        matches!(self.text, [b'$', rest @ ..] if rest.contains(&b'$')) && self.kind == Kind::Word
    }

    /// Whether its quotes are closed, where a backslash escapes; true for what needs none.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole_if(true)
    }

    /// Whether the token's quotes are closed, where a backslash escapes, or does not; true for what
    /// needs none.
    #[must_use]
    pub fn is_whole_if(&self, escapes: bool) -> bool {
        match self.kind {
            Kind::Word | Kind::Sign => true,
            Kind::Name | Kind::String => {
                end_of_quoted(self.text, 0, escapes) == Some(self.text.len())
            }
        }
    }
}

/// The tokens of a text, one after another, without blanks and comments. The text of an executable
/// comment (`/*! … */`, `/*M! … */`) counts as if it stood outside.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    text: &'a [u8],
    at: usize,
    /// Inside an executable comment.
    inside: bool,
    /// Some token came from an executable comment that not every server executes.
    conditional: bool,
    /// The inside of the first plain comment that was passed.
    comment: Option<(usize, usize)>,
    /// A backslash escapes in strings.
    escapes: bool,
    /// Not every byte of a string or name stands for itself.
    shift: Option<Shift>,
}

/// Every server that we know executes `/*!` comments up to this version: MariaDB skips those of
/// MySQL 5.7 and later.
const ALWAYS_EXECUTED: u32 = 50_699;

/// A longer string is not passed twice.
const SHORT: usize = 256;

const WORD: u8 = 1;
const BLANK: u8 = 2;
/// A comment may begin or end here.
const COMMENT: u8 = 3;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80.. => WORD,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C => BLANK,
            b'#' | b'-' | b'/' | b'*' => COMMENT,
            _ => 0,
        };
        byte += 1;
    }
    class
};

const fn is_word(byte: u8) -> bool {
    CLASS[byte as usize] == WORD
}

const fn is_blank(byte: u8) -> bool {
    CLASS[byte as usize] == BLANK
}

impl<'a> Words<'a> {
    /// From the beginning of `text`.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            inside: false,
            conditional: false,
            comment: None,
            escapes: true,
            shift: None,
        }
    }

    /// Begins at the start of `text`, where a backslash is an ordinary character: under
    /// NO_BACKSLASH_ESCAPES, which the server tells in its status flags.
    #[must_use]
    pub const fn without_escapes(text: &'a [u8]) -> Self {
        Self {
            escapes: false,
            ..Self::new(text)
        }
    }

    /// Begins at the start of `text`, in a character set of this `shift`, with escapes.
    #[must_use]
    pub const fn shifting(text: &'a [u8], shift: Shift) -> Self {
        Self {
            shift: Some(shift),
            ..Self::new(text)
        }
    }

    /// Just after the last token.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The token that was found there; none for an empty range.
    pub(crate) fn again(&self, at: &Range<usize>) -> Option<Token<'a>> {
        let text = self.text.get(at.clone())?;
        let kind = match *text.first()? {
            byte if is_word(byte) => Kind::Word,
            b'`' => Kind::Name,
            b'\'' | b'"' => Kind::String,
            _ => Kind::Sign,
        };
        Some(Token {
            kind,
            text,
            start: at.start,
        })
    }

    /// After a number: passes most of the numbers that follow in a list.
    #[inline]
    pub(crate) fn skip_numbers(&mut self) {
        if self.text.get(self.at) == Some(&b',') {
            self.at = crate::numbers::list(self.text, self.at).0;
        }
    }

    /// Passes numbers, NULL, short strings in `'`, and the signs and blanks between them, but for
    /// the last two of these tokens.
    #[inline(never)]
    pub(crate) fn skip_values(&mut self) {
        if self.shift.is_some() {
            return;
        }
        let text = self.text;
        let (mut at, mut last, mut before) = (self.at, self.at, self.at);
        while let Some(&byte) = text.get(at) {
            let end = match byte {
                b' ' | b'\n' => {
                    at += 1;
                    continue;
                }
                b',' | b'(' | b')' | b'.' => at + 1,
                b'-' if text.get(at + 1).is_some_and(u8::is_ascii_digit) => at + 1,
                b'0'..=b'9' => {
                    let end = text[at..]
                        .iter()
                        .position(|&b| !is_word(b))
                        .map_or(text.len(), |length| at + length);
                    // A function's name may begin with a digit.
                    let next = text[end..].iter().find(|&&b| !is_blank(b));
                    match next {
                        Some(b'(' | b'/' | b'-' | b'#') => break,
                        _ => end,
                    }
                }
                b'\'' => match end_of_quoted(&text[..text.len().min(at + SHORT)], at, self.escapes)
                {
                    // Another quote may follow what the cut has left.
                    Some(end) if end < at + SHORT => end,
                    _ => break,
                },
                b'N' | b'n' => match text.get(at..at + 5) {
                    Some([null @ .., b',' | b')']) if null.eq_ignore_ascii_case(b"null") => at + 4,
                    _ => break,
                },
                _ => break,
            };
            (before, last, at) = (last, at, end);
        }
        self.at = before;
    }

    /// After `@`: passes the name of a user variable that is not quoted, its dots included; where
    /// that ends.
    pub(crate) fn skip_variable(&mut self) -> usize {
        while self
            .text
            .get(self.at)
            .is_some_and(|&byte| is_word(byte) || byte == b'.')
        {
            self.at += 1;
        }
        self.at
    }

    /// Goes on from here, which is no earlier.
    pub(crate) fn skip_to(&mut self, at: usize) {
        self.at = at.max(self.at);
    }

    /// Whether what was read so far means different things to different servers: it has an
    /// executable comment of a version that not all of them have, or of MariaDB only.
    #[must_use]
    pub const fn is_conditional(&self) -> bool {
        self.conditional
    }

    /// The next token, which stays the next.
    #[must_use]
    pub fn peek(&self) -> Option<Token<'a>> {
        self.clone().next()
    }

    /// Whether the next token is this sign; cheaper than [`Words::peek`].
    #[must_use]
    pub fn is_before(&self, sign: u8) -> bool {
        let mut at = self.at;
        while self.text.get(at).is_some_and(|&byte| is_blank(byte)) {
            at += 1;
        }
        match self.text.get(at) {
            Some(&byte) if byte == sign => true,
            // A comment may begin or end here.
            Some(b'/' | b'-' | b'#' | b'*') => self.peek().is_some_and(|token| token.is_sign(sign)),
            _ => false,
        }
    }

    /// Whether the next token begins with a digit.
    #[must_use]
    pub(crate) fn is_before_digit(&self) -> bool {
        let mut at = self.at;
        while self.text.get(at).is_some_and(|&byte| is_blank(byte)) {
            at += 1;
        }
        match self.text.get(at) {
            Some(b'/' | b'-' | b'#' | b'*') => self
                .peek()
                .is_some_and(|token| token.text[0].is_ascii_digit()),
            byte => byte.is_some_and(u8::is_ascii_digit),
        }
    }

    /// Passes blanks and comments; whether anything is left.
    #[inline]
    fn skip(&mut self) -> bool {
        // Most tokens follow at once, or after one blank.
        if self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        match self.text.get(self.at).map(|&byte| CLASS[byte as usize]) {
            None => false,
            Some(BLANK | COMMENT) => self.skip_more(),
            Some(_) => true,
        }
    }

    /// Kind and length of the token at the beginning, in a character set that shifts.
    #[inline(never)]
    fn shifted(&self, rest: &[u8]) -> (Kind, usize) {
        let shift = self.shift.unwrap_or_default();
        match rest[0] {
            byte if is_word(byte) => {
                let mut length = 0;
                while rest.get(length).is_some_and(|&byte| is_word(byte)) {
                    length += shift.length(&rest[length..]);
                }
                (Kind::Word, length)
            }
            quote @ (b'\'' | b'"' | b'`') => {
                let length = shift.end_of_quoted(rest, 0).unwrap_or(rest.len());
                (
                    if quote == b'`' {
                        Kind::Name
                    } else {
                        Kind::String
                    },
                    length,
                )
            }
            _ => (Kind::Sign, 1),
        }
    }

    #[inline(never)]
    fn skip_more(&mut self) -> bool {
        let text = self.text;
        while let Some(&byte) = text.get(self.at) {
            match byte {
                _ if is_blank(byte) => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if matches!(text[self.at..], [_, b'-'] | [_, b'-', ..=0x20 | 0x7F, ..]) => {
                    self.skip_line()
                }
                b'/' if text.get(self.at + 1) == Some(&b'*') => self.skip_block(),
                b'*' if self.inside && text.get(self.at + 1) == Some(&b'/') => {
                    self.inside = false;
                    self.at += 2;
                }
                _ => return true,
            }
        }
        false
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |length| length + 1);
    }

    fn skip_block(&mut self) {
        let inside = &self.text[self.at + 2..];
        let mark = match inside {
            [b'!', ..] => 1,
            [b'M' | b'm', b'!', ..] => {
                self.conditional = true;
                2
            }
            _ => {
                let start = self.at + 2;
                let length = memchr::memmem::find(inside, b"*/");
                let end = start + length.unwrap_or(inside.len());
                if self.comment.is_none() && inside.first() != Some(&b'+') {
                    self.comment = Some((start, end));
                }
                self.at = if length.is_some() { end + 2 } else { end };
                return;
            }
        };
        // Five or six digits are a version.
        let digits = inside[mark..]
            .iter()
            .take(6)
            .take_while(|b| b.is_ascii_digit())
            .count();
        let digits = if digits < 5 { 0 } else { digits };
        let version = inside[mark..mark + digits]
            .iter()
            .fold(0, |v: u32, b| v * 10 + u32::from(b - b'0'));
        self.conditional |= version > ALWAYS_EXECUTED;
        self.inside = true;
        self.at += 2 + mark + digits;
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Token<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Token<'a>> {
        if !self.skip() {
            return None;
        }
        let start = self.at;
        let rest = &self.text[start..];
        let (kind, length) = match rest[0] {
            _ if self.shift.is_some() => self.shifted(rest),
            byte if is_word(byte) => (
                Kind::Word,
                rest.iter().position(|&b| !is_word(b)).unwrap_or(rest.len()),
            ),
            quote @ (b'\'' | b'"' | b'`') => {
                let length = end_of_quoted(rest, 0, self.escapes).unwrap_or(rest.len());
                (
                    if quote == b'`' {
                        Kind::Name
                    } else {
                        Kind::String
                    },
                    length,
                )
            }
            _ => (Kind::Sign, 1),
        };
        self.at = start + length;
        Some(Token {
            kind,
            text: &rest[..length],
            start,
        })
    }
}

/// Just after the string or quoted name that begins at `at`, if its quote is closed.
/// A backslash escapes in strings (unless under NO_BACKSLASH_ESCAPES) but never in names.
#[must_use]
pub fn end_of_quoted(text: &[u8], at: usize, escapes: bool) -> Option<usize> {
    let quote = *text.get(at)?;
    let escapes = escapes && quote != b'`';
    let mut end = at + 1;
    loop {
        let rest = text.get(end..)?;
        let length = if escapes {
            memchr::memchr2(quote, b'\\', rest)?
        } else {
            memchr::memchr(quote, rest)?
        };
        end += length + 1;
        if rest[length] == b'\\' || text.get(end) == Some(&quote) {
            end += 1;
        } else {
            return Some(end);
        }
    }
}

/// Whether a `/* */` comment may be in it, if only inside a string. Most statements have none.
#[must_use]
pub fn may_have_comment(sql: &[u8]) -> bool {
    memchr::memchr_iter(b'/', sql).any(|slash| sql.get(slash + 1) == Some(&b'*'))
}

/// The inside of the first `/* */` comment that is neither executable nor an optimizer hint. Where
/// strings may end elsewhere than they seem to, only one before the first word is known to be a
/// comment.
#[must_use]
pub fn first_comment(sql: &[u8], lexing: Lexing) -> Option<Range<usize>> {
    if !may_have_comment(sql) {
        return None;
    }
    let mut words = lexing.words(sql);
    words.next();
    if words.comment.is_none() && lexing.is_sure_of(sql) {
        while words.comment.is_none() && words.next().is_some() {}
    }
    words.comment.map(|(start, end)| start..end)
}

/// Returns what a comment asks of the proxy: `key=value` pairs between `;`.
pub fn hints(comment: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    comment.split(|&b| b == b';').filter_map(|pair| {
        let (key, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        Some((key.trim(), value.trim()))
    })
}

/// Where the statements of a text are: ranges from the first to the last token, without the `;`
/// between them.
///
/// A stored program (`CREATE PROCEDURE … BEGIN …; … END`) is one statement, whatever follows it.
pub fn statements(sql: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut words = Words::new(sql);
    std::iter::from_fn(move || {
        let mut range: Option<Range<usize>> = None;
        let (mut creates, mut program, mut begun, mut count) = (false, false, false, 0);
        for token in words.by_ref() {
            if token.is_sign(b';') && !begun {
                if range.is_some() {
                    break;
                }
                continue;
            }
            count += 1;
            creates |= count == 1 && token.is_any(&["CREATE", "ALTER"]);
            program |= creates
                && count < 40
                && token.is_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"]);
            begun |= program && token.is("BEGIN");
            range = Some(range.map_or(token.start, |r| r.start)..token.end());
        }
        range
    })
}

/// A name or string without its quotes, with doubled quotes and backslashes undone. What is not
/// quoted stays.
#[must_use]
pub fn unquote(text: &[u8]) -> Cow<'_, [u8]> {
    let [quote @ (b'\'' | b'"' | b'`'), inside @ .., last] = text else {
        return Cow::Borrowed(text);
    };
    if last != quote {
        return Cow::Borrowed(text);
    }
    let escapes = *quote != b'`';
    if memchr::memchr2(*quote, if escapes { b'\\' } else { *quote }, inside).is_none() {
        return Cow::Borrowed(inside);
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut bytes = inside.iter().copied();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' if escapes => match bytes.next() {
                Some(b'0') => 0,
                Some(b'b') => 8,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'Z') => 26,
                Some(other) => other,
                None => b'\\',
            },
            _ if byte == *quote => bytes.next().unwrap_or(byte),
            _ => byte,
        });
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        Words::new(sql.as_bytes())
            .map(|t| std::str::from_utf8(t.text).expect("ASCII"))
            .collect()
    }

    #[test]
    fn blanks_and_comments_are_passed_and_strings_are_one_token() {
        assert_eq!(
            texts("a /* b */ # c\n -- d\n e--f"),
            ["a", "e", "-", "-", "f"]
        );
        assert_eq!(texts("a--\n b -- "), ["a", "b"]);
        assert_eq!(
            texts(r"'it''s' 'it\'s' `a``b` "),
            [r"'it''s'", r"'it\'s'", "`a``b`"]
        );
        assert_eq!(texts("'unterminated ; "), ["'unterminated ; "]);
        assert_eq!(texts("a.b=1.5"), ["a", ".", "b", "=", "1", ".", "5"]);
    }

    #[test]
    fn a_character_that_ends_like_a_quote_or_backslash_ends_nothing() {
        let texts = |sql: &'static [u8], shift| {
            Words::shifting(sql, shift)
                .map(|token| token.text)
                .collect::<Vec<_>>()
        };
        let wanted: [&[u8]; 5] = [b"(", b"'\x95\\'", b",", b"b", b")"];
        assert_eq!(texts(b"('\x95\\', b)", Shift::Sjis), wanted);
        assert_eq!(
            texts(b"'\xb1\\' b'", Shift::Sjis),
            [b"'\xb1\\' b'"],
            "half-width, and an escape"
        );
        assert_eq!(texts(b"`\xbf`` b", Shift::Gbk), [&b"`\xbf``"[..], b"b"]);
        assert_eq!(
            texts(b"\xbf\\\xbf` b", Shift::Gbk),
            [&b"\xbf\\\xbf`"[..], b"b"]
        );
        assert_eq!(
            texts(b"'\xbf\\''\\'' b", Shift::Gbk),
            [&b"'\xbf\\''\\''"[..], b"b"]
        );
        let class =
            Lexing::Shifts(Shift::Big5).class(b"INSERT INTO c VALUES ('\xa5\\', LAST_INSERT_ID())");
        assert!(!class.reads.is_empty());
    }

    #[test]
    fn executable_comments_count_as_text() {
        assert_eq!(
            texts("/*!40101 SET NAMES utf8 */;"),
            ["SET", "NAMES", "utf8", ";"]
        );
        assert_eq!(texts("a /*M!100100 b /* c */ d */ e"), ["a", "b", "d", "e"]);
        assert_eq!(texts("/*!1 */"), ["1"]);
        let conditional = |sql: &str| {
            let mut words = Words::new(sql.as_bytes());
            while words.next().is_some() {}
            words.is_conditional()
        };
        assert!(!conditional("/*!40101 a */ b"));
        assert!(conditional("/*!80000 a */ b"));
        assert!(conditional("/*M! a */ b"));
        // Servers that we know pass it.
        assert!(conditional("/*m! a */ b"));
    }

    #[test]
    fn the_first_comment_is_found_wherever_it_is() {
        let found =
            |sql: &'static str| first_comment(sql.as_bytes(), Lexing::Escapes).map(|r| &sql[r]);
        assert_eq!(found("/* hostgroup=2 */ SELECT 1"), Some(" hostgroup=2 "));
        assert_eq!(found("SELECT '/* a */', /*b*/ 1"), Some("b"));
        assert_eq!(found("SELECT /*+ x */ /*! y */ 1 /* z"), Some(" z"));
        assert_eq!(found("SELECT /*! y /*c*/ */"), Some("c"));
        assert_eq!(found("SELECT `/*a*/` -- /*b*/"), None);
        assert_eq!(found("SELECT 1"), None);
    }

    #[test]
    fn a_comment_inside_a_string_is_none_however_the_session_reads_strings() {
        let sql = br"UPDATE t SET a='x\', b='/*hostgroup=20*/'";
        assert_eq!(first_comment(sql, Lexing::NoEscapes), None);
        let escaped = br"UPDATE t SET a='x\', b=' /*hostgroup=20*/";
        assert_eq!(first_comment(escaped, Lexing::Escapes), Some(27..39));
        // Which of these bytes is a quote, nobody knows.
        let shifting = b"UPDATE t SET a='\xbf\\', b='/*hostgroup=20*/'";
        assert_eq!(first_comment(shifting, Lexing::Shifts(Shift::Gbk)), None);
        let leading = b"/* hostgroup=1 */ UPDATE t SET a='\xbf\\', b='/*hostgroup=20*/'";
        assert_eq!(
            first_comment(leading, Lexing::Shifts(Shift::Gbk)),
            Some(2..15)
        );
    }

    #[test]
    fn hints_are_pairs() {
        let found: Vec<_> = hints(b" a=b; hostgroup = 2 ;x; min_gtid=u:1-2").collect();
        assert_eq!(
            found,
            [("a", "b"), ("hostgroup", "2"), ("min_gtid", "u:1-2")]
        );
    }

    #[test]
    fn statements_end_at_semicolons_outside_strings_comments_and_programs() {
        let found = |sql: &'static str| {
            statements(sql.as_bytes())
                .map(|r| &sql[r])
                .collect::<Vec<_>>()
        };
        assert_eq!(
            found(" SELECT ';' ; -- ;\n ; UPDATE t /* ; */ SET a=1 ;"),
            ["SELECT ';'", "UPDATE t /* ; */ SET a=1"]
        );
        assert_eq!(
            found("CREATE PROCEDURE p() BEGIN SELECT 1; END; x"),
            ["CREATE PROCEDURE p() BEGIN SELECT 1; END; x"]
        );
        assert_eq!(found("BEGIN; COMMIT"), ["BEGIN", "COMMIT"]);
        assert!(found(" ; /* a */").is_empty());
    }

    #[test]
    fn quotes_are_undone() {
        assert_eq!(&*unquote(b"'it''s\\n'"), b"it's\n");
        assert_eq!(&*unquote(b"`a``\\b`"), b"a`\\b");
        assert_eq!(&*unquote(b"plain"), b"plain");
        assert_eq!(&*unquote(b"'"), b"'");
    }
}
