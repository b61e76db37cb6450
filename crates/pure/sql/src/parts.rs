//! A statement as a row of keywords, names, signs and whole values: what templates compare.

use crate::functions;
use crate::lexing::Lexing;
use crate::words::{Kind, Token, Words, end_of_quoted, unquote};
use std::borrow::Cow;

/// One part of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A reserved word, or the name of one of the server's functions before `(`, as written.
    Keyword(&'a [u8]),
    /// Any other word, or a quoted name, without its quotes.
    Name(Cow<'a, [u8]>),
    /// A sign.
    Sign(u8),
    /// A literal with its sign and introducer, NULL, TRUE, FALSE, or a parameter.
    Value(Cow<'a, [u8]>),
}

/// The parts of a statement, up to a `;` at its end.
pub(crate) struct Parts<'a> {
    text: &'a [u8],
    words: Words<'a>,
    escapes: bool,
    /// `:name` and `?2` are values.
    template: bool,
    /// A value may begin here: a sign belongs to it.
    operand: bool,
    /// After `.` or `@` every word is a name.
    name: bool,
    /// The last part was in backquotes.
    quoted: bool,
    sound: bool,
}

/// Words that are read in any case. Sorted. What servers reserve, and what is next to it.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "ALL", "ALTER", "ANALYZE", "AND", "ANY", "AS", "ASC", "BEFORE", "BETWEEN", "BINARY", "BOTH", "BY", "CALL", "CASCADE", "CASE", "CHANGE",
    "CHARACTER", "CHECK", "COLLATE", "CONSTRAINT", "CONVERT", "CREATE", "CROSS", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP",
    "CURRENT_USER", "DATABASE", "DATABASES", "DEFAULT", "DELAYED", "DELETE", "DESC", "DESCRIBE", "DISTINCT", "DISTINCTROW", "DIV", "DROP",
    "DUAL", "DUPLICATE", "ELSE", "END", "ESCAPE", "ESCAPED", "EXCEPT", "EXISTS", "EXPLAIN", "FOR", "FORCE", "FROM", "FULLTEXT", "GRANT",
    "GROUP", "HAVING", "HIGH_PRIORITY", "IF", "IGNORE", "IN", "INDEX", "INNER", "INSERT", "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN",
    "KEY", "KEYS", "KILL", "LEADING", "LEFT", "LIKE", "LIMIT", "LOAD", "LOCALTIME", "LOCALTIMESTAMP", "LOCK", "LOCKED", "LOW_PRIORITY",
    "MATCH", "MAXVALUE", "MOD", "MODE", "NATURAL", "NOT", "NOWAIT", "OFFSET", "ON", "OPTIMIZE", "OPTION", "OR", "ORDER", "OUTER", "OVER",
    "PARTITION", "PRIMARY", "PROCEDURE", "RANGE", "RECURSIVE", "REGEXP", "RENAME", "REPLACE", "RIGHT", "RLIKE", "ROLLUP", "ROW", "ROWS",
    "SELECT", "SEPARATOR", "SET", "SHARE", "SHOW", "SKIP", "SOME", "SQL_BIG_RESULT", "SQL_CALC_FOUND_ROWS", "SQL_NO_CACHE",
    "SQL_SMALL_RESULT", "STRAIGHT_JOIN", "TABLE", "THEN", "TO", "TRAILING", "TRUNCATE", "UNION", "UNIQUE", "UPDATE", "USE", "USING",
    "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "VALUES", "WHEN", "WHERE", "WINDOW", "WITH", "XOR",
];

/// Those of them that stand for a value: a sign after them is an operator.
const OPERANDS: [&str; 12] = [
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "DEFAULT",
    "END",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "MAXVALUE",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
];

/// Character sets that an introducer may name.
#[rustfmt::skip]
const CHARSETS: [&str; 41] = [
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932", "dec8", "eucjpms",
    "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5",
    "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32", "utf8", "utf8mb3",
];

