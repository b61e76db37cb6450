//! Every client library against every server: what it sees through Millrace is what it sees
//! directly.
//!
//! One test per (server, client, what stands between). A plain relay stands between first: a
//! difference through it is the harness's own. A server or client that cannot be had makes its
//! tests count as ignored.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use conformance::clients::{self, Client, Runner, app, scenarios};
use conformance::compare::difference;
use conformance::killer::{self, Killer};
use conformance::moved;
use conformance::process::TempFolder;
use conformance::proxy::{DRIVERS, Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::relay;
use conformance::servers::{Server, Vendor};
use conformance::strangers::{self, Strangers};
use conformance::trials::everything;
use conformance::watch::watched;
use libtest_mimic::{Arguments, Failed, Trial};
use wire::caps;

/// Relay or proxy that stands between the client and the server.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Relay,
    Millrace(Driver),
    /// Millrace that prepares other statements than its clients, with the parameters elsewhere.
    Moved,
    /// Millrace that answers every read from its cache that it may answer from there.
    Cache,
    /// Millrace with two connections to the server, on which sessions of others leave all that they
    /// can.
    Shared,
    /// Millrace whose connections to the server are compressed.
    Packed,
    /// Millrace with nothing between the sockets: its users have `fast_forward`.
    Through(Driver),
    /// Millrace with nothing between the sockets, whose connections to the server are compressed.
    ThroughPacked,
}

/// C's library, and what is made of it or like it.
const HAVE_CALLS: &[Client] = &[
    Client::PhpMysqli,
    Client::PhpPdo,
    Client::PhpPdoPrepared,
    Client::C,
    Client::Ruby,
    Client::DbdMySql,
    Client::DbdMariaDb,
    Client::Odbc,
];

/// Those who ask before they are answered.
const R2DBC: [Client; 2] = [Client::R2dbcMySql, Client::R2dbcMariaDb];

/// Before every run.
const AS_THEY_WERE: [&str; 5] = [
    "DROP DATABASE IF EXISTS conf3",
    "DELETE FROM conf.child",
    "DELETE FROM conf.scratch",
    "DELETE FROM conf.loaded",
    "TRUNCATE conf.counted",
];

/// A server, what stands before it, and what the clients saw without: each made when first asked
/// for.
struct Stand {
    server: Server,
    relay: OnceLock<Result<u16, String>>,
    proxies: [OnceLock<Result<Proxy, String>>; 2],
    cached: OnceLock<Result<Proxy, String>>,
    moved: OnceLock<Result<Proxy, String>>,
    shared: OnceLock<Result<(Proxy, Strangers), String>>,
    packed: OnceLock<Result<Proxy, String>>,
    through: [OnceLock<Result<Proxy, String>>; 3],
    direct: Mutex<HashMap<String, Result<String, String>>>,
    /// Files that scenarios load.
    files: TempFolder,
    /// Scenarios change tables, so one runs at a time; the client that ran last stays for the next.
    turn: Mutex<Option<Runner>>,
}

impl Stand {
    /// Files may be loaded, and clients that name no character set have the server's: PHP takes the
    /// one of the greeting.
    fn wish(&self) -> Wish {
        let mut wish = Wish::in_front_of(&self.server);
        wish.variables.push_str(
            "    enable_load_data_local_infile = true\n    default_charset = \"utf8mb4\"\n",
        );
        let collation = if self.server.vendor == Vendor::MariaDb {
            "utf8mb4_general_ci"
        } else {
            "utf8mb4_unicode_ci"
        };
        wish.variables.push_str(&format!(
            "    default_collation_connection = \"{collation}\"\n"
        ));
        wish
    }

    /// A proxy that has met the server: from then on all is offered that it has.
    fn start(driver: Driver, wish: &Wish) -> Result<Proxy, String> {
        let proxy = Proxy::start(driver, wish)?;
        proxy.query("DO 1")?;
        Ok(proxy)
    }

