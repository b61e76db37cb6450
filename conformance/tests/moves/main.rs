//! Partitions that move from one server to another while clients read and write them, whoever is killed
//! meanwhile. docs/features/moves.md
#![forbid(unsafe_code)]

mod merge;
mod split;
mod types;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon, vendors_in_turn};

use merge::{killed_merging, merge_lacking, merges};
use split::{bare, killed_splitting, of_another, split_lacking, splits};
use types::{shown, types};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "every_type_is_read_from_a_log_as_a_server_selects_it",
            types,
        ),
        ("a_partition_moves_while_clients_read_and_write_it", moves),
        (
            "a_proxy_that_is_killed_while_it_copies_goes_on",
            killed_copying,
        ),
        (
            "a_proxy_that_is_killed_while_it_cuts_over_goes_on",
            killed_cutting,
        ),
        (
            "a_map_that_was_not_changed_after_the_cut_is_changed_by_the_next_start",
            unfinished,
        ),
        ("a_process_that_takes_over_goes_on_with_a_move", taken_over),
        ("a_target_that_is_killed_is_waited_for", target_killed),
        ("a_move_that_is_cancelled_leaves_nothing", cancelled),
        (
            "an_open_transaction_keeps_a_partition_where_it_is",
            transaction,
        ),
        ("what_a_move_lacks_is_said_before_it_begins", lacking),
        (
            "a_partition_that_is_added_takes_its_rows_while_clients_read_and_write_them",
            splits,
        ),
        (
            "a_partition_that_is_added_takes_buckets_of_another",
            of_another,
        ),
        (
            "a_proxy_that_is_killed_while_it_adds_a_partition_goes_on",
            killed_splitting,
        ),
        (
            "a_partition_without_rows_is_added_and_nothing_is_copied",
            bare,
        ),
        ("what_adding_a_partition_lacks_is_said", split_lacking),
        (
            "two_partitions_come_together_while_clients_read_and_write_them",
            merges,
        ),
        (
            "a_proxy_that_is_killed_while_it_merges_goes_on",
            killed_merging,
        ),
        ("what_a_merge_lacks_is_said", merge_lacking),
    ])
}

/// Two servers; `t` has four partitions, of which `a` moves.
struct World {
    one: Server,
    two: Server,
    wish: Wish,
    proxy: Proxy,
}

const COLUMNS: &str = "(id INT PRIMARY KEY, name VARCHAR(40) NOT NULL DEFAULT '', x INT NOT NULL DEFAULT 0, \
    CHECK (id > -1)) ENGINE=InnoDB";

const MAP: &str = "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_table, default_hostgroup) \
        VALUES ('t', 'id', 'INT', 'MOD(4)', 't_default', 1); \
     INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id) VALUES \
        ('t', 'a', '0', 1), ('t', 'b', '1', 2); \
     LOAD MYSQL SHARDS TO RUNTIME; SAVE MYSQL SHARDS TO DISK; \
     SET mysql-sharding_move_rows_at_once = 100; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK";

/// As the page has it.
const RIGHTS: &str = "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; \
     GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO monitor@'%'; \
     GRANT SELECT, INSERT, DELETE, CREATE, DROP, ALTER, LOCK TABLES, TRIGGER ON conf.* TO monitor@'%'";

fn options(vendor: Vendor, number: &str) -> Vec<String> {
    let mut all = vec![
        "--log-bin=log".to_owned(),
        format!("--server-id={number}"),
        "--innodb-flush-log-at-trx-commit=1".to_owned(),
    ];
    all.extend(match vendor {
        Vendor::MySql => vec![
            "--gtid-mode=ON".to_owned(),
            "--enforce-gtid-consistency=ON".to_owned(),
        ],
        _ => vec!["--binlog-format=ROW".to_owned()],
    });
    all
}

fn server(vendor: Vendor, number: &str) -> Result<Server, String> {
    let options = options(vendor, number);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = Server::start_with(vendor, &options)?;
    server.root(by_hand::CREATE_USER)?;
    server.root(RIGHTS)?;
    Ok(server)
}

