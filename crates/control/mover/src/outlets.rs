//! The tables that rows go to: the one at the target, and where only a part of the rows goes there,
//! another one beside the old table for those that stay.

use crate::record::Record;
use crate::source::{self, is_there, text};
use crate::table::{Cells, Key, Table, name, quoted};
use crate::world::{Part, Place, Trouble, World, keep, open};
use line::{Failed, Line};
use rt::Rt;
use std::collections::BTreeSet;

/// A statement that writes rows has about so many bytes.
const WRITTEN_AT_ONCE: usize = 1 << 20;

/// ER_TABLE_EXISTS_ERROR.
const IS_THERE: u16 = 1050;
/// ER_DUP_ENTRY.
const IS_DOUBLE: u16 = 1062;

/// Whose a table is.
enum Made {
    /// Made before.
    WasThere,
    /// Made now.
    Now,
    /// Made by somebody else, since it was looked for.
    ByAnother,
}

/// A table that gets rows.
struct Outlet {
    line: Line,
    table: Table,
    /// Whether the old table is on the same server.
    is_beside: bool,
}

/// All of them, with what tells which row goes to which.
pub(crate) struct Outlets {
    /// The one at the target first, then the one of those that stay.
    // 1 <= all.len() <= 2
    all: Vec<Outlet>,
    /// Tells whether a row goes to the first; `None` if all do.
    part: Option<Part>,
    /// The rows that stay, stay in their table, as long as no other is seen.
    is_bare: bool,
    /// Rows of several tables come together: none takes the place of another one.
    is_merged: bool,
}

/// A table that rows come from, on a connection.
pub(crate) type From<'l, 't> = (&'l mut Line, &'t Table);

impl Outlets {
    /// Connections to them. `target`: the one that is there already.
    pub(crate) async fn open<W: World>(
        rt: &Rt,
        world: &W,
        (record, table): (&Record, &Table),
        (target, here, there): (Line, &Place, &Place),
    ) -> Result<Self, Trouble> {
        let outlet = |line, named: &str, is_beside| Outlet {
            line,
            table: table.called(named),
            is_beside,
        };
        let Some(split) = &record.split else {
            let made = match &record.merge {
                None => outlet(target, &record.physical, false),
                Some(merge) => outlet(target, &merge.table, true),
            };
            return Ok(Self {
                all: vec![made],
                part: None,
                is_bare: false,
                is_merged: record.merge.is_some(),
            });
        };
        let is_beside = (&here.host, here.port) == (&there.host, there.port);
        let mut all = vec![outlet(target, &split.table, is_beside)];
        if !split.bare {
            all.push(outlet(open(rt, here).await?, &split.rest, true));
        }
        Ok(Self {
            all,
            part: Some(world.part(record).map_err(Trouble::Over)?),
            is_bare: split.bare,
            is_merged: false,
        })
    }

    /// Makes the tables, once, and empties them where nothing of what was copied counts. They are made like
    /// the last of those that rows come from, beside which that of a merge is.
    pub(crate) async fn prepare<W: World>(
        &mut self,
        world: &W,
        record: &mut Record,
        sources: &mut [From<'_, '_>],
    ) -> Result<(), Trouble> {
        let mut definitions = Vec::new();
        for (line, table) in &mut *sources {
            definitions.push(source::definition(line, &table.schema, &table.name).await?);
        }
        let Some(((_, table), definition)) = sources.last().zip(definitions.last()) else {
            return Err(Trouble::Over("no table has its rows".into()));
        };
        let (schema, old) = (table.schema.clone(), table.name.clone());
        if !record.made {
            for outlet in &mut self.all {
                let own = outlet.table.name.clone();
                if is_there(&mut outlet.line, &schema, &own).await? {
                    return Err(Trouble::Over(has_already(&schema, &own)));
                }
            }
            for (at, definition) in definitions.iter().enumerate() {
                record.origin(at).definition.clone_from(definition);
            }
            record.made = true;
            keep(world, record);
        }
        for (at, definition) in definitions.iter().enumerate() {
            let origin = record.origin(at);
            if origin.definition != definition {
                return Err(Trouble::Over(format!(
                    "the definition of {}.{} has changed meanwhile",
                    origin.database, origin.physical
                )));
            }
        }
        let mut any_made = false;
        for at in 0..self.all.len() {
            let outlet = &mut self.all[at];
            match outlet.make((&schema, &old), definition).await? {
                Made::WasThere => {}
                Made::Now => any_made = true,
                Made::ByAnother => {
                    let taken = outlet.table.name.clone();
                    self.leave(record, (&schema, at)).await?;
                    return Err(Trouble::Over(has_already(&schema, &taken)));
                }
            }
            let outlet = &mut self.all[at];
            // Servers differ in what they make of a text.
            let made = source::table(&mut outlet.line, &schema, &outlet.table.name).await?;
            if !made.is_like(table) {
                return Err(Trouble::Over(format!(
                    "the target makes another table of the definition of {schema}.{old}"
                )));
            }
        }
        if any_made {
            record.begin_anew();
        }
        if (0..record.origins()).any(|at| record.origin(at).position.is_none()) {
            // Of changes of rows that were copied before, nobody would hear any more.
            for outlet in &mut self.all {
                let of_it = quoted(&schema, &outlet.table.name);
                let empties = format!("TRUNCATE TABLE {of_it}");
                outlet.line.ask(&empties).await?;
            }
        }
        Ok(())
    }