    fn port(&self, between: Between) -> Result<u16, String> {
        match between {
            Between::Relay => self
                .relay
                .get_or_init(|| relay::start(self.server.port).map_err(|error| error.to_string()))
                .clone(),
            Between::Millrace(driver) => {
                let place = DRIVERS
                    .iter()
                    .position(|one| *one == driver)
                    .unwrap_or_default();
                let proxy = self.proxies[place].get_or_init(|| Self::start(driver, &self.wish()));
                proxy.as_ref().map(|proxy| proxy.port).map_err(Clone::clone)
            }
            Between::Moved => self.moved().map(|proxy| proxy.port),
            Between::Cache => self.cached().map(|proxy| proxy.port),
            Between::Shared => self.shared().map(|(_, strangers)| strangers.port),
            Between::Packed => {
                let mut wish = self.wish();
                wish.servers = wish
                    .servers
                    .replace("hostgroup = 0", "hostgroup = 0, compression = 1");
                // MariaDB has no zstd, and gets zlib.
                wish.variables
                    .push_str("    server_compression_algorithm = \"zstd\"\n");
                let proxy = self
                    .packed
                    .get_or_init(|| Self::start(Driver::Uring, &wish));
                proxy.as_ref().map(|proxy| proxy.port).map_err(Clone::clone)
            }
            Between::Through(_) | Between::ThroughPacked => {
                let mut wish = self.wish();
                wish.users = wish.users.replace(
                    "default_hostgroup = 0",
                    "default_hostgroup = 0, fast_forward = 1",
                );
                let (place, driver) = match between {
                    Between::Through(driver) => (
                        DRIVERS
                            .iter()
                            .position(|one| *one == driver)
                            .unwrap_or_default(),
                        driver,
                    ),
                    _ => {
                        wish.servers = wish
                            .servers
                            .replace("hostgroup = 0", "hostgroup = 0, compression = 1");
                        wish.variables
                            .push_str("    server_compression_algorithm = \"zstd\"\n");
                        (2, Driver::Epoll)
                    }
                };
                let proxy = self.through[place].get_or_init(|| Self::start(driver, &wish));
                proxy.as_ref().map(|proxy| proxy.port).map_err(Clone::clone)
            }
        }
    }

