//! A small client for tests of doors: logs in, asks, and takes answers apart.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, clippy::or_fun_call, reason = "a test may")]

use rt::{Address, Rt, Socket};
use std::cell::Cell;
use wire::auth::{self, Plugin};
use wire::caps::{self, Caps};
use wire::handshake::{AuthReply, Greeting, Login};
use wire::ok;
use wire::packet;
use wire::read::Reader;

pub(crate) const CAPS: Caps = caps::LONG_PASSWORD
    | caps::PROTOCOL_41
    | caps::SECURE_CONNECTION
    | caps::PLUGIN_AUTH
    | caps::PLUGIN_AUTH_LENENC
    | caps::CONNECT_WITH_DB
    | caps::MULTI_RESULTS
    | caps::TRANSACTIONS
    | caps::DEPRECATE_EOF;

pub(crate) struct Client {
    pub(crate) socket: Socket,
    buf: std::cell::RefCell<Vec<u8>>,
    seq: Cell<u8>,
    pub(crate) caps: Caps,
}

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Got {
    Ok {
        affected: u64,
        insert_id: u64,
        status: u16,
        info: String,
    },
    Err(u16, String),
    Rows {
        columns: Vec<(String, u8)>,
        rows: Vec<Vec<Option<Vec<u8>>>>,
        status: u16,
    },
}

impl Got {
    pub(crate) fn texts(&self) -> Vec<Vec<String>> {
        let Self::Rows { rows, .. } = self else {
            panic!("{self:?}")
        };
        let text = |cell: &Option<Vec<u8>>| {
            cell.as_ref().map_or("NULL".into(), |bytes| {
                String::from_utf8_lossy(bytes).into_owned()
            })
        };
        rows.iter()
            .map(|row| row.iter().map(text).collect())
            .collect()
    }

    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Err(code, _) => *code,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Ok { status, .. } | Self::Rows { status, .. } => *status,
            Self::Err(..) => panic!("{self:?}"),
        }
    }
}

impl Client {
    pub(crate) async fn raw(rt: &Rt, at: &Address) -> Self {
        let socket = rt.connect(at).await.unwrap();
        Self {
            socket,
            buf: Default::default(),
            seq: Cell::new(0),
            caps: CAPS,
        }
    }

    /// Logs in as a client that begins with `plugin`, whatever the server says.
    pub(crate) async fn login(
        rt: &Rt,
        at: &Address,
        user: &str,
        password: &str,
        plugin: Plugin,
        more: Caps,
    ) -> Result<Self, (u16, String)> {
        let mut client = Self::raw(rt, at).await;
        client.caps |= more;
        let first = client.packet().await.unwrap();
        if first[0] == 0xFF {
            let err = ok::Err::read(&first).unwrap();
            return Err((err.code, String::from_utf8_lossy(err.message).into_owned()));
        }
        let greeting = Greeting::read(&first).unwrap();
        // As MySQL's own client: a proof is only made for the plugin that the greeting names.
        let is_named = greeting.auth_plugin == plugin.name();
        let response = if is_named && !password.is_empty() {
            auth::native_scramble(password.as_bytes(), &greeting.scramble)
        } else {
            Vec::new()
        };
        let login = Login {
            caps: client.caps,
            max_packet: 1 << 24,
            charset: 45,
            user: user.into(),
            auth_response: response,
            database: None,
            auth_plugin: Some(plugin.name().into()),
            attributes: Default::default(),
            zstd_level: 0,
        };
        client.send(|out| login.write(out)).await;
        loop {
            let payload = client.packet().await.unwrap();
            match AuthReply::read(&payload, client.caps).unwrap() {
                AuthReply::Ok(_) => return Ok(client),
                AuthReply::Err(err) => {
                    return Err((err.code, String::from_utf8_lossy(err.message).into_owned()));
                }
                AuthReply::More(more) => assert_eq!(more, [auth::FAST_OK]),
                AuthReply::Switch(switch) => {
                    let nonce = switch.nonce().unwrap();
                    let proof = match Plugin::by_name(&switch.plugin).unwrap() {
                        Plugin::CachingSha2 => auth::sha2_scramble(password.as_bytes(), &nonce),
                        _ => auth::native_scramble(password.as_bytes(), &nonce),
                    };
                    client.send(|out| out.extend_from_slice(&proof)).await;
                }
                AuthReply::NextFactor => panic!("no more factors"),
            }
        }
    }

    pub(crate) async fn send(&self, fill: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        let mut seq = self.seq.get();
        packet::append_with(&mut out, &mut seq, fill);
        self.seq.set(seq);
        self.socket.send(out).await.unwrap();
    }

