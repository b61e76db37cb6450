//! The column by which a table is spread: how its server would understand a value.
//!
//! The comparison is the server's, not ours. A value is certain if every server understands it the
//! same, whatever its mode and the column's collation; anything else is unsure.

use crate::function::Function;
use sql::tree::Literal;
use std::fmt;

/// The type of a key column, as far as it tells how values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// An integer of this range.
    Number {
        /// The name of its type.
        name: &'static str,
        /// The least and the greatest number that it holds.
        range: (i128, i128),
    },
    /// A string. `exact`: of a binary collation or of bytes; else letters' case does not matter, as
    /// far as we know.
    Text {
        /// Every letter counts.
        exact: bool,
    },
    /// A string of ENUM, which numbers do not mean.
    Enum,
    /// A date, or a date with a time of day.
    Moment {
        /// Whether the key has a time of day.
        has_time: bool,
    },
    /// Nobody said: a string, or a number.
    Unknown,
}

/// A key as the server understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer.
    Number(i128),
    /// A string, folded as far as the function looks at it.
    Text(Vec<u8>),
    /// A moment.
    Moment(Moment),
}

/// A date with a time of day: year, month, day, hour, minute, second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub [u16; 6]);

impl Value {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        match self {
            Self::Null => Vec::new(),
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Text(text) => text.clone(),
            Self::Moment(moment) => moment.formatted("%Y-%m-%d %H:%i:%s"),
        }
    }
}

impl Moment {
    /// In a format of [`Function::Date`].
    pub(crate) fn formatted(self, format: &str) -> Vec<u8> {
        let [year, month, day, hour, minute, second] = self.0;
        let mut out = String::new();
        let mut rest = format.chars();
        while let Some(next) = rest.next() {
            if next != '%' {
                out.push(next);
                continue;
            }
            match rest.next() {
                Some('Y') => out += &format!("{year:04}"),
                Some('m') => out += &format!("{month:02}"),
                Some('d') => out += &format!("{day:02}"),
                Some('H') => out += &format!("{hour:02}"),
                Some('i') => out += &format!("{minute:02}"),
                _ => out += &format!("{second:02}"),
            }
        }
        out.into_bytes()
    }

    /// `2008-12-22` or `2008-12-22 10:11:12`, and nothing that needs to be understood: a date that
    /// is none, a fraction of a second, or digits alone are unsure.
    fn parse(text: &[u8]) -> Option<Self> {
        let number = |from: usize, length: usize| {
            let digits = text.get(from..from + length)?;
            let all = digits.iter().all(u8::is_ascii_digit);
            all.then(|| {
                digits
                    .iter()
                    .fold(0, |n: u16, d| n * 10 + u16::from(d - b'0'))
            })
        };
        let is = |at: usize, sign: u8| (text.get(at) == Some(&sign)).then_some(());
        let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
        is(4, b'-').and_then(|()| is(7, b'-'))?;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u16::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        if year == 0 || !(1..=days).contains(&day) {
            return None;
        }
        let (hour, minute, second) = match text.len() {
            10 => (0, 0, 0),
            19 => {
                is(10, b' ')
                    .and_then(|()| is(13, b':'))
                    .and_then(|()| is(16, b':'))?;
                (number(11, 2)?, number(14, 2)?, number(17, 2)?)
            }
            _ => return None,
        };
        (hour < 24 && minute < 60 && second < 60)
            .then_some(Self([year, month, day, hour, minute, second]))
    }
}

/// Meaning of a literal beside a key, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading {
    /// This, on every server.
    Is(Value),
    /// No row: the comparison is never true.
    Never,
    /// The server would have to be asked.
    Unsure,
}

const NUMBERS: &[(&str, u32, bool)] = &[
    ("TINYINT", 8, true),
    ("TINYINT UNSIGNED", 8, false),
    ("SMALLINT", 16, true),
    ("SMALLINT UNSIGNED", 16, false),
    ("MEDIUMINT", 24, true),
    ("MEDIUMINT UNSIGNED", 24, false),
    ("INT", 32, true),
    ("INT UNSIGNED", 32, false),
    ("BIGINT", 64, true),
    ("BIGINT UNSIGNED", 64, false),
];

/// Strings beyond this many digits are compared with numbers as floats, which are not exact there.
const EXACT_DIGITS: usize = 15;

