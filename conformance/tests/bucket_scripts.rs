//! Scripts that say buckets: rows are where the script says, and a proxy with another script routes
//! nothing. docs/features/bucket-scripts.md
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::library;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same};
use mysql_async::prelude::Queryable as _;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("rows_are_where_a_script_says", rows),
        ("another_script_routes_nothing", another),
    ])
}

const COLUMNS: &str = "(id INT NOT NULL, tenant VARCHAR(40) NOT NULL) ENGINE=InnoDB";
/// Tenants are written as `region-number`.
const SCRIPT: &str = "function bucket(key) return key:match(''^(%a+)-'') or ''none'' end";

fn script(text: &str) -> String {
    format!(
        "DELETE FROM mysql_scripts; INSERT INTO mysql_scripts (script_name, serves, body) VALUES ('region', 'buckets', '{text}'); \
         LOAD MYSQL SCRIPTS TO RUNTIME; SAVE MYSQL SCRIPTS TO DISK"
    )
}

struct World {
    one: Server,
    two: Server,
    proxy: Proxy,
}

fn world(driver: Driver, vendor: Vendor) -> Result<World, String> {
    let (one, two) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&one, &two] {
        server.root(by_hand::CREATE_USER)?;
    }
    one.root(&format!("USE conf; CREATE TABLE orders_rest {COLUMNS}"))?;
    two.root(&format!("USE conf; CREATE TABLE orders_eu {COLUMNS}"))?;
    let mut wish = Wish::in_front_of(&one);
    for (server, hostgroup) in [(&one, 1), (&two, 2)] {
        wish.add(hostgroup, server);
    }
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(&script(SCRIPT))?;
    proxy.admin(
        "HSCALE SETUP_TABLE('orders', 'tenant', 'orders_rest', 1, 'LUA(region)'); \
         UPDATE mysql_shard_tables SET key_type = 'VARCHAR'; \
         INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id) VALUES ('orders', 'eu', 'eu', 2); \
         LOAD MYSQL SHARDS TO RUNTIME; SAVE MYSQL SHARDS TO DISK",
    )?;
    Ok(World { one, two, proxy })
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

fn count(server: &Server, table: &str) -> Result<String, String> {
    let said = server.root(&format!("SELECT COUNT(*) FROM conf.{table}"))?;
    Ok(said.lines().last().unwrap_or_default().trim().to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn rows(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        let within = |words: String| format!("{vendor}: {words}");
        let mut client = log_in(&it.proxy)?;
        for sql in [
            "INSERT INTO orders (id, tenant) VALUES (1, 'eu-1')",
            "INSERT INTO orders (id, tenant) VALUES (2, 'us-1')",
            "INSERT INTO orders (id, tenant) VALUES (3, '77')",
        ] {
            asked(&mut client, sql).map_err(within)?;
        }
        let words = |error: mysql_async::Error| error.to_string();
        let mut library = library::come_in(it.proxy.port).await.map_err(words)?;
        let insert = "INSERT INTO orders (id, tenant) VALUES (?, ?)";
        library
            .exec_drop(insert, (4, "EU-9"))
            .await
            .map_err(words)?;
        same(&count(&it.two, "orders_eu")?, "2").map_err(within)?;
        same(&count(&it.one, "orders_rest")?, "2").map_err(within)?;
        for (sql, wanted) in [
            ("SELECT id FROM orders WHERE tenant = 'eu-1'", "1"),
            ("SELECT id FROM orders WHERE tenant = 'eu-9'", "4"),
            ("SELECT id FROM orders WHERE tenant = 'us-1'", "2"),
            (
                "SELECT SUM(id) FROM orders WHERE tenant IN ('eu-1', '77')",
                "4",
            ),
            ("SELECT SUM(id) FROM orders", "10"),
        ] {
            same(&cell(&mut client, sql)?, wanted)
                .map_err(|error| within(format!("{sql}: {error}")))?;
        }
        let said = it
            .proxy
            .admin("EXPLAIN ROUTE 'SELECT id FROM orders WHERE tenant = ''eu-5''' IN conf")?;
        expect(said.contains("point: orders.eu on hostgroup 2"), || {
            within(said.clone())
        })?;
    }
    Ok(())
}

fn another(driver: Driver) -> Outcome {
    let mut it = world(driver, Vendor::MariaDb)?;
    let select = "SELECT id FROM orders WHERE tenant = 'eu-1'";
    let found = "INSERT INTO orders (id, tenant) VALUES (1, 'eu-1')";
    asked(&mut log_in(&it.proxy)?, found)?;
    // Without its checksum no function is taken.
    let said = it.proxy.admin(
        "UPDATE mysql_shard_tables SET `function` = 'LUA(region)'; LOAD MYSQL SHARDS TO RUNTIME",
    );
    expect(
        said.as_ref()
            .is_err_and(|error| error.contains("is the one that is in force")),
        || format!("{said:?}"),
    )?;
    it.proxy.admin("LOAD MYSQL SHARDS FROM DISK")?;
    // One that is no such script is refused; another one, or none, is said, and serves nobody.
    let said = it.proxy.admin(&script("x = 1"));
    expect(
        said.as_ref()
            .is_err_and(|error| error.contains("no function bucket(key)")),
        || format!("{said:?}"),
    )?;
    for change in [
        script("function bucket(key) return ''eu'' end"),
        "DELETE FROM mysql_scripts; LOAD MYSQL SCRIPTS TO RUNTIME".to_owned(),
    ] {
        it.proxy.admin(&change)?;
        let mut client = log_in(&it.proxy)?;
        for sql in [select, found, "SELECT COUNT(*) FROM orders"] {
            let said = refusal(&mut client, sql);
            expect(
                said.contains("HSCALE-1000") && said.contains("is not in force here"),
                || format!("{change}: {sql}: {said}"),
            )?;
        }
        expect(
            it.proxy.says(
                "mysql_shard_tables (schemaname '', table_name 'orders'): function does not serve",
            ),
            || it.proxy.log(),
        )?;
    }
    it.proxy.admin(&script(SCRIPT))?;
    same(&cell(&mut log_in(&it.proxy)?, select)?, "1")?;
    it.proxy.kill();
    it.proxy.restart()?;
    same(&cell(&mut log_in(&it.proxy)?, select)?, "1")?;
    // What the script says no bucket of is in no partition for certain.
    it.proxy
        .admin(&script("function bucket(key) return nil end"))?;
    let said = it.proxy.admin(
        "UPDATE mysql_shard_tables SET `function` = 'LUA(region)'; LOAD MYSQL SHARDS TO RUNTIME",
    );
    let words = said.err().unwrap_or_default();
    let sum = words
        .split("LUA('region', '")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    let sum = sum.ok_or_else(|| format!("no checksum: {words}"))?;
    it.proxy.admin(&format!(
        "UPDATE mysql_shard_tables SET `function` = 'LUA(region, {sum})'; LOAD MYSQL SHARDS TO RUNTIME"
    ))?;
    let mut client = log_in(&it.proxy)?;
    let said = refusal(&mut client, found);
    expect(
        said.contains("HSCALE-1000") && said.contains("not a nil"),
        || said.clone(),
    )?;
    // A read asks all of them.
    same(&cell(&mut client, select)?, "1")
}
