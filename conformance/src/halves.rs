//! Two servers with the partitions of a table `t`, of which the first also has the outcomes of changes that
//! both make, and a proxy in front of them.

use crate::beside::asked;
use crate::by_hand::{self, Raw};
use crate::proxy::{Driver, Proxy, Wish};
use crate::servers::{Server, Vendor};
use crate::trials::{same, soon};

/// Two servers with two partitions each; the first has the outcomes.
pub struct World {
    /// Its hostgroup is 1: partitions `0` and `2`, rows of the default one, and the outcomes.
    pub one: Server,
    /// Its hostgroup is 2: partitions `1` and `3`.
    pub two: Server,
    /// The proxy in front of both.
    pub proxy: Proxy,
    /// How it was started.
    pub wish: Wish,
    /// How its cores talk to the kernel.
    pub driver: Driver,
}

const COLUMNS: &str =
    "(id INT PRIMARY KEY, name VARCHAR(40) NOT NULL DEFAULT '', x INT NOT NULL DEFAULT 0)";
/// As the page has it.
const DECISIONS: &str = "CREATE DATABASE millrace; CREATE TABLE millrace.decisions (transaction VARCHAR(64) CHARACTER SET ascii PRIMARY KEY, \
    outcome VARCHAR(8) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB; \
    GRANT SELECT, INSERT ON millrace.decisions TO monitor@'%'";
const MAP: &str = "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_table, default_hostgroup) \
        VALUES ('t', 'id', 'INT', 'MOD(4)', 't_default', 1), ('numbered', 'k', 'INT', 'MOD(2)', 'numbered_0', 1); \
     INSERT INTO mysql_shard_tables (table_name, kind, default_table, default_hostgroup) VALUES ('kinds', 'REFERENCE', 'kinds', 1); \
     INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id, physical_table) VALUES \
        ('t', '0', '0', 1, 't_0'), ('t', '1', '1', 2, 't_1'), ('t', '2', '2', 1, 't_2'), ('t', '3', '3', 2, 't_3'), \
        ('numbered', '1', '1', 2, 'numbered_1'), ('kinds', 'b', '', 2, 'kinds'); \
     LOAD MYSQL SHARDS TO RUNTIME; SAVE MYSQL SHARDS TO DISK; \
     SET mysql-sharding_decisions = 'millrace.decisions'; SET mysql-sharding_decisions_hostgroup = 1; \
     LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK";

/// Starts a proxy that knows both servers, with these attributes of all users.
///
/// # Errors
/// The proxy's, in its words.
pub fn configured(driver: Driver, wish: &Wish, attributes: &str) -> Result<Proxy, String> {
    let proxy = Proxy::start(driver, wish)?;
    proxy.admin(MAP)?;
    proxy.admin(&format!(
        "UPDATE mysql_users SET attributes = '{attributes}'; LOAD MYSQL USERS TO RUNTIME; SAVE MYSQL USERS TO DISK"
    ))?;
    Ok(proxy)
}

/// A client in the schema of the tables.
///
/// # Errors
/// The server's, in its words.
pub fn log_in(port: u16) -> Result<Raw, String> {
    let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
    asked(&mut client, "USE conf")?;
    Ok(client)
}

impl World {
    /// Starts all of it, with these attributes of all users.
    ///
    /// # Errors
    /// A server or the proxy does not start, in its words.
    pub fn new(driver: Driver, vendor: Vendor, attributes: &str) -> Result<Self, String> {
        let lasting = ["--innodb-flush-log-at-trx-commit=1"];
        let (one, two) = (
            Server::start_with(vendor, &lasting)?,
            Server::start_with(vendor, &lasting)?,
        );
        for server in [&one, &two] {
            server.root(by_hand::CREATE_USER)?;
            server.root(
                "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; GRANT ALL ON *.* TO app@'%'",
            )?;
            if vendor == Vendor::MySql {
                server.root("GRANT XA_RECOVER_ADMIN ON *.* TO monitor@'%'")?;
            }
            server.root("CREATE TABLE conf.kinds (id INT PRIMARY KEY, name VARCHAR(40), at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)); INSERT INTO conf.kinds (id, name, at) VALUES (1, 'a', '2008-12-24')")?;
        }
        let numbered = "(k INT NOT NULL, id INT AUTO_INCREMENT PRIMARY KEY)";
        one.root(&format!(
        "USE conf; CREATE TABLE t_default {COLUMNS}; CREATE TABLE t_0 {COLUMNS}; CREATE TABLE t_2 {COLUMNS}; \
         CREATE TABLE whole {COLUMNS}; CREATE TABLE numbered_0 {numbered}; {DECISIONS}"
    ))?;
        two.root(&format!(
        "USE conf; CREATE TABLE t_1 {COLUMNS}; CREATE TABLE t_3 {COLUMNS}; CREATE TABLE numbered_1 {numbered}"
    ))?;
        let mut wish = Wish::in_front_of(&one);
        for (server, hostgroup) in [(&one, 1), (&two, 2)] {
            wish.add(hostgroup, server);
        }
        wish.add_open_user();
        let proxy = configured(driver, &wish, attributes)?;
        Ok(Self {
            one,
            two,
            proxy,
            wish,
            driver,
        })
    }

