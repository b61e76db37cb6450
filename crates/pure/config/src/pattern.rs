//! Expressions of rules: `match_digest`, `match_pattern` and `replace_pattern`.
//!
//! Operators write PCRE (or RE2, by mysql-query_processor_regex). What both mean alike runs on the
//! linear-time engine of the `regex` crate; what only PCRE can say, or says differently, runs on
//! PCRE. The commonest shapes (`^SELECT`, `^SELECT.*FOR UPDATE$`) need no engine. Twenty thousand
//! expressions have to be compiled within a second or two, and a filter has looked for their
//! literals before they are tried: so they are compiled without what would only look for these once
//! more. Texts are bytes; letters' case is ASCII's.

mod bounded;
mod literals;
mod matcher;
mod replacement;
mod shape;

use literals::Packed;
pub(crate) use literals::{AnyOf, Needed, shortest};
use matcher::Matcher;
pub(crate) use matcher::Workbench;
use regex_automata::meta::{Config, Regex as Linear};
use regex_automata::util::syntax;
pub use replacement::{GaveUp, Replacement, fuzz_replacement};
use replacement::{Perl, repeats_nothing};
use shape::Shape;

/// A compiled expression. A clone has scratch memory of its own.
#[derive(Debug, Clone)]
pub struct Pattern {
    shape: Option<Shape>,
    engine: Engine,
    newline: Newline,
    needed: Packed,
}

/// PCRE's `$` also matches before a newline that ends the text. How texts that end so are matched:
#[derive(Debug, Clone)]
enum Newline {
    /// As others: there is no `$`.
    AsIs,
    /// There is one `$`, and nothing follows it: such a text also matches if it does without its
    /// newline.
    Without,
    /// On PCRE.
    Pcre(Box<Perl>),
}

#[derive(Debug, Clone)]
enum Engine {
    /// Its shape says all.
    None,
    /// For what only has to match.
    Matcher(Box<Matcher>),
    /// With what replaces everywhere where the expression may match nothing.
    Linear(Box<Linear>, Option<Box<Perl>>),
    Pcre(Box<Perl>),
}

/// Whose notation an expression is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Perl's, as PCRE has it.
    Pcre,
    /// RE2's: no look-around, no back-references.
    Re2,
}

impl Pattern {
    /// Compiles `text`, or says in plain words what is wrong with it.
    pub fn compile(text: &str, caseless: bool, dialect: Dialect) -> Result<Self, String> {
        Self::compiled(&mut Workbench::default(), text, caseless, dialect, false)
    }

    /// Compiles `text` more cheaply, where nothing will be replaced: PCRE is not needed for a `$`
    /// at the end.
    pub(crate) fn to_match(
        bench: &mut Workbench,
        text: &str,
        caseless: bool,
        dialect: Dialect,
    ) -> Result<Self, String> {
        Self::compiled(bench, text, caseless, dialect, true)
    }

    /// Whether it says the same of all statements that differ in values only, as long as no value has a newline.
    pub(crate) fn is_blind_to_values(&self) -> bool {
        self.shape.as_ref().is_some_and(Shape::is_blind_to_values)
    }

    /// Returns what a text must have to match.
    pub(crate) fn needed(&self) -> Needed {
        self.needed.unpacked()
    }

