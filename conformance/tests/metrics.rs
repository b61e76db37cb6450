//! Metrics and histories in front of a real server, read by a real Prometheus.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::process::{Process, TempFolder, free_port, output};
use conformance::proxy::{Driver, Proxy, command_line};
use conformance::servers::{Vendor, in_path};
use conformance::trials::{self, expect, soon};
use conformance::watch::HANGS;

use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("a_load_turns_the_metrics_on_and_off", switched),
        ("a_scrape_waits_for_no_operator", beside_an_operator),
        ("what_was_done_is_what_the_metrics_say", counted),
        ("prometheus_has_a_series_for_each_panel_of_the_board", board),
        ("every_history_has_samples", histories),
        ("programs_of_restapi_routes_answer_requests", programs),
    ])
}

/// Answer to a GET: its head, and its body.
fn get(port: u16, path: &str, accept: &str) -> Result<(String, String), String> {
    let words = |error: std::io::Error| format!("GET {path}: {error}");
    let mut socket = TcpStream::connect(("127.0.0.1", port)).map_err(words)?;
    socket.set_read_timeout(Some(HANGS)).map_err(words)?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
    socket.write_all(request.as_bytes()).map_err(words)?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).map_err(words)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
    Ok((head.to_owned(), body.to_owned()))
}

/// Has the metrics served, and tells where.
fn switch_on(proxy: &Proxy) -> Result<u16, String> {
    let port = free_port().map_err(|error| error.to_string())?;
    proxy.admin(&format!(
        "SET admin-restapi_port = {port}; SET admin-restapi_enabled = 'true'; \
         LOAD ADMIN VARIABLES TO RUNTIME"
    ))?;
    soon("true", || {
        Ok(TcpStream::connect(("127.0.0.1", port)).is_ok().to_string())
    })?;
    Ok(port)
}

/// The number behind a sample, if there is one.
fn value(text: &str, sample: &str) -> Option<f64> {
    let of = |line: &str| line.strip_prefix(sample)?.trim().parse().ok();
    text.lines().find_map(of)
}

fn switched(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let port = switch_on(&proxy)?;
    let (head, text) = get(port, "/metrics", "*/*")?;
    expect(head.contains("text/plain; version=0.0.4"), || head.clone())?;
    expect(text.contains("\nproxysql_uptime_seconds_total "), || {
        text.clone()
    })?;
    let (head, text) = get(
        port,
        "/metrics",
        "application/openmetrics-text; version=1.0.0",
    )?;
    expect(head.contains("application/openmetrics-text"), || {
        head.clone()
    })?;
    expect(text.ends_with("# EOF\n"), || text.clone())?;
    let (head, _) = get(port, "/other", "*/*")?;
    expect(head.starts_with("HTTP/1.0 404"), || head.clone())?;
    let memory = "SELECT min(Variable_Value > 0), count(*) FROM stats_memory_metrics \
                  WHERE Variable_Name IN ('jemalloc_allocated', 'jemalloc_resident')";
    let said = proxy.admin(memory)?;
    expect(said.trim() == "1\t2", || said.clone())?;
    let said = proxy.admin("SHOW PROMETHEUS METRICS")?;
    expect(said.contains("proxysql_uptime_seconds_total"), || {
        said.clone()
    })?;
    proxy.admin("SET admin-restapi_enabled = 'false'; LOAD ADMIN VARIABLES TO RUNTIME")?;
    soon("false", || {
        Ok(TcpStream::connect(("127.0.0.1", port)).is_ok().to_string())
    })
}

