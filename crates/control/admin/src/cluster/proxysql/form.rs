//! Form of a module: its rows as ProxySQLs have them. Made of what is in force, and the other way
//! round.

use super::facts::{Asked, Dialect, OWN_ADMIN, OWN_MYSQL};
use super::hash;
use crate::cluster::sums;
use crate::parts::{self, PartTable, Pieces, VARIABLES, is_shared};
use crate::tables::Module;
use config::Snapshot;
use line::Rows;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Rows of a module, result by result, with their checksum.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) results: Vec<Rows>,
    pub(crate) checksum: u64,
}

impl Form {
    pub(crate) fn of(module: Module, results: Vec<Rows>) -> Self {
        let checksum = hash::of_module(module, &results);
        Self { results, checksum }
    }
}

/// Knowledge of the ProxySQLs here: they have one version, and the same variables.
#[derive(Debug, Clone)]
pub(crate) struct Speech {
    /// As `@@version` says it.
    pub(crate) version: String,
    pub(crate) dialect: Dialect,
    /// Variables that one of them has, with its values; none if no one was asked.
    pub(crate) variables: Rc<BTreeMap<String, String>>,
}

/// Variables that ProxySQLs share, and that mean the same here.
fn is_ours(name: &str) -> bool {
    is_shared(name) && config::Variable::named(name).is_some()
}

/// Whether ProxySQLs share a variable of that module.
fn travels(module: Module, name: &str) -> bool {
    module
        .prefix()
        .is_some_and(|prefix| name.starts_with(prefix))
        && !OWN_ADMIN.contains(&name)
        && !OWN_MYSQL.contains(&name)
}

/// Results of a module, made of what is in force. `pause` is called now and then.
pub(crate) fn results(
    module: Module,
    snapshot: &Snapshot,
    dialect: Dialect,
    variables: &BTreeMap<String, String>,
    pause: &dyn Fn(),
) -> Vec<Rows> {
    if module.prefix().is_some() {
        return vec![variable_rows(module, snapshot, variables)];
    }
    let mut all = rows_here(module, snapshot, pause);
    let of = |asked: &Asked| {
        let Some((table, rows)) = all.remove(asked.table) else {
            return Rows::new();
        };
        let places: Vec<_> = asked
            .columns
            .iter()
            .filter_map(|column| place(table, column))
            .collect();
        let mut rows = rows;
        if asked.table == "mysql_servers" {
            rows.retain_mut(|row| is_wanted_server(row));
        }
        rows.sort_by(|a, b| in_order(&places[..asked.ordered], a, b));
        let cells = |row: Vec<Value>| places.iter().map(|at| cell(row.get(*at)?)).collect();
        rows.into_iter().map(cells).collect()
    };
    dialect.asked(module).iter().map(of).collect()
}

/// Rows in force, with their tables, by the names of these.
type Here = BTreeMap<&'static str, (&'static PartTable, Vec<Vec<Value>>)>;

fn rows_here(module: Module, snapshot: &Snapshot, pause: &dyn Fn()) -> Here {
    let tables = parts::of(module).map_or(&[][..], |part| part.tables());
    let mut all: Here = tables
        .iter()
        .map(|table| (table.name, (table, Vec::new())))
        .collect();
    let mut count = 0_usize;
    sums::lines(module, snapshot, &mut |table, line| {
        if count.is_multiple_of(64) {
            pause();
        }
        count += 1;
        let row = serde_json::from_slice(line).expect("a line is an array of cells");
        if let Some((_, rows)) = all.get_mut(table) {
            rows.push(row);
        }
    });
    all
}

fn place(table: &PartTable, column: &str) -> Option<usize> {
    let mut columns = table.columns.iter();
    columns.position(|ours| ours.eq_ignore_ascii_case(column))
}

/// ProxySQL leaves out servers that are OFFLINE_HARD, and what it has set aside counts as ONLINE.
fn is_wanted_server(row: &mut [Value]) -> bool {
    const STATUS: usize = 4;
    let Some(status) = row.get_mut(STATUS) else {
        return false;
    };
    if status == "SHUNNED" {
        *status = "ONLINE".into();
    }
    status != "OFFLINE_HARD"
}

/// As SQLite sorts them: numbers by size, texts by bytes.
fn in_order(places: &[usize], a: &[Value], b: &[Value]) -> Ordering {
    let compare = |at: &usize| match (a.get(*at), b.get(*at)) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a.as_i64().cmp(&b.as_i64()),
        (Some(Value::String(a)), Some(Value::String(b))) => a.as_bytes().cmp(b.as_bytes()),
        _ => Ordering::Equal,
    };
    places
        .iter()
        .map(compare)
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn cell(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_bytes().to_vec()),
        other => Some(other.to_string().into_bytes()),
    }
}

fn variable_rows(module: Module, snapshot: &Snapshot, theirs: &BTreeMap<String, String>) -> Rows {
    let ours: BTreeMap<_, _> = snapshot.variables.pairs().into_iter().collect();
    let value = |name: &str, theirs: &String| match ours.get(name) {
        Some(value) if is_ours(name) => value.to_string(),
        _ => theirs.clone(),
    };
    theirs
        .iter()
        .filter(|(name, _)| travels(module, name))
        .map(|(name, other)| {
            let value = value(name, other);
            vec![Some(name.clone().into_bytes()), Some(value.into_bytes())]
        })
        .collect()
}

