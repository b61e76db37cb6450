//! What drivers ask before their user says anything: `SELECT @@x, @@session.y AS z`, with the
//! values of a plain server.

/// One `@@variable` of a select list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Name without scope, in small letters.
    pub name: String,
    /// Name of the column.
    pub label: String,
}

/// The variables that a statement asks for, if it asks for nothing else.
#[must_use]
pub fn variables_asked(sql: &str) -> Option<Vec<Asked>> {
    let sql = strip_comments(sql);
    let sql = sql.trim().trim_end_matches(';').trim_end();
    let list = sql
        .get(..6)
        .filter(|word| word.eq_ignore_ascii_case("select"))
        .map(|_| sql[6..].trim_start())?;
    let list = strip_limit(list);
    list.split(',').map(|item| asked(item.trim())).collect()
}

fn strip_comments(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find("/*") {
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = rest[at..]
            .find("*/")
            .map_or("", |end| &rest[at + end + 2..]);
    }
    out.push_str(rest);
    out
}

fn strip_limit(list: &str) -> &str {
    let words: Vec<_> = list.split_whitespace().collect();
    match words[..] {
        [.., limit, count]
            if limit.eq_ignore_ascii_case("limit") && count.parse::<u32>().is_ok() =>
        {
            let at = list
                .to_ascii_lowercase()
                .rfind("limit")
                .unwrap_or(list.len());
            list[..at].trim_end()
        }
        _ => list,
    }
}

fn asked(item: &str) -> Option<Asked> {
    let (expression, label) = match item.split_whitespace().collect::<Vec<_>>()[..] {
        [expression] => (expression, expression),
        [expression, label] => (expression, label),
        [expression, r#as, label] if r#as.eq_ignore_ascii_case("as") => (expression, label),
        _ => return None,
    };
    let name = expression.strip_prefix("@@")?.to_ascii_lowercase();
    let scope = ["session.", "global.", "local."]
        .into_iter()
        .find(|scope| name.starts_with(scope));
    let name = name[scope.map_or(0, str::len)..]
        .trim_matches('`')
        .to_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let label = label.trim_matches(['`', '\'', '"']).to_owned();
    (!name.is_empty() && name.chars().all(plain)).then_some(Asked { name, label })
}

/// The value that a plain server has for a variable.
#[must_use]
pub fn usual(name: &str) -> Option<&'static str> {
    Some(match name {
        "auto_increment_increment"
        | "auto_increment_offset"
        | "autocommit"
        | "sql_auto_is_null"
        | "foreign_key_checks"
        | "unique_checks"
        | "server_id" => "1",
        "character_set_client"
        | "character_set_connection"
        | "character_set_results"
        | "character_set_server"
        | "character_set_database" => "utf8mb4",
        "character_set_system" => "utf8mb3",
        "collation_connection" | "collation_server" | "collation_database" => "utf8mb4_general_ci",
        "interactive_timeout" | "wait_timeout" => "28800",
        "license" => "Apache-2.0",
        "lower_case_table_names"
        | "query_cache_size"
        | "performance_schema"
        | "read_only"
        | "super_read_only"
        | "innodb_read_only"
        | "transaction_read_only"
        | "tx_read_only"
        | "profiling"
        | "sql_safe_updates"
        | "warning_count"
        | "error_count" => "0",
        "max_allowed_packet" => "67108864",
        "net_buffer_length" => "16384",
        "net_write_timeout" | "net_read_timeout" => "60",
        "query_cache_type" | "have_query_cache" | "gtid_mode" => "OFF",
        "sql_mode" => "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
        "sql_select_limit" => "18446744073709551615",
        "system_time_zone" => "UTC",
        "time_zone" => "SYSTEM",
        "transaction_isolation" | "tx_isolation" => "SERIALIZABLE",
        "init_connect" | "socket" | "plugin_dir" => "",
        "version_compile_os" if cfg!(target_os = "freebsd") => "FreeBSD",
        "version_compile_os" => "Linux",
        "version_compile_machine" => std::env::consts::ARCH,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Option<Vec<String>> {
        variables_asked(sql).map(|all| {
            all.into_iter()
                .map(|asked| format!("{}={}", asked.label, asked.name))
                .collect()
        })
    }

    #[test]
    fn lists_of_variables_are_understood_and_nothing_else() {
        assert_eq!(
            names("select @@version_comment limit 1").unwrap(),
            ["@@version_comment=version_comment"]
        );
        assert_eq!(
            names("/* driver 8.0 */SELECT  @@session.auto_increment_increment AS a, @@`sql_mode` b,@@GLOBAL.Read_Only;").unwrap(),
            ["a=auto_increment_increment", "b=sql_mode", "@@GLOBAL.Read_Only=read_only"]
        );
        assert_eq!(
            names("SELECT @@mysql-max_connections").unwrap(),
            ["@@mysql-max_connections=mysql-max_connections"]
        );
        for other in [
            "SELECT 1",
            "SELECT @@a, 1",
            "SELECT @a",
            "SELECT @@a+1",
            "SELECT @@",
            "SHOW @@a",
            "SELECT @@a FROM t",
            "sel",
        ] {
            assert_eq!(names(other), None, "{other}");
        }
    }
}