fn beside_an_operator(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let (port, admin) = (switch_on(&proxy)?, proxy.admin_port);
    let long = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1000000000) \
                SELECT count(*) FROM c";
    let operator = thread::spawn(move || command_line(admin, "admin", "admin", &[], long));
    // While that runs, nobody else is answered on the admin port.
    thread::sleep(Duration::from_secs(1));
    let (_, text) = get(port, "/metrics", "*/*")?;
    expect(value(&text, "proxysql_questions_total").is_some(), || text)?;
    expect(!operator.is_finished(), || {
        "the operator's statement was too quick for this test".into()
    })?;
    drop(proxy);
    let said = operator.join().map_err(|_| "the operator has panicked")?;
    expect(said.is_err(), || format!("{said:?}"))
}

fn counted(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let port = switch_on(&proxy)?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    for _ in 0..20 {
        client.ask("SELECT 1").map_err(|error| error.to_string())?;
    }
    drop(client.ask("SELECT no_such_column"));
    let (_, text) = get(port, "/metrics", "*/*")?;
    let endpoint = format!("hostgroup=\"0\",endpoint=\"127.0.0.1:{}\"", server.port);
    let number = |sample: &str| value(&text, sample).ok_or_else(|| format!("no {sample}: {text}"));
    let queries = number(&format!(
        "proxysql_connpool_conns_queries_total{{{endpoint}}}"
    ))?;
    expect(queries >= 21.0, || format!("{queries} queries"))?;
    let status = number(&format!("proxysql_connpool_conns_status{{{endpoint}}}"))?;
    expect(status == 1.0, || format!("status {status}"))?;
    let errors = format!(
        "mysql_error_total{{hostgroup=\"0\",address=\"127.0.0.1\",port=\"{}\",code=\"1054\"}}",
        server.port
    );
    expect(number(&errors)? == 1.0, || text.clone())?;
    let selects = number("millrace_command_latency_seconds_count{command=\"SELECT\"}")?;
    expect(selects >= 21.0, || format!("{selects} selects"))?;
    let digest = text.lines().find(|line| {
        line.starts_with("millrace_digest_statements") && line.contains("digest_text=\"SELECT ?\"")
    });
    expect(digest.is_some_and(|line| line.ends_with(" 20")), || {
        text.clone()
    })?;
    lint(&text)
}

/// Complaints of `promtool` are allowed for ProxySQL's own names alone.
fn lint(text: &str) -> Outcome {
    let promtool = in_path("promtool").ok_or("there is no promtool: scripts/setup.sh test")?;
    let words = |error: std::io::Error| error.to_string();
    let mut tool = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(words)?;
    let mut input = tool.stdin.take().ok_or("no input")?;
    input.write_all(text.as_bytes()).map_err(words)?;
    drop(input);
    let said = tool.wait_with_output().map_err(words)?;
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let ours = said.lines().find(|line| {
        !line.starts_with("proxysql_") && !line.contains("_us ") && !line.contains("_ms ")
    });
    expect(ours.is_none(), || said.clone())
}

/// A Prometheus that scrapes a proxy each second. Dropping it kills it.
struct Prometheus {
    port: u16,
    _process: Process,
    _folder: TempFolder,
}

impl Prometheus {
    fn of(metrics: u16) -> Result<Self, String> {
        let program =
            in_path("prometheus").ok_or("there is no prometheus: scripts/setup.sh test")?;
        let words = |error: std::io::Error| error.to_string();
        let (folder, port) = (
            TempFolder::new("prometheus").map_err(words)?,
            free_port().map_err(words)?,
        );
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: [ {} ]\n\
             scrape_configs:\n- job_name: millrace\n  static_configs:\n  - targets: [ '127.0.0.1:{metrics}' ]\n",
            etc("prometheus/alerts.yml").display()
        );
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("prometheus.yml"), config).map_err(words)?;
        let arguments = [
            format!("--config.file={}", at("prometheus.yml")),
            format!("--storage.tsdb.path={}", at("data")),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        let process =
            Process::start(&program, &arguments, &folder.path().join("log")).map_err(words)?;
        soon("true", || {
            Ok(get(port, "/-/ready", "*/*")
                .is_ok_and(|(head, _)| head.contains(" 200 "))
                .to_string())
        })?;
        Ok(Self {
            port,
            _process: process,
            _folder: folder,
        })
    }

    fn ask(&self, path: &str) -> Result<Value, String> {
        let (_, body) = get(self.port, path, "*/*")?;
        serde_json::from_str(&body).map_err(|error| format!("{path}: {error}: {body}"))
    }

    /// How many series an expression has.
    fn series(&self, expression: &str) -> Result<usize, String> {
        let encoded: String = expression
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        let answer = self.ask(&format!("/api/v1/query?query={encoded}"))?;
        let result = answer["data"]["result"].as_array();
        result
            .map(Vec::len)
            .ok_or_else(|| format!("{expression}: {answer}"))
    }
}

