//! A connection of a control thread to somebody who speaks MySQL's protocol: the admin port of
//! another proxy, a server that is checked. Questions are texts, answers rows of texts, and both
//! have limits.
#![forbid(unsafe_code)]

use net::tls::{Connector, Settings};
use net::{Account, Conn, Refused, Secret};
use rt::{Address, Rt};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;
use wire::caps::{self, Caps};
use wire::command::COM_PING;
use wire::connect_attributes::ConnectAttributes;
use wire::ok;
use wire::read::Reader;

const CAPS: Caps = caps::LONG_PASSWORD
    | caps::LONG_FLAG
    | caps::PROTOCOL_41
    | caps::TRANSACTIONS
    | caps::SECURE_CONNECTION
    | caps::PLUGIN_AUTH;

/// The largest packet of an answer, in bytes.
const PACKET_MAX: usize = 64 << 20;
/// All answers that are here at once, in bytes; no admin port gives more.
const ANSWERS_MAX: usize = 512 << 20;
/// Bytes that a cell, or a row, takes besides its text.
const CELL_BYTES: usize = 48;
/// So much of what another proxy says is told, in characters.
const WORDS_MAX: usize = 500;
/// CR_AUTH_PLUGIN_CANNOT_LOAD: the other is there, and wants a proof that we cannot give.
const CANNOT_AUTHENTICATE: u16 = 2059;
/// CR_SSL_CONNECTION_ERROR: the other is there, and has no TLS.
const NO_TLS: u16 = 2026;
/// utf8mb4_general_ci.
const UTF8: u16 = 45;

/// Rows of texts.
pub type Rows = Vec<Vec<Option<Vec<u8>>>>;
/// Names of columns.
pub type Names = Vec<Box<str>>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// Nobody answers, or not in time, or nothing that can be understood: the connection is of no
    /// use any more.
    Lost(String),
    /// The other says no.
    Said {
        /// Its error number.
        code: u16,
        /// Its words, with the number.
        words: String,
    },
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Lost(words) | Self::Said { words, .. }) = self;
        f.write_str(words)
    }
}

impl std::error::Error for Failed {}

/// As whom, and for how long, somebody is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The user.
    pub user: Box<str>,
    /// In clear; empty for none.
    pub password: Box<str>,
    /// Whether the password itself is never said, also where nobody else could read it: the other's
    /// certificate is not looked at.
    pub never_in_clear: bool,
    /// Version of the header of the PROXY protocol that the other wants first; 0 for none.
    pub proxy_protocol: u8,
    /// Whether TLS is used: where the other offers it, or in any case, as these say.
    pub tls: Tls,
    /// How long it may take to find and reach an address, and to log in.
    pub connect: Duration,
    /// How long the other may be silent.
    pub silent: Duration,
    /// How long a whole answer may take.
    pub whole: Duration,
}

/// Whether a line is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// Never.
    No,
    /// Where the other offers it. Its certificate is not looked at.
    IfOffered,
    /// In any case.
    Yes(Box<Settings>),
}

/// The memory that an answer takes of what there is for all of them; it gives it back when it is
/// dropped.
pub struct Room<'a> {
    /// Bytes of all answers, `max` at most.
    all: &'a Cell<usize>,
    max: usize,
    /// Bytes of this one.
    own: usize,
}

