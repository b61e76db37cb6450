//! What a text must contain for an expression to match it: what a filter can look for in one pass
//! over many.

#[cfg(test)]
use regex_automata::util::syntax;
use regex_syntax::hir::{Class, Hir, HirKind, Look};
use std::sync::Arc;

/// Texts of which at least one is in every text that matches, in whatever case. Letters are lower
/// case.
pub(crate) type AnyOf = Vec<Box<[u8]>>;

/// Properties of every text that matches an expression, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    /// Every text that matches begins so.
    pub(crate) start: Option<Box<[u8]>>,
    /// Each of these holds.
    pub(crate) inside: Vec<AnyOf>,
}

/// Knowledge of an expression, in one piece of memory: it is kept for as long as the expression is
/// in force.
#[derive(Debug, Clone)]
pub(super) struct Packed(Arc<[u8]>);

impl Packed {
    /// Of each text its length in four bytes, then the text; before the texts of which one is
    /// there, how many. The start has a list of its own.
    pub(super) fn of(needed: &Needed) -> Self {
        let mut bytes = Vec::new();
        let number = |bytes: &mut Vec<u8>, n: usize| {
            bytes.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes())
        };
        let mut put = |texts: &mut dyn ExactSizeIterator<Item = &Box<[u8]>>| {
            number(&mut bytes, texts.len());
            for text in texts {
                number(&mut bytes, text.len());
                bytes.extend_from_slice(text);
            }
        };
        put(&mut needed.start.iter());
        needed.inside.iter().for_each(|any| put(&mut any.iter()));
        Self(bytes.into())
    }

    pub(super) fn unpacked(&self) -> Needed {
        let mut rest = &*self.0;
        let mut lists = std::iter::from_fn(|| {
            let count = number(&mut rest)?;
            (0..count)
                .map(|_| {
                    number(&mut rest)
                        .and_then(|length| rest.split_off(..length))
                        .map(Box::from)
                })
                .collect::<Option<AnyOf>>()
        });
        let start = lists.next().and_then(|mut start| start.pop());
        Needed {
            start,
            inside: lists.collect(),
        }
    }
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let four = rest.split_off(..4)?;
    usize::try_from(u32::from_le_bytes(four.try_into().ok()?)).ok()
}

/// A text of one byte tells next to nothing.
const SHORTEST: usize = 2;
/// Longer alternatives are not worth their place.
const ALTERNATIVES_MAX: usize = 32;
/// A class with more letters is no choice between texts.
const LETTERS_MAX: usize = 4;

impl Needed {
    /// Of an expression that the linear engine runs.
    #[cfg(test)]
    pub(crate) fn by_linear(text: &str) -> Self {
        let notation = syntax::Config::new().unicode(false).utf8(false);
        syntax::parse_with(text, &notation)
            .map(|hir| Self::of(&hir))
            .unwrap_or_default()
    }

    /// Of an expression as that engine reads it.
    pub(super) fn of(hir: &Hir) -> Self {
        let mut needed = Self::default();
        let begins = match hir.kind() {
            HirKind::Concat(parts) if *parts[0].kind() == HirKind::Look(Look::Start) => {
                along(parts, &mut needed.inside)
            }
            _ => {
                inside(hir, &mut needed.inside);
                Vec::new()
            }
        };
        needed.start = common(&begins)
            .filter(|start| start.len() >= SHORTEST)
            .map(Box::from);
        needed
    }

    /// Of plain texts that follow one another.
    pub(super) fn of_texts<'a>(texts: impl Iterator<Item = &'a [u8]>, start: bool) -> Self {
        let mut needed = Self::default();
        for (at, text) in texts.enumerate().filter(|(_, text)| text.len() >= SHORTEST) {
            let text: Box<[u8]> = text.to_ascii_lowercase().into();
            if start && at == 0 {
                needed.start = Some(text.clone());
            }
            needed.inside.push(vec![text]);
        }
        needed
    }

    /// Of an expression that only PCRE can run: what it begins with, if that is plain text. An `|`
    /// may make that one of several beginnings, so with one nothing is known.
    pub(crate) fn by_pcre(text: &str) -> Self {
        let Some(rest) = text.strip_prefix('^').filter(|rest| !rest.contains('|')) else {
            return Self::default();
        };
        let plain = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b',' | b'`' | b'=' | b'@')
        };
        let mut length = rest.bytes().take_while(|byte| plain(byte)).count();
        // A quantifier is about the last letter, also behind what says nothing: `a(?#why)*`,
        // `a\Q\E*`.
        if ["*", "?", "{", "+", "(?#", r"\Q", r"\E"]
            .iter()
            .any(|next| rest[length..].starts_with(next))
        {
            length = length.saturating_sub(1);
        }
        let start: Box<[u8]> = rest.as_bytes()[..length].to_ascii_lowercase().into();
        Self {
            start: (length >= SHORTEST).then_some(start),
            inside: Vec::new(),
        }
    }
}

