//! CONNECTION_ID() is the number that the greeting told the client, wherever its value can be seen,
//! while connections to the server change; and it is the server's where it is compared with what
//! that lists.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand;
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, soon};
use wire::caps;
use wire::command::COM_RESET_CONNECTION;
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_session_has_its_own_number_in_every_text_on_mariadb",
            |driver| on(driver, Vendor::MariaDb),
        ),
        (
            "a_session_has_its_own_number_in_every_text_on_mysql",
            |driver| on(driver, Vendor::MySql),
        ),
        (
            "a_kill_computes_its_number_of_what_the_session_knows",
            computed_kills,
        ),
        ("numbers_of_two_proxies_and_of_servers_do_not_meet", apart),
    ])
}

const ENDLESS: &str = "SELECT 'ENDLESS', COUNT(*) FROM conf.numbers a, conf.numbers b, conf.numbers c WHERE a.id * b.id % 7 + c.id < RAND() * 0 - 1";

const TABLES: &str =
    "CREATE TABLE conf.owners (id INT AUTO_INCREMENT PRIMARY KEY, owner BIGINT UNSIGNED); CREATE TABLE conf.strange (n INT);
    CREATE PROCEDURE conf.note(who BIGINT UNSIGNED) INSERT INTO conf.owners (owner) VALUES (who);
    CREATE FUNCTION conf.same(one BIGINT UNSIGNED, other BIGINT UNSIGNED) RETURNS INT DETERMINISTIC NO SQL RETURN one = other;";

/// The number is computed of what the session knows, and says what it says to a server.
fn computed_kills(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let log_in = |port: u16| by_hand::Raw::log_in(port).map_err(|error| error.to_string());
        let (mut killer, mut client, mut direct) = (
            log_in(proxy.port)?,
            log_in(proxy.port)?,
            log_in(server.port)?,
        );
        let listed = || {
            server.root(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%ENDLESS%' AND INFO NOT LIKE '%LIKE%'",
            )
        };
        let is_error = |said: &std::io::Result<Vec<Vec<String>>>, code: &str| {
            let is_it = said
                .as_ref()
                .is_err_and(|error| error.to_string().starts_with(code));
            expect(is_it, || {
                format!("{vendor}: error {code} was wanted: {said:?}")
            })
        };
        let (id, own) = (client.id, killer.id);
        for (before, kill) in [
            (
                format!("SET @victim = {id}"),
                "KILL QUERY @victim".to_owned(),
            ),
            (
                format!("SET @victim = '{id}'"),
                "KILL QUERY @Victim".to_owned(),
            ),
            // Servers say what came of it.
            (
                format!("SET @victim = {id} + 0"),
                "KILL QUERY @victim".to_owned(),
            ),
            (
                format!("SELECT {id} - 1 INTO @victim"),
                "KILL QUERY @victim + 1".to_owned(),
            ),
            (
                "DO 1".to_owned(),
                format!("KILL QUERY CONNECTION_ID() + {id} - {own}"),
            ),
            ("BEGIN".to_owned(), format!("KILL QUERY ({id})")),
            (
                format!("SET @victim = {id} * 1"),
                "KILL QUERY @victim".to_owned(),
            ),
        ] {
            client.query(ENDLESS).map_err(|error| error.to_string())?;
            soon("1", || {
                listed().map(|said| said.lines().last().unwrap_or_default().to_owned())
            })?;
            asked(&mut killer, &before)?;
            asked(&mut killer, &kill)
                .map_err(|error| format!("{vendor}, {before}, {kill}: {error}"))?;
            is_error(&client.rows(), "1317")?;
        }
        asked(&mut killer, "COMMIT")?;
        // A server's own number of one of its connections is nobody's here, nor is none.
        let of_server = asked(
            &mut killer,
            "SELECT MIN(ID) FROM information_schema.PROCESSLIST",
        )?
        .concat()
        .concat();
        asked(&mut killer, &format!("SET @listed = {of_server}"))?;
        is_error(&killer.ask("KILL @listed"), "1094")?;
        is_error(&killer.ask(&format!("KILL {of_server}")), "1094")?;
        for sql in ["KILL @nothing", "KILL 0 + 0"] {
            let (wanted, found) = (direct.ask(sql), killer.ask(sql));
            let (wanted, found) = (format!("{wanted:?}"), format!("{found:?}"));
            expect(wanted == found, || {
                format!("{vendor}, {sql}: {found} instead of {wanted}")
            })?;
        }
        // What a procedure may have set is not known.
        server.root("CREATE PROCEDURE conf.choose() SELECT 5 INTO @chosen")?;
        asked(&mut killer, "CALL conf.choose()")?;
        is_error(&killer.ask("KILL @chosen"), "1235")?;
        let said = killer.ask("KILL QUERY CONNECTION_ID() + 0");
        is_error(&said, "1317")?;
        asked(&mut client, "SELECT 1")?;
    }
    Ok(())
}

