//! The course of a transaction: its statements and a sum of each answer, as long as it can be run
//! again.

use crate::command::job::{Job, What};
use crate::core::marks::Mark;
use crate::known::bound::Kept;
use backend::{Hold, Holds, State};
use bridge::Counter;
use config::{Checksum, Replay};
use sql::words::Words;
use sql::{Against, Class, CommandCounter, Leaves, Lexing, Reads};
use wire::attributes::Attributes;
use wire::errors;
use wire::response::{Outcome, RowSum, Summed};

/// Holds that go with a connection and that nobody misses when its transaction is replayed.
const MISSED_BY_NOBODY: [Hold; 6] = [
    Hold::Transaction,
    Hold::InsertId,
    Hold::Diagnostics,
    Hold::FoundRows,
    Hold::NotAllowed,
    Hold::Delay,
];

/// Reason why a transaction was not replayed, or not to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// A statement that may not be run again, or state that would be missing.
    Statement,
    /// A table whose engine has no transactions.
    Table,
    /// More bytes than `transaction_replay_max_size`.
    TooLarge,
    /// A part of an answer is with the client.
    Partial,
    /// The answer to a COMMIT was lost, and no mark tells what became of it.
    Commit,
    /// As [`Unfit::Commit`], and whether the server has done all that it got is not to be seen.
    Blind,
    /// An answer differed.
    Differs,
    /// Attempts or time are used up, or somebody has ended it.
    GaveUp,
}

impl Unfit {
    /// Words behind "its transaction was not replayed: ".
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Statement => {
                "it has a statement that cannot be run again, or state of its connection"
            }
            Self::Table => "it writes to a table whose engine has no transactions",
            Self::TooLarge => "it is larger than transaction_replay_max_size",
            Self::Partial => "a part of a result was with the client",
            Self::Commit => "the answer to its COMMIT was lost, and nobody knows what became of it",
            Self::Blind => {
                "the answer to its COMMIT was lost, and its account may not see whether the server has applied all that it received \
                 (REPLICATION CLIENT, of MariaDB REPLICA MONITOR)"
            }
            Self::Differs => "a result differed",
            Self::GaveUp => {
                "no server took it within transaction_replay_attempts and transaction_replay_timeout_ms"
            }
        }
    }

    pub(crate) const fn counter(self) -> Counter {
        match self {
            Self::Statement | Self::Table => Counter::TransactionReplaysUnfit,
            Self::TooLarge => Counter::TransactionReplaysTooLarge,
            Self::Partial => Counter::TransactionReplaysPartial,
            Self::Commit | Self::Blind => Counter::TransactionReplaysCommits,
            Self::Differs => Counter::TransactionReplaysDiffered,
            Self::GaveUp => Counter::TransactionReplaysGaveUp,
        }
    }
}

/// Parts of an answer that its client may have acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    rows: RowSum,
    results: u32,
    columns: u32,
    /// Number of the error, and a hash of its words.
    error: Option<(u16, u64)>,
    affected: u64,
    insert_id: u64,
    warnings: u16,
}

impl Sum {
    pub(crate) fn of(summed: &Summed) -> Self {
        let response = summed.response();
        let error = match response.outcome() {
            Outcome::Err { code, message, .. } => Some((code, hash(message))),
            _ => None,
        };
        Self {
            rows: summed.sum(),
            results: response.results(),
            columns: response.columns(),
            error,
            affected: response.affected_rows(),
            insert_id: response.insert_id(),
            warnings: response.warnings(),
        }
    }

    pub(crate) fn error(&self) -> Option<u16> {
        self.error.map(|(code, _)| code)
    }

