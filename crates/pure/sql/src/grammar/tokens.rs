//! A statement as the grammar looks at it: names, values, signs, and the words that mean something
//! between them.

use crate::parts::{Part, Parts};

/// One token, and where it begins.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) what: What<'a>,
    pub(super) start: usize,
}

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// A word that no server takes for a name.
    Reserved(&'static str),
    /// A word that may be a name, and may be more: what stands beside it says nothing.
    Syntax(&'a str),
    /// A name.
    Name,
    /// A string, which may be an alias; in double quotes also a name.
    String {
        double: bool,
    },
    /// Any other value.
    Value,
    Sign(u8),
    End,
}

impl What<'_> {
    pub(super) fn is(self, word: &str) -> bool {
        match self {
            Self::Reserved(known) => known == word,
            Self::Syntax(written) => written.eq_ignore_ascii_case(word),
            _ => false,
        }
    }

    pub(super) fn is_any(self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }
}

/// Words that MySQL since 5.7 and MariaDB since 10.2 reserve in every mode, as far as they tell
/// what stands beside them. Sorted.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "ALL", "AND", "AS", "ASC", "BETWEEN", "BY", "CALL", "CASE", "COLLATE", "CROSS", "DELETE", "DESC", "DISTINCT", "DISTINCTROW", "DIV",
    "ELSE", "EXISTS", "FETCH", "FOR", "FORCE", "FROM", "GROUP", "HAVING", "HIGH_PRIORITY", "IGNORE", "IN", "INDEX", "INNER", "INSERT",
    "INTERVAL", "INTO", "IS", "JOIN", "KEY", "LEFT", "LIKE", "LIMIT", "LOCK", "LOW_PRIORITY", "MOD", "NATURAL", "NOT", "ON", "OR", "ORDER",
    "OUTER", "PARTITION", "PROCEDURE", "REGEXP", "REPLACE", "RIGHT", "RLIKE", "SELECT", "SET", "SQL_BIG_RESULT", "SQL_CALC_FOUND_ROWS",
    "SQL_SMALL_RESULT", "STRAIGHT_JOIN", "THEN", "UNION", "UNIQUE", "UPDATE", "USE", "USING", "VALUES", "WHEN", "WHERE", "WITH", "XOR",
];

/// Other words of the servers' grammars that stand beside names and values in such statements, in
/// some version or mode. Sorted.
#[rustfmt::skip]
const SYNTAX: &[&str] = &[
    "AGAINST", "ANY", "ARRAY", "ASCII", "AT", "BINARY", "BOOLEAN", "BOTH", "BULK", "BYTE", "CHAR", "CHARACTER", "CHARSET", "CONCURRENT",
    "CONTAINS", "CUBE", "CURRENT", "CURRENT_DATE", "CURRENT_ROLE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "CYCLE", "DATE",
    "DATETIME", "DAY", "DAY_HOUR", "DAY_MICROSECOND", "DAY_MINUTE", "DAY_SECOND", "DEFAULT", "DELAYED", "DUMPFILE", "DUPLICATE", "EMPTY",
    "END", "ERROR", "ESCAPE", "EXAMINED", "EXCEPT", "EXCLUDE", "EXPANSION", "FIELDS", "FILTER", "FIRST", "FOLLOWING", "FORMAT",
    "FRAC_SECOND", "FULL", "GROUPING", "GROUPS", "HOUR", "HOUR_MICROSECOND", "HOUR_MINUTE", "HOUR_SECOND", "IMMEDIATE", "INTERSECT", "JSON",
    "LANGUAGE", "LAST", "LATERAL", "LEADING", "LEVEL", "LINES", "LOCAL", "LOCALTIME", "LOCALTIMESTAMP", "LOCKED", "MATCH", "MAXVALUE",
    "MEMBER", "MICROSECOND", "MINUS", "MINUTE", "MINUTE_MICROSECOND", "MINUTE_SECOND", "MODE", "MONTH", "NCHAR", "NESTED", "NEXT", "NO",
    "NOCYCLE", "NOWAIT", "NULLS", "OF", "OFFSET", "ONLY", "ORDINALITY", "OTHERS", "OUTFILE", "OVER", "OVERLAPS", "PATH", "PERIOD",
    "PRECEDING", "PREVIOUS", "PRIOR", "QUALIFY", "QUARTER", "QUERY", "QUICK", "RANGE", "RECURSIVE", "RESPECT", "RESTRICT", "RETURN",
    "RETURNING", "ROLLUP", "ROW", "ROWNUM", "ROWS", "SAMPLE", "SECOND", "SECOND_MICROSECOND", "SEPARATOR", "SETS", "SHARE", "SIBLINGS",
    "SIGNED", "SKIP", "SOME", "SOUNDS", "SQL_BUFFER_RESULT", "SQL_CACHE", "SQL_NO_CACHE", "SQL_TSI_DAY", "SQL_TSI_FRAC_SECOND",
    "SQL_TSI_HOUR", "SQL_TSI_MINUTE", "SQL_TSI_MONTH", "SQL_TSI_QUARTER", "SQL_TSI_SECOND", "SQL_TSI_WEEK", "SQL_TSI_YEAR", "SYSTEM",
    "TABLE", "TABLESAMPLE", "TIES", "TIME", "TIMESTAMP", "TRAILING", "UNBOUNDED", "UNICODE", "UNKNOWN", "UNSIGNED", "UTC_DATE", "UTC_TIME",
    "UTC_TIMESTAMP", "VALUE", "VERSIONING", "WAIT", "WEEK", "WINDOW", "WITHIN", "WORK", "YEAR", "YEAR_MONTH", "ZONE",
];

