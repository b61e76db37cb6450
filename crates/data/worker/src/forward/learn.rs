//! What an answer tells about the session and the connection it came over.

use crate::command::asked::Executed;
use crate::command::cursor::Cursor;
use crate::command::follower::Follower;
use crate::command::job::{Job, Told, What};
use crate::command::settings::{
    Meaning, THREAD, leaves_texts, may_run_programs, meaning, mentions_texts, put_back, sets_flags,
};
use crate::known::demoted;
use crate::memory::tracked::OF_NAMES;
use crate::memory::warnings::{is_simple, leaves_warnings};
use crate::reach::branch::uses_tables;
use crate::reach::demoted::commits;
use crate::seen::stats::Failed;
use crate::seen::traces::Mark;
use crate::session::Session;
use backend::{Answered, Backend, Hold, Owned, Unreported};
use config::Snapshot;
use sql::set::{Scope, Setting, Value};
use sql::{CommandCounter, Leaves, Lexing, Reads};
use wire::response::Outcome;
use wire::{errors, status};

impl Session {
    /// `executed`: how the server knows the statement that was executed, if it was prepared.
    pub(crate) fn learn(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        reply: &Follower,
        executed: Option<Executed>,
    ) -> Told {
        let response = reply.response();
        let reading = self.reading;
        let before = job.class.sets.then(|| (self.state.clone(), reading));
        let error = match response.outcome() {
            Outcome::Err { code, message, .. } => {
                self.count_error(backend, code, message);
                learn_refused(backend, job, code, message);
                true
            }
            _ => false,
        };
        let flags = response.is_status_known().then(|| response.status());
        let insert_id = if error { 0 } else { response.insert_id() };
        let warned = backend.holds.has(Hold::Diagnostics);
        let manual = match flags {
            Some(flags) => flags & status::AUTOCOMMIT == 0,
            None => backend.holds.is_manual(),
        };
        let answered = Answered {
            ok: !error,
            status: flags,
            warnings: response.warnings(),
            // To prepare a statement locks its tables only while that lasts.
            used_tables: manual
                && !job.class.ends_transaction
                && !matches!(job.what, What::Prepare(_))
                && !job.what.is_init_db()
                && uses_tables(job.class, job.sent()),
        };
        let found_rows = backend.holds.has(Hold::FoundRows);
        backend.holds.after(job.class, &answered);
        Self::learn_who_led(backend, job);
        let is_prepared = matches!(job.what, What::Prepare(_));
        if is_prepared {
            // Nothing was selected yet.
            backend.holds.put(Hold::FoundRows, found_rows);
        }
        // MySQL prepares no SHOW WARNINGS; the error is what another one shows.
        let reads_warnings = job.class.reads.intersects(Reads::WARNINGS) && !(is_prepared && error);
        if error && !reads_warnings {
            backend.holds.add(Hold::Diagnostics);
        } else if is_prepared && reads_warnings && !is_simple(job.sent()) {
            // Only a server can answer what is executed.
            self.entry.asks_servers_for_warnings.set(true);
        }
        Self::learn_warnings_left(
            backend,
            job,
            (warned, reads_warnings),
            error,
            response.warnings(),
        );
        if !error {
            self.learn_password(backend, job);
        }
        if backend.holds.has(Hold::Diagnostics)
            && !keeps_warnings(&job.epoch.snapshot, job.plan.hostgroup())
        {
            backend.holds.remove(Hold::Diagnostics);
        }
        if !error && job.class.ends_transaction && self.releases(job) {
            // The server closes it behind its answer, as it would the client's own.
            backend.retire();
            self.entry.released.set(true);
        }
        self.doubt_last_gtid(backend, job);
        self.learn_written(backend, job, response);
        self.learn_insert_id(backend, job, insert_id, response);
        if let Some(flags) = flags {
            let autocommit = flags & status::AUTOCOMMIT != 0;
            self.state.autocommit = autocommit;
            backend.state_mut().autocommit = autocommit;
        }
        if job.class.multi
            || job
                .class
                .leaves
                .intersects(Leaves::UNKNOWN_STATE | Leaves::SQL_EXECUTE)
        {
            doubt_reset(backend, job.sent());
            self.doubt_charset(job.sent());
            self.log_unread_set(job, error);
        }
        backend.local.plain_quotes &= !job
            .class
            .leaves
            .intersects(Leaves::SET | Leaves::UNKNOWN_STATE | Leaves::SQL_EXECUTE);
        if response.is_session_track_lost() || response.results() > 1 && !may_answer_often(job) {
            // More was in the text than we have seen.
            backend.holds.add(Hold::UnknownState);
        }
        self.learn_recall(backend, job, response, error);
        let escapes = match self.lexing_of(job.what) {
            Lexing::Unsure { .. } => self.escapes(),
            lexing => lexing.escapes(),
        };
        let mut schema = self.learn_changes(backend, job.class, (job.sent(), escapes), response);
        if error && is_dynamic(job) {
            backend.has_failed(Unreported::Noise);
        } else if error && may_run_programs(job.class) {
            backend.has_failed(Unreported::Change);
            // MariaDB does not tell of user variables later.
            backend.local.strange_variables |= backend.hello.is_mariadb() || !backend.tells_all();
        } else {
            Self::learn_untold(backend, job);
        }
        let code = match response.outcome() {
            Outcome::Err { code, .. } => Some(code),
            _ => None,
        };
        // A server that wants a new password has done nothing of it, and the session's own values may
        // not be there.
        let is_refused = code == Some(errors::MUST_CHANGE_PASSWORD.number);
        if !is_refused
            && (job
                .class
                .leaves
                .intersects(Leaves::SET | Leaves::USER_VARIABLE)
                || job.class.command == CommandCounter::Call)
        {
            let outer: &[u8] = match job.what {
                What::Dynamic(dynamic) if job.class.command == CommandCounter::Call => {
                    dynamic.outer
                }
                _ => &[],
            };
            self.learn_variables(
                backend,
                job,
                (job.sent(), self.lexing_of(job.what)),
                outer,
                code,
            );
        }
        if Owned::concerns(job.class, backend.holds) && !matches!(job.what, What::Prepare(_)) {
            // A prepared statement means what it meant in the schema that it was prepared in.
            let schema = match job.what {
                What::Execute(execution) => Some(&*execution.prepared().schema),
                What::Dynamic(dynamic) => dynamic.prepared().map(|prepared| &*prepared.schema),
                _ => None,
            };
            let schema = schema.filter(|schema| !schema.is_empty());
            backend.learn_owned(
                job.class,
                job.sent(),
                schema,
                !error,
                matches!(job.what, What::Execute(_)),
            );
        }
        if let Some(flags) = flags {
            self.learn_modes(flags);
        }
        if !error && job.what.is_init_db() && job.class.use_db.is_none() && schema.is_none() {
            // A name that is not UTF-8, of a server that does not say how it spells it: nobody else
            // can be told.
            backend.holds.add(Hold::UnknownState);
        }
        if !error {
            // What the server calls it is right, whatever character set it was asked for in.
            if let Some(name) = &job.class.use_db
                && schema.is_none()
            {
                schema = Some(name.to_string());
            }
            if let (What::Prepare(preparing), Some(prepared)) = (job.what, response.prepared())
                && let Some(statement) = preparing.statement()
            {
                statement.params.set(prepared.params);
                statement.columns.set(prepared.columns);
                self.add_prepared(job, preparing, prepared.params);
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                backend.learn_prepared(statement, &prepared, max);
            }
            if let What::Prepare(preparing) = job.what {
                self.learn_name(backend, job, preparing);
            }
            if let (What::Execute(execution), Some(Executed::Id(id)), Some(flags)) =
                (job.what, executed, flags)
                && execution.opens_cursor()
                && flags & status::CURSOR_EXISTS != 0
            {
                backend.open_cursor(id, execution.client);
                execution.cursor.set(Some(Box::new(Cursor::of(job.plan))));
            }
        }
        backend.strays_no_more();
        if let Some(name) = schema {
            self.is_in(backend, &name);
        }
        if let Some(before) = before {
            self.note_set(backend, job, before, response);
        }
        if job.class.reads == Reads::SESSION_VARIABLE {
            self.learn_values(backend, job, response, reading);
        }
        Told {
            rows_affected: if error { 0 } else { response.affected_rows() },
            rows_sent: response.rows(),
            insert_id,
            row_count: response.row_count(),
            from_cache: false,
        }
    }

