//! What is left of a text without its values: two texts of one skeleton are the same statement with
//! other numbers and strings, have the same class and the same digest.

use crate::lexing::Lexing;

/// Longer texts have none: what is long is read once and not soon again.
pub const SKELETON_LEN_MAX: usize = 1 << 10;

/// Kind of a byte outside of strings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    /// A blank or a sign that is one token by itself.
    Itself,
    /// A letter, or what else a word may have.
    Word,
    Digit,
    Quote,
    Backquote,
    /// A comment may begin, or more than one statement or reading be here.
    Odd,
}

const KINDS: [Is; 256] = {
    let mut kinds = [Is::Odd; 256];
    let signs = b" \t\n\r!%&()*+,-./:<=>[]^|~";
    let mut at = 0;
    while at < signs.len() {
        kinds[signs[at] as usize] = Is::Itself;
        at += 1;
    }
    let mut byte = 0u8;
    while byte < 128 {
        if byte.is_ascii_alphabetic() || byte == b'_' {
            kinds[byte as usize] = Is::Word;
        } else if byte.is_ascii_digit() {
            kinds[byte as usize] = Is::Digit;
        }
        byte += 1;
    }
    kinds[b'\'' as usize] = Is::Quote;
    kinds[b'`' as usize] = Is::Backquote;
    kinds
};

/// Writes the skeleton of a text behind `skeleton`: each whole number that stands alone is `0`, each string `''`. `false`, and
/// nothing of use is written, for a text that may be read in more than one way, that has comments, variables, more
/// than one statement, or names that are not ASCII. The schema of a `USE` is the text's own.
#[must_use]
pub fn write_skeleton(text: &[u8], lexing: Lexing, skeleton: &mut Vec<u8>) -> bool {
    let multibyte = matches!(lexing, Lexing::Escapes | Lexing::NoEscapes);
    if text.len() > SKELETON_LEN_MAX || matches!(lexing, Lexing::Shifts(_) | Lexing::Unsure { .. })
    {
        return false;
    }
    skeleton.reserve(text.len());
    // What was copied up to here, and what the byte before is.
    let (mut copied, mut at, mut before) = (0, 0, Is::Itself);
    while let Some(&byte) = text.get(at) {
        let kind = KINDS[usize::from(byte)];
        let is_quoted = |kind| matches!(kind, Is::Quote | Is::Backquote);
        let is_joined = before != Is::Itself && kind != Is::Itself;
        if is_joined && (is_quoted(kind) || is_quoted(before)) {
            // `x'41'`, `1'a'`, `'a'b`: one token or two.
            return false;
        }
        match kind {
            Is::Itself => {
                let next = text.get(at + 1);
                if byte == b'-' && next == Some(&b'-') || byte == b'/' && next == Some(&b'*') {
                    return false;
                }
                // A number with a point, where nobody agrees on its end: `1.5e+3`.
                let by_number = before == Is::Digit || next.is_some_and(u8::is_ascii_digit);
                if byte == b'.' && by_number {
                    return false;
                }
                at += 1;
            }
            Is::Word => at += 1,
            Is::Digit if before == Is::Word => {
                // Of a name.
                at += 1;
                continue;
            }
            Is::Digit => {
                let rest = text.get(at..).unwrap_or_default();
                let len = rest
                    .iter()
                    .position(|byte| !byte.is_ascii_digit())
                    .unwrap_or(rest.len());
                let next = rest.get(len);
                if next.is_some_and(|byte| KINDS[usize::from(*byte)] == Is::Word) {
                    // `1e+5`, `0x1f`, a name that begins with a digit.
                    return false;
                }
                skeleton.extend_from_slice(&text[copied..at]);
                skeleton.push(b'0');
                at += len;
                copied = at;
            }
            Is::Quote => {
                let Some(end) = plain_string_end(text, at, multibyte) else {
                    return false;
                };
                skeleton.extend_from_slice(&text[copied..at]);
                skeleton.extend_from_slice(b"''");
                (copied, at) = (end, end);
            }
            Is::Backquote => {
                let Some(len) = memchr::memchr(b'`', &text[at + 1..]) else {
                    return false;
                };
                // What else is in a name in quotes, digests may take for a string or a comment.
                let name = &text[at + 1..at + 1 + len];
                let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                if !name.iter().all(is_plain) {
                    return false;
                }
                at += len + 2;
            }
            Is::Odd => return false,
        }
        before = kind;
    }
    skeleton.extend_from_slice(&text[copied..]);
    true
}