    fn compiled(
        bench: &mut Workbench,
        text: &str,
        caseless: bool,
        dialect: Dialect,
        only_matches: bool,
    ) -> Result<Self, String> {
        if only_matches && let Some(shape) = Shape::of(text, caseless, dialect == Dialect::Pcre) {
            let needed = Packed::of(&shape.needed());
            return Ok(Self {
                shape: Some(shape),
                engine: Engine::None,
                newline: Newline::AsIs,
                needed,
            });
        }
        let perl = |text| match only_matches {
            true => Perl::to_match(text, caseless),
            false => Perl::to_replace(text, caseless),
        };
        let (engine, needed) = match only_matches {
            // It is parsed once for both: that is most of what compiling takes.
            true => Matcher::compile(bench, text, caseless)
                .map(|(matcher, needed)| (Engine::Matcher(Box::new(matcher)), needed)),
            false => linear(text, caseless, dialect),
        }
        .map_or_else(
            |words| (Err(words), Needed::default()),
            |(engine, needed)| (Ok(engine), needed),
        );
        let shape = || {
            if only_matches {
                None
            } else {
                Shape::of(text, caseless, dialect == Dialect::Pcre)
            }
        };
        match (engine, dialect) {
            (Ok(engine), Dialect::Pcre) if !means_more_to_pcre(text) => {
                let newline = match () {
                    () if !has_dollar(text) => Newline::AsIs,
                    () if only_matches && ends_in_its_dollar(text) => Newline::Without,
                    () => Newline::Pcre(Box::new(perl(text)?)),
                };
                Ok(Self {
                    shape: shape(),
                    engine,
                    newline,
                    needed: Packed::of(&needed),
                })
            }
            (_, Dialect::Pcre) => {
                let engine = Engine::Pcre(Box::new(perl(text)?));
                Ok(Self {
                    shape: None,
                    engine,
                    newline: Newline::AsIs,
                    needed: Packed::of(&Needed::by_pcre(text)),
                })
            }
            (Ok(engine), Dialect::Re2) => Ok(Self {
                shape: shape(),
                engine,
                newline: Newline::AsIs,
                needed: Packed::of(&needed),
            }),
            (Err(words), Dialect::Re2) => Err(words),
        }
    }

    /// Whether it matches somewhere in `text`. An expression that PCRE gives up on (too much
    /// backtracking) does not.
    #[must_use]
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.look(text).unwrap_or(false)
    }

    /// Whether the expression matches somewhere in `text`; `None` if PCRE gave up.
    #[must_use]
    pub fn look(&self, text: &[u8]) -> Option<bool> {
        if let Some(shape) = &self.shape {
            return Some(shape.is_match(text));
        }
        Some(match (&self.newline, &self.engine) {
            (Newline::Pcre(perl), _) if text.ends_with(b"\n") => {
                return perl.one.is_match(text).ok();
            }
            (Newline::Without, Engine::Matcher(matcher)) if text.ends_with(b"\n") => {
                matcher.is_match(text) || matcher.is_match(&text[..text.len() - 1])
            }
            (_, Engine::Matcher(matcher)) => matcher.is_match(text),
            (_, Engine::Linear(linear, _)) => linear.is_match(text),
            (_, Engine::Pcre(perl)) => return perl.one.is_match(text).ok(),
            (_, Engine::None) => false,
        })
    }

    /// Number of capturing groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        match &self.engine {
            Engine::None | Engine::Matcher(_) => 0,
            Engine::Linear(linear, _) => linear.captures_len() - 1,
            Engine::Pcre(perl) => perl.one.captures_len() - 1,
        }
    }
}

/// Compiles what is to be replaced by the engine of the `regex` crate, and tells what a text needs
/// to match it. That engine is built as there but for what takes long and is of little use here:
/// looking for literals first, and automata that are made beforehand.
fn linear(text: &str, caseless: bool, dialect: Dialect) -> Result<(Engine, Needed), String> {
    let notation = syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(caseless);
    let parsed = syntax::parse_with(text, &notation).map_err(|error| plain_words(&error))?;
    let engines = Config::new()
        .utf8_empty(false)
        .auto_prefilter(false)
        .onepass(false)
        .dfa(false);
    let built = regex_automata::meta::Builder::new()
        .configure(engines)
        .build_from_hir(&parsed);
    let built = built.map_err(|_| "is too large when it is compiled".to_owned())?;
    let perl = |needed| {
        if needed {
            Perl::to_replace(text, caseless).map(|perl| Some(Box::new(perl)))
        } else {
            Ok(None)
        }
    };
    let engine = match dialect {
        Dialect::Pcre if repeats_nothing(&parsed) => {
            Engine::Pcre(Box::new(Perl::to_replace(text, caseless)?))
        }
        Dialect::Pcre => Engine::Linear(
            Box::new(built),
            perl(parsed.properties().minimum_len() == Some(0))?,
        ),
        Dialect::Re2 => Engine::Linear(Box::new(built), None),
    };
    Ok((engine, Needed::of(&parsed)))
}

