//! The map: which tables are spread, by what, and where their partitions are.

use crate::buckets::{Span, joined, left, spans};
use crate::function::{Bucket, Function};
use crate::key::{Key, Reading, Value, is_plain_number};
use crate::lookups::{self, Lookup};
use crate::rows::{Declared, LookupRow, PartitionRow, TableRow};
use crate::scripted::BucketScript;
use sql::tree::Literal;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Why a row cannot be honoured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Table of the row.
    pub table: &'static str,
    /// The columns of its key.
    pub row: String,
    /// Which column.
    pub column: &'static str,
    /// A predicate.
    pub words: String,
}

/// All tables that are spread.
#[derive(Debug, Default)]
pub struct Map {
    /// By the name in small letters.
    tables: BTreeMap<Vec<u8>, Vec<Arc<Table>>>,
    /// By their numbers.
    numbered: Vec<Arc<Table>>,
    declared: Declared,
    /// Partitions that proxies have made, beside those of the rows.
    made: Vec<PartitionRow>,
    scripts: Vec<Arc<BucketScript>>,
    /// Maps of the same rows have the same one.
    origin: Arc<()>,
    has_sequences: bool,
    has_automatic: bool,
    has_lookups: bool,
}

/// Kind of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each row is in one partition.
    Sharded,
    /// All rows are in each of its homes.
    Reference,
}

/// Where new partitions are made by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Automatic {
    /// Nowhere: what has no partition is in the default one.
    No,
    /// On each of these in turn.
    RoundRobin(Vec<u32>),
}

/// A table that is spread.
#[derive(Debug)]
pub struct Table {
    /// Its place among the tables of its map.
    pub number: u32,
    /// Its schema; empty for a table of this name in any schema.
    pub schema: String,
    /// Its name, as applications know it.
    pub name: String,
    /// Name from which those of its tables on servers are made, of its sequence, and of what is written
    /// down of its partitions.
    pub physical: String,
    /// Kind of the table.
    pub kind: Kind,
    /// The key column.
    pub column: String,
    /// How values of the key compare.
    pub key: Key,
    /// From the key to a bucket.
    pub function: Function,
    /// The default home first, then one a partition.
    // 1 <= homes.len()
    pub homes: Vec<Home>,
    /// Where partitions are made by themselves.
    pub automatic: Automatic,
    /// Column whose numbers come from a sequence, where a row names none.
    pub sequence: Option<String>,
    /// Columns whose values tell buckets.
    pub lookups: Vec<Lookup>,
    /// In the order of their lower ends, with the home that has them.
    spans: Vec<(Span, usize)>,
    /// Tables of one layout lie beside each other.
    layout: Option<usize>,
    /// For each home its rank by its first bucket, and for each rank the home.
    ranks: Vec<usize>,
    ranked: Vec<usize>,
}

/// Where rows of a table are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// Name of the partition; empty for the default one.
    pub name: String,
    /// The writer's hostgroup.
    pub hostgroup: u32,
    /// Its schema there; empty for the statement's own.
    pub schema: String,
    /// Its name there.
    pub table: String,
    /// The buckets, as the operator wrote them.
    pub value: String,
    /// Whether a proxy has made it, and no row of the operator's says it.
    pub made: bool,
}

/// Characters of a table's name on a server.
const TABLE_NAME_MAX: usize = 64;
/// No statement is spread over more.
const PARTITIONS_MAX: usize = 65_536;

impl Map {
    /// From the rows of both tables; inactive ones are left out with their partitions.
    ///
    /// # Errors
    /// Every row that cannot be honoured.
    pub fn build(
        tables: Vec<TableRow>,
        partitions: Vec<PartitionRow>,
    ) -> Result<Self, Vec<Refused>> {
        let declared = Declared {
            tables,
            partitions,
            lookups: Vec::new(),
        };
        Self::build_with(declared, Vec::new(), Vec::new())
    }

