//! Between SQLite's rows and the plain rows of `config`: one line a column.

#![allow(
    non_snake_case,
    reason = "columns are written flagIN, and fields are called like their columns"
)]

use crate::engine::SqlError;
use config::{AuroraHostgroupRow, RestRouteRow, SchedulerRow};
use config::{
    ClickhouseSettingsRow, ClickhouseUserRow, FastRoutingRow, FirewallFingerprintRow,
    FirewallRuleRow, FirewallUserRow, HostgroupAttributesRow,
};
use config::{GaleraHostgroupRow, GroupReplicationHostgroupRow};
use config::{
    ProxyRow, Refusal, ReplicationHostgroupRow, RewriteRow, RuleRow, ServerRow, SslParamsRow,
    UserRow,
};
use config::{ScriptRow, ShardLookupRow, ShardPartitionRow, ShardTableRow};
use rusqlite::types::{ToSql, ValueRef};
use rusqlite::{Connection, Row};

/// A row that a table of ours holds.
pub(crate) trait Mapped: Sized {
    const TABLE: &'static str;
    const COLUMNS: &'static [&'static str];
    /// Kind of each column: `int`, `text`, and either of them `_or_null`.
    const KINDS: &'static [&'static str];

    fn read(row: &Row<'_>, wrong: &mut Vec<Refusal>) -> rusqlite::Result<Self>;

    fn write(&self, insert: &mut rusqlite::Statement<'_>) -> rusqlite::Result<usize>;

    /// As a line of JSON, as another proxy gets it: an array of the columns.
    fn write_json(&self, out: &mut Vec<u8>);

    /// Such a line, read again.
    ///
    /// # Errors
    /// It is none of this table.
    fn read_json(line: &[u8]) -> serde_json::Result<Self>;
}

macro_rules! mapped {
    ($row:ident is $table:literal by $keys:literal: $($field:ident $kind:ident,)*) => {
        impl Mapped for $row {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];
            const KINDS: &'static [&'static str] = &[$(stringify!($kind)),*];

            fn read(row: &Row<'_>, wrong: &mut Vec<Refusal>) -> rusqlite::Result<Self> {
                let mut at = 0;
                let mut cell = Cell { table: $table, columns: Self::COLUMNS, keys: $keys, row, wrong };
                $(let $field = cell.$kind(at, stringify!($field))?; at += 1;)*
                let _ = at;
                Ok(Self { $($field),* })
            }

            fn write(&self, insert: &mut rusqlite::Statement<'_>) -> rusqlite::Result<usize> {
                insert.execute(&[$(&self.$field as &dyn ToSql),*][..])
            }

            fn write_json(&self, out: &mut Vec<u8>) {
                out.push(b'[');
                $(json(&self.$field, out);)*
                out.pop();
                out.push(b']');
            }

            fn read_json(line: &[u8]) -> serde_json::Result<Self> {
                let mut cells = serde_json::from_slice::<Vec<serde_json::Value>>(line)?.into_iter();
                let row = Self { $($field: serde_json::from_value(cells.next().unwrap_or_default())?),* };
                if cells.next().is_some() { Err(serde::de::Error::custom("more columns than the table has")) } else { Ok(row) }
            }
        }
    };
}

