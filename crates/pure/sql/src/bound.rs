//! Values of a statement's `?`, and the text that has them in their places.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/literals.html>

use crate::Lexing;
use crate::tree::{Item, Literal, Node, Statement, Tree, walk};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

/// A value that a client has bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// NULL.
    Null,
    /// A number as one would write it, and whether a minus stands before it. With an exponent it is
    /// of floating point.
    Number(String, bool),
    /// A string of the session's character set.
    Text(Vec<u8>),
    /// Bytes of no character set.
    Bytes(Vec<u8>),
    /// A date, as `2008-12-24`.
    Date(String),
    /// A date and a time of day.
    Moment(String),
    /// A TIME.
    Time(String),
}

/// A number of which no server is certain to find what another finds.
const UNCERTAIN: &[u8] = b"1e1";
/// Longer names are not given to columns: servers refuse them.
const NAME_LEN_MAX: usize = 64;

impl Bound {
    /// A value of a key, as far as one is certain.
    #[must_use]
    pub fn literal(&self) -> Literal<'_> {
        match self {
            Self::Null => Literal::Null,
            Self::Number(digits, minus) => Literal::Number(digits.as_bytes(), *minus),
            Self::Text(text) | Self::Bytes(text) => Literal::Text(Cow::Borrowed(text)),
            Self::Date(text) | Self::Moment(text) => Literal::Text(Cow::Borrowed(text.as_bytes())),
            Self::Time(_) => Literal::Number(UNCERTAIN, false),
        }
    }

    /// As SQL has it; `None` where its quotes would depend on more than is known.
    #[must_use]
    pub fn sql(&self, lexing: Lexing) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.write(&mut out, lexing).then_some(out)
    }

    /// Writes it as SQL; false where its quotes would depend on more than is known.
    fn write(&self, out: &mut Vec<u8>, lexing: Lexing) -> bool {
        let typed = |out: &mut Vec<u8>, word: &str, text: &str| {
            // A date with zeros in it is none to a strict server, if it is written as one.
            let word = if has_zeros(text) { "" } else { word };
            out.extend_from_slice(format!("{word}'{text}'").as_bytes());
        };
        match self {
            Self::Null => out.extend_from_slice(b"NULL"),
            Self::Number(digits, minus) => {
                if *minus {
                    out.push(b'-');
                }
                out.extend_from_slice(digits.as_bytes());
            }
            Self::Text(text) => return write_text(out, text, lexing),
            Self::Bytes(bytes) => {
                out.extend_from_slice(b"_binary X'");
                let mut digits = String::with_capacity(bytes.len() * 2 + 1);
                for byte in bytes {
                    let _infallible = write!(digits, "{byte:02X}");
                }
                out.extend_from_slice(digits.as_bytes());
                out.push(b'\'');
            }
            Self::Date(text) => typed(out, "DATE", text),
            Self::Moment(text) => typed(out, "TIMESTAMP", text),
            Self::Time(text) => out.extend_from_slice(format!("TIME'{text}'").as_bytes()),
        }
        true
    }

    /// Writes it as a number of rows.
    fn write_limit(&self, out: &mut Vec<u8>) -> bool {
        let number = match self {
            Self::Number(digits, false) => match digits.parse::<u64>() {
                Ok(number) => Some(number),
                Err(_) => rounded(digits),
            },
            Self::Text(text) | Self::Bytes(text) => std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.trim().parse().ok()),
            _ => None,
        };
        let Some(number) = number else {
            return false;
        };
        out.extend_from_slice(number.to_string().as_bytes());
        true
    }
}

/// A number of rows that was bound as one of floating point.
fn rounded(digits: &str) -> Option<u64> {
    let number: f64 = digits.parse().ok()?;
    (0.0..9e15).contains(&number).then(|| number.round() as u64)
}

/// Whether year, month or day is zero.
fn has_zeros(date: &str) -> bool {
    let day = date.split(' ').next().unwrap_or_default();
    day.split('-')
        .any(|part| part.bytes().all(|digit| digit == b'0'))
}

/// A string in single quotes, in the character set that the statement has.
fn write_text(out: &mut Vec<u8>, text: &[u8], lexing: Lexing) -> bool {
    let is_clear = match lexing {
        Lexing::Escapes | Lexing::NoEscapes => true,
        Lexing::Shifts(_) => text.is_ascii(),
        Lexing::Blanks { .. } => text.is_ascii() && !text.contains(&b'\\'),
        Lexing::Unsure { .. } => text.is_ascii() && !text.contains(&b'\\'),
    };
    out.push(b'\'');
    for byte in text {
        if *byte == b'\'' || *byte == b'\\' && lexing.escapes() {
            out.push(*byte);
        }
        out.push(*byte);
    }
    out.push(b'\'');
    is_clear
}

