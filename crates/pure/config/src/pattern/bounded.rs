//! PCRE with a bound for a whole text: whatever is written into a statement, no expression holds a
//! core for longer than some tens of milliseconds.
//!
//! PCRE's own limit is for each place where a match may begin, of which a text has as many as
//! bytes; and its compiled form (JIT) does not count the letters that `.*` gives back one by one.
//! So texts that are not short are searched by its interpreter in a way in which there is one place
//! to begin: the expression finds its place itself, and every step to it counts.
//! <https://www.pcre.org/current/doc/html/pcre2api.html#SEC20>

use super::replacement::GaveUp;
use super::signs;
use pcre2::bytes::{Regex, RegexBuilder};

/// Texts up to this many bytes are searched by compiled code first: places × steps at each × bytes
/// for each step.
const SHORT: usize = 1024;
/// Steps that it may take at each place of them; and where there is one only.
const SHORT_STEPS: (u32, u32) = (50, 10_000);
/// Steps that the interpreter may take for a text, from the least to the most: where there is much
/// to replace, most of it is found in few. What a try may take is counted whole, so each is four
/// times the one before.
const STEPS: [u32; 7] = [
    1 << 8,
    1 << 10,
    1 << 12,
    1 << 14,
    1 << 16,
    1 << 18,
    1_200_000,
];
/// Steps for all that is replaced in a text.
const STEPS_TOGETHER: u32 = 2_500_000;
/// KiB that the interpreter may take for its places to go back to. They are given back with the
/// text.
const HEAP_KIB: u32 = 32 << 10;
/// The longest text that is looked at: a step that goes over the whole of it takes that long.
const LONGEST: usize = 16 << 20;
/// Longest text that is looked at where an expression may go over it from each of its places
/// without a step for each letter.
const LONGEST_SCANNED: usize = 8 << 10;
/// Where an expression cannot be made to find its place by itself: steps at each place, and the
/// longest text.
const UNTAMED: (u32, usize) = (1000, 2048);

/// An expression that is searched within these bounds. A clone has scratch memory of its own.
#[derive(Debug, Clone)]
pub(super) struct Bounded {
    short: Regex,
    /// Bytes up to which a text is short.
    short_up_to: usize,
    /// With the steps that each may take.
    long: Box<[(u32, Regex)]>,
    longest: usize,
}

/// Where something was found: the whole and its groups.
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    groups: Vec<Option<(usize, usize)>>,
}

impl Found {
    pub(super) fn group(&self, n: usize) -> Option<(usize, usize)> {
        self.groups.get(n).copied().flatten()
    }
}

/// Steps that are left for a text.
pub(super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(STEPS_TOGETHER)
    }
}

impl Bounded {
    pub(super) fn to_match(text: &str, caseless: bool) -> Result<Self, String> {
        Self::compiled(
            text,
            caseless,
            &STEPS[STEPS.len() - 1..],
            begins_the_text(text),
        )
    }

    pub(super) fn to_replace(text: &str, caseless: bool) -> Result<Self, String> {
        Self::compiled(text, caseless, &STEPS, begins_the_text(text))
    }

    /// Compiles, to replace, what begins with `\\G`: it matches where the search begins, or
    /// nowhere.
    pub(super) fn to_replace_here(text: &str, caseless: bool) -> Result<Self, String> {
        Self::compiled(text, caseless, &STEPS, true)
    }

