//! From a statement to its answer: understand it, refresh what it reads, do it.

use crate::cluster::{self, Reach};
use crate::commands::{self, Assignment, Command, OfFleet, Question, Subject, Verb, literal};
use crate::engine::{Reply, STATS_VALUE_BYTES, SqlError, View, Whose};
use crate::grid::Grid;
use crate::said::{Asker, Said};
use crate::see::{beside, refresh, route};
use crate::shared::Shared;
use crate::tables::{Module, Schema};
use crate::taken::Taken;
use crate::{file, loading, parts, verbs};
use bridge::{Ask, ToMonitor};
use rusqlite::types::Value;
use topology::{Policy, placed};

/// A reply, and what the cores have given away for it.
pub(crate) struct Answered {
    pub(crate) reply: Reply,
    taken: Vec<Taken>,
}

impl Answered {
    /// The operator has it. Dropped before, what was taken from the cores for it is kept for
    /// whoever asks next.
    pub(crate) fn delivered(self) {
        self.taken.into_iter().for_each(Taken::delivered);
    }
}

/// Whether a command changes what a process that takes over has read already.
fn changes_what_is_in_force(command: &Command) -> bool {
    match command {
        Command::Set(_)
        | Command::Move { .. }
        | Command::Fleet(_)
        | Command::LoadConfig(_)
        | Command::LoadUser(_)
        | Command::ClusterPull(_)
        | Command::Hscale(_)
        | Command::LearnFirewall(_) => true,
        Command::Proxysql(verb) => !matches!(verb, Verb::Shutdown | Verb::Kill),
        _ => false,
    }
}

impl Shared {
    pub(crate) async fn answer(
        &self,
        asker: &Asker,
        text: &str,
        values: &[Value],
    ) -> Result<Answered, Said> {
        let mut taken = Vec::new();
        let reply = match self.answer_proxysql(asker, text).await? {
            Some(reply) => reply,
            None => self.reply(asker, text, values, &mut taken).await?,
        };
        if matches!(reply, Reply::Done { .. }) {
            // It is where the statement has put it.
            taken.drain(..).for_each(Taken::delivered);
        }
        Ok(Answered { reply, taken })
    }

    fn understood(&self, asker: &Asker, text: &str) -> Result<Command, Said> {
        is_short_enough(asker, text)?;
        let command = commands::parse(text, asker.view);
        if self.handed_over.get() && changes_what_is_in_force(&command) {
            let words = "another process takes over from this one: say it to that one, on this port, in a moment";
            return Err(words.into());
        }
        Ok(command)
    }

    async fn reply(
        &self,
        asker: &Asker,
        text: &str,
        values: &[Value],
        taken: &mut Vec<Taken>,
    ) -> Result<Reply, Said> {
        match self.understood(asker, text)? {
            Command::Sql(sql) => self.sql(asker, &sql, values, taken).await,
            Command::Query(sql) => self.query(asker, &sql, values, taken).await,
            Command::Blank => Err(Said::Sql("not an error".into())),
            Command::Accept => Ok(Reply::done()),
            Command::Use(schema) => self.use_schema(&schema).map(|()| Reply::done()),
            Command::Set(assignment) => self.set(asker.view, &assignment),
            Command::Variables(asked) => Ok(self.variables(asker.view, &asked)),
            Command::Move { module, from, to } => {
                loading::move_module(self, module, from, to).await
            }
            Command::Fleet(of) => self.of_fleet(of).await,
            Command::LoadConfig(module) => loading::load_config(self, module),
            Command::LoadUser(name) => loading::load_user(self, &name).await,
            Command::WriteConfig { path, select } => loading::write_config(self, &path, select),
            Command::ShowConfig => self.show_config(),
            Command::Checksum(subject) => self.checksum(asker, &subject).await,
            Command::ClusterNode { uuid, ifaces } => Ok(self.greet(asker, &uuid, &ifaces)),
            Command::ClusterPull(name) => Ok(Reply::Rows(self.give(&name).await?)),
            Command::Proxysql(verb) => verbs::carry_out(self, verb).await,
            Command::FlushClientHosts => Ok(self
                .cores
                .flush_client_hosts()
                .await
                .map(|()| Reply::done())?),
            Command::FlushCache(which) => Ok(Reply::Done {
                affected: self.cores.flush_cache(&which).await?,
                info: String::new(),
            }),
            Command::Kill {
                session,
                statement_only,
            } => self.kill(session, statement_only).await,
            Command::Log(words) => Ok(self.log(&words)),
            Command::ExplainRoute(question) => self.explain_route(&question).await,
            Command::ReplayDigests { all } => self.replay_digests(all).await,
            Command::Hscale(command) => self.hscale(command?).await,
            Command::LearnFirewall(lesson) => self.learn_firewall(&lesson).await,
            Command::KeepDigests => self.keep_digests().await,
            Command::Metrics => beside::metrics(self).await,
            Command::ForgetDigests => {
                self.cores.take(Ask::Digests).await?.delivered();
                Ok(Reply::done())
            }
            Command::DollarProbe => Err(no_such_name()),
            Command::NotAvailable(why) => Err(Said::Sql(why.into())),
        }
    }

