//! Life of the process: programs of the scheduler, STOP and START, flags of an existing unit file, a
//! supervisor, cores that hang, and what balancers and systemd hear of all that.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use conformance::by_hand::{self, Raw};
use conformance::process::{TempFolder, free_port, output};
use conformance::proxy::{Driver, Proxy, Wish, command_line, program};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon, until};
use conformance::watch::HANGS;

type Outcome = Result<(), String>;

fn main() {
    trials::run_on(
        &[Driver::Epoll],
        &[
            (
                "programs_of_the_scheduler_run_and_end_with_the_proxy",
                scheduled,
            ),
            ("stop_ends_all_clients_and_start_serves_again", stopped),
            (
                "shutdown_waits_for_what_is_open_and_kill_does_not",
                shut_down,
            ),
            ("no_start_lets_nobody_in_until_start", not_started),
            ("health_says_why_there_should_be_no_clients", health),
            (
                "who_crashes_in_the_background_is_begun_again_at_once",
                begun_again,
            ),
            (
                "without_its_supervisor_the_proxy_ends_as_if_told_to",
                orphaned,
            ),
            (
                "a_core_that_hangs_is_named_and_ends_the_process_if_so_wished",
                hanging,
            ),
            ("systemd_hears_of_ready_alive_and_stopping", notified),
            ("flags_of_existing_unit_files_are_taken", flags),
        ],
    )
}

fn one(driver: Driver, flags: &[&str]) -> Result<(Server, Proxy), String> {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    wish.flags = flags.iter().map(ToString::to_string).collect();
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

fn words(error: impl ToString) -> String {
    error.to_string()
}

fn scheduled(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver, &[])?;
    let script = proxy.data().join("program");
    let (out, pid) = (proxy.data().join("out"), proxy.data().join("sleeps"));
    let text = format!(
        "#!/bin/sh\necho said $1\nreadlink /proc/self/fd/* > {}\nls /proc/self/fd > {}.numbers\nexit 2\n",
        out.display(),
        out.display()
    );
    fs::write(&script, text).map_err(words)?;
    output(Command::new("chmod").arg("755").arg(&script), HANGS)?;
    proxy.admin(&format!(
        "INSERT INTO scheduler (id, interval_ms, filename, arg1) VALUES (1, 100, '{}', 'hello'); \
         INSERT INTO scheduler (id, interval_ms, filename, arg1, arg2) VALUES (2, 100, '/bin/sh', '-c', 'echo $$ > {}; exec sleep 600'); \
         LOAD SCHEDULER TO RUNTIME",
        script.display(),
        pid.display()
    ))?;
    until("1", || {
        proxy.admin(
            "SELECT count(*) >= 3 FROM stats_millrace_scheduler WHERE id = 1 AND exit_code = 2",
        )
    })?;
    expect(proxy.says("scheduler 1: said hello"), || proxy.log())?;
    expect(proxy.says("program ended with code 2"), || proxy.log())?;
    // Nothing that the proxy has open: 0, 1, 2 and what the program opens itself.
    let open = fs::read_to_string(out.with_extension("numbers")).map_err(words)?;
    let mut numbers: Vec<u32> = open.lines().filter_map(|line| line.parse().ok()).collect();
    numbers.sort_unstable();
    same(&format!("{numbers:?}"), "[0, 1, 2, 3]")?;
    // A row does not overlap itself.
    until("1", || {
        proxy.admin("SELECT count(*) FROM stats_millrace_scheduler WHERE id = 2 AND ms IS NULL")
    })?;
    let sleeps = fs::read_to_string(&pid).map_err(words)?;
    expect(proxy.terminate(HANGS), || "it goes on".to_owned())?;
    let gone = || Ok((!Path::new("/proc").join(sleeps.trim()).exists()).to_string());
    soon("true", gone)
}

