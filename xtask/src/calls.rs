//! Calls of methods, roughly: those on `self` in an `impl`, and those on parameters that borrow. No
//! path names the file that such a method stands in.

use std::collections::BTreeMap;

use crate::tokens::tokens;

/// A type and its method.
pub type Method<'a> = (&'a str, &'a str);

/// Methods that a text has and calls.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Methods<'a> {
    /// Methods of its `impl`s, without those of traits.
    pub defined: Vec<Method<'a>>,
    /// Methods that it calls, those of its own among them.
    pub called: Vec<Method<'a>>,
}

/// The methods of a text. Tests at its end may know all.
pub fn methods(text: &str) -> Methods<'_> {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let words = tokens(code);
    let mut found = Methods::default();
    let mut depth = 0_usize;
    let mut owner = None;
    let mut parameters = BTreeMap::new();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    for at in 0..words.len() {
        match words[at] {
            "impl" if depth == 0 && begins_an_item(&words[..at]) => {
                owner = Some(head(&words[at..]))
            }
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    owner = None;
                }
            }
            "fn" if depth <= 1 => {
                parameters = borrowed(&words[at..]);
                if let (Some((of, false)), 1) = (owner, depth) {
                    found.defined.push((of, word(at + 1)));
                }
            }
            "." if word(at + 2) == "(" && at > 0 && (at < 2 || words[at - 2] != ".") => {
                let of = match words[at - 1] {
                    "self" => owner.map(|(of, _)| of),
                    name => parameters.get(name).copied(),
                };
                found.called.extend(of.map(|of| (of, word(at + 1))));
            }
            _ => {}
        }
    }
    found
}

/// Whether an item may begin behind these; else `impl` is part of a type.
fn begins_an_item(before: &[&str]) -> bool {
    matches!(before.last(), None | Some(&("}" | ";" | "]" | "unsafe")))
}

/// Type of an `impl`, and whether it is one of a trait.
fn head<'a>(words: &[&'a str]) -> Owner<'a> {
    let end = words.iter().position(|word| *word == "{");
    let mut head = &words[1..end.unwrap_or(words.len())];
    if head.first() == Some(&"<") {
        head = &head[closing(head)..];
    }
    let of_trait = head.iter().position(|word| *word == "for");
    let path = &head[of_trait.map_or(0, |at| at + 1)..];
    let is_name = |word: &&&str| word.starts_with(char::is_alphabetic);
    let path = path.split(|word| *word == "<" || *word == "where").next();
    let name = path.and_then(|path| path.iter().rfind(is_name));
    (name.copied().unwrap_or_default(), of_trait.is_some())
}

/// A type, and whether a trait is implemented for it.
type Owner<'a> = (&'a str, bool);

/// Words up to the end of what `<` begins.
fn closing(words: &[&str]) -> usize {
    let mut open = 0;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "<" => open += 1,
            // Not that of `->`.
            ">" if at == 0 || words[at - 1] != "-" => open -= 1,
            _ => {}
        }
        if open == 0 {
            return at + 1;
        }
    }
    words.len()
}

/// Parameters `name: &Type` of a function that begins here.
fn borrowed<'a>(words: &[&'a str]) -> BTreeMap<&'a str, &'a str> {
    let end = words.iter().position(|word| matches!(*word, "{" | ";"));
    let words = &words[..end.unwrap_or(words.len())];
    let mut found = BTreeMap::new();
    for at in 1..words.len().saturating_sub(2) {
        if words[at] != ":" || words[at + 1] != "&" {
            continue;
        }
        let mut of = words[at + 2..].iter().copied();
        let is_aside = |word: &&str| word.starts_with('\'') || matches!(*word, "mut" | "Rc" | "<");
        if let Some(of) = of.find(|word| !is_aside(word)) {
            found.insert(words[at - 1], of);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_found_by_their_types() {
        let text = "impl<T: Fn(u8)> Held<T> {
    fn take(&self) { self.look(); self.0.len(); }
}
impl Drop for Seat { fn drop(&mut self) { self.give(); } }
fn ask(session: &mut Session, core: &Rc<Core>, how: impl Fn()) {
    session.say(core.note(1)); session.core.tell(); other.go();
}
#[cfg(test)]
mod tests { fn a(session: &Session) { session.all() } }
";
        let found = methods(text);
        assert_eq!(found.defined, [("Held", "take")]);
        let called = [
            ("Held", "look"),
            ("Seat", "give"),
            ("Session", "say"),
            ("Core", "note"),
        ];
        assert_eq!(found.called, called);
    }
}
