//! The commonest expressions, matched by comparing: plain texts with `.*` between them, `^` before
//! and `$` behind, as in `^SELECT`, `FROM orders`, `^SELECT.*FROM t1 WHERE.*FOR UPDATE$`.

use super::literals::Needed;

/// Texts that follow one another in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// Lower case if letters' case does not matter. With `start` the first stands at the start of
    /// the text; with `end` the last at its end.
    texts: Box<[Box<[u8]>]>, // at least one
    start: bool,
    end: bool,
    caseless: bool,
    /// `$` also matches before a newline that ends the text.
    newline: bool,
}

impl Shape {
    pub(super) fn of(text: &str, caseless: bool, newline: bool) -> Option<Self> {
        let mut bytes = text.as_bytes();
        let start = bytes.first() == Some(&b'^');
        if start {
            bytes = &bytes[1..];
        }
        let (mut texts, mut now, mut end) = (Vec::new(), Vec::new(), false);
        loop {
            match bytes {
                [] => break,
                [b'$'] => {
                    end = true;
                    break;
                }
                // What follows would make it lazy, or be a repetition of a repetition.
                [b'.', b'*', b'?' | b'+' | b'*' | b'{', ..] => return None,
                [b'.', b'*', rest @ ..] => {
                    texts.push(std::mem::take(&mut now).into_boxed_slice());
                    bytes = rest;
                    continue;
                }
                [b'\\', escaped, rest @ ..] if is_escaped(*escaped) => {
                    now.push(*escaped);
                    bytes = rest;
                }
                [literal, rest @ ..] if is_literal(*literal) => {
                    now.push(if caseless {
                        literal.to_ascii_lowercase()
                    } else {
                        *literal
                    });
                    bytes = rest;
                }
                _ => return None,
            }
            if matches!(bytes, [b'?' | b'+' | b'*' | b'{', ..]) {
                return None;
            }
        }
        texts.push(now.into_boxed_slice());
        Some(Self {
            texts: texts.into(),
            start,
            end,
            caseless,
            newline,
        })
    }

    /// Returns what every text has that matches.
    pub(super) fn needed(&self) -> Needed {
        Needed::of_texts(self.texts.iter().map(|text| &**text), self.start)
    }

    /// Whether it says the same of all statements that differ in values only (`sql::write_skeleton`), as long as no
    /// value has a newline. A text without digits and quotes that stands at the start or at the end never meets a
    /// value there; anywhere else it may be found inside of one.
    pub(super) fn is_blind_to_values(&self) -> bool {
        let says_nothing_of_values = |text: &[u8]| {
            !text
                .iter()
                .any(|byte| byte.is_ascii_digit() || *byte == b'\'')
        };
        let last = self.texts.len() - 1;
        self.texts.iter().enumerate().all(|(at, text)| {
            let is_anchored = at == 0 && self.start || at == last && self.end;
            text.is_empty() || is_anchored && says_nothing_of_values(text)
        })
    }

    /// Texts have no newline and `.*` does not cross one, so each line is looked at by itself.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        // Whether it begins so says all of the commonest, and of most others that they do not
        // match.
        if self.start
            && let Some((head, others)) = self.texts.split_first()
        {
            if !self.begins(text, head) {
                return false;
            }
            if others.is_empty() && !self.end {
                return true;
            }
        }
        let mut rest = text;
        let mut first = true;
        loop {
            let (line, after) = match memchr::memchr(b'\n', rest) {
                Some(at) => (&rest[..at], Some(&rest[at + 1..])),
                None => (rest, None),
            };
            let is_last = after.is_none() || self.newline && after == Some(&b""[..]);
            if (!self.end || is_last) && self.is_in(line, first && self.start) {
                return true;
            }
            match after {
                Some(after) if !self.start => (rest, first) = (after, false),
                _ => return false,
            }
        }
    }

    /// Each text as early as it can be: what follows has the most room then.
    fn is_in(&self, line: &[u8], start: bool) -> bool {
        let Some((last, most)) = self.texts.split_last() else {
            return true;
        };
        let mut rest = line;
        for (at, text) in most.iter().enumerate() {
            let place = if at == 0 && start {
                self.begins(rest, text).then_some(0)
            } else {
                self.find(rest, text)
            };
            let Some(place) = place else { return false };
            rest = &rest[place + text.len()..];
        }
        let start = start && most.is_empty();
        match (start, self.end) {
            (true, true) => rest.len() == last.len() && self.begins(rest, last),
            (true, false) => self.begins(rest, last),
            (false, true) => rest
                .len()
                .checked_sub(last.len())
                .is_some_and(|at| self.begins(&rest[at..], last)),
            (false, false) => self.find(rest, last).is_some(),
        }
    }

    fn begins(&self, line: &[u8], text: &[u8]) -> bool {
        let Some(head) = line.get(..text.len()) else {
            return false;
        };
        if self.caseless {
            is_lower_case_of(text, head)
        } else {
            head == text
        }
    }

    fn find(&self, line: &[u8], text: &[u8]) -> Option<usize> {
        let Some(&first) = text.first() else {
            return Some(0);
        };
        let last = line.len().checked_sub(text.len())?;
        let starts = &line[..=last];
        let fits = |at: &usize| self.begins(&line[*at..], text);
        if self.caseless {
            memchr::memchr2_iter(first, first.to_ascii_uppercase(), starts).find(fits)
        } else {
            memchr::memchr_iter(first, starts).find(fits)
        }
    }
}

