//! What of a module other proxies get, line by line, and its checksum: the same for the same rows
//! in whatever order they were written.

use crate::parts::{self, Line};
use crate::tables::Module;
use config::Snapshot;

/// Tells what is in force of a module, one line of JSON a row, each with its table.
pub(crate) fn lines(module: Module, snapshot: &Snapshot, line: &mut Line<'_>) {
    if let Some(part) = parts::of(module) {
        part.lines(snapshot, line);
    }
}

/// Of all rows of a module, in any order; 0 if there are none. `pause` is called now and then.
pub(crate) fn checksum(module: Module, snapshot: &Snapshot, pause: &dyn Fn()) -> u64 {
    let mut hashes = Vec::new();
    lines(module, snapshot, &mut |table, line| {
        if hashes.len() % 64 == 0 {
            pause();
        }
        hashes.push(sql::spooky::hash64(
            line,
            sql::spooky::hash64(table.as_bytes(), 0),
        ));
    });
    if hashes.is_empty() {
        return 0;
    }
    hashes.sort_unstable();
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    sql::spooky::hash64(&bytes, 0)
}

/// As ProxySQL spells it.
pub(crate) fn text(checksum: u64) -> String {
    if checksum == 0 {
        "0x0".into()
    } else {
        format!("0x{checksum:016X}")
    }
}

/// Reads a checksum, as ProxySQL spells it.
pub(crate) fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::NOT_SHARED;
    use config::{FastRoutingRow, ProxyRow, RewriteRow, Rewrites, RuleRow, Rules, Variables};
    use std::sync::Arc;

    fn with(fast: &[(&str, i64)], rules: &[i64]) -> Snapshot {
        let fast = fast.iter().map(|(schema, hostgroup)| FastRoutingRow {
            username: "u".into(),
            schemaname: (*schema).into(),
            destination_hostgroup: *hostgroup,
            ..FastRoutingRow::default()
        });
        let rules = rules.iter().map(|id| RuleRow {
            rule_id: *id,
            active: 1,
            apply: 1,
            ..RuleRow::default()
        });
        let rules = Rules::build(rules, fast, &Variables::default()).unwrap();
        Snapshot {
            rules: Arc::new(rules),
            ..Snapshot::default()
        }
    }

    fn sum(snapshot: &Snapshot) -> u64 {
        checksum(Module::Rules, snapshot, &|| ())
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_every_cell_does() {
        let one = sum(&with(&[("a", 1), ("b", 2)], &[1, 2]));
        assert_eq!(one, sum(&with(&[("b", 2), ("a", 1)], &[2, 1])));
        for other in [
            with(&[("a", 2), ("b", 1)], &[1, 2]),
            with(&[("a", 1)], &[1, 2]),
            with(&[("a", 1), ("b", 2)], &[1]),
            with(&[("a", 1), ("b", 2)], &[1, 3]),
            with(&[], &[]),
        ] {
            assert_ne!(one, sum(&other));
        }
        let mut rewritten = with(&[("a", 1), ("b", 2)], &[1, 2]);
        let row = RewriteRow {
            rewrite_id: 1,
            active: 1,
            pattern: "SELECT 1".into(),
            replacement: "SELECT 2".into(),
            ..RewriteRow::default()
        };
        rewritten.rewrites = Arc::new(Rewrites::build([row], true).unwrap());
        assert_ne!(one, sum(&rewritten));
    }

    #[test]
    fn nothing_has_the_checksum_zero_and_texts_are_read_again() {
        assert_eq!(sum(&Snapshot::default()), 0);
        for number in [0, 1, u64::MAX] {
            assert_eq!(super::number(&text(number)), Some(number));
        }
        assert_eq!(
            (text(0), text(171)),
            ("0x0".into(), "0x00000000000000AB".into())
        );
        assert_eq!(number("7"), None);
    }

    #[test]
    fn where_a_proxy_listens_is_its_own() {
        let of = |pairs: &[(&str, &str)]| {
            let (variables, _) = Variables::build(pairs.iter().copied()).unwrap();
            let snapshot = Snapshot {
                variables: Arc::new(variables),
                ..Snapshot::default()
            };
            [Module::MysqlVariables, Module::AdminVariables]
                .map(|module| checksum(module, &snapshot, &|| ()))
        };
        let usual = of(&[]);
        assert_eq!(
            usual,
            of(&[
                ("mysql-interfaces", "127.0.0.1:1"),
                ("admin-mysql_ifaces", "127.0.0.1:2"),
                ("mysql-threads", "1")
            ])
        );
        let [mysql, admin] = of(&[("mysql-multiplexing", "false")]);
        assert!(mysql != usual[0] && admin == usual[1]);
        for name in NOT_SHARED {
            assert!(config::Variable::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_list_of_proxies_has_one_too() {
        let row = |hostname: &str| ProxyRow {
            hostname: hostname.into(),
            ..ProxyRow::default()
        };
        let of = |rows: Vec<ProxyRow>| {
            let proxies = Arc::new(config::Proxies::build(rows).unwrap());
            checksum(
                Module::ProxysqlServers,
                &Snapshot {
                    proxies,
                    ..Snapshot::default()
                },
                &|| (),
            )
        };
        assert_eq!(of(vec![row("a"), row("b")]), of(vec![row("b"), row("a")]));
        assert_ne!(of(vec![row("a")]), of(vec![row("b")]));
    }
}
