//! LEARN MYSQL FIREWALL: rules of the firewall, in memory, for statements that are known to have run.

use crate::answer::Said;
use crate::commands::{Lesson, Source};
use crate::engine::{Reply, SqlError};
use crate::route;
use crate::shared::Shared;
use bridge::{Ask, Report};
use config::Snapshot;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// What may be allowed, in the columns of `mysql_firewall_whitelist_rules`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    user: String,
    /// Empty if it is not known.
    client: String,
    schema: String,
    digest: String,
    text: String,
    /// `None`: it follows from the rules.
    flag: Option<u32>,
}

/// What is known of whether digests show all that a server reads, by user, schema and digest; as [`bridge::DigestRow::shown`].
#[derive(Default)]
struct Sights(BTreeMap<(String, String, String), Option<bool>>);

impl Sights {
    fn add(&mut self, known: &Known, shown: Option<bool>) {
        let all = self.0.entry(known.key()).or_insert(shown);
        *all = all.filter(|all| shown == Some(*all));
    }
}

impl Known {
    fn of([user, client, schema]: [&str; 3], digest: u64, text: &str, flag: Option<u32>) -> Self {
        let [user, client, schema, text] = [user, client, schema, text].map(str::to_owned);
        Self { user, client, schema, digest: format!("0x{digest:016X}"), text, flag }
    }

    fn key(&self) -> (String, String, String) {
        (self.user.clone(), self.schema.clone(), self.digest.clone())
    }
}

impl Shared {
    /// What was learned is in memory, to be looked at before it is loaded. Rows that are there, active or not, stay as they are.
    pub(crate) async fn learn_firewall(&self, lesson: &Lesson) -> Result<Reply, Said> {
        let guarded = guarded(self.engine.borrow().conn(), lesson.user.as_deref())?;
        if guarded.is_empty() {
            let words = "mysql_firewall_whitelist_users has no active row: nobody's statements are to be learned. Name a user: \
                         LEARN MYSQL FIREWALL FOR user";
            return Err(Said::Sql(words.into()));
        }
        let (known, sights) = self.known(lesson.from).await?;
        let snapshot = self.snapshot.borrow();
        let mut doubtful = 0;
        let (mut hidden, mut partly) = (BTreeSet::new(), BTreeSet::new());
        let added = self.engine.borrow().transaction(|conn| {
            let mut insert = conn.prepare(
                "INSERT OR IGNORE INTO main.mysql_firewall_whitelist_rules \
                 (active, username, client_address, schemaname, flagIN, digest, comment) VALUES (1, ?1, ?2, ?3, ?4, ?5, 'learned')",
            )?;
            let mut added = 0;
            for known in &known {
                let Some(addresses) = guarded.get(&known.user) else { continue };
                match sights.0.get(&known.key()) {
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
                    of_this += insert.execute((&known.user, address, &known.schema, flag, &known.digest))?;
                }
                added += of_this as u64;
                doubtful += u64::from(!certain && of_this > 0);
            }
            Ok(added)
        })?;
        let mut info = format!("{added} rules added in memory");
        if doubtful > 0 {
            info += &format!("; the flagIN of {doubtful} statements depends on more than their digest and may be another");
        }
        if !hidden.is_empty() {
            info += &format!(
                "; left out: {} statements of whose texts a server may read what their digests do not show, so that no rule allows them",
                hidden.len()
            );
        }
        if !partly.is_empty() {
            info += &format!("; of {} statements that is so with some of their texts, which stay refused", partly.len());
        }
        Ok(Reply::Done { affected: added, info })
    }

    /// What was seen, by whatever source; and what is known of what digests do not show.
    async fn known(&self, from: Option<Source>) -> Result<(BTreeSet<Known>, Sights), Said> {
        let from = |source| from.is_none_or(|from| from == source);
        let (mut known, mut sights) = (BTreeSet::new(), Sights::default());
        if let Report::Digests(rows) = self.cores.ask(Ask::Digests).await? {
            for row in rows {
                let one = Known::of([&*row.user, &*row.client_address, &*row.schema], row.digest, &row.text, None);
                sights.add(&one, row.shown);
                if from(Source::Digests) {
                    known.insert(one);
                }
            }
        }
        if let Report::Alarms(rows) = self.cores.ask(Ask::Alarms).await? {
            let is_unshown =
                |action| [plan::Action::DetectedUnshown, plan::Action::BlockedUnshown].iter().any(|one| one.name() == action);
            for row in rows {
                let detected = row.action == plan::Action::Detected.name();
                if !detected && !is_unshown(row.action) {
                    continue;
                }
                let one = Known::of([&*row.user, &*row.client_address, &*row.schema], row.digest, &row.text, Some(row.flag));
                sights.add(&one, Some(detected));
                if from(Source::Detected) && row.action != plan::Action::BlockedUnshown.name() {
                    known.insert(one);
                }
            }
        }
        if from(Source::History) {
            history(self.engine.borrow().conn(), &mut known)?;
        }
        Ok((known, sights))
    }
}

fn history(conn: &Connection, known: &mut BTreeSet<Known>) -> Result<(), SqlError> {
    let mut select = conn.prepare(
        "SELECT DISTINCT username, client_address, schemaname, digest, digest_text FROM stats_history.history_mysql_query_digest",
    )?;
    let rows = select.query_map([], |row| {
        Ok(Known {
            user: row.get(0)?,
            client: row.get(1)?,
            schema: row.get(2)?,
            digest: row.get(3)?,
            text: row.get(4)?,
            flag: None,
        })
    })?;
    for row in rows {
        known.insert(row?);
    }
    Ok(())
}