fn is_keyword(word: &[u8]) -> bool {
    let mut upper = [0; 20];
    let Some(upper) = upper.get_mut(..word.len()) else {
        return false;
    };
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    KEYWORDS
        .binary_search_by(|known| known.as_bytes().cmp(upper))
        .is_ok()
}

fn is_introducer(word: &[u8]) -> bool {
    let [b'_', charset @ ..] = word else {
        return false;
    };
    charset.eq_ignore_ascii_case(b"utf8mb4")
        || CHARSETS
            .iter()
            .any(|known| charset.eq_ignore_ascii_case(known.as_bytes()))
}

impl<'a> Parts<'a> {
    pub(crate) fn of(text: &'a [u8], lexing: Lexing) -> Self {
        Self {
            text,
            words: lexing.words(text),
            escapes: lexing.escapes(),
            template: false,
            operand: true,
            name: false,
            quoted: false,
            sound: true,
        }
    }

    pub(crate) fn of_template(text: &'a str) -> Self {
        Self::of_template_bytes(text.as_bytes())
    }

    pub(crate) fn of_template_bytes(text: &'a [u8]) -> Self {
        Self {
            template: true,
            ..Self::of(text, Lexing::Escapes)
        }
    }

    /// Whether the last part was a name in backquotes.
    pub(crate) const fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// Just after the last part.
    pub(crate) fn position(&self) -> usize {
        self.words.position()
    }

    /// Whether all quotes were closed, and every server reads what was read.
    pub(crate) fn is_sound(&self) -> bool {
        self.sound && !self.words.is_conditional()
    }

    /// The end of the number that begins at `start`, if one does and nothing hangs on to it.
    fn number(&self, start: usize) -> Option<usize> {
        let at = |i: usize| self.text.get(i).copied().unwrap_or(0);
        let digits = |from: usize| {
            self.text[from.min(self.text.len())..]
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count()
        };
        let hex = matches!((at(start), at(start + 1)), (b'0', b'x' | b'b'));
        let mut end = start;
        if hex {
            end += 2 + self.text[start + 2..]
                .iter()
                .take_while(|b| b.is_ascii_hexdigit())
                .count();
        } else {
            let whole = digits(end);
            end += whole;
            let mut fraction = 0;
            if at(end) == b'.' {
                fraction = digits(end + 1);
                end += 1 + fraction;
            }
            if whole + fraction == 0 {
                return None;
            }
            if matches!(at(end), b'e' | b'E') {
                let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
                let exponent = digits(end + 1 + sign);
                if exponent > 0 {
                    end += 1 + sign + exponent;
                }
            }
        }
        let hangs = matches!(at(end), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'.' | 0x80..);
        (!hangs).then_some(end)
    }

