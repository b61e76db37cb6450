//! LEARN MYSQL FIREWALL: rules of the firewall, in memory, for statements that are known to have
//! run.

use crate::commands::{Lesson, Source};
use crate::engine::{Reply, SqlError};
use crate::said::Said;
use crate::see::route;
use crate::shared::Shared;
use crate::tables::Module;
use bridge::{Ask, Report};
use config::Snapshot;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Statement that may be allowed, in the columns of `mysql_firewall_whitelist_rules`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    user: String,
    /// Empty if it is not known.
    client: String,
    schema: String,
    /// The firewall's.
    digest: u64,
    /// `None`: it follows from the rules.
    flag: Option<u32>,
    /// As the statistics have it: rules are asked with that.
    counted: u64,
    text: String,
}

/// A user's digest in a schema: user, schema, digest.
type Key = (String, String, u64);

/// Knowledge of whether digests show all that a server reads; as [`bridge::DigestRow::shown`].
#[derive(Default)]
struct Sights(BTreeMap<Key, Option<bool>>);

/// All that is known of what ran.
#[derive(Default)]
struct Seen {
    known: BTreeSet<Known>,
    sights: Sights,
    /// The firewall's digests of those of the statistics.
    guarded: BTreeMap<Key, u64>,
    /// Digests of the firewall that are one of several for the same digest of the statistics.
    alike: BTreeSet<Key>,
    /// Digests that only the history has, which does not say how they were made.
    only_history: BTreeSet<Key>,
    /// Those that cannot be the firewall's.
    not_learned: BTreeSet<Key>,
}

impl Sights {
    fn add(&mut self, known: &Known, shown: Option<bool>) {
        let all = self.0.entry(known.key()).or_insert(shown);
        *all = all.filter(|all| shown == Some(*all));
    }
}

impl Known {
    fn of(
        [user, client, schema]: [&str; 3],
        digest: u64,
        (counted, text): (u64, &str),
        flag: Option<u32>,
    ) -> Self {
        let [user, client, schema, text] = [user, client, schema, text].map(str::to_owned);
        Self {
            user,
            client,
            schema,
            digest,
            flag,
            counted,
            text,
        }
    }

    fn key(&self) -> Key {
        (self.user.clone(), self.schema.clone(), self.digest)
    }

    fn counted(&self) -> Key {
        (self.user.clone(), self.schema.clone(), self.counted)
    }
}

