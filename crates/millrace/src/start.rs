//! From flags to a running proxy, and from a signal to its end.

use crate::certificate::Pair;
use crate::flags::Flags;
use crate::folder;
use admin::{Admin, Hooks, Options, Renewed, Start};
use bridge::ToCore;
use config::{Snapshot, Variables};
use events::Letter;
use events::lines::Log;
use net::tls::Acceptor;
use rt::mailbox::{self, Receiver, SendError, Sender};
use rt::permits::Registry;
use rt::{Address, ListenOptions, Listener, Rt};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Messages that wait for a core at most.
const MAILBOX_LEN: usize = 1024;
/// Pieces of the events log that wait at most, besides their bound in bytes.
const LETTERS_LEN: usize = 16 << 10;
/// So soon after an answer a script on the admin port sends its next statement: its client needs 10
/// to 30 µs for it, and is to be woken.
const OPERATORS_WATCHED: Duration = Duration::from_micros(100);
/// How long the end waits for cores, and for the disk.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// And for whoever reads the log.
const LAST_LINES: Duration = Duration::from_secs(1);
/// How soon a core that could not be told to drain is told again.
const TOLD_AGAIN: Duration = Duration::from_millis(100);
/// Tells the process that stays that it was started by one that waits for it.
const BEHIND: &str = "MILLRACE_STARTED_BEHIND";

/// What can happen to the process.
enum Event {
    Signal(i32),
    /// `PROXYSQL SHUTDOWN`, or (`true`) at once.
    Shutdown(bool),
    /// A core has no sessions any more, or its time for that is over.
    Drained,
    /// A thread has ended, and how.
    Ended(String, Result<(), String>),
}

type Reasons = Vec<String>;

/// Runs until the proxy ends.
pub(crate) fn run(flags: &Flags) -> Result<(), Reasons> {
    let config = configuration(flags)?;
    let settings = match &config {
        Some(path) => {
            let file =
                admin::file::File::read(path).map_err(|refusal| vec![refusal.to_string()])?;
            file.process().map_err(said)?
        }
        None => admin::file::Settings::default(),
    };
    let from_file = settings.datadir.map(PathBuf::from);
    let datadir = flags
        .datadir
        .clone()
        .or(from_file)
        .unwrap_or_else(|| PathBuf::from("/var/lib/millrace"));
    let owned = folder::take(&datadir).map_err(|words| vec![words])?;
    let errorlog = settings
        .errorlog
        .map_or_else(|| datadir.join("millrace.log"), PathBuf::from);
    let pidfile = settings
        .pidfile
        .map_or_else(|| datadir.join("millrace.pid"), PathBuf::from);
    if !flags.foreground {
        // The process that stays takes it.
        drop(owned);
        return put_behind(&errorlog, &pidfile);
    }
    let log = if std::env::var_os(BEHIND).is_some() {
        Log::file(&errorlog).map_err(|error| vec![format!("{}: {error}", errorlog.display())])?
    } else {
        Log::stderr().map_err(|error| vec![format!("standard error: {error}")])?
    };
    for warning in &settings.warnings {
        log.line(&format!("warning: {warning}"));
    }
    let ended = serve(flags, config, &datadir, &pidfile, log.clone());
    log.finish(LAST_LINES);
    ended
}

fn said(refusals: Vec<config::Refusal>) -> Reasons {
    refusals
        .into_iter()
        .map(|refusal| refusal.to_string())
        .collect()
}

/// The configuration file that is named, or else the usual one if there is one.
pub(crate) fn configuration(flags: &Flags) -> Result<Option<PathBuf>, Reasons> {
    match &flags.config {
        Some(path) if path.exists() => Ok(Some(path.clone())),
        Some(path) => Err(vec![format!(
            "the configuration file {} does not exist",
            path.display()
        )]),
        None => Ok(["/etc/millrace.toml", "/etc/proxysql.cnf"]
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.exists())),
    }
}

