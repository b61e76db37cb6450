//! Manifests: the workspace's lints in every crate, and a sentence for every library.

use toml::Table;

use super::Complaint;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree.ending("Cargo.toml") {
        let Ok(manifest) = text.parse::<Table>() else {
            found.push(Complaint::file(path, "is not TOML"));
            continue;
        };
        if manifest.contains_key("workspace") {
            found.extend(libraries_without_a_reason(path, text));
        }
        found.extend(targets_that_nobody_builds(tree, path, &manifest));
        // A package that is a workspace of its own (the fuzz targets, which need another compiler)
        // has nothing to take.
        if manifest.contains_key("package") && !manifest.contains_key("workspace") {
            let lints = manifest
                .get("lints")
                .and_then(|lints| lints.get("workspace"));
            if lints.and_then(toml::Value::as_bool) != Some(true) {
                found.push(Complaint::file(
                    path,
                    "does not take the workspace's lints ([lints] workspace = true)",
                ));
            }
        }
    }
    found
}

/// A fuzz target without a `[[bin]]` is never compiled, and nobody notices.
fn targets_that_nobody_builds(tree: &Tree, path: &str, manifest: &Table) -> Vec<Complaint> {
    let folder = path.trim_end_matches("Cargo.toml");
    let bins = manifest
        .get("bin")
        .and_then(toml::Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let built: Vec<_> = bins
        .iter()
        .filter_map(|bin| bin.get("path").and_then(toml::Value::as_str))
        .collect();
    let targets = tree
        .ending(".rs")
        .filter(|(file, _)| file.starts_with(&format!("{folder}fuzz_targets/")));
    targets
        .filter(|(file, _)| !built.contains(&file.trim_start_matches(folder)))
        .map(|(file, _)| {
            Complaint::file(
                file,
                format!("is a fuzz target without a [[bin]] in {path}"),
            )
        })
        .collect()
}

/// In `[workspace.dependencies]`, a library stands under a comment; several may share one when no
/// blank line parts them. Our own crates (by path) need none.
fn libraries_without_a_reason(path: &str, text: &str) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut inside = false;
    let mut reason = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
            reason = false;
        } else if line.is_empty() {
            reason = false;
        } else if line.starts_with('#') {
            reason = true;
        } else if inside
            && !reason
            && line.contains('=')
            && !line.contains("path =")
            && !line.contains(" # ")
        {
            let name = line.split('=').next().unwrap_or(line).trim();
            found.push(Complaint::line(
                path,
                index,
                format!("the library {name} has no sentence of reason above it"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_fuzz_target_that_is_not_built_is_refused() {
        let manifest = "[package]\nname = \"fuzz\"\n[workspace]\n[[bin]]\nname = \"a\"\npath = \"fuzz_targets/a.rs\"\n";
        let files = [
            ("fuzz/Cargo.toml", manifest),
            ("fuzz/fuzz_targets/a.rs", ""),
            ("fuzz/fuzz_targets/b.rs", ""),
        ];
        assert_eq!(places(check, &files), ["fuzz/fuzz_targets/b.rs"]);
    }

    #[test]
    fn a_library_without_a_reason_is_refused() {
        let root = "[workspace.dependencies]\nwire = { path = \"crates/pure/wire\" }\n\n# Why.\nlibc = \"0.2\"\nio-uring = \"0.7\"\n\nregex = \"1\"\n";
        assert_eq!(places(check, &[("Cargo.toml", root)]), ["Cargo.toml:8"]);
    }

    #[test]
    fn a_crate_without_the_lints_of_the_workspace_is_refused() {
        let bare = "[package]\nname = \"x\"\n";
        let good = "[package]\nname = \"y\"\n[lints]\nworkspace = true\n";
        assert_eq!(
            places(check, &[("x/Cargo.toml", bare), ("y/Cargo.toml", good)]),
            ["x/Cargo.toml"]
        );
    }
}