    /// Whether two answers are the same to a client that looks at these parts.
    pub(crate) fn is_same(self, other: Self, checksum: Checksum) -> bool {
        let seen = |sum: Self| match checksum {
            Checksum::Full => sum,
            Checksum::NoInsertId => Self {
                insert_id: 0,
                ..sum
            },
            Checksum::ResultOnly => Self {
                insert_id: 0,
                affected: 0,
                warnings: 0,
                ..sum
            },
        };
        seen(self) == seen(other)
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Command of a statement, whichever connection it goes to.
pub(crate) enum Said {
    Text(Box<[u8]>, Attributes),
    Execution(Kept),
}

/// One statement of a course.
pub(crate) struct Step {
    pub(crate) said: Said,
    /// How servers read its text.
    pub(crate) lexing: Lexing,
    /// Sum of the answer that the client has.
    pub(crate) sum: Sum,
    /// Whether it may have changed rows.
    pub(crate) writes: bool,
}

impl Step {
    pub(crate) fn text(&self) -> &[u8] {
        match &self.said {
            Said::Text(text, _) => text,
            Said::Execution(kept) => &kept.prepared.sql,
        }
    }

    fn bytes(&self) -> usize {
        let said = match &self.said {
            Said::Text(text, attributes) => text.len() + attributes.bytes().len(),
            Said::Execution(kept) => kept.bytes() + kept.prepared.bytes(),
        };
        size_of::<Self>() + said
    }
}

/// Statements of a transaction that is open, or about to begin.
pub(crate) struct Course {
    pub(crate) hostgroup: u32,
    pub(crate) wish: Replay,
    /// State of the session in which all of it ran.
    pub(crate) state: State,
    pub(crate) steps: Vec<Step>,
    bytes: usize, // <= wish.max_size
    /// An insert of it has made an id.
    has_id: bool,
    /// The last statement has failed, and no answer has said since that the transaction is still
    /// open: some errors end it.
    pub(crate) is_doubtful: bool,
    /// Why it cannot be replayed.
    pub(crate) spoilt: Option<Unfit>,
    pub(crate) attempts: u32, // <= wish.attempts
    /// The transaction has begun.
    pub(crate) is_open: bool,
    /// The statement that runs now was sent.
    pub(crate) sent: bool,
    /// Sum of the answer to that statement.
    pub(crate) sum: Option<Sum>,
    /// Mark that the COMMIT leaves which runs now.
    pub(crate) mark: Option<Mark>,
}

impl Course {
    /// Of a transaction that may begin now.
    pub(crate) fn new(hostgroup: u32, wish: Replay, state: State) -> Self {
        Self {
            hostgroup,
            wish,
            state,
            steps: Vec::new(),
            bytes: 0,
            has_id: false,
            is_doubtful: false,
            spoilt: None,
            attempts: 0,
            is_open: false,
            sent: false,
            sum: None,
            mark: None,
        }
    }

    /// Whether anything in it may have changed rows.
    pub(crate) fn writes(&self) -> bool {
        self.steps.iter().any(|step| step.writes)
    }

    /// The first reason counts. What was kept is of no use any more.
    pub(crate) fn spoil(&mut self, why: Unfit) {
        self.spoilt.get_or_insert(why);
        (self.steps, self.bytes) = (Vec::new(), 0);
    }

    /// Whether this statement could be run again as the next one.
    pub(crate) fn takes(&self, job: &Job<'_>) -> bool {
        let comes_alone = match job.what {
            What::Query(_) => true,
            What::Execute(execution) => !execution.is_bulk() && !execution.opens_cursor(),
            // It leaves nothing in the transaction.
            What::Prepare(preparing) => return preparing.naming.is_none(),
            What::Raw(..) | What::Dynamic(_) | What::Refused(_) => false,
        };
        comes_alone && fits(job.class, job.sent(), (self.steps.is_empty(), self.has_id))
    }

    /// Adds a statement that was answered. `holds`: what keeps its connection now.
    pub(crate) fn add(&mut self, job: &Job<'_>, lexing: Lexing, holds: Holds) {
        let said = match job.what {
            What::Prepare(_) if self.takes(job) => return,
            What::Query(attributes) => Said::Text(job.sent().into(), attributes.clone()),
            What::Execute(execution) => Said::Execution(execution.keep()),
            _ => return self.spoil(Unfit::Statement),
        };
        let Some(sum) = self.sum.take() else {
            return self.spoil(Unfit::Statement);
        };
        // The victim of a deadlock has no transaction any more, though no flag has said so.
        let is_over = sum.error() == Some(errors::DEADLOCK.number);
        if !self.takes(job) || !holds.are_only(&MISSED_BY_NOBODY) || is_over {
            return self.spoil(Unfit::Statement);
        }
        let step = Step {
            said,
            lexing,
            sum,
            writes: writes(job.class),
        };
        self.bytes = self.bytes.saturating_add(step.bytes());
        if self.bytes > self.wish.max_size as usize {
            return self.spoil(Unfit::TooLarge);
        }
        self.has_id |= sum.insert_id != 0;
        self.is_doubtful = sum.error().is_some();
        self.steps.push(step);
    }
}

/// Marks of what a statement may leave that is run again.
const LEFT: Leaves = Leaves::SAVEPOINT.with(Leaves::FOUND_ROWS);

/// Whether a statement can be run again, with the same outcome for all that its client can tell.
/// `first`: it begins the transaction; `has_id`: the transaction has made an id.
fn fits(class: &Class<'_>, text: &[u8], (first, has_id): (bool, bool)) -> bool {
    use CommandCounter as C;
    let is_known = match class.command {
        C::Select | C::SelectForUpdate if class.against == Some(Against::Lock) => {
            !Words::new(text).any(|word| word.is("INTO"))
        }
        C::Insert | C::Replace | C::Update | C::Delete => true,
        C::Begin | C::StartTransaction => first && class.begins_transaction,
        C::Savepoint | C::RollbackSavepoint | C::ReleaseSavepoint => true,
        _ => class.plain_read,
    };
    let of_course = if has_id {
        Reads::LAST_INSERT_ID
    } else {
        Reads::NONE
    };
    let state = Reads::USER_VARIABLE.with(Reads::XPATH).with(of_course);
    is_known
        && (class.plain_read || class.reads.without(state).is_empty())
        && class.leaves.without(LEFT).is_empty()
        && class.against != Some(Against::Conditional)
        && !class.multi
        && !class.ddl
        && !class.sets
        && !class.kills
        && !class.local_infile
        && !class.ends_transaction
        && !class.releases
        && class.use_db.is_none()
}

/// Whether a statement that fits may change rows.
fn writes(class: &Class<'_>) -> bool {
    use CommandCounter as C;
    let only_bounds = matches!(
        class.command,
        C::Begin | C::StartTransaction | C::Savepoint | C::RollbackSavepoint | C::ReleaseSavepoint
    );
    !class.plain_read && !only_bounds
}

/// Whether it is a ROLLBACK of the whole transaction, and nothing more.
pub(crate) fn only_rolls_back(job: &Job<'_>) -> bool {
    let class = job.class;
    matches!(job.what, What::Query(_) | What::Execute(_))
        && class.command == CommandCounter::Rollback
        && class.ends_transaction
        && !class.begins_transaction
        && !class.releases
        && !class.multi
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(text: &str, first: bool, has_id: bool) -> bool {
        fits(
            &sql::class(text.as_bytes()),
            text.as_bytes(),
            (first, has_id),
        )
    }

    #[test]
    fn what_leaves_nothing_but_rows_can_be_run_again() {
        for text in [
            "SELECT a FROM t",
            "SELECT a FROM t FOR UPDATE",
            "SELECT a FROM t WHERE b = @x LOCK IN SHARE MODE",
            "SELECT @@session.autocommit",
            "INSERT INTO t VALUES (1, NOW(), UUID())",
            "INSERT INTO t SELECT a FROM u ON DUPLICATE KEY UPDATE a = 2",
            "REPLACE INTO t VALUES (1)",
            "UPDATE t SET a = a + 1",
            "DELETE FROM t WHERE a = 1",
            "SAVEPOINT s",
            "ROLLBACK TO SAVEPOINT s",
            "RELEASE SAVEPOINT s",
        ] {
            assert!(takes(text, false, false), "{text}");
        }
        assert!(takes("BEGIN", true, false));
        assert!(takes(
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            true,
            false
        ));
    }

    #[test]
    fn what_commits_or_leaves_more_or_is_not_known_cannot() {
        for text in [
            "COMMIT",
            "COMMIT AND CHAIN",
            "ROLLBACK",
            "ROLLBACK AND CHAIN",
            "BEGIN",
            "CREATE TABLE t (a INT)",
            "TRUNCATE t",
            "SET @a = 1",
            "SET autocommit = 1",
            "SELECT 1 INTO @a",
            "SELECT @a := 1",
            "SELECT a FROM t INTO OUTFILE '/tmp/x'",
            "SELECT a INTO OUTFILE '/tmp/x' FROM t FOR UPDATE",
            "SELECT GET_LOCK('a', 1)",
            "SELECT f(1)",
            "INSERT INTO t VALUES (f(1))",
            "INSERT INTO t VALUES (LAST_INSERT_ID())",
            "INSERT INTO t VALUES (CONNECTION_ID())",
            "INSERT INTO t VALUES (@@hostname)",
            "UPDATE t SET a = ROW_COUNT()",
            "CALL p()",
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "LOCK TABLES t WRITE",
            "XA START 'a'",
            "HANDLER t OPEN",
            "EXECUTE s",
            "PREPARE s FROM 'SELECT 1'",
            "USE x",
            "KILL 1",
            "INSERT INTO t VALUES (1); COMMIT",
            "INSERT INTO t VALUES (1 /*!80000 + 1 */)",
            "ANALYZE TABLE t",
            "BEGIN NOT ATOMIC COMMIT; END",
            "nonsense",
        ] {
            assert!(!takes(text, false, false), "{text}");
        }
    }

    #[test]
    fn an_id_is_known_again_where_the_transaction_has_made_it() {
        let text = "INSERT INTO child VALUES (LAST_INSERT_ID())";
        assert!(takes(text, false, true) && !takes(text, false, false));
        assert!(!takes(
            "INSERT INTO t VALUES (LAST_INSERT_ID(7))",
            false,
            true
        ));
    }

    #[test]
    fn answers_are_compared_as_far_as_it_is_said() {
        let one = Sum {
            affected: 1,
            insert_id: 7,
            ..Sum::default()
        };
        let (id, rows) = (
            Sum {
                insert_id: 8,
                ..one
            },
            Sum { affected: 2, ..one },
        );
        let failed = Sum {
            error: Some((1062, 1)),
            ..one
        };
        for (other, full, no_id, result) in [
            (one, true, true, true),
            (id, false, true, true),
            (rows, false, false, true),
            (failed, false, false, false),
        ] {
            assert_eq!(one.is_same(other, Checksum::Full), full);
            assert_eq!(one.is_same(other, Checksum::NoInsertId), no_id);
            assert_eq!(one.is_same(other, Checksum::ResultOnly), result);
        }
    }
}
