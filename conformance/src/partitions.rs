//! Statements on sharded tables, carried out by hand on two servers: what the map and the recipe say,
//! without a proxy.

use crate::library;
use crate::servers::Server;
use gather::{Column, Merge, Row, Step, recipe};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Value};
use shards::{Facts, Leg, Map, Spread, spread};
use sql::Lexing;
use sql::tree::{DoubleQuotes, tree};

/// The schema in which statements are said.
pub const SCHEMA: &str = "whole";

/// A connection to each server, in that schema.
///
/// # Errors
/// The server's.
pub async fn come_in(servers: &[Server; 2]) -> Result<[Conn; 2], String> {
    let words = |error: mysql_async::Error| error.to_string();
    let mut conns = [
        library::come_in(servers[0].port).await.map_err(words)?,
        library::come_in(servers[1].port).await.map_err(words)?,
    ];
    for conn in &mut conns {
        conn.query_drop(format!("USE {SCHEMA}"))
            .await
            .map_err(words)?;
    }
    Ok(conns)
}

/// The parts of a statement that is said in [`SCHEMA`].
///
/// # Errors
/// Refusal of a statement by the map.
pub fn legs(map: &Map, sql: &str) -> Result<Vec<Leg>, String> {
    let facts = Facts {
        schema: SCHEMA,
        lexing: Lexing::Escapes,
        quotes: DoubleQuotes::Strings,
        comment: None,
        parameters: None,
        prepares: false,
        numbers: shards::Numbering::Whichever,
        columns: None,
        bound: None,
        looked: None,
    };
    match spread(map, sql.as_bytes(), &facts).spread {
        Spread::Some(legs) | Spread::All(legs) => Ok(legs),
        Spread::Point(leg) => Ok(vec![leg]),
        other => Err(other.to_string()),
    }
}

/// Rows with the columns that they have.
///
/// # Errors
/// The server's.
pub async fn ask(conn: &mut Conn, sql: &str) -> Result<(Vec<Column>, Vec<Row>), String> {
    let words = |error: mysql_async::Error| format!("{sql}: {error}");
    let mut result = conn.query_iter(sql).await.map_err(words)?;
    let columns = result.columns();
    let columns = columns
        .iter()
        .flat_map(|columns| columns.iter())
        .map(|column| {
            Column::of(
                column.column_type() as u8,
                column.flags().bits(),
                column.character_set(),
                column.decimals(),
            )
        });
    let columns = columns.collect();
    let rows: Vec<mysql_async::Row> = result.collect().await.map_err(words)?;
    let cell = |value: Value| match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    Ok((
        columns,
        rows.into_iter()
            .map(|row| row.unwrap().into_iter().map(cell).collect())
            .collect(),
    ))
}

/// Pieces of a SELECT, as the map and the recipe cut it.
///
/// # Errors
/// The server's, and what the map or the recipe refuses.
pub async fn gathered(map: &Map, conns: &mut [Conn; 2], sql: &str) -> Result<Vec<Row>, String> {
    let legs = legs(map, sql)?;
    let asked = tree(sql.as_bytes(), Lexing::Escapes, DoubleQuotes::Strings).ok_or("no tree")?;
    let recipe = recipe(sql.as_bytes(), &asked)?;
    let (mut columns, mut parts) = (Vec::new(), Vec::new());
    for leg in &legs {
        let text = String::from_utf8(recipe.text(leg, sql.as_bytes()))
            .map_err(|error| error.to_string())?;
        let conn = &mut conns[leg.hostgroup as usize];
        let (own, rows) = ask(conn, &text).await?;
        columns = own;
        parts.push(rows.into_iter());
    }
    let mut merge = Merge::new(&recipe, columns, parts.len())?;
    let mut rows = Vec::new();
    loop {
        match merge.step() {
            Step::Needs(part) => merge.give(part, parts[part].next())?,
            Step::Row(row) => rows.push(row),
            Step::Done => return Ok(rows),
            Step::Failed(words) => return Err(words),
        }
    }
}

/// Rows for people.
#[must_use]
pub fn shown(rows: &[Row]) -> String {
    let cell = |cell: &Option<Vec<u8>>| {
        cell.as_ref().map_or_else(
            || "NULL".into(),
            |cell| String::from_utf8_lossy(cell).into_owned(),
        )
    };
    let line = |row: &Row| row.iter().map(cell).collect::<Vec<_>>().join(" | ");
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
