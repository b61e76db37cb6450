//! The scripts of the documents that this project grew from, as they stand: piped into the mysql
//! client on the admin port, then their traffic, piped into another one.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use conformance::process::{TempFolder, output};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use conformance::watch::HANGS;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "the_script_of_two_hundred_rules_routes_its_loop",
            two_hundred_rules,
        ),
        (
            "the_time_of_decisions_is_taken_if_somebody_asks",
            time_of_decisions,
        ),
        (
            "routing_rewriting_caching_statistics_and_a_pool_at_once",
            reasons,
        ),
    ])
}

/// Two servers in hostgroups 0 and 1 that have the documents' user and schemas.
struct Stand {
    servers: [Server; 2],
    proxy: Proxy,
    folder: TempFolder,
}

const SHARDS: std::ops::RangeInclusive<u32> = 10001..=10200;

fn stand(driver: Driver) -> Result<Stand, String> {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    let mut made =
        "CREATE USER sbtest@'%' IDENTIFIED BY 'sbtest'; GRANT ALL ON *.* TO sbtest@'%';\n"
            .to_owned();
    SHARDS.for_each(|shard| {
        made.push_str(&format!("CREATE DATABASE IF NOT EXISTS shard_{shard};\n"))
    });
    for server in &servers {
        server.root(&made)?;
    }
    let mut wish = Wish::in_front_of(&servers[0]);
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        servers[1].port
    );
    wish.users
        .push_str(",\n{ username = \"sbtest\", password = \"sbtest\", default_hostgroup = 0 }");
    let folder = TempFolder::new("scripts").map_err(|error| error.to_string())?;
    Ok(Stand {
        proxy: Proxy::start(driver, &wish)?,
        servers,
        folder,
    })
}

impl Stand {
    /// `cat script | client`, with what the documents give the client.
    fn pipe(
        &self,
        client: PathBuf,
        given: &str,
        port: u16,
        script: &str,
    ) -> Result<String, String> {
        let file = self.folder.path().join("script");
        fs::write(&file, script).map_err(|error| error.to_string())?;
        let mut command = Command::new("sh");
        command
            .args(["-c", "cat \"$0\" | \"$@\""])
            .arg(&file)
            .arg(client)
            .arg("--no-defaults");
        command
            .args(given.split(' '))
            .args(["-h", "127.0.0.1"])
            .arg(format!("-P{port}"));
        match output(&mut command, HANGS)? {
            (true, words) => Ok(words),
            (false, words) => Err(words),
        }
    }

    fn operates(&self, script: &str) -> Result<String, String> {
        self.pipe(
            Vendor::MariaDb.programs()?.client,
            "-u admin -padmin -NB",
            self.proxy.admin_port,
            script,
        )
    }

    /// Without TLS, as the documents have it.
    fn asks(&self, script: &str) -> Result<String, String> {
        self.pipe(
            Vendor::MariaDb.programs()?.client,
            "-u sbtest -psbtest --skip-ssl -NB",
            self.proxy.port,
            script,
        )
    }

    fn counted(&self, name: &str) -> Result<u64, String> {
        let said = self.operates(&format!(
            "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}';\n"
        ))?;
        said.trim()
            .parse()
            .map_err(|_| format!("{name} is '{said}'"))
    }
}

/// `SELECT 1` of so many schemas, one after the other.
fn traffic(turns: u32) -> String {
    (0..turns)
        .map(|turn| format!("USE shard_{}\nSELECT 1;\n", SHARDS.start() + turn * 7 % 200))
        .collect()
}

