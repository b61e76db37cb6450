//! `information_schema` as MySQL's clients ask for it, in ClickHouse's words. Names of columns are in
//! whichever letters there, a HAVING needs no GROUP BY, and a column may be hidden by its own name.

use crate::facts::{Token, tokens};
use door::catalog;

/// Schemas that only MySQL has.
const SCHEMAS: &[&str] = &["information_schema", "performance_schema", "mysql", "sys"];
/// Columns of the tables below.
const NAMES: &[&str] = &[
    "CATALOG_NAME",
    "CHARACTER_MAXIMUM_LENGTH",
    "CHARACTER_OCTET_LENGTH",
    "CHARACTER_SET_NAME",
    "COLLATION_NAME",
    "COLUMN_COMMENT",
    "COLUMN_DEFAULT",
    "COLUMN_KEY",
    "COLUMN_NAME",
    "COLUMN_TYPE",
    "CREATE_OPTIONS",
    "DATA_LENGTH",
    "DATA_TYPE",
    "DATETIME_PRECISION",
    "DEFAULT_CHARACTER_SET_NAME",
    "DEFAULT_COLLATION_NAME",
    "ENGINE",
    "EXTRA",
    "GENERATION_EXPRESSION",
    "INDEX_LENGTH",
    "IS_NULLABLE",
    "NUMERIC_PRECISION",
    "NUMERIC_SCALE",
    "ORDINAL_POSITION",
    "PRIVILEGES",
    "ROW_FORMAT",
    "SCHEMA_NAME",
    "SQL_PATH",
    "TABLE_CATALOG",
    "TABLE_COLLATION",
    "TABLE_COMMENT",
    "TABLE_NAME",
    "TABLE_ROWS",
    "TABLE_SCHEMA",
    "TABLE_TYPE",
    "VERSION",
];

/// A question for the catalogue in ClickHouse's words; none if it is no such.
pub(crate) fn asked(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    if !SCHEMAS.iter().any(|schema| lower.contains(schema)) {
        return None;
    }
    let described = described(text);
    let text = described.as_deref().unwrap_or(text);
    let replaced = catalog::replace_by(&inside(&filtered(&named(text))), table)?;
    // ClickHouse compares names by their bytes, and so knows no collation of them.
    Some(replaced.replace(" COLLATE utf8mb4_general_ci", " "))
}

/// A place where a table of these schemas is named: its tokens, its name, and how it is called.
struct Named<'t> {
    at: usize,
    schema: &'t str,
    table: &'t str,
    called: &'t str,
}

fn bare(token: &str) -> &str {
    token.trim_matches('`')
}

/// The tables of these schemas that a statement names.
fn tables<'t>(all: &[Token<'t>]) -> Vec<Named<'t>> {
    /// Words that may follow a table, and are no name for it.
    const NO_NAMES: &[&str] = &[
        "WHERE", "ORDER", "GROUP", "HAVING", "LIMIT", "JOIN", "LEFT", "INNER", "RIGHT", "CROSS",
        "NATURAL", "ON", "USING", "UNION",
    ];
    let mut found = Vec::new();
    for (at, three) in all.windows(3).enumerate() {
        let schema = SCHEMAS
            .iter()
            .find(|schema| bare(three[0].text).eq_ignore_ascii_case(schema));
        let (Some(schema), ".") = (schema, three[1].text) else {
            continue;
        };
        let is_behind = at > 0
            && ["FROM", "JOIN", ","]
                .iter()
                .any(|word| all[at - 1].is(word));
        if !is_behind {
            continue;
        }
        let table = bare(three[2].text);
        let mut rest = all[at + 3..].iter().skip_while(|token| token.is("AS"));
        let alias = rest.next().map(|token| bare(token.text)).filter(|word| {
            word.starts_with(|c: char| c.is_ascii_alphabetic())
                && !NO_NAMES.iter().any(|no| no.eq_ignore_ascii_case(word))
        });
        let called = alias.unwrap_or(table);
        found.push(Named {
            at,
            schema,
            table,
            called,
        });
    }
    found
}

