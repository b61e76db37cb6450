//! One server that is watched: a task that asks it, each question at its own pace, over a connection
//! that stays open.

use crate::Monitor;
use bridge::{Check, CheckRow, Found, Sign, ToCore};
use config::{Server, Snapshot, Topology, TopologyKind, Variables};
use line::{Failed, Line, Names, Rows, Tls, Who};
use net::tls::Settings;
use rt::Instant;
use rt::local::Bell;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use topology::{Channels, Checked, Fault, Lag, Limits, Pace, Reach, Role, Seen, ServerKey, Told};

/// Servers are not all asked at the same moment: each begins somewhere in this time.
const SPREAD: Duration = Duration::from_millis(200);
/// A server that has just been silent is pinged again so soon after the question, whatever the intervals
/// say, until it is known not to answer.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Its role is asked so long after that ping: where nobody answers that, nobody would tell.
const BEHIND_THE_PING: Duration = Duration::from_millis(1);
/// And then so often, for it to be back soon.
const COMES_BACK: Duration = Duration::from_secs(1);
/// A server that says that it is so many seconds behind may be behind by a part of the next one.
const PART_OF_A_SECOND_MS: u64 = 1000;
/// Where nobody gets writes, all servers of the topology are asked at least so often.
const NO_WRITER: Duration = Duration::from_millis(100);

pub(crate) struct Watch {
    /// Host or address that is asked.
    key: ServerKey,
    interest: RefCell<Interest>,
    /// Questions by the rows; made when they are asked for.
    jobs: RefCell<Option<Rc<Jobs>>>,
    checked: RefCell<Checked>,
    stopped: Cell<bool>,
    bell: Bell,
    /// Sign of trouble that somebody has seen.
    looks_now: Cell<Option<Sign>>,
    /// Whether it is asked as soon as it is watched.
    is_urgent: bool,
    /// The error number that an operator was last told of: the server answers, and not the check.
    told: Cell<u16>,
    /// Checks of its role since it was asked for the servers that it knows; none if it never was.
    since_peers: Cell<Option<u64>>,
}

/// For whom a server is watched.
#[derive(Default)]
pub(crate) struct Interest {
    /// Hosts and ports of its rows, which may be names that lead to it; or of a server that others
    /// know.
    pub(crate) keys: Vec<ServerKey>,
    /// Its rows.
    pub(crate) rows: Vec<Arc<Server>>,
}

/// Questions to be asked of a server.
struct Jobs {
    /// Topologies that it is in, one of each kind.
    roles: BTreeMap<TopologyKind, Arc<Topology>>,
    /// Seconds that its row allows, and those that count while replication does not run.
    lag: Option<(u32, u32)>,
    tls: Tls,
    /// As `hostgroup_settings.proxy_protocol`.
    proxy_protocol: u8,
    /// Seconds and milliseconds above which some row of it gets nothing new.
    lags_max: Vec<u32>,
    pings_max_ms: Vec<u32>,
    /// Whether it may be the same server as another.
    wants_uuid: bool,
    /// Seconds after which the server may end a connection on which nothing is asked; `None` for
    /// the server's own `wait_timeout`.
    wait_timeout_s: Option<u64>,
}

/// Intervals of pings after which a server may end the monitor's connection: that one is lost.
const PINGS_MISSED: u64 = 10;

impl Jobs {
    /// Whether something else follows for some row of the server.
    fn matters(&self, before: &Seen, now: &Seen) -> bool {
        let lag = |seen: &Seen| match seen.lag {
            Lag::Seconds(seconds) => seconds,
            Lag::Unknown | Lag::Source => 0,
        };
        let ping_ms = |seen: &Seen| seen.ping_us.map_or(0, |us| us / 1000);
        let crosses =
            |max: &[u32], was: u32, is: u32| max.iter().any(|max| (was > *max) != (is > *max));
        before.reach != now.reach
            || before.uuid != now.uuid
            || before.channels != now.channels
            || self.roles.values().any(|topology| {
                let kind = topology.kind();
                before.peers != now.peers
                    || before.told.contains_key(&kind) != now.told.contains_key(&kind)
                    || role_matters(topology, before.told(kind), now.told(kind))
            })
            || crosses(&self.lags_max, lag(before), lag(now))
            || crosses(&self.pings_max_ms, ping_ms(before), ping_ms(now))
    }
}

