//! The web page of a proxy in front of a real server, as browsers see it, good ones and bad ones.
#![forbid(unsafe_code)]

use conformance::browser::{Browser, encoded};
use conformance::by_hand::{self, Raw};
use conformance::process::output;
use conformance::proxy::{Driver, Proxy, Wish, command_line, program};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, soon};
use conformance::watch::HANGS;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;

/// Everything that a visitor can open.
const PAGES: &[&str] = &[
    "/",
    "/queries",
    "/servers",
    "/sessions",
    "/rules",
    "/cache",
    "/cluster",
    "/history",
    "/log",
];

fn main() {
    trials::run_once(&[
        ("every_page_shows_under_load_what_it_has_to", shown),
        (
            "the_first_page_names_a_flood_a_leak_and_a_dead_server",
            troubled,
        ),
        ("no_outsider_writes_a_script_into_a_page", escaped),
        ("an_act_needs_the_token_and_the_same_origin", acted),
        ("a_wrong_password_makes_the_next_wait", slowed),
        ("a_statistics_user_looks_and_sees_no_literal", looked),
        (
            "a_load_turns_the_page_on_and_off_and_others_need_passwords",
            switched,
        ),
        ("strangers_have_limits", limited),
        ("top_prints_each_view_for_who_has_the_password", topped),
    ])
}

fn words(error: impl ToString) -> String {
    error.to_string()
}

/// A session that waits in a statement on the server.
fn sleeper(proxy: &Proxy, sql: &str) -> Result<Raw, String> {
    let mut client = Raw::log_in(proxy.port).map_err(words)?;
    client.query(sql).map_err(words)?;
    soon("1", || {
        let sql = "SELECT count(*) FROM stats_mysql_processlist WHERE info LIKE '%SLEEP%'";
        Ok(proxy.admin(sql)?.trim().to_owned())
    })?;
    Ok(client)
}

fn has(page: &str, all: &[&str]) -> Outcome {
    for one in all {
        expect(page.contains(one), || format!("no {one:?} in {page}"))?;
    }
    Ok(())
}

fn shown(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (3, '127.0.0.1', 1); LOAD MYSQL SERVERS TO RUNTIME; \
         INSERT INTO mysql_query_rules (rule_id, active, match_pattern, cache_ttl, apply, comment) \
         VALUES (7, 1, '^SELECT 7', 60000, 1, 'sevens'); LOAD MYSQL QUERY RULES TO RUNTIME; \
         SET admin-stats_mysql_connections = 1; LOAD ADMIN VARIABLES TO RUNTIME; \
         SET mysql-monitor_ping_interval = 1000; SET mysql-monitor_enabled = 'true'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let browser = Browser::logged_in(&proxy, "admin")?;
    let port = proxy.port;
    let load = thread::spawn(move || {
        let mut client = Raw::log_in(port)?;
        for _ in 0..300 {
            client.ask("SELECT 7 AS loaded")?;
            thread::sleep(Duration::from_millis(10));
        }
        drop(client.ask("SELECT no_such_column"));
        Ok::<_, std::io::Error>(())
    });
    let mut holder = Raw::log_in(proxy.port).map_err(words)?;
    holder.ask("BEGIN").map_err(words)?;
    holder.ask("SELECT 1").map_err(words)?;
    load.join()
        .map_err(|_| "the load has panicked")?
        .map_err(words)?;
    soon("true", || {
        Ok(browser
            .page("/")?
            .contains("<polyline class=\"line l0\"")
            .to_string())
    })?;
    let at = format!("127.0.0.1:{}", server.port);
    has(
        &browser.page("/")?,
        &[
            "Statements and errors",
            "p99",
            &at,
            "ONLINE",
            "no_such_column",
        ],
    )?;
    has(
        &browser.page("/queries")?,
        &[
            "SELECT ? AS loaded",
            "Make a rule of it",
            "Where would it go?",
        ],
    )?;
    has(
        &browser.page("/queries?by=rate&find=no_such")?,
        &["SELECT no_such_column"],
    )?;
    has(
        &browser.page("/servers")?,
        &[&at, "127.0.0.1:1", "Last ping of each server"],
    )?;
    has(
        &browser.page("/sessions")?,
        &["Transaction", by_hand::USER, "End the session"],
    )?;
    has(&browser.page("/rules")?, &["sevens", "^SELECT 7"])?;
    has(
        &browser.page("/cache")?,
        &["Query_Cache_count_GET", "SELECT 7 AS loaded"],
    )?;
    has(&browser.page("/cluster")?, &["in no fleet"])?;
    soon("true", || {
        Ok(browser
            .page("/history?span=hour")?
            .contains("statements <b>")
            .to_string())
    })?;
    has(
        &browser.page("/log")?,
        &["serves clients on", "has come in from 127.0.0.1"],
    )?;
    // Servers that do not serve are named, with the reason.
    soon("true", || {
        Ok(browser
            .page("/?live=1")?
            .contains("Connection refused")
            .to_string())
    })?;
    routed(&browser)?;
    let mut first = browser.page("/login")?.len() + browser.page("/")?.len();
    first += browser.page("/style.css")?.len() + browser.page("/live.js")?.len();
    expect(first < 200 << 10, || {
        format!("the first page has {first} bytes")
    })
}

