//! Statements that one server finishes, beside the same over tables in one place.

use conformance::partitions::{ask, shown};
use conformance::proxy::Driver;
use conformance::servers::{Vendor, vendors};
use conformance::trials::expect;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Value};

use super::{CONDITIONS, EXACT, Outcome, World, executed, world};

/// Those that a server finishes, in which every row has its place.
const FINISHED: &[&str] = &[
    "SELECT COUNT(DISTINCT a) FROM t",
    "SELECT COUNT(DISTINCT b), COUNT(DISTINCT h, d), SUM(DISTINCT a) FROM t WHERE k > 7",
    "SELECT SUM(a) / COUNT(c) + 1, ROUND(AVG(c), 2), MAX(k) - MIN(k) FROM t",
    "SELECT d, COUNT(DISTINCT b) n FROM t WHERE k > 20 GROUP BY d HAVING n > 1 ORDER BY n DESC, d",
    "SELECT a, SUM(c) * 2 FROM t GROUP BY a HAVING SUM(c) > AVG(k) ORDER BY a",
    "SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY k), SUM(c) OVER (PARTITION BY d ORDER BY k) FROM t ORDER BY k",
    "SELECT k, RANK() OVER w FROM t WINDOW w AS (PARTITION BY f ORDER BY h, k) ORDER BY k",
    "SELECT a FROM t UNION SELECT k FROM t WHERE k < 12 ORDER BY a",
    "(SELECT k FROM t WHERE a = 1) UNION ALL (SELECT k FROM t WHERE a = 2 LIMIT 1000) ORDER BY k LIMIT 9",
    "SELECT k FROM t WHERE a = (SELECT MAX(a) FROM t) ORDER BY k",
    "SELECT k FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.a = x.a AND y.k > x.k AND y.d = x.d) ORDER BY k",
    "SELECT k FROM t WHERE k NOT IN (SELECT y.k FROM t y WHERE y.a > 3) ORDER BY k",
    "SELECT s.a, s.n FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) s ORDER BY s.a",
    "WITH s AS (SELECT a, SUM(k) AS n FROM t GROUP BY a) SELECT s.a, s.n, COUNT(*) FROM s JOIN t ON t.a = s.a GROUP BY s.a, s.n ORDER BY s.a",
    "WITH t AS (SELECT k FROM t WHERE a = 1) SELECT COUNT(*), MAX(k) FROM t",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT n.i, t.b FROM n JOIN t ON t.k = n.i ORDER BY n.i",
    "SELECT t.k, u.k, u.v FROM t JOIN u ON t.a = u.v WHERE t.k < 40 AND u.k > 3 ORDER BY t.k, u.k",
    "SELECT t.k, u.k FROM t LEFT JOIN u ON t.a = u.v AND u.k < 9 WHERE u.k IS NULL ORDER BY t.k",
    "SELECT u.k, t.h FROM t RIGHT JOIN u ON t.k = u.v AND t.a > 2 ORDER BY u.k",
    "SELECT t.k, p.name FROM t LEFT JOIN p ON p.id = t.a AND p.name <> 'x' ORDER BY t.k, p.name, HEX(p.name)",
    "SELECT p.id, COUNT(t.k) FROM p LEFT JOIN t ON t.a = p.id AND t.d > '2008-01-01' GROUP BY p.id ORDER BY p.id",
    "SELECT t.*, p.* FROM t JOIN p ON p.id = t.k ORDER BY t.k, HEX(p.name)",
    "SELECT k FROM t WHERE k IN (SELECT k FROM u WHERE v > 2) ORDER BY k",
    "SELECT * FROM u WHERE k IN (SELECT MAX(k) FROM u GROUP BY v) ORDER BY k",
    "SELECT * FROM u x WHERE EXISTS (SELECT 1 FROM p WHERE p.id <> x.k) ORDER BY k",
    "SELECT fl, COUNT(*) FROM u GROUP BY fl + 1 HAVING COUNT(DISTINCT k) > 0 ORDER BY fl",
    "SELECT COUNT(DISTINCT ts), COUNT(DISTINCT la), COUNT(DISTINCT st), MAX(bg) + 1, MIN(ze) + 0 FROM u WHERE ts > '2008-12-24 00:00:00'",
    "SELECT x.k, COUNT(DISTINCT x.b) FROM t x JOIN t y ON x.a = y.a GROUP BY x.k ORDER BY x.k LIMIT 5",
    "SELECT whole.t.a, COUNT(DISTINCT whole.t.h) FROM whole.t WHERE whole.t.k BETWEEN 10 AND 200 GROUP BY whole.t.a ORDER BY 1",
    "SELECT k, b, COUNT(DISTINCT a) FROM t GROUP BY k ORDER BY k",
    "SELECT a, GROUP_CONCAT(k ORDER BY c DESC, k) FROM t GROUP BY a ORDER BY a",
    "SELECT COUNT(*) FROM t, p",
    "SELECT DISTINCT a, COUNT(*) FROM t GROUP BY a, d ORDER BY a, COUNT(*)",
    "SELECT COUNT(DISTINCT k) FROM t WHERE k IN (1, 2, 4, 5)",
    "SELECT COUNT(DISTINCT k) FROM t WHERE at < NOW() AND b COLLATE utf8mb4_bin = 'a'",
    "SELECT k FROM u ORDER BY js, k",
    "SELECT k, n FROM t ORDER BY n, k",
    "SELECT d, COUNT(*) FROM t GROUP BY d ORDER BY d",
    "SELECT a, MIN(n) FROM t GROUP BY a ORDER BY MIN(n), a",
    "SELECT a, MAX(d) AS m FROM t GROUP BY a HAVING m > '2008-06-01' ORDER BY a",
    "SELECT n, COUNT(*) FROM t GROUP BY n HAVING n = 'x'",
    "SELECT k, SUM(a) OVER (PARTITION BY whole.t.d ORDER BY whole.t.k) AS s FROM t ORDER BY k",
    "(SELECT k, a FROM t) ORDER BY a, k LIMIT 7",
];

