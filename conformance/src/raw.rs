//! A client that speaks in packets: for what no library does, and to compare every byte of an
//! answer.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use wire::attributes::{Attributes, write_execution, write_query};
use wire::auth::{self, Plugin};
use wire::caps::{self, Caps};
use wire::connect_attributes::ConnectAttributes;
use wire::handshake::{AuthSwitch, First, Login};
use wire::packet;
use wire::response::{Expect, Follow, Outcome, Response};

use crate::watch::{HANGS, moves};

/// Capabilities that every raw client has; a test adds to them.
pub const PLAIN: Caps = caps::LONG_PASSWORD
    | caps::LONG_FLAG
    | caps::PROTOCOL_41
    | caps::TRANSACTIONS
    | caps::SECURE_CONNECTION
    | caps::PLUGIN_AUTH
    | caps::MULTI_RESULTS
    | caps::PS_MULTI_RESULTS;

/// A connection that is logged in.
pub struct Raw {
    stream: TcpStream,
    caps: Caps,
    /// The connection's number, as the greeting says it.
    pub id: u32,
    /// Ids of the statements that were prepared, in order.
    pub statements: Vec<u32>,
}

impl Raw {
    /// Logs in as `app`. The account's password has to be in the server's cache, which one login
    /// over TLS brings about.
    pub fn log_in(port: u16, caps: Caps) -> Result<Self, String> {
        Self::log_in_saying(port, caps, &[])
    }

    /// Logs in as `app` with the id of a collation.
    pub fn log_in_with(port: u16, caps: Caps, collation: u16) -> Result<Self, String> {
        Self::enter(port, caps, &[], collation)
    }

    /// Logs in as `app`, with connection attributes.
    pub fn log_in_saying(
        port: u16,
        caps: Caps,
        attributes: &[(&str, &str)],
    ) -> Result<Self, String> {
        Self::enter(port, caps, attributes, 45)
    }

    fn enter(
        port: u16,
        caps: Caps,
        attributes: &[(&str, &str)],
        charset: u16,
    ) -> Result<Self, String> {
        let attributes: ConnectAttributes = attributes
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let caps = if attributes.is_empty() {
            caps
        } else {
            caps | caps::CONNECT_ATTRS
        };
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        stream
            .set_read_timeout(Some(HANGS))
            .map_err(|error| error.to_string())?;
        stream
            .set_write_timeout(Some(HANGS))
            .map_err(|error| error.to_string())?;
        let mut raw = Self {
            stream,
            caps: PLAIN | caps,
            id: 0,
            statements: Vec::new(),
        };
        let (_, greeting) = raw.packet()?;
        let First::Greeting(greeting) =
            First::read(&greeting).map_err(|error| error.to_string())?
        else {
            return Err("no greeting".into());
        };
        raw.id = greeting.thread_id;
        if greeting.caps & caps::LONG_PASSWORD == 0 {
            raw.caps &= !caps::LONG_PASSWORD;
        }
        raw.caps &= greeting.caps;
        let scramble = |plugin: Option<Plugin>, nonce: &auth::Nonce| match plugin {
            Some(Plugin::CachingSha2) => auth::sha2_scramble(b"secret", nonce),
            _ => auth::native_scramble(b"secret", nonce),
        };
        let plugin = Plugin::by_name(&greeting.auth_plugin);
        let login = Login {
            caps: raw.caps,
            max_packet: 1 << 30,
            charset,
            user: "app".into(),
            auth_response: scramble(plugin, &greeting.scramble),
            auth_plugin: Some(greeting.auth_plugin),
            attributes,
            ..Login::default()
        };
        let mut payload = Vec::new();
        login.write(&mut payload);
        raw.send(1, &payload)?;
        loop {
            let (seq, answer) = raw.packet()?;
            match answer.first() {
                Some(0x00) => return Ok(raw),
                Some(0xFE) => {
                    let switch = AuthSwitch::read(&answer).map_err(|error| error.to_string())?;
                    let nonce = switch.nonce().map_err(|error| error.to_string())?;
                    raw.send(
                        seq.wrapping_add(1),
                        &scramble(Plugin::by_name(&switch.plugin), &nonce),
                    )?;
                }
                Some(0x01) if answer.get(1) == Some(&auth::FAST_OK) => {}
                _ => return Err(format!("not let in: {answer:02x?}")),
            }
        }
    }