/// A statement with values in the places of its `?`, whatever a server's `sql_mode` says of
/// backslashes. `charset`: that of the connection on which it is sent, for text that could be read
/// in two ways.
///
/// # Errors
/// The number of its `?`, where there are not as many values; or the value that has no place there,
/// from 1 on.
pub fn filled(text: &[u8], values: &[Bound], charset: &str) -> Result<Vec<u8>, Unfilled> {
    let lexing = Lexing::Unsure { shifts: false };
    let places = places(text, Lexing::Escapes);
    if places.len() != values.len() {
        return Err(Unfilled::Places(places.len()));
    }
    let mut out = Vec::with_capacity(text.len() + 16 * values.len());
    let mut from = 0;
    for (number, ((at, limits), value)) in places.into_iter().zip(values).enumerate() {
        out.extend_from_slice(text.get(from..at.start).unwrap_or_default());
        from = at.end;
        let begins = out.len();
        let is_written = match limits {
            true => value.write_limit(&mut out),
            false => value.write(&mut out, lexing),
        };
        if is_written {
            continue;
        }
        let Bound::Text(bytes) = value else {
            return Err(Unfilled::Value(number + 1));
        };
        if limits {
            return Err(Unfilled::Value(number + 1));
        }
        out.truncate(begins);
        let mut digits = format!("_{charset} X'");
        for byte in bytes {
            let _infallible = write!(digits, "{byte:02X}");
        }
        out.extend_from_slice(digits.as_bytes());
        out.push(b'\'');
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    Ok(out)
}

/// Why [`filled`] has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfilled {
    /// The text has so many places, and not as many values.
    Places(usize),
    /// The value with this number, from 1 on, cannot stand where it is to stand.
    Value(usize),
}

/// The places of the `?` of a text, and whether each is a number of LIMIT.
fn places(text: &[u8], lexing: Lexing) -> Vec<(Range<usize>, bool)> {
    let mut places = Vec::new();
    let mut limits = false;
    for token in lexing.words(text) {
        let is_place = token.is_sign(b'?');
        if is_place {
            places.push((token.start..token.end(), limits));
        }
        let is_number = token.text.iter().all(u8::is_ascii_digit);
        limits = token.is("LIMIT")
            || limits && (is_place || is_number || token.is_sign(b',') || token.is("OFFSET"));
    }
    places
}

/// For each `?` of a text whether it is a number of LIMIT.
#[must_use]
pub fn limits(text: &[u8], lexing: Lexing) -> Vec<bool> {
    let places = places(text, lexing).into_iter();
    places.map(|(_, limits)| limits).collect()
}

/// A column that is called by its text, in which there is a `?`.
fn is_called_by_place(item: &Item<'_>) -> bool {
    let mut found = false;
    walk(&item.expression, &mut |inner| {
        found |= matches!(inner.node, Node::Parameter(_));
    });
    found && item.alias.is_none() && !matches!(item.expression.node, Node::Star(_))
}

/// Whether rows are in the order of a value: a number that is written there is a column's instead.
fn orders_by_place(tree: &Tree<'_>) -> bool {
    let Statement::Query(query) = &tree.statement else {
        return false;
    };
    let keys = query
        .selects
        .iter()
        .flat_map(|select| select.group.iter().chain(&select.order));
    keys.chain(&query.order)
        .any(|key| matches!(key.expression.node, Node::Parameter(_)))
}