/// Names of schemas and columns as they are here. Where one table is asked, a column is said to be its,
/// since to ClickHouse a name behind AS hides it everywhere.
fn named(text: &str) -> String {
    let all = tokens(text);
    let tables = tables(&all);
    let ends = ["HAVING", "GROUP", "ORDER", "UNION"];
    let end = all
        .iter()
        .position(|token| ends.iter().any(|end| token.is(end)));
    let (mut out, mut from) = (String::new(), 0);
    let mut put = |token: &Token<'_>, words: &str| {
        out += &text[from..token.at];
        out += words;
        from = token.end();
    };
    for (at, token) in all.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| all[before].text);
        let after = all.get(at + 1).map_or("", |after| after.text);
        if let Some(table) = tables.iter().find(|table| table.at == at) {
            put(token, table.schema);
        } else if let Some(table) = tables.iter().find(|table| table.at + 2 == at) {
            put(token, table.table);
        } else if before.eq_ignore_ascii_case("AS") || after == "(" {
            // An alias, or a function.
        } else if let Some(name) = NAMES
            .iter()
            .find(|name| bare(token.text).eq_ignore_ascii_case(name))
        {
            match &tables[..] {
                [only] if before != "." && end.is_none_or(|end| at < end) => {
                    put(token, &format!("\"{}\".{name}", only.called));
                }
                _ => put(token, name),
            }
        }
    }
    out + &text[from..]
}

/// A statement about one table with its condition inside of that: outside, names behind AS would hide
/// the table's columns there, too.
fn inside(text: &str) -> String {
    let all = tokens(text);
    let tables = tables(&all);
    let [only] = &tables[..] else {
        return text.to_owned();
    };
    let behind = &all[only.at + 3..];
    let words = behind.iter().take_while(|token| !token.is("WHERE")).count();
    if words > 2 || words == behind.len() {
        return text.to_owned();
    }
    let (mut depth, mut to) = (0_i32, text.len());
    for token in &behind[words..] {
        depth += i32::from(token.text == "(") - i32::from(token.text == ")");
        let ends = ["GROUP", "HAVING", "ORDER", "LIMIT", "UNION"];
        if depth < 0 || depth == 0 && ends.iter().any(|end| token.is(end)) {
            to = token.at;
            break;
        }
    }
    let (from, condition) = (all[only.at].at, &text[behind[words].at..to]);
    let Named {
        schema,
        table,
        called,
        ..
    } = only;
    let (before, rest) = (&text[..from], &text[to..]);
    format!(
        "{before}(SELECT * FROM {schema}.{table} AS \"{called}\" {condition}) AS \"{called}\" {rest}"
    )
}

