//! Servers that do not tell what causal reads have to know: GTIDs of what sessions write, or a log with all
//! that was executed. Each is named once, with the rules and splits whose reads it would not serve.
//!
//! docs/features/causal-reads.md

use crate::Monitor;
use crate::watch::who_asks;
use config::{CausalReads, Snapshot};
use line::{Failed, Line};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use topology::ServerKey;

/// Servers are asked anew after this: somebody may have changed what they are.
const PAUSE: Duration = Duration::from_secs(60);
/// Time that a server has for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A question for the variables that matter. A server leaves out those that it does not have.
const QUESTION: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('gtid_mode', 'log_bin', 'log_slave_updates', \
                        'log_replica_updates', 'session_track_gtids', 'session_track_system_variables')";

/// Variables of a server.
struct Told {
    is_mariadb: bool,
    variables: BTreeMap<String, String>,
}

impl Told {
    fn is_on(&self, name: &str) -> bool {
        let value = self.variables.get(name);
        value.is_some_and(|value| value.eq_ignore_ascii_case("ON") || value == "1")
    }

    fn has(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// Why no GTID is known of what sessions write there.
    fn hides_writes(&self) -> Option<String> {
        let (tracks, way) = match self.is_mariadb {
            true => (self.has("session_track_system_variables"), "variables"),
            false => (self.has("session_track_gtids"), "GTIDs"),
        };
        if !tracks {
            return Some(format!("it does not track {way} of sessions"));
        }
        self.has_no_gtids()
    }

    /// Why nobody knows what can be read there.
    fn hides_reads(&self) -> Option<String> {
        let updates = ["log_replica_updates", "log_slave_updates"];
        let all = updates.iter().any(|name| self.is_on(name));
        let name = updates.iter().find(|name| self.has(name));
        self.has_no_gtids()
            .or_else(|| match (self.is_on("log_bin"), name) {
                (false, _) => Some("log_bin is OFF".to_owned()),
                (true, Some(name)) if !all => Some(format!(
                    "{name} is OFF: its log has only what was written there"
                )),
                _ => None,
            })
    }

    fn has_no_gtids(&self) -> Option<String> {
        match self.variables.get("gtid_mode") {
            _ if self.is_mariadb => (!self.is_on("log_bin")).then(|| "log_bin is OFF".to_owned()),
            Some(mode) if mode == "ON" => None,
            Some(mode) => Some(format!("gtid_mode is {mode}")),
            None => Some("it has no gtid_mode".to_owned()),
        }
    }
}

/// Words about a server and reads that it does not serve, or that nobody else does because of it.
type Words = BTreeMap<(ServerKey, String), String>;

/// Looks for as long as the monitor runs, and at each LOAD.
pub(crate) async fn look(monitor: Rc<Monitor>) {
    let mut before = Words::new();
    loop {
        let snapshot = monitor.snapshot();
        let now = words(&monitor, &snapshot, &before).await;
        for (about, words) in &now {
            if before.get(about) != Some(words) {
                monitor.note(words);
            }
        }
        before = now;
        let _rung_or_time = rt::select(monitor.rt.sleep(PAUSE), monitor.loads.heard()).await;
    }
}

/// Asks all servers that causal reads have to do with. `before`: what was said of those that do not answer.
async fn words(monitor: &Monitor, snapshot: &Snapshot, before: &Words) -> Words {
    let all = snapshot.servers.causal_reads(&snapshot.rules);
    let mut told: BTreeMap<ServerKey, Option<Told>> = BTreeMap::new();
    let mut now = Words::new();
    for reads in &all {
        for (hostgroup, is_source) in [(reads.writes, true), (reads.reads, false)] {
            for server in servers_in(monitor, hostgroup) {
                if !told.contains_key(&server) {
                    let answer = ask(monitor, snapshot, &server).await;
                    told.insert(server.clone(), answer.ok());
                }
                let about = (server.clone(), format!("{} {is_source}", reads.of));
                let words = match &told[&server] {
                    None => before.get(&about).cloned(),
                    Some(told) => said(reads, &server, told, is_source),
                };
                now.extend(words.map(|words| (about, words)));
            }
        }
    }
    now
}

fn said(reads: &CausalReads, server: &ServerKey, told: &Told, is_source: bool) -> Option<String> {
    let CausalReads { of, reads, writes } = reads;
    let (why, which) = match is_source {
        true => (
            told.hides_writes()?,
            "tells no GTIDs of what sessions write",
        ),
        false => (told.hides_reads()?, "does not tell what can be read there"),
    };
    let hostgroup = if is_source { writes } else { reads };
    let follows = match is_source {
        true => format!("reads of sessions that wrote there go to hostgroup {writes}"),
        false => format!("it serves no reads that must see writes in hostgroup {writes}"),
    };
    Some(format!(
        "{server} of hostgroup {hostgroup} {which}, {why}: by {of}, {follows}"
    ))
}

/// Servers that are in a hostgroup now.
fn servers_in(monitor: &Monitor, hostgroup: u32) -> BTreeSet<ServerKey> {
    let placed = monitor.placed.borrow();
    let places = placed.hostgroups.get(&hostgroup).into_iter().flatten();
    places.map(|place| ServerKey::of(&place.server)).collect()
}

async fn ask(monitor: &Monitor, snapshot: &Snapshot, server: &ServerKey) -> Result<Told, Failed> {
    let who = who_asks(server, snapshot, ANSWERS_WITHIN);
    let host = monitor.host_of(server);
    let mut line = Line::open(&monitor.rt, &host, server.port, &who).await?;
    let rows = line.ask(QUESTION).await?;
    let text = |cell: &Option<Vec<u8>>| {
        String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned()
    };
    let pairs = rows.iter().filter_map(|row| match &row[..] {
        [name, value] => Some((text(name), text(value))),
        _ => None,
    });
    Ok(Told {
        is_mariadb: line.version().contains("MariaDB"),
        variables: pairs.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(is_mariadb: bool, variables: &[(&str, &str)]) -> [String; 2] {
        let variables = variables.iter();
        let told = Told {
            is_mariadb,
            variables: variables
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        [told.hides_writes(), told.hides_reads()].map(Option::unwrap_or_default)
    }

    #[test]
    fn a_server_says_why_it_does_not_tell() {
        let gtids = ("gtid_mode", "ON");
        let (tracks, logs) = (("session_track_gtids", "OFF"), ("log_bin", "ON"));
        let all = ("log_replica_updates", "ON");
        assert_eq!(said_of(false, &[gtids, tracks, logs, all]), ["", ""]);
        let own = ("log_replica_updates", "OFF");
        let words = "log_replica_updates is OFF: its log has only what was written there";
        assert_eq!(said_of(false, &[gtids, tracks, logs, own]), ["", words]);
        let old = [gtids, tracks, logs, ("log_slave_updates", "ON")];
        assert_eq!(said_of(false, &old), ["", ""]);
        let none = ("log_bin", "OFF");
        assert_eq!(
            said_of(false, &[gtids, tracks, none, all]),
            ["", "log_bin is OFF"]
        );
        let off = "gtid_mode is ON_PERMISSIVE";
        let permissive = ("gtid_mode", "ON_PERMISSIVE");
        assert_eq!(said_of(false, &[permissive, tracks, logs, all]), [off, off]);
        let untracked = "it does not track GTIDs of sessions";
        assert_eq!(said_of(false, &[gtids, logs, all]), [untracked, ""]);
        assert_eq!(said_of(false, &[tracks]), ["it has no gtid_mode"; 2]);
        // A MariaDB.
        let tracks = ("session_track_system_variables", "autocommit");
        let (all, own) = (("log_slave_updates", "1"), ("log_slave_updates", "OFF"));
        assert_eq!(said_of(true, &[tracks, logs, all]), ["", ""]);
        let words = "log_slave_updates is OFF: its log has only what was written there";
        assert_eq!(said_of(true, &[tracks, logs, own]), ["", words]);
        assert_eq!(said_of(true, &[tracks, all]), ["log_bin is OFF"; 2]);
        let untracked = "it does not track variables of sessions";
        assert_eq!(said_of(true, &[logs, all]), [untracked, ""]);
    }
}
