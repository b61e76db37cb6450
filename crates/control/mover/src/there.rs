//! A look at the server on which a partition is added: rows that are there may have to move first.

use crate::world::{Place, open};
use crate::{source, table};
use line::{Failed, Line};
use rt::Rt;

/// ER_BAD_DB_ERROR, ER_NO_SUCH_TABLE.
const NONE: [u16; 2] = [1049, 1146];

/// Rows that are about to be committed are seen by one of the two, and those that may come back by the
/// other.
pub(crate) const ISOLATIONS: [&str; 2] = ["READ UNCOMMITTED", "READ COMMITTED"];

/// Content of the table that has the rows now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum There {
    /// There is no such table.
    NoTable,
    /// A table without rows, and without such as are not committed, in this schema.
    Empty(String),
    /// A table with rows, in this schema.
    Rows(String),
}

/// Looks what a server has in a table; without a schema, in the only one that has such a table.
///
/// # Errors
/// The server cannot be reached, or does not let the monitor's user look.
pub async fn look_there(rt: &Rt, place: &Place, schema: &str, name: &str) -> Result<There, String> {
    let words = |failed: Failed| {
        format!(
            "it cannot be looked whether {} on {}:{} has rows: {failed}; mysql-monitor_username needs SELECT on its schema",
            table::name(name),
            place.host,
            place.port
        )
    };
    let mut line = open(rt, place).await.map_err(words)?;
    let schema = match schema {
        "" => match schemas_of(&mut line, name).await.map_err(words)?.as_slice() {
            [only] => only.clone(),
            [] if sees_all(&mut line, name).await.map_err(words)? => return Ok(There::NoTable),
            [] => {
                let user = &place.who.user;
                return Err(format!(
                    "'{user}' (mysql-monitor_username) sees no table {} on {}:{}, and may not see all schemas there, so that it is not known whether it has rows: GRANT SELECT ON its schema.* TO '{user}' there, or, if no schema has it, have the map say its schema (schemaname, default_schema) or GRANT SELECT ON *.*",
                    table::name(name),
                    place.host,
                    place.port
                ));
            }
            several => {
                return Err(format!(
                    "there is a table {} in {}, and the map does not say which is meant: set default_schema of the table, or physical_schema of the partition",
                    table::name(name),
                    several.join(" and ")
                ));
            }
        },
        schema => schema.to_owned(),
    };
    let of_it = table::quoted(&schema, name);
    for isolation in ISOLATIONS {
        let sets = format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}");
        line.ask(&sets).await.map_err(words)?;
        let first = line.ask(&format!("SELECT 1 FROM {of_it} LIMIT 1")).await;
        match first {
            Ok(rows) if rows.is_empty() => {}
            Ok(_) => return Ok(There::Rows(schema)),
            Err(Failed::Said { code, .. }) if NONE.contains(&code) => return Ok(There::NoTable),
            Err(failed) => return Err(words(failed)),
        }
    }
    Ok(There::Empty(schema))
}

/// The schemas of a server that have a table of this name, as far as they may be seen.
///
/// # Errors
/// The server cannot be reached.
pub async fn schemas_with(rt: &Rt, place: &Place, name: &str) -> Result<Vec<String>, String> {
    let words = |failed: Failed| failed.to_string();
    let mut line = open(rt, place).await.map_err(words)?;
    schemas_of(&mut line, name).await.map_err(words)
}

/// The schemas that have a table of this name, as far as they may be seen.
pub(crate) async fn schemas_of(line: &mut Line, name: &str) -> Result<Vec<String>, Failed> {
    let sql = format!(
        "SELECT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = {}",
        table::string(name)
    );
    let rows = line.ask(&sql).await?;
    Ok(rows.iter().map(|row| source::text(row, 0)).collect())
}

/// Schema that nobody has. A right to some schemas by a pattern does not match it, unless the pattern
/// matches all.
const NOBODYS: &str = "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~";

/// Whether the tables of all schemas may be seen. A server looks at rights first: who may not read a
/// schema is told so, whether there is one or not.
async fn sees_all(line: &mut Line, name: &str) -> Result<bool, Failed> {
    let reads = format!("SELECT 1 FROM {} LIMIT 0", table::quoted(NOBODYS, name));
    match line.ask(&reads).await {
        Ok(_) => return Ok(false),
        Err(Failed::Said { code, .. }) if NONE.contains(&code) => {}
        Err(Failed::Said { .. }) => return Ok(false),
        Err(failed) => return Err(failed),
    }
    // MySQL may take schemas out of a right to all.
    let grants = line.ask("SHOW GRANTS").await?;
    let takes_out = |row: &table::Cells| source::text(row, 0).starts_with("REVOKE");
    Ok(!grants.iter().any(takes_out))
}
