//! Every counter of a core, declared once: its name in `stats_mysql_global` follows from the line.

macro_rules! counters {
    ($($name:ident, $shown:literal, $about:literal;)*) => {
        /// A number that a core counts. Gauges go up and down, the rest only up.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant's words are in `about`")]
        #[repr(usize)]
        pub enum Counter { $($name),* }

        impl Counter {
            /// All, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Name in `stats_mysql_global`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $shown),* }
            }

            /// One sentence.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$name => $about),* }
            }
        }
    };
}

counters! {
    ActiveTransactions, "Active_Transactions", "Sessions with an open transaction, as of the end of their last command.";
    ClientConnectionsAborted, "Client_Connections_aborted", "Clients that failed to log in or left without COM_QUIT.";
    ClientConnectionsLost, "Client_Connections_lost", "Sessions that were closed because a transaction or other state of theirs went with a connection to a server.";
    ClientConnectionsConnected, "Client_Connections_connected", "Clients connected now.";
    ClientConnectionsCreated, "Client_Connections_created", "Clients accepted.";
    ClientConnectionsNonIdle, "Client_Connections_non_idle", "Clients with a command running now.";
    ClientConnectionsLocked, "Client_Connections_hostgroup_locked", "Clients whose state binds all their statements to their user's own hostgroup, as of the end of their last command.";
    ClientsHandedOver, "Millrace_clients_handed_over", "Clients that were accepted by one core and are served by another, which had fewer.";
    ClientConnectionsForwarded, "Millrace_fast_forward_sessions", "Clients whose bytes go to a server of their own unseen now.";
    ServerConnectionsAborted, "Server_Connections_aborted", "Connections to servers that failed or broke.";
    ServerConnectionsConnected, "Server_Connections_connected", "Connections to servers now.";
    ServerConnectionsCreated, "Server_Connections_created", "Connections to servers opened.";
    ConnectionsOpenedAhead, "Millrace_connections_opened_ahead", "Connections to servers that were opened before somebody asked for them.";
    ServerConnectionsDelayed, "Server_Connections_delayed", "Commands that had to wait for a connection.";
    ServerConnectionsLent, "Millrace_server_connections_lent", "Idle connections to servers that one core sent to another, which needed one.";
    LanesOpened, "Millrace_lanes_opened", "Connections to servers that began to be shared by statements in flight, where hostgroup_settings.pipelining allows it.";
    StatementsInLanes, "Millrace_statements_pipelined", "Statements that were answered over such a connection.";
    StatementsWaitedForLane, "Millrace_statements_waited_for_pipeline", "Statements that joined one which had as many in flight as may be, and were sent when it had answered some.";
    StatementsLeftLane, "Millrace_statements_left_pipeline", "Statements that had joined such a connection and were asked again alone.";
    ComAutocommit, "Com_autocommit", "SET statements received that begin with autocommit.";
    ComAutocommitFiltered, "Com_autocommit_filtered", "Those of them that were answered without a server.";
    ComCommit, "Com_commit", "COMMIT received.";
    ComCommitFiltered, "Com_commit_filtered", "COMMIT answered without a server.";
    ComRollback, "Com_rollback", "ROLLBACK received.";
    ComRollbackFiltered, "Com_rollback_filtered", "ROLLBACK answered without a server.";
    ComBackendChangeUser, "Com_backend_change_user", "COM_CHANGE_USER or COM_RESET_CONNECTION sent to servers.";
    ComBackendInitDb, "Com_backend_init_db", "COM_INIT_DB sent to servers.";
    ComBackendSetNames, "Com_backend_set_names", "SET statements sent to servers to bring a session's state there.";
    ComFrontendInitDb, "Com_frontend_init_db", "COM_INIT_DB received.";
    ComFrontendSetNames, "Com_frontend_set_names", "SET NAMES and SET CHARACTER SET received.";
    ComFrontendUseDb, "Com_frontend_use_db", "USE received as a statement.";
    ComBackendStmtPrepare, "Com_backend_stmt_prepare", "COM_STMT_PREPARE sent to servers.";
    ComBackendStmtExecute, "Com_backend_stmt_execute", "COM_STMT_EXECUTE sent to servers.";
    ComBackendStmtClose, "Com_backend_stmt_close", "COM_STMT_CLOSE sent to servers.";
    ComFrontendStmtPrepare, "Com_frontend_stmt_prepare", "COM_STMT_PREPARE received.";
    ComFrontendStmtExecute, "Com_frontend_stmt_execute", "COM_STMT_EXECUTE received.";
    ComFrontendStmtClose, "Com_frontend_stmt_close", "COM_STMT_CLOSE received.";
    Questions, "Questions", "Statements received.";
    SlowQueries, "Slow_queries", "Statements slower than mysql-long_query_time.";
    QueriesBackendsBytesRecv, "Queries_backends_bytes_recv", "Bytes received from servers.";
    QueriesBackendsBytesSent, "Queries_backends_bytes_sent", "Bytes sent to servers.";
    QueriesFrontendsBytesRecv, "Queries_frontends_bytes_recv", "Bytes received from clients.";
    QueriesFrontendsBytesSent, "Queries_frontends_bytes_sent", "Bytes sent to clients.";
    QueryProcessorTimeNsec, "Query_Processor_time_nsec", "Nanoseconds spent deciding, while mysql-stats_time_query_processor is on.";
    BackendQueryTimeNsec, "Backend_query_time_nsec", "Nanoseconds between sending a statement and the end of its answer, while mysql-stats_time_backend_query is on.";
    ConnPoolGetConnImmediate, "ConnPool_get_conn_immediate", "Connections taken from the pool at once.";
    ConnPoolGetConnSuccess, "ConnPool_get_conn_success", "Connections obtained.";
    ConnPoolGetConnFailure, "ConnPool_get_conn_failure", "Connections asked for in vain.";
    KilledBackendConnections, "mysql_killed_backend_connections", "Connections to servers closed because their answer was not wanted any more.";
    KilledBackendQueries, "mysql_killed_backend_queries", "KILL QUERYs sent to servers: somebody ended a statement of a session that goes on.";
    BackendOfflineDuringQuery, "backend_offline_during_query", "Statements cut off because their server became OFFLINE_HARD or was removed.";
    WarningsKept, "Millrace_warnings_kept", "Times that a server was asked for the warnings of a statement, so that its connection could be given back.";
    KillsSent, "Millrace_kills_sent", "KILLs sent to servers: a client had left, or somebody ended its statement.";
    UnexpectedFrontendPackets, "mysql_unexpected_frontend_packets", "Packets from clients that made no sense.";
    MaxConnectTimeouts, "max_connect_timeouts", "Statements that waited mysql-connect_timeout_server_max for a connection.";
    GeneratedErrorPackets, "generated_error_packets", "Errors made by the proxy.";
    AccessDeniedWrongPassword, "Access_Denied_Wrong_Password", "Logins with a wrong user or password.";
    ClientHostErrorKilledConnections, "client_host_error_killed_connections", "Clients turned away because of mysql-client_host_error_counts.";
    AccessDeniedMaxConnections, "Access_Denied_Max_Connections", "Logins refused by mysql-max_connections.";
    AccessDeniedMaxUserConnections, "Access_Denied_Max_User_Connections", "Logins refused by mysql_users.max_connections.";
    MyhgmPoolGet, "MyHGM_myconnpoll_get", "Connections asked from the pool.";
    MyhgmPoolGetOk, "MyHGM_myconnpoll_get_ok", "Connections the pool gave.";
    MyhgmPoolGetPing, "MyHGM_myconnpoll_get_ping", "Idle connections that were pinged.";
    MyhgmPoolPush, "MyHGM_myconnpoll_push", "Connections given back to the pool.";
    MyhgmPoolReset, "MyHGM_myconnpoll_reset", "Connections reset before they were given back.";
    MyhgmPoolDestroy, "MyHGM_myconnpoll_destroy", "Connections closed instead of given back.";
    StmtClientActiveTotal, "Stmt_Client_Active_Total", "Statements prepared by clients now.";
    StmtServerActiveTotal, "Stmt_Server_Active_Total", "Statements prepared on connections to servers now.";
    StmtClientActiveUnique, "Stmt_Client_Active_Unique", "Distinct statements that some client has prepared now, summed over the cores.";
    StmtServerActiveUnique, "Stmt_Server_Active_Unique", "Distinct statements that some connection to a server knows now, summed over the cores.";
    StmtCached, "Stmt_Cached", "Distinct prepared statements that are kept now, summed over the cores.";
    QueryCacheMemoryBytes, "Query_Cache_Memory_bytes", "Bytes of results that are kept, and of those being gathered.";
    QueryCacheCountGet, "Query_Cache_count_GET", "Statements looked up in the cache.";
    QueryCacheCountGetOk, "Query_Cache_count_GET_OK", "Statements answered from the cache.";
    QueryCacheCountSet, "Query_Cache_count_SET", "Results put into the cache.";
    QueryCacheBytesIn, "Query_Cache_bytes_IN", "Bytes of results put into the cache.";
    QueryCacheBytesOut, "Query_Cache_bytes_OUT", "Bytes of answers from the cache.";
    QueryCachePurged, "Query_Cache_Purged", "Results dropped from the cache: for room, for age, for a write, or by an operator.";
    QueryCacheEntries, "Query_Cache_Entries", "Results in the cache.";
    QueryCacheWaited, "Millrace_query_cache_waited", "Statements that waited, as cache_timeout allows, for another session that fetched the same.";
    StatementsRetried, "Millrace_statements_retried", "Statements sent again after their connection broke before the first byte of the answer.";
    EventsLogged, "Millrace_events_logged", "Statements written to the events log.";
    EventsDropped, "Millrace_events_dropped", "Statements that should be in the events log and are not: too many waited for the disk, or it could not be written.";
    DigestsDropped, "Millrace_digests_dropped", "Statements not recorded because mysql-query_digests_max_entries or mysql-query_digests_max_memory_MB was reached.";
    DigestsBytes, "Millrace_digests_bytes", "Bytes that the rows of stats_mysql_query_digest take, on all cores, nearly.";
    ErrorsDropped, "Millrace_errors_dropped", "Errors of servers without a row in stats_mysql_errors, which was full.";
    MirrorConcurrency, "Mirror_concurrency", "Copies for mirrors that run now.";
    MirrorQueueLength, "Mirror_queue_length", "Copies for mirrors that wait now.";
    MirrorSent, "Millrace_mirror_sent", "Copies whose answer came from the mirror.";
    MirrorFailed, "Millrace_mirror_failed", "Copies that the mirror could not be sent, or whose answer did not come.";
    MirrorDropped, "Millrace_mirror_dropped", "Copies dropped because too many waited.";
    MirrorLeftOut, "Millrace_mirror_left_out", "Statements that were to be copied and mean nothing on another connection.";
    AutomaticDetectedSqlInjection, "automatic_detected_sql_injection", "Statements refused because they look like an injection.";
    WhitelistedSqliFingerprint, "whitelisted_sqli_fingerprint", "Statements that look like an injection by a fingerprint that is called harmless.";
    FirewallBlocked, "Millrace_firewall_blocked", "Statements refused because no rule of the firewall names them.";
    FirewallDetected, "Millrace_firewall_detected", "Statements let through, though no rule of the firewall names them.";
    FirewallAlarmsDropped, "Millrace_firewall_alarms_dropped", "Alarms without a row in stats_mysql_firewall, which was full.";
    ExpressionsGivenUp, "Millrace_expressions_given_up", "Times that an expression of a rule took too many steps for a statement, or for a digest, for which it is remembered.";
    VerdictsDropped, "Millrace_mirror_verdicts_dropped", "Results of mirrors compared whose verdict has no row in stats_mysql_mirror_digest, which was full.";
    RowsLimited, "Millrace_rows_limited", "Results ended because they had more rows than a rule allows.";
    TasksPanicked, "Millrace_tasks_panicked", "Sessions ended by a defect of ours; the others went on.";
}

/// A value for every counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(Box<[u64]>);

impl Counts {
    /// All zero.
    #[must_use]
    pub fn zero() -> Self {
        Self(vec![0; Counter::ALL.len()].into_boxed_slice())
    }

    /// The value of one.
    #[must_use]
    pub fn value(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Set one.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.0[counter as usize] = value;
    }

    /// Add another core's values. Gauges of single cores may be negative there and wrap; the sum is
    /// right.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine = mine.wrapping_add(*theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_sums_are_sums() {
        let mut names: Vec<_> = Counter::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Counter::ALL.len());
        let mut a = Counts::zero();
        a.set(Counter::Questions, 2);
        let mut b = Counts::zero();
        b.set(Counter::Questions, 3);
        a.add(&b);
        assert_eq!(a.value(Counter::Questions), 5);
    }
}
