//! The tree stands alone: it names no registry's host (the clients of the registries know them) and
//! reaches into no folder outside of it.

use super::Complaint;
use crate::tree::Tree;

/// Written in two halves, so that this file does not complain about itself.
const BANNED: &[(&str, &str)] = &[
    (concat!("deb.debian", ".org"), "a registry's host"),
    (concat!("pypi", ".org"), "a registry's host"),
    (concat!("pythonhosted", ".org"), "a registry's host"),
    (concat!("registry.npmjs", ".org"), "a registry's host"),
    (concat!("proxy.golang", ".org"), "a registry's host"),
    (concat!("repo.maven", ".apache.org"), "a registry's host"),
    (concat!("repo1.maven", ".org"), "a registry's host"),
    (concat!("static.crates", ".io"), "a registry's host"),
    (concat!("../sha", "red"), "a path out of the tree"),
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, text) in tree.files() {
        for (index, line) in text.lines().enumerate() {
            if let Some((banned, what)) = BANNED.iter().find(|(banned, _)| line.contains(banned)) {
                found.push(Complaint::line(
                    path,
                    index,
                    format!("names {banned}, {what}"),
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_registry_host_or_a_path_out_of_the_tree_is_refused() {
        let lock = format!("{{\n\"resolved\": \"https://{}/x\"\n}}", BANNED[3].0);
        let path = format!("cat {}/DESIGN.md", BANNED[8].0);
        let files = [
            ("package-lock.json", lock.as_str()),
            ("run.sh", path.as_str()),
            ("ok.sh", "cat docs/testing.md"),
        ];
        assert_eq!(places(check, &files), ["package-lock.json:2", "run.sh:1"]);
    }
}