    /// From all rows, the partitions that proxies have made, and scripts that say buckets.
    /// A row of the operator's with the name of a partition that was made takes its place.
    ///
    /// # Errors
    /// Every row that cannot be honoured.
    pub fn build_with(
        declared: Declared,
        made: Vec<PartitionRow>,
        scripts: Vec<Arc<BucketScript>>,
    ) -> Result<Self, Vec<Refused>> {
        let Declared {
            tables,
            partitions,
            lookups,
        } = &declared;
        let mut refused = Vec::new();
        let mut built: BTreeMap<Vec<u8>, Vec<Arc<Table>>> = BTreeMap::new();
        let (mut numbered, mut known) = (Vec::new(), BTreeSet::new());
        let mut layouts: BTreeMap<String, usize> = BTreeMap::new();
        for row in tables {
            known.insert((row.schemaname.as_str(), row.table_name.as_str()));
            if row.active == 0 {
                continue;
            }
            let own = |partition: &&PartitionRow| {
                partition.table_name == row.table_name && partition.schemaname == row.schemaname
            };
            let rows: Vec<_> = partitions.iter().filter(own).collect();
            let (named, others): (Vec<_>, Vec<_>) = made.iter().filter(own).partition(|made| {
                let name = &made.partition_name;
                rows.iter().any(|row| row.partition_name == *name)
            });
            if let Some(mut table) = table(row, (&rows, &others), &scripts, &mut refused) {
                refused.extend(unlike(&table, &rows, &named));
                table.lookups = lookups::of(&table, lookups, &mut refused);
                let next = layouts.len();
                table.layout = table
                    .shape()
                    .map(|shape| *layouts.entry(shape).or_insert(next));
                let name = table.name.to_ascii_lowercase().into_bytes();
                table.number = u32::try_from(numbered.len()).unwrap_or(u32::MAX);
                let table = Arc::new(table);
                numbered.push(table.clone());
                built.entry(name).or_default().push(table);
            }
        }
        for row in partitions {
            if !known.contains(&(row.schemaname.as_str(), row.table_name.as_str())) {
                let words = "is no table of mysql_shard_tables".into();
                refused.push(of_partition(row, "table_name", words));
            }
        }
        for row in lookups {
            if !known.contains(&(row.schemaname.as_str(), row.table_name.as_str())) {
                let words = "is no table of mysql_shard_tables".into();
                refused.push(lookups::refused(row, "table_name", words));
            }
        }
        refused.extend(kept_alike(&numbered));
        if !refused.is_empty() {
            return Err(refused);
        }
        Ok(Self {
            has_lookups: numbered.iter().any(|table| !table.lookups.is_empty()),
            has_sequences: numbered.iter().any(|table| table.sequence.is_some()),
            has_automatic: numbered.iter().any(|table| table.is_automatic()),
            tables: built,
            numbered,
            declared,
            made,
            scripts,
            origin: Arc::default(),
        })
    }

    /// Itself with more partitions that proxies have made.
    ///
    /// # Errors
    /// A partition that was made does not go together with a row of the operator's.
    pub fn with_made(&self, more: &[PartitionRow]) -> Result<Self, Vec<Refused>> {
        let mut made = self.made.clone();
        made.extend(more.iter().filter(|row| !self.has_made(row)).cloned());
        let next = Self::build_with(self.declared.clone(), made, self.scripts.clone())?;
        Ok(Self {
            origin: self.origin.clone(),
            ..next
        })
    }

    /// Itself with other scripts that say buckets.
    ///
    /// # Errors
    /// None, where it was built before.
    pub fn with_scripts(&self, scripts: Vec<Arc<BucketScript>>) -> Result<Self, Vec<Refused>> {
        let next = Self::build_with(self.declared.clone(), self.made.clone(), scripts)?;
        Ok(Self {
            origin: self.origin.clone(),
            ..next
        })
    }

    /// The scripts that say buckets.
    #[must_use]
    pub fn scripts(&self) -> &[Arc<BucketScript>] {
        &self.scripts
    }

    /// The partitions that proxies have made.
    #[must_use]
    pub fn made(&self) -> &[PartitionRow] {
        &self.made
    }

    /// Whether it has a partition of this name that a proxy has made.
    #[must_use]
    pub fn has_made(&self, row: &PartitionRow) -> bool {
        let is_it = |made: &PartitionRow| {
            made.partition_name == row.partition_name
                && made.table_name == row.table_name
                && made.schemaname == row.schemaname
        };
        self.made.iter().any(is_it)
    }

    /// Whether it is of the same rows as another one, but for partitions that were made.
    #[must_use]
    pub fn is_of_the_rows_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.origin, &other.origin)
    }

    /// Whether a statement may have to wait for something before it is routed: for numbers, for a
    /// partition, or for a look-up.
    #[must_use]
    pub const fn asks_first(&self) -> bool {
        self.has_sequences || self.has_automatic || self.has_lookups
    }

    /// Whether a table of it has a look-up.
    #[must_use]
    pub const fn has_lookups(&self) -> bool {
        self.has_lookups
    }

    /// Whether partitions of a table of it are made by themselves.
    #[must_use]
    pub const fn has_automatic(&self) -> bool {
        self.has_automatic
    }

    /// Name of another table that has this place.
    #[must_use]
    pub fn owner(&self, but: &Table, hostgroup: u32, table: &str) -> Option<String> {
        let is_there =
            |home: &Home| home.hostgroup == hostgroup && home.table.eq_ignore_ascii_case(table);
        let mut others = self.tables().filter(|other| other.number != but.number);
        others
            .find(|other| other.homes.iter().any(is_there))
            .map(|other| other.shown())
    }

    /// Whether no table is spread.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether a table of it has a sequence.
    #[must_use]
    pub const fn has_sequences(&self) -> bool {
        self.has_sequences
    }

    /// The table that a statement means by this name, said in this schema.
    #[must_use]
    pub fn table(&self, schema: &[u8], name: &[u8]) -> Option<&Arc<Table>> {
        let named = self.tables.get(&name.to_ascii_lowercase())?;
        let is_there = |table: &&Arc<Table>| schema.eq_ignore_ascii_case(table.schema.as_bytes());
        let anywhere = |table: &&Arc<Table>| table.schema.is_empty();
        named
            .iter()
            .find(is_there)
            .or_else(|| named.iter().find(anywhere))
    }

    /// The table of a number.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Option<&Arc<Table>> {
        self.numbered.get(number as usize)
    }

    /// All of them.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values().flatten()
    }

    /// The rows of `mysql_shard_tables`.
    #[must_use]
    pub fn table_rows(&self) -> &[TableRow] {
        &self.declared.tables
    }

    /// The rows of `mysql_shard_partitions`.
    #[must_use]
    pub fn partition_rows(&self) -> &[PartitionRow] {
        &self.declared.partitions
    }

    /// The rows of `mysql_shard_lookups`.
    #[must_use]
    pub fn lookup_rows(&self) -> &[LookupRow] {
        &self.declared.lookups
    }
}