/// All texts that a part can be, if they are few; letters in lower case, so that `[Ss]` is one.
type Texts = Vec<Vec<u8>>;

fn all(hir: &Hir) -> Option<Texts> {
    match hir.kind() {
        // What only looks around takes no room between the texts beside it.
        HirKind::Empty | HirKind::Look(_) => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_ascii_lowercase()]),
        HirKind::Class(Class::Bytes(class)) => {
            let mut texts = Texts::new();
            for byte in class
                .ranges()
                .iter()
                .flat_map(|range| range.start()..=range.end())
            {
                let byte = byte.to_ascii_lowercase();
                if texts.iter().all(|text| text[0] != byte) {
                    if texts.len() == LETTERS_MAX {
                        return None;
                    }
                    texts.push(vec![byte]);
                }
            }
            Some(texts)
        }
        HirKind::Capture(capture) => all(&capture.sub),
        HirKind::Concat(parts) => {
            let add = |mut texts, part| {
                if extended(&mut texts, part) {
                    Some(texts)
                } else {
                    joined(texts, &all(part)?).ok()
                }
            };
            parts.iter().try_fold(vec![Vec::new()], add)
        }
        HirKind::Alternation(parts) => {
            let mut texts = Texts::new();
            for part in parts {
                texts.extend(all(part)?);
                if texts.len() > ALTERNATIVES_MAX {
                    return None;
                }
            }
            Some(texts)
        }
        _ => None,
    }
}

/// The only letter that a part can be, in lower case.
fn letter(part: &Hir) -> Option<u8> {
    let HirKind::Class(Class::Bytes(class)) = part.kind() else {
        return None;
    };
    match class.ranges() {
        [upper, lower]
            if upper.start() == upper.end()
                && lower.start() == lower.end()
                && upper.start().to_ascii_lowercase() == lower.start() =>
        {
            Some(lower.start())
        }
        _ => None,
    }
}

/// Puts `part` behind each text if it can stand only in one way, as most signs of an expression do;
/// tells whether it did.
fn extended(texts: &mut Texts, part: &Hir) -> bool {
    match (part.kind(), letter(part)) {
        (_, Some(letter)) => texts.iter_mut().for_each(|text| text.push(letter)),
        (HirKind::Literal(literal), None) => texts
            .iter_mut()
            .for_each(|text| text.extend(literal.0.iter().map(u8::to_ascii_lowercase))),
        (HirKind::Empty | HirKind::Look(_), None) => {}
        _ => return false,
    }
    true
}

/// Each of these before each of those; `Err` with these if that would be too many.
fn joined(mut these: Texts, those: &[Vec<u8>]) -> Result<Texts, Texts> {
    match those {
        [one] => these
            .iter_mut()
            .for_each(|text| text.extend_from_slice(one)),
        _ if these.len() * those.len() > ALTERNATIVES_MAX => return Err(these),
        _ => {
            these = these
                .iter()
                .flat_map(|one| those.iter().map(|other| [&one[..], other].concat()))
                .collect()
        }
    }
    Ok(these)
}

/// Finds what every text has that matches these parts one after the other; answers what it can
/// begin with.
fn along(parts: &[Hir], found: &mut Vec<AnyOf>) -> Texts {
    let nothing = || vec![Vec::new()];
    let (mut run, mut begins) = (nothing(), None);
    for part in parts {
        if extended(&mut run, part) {
            continue;
        }
        let more = match all(part) {
            Some(texts) => match joined(std::mem::take(&mut run), &texts) {
                Ok(longer) => {
                    run = longer;
                    continue;
                }
                Err(full) => {
                    run = full;
                    texts
                }
            },
            None => {
                inside(part, found);
                nothing()
            }
        };
        let run = std::mem::replace(&mut run, more);
        begins.get_or_insert_with(|| run.clone());
        put(run, found);
    }
    begins.get_or_insert_with(|| run.clone());
    put(run, found);
    begins.unwrap_or_default()
}

