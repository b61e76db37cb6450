//! Copies of tables on another server: how their columns are read, made and written, so that each
//! value is what it was.
//!
//! Strings travel as their bytes in the column's character set, TIMESTAMPs as seconds, FLOATs as DOUBLEs:
//! none depends on what a session has set.
//! <https://dev.mysql.com/doc/refman/9.4/en/show-columns.html>

use crate::merge::Row;
use shards::Columns;
use std::fmt::Write as _;

/// Settings of the connection that gets copies, while rows are written there; those of before are kept.
/// Without strict mode, a value that does not fit would be another; zeros in dates are values, too.
pub const BEFORE_COPIES: &str = "SET @millrace_mode = @@sql_mode, @millrace_zone = @@time_zone, @millrace_limit = @@sql_select_limit, \
    @millrace_client = @@character_set_client, @millrace_results = @@character_set_results, @millrace_collation = @@collation_connection, \
    sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', sql_select_limit = 18446744073709551615, \
    character_set_client = utf8mb4, character_set_results = utf8mb4, collation_connection = utf8mb4_general_ci";
/// Settings of before, again.
pub const BEHIND_COPIES: &str = "SET sql_mode = @millrace_mode, time_zone = @millrace_zone, sql_select_limit = @millrace_limit, \
    character_set_client = @millrace_client, character_set_results = @millrace_results, collation_connection = @millrace_collation";

/// Bytes that the columns of a key may have at most, four a character.
const KEY_LEN_MAX: usize = 3000;

/// How a value is read, and written as a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Travels {
    /// Digits, a date, a time.
    AsText,
    /// Text that its type reads as UTF-8.
    AsUtf8,
    /// The bytes that are stored.
    AsBytes,
    /// A FLOAT, whose text has too few digits.
    AsDouble,
    /// A TIMESTAMP, whose text depends on the time zone, and may mean two moments.
    AsSeconds,
}

/// A column of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    name: String,
    kind: String,
    collation: Option<String>,
    nullable: bool,
    invisible: bool,
    generated: bool,
    travels: Travels,
}

/// The columns of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    columns: Vec<Column>,
    /// Columns of a unique key without NULL.
    key: Vec<String>,
}

impl Layout {
    /// Question for the columns of a table.
    #[must_use]
    pub fn question(table: &str) -> String {
        format!("SHOW FULL COLUMNS FROM {table}")
    }

