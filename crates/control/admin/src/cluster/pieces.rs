//! A module as it travels between proxies: its rows in pieces, behind a head that says what it is.

use super::decide::Sum;
use super::sums;
use crate::build::Built;
use crate::parts::{self, Pieces};
use crate::tables::Module;
use config::{Help, Snapshot};
use line::Rows;

/// Rows are given in pieces of about so many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// Returns what is in force of a module, in pieces. `pause` is called now and then.
pub(super) fn pieces(module: Module, snapshot: &Snapshot, pause: &dyn Fn()) -> Pieces {
    let mut pieces = Pieces::new();
    let mut count = 0_usize;
    sums::lines(module, snapshot, &mut |table, line| {
        if count.is_multiple_of(64) {
            pause();
        }
        count += 1;
        match pieces.last_mut() {
            Some((of, text)) if of == table && text.len() < PIECE_BYTES => {
                text.push(b'\n');
                text.extend_from_slice(line);
            }
            _ => pieces.push((table.to_owned(), line.to_vec())),
        }
    });
    pieces
}

/// The snapshot in which a module is as another proxy gave it.
pub(super) fn built(module: Module, pieces: &Pieces, now: &Snapshot, help: &dyn Help) -> Built {
    let mut next = Snapshot {
        generation: now.generation + 1,
        ..now.clone()
    };
    let notices = match parts::of(module) {
        Some(part) => part.take(pieces, help)?(&mut next, help)?,
        None => Vec::new(),
    };
    Ok((next, notices))
}

/// The first row of what is given: what it is, in the order of version, epoch and checksum.
pub(super) fn head(sum: Sum) -> Vec<u8> {
    format!("{} {} {}", sum.version, sum.epoch, sums::text(sum.checksum)).into_bytes()
}

pub(super) fn read_head(bytes: &[u8]) -> Option<Sum> {
    let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
    let sum = Sum {
        version: words.next()?.parse().ok()?,
        epoch: words.next()?.parse().ok()?,
        checksum: sums::number(words.next()?)?,
    };
    (words.next().is_none() && sum.is_possible()).then_some(sum)
}

