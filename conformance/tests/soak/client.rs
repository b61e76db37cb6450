//! A client of a soak: random statements, and what its session has to be after each.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use conformance::servers::Vendor;
use mysql_async::prelude::Queryable;
use mysql_async::{ChangeUserOpts, Compression, Conn, Error, Row, Value};

use crate::ledger::{Fate, Ledger};

/// Nothing takes longer, whatever breaks.
const PATIENCE: Duration = Duration::from_secs(90);

/// Choices of one participant.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64, who: u64) -> Self {
        Self(seed ^ who.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    /// From 0 to `n` - 1.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)]
    }
}

/// Why a session ends.
enum Over {
    /// A fault explains it, or it was asked for.
    Excused,
    /// An error that is no end: the statement did nothing.
    Refused(u16),
}

type Goes<T = ()> = Result<T, Over>;
type Text = Option<String>;

/// Settings of this client.
#[derive(Debug, Clone, PartialEq)]
struct Own {
    schema: Text,
    zone: String,
    mode: String,
    length: u64,
    /// None where only the server knows.
    collation: Text,
    isolation: String,
    a: Text,
    b: Text,
    insert_id: u64,
}

/// Values that every session begins with.
#[derive(Debug, Clone)]
struct Defaults {
    mode: String,
    length: u64,
    collation: String,
}

struct Session<'a> {
    who: String,
    ledger: &'a Ledger,
    vendor: Vendor,
    chance: &'a mut Chance,
    tags: &'a mut u64,
    conn: Conn,
    own: Own,
    defaults: Defaults,
    /// Whether the session began when nothing breaks any more.
    calm: bool,
    /// Inserted by the open transaction.
    pending: Vec<String>,
    in_transaction: bool,
    /// Rows of its temporary table.
    temporary: Option<u64>,
    /// The last statements, for the words of a violation.
    said: VecDeque<String>,
}

/// So many statements are told with a violation.
const TOLD: usize = 40;

/// Sessions one after another, until it is over.
pub(crate) async fn live(ledger: Arc<Ledger>, vendor: Vendor, port: u16, number: u32, seed: u64) {
    let mut chance = Chance::new(seed, number.into());
    let mut tags = 0;
    while !ledger.over.load(Ordering::SeqCst) {
        if let Err(Over::Refused(code)) =
            session(&ledger, vendor, port, number, &mut chance, &mut tags).await
        {
            ledger.accuse(format!("client {number}: error {code} where none can be"));
        }
        tokio::time::sleep(Duration::from_millis(chance.below(60))).await;
    }
}

async fn session(
    ledger: &Ledger,
    vendor: Vendor,
    port: u16,
    number: u32,
    chance: &mut Chance,
    tags: &mut u64,
) -> Goes {
    let calm = !ledger.rough.load(Ordering::SeqCst);
    let schema = match chance.below(3) {
        0 => None,
        1 => Some("conf".to_owned()),
        _ => Some("conf2".to_owned()),
    };
    let opts = conformance::library::options(port)
        .db_name(schema.clone())
        // Its answers are packed. What it sends is not: where its buffer has a little less room
        // left than a text needs that does not get shorter, mysql_common sends a frame without its
        // end, and a session ends (error 1157).
        .compression((chance.below(4) == 0).then(Compression::none));
    let who = format!("client {number}");
    let conn = match tokio::time::timeout(PATIENCE, Conn::new(opts)).await {
        Ok(Ok(conn)) => conn,
        Ok(Err(error)) => return Err(judged(ledger, calm, &who, "login", &error)),
        Err(_) => {
            ledger.accuse(format!("{who}: its login never ends"));
            return Err(Over::Excused);
        }
    };
    let nothing = Defaults {
        mode: String::new(),
        length: 0,
        collation: String::new(),
    };
    let own = Own {
        schema,
        zone: "SYSTEM".to_owned(),
        mode: String::new(),
        length: 0,
        collation: None,
        isolation: "REPEATABLE-READ".to_owned(),
        a: None,
        b: None,
        insert_id: 0,
    };
    let mut session = Session {
        who,
        ledger,
        vendor,
        chance,
        tags,
        conn,
        own,
        defaults: nothing,
        calm,
        pending: Vec::new(),
        in_transaction: false,
        temporary: None,
        said: VecDeque::new(),
    };
    let lived = session.live().await;
    // What was not committed by now never will be.
    session.forget_pending();
    if lived.is_ok() && session.chance.below(2) == 0 {
        let _either_way = session.conn.disconnect().await;
    }
    Ok(())
}

