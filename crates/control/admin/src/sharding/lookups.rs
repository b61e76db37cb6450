//! `HSCALE ADD_LOOKUP` and `FILL_LOOKUP`: a column besides the key tells where rows are.
//!
//! docs/features/look-ups.md

use crate::engine::Reply;
use crate::grid::Grid;
use crate::loading;
use crate::said::Said;
use crate::sharding::partitions::{gate, hold, writer_of};
use crate::shared::Shared;
use crate::tables::Module;
use line::Line;
use mover::{
    Filling, LookedUpColumn, Place, There, drop_lookup, fill, look_at_column, look_there,
    make_lookup, snapshot,
};
use shards::{Home, Kind, Lookup, Map, Table};
use std::sync::Arc;
use std::time::Duration;

/// Servers allow names of so many characters.
const NAME_MAX: usize = 64;
/// So often it is tried to find no transaction open on a table.
const TRIES: usize = 60;
/// Time between two tries.
const AGAIN: Duration = Duration::from_secs(1);

/// A look-up that is to be added.
pub(crate) struct Adding<'a> {
    pub(crate) schema: &'a str,
    pub(crate) table: &'a str,
    pub(crate) column: &'a str,
    pub(crate) hostgroup: u32,
    /// `table` or `schema.table`; empty for the usual one.
    pub(crate) named: &'a str,
}

/// Where the rows of a home are.
struct Rows {
    place: Place,
    schema: String,
}

impl Shared {
    /// `HSCALE ADD_LOOKUP`: the table of the look-up is made, and entries are written from now on.
    pub(crate) async fn add_lookup(&self, adding: Adding<'_>) -> Result<Reply, Said> {
        let map = self.snapshot.borrow().shards.clone();
        let table = found(&map, adding.schema, adding.table)?;
        if let Some(words) = table.unfit_for_lookup(adding.column) {
            return Err(words.into());
        }
        let (lookup_schema, lookup_table) = match adding.named.split_once('.') {
            Some((schema, name)) => (schema.to_owned(), name.to_owned()),
            None if !adding.named.is_empty() => (String::new(), adding.named.to_owned()),
            None => (
                String::new(),
                format!("{}_{}_lookup", table.name, adding.column),
            ),
        };
        if lookup_table.is_empty() || lookup_table.chars().count() > NAME_MAX {
            return Err(format!(
                "argument 4 (look-up table): '{lookup_table}' is no name of 1 to {NAME_MAX} characters; name another one"
            )
            .into());
        }
        let column = self.column_of(&table, &adding).await?;
        let default = self.rows_of(&table, &table.homes[0]).await?;
        let schema = match (lookup_schema.as_str(), default) {
            ("", Some(rows)) => rows.schema,
            (schema, _) => schema.to_owned(),
        };
        let place = writer_of(self, adding.hostgroup).await;
        let place = place.map_err(Said::Sql)?;
        let made = make_lookup(&self.rt, &place, (&schema, &lookup_table), &column).await;
        made.map_err(|words| {
            Said::Sql(format!(
                "the table {schema}.{lookup_table} is not made on hostgroup {}: {words}",
                adding.hostgroup
            ))
        })?;
        let row = config::ShardLookupRow {
            schemaname: table.schema.clone(),
            table_name: table.name.clone(),
            column_name: column.name.clone(),
            hostgroup_id: adding.hostgroup.into(),
            lookup_schema,
            lookup_table: lookup_table.clone(),
            bucket_of: table.bucketed_by(),
            nullable: column.is_nullable.into(),
            has_default: column.has_default.into(),
            unique_keys: if column.same_key { "SAME_KEY" } else { "ANY" }.into(),
            state: "FILLING".into(),
            comment: String::new(),
        };
        if let Err(refused) = self.put_lookup_in_force(&row).await {
            let dropped = drop_lookup(&self.rt, &place, (&schema, &lookup_table)).await;
            if let Err(words) = dropped {
                let log = &self.hooks.log;
                log(&format!("{schema}.{lookup_table} is not dropped: {words}"));
            }
            return Err(refused);
        }
        Ok(Reply::Done {
            affected: 1,
            info: format!(
                "entries are written from now on; HSCALE FILL_LOOKUP('{}', '{}') adds those of rows that are there, once each proxy has this map",
                table.shown(),
                column.name
            ),
        })
    }

