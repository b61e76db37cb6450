//! A cluster of Galera behind the proxy: one node gets writes, whatever happens to the nodes.
#![forbid(unsafe_code)]

use conformance::beside::set;
use conformance::by_hand;
use conformance::galera::Galera;
use conformance::nodes::{self, Marked, Nodes, Writes};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    if let Some(why) = Galera::missing() {
        eprintln!("SKIPPED: every test of this programme: {why}");
        return;
    }
    // What is tried is the monitor's work: cores learn of it in one way.
    trials::run_on(
        &[Driver::Epoll],
        &[("one_node_gets_writes_whatever_happens_to_the_nodes", whole)],
    )
}

/// Quick checks.
const VARIABLES: &str = "monitor_enabled = true\nmonitor_username = \"watch\"\n\
    monitor_password = \"watched\"\nmonitor_galera_healthcheck_interval = 100\n\
    monitor_galera_healthcheck_timeout = 5000\nmonitor_ping_interval = 100\n\
    monitor_ping_timeout = 5000\nmonitor_connect_timeout = 5000";

/// Three nodes in the writers' hostgroup, 0; 1 is that of backup writers, 2 of readers, 3 offline.
fn three(driver: Driver) -> Result<(Galera, Proxy), String> {
    let sql = format!(
        "{} CREATE USER watch@'%' IDENTIFIED BY 'watched'; {}{}",
        by_hand::CREATE_USER,
        Writes::TABLE,
        Marked::TABLES
    );
    let cluster = Galera::start(3, &sql)?;
    let mut wish = Wish::in_front_of(&cluster.nodes[0]);
    wish.add_open_user();
    wish.variables = format!("{}\n{VARIABLES}", wish.variables);
    wish.servers = nodes::rows(&cluster.nodes);
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(
        "INSERT INTO mysql_galera_hostgroups (writer_hostgroup, backup_writer_hostgroup, \
         reader_hostgroup, offline_hostgroup, writer_is_also_reader) VALUES (0, 1, 2, 3, 2); \
         LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    Ok((cluster, proxy))
}

fn whole(driver: Driver) -> Outcome {
    let (mut cluster, proxy) = three(driver)?;
    let steps = [
        ("it is seen who is what", well as Step),
        ("a node that is not as it should be", astray),
        ("the writer is killed", killed),
    ];
    for (words, step) in steps {
        step(&mut cluster, &proxy).map_err(|error| format!("{words}: {error}\n{}", proxy.log()))?;
    }
    Ok(())
}

type Step = fn(&mut Galera, &Proxy) -> Outcome;

const WELL: &str = "0: a, 1: b c, 2: b c";

fn well(cluster: &mut Galera, proxy: &Proxy) -> Outcome {
    let nodes = Nodes::of(&cluster.nodes, proxy);
    nodes.soon(WELL)?;
    let seen = proxy.admin(
        "SELECT DISTINCT primary_partition, read_only, wsrep_local_state, wsrep_desync, \
         wsrep_reject_queries, wsrep_sst_donor_rejects_queries, pxc_maint_mode \
         FROM monitor.mysql_server_galera_log WHERE error IS NULL",
    )?;
    same(&seen, "YES\tNO\t4\tNO\tNO\tNO\tNO")?;
    expect(proxy.says("says that it may write"), || {
        "no word of it".into()
    })?;
    // The operator's rows are his.
    let rows = "SAVE MYSQL SERVERS FROM RUNTIME; SELECT hostgroup_id, count(*) FROM mysql_servers \
                GROUP BY 1; SELECT writer_is_also_reader FROM mysql_galera_hostgroups";
    same(&proxy.admin(rows)?, "0\t3\n2")?;
    // A check that may not log in takes nobody away.
    set(proxy, "SET mysql-monitor_password = 'wrong'")?;
    nodes.eventually(
        "1",
        "SELECT count(DISTINCT port) = 3 FROM monitor.mysql_server_galera_log WHERE error LIKE '%1045%'",
    )?;
    same(&nodes.places()?, WELL)?;
    set(proxy, "SET mysql-monitor_password = 'watched'")
}

fn astray(cluster: &mut Galera, proxy: &Proxy) -> Outcome {
    let nodes = Nodes::of(&cluster.nodes, proxy);
    let global = |node: usize, sql: &str| cluster.nodes[node].root(&format!("SET GLOBAL {sql}"));
    // Readers and those that wait.
    for (off, on, then) in [
        (
            "wsrep_desync = 1",
            "wsrep_desync = 0",
            "0: a, 1: c, 2: c, 3: b",
        ),
        ("read_only = 1", "read_only = 0", "0: a, 1: c, 2: b c"),
        (
            "wsrep_reject_queries = ALL",
            "wsrep_reject_queries = NONE",
            "0: a, 1: c, 2: c, 3: b",
        ),
    ] {
        global(1, off)?;
        nodes.soon(then)?;
        global(1, on)?;
        nodes.soon(WELL)?;
    }
    // The writer. It does not get its place back.
    global(0, "read_only = 1")?;
    nodes.soon("0: b, 1: c, 2: a c")?;
    global(0, "read_only = 0")?;
    nodes.soon("0: b, 1: a c, 2: a c")?;
    // A node that is on its own.
    global(1, "wsrep_cluster_address = 'gcomm://'")?;
    nodes.soon("0: a, 1: c, 2: c, 3: b")?;
    Ok(())
}

fn killed(cluster: &mut Galera, proxy: &Proxy) -> Outcome {
    cluster.nodes[1].kill();
    cluster.restart(1)?;
    Nodes::of(&cluster.nodes, proxy).soon(WELL)?;
    let writes = Writes::start(proxy);
    let marked = Marked::start(proxy)?;
    writes.go_on(100)?;
    cluster.nodes[0].kill();
    Nodes::of(&cluster.nodes, proxy).soon("0: b, 1: c, 2: c, 3: -a")?;
    writes.go_on(100)?;
    cluster.restart(0)?;
    Nodes::of(&cluster.nodes, proxy).soon("0: b, 1: a c, 2: a c")?;
    writes.go_on(100)?;
    marked.are_in(&cluster.nodes[2])?;
    let done = writes.stop()?;
    let (first, second) = (cluster.nodes[0].port, cluster.nodes[1].port);
    for node in &cluster.nodes {
        done.are_in(node, &[first, second])?;
    }
    let said = proxy.says(&format!(
        "is the writer of hostgroup 0, no more 127.0.0.1:{first}"
    ));
    expect(said, || "no word of the new writer".into())
}
