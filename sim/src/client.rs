//! A client that speaks MySQL by itself: it reads answers with code of its own, and counts packets.

use crate::chance::Chance;
use crate::server::FILE_HEADER;
use net::{Conn, NetError, Refused};
use rt::{Address, Rt};
use std::time::Duration;
use wire::auth;
use wire::caps::{self, Caps};
use wire::frame::Algorithm;
use wire::handshake::{AuthReply, ChangeUser};
use wire::read::Reader;
use wire::{ok, packet, status};

const PACKET_LEN_MAX: usize = 64 << 20;

/// Values of a row; `None` is NULL.
pub(crate) type Row = Vec<Option<String>>;

/// An answer.
#[derive(Debug)]
pub(crate) enum Reply {
    Ok,
    Err {
        code: u16,
        message: String,
    },
    Rows(Vec<Row>),
    Prepared {
        id: u32,
        params: u16,
    },
    /// A cursor is open.
    Opened,
}

/// Kind of answer that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Text,
    Binary,
    Prepared,
    /// An execution that opens a cursor.
    Cursor,
    /// Rows of a cursor, without their columns.
    Fetched {
        columns: usize,
    },
    /// Of who was asked for a file before.
    Filed,
}

/// Failure of the connection or its protocol.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Connection that is gone.
    Net(NetError),
    /// Bytes that came and are not MySQL.
    Protocol(String),
}

impl From<NetError> for Broken {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Malformed(what) => Self::Protocol(what.to_string()),
            other => Self::Net(other),
        }
    }
}

impl From<wire::Malformed> for Broken {
    fn from(what: wire::Malformed) -> Self {
        Self::Protocol(what.to_string())
    }
}

/// A connection of a client.
pub(crate) struct Client {
    rt: Rt,
    conn: Conn,
    caps: Caps,
    /// Number of the next packet of the answer.
    seq: u8,
    /// Number of packets after each of which the client rests, and for how long.
    pub(crate) rest: Option<(u64, Duration)>,
    packets: u64,
    /// Packets of this answer.
    came: u64,
    /// Whether the client may say several statements in one text.
    pub(crate) several: bool,
    /// Whether the client may execute a statement with many rows at once.
    pub(crate) bulk: bool,
    /// Whether what the client has read is the last that the other side says.
    pub(crate) dismissed: bool,
    /// The file that it has, in pieces, and its name.
    pub(crate) file: (String, Vec<Vec<u8>>),
    /// The id that the last OK told, and the rows that it has affected.
    pub(crate) insert_id: u64,
    pub(crate) affected: u64,
    pub(crate) compression: Option<net::Compression>,
    /// How many columns the last rows have.
    pub(crate) columns: usize,
    /// How many rows came last.
    pub(crate) rows: usize,
    /// Flags of the end of the last rows.
    pub(crate) status: u16,
    /// Number of its session: what the greeting said, and what a server says where nothing is
    /// between.
    pub(crate) greeted: u32,
    pub(crate) number: u32,
}

