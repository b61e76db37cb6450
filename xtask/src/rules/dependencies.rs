//! Who may know whom: the dependency table of the architecture, read against every manifest.

use std::collections::BTreeMap;

use toml::Table;

use super::Complaint;
use crate::tree::Tree;

/// The crates of `pure/`, lowest first: each may know those above its own line here.
/// `wire` and `sql` know nobody.
const PURE: &[&str] = &[
    "wire", "sql", "gtid", "binlog", "lua", "shards", "gather", "config", "topology", "plan",
    "bridge",
];
const KNOW_NOBODY: &[&str] = &["wire", "sql", "gtid", "lua", "rt"];

/// Libraries that pure code may use: they compute. Whatever opens, waits, locks or spawns is not
/// among them.
const PURE_LIBRARIES: &[&str] = &[
    "aho-corasick",
    "datafusion",
    "flate2",
    "foldhash",
    "hashbrown",
    "memchr",
    "pcre2",
    "regex",
    "regex-automata",
    "regex-syntax",
    "serde",
    "serde_json",
    "sha1",
    "sha2",
    "ed25519-dalek",
    "smallvec",
    "sqlparser",
    "zstd",
];
/// Libraries of each of the two crates of `io/`.
const RT_LIBRARIES: &[&str] = &["libc", "io-uring"];
const NET_LIBRARIES: &[&str] = &["openssl", "openssl-sys", "foreign-types"];
/// Libraries that bring threads, locks or waiting into a core.
const NOT_IN_DATA: &[&str] = &[
    "axum",
    "crossbeam",
    "crossbeam-channel",
    "hyper",
    "mysql",
    "mysql_async",
    "parking_lot",
    "reqwest",
    "rusqlite",
    "tokio",
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let crates = crates(tree);
    crates
        .values()
        .flat_map(|one| {
            let complain = |words: String| Complaint::file(&one.manifest, words);
            let ours = one.uses.iter().filter(|used| crates.contains_key(*used));
            let libraries = one.uses.iter().filter(|used| !crates.contains_key(*used));
            let neighbours = ours
                .filter(|used| !may_know(one, &crates[*used]))
                .map(|used| {
                    complain(format!(
                        "{} may not know {used} ({} → {})",
                        one.name, one.folder, crates[used].folder
                    ))
                });
            let outside = libraries.filter(|used| !may_use(one, used)).map(|used| {
                complain(format!(
                    "{} ({}) may not use the library {used}",
                    one.name, one.folder
                ))
            });
            neighbours.chain(outside).collect::<Vec<_>>()
        })
        .collect()
}

struct Crate {
    name: String,
    manifest: String,
    /// `pure`, `io`, `data`, `control`; empty for the crates outside these four.
    folder: String,
    /// Dependencies of the crate's shipped code; tests may know more.
    uses: Vec<String>,
}

fn crates(tree: &Tree) -> BTreeMap<String, Crate> {
    tree.ending("/Cargo.toml")
        .filter_map(|(path, text)| {
            let manifest = text.parse::<Table>().ok()?;
            let name = manifest.get("package")?.get("name")?.as_str()?.to_owned();
            let mut parts = path.split('/');
            let folder = match (parts.next(), parts.next()) {
                (Some("crates"), Some(folder))
                    if ["pure", "io", "data", "control"].contains(&folder) =>
                {
                    folder
                }
                _ => "",
            };
            let mut uses = Vec::new();
            names_of(&manifest, &mut uses);
            for target in manifest
                .get("target")
                .and_then(|t| t.as_table())
                .into_iter()
                .flat_map(Table::values)
            {
                target
                    .as_table()
                    .into_iter()
                    .for_each(|table| names_of(table, &mut uses));
            }
            Some((
                name.clone(),
                Crate {
                    name,
                    manifest: path.to_owned(),
                    folder: folder.to_owned(),
                    uses,
                },
            ))
        })
        .collect()
}

fn names_of(table: &Table, into: &mut Vec<String>) {
    for section in ["dependencies", "build-dependencies"] {
        for (key, value) in table
            .get(section)
            .and_then(|s| s.as_table())
            .into_iter()
            .flatten()
        {
            // `alias = { package = "name" }` is still a dependency on `name`.
            into.push(
                value
                    .get("package")
                    .and_then(|p| p.as_str())
                    .unwrap_or(key)
                    .to_owned(),
            );
        }
    }
}

