//! Words of a text, and names and literals in it.

/// Whether the words are one of these texts.
pub(super) fn is(words: &[&str], texts: &[&str]) -> bool {
    texts.iter().any(|text| {
        let mut wanted = text.split(' ');
        words.iter().all(|word| {
            wanted
                .next()
                .is_some_and(|wanted| wanted.eq_ignore_ascii_case(word))
        }) && wanted.next().is_none()
    })
}

/// The words behind these, if the words begin with them.
pub(super) fn after<'w, 'a>(words: &'w [&'a str], text: &str) -> Option<&'w [&'a str]> {
    let wanted = text.split(' ').count();
    (words.len() >= wanted && is(&words[..wanted], &[text])).then(|| &words[wanted..])
}

/// The text from one of its words on.
pub(super) fn from<'a>(text: &'a str, word: &str) -> &'a str {
    let at = word.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    text.get(at..).unwrap_or_default()
}

/// A name without its quotes.
pub(super) fn unquoted(name: &str) -> &str {
    name.trim_matches(['`', '"', '\''])
}

/// As a literal of SQLite.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