/// A skeleton, and where its values stand: whether a text has it is told faster than written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skeleton {
    bytes: Box<[u8]>,
    /// Ends of the pieces between values, and whether the value behind is a string.
    values: Box<[(u16, bool)]>, // ends are <= SKELETON_LEN_MAX
}

impl Skeleton {
    /// Of a skeleton that [`write_skeleton`] has written.
    #[must_use]
    pub fn of(skeleton: &[u8]) -> Self {
        let (mut values, mut at, mut before) = (Vec::new(), 0, Is::Itself);
        while let Some(&byte) = skeleton.get(at) {
            let kind = KINDS[usize::from(byte)];
            let end = u16::try_from(at).expect("a skeleton is no longer than SKELETON_LEN_MAX");
            match kind {
                Is::Quote => {
                    values.push((end, true));
                    at += 2;
                }
                // The digits of a name stay, and a number that stands alone is one digit.
                Is::Digit if before != Is::Word => {
                    values.push((end, false));
                    at += 1;
                }
                Is::Backquote => {
                    let rest = &skeleton[at + 1..];
                    at += 2 + memchr::memchr(b'`', rest).unwrap_or(rest.len());
                }
                _ => at += 1,
            }
            if kind != Is::Digit || before != Is::Word {
                before = kind;
            }
        }
        Self {
            bytes: skeleton.into(),
            values: values.into(),
        }
    }

    /// The skeleton.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a text that is read so has this skeleton: [`write_skeleton`] would write it. The lexing is one
    /// for which some text has.
    #[must_use]
    pub fn fits(&self, text: &[u8], lexing: Lexing) -> bool {
        let multibyte = matches!(lexing, Lexing::Escapes | Lexing::NoEscapes);
        let (mut from, mut at) = (0, 0);
        for &(end, is_string) in &*self.values {
            let piece = self.bytes.get(from..usize::from(end)).unwrap_or_default();
            let Some(rest) = text.get(at..).and_then(|rest| rest.strip_prefix(piece)) else {
                return false;
            };
            at += piece.len();
            from = usize::from(end) + 1 + usize::from(is_string);
            at = match is_string {
                true if rest.first() == Some(&b'\'') => match plain_string_end(text, at, multibyte)
                {
                    Some(end) => end,
                    None => return false,
                },
                true => return false,
                false => match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
                    0 => return false,
                    digits => at + digits,
                },
            };
        }
        text.len() <= SKELETON_LEN_MAX && text.get(at..) == self.bytes.get(from..)
    }
}

/// Whether a text has no newline, and so none of its values has.
#[must_use]
pub fn is_on_one_line(text: &[u8]) -> bool {
    memchr::memchr(b'\n', text).is_none()
}

/// Just behind the string that begins at `at`, if it has no backslash and no quote in it. `multibyte`:
/// it may have bytes above ASCII.
fn plain_string_end(text: &[u8], at: usize, multibyte: bool) -> Option<usize> {
    let rest = &text[at + 1..];
    let len = memchr::memchr2(b'\'', b'\\', rest)?;
    let end = at + len + 2;
    let is_plain = rest[len] == b'\'' && text.get(end) != Some(&b'\'');
    (is_plain && (multibyte || rest[..len].is_ascii())).then_some(end)
}

