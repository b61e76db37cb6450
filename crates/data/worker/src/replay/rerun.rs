//! The course of a transaction, run on another connection and compared.

use crate::core::alone;
use crate::known::demoted;
use crate::session::course::{Course, Said, Sum, Unfit};
use backend::{Backend, BackendFailed};
use net::NetError;
use rt::Chunk;
use sql::{Class, CommandCounter, Lexing};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wire::attributes::Attributes;
use wire::response::{Expect, Follow, Outcome, Summed};
use wire::{errors, packet};

/// So many names are asked about at once.
const NAMES_AT_ONCE: usize = 500;

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    /// The transaction stands where it stood.
    Same,
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

/// Runs a course. `next`: the statement that is run behind it; `max`:
/// `mysql-max_stmts_per_connection`.
pub(super) async fn run(
    backend: &mut Backend,
    course: &Course,
    next: Option<Change<'_>>,
    max: u64,
) -> Result<Ran, BackendFailed> {
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
    let busy = [errors::DEADLOCK.number, errors::LOCK_WAIT_TIMEOUT.number];
    match summed.response().outcome() {
        Outcome::Err { code, message, .. }
            if busy.contains(&code) || demoted::is_meant(code, message) =>
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
    let (mut command, caps) = (Vec::new(), backend.hello.caps);
    let expect = match said {
        Said::Text(text, attributes) => {
            packet::append_with(&mut command, &mut 0, |out| {
                wire::attributes::write_query(out, text, attributes, caps)
            });
            Expect::Query
        }
        Said::Execution(kept) => {
            let id = backend
                .prepare(&kept.prepared, 0, &kept.bindings, max)
                .await?;
            kept.fits(backend, id)?;
            for command in kept.long_data(id) {
                backend.send(command).await?;
            }
            packet::append_with(&mut command, &mut 0, |out| kept.write(out, id, caps));
            Expect::Execute
        }
    };
    alone::before(backend, class);
    let sent = packet::last_seq_of_framed(command.len());
    backend.send(Chunk::from(command)).await?;
    let mut summed = Summed::expect(expect, caps).to_packet(sent);
    loop {
        let chunk = backend.recv().await?;
        let followed = summed
            .follow(&chunk)
            .map_err(|malformed| BackendFailed::BrokeAfter(NetError::Malformed(malformed)))?;
        if let Follow::Ended { used } = followed {
            backend.ended(used, chunk.len());
            break;
        }
    }
    alone::learn(backend, class, summed.response());
    Ok(summed)
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