    /// The client is told that its server takes no writes, on a connection that it may keep.
    pub(crate) fn learn_refusal(&mut self, job: &Job<'_>) {
        let hostgroup = job.plan.hostgroup();
        let Some(mut backend) = self.held.take(hostgroup) else {
            return;
        };
        if commits(job) {
            is_rolled_back(&mut backend);
        }
        Self::learn_warnings_left(&mut backend, job, (false, false), true, 0);
        if keeps_warnings(&job.epoch.snapshot, hostgroup) {
            backend.holds.add(Hold::Diagnostics);
        }
        self.held
            .keep_or_release(hostgroup, backend, &self.core.pools);
    }

    /// Programs may have run. Where the server was not to be asked, what they have changed nobody
    /// knows: the connection is reset before somebody else has it.
    pub(crate) fn learn_untold(backend: &mut Backend, job: &Job<'_>) {
        if may_run_programs(job.class)
            && backend.could_tell()
            && !matches!(job.what, What::Prepare(_))
        {
            backend.local.strange_variables |= !backend.tells_all();
        }
    }

    /// Whose warnings the server shows from now on, and how many. `warned`: this connection was held
    /// for those of the statement before; `reads`: the statement asks for them.
    pub(crate) fn learn_warnings_left(
        backend: &mut Backend,
        job: &Job<'_>,
        (warned, reads_warnings): (bool, bool),
        error: bool,
        warnings: u16,
    ) {
        if error || warnings > 0 {
            (backend.lasting.warnings_left, backend.local.others_warnings) = (true, false);
        } else if backend.lasting.warnings_left && surely_ends_warnings(job) {
            (backend.lasting.warnings_left, backend.local.others_warnings) = (false, false);
        }
        if !reads_warnings {
            if warned
                && !backend.holds.has(Hold::Diagnostics)
                && backend.hello.is_mariadb()
                && leaves_warnings(job)
            {
                backend.holds.add(Hold::Diagnostics);
            } else {
                backend.lease.warned = (!error).then_some(warnings);
            }
        }
    }

