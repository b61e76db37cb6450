//! Rows that are there already, by what a server shows of their key: which partition they belong to.
//! A statement's value may be any text; this one is what the column has.

use crate::function::{Bucket, Function};
use crate::key::{Key, Reading, Value};
use crate::lookups::Entry;
use crate::map::Table;
use sql::tree::Literal;
use std::borrow::Cow;

/// Characters of `2008-12-24 13:14:15`: a fraction of a second is behind them.
const MOMENT_BYTES: usize = 19;

impl Table {
    /// Whether a row with this in its key column belongs to a home. A key that statements find at all
    /// partitions may stay where it is.
    ///
    /// # Errors
    /// A sentence: nobody but the server could tell.
    pub fn has_row(&self, home: usize, cell: Option<&[u8]>) -> Result<bool, String> {
        let Some(cell) = cell else {
            return Ok(home == 0);
        };
        let unclear = || self.unclear(home, cell);
        let value = match self.key {
            Key::Number { .. } => match whole_number(cell) {
                Some(number) => Value::Number(number),
                None => return Err(unclear()),
            },
            Key::Moment { .. } => {
                let moment = Literal::Text(Cow::Borrowed(&cell[..cell.len().min(MOMENT_BYTES)]));
                match self.key.stored(&moment, &self.function, true) {
                    Reading::Is(value) => value,
                    // A date that is none is found only where all partitions are asked.
                    _ => return Ok(home == 0),
                }
            }
            Key::Text { .. } | Key::Enum | Key::Unknown => {
                let text = Literal::Text(Cow::Borrowed(cell));
                match self.key.stored(&text, &self.function, true) {
                    Reading::Is(value) => value,
                    // Equal to nothing but itself, for which all partitions are asked.
                    _ if self.key == (Key::Text { exact: true }) => return Ok(home == 0),
                    _ if self.is_surely_elsewhere(home, cell) => return Ok(false),
                    _ => return Err(unclear()),
                }
            }
        };
        self.home_of_key(&value)
            .map(|own| own == home)
            .ok_or_else(unclear)
    }

    /// Entry of a row with this in its key column, as look-ups have it.
    #[must_use]
    pub fn entry_of_cell(&self, cell: Option<&[u8]>) -> Entry {
        let Some(cell) = cell else {
            return Entry::Null;
        };
        if let Key::Number { .. } = self.key {
            let number = whole_number(cell).map(Value::Number);
            return number.map_or(Entry::Any, |number| self.entry(&number));
        }
        let shown = match self.key {
            Key::Moment { .. } => &cell[..cell.len().min(MOMENT_BYTES)],
            _ => cell,
        };
        let shown = Literal::Text(Cow::Borrowed(shown));
        match self.key.stored(&shown, &self.function, true) {
            Reading::Is(value) => self.entry(&value),
            _ => Entry::Any,
        }
    }

    /// Whether a text that is not certain begins otherwise than all buckets of a home, whatever a
    /// collation makes of what follows.
    fn is_surely_elsewhere(&self, home: usize, cell: &[u8]) -> bool {
        let is_prefix = matches!(
            self.function,
            Function::None | Function::List | Function::Prefix(_)
        );
        if !is_prefix || home == 0 || self.key == Key::Unknown {
            return false;
        }
        let known = cell.iter().take_while(|byte| matches!(byte, b' '..=b'~'));
        let known: Vec<u8> = known.map(u8::to_ascii_lowercase).collect();
        let differs = |bucket: &Bucket| match bucket {
            Bucket::Text(text) => known.iter().zip(text).any(|(one, other)| one != other),
            Bucket::Number(_) => false,
        };
        self.buckets_of(home).all(differs)
    }

    fn unclear(&self, home: usize, cell: &[u8]) -> String {
        let shown: String = String::from_utf8_lossy(cell).chars().take(40).collect();
        let name = self.homes.get(home).map_or("", |home| home.name.as_str());
        format!(
            "nobody but the server knows whether a row with {} '{shown}' belongs to the partition '{name}' of {}, and it is not guessed",
            self.column,
            self.shown()
        )
    }
}

/// A whole number as a server shows it, with zeros behind the point or before it.
fn whole_number(cell: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(cell).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    whole.parse().ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use crate::{Map, PartitionRow, TableRow};

    /// Whether rows with these keys are of the partition `p`; `?` for those that nobody can tell.
    fn of(function: &str, key_type: &str, value: &str, cells: &[&str]) -> String {
        let table = TableRow {
            table_name: "t".into(),
            key_column: "k".into(),
            key_type: key_type.into(),
            function: function.into(),
            ..TableRow::default()
        };
        let partition = PartitionRow {
            table_name: "t".into(),
            partition_name: "p".into(),
            partition_value: value.into(),
            ..PartitionRow::default()
        };
        let map = Map::build(vec![table], vec![partition]).unwrap();
        let table = map.table(b"", b"t").unwrap();
        assert_eq!(table.has_row(1, None), Ok(false));
        let sign = |cell: &&str| match table.has_row(1, Some(cell.as_bytes())) {
            Ok(true) => '+',
            Ok(false) => '-',
            Err(_) => '?',
        };
        cells.iter().map(sign).collect()
    }

    #[test]
    fn rows_belong_where_statements_look_for_them() {
        let numbers = ["7", "0007", "10", "-3", "7.00", "7.5", "x"];
        assert_eq!(of("MOD(10)", "INT", "7", &numbers), "++-++??");
        assert_eq!(of("DIV(10)", "", "0", &numbers), "++--+??");
        assert_eq!(of("RANGE()", "BIGINT", "5..9", &numbers), "++--+??");
        assert_eq!(of("LIST()", "INT", "7,10", &numbers), "+++-+??");
        let dates = [
            "2008-12-24",
            "2008-12-31 23:59:59.999",
            "2009-01-01 00:00:00",
            "0000-00-00",
            "2008-12-00",
        ];
        assert_eq!(of("DATE('%Y-%m')", "", "2008-12", &dates), "++---");
        assert_eq!(of("RANGE()", "DATE", "..2008-12-31", &dates), "++---");
        let hashed = (0..4).filter(|bucket| {
            of("HASH(4)", "VARCHAR", &bucket.to_string(), &["MAR", "mar "]) == "++"
        });
        assert_eq!(hashed.count(), 1);
    }

    /// Collations may say that two texts are equal. Where they could, nothing is said here.
    #[test]
    fn texts_that_collations_may_take_for_others_are_not_guessed() {
        let names = ["Marvel", "mar ", "ma", "Zoë", "Mär", "maré", "maxé", "äm"];
        assert_eq!(of("PREFIX(3)", "VARCHAR", "mar", &names), "++--?+-?");
        assert_eq!(of("NONE()", "", "mar", &names), "-+--??-?");
        assert_eq!(of("PREFIX(3)", "VARCHAR BINARY", "mar", &names), "-+---+--");
        assert_eq!(of("HASH(1)", "VARCHAR", "0", &["mar", "mär"]), "+?");
        // Of unknown type: it may be a number that is written in another way.
        assert_eq!(of("HASH(1)", "", "0", &["7", "7.50"]), "+?");
        assert_eq!(of("LIST()", "ENUM", "a,b", &["A", "c", "1"]), "+--");
    }
}
