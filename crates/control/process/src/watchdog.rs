//! A thread that notices cores that do not turn any more, and says what they are at.

use crate::Notify;
use bridge::Doing;
use config::Snapshot;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest and the longest pause between two looks.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A core without work turns several times in so many milliseconds, and not more often than that.
const LATE_MS_MIN: u64 = 1000;

/// Cores that turn, and what each is at.
#[derive(Debug, Clone, Default)]
pub struct Cores(Arc<Mutex<Vec<Core>>>);

#[derive(Debug, Clone)]
struct Core {
    name: String,
    /// When its last turn began, on the clock of [`rt::clock_ns`].
    beat: Arc<AtomicU64>,
    doing: Arc<Doing>,
    /// Beat since which it hangs, once that was seen.
    hangs_since: Option<u64>,
}

impl Cores {
    /// Adds one by the name of its thread.
    pub fn add(&self, name: String, beat: Arc<AtomicU64>, doing: Arc<Doing>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Core {
            name,
            beat,
            doing,
            hangs_since: None,
        });
    }

    /// Tells what the thread of this name is at, if it is a core.
    #[must_use]
    pub fn doing(&self, thread: &str) -> Option<String> {
        // A thread that panics must not wait.
        let all = self.0.try_lock().ok()?;
        let core = all.iter().find(|core| core.name == thread)?;
        Some(core.doing.to_string())
    }
}

/// The watchdog, from outside.
#[derive(Clone)]
pub struct Watchdog {
    late_ms: Arc<AtomicU64>,
    stalls: Arc<AtomicU64>,
}

/// State of the thread.
struct Watch {
    cores: Cores,
    late_ms: Arc<AtomicU64>,
    stalls: Arc<AtomicU64>,
    /// Beats that a core may miss in a row; 0 for any number.
    missed_max: u64,
    notify: Notify,
    note: Box<dyn Fn(&str) + Send>,
    end: Box<dyn Fn(&str) + Send>,
}

impl Watchdog {
    /// Starts the thread. `missed_max` is `restart_on_missing_heartbeats`; then `end` hears why.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn begin(
        snapshot: &Snapshot,
        cores: Cores,
        missed_max: u64,
        notify: Notify,
        note: impl Fn(&str) + Send + 'static,
        end: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let own = Self {
            late_ms: Arc::default(),
            stalls: Arc::default(),
        };
        own.load(snapshot);
        let watch = Watch {
            cores,
            late_ms: own.late_ms.clone(),
            stalls: own.stalls.clone(),
            missed_max,
            notify,
            note: Box::new(note),
            end: Box::new(end),
        };
        thread::Builder::new()
            .name("watchdog".into())
            .spawn(move || watch.run())?;
        Ok(own)
    }

    /// This is in force from now on.
    pub fn load(&self, snapshot: &Snapshot) {
        let late_ms = match snapshot.variables.admin_watchdog_ms {
            0 => 0,
            ms => ms.max(LATE_MS_MIN),
        };
        self.late_ms.store(late_ms, Ordering::Relaxed);
    }

    /// Times that a core has hung.
    #[must_use]
    pub fn stalls(&self) -> u64 {
        self.stalls.load(Ordering::Relaxed)
    }
}

impl Watch {
    fn run(&self) {
        let mut told = Instant::now();
        loop {
            let late_ms = self.late_ms.load(Ordering::Relaxed);
            let (least, most) = LOOKS;
            let pause = Duration::from_millis(late_ms / 4).clamp(least, most);
            let slept = Instant::now();
            thread::sleep(pause);
            // Whoever stopped us has stopped the cores as well: they have their time to turn.
            if slept.elapsed() > pause * 4 + Duration::from_millis(100) {
                continue;
            }
            let all_turn = late_ms == 0 || self.look(rt::clock_ns(), late_ms);
            if let Some(every) = self.notify.every()
                && all_turn
                && told.elapsed() >= every / 3
            {
                told = Instant::now();
                self.notify.alive();
            }
        }
    }

