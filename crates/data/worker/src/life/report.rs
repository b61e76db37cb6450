//! Reports to the control plane: numbers and rows of the tables that an operator reads.

use crate::core::Core;
use crate::core::roster::Entry;
use crate::known::epoch::placed;
use backend::Hold;
use bridge::{AddressRow, Ask, CoreRow, HeldRow, ProcessRow, Report, UserRow};
use rt::Address;

impl Core {
    /// Rows of `stats_millrace_addresses`.
    fn report_addresses(&self) -> Vec<AddressRow> {
        let (epoch, observed) = (self.epoch(), self.observed.borrow());
        let placed = placed(&epoch.snapshot, &observed);
        let all = topology::addresses(&epoch.snapshot.servers, &observed, &placed);
        let row = |one: topology::Address| {
            let (seen, key) = (observed.of(&one.key), &one.key);
            let (used, free) = self.pools.connections_at(&one.host, &key.host, key.port);
            AddressRow {
                port: key.port,
                address: key.host.clone(),
                in_use: one.why.is_none(),
                why: one.why.map(|why| why.to_string()),
                health: seen.reach.name(),
                ping_us: seen.ping_us,
                uuid: seen.uuid.clone(),
                used,
                free,
                host: one.host,
            }
        };
        all.into_iter().map(row).collect()
    }

    pub(crate) fn report(&self, what: Ask, reset: bool) -> Report {
        match what {
            Ask::Global => Report::Global(self.counts()),
            Ask::Pool => Report::Pool(self.pools.report(reset)),
            Ask::Processes => Report::Processes(self.processes()),
            // They are listed piece by piece.
            Ask::Digests => Report::Digests(Vec::new()),
            Ask::Hostgroups => Report::Hostgroups(self.latencies.rows(reset)),
            Ask::Choice => Report::Choice(self.pools.report_choices()),
            Ask::Addresses => Report::Addresses(self.report_addresses()),
            Ask::Admission => Report::Admission(self.pools.report_admission()),
            Ask::Concurrency => Report::Concurrency(self.pools.report_concurrency()),
            Ask::HostgroupPool => Report::HostgroupPool(self.pools.report_groups()),
            Ask::Rules => Report::Rules(self.epoch().hits(reset)),
            Ask::Commands => Report::Commands(self.commands.rows(reset)),
            Ask::Users => Report::Users(
                self.users
                    .borrow()
                    .iter()
                    .map(|(user, n)| UserRow {
                        username: user.as_ref().into(),
                        connections: *n,
                    })
                    .collect(),
            ),
            Ask::Errors => Report::Errors(self.errors.rows(reset)),
            Ask::QueryCache => Report::QueryCache(Vec::new()),
            Ask::Prepared => Report::Prepared(Vec::new()),
            Ask::FreeConnections => Report::FreeConnections(self.pools.free_connections()),
            Ask::Mirror => Report::Mirror(self.verdicts.rows(reset)),
            Ask::Hooks => Report::Hooks(self.scripting.rows(reset)),
            Ask::Shards => Report::Shards(self.epoch().spreads(reset)),
            Ask::ShardDdl => Report::ShardDdl(self.in_turn.rows(reset)),
            Ask::Alarms => Report::Alarms(self.alarms.rows(reset)),
            Ask::Core => Report::Cores(vec![self.row(reset)]),
            Ask::ClientHosts => {
                // All cores have the same.
                let rows = if self.index == 0 {
                    self.hosts.rows()
                } else {
                    Vec::new()
                };
                if reset {
                    self.hosts.flush();
                }
                Report::ClientHosts(rows)
            }
        }
    }

    fn row(&self, reset: bool) -> CoreRow {
        let turns = self.rt.turns(reset);
        CoreRow {
            core: self.index,
            sessions: self.roster.len() as u64,
            tasks: self.rt.tasks() as u64,
            turns: turns.count,
            busy_us: turns.busy_us,
            longest_us: turns.longest_us,
            longest_cpu_us: turns.longest_cpu_us,
            long: turns.long,
            long_cpu: turns.long_cpu,
        }
    }

    fn processes(&self) -> Vec<ProcessRow> {
        let now = self.rt.now();
        let extended = self
            .epoch()
            .snapshot
            .variables
            .mysql_show_processlist_extended
            > 0;
        let rows = self.roster.all().into_iter().map(|entry| {
            let server = entry.server.borrow();
            let (local_host, local_port) = match server.as_ref().map(|(_, local)| local) {
                Some(Address::Tcp(at)) => (at.ip().to_string(), at.port()),
                Some(Address::Unix(path)) => (path.display().to_string(), 0),
                None => (String::new(), 0),
            };
            let held = entry.holding.borrow();
            let here = held
                .iter()
                .filter(|held| Some(held.hostgroup) == entry.hostgroup.get());
            let flags = here.flat_map(|held| held.holds.iter()).map(Hold::flag);
            let status_flags = flags.fold(0, |all, flag| all | flag);
            let held = held.iter().map(|held| HeldRow {
                hostgroup: held.hostgroup,
                host: held.place.host().clone(),
                port: held.place.server().port,
                server_thread_id: held.server_thread_id,
                holds: held.holds.iter().map(|hold| format!("{hold:?}")).collect(),
                held_ms: u64::try_from((now - held.since).as_millis()).unwrap_or(u64::MAX),
            });
            ProcessRow {
                held: held.collect(),
                status_flags,
                core: self.index,
                session: entry.id,
                user: entry.user.borrow().to_string(),
                schema: entry.schema.borrow().to_string(),
                client_host: entry.client.0.clone(),
                client_port: entry.client.1,
                hostgroup: entry.hostgroup.get(),
                local_host,
                local_port,
                server_host: server
                    .as_ref()
                    .map_or_else(String::new, |(place, _)| place.host().to_string()),
                server_port: server.as_ref().map_or(0, |(place, _)| place.server().port),
                command: entry.command.get(),
                time_ms: u64::try_from((now - entry.since.get()).as_millis()).unwrap_or(u64::MAX),
                info: entry.info(),
                attributes: if extended {
                    attributes(&entry)
                } else {
                    Vec::new()
                },
            }
        });
        rows.collect()
    }
}

/// Returns what the client of a session has said of itself.
fn attributes(entry: &Entry) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    entry
        .attributes
        .borrow()
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}
