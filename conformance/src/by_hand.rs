//! A client of a few lines that says exactly the bytes that a test wants said, and reads as slowly
//! as it likes.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;

use wire::auth;
use wire::handshake::Greeting;

use crate::clients::Login;
use crate::proxy::{Driver, Proxy, Wish};
use crate::servers::{Server, Vendor};
use crate::watch::{HANGS, moves};

/// Protocol 4.1, secure connection, plugin names; nothing that changes how answers look.
const CAPABILITIES: u32 = 0x0000_0001 | 0x0000_0200 | 0x0000_2000 | 0x0000_8000 | 0x0008_0000;

/// Several statements in one text, and their results.
const SEVERAL: u32 = 0x0001_0000 | 0x0002_0000;

/// A login that names a schema.
const WITH_SCHEMA: u32 = 0x0000_0008;

/// The user of [`Raw::log_in`]: without a password, so that nothing has to be computed.
pub const USER: &str = "open";

/// Makes the user on a server.
pub const CREATE_USER: &str = "CREATE USER open@'%'; GRANT ALL ON *.* TO open@'%';";

/// A server that has the user, and a proxy before it that knows him.
pub fn one(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    one_with(driver, vendor, &[])
}

/// Starts a server that has the user, with more options on its command line, and a proxy before it
/// that knows him.
pub fn one_with(
    driver: Driver,
    vendor: Vendor,
    options: &[&str],
) -> Result<(Server, Proxy), String> {
    let server = Server::start_with(vendor, options)?;
    server.root(CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

/// A connection.
pub struct Raw {
    stream: BufReader<TcpStream>,
    /// The session's number, as the greeting says it.
    pub id: u32,
    /// Number of the next packet of ours.
    seq: u8,
}

impl Raw {
    /// Connects and says `preface` before anything else; the greeting is not read.
    pub fn connect(port: u16, preface: &[u8]) -> io::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(HANGS))?;
        stream.set_write_timeout(Some(HANGS))?;
        stream.set_nodelay(true)?;
        stream.write_all(preface)?;
        Ok(Self {
            stream: BufReader::with_capacity(1 << 20, stream),
            id: 0,
            seq: 0,
        })
    }

    /// Connects, logs in as [`USER`] and gives the answer: OK begins with 0, an error with 0xff.
    pub fn log_in_after(port: u16, preface: &[u8]) -> io::Result<(Self, Vec<u8>)> {
        Self::log_in_with(port, preface, 45)
    }

    /// As [`Raw::log_in_after`], with another collation than `utf8mb4_general_ci`.
    pub fn log_in_with(port: u16, preface: &[u8], collation: u8) -> io::Result<(Self, Vec<u8>)> {
        Self::log_in_saying(port, preface, collation, CAPABILITIES, b"")
    }

    /// Connects and logs in as [`USER`], into this schema.
    pub fn log_in_to(port: u16, schema: &[u8]) -> io::Result<Self> {
        let capabilities = CAPABILITIES | WITH_SCHEMA;
        match Self::log_in_saying(port, b"", 45, capabilities, schema)? {
            (raw, answer) if answer.first() == Some(&0) => Ok(raw),
            (_, answer) => Err(complaint(&answer)),
        }
    }

    fn log_in_saying(
        port: u16,
        preface: &[u8],
        collation: u8,
        capabilities: u32,
        schema: &[u8],
    ) -> io::Result<(Self, Vec<u8>)> {
        let mut raw = Self::connect(port, preface)?;
        let greeting = raw.packet()?;
        if greeting.first() == Some(&0xff) {
            return Ok((raw, greeting));
        }
        // The protocol's version, the server's up to a zero, the number.
        let at = greeting
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or_default()
            + 1;
        raw.id = greeting.get(at..at + 4).map_or(0, |four| {
            u32::from_le_bytes([four[0], four[1], four[2], four[3]])
        });
        let mut login = capabilities.to_le_bytes().to_vec();
        login.extend_from_slice(&(64_u32 << 20).to_le_bytes());
        login.push(collation);
        login.extend_from_slice(&[0; 23]);
        login.extend_from_slice(USER.as_bytes());
        login.extend_from_slice(b"\0\0");
        if capabilities & WITH_SCHEMA != 0 {
            login.extend_from_slice(schema);
            login.push(0);
        }
        login.extend_from_slice(b"mysql_native_password\0");
        raw.send(&login)?;
        let mut answer = raw.packet()?;
        if answer.first() == Some(&0xfe) {
            // Another plugin: no password is nothing there, too.
            raw.send(b"")?;
            answer = raw.packet()?;
        }
        Ok((raw, answer))
    }

    /// Connects and logs in as [`USER`].
    pub fn log_in(port: u16) -> io::Result<Self> {
        match Self::log_in_after(port, b"")? {
            (raw, answer) if answer.first() == Some(&0) => Ok(raw),
            (_, answer) => Err(io::Error::other(
                String::from_utf8_lossy(&answer).into_owned(),
            )),
        }
    }

    /// As [`Raw::log_in`], for several statements in one text.
    pub fn log_in_for_several(port: u16) -> io::Result<Self> {
        match Self::log_in_saying(port, b"", 45, CAPABILITIES | SEVERAL, b"")? {
            (raw, answer) if answer.first() == Some(&0) => Ok(raw),
            (_, answer) => Err(complaint(&answer)),
        }
    }

    /// Connects and logs in with a password. Of the flags in `mask` those of `flags` are said.
    pub fn log_in_as(login: &Login<'_>, flags: u32, mask: u32) -> io::Result<Self> {
        let mut raw = Self::connect(login.port, b"")?;
        let greeting = Greeting::read(&raw.packet()?)
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        raw.id = greeting.thread_id;
        let password = login.password.as_bytes();
        let mut said = (CAPABILITIES & !mask | flags & mask).to_le_bytes().to_vec();
        said.extend_from_slice(&(64_u32 << 20).to_le_bytes());
        said.push(45);
        said.extend_from_slice(&[0; 23]);
        said.extend_from_slice(login.user.as_bytes());
        said.extend_from_slice(b"\0\x14");
        said.extend_from_slice(&auth::native_scramble(password, &greeting.scramble));
        said.extend_from_slice(b"mysql_native_password\0");
        raw.send(&said)?;
        loop {
            let answer = raw.packet()?;
            match answer.first() {
                Some(0) => return Ok(raw),
                // The quick answer of caching_sha2_password was right.
                Some(1) if answer.get(1) == Some(&3) => {}
                Some(0xfe) => {
                    let words = &answer[1..];
                    let end = words
                        .iter()
                        .position(|byte| *byte == 0)
                        .unwrap_or(words.len());
                    let nonce = words
                        .get(end + 1..end + 21)
                        .and_then(|nonce| nonce.try_into().ok());
                    let nonce =
                        nonce.ok_or_else(|| io::Error::other("a plugin without a nonce"))?;
                    let scramble = match &words[..end] {
                        b"mysql_native_password" => auth::native_scramble(password, &nonce),
                        _ => auth::sha2_scramble(password, &nonce),
                    };
                    raw.send(&scramble)?;
                }
                _ => return Err(complaint(&answer)),
            }
        }
    }

    /// Sends a payload as the next packet, in as many pieces as it needs.
    pub fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        const WHOLE: usize = 0xff_ffff;
        for begin in (0..=payload.len()).step_by(WHOLE) {
            let piece = &payload[begin..payload.len().min(begin + WHOLE)];
            let mut bytes = (piece.len() as u32).to_le_bytes().to_vec();
            bytes[3] = self.seq;
            self.seq = self.seq.wrapping_add(1);
            bytes.extend_from_slice(piece);
            self.bytes(&bytes)?;
        }
        Ok(())
    }

    /// Sends a command.
    pub fn command(&mut self, payload: &[u8]) -> io::Result<()> {
        self.seq = 0;
        self.send(payload)
    }

    /// COM_QUERY.
    pub fn query(&mut self, sql: &str) -> io::Result<()> {
        let mut payload = vec![3];
        payload.extend_from_slice(sql.as_bytes());
        self.command(&payload)
    }

    /// Sends bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// The next packet's payload.
    pub fn packet(&mut self) -> io::Result<Vec<u8>> {
        let length = self.header()?;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok(payload)
    }

    fn header(&mut self) -> io::Result<usize> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        self.seq = header[3].wrapping_add(1);
        moves();
        Ok(usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16)
    }

    /// The fields of all rows of a text result, as text (NULL is `NULL`); an error of the server is
    /// one of ours.
    pub fn rows(&mut self) -> io::Result<Vec<Vec<String>>> {
        let mut rows = Vec::new();
        self.each_row(|row| {
            let mut fields = Vec::new();
            let mut rest = row;
            while let Some((&first, after)) = rest.split_first() {
                let (length, after) = match first {
                    0xfb => {
                        fields.push("NULL".to_owned());
                        rest = after;
                        continue;
                    }
                    0xfc => (
                        usize::from(after[0]) | usize::from(after[1]) << 8,
                        &after[2..],
                    ),
                    0xfd => (
                        usize::from(after[0])
                            | usize::from(after[1]) << 8
                            | usize::from(after[2]) << 16,
                        &after[3..],
                    ),
                    short => (usize::from(short), after),
                };
                fields.push(String::from_utf8_lossy(&after[..length]).into_owned());
                rest = &after[length..];
            }
            rows.push(fields);
        })?;
        Ok(rows)
    }

    /// Calls `each` for every row of a text result, as it comes. A statement without a result has
    /// no rows.
    pub fn each_row(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let first = self.packet()?;
        match first.first() {
            Some(0) => return Ok(()),
            Some(0xff) => return Err(complaint(&first)),
            _ => {}
        }
        // The columns, then an EOF; the rows, then an EOF.
        while !is_eof(&self.packet()?) {}
        loop {
            let row = self.packet()?;
            if row.first() == Some(&0xff) {
                return Err(complaint(&row));
            }
            if is_eof(&row) {
                return Ok(());
            }
            each(&row);
        }
    }

    /// Runs a statement and gives its rows.
    pub fn ask(&mut self, sql: &str) -> io::Result<Vec<Vec<String>>> {
        self.query(sql)?;
        self.rows()
    }
}

fn is_eof(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

/// `1045 28000 words`.
pub fn complaint(packet: &[u8]) -> io::Error {
    let code = packet
        .get(1..3)
        .map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
    let rest = String::from_utf8_lossy(packet.get(3..).unwrap_or_default()).into_owned();
    let rest = rest.strip_prefix('#').map_or_else(
        || rest.clone(),
        |rest| {
            format!(
                "{} {}",
                &rest[..5.min(rest.len())],
                rest.get(5..).unwrap_or("")
            )
        },
    );
    io::Error::other(format!("{code} {rest}"))
}
