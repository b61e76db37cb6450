//! Rewriting by template: a statement of this structure becomes that statement, with its values
//! carried over.
//!
//! Statements are compared part by part as the server reads them: blanks, comments and the case of
//! keywords, columns and functions do not count, quotes around a name do not either, values match
//! placeholders. A text that only looks alike, inside a string or a comment, does not match.

use crate::lexing::Lexing;
use crate::parts::{Part, Parts};
use crate::words::{Kind, Token, Words};
use crate::{CommandCounter, Leaves, class};

/// A pattern and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pattern: Box<[Piece]>,
    fingerprint: u64,
    replacement: Box<[Out]>,
    /// A backslash is in it: it means something else where backslashes do not escape.
    escapes: bool,
    /// A double quote is in it: it may mean something else under `ANSI_QUOTES`.
    quotes: bool,
    /// All of it means the same in every character set that a client may have.
    ascii: bool,
}

/// How a session reads what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Where its strings end.
    pub lexing: Lexing,
    /// Double quotes may make a name.
    pub ansi_quotes: bool,
    /// Whether the session's texts are surely UTF-8, as those of operators are.
    pub utf8: bool,
}

impl Read {
    /// As a session that has set nothing.
    pub const PLAIN: Self = Self {
        lexing: Lexing::Escapes,
        ansi_quotes: false,
        utf8: true,
    };
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Keyword(Box<[u8]>),
    /// Of a table, a schema or an alias: the case counts.
    Name(Box<[u8]>),
    /// Of a column or a function, in any case.
    AnyCase(Box<[u8]>),
    Sign(u8),
    Value(Box<[u8]>),
    /// Any value.
    Slot,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Out {
    Text(Box<[u8]>),
    /// The value of this slot of the pattern.
    Slot(usize),
}

/// A statement that a template has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// Its text.
    pub text: Vec<u8>,
    /// For each `?` in it, in order, which `?` of the statement before it was.
    pub params: Vec<u16>,
    /// How many `?` the statement had before.
    pub params_before: u16,
}

impl Rewritten {
    /// Whether every parameter is where it was: the same execution fits both.
    #[must_use]
    pub fn keeps_params(&self) -> bool {
        self.params.len() == usize::from(self.params_before)
            && (0..)
                .zip(&self.params)
                .all(|(at, param): (u16, _)| at == *param)
    }
}

/// Which text of a template is wrong, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// The pattern.
    Pattern(String),
    /// The replacement.
    Replacement(String),
}

/// Examples of values: with any of them a replacement must still read as it was written.
const SAMPLES: [&str; 8] = [
    "5",
    "-5",
    "1.5e-3",
    "'it''s'",
    "_utf8mb4'x'",
    "X'00'",
    "NULL",
    "?",
];

/// Returns what two texts that may match have in common. Equal for all statements of one structure,
/// whatever their values.
#[must_use]
pub fn fingerprint(sql: &[u8], lexing: Lexing) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for part in Parts::of(sql, lexing) {
        match part {
            Part::Keyword(word) => word.iter().for_each(|byte| mix(byte.to_ascii_uppercase())),
            Part::Name(name) => name.iter().for_each(|byte| mix(byte.to_ascii_lowercase())),
            Part::Sign(sign) => mix(sign),
            Part::Value(_) => mix(1),
        }
        mix(0);
    }
    hash
}

impl Template {
    /// From the two texts of the operator. `?` and `:name` in the pattern stand for one value each;
    /// in the replacement `?`, `?N` or `:name` for the value carried over.
    ///
    /// # Errors
    /// What is wrong with them, in words that follow the name of the column.
    pub fn compile(pattern: &str, replacement: &str) -> Result<Self, Unusable> {
        let wrong = |words: String| Unusable::Pattern(words);
        let pattern = whole(pattern).map_err(wrong)?;
        let mut names: Vec<Option<String>> = Vec::new();
        let mut pieces = Vec::new();
        let parts: Vec<_> = Parts::of_template(pattern).collect();
        let counts = crate::case::counts(&parts);
        for (part, case_counts) in parts.into_iter().zip(counts) {
            pieces.push(match part {
                Part::Keyword(word) => Piece::Keyword(word.to_ascii_uppercase().into()),
                Part::Name(name) if case_counts => Piece::Name(name.into()),
                Part::Name(name) => Piece::AnyCase(name.into()),
                Part::Sign(sign) => Piece::Sign(sign),
                Part::Value(text) => match &*text {
                    b"?" => {
                        names.push(None);
                        Piece::Slot
                    }
                    [b'?', ..] => {
                        return Err(wrong(
                            "numbers a placeholder; there it is '?' or ':name'".into(),
                        ));
                    }
                    [b':', name @ ..] => {
                        let name = String::from_utf8_lossy(name).into_owned();
                        if names.contains(&Some(name.clone())) {
                            return Err(wrong(format!(
                                "has ':{name}' twice; a name stands for one value"
                            )));
                        }
                        names.push(Some(name));
                        Piece::Slot
                    }
                    text => Piece::Value(text.into()),
                },
            });
        }
        let replaced = whole(replacement).map_err(Unusable::Replacement)?;
        let replacement = outs(replaced, &names).map_err(Unusable::Replacement)?;
        let has = |mark: char| pattern.contains(mark) || replaced.contains(mark);
        let template = Self {
            fingerprint: of_pieces(&pieces),
            pattern: pieces.into(),
            replacement,
            escapes: has('\\'),
            quotes: has('"'),
            ascii: pattern.is_ascii() && replaced.is_ascii(),
        };
        template.check(replaced).map_err(Unusable::Replacement)?;
        Ok(template)
    }

