//! Load of a fleet of so many proxies on an etcd: members without sessions, in one process.
//!
//! `cargo run --release -p fleet --example members -- 50` starts an etcd of one node and says what it
//! takes while nothing changes, and how long a LOAD needs to be everywhere. docs/scale.md
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "a measurement prints, and ends with what it has printed"
)]

use fleet::{Books, Failed, Head, Held, Need, Partner, Place, Report, Shares, Status, settle};
use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs, process};

/// As `cluster/fleet/follow.rs` of the crate `admin` has them.
const LIVES: Duration = Duration::from_secs(3);
/// As `cluster/fleet/shares.rs` has them.
const LOOK: Duration = Duration::from_millis(500);
const SHARES_LIVE: Duration = Duration::from_secs(2);
/// Limits of a fleet: servers, users, hostgroups.
const LIMITS: usize = 20;
const MODULES: [&str; 8] = [
    "mysql_query_rules",
    "mysql_firewall",
    "mysql_shards",
    "mysql_servers",
    "mysql_users",
    "mysql_variables",
    "admin_variables",
    "proxysql_servers",
];
const QUIET: Duration = Duration::from_secs(15);
const LOADS: u64 = 10;

struct Etcd {
    node: Child,
    folder: PathBuf,
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _gone = self.node.kill();
        let _gone = self.node.wait();
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

/// All that members know together.
#[derive(Default)]
struct Known {
    looks: Cell<u64>,
    /// Members that have seen this generation.
    seen: RefCell<(u64, usize)>,
    failed: Cell<u64>,
    /// Statuses with the latest generation, as member 0 has seen them.
    told: Cell<usize>,
}

fn main() {
    let count = env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(50);
    let free = || {
        let bound = TcpListener::bind("127.0.0.1:0").expect("a port");
        bound.local_addr().expect("it is bound").port()
    };
    let (client, peer) = (free(), free());
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let folder = env::temp_dir().join(format!("millrace-members-{}", process::id()));
    let node = Command::new("etcd")
        .args(["--name", "n0", "--data-dir"])
        .arg(&folder)
        .args([
            "--listen-client-urls",
            &url(client),
            "--advertise-client-urls",
            &url(client),
        ])
        .args([
            "--listen-peer-urls",
            &url(peer),
            "--initial-advertise-peer-urls",
            &url(peer),
        ])
        .args([
            "--initial-cluster",
            &format!("n0={}", url(peer)),
            "--unsafe-no-fsync",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("an etcd: scripts/setup.sh test");
    let etcd = Etcd { node, folder };
    let pid = etcd.node.id();
    let place = Place::parse(&format!("etcd://127.0.0.1:{client}/shop")).expect("a place");
    let done = rt::run(rt::Driver::READINESS, move |rt| async move {
        measure(&rt, &place, count, pid).await;
    });
    done.expect("a runtime");
    drop(etcd);
}

async fn measure(rt: &Rt, place: &Place, count: usize, pid: u32) {
    let first = Books::new(rt.clone(), place.clone());
    while first.look().await.is_err() {
        rt.sleep(Duration::from_millis(100)).await;
    }
    let known = Rc::new(Known::default());
    for nth in 0..count {
        let books = Rc::new(Books::new(rt.clone(), place.clone()));
        rt.spawn(follow(rt.clone(), books.clone(), nth, known.clone()));
        rt.spawn(share(rt.clone(), books, nth));
    }
    // Until all are there, and limits are shared out.
    let begun = rt.now();
    while known.seen.borrow().1 < count || rt.now() - begun < Duration::from_secs(25) {
        rt.sleep(Duration::from_millis(100)).await;
    }
    println!(
        "{count} members are there after {:.1} s",
        seconds(rt.now() - begun)
    );
    let written = revision(&first).await;
    let before = (
        cpu_s(pid),
        cpu_s(process::id()),
        known.looks.get(),
        rt.now(),
    );
    rt.sleep(QUIET).await;
    let took = seconds(rt.now() - before.3);
    let (etcd, own) = (cpu_s(pid) - before.0, cpu_s(process::id()) - before.1);
    println!(
        "quiet: etcd {:.1} % of a processor, a member {:.3} %, {:.2} looks a second of a member, {:.1} writings a second",
        100.0 * etcd / took,
        100.0 * own / took / count as f64,
        (known.looks.get() - before.2) as f64 / took / count as f64,
        (revision(&first).await - written) as f64 / took,
    );
    let mut times = Vec::new();
    for generation in 1..=LOADS {
        known.seen.replace((generation, 0));
        known.told.set(0);
        let begun = rt.now();
        write(&first, generation).await;
        while known.seen.borrow().1 < count {
            rt.sleep(Duration::from_millis(1)).await;
        }
        let seen = rt.now() - begun;
        while known.told.get() < count {
            rt.sleep(Duration::from_millis(1)).await;
        }
        times.push((seen, rt.now() - begun));
        rt.sleep(Duration::from_millis(300)).await;
    }
    for (what, mut all) in [
        (
            "all have seen it",
            times.iter().map(|one| one.0).collect::<Vec<_>>(),
        ),
        (
            "all are seen to have it",
            times.iter().map(|one| one.1).collect(),
        ),
    ] {
        all.sort_unstable();
        println!(
            "a LOAD, {what}: {:.0} ms in the middle, {:.0} ms at most",
            1000.0 * seconds(all[all.len() / 2]),
            1000.0 * seconds(all[all.len() - 1]),
        );
    }
    println!("{} calls have failed", known.failed.get());
    process::exit(0);
}

async fn revision(books: &Books) -> u64 {
    books.look().await.map_or(0, |seen| seen.revision)
}

/// A module of 1,000 rules, as the next truth.
async fn write(books: &Books, generation: u64) {
    let text = vec![b'x'; 100_000];
    loop {
        let truth = books.truth("mysql_query_rules").await;
        let guard = truth.ok().flatten().map_or(0, |truth| truth.revision);
        let head = Head {
            generation,
            id: format!("g{generation}"),
            ..Head::default()
        };
        if books
            .write("mysql_query_rules", (head, guard), &text, None)
            .await
            .is_ok()
        {
            return;
        }
    }
}

async fn follow(rt: Rt, books: Rc<Books>, nth: usize, known: Rc<Known>) {
    let mut status = Status {
        uuid: format!("{nth:08}-0000-4000-8000-000000000000"),
        name: format!("shop{nth}:6032"),
        address: format!("10.0.0.{nth}:6032"),
        version: "0.1.0".into(),
        modules: MODULES
            .iter()
            .map(|name| {
                (
                    (*name).to_owned(),
                    Held {
                        state: "own".into(),
                        ..Held::default()
                    },
                )
            })
            .collect(),
    };
    loop {
        if follow_once(&rt, &books, nth, &known, &mut status)
            .await
            .is_err()
        {
            known.failed.set(known.failed.get() + 1);
            rt.sleep(Duration::from_millis(300)).await;
        }
    }
}

async fn follow_once(
    rt: &Rt,
    books: &Books,
    nth: usize,
    known: &Known,
    status: &mut Status,
) -> Result<(), Failed> {
    let (mut lease, mut said, mut watch) = (None, None, None);
    let mut lived = rt.now();
    let mut last = None;
    loop {
        let seen = books.look().await?;
        known.looks.set(known.looks.get() + 1);
        if watch.is_none() {
            watch = Some(books.watch(&seen).await?);
        }
        let rules = seen.modules.get("mysql_query_rules");
        let generation = rules.map_or(0, |truth| truth.head.generation);
        if last != Some(generation) {
            last = Some(generation);
            if let Some(truth) = rules {
                books.text("mysql_query_rules", &truth.head, None).await?;
                let held = Held {
                    generation,
                    id: truth.head.id.clone(),
                    state: "in force".into(),
                    error: String::new(),
                };
                status.modules.insert("mysql_query_rules".into(), held);
            }
            let mut all = known.seen.borrow_mut();
            if all.0 == generation {
                all.1 += 1;
            }
        }
        if nth == 0 {
            let has = |status: &&Status| {
                let held = status.modules.get("mysql_query_rules");
                held.is_some_and(|held| held.generation == generation)
            };
            let told = seen.proxies.iter().filter(has).count();
            if generation == known.seen.borrow().0 {
                known.told.set(told);
            }
        }
        if lease.is_none() || said.as_ref() != Some(status) {
            lease = Some(books.say(status, lease).await?);
            said = Some(status.clone());
        }
        if let Some(given) = lease.filter(|_| rt.now() - lived >= LIVES) {
            lived = rt.now();
            if !books.live(given).await? {
                lease = None;
                continue;
            }
        }
        let Some(rings) = &mut watch else { continue };
        if let Ok(Err(_)) = rt.timeout(LIVES, rings.next()).await {
            watch = None;
        }
    }
}

async fn share(rt: Rt, books: Rc<Books>, nth: usize) {
    let uuid = format!("{nth:08}-0000-4000-8000-000000000000");
    let mut partner = Partner::default();
    let (mut lease, mut said, mut lived): (_, Option<Report>, Instant) = (None, None, rt.now());
    loop {
        if let Ok(shares) = books.shares().await {
            let says = (&mut lease, &mut said, &mut lived);
            let _silent = share_once(&rt, (&books, &shares), &uuid, &mut partner, says).await;
        }
        rt.sleep(LOOK).await;
    }
}

async fn share_once(
    rt: &Rt,
    (books, shares): (&Books, &Shares),
    uuid: &str,
    partner: &mut Partner,
    (lease, said, lived): (&mut Option<u64>, &mut Option<Report>, &mut Instant),
) -> Result<(), Failed> {
    partner.obey(&shares.ledger, uuid);
    let needs: BTreeMap<_, _> = (0..LIMITS)
        .map(|limit| {
            let share = shares.ledger.part(&format!("user u{limit}"), uuid);
            let held = share.map_or(0, |part| part.share);
            let need = Need {
                max: 1000,
                used: 3,
                waiting: 0,
                held,
            };
            (format!("user u{limit}"), need)
        })
        .collect();
    let report = Report {
        uuid: uuid.to_owned(),
        name: uuid.to_owned(),
        turn: shares.ledger.turn,
        needs,
    };
    if let Some(given) = lease.filter(|_| rt.now() - *lived >= SHARES_LIVE) {
        *lived = rt.now();
        if !books.live(given).await? {
            *lease = None;
        }
    }
    if lease.is_none()
        || said
            .as_ref()
            .is_none_or(|said| Partner::is_news(said, &report))
    {
        *lease = Some(books.say_needs(&report, *lease).await?);
        *said = Some(report);
    }
    if partner.settles(uuid, &shares.reports)
        && let Some(next) = settle(&shares.ledger, &shares.reports)
    {
        books.write_ledger(&next, shares.revision).await?;
    }
    Ok(())
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Processor time of a process, in seconds.
fn cpu_s(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = behind
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    ticks as f64 / 100.0
}
