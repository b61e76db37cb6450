//! Savepoints: as long as nothing ends the transaction, or, with autocommit off, the wait for one,
//! they are where they were made.

use super::{Goes, Session};
use crate::client::Reply;
use crate::mind::Complaint;

const NAMES: [&str; 2] = ["s1", "s2"];

impl Session<'_> {
    /// Makes one, goes back to one, or lets one go, whether there is one of that name or not; then
    /// again, with something between.
    pub(super) async fn savepoint(&mut self) -> Goes {
        for _ in 0..self.chance.between(1, 5) {
            self.with_savepoint().await?;
            match self.chance.below(4) {
                0 | 1 => self.insert().await?,
                2 => self.few().await?,
                _ => {}
            }
        }
        Ok(())
    }

    async fn with_savepoint(&mut self) -> Goes {
        if self.own.next.is_some() {
            // Whether it is the next transaction nobody asks here.
            return Ok(());
        }
        let name = *self.chance.one_of(&NAMES);
        let known = self.savepoints.iter().position(|(known, _)| *known == name);
        let (sql, at) = match (self.chance.below(10), known) {
            (0..=3, _) => {
                let mut done = false;
                self.run(&format!("SAVEPOINT {name}"), false, |_| done = true)
                    .await?;
                if done && (self.own.in_transaction || !self.own.autocommit) {
                    self.savepoints.retain(|(known, _)| *known != name);
                    self.savepoints.push((name, self.pending.len()));
                }
                return Ok(());
            }
            (4..=7, at) => (format!("ROLLBACK TO {name}"), at),
            (_, at) => (format!("RELEASE SAVEPOINT {name}"), at),
        };
        let back = sql.starts_with("ROLLBACK");
        match (self.query(&sql).await?, at) {
            (Some(Reply::Ok), Some(at)) => {
                if back {
                    let (_, pending) = self.savepoints[at];
                    self.judge.hit(
                        "rows taken back to a savepoint",
                        self.pending.len().saturating_sub(pending) as u64,
                    );
                    // What becomes of these is as it was said when they were inserted: never
                    // committed.
                    self.pending.truncate(pending);
                }
                self.savepoints.truncate(if back { at + 1 } else { at });
            }
            (
                Some(Reply::Err {
                    code: 1305,
                    message,
                }),
                None,
            ) => self.twin.fail(&Complaint(1305, message)),
            (Some(Reply::Err { code, message }), _) => self.complained(&sql, code, &message),
            (other, _) => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
        Ok(())
    }
}
