//! A statement with its literals taken out, as ProxySQL 2.7.1 writes it, and the hash of that.
//!
//! The rules were inferred from what a running one answered (`tests/golden`); some are odd, and
//! rules, dashboards and digests that people wrote down depend on them, so they are kept. One pass
//! over the statement, no allocation beyond the caller's buffer.

use crate::lexing::Lexing;
use crate::spooky;
use crate::words::end_of_quoted;
use std::ops::Range;

/// The `mysql-query_digests_*` variables, under their names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "one field per variable of the operator"
)]
pub struct DigestOptions {
    /// The text is cut after this many bytes; the hash is of what is left.
    pub max_digest_length: usize,
    /// No effect on the text: ProxySQL 2.7.1 digests longer statements as well.
    pub max_query_length: usize,
    /// Lists of at least two more values than this are folded to so many and `...`.
    pub grouping_limit: usize,
    /// This many folded groups stay, the rest becomes `...`. None is removed if 0.
    pub groups_grouping_limit: usize,
    /// Letters become lower case (not those of comments).
    pub lowercase: bool,
    /// NULL counts as a literal.
    pub replace_null: bool,
    /// Digits inside names become `?` too.
    pub no_digits: bool,
    /// `/* */` comments stay in the text.
    pub keep_comment: bool,
    /// No effect on the text: it says how texts are stored.
    pub normalize_digest_text: bool,
}

impl DigestOptions {
    /// ProxySQL's defaults.
    const USUAL: Self = Self {
        max_digest_length: 2048,
        max_query_length: 65000,
        grouping_limit: 3,
        groups_grouping_limit: 10,
        lowercase: false,
        replace_null: false,
        no_digits: false,
        keep_comment: false,
        normalize_digest_text: false,
    };

    /// How the firewall digests, however the statistics do: names stay apart that options make
    /// alike, and the text is not cut before 1 MiB.
    pub const WHOLE: Self = Self {
        max_digest_length: 1 << 20,
        ..Self::USUAL
    };

    /// Whether a text that they do not cut is that of [`Self::WHOLE`].
    #[must_use]
    pub fn are_as_whole(&self) -> bool {
        let Self {
            max_digest_length,
            max_query_length,
            normalize_digest_text,
            ..
        } = *self;
        *self
            == Self {
                max_digest_length,
                max_query_length,
                normalize_digest_text,
                ..Self::WHOLE
            }
    }
}

impl Default for DigestOptions {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Hash and comment that [`digest_with_comment`] found besides the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digested {
    /// SpookyHash V2 of the text, printed `0x%016X`.
    pub hash: u64,
    /// Where in the statement the inside of the first `/* */` comment is, if there is one: hints
    /// live there.
    pub comment: Option<Range<usize>>,
}

/// Writes the digest text of `sql` into `buf` (which is cleared first) and answers its hash.
pub fn digest(sql: &[u8], options: &DigestOptions, buf: &mut Vec<u8>) -> u64 {
    buf.clear();
    Pass::over(sql, options, buf).run();
    spooky::hash64(buf, 0)
}

/// As [`digest`] with [`DigestOptions::WHOLE`], and whether it lacks more than comments, strings
/// and values: the last part of a folded list that is no value (`IN (1,2,3,4,k)`), a sign that
/// belongs to none (`a - b` is `a b`), or an end that was cut.
pub(crate) fn whole_digest(sql: &[u8], buf: &mut Vec<u8>) -> (u64, bool) {
    buf.clear();
    let mut pass = Pass::over(sql, &DigestOptions::WHOLE, buf);
    pass.run();
    let lacks = pass.lacks;
    (spooky::hash64(buf, 0), lacks)
}

/// As [`digest`], and finds the first comment on the way.
pub fn digest_with_comment(
    sql: &[u8],
    lexing: Lexing,
    options: &DigestOptions,
    buf: &mut Vec<u8>,
) -> Digested {
    let hash = digest(sql, options, buf);
    Digested {
        hash,
        comment: crate::words::first_comment(sql, lexing),
    }
}

/// Kind of a byte: what it may begin or be.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// Letters, `_`, `$`.
    Letter,
    Digit,
    Blank,
    Comma,
    Open,
    Close,
    /// `+` or `-`.
    Sign,
    /// `*`, `/`, `%`.
    Operator,
    /// `'` or `"`.
    Quote,
    /// `?`, which stands for a parameter.
    Mark,
    Hash,
    /// Everything else, copied as it is.
    Other,
}

