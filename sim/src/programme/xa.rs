//! XA transactions: one that was prepared is there until somebody ends it, whatever becomes of the
//! session.

use super::{Goes, Over, Own, Session};
use crate::client::Reply;
use crate::judge::Fate;
use crate::mind::Complaint;
use std::time::Duration;

/// A transaction that was prepared: its number, and what it has inserted.
pub(super) type Orphan = (String, Vec<String>);

impl Session<'_> {
    /// One from its begin to its end, in one phase or in two.
    pub(super) async fn xa(&mut self) -> Goes {
        let id = self.tag();
        self.run(&format!("XA START '{id}'"), false, Own::begin)
            .await?;
        if !self.own.in_transaction {
            return Ok(());
        }
        self.keeps += 1;
        for _ in 0..self.chance.below(4) {
            match self.chance.below(4) {
                0 | 1 => self.insert().await?,
                2 => self.few().await?,
                _ => self.state(false).await?,
            }
        }
        self.run(&format!("XA END '{id}'"), false, |_| ()).await?;
        match self.chance.below(10) {
            0..=2 => {
                self.run(&format!("XA COMMIT '{id}' ONE PHASE"), true, Own::end)
                    .await?
            }
            3 | 4 => {
                self.forget_pending();
                self.run(&format!("XA ROLLBACK '{id}'"), true, Own::end)
                    .await?;
            }
            _ => {
                let tags = std::mem::take(&mut self.pending);
                self.orphans.push((id.clone(), tags));
                self.run(&format!("XA PREPARE '{id}'"), false, |_| ())
                    .await?;
                match self.chance.below(8) {
                    0 => return Err(Over),
                    1 | 2 if !self.through => {
                        self.reset().await?;
                        return self.end_orphans().await;
                    }
                    _ => {}
                }
                if self.chance.percent(50) {
                    self.rt
                        .sleep(Duration::from_micros(self.chance.below(20_000)))
                        .await;
                }
                self.end_xa(&id).await?;
                if self.own.in_transaction {
                    // Nobody knows.
                    return Err(Over);
                }
            }
        }
        self.keeps = self.keeps.saturating_sub(1);
        Ok(())
    }

    /// Ends what sessions of this client have left.
    pub(super) async fn end_orphans(&mut self) -> Goes {
        while let Some((id, _)) = self.orphans.last().cloned() {
            let left = self.orphans.len();
            self.judge
                .hit("an XA transaction ended by another session", 1);
            self.end_xa(&id).await?;
            // What cannot be ended may be, or may still be bound to a connection of which its
            // server does not know that it is over.
            self.orphans.truncate(left - 1);
        }
        Ok(())
    }

    /// The second phase.
    async fn end_xa(&mut self, id: &str) -> Goes {
        let commits = self.chance.percent(75);
        let Some(at) = self.orphans.iter().position(|(known, _)| known == id) else {
            return Ok(());
        };
        let sql = format!("XA {} '{id}'", if commits { "COMMIT" } else { "ROLLBACK" });
        let tags = self.orphans[at].1.clone();
        if commits {
            tags.iter()
                .for_each(|tag| self.judge.fate(tag, Fate::Unknown));
        }
        match self.query(&sql).await? {
            Some(Reply::Ok) => {
                let fate = if commits {
                    Fate::Acknowledged
                } else {
                    Fate::Never
                };
                tags.iter().for_each(|tag| self.judge.fate(tag, fate));
                self.orphans.remove(at);
                self.own.end();
                self.leave_spot();
            }
            // Of a session before.
            Some(Reply::Err {
                code: 1397,
                message,
            }) if !self.own.in_transaction => self.twin.fail(&Complaint(1397, message)),
            Some(Reply::Err { code, message }) => self.complained(&sql, code, &message),
            other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
        Ok(())
    }
}