    /// A statement that may have set a new password was done.
    fn learn_password(&mut self, backend: &mut Backend, job: &Job<'_>) {
        if changes_password(job.sent()) {
            backend.holds.remove(Hold::ExpiredPassword);
            // The other connections of the session do not hear of it, be it that nothing was
            // refused here before.
            for (_, mut other) in self
                .held
                .take_all_that(|other| other.holds.has(Hold::ExpiredPassword))
            {
                other.retire();
                self.core.pools.release(other);
            }
        }
    }

    /// Whether the server ends the connection with the transaction: `COMMIT RELEASE`, or
    /// `completion_type = 2`.
    fn releases(&self, job: &Job<'_>) -> bool {
        let by_type = || {
            let set = self
                .state
                .variable("completion_type")
                .map(|value| value.trim_matches(['\'', '"']));
            let says_no = || sql::words::Words::new(job.sent()).any(|token| token.is("RELEASE"));
            set.is_some_and(|set| set == "2" || set.eq_ignore_ascii_case("RELEASE")) && !says_no()
        };
        job.class.releases || by_type()
    }

    /// Learns what a statement has set, as far as its text tells. What only the server knows is
    /// asked later, see `read_back`. `outer`: the statement with the arguments of a procedure, if
    /// they are not in its text, which servers read by `lexing`; `error`: the code, if it failed.
    fn learn_variables(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        (text, lexing): (&[u8], Lexing),
        outer: &[u8],
        error: Option<u16>,
    ) {
        let class = job.class;
        let mentioned = class.leaves.intersects(Leaves::USER_VARIABLE)
            || class.reads.intersects(Reads::USER_VARIABLE);
        let mut all_mentioned = mentioned
            && (class.command == CommandCounter::Call
                || class.leaves.intersects(Leaves::USER_VARIABLE));
        if class.leaves.intersects(Leaves::SET) && !class.multi {
            match sql::set::parse_in(text, lexing.escapes()) {
                // What it seems to set may be in a string.
                Ok(_) if lexing.hides(text) => {
                    backend.holds.add(Hold::UnknownState);
                    self.doubt_charset(text);
                }
                Ok(settings) => {
                    all_mentioned &= !self.learn_settings(backend, job, &settings, error.is_some())
                }
                // Of several parts some may have been done before one failed, unless none was read.
                Err(_) if error == Some(errors::PARSE.number) => {}
                Err(_) => {
                    backend.holds.add(Hold::UnknownState);
                    self.doubt_charset(text);
                    if mentions_a_role(text) || mentions_texts(text) {
                        backend.retire();
                    }
                }
            }
        }
        if all_mentioned {
            for (text, lexing) in [(text, lexing), (outer, self.lexing())] {
                let escapes = lexing.escapes();
                let mentioned =
                    sql::user_variables::mentioned(text, escapes).filter(|_| !lexing.hides(text));
                match mentioned {
                    Some(names) if names.iter().all(|name| name.is_ascii()) => {
                        backend.local.unread.user.extend(names)
                    }
                    _ => backend.holds.add(Hold::UserVariable),
                }
            }
        }
        backend
            .holds
            .put(Hold::Unread, !backend.local.unread.is_empty());
    }