const KIND: [Kind; 256] = {
    let mut kind = [Kind::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        kind[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => Kind::Letter,
            b'0'..=b'9' => Kind::Digit,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C => Kind::Blank,
            b',' => Kind::Comma,
            b'(' => Kind::Open,
            b')' => Kind::Close,
            b'+' | b'-' => Kind::Sign,
            b'*' | b'/' | b'%' => Kind::Operator,
            b'\'' | b'"' => Kind::Quote,
            b'?' => Kind::Mark,
            b'#' => Kind::Hash,
            _ => Kind::Other,
        };
        byte += 1;
    }
    kind
};

const fn kind(byte: u8) -> Kind {
    KIND[byte as usize]
}

/// Letters and digits: what a name or number is made of. Everything else separates.
const fn is_wordy(byte: u8) -> bool {
    matches!(kind(byte), Kind::Letter | Kind::Digit)
}

const fn is_arithmetic(byte: u8) -> bool {
    matches!(kind(byte), Kind::Sign | Kind::Operator)
}

/// So many bytes are copied together at most: what is beyond the longest text need not be.
const VERBATIM_MAX: usize = 256;

/// Marks that many numbers of a list become.
const MARKS: &[u8] = b",?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?";

struct Pass<'a> {
    sql: &'a [u8],
    options: &'a DigestOptions,
    out: &'a mut Vec<u8>,
    /// The byte of the statement before the current one; a blank after a comment; 0 at the start.
    prev: u8,
    /// Folded groups in a row that end at `group_end`.
    groups: usize,
    group_end: usize,
    /// The text is searched for parentheses up to here, and whether the last one opens a list.
    searched: usize,
    in_list: bool,
    /// Something was left out that is neither a comment nor a value.
    lacks: bool,
}

impl<'a> Pass<'a> {
    fn over(sql: &'a [u8], options: &'a DigestOptions, out: &'a mut Vec<u8>) -> Self {
        Self {
            sql,
            options,
            out,
            prev: 0,
            groups: 0,
            group_end: 0,
            searched: 0,
            in_list: false,
            lacks: false,
        }
    }

    fn run(&mut self) {
        let sql = self.sql;
        self.out
            .reserve(sql.len().min(self.options.max_digest_length) + 16);
        let mut at = 0;
        while let Some(&byte) = sql.get(at) {
            if self.is_full() {
                break;
            }
            at = match kind(byte) {
                Kind::Letter | Kind::Other if !self.options.replace_null => self.verbatim(at),
                Kind::Letter => self.word_or_null(at),
                Kind::Digit if is_wordy(self.prev) => self.word_or_null(at),
                Kind::Digit => self.number(at),
                Kind::Quote => match end_of_quoted(sql, at, true) {
                    Some(end) => {
                        self.out.push(b'?');
                        self.prev = byte;
                        end
                    }
                    None => break,
                },
                Kind::Mark => self.parameters(at),
                Kind::Hash => self.line_comment(at, 1),
                Kind::Sign if is_dashes(sql, at) => self.line_comment(at, 3),
                Kind::Operator if sql[at..].starts_with(b"/*") => self.block_comment(at),
                Kind::Blank => self.blanks(at),
                _ => {
                    self.mark(byte, &sql[at + 1..]);
                    at + 1
                }
            };
        }
        self.trim();
        self.lacks |= self.out.len() > self.options.max_digest_length;
        self.out.truncate(self.options.max_digest_length);
    }

    /// Whether nothing that follows can change the part of the text that is kept. A value or a mark
    /// may still be folded away with the list or group that it is in; after a name of two
    /// letters, or `)` after a value, there is none.
    fn is_full(&self) -> bool {
        self.out.len() > self.options.max_digest_length + 8
            && match self.out[..] {
                [.., a, b] => is_wordy(a) && is_wordy(b) || a == b'?' && b == b')',
                _ => false,
            }
    }

    fn last(&self) -> u8 {
        self.out.last().copied().unwrap_or(0)
    }

    fn drop_blank(&mut self) {
        if self.last() == b' ' {
            self.out.pop();
        }
    }