    /// Whether all cores turn.
    fn look(&self, now_ns: u64, late_ms: u64) -> bool {
        let mut all = self.cores.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all_turn = true;
        for core in all.iter_mut() {
            let beat_ns = core.beat.load(Ordering::Relaxed);
            let ms = now_ns.saturating_sub(beat_ns) / 1_000_000;
            if ms <= late_ms {
                if let Some(since_ns) = core.hangs_since.take() {
                    let ms = beat_ns.saturating_sub(since_ns) / 1_000_000;
                    (self.note)(&format!("{} turns again, after {ms} ms", core.name));
                }
                continue;
            }
            all_turn = false;
            if core.hangs_since.is_none() {
                core.hangs_since = Some(beat_ns);
                self.stalls.fetch_add(1, Ordering::Relaxed);
                (self.note)(&hangs(core, ms));
            }
            let missed = ms / late_ms;
            if self.missed_max > 0 && missed >= self.missed_max {
                (self.end)(&format!(
                    "{}: {missed} heartbeats missed, and restart_on_missing_heartbeats is {}",
                    hangs(core, ms),
                    self.missed_max
                ));
            }
        }
        all_turn
    }
}

fn hangs(core: &Core, ms: u64) -> String {
    format!(
        "{} has served nobody for {ms} ms: {}",
        core.name, core.doing
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Variables;
    use std::sync::mpsc;

    #[test]
    fn a_core_that_blocks_is_noticed_by_its_own_beat() {
        let variables = Variables {
            admin_watchdog_ms: 1,
            ..Variables::default()
        };
        let snapshot = Snapshot {
            variables: Arc::new(variables),
            ..Snapshot::default()
        };
        let cores = Cores::default();
        let (tell, said) = mpsc::channel();
        let note = move |words: &str| drop(tell.send(words.to_owned()));
        let notify = Notify::default();
        let watchdog = Watchdog::begin(&snapshot, cores.clone(), 0, notify, note, |_| ()).unwrap();
        rt::run(rt::Driver::READINESS, |rt| async move {
            cores.add("core 0".into(), rt.beat(), Arc::default());
            for _ in 0..30 {
                rt.sleep(Duration::from_millis(50)).await;
            }
            assert_eq!(said.try_recv().ok(), None, "a core that turns is no news");
            let hears = |wanted: &str| {
                let words = said.recv_timeout(Duration::from_secs(60)).unwrap();
                assert!(words.contains(wanted), "{words}");
            };
            // It blocks here.
            hears("core 0 has served nobody for");
            rt.sleep(Duration::from_millis(1)).await;
            hears("core 0 turns again, after");
        })
        .unwrap();
        assert_eq!(watchdog.stalls(), 1);
    }

    #[test]
    fn a_core_that_hangs_is_named_once_and_again_when_it_turns_and_ends_all_if_so_wished() {
        let cores = Cores::default();
        let (beat, doing) = (Arc::new(AtomicU64::new(0)), Arc::new(Doing::default()));
        cores.add("core 1".into(), beat.clone(), doing.clone());
        let (tell, said) = mpsc::channel();
        let (tell_end, ended) = (tell.clone(), tell.clone());
        drop(tell);
        let watch = Watch {
            cores: cores.clone(),
            late_ms: Arc::default(),
            stalls: Arc::default(),
            missed_max: 10,
            notify: Notify::default(),
            note: Box::new(move |words| tell_end.send(words.to_owned()).unwrap()),
            end: Box::new(move |words| ended.send(format!("END {words}")).unwrap()),
        };
        const MS: u64 = 1_000_000;
        doing.begins(77, 0xAB);
        assert!(watch.look(100 * MS, 100));
        assert!(!watch.look(101 * MS, 100));
        assert!(!watch.look(150 * MS, 100));
        beat.store(350 * MS, Ordering::Relaxed);
        assert!(watch.look(360 * MS, 100));
        assert!(!watch.look(1400 * MS, 100));
        assert_eq!(watch.stalls.load(Ordering::Relaxed), 2);
        let at = "the last statement begun is of session 77, digest 0x00000000000000AB";
        assert_eq!(
            said.try_iter().collect::<Vec<_>>(),
            [
                format!("core 1 has served nobody for 101 ms: {at}"),
                "core 1 turns again, after 350 ms".to_owned(),
                format!("core 1 has served nobody for 1050 ms: {at}"),
                format!(
                    "END core 1 has served nobody for 1050 ms: {at}: 10 heartbeats missed, and restart_on_missing_heartbeats is 10"
                ),
            ]
        );
        assert_eq!(cores.doing("core 1").as_deref(), Some(at));
        assert_eq!(cores.doing("core 2"), None);
    }
}
