//! Servers that answer as Aurora does, behind the proxy: one of them is named, all serve.
#![forbid(unsafe_code)]

use conformance::aurora::{Aurora, DOMAIN};
use conformance::by_hand::Raw;
use conformance::clients::app;
use conformance::nodes::Nodes;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    // What is tried is the monitor's work: cores learn of it in one way.
    trials::run_on(
        &[Driver::Epoll],
        &[("whom_the_cluster_tells_of_serves", whole)],
    )
}

fn whole(driver: Driver) -> Outcome {
    let cluster = Aurora::start().map_err(|error| error.to_string())?;
    let wish = Wish {
        users: "{ username = \"app\", password = \"secret\", default_hostgroup = 0 }".into(),
        servers: format!(
            "{{ address = \"127.1{DOMAIN}\", port = {}, hostgroup = 0 }}",
            cluster.port
        ),
        variables: "monitor_enabled = true\nmonitor_ping_interval = 100".into(),
        ..Wish::default()
    };
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(&format!(
        "INSERT INTO mysql_aws_aurora_hostgroups (writer_hostgroup, reader_hostgroup, aurora_port, \
         domain_name, max_lag_ms, check_interval_ms, new_reader_weight) \
         VALUES (0, 1, {}, '{DOMAIN}', 100, 100, 5); LOAD MYSQL SERVERS TO RUNTIME",
        cluster.port
    ))?;
    steps(&cluster, &proxy).map_err(|error| format!("{error}\n{}", proxy.log()))
}

/// The writer also reads, and is left out of reads of an age while enough replicas are so fresh.
fn aged(cluster: &Aurora, proxy: &Proxy, nodes: &Nodes<'_>) -> Outcome {
    let writer_reads = |reads: u8| {
        proxy.admin(&format!(
            "UPDATE mysql_aws_aurora_hostgroups SET writer_is_also_reader = {reads}; LOAD MYSQL SERVERS TO RUNTIME"
        ))
    };
    writer_reads(1)?;
    nodes.soon("0: b, 1: a b c")?;
    let mut client = Raw::log_in_as(&app(proxy.port), 0, 0).map_err(|error| error.to_string())?;
    let mut writer_had = || {
        proxy.admin("SELECT * FROM stats_mysql_connection_pool_reset")?;
        for _ in 0..40 {
            let read = "SELECT /* hostgroup=1; max_lag_ms=600000 */ 1";
            client.ask(read).map_err(|error| error.to_string())?;
        }
        let asked = "SELECT SUM(Queries) > 0 FROM stats_mysql_connection_pool WHERE hostgroup = 1 AND srv_host LIKE '127.2.%'";
        Ok::<_, String>(proxy.admin(asked)?.trim().to_owned())
    };
    same(&writer_had()?, "0")?;
    let enough = |replicas: u8| {
        let name = "mysql-aurora_max_lag_ms_only_read_from_replicas";
        proxy.admin(&format!(
            "SET {name} = {replicas}; LOAD MYSQL VARIABLES TO RUNTIME"
        ))
    };
    enough(3)?;
    same(&writer_had()?, "1")?;
    enough(2)?;
    same(&writer_had()?, "0")?;
    cluster.change(3, |instance| instance.answers = false);
    nodes.soon("0: b, 1: -c a b")?;
    same(&writer_had()?, "1")?;
    cluster.change(3, |instance| instance.answers = true);
    writer_reads(0)?;
    nodes.soon("0: b, 1: a c").map(drop)
}

fn steps(cluster: &Aurora, proxy: &Proxy) -> Outcome {
    let names = (1..=3).map(|number| format!("127.{number}{DOMAIN}"));
    let nodes = Nodes::named(names, proxy);
    nodes.soon("0: a, 1: b c")?;
    let weights = "SELECT DISTINCT weight FROM runtime_mysql_servers WHERE hostgroup_id = 1";
    same(&proxy.admin(weights)?, "5")?;
    let log = "SELECT DISTINCT SERVER_ID, SESSION_ID, replica_lag_in_milliseconds, estimated_lag_ms \
               FROM monitor.mysql_server_aws_aurora_log WHERE error IS NULL ORDER BY 1";
    let wanted = "127.1\tMASTER_SESSION_ID\t20\t0\n127.2\tNULL\t20\t50\n127.3\tNULL\t20\t50";
    same(&proxy.admin(log)?, wanted)?;
    // Too far behind, with the 30 ms that are added.
    cluster.change(3, |instance| instance.lag_ms = 71);
    nodes.soon("0: a, 1: -c b")?;
    cluster.change(3, |instance| instance.lag_ms = 70);
    nodes.soon("0: a, 1: b c")?;
    // The writer is lost; the cluster chooses.
    cluster.change(1, |instance| instance.answers = false);
    nodes.soon("0: -a, 1: b c")?;
    cluster.choose(2);
    nodes.soon("0: b, 1: -a c")?;
    cluster.change(1, |instance| instance.answers = true);
    nodes.soon("0: b, 1: a c")?;
    aged(cluster, proxy, &nodes)?;
    // One is gone for good.
    cluster.change(3, |instance| {
        instance.is_known = false;
        instance.answers = false;
    });
    nodes.soon("0: b, 1: a")?;
    expect(proxy.says("which no row names, is gone"), || {
        "no word of it".into()
    })?;
    let rows = "SAVE MYSQL SERVERS FROM RUNTIME; SELECT count(*) FROM mysql_servers";
    same(&proxy.admin(rows)?, "1")
}
