//! Partitions that are made by themselves: a first row makes one, once for all proxies, and no proxy
//! overlooks it. docs/features/automatic-partitions.md
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::library;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, vendors_in_turn};
use mysql_async::prelude::Queryable as _;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("a_first_row_makes_its_partition_for_all_proxies", first_row),
        (
            "two_proxies_and_many_clients_make_each_partition_once",
            at_once,
        ),
        (
            "what_cannot_be_made_is_said_and_nothing_is_half_done",
            cannot,
        ),
        (
            "rows_of_before_stay_where_they_are_and_are_found",
            rows_before,
        ),
    ])
}

/// As the page has it.
const PARTITIONS: &str = "CREATE DATABASE millrace; \
    CREATE TABLE millrace.partitions (table_name VARCHAR(129) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
      bucket VARBINARY(700) NOT NULL, number BIGINT UNSIGNED NOT NULL, partition_name VARCHAR(64) NOT NULL, \
      hostgroup_id INT UNSIGNED NOT NULL, made_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, \
      PRIMARY KEY (table_name, bucket), UNIQUE KEY (table_name, number)) ENGINE=InnoDB; \
    CREATE TABLE millrace.decisions (transaction VARCHAR(64) CHARACTER SET ascii PRIMARY KEY, \
      outcome VARCHAR(8) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB";
const RIGHTS: &str = "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; \
    GRANT SELECT, CREATE ON conf.* TO monitor@'%'";
const RIGHTS_THERE: &str = "GRANT SELECT, INSERT ON millrace.partitions TO monitor@'%'; \
    GRANT SELECT, INSERT ON millrace.decisions TO monitor@'%'";
const COLUMNS: &str = "(id INT NOT NULL DEFAULT 0, nickname VARCHAR(40) NOT NULL, KEY (nickname), CHECK (id > -1)) ENGINE=InnoDB";
const MAP: &str = "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_table, default_hostgroup, auto_partition) \
        VALUES ('users', 'nickname', 'VARCHAR', 'NONE()', 'users_default', 1, 'ROUND_ROBIN(1, 2)'), \
               ('logs', 'nickname', 'VARCHAR', 'PREFIX(2)', 'logs_default', 1, 'FIXED(2)'); \
     LOAD MYSQL SHARDS TO RUNTIME; SAVE MYSQL SHARDS TO DISK; \
     UPDATE mysql_users SET attributes = '{\"partition_changes\":\"xa\"}'; LOAD MYSQL USERS TO RUNTIME; SAVE MYSQL USERS TO DISK; \
     SET mysql-sharding_decisions = 'millrace.decisions'; SET mysql-sharding_decisions_hostgroup = 1; \
     SET mysql-sharding_partitions = 'millrace.partitions'; SET mysql-sharding_partitions_hostgroup = 1; \
     LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK";

/// Two servers, and two proxies that know nothing of each other.
struct World {
    one: Server,
    two: Server,
    proxies: [Proxy; 2],
}

fn world(driver: Driver, vendor: Vendor) -> Result<World, String> {
    let (one, two) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&one, &two] {
        server.root(by_hand::CREATE_USER)?;
        server.root(RIGHTS)?;
        if vendor == Vendor::MySql {
            server.root("GRANT XA_RECOVER_ADMIN ON *.* TO monitor@'%', open@'%'")?;
        }
    }
    one.root(&format!(
        "{PARTITIONS}; {RIGHTS_THERE}; USE conf; CREATE TABLE users_default {COLUMNS}; CREATE TABLE logs_default {COLUMNS}"
    ))?;
    let mut wish = Wish::in_front_of(&one);
    for (server, hostgroup) in [(&one, 1), (&two, 2)] {
        wish.add(hostgroup, server);
    }
    wish.add_open_user();
    let proxies = [Proxy::start(driver, &wish)?, Proxy::start(driver, &wish)?];
    for proxy in &proxies {
        proxy.admin(MAP)?;
    }
    Ok(World { one, two, proxies })
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    asked(&mut client, "USE conf")?;
    Ok(client)
}

fn cell(client: &mut Raw, sql: &str) -> Result<String, String> {
    Ok(asked(client, sql)?.concat().concat())
}

fn refusal(client: &mut Raw, sql: &str) -> String {
    match client.ask(sql) {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => error.to_string(),
    }
}