    /// The column of a look-up, which all partitions have alike.
    async fn column_of(&self, table: &Table, adding: &Adding<'_>) -> Result<LookedUpColumn, Said> {
        let refused = |words: &str| {
            Said::Sql(format!(
                "argument 2 (column): '{}' of {} cannot be looked up: {words}",
                adding.column,
                table.shown()
            ))
        };
        let mut first: Option<LookedUpColumn> = None;
        for home in &table.homes {
            let Some(rows) = self.rows_of(table, home).await? else {
                continue;
            };
            let of_it = (&*rows.schema, &*home.table);
            let named = (adding.column, &*table.column);
            let looked = look_at_column(&self.rt, &rows.place, of_it, named).await;
            let looked = looked.map_err(|words| refused(&words))?;
            let is_sequence = table.sequence.as_deref() == Some(&*looked.name);
            if looked.is_numbered && !is_sequence {
                return Err(refused(
                    "the server numbers it, and nobody knows the number before; HSCALE ADD_SEQUENCE comes first",
                ));
            }
            match &first {
                Some(first) if *first != looked => {
                    return Err(refused(
                        "partitions have it, or unique keys, otherwise than others",
                    ));
                }
                _ => first = Some(looked),
            }
        }
        first.ok_or_else(|| refused("no partition has a table yet"))
    }

    /// Where rows of a home are; `None` if its table is not there.
    async fn rows_of(&self, table: &Table, home: &Home) -> Result<Option<Rows>, Said> {
        let place = writer_of(self, home.hostgroup).await;
        let place = place.map_err(Said::Sql)?;
        let schema = match home.schema.as_str() {
            "" => &table.schema,
            schema => schema,
        };
        let looked = look_there(&self.rt, &place, schema, &home.table).await;
        Ok(match looked.map_err(Said::Sql)? {
            There::NoTable => None,
            There::Empty(schema) | There::Rows(schema) => Some(Rows { place, schema }),
        })
    }

    /// `HSCALE FILL_LOOKUP`: entries of rows that are there, and then statements go by them.
    pub(crate) async fn fill_lookup(
        &self,
        (schema, name): (&str, &str),
        column: &str,
    ) -> Result<Reply, Said> {
        let map = self.snapshot.borrow().shards.clone();
        let table = found(&map, schema, name)?;
        let mut lookups = table.lookups.iter();
        let lookup = lookups.find(|lookup| lookup.column.eq_ignore_ascii_case(column));
        let lookup = lookup.ok_or_else(|| {
            Said::Sql(format!(
                "argument 2 (column): {} has no look-up of '{column}'; HSCALE ADD_LOOKUP comes first",
                table.shown()
            ))
        })?;
        if lookup.is_ready {
            return Err(format!("the look-up of {} is READY", lookup.column).into());
        }
        if self.cores.behind() > 0 {
            return Err("not all cores have the newest map yet; try it again".into());
        }
        if let Some(other) = self.without_this_map().await?.first() {
            return Err(format!(
                "the proxy {other} has not this map yet, and would write rows without entries; try it again when it has"
            )
            .into());
        }
        let mut rows = 0;
        for home in &table.homes {
            rows += self
                .fill_from(&table, lookup, home)
                .await
                .map_err(|words| {
                    Said::Sql(format!(
                        "the look-up of {} is not filled: {words}",
                        lookup.column
                    ))
                })?;
        }
        let now = self.snapshot.borrow().shards.clone();
        let is_there = |home: &&Home| {
            let table = found(&now, schema, name).ok();
            table.is_some_and(|table| table.homes.contains(home))
        };
        if !table.homes.iter().all(|home| is_there(&home)) {
            return Err("a partition is elsewhere now; say HSCALE FILL_LOOKUP again".into());
        }
        self.set_ready(&table, lookup).await?;
        let info = format!(
            "{rows} rows of {} have their entries: statements go by its {}",
            table.shown(),
            lookup.column
        );
        (self.hooks.log)(&info);
        Ok(Reply::Done { affected: 1, info })
    }

    /// Writes the entries of a home's rows; how many rows there are.
    async fn fill_from(
        &self,
        table: &Arc<Table>,
        lookup: &Lookup,
        home: &Home,
    ) -> Result<u64, String> {
        let rows = self.rows_of(table, home).await;
        let Some(rows) = rows.map_err(|said| said.words())? else {
            return Ok(0);
        };
        let Some(reads) = self.snapshot_of(table, home, &rows).await? else {
            return Ok(0);
        };
        let target = writer_of(self, lookup.home.hostgroup).await?;
        let to = match (lookup.home.schema.as_str(), table.schema.as_str()) {
            ("", "") => rows.schema.as_str(),
            ("", schema) | (schema, _) => schema,
        };
        let variables = self.snapshot.borrow().variables.clone();
        let filling = Filling {
            from: (&rows.schema, &home.table),
            column: &lookup.column,
            key: &table.column,
            to: (to, &lookup.home.table),
            rows_at_once: variables.mysql_sharding_move_rows_at_once,
            rows_per_second: variables.mysql_sharding_move_rows_per_second,
        };
        let entry = |cell: Option<&[u8]>| table.entry_of_cell(cell).sql();
        fill(&self.rt, reads, &target, &filling, entry).await
    }

