//! The variables against the list that a running ProxySQL 2.7.1 gave (`tests/global_variables.tsv`).

use config::Variable;

/// Where ours differ, or where the recorded proxy had been given another value than its default.
const DIFFERENT: &[(&str, &str)] =
    &[("admin-mysql_ifaces", "127.0.0.1:6032"), ("mysql-interfaces", "0.0.0.0:6033"), ("mysql-threads", "4")];

#[test]
fn every_variable_of_proxysql_exists_with_its_default() {
    let lines = include_str!("global_variables.tsv").lines().skip(1);
    let mut count = 0;
    for line in lines {
        let (name, recorded) = line.split_once('\t').unwrap_or((line, ""));
        let variable = Variable::named(name).unwrap_or_else(|| panic!("{name} is missing"));
        let different = DIFFERENT.iter().find(|(different, _)| *different == name);
        assert_eq!(variable.default, different.map_or(recorded, |(_, ours)| ours), "{name}");
        count += 1;
    }
    assert_eq!(count, 214, "the list is whole");
}

/// A35, A42: the time of decisions is not taken unless somebody asks.
#[test]
fn decisions_are_not_timed_by_default() {
    assert!(!config::Variables::default().mysql_stats_time_query_processor);
    let (asked, _) = config::Variables::build([("mysql-stats_time_query_processor", "true")]).unwrap();
    assert!(asked.mysql_stats_time_query_processor);
}
