//! A connection of a control thread: one question of HTTP after another, and the bodies of the answers
//! piece by piece.
//!
//! <https://www.rfc-editor.org/rfc/rfc9112>, as much of it as ClickHouse and etcd speak.
#![forbid(unsafe_code)]

use net::tls::{Connector, Settings};
use net::{Conn, NetError};
use rt::{Chunk, Rt};
use std::time::Duration;

/// How long it may take to reach the other.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of the head of an answer, at most.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Where the other is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A name or an address.
    pub host: String,
    /// Of TCP.
    pub port: u16,
    /// Over TLS, if that is wanted.
    pub tls: Option<Tls>,
}

/// Files for TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Authorities, one of which has signed the certificate for the host; an empty one takes any
    /// certificate.
    pub ca: String,
    /// Certificate that we show; empty for none.
    pub cert: String,
    /// Its key.
    pub key: String,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// Says which cannot be used, and why.
    pub fn check(&self) -> Result<(), String> {
        self.connector().map(drop)
    }

    fn connector(&self) -> Result<Connector, String> {
        let settings = Settings {
            ca: self.ca.clone(),
            cert: self.cert.clone(),
            key: self.key.clone(),
            ..Settings::default()
        };
        let ours = |why: String| {
            why.replacen("ssl_ca", "the file of authorities", 1)
                .replacen("ssl_cert", "the certificate", 1)
                .replacen("ssl_key", "the key", 1)
        };
        Ok(Connector::new(&settings).map_err(ours)?.named())
    }
}

/// Why there is no answer, or no more of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost(pub String);

impl From<NetError> for Lost {
    fn from(error: NetError) -> Self {
        Self(error.to_string())
    }
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// So many bytes are to come.
    Bytes(u64),
    /// So many of a chunk, or the head of the next.
    Chunk(u64),
    /// None.
    Over,
}

/// The head of an answer.
#[derive(Debug)]
pub struct Answer {
    /// As HTTP numbers it.
    pub status: u16,
    /// Names in small letters.
    headers: Vec<(String, String)>,
}

impl Answer {
    /// The value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A connection.
pub struct Http {
    conn: Conn,
    place: Place,
    /// Bytes that came and are not understood yet.
    waiting: Vec<u8>,
    left: Left,
    stays: bool,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Http(to {}:{})", self.place.host, self.place.port)
    }
}

impl Http {
    /// Connects.
    ///
    /// # Errors
    /// What the last of its addresses said, or that none did.
    pub async fn open(rt: &Rt, place: &Place) -> Result<Self, Lost> {
        let connect = async {
            let addresses = rt.resolve(&place.host, place.port).await;
            let addresses = addresses.map_err(|error| Lost(error.to_string()))?;
            let mut why = Lost("it has no address".to_owned());
            for address in addresses {
                match rt.connect(&address).await {
                    Ok(socket) => return Self::on(Conn::new(socket), place).await,
                    Err(error) => why = Lost(error.to_string()),
                }
            }
            Err(why)
        };
        let late = |_| Err(Lost(format!("no answer within {} s", CONNECT.as_secs())));
        rt.timeout(CONNECT, connect).await.unwrap_or_else(late)
    }

    async fn on(mut conn: Conn, place: &Place) -> Result<Self, Lost> {
        if let Some(tls) = &place.tls {
            let connector = tls.connector().map_err(Lost)?;
            conn.connect_tls(&connector, &place.host).await?;
        }
        Ok(Self {
            conn,
            place: place.clone(),
            waiting: Vec::new(),
            left: Left::Over,
            stays: true,
        })
    }

    /// Whether another question can be asked here.
    pub fn is_free(&self, place: &Place) -> bool {
        let is_over = self.left == Left::Over && self.waiting.is_empty();
        self.stays && is_over && self.place == *place && self.conn.is_idle()
    }

    /// Asks; the answer is not read. Without a body, one follows in pieces ([`Http::piece`]).
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn ask(
        &mut self,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<(), Lost> {
        let Place { host, port, .. } = &self.place;
        let length = match body {
            Some(body) => format!("Content-Length: {}", body.len()),
            None => "Transfer-Encoding: chunked".to_owned(),
        };
        let mut head = format!("POST {target} HTTP/1.1\r\nHost: {host}:{port}\r\n{length}\r\n");
        for (name, value) in headers {
            // Nobody's name or password begins another header.
            let value = value.replace(['\r', '\n'], "");
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        Ok(self.conn.send(bytes).await?)
    }

    /// A piece of a body that was not sent at once; an empty one ends it.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn piece(&mut self, piece: &[u8]) -> Result<(), Lost> {
        let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
        Ok(self.conn.send(bytes).await?)
    }

    /// The head of the answer.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn answer(&mut self) -> Result<Answer, Lost> {
        loop {
            let end = find(&self.waiting, b"\r\n\r\n");
            if let Some(end) = end {
                let head = String::from_utf8_lossy(&self.waiting[..end]).into_owned();
                self.waiting.drain(..end + 4);
                let answer = parse(&head).ok_or_else(not_http)?;
                if answer.status != 100 {
                    return self.begin(answer);
                }
                continue;
            }
            if self.waiting.len() > HEAD_BYTES_MAX {
                return Err(not_http());
            }
            self.more().await?;
        }
    }

