//! A fake MySQL server: honest about every connection's state, slow at times, and mortal.

mod bulk;
mod copying;
mod expiry;
mod filing;
mod following;
mod hearing;
mod login;
mod whims;

pub(crate) use bulk::row;
pub(crate) use copying::judge_copies;
pub(crate) use filing::{FILE_HEADER, LOAD, NO_FIT, NO_TABLE, line};

use crate::belongings::{Answer, Ground, client};
use crate::chance::Chance;
use crate::judge::Judge;
use crate::mind::{
    ADDED, Complaint, Cursor, Mind, SERVERS_CHARSET, STATE_COLUMNS, Said, no_statement,
    rows_of_cursor,
};
use expiry::changes_password;
use following::Following;
use net::{Conn, NetError};
use rt::local::Notify;
use rt::{Address, ListenOptions, Rt, Socket};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use whims::Whim;
use wire::auth;
use wire::caps::{self, Caps};
use wire::command::{Command, Execute, SET_OPTION_MULTI_STATEMENTS_ON};
use wire::execute::{CURSOR_FLAGS, Parts, Value};
use wire::frame::Algorithm;
use wire::handshake::ChangeUser;
use wire::ok;
use wire::resultset::{Column, Writer};
use wire::status;

const PACKET_LEN_MAX: usize = 64 << 20;
/// Every user's password.
pub(crate) const PASSWORD: &str = "grist";
/// The name of the server of copies.
pub(crate) const MIRROR: &str = "c";
/// The user who shares no connection.
pub(crate) const COURIER: &str = "courier";
/// The user whose password may have expired.
pub(crate) const SLEEPER: &str = "sleeper";

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
    | caps::EXPIRED_PASSWORDS
    | caps::LOCAL_FILES;

/// How the number of tables without transactions is asked for.
const ENGINES: &str = "SELECT COUNT(*) FROM information_schema.TABLES ";
/// How a list of connections is asked for.
const LISTED: &str = "SELECT ID, HOST FROM performance_schema.processlist ";

/// Traits of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nature {
    /// Whether the server hangs up when it likes.
    pub(crate) fickle: bool,
    /// Whether the server can do all that clients are offered.
    pub(crate) able: bool,
    /// Whether the server has MariaDB's bulk execute.
    pub(crate) bulk: bool,
    /// Longest time until the server hears of the end of a connection.
    pub(crate) late: Duration,
}

/// A server.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) at: Address,
    pub(crate) ground: RefCell<Ground>,
    rt: Rt,
    judge: Rc<Judge>,
    chance: RefCell<Chance>,
    caps: Caps,
    fickle: bool,
    late: Duration,
    /// Connections of users who share none.
    pub(crate) couriers: Cell<u32>,
    /// A statement takes at most so long.
    delay_max_us: u64,
    /// Which life it is in: a crash ends one.
    life: Cell<u32>,
    /// Connections of lives before this one are those of a machine that is gone.
    supplanted: Cell<u32>,
    last_connection: Cell<u32>,
    /// Orders to connections that are to end, or whose statements are.
    orders: RefCell<BTreeMap<u32, Rc<Order>>>,
    following: Following,
    /// Only copies come here.
    mirrors: bool,
}

/// KILL for a connection.
struct Order {
    /// Where the connection comes from.
    from: Address,
    statement: Cell<bool>,
    connection: Cell<bool>,
    /// The server wants it to end.
    hang_up: Cell<bool>,
    bell: Notify,
}

impl Order {
    fn for_one_from(from: Address) -> Self {
        let no = || Cell::new(false);
        Self {
            from,
            statement: no(),
            connection: no(),
            hang_up: no(),
            bell: Notify::default(),
        }
    }
}