    /// [`fingerprint`] of the statements that match, and of others.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The statement that takes the place of this one, if it matches. The first comment is kept,
    /// for hints are in it.
    #[must_use]
    pub fn apply(&self, sql: &[u8], read: Read) -> Option<Rewritten> {
        let lexing = read.lexing;
        if self.escapes && (!lexing.escapes() || matches!(lexing, Lexing::Unsure { .. })) {
            return None;
        }
        if self.quotes && read.ansi_quotes || !self.ascii && !read.utf8 {
            return None;
        }
        let mut parts = Parts::of(sql, lexing);
        let mut values = Vec::new();
        for piece in &self.pattern {
            let matches = match (piece, parts.next()?) {
                (Piece::Keyword(known), Part::Keyword(word)) => known.eq_ignore_ascii_case(word),
                (Piece::Name(known), Part::Name(name)) => **known == *name,
                (Piece::AnyCase(known), Part::Name(name)) => known.eq_ignore_ascii_case(&name),
                (Piece::Sign(known), Part::Sign(sign)) => *known == sign,
                (Piece::Value(known), Part::Value(value)) => **known == *value,
                (Piece::Slot, Part::Value(value)) => {
                    values.push(value);
                    true
                }
                _ => false,
            };
            if !matches {
                return None;
            }
        }
        if parts.next().is_some() || !parts.is_sound() || !lexing.is_sure_of(sql) {
            return None;
        }
        let doubly = |token: Token<'_>| token.kind == Kind::String && token.text.starts_with(b"\"");
        if read.ansi_quotes && lexing.words(sql).any(doubly) {
            return None;
        }
        // The parameters of each value: one, or none.
        let mut params_before = 0;
        let params_of: Vec<Option<u16>> = values
            .iter()
            .map(|value| {
                let is_param = **value == *b"?";
                params_before += u16::from(is_param);
                is_param.then(|| params_before - 1)
            })
            .collect();
        let mut text = Vec::with_capacity(sql.len() + 64);
        if let Some(comment) = crate::words::first_comment(sql, lexing) {
            text.extend_from_slice(b"/*");
            text.extend_from_slice(&sql[comment]);
            text.extend_from_slice(b"*/ ");
        }
        self.write(&mut text, |slot| {
            values.get(slot).map_or(&b""[..], |value| value)
        });
        let slots = self.replacement.iter().filter_map(|out| {
            if let Out::Slot(slot) = out {
                Some(*slot)
            } else {
                None
            }
        });
        let params = slots
            .filter_map(|slot| params_of.get(slot).copied().flatten())
            .collect();
        Some(Rewritten {
            text,
            params,
            params_before,
        })
    }

    /// The replacement with these values: each between blanks, so that it joins nothing.
    fn write<'v>(&self, text: &mut Vec<u8>, value: impl Fn(usize) -> &'v [u8]) {
        for out in &self.replacement {
            match out {
                Out::Text(piece) => text.extend_from_slice(piece),
                Out::Slot(slot) => {
                    text.push(b' ');
                    text.extend_from_slice(value(*slot));
                    text.push(b' ');
                }
            }
        }
    }

    /// Whether it reads as written, whatever the values.
    fn check(&self, written: &str) -> Result<(), String> {
        let shape = |text: &[u8], template: bool| -> Vec<Option<Vec<u8>>> {
            let parts = if template {
                Parts::of_template_bytes(text)
            } else {
                Parts::of(text, Lexing::Escapes)
            };
            let shown = |part: Part<'_>| match part {
                Part::Keyword(word) => Some(word.to_ascii_uppercase()),
                Part::Name(name) => Some([b"`", &*name].concat()),
                Part::Sign(sign) => Some(vec![sign]),
                Part::Value(_) => None,
            };
            parts.map(shown).collect()
        };
        let wanted = shape(written.as_bytes(), true);
        for sample in SAMPLES {
            let mut text = Vec::new();
            self.write(&mut text, |_| sample.as_bytes());
            if shape(&text, false) != wanted {
                return Err(format!(
                    "would read differently with the value {sample}: {}",
                    String::from_utf8_lossy(&text)
                ));
            }
            let class = class(&text);
            if class.command == CommandCounter::Unknown
                && class.leaves.contains(Leaves::UNKNOWN_STATE)
            {
                return Err("does not begin as a statement that is known".into());
            }
        }
        Ok(())
    }
}