impl Shared {
    /// Puts what was learned into memory, to be looked at before it is loaded. Rows that are there,
    /// active or not, stay as they are.
    pub(crate) async fn learn_firewall(&self, lesson: &Lesson) -> Result<Reply, Said> {
        let guarded = guarded(self.engine.borrow().conn(), lesson.user.as_deref())?;
        if guarded.is_empty() {
            let words = "mysql_firewall_whitelist_users has no active row: nobody's statements are to be learned. Name a user: \
                         LEARN MYSQL FIREWALL FOR user";
            return Err(Said::Sql(words.into()));
        }
        let seen = self.known(lesson.from).await?;
        let snapshot = self.snapshot.borrow();
        let mut doubtful = 0;
        let [mut hidden, mut partly, mut alike, mut unsure] = [const { BTreeSet::new() }; 4];
        let added = self.engine.borrow().transaction(|conn| {
            let mut insert = conn.prepare(
                "INSERT OR IGNORE INTO main.mysql_firewall_whitelist_rules \
                 (active, username, client_address, schemaname, flagIN, digest, comment) VALUES (1, ?1, ?2, ?3, ?4, ?5, 'learned')",
            )?;
            let mut added = 0;
            for known in &seen.known {
                let Some(addresses) = guarded.get(&known.user) else { continue };
                match seen.sights.0.get(&known.key()) {
                    Some(Some(false)) => {
                        hidden.insert(known.key());
                        continue;
                    }
                    Some(None) => drop(partly.insert(known.key())),
                    Some(Some(true)) | None => {}
                }
                let (flag, certain) = known.flag.map_or_else(|| flag(&snapshot, known), |flag| (flag, true));
                let mut of_this = 0;
                for address in rows_for(addresses, &known.client) {
                    let digest = format!("0x{:016X}", known.digest);
                    of_this += insert.execute((&known.user, address, &known.schema, flag, digest))?;
                }
                if seen.alike.contains(&known.key()) && known.flag.is_none() {
                    alike.insert(known.key());
                }
                if seen.only_history.contains(&known.key()) && of_this > 0 {
                    unsure.insert(known.key());
                }
                added += of_this as u64;
                doubtful += u64::from(!certain && of_this > 0);
            }
            Ok(added)
        })?;
        if added > 0 {
            self.cluster.edited(Module::Firewall);
        }
        let mut info = format!("{added} rules added in memory");
        if doubtful > 0 {
            info += &format!(
                "; the flagIN of {doubtful} statements depends on more than their digest and may be another"
            );
        }
        if !hidden.is_empty() {
            info += &format!(
                "; left out: {} statements of whose texts a server may read what their digests do not show, so that no rule allows them",
                hidden.len()
            );
        }
        if !partly.is_empty() {
            info += &format!(
                "; of {} statements that is so with some of their texts, which stay refused",
                partly.len()
            );
        }
        if !alike.is_empty() {
            info += &format!(
                "; {} digests of the statistics may be those of statements that the firewall tells apart: of each, one is allowed, and others \
                 stay refused until FROM DETECTED has learned them",
                alike.len()
            );
        }
        if !unsure.is_empty() {
            info += &format!(
                "; {} digests are known from the history only, which does not say with which mysql-query_digests options they were made: under \
                 others than the usual ones they allow nothing",
                unsure.len()
            );
        }
        let not_learned = seen
            .not_learned
            .iter()
            .filter(|(user, ..)| guarded.contains_key(user))
            .count();
        if not_learned > 0 {
            info += &format!(
                "; left out: {not_learned} digests of the history, because their texts were cut or mysql-query_digests options are not the usual \
                 ones: the firewall has others for them"
            );
        }
        Ok(Reply::Done {
            affected: added,
            info,
        })
    }

    /// Returns what was seen, by whatever source; and what is known of what digests do not show.
    async fn known(&self, asked: Option<Source>) -> Result<Seen, Said> {
        let from = |source| asked.is_none_or(|asked| asked == source);
        let mut seen = Seen::default();
        if let Report::Digests(rows) = self.cores.ask(Ask::Digests).await? {
            for row in rows {
                let one = Known::of(
                    [&*row.user, &*row.client_address, &*row.schema],
                    row.guarded,
                    (row.digest, &row.text),
                    None,
                );
                seen.sights.add(&one, row.shown);
                seen.guarded.insert(one.counted(), row.guarded);
                if row.alike {
                    seen.alike.insert(one.key());
                }
                if from(Source::Digests) {
                    seen.known.insert(one);
                }
            }
        }
        if let Report::Alarms(rows) = self.cores.ask(Ask::Alarms).await? {
            let is_unshown = |action| {
                [plan::Action::DetectedUnshown, plan::Action::BlockedUnshown]
                    .iter()
                    .any(|one| one.name() == action)
            };
            for row in rows {
                let is_shown = [plan::Action::Detected, plan::Action::Blocked]
                    .iter()
                    .any(|one| one.name() == row.action);
                if !is_shown && !is_unshown(row.action) {
                    continue;
                }
                let whose = [&*row.user, &*row.client_address, &*row.schema];
                let one = Known::of(whose, row.digest, (row.digest, &row.text), Some(row.flag));
                seen.sights.add(&one, Some(is_shown));
                let blocked = row.action == plan::Action::Blocked.name();
                if from(Source::Detected)
                    && !blocked
                    && row.action != plan::Action::BlockedUnshown.name()
                    || blocked && asked == Some(Source::Blocked)
                {
                    seen.known.insert(one);
                }
            }
        }
        if from(Source::History) {
            let are_usual = self
                .snapshot
                .borrow()
                .variables
                .digest_options()
                .are_as_whole();
            history(self.engine.borrow().conn(), &mut seen, are_usual)?;
        }
        Ok(seen)
    }
}

