//! The table that moves: its columns, its key, and the texts by which rows are read, written and
//! compared. Values go from one server to the other as literals, which both understand the same.

use binlog::Value;

/// How values of a column are read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Class {
    /// A number that SQL writes as it reads it.
    Number,
    /// FLOAT and DOUBLE, whose text must have all digits.
    Float,
    /// ENUM and SET, by their number.
    Member,
    /// BIT.
    Bit,
    /// A date or a time.
    Quoted,
    /// Something else with a text of ASCII, which a log has in other words.
    Shown,
    /// A text of a character set, with its collation.
    Text(String, String),
    /// Bytes.
    Bytes,
    /// BINARY of so many bytes: a log lacks the zeros at its end.
    Binary(usize),
    /// JSON of MySQL.
    Json,
    /// A geometry.
    Geometry,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) class: Class,
    /// Its type and what else the server says of it.
    pub(crate) told: String,
    /// A number without a sign.
    pub(crate) unsigned: bool,
    /// Computed by the server: it is neither read nor written.
    pub(crate) generated: bool,
}

/// The key of a row, as SQL has its values.
pub(crate) type Key = Vec<String>;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// Places of the columns of its key.
    pub(crate) key: Vec<usize>,
    /// Place of the column that tells which rows are of the part that goes, if only a part does.
    pub(crate) by: Option<usize>,
}

/// A row as a server tells it.
pub(crate) type Cells = Vec<Option<Vec<u8>>>;

/// A name in backticks.
pub(crate) fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// `schema`.`table`.
pub(crate) fn quoted(schema: &str, table: &str) -> String {
    format!("{}.{}", name(schema), name(table))
}

/// A string of SQL.
pub(crate) fn string(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(bytes.len() * 2 + 3);
    out.push_str("X'");
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out.push('\'');
    out
}

impl Class {
    /// Returns what is selected of a column.
    fn selected(&self, name: &str) -> String {
        match self {
            Self::Float => format!("{name} + 0e0"),
            Self::Member => format!("{name} + 0"),
            Self::Bit => format!("CAST({name} AS UNSIGNED)"),
            _ => name.to_owned(),
        }
    }

    /// Returns what is compared of a column: something short, and never NULL for what is not.
    fn compared(&self, name: &str) -> String {
        match self {
            Self::Number | Self::Quoted | Self::Shown | Self::Float | Self::Member | Self::Bit => {
                self.selected(name)
            }
            Self::Text(..) | Self::Bytes | Self::Binary(_) | Self::Json => {
                format!("SHA2({name}, 256)")
            }
            Self::Geometry => {
                format!("CONCAT(ST_SRID({name}), ':', SHA2(ST_AsBinary({name}), 256))")
            }
        }
    }

    /// The literal of what was selected.
    pub(crate) fn literal(&self, cell: Option<&[u8]>) -> Result<String, String> {
        let Some(bytes) = cell else {
            return Ok("NULL".to_owned());
        };
        Ok(match self {
            Self::Number | Self::Float | Self::Member | Self::Bit => {
                let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
                if bytes.is_empty() || !bytes.iter().all(is_number) {
                    return Err("a number is none".to_owned());
                }
                String::from_utf8_lossy(bytes).into_owned()
            }
            Self::Quoted | Self::Shown => {
                if !bytes.is_ascii() {
                    return Err("a date or a time is none".to_owned());
                }
                string(&String::from_utf8_lossy(bytes))
            }
            Self::Text(charset, collation) => {
                format!("_{charset} {} COLLATE {collation}", hex(bytes))
            }
            Self::Bytes | Self::Binary(_) | Self::Geometry => hex(bytes),
            Self::Json => format!("_utf8mb4 {}", hex(bytes)),
        })
    }

    /// The literal of a value of the key, as a log has it.
    fn literal_of(&self, value: &Value) -> Result<String, String> {
        let bytes = match (self, value) {
            (Self::Number, Value::Int(number)) => return Ok(number.to_string()),
            (Self::Number, Value::Uint(number)) => return Ok(number.to_string()),
            (Self::Number | Self::Quoted, Value::Text(text)) => text.clone().into_bytes(),
            (Self::Text(..) | Self::Bytes, Value::Bytes(bytes)) => bytes.clone(),
            (Self::Binary(len), Value::Bytes(bytes)) => {
                let mut bytes = bytes.clone();
                bytes.resize(bytes.len().max(*len), 0);
                bytes
            }
            _ => return Err("the log has a key of another type than the table".to_owned()),
        };
        self.literal(Some(&bytes))
    }

    /// Whether it may be of a key by which rows are found and put in order.
    pub(crate) const fn may_be_key(&self) -> bool {
        match self {
            Self::Number | Self::Quoted | Self::Text(..) | Self::Bytes | Self::Binary(_) => true,
            Self::Float | Self::Member | Self::Bit | Self::Shown | Self::Json | Self::Geometry => {
                false
            }
        }
    }
}