fn world(driver: Driver, vendor: Vendor) -> Result<World, String> {
    let (one, two) = (server(vendor, "1")?, server(vendor, "2")?);
    one.root(&format!(
        "USE conf; CREATE TABLE t_default {COLUMNS}; CREATE TABLE t_a {COLUMNS}"
    ))?;
    two.root(&format!("USE conf; CREATE TABLE t_b {COLUMNS}"))?;
    let mut wish = Wish::in_front_of(&one);
    for (server, hostgroup) in [(&one, 1), (&two, 2)] {
        wish.add(hostgroup, server);
    }
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(MAP)?;
    Ok(World {
        one,
        two,
        wish,
        proxy,
    })
}

fn log_in(port: u16) -> Result<Raw, String> {
    let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
    asked(&mut client, "USE conf")?;
    Ok(client)
}

/// The last line of what a client prints.
fn last(said: &str) -> String {
    said.lines().last().unwrap_or_default().trim().to_owned()
}

impl World {
    /// Rows of the partition that moves, with keys from `from` on.
    fn fill(&self, from: u32, count: u32) -> Outcome {
        let rows: Vec<_> = (from..from + count)
            .map(|n| format!("({}, 'n{n}', 1000)", n * 4))
            .collect();
        for some in rows.chunks(1000) {
            let sql = format!("INSERT INTO conf.t_a VALUES {}", some.join(", "));
            self.one.root(&sql)?;
        }
        Ok(())
    }

    fn begin(&self, to: u32) -> Outcome {
        self.proxy
            .admin(&format!("HSCALE MOVE_PARTITION('t', 'a', {to})"))
            .map(drop)
    }

    /// A column of the last move.
    fn last(&self, column: &str) -> Result<String, String> {
        let sql =
            format!("SELECT {column} FROM stats_millrace_moves ORDER BY move_id DESC LIMIT 1");
        Ok(last(&self.proxy.admin(&sql)?))
    }

    fn becomes(&self, state: &str) -> Outcome {
        soon(state, || self.last("state")).map_err(|words| {
            let shown = self.proxy.admin("HSCALE SHOW MOVES").unwrap_or_default();
            format!("{words}\n{shown}\n{}", self.proxy.log())
        })
    }

    fn home(&self) -> Result<String, String> {
        let sql = "SELECT hostgroup_id FROM disk.mysql_shard_partitions WHERE partition_name = 'a'";
        Ok(last(&self.proxy.admin(sql)?))
    }

    /// Tables of the partition that a server has.
    fn tables(server: &Server) -> Result<String, String> {
        let sql = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 't\\_a%'";
        Ok(last(&server.root(sql)?))
    }

    fn checksum(server: &Server) -> Result<String, String> {
        let sql = "SELECT CONCAT(COUNT(*), ' ', COALESCE(SUM(CRC32(CONCAT(id, ':', name, ':', x))), 0)) FROM conf.t_a";
        Ok(last(&server.root(sql)?))
    }
}

/// Numbers that seem to be of no order.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Load that clients are on the partition at the same time. No error is theirs to see.
struct Load {
    stop: AtomicBool,
    done: AtomicU64,
    /// Keys are four times something, and one of these.
    classes: &'static [u64],
}

const ACCOUNTS: u64 = 16;

impl Load {
    fn new(classes: &'static [u64]) -> Self {
        Self {
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            classes,
        }
    }

    fn class(&self, chance: &mut Chance) -> u64 {
        self.classes[chance.below(self.classes.len() as u64) as usize]
    }

