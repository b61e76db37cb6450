//! Files of a crate that know each other in a circle cannot be read one after another.
//!
//! An arrow runs from a file to each that it names by a path: `crate::…`, `super::…`, `self::…`. Who
//! only declares a module (`mod`) does not know it. In crates that are built in layers another runs to the
//! file of each method that is called.

use std::collections::{BTreeMap, BTreeSet};

use super::Complaint;
use crate::calls::{Method, methods};
use crate::tokens::tokens;
use crate::tree::Tree;

/// So many files may know each other in a circle.
const CIRCLE_MAX: usize = 3;
/// Crates that have larger ones, each with the files of its largest: it only shrinks.
const LIST: &str = "xtask/circles.txt";

/// Names from the crate's root to a module.
type Module<'a> = Vec<&'a str>;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let known = read_list(tree.text(LIST).unwrap_or_default());
    let mut crates: BTreeMap<&str, BTreeMap<Module<'_>, (&str, &str)>> = BTreeMap::new();
    for (path, text) in tree.ending(".rs") {
        if let Some((root, inside)) = path.split_once("/src/") {
            let files = crates.entry(root).or_default();
            files.insert(module(inside), (path, text));
        }
    }
    let mut found = Vec::new();
    let mut met = BTreeSet::new();
    for (root, files) in &crates {
        let largest = largest_circle(files, super::layers::is_layered(root));
        let allowed = known.get(root).copied();
        if largest.len() > CIRCLE_MAX {
            met.insert(*root);
        }
        if largest.len() > allowed.unwrap_or(CIRCLE_MAX) {
            let words = format!(
                "{} files know each other in a circle ({}, …): who owns what they share?",
                largest.len(),
                largest
                    .iter()
                    .take(4)
                    .copied()
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            found.push(Complaint::file(root, words));
        } else if largest.len() > CIRCLE_MAX && allowed != Some(largest.len()) {
            let words = format!(
                "the largest circle of {root} has {} files now",
                largest.len()
            );
            found.push(Complaint::file(LIST, words));
        }
    }
    for root in known.keys().filter(|root| !met.contains(*root)) {
        let words = format!("{root} has no large circle any more: strike it out");
        found.push(Complaint::file(LIST, words));
    }
    found
}

/// Crate → files that its largest circle may have.
fn read_list(list: &str) -> BTreeMap<&str, usize> {
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let max = words.next()?.parse().ok()?;
            Some((words.next()?, max))
        })
        .collect()
}

/// Module of a file by its path below `src/`.
fn module(inside: &str) -> Module<'_> {
    let path = inside.strip_suffix(".rs").unwrap_or(inside);
    let mut names: Vec<&str> = path.split('/').collect();
    if matches!(names.last(), Some(&("mod" | "lib" | "main"))) {
        names.pop();
    }
    names
}

/// Paths of the files of a crate's largest circle; none if nobody is in one.
fn largest_circle<'a>(
    files: &BTreeMap<Module<'a>, (&'a str, &'a str)>,
    with_calls: bool,
) -> Vec<&'a str> {
    let modules: Vec<&Module<'_>> = files.keys().collect();
    let place = |module: &[&str]| {
        (0..=module.len())
            .rev()
            .find_map(|length| files.keys().position(|own| own[..] == module[..length]))
    };
    let mut knows: Vec<BTreeSet<usize>> = files
        .iter()
        .map(|(own, (_, text))| {
            named(own, text)
                .iter()
                .filter_map(|path| place(path))
                .filter(|other| modules[*other] != own)
                .collect()
        })
        .collect();
    if with_calls {
        add_calls(&mut knows, files.values().map(|(_, text)| *text));
    }
    let reached: Vec<BTreeSet<usize>> = (0..knows.len()).map(|from| reach(&knows, from)).collect();
    let circle = |of: usize| {
        let back = |other: &&usize| reached[**other].contains(&of);
        reached[of].iter().filter(back).copied().collect::<Vec<_>>()
    };
    let largest = (0..knows.len()).map(circle).max_by_key(Vec::len);
    let paths: Vec<&str> = files.values().map(|(path, _)| *path).collect();
    largest
        .unwrap_or_default()
        .into_iter()
        .map(|at| paths[at])
        .collect()
}