fn of_table(row: &TableRow, column: &'static str, words: String) -> Refused {
    Refused {
        table: "mysql_shard_tables",
        row: format!(
            "schemaname '{}', table_name '{}'",
            row.schemaname, row.table_name
        ),
        column,
        words,
    }
}

fn of_partition(row: &PartitionRow, column: &'static str, words: String) -> Refused {
    Refused {
        table: "mysql_shard_partitions",
        row: format!(
            "schemaname '{}', table_name '{}', partition_name '{}'",
            row.schemaname, row.table_name, row.partition_name
        ),
        column,
        words,
    }
}

pub(crate) fn hostgroup(number: i64) -> Result<u32, String> {
    let found = u32::try_from(number)
        .ok()
        .filter(|number| *number <= i32::MAX as u32);
    found.ok_or_else(|| format!("must be from 0 to {}; '{number}' is not", i32::MAX))
}

/// Tables whose numbers, or partitions, would be those of others.
fn kept_alike(tables: &[Arc<Table>]) -> Vec<Refused> {
    let mut refused = Vec::new();
    let mut known: BTreeMap<String, Vec<&Table>> = BTreeMap::new();
    for table in tables {
        let before = known.entry(table.kept_as()).or_default();
        let meets = |other: &&&Table| {
            table.sequence.is_some() && other.sequence.is_some()
                || table.is_automatic() && other.is_automatic()
        };
        if let Some(other) = before.iter().find(meets) {
            refused.push(Refused {
                table: "mysql_shard_tables",
                row: format!("schemaname '{}', table_name '{}'", table.schema, table.name),
                column: "physical_name",
                words: format!(
                    "must be another one: {} has its sequence, or partitions that are made, as '{}'",
                    other.shown(),
                    table.kept_as()
                ),
            });
        }
        before.push(table);
    }
    refused
}

/// Rows of the operator's that take the place of partitions with other buckets.
fn unlike(table: &Table, declared: &[&PartitionRow], made: &[&PartitionRow]) -> Vec<Refused> {
    let is_other = |made: &&&PartitionRow| {
        let home = table.home_named(&made.partition_name);
        let bucket = table.bucket_written(&made.partition_value);
        bucket.is_none_or(|bucket| Some(table.home_of(&bucket)) != home)
    };
    let words = |made: &&PartitionRow| {
        let mut rows = declared.iter();
        let row = rows.find(|row| row.partition_name == made.partition_name)?;
        let words = format!(
            "must have '{}': a partition of this name was made for it",
            made.partition_value
        );
        Some(of_partition(row, "partition_value", words))
    };
    made.iter().filter(is_other).filter_map(words).collect()
}

/// Homes behind those of the operator's rows were made.
fn mark_made(table: &mut Table, declared: usize) {
    for home in table.homes.iter_mut().skip(1 + declared) {
        home.made = true;
    }
}

/// The function of a table, with its script.
fn function_of(row: &TableRow, scripts: &[Arc<BucketScript>]) -> Result<Function, String> {
    let mut function = Function::parse(&row.function)?;
    if let Function::Lua(script) = &mut function {
        script.bind(scripts)?;
    }
    Ok(function)
}

/// Words for partitions that were made, of a table that makes none any more.
fn left_alone(automatic: &Automatic, made: &[&PartitionRow]) -> Option<String> {
    (*automatic == Automatic::No && !made.is_empty()).then(|| {
        format!(
            "must not be empty: {} partitions were made by themselves, and none of their rows is in mysql_shard_partitions; HSCALE SHOW COMMANDS has the commands that add them",
            made.len()
        )
    })
}

/// A name, or another one where that is empty.
fn named(name: &str, other: &str) -> String {
    let named = if name.is_empty() { other } else { name };
    named.to_owned()
}

