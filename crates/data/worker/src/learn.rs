//! What an answer tells about the session and the connection it came over.

use crate::relay::Follower;
use crate::session::Session;
use crate::statement::{Job, Told, What};
use backend::{ACCESS, Answered, Backend, Hold, ISOLATION, Names, State};
use sql::Leaves;
use sql::set::{Access, Scope, Setting, Value};
use wire::response::Outcome;
use wire::status;
use wire::track::Change;

impl Session {
    /// `executed`: the server's id of the statement that was executed, if one was.
    pub(crate) fn learn(&mut self, backend: &mut Backend, job: &Job<'_>, reply: &Follower, executed: Option<u32>) -> Told {
        let response = reply.response();
        let error = match response.outcome() {
            Outcome::Err { code, message, .. } => {
                self.count_error(backend, code, message);
                true
            }
            _ => false,
        };
        let flags = response.is_status_known().then(|| response.status());
        let insert_id = if error { 0 } else { response.insert_id() };
        let answered = Answered { ok: !error, status: flags, warnings: response.warnings(), insert_id };
        backend.holds.after(job.class, &answered);
        if insert_id != 0 {
            backend.insert_id_left = job.epoch.snapshot.variables.mysql_auto_increment_delay_multiplex;
        }
        if let Some(flags) = flags {
            let autocommit = flags & status::AUTOCOMMIT != 0;
            self.state.autocommit = autocommit;
            self.no_escapes = flags & status::NO_BACKSLASH_ESCAPES != 0;
            backend.state_mut().autocommit = autocommit;
        }
        if response.is_session_track_lost() {
            backend.holds.add(Hold::UnknownState);
        }
        let mut schema = None;
        for change in response.changes() {
            if let Change::Schema(name) = change {
                schema = Some(String::from_utf8_lossy(name).into_owned());
            }
        }
        if !error {
            if let Some(name) = &job.class.use_db {
                schema = Some(name.to_string());
            }
            if job.class.leaves.intersects(Leaves::SET) {
                self.learn_set(backend, job.text);
            }
            if let (What::Prepare(statement, id), Some(prepared)) = (job.what, response.prepared()) {
                statement.params.set(prepared.params);
                statement.columns.set(prepared.columns);
                self.statements.add(id, statement.clone());
                self.core.tally.up(bridge::Counter::StmtClientActiveTotal);
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                backend.learn_prepared(statement, prepared.id, max);
            }
            if let (What::Execute(execution), Some(id), Some(flags)) = (job.what, executed, flags)
                && execution.wants_cursor
                && flags & status::CURSOR_EXISTS != 0
            {
                backend.open_cursor(id, execution.client);
                execution.cursor.set(Some(job.plan.hostgroup()));
            }
        }
        if let Some(name) = schema {
            self.state.schema = name.as_str().into();
            backend.state_mut().schema = self.state.schema.clone();
            self.entry.schema.replace(self.state.schema.clone());
        }
        Told { rows_affected: if error { 0 } else { response.affected_rows() }, rows_sent: response.rows(), from_cache: false }
    }

    /// A SET that the server has accepted. What is understood travels with the session; what is not keeps the connection.
    fn learn_set(&mut self, backend: &mut Backend, text: &[u8]) {
        let Ok(settings) = sql::set::parse(text) else {
            backend.holds.add(Hold::UnknownState);
            return;
        };
        for setting in &settings {
            match understood(setting) {
                Understood::Nothing => {}
                Understood::Keep(hold) => backend.holds.add(hold),
                Understood::State(change) => {
                    change(&mut self.state);
                    change(backend.state_mut());
                }
            }
        }
    }

    fn count_error(&self, backend: &Backend, code: u16, message: &[u8]) {
        let server = backend.place().server();
        self.core.errors.count(
            server.hostgroup,
            backend.place().host(),
            server.port,
            &self.user_name,
            &self.state.schema,
            code,
            &String::from_utf8_lossy(message),
            self.core.rt.wall_us() / 1_000_000,
        );
    }
}

type StateChange<'a> = Box<dyn Fn(&mut State) + 'a>;

/// What a part of a SET means for the session.
enum Understood<'a> {
    /// It concerns the server, or the connection's flags tell it.
    Nothing,
    /// It stays on the connection, by this name.
    Keep(Hold),
    /// It travels.
    State(StateChange<'a>),
}

