//! The definition of a table, as its server tells it.

use crate::record::Record;
use crate::table::{Cells, Class, Column, Table, quoted, string};
use crate::world::Trouble;
use line::Line;

/// A cell as a text; empty for NULL.
pub(crate) fn text(row: &Cells, at: usize) -> String {
    let cell = row.get(at).and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(cell).into_owned()
}

/// The first cell of the first row of an answer; empty if there is none.
pub(crate) async fn one(line: &mut Line, sql: &str) -> Result<String, Trouble> {
    let rows = line.ask(sql).await?;
    Ok(rows.first().map(|row| text(row, 0)).unwrap_or_default())
}

/// Whether a server has this table.
pub(crate) async fn is_there(line: &mut Line, schema: &str, table: &str) -> Result<bool, Trouble> {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE {}",
        is_it(schema, table, "TABLE_SCHEMA", "TABLE_NAME")
    );
    Ok(one(line, &sql).await? != "0")
}

pub(crate) fn is_it(schema: &str, table: &str, of: &str, named: &str) -> String {
    format!("{of} = {} AND {named} = {}", string(schema), string(table))
}

/// Returns the statement that makes the table.
pub(crate) async fn definition(
    line: &mut Line,
    schema: &str,
    table: &str,
) -> Result<String, Trouble> {
    let whole = whole_definition(line, schema, table).await?;
    Ok(around_counter(&whole).map_or_else(
        || whole.clone(),
        |(before, _, behind)| format!("{before}{behind}"),
    ))
}

async fn whole_definition(line: &mut Line, schema: &str, table: &str) -> Result<String, Trouble> {
    let rows = line
        .ask(&format!("SHOW CREATE TABLE {}", quoted(schema, table)))
        .await?;
    Ok(rows.first().map(|row| text(row, 1)).unwrap_or_default())
}

/// The number that the next row gets from AUTO_INCREMENT.
pub(crate) async fn counter(line: &mut Line, table: &Table) -> Result<Option<u64>, Trouble> {
    let whole = whole_definition(line, &table.schema, &table.name).await?;
    let counter = around_counter(&whole).map(|(_, counter, _)| counter.parse());
    Ok(counter.and_then(Result::ok))
}

/// The next number is no part of a definition, and changes with each row: what stands before it, the
/// number, and what stands behind it.
fn around_counter(definition: &str) -> Option<(&str, &str, &str)> {
    const COUNTER: &str = " AUTO_INCREMENT=";
    let options = definition.rfind("\n)").unwrap_or(0);
    let at = options + definition[options..].find(COUNTER)?;
    let behind = &definition[at + COUNTER.len()..];
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    Some((&definition[..at], &behind[..digits], &behind[digits..]))
}

/// The table of a record as its source has it, with the column that tells which rows are of the part
/// that goes.
pub(crate) async fn parted_table(line: &mut Line, record: &Record) -> Result<Table, Trouble> {
    let mut whole = table(line, &record.database, &record.physical).await?;
    if let Some(split) = &record.split {
        let mut columns = whole.columns.iter();
        let at = columns.position(|column| column.name.eq_ignore_ascii_case(&split.column));
        let none = || {
            Trouble::Over(format!(
                "{}.{} has no column {}, by which the map spreads it",
                record.database, record.physical, split.column
            ))
        };
        whole.by = Some(at.ok_or_else(none)?);
    }
    Ok(whole)
}

/// Columns and key of a table.
pub(crate) async fn table(line: &mut Line, schema: &str, name: &str) -> Result<Table, Trouble> {
    let of_it = is_it(schema, name, "TABLE_SCHEMA", "TABLE_NAME");
    let rows = line
        .ask(&format!(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA, \
             CHARACTER_OCTET_LENGTH, IS_NULLABLE FROM information_schema.COLUMNS WHERE {of_it} ORDER BY ORDINAL_POSITION"
        ))
        .await?;
    let columns = rows.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let nullable: Vec<_> = rows.iter().map(|row| text(row, 7) == "YES").collect();
    let rows = line
        .ask(&format!(
            "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE {of_it} AND NON_UNIQUE = 0 \
             ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"
        ))
        .await?;
    let key = key(&rows, &columns, &nullable).ok_or_else(|| {
        Trouble::Over(format!(
            "{} has no key by which a row is found: it needs a primary key, or a unique one that is never NULL, of numbers, strings, dates or times",
            quoted(schema, name)
        ))
    })?;
    Ok(Table {
        schema: schema.to_owned(),
        name: name.to_owned(),
        columns,
        key,
        by: None,
    })
}

