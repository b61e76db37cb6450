//! The thread of the statistics: metrics for Prometheus, over HTTP and for the admin port, and
//! samples for the histories.
//!
//! docs/features/metrics.md
#![forbid(unsafe_code)]

mod asker;
mod families;
#[cfg(test)]
mod golden;
mod history;
mod process;
mod rest;
mod shown;
mod web;

use asker::Asker;
use bridge::{
    Ask, DigestRow, Earlier, Facts, MessageRow, ProcessRow, Report, ToCore, ToMonitor, ToStats,
};
use config::Snapshot;
use families::{Families, Format};
use history::{History, Sample};
use rt::mailbox::Sender;
use site::Site;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::{LocalSet, spawn_local};

/// Letters that wait at most.
const LETTERS_LEN: usize = 64;
/// Age up to which the rows of digests and sessions are shown again: there may be very many.
const ROWS_ANEW: Duration = Duration::from_secs(10);

/// Seconds between two looks at how many digests are kept on disk.
const DIGESTS_LOOKED_AT_S: u64 = 20;

/// Bytes by the names that the memory manager has for them; none if it does not tell.
#[must_use]
pub fn allocator() -> Vec<(&'static str, u64)> {
    let Some(memory) = process::memory() else {
        return Vec::new();
    };
    let allocated = [("allocated", memory.allocated)];
    allocated.into_iter().chain(memory.kinds()).collect()
}

/// Neighbours of the thread.
pub struct Setup {
    /// Mailboxes of all cores.
    pub cores: Vec<Sender<ToCore>>,
    /// Mailbox of the monitor.
    pub monitor: Sender<ToMonitor>,
    /// Counts of the process before.
    pub earlier: Earlier,
    /// File of schema `stats_history`.
    pub history: PathBuf,
    /// Tells how often a core has hung.
    pub stalls: Box<dyn Fn() -> u64 + Send>,
    /// Messages of the log, by what they say; whether they are counted anew from now on.
    pub messages: Box<dyn Fn(bool) -> Vec<MessageRow> + Send>,
    /// A line for the log.
    pub note: Note,
}

/// Hears what an operator should read.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// The thread, from outside.
#[derive(Debug, Clone)]
pub struct Stats {
    letters: mpsc::Sender<ToStats>,
}

impl Stats {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn begin(snapshot: &Snapshot, setup: Setup) -> io::Result<Self> {
        let (letters, unread) = mpsc::channel(LETTERS_LEN);
        let snapshot = Arc::new(snapshot.clone());
        let note = setup.note.clone();
        let history = History::begin(setup.history.clone(), move |words| note(words))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new().name("stats".into()).spawn(move || {
            let work = Rc::new(Work::new(snapshot, setup, history));
            LocalSet::new().block_on(&runtime, work.obey(unread));
        })?;
        Ok(Self { letters })
    }

    /// Sends a letter; whether there was room for it.
    pub fn tell(&self, letter: ToStats) -> bool {
        self.letters.try_send(letter).is_ok()
    }
}

/// State of the thread.
struct Work {
    asker: Asker,
    snapshot: RefCell<Arc<Snapshot>>,
    facts: RefCell<Facts>,
    rows: tokio::sync::Mutex<Rows>,
    stalls: Box<dyn Fn() -> u64 + Send>,
    messages: Box<dyn Fn(bool) -> Vec<MessageRow> + Send>,
    note: Note,
    history: History,
    began: Instant,
    /// Held by each program that runs for a request.
    running: Rc<()>,
}

/// Rows that are asked for anew only when they are old.
#[derive(Default)]
struct Rows {
    asked: Option<Instant>,
    digests: Vec<DigestRow>,
    sessions: Vec<ProcessRow>,
}

impl Work {
    fn new(snapshot: Arc<Snapshot>, setup: Setup, history: History) -> Self {
        Self {
            asker: Asker {
                cores: setup.cores,
                monitor: setup.monitor,
                earlier: setup.earlier,
            },
            snapshot: RefCell::new(snapshot),
            facts: RefCell::default(),
            rows: tokio::sync::Mutex::default(),
            stalls: setup.stalls,
            messages: setup.messages,
            note: setup.note,
            history,
            began: Instant::now(),
            running: Rc::default(),
        }
    }

    /// Does what letters say until nobody can write any more.
    async fn obey(self: Rc<Self>, mut letters: mpsc::Receiver<ToStats>) {
        let mut site = Site::default();
        web::load(&mut site, &self).await;
        spawn_local(self.clone().sample());
        while let Some(letter) = letters.recv().await {
            match letter {
                ToStats::Load(snapshot) => {
                    self.snapshot.replace(snapshot);
                    web::load(&mut site, &self).await;
                }
                ToStats::Facts(facts) => _ = self.facts.replace(facts),
                ToStats::Metrics(reply) => {
                    let work = self.clone();
                    spawn_local(async move { reply(work.metrics(Format::Text).await) });
                }
            }
        }
    }