/// Columns of a table as drivers of Java describe them: `DatabaseMetaData.getColumns`. Numbers of types
/// are those of `java.sql.Types`. Inside names are short, since an alias hides what is called so.
/// <https://docs.oracle.com/en/java/javase/17/docs/api/java.sql/java/sql/DatabaseMetaData.html>
const DESCRIBED: &str = r"SELECT a AS TABLE_CAT, NULL AS TABLE_SCHEM, b AS TABLE_NAME, c AS COLUMN_NAME,
    transform(d, ['tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'decimal', 'date', 'datetime', 'enum', 'json'],
        [-6, 5, 4, -5, 7, 8, 3, 91, 93, 1, -1], 12) AS DATA_TYPE, upper(e) AS TYPE_NAME,
    transform(d, ['tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'decimal', 'date', 'datetime', 'enum'],
        [3, 5, 10, 19, 12, 22, 65, 10, 26, 255], 65535) AS COLUMN_SIZE, 65535 AS BUFFER_LENGTH,
    if(d = 'decimal', 30, NULL) AS DECIMAL_DIGITS, 10 AS NUM_PREC_RADIX, if(f = 'YES', 1, 0) AS NULLABLE,
    g AS REMARKS, h AS COLUMN_DEF, 0 AS SQL_DATA_TYPE, 0 AS SQL_DATETIME_SUB, 65535 AS CHAR_OCTET_LENGTH,
    i AS ORDINAL_POSITION, f AS IS_NULLABLE, NULL AS SCOPE_CATALOG, NULL AS SCOPE_SCHEMA, NULL AS SCOPE_TABLE,
    NULL AS SOURCE_DATA_TYPE, 'NO' AS IS_AUTOINCREMENT, 'NO' AS IS_GENERATEDCOLUMN FROM (SELECT TABLE_SCHEMA AS a, TABLE_NAME AS b,
    COLUMN_NAME AS c, DATA_TYPE AS d, COLUMN_TYPE AS e, IS_NULLABLE AS f, COLUMN_COMMENT AS g, COLUMN_DEFAULT AS h, ORDINAL_POSITION AS i
    FROM information_schema.COLUMNS ";

/// A question that asks for a description of columns, with the expressions of MySQL in place of which
/// [`DESCRIBED`] stands; which columns it asks for stays.
fn described(text: &str) -> Option<String> {
    let all = tokens(text);
    let has = |word: &str| all.iter().any(|token| token.is(word));
    let tables = tables(&all);
    let [only] = &tables[..] else { return None };
    let is_it = only.table.eq_ignore_ascii_case("columns")
        && ["NUM_PREC_RADIX", "SQL_DATETIME_SUB", "IS_GENERATEDCOLUMN"]
            .iter()
            .all(|word| has(word));
    let place = |word: &str| {
        all[only.at..]
            .iter()
            .find(|token| token.is(word))
            .map(|token| token.at)
    };
    let (from, to) = (place("WHERE"), place("ORDER").unwrap_or(text.len()));
    let condition = from.and_then(|from| text.get(from..to)).unwrap_or_default();
    is_it.then(|| {
        format!("{DESCRIBED}{condition}) ORDER BY TABLE_CAT, TABLE_NAME, ORDINAL_POSITION")
    })
}

/// A statement with HAVING and without GROUP BY as one that filters the rows of another.
fn filtered(text: &str) -> String {
    let all = tokens(text);
    let find = |word: &str| all.iter().position(|token| token.is(word));
    let (Some(having), None) = (find("HAVING"), find("GROUP")) else {
        return text.to_owned();
    };
    let from = all[having].at;
    let to = find("ORDER").filter(|order| *order > having);
    let to = to.map_or(text.len(), |order| all[order].at);
    // What the rows are ordered by may be a column that is not among the results.
    let (before, filter, order) = (&text[..from], &text[from + "HAVING".len()..to], &text[to..]);
    format!("SELECT * FROM ({before}{order}) WHERE{filter}")
}

/// `information_schema.columns`. Drivers look for MySQL's names of types; ClickHouse's own are the
/// comments. Positions grow, over all tables.
pub(crate) const COLUMNS: &str = r"SELECT 'def' AS TABLE_CATALOG, database AS TABLE_SCHEMA, table AS TABLE_NAME, name AS COLUMN_NAME,
    rowNumberInAllBlocks() + 1 AS ORDINAL_POSITION, if(default_expression = '', NULL, default_expression) AS COLUMN_DEFAULT,
    if(type LIKE '%Nullable(%', 'YES', 'NO') AS IS_NULLABLE,
    replaceRegexpAll(type, '^(LowCardinality[(])?(Nullable[(])?|[)]+$', '') AS bare,
    transform(bare, ['Int8', 'UInt8', 'Int16', 'UInt16', 'Int32', 'UInt32', 'Int64', 'UInt64', 'Float32', 'Float64', 'Date', 'Date32'],
        ['tinyint', 'tinyint', 'smallint', 'smallint', 'int', 'int', 'bigint', 'bigint', 'float', 'double', 'date', 'date'],
        multiIf(bare LIKE 'DateTime%', 'datetime', bare LIKE 'Decimal%', 'decimal', bare LIKE 'Enum%', 'enum',
            bare LIKE 'Array%' OR bare LIKE 'Tuple%' OR bare LIKE 'Map%', 'json', 'varchar')) AS DATA_TYPE,
    if(DATA_TYPE = 'varchar', toUInt64(65535), NULL) AS CHARACTER_MAXIMUM_LENGTH,
    CHARACTER_MAXIMUM_LENGTH AS CHARACTER_OCTET_LENGTH, if(0, toUInt64(0), NULL) AS NUMERIC_PRECISION,
    if(0, toUInt64(0), NULL) AS NUMERIC_SCALE, if(DATA_TYPE = 'datetime', toUInt64(0), NULL) AS DATETIME_PRECISION,
    if(DATA_TYPE = 'varchar', 'utf8mb4', NULL) AS CHARACTER_SET_NAME, if(DATA_TYPE = 'varchar', 'utf8mb4_general_ci', NULL) AS COLLATION_NAME,
    multiIf(DATA_TYPE = 'varchar', 'varchar(65535)', DATA_TYPE = 'enum', 'varchar(255)', DATA_TYPE = 'decimal',
        concat('decimal(', replaceRegexpAll(bare, '[^0-9,]', ''), ')'), concat(DATA_TYPE, if(bare LIKE 'UInt%', ' unsigned', ''))) AS COLUMN_TYPE, '' AS COLUMN_KEY, '' AS EXTRA, 'select' AS PRIVILEGES,
    type AS COLUMN_COMMENT, '' AS GENERATION_EXPRESSION FROM system.columns";

/// A table of `information_schema`.
fn table(name: &str) -> Option<String> {
    Some(match name {
        "schemata" => "(SELECT 'def' AS CATALOG_NAME, name AS SCHEMA_NAME, 'utf8mb4' AS DEFAULT_CHARACTER_SET_NAME, \
             'utf8mb4_general_ci' AS DEFAULT_COLLATION_NAME FROM system.databases)"
            .into(),
        "tables" => "(SELECT 'def' AS TABLE_CATALOG, database AS TABLE_SCHEMA, name AS TABLE_NAME, \
             if(engine LIKE '%View', 'VIEW', 'BASE TABLE') AS TABLE_TYPE, engine AS ENGINE, 10 AS VERSION, 'Dynamic' AS ROW_FORMAT, \
             toUInt64(0) AS TABLE_ROWS, toUInt64(0) AS DATA_LENGTH, 'utf8mb4_general_ci' AS TABLE_COLLATION, '' AS CREATE_OPTIONS, \
             '' AS TABLE_COMMENT FROM system.tables)"
            .into(),
        "columns" => format!("({COLUMNS})"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_any_letters_and_quotes() {
        let lower = asked(
            "SELECT table_name FROM `information_schema`.`tables` WHERE table_schema = 'table_name'",
        );
        let lower = lower.unwrap();
        assert!(
            lower.starts_with("SELECT \"tables\".TABLE_NAME FROM (SELECT * FROM (SELECT 'def'"),
            "{lower}"
        );
        assert!(
            lower.ends_with(
                "AS \"tables\" WHERE \"tables\".TABLE_SCHEMA = 'table_name') AS \"tables\" "
            ),
            "{lower}"
        );
        assert_eq!(asked("SELECT 'information_schema.tables'"), None);
        assert_eq!(asked("SELECT table_name FROM t"), None);
    }

    #[test]
    fn a_column_may_be_hidden_by_its_own_name_and_filtered_behind_it() {
        let sql = "SELECT CASE WHEN TABLE_TYPE='BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END AS TABLE_TYPE \
                   FROM INFORMATION_SCHEMA.TABLES t HAVING TABLE_TYPE IN ('TABLE') ORDER BY TABLE_TYPE";
        let sql = asked(sql).unwrap();
        assert!(
            sql.starts_with("SELECT * FROM (SELECT CASE WHEN \"t\".TABLE_TYPE='BASE TABLE' THEN 'TABLE' ELSE \"t\".TABLE_TYPE END AS TABLE_TYPE FROM ("),
            "{sql}"
        );
        assert!(
            sql.ends_with(" t ORDER BY TABLE_TYPE) WHERE TABLE_TYPE IN ('TABLE') "),
            "{sql}"
        );
    }

    #[test]
    fn descriptions_of_columns_are_those_that_drivers_want() {
        let sql = "SELECT TABLE_SCHEMA TABLE_CAT, IF(COLUMN_TYPE like 'bit(1)%', 1, UCASE(DATA_TYPE)) TYPE_NAME, 10 AS NUM_PREC_RADIX, \
                   0 SQL_DATETIME_SUB, 'NO' IS_GENERATEDCOLUMN FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 't' ORDER BY TABLE_CAT";
        let sql = asked(sql).unwrap();
        assert!(
            !sql.contains("UCASE") && sql.contains("AS TYPE_NAME"),
            "{sql}"
        );
        assert!(
            sql.contains(" AS \"COLUMNS\" WHERE \"COLUMNS\".TABLE_NAME = 't' ) AS \"COLUMNS\" ) ORDER BY TABLE_CAT"),
            "{sql}"
        );
    }

    #[test]
    fn tables_that_are_not_there_have_no_rows() {
        for sql in [
            "SELECT * FROM information_schema.routines",
            "SELECT st.* FROM performance_schema.events_statements_current st",
            "SELECT user FROM `mysql`.`user`",
        ] {
            assert_eq!(asked(sql).unwrap(), "SELECT NULL AS Data WHERE 0", "{sql}");
        }
    }
}
