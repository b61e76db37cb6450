//! A connection to the admin port of another proxy.

use config::Variables;
use net::tls::{Connector, Settings};
use net::{Account, Conn, Refused, Secret};
use rt::{Address, Rt};
use std::cell::Cell;
use std::time::Duration;
use wire::caps::{self, Caps};
use wire::connect_attributes::ConnectAttributes;
use wire::ok;
use wire::read::Reader;

const CAPS: Caps = caps::LONG_PASSWORD
    | caps::LONG_FLAG
    | caps::PROTOCOL_41
    | caps::TRANSACTIONS
    | caps::SECURE_CONNECTION
    | caps::PLUGIN_AUTH;

/// So long a proxy may be silent. It may have a LOAD of its own to do first.
const PATIENCE: Duration = Duration::from_secs(15);
/// So long it may take to be connected to.
const CONNECT: Duration = Duration::from_secs(5);
/// The largest packet of an answer, in bytes.
const PACKET_MAX: usize = 64 << 20;
/// An answer comes within that, or is none: one that drips is asked again.
const WHOLE: Duration = Duration::from_secs(120);
/// All answers that are here at once, in bytes; no admin port gives more.
const ANSWERS_MAX: usize = 512 << 20;
/// What a cell, or a row, takes besides its text.
const CELL_BYTES: usize = 48;
/// So much of what another proxy says is told, in characters.
const WORDS_MAX: usize = 500;
/// utf8mb4_general_ci.
const UTF8: u16 = 45;

/// Rows of texts.
pub(crate) type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The connection is of no use any more.
    Lost(String),
    /// The proxy says no.
    Said(String),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Lost(words) | Self::Said(words)) = self;
        f.write_str(words)
    }
}

/// The memory that an answer takes of what there is for all of them; it gives it back when it is
/// dropped.
pub(crate) struct Room<'a> {
    /// Bytes of all answers, `max` at most.
    all: &'a Cell<usize>,
    max: usize,
    /// Bytes of this one.
    own: usize,
}