    /// COM_CHANGE_USER to somebody with the same password; the error is the server's words.
    pub fn change_user(&mut self, user: &str) -> Result<(), String> {
        self.change_user_with(user, 45)
    }

    /// Sends COM_CHANGE_USER with the id of a collation.
    pub fn change_user_with(&mut self, user: &str, collation: u8) -> Result<(), String> {
        self.change_user_saying(user, collation, &[])
    }

    /// Sends COM_CHANGE_USER with a proof, of which servers want another.
    pub fn change_user_saying(
        &mut self,
        user: &str,
        collation: u8,
        proof: &[u8],
    ) -> Result<(), String> {
        let plugin = Plugin::MysqlNative.name();
        let len = u8::try_from(proof.len()).map_err(|error| error.to_string())?;
        // Without a proof servers ask for it. No schema.
        let payload = [
            b"\x11",
            user.as_bytes(),
            &[0, len],
            proof,
            b"\0",
            &[collation, 0],
            plugin.as_bytes(),
            b"\0",
        ]
        .concat();
        self.send(0, &payload)?;
        loop {
            let (seq, answer) = self.packet()?;
            match answer.first() {
                Some(0x00) => return Ok(()),
                Some(0xFE) => {
                    let switch = AuthSwitch::read(&answer).map_err(|error| error.to_string())?;
                    let nonce = switch.nonce().map_err(|error| error.to_string())?;
                    let proof = match Plugin::by_name(&switch.plugin) {
                        Some(Plugin::CachingSha2) => auth::sha2_scramble(b"secret", &nonce),
                        _ => auth::native_scramble(b"secret", &nonce),
                    };
                    self.send(seq.wrapping_add(1), &proof)?;
                }
                Some(0x01) if answer.get(1) == Some(&auth::FAST_OK) => {}
                _ => return Err(answer.escape_ascii().to_string()),
            }
        }
    }

    /// Whether both sides agreed on it.
    pub fn has(&self, capability: Caps) -> bool {
        caps::has(self.caps, capability)
    }

    /// Sends one packet, or several if the payload is that long; after a silence, if
    /// `$MILLRACE_TEST_SILENCE_MS` says so.
    pub fn send(&mut self, mut seq: u8, payload: &[u8]) -> Result<(), String> {
        if let Some(silence) = silence() {
            thread::sleep(silence);
        }
        let mut framed = Vec::new();
        packet::append(&mut framed, &mut seq, payload);
        self.stream
            .write_all(&framed)
            .map_err(|error| error.to_string())
    }

    /// Sends bytes as they are, and gives what comes first, 4 KiB at most: for a client that is
    /// compressed by hand.
    pub fn exchange(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.stream
            .write_all(bytes)
            .map_err(|error| error.to_string())?;
        let mut came = vec![0; 4096];
        let len = self
            .stream
            .read(&mut came)
            .map_err(|error| error.to_string())?;
        came.truncate(len);
        Ok(came)
    }

    /// Sends bytes as they are, and gives all that comes until the other side closes the
    /// connection.
    pub fn last_words(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.stream
            .write_all(bytes)
            .map_err(|error| error.to_string())?;
        let mut words = Vec::new();
        match self.stream.read_to_end(&mut words) {
            // It was closed with something unread.
            Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(error.to_string()),
            _ => Ok(words),
        }
    }

    /// The next packet: its number and payload.
    pub fn packet(&mut self) -> Result<(u8, Vec<u8>), String> {
        let mut header = [0; packet::HEADER_LEN];
        self.stream
            .read_exact(&mut header)
            .map_err(|error| error.to_string())?;
        let (len, seq) = packet::header(&header);
        let mut payload = vec![0; len];
        self.stream
            .read_exact(&mut payload)
            .map_err(|error| error.to_string())?;
        moves();
        Ok((seq, payload))
    }