impl Client {
    pub(crate) async fn log_in(
        rt: &Rt,
        to: &Address,
        user: &str,
        schema: Option<&str>,
        charset: u16,
        more: Caps,
        chance: &mut Chance,
    ) -> Result<Self, Refused> {
        let mut conn = Conn::new(rt.connect(to).await?);
        let deprecate = if chance.percent(50) {
            caps::DEPRECATE_EOF
        } else {
            0
        };
        let several = if chance.percent(50) {
            caps::MULTI_STATEMENTS
        } else {
            0
        };
        let algorithm = *chance.one_of(&[Algorithm::Zlib, Algorithm::Zstd]);
        let compression = chance.percent(30).then_some(net::Compression {
            algorithm,
            zlib_level: 1,
            zstd_level: 1,
        });
        let account = net::Account {
            user,
            secret: &net::Secret::Clear(crate::server::PASSWORD.to_owned()),
            database: schema,
            caps: caps::LONG_PASSWORD
                | caps::LONG_FLAG
                | caps::TRANSACTIONS
                | caps::MULTI_RESULTS
                | caps::LOCAL_FILES
                | caps::MARIADB_BULK
                | deprecate
                | several
                | more,
            charset,
            attributes: &wire::connect_attributes::ConnectAttributes::default(),
            compression,
            tls: None,
            host: "millrace",
            never_in_clear: false,
        };
        let hello = net::login(&mut conn, &account).await?;
        Ok(Self {
            rt: rt.clone(),
            conn,
            caps: hello.caps,
            seq: 0,
            rest: None,
            packets: 0,
            came: 0,
            several: several != 0,
            bulk: caps::has(hello.caps, caps::MARIADB_BULK),
            dismissed: false,
            file: Default::default(),
            insert_id: 0,
            affected: 0,
            compression,
            columns: 0,
            rows: 0,
            status: 0,
            greeted: hello.thread_id,
            number: hello.thread_id,
        })
    }

    /// COM_CHANGE_USER: it becomes this user, if the password is right.
    pub(crate) async fn change_user(
        &mut self,
        user: &str,
        password: &str,
        schema: &str,
        charset: u16,
    ) -> Result<Reply, Broken> {
        let change = ChangeUser {
            user: user.to_owned(),
            database: Some(schema.to_owned()).filter(|name| !name.is_empty()),
            charset: Some(charset),
            auth_plugin: Some("mysql_native_password".to_owned()),
            ..ChangeUser::default()
        };
        let mut payload = Vec::new();
        change.write(&mut payload, self.caps);
        self.send(&payload).await?;
        loop {
            let said = self.packet().await?;
            match AuthReply::read(&said, self.caps)? {
                AuthReply::Ok(_) => return Ok(Reply::Ok),
                AuthReply::Err(_) => return self.error(&said),
                AuthReply::Switch(switch) => {
                    let proof = auth::native_scramble(password.as_bytes(), &switch.nonce()?);
                    let mut framed = Vec::new();
                    packet::append(&mut framed, &mut self.seq, &proof);
                    self.conn.send(framed).await?;
                }
                _ => return Err(Broken::Protocol(format!("{said:?} to COM_CHANGE_USER"))),
            }
        }
    }

    /// Sends a command without waiting for anything.
    pub(crate) async fn send(&mut self, payload: &[u8]) -> Result<(), Broken> {
        let mut framed = Vec::new();
        packet::append(&mut framed, &mut 0, payload);
        self.seq = 1;
        self.came = 0;
        Ok(self.conn.send_commands(framed).await?)
    }

    /// A command and its answer.
    pub(crate) async fn ask(&mut self, payload: &[u8], due: Due) -> Result<Reply, Broken> {
        self.send(payload).await?;
        self.hear(due).await
    }

    /// Whether another answer to the same text comes.
    pub(crate) const fn more(&self) -> bool {
        self.status & status::MORE_RESULTS != 0
    }

    /// An answer, the first or one more.
    pub(crate) async fn hear(&mut self, due: Due) -> Result<Reply, Broken> {
        self.rows = 0;
        self.status = 0;
        if let Due::Fetched { columns } = due {
            return self.read_rows(columns, true).await;
        }
        let first = self.packet().await?;
        match first.first() {
            Some(&ok::ERR_HEADER) => return self.error(&first),
            Some(&ok::OK_HEADER) if due == Due::Prepared => return self.prepared(&first).await,
            Some(&FILE_HEADER) if due == Due::Filed => return self.send_file(&first[1..]).await,
            Some(&ok::OK_HEADER) => {
                let ok = ok::Ok::read(&first, self.caps)?;
                (self.insert_id, self.affected, self.status) =
                    (ok.insert_id, ok.affected, ok.status);
                return Ok(Reply::Ok);
            }
            _ => {}
        }
        if due == Due::Filed {
            return Err(Broken::Protocol(
                "rows instead of a question for a file".to_owned(),
            ));
        }
        let columns = usize::try_from(Reader::new(&first).lenenc_int()?).unwrap_or(usize::MAX);
        self.columns = columns;
        self.definitions(columns).await?;
        if due == Due::Cursor {
            let end = if caps::has(self.caps, caps::DEPRECATE_EOF) {
                Some(self.packet().await?)
            } else {
                None
            };
            let status = end.map_or(Ok(self.status), |end| self.end(&end))?;
            let opened = status & status::CURSOR_EXISTS != 0;
            return if opened {
                Ok(Reply::Opened)
            } else {
                Err(Broken::Protocol("no cursor was opened".to_owned()))
            };
        }
        self.read_rows(columns, due == Due::Binary).await
    }

