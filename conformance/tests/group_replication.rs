//! A group of MySQL servers behind the proxy: its primary gets writes, whoever that is.
#![forbid(unsafe_code)]

use conformance::beside::set;
use conformance::by_hand;
use conformance::group::Group;
use conformance::nodes::{self, Marked, Nodes, Writes};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::Vendor;
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    if let Err(why) = Vendor::MySql.programs() {
        eprintln!("SKIPPED: every test of this programme: {why}");
        return;
    }
    // What is tried is the monitor's work: cores learn of it in one way.
    trials::run_on(
        &[Driver::Epoll],
        &[("the_primary_gets_writes_whoever_it_is", whole)],
    )
}

/// Quick checks.
const VARIABLES: &str = "monitor_enabled = true\nmonitor_username = \"watch\"\n\
    monitor_password = \"watched\"\nmonitor_groupreplication_healthcheck_interval = 100\n\
    monitor_groupreplication_healthcheck_timeout = 5000\nmonitor_ping_interval = 100\n\
    monitor_ping_timeout = 5000\nmonitor_connect_timeout = 5000";

/// Three members, of which rows name two, in the writers' hostgroup, 0; 1 is that of backup writers,
/// 2 of readers, 3 offline.
fn three(driver: Driver) -> Result<(Group, Proxy), String> {
    let sql = format!(
        "{} CREATE USER watch@'%' IDENTIFIED BY 'watched'; \
         GRANT SELECT ON performance_schema.* TO watch@'%'; {}{}",
        by_hand::CREATE_USER,
        Writes::TABLE,
        Marked::TABLES
    );
    let group = Group::start(3, &sql)?;
    let mut wish = Wish::in_front_of(&group.nodes[0]);
    wish.add_open_user();
    wish.variables = format!("{}\n{VARIABLES}", wish.variables);
    wish.servers = nodes::rows(&group.nodes[..2]);
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, servers_defaults) \
         VALUES (2, '{\"weight\":7}'); \
         INSERT INTO mysql_group_replication_hostgroups (writer_hostgroup, \
         backup_writer_hostgroup, reader_hostgroup, offline_hostgroup) VALUES (0, 1, 2, 3); \
         LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    Ok((group, proxy))
}

type Step = fn(&mut Group, &Proxy) -> Outcome;

fn whole(driver: Driver) -> Outcome {
    let (mut group, proxy) = three(driver)?;
    let steps = [
        ("it is seen who is what", well as Step),
        ("another is made the primary", switched),
        ("the primary is killed", killed),
        ("a member that no row names leaves", left),
        ("there is no majority", alone),
    ];
    for (words, step) in steps {
        step(&mut group, &proxy).map_err(|error| format!("{words}: {error}\n{}", proxy.log()))?;
    }
    Ok(())
}

const WELL: &str = "0: a, 2: b c";

fn well(group: &mut Group, proxy: &Proxy) -> Outcome {
    let nodes = Nodes::of(&group.nodes, proxy);
    nodes.soon(WELL)?;
    let seen = "SELECT DISTINCT viable_candidate, read_only, transactions_behind \
                FROM monitor.mysql_server_group_replication_log WHERE error IS NULL ORDER BY 2";
    same(&proxy.admin(seen)?, "YES\tNO\t0\nYES\tYES\t0")?;
    // A check that may not log in takes nobody away.
    set(proxy, "SET mysql-monitor_password = 'wrong'")?;
    nodes.eventually(
        "1",
        "SELECT count(DISTINCT port) = 3 FROM monitor.mysql_server_group_replication_log \
         WHERE error LIKE '%1045%'",
    )?;
    same(&nodes.places()?, WELL)?;
    set(proxy, "SET mysql-monitor_password = 'watched'")
}

fn switched(group: &mut Group, proxy: &Proxy) -> Outcome {
    let writes = Writes::start(proxy);
    writes.go_on(100)?;
    let id = group.nodes[1].root("SELECT @@server_uuid")?;
    let id = id.lines().last().unwrap_or_default();
    group.nodes[0].root(&format!("SELECT group_replication_set_as_primary('{id}')"))?;
    Nodes::of(&group.nodes, proxy).soon("0: b, 2: a c")?;
    writes.go_on(100)?;
    let done = writes.stop()?;
    let writers = [group.nodes[0].port, group.nodes[1].port];
    done.are_in(&group.nodes[2], &writers)?;
    group.nodes[1].root("TRUNCATE kept.numbers").map(drop)
}

fn killed(group: &mut Group, proxy: &Proxy) -> Outcome {
    let writes = Writes::start(proxy);
    let marked = Marked::start(proxy)?;
    writes.go_on(100)?;
    group.nodes[1].kill();
    let nodes = Nodes::of(&group.nodes, proxy);
    // Whom the group chooses is its own affair.
    nodes.soon_one_of(&["0: a, 2: c, 3: -b", "0: c, 2: a, 3: -b"])?;
    let chosen = usize::from(nodes.places()?.starts_with("0: c")) * 2;
    writes.go_on(100)?;
    group.restart(1)?;
    let back = if chosen == 0 {
        "0: a, 2: b c"
    } else {
        "0: c, 2: a b"
    };
    Nodes::of(&group.nodes, proxy).soon(back)?;
    writes.go_on(100)?;
    marked.are_in(&group.nodes[chosen])?;
    let done = writes.stop()?;
    let writers = [group.nodes[1].port, group.nodes[chosen].port];
    for node in &group.nodes {
        done.are_in(node, &writers)?;
    }
    let said = proxy.says("is the writer of hostgroup 0, no more");
    expect(said, || "no word of the new writer".into())?;
    let id = group.nodes[0].root("SELECT @@server_uuid")?;
    let id = id.lines().last().unwrap_or_default();
    group.nodes[0].root(&format!("SELECT group_replication_set_as_primary('{id}')"))?;
    Nodes::of(&group.nodes, proxy).soon(WELL)
}

fn left(group: &mut Group, proxy: &Proxy) -> Outcome {
    let nodes = Nodes::of(&group.nodes, proxy);
    let version = "SELECT version FROM runtime_checksums_values WHERE name = 'mysql_servers'";
    let before = proxy.admin(version)?;
    let port = group.nodes[2].port;
    let weight = format!("SELECT weight FROM runtime_mysql_servers WHERE port = {port}");
    same(&proxy.admin(&weight)?, "7")?;
    group.nodes[2].root("STOP GROUP_REPLICATION")?;
    nodes.soon("0: a, 2: b")?;
    expect(proxy.says("which no row names, is gone"), || {
        "no word of it".into()
    })?;
    group.nodes[2].root("START GROUP_REPLICATION")?;
    nodes.soon(WELL)?;
    // None of this is the operator's.
    same(&proxy.admin(version)?, &before)?;
    let rows = "SAVE MYSQL SERVERS FROM RUNTIME; SELECT count(*) FROM mysql_servers";
    same(&proxy.admin(rows)?, "2")
}

/// The primary is there, and may not write for the group.
fn alone(group: &mut Group, proxy: &Proxy) -> Outcome {
    group.nodes[1].kill();
    group.nodes[2].kill();
    let nodes = Nodes::of(&group.nodes, proxy);
    nodes.soon("3: -b -c a")?;
    expect(proxy.says("has no majority"), || "no word of it".into())
}