/// Tables of a sharded table that a server has, with their numbers of rows.
fn tables(server: &Server, of: &str) -> Result<BTreeMap<String, String>, String> {
    let names = server.root(&format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'conf' AND TABLE_NAME LIKE '{of}\\_%'"
    ))?;
    let mut all = BTreeMap::new();
    for name in names
        .lines()
        .map(str::trim)
        .filter(|name| name.starts_with(of))
    {
        let said = server.root(&format!("SELECT COUNT(*) FROM conf.`{name}`"))?;
        all.insert(
            name.to_owned(),
            said.lines().last().unwrap_or_default().trim().to_owned(),
        );
    }
    Ok(all)
}

fn shown(of: &BTreeMap<String, String>) -> String {
    let all = of.iter().map(|(name, rows)| format!("{name}={rows}"));
    all.collect::<Vec<_>>().join(" ")
}

#[tokio::main(flavor = "current_thread")]
async fn first_row(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        let (mut here, mut there) = (log_in(&it.proxies[0])?, log_in(&it.proxies[1])?);
        let within = |words: String| format!("{vendor}: {words}");
        // Whoever asks first finds nothing, and remembers nothing of it.
        same(
            &cell(&mut there, "SELECT id FROM users WHERE nickname = 'anna'")?,
            "",
        )?;
        same(&cell(&mut there, "SELECT COUNT(*) FROM users")?, "0")?;
        asked(
            &mut here,
            "INSERT INTO users (id, nickname) VALUES (1, 'anna')",
        )
        .map_err(within)?;
        same(
            &cell(&mut there, "SELECT id FROM users WHERE nickname = 'anna'")?,
            "1",
        )
        .map_err(within)?;
        asked(
            &mut there,
            "INSERT INTO users (id, nickname) VALUES (2, 'bert')",
        )
        .map_err(within)?;
        same(&cell(&mut here, "SELECT COUNT(*) FROM users")?, "2").map_err(within)?;
        let rows = "INSERT INTO users (id, nickname) VALUES (3, 'carl'), (4, 'anna'), (5, 'dora')";
        asked(&mut here, rows).map_err(within)?;
        same(
            &cell(
                &mut there,
                "SELECT SUM(id) FROM users WHERE nickname IN ('anna', 'carl', 'dora')",
            )?,
            "13",
        )
        .map_err(within)?;
        asked(
            &mut there,
            "UPDATE users SET id = 6 WHERE nickname = 'carl'",
        )
        .map_err(within)?;
        asked(&mut there, "DELETE FROM users WHERE nickname = 'dora'").map_err(within)?;
        same(&cell(&mut here, "SELECT SUM(id) FROM users")?, "13").map_err(within)?;
        let words = |error: mysql_async::Error| error.to_string();
        let mut library = library::come_in(it.proxies[1].port).await.map_err(words)?;
        for (id, nickname) in [(10, "emil"), (11, "fritz"), (12, "anna")] {
            let insert = "INSERT INTO users (id, nickname) VALUES (?, ?)";
            library
                .exec_drop(insert, (id, nickname))
                .await
                .map_err(words)?;
            let select = "SELECT id FROM users WHERE nickname = ? AND id = ?";
            let found: Option<i32> = library
                .exec_first(select, (nickname, id))
                .await
                .map_err(words)?;
            same(&format!("{found:?}"), &format!("{:?}", Some(id))).map_err(within)?;
        }
        let insert = "INSERT INTO users (id, nickname) VALUES (?, 'gustav')";
        library.exec_drop(insert, (13,)).await.map_err(words)?;
        same(&cell(&mut here, "SELECT SUM(id) FROM users")?, "59").map_err(within)?;
        // In turn, on both servers; nothing is in the default table.
        same(
            &shown(&tables(&it.one, "users")?),
            "users_anna=3 users_carl=1 users_default=0 users_emil=1 users_gustav=1",
        )
        .map_err(within)?;
        same(
            &shown(&tables(&it.two, "users")?),
            "users_bert=1 users_dora=0 users_fritz=1",
        )
        .map_err(within)?;
        asked(
            &mut here,
            "INSERT INTO logs (id, nickname) VALUES (1, 'Anna'), (2, 'andi'), (3, 'bo')",
        )
        .map_err(within)?;
        same(&cell(&mut there, "SELECT COUNT(*) FROM logs")?, "3").map_err(within)?;
        same(&shown(&tables(&it.two, "logs")?), "logs_an=2 logs_bo=1").map_err(within)?;
        explained(&it).map_err(within)?;
        // The next start knows them before it reads.
        it.proxies[0].kill();
        it.proxies[0].restart()?;
        let mut here = log_in(&it.proxies[0])?;
        same(
            &cell(
                &mut here,
                "SELECT COUNT(*) FROM users WHERE nickname = 'anna'",
            )?,
            "3",
        )
        .map_err(within)?;
        same(&cell(&mut here, "SELECT COUNT(*) FROM users")?, "8").map_err(within)?;
        pinned(&it, &mut here).map_err(within)?;
    }
    Ok(())
}

