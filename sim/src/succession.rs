//! A cluster whose writer dies, hangs or is replaced, with the cores and the monitor before it:
//! servers with logs that follow each other, GTIDs, a tool that promotes, tails that are lost. No
//! write that was acknowledged may be missing but by the tail, none may be there twice, and nobody
//! may miss his own.
//!
//! ```text
//!  guests.rs ──> worker::run (what ships) ──> node.rs ── fates.rs: crash, hang, promote
//!                   ^ who serves where             │
//!               monitor::run (what ships) ─────────┘ roles, pings, GTIDs
//!       └──────────────── book.rs: what was promised ────┘
//! ```

mod book;
mod fates;
mod guests;
mod node;

use crate::chance::Chance;
use crate::cores::{self, Start};
use crate::judge::{Judge, Verdict};
use crate::server::PASSWORD;
use book::Book;
use bridge::{Ask, Counter, Report, ToCore, ToMonitor};
use config::{
    HostgroupAttributesRow, ReplicationHostgroupRow, ServerRow, Servers, Snapshot, TopologyRows,
    UserRow, Users, Variables,
};
use fates::Tool;
use guests::Guest;
use node::{Node, Pace};
use rt::sim::{Faults, Limits};
use rt::{Rt, mailbox};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const LIMITS: Limits = Limits {
    time_max: Duration::from_secs(3600),
    turns_max: 20_000_000,
};
/// Settings of the writers: reads of who has written go where it is visible, and transactions are run
/// again where they can be.
const CAUSAL: &str = r#"{"read_hostgroup":1,"read_after_write":"gtid"}"#;
const REPLAYED: &str = r#"{"read_hostgroup":1,"read_after_write":"gtid","transaction_replay":1,"transaction_replay_timeout_ms":300000}"#;
/// As [`REPLAYED`], and each COMMIT leaves a mark.
pub const MARKED: &str = r#"{"read_hostgroup":1,"read_after_write":"gtid","transaction_replay":1,"transaction_replay_timeout_ms":300000,"transaction_replay_marks":"m.marks"}"#;
/// The monitor has seen everybody after so long.
const BEGINNING: Duration = Duration::from_secs(3);
/// So long after the last fault all is as if nothing had been.
const SETTLE: Duration = Duration::from_secs(15);

/// A cluster before it begins.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Everything else follows from it.
    pub seed: u64,
    /// How many clients there are.
    pub clients: u64,
    /// How many cores share the work.
    pub cores: u32,
    /// Nothing breaks: writers are only replaced as planned.
    pub is_calm: bool,
    /// Of a hundred promotions so many do not wait until the next writer has applied what it got.
    pub careless: u64,
    /// In so many of a hundred deaths replicas apply nothing for a while.
    pub stalls: u64,
    /// A commit is acknowledged only when a replica has it.
    pub semi_sync: bool,
    /// `hostgroup_settings` of the writers.
    pub settings: &'static str,
    /// `mysql-monitor_read_only_interval`, in milliseconds.
    pub looks_every_ms: u64,
    /// At most so long a replica takes until it looks for more, in microseconds.
    pub lag_us: u64,
    /// At most so long a transaction is in the log before it can be read, in microseconds.
    pub commit_us: u64,
    /// At most so long a statement takes, in microseconds.
    pub statement_us: u64,
    /// Faults of the network.
    pub faults: Faults,
}

impl Cluster {
    /// The cluster of this seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut chance = Chance::new(seed, 50);
        let mut faults = Faults::perfect();
        if chance.percent(50) {
            faults.split = chance.below(300) as f64 / 1000.0;
            faults.shuffle = true;
            faults.latency_max = Duration::from_micros(chance.below(2_000));
        }
        Self {
            seed,
            clients: chance.between(2, 6),
            cores: u32::try_from(chance.between(1, 2)).unwrap_or(1),
            is_calm: chance.percent(25),
            careless: *chance.one_of(&[0, 30, 100]),
            stalls: 40,
            semi_sync: chance.percent(40),
            settings: *chance.one_of(&[CAUSAL, REPLAYED, MARKED, MARKED]),
            looks_every_ms: *chance.one_of(&[100, 400, 1500]),
            lag_us: *chance.one_of(&[1_000, 20_000, 200_000]),
            commit_us: *chance.one_of(&[0, 1_000, 30_000]),
            statement_us: *chance.one_of(&[0, 500, 20_000]),
            faults,
        }
    }
}