/// Whether `text` is `lower` in whatever case; they are equally long. Eight bytes at a time: it is
/// asked for every statement.
#[inline]
fn is_lower_case_of(lower: &[u8], text: &[u8]) -> bool {
    let eight = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).map_or(0, u64::from_le_bytes);
    let four = |bytes: &[u8]| {
        <[u8; 4]>::try_from(bytes).map_or(0, |four| u64::from(u32::from_le_bytes(four)))
    };
    let same = |at: usize| eight(&lower[at..at + 8]) == folded(eight(&text[at..at + 8]));
    let same_four = |at: usize| four(&lower[at..at + 4]) == folded(four(&text[at..at + 4]));
    // The last ones are compared with some of those before once more.
    match lower.len() {
        0..4 => text.eq_ignore_ascii_case(lower),
        4..8 => same_four(0) && same_four(lower.len() - 4),
        length => (0..length - 8).step_by(8).all(same) && same(length - 8),
    }
}

/// Eight bytes with capital letters made small.
const fn folded(eight: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let low = eight & (0x7F * ONES);
    let from_a = low + (0x80 - b'A' as u64) * ONES;
    let beyond_z = low + (0x7F - b'Z' as u64) * ONES;
    let capitals = (from_a ^ beyond_z) & !eight & (0x80 * ONES);
    eight | capitals >> 2
}

/// Bytes that stand for themselves in every dialect.
const fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b' ' | b'_'
                | b','
                | b'\''
                | b'`'
                | b'"'
                | b'='
                | b';'
                | b'@'
                | b'<'
                | b'>'
                | b'/'
                | b':'
                | b'%'
                | b'!'
        )
}

