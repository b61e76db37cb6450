//! Threads of the proxy. Each begins with what it needs, says when it serves, and when it ends.

use super::{MAILBOX_LEN, Reasons};
use crate::flags::Flags;
use admin::{Admin, Hooks, Renewed};
use bridge::{Doing, Earlier, ToCore, ToMonitor, ToScheduler, ToStats};
use config::{Snapshot, Variables};
use door::Behind;
use door::listen::{addresses, listen_all, nobody_listens, owned};
use events::Letter;
use events::lines::Log;
use net::tls::Acceptor;
use process::{Cores, Event, Pair, Ready, Watchdog};
use rt::mailbox::{Receiver, Sender};
use rt::permits::Registry;
use rt::{Address, ListenOptions, Rt};
use scheduler::Scheduler;
use stats::Stats;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, UNIX_EPOCH};
use web::Web;

/// So soon after an answer a script on the admin port sends its next statement: its client needs 10
/// to 30 µs for it, and is to be woken.
const OPERATORS_WATCHED: Duration = Duration::from_micros(100);

/// Neighbours of the admin port.
pub(super) struct Shared {
    pub(super) acceptor: Acceptor,
    pub(super) doors: Doors,
    pub(super) deadline_ms: Arc<AtomicU64>,
    pub(super) monitor: Sender<ToMonitor>,
    pub(super) scheduler: Scheduler,
    pub(super) stats: Stats,
    pub(super) watchdog: Watchdog,
    pub(super) ending: Arc<AtomicBool>,
}

/// How the admin port's thread runs.
fn watchful() -> rt::Options {
    rt::Options {
        watch: OPERATORS_WATCHED,
        ..rt::Driver::READINESS.into()
    }
}

/// The threads of the proxy. Each tells when it ends.
pub(super) struct Threads {
    pub(super) events: mpsc::Sender<Event>,
    /// To the events log.
    pub(super) letters: Sender<Letter>,
    /// To whoever sends traces.
    pub(super) traced: worker::TakeTraced,
    /// The cores that the watchdog looks at.
    pub(super) watched: Cores,
    /// Counters of limits over all cores.
    pub(super) permits: Registry,
    /// Totals of the process before.
    pub(super) earlier: Earlier,
}

impl Threads {
    /// Begins one, and waits until it serves.
    fn start<F>(
        &self,
        name: String,
        options: impl Into<rt::Options>,
        main: impl FnOnce(Rt, Ready) -> F + Send + 'static,
    ) -> Result<(), Reasons>
    where
        F: Future<Output = Result<(), String>>,
    {
        let events = self.events.clone();
        process::begin_thread(name, admin::STACK_BYTES, events, options, main)
            .map_err(|error| vec![error])
    }

