//! The constraints of a table, told in an operator's words before SQLite would tell them in its own.
//!
//! They are read from the table's declaration: what a CHECK says there is what a message says here.

use super::tree::Place;
use crate::engine::SqlError;
use crate::tables;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::collections::HashMap;

/// One column.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) is_number: bool,
    /// Value where a row says nothing.
    pub(super) default: Value,
    is_needed: bool,
}

/// Everything that a table wants of its rows.
pub(super) struct Constraints {
    pub(super) columns: Vec<Column>,
    /// The column that SQLite would number by itself.
    pub(super) numbered: Option<usize>,
    /// Each CHECK as the conditions that all have to hold.
    checks: Vec<Vec<&'static str>>,
    /// Columns that no two rows have in common.
    keys: Vec<Vec<usize>>,
    /// Asks which conditions hold for the values of a row.
    ask: String,
}

impl Constraints {
    pub(super) fn of(conn: &Connection, table: &str) -> Result<Self, SqlError> {
        let columns = columns(conn, table)?;
        let mut select = conn.prepare(
            "SELECT cid FROM pragma_table_info(?1, 'main') WHERE pk = 1 AND type = 'INTEGER'",
        )?;
        let numbered = select.query_map([table], |row| row.get(0))?.next();
        let numbered = numbered.transpose()?;
        let mut keys = unique(conn, table)?;
        keys.extend(numbered.map(|at| vec![at]));
        let declared = tables::all().find(|known| known.name == table);
        let checks = checks(declared.map_or("", |table| table.columns));
        let conditions: Vec<_> = checks
            .iter()
            .flatten()
            .map(|one| format!("({one})"))
            .collect();
        let values: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| format!("?{} AS \"{}\"", at + 1, column.name))
            .collect();
        let ask = format!(
            "SELECT {} FROM (SELECT {})",
            conditions.join(", "),
            values.join(", ")
        );
        Ok(Self {
            columns,
            numbered,
            checks,
            keys,
            ask,
        })
    }

    /// Constraints that a whole row breaks: the column of each, and a sentence.
    pub(super) fn broken(
        &self,
        conn: &Connection,
        row: &[Value],
    ) -> Result<Vec<(&str, String)>, SqlError> {
        let mut words: Vec<(&str, String)> = Vec::new();
        for (column, value) in self.columns.iter().zip(row) {
            let name = &column.name;
            let sentence = match value {
                Value::Null if column.is_needed => format!("{name} is missing"),
                Value::Text(text) if column.is_number => {
                    format!("{name} must be a whole number; '{text}' is not")
                }
                _ => continue,
            };
            words.push((name, sentence));
        }
        let values = words.len();
        for condition in self.failed(conn, row)? {
            let (subject, sentence) = self.sentence(condition, row);
            let (told, more) = words.split_at(values);
            let is_told = told.iter().any(|(column, _)| *column == subject)
                || more.iter().any(|(_, words)| *words == sentence);
            if !is_told {
                words.push((subject, sentence));
            }
        }
        Ok(words)
    }

    /// The conditions that do not hold, with the others of the same CHECK.
    fn failed(
        &self,
        conn: &Connection,
        row: &[Value],
    ) -> Result<Vec<(&'static str, &[&'static str])>, SqlError> {
        let all = self.checks.iter();
        let all = all.flat_map(|check| check.iter().map(move |one| (*one, check.as_slice())));
        let all: Vec<_> = all.collect();
        if all.is_empty() {
            return Ok(all);
        }
        let mut ask = conn.prepare_cached(&self.ask)?;
        let fails = ask.query_row(params_from_iter(row), |answer| {
            (0..all.len())
                .map(|at| Ok(answer.get::<_, Option<bool>>(at)? == Some(false)))
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let failed = all.into_iter().zip(fails).filter(|(_, fails)| *fails);
        Ok(failed.map(|(one, _)| one).collect())
    }

    /// The column that a condition is about, and what it says.
    fn sentence<'s>(
        &'s self,
        (condition, check): (&str, &[&str]),
        row: &[Value],
    ) -> (&'s str, String) {
        let mut names = identifiers(condition).filter_map(|name| self.column(name));
        let Some(subject) = names.next() else {
            return ("", format!("it breaks CHECK ({condition})"));
        };
        let other = names.find(|name| *name != subject);
        let name = self.columns[subject].name.as_str();
        let value = shown(&row[subject]);
        if condition.starts_with("CASE ") {
            let other = other.map_or("another", |at| &self.columns[at].name);
            return (name, format!("{name} needs a {other}"));
        }
        let must = if let Some(other) = other.filter(|_| condition.contains("<>")) {
            let other = &self.columns[other].name;
            return (name, format!("{name} and {other} are both {value}"));
        } else if condition.contains("JSON_VALID") {
            "JSON, or empty".to_owned()
        } else if let Some((_, first)) = condition.split_once(",1,1) = ") {
            return (
                name,
                format!("{name} must begin with {first}; '{value}' does not"),
            );
        } else if let Some((_, list)) = condition.split_once('(').filter(|_| is_in(condition)) {
            choices(list)
        } else {
            match bounds(check, name) {
                (Some(least), Some(most)) => format!("from {least} to {most}"),
                (Some(least), None) => format!("at least {least}"),
                _ => return (name, format!("{name} breaks CHECK ({condition})")),
            }
        };
        (name, format!("{name} must be {must}; '{value}' is not"))
    }

    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns
            .iter()
            .position(|column| column.name.eq_ignore_ascii_case(name))
    }
}