/// Starts the same again behind the terminal, and waits until it serves or has failed.
fn put_behind(errorlog: &Path, pidfile: &Path) -> Result<(), Reasons> {
    use std::os::unix::process::CommandExt;
    let one =
        |error: std::io::Error| vec![format!("cannot start in the background: {error}; use -f")];
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(errorlog)
        .map_err(one)?;
    // One of before would look like success.
    let _none = fs::remove_file(pidfile);
    let mut child = Command::new(std::env::current_exe().map_err(one)?)
        .args(std::env::args_os().skip(1))
        .arg("-f")
        .env(BEHIND, "1")
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(one)?)
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(one)?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().map_err(one)? {
            return Err(vec![format!(
                "it ended at once ({status}); {} has the reason",
                errorlog.display()
            )]);
        }
        if pidfile.exists() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(vec![format!(
        "it does not serve after a minute; see {}",
        errorlog.display()
    )])
}

fn serve(
    flags: &Flags,
    config: Option<PathBuf>,
    datadir: &Path,
    pidfile: &Path,
    log: Log,
) -> Result<(), Reasons> {
    let (events, happens) = mpsc::channel();
    watch_signals(events.clone())?;
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        log.line(&format!("the limit of open files stays as it is: {error}"));
    }
    let start = match (flags.initial, flags.reload) {
        (true, _) => Start::Initial,
        (_, true) => Start::Reload,
        _ => Start::Usual,
    };
    let options = Options {
        datadir: Some(datadir.to_owned()),
        config,
        start,
    };
    let mut admin = Admin::open(&options).map_err(said)?;
    for notice in admin.notices() {
        log.line(&format!("warning: {notice}"));
    }
    for refused in admin.refused() {
        log.line(&format!(
            "not in force, repair it on the admin port: {refused}"
        ));
    }
    let snapshot = admin.snapshot().clone();
    let pair = Pair::in_folder(datadir).map_err(|words| vec![words])?;
    let acceptor = pair.acceptor().map_err(|words| vec![words])?;

    let (driver, why) = rt::choose(flags.io_driver);
    log.line(&format!("io driver {driver}: {why}"));
    let (letters, unread) = mailbox::channel(LETTERS_LEN);
    let mut threads = Threads {
        events: events.clone(),
        letters: letters.clone(),
        running: Vec::new(),
    };
    threads.start_events(unread, datadir, &log)?;
    let wish = snapshot.variables.events_log();
    // If no file can be begun, the log says so, and it is tried again.
    drop(letters.try_send(Letter::Use {
        wish,
        anyway: true,
        done: Box::new(drop),
    }));
    // It may be a server of the cores', and whoever hears the admin may ask it.
    let embedded = flags
        .sqlite3_server
        .then(|| Embedded::new(&snapshot, acceptor.clone()));
    if let Some(embedded) = embedded.clone() {
        threads.start_sqlite(&snapshot, datadir, embedded)?;
    }
    let cores = threads.start_cores(driver, &mut admin, &acceptor, &log)?;
    let undelivered = admin.undelivered();
    let deadline_ms = Arc::new(AtomicU64::new(
        snapshot.variables.mysql_shutdown_deadline_ms,
    ));
    let shared = (acceptor, embedded, deadline_ms.clone());
    threads.start_admin(
        admin,
        &snapshot.variables,
        cores.clone(),
        datadir,
        &log,
        shared,
    )?;
    fs::write(pidfile, format!("{}\n", std::process::id()))
        .map_err(|error| vec![format!("{}: {error}", pidfile.display())])?;
    greet(flags, &snapshot.variables, &log);
    let ended = until_the_end(&events, &happens, &cores, &letters, &log, || {
        Duration::from_millis(deadline_ms.load(Ordering::Relaxed)) + LAST_WORDS
    });
    write_what_is_left(&cores, &letters, LAST_WORDS);
    let lost = undelivered();
    if lost > 0 {
        log.line(&format!(
            "{lost} rows of statistics that waited for a reader, or for a disk that can be written, end with this process"
        ));
    }
    // It may have been removed already; a process that starts writes it anew.
    let _gone = fs::remove_file(pidfile);
    ended
}

