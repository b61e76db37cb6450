//! The process that begins the one that serves, and begins it again when it crashes.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between two looks at the process that serves.
const LOOKS: Duration = Duration::from_millis(100);
/// A process that has lived for so long is begun again at once, and so is the first.
const LIVED: Duration = Duration::from_secs(10);
/// The shortest and the longest pause before any other.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Watcher over the process that serves, and all that this is begun with.
pub struct Supervisor {
    /// The program,
    pub program: PathBuf,
    /// its arguments,
    pub args: Vec<OsString>,
    /// and what in its environment says that it is begun by us: the [`Begun`] as a word.
    pub env: &'static str,
    /// The file that is there while it serves.
    pub pidfile: PathBuf,
    /// Begins it again after a crash.
    pub again: bool,
    /// `execute_on_exit_failure`.
    pub on_failure: Option<PathBuf>,
    /// Hears what an operator should read.
    pub note: Box<dyn Fn(&str)>,
}

/// Way in which a supervisor has begun a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// For the first time.
    First,
    /// After a crash: with what was in force before.
    AsItWas,
    /// After a crash that came soon after the one before: with what was saved.
    AsSaved,
}

impl Begun {
    /// In the environment of the process.
    const WORDS: [(Self, &str); 3] = [
        (Self::First, "first"),
        (Self::AsItWas, "as-it-was"),
        (Self::AsSaved, "as-saved"),
    ];

    fn word(self) -> &'static str {
        let mut all = Self::WORDS.iter();
        let own = all.find(|(begun, _)| *begun == self);
        own.map_or("first", |(_, word)| word)
    }

    /// The value of the variable, read again; none if no supervisor has begun us.
    #[must_use]
    pub fn of(value: Option<&OsStr>) -> Option<Self> {
        let value = value?.to_str()?;
        let mut all = Self::WORDS.iter();
        all.find(|(_, word)| *word == value)
            .map(|(begun, _)| *begun)
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Supervisor of {}", self.program.display())
    }
}

impl Supervisor {
    /// Runs until the process that serves ends in order, or is not begun again. Signals go on to
    /// it.
    ///
    /// # Errors
    /// The process could not be begun, or has failed and is not begun again.
    pub fn run(&self, signals: &Receiver<i32>) -> Result<(), String> {
        let (first, longest) = PAUSES;
        let (mut pause, mut begun) = (Duration::ZERO, Begun::First);
        let mut aides: Vec<Child> = Vec::new();
        loop {
            let began = Instant::now();
            let mut child = self
                .begin(begun)
                .map_err(|error| format!("{} cannot be begun: {error}", self.program.display()))?;
            let (status, told_to_end) = self
                .wait(&mut child, signals, &mut aides)
                .map_err(|error| error.to_string())?;
            if status.success() || told_to_end {
                return Ok(());
            }
            let lived = began.elapsed();
            let words = format!(
                "process {} {} after {} ms",
                child.id(),
                ended(status),
                lived.as_millis()
            );
            let served = self.pidfile.exists();
            if let Some(program) = &self.on_failure {
                aides.extend(run_on_failure(program, &self.note));
            }
            if !self.again || !served {
                return Err(words);
            }
            // One that crashes again and again may do so by what is in force.
            (begun, pause) = match begun {
                _ if lived >= LIVED => (Begun::AsItWas, Duration::ZERO),
                Begun::First => (Begun::AsItWas, Duration::ZERO),
                _ => (Begun::AsSaved, (pause * 2).clamp(first, longest)),
            };
            let when = match pause.as_secs() {
                0 => "at once".to_owned(),
                s => format!("in {s} s"),
            };
            (self.note)(&format!("{words}: it is begun again {when}"));
            if is_told(signals, pause) {
                return Ok(());
            }
        }
    }

    fn begin(&self, begun: Begun) -> io::Result<Child> {
        Command::new(&self.program)
            .args(&self.args)
            .env(self.env, begun.word())
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
    }