impl Key {
    /// Reads a type; an empty one follows from the function.
    ///
    /// # Errors
    /// A predicate: why it is none.
    pub fn parse(text: &str, function: &Function) -> Result<Self, String> {
        let text = text.trim().to_ascii_uppercase();
        let text = text.replace("INTEGER", "INT");
        if let Some((name, bits, signed)) = NUMBERS.iter().find(|(name, ..)| *name == text) {
            let range = match signed {
                true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                false => (0, (1i128 << bits) - 1),
            };
            return Ok(Self::Number { name, range });
        }
        Ok(match text.as_str() {
            "" => match function {
                // Any integer that there can be.
                Function::Mod(_) | Function::Div(_) => Self::Number {
                    name: "",
                    range: (i128::from(i64::MIN), i128::from(u64::MAX)),
                },
                Function::Date(_) => Self::Moment { has_time: true },
                _ => Self::Unknown,
            },
            "VARCHAR" | "CHAR" | "TEXT" => Self::Text { exact: false },
            "VARCHAR BINARY" | "CHAR BINARY" | "TEXT BINARY" | "VARBINARY" | "BINARY" => {
                Self::Text { exact: true }
            }
            "ENUM" => Self::Enum,
            "DATE" => Self::Moment { has_time: false },
            "DATETIME" => Self::Moment { has_time: true },
            "TIMESTAMP" => {
                return Err("must not be TIMESTAMP: what a literal means there depends on the session's time_zone; make the column a DATETIME".into());
            }
            _ => {
                return Err(format!(
                    "must be an integer type, VARCHAR, VARCHAR BINARY, VARBINARY, ENUM, DATE, DATETIME, or empty; '{text}' is not"
                ));
            }
        })
    }

    /// Why the function cannot be used with this type.
    pub(crate) fn unfit(self, function: &Function) -> Option<String> {
        let is_number = matches!(self, Self::Number { .. });
        let is_moment = matches!(self, Self::Moment { .. });
        match function {
            Function::Mod(_) | Function::Div(_) if !is_number => {
                Some(format!("{function} needs a key of numbers; {self} is none"))
            }
            Function::Date(_) if !is_moment => {
                Some(format!("{function} needs a key of dates; {self} is none"))
            }
            Function::Range if !is_number && !is_moment => Some(format!(
                "RANGE() needs a key_type of numbers or dates, as the order of strings is the collation's; {self} is none"
            )),
            _ => None,
        }
    }

    /// Whether ranges of values can be told apart.
    pub(crate) const fn has_order(self) -> bool {
        matches!(self, Self::Number { .. } | Self::Moment { .. })
    }

    /// Returns what `key = literal` asks for.
    pub(crate) fn compared(self, literal: &Literal<'_>, function: &Function) -> Reading {
        match self {
            Self::Number { range, .. } => match integer(literal) {
                Reading::Is(Value::Number(number)) if !(range.0..=range.1).contains(&number) => {
                    Reading::Never
                }
                reading => reading,
            },
            _ => self.stored(literal, function, false),
        }
    }

    /// Returns what a row has in its key for which this is written. `is_written` makes numbers
    /// strings, which a comparison does not.
    pub(crate) fn stored(
        self,
        literal: &Literal<'_>,
        function: &Function,
        is_written: bool,
    ) -> Reading {
        let digits;
        let text: &[u8] = match (self, literal) {
            (_, Literal::Null) if is_written => return Reading::Is(Value::Null),
            (_, Literal::Null) => return Reading::Never,
            (Self::Number { range, .. }, _) => {
                return match integer(literal) {
                    Reading::Is(Value::Number(number)) if (range.0..=range.1).contains(&number) => {
                        Reading::Is(Value::Number(number))
                    }
                    // What a server makes of it depends on its mode.
                    _ => Reading::Unsure,
                };
            }
            (_, Literal::Text(text)) => text,
            (Self::Text { .. } | Self::Unknown, Literal::Number(..)) if is_written => {
                match integer(literal) {
                    Reading::Is(number) => digits = number.text(),
                    _ => return Reading::Unsure,
                }
                &digits
            }
            // `name = 5` is true for '5', '05' and '5x'; a number of an ENUM is a position.
            _ => return Reading::Unsure,
        };
        if matches!(self, Self::Moment { .. }) {
            let moment = Moment::parse(text).map(|mut moment| {
                if matches!(self, Self::Moment { has_time: false }) {
                    moment.0[3..].fill(0);
                }
                Value::Moment(moment)
            });
            return moment.map_or(Reading::Unsure, Reading::Is);
        }
        let is_unclear = match self {
            // A position, if no member is called like it.
            Self::Enum => text.iter().all(u8::is_ascii_digit),
            // A column of numbers takes no text that begins with one, and finds by it.
            Self::Unknown if is_written => is_number_but_not_plain(text),
            // A column of numbers would find 0 by 'mar', and 7 by '7x'.
            Self::Unknown => !is_plain_number(text),
            _ => false,
        };
        if is_unclear {
            return Reading::Unsure;
        }
        let exact = self == Self::Text { exact: true };
        match folded(text, exact, function.characters()) {
            Some(text) => Reading::Is(Value::Text(text)),
            None => Reading::Unsure,
        }
    }