fn watch_signals(events: mpsc::Sender<Event>) -> Result<(), Reasons> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| vec![format!("signals cannot be watched: {error}")])?;
    let watch = move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .map(drop)
        .map_err(|error| vec![error.to_string()])
}

/// The threads of the proxy. Each tells when it ends.
struct Threads {
    events: mpsc::Sender<Event>,
    /// To the events log.
    letters: Sender<Letter>,
    running: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Runs `main` on an executor of its own thread; returns when it has said that it is ready.
    fn start<F>(
        &mut self,
        name: String,
        options: impl Into<rt::Options>,
        main: impl FnOnce(Rt, Ready) -> F + Send + 'static,
    ) -> Result<(), Reasons>
    where
        F: Future<Output = Result<(), String>>,
    {
        let (tell, ready) = mpsc::channel();
        let (events, options) = (self.events.clone(), options.into());
        let (called, failed) = (name.clone(), tell.clone());
        let body = move || {
            // A defect outside of all sessions would end this thread without a word: its sessions
            // gone, its mailbox unread.
            let run = AssertUnwindSafe(|| rt::run_with(options, |rt| main(rt, Ready(tell))));
            let ended = match catch_unwind(run) {
                Ok(ended) => ended
                    .map_err(|error| error.to_string())
                    .and_then(|ended| ended),
                Err(_said_already) => Err("a defect ended it".to_owned()),
            };
            // Heard if it was not ready yet.
            let _serving = failed.send(ended.clone());
            // Nobody listens any more when the process ends anyway.
            let _late = events.send(Event::Ended(called, ended));
        };
        let thread = thread::Builder::new()
            .name(name)
            .spawn(body)
            .map_err(|error| vec![error.to_string()])?;
        self.running.push(thread);
        ready
            .recv()
            .unwrap_or_else(|_gone| Err("it ended before it was ready".into()))
            .map_err(|error| vec![error])
    }

    fn start_cores(
        &mut self,
        driver: rt::Driver,
        admin: &mut Admin,
        acceptor: &Acceptor,
        log: &Log,
    ) -> Result<Vec<Sender<ToCore>>, Reasons> {
        let variables = admin.snapshot().variables.clone();
        let cores = u32::try_from(variables.mysql_threads.clamp(1, 1024)).expect("clamped");
        let listen = addresses(&variables.mysql_interfaces, "0.0.0.0:6033")?;
        listen.iter().try_for_each(nobody_listens)?;
        let registry = Registry::new();
        let cache = cache::Cache::new(RandomState::new().hash_one(0));
        let (mailboxes, letters): (Vec<_>, Vec<_>) =
            (0..cores).map(|_| mailbox::channel(MAILBOX_LEN)).unzip();
        let (hands, handed): (Vec<_>, Vec<_>) =
            (0..cores).map(|_| mailbox::channel(MAILBOX_LEN)).unzip();
        let all = mailboxes
            .iter()
            .zip(hands)
            .map(|(control, hand)| worker::Peer {
                control: control.clone(),
                hand,
            });
        let all: Vec<_> = all.collect();
        let snapshots = admin.for_cores(mailboxes.len());
        for (((index, mailbox), from_peers), snapshot) in
            (0..cores).zip(letters).zip(handed).zip(snapshots)
        {
            let others = (0..cores)
                .zip(&all)
                .map(|(other, peer)| (other != index).then(|| peer.clone()));
            let peers = others.collect();
            let lines = log.clone();
            // A Unix socket has one owner; the kernel spreads TCP over all.
            let own = listen
                .iter()
                .filter(|at| index == 0 || matches!(at, Address::Tcp(_)))
                .cloned()
                .collect();
            let (registry, acceptor) = (registry.clone(), acceptor.clone());
            let cache = cache.clone();
            let letters = self.letters.clone();
            self.start(format!("core {index}"), driver, move |rt, ready| {
                let hook = lines.clone();
                rt.on_panic(move |words| hook.line(&format!("a defect ended a session: {words}")));
                let setup = worker::Setup {
                    index,
                    cores,
                    snapshot,
                    registry,
                    cache,
                    listen: own,
                    acceptor: Some(acceptor),
                    peers,
                    from_peers,
                    mailbox,
                    note: Arc::new(move |words: &str| lines.line(words)),
                    events: Arc::new(move |events| {
                        match letters
                            .try_send(Letter::Write(events))
                            .map_err(SendError::into_inner)
                        {
                            Err(Letter::Write(back)) => Err(back),
                            _ => Ok(()),
                        }
                    }),
                    ready: Box::new(move |()| ready.say()),
                };
                async move {
                    worker::run(rt, setup)
                        .await
                        .map_err(|error| error.to_string())
                }
            })?;
        }
        Ok(mailboxes)
    }

