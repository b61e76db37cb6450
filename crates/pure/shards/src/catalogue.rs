//! Tables of the map as a server's catalogue tells of them: SHOW TABLES, SHOW TABLE STATUS, and SELECTs
//! from `information_schema`. A table is seen once there, by its logical name.
//!
//! Such a statement runs where it would run anyway. There the first home of a table stands for it, and all
//! others are left out.

use crate::cuts::{Cut, cut, quoted};
use crate::facts::Facts;
use crate::map::{Home, Map, Table};
use sql::tree::{DoubleQuotes, Joined, Name, Node, Source, Statement, tree};
use sql::words::{Kind, Token, unquote};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Homes beyond which a text would be too long: the catalogue is told as it is then.
const HOMES_MAX: usize = 10_000;

/// A view of `information_schema` that names tables.
struct View {
    name: &'static str,
    /// The column with the schema of the table.
    schema: &'static str,
    /// Columns that MySQL and MariaDB have, in their order.
    columns: &'static [&'static str],
    /// Columns that only some servers have.
    others: &'static [&'static str],
}

const VIEWS: &[View] = &[
    View {
        name: "TABLES",
        schema: "TABLE_SCHEMA",
        columns: &[
            "TABLE_CATALOG",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "TABLE_TYPE",
            "ENGINE",
            "VERSION",
            "ROW_FORMAT",
            "TABLE_ROWS",
            "AVG_ROW_LENGTH",
            "DATA_LENGTH",
            "MAX_DATA_LENGTH",
            "INDEX_LENGTH",
            "DATA_FREE",
            "AUTO_INCREMENT",
            "CREATE_TIME",
            "UPDATE_TIME",
            "CHECK_TIME",
            "TABLE_COLLATION",
            "CHECKSUM",
            "CREATE_OPTIONS",
            "TABLE_COMMENT",
        ],
        others: &["MAX_INDEX_LENGTH", "TEMPORARY"],
    },
    View {
        name: "COLUMNS",
        schema: "TABLE_SCHEMA",
        columns: &[
            "TABLE_CATALOG",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "COLUMN_NAME",
            "ORDINAL_POSITION",
            "COLUMN_DEFAULT",
            "IS_NULLABLE",
            "DATA_TYPE",
            "CHARACTER_MAXIMUM_LENGTH",
            "CHARACTER_OCTET_LENGTH",
            "NUMERIC_PRECISION",
            "NUMERIC_SCALE",
            "DATETIME_PRECISION",
            "CHARACTER_SET_NAME",
            "COLLATION_NAME",
            "COLUMN_TYPE",
            "COLUMN_KEY",
            "EXTRA",
            "PRIVILEGES",
            "COLUMN_COMMENT",
            "GENERATION_EXPRESSION",
        ],
        others: &["IS_GENERATED", "SRS_ID"],
    },
    View {
        name: "STATISTICS",
        schema: "TABLE_SCHEMA",
        columns: &[
            "TABLE_CATALOG",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "NON_UNIQUE",
            "INDEX_SCHEMA",
            "INDEX_NAME",
            "SEQ_IN_INDEX",
            "COLUMN_NAME",
            "COLLATION",
            "CARDINALITY",
            "SUB_PART",
            "PACKED",
            "NULLABLE",
            "INDEX_TYPE",
            "COMMENT",
            "INDEX_COMMENT",
        ],
        others: &["IS_VISIBLE", "EXPRESSION", "IGNORED"],
    },
    View {
        name: "KEY_COLUMN_USAGE",
        schema: "TABLE_SCHEMA",
        columns: &[
            "CONSTRAINT_CATALOG",
            "CONSTRAINT_SCHEMA",
            "CONSTRAINT_NAME",
            "TABLE_CATALOG",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "COLUMN_NAME",
            "ORDINAL_POSITION",
            "POSITION_IN_UNIQUE_CONSTRAINT",
            "REFERENCED_TABLE_SCHEMA",
            "REFERENCED_TABLE_NAME",
            "REFERENCED_COLUMN_NAME",
        ],
        others: &[],
    },
    View {
        name: "TABLE_CONSTRAINTS",
        schema: "TABLE_SCHEMA",
        columns: &[
            "CONSTRAINT_CATALOG",
            "CONSTRAINT_SCHEMA",
            "CONSTRAINT_NAME",
            "TABLE_SCHEMA",
            "TABLE_NAME",
            "CONSTRAINT_TYPE",
        ],
        others: &["ENFORCED"],
    },
    View {
        name: "REFERENTIAL_CONSTRAINTS",
        schema: "CONSTRAINT_SCHEMA",
        columns: &[
            "CONSTRAINT_CATALOG",
            "CONSTRAINT_SCHEMA",
            "CONSTRAINT_NAME",
            "UNIQUE_CONSTRAINT_CATALOG",
            "UNIQUE_CONSTRAINT_SCHEMA",
            "UNIQUE_CONSTRAINT_NAME",
            "MATCH_OPTION",
            "UPDATE_RULE",
            "DELETE_RULE",
            "TABLE_NAME",
            "REFERENCED_TABLE_NAME",
        ],
        others: &[],
    },
];