    /// A bound of a range, rounded down to what the key can be.
    pub(crate) fn bound(self, literal: &Literal<'_>, function: &Function) -> Option<Value> {
        match (self, literal) {
            (Self::Number { .. }, Literal::Number(digits, negative)) if digits.contains(&b'.') => {
                let digits = std::str::from_utf8(digits).ok()?;
                let whole = digits
                    .split('.')
                    .next()
                    .filter(|whole| whole.len() <= EXACT_DIGITS)?;
                let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
                let whole: i128 = if whole.is_empty() {
                    0
                } else {
                    whole.parse().ok()?
                };
                let down = if *negative { -whole - 1 } else { whole };
                plain.then_some(Value::Number(down))
            }
            (Self::Number { .. }, _) => match integer(literal) {
                Reading::Is(value) => Some(value),
                _ => None,
            },
            (Self::Moment { .. }, _) => match self.stored(literal, function, false) {
                Reading::Is(value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number { name: "", .. } => "a number",
            Self::Number { name, .. } => name,
            Self::Text { exact: true } => "VARCHAR BINARY",
            Self::Text { exact: false } => "VARCHAR",
            Self::Enum => "ENUM",
            Self::Moment { has_time: true } => "DATETIME",
            Self::Moment { has_time: false } => "DATE",
            Self::Unknown => "a key of unknown type",
        })
    }
}

/// An integer as a column of integers compares: `7`, `-7`, `7.0`, `7e0`, `'007'`, TRUE.
pub(crate) fn integer(literal: &Literal<'_>) -> Reading {
    let (text, negative) = match literal {
        Literal::Null => return Reading::Never,
        Literal::Truth(is) => return Reading::Is(Value::Number(i128::from(*is))),
        Literal::Number(digits, negative) => (*digits, *negative),
        Literal::Text(text) => match text.trim_ascii() {
            [b'-', digits @ ..] if digits.len() <= EXACT_DIGITS => (digits, true),
            [b'+', digits @ ..] if digits.len() <= EXACT_DIGITS => (digits, false),
            digits if digits.len() <= EXACT_DIGITS => (digits, false),
            _ => return Reading::Unsure,
        },
    };
    let is_text = matches!(literal, Literal::Text(_));
    let Ok(text) = std::str::from_utf8(text) else {
        return Reading::Unsure;
    };
    let signed = |number: i128| if negative { -number } else { number };
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let number = text.parse::<i128>();
        return number.map_or(Reading::Unsure, |n| Reading::Is(Value::Number(signed(n))));
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let small = whole.len() <= EXACT_DIGITS && fraction.len() <= EXACT_DIGITS;
    let (Ok(exponent), true) = (
        exponent.parse::<i32>(),
        digits(whole) && digits(fraction) && small,
    ) else {
        return Reading::Unsure;
    };
    if exponent != 0 || whole.is_empty() {
        return Reading::Unsure;
    }
    if fraction.bytes().any(|digit| digit != b'0') {
        // No integer is a number with a fraction; a text may round on the way to a float.
        return if is_text {
            Reading::Unsure
        } else {
            Reading::Never
        };
    }
    let number = whole.parse::<i128>();
    number.map_or(Reading::Unsure, |n| Reading::Is(Value::Number(signed(n))))
}

/// Whether a column of numbers understands it, and might mean another text by it: `007`, ` 7`, `7.0`.
fn is_number_but_not_plain(text: &[u8]) -> bool {
    sql::literal::is_number(text.trim_ascii()) && !is_plain_number(text)
}

/// An integer as every server writes it.
pub(crate) fn is_plain_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").filter(|digits| *digits != b"0");
    let digits = digits.unwrap_or(text);
    digits == b"0"
        || !digits.is_empty()
            && !digits.starts_with(b"0")
            && digits.len() <= EXACT_DIGITS
            && digits.iter().all(u8::is_ascii_digit)
}

