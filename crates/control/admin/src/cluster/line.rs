//! A connection to the admin port of another proxy.

use config::Variables;
use net::tls::{Connector, Settings};
use net::{Account, Conn, Refused, Secret};
use rt::{Address, Rt};
use std::time::Duration;
use wire::caps::{self, Caps};
use wire::connect_attributes::ConnectAttributes;
use wire::ok;
use wire::read::Reader;

const CAPS: Caps =
    caps::LONG_PASSWORD | caps::LONG_FLAG | caps::PROTOCOL_41 | caps::TRANSACTIONS | caps::SECURE_CONNECTION | caps::PLUGIN_AUTH;

/// So long a proxy may be silent. It may have a LOAD of its own to do first.
const PATIENCE: Duration = Duration::from_secs(15);
/// So long it may take to be connected to.
const CONNECT: Duration = Duration::from_secs(5);
/// The largest packet of an answer, in bytes.
const PACKET_MAX: usize = 64 << 20;
/// The largest answer, in bytes; no admin port gives more.
const ANSWER_MAX: usize = 512 << 20;
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

/// Such a connection.
pub(crate) struct Line {
    rt: Rt,
    conn: Conn,
    /// As whom it logged in.
    user: Box<str>,
    password: Box<str>,
}

impl Line {
    /// Connects and logs in, with TLS where the other offers it. Its certificate is not looked at: as with servers that have no CA configured.
    pub(crate) async fn open(rt: &Rt, host: &str, port: u16, variables: &Variables) -> Result<Self, String> {
        let resolved = rt.timeout(CONNECT, rt.resolve(host, port)).await;
        let addresses = resolved.map_err(|_late| "nobody says in time where it is".to_owned())?;
        let mut why = "it has no address".to_owned();
        for address in addresses.map_err(|error| format!("nobody says where it is: {error}"))? {
            match rt.timeout(CONNECT, Self::log_in(rt, &address, host, variables)).await {
                Ok(Ok(line)) => return Ok(line),
                Ok(Err(words)) => why = words,
                Err(_late) => why = format!("no answer within {} seconds", CONNECT.as_secs()),
            }
        }
        Err(why)
    }

    async fn log_in(rt: &Rt, address: &Address, host: &str, variables: &Variables) -> Result<Self, String> {
        let (user, password) = (variables.admin_cluster_username.clone(), variables.admin_cluster_password.clone());
        let secret = if password.is_empty() { Secret::None } else { Secret::Clear(password.to_string()) };
        let attributes = ConnectAttributes::default();
        let connect = async || rt.connect(address).await.map(Conn::new).map_err(|error| error.to_string());
        let mut conn = connect().await?;
        // Made behind the connect: it reads files, and most attempts at one that is down end before.
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
        };
        let mut logged_in = net::login(&mut conn, &account).await;
        if matches!(logged_in, Err(Refused::NoTls)) {
            conn = connect().await?;
            account.tls = None;
            logged_in = net::login(&mut conn, &account).await;
        }
        logged_in.map_err(|refused| refused.to_string())?;
        Ok(Self { rt: rt.clone(), conn, user, password })
    }

    /// Whether it is logged in as these variables say.
    pub(crate) fn is_as(&self, variables: &Variables) -> bool {
        self.user == variables.admin_cluster_username && self.password == variables.admin_cluster_password
    }

    /// What the other answers.
    pub(crate) async fn ask(&mut self, sql: &str) -> Result<Rows, Failed> {
        let mut payload = Vec::with_capacity(sql.len() + 1);
        wire::command::write_query(&mut payload, sql.as_bytes(), CAPS);
        self.conn.restart_at(0);
        self.conn.reply(&payload).await.map_err(|error| Failed::Lost(error.to_string()))?;
        let first = self.packet().await?;
        let width = match first.first() {
            Some(&ok::OK_HEADER) => return Ok(Rows::new()),
            Some(&ok::ERR_HEADER) => return Err(said(&first)),
            _ => Reader::new(&first).lenenc_int().ok().filter(|width| (1..=4096).contains(width)).ok_or_else(malformed)?,
        };
        // The definitions of columns, and what ends them.
        for _ in 0..=width {
            self.packet().await?;
        }
        let (mut rows, mut bytes) = (Rows::new(), 0);
        loop {
            let packet = self.packet().await?;
            match packet.first() {
                Some(&ok::EOF_HEADER) if packet.len() < 9 => return Ok(rows),
                Some(&ok::ERR_HEADER) => return Err(said(&packet)),
                _ => {}
            }
            bytes += packet.len();
            if bytes > ANSWER_MAX {
                return Err(Failed::Lost(format!("its answer has more than {ANSWER_MAX} bytes")));
            }
            let mut reader = Reader::new(&packet);
            let row = (0..width).map(|_| Ok(reader.lenenc_or_null()?.map(<[u8]>::to_vec)));
            rows.push(row.collect::<Result<_, wire::Malformed>>().map_err(|_| malformed())?);
        }
    }

    async fn packet(&mut self) -> Result<Vec<u8>, Failed> {
        match self.rt.timeout(PATIENCE, self.conn.packet(PACKET_MAX)).await {
            Ok(Ok(packet)) => Ok(packet.payload().to_vec()),
            Ok(Err(error)) => Err(Failed::Lost(error.to_string())),
            Err(_late) => Err(Failed::Lost(format!("no answer within {} seconds", PATIENCE.as_secs()))),
        }
    }
}

fn said(packet: &[u8]) -> Failed {
    match ok::Err::read(packet) {
        Ok(err) => Failed::Said(format!("error {}: {}", err.code, String::from_utf8_lossy(err.message))),
        Err(_) => malformed(),
    }
}

fn malformed() -> Failed {
    Failed::Lost("its answer is not what the protocol promises".into())
}
