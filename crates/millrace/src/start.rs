//! From flags to a running proxy, and from a signal to its end.

mod threads;

use crate::flags::Flags;
use admin::{Admin, Options, Recall, Start};
use bridge::{Earlier, Moved, ToCore};
use config::{Snapshot, Variables};
use door::listen::addresses;
use events::Letter;
use events::lines::Log;
use mysqlproxy::Files;
use process::{Begun, Cores, Crashes, Desk, End, Event, Home, Notify, Pair, Supervisor, Watchdog};
use rt::Address;
use rt::mailbox::{self, Sender};
use rt::permits::Registry;
use scheduler::Scheduler;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use stats::{Setup, Stats};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use threads::{Shared, Threads};

/// Where a configuration file is looked for. Packages bring the first; on FreeBSD what is not of
/// the system is below /usr/local.
const CONFIGURATIONS: &[&str] = &[
    "/etc/millrace/millrace.cnf",
    "/usr/local/etc/millrace/millrace.cnf",
    "/etc/millrace.toml",
    "/etc/proxysql.cnf",
];
/// Messages that wait for a core at most.
const MAILBOX_LEN: usize = 1024;
/// Pieces of the events log that wait at most, besides their bound in bytes.
const LETTERS_LEN: usize = 16 << 10;
/// How long the end waits for cores, and for the disk.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// And for whoever reads the log.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Tells a process in the background what it is: the supervisor, or the one that serves.
const BEHIND: &str = "MILLRACE_STARTED_BEHIND";

type Reasons = Vec<String>;

/// Runs until the proxy ends.
pub(crate) fn run(flags: Flags) -> Result<(), Reasons> {
    // Programs of the scheduler get what they need, and nothing that was open before.
    let _old_kernel = rt::keep_descriptors();
    let (flags, given) = flags.given()?;
    let flags = &flags;
    let config = configuration(flags)?;
    let settings = match &config {
        Some(path) => {
            let file =
                admin::file::File::read(path).map_err(|refusal| vec![refusal.to_string()])?;
            file.process().map_err(said)?
        }
        None => admin::file::Settings::default(),
    };
    let files = Files::of(given.as_ref(), flags.datadir.clone(), &settings)?;
    let Files {
        datadir,
        errorlog,
        pidfile,
        ..
    } = &files;
    let behind = std::env::var_os(BEHIND);
    let (is_behind, begun) = (behind.is_some(), Begun::of(behind.as_deref()));
    // Begun again after a crash, there is nobody to take over from.
    let takes_over = flags.take_over && matches!(begun, None | Some(Begun::First));
    let owned = match takes_over {
        true => process::look_for(datadir).map(|_| None),
        false => process::take(datadir).map(Some),
    };
    let owned = owned.map_err(alone)?;
    if !flags.foreground && !is_behind {
        // The process that serves takes it.
        drop(owned);
        let said = process::put_behind(errorlog, pidfile, (BEHIND, "supervisor"));
        return said.map_err(alone);
    }
    let log = if is_behind || files.has_log {
        Log::file(errorlog).map_err(|error| vec![format!("{}: {error}", errorlog.display())])?
    } else {
        Log::stderr().map_err(|error| vec![format!("standard error: {error}")])?
    };
    let on_failure = settings.on_failure.map(PathBuf::from);
    if !flags.foreground {
        drop(owned);
        return supervise(flags, pidfile.clone(), on_failure, log);
    }
    let log = log.with_files_in(datadir).with_mails();
    for warning in &settings.warnings {
        log.line(&format!("warning: {warning}"));
    }
    let _finished = Finished(log.clone());
    if begun.is_some() {
        // Nobody could tell it to end any more.
        rt::end_with_parent();
    }
    let home = match owned {
        Some(owned) => Home::Own(owned),
        None => Home::Left(process::take_over(datadir, env!("CARGO_PKG_VERSION")).map_err(alone)?),
    };
    let life = Life {
        pidfile: pidfile.clone(),
        // Else the supervisor runs it.
        on_failure: on_failure.filter(|_| !is_behind),
        begun,
        missed_max: settings.missing_heartbeats_max,
        given,
    };
    let ended = serve(flags, config, datadir, home, &life, log.clone());
    if let (Err(_), Some(program)) = (&ended, &life.on_failure) {
        process::run_on_failure(program, &|words| log.line(words));
    }
    ended
}

