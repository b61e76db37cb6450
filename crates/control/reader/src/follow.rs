//! A server's log that is followed, over two connections: one that the log comes over, and one that
//! says when a transaction of it is visible. A transaction is in the log before others can read what
//! it wrote.

use binlog::{Log, Place, Row, Touched, Transaction, Watch};
use gtid::Set;
use line::{Failed, Line, Who};
use rt::local::Bell;
use rt::{Either, Instant, Rt};
use std::cell::RefCell;
use std::time::Duration;

/// A server with nothing to tell says so this often.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A server that is silent for longer is lost.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// One wait for transactions to be visible; then it is waited for again.
const WAIT_SECS: u32 = 2;
/// A server with nothing to tell is asked this often whether it still has what it has told.
const LOOK: Duration = Duration::from_secs(1);
/// A MariaDB that cannot read all of its log yet is asked again after this...
const SNAPSHOT_AGAIN: Duration = Duration::from_micros(500);
/// ...and believed to after this: places wrap around in files of more than 4 GiB.
const SNAPSHOT_MAX: Duration = Duration::from_secs(1);
/// Transactions that come less than this apart are told together...
const BUSY: Duration = Duration::from_millis(5);
/// ...at least this long after the ones before.
const GATHERED: Duration = Duration::from_millis(2);

/// Who is followed, and how.
#[derive(Debug, Clone)]
pub struct Server {
    /// Where.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// As whom. The account needs REPLICATION SLAVE.
    pub who: Who,
    /// Whether a MariaDB will do.
    pub may_be_mariadb: bool,
}

/// News of a server.
#[derive(Debug)]
pub enum Told {
    /// Beginning: the server is followed from here on, with all that it has executed.
    Begins(Set),
    /// These are visible now.
    Visible {
        /// Their GTIDs.
        gtids: Set,
        /// Tables that they have changed.
        touched: Touched,
        /// Their number.
        transactions: u64,
    },
}

/// News of one table of a server.
#[derive(Debug, Default)]
pub struct Changed {
    /// Rows that were changed, in order; whoever reads them from the server finds them so, or as
    /// somebody has changed them since.
    pub rows: Vec<Row>,
    /// A statement has named the table, or it is not known which ones it has: nothing is said of
    /// rows then.
    pub said: bool,
    /// End of the last transaction that was told, or of what is behind it and is none.
    pub place: Place,
}

/// Transactions that are in the log, and not told.
#[derive(Default)]
struct Pending {
    gtids: Set,
    touched: Touched,
    transactions: u64,
    /// End of the last one, or of what is behind it and is none.
    place: Place,
    /// Rows of the table that is watched.
    rows: Vec<Row>,
    said: bool,
}

/// Rows that may wait to be told.
const ROWS_WAIT_MAX: usize = 200_000;
/// While more wait, the log waits; it is looked again after this.
const ROOM_AGAIN: Duration = Duration::from_millis(20);

/// Follows a server until that ends, and says why it has.
pub async fn follow(rt: &Rt, server: &Server, tell: impl Fn(Told)) -> String {
    match begin(rt, server, None).await {
        Ok((log, waits, executed)) => {
            tell(Told::Begins(executed.clone()));
            let (pending, bell) = (RefCell::default(), Bell::new());
            let tell = |pending: Pending| {
                if pending.transactions > 0 {
                    tell(Told::Visible {
                        gtids: pending.gtids,
                        touched: pending.touched,
                        transactions: pending.transactions,
                    });
                }
            };
            let comes = come(rt, log, None, &pending, &bell);
            let goes = go(rt, (waits, executed), &pending, &bell, &tell);
            let (Either::Left(why) | Either::Right(why)) = rt::select(comes, goes).await;
            why
        }
        Err(why) => why,
    }
}