    fn compiled(text: &str, caseless: bool, steps: &[u32], begins: bool) -> Result<Self, String> {
        let short_steps = if begins { SHORT_STEPS.1 } else { SHORT_STEPS.0 };
        let short = pcre(
            &format!("(*LIMIT_MATCH={short_steps})"),
            text,
            caseless,
            true,
        )?;
        let interpreted = |steps: u32, text: &str| {
            let bounds =
                format!("(*LIMIT_MATCH={steps})(*LIMIT_HEAP={HEAP_KIB})(*NO_AUTO_POSSESS)");
            pcre(&bounds, text, caseless, false)
                .ok()
                .filter(|made| made.captures_len() == short.captures_len())
        };
        let finding = if begins {
            text.to_owned()
        } else {
            format!(r"\G(?s:.*?)\K(?:{text})")
        };
        let tame = (begins || !means_the_whole(text)).then(|| {
            steps
                .iter()
                .map(|&n| Some((n, interpreted(n, &finding)?)))
                .collect()
        });
        let (long, longest) = match tame.flatten() {
            Some(long) => (
                long,
                if goes_over_the_text(text, begins) {
                    LONGEST_SCANNED
                } else {
                    LONGEST
                },
            ),
            None => (
                interpreted(UNTAMED.0, text)
                    .map(|regex| (UNTAMED.0, regex))
                    .into_iter()
                    .collect(),
                UNTAMED.1,
            ),
        };
        Ok(Self {
            short,
            short_up_to: SHORT,
            long,
            longest,
        })
    }

    /// Every text counts as a long one.
    pub(super) fn takes_all_for_long(&mut self) {
        self.short_up_to = 0;
    }

    pub(super) fn captures_len(&self) -> usize {
        self.short.captures_len()
    }

    pub(super) fn is_match(&self, text: &[u8]) -> Result<bool, GaveUp> {
        if text.len() <= self.short_up_to
            && let Ok(found) = self.short.is_match(text)
        {
            return Ok(found);
        }
        self.is_match_in_long(text)
    }

    pub(super) fn is_match_in_long(&self, text: &[u8]) -> Result<bool, GaveUp> {
        let (_, regex) = self
            .long
            .last()
            .filter(|_| text.len() <= self.longest)
            .ok_or(GaveUp)?;
        // What it takes is given back with this.
        let mut found = regex.capture_locations();
        regex
            .captures_read_at(&mut found, text, 0)
            .map(|found| found.is_some())
            .map_err(|_| GaveUp)
    }

    /// The first match from `at` on.
    pub(super) fn find(
        &self,
        text: &[u8],
        at: usize,
        budget: &mut Budget,
    ) -> Result<Option<Found>, GaveUp> {
        if text.len() <= self.short_up_to
            && let Ok(found) = find_by(&self.short, text, at)
        {
            return Ok(found);
        }
        self.find_in_long(text, at, budget)
    }

    pub(super) fn find_in_long(
        &self,
        text: &[u8],
        at: usize,
        budget: &mut Budget,
    ) -> Result<Option<Found>, GaveUp> {
        for (steps, regex) in self.long.iter().filter(|_| text.len() <= self.longest) {
            budget.0 = budget.0.checked_sub(*steps).ok_or(GaveUp)?;
            if let Ok(found) = find_by(regex, text, at) {
                return Ok(found);
            }
        }
        Err(GaveUp)
    }
}

fn find_by(regex: &Regex, text: &[u8], at: usize) -> Result<Option<Found>, pcre2::Error> {
    let mut locations = regex.capture_locations();
    let whole = regex.captures_read_at(&mut locations, text, at)?;
    Ok(whole.map(|whole| Found {
        start: whole.start(),
        end: whole.end(),
        groups: (0..regex.captures_len())
            .map(|n| locations.get(n))
            .collect(),
    }))
}

/// Compiles `text` with PCRE's own settings before it.
pub(super) fn pcre(settings: &str, text: &str, caseless: bool, jit: bool) -> Result<Regex, String> {
    RegexBuilder::new()
        .caseless(caseless)
        .jit_if_available(jit)
        // With the 32 KiB that are the default, longer statements would end the matching.
        .max_jit_stack_size(jit.then_some(1 << 20))
        .build(&format!("{settings}{text}"))
        .map_err(|error| {
            // "PCRE2: error compiling pattern at offset 3: missing closing parenthesis"
            let whole = error.to_string();
            let said = whole
                .strip_prefix("PCRE2: error compiling pattern ")
                .unwrap_or(&whole);
            match (error.offset(), said.split_once(": ")) {
                (Some(offset), Some((_, words))) => {
                    format!(
                        "{words} (after {} characters)",
                        offset.saturating_sub(settings.len())
                    )
                }
                _ => said.to_owned(),
            }
        })
}

