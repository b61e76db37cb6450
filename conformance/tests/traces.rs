//! Traces: statements as a collector of OpenTelemetry gets them, by OTLP over HTTP.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_callers_trace_has_the_statements_spans", of_a_caller),
        ("statements_in_flight_with_others_have_theirs", in_flight),
        ("each_partition_that_is_asked_is_a_span", legs),
        ("chance_slowness_and_rules_choose", chosen),
        ("what_a_collector_does_not_take_is_counted", refused),
    ])
}

/// The number of the caller's trace, and of his span.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// As a collector does: takes what is posted, if it is in the mood.
#[derive(Clone)]
struct Collector {
    port: u16,
    had: Arc<Mutex<Had>>,
}

#[derive(Default)]
struct Had {
    spans: Vec<Value>,
    /// Statuses of the next answers; 200 when there are none.
    moods: Vec<u16>,
    posts: usize,
}

impl Collector {
    fn start() -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener
            .local_addr()
            .map_err(|error| error.to_string())?
            .port();
        let this = Self {
            port,
            had: Arc::default(),
        };
        let all = this.clone();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let one = all.clone();
                thread::spawn(move || one.serve(socket));
            }
        });
        Ok(this)
    }

    fn serve(&self, socket: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(socket.try_clone().ok()?);
        let mut socket = socket;
        loop {
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok()?;
                match line.trim().to_ascii_lowercase().split_once(": ") {
                    Some(("content-length", value)) => length = value.parse().ok()?,
                    Some(_) => {}
                    None => break,
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let mut had = self.had.lock().ok()?;
            had.posts += 1;
            let status = match had.moods.is_empty() {
                true => 200,
                false => had.moods.remove(0),
            };
            if status == 200 && first.starts_with("POST /v1/traces ") {
                let body: Value = serde_json::from_slice(&body).ok()?;
                let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
                had.spans.extend(spans.as_array()?.iter().cloned());
            }
            drop(had);
            let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\n{{}}");
            socket.write_all(answer.as_bytes()).ok()?;
        }
    }

    fn spans(&self) -> Vec<Value> {
        self.had
            .lock()
            .map(|had| had.spans.clone())
            .unwrap_or_default()
    }

    /// The first words of the digests that have come, sorted.
    fn texts(&self) -> Vec<String> {
        let mut all: Vec<_> = self
            .spans()
            .iter()
            .filter_map(|span| attribute(span, "db.query.text"))
            .collect();
        all.sort();
        all
    }

    fn moods(&self, moods: &[u16]) {
        if let Ok(mut had) = self.had.lock() {
            had.moods = moods.to_vec();
        }
    }

    fn posts(&self) -> usize {
        self.had.lock().map(|had| had.posts).unwrap_or_default()
    }
}

/// The value of an attribute of a span.
fn attribute(span: &Value, key: &str) -> Option<String> {
    let all = span["attributes"].as_array()?;
    let found = all.iter().find(|one| one["key"] == key)?;
    let value = found["value"].as_object()?.values().next()?;
    Some(
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
    )
}

fn traces_to(proxy: &Proxy, collector: &Collector, more: &str) -> Outcome {
    let to = format!("http://127.0.0.1:{}/v1/traces", collector.port);
    proxy
        .admin(&format!(
            "SET mysql-traces_endpoint = '{to}'; {more} LOAD MYSQL VARIABLES TO RUNTIME"
        ))
        .map(drop)
}

