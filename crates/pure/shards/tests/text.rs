//! Routing as texts: each `*.txt` beside this file has tables, statements and where they go.
//! `UPDATE_EXPECT=1 cargo test -p shards` writes the outcomes anew.
//!
//! ```text
//! # a remark                                          tables stay until `clear`
//! table users: key_column=nickname | function=PREFIX(3) | default_table=users_default | default_hostgroup=1
//! partition users.nick1: partition_value=mar | hostgroup_id=1
//! schema shop
//! columns users: id, nickname                         the columns as a server tells them
//! lookup users.email: hostgroup_id=1 | state=READY  a column that is looked up
//! entries tmar, -                                   each question is answered so; `none`: nothing is there
//! numbers 41                                          the first number of the sequence; none are taken before
//! parameters: 7, 'x', NULL                            the values of ?
//! > SELECT 1 FROM users WHERE nickname = 'marvel'
//!   point: users.nick1 on hostgroup 1                 then what each leg is sent
//! >> SELECT …                                         the same, with reasons
//! >>> SELECT …                                        what is copied for a server that finishes it
//! ```

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use shards::{
    Asked, ColumnOrder, Columns, Declared, Described, Facts, KnownColumns, Listed, LookedUp,
    LookupRow, Map, Numbered, Numbering, Numbers, PartitionRow, Spread, TableRow, finish, list,
    number, spread,
};
use sql::tree::{DoubleQuotes, Literal};
use std::borrow::Cow;
use std::fmt::Write as _;

#[test]
fn statements_go_where_the_texts_say() {
    let mut files: Vec<_> = std::fs::read_dir("tests")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        check(&path);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its data and the flag that says to write it anew"
)]
fn check(path: &std::path::Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let told = World::default().run(&text);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, told).unwrap();
        return;
    }
    for (number, (line, told)) in (1..).zip(text.lines().zip(told.lines())) {
        assert_eq!(
            told,
            line,
            "{}:{number} (UPDATE_EXPECT=1 writes it anew)",
            path.display()
        );
    }
    assert_eq!(
        text.lines().count(),
        told.lines().count(),
        "{}",
        path.display()
    );
}

#[derive(Default)]
struct World {
    tables: Vec<TableRow>,
    partitions: Vec<PartitionRow>,
    schema: String,
    parameters: Option<Vec<Literal<'static>>>,
    numbers: Numbering,
    described: Described,
    lookups: Vec<LookupRow>,
    entries: Option<Vec<String>>,
}

impl World {
    fn map(&self) -> Result<Map, Vec<shards::Refused>> {
        let declared = Declared {
            tables: self.tables.clone(),
            partitions: self.partitions.clone(),
            lookups: self.lookups.clone(),
        };
        Map::build_with(declared, Vec::new(), Vec::new())
    }

    /// Asks and tells look-ups as a session does, until nothing more is wanted.
    fn look_up(&self, map: &Map, sql: &[u8], facts: Facts<'_>, out: &mut String) -> LookedUp {
        let mut looked = LookedUp::default();
        let Some(entries) = &self.entries else {
            return looked;
        };
        loop {
            let facts = Facts {
                looked: Some(&looked),
                ..facts
            };
            let Some(wanted) = spread(map, sql, &facts).lookups else {
                return looked;
            };
            let show = |asked: &Asked| {
                format!(
                    "on hostgroup {}: {}",
                    asked.hostgroup,
                    String::from_utf8_lossy(&asked.text)
                )
            };
            for asked in &wanted.asks {
                let _ = writeln!(out, "  asks {}", show(asked));
                let cell = |text: &str| Some(text.as_bytes().to_vec());
                let row = |entry: &String| {
                    (0..9)
                        .map(|n| vec![cell(&n.to_string()), cell(entry)])
                        .collect::<Vec<_>>()
                };
                let rows: Vec<_> = entries.iter().flat_map(row).collect();
                looked.answered(asked, &rows);
            }
            for asked in &wanted.writes {
                let _ = writeln!(out, "  writes {}", show(asked));
                looked.has_written(asked);
            }
        }
    }