fn explained(it: &World) -> Outcome {
    let said = it.proxies[0]
        .admin("EXPLAIN ROUTE 'INSERT INTO users (id, nickname) VALUES (1, ''zoe'')' IN conf")?;
    expect(
        said.contains("the partition 'zoe' is made first")
            && said.contains("point: users.zoe on hostgroup 2"),
        || said.clone(),
    )?;
    let said = it.proxies[0].admin("HSCALE SHOW PARTITIONS")?;
    expect(said.contains("users_anna") && !said.contains("zoe"), || {
        said.clone()
    })
}

/// A partition that was made becomes a row of the map, and is then like any other.
fn pinned(it: &World, here: &mut Raw) -> Outcome {
    let proxy = &it.proxies[0];
    let refused = |sql: &str, words: &str| {
        let said = proxy.admin(sql);
        expect(
            said.as_ref().is_err_and(|error| error.contains(words)),
            || format!("{sql}: {said:?}"),
        )
    };
    refused(
        "HSCALE MOVE_PARTITION('users', 'anna', 2)",
        "HSCALE ADD_PARTITION('users', 'anna', 'anna', 1) first",
    )?;
    refused(
        "HSCALE ADD_PARTITION('users', 'anna', 'anna', 2)",
        "a proxy has made 'anna' of 'users' for 'anna' on hostgroup 1",
    )?;
    refused(
        "UPDATE mysql_shard_tables SET auto_partition = ''; LOAD MYSQL SHARDS TO RUNTIME",
        "were made by themselves",
    )?;
    proxy.admin("LOAD MYSQL SHARDS FROM DISK; HSCALE ADD_PARTITION('users', 'anna', 'anna', 1)")?;
    let said = proxy.admin("SELECT partition_name FROM runtime_mysql_shard_partitions")?;
    expect(said.contains("anna") && !said.contains("bert"), || {
        said.clone()
    })?;
    same(&cell(here, "SELECT COUNT(*) FROM users")?, "8")
}

/// Rows of clients: the bucket, and the number of the client.
type Written = Vec<(String, u32)>;