/// `EXPLAIN ROUTE` in its box, and a rule that can be copied and works.
fn routed(browser: &Browser) -> Outcome {
    let token = browser.token()?;
    let sql = "SELECT 7 -- it's <b>";
    let fields = [
        ("token", &*token),
        ("sql", sql),
        ("user", by_hand::USER),
        ("schema", ""),
    ];
    let answer = browser.submit("/queries/route", &fields)?;
    expect(answer.status == 200, || format!("{answer:?}"))?;
    has(
        &answer.body,
        &["hostgroup 0", "match_pattern=^SELECT 7", "it's &lt;b&gt;"],
    )?;
    let fields = [
        ("token", &*token),
        ("sql", sql),
        ("user", "a b"),
        ("schema", ""),
    ];
    let answer = browser.submit("/queries/route", &fields)?;
    expect(answer.status == 409, || format!("{answer:?}"))?;
    let page = browser.page("/queries/rule?digest=0x0123456789ABCDEF&hostgroup=5&text=it%27s")?;
    has(
        &page,
        &[
            "INSERT INTO mysql_query_rules",
            "0x0123456789ABCDEF",
            "it''s",
            "LOAD MYSQL QUERY RULES TO RUNTIME",
        ],
    )?;
    let page = browser.page("/queries/rule?digest=1%29%3BDROP")?;
    expect(!page.contains("INSERT"), || page)
}

/// A server that dies, a digest that floods, and a transaction that stays open.
fn troubled(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (3, '127.0.0.1', 1); LOAD MYSQL SERVERS TO RUNTIME; \
         SET mysql-monitor_ping_interval = 500; SET mysql-monitor_enabled = 'true'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let browser = Browser::logged_in(&proxy, "stats")?;
    let mut leak = Raw::log_in(proxy.port).map_err(words)?;
    leak.ask("BEGIN").map_err(words)?;
    leak.ask("SELECT 1").map_err(words)?;
    let mut flood = Raw::log_in(proxy.port).map_err(words)?;
    let leaked = format!(">{}<", leak.id);
    soon("the three", || {
        for n in 0..20 {
            flood
                .ask(&format!("SELECT {n} AS flooded"))
                .map_err(words)?;
        }
        let page = browser.page("/")?;
        let (absent, rest) = page
            .split_once("Transactions and locks")
            .ok_or("no transactions")?;
        let (open, rest) = rest
            .split_once("come most often now")
            .ok_or("no statements")?;
        let busiest = rest.split("Hostgroups").next().unwrap_or_default();
        let found = [
            absent.contains("127.0.0.1:1<") && absent.contains("refused"),
            open.contains(&leaked),
            busiest.contains("SELECT ? AS flooded"),
        ];
        Ok(match found {
            [true, true, true] => "the three".to_owned(),
            _ => format!("{found:?}"),
        })
    })
}