    /// The value that begins with this token, if one does.
    fn value(&mut self, token: Token<'a>) -> Option<Cow<'a, [u8]>> {
        // Most words are names or keywords, which is seen at once.
        let may_begin = |byte: u8| {
            byte.is_ascii_digit()
                || matches!(
                    byte.to_ascii_uppercase(),
                    b'X' | b'B' | b'N' | b'D' | b'T' | b'F' | b'_'
                )
        };
        if token.kind == Kind::Name
            || token.kind == Kind::Word && (self.name || !may_begin(token.text[0]))
        {
            return None;
        }
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        let mut token = token;
        let mut words = self.words.clone();
        if self.operand && (token.is_sign(b'-') || token.is_sign(b'+')) {
            pieces.push((token.start, token.end()));
            token = words
                .next()
                .filter(|next| next.text[0].is_ascii_digit() || next.is_sign(b'.'))?;
        }
        let first = token.text[0];
        let adjacent =
            |words: &Words<'a>, end: usize| words.peek().filter(|next| next.start == end);
        match token.kind {
            Kind::Sign if first == b'.' && !self.operand => return None,
            Kind::Sign if first == b'.' => {
                let end = self.number(token.start)?;
                words.skip_to(end);
                pieces.push((token.start, end));
            }
            Kind::Sign if first == b'?' => {
                let number = adjacent(&words, token.end())
                    .filter(|next| self.template && next.kind == Kind::Word);
                if number.is_some() {
                    words.next();
                }
                pieces.push((token.start, words.position()));
            }
            Kind::Sign if first == b':' && self.template => {
                adjacent(&words, token.end()).filter(|next| next.kind == Kind::Word)?;
                words.next();
                pieces.push((token.start, words.position()));
            }
            Kind::Word if first.is_ascii_digit() && !self.name => {
                let end = self.number(token.start)?;
                words.skip_to(end);
                pieces.push((token.start, end));
            }
            Kind::String => {
                pieces.push((token.start, token.end()));
                self.strings(token, &mut words, &mut pieces);
            }
            Kind::Word if !self.name => {
                let next = words.peek();
                let string = next.filter(|next| next.kind == Kind::String);
                let marked = token.is_any(&["X", "B", "N"])
                    && string
                        .is_some_and(|next| next.start == token.end() && next.text[0] == b'\'');
                let dated = token.is_any(&["DATE", "TIME", "TIMESTAMP"]) && string.is_some();
                if token.is_any(&["NULL", "TRUE", "FALSE"]) {
                    pieces.push((token.start, token.end()));
                } else if (marked || dated)
                    && let Some(next) = string
                {
                    words.next();
                    pieces.extend([(token.start, token.end()), (next.start, next.end())]);
                    self.strings(next, &mut words, &mut pieces);
                } else if is_introducer(token.text) {
                    // `_binary X'00'`, `_utf8mb4'x'`, `_latin1 0x41`.
                    let follows = next.filter(|next| {
                        next.kind != Kind::Sign && (string.is_some() || next.kind == Kind::Word)
                    })?;
                    let before = std::mem::replace(&mut self.words, words.clone());
                    self.words.next();
                    let literal =
                        string.is_some() || follows.text[0] == b'0' || follows.is_any(&["X", "B"]);
                    let value = if literal { self.value(follows) } else { None };
                    let Some(value) = value else {
                        self.words = before;
                        return None;
                    };
                    let gap: &[u8] = if follows.start == token.end() {
                        b""
                    } else {
                        b" "
                    };
                    return Some(Cow::Owned([token.text, gap, &value].concat()));
                } else {
                    return None;
                }
            }
            _ => return None,
        }
        self.words = words;
        Some(self.joined(&pieces))
    }

    /// Strings that follow a string are one value with it.
    fn strings(
        &mut self,
        first: Token<'a>,
        words: &mut Words<'a>,
        pieces: &mut Vec<(usize, usize)>,
    ) {
        let whole = |token: &Token<'a>| {
            end_of_quoted(token.text, 0, self.escapes) == Some(token.text.len())
        };
        let mut sound = whole(&first);
        while let Some(next) = words.peek().filter(|next| next.kind == Kind::String) {
            words.next();
            sound &= whole(&next);
            pieces.push((next.start, next.end()));
        }
        self.sound &= sound;
    }