/// Signs that stand for themselves behind a backslash, and for something else without.
const fn is_escaped(byte: u8) -> bool {
    matches!(
        byte,
        b'.' | b'*'
            | b'?'
            | b'+'
            | b'('
            | b')'
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'|'
            | b'^'
            | b'$'
            | b'\\'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_says_what_the_engine_says() {
        let expressions = [
            "^",
            "^$",
            "$",
            "",
            "a",
            "a$",
            "ab",
            "^a",
            "^a$",
            "^a.*",
            "^a.*b",
            "^a.*b$",
            "^a.*$",
            "^.*b",
            "^.*b$",
            ".*",
            ".*$",
            "a.*b",
            "a.*a",
            ".*a.*b",
            "a.*b.*a",
            "^a.*b.*a$",
            "^a.*a.*a",
            "^ab.*ba$",
            r"\.",
            r"a\.",
            r"^\..*a",
            "^SELECT.*FOR UPDATE$",
            "SELECT.*1.*FOR",
            "aB.*.*b",
        ];
        let mut texts: Vec<Vec<u8>> = vec![
            b"SELECT 1 FOR UPDATE".into(),
            b"SELECT 1\nFOR UPDATE".into(),
            b"SELECTFOR UPDATE\n".into(),
        ];
        for n in 0..4_usize.pow(6) {
            let text: Vec<u8> = (0..6)
                .map(|digit| b"aB\n."[(n >> (2 * digit)) & 3])
                .collect();
            texts.extend((0..=6).map(|length| text[..length].to_vec()));
        }
        texts.sort();
        texts.dedup();
        for expression in expressions {
            for (caseless, newline) in [(true, true), (false, true), (true, false), (false, false)]
            {
                let shape = Shape::of(expression, caseless, newline).expect(expression);
                let notation = regex_automata::util::syntax::Config::new()
                    .unicode(false)
                    .utf8(false)
                    .case_insensitive(caseless);
                let engines = regex_automata::meta::Config::new().utf8_empty(false);
                let linear = regex_automata::meta::Builder::new()
                    .configure(engines)
                    .syntax(notation)
                    .build(expression)
                    .unwrap();
                let pcre = pcre2::bytes::RegexBuilder::new()
                    .caseless(caseless)
                    .build(expression)
                    .unwrap();
                for text in &texts {
                    let told = if newline {
                        pcre.is_match(text).unwrap()
                    } else {
                        linear.is_match(text)
                    };
                    assert_eq!(
                        shape.is_match(text),
                        told,
                        "{expression} {:?} {newline}",
                        String::from_utf8_lossy(text)
                    );
                }
            }
        }
    }

    #[test]
    fn letters_are_folded_as_elsewhere_and_nothing_else_is() {
        for byte in 0..=u8::MAX {
            let eight = [b'A', byte, b'z', byte, 0xFF, byte, b'@', byte];
            assert_eq!(
                folded(u64::from_le_bytes(eight)).to_le_bytes(),
                eight.to_ascii_lowercase()[..],
                "{byte}"
            );
        }
        let text = b"SELECT a FROM `Orders_1` FOR UPDATE";
        for start in 0..text.len() {
            for end in start..=text.len() {
                let part = &text[start..end];
                let lower = part.to_ascii_lowercase();
                assert!(is_lower_case_of(&lower, part));
                for changed in 0..lower.len() {
                    let mut other = lower.clone();
                    other[changed] ^= 1;
                    assert!(
                        !is_lower_case_of(&other, part),
                        "{changed} of {start}..{end}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_not_literal_has_no_shape() {
        for expression in [
            "^SELECT.+",
            "^(a)",
            r"^\s*SELECT",
            "^SELECT?",
            "^a|b",
            "^a.b",
            "a.*?b",
            "a.*+",
            ".**",
            "ab*",
            "a{2}",
            r"a\.*",
            r"a\.?",
            "[a]",
            "a^",
            "a$b",
            "^^",
            "$$",
            r"\d",
            r"a\",
            "a#b",
            "(?i)a",
            "a\nb",
            "ü",
        ] {
            assert_eq!(Shape::of(expression, true, true), None, "{expression}");
        }
    }

    #[test]
    fn what_is_blind_to_values_says_the_same_of_statements_that_differ_in_them() {
        let texts = [
            "SELECT 1 FOR UPDATE",
            "SELECT 'FOR UPDATE'",
            "SELECT 'a' FROM t WHERE b = 'SELECT'",
            "SELECT a FROM t2 WHERE b = 5",
            "'x' 1",
            "1 FOR UPDATE",
            "UPDATE t SET a = 1",
            "UPDATE",
            "",
        ];
        let values = [
            "0",
            "5",
            "1234567",
            "'FOR UPDATE'",
            "'SELECT'",
            "''",
            "' FOR UPDATE '",
        ];
        let skeleton = |text: &str| {
            let mut out = Vec::new();
            assert!(sql::write_skeleton(
                text.as_bytes(),
                sql::Lexing::Escapes,
                &mut out
            ));
            out
        };
        let all: Vec<String> = texts
            .iter()
            .flat_map(|text| {
                let with = |value: &&str| text.replace('1', value).replace("'a'", value);
                values.iter().map(with)
            })
            .collect();
        for (expression, blind) in [
            ("^SELECT", true),
            ("^SELECT.*", true),
            ("^SELECT.*FOR UPDATE$", true),
            ("FOR UPDATE$", true),
            ("^UPDATE$", true),
            (".*", true),
            ("FOR UPDATE", false),
            ("^SELECT.*FOR", false),
            ("^SELECT.*FROM.*UPDATE$", false),
            ("^SELECT 1", false),
            ("UPDATE'$", false),
            ("^SELECT.*t2", false),
        ] {
            let shape = Shape::of(expression, true, true).unwrap();
            assert_eq!(shape.is_blind_to_values(), blind, "{expression}");
            for (one, other) in all
                .iter()
                .flat_map(|one| all.iter().map(move |other| (one, other)))
            {
                if blind && skeleton(one) == skeleton(other) {
                    let said = [one, other].map(|text| shape.is_match(text.as_bytes()));
                    assert_eq!(said[0], said[1], "{expression}: {one} and {other}");
                }
            }
        }
    }
}
