//! Texts that ProxySQLs ask for each module, and the parts of the answers that they hash.

use sql::spooky::hash64_of;

/// Rows of an answer.
pub type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// Rows of texts; `NULL` is none.
pub fn cells(rows: &[&[&str]]) -> Rows {
    let cell = |text: &&str| (*text != "NULL").then(|| text.as_bytes().to_vec());
    rows.iter()
        .map(|row| row.iter().map(cell).collect())
        .collect()
}

/// Texts of a row with bars between them.
pub(super) fn line(row: &[Option<Vec<u8>>]) -> String {
    let text = |cell: &Option<Vec<u8>>| {
        String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned()
    };
    row.iter().map(text).collect::<Vec<_>>().join("|")
}

const SERVERS: &str = "hostgroup_id, hostname, port, gtid_port, status, weight, compression, max_connections, max_replication_lag, use_ssl, max_latency_ms, comment";
const QUARTET: &str = "writer_hostgroup, backup_writer_hostgroup, reader_hostgroup, offline_hostgroup, active, max_writers, writer_is_also_reader, max_transactions_behind, comment";

/// Modules of a version, by name.
pub(super) fn modules(version: &str) -> impl Iterator<Item = &'static str> {
    let is_early = version.starts_with("2.5");
    [
        "admin_variables",
        "mysql_query_rules",
        "mysql_servers",
        "mysql_servers_v2",
        "mysql_users",
        "mysql_variables",
        "proxysql_servers",
    ]
    .into_iter()
    .filter(move |name| !is_early || *name != "mysql_servers_v2")
}

/// Texts of a module, in the order in which their answers are hashed, and how many columns these
/// have.
pub(super) fn texts(version: &str, module: &str) -> Vec<(String, usize)> {
    let is_early = version.starts_with("2.5");
    let topologies = |attributes: &str, columns| {
        vec![
            ("PROXY_SELECT writer_hostgroup, reader_hostgroup, comment FROM runtime_mysql_replication_hostgroups ORDER BY writer_hostgroup".to_owned(), 4),
            (format!("PROXY_SELECT {QUARTET} FROM runtime_mysql_group_replication_hostgroups ORDER BY writer_hostgroup"), 9),
            (format!("PROXY_SELECT {QUARTET} FROM runtime_mysql_galera_hostgroups ORDER BY writer_hostgroup"), 9),
            ("PROXY_SELECT writer_hostgroup, reader_hostgroup, active, aurora_port, domain_name, max_lag_ms, check_interval_ms, check_timeout_ms, writer_is_also_reader, new_reader_weight, add_lag_ms, min_lag_ms, lag_num_checks, comment FROM runtime_mysql_aws_aurora_hostgroups ORDER BY writer_hostgroup".to_owned(), 14),
            (format!("PROXY_SELECT hostgroup_id, max_num_online_servers, autocommit, free_connections_pct, init_connect, multiplex, connection_warming, throttle_connections_per_sec, ignore_session_variables, {attributes}comment FROM runtime_mysql_hostgroup_attributes ORDER BY hostgroup_id"), columns),
        ]
    };
    let placed = || {
        (
            format!(
                "PROXY_SELECT {SERVERS} FROM runtime_mysql_servers WHERE status<>'OFFLINE_HARD' ORDER BY hostgroup_id, hostname, port"
            ),
            12,
        )
    };
    match module {
        "mysql_servers" if is_early => [vec![placed()], topologies("", 10)].concat(),
        "mysql_servers" => vec![placed()],
        "mysql_servers_v2" => {
            let first = format!("PROXY_SELECT {SERVERS} FROM mysql_servers_v2 WHERE status<>'OFFLINE_HARD' ORDER BY hostgroup_id, hostname, port");
            let last = "PROXY_SELECT hostname, port, username, ssl_ca, ssl_cert, ssl_key, ssl_capath, ssl_crl, ssl_crlpath, ssl_cipher, tls_version, comment FROM runtime_mysql_servers_ssl_params ORDER BY hostname, port, username";
            let middle = topologies("hostgroup_settings, servers_defaults, ", 12);
            [vec![(first, 12)], middle, vec![(last.to_owned(), 12)]].concat()
        }
        "mysql_users" => vec![("PROXY_SELECT username, password, use_ssl, default_hostgroup, default_schema, schema_locked, transaction_persistent, fast_forward, backend, frontend, max_connections, attributes, comment FROM runtime_mysql_users".to_owned(), 13)],
        "mysql_query_rules" => vec![
            ("PROXY_SELECT rule_id, username, schemaname, flagIN, client_addr, proxy_addr, proxy_port, digest, match_digest, match_pattern, negate_match_pattern, re_modifiers, flagOUT, replace_pattern, destination_hostgroup, cache_ttl, cache_empty_result, cache_timeout, reconnect, timeout, retries, delay, next_query_flagIN, mirror_flagOUT, mirror_hostgroup, error_msg, ok_msg, sticky_conn, multiplex, gtid_from_hostgroup, log, apply, attributes, comment FROM runtime_mysql_query_rules ORDER BY rule_id".to_owned(), 34),
            ("PROXY_SELECT username, schemaname, flagIN, destination_hostgroup, comment FROM runtime_mysql_query_rules_fast_routing ORDER BY username, schemaname, flagIN".to_owned(), 5),
        ],
        "proxysql_servers" => vec![("SELECT hostname, port, weight, comment FROM runtime_proxysql_servers ORDER BY hostname, port".to_owned(), 4)],
        "mysql_variables" => vec![("SELECT * FROM runtime_global_variables WHERE variable_name LIKE 'mysql-%' AND variable_name NOT IN ('mysql-threads') AND variable_name NOT IN ('mysql-interfaces') ORDER BY variable_name".to_owned(), 2)],
        _ => vec![(
            format!(
                "SELECT * FROM runtime_global_variables WHERE variable_name LIKE 'admin-%' AND variable_name NOT IN ('admin-mysql_ifaces','admin-restapi_port','admin-telnet_admin_ifaces','admin-telnet_stats_ifaces','admin-web_port'{}) ORDER BY variable_name",
                if version.starts_with('3') { ",'admin-pgsql_ifaces'" } else { "" }
            ),
            2,
        )],
    }
}