fn escaped(driver: Driver) -> Outcome {
    let evil = "<script>alert(1)</script>";
    let server = Server::start(Vendor::MariaDb)?;
    server.root(&format!(
        "CREATE USER '{evil}'@'%'; CREATE DATABASE `<script>s`; GRANT ALL ON *.* TO '{evil}'@'%'"
    ))?;
    let mut wish = Wish::in_front_of(&server);
    wish.users = format!(
        "{},\n{{ username = \"{evil}\", password = \"\", default_hostgroup = 0 }}",
        wish.users
    );
    let proxy = Proxy::start(driver, &wish)?;
    let mut browser = Browser::logged_in(&proxy, "admin")?;
    let (port, more) = (proxy.port, ["--database=<script>s"]);
    // Errors of a server with such words in them, and a name that nobody has.
    for sql in [
        "SELECT 1 FROM `<script>t`",
        "SELECT @`<script>x`, `<script>c`",
    ] {
        let said = command_line(port, evil, "", &more, sql);
        expect(said.is_err(), || format!("{said:?}"))?;
    }
    drop(command_line(port, "<script>nobody", "x", &[], "SELECT 1"));
    let sql = "BEGIN; SELECT '<script>v' AS `<script>a`; SELECT SLEEP(20), '<script>w'";
    let client = thread::spawn(move || command_line(port, evil, "", &more, sql));
    soon("1", || {
        let sql = "SELECT count(*) FROM stats_mysql_processlist WHERE info LIKE '%SLEEP%'";
        expect(!client.is_finished(), || "the client has ended".to_owned())?;
        Ok(proxy.admin(sql)?.trim().to_owned())
    })?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, error_msg, comment) \
         VALUES (9, 1, '<script>', '<script>', '\"><script>'); LOAD MYSQL QUERY RULES TO RUNTIME; \
         UPDATE mysql_servers SET comment = '<script>'; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let refused = browser.clone().log_in("<script>who", "<script>")?;
    expect(refused.status == 403, || format!("{refused:?}"))?;
    let mut found = 0;
    let odd = encoded("\"><script>x");
    let more = [
        format!("/queries?by={odd}&find={}", encoded("<script>")),
        format!("/queries?find={odd}"),
        format!(
            "/queries/rule?digest=0x0123456789ABCDEF&text={odd}&hostgroup={odd}&error={odd}&cache={odd}"
        ),
        format!("/history?span={odd}"),
    ];
    let all = PAGES.iter().map(|page| (*page).to_owned()).chain(more);
    for path in all {
        let answer = browser.get(&path)?;
        expect(answer.status == 200, || format!("{path}: {answer:?}"))?;
        harmless(&path, &answer.body)?;
        found += answer.body.matches("&lt;script&gt;").count();
        let policy = answer.header("content-security-policy").unwrap_or_default();
        expect(policy.starts_with("default-src 'self';"), || {
            format!("{answer:?}")
        })?;
    }
    // They were shown: the user, his schema, his statements, the error, the rule, the failed login.
    expect(found > 20, || format!("only {found} values were shown"))?;
    let token = browser.token()?;
    let fields = [
        ("token", &*token),
        ("sql", "SELECT '<script>'"),
        ("user", "<script>"),
        ("schema", "<script>"),
    ];
    let answer = browser.submit("/queries/route", &fields)?;
    harmless("/queries/route", &answer.body)?;
    let answer = browser.log_in("\"><script>", "x")?;
    harmless("/login", &answer.body)?;
    drop(proxy);
    drop(client.join());
    Ok(())
}

/// A page has one script, which is the proxy's.
fn harmless(path: &str, page: &str) -> Outcome {
    let scripts = page.matches("<script").count();
    let own = page
        .matches("<script src=\"/live.js\" defer></script>")
        .count();
    expect(scripts == own && own == 1, || {
        format!("{path} has {scripts} scripts: {page}")
    })
}

fn acted(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let browser = Browser::logged_in(&proxy, "admin")?;
    let mut client = sleeper(&proxy, "SELECT SLEEP(600)")?;
    let id = client.id.to_string();
    let token = browser.token()?;
    let kill = |token: &str| {
        vec![
            ("token", token.to_owned()),
            ("session", id.clone()),
            ("how", "CONNECTION".to_owned()),
        ]
    };
    let refused = |what: &str, origin: Option<&str>, token: &str, browser: &Browser| {
        let fields = kill(token);
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let answer = browser.submit_from(origin, "/sessions/kill", &fields)?;
        expect(answer.status == 403, || format!("{what}: {answer:?}"))
    };
    let here = format!("https://127.0.0.1:{}", browser.port);
    refused("no token", Some(&here), "", &browser)?;
    refused("a wrong token", Some(&here), &"0".repeat(64), &browser)?;
    refused("no origin", None, &token, &browser)?;
    refused(
        "another origin",
        Some("https://evil.example"),
        &token,
        &browser,
    )?;
    refused("another origin", Some("null"), &token, &browser)?;
    // Another visitor's token is not this one's.
    let mut other = browser.clone();
    other.log_in("admin", "admin")?;
    refused("another's token", Some(&here), &other.token()?, &browser)?;
    // Nor does looking do anything.
    let answer = browser.get(&format!(
        "/sessions/kill?token={token}&session={id}&how=CONNECTION"
    ))?;
    expect(answer.status == 404, || format!("{answer:?}"))?;
    let there =
        proxy.admin("SELECT count(*) FROM stats_mysql_processlist WHERE info LIKE '%SLEEP%'")?;
    expect(there.trim() == "1", || there.clone())?;
    let answer = browser.submit(
        "/sessions/kill",
        &[("token", &token), ("session", &id), ("how", "CONNECTION")],
    )?;
    expect(answer.status == 303, || format!("{answer:?}"))?;
    // It is told so, and then it is over.
    let is_over = (0..3).any(|_| client.packet().is_err());
    expect(is_over, || "the session lives".to_owned())?;
    expect(
        proxy.says(&format!(
            "web: \"admin\" from 127.0.0.1: KILL CONNECTION {id}"
        )),
        || proxy.log(),
    )?;
    let answer = browser.submit("/logout", &[("token", &token)])?;
    expect(
        answer
            .header("set-cookie")
            .is_some_and(|cookie| cookie.contains("Max-Age=0")),
        || format!("{answer:?}"),
    )?;
    let answer = browser.get("/")?;
    expect(answer.header("location") == Some("/login"), || {
        format!("{answer:?}")
    })
}

