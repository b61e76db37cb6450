//! `information_schema` for those who answer from SQLite: dump tools and graphical clients look
//! there before anything else.
//!
//! SQLite has no views over several databases, so the names are replaced in the statement by what
//! they stand for.

use crate::split;

/// Schemas as the client sees them and as SQLite calls them.
pub type Schemas<'s> = &'s [(&'s str, &'s str)];

/// The statement with the tables of `information_schema` replaced, if it names any that are known.
/// One that asks for others (partitions, routines, …) is answered by nothing: there are none.
#[must_use]
pub fn replace(sql: &str, schemas: Schemas<'_>) -> Option<String> {
    replace_by(sql, |name| table(name, schemas))
}

/// Replaces the tables of `information_schema` as [`replace`] does, each by what `table` gives for
/// its name.
#[must_use]
pub fn replace_by(sql: &str, table: impl Fn(&str) -> Option<String>) -> Option<String> {
    const PREFIX: &str = "information_schema.";
    const EMPTY: &str = "SELECT NULL AS Data WHERE 0";
    // Letters keep their places: only ASCII changes, and what is quoted or a comment is blank.
    let lower = split::bare(sql).to_ascii_lowercase();
    if ["from performance_schema.", "from mysql."]
        .iter()
        .any(|name| lower.contains(name))
    {
        return Some(EMPTY.into());
    }
    let mut out = String::new();
    let mut rest = 0;
    while let Some(at) = find(&lower, PREFIX, rest) {
        let name_at = at + PREFIX.len();
        let len = lower[name_at..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(lower.len() - name_at);
        let Some(table) = table(&lower[name_at..name_at + len]) else {
            return Some(EMPTY.into());
        };
        out += &sql[rest..at];
        out += &table;
        // So that `information_schema.tables.table_name` and `tables.table_name` mean it too.
        if !has_alias(&lower[name_at + len..]) {
            out += &format!(" AS \"{}\"", &sql[name_at..name_at + len]);
        }
        rest = name_at + len;
    }
    if rest == 0 {
        return None;
    }
    out += &sql[rest..];
    Some(out)
}

fn find(text: &str, what: &str, from: usize) -> Option<usize> {
    text[from..].find(what).map(|at| from + at)
}

/// Whether an alias follows: a word that is no keyword.
fn has_alias(rest: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "where", "order", "group", "limit", "join", "left", "inner", "right", "natural", "cross",
        "on", "using", "union", "having",
    ];
    let word: String = rest
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    !word.is_empty() && !KEYWORDS.contains(&word.as_str())
}