/// Those of which any order is right.
const FINISHED_IN_ANY_ORDER: &[&str] = &[
    "SELECT a, d, COUNT(*), SUM(c) FROM t GROUP BY a, d WITH ROLLUP",
    "SELECT d, COUNT(DISTINCT a) FROM t GROUP BY d",
    "SELECT d FROM t UNION SELECT dd FROM u WHERE v > 2",
];

/// Settings of a session that must not change any value that is copied.
const SETTINGS: &[&str] = &[
    "",
    "SET time_zone = '+05:30'",
    "SET NAMES latin1",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH'",
    "SET NAMES utf8mb4",
    "SET character_set_results = NULL",
    "SET NAMES utf8mb4, sql_select_limit = 17",
];

#[tokio::main(flavor = "current_thread")]
pub(super) async fn finished(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        let mut wrong = Vec::new();
        let all = FINISHED
            .iter()
            .map(|sql| (sql, true))
            .chain(FINISHED_IN_ANY_ORDER.iter().map(|sql| (sql, false)));
        let all: Vec<_> = all.collect();
        let settings = SETTINGS
            .iter()
            .filter(|set| vendor == Vendor::MariaDb || !set.contains("PAD_CHAR"));
        for set in settings {
            for conn in [&mut whole, &mut parts] {
                let set = if set.is_empty() { "DO 1" } else { set };
                conn.query_drop(set)
                    .await
                    .map_err(|error| error.to_string())?;
            }
            for (sql, in_order) in &all {
                if !in_order && set.contains("limit") {
                    continue;
                }
                let wanted = ask(&mut whole, sql).await;
                let found = ask(&mut parts, sql).await;
                let (mut wanted, mut found) = match (wanted, found) {
                    (Ok((_, wanted)), Ok((_, found))) => (wanted, found),
                    (Err(wanted), Err(found)) if wanted == found => continue,
                    (wanted, found) => {
                        let said = |answer: Result<_, String>| answer.err().unwrap_or_default();
                        let (wanted, found) = (said(wanted), said(found));
                        wrong.push(format!("{set}: {sql}: {found} instead of {wanted}"));
                        continue;
                    }
                };
                if !in_order {
                    wanted.sort();
                    found.sort();
                }
                if wanted != found {
                    let (found, wanted) = (shown(&found), shown(&wanted));
                    wrong.push(format!("{set}: {sql}:\n{found}\ninstead of\n{wanted}"));
                }
            }
        }
        expect(wrong.is_empty(), || {
            format!("{vendor}: {}:\n{}", wrong.len(), wrong.join("\n\n"))
        })?;
        counted(&world)?;
    }
    Ok(())
}

/// The table of numbers has seen what was finished.
fn counted(world: &World) -> Outcome {
    let told = world.proxy.admin(
        "SELECT finished > 30, rows_copied > 1000 FROM stats_mysql_shards WHERE table_name = 't'",
    )?;
    expect(told.split_whitespace().eq(["1", "1"]), || told.clone())
}