/// Numbers of TABLES that are sums over partitions.
const SUMS: &[&str] = &["TABLE_ROWS", "DATA_LENGTH", "INDEX_LENGTH"];

/// Columns of SHOW TABLE STATUS, and of TABLES.
const STATUS: &[(&str, &str)] = &[
    ("TABLE_NAME", "Name"),
    ("ENGINE", "Engine"),
    ("VERSION", "Version"),
    ("ROW_FORMAT", "Row_format"),
    ("TABLE_ROWS", "Rows"),
    ("AVG_ROW_LENGTH", "Avg_row_length"),
    ("DATA_LENGTH", "Data_length"),
    ("MAX_DATA_LENGTH", "Max_data_length"),
    ("INDEX_LENGTH", "Index_length"),
    ("DATA_FREE", "Data_free"),
    ("AUTO_INCREMENT", "Auto_increment"),
    ("CREATE_TIME", "Create_time"),
    ("UPDATE_TIME", "Update_time"),
    ("CHECK_TIME", "Check_time"),
    ("TABLE_COLLATION", "Collation"),
    ("CHECKSUM", "Checksum"),
    ("CREATE_OPTIONS", "Create_options"),
    ("TABLE_COMMENT", "Comment"),
];

/// Words behind a table that are no alias of it.
const NO_ALIAS: &[&str] = &[
    "WHERE",
    "JOIN",
    "LEFT",
    "RIGHT",
    "INNER",
    "CROSS",
    "NATURAL",
    "STRAIGHT_JOIN",
    "ON",
    "USING",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "MINUS",
    "FOR",
    "LOCK",
    "PROCEDURE",
    "WINDOW",
    "USE",
    "FORCE",
    "IGNORE",
    "PARTITION",
    "INTO",
    "OFFSET",
    "FETCH",
];

/// A text that sees tables of the map by their logical names; `None` for a statement that asks no
/// catalogue, or where no table of the map is there. `serves`: whether a hostgroup is where it runs.
/// `as_written`: its server calls columns of the catalogue in results as the statement does.
#[must_use]
pub fn catalogue(
    map: &Map,
    text: &[u8],
    facts: &Facts<'_>,
    (serves, as_written): (impl Fn(u32) -> bool, bool),
) -> Option<Vec<u8>> {
    let words: Vec<Token<'_>> = facts.lexing.words(text).collect();
    let first = words.iter().find(|word| !word.is_sign(b'('))?;
    let shows = first.is("SHOW");
    (shows || first.is_any(&["SELECT", "WITH"])).then_some(())?;
    let seen = Seen::of(map, serves)?;
    let reader = Reader {
        text,
        words: &words,
        facts,
        seen: &seen,
    };
    match shows {
        true => reader.show(),
        false => reader.select(as_written),
    }
}