    fn begin(&mut self, answer: Answer) -> Result<Answer, Lost> {
        let is_chunked = answer
            .header("transfer-encoding")
            .is_some_and(|how| how.eq_ignore_ascii_case("chunked"));
        self.left = match answer.header("content-length").map(str::parse) {
            _ if is_chunked => Left::Chunk(0),
            Some(Ok(length)) => Left::Bytes(length),
            // Whoever ends a body by closing has not proven that it is whole.
            _ => return Err(not_http()),
        };
        let closes = answer
            .header("connection")
            .is_some_and(|how| how.eq_ignore_ascii_case("close"));
        self.stays = !closes;
        Ok(answer)
    }

    async fn more(&mut self) -> Result<(), Lost> {
        let chunk = self.come().await?;
        self.waiting.extend_from_slice(&chunk);
        Ok(())
    }

    /// Bytes that come next; there are some.
    async fn come(&mut self) -> Result<Chunk, Lost> {
        let chunk = self.conn.recv().await?;
        if chunk.is_empty() {
            self.stays = false;
            return Err(Lost("the connection was closed".to_owned()));
        }
        Ok(chunk)
    }

    /// More of the body; false at its proven end. What is dropped while it waits has lost nothing.
    ///
    /// # Errors
    /// The connection is of no use any more.
    pub async fn body(&mut self, into: &mut Vec<u8>) -> Result<bool, Lost> {
        loop {
            match self.left {
                Left::Over => return Ok(false),
                Left::Bytes(0) => self.left = Left::Over,
                Left::Bytes(left) => {
                    self.left = Left::Bytes(left - self.give(left, into).await?);
                    return Ok(true);
                }
                Left::Chunk(0) => match self.chunk()? {
                    Some(left) => self.left = left,
                    None => self.more().await?,
                },
                Left::Chunk(left) => {
                    self.left = Left::Chunk(left - self.give(left, into).await?);
                    return Ok(true);
                }
            }
        }
    }

    /// Moves bytes of the body of which so many are left: those that wait, or as they come.
    async fn give(&mut self, left: u64, into: &mut Vec<u8>) -> Result<u64, Lost> {
        let many = |len: usize| len.min(usize::try_from(left).unwrap_or(usize::MAX));
        if !self.waiting.is_empty() {
            let many = many(self.waiting.len());
            into.extend_from_slice(&self.waiting[..many]);
            self.waiting.drain(..many);
            return Ok(many as u64);
        }
        let chunk = self.come().await?;
        let (own, rest) = chunk.split_at(many(chunk.len()));
        into.extend_from_slice(own);
        self.waiting.extend_from_slice(rest);
        Ok(own.len() as u64)
    }

    /// The head of the next chunk, with the line that ends the one before.
    fn chunk(&mut self) -> Result<Option<Left>, Lost> {
        let skipped = if self.waiting.starts_with(b"\r\n") {
            2
        } else {
            0
        };
        let Some(end) = find(&self.waiting[skipped..], b"\r\n") else {
            return match self.waiting.len() {
                0..100 => Ok(None),
                _ => Err(not_http()),
            };
        };
        let line = &self.waiting[skipped..skipped + end];
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let length = str::from_utf8(digits)
            .ok()
            .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
        let length = length.ok_or_else(not_http)?;
        let used = skipped + end + 2;
        if length > 0 {
            self.waiting.drain(..used);
            return Ok(Some(Left::Chunk(length)));
        }
        // Behind the last one there are trailers, which say nothing to us, and an empty line.
        let Some(end) = end_of_trailers(&self.waiting[used..]) else {
            return match self.waiting.len() - used {
                0..HEAD_BYTES_MAX => Ok(None),
                _ => Err(not_http()),
            };
        };
        self.waiting.drain(..used + end);
        Ok(Some(Left::Over))
    }
}

/// Where the empty line ends that is the last of a body, if it is there.
fn end_of_trailers(text: &[u8]) -> Option<usize> {
    match text.starts_with(b"\r\n") {
        true => Some(2),
        false => find(text, b"\r\n\r\n").map(|at| at + 4),
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn not_http() -> Lost {
    Lost("its answer is no HTTP".to_owned())
}

fn parse(head: &str) -> Option<Answer> {
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
    };
    Some(Answer {
        status: status.parse().ok()?,
        headers: lines.filter_map(header).collect(),
    })
}

/// A value as an address has it.
pub fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(byte as char),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_with_an_empty_line_behind_any_trailers() {
        for (text, end) in [
            (&b"\r\n"[..], Some(2)),
            (b"\r\nHTTP", Some(2)),
            (b"", None),
            (b"\r", None),
            (b"Grpc-Trailer: x\r\n", None),
            (b"A: x\r\nB: y\r\n\r\nHTTP", Some(14)),
        ] {
            assert_eq!(end_of_trailers(text), end, "{text:?}");
        }
    }
}