/// Runs a cluster to its end.
///
/// # Panics
/// The world never ends: it reaches the limits of virtual time or of turns, or nothing can ever
/// happen.
#[must_use]
pub fn run(cluster: &Cluster) -> Verdict {
    let cluster = cluster.clone();
    rt::sim::run_with(
        cluster.seed,
        cluster.faults.clone(),
        LIMITS,
        |rt| async move { play(rt, &cluster).await },
    )
}

async fn play(rt: Rt, cluster: &Cluster) -> Verdict {
    let judge = Rc::new(Judge::new(rt.clone(), false));
    let panicked = judge.clone();
    rt.on_panic(move |words| panicked.accuse("core", &format!("a task panicked: {words}")));
    judge.tell("world", &format!("{cluster:?}"));
    let book = Book::new(&judge);
    nodes(&rt, &book, cluster);
    let chance = |who: u64| Chance::new(cluster.seed, who);

    let proxy: rt::Address = "127.0.0.1:6033".parse().expect("an address of this file");
    let snapshot = Arc::new(snapshot(cluster));
    let (notes, noted) = mailbox::channel::<String>(100_000);
    let (looks, letters) = mailbox::channel::<ToMonitor>(1_000);
    let start = Start {
        seed: cluster.seed,
        cores: cluster.cores,
        snapshot: snapshot.clone(),
        proxy: proxy.clone(),
        notes,
        look: Arc::new(move |server, sign| drop(looks.try_send(ToMonitor::Look(server, sign)))),
    };
    let (tells, _ended) = cores::start(&rt, &judge, &start);
    let folder = Folder::new(cluster.seed);
    rt.spawn(monitor::run(
        rt.clone(),
        watcher(&rt, &judge, snapshot, letters, &tells, &folder),
    ));
    rt.sleep(BEGINNING).await;

    let replays = cluster.settings != CAUSAL;
    let lives = |from: u64, count: u64, steps: u64| -> Vec<rt::local::Receiver<()>> {
        let begin = |number: u64| {
            let (done, ended) = rt::local::oneshot();
            let guest = Guest::new(&rt, &book, &proxy, number, chance(100 + number), replays);
            rt.spawn(async move {
                guest.lives(steps).await;
                let _nobody = done.send(());
            });
            ended
        };
        (from..from + count).map(begin).collect()
    };
    let all = lives(0, cluster.clients, 120);
    let tool = Tool {
        rt: rt.clone(),
        book: book.clone(),
        chance: chance(4),
        is_calm: cluster.is_calm,
        careless: cluster.careless,
        stalls: cluster.stalls,
    };
    tool.works().await;
    for life in all {
        let _panicked_or_over = life.await;
    }
    rt.sleep(SETTLE).await;
    judge.rough.set(false);
    judge.tell("world", "nothing breaks any more");
    for life in lives(cluster.clients, 2, 12) {
        let _panicked_or_over = life.await;
    }
    count(&rt, &judge, &tells).await;
    book.judge_log();
    if cluster.semi_sync {
        book.judge_promise();
    }
    while let Some(words) = noted.try_recv() {
        judge.tell("core noted", &words);
    }
    Verdict {
        committed: book.acknowledged(),
        ..judge.verdict(cluster.seed)
    }
}

/// Three servers, of which the first writes.
fn nodes(rt: &Rt, book: &Rc<Book>, cluster: &Cluster) {
    let pace = Pace {
        statement_us: cluster.statement_us,
        commit_us: cluster.commit_us,
        lag_us: cluster.lag_us,
        semi_sync: cluster.semi_sync,
    };
    let all = [("a", 1_u8), ("b", 2), ("c", 3)].map(|(name, number)| {
        let chance = Chance::new(cluster.seed, 10 + u64::from(number));
        Node::start(rt, book, name, number, pace, chance)
    });
    all[0].read_only.set(false);
    all[1].source_is(Some(&all[0]));
    all[2].source_is(Some(&all[0]));
    book.nodes.replace(all.to_vec());
}