/// A table with its partitions: those that rows declare, and those that were made.
fn table(
    row: &TableRow,
    (declared, made): (&[&PartitionRow], &[&PartitionRow]),
    scripts: &[Arc<BucketScript>],
    refused: &mut Vec<Refused>,
) -> Option<Table> {
    let partitions = &[declared, made].concat()[..];
    let before = refused.len();
    let mut refuse = |column, words: String| refused.push(of_table(row, column, words));
    if row.table_name.is_empty() {
        refuse("table_name", "must not be empty".into());
    }
    let kind = match row.kind.to_ascii_uppercase().as_str() {
        "SHARDED" => Kind::Sharded,
        "REFERENCE" => Kind::Reference,
        _ => {
            refuse(
                "kind",
                format!("must be SHARDED or REFERENCE; '{}' is not", row.kind),
            );
            Kind::Sharded
        }
    };
    let is_sharded = kind == Kind::Sharded;
    if is_sharded && row.key_column.is_empty() {
        refuse(
            "key_column",
            "must not be empty: it says by which column the table is spread".into(),
        );
    }
    let function = function_of(row, scripts).unwrap_or_else(|words| {
        refuse("function", words);
        Function::None
    });
    let key = Key::parse(&row.key_type, &function).unwrap_or_else(|words| {
        refuse("key_type", words);
        Key::Unknown
    });
    if let Some(words) = key.unfit(&function).filter(|_| is_sharded) {
        refuse("key_type", format!("does not fit: {words}"));
    }
    let automatic = automatic(&row.auto_partition).unwrap_or_else(|words| {
        refuse("auto_partition", words);
        Automatic::No
    });
    if let Some(words) = left_alone(&automatic, made) {
        refuse("auto_partition", words);
    }
    if let Some(words) = unfit(kind, &row.sequence_column) {
        refuse("sequence_column", words);
    }
    let default = hostgroup(row.default_hostgroup).unwrap_or_else(|words| {
        refuse("default_hostgroup", words);
        0
    });
    let physical = named(&row.physical_name, &row.table_name);
    let mut table = Table {
        number: 0,
        schema: row.schemaname.clone(),
        name: row.table_name.clone(),
        physical: physical.clone(),
        kind,
        column: row.key_column.clone(),
        key,
        function,
        homes: vec![Home {
            name: String::new(),
            hostgroup: default,
            schema: row.default_schema.clone(),
            table: named(&row.default_table, &physical),
            value: String::new(),
            made: false,
        }],
        automatic,
        sequence: (!row.sequence_column.is_empty()).then(|| row.sequence_column.clone()),
        lookups: Vec::new(),
        spans: Vec::new(),
        layout: None,
        ranks: Vec::new(),
        ranked: Vec::new(),
    };
    if partitions.len() > PARTITIONS_MAX {
        refuse(
            "table_name",
            format!("has more than {PARTITIONS_MAX} partitions"),
        );
        return None;
    }
    for partition in partitions {
        add_partition(&mut table, partition, refused);
    }
    mark_made(&mut table, declared.len());
    if table.key == Key::Unknown && is_of_strings(&table) {
        table.key = Key::Text { exact: false };
    }
    table.spans.sort_by(|(a, _), (b, _)| a.low.cmp(&b.low));
    overlaps(&table, partitions, refused);
    table.rank_homes();
    (refused.len() == before).then_some(table)
}

fn add_partition(table: &mut Table, row: &PartitionRow, refused: &mut Vec<Refused>) {
    let mut refuse = |column, words| refused.push(of_partition(row, column, words));
    if row.partition_name.is_empty() {
        refuse("partition_name", "must not be empty".into());
    }
    let hostgroup = hostgroup(row.hostgroup_id).unwrap_or_else(|words| {
        refuse("hostgroup_id", words);
        0
    });
    let home = table.homes.len();
    if table.kind == Kind::Sharded {
        match spans(&row.partition_value, &table.function, table.key) {
            Ok(spans) => table
                .spans
                .extend(spans.into_iter().map(|span| (span, home))),
            Err(words) => refuse("partition_value", words),
        }
    } else if !row.partition_value.is_empty() {
        let words = "must be empty: a reference table has all rows everywhere".into();
        refuse("partition_value", words);
    }
    let physical = match (row.physical_table.is_empty(), table.kind) {
        (false, _) => row.physical_table.clone(),
        (true, Kind::Sharded) => format!("{}_{}", table.physical, row.partition_name),
        (true, Kind::Reference) => table.homes[0].table.clone(),
    };
    table.homes.push(Home {
        name: row.partition_name.clone(),
        hostgroup,
        schema: row.physical_schema.clone(),
        table: physical,
        value: row.partition_value.clone(),
        made: false,
    });
}

/// Whether a partition has a value that no column of numbers could have: then the key is a string.
fn is_of_strings(table: &Table) -> bool {
    let is_key = matches!(
        table.function,
        Function::None | Function::List | Function::Prefix(_)
    );
    let text =
        |span: &Span| matches!(&span.low, Some(Bucket::Text(text)) if !is_plain_number(text));
    is_key && table.spans.iter().any(|(span, _)| text(span))
}

