//! SQLite's rows as MySQL's: a column's type is what its declaration says and its first rows
//! confirm.

use rusqlite::types::{Value as Sqlite, ValueRef};
use wire::execute::Value;
use wire::resultset::{Column, UTF8MB4};
use wire::types::Type;

/// So many rows are looked at before the types of the columns are told.
pub(crate) const LOOKED_AT: usize = 100;

/// Types of values that were seen in a column.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    integer: bool,
    real: bool,
    text: bool,
    blob: bool,
}

impl Seen {
    pub(crate) fn see(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(_) => self.integer = true,
            ValueRef::Real(_) => self.real = true,
            ValueRef::Text(_) => self.text = true,
            ValueRef::Blob(_) => self.blob = true,
        }
    }
}

/// The definition of a column. SQLite's rules of affinity:
/// <https://www.sqlite.org/datatype3.html#determination_of_column_affinity>.
pub(crate) fn column(name: &str, declared: Option<&str>, seen: Seen) -> Column {
    let declared = declared.unwrap_or_default().to_ascii_uppercase();
    let says = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    let column = match seen {
        Seen { blob: true, .. } => Column::blob(name),
        Seen { text: true, .. } => Column::text(name),
        Seen { real: true, .. } => Column::double(name),
        Seen { integer: true, .. } if says(&["REAL", "FLOA", "DOUB"]) => Column::double(name),
        Seen { integer: true, .. } => Column::integer(name),
        _ if says(&["INT", "BOOL"]) => Column::integer(name),
        _ if says(&["REAL", "FLOA", "DOUB"]) => Column::double(name),
        _ if says(&["BLOB", "BINARY"]) => Column::blob(name),
        _ => Column::text(name),
    };
    // Clients that lay out columns by their length would waste space on a megabyte.
    if column.kind == Type::VAR_STRING {
        Column {
            charset: UTF8MB4,
            length: 65_535,
            ..column
        }
    } else {
        column
    }
}

/// A value for the wire.
pub(crate) fn value(value: ValueRef<'_>) -> Value<'_> {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(number) => Value::Double(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Value::Bytes(bytes),
    }
}

/// Whether a value can be sent in a column of this type.
pub(crate) fn fits(column: &Column, value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Text(_) | ValueRef::Blob(_) => {
            !matches!(column.kind, Type::LONGLONG | Type::DOUBLE)
        }
        ValueRef::Real(_) => column.kind != Type::LONGLONG,
        ValueRef::Null | ValueRef::Integer(_) => true,
    }
}

/// A parameter for SQLite. Dates and times are the texts that its own functions understand.
pub(crate) fn parameter(value: &Value<'_>) -> Sqlite {
    match value {
        Value::Null => Sqlite::Null,
        Value::Int(number) => Sqlite::Integer(*number),
        Value::Uint(number) => {
            i64::try_from(*number).map_or_else(|_| Sqlite::Real(*number as f64), Sqlite::Integer)
        }
        Value::Float(number) => Sqlite::Real(f64::from(*number)),
        Value::Double(number) => Sqlite::Real(*number),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Sqlite::Text(text.to_owned()),
            Err(_) => Sqlite::Blob(bytes.to_vec()),
        },
        other => Sqlite::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(declared: &str, values: &[ValueRef<'_>]) -> Type {
        let mut seen = Seen::default();
        values.iter().for_each(|value| seen.see(*value));
        column("c", Some(declared), seen).kind
    }

    #[test]
    fn types_are_what_was_seen_and_else_what_was_declared() {
        assert_eq!(kind("INTEGER", &[]), Type::LONGLONG);
        assert_eq!(kind("VARCHAR(10)", &[ValueRef::Null]), Type::VAR_STRING);
        assert_eq!(kind("BLOB", &[]), Type::BLOB);
        assert_eq!(kind("DOUBLE", &[ValueRef::Integer(1)]), Type::DOUBLE);
        assert_eq!(
            kind("", &[ValueRef::Integer(1), ValueRef::Null]),
            Type::LONGLONG
        );
        assert_eq!(
            kind("INTEGER", &[ValueRef::Integer(1), ValueRef::Real(0.5)]),
            Type::DOUBLE
        );
        assert_eq!(
            kind("INTEGER", &[ValueRef::Integer(1), ValueRef::Text(b"x")]),
            Type::VAR_STRING
        );
        assert_eq!(kind("TEXT", &[ValueRef::Blob(b"x")]), Type::BLOB);
    }
}
