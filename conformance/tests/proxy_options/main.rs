//! Options of MySQL Proxy: a proxy that they start, in front of real servers, whose users log in there.
#![forbid(unsafe_code)]

mod scripts;
mod sessions;

use conformance::beside::asked;
use conformance::by_hand::{CREATE_USER, Raw};
use conformance::process::{Process, TempFolder, free_port, output};
use conformance::proxy::{Driver, Proxy, Wish, command_line, program};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, soon};
use conformance::watch::HANGS;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use wire::handshake::Greeting;

use scripts::{a_script_sees, judges_logins, splits_and_tells, stops_at_the_door};
use sessions::{
    becomes_another, keeps_its_connection, killed_there, makes_room, never_another_user_s,
    nobody_can_kill, to_a_reader_too,
};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("who_the_server_knows_comes_in", who_the_server_knows),
        ("a_password_goes_to_the_server_by_each_way", by_each_way),
        ("letters_and_a_file_start_it", letters_and_a_file),
        ("a_script_sees_such_a_session", a_script_sees),
        (
            "scripts_split_statements_and_tell_operators",
            splits_and_tells,
        ),
        ("a_script_stops_clients_at_the_door", stops_at_the_door),
        ("a_script_judges_logins_before_the_server", judges_logins),
        ("the_next_server_is_tried", the_next_server),
        ("a_client_proves_itself_to_a_reader_too", to_a_reader_too),
        ("a_session_keeps_its_connection", keeps_its_connection),
        ("a_client_becomes_another_user_there", becomes_another),
        ("no_connection_is_another_user_s", never_another_user_s),
        ("a_statement_is_killed_there", killed_there),
        (
            "a_statement_that_nobody_can_kill_ends_its_session",
            nobody_can_kill,
        ),
        ("what_is_idle_makes_room_on_a_full_server", makes_room),
        ("rows_of_users_end_it", rows_of_users),
    ])
}

/// By the long names, beside a file with ports of its own and no users.
fn started(driver: Driver, servers: &[&Server], more: &[&str]) -> Result<Proxy, String> {
    let addresses: Vec<_> = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port))
        .collect();
    let mut flags = vec![format!("--proxy-backend-addresses={}", addresses.join(","))];
    flags.extend(more.iter().map(ToString::to_string));
    Proxy::start(
        driver,
        &Wish {
            flags,
            ..Wish::default()
        },
    )
}

fn client(vendor: Vendor) -> Result<Command, String> {
    let mut command = Command::new(vendor.programs()?.client);
    command.args([
        "--no-defaults",
        "-h127.0.0.1",
        "--batch",
        "--skip-column-names",
    ]);
    Ok(command)
}

/// MySQL's own client: what it prints, or its complaint.
fn mysql(port: u16, args: &[&str], sql: &str) -> Result<String, String> {
    let mut command = client(Vendor::MySql)?;
    command
        .arg(format!("-P{port}"))
        .args(args)
        .args(["-e", sql]);
    match output(&mut command, HANGS)? {
        (true, words) => Ok(without_warnings(&words)),
        (false, words) => Err(without_warnings(&words)),
    }
}

/// Leaves out the client's warnings of a password that stands on its command line.
fn without_warnings(words: &str) -> String {
    let lines = words.lines().filter(|line| !line.contains("[Warning]"));
    lines.collect::<Vec<_>>().join("\n")
}

fn same<T: PartialEq + Debug>(found: &T, wanted: &T, what: &str) -> Outcome {
    expect(found == wanted, || {
        format!("{what}: wanted {wanted:?}, found {found:?}")
    })
}

/// Of a user without a password.
fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

const IN_CLEAR: [&str; 3] = ["-uapp", "-psecret", "--ssl-mode=DISABLED"];