/// Aliases for columns of the catalogue that a SELECT tells without one.
fn named_as_written(text: &[u8], facts: &Facts<'_>) -> Vec<Cut> {
    let Some(tree) = tree(text, facts.lexing, facts.quotes) else {
        return Vec::new();
    };
    let Statement::Query(query) = &tree.statement else {
        return Vec::new();
    };
    let Some(first) = query.selects.first() else {
        return Vec::new();
    };
    let of_catalogue = |joined: &Joined<'_>| match &joined.source {
        Source::Table(table) => {
            let schema = table.schema.as_ref();
            schema.is_some_and(|schema| schema.is(b"information_schema"))
        }
        _ => false,
    };
    let is_alone = first.tables.iter().all(of_catalogue);
    let is_its = |qualifier: &Name<'_>| {
        let mut own = first.tables.iter().filter(|joined| of_catalogue(joined));
        own.any(
            |joined| matches!(&joined.source, Source::Table(table) if qualifier.is(table.called())),
        )
    };
    let mut names = Vec::new();
    for item in first.items.iter().filter(|item| item.alias.is_none()) {
        let Node::Column(parts) = &item.expression.node else {
            continue;
        };
        let (is_told, last) = match &parts[..] {
            [last] => (is_alone, last),
            [.., qualifier, last] => (is_its(qualifier), last),
            [] => continue,
        };
        if is_told && let Ok(name) = std::str::from_utf8(&last.text) {
            let end = item.at.end;
            names.push(Cut::new(end..end, format!(" AS {}", quoted(name))));
        }
    }
    names
}

/// A name on a server, with its schema where that is known.
type Physical = (String, String);

/// Tables of the map where a statement runs.
struct Seen {
    /// Names that stand for a table, and the table's schema and name.
    shown: BTreeMap<Physical, Physical>,
    /// Names that are left out, by schema.
    hidden: BTreeMap<String, Vec<String>>,
    /// All homes of what stands for a table.
    homes: BTreeMap<Physical, Vec<String>>,
}

impl Seen {
    fn of(map: &Map, serves: impl Fn(u32) -> bool) -> Option<Self> {
        let mut seen = Self {
            shown: BTreeMap::new(),
            hidden: BTreeMap::new(),
            homes: BTreeMap::new(),
        };
        let mut count = 0;
        for table in map.tables() {
            let mut own: Vec<Physical> = Vec::new();
            for home in table.homes.iter().filter(|home| serves(home.hostgroup)) {
                let physical = physical(table, home);
                if !own.contains(&physical) {
                    own.push(physical);
                }
                count += 1;
                (count <= HOMES_MAX).then_some(())?;
            }
            seen.add(table, own);
        }
        (!seen.shown.is_empty() || !seen.hidden.is_empty()).then_some(seen)
    }

    fn add(&mut self, table: &Table, own: Vec<Physical>) {
        let Some((first, others)) = own.split_first() else {
            return;
        };
        for (schema, name) in others {
            let hidden = self.hidden.entry(schema.clone()).or_default();
            hidden.push(name.clone());
        }
        let logical = (table.schema.clone(), table.name.clone());
        if *first != logical {
            self.shown.insert(first.clone(), logical.clone());
            // Nobody gets to a table that has this name beside the map.
            if !own.contains(&logical) {
                self.hidden.entry(logical.0).or_default().push(logical.1);
            }
        }
        if !others.is_empty() {
            let same = own.iter().filter(|one| one.0 == first.0);
            let names = same.map(|one| one.1.clone()).collect();
            self.homes.insert(first.clone(), names);
        }
    }