impl<'a> Room<'a> {
    /// Room for one answer, counted among `all` bytes of those that come now.
    #[must_use]
    pub fn among(all: &'a Cell<usize>) -> Self {
        Self {
            all,
            max: ANSWERS_MAX,
            own: 0,
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Failed> {
        let all = self.all.get().saturating_add(bytes);
        if all > self.max {
            return Err(Failed::Lost(format!(
                "its answer, with those of others that come now, takes more than {} bytes",
                self.max
            )));
        }
        self.own += bytes;
        self.all.set(all);
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.all.set(self.all.get() - self.own);
    }
}

/// Shortens what another proxy says, for the log: not too much of it, and on one line.
pub fn words_of_another(words: &str) -> String {
    let cut: String = words.chars().take(WORDS_MAX).collect();
    on_one_line(&cut)
}

/// Without characters that end a line or do something to a terminal.
pub fn on_one_line(words: &str) -> String {
    words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Settings of TLS that were read before: files are read, and the machine's authorities parsed, once
/// and not for each of thousands of connections.
#[derive(Default)]
pub struct Connectors(RefCell<HashMap<Settings, Connector>>);

/// So many are remembered.
const CONNECTORS_MAX: usize = 256;

impl Connectors {
    fn of(&self, settings: Settings) -> Result<Connector, String> {
        let mut known = self.0.borrow_mut();
        if let Some(connector) = known.get(&settings) {
            return Ok(connector.clone());
        }
        let connector = Connector::new(&settings)?;
        if known.len() >= CONNECTORS_MAX {
            known.clear();
        }
        known.insert(settings, connector.clone());
        Ok(connector)
    }

    /// Forgets all: files behind the same names may have changed.
    pub fn renew(&self) {
        self.0.borrow_mut().clear();
    }
}

/// A connection.
pub struct Line {
    rt: Rt,
    conn: Conn,
    who: Who,
    version: Box<str>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line(as {} to {})", self.who.user, self.version)
    }
}

impl Line {
    /// Connects and logs in.
    ///
    /// # Errors
    /// What the last of its addresses said, or that none did.
    pub async fn open(rt: &Rt, host: &str, port: u16, who: &Who) -> Result<Self, Failed> {
        Self::open_with(rt, (host, port), who, &Connectors::default()).await
    }

    /// Connects and logs in, with settings of TLS that others have used before.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(
        rt: &Rt,
        (host, port): (&str, u16),
        who: &Who,
        connectors: &Connectors,
    ) -> Result<Self, Failed> {
        let resolved = rt.timeout(who.connect, rt.resolve(host, port)).await;
        let addresses = resolved
            .map_err(|_late| Failed::Lost("nobody says in time where it is".to_owned()))?
            .map_err(|error| Failed::Lost(format!("nobody says where it is: {error}")))?;
        let mut why = Failed::Lost("it has no address".to_owned());
        for address in addresses {
            let entered = Self::log_in(rt, &address, host, who, connectors);
            match rt.timeout(who.connect, entered).await {
                Ok(Ok(line)) => return Ok(line),
                Ok(Err(failed)) => why = failed,
                Err(_late) => {
                    why = Failed::Lost(format!("no answer within {}", said_of(who.connect)))
                }
            }
        }
        Err(why)
    }

    async fn log_in(
        rt: &Rt,
        address: &Address,
        host: &str,
        who: &Who,
        connectors: &Connectors,
    ) -> Result<Self, Failed> {
        let secret = if who.password.is_empty() {
            Secret::None
        } else {
            Secret::Clear(who.password.to_string())
        };
        let attributes = ConnectAttributes::default();
        let connect = async || {
            let lost = |error: &dyn std::fmt::Display| Failed::Lost(error.to_string());
            let socket = rt.connect(address).await.map_err(|error| lost(&error))?;
            let mut conn = Conn::new(socket);
            if who.proxy_protocol > 0 {
                // For nobody but ourselves.
                let mut header = Vec::with_capacity(64);
                wire::proxied::write(&mut header, who.proxy_protocol, None, None);
                conn.send(header).await.map_err(|error| lost(&error))?;
            }
            Ok(conn)
        };
        let mut conn = connect().await?;
        // Made behind the connect: it reads files, and most attempts at one that is down end
        // before.
        let settings = match &who.tls {
            Tls::No => None,
            Tls::IfOffered => Some(Settings::default()),
            Tls::Yes(settings) => Some((**settings).clone()),
        };
        let connector = settings.map(|settings| connectors.of(settings)).transpose();
        let connector = connector.map_err(Failed::Lost)?;
        let mut account = Account {
            user: &who.user,
            secret: &secret,
            database: None,
            caps: CAPS,
            charset: UTF8,
            attributes: &attributes,
            compression: None,
            tls: connector.as_ref(),
            host,
            never_in_clear: who.never_in_clear,
        };
        let mut logged_in = net::login(&mut conn, &account).await;
        if matches!(logged_in, Err(Refused::NoTls)) && who.tls == Tls::IfOffered {
            conn = connect().await?;
            account.tls = None;
            logged_in = net::login(&mut conn, &account).await;
        }
        let hello = logged_in.map_err(|refused| match refused {
            Refused::Server { code, .. } => Failed::Said {
                code,
                words: words_of_another(&refused.to_string()),
            },
            Refused::Impossible(_) => Failed::Said {
                code: CANNOT_AUTHENTICATE,
                words: words_of_another(&refused.to_string()),
            },
            Refused::NoTls => Failed::Said {
                code: NO_TLS,
                words: words_of_another(&refused.to_string()),
            },
            Refused::Net(_) => Failed::Lost(words_of_another(&refused.to_string())),
        })?;
        Ok(Self {
            rt: rt.clone(),
            conn,
            who: who.clone(),
            version: hello.version.into(),
        })
    }

    /// Whether it was opened so.
    #[must_use]
    pub fn is_as(&self, who: &Who) -> bool {
        self.who == *who
    }

    /// Whether it was opened as that user, and so encrypted, however long answers may take.
    #[must_use]
    pub fn is_like(&self, who: &Who) -> bool {
        let as_whom = |who: &Who| {
            let Who {
                user,
                password,
                never_in_clear: _,
                proxy_protocol,
                tls,
                connect: _,
                silent: _,
                whole: _,
            } = who;
            (user.clone(), password.clone(), *proxy_protocol, tls.clone())
        };
        as_whom(&self.who) == as_whom(who)
    }

    /// Answers may take so long from now on.
    pub fn be_patient(&mut self, answer: Duration) {
        (self.who.silent, self.who.whole) = (answer, answer);
    }

    /// The version that the other has greeted with.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Has the other say that it is there.
    ///
    /// # Errors
    /// It does not, or says something else.
    pub async fn ping(&mut self) -> Result<(), Failed> {
        self.say(&[COM_PING]).await?;
        let answer = self.packet().await?;
        match answer.first() {
            Some(&ok::OK_HEADER) => Ok(()),
            Some(&ok::ERR_HEADER) => Err(said(&answer)),
            _ => Err(malformed()),
        }
    }

    /// Answers a question, where the answer is little.
    ///
    /// # Errors
    /// There is no answer, or a no.
    pub async fn ask(&mut self, sql: &str) -> Result<Rows, Failed> {
        self.ask_in(sql, &mut Room::among(&Cell::new(0))).await
    }

    /// Answers a question, where the answer may be much.
    ///
    /// # Errors
    /// As [`Line::ask`], or there is no room for it.
    pub async fn ask_in(&mut self, sql: &str, room: &mut Room<'_>) -> Result<Rows, Failed> {
        self.ask_whole(sql, room).await.map(|(_, rows)| rows)
    }

    /// Answers a question, with the names of its columns, where the answer is little.
    ///
    /// # Errors
    /// As [`Line::ask`].
    pub async fn ask_named(&mut self, sql: &str) -> Result<(Names, Rows), Failed> {
        let all = Cell::new(0);
        let mut room = Room::among(&all);
        self.ask_whole(sql, &mut room).await
    }

    async fn ask_whole(&mut self, sql: &str, room: &mut Room<'_>) -> Result<(Names, Rows), Failed> {
        let (rt, whole) = (self.rt.clone(), self.who.whole);
        let asked = rt.timeout(whole, self.answer(sql, room)).await;
        asked.unwrap_or_else(|_late| {
            Err(Failed::Lost(format!(
                "its answer was not whole after {}",
                said_of(whole)
            )))
        })
    }

    async fn answer(&mut self, sql: &str, room: &mut Room<'_>) -> Result<(Names, Rows), Failed> {
        let mut payload = Vec::with_capacity(sql.len() + 1);
        wire::command::write_query(&mut payload, sql.as_bytes(), CAPS);
        self.say(&payload).await?;
        let first = self.packet().await?;
        let width = match first.first() {
            Some(&ok::OK_HEADER) => return Ok(Default::default()),
            Some(&ok::ERR_HEADER) => return Err(said(&first)),
            _ => Reader::new(&first)
                .lenenc_int()
                .ok()
                .filter(|width| (1..=4096).contains(width))
                .ok_or_else(malformed)?,
        };
        let mut names = Names::new();
        for _ in 0..width {
            names.push(name_of(&self.packet().await?));
        }
        let _end_of_definitions = self.packet().await?;
        let mut rows = Rows::new();
        loop {
            let packet = self.packet().await?;
            match packet.first() {
                Some(&ok::EOF_HEADER) if packet.len() < 9 => return Ok((names, rows)),
                Some(&ok::ERR_HEADER) => return Err(said(&packet)),
                _ => {}
            }
            room.take(packet.len() + CELL_BYTES * (width as usize + 1))?;
            let mut reader = Reader::new(&packet);
            let row = (0..width).map(|_| Ok(reader.lenenc_or_null()?.map(<[u8]>::to_vec)));
            rows.push(
                row.collect::<Result<_, wire::Malformed>>()
                    .map_err(|_| malformed())?,
            );
        }
    }

    /// Sends a command whose answer is a log: [`Line::event`] has what comes of it, and nothing else is
    /// asked here any more.
    ///
    /// # Errors
    /// It cannot be sent.
    pub async fn begin(&mut self, command: &[u8]) -> Result<(), Failed> {
        self.say(command).await
    }

    /// The next event of a log.
    ///
    /// # Errors
    /// The other ends it, or is silent for too long.
    pub async fn event(&mut self) -> Result<Vec<u8>, Failed> {
        let mut packet = self.packet().await?;
        match packet.first() {
            Some(&ok::OK_HEADER) => {
                packet.remove(0);
                Ok(packet)
            }
            Some(&ok::ERR_HEADER) => Err(said(&packet)),
            Some(&ok::EOF_HEADER) => Err(Failed::Lost("it has ended its log".to_owned())),
            _ => Err(malformed()),
        }
    }

    async fn say(&mut self, command: &[u8]) -> Result<(), Failed> {
        self.conn.restart_at(0);
        let said = self.conn.reply(command).await;
        said.map_err(|error| Failed::Lost(error.to_string()))
    }

    async fn packet(&mut self) -> Result<Vec<u8>, Failed> {
        let silent = self.who.silent;
        match self.rt.timeout(silent, self.conn.packet(PACKET_MAX)).await {
            Ok(Ok(packet)) => Ok(packet.payload().to_vec()),
            Ok(Err(error)) => Err(Failed::Lost(error.to_string())),
            Err(_late) => Err(Failed::Lost(format!(
                "no answer within {}",
                said_of(silent)
            ))),
        }
    }
}

/// The name in the definition of a column; empty if that is none.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_column_definition.html>
fn name_of(definition: &[u8]) -> Box<str> {
    let mut reader = Reader::new(definition);
    // Behind catalog, schema, table and original table.
    let fifth = (0..5).map_while(|_| reader.lenenc_or_null().ok()).nth(4);
    let name = fifth.flatten().unwrap_or_default();
    String::from_utf8_lossy(name).into()
}

fn said(packet: &[u8]) -> Failed {
    match ok::Err::read(packet) {
        Ok(err) => {
            let message = String::from_utf8_lossy(err.message);
            Failed::Said {
                code: err.code,
                words: words_of_another(&format!("error {}: {message}", err.code)),
            }
        }
        Err(_) => malformed(),
    }
}

/// In seconds where it is some, else in milliseconds.
fn said_of(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds => format!("{seconds} s"),
    }
}