/// The users whose statements are to be learned, and the addresses of their rows. A user who is named need have no row: the firewall
/// then looks for his rules under the empty address.
fn guarded(conn: &Connection, named: Option<&str>) -> Result<BTreeMap<String, BTreeSet<String>>, SqlError> {
    let mut select = conn.prepare("SELECT username, client_address FROM main.mysql_firewall_whitelist_users WHERE active = 1")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut guarded: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let (user, address) = row?;
        if named.is_none_or(|named| named == user) {
            guarded.entry(user).or_default().insert(address);
        }
    }
    if let Some(named) = named {
        guarded.entry(named.to_owned()).or_insert_with(|| BTreeSet::from([String::new()]));
    }
    Ok(guarded)
}

/// Under which addresses the firewall looks for the rules of this client.
fn rows_for<'a>(addresses: &'a BTreeSet<String>, client: &'a str) -> impl Iterator<Item = &'a str> {
    // Where it came from is not known: from any of them.
    let all = client.is_empty().then_some(addresses);
    let one = if addresses.contains(client) { client } else { "" };
    let one = (!client.is_empty()).then_some(one);
    all.into_iter().flatten().map(String::as_str).chain(one)
}

/// The flag with which the rules in force end for it, and whether its digest alone tells.
fn flag(snapshot: &Snapshot, known: &Known) -> (u32, bool) {
    let Ok(hash) = u64::from_str_radix(known.digest.trim_start_matches("0x"), 16) else { return (0, false) };
    route::flag_at_end(snapshot, &known.user, &known.schema, &known.client, plan::Digest { hash, text: known.text.as_bytes() })
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
                bridge::DigestRow { shown: Some(false), ..digest("u", "", 2, "SELECT a FROM t") },
                bridge::DigestRow { shown: None, ..digest("u", "", 3, "SELECT b FROM t") },
                bridge::DigestRow { shown: Some(false), ..digest("v", "", 4, "SELECT c FROM t") },
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
            let learned = bench.ask(View::Admin, "LEARN MYSQL FIREWALL FROM HISTORY").await.unwrap();
            assert_eq!(learned, Reply::Done { affected: 0, info: format!("0 rules added in memory; {}", left_out(1)) });
            let learned = bench.ask(View::Admin, "LEARN MYSQL FIREWALL").await.unwrap();
            let words = format!(
                "3 rules added in memory; {}; of 2 statements that is so with some of their texts, which stay refused",
                left_out(2)
            );
            assert_eq!(learned, Reply::Done { affected: 3, info: words });
            let rules = bench.rows("SELECT digest FROM mysql_firewall_whitelist_rules ORDER BY digest").await.concat().join(" ");
            assert_eq!(rules.replace("0x000000000000000", "#"), "#1 #3 #6");
        });
    }

    #[test]
    fn it_is_said_that_a_flag_of_an_earlier_statement_may_lead_elsewhere() {
        let reports = |ask: Ask, _: bool| match ask {
            Ask::Digests => Some(Report::Digests(vec![digest("u", "", 1, "SELECT ?"), digest("v", "", 2, "SELECT b")])),
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
            assert_eq!(rows.iter().map(|row| (&*row[2], &*row[9])).collect::<Vec<_>>(), [("u", "no"), ("v", "yes")]);
            let learned = bench.ask(View::Admin, "LEARN MYSQL FIREWALL").await.unwrap();
            let words =
                "2 rules added in memory; the flagIN of 1 statements depends on more than their digest and may be another";
            assert_eq!(learned, Reply::Done { affected: 2, info: words.into() });
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
            Ask::Alarms => Some(Report::Alarms(vec![alarm(5, "detected"), alarm(6, "blocked"), alarm(7, "injection")])),
            _ => None,
        };
        testing::with_reports(Options::default(), Box::new(reports), |bench| async move {
            assert!(bench.refused("LEARN MYSQL FIREWALL").await.contains("has no active row"));
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
                bench.rows(sql).await.into_iter().map(|row| row.join(" ").replace("0x000000000000000", "#")).collect::<Vec<_>>()
            };
            assert_eq!(bench.run("LEARN MYSQL FIREWALL FROM DETECTED").await, 1);
            assert_eq!(rules(&bench).await, ["u 10.0.0.1 t 9 #5"]);
            assert_eq!(bench.run("LEARN MYSQL FIREWALL FROM HISTORY").await, 2);
            let learned = bench.ask(View::Admin, "LEARN MYSQL FIREWALL").await.unwrap();
            let words =
                "4 rules added in memory; the flagIN of 2 statements depends on more than their digest and may be another";
            assert_eq!(learned, Reply::Done { affected: 4, info: words.into() });
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
            bench.run("UPDATE mysql_firewall_whitelist_rules SET active = 0 WHERE digest LIKE '%5'").await;
            assert_eq!(bench.run("LEARN MYSQL FIREWALL").await, 0);
            assert_eq!(bench.run("LEARN MYSQL FIREWALL FOR v").await, 1);
            assert_eq!(rules(&bench).await[4], "v  s 0 #4");
            bench.run("LOAD MYSQL FIREWALL TO RUNTIME").await;
            assert_eq!(bench.rows("SELECT COUNT(*) FROM runtime_mysql_firewall_whitelist_rules").await, [["7"]]);
        });
    }
}