fn etc(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../etc")
        .join(name)
}

fn board(driver: Driver) -> Outcome {
    let rules = etc("prometheus/alerts.yml").display().to_string();
    let promtool = in_path("promtool").ok_or("there is no promtool: scripts/setup.sh test")?;
    let (fine, said) = output(
        Command::new(promtool).args(["check", "rules", &rules]),
        HANGS,
    )?;
    expect(fine, || said)?;
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "SET mysql-monitor_enabled = 'true'; SET mysql-monitor_ping_interval = 200; \
         LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let prometheus = Prometheus::of(switch_on(&proxy)?)?;
    let text =
        fs::read_to_string(etc("grafana/millrace.json")).map_err(|error| error.to_string())?;
    let board: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let panels = board["panels"].as_array().ok_or("no panels")?;
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let expressions: Vec<_> = targets
        .filter_map(|target| target["expr"].as_str())
        .map(|one| {
            one.replace("$instance", ".*")
                .replace("$__rate_interval", "10s")
        })
        .collect();
    expect(expressions.len() > 15, || "the board is empty".into())?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    for expression in &expressions {
        soon("true", || {
            // Somebody who holds a connection, and whose statements fail.
            for sql in ["BEGIN", "SELECT 1", "SELECT no_such_column"] {
                drop(client.ask(sql));
            }
            thread::sleep(Duration::from_millis(50));
            Ok((prometheus.series(expression)? > 0).to_string())
        })
        .map_err(|words| format!("{expression}: {words}"))?;
    }
    let fires = prometheus.ask("/api/v1/alerts")?;
    let fires = fires["data"]["alerts"].as_array().ok_or("no alerts")?;
    expect(fires.is_empty(), || {
        format!("all is well, and there are alerts: {fires:?}")
    })?;
    let evaluated = prometheus.ask("/api/v1/rules")?.to_string();
    expect(evaluated.contains("MillraceServerDown"), || {
        evaluated.clone()
    })?;
    expect(!evaluated.contains("\"health\":\"err\""), || {
        evaluated.clone()
    })
}

fn histories(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.query("SELECT 1")?;
    let intervals = [
        "stats_mysql_connections",
        "stats_mysql_connection_pool",
        "stats_mysql_query_cache",
        "stats_system_cpu",
        "stats_system_memory",
    ];
    let set = intervals
        .map(|name| format!("SET admin-{name} = 1;"))
        .concat();
    proxy.admin(&format!("{set} LOAD ADMIN VARIABLES TO RUNTIME"))?;
    for table in [
        "mysql_connections",
        "myhgm_connections",
        "history_mysql_status_variables",
        "history_mysql_status_variables_lookup",
        "history_stats_mysql_connection_pool",
        "mysql_query_cache",
        "system_cpu",
        "system_memory",
    ] {
        soon("1", || {
            let sql = format!("SELECT count(*) > 0 FROM stats_history.{table}");
            Ok(proxy.admin(&sql)?.trim().to_owned())
        })
        .map_err(|words| format!("{table}: {words}"))?;
    }
    let questions = "SELECT max(Questions) > 0 FROM stats_history.mysql_connections";
    soon("1", || Ok(proxy.admin(questions)?.trim().to_owned()))
}