/// Finding about a server that need only be there.
const NOTHING: (Found, Option<Arc<str>>) = (Found::Nothing, None);

/// Whether something else follows from what a server says to a topology.
fn role_matters(topology: &Topology, before: Told, now: Told) -> bool {
    let ways = topology::kind(topology.kind());
    let max = topology.behind_max();
    let behind = |told: Told| Some(told.role.behind()).filter(|queue| max > 0 && *queue > max);
    before.is_missed != now.is_missed
        || ways.standing(&before.role) != ways.standing(&now.role)
        || behind(before).is_some() != behind(now).is_some()
}

/// Question that a server is asked.
enum Question<'q> {
    /// Whether it is there.
    Ping,
    /// This, in the words of its version.
    Of(&'q dyn Fn(&str) -> String),
}

/// When each question is due.
struct Due {
    connect: Instant,
    ping: Instant,
    /// Topologies that have asked before; any other is due.
    roles: BTreeMap<TopologyKind, Instant>,
    lag: Instant,
    /// Beginning of the watch.
    start: Instant,
}

impl Watch {
    /// `before`: what was seen at another address of the name.
    pub(crate) fn new(key: ServerKey, before: Option<&Seen>) -> Self {
        Self {
            key,
            interest: RefCell::default(),
            jobs: RefCell::default(),
            checked: RefCell::new(before.map(Checked::instead_of).unwrap_or_default()),
            is_urgent: before.is_some(),
            stopped: Cell::default(),
            bell: Bell::new(),
            looks_now: Cell::default(),
            told: Cell::default(),
            since_peers: Cell::default(),
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        self.checked.borrow().seen.clone()
    }

    pub(crate) fn stop(&self) {
        self.stopped.set(true);
        self.bell.ring();
    }

    /// Something else is in force.
    pub(crate) fn look_again(&self) {
        self.bell.ring();
    }

    /// Somebody has had trouble with it: whether it is there is asked at once, and what it is, unless it
    /// has only been silent.
    pub(crate) fn look_now(&self, sign: Sign) {
        let worse = match self.looks_now.get() {
            Some(Sign::Failed) => Sign::Failed,
            _ => sign,
        };
        self.looks_now.set(Some(worse));
        self.bell.ring();
    }

    pub(crate) const fn key(&self) -> &ServerKey {
        &self.key
    }

    /// Whether it is watched for a row of which this is true.
    pub(crate) fn is_of(&self, is: impl Fn(&ServerKey) -> bool) -> bool {
        self.interest.borrow().keys.iter().any(is)
    }

    /// Rows for which it is watched from now on.
    pub(crate) fn is_for(&self, interest: Interest) {
        self.interest.replace(interest);
        self.jobs.take();
        self.bell.ring();
    }

    /// Host of the row for which it is watched, or of the first of them.
    fn row_host(&self) -> Arc<str> {
        let interest = self.interest.borrow();
        let row = interest.keys.first().unwrap_or(&self.key);
        row.host.clone()
    }

    /// Name in an operator's words: that of a row, with the address.
    fn called(&self) -> String {
        let interest = self.interest.borrow();
        match interest.keys.iter().find(|row| **row != self.key) {
            Some(row) => format!("{row} ({})", self.key.host),
            None => self.key.to_string(),
        }
    }

    pub(crate) async fn run(self: Rc<Self>, monitor: Rc<Monitor>) {
        let spread = SPREAD.as_nanos() as u64;
        let later = Duration::from_nanos(monitor.rt.random() % spread);
        let start = monitor.rt.now()
            + if self.is_urgent {
                Duration::ZERO
            } else {
                later
            };
        let mut due = Due {
            connect: start,
            ping: start,
            roles: BTreeMap::new(),
            lag: start,
            start,
        };
        let mut open: Option<Line> = None;
        while !self.stopped.get() {
            let snapshot = monitor.snapshot();
            if !snapshot.variables.mysql_monitor_enabled {
                open = None;
                self.checked.take();
                self.bell.heard().await;
                continue;
            }
            let jobs = self.jobs(&monitor, &snapshot);
            self.forget(&jobs);
            if let Some(sign) = self.looks_now.take() {
                due.look(&jobs, sign, monitor.rt.now());
            }
            let next = due.next(&jobs);
            let now = monitor.rt.now();
            if next > now {
                let wait = monitor.rt.sleep(next - now);
                let _rung_or_time = rt::select(wait, self.bell.heard()).await;
                continue;
            }
            self.check(&monitor, &snapshot.variables, &jobs, &mut due, &mut open)
                .await;
        }
    }

    /// Returns what the rows of this server want to know.
    fn jobs(&self, monitor: &Monitor, snapshot: &Snapshot) -> Rc<Jobs> {
        let mut jobs = self.jobs.borrow_mut();
        let made = || {
            let interest = self.interest.borrow();
            let found = interest.keys.iter().find_map(|key| monitor.found(key));
            Rc::new(Jobs::of(&interest, snapshot, found))
        };
        jobs.get_or_insert_with(made).clone()
    }
}

impl Jobs {
    fn of(interest: &Interest, snapshot: &Snapshot, found: Option<crate::Found>) -> Self {
        let v = &snapshot.variables;
        let mut jobs = Self {
            roles: BTreeMap::new(),
            lag: None,
            tls: Tls::IfOffered,
            proxy_protocol: 0,
            lags_max: Vec::new(),
            pings_max_ms: Vec::new(),
            wants_uuid: false,
            wait_timeout_s: v.mysql_monitor_wait_timeout.then(|| {
                let slowest_ms = v
                    .mysql_monitor_ping_interval
                    .max(v.mysql_monitor_read_only_interval);
                (slowest_ms * PINGS_MISSED).div_ceil(1000)
            }),
        };
        let latency_max = u32::try_from(v.mysql_default_max_latency_ms).unwrap_or(u32::MAX);
        for row in &interest.rows {
            let Some(hostgroup) = snapshot.servers.hostgroup(row.hostgroup) else {
                continue;
            };
            let topologies = snapshot.servers.topologies().iter();
            for topology in topologies.filter(|one| one.is_active()) {
                if topology.hostgroups().contains(&hostgroup.id) {
                    jobs.roles.insert(topology.kind(), topology.clone());
                }
            }
            let ping_max_ms = match row.max_latency_ms {
                0 => latency_max,
                own => own,
            };
            // 0 is no limit.
            jobs.pings_max_ms
                .extend((ping_max_ms > 0).then_some(ping_max_ms));
            if row.max_replication_lag > 0 {
                jobs.lags_max.push(row.max_replication_lag);
                let usual = u32::try_from(v.mysql_monitor_slave_lag_when_null);
                let own = hostgroup.attributes.monitor_slave_lag_when_null;
                let when_null = own.unwrap_or_else(|| usual.unwrap_or(u32::MAX));
                let max = jobs.lag.map_or(row.max_replication_lag, |(max, _)| {
                    max.min(row.max_replication_lag)
                });
                jobs.lag = Some((max, when_null));
            }
            jobs.proxy_protocol = jobs.proxy_protocol.max(hostgroup.attributes.proxy_protocol);
            if row.use_ssl {
                jobs.tls = Tls::Yes(Box::new(settings(
                    row.ssl_for(&v.mysql_monitor_username),
                    v,
                )));
            }
        }
        // No row names it.
        if let Some((topology, row)) = found {
            jobs.roles.insert(topology.kind(), topology);
            if row.use_ssl {
                jobs.tls = Tls::Yes(Box::new(settings(None, v)));
            }
            jobs.pings_max_ms
                .extend((latency_max > 0).then_some(latency_max));
        }
        let is_name = |row: &ServerKey| crate::names::is_name(&row.host, row.port);
        jobs.wants_uuid = !jobs.roles.is_empty() || interest.keys.iter().any(is_name);
        jobs
    }
}

impl Watch {
    /// Asks the question that is due first.
    async fn check(
        &self,
        monitor: &Rc<Monitor>,
        v: &Variables,
        jobs: &Jobs,
        due: &mut Due,
        open: &mut Option<Line>,
    ) {
        let before = self.seen();
        let (now, next) = (monitor.rt.now(), due.next(jobs));
        let ms = Duration::from_millis;
        let limits = limits(v);
        // The role first: it decides most.
        let is_due = |topology: &&Arc<Topology>| due.role(topology.kind()) == next;
        let is_silent = if let Some(topology) = jobs.roles.values().find(is_due) {
            let pace = topology::kind(topology.kind()).pace(topology, v);
            let usual = ms(pace.interval_ms);
            let lacks = monitor.lacks_a_writer(topology.writers());
            let soon = if lacks { usual.min(NO_WRITER) } else { usual };
            due.roles.insert(topology.kind(), now + soon);
            let is_silent = self
                .check_role(monitor, v, jobs, open, topology, pace)
                .await;
            if self.seen().told != before.told {
                // A replica that was promoted is behind nobody any more.
                due.lag = due.lag.min(now);
            }
            is_silent
        } else if due.ping == next {
            due.ping = now + ms(v.mysql_monitor_ping_interval);
            let timeout = ms(v.mysql_monitor_ping_timeout);
            let asked = self.asked(monitor, v, jobs, open, Question::Ping, timeout);
            let (started, answer) = asked.await;
            let took = answer.map(|_| monitor.rt.now() - started);
            let failed = took.as_ref().err();
            self.record(monitor, Check::Ping, started, NOTHING, failed);
            let is_silent = silent(took.as_ref().err());
            self.checked.borrow_mut().ping(took, &limits);
            if is_silent {
                due.silence(jobs, self.again(monitor, now));
            }
            false
        } else if let Some((max, when_null)) = jobs.lag
            && due.lag == next
        {
            due.lag = now + ms(v.mysql_monitor_replication_lag_interval);
            self.check_lag(monitor, v, jobs, open, (max, when_null))
                .await
        } else {
            due.connect = now + ms(v.mysql_monitor_connect_interval);
            let who = who(v, jobs, ms(v.mysql_monitor_connect_timeout));
            let opened = self.connect(monitor, &who).await;
            let failed = opened.map(drop).map_err(fault);
            let failed = failed.as_ref().err();
            self.record(monitor, Check::Connect, now, NOTHING, failed);
            silent(failed)
        };
        if is_silent {
            self.checked.borrow_mut().is_silent();
            due.silence(jobs, self.again(monitor, now));
        }
        self.tell(monitor, &before, jobs);
    }