impl Server {
    pub(crate) fn start(
        rt: &Rt,
        judge: &Rc<Judge>,
        name: &'static str,
        at: Address,
        nature: Nature,
        mut chance: Chance,
    ) -> Rc<Self> {
        let deprecate = if chance.percent(50) || nature.able {
            caps::DEPRECATE_EOF
        } else {
            0
        };
        let packed = *chance.one_of(&[0, caps::COMPRESS, caps::ZSTD, caps::COMPRESS | caps::ZSTD]);
        let server = Rc::new(Self {
            name,
            ground: RefCell::new(Ground {
                detaches: chance.percent(50),
                ..Ground::default()
            }),
            rt: rt.clone(),
            judge: judge.clone(),
            caps: if nature.bulk {
                OFFERED & !caps::LONG_PASSWORD | caps::MARIADB_BULK
            } else {
                OFFERED
            } | deprecate
                | packed,
            fickle: nature.fickle,
            late: nature.late,
            couriers: Cell::new(0),
            delay_max_us: *chance.one_of(&[0, 500, 20_000]),
            chance: RefCell::new(chance),
            life: Cell::new(0),
            supplanted: Cell::new(0),
            last_connection: Cell::new(0),
            orders: RefCell::default(),
            following: Following::default(),
            mirrors: name == MIRROR,
            at,
        });
        let listener = rt
            .listen(&server.at, ListenOptions::default())
            .expect("an address of the world is free");
        let host = server.clone();
        rt.spawn(async move {
            while let Ok(socket) = listener.accept().await {
                let id = host.last_connection.get() + 1;
                host.last_connection.set(id);
                let server = host.clone();
                host.rt.spawn(async move {
                    let seen = server.judge.opened(server.name);
                    let life = server.life.get();
                    let order = Rc::new(Order::for_one_from(socket.peer()));
                    server.orders.borrow_mut().insert(id, order.clone());
                    let mut guest = Guest {
                        life,
                        server: server.clone(),
                        id,
                        seen,
                        order,
                        last: None,
                        is_courier: false,
                        user: String::new(),
                        nonce: [0; 20],
                        several: false,
                        said_expired: false,
                        had: BTreeSet::new(),
                    };
                    let _over = guest.serve(socket).await;
                    if life == server.life.get() {
                        server.orders.borrow_mut().remove(&id);
                        server.ground.borrow_mut().leave(id);
                    }
                    server
                        .couriers
                        .set(server.couriers.get() - u32::from(guest.is_courier));
                    server.judge.closed(seen);
                    if guest.user.is_empty() {
                        // Nobody knows what it was for: it may have been about to say KILL.
                        server.judge.overlook(seen);
                    }
                });
            }
        });
        server
    }

    /// Crashes the server: transactions that are open are lost, the log stays. The world resets its
    /// connections, and those that come later are numbered anew.
    pub(crate) fn crash(&self) {
        self.ground.borrow_mut().crash();
        self.orders.borrow_mut().clear();
        self.last_connection.set(0);
        self.life.set(self.life.get() + 1);
    }

    /// Another takes its place, and its address. Connections that are there hear nothing any more,
    /// not even an end; those that come are numbered anew.
    pub(crate) fn supplant(&self) {
        self.crash();
        self.supplanted.set(self.life.get());
    }

    /// Ends all connections on which nothing runs.
    pub(crate) fn hang_up(&self) {
        for order in self.orders.borrow().values() {
            order.hang_up.set(true);
            order.bell.notify_one();
        }
    }

    /// How long the next statement takes.
    fn delay(&self) -> Duration {
        let mut chance = self.chance.borrow_mut();
        if self.delay_max_us == 0 || chance.percent(50) {
            Duration::ZERO
        } else {
            Duration::from_micros(chance.below(self.delay_max_us))
        }
    }
}

/// One connection of a server.
struct Guest {
    server: Rc<Server>,
    id: u32,
    seen: usize,
    life: u32,
    order: Rc<Order>,
    /// The client that spoke last, and what there was here since it came.
    last: Option<String>,
    /// Whether the connection is of a user who shares none.
    is_courier: bool,
    /// Who has logged in, and what was to be scrambled with the password.
    user: String,
    nonce: auth::Nonce,
    /// Whether the connection takes several statements in one text.
    several: bool,
    /// Whether the connection has said that the password has expired.
    said_expired: bool,
    had: BTreeSet<&'static str>,
}

fn written(complaint: &Complaint) -> ok::Err<'_> {
    let mut state = *b"HY000";
    if let Ok(five) = wire::errors::state_of(complaint.0).as_bytes().try_into() {
        state = five;
    }
    ok::Err {
        code: complaint.0,
        state,
        message: complaint.1.as_bytes(),
    }
}