fn stopped(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, &[])?;
    let mut idle = Raw::log_in(proxy.port).map_err(words)?;
    let mut busy = Raw::log_in(proxy.port).map_err(words)?;
    busy.ask("BEGIN").map_err(words)?;
    let asks = thread::spawn(move || busy.ask("SELECT SLEEP(600)"));
    until("1", || {
        proxy.admin("SELECT count(*) FROM stats_mysql_processlist WHERE info LIKE 'SELECT SLEEP%'")
    })?;
    // One with nothing between its sockets.
    proxy.admin("UPDATE mysql_users SET fast_forward = 1; LOAD MYSQL USERS TO RUNTIME")?;
    let mut through = Raw::log_in(proxy.port).map_err(words)?;
    through.ask("SELECT 1").map_err(words)?;
    proxy.admin("PROXYSQL STOP")?;
    expect(through.ask("SELECT 1").is_err(), || {
        "a client that goes through is served".into()
    })?;
    expect(idle.ask("SELECT 1").is_err(), || {
        "the idle client is served".into()
    })?;
    expect(asks.join().is_ok_and(|said| said.is_err()), || {
        "the busy client has an answer".into()
    })?;
    until("0", || {
        proxy.admin("SELECT count(*) FROM stats_mysql_processlist")
    })?;
    expect(
        TcpStream::connect(("127.0.0.1", proxy.port)).is_err(),
        || "somebody listens".into(),
    )?;
    for (verb, why) in [
        ("STOP", "already stopped"),
        ("PAUSE", "not running, impossible to pause"),
        ("RESUME", "not running, impossible to resume"),
    ] {
        let said = proxy.admin(&format!("PROXYSQL {verb}"));
        expect(
            said.as_ref().is_err_and(|words| words.contains(why)),
            || format!("{verb}: {said:?}"),
        )?;
    }
    // What is loaded meanwhile is in force then.
    proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, OK_msg) VALUES (1, 1, '^DO', 'fine'); LOAD MYSQL QUERY RULES TO RUNTIME; PROXYSQL START")?;
    until("1", || proxy.query("SELECT 1"))?;
    let said = proxy.admin("PROXYSQL START");
    expect(
        said.as_ref()
            .is_err_and(|words| words.contains("already started")),
        || format!("{said:?}"),
    )?;
    let mut client = Raw::log_in(proxy.port).map_err(words)?;
    proxy.admin("PROXYSQL RESTART")?;
    expect(client.ask("SELECT 1").is_err(), || {
        "it is served over a restart".into()
    })?;
    until("1", || proxy.query("SELECT 1"))
}

fn shut_down(driver: Driver) -> Outcome {
    for verb in ["SHUTDOWN", "SHUTDOWN SLOW", "KILL"] {
        let (_server, mut proxy) = one(driver, &[])?;
        let mut busy = Raw::log_in(proxy.port).map_err(words)?;
        busy.ask("BEGIN").map_err(words)?;
        // Its answer may be lost with the process.
        let said = proxy.admin(&format!("PROXYSQL {verb}"));
        if verb == "KILL" {
            soon("false", || Ok(proxy.runs().to_string()))?;
            continue;
        }
        said?;
        thread::sleep(Duration::from_millis(300));
        expect(proxy.runs(), || format!("{verb} does not wait"))?;
        busy.ask("SELECT 1")
            .map_err(|error| format!("{verb}: {error}"))?;
        busy.ask("COMMIT")
            .map_err(|error| format!("{verb}: {error}"))?;
        soon("false", || Ok(proxy.runs().to_string()))?;
    }
    Ok(())
}

fn not_started(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let folder = TempFolder::new("not-started").map_err(words)?;
    let (port, admin) = (free_port().map_err(words)?, free_port().map_err(words)?);
    let text = configuration(folder.path(), port, admin, server.port, "", "");
    let mut child = foreground(
        driver,
        folder.path(),
        &text,
        &["--no-start", "-S", "admin.sock"],
    )?;
    let outcome = (|| {
        let ask = |sql: &str| command_line(admin, "admin", "admin", &[], sql);
        soon("1", || {
            Ok(ask("SELECT 1").unwrap_or_default().trim().to_owned())
        })?;
        expect(TcpStream::connect(("127.0.0.1", port)).is_err(), || {
            "somebody listens".into()
        })?;
        expect(folder.path().join("admin.sock").exists(), || {
            "no socket for operators".into()
        })?;
        ask("PROXYSQL START")?;
        soon("7", || {
            let said = command_line(port, "app", "secret", &[], "SELECT 7");
            Ok(said.unwrap_or_default().trim().to_owned())
        })
    })();
    child.kill().map_err(words)?;
    child.wait().map_err(words)?;
    outcome
}

/// Status and words of an answer.
fn http(port: u16, path: &str) -> Result<String, String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(words)?;
    stream.set_read_timeout(Some(HANGS)).map_err(words)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").map_err(words)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(words)?;
    let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
    let said = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    Ok(format!("{status} {}", said.trim()))
}