    /// When a server is asked again that was silent to a question. `asked`: when that was.
    fn again(&self, monitor: &Monitor, asked: Instant) -> Instant {
        let now = monitor.rt.now();
        match self.seen().reach {
            Reach::Missing(_) => now + COMES_BACK,
            // It has had its time already where it let the question wait.
            Reach::Unknown | Reach::Well => now.max(asked + LOOK_AGAIN),
        }
    }

    /// Asks for its part in a topology; whether nobody answers.
    async fn check_role(
        &self,
        monitor: &Rc<Monitor>,
        v: &Variables,
        jobs: &Jobs,
        open: &mut Option<Line>,
        topology: &Topology,
        pace: Pace,
    ) -> bool {
        let (kind, ways) = (topology.kind(), topology::kind(topology.kind()));
        let question = |version: &str| ways.question(topology, version);
        let timeout = Duration::from_millis(pace.timeout_ms);
        let asked = self.asked(monitor, v, jobs, open, Question::Of(&question), timeout);
        let (started, answer) = asked.await;
        let mut name = None;
        let told = match answer {
            Ok((_, rows)) => {
                name = ways.name(&rows);
                if ways.asks_for_peers(v).is_none() {
                    let peers = ways.peers(topology, &rows);
                    self.checked.borrow_mut().knows(kind, peers);
                    self.since_peers.set(None);
                }
                ways.told(topology, &rows).map_err(no_answer)
            }
            // Some errors say enough.
            Err(Fault::Says { code, words }) => match ways.told_by_error(code) {
                Some(role) => Ok(role),
                None => Err(Fault::Says { code, words }),
            },
            Err(silent) => Err(silent),
        };
        let found = told
            .as_ref()
            .map_or(Found::Nothing, |role| Found::Role(*role));
        let failed = told.as_ref().err();
        self.record(monitor, Check::of(kind), started, (found, name), failed);
        let is_silent = silent(failed);
        if let Ok(Role::Aurora(instance)) = &told
            && !instance.is_writer
        {
            self.is_as_of(monitor, started, instance.lag_ms.into());
        }
        let max = topology.behind_max();
        let channels = match told {
            Ok(role) => {
                self.channels(monitor, v, jobs, open, (topology, role, timeout))
                    .await
            }
            Err(_) => self.seen().channels,
        };
        {
            let mut checked = self.checked.borrow_mut();
            checked.replicates(channels);
            checked.told(kind, told, max, &pace);
        }
        is_silent
            || self
                .check_peers(monitor, v, jobs, open, (kind, timeout))
                .await
    }

