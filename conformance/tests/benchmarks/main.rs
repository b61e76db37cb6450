//! Statements that people bring to a proxy: the questions of TPC-H, the transactions of TPC-C and what
//! SELECT can say, over sharded tables beside a server that has all rows.
#![forbid(unsafe_code)]

mod kinds;
mod tpcc;
mod tpch;

use conformance::library;
use conformance::partitions::ask;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials;
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "questions_of_tpch_are_answered_as_by_one_server",
            tpch::questions,
        ),
        (
            "transactions_of_tpcc_are_answered_as_by_one_server",
            tpcc::transactions,
        ),
        ("selects_of_all_kinds_are_as_over_one_table", kinds::selects),
    ])
}

/// Chance from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    fn of<'t>(&mut self, among: &[&'t str]) -> &'t str {
        among[self.below(among.len())]
    }

    fn or_null(&mut self, value: String) -> String {
        match self.below(8) {
            0 => "NULL".to_owned(),
            _ => value,
        }
    }

    /// An amount of money, from cents.
    fn money(&mut self, least: usize, most: usize) -> String {
        let cents = self.between(least, most);
        format!("{}.{:02}", cents / 100, cents % 100)
    }
}

/// A row: its key, and its values as they are written.
type Row = (usize, String);

/// A table, and how it is spread.
struct Table {
    name: &'static str,
    columns: String,
    rows: Vec<Row>,
    place: Place,
}

enum Place {
    /// By the remainder of this column, over so many partitions.
    Sharded(&'static str, usize),
    /// On all servers.
    Reference,
    /// On the first server.
    Plain,
}

struct World {
    servers: [Server; 2],
    proxy: Proxy,
}

impl World {
    /// Two servers and a proxy. The first server has all tables in the schema `whole`, too.
    fn with(driver: Driver, vendor: Vendor, tables: &[Table]) -> Result<Self, String> {
        let servers = [Server::start(vendor)?, Server::start(vendor)?];
        let mut wish = Wish::in_front_of(&servers[0]);
        wish.add(1, &servers[1]);
        let proxy = Proxy::start(driver, &wish)?;
        for server in &servers {
            server.root(
                "CREATE DATABASE whole; CREATE DATABASE parts; GRANT ALL ON *.* TO app@'%'",
            )?;
        }
        let world = Self { servers, proxy };
        for table in tables {
            world.add(table)?;
        }
        world.proxy.admin("LOAD MYSQL SHARDS TO RUNTIME")?;
        Ok(world)
    }

    fn make(&self, server: usize, name: &str, columns: &str, rows: &[&Row]) -> Outcome {
        let server = &self.servers[server];
        server.root(&format!("CREATE TABLE {name} {columns}"))?;
        for rows in rows.chunks(500) {
            let values: Vec<_> = rows.iter().map(|(_, values)| values.as_str()).collect();
            server.root(&format!(
                "SET NAMES utf8mb4; SET time_zone = '+00:00'; INSERT INTO {name} VALUES {}",
                values.join(", ")
            ))?;
        }
        Ok(())
    }

    fn add(&self, table: &Table) -> Outcome {
        let Table { name, columns, .. } = table;
        let all: Vec<&Row> = table.rows.iter().collect();
        self.make(0, &format!("whole.{name}"), columns, &all)?;
        match table.place {
            Place::Plain => Ok(()),
            Place::Reference => {
                for server in [0, 1] {
                    self.make(server, &format!("parts.{name}_all"), columns, &all)?;
                }
                self.proxy.admin(&format!(
                    "INSERT INTO mysql_shard_tables (table_name, kind, default_schema, default_table) VALUES ('{name}', 'REFERENCE', 'parts', '{name}_all'); \
                     INSERT INTO mysql_shard_partitions (table_name, partition_name, hostgroup_id, physical_schema, physical_table) VALUES ('{name}', '1', 1, 'parts', '{name}_all')"
                ))?;
                Ok(())
            }
            Place::Sharded(key, many) => {
                self.make(0, &format!("parts.{name}_default"), columns, &[])?;
                self.proxy.admin(&format!(
                    "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_schema, default_table) \
                     VALUES ('{name}', '{key}', 'INT', 'MOD({many})', 'parts', '{name}_default')"
                ))?;
                for part in 0..many {
                    let is_own = |row: &&Row| row.0 % many == part;
                    let own: Vec<_> = table.rows.iter().filter(is_own).collect();
                    self.make(part % 2, &format!("parts.{name}_{part}"), columns, &own)?;
                    self.proxy.admin(&format!(
                        "INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id, physical_schema) \
                         VALUES ('{name}', '{part}', '{part}', {}, 'parts')",
                        part % 2
                    ))?;
                }
                Ok(())
            }
        }
    }

    /// Users may have transactions on both servers.
    fn lets_transactions_have_branches(&self) -> Outcome {
        self.servers[0].root(
            "CREATE DATABASE millrace; CREATE TABLE millrace.decisions (transaction VARCHAR(64) CHARACTER SET ascii PRIMARY KEY, \
             outcome VARCHAR(8) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB",
        )?;
        self.proxy.admin(
            "SET mysql-sharding_decisions = 'millrace.decisions'; LOAD MYSQL VARIABLES TO RUNTIME; \
             UPDATE mysql_users SET attributes = '{\"transactions\":\"xa\",\"partition_changes\":\"xa\"}'; LOAD MYSQL USERS TO RUNTIME",
        )?;
        Ok(())
    }

    /// A client of the server that has the whole tables, and one of the proxy.
    async fn come_in(&self) -> Result<[Conn; 2], String> {
        let words = |error: mysql_async::Error| error.to_string();
        let ports = [self.servers[0].port, self.proxy.port];
        let mut conns = [
            library::come_in(ports[0]).await.map_err(words)?,
            library::come_in(ports[1]).await.map_err(words)?,
        ];
        for conn in &mut conns {
            let set = "SET NAMES utf8mb4, time_zone = '+00:00'";
            conn.query_drop(set).await.map_err(words)?;
            conn.query_drop("USE whole").await.map_err(words)?;
        }
        Ok(conns)
    }
}

/// Names of columns, and rows.
async fn told(conn: &mut Conn, sql: &str) -> Result<(Vec<String>, Vec<gather::Row>), String> {
    let words = |error: mysql_async::Error| error.to_string();
    let result = conn.query_iter(sql).await.map_err(words)?;
    let names = result.columns();
    let names = names.iter().flat_map(|columns| columns.iter());
    let names = names.map(|column| column.name_str().into_owned()).collect();
    result.drop_result().await.map_err(words)?;
    Ok((names, ask(conn, sql).await?.1))
}
