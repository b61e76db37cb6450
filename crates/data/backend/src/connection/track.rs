//! The server's own account of what changes in a session: asked for where programs may run, which
//! change what no text tells, and not where somebody would see that it was asked for.
//!
//! <https://dev.mysql.com/doc/refman/8.4/en/session-state-tracking.html>. What it covers on real
//! servers is in docs/decisions/0020-what-servers-track.md.

use crate::connection::ask::{Answer, INTERRUPTED, without_zeros};
use crate::connection::backend::Backend;
use crate::connection::lease::Unreported;
use crate::failure::BackendFailed;
use crate::servers::said::{Told, Tracks};
use crate::session::hold::Hold;
use crate::session::need::{Need, Ways};
use crate::session::state::State;
use crate::session::variables::{DEFAULT, TOLD, TRANSACTIONS};
use crate::session::want::Tracking;
use std::fmt::Write as _;
use std::sync::Arc;
use wire::caps;
use wire::response::{Expect, Response};
use wire::track::Wish;

/// Variables of a session in MySQL 5.7 to 9.7. MySQL has a `*`, which tells of `statement_id` after
/// every statement; names that a server does not know it passes over.
#[rustfmt::skip]
const OF_MYSQL: &str = "auto_increment_increment,auto_increment_offset,autocommit,big_tables,binlog_direct_non_transactional_updates,\
binlog_format,binlog_row_image,binlog_row_value_options,binlog_rows_query_log_events,block_encryption_mode,bulk_insert_buffer_size,\
character_set_client,character_set_connection,character_set_database,character_set_filesystem,character_set_results,\
character_set_server,collation_connection,collation_database,collation_server,completion_type,connection_memory_limit,\
cte_max_recursion_depth,default_collation_for_utf8mb4,default_storage_engine,default_table_encryption,default_tmp_storage_engine,\
default_week_format,div_precision_increment,end_markers_in_json,eq_range_index_dive_limit,explain_format,\
explicit_defaults_for_timestamp,foreign_key_checks,generated_random_password_length,group_concat_max_len,\
group_replication_consistency,gtid_next,information_schema_stats_expiry,innodb_ddl_buffer_size,innodb_ddl_threads,\
innodb_ft_enable_stopword,innodb_ft_user_stopword_table,innodb_lock_wait_timeout,innodb_parallel_read_threads,innodb_strict_mode,\
innodb_table_locks,innodb_tmpdir,interactive_timeout,internal_tmp_mem_storage_engine,join_buffer_size,keep_files_on_create,\
lc_messages,lc_time_names,lock_wait_timeout,long_query_time,low_priority_updates,max_delayed_threads,max_error_count,\
max_execution_time,max_heap_table_size,max_insert_delayed_threads,max_join_size,max_length_for_sort_data,max_points_in_geometry,\
max_seeks_for_key,max_sort_length,max_sp_recursion_depth,max_statement_time,min_examined_row_limit,myisam_sort_buffer_size,\
myisam_stats_method,net_read_timeout,net_retry_count,net_write_timeout,old_alter_table,old_passwords,optimizer_prune_level,\
optimizer_search_depth,optimizer_switch,optimizer_trace,optimizer_trace_features,optimizer_trace_limit,\
optimizer_trace_max_mem_size,optimizer_trace_offset,parser_max_mem_size,preload_buffer_size,print_identified_with_as_hex,profiling,\
profiling_history_size,query_alloc_block_size,query_cache_type,query_cache_wlock_invalidate,query_prealloc_size,\
range_alloc_block_size,range_optimizer_max_mem_size,rbr_exec_mode,read_buffer_size,read_rnd_buffer_size,require_row_format,\
restrict_fk_on_non_standard_key,resultset_metadata,secondary_engine_cost_threshold,select_into_buffer_size,select_into_disk_sync,\
select_into_disk_sync_delay,session_track_gtids,set_operations_buffer_size,show_create_table_verbosity,\
show_gipk_in_create_table_and_information_schema,sort_buffer_size,sql_auto_is_null,sql_big_selects,sql_buffer_result,\
sql_generate_invisible_primary_key,sql_log_bin,sql_log_off,sql_mode,sql_notes,sql_quote_show_create,sql_require_primary_key,\
sql_safe_updates,sql_select_limit,sql_warnings,terminology_use_previous,time_zone,timestamp,tmp_table_size,\
transaction_alloc_block_size,transaction_isolation,transaction_prealloc_size,transaction_read_only,tx_isolation,tx_read_only,\
unique_checks,updatable_views_with_limit,use_secondary_engine,wait_timeout,windowing_use_high_precision,xa_detach_on_prepare";