mapped! { ServerRow is "mysql_servers" by 3:
    hostgroup_id int, hostname text, port int, gtid_port int, status text, weight int, compression int, max_connections int,
    max_replication_lag int, use_ssl int, max_latency_ms int, comment text,
}
mapped! { UserRow is "mysql_users" by 1:
    username text, password text_or_null, active int, use_ssl int, default_hostgroup int, default_schema text_or_null,
    schema_locked int, transaction_persistent int, fast_forward int, backend int, frontend int, max_connections int,
    attributes text, comment text,
}
#[rustfmt::skip]
mapped! { RuleRow is "mysql_query_rules" by 1:
    rule_id int, active int, username text_or_null, schemaname text_or_null, flagIN int, client_addr text_or_null,
    proxy_addr text_or_null, proxy_port int_or_null, digest text_or_null, match_digest text_or_null,
    match_pattern text_or_null, negate_match_pattern int, re_modifiers text_or_null, flagOUT int_or_null,
    replace_pattern text_or_null, destination_hostgroup int_or_null, cache_ttl int_or_null, cache_empty_result int_or_null,
    cache_timeout int_or_null, reconnect int_or_null, timeout int_or_null, retries int_or_null, delay int_or_null,
    next_query_flagIN int_or_null, mirror_flagOUT int_or_null, mirror_hostgroup int_or_null, error_msg text_or_null,
    OK_msg text_or_null, sticky_conn int_or_null, multiplex int_or_null, gtid_from_hostgroup int_or_null, log int_or_null,
    apply int, attributes text, comment text_or_null,
}
mapped! { RewriteRow is "mysql_query_rewrite" by 1:
    rewrite_id int, active int, username text_or_null, schemaname text_or_null, pattern text, replacement text,
    comment text_or_null,
}
mapped! { FastRoutingRow is "mysql_query_rules_fast_routing" by 3:
    username text, schemaname text, flagIN int, destination_hostgroup int, comment text,
}
mapped! { FirewallUserRow is "mysql_firewall_whitelist_users" by 3:
    active int, username text, client_address text, mode text, comment text,
}
mapped! { FirewallRuleRow is "mysql_firewall_whitelist_rules" by 6:
    active int, username text, client_address text, schemaname text, flagIN int, digest text, comment text,
}
mapped! { FirewallFingerprintRow is "mysql_firewall_whitelist_sqli_fingerprints" by 2:
    active int, fingerprint text,
}
mapped! { ClickhouseUserRow is "clickhouse_users" by 1:
    username text, password text_or_null, active int, max_connections int,
}
mapped! { ClickhouseSettingsRow is "clickhouse_user_settings" by 1:
    username text, clickhouse_user text, clickhouse_password text, database text, settings text, max_queries int,
    max_ms int, max_rows int, comment text,
}
mapped! { ScriptRow is "mysql_scripts" by 1:
    script_name text, active int, position int, usernames text, path text, body text, api text, on_error text, hook_ms_max int,
    result_mb_max int, settings text, serves text, globals text, http_hosts text, folders text, comment text,
}
mapped! { ShardTableRow is "mysql_shard_tables" by 2:
    schemaname text, table_name text, active int, kind text, key_column text, key_type text, function text,
    default_table text, default_schema text, default_hostgroup int, auto_partition text, sequence_column text, physical_name text,
    comment text,
}
mapped! { ShardPartitionRow is "mysql_shard_partitions" by 3:
    schemaname text, table_name text, partition_name text, partition_value text, hostgroup_id int, physical_schema text,
    physical_table text, comment text,
}
mapped! { ShardLookupRow is "mysql_shard_lookups" by 3:
    schemaname text, table_name text, column_name text, hostgroup_id int, lookup_schema text, lookup_table text, bucket_of text,
    nullable int, has_default int, unique_keys text, state text, comment text,
}
mapped! { ProxyRow is "proxysql_servers" by 2:
    hostname text, port int, weight int, comment text,
}
mapped! { SchedulerRow is "scheduler" by 1:
    id int, active int, interval_ms int, filename text, arg1 text_or_null, arg2 text_or_null, arg3 text_or_null,
    arg4 text_or_null, arg5 text_or_null, comment text,
}
mapped! { RestRouteRow is "restapi_routes" by 1:
    id int, active int, timeout_ms int, method text, uri text, script text, comment text,
}
mapped! { HostgroupAttributesRow is "mysql_hostgroup_attributes" by 1:
    hostgroup_id int, max_num_online_servers int, autocommit int, free_connections_pct int, init_connect text, multiplex int,
    connection_warming int, throttle_connections_per_sec int, ignore_session_variables text, hostgroup_settings text,
    servers_defaults text, comment text,
}
mapped! { ReplicationHostgroupRow is "mysql_replication_hostgroups" by 1:
    writer_hostgroup int, reader_hostgroup int, check_type text, comment text,
}
mapped! { GroupReplicationHostgroupRow is "mysql_group_replication_hostgroups" by 1:
    writer_hostgroup int, backup_writer_hostgroup int, reader_hostgroup int, offline_hostgroup int, active int,
    max_writers int, writer_is_also_reader int, max_transactions_behind int, comment text_or_null,
}
mapped! { GaleraHostgroupRow is "mysql_galera_hostgroups" by 1:
    writer_hostgroup int, backup_writer_hostgroup int, reader_hostgroup int, offline_hostgroup int, active int,
    max_writers int, writer_is_also_reader int, max_transactions_behind int, comment text_or_null,
}
mapped! { AuroraHostgroupRow is "mysql_aws_aurora_hostgroups" by 1:
    writer_hostgroup int, reader_hostgroup int, active int, aurora_port int, domain_name text, max_lag_ms int, check_interval_ms int,
    check_timeout_ms int, writer_is_also_reader int, new_reader_weight int, add_lag_ms int, min_lag_ms int, lag_num_checks int,
    comment text_or_null,
}
mapped! { SslParamsRow is "mysql_servers_ssl_params" by 3:
    hostname text, port int, username text, ssl_ca text, ssl_cert text, ssl_key text, ssl_capath text, ssl_crl text,
    ssl_crlpath text, ssl_cipher text, tls_version text, comment text,
}

