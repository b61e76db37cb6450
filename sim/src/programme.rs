//! A client's life: random statements, and what each answer must be.

mod becoming;
mod bulk;
mod cursor;
mod expiry;
mod having;
mod killing;
mod lines;
mod manners;
mod naming;
mod own;
mod prepared;
mod reading;
mod savepoint;
mod schema;
mod several;
mod uploading;
mod xa;

use crate::belongings::{Belongings, Ground};
use crate::chance::Chance;
use crate::client::{Broken, Client, Due, Reply, Row};
use crate::judge::{Fate, Judge};
use crate::mind::{SCHEMAS, SERVERS_CHARSET};
use crate::server::{COURIER, LOAD, MIRROR, SLEEPER};
use killing::Fire;
use lines::Moment;
pub(crate) use manners::Manners;
use naming::Named;
use net::{NetError, Refused};
use own::Own;
use prepared::{Bound, Statement};
use rt::{Address, Rt};
use schema::Refusal;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;
use xa::Orphan;

/// No command takes longer, whatever breaks.
const PATIENCE: Duration = Duration::from_secs(600);
/// Where nothing breaks but the mirror and all connections are opened at once, nothing takes
/// longer.
const SOON: Duration = Duration::from_secs(4);
/// Statement that every client asks alike.
pub(crate) const SAME: &str = "SELECT 'same' FROM state";
/// Of a row of `big`, so many bytes are certain.
const ROW_LEN_MIN: u64 = 110;
/// A client may be sent so much before it has to wait for more.
const AT_ONCE: u64 = 100_000;
const USERS: [&str; 2] = ["miller", "baker"];
/// latin1, utf8mb3, utf8mb4, and utf8mb4 as only MySQL 8 has it: logins have room for a byte.
const CHARSETS: [u16; 4] = [8, 33, 45, 255];

/// The session is over.
struct Over;
type Goes<T = ()> = Result<T, Over>;

struct Session<'a> {
    who: String,
    judge: &'a Judge,
    rt: &'a Rt,
    chance: &'a mut Chance,
    /// Tags made so far by this client.
    tags: &'a mut u32,
    /// XA transactions of this client that were prepared, and not ended as far as it knows.
    orphans: &'a mut Vec<Orphan>,
    client: Client,
    own: Own,
    /// Inserted by the open transaction.
    pending: Vec<String>,
    /// By name, oldest first: how many of these there were.
    savepoints: Vec<(&'static str, usize)>,
    /// Server and connection of the open transaction, once an answer has told.
    spot: Option<(String, String)>,
    /// Lines of the log that the transaction has seen.
    moment: Vec<Moment>,
    /// Whether the transaction is one that said that it only reads, where reads have servers of
    /// their own.
    reading: bool,
    /// When this session began.
    began: rt::Instant,
    prepared: Vec<Statement>,
    /// A prepared INSERT.
    inserter: Option<bulk::Inserter>,
    /// Collation of its login.
    charset: u16,
    /// Statements that the session has prepared in SQL, by name.
    named: Named,
    /// Whether the session has said something that nobody understands: its statements may stay
    /// where that was said.
    pinned: bool,
    /// Whether the session has a temporary table.
    drawn: bool,
    /// Whether the session has said what its next transaction is to be, and ended none since.
    announced: bool,
    manners: Manners,
    /// Whether the session has more than variables; of one that has not, it is known where its
    /// statements go.
    has_belongings: bool,
    /// Its transaction was reported lost: the proxy must end the session.
    lost: bool,
    /// Belongings of the session besides variables, and what a server of its own would have.
    twin: Belongings,
    ground: Ground,
    proxy: &'a Address,
    user: &'static str,
    /// Somebody is about to end what it runs, or it.
    under_fire: Option<Fire>,
    /// FOUND_ROWS() is of SQL_CALC_FOUND_ROWS.
    calculated: bool,
    /// Its connection is its own, from one end to the other.
    through: bool,
    /// Cursors, tables and locks that it has, and what nobody knows.
    keeps: u32,
    /// The last statement that was answered has left something of which a server has to be asked.
    leaves: bool,
    /// Statements since one that may have made an id.
    since_insert: u32,
    /// Whether the session was told that its connection to a server is gone.
    told: bool,
    /// Whether what the session ran was ended. If that was on the way to its connection, what it
    /// had there went with it.
    interrupted: bool,
    /// Refusal of what was said last.
    refused: Option<Refusal>,
    /// Its server was lost over the last statement, as the proxy has said: no server shows that as
    /// an error of it.
    broke: bool,
    /// Whether the client can handle a password that has expired.
    able: bool,
    /// When it began with a password that was good, or set one.
    renewed: rt::Instant,
    /// When it said something last.
    asked: rt::Instant,
    /// The writer wants a new password of it.
    stranded: bool,
}

