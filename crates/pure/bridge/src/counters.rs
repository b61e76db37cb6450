//! Every counter of a core, declared once: its name in `stats_mysql_global` and its metric.

use crate::metric::{Kind, Metric};

macro_rules! counters {
    ($($name:ident, $shown:literal, $kind:ident $metric:literal, $about:literal;)*) => {
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

            /// Metric that shows it.
            #[must_use]
            pub const fn metric(self) -> Metric {
                match self { $(Self::$name => Metric { kind: Kind::$kind, name: $metric, help: $about }),* }
            }
        }
    };
}

counters! {
    ActiveTransactions, "Active_Transactions", Gauge "proxysql_active_transactions", "Sessions with an open transaction, as of the end of their last command.";
    ClientConnectionsAborted, "Client_Connections_aborted", Total r#"proxysql_client_connections_total{status="aborted"}"#, "Clients that failed to log in or left without COM_QUIT.";
    ClientConnectionsLost, "Client_Connections_lost", Total "millrace_client_connections_lost_total", "Sessions that were closed because a transaction or other state of theirs went with a connection to a server.";
    ClientConnectionsConnected, "Client_Connections_connected", Gauge "proxysql_client_connections_connected", "Clients connected now.";
    ClientConnectionsCreated, "Client_Connections_created", Total r#"proxysql_client_connections_total{status="created"}"#, "Clients accepted.";
    ClientConnectionsNonIdle, "Client_Connections_non_idle", Gauge "proxysql_client_connections_non_idle", "Clients with a command running now.";
    ClientConnectionsLocked, "Client_Connections_hostgroup_locked", Gauge "proxysql_client_connections_hostgroup_locked", "Clients whose state binds all their statements to their user's own hostgroup, as of the end of their last command.";
    SessionsMoved, "Millrace_sessions_moved", Total "millrace_sessions_moved_total", "Sessions that went on in another process, which has taken over from this one.";
    SessionsSettled, "Millrace_sessions_settled", Total "millrace_sessions_settled_total", "Sessions that came from the process that this one has taken over from.";
    ClientsHandedOver, "Millrace_clients_handed_over", Total "millrace_clients_handed_over_total", "Clients that were accepted by one core and are served by another, which had fewer.";
    ClientConnectionsForwarded, "Millrace_fast_forward_sessions", Gauge "millrace_fast_forward_sessions", "Clients whose bytes go to a server of their own unseen now.";
    ServerConnectionsAborted, "Server_Connections_aborted", Total r#"proxysql_server_connections_total{status="aborted"}"#, "Connections to servers that failed or broke.";
    ServerConnectionsConnected, "Server_Connections_connected", Gauge "proxysql_server_connections_connected", "Connections to servers now.";
    ServerConnectionsCreated, "Server_Connections_created", Total r#"proxysql_server_connections_total{status="created"}"#, "Connections to servers opened.";
    ConnectionsOpenedAhead, "Millrace_connections_opened_ahead", Total "millrace_connections_opened_ahead_total", "Connections to servers that were opened before somebody asked for them.";
    ServerConnectionsDelayed, "Server_Connections_delayed", Total r#"proxysql_server_connections_total{status="delayed"}"#, "Commands that had to wait for a connection.";
    ServerConnectionsLent, "Millrace_server_connections_lent", Total "millrace_server_connections_lent_total", "Idle connections to servers that one core sent to another, which needed one.";
    LanesOpened, "Millrace_lanes_opened", Total "millrace_lanes_opened_total", "Connections to servers that began to be shared by statements in flight, where hostgroup_settings.pipelining allows it.";
    StatementsInLanes, "Millrace_statements_pipelined", Total "millrace_statements_pipelined_total", "Statements that were answered over such a connection.";
    StatementsWaitedForLane, "Millrace_statements_waited_for_pipeline", Total "millrace_statements_waited_for_pipeline_total", "Statements that joined one which had as many in flight as may be, and were sent when it had answered some.";
    StatementsLeftLane, "Millrace_statements_left_pipeline", Total "millrace_statements_left_pipeline_total", "Statements that had joined such a connection and were asked again alone.";
    ComAutocommit, "Com_autocommit", Total "proxysql_com_autocommit_total", "SET statements received that begin with autocommit.";
    ComAutocommitFiltered, "Com_autocommit_filtered", Total "proxysql_com_autocommit_filtered_total", "Those of them that were answered without a server.";
    ComCommit, "Com_commit", Total "proxysql_com_commit_cnt_total", "COMMIT received.";
    ComCommitFiltered, "Com_commit_filtered", Total "proxysql_com_commit_cnt_filtered_total", "COMMIT answered without a server.";
    ComRollback, "Com_rollback", Total "proxysql_com_rollback_total", "ROLLBACK received.";
    ComRollbackFiltered, "Com_rollback_filtered", Total "proxysql_com_rollback_filtered_total", "ROLLBACK answered without a server.";
    ComBackendChangeUser, "Com_backend_change_user", Total "proxysql_com_backend_change_user_total", "COM_CHANGE_USER or COM_RESET_CONNECTION sent to servers.";
    ComBackendInitDb, "Com_backend_init_db", Total "proxysql_com_backend_init_db_total", "COM_INIT_DB sent to servers.";
    ComBackendSetNames, "Com_backend_set_names", Total "proxysql_com_backend_set_names_total", "SET statements sent to servers to bring a session's state there.";
    ComFrontendInitDb, "Com_frontend_init_db", Total "proxysql_com_frontend_init_db_total", "COM_INIT_DB received.";
    ComFrontendSetNames, "Com_frontend_set_names", Total "proxysql_com_frontend_set_names_total", "SET NAMES and SET CHARACTER SET received.";
    ComFrontendUseDb, "Com_frontend_use_db", Total "proxysql_com_frontend_use_db_total", "USE received as a statement.";
    ComBackendStmtPrepare, "Com_backend_stmt_prepare", Total r#"proxysql_com_backend_stmt_total{op="prepare"}"#, "COM_STMT_PREPARE sent to servers.";
    ComBackendStmtExecute, "Com_backend_stmt_execute", Total r#"proxysql_com_backend_stmt_total{op="execute"}"#, "COM_STMT_EXECUTE sent to servers.";
    ComBackendStmtClose, "Com_backend_stmt_close", Total r#"proxysql_com_backend_stmt_total{op="close"}"#, "COM_STMT_CLOSE sent to servers.";
    ComFrontendStmtPrepare, "Com_frontend_stmt_prepare", Total r#"proxysql_com_frontend_stmt_total{op="prepare"}"#, "COM_STMT_PREPARE received.";
    ComFrontendStmtExecute, "Com_frontend_stmt_execute", Total r#"proxysql_com_frontend_stmt_total{op="execute"}"#, "COM_STMT_EXECUTE received.";
    ComFrontendStmtClose, "Com_frontend_stmt_close", Total r#"proxysql_com_frontend_stmt_total{op="close"}"#, "COM_STMT_CLOSE received.";
    Questions, "Questions", Total "proxysql_questions_total", "Statements received.";
    SlowQueries, "Slow_queries", Total "proxysql_slow_queries_total", "Statements slower than mysql-long_query_time.";
    QueriesBackendsBytesRecv, "Queries_backends_bytes_recv", Total r#"proxysql_queries_backends_bytes_total{traffic_flow="received"}"#, "Bytes received from servers.";
    QueriesBackendsBytesSent, "Queries_backends_bytes_sent", Total r#"proxysql_queries_backends_bytes_total{traffic_flow="sent"}"#, "Bytes sent to servers.";
    QueriesFrontendsBytesRecv, "Queries_frontends_bytes_recv", Total r#"proxysql_queries_frontends_bytes_total{traffic_flow="received"}"#, "Bytes received from clients.";
    QueriesFrontendsBytesSent, "Queries_frontends_bytes_sent", Total r#"proxysql_queries_frontends_bytes_total{traffic_flow="sent"}"#, "Bytes sent to clients.";
    QueryProcessorTimeNsec, "Query_Processor_time_nsec", Nanoseconds "proxysql_query_processor_time_seconds_total", "Nanoseconds spent deciding, while mysql-stats_time_query_processor is on.";
    BackendQueryTimeNsec, "Backend_query_time_nsec", Nanoseconds "proxysql_backend_query_time_seconds_total", "Nanoseconds between sending a statement and the end of its answer, while mysql-stats_time_backend_query is on.";
    ConnPoolGetConnImmediate, "ConnPool_get_conn_immediate", Total "proxysql_connpool_get_conn_success_immediate_total", "Connections taken from the pool at once.";
    ConnPoolGetConnSuccess, "ConnPool_get_conn_success", Total "proxysql_connpool_get_conn_success_total", "Connections obtained.";
    ConnPoolGetConnFailure, "ConnPool_get_conn_failure", Total "proxysql_connpool_get_conn_failure_total", "Connections asked for in vain.";
    KilledBackendConnections, "mysql_killed_backend_connections", Total "proxysql_mysql_killed_backend_connections_total", "Connections to servers closed because their answer was not wanted any more.";
    KilledBackendQueries, "mysql_killed_backend_queries", Total "proxysql_mysql_killed_backend_queries_total", "KILL QUERYs sent to servers: somebody ended a statement of a session that goes on.";
    BackendOfflineDuringQuery, "backend_offline_during_query", Total "proxysql_backend_offline_during_query_total", "Statements cut off because their server became OFFLINE_HARD or was removed.";
    WarningsKept, "Millrace_warnings_kept", Total "millrace_warnings_kept_total", "Times that a server was asked for the warnings of a statement, so that its connection could be given back.";
    KillsSent, "Millrace_kills_sent", Total "millrace_kills_sent_total", "KILLs sent to servers: a client had left, or somebody ended its statement.";
    UnexpectedFrontendPackets, "mysql_unexpected_frontend_packets", Total "proxysql_mysql_unexpected_frontend_packets_total", "Packets from clients that made no sense.";
    MaxConnectTimeouts, "max_connect_timeouts", Total "proxysql_max_connect_timeouts_total", "Statements that waited mysql-connect_timeout_server_max for a connection.";
    GeneratedErrorPackets, "generated_error_packets", Total "proxysql_generated_error_packets_total", "Errors made by the proxy.";
    AccessDeniedWrongPassword, "Access_Denied_Wrong_Password", Total "proxysql_access_denied_wrong_password_total", "Logins with a wrong user or password.";
    ClientHostErrorKilledConnections, "client_host_error_killed_connections", Total "proxysql_client_host_error_killed_connections", "Clients turned away because of mysql-client_host_error_counts.";
    AccessDeniedMaxConnections, "Access_Denied_Max_Connections", Total "proxysql_access_denied_max_connections_total", "Logins refused by mysql-max_connections.";
    AccessDeniedMaxUserConnections, "Access_Denied_Max_User_Connections", Total "proxysql_access_denied_max_user_connections_total", "Logins refused by mysql_users.max_connections.";
    MyhgmPoolGet, "MyHGM_myconnpoll_get", Total "proxysql_myhgm_myconnpool_get_total", "Connections asked from the pool.";
    MyhgmPoolGetOk, "MyHGM_myconnpoll_get_ok", Total "proxysql_myhgm_myconnpool_get_ok_total", "Connections the pool gave.";
    MyhgmPoolGetPing, "MyHGM_myconnpoll_get_ping", Total "proxysql_myhgm_myconnpool_get_ping_total", "Idle connections that were pinged.";
    MyhgmPoolPush, "MyHGM_myconnpoll_push", Total "proxysql_myhgm_myconnpool_push_total", "Connections given back to the pool.";
    MyhgmPoolReset, "MyHGM_myconnpoll_reset", Total "proxysql_myhgm_myconnpool_reset_total", "Connections reset before they were given back.";
    MyhgmPoolDestroy, "MyHGM_myconnpoll_destroy", Total "proxysql_myhgm_myconnpool_destroy_total", "Connections closed instead of given back.";
    StmtClientActiveTotal, "Stmt_Client_Active_Total", Gauge "proxysql_stmt_client_active_total", "Statements prepared by clients now.";
    StmtServerActiveTotal, "Stmt_Server_Active_Total", Gauge "proxysql_stmt_server_active_total", "Statements prepared on connections to servers now.";
    StmtClientActiveUnique, "Stmt_Client_Active_Unique", Gauge "proxysql_stmt_client_active_unique", "Distinct statements that some client has prepared now, summed over the cores.";
    StmtServerActiveUnique, "Stmt_Server_Active_Unique", Gauge "proxysql_stmt_server_active_unique", "Distinct statements that some connection to a server knows now, summed over the cores.";
    StmtCached, "Stmt_Cached", Gauge "proxysql_stmt_cached", "Distinct prepared statements that are kept now, summed over the cores.";
    StatementsCrowded, "Millrace_stmt_limits_met", Total "millrace_stmt_limits_met_total", "Times that a server had no room for another prepared statement, and what nobody used there was closed.";
    QueryCacheMemoryBytes, "Query_Cache_Memory_bytes", Gauge "proxysql_query_cache_memory_bytes", "Bytes of results that are kept, and of those being gathered.";
    QueryCacheCountGet, "Query_Cache_count_GET", Total "millrace_query_cache_lookups_total", "Statements looked up in the cache.";
    QueryCacheCountGetOk, "Query_Cache_count_GET_OK", Total r#"proxysql_query_cache_count_get_total{status="ok"}"#, "Statements answered from the cache.";
    QueryCacheCountSet, "Query_Cache_count_SET", Total "proxysql_query_cache_count_set_total", "Results put into the cache.";
    QueryCacheBytesIn, "Query_Cache_bytes_IN", Total r#"proxysql_query_cache_bytes_total{op="written"}"#, "Bytes of results put into the cache.";
    QueryCacheBytesOut, "Query_Cache_bytes_OUT", Total r#"proxysql_query_cache_bytes_total{op="read"}"#, "Bytes of answers from the cache.";
    QueryCachePurged, "Query_Cache_Purged", Total "proxysql_query_cache_purged_total", "Results dropped from the cache: for room, for age, for a write, or by an operator.";
    QueryCacheEntries, "Query_Cache_Entries", Gauge "proxysql_query_cache_entries_total", "Results in the cache.";
    QueryCacheWaited, "Millrace_query_cache_waited", Total "millrace_query_cache_waited_total", "Statements that waited, as cache_timeout allows, for another session that fetched the same.";
    StatementsRetried, "Millrace_statements_retried", Total "millrace_statements_retried_total", "Statements sent again after their connection broke before the first byte of the answer.";
    StatementsAtOnce, "Millrace_statements_at_once", Total "millrace_statements_at_once_total", "Statements for which an earlier decision held, and whose answer came whole and well: they passed no stage.";
    StatementsShed, "Millrace_statements_shed", Total "millrace_statements_shed_total", "Statements that were sent away because too many waited for their hostgroup, or for too long.";
    StatementsHeldForWriter, "Millrace_statements_held_for_writer", Total "millrace_statements_held_for_writer_total", "Statements that a writer refused because it takes no writes any more, and that waited for the next one.";
    TransactionReplays, "Millrace_transaction_replays", Total "millrace_transaction_replays_total", "Transactions whose server was lost or demoted, or that were the victim of a deadlock, and that were to be replayed.";
    TransactionReplaysSucceeded, "Millrace_transaction_replays_succeeded", Total r#"millrace_transaction_replays_ended_total{how="succeeded"}"#, "Transactions that were replayed and went on.";
    TransactionReplaysDiffered, "Millrace_transaction_replays_differed", Total r#"millrace_transaction_replays_ended_total{how="differed"}"#, "Transactions that were not replayed because a result differed.";
    TransactionReplaysUnfit, "Millrace_transaction_replays_unfit", Total r#"millrace_transaction_replays_ended_total{how="unfit"}"#, "Transactions that were not replayed because of a statement, a state or a table that cannot be repeated.";
    TransactionReplaysTooLarge, "Millrace_transaction_replays_too_large", Total r#"millrace_transaction_replays_ended_total{how="too_large"}"#, "Transactions that were not replayed because they had more bytes than transaction_replay_max_size.";
    TransactionReplaysGaveUp, "Millrace_transaction_replays_gave_up", Total r#"millrace_transaction_replays_ended_total{how="gave_up"}"#, "Transactions that were not replayed because attempts or time were used up, or somebody ended them.";
    TransactionReplaysPartial, "Millrace_transaction_replays_partial", Total r#"millrace_transaction_replays_ended_total{how="partial"}"#, "Transactions that were not replayed because a part of a result was with the client.";
    TransactionReplaysCommits, "Millrace_transaction_replays_commits", Total r#"millrace_transaction_replays_ended_total{how="commit"}"#, "Transactions that were not replayed because the answer to their COMMIT was lost.";
    TransactionReplaysLanded, "Millrace_transaction_replays_landed", Total r#"millrace_transaction_replays_ended_total{how="landed"}"#, "Transactions that were not replayed because the mark of their COMMIT was found: they were committed, and their clients were told so.";
    TransactionMarksMissing, "Millrace_transaction_marks_missing", Total "millrace_transaction_marks_missing_total", "COMMITs that left no mark in the table of transaction_replay_marks, because it is not there or the account may not write to it.";
    ChangesInDoubt, "Millrace_changes_in_doubt", Total "millrace_changes_in_doubt_total", "Changes and COMMITs whose answer was lost with the connection: nobody knows whether they were done, and none is repeated.";
    ScriptCalls, "Millrace_script_calls", Total "millrace_script_calls_total", "Hooks of scripts that were called.";
    ScriptErrors, "Millrace_script_errors", Total "millrace_script_errors_total", "Hooks of scripts that failed.";
    StatementsGathered, "Millrace_statements_gathered", Total "millrace_statements_gathered_total", "Statements whose rows came from several partitions of a sharded table.";
    PartitionChanges, "Millrace_partition_changes", Total "millrace_partition_changes_total", "Statements that changed several partitions of a sharded table, or all copies of a reference table.";
    LookupsAsked, "Millrace_lookups_asked", Total "millrace_lookups_asked_total", "Questions to look-ups of sharded tables.";
    LookupsMissed, "Millrace_lookups_missed", Total "millrace_lookups_missed_total", "Questions to look-ups after which all partitions were asked.";
    LookupsWritten, "Millrace_lookups_written", Total "millrace_lookups_written_total", "Statements that have written entries of look-ups.";
    PartitionTransactions, "Millrace_partition_transactions", Total "millrace_partition_transactions_total", "Transactions that were committed in two phases on several hostgroups.";
    StatementsFellBack, "Millrace_statements_fell_back", Total "millrace_statements_fell_back_total", "Statements that went to the fallback_hostgroup because nobody served where they were going.";
    GtidConsistentQueries, "GTID_consistent_queries", Total "proxysql_gtid_consistent_queries_total", "Statements that were served by a server because it had what their session wrote elsewhere.";
    QueriesOfAnAge, "queries_with_max_lag_ms", Total "proxysql_queries_with_max_lag_total", "Reads with a hint that says how old their rows may be (max_lag_ms, min_epoch_ms), on their way to servers that are known to be so fresh.";
    SelectsForUpdateInAutocommit0, "Selects_for_update__autocommit0", Total "proxysql_selects_for_update__autocommit0_total", "SELECT … FOR UPDATE and FOR SHARE received while autocommit is 0.";
    LockedBySet, "hostgroup_locked_set_cmds", Total "proxysql_hostgroup_locked_set_cmds_total", "SET statements that were not understood, so that their session keeps its connection.";
    KeptForInsertId, "Millrace_kept_for_insert_id", Total "proxysql_myhgm_auto_increment_multiplex_total", "Statements behind which a connection is kept since they made an AUTO_INCREMENT id.";
    GtidSessionCollected, "GTID_session_collected", Total "proxysql_gtid_session_collected_total", "GTIDs that servers told of what sessions wrote.";
    EventsLogged, "Millrace_events_logged", Total "millrace_events_logged_total", "Statements written to the events log.";
    EventsDropped, "Millrace_events_dropped", Total "millrace_events_dropped_total", "Statements that should be in the events log and are not: too many waited for the disk, or it could not be written.";
    TracesSent, "Millrace_traces_sent", Total "millrace_traces_sent_total", "Traced statements that a collector has taken.";
    TracesDropped, "Millrace_traces_dropped", Total "millrace_traces_dropped_total", "Traced statements that no collector has got: too many came, or it does not take them.";
    AuditDropped, "Millrace_audit_dropped", Total "millrace_audit_dropped_total", "Clients that should be in the audit log and are not: too many came, or its disk is slow.";
    DigestsDropped, "Millrace_digests_dropped", Total "millrace_digests_dropped_total", "Statements not recorded because mysql-query_digests_max_entries or mysql-query_digests_max_memory_MB was reached.";
    DigestsBytes, "Millrace_digests_bytes", Gauge "proxysql_query_digest_memory_bytes", "Bytes that the rows of stats_mysql_query_digest take, on all cores, nearly.";
    ErrorsDropped, "Millrace_errors_dropped", Total "millrace_errors_dropped_total", "Errors of servers without a row in stats_mysql_errors, which was full.";
    MirrorConcurrency, "Mirror_concurrency", Gauge "proxysql_mirror_concurrency", "Copies for mirrors that run now.";
    MirrorQueueLength, "Mirror_queue_length", Gauge "proxysql_mirror_queue_lengths", "Copies for mirrors that wait now.";
    MirrorSent, "Millrace_mirror_sent", Total "millrace_mirror_sent_total", "Copies whose answer came from the mirror.";
    MirrorFailed, "Millrace_mirror_failed", Total "millrace_mirror_failed_total", "Copies that the mirror could not be sent, or whose answer did not come.";
    MirrorDropped, "Millrace_mirror_dropped", Total "millrace_mirror_dropped_total", "Copies dropped because too many waited.";
    MirrorLeftOut, "Millrace_mirror_left_out", Total "millrace_mirror_left_out_total", "Statements that were to be copied and mean nothing on another connection.";
    AutomaticDetectedSqlInjection, "automatic_detected_sql_injection", Total "proxysql_automatic_detected_sql_injection_total", "Statements refused because they look like an injection.";
    WhitelistedSqliFingerprint, "whitelisted_sqli_fingerprint", Total "proxysql_whitelisted_sqli_fingerprint_total", "Statements that look like an injection by a fingerprint that is called harmless.";
    FirewallBlocked, "Millrace_firewall_blocked", Total "millrace_firewall_blocked_total", "Statements refused because no rule of the firewall names them.";
    FirewallDetected, "Millrace_firewall_detected", Total "millrace_firewall_detected_total", "Statements let through, though no rule of the firewall names them.";
    FirewallAlarmsDropped, "Millrace_firewall_alarms_dropped", Total "millrace_firewall_alarms_dropped_total", "Alarms without a row in stats_mysql_firewall, which was full.";
    ExpressionsGivenUp, "Millrace_expressions_given_up", Total "millrace_expressions_given_up_total", "Times that an expression of a rule took too many steps for a statement, or for a digest, for which it is remembered.";
    VerdictsDropped, "Millrace_mirror_verdicts_dropped", Total "millrace_mirror_verdicts_dropped_total", "Results of mirrors compared whose verdict has no row in stats_mysql_mirror_digest, which was full.";
    RowsLimited, "Millrace_rows_limited", Total "millrace_rows_limited_total", "Results ended because they had more rows than a rule allows.";
    TasksPanicked, "Millrace_tasks_panicked", Total "millrace_tasks_panicked_total", "Sessions ended by a defect of ours; the others went on.";
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