/// Compiles an expression as PCRE has it by itself, to compare with.
fn pcre(text: &str, caseless: bool) -> Result<pcre2::bytes::Regex, String> {
    bounded::pcre("(*LIMIT_MATCH=1000000)", text, caseless, true)
}

fn plain_words(error: &regex_syntax::Error) -> String {
    let whole = error.to_string();
    let last = whole.lines().last().unwrap_or_default();
    last.trim().trim_start_matches("error: ").to_owned()
}

/// Walks over the signs of an expression: (sign, is it escaped, is it inside a class, where).
fn signs(text: &str) -> impl Iterator<Item = (u8, bool, bool, usize)> {
    let bytes = text.as_bytes();
    let (mut at, mut class_start) = (0, None);
    std::iter::from_fn(move || {
        let start = at;
        let sign = *bytes.get(at)?;
        at += 1;
        if sign == b'\\' {
            let escaped = *bytes.get(at)?;
            at += 1;
            return Some((escaped, true, class_start.is_some(), start));
        }
        let inside = class_start.is_some();
        match (sign, class_start) {
            (b'[', None) => {
                class_start = Some(start);
                // A ] right after [ or [^ is a member.
                if bytes.get(at) == Some(&b'^') {
                    at += 1;
                }
                if bytes.get(at) == Some(&b']') {
                    at += 1;
                }
            }
            (b'[', Some(_)) if bytes.get(at) == Some(&b':') => {
                if let Some(length) = text[at..].find(":]") {
                    at += length + 2;
                    return Some((b':', false, true, start));
                }
            }
            (b']', Some(_)) => class_start = None,
            _ => {}
        }
        Some((sign, false, inside, start))
    })
}

fn has_dollar(text: &str) -> bool {
    signs(text).any(|(sign, escaped, inside, _)| sign == b'$' && !escaped && !inside)
}

/// Whether its only `$` is its last sign, and nothing else asks for the end of the text.
fn ends_in_its_dollar(text: &str) -> bool {
    let dollars =
        signs(text).filter(|(sign, escaped, inside, _)| *sign == b'$' && !escaped && !inside);
    let ends = signs(text).any(|(sign, escaped, ..)| escaped && matches!(sign, b'z' | b'Z'));
    let mut at = dollars.map(|(.., at)| at);
    at.next() == Some(text.len().wrapping_sub(1)) && at.next().is_none() && !ends
}

/// Whether the linear engine, though it accepts `text`, would read it differently: possessive
/// quantifiers, `\<` and `\>`, `\v`, signs inside classes that only it gives a meaning, blanks
/// inside of a quantifier, and options inside the expression.
fn means_more_to_pcre(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut before = 0;
    signs(text).any(|(sign, escaped, inside, at)| {
        let possessive =
            sign == b'+' && !escaped && !inside && matches!(before, b'*' | b'+' | b'?' | b'}');
        let next = bytes.get(at + 1);
        let doubled =
            !escaped && inside && matches!(sign, b'&' | b'-' | b'~') && next == Some(&sign);
        let nested = !escaped && inside && sign == b'[';
        let other = escaped && matches!(sign, b'<' | b'>' | b'u' | b'U' | b'v');
        let boundary = escaped && matches!(sign, b'b' | b'B') && bytes.get(at + 2) == Some(&b'{');
        let options = !escaped
            && !inside
            && sign == b'('
            && next == Some(&b'?')
            && bytes.get(at + 2) != Some(&b':');
        let counted = || bytes[at + 1..].iter().take_while(|byte| **byte != b'}');
        let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b',' || !byte.is_ascii_graphic();
        let blank = sign == b'{'
            && !escaped
            && !inside
            && counted().all(digits)
            && !counted().all(u8::is_ascii_graphic);
        before = if escaped || inside { 0 } else { sign };
        blank || possessive || doubled || nested || other || boundary || options
    })
}