    /// Servers that it replicates from, if it says that it may write in a pair: asked when it says so for the
    /// first time, and while others say so, too. An account that may not ask knows none.
    async fn channels(
        &self,
        monitor: &Rc<Monitor>,
        v: &Variables,
        jobs: &Jobs,
        open: &mut Option<Line>,
        (topology, role, timeout): (&Topology, Role, Duration),
    ) -> Option<Channels> {
        if role != Role::ReadOnly(false) {
            return None;
        }
        let before = self.seen();
        let told = before.told(topology.kind());
        let is_news = told.is_missed || told.role != role;
        if !is_news && !monitor.has_rivals(topology.writers()) {
            return before.channels;
        }
        let number = |_: &str| topology::NUMBER_QUESTION.to_owned();
        let asked = self.asked(monitor, v, jobs, open, Question::Of(&number), timeout);
        let (_, number) = asked.await.1.ok()?;
        let lag = |version: &str| topology::lag_question(version).to_owned();
        let asked = self.asked(monitor, v, jobs, open, Question::Of(&lag), timeout);
        let (names, rows) = asked.await.1.ok()?;
        topology::channels(&number, (&names, &rows))
    }

    /// Asks for the servers that it knows, where its kind has a question for that and its turn has
    /// come; whether nobody answers. Who has no such table knows nobody.
    async fn check_peers(
        &self,
        monitor: &Rc<Monitor>,
        v: &Variables,
        jobs: &Jobs,
        open: &mut Option<Line>,
        (kind, timeout): (TopologyKind, Duration),
    ) -> bool {
        let ways = topology::kind(kind);
        let Some((text, every)) = ways.asks_for_peers(v) else {
            return false;
        };
        let since = self.since_peers.get().map(|since| since + 1);
        if since.is_some_and(|since| since < every) {
            self.since_peers.set(since);
            return false;
        }
        let question = |_: &str| text.to_owned();
        let asked = self.asked(monitor, v, jobs, open, Question::Of(&question), timeout);
        let rows = match asked.await.1 {
            Ok((_, rows)) => rows,
            Err(Fault::Says { .. }) => Rows::new(),
            Err(Fault::Silent(_)) => return true,
        };
        self.since_peers.set(Some(0));
        let keys = self.interest.borrow().keys.clone();
        let key = keys.first().unwrap_or(&self.key);
        let peers = ways.told_peers(key, &rows);
        self.checked.borrow_mut().knows(kind, peers);
        false
    }

