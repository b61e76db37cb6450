//! A group of MySQL servers by Group Replication, on loopback.

use crate::process::free_port;
use crate::servers::{Server, Start, Vendor};
use crate::trials::soon;

const NAME: &str = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

/// The account by which members fetch what they lack. It is made on each, and no log has it.
const ACCOUNT: &str = "SET sql_log_bin = 0; CREATE USER member@'%' IDENTIFIED BY 'members'; \
    GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO member@'%'; \
    CHANGE REPLICATION SOURCE TO SOURCE_USER = 'member', SOURCE_PASSWORD = 'members' \
    FOR CHANNEL 'group_replication_recovery';";

/// A running group.
pub struct Group {
    /// Its members; the first of them began it, and is the primary.
    pub nodes: Vec<Server>,
}

impl Group {
    /// Starts so many members, with what this SQL does.
    pub fn start(many: usize, sql: &str) -> Result<Self, String> {
        let mut start = Start::of(Vendor::MySql)?;
        let ports = (0..many)
            .map(|_| free_port())
            .collect::<Result<Vec<_>, _>>();
        let ports = ports.map_err(|error| error.to_string())?;
        let seeds = ports.iter().map(|port| format!("127.0.0.1:{port}"));
        let seeds = seeds.collect::<Vec<_>>().join(",");
        let mut group = Self { nodes: Vec::new() };
        for (at, port) in ports.into_iter().enumerate() {
            start.port = Some(port);
            start.options = options(port, &seeds);
            let node = Server::start_as(&start)?;
            node.root(ACCOUNT)?;
            group.nodes.push(node);
            if at == 0 {
                group.nodes[0].root(
                    "SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; \
                     SET GLOBAL group_replication_bootstrap_group = OFF",
                )?;
                group.nodes[0].root(sql)?;
            } else {
                group.join(at)?;
            }
        }
        Ok(group)
    }

    /// Starts a member again that was killed.
    pub fn restart(&mut self, node: usize) -> Result<(), String> {
        self.nodes[node].restart()?;
        self.join(node)
    }

    fn join(&self, node: usize) -> Result<(), String> {
        let node = &self.nodes[node];
        node.root("START GROUP_REPLICATION")?;
        let state = "SELECT MEMBER_STATE FROM performance_schema.replication_group_members \
                     WHERE MEMBER_ID = @@global.server_uuid";
        let ask = || {
            Ok(node
                .root(state)?
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned())
        };
        soon("ONLINE", ask).map_err(|words| format!("{words}\n{}", node.log()))
    }
}

fn options(port: u16, seeds: &str) -> Vec<String> {
    [
        &format!("--server-id={port}"),
        "--log-bin=binlog",
        "--gtid-mode=ON",
        "--enforce-gtid-consistency=ON",
        "--report-host=127.0.0.1",
        "--performance-schema=ON",
        // Who is killed has in its tables what its log says.
        "--innodb-flush-log-at-trx-commit=2",
        "--sync-binlog=0",
        "--plugin-load-add=group_replication.so",
        &format!("--loose-group-replication-group-name={NAME}"),
        "--loose-group-replication-start-on-boot=OFF",
        // Members talk over the ports that clients use.
        "--loose-group-replication-communication-stack=MYSQL",
        &format!("--loose-group-replication-local-address=127.0.0.1:{port}"),
        &format!("--loose-group-replication-group-seeds={seeds}"),
        "--loose-group-replication-recovery-use-ssl=ON",
        "--loose-group-replication-ssl-mode=REQUIRED",
        // Whoever is lost is given up soon; one that a busy machine has held up is not.
        "--loose-group-replication-member-expel-timeout=10",
    ]
    .map(str::to_owned)
    .to_vec()
}