impl<'a> Room<'a> {
    pub(crate) fn among(all: &'a Cell<usize>) -> Self {
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

/// What another proxy says, for the log: not too much of it, and on one line.
pub(crate) fn words_of_another(words: &str) -> String {
    let cut: String = words.chars().take(WORDS_MAX).collect();
    on_one_line(&cut)
}

/// Without characters that end a line or do something to a terminal.
pub(crate) fn on_one_line(words: &str) -> String {
    words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Such a connection.
pub(crate) struct Line {
    rt: Rt,
    conn: Conn,
    /// As whom it logged in.
    user: Box<str>,
    password: Box<str>,
}

impl Line {
    /// Connects and logs in, with TLS where the other offers it. Its certificate is not looked at:
    /// as with servers that have no CA configured.
    pub(crate) async fn open(
        rt: &Rt,
        host: &str,
        port: u16,
        variables: &Variables,
    ) -> Result<Self, String> {
        let resolved = rt.timeout(CONNECT, rt.resolve(host, port)).await;
        let addresses = resolved.map_err(|_late| "nobody says in time where it is".to_owned())?;
        let mut why = "it has no address".to_owned();
        for address in addresses.map_err(|error| format!("nobody says where it is: {error}"))? {
            match rt
                .timeout(CONNECT, Self::log_in(rt, &address, host, variables))
                .await
            {
                Ok(Ok(line)) => return Ok(line),
                Ok(Err(words)) => why = words,
                Err(_late) => why = format!("no answer within {} seconds", CONNECT.as_secs()),
            }
        }
        Err(why)
    }

    async fn log_in(
        rt: &Rt,
        address: &Address,
        host: &str,
        variables: &Variables,
    ) -> Result<Self, String> {
        let (user, password) = (
            variables.admin_cluster_username.clone(),
            variables.admin_cluster_password.clone(),
        );
        let secret = if password.is_empty() {
            Secret::None
        } else {
            Secret::Clear(password.to_string())
        };
        let attributes = ConnectAttributes::default();
        let connect = async || {
            rt.connect(address)
                .await
                .map(Conn::new)
                .map_err(|error| error.to_string())
        };
        let mut conn = connect().await?;
        // Made behind the connect: it reads files, and most attempts at one that is down end
        // before.
        let connector = Connector::new(&Settings::default())?;
        let mut account = Account {
            user: &user,
            secret: &secret,
            database: None,
            caps: CAPS,
            charset: UTF8,
            attributes: &attributes,
            compression: None,
            tls: Some(&connector),
            host,
            never_in_clear: true,
        };
        let mut logged_in = net::login(&mut conn, &account).await;
        if matches!(logged_in, Err(Refused::NoTls)) {
            conn = connect().await?;
            account.tls = None;
            logged_in = net::login(&mut conn, &account).await;
        }
        logged_in.map_err(|refused| words_of_another(&refused.to_string()))?;
        Ok(Self {
            rt: rt.clone(),
            conn,
            user,
            password,
        })
    }

    /// Whether it is logged in as these variables say.
    pub(crate) fn is_as(&self, variables: &Variables) -> bool {
        self.user == variables.admin_cluster_username
            && self.password == variables.admin_cluster_password
    }

    /// What the other answers, where that is little.
    pub(crate) async fn ask(&mut self, sql: &str) -> Result<Rows, Failed> {
        self.ask_within(sql, WHOLE, &mut Room::among(&Cell::new(0)))
            .await
    }

    /// The same where it may be much.
    pub(crate) async fn ask_in(&mut self, sql: &str, room: &mut Room<'_>) -> Result<Rows, Failed> {
        self.ask_within(sql, WHOLE, room).await
    }

    async fn ask_within(
        &mut self,
        sql: &str,
        whole: Duration,
        room: &mut Room<'_>,
    ) -> Result<Rows, Failed> {
        let rt = self.rt.clone();
        let asked = rt.timeout(whole, self.answer(sql, room)).await;
        asked.unwrap_or_else(|_late| {
            Err(Failed::Lost(format!(
                "its answer was not whole after {} s",
                whole.as_secs()
            )))
        })
    }

    async fn answer(&mut self, sql: &str, room: &mut Room<'_>) -> Result<Rows, Failed> {
        let mut payload = Vec::with_capacity(sql.len() + 1);
        wire::command::write_query(&mut payload, sql.as_bytes(), CAPS);
        self.conn.restart_at(0);
        self.conn
            .reply(&payload)
            .await
            .map_err(|error| Failed::Lost(error.to_string()))?;
        let first = self.packet().await?;
        let width = match first.first() {
            Some(&ok::OK_HEADER) => return Ok(Rows::new()),
            Some(&ok::ERR_HEADER) => return Err(said(&first)),
            _ => Reader::new(&first)
                .lenenc_int()
                .ok()
                .filter(|width| (1..=4096).contains(width))
                .ok_or_else(malformed)?,
        };
        // The definitions of columns, and what ends them.
        for _ in 0..=width {
            self.packet().await?;
        }
        let mut rows = Rows::new();
        loop {
            let packet = self.packet().await?;
            match packet.first() {
                Some(&ok::EOF_HEADER) if packet.len() < 9 => return Ok(rows),
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

    async fn packet(&mut self) -> Result<Vec<u8>, Failed> {
        match self
            .rt
            .timeout(PATIENCE, self.conn.packet(PACKET_MAX))
            .await
        {
            Ok(Ok(packet)) => Ok(packet.payload().to_vec()),
            Ok(Err(error)) => Err(Failed::Lost(error.to_string())),
            Err(_late) => Err(Failed::Lost(format!(
                "no answer within {} seconds",
                PATIENCE.as_secs()
            ))),
        }
    }
}

fn said(packet: &[u8]) -> Failed {
    match ok::Err::read(packet) {
        Ok(err) => Failed::Said(words_of_another(&format!(
            "error {}: {}",
            err.code,
            String::from_utf8_lossy(err.message)
        ))),
        Err(_) => malformed(),
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

    /// What a line hears of one that answers with these packets, and so long a pause before each.
    fn hears(
        packets: Vec<Vec<u8>>,
        pause: Duration,
        whole: Duration,
        max: usize,
    ) -> Result<Rows, Failed> {
        let heard = std::rc::Rc::new(std::cell::RefCell::new(None));
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
                user: "".into(),
                password: "".into(),
            };
            let all = Cell::new(0);
            let mut room = Room {
                all: &all,
                max,
                own: 0,
            };
            kept.replace(Some(line.ask_within("x", whole, &mut room).await));
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
        assert_eq!(
            silent,
            Err(Failed::Lost("no answer within 15 seconds".into()))
        );
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
        let Err(Failed::Said(words)) = hears(vec![error], Duration::ZERO, WHOLE, 1000) else {
            panic!()
        };
        assert!(
            words.starts_with("error 1045: no [INFO] all is well [2Jxxx"),
            "{words}"
        );
        assert_eq!(words.chars().count(), WORDS_MAX);
    }
}