/// A server with two connections for all sessions, and another such server, for whoever asks
/// directly.
fn on(driver: Driver, vendor: Vendor) -> Outcome {
    if vendor.programs().is_err() {
        return Ok(());
    }
    let (server, twin) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&server, &twin] {
        server.root(TABLES)?;
        let right = if vendor == Vendor::MariaDb {
            "BINLOG REPLAY"
        } else {
            "SESSION_VARIABLES_ADMIN"
        };
        server.root(&format!("GRANT {right} ON *.* TO app@'%'"))?;
        let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
        let _ = Client::MariaDbCli.run(app(server.port), &warm_up);
    }
    let mut wish = Wish::in_front_of(&server);
    wish.servers = format!(
        "{{ address = \"127.0.0.1\", port = {}, hostgroup = 0, max_connections = 2 }}",
        server.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    in_texts(vendor, &twin, &proxy)?;
    in_prepared(vendor, [&server, &twin], &proxy)?;
    given(vendor, &twin, &proxy)
}

/// Numbers of clients of several proxies, as they write them into one table, are all different.
fn apart(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
        let mut sessions = Vec::new();
        for _ in 0..3 {
            let mut session = Raw::log_in(proxy.port, caps::DEPRECATE_EOF)?;
            session.query("SELECT 1")?;
            expect((1 << 30..1 << 31).contains(&session.id), || {
                format!("a session is called {}", session.id)
            })?;
            numbers.push(session.id);
            sessions.push(session);
        }
        // As tools do that read SHOW PROCESSLIST.
        let listed = server.root(
            "SELECT CONCAT('number ', id) FROM information_schema.processlist WHERE user = 'app'",
        )?;
        let listed: Vec<&str> = listed
            .lines()
            .filter_map(|line| line.strip_prefix("number "))
            .collect();
        expect(!listed.is_empty(), || "nobody is listed".to_owned())?;
        for number in (1..8)
            .map(|number: u32| number.to_string())
            .chain(listed.into_iter().map(str::to_owned))
        {
            let said = sessions[0].query(&format!("KILL {number}"))?;
            expect(said.contains("Unknown thread id"), || {
                format!("KILL {number}: {said}")
            })?;
        }
        for session in &mut sessions {
            session.query("SELECT 1")?;
        }
    }
    let all = format!("{numbers:?}");
    numbers.sort_unstable();
    numbers.dedup();
    expect(numbers.len() == 6, || format!("some met: {all}"))
}

/// A session through the proxy beside a direct one, and two that are in its way.
struct Both {
    direct: Raw,
    client: Raw,
    strangers: [Raw; 2],
}

impl Both {
    fn log_in(twin: &Server, proxy: &Proxy) -> Result<Self, String> {
        let log_in = |port| Raw::log_in(port, caps::DEPRECATE_EOF);
        let strangers = [log_in(proxy.port)?, log_in(proxy.port)?];
        Ok(Self {
            direct: log_in(twin.port)?,
            client: log_in(proxy.port)?,
            strangers,
        })
    }

    /// One after another has had a connection.
    fn disturb(&mut self) -> Outcome {
        self.strangers[0].query("BEGIN")?;
        self.strangers[1].query("UPDATE conf.strange SET n = n + 1")?;
        self.strangers[0].query("COMMIT").map(drop)
    }

    /// All is forgotten, and whatever kept a connection with it.
    fn reset(&mut self) -> Outcome {
        for raw in [&mut self.direct, &mut self.client] {
            raw.ask(&[COM_RESET_CONNECTION], Expect::Simple)?;
        }
        Ok(())
    }

    /// Compares what each is told of a text in which `{me}` is his number, behind other sessions.
    fn say(&mut self, sql: &str) -> Outcome {
        self.disturb()?;
        self.say_at_once(sql)
    }

    /// Compares what each is told of a text in which `{me}` is his number. The session keeps its
    /// connection, from which nobody can draw it away.
    fn say_at_once(&mut self, sql: &str) -> Outcome {
        let ask = |raw: &mut Raw| -> Result<String, String> {
            raw.query(&sql.replace("{me}", &raw.id.to_string()))
        };
        let (wanted, found) = (ask(&mut self.direct)?, ask(&mut self.client)?);
        expect(found == wanted, || {
            format!("{sql}:\n{found}\ninstead of\n{wanted}")
        })
    }
}