    /// The whole file, and what is said to it.
    async fn send_file(&mut self, name: &[u8]) -> Result<Reply, Broken> {
        let (own, pieces) = std::mem::take(&mut self.file);
        if name != own.as_bytes() {
            return Err(Broken::Protocol(format!(
                "a question for the file {:?} instead of {own}",
                words(name)
            )));
        }
        for piece in pieces.iter().map(Vec::as_slice).chain([&[][..]]) {
            if self.send_piece(piece).await.is_err() {
                // Who has no use for it has said so, or hung up.
                break;
            }
        }
        let said = self.conn.packet(PACKET_LEN_MAX).await?;
        match said.payload().first() {
            // One that comes before the end of the file cannot know its number.
            Some(&ok::ERR_HEADER) => {
                self.dismissed |= said.seq != self.seq;
                self.error(said.payload())
            }
            Some(&ok::OK_HEADER) if said.seq == self.seq => {
                let ok = ok::Ok::read(said.payload(), self.caps)?;
                (self.insert_id, self.affected) = (ok.insert_id, ok.affected);
                Ok(Reply::Ok)
            }
            _ => Err(Broken::Protocol(format!(
                "packet {} after a file, where {} is due: {:?}",
                said.seq,
                self.seq,
                said.payload()
            ))),
        }
    }

    /// Some of the file; nothing is its end.
    pub(crate) async fn send_piece(&mut self, piece: &[u8]) -> Result<(), Broken> {
        self.packets += 1;
        if let Some((every, rest)) = self.rest
            && self.packets.is_multiple_of(every)
        {
            self.rt.sleep(rest).await;
        }
        let mut framed = Vec::new();
        packet::append(&mut framed, &mut self.seq, piece);
        Ok(self.conn.send(framed).await?)
    }

    /// Whether some of an answer was there when the connection ended with this.
    pub(crate) fn has_begun(&self, error: &NetError) -> bool {
        self.came > 0
            || matches!(error, NetError::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof)
    }

    /// The flags of an end of rows.
    fn end(&mut self, payload: &[u8]) -> Result<u16, Broken> {
        let deprecated = caps::has(self.caps, caps::DEPRECATE_EOF);
        self.status = if deprecated {
            ok::Ok::read(payload, self.caps)?.status
        } else {
            ok::read_eof(payload)?.1
        };
        Ok(self.status)
    }

    async fn read_rows(&mut self, columns: usize, binary: bool) -> Result<Reply, Broken> {
        let mut rows = Vec::new();
        loop {
            let payload = self.packet().await?;
            match payload.first() {
                Some(&ok::ERR_HEADER) => return self.error(&payload),
                Some(&ok::EOF_HEADER) if payload.len() < 0xFF_FFFF => {
                    self.end(&payload)?;
                    self.rows = rows.len();
                    return Ok(Reply::Rows(rows));
                }
                _ if binary => rows.push(binary_row(&payload, columns)?),
                _ => rows.push(text_row(&payload, columns)?),
            }
        }
    }