/// The columns of the first key that will do.
fn key(rows: &[Cells], columns: &[Column], nullable: &[bool]) -> Option<Vec<usize>> {
    let mut names: Vec<String> = rows.iter().map(|row| text(row, 0)).collect();
    names.dedup();
    let will_do = |name: &String| {
        let own = rows.iter().filter(|row| text(row, 0) == *name);
        own.map(|row| {
            let named = text(row, 1);
            let at = columns.iter().position(|column| column.name == named)?;
            let column = &columns[at];
            let is_whole = text(row, 2).is_empty();
            let fits = is_whole && !nullable[at] && !column.generated && column.class.may_be_key();
            fits.then_some(at)
        })
        .collect::<Option<Vec<_>>>()
    };
    names.iter().find_map(will_do)
}

fn column(row: &Cells) -> Result<Column, Trouble> {
    let (name, kind, whole) = (
        text(row, 0),
        text(row, 1).to_ascii_lowercase(),
        text(row, 2),
    );
    let (charset, collation, extra) = (text(row, 3), text(row, 4), text(row, 5));
    let class = match kind.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" => Class::Number,
        "float" | "double" => Class::Float,
        "enum" | "set" => Class::Member,
        "bit" => Class::Bit,
        "year" | "date" | "time" | "datetime" | "timestamp" => Class::Quoted,
        "uuid" | "inet4" | "inet6" => Class::Shown,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
            Class::Text(charset, collation)
        }
        "binary" => Class::Binary(text(row, 6).parse().unwrap_or(0)),
        "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector" => Class::Bytes,
        "json" => Class::Json,
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geomcollection" | "geometrycollection" => Class::Geometry,
        other => {
            return Err(Trouble::Over(format!(
                "its column {name} is of type {other}, which is not moved"
            )));
        }
    };
    let extra = extra.to_ascii_uppercase();
    let made = ["VIRTUAL GENERATED", "STORED GENERATED", "PERSISTENT"];
    Ok(Column {
        name,
        class,
        told: format!("{whole} {extra} {}", text(row, 7)),
        unsigned: whole.to_ascii_lowercase().contains("unsigned"),
        generated: made.iter().any(|words| extra.contains(words)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_number_is_no_part_of_a_definition() {
        let one = "CREATE TABLE `t` (\n  `a` int COMMENT ' AUTO_INCREMENT=5'\n) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=x";
        let without = "CREATE TABLE `t` (\n  `a` int COMMENT ' AUTO_INCREMENT=5'\n) ENGINE=InnoDB DEFAULT CHARSET=x";
        let (before, counter, behind) = around_counter(one).unwrap();
        assert_eq!(format!("{before}{behind}"), without);
        assert_eq!(counter, "17");
        assert_eq!(around_counter(without), None);
    }

    #[test]
    fn a_key_is_whole_and_never_null() {
        let column = |name: &str, class| Column {
            name: name.into(),
            class,
            told: String::new(),
            unsigned: false,
            generated: false,
        };
        let columns = [
            column("a", Class::Number),
            column("b", Class::Member),
            column("c", Class::Number),
        ];
        let row = |index: &str, of: &str, part: Option<&str>| -> Cells {
            let cell = |text: &str| Some(text.as_bytes().to_vec());
            vec![cell(index), cell(of), part.and_then(cell)]
        };
        let rows = [
            row("PRIMARY", "b", None),
            row("cut", "a", Some("4")),
            row("null", "c", None),
            row("null", "a", None),
        ];
        assert_eq!(key(&rows, &columns, &[false, false, true]), None);
        let nothing_null = [false; 3];
        assert_eq!(key(&rows, &columns, &nothing_null), Some(vec![2, 0]));
    }
}