/// Answers without rows; a few variables.
pub(super) fn empty(module: &str) -> Vec<Rows> {
    match module {
        "mysql_query_rules" => vec![Rows::new(); 2],
        "mysql_servers" => vec![Rows::new(); 6],
        "mysql_servers_v2" => vec![Rows::new(); 7],
        "mysql_variables" => vec![cells(&[
            &["mysql-max_connections", "2048"],
            &["mysql-monitor_username", "monitor"],
            &["mysql-of_tomorrow", "1"],
        ])],
        "admin_variables" => vec![cells(&[
            &["admin-cluster_mysql_servers_sync_algorithm", "2"],
            &["admin-refresh_interval", "2000"],
            &["admin-version", "model"],
        ])],
        _ => vec![Rows::new()],
    }
}

fn whole(rows: &Rows) -> u64 {
    let bytes: Vec<u8> = rows.iter().flatten().flatten().flatten().copied().collect();
    if rows.is_empty() {
        0
    } else {
        hash64_of(&bytes, [19, 3])
    }
}

/// Text of the checksum of a module.
pub(super) fn checksum(module: &str, results: &[Rows]) -> String {
    let hash = match module {
        "mysql_query_rules" => results.iter().map(whole).fold(0, u64::wrapping_add),
        "mysql_servers" if results.len() == 1 => whole(&results[0]),
        "mysql_servers" | "mysql_servers_v2" => {
            let hashes = results.iter().map(whole).filter(|hash| *hash != 0);
            let bytes: Vec<u8> = hashes.flat_map(u64::to_le_bytes).collect();
            if bytes.is_empty() {
                0
            } else {
                hash64_of(&bytes, [19, 3])
            }
        }
        "mysql_users" => users(&results[0], 8).wrapping_add(users(&results[0], 9)),
        _ => whole(&results[0]),
    };
    let digits = format!("{:X}{:X}", hash & 0xFFFF_FFFF, hash >> 32);
    format!("0x{digits:0<16}")
}

/// Of the users with a 1 in this column, in the order of the hashes of their names.
fn users(rows: &Rows, side: usize) -> u64 {
    let text = |row: &[Option<Vec<u8>>], at: usize| row[at].clone().unwrap_or_default();
    let number = |row: &[Option<Vec<u8>>], at: usize| {
        String::from_utf8_lossy(&text(row, at))
            .parse::<i32>()
            .unwrap_or(0)
    };
    let mut all: Vec<_> = rows.iter().filter(|row| text(row, side) == b"1").collect();
    all.sort_by_key(|row| hash64_of(&text(row, 0), [1, 2]));
    let mut bytes = Vec::new();
    for row in all.iter().filter(|row| number(row, 3) >= 0) {
        let flag = |at| u8::from(text(row, at) == b"1");
        bytes.push(flag(2));
        bytes.extend(number(row, 3).to_le_bytes());
        bytes.extend([flag(5), flag(6), flag(7)]);
        bytes.extend(number(row, 10).to_le_bytes());
        for at in [0, 1, 4, 12, 11] {
            bytes.extend(text(row, at));
        }
    }
    if bytes.is_empty() {
        0
    } else {
        hash64_of(&bytes, [13, 4])
    }
}
