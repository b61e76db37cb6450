//! Tables that a statement writes, by its text.

use crate::command::job::Job;
use cache::Writing;
use sql::{Class, CommandCounter, Leaves, Lexing};

/// Whether one of the words is there by which tables are changed, wherever in the text it is.
fn mentions_a_write(text: &[u8]) -> bool {
    const WRITES: [&str; 11] = [
        "insert", "update", "delete", "replace", "load", "truncate", "drop", "alter", "create",
        "rename", "call",
    ];
    WRITES.iter().any(|word| {
        text.windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Whether results may be of no use after it.
pub(crate) fn may_write_tables(class: &Class<'_>, text: &[u8]) -> bool {
    let reads_only = matches!(
        class.command,
        CommandCounter::Select
            | CommandCounter::SelectForUpdate
            | CommandCounter::Show
            | CommandCounter::Describe
    );
    let of_the_session =
        class.leaves.intersects(Leaves::SET) || class.begins_transaction || class.ends_transaction;
    // Some server may read a write in it.
    let reads_only =
        reads_only && !(class.leaves.intersects(Leaves::UNKNOWN_STATE) && mentions_a_write(text));
    // MySQL carries out what DESCRIBE ANALYZE is asked about.
    let reads_only = reads_only && class.against != Some(sql::Against::Change);
    // A sequence can be read like a table.
    let counts_on = class
        .leaves
        .intersects(Leaves::SEQUENCE.with(Leaves::NEXTVAL));
    class.multi
        || counts_on
        || !(class.plain_read || reads_only || of_the_session || class.use_db.is_some())
}

/// Takes note of all that a statement names, or of everything where nobody can tell. `schema`:
/// where names without one are.
pub(crate) fn note_names(
    writing: &mut Writing,
    class: &Class<'_>,
    text: &[u8],
    lexing: Lexing,
    schema: &str,
) {
    let hidden = [CommandCounter::Call, CommandCounter::Execute].contains(&class.command)
        || !lexing.is_sure_of(text)
        || class.leaves.intersects(
            Leaves::UNKNOWN_STATE
                .with(Leaves::DATABASE)
                .with(Leaves::XA)
                .with(Leaves::SQL_EXECUTE),
        );
    if hidden {
        return writing.everything();
    }
    sql::names(text, lexing, |qualifier, name| {
        writing.table(qualifier.unwrap_or(schema.as_bytes()), name)
    });
}

/// The schema of tables that a statement names without one: a prepared statement's is where it was
/// prepared. `now`: the session's.
pub(crate) fn schema_meant<'a>(job: &'a Job<'_>, now: &'a str) -> &'a str {
    job.what
        .prepared_in()
        .filter(|schema| !schema.is_empty())
        .map_or(now, |schema| schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::preparing::without_comment;

    #[test]
    fn what_an_explanation_carries_out_writes() {
        for (text, writes) in [
            (
                "DESCRIBE ANALYZE UPDATE a JOIN b ON a.id = b.id SET a.x = 1",
                true,
            ),
            ("DESCRIBE ANALYZE SELECT 1", false),
            ("DESCRIBE t", false),
        ] {
            assert_eq!(
                may_write_tables(&sql::class(text.as_bytes()), text.as_bytes()),
                writes,
                "{text}"
            );
        }
    }

    #[test]
    fn a_comment_before_the_statement_is_no_part_of_the_key() {
        let cut =
            |text: &'static str| std::str::from_utf8(without_comment(text.as_bytes())).unwrap();
        assert_eq!(cut(" /* trace=1 */ SELECT 1"), "SELECT 1");
        assert_eq!(cut("SELECT /* x */ 1"), "SELECT /* x */ 1");
        assert_eq!(cut("/*! SELECT 1 */"), "/*! SELECT 1 */");
        assert_eq!(
            cut("/*+ x */ SELECT /* y */ 1"),
            "/*+ x */ SELECT /* y */ 1"
        );
        assert_eq!(cut("/* open"), "");
    }
}
