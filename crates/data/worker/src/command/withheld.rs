//! Answers of servers that a client is not to read: what they ask for is done, and the statement said
//! again.

use crate::command::asked::Executed;
use crate::command::job::{Job, What};
use crate::command::trouble::Failed;
use crate::known::demoted;
use backend::BackendFailed;
use net::NetError;
use sql::{CommandCounter, Leaves};
use wire::errors::{DEADLOCK, ERROR_DURING_COMMIT, TOO_MANY_STATEMENTS};
use wire::response::{Outcome, Response};

/// "Prepared statement needs to be re-prepared".
const NEEDS_REPREPARE: u16 = 1615;
/// "Unknown prepared statement handler (17) given to mysqld_stmt_execute".
const UNKNOWN_STATEMENT: u16 = 1243;

/// Errors that are not relayed, but become failures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Withhold {
    /// That this must be prepared anew: [`Failed::Stale`].
    pub(crate) stale: Option<Executed>,
    /// That the server has no room for another statement.
    pub(crate) crowd: bool,
    /// That the server is no writer any more.
    pub(crate) demoted: bool,
    /// That the transaction was the victim of a deadlock.
    pub(crate) deadlock: bool,
    /// That a COMMIT has failed in the middle: its mark tells what has become of it.
    pub(crate) halfway: bool,
}

impl Withhold {
    pub(crate) const NOTHING: Self = Self {
        stale: None,
        crowd: false,
        demoted: false,
        deadlock: false,
        halfway: false,
    };

    /// The failure, if this is to be withheld.
    pub(crate) fn from(self, response: &Response) -> Option<Failed> {
        #[cfg(debug_assertions)]
        if backend::planted::TELL_STALE.get() {
            return None;
        }
        let Outcome::Err {
            code,
            state,
            message,
        } = response.outcome()
        else {
            return None;
        };
        if self.stale.is_some_and(|of| is_stale(response, of)) {
            return Some(Failed::Stale);
        }
        if self.demoted && response.results() == 0 && demoted::is_meant(code, message) {
            return Some(Failed::Backend(BackendFailed::ReadOnly {
                code,
                message: String::from_utf8_lossy(message).into_owned(),
            }));
        }
        if self.deadlock && response.results() == 0 && code == DEADLOCK.number {
            return Some(Failed::Backend(BackendFailed::Deadlock {
                message: String::from_utf8_lossy(message).into_owned(),
            }));
        }
        if self.halfway && response.results() == 0 && code == ERROR_DURING_COMMIT.number {
            // As if the answer were lost.
            return Some(Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed)));
        }
        let full = self.crowd && code == TOO_MANY_STATEMENTS.number && response.results() == 0;
        full.then(|| {
            Failed::Backend(BackendFailed::Sync {
                code,
                state,
                message: String::from_utf8_lossy(message).into_owned(),
            })
        })
    }
}

/// Whether it is over with nothing done where it cannot be prepared.
pub(crate) fn only_prepares(job: &Job<'_>) -> bool {
    match job.what {
        What::Prepare(_) => true,
        What::Dynamic(_) => !runs_others(job.class),
        What::Query(_) => job.class.command == CommandCounter::Prepare && !runs_others(job.class),
        _ => false,
    }
}

/// Whether it runs statements of its own: when it fails, some of them may be done.
pub(crate) fn runs_others(class: &sql::Class<'_>) -> bool {
    class.multi
        || class.command == CommandCounter::Call
        || class
            .leaves
            .intersects(Leaves::UNKNOWN_STATE | Leaves::SQL_EXECUTE)
}

/// Whether the answer says no more than that the statement must be prepared anew. What an EXECUTE
/// inside of it says names another statement.
pub(crate) fn is_stale(response: &Response, executed: Executed) -> bool {
    let Outcome::Err { code, message, .. } = response.outcome() else {
        return false;
    };
    let named = executed.in_words();
    let stale = match code {
        // Of many rows, some may be done.
        NEEDS_REPREPARE => !matches!(executed, Executed::Bulk(_)),
        UNKNOWN_STATEMENT => message
            .windows(named.len())
            .any(|part| part == named.as_bytes()),
        _ => false,
    };
    stale && response.results() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::caps;
    use wire::response::Expect;

    #[test]
    fn what_runs_other_statements_is_not_sent_again() {
        let runs = |text: &str| runs_others(&sql::class(text.as_bytes()));
        for text in [
            "CALL p()",
            "BEGIN NOT ATOMIC INSERT INTO t VALUES (1); EXECUTE s; END",
            "EXECUTE IMMEDIATE 'CALL p()'",
        ] {
            assert!(runs(text), "{text}");
        }
        for text in [
            "SELECT * FROM t WHERE a = ?",
            "INSERT INTO t VALUES (?)",
            "UPDATE t SET a = ?",
        ] {
            assert!(!runs(text), "{text}");
        }
    }

    #[test]
    fn only_what_is_said_of_the_statement_itself_makes_it_stale() {
        let stale_as = |executed, code: u16, words: &str| {
            let mut bytes = Vec::new();
            let error = wire::ok::Err {
                code,
                state: *b"HY000",
                message: words.as_bytes(),
            };
            wire::packet::append_with(&mut bytes, &mut 1, |out| error.write(out));
            let mut response = Response::expect(Expect::Execute, caps::PROTOCOL_41).to_packet(0);
            response.follow(&bytes).unwrap();
            is_stale(&response, executed)
        };
        let stale = |code, words| stale_as(Executed::Id(17), code, words);
        assert!(stale_as(
            Executed::Bulk(17),
            1243,
            "Unknown prepared statement handler (17) given to mysqld_stmt_bulk_execute"
        ));
        assert!(!stale_as(
            Executed::Bulk(17),
            1615,
            "Prepared statement needs to be re-prepared"
        ));
        assert!(stale(1615, "Prepared statement needs to be re-prepared"));
        assert!(stale(
            1243,
            "Unknown prepared statement handler (17) given to mysqld_stmt_execute"
        ));
        assert!(!stale(
            1243,
            "Unknown prepared statement handler (nosuch) given to EXECUTE"
        ));
        assert!(!stale(
            1243,
            "Unknown prepared statement handler (117) given to mysqld_stmt_execute"
        ));
        assert!(!stale(1064, "(17)"));
    }
}
