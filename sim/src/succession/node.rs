//! A server with a log that others follow: it writes or only reads, and tells GTIDs.

use super::book::Book;
use crate::chance::Chance;
use crate::server::PASSWORD;
use gtid::{Set, Source, Teller};
use net::{Conn, NetError};
use rt::local::Bell;
use rt::{Address, Instant, ListenOptions, Rt, Socket};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use wire::auth;
use wire::caps::{self, Caps};
use wire::command::Command;
use wire::handshake::{ChangeUser, Greeting, Login};
use wire::ok;
use wire::resultset::{Column, Writer};
use wire::status;

const PACKET_LEN_MAX: usize = 1 << 20;
const OFFERED: Caps = caps::LONG_PASSWORD
    | caps::FOUND_ROWS
    | caps::LONG_FLAG
    | caps::CONNECT_WITH_DB
    | caps::PROTOCOL_41
    | caps::TRANSACTIONS
    | caps::SECURE_CONNECTION
    | caps::MULTI_STATEMENTS
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS
    | caps::PLUGIN_AUTH
    | caps::CONNECT_ATTRS
    | caps::PLUGIN_AUTH_LENENC
    | caps::SESSION_TRACK
    | caps::DEPRECATE_EOF;
/// Session tracking's type of a GTID, and its only encoding.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html>
const TRACK_GTIDS: u8 = 3;
/// ER_OPTION_PREVENTS_STATEMENT.
pub(super) const READ_ONLY: u16 = 1290;
/// How it is asked what a server tells of sessions.
const TRACKS: &str = "SELECT @@SESSION.session_track_system_variables, @@SESSION.session_track_schema, \
     @@SESSION.session_track_state_change, @@GLOBAL.session_track_transaction_info";
/// An INSERT of a line, and a SELECT that looks for one.
pub(super) const INSERT: &str = "INSERT INTO log (line) VALUES ('";
pub(super) const SELECT: &str = "SELECT line FROM log WHERE line = '";
/// A mark that a COMMIT leaves: the row of a proxy, and what stands there; and the question for it.
const MARK: &str = "REPLACE INTO `m`.`marks` (proxy, slot, mark) VALUES (";
const MARKED: &str = "SELECT mark FROM `m`.`marks` WHERE proxy = ";
/// Begin of the question for variables by which a server tells what causal reads must know.
const TELLS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('gtid_mode', ";
/// Columns of SHOW REPLICA STATUS that are looked at.
const CHANNEL: [&str; 6] = [
    "Source_Log_File",
    "Read_Source_Log_Pos",
    "Relay_Source_Log_File",
    "Exec_Source_Log_Pos",
    "Replica_IO_Running",
    "Source_Server_Id",
];
/// So many of the last transactions of a log a replica may lack.
const LATELY: usize = 500;
/// So long somebody waits for the lock of a row.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A transaction of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Txn {
    pub(super) source: Source,
    pub(super) number: u64,
    pub(super) lines: Vec<String>,
    /// The row of the mark that was left with it, and the mark.
    mark: Option<(String, String)>,
}

/// Speeds of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// A statement takes at most so long.
    pub(super) statement_us: u64,
    /// So long, at most, a transaction is in the log before the engine shows it.
    pub(super) commit_us: u64,
    /// So long, at most, a replica takes until it looks for more.
    pub(super) lag_us: u64,
    /// A commit is answered only when a replica has it, if one follows.
    pub(super) semi_sync: bool,
}

