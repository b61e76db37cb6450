//! Lua's patterns, with a budget of steps.
//!
//! A VM cannot be interrupted in `string.find`, and some patterns take longer than a core lives. Here each
//! byte that is compared is a step, and a budget bounds them.
//! <https://www.lua.org/manual/5.1/manual.html#5.4.1>

use std::fmt;
use std::ops::Range;

mod item;

use item::Matcher;

/// Captures of one pattern.
pub const CAPTURES_MAX: usize = 32;
/// Items that wait for what follows them: a bound of the thread's stack.
pub const DEPTH_MAX: usize = 200;

/// Steps that are left for a script's patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(pub u64);

/// Reason for which a pattern gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// No pattern by its grammar.
    Malformed(&'static str),
    /// More nested than `DEPTH_MAX`.
    Complex,
    /// More captures than `CAPTURES_MAX`.
    Captures,
    /// More steps than the budget had.
    Steps,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => write!(f, "malformed pattern ({why})"),
            Self::Complex => f.write_str("pattern too complex"),
            Self::Captures => f.write_str("too many captures"),
            Self::Steps => f.write_str("pattern takes too long"),
        }
    }
}

impl std::error::Error for Broken {}

/// Part of a subject that a pattern remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capture {
    /// Bytes of the subject, `(…)`.
    Text(Range<usize>),
    /// Offset in the subject, from 0, `()`.
    Position(usize),
}

/// Place of a pattern in a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// All that matched.
    pub range: Range<usize>,
    /// Captures in the order of their opening braces.
    pub captures: Vec<Capture>,
}

/// First place of a pattern at or after an offset. A pattern that begins with `^` is tried there only.
pub fn find(
    subject: &[u8],
    pattern: &[u8],
    from: usize,
    budget: &mut Budget,
) -> Result<Option<Found>, Broken> {
    match pattern {
        [b'^', rest @ ..] => at(subject, rest, from, budget),
        _ => next(subject, pattern, from, budget),
    }
}

/// First place at or after an offset, as `gmatch` looks for it: `^` is an ordinary character.
pub fn next(
    subject: &[u8],
    pattern: &[u8],
    from: usize,
    budget: &mut Budget,
) -> Result<Option<Found>, Broken> {
    for start in from..=subject.len() {
        if let Some(found) = at(subject, pattern, start, budget)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Match of a pattern at one offset.
pub fn at(
    subject: &[u8],
    pattern: &[u8],
    start: usize,
    budget: &mut Budget,
) -> Result<Option<Found>, Broken> {
    if start > subject.len() {
        return Ok(None);
    }
    let mut matcher = Matcher::new(subject, pattern, budget);
    let Some(end) = matcher.run(start, 0, 0)? else {
        return Ok(None);
    };
    Ok(Some(Found {
        range: start..end,
        captures: matcher.captures()?,
    }))
}

/// Body of the fuzz target `lua_pattern`: any pattern on any subject ends within its budget.
pub fn fuzz_pattern(data: &[u8]) {
    let cut = data.iter().position(|&byte| byte == b'\n');
    let (pattern, subject) = data.split_at(cut.unwrap_or(data.len()));
    let found = find(subject, pattern, 0, &mut Budget(100_000));
    if let Ok(Some(found)) = found {
        assert!(found.range.start <= found.range.end && found.range.end <= subject.len());
        for capture in found.captures {
            match capture {
                Capture::Text(range) => assert!(range.end <= found.range.end),
                Capture::Position(offset) => assert!(offset <= found.range.end),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(subject: &str, pattern: &str) -> String {
        let found = find(
            subject.as_bytes(),
            pattern.as_bytes(),
            0,
            &mut Budget(100_000),
        );
        let Some(found) = (match found {
            Ok(found) => found,
            Err(broken) => return broken.to_string(),
        }) else {
            return "nil".to_owned();
        };
        let mut words = vec![subject[found.range].to_owned()];
        words.extend(found.captures.into_iter().map(|capture| match capture {
            Capture::Text(range) => subject[range].to_owned(),
            Capture::Position(offset) => (offset + 1).to_string(),
        }));
        words.join("|")
    }

    #[test]
    fn patterns_find_what_the_manual_says() {
        for (subject, pattern, expected) in [
            (
                "127.0.0.1:3306",
                "(.*):(.*)",
                "127.0.0.1:3306|127.0.0.1|3306",
            ),
            ("hello world", "o w", "o w"),
            ("hello", "^e", "nil"),
            ("hello", "l+", "ll"),
            ("hello", "l-o", "llo"),
            ("aab", "^a*aab", "aab"),
            ("aab", "^a+ab", "aab"),
            ("ab", "^a?ab", "ab"),
            ("ab", "^(a*)(ab)", "ab||ab"),
            ("hello", "hx?e", "he"),
            ("hello", "()ll()", "ll|3|5"),
            ("a1_", "^%a%d%p$", "a1_"),
            ("f(a(b)c)d", "%b()", "(a(b)c)"),
            ("THE (quick) fox", "%f[%a]%a+%f[%A]", "THE"),
            ("'it's'", "(['\"])(.-)%1", "'it'|'|it"),
            ("x]y", "[]]", "]"),
            ("a-z", "[a%-]+", "a-"),
            ("xyz", "[^x-y]", "z"),
            ("a.b", "%.", "."),
            ("price $", "$", ""),
            ("$x", "$x", "$x"),
            ("", ".*", ""),
            ("key = v", "^(%w+)%s*=%s*(%w+)$", "key = v|key|v"),
        ] {
            assert_eq!(shown(subject, pattern), expected, "{pattern} in {subject}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for pattern in ["%", "[a", "[%", "(a", "a)", "%b", "%bx", "%1", "(%1)", "%f"] {
            assert!(shown("aaa", pattern).contains("malformed"), "{pattern}");
        }
        assert_eq!(shown("a", &"()".repeat(33)), "too many captures");
        assert_eq!(
            shown(&"a".repeat(300), &"a?".repeat(300)),
            "pattern too complex"
        );
    }

    #[test]
    fn a_pattern_that_would_not_end_is_ended() {
        let subject = "a".repeat(200);
        let pattern = ".-".repeat(20) + "b";
        assert_eq!(shown(&subject, &pattern), "pattern takes too long");
    }

    #[test]
    fn a_search_for_all_takes_the_anchor_as_it_is() {
        let found = next(b"a^a", b"^a", 0, &mut Budget(100)).unwrap();
        assert_eq!(found.unwrap().range, 1..3);
    }
}
