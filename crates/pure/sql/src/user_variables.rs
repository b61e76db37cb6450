//! Which user variables a text mentions.

use crate::words::{Kind, Words, unquote};
use std::borrow::Cow;

/// More of them in one text are not read.
pub const NAMES_MAX: usize = 64;

/// The names after `@`, in lower case, each once; `None` when there are too many or one is not a
/// name.
#[must_use]
pub fn mentioned(sql: &[u8], escapes: bool) -> Option<Vec<String>> {
    let mut words = if escapes {
        Words::new(sql)
    } else {
        Words::without_escapes(sql)
    };
    let mut names: Vec<String> = Vec::new();
    while let Some(token) = words.next() {
        if !token.is_sign(b'@') {
            continue;
        }
        let name = words.next()?;
        if name.is_sign(b'@') {
            // A system variable.
            words.next();
            continue;
        }
        let is_quoted = matches!(name.kind, Kind::Name | Kind::String);
        if name.start != token.end()
            || !name.is_whole()
            || !is_quoted && !name.is_sign(b'.') && name.kind == Kind::Sign
        {
            return None;
        }
        let mut written = unquote(name.text);
        if !is_quoted {
            // `@a.b.c` is one name, and `@.` is one.
            written = Cow::Borrowed(&sql[name.start..words.skip_variable()]);
        }
        let text = String::from_utf8(written.into_owned()).ok()?.to_lowercase();
        if !names.contains(&text) {
            if names.len() == NAMES_MAX {
                return None;
            }
            names.push(text);
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_wherever_they_stand() {
        let found = |sql: &str| mentioned(sql.as_bytes(), true);
        let names = |all: &[&str]| Some(all.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            found("SELECT @A := @a + 1, @`b c`, @'d', @e.f INTO @g"),
            names(&["a", "b c", "d", "e.f", "g"])
        );
        assert_eq!(found("SELECT @@sql_mode, '@x', 1 /* @y */"), names(&[]));
        assert_eq!(found("SELECT @@session.x, @z"), names(&["z"]));
        assert_eq!(
            found("SELECT @a..b, @.c, @., @d.e f"),
            names(&["a..b", ".c", ".", "d.e"])
        );
        assert_eq!(found("SELECT @ a"), None);
        assert_eq!(found("SELECT @"), None);
    }
}
