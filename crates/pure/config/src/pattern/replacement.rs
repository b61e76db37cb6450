//! Replacing what an expression matches: once, or everywhere as Perl does it, which is how ProxySQL
//! uses PCRE; with RE2's notation as RE2 does it.
//!
//! The two differ where nothing is matched. Perl looks at the same place once more, for something;
//! and it takes a match of nothing right behind another match. RE2 does neither, and does not look
//! between the bytes of a letter.

use super::bounded::{Bounded, Budget};
use super::{Dialect, Engine, Linear, Newline, Pattern, pcre};
use regex_automata::Input;
use regex_syntax::hir::{Hir, HirKind};
use std::borrow::Cow;

/// PCRE, for replacing as Perl does.
#[derive(Debug, Clone)]
pub(super) struct Perl {
    pub(super) one: Bounded,
    /// Matches something where the search begins; none if the expression always matches something,
    /// or is never used to replace.
    more: Option<Bounded>,
}

impl Perl {
    /// For what only has to match.
    pub(super) fn to_match(text: &str, caseless: bool) -> Result<Self, String> {
        Ok(Self {
            one: Bounded::to_match(text, caseless)?,
            more: None,
        })
    }

    pub(super) fn to_replace(text: &str, caseless: bool) -> Result<Self, String> {
        let one = Bounded::to_replace(text, caseless)?;
        // What has an end that the bracket is a part of, such as a comment in it, finds nothing
        // there.
        let more = Bounded::to_replace_here(&format!(r"\G(?:{text})(?!\G)"), caseless).ok();
        let more = more.filter(|more| more.captures_len() == one.captures_len());
        Ok(Self { one, more })
    }