fn slowed(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let mut browser = Browser::before(&proxy)?;
    let wrong = browser.log_in("admin", "wrong")?;
    let nobody = browser.log_in("nobody", "wrong")?;
    expect((wrong.status, nobody.status) == (403, 429), || {
        format!("{wrong:?} {nobody:?}")
    })?;
    // Nor is the right one looked at.
    let early = browser.log_in("admin", "admin")?;
    expect(
        early.status == 429 && early.header("set-cookie").is_none(),
        || format!("{early:?}"),
    )?;
    thread::sleep(Duration::from_millis(1100));
    let second = browser.log_in("nobody", "wrong")?;
    expect(second.status == 403, || format!("{second:?}"))?;
    // A name that nobody has is told what a wrong password is told.
    let alert = |page: &str| {
        page.split_once("role=\"alert\"")
            .map(|(_, rest)| rest[..60].to_owned())
    };
    expect(alert(&wrong.body) == alert(&second.body), || {
        format!("{wrong:?} {second:?}")
    })?;
    let wait = browser.log_in("admin", "admin")?;
    expect(wait.header("retry-after") == Some("2"), || {
        format!("{wait:?}")
    })?;
    thread::sleep(Duration::from_millis(2100));
    let right = browser.log_in("admin", "admin")?;
    expect(right.status == 303, || format!("{right:?}"))?;
    let cookie = right.header("set-cookie").unwrap_or_default();
    has(
        cookie,
        &[
            "__Host-millrace=",
            "Path=/",
            "Secure",
            "HttpOnly",
            "SameSite=Strict",
        ],
    )
}

fn looked(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, cache_ttl, apply) VALUES (1, 1, 'kept', 60000, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let browser = Browser::logged_in(&proxy, "stats")?;
    let mut client = Raw::log_in(proxy.port).map_err(words)?;
    client.ask("SELECT 'geheim' AS kept").map_err(words)?;
    drop(client.ask("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'geheim'"));
    let _sleeps = sleeper(&proxy, "SELECT SLEEP(600), 'geheim'")?;
    for path in PAGES {
        let page = browser.page(path)?;
        expect(!page.contains("geheim"), || format!("{path}: {page}"))?;
        expect(
            !page.contains("/sessions/kill") && !page.contains("/cache/flush"),
            || page.clone(),
        )?;
    }
    has(&browser.page("/queries")?, &["SELECT ? AS kept"])?;
    // An administrator sees them: the test would notice.
    let admin = Browser::logged_in(&proxy, "admin")?;
    for path in ["/sessions", "/cache", "/"] {
        has(&admin.page(path)?, &["geheim"])?;
    }
    let browser = Browser::logged_in(&proxy, "stats")?;
    let token = browser.token()?;
    for path in ["/sessions/kill", "/cache/flush", "/queries/route"] {
        let answer = browser.submit(
            path,
            &[
                ("token", &token),
                ("session", "1"),
                ("how", "QUERY"),
                ("sql", "SELECT 1"),
            ],
        )?;
        expect(answer.status == 403, || format!("{path}: {answer:?}"))?;
    }
    Ok(())
}

