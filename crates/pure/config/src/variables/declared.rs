//! Every variable, one declaration each: field, kind, default, effect, one sentence.
//!
//! The name is the field's with the first `_` as `-`. Names and defaults are ProxySQL's, but for
//! those of `docs/compatibility.md`: the admin port listens on loopback. Our own stand at the end.

use super::{Effect, Kind, Slot, Value, Variable};

/// The name that belongs to a field: its first `_` becomes `-`.
const fn dashed<const N: usize>(field: &str) -> [u8; N] {
    let (field, mut name) = (field.as_bytes(), [0; N]);
    let (mut at, mut done) = (0, false);
    while at < N {
        name[at] = if field[at] == b'_' && !done {
            b'-'
        } else {
            field[at]
        };
        done = done || field[at] == b'_';
        at += 1;
    }
    name
}

macro_rules! variables {
    ($($field:ident: $kind:ident $(($($arg:tt)*))? = $default:literal, $effect:ident, $about:literal;)*) => {
        /// A value for every variable.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each field's words are in `REGISTRY`")]
        #[allow(non_snake_case, reason = "ProxySQL has mysql-query_cache_size_MB")]
        #[allow(clippy::struct_excessive_bools, reason = "one field per variable of the operator")]
        pub struct Variables { $(pub $field: variables!(@type $kind),)* }

        impl Default for Variables {
            fn default() -> Self {
                Self { $($field: variables!(@init $kind $default),)* }
            }
        }

        /// All variables, in the order of their declaration.
        pub const REGISTRY: &[Variable] = &[$(Variable {
            name: {
                const FIELD: &str = stringify!($field);
                const NAME: [u8; FIELD.len()] = dashed(FIELD);
                match str::from_utf8(&NAME) { Ok(name) => name, Err(_) => FIELD }
            },
            kind: variables!(@kind $kind $(($($arg)*))?),
            default: concat!($default),
            about: $about,
            effect: Effect::$effect,
            value: |variables| variables!(@value $kind variables.$field),
            slot: |variables| variables!(@slot $kind variables.$field),
        },)*];
    };

    (@type bool) => { bool };
    (@type int) => { u64 };
    (@type $other:ident) => { Box<str> };

    (@kind bool) => { Kind::Bool };
    (@kind int($min:literal..=$max:literal)) => { Kind::Int { min: $min, max: $max } };
    (@kind text) => { Kind::Text };
    (@kind choice($($word:literal)|+)) => { Kind::Choice(&[$($word),+]) };
    (@kind interfaces) => { Kind::Interfaces };
    (@kind networks) => { Kind::Networks };
    (@kind charset) => { Kind::Charset };
    (@kind collation) => { Kind::Collation };
    (@kind fixed) => { Kind::Fixed };

    (@init bool $default:literal) => { $default };
    (@init int $default:literal) => { $default };
    (@init $other:ident $default:literal) => { $default.into() };

    (@value bool $($place:tt)*) => { Value::Bool($($place)*) };
    (@value int $($place:tt)*) => { Value::Int($($place)*) };
    (@value $other:ident $($place:tt)*) => { Value::Text(&$($place)*) };

    (@slot bool $($place:tt)*) => { Slot::Bool(&mut $($place)*) };
    (@slot int $($place:tt)*) => { Slot::Int(&mut $($place)*) };
    (@slot $other:ident $($place:tt)*) => { Slot::Text(&mut $($place)*) };
}

