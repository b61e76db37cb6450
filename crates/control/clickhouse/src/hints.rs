//! Settings of one statement, in the form that MySQL has for them: `SELECT /*+ SET_VAR(max_threads = 2) */ …`.
//!
//! <https://dev.mysql.com/doc/refman/8.4/en/optimizer-hints.html>

/// A name and its value, without quotes.
pub(crate) type Pair<'t> = (&'t str, &'t str);

/// The settings that a statement's hints name. `MAX_EXECUTION_TIME(n)` is the variable of that name;
/// hints that are none of settings say nothing here, as in MySQL.
pub(crate) fn settings(text: &str) -> Vec<Pair<'_>> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let word = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let Some(hints) = text[word..].trim_start().strip_prefix("/*+") else {
        return Vec::new();
    };
    let mut rest = hints.split_once("*/").map_or("", |(hints, _)| hints);
    let mut found = Vec::new();
    // Each hint is a name, and what stands behind it in brackets.
    while let Some((name, behind)) = rest.split_once('(') {
        let Some((inside, more)) = closed(behind) else {
            break;
        };
        let name = name
            .rsplit(|c: char| !is_name(c))
            .next()
            .unwrap_or_default();
        if name.eq_ignore_ascii_case("MAX_EXECUTION_TIME") {
            found.push(("max_execution_time", inside.trim()));
        } else if name.eq_ignore_ascii_case("SET_VAR")
            && let Some((name, value)) = inside.split_once('=')
        {
            found.push((name.trim(), unquoted(value.trim())));
        }
        rest = more;
    }
    found
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Text before the bracket that closes, outside of quotes, and what follows it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ')') => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    None
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_settings_and_nothing_else_does() {
        for (text, wanted) in [
            (
                "SELECT /*+ SET_VAR(max_threads = 2) */ 1",
                &[("max_threads", "2")][..],
            ),
            (
                "(select/*+ NO_INDEX_MERGE(t) SET_VAR(a='x)y') MAX_EXECUTION_TIME(1500) */ 1)",
                &[("a", "x)y"), ("max_execution_time", "1500")],
            ),
            (
                "INSERT /*+ set_var(b=1) */ INTO t VALUES (1)",
                &[("b", "1")],
            ),
            ("SELECT /* SET_VAR(a=1) */ 1", &[]),
            ("SELECT 1 /*+ SET_VAR(a=1) */", &[]),
            ("SELECT /*+ SET_VAR(a=1", &[]),
            ("SELECT /*+ SET_VAR(a) BKA(t) ( */ 1", &[]),
            ("/*+ SET_VAR(a=1) */", &[("a", "1")]),
            ("", &[]),
        ] {
            assert_eq!(settings(text), wanted, "{text}");
        }
    }
}