/// Body of a fuzz target: an expression, whether letters' case matters, and a text, with a NUL
/// between. What is matched and replaced is what PCRE would; and a text that matches has what the
/// expression is said to need.
///
/// # Panics
/// It is not so.
pub fn fuzz_pattern(data: &[u8]) {
    let Some((caseless, rest)) = data.split_first() else {
        return;
    };
    let caseless = caseless & 1 == 1;
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let (Some(Ok(expression)), Some(text)) = (parts.next().map(std::str::from_utf8), parts.next())
    else {
        return;
    };
    if expression.len() > 64 || text.len() > 256 {
        return;
    }
    let Ok(told) = pcre(expression, caseless) else {
        return;
    };
    let pattern =
        Pattern::compile(expression, caseless, Dialect::Pcre).expect("what PCRE takes is taken");
    // What PCRE gives up on does not count.
    let Ok(matches) = told.is_match(text) else {
        return;
    };
    let bounded = bounded::Bounded::to_match(expression, caseless).expect("the same expression");
    assert!(
        bounded
            .is_match_in_long(text)
            .is_ok_and(|found| found == matches)
            || bounded.is_match_in_long(text).is_err(),
        "{expression:?}"
    );
    let to_match = Pattern::to_match(
        &mut Workbench::default(),
        expression,
        caseless,
        Dialect::Pcre,
    )
    .expect("the same expression");
    assert_eq!(
        pattern.is_match(text),
        matches,
        "{expression:?} {:?}",
        String::from_utf8_lossy(text)
    );
    assert_eq!(
        to_match.is_match(text),
        matches,
        "{expression:?} {:?}",
        String::from_utf8_lossy(text)
    );
    if matches {
        let text = text.to_ascii_lowercase();
        let has = |one: &[u8]| memchr::memmem::find(&text, one).is_some();
        for needed in [pattern.needed(), to_match.needed()] {
            assert!(
                needed
                    .start
                    .as_deref()
                    .is_none_or(|start| text.starts_with(start)),
                "{expression:?}"
            );
            assert!(
                needed
                    .inside
                    .iter()
                    .all(|any| any.iter().any(|one| has(one))),
                "{expression:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::compile(text, true, Dialect::Pcre)
            .unwrap_or_else(|words| panic!("{text}: {words}"))
    }

    fn is_linear(pattern: &Pattern) -> bool {
        matches!(pattern.engine, Engine::Linear(..))
    }

    #[test]
    fn look_around_and_back_references_run_on_pcre_the_rest_does_not() {
        assert!(is_linear(&pattern("^SELECT .* FROM (a|b)")));
        for text in [
            "^SELECT(?!.*FOR UPDATE)",
            r"(a)\1",
            "(?>a+)b",
            "a++b",
            r"\bfoo\Z",
            "[[]",
            "[a&&b]",
            r"a\<b",
            "(?i)x",
        ] {
            assert!(!is_linear(&pattern(text)), "{text}");
        }
        assert!(pattern("^SELECT(?!.*FOR UPDATE)").is_match(b"select 1"));
        assert!(!pattern("^SELECT(?!.*FOR UPDATE)").is_match(b"select 1 for update"));
    }

    #[test]
    fn what_runs_on_the_linear_engine_matches_what_pcre_matches() {
        let mut bench = Workbench::default();
        let expressions = [
            "a|b",
            "^a|b$",
            "a*?b",
            "a{2}",
            "a{2,}b",
            "[^a]b",
            "[]a]",
            "[^]a]",
            "[a-b-]",
            "[a.b]+$",
            r"\.",
            r"a\/b",
            r"\bb",
            r"\Bb",
            r"\w\W",
            r"\s",
            r"\S$",
            r"\d",
            "(a(b)?)+",
            "(?:a|ab)b",
            "[[:alpha:]]b",
            "[[:^alpha:]]",
            "a$b",
            "a|b$",
            r"a\z|b$",
            r"(a|\s)*$",
            r"b\B$",
            r"a\s?$",
            "$",
            "^$",
            ".",
            "..$",
            r"a\z",
            r"\Aa",
            r"[\w.]b",
            r"[\]a]",
            r"\x61",
            r"[\x61-\x62]$",
            "()",
            "a||b",
            "(|a)b",
            r"\v",
            r"\R",
            "a{,2}",
            "a{",
            "]",
            "}",
            "{a}",
            r"\_",
            "&&",
            "[&a]",
            r"\#",
            "a #b",
            r"\e",
            "(?#x)a",
            "a*+b",
            "a?+",
            "x{1}+",
        ];
        let mut texts = vec![Vec::new()];
        for n in 0..7_usize.pow(4) {
            let text: Vec<u8> = (0..4)
                .map(|digit| b"aB\n./_\x0b"[n / 7_usize.pow(digit) % 7])
                .collect();
            texts.extend((1..=4).map(|length| text[..length].to_vec()));
        }
        let mut on_linear = 0;
        for expression in expressions {
            for caseless in [true, false] {
                let told = pcre(expression, caseless)
                    .unwrap_or_else(|words| panic!("{expression}: {words}"));
                let pattern = Pattern::compile(expression, caseless, Dialect::Pcre).unwrap();
                let to_match =
                    Pattern::to_match(&mut bench, expression, caseless, Dialect::Pcre).unwrap();
                on_linear += usize::from(is_linear(&pattern));
                for text in &texts {
                    let shown = String::from_utf8_lossy(text);
                    let told = told.is_match(text).unwrap();
                    assert_eq!(pattern.is_match(text), told, "{expression} {shown:?}");
                    assert_eq!(to_match.is_match(text), told, "{expression} {shown:?}");
                }
            }
        }
        assert!(on_linear > expressions.len(), "most of them: {on_linear}");
    }

    #[test]
    fn long_statements_do_not_exhaust_pcre() {
        let pattern = pattern("^(a|b|(?=c)c)*$");
        assert!(pattern.is_match(&b"abc".repeat(500)));
    }

    #[test]
    fn pcre_gives_up_on_too_much_backtracking() {
        let pattern = pattern("^(?=a)(a+)+$");
        assert_eq!(
            pattern.look(&[b"a".repeat(60), b"b".to_vec()].concat()),
            None
        );
        assert_eq!(
            (pattern.look(b"aaa"), pattern.look(b"aab")),
            (Some(true), Some(false))
        );
    }

    #[test]
    fn re2_has_no_look_around_and_says_so() {
        let words = Pattern::compile("a(?=b)", true, Dialect::Re2).unwrap_err();
        assert!(words.contains("look-around"), "{words}");
        assert!(
            !Pattern::compile("^a$", true, Dialect::Re2)
                .unwrap()
                .is_match(b"a\n")
        );
    }

    #[test]
    fn what_does_not_compile_is_told_in_plain_words() {
        let words = Pattern::compile("^SELECT (a", true, Dialect::Pcre).unwrap_err();
        assert_eq!(words, "missing closing parenthesis (after 10 characters)");
    }

    #[test]
    fn a_dot_stops_at_newlines_and_a_dollar_matches_before_the_last_one() {
        for text in ["^SELECT.*x$", "^SELECT[ ].*x$", "^(SELECT).*x$"] {
            let pattern = pattern(text);
            assert!(pattern.is_match(b"SELECT x"), "{text}");
            assert!(pattern.is_match(b"select x\n"), "{text}");
            assert!(!pattern.is_match(b"SELECT x\n\n"), "{text}");
            assert!(!pattern.is_match(b"SELECT \n x"), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_bytes() {
        assert!(pattern("^INSERT .*x").is_match(b"insert \xff\xfe x"));
        assert!(pattern("\u{e9}").is_match("caf\u{e9}".as_bytes()));
        assert!(
            pattern("caf[\u{e9}]").is_match("caf\u{e9}".as_bytes()),
            "a class of two bytes, as PCRE reads it"
        );
        assert!(
            !Pattern::compile("a", false, Dialect::Pcre)
                .unwrap()
                .is_match(b"A")
        );
    }
}