/// Whether it can only match at the begin of a text: it begins with `^`, has no alternatives
/// outside of groups, and no options that give `^` another meaning.
fn begins_the_text(text: &str) -> bool {
    let mut depth = 0_i32;
    let has_options = |at: usize| matches!(text.as_bytes().get(at..), Some([b'(', b'?', letter, ..]) if *letter != b'P' && letter.is_ascii_alphabetic() || matches!(letter, b'^' | b'-'));
    text.starts_with('^')
        && signs(text)
            .filter(|(_, escaped, inside, _)| !escaped && !inside)
            .all(|(sign, _, _, at)| {
                depth += i32::from(sign == b'(') - i32::from(sign == b')');
                !(has_options(at) || sign == b'|' && depth <= 0)
            })
}

/// Whether it speaks of the whole expression, of which it would be a part: verbs such as `(*SKIP)`,
/// and `(?R)`.
fn means_the_whole(text: &str) -> bool {
    let opens = |sign, escaped: bool, inside: bool| sign == b'(' && !escaped && !inside;
    signs(text).any(|(sign, escaped, inside, at)| {
        opens(sign, escaped, inside) && text.as_bytes().get(at + 1) == Some(&b'*')
    }) || ["(?R", "(?0", r"\g<0", r"\g'0", "(?+0", "(?-0", "(?C"]
        .iter()
        .any(|words| text.contains(words))
}

