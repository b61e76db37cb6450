//! Look-ups: columns besides the key whose values tell buckets, by tables that the proxy keeps.
//!
//! An entry is written before its row, and never taken away. So entries say more than there is, or as
//! much. docs/features/look-ups.md

use crate::function::{Bucket, Function};
use crate::key::{Key, Value};
use crate::map::{Home, Kind, Refused, Table, hostgroup};
use crate::rows::LookupRow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Buckets of a value that are gone by at most.
const BUCKETS_MAX: usize = 100;
/// Bytes of an entry that a look-up's table keeps.
const ENTRY_LEN_MAX: usize = 255;
/// Column of a look-up's table that has the bucket.
const BUCKET: &str = "in_bucket";

/// A column whose values tell buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Name of the column, here and in the look-up's table.
    pub column: String,
    /// Its table.
    pub home: Home,
    /// Whether all rows have their entries.
    pub is_ready: bool,
    /// Whether the column may be NULL.
    pub(crate) is_nullable: bool,
    /// Whether a row that says nothing of the column has another value than NULL there.
    has_default: bool,
    /// Whether rows that a unique key takes for the same have the same sharding key.
    pub(crate) same_key: bool,
}

/// Bucket of a row, as a look-up has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// Nobody knows which.
    Any,
    /// The key is NULL.
    Null,
    /// This one.
    Bucket(Bucket),
}

/// A text for the server of a look-up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The writer's hostgroup.
    pub hostgroup: u32,
    /// The text.
    pub text: Box<[u8]>,
    /// Values that it asks for, or writes.
    pub(crate) values: usize,
}

/// Questions and entries without which it is not known where a statement goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Questions to look-ups: each row of an answer has the number of a value and an entry.
    pub asks: Vec<Asked>,
    /// Statements that write entries.
    pub writes: Vec<Asked>,
    /// Whether a look-up would be asked if anybody did.
    pub(crate) is_told: bool,
}

/// Look-ups that were asked and told for a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookedUp {
    /// `None`: a value has no entry, or one that says any partition.
    pub(crate) answers: BTreeMap<Asked, Option<BTreeSet<Entry>>>,
    pub(crate) written: BTreeSet<Asked>,
    /// Strings of the session are bytes, which no collation compares: nothing is looked up.
    pub in_bytes: bool,
}

impl Entry {
    /// Bytes of it in a look-up's table.
    fn bytes(&self) -> Vec<u8> {
        let bytes = match self {
            Self::Any => Vec::new(),
            Self::Null => b"-".to_vec(),
            Self::Bucket(Bucket::Number(number)) => format!("n{number}").into_bytes(),
            Self::Bucket(Bucket::Text(text)) => [b"t", &text[..]].concat(),
        };
        match bytes.len() {
            0 | ENTRY_LEN_MAX.. => b"*".to_vec(),
            _ => bytes,
        }
    }

    /// From bytes of a look-up's table; what is not understood says any partition.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
        match bytes.split_first() {
            Some((b'-', [])) => Self::Null,
            Some((b'n', digits)) => {
                number(digits).map_or(Self::Any, |number| Self::Bucket(Bucket::Number(number)))
            }
            Some((b't', text)) => Self::Bucket(Bucket::Text(text.to_vec())),
            _ => Self::Any,
        }
    }

    /// As SQL has it.
    #[must_use]
    pub fn sql(&self) -> String {
        let mut sql = "0x".to_owned();
        for byte in self.bytes() {
            let _never = write!(sql, "{byte:02x}");
        }
        sql
    }
}

impl LookedUp {
    /// Takes the rows of an answer.
    pub fn answered(&mut self, asked: &Asked, rows: &[Vec<Option<Vec<u8>>>]) {
        let mut of: Vec<BTreeSet<Entry>> = vec![BTreeSet::new(); asked.values];
        for row in rows {
            let cell = |at: usize| row.get(at).and_then(Option::as_deref);
            let number = cell(0).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            if let Some(entries) = number.and_then(|number: usize| of.get_mut(number)) {
                entries.insert(cell(1).map_or(Entry::Any, Entry::read));
            }
        }
        let is_certain = |entries: &BTreeSet<Entry>| {
            (1..=BUCKETS_MAX).contains(&entries.len()) && !entries.contains(&Entry::Any)
        };
        let all = of.iter().all(is_certain);
        let answer = all.then(|| of.into_iter().flatten().collect());
        self.answers.insert(asked.clone(), answer);
    }