/// All rows of a table in `main`, in the order of their keys; what is no row of ours is refused.
pub(crate) fn read<T: Mapped>(conn: &Connection, only: &str) -> Result<Vec<T>, Vec<Refusal>> {
    let mut wrong = Vec::new();
    let rows =
        read_into(conn, only, &mut wrong).map_err(|error| vec![sql_refusal(T::TABLE, error)])?;
    if wrong.is_empty() {
        Ok(rows)
    } else {
        Err(wrong)
    }
}

fn read_into<T: Mapped>(
    conn: &Connection,
    only: &str,
    wrong: &mut Vec<Refusal>,
) -> Result<Vec<T>, SqlError> {
    // Quoted, for `Default` and the like; our own names all.
    let columns: Vec<_> = T::COLUMNS
        .iter()
        .map(|column| format!("\"{column}\""))
        .collect();
    let order = &["1", "2", "3"][..T::COLUMNS.len().min(3)];
    let sql = format!(
        "SELECT {} FROM main.{} {only} ORDER BY {}",
        columns.join(", "),
        T::TABLE,
        order.join(", ")
    );
    let mut select = conn.prepare(&sql)?;
    let mut found = select.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(T::read(row, wrong)?);
        if wrong.len() > 100 {
            break;
        }
    }
    Ok(rows)
}

/// Makes `table` in `main` hold these rows and no others.
pub(crate) fn replace<T: Mapped>(
    conn: &Connection,
    table: &str,
    rows: impl IntoIterator<Item = T>,
) -> Result<(), SqlError> {
    replace_in(conn, "main", table, rows)
}

/// Makes `table` in `schema` hold these rows and no others.
pub(crate) fn replace_in<T: Mapped>(
    conn: &Connection,
    schema: &str,
    table: &str,
    rows: impl IntoIterator<Item = T>,
) -> Result<(), SqlError> {
    conn.execute(&format!("DELETE FROM {schema}.{table}"), [])?;
    let marks = vec!["?"; T::COLUMNS.len()].join(", ");
    let mut insert = conn.prepare(&format!("INSERT INTO {schema}.{table} VALUES ({marks})"))?;
    for row in rows {
        row.write(&mut insert)?;
    }
    Ok(())
}

/// A cell, and what parts it from the next.
fn json(cell: &impl serde::Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, cell)
        .expect("memory takes every byte, and a text or a number has its form");
    out.push(b',');
}

pub(crate) fn sql_refusal(table: &'static str, error: SqlError) -> Refusal {
    Refusal {
        table,
        row: String::new(),
        column: "",
        words: error.0,
    }
}