    pub(super) fn start_cores(
        &self,
        flags: &Flags,
        driver: rt::Driver,
        admin: &mut Admin,
        acceptor: &Acceptor,
        monitor: &Sender<ToMonitor>,
        log: &Log,
    ) -> Result<Vec<Sender<ToCore>>, Reasons> {
        let variables = admin.snapshot().variables.clone();
        let cores = u32::try_from(variables.mysql_threads.clamp(1, 1024)).expect("clamped");
        let listen = admin::traffic(&variables)?;
        if !flags.reuseport {
            listen.iter().try_for_each(nobody_listens)?;
        }
        let registry = self.permits.clone();
        registry.hold_for_several(!variables.admin_cluster_store.is_empty());
        let kept = worker::Kept::new(RandomState::new().hash_one(0), calls::begin()?);
        let (mailboxes, letters) = worker::mailboxes(cores, MAILBOX_LEN);
        let (hands, handed) = worker::mailboxes(cores, MAILBOX_LEN);
        let all: Vec<_> = mailboxes
            .iter()
            .zip(hands)
            .map(|(control, hand)| worker::Peer {
                control: control.clone(),
                hand,
            })
            .collect();
        let snapshots = admin.for_cores(mailboxes.len());
        let wants = admin.does();
        for (((index, mailbox), from_peers), snapshot) in
            (0..cores).zip(letters).zip(handed).zip(snapshots)
        {
            let peers = (0..cores)
                .zip(&all)
                .map(|(other, peer)| (other != index).then(|| peer.clone()))
                .collect();
            let lines = log.clone();
            let listen = owned(&listen, index);
            let (registry, acceptor) = (registry.clone(), acceptor.clone());
            let kept = kept.clone();
            let (open, doing) = (!flags.no_start, Arc::<Doing>::default());
            let (letters, monitor, watched, traces) = (
                self.letters.clone(),
                monitor.clone(),
                self.watched.clone(),
                self.traced.clone(),
            );
            let (clients, wants) = (letters.clone(), wants.clone());
            self.start(format!("core {index}"), driver, move |rt, ready| {
                watched.add(format!("core {index}"), rt.beat(), doing.clone());
                let hook = lines.clone();
                rt.on_panic(move |words| hook.line(&format!("a defect ended a session: {words}")));
                let setup = worker::Setup {
                    index,
                    cores,
                    snapshot,
                    registry,
                    kept,
                    listen,
                    open,
                    doing,
                    acceptor: Some(acceptor),
                    peers,
                    from_peers,
                    mailbox,
                    note: Arc::new(lines),
                    // One that has too much to do looks soon anyway.
                    look: Arc::new(move |server, sign| {
                        drop(monitor.try_send(ToMonitor::Look(server, sign)));
                    }),
                    wants,
                    events: Arc::new(move |events| events::hand_over(&letters, events)),
                    audit: Arc::new(move |audited| events::hand_audited(&clients, audited)),
                    traces,
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

    #[expect(
        clippy::too_many_arguments,
        reason = "it is the wiring of all there is"
    )]
    pub(super) fn start_admin(
        &self,
        flags: &Flags,
        mut admin: Admin,
        variables: &Variables,
        cores: Vec<Sender<ToCore>>,
        datadir: &Path,
        log: &Log,
        shared: Shared,
    ) -> Result<(), Reasons> {
        let mut listen = addresses(&variables.admin_mysql_ifaces, "127.0.0.1:6032")?;
        listen.extend(flags.admin_socket.clone().map(Address::Unix));
        let Shared {
            acceptor,
            doors,
            deadline_ms,
            monitor,
            scheduler,
            stats,
            watchdog,
            ending,
        } = shared;
        let (logs, folder) = (log.clone(), datadir.to_owned());
        let events = self.events.clone();
        let (next, wishes) = (self.letters.clone(), self.letters.clone());
        admin.set_tls(acceptor);
        let (loaded, renewed) = (doors.clone(), doors);
        let (counted, permits) = (watchdog.clone(), self.permits.clone());
        let (watches, runs, unheard, shows) = (
            monitor.clone(),
            scheduler.clone(),
            log.clone(),
            stats.clone(),
        );
        let hooks = Hooks {
            ending,
            messages: log.to_messages(),
            stalls: Box::new(move || counted.stalls()),
            earlier: self.earlier.clone(),
            permits,
            allocator: Box::new(stats::allocator),
            scheduler: Box::new(move |letter| _ = scheduler.tell(letter)),
            stats: Box::new(move |letter| _ = shows.tell(letter)),
            monitor: Box::new(move |letter| drop(monitor.try_send(letter))),
            in_force: Box::new(move |snapshot| {
                let all = Arc::new(snapshot.clone());
                let heard = watches.try_send(ToMonitor::Load(all.clone())).is_ok()
                    & stats.tell(ToStats::Load(all.clone()));
                if !(runs.tell(ToScheduler::Load(all)) && heard) {
                    unheard.line(
                        "monitor, scheduler or statistics do not hear of a LOAD: too much to do",
                    );
                }
                keep_deadline(&deadline_ms, snapshot);
                watchdog.load(snapshot);
                loaded.iter().for_each(|door| door.load(snapshot));
            }),
            log: log.to_note(),
            // The process is ending already if nobody listens.
            shutdown: Box::new(move |now| drop(events.send(Event::Shutdown(now)))),
            flush_logs: Box::new(move |told| match logs.reopen() {
                Ok(()) => drop(next.try_send(Letter::Next(told))),
                Err(error) => told(Err(error.to_string())),
            }),
            log_like: Box::new(move |wish, done| {
                drop(wishes.try_send(Letter::Use {
                    wish,
                    anyway: false,
                    done,
                }))
            }),
            check_script: Box::new(script::check),
            reload_tls: Box::new(move || renew(&folder, &renewed).map(Some)),
        };
        let options = ListenOptions {
            unix_mode: admin::socket_mode(variables),
            ..ListenOptions::default()
        };
        self.start("admin".into(), watchful(), move |rt, ready| async move {
            let listeners = listen_all(&rt, &listen, options)?;
            ready.say();
            admin.serve(rt, listeners, cores, hooks).await;
            Ok(())
        })
    }

    /// The thread that checks servers, and tells the cores what it has seen.
    pub(super) fn start_monitor(
        &self,
        flags: &Flags,
        snapshot: &Snapshot,
        letters: Receiver<ToMonitor>,
        cores: &[Sender<ToCore>],
        datadir: &Path,
        log: &Log,
    ) -> Result<(), Reasons> {
        let (snapshot, datadir) = (Arc::new(snapshot.clone()), datadir.to_owned());
        let (cores, note, off) = (cores.to_vec(), log.to_note(), flags.no_monitor);
        let tell = move |letter: &dyn Fn() -> ToCore| {
            // Each is told, whoever could not be.
            let mut all = true;
            for core in &cores {
                all &= core.try_send(letter()).is_ok();
            }
            all
        };
        let setup = move |ready: Ready| {
            ready.say();
            monitor::Setup {
                snapshot,
                off,
                letters,
                tell: Box::new(tell),
                datadir,
                note,
                clock: Box::new(|| {
                    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
                    since.map_or(0, |since| since.as_micros() as u64)
                }),
            }
        };
        self.start(
            "monitor".into(),
            rt::Driver::READINESS,
            move |rt, ready| async move {
                monitor::run(rt, setup(ready)).await;
                Ok(())
            },
        )
    }

    /// The thread that sends traces to a collector.
    pub(super) fn start_traces(
        &self,
        unsent: Receiver<bridge::Traced>,
        log: Log,
    ) -> Result<(), Reasons> {
        self.start("traces".into(), rt::Driver::READINESS, move |rt, ready| {
            ready.say();
            traces::send(rt, unsent, log)
        })
    }

    /// The thread that writes the events log. It may wait for the disk as long as it takes.
    pub(super) fn start_events(
        &self,
        letters: Receiver<Letter>,
        datadir: &Path,
        log: &Log,
    ) -> Result<(), Reasons> {
        let (folder, note) = (datadir.to_owned(), log.to_note());
        self.start("events".into(), rt::Driver::READINESS, move |_rt, ready| {
            ready.say();
            let log = events::Log::new(folder, note);
            async move {
                log.obey(letters).await;
                Ok(())
            }
        })
    }

    /// They may be servers of the cores', and whoever hears the admin may ask them.
    pub(super) fn start_doors(
        &self,
        flags: &Flags,
        snapshot: &Snapshot,
        datadir: &Path,
        acceptor: &Acceptor,
        page: web::Setup,
    ) -> Result<Doors, Reasons> {
        let log = page.log.clone();
        let web = Web::begin(snapshot, acceptor.clone(), page);
        let mut doors: Doors = vec![
            Arc::new(web.map_err(|error| vec![error.to_string()])?),
            Arc::new(process::Secrets::new(snapshot, log.to_note())),
        ];
        if flags.sqlite3_server {
            let embedded = sqlite::Embedded::new(snapshot, acceptor.clone());
            self.start_sqlite(snapshot, datadir, embedded.clone())?;
            doors.push(Arc::new(embedded));
        }
        if flags.clickhouse_server {
            let server = clickhouse::Server::new(snapshot, acceptor.clone(), log);
            self.start_clickhouse(&snapshot.variables, &server)?;
            doors.push(Arc::new(server));
        }
        Ok(doors)
    }

    fn start_clickhouse(
        &self,
        variables: &Variables,
        server: &clickhouse::Server,
    ) -> Result<(), Reasons> {
        let listen = addresses(&variables.clickhouse_mysql_ifaces, "127.0.0.1:6090")?;
        listen.iter().try_for_each(nobody_listens)?;
        let threads = variables.clickhouse_threads as u32;
        for nth in 0..threads {
            let (own, server) = (owned(&listen, nth), server.clone());
            self.start(
                format!("clickhouse {nth}"),
                rt::Driver::READINESS,
                move |rt, ready| async move {
                    let listeners = listen_all(&rt, &own, clickhouse::shared())?;
                    ready.say();
                    server.serve(rt, listeners, nth, threads).await;
                    Ok(())
                },
            )?;
        }
        Ok(())
    }

    fn start_sqlite(
        &self,
        snapshot: &Snapshot,
        datadir: &Path,
        embedded: sqlite::Embedded,
    ) -> Result<(), Reasons> {
        let listen = addresses(
            &snapshot.variables.sqliteserver_mysql_ifaces,
            "127.0.0.1:6030",
        )?;
        admin::keep_private(&datadir.join(sqlite::FILE));
        let mut server = sqlite::Server::new(
            datadir,
            embedded.users,
            snapshot.variables.mysql_server_version.to_string(),
        );
        server.set_tls(embedded.tls);
        server.set_read_only(embedded.read_only);
        self.start(
            "sqlite".into(),
            rt::Driver::READINESS,
            move |rt, ready| async move {
                let listeners = listen_all(&rt, &listen, ListenOptions::default())?;
                ready.say();
                server.serve(rt, listeners).await;
                Ok(())
            },
        )
    }
}

fn keep_deadline(ms: &AtomicU64, snapshot: &Snapshot) {
    ms.store(
        snapshot.variables.mysql_shutdown_deadline_ms,
        Ordering::Relaxed,
    );
}

/// Reads the certificate anew, for everybody.
fn renew(folder: &Path, doors: &Doors) -> Result<Renewed, String> {
    let pair = Pair::in_folder(folder)?;
    let acceptor = pair.acceptor()?;
    doors.iter().for_each(|door| door.offer(&acceptor));
    Ok(Renewed {
        acceptor,
        certificate: pair.certificate.into(),
        key: pair.key.into(),
        authorities: pair.authorities.into(),
    })
}

/// Servers of ours that others reach by a port of their own.
pub(super) type Doors = Vec<Arc<dyn Behind>>;