    fn goes_on(&self) -> bool {
        self.done.fetch_add(1, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }

    /// Waits until clients have done so much more.
    fn more(&self, count: u64) -> Outcome {
        let until = self.done.load(Ordering::Relaxed) + count;
        soon("true", || {
            let stopped = self.stop.load(Ordering::Relaxed);
            Ok((stopped || self.done.load(Ordering::Relaxed) >= until).to_string())
        })
    }

    /// Rows of a client's own: what it has written, it reads.
    fn own_rows(&self, port: u16, number: u64) -> Result<BTreeMap<u64, u64>, String> {
        let mut client = log_in(port)?;
        let (mut chance, mut known) = (Chance(number), BTreeMap::new());
        while self.goes_on() {
            let key = (number * 1_000_000 + chance.below(50)) * 4 + self.class(&mut chance);
            match (known.get(&key).copied(), chance.below(5)) {
                (None, _) => {
                    asked(
                        &mut client,
                        &format!("INSERT INTO t (id, name, x) VALUES ({key}, 'w', 1)"),
                    )?;
                    known.insert(key, 1);
                }
                (Some(_), 0) => {
                    asked(&mut client, &format!("DELETE FROM t WHERE id = {key}"))?;
                    known.remove(&key);
                }
                (Some(x), _) => {
                    asked(
                        &mut client,
                        &format!("UPDATE t SET x = x + 1 WHERE id = {key}"),
                    )?;
                    known.insert(key, x + 1);
                }
            }
            let found = asked(&mut client, &format!("SELECT x FROM t WHERE id = {key}"))?;
            let wanted = known.get(&key).map(ToString::to_string).unwrap_or_default();
            expect(found.concat().concat() == wanted, || {
                format!("row {key}: {found:?} instead of {wanted}")
            })?;
        }
        Ok(known)
    }

    /// Moves money between accounts, a statement each.
    fn transfers(&self, port: u16, seed: u64) -> Outcome {
        let mut client = log_in(port)?;
        let mut chance = Chance(seed);
        while self.goes_on() {
            let class = self.class(&mut chance);
            let mut account = || chance.below(ACCOUNTS) * 4 + class;
            let (from, to) = (account(), account());
            if from != to {
                let sql = format!(
                    "UPDATE t SET x = x + CASE id WHEN {from} THEN -7 ELSE 7 END WHERE id IN ({from}, {to})"
                );
                asked(&mut client, &sql)?;
            }
        }
        Ok(())
    }

    /// The sum is the same at every moment.
    fn sums(&self, port: u16) -> Outcome {
        let mut client = log_in(port)?;
        let accounts = self
            .classes
            .iter()
            .flat_map(|class| (0..ACCOUNTS).map(move |n| n * 4 + class));
        let all: Vec<_> = accounts.map(|account| account.to_string()).collect();
        let sql = format!(
            "SELECT SUM(x), COUNT(*) FROM t WHERE id IN ({})",
            all.join(", ")
        );
        let wanted = [(all.len() * 1000).to_string(), all.len().to_string()];
        while self.goes_on() {
            let found = asked(&mut client, &sql)?;
            expect(found == [wanted.to_vec()], || format!("sum: {found:?}"))?;
        }
        Ok(())
    }
}

/// Passes on what a thread of the load returns; where that is an error, the others stop with it.
fn told<T>(load: &Load, outcome: Result<T, String>) -> Result<T, String> {
    if outcome.is_err() {
        load.stop.store(true, Ordering::Relaxed);
    }
    outcome
}

/// Runs this while clients read and write the partition, and compares what is there afterwards with what
/// they know.
fn under_load(it: &mut World, does: impl FnOnce(&mut World, &Load) -> Outcome) -> Outcome {
    let hint = "/* hscale.partition(t) = 'a' */";
    under_load_of(it, (&[0], hint), does)
}

/// Load on keys of these classes, whose rows are read with this hint.
fn under_load_of(
    it: &mut World,
    (classes, hint): (&'static [u64], &str),
    does: impl FnOnce(&mut World, &Load) -> Outcome,
) -> Outcome {
    let (load, port) = (Load::new(classes), it.proxy.port);
    let known = thread::scope(|scope| {
        let load = &load;
        let owners: Vec<_> = (1..3)
            .map(|number| scope.spawn(move || told(load, load.own_rows(port, number))))
            .collect();
        let others = [
            scope.spawn(move || told(load, load.transfers(port, 7))),
            scope.spawn(move || told(load, load.transfers(port, 8))),
            scope.spawn(move || told(load, load.sums(port))),
        ];
        let done = load
            .more(500)
            .and_then(|()| does(it, load))
            .and_then(|()| load.more(500));
        load.stop.store(true, Ordering::Relaxed);
        let mut known = BTreeMap::new();
        let mut errors = Vec::new();
        for owner in owners {
            match owner
                .join()
                .map_err(|_| "a panic".to_owned())
                .and_then(|known| known)
            {
                Ok(own) => known.extend(own),
                Err(error) => errors.push(error),
            }
        }
        for other in others {
            errors.extend(
                other
                    .join()
                    .map_err(|_| "a panic".to_owned())
                    .and_then(|done| done)
                    .err(),
            );
        }
        expect(errors.is_empty(), || errors.join("\n"))?;
        done.map(|()| known)
    });
    let known = known.map_err(|error| format!("{error}\n{}", it.proxy.log()))?;
    let mut client = log_in(it.proxy.port)?;
    let found = asked(
        &mut client,
        &format!("{hint} SELECT id, x FROM t WHERE id >= 4000000 ORDER BY id"),
    )?;
    let wanted: Vec<_> = known
        .iter()
        .map(|(key, x)| vec![key.to_string(), x.to_string()])
        .collect();
    expect(found == wanted, || {
        format!("found {found:?}\nwanted {wanted:?}")
    })
}

/// A78: online. A80: clients wait, and get no error.
fn moves(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let mut it = world(driver, vendor)?;
        it.fill(0, 3000)?;
        under_load(&mut it, |it, load| {
            it.begin(2)?;
            it.becomes("done")?;
            load.more(200)?;
            same(&it.home()?, "2")?;
            same(&World::tables(&it.one)?, "1")?;
            let shown = it.proxy.admin("HSCALE SHOW MOVES")?;
            expect(shown.contains("t_a_old_"), || shown)?;
            it.proxy.admin("HSCALE DROP_OLD('t', 'a')")?;
            same(&World::tables(&it.one)?, "0")?;
            // And back.
            it.begin(1)?;
            it.becomes("done")?;
            same(&it.home()?, "1")
        })
        .map_err(|error| format!("{vendor}: {error}"))?;
        let copied: u64 = it.last("rows_copied")?.parse().unwrap_or(0);
        expect(copied >= 3000, || {
            format!("{vendor}: {copied} rows were copied")
        })?;
        let kept = "SELECT COUNT(*) FROM conf.t_a WHERE name LIKE 'n%'";
        same(&last(&it.one.root(kept)?), "3000")?;
    }
    Ok(())
}

fn killed_copying(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let mut it = world(driver, vendor)?;
        it.fill(0, 3000)?;
        it.proxy.admin("SET mysql-sharding_move_rows_per_second = 500; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK")?;
        it.begin(2)?;
        soon("true", || Ok((it.last("rows_copied")? != "0").to_string()))?;
        it.one.root("UPDATE conf.t_a SET x = 1 WHERE id < 40")?;
        // What is known of the move is written down each second.
        let kept = "SELECT COUNT(*) FROM disk.saved_moves WHERE record LIKE '%\"copied_to\":[%'";
        soon("1", || Ok(last(&it.proxy.admin(kept)?)))?;
        it.proxy.kill();
        it.one.root("UPDATE conf.t_a SET x = 2 WHERE id IN (0, 4, 8000); DELETE FROM conf.t_a WHERE id = 12; UPDATE conf.t_a SET id = 16000 WHERE id = 16")?;
        let wanted = World::checksum(&it.one)?;
        it.proxy.restart()?;
        same(&it.last("state")?, "copying")?;
        it.proxy.admin(
            "SET mysql-sharding_move_rows_per_second = 0; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        it.becomes("done")
            .map_err(|error| format!("{vendor}: {error}"))?;
        same(&World::checksum(&it.two)?, &wanted)?;
        let copied: u64 = it.last("rows_copied")?.parse().unwrap_or(0);
        expect(copied <= 3000 + 1000, || {
            format!("{vendor}: {copied} rows were copied: it has begun anew")
        })?;
    }
    Ok(())
}

/// The proxy is killed at some moment around the cut, again and again.
fn killed_cutting(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        it.fill(0, 500)?;
        let wanted = World::checksum(&it.one)?;
        for (round, pause) in [0, 2, 5, 10, 20, 40].into_iter().enumerate() {
            let to = if round % 2 == 0 { 2 } else { 1 };
            let from = if to == 2 { &it.one } else { &it.two };
            let mut open = log_in(from.port)?;
            asked(&mut open, "BEGIN")?;
            asked(&mut open, "SELECT COUNT(*) FROM t_a")?;
            it.begin(to)?;
            soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
            asked(&mut open, "COMMIT")?;
            thread::sleep(Duration::from_millis(pause * 10));
            it.proxy.kill();
            it.proxy.restart()?;
            it.becomes("done")
                .map_err(|error| format!("{vendor}, {pause}: {error}"))?;
            same(&it.home()?, &to.to_string())?;
            let there = if to == 2 { &it.two } else { &it.one };
            same(&World::checksum(there)?, &wanted)?;
            let mut client = log_in(it.proxy.port)?;
            same(
                &asked(&mut client, "SELECT x FROM t WHERE id = 4")?
                    .concat()
                    .concat(),
                "1000",
            )?;
            it.proxy.admin("HSCALE DROP_OLD('t', 'a')")?;
        }
    }
    Ok(())
}