impl Guest {
    async fn serve(&mut self, socket: Socket) -> Result<(), NetError> {
        let mut conn = Conn::new(socket);
        let Some((caps, mut mind)) = self.log_in(&mut conn).await? else {
            return Ok(());
        };
        if let Some(algorithm) = Algorithm::agreed(caps) {
            conn.compress(algorithm, 1);
        }
        loop {
            let Some(packet) = self.next_command(&mut conn).await? else {
                return Ok(());
            };
            let command = Command::read(packet.payload(), caps)?;
            if matches!(command, Command::Quit) {
                return Ok(());
            }
            // What was said to an idle connection hits nothing.
            self.order.statement.set(false);
            let slow =
                matches!(&command, Command::Query(query) if query.sql.ends_with(b"FROM slow"));
            let interrupted = self.work(&conn, slow).await;
            if self.life < self.server.supplanted.get() {
                return std::future::pending().await;
            }
            if self.order.connection.get() {
                self.must_be_left(&mut conn).await;
                return Ok(());
            }
            if interrupted && command.is_answered() {
                let mut out = Vec::new();
                let complaint = Complaint(1317, "Query execution was interrupted".to_owned());
                mind.has.begin("KILL");
                mind.has.fail(&complaint);
                self.server.judge.hit("a statement killed", 1);
                Writer::new(&mut out, packet.seq, caps, 0).err(&written(&complaint));
                conn.send(out).await?;
                continue;
            }
            if self.life != self.server.life.get() {
                return Ok(()); // it died while it worked
            }
            if let Command::Query(query) = &command
                && query.sql.starts_with(LOAD.as_bytes())
                && !mind.sandbox
            {
                let text = String::from_utf8_lossy(query.sql).into_owned();
                if self
                    .load(&mut conn, &mut mind, &text, caps, packet.seq)
                    .await?
                {
                    continue;
                }
                return Ok(());
            }
            let of_kill =
                |text: &[u8]| text.starts_with(b"KILL ") || text.starts_with(LISTED.as_bytes());
            let ours = matches!(&command, Command::Query(query) if of_kill(query.sql));
            let whim = if ours { Whim::None } else { self.server.whim() };
            if whim == Whim::Ignore {
                self.tell(&format!("hangs up before {}", shown(&command)));
                return Ok(());
            }
            let mut out = Vec::new();
            self.answer(&mut mind, &command, caps, packet.seq, &mut out)?;
            self.server.date();
            self.had.extend(mind.names());
            match whim {
                Whim::Swallow => out.clear(),
                Whim::BreakOff => out.truncate(self.server.cut(out.len())),
                _ => {}
            }
            for piece in out.chunks(32 << 10) {
                conn.send(piece.to_vec()).await?;
            }
            if whim != Whim::None {
                self.tell(&format!("hangs up: {whim:?} of {}", shown(&command)));
                return Ok(());
            }
        }
    }

    fn tell(&self, words: &str) {
        self.server.judge.tell(
            &format!("server {} connection {}", self.server.name, self.id),
            words,
        );
    }

    /// Takes its time; whether it was told to stop meanwhile. A server notices that a client has
    /// left only when it has the answer; the judge is told at once.
    async fn work(&self, conn: &Conn, slow: bool) -> bool {
        let more = if slow {
            Duration::from_micros(self.server.chance.borrow_mut().between(2_000, 60_000))
        } else {
            Duration::ZERO
        };
        let delay = self.server.delay() + more;
        if delay.is_zero() {
            return false;
        }
        let until = self.server.rt.now() + delay;
        let ordered = async {
            while !self.order.statement.get() && !self.order.connection.get() {
                self.order.bell.wait().await;
            }
        };
        let ended = rt::select(ordered, self.server.rt.sleep_until(until));
        match rt::select(conn.socket().closed(), ended).await {
            rt::Either::Left(()) => {
                self.server.judge.closed(self.seen);
                self.server.rt.sleep_until(until).await;
                false
            }
            rt::Either::Right(rt::Either::Left(())) => self.order.statement.take(),
            rt::Either::Right(rt::Either::Right(())) => false,
        }
    }