/// Whether it may go over the text from many places without a step for each letter: what looks
/// ahead, gives nothing back or says again what a group has had, as long as it likes. Looking ahead
/// from one place is harmless.
fn goes_over_the_text(text: &str, begins: bool) -> bool {
    let bytes = text.as_bytes();
    let repeats = |at: usize| match bytes.get(at) {
        Some(b'*' | b'+') => true,
        Some(b'{') => {
            let inside: &[u8] = bytes[at + 1..]
                .split(|byte| *byte == b'}')
                .next()
                .unwrap_or_default();
            let most = inside
                .rsplit(|byte| *byte == b',')
                .next()
                .unwrap_or_default();
            !(matches!(most.len(), 1 | 2) && most.iter().all(u8::is_ascii_digit))
        }
        _ => false,
    };
    // Of each open group: whether it looks ahead or is atomic, and whether something in it goes
    // over the text.
    let mut groups: Vec<(bool, bool)> = Vec::new();
    let (mut many, mut previous) = (!begins, 0);
    for (sign, escaped, inside, at) in signs(text) {
        let after = at + if escaped { 2 } else { 1 };
        let plain = !escaped && !inside;
        if escaped && !inside && matches!(sign, b'1'..=b'9' | b'g' | b'k')
            || text.get(at..).is_some_and(|rest| rest.starts_with("(?P="))
        {
            return true;
        }
        if plain && sign == b'+' && matches!(previous, b'*' | b'+' | b'?' | b'}') {
            return true;
        }
        if plain && sign == b'(' {
            let is_ahead = matches!(
                bytes.get(at + 1..),
                Some([b'?', b'=' | b'!' | b'>' | b'(', ..])
            );
            groups.push((is_ahead, false));
        } else if repeats(at) && plain && previous != 0 {
            match groups.iter().position(|(is_ahead, _)| *is_ahead) {
                Some(_) if many => return true,
                Some(_) => groups.iter_mut().for_each(|(_, goes)| *goes = true),
                None => many = true,
            }
        } else if plain && sign == b')' {
            let (_, goes) = groups.pop().unwrap_or_default();
            if goes && repeats(after) {
                return true;
            }
        }
        previous = if plain { sign } else { b'a' };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expressions that only PCRE has, in forms that are easily lost when it finds its place by
    /// itself.
    const EXPRESSIONS: [&str; 36] = [
        "(?=a)(a+)+$",
        "^(?=a)(a+)+$",
        "a(?!b)",
        "(?<=a)b",
        "(?<!a)b|c",
        r"(a)\1",
        "(?>a+)b",
        "a++b",
        r"\bab\Z",
        "(?i)x|a",
        "(?m)^b",
        "(?m)a$",
        "(?x) a # b\n",
        "(?x) a # b",
        r"a\Kb",
        "(a|b)*(?=c)c",
        "^a|b(?=c)",
        "a(*SKIP)b|.",
        "a(?R)?b",
        "(?|(a)|(b))c",
        r"\Aa|\Gb",
        "(?=(a))a|b(?!c)",
        "a(*COMMIT)b",
        "(*LIMIT_MATCH=100)b(?!c)",
        r"\Qa|b",
        "(?:(?=b)b|a)*?c",
        "(?=.*c)(?=.*b).a",
        "(a)?(?(1)b|c)",
        "(?s).(?!.)",
        "(?<n>a)(?&n)",
        "(?!)",
        "(?=)",
        "",
        "(?=b)|c",
        r"(?<=\n)a",
        r"$(?<!b)",
    ];

    fn texts() -> impl Iterator<Item = Vec<u8>> {
        (0..=5_u32).flat_map(|length| {
            (0..4_usize.pow(length))
                .map(move |n| (0..length).map(|at| b"abc\n"[n >> (2 * at) & 3]).collect())
        })
    }

    #[test]
    fn what_is_found_in_a_long_text_is_what_pcre_finds() {
        let mut tame = 0;
        for expression in EXPRESSIONS {
            let told = pcre("(*LIMIT_MATCH=1000000)", expression, true, true).unwrap();
            let (to_match, to_replace) = (
                Bounded::to_match(expression, true).unwrap(),
                Bounded::to_replace(expression, true).unwrap(),
            );
            tame += usize::from(to_match.long[0].0 != UNTAMED.0);
            for text in texts() {
                let shown = String::from_utf8_lossy(&text);
                for at in 0..=text.len().min(2) {
                    let told = find_by(&told, &text, at)
                        .unwrap()
                        .map(|found| (found.start, found.end, found.groups));
                    let found = to_replace
                        .find_in_long(&text, at, &mut Budget::default())
                        .unwrap();
                    assert_eq!(
                        found.map(|found| (found.start, found.end, found.groups)),
                        told,
                        "{expression} {shown:?} {at}"
                    );
                    if at == 0 {
                        assert_eq!(
                            to_match.is_match_in_long(&text),
                            Ok(told.is_some()),
                            "{expression} {shown:?}"
                        );
                        assert_eq!(
                            to_match.is_match(&text),
                            Ok(told.is_some()),
                            "{expression} {shown:?}"
                        );
                    }
                }
            }
        }
        assert_eq!(tame, EXPRESSIONS.len() - 6);
    }

    /// Each held a core for seconds, minutes or hours: steps were counted from each place anew, or
    /// not at all.
    #[test]
    fn a_statement_that_is_made_to_be_hard_is_given_up() {
        let long = 1 << 20;
        let texts: [(&str, String); 8] = [
            ("(?=a)(a+)+$", "a".repeat(long) + "b"),
            ("^(?=a)(a+)+$", "a".repeat(long) + "b"),
            ("(?=.*foo).*bar", "a".repeat(long) + "foo"),
            (
                "SELECT(?!.*FOR UPDATE)",
                "SELECT ".repeat(long / 7) + "FOR UPDATE",
            ),
            ("SELECT(?!.*FOR UPDATE)x", "SELECT ".repeat(long / 7)),
            ("^(?!x).*.*.*z$", "z".to_owned() + &"a".repeat(long)),
            (r"(\w+)\1+x", "x".to_owned() + &"a".repeat(long)),
            ("(?!x).*a.*b.*z$", "zb".to_owned() + &"a".repeat(long)),
        ];
        for (expression, text) in texts {
            let bounded = Bounded::to_replace(expression, true).unwrap();
            assert_eq!(
                bounded.is_match(text.as_bytes()),
                Err(GaveUp),
                "{expression}"
            );
            assert!(
                bounded
                    .find(text.as_bytes(), 0, &mut Budget::default())
                    .is_err(),
                "{expression}"
            );
        }
        // As are many places that are each worth much.
        let much = "a1".repeat(1_000_000);
        let bounded = Bounded::to_replace("(?=a)a.{100}", true).unwrap();
        let mut budget = Budget::default();
        let mut at = 0;
        while let Some(found) = bounded
            .find(much.as_bytes(), at, &mut budget)
            .unwrap_or(None)
        {
            at = found.end;
        }
        assert!(at < much.len() / 2 && at > much.len() / 4, "{at}");
        assert!(bounded.find(much.as_bytes(), at, &mut budget).is_err());
    }

    /// Text between two places costs no more than a few steps for each byte.
    #[test]
    fn places_that_are_far_from_each_other_are_all_found() {
        for apart in [100, 300, 3_000, 10_000] {
            let text = ("old_orders".to_owned() + &" ".repeat(apart)).repeat(160_000 / apart);
            let bounded = Bounded::to_replace(r"(?<!\.)\bold_orders\b(?!_)", true).unwrap();
            let (mut budget, mut at, mut places) = (Budget::default(), 0, 0);
            while let Some(found) = bounded.find(text.as_bytes(), at, &mut budget).unwrap() {
                (at, places) = (found.end, places + 1);
            }
            assert_eq!(places, 160_000 / apart, "{apart} bytes apart");
        }
    }

    #[test]
    fn what_rules_usually_have_is_not_given_up() {
        let long = 1 << 20;
        for (expression, text, found) in [
            (
                "^SELECT(?!.*FOR UPDATE)",
                "SELECT ".to_owned() + &"a".repeat(long),
                true,
            ),
            (
                "^SELECT(?!.*FOR UPDATE)",
                "SELECT ".to_owned() + &"a".repeat(long) + " FOR UPDATE",
                false,
            ),
            ("(?<!x)aab(?!y)", "ab".repeat(long / 8), false),
            ("(?<!x)aab(?!y)", "ab".repeat(long / 8) + "aab", true),
            ("^(?:(?!FOR UPDATE).)*$", "a".repeat(16 << 10), true),
            (
                "^(?=.*foo)(?=.*bar)",
                "foo".to_owned() + &"a".repeat(long) + "bar",
                true,
            ),
            (
                "SELECT(?!.*FOR UPDATE)",
                "SELECT ".repeat(1000) + "FOR UPDATE",
                false,
            ),
            (
                r"\bDROP\s+(?!TEMPORARY)",
                "x ".repeat(long / 8) + "DROP  TABLE",
                true,
            ),
        ] {
            assert_eq!(
                Bounded::to_match(expression, true)
                    .unwrap()
                    .is_match(text.as_bytes()),
                Ok(found),
                "{expression}"
            );
        }
    }

    #[test]
    fn it_is_known_where_an_expression_can_begin() {
        for text in [
            "^a",
            "^(a|b)",
            "^a[|]b",
            r"^a\|b",
            "^(?P<n>a|b)",
            "^(?:a|b)(?!c)",
        ] {
            assert!(begins_the_text(text), "{text}");
        }
        for text in ["a", "^a|b", "(^a)", "^(?m)a", "^(?i:a|b)", "^(a))|b"] {
            assert!(!begins_the_text(text), "{text}");
        }
    }

    #[test]
    fn it_is_known_what_may_go_over_the_text_from_many_places() {
        for (text, goes) in [
            ("^SELECT(?!.*FOR UPDATE)", false),
            ("^(?=.*a)(?=.*b).*c", false),
            ("SELECT(?! FOR UPDATE)", false),
            ("(?<=a)b+", false),
            ("^(?:(?!FOR UPDATE).)*$", false),
            ("a[*+]b", false),
            (r"a\+\*", false),
            ("SELECT(?!.*FOR UPDATE)", true),
            (r"^SELECT\s+(?!.*FOR UPDATE)", true),
            ("^(?:(?!.*b)a)*", true),
            ("^(?:(?!a{1,99}b)a)*", false),
            ("^(?:(?!a{1,999}b)a)*", true),
            ("(?>a+)b", true),
            ("a++b", true),
            ("a?+b", true),
            (r"(a)\1", true),
            ("(?P<n>a)(?P=n)", true),
        ] {
            assert_eq!(
                goes_over_the_text(text, begins_the_text(text)),
                goes,
                "{text}"
            );
        }
    }
}