    fn error(&self, payload: &[u8]) -> Result<Reply, Broken> {
        let error = ok::Err::read(payload)?;
        Ok(Reply::Err {
            code: error.code,
            message: String::from_utf8_lossy(error.message).into_owned(),
        })
    }

    async fn prepared(&mut self, first: &[u8]) -> Result<Reply, Broken> {
        let mut r = Reader::new(first);
        r.u8()?;
        let (id, columns, params) = (r.u32()?, r.u16()?, r.u16()?);
        for n in [params, columns] {
            if n > 0 {
                self.definitions(n.into()).await?;
            }
        }
        Ok(Reply::Prepared { id, params })
    }

    async fn definitions(&mut self, n: usize) -> Result<(), Broken> {
        for _ in 0..n {
            let definition = self.packet().await?;
            if definition.get(..4) != Some(b"\x03def") {
                return Err(Broken::Protocol(
                    "no column definition where one is due".to_owned(),
                ));
            }
        }
        if !caps::has(self.caps, caps::DEPRECATE_EOF) {
            let eof = self.packet().await?;
            if eof.first() != Some(&ok::EOF_HEADER) || eof.len() != 5 {
                return Err(Broken::Protocol(
                    "no EOF packet after the definitions".to_owned(),
                ));
            }
            self.end(&eof)?;
        }
        Ok(())
    }

    /// The next packet of the answer, which has the next number.
    pub(crate) async fn packet(&mut self) -> Result<Vec<u8>, Broken> {
        self.packets += 1;
        if let Some((every, rest)) = self.rest
            && self.packets.is_multiple_of(every)
        {
            self.rt.sleep(rest).await;
        }
        let packet = match self.conn.packet(PACKET_LEN_MAX).await {
            // The same as below, in a frame of its own.
            Err(NetError::Malformed(what))
                if self.came == 0 && what.to_string().contains("answers no command") =>
            {
                self.dismissed = true;
                return Err(Broken::Net(NetError::Closed));
            }
            packet => packet?,
        };
        if self.came == 0 && packet.seq == 0 && packet.payload().first() == Some(&ok::ERR_HEADER) {
            // It was said before anything was asked: as servers do that will hear no more.
            self.dismissed = true;
            return Ok(packet.payload().to_vec());
        }
        self.came += 1;
        if packet.seq != self.seq {
            return Err(Broken::Protocol(format!(
                "packet {} where {} is due",
                packet.seq, self.seq
            )));
        }
        self.seq = self.seq.wrapping_add(1);
        Ok(packet.payload().to_vec())
    }
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text_row(payload: &[u8], columns: usize) -> Result<Row, Broken> {
    let mut r = Reader::new(payload);
    let mut row = Row::new();
    for _ in 0..columns {
        let value = r
            .lenenc_or_null()
            .map_err(|_| Broken::Protocol(format!("no row: {:?}", words(payload))))?;
        row.push(value.map(words));
    }
    if r.is_empty() {
        Ok(row)
    } else {
        Err(Broken::Protocol(format!(
            "bytes after the end of a row: {payload:?}"
        )))
    }
}

/// All columns of our world are text.
fn binary_row(payload: &[u8], columns: usize) -> Result<Row, Broken> {
    let mut r = Reader::new(payload);
    if r.u8()? != 0 {
        return Err(Broken::Protocol(
            "a binary row that does not begin with 0".to_owned(),
        ));
    }
    let nulls = r.take((columns + 2).div_ceil(8))?.to_vec();
    let mut row = Row::new();
    for at in 2..columns + 2 {
        let null = nulls
            .get(at / 8)
            .is_some_and(|byte| byte >> (at % 8) & 1 != 0);
        row.push(if null {
            None
        } else {
            Some(words(r.lenenc_bytes()?))
        });
    }
    if r.is_empty() {
        Ok(row)
    } else {
        Err(Broken::Protocol("bytes after the end of a row".to_owned()))
    }
}
