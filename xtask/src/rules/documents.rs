//! Pages: each one under `docs/` is linked from another, and a link leads somewhere.

use std::collections::BTreeSet;

use super::Complaint;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut linked = BTreeSet::new();
    for (path, text) in tree.ending(".md") {
        for (index, target) in links(text) {
            let Some(place) = resolve(path, target) else {
                continue;
            };
            if !tree.holds(&place) {
                found.push(Complaint::line(
                    path,
                    index,
                    format!("links to {target}, which is not there"),
                ));
            }
            if place != path {
                linked.insert(place);
            }
        }
    }
    for (path, _) in tree
        .ending(".md")
        .filter(|(path, _)| path.starts_with("docs/"))
    {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        // A folder of like pages (decisions) may be linked as a whole; `docs` itself may not.
        let by_folder = folder != "docs" && linked.contains(folder);
        if !linked.contains(path) && !by_folder {
            found.push(Complaint::file(
                path,
                "is linked from no other page, so nobody will find it",
            ));
        }
    }
    found
}

/// The targets of `[words](target)`, with their lines. Code blocks are not prose.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, tail)) = after.split_once(')') else {
                break;
            };
            found.push((index, target));
            rest = tail;
        }
    }
    found
}

/// The path from the root, or nothing for what is not a file of ours (an address, a place in the
/// same page).
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or_default();
    if target.is_empty()
        || target.contains("://")
        || target.starts_with("mailto:")
        || target.contains(' ')
    {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::places;

    #[test]
    fn a_page_that_nothing_links_to_is_refused() {
        let files = [
            (
                "README.md",
                "See [testing](docs/testing.md) and [decisions](docs/decisions/).",
            ),
            ("docs/testing.md", "Up: [readme](../README.md)."),
            ("docs/decisions/one.md", "It was decided."),
            ("docs/lost.md", "Links to [itself](lost.md#here) only."),
        ];
        assert_eq!(places(check, &files), ["docs/lost.md"]);
    }

    #[test]
    fn a_dead_link_is_refused() {
        let files = [(
            "README.md",
            "A [page](docs/none.md), an [address](https://example.org/x.md).\n```\n[code](x)\n```\n",
        )];
        assert_eq!(places(check, &files), ["README.md:1"]);
    }
}