/// An old server.
const UNKNOWN_VARIABLE: u16 = 1193;
const WRONG_VALUE: u16 = 1231;

/// MariaDB says what it has not said yet only in the answer to a statement that itself changes
/// something that is tracked.
const HEAR: &[u8] = b"SET session_track_schema=1";
/// MySQL says it in any, and would call that SET a change of its own.
const HEAR_MYSQL: &[u8] = b"DO 0";
const TURN_OFF: &str = "SET session_track_system_variables=DEFAULT, session_track_schema=DEFAULT, session_track_state_change=DEFAULT";

/// Of transactions, by which statements the next one would be begun.
const TELL_OF_TRANSACTIONS: &str = "session_track_transaction_info='CHARACTERISTICS'";

impl Backend {
    /// Returns what clients of this connection are told of all that the server was made to tell of
    /// their state: `None` for everything.
    pub(crate) fn wish_of_tracking(&self) -> Option<Arc<Wish>> {
        let told = self.lasting.tracking.as_ref()?;
        let said = TOLD.map(|name| self.state.variable(name).filter(|value| *value != DEFAULT));
        let ours = told
            .without_transactions
            .as_ref()
            .filter(|_| self.lasting.told_of_transactions);
        let by_default = ours.map_or(&told.by_default, |[without, with]| {
            if self.local.programs.begun {
                with
            } else {
                without
            }
        });
        if said.iter().all(Option::is_none) {
            return Some(by_default.clone());
        }
        let [variables, schema, state] = said;
        Some(Arc::new(by_default.with(
            variables.map(listed),
            schema.map(is_on),
            state.map(is_on),
        )))
    }

    /// Who wants to be told more than we have a server tell has a connection on which we have asked
    /// for nothing.
    pub(crate) fn tracking_for(&self, want: &State, tracking: Tracking) -> Tracking {
        let Some(wanted) = want
            .variable(TOLD[0])
            .filter(|value| *value != DEFAULT)
            .map(listed)
        else {
            return tracking;
        };
        let tells = |told: &str| {
            let has = |name: &str| {
                name.is_empty()
                    || told
                        .split(',')
                        .any(|known| known.eq_ignore_ascii_case(name))
            };
            told == "*" || wanted.split(',').map(str::trim).all(has)
        };
        let enough = match (&self.lasting.tracking, &*self.place.tracks.borrow()) {
            (Some(told), _) | (None, Tracks::As(told)) => tells(&told.names),
            (None, Tracks::Unknown) => self.hello.is_mariadb() || tells(OF_MYSQL),
            (None, Tracks::Not) => true,
        };
        if enough { tracking } else { Tracking::Off }
    }

    /// Returns the ways of this connection while its tracking is so.
    pub(crate) fn ways_for(&self, tracking: Tracking) -> Ways {
        Ways {
            tells_all: self.tells_all() && tracking != Tracking::Off,
            ..self.lasting.ways
        }
    }

    /// Whether its server is one that could tell.
    #[must_use]
    pub fn could_tell(&self) -> bool {
        self.may_track()
    }

    /// A statement has failed, and its server, if it tells, has this to tell with the next answer.
    pub fn has_failed(&mut self, unreported: Unreported) {
        if self.tells_all() {
            self.local.unreported = self.local.unreported.max(unreported);
        }
    }

