//! Threads beside the cores: the monitor, the scheduler and the statistics, asked for what only they know.

use crate::engine::Reply;
use crate::grid::Grid;
use crate::said::Said;
use crate::see::observe::Process;
use crate::shared::{Clients, Shared};
use crate::tables::Observe;
use bridge::{Done, Facts, GtidRow, LogRow, RunRow, ToMonitor, ToScheduler, ToStats};
use rt::mailbox;
use std::time::Duration;

/// So long the monitor, or the scheduler, may take to answer.
const MONITOR_ANSWERS: Duration = Duration::from_secs(5);

/// Time in which all metrics are to be written.
const METRICS_WITHIN: Duration = Duration::from_secs(30);

/// Rows and counts that threads beside the cores have told.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) gtids: Vec<GtidRow>,
    pub(crate) logs: Vec<LogRow>,
    pub(crate) runs: Vec<RunRow>,
    pub(crate) moves: Vec<bridge::MoveRow>,
    pub(crate) monitor: Done,
}

/// Asks the threads beside the cores for what this table shows of them.
pub(crate) async fn ask_beside(shared: &Shared, observe: Observe) -> Result<Beside, Said> {
    let mut beside = Beside::default();
    match observe {
        Observe::Gtids => beside.gtids = ask_monitor(shared, ToMonitor::Gtids).await?,
        Observe::Logs => beside.logs = ask_monitor(shared, ToMonitor::Logs).await?,
        Observe::Global => beside.monitor = done(shared).await?,
        Observe::Scheduled => beside.runs = ask_scheduler(shared).await?,
        Observe::Moves => beside.moves = shared.moves.rows(),
        _ => {}
    }
    Ok(beside)
}

/// Work of the monitor, with that of the process before.
pub(crate) async fn done(shared: &Shared) -> Result<Done, Said> {
    let mut done = ask_monitor(shared, ToMonitor::Counts).await?;
    done.add(&shared.hooks.earlier.monitor());
    Ok(done)
}

/// All metrics, as one text.
pub(crate) async fn metrics(shared: &Shared) -> Result<Reply, Said> {
    let (tell, told) = mailbox::channel(1);
    let reply = Box::new(move |text| drop(tell.try_send(text)));
    (shared.hooks.stats)(ToStats::Metrics(reply));
    let told = shared.rt.timeout(METRICS_WITHIN, told.recv()).await;
    let words = "the metrics were not written within 30 seconds; try again";
    let text = told.ok().flatten().ok_or(words)??;
    Ok(Reply::Rows(Grid::one("Data", text)))
}

/// Tells the thread of the statistics what only this one knows.
pub(crate) fn tell_facts(shared: &Shared) {
    let process = process(shared, shared.engine.borrow().conn());
    (shared.hooks.stats)(ToStats::Facts(Facts {
        sqlite_bytes: process.sqlite_bytes.max(0).cast_unsigned(),
        rows_lost: process.rows_lost,
        paused: shared.clients.get() != Clients::Welcome,
        cluster: process.cluster.to_vec(),
        peers: shared.peer_facts(),
        askers: shared.asker_facts(),
        fleet: shared.fleet_facts(),
    }));
}

/// Asks for the last runs of the scheduler.
async fn ask_scheduler(shared: &Shared) -> Result<Vec<RunRow>, Said> {
    let (tell, told) = mailbox::channel(1);
    let reply = Box::new(move |runs| drop(tell.try_send(runs)));
    (shared.hooks.scheduler)(ToScheduler::Runs(reply));
    let told = shared.rt.timeout(MONITOR_ANSWERS, told.recv()).await;
    let words = "the scheduler has not answered within 5 seconds; try again";
    told.ok().flatten().ok_or_else(|| words.into())
}

/// Asks the monitor, and returns its answer.
pub(crate) async fn ask_monitor<T: Send + 'static>(
    shared: &Shared,
    letter: impl FnOnce(bridge::Reply<T>) -> ToMonitor,
) -> Result<T, Said> {
    let (tell, told) = mailbox::channel(1);
    (shared.hooks.monitor)(letter(Box::new(move |answer| drop(tell.try_send(answer)))));
    let told = shared.rt.timeout(MONITOR_ANSWERS, told.recv()).await;
    told.ok().flatten().ok_or_else(|| {
        Said::Sql("the monitor has not answered within 5 seconds; try again".to_owned())
    })
}

pub(crate) fn process(shared: &Shared, conn: &rusqlite::Connection) -> Process {
    let pragma = |name: &str| {
        conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .unwrap_or_default()
    };
    Process {
        uptime_s: (shared.rt.now() - shared.started).as_secs(),
        cores: shared.cores.len(),
        generation: shared.snapshot.borrow().generation,
        sqlite_bytes: pragma("page_count") * pragma("page_size"),
        rows_lost: shared.cores.lost(),
        stalls: (shared.hooks.stalls)(),
        allocator: (shared.hooks.allocator)(),
        cluster: shared.cluster.counts(),
        monitor: Done::default(),
    }
}