    /// A snapshot that has all rows which were written without entries.
    async fn snapshot_of(
        &self,
        table: &Table,
        home: &Home,
        rows: &Rows,
    ) -> Result<Option<Line>, String> {
        let gate = gate(&table.shown(), &home.name);
        let mut last = String::new();
        for _ in 0..TRIES {
            let cut_over = self
                .snapshot
                .borrow()
                .variables
                .mysql_sharding_cut_over_ms_max;
            let within = Duration::from_millis(cut_over);
            let held = hold(self, &gate, within).await;
            let opened = match held {
                Ok(()) => {
                    snapshot(&self.rt, &rows.place, (&rows.schema, &home.table), within).await
                }
                Err(words) => Err(words),
            };
            self.cores.open_gate(&gate).await;
            match opened {
                Ok(reads) => return Ok(reads),
                Err(words) => last = words,
            }
            self.rt.sleep(AGAIN).await;
        }
        Err(last)
    }

    /// Adds the row of a look-up, and loads and saves the map, or changes nothing.
    async fn put_lookup_in_force(&self, row: &config::ShardLookupRow) -> Result<(), Said> {
        let key = (&row.schemaname, &row.table_name, &row.column_name);
        self.engine.borrow().transaction(|conn| {
            conn.execute(
                "INSERT INTO main.mysql_shard_lookups (schemaname, table_name, column_name, hostgroup_id, lookup_schema, lookup_table, bucket_of, \
                 nullable, has_default, unique_keys, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                (
                    key.0,
                    key.1,
                    key.2,
                    row.hostgroup_id,
                    &row.lookup_schema,
                    &row.lookup_table,
                    &row.bucket_of,
                    row.nullable,
                    row.has_default,
                    &row.unique_keys,
                    &row.state,
                ),
            )
            .map(drop)?;
            Ok(())
        })?;
        self.cluster.edited(Module::Shards);
        if let Err(refused) = loading::load(self, Module::Shards).await {
            self.engine.borrow().transaction(|conn| {
                let sql = "DELETE FROM main.mysql_shard_lookups WHERE schemaname = ?1 AND table_name = ?2 AND column_name = ?3";
                conn.execute(sql, key).map(drop)?;
                Ok(())
            })?;
            return Err(refused);
        }
        loading::save(self, Module::Shards)?;
        Ok(())
    }

    async fn set_ready(&self, table: &Table, lookup: &Lookup) -> Result<(), Said> {
        let sets = |state: &str| {
            self.engine.borrow().transaction(|conn| {
                let sql = "UPDATE main.mysql_shard_lookups SET state = ?4 WHERE schemaname = ?1 AND table_name = ?2 AND column_name = ?3";
                let key = (&table.schema, &table.name, &lookup.column, state);
                Ok(conn.execute(sql, key)?)
            })
        };
        if sets("READY")? == 0 {
            return Err("mysql_shard_lookups has no such row any more".into());
        }
        self.cluster.edited(Module::Shards);
        if let Err(refused) = loading::load(self, Module::Shards).await {
            sets("FILLING")?;
            return Err(refused);
        }
        loading::save(self, Module::Shards)?;
        Ok(())
    }
}

/// A table of the map.
fn found(map: &Map, schema: &str, name: &str) -> Result<Arc<Table>, Said> {
    let is_it = |table: &&Arc<Table>| {
        table.schema.eq_ignore_ascii_case(schema) && table.name.eq_ignore_ascii_case(name)
    };
    let table = map.tables().find(is_it).cloned();
    let table = table.filter(|table| table.kind == Kind::Sharded);
    table.ok_or_else(|| Said::Sql(format!("argument 1 (table): '{name}' is not set up")))
}

/// `HSCALE SHOW LOOKUPS`.
pub(crate) fn show(map: &Map) -> Grid {
    let mut grid = Grid::new(["table", "column", "backend", "look-up table", "state"]);
    for table in map.tables() {
        for lookup in &table.lookups {
            let state = if lookup.is_ready { "READY" } else { "FILLING" };
            grid.push_row([
                Some(table.shown()),
                Some(lookup.column.clone()),
                Some(lookup.home.hostgroup.to_string()),
                Some(lookup.home.table.clone()),
                Some(state.to_owned()),
            ]);
        }
    }
    grid
}