/// The old table has its new name, and the process ends before the map is changed; the same, and it ends
/// before the table has it.
fn unfinished(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        for is_renamed in [true, false] {
            let mut it = world(driver, vendor)?;
            it.fill(0, 300)?;
            let mut open = log_in(it.one.port)?;
            asked(&mut open, "BEGIN")?;
            asked(&mut open, "SELECT COUNT(*) FROM t_a")?;
            it.begin(2)?;
            soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
            // The target has everything: nothing is written.
            it.proxy.kill();
            asked(&mut open, "COMMIT")?;
            let wanted = World::checksum(&it.one)?;
            let edit = "UPDATE saved_moves SET record = json_set(record, '$.state', 'cutting_over', '$.fence', 't_a_old_7')";
            sqlite(&it, edit)?;
            if is_renamed {
                it.one.root("RENAME TABLE conf.t_a TO conf.t_a_old_7")?;
            }
            it.proxy.restart()?;
            it.becomes("done")
                .map_err(|error| format!("{vendor}: {error}"))?;
            same(&it.home()?, "2")?;
            same(&World::checksum(&it.two)?, &wanted)?;
            let mut client = log_in(it.proxy.port)?;
            same(
                &asked(&mut client, "SELECT x FROM t WHERE id = 4")?
                    .concat()
                    .concat(),
                "1000",
            )?;
        }
    }
    Ok(())
}