    /// Notes that entries are written.
    pub fn has_written(&mut self, asked: &Asked) {
        self.written.insert(asked.clone());
    }

    /// Whether an answer left all partitions.
    #[must_use]
    pub fn has_missed(&self, asked: &Asked) -> bool {
        matches!(self.answers.get(asked), Some(None))
    }
}

impl Table {
    /// Entry of rows with this key.
    pub(crate) fn entry(&self, value: &Value) -> Entry {
        match value {
            Value::Null => Entry::Null,
            value => self
                .function
                .bucket(value)
                .map_or(Entry::Any, Entry::Bucket),
        }
    }

    /// How buckets are made of keys: as long as that is so, entries are right.
    #[must_use]
    pub fn bucketed_by(&self) -> String {
        let key = match self.key {
            // These two have the same buckets.
            Key::Unknown => Key::Text { exact: false },
            key => key,
        };
        format!("{} ({key}), {}", self.column, self.function)
    }

    /// Why no look-up of a column can be added, if so.
    #[must_use]
    pub fn unfit_for_lookup(&self, column: &str) -> Option<String> {
        let name = self.shown();
        if column.eq_ignore_ascii_case(&self.column) {
            return Some(format!(
                "argument 2 (column): '{column}' is the key of {name}, and needs no look-up"
            ));
        }
        if column.eq_ignore_ascii_case(BUCKET) {
            return Some(format!(
                "argument 2 (column): '{column}' is the name of a column of each look-up"
            ));
        }
        let mut lookups = self.lookups.iter();
        if lookups.any(|lookup| lookup.column.eq_ignore_ascii_case(column)) {
            return Some(format!(
                "argument 2 (column): '{column}' of {name} has a look-up already"
            ));
        }
        matches!(self.function, Function::Lua(_)).then(|| {
            format!("argument 1 (table): a script says the buckets of {name}, and may say others tomorrow")
        })
    }

    /// Homes of rows with these entries; `None` for all.
    pub(crate) fn homes_of(&self, entries: &BTreeSet<Entry>) -> Option<BTreeSet<usize>> {
        let home = |entry: &Entry| match entry {
            Entry::Any => None,
            Entry::Null => Some(0),
            Entry::Bucket(bucket) => Some(self.home_of(bucket)),
        };
        entries.iter().map(home).collect()
    }
}

/// Why a row of `mysql_shard_lookups` cannot be honoured.
pub(crate) fn refused(row: &LookupRow, column: &'static str, words: String) -> Refused {
    Refused {
        table: "mysql_shard_lookups",
        row: format!(
            "schemaname '{}', table_name '{}', column_name '{}'",
            row.schemaname, row.table_name, row.column_name
        ),
        column,
        words,
    }
}

