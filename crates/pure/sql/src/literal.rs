//! Values as SQL: literals that mean the same in every `sql_mode` and on every connection.

use std::fmt::Write as _;

/// A string in single quotes; `None` for one whose meaning could depend on the mode or the
/// character set: it has a backslash, or something else than printable ASCII.
#[must_use]
pub fn plain_string(text: &[u8]) -> Option<String> {
    let plain = text.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'\\');
    plain.then(|| format!("'{}'", String::from_utf8_lossy(text).replace('\'', "''")))
}

/// A string of this collation from its bytes in hexadecimal digits. What is not a name or not
/// digits gives `None`.
#[must_use]
pub fn hex_string(collation: &str, digits: &[u8]) -> Option<String> {
    let named = !collation.is_empty()
        && collation
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !named || !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let digits = String::from_utf8_lossy(digits);
    if collation == "binary" {
        return Some(format!("X'{digits}'"));
    }
    let charset = collation.split('_').next().unwrap_or(collation);
    Some(format!("_{charset} X'{digits}' COLLATE {collation}"))
}

/// Returns what a string says that [`plain_string`] or [`hex_string`] has made; `None` where that
/// is not ASCII or depends on the mode.
#[must_use]
pub fn said(literal: &str) -> Option<Vec<u8>> {
    let ascii = |text: Vec<u8>| text.is_ascii().then_some(text);
    if let Some(inside) = literal.strip_prefix('\'') {
        let inside = inside.strip_suffix('\'')?;
        let plain = !inside.contains('\\') && !inside.replace("''", "").contains('\'');
        return if plain {
            ascii(inside.replace("''", "'").into_bytes())
        } else {
            None
        };
    }
    let (charset, rest) = literal.split_once("X'")?;
    let wide = ["ucs2", "utf16", "utf32"]
        .iter()
        .any(|wide| charset.contains(wide));
    let known = charset.is_empty() || charset.starts_with('_');
    let (digits, _collation) = rest.split_once('\'')?;
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits
        .as_bytes()
        .chunks(2)
        .map(pair)
        .collect::<Option<Vec<_>>>()?;
    if wide || !known { None } else { ascii(bytes) }
}

/// A name in backticks.
#[must_use]
pub fn name(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    let _infallible = write!(out, "`{}`", name.replace('`', "``"));
    out
}

/// Is this a number as servers print and read them?
#[must_use]
pub fn is_number(text: &[u8]) -> bool {
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    digits > 0
        && text
            .iter()
            .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_quoted_or_spelled_in_digits() {
        assert_eq!(plain_string(b"it's").as_deref(), Some("'it''s'"));
        assert_eq!(plain_string(br"a\b"), None);
        assert_eq!(plain_string("é".as_bytes()), None);
        assert_eq!(
            hex_string("utf8mb4_bin", b"C3A9").as_deref(),
            Some("_utf8mb4 X'C3A9' COLLATE utf8mb4_bin")
        );
        assert_eq!(hex_string("binary", b"00").as_deref(), Some("X'00'"));
        assert_eq!(hex_string("x; y", b"00"), None);
        let back = |literal: Option<String>| said(&literal.unwrap());
        assert_eq!(back(plain_string(b"it's")).as_deref(), Some(&b"it's"[..]));
        assert_eq!(
            back(hex_string("utf8mb4_bin", b"6127")).as_deref(),
            Some(&b"a'"[..])
        );
        assert_eq!(
            back(hex_string("binary", b"61")).as_deref(),
            Some(&b"a"[..])
        );
        assert_eq!(back(hex_string("utf8mb4_bin", b"C3A9")), None);
        assert_eq!(back(hex_string("utf16_bin", b"0061")), None);
        for other in [
            "'a\\nb'",
            "'a",
            "5",
            "NULL",
            "CAST(NULL AS SIGNED)",
            "'a'b'",
            "X'0",
        ] {
            assert_eq!(said(other), None, "{other}");
        }
        assert_eq!(hex_string("binary", b"0"), None);
        assert_eq!(hex_string("binary", b"'-"), None);
    }
}