/// Takes apart what was given: what it is, and its rows.
pub(super) fn taken_apart(rows: Rows) -> Option<(Sum, Pieces)> {
    let mut rows = rows.into_iter().map(|row| match <[_; 2]>::try_from(row) {
        Ok([Some(table), Some(text)]) => Some((String::from_utf8(table).ok()?, text)),
        _ => None,
    });
    let (_, first) = rows.next()??;
    Some((read_head(&first)?, rows.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::VARIABLES;
    use config::{FastRoutingRow, RuleRow, Rules, Variables};
    use std::sync::Arc;

    fn many() -> Snapshot {
        let fast = (0..5000).map(|i| FastRoutingRow {
            username: "u".into(),
            schemaname: format!("shard_{i}"),
            destination_hostgroup: i % 7,
            ..FastRoutingRow::default()
        });
        let rule = RuleRow {
            rule_id: 3,
            active: 1,
            match_digest: Some("^SELECT".into()),
            ..RuleRow::default()
        };
        let rules = Rules::build([rule], fast, &Variables::default()).unwrap();
        Snapshot {
            rules: Arc::new(rules),
            ..Snapshot::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_not_told_with_its_value() {
        let text = br#"["u","s3cret","s3cret","s3cret"]"#.to_vec();
        let wrong = vec![
            ("mysql_users".to_owned(), text),
            (VARIABLES.to_owned(), br#"["admin-x",["s3cret"]]"#.to_vec()),
        ];
        let said = [Module::Users, Module::AdminVariables]
            .map(|module| built(module, &wrong, &Snapshot::default(), &config::Alone))
            .into_iter()
            .flat_map(|built| built.map(drop).unwrap_err());
        let words: Vec<_> = said.map(|refused| refused.to_string()).collect();
        assert!(
            words.len() == 2
                && words
                    .iter()
                    .all(|words| words.contains("number 1") && !words.contains("s3cret")),
            "{words:?}"
        );
    }

    #[test]
    fn what_is_given_is_built_again_with_the_same_checksum() {
        let (given, module) = (many(), Module::Rules);
        let of = |snapshot: &Snapshot| sums::checksum(module, snapshot, &|| ());
        let whole = pieces(module, &given, &|| ());
        assert!(whole.len() > 2, "in pieces");
        let (next, _) = built(module, &whole, &Snapshot::default(), &config::Alone).unwrap();
        assert_eq!((of(&next), next.generation), (of(&given), 1));
        assert!(
            next.rules
                .fast()
                .rows()
                .any(|row| row.schemaname == "shard_4" && row.destination_hostgroup == 4)
        );
        // A part of it has another one, and what is no row is refused.
        let part = whole[..whole.len() - 1].to_vec();
        let (next, _) = built(module, &part, &Snapshot::default(), &config::Alone).unwrap();
        assert_ne!(of(&next), of(&given));
        let mut broken = whole;
        broken.last_mut().unwrap().1.pop();
        let refused = built(module, &broken, &Snapshot::default(), &config::Alone).unwrap_err();
        assert!(
            refused[0].to_string().starts_with(
                "mysql_query_rules_fast_routing: has no row of this version as number"
            ),
            "{refused:?}"
        );
    }

    #[test]
    fn a_head_is_read_again_and_nothing_else_is_one() {
        let sum = Sum {
            version: 3,
            epoch: 1_700_000_000,
            checksum: 171,
        };
        assert_eq!(read_head(&head(sum)), Some(sum));
        for wrong in [
            "",
            "3 4",
            "3 4 5",
            "3 4 0xZ",
            "3 4 0x5 6",
            "-1 4 0x5",
            "3 18446744073709551615 0x5",
        ] {
            assert_eq!(read_head(wrong.as_bytes()), None, "{wrong}");
        }
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(taken_apart(vec![]), None);
        assert_eq!(taken_apart(vec![vec![cell("")]]), None);
        assert_eq!(
            taken_apart(vec![vec![cell(""), cell("1 2 0x3")], vec![cell("t"), None]]),
            None
        );
        let fine = taken_apart(vec![
            vec![cell(""), cell("1 2 0x3")],
            vec![cell("t"), cell("[]")],
        ]);
        assert_eq!(
            fine,
            Some((
                Sum {
                    version: 1,
                    epoch: 2,
                    checksum: 3
                },
                vec![("t".into(), b"[]".to_vec())]
            ))
        );
    }

    #[test]
    fn variables_of_others_do_not_say_where_this_one_listens() {
        let (theirs, _) = Variables::build([
            ("mysql-interfaces", "127.0.0.1:1"),
            ("mysql-multiplexing", "false"),
        ])
        .unwrap();
        let theirs = Snapshot {
            variables: Arc::new(theirs),
            ..Snapshot::default()
        };
        let mut given = pieces(Module::MysqlVariables, &theirs, &|| ());
        given.push((
            VARIABLES.into(),
            br#"["mysql-interfaces","127.0.0.1:1"]"#.to_vec(),
        ));
        given.push((VARIABLES.into(), br#"["admin-read_only","true"]"#.to_vec()));
        let (next, _) = built(
            Module::MysqlVariables,
            &given,
            &Snapshot::default(),
            &config::Alone,
        )
        .unwrap();
        assert!(!next.variables.mysql_multiplexing && !next.variables.admin_read_only);
        assert_eq!(
            next.variables.mysql_interfaces,
            Variables::default().mysql_interfaces
        );
        assert_eq!(
            sums::checksum(Module::MysqlVariables, &next, &|| ()),
            sums::checksum(Module::MysqlVariables, &theirs, &|| ())
        );
    }
}