/// Facts of the process, besides those of a proxy.
struct Life {
    pidfile: PathBuf,
    /// `execute_on_exit_failure`, if this process has to run it.
    on_failure: Option<PathBuf>,
    /// Way in which a supervisor has begun it, if one has.
    begun: Option<Begun>,
    /// `restart_on_missing_heartbeats`.
    missed_max: u64,
    /// Configuration by the options of MySQL Proxy, if it is begun by them.
    given: Option<mysqlproxy::Given>,
}

impl Life {
    /// Writes who is to be told to end: the supervisor, which tells us, and is there when we are
    /// begun again.
    fn write_pidfile(&self) -> Result<(), Reasons> {
        let path = &self.pidfile;
        fs::write(path, format!("{}\n", self.number()))
            .map_err(|error| vec![format!("{}: {error}", path.display())])
    }

    fn number(&self) -> u32 {
        match self.begun {
            Some(_) => std::os::unix::process::parent_id(),
            None => std::process::id(),
        }
    }
}

/// Has the process that serves begun, and begun again after a crash.
fn supervise(
    flags: &Flags,
    pidfile: PathBuf,
    on_failure: Option<PathBuf>,
    log: Log,
) -> Result<(), Reasons> {
    let (tell, signals) = mpsc::channel();
    let lines = log.clone();
    watch_signals(move |signal| {
        if signal == SIGHUP {
            drop(lines.reopen());
        }
        tell.send(signal).is_ok()
    })?;
    let own = std::env::args_os().skip(1);
    let supervisor = Supervisor {
        program: std::env::current_exe().map_err(|error| vec![error.to_string()])?,
        args: own.chain([OsString::from("-f")]).collect(),
        env: BEHIND,
        pidfile,
        again: !flags.exit_on_error,
        on_failure,
        note: Box::new(move |words| log.line(words)),
    };
    let ended = supervisor.run(&signals).map_err(alone);
    // The process that serves removes it, unless it could not.
    process::remove_pidfile(&supervisor.pidfile, std::process::id());
    ended
}

/// Has the log written when it is dropped, however what it stands for ends.
struct Finished(Log);

impl Drop for Finished {
    fn drop(&mut self) {
        self.0.finish(LAST_LINES);
    }
}

fn alone(reason: String) -> Reasons {
    vec![reason]
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
        None if flags.of_mysql_proxy.is_there() => Ok(None),
        None => Ok(CONFIGURATIONS
            .iter()
            .map(PathBuf::from)
            .find(|path| path.exists())),
    }
}

/// The threads that serve, and the ways to them.
struct Running {
    snapshot: Snapshot,
    driver: rt::Driver,
    desk: Desk,
    cores: Vec<Sender<ToCore>>,
    letters: Sender<Letter>,
    scheduler: Scheduler,
    deadline_ms: Arc<AtomicU64>,
    ending: Arc<AtomicBool>,
    undelivered: Box<dyn Fn() -> usize>,
}

fn serve(
    flags: &Flags,
    config: Option<PathBuf>,
    datadir: &Path,
    mut home: Home,
    life: &Life,
    log: Log,
) -> Result<(), Reasons> {
    let (events, happens) = mpsc::channel();
    let tell = events.clone();
    watch_signals(move |signal| {
        let event = match signal {
            SIGHUP => Event::Reopen,
            _ => Event::Signal,
        };
        tell.send(event).is_ok()
    })?;
    let (number, notify, is_heir) = (life.number(), notify(), home.is_left());
    let watched = Cores::default();
    let crashes = report_panics(datadir, &watched, &log)?;
    let admin = open_admin(flags, config, datadir, (life, is_heir), &log)?;
    let wished = home.listen(flags.io_driver).map_err(alone)?;
    let watches = (watched, &notify, life, &crashes);
    let permits = home.permits();
    let with = (wished, permits.clone(), home.earlier());
    let running = begin(flags, admin, datadir, with, &events, watches, &log)?;
    let Running { cores, letters, .. } = &running;
    let lock = home.settle(settling(cores, &log)).map_err(alone)?;
    let (home, tells, lines) = ((datadir, &lock), (&events, permits), log.clone());
    let note = move |words: &str| lines.line(words);
    let upgrade = running.desk.offer(home, running.driver, tells, note);
    life.write_pidfile()?;
    greet(flags, &running.snapshot.variables, &log);
    match is_heir {
        true => notify.took_over(),
        false => notify.ready(),
    }
    let end = End {
        events: &events,
        cores,
        reopen: &|| reopen(&log, letters),
        may_take: &|| {
            notify.stopping();
            running.ending.store(true, Ordering::Relaxed);
            Duration::from_millis(running.deadline_ms.load(Ordering::Relaxed)) + LAST_WORDS
        },
        note: &|words| log.line(words),
    };
    let ended = end.wait(&happens, upgrade);
    crashes.finish(LAST_LINES);
    running.scheduler.end();
    events::write_what_is_left(cores, letters, LAST_WORDS);
    say_what_is_lost((running.undelivered)(), &log);
    process::remove_pidfile(&life.pidfile, number);
    ended.map_err(alone)
}

