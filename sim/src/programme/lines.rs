//! What is in the log: whatever a client reads there, from wherever, is neither too old nor of
//! nobody.

use super::{Goes, Session};
use crate::judge::Fate;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

/// Client, and those of its lines that a transaction has seen.
pub(super) type Moment = (String, BTreeSet<String>);

/// Of whatever schema: each names the tables that it writes by its own.
pub(super) const CACHED: &str = "SELECT 'cached' FROM red.log, green.log, blue.log";

impl Session<'_> {
    /// The lines of this client, or of another one.
    pub(super) async fn lines(&mut self) -> Goes {
        let other = self.chance.percent(30);
        let owner = if other {
            format!("c{}", self.chance.below(4))
        } else {
            self.own_name()
        };
        let to_write = if self.chance.percent(15) {
            " FOR UPDATE"
        } else {
            ""
        };
        let tag = self.tag();
        if self.manners.cached && !self.reading && self.chance.percent(60) {
            let sql = format!("{CACHED} WHERE owner='{owner}'");
            self.lines_of(&owner, "cached", &sql).await?;
            if self.chance.percent(50) {
                Box::pin(self.insert()).await?;
                self.lines_of(&owner, "cached", &sql).await?;
            }
            return Ok(());
        }
        self.lines_of(
            &owner,
            &tag,
            &format!("SELECT '{tag}' FROM log WHERE owner='{owner}'{to_write}"),
        )
        .await
    }

    pub(super) fn own_name(&self) -> String {
        self.who.replace("client ", "c")
    }

    async fn lines_of(&mut self, owner: &str, tag: &str, sql: &str) -> Goes {
        let asked = self.rt.now();
        let reply = self.query(sql).await?;
        self.own.use_tables_if(&reply);
        let ControlFlow::Continue(rows) = self.rows(sql, tag, (1, 2), reply) else {
            return Ok(());
        };
        let Some([_, _, Some(server), Some(told)]) = rows.first().map(Vec::as_slice) else {
            self.judge.accuse(&self.who, &format!("{sql}: {rows:?}"));
            return Ok(());
        };
        let lines: BTreeSet<String> = told
            .split('|')
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        if tag == "cached" {
            self.judge.hit("lines that may be of the cache", 1);
        }
        self.judge.hit(
            if server == "a" {
                "lines of the writer"
            } else {
                "lines of the replica"
            },
            1,
        );
        let mine = owner == self.own_name();
        let pending = |line: &String| mine && self.pending.contains(line);
        for line in &lines {
            let fate = self.judge.fate_of(line);
            let is = !matches!(fate, None | Some(Fate::Never)) || pending(line);
            self.judge.check(is, &self.who, || {
                format!("{sql}: {line} was never committed")
            });
        }
        let repeats = self.own.in_transaction
            && !sql.ends_with("FOR UPDATE")
            && ["REPEATABLE-READ", "SERIALIZABLE"].contains(&self.own.now.0);
        if let Some((_, before)) = self
            .moment
            .iter()
            .find(|(whose, _)| repeats && whose == owner)
        {
            let now: BTreeSet<String> = lines
                .iter()
                .filter(|line| !pending(line))
                .cloned()
                .collect();
            self.judge.check(*before == now, &self.who, || {
                format!("{sql}: the transaction sees {now:?}, and saw {before:?} before")
            });
        } else if !repeats || self.moment.is_empty() {
            // What a transaction sees is from when it began to look.
            self.are_all(sql, owner, server, asked, &lines);
        }
        for line in self.pending.iter().filter(|_| mine) {
            self.judge.check(lines.contains(line), &self.who, || {
                format!("{sql}: {line} of this transaction is missing")
            });
        }
        if repeats {
            let before = lines
                .iter()
                .filter(|line| !(mine && self.pending.contains(line)))
                .cloned()
                .collect();
            self.moment.push((owner.to_owned(), before));
        }
        Ok(())
    }

    /// Nothing is missing that was acknowledged: on the writer by now, on the replica before it can
    /// be behind, and there, too, what this session has written where its reads stay with the
    /// writer for so long.
    fn are_all(
        &self,
        sql: &str,
        owner: &str,
        server: &str,
        asked: rt::Instant,
        lines: &BTreeSet<String>,
    ) {
        let lag = if server == "a" {
            Duration::ZERO
        } else {
            self.manners.lag
        };
        let after_write = self
            .manners
            .split
            .is_some_and(|ms| Duration::from_millis(ms.into()) >= self.manners.lag);
        let mine = owner == self.own_name();
        for (line, at) in self.judge.acknowledged(owner) {
            let due = at + lag <= asked || mine && after_write && at >= self.began && at <= asked;
            self.judge.check(!due || lines.contains(&line), &self.who, || {
                format!("{sql}: {line} is missing on server {server}, {:?} after it was acknowledged", asked - at)
            });
        }
    }
}