    /// Whether all of it is plain: no expression that may have set a user variable on the side.
    fn learn_settings(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        settings: &[Setting<'_>],
        error: bool,
    ) -> bool {
        let before = self.state.clone();
        let mut plain = true;
        for setting in settings {
            let meaning = match sets_flags(setting) {
                // The others are what its connections begin with, which has no words.
                Some(name) if self.begins_otherwise(job, name) => Meaning::Ask(name),
                _ => meaning(setting, &before),
            };
            plain &= !matches!(meaning, Meaning::Ask(_))
                && !matches!(setting, Setting::Variable(one) if matches!(one.value, Value::Expression(_)));
            match (meaning, setting) {
                // Of several, some may have been set before one was refused.
                (Meaning::Travels(_) | Meaning::Ask(_), Setting::Variable(one))
                    if error && settings.len() > 1 =>
                {
                    match one.scope {
                        Scope::User => backend.local.unread.user.insert(one.name.clone()),
                        _ => backend.local.unread.session.insert(one.name.clone()),
                    };
                }
                (_, Setting::Names { .. } | Setting::CharacterSet(_))
                    if error && settings.len() > 1 =>
                {
                    backend
                        .local
                        .unread
                        .session
                        .extend(OF_NAMES.map(str::to_owned));
                }
                (Meaning::Ask(name), _) if !error => {
                    backend.local.unread.session.insert(name.to_owned());
                }
                (Meaning::AskUser(name), _) => {
                    backend.local.unread.user.insert(name.to_owned());
                }
                (Meaning::Keep(_), _) if error && settings.len() == 1 => {}
                (
                    Meaning::Travels(_)
                    | Meaning::Ask(_)
                    | Meaning::Nothing
                    | Meaning::Autocommit(_),
                    _,
                ) if error => {}
                (Meaning::Keep(hold), _) => {
                    backend.holds.add(hold);
                    if matches!(setting, Setting::Variable(one) if one.name == THREAD) {
                        self.remembered.numbered.set(true);
                    }
                    outlast_resets(backend, setting);
                }
                (Meaning::Travels(change), _) => {
                    if matches!(setting, Setting::Names { .. } | Setting::CharacterSet(_)) {
                        self.knows_charset();
                    }
                    if matches!(setting, Setting::CharacterSet(_)) {
                        // It sets the collation of the schema, as it is now.
                        backend
                            .local
                            .unread
                            .session
                            .insert("collation_connection".to_owned());
                    }
                    if let Setting::Variable(one) = setting {
                        backend.local.unread.session.remove(&one.name);
                    }
                    let begins_otherwise = |name: &&str| {
                        backend.begins_otherwise(name) || self.begins_otherwise(job, name)
                    };
                    if let Some(name) = put_back(setting).filter(begins_otherwise) {
                        // Another connection does not begin with it, or this one does not for the
                        // next session.
                        [backend.state_mut(), &mut self.state]
                            .into_iter()
                            .for_each(|state| state.set(name, backend::DEFAULT));
                        continue;
                    }
                    let (there, here) = (change(backend.state_mut()), change(&mut self.state));
                    if !(there && here) {
                        if let Setting::Variable(one) = setting {
                            // What one of them has no room for is not known: an older value would
                            // be brought over it.
                            [backend.state_mut(), &mut self.state]
                                .into_iter()
                                .for_each(|state| state.unset_user(&one.name));
                        }
                        backend.holds.add(Hold::UserVariable);
                    }
                }
                (Meaning::Nothing | Meaning::Autocommit(_) | Meaning::Ask(_), _) => {}
            }
        }
        plain
    }

    pub(crate) fn count_error(&self, backend: &Backend, code: u16, message: &[u8]) {
        self.core.doubt_schemas(code);
        self.core.doubt_columns(code);
        self.hears_of_victim(backend, code);
        self.mark(Mark::Failed(code));
        self.log_error(backend, code, message);
        let server = backend.place().server();
        let tracks = self
            .core
            .epoch()
            .snapshot
            .variables
            .mysql_query_digests_track_hostname;
        self.core.count_error(&Failed {
            hostgroup: server.hostgroup,
            host: backend.place().host(),
            port: server.port,
            user: &self.user_name,
            client_address: if tracks { &self.entry.client.0 } else { "" },
            schema: &self.state.schema,
            errno: code,
            message: &String::from_utf8_lossy(message),
            now_s: self.core.rt.wall_us() / 1_000_000,
        });
    }
}

/// Learns what an error says of its connection.
fn learn_refused(backend: &mut Backend, job: &Job<'_>, code: u16, message: &[u8]) {
    if code == errors::MUST_CHANGE_PASSWORD.number {
        backend.holds.add(Hold::ExpiredPassword);
    }
    if commits(job) && demoted::is_meant(code, message) {
        is_rolled_back(backend);
    }
}

/// A server that takes no writes has rolled a transaction back instead of its COMMIT, and its error
/// has no flags that say so. Nobody else has the connection: if it had not, the end would.
fn is_rolled_back(backend: &mut Backend) {
    let of_transaction = [
        Hold::Transaction,
        Hold::AutocommitOff,
        Hold::NextTransaction,
    ];
    of_transaction
        .iter()
        .for_each(|hold| backend.holds.remove(*hold));
    backend.retire();
}

/// Whether a session keeps a connection to this hostgroup while SHOW WARNINGS may ask there.
pub(crate) fn keeps_warnings(snapshot: &Snapshot, hostgroup: u32) -> bool {
    let of_group = snapshot
        .servers
        .hostgroup(hostgroup)
        .and_then(|group| group.attributes.handle_warnings);
    of_group.unwrap_or(snapshot.variables.mysql_handle_warnings != 0)
        || snapshot.variables.mysql_log_mysql_warnings_enabled
}

/// Whether it names or holds another statement, and does nothing that is not known.
fn is_dynamic(job: &Job<'_>) -> bool {
    use CommandCounter as C;
    match job.what {
        What::Dynamic(_) => !may_run_programs(job.class),
        What::Query(_) | What::Prepare(_) => {
            matches!(job.class.command, C::Prepare | C::Execute | C::Deallocate)
                && job.class.leaves.is_empty()
        }
        _ => false,
    }
}

/// Whether one statement of this kind has several results.
fn may_answer_often(job: &Job<'_>) -> bool {
    job.class.multi
        || job.class.command == CommandCounter::Call
        || job
            .class
            .leaves
            .intersects(Leaves::UNKNOWN_STATE | Leaves::SQL_EXECUTE)
}

/// Whether it may set a role, which no reset takes away.
fn mentions_a_role(text: &[u8]) -> bool {
    text.windows(4)
        .any(|four| four.eq_ignore_ascii_case(b"role"))
}

/// Whether no server shows the warnings of before any more. What is not certain leaves them.
fn surely_ends_warnings(job: &Job<'_>) -> bool {
    use CommandCounter as C;
    !matches!(job.what, What::Prepare(_) | What::Raw(..))
        && matches!(
            job.class.command,
            C::Insert | C::Replace | C::Update | C::Delete
        )
}

/// Whether it is `ALTER USER …` or `SET PASSWORD …`, what a server takes whose password has
/// expired.
fn changes_password(text: &[u8]) -> bool {
    let mut words = sql::words::Words::new(text);
    match (words.next(), words.next()) {
        (Some(first), Some(second)) => {
            first.is("ALTER") && second.is("USER") || first.is("SET") && second.is("PASSWORD")
        }
        _ => false,
    }
}

/// Retires a backend that keeps what no reset takes away: a role, and the texts of statements that
/// SHOW PROFILES or OPTIMIZER_TRACE shows.
fn outlast_resets(backend: &mut Backend, setting: &Setting<'_>) {
    if matches!(setting, Setting::Variable(one) if leaves_texts(&one.name)) {
        backend.holds.add(Hold::Trace);
        backend.retire();
    } else if matches!(setting, Setting::Role(_)) {
        backend.retire();
    }
}

/// Retires a backend where a text that cannot be taken apart mentions what no reset takes away.
fn doubt_reset(backend: &mut Backend, text: &[u8]) {
    if mentions_texts(text) {
        backend.holds.add(Hold::Trace);
        backend.retire();
    } else if mentions_a_role(text) {
        backend.retire();
    }
}

impl Session {
    /// A transaction that is open on this connection is there because the split has led it there,
    /// or not.
    pub(crate) fn learn_who_led(backend: &mut Backend, job: &Job<'_>) {
        let led = backend.lease.reads_by_split || job.plan.why.is_read();
        backend.lease.reads_by_split = led && backend.holds.has(Hold::Transaction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_password_is_set_in_two_ways() {
        for text in [
            "ALTER USER a@b IDENTIFIED BY 'x'",
            "/* why */ alter user USER() IDENTIFIED BY 'x'",
            "set password = 'x'",
        ] {
            assert!(changes_password(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "SET",
            "SET NAMES utf8mb4",
            "ALTER TABLE user ADD password INT",
            "SELECT 'ALTER USER'",
        ] {
            assert!(!changes_password(text.as_bytes()), "{text}");
        }
    }
}