/// Texts of the history that are as long were cut, or may have been.
const CUT: usize = 2048;

/// The history has the digests of the statistics. Which ones the firewall has for them is known of
/// those that the statistics have now. `are_usual`: the others may be the same.
fn history(conn: &Connection, seen: &mut Seen, are_usual: bool) -> Result<(), SqlError> {
    let mut select = conn.prepare(
        "SELECT DISTINCT username, client_address, schemaname, digest, digest_text FROM stats_history.history_mysql_query_digest",
    )?;
    let rows = select.query_map([], |row| {
        let text = |at| row.get::<_, String>(at);
        Ok(([text(0)?, text(1)?, text(2)?], text(3)?, text(4)?))
    })?;
    for row in rows {
        let ([user, client, schema], digest, text) = row?;
        let Ok(counted) = u64::from_str_radix(digest.trim_start_matches("0x"), 16) else {
            continue;
        };
        let mut one = Known {
            user,
            client,
            schema,
            digest: counted,
            flag: None,
            counted,
            text,
        };
        match seen.guarded.get(&one.key()) {
            Some(guarded) => one.digest = *guarded,
            None if are_usual && one.text.len() < CUT => drop(seen.only_history.insert(one.key())),
            None => {
                seen.not_learned.insert(one.key());
                continue;
            }
        }
        seen.known.insert(one);
    }
    Ok(())
}

/// The users whose statements are to be learned, and the addresses of their rows. A user who is
/// named need have no row: the firewall then looks for his rules under the empty address.
fn guarded(
    conn: &Connection,
    named: Option<&str>,
) -> Result<BTreeMap<String, BTreeSet<String>>, SqlError> {
    let mut select = conn.prepare(
        "SELECT username, client_address FROM main.mysql_firewall_whitelist_users WHERE active = 1",
    )?;
    let rows = select.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut guarded: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let (user, address) = row?;
        if named.is_none_or(|named| named == user) {
            guarded.entry(user).or_default().insert(address);
        }
    }
    if let Some(named) = named {
        guarded
            .entry(named.to_owned())
            .or_insert_with(|| BTreeSet::from([String::new()]));
    }
    Ok(guarded)
}

/// Under which addresses the firewall looks for the rules of this client.
fn rows_for<'a>(addresses: &'a BTreeSet<String>, client: &'a str) -> impl Iterator<Item = &'a str> {
    // Where it came from is not known: from any of them.
    let all = client.is_empty().then_some(addresses);
    let one = if addresses.contains(client) {
        client
    } else {
        ""
    };
    let one = (!client.is_empty()).then_some(one);
    all.into_iter().flatten().map(String::as_str).chain(one)
}