fn health(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver, &[])?;
    let port = free_port().map_err(words)?;
    proxy.admin(&format!(
        "SET admin-health_port = {port}; SAVE ADMIN VARIABLES TO DISK; SET mysql-shutdown_deadline_ms = 600000; \
         LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK"
    ))?;
    proxy.restart()?;
    let ready = |wanted: &str| soon(wanted, || http(port, "/ready"));
    let fine = "200 1 of 1 servers of the users' default hostgroups serve";
    ready(fine)?;
    same(&http(port, "/live")?, "200 2 cores answer")?;
    same(&http(port, "/healthz")?, "200 2 cores answer")?;
    same(&http(port, "/readyz")?, &http(port, "/ready")?)?;
    expect(http(port, "/")?.starts_with("404"), || "no 404".into())?;
    proxy.admin("PROXYSQL PAUSE")?;
    ready("503 PROXYSQL PAUSE: no new clients")?;
    proxy.admin("PROXYSQL RESUME")?;
    ready(fine)?;
    proxy
        .admin("UPDATE mysql_servers SET status = 'OFFLINE_SOFT'; LOAD MYSQL SERVERS TO RUNTIME")?;
    ready("503 none of the 1 servers of the users' default hostgroups serves")?;
    proxy.admin("UPDATE mysql_servers SET status = 'ONLINE'; LOAD MYSQL SERVERS TO RUNTIME")?;
    ready(fine)?;
    proxy.admin("PROXYSQL STOP")?;
    ready("503 no clients until PROXYSQL START")?;
    proxy.admin("PROXYSQL START")?;
    ready(fine)?;
    // A client with a transaction holds up the end.
    let mut client = Raw::log_in(proxy.port).map_err(words)?;
    client.ask("BEGIN").map_err(words)?;
    proxy.admin("PROXYSQL SHUTDOWN")?;
    ready("503 the proxy is about to end")?;
    same(&http(port, "/live")?, "200 2 cores answer")?;
    drop(client);
    expect(proxy.terminate(HANGS), || "it goes on".to_owned())
}

fn configuration(
    folder: &Path,
    port: u16,
    admin: u16,
    server: u16,
    more: &str,
    variables: &str,
) -> String {
    format!(
        "datadir = \"{}\"\n{more}\n\
         admin_variables = {{ mysql_ifaces = \"127.0.0.1:{admin}\" {variables} }}\n\
         mysql_variables = {{ threads = 2 interfaces = \"127.0.0.1:{port}\" monitor_enabled = false }}\n\
         mysql_servers = ( {{ address = \"127.0.0.1\" port = {server} }} )\n\
         mysql_users = ( {{ username = \"app\" password = \"secret\" }} )\n",
        folder.display()
    )
}

fn foreground(
    driver: Driver,
    folder: &Path,
    text: &str,
    flags: &[&str],
) -> Result<std::process::Child, String> {
    let file = folder.join("proxysql.cnf");
    fs::write(&file, text).map_err(words)?;
    let log = fs::File::create(folder.join("log")).map_err(words)?;
    Command::new(program()?)
        .args(["-f", "--io-driver", &driver.to_string(), "-c"])
        .arg(&file)
        .args(flags)
        .current_dir(folder)
        .env("NOTIFY_SOCKET", folder.join("notify"))
        .env("WATCHDOG_USEC", "1000000")
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(words)
}

/// Waits until a rule is in the file that a crash has read.
fn is_kept(file: &Path) -> Outcome {
    let sql = "SELECT count(*) FROM mysql_query_rules";
    let script = format!(
        "import sqlite3, sys\nprint(*sqlite3.connect(sys.argv[1]).execute('{sql}').fetchone())"
    );
    soon("1", || {
        let mut look = Command::new("python3");
        look.args(["-c", &script]).arg(file);
        Ok(output(&mut look, HANGS)?.1.trim().to_owned())
    })
}