/// Variables whose value is used up, or means this very connection.
const BOUND: [&str; 7] =
    ["insert_id", "last_insert_id", "identity", "rand_seed1", "rand_seed2", "pseudo_thread_id", "sql_log_bin"];

fn understood<'a>(setting: &'a Setting<'a>) -> Understood<'a> {
    match setting {
        Setting::Variable(assignment) => match (assignment.scope, &assignment.value) {
            (Scope::Global | Scope::Persist | Scope::PersistOnly, _) => Understood::Nothing,
            (Scope::User, _) => Understood::Keep(Hold::UserVariable),
            (Scope::NextTransaction, _) => Understood::Keep(Hold::NextTransaction),
            (Scope::Session, _) if assignment.name == "autocommit" => Understood::Nothing,
            (Scope::Session, _) if BOUND.contains(&assignment.name.as_str()) => Understood::Keep(Hold::UnknownState),
            (Scope::Session, Value::Expression(_)) => Understood::Keep(Hold::UnknownState),
            (Scope::Session, value) if characteristic(&assignment.name).is_some() => characteristic_set(&assignment.name, value),
            (Scope::Session, Value::Default) => Understood::State(Box::new(|state| state.unset(&assignment.name))),
            (Scope::Session, Value::Literal(value)) => match std::str::from_utf8(value) {
                Ok(value) => Understood::State(Box::new(move |state| state.set(&assignment.name, value))),
                Err(_) => Understood::Keep(Hold::UnknownState),
            },
        },
        Setting::Names { charset, collate } => {
            let mut words = format!("NAMES {}", charset.as_deref().unwrap_or("DEFAULT"));
            if let Some(collate) = collate {
                words.push_str(" COLLATE ");
                words.push_str(collate);
            }
            Understood::State(Box::new(move |state| state.set_names(Names::Written(words.as_str().into()))))
        }
        Setting::CharacterSet(charset) => {
            let words = format!("CHARACTER SET {}", charset.as_deref().unwrap_or("DEFAULT"));
            Understood::State(Box::new(move |state| state.set_names(Names::Written(words.as_str().into()))))
        }
        Setting::Transaction { scope: Scope::Session, isolation, access } => Understood::State(Box::new(move |state| {
            if let Some(isolation) = isolation {
                // The variable's spelling has hyphens, the statement's has blanks.
                state.set(ISOLATION, &format!("ISOLATION LEVEL {}", isolation.name().replace('-', " ")));
            }
            match access {
                Some(Access::ReadOnly) => state.set(ACCESS, "READ ONLY"),
                Some(Access::ReadWrite) => state.set(ACCESS, "READ WRITE"),
                None => {}
            }
        })),
        Setting::Transaction { scope: Scope::NextTransaction, .. } => Understood::Keep(Hold::NextTransaction),
        Setting::Transaction { .. } | Setting::Password | Setting::DefaultRole => Understood::Nothing,
        Setting::Role(_) | Setting::ResourceGroup(_) | Setting::Statement { .. } => Understood::Keep(Hold::UnknownState),
    }
}

/// What `SET SESSION TRANSACTION` sets can be set as a variable too: one place in the state for both, or the older could win
/// on the next connection.
fn characteristic(name: &str) -> Option<&'static str> {
    match name {
        "transaction_isolation" | "tx_isolation" => Some(ISOLATION),
        "transaction_read_only" | "tx_read_only" => Some(ACCESS),
        _ => None,
    }
}

fn characteristic_set<'a>(name: &str, value: &Value<'_>) -> Understood<'a> {
    let Some(key) = characteristic(name) else { return Understood::Keep(Hold::UnknownState) };
    let Value::Literal(text) = value else { return Understood::State(Box::new(move |state| state.unset(key))) };
    let text = String::from_utf8_lossy(text).trim_matches(['\'', '"']).to_ascii_uppercase();
    let words = match (key, text.as_str()) {
        (ISOLATION, "READ-UNCOMMITTED" | "READ-COMMITTED" | "REPEATABLE-READ" | "SERIALIZABLE") => {
            format!("ISOLATION LEVEL {}", text.replace('-', " "))
        }
        (ACCESS, "1" | "ON" | "TRUE") => "READ ONLY".to_owned(),
        (ACCESS, "0" | "OFF" | "FALSE") => "READ WRITE".to_owned(),
        _ => return Understood::Keep(Hold::UnknownState),
    };
    Understood::State(Box::new(move |state| state.set(key, &words)))
}
