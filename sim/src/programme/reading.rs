//! START TRANSACTION READ ONLY, where reads have servers of their own: what is in it, what ends it,
//! and what must not be done there.

use super::{Goes, Over, Own, Session};
use crate::client::Reply;
use crate::judge::Fate;
use crate::mind::Complaint;
use std::time::Duration;

const BEGIN: &str = "START TRANSACTION READ ONLY";

impl Session<'_> {
    /// One from its begin to its end.
    pub(super) async fn read_only(&mut self) -> Goes {
        self.run(BEGIN, true, Own::begin_to_read).await?;
        if !self.own.in_transaction {
            return Ok(());
        }
        self.judge.hit("a READ ONLY transaction", 1);
        self.reading = true;
        let done = self.read().await;
        self.reading = false;
        done
    }

    async fn read(&mut self) -> Goes {
        for _ in 0..self.chance.below(6) {
            let tag = self.tag();
            match self.chance.below(16) {
                0..=2 => self.few().await?,
                3..=6 => self.lines().await?,
                7 => self.state(false).await?,
                8 => self.state(true).await?,
                9 => self.execute().await?,
                10 => self.use_schema().await?,
                11 => {
                    self.refused(&format!("INSERT INTO log VALUES ('{tag}')"), 1792)
                        .await?
                }
                // On a reader it would be left behind. Without readers, or right behind a write,
                // the transaction is at the writer.
                12 if !self.pinned
                    && !self.drawn
                    && self.spot.as_ref().is_some_and(|(server, _)| server == "b") =>
                {
                    self.refused(&format!("CREATE TEMPORARY TABLE t1 /* '{tag}' */"), 1235)
                        .await?
                }
                13 if self.has_belongings => {
                    self.agree(&format!("SELECT '{tag}', LAST_INSERT_ID()"))
                        .await?
                }
                14 if self.has_belongings => {
                    self.few().await?;
                    if self.twin.found.is_some() {
                        self.agree("SELECT FOUND_ROWS()").await?;
                    }
                }
                15 if self.manners.room => {
                    self.agree(&format!("SELECT GET_LOCK('{tag}', 0)")).await?;
                    self.keeps += 1;
                    self.few().await?;
                    self.agree(&format!("SELECT RELEASE_LOCK('{tag}')")).await?;
                    self.keeps -= 1;
                }
                _ => {
                    self.rt
                        .sleep(Duration::from_micros(self.chance.below(20_000)))
                        .await
                }
            }
        }
        match self.chance.below(10) {
            0..=2 => self.commit().await?,
            3 | 4 => self.roll_back().await?,
            5 | 6 => {
                // What is behind it is one that writes.
                let done = self.ends_by("BEGIN", Own::begin).await?;
                self.reading = !done;
                if done && self.own.in_transaction {
                    self.insert().await?;
                    self.lines().await?;
                    return Ok(());
                }
            }
            7 => {
                self.ends_by(BEGIN, Own::begin_to_read).await?;
            }
            8 => {
                let tag = self.tag();
                self.ends_by(&format!("LOCK TABLES log WRITE /* '{tag}' */"), Own::end)
                    .await?;
                if !self.own.in_transaction {
                    self.reading = false;
                    self.keeps += 1;
                    self.insert().await?;
                    self.run("UNLOCK TABLES", false, |_| ()).await?;
                    self.keeps -= 1;
                }
            }
            _ => return self.reset().await,
        }
        if self.own.in_transaction {
            self.lines().await?;
            self.roll_back().await?;
        }
        Ok(())
    }

    /// Says what ends the transaction by itself, and returns whether it was done. What else the
    /// session's connection has may be a reason against that.
    async fn ends_by(&mut self, sql: &str, change: impl FnOnce(&mut Own)) -> Goes<bool> {
        let reply = self.query(sql).await?;
        match reply {
            Some(Reply::Err {
                code: 1235,
                message,
            }) if self.pinned || !self.prepared.is_empty() => {
                self.twin.fail(&Complaint(1235, message));
                return Ok(false);
            }
            Some(Reply::Err { code, message }) => {
                // Whether it has ended what was open is not known.
                self.complained(sql, code, &message);
                return Err(Over);
            }
            reply => self.ran(sql, (true, Vec::new()), change, reply),
        }
        Ok(true)
    }

    /// Says a statement that must not be done, and be answered with this error.
    async fn refused(&mut self, sql: &str, error: u16) -> Goes {
        if let Some(line) = sql.split('\'').nth(1).filter(|_| sql.starts_with("INSERT")) {
            self.judge.fate(line, Fate::Never);
        }
        match self.query(sql).await? {
            Some(Reply::Err { code, message }) if code == error => {
                self.twin.fail(&Complaint(code, message))
            }
            Some(Reply::Err { code, message }) => self.complained(sql, code, &message),
            other => self.judge.accuse(
                &self.who,
                &format!("{sql}: {other:?} instead of error {error}"),
            ),
        }
        Ok(())
    }
}
