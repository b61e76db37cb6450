//! Reports of panics: a line in the log, and a file with the place and the way to it.

use crate::Cores;
use std::backtrace::Backtrace;
use std::fs;
use std::io;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files in the data directory; the oldest goes when there is one more.
const FILES_MAX: usize = 20;
/// Reports that wait to be written; of more, nothing but the line is known. Of panics there is one a
/// second at most.
const WAITING_MAX: usize = 16;

/// Writer of reports: a thread of its own, since a core must not wait for a disk.
#[derive(Debug, Clone)]
pub struct Crashes {
    reports: SyncSender<Letter>,
    /// Second of the latest report of a panic.
    last_s: Arc<AtomicU64>,
}

enum Letter {
    Panic(Report),
    /// Dropped when all that came before is written.
    Written(mpsc::Sender<()>),
}

struct Report {
    head: String,
    way: Option<Backtrace>,
}

impl Crashes {
    /// Starts the thread that writes into this folder.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn into_folder(datadir: &Path, note: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        let (reports, unwritten) = mpsc::sync_channel(WAITING_MAX);
        let folder = datadir.to_owned();
        let write = move || {
            for letter in unwritten {
                let report = match letter {
                    Letter::Panic(report) => report,
                    Letter::Written(heard) => {
                        drop(heard);
                        continue;
                    }
                };
                match write(&folder, &report) {
                    Ok(path) => note(&format!("the report of it is in {}", path.display())),
                    Err(error) => note(&format!("the report of it cannot be written: {error}")),
                }
            }
        };
        thread::Builder::new().name("crashes".into()).spawn(write)?;
        Ok(Self {
            reports,
            last_s: Arc::default(),
        })
    }

    /// Reports a panic: call it from the hook. The words for the log.
    #[must_use]
    pub fn panicked(&self, info: &PanicHookInfo<'_>, cores: &Cores) -> String {
        let thread = thread::current();
        let thread = thread.name().unwrap_or("-");
        let words = rt::panic_words(info.payload());
        let place = info
            .location()
            .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let doing = cores
            .doing(thread)
            .map_or_else(String::new, |doing| format!("; {doing}"));
        let line = format!("a defect at {place}: {words}{doing}");
        let now_s = wall_us() / 1_000_000;
        // Finding the names of the calls takes long. Whoever knows how to bring a defect about must
        // not take a processor away by it.
        if self.last_s.swap(now_s, Ordering::Relaxed) != now_s {
            self.report(&line, Some(Backtrace::force_capture()));
        }
        line
    }

    /// Reports why the process ends.
    pub fn report(&self, words: &str, way: Option<Backtrace>) {
        let thread = thread::current();
        let head = format!(
            "Millrace {}, process {}, thread {}, {} (UTC)\n\n{words}\n",
            env!("CARGO_PKG_VERSION"),
            std::process::id(),
            thread.name().unwrap_or("-"),
            bridge::utc(wall_us()),
        );
        // With too many of them the first tell the most.
        let _too_many = self.reports.try_send(Letter::Panic(Report { head, way }));
    }

    /// Waits until what was reported is written, but not for ever.
    pub fn finish(&self, within: Duration) {
        let (tell, written) = mpsc::channel();
        if self.reports.try_send(Letter::Written(tell)).is_ok() {
            let _late = written.recv_timeout(within);
        }
    }
}

fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}

/// Writes a report, and removes the oldest beyond [`FILES_MAX`].
fn write(folder: &Path, report: &Report) -> io::Result<PathBuf> {
    let mut known = reports_in(folder)?;
    known.sort_unstable();
    let many = (known.len() + 1).saturating_sub(FILES_MAX);
    for old in known.iter().take(many) {
        fs::remove_file(old)?;
    }
    let name = format!("crash-{:020}-{}.txt", wall_us(), std::process::id());
    let path = folder.join(name);
    let way = report.way.as_ref().map_or_else(String::new, |way| {
        format!("\nThe way to it, the last call first:\n{way}\n")
    });
    fs::write(&path, format!("{}{way}", report.head))?;
    Ok(path)
}

fn reports_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("crash-") && name.ends_with(".txt")) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::Doing;

    #[test]
    fn a_panic_is_told_with_its_place_and_what_the_core_did() {
        let folder = std::env::temp_dir().join(format!("millrace-panic-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let crashes = Crashes::into_folder(&folder, |_| ()).unwrap();
        let (cores, doing) = (Cores::default(), Arc::new(Doing::default()));
        doing.begins(77, 0);
        cores.add("core 9".into(), Arc::default(), doing);
        let (tell, said) = mpsc::channel();
        let reports = crashes.clone();
        // Of all threads of this programme, until it is taken back.
        std::panic::set_hook(Box::new(move |info| {
            let _heard = tell.send(reports.panicked(info, &cores));
        }));
        let body = || panic!("a defect of {}", 9);
        let ended = thread::Builder::new()
            .name("core 9".into())
            .spawn(body)
            .unwrap()
            .join();
        drop(std::panic::take_hook());
        assert!(ended.is_err());
        let line = said
            .iter()
            .find(|line| line.contains("a defect of 9"))
            .unwrap();
        assert!(line.contains("crash.rs:"), "{line}");
        assert!(
            line.ends_with("; the last statement begun is of session 77"),
            "{line}"
        );
        crashes.finish(Duration::from_secs(60));
        let all = reports_in(&folder).unwrap();
        let text = fs::read_to_string(&all[0]).unwrap();
        assert!(
            text.contains("thread core 9") && text.contains(&line),
            "{text}"
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn reports_are_files_of_which_only_the_newest_stay() {
        let folder = std::env::temp_dir().join(format!("millrace-crash-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (tell, said) = mpsc::channel();
        let note = move |words: &str| drop(tell.send(words.to_owned()));
        let crashes = Crashes::into_folder(&folder, note).unwrap();
        for n in 0..FILES_MAX + 3 {
            crashes.report(
                &format!("report {n} ends"),
                Some(Backtrace::force_capture()),
            );
            crashes.finish(Duration::from_secs(60));
        }
        let mut all = reports_in(&folder).unwrap();
        all.sort_unstable();
        assert_eq!(all.len(), FILES_MAX);
        let text = fs::read_to_string(&all[0]).unwrap();
        assert!(
            text.contains("report 3 ends") && text.contains("thread "),
            "{text}"
        );
        assert!(text.contains("reports_are_files_of_which"), "{text}");
        assert!(
            said.try_iter()
                .all(|line| line.starts_with("the report of it is in "))
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