    async fn of_fleet(&self, command: OfFleet) -> Result<Reply, Said> {
        match command {
            OfFleet::LoadHere(module) => loading::load_as(self, module, Reach::Here)
                .await
                .map(Reply::said),
            OfFleet::History => Ok(Reply::Rows(self.fleet_history().await?)),
            OfFleet::RollBack { module, generation } => {
                self.roll_back(&module, generation).await.map(Reply::said)
            }
        }
    }

    async fn kill(&self, session: u32, statement_only: bool) -> Result<Reply, Said> {
        match self.cores.kill(session, statement_only).await? {
            true => Ok(Reply::done()),
            false => Err(Said::Sql(format!("Unknown thread id: {session}"))),
        }
    }

    /// Another proxy says who it is.
    fn greet(&self, asker: &Asker, uuid: &str, ifaces: &str) -> Reply {
        let from = (&*asker.host, asker.port);
        self.cluster
            .greeted(asker.id, from, uuid, ifaces, self.now_s());
        Reply::done()
    }

    fn show_config(&self) -> Result<Reply, Said> {
        let text = file::saved(self.engine.borrow().conn())?;
        Ok(Reply::Rows(Grid::one("Data", text)))
    }

    /// Runs a statement of ours.
    async fn query(
        &self,
        asker: &Asker,
        sql: &str,
        values: &[Value],
        taken: &mut Vec<Taken>,
    ) -> Result<Reply, Said> {
        let sql = first_of(sql);
        refresh::refresh(self, asker.view, sql, taken).await?;
        let engine = self.engine(asker.view).borrow();
        engine.asked_by(self.whose(asker));
        Ok(engine.query(sql, values, |name| self.place(asker, name))?)
    }

    async fn sql(
        &self,
        asker: &Asker,
        sql: &str,
        values: &[Value],
        taken: &mut Vec<Taken>,
    ) -> Result<Reply, Said> {
        let sql = first_of(sql);
        let named = refresh::refresh(self, asker.view, sql, taken).await?;
        let engine = self.engine(asker.view).borrow();
        let before = engine.conn().total_changes();
        engine.asked_by(self.whose(asker));
        let reply = engine.run(sql, values);
        if engine.conn().total_changes() != before {
            if commands::inserts(sql) {
                let row = engine.conn().last_insert_rowid();
                self.inserted.set((asker.id, row));
            }
            // What an operator wrote into a table of ours does not stay there, be it that the
            // statement failed in the end.
            for table in &named {
                self.filled.borrow_mut().remove(&table.name);
            }
            for module in engine.modules_in(sql) {
                self.cluster.edited(module);
            }
        }
        Ok(reply?)
    }

    fn whose(&self, asker: &Asker) -> Whose {
        let (session, row) = self.inserted.get();
        Whose {
            user: format!("{}@{}", asker.user, asker.host),
            session: asker.id,
            inserted: if session == asker.id { row } else { 0 },
        }
    }