const FINISHING_AGGREGATES: &[&str] = &[
    "COUNT(DISTINCT b)",
    "COUNT(DISTINCT a, d)",
    "SUM(c) / COUNT(*)",
    "SUM(DISTINCT a)",
    "MAX(k) - MIN(a)",
    "CONCAT(MIN(g), '-', COUNT(*))",
    "IFNULL(AVG(c), 0) + 1",
    "SUM(k) * 2",
    "COUNT(*)",
    "MIN(d)",
];

const CONDITIONS_OF_X: &[&str] = &[
    "",
    " AND x.a IS NOT NULL",
    " AND x.k > 100",
    " AND x.b = 'A'",
    " AND x.k IN (3, 4, 5, 77)",
    " AND (x.h LIKE 'z%' OR x.c > 0)",
    " AND x.k < 0",
    " AND x.c > (SELECT AVG(c) FROM t)",
];

const CONDITIONS_OF_Y: &[&str] = &[
    "",
    " AND y.v > 2",
    " AND y.k < 30 AND y.v < x.k",
    " AND y.v IS NULL",
];

/// A SELECT that a server finishes, in which every row has its place.
fn finishing_select(below: &mut dyn FnMut(usize) -> usize) -> String {
    let exact = EXACT[below(EXACT.len() - 2)];
    let other = EXACT[below(EXACT.len() - 2)];
    let condition = CONDITIONS[below(CONDITIONS.len())];
    let of_x = CONDITIONS_OF_X[below(CONDITIONS_OF_X.len())];
    let of_y = CONDITIONS_OF_Y[below(CONDITIONS_OF_Y.len())];
    let join = ["JOIN", "LEFT JOIN"][below(2)];
    let limit = [
        String::new(),
        format!(" LIMIT {}, {}", below(20), below(40)),
    ][below(2)]
    .clone();
    let mut aggregate = || FINISHING_AGGREGATES[below(FINISHING_AGGREGATES.len())];
    let (one, two) = (aggregate(), aggregate());
    match below(7) {
        0 => format!(
            "SELECT {exact}, {one}, COUNT(DISTINCT {other}), {two} FROM t{condition} GROUP BY {exact} HAVING COUNT(DISTINCT k) + 1 > 2 ORDER BY {exact}{limit}"
        ),
        1 => format!(
            "SELECT x.k, x.h, y.k, y.la FROM t x {join} u y ON x.a = y.v{of_y} WHERE 1 = 1{of_x} ORDER BY x.k, y.k{limit}"
        ),
        2 => format!(
            "SELECT y.k, COUNT(x.k), COUNT(DISTINCT x.b), MIN(p.id) FROM u y {join} t x ON x.a = y.v{of_x} {join} p ON p.id = x.a WHERE y.k > 3 GROUP BY y.k ORDER BY y.k{limit}"
        ),
        3 => format!(
            "SELECT k, ROW_NUMBER() OVER (PARTITION BY {exact} ORDER BY k), SUM(c) OVER (PARTITION BY {other}) FROM t{condition} ORDER BY k{limit}"
        ),
        4 => format!(
            "SELECT a FROM t{condition} UNION SELECT x.k FROM t x WHERE x.k < 30{of_x} UNION SELECT v FROM u ORDER BY 1{limit}"
        ),
        5 => format!(
            "SELECT k FROM t x WHERE {exact} {} (SELECT {other} FROM t y WHERE y.k < {}){of_x} ORDER BY k{limit}",
            ["IN", "NOT IN"][below(2)],
            below(240),
            exact = exact.replace("t.", "x."),
            other = other.replace("t.", "y."),
        ),
        _ => format!(
            "WITH s AS (SELECT {exact} AS g, {one} AS n FROM t{condition} GROUP BY {exact}) SELECT s.n, x.k FROM s JOIN t x ON x.a <=> s.g WHERE 1 = 1{of_x} ORDER BY x.k, s.n{limit}"
        ),
    }
}

#[tokio::main(flavor = "current_thread")]
pub(super) async fn randomly_finished(driver: Driver) -> Outcome {
    let mut seed: u64 = if driver == Driver::Epoll { 21 } else { 22 };
    let mut below = |limit: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        for _ in 0..150 {
            let sql = finishing_select(&mut below);
            let wanted = ask(&mut whole, &sql).await.map(|(_, rows)| rows);
            let found = ask(&mut parts, &sql).await.map(|(_, rows)| rows);
            expect(wanted == found, || {
                let shown = |rows: &Result<Vec<_>, String>| match rows {
                    Ok(rows) => shown(rows),
                    Err(words) => words.clone(),
                };
                format!(
                    "{vendor}: {sql}:\n{}\ninstead of\n{}",
                    shown(&found),
                    shown(&wanted)
                )
            })?;
        }
    }
    Ok(())
}