/// The logs of a source and of its replica: whose the source's is, and how often each was put in the place of another.
type Logs = (&'static str, u32, u32);

/// A server.
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) at: Address,
    /// Where its reader of GTIDs listens.
    pub(super) feed: Address,
    uuid: [u8; 16],
    rt: Rt,
    book: Rc<Book>,
    chance: RefCell<Chance>,
    pace: Pace,
    pub(super) read_only: Cell<bool>,
    /// Which life it is in: a crash ends one.
    life: Cell<u32>,
    /// Nothing comes out of it, and nothing happens in it.
    pub(super) is_frozen: Cell<bool>,
    pub(super) is_down: Cell<bool>,
    log: RefCell<Vec<Txn>>,
    /// Transactions in the log.
    has: RefCell<BTreeSet<(Source, u64)>>,
    /// So many transactions of the log can be read.
    visible: Cell<usize>,
    /// Counts how often the log was put in the place of another.
    rebuilt: Cell<u32>,
    source: RefCell<Option<Rc<Self>>>,
    /// The logs that it has compared, as long as neither is another one, and so many transactions of the source's.
    looked: Cell<Option<(Logs, usize)>>,
    /// Transactions that were got from a source and are not done yet.
    relay: RefCell<VecDeque<Txn>>,
    /// Rows of marks that an open transaction has written, with its connection.
    locks: RefCell<BTreeMap<String, u32>>,
    stalled_until: Cell<Option<Instant>>,
    unlocked: Bell,
    /// Transactions in the log of which nobody has been told, and those of them with a mark.
    pub(super) untold: Cell<u32>,
    pub(super) untold_marks: Cell<u32>,
    /// Number of the last transaction that began here.
    last: Cell<u64>,
    connections: Cell<u32>,
    /// Something is visible that was not.
    news: Bell,
    /// Some replica has more.
    acked: Bell,
}

impl Node {
    pub(super) fn start(
        rt: &Rt,
        book: &Rc<Book>,
        name: &'static str,
        number: u8,
        pace: Pace,
        chance: Chance,
    ) -> Rc<Self> {
        let at = |port: u16| -> Address {
            let text = format!("10.1.0.{number}:{port}");
            text.parse().expect("an address of this file")
        };
        let node = Rc::new(Self {
            name,
            at: at(3306),
            feed: at(6020),
            uuid: [number; 16],
            rt: rt.clone(),
            book: book.clone(),
            chance: RefCell::new(chance),
            pace,
            read_only: Cell::new(true),
            life: Cell::new(0),
            is_frozen: Cell::new(false),
            is_down: Cell::new(false),
            log: RefCell::default(),
            has: RefCell::default(),
            visible: Cell::new(0),
            rebuilt: Cell::new(0),
            source: RefCell::default(),
            looked: Cell::default(),
            relay: RefCell::default(),
            locks: RefCell::default(),
            stalled_until: Cell::default(),
            unlocked: Bell::new(),
            untold: Cell::new(0),
            untold_marks: Cell::new(0),
            last: Cell::new(0),
            connections: Cell::new(0),
            news: Bell::new(),
            acked: Bell::new(),
        });
        node.listens(&node.at.clone(), |node, socket| async move {
            let _over = Guest::serve(&node, socket).await;
        });
        node.listens(&node.feed.clone(), |node, socket| async move {
            let _over = node.tells_gtids(socket).await;
        });
        rt.spawn(node.clone().follows());
        node
    }

