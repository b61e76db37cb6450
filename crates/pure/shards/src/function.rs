//! Functions from a key to a bucket.

use crate::key::Value;
use crate::scripted::Scripted;
use std::fmt;

/// Result of a function for a key. Rows of one bucket are in one partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bucket {
    /// A number.
    Number(i128),
    /// A text, folded as the key's comparison demands.
    Text(Vec<u8>),
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => String::from_utf8_lossy(text).fmt(f),
        }
    }
}

/// A function, with its argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Function {
    /// The key itself; a partition has one value.
    None,
    /// The key itself; a partition has a list of values.
    List,
    /// The key itself; a partition has ranges of numbers or dates.
    Range,
    /// The remainder, never negative.
    Mod(u32),
    /// The quotient, rounded down.
    Div(u32),
    /// So many characters from the left.
    Prefix(u32),
    /// A date in this format.
    Date(String),
    /// A hash, from 0 to one less than this.
    Hash(u32),
    /// A script.
    Lua(Scripted),
}

/// Letters of a date's format, as MySQL's DATE_FORMAT has them.
const DATE_LETTERS: &[u8] = b"YmdHis";

const FORMS: &str =
    "NONE(), MOD(n), DIV(n), PREFIX(n), DATE('format'), RANGE(), LIST(), HASH(n), LUA('name')";

impl Function {
    /// Reads `PREFIX(3)` and its like.
    ///
    /// # Errors
    /// A predicate: why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (name, argument) = match text.split_once('(') {
            Some((name, rest)) => {
                let inside = rest.trim_end().strip_suffix(')');
                let inside = inside.ok_or_else(|| format!("has no ')' at its end: '{text}'"))?;
                (name.trim(), inside.trim())
            }
            None => (text, ""),
        };
        let name = name.to_ascii_uppercase();
        let number = || match argument.parse::<u32>() {
            Ok(number @ 1..=1_000_000_000) => Ok(number),
            _ => Err(format!(
                "{name} needs a number from 1 to 1000000000; '{argument}' is none"
            )),
        };
        let quotes: &[char] = &['\'', '"', '‘', '’', '“', '”'];
        let inside = argument.trim_matches(quotes);
        let without = |function| match argument.is_empty() {
            true => Ok(function),
            false => Err(format!("{name} takes no argument; '{argument}' is one")),
        };
        match name.as_str() {
            "NONE" => without(Self::None),
            "LIST" => without(Self::List),
            "RANGE" => without(Self::Range),
            "MOD" => number().map(Self::Mod),
            "DIV" => number().map(Self::Div),
            "PREFIX" => number().map(Self::Prefix),
            "HASH" => number().map(Self::Hash),
            "DATE" => date_format(inside).map(Self::Date),
            "LUA" if !inside.is_empty() => {
                let (script, sum) = argument.split_once(',').unwrap_or((argument, ""));
                let bare = |text: &str| text.trim().trim_matches(quotes).to_owned();
                Ok(Self::Lua(Scripted::new(bare(script), bare(sum))))
            }
            _ => Err(format!("must be one of {FORMS}; '{text}' is not")),
        }
    }

    /// Returns what the function makes of a key. `None` for NULL, for a key that it is not made
    /// for, and where a script would have to say.
    #[must_use]
    pub fn bucket(&self, value: &Value) -> Option<Bucket> {
        match (self, value) {
            (_, Value::Null) => None,
            (Self::Lua(script), value) => script.bucket(value).ok(),
            (Self::None | Self::List | Self::Range, Value::Number(number)) => {
                Some(Bucket::Number(*number))
            }
            (Self::None | Self::List | Self::Range, other) => Some(Bucket::Text(other.text())),
            (Self::Mod(by), Value::Number(number)) => {
                Some(Bucket::Number(number.rem_euclid(i128::from(*by))))
            }
            (Self::Div(by), Value::Number(number)) => {
                Some(Bucket::Number(number.div_euclid(i128::from(*by))))
            }
            (Self::Prefix(characters), other) => {
                let text = other.text();
                let length = text.len().min(*characters as usize);
                Some(Bucket::Text(text[..length].trim_ascii_end().to_vec()))
            }
            (Self::Date(format), Value::Moment(moment)) => {
                Some(Bucket::Text(moment.formatted(format)))
            }
            (Self::Hash(buckets), other) => {
                let hash = sql::spooky::hash64(&other.text(), 0);
                Some(Bucket::Number(i128::from(hash % u64::from(*buckets))))
            }
            (Self::Mod(_) | Self::Div(_) | Self::Date(_), _) => None,
        }
    }

    /// Whether a greater key never has a lesser bucket.
    pub(crate) fn keeps_order(&self) -> bool {
        match self {
            Self::None | Self::List | Self::Range | Self::Div(_) => true,
            Self::Date(format) => is_in_order(format),
            Self::Mod(_) | Self::Prefix(_) | Self::Hash(_) | Self::Lua(_) => false,
        }
    }

    /// How many buckets there can be, if that is bounded.
    pub(crate) const fn buckets(&self) -> Option<u32> {
        match self {
            Self::Mod(buckets) | Self::Hash(buckets) => Some(*buckets),
            _ => None,
        }
    }

    /// How much of a text it looks at.
    pub(crate) fn characters(&self) -> usize {
        match self {
            Self::Prefix(characters) => *characters as usize,
            _ => usize::MAX,
        }
    }
}