/// Lives the sessions of one client.
pub(crate) async fn live(
    rt: Rt,
    judge: Rc<Judge>,
    proxy: Address,
    number: u64,
    manners: Manners,
    mut chance: Chance,
) {
    let (mut tags, mut orphans) = (0, Vec::new());
    for _ in 0..chance.between(1, 3) {
        session(
            &rt,
            &judge,
            &proxy,
            (number, manners),
            &mut chance,
            (&mut tags, &mut orphans),
        )
        .await;
        rt.sleep(Duration::from_millis(chance.below(100))).await;
    }
}

async fn session(
    rt: &Rt,
    judge: &Judge,
    proxy: &Address,
    (number, manners): (u64, Manners),
    chance: &mut Chance,
    (tags, orphans): (&mut u32, &mut Vec<Orphan>),
) {
    let who = format!("client {number}");
    let through = manners.courier && chance.percent(60);
    let sleeps = manners.sleeper && chance.percent(80);
    let able = if manners.sleeper && chance.percent(65) {
        wire::caps::EXPIRED_PASSWORDS
    } else {
        0
    };
    let user = match () {
        () if through => COURIER,
        () if sleeps => SLEEPER,
        () => *chance.one_of(&USERS[..manners.users]),
    };
    let charset = *chance.one_of(&CHARSETS);
    let schema = if chance.percent(70) || manners.cached {
        Some(*chance.one_of(&SCHEMAS))
    } else {
        None
    };
    let entered = rt
        .timeout(
            PATIENCE,
            Client::log_in(rt, proxy, user, schema, charset, able, chance),
        )
        .await;
    let client = match entered {
        Ok(Ok(client)) => client,
        Ok(Err(Refused::Net(error))) if manners.breaks => {
            return judge.excuse(&who, &format!("cannot log in: {error}"));
        }
        Ok(Err(Refused::Server {
            code: 2013 | 9001,
            message,
            ..
        })) if through => {
            return judge.excuse(&who, &format!("was not let in: {message}"));
        }
        Ok(Err(Refused::Server {
            code: 1049,
            message,
            ..
        })) if through && schema == manners.missing[0] || manners.is_nowhere(schema) => {
            return judge.tell(&who, &format!("was not let in: {message}"));
        }
        Ok(Err(refused)) => return judge.accuse(&who, &format!("was not let in: {refused}")),
        Err(_) => return judge.accuse(&who, "the login never ends"),
    };
    judge.tell(
        &who,
        &format!("is in as {user}, schema {schema:?}, collation {charset}"),
    );
    let own = Own::new(schema.unwrap_or(""), charset);
    let has_belongings = chance.percent(60);
    let mut session = Session {
        who,
        judge,
        rt,
        chance,
        tags,
        orphans,
        client,
        own,
        pending: Vec::new(),
        savepoints: Vec::new(),
        spot: None,
        moment: Vec::new(),
        reading: false,
        began: rt.now(),
        prepared: Vec::new(),
        inserter: None,
        charset,
        named: Named::default(),
        pinned: false,
        drawn: false,
        announced: false,
        manners,
        has_belongings,
        lost: false,
        twin: Belongings::default(),
        ground: Ground::default(),
        calculated: false,
        proxy,
        user,
        under_fire: None,
        through,
        keeps: 0,
        leaves: false,
        since_insert: u32::MAX,
        told: false,
        interrupted: false,
        refused: None,
        broke: false,
        able: able != 0,
        renewed: rt.now(),
        asked: rt.now(),
        stranded: false,
    };
    if session.through && session.begin_through().await.is_err() {
        return;
    }
    // A fresh client sees the defaults.
    if session.state(false).await.is_ok() && session.end_orphans().await.is_ok() {
        for _ in 0..session.chance.between(5, 30) {
            if session.step().await.is_err() {
                break;
            }
        }
    }
    // What was not committed by now never will be.
    session.forget_pending();
}

