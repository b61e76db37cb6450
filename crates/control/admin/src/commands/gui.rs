//! What graphical tools and drivers ask of any server when they connect: there is little to say,
//! and an error would stop some of them.

use super::show::{self, condition};
use super::words::{after, is};
use crate::engine::View;

/// Questions whose answer has no rows here: names of their columns.
const EMPTY: &[(&[&str], &str)] = &[
    (&["SHOW WARNINGS", "SHOW ERRORS"], "Level, Code, Message"),
    (&["SHOW PRIVILEGES"], "Privilege, Context, Comment"),
    (
        &["SHOW PROCEDURE STATUS", "SHOW FUNCTION STATUS"],
        "Db, Name, Type",
    ),
    (
        &["SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"],
        "File, Position",
    ),
    (
        &["SHOW SLAVE STATUS", "SHOW REPLICA STATUS"],
        "Slave_IO_State",
    ),
];

const ENGINES: &str = "SELECT 'SQLite' AS Engine, 'DEFAULT' AS Support, 'What is configured and counted; the data is on the servers' AS Comment, \
                       'YES' AS Transactions, 'NO' AS XA, 'YES' AS Savepoints";

/// The SELECT that answers it.
pub(super) fn parse(text: &str, words: &[&str], view: View) -> Option<String> {
    if let Some((_, names)) = EMPTY.iter().find(|(shows, _)| is(words, shows)) {
        let columns: Vec<String> = names
            .split(", ")
            .map(|name| format!("NULL AS {name}"))
            .collect();
        return Some(format!("SELECT {} WHERE 0", columns.join(", ")));
    }
    if is(words, &["SHOW ENGINES", "SHOW STORAGE ENGINES"]) {
        return Some(ENGINES.to_owned());
    }
    if is(
        words,
        &[
            "SHOW GRANTS",
            "SHOW GRANTS FOR CURRENT_USER",
            "SHOW GRANTS FOR CURRENT_USER()",
        ],
    ) {
        let what = if view == View::Admin {
            "ALL PRIVILEGES"
        } else {
            "SELECT"
        };
        return Some(format!(
            "SELECT 'GRANT {what} ON *.* TO ' || :name AS Grants"
        ));
    }
    status(text, words)
        .or_else(|| full_tables(text, words))
        .or_else(|| index(words, view))
}

/// The counters.
fn status(text: &str, words: &[&str]) -> Option<String> {
    let shows = [
        "SHOW STATUS",
        "SHOW GLOBAL STATUS",
        "SHOW SESSION STATUS",
        "SHOW /*!50002 GLOBAL */ STATUS",
    ];
    let rest = shows.iter().find_map(|show| after(words, show))?;
    let condition = condition(text, rest, "Variable_Name")?;
    Some(format!(
        "SELECT Variable_Name AS Variable_name, Variable_Value AS Value FROM stats_mysql_global WHERE 1{condition} ORDER BY 1"
    ))
}

fn full_tables(text: &str, words: &[&str]) -> Option<String> {
    let (schema, rest) = show::of_schema(after(words, "SHOW FULL TABLES")?);
    let schema = show::name(schema)?;
    let condition = condition(text, rest, "name")?;
    Some(format!(
        "SELECT name AS Tables_in_{schema}, 'BASE TABLE' AS Table_type FROM {schema}.sqlite_master \
         WHERE type='table' AND name <> 'sqlite_sequence'{condition} ORDER BY name"
    ))
}

/// Primary keys are all that there is.
fn index(words: &[&str], view: View) -> Option<String> {
    let shows = ["SHOW INDEX FROM", "SHOW INDEXES FROM", "SHOW KEYS FROM"];
    let [named, ..] = shows.iter().find_map(|show| after(words, show))? else {
        return None;
    };
    let (schema, table) = show::table(named, view)?;
    Some(format!(
        "SELECT '{table}' AS 'Table', 0 AS Non_unique, 'PRIMARY' AS Key_name, pk AS Seq_in_index, name AS Column_name, 'A' AS Collation, \
         NULL AS Cardinality, NULL AS Sub_part, NULL AS Packed, iif(\"notnull\", '', 'YES') AS 'Null', 'BTREE' AS Index_type, \
         '' AS Comment, '' AS Index_comment FROM pragma_table_info('{table}', '{schema}') WHERE pk > 0 ORDER BY pk"
    ))
}
