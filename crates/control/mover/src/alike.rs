//! An empty table like another one: that of a partition which is made by itself.

use crate::outlets::{body, without_names};
use crate::source::{definition, is_there, text};
use crate::table::{name, quoted};
use crate::there::ISOLATIONS;
use crate::world::{Place, Trouble, open};
use line::{Failed, Line};
use rt::Rt;

/// Seconds for which the server may wait for others that use the tables.
const LOCKS_WAIT_S: u32 = 5;

/// A table, and the one that it shall be like.
#[derive(Debug, Clone, Copy)]
pub struct Alike<'a> {
    /// Schema of both.
    pub schema: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Name of the other one.
    pub like: &'a str,
}

/// Makes a table on one server like one that another server has, or the same. A table of this name that
/// is there already serves if it is empty and has the same definition: a proxy has been killed
/// behind it.
///
/// # Errors
/// A sentence: it is not made, and nothing is.
pub async fn make_alike(
    rt: &Rt,
    (from, to): (&Place, &Place),
    alike: Alike<'_>,
) -> Result<(), String> {
    let at = format!("{}:{}", to.host, to.port);
    let made = async {
        let mut source = open(rt, from).await?;
        let wanted = definition(&mut source, alike.schema, alike.like).await?;
        if wanted.contains("\n  CONSTRAINT ") && wanted.contains(" FOREIGN KEY (") {
            return Err(Trouble::Over(format!(
                "{}.{} has foreign keys, which a partition that is made by itself cannot have",
                alike.schema, alike.like
            )));
        }
        let wanted = without_names(body(&wanted, alike.schema, alike.like)?);
        let mut target = open(rt, to).await?;
        let waits = format!("SET SESSION lock_wait_timeout = {LOCKS_WAIT_S}");
        target.ask(&waits).await?;
        if is_there(&mut target, alike.schema, alike.name).await? {
            return may_serve(&mut target, alike, &wanted).await;
        }
        let schema = name(alike.schema);
        for sql in [
            format!("CREATE DATABASE IF NOT EXISTS {schema}"),
            format!("CREATE TABLE {schema}.{} {wanted}", name(alike.name)),
        ] {
            target.ask(&sql).await?;
        }
        Ok(())
    };
    let words = |trouble: Trouble| {
        let table = quoted(alike.schema, alike.name);
        format!(
            "its table {table} on {at} cannot be made: {}",
            trouble.words()
        )
    };
    made.await.map_err(words)
}

/// Whether a table that is there may be taken for one that was just made.
async fn may_serve(line: &mut Line, alike: Alike<'_>, wanted: &str) -> Result<(), Trouble> {
    let found = definition(line, alike.schema, alike.name).await?;
    let found = without_names(body(&found, alike.schema, alike.name)?);
    if found != wanted {
        let (has, lacks) = first_difference(&found, wanted);
        return Err(Trouble::Over(format!(
            "there is one, and it is not like {}.{}: it has '{has}' instead of '{lacks}'",
            alike.schema, alike.like
        )));
    }
    if any_row(line, &quoted(alike.schema, alike.name), "TRUE").await? {
        return Err(Trouble::Over("there is one, and it has rows".to_owned()));
    }
    Ok(())
}

/// The first line of each definition that the other does not have there.
fn first_difference<'a>(found: &'a str, wanted: &'a str) -> (&'a str, &'a str) {
    let (mut found, mut wanted) = (found.lines(), wanted.lines());
    loop {
        let lines = (found.next(), wanted.next());
        if lines.0 != lines.1 || lines.0.is_none() {
            let shown = |line: Option<&'a str>| line.unwrap_or_default().trim();
            return (shown(lines.0), shown(lines.1));
        }
    }
}

/// Whether a table has rows that fulfil a condition, also such as are not committed.
///
/// # Errors
/// A sentence: it cannot be asked.
pub async fn has_rows_of(
    rt: &Rt,
    place: &Place,
    (schema, table): (&str, &str),
    condition: &str,
) -> Result<bool, String> {
    let of_it = quoted(schema, table);
    let looks = async { any_row(&mut open(rt, place).await?, &of_it, condition).await };
    let words =
        |failed: Failed| format!("it cannot be looked whether {of_it} has rows of it: {failed}");
    looks.await.map_err(words)
}

async fn any_row(line: &mut Line, table: &str, condition: &str) -> Result<bool, Failed> {
    for isolation in ISOLATIONS {
        let sets = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
        line.ask(&sets).await?;
        let sql = format!("SELECT 1 FROM {table} WHERE {condition} LIMIT 1");
        let rows = line.ask(&sql).await?;
        if rows.first().is_some_and(|row| text(row, 0) == "1") {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_line_that_differs_is_told() {
        let wanted = "(\n  `id` int,\n  `a` int\n) ENGINE=InnoDB";
        for (found, told) in [
            (
                "(\n  `id` int,\n  `b` int\n) ENGINE=InnoDB",
                ("`b` int", "`a` int"),
            ),
            ("(\n  `id` int,", ("", "`a` int")),
            (wanted, ("", "")),
        ] {
            assert_eq!(first_difference(found, wanted), told);
        }
    }
}
