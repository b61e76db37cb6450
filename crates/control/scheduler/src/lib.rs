//! The scheduler: a thread that runs the programs of table `scheduler`, each every so many
//! milliseconds and never twice at once.
//!
//! docs/features/scheduler.md
#![forbid(unsafe_code)]

mod agenda;
mod output;
mod run;

use agenda::Agenda;
use bridge::{RunRow, ToScheduler};
use config::Snapshot;
use output::Output;
use run::{Outcome, Run};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

/// Letters that wait at most.
const LETTERS_LEN: usize = 64;
/// Between two looks at programs that run.
const LOOKS: Duration = Duration::from_millis(20);
/// Runs that `stats_millrace_scheduler` shows at most.
const RUNS_KEPT: usize = 1000;
/// Time that a program has between SIGTERM and SIGKILL when the proxy ends.
const GRACE: Duration = Duration::from_secs(1);
/// Time that the proxy's end waits for all that.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Hears what an operator should read.
pub(crate) type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// The scheduler's thread, from outside.
#[derive(Debug, Clone)]
pub struct Scheduler {
    letters: SyncSender<ToScheduler>,
}

impl Scheduler {
    /// Starts the thread. The first run of a row is one interval later.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn begin(
        snapshot: &Snapshot,
        note: impl Fn(&str) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (letters, unread) = mpsc::sync_channel(LETTERS_LEN);
        let note: Note = Arc::new(note);
        let mut work = Work::new(snapshot, note);
        thread::Builder::new()
            .name("scheduler".into())
            .spawn(move || work.obey(&unread))?;
        Ok(Self { letters })
    }

    /// Sends a letter; whether there was room for it.
    pub fn tell(&self, letter: ToScheduler) -> bool {
        !matches!(self.letters.try_send(letter), Err(TrySendError::Full(_)))
    }

    /// Ends the programs that run, and begins none any more. Returns when that is done, or after
    /// two seconds.
    pub fn end(&self) {
        let (tell, ended) = mpsc::channel();
        let done = Box::new(move |()| {
            let _late = tell.send(());
        });
        if self.tell(ToScheduler::End(done)) {
            let _late = ended.recv_timeout(ENDS_WITHIN);
        }
    }
}

/// State of the thread.
struct Work {
    agenda: Agenda,
    /// Programs that run; `runs.len() <= running_max`.
    runs: Vec<Run>,
    /// Runs that have ended, the oldest first.
    ended: VecDeque<RunRow>,
    /// Outcome of the last run of a row, unless it was good.
    failing: BTreeMap<i64, Outcome>,
    output: Output,
    running_max: usize,
    /// The bound is reached, and that was said.
    full: bool,
    long_run: Option<Duration>,
    note: Note,
}

impl Work {
    fn new(snapshot: &Snapshot, note: Note) -> Self {
        let mut work = Self {
            agenda: Agenda::default(),
            runs: Vec::new(),
            ended: VecDeque::new(),
            failing: BTreeMap::new(),
            output: Output::new(note.clone()),
            running_max: 0,
            full: false,
            long_run: None,
            note,
        };
        work.load(snapshot, Instant::now());
        work
    }

