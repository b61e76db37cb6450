//! The process around the admin port: what only it can do, and is asked for by hooks.

use bridge::{Earlier, MessageRow, Nobody, ToMonitor, ToScheduler, ToStats};
use config::{Logs, Snapshot};
use net::tls::Acceptor;
use rt::permits::Registry;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Hears from another thread what came of a wish.
pub type Told = bridge::Reply<Result<(), String>>;

/// Actions on the process that the operator can ask for, and only main() can carry out.
pub struct Hooks {
    /// A line for the log.
    pub log: Box<dyn Fn(&str) + Send>,
    /// `PROXYSQL SHUTDOWN`, or (`true`) `PROXYSQL KILL`: end now.
    pub shutdown: Box<dyn Fn(bool) + Send>,
    /// `PROXYSQL FLUSH LOGS`: the log is opened anew, and the next file of the events log begun.
    pub flush_logs: Box<dyn Fn(Told) + Send>,
    /// Statements and clients are logged like this from now on, or not at all. If no file can be
    /// begun, that is said, and all stays as it was.
    pub log_like: Box<dyn Fn(Logs, Told) + Send>,
    /// A LOAD: this is in force from now on.
    pub in_force: Box<dyn Fn(&Snapshot) + Send>,
    /// A letter to the monitor.
    pub monitor: Box<dyn Fn(ToMonitor) + Send>,
    /// A letter to the scheduler.
    pub scheduler: Box<dyn Fn(ToScheduler) + Send>,
    /// A letter to the thread of the statistics.
    pub stats: Box<dyn Fn(ToStats) + Send>,
    /// The process has begun to end.
    pub ending: Arc<AtomicBool>,
    /// Messages of the log by what they say; whether they are counted anew from now on.
    pub messages: Box<dyn Fn(bool) -> Vec<MessageRow> + Send>,
    /// Times that a core has hung.
    pub stalls: Box<dyn Fn() -> u64 + Send>,
    /// Counts of the process before.
    pub earlier: Earlier,
    /// Counters of limits over all cores, of which the admin port moves the shares.
    pub permits: Registry,
    /// Bytes by the names that the memory manager has for them.
    pub allocator: Box<dyn Fn() -> Vec<(&'static str, u64)> + Send>,
    /// Looks at a script, given by the name of its chunk and its text: what its author should know,
    /// or why it cannot run.
    pub check_script: CheckScript,
    /// `PROXYSQL RELOAD TLS`: what the files say now, for the admin port and the cores. Everybody
    /// else has been told.
    pub reload_tls: Box<dyn Fn() -> Result<Option<Renewed>, String> + Send>,
}

impl Default for Hooks {
    /// Nothing happens.
    fn default() -> Self {
        Self {
            log: Box::new(|_| {}),
            shutdown: Box::new(|_| {}),
            flush_logs: Box::new(|told| told(Ok(()))),
            log_like: Box::new(|_, told| told(Ok(()))),
            in_force: Box::new(|_| {}),
            monitor: Box::new(|letter| match letter {
                ToMonitor::Load(_) | ToMonitor::Look(..) => {}
                ToMonitor::Checks { reply, .. } => reply(Vec::new()),
                ToMonitor::Seen(reply) => reply(Arc::default()),
                ToMonitor::Counts(reply) => reply(Default::default()),
                ToMonitor::Gtids(reply) => reply(Vec::new()),
                ToMonitor::Logs(reply) => reply(Vec::new()),
            }),
            scheduler: Box::new(|letter| match letter {
                ToScheduler::Runs(reply) => reply(Vec::new()),
                ToScheduler::Load(_) | ToScheduler::End(_) => {}
            }),
            stats: Box::new(|letter| match letter {
                ToStats::Metrics(reply) => reply(Ok(String::new())),
                ToStats::Load(_) | ToStats::Facts(_) => {}
            }),
            ending: Arc::default(),
            messages: Box::new(|_| Vec::new()),
            stalls: Box::new(|| 0),
            earlier: Arc::new(Nobody),
            permits: Registry::new(),
            allocator: Box::new(Vec::new),
            check_script: Box::new(|_, _| Ok(Vec::new())),
            reload_tls: Box::new(|| Ok(None)),
        }
    }
}

/// Notices of a script, or why it is refused.
pub type CheckScript = Box<dyn Fn(&str, &str) -> Result<Vec<String>, String> + Send>;

/// A certificate that was read anew.
pub struct Renewed {
    /// For the admin port.
    pub acceptor: Acceptor,
    /// For the cores, as PEM: the certificate,
    pub certificate: Arc<[u8]>,
    /// its key,
    pub key: Arc<[u8]>,
    /// and whose certificates of clients are believed.
    pub authorities: Arc<[u8]>,
}