    /// Reads the answer. `columns`: those that are needed. `key`: a column that a unique key must have
    /// to be kept.
    ///
    /// # Errors
    /// A sentence, if that is no such answer.
    pub fn read(rows: &[Row], columns: &Columns, key: Option<&str>) -> Result<Self, String> {
        let mut all = Vec::new();
        let mut unique = Vec::new();
        for row in rows {
            let text = |at: usize| match row.get(at) {
                Some(Some(text)) => String::from_utf8(text.clone()).ok(),
                _ => None,
            };
            let (Some(name), Some(kind)) = (text(0), text(1)) else {
                return Err("the columns of its tables are not told in UTF-8".into());
            };
            if text(4).as_deref() == Some("PRI") {
                unique.push((name.clone(), kind.clone()));
            }
            let extra = text(6).unwrap_or_default();
            let is_invisible = extra.contains("INVISIBLE");
            // What stands in a comment is the server's own matter.
            let kind = kind
                .split("/*")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned();
            all.push(Column {
                travels: Travels::of(&kind),
                collation: text(2),
                // An INVISIBLE one without a default must be able to be NULL.
                nullable: is_invisible || text(3).as_deref() != Some("NO"),
                invisible: is_invisible && *columns == Columns::All,
                // Not DEFAULT_GENERATED, which says that a default is an expression.
                generated: extra.contains("VIRTUAL GENERATED")
                    || extra.contains("STORED GENERATED"),
                name,
                kind,
            });
        }
        let first = all.first().cloned();
        all.retain(|column| columns.has(&column.name));
        if all.is_empty() {
            // Rows are counted only.
            all.extend(first.map(|first| Column {
                invisible: false,
                ..first
            }));
        }
        if all.is_empty() {
            return Err("a table of it has no columns".into());
        }
        let has = |name: &str| all.iter().any(|column| column.name == name);
        let is_kept = key.is_none_or(|key| {
            unique
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(key))
        }) && unique.iter().all(|(name, _)| has(name))
            && unique
                .iter()
                .try_fold(0, |sum: usize, (_, kind)| Some(sum + key_len(kind)?))
                .is_some_and(|sum| sum <= KEY_LEN_MAX);
        let key = match is_kept {
            true => unique.into_iter().map(|(name, _)| name).collect(),
            false => Vec::new(),
        };
        Ok(Self { columns: all, key })
    }

    /// Only the columns that an INSERT may give a value.
    #[must_use]
    pub fn stored(mut self) -> Self {
        self.columns.retain(|column| !column.generated);
        self
    }

    /// Whether the names can be said in any character set.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.columns.iter().all(|column| column.name.is_ascii())
    }

    /// The beginning of a SELECT that reads rows, up to FROM.
    #[must_use]
    pub fn selects(&self) -> String {
        let all = self.columns.iter().map(|column| {
            let name = quoted(&column.name);
            match column.travels {
                Travels::AsDouble => format!("{name} + 0e0"),
                Travels::AsSeconds => format!("UNIX_TIMESTAMP({name})"),
                Travels::AsText | Travels::AsUtf8 | Travels::AsBytes => name,
            }
        });
        format!("SELECT {} ", all.collect::<Vec<_>>().join(", "))
    }

    /// The statement that makes a copy without rows.
    #[must_use]
    pub fn creates(&self, copy: &str) -> String {
        let mut out = format!("CREATE TEMPORARY TABLE {copy} (");
        for (number, column) in self.columns.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            let _ = write!(out, "{comma}{} {}", quoted(&column.name), column.kind);
            if let Some(collation) = &column.collation {
                let _ = write!(out, " COLLATE {collation}");
            }
            out.push_str(if column.nullable {
                " NULL"
            } else {
                " NOT NULL"
            });
            if column.invisible {
                out.push_str(" INVISIBLE");
            }
        }
        if !self.key.is_empty() {
            let key: Vec<_> = self.key.iter().map(|name| quoted(name)).collect();
            let _ = write!(out, ", PRIMARY KEY ({})", key.join(", "));
        }
        out.push(')');
        out
    }

    /// The statement that makes a copy of a copy.
    #[must_use]
    pub fn repeats(&self, from: &str, copy: &str) -> String {
        let names = self.names();
        format!("INSERT INTO {copy} ({names}) SELECT {names} FROM {from}")
    }

    /// The beginning of an INSERT, up to its first row.
    #[must_use]
    pub fn inserts(&self, copy: &str) -> String {
        format!("INSERT INTO {copy} ({}) VALUES ", self.names())
    }

    /// Writes a row of an INSERT.
    pub fn write(&self, row: &Row, out: &mut Vec<u8>) {
        let mut sign = b'(';
        for (column, cell) in self.columns.iter().zip(row) {
            out.push(sign);
            sign = b',';
            let Some(cell) = cell else {
                out.extend_from_slice(b"NULL");
                continue;
            };
            match column.travels {
                Travels::AsText | Travels::AsUtf8 | Travels::AsDouble => escaped(cell, out),
                Travels::AsBytes => {
                    out.extend_from_slice(b"_binary");
                    escaped(cell, out);
                }
                // A moment that is none.
                Travels::AsSeconds if cell.iter().all(|byte| matches!(byte, b'0' | b'.')) => {
                    out.extend_from_slice(b"'0000-00-00 00:00:00'");
                }
                Travels::AsSeconds => {
                    out.extend_from_slice(b"FROM_UNIXTIME(");
                    out.extend_from_slice(cell);
                    out.push(b')');
                }
            }
        }
        out.push(b')');
    }

    fn names(&self) -> String {
        let names = self.columns.iter().map(|column| quoted(&column.name));
        names.collect::<Vec<_>>().join(", ")
    }
}

impl Travels {
    fn of(kind: &str) -> Self {
        match word(kind).as_str() {
            "float" => Self::AsDouble,
            "timestamp" => Self::AsSeconds,
            "json" | "uuid" | "inet4" | "inet6" => Self::AsUtf8,
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "double"
            | "date" | "datetime" | "time" | "year" => Self::AsText,
            _ => Self::AsBytes,
        }
    }
}