/// Variables of a result that was fetched.
pub(crate) fn pairs(rows: &Rows) -> BTreeMap<String, String> {
    let text = |cell: &Option<Vec<u8>>| {
        String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned()
    };
    rows.iter()
        .filter_map(|row| Some((text(row.first()?), text(row.get(1)?))))
        .collect()
}

/// Rows as Millraces give them to each other, made of what came from a ProxySQL; what ProxySQL does
/// not know stays as it is in force here.
pub(crate) fn pieces(
    module: Module,
    dialect: Dialect,
    results: &[Rows],
    now: &Snapshot,
    pause: &dyn Fn(),
) -> Pieces {
    if module.prefix().is_some() {
        return variable_pieces(results);
    }
    let here = rows_here(module, now, pause);
    let asked = dialect.asked(module);
    let named = match (module, dialect) {
        (Module::Servers, Dialect::Early) => named_by_topologies(asked, results),
        _ => BTreeSet::new(),
    };
    let mut all = Pieces::new();
    for (table, (declared, rows_here)) in here {
        let lines = match asked.iter().position(|asked| asked.table == table) {
            Some(at) => {
                let came = results.get(at).map_or(&[][..], Vec::as_slice);
                let is_moved = |cell: &[u8]| table == "mysql_servers" && named.contains(cell);
                let mut lines = lines(declared, &asked[at], came, &rows_here, &is_moved);
                let stays =
                    |row: &&Vec<Value>| row.first().and_then(cell).is_some_and(|id| is_moved(&id));
                lines.extend(rows_here.iter().filter(stays).map(|row| line_of(row)));
                lines
            }
            None => rows_here.iter().map(|row| line_of(row)).collect(),
        };
        pause();
        if !lines.is_empty() {
            all.push((table.to_owned(), lines.join(&b'\n')));
        }
    }
    all
}

fn line_of(row: &[Value]) -> Vec<u8> {
    serde_json::to_vec(row).expect("cells are written")
}

/// Rows of one table that came, as lines of ours; rows whose hostgroup `is_moved` are left out.
fn lines(
    declared: &PartTable,
    asked: &Asked,
    came: &[Vec<Option<Vec<u8>>>],
    here: &[Vec<Value>],
    is_moved: &dyn Fn(&[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let key = |row: &[Value]| row.first().and_then(cell);
    let kept: BTreeMap<_, _> = match asked.columns.len() + 1 < declared.columns.len() {
        true => here.iter().map(|row| (key(row), row)).collect(),
        false => BTreeMap::new(),
    };
    let mut lines = Vec::with_capacity(came.len());
    for row in came {
        if row.first().and_then(Option::as_deref).is_some_and(is_moved) {
            continue;
        }
        let before = row.first().and_then(|first| kept.get(first));
        let columns = declared.columns.iter().zip(declared.kinds).enumerate();
        let ours: Vec<Value> = columns
            .map(|(at, (column, kind))| {
                let is_it = |theirs: &&str| theirs.eq_ignore_ascii_case(column);
                match asked.columns.iter().position(is_it) {
                    Some(place) => value(kind, row.get(place).and_then(Option::as_deref)),
                    None if *column == "active" => 1.into(),
                    None => before
                        .and_then(|row| row.get(at).cloned())
                        .unwrap_or_else(|| value(kind, None)),
                }
            })
            .collect();
        lines.push(line_of(&ours));
    }
    lines
}

/// Cell of ours; a text that is no number stays one, and is refused where a number belongs.
fn value(kind: &str, cell: Option<&[u8]>) -> Value {
    let is_nullable = kind.ends_with("_or_null");
    let Some(bytes) = cell else {
        return match (is_nullable, kind) {
            (true, _) => Value::Null,
            (false, "int") => 0.into(),
            (false, _) => "".into(),
        };
    };
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<i64>() {
        Ok(number) if kind.starts_with("int") => number.into(),
        _ => text.into(),
    }
}

/// Hostgroups between which a monitor moves servers, as texts.
fn named_by_topologies(asked: &[Asked], results: &[Rows]) -> BTreeSet<Vec<u8>> {
    let mut named = BTreeSet::new();
    for (asked, rows) in asked.iter().zip(results) {
        let columns = asked.columns.iter();
        let places = columns
            .take_while(|column| column.ends_with("_hostgroup"))
            .count();
        let cells = rows.iter().flat_map(|row| row.iter().take(places));
        named.extend(cells.flatten().cloned());
    }
    named
}

fn variable_pieces(results: &[Rows]) -> Pieces {
    let all = results.first().map(pairs).unwrap_or_default();
    let lines: Vec<_> = all
        .iter()
        .filter(|(name, _)| is_ours(name))
        .map(|pair| serde_json::json!(pair).to_string().into_bytes())
        .collect();
    match lines.is_empty() {
        true => Pieces::new(),
        false => vec![(VARIABLES.to_owned(), lines.join(&b'\n'))],
    }
}
