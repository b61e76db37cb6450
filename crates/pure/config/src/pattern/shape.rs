//! The commonest expressions, matched by comparing: `^SELECT`, `^SELECT.*`, `^SELECT.*FOR UPDATE`, `^SELECT.*FOR UPDATE$`.

/// `^head`, then perhaps `.*tail`, then perhaps `$`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    head: Box<[u8]>,
    tail: Tail,
    caseless: bool,
    /// `$` also matches before a newline that ends the text.
    newline: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tail {
    /// Whatever follows.
    Any,
    /// Nothing may follow.
    End,
    /// The rest of the line contains it; it is not empty.
    Within(Box<[u8]>),
    /// The rest is one line that ends with it.
    EndsWith(Box<[u8]>),
}

impl Shape {
    pub(super) fn of(text: &str, caseless: bool, newline: bool) -> Option<Self> {
        let text = text.strip_prefix('^')?;
        let (text, ends) = text.strip_suffix('$').map_or((text, false), |text| (text, true));
        let (head, tail) = text.split_once(".*").map_or((text, None), |(head, tail)| (head, Some(tail)));
        if ![head, tail.unwrap_or_default()].iter().all(|part| part.bytes().all(is_literal)) {
            return None;
        }
        let tail = match (tail, ends) {
            (None, false) | (Some(""), false) => Tail::Any,
            (None, true) => Tail::End,
            (Some(tail), false) => Tail::Within(tail.as_bytes().into()),
            (Some(tail), true) => Tail::EndsWith(tail.as_bytes().into()),
        };
        Some(Self { head: head.as_bytes().into(), tail, caseless, newline })
    }

    fn same(&self, a: &[u8], b: &[u8]) -> bool {
        if self.caseless { a.eq_ignore_ascii_case(b) } else { a == b }
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        let Some((head, rest)) = text.split_at_checked(self.head.len()) else { return false };
        if !self.same(head, &self.head) {
            return false;
        }
        let to_end = || match rest {
            [most @ .., b'\n'] if self.newline => most,
            _ => rest,
        };
        match &self.tail {
            Tail::Any => true,
            Tail::End => to_end().is_empty(),
            Tail::Within(tail) => {
                let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
                let first = |window: &[u8]| window[0].eq_ignore_ascii_case(&tail[0]);
                line.windows(tail.len()).any(|window| first(window) && self.same(window, tail))
            }
            Tail::EndsWith(tail) => {
                let rest = to_end();
                let Some(between) = rest.len().checked_sub(tail.len()) else { return false };
                self.same(&rest[between..], tail) && !rest[..between].contains(&b'\n')
            }
        }
    }
}

/// Bytes that stand for themselves in every dialect.
const fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b',' | b'\'' | b'`' | b'"' | b'=' | b';' | b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_says_what_the_engine_says() {
        let expressions =
            ["^", "^$", "^a", "^a$", "^a.*", "^a.*b", "^a.*b$", "^a.*$", "^.*b", "^.*b$", "^SELECT.*FOR UPDATE$", "^ab.*ba$"];
        let mut texts: Vec<Vec<u8>> =
            vec![b"SELECT 1 FOR UPDATE".into(), b"SELECT 1\nFOR UPDATE".into(), b"SELECTFOR UPDATE\n".into()];
        for n in 0..4_usize.pow(5) {
            let text: Vec<u8> = (0..5).map(|digit| b"aB\n."[(n >> (2 * digit)) & 3]).collect();
            texts.extend((0..=5).map(|length| text[..length].to_vec()));
        }
        for expression in expressions {
            for (caseless, newline) in [(true, true), (false, true), (true, false)] {
                let shape = Shape::of(expression, caseless, newline).expect(expression);
                let linear =
                    regex::bytes::RegexBuilder::new(expression).unicode(false).case_insensitive(caseless).build().unwrap();
                let pcre = pcre2::bytes::RegexBuilder::new().caseless(caseless).build(expression).unwrap();
                for text in &texts {
                    let told = if newline { pcre.is_match(text).unwrap() } else { linear.is_match(text) };
                    assert_eq!(shape.is_match(text), told, "{expression} {:?}", String::from_utf8_lossy(text));
                }
            }
        }
    }

    #[test]
    fn what_is_not_literal_has_no_shape() {
        for expression in ["SELECT", "^SELECT.+", "^a.*b.*c", "^(a)", r"^\s*SELECT", "^SELECT?", "^a|b", "^a.b"] {
            assert_eq!(Shape::of(expression, true, true), None, "{expression}");
        }
    }
}