    /// Forgets what it has said to topologies that it is in no more.
    fn forget(&self, jobs: &Jobs) {
        let mut checked = self.checked.borrow_mut();
        for kind in TopologyKind::ALL {
            if !jobs.roles.contains_key(&kind) {
                checked.forget(kind);
            }
        }
    }

    /// Tells the cores that the server shows everything that its source had so many milliseconds
    /// before the check that began then.
    fn is_as_of(&self, monitor: &Monitor, started: Instant, lag_ms: u64) {
        let since_ms = u64::try_from((monitor.rt.now() - started).as_millis()).unwrap_or(u64::MAX);
        let now_ms = (monitor.clock)() / 1000;
        self.tell_as_of(
            monitor,
            now_ms.saturating_sub(since_ms.saturating_add(lag_ms)),
        );
    }

    /// A core that has no room for it knows an older time until the next check.
    fn tell_as_of(&self, monitor: &Monitor, ms: u64) {
        let interest = self.interest.borrow();
        let rows = interest
            .keys
            .iter()
            .filter(|row| monitor.names.leads_only_to(&row.host, &self.key.host));
        for server in rows.chain([&self.key]) {
            let _all = (monitor.tell_cores)(&|| ToCore::AsOf {
                server: server.clone(),
                ms,
            });
        }
    }

