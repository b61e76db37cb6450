//! What servers have executed, as a reader beside each tells, or its binary log; and which tables were
//! changed, as logs tell. One task follows each. What comes is passed on to the cores at once.
//!
//! docs/features/causal-reads.md, docs/features/cache.md

use crate::Monitor;
use crate::watch::who_asks;
use bridge::{Executed, GtidRow, LogRow, ToCore, Touched};
use config::{LogUse, Servers, Status};
use gtid::{Feed, News, Set};
use reader::Told;
use rt::Socket;
use rt::local::Bell;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use topology::{Observed, ServerKey};

/// So long a reader may take to let us in and to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);
/// A core whose mailbox is full is told again after this.
const AGAIN: Duration = Duration::from_millis(5);

/// How a server is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// A reader listens there, on the server's host.
    Port(u16),
    /// By its log, for what is used of that.
    Log(LogUse),
}

/// One server that is followed.
pub(crate) struct Reader {
    server: ServerKey,
    way: Way,
    known: RefCell<Option<Set>>,
    events: Cell<u64>,
    /// Some core does not know all of it.
    owed: Cell<bool>,
    /// Counts connections and sets: what was told in one before says nothing any more.
    life: Cell<u64>,
    /// Its log is followed now.
    is_followed: Cell<bool>,
    /// Tables that were changed, and that some core may not know of.
    untold: RefCell<Touched>,
    /// Reason why it was lost the last time.
    lost: RefCell<Option<Arc<str>>>,
    stopped: Cell<bool>,
    bell: Bell,
}

/// All servers that are followed.
#[derive(Default)]
pub(crate) struct Readers(RefCell<BTreeMap<(ServerKey, Way), Rc<Reader>>>);

/// Who is to be followed, in order, each way once.
pub(crate) fn wanted(servers: &Servers) -> Vec<(ServerKey, Way)> {
    let mut ways: BTreeMap<ServerKey, (u16, LogUse)> = BTreeMap::new();
    for hostgroup in servers.iter() {
        let log_use = servers.log_use(hostgroup.id);
        let rows = hostgroup.servers.iter();
        for row in rows.filter(|row| row.status != Status::OfflineHard) {
            let (port, by_log) = ways.entry(ServerKey::of(row)).or_default();
            *port = row.gtid_port.max(*port);
            *by_log = by_log.or(log_use);
        }
    }
    let mut all = Vec::new();
    for (server, (port, mut log_use)) in ways {
        if port > 0 {
            log_use.causal_reads = false;
            all.push((server.clone(), Way::Port(port)));
        }
        if log_use != LogUse::default() {
            all.push((server, Way::Log(log_use)));
        }
    }
    all
}

impl Readers {
    /// Follows these readers, and no others.
    pub(crate) fn follow(&self, monitor: &Rc<Monitor>, wanted: &[(ServerKey, Way)]) {
        let mut readers = self.0.borrow_mut();
        readers.retain(|key, reader| {
            let stays = wanted.contains(key);
            if !stays {
                reader.stopped.set(true);
                reader.bell.ring();
            }
            stays
        });
        for (server, way) in wanted {
            let key = (server.clone(), *way);
            readers.entry(key).or_insert_with(|| {
                let reader = Rc::new(Reader::new(server.clone(), *way));
                monitor.rt.spawn(reader.clone().run(monitor.clone()));
                reader
            });
        }
    }

    /// Has those begin anew whose name leads elsewhere: another server has executed other things.
    pub(crate) fn follow_names(&self, before: &Observed, now: &Observed) {
        for ((server, _), reader) in &*self.0.borrow() {
            let lead = |observed: &Observed| observed.lead(&server.host, server.port);
            if lead(before).is_some() && lead(before) != lead(now) {
                reader.bell.ring();
            }
        }
    }

    /// The rows of `stats_mysql_gtid_executed`.
    pub(crate) fn rows(&self) -> Vec<GtidRow> {
        let readers = self.0.borrow();
        let row = |reader: &Rc<Reader>| GtidRow {
            host: reader.server.host.clone(),
            port: reader.server.port,
            executed: reader.known.borrow().as_ref().map(ToString::to_string),
            events: reader.events.get(),
        };
        let tell = readers.values().filter(|reader| reader.tells_executed());
        tell.map(row).collect()
    }