/// Changes the database of the proxy while it does not run.
fn sqlite(it: &World, sql: &str) -> Outcome {
    let file = it.proxy.data().join("proxysql.db");
    let conn = rusqlite::Connection::open(file).map_err(|error| error.to_string())?;
    let changed = conn.execute(sql, []).map_err(|error| error.to_string())?;
    expect(changed == 1, || format!("{changed} rows: {sql}"))
}

fn taken_over(driver: Driver) -> Outcome {
    let mut it = world(driver, Vendor::MariaDb)?;
    it.fill(0, 3000)?;
    it.proxy.admin("SET mysql-sharding_move_rows_per_second = 500; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK")?;
    it.begin(2)?;
    soon("true", || Ok((it.last("rows_copied")? != "0").to_string()))?;
    let before = it.proxy.upgrade(&[])?;
    it.proxy
        .admin("SET mysql-sharding_move_rows_per_second = 0; LOAD MYSQL VARIABLES TO RUNTIME")?;
    it.becomes("done")?;
    same(&it.home()?, "2")?;
    same(
        &last(&it.two.root("SELECT COUNT(*) FROM conf.t_a")?),
        "3000",
    )?;
    drop(before);
    Ok(())
}

fn target_killed(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        it.fill(0, 3000)?;
        it.proxy.admin(
            "SET mysql-sharding_move_rows_per_second = 1000; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        it.begin(2)?;
        soon("true", || Ok((it.last("rows_copied")? != "0").to_string()))?;
        it.two.kill();
        soon("true", || Ok((!it.last("error")?.is_empty()).to_string()))?;
        let mut client = log_in(it.proxy.port)?;
        asked(&mut client, "UPDATE t SET x = 5 WHERE id = 0")?;
        it.two.restart()?;
        it.proxy.admin(
            "SET mysql-sharding_move_rows_per_second = 0; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        it.becomes("done")
            .map_err(|error| format!("{vendor}: {error}"))?;
        same(&it.last("error")?, "")?;
        same(
            &asked(&mut client, "SELECT x FROM t WHERE id = 0")?
                .concat()
                .concat(),
            "5",
        )?;
        same(
            &last(&it.two.root("SELECT COUNT(*) FROM conf.t_a")?),
            "3000",
        )?;
    }
    Ok(())
}

fn cancelled(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        it.fill(0, 3000)?;
        let none = it
            .proxy
            .admin("HSCALE CANCEL_MOVE('t', 'a')")
            .err()
            .unwrap_or_default();
        expect(none.contains("no move of it is under way"), || none)?;
        it.proxy.admin(
            "SET mysql-sharding_move_rows_per_second = 1000; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        under_load(&mut it, |it, _| {
            it.begin(2)?;
            let second = it.begin(2).err().unwrap_or_default();
            expect(
                second.contains("is under way") || second.contains("has a table"),
                || second,
            )?;
            soon("true", || Ok((it.last("rows_copied")? != "0").to_string()))?;
            it.proxy.admin("HSCALE CANCEL_MOVE('t', 'a')")?;
            it.becomes("cancelled")?;
            same(&World::tables(&it.two)?, "0")?;
            same(&it.home()?, "1")?;
            it.proxy.admin(
                "SET mysql-sharding_move_rows_per_second = 0; LOAD MYSQL VARIABLES TO RUNTIME",
            )?;
            it.begin(2)?;
            it.becomes("done")
        })
        .map_err(|error| format!("{vendor}: {error}"))?;
    }
    Ok(())
}

