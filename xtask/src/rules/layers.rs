//! Folders of a crate that is built in layers know those before them, and none behind.

use std::collections::BTreeMap;

use super::Complaint;
use crate::calls::{Method, methods};
use crate::tree::Tree;

/// Crates in layers, with their folders from the ground up.
const LAYERED: &[(&str, &[&str])] = &[
    (
        "crates/data/backend/src/",
        &[
            "session",
            "servers",
            "connection",
            "cores",
            "hostgroup",
            "pool",
            "open",
            "find",
            "lanes",
            "upkeep",
        ],
    ),
    (
        "crates/data/worker/src/",
        &[
            "seen",
            "known",
            "command",
            "core",
            "scripts",
            "session",
            "talk",
            "memory",
            "reach",
            "replay",
            "forward",
            "partitions",
            "beside",
            "decide",
            "statement",
            "login",
            "obey",
            "life",
        ],
    ),
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (root, folders) in LAYERED {
        let height = |folder: &str| folders.iter().position(|known| *known == folder);
        let mut files = Vec::new();
        for (path, text) in tree.ending(".rs") {
            let Some(folder) = path.strip_prefix(root).and_then(|inside| {
                // A file beside a folder of its name belongs to the folder.
                let beside = inside.strip_suffix(".rs");
                let beside = beside.filter(|name| height(name).is_some());
                let within = inside.split_once('/').map(|(folder, _)| folder);
                within.or(beside)
            }) else {
                continue;
            };
            match height(folder) {
                Some(own) => files.push((path, text, own)),
                None => {
                    let words =
                        format!("folder '{folder}' has no height in xtask/src/rules/layers.rs");
                    found.push(Complaint::file(path, words));
                }
            }
        }
        for (path, text, own) in &files {
            // Tests stand at the end, and may know all.
            let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
            for (index, line) in code.enumerate().filter(|(_, line)| !is_comment(line)) {
                let named = line.split("crate::").skip(1).map(first_word);
                for above in named.filter(|name| height(name).is_some_and(|of| of > *own)) {
                    let words = format!(
                        "'{}' knows '{above}', which stands above it: who owns this?",
                        folders[*own]
                    );
                    found.push(Complaint::line(path, index, words));
                }
            }
        }
        found.extend(calls_up(&files, folders));
    }
    found
}

/// Whether a crate is built in layers.
pub(super) fn is_layered(root: &str) -> bool {
    let is_it = |known: &&str| known.strip_prefix(root) == Some("/src/");
    LAYERED.iter().any(|(known, _)| is_it(known))
}

/// Calls of methods that stand above only: of a file with its text and height, and the folders.
fn calls_up(files: &[(&str, &str, usize)], folders: &[&str]) -> Vec<Complaint> {
    let all: Vec<_> = files.iter().map(|(_, text, _)| methods(text)).collect();
    let mut lowest: BTreeMap<Method<'_>, usize> = BTreeMap::new();
    for (methods, (_, _, own)) in all.iter().zip(files) {
        for method in &methods.defined {
            let known = lowest.entry(*method).or_insert(*own);
            *known = (*known).min(*own);
        }
    }
    let mut found = Vec::new();
    for (methods, (path, _, own)) in all.iter().zip(files) {
        for (of, name) in &methods.called {
            let Some(at) = lowest.get(&(*of, *name)).filter(|at| *at > own) else {
                continue;
            };
            let words = format!(
                "'{}' calls {of}::{name} of '{}', which stands above it: who owns this?",
                folders[*own], folders[*at]
            );
            found.push(Complaint::file(path, words));
        }
    }
    found
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn first_word(path: &str) -> &str {
    path.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn who_knows_a_folder_above_it_is_refused() {
        let up = "//! x\nuse crate::session::state::State;\nuse crate::pool::pools::Pools;\n";
        let test = "//! x\n/// As `crate::pool`.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::pool::pools::Pools;\n}\n";
        let inside = "//! x\nfn a() -> crate::upkeep::Sweep {}\n";
        let forward =
            "//! x\nuse crate::forward::relay::Ask;\nimpl Session {\n    fn on(&self) {}\n}\n";
        let calls =
            "//! x\nfn a(session: &mut Session) {\n    session.on();\n    session.off();\n}\n";
        let files = [
            ("crates/data/backend/src/connection/a.rs", up),
            ("crates/data/backend/src/connection/b.rs", test),
            ("crates/data/backend/src/lanes/c.rs", inside),
            ("crates/data/backend/src/attic/d.rs", "//! x\n"),
            ("crates/data/backend/src/lib.rs", up),
            ("crates/pure/plan/src/pool/e.rs", inside),
            ("crates/data/worker/src/session.rs", forward),
            ("crates/data/worker/src/life/f.rs", forward),
            (
                "crates/data/worker/src/forward.rs",
                "//! x\nimpl Session {\n    fn off(&self) {}\n}\n",
            ),
            ("crates/data/worker/src/statement/g.rs", calls),
            ("crates/data/worker/src/talk/h.rs", calls),
        ];
        let found = places(check, &files);
        assert_eq!(
            found,
            [
                "crates/data/backend/src/attic/d.rs",
                "crates/data/backend/src/connection/a.rs:3",
                "crates/data/backend/src/lanes/c.rs:2",
                "crates/data/worker/src/session.rs:2",
                "crates/data/worker/src/talk/h.rs",
            ]
        );
    }
}