    /// The rows of `stats_millrace_logs`.
    pub(crate) fn logs(&self) -> Vec<LogRow> {
        let readers = self.0.borrow();
        let logs = readers.values().filter_map(|reader| match reader.way {
            Way::Log(log_use) => Some((reader, log_use)),
            Way::Port(_) => None,
        });
        let row = |(reader, log_use): (&Rc<Reader>, LogUse)| LogRow {
            hostname: reader.server.host.clone(),
            port: reader.server.port,
            used_for: used_for(log_use).into(),
            followed: reader.is_followed.get(),
            transactions: reader.events.get(),
            error: reader.lost.borrow().clone(),
        };
        logs.map(row).collect()
    }
}

const fn used_for(log_use: LogUse) -> &'static str {
    match (log_use.causal_reads, log_use.cache_invalidate) {
        (true, true) => "causal_reads, cache_invalidate",
        (_, false) => "causal_reads",
        (false, true) => "cache_invalidate",
    }
}

impl Reader {
    fn new(server: ServerKey, way: Way) -> Self {
        Self {
            server,
            way,
            known: RefCell::default(),
            events: Cell::default(),
            owed: Cell::default(),
            life: Cell::default(),
            is_followed: Cell::default(),
            untold: RefCell::default(),
            lost: RefCell::default(),
            stopped: Cell::default(),
            bell: Bell::new(),
        }
    }

    async fn run(self: Rc<Self>, monitor: Rc<Monitor>) {
        let mut told = String::new();
        while !self.stopped.get() {
            let why = match self.way {
                Way::Port(port) => match self.read(&monitor, port, &mut told).await {
                    Ok(()) => "it has closed the connection".to_owned(),
                    Err(why) => why,
                },
                Way::Log(_) => self.read_log(&monitor, &mut told).await,
            };
            self.forget(&monitor);
            if self.stopped.get() {
                break;
            }
            if why != told {
                let Self { server, way, .. } = &*self;
                let what = match way {
                    Way::Port(port) => format!("the reader of {server} on port {port}"),
                    Way::Log(_) => format!("the log of {server}"),
                };
                let mut follows = "";
                if self.tells_executed() {
                    follows = "; what must see writes goes to where they were made";
                }
                monitor.note(&format!("{what} tells nothing: {why}{follows}"));
                if self.tells_touched() {
                    monitor.note(&format!(
                        "writes of others on {server} do not end the use of answers in the cache: their times to live do"
                    ));
                }
                told = why;
            }
            let v = monitor.snapshot().variables.clone();
            let retry = Duration::from_millis(v.mysql_binlog_reader_connect_retry_msec);
            let _stopped_or_time = rt::select(monitor.rt.sleep(retry), self.bell.heard()).await;
        }
    }

    /// Whether it is to say what its server has executed.
    const fn tells_executed(&self) -> bool {
        match self.way {
            Way::Port(_) => true,
            Way::Log(log_use) => log_use.causal_reads,
        }
    }

    /// Whether it is to say which tables were changed.
    const fn tells_touched(&self) -> bool {
        matches!(self.way, Way::Log(log_use) if log_use.cache_invalidate)
    }

    /// Follows the server's log until that ends, and says why it has. `told`: as in [`Self::read`].
    async fn read_log(self: &Rc<Self>, monitor: &Rc<Monitor>, told: &mut String) -> String {
        let server = reader::Server {
            host: (*monitor.host_of(&self.server)).into(),
            port: self.server.port,
            who: who_asks(&self.server, &monitor.snapshot(), BEGINS_WITHIN),
            may_be_mariadb: true,
        };
        let told = RefCell::new(told);
        let follows = reader::follow(&monitor.rt, &server, |news| {
            let mut counts = News::default();
            let touched = match news {
                Told::Begins(executed) => {
                    self.tells_again(monitor, &mut told.borrow_mut());
                    self.is_followed.set(true);
                    self.life.set(self.life.get() + 1);
                    counts.all = Some(executed);
                    // Nobody knows what was changed before.
                    Touched::everything()
                }
                Told::Visible {
                    gtids,
                    touched,
                    transactions,
                } => {
                    self.events.set(self.events.get() + transactions);
                    counts.more = gtids;
                    touched
                }
            };
            if self.tells_executed() {
                self.count(monitor, counts);
            }
            if self.tells_touched() {
                self.ends_answers(monitor, &touched);
            }
        });
        let ended = rt::select(follows, self.bell.heard()).await;
        self.is_followed.set(false);
        match ended {
            rt::Either::Left(why) => {
                self.lost.replace(Some(why.as_str().into()));
                why
            }
            rt::Either::Right(()) => String::new(),
        }
    }