fn client(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn ask(client: &mut Raw, sql: &str) -> Outcome {
    client
        .ask(sql)
        .map(drop)
        .map_err(|error| format!("{sql}: {error}"))
}

/// With the caller's trace, which he samples or not.
fn called(sql: &str, flags: &str) -> String {
    format!("{sql} /*traceparent='00-{TRACE}-{SPAN}-{flags}'*/")
}

fn of_a_caller(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let collector = Collector::start()?;
    let wrong = proxy
        .admin("SET mysql-traces_endpoint = 'collector:4318'; LOAD MYSQL VARIABLES TO RUNTIME");
    expect(
        wrong
            .as_ref()
            .is_err_and(|words| words.contains("must be like http://host:4318/v1/traces")),
        || format!("{wrong:?}"),
    )?;
    traces_to(&proxy, &collector, "")?;
    let mut client = client(&proxy)?;
    ask(&mut client, "SELECT 'nobody traces it'")?;
    ask(&mut client, &called("SELECT 'not sampled', 1", "00"))?;
    ask(&mut client, &called("SELECT 41 + 1", "01"))?;
    soon("2", || Ok(collector.spans().len().to_string()))?;
    let spans = collector.spans();
    let (whole, asked) = (&spans[0], &spans[1]);
    for span in [whole, asked] {
        same(span["traceId"].as_str().unwrap_or_default(), TRACE)?;
    }
    same(whole["parentSpanId"].as_str().unwrap_or_default(), SPAN)?;
    expect(asked["parentSpanId"] == whole["spanId"], || {
        format!("the server's span is not within the statement's: {spans:?}")
    })?;
    expect(
        whole["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("SELECT"))
            && asked["name"] == "server"
            && whole["kind"] == 2
            && asked["kind"] == 3,
        || format!("{spans:?}"),
    )?;
    same(
        &attribute(whole, "db.query.text").unwrap_or_default(),
        "SELECT ?+?",
    )?;
    same(
        &attribute(asked, "server.port").unwrap_or_default(),
        &server.port.to_string(),
    )?;
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
    let times: Option<Vec<u64>> = [
        &whole["startTimeUnixNano"],
        &asked["startTimeUnixNano"],
        &asked["events"][0]["timeUnixNano"],
        &asked["endTimeUnixNano"],
    ]
    .into_iter()
    .map(time)
    .collect();
    expect(
        times.as_ref().is_some_and(|times| times.is_sorted())
            && asked["endTimeUnixNano"] == whole["endTimeUnixNano"],
        || format!("{times:?} of {spans:?}"),
    )?;
    let shown = format!("{spans:?}");
    expect(!shown.contains("41 + 1"), || {
        format!("a literal is in a trace: {shown}")
    })
}

/// Statements that share a connection in flight have the same spans.
fn in_flight(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let collector = Collector::start()?;
    proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"pipelining\": 16}'); \
         UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    traces_to(&proxy, &collector, "")?;
    let (clients, each) = (4, 50);
    thread::scope(|scope| {
        let one = || {
            let mut client = client(&proxy)?;
            (0..each).try_for_each(|n| ask(&mut client, &called(&format!("SELECT {n}"), "01")))
        };
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(one)).collect();
        all.into_iter()
            .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
    })?;
    soon(&(clients * each).to_string(), || {
        let spans = collector.spans();
        let servers = spans.iter().filter(|span| span["name"] == "server");
        Ok(servers.count().to_string())
    })?;
    let shared = proxy.admin(
        "SELECT Variable_Value <> '0' FROM stats_mysql_global WHERE Variable_Name = 'Millrace_statements_pipelined'",
    )?;
    same(&shared, "1")
}

/// A table with four homes: its default one and another on the first server, two on the second.
fn sharded(driver: Driver) -> Result<([Server; 2], Proxy), String> {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.add_open_user();
    let other = format!(
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        servers[1].port
    );
    wish.servers.push_str(&other);
    let proxy = Proxy::start(driver, &wish)?;
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
        server.root(
            "CREATE DATABASE parts; CREATE TABLE parts.t_default (k INT PRIMARY KEY, v INT); \
             CREATE TABLE parts.t_0 LIKE parts.t_default; CREATE TABLE parts.t_1 LIKE parts.t_default; \
             CREATE TABLE parts.t_2 LIKE parts.t_default; \
             CREATE TABLE parts.decisions (transaction VARCHAR(64) CHARACTER SET ascii PRIMARY KEY, \
                outcome VARCHAR(8) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)",
        )?;
    }
    proxy.admin(
        "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_schema, default_table) \
            VALUES ('t', 'k', 'INT', 'MOD(3)', 'parts', 't_default'); \
         INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id, physical_schema) \
            VALUES ('t', '0', '0', 0, 'parts'), ('t', '1', '1', 1, 'parts'), ('t', '2', '2', 1, 'parts'); \
         SET mysql-sharding_decisions = 'parts.decisions'; \
         UPDATE mysql_users SET attributes = '{\"partition_changes\":\"xa\"}'; \
         LOAD MYSQL SHARDS TO RUNTIME; LOAD MYSQL VARIABLES TO RUNTIME; LOAD MYSQL USERS TO RUNTIME",
    )?;
    Ok((servers, proxy))
}