    /// How many parameters and which columns a statement has.
    pub(crate) fn describe(&self, asker: &Asker, text: &str) -> Result<(usize, Vec<String>), Said> {
        is_short_enough(asker, text)?;
        match commands::parse(text, asker.view) {
            Command::Sql(sql) => Ok(self
                .engine(asker.view)
                .borrow()
                .describe(first_of(&sql), |_| false)?),
            Command::Query(sql) => {
                let is_ours = |name: &str| self.place(asker, name).is_some();
                Ok(self
                    .engine(asker.view)
                    .borrow()
                    .describe(first_of(&sql), is_ours)?)
            }
            _ => Ok((0, Vec::new())),
        }
    }

    /// Returns what a statement of ours asks for by name.
    fn place(&self, asker: &Asker, name: &str) -> Option<String> {
        Some(match name {
            "version" => self.snapshot.borrow().variables.admin_version.to_string(),
            "name" => asker.user.clone(),
            "user" => format!("{}@{}", asker.user, asker.host),
            "id" => asker.id.to_string(),
            _ => return None,
        })
    }

    pub(crate) fn use_schema(&self, schema: &str) -> Result<(), Said> {
        // ProxySQL takes every name; drivers that are told `admin` or `information_schema` must not
        // fail.
        let fine = Schema::named(schema).is_some()
            || ["", "admin", "information_schema", "mysql"]
                .contains(&schema.to_ascii_lowercase().as_str());
        if fine {
            Ok(())
        } else {
            Err(Said::Coded(
                1049,
                "42000",
                format!("Unknown database '{schema}'"),
            ))
        }
    }

    fn variables(&self, view: View, asked: &[door::hello::Asked]) -> Reply {
        let mut grid = Grid::new(asked.iter().map(|asked| asked.label.clone()));
        let snapshot = self.snapshot.borrow();
        let value = |name: &str| match name {
            "version" => Some(snapshot.variables.admin_version.to_string()),
            "version_comment" => Some("(ProxySQL Admin Module)".into()),
            "max_allowed_packet" => Some(snapshot.variables.mysql_max_allowed_packet.to_string()),
            "hostname" => Some("millrace".into()),
            // Other proxies ask, who share their configuration with their like only.
            "millrace_version" if view == View::Admin => Some(cluster::MILLRACE.into()),
            "millrace_uuid" if view == View::Admin => Some(self.cluster.uuid().to_owned()),
            // Passwords are among them, and all of them are an administrator's.
            _ if view == View::Stats => door::hello::usual(name).map(str::to_owned),
            _ => {
                let found = config::REGISTRY
                    .iter()
                    .find(|variable| variable.name.eq_ignore_ascii_case(name));
                found
                    .and_then(|variable| self.in_memory(variable.name))
                    .or_else(|| door::hello::usual(name).map(str::to_owned))
            }
        };
        let values: Vec<_> = asked.iter().map(|asked| value(&asked.name)).collect();
        // A variable that nobody knows is no row, as ProxySQL has it.
        if values.iter().any(Option::is_some) {
            grid.push_row(values);
        }
        Reply::Rows(grid)
    }

    fn in_memory(&self, name: &str) -> Option<String> {
        let engine = self.engine.borrow();
        let sql = "SELECT CAST(variable_value AS TEXT) FROM main.global_variables WHERE variable_name = ?1";
        engine.conn().query_row(sql, [name], |row| row.get(0)).ok()
    }