/// Words that bring a grammar of their own. Sorted.
const STRANGE: &[&str] = &[
    "BEGIN",
    "CONNECT",
    "DECLARE",
    "JSON_TABLE",
    "MATCH_RECOGNIZE",
    "PIVOT",
    "PORTION",
    "START",
    "SYSTEM_TIME",
    "XMLTABLE",
];

/// The longest of these words is shorter.
const WORD_MAX: usize = 24;

fn known(words: &[&'static str], upper: &str) -> Option<&'static str> {
    words
        .binary_search(&upper)
        .ok()
        .and_then(|at| words.get(at).copied())
}

/// The tokens; `None` if there is something among them that is not known here.
pub(super) fn of(text: &str) -> Option<Vec<Token<'_>>> {
    let mut parts = Parts::of_template(text);
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut end = 0;
    while let Some(part) = parts.next() {
        let start = end
            + text
                .get(end..)?
                .find(|c: char| !c.is_whitespace())
                .unwrap_or(0);
        end = parts.position();
        // A name after `.` or `@` is one, whatever it is.
        let named = matches!(
            tokens.last(),
            Some(Token {
                what: What::Sign(b'.' | b'@'),
                ..
            })
        );
        let what = match part {
            Part::Keyword(word) => word_of(std::str::from_utf8(word).ok()?)?,
            Part::Name(_) if parts.is_quoted() || named => What::Name,
            Part::Name(word) => match word {
                std::borrow::Cow::Borrowed(word) => word_of(std::str::from_utf8(word).ok()?)?,
                std::borrow::Cow::Owned(_) => What::Name,
            },
            Part::Value(value) => match value.first() {
                Some(b'"') => What::String { double: true },
                Some(b'\'') => What::String { double: false },
                _ => What::Value,
            },
            // `a(+)` is a join of Oracle, `{d '…'}` a value of ODBC.
            Part::Sign(b')') if is_outer(&tokens) => return None,
            Part::Sign(b'{' | b'}' | b'[' | b']' | b'\\' | b';') => return None,
            Part::Sign(sign) => What::Sign(sign),
        };
        tokens.push(Token { what, start });
    }
    parts.is_sound().then_some(tokens)
}

/// Returns what an unquoted word is; `None` if it brings a grammar of its own.
fn word_of(word: &str) -> Option<What<'_>> {
    if word.len() >= WORD_MAX || !word.is_ascii() {
        return Some(What::Name);
    }
    let upper = word.to_ascii_uppercase();
    if known(STRANGE, &upper).is_some() || word.contains('$') && word.starts_with('$') {
        return None;
    }
    Some(match known(RESERVED, &upper) {
        Some(word) => What::Reserved(word),
        None if known(SYNTAX, &upper).is_some() || word.starts_with('_') => What::Syntax(word),
        None => What::Name,
    })
}

fn is_outer(tokens: &[Token<'_>]) -> bool {
    matches!(
        tokens,
        [
            ..,
            Token {
                what: What::Sign(b'('),
                ..
            },
            Token {
                what: What::Sign(b'+'),
                ..
            }
        ]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_nothing_in_them_is_too_long() {
        for list in [RESERVED, SYNTAX, STRANGE] {
            assert!(list.is_sorted() && list.iter().all(|word| word.len() < WORD_MAX));
        }
    }
}