    fn listens<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        at: &Address,
        serve: impl Fn(Rc<Self>, Socket) -> F + 'static,
    ) {
        let listener = self.rt.listen(at, ListenOptions::default());
        let listener = listener.expect("an address of the world is free");
        let node = self.clone();
        self.rt.spawn(async move {
            while let Ok(socket) = listener.accept().await {
                node.rt.spawn(serve(node.clone(), socket));
            }
        });
    }

    pub(super) fn tell(&self, words: &str) {
        self.book
            .judge
            .tell(&format!("server {}", self.name), words);
    }

    /// Some time, up to this.
    async fn takes(&self, most_us: u64) {
        let us = {
            let mut chance = self.chance.borrow_mut();
            if chance.percent(50) {
                chance.below(most_us + 1)
            } else {
                0
            }
        };
        if us > 0 {
            self.rt.sleep(Duration::from_micros(us)).await;
        }
        while self.is_frozen.get() {
            self.rt.sleep(Duration::from_millis(1)).await;
        }
    }

    /// The process ends. What is in the log is committed when it is back.
    pub(super) fn crash(&self) {
        self.life.set(self.life.get() + 1);
        self.is_down.set(true);
        self.visible.set(self.log.borrow().len());
        self.locks.borrow_mut().clear();
        let hand = self.rt.sim_faults().expect("this is the simulated world");
        hand.crash(&self.at);
        hand.crash(&self.feed);
        self.tell("crashes");
    }

    pub(super) fn comes_back(&self) {
        self.is_down.set(false);
        let hand = self.rt.sim_faults().expect("this is the simulated world");
        hand.restore(&self.at);
        hand.restore(&self.feed);
        self.tell(&format!("is back, read_only = {}", self.read_only.get()));
    }

    pub(super) fn freezes(&self) {
        self.is_frozen.set(true);
        let hand = self.rt.sim_faults().expect("this is the simulated world");
        hand.freeze(&self.at);
        hand.freeze(&self.feed);
        self.tell("freezes");
    }

    pub(super) fn thaws(&self) {
        self.is_frozen.set(false);
        let hand = self.rt.sim_faults().expect("this is the simulated world");
        hand.thaw(&self.at);
        hand.thaw(&self.feed);
        self.tell("thaws");
    }

    /// Follows another server from now on, or none.
    pub(super) fn source_is(&self, source: Option<&Rc<Self>>) {
        self.source.replace(source.cloned());
    }

    pub(super) fn is_up(&self) -> bool {
        !self.is_down.get() && !self.is_frozen.get()
    }

    pub(super) fn log(&self) -> Vec<Txn> {
        self.log.borrow().clone()
    }

    pub(super) fn lines(&self) -> usize {
        self.log.borrow().len()
    }

    /// Whether a transaction is in the log, or will be.
    pub(super) fn has(&self, txn: &Txn) -> bool {
        let is_done = self
            .has
            .borrow()
            .contains(&(txn.source.clone(), txn.number));
        is_done || self.relay.borrow().contains(txn)
    }

    /// So many transactions it got and has not done yet.
    pub(super) fn behind(&self) -> usize {
        self.relay.borrow().len()
    }

    pub(super) fn has_line(&self, line: &str) -> bool {
        let log = self.log.borrow();
        let mut lines = log.iter().rev().flat_map(|txn| &txn.lines);
        lines.any(|one| one == line)
    }

    /// Does nothing of what it gets for so long.
    pub(super) fn stalls(&self, time: Duration) {
        self.stalled_until.set(Some(self.rt.now() + time));
        self.tell(&format!("applies nothing for {} ms", time.as_millis()));
    }

    /// Lines that it got and does not have yet.
    pub(super) fn late(&self) -> Vec<String> {
        let relay = self.relay.borrow();
        relay.iter().flat_map(|txn| txn.lines.clone()).collect()
    }

    fn appends(&self, txn: Txn) {
        self.has
            .borrow_mut()
            .insert((txn.source.clone(), txn.number));
        self.log.borrow_mut().push(txn);
    }

    /// Takes a copy of another server's data in the place of its own, as a clone does.
    pub(super) fn is_rebuilt_from(&self, other: &Self) {
        self.log.replace(other.log());
        self.relay.borrow_mut().clear();
        self.has.replace(other.has.borrow().clone());
        self.visible.set(self.lines());
        self.rebuilt.set(self.rebuilt.get() + 1);
        self.news.ring();
        self.tell(&format!("has the data of {}", other.name));
    }

    fn uuid(&self) -> String {
        let hex = |bytes: std::ops::Range<usize>| -> String {
            self.uuid[bytes]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)].join("-")
    }

    /// These transactions of the log, as a set.
    fn executed(&self, places: std::ops::Range<usize>) -> Set {
        let mut set = Set::default();
        for txn in &self.log.borrow()[places] {
            set.add(&txn.source, txn.number);
        }
        set
    }

    /// Follows the log of its source: what it has got it does a while later.
    async fn follows(self: Rc<Self>) {
        loop {
            let us = self.chance.borrow_mut().below(self.pace.lag_us + 1);
            self.rt.sleep(Duration::from_micros(us.max(100))).await;
            if !self.is_up() {
                continue;
            }
            if self
                .stalled_until
                .get()
                .is_none_or(|until| until <= self.rt.now())
            {
                self.applies();
            }
            let source = self.source.borrow().clone();
            let Some(source) = source.filter(|source| source.is_up()) else {
                continue;
            };
            let more: Vec<_> = {
                let theirs = source.log.borrow();
                let from = self.looks_from(&source, theirs.len());
                let new = theirs[from..].iter().filter(|txn| !self.has(txn));
                new.cloned().collect()
            };
            if !more.is_empty() {
                self.relay.borrow_mut().extend(more);
                source.acked.ring();
            }
        }
    }

    /// First transaction of a source's log, which has so many, that may be new. A source that was promoted too early has
    /// some of the old ones behind its own.
    fn looks_from(&self, source: &Self, len: usize) -> usize {
        let logs = (source.name, source.rebuilt.get(), self.rebuilt.get());
        let last = self.looked.replace(Some((logs, len)));
        let known = last.filter(|(of, _)| *of == logs);
        match known {
            Some((_, looked)) => looked,
            None => len.saturating_sub(LATELY),
        }
    }

    /// Does what it has got.
    fn applies(&self) {
        let got = std::mem::take(&mut *self.relay.borrow_mut());
        if !got.is_empty() {
            got.into_iter().for_each(|txn| self.appends(txn));
            self.visible.set(self.lines());
            self.news.ring();
        }
    }

    /// Waits for the lock of a row, and takes it; whether that was in time.
    async fn locks(&self, row: &str, connection: u32) -> bool {
        let until = self.rt.now() + LOCK_WAIT;
        loop {
            match self.locks.borrow().get(row) {
                Some(holder) if *holder != connection => {}
                _ => break,
            }
            if self.rt.now() >= until {
                return false;
            }
            let _rung_or_time = rt::select(
                self.rt.sleep(Duration::from_millis(20)),
                self.unlocked.heard(),
            )
            .await;
        }
        self.locks.borrow_mut().insert(row.to_owned(), connection);
        true
    }

    fn unlocks(&self, connection: u32) {
        self.locks
            .borrow_mut()
            .retain(|_, holder| *holder != connection);
        self.unlocked.ring();
    }

    /// The mark that stands in a row.
    fn mark(&self, row: &str) -> Option<String> {
        let log = self.log.borrow();
        let mut marks = log.iter().take(self.visible.get()).rev();
        marks.find_map(|txn| match &txn.mark {
            Some((of, mark)) if of == row => Some(mark.clone()),
            _ => None,
        })
    }

    /// Commits lines, and returns the GTID; `None` if it dies meanwhile.
    async fn commits(
        &self,
        lines: Vec<String>,
        mark: Option<(String, String)>,
    ) -> Option<(Source, u64)> {
        let life = self.life.get();
        self.last.set(self.last.get() + 1);
        let source = Source::MySql {
            uuid: self.uuid,
            tag: None,
        };
        let number = self.last.get();
        let txn = Txn {
            source: source.clone(),
            number,
            lines,
            mark,
        };
        self.appends(txn.clone());
        let at = self.lines();
        self.untold.set(self.untold.get() + 1);
        let marks = u32::from(txn.mark.is_some());
        self.untold_marks.set(self.untold_marks.get() + marks);
        if self.pace.semi_sync {
            while self.life.get() == life && !self.is_with_a_replica(&txn) {
                let _rung_or_time =
                    rt::select(self.rt.sleep(Duration::from_millis(20)), self.acked.heard()).await;
            }
        }
        self.takes(self.pace.commit_us).await;
        self.untold.set(self.untold.get() - 1);
        self.untold_marks.set(self.untold_marks.get() - marks);
        if self.life.get() != life {
            return None;
        }
        self.visible.set(self.visible.get().max(at));
        self.news.ring();
        Some((source, number))
    }

    /// Its `server_id`.
    fn number(&self) -> u8 {
        self.uuid[0]
    }

    /// Its answer to SHOW REPLICA STATUS: the columns that are looked at, as it has them.
    fn channels(&self) -> Vec<Vec<String>> {
        let done = self.lines();
        let read = done + self.behind();
        if self.source.borrow().is_none() && read == done {
            return Vec::new();
        }
        // One that was promoted has stopped its channel, and does what it got.
        let source = self.source.borrow();
        let (runs, number) = match source.as_ref() {
            Some(source) => ("Yes", source.number()),
            None => ("No", 0),
        };
        vec![vec![
            "b.1".to_owned(),
            read.to_string(),
            "b.1".to_owned(),
            done.to_string(),
            runs.to_owned(),
            number.to_string(),
        ]]
    }

    fn is_with_a_replica(&self, txn: &Txn) -> bool {
        self.book.has_another(self.name, txn)
    }

    /// Tells a client of the reader what can be read here.
    async fn tells_gtids(&self, socket: Socket) -> Result<(), std::io::Error> {
        let life = self.life.get();
        'anew: loop {
            let rebuilt = self.rebuilt.get();
            let mut told = self.visible.get();
            let (mut teller, first) = Teller::begin(&self.executed(0..told), false);
            socket.send(first.into_bytes()).await?;
            loop {
                match rt::select(socket.closed(), self.news.heard()).await {
                    rt::Either::Left(()) => return Ok(()),
                    rt::Either::Right(()) => {}
                }
                if self.life.get() != life {
                    return Ok(());
                }
                if self.rebuilt.get() != rebuilt {
                    continue 'anew;
                }
                let more = self.executed(told..self.visible.get());
                told = self.visible.get();
                let lines = teller.more(&more);
                if !lines.is_empty() {
                    socket.send(lines.into_bytes()).await?;
                }
            }
        }
    }
}