    async fn check_lag(
        &self,
        monitor: &Rc<Monitor>,
        v: &Variables,
        jobs: &Jobs,
        open: &mut Option<Line>,
        (max, when_null): (u32, u32),
    ) -> bool {
        let heartbeat = &v.mysql_monitor_replication_lag_use_percona_heartbeat;
        let question = |version: &str| {
            let own = topology::heartbeat_question(heartbeat);
            own.unwrap_or_else(|| topology::lag_question(version).to_owned())
        };
        let timeout = Duration::from_millis(v.mysql_monitor_replication_lag_timeout);
        let asked = self.asked(monitor, v, jobs, open, Question::Of(&question), timeout);
        let (started, answer) = asked.await;
        let lags = answer.and_then(|(names, rows)| {
            topology::lags(&names, &rows).ok_or_else(|| no_answer("it does not say its lag"))
        });
        if let Ok(all) = &lags {
            let worst = all
                .iter()
                .copied()
                .reduce(|one, other| Some(one?.max(other?)));
            if let Some(Some(seconds)) = worst {
                self.is_as_of(
                    monitor,
                    started,
                    u64::from(seconds) * 1000 + PART_OF_A_SECOND_MS,
                );
            }
        }
        let worst = lags.map(|all| {
            let each = all.into_iter().map(|lag| lag.unwrap_or(when_null));
            each.max().map_or(Lag::Source, Lag::Seconds)
        });
        let found = match worst {
            Ok(Lag::Seconds(seconds)) => Found::Seconds(seconds),
            _ => Found::Nothing,
        };
        let found = (found, None);
        self.record(monitor, Check::Lag, started, found, worst.as_ref().err());
        let is_silent = silent(worst.as_ref().err());
        self.checked.borrow_mut().lag(worst, max, &limits(v));
        is_silent
    }

    /// Asks over the connection that is open, or a new one: a question, or whether it is there.
    async fn asked(
        &self,
        monitor: &Monitor,
        v: &Variables,
        jobs: &Jobs,
        open: &mut Option<Line>,
        question: Question<'_>,
        timeout: Duration,
    ) -> (Instant, Result<(Names, Rows), Fault>) {
        let connect = Duration::from_millis(v.mysql_monitor_connect_timeout).max(timeout);
        let who = Who {
            silent: timeout,
            whole: timeout,
            ..who(v, jobs, connect)
        };
        let mut started = monitor.rt.now();
        let mut line = match open.take() {
            Some(line) if line.is_like(&who) => line,
            _ => match self.open(monitor, jobs, &who).await {
                Ok(line) => line,
                Err(failed) => return (started, Err(fault(failed))),
            },
        };
        if matches!(question, Question::Ping) {
            // What a ping takes is not what a login takes.
            started = monitor.rt.now();
        }
        line.be_patient(timeout);
        let answer = match question {
            Question::Of(text) => {
                let text = text(line.version());
                line.ask_named(&text).await
            }
            Question::Ping => line.ping().await.map(|()| (Names::new(), Rows::new())),
        };
        // Of one that is lost nothing more comes.
        if !matches!(answer, Err(Failed::Lost(_))) {
            *open = Some(line);
        }
        (started, answer.map_err(fault))
    }