/// Two partitions must not have a bucket in common.
fn overlaps(table: &Table, partitions: &[&PartitionRow], refused: &mut Vec<Refused>) {
    // The span that reaches farthest of those before.
    let mut farthest: Option<&(Span, usize)> = None;
    for span in &table.spans {
        if let Some((before, first)) = farthest
            && before.meets(&span.0)
        {
            let (first, second) = (first - 1, span.1 - 1);
            let other = partitions
                .get(first)
                .map_or("", |row| row.partition_name.as_str());
            if let Some(row) = partitions.get(second) {
                let words = format!("overlaps with the value of partition '{other}'");
                refused.push(of_partition(row, "partition_value", words));
            }
        }
        let reaches = |span: &Span| span.high.clone();
        let is_farther = match farthest {
            None => true,
            Some((before, _)) => match (reaches(before), reaches(&span.0)) {
                (None, _) => false,
                (_, None) => true,
                (Some(before), Some(now)) => now > before,
            },
        };
        if is_farther {
            farthest = Some(span);
        }
    }
}

fn automatic(text: &str) -> Result<Automatic, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Automatic::No);
    }
    let words =
        || format!("must be empty, FIXED(hostgroup) or ROUND_ROBIN(hostgroup, …); '{text}' is not");
    let (name, rest) = text.split_once('(').ok_or_else(words)?;
    let inside = rest.strip_suffix(')').ok_or_else(words)?;
    let all = inside.split(',').map(|one| one.trim().parse::<i64>().ok());
    let all = all.collect::<Option<Vec<_>>>().ok_or_else(words)?;
    let all = all
        .into_iter()
        .map(hostgroup)
        .collect::<Result<Vec<_>, _>>()?;
    match (name.trim().to_ascii_uppercase().as_str(), all.len()) {
        ("FIXED", 1) | ("ROUND_ROBIN", 1..) => Ok(Automatic::RoundRobin(all)),
        _ => Err(words()),
    }
}

impl Table {
    /// The home of a bucket; 0 is the default one.
    #[must_use]
    pub fn home_of(&self, bucket: &Bucket) -> usize {
        let after = self.spans.partition_point(|(span, _)| match &span.low {
            None => true,
            Some(low) => low <= bucket,
        });
        let last = after.checked_sub(1).and_then(|at| self.spans.get(at));
        match last {
            Some((span, home)) if span.high.as_ref().is_none_or(|high| bucket <= high) => *home,
            _ => 0,
        }
    }

    /// The home of a key; `None` where a script would have to say.
    #[must_use]
    pub fn home_of_key(&self, value: &Value) -> Option<usize> {
        match value {
            Value::Null => Some(0),
            value => Some(self.home_of(&self.function.bucket(value)?)),
        }
    }

    /// All partitions, for people.
    pub(crate) fn all_shown(&self) -> String {
        let all = self.homes.iter().map(|home| self.shown_at(home));
        all.collect::<Vec<_>>().join(" and ")
    }

    /// A partition of it, for people.
    pub(crate) fn shown_at(&self, home: &Home) -> String {
        match home.name.as_str() {
            "" => format!("{} (default)", self.shown()),
            partition => format!("{}.{partition}", self.shown()),
        }
    }

    /// The home that a partition's name names.
    #[must_use]
    pub fn home_named(&self, name: &str) -> Option<usize> {
        self.homes.iter().position(|home| home.name == name)
    }

    /// The home that has all buckets of a value and others besides, and the value of these others.
    #[must_use]
    pub fn split(&self, value: &str) -> Option<(usize, String)> {
        let taken = spans(value, &self.function, self.key).ok()?;
        let first = taken.first()?;
        let home = self.home_of(first.low.as_ref().or(first.high.as_ref())?);
        let own = self.homes.get(home).filter(|_| home > 0)?;
        let left = left(&own.value, value, &self.function, self.key)?;
        Some((home, left))
    }

    /// The value of a partition that has the buckets of two; `None` where there can be none.
    #[must_use]
    pub fn joined(&self, one: &str, other: &str) -> Option<String> {
        joined(one, other, &self.function, self.key)
    }

    /// Lower ends of a home's buckets.
    pub(crate) fn buckets_of(&self, home: usize) -> impl Iterator<Item = &Bucket> {
        let own = self.spans.iter().filter(move |(_, of)| *of == home);
        own.filter_map(|(span, _)| span.low.as_ref())
    }

    pub(crate) fn compared(&self, literal: &Literal<'_>) -> Reading {
        self.key.compared(literal, &self.function)
    }

    pub(crate) fn stored(&self, literal: &Literal<'_>) -> Reading {
        self.key.stored(literal, &self.function, true)
    }