fn date_format(format: &str) -> Result<String, String> {
    let mut bytes = format.bytes();
    let mut letters = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' if bytes
                .next()
                .is_some_and(|letter| DATE_LETTERS.contains(&letter)) =>
            {
                letters += 1
            }
            b'%' => {
                return Err(format!(
                    "DATE knows %Y, %m, %d, %H, %i and %s; '{format}' has another"
                ));
            }
            b' '..=b'~' => {}
            _ => {
                return Err(format!(
                    "DATE needs printable ASCII; '{format}' has something else"
                ));
            }
        }
    }
    match letters {
        0 => Err("DATE needs a format such as '%Y-%m'".into()),
        _ => Ok(format.to_owned()),
    }
}

/// Whether the letters are years, months, days and so on from the left, none left out.
fn is_in_order(format: &str) -> bool {
    let letters = format.as_bytes().windows(2).filter(|pair| pair[0] == b'%');
    let mut wanted = DATE_LETTERS.iter();
    letters
        .map(|pair| pair[1])
        .all(|letter| wanted.next() == Some(&letter))
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("NONE()"),
            Self::List => f.write_str("LIST()"),
            Self::Range => f.write_str("RANGE()"),
            Self::Mod(by) => write!(f, "MOD({by})"),
            Self::Div(by) => write!(f, "DIV({by})"),
            Self::Prefix(characters) => write!(f, "PREFIX({characters})"),
            Self::Hash(buckets) => write!(f, "HASH({buckets})"),
            Self::Date(format) => write!(f, "DATE('{format}')"),
            Self::Lua(script) => script.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Reading};
    use sql::tree::Literal;
    use std::borrow::Cow;

    fn bucket(function: &str, key: &str, literal: &str) -> String {
        let function = Function::parse(function).unwrap();
        let key = Key::parse(key, &function).unwrap();
        let literal = match literal.parse::<i64>() {
            Ok(_) => Literal::Number(
                literal.trim_start_matches('-').as_bytes(),
                literal.starts_with('-'),
            ),
            Err(_) => Literal::Text(Cow::Borrowed(literal.as_bytes())),
        };
        match key.compared(&literal, &function) {
            Reading::Is(value) => function
                .bucket(&value)
                .map_or_else(|| "none".into(), |b| b.to_string()),
            other => format!("{other:?}"),
        }
    }

    /// A73: 1, 4 and 7 are in one bucket of MOD(3).
    #[test]
    fn mod_has_remainders_that_are_never_negative() {
        for (key, wanted) in [("1", "1"), ("4", "1"), ("7", "1"), ("3", "0"), ("-1", "2")] {
            assert_eq!(bucket("MOD(3)", "", key), wanted);
        }
    }

    /// A74: the seed's three words are in one bucket of PREFIX(3).
    #[test]
    fn prefix_is_by_characters_from_the_left() {
        for key in ["foo", "foobar", "footaliciuos", "FOOD", "foo  "] {
            assert_eq!(bucket("PREFIX(3)", "VARCHAR", key), "foo");
        }
        assert_eq!(bucket("PREFIX(3)", "VARCHAR", "fo"), "fo");
        assert_eq!(bucket("prefix(2)", "INT", "1234"), "12");
        assert_eq!(bucket("PREFIX(3)", "VARCHAR BINARY", "Foo"), "Foo");
    }

    /// A75, A76, A77.
    #[test]
    fn none_div_and_date_make_the_buckets_of_the_seed() {
        assert_eq!(bucket("NONE()", "VARCHAR", "books"), "books");
        assert_eq!(bucket("DIV(1000)", "", "999"), "0");
        assert_eq!(bucket("DIV(1000)", "", "-1"), "-1");
        assert_eq!(bucket("DIV(10)", "", "123456789012"), "12345678901");
        for key in ["2008-12-22", "2008-12-01 23:59:59"] {
            assert_eq!(bucket("DATE(\"%Y-%m\")", "", key), "2008-12");
        }
    }

    #[test]
    fn a_function_that_is_none_says_what_it_should_be() {
        for (text, words) in [
            (
                "PREFIX",
                "PREFIX needs a number from 1 to 1000000000; '' is none",
            ),
            (
                "MOD(0)",
                "MOD needs a number from 1 to 1000000000; '0' is none",
            ),
            ("PREFIX(3", "has no ')' at its end: 'PREFIX(3'"),
            ("NONE(1)", "NONE takes no argument; '1' is one"),
            (
                "DATE('%W')",
                "DATE knows %Y, %m, %d, %H, %i and %s; '%W' has another",
            ),
        ] {
            assert_eq!(Function::parse(text).unwrap_err(), words);
        }
        assert!(
            Function::parse("MD5()")
                .unwrap_err()
                .starts_with("must be one of NONE(), ")
        );
    }

    #[test]
    fn what_is_printed_is_read_again() {
        for text in [
            "NONE()",
            "LIST()",
            "RANGE()",
            "MOD(3)",
            "DIV(10)",
            "PREFIX(3)",
            "DATE('%Y-%m')",
            "HASH(16)",
            "LUA('x')",
            "LUA('x', '9f86d081')",
        ] {
            assert_eq!(Function::parse(text).unwrap().to_string(), text);
        }
    }

    /// A hash that changed would leave every row where nobody looks for it.
    #[test]
    fn a_hash_is_for_ever() {
        let buckets =
            ["1", "2", "3", "anna", "ANNA "].map(|key| bucket("HASH(1000)", "VARCHAR", key));
        assert_eq!(buckets[3], buckets[4]);
        let bucket = Function::Hash(1000).bucket(&Value::Text(b"anna".to_vec()));
        assert_eq!(bucket, Some(Bucket::Number(HASH_OF_ANNA)));
    }

    const HASH_OF_ANNA: i128 = 884;
}