    fn run(mut self, text: &str) -> String {
        let mut out = String::new();
        for line in text.lines().filter(|line| !line.starts_with("  ")) {
            let _ = writeln!(out, "{line}");
            if let Some(sql) = line.strip_prefix(">>> ") {
                self.finish(sql, &mut out);
            } else if let Some(sql) = line.strip_prefix(">> ") {
                self.answer(sql, true, &mut out);
            } else if let Some(sql) = line.strip_prefix("> ") {
                self.answer(sql, false, &mut out);
            } else if let Some(rest) = line.strip_prefix("table ") {
                self.tables.push(table(rest));
            } else if let Some(rest) = line.strip_prefix("partition ") {
                self.partitions.push(partition(rest));
            } else if let Some(rest) = line.strip_prefix("lookup ") {
                let row = self.lookup(rest);
                self.lookups.push(row);
            } else if let Some(rest) = line.strip_prefix("entries ") {
                let all = rest.split(", ").filter(|one| *one != "none");
                self.entries = Some(all.map(str::to_owned).collect());
            } else if let Some(rest) = line.strip_prefix("schema ") {
                self.schema = rest.into();
            } else if let Some(rest) = line.strip_prefix("parameters:") {
                let all = rest.split(',').map(str::trim).filter(|one| !one.is_empty());
                self.parameters = Some(all.map(literal).collect());
            } else if let Some(rest) = line.strip_prefix("numbers ") {
                let first = rest.parse().unwrap();
                self.numbers = Numbering::Taken(Numbers { first, count: 1000 });
            } else if let Some(rest) = line.strip_prefix("columns ") {
                let (table, names) = rest.split_once(": ").unwrap();
                let map = self.map().unwrap();
                let table = map.table(self.schema.as_bytes(), table.as_bytes()).unwrap();
                let names = names.split(", ").map(str::to_owned).collect();
                let columns = ColumnOrder { names };
                self.described.learn(table.number, &self.schema, columns);
            } else if line == "clear" {
                self = Self::default();
            } else {
                assert!(
                    line.is_empty() || line.starts_with('#'),
                    "what is '{line}'?"
                );
            }
        }
        out
    }

    fn lookup(&self, text: &str) -> LookupRow {
        let (named, columns) = text.split_once(": ").expect("lookup table.column: columns");
        let (named, column) = named.rsplit_once('.').expect("table.column");
        let (schemaname, table_name) = name(named);
        let map = self.map().unwrap();
        let table = map.table(schemaname.as_bytes(), table_name.as_bytes());
        let mut row = LookupRow {
            bucket_of: table.map(|table| table.bucketed_by()).unwrap_or_default(),
            lookup_table: format!("{table_name}_{column}_lookup"),
            column_name: column.into(),
            unique_keys: "SAME_KEY".into(),
            state: "READY".into(),
            nullable: 1,
            schemaname,
            table_name,
            ..LookupRow::default()
        };
        for (column, value) in pairs(columns) {
            match column {
                "hostgroup_id" => row.hostgroup_id = value.parse().unwrap(),
                "nullable" => row.nullable = value.parse().unwrap(),
                "has_default" => row.has_default = value.parse().unwrap(),
                "unique_keys" => row.unique_keys = value.into(),
                "state" => row.state = value.into(),
                "bucket_of" => row.bucket_of = value.into(),
                "lookup_table" => row.lookup_table = value.into(),
                _ => panic!("what is {column}?"),
            }
        }
        row
    }

    fn finish(&self, sql: &str, out: &mut String) {
        let map = self.map().unwrap();
        let comment = sql::words::first_comment(sql.as_bytes(), sql::Lexing::Escapes);
        let facts = Facts {
            schema: &self.schema,
            lexing: sql::Lexing::Escapes,
            quotes: DoubleQuotes::Strings,
            comment: comment.map(|at| &sql.as_bytes()[at]),
            parameters: None,
            prepares: false,
            numbers: Numbering::Whichever,
            columns: None,
            bound: None,
            looked: None,
        };
        let finish = match finish(&map, sql.as_bytes(), &facts) {
            None => return out.push_str("  is none\n"),
            Some(Err(words)) => {
                let _ = writeln!(out, "  refused: {words}");
                return;
            }
            Some(Ok(finish)) => finish,
        };
        for table in &finish.tables {
            let condition = String::from_utf8(table.condition.clone()).unwrap();
            let of_key = table.key.as_deref().unwrap_or("any");
            let copies = table.copies.join(", ");
            let _ = writeln!(out, "  {copies}: {condition} (key: {of_key})");
            for source in &table.sources {
                let hostgroup = source
                    .hostgroup
                    .map_or_else(|| "the usual".into(), |it| it.to_string());
                let _ = writeln!(
                    out,
                    "    {} of {hostgroup}: {}",
                    source.table, source.partitions
                );
            }
        }
        let _ = match &finish.columns {
            Columns::All => writeln!(out, "  all columns"),
            Columns::Named(names) => {
                let all = ["a", "b", "id", "user_id", "name", "x"];
                let read: Vec<_> = all.iter().filter(|name| finish.columns.has(name)).collect();
                writeln!(out, "  of {} names: {read:?}", names.len())
            }
        };
        let text = String::from_utf8(finish.text(sql.as_bytes())).unwrap();
        let _ = writeln!(out, "  {text}");
    }