    /// The next payload; `None` if the server has closed.
    pub(crate) async fn packet(&self) -> Option<Vec<u8>> {
        loop {
            let joined = packet::join(&self.buf.borrow())
                .map(|(payload, used, seq)| (payload.into_owned(), used, seq));
            if let Some((payload, used, seq)) = joined {
                self.buf.borrow_mut().drain(..used);
                self.seq.set(seq.wrapping_add(1));
                return Some(payload);
            }
            let chunk = self
                .socket
                .recv()
                .await
                .ok()
                .filter(|chunk| !chunk.is_empty())?;
            self.buf.borrow_mut().extend_from_slice(&chunk);
        }
    }

    pub(crate) async fn command(&self, byte: u8, body: &[u8]) {
        self.seq.set(0);
        self.send(|out| {
            out.push(byte);
            out.extend_from_slice(body);
        })
        .await;
    }

    pub(crate) async fn query(&self, sql: &str) -> Got {
        self.command(3, sql.as_bytes()).await;
        self.answer(false).await
    }

    /// One answer; rows in the text or binary protocol (of which only the bytes are taken).
    pub(crate) async fn answer(&self, binary: bool) -> Got {
        let first = self.packet().await.expect("the server has closed");
        match first[0] {
            0x00 => {
                let ok = ok::Ok::read(&first, self.caps).unwrap();
                let info = String::from_utf8_lossy(ok.info).into_owned();
                return Got::Ok {
                    affected: ok.affected,
                    insert_id: ok.insert_id,
                    status: ok.status,
                    info,
                };
            }
            0xFF => {
                let err = ok::Err::read(&first).unwrap();
                return Got::Err(err.code, String::from_utf8_lossy(err.message).into_owned());
            }
            _ => {}
        }
        let count = Reader::new(&first).lenenc_int().unwrap();
        let mut columns = Vec::new();
        for _ in 0..count {
            columns.push(column(&self.packet().await.unwrap()));
        }
        let mut rows = Vec::new();
        loop {
            let payload = self.packet().await.unwrap();
            match payload[0] {
                0xFE if payload.len() < 0xFF_FFFF && !binary => {
                    let status = ok::Ok::read(&payload, self.caps).unwrap().status;
                    return Got::Rows {
                        columns,
                        rows,
                        status,
                    };
                }
                0xFE => {
                    let status = ok::Ok::read(&payload, self.caps).unwrap().status;
                    return Got::Rows {
                        columns,
                        rows,
                        status,
                    };
                }
                0xFF => {
                    let err = ok::Err::read(&payload).unwrap();
                    return Got::Err(err.code, String::from_utf8_lossy(err.message).into_owned());
                }
                _ if binary => rows.push(vec![Some(payload)]),
                _ => {
                    let mut r = Reader::new(&payload);
                    rows.push(
                        (0..count)
                            .map(|_| r.lenenc_or_null().unwrap().map(<[u8]>::to_vec))
                            .collect(),
                    );
                }
            }
        }
    }

    /// Prepares; (id, columns, params).
    pub(crate) async fn prepare(&self, sql: &str) -> Result<(u32, u16, u16), Got> {
        self.command(0x16, sql.as_bytes()).await;
        let first = self.packet().await.unwrap();
        if first[0] == 0xFF {
            let err = ok::Err::read(&first).unwrap();
            return Err(Got::Err(
                err.code,
                String::from_utf8_lossy(err.message).into_owned(),
            ));
        }
        let mut r = Reader::new(&first[1..]);
        let (id, columns, params) = (r.u32().unwrap(), r.u16().unwrap(), r.u16().unwrap());
        for _ in 0..columns + params {
            self.packet().await.unwrap();
        }
        Ok((id, columns, params))
    }

    /// Executes with parameters that are all texts.
    pub(crate) async fn execute(&self, id: u32, texts: &[Option<&str>]) -> Got {
        let mut body = id.to_le_bytes().to_vec();
        body.push(0);
        body.extend_from_slice(&1u32.to_le_bytes());
        if !texts.is_empty() {
            let mut nulls = vec![0; texts.len().div_ceil(8)];
            for (i, text) in texts.iter().enumerate() {
                if text.is_none() {
                    nulls[i / 8] |= 1 << (i % 8);
                }
            }
            body.extend_from_slice(&nulls);
            body.push(1);
            texts
                .iter()
                .for_each(|_| body.extend_from_slice(&[0xFD, 0]));
            for text in texts.iter().flatten() {
                body.push(text.len() as u8);
                body.extend_from_slice(text.as_bytes());
            }
        }
        self.command(0x17, &body).await;
        self.answer(true).await
    }
}

fn column(payload: &[u8]) -> (String, u8) {
    let mut r = Reader::new(payload);
    for _ in 0..4 {
        r.lenenc_bytes().unwrap();
    }
    let name = String::from_utf8_lossy(r.lenenc_bytes().unwrap()).into_owned();
    r.lenenc_bytes().unwrap();
    r.take(7).unwrap();
    (name, r.u8().unwrap())
}