    /// Another proxy has made this table since it was looked for: those before it are ours, and are
    /// dropped; it is not.
    async fn leave(
        &mut self,
        record: &mut Record,
        (schema, at): (&str, usize),
    ) -> Result<(), Trouble> {
        for outlet in &mut self.all[..at] {
            let of_it = quoted(schema, &outlet.table.name);
            let drops = format!("DROP TABLE IF EXISTS {of_it}");
            outlet.line.ask(&drops).await?;
        }
        record.made = false;
        Ok(())
    }

    /// Where a row goes.
    fn place_of(&self, table: &Table, row: &Cells) -> Result<usize, Trouble> {
        let Some(part) = &self.part else {
            return Ok(0);
        };
        let is_of_it = part(table.cell_of_part(row)).map_err(Trouble::Over)?;
        Ok(usize::from(!is_of_it))
    }

    /// Brings the rows of these keys to where they belong, as they are on lines of the sources; those
    /// that are gone go there, too.
    pub(crate) async fn apply(
        &mut self,
        sources: &mut [From<'_, '_>],
        keys: &[Key],
    ) -> Result<(), Trouble> {
        let mut rows = Vec::new();
        for (line, table) in &mut *sources {
            rows.extend(line.ask(&table.with_keys(keys)).await?);
        }
        let Some((_, table)) = sources.first() else {
            return Ok(());
        };
        if self.is_merged {
            let mut seen = BTreeSet::new();
            for row in &rows {
                let key = table.key_of(row).map_err(Trouble::Over)?;
                if let Some(key) = seen.replace(key) {
                    return Err(Trouble::Meets(format!(
                        "both partitions have a row with the key ({})",
                        key.join(", ")
                    )));
                }
            }
        }
        let all = self.sorted(table, &rows)?;
        for (outlet, rows) in self.all.iter_mut().zip(all) {
            outlet.line.ask("START TRANSACTION").await?;
            outlet.line.ask(&outlet.table.delete(keys)).await?;
            let written = outlet.write(&rows, self.is_merged).await;
            if written.is_err() {
                outlet.line.ask("ROLLBACK").await?;
            }
            written?;
            outlet.line.ask("COMMIT").await?;
        }
        Ok(())
    }

    /// Removes the rows of these keys, which are about to be written again.
    pub(crate) async fn remove_all(&mut self, keys: &[Key], at_once: usize) -> Result<(), Trouble> {
        for some in keys.chunks(at_once) {
            for outlet in &mut self.all {
                said(outlet.line.ask(&outlet.table.delete(some)).await)?;
            }
        }
        Ok(())
    }

    /// Writes rows where they belong; how many.
    pub(crate) async fn write(&mut self, table: &Table, rows: &[Cells]) -> Result<u64, Trouble> {
        let all = self.sorted(table, rows)?;
        let mut written = 0;
        for (outlet, rows) in self.all.iter_mut().zip(all) {
            outlet.write(&rows, false).await?;
            written += rows.len() as u64;
        }
        Ok(written)
    }