    fn start_admin(
        &mut self,
        mut admin: Admin,
        variables: &Variables,
        cores: Vec<Sender<ToCore>>,
        datadir: &Path,
        log: &Log,
        (acceptor, embedded, deadline_ms): (Acceptor, Option<Embedded>, Arc<AtomicU64>),
    ) -> Result<(), Reasons> {
        let listen = addresses(&variables.admin_mysql_ifaces, "127.0.0.1:6032")?;
        let (lines, logs, folder) = (log.clone(), log.clone(), datadir.to_owned());
        let events = self.events.clone();
        let (next, wishes) = (self.letters.clone(), self.letters.clone());
        admin.set_tls(acceptor);
        let (tls, users) = embedded
            .map(|embedded| (embedded.tls, embedded.users))
            .unzip();
        let hooks = Hooks {
            in_force: Box::new(move |snapshot| {
                deadline_ms.store(
                    snapshot.variables.mysql_shutdown_deadline_ms,
                    Ordering::Relaxed,
                );
                if let Some(users) = &users {
                    users.replace(known_by(&snapshot.users));
                }
            }),
            log: Box::new(move |words| lines.line(words)),
            // The process is ending already if nobody listens.
            shutdown: Box::new(move |now| drop(events.send(Event::Shutdown(now)))),
            flush_logs: Box::new(move |told| match logs.reopen() {
                Ok(()) => drop(next.try_send(Letter::Next(told))),
                Err(error) => told(Err(error.to_string())),
            }),
            log_events: Box::new(move |wish, done| {
                drop(wishes.try_send(Letter::Use {
                    wish,
                    anyway: false,
                    done,
                }))
            }),
            reload_tls: Box::new(move || {
                let pair = Pair::in_folder(&folder)?;
                let acceptor = pair.acceptor()?;
                if let Some(tls) = &tls {
                    tls.offer(acceptor.clone());
                }
                let Pair {
                    certificate,
                    key,
                    authorities,
                } = pair;
                Ok(Some(Renewed {
                    acceptor,
                    certificate: certificate.into(),
                    key: key.into(),
                    authorities: authorities.into(),
                }))
            }),
        };
        let options = ListenOptions {
            unix_mode: admin::socket_mode(variables),
            ..ListenOptions::default()
        };
        let watchful = rt::Options {
            watch: OPERATORS_WATCHED,
            ..rt::Driver::Epoll.into()
        };
        self.start("admin".into(), watchful, move |rt, ready| async move {
            let listeners = listen_all(&rt, &listen, options)?;
            ready.say();
            admin.serve(rt, listeners, cores, hooks).await;
            Ok(())
        })
    }

    /// The thread that writes the events log. It may wait for the disk as long as it takes.
    fn start_events(
        &mut self,
        letters: Receiver<Letter>,
        datadir: &Path,
        log: &Log,
    ) -> Result<(), Reasons> {
        let (folder, lines) = (datadir.to_owned(), log.clone());
        self.start("events".into(), rt::Driver::Epoll, move |_rt, ready| {
            ready.say();
            let log = events::Log::new(folder, move |words| lines.line(words));
            async move {
                log.obey(letters).await;
                Ok(())
            }
        })
    }