/// Follows one table of a server until that ends, and says why it has. `from`: what the server had
/// executed before, as it wrote it: `gtid_executed` or `gtid_binlog_pos`. `has_room`: whether more may
/// be told.
pub async fn follow_table(
    rt: &Rt,
    server: &Server,
    from: &str,
    watch: Watch,
    has_room: impl Fn() -> bool,
    tell: impl Fn(Changed),
) -> String {
    match begin(rt, server, Some(from)).await {
        Ok((log, waits, executed)) => {
            let (pending, bell) = (RefCell::default(), Bell::new());
            let tell = |pending: Pending| {
                tell(Changed {
                    rows: pending.rows,
                    said: pending.said,
                    place: pending.place,
                });
            };
            let watched: Watched<'_> = (watch, &has_room);
            let comes = come(rt, log, Some(watched), &pending, &bell);
            let goes = go(rt, (waits, executed), &pending, &bell, &tell);
            let (Either::Left(why) | Either::Right(why)) = rt::select(comes, goes).await;
            why
        }
        Err(why) => why,
    }
}

/// A table that is watched, and whether more may be told of it.
type Watched<'a> = (Watch, &'a dyn Fn() -> bool);

/// Logs in twice, and asks for the log from what is executed now on.
async fn begin(
    rt: &Rt,
    server: &Server,
    from: Option<&str>,
) -> Result<((Line, Log), Line, Set), String> {
    let open = async || {
        let opened = Line::open(rt, &server.host, server.port, &server.who).await;
        opened.map_err(|failed| failed.to_string())
    };
    let (mut log, mut waits) = (open().await?, open().await?);
    for line in [&mut log, &mut waits] {
        line.be_patient(SILENT_MAX);
    }
    let number = 1 << 31 | rt.random() as u32; // as no server is numbered
    if !server.may_be_mariadb && is_mariadb(&log) {
        return Err("it is a MariaDB, whose GTIDs readers have no words for".to_owned());
    }
    let (executed, command) = if is_mariadb(&log) {
        let executed = begins_mariadb(&mut log, from).await?;
        (executed, binlog::dump_from_state(number))
    } else {
        let executed = begins_mysql(rt, &mut log, &mut waits).await?;
        let known = from.map(str::parse).transpose();
        let known: Option<Set> = known.map_err(|error| format!("{error}"))?;
        let command = binlog::dump_from_gtids(number, known.as_ref().unwrap_or(&executed));
        (executed, command)
    };
    let failed = |failed: Failed| words(failed, &server.who.user);
    log.begin(&command).await.map_err(failed)?;
    // The first event is made up at once; a refusal comes in its place.
    let first = log.event().await.map_err(failed)?;
    // It names the file that the log is in.
    let mut known = Log::default();
    let read = known.follow(&first);
    read.map_err(|malformed| malformed.to_string())?;
    Ok(((log, known), waits, executed))
}

fn is_mariadb(line: &Line) -> bool {
    line.version().contains("MariaDB")
}

/// Adds what is to be done about it.
fn words(failed: Failed, user: &str) -> String {
    /// ER_SPECIFIC_ACCESS_DENIED_ERROR
    const NOT_ALLOWED: u16 = 1227;
    /// ER_ACCESS_DENIED_ERROR, by a MariaDB.
    const DENIED: u16 = 1045;
    match failed {
        Failed::Said {
            code: NOT_ALLOWED | DENIED,
            words,
        } => format!("the account '{user}' needs REPLICATION SLAVE there: {words}"),
        other => other.to_string(),
    }
}

/// The only row of an answer, as texts.
async fn row(line: &mut Line, sql: &str) -> Result<Vec<String>, String> {
    let rows = line.ask(sql).await.map_err(|failed| failed.to_string())?;
    let first = rows.into_iter().next().unwrap_or_default();
    let text =
        |cell: Option<Vec<u8>>| String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned();
    Ok(first.into_iter().map(text).collect())
}