fn of_pieces(pieces: &[Piece]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for piece in pieces {
        match piece {
            Piece::Keyword(text) => text.iter().for_each(|byte| mix(*byte)),
            Piece::Name(text) | Piece::AnyCase(text) => {
                text.iter().for_each(|byte| mix(byte.to_ascii_lowercase()))
            }
            Piece::Sign(sign) => mix(*sign),
            Piece::Value(_) | Piece::Slot => mix(1),
        }
        mix(0);
    }
    hash
}

/// One whole statement, without its `;`.
fn whole(text: &str) -> Result<&str, String> {
    let text = text
        .trim()
        .trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    // A mark behind it is a token of its own unless something is still open.
    let marked = format!("{text} ;");
    let mut words = Words::new(marked.as_bytes());
    let (mut depth, mut last, mut count, mut several) = (0_i64, 0, 0, false);
    for token in words.by_ref() {
        several |= token.is_sign(b';') && token.end() < marked.len();
        depth += i64::from(token.is_sign(b'(')) - i64::from(token.is_sign(b')'));
        if depth < 0 {
            break;
        }
        (last, count) = (token.start, count + 1);
    }
    if depth < 0 || depth > 0 && last == marked.len() - 1 {
        return Err("has parentheses that do not match".into());
    }
    if last != marked.len() - 1 {
        return Err("ends inside a string, a name or a comment".into());
    }
    if count == 1 {
        return Err("is empty".into());
    }
    if several {
        return Err("is more than one statement".into());
    }
    if words.is_conditional() {
        return Err("has an executable comment that not every server executes".into());
    }
    Ok(text)
}

/// The pieces of a replacement.
fn outs(text: &str, names: &[Option<String>]) -> Result<Box<[Out]>, String> {
    let bytes = text.as_bytes();
    let mut words = Words::new(bytes);
    let (mut outs, mut done) = (Vec::new(), 0);
    let (mut bare, mut numbered) = (0, false);
    while let Some(token) = words.next() {
        let adjacent = words
            .peek()
            .filter(|next| next.start == token.end() && next.kind == Kind::Word);
        let slot = if token.is_sign(b'?') {
            match adjacent {
                Some(number) => {
                    numbered = true;
                    let shown = String::from_utf8_lossy(number.text);
                    let slot = shown
                        .parse::<usize>()
                        .ok()
                        .and_then(|number| number.checked_sub(1));
                    let Some(slot) = slot.filter(|slot| *slot < names.len()) else {
                        return Err(format!(
                            "has '?{shown}', but pattern has {} placeholders",
                            names.len()
                        ));
                    };
                    words.next();
                    slot
                }
                None => {
                    bare += 1;
                    if bare > names.len() {
                        return Err(format!(
                            "has more '?' than pattern has placeholders, which is {}",
                            names.len()
                        ));
                    }
                    bare - 1
                }
            }
        } else if let Some(name) = adjacent.filter(|_| token.is_sign(b':')) {
            let shown = String::from_utf8_lossy(name.text).into_owned();
            let Some(slot) = names
                .iter()
                .position(|known| known.as_ref() == Some(&shown))
            else {
                return Err(format!("has ':{shown}', which is not in pattern"));
            };
            words.next();
            slot
        } else {
            continue;
        };
        outs.push(Out::Text(bytes[done..token.start].into()));
        outs.push(Out::Slot(slot));
        done = words.position();
    }
    if bare > 0 && numbered {
        return Err("has '?' beside '?N'; number all of them or none".into());
    }
    outs.push(Out::Text(bytes[done..].into()));
    Ok(outs.into())
}

/// Body of a fuzz target: what a template makes lexes, keeps its values, and its parameters are
/// those of the statement.
pub fn fuzz_template(data: &[u8]) {
    let mut texts = data.splitn(3, |byte| *byte == 0xFF);
    let (Some(pattern), Some(replacement)) = (texts.next(), texts.next()) else {
        return;
    };
    let sql = texts.next().unwrap_or_default();
    let (Ok(pattern), Ok(replacement)) = (
        std::str::from_utf8(pattern),
        std::str::from_utf8(replacement),
    ) else {
        return;
    };
    let Ok(template) = Template::compile(pattern, replacement) else {
        return;
    };
    for lexing in [
        Lexing::Escapes,
        Lexing::NoEscapes,
        Lexing::Shifts(crate::Shift::Gbk),
    ] {
        for sql in [sql, pattern.as_bytes()] {
            let Some(rewritten) = template.apply(
                sql,
                Read {
                    lexing,
                    ..Read::PLAIN
                },
            ) else {
                continue;
            };
            assert_eq!(fingerprint(sql, lexing), template.fingerprint());
            let parts = Parts::of(&rewritten.text, lexing).count();
            assert_eq!(
                parts,
                Parts::of_template(whole(replacement).expect("it was compiled")).count()
            );
            let marks = Parts::of(&rewritten.text, lexing)
                .filter(|part| matches!(part, Part::Value(text) if **text == *b"?"))
                .count();
            assert_eq!(marks, rewritten.params.len());
            assert!(
                rewritten
                    .params
                    .iter()
                    .all(|param| *param < rewritten.params_before)
            );
        }
    }
}
