//! Tables that are filled when a statement names them: from what is in force, from the cores, and from the threads
//! beside them.

use crate::engine::View;
use crate::parts::{self, Sight};
use crate::said::Said;
use crate::see::beside;
use crate::see::observe::{self, Process};
use crate::shared::Shared;
use crate::tables::{Kind, Observe, Role, Schema, TableCopy};
use crate::taken::Taken;
use bridge::{Ask, Check, Report, ToMonitor};

/// Fills the tables that a statement names from what is in force and from the cores; which
/// those are.
pub(crate) async fn refresh(
    shared: &Shared,
    view: View,
    sql: &str,
    taken: &mut Vec<Taken>,
) -> Result<Vec<TableCopy>, Said> {
    let mut named: Vec<TableCopy> = shared
        .engine(view)
        .borrow()
        .filled_tables_in(sql)
        .into_iter()
        .cloned()
        .collect();
    if named.iter().any(|copy| copy.role == Role::Reset) {
        // Nobody would see what was counted if the statement is refused, asks for columns, or
        // has the name in a text.
        let read = shared.engine(view).borrow().tables_read_by(sql)?;
        named.retain(|copy| {
            copy.role != Role::Reset || read.contains(&copy.name.to_ascii_lowercase())
        });
    }
    for copy in &named {
        fill(shared, view, copy, taken).await?;
    }
    Ok(named)
}

async fn fill_observed(
    shared: &Shared,
    view: View,
    name: &str,
    (observe, role): (Observe, Role),
    taken: &mut Vec<Taken>,
) -> Result<(), Said> {
    let now;
    let report = match observe::ask(observe) {
        Some(ask) if role == Role::Reset => {
            taken.push(shared.cores.take(ask).await?);
            taken.last().map(Taken::report)
        }
        Some(ask) => {
            now = shared.cores.ask(ask).await?;
            Some(&now)
        }
        None => None,
    };
    let beside = beside::ask_beside(shared, observe).await?;
    let engine = shared.engine(view).borrow();
    let process = Process {
        monitor: beside.monitor,
        ..beside::process(shared, engine.conn())
    };
    let snapshot = shared.snapshot.borrow();
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
        ) => shared.fill_peers(conn, name, observe, view),
        (None, Observe::Fleet) => shared.fill_fleet(conn, name),
        (None, Observe::Shares) => shared.fill_shares(conn, name),
        (None, Observe::Gtids) => observe::gtids(conn, name, &beside.gtids),
        (None, Observe::Logs) => observe::rows(conn, name, &beside.logs),
        (None, Observe::Scheduled) => observe::rows(conn, name, &beside.runs),
        (None, Observe::Messages) => {
            observe::messages(conn, name, &(shared.hooks.messages)(role == Role::Reset))
        }
        (None, Observe::Moves) => observe::rows(conn, name, &beside.moves),
        (None, Observe::Variables) => observe::variables(conn, name, &snapshot, view),
        (None, Observe::StatsVariables) => observe::stats_variables(conn, name, &snapshot),
        (None, _) => Ok(conn.execute(&format!("DELETE FROM {name}"), []).map(drop)?),
    })?;
    Ok(())
}

async fn fill(
    shared: &Shared,
    view: View,
    copy: &TableCopy,
    taken: &mut Vec<Taken>,
) -> Result<(), Said> {
    let name = match view {
        View::Admin => format!("{}.{}", copy.schema.name(), copy.name),
        View::Stats => format!("main.{}", copy.name),
    };
    match (copy.table.kind, copy.role) {
        (Kind::Observed { observe, .. }, role) => {
            fill_observed(shared, view, &name, (observe, role), taken).await?;
        }
        (Kind::Checksums, _) => shared.fill_checksums().await?,
        (_, Role::Runtime) => {
            confirmed(shared, &copy.name)?;
            let sight = sight_for(shared, copy.table.name).await?;
            // While that was awaited, another configuration may have come.
            let generation = confirmed(shared, &copy.name)?;
            let is_large = parts::is_large(copy.table.name);
            if is_large && shared.filled.borrow().get(&copy.name) == Some(&generation) {
                return Ok(());
            }
            let snapshot = shared.snapshot.borrow();
            shared
                .engine
                .borrow()
                .transaction(|conn| observe::runtime(conn, copy.table.name, &snapshot, &sight))?;
            shared
                .filled
                .borrow_mut()
                .insert(copy.name.clone(), generation);
        }
        (Kind::Monitor, _) => {
            fill_checks(shared, view, copy.table.name).await?;
        }
        _ => {}
    }
    Ok(())
}

/// How the servers are, for a `runtime_` table that shows it.
async fn sight_for(shared: &Shared, table: &str) -> Result<Sight, Said> {
    if table != "mysql_servers" {
        return Ok(Sight::default());
    }
    Ok(Sight {
        pool: Some(shared.cores.ask(Ask::Pool).await?),
        observed: beside::ask_monitor(shared, ToMonitor::Seen).await?,
    })
}

/// Fills a table of schema `monitor`; two of Aurora's have no rows yet.
async fn fill_checks(shared: &Shared, view: View, table: &str) -> Result<(), Said> {
    let Some(check) = Check::ALL.into_iter().find(|check| check.table() == table) else {
        return Ok(());
    };
    let asked = beside::ask_monitor(shared, |reply| ToMonitor::Checks { of: check, reply });
    let rows = asked.await?;
    // It is called so in both views.
    let name = format!("{}.{table}", Schema::Monitor.name());
    let engine = shared.engine(view).borrow();
    engine.transaction(|conn| observe::checks(conn, &name, check, &rows))?;
    Ok(())
}

/// The generation that all cores work by, or why `table` cannot be shown.
fn confirmed(shared: &Shared, table: &str) -> Result<u64, Said> {
    let generation = shared.snapshot.borrow().generation;
    match shared.cores.behind() {
        0 => Ok(generation),
        behind => Err(Said::Sql(format!(
            "{table} would not be the truth: {behind} of {all} cores have not confirmed generation {generation} and work by \
             an older one; try again",
            all = shared.cores.len()
        ))),
    }
}