/// Is this error one that a fault explains?
fn judged(ledger: &Ledger, calm: bool, who: &str, words: &str, error: &Error) -> Over {
    let code = match error {
        Error::Server(error) => error.code,
        _ => 0,
    };
    // A lost connection, none in time, a shutdown, killed, OFFLINE_HARD; waits for a lock are
    // nobody's fault. 1235: the connection that knew the warnings is gone.
    let faults = [
        0, 1053, 1152, 1158, 1159, 1160, 1161, 1235, 1317, 1927, 1040, 2002, 2003, 2006, 2013,
        9001, 3169,
    ];
    if matches!(code, 1205 | 1213) {
        return Over::Refused(code);
    }
    if calm || !faults.contains(&code) {
        ledger.accuse(format!("{who}: no fault explains this: {words}: {error}"));
    } else {
        ledger.excuse(&error.to_string());
    }
    Over::Excused
}

fn text(value: Value) -> Text {
    match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Value::Int(n) => Some(n.to_string()),
        Value::UInt(n) => Some(n.to_string()),
        other => Some(format!("{other:?}")),
    }
}

impl Session<'_> {
    async fn live(&mut self) -> Goes {
        self.learn_defaults().await?;
        for _ in 0..10 + self.chance.below(50) {
            if self.ledger.over.load(Ordering::SeqCst) {
                return Ok(());
            }
            match self.step(0).await {
                // Only the statement failed, or the server has ended the transaction for a lock.
                Err(Over::Refused(1205 | 1213)) => return Ok(()),
                done => done?,
            }
        }
        Ok(())
    }

    async fn learn_defaults(&mut self) -> Goes {
        let rows = self
            .rows("SELECT @@sql_mode, @@group_concat_max_len, @@collation_connection")
            .await?;
        let row = rows.into_iter().next().unwrap_or_default();
        let at = |n: usize| row.get(n).cloned().flatten().unwrap_or_default();
        self.defaults = Defaults {
            mode: at(0),
            length: at(1).parse().unwrap_or(0),
            collation: at(2),
        };
        self.begin_anew(self.own.schema.clone());
        Ok(())
    }

    /// As after a login.
    fn begin_anew(&mut self, schema: Text) {
        self.own = Own {
            schema,
            zone: "SYSTEM".to_owned(),
            mode: self.defaults.mode.clone(),
            length: self.defaults.length,
            collation: Some(self.defaults.collation.clone()),
            isolation: "REPEATABLE-READ".to_owned(),
            a: None,
            b: None,
            insert_id: 0,
        };
    }

    async fn step(&mut self, depth: u32) -> Goes {
        match self.chance.below(100) {
            0..=11 => self.few().await,
            12..=22 => self.report(false).await,
            23..=30 => self.report(true).await,
            31..=34 => self.big().await,
            35..=46 => self.set().await,
            47..=54 => self.insert().await,
            55..=60 => self.insert_id().await,
            61..=63 => self.counts().await,
            64..=66 => self.warnings().await,
            67..=69 => self.error().await,
            70..=73 => self.prepared().await,
            74 | 75 => self.several().await,
            76..=78 => self.same().await,
            79 => self.routine().await,
            80 => self.procedure().await,
            81 | 82 => self.trigger().await,
            83 if depth == 0 => self.reset().await,
            84 if depth == 0 => self.change_user().await,
            85..=89 if depth < 3 && !self.in_transaction => Box::pin(self.transaction(depth)).await,
            90 | 91 if depth < 3 && self.temporary.is_none() => {
                Box::pin(self.with_temporary_table(depth)).await
            }
            92 if depth == 0 => Box::pin(self.with_lock(depth)).await,
            93 if depth == 0 => self.with_locked_table().await,
            94 => self.sleep().await,
            95 if depth == 0 => self.leave().await,
            96 => self.prepared_in_sql().await,
            _ => {
                tokio::time::sleep(Duration::from_millis(self.chance.below(25))).await;
                Ok(())
            }
        }
    }

    fn tag(&mut self) -> String {
        *self.tags += 1;
        format!("{}-{}", self.who.replace("client ", "c"), self.tags)
    }

    fn accuse(&self, words: &str) {
        let before: Vec<&str> = self.said.iter().map(String::as_str).collect();
        self.ledger.accuse(format!(
            "{} (session {}): {words}\n      after {}",
            self.who,
            self.conn.id(),
            before.join("\n            ")
        ));
    }

    fn check(&self, holds: bool, words: impl FnOnce() -> String) {
        if !holds {
            self.accuse(&words());
        }
    }

    fn note(&mut self, sql: &str) {
        if self.said.len() == TOLD {
            self.said.pop_front();
        }
        self.said.push_back(sql.to_owned());
    }

    /// An error: one that a fault explains, or a violation.
    fn failed(&mut self, words: &str, error: &Error) -> Over {
        let before: Vec<&str> = self.said.iter().map(String::as_str).collect();
        let words = format!("{words}, after {}", before.join("\n            "));
        judged(
            self.ledger,
            self.calm,
            &format!("{} (session {})", self.who, self.conn.id()),
            &words,
            error,
        )
    }

    async fn rows(&mut self, sql: &str) -> Goes<Vec<Vec<Text>>> {
        self.note(sql);
        match tokio::time::timeout(PATIENCE, self.conn.query::<Row, _>(sql)).await {
            Ok(Ok(rows)) => {
                self.ledger.answered.fetch_add(1, Ordering::Relaxed);
                Ok(rows
                    .into_iter()
                    .map(|row| row.unwrap().into_iter().map(text).collect())
                    .collect())
            }
            Ok(Err(error)) => Err(self.failed(sql, &error)),
            Err(_) => {
                self.accuse(&format!("{sql}: never answered"));
                Err(Over::Excused)
            }
        }
    }

    async fn run(&mut self, sql: &str) -> Goes {
        self.rows(sql).await.map(drop)
    }

    fn expect_rows(&self, sql: &str, found: &[Vec<Text>], wanted: &[Vec<Text>]) {
        self.check(found == wanted, || {
            format!("{sql}: {found:?} instead of {wanted:?}")
        });
    }

    async fn few(&mut self) -> Goes {
        for _ in 0..=self.chance.below(6) {
            let tag = self.tag();
            let sql = format!("SELECT '{tag}'");
            let rows = self.rows(&sql).await?;
            self.expect_rows(&sql, &rows, &[vec![Some(tag)]]);
        }
        Ok(())
    }

    async fn big(&mut self) -> Goes {
        let (tag, n) = (self.tag(), 1 + self.chance.below(1000));
        let sql = format!(
            "SELECT '{tag}', REPEAT('x', 100) FROM conf.numbers a, conf.numbers b LIMIT {n}"
        );
        let rows = self.rows(&sql).await?;
        let right = rows.len() as u64 == n
            && rows
                .iter()
                .all(|row| row.first() == Some(&Some(tag.clone())));
        self.check(right, || {
            format!("{sql}: {} rows, {:?} is the last", rows.len(), rows.last())
        });
        Ok(())
    }

    /// Checks that what the connection has is what this client has set, and nobody else.
    async fn report(&mut self, on_writer: bool) -> Goes {
        let tag = self.tag();
        let isolation = if self.vendor == Vendor::MariaDb {
            "tx_isolation"
        } else {
            "transaction_isolation"
        };
        let id = if self.chance.below(3) == 0 {
            "LAST_INSERT_ID()"
        } else {
            "'-'"
        };
        let writer = if on_writer {
            " FROM conf.one LOCK IN SHARE MODE"
        } else {
            ""
        };
        let sql = format!(
            "SELECT '{tag}', DATABASE(), @@time_zone, @@sql_mode, @@group_concat_max_len, @@collation_connection, @@{isolation}, @a, @b, {id}{writer}"
        );
        let rows = self.rows(&sql).await?;
        let mut row = rows.into_iter().next().unwrap_or_default();
        let own = &self.own;
        let mut wanted = vec![
            Some(tag),
            own.schema.clone(),
            Some(own.zone.clone()),
            Some(own.mode.clone()),
        ];
        wanted.extend([
            Some(own.length.to_string()),
            own.collation.clone(),
            Some(own.isolation.clone()),
            own.a.clone(),
            own.b.clone(),
        ]);
        wanted.push(Some(if id == "'-'" {
            "-".to_owned()
        } else {
            own.insert_id.to_string()
        }));
        if own.collation.is_none()
            && let Some(collation) = row.get_mut(5)
        {
            self.own.collation = collation.take();
            if let Some(wanted) = wanted.get_mut(5) {
                *wanted = None;
            }
        }
        self.check(row == wanted, || {
            format!("{sql}: the connection has {row:?}, the client has {wanted:?}")
        });
        Ok(())
    }

    async fn set(&mut self) -> Goes {
        let (n, tag) = (self.chance.below(10), self.tag());
        match self.chance.below(16) {
            0 => {
                let zone = format!("+0{n}:00");
                self.run(&format!("SET time_zone = '{zone}'")).await?;
                self.own.zone = zone;
            }
            1 => {
                self.run("SET SESSION time_zone = DEFAULT").await?;
                "SYSTEM".clone_into(&mut self.own.zone);
            }
            2 => {
                let mode =
                    self.chance
                        .one_of(&["", "ANSI_QUOTES", "STRICT_ALL_TABLES", "NO_ZERO_DATE"]);
                self.run(&format!("SET sql_mode = '{mode}'")).await?;
                mode.clone_into(&mut self.own.mode);
            }
            3 => {
                self.run(&format!(
                    "SET SESSION group_concat_max_len = {}, @a = '{tag}'",
                    2000 + n
                ))
                .await?;
                (self.own.length, self.own.a) = (2000 + n, Some(tag));
            }
            4 => {
                self.run("SET group_concat_max_len = @@group_concat_max_len + 1")
                    .await?;
                self.own.length += 1;
            }
            5 => {
                let names = self
                    .chance
                    .one_of(&["latin1", "utf8mb4", "utf8mb3", "binary"]);
                self.run(&format!("SET NAMES {names}")).await?;
                self.own.collation = None;
            }
            6 => {
                self.run("SET NAMES utf8mb4 COLLATE utf8mb4_bin").await?;
                self.own.collation = Some("utf8mb4_bin".to_owned());
            }
            7 if !self.in_transaction => {
                let (said, shown) = [
                    ("READ COMMITTED", "READ-COMMITTED"),
                    ("SERIALIZABLE", "SERIALIZABLE"),
                    ("REPEATABLE READ", "REPEATABLE-READ"),
                ][usize::try_from(n % 3).unwrap_or(0)];
                self.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {said}"))
                    .await?;
                shown.clone_into(&mut self.own.isolation);
            }
            8 => {
                self.run(&format!("SET @a = '{tag}'")).await?;
                self.own.a = Some(tag);
            }
            9 => {
                self.run("SET @b = CONCAT(@a, '!')").await?;
                self.own.b = self.own.a.as_ref().map(|a| format!("{a}!"));
            }
            10 => {
                self.run(&format!("SELECT '{tag}' INTO @b")).await?;
                self.own.b = Some(tag);
            }
            11 => {
                let rows = self.rows(&format!("SELECT @a := '{tag}'")).await?;
                self.expect_rows("SELECT @a :=", &rows, &[vec![Some(tag.clone())]]);
                self.own.a = Some(tag);
            }
            12 => {
                self.run("SET @a = NULL, @b = NULL").await?;
                (self.own.a, self.own.b) = (None, None);
            }
            13 | 14 => {
                let schema = self.chance.one_of(&["conf", "conf2"]);
                self.run(&format!("USE {schema}")).await?;
                self.own.schema = Some(schema.to_owned());
            }
            _ => {
                self.run("SET SESSION TRANSACTION READ WRITE").await?;
            }
        }
        Ok(())
    }

    async fn insert(&mut self) -> Goes {
        let tag = self.tag();
        let sql = format!("INSERT INTO conf.log VALUES ('{tag}')");
        self.ledger.fate(
            &tag,
            if self.in_transaction {
                Fate::Never
            } else {
                Fate::Unknown
            },
        );
        self.run(&sql).await?;
        self.check(self.conn.affected_rows() == 1, || {
            format!("{sql}: {} rows", self.conn.affected_rows())
        });
        if self.in_transaction {
            self.pending.push(tag.clone());
        } else {
            self.ledger.fate(&tag, Fate::Acknowledged);
        }
        if self.chance.below(3) == 0 {
            // It reads its own write.
            let sql = format!("SELECT tag FROM conf.log WHERE tag = '{tag}'");
            let rows = self.rows(&sql).await?;
            self.expect_rows(&sql, &rows, &[vec![Some(tag)]]);
        }
        Ok(())
    }

    async fn insert_id(&mut self) -> Goes {
        let tag = self.tag();
        self.run(&format!("INSERT INTO conf.ids (tag) VALUES ('{tag}')"))
            .await?;
        let id = self.conn.last_insert_id().unwrap_or_default();
        self.check(id > 0, || "an insert without an id".to_owned());
        self.own.insert_id = id;
        if self.chance.below(3) == 0 {
            tokio::time::sleep(Duration::from_millis(self.chance.below(30))).await;
        }
        if self.chance.below(2) == 0 {
            self.few().await?;
        }
        let sql = "SELECT LAST_INSERT_ID()";
        let rows = self.rows(sql).await?;
        self.expect_rows(sql, &rows, &[vec![Some(id.to_string())]]);
        let sql = "SELECT tag FROM conf.ids WHERE id = LAST_INSERT_ID()";
        let rows = self.rows(sql).await?;
        self.expect_rows(sql, &rows, &[vec![Some(tag)]]);
        Ok(())
    }

    async fn counts(&mut self) -> Goes {
        let n = 1 + self.chance.below(9);
        self.run(&format!("SELECT id FROM conf.numbers LIMIT {n}"))
            .await?;
        let rows = self.rows("SELECT FOUND_ROWS()").await?;
        self.expect_rows("FOUND_ROWS()", &rows, &[vec![Some(n.to_string())]]);
        let values = vec!["('-')"; usize::try_from(n).unwrap_or(1)].join(", ");
        self.run(&format!("INSERT INTO conf.ids (tag) VALUES {values}"))
            .await?;
        self.own.insert_id = self.conn.last_insert_id().unwrap_or_default();
        let rows = self.rows("SELECT ROW_COUNT()").await?;
        self.expect_rows("ROW_COUNT()", &rows, &[vec![Some(n.to_string())]]);
        let rows = self.rows("SELECT CONNECTION_ID()").await?;
        self.expect_rows(
            "CONNECTION_ID()",
            &rows,
            &[vec![Some(self.conn.id().to_string())]],
        );
        Ok(())
    }

    async fn warnings(&mut self) -> Goes {
        let tag = self.tag();
        let rows = self.rows(&format!("SELECT '{tag}' + 0")).await?;
        self.check(self.conn.get_warnings() == 1, || {
            format!(
                "{} warnings about {tag}: {rows:?}",
                self.conn.get_warnings()
            )
        });
        if self.chance.below(2) == 0 {
            tokio::time::sleep(Duration::from_millis(self.chance.below(10))).await;
        }
        self.diagnosed("SHOW WARNINGS", &format!("'{tag}'")).await
    }

    /// Checks what the server says of the last statement. Who is kept for nothing else may lose it
    /// with the connection.
    async fn diagnosed(&mut self, sql: &str, of: &str) -> Goes {
        let rows = self.rows(sql).await?;
        let told = rows
            .first()
            .and_then(|row| row.get(2))
            .cloned()
            .flatten()
            .unwrap_or_default();
        let lost = rows.is_empty() && !self.calm;
        self.check(lost || rows.len() == 1 && told.contains(of), || {
            format!("{sql}: {rows:?} of {of}")
        });
        Ok(())
    }

    async fn error(&mut self) -> Goes {
        let tag = self.tag().replace('-', "_");
        self.note("an error");
        match tokio::time::timeout(
            PATIENCE,
            self.conn.query_drop(format!("SELECT * FROM conf.no_{tag}")),
        )
        .await
        {
            Ok(Err(Error::Server(error))) if error.code == 1146 => {
                self.check(error.message.contains(&tag), || {
                    format!("somebody else's error: {error}, not of {tag}")
                });
            }
            Ok(Err(error)) => return Err(self.failed("no table", &error)),
            other => self.accuse(&format!("no error of no_{tag}: {other:?}")),
        }
        self.diagnosed("SHOW ERRORS", &tag).await
    }

    async fn prepared(&mut self) -> Goes {
        let (tag, n) = (self.tag(), self.chance.below(1000));
        let sql = self.chance.one_of(&[
            "SELECT ?, ?, @@time_zone, @a",
            "SELECT ?, ?, @@time_zone, @a FROM conf.one LOCK IN SHARE MODE",
        ]);
        self.note(&format!("prepared: {sql}"));
        match tokio::time::timeout(PATIENCE, self.conn.exec::<Row, _, _>(sql, (&tag, n))).await {
            Ok(Ok(rows)) => {
                let rows: Vec<Vec<Text>> = rows
                    .into_iter()
                    .map(|row| row.unwrap().into_iter().map(text).collect())
                    .collect();
                let wanted = [vec![
                    Some(tag),
                    Some(n.to_string()),
                    Some(self.own.zone.clone()),
                    self.own.a.clone(),
                ]];
                self.expect_rows(sql, &rows, &wanted);
                Ok(())
            }
            Ok(Err(error)) => Err(self.failed(sql, &error)),
            Err(_) => {
                self.accuse(&format!("{sql}: never answered"));
                Err(Over::Excused)
            }
        }
    }

    async fn prepared_in_sql(&mut self) -> Goes {
        let tag = self.tag();
        self.run(&format!("PREPARE mine FROM 'SELECT ''{tag}'', @a'"))
            .await?;
        if self.chance.below(2) == 0 {
            self.few().await?;
        }
        let rows = self.rows("EXECUTE mine").await?;
        self.expect_rows(
            "EXECUTE mine",
            &rows,
            &[vec![Some(tag), self.own.a.clone()]],
        );
        self.run("DEALLOCATE PREPARE mine").await
    }

    async fn several(&mut self) -> Goes {
        let (one, two) = (self.tag(), self.tag());
        let sql = format!("SELECT '{one}'; SET @a = '{two}'; SELECT '{two}', @a");
        self.note(&sql);
        let told = async {
            let mut result = self.conn.query_iter(&sql).await?;
            let mut told = Vec::new();
            while !result.is_empty() {
                for row in result.collect::<Row>().await? {
                    told.push(row.unwrap().into_iter().map(text).collect::<Vec<_>>());
                }
            }
            Ok(told)
        };
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(rows)) => {
                // The library stops at a result without rows.
                let first = vec![Some(one)];
                self.check(rows.first() == Some(&first), || format!("{sql}: {rows:?}"));
                self.own.a = Some(two);
                Ok(())
            }
            Ok(Err(error)) => Err(self.failed(&sql, &error)),
            Err(_) => {
                self.accuse(&format!("{sql}: never answered"));
                Err(Over::Excused)
            }
        }
    }

    /// All clients ask the same, and answers are kept: for those who have set the same.
    async fn same(&mut self) -> Goes {
        let sql = "SELECT n, DATABASE(), @@time_zone, @@sql_mode FROM conf.same";
        let rows = self.rows(sql).await?;
        let own = &self.own;
        let wanted = vec![
            Some("1".to_owned()),
            own.schema.clone(),
            Some(own.zone.clone()),
            Some(own.mode.clone()),
        ];
        self.expect_rows(sql, &rows, &[wanted]);
        Ok(())
    }

    async fn routine(&mut self) -> Goes {
        let tag = self.tag();
        self.run(&format!("DO conf.remember('{tag}')")).await?;
        self.own.a = Some(tag);
        self.report(true).await
    }

    async fn procedure(&mut self) -> Goes {
        let zone = format!("-0{}:00", 1 + self.chance.below(9));
        self.run(&format!("CALL conf.zone('{zone}')")).await?;
        self.own.zone = zone;
        self.report(self.chance.0.is_multiple_of(2)).await
    }

    async fn trigger(&mut self) -> Goes {
        let tag = self.tag();
        self.run(&format!("INSERT INTO conf.fires VALUES ('{tag}')"))
            .await?;
        self.own.b = Some(tag);
        self.report(self.chance.0.is_multiple_of(2)).await
    }

    async fn reset(&mut self) -> Goes {
        self.note("COM_RESET_CONNECTION");
        match tokio::time::timeout(PATIENCE, self.conn.reset()).await {
            Ok(Ok(_)) => {
                self.begin_anew(self.own.schema.clone());
                self.own.collation = None;
                self.report(false).await
            }
            Ok(Err(error)) => Err(self.failed("COM_RESET_CONNECTION", &error)),
            Err(_) => {
                self.accuse("COM_RESET_CONNECTION: never answered");
                Err(Over::Excused)
            }
        }
    }

    async fn change_user(&mut self) -> Goes {
        let (user, password) = [("app", "secret"), ("other", "geheim")]
            [usize::try_from(self.chance.below(2)).unwrap_or(0)];
        let schema =
            ["conf", "conf2"][usize::try_from(self.chance.below(2)).unwrap_or(0)].to_owned();
        let opts = ChangeUserOpts::new()
            .with_user(Some(user.to_owned()))
            .with_pass(Some(password.to_owned()))
            .with_db_name(Some(schema.clone()));
        self.note("COM_CHANGE_USER");
        match tokio::time::timeout(PATIENCE, self.conn.change_user(opts)).await {
            Ok(Ok(())) => {
                self.begin_anew(Some(schema));
                self.own.collation = None;
                let rows = self.rows("SELECT CURRENT_USER()").await?;
                self.expect_rows("CURRENT_USER()", &rows, &[vec![Some(format!("{user}@%"))]]);
                self.report(false).await
            }
            Ok(Err(error)) => Err(self.failed("COM_CHANGE_USER", &error)),
            Err(_) => {
                self.accuse("COM_CHANGE_USER: never answered");
                Err(Over::Excused)
            }
        }
    }

    fn forget_pending(&mut self) {
        for tag in self.pending.drain(..) {
            self.ledger.fate(&tag, Fate::Never);
        }
    }

    async fn transaction(&mut self, depth: u32) -> Goes {
        let begin = self.chance.one_of(&["BEGIN", "START TRANSACTION"]);
        self.run(begin).await?;
        self.in_transaction = true;
        for _ in 0..1 + self.chance.below(6) {
            let done = self.step(depth + 1).await;
            if done.is_err() {
                self.in_transaction = false;
                return done;
            }
        }
        self.in_transaction = false;
        if self.chance.below(4) == 0 {
            self.forget_pending();
            return self.run("ROLLBACK").await;
        }
        let pending = std::mem::take(&mut self.pending);
        for tag in &pending {
            self.ledger.fate(tag, Fate::Unknown);
        }
        self.run("COMMIT").await?;
        for tag in &pending {
            self.ledger.fate(tag, Fate::Acknowledged);
        }
        Ok(())
    }

    async fn with_temporary_table(&mut self, depth: u32) -> Goes {
        self.run("CREATE TEMPORARY TABLE conf.mine (tag VARCHAR(40)) ENGINE=MEMORY")
            .await?;
        self.temporary = Some(0);
        for _ in 0..self.chance.below(4) {
            let tag = self.tag();
            self.run(&format!("INSERT INTO conf.mine VALUES ('{tag}')"))
                .await?;
            self.temporary = self.temporary.map(|n| n + 1);
            self.step(depth + 1).await?;
            let rows = self
                .rows("SELECT COUNT(*), MAX(tag LIKE 'c%') FROM conf.mine")
                .await?;
            let n = self.temporary.map(|n| n.to_string());
            self.expect_rows(
                "its temporary table",
                &rows,
                &[vec![n, Some("1".to_owned())]],
            );
        }
        self.run("DROP TEMPORARY TABLE conf.mine").await?;
        self.temporary = None;
        Ok(())
    }

    /// One lock for all: who is told that it is his has it alone.
    async fn with_lock(&mut self, depth: u32) -> Goes {
        let rows = self.rows("SELECT GET_LOCK('common', 0)").await?;
        if rows == [[Some("0".to_owned())]] {
            return Ok(());
        }
        self.expect_rows("GET_LOCK()", &rows, &[vec![Some("1".to_owned())]]);
        let who = self.tag();
        self.ledger.lock(&who);
        for _ in 0..self.chance.below(4) {
            self.step(depth + 1).await?;
        }
        let alone = self.ledger.unlock(&who);
        let rows = self.rows("SELECT RELEASE_LOCK('common')").await?;
        self.expect_rows("RELEASE_LOCK()", &rows, &[vec![Some("1".to_owned())]]);
        self.check(alone, || "somebody else had the lock meanwhile".to_owned());
        Ok(())
    }

    async fn with_locked_table(&mut self) -> Goes {
        self.run("LOCK TABLES conf.locked WRITE").await?;
        // Somebody may have gone before he had cleaned up.
        self.run("DELETE FROM conf.locked").await?;
        let tag = self.tag();
        self.run(&format!("INSERT INTO conf.locked VALUES ('{tag}')"))
            .await?;
        let sql = "SELECT tag FROM conf.locked";
        let rows = self.rows(sql).await?;
        self.expect_rows(sql, &rows, &[vec![Some(tag)]]);
        self.run("DELETE FROM conf.locked").await?;
        self.run("UNLOCK TABLES").await
    }

    /// Long enough for a KILL to find it.
    async fn sleep(&mut self) -> Goes {
        let tag = self.tag();
        let sql = format!("SELECT '{tag}', SLEEP(0.1)");
        let rows = self.rows(&sql).await?;
        self.check(
            rows.first().and_then(|row| row.first()) == Some(&Some(tag)),
            || format!("{sql}: {rows:?}"),
        );
        Ok(())
    }

    /// Goes in the middle of something.
    async fn leave(&mut self) -> Goes {
        let tag = self.tag();
        let sql = match self.chance.below(3) {
            0 => format!(
                "SELECT '{tag}', REPEAT('x', 1000) FROM conf.numbers a, conf.numbers b LIMIT 5000"
            ),
            1 => format!("SELECT '{tag}', SLEEP(0.2)"),
            _ => {
                self.ledger.fate(&tag, Fate::Unknown);
                format!("INSERT INTO conf.log VALUES ('{tag}')")
            }
        };
        let wait = Duration::from_micros(self.chance.below(20_000));
        let _gone = tokio::time::timeout(wait, self.conn.query_drop(sql)).await;
        Err(Over::Excused)
    }
}