async fn begins_mysql(rt: &Rt, log: &mut Line, waits: &mut Line) -> Result<Set, String> {
    const WHO: &str =
        "SELECT @@GLOBAL.server_uuid, @@GLOBAL.gtid_mode, @@GLOBAL.log_bin, @@GLOBAL.gtid_executed";
    let said = row(waits, WHO).await?;
    let [uuid, mode, has_log, executed] = said.as_slice() else {
        return Err("it does not say who it is".to_owned());
    };
    if mode != "ON" {
        return Err(format!("its gtid_mode is {mode}"));
    }
    if has_log == "0" {
        return Err("it writes no binary log".to_owned());
    }
    let other = row(log, "SELECT @@GLOBAL.server_uuid").await?;
    if other.first() != Some(uuid) {
        return Err("two servers answer there in turn".to_owned());
    }
    // A server ends the log of an earlier connection with this number.
    let own = [rt.random(), rt.random()].map(|half| format!("{half:016x}"));
    let own = own.concat();
    let parts = [
        &own[..8],
        &own[8..12],
        &own[12..16],
        &own[16..20],
        &own[20..],
    ];
    let (own, beat) = (parts.join("-"), HEARTBEAT.as_nanos());
    row(
        log,
        &format!(
            "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum, \
             @master_heartbeat_period = {beat}, @source_heartbeat_period = {beat}, @slave_uuid = '{own}', @replica_uuid = '{own}'"
        ),
    )
    .await?;
    executed.parse().map_err(|error| format!("{error}"))
}

async fn begins_mariadb(log: &mut Line, from: Option<&str>) -> Result<Set, String> {
    let said = row(log, "SELECT @@GLOBAL.log_bin, @@GLOBAL.gtid_binlog_pos").await?;
    let [has_log, executed] = said.as_slice() else {
        return Err("it does not say where its log is".to_owned());
    };
    if has_log == "0" {
        return Err("it writes no binary log".to_owned());
    }
    let set: Set = executed.parse().map_err(|error| format!("{error}"))?;
    let beat = HEARTBEAT.as_nanos();
    let from = from.unwrap_or(executed);
    if !from
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"-,".contains(&byte))
    {
        return Err(format!("'{from}' is no place in its log"));
    }
    // Whoever has capability 4 gets GTIDs.
    row(
        log,
        &format!(
            "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @mariadb_slave_capability = 4, \
             @master_heartbeat_period = {beat}, @slave_connect_state = '{from}', @slave_gtid_strict_mode = 0, \
             @slave_gtid_ignore_duplicates = 0"
        ),
    )
    .await?;
    Ok(set)
}

/// Takes what comes over the log's connection.
async fn come(
    rt: &Rt,
    (mut line, mut log): (Line, Log),
    mut watched: Option<Watched<'_>>,
    pending: &RefCell<Pending>,
    bell: &Bell,
) -> String {
    loop {
        let event = match line.event().await {
            Ok(event) => event,
            Err(failed) => return failed.to_string(),
        };
        let followed = match &mut watched {
            None => log.follow(&event),
            Some((watch, _)) => log.follow_and(&event, &mut |event| watch.see(event)),
        };
        match followed {
            Ok(None) => {}
            Ok(Some(Transaction { gtid, touched })) => {
                let mut pending = pending.borrow_mut();
                if let Some(gtid) = &gtid {
                    pending.gtids.add(&gtid.source, gtid.number);
                }
                pending.touched.union(&touched);
                pending.transactions += 1;
                pending.place = log.place().clone();
                if let Some((watch, _)) = &mut watched {
                    pending.rows.append(&mut watch.take());
                    pending.said |= watch.take_said();
                }
                bell.ring();
            }
            Err(malformed) => return malformed.to_string(),
        }
        let Some((_, has_room)) = &watched else {
            continue;
        };
        if log.is_between() && pending.borrow().place < *log.place() {
            pending.borrow_mut().place = log.place().clone();
            bell.ring();
        }
        while pending.borrow().rows.len() > ROWS_WAIT_MAX || !has_room() {
            rt.sleep(ROOM_AGAIN).await;
        }
    }
}