    fn answer(&self, sql: &str, explained: bool, out: &mut String) {
        let map = match self.map() {
            Ok(map) => map,
            Err(refused) => {
                for one in refused {
                    let _ = writeln!(out, "  {}: {} {}", one.row, one.column, one.words);
                }
                return;
            }
        };
        let comment = sql::words::first_comment(sql.as_bytes(), sql::Lexing::Escapes);
        let facts = Facts {
            schema: &self.schema,
            lexing: sql::Lexing::Escapes,
            quotes: DoubleQuotes::Strings,
            comment: comment.map(|at| &sql.as_bytes()[at]),
            parameters: self.parameters.as_deref(),
            prepares: false,
            numbers: self.numbers,
            columns: Some(KnownColumns {
                described: &self.described,
                is_utf8: true,
            }),
            bound: None,
            looked: None,
        };
        let listed = match list(&map, sql.as_bytes(), &facts) {
            Listed::Not => None,
            Listed::Wants(wanted) => {
                let places = wanted.places.iter();
                let places: Vec<_> = places
                    .map(|(hostgroup, table)| format!("{table} on hostgroup {hostgroup}"))
                    .collect();
                let _ = writeln!(out, "  wants columns of {}", places.join(" or "));
                return;
            }
            Listed::Refused(_, words) => {
                let _ = writeln!(out, "  refused: {words}");
                return;
            }
            Listed::Done(text) => {
                let text = String::from_utf8(text).unwrap();
                let _ = writeln!(out, "  with columns: {text}");
                Some(text)
            }
        };
        let sql = listed.as_deref().unwrap_or(sql);
        let numbered = match number(&map, sql.as_bytes(), &facts) {
            Numbered::Not => None,
            Numbered::Wants { count, .. } => {
                let _ = writeln!(out, "  wants numbers: {count}");
                return;
            }
            Numbered::Refused(_, words) => {
                let _ = writeln!(out, "  refused: {words}");
                return;
            }
            Numbered::Done { text, first, .. } => {
                let text = String::from_utf8(text).unwrap();
                let _ = writeln!(out, "  numbered from {first}: {text}");
                Some(text)
            }
        };
        let sql = numbered.as_deref().unwrap_or(sql);
        let looked = self.look_up(&map, sql.as_bytes(), facts, out);
        let facts = Facts {
            looked: self.entries.is_some().then_some(&looked),
            ..facts
        };
        let routed = spread(&map, sql.as_bytes(), &facts);
        let _ = writeln!(out, "  {}", routed.spread);
        if explained {
            for reason in &routed.reasons {
                let _ = writeln!(out, "  because {reason}");
            }
            return;
        }
        let legs = match &routed.spread {
            Spread::Point(leg) => std::slice::from_ref(leg),
            Spread::Some(legs) | Spread::All(legs) => legs,
            Spread::Plain | Spread::Refused(_) => &[],
        };
        let mut before = String::new();
        for leg in legs {
            let sent = String::from_utf8(leg.text(sql.as_bytes())).unwrap();
            if sent != sql && sent != before {
                let _ = writeln!(out, "    {sent}");
            }
            before = sent;
        }
    }
}

fn literal(text: &str) -> Literal<'static> {
    let text: &'static str = Box::leak(text.to_owned().into_boxed_str());
    match text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
    {
        Some(inside) => Literal::Text(Cow::Borrowed(inside.as_bytes())),
        None if text == "NULL" => Literal::Null,
        None => Literal::Number(
            text.trim_start_matches('-').as_bytes(),
            text.starts_with('-'),
        ),
    }
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let all = text.split(" | ").filter(|pair| !pair.trim().is_empty());
    all.map(|pair| pair.trim().split_once('=').expect("column=value"))
}

fn name(text: &str) -> (String, String) {
    let (schema, table) = text.split_once('.').unwrap_or(("", text));
    (schema.into(), table.into())
}

fn table(text: &str) -> TableRow {
    let (named, columns) = text.split_once(": ").expect("table name: columns");
    let (schemaname, table_name) = name(named);
    let mut row = TableRow {
        schemaname,
        table_name,
        ..TableRow::default()
    };
    for (column, value) in pairs(columns) {
        let text = value.to_owned();
        match column {
            "active" => row.active = value.parse().unwrap(),
            "kind" => row.kind = text,
            "key_column" => row.key_column = text,
            "key_type" => row.key_type = text,
            "function" => row.function = text,
            "physical_name" => row.physical_name = text,
            "default_table" => row.default_table = text,
            "default_schema" => row.default_schema = text,
            "default_hostgroup" => row.default_hostgroup = value.parse().unwrap(),
            "auto_partition" => row.auto_partition = text,
            "sequence_column" => row.sequence_column = text,
            _ => panic!("what is {column}?"),
        }
    }
    row
}

fn partition(text: &str) -> PartitionRow {
    let (named, columns) = text
        .split_once(": ")
        .expect("partition table.name: columns");
    let (named, partition_name) = named.rsplit_once('.').expect("table.name");
    let (schemaname, table_name) = name(named);
    let mut row = PartitionRow {
        schemaname,
        table_name,
        partition_name: partition_name.into(),
        ..PartitionRow::default()
    };
    for (column, value) in pairs(columns) {
        let text = value.to_owned();
        match column {
            "partition_value" => row.partition_value = text,
            "hostgroup_id" => row.hostgroup_id = value.parse().unwrap(),
            "physical_schema" => row.physical_schema = text,
            "physical_table" => row.physical_table = text,
            _ => panic!("what is {column}?"),
        }
    }
    row
}