/// A32, A33, A34: the script of two hundred rules, and its loop. The first rule gives all answers a
/// time to live and does not apply: the chain goes on.
fn two_hundred_rules(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    let mut script = String::from(
        "DELETE FROM mysql_query_rules; INSERT INTO mysql_query_rules (active,username,cache_ttl) VALUES (1,\"sbtest\",120000);\n",
    );
    for shard in SHARDS {
        let _ = writeln!(
            script,
            "INSERT INTO mysql_query_rules (active,username,schemaname,destination_hostgroup,apply) VALUES (1,\"sbtest\",\"shard_{shard}\",1,1);"
        );
    }
    script.push_str("LOAD MYSQL QUERY RULES TO RUNTIME;\n");
    same(&stand.operates(&script)?, "")?;
    same(
        &stand.operates(
            "SELECT COUNT(*), MIN(rule_id), MAX(rule_id) FROM runtime_mysql_query_rules;\n",
        )?,
        "201\t1\t201",
    )?;
    same(&stand.asks(&traffic(400))?, &["1"; 400].join("\n"))?;
    // Two hundred answers from the rule's hostgroup, and two hundred that were kept.
    let counted = "SELECT hostgroup, SUM(count_star) FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?' GROUP BY 1 ORDER BY 1;\n";
    same(&stand.operates(counted)?, "-1\t200\n1\t200")?;
    let [own, other] = stand
        .servers
        .each_ref()
        .map(|server| server.port.to_string());
    for (schema, port) in [
        ("shard_10001", &other),
        ("shard_10200", &other),
        ("conf", &own),
    ] {
        same(
            &stand.asks(&format!("USE {schema}\nSELECT @@port;\n"))?,
            port,
        )
        .map_err(|words| format!("{schema}: {words}"))?;
    }
    Ok(())
}

/// A35, A42: nanoseconds in `Query_Processor_time_nsec` while `mysql-stats_time_query_processor` is
/// on, and none by default.
fn time_of_decisions(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    let nanoseconds = || stand.counted("Query_Processor_time_nsec");
    stand.asks(&traffic(50))?;
    same(&nanoseconds()?.to_string(), "0")?;
    stand.operates(
        "SET mysql-stats_time_query_processor='true';\nLOAD MYSQL VARIABLES TO RUNTIME;\n",
    )?;
    let (questions, began) = (stand.counted("Questions")?, std::time::Instant::now());
    stand.asks(&traffic(200))?;
    let (took, asked) = (nanoseconds()?, stand.counted("Questions")? - questions);
    expect(asked >= 400, || format!("{asked} questions"))?;
    // No decision is made in less than a nanosecond, nor do all of them take more than there was.
    let most = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    expect((asked..most).contains(&took), || {
        format!("{asked} decisions in {took} ns, of {most} that have passed")
    })?;
    stand.operates(
        "SET mysql-stats_time_query_processor='false';\nLOAD MYSQL VARIABLES TO RUNTIME;\n",
    )?;
    let before = nanoseconds()?;
    stand.asks(&traffic(50))?;
    same(&nanoseconds()?.to_string(), &before.to_string())
}

/// A69: what one pays for who understands SQL for: each of these at once, for the same clients.
fn reasons(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    stand.operates(
        "INSERT INTO mysql_query_rules (rule_id,active,match_pattern,replace_pattern) VALUES (1,1,\"^SELECT 'where'$\",\"SELECT 'at', @@port\");\n\
         INSERT INTO mysql_query_rules (rule_id,active,match_digest,destination_hostgroup,apply) VALUES (2,1,\"'where'|^SELECT \\?$\",1,0);\n\
         INSERT INTO mysql_query_rules (rule_id,active,match_pattern,cache_ttl,apply) VALUES (3,1,\"^SELECT 111$\",600000,1);\n\
         LOAD MYSQL QUERY RULES TO RUNTIME;\n",
    )?;
    let [own, other] = stand.servers.each_ref().map(|server| server.port);
    // Routing, and rewriting.
    for _ in 0..10 {
        let said = stand.asks("SELECT 'where';\nSELECT 111;\nSELECT 'here', @@port;\n")?;
        same(&said, &format!("at\t{other}\n111\nhere\t{own}"))?;
    }
    // Caching.
    same(&stand.counted("Query_Cache_count_GET_OK")?.to_string(), "9")?;
    // Statistics.
    same(
        &stand.operates("SELECT rule_id, hits FROM stats_mysql_query_rules;\n")?,
        "1\t10\n2\t20\n3\t10",
    )?;
    same(
        &stand.operates(
            "SELECT hostgroup, digest_text, count_star FROM stats_mysql_query_digest WHERE digest_text LIKE 'SELECT ?%' ORDER BY 1, 2;\n",
        )?,
        "-1\tSELECT ?\t9\n0\tSELECT ?,@@port\t10\n1\tSELECT ?\t1\n1\tSELECT ?,@@port\t10",
    )?;
    // A pool: ten clients came, one after the other, and each core opened at most one connection to
    // each server.
    let opened = stand.operates("SELECT SUM(ConnOK) FROM stats_mysql_connection_pool;\n")?;
    expect(
        opened.trim().parse::<u32>().is_ok_and(|opened| opened <= 4),
        || format!("{opened} connections for ten clients"),
    )
}