/// A string as far as a function looks at it, so that all strings that may be equal become one: small
/// letters unless it is exact, and no blanks at the end. `None` if a character in it could be equal
/// to one that we do not know.
fn folded(text: &[u8], exact: bool, characters: usize) -> Option<Vec<u8>> {
    let seen = &text[..text.len().min(characters)];
    let known = |byte: &u8| {
        if exact {
            byte.is_ascii()
        } else {
            matches!(byte, b' '..=b'~')
        }
    };
    if !seen.iter().all(known) {
        return None;
    }
    let mut seen = seen.to_vec();
    if !exact {
        seen.make_ascii_lowercase();
    }
    while seen.last() == Some(&b' ') {
        seen.pop();
    }
    Some(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn compared(key: &str, literal: &Literal<'_>) -> Reading {
        let function = Function::None;
        Key::parse(key, &function)
            .unwrap()
            .compared(literal, &function)
    }

    fn text(text: &str) -> Literal<'_> {
        Literal::Text(Cow::Borrowed(text.as_bytes()))
    }

    #[test]
    fn a_key_of_numbers_understands_what_its_server_would() {
        let seven = Reading::Is(Value::Number(7));
        for literal in [
            text("7"),
            text("007"),
            text(" 7 "),
            text("7.0"),
            Literal::Number(b"7", false),
            Literal::Number(b"7.00", false),
        ] {
            assert_eq!(compared("INT", &literal), seven, "{literal:?}");
        }
        assert_eq!(
            compared("INT", &Literal::Number(b"7.5", false)),
            Reading::Never
        );
        assert_eq!(
            compared("TINYINT", &Literal::Number(b"128", false)),
            Reading::Never
        );
        assert_eq!(compared("INT", &Literal::Null), Reading::Never);
        for literal in [
            text("7x"),
            text(""),
            text("7.5"),
            text("9007199254740993"),
            text("7e1"),
            Literal::Number(b"1e1", false),
        ] {
            assert_eq!(compared("BIGINT", &literal), Reading::Unsure, "{literal:?}");
        }
        let big = Literal::Number(b"18446744073709551615", false);
        assert_eq!(
            compared("BIGINT UNSIGNED", &big),
            Reading::Is(Value::Number(u64::MAX.into()))
        );
    }

    #[test]
    fn a_key_of_strings_is_folded_as_far_as_all_collations_agree() {
        let mar = Reading::Is(Value::Text(b"mar".to_vec()));
        for literal in ["mar", "MAR", "Mar  "] {
            assert_eq!(compared("VARCHAR", &text(literal)), mar);
        }
        for literal in ["mär", "ma\u{301}r", "mar\u{1}", "mar\t"] {
            assert_eq!(
                compared("VARCHAR", &text(literal)),
                Reading::Unsure,
                "{literal}"
            );
        }
        assert_eq!(
            compared("VARCHAR", &Literal::Number(b"5", false)),
            Reading::Unsure
        );
        assert_eq!(
            compared("ENUM", &Literal::Number(b"1", false)),
            Reading::Unsure
        );
        let exact = Reading::Is(Value::Text(b"Mar".to_vec()));
        assert_eq!(compared("VARCHAR BINARY", &text("Mar ")), exact);
        // Of unknown type: it may be 7.
        for literal in ["007", " 7", "7.0", "+7", "-0", "seven", ""] {
            assert_eq!(compared("", &text(literal)), Reading::Unsure, "{literal}");
        }
        assert_eq!(
            compared("", &text("3pac")),
            Reading::Unsure,
            "a column of numbers finds 3"
        );
        let function = Function::Prefix(2);
        let key = Key::parse("", &function).unwrap();
        let written = |literal: &str| key.stored(&text(literal), &function, true);
        assert_eq!(written("3Pac"), Reading::Is(Value::Text(b"3p".to_vec())));
        assert_eq!(written("007"), Reading::Unsure);
        for literal in ["7", "-7", "0"] {
            assert_ne!(compared("", &text(literal)), Reading::Unsure, "{literal}");
        }
    }

    #[test]
    fn what_is_written_is_what_the_server_would_store() {
        let stored = |key: &str, literal: &Literal<'_>| {
            let function = Function::None;
            Key::parse(key, &function)
                .unwrap()
                .stored(literal, &function, true)
        };
        assert_eq!(stored("INT", &text("007")), Reading::Is(Value::Number(7)));
        assert_eq!(
            stored("TINYINT", &text("300")),
            Reading::Unsure,
            "an error, or 127"
        );
        assert_eq!(
            stored("INT", &Literal::Number(b"7.5", false)),
            Reading::Unsure
        );
        assert_eq!(
            stored("VARCHAR", &Literal::Number(b"5", false)),
            Reading::Is(Value::Text(b"5".to_vec()))
        );
        assert_eq!(stored("INT", &Literal::Null), Reading::Is(Value::Null));
    }

    #[test]
    fn a_moment_is_read_only_as_it_is_written_everywhere() {
        for literal in ["2008-12-22", "2008-12-22 10:11:12", "2000-02-29"] {
            assert_ne!(
                compared("DATETIME", &text(literal)),
                Reading::Unsure,
                "{literal}"
            );
        }
        for literal in [
            "2008-02-30",
            "2100-02-29",
            "08-12-22",
            "2008-12-31 23:59:59.9",
            "20081222",
            "0000-00-00",
            "2008-12-22T10:11:12",
        ] {
            assert_eq!(
                compared("DATETIME", &text(literal)),
                Reading::Unsure,
                "{literal}"
            );
        }
    }
}