fn at_once(driver: Driver) -> Outcome {
    const BUCKETS: u32 = 24;
    for vendor in vendors_in_turn() {
        let mut it = world(driver, vendor)?;
        let ports = it.proxies.each_ref().map(|proxy| proxy.port);
        // Each client writes a row of each bucket, and finds it at the other proxy at once.
        let client = |nth: u32| {
            let (own, other) = (ports[nth as usize % 2], ports[(nth as usize + 1) % 2]);
            thread::spawn(move || -> Result<Written, String> {
                let mut written = Written::new();
                let come = |port| -> Result<Raw, String> {
                    let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
                    asked(&mut client, "USE conf")?;
                    Ok(client)
                };
                let (mut here, mut there) = (come(own)?, come(other).ok());
                for step in 0..BUCKETS {
                    let bucket = format!("b{}", (step + nth / 2) % BUCKETS);
                    let sql =
                        format!("INSERT INTO users (id, nickname) VALUES ({nth}, '{bucket}')");
                    if let Err(error) = here.ask(&sql) {
                        // Whoever was on the proxy that is killed comes again.
                        let lost = error.kind() != std::io::ErrorKind::Other;
                        if error.to_string().contains("HSCALE") || !lost {
                            return Err(format!("{sql}: {error}"));
                        }
                        return Ok(written);
                    }
                    written.push((bucket.clone(), nth));
                    let find = format!(
                        "SELECT COUNT(*) FROM users WHERE nickname = '{bucket}' AND id = {nth}"
                    );
                    if let Some(Ok(rows)) = there.as_mut().map(|there| there.ask(&find)) {
                        same(&rows.concat().concat(), "1")
                            .map_err(|error| format!("{bucket} of {nth}: {error}"))?;
                    } else {
                        there = None;
                    }
                }
                Ok(written)
            })
        };
        let clients: Vec<_> = (0..8).map(client).collect();
        thread::sleep(Duration::from_millis(400));
        it.proxies[0].kill();
        thread::sleep(Duration::from_millis(200));
        it.proxies[0].restart()?;
        let later = (8..10).map(client);
        let clients: Vec<_> = clients.into_iter().chain(later).collect();
        let mut written = Written::new();
        for client in clients {
            written.extend(client.join().map_err(|_| "a client panicked")??);
        }
        let within = |words: String| format!("{vendor}: {words}");
        expect(written.len() >= 4 * BUCKETS as usize, || {
            within(format!("{} rows", written.len()))
        })?;
        for proxy in &it.proxies {
            let mut client = log_in(proxy)?;
            for bucket in 0..BUCKETS {
                let bucket = format!("b{bucket}");
                let rows = cell(
                    &mut client,
                    &format!("SELECT COUNT(*) FROM users WHERE nickname = '{bucket}'"),
                )?;
                let told = written.iter().filter(|(own, _)| *own == bucket).count();
                // One whose client was cut off may be there.
                expect(rows.parse::<usize>().is_ok_and(|rows| rows >= told), || {
                    within(format!("{bucket} has {rows} rows instead of {told}"))
                })?;
            }
        }
        each_once(&it, BUCKETS).map_err(within)?;
    }
    Ok(())
}

/// Each bucket has one table with rows, and the default one has none.
fn each_once(it: &World, buckets: u32) -> Outcome {
    let mut all = tables(&it.one, "users")?;
    same(
        all.remove("users_default").as_deref().unwrap_or_default(),
        "0",
    )?;
    let mut homes: BTreeMap<String, u32> = BTreeMap::new();
    for (name, rows) in all.into_iter().chain(tables(&it.two, "users")?) {
        if rows != "0" {
            *homes.entry(name).or_default() += 1;
        }
    }
    expect(
        homes.len() == buckets as usize && homes.values().all(|count| *count == 1),
        || format!("{homes:?}"),
    )?;
    let said = it
        .one
        .root("SELECT COUNT(*), MAX(number) FROM millrace.partitions WHERE table_name = 'users'")?;
    same(
        said.lines().last().unwrap_or_default().trim(),
        &format!("{buckets}\t{buckets}"),
    )?;
    Ok(())
}

