//! Buckets of a partition: single ones and ranges, and which partition has a bucket.

use crate::function::{Bucket, Function};
use crate::key::{Key, Reading, Value};
use sql::tree::Literal;
use std::borrow::Cow;

/// Buckets from one to another, both included; open where there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) low: Option<Bucket>,
    pub(crate) high: Option<Bucket>,
}

impl Span {
    fn one(bucket: Bucket) -> Self {
        Self {
            low: Some(bucket.clone()),
            high: Some(bucket),
        }
    }

    /// Whether the two have a bucket in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let before = |high: &Option<Bucket>, low: &Option<Bucket>| matches!((high, low), (Some(high), Some(low)) if high < low);
        !before(&self.high, &other.low) && !before(&other.high, &self.low)
    }

    /// How many numbers it has in common with a range of them.
    pub(crate) fn covers(&self, low: i128, high: i128) -> u128 {
        let bound = |bucket: &Option<Bucket>, open: i128| match bucket {
            Some(Bucket::Number(number)) => *number,
            _ => open,
        };
        let from = bound(&self.low, low).max(low);
        let to = bound(&self.high, high).min(high);
        if from > to {
            return 0;
        }
        to.abs_diff(from).saturating_add(1)
    }
}

/// Reads `partition_value`: one bucket, or for functions of numbers and ranges several with commas
/// between them, each `a`, `a..b`, `a..` or `..b`.
///
/// # Errors
/// A predicate: why it is none.
pub(crate) fn spans(text: &str, function: &Function, key: Key) -> Result<Vec<Span>, String> {
    let several = match function {
        Function::List
        | Function::Range
        | Function::Mod(_)
        | Function::Div(_)
        | Function::Hash(_) => true,
        Function::None => matches!(key, Key::Number { .. }),
        Function::Prefix(_) | Function::Date(_) | Function::Lua(_) => false,
    };
    let ranges = several && !matches!(function, Function::List);
    let pieces: Vec<&str> = match several {
        true => text.split(',').map(str::trim).collect(),
        false => vec![text],
    };
    let one = |piece: &str| bucket(piece, function, key);
    let span = |piece: &&str| match piece.split_once("..").filter(|_| ranges) {
        None => one(piece).map(Span::one),
        Some((low, high)) => {
            let end = |piece: &str| match piece.trim() {
                "" => Ok(None),
                piece => one(piece).map(Some),
            };
            let (low, high) = (end(low)?, end(high)?);
            if let (Some(low), Some(high)) = (&low, &high)
                && low > high
            {
                return Err(format!("has a range that ends before it begins: '{piece}'"));
            }
            Ok(Span { low, high })
        }
    };
    pieces.iter().map(span).collect()
}

/// Returns `partition_value` of what is left of it when the buckets of another are taken out; `None`
/// where not all of them are among it, nothing is left, or that cannot be written.
pub(crate) fn left(text: &str, taken: &str, function: &Function, key: Key) -> Option<String> {
    let (whole, taken) = (
        spans(text, function, key).ok()?,
        spans(taken, function, key).ok()?,
    );
    if matches!(function, Function::List) {
        let pieces = text.split(',').map(str::trim).zip(&whole);
        let left = pieces.filter(|(_, span)| !taken.contains(span));
        let left: Vec<_> = left.map(|(piece, _)| piece).collect();
        let all_are_there = taken.iter().all(|span| whole.contains(span));
        return (all_are_there && !left.is_empty()).then(|| left.join(","));
    }
    let mut left = stretches(&whole)?;
    for (low, high) in stretches(&taken)? {
        let at = left
            .iter()
            .position(|(from, to)| *from <= low && high <= *to)?;
        let (from, to) = left.remove(at);
        if high < to {
            left.insert(at, (high + 1, to));
        }
        if from < low {
            left.insert(at, (from, low - 1));
        }
    }
    written(&left)
}

/// Returns `partition_value` of the buckets of two; `None` where it cannot be written.
pub(crate) fn joined(one: &str, other: &str, function: &Function, key: Key) -> Option<String> {
    let mut both = spans(one, function, key).ok()?;
    both.extend(spans(other, function, key).ok()?);
    if matches!(function, Function::List) {
        return Some(format!("{one},{other}"));
    }
    // Where one value has no comma in it, two have none.
    spans("0,1", function, key)
        .ok()
        .filter(|two| two.len() == 2)?;
    let all = stretches(&both)?;
    match *all == [(i128::MIN, i128::MAX)] {
        true => Some("..".to_owned()),
        false => written(&all),
    }
}