/// Look-ups of a table.
pub(crate) fn of(table: &Table, rows: &[LookupRow], all: &mut Vec<Refused>) -> Vec<Lookup> {
    let own = rows
        .iter()
        .filter(|row| row.table_name == table.name && row.schemaname == table.schema);
    let mut lookups: Vec<Lookup> = Vec::new();
    for row in own {
        let mut refuse = |column, words: String| all.push(refused(row, column, words));
        let column = &row.column_name;
        if table.kind != Kind::Sharded {
            refuse(
                "table_name",
                "is a reference table, which has all rows everywhere".into(),
            );
        }
        if column.is_empty()
            || column.eq_ignore_ascii_case(&table.column)
            || column.eq_ignore_ascii_case(BUCKET)
        {
            refuse(
                "column_name",
                format!("must be another column than the key, and not {BUCKET}; '{column}' is not"),
            );
        }
        if lookups
            .iter()
            .any(|other| other.column.eq_ignore_ascii_case(column))
        {
            refuse("column_name", "has a look-up already".into());
        }
        if row.lookup_table.is_empty() {
            refuse("lookup_table", "must not be empty".into());
        }
        if matches!(table.function, Function::Lua(_)) {
            refuse(
                "table_name",
                "has its buckets from a script, which may say others tomorrow".into(),
            );
        } else if row.bucket_of != table.bucketed_by() {
            refuse(
                "bucket_of",
                format!(
                    "must be '{}', by which the table is spread: with '{}', entries say wrong buckets; take the row out, and HSCALE ADD_LOOKUP adds it anew",
                    table.bucketed_by(),
                    row.bucket_of
                ),
            );
        }
        let is_ready = row.state.eq_ignore_ascii_case("READY");
        if !is_ready && !row.state.eq_ignore_ascii_case("FILLING") {
            refuse(
                "state",
                format!("must be FILLING or READY; '{}' is not", row.state),
            );
        }
        let group = hostgroup(row.hostgroup_id).unwrap_or_else(|words| {
            refuse("hostgroup_id", words);
            0
        });
        lookups.push(Lookup {
            column: column.clone(),
            home: Home {
                name: String::new(),
                hostgroup: group,
                schema: row.lookup_schema.clone(),
                table: row.lookup_table.clone(),
                value: String::new(),
                made: false,
            },
            is_ready,
            is_nullable: row.nullable != 0,
            has_default: row.has_default != 0,
            same_key: row.unique_keys.eq_ignore_ascii_case("SAME_KEY"),
        });
    }
    lookups
}

impl Lookup {
    fn quoted(&self) -> String {
        format!("`{}`", self.column.replace('`', "``"))
    }

    /// Asks for the entries of values. `table`: its table as the statement says it.
    pub(crate) fn question(&self, table: &str, values: &[Vec<u8>]) -> Asked {
        let column = self.quoted();
        let limit = BUCKETS_MAX + 1;
        let mut text = Vec::new();
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                text.extend_from_slice(b" UNION ALL ");
            }
            let head = format!("(SELECT {number}, {BUCKET} FROM {table} WHERE {column} = ");
            text.extend_from_slice(head.as_bytes());
            text.extend_from_slice(value);
            text.extend_from_slice(format!(" LIMIT {limit})").as_bytes());
        }
        Asked {
            hostgroup: self.home.hostgroup,
            text: text.into(),
            values: values.len(),
        }
    }

    /// Writes entries; those that are there stay.
    pub(crate) fn entries(
        &self,
        table: &str,
        entries: &BTreeSet<(Vec<u8>, Entry)>,
        ignores: bool,
    ) -> Asked {
        let column = self.quoted();
        let ignore = if ignores { "IGNORE " } else { "" };
        let mut text =
            format!("INSERT {ignore}INTO {table} ({column}, {BUCKET}) VALUES ").into_bytes();
        for (number, (value, entry)) in entries.iter().enumerate() {
            text.extend_from_slice(if number == 0 { b"(" } else { b", (" });
            text.extend_from_slice(value);
            text.extend_from_slice(format!(", {})", entry.sql()).as_bytes());
        }
        text.extend_from_slice(format!(" ON DUPLICATE KEY UPDATE {BUCKET} = {BUCKET}").as_bytes());
        Asked {
            hostgroup: self.home.hostgroup,
            text: text.into(),
            values: entries.len(),
        }
    }

    /// Value of a row that says nothing of the column, or DEFAULT; none for NULL.
    pub(crate) fn omitted(&self) -> Option<Vec<u8>> {
        // Without a default, the server says no to both.
        (self.has_default || !self.is_nullable).then(|| b"DEFAULT".to_vec())
    }
}

/// Refuses rows of a query.
pub(crate) fn of_query(table: &Table, lookup: &Lookup) -> String {
    format!(
        "rows of {} are looked up by their {}, and those of a query get no entry; read them first, and insert them with VALUES",
        table.shown(),
        lookup.column
    )
}

/// Refuses rows of a file.
pub(crate) fn of_file(table: &Table, lookup: &Lookup) -> String {
    format!(
        "rows of {} are looked up by their {}, and those of a file get no entry; insert them with VALUES",
        table.shown(),
        lookup.column
    )
}