/// The name of a type, without its length.
fn word(kind: &str) -> String {
    let letters = kind.chars().take_while(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_ascii_lowercase()
}

/// Bytes that a column may have in a key; `None` for types without a known length.
fn key_len(kind: &str) -> Option<usize> {
    match word(kind).as_str() {
        "char" | "varchar" | "binary" | "varbinary" => {
            let (_, rest) = kind.split_once('(')?;
            let (digits, _) = rest.split_once(')')?;
            digits.trim().parse::<usize>().ok()?.checked_mul(4)
        }
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "double"
        | "float" | "date" | "datetime" | "time" | "timestamp" | "year" | "enum" | "set" => {
            Some(32)
        }
        _ => None,
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A string in quotes, where a backslash escapes. No byte of a character in UTF-8 looks like one that
/// needs it.
fn escaped(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in bytes {
        match byte {
            0 => out.extend_from_slice(b"\\0"),
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            _ => out.push(*byte),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [Option<&str>; 7]) -> Row {
        cells
            .map(|cell| cell.map(|cell| cell.as_bytes().to_vec()))
            .to_vec()
    }

    fn layout(columns: &Columns, key: Option<&str>) -> Layout {
        let rows = [
            row([
                Some("k"),
                Some("int(11)"),
                None,
                Some("NO"),
                Some("PRI"),
                None,
                Some(""),
            ]),
            row([
                Some("b"),
                Some("varchar(20)"),
                Some("utf8mb4_bin"),
                Some("YES"),
                Some(""),
                None,
                Some(""),
            ]),
            row([
                Some("f"),
                Some("float"),
                None,
                Some("YES"),
                Some(""),
                None,
                Some("INVISIBLE"),
            ]),
            row([
                Some("at"),
                Some("timestamp(3)"),
                None,
                Some("NO"),
                Some(""),
                None,
                Some(""),
            ]),
        ];
        Layout::read(&rows, columns, key).unwrap()
    }

    #[test]
    fn a_copy_has_the_columns_of_its_table() {
        let all = layout(&Columns::All, Some("K"));
        assert_eq!(
            all.creates("`millrace_1`"),
            "CREATE TEMPORARY TABLE `millrace_1` (`k` int(11) NOT NULL, `b` varchar(20) COLLATE utf8mb4_bin NULL, \
             `f` float NULL INVISIBLE, `at` timestamp(3) NOT NULL, PRIMARY KEY (`k`))"
        );
        assert_eq!(
            all.selects(),
            "SELECT `k`, `b`, `f` + 0e0, UNIX_TIMESTAMP(`at`) "
        );
        let other = layout(&Columns::All, Some("b"));
        assert!(
            !other.creates("x").contains("PRIMARY"),
            "it may be there twice"
        );
        let few = Columns::Named([b"b".to_vec(), b"x".to_vec()].into());
        assert_eq!(layout(&few, None).selects(), "SELECT `b` ");
        let none = Columns::Named([b"x".to_vec()].into());
        assert_eq!(layout(&none, None).selects(), "SELECT `k` ");
    }

    #[test]
    fn a_row_is_written_as_it_was() {
        let all = layout(&Columns::All, None);
        let mut out = Vec::new();
        let cells = [Some("7"), Some("it's \\ \0"), None, Some("1230000000.250")];
        let row = cells
            .map(|cell| cell.map(|cell| cell.as_bytes().to_vec()))
            .to_vec();
        all.write(&row, &mut out);
        let wanted = r"('7',_binary'it\'s \\ \0',NULL,FROM_UNIXTIME(1230000000.250))";
        assert_eq!(String::from_utf8_lossy(&out), wanted);
        let mut out = Vec::new();
        let cells = [Some("7"), None, None, Some("0.000")];
        let row = cells
            .map(|cell| cell.map(|cell| cell.as_bytes().to_vec()))
            .to_vec();
        all.write(&row, &mut out);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "('7',NULL,NULL,'0000-00-00 00:00:00')"
        );
    }
}