/// Legs of the last statement, sorted: port of the server, and error if there is one.
fn legs_of(collector: &Collector) -> Vec<String> {
    let spans = collector.spans();
    let whole = spans.iter().rfind(|span| span["kind"] == 2);
    let Some(whole) = whole else {
        return Vec::new();
    };
    let is_own = |span: &&Value| span["parentSpanId"] == whole["spanId"] && span["name"] == "leg";
    let shown = |span: &Value| {
        let error = attribute(span, "error.type").unwrap_or_default();
        let hostgroup = attribute(span, "millrace.hostgroup").unwrap_or_default();
        format!("{hostgroup} {error}")
    };
    let mut all: Vec<_> = spans.iter().filter(is_own).map(shown).collect();
    all.sort();
    all
}

/// The span of the whole statement has one below it for each partition, with times of its own.
fn legs(driver: Driver) -> Outcome {
    let (servers, proxy) = sharded(driver)?;
    let collector = Collector::start()?;
    traces_to(&proxy, &collector, "")?;
    let mut client = client(&proxy)?;
    // With a connection that is there already: nobody waits for one.
    ask(&mut client, "SELECT v FROM t WHERE k = 2")?;
    ask(&mut client, &called("SELECT v FROM t WHERE k = 2", "01"))?;
    soon("2", || Ok(collector.spans().len().to_string()))?;
    same(&legs_of(&collector).join(","), "")?;
    // The second server answers its two after the first has answered its one.
    servers[1].root("INSERT INTO parts.t_1 VALUES (1, 1); INSERT INTO parts.t_2 VALUES (2, 2)")?;
    ask(&mut client, &called("SELECT k, SLEEP(v / 10) FROM t", "01"))?;
    soon("7", || Ok(collector.spans().len().to_string()))?;
    same(&legs_of(&collector).join(","), "0 ,0 ,1 ,1 ")?;
    let spans = collector.spans();
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
    let whole = &spans[2];
    let took = |span: &Value| {
        Some(time(&span["endTimeUnixNano"])?.saturating_sub(time(&span["startTimeUnixNano"])?))
    };
    for leg in &spans[3..] {
        let times: Option<Vec<u64>> = [
            &whole["startTimeUnixNano"],
            &leg["startTimeUnixNano"],
            &leg["events"][0]["timeUnixNano"],
            &leg["endTimeUnixNano"],
            &whole["endTimeUnixNano"],
        ]
        .into_iter()
        .map(time)
        .collect();
        expect(
            times.as_ref().is_some_and(|times| times.is_sorted()),
            || format!("{times:?} of {leg:?}"),
        )?;
        let slept = attribute(leg, "server.port") == Some(servers[1].port.to_string());
        expect(
            took(leg).is_some_and(|took| (took >= 90_000_000) == slept),
            || format!("{slept}: {leg:?}"),
        )?;
    }
    same(&attribute(whole, "millrace.legs").unwrap_or_default(), "4")?;
    // A change of several partitions, and a read that one refuses.
    ask(&mut client, &called("UPDATE t SET v = 7", "01"))?;
    soon("12", || Ok(collector.spans().len().to_string()))?;
    same(&legs_of(&collector).join(","), "0 ,0 ,1 ,1 ")?;
    servers[1].root("DROP TABLE parts.t_2")?;
    let missing = client.ask(&called("SELECT COUNT(*) FROM t", "01"));
    expect(missing.is_err(), || "there is such a table".to_owned())?;
    soon("17", || Ok(collector.spans().len().to_string()))?;
    same(&legs_of(&collector).join(","), "0 ,0 ,1 ,1 1146")
}