fn may_know(one: &Crate, other: &Crate) -> bool {
    if KNOW_NOBODY.contains(&one.name.as_str()) {
        return false;
    }
    match (one.folder.as_str(), other.folder.as_str()) {
        ("pure", "pure") => {
            let place = |name: &str| PURE.iter().position(|listed| *listed == name);
            matches!((place(&one.name), place(&other.name)), (Some(mine), Some(its)) if its < mine)
        }
        ("io", _) => one.name == "net" && ["rt", "wire"].contains(&other.name.as_str()),
        ("data", "pure" | "io" | "data") => true,
        ("control", "pure" | "io" | "control") => true,
        // main(), the simulator, the fuzz targets and the benchmarks put crates together; nobody in
        // the four folders knows them.
        ("", _) => true,
        _ => false,
    }
}

fn may_use(one: &Crate, library: &str) -> bool {
    match (one.folder.as_str(), one.name.as_str()) {
        ("pure", _) => PURE_LIBRARIES.contains(&library),
        ("io", "rt") => RT_LIBRARIES.contains(&library),
        ("io", _) => NET_LIBRARIES.contains(&library),
        ("data", _) => !NOT_IN_DATA.contains(&library),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::check_all;

    fn manifest(name: &str, uses: &[&str]) -> String {
        let uses: String = uses
            .iter()
            .map(|used| format!("{used}.workspace = true\n"))
            .collect();
        format!("[package]\nname = \"{name}\"\n[dependencies]\n{uses}[lints]\nworkspace = true\n")
    }

    /// A small workspace in which one crate's dependencies are as given.
    fn with(path: &str, uses: &[&str]) -> Vec<String> {
        let all = [
            "crates/pure/wire",
            "crates/pure/sql",
            "crates/pure/config",
            "crates/pure/topology",
            "crates/pure/plan",
            "crates/pure/bridge",
            "crates/io/rt",
            "crates/io/net",
            "crates/data/backend",
            "crates/data/worker",
            "crates/control/admin",
        ];
        let texts: Vec<(String, String)> = all
            .iter()
            .chain((!all.contains(&path)).then_some(&path))
            .map(|one| {
                let name = one.rsplit('/').next().unwrap();
                (
                    format!("{one}/Cargo.toml"),
                    manifest(name, if *one == path { uses } else { &[] }),
                )
            })
            .collect();
        let files: Vec<(&str, &str)> = texts
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        check_all(&Tree::of(&files))
            .into_iter()
            .filter(|complaint| complaint.at.ends_with("Cargo.toml"))
            .map(|complaint| complaint.words)
            .collect()
    }

    #[test]
    fn the_two_planes_never_name_each_other() {
        assert_eq!(
            with("crates/data/worker", &["admin"]),
            ["worker may not know admin (data → control)"]
        );
        assert_eq!(
            with("crates/control/admin", &["worker"]),
            ["admin may not know worker (control → data)"]
        );
        assert!(
            with(
                "crates/data/worker",
                &["rt", "net", "wire", "plan", "bridge", "backend"]
            )
            .is_empty()
        );
        assert!(
            with(
                "crates/control/admin",
                &["rt", "net", "wire", "sql", "config", "bridge", "rusqlite"]
            )
            .is_empty()
        );
    }

    #[test]
    fn pure_code_knows_only_what_is_below_it() {
        assert_eq!(
            with("crates/pure/config", &["plan"]),
            ["config may not know plan (pure → pure)"]
        );
        assert_eq!(
            with("crates/pure/sql", &["wire"]),
            ["sql may not know wire (pure → pure)"]
        );
        assert_eq!(
            with("crates/pure/plan", &["rt"]),
            ["plan may not know rt (pure → io)"]
        );
        assert_eq!(
            with("crates/pure/plan", &["tokio"]),
            ["plan (pure) may not use the library tokio"]
        );
        assert!(with("crates/pure/plan", &["wire", "sql", "config", "regex"]).is_empty());
    }

    #[test]
    fn the_runtime_knows_no_mysql_and_the_network_no_policy() {
        assert_eq!(
            with("crates/io/rt", &["wire"]),
            ["rt may not know wire (io → pure)"]
        );
        assert_eq!(
            with("crates/io/rt", &["openssl"]),
            ["rt (io) may not use the library openssl"]
        );
        assert_eq!(
            with("crates/io/net", &["config"]),
            ["net may not know config (io → pure)"]
        );
        assert!(with("crates/io/net", &["rt", "wire", "openssl"]).is_empty());
    }

    #[test]
    fn a_core_uses_no_library_that_waits() {
        assert_eq!(
            with("crates/data/backend", &["tokio"]),
            ["backend (data) may not use the library tokio"]
        );
    }

    #[test]
    fn who_puts_crates_together_may_know_all_and_be_known_by_none() {
        assert!(with("crates/millrace", &["worker", "admin", "tokio"]).is_empty());
        assert!(with("sim", &["worker", "admin"]).is_empty());
        let words = with("crates/data/worker", &["sim"]);
        assert!(
            words.is_empty(),
            "an unknown name counts as a library: {words:?}"
        );
    }
}