/// One connection.
struct Guest {
    node: Rc<Node>,
    id: u32,
    caps: Caps,
    nonce: auth::Nonce,
    /// Lines of the transaction that is open, and what could be read when it began.
    open: Option<(Vec<String>, Option<usize>)>,
    /// Mark that the open transaction has left.
    mark: Option<(String, String)>,
    tells: bool,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.node.unlocks(self.id);
    }
}

/// Answer to a text.
enum Said {
    Ok,
    /// A transaction of this GTID was committed.
    Committed(Source, u64),
    Rows(Vec<Vec<String>>),
    /// Rows of SHOW REPLICA STATUS.
    Channels(Vec<Vec<String>>),
    Err(u16, String),
    /// The process has died.
    Gone,
}

impl Guest {
    async fn serve(node: &Rc<Node>, socket: Socket) -> Result<(), NetError> {
        let id = node.connections.get() + 1;
        node.connections.set(id);
        let mut conn = Conn::new(socket);
        let mut random = [0; 20];
        for byte in &mut random {
            *byte = (node.chance.borrow_mut().next() >> 32) as u8;
        }
        let nonce = auth::nonce(random);
        let mut payload = Vec::new();
        Greeting {
            server_version: "8.0.36-sim".to_owned(),
            thread_id: id,
            scramble: nonce,
            caps: OFFERED,
            charset: 8,
            status: status::AUTOCOMMIT,
            auth_plugin: "mysql_native_password".to_owned(),
        }
        .write(&mut payload);
        conn.reply(&payload).await?;
        let packet = conn.packet(PACKET_LEN_MAX).await?;
        let login = Login::read(packet.payload())?;
        let mut guest = Self {
            node: node.clone(),
            id,
            caps: login.caps & OFFERED,
            nonce,
            open: None,
            mark: None,
            tells: false,
        };
        payload.clear();
        let is_right = guest.knows(&login.auth_response);
        if is_right {
            ok::Ok {
                status: status::AUTOCOMMIT,
                ..ok::Ok::default()
            }
            .write(&mut payload, guest.caps);
        } else {
            node.book
                .judge
                .accuse(node.name, "a login with a wrong password");
            ok::Err {
                code: 1045,
                state: *b"28000",
                message: b"Access denied",
            }
            .write(&mut payload);
        }
        conn.reply(&payload).await?;
        if !is_right {
            return Ok(());
        }
        guest.obeys(&mut conn).await
    }