impl Table {
    fn written(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.generated)
    }

    fn key_names(&self) -> Vec<String> {
        let names = self.key.iter().map(|at| name(&self.columns[*at].name));
        names.collect()
    }

    fn of(&self) -> String {
        quoted(&self.schema, &self.name)
    }

    /// A copy of it under another name.
    pub(crate) fn called(&self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self.clone()
        }
    }

    /// Whether another one has the same columns and key.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.columns, &self.key) == (&other.columns, &other.key)
    }

    /// Returns what is selected of the table: all columns, behind them those of the key, and the one
    /// that tells which part a row is of.
    fn selected(&self) -> String {
        let key = self.key.iter().map(|at| &self.columns[*at]);
        let all = self.written().chain(key);
        let all = all.map(|column| column.class.selected(&name(&column.name)));
        all.chain(self.part()).collect::<Vec<_>>().join(", ")
    }

    /// Returns what tells which part a row is of, as the server shows it.
    fn part(&self) -> Option<String> {
        self.by.map(|at| name(&self.columns[at].name))
    }

    /// The cell that tells which part a selected row is of.
    pub(crate) fn cell_of_part<'r>(&self, row: &'r Cells) -> Option<&'r [u8]> {
        row.last().and_then(Option::as_deref)
    }

    /// Those behind a key, in order.
    pub(crate) fn chunk(&self, after: Option<&Key>, rows: u64) -> String {
        format!(
            "SELECT {} FROM {}{} ORDER BY {} LIMIT {rows}",
            self.selected(),
            self.of(),
            self.between(after, None),
            self.key_names().join(", ")
        )
    }

    /// Keys of those behind a key, in order.
    pub(crate) fn keys_of_chunk(&self, after: Option<&Key>, rows: u64) -> String {
        let key = self.key.iter().map(|at| &self.columns[*at]);
        let key = key.map(|column| column.class.selected(&name(&column.name)));
        format!(
            "SELECT {} FROM {}{} ORDER BY {} LIMIT {rows}",
            key.collect::<Vec<_>>().join(", "),
            self.of(),
            self.between(after, None),
            self.key_names().join(", ")
        )
    }

    /// Those with these keys.
    pub(crate) fn with_keys(&self, keys: &[Key]) -> String {
        let (selected, of) = (self.selected(), self.of());
        format!("SELECT {selected} FROM {of} WHERE {}", self.is_one_of(keys))
    }

    /// Removes those with these keys.
    pub(crate) fn delete(&self, keys: &[Key]) -> String {
        format!("DELETE FROM {} WHERE {}", self.of(), self.is_one_of(keys))
    }

    fn is_one_of(&self, keys: &[Key]) -> String {
        let names = self.key_names();
        let keys: Vec<_> = keys.iter().map(|key| key.join(", ")).collect();
        match names.as_slice() {
            [only] => format!("{only} IN ({})", keys.join(", ")),
            _ => format!("({}) IN (({}))", names.join(", "), keys.join("), (")),
        }
    }

    /// Behind one key, and up to another. Nested, so that an index is used: (a, b) > (1, 2) is not.
    fn between(&self, after: Option<&Key>, upto: Option<&Key>) -> String {
        let names = self.key_names();
        let compare = |key: &Key, strict: &str, last: &str| {
            let mut parts = Vec::new();
            for (at, own) in names.iter().enumerate() {
                let mut all: Vec<_> = (0..at)
                    .map(|n| format!("{} = {}", names[n], key[n]))
                    .collect();
                let way = if at + 1 == names.len() { last } else { strict };
                all.push(format!("{own} {way} {}", key[at]));
                parts.push(format!("({})", all.join(" AND ")));
            }
            format!("({})", parts.join(" OR "))
        };
        let after = after.map(|key| compare(key, ">", ">"));
        let upto = upto.map(|key| compare(key, "<", "<="));
        let all: Vec<_> = after.into_iter().chain(upto).collect();
        match all.as_slice() {
            [] => String::new(),
            all => format!(" WHERE {}", all.join(" AND ")),
        }
    }

    /// The key of the last of so many rows behind another key.
    pub(crate) fn end_of_chunk(&self, after: Option<&Key>, rows: u64) -> String {
        let key = self.key.iter().map(|at| &self.columns[*at]);
        let key = key.map(|column| column.class.selected(&name(&column.name)));
        format!(
            "SELECT {} FROM {}{} ORDER BY {} LIMIT 1 OFFSET {}",
            key.collect::<Vec<_>>().join(", "),
            self.of(),
            self.between(after, None),
            self.key_names().join(", "),
            rows.saturating_sub(1)
        )
    }

    /// The hash of a row, as the server computes it.
    fn hash(&self) -> String {
        let all = self.written().map(|column| {
            let compared = column.class.compared(&name(&column.name));
            format!("IFNULL({compared}, 'NULL')")
        });
        let all = all.collect::<Vec<_>>().join(", ");
        format!("SHA2(CONCAT_WS('|', {all}), 256)")
    }

    /// The hash of each row, and behind it what tells which part it is of.
    pub(crate) fn hashes(&self, after: Option<&Key>, upto: Option<&Key>) -> String {
        let part = self.part().unwrap_or_else(|| "NULL".to_owned());
        let (hash, of, between) = (self.hash(), self.of(), self.between(after, upto));
        format!("SELECT {hash}, {part} FROM {of}{between}")
    }

    /// A number and a checksum of rows, whatever their order.
    pub(crate) fn checksum(&self, after: Option<&Key>, upto: Option<&Key>) -> String {
        let half = |from: u32| {
            format!(
                "COALESCE(BIT_XOR(CAST(CONV(SUBSTRING(h, {from}, 16), 16, 10) AS UNSIGNED)), 0)"
            )
        };
        format!(
            "SELECT COUNT(*), {}, {} FROM (SELECT {} AS h FROM {}{}) AS rows_of_it",
            half(1),
            half(17),
            self.hash(),
            self.of(),
            self.between(after, upto)
        )
    }

    /// The beginning of a statement that writes rows; those that are there are replaced.
    pub(crate) fn replace(&self) -> String {
        format!("REPLACE {}", self.into())
    }

    /// The beginning of a statement that writes rows where none are.
    pub(crate) fn insert(&self) -> String {
        format!("INSERT {}", self.into())
    }

    fn into(&self) -> String {
        let names = self.written().map(|column| name(&column.name));
        let names = names.collect::<Vec<_>>().join(", ");
        format!("INTO {} ({names}) VALUES ", self.of())
    }

    /// A row that was selected, as it is written.
    pub(crate) fn values(&self, row: &Cells) -> Result<String, String> {
        let cells = self.written().zip(row);
        let literals = cells.map(|(column, cell)| column.class.literal(cell.as_deref()));
        let literals = literals.collect::<Result<Vec<_>, _>>()?;
        Ok(format!("({})", literals.join(", ")))
    }

    /// The key of a row that was selected.
    pub(crate) fn key_of(&self, row: &Cells) -> Result<Key, String> {
        self.key_alone(row.get(self.written().count()..).unwrap_or_default())
    }

    /// The key, of cells that begin with it.
    pub(crate) fn key_alone(&self, cells: &[Option<Vec<u8>>]) -> Result<Key, String> {
        if cells.len() < self.key.len() {
            return Err("a row without its key".into());
        }
        let all = self.key.iter().zip(cells);
        all.map(|(at, cell)| self.columns[*at].class.literal(cell.as_deref()))
            .collect()
    }

    /// The key of a row of a log.
    pub(crate) fn key_in_log(&self, image: &[Value]) -> Result<Key, String> {
        let all = self.key.iter().map(|at| {
            let value = image.get(*at).ok_or("a row of the log without its key")?;
            self.columns[*at].class.literal_of(value)
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, class: Class) -> Column {
        Column {
            name: name.into(),
            class,
            told: String::new(),
            unsigned: false,
            generated: false,
        }
    }

    fn table() -> Table {
        Table {
            schema: "shop".into(),
            name: "t".into(),
            columns: vec![
                column("a", Class::Number),
                column("b", Class::Text("latin1".into(), "latin1_bin".into())),
                column("f", Class::Float),
                Column {
                    generated: true,
                    ..column("g", Class::Number)
                },
            ],
            key: vec![0, 1],
            by: None,
        }
    }

    #[test]
    fn rows_are_read_behind_a_key_and_written_with_their_own() {
        let table = table();
        let key = vec![
            "1".to_owned(),
            "_latin1 X'61' COLLATE latin1_bin".to_owned(),
        ];
        assert_eq!(
            table.chunk(Some(&key), 10),
            "SELECT `a`, `b`, `f` + 0e0, `a`, `b` FROM `shop`.`t` WHERE ((`a` > 1) OR \
             (`a` = 1 AND `b` > _latin1 X'61' COLLATE latin1_bin)) ORDER BY `a`, `b` LIMIT 10"
        );
        assert_eq!(
            table.delete(std::slice::from_ref(&key)),
            "DELETE FROM `shop`.`t` WHERE (`a`, `b`) IN ((1, _latin1 X'61' COLLATE latin1_bin))"
        );
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        let row = vec![cell("1"), cell("a"), None, cell("1"), cell("a")];
        assert_eq!(table.key_of(&row).unwrap(), key);
        assert_eq!(
            format!("{}{}", table.replace(), table.values(&row).unwrap()),
            "REPLACE INTO `shop`.`t` (`a`, `b`, `f`) VALUES (1, _latin1 X'61' COLLATE latin1_bin, NULL)"
        );
        let image = [
            Value::Int(1),
            Value::Bytes(b"a".to_vec()),
            Value::Null,
            Value::Null,
        ];
        assert_eq!(table.key_in_log(&image).unwrap(), key);
    }

    #[test]
    fn what_a_server_says_is_no_sql() {
        assert!(Class::Number.literal(Some(b"1 OR 1")).is_err());
        assert_eq!(Class::Quoted.literal(Some(b"a'b\\")).unwrap(), "'a''b\\\\'");
        let padded = Class::Binary(3).literal_of(&Value::Bytes(vec![1]));
        assert_eq!(padded.unwrap(), "X'010000'");
        let other = Class::Bytes.literal_of(&Value::Int(1));
        assert!(other.is_err());
    }
}
