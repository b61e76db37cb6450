//! Needs of a move, asked of both servers. All that is missing is said at once.

use crate::record::Record;
use crate::source::{is_it, one, text};
use crate::world::{Place, Trouble};
use line::Line;

/// Statement that a server is asked.
const ASKED: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'binlog_row_image', \
    'binlog_row_value_options', 'gtid_mode', 'read_only', 'super_read_only', 'hostname', 'port', 'datadir')";

struct Said(Vec<(String, String)>);

impl Said {
    async fn of(line: &mut Line) -> Result<Self, Trouble> {
        let rows = line.ask(ASKED).await?;
        let pair = |row: &crate::table::Cells| (text(row, 0).to_ascii_lowercase(), text(row, 1));
        Ok(Self(rows.iter().map(pair).collect()))
    }

    fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Where its data are, which no other server has.
    fn place(&self) -> [Option<&str>; 3] {
        ["hostname", "port", "datadir"].map(|name| self.value(name))
    }
}

pub(crate) fn is_mariadb(line: &Line) -> bool {
    line.version().contains("MariaDB")
}

/// Looks at both servers, and at the table.
pub(crate) async fn check(
    record: &Record,
    (source, target): (&mut Line, &mut Line),
    places: (&Place, &Place),
) -> Result<(), Trouble> {
    let mut missing = Vec::new();
    let (here, there) = (Said::of(source).await?, Said::of(target).await?);
    if is_mariadb(source) != is_mariadb(target) {
        missing.push("both servers must be of one kind, MySQL or MariaDB".to_owned());
    }
    let is_same = (&places.0.host, places.0.port) == (&places.1.host, places.1.port);
    // A part, or rows that come together, may go to a table beside the old one.
    let is_beside = record.split.is_some() || record.merge.is_some();
    if (is_same || here.place() == there.place()) && !is_beside {
        missing.push("both hostgroups are on one server".to_owned());
    }
    missing.extend(log_of(&here, is_mariadb(source)));
    for name in ["read_only", "super_read_only"] {
        if there.value(name) == Some("ON") {
            missing.push(format!("the target has {name} = ON"));
        }
    }
    missing.extend(of_table((&record.database, &record.physical), source).await?);
    if let Some(merge) = &record.merge {
        let log = log_of(&there, is_mariadb(target));
        missing.extend(log.into_iter().filter(|_| !is_same));
        missing.extend(of_table((&merge.database, &merge.physical), target).await?);
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Trouble::Over(missing.join("; "))),
    }
}

/// Tells what the log of the source lacks.
fn log_of(said: &Said, is_mariadb: bool) -> Vec<String> {
    let needs = |name: &str, wanted: &str, or_none: bool| {
        let is = said.value(name);
        let fits = is.map_or(or_none, |is| is.eq_ignore_ascii_case(wanted));
        let is = is.unwrap_or("unknown");
        (!fits).then(|| format!("the source has {name} = {is}, and it must be '{wanted}'"))
    };
    let all = [
        needs("log_bin", "ON", false),
        needs("binlog_format", "ROW", true),
        needs("binlog_row_image", "FULL", true),
        needs("binlog_row_value_options", "", true),
        needs("gtid_mode", "ON", is_mariadb),
    ];
    all.into_iter().flatten().collect()
}

/// Tells what the table has and must not have.
async fn of_table((schema, name): (&str, &str), line: &mut Line) -> Result<Vec<String>, Trouble> {
    let of_it = is_it(schema, name, "TABLE_SCHEMA", "TABLE_NAME");
    let kind = format!(
        "SELECT CONCAT(TABLE_TYPE, ' ', IFNULL(ENGINE, '')) FROM information_schema.TABLES WHERE {of_it}"
    );
    let triggers = format!(
        "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE {}",
        is_it(schema, name, "EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE")
    );
    let foreign = format!(
        "SELECT COUNT(*) FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL AND ({of_it} OR {})",
        is_it(
            schema,
            name,
            "REFERENCED_TABLE_SCHEMA",
            "REFERENCED_TABLE_NAME"
        )
    );
    let mut missing = Vec::new();
    match one(line, &kind).await?.as_str() {
        "BASE TABLE InnoDB" => {}
        "" => missing.push(format!("the source has no table {schema}.{name}")),
        other => missing.push(format!(
            "{schema}.{name} is a {other}, and only plain tables of InnoDB are moved"
        )),
    }
    if one(line, &triggers).await? != "0" {
        missing.push(format!("{schema}.{name} has triggers"));
    }
    if one(line, &foreign).await? != "0" {
        missing.push(format!(
            "{schema}.{name} has foreign keys, or is named by some"
        ));
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_lacks_is_named() {
        let said = |all: &[(&str, &str)]| {
            let all = all
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Said(all.collect())
        };
        let mariadb = said(&[("log_bin", "ON"), ("binlog_format", "MIXED")]);
        assert_eq!(
            log_of(&mariadb, true),
            ["the source has binlog_format = MIXED, and it must be 'ROW'"]
        );
        let mysql = said(&[
            ("log_bin", "OFF"),
            ("binlog_row_image", "MINIMAL"),
            ("binlog_row_value_options", "PARTIAL_JSON"),
            ("gtid_mode", "OFF_PERMISSIVE"),
        ]);
        assert_eq!(log_of(&mysql, false).len(), 4);
        let well = said(&[
            ("log_bin", "ON"),
            ("gtid_mode", "ON"),
            ("binlog_row_value_options", ""),
        ]);
        assert!(log_of(&well, false).is_empty());
    }
}
