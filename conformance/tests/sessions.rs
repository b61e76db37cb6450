//! What a session may rely on although its connections are shared: they are made clean, opened ahead, and brought to its state.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_connection_is_made_clean_by_either_command", made_clean),
        ("connections_are_opened_ahead_until_there_are_enough", opened_ahead),
    ])
}

/// The vendors that are here: MariaDB always is, or nothing of this programme runs.
fn vendors() -> Vec<Vendor> {
    [Vendor::MariaDb, Vendor::MySql].into_iter().filter(|vendor| vendor.programs().is_ok()).collect()
}

fn wish(server: &Server) -> Wish {
    let mut wish = Wish::in_front_of(server);
    wish.users = format!("{},\n{}", wish.users, by_hand::USER_GROUP);
    wish
}

fn one_of(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    let server = Server::start(vendor)?;
    server.root(by_hand::CREATE_USER)?;
    let proxy = Proxy::start(driver, &wish(&server))?;
    Ok((server, proxy))
}

fn log_in(port: u16) -> Result<Raw, String> {
    Raw::log_in(port).map_err(|error| error.to_string())
}

/// A session of the same core as another.
fn beside(proxy: &Proxy, other: &Raw) -> Result<Raw, String> {
    // Those on the other core stay until it is found: who comes goes where the fewest are.
    let mut elsewhere = Vec::new();
    loop {
        let client = log_in(proxy.port)?;
        if client.id % 2 == other.id % 2 {
            return Ok(client);
        }
        elsewhere.push(client);
    }
}

fn asked(client: &mut Raw, sql: &str) -> Result<Vec<Vec<String>>, String> {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

fn set(proxy: &Proxy, assignments: &str) -> Outcome {
    proxy.admin(&format!("{assignments}; LOAD MYSQL VARIABLES TO RUNTIME")).map(drop)
}

/// All sessions have one connection to the server between them.
fn narrow(proxy: &Proxy) -> Outcome {
    proxy.admin("UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME").map(drop)
}

/// `mysql-reset_connection_algorithm`: 1 by COM_CHANGE_USER, 2 by COM_RESET_CONNECTION.
fn made_clean(driver: Driver) -> Outcome {
    let seen = "SELECT DATABASE(), @x, @@sql_mode, @@collation_connection, @@autocommit, @@wait_timeout";
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        let isolation = if vendor == Vendor::MariaDb { "@@tx_isolation" } else { "@@transaction_isolation" };
        let seen = format!("{seen}, {isolation}");
        let fresh = asked(&mut log_in(server.port)?, &seen)?;
        server.root("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = 1")?;
        for (algorithm, compression, wanted) in [(1, 0, "Change user"), (1, 1, "Change user"), (2, 0, "")] {
            let case = format!("{vendor}, algorithm {algorithm}, compression {compression}");
            set(&proxy, &format!("SET mysql-reset_connection_algorithm={algorithm}"))?;
            proxy.admin(&format!("UPDATE mysql_servers SET compression={compression}; LOAD MYSQL SERVERS TO RUNTIME"))?;
            // With the other compression it is another connection.
            set(&proxy, "SET mysql-connection_max_age_ms=1")?;
            soon("0", || Ok(proxy.admin("SELECT SUM(ConnFree) FROM stats_mysql_connection_pool")?.trim().to_owned()))?;
            set(&proxy, "SET mysql-connection_max_age_ms=0")?;
            server.root("TRUNCATE mysql.general_log")?;
            let mut first = log_in(proxy.port)?;
            for sql in ["USE conf", "SET @x = 5, sql_mode = 'ANSI'", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                "CREATE TEMPORARY TABLE left_behind (a INT)", "SET NAMES latin1", "SELECT @x"] {
                asked(&mut first, sql)?;
            }
            let mut second = beside(&proxy, &first)?;
            drop(first);
            asked(&mut second, "USE conf")?;
            let gone = asked(&mut second, "SELECT a FROM left_behind").err().unwrap_or_default();
            expect(gone.contains("1146"), || format!("{case}: a temporary table is there: {gone}"))?;
            let mut wanted_row = fresh.clone();
            wanted_row[0][0] = "conf".to_owned();
            let found = asked(&mut second, &seen)?;
            expect(found == wanted_row, || format!("{case}: {found:?} instead of {wanted_row:?}"))?;
            drop(second);
            // The password of a user is said again, too.
            for _ in 0..2 {
                let said = proxy.query("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; CREATE TEMPORARY TABLE conf.mine (a INT); SELECT 'said'")?;
                expect(said.contains("said"), || format!("{case}: {said}"))?;
            }
            let commands = || {
                let commands = server.root("SELECT DISTINCT command_type FROM mysql.general_log WHERE command_type LIKE 'Change%'")?;
                Ok(commands.lines().filter(|line| !line.starts_with("command")).collect::<Vec<_>>().join(" "))
            };
            soon(&wanted.to_lowercase(), || commands().map(|found: String| found.to_lowercase())).map_err(|error| format!("{case}: {error}"))?;
            let aborted = proxy.admin("SELECT SUM(ConnERR) FROM stats_mysql_connection_pool")?;
            same(aborted.trim(), "0")?;
        }
    }
    Ok(())
}

/// `mysql-connection_warming` and the hostgroup's `connection_warming`.
fn opened_ahead(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    let free = || Ok(proxy.admin("SELECT SUM(ConnFree) FROM stats_mysql_connection_pool")?.trim().to_owned());
    proxy.admin("UPDATE mysql_servers SET max_connections = 50; LOAD MYSQL SERVERS TO RUNTIME")?;
    let mut client = log_in(proxy.port)?;
    asked(&mut client, "SELECT 1")?;
    same(&free()?, "1")?;
    // Ten percent of 50.
    set(&proxy, "SET mysql-connection_warming='true'")?;
    soon("5", free)?;
    // What is in use counts.
    asked(&mut client, "BEGIN")?;
    soon("4", free)?;
    asked(&mut client, "COMMIT")?;
    // A row of the hostgroup has its own word.
    proxy.admin("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, connection_warming, free_connections_pct) VALUES (0, 1, 40); LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("20", free)?;
    proxy.admin("UPDATE mysql_hostgroup_attributes SET connection_warming = 0, free_connections_pct = 4; LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("1", || Ok(proxy.admin("SELECT SUM(ConnFree) <= 2 FROM stats_mysql_connection_pool")?.trim().to_owned()))?;
    // They are good for whoever comes, and nobody opens one for himself.
    proxy.admin("UPDATE mysql_hostgroup_attributes SET connection_warming = 1, free_connections_pct = 20; LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("10", free)?;
    let created = || proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Server_Connections_created'");
    let before = created()?;
    let mut others: Vec<Raw> = (0..8).map(|_| log_in(proxy.port)).collect::<Result<_, _>>()?;
    for other in &mut others {
        asked(other, "BEGIN")?;
    }
    same(&created()?, &before)?;
    // A server that takes no more clients is not warmed.
    drop((client, others));
    proxy.admin("UPDATE mysql_servers SET status = 'OFFLINE_SOFT'; LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("0", free)
}