fn transaction(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = world(driver, vendor)?;
        it.fill(0, 100)?;
        let (mut open, mut other) = (log_in(it.proxy.port)?, log_in(it.proxy.port)?);
        asked(&mut open, "/* hostgroup=1 */ BEGIN")?;
        asked(&mut open, "UPDATE t SET x = x + 1 WHERE id = 0")?;
        it.begin(2)?;
        soon("true", || Ok((it.last("tries")? != "0").to_string()))?;
        let said = it.last("error")?;
        expect(said.contains("open transactions"), || {
            format!("{vendor}: {said}")
        })?;
        // Others go on meanwhile, and so does the transaction.
        asked(&mut other, "UPDATE t SET x = x + 1 WHERE id = 4")?;
        asked(&mut open, "UPDATE t SET x = x + 1 WHERE id = 0")?;
        same(&it.home()?, "1")?;
        asked(&mut open, "COMMIT")?;
        it.becomes("done")
            .map_err(|error| format!("{vendor}: {error}"))?;
        let read = "SELECT x FROM t WHERE id IN (0, 4) ORDER BY id";
        same(&asked(&mut other, read)?.concat().join(" "), "1002 1001")?;
    }
    Ok(())
}

fn lacking(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = world(driver, vendor)?;
        let refused = |words: &str| {
            let said = match it.begin(2) {
                Ok(()) => "it has begun".to_owned(),
                Err(said) => said,
            };
            expect(said.contains(words), || {
                format!("{vendor}: {said}\nlacks: {words}")
            })
        };
        let told = |sql: &str, words: &str| {
            let said = it.proxy.admin(sql).err().unwrap_or_default();
            expect(said.contains(words), || {
                format!("{vendor}: {said}\nlacks: {words}")
            })
        };
        told(
            "HSCALE MOVE_PARTITION('u', 'a', 2)",
            "argument 1 (table): 'u' is not set up",
        )?;
        told("HSCALE MOVE_PARTITION('t', 'z', 2)", "has no partition 'z'")?;
        told(
            "HSCALE MOVE_PARTITION('t', 'a', 1)",
            "it is on hostgroup 1 already",
        )?;
        told(
            "HSCALE MOVE_PARTITION('t', 'a', 9)",
            "no server of hostgroup 9 takes writes",
        )?;
        told(
            "HSCALE MOVE_PARTITION('t', 'a', 0)",
            "both hostgroups are on one server",
        )?;
        told("HSCALE DROP_OLD('t', 'a')", "has left a table")?;
        it.two.root(&format!("CREATE TABLE conf.t_a {COLUMNS}"))?;
        refused("the target has a table conf.t_a already")?;
        it.two.root("DROP TABLE conf.t_a")?;
        it.one
            .root("CREATE TRIGGER conf.tr BEFORE INSERT ON conf.t_a FOR EACH ROW SET @a = 1")?;
        it.one.root("SET GLOBAL binlog_row_image = MINIMAL")?;
        refused(
            "the source has binlog_row_image = MINIMAL, and it must be 'FULL'; conf.t_a has triggers",
        )?;
        it.one
            .root("SET GLOBAL binlog_row_image = FULL; DROP TRIGGER conf.tr")?;
        it.one
            .root("CREATE TABLE conf.of_a (id INT, FOREIGN KEY (id) REFERENCES conf.t_a (id)) ENGINE=InnoDB")?;
        refused("conf.t_a has foreign keys, or is named by some")?;
        it.one
            .root("DROP TABLE conf.of_a; ALTER TABLE conf.t_a DROP PRIMARY KEY, ADD UNIQUE (x)")?;
        it.one.root("ALTER TABLE conf.t_a MODIFY x INT NULL")?;
        refused("has no key by which a row is found")?;
        it.one.root("ALTER TABLE conf.t_a ENGINE = MyISAM")?;
        refused("conf.t_a is a BASE TABLE MyISAM")?;
        same(&World::tables(&it.two)?, "0")?;
    }
    Ok(())
}