fn cannot(driver: Driver) -> Outcome {
    let vendor = Vendor::MariaDb;
    let it = world(driver, vendor)?;
    let mut here = log_in(&it.proxies[0])?;
    let insert = |name: &str| format!("INSERT INTO users (id, nickname) VALUES (1, '{name}')");
    let mut says = |name: &str, words: &[&str]| {
        let said = refusal(&mut here, &insert(name));
        expect(words.iter().all(|words| said.contains(words)), || {
            format!("{name}: {said}")
        })
    };
    let nothing = |of: &str| -> Outcome {
        let said = it.one.root("SELECT COUNT(*) FROM millrace.partitions")?;
        same(said.lines().last().unwrap_or_default().trim(), "0")?;
        for server in [&it.one, &it.two] {
            let mut all = tables(server, "users")?;
            all.remove("users_default");
            same(&shown(&all), of)?;
        }
        Ok(())
    };
    it.one
        .root("RENAME TABLE conf.users_default TO conf.away")?;
    says("a", &["HSCALE-1001", "sees no table `users_default`"])?;
    it.one
        .root("RENAME TABLE conf.away TO conf.users_default")?;
    for server in [&it.one, &it.two] {
        server.root("REVOKE CREATE ON conf.* FROM monitor@'%'")?;
    }
    says("a", &["HSCALE-1001", "cannot be made", "denied"])?;
    nothing("")?;
    for server in [&it.one, &it.two] {
        server.root("GRANT CREATE ON conf.* TO monitor@'%'")?;
    }
    it.one
        .root("REVOKE INSERT ON millrace.partitions FROM monitor@'%'")?;
    says(
        "a",
        &[
            "HSCALE-1001",
            "the table of partitions on hostgroup 1 does not serve",
        ],
    )?;
    nothing("")?;
    it.one
        .root("GRANT INSERT ON millrace.partitions TO monitor@'%'")?;
    it.one
        .root("RENAME TABLE millrace.partitions TO millrace.away")?;
    says("a", &["HSCALE-1001", "1146"])?;
    // A read that could overlook a row is refused as well; others are not.
    let said = refusal(&mut log_in(&it.proxies[1])?, "SELECT COUNT(*) FROM users");
    expect(
        said.contains("HSCALE-1001") && said.contains("is not known"),
        || said.clone(),
    )?;
    it.one
        .root("RENAME TABLE millrace.away TO millrace.partitions")?;
    // Tables that are in the way.
    it.one.root("CREATE TABLE conf.users_a (other INT)")?;
    says("a", &["HSCALE-1001", "it is not like conf.users_default"])?;
    it.one.root(&format!(
        "DROP TABLE conf.users_a; CREATE TABLE conf.users_a {COLUMNS}; INSERT INTO conf.users_a VALUES (7, 'x')"
    ))?;
    says("a", &["HSCALE-1001", "there is one, and it has rows"])?;
    // As a proxy leaves it that is killed behind its making.
    it.one.root("DELETE FROM conf.users_a")?;
    same(&refusal(&mut log_in(&it.proxies[0])?, &insert("a")), "[]")?;
    let said = it.one.root("SELECT COUNT(*) FROM conf.users_a")?;
    same(said.lines().last().unwrap_or_default().trim(), "1")?;
    // Without a table of partitions none is made.
    for proxy in &it.proxies {
        proxy.admin("SET mysql-sharding_partitions = ''; LOAD MYSQL VARIABLES TO RUNTIME")?;
    }
    let said = refusal(&mut log_in(&it.proxies[0])?, &insert("b"));
    expect(
        said.contains("HSCALE-1000") && said.contains("mysql-sharding_partitions"),
        || said.clone(),
    )?;
    // A transaction that another proxy has left open does not stop others for ever.
    for proxy in &it.proxies {
        proxy.admin(
            "SET mysql-sharding_partitions = 'millrace.partitions'; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
    }
    same(&refusal(&mut log_in(&it.proxies[1])?, &insert("b")), "[]")
}

fn rows_before(driver: Driver) -> Outcome {
    let it = world(driver, Vendor::MariaDb)?;
    it.one.root(
        "INSERT INTO conf.users_default VALUES (1, 'Anna '), (2, 'bert'); INSERT INTO conf.logs_default VALUES (1, 'anna'), (2, 'b')",
    )?;
    let mut here = log_in(&it.proxies[0])?;
    for (sql, words) in [
        (
            "INSERT INTO users (nickname) VALUES ('anna')",
            "HSCALE ADD_PARTITION('users', 'anna', 'anna', 1) moves them",
        ),
        ("INSERT INTO logs (nickname) VALUES ('ANDI')", "users"),
        (
            "INSERT INTO logs (nickname) VALUES ('b')",
            "HSCALE ADD_PARTITION('logs', 'b', 'b', 2)",
        ),
    ] {
        let said = refusal(&mut here, sql);
        let is_said = said.contains("HSCALE-1001") && said.contains("has rows of it");
        expect(
            is_said && (said.contains(words) || words == "users"),
            || format!("{sql}: {said}"),
        )?;
    }
    // Those of other buckets are in nobody's way.
    for sql in [
        "INSERT INTO users (id, nickname) VALUES (3, 'carl')",
        "INSERT INTO logs (id, nickname) VALUES (3, 'bo')",
    ] {
        same(&refusal(&mut here, sql), "[]").map_err(|error| format!("{sql}: {error}"))?;
    }
    let mut there = log_in(&it.proxies[1])?;
    for (sql, wanted) in [
        ("SELECT SUM(id) FROM users", "6"),
        ("SELECT id FROM users WHERE nickname = 'anna'", "1"),
        ("SELECT id FROM users WHERE nickname = 'carl'", "3"),
        (
            "SELECT SUM(id) FROM logs WHERE nickname IN ('b', 'bo', 'anna')",
            "6",
        ),
    ] {
        same(&cell(&mut there, sql)?, wanted).map_err(|error| format!("{sql}: {error}"))?;
    }
    Ok(())
}