    /// Copies what stays as it is from `at`, where a name, a keyword or a mark begins: most of a
    /// statement does.
    #[inline]
    fn verbatim(&mut self, at: usize) -> usize {
        self.fold_inside();
        let sql = self.sql;
        let window = &sql[at..sql.len().min(at + VERBATIM_MAX)];
        let mut length = 1;
        let mut wordy = is_wordy(window[0]);
        while let Some(&byte) = window.get(length) {
            match kind(byte) {
                Kind::Letter => wordy = true,
                Kind::Digit if wordy => {}
                Kind::Other => wordy = false,
                // A blank, comma or parenthesis between them is kept, whatever stands around it.
                _ if (byte == b' ' || byte == b',' || byte == b'(')
                    && matches!(
                        window.get(length + 1).map(|&next| kind(next)),
                        Some(Kind::Letter | Kind::Other | Kind::Mark)
                    ) =>
                {
                    length += 1;
                    continue;
                }
                _ => break,
            }
            length += 1;
        }
        self.copy(&window[..length]);
        self.prev = window[length - 1];
        at + length
    }

    /// Copies a name or keyword from `at`, unless it is NULL.
    fn word_or_null(&mut self, at: usize) -> usize {
        let sql = self.sql;
        let length = sql[at..]
            .iter()
            .position(|&b| !is_wordy(b))
            .unwrap_or(sql.len() - at);
        let text = &sql[at..at + length];
        if length == 4 && !is_wordy(self.prev) && text.eq_ignore_ascii_case(b"null") {
            self.out.push(b'?');
        } else {
            self.fold_inside();
            self.copy(text);
        }
        self.prev = text[length - 1];
        at + length
    }

    /// A parameter from `at`, and those behind it in its list.
    #[inline]
    fn parameters(&mut self, at: usize) -> usize {
        let sql = self.sql;
        let mut end = at + 1;
        self.out.push(b'?');
        loop {
            end = match sql.get(end..) {
                Some([b',', b'?', ..]) => end + 2,
                Some([b',', b' ', b'?', ..]) => end + 3,
                _ => break,
            };
            self.out.extend_from_slice(b",?");
        }
        self.prev = b'?';
        end
    }

    #[inline]
    fn copy(&mut self, text: &[u8]) {
        let start = self.out.len();
        if self.options.no_digits {
            let mut inside = false;
            for &byte in text {
                if byte.is_ascii_digit() {
                    if !inside {
                        self.out.push(b'?');
                    }
                    inside = true;
                } else {
                    self.out.push(byte);
                    inside = false;
                }
            }
        } else {
            self.out.extend_from_slice(text);
        }
        if self.options.lowercase {
            self.out[start..].make_ascii_lowercase();
        }
    }

    /// A literal number from `at`, or what only looks like one.
    fn number(&mut self, at: usize) -> usize {
        let sql = self.sql;
        let mut end = at + digits(&sql[at..]);
        if let Some(&byte) = sql.get(end)
            && !is_wordy(byte)
            && byte != b'.'
        {
            // Only digits, the common case.
            self.drop_second_sign();
            self.out.push(b'?');
            end = self.more_numbers(end);
            self.prev = b'0';
            return end;
        }
        while let Some(&byte) = sql.get(end) {
            match byte {
                _ if is_wordy(byte) => {}
                b'.' if end + 1 < sql.len() => {}
                b'+' | b'-' if end + 1 < sql.len() && matches!(sql[end - 1], b'e' | b'E') => {}
                _ => break,
            }
            end += 1;
        }
        // The last byte of a statement is not looked at: `SELECT 1a` is `SELECT ?`.
        let checked = if end == sql.len() && end - at > 1 {
            &sql[at..end - 1]
        } else {
            &sql[at..end]
        };
        if is_number(checked) {
            if self.options.keep_comment
                && end == sql.len()
                && end == at + 1
                && at > 0
                && sql[at - 1] == b'/'
                && self.prev == b' '
            {
                return end;
            }
            self.drop_second_sign();
            self.out.push(b'?');
        } else {
            self.fold_inside();
            self.copy(&sql[at..end]);
        }
        self.prev = sql[end - 1];
        end
    }