/// Rows of a list so far, by what no two of them may share.
#[derive(Default)]
pub(super) struct Seen {
    by_key: HashMap<(usize, String), usize>,
    rows: Vec<(Place, Vec<Value>)>,
}

/// A row that shares a key with one before it.
pub(super) enum Again<'s> {
    /// The row of this place once more.
    Same(&'s Place),
    /// Another row; the columns that are alike, and where the first stands.
    Other(String, &'s Place),
}

impl Seen {
    /// Takes a row, unless one like it is there.
    pub(super) fn add(
        &mut self,
        table: &Constraints,
        row: &[Value],
        at: &Place,
    ) -> Option<Again<'_>> {
        let keys: Vec<_> = table
            .keys
            .iter()
            .enumerate()
            .filter(|(_, key)| key.iter().all(|at| row[*at] != Value::Null))
            .map(|(number, key)| {
                let values: Vec<_> = key.iter().map(|at| &row[*at]).collect();
                (number, format!("{values:?}"))
            })
            .collect();
        let found = keys
            .iter()
            .find_map(|key| Some((key.0, *self.by_key.get(key)?)));
        let Some((number, before)) = found else {
            let index = self.rows.len();
            self.by_key.extend(keys.into_iter().map(|key| (key, index)));
            self.rows.push((at.clone(), row.to_vec()));
            return None;
        };
        let (place, other) = &self.rows[before];
        if other == row {
            return Some(Again::Same(place));
        }
        let alike = table.keys[number].iter().map(|at| {
            let value = shown(&row[*at]);
            format!("{} {value}", table.columns[*at].name)
        });
        Some(Again::Other(alike.collect::<Vec<_>>().join(", "), place))
    }
}

fn columns(conn: &Connection, table: &str) -> Result<Vec<Column>, SqlError> {
    let mut select = conn.prepare(
        "SELECT name, type LIKE '%INT%', \"notnull\", coalesce(dflt_value, 'NULL') \
         FROM pragma_table_info(?1, 'main') ORDER BY cid",
    )?;
    let mut found = select.query([table])?;
    let mut columns = Vec::new();
    while let Some(row) = found.next()? {
        let (name, is_needed): (String, bool) = (row.get(0)?, row.get(2)?);
        let declared: String = row.get(3)?;
        let default = conn.query_row(&format!("SELECT {declared}"), [], |row| row.get(0))?;
        // A comment that is missing is an empty one, also where the table has no default for it.
        let default = match default {
            Value::Null if is_needed && name == "comment" => Value::Text(String::new()),
            other => other,
        };
        columns.push(Column {
            name,
            is_number: row.get(1)?,
            default,
            is_needed,
        });
    }
    Ok(columns)
}

/// The columns of every PRIMARY KEY and UNIQUE.
fn unique(conn: &Connection, table: &str) -> Result<Vec<Vec<usize>>, SqlError> {
    let mut select = conn.prepare(
        "SELECT list.name, info.cid FROM pragma_index_list(?1, 'main') AS list, \
         pragma_index_info(list.name, 'main') AS info \
         WHERE list.\"unique\" ORDER BY list.origin = 'u', list.seq, info.seqno",
    )?;
    let mut found = select.query([table])?;
    let mut keys: Vec<(String, Vec<usize>)> = Vec::new();
    while let Some(row) = found.next()? {
        let (index, column): (String, usize) = (row.get(0)?, row.get(1)?);
        match keys.last_mut() {
            Some((name, key)) if *name == index => key.push(column),
            _ => keys.push((index, vec![column])),
        }
    }
    Ok(keys.into_iter().map(|(_, key)| key).collect())
}

