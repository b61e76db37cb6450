//! Packets over a socket, with or without TLS. Bytes that came stay in the runtime's buffers; only a
//! packet that is cut by the end of a buffer is copied.

use crate::NetError;
use crate::tls::{Acceptor, Connector, Session};
use rt::{Address, Chunk, Socket};
use std::time::Duration;
use wire::packet;

/// How long a parting may take.
const PARTING: Duration = Duration::from_secs(1);

/// A connection that carries MySQL packets.
#[derive(Debug)]
pub struct Conn {
    socket: Socket,
    tls: Option<Box<Session>>,
    /// Bytes that came after the last packet that was taken.
    rest: Option<Chunk>,
    /// Sequence number of the next packet that we send during a login.
    seq: u8,
    received: u64,
    sent: u64,
}

/// One packet: a payload and, when it came in one piece, its header before it.
#[derive(Debug)]
pub struct Packet {
    bytes: Chunk,
    /// 4 when `bytes` begins with the header, 0 when the payload was glued from several packets.
    start: usize,
    /// Sequence number of its last piece.
    pub seq: u8,
}

impl Packet {
    /// What is in it.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// As bytes for the wire, numbered from 0: a command to pass on.
    #[must_use]
    pub fn into_command(self) -> Chunk {
        if self.start == 0 {
            let mut framed = Vec::with_capacity(self.bytes.len() + 8);
            packet::append(&mut framed, &mut 0, &self.bytes);
            return Chunk::from(framed);
        }
        let mut bytes = self.bytes;
        if let Some(seq) = bytes.get_mut(3) {
            *seq = 0;
        }
        bytes
    }
}

impl Conn {
    /// Over a socket.
    #[must_use]
    pub fn new(socket: Socket) -> Self {
        Self { socket, tls: None, rest: None, seq: 0, received: 0, sent: 0 }
    }