    /// The rest of a list of plain numbers, `,2,3, 4`, of which one before `at` was written: what
    /// the general way does, in a short loop.
    fn more_numbers(&mut self, mut at: usize) -> usize {
        let sql = self.sql;
        if sql.get(at) == Some(&b',') {
            let (end, mut count) = crate::numbers::list(sql, at);
            while let Some(rest) = count.checked_sub(MARKS.len() / 2) {
                self.out.extend_from_slice(MARKS);
                count = rest;
            }
            self.out.extend_from_slice(&MARKS[..2 * count]);
            at = end;
        }
        loop {
            let start = match sql.get(at..at + 3) {
                Some([b',', b' ', b'0'..=b'9']) => at + 2,
                Some([b',', b'0'..=b'9', _]) => at + 1,
                _ => return at,
            };
            let end = start + digits(&sql[start..]);
            if sql
                .get(end)
                .is_none_or(|&byte| is_wordy(byte) || byte == b'.')
            {
                return at;
            }
            self.out.extend_from_slice(b",?");
            at = end;
        }
    }

    /// `1--1` is `?-?` and `SELECT --1` is `SELECT ?`, while `= --1` is `= -?`.
    #[inline]
    fn drop_second_sign(&mut self) {
        if let [.., before, b' ' | b'+' | b'-', b'+' | b'-'] = self.out[..]
            && (is_wordy(before) || before == b'?')
        {
            self.out.pop();
        }
    }

    /// Blanks in a row are one, and none at the start, after `,` or `(`, or between an operator and
    /// a number. A sign that was dropped leaves one blank before a string, and two before a name.
    #[inline]
    fn blanks(&mut self, at: usize) -> usize {
        let sql = self.sql;
        let end = sql[at..]
            .iter()
            .position(|&b| kind(b) != Kind::Blank)
            .map_or(sql.len(), |length| at + length);
        let joins = match sql.get(end).map(|&byte| kind(byte)) {
            Some(Kind::Digit) => is_arithmetic(self.prev),
            Some(Kind::Quote) => kind(self.prev) == Kind::Sign && self.last() == b' ',
            _ => false,
        };
        if !joins {
            self.blank();
        }
        self.prev = b' ';
        end
    }

    #[inline]
    fn blank(&mut self) {
        if !self.out.is_empty()
            && !matches!(kind(self.prev), Kind::Blank | Kind::Comma | Kind::Open)
        {
            self.out.push(b' ');
        }
    }

    /// One byte that is neither blank nor part of a word nor begins a literal or comment. `rest`:
    /// what may say to which value a sign belongs.
    #[inline]
    fn mark(&mut self, byte: u8, rest: &[u8]) {
        match kind(byte) {
            Kind::Comma => {
                self.drop_blank();
                self.out.push(byte);
            }
            Kind::Open => {
                self.fold_inside();
                self.out.push(byte);
            }
            Kind::Close => {
                self.drop_blank();
                self.fold();
                self.out.push(byte);
                self.fold_groups();
            }
            Kind::Sign | Kind::Operator => {
                if self.out.ends_with(b"? ") {
                    self.out.pop();
                }
                if kind(byte) == Kind::Operator || !self.is_unary() {
                    self.out.push(byte);
                } else if !begins_value(rest) {
                    self.lacks = true;
                }
            }
            _ => self.out.push(byte),
        }
        self.prev = byte;
    }

    /// Whether a sign here belongs to the value after it. After a blank it does unless the blank
    /// follows a literal, `()` or a literal and `)`: `a - 1` is `a ?`, `(a) - 1` is `(a) ?`, and
    /// `f() - 1` is `f() -?`.
    fn is_unary(&self) -> bool {
        let value_follows = match kind(self.prev) {
            Kind::Blank => match self.out[..] {
                [] => false,
                [.., before, b')', b' '] => is_wordy(before),
                _ => true,
            },
            Kind::Comma | Kind::Open => true,
            Kind::Other => !matches!(self.prev, 0 | b'`' | b'.' | b']' | b'}'),
            _ => false,
        };
        value_follows && self.last() != b'?'
    }

    /// How many `?,` in a row `text` ends with.
    fn pairs(text: &[u8]) -> usize {
        let four = text
            .rchunks_exact(8)
            .take_while(|pairs| pairs == b"?,?,?,?,")
            .count()
            * 4;
        four + text[..text.len() - 2 * four]
            .rchunks_exact(2)
            .take_while(|pair| pair == b"?,")
            .count()
    }