    /// The homes that may have keys from one to another, both included; `None` for all.
    pub(crate) fn homes_between(
        &self,
        low: Option<&Value>,
        high: Option<&Value>,
    ) -> Option<BTreeSet<usize>> {
        let number = |value: Option<&Value>| match value {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        };
        if let (Some(low), Some(high)) = (low, high)
            && is_after(low, high)
        {
            return Some(BTreeSet::new());
        }
        if let (Some(buckets), Some(low), Some(high)) =
            (self.function.buckets(), number(low), number(high))
        {
            // Each number may be in a bucket of its own.
            let few = high.abs_diff(low) < u128::from(buckets.min(RANGE_TRIED_MAX));
            let home = |number| self.home_of_key(&Value::Number(number));
            return few
                .then(|| (low..=high).map(home).collect::<Option<_>>())
                .flatten();
        }
        if !self.function.keeps_order() || !self.key.has_order() {
            return None;
        }
        let end = |value: Option<&Value>| match value {
            Some(value) => self.function.bucket(value).map(Some),
            None => Some(None),
        };
        let span = Span {
            low: end(low)?,
            high: end(high)?,
        };
        let mut homes: BTreeSet<usize> = BTreeSet::new();
        let mut covered = 0u128;
        for (own, home) in &self.spans {
            if own.meets(&span) {
                homes.insert(*home);
                if let (Some(Bucket::Number(low)), Some(Bucket::Number(high))) =
                    (&span.low, &span.high)
                {
                    covered = covered.saturating_add(own.covers(*low, *high));
                }
            }
        }
        let whole = match (&span.low, &span.high) {
            (Some(Bucket::Number(low)), Some(Bucket::Number(high))) => {
                covered > high.abs_diff(*low)
            }
            (Some(low), Some(high)) if low == high => !homes.is_empty(),
            _ => false,
        };
        if !whole {
            homes.insert(0);
        }
        Some(homes)
    }

    /// Whether its rows lie beside those of another table: those of equal keys on the same hostgroup.
    #[must_use]
    pub fn lies_beside(&self, other: &Self) -> bool {
        self.layout.is_some() && self.layout == other.layout
    }

    /// The home of another table that [lies beside](Self::lies_beside) this one, beside this home.
    #[must_use]
    pub fn home_beside(&self, home: usize, other: &Self) -> Option<usize> {
        let rank = self.ranks.get(home)?;
        other.ranked.get(*rank).copied()
    }

    /// Which homes lie beside which is told by the order of their buckets.
    fn rank_homes(&mut self) {
        let mut ranked = vec![0];
        let mut ranks = vec![usize::MAX; self.homes.len()];
        if let Some(first) = ranks.first_mut() {
            *first = 0;
        }
        for (_, home) in &self.spans {
            if let Some(rank) = ranks.get_mut(*home).filter(|rank| **rank == usize::MAX) {
                *rank = ranked.len();
                ranked.push(*home);
            }
        }
        (self.ranks, self.ranked) = (ranks, ranked);
    }

    /// All that two tables must have alike to lie beside each other, as a text.
    fn shape(&self) -> Option<String> {
        let is_known = self.kind == Kind::Sharded && !matches!(self.function, Function::Lua(_));
        let span = |(span, home): &(Span, usize)| {
            let hostgroup = self.homes.get(*home).map(|home| home.hostgroup);
            (span.clone(), self.ranks.get(*home).copied(), hostgroup)
        };
        let spans: Vec<_> = self.spans.iter().map(span).collect();
        is_known.then(|| {
            format!(
                "{:?} {:?} {} {spans:?}",
                self.function, self.key, self.homes[0].hostgroup
            )
        })
    }

    /// Why nobody knows where its rows are, if so: the script that says it is not in force.
    #[must_use]
    pub fn unknown(&self) -> Option<String> {
        match &self.function {
            Function::Lua(script) => script.missing(),
            _ => None,
        }
    }