    fn start_sqlite(
        &mut self,
        snapshot: &Snapshot,
        datadir: &Path,
        embedded: Embedded,
    ) -> Result<(), Reasons> {
        let listen = addresses(
            &snapshot.variables.sqliteserver_mysql_ifaces,
            "127.0.0.1:6030",
        )?;
        let version = snapshot.variables.mysql_server_version.to_string();
        admin::keep_private(&datadir.join(sqlite::FILE));
        let mut server = sqlite::Server::new(datadir, embedded.users, version);
        server.set_tls(embedded.tls);
        self.start(
            "sqlite".into(),
            rt::Driver::Epoll,
            move |rt, ready| async move {
                let listeners = listen_all(&rt, &listen, ListenOptions::default())?;
                ready.say();
                server.serve(rt, listeners).await;
                Ok(())
            },
        )
    }
}

/// What of the embedded SQLite server can be replaced while it serves.
#[derive(Clone)]
struct Embedded {
    tls: sqlite::Tls,
    users: sqlite::Users,
}

impl Embedded {
    fn new(snapshot: &Snapshot, acceptor: Acceptor) -> Self {
        let tls = sqlite::Tls::default();
        tls.offer(acceptor);
        Self {
            tls,
            users: sqlite::Users::new(known_by(&snapshot.users)),
        }
    }
}

/// The passwords of these. Users whose password is only known as a hash cannot come in to the
/// embedded server: there is nothing to compare with.
fn known_by(users: &Arc<config::Users>) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
    let users = users.clone();
    move |name| match &users.frontend(name)?.password {
        config::Password::Clear(password) => Some(password.to_string()),
        config::Password::Empty => Some(String::new()),
        _ => None,
    }
}

/// Says once that a thread serves.
struct Ready(mpsc::Sender<Result<(), String>>);

impl Ready {
    fn say(self) {
        // Whoever started it may have given up.
        let _gone = self.0.send(Ok(()));
    }
}

fn addresses(list: &str, usual: &str) -> Result<Vec<Address>, Reasons> {
    let list = if list.trim().is_empty() { usual } else { list };
    let mut found = Vec::new();
    for text in config::interfaces(list) {
        found.push(
            text.parse()
                .map_err(|error| vec![format!("'{text}' is not an address: {error}")])?,
        );
    }
    Ok(found)
}

/// Cores share their ports, so the kernel would let another process share them too, and spread the
/// clients over both.
fn nobody_listens(at: &Address) -> Result<(), Reasons> {
    let Address::Tcp(at) = at else { return Ok(()) };
    match std::net::TcpListener::bind(at) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            Err(vec![in_use(at, &error)])
        }
        // Anything else, the core will say.
        _ => Ok(()),
    }
}

fn in_use(at: impl std::fmt::Display, error: &std::io::Error) -> String {
    format!("cannot listen on {at}: {error}: another process listens there (`ss -ltnp` names it)")
}

fn listen_all(
    rt: &Rt,
    addresses: &[Address],
    options: ListenOptions,
) -> Result<Vec<Listener>, String> {
    let open = |at: &Address| {
        rt.listen(at, options).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => in_use(at, &error),
            _ => format!("cannot listen on {at}: {error}"),
        })
    };
    addresses.iter().map(open).collect()
}