fn malformed() -> Failed {
    Failed::Lost("its answer is not what the protocol promises".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::sim::{Faults, Limits};

    fn lenenc(cells: &[Option<&str>]) -> Vec<u8> {
        let cell = |cell: &Option<&str>| match cell {
            Some(text) => [&[text.len() as u8], text.as_bytes()].concat(),
            None => vec![0xFB],
        };
        cells.iter().flat_map(cell).collect()
    }

    /// Returns what a line hears of a proxy that answers with these packets, and so long a pause
    /// before each.
    fn hears(
        packets: Vec<Vec<u8>>,
        pause: Duration,
        whole: Duration,
        max: usize,
    ) -> Result<Rows, Failed> {
        let heard = std::rc::Rc::new(RefCell::new(None));
        let kept = heard.clone();
        let limits = Limits {
            time_max: Duration::from_secs(3600),
            turns_max: 1_000_000,
        };
        rt::sim::run_with(1, Faults::perfect(), limits, |rt| async move {
            let at: Address = "10.0.0.1:6032".parse().unwrap();
            let listener = rt.listen(&at, rt::ListenOptions::default()).unwrap();
            let (ours, theirs) = (
                rt.connect(&at).await.unwrap(),
                listener.accept().await.unwrap(),
            );
            let clock = rt.clone();
            rt.spawn(async move {
                let mut other = Conn::new(theirs);
                let _asked = other.packet(1000).await.map(drop);
                for packet in packets {
                    let _pause = clock.timeout(pause, std::future::pending::<()>()).await;
                    if other.reply(&packet).await.is_err() {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            });
            let mut line = Line {
                rt: rt.clone(),
                conn: Conn::new(ours),
                who: Who {
                    user: "".into(),
                    password: "".into(),
                    never_in_clear: true,
                    proxy_protocol: 0,
                    tls: Tls::No,
                    connect: Duration::from_secs(5),
                    silent: Duration::from_secs(15),
                    whole,
                },
                version: "".into(),
            };
            let all = Cell::new(0);
            let mut room = Room {
                all: &all,
                max,
                own: 0,
            };
            kept.replace(Some(line.ask_in("x", &mut room).await));
            drop(room);
            assert_eq!(all.get(), 0);
        });
        heard.take().unwrap()
    }

    fn answer(rows: usize, row: &[Option<&str>]) -> Vec<Vec<u8>> {
        let mut packets = vec![vec![row.len() as u8]];
        packets.extend(vec![b"a column".to_vec(); row.len()]);
        let end = vec![ok::EOF_HEADER, 0, 0, 2, 0];
        packets.push(end.clone());
        packets.extend(vec![lenenc(row); rows]);
        packets.push(end);
        packets
    }

    #[test]
    fn an_answer_has_a_limit_of_time_and_of_memory() {
        const WIDE: Duration = Duration::from_secs(1000);
        let (at_once, row) = (Duration::ZERO, [Some("a"), None]);
        let whole = hears(answer(3, &row), at_once, WIDE, 1000).unwrap();
        assert_eq!(whole, vec![vec![Some(b"a".to_vec()), None]; 3]);
        // One row a second is never silent for long.
        let drips = hears(
            answer(30, &row),
            Duration::from_secs(1),
            Duration::from_secs(12),
            100_000,
        );
        assert_eq!(
            drips,
            Err(Failed::Lost("its answer was not whole after 12 s".into()))
        );
        // Two bytes on the wire are a hundred here.
        let Err(Failed::Lost(words)) = hears(answer(100, &[None, None]), at_once, WIDE, 10_000)
        else {
            panic!()
        };
        assert!(words.contains("takes more than 10000 bytes"), "{words}");
        let silent = hears(answer(1, &row), Duration::from_secs(20), WIDE, 10_000);
        assert_eq!(silent, Err(Failed::Lost("no answer within 15 s".into())));
    }

    #[test]
    fn another_proxy_writes_no_lines_into_the_log() {
        let mut error = Vec::new();
        let message = format!("no\n[INFO] all is well\x1b[2J{}", "x".repeat(10_000));
        ok::Err {
            code: 1045,
            state: *b"28000",
            message: message.as_bytes(),
        }
        .write(&mut error);
        let whole = Duration::from_secs(120);
        let Err(Failed::Said { words, .. }) = hears(vec![error], Duration::ZERO, whole, 1000)
        else {
            panic!()
        };
        assert!(
            words.starts_with("error 1045: no [INFO] all is well [2Jxxx"),
            "{words}"
        );
        assert_eq!(words.chars().count(), WORDS_MAX);
    }
}
