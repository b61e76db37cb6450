//! The variables against the list that a running ProxySQL 2.7.1 gave
//! (`tests/global_variables.tsv`).

use config::{Effect, REGISTRY, Variable};

/// Where ours differ, or where the recorded proxy had been given another value than its default.
const DIFFERENT: &[(&str, &str)] = &[
    ("admin-mysql_ifaces", "127.0.0.1:6032"),
    ("mysql-interfaces", "0.0.0.0:6033"),
    ("mysql-threads", "4"),
];

#[test]
fn every_variable_of_proxysql_exists_with_its_default() {
    let lines = include_str!("global_variables.tsv").lines().skip(1);
    let mut count = 0;
    for line in lines {
        let (name, recorded) = line.split_once('\t').unwrap_or((line, ""));
        let variable = Variable::named(name).unwrap_or_else(|| panic!("{name} is missing"));
        let different = DIFFERENT.iter().find(|(different, _)| *different == name);
        assert_eq!(
            variable.default,
            different.map_or(recorded, |(_, ours)| ours),
            "{name}"
        );
        count += 1;
    }
    assert_eq!(count, 214, "the list is whole");
}

/// A35, A42: the time of decisions is not taken unless somebody asks.
#[test]
fn decisions_are_not_timed_by_default() {
    assert!(!config::Variables::default().mysql_stats_time_query_processor);
    let (asked, _) =
        config::Variables::build([("mysql-stats_time_query_processor", "true")]).unwrap();
    assert!(asked.mysql_stats_time_query_processor);
}

#[test]
fn the_variables_without_effect_are_those_that_the_documentation_lists() {
    let dead = REGISTRY
        .iter()
        .filter(|variable| variable.effect == Effect::NotYet);
    let mut names: Vec<_> = dead.map(|variable| variable.name).collect();
    names.sort_unstable();
    let wanted: Vec<_> = names.iter().map(|name| format!("- `{name}`")).collect();
    assert_listed("## Variables without effect", &wanted);
}

#[test]
fn the_variables_without_meaning_are_those_that_the_documentation_lists() {
    let moot = REGISTRY
        .iter()
        .filter(|variable| variable.effect == Effect::Moot);
    let mut names: Vec<_> = moot.map(|variable| variable.name).collect();
    names.sort_unstable();
    let wanted: Vec<_> = names.iter().map(|name| format!("- `{name}`")).collect();
    assert_listed("## Variables without meaning", &wanted);
    let (_, notices) = config::Variables::build([("mysql-stacksize", "262144")]).unwrap();
    assert_eq!(
        notices[0].to_string(),
        "mysql-stacksize is accepted and kept, but has no meaning here"
    );
}

/// The section of docs/compatibility.md has these lines, no others, in order.
fn assert_listed(heading: &str, wanted: &[String]) {
    let page = include_str!("../../../../docs/compatibility.md");
    let (_, list) = page.split_once(heading).expect("the page has the list");
    let list = list.split("\n## ").next().unwrap_or_default();
    let told: Vec<_> = list
        .lines()
        .filter(|line| line.starts_with("- "))
        .map(str::to_owned)
        .collect();
    let missing: Vec<_> = wanted.iter().filter(|line| !told.contains(line)).collect();
    let wrong: Vec<_> = told.iter().filter(|line| !wanted.contains(line)).collect();
    assert!(
        missing.is_empty() && wrong.is_empty(),
        "docs/compatibility.md lacks {missing:?}, and should not have {wrong:?}"
    );
    assert_eq!(told, wanted, "in order of their names");
}