fn greet(flags: &Flags, variables: &Variables, log: &Log) {
    let traffic = addresses(&variables.mysql_interfaces, "0.0.0.0:6033").unwrap_or_default();
    let operators = addresses(&variables.admin_mysql_ifaces, "127.0.0.1:6032").unwrap_or_default();
    let list = |all: &[Address]| {
        all.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    log.line(&format!(
        "Millrace {} serves clients on {} and operators on {}",
        env!("CARGO_PKG_VERSION"),
        list(&traffic),
        list(&operators)
    ));
    if flags.sqlite3_server {
        let port = |all: &[Address], usual| {
            all.iter()
                .find_map(|a| {
                    if let Address::Tcp(a) = a {
                        Some(a.port())
                    } else {
                        None
                    }
                })
                .unwrap_or(usual)
        };
        let (traffic, operators) = (port(&traffic, 6033), port(&operators, 6032));
        eprintln!(
            "\n  Query:    mysql -h 127.0.0.1 -P {traffic} -u demo -pdemo -e \"SELECT 'hello', sqlite_version()\"\n  \
             Operate:  mysql -h 127.0.0.1 -P {operators} -u admin -padmin -e \"SELECT * FROM stats_mysql_query_digest\"\n  \
             Stop:     Ctrl-C\n"
        );
    }
}

/// What the events log still lacks is written, if cores and disk are quick. Half of the time is the
/// disk's, however long a core takes.
fn write_what_is_left(cores: &[Sender<ToCore>], letters: &Sender<Letter>, within: Duration) {
    let began = Instant::now();
    let wait = |heard: &mpsc::Receiver<()>, within| {
        heard.recv_timeout((began + within).saturating_duration_since(Instant::now()))
    };
    let (tell, heard) = mpsc::channel();
    for core in cores {
        let tell = tell.clone();
        let done = Box::new(move |()| {
            let _late = tell.send(());
        });
        drop(core.try_send(ToCore::HandOverEvents { done }));
    }
    drop(tell);
    // Until the last has said so, or has ended.
    while wait(&heard, within / 2).is_ok() {}
    let (tell, heard) = mpsc::channel();
    let done = Box::new(move |()| {
        let _late = tell.send(());
    });
    drop(letters.try_send(Letter::Done(done)));
    let _late = wait(&heard, within);
}

/// Waits for what ends the proxy. The first wish to end drains, for as long as that may take; the
/// second ends at once.
fn until_the_end(
    events: &mpsc::Sender<Event>,
    happens: &mpsc::Receiver<Event>,
    cores: &[Sender<ToCore>],
    letters: &Sender<Letter>,
    log: &Log,
    may_take: impl Fn() -> Duration,
) -> Result<(), Reasons> {
    let (mut draining, mut left, mut untold): (Option<Instant>, _, Vec<_>) =
        (None, cores.len(), Vec::new());
    loop {
        let patience = match draining.map(|until| until.saturating_duration_since(Instant::now())) {
            None => Duration::MAX,
            Some(left) if untold.is_empty() => left,
            Some(left) => left.min(TOLD_AGAIN),
        };
        match happens.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout)
                if draining.is_some_and(|until| Instant::now() >= until) =>
            {
                log.line(&format!("{left} cores have not drained in time: ending"));
                return Ok(());
            }
            Err(RecvTimeoutError::Timeout) => untold.retain(|core| !drains(core, events)),
            Err(RecvTimeoutError::Disconnected) | Ok(Event::Shutdown(true)) => return Ok(()),
            Ok(Event::Signal(SIGHUP)) => {
                if let Err(error) = log.reopen() {
                    log.line(&format!("the log cannot be reopened: {error}"));
                }
                drop(letters.try_send(Letter::Next(Box::new(drop))));
            }
            Ok(Event::Signal(_) | Event::Shutdown(false)) if draining.is_some() => {
                log.line("ending at once");
                return Ok(());
            }
            Ok(Event::Signal(_) | Event::Shutdown(false)) => {
                draining = Some(Instant::now() + may_take());
                untold = cores
                    .iter()
                    .filter(|core| !drains(core, events))
                    .cloned()
                    .collect();
                if !untold.is_empty() {
                    log.line(&format!(
                        "{} cores do not listen yet; a second signal ends at once",
                        untold.len()
                    ));
                }
            }
            Ok(Event::Ended(name, Err(error))) => return Err(vec![format!("{name}: {error}")]),
            Ok(Event::Drained) => {
                left -= 1;
                if left == 0 {
                    log.line("drained");
                    return Ok(());
                }
            }
            Ok(Event::Ended(name, Ok(()))) => log.line(&format!("{name} has ended")),
        }
    }
}

