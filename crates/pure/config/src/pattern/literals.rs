//! What a text must contain for an expression to match it: what a filter can look for in one pass over many.

use regex_syntax::hir::{Hir, HirKind, Look};

/// Texts of which at least one is in every text that matches, in whatever case. Letters are lower case.
pub(crate) type AnyOf = Vec<Box<[u8]>>;

/// What is known of an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    /// Every text that matches begins so.
    pub(crate) start: Option<Box<[u8]>>,
    /// Each of these holds.
    pub(crate) inside: Vec<AnyOf>,
}

/// A text of one byte tells next to nothing.
const SHORTEST: usize = 2;
/// Longer alternatives are not worth their place.
const ALTERNATIVES_MAX: usize = 32;

impl Needed {
    /// Of an expression that the linear engine runs.
    pub(crate) fn by_linear(text: &str) -> Self {
        let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
        let Ok(hir) = parser.parse(text) else { return Self::default() };
        let start = match hir.kind() {
            HirKind::Concat(parts) => match &parts[..] {
                [first, second, ..] if *first.kind() == HirKind::Look(Look::Start) => literal(second),
                _ => None,
            },
            _ => None,
        };
        Self { start: start.filter(|start| start.len() >= SHORTEST), inside: inside(&hir) }
    }

    /// Of an expression that only PCRE can run: what it begins with, if that is plain text. An `|` may make that one
    /// of several beginnings, so with one nothing is known.
    pub(crate) fn by_pcre(text: &str) -> Self {
        let Some(rest) = text.strip_prefix('^').filter(|rest| !rest.contains('|')) else { return Self::default() };
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b',' | b'`' | b'=' | b'@');
        let mut length = rest.bytes().take_while(|byte| plain(byte)).count();
        if matches!(rest.as_bytes().get(length), Some(b'*' | b'?' | b'{' | b'+')) {
            length = length.saturating_sub(1);
        }
        let start: Box<[u8]> = rest.as_bytes()[..length].to_ascii_lowercase().into();
        Self { start: (length >= SHORTEST).then_some(start), inside: Vec::new() }
    }
}

fn literal(hir: &Hir) -> Option<Box<[u8]>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(literal.0.to_ascii_lowercase().into()),
        _ => None,
    }
}

fn inside(hir: &Hir) -> Vec<AnyOf> {
    match hir.kind() {
        HirKind::Literal(_) => literal(hir).filter(|text| text.len() >= SHORTEST).map(|text| vec![text]).into_iter().collect(),
        HirKind::Repetition(repetition) if repetition.min > 0 => inside(&repetition.sub),
        HirKind::Capture(capture) => inside(&capture.sub),
        HirKind::Concat(parts) => parts.iter().flat_map(inside).collect(),
        HirKind::Alternation(parts) => {
            let longest = |part: &Hir| inside(part).into_iter().max_by_key(shortest);
            let all: Option<Vec<AnyOf>> = parts.iter().map(longest).collect();
            let any: AnyOf = all.unwrap_or_default().concat();
            if any.is_empty() || any.len() > ALTERNATIVES_MAX { Vec::new() } else { vec![any] }
        }
        _ => Vec::new(),
    }
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
        let inside: Vec<_> =
            needed.inside.iter().map(|any| any.iter().map(|one| text(one)).collect::<Vec<_>>().join("|")).collect();
        format!("{start} > {}", inside.join(" & "))
    }

    #[test]
    fn what_every_match_contains_is_found() {
        for (expression, wanted) in [
            ("^SELECT.*FROM (orders|users)$", "select > select & from  & orders|users"),
            ("FROM t1", " > from t1"),
            ("(?:ab)+c*(de)?", " > ab"),
            ("ab|c", " > "),
            ("^$", " > "),
            ("a.b", " > "),
            (r"^SELECT c FROM sbtest\d+ WHERE id=\?$", "select c from sbtest > select c from sbtest &  where id=?"),
        ] {
            assert_eq!(shown(&Needed::by_linear(expression)), wanted, "{expression}");
        }
        for (expression, wanted) in [
            ("^SELECT(?!.*FOR UPDATE)", "select > "),
            ("^ab?(?=c)", " > "),
            ("^abc{2}(?=c)", "ab > "),
            ("^ab|c(?=d)", " > "),
            ("(?=ab)", " > "),
        ] {
            assert_eq!(shown(&Needed::by_pcre(expression)), wanted, "{expression}");
        }
    }
}