    /// Adds to the need of a statement what its tracking takes.
    pub(crate) fn with_tracking(&self, need: Need, tracking: Tracking) -> Need {
        let turn = match tracking {
            Tracking::On => self.lasting.tracking.is_none() && self.may_track(),
            Tracking::Calls => {
                (self.lasting.tracking.is_none() || self.lacks_transactions()) && self.may_track()
            }
            Tracking::Off => self.lasting.tracking.is_some(),
            Tracking::Any => false,
        };
        match need {
            Need::Nothing if turn => Need::Steps {
                sets: Vec::new(),
                schema: false,
            },
            other => other,
        }
    }

    fn may_track(&self) -> bool {
        caps::has(self.hello.caps, caps::SESSION_TRACK)
            && !matches!(*self.place.tracks.borrow(), Tracks::Not)
    }

    /// Whether it is to be asked for what it tells of transactions, too.
    fn lacks_transactions(&self) -> bool {
        let could = || match &*self.place.tracks.borrow() {
            Tracks::As(told) => told.without_transactions.is_some(),
            Tracks::Unknown | Tracks::Not => false,
        };
        !self.lasting.told_of_transactions && self.may_say_what_is_left() && could()
    }

    /// The statement of [`Backend::hear`].
    #[must_use]
    pub fn hears_by(&self) -> &'static [u8] {
        if self.hello.is_mariadb() {
            HEAR
        } else {
            HEAR_MYSQL
        }
    }

    /// Has the server say what it has not told because a statement failed: the changes since.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn hear(&mut self) -> Result<Response, BackendFailed> {
        self.local.unreported = Unreported::Nothing;
        // What is said to hear the rest is what FOUND_ROWS() is about from now on.
        self.local.finder = None;
        let mut payload = Vec::new();
        wire::command::write_query(&mut payload, self.hears_by(), self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        if response.is_status_known() {
            self.holds.status(response.status());
        }
        Ok(response)
    }

    /// Has the server tell, or not, as the statement needs it.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn track(&mut self, tracking: Tracking) -> Result<(), BackendFailed> {
        match tracking {
            Tracking::On | Tracking::Calls
                if self.lasting.tracking.is_none() && self.may_track() =>
            {
                self.turn_on(tracking == Tracking::Calls).await
            }
            Tracking::Calls if self.lacks_transactions() => {
                let told = self.ask(&format!("SET {TELL_OF_TRANSACTIONS}")).await?;
                // Refused, it is as with those who do not tell of them.
                self.lasting.told_of_transactions = !matches!(told, Answer::Refused(_));
                self.local.programs.begun = self.holds.has(Hold::Transaction);
                Ok(())
            }
            Tracking::Off if self.lasting.tracking.is_some() => {
                self.lasting.tracking = None;
                TOLD.iter().for_each(|name| self.state.unset(name));
                let ours = std::mem::take(&mut self.lasting.told_of_transactions);
                let also = if ours {
                    format!(", {TRANSACTIONS}=DEFAULT")
                } else {
                    String::new()
                };
                if matches!(
                    self.ask(&format!("{TURN_OFF}{also}")).await?,
                    Answer::Refused(_)
                ) {
                    // What it tells is ours; nobody else shall see it.
                    self.holds.add(Hold::UnknownState);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn turn_on(&mut self, calls: bool) -> Result<(), BackendFailed> {
        let known = self.place.tracks.borrow().clone();
        let told = match known {
            Tracks::Not => return Ok(()),
            Tracks::As(told) => told,
            Tracks::Unknown => {
                let Some(told) = self.ask_for_defaults().await? else {
                    if self.may_track() && !self.holds.has(Hold::Xa) {
                        // It could tell, and has not said how: what the statement changes is not
                        // known.
                        self.holds.add(Hold::UnknownState);
                    }
                    return Ok(());
                };
                let told = Arc::new(told);
                *self.place.tracks.borrow_mut() = Tracks::As(told.clone());
                told
            }
        };
        let transactions = calls && self.lacks_transactions();
        let also = if transactions {
            format!(", {TELL_OF_TRANSACTIONS}")
        } else {
            String::new()
        };
        let turn_on = format!("{}{also}", told.turn_on);
        let mut answer = self.ask(&turn_on).await?;
        if matches!(answer, Answer::Refused(INTERRUPTED)) {
            // A KILL QUERY that was meant for a statement. Untold, what the next one changes would
            // be lost.
            answer = self.ask(&turn_on).await?;
        }
        match answer {
            Answer::Refused(UNKNOWN_VARIABLE | WRONG_VALUE) => {
                *self.place.tracks.borrow_mut() = Tracks::Not
            }
            // Just now it may not be said (an XA transaction is prepared): this statement goes
            // without.
            Answer::Refused(_) => {}
            _ => {
                (self.lasting.tracking, self.lasting.told_of_transactions) =
                    (Some(told), transactions);
                self.local.programs.begun = self.holds.has(Hold::Transaction);
            }
        }
        Ok(())
    }

    /// Asks what the server tells a session that says nothing.
    async fn ask_for_defaults(&mut self) -> Result<Option<Told>, BackendFailed> {
        // As this connection began, unless its session has said something of it by now.
        let scope = if TOLD.iter().any(|name| self.state.variable(name).is_some()) {
            "GLOBAL"
        } else {
            "SESSION"
        };
        let mut names = TOLD.map(|name| format!("@@{scope}.{name}")).join(", ");
        if !self.hello.is_mariadb() {
            // Whether all sessions are told of them.
            let _infallible = write!(names, ", @@GLOBAL.{TRANSACTIONS}");
        }
        let rows = match self.ask(&format!("SELECT {names}")).await? {
            Answer::Rows(rows) => rows,
            Answer::Refused(UNKNOWN_VARIABLE) => {
                *self.place.tracks.borrow_mut() = Tracks::Not;
                return Ok(None);
            }
            _ => return Ok(None),
        };
        let Some([Some(variables), schema, state, rest @ ..]) =
            rows.rows.first().map(Vec::as_slice)
        else {
            return Ok(None);
        };
        let variables = without_zeros(variables);
        let variables = String::from_utf8_lossy(&variables);
        let on = |cell: &Option<Vec<u8>>| {
            cell.as_deref()
                .is_some_and(|said| [&b"1"[..], b"ON"].contains(&&*without_zeros(said)))
        };
        let mariadb = self.hello.version.to_ascii_lowercase().contains("mariadb");
        let mut names = if mariadb || variables.trim() == "*" {
            "*".to_owned()
        } else {
            OF_MYSQL.to_owned()
        };
        // Whoever has been told more than that is told it still.
        let all = names == "*";
        for name in variables
            .split(',')
            .map(str::trim)
            .filter(|name| !all && !name.is_empty())
        {
            let plain = name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.');
            if plain && !OF_MYSQL.split(',').any(|known| known == name) {
                let _infallible = write!(names, ",{name}");
            }
        }
        let by_default = Wish::new(&variables, on(schema), on(state));
        let silent = rest
            .first()
            .and_then(Option::as_deref)
            .is_some_and(|said| without_zeros(said) == b"OFF");
        Ok(Some(Told {
            turn_on: format!(
                "SET session_track_system_variables='{names}', session_track_schema=1, session_track_state_change=1"
            ),
            without_transactions: silent.then(|| {
                [false, true].map(|open| Arc::new(by_default.clone().without_transactions(open)))
            }),
            by_default: Arc::new(by_default),
            names,
        }))
    }
}

/// The names in what a session has set `session_track_system_variables` to.
fn listed(value: &str) -> &str {
    if value.eq_ignore_ascii_case("NULL") {
        ""
    } else {
        value.trim_matches(['\'', '"'])
    }
}

/// Whether a session has set a switch to this.
fn is_on(value: &str) -> bool {
    let value = value.trim_matches(['\'', '"']);
    value == "1" || value.eq_ignore_ascii_case("ON") || value.eq_ignore_ascii_case("TRUE")
}