    /// Whether its partitions are made by themselves.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        self.automatic != Automatic::No && self.kind == Kind::Sharded
    }

    /// The bucket that a `partition_value` of one bucket says.
    #[must_use]
    pub fn bucket_written(&self, value: &str) -> Option<Bucket> {
        match spans(value, &self.function, self.key).ok()?.as_slice() {
            [
                Span {
                    low: Some(low),
                    high: Some(high),
                },
            ] if low == high => Some(low.clone()),
            _ => None,
        }
    }

    /// The partition that is to be made for a bucket that has none; `None` where the default one has
    /// it.
    #[must_use]
    pub fn next_partition(&self, bucket: &Bucket) -> Option<PartitionRow> {
        let Automatic::RoundRobin(hostgroups) = &self.automatic else {
            return None;
        };
        if self.home_of(bucket) != 0 {
            return None;
        }
        let turn = (self.homes.len() - 1) % hostgroups.len();
        Some(PartitionRow {
            schemaname: self.schema.clone(),
            table_name: self.name.clone(),
            partition_name: self.free_name(&bucket.to_string()),
            partition_value: bucket.to_string(),
            hostgroup_id: hostgroups[turn].into(),
            physical_schema: self.homes[0].schema.clone(),
            ..PartitionRow::default()
        })
    }

    /// A name that no partition has, and whose table none has: letters' case aside, as servers may
    /// leave it.
    fn free_name(&self, bucket: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        // Behind the table's name and a blank, with room for a number.
        let room = TABLE_NAME_MAX.saturating_sub(self.physical.chars().count() + 7);
        let name: String = bucket.chars().map(plain).take(room.max(8)).collect();
        let is_taken = |name: &str| {
            let table = format!("{}_{name}", self.physical);
            let is_it = |home: &Home| {
                home.name.eq_ignore_ascii_case(name) || home.table.eq_ignore_ascii_case(&table)
            };
            name.is_empty() || self.homes.iter().any(is_it)
        };
        if !is_taken(&name) {
            return name;
        }
        let numbered = (self.homes.len()..).map(|number| format!("{name}_{number}"));
        let mut free = numbered.filter(|name| !is_taken(name));
        free.next().unwrap_or(name)
    }

    /// The name with its schema, for people.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.schema.as_str() {
            "" => self.name.clone(),
            schema => format!("{schema}.{}", self.name),
        }
    }

    /// As its sequence and what is written down of its partitions are called.
    #[must_use]
    pub fn kept_as(&self) -> String {
        match self.schema.as_str() {
            "" => self.physical.clone(),
            schema => format!("{schema}.{}", self.physical),
        }
    }
}

/// So many keys of a range are tried one by one.
const RANGE_TRIED_MAX: u32 = 1024;

fn is_after(low: &Value, high: &Value) -> bool {
    match (low, high) {
        (Value::Number(low), Value::Number(high)) => low > high,
        (Value::Moment(low), Value::Moment(high)) => low > high,
        _ => false,
    }
}

/// As the commands that would make it.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let [default, partitions @ ..] = &self.homes[..] else {
            return Ok(());
        };
        let name = quoted(&self.shown());
        writeln!(
            f,
            "HSCALE SETUP_TABLE({name}, {}, {}, {}, {})",
            quoted(&self.column),
            quoted(&default.table),
            default.hostgroup,
            quoted(&self.function.to_string())
        )?;
        for home in partitions {
            write!(
                f,
                "HSCALE ADD_PARTITION({name}, {}, {}, {}",
                quoted(&home.name),
                quoted(&home.value),
                home.hostgroup
            )?;
            if home.table != format!("{}_{}", self.name, home.name) {
                write!(f, ", {}", quoted(&home.table))?;
            }
            writeln!(f, ")")?;
        }
        if let Some(column) = &self.sequence {
            writeln!(f, "HSCALE ADD_SEQUENCE({name}, {})", quoted(column))?;
        }
        for lookup in &self.lookups {
            let (column, home) = (quoted(&lookup.column), &lookup.home);
            let table = match home.schema.as_str() {
                "" => home.table.clone(),
                schema => format!("{schema}.{}", home.table),
            };
            writeln!(
                f,
                "HSCALE ADD_LOOKUP({name}, {column}, {}, {})",
                home.hostgroup,
                quoted(&table)
            )?;
        }
        Ok(())
    }
}

/// A text as a literal.
pub(crate) const fn literal(text: &str) -> Literal<'_> {
    Literal::Text(Cow::Borrowed(text.as_bytes()))
}

