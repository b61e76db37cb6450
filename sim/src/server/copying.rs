//! A mirror: nobody waits for it, its answers reach no client, and nothing that a copy has set
//! there is found by the next.

use super::Guest;
use crate::mind::Mind;
use std::collections::BTreeSet;

/// Beginnings of statements that mean something on their own connection only.
const OWN: [&str; 13] = [
    "BEGIN",
    "START ",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT ",
    "RELEASE ",
    "XA ",
    "LOCK ",
    "UNLOCK ",
    "CREATE TEMPORARY",
    "DROP TEMPORARY",
    "PREPARE ",
    "LOAD ",
];
/// Texts that mean something on their own connection only, wherever they stand in what reads.
const READS: [&str; 5] = [
    " GET_LOCK(",
    "RELEASE_LOCK(",
    "LAST_INSERT_ID()",
    "ROW_COUNT()",
    " @a",
];

impl Guest {
    /// A text has come to a mirror: it is a copy of something that can be copied, in the state of
    /// the session that said it.
    pub(super) fn is_copy(&self, text: &str, mind: &Mind) {
        if !self.server.mirrors {
            return;
        }
        let who = || format!("server {}", self.server.name);
        let own = OWN.iter().any(|begin| text.starts_with(begin))
            || text.starts_with("SELECT '") && READS.iter().any(|reads| text.contains(reads));
        self.server
            .judge
            .check(!own, &who(), || format!("a copy of {text}"));
        self.server.judge.hit("a copy", 1);
        let tag = text.split('\'').nth(1).unwrap_or_default();
        if text.contains(" FROM state")
            && !mind.sandbox
            && let Some(has) = self.server.judge.state_of_copy(tag)
        {
            let told = mind.report();
            self.server.judge.check(told == has, &who(), || {
                format!("{text}: the copy finds {told:?}, the client has {has:?}")
            });
            self.server
                .judge
                .hit("a copy in the state of its session", 1);
        }
    }
}

/// Checks that copies have written what somebody else has said, and no more often.
pub(crate) fn judge_copies(judge: &crate::judge::Judge, log: &[String]) {
    let mut seen = BTreeSet::new();
    for line in log {
        judge.check(judge.fate_of(line).is_some(), "copies", || {
            format!("{line} was inserted by nobody")
        });
        judge.check(seen.insert(line), "copies", || {
            format!("{line} is there twice")
        });
    }
}