    fn knows(&self, proof: &[u8]) -> bool {
        let stage2 = auth::native_stage2(PASSWORD.as_bytes());
        auth::native_verify(&stage2, &self.nonce, proof).is_some()
    }

    async fn obeys(&mut self, conn: &mut Conn) -> Result<(), NetError> {
        let life = self.node.life.get();
        loop {
            let packet = conn.packet(PACKET_LEN_MAX).await?;
            let command = Command::read(packet.payload(), self.caps)?;
            self.node.takes(self.node.pace.statement_us).await;
            if self.node.life.get() != life {
                return Ok(());
            }
            let said = match &command {
                Command::Quit => return Ok(()),
                Command::Query(query) => {
                    let text = String::from_utf8_lossy(query.sql).into_owned();
                    self.said(&text).await
                }
                Command::Ping | Command::InitDb(_) => Said::Ok,
                Command::ResetConnection => {
                    self.is_over();
                    self.tells = false;
                    Said::Ok
                }
                Command::ChangeUser(body) => {
                    self.is_over();
                    self.tells = false;
                    match self.knows(&ChangeUser::read(body, self.caps)?.auth_response) {
                        true => Said::Ok,
                        false => Said::Err(1045, "Access denied".to_owned()),
                    }
                }
                other => Said::Err(1047, format!("Unknown command {other:?}")),
            };
            let mut out = Vec::new();
            if !self.writes(
                said,
                Writer::new(&mut out, packet.seq, self.caps, self.flags()),
            ) {
                return Ok(());
            }
            conn.send(out).await?;
        }
    }

