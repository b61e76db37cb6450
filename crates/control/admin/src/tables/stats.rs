//! What is counted and observed: filled when it is read. A `_reset` twin answers the same and
//! zeroes it.

use super::table::{Kind, Observe, Table};
use bridge::{
    AddressRow, AdmissionRow, AlarmRow, ChoiceRow, ClientHostRow, ConcurrencyRow, CoreRow,
    ErrorRow, HookRow, HostgroupPoolRow, LogRow, MirrorRow, MoveRow, Observed as _, PoolRow,
    QueryCacheRow, RunRow, ShardDdlRow, ShardRow,
};

/// In the order of their names.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "global_variables",
        about: "What the statistics user may know of the variables.",
        columns: "(
    variable_name VARCHAR NOT NULL PRIMARY KEY,
    variable_value VARCHAR NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::StatsVariables,
            reset: false,
        },
    },
    Table {
        name: "stats_memory_metrics",
        about: "Bytes of memory by purpose.",
        columns: "(
    Variable_Name VARCHAR NOT NULL PRIMARY KEY,
    Variable_Value VARCHAR NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Memory,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_logs",
        about: "Servers whose binary logs are followed from here, and why one is not. Ours.",
        columns: LogRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Logs,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_scheduler",
        about: "The last runs of the scheduler's programs, 1,000 of them at most; ms is NULL while one runs. Ours.",
        columns: RunRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Scheduled,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_variables",
        about: "Every variable in force: its default, whether and when a change has an effect, and what it does. Ours.",
        columns: "(
    variable_name VARCHAR NOT NULL PRIMARY KEY,
    variable_value VARCHAR NOT NULL,
    default_value VARCHAR NOT NULL,
    effect VARCHAR CHECK (effect IN ('at LOAD','at the next start','none','no meaning')) NOT NULL,
    description VARCHAR NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Variables,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_client_host_cache",
        about: "Client addresses with failed logins.",
        columns: ClientHostRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::ClientHosts,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_commands_counters",
        about: "Statements by class, with their latencies.",
        columns: "(
    Command VARCHAR NOT NULL PRIMARY KEY,
    Total_Time_us INT NOT NULL,
    Total_cnt INT NOT NULL,
    cnt_100us INT NOT NULL,
    cnt_500us INT NOT NULL,
    cnt_1ms INT NOT NULL,
    cnt_5ms INT NOT NULL,
    cnt_10ms INT NOT NULL,
    cnt_50ms INT NOT NULL,
    cnt_100ms INT NOT NULL,
    cnt_500ms INT NOT NULL,
    cnt_1s INT NOT NULL,
    cnt_5s INT NOT NULL,
    cnt_10s INT NOT NULL,
    cnt_INFs)",
        kind: Kind::Observed {
            observe: Observe::Commands,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_connection_pool",
        about: "Servers and the connections to them.",
        columns: PoolRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Pool,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_errors",
        about: "Errors of servers.",
        columns: ErrorRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Errors,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_free_connections",
        about: "Idle connections to servers.",
        columns: "(
    fd INT NOT NULL,
    hostgroup INT NOT NULL,
    srv_host VARCHAR NOT NULL,
    srv_port INT NOT NULL,
    user VARCHAR NOT NULL,
    schema VARCHAR,
    init_connect VARCHAR,
    time_zone VARCHAR,
    sql_mode VARCHAR,
    autocommit VARCHAR,
    idle_ms INT,
    statistics VARCHAR,
    mysql_info VARCHAR)",
        kind: Kind::Observed {
            observe: Observe::FreeConnections,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_global",
        about: "Counters of the whole proxy.",
        columns: "(
    Variable_Name VARCHAR NOT NULL PRIMARY KEY,
    Variable_Value VARCHAR NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Global,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_gtid_executed",
        about: "Transactions that servers are known to have.",
        columns: "(
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 3306,
    gtid_executed VARCHAR,
    events INT NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Gtids,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_prepared_statements_info",
        about: "Prepared statements.",
        columns: "(
    global_stmt_id INT NOT NULL,
    schemaname VARCHAR NOT NULL,
    username VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    ref_count_client INT NOT NULL,
    ref_count_server INT NOT NULL,
    num_columns INT NOT NULL, num_params INT NOT NULL, query VARCHAR NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Prepared,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_session_holds",
        about: "Why sessions keep connections to servers for themselves, when their last command ended: a row for each reason. Ours.",
        columns: "(
    SessionID INT NOT NULL,
    user VARCHAR,
    hostgroup INT NOT NULL,
    srv_host VARCHAR NOT NULL,
    srv_port INT NOT NULL,
    srv_thread_id INT NOT NULL,
    hold VARCHAR NOT NULL,
    held_ms INT NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Holds,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_processlist",
        about: "Sessions.",
        columns: "(
    ThreadID INT NOT NULL,
    SessionID INTEGER PRIMARY KEY,
    user VARCHAR,
    db VARCHAR,
    cli_host VARCHAR,
    cli_port INT,
    hostgroup INT,
    l_srv_host VARCHAR,
    l_srv_port INT,
    srv_host VARCHAR,
    srv_port INT,
    command VARCHAR,
    time_ms INT NOT NULL,
    info VARCHAR,
    status_flags INT,
    extended_info VARCHAR)",
        kind: Kind::Observed {
            observe: Observe::Processes,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_query_cache",
        about: "Results that are kept, 10,000 of them at most. Ours.",
        columns: QueryCacheRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::QueryCache,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_query_digest",
        about: "Statements without their literals, counted.",
        columns: "(
    hostgroup INT,
    schemaname VARCHAR NOT NULL,
    username VARCHAR NOT NULL,
    client_address VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    digest_text VARCHAR NOT NULL,
    count_star INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    sum_time INTEGER NOT NULL,
    min_time INTEGER NOT NULL,
    max_time INTEGER NOT NULL,
    sum_rows_affected INTEGER NOT NULL,
    sum_rows_sent INTEGER NOT NULL,
    PRIMARY KEY(hostgroup, schemaname, username, client_address, digest))",
        kind: Kind::Observed {
            observe: Observe::Digests,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_query_digest_latency",
        about: "How the times of each digest are spread, in microseconds. Ours.",
        columns: "(
    hostgroup INT,
    schemaname VARCHAR NOT NULL,
    username VARCHAR NOT NULL,
    client_address VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    digest_text VARCHAR NOT NULL,
    count_star INTEGER NOT NULL,
    p50_us INTEGER NOT NULL,
    p90_us INTEGER NOT NULL,
    p99_us INTEGER NOT NULL,
    p999_us INTEGER NOT NULL,
    max_us INTEGER NOT NULL,
    histogram VARCHAR NOT NULL,
    PRIMARY KEY(hostgroup, schemaname, username, client_address, digest))",
        kind: Kind::Observed {
            observe: Observe::DigestLatency,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_hostgroup_latency",
        about: "How the times of the statements of each hostgroup are spread, in microseconds. Ours.",
        columns: "(
    hostgroup INTEGER PRIMARY KEY,
    count_star INTEGER NOT NULL,
    p50_us INTEGER NOT NULL,
    p90_us INTEGER NOT NULL,
    p99_us INTEGER NOT NULL,
    p999_us INTEGER NOT NULL,
    max_us INTEGER NOT NULL,
    histogram VARCHAR NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::HostgroupLatency,
            reset: true,
        },
    },
    Table {
        name: "stats_millrace_addresses",
        about: "Addresses of servers' names: which is in use, why another is not, whether it answers, and connections to it. Ours.",
        columns: AddressRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Addresses,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_choice",
        about: "What decides which server of a hostgroup is chosen: its weight, how much of it counts after a return, what is in use, how soon it answers. Ours.",
        columns: ChoiceRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Choice,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_admission",
        about: "Who waits for each hostgroup with admission, queue_max, queue_ms or concurrency in its hostgroup_settings, by priority, and who was sent away. Ours.",
        columns: AdmissionRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Admission,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_concurrency",
        about: "Of each server of a hostgroup whose concurrency is adaptive: statements in flight at most and now, and the latencies that the limit follows. Ours.",
        columns: ConcurrencyRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Concurrency,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_hostgroup_pool",
        about: "The connections of each hostgroup over all cores, as many as it may have (NULL: no limit of its own), and who waits for one. Ours.",
        columns: HostgroupPoolRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::HostgroupPool,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_command_latency",
        about: "How the times of each class of statements are spread, in microseconds. Ours.",
        columns: "(
    Command VARCHAR NOT NULL PRIMARY KEY,
    count_star INTEGER NOT NULL,
    p50_us INTEGER NOT NULL,
    p90_us INTEGER NOT NULL,
    p99_us INTEGER NOT NULL,
    p999_us INTEGER NOT NULL,
    max_us INTEGER NOT NULL,
    histogram VARCHAR NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::CommandLatency,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_firewall",
        about: "Statements that the firewall refused, or let through though no rule of it names them. Ours.",
        columns: AlarmRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Alarms,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_cores",
        about: "The threads that do the traffic, and the turns in which they do it: how long each is away from its sockets. Ours.",
        columns: CoreRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Cores,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_mirror_digest",
        about: "How mirrors' results compare with those that clients got, where a rule asks for it. Ours.",
        columns: MirrorRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Mirror,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_shard_ddl",
        about: "TRUNCATE and ALTER of sharded tables: which partitions have done them. Ours.",
        columns: ShardDdlRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::ShardDdl,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_shards",
        about: "Statements on sharded tables, by how many partitions they needed. Ours.",
        columns: ShardRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Shards,
            reset: true,
        },
    },
    Table {
        name: "stats_millrace_moves",
        about: "Partitions that move to another hostgroup, and how far they are. Ours.",
        columns: MoveRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Moves,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_scripts",
        about: "What the hooks of scripts cost, and how they fail. Ours.",
        columns: HookRow::COLUMNS,
        kind: Kind::Observed {
            observe: Observe::Hooks,
            reset: true,
        },
    },
    Table {
        name: "stats_mysql_query_rules",
        about: "How often each rule matched.",
        columns: "(
    rule_id INTEGER PRIMARY KEY,
    hits INT NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Rules,
            reset: false,
        },
    },
    Table {
        name: "stats_mysql_users",
        about: "Clients connected, by user.",
        columns: "(
    username VARCHAR PRIMARY KEY,
    frontend_connections INT NOT NULL,
    frontend_max_connections INT NOT NULL)",
        kind: Kind::Observed {
            observe: Observe::Users,
            reset: false,
        },
    },
    Table {
        name: "stats_proxysql_message_metrics",
        about: "Messages of the log, counted by what they say: `filename` is the thread, `func` what they have in common, `line` 0.",
        columns: "(
    message_id VARCHAR NOT NULL,
    filename VARCHAR NOT NULL,
    line INT CHECK (line >= 0) NOT NULL DEFAULT 0,
    func VARCHAR NOT NULL,
    count_star INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (filename, line, func) )",
        kind: Kind::Observed {
            observe: Observe::Messages,
            reset: true,
        },
    },
    Table {
        name: "stats_proxysql_servers_checksums",
        about: "Checksums of other proxies.",
        columns: "(
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 6032,
    name VARCHAR NOT NULL,
    version INT NOT NULL,
    epoch INT NOT NULL,
    checksum VARCHAR NOT NULL,
    changed_at INT NOT NULL,
    updated_at INT NOT NULL,
    diff_check INT NOT NULL,
    PRIMARY KEY (hostname, port, name) )",
        kind: Kind::Observed {
            observe: Observe::PeerChecksums,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_fleet",
        about: "Proxies that share a store, and what each has in force of what is there. Ours.",
        columns: "(
    proxy VARCHAR NOT NULL,
    address VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    module VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    generation INT NOT NULL,
    truth INT NOT NULL,
    error VARCHAR NOT NULL,
    PRIMARY KEY (proxy, module) )",
        kind: Kind::Observed {
            observe: Observe::Fleet,
            reset: false,
        },
    },
    Table {
        name: "stats_millrace_shares",
        about: "Limits that hold for a fleet, and the share of each proxy. Ours.",
        columns: "(
    what VARCHAR NOT NULL,
    proxy VARCHAR NOT NULL,
    budget INT NOT NULL,
    share INT NOT NULL,
    has INT NOT NULL,
    used INT NOT NULL,
    wanted INT NOT NULL,
    PRIMARY KEY (what, proxy) )",
        kind: Kind::Observed {
            observe: Observe::Shares,
            reset: false,
        },
    },
    Table {
        name: "stats_proxysql_servers_clients_status",
        about: "Other proxies that ask this one.",
        columns: "(
    uuid VARCHAR NOT NULL,
    hostname VARCHAR NOT NULL,
    port INT NOT NULL,
    admin_mysql_ifaces VARCHAR NOT NULL,
    last_seen_at INT NOT NULL,
    PRIMARY KEY (uuid, hostname, port) )",
        kind: Kind::Observed {
            observe: Observe::PeerClients,
            reset: false,
        },
    },
    Table {
        name: "stats_proxysql_servers_metrics",
        about: "What other proxies count.",
        columns: "(
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 6032,
    weight INT CHECK (weight >= 0) NOT NULL DEFAULT 0,
    comment VARCHAR NOT NULL DEFAULT '',
    response_time_ms INT NOT NULL,
    Uptime_s INT NOT NULL,
    last_check_ms INT NOT NULL,
    Queries INT NOT NULL,
    Client_Connections_connected INT NOT NULL,
    Client_Connections_created INT NOT NULL,
    PRIMARY KEY (hostname, port) )",
        kind: Kind::Observed {
            observe: Observe::PeerMetrics,
            reset: false,
        },
    },
    Table {
        name: "stats_proxysql_servers_status",
        about: "Whether other proxies answer.",
        columns: "(
    hostname VARCHAR NOT NULL,
    port INT NOT NULL DEFAULT 6032,
    weight INT CHECK (weight >= 0) NOT NULL DEFAULT 0,
    master VARCHAR NOT NULL,
    global_version INT NOT NULL,
    check_age_us INT NOT NULL,
    ping_time_us INT NOT NULL, checks_OK INT NOT NULL,
    checks_ERR INT NOT NULL,
    PRIMARY KEY (hostname, port) )",
        kind: Kind::Observed {
            observe: Observe::PeerStatus,
            reset: false,
        },
    },
];