    /// A condition that leaves partitions out.
    fn condition(&self, schema_column: &str) -> String {
        let mut all = Vec::new();
        for (schema, names) in &self.hidden {
            let names: Vec<_> = names.iter().map(|name| literal(name)).collect();
            let list = names.join(", ");
            all.push(match schema.as_str() {
                "" => format!("TABLE_NAME NOT IN ({list})"),
                schema => format!(
                    "NOT ({schema_column} = {} AND TABLE_NAME IN ({list}))",
                    literal(schema)
                ),
            });
        }
        match all.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", all.join(" AND ")),
        }
    }

    /// A column with names of tables (or, for `of_schema`, of their schemas) as applications know them.
    fn name(&self, (schema_column, column): (&str, &str), of_schema: bool) -> String {
        let mut out = String::new();
        for ((schema, name), logical) in &self.shown {
            let known = if of_schema { &logical.0 } else { &logical.1 };
            if of_schema && (known.is_empty() || known == schema) {
                continue;
            }
            let _ = write!(out, " WHEN {column} = {}", literal(name));
            if !schema.is_empty() {
                let _ = write!(out, " AND {schema_column} = {}", literal(schema));
            }
            let _ = write!(out, " THEN {}", literal(known));
        }
        let own = if of_schema { schema_column } else { column };
        match out.is_empty() {
            true => own.to_owned(),
            false => format!("CASE{out} ELSE {own} END AS {own}"),
        }
    }

    /// A number of TABLES that is the sum of those of all partitions.
    fn sum(&self, column: &str) -> String {
        let mut out = String::new();
        for ((schema, name), names) in &self.homes {
            let names: Vec<_> = names.iter().map(|name| literal(name)).collect();
            let _ = write!(out, " WHEN TABLE_NAME = {}", literal(name));
            if !schema.is_empty() {
                let _ = write!(out, " AND TABLE_SCHEMA = {}", literal(schema));
            }
            let _ = write!(
                out,
                " THEN (SELECT CAST(SUM(p.{column}) AS UNSIGNED) FROM information_schema.TABLES AS p WHERE p.TABLE_SCHEMA = millrace.TABLE_SCHEMA AND p.TABLE_NAME IN ({}))",
                names.join(", ")
            );
        }
        match out.is_empty() {
            true => column.to_owned(),
            false => format!("CASE{out} ELSE {column} END AS {column}"),
        }
    }

    /// A query in place of a view, with these columns.
    fn view(&self, view: &View, wants: impl Fn(&str) -> bool) -> String {
        let is_needed = |column: &str| column == view.schema || column == "TABLE_NAME";
        let columns = view.columns.iter().chain(view.others);
        let columns = columns.filter(|column| is_needed(column) || wants(column));
        let columns: Vec<_> = columns
            .map(|column| match *column {
                "TABLE_NAME" => self.name((view.schema, "TABLE_NAME"), false),
                "TABLE_SCHEMA" => self.name(("TABLE_SCHEMA", "TABLE_NAME"), true),
                "REFERENCED_TABLE_NAME" if view.name == "KEY_COLUMN_USAGE" => {
                    self.name(("REFERENCED_TABLE_SCHEMA", "REFERENCED_TABLE_NAME"), false)
                }
                "REFERENCED_TABLE_NAME" => {
                    self.name(("UNIQUE_CONSTRAINT_SCHEMA", "REFERENCED_TABLE_NAME"), false)
                }
                column if view.name == "TABLES" && SUMS.contains(&column) => self.sum(column),
                column => column.to_owned(),
            })
            .collect();
        format!(
            "(SELECT {} FROM information_schema.{} AS millrace{})",
            columns.join(", "),
            view.name,
            self.condition(view.schema)
        )
    }
}

/// A home as its server calls it.
fn physical(table: &Table, home: &Home) -> Physical {
    let schema = match home.schema.is_empty() {
        true => &table.schema,
        false => &home.schema,
    };
    (schema.clone(), home.table.clone())
}

/// A name as a string, whatever the session has set.
fn literal(name: &str) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'\'' | b'\\');
    if name.as_bytes().iter().all(is_plain) {
        return format!("'{name}'");
    }
    let mut out = String::from("_utf8mb4 0x");
    for byte in name.bytes() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

struct Reader<'r, 'a> {
    text: &'a [u8],
    words: &'r [Token<'a>],
    facts: &'r Facts<'r>,
    seen: &'r Seen,
}