/// Begins all threads. They serve when this returns.
fn begin(
    flags: &Flags,
    mut admin: Admin,
    datadir: &Path,
    (driver, permits, earlier): (rt::Driver, Registry, Earlier),
    events: &mpsc::Sender<Event>,
    (watched, notify, life, crashes): (Cores, &Notify, &Life, &Crashes),
    log: &Log,
) -> Result<Running, Reasons> {
    flags.without_effect().for_each(|words| log.line(words));
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        log.line(&format!("the limit of open files stays as it is: {error}"));
    }
    let snapshot = admin.snapshot().clone();
    let pair = Pair::in_folder(datadir).map_err(alone)?;
    let acceptor = pair.acceptor().map_err(alone)?;

    let (driver, why) = rt::choose(driver);
    log.line(&format!("io driver {driver}: {why}"));
    let (letters, unread) = mailbox::channel(LETTERS_LEN);
    let (traced, unsent) = traces::channel();
    let threads = Threads {
        events: events.clone(),
        letters: letters.clone(),
        traced,
        watched: watched.clone(),
        permits,
        earlier,
    };
    threads.start_events(unread, datadir, log)?;
    threads.start_traces(unsent, log.clone())?;
    begin_events_log(&snapshot, &letters);
    let desk = Desk::new(admin.hear());
    let page = web::Setup {
        admin: desk.ask(),
        address: admin::web_address,
        log: log.clone(),
    };
    let doors = threads.start_doors(flags, &snapshot, datadir, &acceptor, page)?;
    let (monitor, to_monitor) = mailbox::channel(MAILBOX_LEN);
    let cores = threads.start_cores(flags, driver, &mut admin, &acceptor, &monitor, log)?;
    threads.start_monitor(flags, &snapshot, to_monitor, &cores, datadir, log)?;
    let undelivered = admin.undelivered();
    let deadline_ms = Arc::new(AtomicU64::new(
        snapshot.variables.mysql_shutdown_deadline_ms,
    ));
    let scheduler = schedule(&snapshot, log)?;
    let watchdog = watch(&snapshot, watched, notify, life, crashes, log)?;
    let setup = Setup {
        cores: cores.clone(),
        monitor: monitor.clone(),
        earlier: threads.earlier.clone(),
        history: datadir.join(admin::engine::HISTORY_FILE),
        stalls: counted(&watchdog),
        messages: log.to_messages(),
        note: Arc::from(log.to_note()),
    };
    let stats = Stats::begin(&snapshot, setup).map_err(|error| vec![error.to_string()])?;
    let ending = Arc::<AtomicBool>::default();
    let shared = Shared {
        acceptor,
        doors,
        deadline_ms: deadline_ms.clone(),
        monitor,
        scheduler: scheduler.clone(),
        stats,
        watchdog,
        ending: ending.clone(),
    };
    threads.start_admin(
        flags,
        admin,
        &snapshot.variables,
        cores.clone(),
        datadir,
        log,
        shared,
    )?;
    Ok(Running {
        snapshot,
        driver,
        desk,
        cores,
        letters,
        scheduler,
        deadline_ms,
        ending,
        undelivered: Box::new(undelivered),
    })
}

/// Opens the log anew, and begins the next file of the events log.
fn reopen(log: &Log, letters: &Sender<Letter>) {
    if let Err(error) = log.reopen() {
        log.line(&format!("the log cannot be reopened: {error}"));
    }
    drop(letters.try_send(Letter::Next(Box::new(drop))));
}

/// Takes a session of the process before to the core that its number names.
fn settling(cores: &[Sender<ToCore>], log: &Log) -> impl Fn(Moved) + Send + use<> {
    let (cores, lines) = (cores.to_vec(), log.clone());
    move |moved| {
        let (session, n) = (moved.session, cores.len() as u32);
        let core = &cores[worker::core_of(session, n) as usize];
        if core.try_send(ToCore::Settle(moved)).is_err() {
            lines.line(&format!(
                "session {session} of the process before has ended: too much to do"
            ));
        }
    }
}