fn chosen(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let collector = Collector::start()?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, attributes) VALUES \
         (1, 1, 'SELECT .[*].', '{\"trace\": false}'), (2, 1, 'SELECT .-.', '{\"trace\": true}'); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    traces_to(&proxy, &collector, "")?;
    let mut client = client(&proxy)?;
    // The rule alone.
    ask(&mut client, "SELECT 3 / 4")?;
    ask(&mut client, "SELECT 3 * 4")?;
    ask(&mut client, "SELECT 3 - 4")?;
    soon("[\"SELECT ?-?\"]", || {
        Ok(format!("{:?}", collector.texts()))
    })?;
    // All but what the rule excludes.
    traces_to(
        &proxy,
        &collector,
        "SET mysql-traces_per_million = 1000000;",
    )?;
    ask(&mut client, "SELECT 3 * 4")?;
    ask(&mut client, "SELECT 3 / 4")?;
    let missing = client.ask("SELECT * FROM nowhere_at_all");
    expect(missing.is_err(), || "there is such a table".to_owned())?;
    soon("3", || Ok(collector.texts().len().to_string()))?;
    let spans = collector.spans();
    let failed: Vec<_> = spans
        .iter()
        .filter(|span| span["status"]["code"] == 2)
        .filter_map(|span| attribute(span, "error.type"))
        .collect();
    expect(
        !failed.is_empty() && failed.iter().all(|code| code == "1146" || code == "1046"),
        || format!("{failed:?} of {spans:?}"),
    )?;
    // Only slow ones.
    traces_to(
        &proxy,
        &collector,
        "SET mysql-traces_per_million = 0; SET mysql-traces_slow_ms = 20;",
    )?;
    ask(&mut client, "SELECT SLEEP(0.05)")?;
    soon("true", || {
        let all = collector.texts();
        Ok(all.iter().any(|text| text.contains("SLEEP")).to_string())
    })?;
    // Nothing without a collector: what is asked behind it comes, and it does not.
    proxy.admin("SET mysql-traces_endpoint = ''; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let before = collector.texts().len();
    ask(&mut client, &called("SELECT 1 % 2", "01"))?;
    traces_to(&proxy, &collector, "")?;
    ask(&mut client, &called("SELECT 1 & 2", "01"))?;
    soon(&(before + 1).to_string(), || {
        Ok(collector.texts().len().to_string())
    })?;
    let texts = collector.texts();
    expect(
        texts.iter().any(|text| text.contains('&')) && !texts.iter().any(|text| text.contains('%')),
        || format!("{texts:?}"),
    )
}

fn count(proxy: &Proxy, what: &str) -> Result<String, String> {
    let sql = format!(
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_traces_{what}'"
    );
    proxy.admin(&sql)
}

fn refused(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let collector = Collector::start()?;
    traces_to(&proxy, &collector, "")?;
    let mut client = client(&proxy)?;
    // Taken at the second try.
    collector.moods(&[503]);
    ask(&mut client, &called("SELECT 1", "01"))?;
    soon("1\n", || count(&proxy, "sent"))?;
    same(&collector.posts().to_string(), "2")?;
    same(&count(&proxy, "dropped")?, "0")?;
    // Not taken at all: no client hears of it.
    collector.moods(&[400]);
    ask(&mut client, &called("SELECT 2", "01"))?;
    soon("1\n", || count(&proxy, "dropped"))?;
    expect(proxy.says("statements are dropped, since"), || proxy.log())?;
    ask(&mut client, &called("SELECT 3", "01"))?;
    soon("2\n", || count(&proxy, "sent"))
}