/// A statement with its values put in, whose columns are called as before; `None` where a value
/// cannot be written for certain.
#[must_use]
pub fn put_in(text: &[u8], tree: &Tree<'_>, lexing: Lexing, values: &[Bound]) -> Option<Vec<u8>> {
    let places = places(text, lexing);
    let is_clear = places.len() == tree.parameters && places.len() <= values.len();
    if !is_clear || orders_by_place(tree) {
        return None;
    }
    let mut pieces: Vec<(Range<usize>, Vec<u8>)> = Vec::with_capacity(places.len());
    for ((at, limits), value) in places.into_iter().zip(values) {
        let mut with = vec![b' '];
        let is_written = match limits {
            true => value.write_limit(&mut with),
            false => value.write(&mut with, lexing),
        };
        if !is_written {
            return None;
        }
        with.push(b' ');
        pieces.push((at, with));
    }
    if let Statement::Query(query) = &tree.statement {
        let items = query.selects.first().map_or(&[][..], |first| &first.items);
        for item in items.iter().filter(|item| is_called_by_place(item)) {
            let called = std::str::from_utf8(text.get(item.at.clone())?).ok()?;
            if called.len() <= NAME_LEN_MAX {
                let name = format!(" AS {}", crate::literal::name(called));
                pieces.push((item.at.end..item.at.end, name.into_bytes()));
            }
        }
    }
    pieces.sort_by_key(|(at, _)| (at.start, at.end));
    let mut out = Vec::with_capacity(text.len() + 64);
    let mut from = 0;
    for (at, with) in pieces {
        out.extend_from_slice(text.get(from..at.start)?);
        out.extend_from_slice(&with);
        from = at.end;
    }
    out.extend_from_slice(text.get(from..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{DoubleQuotes, tree};

    fn said(text: &str, lexing: Lexing, values: &[Bound]) -> Option<String> {
        let tree = tree(text.as_bytes(), lexing, DoubleQuotes::Strings).expect("a statement");
        let out = put_in(text.as_bytes(), &tree, lexing, values)?;
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn values_fill_a_text_that_every_mode_reads_alike() {
        let filled = |text: &str, values: &[Bound]| {
            let text = filled(text.as_bytes(), values, "utf8mb4");
            text.map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        let text = |text: &str| Bound::Text(text.as_bytes().to_vec());
        let one = Bound::Number("1".into(), true);
        assert_eq!(
            filled("SELECT '?', ?, ? /* ? */", &[one.clone(), text("it's")]).as_deref(),
            Ok("SELECT '?', -1, 'it''s' /* ? */")
        );
        assert_eq!(
            filled("?, ?", &[text("\\é"), Bound::Null]).as_deref(),
            Ok("_utf8mb4 X'5CC3A9', NULL")
        );
        let two = Bound::Number("2".into(), false);
        assert_eq!(filled("LIMIT ?", &[two]).as_deref(), Ok("LIMIT 2"));
        assert_eq!(filled("LIMIT ?", &[one]), Err(Unfilled::Value(1)));
        assert_eq!(filled("?", &[]), Err(Unfilled::Places(1)));
    }

    #[test]
    fn values_stand_where_the_places_were() {
        let text = "SELECT a, ? AS x, b+? FROM t WHERE c='?' AND d=? /* ? */ LIMIT ?, ?";
        let values = [
            Bound::Null,
            Bound::Number("7".into(), true),
            Bound::Text(b"it's \\".to_vec()),
            Bound::Text(b"5".to_vec()),
            Bound::Number("1e1".into(), false),
        ];
        let wanted = "SELECT a,  NULL  AS x, b+ -7  AS `b+?` FROM t WHERE c='?' AND d= 'it''s \\\\'  /* ? */ LIMIT  5 ,  10 ";
        assert_eq!(
            said(text, Lexing::Escapes, &values).as_deref(),
            Some(wanted)
        );
        let text = "UPDATE t SET a = ?, b = ?, c = ?, d = ? WHERE e = ?";
        let values = [
            Bound::Bytes(vec![0, 255]),
            Bound::Date("2008-12-24".into()),
            Bound::Moment("0000-00-00 00:00:00".into()),
            Bound::Time("-25:00:00".into()),
            Bound::Text(b"\\".to_vec()),
        ];
        let wanted = "UPDATE t SET a =  _binary X'00FF' , b =  DATE'2008-12-24' , c =  '0000-00-00 00:00:00' , d =  TIME'-25:00:00'  WHERE e =  '\\' ";
        assert_eq!(
            said(text, Lexing::NoEscapes, &values).as_deref(),
            Some(wanted)
        );
    }

    #[test]
    fn a_value_whose_quotes_are_not_certain_is_not_written() {
        let text = "SELECT a FROM t WHERE b = ?";
        let value = |text: &[u8]| [Bound::Text(text.to_vec())];
        let unsure = Lexing::Unsure { shifts: false };
        assert!(said(text, unsure, &value(b"\\")).is_none());
        assert!(said(text, unsure, &value(b"a'")).is_some());
        assert!(said(text, Lexing::Escapes, &[]).is_none());
        let order = "SELECT a FROM t ORDER BY ?";
        let one = [Bound::Number("1".into(), false)];
        assert!(said(order, Lexing::Escapes, &one).is_none());
        let limit = "SELECT a FROM t LIMIT ?";
        assert!(said(limit, Lexing::Escapes, &[Bound::Null]).is_none());
        assert!(said(limit, Lexing::Escapes, &value(b"1 OR 1")).is_none());
    }

    #[test]
    fn a_time_says_no_key() {
        let time = Bound::Time("10:00:00".into());
        assert_eq!(time.literal(), Literal::Number(b"1e1", false));
    }
}