    async fn connect(&self, monitor: &Monitor, who: &Who) -> Result<Line, Failed> {
        let at = (&*self.key.host, self.key.port);
        Line::open_with(&monitor.rt, at, who, &monitor.connectors).await
    }

    /// Opens a connection, and asks which server it is that answers.
    async fn open(&self, monitor: &Monitor, jobs: &Jobs, who: &Who) -> Result<Line, Failed> {
        let checked = &self.checked;
        let mut line = self.connect(monitor, who).await?;
        if let Some(seconds) = jobs.wait_timeout_s {
            let said = line
                .ask(&format!("SET SESSION wait_timeout={seconds}"))
                .await;
            if let Err(lost) = said
                && !matches!(lost, Failed::Said { .. })
            {
                return Err(lost);
            }
        }
        if !jobs.wants_uuid || line.version().contains("MariaDB") {
            checked.borrow_mut().seen.uuid = None;
            return Ok(line);
        }
        let uuid = match line.ask("SELECT @@server_uuid").await {
            Ok(rows) => rows.into_iter().flatten().flatten().next(),
            Err(Failed::Said { .. }) => None,
            Err(lost) => return Err(lost),
        };
        let uuid = uuid.map(|uuid| String::from_utf8_lossy(&uuid).as_ref().into());
        checked.borrow_mut().seen.uuid = uuid;
        Ok(line)
    }

    fn record(
        &self,
        monitor: &Monitor,
        check: Check,
        started: Instant,
        (found, name): (Found, Option<Arc<str>>),
        failed: Option<&Fault>,
    ) {
        let took = (monitor.rt.now() - started).as_micros();
        let took = u64::try_from(took).unwrap_or(u64::MAX);
        let error = failed.map(|fault| match fault {
            Fault::Silent(words) | Fault::Says { words, .. } => words.clone(),
        });
        let row = CheckRow {
            host: self.row_host(),
            port: self.key.port,
            start_us: (monitor.clock)().saturating_sub(took),
            took_us: if error.is_none() { took } else { 0 },
            found,
            name,
            error,
        };
        monitor.record(check, row);
        let code = match failed {
            Some(Fault::Says { code, .. }) => *code,
            _ => 0,
        };
        if code != 0
            && self.told.replace(code) != code
            && let Some(Fault::Says { words, .. }) = failed
        {
            let key = self.called();
            monitor.note(&format!(
                "{key} cannot be checked, and keeps its place: {words}"
            ));
        } else if failed.is_none() {
            self.told.set(0);
        }
    }

    /// Tells an operator what has changed, and the cores.
    fn tell(&self, monitor: &Rc<Monitor>, before: &Seen, jobs: &Jobs) {
        let (now, key) = (self.seen(), self.called());
        match (&before.reach, &now.reach) {
            (Reach::Missing(_), Reach::Well) => monitor.note(&format!("{key} answers again")),
            (Reach::Unknown | Reach::Well, Reach::Missing(why)) => {
                // It may come back with older data.
                self.tell_as_of(monitor, 0);
                monitor.note(&format!("{key} does not answer: {why}"));
            }
            _ => {}
        }
        for topology in jobs.roles.values() {
            let (was, is) = (before.told(topology.kind()), now.told(topology.kind()));
            let ways = topology::kind(topology.kind());
            let words = ways.words(&is.role);
            if is.is_missed {
                if !was.is_missed {
                    monitor.note_change(&format!("{key} {} any more", ways.words(&Role::Unknown)));
                }
            } else if is.role != Role::Unknown && (was.is_missed || words != ways.words(&was.role))
            {
                monitor.note_change(&format!("{key} {words}"));
            }
        }
        if jobs.matters(before, &now) {
            monitor.tell();
        }
    }
}

impl Due {
    fn role(&self, kind: TopologyKind) -> Instant {
        self.roles.get(&kind).copied().unwrap_or(self.start)
    }