/// Those whose values need several partitions when they are executed.
fn finished_with_values() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        (
            "SELECT COUNT(DISTINCT a) FROM t WHERE k > ?",
            vec![5.into()],
        ),
        (
            "SELECT d, COUNT(DISTINCT b) FROM t WHERE h <> ? GROUP BY d HAVING COUNT(DISTINCT b) > ? ORDER BY d LIMIT ?",
            vec!["it's \\".into(), 1.into(), 7.into()],
        ),
        (
            "SELECT SUM(a) / COUNT(*) FROM t WHERE at < ?",
            vec![Value::Date(2008, 12, 24, 10, 5, 0, 0)],
        ),
        (
            "SELECT t.k, p.name FROM t JOIN p ON p.id = t.a WHERE t.k < ? ORDER BY t.k, HEX(p.name)",
            vec![50.into()],
        ),
        (
            "SELECT t.k, u.k, u.v FROM t JOIN u ON t.k = u.k WHERE t.k = ? AND u.k = ?",
            vec![6.into(), 6.into()],
        ),
        (
            "SELECT t.k, u.k, u.v FROM t JOIN u ON t.k = u.k WHERE t.k = ? AND u.k = ?",
            vec![7.into(), 7.into()],
        ),
        (
            "SELECT k FROM t WHERE a IN (SELECT v FROM u WHERE k > ?) AND k <> ? ORDER BY k",
            vec![40.into(), 3.into()],
        ),
        (
            "SELECT k, ROW_NUMBER() OVER (ORDER BY k DESC) FROM t WHERE a = ? ORDER BY k",
            vec![3.into()],
        ),
    ]
}

#[tokio::main(flavor = "current_thread")]
pub(super) async fn finished_as_prepared(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        for (sql, values) in finished_with_values() {
            let wanted = executed(&mut whole, sql, values.clone()).await?;
            for _ in 0..2 {
                let found = executed(&mut parts, sql, values.clone()).await;
                let mut found = found.unwrap_or_else(|words| words);
                if let Some(rest) = found.strip_prefix('\n')
                    && let Some((columns, _)) = rest.split_once('\n')
                {
                    // No server has its tables: its columns are told when it is executed.
                    found = format!("{columns}\n{rest}");
                }
                expect(found == wanted, || {
                    format!("{vendor}: {sql}:\n{found}\ninstead of\n{wanted}")
                })?;
            }
        }
    }
    Ok(())
}

/// Runs for hours on the server that finishes it.
const ENDLESS: &str = "SELECT COUNT(DISTINCT a.k + b.k * c.k + d.k) FROM t a, t b, t c, t d";

const RUNNING: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%DISTINCT%millrace_4%' AND INFO NOT LIKE '%PROCESSLIST%'";

impl World {
    /// The server that finishes statements.
    fn scratch(&self) -> usize {
        usize::from(self.servers[0].vendor == Vendor::MySql)
    }