    /// Has samples written, each kind as often as its variable says.
    async fn sample(self: Rc<Self>) {
        let mut last = [Instant::now(); 5];
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let variables = self.snapshot().variables.clone();
            let every_s = [
                variables.admin_stats_mysql_connections,
                variables.admin_stats_mysql_connection_pool,
                variables.admin_stats_mysql_query_cache,
                variables.admin_stats_system_cpu,
                variables.admin_stats_system_memory,
            ];
            for (kind, every_s) in every_s.into_iter().enumerate() {
                let is_due = last[kind].elapsed() >= Duration::from_secs(every_s);
                if every_s > 0 && is_due {
                    last[kind] = Instant::now();
                    self.look(kind).await;
                }
            }
            let most = variables.admin_stats_history_digests_max;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            if self
                .began
                .elapsed()
                .as_secs()
                .is_multiple_of(DIGESTS_LOOKED_AT_S)
            {
                self.history.write(now_s(), Sample::DigestsMax(most));
            }
        }
    }

    /// One sample, by its place among the variables. One that cannot be had is left out.
    async fn look(&self, kind: usize) {
        let what = match kind {
            0 | 2 => Some(Ask::Global),
            1 => Some(Ask::Pool),
            _ => None,
        };
        let report = match what {
            Some(what) => self.asker.ask(what).await.ok(),
            None => None,
        };
        let sample = match (kind, report) {
            (0, Some(Report::Global(counts))) => Sample::Connections(counts),
            (1, Some(Report::Pool(rows))) => Sample::Pool(rows),
            (2, Some(Report::Global(counts))) => Sample::Cache(counts),
            (3, _) => Sample::Cpu,
            (4, _) => Sample::Memory,
            _ => return,
        };
        self.history.write(now_s(), sample);
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.borrow().clone()
    }

    fn wanted_address(&self) -> Option<SocketAddr> {
        let variables = self.snapshot().variables.clone();
        let wanted = variables.admin_restapi_enabled;
        let interface = &variables.admin_restapi_interface;
        let address = web::address(interface, variables.admin_restapi_port);
        if wanted && address.is_none() {
            (self.note)(&format!(
                "metrics: nobody can listen on '{interface}', port {}: admin-restapi_interface is an address, admin-restapi_port a port",
                variables.admin_restapi_port
            ));
        }
        address.filter(|_| wanted)
    }

    /// All metrics, or why they would not be the whole.
    async fn metrics(&self, format: Format) -> Result<String, String> {
        let mut all = Families::default();
        for what in [
            Ask::Global,
            Ask::Pool,
            Ask::HostgroupPool,
            Ask::Admission,
            Ask::Concurrency,
            Ask::Hostgroups,
            Ask::Commands,
            Ask::Users,
            Ask::Core,
            Ask::Errors,
        ] {
            let report = self.asker.ask(what).await?;
            show(&mut all, &report);
        }
        let observed = self.asker.monitor(ToMonitor::Seen).await?;
        shown::servers(&mut all, &observed);
        shown::gtids(&mut all, &self.asker.monitor(ToMonitor::Gtids).await?);
        shown::messages(&mut all, &(self.messages)(false));
        shown::monitor(&mut all, &self.asker.done().await?);
        let snapshot = self.snapshot();
        self.show_rows(&mut all, &snapshot).await?;
        let numbers = (self.began.elapsed().as_secs(), (self.stalls)());
        shown::process(&mut all, numbers, &snapshot, &self.facts.borrow());
        shown::peers(&mut all, &self.facts.borrow());
        shown::fleet(&mut all, &self.facts.borrow());
        Ok(all.write(format))
    }

    /// Shows digests and holds, at most some seconds old.
    async fn show_rows(&self, all: &mut Families, snapshot: &Snapshot) -> Result<(), String> {
        let most = usize::try_from(snapshot.variables.admin_prometheus_digests).unwrap_or(0);
        // One that asks at the same time waits, and has the rows then.
        let mut rows = self.rows.lock().await;
        if rows.asked.is_none_or(|asked| asked.elapsed() >= ROWS_ANEW) {
            rows.digests.clear();
            if most > 0
                && let Report::Digests(digests) = self.asker.ask(Ask::Digests).await?
            {
                rows.digests = shown::first(digests, most);
            }
            if let Report::Processes(sessions) = self.asker.ask(Ask::Processes).await? {
                rows.sessions = sessions;
            }
            rows.asked = Some(Instant::now());
        }
        shown::digests(all, &rows.digests);
        shown::holds(all, &rows.sessions);
        Ok(())
    }
}

/// Seconds since 1970.
fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

fn show(all: &mut Families, report: &Report) {
    match report {
        Report::Global(counts) => shown::counts(all, counts),
        Report::Pool(rows) => shown::pool(all, rows),
        Report::HostgroupPool(rows) => shown::hostgroup_pool(all, rows),
        Report::Admission(rows) => shown::admission(all, rows),
        Report::Concurrency(rows) => shown::concurrency(all, rows),
        Report::Hostgroups(rows) => shown::hostgroups(all, rows),
        Report::Commands(rows) => shown::commands(all, rows),
        Report::Users(rows) => shown::users(all, rows),
        Report::Cores(rows) => shown::cores(all, rows),
        Report::Errors(rows) => shown::errors(all, rows),
        _ => {}
    }
}