fn table(name: &str, schemas: Schemas<'_>) -> Option<String> {
    let each = |select: &dyn Fn(&str, &str) -> String| {
        let selects: Vec<_> = schemas
            .iter()
            .map(|(shown, schema)| select(shown, schema))
            .collect();
        format!("({})", selects.join(" UNION ALL "))
    };
    Some(match name {
        "schemata" => each(&|shown, _| {
            format!(
                "SELECT 'def' AS CATALOG_NAME, '{shown}' AS SCHEMA_NAME, 'utf8mb4' AS DEFAULT_CHARACTER_SET_NAME, \
                 'utf8mb4_general_ci' AS DEFAULT_COLLATION_NAME, NULL AS SQL_PATH"
            )
        }),
        "tables" => each(&|shown, schema| {
            format!(
                "SELECT 'def' AS TABLE_CATALOG, '{shown}' AS TABLE_SCHEMA, name AS TABLE_NAME, \
                 CASE type WHEN 'view' THEN 'VIEW' ELSE 'BASE TABLE' END AS TABLE_TYPE, 'InnoDB' AS ENGINE, 10 AS VERSION, \
                 'Dynamic' AS ROW_FORMAT, 0 AS TABLE_ROWS, 0 AS AVG_ROW_LENGTH, 0 AS DATA_LENGTH, 0 AS MAX_DATA_LENGTH, \
                 0 AS INDEX_LENGTH, 0 AS DATA_FREE, NULL AS AUTO_INCREMENT, NULL AS CREATE_TIME, NULL AS UPDATE_TIME, NULL AS CHECK_TIME, \
                 'utf8mb4_general_ci' AS TABLE_COLLATION, NULL AS CHECKSUM, '' AS CREATE_OPTIONS, '' AS TABLE_COMMENT \
                 FROM {schema}.sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            )
        }),
        "columns" => each(&|shown, schema| {
            format!(
                "SELECT 'def' AS TABLE_CATALOG, '{shown}' AS TABLE_SCHEMA, t.name AS TABLE_NAME, c.name AS COLUMN_NAME, \
                 c.cid + 1 AS ORDINAL_POSITION, c.dflt_value AS COLUMN_DEFAULT, iif(c.\"notnull\" OR c.pk, 'NO', 'YES') AS IS_NULLABLE, \
                 CASE WHEN c.type LIKE '%INT%' THEN 'bigint' WHEN c.type LIKE '%CHAR%' THEN 'varchar' WHEN c.type LIKE '%TEXT%' THEN 'text' \
                 WHEN c.type LIKE '%REAL%' OR c.type LIKE '%DOUB%' OR c.type LIKE '%FLOA%' THEN 'double' ELSE 'blob' END AS DATA_TYPE, \
                 NULL AS CHARACTER_MAXIMUM_LENGTH, NULL AS CHARACTER_OCTET_LENGTH, NULL AS NUMERIC_PRECISION, NULL AS NUMERIC_SCALE, \
                 NULL AS DATETIME_PRECISION, NULL AS CHARACTER_SET_NAME, NULL AS COLLATION_NAME, c.type AS COLUMN_TYPE, \
                 iif(c.pk, 'PRI', '') AS COLUMN_KEY, '' AS EXTRA, '' AS PRIVILEGES, '' AS COLUMN_COMMENT, '' AS GENERATION_EXPRESSION \
                 FROM {schema}.sqlite_master t, pragma_table_info(t.name, '{schema}') c WHERE t.type IN ('table', 'view')"
            )
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_what_is_not_there_is_nothing() {
        let one: Schemas<'_> = &[("main", "main")];
        let replaced = replace(
            "SELECT table_name FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = 'main'",
            one,
        )
        .unwrap();
        assert!(
            replaced.starts_with("SELECT table_name FROM (SELECT 'def'"),
            "{replaced}"
        );
        assert!(
            replaced.ends_with(") AS \"TABLES\" WHERE table_schema = 'main'"),
            "{replaced}"
        );
        assert!(
            replace("SELECT * FROM information_schema.tables t", one)
                .unwrap()
                .ends_with(") t")
        );
        assert_eq!(
            replace("SELECT * FROM information_schema.routines", one).unwrap(),
            "SELECT NULL AS Data WHERE 0"
        );
        assert_eq!(replace("SELECT 1", one), None);
    }

    #[test]
    fn words_in_quotes_and_comments_are_no_names() {
        let one: Schemas<'_> = &[("main", "main")];
        for text in [
            "SELECT * FROM d WHERE t LIKE '%from mysql.%'",
            "SELECT * FROM d WHERE t LIKE 'ä % FROM information_schema.tables'",
            "SELECT * FROM d WHERE t = \"information_schema.columns\"",
            "SELECT 1 -- from performance_schema.threads",
            "SELECT 1 /* from mysql.user */",
        ] {
            assert_eq!(replace(text, one), None, "{text}");
        }
        let replaced = replace(
            "SELECT 'ä information_schema.x', 1 FROM information_schema.tables",
            one,
        )
        .unwrap();
        assert!(
            replaced.starts_with("SELECT 'ä information_schema.x', 1 FROM (SELECT 'def'"),
            "{replaced}"
        );
    }
}
