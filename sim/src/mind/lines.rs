//! What is in the log, as one client's lines: what the connection's transaction sees of it.

use super::{Mind, Said, quoted};
use crate::belongings::Ground;
use crate::mind::Complaint;
use sql::set::Isolation;

impl Mind {
    /// START TRANSACTION READ ONLY.
    pub(super) fn begin_to_read(&mut self) {
        self.begin();
        self.now.1 = true;
        self.only_reads = true;
    }

    /// Whether this connection is in a transaction that said of itself that it only reads.
    pub(crate) const fn only_reads(&self) -> bool {
        self.in_transaction && self.only_reads
    }

    /// Whether it is one in which this cannot be done.
    pub(super) fn may_write(&self, sql: &str) -> Result<(), Complaint> {
        if self.only_reads() && sql.starts_with("INSERT INTO ") && !sql.starts_with("INSERT INTO t")
        {
            return Err(Complaint(
                1792,
                "Cannot execute statement in a READ ONLY transaction.".to_owned(),
            ));
        }
        Ok(())
    }

    /// The lines of an owner: of what was committed when the transaction began to look, unless it
    /// is to be locked, and its own.
    pub(super) fn lines(&mut self, sql: &str, ground: &Ground) -> Result<Said, Complaint> {
        self.use_tables();
        let all = ground.committed();
        let repeats = matches!(
            self.now.0,
            Isolation::RepeatableRead | Isolation::Serializable
        );
        let seen = match self.moment {
            _ if !self.in_transaction || !repeats || sql.ends_with("FOR UPDATE") => all.len(),
            Some(seen) => seen,
            None => *self.moment.insert(all.len()),
        };
        let owner = sql.split('\'').nth(3).unwrap_or_default();
        let mine = |line: &&String| {
            line.split_once('-')
                .is_some_and(|(client, _)| client == owner)
        };
        let lines: Vec<_> = all
            .iter()
            .take(seen)
            .chain(&self.pending)
            .filter(mine)
            .map(String::as_str)
            .collect();
        Ok(Said::Lines {
            tag: quoted(sql)?,
            lines: lines.join("|"),
        })
    }
}