    /// Makes due now what tells whether the server is there, and, where something has failed, what it is.
    fn look(&mut self, jobs: &Jobs, sign: Sign, now: Instant) {
        self.ping = self.ping.min(now);
        if sign == Sign::Silent {
            return;
        }
        for kind in jobs.roles.keys() {
            self.roles.insert(*kind, self.role(*kind).min(now));
        }
    }

    /// Makes the next question a ping, and the role the one behind it.
    fn silence(&mut self, jobs: &Jobs, again: Instant) {
        self.ping = self.ping.min(again);
        for kind in jobs.roles.keys() {
            self.roles.insert(*kind, self.ping + BEHIND_THE_PING);
        }
    }

    fn next(&self, jobs: &Jobs) -> Instant {
        let role = jobs.roles.keys().map(|kind| self.role(*kind)).min();
        let lag = jobs.lag.map(|_| self.lag);
        let all = [Some(self.connect), Some(self.ping), role, lag];
        all.into_iter().flatten().min().unwrap_or(self.ping)
    }
}

fn limits(v: &Variables) -> Limits {
    let few = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    Limits {
        pings: few(v.mysql_monitor_ping_max_failures),
        lag: few(v.mysql_monitor_replication_lag_count),
    }
}

/// As whom a server is asked for something else than checks. `within`: how long it may take to answer.
#[must_use]
pub fn who_asks(key: &ServerKey, snapshot: &Snapshot, within: Duration) -> Who {
    let rows = snapshot.servers.iter().flat_map(|one| &one.servers);
    let own = rows.filter(|row| ServerKey::of(row) == *key).cloned();
    let interest = Interest {
        keys: vec![key.clone()],
        rows: own.collect(),
    };
    let jobs = Jobs::of(&interest, snapshot, None);
    who(&snapshot.variables, &jobs, within)
}

fn who(v: &Variables, jobs: &Jobs, connect: Duration) -> Who {
    Who {
        user: v.mysql_monitor_username.clone(),
        password: v.mysql_monitor_password.clone(),
        // As clients' connections to servers do.
        never_in_clear: false,
        proxy_protocol: jobs.proxy_protocol,
        tls: jobs.tls.clone(),
        connect,
        silent: connect,
        whole: connect,
    }
}

fn fault(failed: Failed) -> Fault {
    match failed {
        Failed::Lost(words) => Fault::Silent(words.into()),
        Failed::Said { code, words } => Fault::Says {
            code,
            words: words.into(),
        },
    }
}

/// Whether nobody answers.
fn silent(fault: Option<&Fault>) -> bool {
    matches!(fault, Some(Fault::Silent(_)))
}

/// The server answers, and not the question.
fn no_answer(words: &str) -> Fault {
    Fault::Says {
        code: u16::MAX,
        words: words.into(),
    }
}

/// As connections of clients to this server have it.
fn settings(params: Option<&Arc<config::SslParams>>, v: &Variables) -> Settings {
    match params {
        Some(own) => Settings {
            ca: own.ca.to_string(),
            capath: own.capath.to_string(),
            cert: own.cert.to_string(),
            key: own.key.to_string(),
            cipher: own.cipher.to_string(),
            crl: own.crl.to_string(),
            crlpath: own.crlpath.to_string(),
            versions: own.tls_versions().map(str::to_owned).collect(),
        },
        None => Settings {
            ca: v.mysql_ssl_p2s_ca.to_string(),
            capath: v.mysql_ssl_p2s_capath.to_string(),
            cert: v.mysql_ssl_p2s_cert.to_string(),
            key: v.mysql_ssl_p2s_key.to_string(),
            cipher: v.mysql_ssl_p2s_cipher.to_string(),
            crl: v.mysql_ssl_p2s_crl.to_string(),
            crlpath: v.mysql_ssl_p2s_crlpath.to_string(),
            versions: Vec::new(),
        },
    }
}