    /// Rows by where they belong.
    fn sorted<'r>(&self, table: &Table, rows: &'r [Cells]) -> Result<[Vec<&'r Cells>; 2], Trouble> {
        let mut all = [Vec::new(), Vec::new()];
        for row in rows {
            all[self.place_of(table, row)?].push(row);
        }
        if self.is_bare && !all[0].is_empty() {
            return Err(Trouble::HasRows);
        }
        Ok(all)
    }

    /// Statements without a schema are about that of the tables.
    pub(crate) async fn enter(&mut self) -> Result<(), Trouble> {
        for outlet in &mut self.all {
            let uses = format!("USE {}", name(&outlet.table.schema));
            outlet.line.ask(&uses).await?;
        }
        Ok(())
    }

    /// The key behind which so many rows are behind another one, where they have come together; the
    /// last rows have none.
    pub(crate) async fn end_of_chunk(
        &mut self,
        after: Option<&Key>,
        rows: u64,
    ) -> Result<Option<Key>, Trouble> {
        let Some(outlet) = self.all.first_mut() else {
            return Ok(None);
        };
        let end = outlet
            .line
            .ask(&outlet.table.end_of_chunk(after, rows))
            .await?;
        let upto = end.first().map(|row| outlet.table.key_alone(row));
        upto.transpose().map_err(Trouble::Over)
    }

    /// Number and checksum of the rows between two keys: as snapshots of the sources have them, and as
    /// they are here, for each table.
    pub(crate) async fn sums(
        &mut self,
        snapshots: &mut [From<'_, '_>],
        (after, upto): (Option<&Key>, Option<&Key>),
    ) -> Result<(Vec<Sum>, Vec<Sum>), Trouble> {
        let mut wanted = vec![Sum::default(); self.all.len()];
        for (snapshot, table) in snapshots {
            if self.part.is_none() {
                let rows = snapshot.ask(&table.checksum(after, upto)).await?;
                wanted[0].join(Sum::said(&rows)?);
                continue;
            }
            for row in snapshot.ask(&table.hashes(after, upto)).await? {
                let at = self.place_of(table, &row)?;
                if let Some(sum) = wanted.get_mut(at) {
                    sum.add(&text(&row, 0))?;
                }
            }
        }
        let mut found = Vec::new();
        for outlet in &mut self.all {
            let rows = outlet.line.ask(&outlet.table.checksum(after, upto)).await?;
            found.push(Sum::said(&rows)?);
        }
        Ok((wanted, found))
    }

    /// Numbers of AUTO_INCREMENT go on where the old tables' were.
    pub(crate) async fn count_on(&mut self, next: u64) -> Result<(), Trouble> {
        let at = usize::from(!self.is_merged);
        let Some(rest) = self.all.get_mut(at) else {
            return Ok(());
        };
        let of_it = quoted(&rest.table.schema, &rest.table.name);
        let counts = format!("ALTER TABLE {of_it} AUTO_INCREMENT = {next}");
        said(rest.line.ask(&counts).await)?;
        Ok(())
    }
}

/// Words for a table whose name is taken.
pub(crate) fn has_already(schema: &str, table: &str) -> String {
    format!("the target has a table {schema}.{table} already")
}

impl Outlet {
    /// Makes the table, if it is not there.
    async fn make(
        &mut self,
        (schema, old): (&str, &str),
        definition: &str,
    ) -> Result<Made, Trouble> {
        let own = self.table.name.clone();
        if is_there(&mut self.line, schema, &own).await? {
            return Ok(Made::WasThere);
        }
        let of_schema = name(schema);
        let creates = match self.is_beside {
            // Names of constraints are a schema's own, and a copy gets others.
            true => format!("CREATE TABLE {} LIKE {}", name(&own), name(old)),
            false => {
                let rest = body(definition, schema, old)?;
                let creates = format!("CREATE DATABASE IF NOT EXISTS {of_schema}");
                self.line.ask(&creates).await?;
                // Two parts of one table may be there.
                let rest = match own == old {
                    true => rest.to_owned(),
                    false => without_names(rest),
                };
                format!("CREATE TABLE {} {rest}", name(&own))
            }
        };
        self.line.ask(&format!("USE {of_schema}")).await?;
        match self.line.ask(&creates).await {
            Ok(_) => Ok(Made::Now),
            Err(Failed::Said { code, .. }) if code == IS_THERE => Ok(Made::ByAnother),
            Err(failed) => Err(failed.into()),
        }
    }

