//! A partition for what moves it, or makes it: the server that takes its writes, the gate before it, and the map
//! that says where it is.

use crate::loading;
use crate::see::beside;
use crate::shared::Shared;
use crate::tables::Module;
use bridge::ToMonitor;
use mover::{Place, Record};
use shards::{Home, Map};
use std::time::Duration;

/// A server may take so long to be reached.
const REACHED_WITHIN: Duration = Duration::from_secs(5);
/// Time that a server may be silent: a chunk of a large table takes its time.
const SILENT_MAX: Duration = Duration::from_secs(120);
/// A gate that nobody opens opens by itself after this, besides the time of the cut.
const GATE_SLACK: Duration = Duration::from_secs(10);

/// The server of a hostgroup that takes writes.
pub(crate) async fn writer_of(shared: &Shared, hostgroup: u32) -> Result<Place, String> {
    let observed = beside::ask_monitor(shared, ToMonitor::Seen).await;
    let observed = observed.map_err(|said| said.words())?;
    let snapshot = shared.snapshot.borrow().clone();
    let key = monitor::writer_of(&snapshot, &observed, hostgroup)
        .ok_or_else(|| format!("no server of hostgroup {hostgroup} takes writes"))?;
    let mut who = monitor::who_asks(&key, &snapshot, REACHED_WITHIN);
    (who.silent, who.whole) = (SILENT_MAX, SILENT_MAX);
    Ok(Place {
        host: (*key.host).into(),
        port: key.port,
        who,
    })
}

/// As the data plane shows a partition, or the default one.
pub(crate) fn gate(table_shown: &str, partition: &str) -> String {
    match partition {
        "" => format!("{table_shown} (default)"),
        name => format!("{table_shown}.{name}"),
    }
}

/// Has statements for a partition wait, until those that began before are over.
pub(crate) async fn hold(shared: &Shared, gate: &str, within: Duration) -> Result<(), String> {
    let closes = shared.cores.close_gate(gate, within + GATE_SLACK);
    match shared.rt.timeout(within, closes).await {
        Ok(true) => Ok(()),
        _ => Err("statements for it did not end in time".to_owned()),
    }
}

/// Words for a table that has rows of another partition as well.
pub(crate) fn shared_table(map: &Map, home: &Home) -> Option<String> {
    let shares = |other: &&Home| {
        (other.hostgroup, &other.schema, &other.table)
            == (home.hostgroup, &home.schema, &home.table)
            && other.name != home.name
    };
    let other = map.tables().flat_map(|table| &table.homes).find(shares)?;
    Some(format!(
        "its table {} has rows of '{}' as well, and only a table of its own is moved",
        home.table, other.name
    ))
}

/// Saves the map that a move has put in force.
pub(crate) fn save_map_of(shared: &Shared, record: &Record) {
    if let Err(said) = loading::save(shared, Module::Shards) {
        (shared.hooks.log)(&format!(
            "{}: its map is in force, and not saved: {}; SAVE MYSQL SHARDS TO DISK",
            record.shown(),
            said.words()
        ));
    }
}