impl Session<'_> {
    async fn step(&mut self) -> Goes {
        let open = self.own.in_transaction;
        if self.is_somewhere_unknown() && self.chance.percent(25) {
            return self.use_schema().await;
        }
        if self.may_set_password() && self.chance.percent(12) {
            return self.set_password().await;
        }
        if self.chance.percent(30) {
            return self.having().await;
        }
        if self.chance.percent(8) {
            return self.lines().await;
        }
        if self.manners.split.is_some()
            && !open
            && self.own.autocommit
            && !self.through
            && self.chance.percent(7)
        {
            return self.read_only().await;
        }
        match self.chance.below(100 + self.manners.kills) {
            0..=3 if self.client.several => self.several().await,
            4 if !self.client.several => self.several_at_once().await,
            0..=7 => self.few().await,
            8..=11 => self.many_few().await,
            16 | 17 | 99 if open || !self.own.autocommit => self.savepoint().await,
            99 if self.chance.percent(30) => self.savepoint().await,
            12..=17 => self.same().await,
            18..=32 => self.state(false).await,
            33..=38 => self.state(true).await,
            39..=43 => self.big().await,
            44..=55 if !open => self.begin().await,
            44..=51 => self.commit().await,
            52..=55 => self.roll_back().await,
            59..=62 if self.client.bulk => self.many_rows().await,
            56..=62 => self.insert().await,
            63..=65 => self.upload().await,
            66..=76 => self.set().await,
            77..=80 => self.use_schema().await,
            81..=83 => self.prepare().await,
            84..=86 => self.execute().await,
            87..=89 => self.by_name().await,
            90 | 91 => self.with_cursor().await,
            92 => self.close().await,
            93 if self.chance.percent(50) => self.become_another().await,
            93 => self.reset().await,
            94 if !open && self.own.autocommit => self.xa().await,
            94 => self.ask("PING", &[0x0E], Due::Text).await.map(drop),
            95 if self.chance.percent(15) => self.assume().await,
            95 => self.mistake().await,
            96 => self.leave().await,
            98 if !open && self.own.autocommit => self.xa().await,
            97 | 100.. if !self.through && self.user != SLEEPER => self.under_fire().await,
            _ => {
                self.rt
                    .sleep(Duration::from_micros(self.chance.below(20_000)))
                    .await;
                Ok(())
            }
        }
    }

    /// A command and its answer. `None` is an error that a fault explains, after which the session
    /// goes on.
    async fn ask(&mut self, words: &str, payload: &[u8], due: Due) -> Goes<Option<Reply>> {
        self.judge.tell(&self.who, words);
        self.say_where(words);
        self.asked = self.rt.now();
        let answer = self
            .rt
            .timeout(PATIENCE, self.client.ask(payload, due))
            .await;
        let took = self.rt.now() - self.asked;
        let soon = !self.manners.mirror || !self.manners.calm || took < SOON;
        self.judge.check(soon, &self.who, || {
            format!("{words}: answered after {took:?}, where nothing but the mirror takes its time")
        });
        self.heard(words, answer)
    }

    fn heard(
        &mut self,
        words: &str,
        answer: Result<Result<Reply, Broken>, rt::Elapsed>,
    ) -> Goes<Option<Reply>> {
        (self.refused, self.broke) = (None, false);
        match answer {
            Err(_) => self
                .judge
                .accuse(&self.who, &format!("{words}: never answered")),
            Ok(Err(_)) if self.under_fire == Some(Fire::Session) => {
                self.judge.tell(&self.who, "is over")
            }
            Ok(Err(Broken::Protocol(what))) => {
                self.judge.accuse(&self.who, &format!("{words}: {what}"))
            }
            Ok(Err(Broken::Net(_))) if self.lost => {}
            Ok(Err(Broken::Net(error))) => self.closed(words, &error),
            Ok(Ok(_)) if self.lost => self.judge.accuse(
                &self.who,
                &format!("{words}: answered although the transaction is lost"),
            ),
            Ok(Ok(reply)) => {
                let failed = matches!(reply, Reply::Err { .. });
                if !failed {
                    self.judge.was_answered();
                    (self.told, self.interrupted) = (false, false);
                }
                // In a transaction, and while the connection is kept for something else, be it an
                // insert's id, nobody asks what became of it before the end.
                self.since_insert = if may_insert(words) {
                    0
                } else {
                    self.since_insert.saturating_add(1)
                };
                let kept = self.own.in_transaction
                    || self.keeps > 0
                    || self.since_insert <= KEPT_FOR_AN_ID;
                self.leaves = failed || leaves_something(words) || self.leaves && kept;
                self.lost |= self.client.dismissed;
                self.count(words, &reply);
                return Ok(Some(reply));
            }
        }
        Err(Over)
    }

    /// The connection is over, and nobody says why. Right is that where a server has ended its own
    /// in a moment in which it would have ended this one. What SET TRANSACTION has announced keeps
    /// the connection to the next COMMIT, so its end is the session's, too.
    fn closed(&mut self, words: &str, error: &NetError) {
        let bound = self.stranded
            || self.announced
            || self.keeps > 0
            || self.own.in_transaction
            || !self.own.autocommit
            || self.leaves;
        // In the middle of a file there is no way on for who is interrupted.
        if self.interrupted || self.under_fire.is_some() && words.starts_with(LOAD) {
            self.judge.tell(&self.who, "is over");
        } else if self.manners.breaks
            || self.through
            || self.told
            || bound
            || self.client.dismissed
            || self.client.has_begun(error)
        {
            self.judge.excuse(&self.who, &format!("{words}: {error}"));
        } else {
            self.judge.left_silently(
                &self.who,
                format!("{words}: the session was closed in silence: {error}"),
            );
        }
    }

    /// Everything goes to one server, as it is said.
    async fn begin_through(&mut self) -> Goes {
        self.judge.hit("a session with nothing between", 1);
        (self.pinned, self.drawn) = (true, true);
        match self.query("SELECT CONNECTION_ID()").await? {
            Some(Reply::Rows(rows)) => {
                let number = rows.first().and_then(|row| row.first().cloned().flatten());
                self.client.number = number.and_then(|number| number.parse().ok()).unwrap_or(0);
                Ok(())
            }
            Some(Reply::Err { code, message }) => {
                self.complained("SELECT CONNECTION_ID()", code, &message);
                Err(Over)
            }
            other => {
                self.judge
                    .accuse(&self.who, &format!("SELECT CONNECTION_ID(): {other:?}"));
                Err(Over)
            }
        }
    }

    async fn query(&mut self, sql: &str) -> Goes<Option<Reply>> {
        self.twin.begin(sql);
        self.query_only(sql).await
    }

    async fn query_only(&mut self, sql: &str) -> Goes<Option<Reply>> {
        let mut payload = vec![0x03];
        payload.extend_from_slice(sql.as_bytes());
        self.ask(sql, &payload, Due::Text).await
    }

    /// An error answer to something that is right: a fault must explain it.
    fn complained(&mut self, words: &str, code: u16, message: &str) {
        if code == 1049 && self.is_unknown_there(words, message)
            || self.has_expired(words, code, message)
        {
            return;
        }
        let gone = matches!(code, 2013 | 9001 | 1053 | 2002 | 2003 | 2006);
        self.told |= gone;
        let what = format!("{words}: error {code}: {message}");
        if code == 1317 && self.under_fire.is_some() {
            self.interrupted = true;
            return self.judge.tell(&self.who, &what);
        }
        if gone {
            self.broke = true;
            self.judge.excuse(&self.who, &what)
        } else {
            self.judge.accuse(&self.who, &what)
        }
        // With a transaction's connection goes the session: whatever comes next must not be
        // answered.
        self.lost |= code == 2013 && self.own.in_transaction;
    }

    /// A statement without rows. What it changes is ours once it is acknowledged. `ends`: it
    /// commits what is pending.
    async fn run(&mut self, sql: &str, ends: bool, change: impl FnOnce(&mut Own)) -> Goes {
        if ends {
            for tag in &self.pending {
                self.judge.fate(tag, Fate::Unknown);
            }
        }
        let pending = if ends {
            std::mem::take(&mut self.pending)
        } else {
            Vec::new()
        };
        let reply = self.query(sql).await?;
        self.ran(sql, (ends, pending), change, reply);
        Ok(())
    }

    /// The answer to a statement without rows. `pending`: the tags that it commits, if it ends a
    /// transaction.
    fn ran(
        &mut self,
        sql: &str,
        (ends, pending): (bool, Vec<String>),
        change: impl FnOnce(&mut Own),
        reply: Option<Reply>,
    ) {
        match reply {
            Some(Reply::Ok) => {
                for tag in &pending {
                    self.judge.fate(tag, Fate::Acknowledged);
                }
                change(&mut self.own);
                if ends {
                    self.savepoints.clear();
                }
                if !self.own.in_transaction || ends {
                    self.leave_spot();
                }
            }
            Some(Reply::Err { code, message }) => self.complained(sql, code, &message),
            other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
    }

    /// Begins a transaction, sometimes one that reads nothing: it has the same answers wherever it is
    /// run.
    async fn begin(&mut self) -> Goes {
        self.run("BEGIN", true, Own::begin).await?;
        if !self.manners.moves || !self.own.in_transaction || self.chance.percent(50) {
            return Ok(());
        }
        for _ in 0..self.chance.between(1, 4) {
            self.insert().await?;
        }
        self.commit().await
    }

    async fn roll_back(&mut self) -> Goes {
        self.forget_pending();
        self.run("ROLLBACK", true, Own::end).await?;
        self.announced &= self.own.in_transaction;
        Ok(())
    }

    async fn commit(&mut self) -> Goes {
        self.run("COMMIT", true, Own::end).await?;
        self.announced &= self.own.in_transaction;
        Ok(())
    }

    fn forget_pending(&mut self) {
        for tag in self.pending.drain(..) {
            self.judge.fate(&tag, Fate::Never);
        }
    }

    fn tag(&mut self) -> String {
        *self.tags += 1;
        format!("{}-{}", self.who.replace("client ", "c"), self.tags)
    }

    /// Rows of which each must carry our tag, and come from where this session's statements have to
    /// go.
    fn rows(
        &mut self,
        sql: &str,
        tag: &str,
        place: (usize, usize),
        reply: Option<Reply>,
    ) -> ControlFlow<(), Vec<Row>> {
        let rows = match reply {
            Some(Reply::Rows(rows)) => rows,
            Some(Reply::Err { code, message }) => {
                self.complained(sql, code, &message);
                return ControlFlow::Break(());
            }
            other => {
                self.judge.accuse(&self.who, &format!("{sql}: {other:?}"));
                return ControlFlow::Break(());
            }
        };
        for row in &rows {
            let value = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
            if value(0) != tag {
                self.judge
                    .accuse(&self.who, &format!("{sql}: somebody else's row: {row:?}"));
                return ControlFlow::Break(());
            }
            let here = (value(place.1), value(place.0));
            self.judge.check(here.0 != MIRROR, &self.who, || {
                format!("{sql}: the answer to a copy: {row:?}")
            });
            let right = self.place_of(sql);
            self.judge
                .check(right.is_none_or(|right| here.0 == right), &self.who, || {
                    format!("{sql}: went to server {} instead of {right:?}", here.0)
                });
            self.may_be_answered(sql, &here.0);
            if self.own.in_transaction {
                match &self.spot {
                    None => self.spot = Some(here),
                    Some(spot) if *spot != here && self.manners.moves && !self.reading => {
                        self.spot = Some(here);
                    }
                    Some(spot) => {
                        self.judge.check(*spot == here, &self.who, || {
                            format!("{sql}: the transaction moved from {spot:?} to {here:?}")
                        });
                    }
                }
            }
        }
        ControlFlow::Continue(rows)
    }

    /// Its transaction is over.
    fn leave_spot(&mut self) {
        self.spot = None;
        self.moment.clear();
    }

    async fn few(&mut self) -> Goes {
        let tag = self.tag();
        let schema = if self.manners.missing != [None; 2] && self.chance.percent(10) {
            self.any_schema()
        } else {
            String::new()
        };
        let sql = format!("SELECT '{tag}' FROM {schema}few");
        self.plain(&sql, &tag, 1 + tag.len() % 3).await
    }

    /// Short reads one after another, which others may send meanwhile, too.
    async fn many_few(&mut self) -> Goes {
        let prepared = self.chance.percent(40);
        for _ in 0..self.chance.between(5, 25) {
            if prepared {
                self.execute().await?
            } else {
                self.few().await?
            }
        }
        Ok(())
    }

    async fn big(&mut self) -> Goes {
        let tag = self.tag();
        let n = self.chance.between(1, 3000);
        // Who reads slowly keeps a connection that others may wait for; that would be taken for the
        // mirror's doing.
        let slow = self.chance.percent(50) && !(self.manners.mirror && self.manners.calm);
        if slow {
            self.client.rest = Some((
                self.chance.between(1, 400),
                Duration::from_micros(self.chance.below(20_000)),
            ));
        }
        let sql = format!("SELECT '{tag}' FROM big LIMIT {n}");
        let began = self.rt.now();
        let done = self
            .plain(&sql, &tag, usize::try_from(n).unwrap_or(0))
            .await;
        self.client.rest = None;
        let (took, rate) = (self.rt.now() - began, self.manners.bytes_per_second);
        if rate > 0 && done.is_ok() && self.client.compression.is_none() {
            // What is sent at once is paid for afterwards.
            let paid = (n * ROW_LEN_MIN).saturating_sub(AT_ONCE);
            let least = Duration::from_millis(paid * 1000 / rate);
            let whole = self.client.rows as u64 == n;
            self.judge.check(took >= least || !whole, &self.who, || {
                format!("{sql}: {rate} bytes per second, and {took:?} instead of {least:?}")
            });
            if paid > 0 && whole {
                self.judge.hit("a client throttled", 1);
            }
        }
        done
    }

    async fn plain(&mut self, sql: &str, tag: &str, n: usize) -> Goes {
        let reply = self.query(sql).await?;
        self.is_plain(sql, tag, n, reply);
        Ok(())
    }

    fn is_plain(&mut self, sql: &str, tag: &str, n: usize, reply: Option<Reply>) {
        // With autocommit off, reading begins a transaction.
        if matches!(reply, Some(Reply::Rows(_))) {
            self.own.use_tables();
        }
        if let ControlFlow::Continue(rows) = self.rows(sql, tag, (1, 2), reply) {
            self.judge.check(rows.len() == n, &self.who, || {
                format!("{sql}: {} rows instead of {n}", rows.len())
            });
        }
    }

    /// Checks that what the connection has is what this client has set, and nobody else.
    async fn state(&mut self, on_master: bool) -> Goes {
        let tag = self.tag();
        let sql = format!(
            "SELECT '{tag}' FROM state{}",
            if on_master { " FOR UPDATE" } else { "" }
        );
        // What programs have set may not be told yet: a copy cannot have it.
        if self.manners.mirror && !self.has_belongings && !self.own.in_transaction && !self.through
        {
            self.judge.expect_copy(&tag, self.own.of_copy());
        }
        let reply = self.query(&sql).await?;
        self.is_state(&sql, &tag, reply);
        Ok(())
    }

    fn is_state(&mut self, sql: &str, tag: &str, reply: Option<Reply>) {
        if let ControlFlow::Continue(rows) = self.rows(sql, tag, (1, 2), reply) {
            let told: Vec<String> = rows
                .first()
                .into_iter()
                .flatten()
                .skip(3)
                .map(|v| v.clone().unwrap_or_default())
                .collect();
            let own = self.own.report();
            self.judge.check(told == own, &self.who, || {
                format!("{sql}: the connection has {told:?}, the client has {own:?}")
            });
        }
    }

    /// All clients ask the same, and a rule lets the answer be used again: by those who have set
    /// the same, and nobody else.
    async fn same(&mut self) -> Goes {
        let reply = self.query(SAME).await?;
        if let ControlFlow::Continue(rows) = self.rows(SAME, "same", (1, 2), reply) {
            let told: Vec<String> = rows
                .first()
                .into_iter()
                .flatten()
                .skip(3)
                .map(|v| v.clone().unwrap_or_default())
                .collect();
            let own = self.own.report();
            self.judge.check(told == own, &self.who, || {
                format!("{SAME}: somebody else's answer {told:?}, the client has {own:?}")
            });
        }
        Ok(())
    }

    async fn insert(&mut self) -> Goes {
        let tag = self.tag();
        let sql = format!("INSERT INTO log VALUES ('{tag}')");
        self.insert_by(&sql, tag).await
    }

    /// An insert of this tag, however it is said.
    async fn insert_by(&mut self, sql: &str, tag: String) -> Goes {
        let alone = self.own.autocommit && !self.own.in_transaction;
        self.judge
            .fate(&tag, if alone { Fate::Unknown } else { Fate::Never });
        let reply = self.query(sql).await?;
        self.inserted(sql, tag, reply);
        Ok(())
    }

    fn inserted(&mut self, sql: &str, tag: String, reply: Option<Reply>) {
        let alone = self.own.autocommit && !self.own.in_transaction;
        match reply {
            Some(Reply::Ok) if alone => {
                self.is_not_stranded(sql);
                self.own.use_tables();
                self.judge.fate(&tag, Fate::Acknowledged);
            }
            Some(Reply::Ok) => {
                self.own.use_tables();
                self.pending.push(tag);
            }
            Some(Reply::Err { code, message }) => {
                self.complained(sql, code, &message);
                // What is executed by name is prepared first where it runs: its connection is kept
                // by nothing, and the next one says what is true by then.
                let by_name = sql.starts_with("EXECUTE ");
                self.stranded |= self.refused.is_some() && code == 1820 && !by_name;
                if self.refused.is_some() {
                    self.judge.fate(&tag, Fate::Never);
                }
            }
            other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
    }

    /// COM_RESET_CONNECTION: all is as after the login, but for the schema and, with MySQL, the
    /// character set.
    async fn reset(&mut self) -> Goes {
        self.forget_pending();
        let reply = self.ask("COM_RESET_CONNECTION", &[0x1F], Due::Text).await?;
        match reply {
            Some(Reply::Ok) => {
                let charset = if self.manners.mariadb && !self.through {
                    self.charset
                } else {
                    SERVERS_CHARSET
                };
                self.forget(Own {
                    role: self.own.role,
                    ..Own::new(&self.own.schema, charset)
                });
            }
            // It was said before anything was asked, as to who had state at a server that was taken
            // out of service.
            Some(Reply::Err { code, message }) if self.client.dismissed => {
                self.complained("COM_RESET_CONNECTION", code, &message);
                return Err(Over);
            }
            other => self
                .judge
                .accuse(&self.who, &format!("COM_RESET_CONNECTION: {other:?}")),
        }
        Ok(())
    }

    /// Forgets all that the session had: it has nothing any more but this.
    fn forget(&mut self, own: Own) {
        self.own = own;
        self.savepoints.clear();
        self.announced = false;
        self.leave_spot();
        self.pinned = self.through;
        self.stranded = false;
        self.keeps = 0;
        self.prepared.clear();
        self.inserter = None;
        self.named.clear();
        self.calculated = false;
        (self.twin, self.ground) = (Belongings::default(), Ground::default());
    }

    /// A statement that no server understands.
    async fn mistake(&mut self) -> Goes {
        self.pinned = true;
        let reply = self.query("SELEKT 1").await?;
        self.is_mistake("SELEKT 1", reply);
        Ok(())
    }

    /// Calls what sets a role, of which nobody tells, and goes away: nobody else has it.
    async fn assume(&mut self) -> Goes {
        let sql = format!("CALL assume('{}')", self.tag());
        match self.query(&sql).await? {
            Some(Reply::Ok) => {}
            Some(Reply::Err { code, message }) => self.complained(&sql, code, &message),
            other => self.judge.accuse(&self.who, &format!("{sql}: {other:?}")),
        }
        Err(Over)
    }

    /// Goes away in the middle of an answer.
    async fn leave(&mut self) -> Goes {
        let tag = self.tag();
        let sql = if self.chance.percent(50) {
            format!("SELECT '{tag}' FROM big LIMIT 2000")
        } else if self.chance.percent(50) {
            format!("SELECT '{tag}' FROM few")
        } else {
            self.judge.fate(
                &tag,
                if self.own.autocommit && !self.own.in_transaction {
                    Fate::Unknown
                } else {
                    Fate::Never
                },
            );
            format!("INSERT INTO log VALUES ('{tag}')")
        };
        self.judge.tell(&self.who, &format!("{sql}, and leaves"));
        let mut payload = vec![0x03];
        payload.extend_from_slice(sql.as_bytes());
        let _gone_anyway = self.client.send(&payload).await;
        for _ in 0..self.chance.below(20) {
            let packet = self
                .rt
                .timeout(Duration::from_millis(100), self.client.packet())
                .await;
            if !matches!(packet, Ok(Ok(_))) {
                break;
            }
        }
        Err(Over)
    }
}

/// `mysql-auto_increment_delay_multiplex`, with the one behind which the id is asked for.
const KEPT_FOR_AN_ID: u32 = 5 + 1;

fn may_insert(words: &str) -> bool {
    words.starts_with("INSERT ") || words.starts_with("EXECUTE ")
}

/// Whether a server has to be asked what came of it.
fn leaves_something(words: &str) -> bool {
    [
        "CALL ",
        "INSERT INTO fires",
        "INSERT INTO hides",
        "SET @",
        "BEGIN",
        "SET autocommit",
    ]
    .iter()
    .any(|begin| words.starts_with(begin))
        || words.contains(" INTO @")
}