    fn flags(&self) -> u16 {
        let open = match self.open {
            Some(_) => status::IN_TRANS,
            None => 0,
        };
        status::AUTOCOMMIT | open
    }

    /// Whether there is anybody to say it.
    fn writes(&self, said: Said, mut writer: Writer<'_>) -> bool {
        match said {
            Said::Ok => writer.ok(&ok::Ok::default()),
            Said::Committed(source, number) => {
                let mut set = Set::default();
                set.add(&source, number);
                let text = set.to_string();
                let len = |more: usize| u8::try_from(text.len() + more).unwrap_or(0);
                let mut changes = vec![TRACK_GTIDS, len(2), 0, len(0)];
                changes.extend_from_slice(text.as_bytes());
                let changes = if self.tells { &changes[..] } else { &[] };
                writer.ok(&ok::Ok {
                    affected: 1,
                    changes,
                    ..ok::Ok::default()
                });
            }
            Said::Rows(rows) => {
                let columns = rows.first().map_or(1, Vec::len);
                let columns: Vec<_> = (0..columns).map(|n| Column::text(n.to_string())).collect();
                write_rows(&mut writer, &columns, &rows);
            }
            Said::Channels(rows) => {
                write_rows(&mut writer, &CHANNEL.map(Column::text), &rows);
            }
            Said::Err(code, words) => {
                let mut state = *b"HY000";
                if let Ok(five) = wire::errors::state_of(code).as_bytes().try_into() {
                    state = five;
                }
                writer.err(&ok::Err {
                    code,
                    state,
                    message: words.as_bytes(),
                });
            }
            Said::Gone => return false,
        }
        true
    }

    /// The transaction that was open is over.
    fn is_over(&mut self) {
        (self.open, self.mark) = (None, None);
        self.node.unlocks(self.id);
    }

    /// Leaves a mark, or reads one; both take the lock of its row.
    async fn marks(&mut self, text: &str) -> Said {
        let node = self.node.clone();
        let rest = text
            .strip_prefix(MARK)
            .or_else(|| text.strip_prefix(MARKED));
        let numbers = rest
            .unwrap_or_default()
            .split(|c: char| !c.is_ascii_digit());
        let mut numbers = numbers.filter(|number| !number.is_empty());
        let row = format!(
            "{} {}",
            numbers.next().unwrap_or_default(),
            numbers.next().unwrap_or_default()
        );
        let mark = numbers.next().unwrap_or_default().to_owned();
        if mark.is_empty() && !text.ends_with(" FOR UPDATE") {
            node.book
                .judge
                .accuse(node.name, &format!("nobody taught it {text}"));
        }
        if node.read_only.get() && !mark.is_empty() {
            return read_only();
        }
        if !node.locks(&row, self.id).await {
            return Said::Err(1205, "Lock wait timeout exceeded".to_owned());
        }
        node.tell(&format!("connection {}: {text}", self.id));
        if mark.is_empty() {
            node.unlocks(self.id);
            return Said::Rows(vec![vec![node.mark(&row).unwrap_or_default()]]);
        }
        if self.open.is_none() {
            node.book
                .judge
                .accuse(node.name, "a mark outside of a transaction");
        }
        self.mark = Some((row, mark));
        Said::Ok
    }

