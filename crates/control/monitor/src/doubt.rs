//! What is in doubt: branches of changes of several partitions that are prepared, and that nobody
//! ends. Their proxy or their server went away. They are ended as the table of outcomes has it; where
//! it has nothing, an abort is written first, so that nobody commits later.
//!
//! docs/decisions/0038-all-partitions-or-none.md

use crate::Monitor;
use crate::watch::who_asks;
use config::Snapshot;
use line::{Failed, Line, Rows};
use shards::xa::{Branch, Decisions, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use topology::{Observed, Policy, ServerKey, Serves};

/// So often it is looked for.
const LOOKS: Duration = Duration::from_secs(3);
/// Looks in which a branch was there before it is ended: whoever makes it has so much time.
const LOOKS_BEFORE: u32 = 2;
/// So long a server may take for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// There is an outcome already: a duplicate key.
const IS_DECIDED: u16 = 1062;
/// No such branch: somebody else has ended it, or its connection still lives.
const IS_ENDED: u16 = 1397;

/// Whoever looks for what is in doubt.
#[derive(Default)]
struct Settler {
    /// How often each branch was seen, on which server.
    seen: BTreeMap<(ServerKey, Branch), u32>,
    lines: BTreeMap<ServerKey, Line>,
    /// Last complaint about each server that an operator was told.
    told: BTreeMap<ServerKey, String>,
}

/// Looks for as long as the monitor runs.
pub(crate) async fn settle(monitor: Rc<Monitor>) {
    let mut settler = Settler::default();
    loop {
        monitor.rt.sleep(LOOKS).await;
        let snapshot = monitor.snapshot();
        match snapshot.variables.decisions() {
            Some(decisions) if !monitor.off => {
                settler.look(&monitor, &snapshot, &decisions).await;
            }
            _ => settler = Settler::default(),
        }
    }
}

impl Settler {
    /// Looks once at every server on which a transaction may have a branch.
    async fn look(&mut self, monitor: &Monitor, snapshot: &Snapshot, decisions: &Decisions) {
        let servers = writers(monitor, snapshot, &snapshot.hostgroups_of_branches());
        self.lines.retain(|key, _| servers.contains(key));
        let mut seen = BTreeMap::new();
        for server in &servers {
            match self.ask(monitor, snapshot, server, "XA RECOVER").await {
                Ok(rows) => {
                    self.told.remove(server);
                    for branch in rows.iter().filter_map(|row| Branch::recovered(row)) {
                        let at = (server.clone(), branch);
                        let before = self.seen.get(&at).copied().unwrap_or(0);
                        seen.insert(at, before + 1);
                    }
                }
                Err(failed) => {
                    // Nobody knows what is there: what was seen is still so.
                    let same = self.seen.iter().filter(|((key, _), _)| key == server);
                    seen.extend(same.map(|(at, looks)| (at.clone(), *looks)));
                    self.tell(monitor, server, &failed);
                }
            }
        }
        self.seen = seen;
        let due = self.seen.iter().filter(|(_, looks)| **looks > LOOKS_BEFORE);
        let due: Vec<_> = due.map(|(at, _)| at.clone()).collect();
        for (server, branch) in due {
            self.end(monitor, snapshot, decisions, (&server, &branch))
                .await;
        }
    }

    /// Ends one branch, if the outcome is known.
    async fn end(
        &mut self,
        monitor: &Monitor,
        snapshot: &Snapshot,
        decisions: &Decisions,
        (server, branch): (&ServerKey, &Branch),
    ) {
        let homes = BTreeSet::from([decisions.hostgroup]);
        let Some(table) = writers(monitor, snapshot, &homes).pop_first() else {
            return;
        };
        let name = &branch.transaction;
        let outcome = match self
            .outcome(monitor, snapshot, decisions, (&table, name))
            .await
        {
            Ok(Some(outcome)) => outcome,
            Ok(None) => return,
            Err(failed) => return self.tell(monitor, &table, &failed),
        };
        let text = outcome.of_branch(branch);
        match self.ask(monitor, snapshot, server, &text).await {
            Ok(_) => monitor.note(&format!(
                "{name} was in doubt at {server}, hostgroup {}: {}",
                branch.hostgroup,
                match outcome {
                    Outcome::Commit => "committed, as was decided",
                    Outcome::Abort => "rolled back, as nothing was decided",
                }
            )),
            Err(Failed::Said { code: IS_ENDED, .. }) => {}
            Err(failed) => self.tell(monitor, server, &failed),
        }
    }

    /// The outcome of a transaction. An abort is written where there is none.
    async fn outcome(
        &mut self,
        monitor: &Monitor,
        snapshot: &Snapshot,
        decisions: &Decisions,
        (table, name): (&ServerKey, &str),
    ) -> Result<Option<Outcome>, Failed> {
        let record = decisions.record(name, Outcome::Abort);
        match self.ask(monitor, snapshot, table, &record).await {
            Ok(_) => return Ok(Some(Outcome::Abort)),
            Err(Failed::Said {
                code: IS_DECIDED, ..
            }) => {}
            Err(failed) => return Err(failed),
        }
        let question = decisions.question(name);
        let rows = self.ask(monitor, snapshot, table, &question).await?;
        let word = rows.first().and_then(|row| row.first()?.as_deref());
        Ok(word.and_then(Outcome::of))
    }

    /// Asks a server, over a connection that stays open.
    async fn ask(
        &mut self,
        monitor: &Monitor,
        snapshot: &Snapshot,
        server: &ServerKey,
        text: &str,
    ) -> Result<Rows, Failed> {
        let who = who_asks(server, snapshot, ANSWERS_WITHIN);
        let mut line = match self.lines.remove(server).filter(|line| line.is_as(&who)) {
            Some(line) => line,
            None => {
                let host = monitor.host_of(server);
                Line::open(&monitor.rt, &host, server.port, &who).await?
            }
        };
        let answer = line.ask(text).await;
        if !matches!(answer, Err(Failed::Lost(_))) {
            self.lines.insert(server.clone(), line);
        }
        answer
    }

    /// Tells an operator, once for each complaint.
    fn tell(&mut self, monitor: &Monitor, server: &ServerKey, failed: &Failed) {
        let words = failed.to_string();
        let before = self.told.insert(server.clone(), words.clone());
        if before.as_deref() != Some(&*words) {
            monitor.note(&format!(
                "what may be in doubt at {server} is not known, or not ended: {words}"
            ));
        }
    }
}

/// The servers that serve in these hostgroups, each once.
fn writers(
    monitor: &Monitor,
    snapshot: &Snapshot,
    hostgroups: &BTreeSet<u32>,
) -> BTreeSet<ServerKey> {
    let observed = monitor.observed.borrow().clone();
    those_who_serve(snapshot, &observed, hostgroups)
}

/// The server that gets the writes of a hostgroup, as checks have seen the servers; none if nobody does.
#[must_use]
pub fn writer_of(snapshot: &Snapshot, observed: &Observed, hostgroup: u32) -> Option<ServerKey> {
    those_who_serve(snapshot, observed, &BTreeSet::from([hostgroup])).pop_first()
}

fn those_who_serve(
    snapshot: &Snapshot,
    observed: &Observed,
    hostgroups: &BTreeSet<u32>,
) -> BTreeSet<ServerKey> {
    let policy = Policy::of(&snapshot.variables);
    let placed = topology::placed(&snapshot.servers, observed, &policy);
    let places = hostgroups
        .iter()
        .filter_map(|hostgroup| placed.hostgroups.get(hostgroup))
        .flatten();
    places
        .filter(|place| place.serves == Serves::Yes)
        .map(|place| ServerKey::of(&place.server))
        .collect()
}