    /// Tells the cores of tables that were changed, again if there was no room for it.
    fn ends_answers(self: &Rc<Self>, monitor: &Rc<Monitor>, touched: &Touched) {
        if touched.is_nothing() {
            return;
        }
        let waits = !self.untold.borrow().is_nothing();
        self.untold.borrow_mut().union(touched);
        if !waits && !self.says_touched(monitor) {
            let (reader, monitor) = (self.clone(), monitor.clone());
            monitor.rt.clone().spawn(async move {
                monitor.rt.sleep(AGAIN).await;
                while !reader.says_touched(&monitor) {
                    monitor.rt.sleep(AGAIN).await;
                }
            });
        }
    }

    /// Whether all cores could be told.
    fn says_touched(&self, monitor: &Monitor) -> bool {
        let touched = Arc::new(self.untold.borrow().clone());
        let all = (monitor.tell_cores)(&|| ToCore::Touched(touched.clone()));
        if all {
            self.untold.take();
        }
        all
    }

    /// Notes that a reader or a log tells something again, if it was said to tell nothing.
    fn tells_again(&self, monitor: &Monitor, told: &mut String) {
        if !told.is_empty() {
            let what = match self.way {
                Way::Port(_) => "reader",
                Way::Log(_) => "log",
            };
            monitor.note(&format!("the {what} of {} tells again", self.server));
            told.clear();
        }
    }

    /// Follows the reader until it ends. `told`: what an operator was told last.
    async fn read(
        self: &Rc<Self>,
        monitor: &Rc<Monitor>,
        port: u16,
        told: &mut String,
    ) -> Result<(), String> {
        let rt = &monitor.rt;
        let connected = rt.timeout(BEGINS_WITHIN, self.connect(monitor, port)).await;
        let socket = connected.map_err(|_late| "no connection in time".to_owned())??;
        let mut feed = Feed::default();
        let mut begun = false;
        loop {
            let heard = rt::select(socket.recv(), self.bell.heard());
            let heard = if begun {
                heard.await
            } else {
                let heard = rt.timeout(BEGINS_WITHIN, heard).await;
                heard.map_err(|_late| "it does not begin".to_owned())?
            };
            let rt::Either::Left(chunk) = heard else {
                return Ok(());
            };
            let chunk = chunk.map_err(|error| error.to_string())?;
            if chunk.is_empty() {
                return Ok(());
            }
            let news = feed.follow(&chunk).map_err(|error| error.to_string())?;
            if news.all.is_some() && !begun {
                begun = true;
                self.tells_again(monitor, told);
            }
            self.learn(monitor, news);
        }
    }