/// Rows that were inserted into the table, as the file of the server's log has them, without their keys.
fn logged(server: &Server, vendor: Vendor) -> Result<Vec<Vec<String>>, String> {
    let unsigned = [3, 6, 7, 9];
    let width = 38;
    let watch_of = |at: usize| unsigned.contains(&at);
    let mut watch = binlog::Watch::new(b"conf", b"t_a", (0..width).map(watch_of).collect());
    let (mut log, mut rows) = (binlog::Log::default(), Vec::new());
    let mut files: Vec<_> = std::fs::read_dir(server.data())
        .map_err(|error| error.to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("log.0"))
        })
        .collect();
    files.sort();
    for file in files {
        let bytes = std::fs::read(&file).map_err(|error| error.to_string())?;
        let mut rest = bytes.get(4..).unwrap_or_default();
        while let Some(len) = rest.get(9..13) {
            let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
            let Some((event, behind)) = rest.split_at_checked(len) else {
                break;
            };
            rest = behind;
            let followed = log.follow_and(event, &mut |event| watch.see(event));
            if followed
                .map_err(|error| format!("{vendor}: {error}"))?
                .is_some()
            {
                let after = watch.take().into_iter().filter_map(|row| row.after);
                rows.extend(after.map(|image| image.iter().skip(2).map(shown).collect::<Vec<_>>()));
            }
        }
    }
    Ok(rows)
}

/// Rows of the default table, and partitions that are added for some of them.
impl World {
    /// Rows that have no partition: keys of both classes that are left.
    fn fill_default(&self, count: u32) -> Outcome {
        let rows: Vec<_> = (0..count)
            .flat_map(|n| [2, 3].map(|class| format!("({}, 'n{n}', 1000)", n * 4 + class)))
            .collect();
        for some in rows.chunks(1000) {
            let sql = format!("INSERT INTO conf.t_default VALUES {}", some.join(", "));
            self.one.root(&sql)?;
        }
        Ok(())
    }

    /// Rows a second that are copied, also after a start.
    fn pace(&self, rows: u32) -> Outcome {
        let sql = format!(
            "SET mysql-sharding_move_rows_per_second = {rows}; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK"
        );
        self.proxy.admin(&sql).map(drop)
    }

    fn add(&self, partition: &str, value: &str, to: u32) -> Outcome {
        let sql = format!("HSCALE ADD_PARTITION('t', '{partition}', '{value}', {to})");
        self.proxy.admin(&sql).map(drop)
    }

    /// A number that a server says.
    fn number(server: &Server, sql: &str) -> Result<String, String> {
        Ok(last(&server.root(sql)?))
    }

    fn default_table(&self) -> Result<String, String> {
        let sql = "SELECT default_table FROM disk.mysql_shard_tables WHERE table_name = 't'";
        Ok(last(&self.proxy.admin(sql)?))
    }
}
