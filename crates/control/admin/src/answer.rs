//! From a statement to its answer: understand it, refresh what it reads, do it.

use crate::cluster::{Arrived, Reach, Share};
use crate::commands::{
    self, Assignment, Command, Layer, OfFleet, Question, Subject, Verb, literal,
};
use crate::engine::{Reply, STATS_VALUE_BYTES, SqlError, View};
use crate::grid::Grid;
use crate::observe::{self, Process};
use crate::parts::Sight;
use crate::said::{Asker, Said, because};
use crate::shared::{Clients, Shared};
use crate::tables::{Kind, Module, Observe, Role, Schema, TableCopy};
use crate::taken::Taken;
use crate::{access, build, cluster, file, layers, parts, private, route};
use bridge::{
    Ask, Check, Done, Facts, GtidRow, LogRow, Report, RunRow, ToMonitor, ToScheduler, ToStats,
};
use config::{Refusal, Serves, Snapshot};
use rt::mailbox;
use rusqlite::types::Value;
use std::io;
use std::path::Path;
use std::time::Duration;
use topology::{Policy, placed};

/// So long the monitor, or the scheduler, may take to answer.
const MONITOR_ANSWERS: Duration = Duration::from_secs(5);

/// Time in which all metrics are to be written.
const METRICS_WITHIN: Duration = Duration::from_secs(30);

/// Warnings about a file in the answer of its LOAD; the log has all.
const WARNINGS_SAID_MAX: usize = 100;

