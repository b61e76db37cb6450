//! `extended_info` of `stats_mysql_processlist`: what has no column of its own, as JSON.

use bridge::ProcessRow;
use serde_json::{Map, Value, json};

/// `level` is `mysql-show_processlist_extended`: nothing, JSON on one line, or indented.
pub(crate) fn info(row: &ProcessRow, level: u64) -> String {
    if level == 0 {
        return String::new();
    }
    let attributes: Map<String, Value> = row
        .attributes
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let backends: Vec<Value> = row
        .held
        .iter()
        .map(|held| {
            json!({
                "hostgroup_id": held.hostgroup,
                "hostname": &*held.host,
                "port": held.port,
                "mysql_thread_id": held.server_thread_id,
                "holds": held.holds,
                "held_ms": held.held_ms,
            })
        })
        .collect();
    let all = json!({
        "session_id": row.session,
        "client": {
            "client_addr": { "address": row.client_host, "port": row.client_port },
            "connection_attributes": attributes,
        },
        "default_schema": row.schema,
        "backends": backends,
    });
    if level == 1 {
        all.to_string()
    } else {
        format!("{all:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_the_client_are_told_as_json_whatever_is_in_them() {
        let row = ProcessRow {
            core: 0,
            session: 12,
            user: "u".into(),
            schema: "s".into(),
            client_host: "10.0.0.1".into(),
            client_port: 5,
            hostgroup: None,
            local_host: String::new(),
            local_port: 0,
            server_host: String::new(),
            server_port: 0,
            command: "Sleep",
            time_ms: 0,
            info: None,
            attributes: vec![("program_name".into(), "a \"shop\"\n".into())],
            held: Vec::new(),
            status_flags: 0,
        };
        assert_eq!(info(&row, 0), "");
        assert!(
            info(&row, 1).contains(r#""connection_attributes":{"program_name":"a \"shop\"\n"}"#),
            "{}",
            info(&row, 1)
        );
        assert!(info(&row, 2).contains("\n  \"session_id\": 12"));
    }
}