    /// The socket below.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Is it encrypted?
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// May a password cross it in clear: TLS or a Unix socket?
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.is_tls() || matches!(self.socket.peer(), Address::Unix(_)) || matches!(self.socket.local(), Address::Unix(_))
    }

    /// Cipher and version, if encrypted.
    #[must_use]
    pub fn tls_info(&self) -> Option<(String, String)> {
        self.tls.as_ref().map(|tls| tls.info())
    }

    /// Bytes received and sent so far, as they crossed the wire (sent: before they were encrypted).
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.received, self.sent)
    }

    /// Nothing waits: no byte, no end, nothing unsent. Only then may it be given to somebody else.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.is_empty())
            && self.tls.as_ref().is_none_or(|tls| tls.is_drained())
            && self.socket.is_idle()
    }

    /// The bytes that came next, as they came. An empty chunk is the end.
    pub async fn recv(&mut self) -> Result<Chunk, NetError> {
        if let Some(rest) = self.rest.take()
            && !rest.is_empty()
        {
            return Ok(rest);
        }
        self.more().await
    }

    async fn more(&mut self) -> Result<Chunk, NetError> {
        if self.tls.is_some() {
            return Box::pin(self.more_of_tls()).await;
        }
        let chunk = self.socket.recv().await?;
        self.received += chunk.len() as u64;
        Ok(chunk)
    }

    async fn more_of_tls(&mut self) -> Result<Chunk, NetError> {
        let Some(tls) = &mut self.tls else { return Ok(Chunk::from(Vec::new())) };
        loop {
            let plain = tls.read()?;
            if !plain.is_empty() {
                return Ok(Chunk::from(plain));
            }
            if tls.is_over() {
                return Ok(Chunk::from(Vec::new()));
            }
            let chunk = self.socket.recv().await?;
            if chunk.is_empty() {
                return Ok(chunk);
            }
            self.received += chunk.len() as u64;
            tls.feed(&chunk);
            // Key updates and alerts want answers.
            let answer = tls.plain_to_send(&[])?;
            if !answer.is_empty() {
                self.socket.send(answer).await?;
            }
        }
    }

    /// Give back bytes that belong to what comes next.
    pub fn put_back(&mut self, rest: Chunk) {
        debug_assert!(self.rest.as_ref().is_none_or(|rest| rest.is_empty()));
        self.rest = Some(rest);
    }

    /// Bytes to the other side, in order. Waits only while too much is unsent.
    pub async fn send(&mut self, bytes: impl Into<Chunk>) -> Result<(), NetError> {
        let bytes = bytes.into();
        self.sent += bytes.len() as u64;
        match &mut self.tls {
            None => self.socket.send(bytes).await?,
            Some(tls) => {
                for piece in bytes.chunks(64 << 10) {
                    let sealed = tls.plain_to_send(piece)?;
                    self.socket.send(sealed).await?;
                }
            }
        }
        Ok(())
    }

    /// Wait until all is with the kernel.
    pub async fn flush(&mut self) -> Result<(), NetError> {
        Ok(self.socket.flush().await?)
    }

    /// The next packet, whole.
    ///
    /// # Errors
    /// [`NetError::Closed`] between packets; [`NetError::TooLarge`] when its payload is longer than `limit`.
    pub async fn packet(&mut self, limit: usize) -> Result<Packet, NetError> {
        let mut chunk = self.recv().await?;
        if chunk.is_empty() {
            return Err(NetError::Closed);
        }
        if let Some((len, seq)) = packet::whole(&chunk)
            && len < packet::MAX_PAYLOAD
        {
            if len > limit {
                return Err(NetError::TooLarge { limit });
            }
            let end = packet::HEADER_LEN + len;
            if chunk.len() > end {
                let first = chunk.split_to(end);
                self.rest = Some(chunk);
                chunk = first;
            }
            self.seq = seq.wrapping_add(1);
            return Ok(Packet { bytes: chunk, start: packet::HEADER_LEN, seq });
        }
        // On the heap, because every idle client waits in this function and few packets are cut.
        Box::pin(self.gathered(chunk, limit)).await
    }

    /// A packet of several buffers, or of several pieces of 16 MiB.
    async fn gathered(&mut self, first: Chunk, limit: usize) -> Result<Packet, NetError> {
        let mut gathered = first.to_vec();
        drop(first);
        let mut payload: Vec<u8> = Vec::new();
        loop {
            while gathered.len() < packet::HEADER_LEN {
                self.gather(&mut gathered).await?;
            }
            let head = [gathered[0], gathered[1], gathered[2], gathered[3]];
            let (len, seq) = packet::header(&head);
            if payload.len() + len > limit {
                return Err(NetError::TooLarge { limit });
            }
            let end = packet::HEADER_LEN + len;
            while gathered.len() < end {
                self.gather(&mut gathered).await?;
            }
            let tail = gathered.split_off(end);
            if len < packet::MAX_PAYLOAD && payload.is_empty() {
                self.keep(tail);
                self.seq = seq.wrapping_add(1);
                return Ok(Packet { bytes: Chunk::from(gathered), start: packet::HEADER_LEN, seq });
            }
            payload.extend_from_slice(&gathered[packet::HEADER_LEN..]);
            if len < packet::MAX_PAYLOAD {
                self.keep(tail);
                self.seq = seq.wrapping_add(1);
                return Ok(Packet { bytes: Chunk::from(payload), start: 0, seq });
            }
            gathered = tail;
        }
    }

    fn keep(&mut self, tail: Vec<u8>) {
        self.rest = if tail.is_empty() { None } else { Some(Chunk::from(tail)) };
    }

    async fn gather(&mut self, into: &mut Vec<u8>) -> Result<(), NetError> {
        let chunk = self.more().await?;
        if chunk.is_empty() {
            return Err(NetError::Io(std::io::ErrorKind::UnexpectedEof.into()));
        }
        into.extend_from_slice(&chunk);
        Ok(())
    }

    /// Send one payload as the next packet of a dialogue (handshake, authentication).
    pub async fn reply(&mut self, payload: &[u8]) -> Result<(), NetError> {
        let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
        packet::append(&mut framed, &mut self.seq, payload);
        self.send(framed).await
    }

    /// Begin a dialogue anew: the next [`reply`](Self::reply) has this number.
    pub fn restart_at(&mut self, seq: u8) {
        self.seq = seq;
    }

    /// Become the TLS server of this connection; the client's SSLRequest has just been read.
    pub async fn accept_tls(&mut self, acceptor: &Acceptor) -> Result<(), NetError> {
        let session = acceptor.begin()?;
        self.handshake(session).await
    }

    /// Become the TLS client of this connection; our SSLRequest has just been sent.
    pub async fn connect_tls(&mut self, connector: &Connector, host: &str) -> Result<(), NetError> {
        let session = connector.begin(host)?;
        self.handshake(session).await
    }

    async fn handshake(&mut self, mut session: Session) -> Result<(), NetError> {
        if let Some(rest) = self.rest.take() {
            session.feed(&rest);
        }
        loop {
            let step = session.step();
            let out = session.take_out();
            if !out.is_empty() {
                self.socket.send(out).await?;
            }
            if step? {
                break;
            }
            let chunk = self.socket.recv().await?;
            if chunk.is_empty() {
                return Err(NetError::Tls("the other side left during the handshake".to_owned()));
            }
            session.feed(&chunk);
        }
        self.tls = Some(Box::new(session));
        Ok(())
    }

    /// Says goodbye and gives the peer a moment to read what was sent.
    pub async fn finish(mut self, rt: &rt::Rt) {
        let _late = rt.timeout(PARTING, self.last_words()).await;
    }

    /// Sends a peer away that did not ask for it. Closing while something of it is unread would reset the connection, and the peer
    /// might lose our last words: so our side ends first, and what still comes is dropped, for a moment.
    pub async fn dismiss(mut self, rt: &rt::Rt) {
        let parting = async {
            self.last_words().await?;
            self.socket.finish();
            while !self.socket.recv().await?.is_empty() {}
            Ok::<(), std::io::Error>(())
        };
        let _late = rt.timeout(PARTING, parting).await;
    }

    async fn last_words(&mut self) -> std::io::Result<()> {
        if let Some(tls) = &mut self.tls {
            let farewell = tls.farewell();
            self.socket.send(farewell).await?;
        }
        self.socket.flush().await
    }
}