    /// The pieces, with one blank where there was something between them.
    fn joined(&self, pieces: &[(usize, usize)]) -> Cow<'a, [u8]> {
        if let [(start, end)] = pieces {
            return Cow::Borrowed(&self.text[*start..*end]);
        }
        let mut out: Vec<u8> = Vec::new();
        let mut last = None;
        for (start, end) in pieces {
            if last.is_some_and(|last| last != *start) {
                out.push(b' ');
            }
            out.extend_from_slice(&self.text[*start..*end]);
            last = Some(*end);
        }
        Cow::Owned(out)
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let token = self.words.next()?;
        self.quoted = token.kind == Kind::Name;
        if token.is_sign(b';') && self.words.clone().all(|token| token.is_sign(b';')) {
            while self.words.next().is_some() {}
            return None;
        }
        if let Some(value) = self.value(token) {
            (self.operand, self.name) = (false, false);
            return Some(Part::Value(value));
        }
        let part = match token.kind {
            Kind::Sign => Part::Sign(token.text[0]),
            Kind::Word
                if !self.name
                    && (is_keyword(token.text)
                        || self.words.is_before(b'(') && functions::is_known(token.text)) =>
            {
                Part::Keyword(token.text)
            }
            Kind::Word => Part::Name(Cow::Borrowed(token.text)),
            Kind::Name | Kind::String => {
                self.sound &= end_of_quoted(token.text, 0, self.escapes) == Some(token.text.len());
                Part::Name(unquote(token.text))
            }
        };
        self.operand = match &part {
            Part::Sign(sign) => !matches!(sign, b')' | b']' | b'}'),
            Part::Keyword(word) => !OPERANDS
                .iter()
                .any(|operand| word.eq_ignore_ascii_case(operand.as_bytes())),
            Part::Name(_) | Part::Value(_) => false,
        };
        self.name = matches!(part, Part::Sign(b'.' | b'@'));
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> String {
        let show = |part: Part<'_>| match part {
            Part::Keyword(word) => String::from_utf8_lossy(word).to_uppercase(),
            Part::Name(name) => format!("`{}`", String::from_utf8_lossy(&name)),
            Part::Sign(sign) => char::from(sign).to_string(),
            Part::Value(value) => format!("<{}>", String::from_utf8_lossy(&value)),
        };
        Parts::of(sql.as_bytes(), Lexing::Escapes)
            .map(show)
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn values_are_whole_and_signs_belong_to_them_where_a_value_may_begin() {
        for (sql, parts) in [
            (
                "select a from `t` where b=-5;",
                "SELECT `a` FROM `t` WHERE `b` = <-5>",
            ),
            (
                "SELECT a -5, (a)-5, -5, - 5",
                "SELECT `a` - <5> , ( `a` ) - <5> , <-5> , <- 5>",
            ),
            (
                "SELECT 1.5, .5, 1., 1e5, 1.5E-3, 0x1F, 0b01, 1a",
                "SELECT <1.5> , <.5> , <1.> , <1e5> , <1.5E-3> , <0x1F> , <0b01> , `1a`",
            ),
            (
                "SELECT 'a' 'b', \"c\"'d', N'e', x'00', b'1'",
                "SELECT <'a' 'b'> , <\"c\"'d'> , <N'e'> , <x'00'> , <b'1'>",
            ),
            (
                "SELECT _utf8mb4'a', _binary X'00', _latin1 0x41, _a 'b'",
                "SELECT <_utf8mb4'a'> , <_binary X'00'> , <_latin1 0x41> , `_a` <'b'>",
            ),
            (
                "SELECT DATE'2024-01-01', TIMESTAMP '2024-01-01', date",
                "SELECT <DATE'2024-01-01'> , <TIMESTAMP '2024-01-01'> , `date`",
            ),
            (
                "SELECT NULL, true, ?, t.null, count(*), count",
                "SELECT <NULL> , <true> , <?> , `t` . `null` , COUNT ( * ) , `count`",
            ),
            (
                "SELECT 'a' /* x */ 'b', - /* y */ 5",
                "SELECT <'a' 'b'> , <- 5>",
            ),
            (
                "SELECT t.1, a.b.c, @a, @@x",
                "SELECT `t` . `1` , `a` . `b` . `c` , @ `a` , @ @ `x`",
            ),
            (
                "SELECT a BETWEEN -1 AND +2 ; ;",
                "SELECT `a` BETWEEN <-1> AND <+2>",
            ),
            ("SELECT 1; SELECT 2", "SELECT <1> ; SELECT <2>"),
        ] {
            assert_eq!(shown(sql), parts, "{sql}");
        }
    }

    #[test]
    fn the_list_of_keywords_is_sorted_and_nothing_in_it_is_too_long() {
        assert!(KEYWORDS.is_sorted());
        assert!(
            KEYWORDS
                .iter()
                .all(|word| word.len() <= 20 && is_keyword(word.as_bytes()))
        );
    }
}