/// Status and body of the answer to a request.
fn asked(port: u16, head: &str, body: &str) -> Result<(u16, String), String> {
    let words = |error: std::io::Error| format!("{head}: {error}");
    let mut socket = TcpStream::connect(("127.0.0.1", port)).map_err(words)?;
    socket.set_read_timeout(Some(HANGS)).map_err(words)?;
    let request = format!(
        "{head}\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).map_err(words)?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).map_err(words)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Ok((status.ok_or("no status")?, body.to_owned()))
}

/// A program that says its argument in an object, or what its argument asks for.
const PROGRAM: &str = "#!/bin/sh\ncase \"$1\" in *fail*) exit 3;; *sleep*) sleep 100;; *words*) echo words;; \
                       *) echo \"{\\\"got\\\": $1}\";; esac\n";

fn programs(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let port = switch_on(&proxy)?;
    let program = proxy.data().join("program.sh");
    fs::write(&program, PROGRAM).map_err(|error| error.to_string())?;
    let path = program.display();
    let said = proxy.admin(&format!(
        "INSERT INTO restapi_routes (active, timeout_ms, method, uri, script) VALUES \
         (1, 1500, 'GET', 'a/b', '{path}'), (1, 1500, 'POST', 'a/b', '{path}'), (0, 1500, 'GET', 'off', '{path}'); \
         LOAD RESTAPI TO RUNTIME; SELECT count(*) FROM runtime_restapi_routes"
    ))?;
    expect(said.trim() == "3", || said.clone())?;
    let get = |query: &str| asked(port, &format!("GET /sync/a/b{query} HTTP/1.0"), "");
    // It is no program yet.
    let (status, body) = get("")?;
    expect(status == 424 && body.contains("could not be begun"), || {
        body
    })?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).map_err(|error| error.to_string())?;
    let (status, body) = get("?x=1&y=it%27s+%22so%22")?;
    let wanted = r#"{"got": {"x":"1","y":"it's \"so\""}}"#;
    expect(status == 200 && body.trim() == wanted, || body)?;
    let post = |body: &str| asked(port, "POST /sync/a/b HTTP/1.0", body);
    expect(post("[1, 2]")?.1.trim() == "{\"got\": [1, 2]}", || {
        "a POST".to_owned()
    })?;
    for (answer, wanted, words) in [
        (post("no JSON")?, 400, "no JSON"),
        (post(&"1".repeat(70 << 10))?, 413, "64 KiB"),
        (get("?fail")?, 424, "exit status: 3"),
        (get("?words")?, 424, "no JSON"),
        (
            asked(port, "GET /sync/off HTTP/1.0", "")?,
            404,
            "no active row",
        ),
        (
            asked(port, "GET /sync/a/b HTTP/1.0\r\nOrigin: https://x", "")?,
            403,
            "a page",
        ),
    ] {
        expect(answer.0 == wanted && answer.1.contains(words), || {
            format!("{answer:?}")
        })?;
    }
    // One that takes too long is ended, and holds up no scrape.
    let slow = thread::spawn(move || asked(port, "GET /sync/a/b?sleep HTTP/1.0", ""));
    get("")?;
    let (status, body) = slow.join().map_err(|_| "the request has panicked")??;
    expect(
        status == 424 && body.contains("was ended after 1500 ms"),
        || body,
    )?;
    let two = "INSERT INTO restapi_routes (active, timeout_ms, method, uri, script) VALUES (1, 1000, 'get', 'a/b', 'x'); \
               LOAD RESTAPI TO RUNTIME";
    let refused = proxy.admin(two).err().unwrap_or_default();
    expect(refused.contains("nobody could say which is meant"), || {
        refused
    })?;
    expect(get("")?.0 == 200, || {
        "what was in force is not any more".to_owned()
    })
}