    fn replace(&self, text: &[u8], everywhere: bool, put: &mut Put<'_>) -> Result<(), GaveUp> {
        let mut budget = Budget::default();
        let (mut at, mut was_empty) = (0, false);
        while at <= text.len() {
            let regex = match &self.more {
                Some(more) if was_empty => more,
                _ if was_empty => {
                    (at, was_empty) = (at + 1, false);
                    continue;
                }
                _ => &self.one,
            };
            match regex.find(text, at, &mut budget)? {
                Some(found) if at <= found.start && found.start <= found.end => {
                    put(found.start, found.end, &|n| found.group(n));
                    if !everywhere {
                        return Ok(());
                    }
                    (at, was_empty) = (found.end, found.start == found.end);
                }
                None if was_empty => (at, was_empty) = (at + 1, false),
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

/// PCRE has not found out whether there is something to replace: too much backtracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaveUp;

/// Receives a match: start, end, where a group is.
type Put<'a> = dyn FnMut(usize, usize, &dyn Fn(usize) -> Option<(usize, usize)>) + 'a;

/// As RE2 does it; as Perl does where something is always matched.
fn replace_linear(linear: &Linear, text: &[u8], everywhere: bool, put: &mut Put<'_>) {
    let mut found = linear.create_captures();
    let (mut at, mut last_end) = (0, None);
    while at <= text.len() {
        linear.search_captures(&Input::new(text).range(at..), &mut found);
        let Some(whole) = found.get_match() else {
            return;
        };
        if whole.is_empty() && last_end == Some(whole.start()) {
            at = whole.end() + letter_len(&text[whole.end()..]);
            continue;
        }
        put(whole.start(), whole.end(), &|n| {
            found.get_group(n).map(|group| (group.start, group.end))
        });
        if !everywhere {
            return;
        }
        (at, last_end) = (whole.end(), Some(whole.end()));
    }
}

/// Bytes of the letter that a text begins with; what is no letter of UTF-8 is one byte.
fn letter_len(text: &[u8]) -> usize {
    let first = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(first) {
        Ok(letters) => letters,
        Err(error) => std::str::from_utf8(&first[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map_or(1, char::len_utf8)
}

/// Whether PCRE may set other groups than the linear engine: a repetition of what can be nothing
/// ends with one more round of nothing there.
pub(super) fn repeats_nothing(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            repetition.sub.properties().minimum_len() == Some(0)
                && repetition.sub.properties().explicit_captures_len() > 0
                || repeats_nothing(&repetition.sub)
        }
        HirKind::Capture(capture) => repeats_nothing(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(repeats_nothing),
        _ => false,
    }
}

impl Pattern {
    /// `text` with the first match (or all, `everywhere`) replaced; `None` if there is none. Where
    /// PCRE gives up, nothing is: a part of it is not what was asked for.
    pub fn replace(
        &self,
        text: &[u8],
        replacement: &Replacement,
        everywhere: bool,
    ) -> Result<Option<Box<[u8]>>, GaveUp> {
        let (mut out, mut done, mut found) = (Vec::new(), 0, false);
        let mut put =
            |start: usize, end: usize, group: &dyn Fn(usize) -> Option<(usize, usize)>| {
                out.extend_from_slice(&text[done..start]);
                replacement.write(text, group, &mut out);
                (done, found) = (end, true);
            };
        match (&self.newline, &self.engine) {
            (Newline::Pcre(perl), _) if text.ends_with(b"\n") => {
                perl.replace(text, everywhere, &mut put)?
            }
            (_, Engine::Linear(_, Some(perl))) if everywhere => {
                perl.replace(text, everywhere, &mut put)?
            }
            (_, Engine::Linear(linear, _)) => replace_linear(linear, text, everywhere, &mut put),
            (_, Engine::Pcre(perl)) => perl.replace(text, everywhere, &mut put)?,
            // Nothing is replaced by what was compiled to match.
            (_, Engine::None | Engine::Matcher(_)) => {}
        }
        out.extend_from_slice(&text[done..]);
        Ok(found.then(|| out.into_boxed_slice()))
    }
}

impl Pattern {
    /// Returns the pattern with every text counted as a long one.
    fn for_long_texts(mut self) -> Self {
        let ((Newline::Pcre(perl), _) | (_, Engine::Linear(_, Some(perl)) | Engine::Pcre(perl))) =
            (&mut self.newline, &mut self.engine)
        else {
            return self;
        };
        perl.one.takes_all_for_long();
        perl.more.iter_mut().for_each(Bounded::takes_all_for_long);
        self
    }
}

/// Replacement of a match: text and `\0` to `\9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement(Box<[Piece]>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Box<[u8]>),
    Group(usize),
}

impl Replacement {
    /// Reads `text`, for a pattern with this many groups; `\\` is a backslash.
    pub fn parse(text: &str, groups: usize) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            if byte != b'\\' {
                literal.push(byte);
                continue;
            }
            match bytes.next() {
                Some(b'\\') => literal.push(b'\\'),
                Some(digit @ b'0'..=b'9') => {
                    let group = usize::from(digit - b'0');
                    if group > groups {
                        return Err(format!(
                            "refers to \\{group}, but match_pattern has {groups} groups"
                        ));
                    }
                    if !literal.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
                    }
                    pieces.push(Piece::Group(group));
                }
                other => {
                    let after = other.map_or(Cow::Borrowed("nothing"), |b| {
                        format!("'{}'", char::from(b)).into()
                    });
                    return Err(format!(
                        "has a backslash before {after}; only \\0 to \\9 and \\\\ have a meaning"
                    ));
                }
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal.into()));
        }
        Ok(Self(pieces.into()))
    }

    fn write(
        &self,
        text: &[u8],
        group: &dyn Fn(usize) -> Option<(usize, usize)>,
        out: &mut Vec<u8>,
    ) {
        for piece in &self.0 {
            match piece {
                Piece::Text(literal) => out.extend_from_slice(literal),
                Piece::Group(n) => {
                    if let Some((start, end)) = group(*n) {
                        out.extend_from_slice(&text[start..end]);
                    }
                }
            }
        }
    }
}

/// Body of a fuzz target: whether letters' case matters and whether it is replaced everywhere, an
/// expression, what takes the place of a match, and a text, with a NUL between each. What comes of
/// it is what comes of a plain reading of Perl's rules.
///
/// # Panics
/// It is not so.
pub fn fuzz_replacement(data: &[u8]) {
    let Some((flags, rest)) = data.split_first() else {
        return;
    };
    let (caseless, everywhere) = (flags & 1 == 1, flags & 2 == 2);
    let mut parts = rest.splitn(3, |byte| *byte == 0);
    let Some(Ok(expression)) = parts.next().map(std::str::from_utf8) else {
        return;
    };
    let (Some(Ok(with)), Some(text)) = (parts.next().map(std::str::from_utf8), parts.next()) else {
        return;
    };
    if expression.len() <= 48 && with.len() <= 32 && text.len() <= 64 {
        compare(expression, with, text, caseless, everywhere);
    }
}

/// Compares with [`told`] what is replaced in a text; whether there was something to compare.
fn compare(expression: &str, with: &str, text: &[u8], caseless: bool, everywhere: bool) -> bool {
    let Ok(pattern) = Pattern::compile(expression, caseless, Dialect::Pcre) else {
        return false;
    };
    let Ok(replacement) = Replacement::parse(with, pattern.groups()) else {
        return false;
    };
    let Some(told) = told(expression, with, text, caseless, everywhere) else {
        return false;
    };
    let Ok(replaced) = pattern.replace(text, &replacement, everywhere) else {
        return false;
    };
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let words = || {
        format!(
            "{expression:?} by {with:?} in {:?}, caseless {caseless}, everywhere {everywhere}",
            shown(text)
        )
    };
    assert_eq!(
        replaced.as_deref().map(shown),
        told.as_deref().map(shown),
        "{}",
        words()
    );
    // As if the text was long.
    if let Ok(replaced) = pattern
        .for_long_texts()
        .replace(text, &replacement, everywhere)
    {
        assert_eq!(
            replaced.as_deref().map(shown),
            told.as_deref().map(shown),
            "long: {}",
            words()
        );
    }
    true
}

/// The reference: the text as it is after replacing, or none if nothing is replaced. It is asked of
/// PCRE place by place. The outer none: PCRE gives up, or does not take the expression in brackets.
fn told(
    expression: &str,
    with: &str,
    text: &[u8],
    caseless: bool,
    everywhere: bool,
) -> Option<Option<Vec<u8>>> {
    let here = pcre(&format!(r"\G(?:{expression})"), caseless).ok()?;
    let something = pcre(&format!(r"\G(?=[\s\S])(?:{expression})(?<!\G)"), caseless).ok()?;
    if here.captures_len() != pcre(expression, caseless).ok()?.captures_len() {
        return None;
    }
    let (mut out, mut at, mut any, mut was_empty) = (Vec::new(), 0, false, false);
    while at <= text.len() {
        let regex = if was_empty { &something } else { &here };
        let mut groups = regex.capture_locations();
        let found = regex.captures_read_at(&mut groups, text, at).ok()?;
        was_empty = false;
        let Some(whole) = found else {
            out.extend(text.get(at));
            at += 1;
            continue;
        };
        if whole.start() != at {
            // `\K` moves the start: what a place says is not the whole then.
            return None;
        }
        let mut letters = with.bytes();
        while let Some(letter) = letters.next() {
            match letter {
                b'\\' => match letters.next() {
                    Some(digit @ b'0'..=b'9') => {
                        let (from, to) = groups.get(usize::from(digit - b'0')).unwrap_or_default();
                        out.extend_from_slice(text.get(from..to)?);
                    }
                    other => out.extend(other),
                },
                letter => out.push(letter),
            }
        }
        (any, was_empty, at) = (true, whole.end() == at, whole.end());
        if !everywhere {
            break;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Some(any.then_some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(
        dialect: Dialect,
        expression: &str,
        with: &str,
        text: &str,
        everywhere: bool,
    ) -> String {
        let pattern = Pattern::compile(expression, true, dialect)
            .unwrap_or_else(|words| panic!("{expression}: {words}"));
        let with = Replacement::parse(with, pattern.groups()).unwrap();
        let replaced = pattern.replace(text.as_bytes(), &with, everywhere).unwrap();
        replaced
            .map(|bytes| String::from_utf8(bytes.into()).unwrap())
            .unwrap_or_default()
    }

    #[test]
    fn replacing_knows_groups_and_global() {
        let replaced = |expression, with, text, everywhere| {
            replaced(Dialect::Pcre, expression, with, text, everywhere)
        };
        assert_eq!(replaced("a(.)", r"<\1\\\0>", "xabac", false), r"x<b\ab>ac");
        assert_eq!(replaced("a(.)", r"<\1>", "xabac", true), "x<b><c>");
        assert_eq!(replaced("a(?=c)", "-", "abac", true), "ab-c");
        assert_eq!(replaced("c$", "!", "abc\n", false), "ab!\n");
        assert_eq!(replaced("(a)|(b)", r"[\1]", "ab", true), "[a][]");
        assert_eq!(replaced("z", "-", "ab", true), "", "nothing to replace");
        assert!(
            Replacement::parse(r"\2", 1)
                .unwrap_err()
                .contains("has 1 groups")
        );
        assert!(Replacement::parse(r"a\n", 1).is_err());
    }

    #[test]
    fn where_nothing_is_matched_perl_and_re2_differ() {
        for (expression, text, perl, re2) in [
            ("a*", "baac", "-b--c-", "-b-c-"),
            ("^", "ab", "-ab", "-ab"),
            ("$", "ab", "ab-", "ab-"),
            ("x?", "é", "", "-é-"),
            (".*", "ab", "--", "-"),
            ("(|a)", "ab", "---b-", "-a-b-"),
            ("\\b", "ab c", "-ab- -c-", "-ab- -c-"),
            ("", "ab", "-a-b-", "-a-b-"),
        ] {
            if !perl.is_empty() {
                assert_eq!(
                    replaced(Dialect::Pcre, expression, "-", text, true),
                    perl,
                    "{expression}"
                );
            }
            assert_eq!(
                replaced(Dialect::Re2, expression, "-", text, true),
                re2,
                "{expression}"
            );
        }
    }

    #[test]
    fn what_cannot_be_replaced_everywhere_is_replaced_nowhere() {
        let pattern = Pattern::compile("(?<=pw=)'[^']*'|(?=a)(a+)+!", true, Dialect::Pcre).unwrap();
        let with = Replacement::parse("'***'", pattern.groups()).unwrap();
        let told = |text: &[u8], everywhere| pattern.replace(text, &with, everywhere);
        let hard = [b"pw='1', ".to_vec(), b"a".repeat(60), b" pw='2' !".to_vec()].concat();
        assert_eq!(
            pattern.look(&hard),
            Some(true),
            "it matches before it becomes hard"
        );
        assert_eq!(told(&hard, true), Err(GaveUp));
        assert!(
            told(&hard, false)
                .unwrap()
                .unwrap()
                .starts_with(b"pw='***', aaa")
        );
        assert_eq!(
            told(b"pw='1' pw='2'", true).unwrap().as_deref(),
            Some(&b"pw='***' pw='***'"[..])
        );
        assert_eq!(told(b"none", true), Ok(None));
    }

    /// Parts of expressions that are put together in many ways.
    const PARTS: [&str; 30] = [
        "a", "b", "ab", ".", "a*", "b+?", "(a)", "(b|)", "(|a)", "(a*)*", "(a|b)+", "(?:a|ab)",
        "(a(b)?)+", "^", "$", r"\b", r"\B", "x??", "(?=b)", "(?<=a)", r"\s*", "[ab]", "[^a]",
        "a{1,2}", "(ab?)", "|", r"\n", "(b*)", r"\z", "(a??)",
    ];

    #[test]
    fn what_is_replaced_is_what_perl_replaces() {
        let mut chance = 7_u64;
        let mut random = move |below: usize| {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            (chance >> 33) as usize % below
        };
        let mut compared = 0;
        for _ in 0..6000 {
            let expression: String = (0..1 + random(4))
                .map(|_| PARTS[random(PARTS.len())])
                .collect();
            let with = ["-", r"<\0>", r"[\1]", "", r"\1\2", r"\\", r"\0\0"][random(7)];
            let text: Vec<u8> = (0..random(8)).map(|_| b"aabB \n"[random(6)]).collect();
            let (caseless, everywhere) = (random(2) == 0, random(3) > 0);
            compared += usize::from(compare(&expression, with, &text, caseless, everywhere));
        }
        assert!(compared > 2500, "{compared}");
    }
}
