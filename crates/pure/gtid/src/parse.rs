//! From the texts of servers.

use crate::set::{Set, Source};
use std::fmt;

/// Text that is no set of transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(Box<str>);

/// A longer part of a text is not repeated in an error.
const SHOWN_MAX: usize = 60;
/// Characters of a tag.
const TAG_MAX: usize = 32;

impl Malformed {
    fn at(part: &str) -> Self {
        Self(part.chars().take(SHOWN_MAX).collect())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no GTID", self.0)
    }
}

impl std::error::Error for Malformed {}

impl std::str::FromStr for Set {
    type Err = Malformed;

    /// Reads `uuid:1-5:7,uuid:tag:1` or `0-1-5,2-1-7`, with blanks and line ends between.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim) {
            if part.is_empty() {
                continue;
            }
            let read = match part.contains(':') {
                true => mysql(part, &mut set),
                false => mariadb(part, &mut set),
            };
            read.ok_or_else(|| Malformed::at(part))?;
        }
        Ok(set)
    }
}

fn mysql(part: &str, set: &mut Set) -> Option<()> {
    let mut pieces = part.split(':').map(str::trim);
    let uuid = uuid(pieces.next()?)?;
    let mut source = Source::MySql { uuid, tag: None };
    let mut numbers = 0;
    for piece in pieces {
        if piece.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if piece.len() > TAG_MAX || !piece.chars().all(fits) {
                return None;
            }
            let tag = Some(piece.to_ascii_lowercase().into());
            source = Source::MySql { uuid, tag };
            continue;
        }
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let interval = (number(first)?, number(last)?);
        if interval.0 == 0 || interval.0 > interval.1 {
            return None;
        }
        set.add_interval(&source, interval);
        numbers += 1;
    }
    (numbers > 0).then_some(())
}

fn mariadb(part: &str, set: &mut Set) -> Option<()> {
    let mut pieces = part.split('-').map(str::trim);
    let domain = u32::try_from(number(pieces.next()?)?).ok()?;
    let _server = u32::try_from(number(pieces.next()?)?).ok()?;
    let sequence = number(pieces.next()?)?;
    if pieces.next().is_some() {
        return None;
    }
    set.add(&Source::MariaDb { domain }, sequence);
    Some(())
}

/// With or without dashes.
pub(crate) fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut out = [0; 16];
    let mut digits = text.bytes().filter(|byte| *byte != b'-');
    for byte in &mut out {
        let mut digit = || char::from(digits.next()?).to_digit(16);
        *byte = u8::try_from(digit()? * 16 + digit()?).ok()?;
    }
    (digits.next().is_none() && text.len() <= 36).then_some(out)
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// Reads anything without a panic, and what it has read again as it writes it.
#[doc(hidden)]
pub fn fuzz_set(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(set) = text.parse::<Set>() else { return };
    let again: Set = set.to_string().parse().expect("it was written by us");
    assert!(again == set && set.contains_set(&again));
    let mut coarse = set.clone();
    coarse.coarsen(2);
    assert!(coarse.contains_set(&set));
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429563";

    fn set(text: &str) -> Set {
        text.parse().unwrap()
    }

    #[test]
    fn sets_are_read_and_written_as_servers_do() {
        for (text, written) in [
            (format!("{A}:1-5"), format!("{A}:1-5")),
            (format!("{A}:1-5:7, \n{B}:3"), format!("{A}:1-5:7,{B}:3")),
            (format!("{A}:1-3:4-6:6-9"), format!("{A}:1-9")),
            (format!("{A}:9:1-3:5"), format!("{A}:1-3:5:9")),
            (
                format!("{A}:1:tag_a:2-3:Tag_b:4"),
                format!("{A}:1,{A}:tag_a:2-3,{A}:tag_b:4"),
            ),
            (A.replace('-', "").to_uppercase() + ":7", format!("{A}:7")),
            ("0-1-5, 2-7-9".into(), "0-0-5,2-0-9".into()),
            (String::new(), String::new()),
        ] {
            assert_eq!(set(&text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn what_is_no_set_is_named() {
        for text in ["x", "3e11:1", "1-2", "0-1-2-3", "-1-2"] {
            let error = text.parse::<Set>().unwrap_err().to_string();
            assert_eq!(error, format!("'{text}' is no GTID"));
        }
        for rest in [
            "",
            ":",
            ":0",
            ":5-3",
            ":-3",
            ":a b:1",
            ":tag",
            ":99999999999999999999",
        ] {
            assert!(format!("{A}{rest}").parse::<Set>().is_err(), "{rest}");
        }
    }

    #[test]
    fn a_set_contains_what_was_added_and_nothing_else() {
        let mut all = set(&format!("{A}:1-5:7"));
        let a = set(&format!("{A}:6"));
        assert!(!all.contains_set(&a) && all.contains_set(&Set::default()));
        all.union(&a);
        assert_eq!(all.to_string(), format!("{A}:1-7"));
        assert!(all.contains_set(&set(&format!("{A}:2-6"))));
        assert!(!all.contains_set(&set(&format!("{A}:t:2"))));
        assert!(!all.contains_set(&set(&format!("{B}:2"))));
        assert!(set("0-1-5").contains_set(&set("0-9-4")));
        assert!(!set("0-1-5").contains_set(&set("0-1-6")));
    }

    #[test]
    fn a_coarse_set_asks_for_more_and_never_for_less() {
        let fine = set(&format!("{A}:1:3:5:7:9"));
        let mut coarse = fine.clone();
        coarse.coarsen(2);
        assert_eq!(coarse.to_string(), format!("{A}:1-7:9"));
        assert!(coarse.contains_set(&fine));
    }

    #[test]
    fn whatever_is_read_is_written_alike() {
        for text in [&format!("{A}:1-5:7,{B}:t:1")[..], "0-1-2", ":", "é:1", ",,"] {
            fuzz_set(text.as_bytes());
        }
    }
}