/// The greeting is the server's, and so is a refusal, word by word.
fn who_the_server_knows(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        let mut proxy = started(driver, &[&server], &[])?;
        // Its password is in the cache of the server from now on.
        let own = |port| match vendor {
            Vendor::MariaDb => command_line(
                port,
                "app",
                "secret",
                &[],
                "SELECT VERSION(), CURRENT_USER()",
            ),
            Vendor::MySql => mysql(
                port,
                &["-uapp", "-psecret", "--ssl-mode=REQUIRED"],
                "SELECT VERSION(), CURRENT_USER()",
            ),
        };
        same(&own(proxy.port), &own(server.port), "who it is")?;
        let version = |port| {
            let first = Raw::connect(port, b"").and_then(|mut raw| raw.packet());
            let first = first.map_err(|error| error.to_string())?;
            let greeting = Greeting::read(&first).map_err(|error| format!("{error:?}"))?;
            Ok::<_, String>((
                greeting.server_version,
                greeting.auth_plugin,
                greeting.charset,
            ))
        };
        same(
            &version(proxy.port)?,
            &version(server.port)?,
            "the greeting",
        )?;
        let wrong = |port, user: &str, password: &str| {
            command_line(port, user, password, &["conf"], "SELECT 1")
        };
        for (user, password) in [("app", "wrong"), ("nobody", "secret"), ("app", "")] {
            let here = wrong(proxy.port, user, password);
            let words = here.as_ref().err().cloned().unwrap_or_default();
            expect(words.contains("1045"), || format!("{user}: {here:?}"))?;
            same(&here, &wrong(server.port, user, password), "a refusal")?;
        }
        let nowhere = |port| command_line(port, "app", "secret", &["no_such_schema"], "SELECT 1");
        same(
            &nowhere(proxy.port),
            &nowhere(server.port),
            "a schema that is not there",
        )?;
        same(
            &command_line(
                proxy.port,
                "app",
                "secret",
                &["conf2"],
                "SELECT DATABASE(), words FROM only_here WHERE id = 1",
            ),
            &Ok("conf2\thier\n".to_owned()),
            "its schema",
        )?;
        // Nothing is kept of it.
        proxy.admin("SAVE MYSQL SERVERS TO DISK; SAVE MYSQL VARIABLES TO DISK")?;
        expect(proxy.terminate(HANGS), || "it does not end".to_owned())?;
        expect(!proxy.data().join("proxysql.db").exists(), || {
            "there is a database".to_owned()
        })?;
    }
    Ok(())
}

/// A login that is the server's: fast, in full over TLS, and in full sealed with a key, whether or not the
/// server is reached over TLS.
fn by_each_way(driver: Driver) -> Outcome {
    if !vendors().contains(&Vendor::MySql) {
        return Ok(());
    }
    let server = Server::start(Vendor::MySql)?;
    server.root("CREATE USER sealed@'%' IDENTIFIED WITH sha256_password BY 'siegel'")?;
    let proxy = started(driver, &[&server], &[])?;
    for use_ssl in [0, 1] {
        proxy.admin(&format!(
            "UPDATE mysql_servers SET use_ssl = {use_ssl}; LOAD MYSQL SERVERS TO RUNTIME"
        ))?;
        by_each_way_to(&server, &proxy, use_ssl == 1)
            .map_err(|words| format!("use_ssl = {use_ssl}: {words}"))?;
    }
    Ok(())
}

