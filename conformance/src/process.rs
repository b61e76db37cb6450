//! Processes and folders that end with the test that made them.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::watch::{HANGS, moves};

/// A folder under the system's temporary one, removed with its content on drop.
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// A new one; the words say in its name what it is for.
    pub fn new(words: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            env::temp_dir().join(format!("millrace-{}-{number}-{words}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        if env::var_os("MILLRACE_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Where ports are looked for: below those that the kernel gives to connections, or one of them may
/// have it when the program comes.
const PORTS: std::ops::Range<u32> = 11_000..32_000;

/// A port on loopback that is free right now, and that no other test of this process is given.
/// Whoever asked for one that another program had taken meanwhile was greeted by that one.
pub fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test programmes that run at once begin at different places.
    let first = std::process::id().wrapping_mul(7_919);
    let many = PORTS.end - PORTS.start;
    for _ in 0..many {
        let at = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % many;
        let port = u16::try_from(PORTS.start + at).map_err(io::Error::other)?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::from(io::ErrorKind::AddrInUse))
}

/// A process that is killed on drop, and by the kernel when this one dies first (`setpriv
/// --pdeathsig`).
pub struct Process {
    child: Child,
    words: String,
}

impl Process {
    /// Starts it, with what it says going to the file.
    pub fn start(program: &Path, arguments: &[String], log: &Path) -> io::Result<Self> {
        let out = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        let child = spawn_from_lasting_thread(command)?;
        Ok(Self {
            child,
            words: program.display().to_string(),
        })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Has it ended?
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// kill -9, and waits until it is gone.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by its name (`TERM`, `STOP`).
    pub fn signal(&self, name: &str) {
        // The shell's own: the program of this name is not on every machine.
        let sent = Command::new("sh")
            .args(["-c", "kill -\"$0\" \"$1\"", name, &self.id().to_string()])
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "SIG{name} was not sent"
        );
    }

    /// Waits for its end.
    pub fn wait(&mut self, at_most: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + at_most;
        while Instant::now() < until {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Waits until the port greets as MySQL servers do, by speaking first.
    pub fn wait_for_greeting(&mut self, port: u16, at_most: Duration) -> Result<(), String> {
        let until = Instant::now() + at_most;
        while Instant::now() < until {
            if let Some(status) = self.ended() {
                return Err(format!("{} ended while starting: {status}", self.words));
            }
            if greets(port) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(30));
        }
        Err(format!(
            "{} did not answer on port {port} within {at_most:?}",
            self.words
        ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The kernel's death signal follows the thread that started the process, not its process
/// (prctl(2), PR_SET_PDEATHSIG), and a trial's thread may end while another trial still uses what
/// it started.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in orders {
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let (answer, child) = mpsc::channel();
    starter.send((command, answer)).map_err(io::Error::other)?;
    child.recv().map_err(io::Error::other)?
}

fn greets(port: u16) -> bool {
    let Ok(mut peer) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let _ = peer.set_read_timeout(Some(HANGS));
    let mut start = [0; 7];
    // Protocol version 10 is a greeting. A fresh MySQL knows nobody from 127.0.0.1 yet: error 1130,
    // and it is up. Any other error is of a server that is not ready.
    peer.read_exact(&mut start).is_ok() && (start[4] == 10 || start[4..] == [0xff, 0x6a, 0x04])
}

/// Runs a programme with a limit on its time, and returns how it ended and what it said.
pub fn output(command: &mut Command, at_most: Duration) -> Result<(bool, String), String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command:?} does not start: {error}"))?;
    let reader = |pipe: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = reader(
        child
            .stdout
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    );
    let err = reader(
        child
            .stderr
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    );
    let until = Instant::now() + at_most;
    let mut pause_ms = 1;
    let (fine, late) = loop {
        match child.try_wait() {
            Ok(Some(status)) => break (status.success(), false),
            Ok(None) if Instant::now() > until => {
                let _ = child.kill();
                let _ = child.wait();
                break (false, true);
            }
            Ok(None) => {
                thread::sleep(Duration::from_millis(pause_ms));
                pause_ms = 5.min(pause_ms + 1);
            }
            Err(error) => return Err(format!("{command:?}: {error}")),
        }
    };
    moves();
    let mut words = out.join().unwrap_or_default();
    words.push_str(&err.join().unwrap_or_default());
    if late {
        words.push_str(&format!("\n(killed: it took longer than {at_most:?})\n"));
    }
    Ok((fine, words))
}

/// Memory of a process that is resident; 0 if there is no such process.
pub fn resident_kib(id: u32) -> u64 {
    memory_kib(id, "VmRSS:")
}

/// Memory of a process that has been resident at most; 0 if there is no such process.
pub fn peak_kib(id: u32) -> u64 {
    memory_kib(id, "VmHWM:")
}

fn memory_kib(id: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|words| words.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}
