//! The semantic read/write split: what only reads goes to the readers, unless rules have found a
//! place for it.
//!
//! Every doubt leaves the statement where it is, with the writer.

use crate::trace::Trace;
use crate::{AnsiQuotes, By, Plan, SessionFacts, Statement};
use config::{Snapshot, Split, User};
use sql::{Against, Class, Lexing, Unread};
use std::borrow::Cow;
use std::fmt;

/// Facts that the split wants to know besides; nothing of them matters where nothing is split.
#[derive(Debug, Clone, Copy)]
pub struct SplitFacts<'a> {
    /// The statement's class, if somebody has it already.
    pub class: Option<&'a Class<'a>>,
    /// Meaning of the session's mode and character set for where its strings end.
    pub lexing: Lexing,
    /// Meaning of double quotes, as far as it is known.
    pub ansi_quotes: AnsiQuotes<'a>,
    /// How long ago the session may have written.
    pub since_write_ms: Option<u64>,
}

impl SplitFacts<'_> {
    /// Nothing is known.
    pub const NONE: Self = Self {
        class: None,
        lexing: Lexing::Escapes,
        ansi_quotes: AnsiQuotes::Unknown,
        since_write_ms: None,
    };
}

/// Why a statement stays with the writer.
pub(crate) enum Stays {
    Transaction,
    Moves,
    Wrote(u64),
    Unread(Unread),
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transaction => f.write_str("a transaction is open or about to begin"),
            Self::Moves => f.write_str("the transaction that it begins may go on elsewhere, as transaction_persistent is 0"),
            Self::Wrote(ms) => write!(f, "the session may have written {ms} ms ago; not from the cache"),
            Self::Unread(why) => why.fmt(f),
        }
    }
}

/// The split that holds for a user: his own, else that of his hostgroup.
#[must_use]
pub fn split_of<'a>(snapshot: &'a Snapshot, user: &'a User) -> Option<&'a Split> {
    match user.split() {
        Some(own) => own,
        None if !snapshot.servers.splits() => None,
        None => snapshot
            .servers
            .hostgroup(user.default_hostgroup)
            .and_then(|hostgroup| hostgroup.attributes.split.as_ref()),
    }
}

pub(crate) fn read<T: Trace>(
    plan: &mut Plan,
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    trace: &mut T,
) {
    let writer = session.user.default_hostgroup;
    let Some(split) = split_of(snapshot, session.user) else {
        return;
    };
    if plan.why.by != By::Default {
        trace.saw("read/write split", || {
            "not looked at: a rule or fast routing has decided".into()
        });
        return;
    }
    let verdict = may_read(plan, split, session, statement);
    if verdict.is_ok() {
        plan.send_to(split.read_hostgroup, By::Read);
        let of_writer = snapshot.servers.hostgroup(writer);
        let sees_writes = of_writer.is_some_and(|one| one.attributes.reads_see_writes);
        if sees_writes && session.split.since_write_ms.is_some() {
            plan.gtid_from_hostgroup.get_or_insert(writer);
        }
    }
    if matches!(verdict, Err(Stays::Wrote(_))) {
        // It is to see what the session has written: an answer in the cache may be older.
        plan.uncache();
    }
    trace.saw("read/write split", || match verdict {
        Ok(()) => format!("hostgroup {}: it only reads", split.read_hostgroup),
        Err(why) => format!("hostgroup {writer}, to the writer: {why}"),
    });
}

pub(crate) fn may_read(
    plan: &Plan,
    split: &Split,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
) -> Result<(), Stays> {
    if session.in_transaction.is_some() || !session.autocommit {
        return Err(Stays::Transaction);
    }
    let facts = &session.split;
    // What counts is what will be sent.
    let text = plan.leg.statement.of(statement.text);
    let as_sent = std::ptr::eq(text, statement.text);
    let class = match facts.class {
        Some(class) if as_sent => Cow::Borrowed(class),
        _ => Cow::Owned(facts.lexing.class(text)),
    };
    if class.begins_read_only && !class.multi && facts.lexing.is_sure_of(text) {
        // Elsewhere its statements and its end would miss it.
        if !session.user.transaction_persistent {
            return Err(Stays::Moves);
        }
    } else {
        let harmless = |routine: &sql::Routine<'_>| {
            split.only_reads(
                routine.schema.as_deref(),
                session.schema.as_bytes(),
                &routine.name,
            )
        };
        sql::reading(&class, text, facts.lexing, harmless).map_err(Stays::Unread)?;
        if sql::reads_lists(text, facts.lexing, session.schema) {
            return Err(Stays::Unread(Unread::Words(Against::Server)));
        }
    }
    match facts.since_write_ms {
        Some(ms) if ms < u64::from(split.after_write_ms) => Err(Stays::Wrote(ms)),
        _ => Ok(()),
    }
}