/// Adds arrows to the files of methods that are called, if they are not of the file itself.
fn add_calls<'a>(knows: &mut [BTreeSet<usize>], texts: impl Iterator<Item = &'a str>) {
    let all: Vec<_> = texts.map(methods).collect();
    let mut places: BTreeMap<Method<'_>, Vec<usize>> = BTreeMap::new();
    for (at, methods) in all.iter().enumerate() {
        for method in &methods.defined {
            places.entry(*method).or_default().push(at);
        }
    }
    for (at, methods) in all.iter().enumerate() {
        let found = methods
            .called
            .iter()
            .filter_map(|method| places.get(method));
        let elsewhere = found.filter(|places| !places.contains(&at));
        knows[at].extend(elsewhere.flatten());
    }
}

/// All that is known from there on, over any number of arrows.
fn reach(knows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut met = BTreeSet::new();
    let mut next: Vec<usize> = knows[from].iter().copied().collect();
    while let Some(at) = next.pop() {
        if met.insert(at) {
            next.extend(&knows[at]);
        }
    }
    met
}

/// Paths that a file names, from the root of its crate. Tests at its end may know all.
fn named<'a>(own: &Module<'a>, text: &'a str) -> Vec<Module<'a>> {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let words = tokens(code);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let goes_on = is_colons(&words, at + 1);
        let begins = at == 0 || words[at - 1] != ":";
        let root: Module<'_> = match *word {
            "crate" if goes_on && begins => Vec::new(),
            "self" if goes_on && begins => own.clone(),
            "super" if goes_on && begins => own[..own.len().saturating_sub(1)].to_vec(),
            _ => continue,
        };
        follow(root, &words[at + 3..], &mut found);
    }
    found
}

/// Whether a path goes on here.
fn is_colons(words: &[&str], at: usize) -> bool {
    words.get(at) == Some(&":") && words.get(at + 1) == Some(&":")
}

/// Goes along a path, and into each of the paths in braces at its end.
fn follow<'a>(mut path: Module<'a>, words: &[&'a str], found: &mut Vec<Module<'a>>) -> usize {
    let mut at = 0;
    loop {
        match words.get(at) {
            Some(&"super") => {
                path.pop();
            }
            Some(&"{") => {
                at += 1;
                while let Some(word) = words.get(at).filter(|word| **word != "}") {
                    at += match *word {
                        "," => 1,
                        _ => follow(path.clone(), &words[at..], found).max(1),
                    };
                }
                return at + 1;
            }
            Some(&"self") => {}
            Some(word) if word.starts_with(|first: char| first.is_alphabetic() || first == '_') => {
                path.push(word);
            }
            _ => break,
        }
        at += 1;
        if !is_colons(words, at) {
            break;
        }
        at += 2;
    }
    found.push(path);
    // `as another`
    if words.get(at) == Some(&"as") {
        at + 2
    } else {
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn who_knows_each_other_in_a_large_circle_is_refused_unless_it_is_listed() {
        let knows = |name: &str| format!("//! x\nuse crate::{{{name}::A, other::Z as B}};\n");
        let (b, c, d, a) = (knows("b"), knows("c"), knows("d"), knows("a"));
        let up = "//! x\nfn f() -> super::b::A {}\n\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        let files = |list: &'static str, last: &'static str| {
            [
                ("a/src/a.rs", b.clone()),
                ("a/src/b.rs", c.clone()),
                ("a/src/c/mod.rs", d.clone()),
                ("a/src/d.rs", a.clone()),
                (
                    "a/src/lib.rs",
                    "//! x\nmod a;\nmod b;\npub use a::A;\n".into(),
                ),
                ("b/src/a.rs", b.clone()),
                ("b/src/b.rs", c.clone()),
                ("b/src/c.rs", a.clone()),
                ("c/src/a.rs", b.clone()),
                ("c/src/b.rs", c.clone()),
                ("c/src/c.rs", d.clone()),
                ("c/src/d.rs", last.into()),
                (LIST, list.into()),
            ]
        };
        let check_of = |list, last| {
            let files = files(list, last);
            let files: Vec<_> = files
                .iter()
                .map(|(path, text)| (*path, text.as_str()))
                .collect();
            places(check, &files)
        };
        assert_eq!(check_of("", "//! x\n"), ["a"]);
        assert_eq!(check_of("", "//! x\nuse super::a::A;\n"), ["a", "c"]);
        assert_eq!(check_of("# why\n4 a\n", up), ["c"; 0]);
        assert_eq!(check_of("5 a\n4 c\n", up), [LIST, LIST]);
    }
}