    /// Does what letters say, and what is due between them, until nobody can write any more.
    fn obey(&mut self, letters: &Receiver<ToScheduler>) {
        loop {
            match letters.recv_timeout(self.patience(Instant::now())) {
                Ok(ToScheduler::Load(snapshot)) => self.load(&snapshot, Instant::now()),
                Ok(ToScheduler::Runs(reply)) => reply(self.rows()),
                Ok(ToScheduler::End(done)) => {
                    self.end();
                    done(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
            self.reap(Instant::now());
            self.output.look();
            self.begin_due(Instant::now());
        }
    }

    fn load(&mut self, snapshot: &Snapshot, now: Instant) {
        self.agenda.load(&snapshot.schedule, now);
        let variables = &snapshot.variables;
        self.running_max = usize::try_from(variables.admin_scheduler_running_max).unwrap_or(1);
        let long_ms = variables.admin_scheduler_long_run_ms;
        self.long_run = (long_ms > 0).then(|| Duration::from_millis(long_ms));
    }

    fn patience(&self, now: Instant) -> Duration {
        let due = self.agenda.next(now).unwrap_or(Duration::MAX);
        if self.runs.is_empty() && !self.output.has_dropped() {
            due
        } else {
            due.min(LOOKS)
        }
    }

    /// Takes note of programs that have ended, and names those that run for long.
    fn reap(&mut self, now: Instant) {
        let mut at = 0;
        while at < self.runs.len() {
            let run = &mut self.runs[at];
            if let Some(outcome) = run.outcome() {
                let run = self.runs.swap_remove(at);
                self.tell_outcome(run.id, &run.filename, &outcome);
                self.keep(run.row(Some(&outcome), now));
                continue;
            }
            if let Some(words) = self.long_run.and_then(|long| run.is_long(long, now)) {
                (self.note)(&words);
            }
            at += 1;
        }
    }

    fn begin_due(&mut self, now: Instant) {
        for row in self.agenda.due(now) {
            if self.runs.iter().any(|run| run.id == row.id) {
                self.agenda.skipped(row.id);
                continue;
            }
            let full = self.runs.len() >= self.running_max;
            if full {
                self.agenda.skipped(row.id);
                if !self.full {
                    (self.note)(&format!(
                        "scheduler: {} programs run, as many as admin-scheduler_running_max allows: row {} and others are skipped",
                        self.runs.len(),
                        row.id
                    ));
                }
            }
            self.full = full;
            if full {
                continue;
            }
            let skipped = self.agenda.take_skipped(row.id);
            match Run::begin(&row, skipped, &self.output, now) {
                Ok(run) => self.runs.push(run),
                Err(ended) => {
                    let (outcome, row) = *ended;
                    self.tell_outcome(row.id, &row.filename, &outcome);
                    self.keep(row);
                }
            }
        }
    }

    /// Says what is new about how the runs of a row end: a row that fails each second does not fill
    /// the log.
    fn tell_outcome(&mut self, id: i64, filename: &str, outcome: &Outcome) {
        let before = match outcome {
            Outcome::Code(0) => self.failing.remove(&id),
            _ => self.failing.insert(id, outcome.clone()),
        };
        let words = match (&before, outcome) {
            (Some(before), now) if before == now => return,
            (None, Outcome::Code(0)) => return,
            (Some(_), Outcome::Code(0)) => "ends well again".to_owned(),
            _ => outcome.to_string(),
        };
        (self.note)(&format!("scheduler (id {id}): {filename} {words}"));
    }

    fn keep(&mut self, row: RunRow) {
        if self.ended.len() >= RUNS_KEPT {
            self.ended.pop_front();
        }
        self.ended.push_back(row);
    }

    /// Runs that have ended, then those that go on.
    fn rows(&self) -> Vec<RunRow> {
        let now = Instant::now();
        let running = self.runs.iter().map(|run| run.row(None, now));
        self.ended.iter().cloned().chain(running).collect()
    }

    /// Asks all programs to end, and ends those that do not.
    fn end(&mut self) {
        for run in &self.runs {
            run.terminate();
        }
        let until = Instant::now() + GRACE;
        loop {
            self.runs.retain_mut(|run| run.outcome().is_none());
            if self.runs.is_empty() {
                return;
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(LOOKS);
        }
        for run in &mut self.runs {
            run.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Schedule, SchedulerRow, Variables};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc::Sender;

    struct Bench {
        scheduler: Scheduler,
        said: Receiver<String>,
        folder: PathBuf,
    }

    fn snapshot(rows: Vec<SchedulerRow>, variables: Variables) -> Snapshot {
        Snapshot {
            schedule: Arc::new(Schedule::build(rows).unwrap()),
            variables: Arc::new(variables),
            ..Snapshot::default()
        }
    }

    fn shell(id: i64, interval_ms: i64, script: &str) -> SchedulerRow {
        SchedulerRow {
            id,
            interval_ms,
            filename: "/bin/sh".into(),
            arg1: Some("-c".into()),
            arg2: Some(script.into()),
            ..SchedulerRow::default()
        }
    }

    impl Bench {
        fn new(name: &str, rows: impl FnOnce(&Path) -> Vec<SchedulerRow>, more: Variables) -> Self {
            let folder = std::env::temp_dir()
                .join(format!("millrace-scheduler-{name}-{}", std::process::id()));
            fs::remove_dir_all(&folder).ok();
            fs::create_dir_all(&folder).unwrap();
            let (tell, said): (Sender<String>, _) = mpsc::channel();
            let snapshot = snapshot(rows(&folder), more);
            let note = move |words: &str| drop(tell.send(words.to_owned()));
            Self {
                scheduler: Scheduler::begin(&snapshot, note).unwrap(),
                said,
                folder,
            }
        }

        fn rows(&self) -> Vec<RunRow> {
            let (tell, told) = mpsc::channel();
            let reply = Box::new(move |rows| drop(tell.send(rows)));
            assert!(self.scheduler.tell(ToScheduler::Runs(reply)));
            told.recv_timeout(Duration::from_secs(60)).unwrap()
        }

        fn until(&self, done: impl Fn(&[RunRow]) -> bool) -> Vec<RunRow> {
            for _ in 0..2000 {
                let rows = self.rows();
                if done(&rows) {
                    return rows;
                }
                thread::sleep(Duration::from_millis(30));
            }
            panic!("it did not come about: {:?}", self.rows());
        }

        fn hears(&self, wanted: &str) -> String {
            loop {
                let said = self.said.recv_timeout(Duration::from_secs(60)).unwrap();
                if said.contains(wanted) {
                    return said;
                }
            }
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            self.scheduler.end();
            fs::remove_dir_all(&self.folder).ok();
        }
    }

    fn count(rows: &[RunRow], id: i64) -> usize {
        rows.iter().filter(|row| row.id == id).count()
    }

    #[test]
    fn programs_run_again_and_again_and_how_they_end_is_told_once() {
        let rows = |folder: &Path| {
            let missing = SchedulerRow {
                filename: folder.join("missing").display().to_string(),
                ..shell(3, 100, "")
            };
            vec![
                shell(1, 100, "echo \"$0 and $1\""),
                shell(2, 100, "exit 3"),
                missing,
                shell(4, 100, "kill -9 $$"),
            ]
        };
        let bench = Bench::new("ends", rows, Variables::default());
        let ran = bench.until(|rows| (1..=4).all(|id| count(rows, id) >= 3));
        let of = |id| ran.iter().find(|row| row.id == id).unwrap();
        assert_eq!((of(1).exit_code, of(1).signal), (Some(0), None));
        assert_eq!((of(2).exit_code, of(2).signal), (Some(3), None));
        assert_eq!((of(4).exit_code, of(4).signal), (None, Some(9)));
        assert!(
            of(3)
                .error
                .as_deref()
                .is_some_and(|words| words.contains("No such file"))
        );
        // Who listens to a program logs its words a moment after it has ended, but not any more when
        // the scheduler ends.
        let mut said: Vec<String> = Vec::new();
        let words = "scheduler 1: /bin/sh and ";
        while said.iter().filter(|line| line.contains(words)).count() < 3 {
            let line = bench.said.recv_timeout(Duration::from_secs(30));
            said.push(line.unwrap_or_else(|_| panic!("{said:?}")));
        }
        bench.scheduler.end();
        said.extend(bench.said.try_iter());
        let with = |wanted: &str| said.iter().filter(|line| line.contains(wanted)).count();
        assert_eq!(
            with("scheduler (id 2): /bin/sh ended with code 3"),
            1,
            "{said:?}"
        );
        assert_eq!(with("missing could not be begun"), 1, "{said:?}");
        assert_eq!(with("/bin/sh was ended by signal 9"), 1, "{said:?}");
    }

    #[test]
    fn a_program_that_runs_is_not_begun_again_and_is_named_when_it_takes_long() {
        let more = Variables {
            admin_scheduler_long_run_ms: 150,
            ..Variables::default()
        };
        let rows = |folder: &Path| {
            let go = folder.join("go");
            let wait = format!("while ! test -e {}; do sleep 0.01; done", go.display());
            vec![shell(1, 100, &wait)]
        };
        let bench = Bench::new("long", rows, more);
        let said = bench.hears("runs for");
        assert!(
            said.starts_with("scheduler (id 1): /bin/sh runs for"),
            "{said}"
        );
        thread::sleep(Duration::from_millis(300));
        let now = bench.rows();
        assert_eq!((now.len(), now[0].ms, now[0].exit_code), (1, None, None));
        fs::write(bench.folder.join("go"), "").unwrap();
        let ran = bench.until(|rows| rows.len() >= 2 && rows[0].ms.is_some());
        assert!(ran[1].skipped >= 2, "{ran:?}");
    }

    #[test]
    fn only_so_many_run_at_once_and_all_end_with_the_proxy() {
        let more = Variables {
            admin_scheduler_running_max: 2,
            ..Variables::default()
        };
        let rows = |folder: &Path| {
            let pids = folder.join("pids");
            // One that does not want to end, and its child.
            let script = format!(
                "trap '' TERM; sleep 600 & echo $! >> {}; wait; wait",
                pids.display()
            );
            (1..=4).map(|id| shell(id, 100, &script)).collect()
        };
        let bench = Bench::new("many", rows, more);
        bench.hears("2 programs run, as many as admin-scheduler_running_max allows");
        bench.until(|rows| rows.len() == 2);
        let pids = bench.folder.join("pids");
        while fs::read_to_string(&pids)
            .unwrap_or_default()
            .lines()
            .count()
            < 2
        {
            thread::sleep(Duration::from_millis(10));
        }
        bench.scheduler.end();
        for pid in fs::read_to_string(&pids).unwrap().lines() {
            let path = PathBuf::from(format!("/proc/{pid}/stat"));
            let is_gone = || {
                let stat = fs::read_to_string(&path).unwrap_or_default();
                stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ")
            };
            let gone = (0..500).any(|_| {
                thread::sleep(Duration::from_millis(10));
                is_gone()
            });
            assert!(gone, "{pid} outlives the proxy");
        }
    }

    #[test]
    fn a_load_changes_what_runs_and_a_flood_of_words_is_cut() {
        let flood = |_: &Path| {
            vec![shell(
                1,
                100,
                "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done",
            )]
        };
        let bench = Bench::new("flood", flood, Variables::default());
        bench.until(|rows| rows.iter().any(|row| row.ms.is_some()));
        let next = snapshot(
            vec![shell(2, 100, "ls -l /proc/self/fd")],
            Variables::default(),
        );
        assert!(bench.scheduler.tell(ToScheduler::Load(Arc::new(next))));
        bench.hears("lines of programs were dropped");
        let ran = bench.until(|rows| count(rows, 2) >= 2);
        let last = ran.iter().rposition(|row| row.id == 1).unwrap();
        let first = ran.iter().position(|row| row.id == 2).unwrap();
        assert!(last < first || ran[last].ms.is_some(), "{ran:?}");
        // Its own three, and the folder that it reads.
        bench.scheduler.end();
        let said: Vec<_> = bench
            .said
            .try_iter()
            .filter(|line| line.contains("scheduler 2:"))
            .collect();
        assert!(!said.iter().any(|line| line.contains(" 4 -> ")), "{said:?}");
    }
}