/// Every CHECK of a declaration, as conditions.
fn checks(declared: &'static str) -> Vec<Vec<&'static str>> {
    let mut checks = Vec::new();
    let mut rest = declared;
    while let Some((_, behind)) = rest.split_once("CHECK") {
        let Some(inside) = behind.trim_start().strip_prefix('(') else {
            rest = behind;
            continue;
        };
        let end = closing(inside);
        checks.push(conditions(inside[..end].trim()));
        rest = &inside[end..];
    }
    checks
}

/// Where the parenthesis closes that was opened before `text`.
fn closing(text: &str) -> usize {
    let mut open = 1_usize;
    let closes = |c: char| {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        open == 0
    };
    text.find(closes).unwrap_or(text.len())
}

/// The parts of a CHECK between its ANDs; what is not a chain of ANDs is one condition.
fn conditions(check: &'static str) -> Vec<&'static str> {
    if check.starts_with("CASE ") {
        return vec![check];
    }
    let mut open = 0_usize;
    let (mut parts, mut from) = (Vec::new(), 0);
    for (at, c) in check.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            ' ' if open == 0 && check[at..].starts_with(" OR ") => return vec![check],
            ' ' if open == 0 && check[at..].starts_with(" AND ") => {
                parts.push(check[from..at].trim());
                from = at + " AND ".len();
            }
            _ => {}
        }
    }
    parts.push(check[from..].trim());
    parts
}

/// The words of a condition that can be names.
fn identifiers(condition: &str) -> impl Iterator<Item = &str> {
    condition
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
}

fn is_in(condition: &str) -> bool {
    condition.contains(" IN (") || condition.contains(" IN(")
}

/// The values of an IN, from behind the first parenthesis of its condition.
fn choices(list: &str) -> String {
    let list = list.rsplit_once('(').map_or(list, |(_, values)| values);
    let values: Vec<_> = list
        .trim_end_matches(')')
        .split(',')
        .map(|value| value.trim().trim_matches('\''))
        .collect();
    match values.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => values.join(""),
    }
}

/// The least and the most that the conditions of a CHECK leave a column.
fn bounds(check: &[&str], name: &str) -> (Option<i64>, Option<i64>) {
    let number = |sign: &str| {
        check.iter().find_map(|condition| {
            let (left, right) = condition.split_once(sign)?;
            let right = right.trim().parse::<i64>().ok()?;
            left.trim().eq_ignore_ascii_case(name).then_some(right)
        })
    };
    let least = number(">=").or_else(|| number(">").map(|below| below + 1));
    (least, number("<="))
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, View};
    use crate::tables::Kind;

    /// A table or a CHECK that is added must be told in words, too.
    #[test]
    fn every_check_of_every_table_has_words_of_its_own() {
        let engine = Engine::open(None, View::Admin).unwrap();
        let mut told = Vec::new();
        for table in tables::all() {
            if !matches!(table.kind, Kind::Declared { .. }) {
                continue;
            }
            let constraints = Constraints::of(engine.conn(), table.name).unwrap();
            let row = vec![Value::Integer(7); constraints.columns.len()];
            for check in &constraints.checks {
                for condition in check {
                    let (subject, words) = constraints.sentence((condition, check), &row);
                    assert!(!subject.is_empty(), "{}: {words}", table.name);
                    assert!(!words.contains("CHECK"), "{}: {words}", table.name);
                    told.push(words);
                }
            }
        }
        for words in [
            "port must be from 0 to 65535; '7' is not",
            "gtid_port and port are both 7",
            "status must be ONLINE, SHUNNED, OFFLINE_SOFT or OFFLINE_HARD; '7' is not",
            "reader_hostgroup and writer_hostgroup are both 7",
            "reader_hostgroup must be at least 1; '7' is not",
            "compression must be 0 or 1; '7' is not",
            "attributes must be JSON, or empty; '7' is not",
            "replace_pattern needs a match_pattern",
            "domain_name must begin with '.'; '7' does not",
        ] {
            assert!(told.iter().any(|one| one == words), "{words}: {told:#?}");
        }
    }

    #[test]
    fn a_check_is_taken_apart_at_its_ands_only() {
        let declared = "(a INT CHECK ((a <> b OR a=0) AND a >= 1 AND a<=9), b CHECK (x(b) OR b = ''), c CHECK(c IN(0,1)))";
        assert_eq!(
            checks(declared),
            [
                vec!["(a <> b OR a=0)", "a >= 1", "a<=9"],
                vec!["x(b) OR b = ''"],
                vec!["c IN(0,1)"]
            ]
        );
    }
}