variables! {
    // --- Listeners, cores, limits
    // -------------------------------------------------------------------------------
    mysql_interfaces: interfaces = "0.0.0.0:6033", Restart, "Where clients connect: ip:port or the absolute path of a Unix socket, separated by ';'.";
    mysql_threads: int(1..=255) = 4, Restart, "Number of cores (threads with sessions of their own).";
    mysql_stacksize: int(262144..=4194304) = 1048576, Moot, "Bytes of stack of a thread of ProxySQL; a core here has what it needs.";
    mysql_max_connections: int(1..=1000000) = 10000, Live, "Clients that may be connected at once.";
    mysql_max_allowed_packet: int(8192..=1073741824) = 67108864, Live, "Bytes of the largest command a client may send.";
    mysql_use_tcp_keepalive: bool = true, Live, "Whether the kernel probes idle connections of clients and servers.";
    mysql_tcp_keepalive_time: int(0..=7200) = 120, Live, "Seconds of silence before the kernel probes a connection; 0 for as many as the system says.";
    mysql_proxy_protocol_networks: networks = "", Live, "Networks (CIDR, separated by ',') whose clients may open with a PROXY protocol header; '*' for all.";
    mysql_poll_timeout: int(10..=20000) = 2000, Moot, "Milliseconds a thread of ProxySQL sleeps at most; a core here sleeps until something happens.";
    mysql_poll_timeout_on_failure: int(10..=20000) = 100, Moot, "The same while a server fails.";
    mysql_session_idle_ms: int(1..=3600000) = 1, Live, "Milliseconds of silence after which a session is idle for mysql-session_idle_show_processlist; it gives its memory back at once and stays on its thread.";
    mysql_session_idle_show_processlist: bool = true, Live, "Whether the process list has sessions that have been silent for mysql-session_idle_ms.";
    mysql_sessions_sort: bool = true, Moot, "Whether ProxySQL's threads serve first who has waited longest; here whoever is ready is served, in the order of arrival.";
    mysql_show_processlist_extended: int(0..=2) = 0, Live, "How much stats_mysql_processlist.extended_info tells: nothing, JSON, or indented JSON.";
    mysql_client_host_cache_size: int(0..=1048576) = 0, Live, "Client addresses whose failed logins are remembered.";
    mysql_client_host_error_counts: int(0..=1048576) = 0, Live, "Failed logins after which a client address is turned away.";

    // --- What clients are told
    // ----------------------------------------------------------------------------------
    mysql_server_version: text = "8.0.11", Live, "Version of the server that clients are told.";
    mysql_server_capabilities: int(0..=4294967295) = 569867, Live, "Capability bits offered to clients. Only CLIENT_FOUND_ROWS (2) can be taken away; other bits have variables of their own, or are offered always.";
    mysql_default_authentication_plugin: choice("mysql_native_password" | "caching_sha2_password") = "mysql_native_password", Live, "How clients are asked to prove their password.";
    mysql_have_ssl: bool = true, Live, "Whether clients are offered TLS.";
    mysql_have_compress: bool = true, Live, "Whether clients are offered compression.";
    mysql_enable_client_deprecate_eof: bool = true, Live, "Whether clients are offered results without EOF packets.";
    mysql_enable_server_deprecate_eof: bool = true, Moot, "Whether servers are asked for results without EOF packets; here they always are, and each client gets the form that it asked for.";
    mysql_enable_load_data_local_infile: bool = false, Live, "Whether clients may send files with LOAD DATA LOCAL INFILE.";
    mysql_verbose_query_error: bool = false, Live, "Whether the log has each error that a server answers with, with user, client, schema and digest.";

    // --- Sessions
    // -----------------------------------------------------------------------------------------------
    mysql_wait_timeout: int(0..=1728000000) = 28800000, Live, "Milliseconds after which a silent client is disconnected; 0 for never.";
    mysql_connect_timeout_client: int(500..=3600000) = 10000, Live, "Milliseconds a client has to log in.";
    mysql_max_transaction_idle_time: int(1000..=1728000000) = 14400000, Live, "Milliseconds after which a client that is silent inside a transaction is disconnected.";
    mysql_max_transaction_time: int(1000..=1728000000) = 14400000, Live, "Milliseconds after which a client whose transaction is still open is disconnected.";
    mysql_default_schema: text = "information_schema", Live, "Schema of a session whose client and user name none.";
    mysql_default_charset: charset = "utf8", Live, "Character set of a session whose client names one that is not known.";
    mysql_default_collation_connection: collation = "utf8_general_ci", Live, "Collation of a session whose client names one that is not known.";
    mysql_handle_unknown_charset: int(0..=2) = 1, Live, "What happens to a client with an unknown character set: 0 disconnect, 1 use the default and log it, 2 use the default.";
    mysql_default_session_track_gtids: choice("OFF" | "OWN_GTID") = "OFF", Live, "What session_track_gtids is set to on connections to servers; of hostgroups that a rule names in gtid_from_hostgroup it is OWN_GTID anyway.";
    mysql_client_session_track_gtid: bool = true, Live, "Whether clients that ask for the GTIDs of their transactions are told them.";
    mysql_set_query_lock_on_hostgroup: int(0..=1) = 1, Live, "Whether a SET that is not understood ties the session to the hostgroup it went to.";
    mysql_set_parser_algorithm: int(1..=2) = 2, Moot, "Which of ProxySQL's parsers reads SET statements; there is one here.";
    mysql_parse_failure_logs_digest: bool = false, Live, "Whether the log has a SET that was not understood as digest instead of text.";
    mysql_autocommit_false_is_transaction: bool = false, Moot, "Whether a connection with autocommit=0 counts as in a transaction; here its session always keeps it.";
    mysql_autocommit_false_not_reusable: bool = false, Moot, "Whether connections with autocommit=0 are closed instead of pooled; here autocommit is brought to what the next session has.";
    mysql_enforce_autocommit_on_reads: bool = false, Moot, "Whether the server sees autocommit=0 before a plain read too; here it always does.";
    mysql_kill_backend_connection_when_disconnect: bool = true, Live, "Whether a statement is killed on its server when the client has left.";

    // --- Connections to servers
    // ---------------------------------------------------------------------------------
    mysql_connect_timeout_server: int(10..=120000) = 1000, Live, "Milliseconds one attempt to connect and log in to a server may take.";
    mysql_connect_timeout_server_max: int(10..=3600000) = 10000, Live, "Milliseconds a statement waits for a connection before the client gets error 9001.";
    mysql_connect_retries_on_failure: int(0..=1000) = 10, Live, "Further attempts to connect after one that failed.";
    mysql_connect_retries_delay: int(0..=10000) = 1, Live, "Milliseconds between attempts to connect.";
    mysql_shun_on_failures: int(0..=10000000) = 5, Live, "Failures within a second after which a server is shunned; 0 for never.";
    mysql_shun_recovery_time_sec: int(0..=31536000) = 10, Live, "Seconds a server stays shunned.";
    mysql_unshun_algorithm: int(0..=1) = 0, Moot, "Whether a server that is well again in one hostgroup is taken back in the others too; here its health is one in all of them, as with 1.";
    mysql_init_connect: text = "", Live, "Statement run on every new connection to a server.";
    mysql_free_connections_pct: int(0..=100) = 10, Live, "Idle connections kept for a server, in percent of its max_connections.";
    mysql_connection_max_age_ms: int(0..=86400000) = 0, Live, "Milliseconds after which an idle connection is closed instead of reused; 0 for never.";
    mysql_connection_warming: bool = false, Live, "Whether connections are opened ahead until mysql-free_connections_pct are there.";
    mysql_throttle_connections_per_sec_to_hostgroup: int(1..=100000000) = 1000000, Live, "Connections that all cores together open per second to one hostgroup at most; 1000000 for no limit.";
    mysql_ping_interval_server_msec: int(1000..=604800000) = 10000, Live, "Milliseconds between pings of idle connections.";
    mysql_ping_timeout_server: int(10..=600000) = 200, Live, "Milliseconds a ping of an idle connection may take.";
    mysql_default_max_latency_ms: int(0..=1728000000) = 1000, Live, "Milliseconds of ping beyond which a server is avoided, where its row says nothing.";
    mysql_min_num_servers_lantency_awareness: int(0..=10000) = 1000, Moot, "Servers from which on ProxySQL leaves out those that answer pings slower than the mean; here balance in hostgroup_settings chooses by latency.";
    mysql_aurora_max_lag_ms_only_read_from_replicas: int(0..=100) = 2, Live, "Aurora replicas within the hint max_lag_ms from which on a writer that also reads is left out of such reads.";
    mysql_connpoll_reset_queue_length: int(0..=10000) = 50, Live, "Connections that may wait for their reset.";
    mysql_reset_connection_algorithm: int(1..=2) = 2, Live, "How a connection is made clean: 1 by COM_CHANGE_USER, 2 by COM_RESET_CONNECTION.";
    mysql_evaluate_replication_lag_on_servers_load: int(0..=1) = 1, Moot, "Whether servers known to lag start shunned after LOAD MYSQL SERVERS; here they always do.";
    mysql_log_unhealthy_connections: bool = true, Live, "Whether a connection that is found unusable is logged.";
    mysql_hostgroup_manager_verbose: int(0..=3) = 1, Live, "Whether the log has changes of servers that the monitor finds: roles, members, addresses; 0 for none of them.";

    // --- Multiplexing
    // -------------------------------------------------------------------------------------------
    mysql_multiplexing: bool = true, Live, "Whether connections to servers are shared between clients.";
    mysql_connection_delay_multiplex_ms: int(0..=300000) = 0, Live, "Milliseconds a session keeps its connection after a statement.";
    mysql_auto_increment_delay_multiplex: int(0..=1000000) = 5, Live, "Statements for which a session keeps its connection after one that made an AUTO_INCREMENT value.";
    mysql_auto_increment_delay_multiplex_timeout_ms: int(0..=3600000) = 10000, Live, "Milliseconds of silence after which a connection that is kept for an AUTO_INCREMENT value or FOUND_ROWS() is asked for it and given back, unless somebody needs it before; 0 for never.";
    mysql_keep_multiplexing_variables: text = "tx_isolation,transaction_isolation,version", Moot, "Variables (separated by ',') whose reading does not end multiplexing; here reading never does.";
    mysql_handle_warnings: int(0..=1) = 1, Live, "Whether a session keeps its connection while warnings can be asked for.";
    mysql_handle_warnings_delay_ms: int(0..=3600000) = 10000, Live, "Milliseconds of silence after which a connection that is kept for warnings is asked for them and given back, unless somebody needs it before; 0 for never.";
    mysql_log_mysql_warnings_enabled: bool = false, Live, "Whether servers are asked for the warnings of each statement that has some, and the log has them.";
    mysql_max_stmts_per_connection: int(1..=1024) = 20, Live, "Prepared statements on one connection to a server; beyond it the longest unused one is closed.";
    mysql_max_stmts_cache: int(128..=1048576) = 10000, Live, "Prepared statements remembered by text on each core; what clients have is kept beyond it.";

    // --- Statements
    // ---------------------------------------------------------------------------------------------
    mysql_default_query_timeout: int(1000..=1728000000) = 86400000, Live, "Milliseconds a statement may run, where its rule says nothing.";
    mysql_default_query_delay: int(0..=3600000) = 0, Live, "Milliseconds every statement is held back, where its rule says nothing.";
    mysql_default_reconnect: bool = true, Live, "Whether a statement is tried again when its connection broke, where its rule says nothing.";
    mysql_query_retries_on_failure: int(0..=1000) = 1, Live, "Further attempts of a plain read that failed before the first byte of its answer.";
    mysql_long_query_time: int(0..=1728000000) = 1000, Live, "Milliseconds from which on a statement counts as slow.";
    mysql_query_processor_iterations: int(0..=1000000) = 0, Live, "How often a flagOUT may lead back to the first rule; with 0 it only leads forward.";
    mysql_query_processor_regex: int(1..=2) = 1, Live, "Dialect of the expressions in rules: 1 is PCRE, 2 is RE2, which has no look-around and no back-references.";
    mysql_query_rules_fast_routing_algorithm: int(1..=2) = 1, Moot, "Whether ProxySQL's threads copy or share the fast routing table; it is always shared here.";
    mysql_automatic_detect_sqli: bool = false, Live, "Whether statements that look like SQL injection are refused.";
    mysql_firewall_whitelist_enabled: bool = false, Live, "Whether the modes of mysql_firewall_whitelist_users are obeyed; a user without a row may do nothing that is not in mysql_firewall_whitelist_rules.";
    mysql_firewall_whitelist_errormsg: text = "Firewall blocked this query", Live, "What a client is told whose statement the firewall refused.";
    mysql_mirror_max_concurrency: int(1..=8192) = 16, Live, "Mirrored statements that run at once, over all cores.";
    mysql_mirror_max_queue_length: int(0..=1048576) = 32000, Live, "Mirrored statements that may wait, over all cores; what comes then is dropped.";
    mysql_threshold_query_length: int(1024..=1073741824) = 524288, Live, "Bytes of a statement after which its connection to the server is not used again, so that the server need not keep the room for it.";
    mysql_threshold_resultset_size: int(1024..=1073741824) = 4194304, Live, "Bytes of the largest result that is cached. Answers are always sent while they arrive.";
    mysql_throttle_max_bytes_per_second_to_client: int(0..=2147483647) = 0, Live, "Bytes per second sent to one client at most; 0 for no limit.";
    mysql_throttle_ratio_server_to_client: int(0..=100) = 0, Live, "How many times faster a server may be read than its client; here it is read as fast as its client, and 64 KiB ahead, so that every value is kept to.";
    mysql_data_packets_history_size: int(0..=2147483647) = 0, Moot, "Packets of each connection that a core dump of ProxySQL has; nothing is kept here.";

    // --- The result cache
    // ---------------------------------------------------------------------------------------
    mysql_query_cache_size_MB: int(0..=10485760) = 256, Live, "Megabytes of results that may be kept.";
    mysql_query_cache_soft_ttl_pct: int(0..=100) = 0, Live, "Percent of cache_ttl after which one client renews a kept result; 0 for never.";
    mysql_query_cache_handle_warnings: int(0..=1) = 0, Live, "Whether results with warnings are kept.";
    mysql_query_cache_stores_empty_result: bool = true, Live, "Whether results without rows are kept, where the rule says nothing.";

    // --- Digests and statistics
    // ---------------------------------------------------------------------------------
    mysql_query_digests: bool = true, Live, "Whether statements are counted by digest.";
    mysql_query_digests_max_digest_length: int(16..=1048576) = 2048, Live, "Bytes after which the text of a digest is cut.";
    mysql_query_digests_max_query_length: int(16..=1048576) = 65000, Moot, "Bytes of a statement that its digest is made from, by its name; ProxySQL 2.7.1 digests longer ones as well, and so does this.";
    mysql_query_digests_grouping_limit: int(1..=2089) = 3, Live, "Values of a list that its digest shows.";
    mysql_query_digests_groups_grouping_limit: int(0..=2089) = 10, Live, "Rows of values that a digest shows; 0 for all.";
    mysql_query_digests_lowercase: bool = false, Live, "Whether digests are in lower case.";
    mysql_query_digests_replace_null: bool = false, Live, "Whether NULL becomes '?' in digests.";
    mysql_query_digests_no_digits: bool = false, Live, "Whether digits in names become '?' in digests.";
    mysql_query_digests_keep_comment: bool = false, Live, "Whether comments stay in digests.";
    mysql_query_digests_normalize_digest_text: bool = false, Moot, "Whether ProxySQL keeps the texts of digests once for all schemas and users; here each row of a core has its own.";
    mysql_query_digests_track_hostname: bool = false, Live, "Whether statements are counted by the client's address as well.";
    mysql_commands_stats: bool = true, Live, "Whether statements are counted by class in stats_mysql_commands_counters.";
    mysql_servers_stats: bool = true, Moot, "Whether statements and bytes are counted by server; here they always are.";
    mysql_stats_time_backend_query: bool = false, Live, "Whether the time that servers take is added up in Backend_query_time_nsec.";
    mysql_stats_time_query_processor: bool = false, Live, "Whether the time that rules take is added up in Query_Processor_time_nsec.";

    // --- Logs of statements and logins
    // --------------------------------------------------------------------------
    mysql_eventslog_filename: text = "", Live, "Beginning of the names of the files that statements are logged to; empty for none.";
    mysql_eventslog_filesize: int(1048576..=1073741824) = 104857600, Live, "Bytes after which the next file is begun.";
    mysql_eventslog_default_log: int(0..=1) = 0, Live, "Whether statements are logged where their rule says nothing.";
    mysql_eventslog_format: int(1..=2) = 1, Live, "Form of that log: 1 binary, 2 JSON.";
    mysql_auditlog_filename: text = "", Live, "Beginning of the names of the files that clients are logged to when they come, are refused, or leave; empty for none.";
    mysql_auditlog_filesize: int(1048576..=1073741824) = 104857600, Live, "Bytes after which the next file is begun.";

    // --- TLS to servers
    // -----------------------------------------------------------------------------------------
    mysql_ssl_p2s_ca: text = "", Live, "File of the authorities that servers' certificates are checked against.";
    mysql_ssl_p2s_capath: text = "", Live, "Folder of such authorities.";
    mysql_ssl_p2s_cert: text = "", Live, "File of the certificate shown to servers.";
    mysql_ssl_p2s_key: text = "", Live, "File of its key.";
    mysql_ssl_p2s_cipher: text = "", Live, "Ciphers allowed to servers, in OpenSSL's notation.";
    mysql_ssl_p2s_crl: text = "", Live, "File of revoked certificates.";
    mysql_ssl_p2s_crlpath: text = "", Live, "Folder of such files.";

    // --- LDAP, binlog readers
    // -----------------------------------------------------------------------------------
    mysql_ldap_user_variable: text = "", Moot, "User variable that tells a server the LDAP name of the client; there is no LDAP here.";
    mysql_add_ldap_user_comment: text = "", Moot, "Name under which the LDAP name of the client is added to statements as a comment; there is no LDAP here.";
    mysql_gtid_settle_us: int(0..=1000000) = 2000, Live, "Microseconds after which a transaction that a binlog reader tells of counts as visible on its server (our own): a reader tells of it when it is in the log, and the engine commits behind that.";
    mysql_binlog_reader_connect_retry_msec: int(200..=120000) = 3000, Live, "Milliseconds between attempts to reach a server's binlog reader.";

    // --- Monitoring
    // ---------------------------------------------------------------------------------------------
    mysql_monitor_enabled: bool = true, Live, "Whether servers are watched.";
    mysql_monitor_username: text = "monitor", Live, "User that the checks log in with.";
    mysql_monitor_password: text = "monitor", Live, "Its password.";
    mysql_monitor_history: int(1000..=604800000) = 7200000, Live, "Milliseconds that results of checks are kept.";
    mysql_monitor_connect_interval: int(100..=604800000) = 120000, Live, "Milliseconds between checks of the login.";
    mysql_monitor_connect_timeout: int(100..=600000) = 600, Live, "Milliseconds such a check may take.";
    mysql_monitor_ping_interval: int(100..=604800000) = 8000, Live, "Milliseconds between pings.";
    mysql_monitor_ping_timeout: int(100..=600000) = 1000, Live, "Milliseconds a ping may take.";
    mysql_monitor_ping_max_failures: int(1..=1000000) = 3, Live, "Pings lost in a row after which a server is shunned.";
    mysql_monitor_read_only_interval: int(100..=604800000) = 1000, Live, "Milliseconds between checks of read_only.";
    mysql_monitor_read_only_timeout: int(100..=600000) = 800, Live, "Milliseconds such a check may take.";
    mysql_monitor_read_only_max_timeout_count: int(1..=1000000) = 3, Live, "Such checks lost in a row after which a server counts as read-only.";
    mysql_monitor_replication_lag_interval: int(100..=604800000) = 10000, Live, "Milliseconds between checks of the replication lag.";
    mysql_monitor_replication_lag_timeout: int(100..=600000) = 1000, Live, "Milliseconds such a check may take.";
    mysql_monitor_replication_lag_count: int(1..=10) = 1, Live, "Checks in a row that must find too much lag before a server is shunned.";
    mysql_monitor_replication_lag_group_by_host: bool = false, Moot, "Whether a server in several hostgroups is asked once; here it always is.";
    mysql_monitor_replication_lag_use_percona_heartbeat: text = "", Live, "Table of pt-heartbeat to read the lag from; empty for SHOW REPLICA STATUS.";
    mysql_monitor_slave_lag_when_null: int(0..=604800) = 60, Live, "Seconds that count as lag while replication does not run.";
    mysql_monitor_groupreplication_healthcheck_interval: int(100..=604800000) = 5000, Live, "Milliseconds between checks of group replication.";
    mysql_monitor_groupreplication_healthcheck_timeout: int(100..=600000) = 800, Live, "Milliseconds such a check may take.";
    mysql_monitor_groupreplication_healthcheck_max_timeout_count: int(1..=10) = 3, Live, "Such checks lost in a row after which a server is set aside.";
    mysql_monitor_groupreplication_max_transactions_behind_count: int(1..=10) = 3, Live, "Checks in a row that must find a member too far behind before it is set aside.";
    mysql_monitor_groupreplication_max_transactions_behind_for_read_only: int(0..=2) = 1, Live, "Whom that concerns: 0 writers, 1 readers, 2 both.";
    mysql_monitor_galera_healthcheck_interval: int(50..=604800000) = 5000, Live, "Milliseconds between checks of Galera nodes.";
    mysql_monitor_galera_healthcheck_timeout: int(50..=600000) = 800, Live, "Milliseconds such a check may take.";
    mysql_monitor_galera_healthcheck_max_timeout_count: int(1..=10) = 3, Live, "Such checks lost in a row after which a node is set aside.";
    mysql_monitor_aws_rds_topology_discovery_interval: int(0..=100000) = 0, Live, "Checks of read_only between two looks into mysql.rds_topology of each server of mysql_replication_hostgroups, for servers that no row names; 0 for never.";
    mysql_monitor_query_interval: int(100..=604800000) = 60000, Moot, "Milliseconds between checks by a query, which ProxySQL does not make either.";
    mysql_monitor_query_timeout: int(100..=600000) = 100, Moot, "Milliseconds such a check may take.";
    mysql_monitor_threads_min: int(2..=256) = 8, Moot, "Threads that check at least; here one thread checks all servers without waiting for any.";
    mysql_monitor_threads_max: int(4..=1024) = 128, Moot, "Threads that check at most; here one thread checks all servers without waiting for any.";
    mysql_monitor_threads_queue_maxsize: int(16..=1024) = 128, Moot, "Checks that may wait for a thread; here none waits.";
    mysql_monitor_local_dns_cache_ttl: int(0..=604800000) = 300000, Live, "0 has whoever connects look a name up; with any other number the last answer holds until there is another.";
    mysql_monitor_local_dns_cache_refresh_interval: int(0..=604800000) = 60000, Live, "Milliseconds between renewals of those addresses.";
    mysql_monitor_local_dns_resolver_queue_maxsize: int(16..=1024) = 128, Live, "Names that may wait for their address.";
    mysql_monitor_wait_timeout: bool = true, Live, "Whether the monitor sets wait_timeout on its connections to ten times the slower of mysql-monitor_ping_interval and mysql-monitor_read_only_interval: they outlive a shorter one of the server, and end with the monitor.";
    mysql_monitor_writer_is_also_reader: bool = true, Live, "Whether a writer stays in the reader hostgroup.";

    // --- The admin port
    // -----------------------------------------------------------------------------------------
    admin_admin_credentials: text = "admin:admin", Live, "Who may change the configuration: user:password, separated by ';'.";
    admin_stats_credentials: text = "stats:stats", Live, "Who may read the statistics: user:password, separated by ';'.";
    admin_mysql_ifaces: interfaces = "127.0.0.1:6032", Restart, "Where operators connect (ProxySQL's default is every address): ip:port or the absolute path of a Unix socket, separated by ';'.";
    admin_telnet_admin_ifaces: text = "(null)", Moot, "Without meaning in ProxySQL as well.";
    admin_telnet_stats_ifaces: text = "(null)", Moot, "Without meaning in ProxySQL as well.";
    admin_read_only: bool = false, Live, "Whether the configuration can only be read.";
    admin_refresh_interval: int(100..=100000) = 2000, Moot, "Milliseconds that statistics of ProxySQL may be old; here they are as of the moment when they are read.";
    admin_version: fixed = "2.7.1-0-g2726c27", Live, "Version of ProxySQL whose admin interface this one follows.";
    admin_vacuum_stats: bool = true, Moot, "Whether ProxySQL's tables of statistics give their memory back after they were read; here they are made when they are read.";
    admin_ssl_keylog_file: text = "", Live, "File that secrets of TLS sessions are appended to, of clients and servers, for who reads recorded traffic; empty for none.";
    admin_coredump_generation_interval_ms: int(0..=2147483647) = 30000, Moot, "Milliseconds between core dumps on request; here a crash leaves a report.";
    admin_coredump_generation_threshold: int(1..=500) = 10, Moot, "Core dumps on request at most; here a crash leaves a report.";

    // --- History of the statistics
    // ------------------------------------------------------------------------------
    admin_stats_mysql_connections: int(0..=300) = 60, Live, "Seconds between samples of the connections; 0 for none.";
    admin_stats_mysql_connection_pool: int(0..=300) = 60, Live, "Seconds between samples of the pool; 0 for none.";
    admin_stats_mysql_query_cache: int(0..=300) = 60, Live, "Seconds between samples of the cache, in stats_history.mysql_query_cache; 0 for none.";
    admin_stats_mysql_query_digest_to_disk: int(0..=86400) = 0, Live, "Seconds between copies of the digests to disk; 0 for none.";
    admin_stats_system_cpu: int(0..=600) = 60, Live, "Seconds between samples of the processor time; 0 for none.";
    admin_stats_system_memory: int(0..=600) = 60, Live, "Seconds between samples of the memory; 0 for none.";
    admin_prometheus_memory_metrics_interval: int(0..=604800) = 61, Moot, "Seconds between ProxySQL's samples of the memory for Prometheus; here each scrape has its own.";

    // --- Web
    // ----------------------------------------------------------------------------------------------------
    admin_restapi_enabled: bool = false, Live, "Whether metrics are served over HTTP, at /metrics.";
    admin_restapi_port: int(0..=65535) = 6070, Live, "Port of the metrics.";
    admin_web_enabled: bool = false, Live, "Whether the web page is served, over HTTPS.";
    admin_web_port: int(0..=65535) = 6080, Live, "Port of the web page.";
    admin_web_verbosity: int(0..=10) = 0, Moot, "How much ProxySQL's web page logs; here the log has who comes in and what is done.";

    // --- Several proxies
    // ----------------------------------------------------------------------------------------
    admin_cluster_username: text = "", Live, "User that proxies log in to each other with.";
    admin_cluster_password: text = "", Live, "Its password.";
    admin_cluster_proxysql_version: text = "", Live, "What ProxySQLs of the cluster are told as @@version: their own. Empty: what they say themselves. Ours.";
    admin_cluster_store: text = "", Live, "Where the configuration of a fleet is kept: etcd://user:password@host:port,host:port/prefix, or with TLS etcds://…/prefix?ca=FILE&cert=FILE&key=FILE. Empty: proxies ask each other. Every proxy has its own. Ours.";
    admin_cluster_key_file: text = "", Live, "File with the key under which passwords are sealed in that store: 32 bytes of chance or more, the same on every proxy. Ours.";
    admin_cluster_check_interval_ms: int(10..=300000) = 1000, Live, "Milliseconds between looks at the other proxies.";
    admin_cluster_check_status_frequency: int(0..=10000) = 10, Live, "Looks between two at the status of the other proxies; 0 for none.";
    admin_cluster_mysql_servers_sync_algorithm: int(1..=3) = 1, Moot, "Which servers ProxySQL takes over; here what operators wrote is never mixed with what is observed, and only the former is taken over.";
    admin_cluster_admin_variables_diffs_before_sync: int(0..=1000) = 3, Live, "Looks that must differ before admin variables are taken over; 0 for never.";
    admin_cluster_ldap_variables_diffs_before_sync: int(0..=1000) = 3, Moot, "Looks of ProxySQL's before LDAP variables are taken over; here are none.";
    admin_cluster_mysql_query_rules_diffs_before_sync: int(0..=1000) = 3, Live, "Looks that must differ before rules are taken over; 0 for never.";
    admin_cluster_mysql_servers_diffs_before_sync: int(0..=1000) = 3, Live, "Looks that must differ before servers are taken over; 0 for never.";
    admin_cluster_mysql_users_diffs_before_sync: int(0..=1000) = 3, Live, "Looks that must differ before users are taken over; 0 for never.";
    admin_cluster_mysql_variables_diffs_before_sync: int(0..=1000) = 3, Live, "Looks that must differ before MySQL variables are taken over; 0 for never.";
    admin_cluster_proxysql_servers_diffs_before_sync: int(0..=1000) = 3, Live, "Looks that must differ before the list of proxies is taken over; 0 for never.";
    admin_cluster_admin_variables_save_to_disk: bool = true, Live, "Whether admin variables taken over are saved.";
    admin_cluster_ldap_variables_save_to_disk: bool = true, Moot, "Whether ProxySQL saves LDAP variables that were taken over; here are none.";
    admin_cluster_mysql_query_rules_save_to_disk: bool = true, Live, "Whether rules taken over are saved.";
    admin_cluster_mysql_servers_save_to_disk: bool = true, Live, "Whether servers taken over are saved.";
    admin_cluster_mysql_users_save_to_disk: bool = true, Live, "Whether users taken over are saved.";
    admin_cluster_mysql_variables_save_to_disk: bool = true, Live, "Whether MySQL variables taken over are saved.";
    admin_cluster_proxysql_servers_save_to_disk: bool = true, Live, "Whether the list of proxies taken over is saved.";
    admin_checksum_admin_variables: bool = true, Live, "Whether the admin variables are shared with other proxies: without a checksum nobody takes them over, neither here nor from here.";
    admin_checksum_ldap_variables: bool = true, Moot, "Whether ProxySQL keeps a checksum of the LDAP variables; here are none.";
    admin_checksum_mysql_query_rules: bool = true, Live, "Whether the rules are shared with other proxies: without a checksum nobody takes them over, neither here nor from here.";
    admin_checksum_mysql_servers: bool = true, Live, "Whether the servers are shared with other proxies: without a checksum nobody takes them over, neither here nor from here.";
    admin_checksum_mysql_users: bool = true, Live, "Whether the users are shared with other proxies: without a checksum nobody takes them over, neither here nor from here.";
    admin_checksum_mysql_variables: bool = true, Live, "Whether the MySQL variables are shared with other proxies: without a checksum nobody takes them over, neither here nor from here.";

    // --- The embedded SQLite server
    // -----------------------------------------------------------------------------
    sqliteserver_mysql_ifaces: interfaces = "127.0.0.1:6030", Restart, "Where the embedded SQLite server listens: ip:port or the absolute path of a Unix socket, separated by ';'.";
    sqliteserver_read_only: bool = false, Live, "Whether the embedded SQLite server refuses to write.";

    // --- ClickHouse behind a port of ours
    // -----------------------------------------------------------------------
    clickhouse_hostname: text = "127.0.0.1", Live, "Where ClickHouse is: a name or an address.";
    clickhouse_port: int(1..=65535) = 9000, Moot, "ClickHouse's port of its own protocol; here it is asked over HTTP, at clickhouse-http_port.";
    clickhouse_mysql_ifaces: interfaces = "127.0.0.1:6090", Restart, "Where clients of MySQL reach ClickHouse: ip:port or the absolute path of a Unix socket, separated by ';'.";
    clickhouse_read_only: bool = false, Live, "Whether ClickHouse is asked to refuse what is more than reading (readonly = 2).";
    clickhouse_protocol: choice("http") = "http", Live, "How ClickHouse is asked.";
    clickhouse_http_port: int(1..=65535) = 8123, Live, "ClickHouse's port of HTTP, or of HTTPS with clickhouse-tls.";
    clickhouse_tls: bool = false, Live, "Whether ClickHouse is asked over TLS.";
    clickhouse_tls_ca: text = "", Live, "File of the authorities that may have signed the certificate of ClickHouse, which must be for clickhouse-hostname; empty takes any certificate.";
    clickhouse_database: text = "default", Live, "Database of who names none, and of who names one that only MySQL has, such as information_schema.";
    clickhouse_user: text = "default", Live, "Whom ClickHouse is asked as, unless clickhouse_user_settings says otherwise.";
    clickhouse_password: text = "", Live, "His password.";
    clickhouse_threads: int(1..=64) = 2, Restart, "Threads that serve the port of ClickHouse.";
    clickhouse_max_block_rows: int(1..=65536) = 8192, Live, "Rows of a result that ClickHouse sends at once, and a client's thread has in memory.";

    // --- Ours
    // ---------------------------------------------------------------------------------------------------
    admin_scheduler_running_max: int(1..=1000) = 16, Live, "Programs of the scheduler that run at once at most; one more is skipped.";
    admin_scheduler_long_run_ms: int(0..=100000000) = 60000, Live, "Milliseconds after which a program of the scheduler that still runs is named in the log; 0 for never.";
    admin_watchdog_ms: int(0..=3600000) = 3000, Live, "Milliseconds after which a core that has served nobody is named in the log; and one heartbeat of restart_on_missing_heartbeats; less than 1000 counts as 1000, 0 is no watchdog.";
    admin_restapi_interface: text = "127.0.0.1", Live, "Address at which admin-restapi_port is served; 0.0.0.0 for every one.";
    admin_web_interface: text = "127.0.0.1", Live, "Address at which admin-web_port is served; 0.0.0.0 for every one.";
    admin_stats_history_digests_max: int(0..=1000000000) = 1000000, Live, "Rows that stats_history.history_mysql_query_digest has at most, the newest; 0 for no limit.";
    admin_prometheus_digests: int(0..=1000) = 50, Live, "Digests that are metrics at most, those that took the most time; 0 for none.";
    admin_health_port: int(0..=65535) = 0, Restart, "Port of 127.0.0.1 at which /live and /ready are answered over HTTP; 0 for none.";
    mysql_upgrade_deadline_ms: int(0..=86400000) = 600000, Live, "Milliseconds that sessions have to go to the process that takes over, or to end by themselves.";
    mysql_shutdown_deadline_ms: int(0..=86400000) = 30000, Live, "Milliseconds that sessions have to end by themselves after SIGTERM.";
    mysql_protocol_compression_algorithms: choice("zlib,zstd,uncompressed" | "zlib,uncompressed" | "zstd,uncompressed" | "zlib,zstd" | "zlib" | "zstd") = "zlib,zstd,uncompressed", Live, "What clients are offered while mysql-have_compress is on; without 'uncompressed', a client that does not compress is refused.";
    mysql_protocol_compression_level: int(0..=9) = 3, Live, "Level of zlib for what is sent, to clients and to servers; 0 packs nothing.";
    mysql_protocol_compression_zstd_level_max: int(1..=22) = 6, Live, "Highest level of zstd at which clients are answered; up to it, each client chooses its own.";
    mysql_server_compression_algorithm: choice("zlib" | "zstd") = "zlib", Live, "What connections to servers with compression = 1 use; zstd where the server has it, else zlib.";
    mysql_server_compression_zstd_level: int(1..=22) = 3, Live, "Level of zstd on connections to servers, in both directions.";
    mysql_query_digests_max_entries: int(0..=10000000) = 100000, Live, "Rows of stats_mysql_query_digest that a core keeps at most; further digests are only counted in Millrace_digests_dropped.";
    mysql_stmts_cache_max_MB: int(1..=65536) = 64, Live, "Megabytes of prepared statements remembered by text on each core; what clients have is kept beyond it.";
    mysql_query_digests_max_memory_MB: int(1..=65536) = 128, Live, "Megabytes that the rows of stats_mysql_query_digest take on a core at most; further digests are only counted in Millrace_digests_dropped.";
    mysql_eventslog_buffer_MB: int(1..=16384) = 64, Live, "Megabytes of statements that may wait, over all cores, to be written to the events log; further ones are only counted in Millrace_events_dropped.";
    mysql_traces_endpoint: text = "", Live, "Collector that spans of statements are sent to, by OTLP over HTTP as JSON: http://host:4318/v1/traces; empty: nothing is traced. Ours.";
    mysql_traces_per_million: int(0..=1000000) = 0, Live, "Of a million statements so many are traced, by chance. Ours.";
    mysql_traces_slow_ms: int(0..=1209600000) = 0, Live, "Statements that take at least so many milliseconds are traced; 0: none for that reason. Ours.";
    mysql_traces_parent: bool = true, Live, "Whether a statement is traced whose caller traces it, by the query attribute traceparent or a comment. Ours.";
    mysql_stmts_per_client_max: int(1..=1048576) = 16382, Live, "Prepared statements that one client may have; one more is refused with error 1461.";
    mysql_script_mail_hosts: text = "", Live, "Mail servers that scripts may send mails to, with commas between them: each a name or an address, with or without a port; empty for none. Ours.";
    mysql_script_mails_per_minute: int(0..=100000) = 20, Live, "Mails of scripts that are sent in a minute at most; more are left out, and counted in the log. Ours.";
    mysql_script_console_ifaces: interfaces = "", Restart, "Where scripts with serves = 'console' answer operators: ip:port or the absolute path of a Unix socket, separated by ';'; empty for nowhere. Ours.";
    mysql_sharding_max_partitions: int(0..=10000) = 100, Live, "Partitions of a sharded table that one statement may read; 0 for no limit.";
    mysql_sharding_decisions: text = "", Live, "Table (schema.table) in which the outcome of changes of several partitions is written; empty: no such change is made.";
    mysql_sharding_decisions_hostgroup: int(0..=2147483647) = 0, Live, "Hostgroup whose writer has that table.";
    mysql_sharding_sequences: text = "", Live, "Table (schema.table) that has the next number of each sequence of a sharded table; empty: no row is numbered.";
    mysql_sharding_sequences_hostgroup: int(0..=2147483647) = 0, Live, "Hostgroup whose writer has that table.";
    mysql_sharding_sequence_block: int(1..=1000000) = 1000, Live, "Numbers that a core takes at once from a sequence; what it has not given when it ends is a gap.";
    mysql_sharding_partitions: text = "", Live, "Table (schema.table) in which proxies write down the partitions that they make by themselves (auto_partition); empty: none is made.";
    mysql_sharding_partitions_hostgroup: int(0..=2147483647) = 0, Live, "Hostgroup whose writer has that table.";
    mysql_sharding_move_rows_per_second: int(0..=1000000000) = 20000, Live, "Rows a second that a partition that moves is copied with; 0 for no limit.";
    mysql_sharding_move_rows_at_once: int(1..=100000) = 1000, Live, "Rows that are copied or compared at once when a partition moves.";
    mysql_sharding_cut_over_ms_max: int(50..=60000) = 1000, Live, "Milliseconds for which statements wait at most when a partition that moves is cut over; else it is tried again later.";
    mysql_sharding_scratch: choice("map" | "hostgroup" | "off") = "map", Live, "Which server finishes a SELECT over several partitions whose rows cannot be put together as they arrive: one of the default hostgroup of its first table; one of mysql-sharding_scratch_hostgroup; or none, so that it is refused. Ours.";
    mysql_sharding_scratch_hostgroup: int(0..=2147483647) = 0, Live, "Hostgroup of that server, where mysql-sharding_scratch says so. Ours.";
    mysql_sharding_scratch_max_rows: int(0..=1000000000000) = 1000000, Live, "Rows that are copied there at most for one statement; 0 for no limit. Ours.";
    mysql_sharding_scratch_max_MB: int(0..=1048576) = 256, Live, "Megabytes that these rows have at most; 0 for no limit. Ours.";
    mysql_sharding_insert_max_rows: int(0..=1000000000) = 100000, Live, "Rows that one INSERT of a query, or one UPDATE of the key, brings to other partitions at most; 0 for no limit. Ours.";
    mysql_sharding_insert_max_MB: int(0..=1048576) = 64, Live, "Megabytes of these rows that the proxy keeps at most; 0 for no limit. Ours.";
    mysql_enable_bulk_execute: bool = true, Live, "Whether clients are offered the bulk execute of MariaDB, where the version that they are told is MariaDB's and every server that takes work is known to have it.";
    mysql_relay_logins: bool = false, Live, "Whether, while mysql_users has no active row, clients log in at a server themselves: they get its greeting, and what proves their password goes there.";
    mysql_relay_logins_hostgroup: int(0..=2147483647) = 0, Live, "Hostgroup of those servers, and of the sessions that come of it.";
    mysql_relay_logins_beside_hostgroup: int(0..=2147483647) = 0, Live, "Another hostgroup: where the user has no idle connection to one of its servers, a client that was let in is asked for a second proof, for that server. That of mysql-relay_logins_hostgroup for none.";
    mysql_query_rewrite_check: bool = true, Live, "Whether LOAD refuses replacements of mysql_query_rewrite that neither MySQL nor MariaDB can parse; off where they go to servers of another dialect.";
    mysql_add_session_id_attribute: bool = false, Live, "Whether each statement carries the query attribute millrace_session_id to servers that know query attributes.";
}
