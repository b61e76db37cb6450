//! The course of a transaction, run on another connection and compared.

use crate::core::alone;
use crate::known::demoted;
use crate::replay::exchange::{BUSY, exchange};
use crate::replay::marks::{Looked, look};
use crate::session::course::{Course, Said, Sum, Unfit};
use backend::{Backend, BackendFailed};
use config::Snapshot;
use sql::{Class, CommandCounter, Lexing};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wire::attributes::Attributes;
use wire::response::{Outcome, Summed};

/// So many names are asked about at once.
const NAMES_AT_ONCE: usize = 500;

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    /// The transaction stands where it stood.
    Same,
    /// The transaction was committed before: its mark is there.
    Landed,
    /// The transaction never will.
    Unfit(Unfit),
    /// This server does not take it now.
    NotNow,
}

/// A statement that changes rows: its text, how it is read, and the schema that its names are of.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) text: &'a [u8],
    pub(super) lexing: Lexing,
    pub(super) schema: &'a str,
}

/// Runs a course. `next`: the statement that is run behind it.
pub(super) async fn run(
    backend: &mut Backend,
    course: &Course,
    next: Option<Change<'_>>,
    snapshot: &Snapshot,
) -> Result<Ran, BackendFailed> {
    if let Some(mark) = course.mark.as_ref().filter(|_| course.sent) {
        match look(backend, course, mark, &snapshot.servers).await? {
            Looked::Missing => {}
            Looked::Landed => return Ok(Ran::Landed),
            Looked::NotYet => return Ok(Ran::NotNow),
            Looked::Unknown(unfit) => return Ok(Ran::Unfit(unfit)),
        }
    }
    let max = snapshot.variables.mysql_max_stmts_per_connection;
    let Some(named) = named(course, next) else {
        return Ok(Ran::Unfit(Unfit::Table));
    };
    let named: Vec<_> = named.into_iter().collect();
    for some in named.chunks(NAMES_AT_ONCE) {
        if has_no_transactions(backend, course, some).await? {
            return Ok(Ran::Unfit(Unfit::Table));
        }
    }
    for step in &course.steps {
        let class = step.lexing.class(step.text());
        let summed = say(backend, course, (&step.said, &class), max).await?;
        if !Sum::of(&summed).is_same(step.sum, course.wish.checksum) {
            return Ok(judged(&summed));
        }
    }
    Ok(Ran::Same)
}

/// Ends what the victim of a deadlock has left of its transaction.
pub(super) async fn roll_back(backend: &mut Backend, course: &Course) -> Result<(), BackendFailed> {
    let (text, class) = (b"ROLLBACK", sql::class(b"ROLLBACK"));
    let said = Said::Text(Box::from(&text[..]), Attributes::NONE);
    say(backend, course, (&said, &class), 0).await.map(drop)
}

/// Reason why an answer is another one.
fn judged(summed: &Summed) -> Ran {
    match summed.response().outcome() {
        Outcome::Err { code, message, .. }
            if BUSY.contains(&code) || demoted::is_meant(code, message) =>
        {
            Ran::NotNow
        }
        _ => Ran::Unfit(Unfit::Differs),
    }
}

/// Schemas and names in the statements that change rows: their tables are among them. `None` where a
/// name is in a character set that nobody can tell a server of.
fn named(course: &Course, next: Option<Change<'_>>) -> Option<BTreeSet<(Vec<u8>, Vec<u8>)>> {
    let changes = course.steps.iter().map(|step| {
        let own = match &step.said {
            Said::Execution(kept) => Some(&*kept.prepared.schema).filter(|own| !own.is_empty()),
            Said::Text(..) => None,
        };
        Change {
            text: step.text(),
            lexing: step.lexing,
            schema: own.unwrap_or(&course.state.schema),
        }
    });
    let (mut all, mut is_known) = (BTreeSet::new(), true);
    for Change {
        text,
        lexing,
        schema,
    } in changes.chain(next)
    {
        use CommandCounter as C;
        let class = lexing.class(text);
        if !matches!(
            class.command,
            C::Insert | C::Replace | C::Update | C::Delete
        ) {
            continue;
        }
        sql::names(text, lexing, |of, name| {
            let of = of.unwrap_or(schema.as_bytes());
            is_known &= of.is_ascii() && name.is_ascii() || course.state.speaks_utf8();
            all.insert((of.to_vec(), name.to_vec()));
        });
    }
    is_known.then_some(all)
}

/// The question how many of these are tables whose engine has no transactions.
fn question(named: &[(Vec<u8>, Vec<u8>)]) -> String {
    let mut text = "SELECT COUNT(*) FROM information_schema.TABLES t JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE \
        WHERE COALESCE(e.TRANSACTIONS, 'NO') <> 'YES' AND ("
        .to_owned();
    // As bytes: quotes and backslashes mean what the session's modes say.
    let literal = |text: &mut String, name: &[u8]| {
        text.push_str("_utf8mb4 X'");
        for byte in name {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\'');
    };
    for (at, (schema, name)) in named.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { " OR " });
        text.push_str("t.TABLE_SCHEMA = ");
        literal(&mut text, schema);
        text.push_str(" AND t.TABLE_NAME = ");
        literal(&mut text, name);
    }
    text.push(')');
    text
}

/// Whether one of these is a table whose engine has no transactions, or the server does not say.
async fn has_no_transactions(
    backend: &mut Backend,
    course: &Course,
    named: &[(Vec<u8>, Vec<u8>)],
) -> Result<bool, BackendFailed> {
    let text = question(named);
    let class = sql::class(text.as_bytes());
    // What is brought there first has answers as well.
    alone::come_to(backend, &course.state, &class).await?;
    backend.look_at_answer();
    let said = Said::Text(text.as_bytes().into(), Attributes::NONE);
    say(backend, course, (&said, &class), 0).await?;
    let seen = backend.seen_answer().unwrap_or_default();
    let rows = wire::rows::read(&seen, backend.hello.caps).unwrap_or_default();
    let none = matches!(rows.rows.as_slice(), [row] if matches!(row.as_slice(), [Some(n)] if **n == *b"0"));
    Ok(!none)
}

/// Says a statement, and sums up its answer.
async fn say(
    backend: &mut Backend,
    course: &Course,
    (said, class): (&Said, &Class<'_>),
    max: u64,
) -> Result<Summed, BackendFailed> {
    alone::come_to(backend, &course.state, class).await?;
    exchange(backend, (said, class), max).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_asked_about_as_bytes() {
        let named = [
            (b"s".to_vec(), b"a'b".to_vec()),
            (b"s".to_vec(), b"c".to_vec()),
        ];
        let text = question(&named);
        assert!(
            text.ends_with(
                "AND (t.TABLE_SCHEMA = _utf8mb4 X'73' AND t.TABLE_NAME = _utf8mb4 X'612762' \
             OR t.TABLE_SCHEMA = _utf8mb4 X'73' AND t.TABLE_NAME = _utf8mb4 X'63')"
            ),
            "{text}"
        );
        let class = sql::class(text.as_bytes());
        assert!(class.plain_read && class.leaves.is_empty(), "{class:?}");
    }
}
