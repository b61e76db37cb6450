//! LOAD, SAVE and CHECKSUM: what moves between which layers.

use super::command::{Command, Layer, OfFleet, Subject};
use super::words::{after, is, unquoted};
use crate::tables::Module;

/// As CHECKSUM names them, with their tables. The variables are those of the prefix `mysql-`.
const SUBJECTS: &[(&str, &str, bool)] = &[
    ("MYSQL SERVERS", "mysql_servers", true),
    ("MYSQL USERS", "mysql_users", true),
    ("MYSQL QUERY RULES", "mysql_query_rules", true),
    ("MYSQL VARIABLES", "global_variables", true),
    (
        "MYSQL REPLICATION HOSTGROUPS",
        "mysql_replication_hostgroups",
        true,
    ),
    (
        "MYSQL GROUP REPLICATION HOSTGROUPS",
        "mysql_group_replication_hostgroups",
        false,
    ),
    ("MYSQL GALERA HOSTGROUPS", "mysql_galera_hostgroups", false),
    (
        "MYSQL AURORA HOSTGROUPS",
        "mysql_aws_aurora_hostgroups",
        false,
    ),
    (
        "MYSQL HOSTGROUP ATTRIBUTES",
        "mysql_hostgroup_attributes",
        false,
    ),
    (
        "MYSQL SERVERS SSL PARAMS",
        "mysql_servers_ssl_params",
        false,
    ),
];

const TO_RUNTIME: &[&str] = &["TO RUNTIME", "TO RUN", "FROM MEMORY", "FROM MEM"];
const FROM_DISK: &[&str] = &["TO MEMORY", "TO MEM", "FROM DISK"];
const TO_DISK: &[&str] = &["TO DISK", "FROM MEMORY", "FROM MEM"];
const FROM_RUNTIME: &[&str] = &["TO MEMORY", "TO MEM", "FROM RUNTIME", "FROM RUN"];

pub(super) fn parse(text: &str, words: &[&str]) -> Option<Command> {
    let loads = is(&words[..1], &["LOAD"]);
    let rest = &words[1..];
    if let Some(path) = after(rest, "CONFIG TO FILE").filter(|_| !loads) {
        // The path may hold blanks: it is taken from the text.
        let path = path
            .first()
            .map_or("", |first| &text[text.len() - tail_len(text, first)..]);
        return Some(Command::WriteConfig {
            path: path.to_owned(),
            select: false,
        });
    }
    if is(rest, &["MYSQL DIGEST TO DISK"]) && !loads {
        return Some(Command::KeepDigests);
    }
    if let (true, Some([name, to @ ..])) = (loads, after(rest, "MYSQL USER")) {
        return is(to, &["TO RUNTIME", "TO RUN"])
            .then(|| Command::LoadUser(unquoted(name).to_owned()));
    }
    let (module, direction) = Module::ALL
        .iter()
        .find_map(|module| Some((*module, after(rest, module.words())?)))?;
    if loads && is(direction, &["FROM CONFIG"]) && has_config(module) {
        return Some(Command::LoadConfig(module));
    }
    let layers = if loads {
        [
            (TO_RUNTIME, Layer::Memory, Layer::Runtime),
            (FROM_DISK, Layer::Disk, Layer::Memory),
        ]
    } else {
        [
            (TO_DISK, Layer::Memory, Layer::Disk),
            (FROM_RUNTIME, Layer::Runtime, Layer::Memory),
        ]
    };
    if let Some(layers) = local(direction).filter(|_| loads) {
        return is(&layers, &["TO RUNTIME", "TO RUN"])
            .then_some(Command::Fleet(OfFleet::LoadHere(module)));
    }
    let (_, from, to) = *layers.iter().find(|(texts, ..)| is(direction, texts))?;
    if module == Module::Coredump && to != Layer::Runtime {
        return None;
    }
    Some(Command::Move { module, from, to })
}

/// The words before a LOCAL.
fn local<'a>(direction: &[&'a str]) -> Option<Vec<&'a str>> {
    let (last, before) = direction.split_last()?;
    is(&[last], &["LOCAL"]).then(|| before.to_vec())
}

/// `FLEET ROLLBACK module TO n`.
pub(super) fn fleet(words: &[&str]) -> Option<Command> {
    let [module, to, generation] = after(words, "FLEET ROLLBACK")? else {
        return None;
    };
    let generation = generation.parse().ok()?;
    is(&[to], &["TO"]).then(|| {
        Command::Fleet(OfFleet::RollBack {
            module: unquoted(module).to_owned(),
            generation,
        })
    })
}

/// How much of `text` there is from the first word behind FILE on.
fn tail_len(text: &str, first: &str) -> usize {
    let upper = text.to_ascii_uppercase();
    let file = upper.find("FILE").map_or(0, |at| at + 4);
    text[file..]
        .find(first)
        .map_or(first.len(), |at| text.len() - file - at)
}

