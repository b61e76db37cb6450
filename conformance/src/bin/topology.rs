//! A topology to play with, and a proxy in front: `topology galera`, `group` or `replication`. Ends
//! with Ctrl-C.
#![forbid(unsafe_code)]

use conformance::by_hand;
use conformance::galera::Galera;
use conformance::group::Group;
use conformance::nodes;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Start, Vendor};
use std::process::ExitCode;

const VARIABLES: &str = "monitor_enabled = true\nmonitor_username = \"watch\"\n\
    monitor_password = \"watched\"\nmonitor_read_only_interval = 200\nmonitor_ping_interval = 200\n\
    monitor_galera_healthcheck_interval = 200\nmonitor_groupreplication_healthcheck_interval = 200";

const ACCOUNT: &str = "CREATE USER watch@'%' IDENTIFIED BY 'watched'; GRANT SELECT ON performance_schema.* TO watch@'%';";

const FOUR: &str = "(writer_hostgroup, backup_writer_hostgroup, reader_hostgroup, offline_hostgroup, \
    writer_is_also_reader) VALUES (0, 1, 2, 3, 2)";

fn main() -> ExitCode {
    let which = std::env::args().nth(1).unwrap_or_default();
    match shown(&which) {
        // Ctrl-C ends this process, and the kernel ends those that it has started.
        Ok(_running) => loop {
            std::thread::park();
        },
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

/// Servers and proxy that run, as long as they are kept.
type Running = (Vec<Server>, Proxy, Option<Galera>);

fn shown(which: &str) -> Result<Running, String> {
    let sql = format!("{} {ACCOUNT}", by_hand::CREATE_USER);
    eprintln!("starting three servers and Millrace, some 20 seconds …");
    let (nodes, cluster, table) = match which {
        "galera" => {
            let mut cluster = Galera::start(3, &sql)?;
            let nodes = std::mem::take(&mut cluster.nodes);
            let table = format!("mysql_galera_hostgroups {FOUR}");
            (nodes, Some(cluster), table)
        }
        "group" => {
            let nodes = Group::start(3, &sql)?.nodes;
            let table = format!("mysql_group_replication_hostgroups {FOUR}");
            (nodes, None, table)
        }
        "replication" => {
            let pair = "(writer_hostgroup, reader_hostgroup) VALUES (0, 2)";
            let table = format!("mysql_replication_hostgroups {pair}");
            (replication(&sql)?, None, table)
        }
        _ => return Err("T=galera, T=group or T=replication".into()),
    };
    let mut wish = Wish::in_front_of(&nodes[0]);
    wish.variables = format!("{}\n{VARIABLES}", wish.variables);
    wish.servers = nodes::rows(&nodes);
    wish.rules = "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", destination_hostgroup = 2, apply = 1 }".to_owned();
    let proxy = Proxy::start(Driver::Epoll, &wish)?;
    proxy.admin(&format!(
        "INSERT INTO {table}; LOAD MYSQL SERVERS TO RUNTIME"
    ))?;
    say(&nodes, &proxy);
    Ok((nodes, proxy, cluster))
}

fn say(nodes: &[Server], proxy: &Proxy) {
    let (port, admin) = (proxy.port, proxy.admin_port);
    println!("\nclients    mariadb --skip-ssl -h 127.0.0.1 -P {port} -u app -psecret");
    println!("operators  mariadb --skip-ssl -h 127.0.0.1 -P {admin} -u admin -padmin");
    println!(
        "           SELECT hostgroup_id, port, status FROM runtime_mysql_servers ORDER BY 1, 2;"
    );
    println!("log        {}/log", proxy.data().display());
    for node in nodes {
        let (port, id, socket) = (node.port, node.id(), node.socket());
        let client = if node.vendor == Vendor::MariaDb {
            "mariadb"
        } else {
            "mysql"
        };
        println!(
            "server     {port}, process {id}: {client} -u root -S {}",
            socket.display()
        );
    }
    println!(
        "\nSELECTs read, all else writes. kill -9 a server, or set read_only, and look. Ctrl-C ends it."
    );
}

/// A source and two replicas of MariaDB.
fn replication(sql: &str) -> Result<Vec<Server>, String> {
    let mut nodes: Vec<Server> = Vec::new();
    for number in 1..=3 {
        let options = [format!("--server-id={number}"), "--log-bin=binlog".into()];
        let node = Server::start_as(&Start {
            options: options.to_vec(),
            ..Start::of(Vendor::MariaDb)?
        })?;
        if let Some(source) = nodes.first() {
            node.root(&format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'copies', \
                 MASTER_PASSWORD = 'copied'; START SLAVE; SET GLOBAL read_only = 1",
                source.port
            ))?;
        } else {
            node.root(&format!(
                "{sql} CREATE USER copies@'%' IDENTIFIED BY 'copied'; \
                 GRANT REPLICATION SLAVE ON *.* TO copies@'%'"
            ))?;
        }
        nodes.push(node);
    }
    Ok(nodes)
}