impl<'a> Reader<'_, 'a> {
    fn word(&self, at: usize) -> Option<&Token<'a>> {
        self.words.get(at)
    }

    fn is(&self, at: usize, keyword: &str) -> bool {
        self.word(at).is_some_and(|word| word.is(keyword))
    }

    fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.word(at).is_some_and(|word| word.is_sign(sign))
    }

    /// The view that a word names.
    fn view(&self, at: usize) -> Option<&'static View> {
        let name = self.name(at)?;
        let name = std::str::from_utf8(&name).ok()?;
        VIEWS
            .iter()
            .find(|view| view.name.eq_ignore_ascii_case(name))
    }

    fn name(&self, at: usize) -> Option<Cow<'a, [u8]>> {
        let word = self.word(at)?;
        match word.kind {
            Kind::Word => Some(Cow::Borrowed(word.text)),
            Kind::Name => Some(unquote(word.text)),
            Kind::String | Kind::Sign => None,
        }
    }

    fn select(&self, as_written: bool) -> Option<Vec<u8>> {
        let (mut cuts, wanted) = (Vec::new(), self.wanted());
        for at in 0..self.words.len() {
            let is_schema = self
                .name(at)
                .is_some_and(|name| name.eq_ignore_ascii_case(b"information_schema"));
            if !is_schema || !self.is_sign(at + 1, b'.') {
                continue;
            }
            let (Some(view), Some(first), Some(name)) =
                (self.view(at + 2), self.word(at), self.word(at + 2))
            else {
                continue;
            };
            if self.is_sign(at + 3, b'.') {
                // A column: the view has an alias now.
                cuts.push(Cut::new(first.start..name.start, ""));
                continue;
            }
            let mut with = self.seen.view(view, |column| wanted(column, view));
            if !self.has_alias(at + 3) {
                let written = String::from_utf8_lossy(&unquote(name.text)).into_owned();
                let _ = write!(with, " AS {}", quoted(&written));
            }
            cuts.push(Cut::new(first.start..name.end(), with));
        }
        let reads = cuts.iter().any(|cut| !cut.with.is_empty());
        if reads && as_written {
            cuts.extend(named_as_written(self.text, self.facts));
        }
        reads.then(|| cut(self.text, &cuts))
    }

    fn has_alias(&self, at: usize) -> bool {
        self.word(at).is_some_and(|word| match word.kind {
            Kind::Name => true,
            Kind::Word => !word.is_any(NO_ALIAS),
            Kind::String | Kind::Sign => false,
        })
    }

    /// Whether a column may be read: its name is in the text, or a star that is none of COUNT(*).
    fn wanted(&self) -> impl Fn(&str, &View) -> bool + '_ {
        let star = (0..self.words.len()).any(|at| {
            let before = at.checked_sub(1).and_then(|before| self.word(before));
            self.is_sign(at, b'*')
                && before.is_some_and(|before| {
                    before.is_any(&["SELECT", "DISTINCT", "ALL"])
                        || before.is_sign(b',')
                        || before.is_sign(b'.')
                })
        });
        move |column, view| {
            let is_usual = view.columns.contains(&column);
            let is_it = |(at, word): (usize, &Token<'_>)| {
                let is_named = matches!(word.kind, Kind::Word | Kind::Name)
                    && unquote(word.text).eq_ignore_ascii_case(column.as_bytes());
                // What only some servers have may be no more than an alias.
                is_named && (is_usual || at == 0 || !self.is(at - 1, "AS"))
            };
            is_usual && star || self.words.iter().enumerate().any(is_it)
        }
    }

    /// SHOW [FULL] TABLES, SHOW TABLE STATUS.
    fn show(&self) -> Option<Vec<u8>> {
        let mut at = 1;
        if self.is(at, "EXTENDED") {
            at += 1;
        }
        let full = self.is(at, "FULL");
        at += usize::from(full);
        let status = self.is(at, "TABLE") && self.is(at + 1, "STATUS") && !full;
        (status || self.is(at, "TABLES")).then_some(())?;
        at += if status { 2 } else { 1 };
        let mut schema = Cow::Borrowed(self.facts.schema.as_bytes());
        if self.is(at, "FROM") || self.is(at, "IN") {
            schema = self.name(at + 1)?;
            at += 2;
        }
        let schema = std::str::from_utf8(&schema).ok()?;
        (!schema.is_empty()).then_some(())?;
        let (mut like, mut condition) = (None, None);
        if self.is(at, "LIKE") {
            let pattern = self.word(at + 1)?;
            let is_string =
                pattern.text.first() == Some(&b'\'') || self.facts.quotes == DoubleQuotes::Strings;
            (pattern.kind == Kind::String && is_string).then_some(())?;
            like = Some(std::str::from_utf8(pattern.text).ok()?);
            at += 2;
        } else if self.is(at, "WHERE") {
            let from = self.word(at + 1)?.start;
            let end = self.words.last().filter(|last| last.is_sign(b';'));
            let end = end.map_or(self.text.len(), |last| last.start);
            condition = Some(std::str::from_utf8(self.text.get(from..end)?).ok()?);
            at = self.words.len();
        }
        at += usize::from(self.is_sign(at, b';'));
        (at >= self.words.len()).then_some(())?;
        let columns = match status {
            true => STATUS.to_vec(),
            false => Vec::new(),
        };
        Some(
            self.shown((schema, &columns, full), like, condition)
                .into_bytes(),
        )
    }

    fn shown(
        &self,
        (schema, status, full): (&str, &[(&str, &str)], bool),
        like: Option<&str>,
        condition: Option<&str>,
    ) -> String {
        let pattern = like.map(|like| unquote(like.as_bytes()));
        let title = match &pattern {
            Some(pattern) => format!("Tables_in_{schema} ({})", String::from_utf8_lossy(pattern)),
            None => format!("Tables_in_{schema}"),
        };
        let all: Vec<(&str, &str)> = match status.is_empty() {
            true => vec![("TABLE_NAME", &title), ("TABLE_TYPE", "Table_type")],
            false => status.to_vec(),
        };
        let named = all
            .iter()
            .map(|(column, name)| format!("{column} AS {}", quoted(name)));
        let named: Vec<_> = named.collect();
        let view = self
            .seen
            .view(&VIEWS[0], |column| all.iter().any(|one| one.0 == column));
        let mut inner = format!(
            "SELECT {} FROM {view} AS millrace_tables WHERE TABLE_SCHEMA = {}",
            named.join(", "),
            literal(schema)
        );
        if let Some(like) = like {
            let _ = write!(inner, " AND TABLE_NAME LIKE {like}");
        }
        let told = match status.is_empty() && !full {
            true => quoted(&title),
            false => "*".into(),
        };
        let condition = condition.map_or_else(String::new, |said| format!(" WHERE {said}"));
        format!("SELECT {told} FROM ({inner}) AS millrace_shown{condition} ORDER BY 1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Numbering;
    use crate::rows::{PartitionRow, TableRow};
    use sql::Lexing;

    fn map() -> Map {
        let row = |name: &str, schema: &str| TableRow {
            table_name: name.into(),
            schemaname: schema.into(),
            key_column: "id".into(),
            key_type: "INT".into(),
            function: "MOD(2)".into(),
            default_table: format!("{name}_default"),
            default_hostgroup: 1,
            ..TableRow::default()
        };
        let part = |table: &str, schema: &str, value: &str, hostgroup| PartitionRow {
            table_name: table.into(),
            schemaname: schema.into(),
            partition_name: value.into(),
            partition_value: value.into(),
            hostgroup_id: hostgroup,
            ..PartitionRow::default()
        };
        let tables = vec![row("users", ""), row("o", "shop")];
        let partitions = vec![
            part("users", "", "0", 1),
            part("users", "", "1", 2),
            part("o", "shop", "1", 2),
        ];
        Map::build(tables, partitions).unwrap()
    }

    fn said(text: &str, hostgroup: u32) -> Option<String> {
        said_as(text, hostgroup, false)
    }

    fn said_as(text: &str, hostgroup: u32, as_written: bool) -> Option<String> {
        let facts = Facts {
            schema: "shop",
            lexing: Lexing::Escapes,
            quotes: DoubleQuotes::Strings,
            comment: None,
            parameters: None,
            prepares: false,
            numbers: Numbering::Whichever,
            columns: None,
            bound: None,
            looked: None,
        };
        let serves = |of: u32| of == hostgroup;
        let told = catalogue(&map(), text.as_bytes(), &facts, (serves, as_written));
        told.map(|told| String::from_utf8(told).unwrap())
    }

    #[test]
    fn a_table_is_seen_once_by_its_logical_name() {
        let name = "CASE WHEN TABLE_NAME = 'users_default' THEN 'users' WHEN TABLE_NAME = 'o_default' AND TABLE_SCHEMA = 'shop' THEN 'o' ELSE TABLE_NAME END AS TABLE_NAME";
        let hidden = "TABLE_NAME NOT IN ('users_0', 'users') AND NOT (TABLE_SCHEMA = 'shop' AND TABLE_NAME IN ('o'))";
        assert_eq!(
            said("SELECT table_name FROM information_schema.tables WHERE information_schema.tables.table_schema = 'shop'", 1).unwrap(),
            format!("SELECT table_name FROM (SELECT TABLE_SCHEMA, {name} FROM information_schema.TABLES AS millrace WHERE {hidden}) AS `tables` WHERE tables.table_schema = 'shop'")
        );
        assert_eq!(
            said("SHOW TABLES LIKE 'u%';", 1).unwrap(),
            format!(
                "SELECT `Tables_in_shop (u%)` FROM (SELECT TABLE_NAME AS `Tables_in_shop (u%)`, TABLE_TYPE AS `Table_type` FROM (SELECT TABLE_SCHEMA, {name}, TABLE_TYPE FROM information_schema.TABLES AS millrace WHERE {hidden}) AS millrace_tables WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME LIKE 'u%') AS millrace_shown ORDER BY 1"
            )
        );
        let other = said("SELECT COUNT(*) FROM `information_schema`.`KEY_COLUMN_USAGE` k WHERE REFERENCED_TABLE_NAME IS NULL", 2).unwrap();
        assert!(
            other.contains("WHEN REFERENCED_TABLE_NAME = 'users_1' THEN 'users'"),
            "{other}"
        );
        assert!(
            other.contains("WHEN TABLE_NAME = 'o_1' AND TABLE_SCHEMA = 'shop' THEN 'o'"),
            "{other}"
        );
        assert!(
            other.contains("WHERE TABLE_NAME NOT IN ('users')")
                && other.ends_with(") k WHERE REFERENCED_TABLE_NAME IS NULL"),
            "{other}"
        );
        let sums = said("SELECT table_rows FROM information_schema.tables AS t", 1).unwrap();
        assert!(
            sums.contains("p.TABLE_NAME IN ('users_default', 'users_0')"),
            "{sums}"
        );
        let star = said("SELECT c.* FROM information_schema.columns c", 1).unwrap();
        assert!(
            star.contains("GENERATION_EXPRESSION") && !star.contains("SRS_ID"),
            "{star}"
        );
    }

    #[test]
    fn columns_are_called_as_the_statement_calls_them() {
        let first = |text: &str| {
            let said = said_as(text, 1, true).unwrap();
            said.split(" FROM ").next().unwrap().to_owned()
        };
        for (text, wanted) in [
            (
                "SELECT table_name, Engine e FROM information_schema.tables",
                "SELECT table_name AS `table_name`, Engine e",
            ),
            (
                "SELECT t.`Table_Name`, engine + 1 FROM information_schema.tables t",
                "SELECT t.`Table_Name` AS `Table_Name`, engine + 1",
            ),
            (
                "SELECT k.table_name, o.table_name, id FROM information_schema.key_column_usage AS k JOIN o",
                "SELECT k.table_name AS `table_name`, o.table_name, id",
            ),
            (
                "SELECT COUNT(*), table_type + 0 FROM information_schema.tables",
                "SELECT COUNT(*), table_type + 0",
            ),
            (
                "SELECT information_schema.tables.table_name FROM information_schema.tables",
                "SELECT tables.table_name AS `table_name`",
            ),
        ] {
            assert_eq!(first(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_asks_no_catalogue_stays() {
        for text in [
            "SHOW TABLES FROM shop LIKE ?",
            "SHOW VARIABLES LIKE 'x'",
            "SHOW CREATE TABLE x",
            "SELECT 1 FROM information_schema.processlist",
            "SELECT information_schema.tables.table_name",
            "DELETE FROM information_schema.tables",
            "SHOW TABLES EXTENDED",
        ] {
            assert_eq!(said(text, 1), None, "{text}");
        }
        // No table of the map is there.
        assert_eq!(said("SHOW TABLES", 3), None);
    }
}
