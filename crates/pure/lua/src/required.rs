//! Files that a script needs beside itself, by what its text says: they are read when the script is
//! loaded, since nobody reads a disk while it runs.

use std::sync::Arc;

/// A file that scripts ask for by a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Such as `tools.text` for `tools/text.lua`.
    pub name: Box<str>,
    /// Path, for messages.
    pub chunk: Box<str>,
    /// Lua.
    pub text: Arc<str>,
}

/// Names that stand in quotes behind `require`, in the order of the text; also those in comments, so
/// that an author can name what is only known when it runs.
#[must_use]
pub fn required(text: &str) -> Vec<&str> {
    let mut names = named(text, "require");
    names.retain(|name| is_module(name));
    names
}

/// Names of files that stand in quotes behind `loadConfig`.
#[must_use]
pub fn configured(text: &str) -> Vec<&str> {
    named(text, "loadConfig")
}

/// Places below a folder where a module may be.
#[must_use]
pub fn places(name: &str) -> [String; 2] {
    let path = name.replace('.', "/");
    [format!("{path}.lua"), format!("{path}/init.lua")]
}

/// Whether a script keeps something in `proxy.global`, where the servers are, too; options that are
/// set by statements are kept there.
#[must_use]
pub fn shares_globals(text: &str) -> bool {
    const GLOBAL: &str = "proxy.global";
    text.match_indices(GLOBAL).any(|(at, _)| {
        let rest = &text[at + GLOBAL.len()..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let name: String = match rest.strip_prefix('.') {
            Some(rest) => rest.chars().take_while(|c| is_word(*c)).collect(),
            None => String::new(),
        };
        !rest.starts_with(is_word) && name != "backends"
    }) || required(text).contains(&"proxy.auto-config")
}

/// Dots part folders, and nothing leads out of the first one.
fn is_module(name: &str) -> bool {
    let is_part = |part: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        !part.is_empty() && part.chars().all(known)
    };
    name.split('.').all(is_part)
}

fn named<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(word) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        if text[..at].chars().next_back().is_some_and(is_part) {
            continue;
        }
        let rest = text[at + word.len()..].trim_start();
        let rest = rest.strip_prefix('(').unwrap_or(rest).trim_start();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            continue;
        };
        let inside = rest[1..].split_once([quote, '\n']);
        if let Some((name, _)) = inside
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_is_told_from_servers() {
        for (text, shared) in [
            ("proxy.global.count = 1", true),
            ("local g = proxy.global", true),
            ("proxy.global['count'] = 1", true),
            ("proxy.global.config.mine = {}", true),
            ("require('proxy.auto-config')", true),
            ("for i = 1, #proxy.global.backends do end", false),
            ("proxy.globals = 1", false),
            ("", false),
        ] {
            assert_eq!(shares_globals(text), shared, "{text}");
        }
    }

    #[test]
    fn names_are_found_in_every_form() {
        let text = "local a = require('tools.text')\nrequire \"b\"\nassert(require( 'c' ))\n-- require('late')\nrequire(name)\nunrequire('no')\nrequire('b') require('../up') require('unfinished";
        assert_eq!(required(text), ["tools.text", "b", "c", "late"]);
        assert_eq!(configured("logger.loadConfig('x/y.lua')"), ["x/y.lua"]);
        assert_eq!(
            places("tools.text"),
            ["tools/text.lua", "tools/text/init.lua"]
        );
    }
}