fn begun_again(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let folder = TempFolder::new("behind").map_err(words)?;
    let at = |name: &str| folder.path().join(name);
    let (port, admin) = (free_port().map_err(words)?, free_port().map_err(words)?);
    fs::write(
        at("failed.sh"),
        format!("#!/bin/sh\necho x >> {}\n", at("failed").display()),
    )
    .map_err(words)?;
    output(Command::new("chmod").arg("755").arg(at("failed.sh")), HANGS)?;
    let more = format!(
        "execute_on_exit_failure = \"{}\"",
        at("failed.sh").display()
    );
    let text = configuration(folder.path(), port, admin, server.port, &more, "");
    fs::write(at("proxysql.cnf"), text).map_err(words)?;
    let mut start = Command::new(program()?);
    start.args(["--idle-threads", "--io-driver", &driver.to_string(), "-c"]);
    let (fine, said) = output(start.arg(at("proxysql.cnf")), HANGS * 4)?;
    let log = || fs::read_to_string(at("millrace.log")).unwrap_or_default();
    expect(fine, || format!("{said}\n{}", log()))?;
    let read = |name: &str| fs::read_to_string(at(name)).map(|text| text.trim().to_owned());
    let supervisor = read("millrace.pid").map_err(words)?;
    let signal = |name: &str, id: &str| output(Command::new("kill").args([name, id]), HANGS);
    let outcome = (|| {
        same(&command_line(port, "app", "secret", &[], "SELECT 7")?, "7")?;
        let serves = read("millrace.lock").map_err(words)?;
        expect(serves != supervisor, || "nobody supervises".into())?;
        // What is loaded and not saved is in force again.
        let ask = |sql: &str| command_line(admin, "admin", "admin", &[], sql);
        ask(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, OK_msg) VALUES (1, 1, '^DO', 'fine'); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        is_kept(&at("millrace_runtime.db"))?;
        signal("-9", &serves)?;
        soon("7", || {
            let said = command_line(port, "app", "secret", &[], "SELECT 7");
            Ok(said.unwrap_or_default().trim().to_owned())
        })?;
        expect(read("millrace.lock").map_err(words)? != serves, || {
            "the same process".into()
        })?;
        same(&read("millrace.pid").map_err(words)?, &supervisor)?;
        same(&ask("SELECT rule_id FROM runtime_mysql_query_rules")?, "1")?;
        same(&ask("SELECT count(*) FROM disk.mysql_query_rules")?, "0")?;
        soon("x", || Ok(read("failed").unwrap_or_default()))?;
        let said = log();
        expect(said.contains("was ended by signal 9"), || said.clone())
    })();
    let serves = read("millrace.lock").map_err(words)?;
    // Whoever is told to end is the supervisor; both are gone then, and so is the file.
    signal("-TERM", &supervisor)?;
    let gone = || {
        let is_gone = !at("millrace.pid").exists()
            && !Path::new("/proc").join(&supervisor).join("exe").exists()
            && !Path::new("/proc").join(&serves).join("exe").exists();
        Ok(is_gone.to_string())
    };
    let ended = soon("true", gone);
    outcome.and(ended)
}

/// Stops one thread of a process for so many seconds, as nothing but a debugger can.
const STOPS: &str = "\
import ctypes, sys, time
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes, ptrace.restype = [ctypes.c_long] * 4, ctypes.c_long
(seize, interrupt), thread = (0x4206, 0x4207), int(sys.argv[1])
if ptrace(seize, thread, 0, 0) or ptrace(interrupt, thread, 0, 0):
    sys.exit('a debugger is not allowed here')
time.sleep(float(sys.argv[2]))
";

fn hanging(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let folder = TempFolder::new("hanging").map_err(words)?;
    let at = |name: &str| folder.path().join(name);
    let (port, admin) = (free_port().map_err(words)?, free_port().map_err(words)?);
    let more = "restart_on_missing_heartbeats = 4";
    let text = configuration(
        folder.path(),
        port,
        admin,
        server.port,
        more,
        "watchdog_ms = 1000",
    );
    let mut child = foreground(driver, folder.path(), &text, &[])?;
    let log = || fs::read_to_string(at("log")).unwrap_or_default();
    let says = |wanted: &str| {
        soon("true", || Ok(log().contains(wanted).to_string()))
            .map_err(|error| format!("{wanted}: {error}\n{}", log()))
    };
    let outcome = (|| {
        soon("7", || {
            let said = command_line(port, "app", "secret", &[], "SELECT 7");
            Ok(said.unwrap_or_default().trim().to_owned())
        })?;
        let tasks = Path::new("/proc").join(child.id().to_string()).join("task");
        let thread = fs::read_dir(tasks).map_err(words)?.flatten().find(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "core 0")
        });
        let thread = thread.ok_or("there is no core 0")?.file_name();
        let stop = |seconds: &str| {
            let mut python = Command::new("python3");
            python.args(["-c", STOPS]).arg(&thread).arg(seconds);
            output(&mut python, HANGS).and_then(|(fine, said)| expect(fine, || said))
        };
        stop("2")?;
        says("core 0 has served nobody for")?;
        says("core 0 turns again, after")?;
        expect(child.try_wait().map_err(words)?.is_none(), || {
            "it is gone".into()
        })?;
        stop("7")?;
        says("heartbeats missed, and restart_on_missing_heartbeats is 4")?;
        soon("true", || {
            Ok(child.try_wait().map_err(words)?.is_some().to_string())
        })
    })();
    let _gone = child.kill();
    let ended = child.wait().map_err(words)?;
    outcome?;
    let is_aborted = std::os::unix::process::ExitStatusExt::signal(&ended) == Some(6);
    expect(is_aborted, || format!("{ended}"))?;
    let reports = fs::read_dir(folder.path()).map_err(words)?.flatten();
    let count = reports
        .filter(|file| file.file_name().to_string_lossy().starts_with("crash-"))
        .count();
    same(&count.to_string(), "1")
}