    fn set(&self, view: View, assignment: &Assignment) -> Result<Reply, Said> {
        let Assignment { name, value } = assignment;
        // A comment behind the value ends with its line, and must not hide which variable is meant.
        let sql = |name: &str| {
            format!(
                "UPDATE global_variables SET variable_value={value}\nWHERE variable_name={}",
                literal(name)
            )
        };
        if view == View::Stats {
            return Ok(self.stats.borrow().run(&sql(name), &[])?);
        }
        let Some(known) = config::REGISTRY
            .iter()
            .find(|variable| variable.name.eq_ignore_ascii_case(name))
        else {
            return Ok(Reply::Done {
                affected: 0,
                info: format!("ERROR: Unknown global variable: '{name}'."),
            });
        };
        let engine = self.engine.borrow();
        let whole = engine
            .conn()
            .unchecked_transaction()
            .map_err(SqlError::from)?;
        let reply = engine.run(&sql(known.name), &[])?;
        if let Reply::Done {
            affected: changed @ 2..,
            ..
        } = reply
        {
            return Err(Said::Sql(format!(
                "SET is for one variable, and this would change {changed}: nothing was changed"
            )));
        }
        whole.commit().map_err(SqlError::from)?;
        let module = Module::ALL.iter().find(|module| {
            module
                .prefix()
                .is_some_and(|prefix| known.name.starts_with(prefix))
        });
        if let Some(module) = module.filter(|_| parts::is_shared(known.name)) {
            self.cluster.edited(*module);
        }
        Ok(reply)
    }

    async fn checksum(&self, asker: &Asker, subject: &Subject) -> Result<Reply, Said> {
        match subject {
            Subject::Global if asker.view == View::Stats => Err(Said::Sql(
                "GLOBAL_CHECKSUM() is an administrator's: it is made of passwords, too".into(),
            )),
            Subject::Global => {
                self.cluster.seen(asker.id, self.now_s());
                Ok(Reply::Rows(Grid::one(
                    "CHECKSUM",
                    self.global_checksum().await?.to_string(),
                )))
            }
            Subject::Table { words, table, disk } => {
                let schema = if *disk { "disk" } else { "main" };
                let condition = if *table == "global_variables" {
                    "WHERE variable_name LIKE 'mysql-%'"
                } else {
                    ""
                };
                let checksum = checksum_of(
                    &self
                        .engine
                        .borrow()
                        .run(&format!("SELECT * FROM {schema}.{table} {condition}"), &[])?,
                );
                let mut grid = Grid::new(["table", "checksum"]);
                grid.push_row([Some(*words), Some(&checksum)]);
                Ok(Reply::Rows(grid))
            }
        }
    }

    fn log(&self, words: &str) -> Reply {
        (self.hooks.log)(words);
        Reply::done()
    }

    async fn explain_route(&self, question: &Question) -> Result<Reply, Said> {
        let observed = beside::ask_monitor(self, ToMonitor::Seen).await?;
        let snapshot = self.snapshot.borrow();
        let policy = Policy::of(&snapshot.variables);
        let placed = placed(&snapshot.servers, &observed, &policy);
        let random = self.rt.random();
        Ok(Reply::Rows(route::explain(
            &snapshot, &placed, question, random,
        )?))
    }
}

/// Without CLIENT_MULTI_STATEMENTS the first counts, as with ProxySQL.
fn first_of(sql: &str) -> &str {
    if sql.contains(';') {
        door::split::statements(sql).next().unwrap_or(sql)
    } else {
        sql
    }
}

/// Before anything is made of a text that may be as long as a packet.
fn is_short_enough(asker: &Asker, text: &str) -> Result<(), Said> {
    let max = STATS_VALUE_BYTES as usize;
    match asker.view {
        View::Stats if text.len() > max => Err(Said::Sql(format!(
            "the statement is too long: one of a statistics user has at most {max} bytes"
        ))),
        _ => Ok(()),
    }
}

/// ProxySQL's form of a checksum: of nothing it is `0x00`. The same for the same rows, in whatever
/// order they come.
fn checksum_of(reply: &Reply) -> String {
    let Reply::Rows(grid) = reply else {
        return "0x00".into();
    };
    if grid.is_empty() {
        return "0x00".into();
    }
    let mut rows: Vec<String> = grid
        .rows()
        .map(|row| row.into_iter().map(|cell| format!("{cell:?}\n")).collect())
        .collect();
    rows.sort_unstable();
    let text = rows.concat();
    format!("0x{:016X}", sql::spooky::hash64(text.as_bytes(), 0))
}

/// `$$` is no name, as on a server.
fn no_such_name() -> Said {
    let words = "Unknown column '$$' in 'field list'";
    Said::Coded(1054, "42S22", words.into())
}