    /// Waits until the endless statement runs there, or does no more.
    async fn until_runs(&self, runs: bool) -> Outcome {
        let wanted = if runs { "1" } else { "0" };
        let server = &self.servers[self.scratch()];
        let mut told = String::new();
        for _ in 0..600 {
            told = server.root(RUNNING)?;
            if told.split_whitespace().last() == Some(wanted) {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Err(format!("{told} of them run instead of {wanted}"))
    }
}

/// The error of a statement.
async fn error_of(conn: &mut Conn, sql: &str) -> Result<String, String> {
    match ask(conn, sql).await {
        Ok((_, rows)) => Err(format!("{sql}: {}", shown(&rows))),
        Err(words) => Ok(words),
    }
}

/// No session sees a copy that was made for another statement.
async fn none_is_left(world: &World) -> Outcome {
    let [_, mut conn] = world.come_in().await?;
    for hostgroup in [0, 1].repeat(8) {
        let sql = format!("/* hostgroup={hostgroup} */ SELECT COUNT(*) FROM whole.millrace_1");
        let said = error_of(&mut conn, &sql).await?;
        expect(said.contains("doesn't exist"), || said.clone())?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
pub(super) async fn finished_or_not(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let mut world = world(driver, vendor)?;
        world
            .proxy
            .admin("SET mysql-multiplexing = 'true'; LOAD MYSQL VARIABLES TO RUNTIME")?;
        limited(&world).await?;
        named_twice(&world).await?;
        none_is_left(&world).await?;
        // KILL QUERY ends it, and leaves the session.
        let [_, mut conn] = world.come_in().await?;
        let [_, mut other] = world.come_in().await?;
        let id = conn.id();
        let running = tokio::spawn(async move {
            let said = error_of(&mut conn, ENDLESS).await;
            (
                said,
                ask(&mut conn, "SELECT COUNT(DISTINCT a) FROM t").await,
            )
        });
        world.until_runs(true).await?;
        let kill = format!("KILL QUERY {id}");
        other
            .query_drop(kill)
            .await
            .map_err(|error| error.to_string())?;
        let (said, after) = running.await.map_err(|error| error.to_string())?;
        let said = said?;
        expect(said.contains("1317"), || said.clone())?;
        after?;
        world.until_runs(false).await?;
        // So does a client that leaves.
        let [_, mut conn] = world.come_in().await?;
        let running = tokio::spawn(async move { error_of(&mut conn, ENDLESS).await });
        world.until_runs(true).await?;
        running.abort();
        world.until_runs(false).await?;
        none_is_left(&world).await?;
        // The server dies.
        let [_, mut conn] = world.come_in().await?;
        let running = tokio::spawn(async move { error_of(&mut conn, ENDLESS).await });
        world.until_runs(true).await?;
        let scratch = world.scratch();
        world.servers[scratch].kill();
        let said = running.await.map_err(|error| error.to_string())??;
        expect(said.contains("ERROR"), || said.clone())?;
    }
    Ok(())
}

/// A query of WITH that is named twice: MySQL cannot read a copy twice.
async fn named_twice(world: &World) -> Outcome {
    let [mut whole, mut parts] = world.come_in().await?;
    let sql = "WITH s AS (SELECT k, a FROM t WHERE k < 50) SELECT x.k, y.k FROM s x JOIN s y ON x.a = y.k ORDER BY x.k, y.k";
    let (_, wanted) = ask(&mut whole, sql).await?;
    match ask(&mut parts, sql).await {
        Ok((_, found)) => expect(found == wanted, || shown(&found)),
        Err(said) => expect(
            said.contains("write the query in place of its name"),
            || said.clone(),
        ),
    }
}

/// Limits are named, and `off` is.
async fn limited(world: &World) -> Outcome {
    let [_, mut conn] = world.come_in().await?;
    let big = "REPEAT('x', 600000)";
    world.servers[0].root(&format!(
        "CREATE TABLE whole.big (x LONGTEXT); INSERT INTO whole.big VALUES ({big}), ({big})"
    ))?;
    for (variable, value, usual, sql, words) in [
        (
            "max_rows",
            "100",
            "1000000",
            "SELECT COUNT(DISTINCT a) FROM t",
            "mysql-sharding_scratch_max_rows allows 100",
        ),
        (
            "max_MB",
            "1",
            "256",
            "SELECT COUNT(*) FROM t JOIN big ON x <> t.h",
            "mysql-sharding_scratch_max_MB allows 1",
        ),
    ] {
        let set = |value| {
            format!(
                "SET mysql-sharding_scratch_{variable} = {value}; LOAD MYSQL VARIABLES TO RUNTIME"
            )
        };
        world.proxy.admin(&set(value))?;
        let said = error_of(&mut conn, sql).await?;
        expect(said.contains(words), || said.clone())?;
        world.proxy.admin(&set(usual))?;
        ask(&mut conn, sql).await?;
    }
    for (sql, words) in [
        ("BEGIN", ""),
        ("SELECT 1 FROM p", ""),
        ("SELECT COUNT(DISTINCT a) FROM t", "a transaction is open"),
        ("COMMIT", ""),
        ("SELECT COUNT(DISTINCT a), @x FROM t", "HSCALE-1000"),
        (
            "SELECT t.k FROM t USE INDEX (PRIMARY) JOIN p ON p.id = t.a",
            "without the indexes",
        ),
    ] {
        match ask(&mut conn, sql).await {
            Err(said) => expect(!words.is_empty() && said.contains(words), || said.clone())?,
            Ok(_) => expect(words.is_empty(), || sql.to_owned())?,
        }
    }
    world
        .proxy
        .admin("SET mysql-sharding_scratch = 'off'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let said = error_of(&mut conn, "SELECT COUNT(DISTINCT a) FROM t").await?;
    expect(said.contains("SELECT DISTINCT the values"), || said.clone())?;
    let said = error_of(&mut conn, "SELECT t.k FROM t JOIN p ON p.id = t.a").await?;
    expect(said.contains("the plain table p"), || said.clone())?;
    let usual = ["map", "hostgroup"][world.scratch()];
    world.proxy.admin(&format!(
        "SET mysql-sharding_scratch = '{usual}'; LOAD MYSQL VARIABLES TO RUNTIME"
    ))?;
    Ok(())
}