fn orphaned(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let folder = TempFolder::new("orphaned").map_err(words)?;
    let at = |name: &str| folder.path().join(name);
    let (port, admin) = (free_port().map_err(words)?, free_port().map_err(words)?);
    let text = configuration(folder.path(), port, admin, server.port, "", "");
    fs::write(at("proxysql.cnf"), text).map_err(words)?;
    let mut start = Command::new(program()?);
    start.args(["--io-driver", &driver.to_string(), "-c"]);
    let (fine, said) = output(start.arg(at("proxysql.cnf")), HANGS * 4)?;
    expect(fine, || said)?;
    let supervisor = fs::read_to_string(at("millrace.pid")).map_err(words)?;
    output(Command::new("kill").args(["-9", supervisor.trim()]), HANGS)?;
    soon("true", || Ok((!at("millrace.pid").exists()).to_string()))
}

fn notified(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let folder = TempFolder::new("notified").map_err(words)?;
    let (port, admin) = (free_port().map_err(words)?, free_port().map_err(words)?);
    let socket = UnixDatagram::bind(folder.path().join("notify")).map_err(words)?;
    socket.set_read_timeout(Some(HANGS)).map_err(words)?;
    let hears = |wanted: &str| {
        let mut bytes = [0; 64];
        loop {
            let n = socket
                .recv(&mut bytes)
                .map_err(|error| format!("{wanted}: {error}"))?;
            if bytes[..n] == *wanted.as_bytes() {
                return Ok::<(), String>(());
            }
        }
    };
    let text = configuration(
        folder.path(),
        port,
        admin,
        server.port,
        "",
        "watchdog_ms = 300",
    );
    let mut child = foreground(driver, folder.path(), &text, &[])?;
    let outcome = (|| {
        hears("READY=1")?;
        same(&command_line(port, "app", "secret", &[], "SELECT 7")?, "7")?;
        hears("WATCHDOG=1")?;
        let id = child.id().to_string();
        output(Command::new("kill").args(["-TERM", &id]), HANGS)?;
        hears("STOPPING=1")
    })();
    thread::sleep(Duration::from_millis(100));
    let _ended = child.kill();
    child.wait().map_err(words)?;
    outcome
}

fn flags(driver: Driver) -> Outcome {
    let uuid = "8a3f1c9e-5d2b-4f6a-9c0d-7e1b2a3c4d5e";
    let all = [
        "-M",
        "-r",
        "-e",
        "--idle-threads",
        "--no-version-check",
        "-U",
        uuid,
    ];
    let (server, proxy) = one(driver, &all)?;
    same(&proxy.query("SELECT 7")?, "7")?;
    same(&proxy.admin("SELECT @@millrace_uuid")?, uuid)?;
    proxy.admin("SET mysql-monitor_ping_interval = 100; SET mysql-monitor_enabled = 'true'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    // Another serves clients of the same port, with data of its own.
    let folder = TempFolder::new("shared-port").map_err(words)?;
    let admin = free_port().map_err(words)?;
    let text = configuration(folder.path(), proxy.port, admin, server.port, "", "");
    let mut other = foreground(driver, folder.path(), &text, &["-r"])?;
    let serves = soon("1", || {
        let said = command_line(admin, "admin", "admin", &[], "SELECT 1");
        Ok(said.unwrap_or_default().trim().to_owned())
    });
    other.kill().map_err(words)?;
    other.wait().map_err(words)?;
    serves?;
    // Nothing is asked of a server, though the variable is on since a while.
    let pings = "SELECT count(*) FROM monitor.mysql_server_ping_log";
    same(&proxy.admin(pings)?, "0")?;
    for line in [
        "--idle-threads has no effect",
        "--no-version-check has no effect",
    ] {
        expect(proxy.says(line), || proxy.log())?;
    }
    Ok(())
}
