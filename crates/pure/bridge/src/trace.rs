//! A statement that is traced, on its way to a collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Fates of traced statements of a core.
#[derive(Debug, Default)]
pub struct Fates {
    taken: AtomicU64,
    dropped: AtomicU64,
}

impl Fates {
    /// So many were taken by a collector.
    pub fn take(&self, many: u64) {
        self.taken.fetch_add(many, Ordering::Relaxed);
    }

    /// So many were not, and will not be.
    pub fn lose(&self, many: u64) {
        self.dropped.fetch_add(many, Ordering::Relaxed);
    }

    /// Taken, and dropped.
    #[must_use]
    pub fn numbers(&self) -> (u64, u64) {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (of(&self.taken), of(&self.dropped))
    }
}

/// A question to one of several partitions, as the statement's trace has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedLeg {
    /// Where it was asked.
    pub hostgroup: u32,
    /// Host of the server.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// When it was asked.
    pub asked_us: u64,
    /// When the answer began, if it did.
    pub answered_us: Option<u64>,
    /// When the answer had ended, or nobody wanted more of it.
    pub ended_us: u64,
    /// Number of the error that it was answered with; 0 if there was no answer.
    pub error: Option<u16>,
}

/// A statement that was answered, as its trace has it. Times are microseconds since 1970.
#[derive(Debug, Clone, Default)]
pub struct Traced {
    /// Hears what became of it.
    pub fates: Arc<Fates>,
    /// `mysql-traces_endpoint` when it was decided.
    pub to: Arc<str>,
    /// Number of the trace.
    pub trace: u128,
    /// Number of its own span.
    pub span: u64,
    /// Number of the caller's span, if the statement named one.
    pub parent: Option<u64>,
    /// When it came.
    pub began_us: u64,
    /// When it had its answer.
    pub ended_us: u64,
    /// From when to when it waited for a connection, if it did.
    pub waited_us: Option<(u64, u64)>,
    /// When a server was asked, and when its answer began, as far as it did.
    pub asked_us: Option<(u64, Option<u64>)>,
    /// Questions to its partitions, where several were asked.
    pub legs: Vec<TracedLeg>,
    /// How many there were. `legs.len() <= legs_asked`
    pub legs_asked: u64,
    /// First word of its command.
    pub command: &'static str,
    /// Number of the session.
    pub session: u64,
    /// Who asked.
    pub user: String,
    /// The schema of the session; empty for none.
    pub schema: String,
    /// Address of the client.
    pub client: String,
    /// Host and port of the server that was asked; none if none was.
    pub server: Option<(String, u16)>,
    /// Hostgroup to which rules have sent it.
    pub hostgroup: u32,
    /// Hash of the digest; 0 if there is none.
    pub digest: u64,
    /// The digest: no literal of the statement is in it.
    pub text: String,
    /// Rows that the client was sent.
    pub rows_sent: u64,
    /// The answer came from the cache.
    pub cached: bool,
    /// Number of the error that it was answered with; 0 if it had no answer.
    pub error: Option<u16>,
}
