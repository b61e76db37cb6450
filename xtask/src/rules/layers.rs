//! Folders of a crate that is built in layers know those before them, and none behind.

use super::Complaint;
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
        for (path, text) in tree.ending(".rs") {
            let Some(inside) = path.strip_prefix(root) else {
                continue;
            };
            // A file beside a folder of its name belongs to the folder.
            let beside = inside
                .strip_suffix(".rs")
                .filter(|name| height(name).is_some());
            let within = inside.split_once('/').map(|(folder, _)| folder);
            let Some(folder) = within.or(beside) else {
                continue;
            };
            let Some(own) = height(folder) else {
                let words = format!("folder '{folder}' has no height in xtask/src/rules/layers.rs");
                found.push(Complaint::file(path, words));
                continue;
            };
            // Tests stand at the end, and may know all.
            let code = text.lines().take_while(|line| *line != "#[cfg(test)]");
            for (index, line) in code.enumerate().filter(|(_, line)| !is_comment(line)) {
                let named = line.split("crate::").skip(1).map(first_word);
                for above in named.filter(|name| height(name).is_some_and(|of| of > own)) {
                    let words = format!(
                        "'{folder}' knows '{above}', which stands above it: who owns this?"
                    );
                    found.push(Complaint::line(path, index, words));
                }
            }
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
        let forward = "//! x\nuse crate::forward::relay::Ask;\n";
        let files = [
            ("crates/data/backend/src/connection/a.rs", up),
            ("crates/data/backend/src/connection/b.rs", test),
            ("crates/data/backend/src/lanes/c.rs", inside),
            ("crates/data/backend/src/attic/d.rs", "//! x\n"),
            ("crates/data/backend/src/lib.rs", up),
            ("crates/pure/plan/src/pool/e.rs", inside),
            ("crates/data/worker/src/session.rs", forward),
            ("crates/data/worker/src/life/f.rs", forward),
        ];
        let found = places(check, &files);
        assert_eq!(
            found,
            [
                "crates/data/backend/src/attic/d.rs",
                "crates/data/backend/src/connection/a.rs:3",
                "crates/data/backend/src/lanes/c.rs:2",
                "crates/data/worker/src/session.rs:2",
            ]
        );
    }
}