/// Opens the databases and reads what there is to read.
fn open_admin(
    flags: &Flags,
    config: Option<PathBuf>,
    datadir: &Path,
    (life, is_heir): (&Life, bool),
    log: &Log,
) -> Result<Admin, Reasons> {
    let laid = life.given.as_ref().map(|given| {
        let (laid, notices) = given.asked();
        notices.iter().for_each(|words| log.line(words));
        laid
    });
    let is_first = matches!(life.begun, None | Some(Begun::First));
    let start = match (flags.initial, flags.reload) {
        // The file has been read, and what it said was kept.
        _ if !is_first => Start::Usual,
        (true, _) => Start::Initial,
        (_, true) => Start::Reload,
        _ => Start::Usual,
    };
    let options = Options {
        datadir: laid.is_none().then(|| datadir.to_owned()),
        config,
        start,
        closed: flags.no_start,
        keep: true,
        recall: if is_heir {
            Recall::FromAnother
        } else if life.begun == Some(Begun::AsItWas) {
            Recall::AfterACrash
        } else {
            Recall::No
        },
        uuid: flags.uuid.clone(),
        scripts: config::Given::new(
            std::env::vars_os(),
            config::BucketRunner(Some(script::bucket)),
        ),
        clickhouse: flags.clickhouse_server,
        laid,
    };
    let admin = Admin::open(&options).map_err(said)?;
    for notice in admin.notices() {
        log.line(&format!("warning: {notice}"));
    }
    for refused in admin.refused() {
        log.line(&format!(
            "not in force, repair it on the admin port: {refused}"
        ));
    }
    Ok(admin)
}

fn say_what_is_lost(rows: usize, log: &Log) {
    if rows > 0 {
        log.line(&format!(
            "{rows} rows of statistics that waited for a reader, or for a disk that can be written, end with this process"
        ));
    }
}

/// If no file can be begun, the log says so, and it is tried again.
fn begin_events_log(snapshot: &Snapshot, letters: &Sender<Letter>) {
    drop(letters.try_send(Letter::Use {
        wish: snapshot.variables.logs(),
        anyway: true,
        done: Box::new(drop),
    }));
}

/// The way to systemd, if that has started us.
fn notify() -> Notify {
    let of = |name| std::env::var_os(name);
    Notify::of(
        of("NOTIFY_SOCKET").as_deref(),
        of("WATCHDOG_USEC").as_deref(),
    )
}

/// Has a panic of any thread told to the log and to a file.
fn report_panics(datadir: &Path, watched: &Cores, log: &Log) -> Result<Crashes, Reasons> {
    let (words, watched) = (log.clone(), watched.clone());
    let crashes =
        Crashes::into_folder(datadir, log.to_note()).map_err(|error| vec![error.to_string()])?;
    let reports = crashes.clone();
    std::panic::set_hook(Box::new(move |info| {
        words.line(&reports.panicked(info, &watched));
    }));
    Ok(crashes)
}

/// Watches whether the cores turn, and ends the process as by a crash if that was wished.
fn watch(
    snapshot: &Snapshot,
    watched: Cores,
    notify: &Notify,
    life: &Life,
    crashes: &Crashes,
    log: &Log,
) -> Result<Watchdog, Reasons> {
    let (lines, last, crashes) = (log.clone(), log.clone(), crashes.clone());
    let program = life.on_failure.clone();
    let end = move |words: &str| {
        last.line(words);
        crashes.report(words, None);
        crashes.finish(LAST_LINES);
        if let Some(program) = &program {
            process::run_on_failure(program, &|words| last.line(words));
        }
        last.finish(LAST_LINES);
        std::process::abort()
    };
    let note = move |words: &str| lines.line(words);
    Watchdog::begin(
        snapshot,
        watched,
        life.missed_max,
        notify.clone(),
        note,
        end,
    )
    .map_err(|error| vec![error.to_string()])
}

fn schedule(snapshot: &Snapshot, log: &Log) -> Result<Scheduler, Reasons> {
    Scheduler::begin(snapshot, log.to_note())
        .map_err(|error| vec![format!("no thread for the scheduler: {error}")])
}

/// Tells how often a core has hung.
fn counted(watchdog: &Watchdog) -> Box<dyn Fn() -> u64 + Send> {
    let counted = watchdog.clone();
    Box::new(move || counted.stalls())
}

/// Tells of signals, for as long as somebody hears.
fn watch_signals(tell: impl Fn(i32) -> bool + Send + 'static) -> Result<(), Reasons> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| vec![format!("signals cannot be watched: {error}")])?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || signals.forever().all(tell))
        .map(drop)
        .map_err(|error| vec![error.to_string()])
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