/// Columns that have the values of both sessions in them are compared without rows.
const TEXTS: &[&str] = &[
    "PREPARE s FROM 'SELECT CONNECTION_ID() = ? mine, CONNECTION_ID() > 0'",
    "SET @number = {me}",
    "EXECUTE s USING @number",
    "EXECUTE s USING @number",
    "DEALLOCATE PREPARE s",
    "SELECT CONNECTION_ID() = {me} AS mine",
    "SELECT CONNECTION_ID(), CONNECTION_ID() + 0, connection_id ( ) me, (CONNECTION_ID()), 'x' FROM conf.strange WHERE FALSE",
    "SELECT @@pseudo_thread_id, @@session.pseudo_thread_id + 1 FROM conf.strange WHERE FALSE",
    "SELECT @@pseudo_thread_id = {me} AS mine, @@local.pseudo_thread_id = CONNECTION_ID() AS same",
    "SELECT COUNT(*), SUM(CONNECTION_ID() = {me}) AS mine FROM conf.strange GROUP BY CONNECTION_ID() HAVING CONNECTION_ID() > 0",
    "SELECT mine FROM (SELECT CONNECTION_ID() = {me} AS mine UNION ALL SELECT CONNECTION_ID() <> {me}) t ORDER BY mine",
    "INSERT INTO conf.owners (owner) VALUES (CONNECTION_ID()), (0)",
    "INSERT INTO conf.owners SET owner = CONNECTION_ID() + 1",
    "INSERT INTO conf.owners (owner) SELECT CONNECTION_ID() ON DUPLICATE KEY UPDATE owner = CONNECTION_ID()",
    "SELECT id, owner = {me} AS mine FROM conf.owners ORDER BY id",
    "UPDATE conf.owners SET owner = 70000 WHERE owner = CONNECTION_ID() + 1",
    "DELETE FROM conf.owners WHERE owner IN (CONNECTION_ID(), 70000)",
    "SELECT COUNT(*) FROM conf.owners",
    "SET @me = CONNECTION_ID(), @it = @@pseudo_thread_id",
    "SELECT @me = {me} AS mine, @it = {me} AS its",
    "SELECT @me, @it FROM conf.strange WHERE FALSE",
    "SELECT CONNECTION_ID() INTO @also",
    "SELECT @also = {me} AS mine",
    "CREATE TABLE conf.theirs AS SELECT CONNECTION_ID() AS me",
    "SHOW CREATE TABLE conf.theirs",
    "SELECT me = {me} AS mine FROM conf.theirs",
    "DROP TABLE conf.theirs",
    "EXPLAIN FORMAT=TRADITIONAL SELECT * FROM conf.owners WHERE owner = CONNECTION_ID()",
    // What the server lists.
    "SELECT COUNT(*) FROM information_schema.processlist WHERE id = CONNECTION_ID()",
    "SELECT CONNECTION_ID() = {me} AS mine, MAX(maxlen) FROM information_schema.character_sets",
    // What others use later is not of this session.
    "CREATE VIEW conf.who AS SELECT CONNECTION_ID() AS me",
    "SHOW CREATE VIEW conf.who",
    "DROP VIEW conf.who",
];

/// These keep their connection: nobody else is in the way, and all is forgotten behind each group.
const KEEPING: &[&[&str]] = &[
    &[
        "CALL conf.note(CONNECTION_ID())",
        "SELECT owner = {me} AS mine FROM conf.owners ORDER BY id DESC LIMIT 1",
    ],
    &["SELECT conf.same(CONNECTION_ID(), {me}) AS mine"],
    &[
        "CREATE TEMPORARY TABLE conf.mine (a INT DEFAULT 3) AS SELECT CONNECTION_ID() AS me",
        "SHOW COLUMNS FROM conf.mine",
        "SELECT me = {me} AS mine FROM conf.mine",
    ],
    &[
        "SELECT GET_LOCK('mine', 0)",
        "SELECT IS_USED_LOCK('mine') = CONNECTION_ID()",
    ],
];

const OF_MARIADB: &[&[&str]] = &[
    &[
        "INSERT INTO conf.owners (owner) VALUES (4000000000) RETURNING CONNECTION_ID() = {me} AS mine, owner",
        "DELETE FROM conf.owners WHERE FALSE RETURNING CONNECTION_ID(), id + CONNECTION_ID()",
    ],
    &["EXECUTE IMMEDIATE 'SELECT CONNECTION_ID() = {me} AS mine'"],
    &["EXECUTE IMMEDIATE 'SELECT CONNECTION_ID() FROM conf.strange WHERE FALSE'"],
    &[
        "PREPARE s FROM 'SELECT ? = {me} AS mine'",
        "EXECUTE s USING CONNECTION_ID()",
    ],
    &["BEGIN NOT ATOMIC SELECT CONNECTION_ID() = {me} AS mine; END"],
];

