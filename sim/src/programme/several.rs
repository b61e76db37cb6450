//! Several statements in one text, each answered by itself up to the first that fails.

use super::{Goes, Over, Own, Session};
use crate::client::{Due, Reply};
use crate::judge::Fate;
use crate::mind::{Complaint, SCHEMAS};

/// One statement of a text.
enum Part {
    Few(String),
    State(String),
    Insert(String),
    /// Whether the statement ends a transaction, and what it changes.
    Run(bool, fn(&mut Own)),
    /// As the session's own belongings have it.
    Agree,
    /// No server understands it.
    Mistake,
}

impl Session<'_> {
    /// A few statements, said at once.
    pub(super) async fn several(&mut self) -> Goes {
        let mut parts: Vec<(String, Part)> = Vec::new();
        let mut open = self.own.in_transaction || !self.own.autocommit;
        for _ in 0..self.chance.between(2, 5) {
            let tag = self.tag();
            // What the session keeps may be where it was said.
            let having = self.has_belongings && self.own.autocommit;
            parts.push(match self.chance.below(16) {
                0..=2 => (format!("SELECT '{tag}' FROM few"), Part::Few(tag)),
                3 | 4 => (format!("SELECT '{tag}' FROM state"), Part::State(tag)),
                5..=7 => (
                    format!("INSERT INTO log VALUES ('{tag}')"),
                    Part::Insert(tag),
                ),
                8 => (
                    "SET time_zone='+03:00'".to_owned(),
                    Part::Run(false, |own| "'+03:00'".clone_into(&mut own.time_zone)),
                ),
                9 => (
                    "SET sql_mode=DEFAULT".to_owned(),
                    Part::Run(false, |own| own.sql_mode = "'default'"),
                ),
                10 => (
                    format!("USE {}", SCHEMAS[1]),
                    Part::Run(false, |own| SCHEMAS[1].clone_into(&mut own.schema)),
                ),
                11 if !open => {
                    open = true;
                    ("BEGIN".to_owned(), Part::Run(true, Own::begin))
                }
                11 | 12 if open => {
                    open = !self.own.autocommit;
                    ("COMMIT".to_owned(), Part::Run(true, Own::end))
                }
                13 if having => (format!("SELECT '{tag}', @a, @b"), Part::Agree),
                14 if having => (format!("SELECT '{tag}' FROM nowhere"), Part::Agree),
                15 if having => (format!("SELECT '{tag}' FROM warny"), Part::Agree),
                _ if having => ("SELECT ROW_COUNT()".to_owned(), Part::Agree),
                _ => (format!("SELECT '{tag}' FROM few"), Part::Few(tag)),
            });
        }
        if self.chance.percent(10) {
            // What cannot be taken apart is sent as it is: where the first statement belongs.
            self.pinned = true;
            let tag = self.tag();
            parts = vec![
                (
                    format!("INSERT INTO log VALUES ('{tag}')"),
                    Part::Insert(tag),
                ),
                ("SELEKT 1".to_owned(), Part::Mistake),
            ];
        }
        self.pinned |= parts.iter().any(|(_, part)| matches!(part, Part::Agree));
        self.all_at_once(parts).await
    }

    async fn all_at_once(&mut self, parts: Vec<(String, Part)>) -> Goes {
        for (_, part) in &parts {
            match part {
                Part::Insert(tag) => self.judge.fate(tag, Fate::Unknown),
                Part::Run(true, _) => self
                    .pending
                    .iter()
                    .for_each(|tag| self.judge.fate(tag, Fate::Unknown)),
                _ => {}
            }
        }
        self.judge.hit("several statements in one text", 1);
        let whole = parts
            .iter()
            .map(|(sql, _)| sql.as_str())
            .collect::<Vec<_>>()
            .join("; ");
        self.judge.tell(&self.who, &whole);
        self.asked = self.rt.now();
        let last = parts.len() - 1;
        let ends = parts
            .iter()
            .any(|(_, part)| matches!(part, Part::Run(true, _)));
        let mut failed = false;
        for (at, (sql, part)) in parts.into_iter().enumerate() {
            if failed {
                if let Part::Insert(tag) = part {
                    self.judge.fate(&tag, Fate::Never);
                }
                continue;
            }
            self.twin.begin(&sql);
            let wanted = match part {
                Part::Agree => self
                    .twin
                    .say(&mut self.ground, self.client.number, &sql, |_| None),
                _ => None,
            };
            let words = format!("{sql} (statement {at})");
            let answer = if at == 0 {
                let payload = [b"\x03", whole.as_bytes()].concat();
                self.rt
                    .timeout(super::PATIENCE, self.client.ask(&payload, Due::Text))
                    .await
            } else {
                self.rt
                    .timeout(super::PATIENCE, self.client.hear(Due::Text))
                    .await
            };
            let Ok(reply) = self.heard(&words, answer) else {
                if ends {
                    // Nobody knows how far it came.
                    self.pending.clear();
                }
                return Err(Over);
            };
            failed = matches!(reply, Some(Reply::Err { .. }));
            let more = self.client.more();
            self.judge
                .check(failed || more == (at < last), &self.who, || {
                    format!("{words}: more is to come: {more}")
                });
            match part {
                Part::Few(tag) => self.is_plain(&sql, &tag, 1 + tag.len() % 3, reply),
                Part::State(tag) => self.is_state(&sql, &tag, reply),
                Part::Insert(tag) => self.inserted(&sql, tag, reply),
                Part::Run(ends, change) => {
                    let pending = if ends {
                        std::mem::take(&mut self.pending)
                    } else {
                        Vec::new()
                    };
                    self.ran(&sql, (ends, pending), change, reply);
                    self.announced &= sql != "COMMIT" || self.own.in_transaction;
                }
                Part::Agree => {
                    self.agrees(&sql, wanted.expect("a statement of this language"), reply)?
                }
                Part::Mistake => self.is_mistake(&sql, reply),
            }
        }
        Ok(())
    }

    /// Says several statements at once as a client who may not.
    pub(super) async fn several_at_once(&mut self) -> Goes {
        self.pinned = true;
        let tag = self.tag();
        self.judge.fate(&tag, Fate::Never);
        let sql = format!("SET time_zone='+04:00'; INSERT INTO log VALUES ('{tag}')");
        let reply = self.query(&sql).await?;
        self.is_mistake(&sql, reply);
        Ok(())
    }

    pub(super) fn is_mistake(&mut self, sql: &str, reply: Option<Reply>) {
        match reply {
            Some(Reply::Err {
                code: 1064,
                message,
            }) => self.twin.fail(&Complaint(1064, message)),
            Some(Reply::Err { code, message }) => self.complained(sql, code, &message),
            other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
    }
}