/// Rows and counts that threads beside the cores have told.
#[derive(Default)]
struct Beside {
    gtids: Vec<GtidRow>,
    logs: Vec<LogRow>,
    runs: Vec<RunRow>,
    moves: Vec<bridge::MoveRow>,
    monitor: Done,
}

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
            Command::Query(sql) => {
                let sql = first_of(&sql);
                self.refresh(asker.view, sql, taken).await?;
                Ok(self
                    .engine(asker.view)
                    .borrow()
                    .query(sql, values, |name| self.place(asker, name))?)
            }
            Command::Blank => Err(Said::Sql("not an error".into())),
            Command::Accept => Ok(Reply::done()),
            Command::Use(schema) => self.use_schema(&schema).map(|()| Reply::done()),
            Command::Set(assignment) => self.set(asker.view, &assignment),
            Command::Variables(asked) => Ok(self.variables(asker.view, &asked)),
            Command::Move { module, from, to } => self.move_module(module, from, to).await,
            Command::Fleet(of) => self.of_fleet(of).await,
            Command::LoadConfig(module) => self.load_config(module),
            Command::LoadUser(name) => self.load_user(&name).await,
            Command::WriteConfig { path, select } => self.write_config(&path, select),
            Command::ShowConfig => Ok(Reply::Rows(Grid::one(
                "Data",
                file::saved(self.engine.borrow().conn())?,
            ))),
            Command::Checksum(subject) => self.checksum(asker, &subject).await,
            Command::ClusterNode { uuid, ifaces } => {
                self.cluster.greeted(
                    asker.id,
                    (&asker.host, asker.port),
                    &uuid,
                    &ifaces,
                    self.now_s(),
                );
                Ok(Reply::done())
            }
            Command::ClusterPull(name) => Ok(Reply::Rows(self.give(&name).await?)),
            Command::Proxysql(verb) => self.proxysql(verb).await,
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
            Command::Metrics => self.metrics().await,
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
            OfFleet::LoadHere(module) => self.load_as(module, Reach::Here).await.map(Reply::said),
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

    async fn sql(
        &self,
        asker: &Asker,
        sql: &str,
        values: &[Value],
        taken: &mut Vec<Taken>,
    ) -> Result<Reply, Said> {
        let sql = first_of(sql);
        let named = self.refresh(asker.view, sql, taken).await?;
        let engine = self.engine(asker.view).borrow();
        let before = engine.conn().total_changes();
        let reply = engine.run(sql, values);
        if engine.conn().total_changes() != before {
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
        let known = [
            Schema::Main,
            Schema::Disk,
            Schema::Stats,
            Schema::Monitor,
            Schema::StatsHistory,
        ];
        // ProxySQL takes every name; drivers that are told `admin` or `information_schema` must not
        // fail.
        let fine = known
            .iter()
            .any(|known| known.name().eq_ignore_ascii_case(schema))
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

    // Reading

    /// Fills the tables that a statement names from what is in force and from the cores; which
    /// those are.
    async fn refresh(
        &self,
        view: View,
        sql: &str,
        taken: &mut Vec<Taken>,
    ) -> Result<Vec<TableCopy>, Said> {
        let mut named: Vec<TableCopy> = self
            .engine(view)
            .borrow()
            .filled_tables_in(sql)
            .into_iter()
            .cloned()
            .collect();
        if named.iter().any(|copy| copy.role == Role::Reset) {
            // Nobody would see what was counted if the statement is refused, asks for columns, or
            // has the name in a text.
            let read = self.engine(view).borrow().tables_read_by(sql)?;
            named.retain(|copy| {
                copy.role != Role::Reset || read.contains(&copy.name.to_ascii_lowercase())
            });
        }
        for copy in &named {
            self.fill(view, copy, taken).await?;
        }
        Ok(named)
    }

    /// Asks the threads beside the cores for what this table shows of them.
    async fn ask_beside(&self, observe: Observe) -> Result<Beside, Said> {
        let mut beside = Beside::default();
        match observe {
            Observe::Gtids => beside.gtids = self.ask_monitor(ToMonitor::Gtids).await?,
            Observe::Logs => beside.logs = self.ask_monitor(ToMonitor::Logs).await?,
            Observe::Global => beside.monitor = self.ask_monitor(ToMonitor::Counts).await?,
            Observe::Scheduled => beside.runs = self.ask_scheduler().await?,
            Observe::Moves => beside.moves = self.moves.rows(),
            _ => {}
        }
        Ok(beside)
    }

    async fn fill_observed(
        &self,
        view: View,
        name: &str,
        (observe, role): (Observe, Role),
        taken: &mut Vec<Taken>,
    ) -> Result<(), Said> {
        let now;
        let report = match observe::ask(observe) {
            Some(ask) if role == Role::Reset => {
                taken.push(self.cores.take(ask).await?);
                taken.last().map(Taken::report)
            }
            Some(ask) => {
                now = self.cores.ask(ask).await?;
                Some(&now)
            }
            None => None,
        };
        let beside = self.ask_beside(observe).await?;
        let engine = self.engine(view).borrow();
        let process = Process {
            monitor: beside.monitor,
            ..self.process(engine.conn())
        };
        let snapshot = self.snapshot.borrow();
        engine.transaction(|conn| match (report, observe) {
            (Some(Report::Digests(rows)), Observe::DigestLatency) => {
                observe::digest_latency(conn, name, rows)
            }
            (Some(Report::Commands(rows)), Observe::CommandLatency) => {
                observe::command_latency(conn, name, rows)
            }
            (Some(Report::Processes(rows)), Observe::Holds) => observe::holds(conn, name, rows),
            (Some(Report::Global(counts)), Observe::Memory) => {
                observe::memory(conn, name, &process, counts, &snapshot)
            }
            (Some(report), _) => observe::report(conn, name, report, &snapshot, &process),
            (
                None,
                Observe::PeerChecksums
                | Observe::PeerClients
                | Observe::PeerMetrics
                | Observe::PeerStatus,
            ) => self.fill_peers(conn, name, observe, view),
            (None, Observe::Fleet) => self.fill_fleet(conn, name),
            (None, Observe::Shares) => self.fill_shares(conn, name),
            (None, Observe::Gtids) => observe::gtids(conn, name, &beside.gtids),
            (None, Observe::Logs) => observe::rows(conn, name, &beside.logs),
            (None, Observe::Scheduled) => observe::rows(conn, name, &beside.runs),
            (None, Observe::Messages) => {
                observe::messages(conn, name, &(self.hooks.messages)(role == Role::Reset))
            }
            (None, Observe::Moves) => observe::rows(conn, name, &beside.moves),
            (None, Observe::Variables) => observe::variables(conn, name, &snapshot, view),
            (None, Observe::StatsVariables) => observe::stats_variables(conn, name, &snapshot),
            (None, _) => Ok(conn.execute(&format!("DELETE FROM {name}"), []).map(drop)?),
        })?;
        Ok(())
    }

    async fn fill(&self, view: View, copy: &TableCopy, taken: &mut Vec<Taken>) -> Result<(), Said> {
        let name = match view {
            View::Admin => format!("{}.{}", copy.schema.name(), copy.name),
            View::Stats => format!("main.{}", copy.name),
        };
        match (copy.table.kind, copy.role) {
            (Kind::Observed { observe, .. }, role) => {
                self.fill_observed(view, &name, (observe, role), taken)
                    .await?;
            }
            (Kind::Checksums, _) => self.fill_checksums().await?,
            (_, Role::Runtime) => {
                self.confirmed(&copy.name)?;
                let sight = self.sight_for(copy.table.name).await?;
                // While that was awaited, another configuration may have come.
                let generation = self.confirmed(&copy.name)?;
                let is_large = parts::is_large(copy.table.name);
                if is_large && self.filled.borrow().get(&copy.name) == Some(&generation) {
                    return Ok(());
                }
                let snapshot = self.snapshot.borrow();
                self.engine.borrow().transaction(|conn| {
                    observe::runtime(conn, copy.table.name, &snapshot, &sight)
                })?;
                self.filled
                    .borrow_mut()
                    .insert(copy.name.clone(), generation);
            }
            (Kind::Monitor, _) => {
                self.fill_checks(view, copy.table.name).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// How the servers are, for a `runtime_` table that shows it.
    async fn sight_for(&self, table: &str) -> Result<Sight, Said> {
        if table != "mysql_servers" {
            return Ok(Sight::default());
        }
        Ok(Sight {
            pool: Some(self.cores.ask(Ask::Pool).await?),
            observed: self.ask_monitor(ToMonitor::Seen).await?,
        })
    }

    /// Fills a table of schema `monitor`; two of Aurora's have no rows yet.
    async fn fill_checks(&self, view: View, table: &str) -> Result<(), Said> {
        let Some(check) = Check::ALL.into_iter().find(|check| check.table() == table) else {
            return Ok(());
        };
        let asked = self.ask_monitor(|reply| ToMonitor::Checks { of: check, reply });
        let rows = asked.await?;
        // It is called so in both views.
        let name = format!("{}.{table}", Schema::Monitor.name());
        let engine = self.engine(view).borrow();
        engine.transaction(|conn| observe::checks(conn, &name, check, &rows))?;
        Ok(())
    }

    /// All metrics, as one text.
    async fn metrics(&self) -> Result<Reply, Said> {
        let (tell, told) = mailbox::channel(1);
        let reply = Box::new(move |text| drop(tell.try_send(text)));
        (self.hooks.stats)(ToStats::Metrics(reply));
        let told = self.rt.timeout(METRICS_WITHIN, told.recv()).await;
        let words = "the metrics were not written within 30 seconds; try again";
        let text = told.ok().flatten().ok_or(words)??;
        Ok(Reply::Rows(Grid::one("Data", text)))
    }

    /// Tells the thread of the statistics what only this one knows.
    pub(crate) fn tell_facts(&self) {
        let process = self.process(self.engine.borrow().conn());
        (self.hooks.stats)(ToStats::Facts(Facts {
            sqlite_bytes: process.sqlite_bytes.max(0).cast_unsigned(),
            rows_lost: process.rows_lost,
            paused: self.clients.get() != Clients::Welcome,
            cluster: process.cluster.to_vec(),
        }));
    }

    /// Asks for the last runs of the scheduler.
    async fn ask_scheduler(&self) -> Result<Vec<RunRow>, Said> {
        let (tell, told) = mailbox::channel(1);
        let reply = Box::new(move |runs| drop(tell.try_send(runs)));
        (self.hooks.scheduler)(ToScheduler::Runs(reply));
        let told = self.rt.timeout(MONITOR_ANSWERS, told.recv()).await;
        let words = "the scheduler has not answered within 5 seconds; try again";
        told.ok().flatten().ok_or_else(|| words.into())
    }

    /// Asks the monitor, and returns its answer.
    pub(crate) async fn ask_monitor<T: Send + 'static>(
        &self,
        letter: impl FnOnce(bridge::Reply<T>) -> ToMonitor,
    ) -> Result<T, Said> {
        let (tell, told) = mailbox::channel(1);
        (self.hooks.monitor)(letter(Box::new(move |answer| drop(tell.try_send(answer)))));
        let told = self.rt.timeout(MONITOR_ANSWERS, told.recv()).await;
        told.ok().flatten().ok_or_else(|| {
            Said::Sql("the monitor has not answered within 5 seconds; try again".to_owned())
        })
    }

    /// The generation that all cores work by, or why `table` cannot be shown.
    fn confirmed(&self, table: &str) -> Result<u64, Said> {
        let generation = self.snapshot.borrow().generation;
        match self.cores.behind() {
            0 => Ok(generation),
            behind => Err(Said::Sql(format!(
                "{table} would not be the truth: {behind} of {all} cores have not confirmed generation {generation} and work by \
                 an older one; try again",
                all = self.cores.len()
            ))),
        }
    }

    fn process(&self, conn: &rusqlite::Connection) -> Process {
        let pragma = |name: &str| {
            conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .unwrap_or_default()
        };
        Process {
            uptime_s: (self.rt.now() - self.started).as_secs(),
            cores: self.cores.len(),
            generation: self.snapshot.borrow().generation,
            sqlite_bytes: pragma("page_count") * pragma("page_size"),
            rows_lost: self.cores.lost(),
            stalls: (self.hooks.stalls)(),
            allocator: (self.hooks.allocator)(),
            cluster: self.cluster.counts(),
            monitor: Done::default(),
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

    // Changing

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

    async fn move_module(&self, module: Module, from: Layer, to: Layer) -> Result<Reply, Said> {
        let affected = match (from, to) {
            (Layer::Disk, _) => {
                let affected = layers::from_disk(&self.engine.borrow(), module)?;
                self.cluster
                    .edits_are_done(module, self.cluster.edited(module), false);
                affected
            }
            (_, Layer::Disk) => {
                self.settle_if_shared(module).await?;
                return self.save(module);
            }
            (Layer::Runtime, _) => {
                layers::from_runtime(&self.engine.borrow(), module, &self.snapshot.borrow())?;
                self.cluster
                    .edits_are_done(module, self.cluster.edits_of(module), true);
                0
            }
            (Layer::Memory, _) => {
                return self.load(module).await.map(Reply::said);
            }
        };
        Ok(Reply::Done {
            affected,
            info: String::new(),
        })
    }

    /// Everything can be saved; what will not be in force after a start is said.
    pub(crate) fn save(&self, module: Module) -> Result<Reply, Said> {
        let engine = self.engine.borrow();
        let mark = self.cluster.mark(module);
        let mark = mark
            .as_ref()
            .map(|(name, version, epoch, checksum)| (*name, *version, *epoch, checksum.as_str()));
        let affected = layers::to_disk(&engine, module, mark)?;
        let unusable = module
            .prefix()
            .map(|prefix| build::unusable_variables(engine.conn(), prefix))
            .transpose()?;
        let words: Vec<_> = unusable.iter().flatten().map(ToString::to_string).collect();
        let info = if words.is_empty() {
            String::new()
        } else {
            format!(
                "saved, but not in force after a start: {}",
                words.join("; ")
            )
        };
        if !info.is_empty() {
            (self.hooks.log)(&format!("SAVE {} TO DISK: {info}", module.words()));
        }
        Ok(Reply::Done { affected, info })
    }

    /// Loads a module. Returns what there is to say about it: what was taken and does less than it
    /// says, or only at the next start.
    pub(crate) async fn load(&self, module: Module) -> Result<String, Said> {
        self.load_as(module, Reach::All).await
    }

    pub(crate) async fn load_as(&self, module: Module, reach: Reach) -> Result<String, Said> {
        let (mut notices, share) = self.load_alone(module, reach).await?;
        notices.extend(self.told_by_fleet(share).await);
        Ok(notices.join("; "))
    }

    async fn load_alone(
        &self,
        module: Module,
        reach: Reach,
    ) -> Result<(Vec<String>, Option<Share>), Said> {
        let _alone = self.alone().await;
        self.refuse_lost_edit(module)?;
        let edits = self.cluster.edits_of(module);
        let now = self.snapshot.borrow().clone();
        let asked = module
            .prefix()
            .map(|prefix| parts::read_variables(self.engine.borrow().conn(), prefix))
            .transpose()?;
        let (next, notices) = self.build(module, now).await?;
        let mut notices: Vec<_> = notices.iter().map(ToString::to_string).collect();
        notices.extend(self.check_scripts(module, &next)?);
        let events = self.events_after(module, &next).await?;
        notices.extend(events.notice);
        notices.extend(self.cluster.told_apart(module, &next));
        notices.extend(self.told_algorithm().filter(|_| module == Module::Servers));
        notices.extend(
            next.variables
                .waiting_for_a_start(&self.snapshot.borrow().variables),
        );
        let share = self.share_load(module, &next, reach).await?;
        for notice in &notices {
            (self.hooks.log)(&format!("LOAD {} TO RUNTIME: {notice}", module.words()));
        }
        if let (Some(prefix), Some(asked)) = (module.prefix(), asked) {
            // Memory shows values as they are in force: `1` for a truth has become `true`. What was
            // set meanwhile waits for its own LOAD.
            self.engine.borrow().transaction(|conn| {
                layers::keep_as_in_force(conn, prefix, &next, &asked.into_iter().collect())
            })?;
        }
        // What is edited from the reading of memory on waits for its own LOAD.
        self.cluster.edits_are_done(module, edits, true);
        let entered = self.enter(module, next, None, events.ends).await;
        self.is_shared_now(share.as_ref());
        entered?;
        Ok((notices, share))
    }

    /// Refuses scripts that do not compile; what their authors should know.
    fn check_scripts(&self, module: Module, next: &Snapshot) -> Result<Vec<String>, Said> {
        let (mut notices, mut refused) = (Vec::new(), Vec::new());
        let all = next.scripts.active().iter();
        for script in all.filter(|_| module == Module::Scripts) {
            let refusal = |words| Refusal {
                table: "mysql_scripts",
                row: format!("script_name '{}'", script.name),
                column: "",
                words,
            };
            let checked = match script.serves {
                Serves::Buckets => {
                    let runner = next.scripts.given().1;
                    let checked = runner.check(&script.chunk, &script.text);
                    checked.map(|()| Vec::new())
                }
                Serves::Clients | Serves::Console => {
                    (self.hooks.check_script)(&script.chunk, &script.text)
                }
            };
            match checked {
                Ok(told) => notices.extend(told.into_iter().map(|one| refusal(one).to_string())),
                Err(words) => refused.push(refusal(words)),
            }
            for module in &script.modules {
                if let Err(words) = (self.hooks.check_script)(&module.chunk, &module.text) {
                    refused.push(refusal(words));
                }
            }
        }
        match refused.is_empty() {
            true => Ok(notices),
            false => Err(because(module.words(), &refused)),
        }
    }

    /// Once: a script that says DELETE, INSERT and LOAD would else put half of it into force
    /// everywhere.
    fn refuse_lost_edit(&self, module: Module) -> Result<(), Said> {
        let Some(words) = self.cluster.lost_edit(module, self.rt.now()) else {
            return Ok(());
        };
        (self.hooks.log)(&format!(
            "LOAD {} TO RUNTIME is refused: {words}",
            module.words()
        ));
        Err(Said::Sql(words))
    }

    /// A module that was made, and checked, into force; `theirs`: as another proxy has it.
    /// `ends_events`: nothing is logged from then on.
    pub(crate) async fn enter(
        &self,
        module: Module,
        next: Snapshot,
        theirs: Option<Arrived>,
        ends_events: bool,
    ) -> Result<(), Said> {
        if module == Module::AdminVariables {
            self.engine
                .borrow_mut()
                .set_read_only(next.variables.admin_read_only)?;
        }
        let logs = next.variables.logs();
        let put = self.put_in_force(module, next, theirs).await;
        if ends_events {
            // It is in force also where a core is late. What was answered before is still logged.
            let _late = self.cores.hand_over_events().await;
            self.log_like(logs).await?;
        }
        put
    }

    /// Builds what a LOAD of the module would put into force, and tells what there is to say about
    /// it.
    pub(crate) async fn build(
        &self,
        module: Module,
        now: Snapshot,
    ) -> Result<(Snapshot, Vec<Refusal>), Said> {
        let refused = |refused: Vec<Refusal>| because(module.words(), &refused);
        let read = build::read(&self.engine.borrow(), &now, module).map_err(refused)?;
        drop(now);
        let helpers = self.aside.helpers();
        let built = self.aside.done(move || read.build(&helpers)).await;
        let built = built
            .ok_or("a defect ended the LOAD; the log has it")?
            .map_err(refused)?;
        if module == Module::AdminVariables {
            // The addresses of the next start have been looked at; these are open until then.
            access::check_at(&built.0.variables, &self.open_at).map_err(refused)?;
            cluster::check_version(&built.0.variables).map_err(|one| refused(vec![one]))?;
        }
        Ok(built)
    }

    async fn load_user(&self, name: &str) -> Result<Reply, Said> {
        let (mut notices, share) = self.load_user_alone(name).await?;
        notices.extend(self.told_by_fleet(share).await);
        Ok(Reply::said(notices.join("; ")))
    }

    async fn load_user_alone(&self, name: &str) -> Result<(Vec<String>, Option<Share>), Said> {
        let _alone = self.alone().await;
        self.refuse_lost_edit(Module::Users)?;
        let built = build::one_user(&self.engine.borrow(), &self.snapshot.borrow(), name);
        let (next, notices) = built.map_err(|refused| because("MYSQL USER", &refused))?;
        let mut notices: Vec<_> = notices.iter().map(ToString::to_string).collect();
        notices.extend(self.cluster.told_apart(Module::Users, &next));
        let share = self.share_load(Module::Users, &next, Reach::All).await?;
        for notice in &notices {
            (self.hooks.log)(&format!("LOAD MYSQL USER TO RUNTIME: {notice}"));
        }
        let entered = self.put_in_force(Module::Users, next, None).await;
        self.is_shared_now(share.as_ref());
        entered?;
        Ok((notices, share))
    }

    async fn put_in_force(
        &self,
        module: Module,
        next: Snapshot,
        theirs: Option<Arrived>,
    ) -> Result<(), Said> {
        let generation = next.generation;
        let before = self.snapshot.replace(next.clone());
        self.cluster.loaded(module, theirs, &next, self.now_s());
        self.keeper.keep(module, &next);
        (self.hooks.in_force)(&next);
        self.aside.later(move || drop(before));
        let (confirmed, untold) = self.cores.load(&next, &self.aside).await;
        let all = self.cores.len();
        if confirmed == all {
            return Ok(());
        }
        let others = match untold {
            0 => "the others work by an older one until they come to it".to_owned(),
            _ => format!(
                "{untold} could not even be told, and work by an older one until it is loaded again"
            ),
        };
        Err(Said::Sql(format!(
            "only {confirmed} of {all} cores have confirmed generation {generation} in time; {others}"
        )))
    }

    fn load_config(&self, module: Module) -> Result<Reply, Said> {
        let file = self.config_file()?;
        let loaded = file::into_memory(&self.engine.borrow(), &file, &[module]);
        let told = loaded.map_err(|refused| because(module.words(), &refused))?;
        let mut warnings: Vec<_> = told.warnings.iter().map(ToString::to_string).collect();
        for warning in &warnings {
            let words = module.words();
            (self.hooks.log)(&format!("LOAD {words} FROM CONFIG: warning: {warning}"));
        }
        if warnings.len() > WARNINGS_SAID_MAX {
            let more = warnings.len() - WARNINGS_SAID_MAX;
            warnings.truncate(WARNINGS_SAID_MAX);
            warnings.push(format!("and {more} more, which are in the log"));
        }
        self.cluster
            .edits_are_done(module, self.cluster.edited(module), false);
        Ok(Reply::Done {
            affected: told.count,
            info: warnings.join("; "),
        })
    }

    fn write_config(&self, path: &str, select: bool) -> Result<Reply, Said> {
        if path.is_empty() {
            return Err(Said::Sql("ProxySQL Admin Error: empty file name".into()));
        }
        let text = file::saved(self.engine.borrow().conn())?;
        if let Err(error) = private::write(Path::new(path), &text) {
            let twice = if select { "" } else { "ProxySQL Admin Error: " };
            // ProxySQL's words for the most common.
            let why = if error.kind() == io::ErrorKind::NotFound {
                String::new()
            } else {
                format!(": {error}")
            };
            return Err(Said::Sql(format!("{twice}Cannot open file {path}{why}")));
        }
        let affected = if select { text.len() as u64 } else { 0 };
        Ok(Reply::Done {
            affected,
            info: format!("File {path} is saved."),
        })
    }

    async fn proxysql(&self, verb: Verb) -> Result<Reply, Said> {
        match verb {
            Verb::Start => self.start().await?,
            Verb::Stop => self.stop().await?,
            Verb::Restart => self.restart().await?,
            Verb::Pause => {
                self.accept(
                    Clients::Paused,
                    "ProxySQL MySQL module is already paused, impossible to pause",
                )
                .await?
            }
            Verb::Resume => {
                self.accept(
                    Clients::Welcome,
                    "ProxySQL MySQL module is not paused, impossible to resume",
                )
                .await?
            }
            Verb::Shutdown => (self.hooks.shutdown)(false),
            Verb::Kill => (self.hooks.shutdown)(true),
            Verb::ReadOnly => self.engine.borrow_mut().set_read_only(true)?,
            Verb::ReadWrite => self.engine.borrow_mut().set_read_only(false)?,
            Verb::FlushLogs => self.flush_logs().await?,
            Verb::ReloadTls => self.reload_tls().await?,
            Verb::FlushConfigDb => self.engine.borrow().reopen_disk()?,
        }
        Ok(Reply::done())
    }

    /// PAUSE and RESUME. What some cores could not be told can be said again, and taken back.
    async fn accept(&self, wanted: Clients, already: &str) -> Result<(), Said> {
        let _alone = self.alone().await;
        match self.clients.get() {
            Clients::Stopped => {
                let verb = match wanted {
                    Clients::Paused => "pause",
                    _ => "resume",
                };
                let words = "ProxySQL MySQL module not running, impossible to";
                return Err(Said::Sql(format!("{words} {verb}")));
            }
            now if now == wanted => return Err(already.into()),
            _ => {}
        }
        self.tell_clients(wanted).await
    }

    /// `PROXYSQL START`, after a STOP or `--no-start`.
    async fn start(&self) -> Result<(), Said> {
        let _alone = self.alone().await;
        if self.clients.get() != Clients::Stopped {
            return Err("ProxySQL already started".into());
        }
        (self.hooks.log)("PROXYSQL START: clients are let in");
        self.tell_clients(Clients::Welcome).await
    }

    /// `PROXYSQL STOP`: no listener, no client; this port stays.
    async fn stop(&self) -> Result<(), Said> {
        let _alone = self.alone().await;
        if self.clients.get() == Clients::Stopped {
            return Err("ProxySQL already stopped".into());
        }
        (self.hooks.log)("PROXYSQL STOP: nobody is served until PROXYSQL START");
        self.close().await
    }

    /// `PROXYSQL RESTART`: every client ends, and whoever comes then is served by what is in force.
    async fn restart(&self) -> Result<(), Said> {
        let _alone = self.alone().await;
        (self.hooks.log)("PROXYSQL RESTART: all clients are ended");
        if self.clients.get() != Clients::Stopped {
            self.close().await?;
        }
        self.tell_clients(Clients::Welcome).await
    }

    async fn close(&self) -> Result<(), Said> {
        self.clients.set(Clients::Stopped);
        let words =
            "not all cores have said that their clients are gone; PROXYSQL START is possible";
        self.cores.close().await.map_err(|_silent| words.into())
    }

    async fn tell_clients(&self, wanted: Clients) -> Result<(), Said> {
        self.clients.set(Clients::PartlyWelcome);
        let untold = self.cores.accept(wanted == Clients::Welcome).await;
        if untold > 0 {
            return Err(Said::Sql(format!(
                "{untold} of {} cores could not be told; try again",
                self.cores.len()
            )));
        }
        self.clients.set(wanted);
        Ok(())
    }

    async fn reload_tls(&self) -> Result<(), Said> {
        let _alone = self.alone().await;
        let Some(renewed) = (self.hooks.reload_tls)()? else {
            return Ok(());
        };
        let untold = self.cores.reload_tls(&renewed).await;
        *self.acceptor.borrow_mut() = Some(renewed.acceptor);
        match untold {
            0 => Ok(()),
            _ => Err(Said::Sql(format!(
                "{untold} of {} cores could not be told and use the certificate of before, all others the new one; try again",
                self.cores.len()
            ))),
        }
    }

    // Telling

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
        let observed = self.ask_monitor(ToMonitor::Seen).await?;
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