fn in_texts(vendor: Vendor, twin: &Server, proxy: &Proxy) -> Outcome {
    let mut both = Both::log_in(twin, proxy)?;
    let own = if vendor == Vendor::MariaDb {
        OF_MARIADB
    } else {
        &[]
    };
    for sql in TEXTS {
        both.say(sql)?;
    }
    // However long the number is.
    let wanted = both
        .direct
        .query("SELECT CONNECTION_ID() AS me FROM conf.strange WHERE FALSE")?;
    for number in [7, 4_294_967_294_u32] {
        let sql = format!(
            "SELECT IF(1,CAST({number} AS UNSIGNED),CONNECTION_ID()) AS me FROM conf.strange WHERE FALSE"
        );
        let found = both.direct.query(&sql)?;
        expect(found == wanted, || {
            format!("{number}:\n{found}\ninstead of\n{wanted}")
        })?;
    }
    for group in KEEPING.iter().chain(own) {
        both.disturb()?;
        for sql in *group {
            both.say_at_once(sql)?;
        }
        both.reset()?;
    }
    Ok(())
}

const PREPARED: &[&str] = &[
    "SELECT CONNECTION_ID() = ? AS mine, CONNECTION_ID() > 0",
    "INSERT INTO conf.owners (owner) VALUES (CONNECTION_ID() + ? - ?)",
    "SELECT owner = ? AS mine FROM conf.owners WHERE owner = CONNECTION_ID()",
    "SELECT CONNECTION_ID() = ? AS mine, ROW_COUNT() AS n",
];

fn in_prepared(vendor: Vendor, [server, twin]: [&Server; 2], proxy: &Proxy) -> Outcome {
    let mut both = Both::log_in(twin, proxy)?;
    for sql in PREPARED {
        both.disturb()?;
        let (wanted, found) = (both.direct.prepare(sql)?, both.client.prepare(sql)?);
        expect(found == wanted, || {
            format!("prepare {sql}:\n{found}\ninstead of\n{wanted}")
        })?;
    }
    let prepared = || -> Result<u64, String> {
        let said = server.root("SHOW GLOBAL STATUS LIKE 'Com_stmt_prepare'")?;
        said.split_whitespace()
            .last()
            .and_then(|n| n.parse().ok())
            .ok_or_else(|| format!("no number in {said}"))
    };
    let execute = |nth: usize, sql: &str, raw: &mut Raw| {
        let params = sql.matches('?').count();
        let number = u64::from(raw.id).to_le_bytes();
        // No NULL, types follow: BIGINT UNSIGNED each.
        let bound = [
            &[0, 1][..],
            &[8, 0x80].repeat(params),
            &number.repeat(params),
        ]
        .concat();
        raw.execute(nth, 0, &bound)
    };
    for round in 0..6 {
        for (nth, sql) in PREPARED
            .iter()
            .enumerate()
            .take(if round == 0 { 4 } else { 3 })
        {
            both.disturb()?;
            let (wanted, found) = (
                execute(nth, sql, &mut both.direct)?,
                execute(nth, sql, &mut both.client)?,
            );
            expect(found == wanted, || {
                format!("{vendor}, round {round}: {sql}:\n{found}\ninstead of\n{wanted}")
            })?;
        }
        both.say("DELETE FROM conf.owners WHERE owner = {me}")?;
    }
    // On a connection that is there it is prepared once.
    let before = prepared()?;
    for _ in 0..12 {
        execute(0, PREPARED[0], &mut both.client)?;
    }
    let more = prepared()? - before;
    expect(more <= 2, || {
        format!("{vendor}: {more} were prepared anew for 12 executions")
    })
}

/// Servers let nobody else choose a number.
fn given(vendor: Vendor, twin: &Server, proxy: &Proxy) -> Outcome {
    let mut both = Both::log_in(twin, proxy)?;
    let prepared = "SELECT CONNECTION_ID() + 0 AS n";
    let (wanted, found) = (
        both.direct.prepare(prepared)?,
        both.client.prepare(prepared)?,
    );
    expect(found == wanted, || {
        format!("{vendor}: {found}\ninstead of\n{wanted}")
    })?;
    for sql in [
        "SET @@pseudo_thread_id = 4711",
        "SELECT @@pseudo_thread_id, CONNECTION_ID() + 0",
        "SELECT CONNECTION_ID()",
        "SET @x = CONNECTION_ID()",
        "SELECT @x",
    ] {
        both.say_at_once(sql)?;
    }
    let (wanted, found) = (
        both.direct.execute(0, 0, &[])?,
        both.client.execute(0, 0, &[])?,
    );
    expect(found == wanted, || {
        format!("{vendor}: what was prepared before says {found}\ninstead of\n{wanted}")
    })?;
    both.reset()?;
    both.say("SELECT @@pseudo_thread_id = {me} AS mine, CONNECTION_ID() = {me} AS same")
}