    async fn said(&mut self, text: &str) -> Said {
        let node = self.node.clone();
        let quoted = text.split('\'').nth(1).unwrap_or_default().to_owned();
        if text.starts_with("SET ") {
            self.tells |= text.contains("session_track_gtids=OWN_GTID");
            return Said::Ok;
        }
        if text.starts_with(INSERT) {
            node.tell(&format!("connection {}: {text}", self.id));
            if node.read_only.get() {
                return read_only();
            }
            self.node.book.arrives(node.name, &quoted);
            return match &mut self.open {
                Some((lines, _)) => {
                    lines.push(quoted);
                    Said::Ok
                }
                None => match node.commits(vec![quoted], None).await {
                    Some((source, number)) => Said::Committed(source, number),
                    None => Said::Gone,
                },
            };
        }
        if text.starts_with(SELECT) {
            node.tell(&format!("connection {}: {text}", self.id));
            return Said::Rows(self.reads(&quoted));
        }
        match text {
            "BEGIN" | "START TRANSACTION" => {
                self.open = Some((Vec::new(), None));
                Said::Ok
            }
            "ROLLBACK" | "ROLLBACK AND NO CHAIN NO RELEASE" => {
                self.is_over();
                Said::Ok
            }
            "SHOW REPLICA STATUS" => Said::Channels(node.channels()),
            _ if text.starts_with(MARK) || text.starts_with(MARKED) => self.marks(text).await,
            "COMMIT" => match self.open.take() {
                Some((lines, _)) if !lines.is_empty() => {
                    node.tell(&format!("connection {}: COMMIT of {lines:?}", self.id));
                    if node.read_only.get() {
                        // As a server that waits for nobody: what was open is gone.
                        self.is_over();
                        return read_only();
                    }
                    let committed = node.commits(lines, self.mark.take()).await;
                    self.is_over();
                    match committed {
                        Some((source, number)) => Said::Committed(source, number),
                        None => Said::Gone,
                    }
                }
                _ => Said::Ok,
            },
            "DO 0" => Said::Ok,
            "SELECT LAST_INSERT_ID()" => one("0".to_owned()),
            "SELECT @@global.read_only" => one(u8::from(node.read_only.get()).to_string()),
            "SELECT @@global.server_id" => one(node.number().to_string()),
            TRACKS => Said::Rows(vec![
                ["time_zone,autocommit", "1", "0", "OFF"]
                    .map(str::to_owned)
                    .into(),
            ]),
            "SELECT @@server_uuid" => one(node.uuid()),
            _ if text.starts_with(TELLS) => {
                let all = [
                    "gtid_mode",
                    "log_bin",
                    "log_replica_updates",
                    "session_track_gtids",
                ];
                Said::Rows(
                    all.map(|name| vec![name.to_owned(), "ON".to_owned()])
                        .into(),
                )
            }
            _ if text.starts_with("SELECT COUNT(*) FROM information_schema.TABLES ") => {
                one("0".to_owned())
            }
            _ => {
                node.book
                    .judge
                    .accuse(node.name, &format!("nobody taught it {text}"));
                Said::Err(1064, "You have an error in your SQL syntax".to_owned())
            }
        }
    }

    /// Rows of a line, each with the name of this server. A transaction sees its own lines, and of
    /// others those of its first read.
    fn reads(&mut self, line: &str) -> Vec<Vec<String>> {
        let node = &self.node;
        let (own, seen) = match &mut self.open {
            Some((own, seen)) => (&own[..], *seen.get_or_insert(node.visible.get())),
            None => (&[][..], node.visible.get()),
        };
        let log = node.log.borrow();
        let others = log.iter().take(seen).flat_map(|txn| &txn.lines);
        let found = others.chain(own).filter(|one| *one == line).cloned();
        let row = |line: String| vec![line, node.name.to_owned()];
        let mut rows: Vec<_> = found.map(row).collect();
        if rows.is_empty() {
            rows.push(vec![String::new(), node.name.to_owned()]);
        }
        rows
    }
}

fn write_rows(writer: &mut Writer<'_>, columns: &[Column], rows: &[Vec<String>]) {
    writer.columns(columns);
    for row in rows {
        writer.text_row(row.iter().map(|value| Some(value.as_bytes())));
    }
    writer.end(0);
}

fn read_only() -> Said {
    let words = "The MySQL server is running with the --read-only option so it cannot execute this statement";
    Said::Err(READ_ONLY, words.to_owned())
}

fn one(value: String) -> Said {
    Said::Rows(vec![vec![value]])
}
