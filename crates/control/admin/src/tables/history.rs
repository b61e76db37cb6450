//! Statistics over time, on disk.

use super::table::{Kind, Table};

/// In the order of their names; `_hour` and `_day` are what is left of older samples.
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "history_mysql_query_digest",
        about: "Digests, saved from time to time.",
        columns: "(
    dump_time INT,
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
    sum_rows_sent INTEGER NOT NULL)",
        kind: Kind::History,
    },
    Table {
        name: "history_mysql_status_variables",
        about: "Values of counters.",
        columns: "(
    timestamp INT NOT NULL,
    variable_id INT NOT NULL,
    variable_value VARCHAR NOT NULL,
    PRIMARY KEY (timestamp, variable_id))",
        kind: Kind::History,
    },
    Table {
        name: "history_mysql_status_variables_lookup",
        about: "Names of counters.",
        columns: "(
    variable_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, variable_name VARCHAR NOT NULL, UNIQUE (variable_name))",
        kind: Kind::History,
    },
    Table {
        name: "history_stats_mysql_connection_pool",
        about: "The pool.",
        columns: "(
    timestamp INT NOT NULL,
    hostgroup INT,
    srv_host VARCHAR,
    srv_port INT,
    status VARCHAR,
    ConnUsed INT,
    ConnFree INT,
    ConnOK INT,
    ConnERR INT,
    MaxConnUsed INT,
    Queries INT,
    Queries_GTID_sync INT,
    Bytes_data_sent INT,
    Bytes_data_recv INT,
    Latency_us INT, PRIMARY KEY (timestamp, hostgroup,
    srv_host,
    srv_port))",
        kind: Kind::History,
    },
    Table {
        name: "myhgm_connections",
        about: "Uses of the pool.",
        columns: "(
    timestamp INT NOT NULL, MyHGM_myconnpoll_destroy INT NOT NULL, MyHGM_myconnpoll_get INT NOT NULL, MyHGM_myconnpoll_get_ok INT NOT NULL, MyHGM_myconnpoll_push INT NOT NULL, MyHGM_myconnpoll_reset INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "myhgm_connections_day",
        about: "Uses of the pool. By the day.",
        columns: "(
    timestamp INT NOT NULL, MyHGM_myconnpoll_destroy INT NOT NULL, MyHGM_myconnpoll_get INT NOT NULL, MyHGM_myconnpoll_get_ok INT NOT NULL, MyHGM_myconnpoll_push INT NOT NULL, MyHGM_myconnpoll_reset INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "myhgm_connections_hour",
        about: "Uses of the pool. By the hour.",
        columns: "(
    timestamp INT NOT NULL, MyHGM_myconnpoll_destroy INT NOT NULL, MyHGM_myconnpoll_get INT NOT NULL, MyHGM_myconnpoll_get_ok INT NOT NULL, MyHGM_myconnpoll_push INT NOT NULL, MyHGM_myconnpoll_reset INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "mysql_connections",
        about: "Connections.",
        columns: "(
    timestamp INT NOT NULL, Client_Connections_aborted INT NOT NULL, Client_Connections_connected INT NOT NULL, Client_Connections_created INT NOT NULL, Server_Connections_aborted INT NOT NULL, Server_Connections_connected INT NOT NULL, Server_Connections_created INT NOT NULL, ConnPool_get_conn_failure INT NOT NULL, ConnPool_get_conn_immediate INT NOT NULL, ConnPool_get_conn_success INT NOT NULL, Questions INT NOT NULL, Slow_queries INT NOT NULL, GTID_consistent_queries INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "mysql_connections_day",
        about: "Connections. By the day.",
        columns: "(
    timestamp INT NOT NULL, Client_Connections_aborted INT NOT NULL, Client_Connections_connected INT NOT NULL, Client_Connections_created INT NOT NULL, Server_Connections_aborted INT NOT NULL, Server_Connections_connected INT NOT NULL, Server_Connections_created INT NOT NULL, ConnPool_get_conn_failure INT NOT NULL, ConnPool_get_conn_immediate INT NOT NULL, ConnPool_get_conn_success INT NOT NULL, Questions INT NOT NULL, Slow_queries INT NOT NULL, GTID_consistent_queries INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "mysql_connections_hour",
        about: "Connections. By the hour.",
        columns: "(
    timestamp INT NOT NULL, Client_Connections_aborted INT NOT NULL, Client_Connections_connected INT NOT NULL, Client_Connections_created INT NOT NULL, Server_Connections_aborted INT NOT NULL, Server_Connections_connected INT NOT NULL, Server_Connections_created INT NOT NULL, ConnPool_get_conn_failure INT NOT NULL, ConnPool_get_conn_immediate INT NOT NULL, ConnPool_get_conn_success INT NOT NULL, Questions INT NOT NULL, Slow_queries INT NOT NULL, GTID_consistent_queries INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "mysql_query_cache",
        about: "The cache.",
        columns: "(
    timestamp INT NOT NULL, count_GET INT NOT NULL, count_GET_OK INT NOT NULL, count_SET INT NOT NULL, bytes_IN INT NOT NULL, bytes_OUT INT NOT NULL, Entries_Purged INT NOT NULL, Entries_In_Cache INT NOT NULL, Memory_Bytes INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "mysql_query_cache_day",
        about: "The cache. By the day.",
        columns: "(
    timestamp INT NOT NULL, count_GET INT NOT NULL, count_GET_OK INT NOT NULL, count_SET INT NOT NULL, bytes_IN INT NOT NULL, bytes_OUT INT NOT NULL, Entries_Purged INT NOT NULL, Entries_In_Cache INT NOT NULL, Memory_Bytes INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "mysql_query_cache_hour",
        about: "The cache. By the hour.",
        columns: "(
    timestamp INT NOT NULL, count_GET INT NOT NULL, count_GET_OK INT NOT NULL, count_SET INT NOT NULL, bytes_IN INT NOT NULL, bytes_OUT INT NOT NULL, Entries_Purged INT NOT NULL, Entries_In_Cache INT NOT NULL, Memory_Bytes INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "system_cpu",
        about: "Processor time.",
        columns: "(
    timestamp INT NOT NULL, tms_utime INT NOT NULL, tms_stime INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "system_cpu_day",
        about: "Processor time. By the day.",
        columns: "(
    timestamp INT NOT NULL, tms_utime INT NOT NULL, tms_stime INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "system_cpu_hour",
        about: "Processor time. By the hour.",
        columns: "(
    timestamp INT NOT NULL, tms_utime INT NOT NULL, tms_stime INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "system_memory",
        about: "Memory.",
        columns: "(
    timestamp INT NOT NULL, allocated INT NOT NULL, resident INT NOT NULL, active INT NOT NULL, mapped INT NOT NULL, metadata INT NOT NULL, retained INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "system_memory_day",
        about: "Memory. By the day.",
        columns: "(
    timestamp INT NOT NULL, allocated INT NOT NULL, resident INT NOT NULL, active INT NOT NULL, mapped INT NOT NULL, metadata INT NOT NULL, retained INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
    Table {
        name: "system_memory_hour",
        about: "Memory. By the hour.",
        columns: "(
    timestamp INT NOT NULL, allocated INT NOT NULL, resident INT NOT NULL, active INT NOT NULL, mapped INT NOT NULL, metadata INT NOT NULL, retained INT NOT NULL, PRIMARY KEY (timestamp))",
        kind: Kind::History,
    },
];