    fn cached(&self) -> Result<&Proxy, String> {
        let rules = "{ rule_id = 1, active = 1, match_digest = \"^.?(SELECT|WITH|VALUES|TABLE)\", cache_ttl = 600000, \
                     attributes = \"{\\\"cache_invalidate\\\":true}\", apply = 1 }";
        let wish = || Wish {
            rules: rules.into(),
            ..self.wish()
        };
        self.cached
            .get_or_init(|| Self::start(Driver::Uring, &wish()))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn shared(&self) -> Result<&(Proxy, Strangers), String> {
        let start = || {
            self.server.root(strangers::FIXTURE)?;
            let mut wish = self.wish();
            wish.servers = wish
                .servers
                .replace("max_connections = 2000", "max_connections = 2");
            let proxy = Self::start(Driver::Uring, &wish)?;
            let strangers = Strangers::start(app(proxy.port)).map_err(|error| error.to_string())?;
            Ok((proxy, strangers))
        };
        self.shared
            .get_or_init(start)
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Beside sessions of others, who have to have been there.
    fn run_shared(&self, client: &mut Runner, scenario: &Path) -> Result<String, String> {
        let (_, strangers) = self.shared()?;
        let seen = self.run(client, strangers.port, scenario);
        match strangers.leave()? {
            0..50 => Err("next to nothing was said by others".into()),
            _ => seen,
        }
    }

    fn moved(&self) -> Result<&Proxy, String> {
        let start = || {
            let proxy = Self::start(Driver::Uring, &self.wish())?;
            moved::load(&proxy)?;
            Ok(proxy)
        };
        self.moved.get_or_init(start).as_ref().map_err(Clone::clone)
    }

    fn direct(&self, client: &mut Runner, scenario: &Path) -> Result<String, String> {
        let key = format!("{} {}", client.client(), scenario.display());
        let known = self
            .direct
            .lock()
            .map_err(|_| "another test panicked")?
            .get(&key)
            .cloned();
        known.unwrap_or_else(|| {
            let seen = self.run(client, self.server.port, scenario);
            if let Ok(mut direct) = self.direct.lock() {
                direct.insert(key, seen.clone());
            }
            seen
        })
    }

    /// Every run finds the tables as the fixture made them, whatever an earlier client left there.
    fn run(&self, client: &mut Runner, port: u16, scenario: &Path) -> Result<String, String> {
        // The first has to come in as root: MySQL does not know the account's password yet.
        as_they_were(self.server.port)
            .or_else(|_| self.server.root(&AS_THEY_WERE.join("; ")).map(drop))?;
        let killer = if scenario.ends_with("killed.scenario") {
            self.server.root(killer::FIXTURE)?;
            Some(
                Killer::start(&app(self.server.port), &app(port))
                    .map_err(|error| format!("the killer: {error}"))?,
            )
        } else {
            None
        };
        let seen = client.run(app(port), scenario);
        match killer
            .map(Killer::stop)
            .transpose()
            .map_err(|error| format!("{error}; the client: {seen:?}"))?
        {
            Some(0) => Err(format!("nobody was ended: {seen:?}")),
            _ => seen,
        }
    }

    /// Twice: what the first run leaves in the cache, the second finds there, unless a write has
    /// ended its use.
    fn run_cached(&self, client: &mut Runner, scenario: &Path) -> Result<String, String> {
        let proxy = self.cached()?;
        proxy.admin("PROXYSQL FLUSH QUERY CACHE")?;
        for _ in 0..2 {
            as_they_were(proxy.port)?;
            client.run(app(proxy.port), scenario)?;
        }
        as_they_were(proxy.port)?;
        let seen = client.run(app(proxy.port), scenario)?;
        let hits = "SELECT Variable_Value > 0 FROM stats.stats_mysql_global WHERE Variable_Name = 'Query_Cache_count_GET_OK'";
        match proxy.admin(hits)?.trim() {
            "1" => Ok(seen),
            // The others may ask nothing twice, and nobody may have before them.
            _ if !scenario.ends_with("lifetime.scenario") => Ok(seen),
            _ => Err("nothing came from the cache".into()),
        }
    }

    fn compare(&self, client: Client, between: Between, scenario: &Path) -> Result<(), Failed> {
        let mut turn = self.turn.lock().map_err(|_| "another test panicked")?;
        if turn.as_ref().is_none_or(|runner| runner.client() != client) {
            *turn = Some(Runner::new(client, self.files.path()));
        }
        let Some(client) = turn.as_mut() else {
            return Err("no client".into());
        };
        let direct = self.direct(client, scenario)?;
        let through = match between {
            Between::Cache => self.run_cached(client, scenario)?,
            Between::Shared => self.run_shared(client, scenario)?,
            Between::Moved => {
                let seen = self.run(client, self.port(between)?, scenario)?;
                moved::was_used(self.moved()?)?;
                seen
            }
            _ => self.run(client, self.port(between)?, scenario)?,
        };
        // A client that stops at once sees the same nothing twice.
        if direct.lines().count() < 5 {
            return Err(
                format!("the client saw next to nothing without Millrace:\n{direct}").into(),
            );
        }
        // Nor does one that does not come in, however much it says of that.
        let first = direct
            .lines()
            .skip_while(|line| !line.starts_with("> connect"))
            .skip(1)
            .take_while(|line| !line.starts_with("> "));
        if let Some(error) = first.filter(|line| line.starts_with("  error")).last() {
            return Err(format!("the client does not come in without Millrace:{error}").into());
        }
        match difference(&direct, &through) {
            None => Ok(()),
            Some(words) => Err(words.into()),
        }
    }
}

/// On a connection of its own: a command line takes longer to start than most scenarios take.
fn as_they_were(port: u16) -> Result<(), String> {
    let mut raw = Raw::log_in(port, caps::DEPRECATE_EOF)?;
    for sql in AS_THEY_WERE {
        let said = raw.query(sql)?;
        if !said.starts_with(r"  1 \x00") {
            return Err(format!("{sql}: {said}"));
        }
    }
    Ok(())
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Two run at once, one for each server; who waits for his turn keeps no server idle.
    arguments.test_threads.get_or_insert(8);
    let stands: Vec<(Vendor, Result<Arc<Stand>, String>)> = [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .map(|vendor| (vendor, stand(vendor, &arguments)))
        .collect();
    let missing: Vec<(Client, Option<String>)> = clients::ALL
        .iter()
        .map(|client| (*client, client.missing()))
        .collect();

    let mut trials: Vec<Vec<Trial>> = Vec::new();
    for (vendor, stand) in &stands {
        let no_server = vendor.programs().err();
        if let Some(why) = &no_server {
            eprintln!("SKIPPED: every conformance test against {vendor}: {why}");
        }
        let mut own = Vec::new();
        for (client, absent) in &missing {
            if let (Some(why), Vendor::MariaDb) = (absent, vendor) {
                eprintln!("SKIPPED: every conformance test with {client}: {why}");
            }
            let ways = [
                Between::Relay,
                Between::Cache,
                Between::Shared,
                Between::Moved,
                Between::Packed,
                Between::ThroughPacked,
            ]
            .into_iter()
            .chain(DRIVERS.iter().copied().map(Between::Through))
            .chain(DRIVERS.iter().copied().map(Between::Millrace));
            for (between, scenario) in
                ways.flat_map(|way| scenarios().into_iter().map(move |path| (way, path)))
            {
                let name = scenario
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                // Two scenarios are enough to see that the harness itself changes nothing.
                if between == Between::Relay && !["types", "prepared"].contains(&name.as_str()) {
                    continue;
                }
                let text_only =
                    [Client::MariaDbCli, Client::MySqlCli, Client::PyMySql].contains(client);
                if between == Between::Moved
                    && (text_only || !["prepared", "large"].contains(&name.as_str()))
                {
                    continue;
                }
                // Nothing between the sockets, by another driver or into frames: what is large,
                // what is numbered anew, and who comes in, is enough to see that.
                let again = matches!(
                    between,
                    Between::Through(Driver::Epoll) | Between::ThroughPacked
                );
                if again
                    && ![
                        "compressed",
                        "compressed_several",
                        "connect",
                        "large",
                        "multi",
                        "prepared",
                    ]
                    .contains(&name.as_str())
                {
                    continue;
                }
                // MySQL derives the type of a parameter from the execution before it, which another
                // connection has not seen (docs/features/prepared-statements.md).
                if between == Between::Shared && *vendor == Vendor::MySql && name == "prepared" {
                    continue;
                }
                // What a session is matters there, not how it comes in or how much it is sent.
                if between == Between::Shared
                    && (name.starts_with("compressed")
                        || ["attributes", "connect", "empty", "large"].contains(&name.as_str()))
                {
                    continue;
                }
                // The others cannot say any, and MariaDB knows none.
                let has_attributes = [
                    Client::MySqlCli,
                    Client::ConnectorPython,
                    Client::ConnectorPythonC,
                    Client::Java,
                ]
                .contains(client);
                if name == "attributes"
                    && (!has_attributes || *vendor == Vendor::MariaDb || between == Between::Cache)
                {
                    continue;
                }
                // Where it may not become somebody else, it waits for ever, also before a server.
                if *client == Client::MariaDbNode && name == "lifetime" {
                    continue;
                }
                if !tells_more(*client, *vendor, between, &name)
                    || !everything() && proven_elsewhere(*client, *vendor, between, &name)
                {
                    continue;
                }
                // Calls that the others do not have.
                let has_calls = HAVE_CALLS.contains(client);
                if name == "calls" && !has_calls {
                    continue;
                }
                if name == "pipelined" && !R2DBC.contains(client) {
                    continue;
                }
                // It takes no file by a relative path, and how it ends then differs from run to
                // run.
                if *client == Client::R2dbcMySql
                    && ["files", "compressed_files", "compressed_several"].contains(&name.as_str())
                {
                    continue;
                }
                // MySQL itself refuses how these send a file in frames (error 1156), and how it
                // ends then differs from run to run.
                let breaks_off = [Client::MariaDbJava, Client::Odbc].contains(client)
                    && *vendor == Vendor::MySql;
                if breaks_off && ["compressed_files", "compressed_several"].contains(&name.as_str())
                {
                    continue;
                }
                if R2DBC.contains(client) && !worth_by_r2dbc(*client, between, &name) {
                    continue;
                }
                if has_calls && !worth(*client, between, &name) {
                    continue;
                }
                // Nothing in it is asked twice, or it writes more than it asks.
                if between == Between::Cache
                    && (name.starts_with("compressed")
                        || ["batches", "cursors", "files", "kept", "killed"]
                            .contains(&name.as_str()))
                {
                    continue;
                }
                // The connectors of MariaDB are here for what only its servers have.
                let for_mariadb = [Client::MariaDbNode, Client::MariaDbJava].contains(client);
                if for_mariadb
                    && *vendor == Vendor::MySql
                    && between != Between::Millrace(Driver::Uring)
                {
                    continue;
                }
                // Whose sockets are carried is the server's session, whose number is not the one in
                // the greeting (docs/features/fast-forward.md).
                if matches!(between, Between::Through(_) | Between::ThroughPacked)
                    && name == "killed"
                {
                    continue;
                }
                // Behind a prepared statement that was ended it waits for ever, before MariaDB
                // itself.
                if name == "killed" && *client == Client::Odbc && *vendor == Vendor::MariaDb {
                    continue;
                }
                // This driver pings between statements. A server zeroes ROW_COUNT() then; we answer
                // a ping ourselves (docs/compatibility.md).
                let through = matches!(between, Between::Through(_) | Between::ThroughPacked);
                if name == "row_count"
                    && !through
                    && client.to_string().starts_with("connector_python")
                {
                    continue;
                }
                let way = match between {
                    Between::Relay => "relay".to_owned(),
                    Between::Cache => "millrace_cache".to_owned(),
                    Between::Shared => "millrace_shared".to_owned(),
                    Between::Moved => "millrace_moved".to_owned(),
                    Between::Packed => "millrace_packed".to_owned(),
                    Between::Through(driver) => format!("millrace_through_{driver}"),
                    Between::ThroughPacked => "millrace_through_packed".to_owned(),
                    Between::Millrace(driver) => format!("millrace_{driver}"),
                };
                let (client, stand) = (*client, stand.clone());
                let skip = no_server.is_some() || absent.is_some();
                let name = format!("on_{vendor}::{client}::{way}::{name}");
                let runs = name.clone();
                let run = move || {
                    watched(&runs, || {
                        stand
                            .map_err(Failed::from)?
                            .compare(client, between, &scenario)
                    })
                };
                own.push(Trial::test(name, run).with_ignored_flag(skip));
            }
        }
        trials.push(own);
    }
    let conclusion = libtest_mimic::run(&arguments, in_turn(trials));
    // exit() runs no destructors; the servers and proxies have to go first.
    drop(stands);
    conclusion.exit();
}

/// Whether a client proves something this way that no other has proven. Every client plays every
/// scenario through the default, [`Driver::Uring`], on one server: what it says, and how it reads
/// answers, is seen there. On the other server it plays what servers say differently. The other ways
/// differ in how bytes travel, or in whose connection they come from. That is proven whole, and on
/// both servers, by a client in Java, where sessions matter by a command line and one that is
/// neither, too; the rest play what is prepared, or of a session, on one server (docs/testing.md).
fn tells_more(client: Client, vendor: Vendor, between: Between, scenario: &str) -> bool {
    let two = [Client::MySqlCli, Client::Java].contains(&client);
    let three = two || client == Client::Rust;
    // More megabytes than anything else, of which a way and a server each need a few.
    let large = ["compressed", "large"].contains(&scenario);
    match between {
        Between::Millrace(Driver::Uring) => {
            two || client == Client::C
                || home(client) == vendor
                // Where its home is, it waits for ever.
                || client == Client::Odbc && scenario == "killed"
                || [
                    "batches",
                    "calls",
                    "connect",
                    "cursors",
                    "errors",
                    "multi",
                    "pipelined",
                    "prepared",
                    "session",
                    "types",
                ]
                .contains(&scenario)
        }
        _ if !three && home(client) != vendor => false,
        // `worth` and `worth_by_r2dbc` say more of those.
        _ if HAVE_CALLS.contains(&client) || R2DBC.contains(&client) => true,
        Between::Relay => true,
        Between::Moved => !large || three,
        Between::Millrace(Driver::Epoll) => {
            client == Client::Java
                || ["killed", "prepared"].contains(&scenario)
                || two && ["connect", "errors", "large", "multi"].contains(&scenario)
        }
        Between::Packed => client == Client::Java || two && large,
        Between::Through(Driver::Uring) => {
            client == Client::Java
                || ["connect", "prepared"].contains(&scenario)
                || two && ["compressed", "large", "multi"].contains(&scenario)
        }
        Between::Through(Driver::Epoll) | Between::ThroughPacked => two,
        // Of what a command line says next to nothing comes from there.
        Between::Cache if [Client::MySqlCli, Client::MariaDbCli].contains(&client) => false,
        Between::Cache => {
            three && (!large || client == Client::Rust) || ["prepared", "types"].contains(&scenario)
        }
        Between::Shared => three || ["prepared", "session"].contains(&scenario),
    }
}

/// Whether another client, or this one on its own server, proves as much. These play where
/// `make test EVERYTHING=1` is asked for: what is large by every client, what servers say differently by
/// those who read it alike, and every way on both servers.
fn proven_elsewhere(client: Client, vendor: Vendor, between: Between, scenario: &str) -> bool {
    let heavy = scenario.starts_with("compressed") || scenario == "large";
    let few = ["connect", "errors", "multi", "prepared", "types"].contains(&scenario);
    let two = [Client::MySqlCli, Client::Java].contains(&client);
    let away = home(client) != vendor;
    match between {
        Between::Millrace(Driver::Uring) if two => away && heavy && client != Client::Java,
        Between::Millrace(Driver::Uring) => {
            heavy
                && (away
                    || ![Client::C, Client::Rust].contains(&client) && !R2DBC.contains(&client))
                || away && !few && client != Client::C
        }
        _ if two => away && !few && !["cursors", "large", "session"].contains(&scenario),
        _ => false,
    }
}

/// Where a client plays all of it: where most who use it are.
const fn home(client: Client) -> Vendor {
    match client {
        Client::MariaDbCli
        | Client::PyMySql
        | Client::MariaDbNode
        | Client::MariaDbJava
        | Client::PhpPdo
        | Client::C
        | Client::Ruby
        | Client::DbdMariaDb
        | Client::Odbc
        | Client::R2dbcMariaDb => Vendor::MariaDb,
        Client::MySqlCli
        | Client::ConnectorPython
        | Client::ConnectorPythonC
        | Client::Go
        | Client::Node
        | Client::Java
        | Client::Rust
        | Client::PhpMysqli
        | Client::PhpPdoPrepared
        | Client::DbdMySql
        | Client::R2dbcMySql => Vendor::MySql,
    }
}

/// Whether a scenario tells more by one of those who [`HAVE_CALLS`]: they differ in what they say,
/// and how Millrace speaks with the kernel and with servers does not depend on that. PDO is
/// mysqli's library below, Ruby's and Perl's are C's: they differ in how they prepare, fetch, and
/// speak of transactions.
fn worth(client: Client, between: Between, scenario: &str) -> bool {
    const THEIR_OWN: [&str; 16] = [
        "batches",
        "calls",
        "compressed_cursors",
        "compressed_files",
        "connect",
        "counts",
        "cursors",
        "errors",
        "killed",
        "lifetime",
        "multi",
        "prepared",
        "procedures",
        "session",
        "transactions",
        "types",
    ];
    let first = [Client::PhpMysqli, Client::C].contains(&client);
    match between {
        Between::Millrace(Driver::Uring) => first || THEIR_OWN.contains(&scenario),
        Between::Shared => {
            (first || [Client::PhpPdoPrepared, Client::Odbc].contains(&client))
                && [
                    "calls",
                    "counts",
                    "lifetime",
                    "prepared",
                    "session",
                    "transactions",
                ]
                .contains(&scenario)
        }
        Between::Relay => first,
        Between::Millrace(Driver::Epoll) | Between::Packed => first && scenario == "calls",
        _ => false,
    }
}

/// Whether a scenario tells more by one of [`R2DBC`], of which what is asked before there is an
/// answer is their own. What is large takes them long: one has the packets beyond 16 MiB with
/// compression, the other those without.
fn worth_by_r2dbc(client: Client, between: Between, scenario: &str) -> bool {
    match between {
        Between::Millrace(Driver::Uring) => {
            scenario
                != if client == Client::R2dbcMySql {
                    "large"
                } else {
                    "compressed"
                }
        }
        Between::Millrace(Driver::Epoll) | Between::Through(Driver::Uring) => {
            ["pipelined", "prepared"].contains(&scenario)
        }
        Between::Shared => ["pipelined", "prepared", "session", "transactions"].contains(&scenario),
        Between::Packed => scenario == "pipelined",
        Between::Cache | Between::Moved => scenario == "prepared",
        Between::Relay | Between::Through(Driver::Epoll) | Between::ThroughPacked => false,
    }
}

/// One of each list after the other: tests of one server wait for each other, those of two servers
/// run side by side.
fn in_turn(lists: Vec<Vec<Trial>>) -> Vec<Trial> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    while lists.iter().any(|list| list.len() > 0) {
        all.extend(lists.iter_mut().filter_map(Iterator::next));
    }
    all
}

/// Nothing is started for a mere list, or if the filter rules a vendor out.
fn stand(vendor: Vendor, arguments: &Arguments) -> Result<Arc<Stand>, String> {
    let other = if vendor == Vendor::MariaDb {
        "on_mysql::"
    } else {
        "on_mariadb::"
    };
    if arguments.list
        || arguments
            .filter
            .as_ref()
            .is_some_and(|filter| filter.starts_with(other))
    {
        return Err("not asked for".into());
    }
    let server = Server::start(vendor)?;
    // The first full login of an account is by RSA or TLS; later ones are quick, as on a server
    // that has been up for a while.
    for (user, password) in [
        ("app", "secret"),
        ("other", "geheim"),
        ("secured", "verschlossen"),
    ] {
        let login = clients::Login {
            port: server.port,
            user,
            password,
        };
        let _ = Client::MariaDbCli.run(
            login,
            &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
        );
    }
    let files = TempFolder::new("files").map_err(|error| error.to_string())?;
    clients::files(files.path()).map_err(|error| error.to_string())?;
    Ok(Arc::new(Stand {
        server,
        files,
        relay: OnceLock::new(),
        proxies: [OnceLock::new(), OnceLock::new()],
        cached: OnceLock::new(),
        moved: OnceLock::new(),
        shared: OnceLock::new(),
        packed: OnceLock::new(),
        through: [OnceLock::new(), OnceLock::new(), OnceLock::new()],
        direct: Mutex::default(),
        turn: Mutex::default(),
    }))
}