    /// `?,?,?,?,?` before a closing parenthesis becomes `?,?,?,...`. The last value may be any one
    /// byte.
    fn fold(&mut self) {
        let limit = self.options.grouping_limit;
        let Some(last) = self.out.len().checked_sub(1) else {
            return;
        };
        if let [.., b'.', b'.', b'.', b',', byte] = self.out[..] {
            self.lacks |= byte != b'?';
            self.out.truncate(last - 1);
            return;
        }
        let pairs = Self::pairs(&self.out[..last]);
        if pairs > limit && self.is_in_list(last - 2 * pairs) {
            self.lacks |= self.out[last] != b'?';
            self.out.truncate(last - 2 * (pairs - limit));
            self.out.extend_from_slice(b"...");
        }
    }

    /// Something else follows `?,?,?,?,?,` in a list: that becomes `?,?,?,...,`.
    #[inline]
    fn fold_inside(&mut self) {
        if self.out.ends_with(b"?,?,") {
            self.fold_before();
        }
    }

    fn fold_before(&mut self) {
        let limit = self.options.grouping_limit;
        let (pairs, end) = (Self::pairs(self.out), self.out.len());
        if pairs > limit + 1 && self.is_in_list(end - 2 * pairs) {
            self.out.truncate(end - 2 * (pairs - limit));
            self.out.extend_from_slice(b"...,");
        }
    }

    /// Whether the last parenthesis before `at` is an opening one: behind `f(…)` nothing is folded.
    fn is_in_list(&mut self, at: usize) -> bool {
        let from = self.searched.min(at);
        if let Some(found) = memchr::memrchr2(b'(', b')', &self.out[from..at]) {
            self.in_list = self.out[from + found] == b'(';
        }
        self.searched = at;
        self.in_list
    }

    /// `(?,?,?,...),(?,?,?,...),…` keeps so many groups and ends in `...`. Only folded groups
    /// count.
    fn fold_groups(&mut self) {
        let limit = self.options.groups_grouping_limit;
        let group = 2 * self.options.grouping_limit + 5; // `(`, `?,` each, `...`, `)`
        if limit == 0 || !self.out.ends_with(b",...)") {
            return;
        }
        let Some(start) = self.out.len().checked_sub(group) else {
            return;
        };
        if self.out[start] != b'(' {
            return;
        }
        let follows =
            self.groups > 0 && start == self.group_end + 1 && self.out[self.group_end] == b',';
        self.groups = if follows { self.groups + 1 } else { 1 };
        if self.groups > limit {
            self.out.truncate(self.group_end);
            (self.searched, self.in_list) = (self.searched.min(self.group_end), false);
            if self.groups == limit + 1 {
                self.out.extend_from_slice(b",...");
            }
        }
        self.group_end = self.out.len();
    }

    /// A comment to the end of the line; `skip` bytes begin it.
    fn line_comment(&mut self, at: usize, skip: usize) -> usize {
        self.drop_blank();
        let start = (at + skip).min(self.sql.len());
        let end = match memchr::memchr(b'\n', &self.sql[start..]) {
            Some(length) => start + length + 1,
            None => self.sql.len(),
        };
        self.blank_for_comment();
        end
    }

    /// A comment counts as a blank.
    fn blank_for_comment(&mut self) {
        if !matches!(self.last(), 0 | b' ' | b',' | b'(') {
            self.out.push(b' ');
        }
        self.prev = b' ';
    }

    fn block_comment(&mut self, at: usize) -> usize {
        let sql = self.sql;
        let start = at + 2;
        let length = memchr::memmem::find(&sql[start..], b"*/");
        let inside = &sql[start..start + length.unwrap_or(sql.len() - start)];
        let end = if length.is_some() {
            start + inside.len() + 2
        } else {
            sql.len()
        };
        let marked = matches!(inside.first(), Some(b'!' | b'+'));
        if self.options.keep_comment && length.is_some() && !matches!(inside, [] | [b'*']) {
            if self.out.ends_with(b"? ") {
                self.out.pop();
            }
            self.out.extend_from_slice(b"/*");
            self.prev = b'*';
            self.comment_text(if marked { &inside[1..] } else { inside }, false);
            self.out.extend_from_slice(b"*/");
            self.prev = b'/';
            if !marked {
                self.blank_for_comment();
            }
        } else if inside.first() == Some(&b'!') {
            // The text of an executable comment stands, without the version and with its literals.
            let text = &inside[1..];
            let head = text
                .iter()
                .position(|&b| !matches!(kind(b), Kind::Digit | Kind::Blank))
                .unwrap_or(text.len());
            if text[..head].iter().any(|&b| kind(b) == Kind::Blank) {
                self.blank_for_comment();
            }
            self.comment_text(&text[head..], true);
            self.blank_for_comment();
        } else {
            self.drop_blank();
            self.blank_for_comment();
        }
        end
    }