    /// Where connections come from. Nobody asks that but who is about to say KILL.
    fn listed(&self, sql: &str) -> Result<Said, Complaint> {
        // He has no place among those that are counted.
        self.server.judge.overlook(self.seen);
        let orders = self.server.orders.borrow();
        let row = |id: u32| {
            Some(vec![
                Some(id.to_string()),
                Some(orders.get(&id)?.from.to_string()),
            ])
        };
        let ids = sql
            .split_once(" IN (")
            .and_then(|(_, ids)| ids.split_once(')'))
            .map_or("", |(ids, _)| ids);
        let rows = ids
            .split(", ")
            .filter_map(|id| row(id.parse().ok()?))
            .collect();
        Ok(Said::Answer(Answer {
            columns: 2,
            rows,
            ..Answer::default()
        }))
    }

    /// KILL, of another connection.
    fn kill(&self, sql: &str) -> Result<Said, Complaint> {
        let mut words = sql.split_whitespace().skip(1);
        let statement_only = words.next() == Some("QUERY");
        let number = words
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0);
        let orders = self.server.orders.borrow();
        let Some(order) = orders.get(&number) else {
            return Err(Complaint(1094, format!("Unknown thread id: {number}")));
        };
        if statement_only {
            order.statement.set(true)
        } else {
            order.connection.set(true)
        }
        order.bell.notify_one();
        Ok(Said::Ok)
    }

    fn answer(
        &mut self,
        mind: &mut Mind,
        command: &Command<'_>,
        caps: Caps,
        seq: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), NetError> {
        if let Some(complaint) = self.wants_another_password(command, mind) {
            Writer::new(out, seq, caps, flags(mind)).err(&written(&complaint));
            return Ok(());
        }
        let said = match command {
            Command::Query(query) => {
                let text = String::from_utf8_lossy(query.sql);
                self.hears(&text, mind);
                let parts: Vec<&str> = text
                    .split(';')
                    .map(str::trim)
                    .filter(|part| !part.is_empty())
                    .collect();
                if parts.len() < 2 || !self.several {
                    self.query(&text, mind)
                } else {
                    return self.each(&parts, mind, Writer::new(out, seq, caps, 0));
                }
            }
            Command::SetOption(option) => {
                self.several = *option == SET_OPTION_MULTI_STATEMENTS_ON;
                Writer::new(out, seq, caps, flags(mind)).end(0);
                return Ok(());
            }
            Command::InitDb(name) => {
                let said =
                    mind.use_schema(&String::from_utf8_lossy(name), &self.server.ground.borrow());
                mind.has.row_count = if said.is_ok() { 0 } else { -1 };
                said
            }
            Command::Ping => {
                mind.has.row_count = 0;
                Ok(Said::Ok)
            }
            Command::ResetConnection => {
                mind.has.let_go(&mut self.server.ground.borrow_mut());
                self.server.ground.borrow_mut().leave(self.id);
                mind.reset();
                self.had.insert("a reset");
                Ok(Said::Ok)
            }
            Command::ChangeUser(body) => {
                let change = ChangeUser::read(body, caps)?;
                let proven = auth::native_verify(
                    &auth::native_stage2(PASSWORD.as_bytes()),
                    &self.nonce,
                    &change.auth_response,
                );
                let who = format!("server {}", self.server.name);
                self.server
                    .judge
                    .check(proven.is_some() && change.user == self.user, &who, || {
                        format!(
                            "connection {} of {} is to be {}'s, with the password: {}",
                            self.id,
                            self.user,
                            change.user,
                            proven.is_some()
                        )
                    });
                let sandbox = match self.is_expired(&change.user, caps) {
                    Ok(sandbox) => sandbox,
                    Err(complaint) => {
                        Writer::new(out, seq, caps, 0).err(&written(&complaint));
                        return Ok(());
                    }
                };
                if let Some(Err(complaint)) = change
                    .database
                    .as_deref()
                    .map(|name| self.server.ground.borrow().knows_schema(name))
                {
                    Writer::new(out, seq, caps, 0).err(&written(&complaint));
                    return Ok(());
                }
                mind.has.let_go(&mut self.server.ground.borrow_mut());
                self.server.ground.borrow_mut().leave(self.id);
                mind.log_in(
                    change.database.as_deref(),
                    change.charset.unwrap_or(SERVERS_CHARSET),
                );
                mind.sandbox = sandbox;
                self.had.insert("a reset by login");
                Ok(Said::Ok)
            }
            Command::Prepare(text) => {
                mind.has.begin("PREPARE");
                let prepared = mind.prepare(&String::from_utf8_lossy(text));
                let mut writer = Writer::new(out, seq, caps, flags(mind));
                match prepared {
                    Ok(id) if mind.inserts(id) => writer.prepared(id, 2, &[]),
                    Ok(id) => {
                        writer.prepared(id, 4, &echo_columns(self.server.ground.borrow().added))
                    }
                    Err(complaint) => writer.err(&written(&complaint)),
                }
                return Ok(());
            }
            Command::Execute(Execute { id, .. }) | Command::BulkExecute { id, .. }
                if mind.inserts(*id) =>
            {
                mind.has.begin("EXECUTE");
                let said = self
                    .disturbs(mind, &id.to_string())
                    .map_or_else(|| self.insert_rows(command, caps, mind), Err);
                if let Err(complaint) = &said {
                    mind.has.fail(complaint);
                }
                said
            }
            Command::BulkExecute { id, .. } => {
                mind.has.begin("EXECUTE");
                let complaint = no_statement(&id.to_string(), "EXECUTE");
                mind.has.fail(&complaint);
                Err(complaint)
            }
            Command::Execute(execute) => {
                mind.has.begin("EXECUTE");
                let mut writer = Writer::new(out, seq, caps, flags(mind));
                if let Some(complaint) = self.disturbs(mind, &execute.id.to_string()) {
                    mind.has.fail(&complaint);
                    writer.err(&written(&complaint));
                    return Ok(());
                }
                (mind.has.row_count, mind.has.found) = (-1, Some(1));
                let added = self.server.ground.borrow().added;
                match mind.prepared_in(execute.id) {
                    Ok(schema) => {
                        let parts = Parts::read(execute, 4, caps)?;
                        // It was not told types by anybody else: they have to come with every first
                        // execution.
                        let values = parts.decode(4, None, |_| None)?;
                        let tag = if let Some(Value::Bytes(tag)) = values.first() {
                            String::from_utf8_lossy(tag)
                        } else {
                            Cow::default()
                        };
                        let schema = schema.to_owned();
                        self.comes(client(&format!("'{tag}'")), mind);
                        mind.cursors.remove(&execute.id);
                        if execute.flags & CURSOR_FLAGS == 0 {
                            self.echo(&mut writer, &schema, &values, added);
                        } else {
                            let mut values: Vec<_> = values.iter().take(4).map(in_words).collect();
                            values.extend([
                                Some(self.id.to_string()),
                                Some(self.server.name.to_owned()),
                                Some(schema),
                            ]);
                            values.resize(values.len() + added, Some(ADDED.to_owned()));
                            mind.cursors.insert(
                                execute.id,
                                Cursor {
                                    values,
                                    left: rows_of_cursor(&tag),
                                },
                            );
                            writer.status |= status::CURSOR_EXISTS;
                            writer.columns(&echo_columns(added));
                            if caps::has(caps, caps::DEPRECATE_EOF) {
                                writer.end(0);
                            }
                        }
                    }
                    Err(complaint) => writer.err(&written(&complaint)),
                }
                return Ok(());
            }
            Command::Fetch { id, rows } => {
                let mut writer = Writer::new(out, seq, caps, flags(mind) | status::CURSOR_EXISTS);
                mind.has.row_count = -1;
                let Some(cursor) = mind.cursors.get_mut(id) else {
                    writer.err(&written(&Complaint(
                        1421,
                        format!("The statement ({id}) has no open cursor."),
                    )));
                    return Ok(());
                };
                let row: Vec<_> = cursor
                    .values
                    .iter()
                    .map(|value| {
                        value
                            .as_ref()
                            .map_or(Value::Null, |value| Value::Bytes(value.as_bytes()))
                    })
                    .collect();
                let columns: Vec<_> = (0..row.len())
                    .map(|n| Column::text(n.to_string()))
                    .collect();
                for _ in 0..cursor.left.min(*rows) {
                    writer.binary_row(&columns, &row);
                }
                // That there are no more is seen only by who looks for more.
                let over = *rows > cursor.left;
                cursor.left = cursor.left.saturating_sub(*rows);
                if over {
                    writer.status |= status::LAST_ROW_SENT;
                    mind.cursors.remove(id);
                }
                writer.end(0);
                return Ok(());
            }
            Command::Reset(id) => {
                mind.cursors.remove(id);
                Ok(Said::Ok)
            }
            Command::Close(id) => {
                mind.close(*id);
                return Ok(());
            }
            other => Err(Complaint(1047, format!("Unknown command {other:?}"))),
        };
        let mut writer = Writer::new(out, seq, caps, flags(mind));
        self.say(said, mind, &mut writer);
        Ok(())
    }

    fn query(&mut self, text: &str, mind: &mut Mind) -> Result<Said, Complaint> {
        if text == "SELECT 1 FROM (SELECT 1) nothing" && mind.has.warns() {
            self.server.judge.hit("warnings of others forgotten", 1);
        } else if text.starts_with("SET last_insert_id") {
            self.server.judge.hit("an insert id brought", 1);
        }
        let slot = text
            .strip_prefix("EXECUTE ")
            .and_then(|rest| rest.split(' ').next());
        if let Some(complaint) = slot
            .filter(|name| name.starts_with("millrace_"))
            .and_then(|name| self.disturbs(mind, name))
        {
            mind.has.begin(text);
            mind.has.fail(&complaint);
            return Err(complaint);
        }
        if changes_password(text) {
            return Ok(self.has_new_password(text, mind));
        }
        self.server.catch_up();
        if text.starts_with(ENGINES) {
            // All tables have transactions.
            return Ok(Said::Answer(Answer {
                columns: 1,
                rows: vec![vec![Some("0".to_owned())]],
                ..Answer::default()
            }));
        }
        if text.starts_with(LISTED) {
            return self.listed(text);
        }
        if text.starts_with("KILL ") {
            self.kill(text)
        } else {
            mind.query(text, self.id, &mut self.server.ground.borrow_mut())
        }
    }

    /// Somebody alters the table of a prepared statement, or its server loses it. Who is alone with
    /// a server has to live with that.
    fn disturbs(&self, mind: &mut Mind, which: &str) -> Option<Complaint> {
        let mut chance = self.server.chance.borrow_mut();
        if chance.percent(5) {
            self.server.ground.borrow_mut().added = usize::try_from(chance.below(3)).unwrap_or(0);
        }
        if !mind.executes(which) || self.is_courier || !chance.percent(20) {
            return None;
        }
        self.server
            .judge
            .hit("a statement that was to be prepared anew", 1);
        mind.forget(which);
        Some(if chance.percent(50) {
            Complaint(
                1615,
                "Prepared statement needs to be re-prepared".to_owned(),
            )
        } else {
            no_statement(which, "EXECUTE")
        })
    }

    /// Several statements in one text, up to the first that fails.
    fn each(
        &mut self,
        parts: &[&str],
        mind: &mut Mind,
        mut writer: Writer<'_>,
    ) -> Result<(), NetError> {
        for (at, part) in parts.iter().enumerate() {
            let said = self.query(part, mind);
            let failed = said.is_err();
            let more = if at + 1 < parts.len() {
                status::MORE_RESULTS
            } else {
                0
            };
            writer.status = flags(mind) | more;
            self.say(said, mind, &mut writer);
            if failed {
                break;
            }
        }
        Ok(())
    }

    /// Writes what was said, as it is on the wire.
    fn say(&self, said: Result<Said, Complaint>, mind: &Mind, writer: &mut Writer<'_>) {
        match said {
            Ok(Said::Ok) => writer.ok(&ok::Ok::default()),
            Ok(Said::Schema(name)) => {
                let mut changes = vec![
                    1,
                    u8::try_from(name.len() + 1).unwrap_or(0),
                    u8::try_from(name.len()).unwrap_or(0),
                ];
                changes.extend_from_slice(name.as_bytes());
                writer.ok(&ok::Ok {
                    changes: &changes,
                    ..ok::Ok::default()
                });
            }
            Ok(Said::Rows {
                tag, rows, large, ..
            }) => {
                let id = self.id.to_string();
                let filler = if large {
                    "x".repeat(100)
                } else {
                    String::new()
                };
                writer.columns(&["tag", "connection", "server", "filler"].map(Column::text));
                for _ in 0..rows {
                    writer.text_row(
                        [tag.as_str(), &id, self.server.name, &filler]
                            .map(|value| Some(value.as_bytes())),
                    );
                }
                writer.end(0);
            }
            Ok(Said::Named { values, schema }) => {
                let own = [self.id.to_string(), self.server.name.to_owned(), schema].map(Some);
                let row: Vec<_> = values.into_iter().chain(own).collect();
                writer.columns(
                    &(0..row.len())
                        .map(|n| Column::text(n.to_string()))
                        .collect::<Vec<_>>(),
                );
                writer.text_row(row.iter().map(|value| value.as_ref().map(String::as_bytes)));
                writer.end(0);
            }
            Ok(Said::Lines { tag, lines }) => {
                let id = self.id.to_string();
                writer.columns(&["tag", "connection", "server", "lines"].map(Column::text));
                writer.text_row(
                    [tag.as_str(), &id, self.server.name, &lines]
                        .map(|value| Some(value.as_bytes())),
                );
                writer.end(0);
            }
            Ok(Said::State { tag }) => {
                let mut columns: Vec<Column> =
                    ["tag", "connection", "server"].map(Column::text).into();
                columns.extend(STATE_COLUMNS.map(Column::text));
                writer.columns(&columns);
                let mut row = vec![tag, self.id.to_string(), self.server.name.to_owned()];
                row.extend(mind.report());
                writer.text_row(row.iter().map(|value| Some(value.as_bytes())));
                writer.end(0);
            }
            Ok(Said::Answer(answer)) if answer.columns == 0 => {
                let mut changes = Vec::new();
                if let Some((name, value)) =
                    answer.changed.as_ref().filter(|_| mind.tells_changes())
                {
                    let text = |text: &str| {
                        [&[u8::try_from(text.len()).unwrap_or(0)], text.as_bytes()].concat()
                    };
                    let both = [text(name), text(value)].concat();
                    let state: &[u8] = if answer.unnamed { b"\x02\x011" } else { b"" };
                    changes = [
                        &[0, u8::try_from(both.len()).unwrap_or(0)],
                        &both[..],
                        state,
                    ]
                    .concat();
                }
                let (affected, insert_id) = (answer.affected, answer.insert_id);
                writer.ok(&ok::Ok {
                    affected,
                    insert_id,
                    changes: &changes,
                    ..ok::Ok::default()
                });
            }
            Ok(Said::Answer(answer)) => {
                let columns: Vec<Column> = (0..answer.columns)
                    .map(|n| Column::text(n.to_string()))
                    .collect();
                writer.columns(&columns);
                for row in &answer.rows {
                    writer.text_row(row.iter().map(|value| value.as_ref().map(String::as_bytes)));
                }
                writer.end(answer.warnings);
            }
            Err(complaint) => writer.err(&written(&complaint)),
        }
    }

    fn echo(&self, writer: &mut Writer<'_>, schema: &str, values: &[Value<'_>], added: usize) {
        let columns = echo_columns(added);
        let id = self.id.to_string();
        writer.columns(&columns);
        let mut row: Vec<Value<'_>> = values.iter().take(4).copied().collect();
        row.extend(
            [id.as_str(), self.server.name, schema].map(|text| Value::Bytes(text.as_bytes())),
        );
        row.resize(columns.len(), Value::Bytes(ADDED.as_bytes()));
        // The columns are text: numbers come back in words.
        writer.binary_row(&columns, &row);
        writer.end(0);
    }
}

/// A command in a few words.
fn shown(command: &Command<'_>) -> String {
    match command {
        Command::Query(query) => String::from_utf8_lossy(query.sql).into_owned(),
        other => format!("{other:?}").chars().take(40).collect(),
    }
}

/// As the text that a column of text has of it.
fn in_words(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Bytes(text) => Some(String::from_utf8_lossy(text).into_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::Uint(number) => Some(number.to_string()),
        _ => None,
    }
}

fn echo_columns(added: usize) -> Vec<Column> {
    let mut columns: Vec<Column> = ["tag", "a", "b", "c", "connection", "server", "schema"]
        .map(Column::text)
        .into();
    columns.extend((0..added).map(|n| Column::text(format!("added{n}"))));
    columns
}

fn flags(mind: &Mind) -> u16 {
    let on = |yes: bool, flag: u16| if yes { flag } else { 0 };
    on(mind.autocommit, status::AUTOCOMMIT)
        | on(mind.in_transaction, status::IN_TRANS)
        | on(mind.only_reads(), status::IN_TRANS_READONLY)
}