fn by_each_way_to(server: &Server, proxy: &Proxy, is_private: bool) -> Outcome {
    let asks = |args: &[&str]| mysql(proxy.port, args, "SELECT CURRENT_USER()");
    let come_in = |args: &[&str], why: &str| same(&asks(args)?, &"app@%".to_owned(), why);
    // The server knows no password yet, and the client shows none to others.
    let forgets = || server.root("FLUSH PRIVILEGES");
    forgets()?;
    let refused = asks(&IN_CLEAR);
    expect(
        refused.as_ref().is_err_and(|words| words.contains("2061")),
        || format!("in full, in clear: {refused:?}"),
    )?;
    let over_tls = ["-uapp", "-psecret", "--ssl-mode=REQUIRED"];
    come_in(&over_tls, "in full, over TLS")?;
    come_in(&IN_CLEAR, "fast")?;
    forgets()?;
    let sealed = [&IN_CLEAR[..], &["--get-server-public-key"]].concat();
    come_in(&sealed, "in full, sealed")?;
    come_in(&IN_CLEAR, "fast again")?;
    forgets()?;
    for wrong in [
        &["-uapp", "-pwrong", "--ssl-mode=REQUIRED"][..],
        &[
            "-uapp",
            "-pwrong",
            "--ssl-mode=DISABLED",
            "--get-server-public-key",
        ],
        &["-uapp", "--skip-password", "--ssl-mode=DISABLED"],
    ] {
        let here = asks(wrong);
        expect(
            here.as_ref().is_err_and(|words| words.contains("1045")),
            || format!("{wrong:?}: {here:?}"),
        )?;
        same(
            &here,
            &mysql(server.port, wrong, "SELECT CURRENT_USER()"),
            "a refusal",
        )?;
    }
    // The plugin of an account may be another than the greeting's. This one's password passes where the
    // client sees of the proxy what the proxy sees of the server.
    let sealed = [
        "-usealed",
        "-psiegel",
        "--ssl-mode=DISABLED",
        "--get-server-public-key",
    ];
    let over_tls = ["-usealed", "-psiegel", "--ssl-mode=REQUIRED"];
    for (way, passes) in [(&sealed[..], !is_private), (&over_tls[..], is_private)] {
        let said = mysql(proxy.port, way, "SELECT CURRENT_USER()");
        let is_right = match &said {
            Ok(who) => passes && who == "sealed@%",
            Err(words) => !passes && words.contains("sha256_password"),
        };
        expect(is_right, || format!("{way:?}: {said:?}"))?;
    }
    Ok(())
}

/// `millrace proxy`, and no file nor data directory of Millrace's.
struct Bare {
    port: u16,
    admin_port: u16,
    folder: TempFolder,
    process: Process,
}

impl Drop for Bare {
    /// Its end removes the folder that it has made; killed, it could not.
    fn drop(&mut self) {
        if self.process.ended().is_none() {
            self.process.signal("TERM");
            let _killed_then = self.process.wait(Duration::from_secs(10));
        }
    }
}

fn bare(driver: Driver, args: impl Fn(&Path, u16, u16) -> Vec<String>) -> Result<Bare, String> {
    let folder = TempFolder::new("options").map_err(|error| error.to_string())?;
    let port = free_port().map_err(|error| error.to_string())?;
    let admin_port = free_port().map_err(|error| error.to_string())?;
    let mut all: Vec<String> = vec!["proxy".into(), format!("--io-driver={driver}")];
    all.extend(args(folder.path(), port, admin_port));
    let log = folder.path().join("log");
    let mut process = Process::start(&program()?, &all, &log).map_err(|error| error.to_string())?;
    let greeted = process
        .wait_for_greeting(admin_port, HANGS)
        .and_then(|()| process.wait_for_greeting(port, HANGS));
    greeted
        .map_err(|error| format!("{error}\n{}", fs::read_to_string(&log).unwrap_or_default()))?;
    Ok(Bare {
        port,
        admin_port,
        folder,
        process,
    })
}