/// Finds what every text has that matches `hir`.
fn inside(hir: &Hir, found: &mut Vec<AnyOf>) {
    match hir.kind() {
        HirKind::Repetition(repetition) if repetition.min > 0 => inside(&repetition.sub, found),
        HirKind::Capture(capture) => inside(&capture.sub, found),
        HirKind::Concat(parts) => drop(along(parts, found)),
        HirKind::Alternation(parts) if all(hir).is_none() => {
            let longest = |part: &Hir| {
                let mut of_it = Vec::new();
                inside(part, &mut of_it);
                of_it.into_iter().max_by_key(shortest)
            };
            let every: Option<Vec<AnyOf>> = parts.iter().map(longest).collect();
            let any: AnyOf = every.unwrap_or_default().concat();
            if !any.is_empty() && any.len() <= ALTERNATIVES_MAX {
                found.push(any);
            }
        }
        _ => all(hir).into_iter().for_each(|texts| put(texts, found)),
    }
}

/// Notes that one of these is there, if that tells something.
fn put(mut texts: Texts, found: &mut Vec<AnyOf>) {
    if !texts.is_empty() && texts.iter().all(|text| text.len() >= SHORTEST) {
        texts.sort_unstable();
        texts.dedup();
        found.push(texts.into_iter().map(Vec::into_boxed_slice).collect());
    }
}

/// Returns what all texts begin with.
fn common(texts: &[Vec<u8>]) -> Option<&[u8]> {
    let (first, others) = texts.split_first()?;
    let same = |other: &Vec<u8>| first.iter().zip(other).take_while(|(a, b)| a == b).count();
    Some(&first[..others.iter().map(same).min().unwrap_or(first.len())])
}

/// Length of the shortest: what a set is worth.
pub(crate) fn shortest(any: &AnyOf) -> usize {
    any.iter().map(|text| text.len()).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(needed: &Needed) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let start = needed.start.as_deref().map(text).unwrap_or_default();
        let inside: Vec<_> = needed
            .inside
            .iter()
            .map(|any| {
                any.iter()
                    .map(|one| text(one))
                    .collect::<Vec<_>>()
                    .join("|")
            })
            .collect();
        format!("{start} > {}", inside.join(" & "))
    }

    #[test]
    fn what_every_match_contains_is_found() {
        for (expression, wanted) in [
            (
                "^SELECT.*FROM (orders|users)$",
                "select > select & from orders|from users",
            ),
            ("FROM t1", " > from t1"),
            ("(?:ab)+c*(de)?", " > ab"),
            ("ab|c", " > "),
            ("^$", " > "),
            ("a.b", " > "),
            (
                r"^SELECT c FROM sbtest\d+ WHERE id=\?$",
                "select c from sbtest > select c from sbtest &  where id=?",
            ),
            ("^(insert|Insane) x", "ins > insane x|insert x"),
            (r"\bfrom\b[ ]t[12]\s", " > from t1|from t2"),
            ("a[bcdef]+(xyz+|[0-9]zz)", " > xy|zz"),
            (
                "(ab|cd|ef)(gh|ij|kl)x(abcd|efgh|ijkl|mnop|qrst)",
                " > abghx|abijx|abklx|cdghx|cdijx|cdklx|efghx|efijx|efklx & abcd|efgh|ijkl|mnop|qrst",
            ),
            ("(ab|)", " > "),
        ] {
            let needed = Needed::by_linear(expression);
            assert_eq!(shown(&needed), wanted, "{expression}");
            assert_eq!(Packed::of(&needed).unpacked(), needed, "{expression}");
            let caseless = syntax::Config::new()
                .unicode(false)
                .utf8(false)
                .case_insensitive(true);
            assert_eq!(
                shown(&Needed::of(
                    &syntax::parse_with(expression, &caseless).unwrap()
                )),
                wanted,
                "{expression}, whatever the case"
            );
        }
        for (expression, wanted) in [
            ("^SELECT(?!.*FOR UPDATE)", "select > "),
            ("^ab?(?=c)", " > "),
            ("^abc{2}(?=c)", "ab > "),
            ("^abc(?#or none)*(?=d)", "ab > "),
            (r"^abc\Q\E*(?=d)", "ab > "),
            (r"^abc\s(?=d)", "abc > "),
            ("^ab|c(?=d)", " > "),
            ("(?=ab)", " > "),
        ] {
            let needed = Needed::by_pcre(expression);
            assert_eq!(shown(&needed), wanted, "{expression}");
            assert_eq!(Packed::of(&needed).unpacked(), needed, "{expression}");
        }
    }
}