    /// Writes rows, in statements that are not too long. `is_merged`: none takes the place of another.
    async fn write(&mut self, rows: &[&Cells], is_merged: bool) -> Result<(), Trouble> {
        let head = match is_merged {
            true => self.table.insert(),
            false => self.table.replace(),
        };
        let mut sql = head.clone();
        for row in rows {
            let values = self.table.values(row).map_err(Trouble::Over)?;
            if sql.len() > head.len() {
                if sql.len() + values.len() > WRITTEN_AT_ONCE {
                    said(self.line.ask(&sql).await)?;
                    sql.truncate(head.len());
                } else {
                    sql.push_str(", ");
                }
            }
            sql.push_str(&values);
        }
        if sql.len() > head.len() {
            said(self.line.ask(&sql).await)?;
        }
        Ok(())
    }
}

/// A definition as servers show it, behind the table's name.
pub(crate) fn body<'d>(definition: &'d str, schema: &str, table: &str) -> Result<&'d str, Trouble> {
    let named = format!("CREATE TABLE {} ", name(table));
    definition.strip_prefix(&named).ok_or_else(|| {
        Trouble::Over(format!(
            "the definition of {schema}.{table} is not understood"
        ))
    })
}

/// A definition as servers show it, without the names of its checks, which are a schema's own.
pub(crate) fn without_names(definition: &str) -> String {
    let line = |line: &str| {
        let named = line.strip_prefix("  CONSTRAINT `");
        let behind = named.and_then(|rest| rest.find("` CHECK (").map(|at| &rest[at + 1..]));
        behind.map_or_else(|| line.to_owned(), |behind| format!(" {behind}"))
    };
    definition.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn said<T>(answer: Result<T, Failed>) -> Result<T, Trouble> {
    answer.map_err(|failed| match failed {
        Failed::Said {
            code: IS_DOUBLE,
            words,
        } => Trouble::Meets(format!(
            "rows of both partitions have one value of a unique key: {words}"
        )),
        failed => Trouble::Again(format!("the target: {failed}")),
    })
}

/// Number of rows, and a checksum of theirs that does not depend on their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) rows: u64,
    halves: [u64; 2],
}

impl Sum {
    /// As a server has computed it.
    fn said(rows: &[Cells]) -> Result<Self, Trouble> {
        let cell = |at: usize| {
            let number = rows.first().and_then(|row| text(row, at).parse().ok());
            number.ok_or_else(|| Trouble::Again("a server says no checksum".into()))
        };
        Ok(Self {
            rows: cell(0)?,
            halves: [cell(1)?, cell(2)?],
        })
    }

    /// More rows.
    fn join(&mut self, other: Self) {
        self.rows += other.rows;
        for (half, more) in self.halves.iter_mut().zip(other.halves) {
            *half ^= more;
        }
    }

    /// One row more, by its hash in hexadecimal digits.
    fn add(&mut self, hash: &str) -> Result<(), Trouble> {
        let half = |from: usize| {
            let digits = hash.get(from..from + 16);
            let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            number.ok_or_else(|| Trouble::Again("a server says no hash of a row".into()))
        };
        self.rows += 1;
        self.halves[0] ^= half(0)?;
        self.halves[1] ^= half(16)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_lose_their_names_and_nothing_else_does() {
        let shown = "(\n  `a` int COMMENT 'CONSTRAINT `x` CHECK (1)',\n  PRIMARY KEY (`a`),\n  \
            CONSTRAINT `t_chk_1` CHECK ((`a` > 1)),\n  CONSTRAINT `u` UNIQUE (`a`)\n) ENGINE=InnoDB";
        let wanted = "(\n  `a` int COMMENT 'CONSTRAINT `x` CHECK (1)',\n  PRIMARY KEY (`a`),\n  \
            CHECK ((`a` > 1)),\n  CONSTRAINT `u` UNIQUE (`a`)\n) ENGINE=InnoDB";
        assert_eq!(without_names(shown), wanted);
    }

    #[test]
    fn a_sum_is_the_one_that_a_server_computes() {
        let hashes = [
            "00000000000000010000000000000002ffffffffffffffffffffffffffffffff",
            "80000000000000030000000000000006ffffffffffffffffffffffffffffffff",
        ];
        let mut sum = Sum::default();
        for hash in hashes {
            sum.add(hash).unwrap();
        }
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        let row = vec![cell("2"), cell("9223372036854775810"), cell("4")];
        assert_eq!(Sum::said(&[row]).unwrap(), sum);
        assert!(sum.add("zz").is_err());
    }
}