    /// Rows of all partitions, as the servers have them.
    ///
    /// # Errors
    /// A server's, in its words.
    pub fn rows(&self) -> Result<String, String> {
        let of = |server: &Server, tables: &str| {
            server.root(&format!(
                "SELECT GROUP_CONCAT(id, ':', x ORDER BY id) FROM (SELECT * FROM conf.{}) AS a",
                tables.replace(' ', " UNION ALL SELECT * FROM conf.")
            ))
        };
        let (one, two) = (
            of(&self.one, "t_0 t_2 t_default")?,
            of(&self.two, "t_1 t_3")?,
        );
        let last = |said: &str| said.lines().last().unwrap_or_default().trim().to_owned();
        Ok(format!("{} {}", last(&one), last(&two)))
    }

    /// How many branches are prepared on both.
    ///
    /// # Errors
    /// A server's, in its words.
    pub fn prepared(&self) -> Result<String, String> {
        let of = |server: &Server| {
            let said = server.root("XA RECOVER")?;
            Ok::<_, String>(
                said.lines()
                    .filter(|line| line.contains("millrace-"))
                    .count(),
            )
        };
        Ok(format!("{} {}", of(&self.one)?, of(&self.two)?))
    }

    /// How many outcomes are written down.
    ///
    /// # Errors
    /// A server's, in its words.
    pub fn decisions(&self) -> Result<String, String> {
        let said = self.one.root("SELECT COUNT(*) FROM millrace.decisions")?;
        Ok(said.lines().last().unwrap_or_default().trim().to_owned())
    }

    /// A client, and a row in each partition.
    ///
    /// # Errors
    /// A server's, in its words.
    pub fn filled(&self) -> Result<Raw, String> {
        let mut client = log_in(self.proxy.port)?;
        asked(
            &mut client,
            "INSERT INTO t (id, x) VALUES (0, 0), (1, 0), (2, 0), (3, 0)",
        )?;
        same(&self.rows()?, "0:0,2:0 1:0,3:0")?;
        Ok(client)
    }

    /// A client whose change waits between PREPARE and the outcome, and who holds the table of
    /// outcomes. The last of the statements is what commits.
    ///
    /// # Errors
    /// A server's, in its words.
    pub fn in_doubt(&self, statements: &[&str]) -> Result<(Raw, Raw), String> {
        let mut holder = log_in(self.one.port)?;
        asked(&mut holder, "LOCK TABLES millrace.decisions WRITE")?;
        let mut client = log_in(self.proxy.port)?;
        let (last, before) = statements.split_last().ok_or("no statement")?;
        for statement in before {
            asked(&mut client, statement)?;
        }
        client.query(last).map_err(|error| error.to_string())?;
        soon("1 1", || self.prepared())?;
        // And then it waits for the table.
        soon("1", || self.waits())?;
        Ok((client, holder))
    }

    /// How many outcomes wait to be written.
    ///
    /// # Errors
    /// A server's, in its words.
    pub fn waits(&self) -> Result<String, String> {
        Ok(self.waiting()?.len().to_string())
    }

    /// Connections on which an outcome waits to be written.
    ///
    /// # Errors
    /// A server's, in its words.
    pub fn waiting(&self) -> Result<Vec<String>, String> {
        let said = self.one.root("SELECT id FROM information_schema.PROCESSLIST WHERE info LIKE 'INSERT INTO `millrace`%'")?;
        let ids = said.lines().map(str::trim);
        Ok(ids
            .filter(|id| !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_digit()))
            .map(str::to_owned)
            .collect())
    }
}

/// The rows of an answer, or its error.
pub fn error(client: &mut Raw) -> String {
    match client.rows() {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => error.to_string(),
    }
}