/// Whether a core could be told to drain.
fn drains(core: &Sender<ToCore>, events: &mpsc::Sender<Event>) -> bool {
    let tell = events.clone();
    core.try_send(ToCore::Drain {
        done: Box::new(move |()| drop(tell.send(Event::Drained))),
    })
    .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_thread_that_a_defect_ends_says_so_before_it_is_ready_and_later() {
        let (events, happens) = mpsc::channel();
        let (letters, _unread) = mailbox::channel(1);
        let mut threads = Threads {
            events,
            letters,
            running: Vec::new(),
        };
        let begun = threads.start("early".into(), rt::Driver::Epoll, |_rt, _ready| async {
            panic!("a defect")
        });
        assert_eq!(begun, Err(vec!["a defect ended it".to_owned()]));
        let begun = threads.start("late".into(), rt::Driver::Epoll, |_rt, ready| async {
            ready.say();
            panic!("a defect")
        });
        assert_eq!(begun, Ok(()));
        let ended = |_| match happens.recv() {
            Ok(Event::Ended(name, Err(words))) => format!("{name}: {words}"),
            _ => panic!("something else"),
        };
        let mut both = [0, 1].map(ended);
        both.sort_unstable();
        assert_eq!(
            both,
            ["early: a defect ended it", "late: a defect ended it"]
        );
        assert!(
            threads
                .running
                .into_iter()
                .all(|thread| thread.join().is_ok())
        );
    }

    #[test]
    fn a_core_that_is_silent_leaves_the_disk_its_time() {
        let (silent, _unread) = mailbox::channel(1);
        let (letters, unread) = mailbox::channel(1);
        let written = Arc::new(AtomicBool::new(false));
        let writes = written.clone();
        let disk = thread::spawn(move || {
            rt::run(rt::Driver::Epoll, |_rt| async move {
                let Some(Letter::Done(done)) = unread.recv().await else {
                    panic!("something else")
                };
                thread::sleep(Duration::from_millis(20));
                writes.store(true, Ordering::SeqCst);
                done(());
            })
        });
        write_what_is_left(&[silent], &letters, Duration::from_secs(4));
        assert!(
            written.load(Ordering::SeqCst),
            "the end has not waited for the disk"
        );
        disk.join().unwrap().unwrap();
    }

    #[test]
    fn a_core_that_cannot_be_told_to_drain_is_told_when_it_can_and_waited_for_only_so_long() {
        let path = std::env::temp_dir().join(format!("millrace-drain-{}.log", std::process::id()));
        let log = Log::file(&path).unwrap();
        for (may_take, wanted) in [(500, "have not drained in time"), (60_000, "drained\n")] {
            let (full, unread) = mailbox::channel(1);
            assert!(full.try_send(ToCore::Accept(true)).is_ok());
            let (events, happens) = mpsc::channel();
            let (letters, _unread) = mailbox::channel(1);
            events.send(Event::Shutdown(false)).unwrap();
            let core = thread::spawn(move || {
                // The first does nothing any more, the second for a while.
                thread::sleep(Duration::from_millis(if may_take == 500 {
                    2000
                } else {
                    300
                }));
                rt::run(rt::Driver::Epoll, |_rt| async move {
                    drop(unread.recv().await);
                    if let Some(ToCore::Drain { done }) = unread.recv().await {
                        done(());
                    }
                })
            });
            let began = Instant::now();
            until_the_end(&events, &happens, &[full], &letters, &log, || {
                Duration::from_millis(may_take)
            })
            .unwrap();
            assert!(
                began.elapsed() < Duration::from_secs(50),
                "{:?}",
                began.elapsed()
            );
            core.join().unwrap().unwrap();
            log.finish(LAST_LINES);
            let said = fs::read_to_string(&path).unwrap();
            assert!(said.contains(wanted), "{said}");
        }
        fs::remove_file(&path).unwrap();
    }
}