    /// Sends a command and gives its answer, a line for each packet. Ids of statements are left
    /// out: they are the connection's own.
    pub fn ask(&mut self, payload: &[u8], expect: Expect) -> Result<String, String> {
        self.send(0, payload)?;
        self.answer(expect)
    }

    /// The answer to what was sent.
    pub fn answer(&mut self, expect: Expect) -> Result<String, String> {
        let mut response = Response::expect(expect, self.caps);
        let mut seen = String::new();
        loop {
            let (seq, mut payload) = self.packet()?;
            let mut framed = packet::make_header(payload.len(), seq).to_vec();
            framed.extend_from_slice(&payload);
            let followed = response
                .follow(&framed)
                .map_err(|error| format!("{error}\n{seen}"))?;
            if expect == Expect::Prepare
                && seq == 1
                && let (Some(prepared), Some(id)) = (response.prepared(), payload.get_mut(1..5))
            {
                self.statements.push(prepared.id);
                id.fill(0);
            }
            let _ = writeln!(seen, "{seq:3} {}", payload.escape_ascii());
            if followed != Follow::More {
                if let Outcome::LocalInfile(_) = response.outcome() {
                    let _ = writeln!(seen, "    wants a file");
                }
                return Ok(seen);
            }
        }
    }

    /// COM_QUERY.
    pub fn query(&mut self, sql: &str) -> Result<String, String> {
        self.query_with(&[], sql)
    }

    /// COM_QUERY with query attributes; they are left out where the server has none, as client
    /// libraries do.
    pub fn query_with(&mut self, attributes: &[(&str, &str)], sql: &str) -> Result<String, String> {
        let mut payload = Vec::new();
        write_query(&mut payload, sql.as_bytes(), &named(attributes), self.caps);
        self.ask(&payload, Expect::Query)
    }

    /// COM_STMT_PREPARE; the statement is the next of [`Self::statements`].
    pub fn prepare(&mut self, sql: &str) -> Result<String, String> {
        self.ask(&[b"\x16", sql.as_bytes()].concat(), Expect::Prepare)
    }

    /// COM_STMT_EXECUTE of the nth statement; `params` is what follows the count of iterations.
    pub fn execute(&mut self, nth: usize, flags: u8, params: &[u8]) -> Result<String, String> {
        let head = self.statement(0x17, nth);
        self.ask(
            &[&head[..], &[flags, 1, 0, 0, 0], params].concat(),
            Expect::Execute,
        )
    }

    /// COM_STMT_EXECUTE of the nth statement, which has no parameters, with query attributes.
    pub fn execute_with(
        &mut self,
        nth: usize,
        attributes: &[(&str, &str)],
    ) -> Result<String, String> {
        let plain = [&self.statement(0x17, nth)[..], &[0, 1, 0, 0, 0]].concat();
        let mut payload = Vec::new();
        write_execution(&mut payload, &plain, 0, None, &named(attributes), self.caps);
        self.ask(&payload, Expect::Execute)
    }

    /// COM_STMT_FETCH.
    pub fn fetch(&mut self, nth: usize, rows: u32) -> Result<String, String> {
        let head = self.statement(0x1C, nth);
        self.ask(&[&head[..], &rows.to_le_bytes()].concat(), Expect::Fetch)
    }

    /// A command byte and the id of the nth statement.
    pub fn statement(&self, command: u8, nth: usize) -> Vec<u8> {
        let id = self.statements.get(nth).copied().unwrap_or(9999);
        [&[command][..], &id.to_le_bytes()].concat()
    }
}

fn named(all: &[(&str, &str)]) -> Attributes {
    let mut attributes = Attributes::default();
    all.iter()
        .for_each(|(name, text)| attributes.push_text(name, text));
    attributes
}

/// Returns the silence that a busy machine makes of any client now and then, for each packet of
/// each: see docs/testing.md.
pub fn silence() -> Option<Duration> {
    static SILENCE: LazyLock<Option<Duration>> = LazyLock::new(|| {
        Some(Duration::from_millis(
            std::env::var("MILLRACE_TEST_SILENCE_MS")
                .ok()?
                .parse()
                .ok()?,
        ))
    });
    *SILENCE
}