fn switched(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let browser = Browser::logged_in(&proxy, "admin")?;
    let said = proxy.admin("SET admin-web_interface = 'here'; LOAD ADMIN VARIABLES TO RUNTIME");
    let refused = said.err().unwrap_or_default();
    has(&refused, &["admin-web_interface", "is no address"])?;
    browser.page("/")?;
    // Other credentials: whoever came in by the old ones is out.
    proxy.admin(
        "SET admin-web_interface = '127.0.0.1'; SET admin-admin_credentials = 'admin:other'; LOAD ADMIN VARIABLES TO RUNTIME",
    )?;
    let answer = browser.get("/")?;
    expect(answer.header("location") == Some("/login"), || {
        format!("{answer:?}")
    })?;
    let admin = |sql: &str| command_line(proxy.admin_port, "admin", "other", &[], sql);
    admin(
        "SET admin-stats_credentials = 'stats:other'; SET admin-web_interface = '0.0.0.0'; LOAD ADMIN VARIABLES TO RUNTIME",
    )?;
    let mut browser = browser;
    soon("303", || {
        Ok(browser
            .log_in("stats", "other")
            .map_or(0, |answer| answer.status)
            .to_string())
    })?;
    admin("SET admin-web_enabled = 'false'; LOAD ADMIN VARIABLES TO RUNTIME")?;
    soon("false", || {
        Ok(TcpStream::connect(("127.0.0.1", browser.port))
            .is_ok()
            .to_string())
    })
}

fn limited(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let browser = Browser::logged_in(&proxy, "admin")?;
    let long = "x".repeat(70 << 10);
    let answer = browser.submit("/queries/route", &[("sql", &long)])?;
    expect(answer.status == 413, || answer.head.clone())?;
    let answer = browser.ask("GET", "/", &[("X", &long[..17 << 10])], "")?;
    expect(answer.status == 431, || answer.head.clone())?;
    let many: Vec<_> = (0..70).map(|_| ("X", "y")).collect();
    let answer = browser.ask("GET", "/", &many, "")?;
    expect(answer.status == 431, || answer.head.clone())?;
    let answer = browser.ask("PUT", "/", &[], "")?;
    expect(answer.status == 405, || answer.head.clone())?;
    // Who does not speak TLS gets no page.
    let mut plain = TcpStream::connect(("127.0.0.1", browser.port)).map_err(words)?;
    plain.set_read_timeout(Some(HANGS)).map_err(words)?;
    plain.write_all(b"GET / HTTP/1.0\r\n\r\n").map_err(words)?;
    let mut said = Vec::new();
    drop(plain.read_to_end(&mut said));
    expect(!String::from_utf8_lossy(&said).contains("HTTP"), || {
        format!("{said:?}")
    })?;
    // Those who say nothing keep nobody out for longer than they may be silent.
    let silent: Vec<_> = (0..80)
        .map(|_| TcpStream::connect(("127.0.0.1", browser.port)))
        .collect();
    soon("true", || Ok(browser.page("/").is_ok().to_string()))?;
    drop(silent);
    Ok(())
}

/// Returns what `millrace top --once` prints, or says.
fn top(proxy: &Proxy, more: &[&str]) -> Result<(bool, String), String> {
    let mut command = Command::new(program()?);
    command.args(["top", "--once", "-P", &proxy.admin_port.to_string()]);
    output(command.args(more), HANGS)
}

fn topped(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let mut client = Raw::log_in(proxy.port).map_err(words)?;
    client.ask("SELECT 1 AS shown").map_err(words)?;
    drop(client.ask("SELECT no_such_column"));
    client.ask("BEGIN").map_err(words)?;
    client.ask("SELECT 1 AS shown").map_err(words)?;
    for (view, wanted) in [
        ("queries", vec!["SELECT ? AS shown".to_owned()]),
        (
            "servers",
            vec![format!("127.0.0.1:{}", server.port), "ONLINE".to_owned()],
        ),
        (
            "sessions",
            vec![client.id.to_string(), "Transaction".to_owned()],
        ),
        (
            "errors",
            vec!["1054".to_owned(), "no_such_column".to_owned()],
        ),
    ] {
        for user in ["admin", "stats"] {
            let (fine, said) = top(&proxy, &["--view", view, "-u", user, "-p", user])?;
            expect(fine, || said.clone())?;
            has(&said, &["statements ", " clients 1 (", view])?;
            for one in &wanted {
                has(&said, &[one])?;
            }
        }
    }
    for (more, wanted) in [
        (["-p", "wrong"], "Access denied for user 'admin'"),
        (["--view", "none"], "there is no view none"),
    ] {
        let (fine, said) = top(&proxy, &more)?;
        expect(!fine && said.contains(wanted), || said)?;
    }
    Ok(())
}