struct Cell<'r> {
    table: &'static str,
    columns: &'static [&'static str],
    /// So many columns from the left tell which row it is.
    keys: usize,
    row: &'r Row<'r>,
    wrong: &'r mut Vec<Refusal>,
}

impl Cell<'_> {
    fn refuse(&mut self, column: &'static str, words: String) {
        let key = |at: usize| match self.row.get_ref(at) {
            Ok(value) => format!("{} {}", self.columns[at], shown(value)),
            Err(_) => self.columns[at].to_owned(),
        };
        let row = (0..self.keys).map(key).collect::<Vec<_>>().join(", ");
        self.wrong.push(Refusal {
            table: self.table,
            row,
            column,
            words,
        });
    }

    fn int(&mut self, at: usize, column: &'static str) -> rusqlite::Result<i64> {
        Ok(self.int_or_null(at, column)?.unwrap_or_default())
    }

    fn int_or_null(&mut self, at: usize, column: &'static str) -> rusqlite::Result<Option<i64>> {
        Ok(match self.row.get_ref(at)? {
            ValueRef::Null => None,
            ValueRef::Integer(number) => Some(number),
            // SQLite keeps a text in a column of integers if it is told to.
            other => {
                let words = format!("must be a whole number; '{}' is not", shown(other));
                self.refuse(column, words);
                None
            }
        })
    }

    fn text(&mut self, at: usize, column: &'static str) -> rusqlite::Result<String> {
        Ok(self.text_or_null(at, column)?.unwrap_or_default())
    }

    fn text_or_null(
        &mut self,
        at: usize,
        column: &'static str,
    ) -> rusqlite::Result<Option<String>> {
        Ok(match self.row.get_ref(at)? {
            ValueRef::Null => None,
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Some(text.to_owned()),
                Err(_) => {
                    self.refuse(column, "must be valid UTF-8".into());
                    None
                }
            },
            other => Some(shown(other)),
        })
    }
}

fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, View};

    #[test]
    fn a_text_in_a_column_of_numbers_is_refused_by_name() {
        let engine = Engine::open(None, View::Admin).unwrap();
        engine
            .run(
                "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES ('abc', 'h')",
                &[],
            )
            .unwrap();
        let refused = read::<ServerRow>(engine.conn(), "").unwrap_err();
        let words = "mysql_servers (hostgroup_id abc, hostname h, port 3306): hostgroup_id must be a whole number; 'abc' is not";
        assert_eq!(refused[0].to_string(), words);
    }

    #[test]
    fn rows_come_through_json_as_they_were() {
        let rule = RuleRow {
            rule_id: i64::MIN,
            match_pattern: Some("\"\\\n\u{1F40C}".into()),
            comment: Some(String::new()),
            ..RuleRow::default()
        };
        let mut line = Vec::new();
        rule.write_json(&mut line);
        assert!(!line.contains(&b'\n'), "one line");
        assert_eq!(RuleRow::read_json(&line).unwrap(), rule);
        let proxy = ProxyRow {
            hostname: "a".into(),
            ..ProxyRow::default()
        };
        let mut line = Vec::new();
        proxy.write_json(&mut line);
        assert_eq!(line, br#"["a",6032,0,""]"#);
        for wrong in [
            "",
            "{}",
            "[]",
            r#"["a",6032,0]"#,
            r#"["a",6032,0,"",1]"#,
            r#"["a","b",0,""]"#,
            r#"[null,6032,0,""]"#,
        ] {
            assert!(ProxyRow::read_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_written_are_rows_read() {
        let engine = Engine::open(None, View::Admin).unwrap();
        let rule = RuleRow {
            rule_id: 7,
            active: 1,
            match_pattern: Some("x".into()),
            apply: 1,
            ..RuleRow::default()
        };
        replace(engine.conn(), "mysql_query_rules", [rule.clone()]).unwrap();
        assert_eq!(read::<RuleRow>(engine.conn(), "").unwrap(), [rule]);
    }
}