/// A data directory, for as long as a world is played.
struct Folder(PathBuf);

impl Folder {
    fn new(seed: u64) -> Self {
        let name = format!("millrace-sim-{}-{seed}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _is_gone = std::fs::remove_dir_all(&self.0);
    }
}

fn watcher(
    rt: &Rt,
    judge: &Rc<Judge>,
    snapshot: Arc<Snapshot>,
    letters: mailbox::Receiver<ToMonitor>,
    tells: &[mailbox::Sender<ToCore>],
    folder: &Folder,
) -> monitor::Setup {
    let (cores, judge) = (tells.to_vec(), judge.clone());
    let (clock, began) = (rt.clone(), rt.now());
    monitor::Setup {
        snapshot,
        off: false,
        letters,
        tell: Box::new(move |letter| {
            let all = cores.iter().map(|core| core.try_send(letter()).is_ok());
            all.fold(true, |all, told| all & told)
        }),
        datadir: folder.0.clone(),
        note: Box::new(move |words| judge.tell("monitor", words)),
        clock: Box::new(move || {
            let since = (clock.now() - began).as_micros();
            1_700_000_000_000_000 + u64::try_from(since).unwrap_or(0)
        }),
    }
}

/// Counts of the cores, without which a world would prove little.
async fn count(rt: &Rt, judge: &Judge, tells: &[mailbox::Sender<ToCore>]) {
    let all = [
        (
            "a read where its session's writes are",
            Counter::GtidConsistentQueries,
        ),
        (
            "a transaction replayed",
            Counter::TransactionReplaysSucceeded,
        ),
        (
            "a commit found to be done",
            Counter::TransactionReplaysLanded,
        ),
        (
            "a statement that waited for a writer",
            Counter::StatementsHeldForWriter,
        ),
    ];
    for tell in tells {
        let (answer, answered) = mailbox::channel(1);
        let reply = Box::new(move |report| drop(answer.try_send(report)));
        let _full = tell.try_send(ToCore::Ask {
            what: Ask::Global,
            reset: false,
            reply,
        });
        match rt.timeout(Duration::from_secs(1), answered.recv()).await {
            Ok(Some(Report::Global(counts))) => {
                all.iter()
                    .for_each(|(what, counter)| judge.hit(what, counts.value(*counter)));
            }
            _ => judge.accuse("core", "does not tell what it counts"),
        }
    }
}

fn snapshot(cluster: &Cluster) -> Snapshot {
    let looks = cluster.looks_every_ms.to_string();
    let settings = [
        ("mysql-have_ssl", "false"),
        (
            "mysql-default_authentication_plugin",
            "mysql_native_password",
        ),
        ("mysql-monitor_password", PASSWORD),
        ("mysql-monitor_read_only_interval", looks.as_str()),
        ("mysql-gtid_settle_us", "0"),
        // Whoever waits for a writer gets one.
        ("mysql-connect_timeout_server_max", "300000"),
    ];
    let (variables, _) = Variables::build(settings).expect("settings of this file");
    let user = UserRow {
        username: "miller".to_owned(),
        password: Some(PASSWORD.to_owned()),
        ..UserRow::default()
    };
    let users = Users::build([user], &variables).expect("users of this file");
    let server = |hostgroup_id, number: u8| ServerRow {
        hostgroup_id,
        hostname: format!("10.1.0.{number}"),
        gtid_port: 6020,
        ..ServerRow::default()
    };
    let attributes = HostgroupAttributesRow {
        hostgroup_id: 0,
        hostgroup_settings: cluster.settings.to_owned(),
        ..HostgroupAttributesRow::default()
    };
    let servers = Servers::build([server(0, 1), server(1, 2), server(1, 3)], [attributes], [])
        .and_then(|servers| {
            servers.with_topologies(TopologyRows {
                replication: vec![ReplicationHostgroupRow::default()],
                ..TopologyRows::default()
            })
        })
        .expect("servers of this file");
    Snapshot {
        generation: 1,
        variables: Arc::new(variables),
        users: Arc::new(users),
        servers: Arc::new(servers),
        ..Snapshot::default()
    }
}
