//! The bill of materials: every library that the binary is made of, as CycloneDX has it.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Package that is shipped.
const SHIPPED: &str = "millrace";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Returns what `cargo metadata` says of the workspace.
pub fn metadata(features: &str) -> Result<Value, String> {
    let asked = Command::new(option_env!("CARGO").unwrap_or("cargo"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", TARGET, "--features", features])
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !asked.status.success() {
        return Err(String::from_utf8_lossy(&asked.stderr).into_owned());
    }
    serde_json::from_slice(&asked.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// A bill in JSON. It has no time and no number of its own, so that one tree has one bill.
pub fn bill(metadata: &Value) -> Result<String, String> {
    let packages: BTreeMap<&str, &Value> = list(metadata, "packages")
        .filter_map(|package| Some((text(package, "id")?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"], "nodes")
        .filter_map(|node| Some((text(node, "id")?, node)))
        .collect();
    let shipped = packages
        .iter()
        .find(|(_, package)| text(package, "name") == Some(SHIPPED))
        .map(|(id, _)| *id)
        .ok_or_else(|| format!("there is no package {SHIPPED}"))?;
    let mut linked = BTreeMap::new();
    let mut unseen = vec![shipped];
    while let Some(id) = unseen.pop() {
        if linked.contains_key(id) {
            continue;
        }
        let needs: BTreeSet<&str> = nodes
            .get(id)
            .map_or_else(BTreeSet::new, |node| needs(node, &packages));
        unseen.extend(&needs);
        linked.insert(id, needs);
    }
    let components: Vec<_> = linked
        .keys()
        .filter(|id| **id != shipped)
        .filter_map(|id| packages.get(id))
        .map(|package| component(package, "library"))
        .collect();
    let dependencies: Vec<_> = linked
        .iter()
        .filter_map(|(id, needs)| {
            let names: Vec<_> = needs
                .iter()
                .filter_map(|id| packages.get(id))
                .map(|p| purl(p))
                .collect();
            Some(json!({ "ref": purl(packages.get(id)?), "dependsOn": names }))
        })
        .collect();
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": packages.get(shipped).map(|p| component(p, "application")) },
        "components": components,
        "dependencies": dependencies,
    });
    serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())
}

/// Packages whose code is linked: neither those that only build it nor those that only test it. A
/// library in C comes as its source, for whatever builds it (`openssl-src`).
fn needs<'a>(node: &'a Value, packages: &BTreeMap<&str, &Value>) -> BTreeSet<&'a str> {
    let is_source = |id: &str| {
        let name = packages.get(id).and_then(|package| text(package, "name"));
        name.is_some_and(|name| name.ends_with("-src"))
    };
    list(node, "deps")
        .filter_map(|dep| Some((dep, text(dep, "pkg")?)))
        .filter(|(dep, id)| {
            list(dep, "dep_kinds")
                .any(|kind| kind["kind"].is_null() || (kind["kind"] == "build" && is_source(id)))
        })
        .map(|(_, id)| id)
        .collect()
}

fn component(package: &Value, kind: &str) -> Value {
    let mut all = json!({
        "type": kind,
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    });
    if let Some(license) = text(package, "license") {
        // Older packages write MIT/Apache-2.0.
        all["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    if let Some(about) = text(package, "description") {
        all["description"] = json!(about.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    all
}

fn purl(package: &Value) -> String {
    let part = |key| text(package, key).unwrap_or_default();
    format!("pkg:cargo/{}@{}", part("name"), part("version"))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value[key].as_str()
}

/// Libraries with a licence of which `deny.toml` allows none of the choices, a line each.
pub fn unlicensed(bill: &str, deny: &str) -> Result<Vec<String>, String> {
    let bill: Value = serde_json::from_str(bill).map_err(|error| error.to_string())?;
    let deny: toml::Table = deny
        .parse()
        .map_err(|error| format!("deny.toml: {error}"))?;
    let allowed: BTreeSet<&str> = deny
        .get("licenses")
        .and_then(|licenses| licenses.get("allow"))
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(toml::Value::as_str)
        .collect();
    Ok(list(&bill, "components")
        .filter_map(|component| {
            let license = component["licenses"][0]["expression"]
                .as_str()
                .unwrap_or_default();
            let name = component["bom-ref"].as_str().unwrap_or_default();
            (!may(license, &allowed)).then(|| format!("{name}: {license}"))
        })
        .collect())
}

/// Whether an expression of SPDX can be met by what is allowed: OR binds less than AND, parentheses
/// first.
fn may(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut met = all_of(words, allowed);
    while let [first, rest @ ..] = *words
        && *first == "OR"
    {
        *words = rest;
        met |= all_of(words, allowed);
    }
    met
}

fn all_of(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut met = one(words, allowed);
    while let [first, rest @ ..] = *words
        && *first == "AND"
    {
        *words = rest;
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = any_of(words, allowed);
            if let [")", rest @ ..] = *words {
                *words = rest;
            }
            met
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            allowed.contains(format!("{name} WITH {exception}").as_str())
        }
        [name, rest @ ..] => {
            *words = rest;
            allowed.contains(name)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_license_is_met_by_any_choice_that_is_allowed() {
        let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
        for fine in [
            "MIT",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-3.0) AND ISC",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
        ] {
            assert!(may(fine, &allowed), "{fine}");
        }
        for not in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "Apache-2.0",
            "MIT GPL-3.0",
        ] {
            assert!(!may(not, &allowed), "{not}");
        }
    }

    #[test]
    fn a_bill_has_what_is_linked_and_nothing_that_only_builds_or_tests() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/GPL-3.0" });
        let dep = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let packages = ["millrace", "a", "b", "b-src", "builds", "tests"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                { "id": "millrace", "deps": [dep("a", Value::Null), dep("tests", json!("dev"))] },
                { "id": "a", "deps": [dep("b", Value::Null), dep("builds", json!("build"))] },
                { "id": "b", "deps": [dep("b-src", json!("build"))] },
            ] },
        });
        let text = bill(&metadata).unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        let names: Vec<_> = list(&told, "components").map(|one| &one["name"]).collect();
        assert_eq!(names, ["a", "b", "b-src"]);
        assert_eq!(told["dependencies"][0]["ref"], "pkg:cargo/a@1.0.0");
        assert_eq!(
            told["dependencies"][0]["dependsOn"],
            json!(["pkg:cargo/b@1.0.0"])
        );
        let deny = "[licenses]\nallow = [\"ISC\"]";
        assert_eq!(unlicensed(&text, deny).unwrap().len(), 3);
        assert!(
            unlicensed(&text, "[licenses]\nallow = [\"MIT\"]")
                .unwrap()
                .is_empty()
        );
    }
}
