//! One program that runs, from its begin to its end.

use crate::output::Output;
use bridge::RunRow;
use config::SchedulerRow;
use std::fmt;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Never begun, for this reason.
    NotBegun(Arc<str>),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::NotBegun(why) => write!(f, "could not be begun: {why}"),
        }
    }
}

impl From<ExitStatus> for Outcome {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}

/// A program that was begun.
pub(crate) struct Run {
    pub(crate) id: i64,
    pub(crate) filename: Arc<str>,
    /// Leads a group of processes of its own.
    child: Child,
    began: Instant,
    started_us: u64,
    skipped: u64,
    /// Named already for running long.
    named: bool,
}

impl Run {
    /// Starts the program of a row, or tells why there is none, with the row of the table that says
    /// so. It has no descriptor of ours: all of them close when another program is executed.
    pub(crate) fn begin(
        row: &SchedulerRow,
        skipped: u64,
        output: &Output,
        now: Instant,
    ) -> Result<Self, Box<(Outcome, RunRow)>> {
        let started_us = wall_us();
        let filename: Arc<str> = row.filename.as_str().into();
        let (stdout, stderr) = output.of(row.id);
        // A name without a slash is a file of this folder, and not looked for in PATH.
        let begun = Command::new(Path::new(".").join(&row.filename))
            .arg0(&row.filename)
            .args(row.args())
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn();
        match begun {
            Ok(child) => Ok(Self {
                id: row.id,
                filename,
                child,
                began: now,
                started_us,
                skipped,
                named: false,
            }),
            Err(error) => {
                let why: Arc<str> = error.to_string().into();
                let run = RunRow {
                    id: row.id,
                    filename,
                    started_us,
                    ms: Some(0),
                    exit_code: None,
                    signal: None,
                    skipped,
                    error: Some(why.clone()),
                };
                Err(Box::new((Outcome::NotBegun(why), run)))
            }
        }
    }

    /// Outcome, if it has ended.
    pub(crate) fn outcome(&mut self) -> Option<Outcome> {
        match self.child.try_wait() {
            Ok(status) => status.map(Outcome::from),
            // Somebody else has heard of its end.
            Err(error) => Some(Outcome::NotBegun(error.to_string().into())),
        }
    }

    /// Words about it if it runs for longer than this; once.
    pub(crate) fn is_long(&mut self, long: Duration, now: Instant) -> Option<String> {
        let runs = now.saturating_duration_since(self.began);
        if self.named || runs < long {
            return None;
        }
        self.named = true;
        Some(format!(
            "scheduler (id {}): {} runs for {} ms already (process {}), longer than admin-scheduler_long_run_ms; it is not begun again until it ends",
            self.id,
            self.filename,
            runs.as_millis(),
            self.child.id()
        ))
    }

    /// The row of the table.
    pub(crate) fn row(&self, outcome: Option<&Outcome>, now: Instant) -> RunRow {
        let ms = now.saturating_duration_since(self.began).as_millis();
        let (mut exit_code, mut signal, mut error) = (None, None, None);
        match outcome {
            Some(Outcome::Code(code)) => exit_code = Some((*code).into()),
            Some(Outcome::Signal(number)) => signal = Some((*number).into()),
            Some(Outcome::NotBegun(why)) => error = Some(why.clone()),
            None => {}
        }
        RunRow {
            id: self.id,
            filename: self.filename.clone(),
            started_us: self.started_us,
            ms: outcome.map(|_| u64::try_from(ms).unwrap_or(u64::MAX)),
            exit_code,
            signal,
            skipped: self.skipped,
            error,
        }
    }

    /// Asks it, and whom it has begun, to end.
    pub(crate) fn terminate(&self) {
        rt::signal_group(&self.child, rt::Signal::Terminate);
    }

    /// Ends it, and whom it has begun, and hears of its end.
    pub(crate) fn kill(&mut self) {
        rt::signal_group(&self.child, rt::Signal::Kill);
        let _ended = self.child.wait();
    }
}

fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}