/// Whether a table may have a sequence.
fn unfit(kind: Kind, column: &str) -> Option<String> {
    (kind == Kind::Reference && !column.is_empty()).then(|| {
        "must be empty: each copy of a reference table would have to number its rows alike".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(function: &str, partitions: &[(&str, &str, i64)]) -> Result<Map, Vec<Refused>> {
        let table = TableRow {
            table_name: "users".into(),
            key_column: "k".into(),
            function: function.into(),
            default_table: "users_default".into(),
            default_hostgroup: 1,
            ..TableRow::default()
        };
        let row = |(name, value, hostgroup): &(&str, &str, i64)| PartitionRow {
            table_name: "users".into(),
            partition_name: (*name).into(),
            partition_value: (*value).into(),
            hostgroup_id: *hostgroup,
            ..PartitionRow::default()
        };
        Map::build(vec![table], partitions.iter().map(row).collect())
    }

    fn words(function: &str, partitions: &[(&str, &str, i64)]) -> String {
        let refused = users(function, partitions).unwrap_err();
        let shown = |one: &Refused| format!("{} {}", one.column, one.words);
        refused.iter().map(shown).collect::<Vec<_>>().join("; ")
    }

    /// A71: the example's partition is the table users_nick1, and A72: what is in none is in the
    /// default table.
    #[test]
    fn a_bucket_has_its_partition_or_the_default_one() {
        let map = users("PREFIX(3)", &[("nick1", "mar", 1), ("nick2", "FOO", 2)]).unwrap();
        let table = map.table(b"any", b"Users").unwrap();
        let home = |text: &str| {
            let Reading::Is(value) = table.compared(&literal(text)) else {
                panic!("unsure of {text}")
            };
            table.homes[table.home_of_key(&value).unwrap()]
                .table
                .clone()
        };
        assert_eq!(home("marvel"), "users_nick1");
        assert_eq!(home("MARTIN"), "users_nick1");
        assert_eq!(home("food"), "users_nick2");
        assert_eq!(home("anna"), "users_default");
        assert_eq!(
            table.to_string(),
            "HSCALE SETUP_TABLE('users', 'k', 'users_default', 1, 'PREFIX(3)')\n\
             HSCALE ADD_PARTITION('users', 'nick1', 'mar', 1)\n\
             HSCALE ADD_PARTITION('users', 'nick2', 'FOO', 2)\n"
        );
    }

    /// A71: it is checked whether partitions overlap.
    #[test]
    fn partitions_that_overlap_are_refused_and_so_is_a_value_that_is_none() {
        assert_eq!(
            words("PREFIX(3)", &[("a", "mar", 1), ("b", "MAR", 1)]),
            "partition_value overlaps with the value of partition 'a'"
        );
        assert_eq!(
            words(
                "DIV(1000)",
                &[
                    ("a", "0..9", 1),
                    ("b", "20..", 1),
                    ("c", "5", 1),
                    ("d", "100", 1)
                ]
            ),
            "partition_value overlaps with the value of partition 'a'; partition_value overlaps with the value of partition 'b'"
        );
        assert_eq!(
            words("MOD(3)", &[("a", "3", 1)]),
            "partition_value must be from 0 to 2, as MOD(3) makes no other bucket; '3' is not"
        );
        assert_eq!(
            words("PREFIX(3)", &[("a", "mart", 1)]),
            "partition_value must have 3 characters at most, as PREFIX(3) makes no longer bucket; 'mart' has more"
        );
        assert_eq!(
            words("RANGE()", &[]),
            "key_type does not fit: RANGE() needs a key_type of numbers or dates, as the order of strings is the collation's; a key of unknown type is none"
        );
        let lost = PartitionRow::default();
        assert_eq!(
            Map::build(Vec::new(), vec![lost]).unwrap_err()[0].words,
            "is no table of mysql_shard_tables"
        );
    }

    #[test]
    fn ranges_are_cut_down_to_the_partitions_that_may_have_them() {
        let map = users(
            "DIV(1000)",
            &[("a", "0", 1), ("b", "1..9", 2), ("c", "10..", 3)],
        )
        .unwrap();
        let table = map.table(b"", b"users").unwrap();
        let between = |low: i128, high: i128| {
            let homes = table.homes_between(Some(&Value::Number(low)), Some(&Value::Number(high)));
            homes.unwrap().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(between(0, 999), [1]);
        assert_eq!(between(999, 1000), [1, 2]);
        assert_eq!(between(-5, 10), [0, 1]);
        assert_eq!(between(10_000, 1_000_000), [3]);
        assert!(between(5, 4).is_empty());
        let open = table
            .homes_between(Some(&Value::Number(9999)), None)
            .unwrap();
        assert_eq!(open.into_iter().collect::<Vec<_>>(), [0, 2, 3]);
        let map = users("MOD(4)", &[("a", "0,1", 1), ("b", "2,3", 2)]).unwrap();
        let table = map.table(b"", b"users").unwrap();
        let between =
            |low, high| table.homes_between(Some(&Value::Number(low)), Some(&Value::Number(high)));
        assert_eq!(between(4, 5), Some(BTreeSet::from([1])));
        assert_eq!(between(4, 400), None);
    }

    /// A81: a new bucket has a partition, on each hostgroup in turn.
    #[test]
    fn a_new_bucket_says_which_partition_is_to_be_made() {
        let row = TableRow {
            table_name: "t".into(),
            key_column: "k".into(),
            function: "PREFIX(2)".into(),
            auto_partition: "ROUND_ROBIN(1, 2)".into(),
            ..TableRow::default()
        };
        let mut partitions = Vec::new();
        for (bucket, name, hostgroup) in [("ab", "ab", 1), ("a-", "a_", 2), ("a+", "a__3", 1)] {
            let map = Map::build(vec![row.clone()], partitions.clone()).unwrap();
            let table = map.table(b"", b"t").unwrap();
            let next = table.next_partition(&Bucket::Text(bucket.into())).unwrap();
            assert_eq!(
                (next.partition_name.as_str(), next.hostgroup_id),
                (name, hostgroup)
            );
            partitions.push(next);
        }
        let map = Map::build(vec![row], partitions).unwrap();
        let table = map.table(b"", b"t").unwrap();
        assert_eq!(table.next_partition(&Bucket::Text(b"ab".to_vec())), None);
    }
}
