//! Rust's tokens, roughly: enough to count what a reader has to read, whatever the formatter does.

/// Tokens of a Rust text without its comments; a string, a number or a name is one token.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            let length = token(rest, first);
            found.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    found
}

/// Bytes of the token at the beginning of `rest`.
fn token(rest: &str, first: char) -> usize {
    if let Some(length) = raw_string(rest) {
        return length;
    }
    let prefix = usize::from(rest.starts_with("b\"") || rest.starts_with("c\""));
    if rest[prefix..].starts_with('"') {
        return prefix + 1 + closing(&rest[prefix + 1..], '"');
    }
    if first == '\'' {
        return quoted_char(rest);
    }
    if first.is_alphanumeric() || first == '_' {
        return rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
    }
    first.len_utf8()
}

/// Bytes up to and with the closing quote, which a backslash hides.
fn closing(inner: &str, quote: char) -> usize {
    let mut hidden = false;
    for (at, c) in inner.char_indices() {
        if !hidden && c == quote {
            return at + c.len_utf8();
        }
        hidden = !hidden && c == '\\';
    }
    inner.len()
}

/// `r"…"`, `br#"…"#` and their like.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inner = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - inner.len();
    Some(
        inner
            .find(&end)
            .map_or(rest.len(), |at| start + at + end.len()),
    )
}

/// A character in quotes, or a lifetime.
fn quoted_char(rest: &str) -> usize {
    let inner = &rest[1..];
    let mut chars = inner.chars();
    let (first, second) = (chars.next(), chars.next());
    match (first, second) {
        (Some('\\'), _) => 1 + closing(inner, '\''),
        (Some(one), Some('\'')) => 1 + one.len_utf8() + 1,
        _ => {
            let name = inner.find(|c: char| !c.is_alphanumeric() && c != '_');
            1 + name.unwrap_or(inner.len())
        }
    }
}

/// Functions with a body: name, and how many tokens from `fn` to the closing brace.
pub fn functions<'a>(tokens: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let [word, name] = pair else { continue };
        if *word != "fn" || !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            continue;
        }
        if let Some(end) = body_end(&tokens[at..]) {
            found.push((*name, end));
        }
    }
    found
}

/// Index of the brace that closes a function's body; `None` for one that is only declared.
fn body_end(tokens: &[&str]) -> Option<usize> {
    let mut brackets = 0_i32;
    let mut braces = 0_i32;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets -= 1,
            ";" if brackets == 0 && braces == 0 => return None,
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_tokens_and_a_string_is_one() {
        let text = "let a = \"x // \\\" y\"; // no\n/* no */ r#\"a \" b\"#; b'\\''; 'x'; &'a str";
        let wanted = [
            "let",
            "a",
            "=",
            "\"x // \\\" y\"",
            ";",
            "r#\"a \" b\"#",
            ";",
            "b",
            "'\\''",
            ";",
            "'x'",
            ";",
            "&",
            "'a",
            "str",
        ];
        assert_eq!(tokens(text), wanted);
    }

    #[test]
    fn a_function_is_as_long_as_its_body_and_head() {
        let text =
            "trait A { fn none(&self); } fn one() { if a { b } } fn two<const N: [u8; 2]>() {}";
        let found = functions(&tokens(text));
        assert_eq!(found, [("one", 10), ("two", 15)]);
    }
}