    async fn connect(&self, monitor: &Monitor, port: u16) -> Result<Socket, String> {
        let host = monitor.host_of(&self.server);
        let resolved = monitor.rt.resolve(&host, port).await;
        let addresses = resolved.map_err(|error| format!("nobody says where it is: {error}"))?;
        let mut why = "it has no address".to_owned();
        for address in addresses {
            match monitor.rt.connect(&address).await {
                Ok(socket) => return Ok(socket),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    /// Counts what was told when the server has had the time to make it visible: a reader tells it
    /// when it is in the log, and the engine commits behind that.
    fn learn(self: &Rc<Self>, monitor: &Rc<Monitor>, news: News) {
        self.events.set(self.events.get() + news.events);
        if news.all.is_some() {
            self.life.set(self.life.get() + 1);
        }
        let settle_us = monitor.snapshot().variables.mysql_gtid_settle_us;
        if settle_us == 0 {
            return self.count(monitor, news);
        }
        let (reader, monitor, life) = (self.clone(), monitor.clone(), self.life.get());
        monitor.rt.clone().spawn(async move {
            monitor.rt.sleep(Duration::from_micros(settle_us)).await;
            if reader.life.get() == life {
                reader.count(&monitor, news);
            }
        });
    }

    fn count(self: &Rc<Self>, monitor: &Rc<Monitor>, news: News) {
        let News { all, more, .. } = news;
        if let Some(mut all) = all {
            all.union(&more);
            let told = Executed::All(Arc::new(all.clone()));
            self.known.replace(Some(all));
            self.tell(monitor, &told);
        } else if let Some(known) = &mut *self.known.borrow_mut() {
            known.union(&more);
            self.tell(monitor, &Executed::More(Arc::new(more)));
        }
    }

    fn forget(self: &Rc<Self>, monitor: &Rc<Monitor>) {
        if !self.tells_executed() {
            return;
        }
        self.life.set(self.life.get() + 1);
        self.known.take();
        self.tell(monitor, &Executed::Unknown);
    }

    fn tell(self: &Rc<Self>, monitor: &Rc<Monitor>, what: &Executed) {
        if !self.says(monitor, what) && !self.owed.replace(true) {
            monitor.rt.spawn(self.clone().tell_all(monitor.clone()));
        }
    }

    /// Whether all cores could be told.
    fn says(&self, monitor: &Monitor, what: &Executed) -> bool {
        (monitor.tell_cores)(&|| ToCore::Executed {
            server: self.server.clone(),
            what: what.clone(),
        })
    }

    /// Some core was not told: it gets the whole set.
    async fn tell_all(self: Rc<Self>, monitor: Rc<Monitor>) {
        loop {
            monitor.rt.sleep(AGAIN).await;
            let what = match &*self.known.borrow() {
                Some(known) => Executed::All(Arc::new(known.clone())),
                None => Executed::Unknown,
            };
            if self.says(&monitor, &what) {
                self.owed.set(false);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{HostgroupAttributesRow, ServerRow, TopologyRows};

    fn row(hostgroup: i64, host: &str, gtid_port: i64) -> ServerRow {
        ServerRow {
            hostgroup_id: hostgroup,
            hostname: host.into(),
            gtid_port,
            ..ServerRow::default()
        }
    }

    fn asks(hostgroup: i64, settings: &str) -> HostgroupAttributesRow {
        HostgroupAttributesRow {
            hostgroup_id: hostgroup,
            hostgroup_settings: settings.into(),
            ..HostgroupAttributesRow::default()
        }
    }

    fn shown(servers: &Servers) -> String {
        let one = |(key, way): &(ServerKey, Way)| match way {
            Way::Port(port) => format!("{}: {port}", key.host),
            Way::Log(log_use) => format!("{}: {}", key.host, used_for(*log_use)),
        };
        let all: Vec<_> = wanted(servers).iter().map(one).collect();
        all.join("; ")
    }

    #[test]
    fn logs_are_followed_where_a_hostgroup_says_so_and_nobody_else_tells() {
        let rows = [
            row(0, "a", 0),
            row(1, "a", 0),
            row(1, "b", 6020),
            row(2, "c", 0),
            row(3, "d", 6020),
        ];
        let built = |settings: &[(i64, &str)]| {
            let attributes = settings.iter().map(|(id, settings)| asks(*id, settings));
            Servers::build(rows.clone(), attributes, []).unwrap()
        };
        assert_eq!(shown(&built(&[])), "b: 6020; d: 6020");
        let gtids = (1, r#"{"causal_reads": "binlog"}"#);
        let servers = built(&[gtids]);
        assert_eq!(shown(&servers), "a: causal_reads; b: 6020; d: 6020");
        // A reader tells of no tables.
        let tables = r#"{"cache_invalidate": "binlog"}"#;
        assert_eq!(
            shown(&built(&[gtids, (0, tables), (3, tables)])),
            "a: causal_reads, cache_invalidate; b: 6020; d: 6020; d: cache_invalidate"
        );
        // Who is in one hostgroup of a pair may serve in the other.
        let pair = config::ReplicationHostgroupRow {
            writer_hostgroup: 1,
            reader_hostgroup: 2,
            ..config::ReplicationHostgroupRow::default()
        };
        let topologies = TopologyRows {
            replication: vec![pair],
            ..TopologyRows::default()
        };
        let servers = servers.with_topologies(topologies).unwrap();
        assert_eq!(
            shown(&servers),
            "a: causal_reads; b: 6020; c: causal_reads; d: 6020"
        );
    }
}