/// Ranges of numbers as an operator writes them; `None` for none, and for all numbers.
fn written(stretches: &[(i128, i128)]) -> Option<String> {
    let shown = |(low, high): &(i128, i128)| match (*low, *high) {
        (low, high) if low == high => low.to_string(),
        (i128::MIN, high) => format!("..{high}"),
        (low, i128::MAX) => format!("{low}.."),
        (low, high) => format!("{low}..{high}"),
    };
    let all: Vec<_> = stretches.iter().map(shown).collect();
    (!all.is_empty() && stretches != [(i128::MIN, i128::MAX)]).then(|| all.join(","))
}

/// Numbers in a row, from the least on; `None` for buckets that are none.
fn stretches(spans: &[Span]) -> Option<Vec<(i128, i128)>> {
    let end = |bucket: &Option<Bucket>, open: i128| match bucket {
        None => Some(open),
        Some(Bucket::Number(number)) => Some(*number),
        Some(Bucket::Text(_)) => None,
    };
    let both = |span: &Span| Some((end(&span.low, i128::MIN)?, end(&span.high, i128::MAX)?));
    let mut all = spans.iter().map(both).collect::<Option<Vec<_>>>()?;
    all.sort_unstable();
    let mut joined: Vec<(i128, i128)> = Vec::new();
    for (low, high) in all {
        match joined.last_mut() {
            Some((_, to)) if low <= to.saturating_add(1) => *to = high.max(*to),
            _ => joined.push((low, high)),
        }
    }
    Some(joined)
}

/// One bucket as the operator writes it.
fn bucket(text: &str, function: &Function, key: Key) -> Result<Bucket, String> {
    let number = || {
        let number = text.trim().parse::<i128>();
        number
            .map_err(|_| format!("must be a number, as {function} makes numbers; '{text}' is none"))
    };
    match function {
        Function::Mod(_) | Function::Hash(_) => {
            let number = number()?;
            let buckets = function.buckets().unwrap_or_default();
            if !(0..i128::from(buckets)).contains(&number) {
                return Err(format!(
                    "must be from 0 to {}, as {function} makes no other bucket; '{text}' is not",
                    buckets.saturating_sub(1)
                ));
            }
            Ok(Bucket::Number(number))
        }
        Function::Div(_) => number().map(Bucket::Number),
        // The bucket as the script says it.
        Function::Lua(_) => Ok(Bucket::Text(text.as_bytes().to_vec())),
        Function::Date(format) => {
            let sample = crate::key::Moment([2000; 6]).formatted(format);
            if sample.is_empty() || text.is_empty() || !text.is_ascii() {
                return Err(format!(
                    "must be a date as {function} writes it; '{text}' is none"
                ));
            }
            Ok(Bucket::Text(text.as_bytes().to_vec()))
        }
        Function::None | Function::List | Function::Range | Function::Prefix(_) => {
            let literal = Literal::Text(Cow::Borrowed(text.as_bytes()));
            let reading = key.stored(&literal, function, true);
            let Reading::Is(value) = reading else {
                return Err(format!(
                    "must be a value that is certain for {key}; '{text}' is not"
                ));
            };
            if let (Function::Prefix(characters), Value::Text(_)) = (function, &value)
                && text.chars().count() > *characters as usize
            {
                return Err(format!(
                    "must have {characters} characters at most, as {function} makes no longer bucket; '{text}' has more"
                ));
            }
            function
                .bucket(&value)
                .ok_or_else(|| format!("must be a value of the key; '{text}' is none"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_partition_is_written_as_an_operator_would() {
        for (function, key_type, text, taken, wanted) in [
            ("DIV(10)", "INT", "0..9", "5..9", Some("0..4")),
            ("DIV(10)", "INT", "0..9", "3", Some("0..2,4..9")),
            ("RANGE()", "BIGINT", "..", "100..", Some("..99")),
            ("RANGE()", "BIGINT", "1000..", "1000", Some("1001..")),
            ("MOD(4)", "INT", "0,1,3", "0..1", Some("3")),
            ("HASH(8)", "VARCHAR", "0..7", "0..3", Some("4..7")),
            ("LIST()", "VARCHAR", "mar, foo,bar", "FOO", Some("mar,bar")),
            ("NONE()", "INT", "1,5..9", "5..9", Some("1")),
            // Nothing is left, or not all is there.
            ("MOD(4)", "INT", "0,1", "0..1", None),
            ("DIV(10)", "INT", "0..9", "9..10", None),
            ("LIST()", "VARCHAR", "mar,foo", "foo,bar", None),
            ("PREFIX(3)", "VARCHAR", "mar", "mar", None),
            // Before a date there is a moment, whose name depends on the column.
            ("RANGE()", "DATETIME", "2008-01-01..", "2009-01-01..", None),
        ] {
            let function = Function::parse(function).unwrap();
            let key = Key::parse(key_type, &function).unwrap();
            let found = left(text, taken, &function, key);
            assert_eq!(
                found.as_deref(),
                wanted,
                "{function}: {text} without {taken}"
            );
        }
    }
}