/// Tells what has come when it is visible. While that is waited for, more comes: it is told
/// together. `newest`: what was told last.
async fn go(
    rt: &Rt,
    (mut waits, mut newest): (Line, Set),
    pending: &RefCell<Pending>,
    bell: &Bell,
    tell: &impl Fn(Pending),
) -> String {
    let (mut last, mut told): (Option<Instant>, Place) = (None, Place::default());
    loop {
        if rt.timeout(LOOK, bell.heard()).await.is_err() {
            match still_has(&mut waits, &newest).await {
                Ok(true) => continue,
                Ok(false) => return "its GTIDs were reset".to_owned(),
                Err(why) => return why,
            }
        }
        let now = rt.now();
        if let Some(last) = last
            && now < last + BUSY
        {
            rt.sleep_until(last + GATHERED).await;
        }
        let come = pending.take();
        // Where it goes on from is not come to again.
        pending.borrow_mut().place = come.place.clone();
        if come.transactions == 0 {
            if told < come.place {
                told = come.place.clone();
                tell(come);
            }
            continue;
        }
        told = come.place.clone();
        let visible = match is_mariadb(&waits) {
            true => has_come_to(rt, &mut waits, &come.place).await,
            false => are_visible(&mut waits, &come.gtids).await,
        };
        if let Err(why) = visible {
            return why;
        }
        last = Some(rt.now());
        newest.clone_from(&come.gtids);
        tell(come);
    }
}

/// Waits until a server has executed all of them: from then on whoever reads there sees them.
/// <https://dev.mysql.com/doc/refman/en/gtid-functions.html#function_wait-for-executed-gtid-set>
async fn are_visible(line: &mut Line, gtids: &Set) -> Result<(), String> {
    let sql = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {WAIT_SECS})");
    loop {
        match row(line, &sql).await?.first().map(String::as_str) {
            Some("0") => return Ok(()),
            Some("1") => {}
            other => {
                let other = other.unwrap_or_default();
                return Err(format!("it says '{other}' to a wait for GTIDs"));
            }
        }
    }
}

/// Waits until all that a MariaDB has in its log up to a place can be read. A snapshot that is
/// consistent with the log says how far that is.
/// <https://mariadb.com/kb/en/enhancements-for-start-transaction-with-consistent-snapshot/>
async fn has_come_to(rt: &Rt, line: &mut Line, place: &Place) -> Result<(), String> {
    let until = rt.now() + SNAPSHOT_MAX;
    loop {
        row(line, "START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
        let said = line.ask("SHOW STATUS LIKE 'binlog_snapshot_%'").await;
        let said = said.map_err(|failed| failed.to_string())?;
        row(line, "COMMIT").await?;
        let value = |name: &str| {
            let is = |cell: &Option<Vec<u8>>| {
                cell.as_ref()
                    .is_some_and(|cell| cell.eq_ignore_ascii_case(name.as_bytes()))
            };
            let row = said.iter().find(|row| row.first().is_some_and(is))?;
            let value = row.get(1)?.as_ref()?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let (file, end) = (
            value("Binlog_snapshot_file"),
            value("Binlog_snapshot_position"),
        );
        let end = end.and_then(|end| end.parse().ok());
        let (Some(file), Some(end)) = (file, end) else {
            return Err("it does not say how far its snapshots are".to_owned());
        };
        if Place::new(&file, end) >= *place || rt.now() > until {
            return Ok(());
        }
        rt.sleep(SNAPSHOT_AGAIN).await;
    }
}

/// Whether a server has executed these still: who resets its log leaves the connections of those
/// who follow it.
async fn still_has(line: &mut Line, gtids: &Set) -> Result<bool, String> {
    if is_mariadb(line) {
        let said = row(line, "SELECT @@GLOBAL.gtid_binlog_pos").await?;
        let has = said.first().and_then(|said| said.parse().ok());
        return Ok(has.is_some_and(|has: Set| has.contains_set(gtids)));
    }
    let sql = format!("SELECT GTID_SUBSET('{gtids}', @@GLOBAL.gtid_executed)");
    Ok(row(line, &sql).await?.first().is_some_and(|is| is == "1"))
}