/// The flag with which the rules in force end for it, and whether its digest alone tells.
fn flag(snapshot: &Snapshot, known: &Known) -> (u32, bool) {
    let digest = plan::Digest {
        hash: known.counted,
        text: known.text.as_bytes(),
    };
    route::flag_at_end(snapshot, &known.user, &known.schema, &known.client, digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::View;
    use crate::open::Options;
    use crate::testing::{self, digest_row as digest};
    use bridge::AlarmRow;

    fn alarm(digest: u64, action: &'static str) -> AlarmRow {
        testing::alarm_row("u", "t", 9, digest, action)
    }

    #[test]
    fn what_a_digest_does_not_show_is_not_learned_and_that_is_said() {
        let reports = |ask: Ask, _: bool| match ask {
            Ask::Digests => Some(Report::Digests(vec![
                digest("u", "", 1, "SELECT ?"),
                bridge::DigestRow {
                    shown: Some(false),
                    ..digest("u", "", 2, "SELECT a FROM t")
                },
                bridge::DigestRow {
                    shown: None,
                    ..digest("u", "", 3, "SELECT b FROM t")
                },
                bridge::DigestRow {
                    shown: Some(false),
                    ..digest("v", "", 4, "SELECT c FROM t")
                },
            ])),
            Ask::Alarms => Some(Report::Alarms(vec![
                alarm(5, "detected_unshown"),
                alarm(6, "detected"),
                alarm(6, "blocked_unshown"),
                alarm(7, "blocked_unshown"),
            ])),
            _ => None,
        };
        testing::with_reports(Options::default(), Box::new(reports), |bench| async move {
            bench
                .script(
                    "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'u', '', 'DETECTING', '');
                     INSERT INTO stats_history.history_mysql_query_digest VALUES \
                     (1, 0, 's', 'u', '', '0x0000000000000002', 'SELECT a FROM t', 1, 1, 1, 1, 1, 1, 0, 0);",
                )
                .await;
            let left_out = |n| {
                format!(
                    "left out: {n} statements of whose texts a server may read what their digests do not show, so that no rule allows them"
                )
            };
            let learned = bench
                .ask(View::Admin, "LEARN MYSQL FIREWALL FROM HISTORY")
                .await
                .unwrap();
            // The statistics know more of it.
            assert_eq!(
                learned,
                Reply::Done {
                    affected: 0,
                    info: format!("0 rules added in memory; {}", left_out(1))
                }
            );
            let learned = bench
                .ask(View::Admin, "LEARN MYSQL FIREWALL")
                .await
                .unwrap();
            let words = format!(
                "3 rules added in memory; {}; of 2 statements that is so with some of their texts, which stay refused",
                left_out(2)
            );
            assert_eq!(
                learned,
                Reply::Done {
                    affected: 3,
                    info: words
                }
            );
            let rules = bench
                .rows("SELECT digest FROM mysql_firewall_whitelist_rules ORDER BY digest")
                .await
                .concat()
                .join(" ");
            assert_eq!(rules.replace("0x000000000000000", "#"), "#1 #3 #6");
        });
    }

    #[test]
    fn what_the_statistics_do_not_tell_apart_is_learned_as_the_firewall_has_it_and_that_is_said() {
        let reports = |ask: Ask, _: bool| match ask {
            Ask::Digests => Some(Report::Digests(vec![
                bridge::DigestRow {
                    guarded: 0x11,
                    alike: true,
                    ..digest("u", "", 1, "select ? from t_?")
                },
                bridge::DigestRow {
                    guarded: 0x12,
                    ..digest("u", "", 2, "SELECT a FROM t")
                },
            ])),
            Ask::Alarms => Some(Report::Alarms(vec![alarm(0x13, "detected")])),
            _ => None,
        };
        testing::with_reports(Options::default(), Box::new(reports), |bench| async move {
            let history = |digest: u64, text: &str| {
                format!(
                    "INSERT INTO stats_history.history_mysql_query_digest VALUES (1, 0, 's', 'u', '', '0x{digest:016X}', '{text}', 1, 1, 1, 1, 1, 1, 0, 0);"
                )
            };
            let long = "x".repeat(2048);
            bench
                .script(&format!(
                    "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'u', '', 'DETECTING', '');
                     INSERT INTO mysql_query_rules (rule_id, active, digest, flagOUT) VALUES (1, 1, '0x2', 7);
                     LOAD MYSQL QUERY RULES TO RUNTIME; {} {} {}",
                    history(2, "SELECT a FROM t"),
                    history(3, "SELECT b FROM t"),
                    history(4, &long)
                ))
                .await;
            let info = async |sql: &str| match bench.ask(View::Admin, sql).await {
                Ok(Reply::Done { info, .. }) => info,
                other => panic!("{other:?}"),
            };
            let rules = async || {
                let rows = bench
                    .rows(
                        "SELECT flagIN, digest FROM mysql_firewall_whitelist_rules ORDER BY digest",
                    )
                    .await;
                rows.into_iter()
                    .map(|row| row.join(" ").replace("0x00000000000000", "#"))
                    .collect::<Vec<_>>()
            };
            let alike = "; 1 digests of the statistics may be those of statements that the firewall tells apart: of each, one is allowed, and \
                         others stay refused until FROM DETECTED has learned them";
            let unsure = "; 1 digests are known from the history only, which does not say with which mysql-query_digests options they were \
                          made: under others than the usual ones they allow nothing";
            let left = |n| {
                format!(
                    "; left out: {n} digests of the history, because their texts were cut or mysql-query_digests options are not the usual \
                     ones: the firewall has others for them"
                )
            };
            assert_eq!(
                info("LEARN MYSQL FIREWALL FROM DIGESTS").await,
                format!("2 rules added in memory{alike}")
            );
            // Rules are asked with the digest of the statistics.
            assert_eq!(rules().await, ["0 #11", "7 #12"]);
            assert_eq!(
                info("LEARN MYSQL FIREWALL FROM DETECTED").await,
                "1 rules added in memory"
            );
            assert_eq!(
                info("LEARN MYSQL FIREWALL FROM HISTORY").await,
                format!("1 rules added in memory{unsure}{}", left(1))
            );
            assert_eq!(rules().await, ["0 #03", "0 #11", "7 #12", "9 #13"]);
            bench.script("DELETE FROM mysql_firewall_whitelist_rules; SET mysql-query_digests_lowercase = 'true'; LOAD MYSQL VARIABLES TO RUNTIME").await;
            assert_eq!(
                info("LEARN MYSQL FIREWALL FROM HISTORY").await,
                format!("1 rules added in memory{}", left(2))
            );
            assert_eq!(rules().await, ["7 #12"]);
            // What would be allowed is replayed by the same digests.
            bench.script("SET mysql-firewall_whitelist_enabled = 'true'; LOAD MYSQL VARIABLES TO RUNTIME").await;
            bench
                .script("UPDATE mysql_firewall_whitelist_users SET mode = 'PROTECTING'")
                .await;
            let told = bench.rows("EXPLAIN ROUTE AGAINST DIGESTS ALL").await;
            let told: Vec<_> = told
                .iter()
                .map(|row| (row[9].as_str(), row[11].contains("blocked")))
                .collect();
            assert_eq!(told, [("no", true), ("yes", false)]);
        });
    }

    #[test]
    fn it_is_said_that_a_flag_of_an_earlier_statement_may_lead_elsewhere() {
        let reports = |ask: Ask, _: bool| match ask {
            Ask::Digests => Some(Report::Digests(vec![
                digest("u", "", 1, "SELECT ?"),
                digest("v", "", 2, "SELECT b"),
            ])),
            _ => None,
        };
        testing::with_reports(Options::default(), Box::new(reports), |bench| async move {
            bench
                .script(
                    "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'u', '', 'DETECTING', ''), (1, 'v', '', 'DETECTING', '');
                     INSERT INTO mysql_query_rules (rule_id, active, username, match_digest, next_query_flagIN) VALUES (1, 1, 'u', '^INSERT', 5);
                     LOAD MYSQL QUERY RULES TO RUNTIME;",
                )
                .await;
            let rows = bench.rows("EXPLAIN ROUTE AGAINST DIGESTS ALL").await;
            assert_eq!(
                rows.iter()
                    .map(|row| (&*row[2], &*row[9]))
                    .collect::<Vec<_>>(),
                [("u", "no"), ("v", "yes")]
            );
            let learned = bench
                .ask(View::Admin, "LEARN MYSQL FIREWALL")
                .await
                .unwrap();
            let words = "2 rules added in memory; the flagIN of 1 statements depends on more than their digest and may be another";
            assert_eq!(
                learned,
                Reply::Done {
                    affected: 2,
                    info: words.into()
                }
            );
        });
    }

    #[test]
    fn rules_are_learned_under_the_addresses_and_flags_that_the_firewall_asks_for() {
        let reports = |ask: Ask, _: bool| match ask {
            Ask::Digests => Some(Report::Digests(vec![
                digest("u", "", 1, "SELECT ?"),
                digest("u", "10.0.0.1", 2, "UPDATE t SET a=?"),
                digest("u", "10.9.9.9", 3, "SELECT b"),
                digest("v", "", 4, "SELECT c"),
            ])),
            Ask::Alarms => Some(Report::Alarms(vec![
                alarm(5, "detected"),
                alarm(6, "blocked"),
                alarm(7, "injection"),
            ])),
            _ => None,
        };
        testing::with_reports(Options::default(), Box::new(reports), |bench| async move {
            assert!(
                bench
                    .refused("LEARN MYSQL FIREWALL")
                    .await
                    .contains("has no active row")
            );
            bench
                .script(
                    "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'u', '', 'DETECTING', ''), (1, 'u', '10.0.0.1', 'OFF', ''), \
                     (0, 'v', '', 'OFF', '');
                     INSERT INTO mysql_query_rules (rule_id, active, match_digest, flagOUT) VALUES (1, 1, '^UPDATE', 7);
                     INSERT INTO mysql_query_rules (rule_id, active, match_pattern, flagOUT) VALUES (2, 1, '5', 8);
                     LOAD MYSQL QUERY RULES TO RUNTIME;
                     INSERT INTO stats_history.history_mysql_query_digest VALUES \
                     (1, 0, 's', 'u', '', '0x000000000000000A', 'SELECT h', 1, 1, 1, 1, 1, 1, 0, 0);",
                )
                .await;
            let rules = async |bench: &testing::Bench| {
                let sql = "SELECT username, client_address, schemaname, flagIN, digest FROM mysql_firewall_whitelist_rules ORDER BY digest, 2";
                bench
                    .rows(sql)
                    .await
                    .into_iter()
                    .map(|row| row.join(" ").replace("0x000000000000000", "#"))
                    .collect::<Vec<_>>()
            };
            assert_eq!(bench.run("LEARN MYSQL FIREWALL FROM DETECTED").await, 1);
            assert_eq!(rules(&bench).await, ["u 10.0.0.1 t 9 #5"]);
            // What was refused is learned only if that is said.
            assert_eq!(bench.run("LEARN MYSQL FIREWALL FROM BLOCKED").await, 1);
            assert_eq!(
                rules(&bench).await,
                ["u 10.0.0.1 t 9 #5", "u 10.0.0.1 t 9 #6"]
            );
            bench
                .run("DELETE FROM mysql_firewall_whitelist_rules WHERE digest LIKE '%6'")
                .await;
            assert_eq!(bench.run("LEARN MYSQL FIREWALL FROM HISTORY").await, 2);
            let learned = bench
                .ask(View::Admin, "LEARN MYSQL FIREWALL")
                .await
                .unwrap();
            let words = "4 rules added in memory; the flagIN of 2 statements depends on more than their digest and may be another";
            assert_eq!(
                learned,
                Reply::Done {
                    affected: 4,
                    info: words.into()
                }
            );
            assert_eq!(
                rules(&bench).await,
                [
                    "u  s 0 #1",
                    "u 10.0.0.1 s 0 #1",
                    "u 10.0.0.1 s 7 #2",
                    "u  s 0 #3",
                    "u 10.0.0.1 t 9 #5",
                    "u  s 0 #A",
                    "u 10.0.0.1 s 0 #A"
                ]
            );
            // Again, there is nothing new; what an operator has switched off stays off.
            bench
                .run("UPDATE mysql_firewall_whitelist_rules SET active = 0 WHERE digest LIKE '%5'")
                .await;
            assert_eq!(bench.run("LEARN MYSQL FIREWALL").await, 0);
            assert_eq!(bench.run("LEARN MYSQL FIREWALL FOR v").await, 1);
            assert_eq!(rules(&bench).await[4], "v  s 0 #4");
            bench.run("LOAD MYSQL FIREWALL TO RUNTIME").await;
            assert_eq!(
                bench
                    .rows("SELECT COUNT(*) FROM runtime_mysql_firewall_whitelist_rules")
                    .await,
                [["7"]]
            );
        });
    }
}