    /// Text of a comment: blanks as everywhere, literals and case as they are.
    fn comment_text(&mut self, text: &[u8], collapse: bool) {
        for &byte in text {
            if kind(byte) == Kind::Digit && self.options.no_digits {
                if !self.prev.is_ascii_digit() {
                    self.out.push(b'?');
                }
                self.prev = byte;
            } else if kind(byte) == Kind::Blank {
                if !collapse || self.last() != b' ' {
                    self.blank();
                }
                self.prev = b' ';
            } else if kind(byte) == Kind::Comma || collapse && kind(byte) == Kind::Sign {
                self.mark(byte, b"");
            } else {
                self.out.push(byte);
                self.prev = byte;
            }
        }
    }

    /// Blanks and every `;` at the end go, unless a `;` is all there is.
    fn trim(&mut self) {
        while self.last() == b' ' || self.last() == b';' && self.out.len() > 1 {
            self.out.pop();
        }
    }
}

/// `-- ` with any blank.
fn is_dashes(sql: &[u8], at: usize) -> bool {
    matches!(sql[at..], [b'-', b'-', blank, ..] if kind(blank) == Kind::Blank)
}

/// Whether a number or a parameter comes next, after blanks and signs.
fn begins_value(text: &[u8]) -> bool {
    let skipped = text
        .iter()
        .position(|&byte| !matches!(kind(byte), Kind::Blank | Kind::Sign))
        .unwrap_or(text.len());
    match text[skipped..] {
        [b'?', ..] | [b'.', b'0'..=b'9', ..] => true,
        [b'0'..=b'9', ..] => {
            let rest = &text[skipped + digits(&text[skipped..])..];
            rest.first().is_none_or(|&byte| {
                matches!(byte, b'e' | b'E' | b'x') || byte.is_ascii() && !is_wordy(byte)
            })
        }
        _ => false,
    }
}

/// How many digits `text` begins with, eight at a time.
fn digits(text: &[u8]) -> usize {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    let mut length = 0;
    while let Some(Ok(eight)) = text.get(length..length + 8).map(<[u8; 8]>::try_from) {
        // A digit becomes 0 to 9; adding 0x76 to anything else sets its highest bit. What that
        // carries goes to later bytes only.
        let value = u64::from_le_bytes(eight) ^ ZEROS;
        let other = (value.wrapping_add(0x7676_7676_7676_7676) | value) & 0x8080_8080_8080_8080;
        if other != 0 {
            return length + other.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length
        + text[length..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
}

/// Whether a digest takes `text` for a number.
pub(crate) fn is_number(text: &[u8]) -> bool {
    match text {
        [b'0', b'x' | b'X', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit),
        _ => text
            .iter()
            .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')),
    }
}

/// Body of a fuzz target: any text has a digest, the same every time, and bounded.
pub fn fuzz_digest(data: &[u8]) {
    let [flags, limits, max, sql @ ..] = data else {
        return;
    };
    let bit = |n: u8| flags & 1 << n != 0;
    let options = DigestOptions {
        max_digest_length: usize::from(*max) * 4,
        grouping_limit: usize::from(limits & 15),
        groups_grouping_limit: usize::from(limits >> 4),
        lowercase: bit(0),
        replace_null: bit(1),
        no_digits: bit(2),
        keep_comment: bit(3),
        ..DigestOptions::default()
    };
    let (mut once, mut again) = (Vec::new(), b"left over".to_vec());
    let found = digest_with_comment(sql, Lexing::Escapes, &options, &mut once);
    assert_eq!(found.hash, digest(sql, &options, &mut again));
    assert_eq!(once, again);
    assert!(once.len() <= options.max_digest_length);
    let in_list = |at: &usize| *at > 0 && sql[at - 1].is_ascii_digit();
    memchr::memchr_iter(b',', sql)
        .filter(in_list)
        .for_each(|at| crate::numbers::check(sql, at));
    assert!(found.comment.is_none_or(|range| range.end <= sql.len()));
    // Stopping early gives what cutting the whole text gives.
    let unlimited = DigestOptions {
        max_digest_length: usize::MAX / 2,
        ..options
    };
    digest(sql, &unlimited, &mut again);
    again.truncate(options.max_digest_length);
    assert_eq!(once, again);
}