/// Fuzz target: what has one skeleton has one class and one digest. The first bytes choose the lexing and
/// the options; the text is compared with the same one with other values.
pub fn fuzz_skeleton(data: &[u8]) {
    let [kind, options, text @ ..] = data else {
        return;
    };
    let lexing = [Lexing::Escapes, Lexing::NoEscapes][usize::from(kind & 1)];
    let options = crate::DigestOptions {
        max_digest_length: if options & 1 == 0 { 2048 } else { 20 },
        grouping_limit: usize::from(options >> 1 & 7),
        groups_grouping_limit: usize::from(options >> 4 & 3),
        lowercase: options & 64 != 0,
        replace_null: options & 128 != 0,
        no_digits: kind & 2 != 0,
        keep_comment: kind & 4 != 0,
        ..crate::DigestOptions::default()
    };
    let mut skeleton = Vec::new();
    if !write_skeleton(text, lexing, &mut skeleton) {
        return;
    }
    let (mut again, mut one, mut other) = (Vec::new(), Vec::new(), Vec::new());
    // The skeleton is the text with zeros and empty strings.
    assert!(write_skeleton(&skeleton, lexing, &mut again));
    assert_eq!(again, skeleton);
    let shape = Skeleton::of(&skeleton);
    assert!(shape.fits(text, lexing) && shape.fits(&skeleton, lexing));
    for at in 0..text.len() {
        // Whatever else fits has the same skeleton.
        let other = [&text[..at], &text[at + 1..]].concat();
        again.clear();
        let is_same = write_skeleton(&other, lexing, &mut again) && again == skeleton;
        assert_eq!(shape.fits(&other, lexing), is_same);
    }
    let hashes = (
        crate::digest(text, &options, &mut one),
        crate::digest(&skeleton, &options, &mut other),
    );
    assert_eq!(one, other);
    assert_eq!(hashes.0, hashes.1);
    let classes = (lexing.class(text), lexing.class(&skeleton));
    if classes.0.use_db.is_some() && classes.1.use_db.is_some() {
        // A schema may be called by a number: who remembers classes remembers none of these.
        return;
    }
    assert_eq!(format!("{:?}", classes.0), format!("{:?}", classes.1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skeleton(text: &str) -> Option<String> {
        let mut skeleton = Vec::new();
        write_skeleton(text.as_bytes(), Lexing::Escapes, &mut skeleton)
            .then(|| String::from_utf8(skeleton).unwrap())
    }

    #[test]
    fn values_are_left_out_and_names_stay() {
        for (text, wanted) in [
            (
                "SELECT c FROM sbtest1 WHERE id=5029",
                "SELECT c FROM sbtest1 WHERE id=0",
            ),
            (
                "select a from `t5` where b in (1, 22,'x y', 'ä') limit 10",
                "select a from `t5` where b in (0, 0,'', '') limit 0",
            ),
            ("SELECT t2.a5 FROM t2", "SELECT t2.a5 FROM t2"),
            ("SELECT -5+7", "SELECT -0+0"),
            ("BEGIN", "BEGIN"),
            ("", ""),
        ] {
            assert_eq!(skeleton(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_may_be_read_otherwise_has_none() {
        for text in [
            "SELECT 1 -- x",
            "SELECT /* x */ 1",
            "SELECT 1 # x",
            "SELECT 'it\\'s'",
            "SELECT 'it''s'",
            "SELECT \"a\"",
            "SELECT @a",
            "SELECT 1; SELECT 2",
            "SELECT x'41'",
            "SELECT 1e5",
            "SELECT 1.5",
            "SELECT .5",
            "SELECT t.5a",
            "SELECT 0x1f",
            "SELECT 2e+5",
            "SELECT 1'a'",
            "SELECT 'a'b, `c`d",
            "SELECT 'a",
            "SELECT `a",
            "SELECT `a b`",
            "SELECT ä",
            "SELECT {d '2020-01-01'}",
        ] {
            assert_eq!(skeleton(text), None, "{text}");
        }
        assert_eq!(
            skeleton(&format!("SELECT '{}'", "x".repeat(SKELETON_LEN_MAX))),
            None
        );
    }

    #[test]
    fn a_shape_has_the_class_and_the_digest_of_its_texts() {
        for text in [
            "SELECT c FROM sbtest1 WHERE id BETWEEN 5 AND 104 ORDER BY c",
            "SELECT GET_LOCK('a', 10)",
            "UPDATE t SET a = a + 1, b = 'x' WHERE id = 7",
            "INSERT INTO t (a, b) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')",
            "SELECT * FROM t WHERE a IN (1, 2, 3, 4, 5, 6, NULL, -7, 1.5) LIMIT 5, 10",
            "SELECT COUNT(*) FROM t HAVING 1",
            "KILL 5",
            "SET autocommit = 0",
            "SELECT SLEEP(0), LAST_INSERT_ID(5), BENCHMARK(10, 1)",
        ] {
            for options in 0..=255 {
                for kind in 0..8 {
                    let mut data = vec![kind, options];
                    data.extend_from_slice(text.as_bytes());
                    fuzz_skeleton(&data);
                }
            }
        }
    }
}