/// Letters, a `--defaults-file`, lists and repeated options.
fn letters_and_a_file(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    let [one, other] = [servers[0].port, servers[1].port];
    let mut proxy = bare(driver, |folder, port, admin_port| {
        let file = folder.join("proxy.cnf");
        let text = format!(
            "[mysql-proxy]\nproxy-address = 127.0.0.1:1\nproxy-backend-addresses = 127.0.0.1:{one}\n\
             log-level = debug\nadmin-address = 127.0.0.1:{admin_port}\nevent-threads = 2\n"
        );
        // A file that cannot be written shows in what is missing below.
        let _shown_later = fs::write(&file, text);
        vec![
            "-P".into(),
            format!("127.0.0.1:{port}"),
            "-r".into(),
            format!("127.0.0.1:{other}"),
            format!("--defaults-file={}", file.display()),
        ]
    })?;
    same(
        &command_line(proxy.port, "app", "secret", &[], "SELECT @@port")?,
        &format!("{one}\n"),
        "its server",
    )?;
    let admin = |sql: &str| command_line(proxy.admin_port, "admin", "admin", &[], sql);
    same(
        &admin("SELECT hostgroup_id, port FROM runtime_mysql_servers ORDER BY 1")?,
        &format!("0\t{one}\n1\t{other}\n"),
        "the rows",
    )?;
    same(
        &admin(
            "SELECT variable_value FROM global_variables WHERE variable_name = 'mysql-threads'",
        )?,
        &"2\n".to_owned(),
        "a variable",
    )?;
    let version = command_line(one, "app", "secret", &[], "SELECT VERSION()")?;
    let claimed = admin(
        "SELECT variable_value FROM global_variables WHERE variable_name = 'mysql-server_version'",
    )?;
    expect(claimed.contains(version.trim()), || {
        format!("the version: {claimed} and {version}")
    })?;
    proxy.process.signal("TERM");
    expect(proxy.process.wait(HANGS).is_some(), || {
        "it does not end".to_owned()
    })?;
    let log = fs::read_to_string(proxy.folder.path().join("log")).unwrap_or_default();
    expect(log.contains("--log-level: it has no effect here"), || log)
}

/// A server that is down is no matter as long as another is there; then it is said.
fn the_next_server(driver: Driver) -> Outcome {
    let mut servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(CREATE_USER)?;
    }
    let proxy = started(driver, &[&servers[0], &servers[1]], &[])?;
    let asks = || command_line(proxy.port, "app", "secret", &[], "SELECT @@port");
    // Two at once are spread.
    let mut one = log_in(&proxy)?;
    let mut other = log_in(&proxy)?;
    let port = |raw: &mut Raw| asked(raw, "SELECT @@port");
    let both = [port(&mut one)?, port(&mut other)?];
    expect(both[0] != both[1], || format!("both are at {both:?}"))?;
    servers[0].kill();
    for _ in 0..3 {
        same(
            &asks()?,
            &format!("{}\n", servers[1].port),
            "the other server",
        )?;
    }
    servers[1].kill();
    let refused = asks();
    expect(
        refused.as_ref().is_err_and(|words| {
            words.contains("1105") && words.contains("(proxy) all backends are down")
        }),
        || format!("{refused:?}"),
    )?;
    // Those who were there hear that it is gone.
    let lost = one.ask("SELECT 1");
    expect(lost.is_err(), || format!("{lost:?}"))?;
    servers[0].restart()?;
    let back = || Ok(asks().is_ok().to_string());
    soon("true", back)
}

/// With a row in `mysql_users` logins are checked here; without one, there again.
fn rows_of_users(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = started(driver, &[&server], &[])?;
    let asks = |user: &str, password: &str| {
        command_line(proxy.port, user, password, &[], "SELECT CURRENT_USER()")
    };
    asks("other", "geheim")?;
    proxy.admin("INSERT INTO mysql_users (username, password) VALUES ('app', 'secret'); LOAD MYSQL USERS TO RUNTIME")?;
    same(
        &asks("app", "secret")?,
        &"app@%\n".to_owned(),
        "a user of ours",
    )?;
    let refused = asks("other", "geheim");
    expect(
        refused
            .as_ref()
            .is_err_and(|words| words.contains("ProxySQL Error")),
        || format!("{refused:?}"),
    )?;
    proxy.admin("DELETE FROM mysql_users; LOAD MYSQL USERS TO RUNTIME")?;
    same(
        &asks("other", "geheim")?,
        &"other@%\n".to_owned(),
        "a user of the server's",
    )?;
    proxy.admin("SET mysql-relay_logins = false; LOAD MYSQL VARIABLES TO RUNTIME")?;
    expect(asks("other", "geheim").is_err(), || {
        "he is let in by nobody".to_owned()
    })
}