fn has_config(module: Module) -> bool {
    !matches!(
        module,
        Module::SqliteVariables | Module::ClickhouseVariables | Module::Coredump
    )
}

pub(super) fn checksum(words: &[&str]) -> Option<Command> {
    let mut rest = &words[1..];
    let mut disk = false;
    if let [layer, ..] = rest {
        let memory = is(&[layer], &["MEMORY", "MEM"]);
        disk = is(&[layer], &["DISK"]);
        if memory || disk {
            rest = &rest[1..];
        }
    }
    let &(words, table, on_disk) = SUBJECTS.iter().find(|(words, ..)| is(rest, &[words]))?;
    (!disk || on_disk).then_some(Command::Checksum(Subject::Table { words, table, disk }))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::engine::View;

    #[test]
    fn every_module_has_every_form() {
        for module in Module::ALL {
            let moved = |verb: &str, direction: &str| match parse(
                &format!("{verb} {} {direction}", module.words()),
                View::Admin,
            ) {
                Command::Move {
                    module: found,
                    from,
                    to,
                } => {
                    assert_eq!(found, *module);
                    Some((from, to))
                }
                _ => None,
            };
            for direction in TO_RUNTIME {
                assert_eq!(
                    moved("LOAD", direction),
                    Some((Layer::Memory, Layer::Runtime))
                );
            }
            if *module == Module::Coredump {
                continue;
            }
            for direction in FROM_DISK {
                assert_eq!(moved("LOAD", direction), Some((Layer::Disk, Layer::Memory)));
            }
            for direction in TO_DISK {
                assert_eq!(moved("SAVE", direction), Some((Layer::Memory, Layer::Disk)));
            }
            for direction in FROM_RUNTIME {
                assert_eq!(
                    moved("SAVE", direction),
                    Some((Layer::Runtime, Layer::Memory))
                );
            }
            assert_eq!(moved("LOAD", "TO DISK"), None);
            assert_eq!(moved("SAVE", "FROM CONFIG"), None);
        }
    }

    #[test]
    fn names_and_paths_are_kept_as_they_were_written() {
        assert_eq!(
            parse("load mysql user Bob to runtime", View::Admin),
            Command::LoadUser("Bob".into())
        );
        let saved = |path: &str| Command::WriteConfig {
            path: path.into(),
            select: false,
        };
        assert_eq!(
            parse("SAVE CONFIG TO  FILE /tmp/a  File.cnf;", View::Admin),
            saved("/tmp/a  File.cnf")
        );
        assert_eq!(parse("SAVE CONFIG TO FILE", View::Admin), saved(""));
    }

    #[test]
    fn checksums_are_of_memory_unless_disk_is_named() {
        let of = |disk| {
            Command::Checksum(Subject::Table {
                words: "MYSQL SERVERS",
                table: "mysql_servers",
                disk,
            })
        };
        assert_eq!(parse("CHECKSUM MYSQL SERVERS", View::Admin), of(false));
        assert_eq!(parse("checksum mem mysql servers", View::Admin), of(false));
        assert_eq!(parse("CHECKSUM DISK MYSQL SERVERS", View::Admin), of(true));
        for other in [
            "CHECKSUM DISK MYSQL GALERA HOSTGROUPS",
            "CHECKSUM TABLE mysql_servers",
        ] {
            assert!(
                matches!(parse(other, View::Admin), Command::NotAvailable(_)),
                "{other}"
            );
        }
    }

    #[test]
    fn what_is_said_of_a_fleet() {
        let parsed = |text: &str| parse(text, View::Admin);
        let here = Command::Fleet(OfFleet::LoadHere(Module::Rules));
        assert_eq!(parsed("LOAD MYSQL QUERY RULES TO RUNTIME LOCAL"), here);
        assert_eq!(parsed("load mysql query rules to run local;"), here);
        assert_eq!(
            parsed("SHOW FLEET HISTORY"),
            Command::Fleet(OfFleet::History)
        );
        let back = OfFleet::RollBack {
            module: "mysql_users".into(),
            generation: 7,
        };
        assert_eq!(
            parsed("FLEET ROLLBACK mysql_users TO 7"),
            Command::Fleet(back)
        );
        for other in [
            "LOAD MYSQL USERS FROM DISK LOCAL",
            "SAVE MYSQL USERS TO DISK LOCAL",
            "LOAD MYSQL USERS LOCAL",
            "FLEET ROLLBACK mysql_users TO x",
            "FLEET ROLLBACK mysql_users",
        ] {
            assert!(matches!(parsed(other), Command::Sql(_)), "{other}");
        }
        assert!(matches!(
            parse("FLEET ROLLBACK mysql_users TO 7", View::Stats),
            Command::Sql(_)
        ));
    }
}