    /// Waits for the end of the process; tells how that was, and whether it was told to end. Aides that
    /// have ended are heard meanwhile.
    fn wait(
        &self,
        child: &mut Child,
        signals: &Receiver<i32>,
        aides: &mut Vec<Child>,
    ) -> io::Result<(ExitStatus, bool)> {
        let mut told_to_end = false;
        loop {
            aides.retain_mut(|aide| matches!(aide.try_wait(), Ok(None)));
            if let Some(status) = child.try_wait()? {
                return Ok((status, told_to_end));
            }
            match signals.recv_timeout(LOOKS) {
                Ok(number) => {
                    rt::signal(child, number);
                    told_to_end |= number != rt::SIGHUP;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOKS),
            }
        }
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Whether a signal comes within this time.
fn is_told(signals: &Receiver<i32>, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        match signals.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(number) if number != rt::SIGHUP => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// Begins the program of `execute_on_exit_failure`; it goes on by itself.
pub fn run_on_failure(program: &Path, note: &dyn Fn(&str)) -> Option<Child> {
    note(&format!("execute_on_exit_failure: {}", program.display()));
    let begun = Command::new(program)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn();
    begun
        .map_err(|error| note(&format!("{}: {error}", program.display())))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;
    use std::rc::Rc;
    use std::sync::mpsc;

    fn supervised(
        name: &str,
        script: &str,
        again: bool,
    ) -> (PathBuf, Supervisor, Rc<RefCell<Vec<String>>>) {
        let folder =
            std::env::temp_dir().join(format!("millrace-supervised-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        let said: Rc<RefCell<Vec<String>>> = Rc::default();
        let lines = said.clone();
        let script = script.replace("DIR", &folder.display().to_string());
        let supervisor = Supervisor {
            program: "/bin/sh".into(),
            args: ["-c".into(), script.into()].into(),
            env: "BEGUN",
            pidfile: folder.join("pid"),
            again,
            on_failure: None,
            note: Box::new(move |words| lines.borrow_mut().push(words.to_owned())),
        };
        (folder, supervisor, said)
    }

    #[test]
    fn who_crashes_is_begun_again_and_who_ends_in_order_is_not() {
        let script = "touch DIR/pid; echo $BEGUN >> DIR/starts; test $(wc -l < DIR/starts) -lt 3 && kill -6 $$; exit 0";
        let (folder, mut supervisor, said) = supervised("again", script, true);
        supervisor.on_failure = Some(folder.join("aide"));
        fs::write(
            folder.join("aide"),
            format!("#!/bin/sh\ntouch {}/aided", folder.display()),
        )
        .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.join("aide"), mode).unwrap();
        let (_quiet, signals) = mpsc::channel();
        assert_eq!(supervisor.run(&signals), Ok(()));
        assert_eq!(
            fs::read_to_string(folder.join("starts")).unwrap(),
            "first\nas-it-was\nas-saved\n"
        );
        let said = said.borrow().join("\n");
        assert!(
            said.contains("was ended by signal 6")
                && said.contains("begun again at once")
                && said.contains("begun again in 1 s"),
            "{said}"
        );
        let aided = (0..500).any(|_| {
            std::thread::sleep(LOOKS);
            folder.join("aided").exists()
        });
        assert!(aided, "{said}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn who_never_served_or_should_not_is_not_begun_again() {
        let (_quiet, signals) = mpsc::channel();
        for (script, again) in [("exit 3", true), ("touch DIR/pid; exit 3", false)] {
            let (folder, supervisor, _said) = supervised("once", script, again);
            let error = supervisor.run(&signals).unwrap_err();
            assert!(error.contains("ended with code 3"), "{error}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn a_signal_goes_on_and_is_the_end() {
        let script =
            "trap 'touch DIR/told; exit 1' TERM; touch DIR/pid; while true; do sleep 0.01; done";
        let (folder, supervisor, _said) = supervised("told", script, true);
        let (tell, signals) = mpsc::channel();
        let pid = folder.join("pid");
        std::thread::spawn(move || {
            while !pid.exists() {
                std::thread::sleep(LOOKS);
            }
            tell.send(15).unwrap();
        });
        assert_eq!(supervisor.run(&signals), Ok(()));
        assert!(folder.join("told").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
