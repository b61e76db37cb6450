//! Packets over a socket, with or without TLS and compression. Bytes that came stay in the
//! runtime's buffers; only a packet that is cut by the end of a buffer is copied.

use crate::NetError;
use crate::packed::Packed;
use crate::tls::{Acceptor, Connector, Session, Shown};
use rt::{Address, Chunk, NotHanded, Socket};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use wire::frame::{Algorithm, PIECE_MAX};
use wire::{packet, proxied};

/// How long a parting may take.
const PARTING: Duration = Duration::from_secs(1);

/// A connection that carries MySQL packets.
#[derive(Debug)]
pub struct Conn {
    socket: Socket,
    tls: Option<Box<Session>>,
    /// Compression, above TLS.
    packed: Option<Box<Packed>>,
    /// Bytes that came after the last packet that was taken.
    rest: Option<Chunk>,
    /// Sequence number of the next packet that we send during a login.
    seq: u8,
    received: u64,
    sent: u64,
}

/// A connection that no core has just now: see [`Conn::part`].
#[derive(Debug)]
pub struct Parted {
    handed: rt::Handed,
    tls: Option<Box<Session>>,
    received: u64,
    sent: u64,
}

impl Parted {
    /// Makes the connection this core's from now on.
    ///
    /// # Errors
    /// As [`rt::Rt::adopt`].
    pub fn adopt(self, rt: &rt::Rt) -> std::io::Result<Conn> {
        let Self {
            handed,
            tls,
            received,
            sent,
        } = self;
        Ok(Conn {
            tls,
            received,
            sent,
            ..Conn::new(rt.adopt(handed)?)
        })
    }
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
    /// Returns the bytes in the packet, without its header.
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

/// The future of [`Conn::recv`].
#[derive(Debug)]
pub struct Recv<'a>(&'a mut Conn);

impl Future for Recv<'_> {
    type Output = Result<Chunk, NetError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_recv(cx)
    }
}

impl Conn {
    /// Over a socket.
    #[must_use]
    pub fn new(socket: Socket) -> Self {
        Self {
            socket,
            tls: None,
            packed: None,
            rest: None,
            seq: 0,
            received: 0,
            sent: 0,
        }
    }

    /// Over a socket of which these bytes have come already.
    #[must_use]
    pub fn with_rest(socket: Socket, rest: Vec<u8>) -> Self {
        Self {
            rest: (!rest.is_empty()).then(|| Chunk::from(rest)),
            ..Self::new(socket)
        }
    }

    /// Is it compressed?
    #[must_use]
    pub fn is_packed(&self) -> bool {
        self.packed.is_some()
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
        self.is_tls()
            || matches!(self.socket.peer(), Address::Unix(_))
            || matches!(self.socket.local(), Address::Unix(_))
    }

    /// The certificate that a client has shown over TLS; asked for with [`Acceptor::asking`].
    #[must_use]
    pub fn shown(&self) -> Option<Shown> {
        self.tls.as_ref()?.shown()
    }

    /// SHA-256 of the certificate that we have shown over TLS.
    #[must_use]
    pub fn own_fingerprint(&self) -> Option<[u8; 32]> {
        self.tls.as_ref()?.own_fingerprint()
    }

    /// Cipher and version, if encrypted.
    #[must_use]
    pub fn tls_info(&self) -> Option<(String, String)> {
        self.tls.as_ref().map(|tls| tls.info())
    }

    /// Compression from the next byte on, in both directions: the client's login is over. A level
    /// that the algorithm has not becomes the nearest.
    pub fn compress(&mut self, algorithm: Algorithm, level: i32) {
        self.packed = Some(Box::new(Packed::to_client(algorithm, level)));
    }

    /// Compresses from the next byte on, in both directions: our own login to a server is over. A
    /// level that the algorithm has not becomes the nearest.
    pub(crate) fn compress_to_server(&mut self, algorithm: Algorithm, level: i32) {
        self.packed = Some(Box::new(Packed::to_server(algorithm, level)));
    }

    /// Whether frames that come have to be numbered one after the other, if it is compressed: see
    /// [`wire::frame::Frames::in_order`].
    pub fn in_order(&mut self, must_be: bool) {
        if let Some(packed) = &mut self.packed {
            packed.frames.in_order(must_be);
        }
    }

    /// How it is compressed, and at which level.
    #[must_use]
    pub fn compression(&self) -> Option<(Algorithm, i32)> {
        self.packed
            .as_ref()
            .map(|packed| (packed.frames.algorithm(), packed.frames.level()))
    }

    /// Bytes received and sent so far, as they crossed the wire (received: without a header of the
    /// PROXY protocol; sent: before they were encrypted).
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.received, self.sent)
    }

    /// Nothing waits: no byte, no end, nothing unsent. Only then may it be given to somebody else.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.is_empty())
            && self.tls.as_ref().is_none_or(|tls| tls.is_drained())
            && self
                .packed
                .as_ref()
                .is_none_or(|packed| packed.is_drained())
            && self.socket.is_idle()
    }

    /// Takes an idle connection from this core, for another to adopt; what is left here is only to
    /// be dropped.
    ///
    /// # Errors
    /// It is not idle or does not stay so, or is compressed; or there are no descriptors left, and
    /// it stays as it was.
    pub async fn part(&mut self) -> Result<Parted, NotHanded> {
        if !self.is_idle() || self.packed.is_some() {
            return Err(NotHanded::Over);
        }
        let handed = self.socket.hand_over().await?;
        Ok(Parted {
            handed,
            tls: self.tls.take(),
            received: self.received,
            sent: self.sent,
        })
    }

    /// Takes a connection without TLS and compression from this process, with bytes that have come
    /// and were not taken.
    ///
    /// # Errors
    /// As [`rt::Socket::hand_over_with_rest`].
    pub async fn part_with_rest(&mut self) -> Result<(rt::Handed, Vec<u8>), NotHanded> {
        if self.packed.is_some() || self.tls.is_some() {
            return Err(NotHanded::Over);
        }
        let (handed, came) = self.socket.hand_over_with_rest().await?;
        let mut rest = self.rest.take().map_or_else(Vec::new, |rest| rest.to_vec());
        rest.extend(came);
        Ok((handed, rest))
    }

    /// The bytes that came next, as they came. An empty chunk is the end. Cancel-safe.
    pub fn recv(&mut self) -> Recv<'_> {
        Recv(self)
    }

    /// Bytes behind those that have come and were not taken.
    async fn next_bytes(&mut self) -> Result<Chunk, NetError> {
        poll_fn(|cx| self.poll_more(cx)).await
    }

    /// [`Conn::next_bytes`] of a connection with TLS or compression.
    async fn more_in_layers(&mut self) -> Result<Chunk, NetError> {
        if self.packed.is_some() {
            self.more_unpacked().await
        } else {
            self.more_of_tls().await
        }
    }

    async fn more_unpacked(&mut self) -> Result<Chunk, NetError> {
        loop {
            let Some(packed) = &mut self.packed else {
                return Ok(Chunk::empty());
            };
            let plain = packed.read()?;
            if !plain.is_empty() {
                return Ok(Chunk::from(plain));
            }
            let between = packed.is_drained();
            let chunk = if self.tls.is_some() {
                self.more_of_tls().await?
            } else {
                let chunk = self.socket.recv().await?;
                self.received += chunk.len() as u64;
                chunk
            };
            match &mut self.packed {
                Some(packed) if !chunk.is_empty() => packed.feed(chunk),
                _ if between => return Ok(Chunk::empty()),
                _ => return Err(NetError::Io(std::io::ErrorKind::UnexpectedEof.into())),
            }
        }
    }

    async fn more_of_tls(&mut self) -> Result<Chunk, NetError> {
        let Some(tls) = &mut self.tls else {
            return Ok(Chunk::from(Vec::new()));
        };
        loop {
            let plain = match tls.read() {
                Ok(plain) => plain,
                Err(error) => {
                    // It tells the other side why.
                    self.socket.queue(tls.take_out())?;
                    return Err(error);
                }
            };
            if !plain.is_empty() {
                return Ok(Chunk::from(plain));
            }
            // Updates of keys and the like want answers, and the other side may wait for them.
            let answer = tls.take_out();
            if !answer.is_empty() {
                self.socket.send(answer).await?;
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
        }
    }

    /// The client for whom whoever connects speaks, if the first bytes are a header of the PROXY
    /// protocol that names one.
    ///
    /// # Errors
    /// The header is broken; nothing that comes may be believed.
    pub(crate) async fn proxied_client(&mut self) -> Result<Option<SocketAddr>, NetError> {
        let mut first = self.recv().await?;
        loop {
            if first.is_empty() {
                return Err(NetError::Closed);
            }
            match proxied::read(&first)? {
                proxied::First::NoHeader => {
                    self.put_back(first);
                    return Ok(None);
                }
                proxied::First::Header { len, client } => {
                    first.advance(len);
                    // Whoever connects has said nothing of its own.
                    self.received -= len as u64;
                    self.put_back(first);
                    return Ok(client);
                }
                proxied::First::Unfinished => {
                    let more = self.next_bytes().await?;
                    if more.is_empty() {
                        return Err(NetError::Closed);
                    }
                    let mut all = first.into_vec();
                    all.extend_from_slice(&more);
                    first = Chunk::from(all);
                }
            }
        }
    }

    /// [`recv`](Self::recv) for whoever waits for several things at once. Nothing is lost between
    /// two looks.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Chunk, NetError>> {
        if let Some(rest) = self.rest.take()
            && !rest.is_empty()
        {
            return Poll::Ready(Ok(rest));
        }
        self.poll_more(cx)
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<Chunk, NetError>> {
        if self.packed.is_some() || self.tls.is_some() {
            return pin!(Box::pin(self.more_in_layers())).poll(cx);
        }
        match self.socket.poll_recv(cx) {
            Poll::Ready(Ok(chunk)) => {
                self.received += chunk.len() as u64;
                Poll::Ready(Ok(chunk))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Whether there is room for more to be sent, see [`Socket::room`].
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), NetError>> {
        if !self.socket.is_full() {
            return Poll::Ready(Ok(()));
        }
        pin!(self.socket.room()).poll(cx).map_err(NetError::from)
    }

    /// Whether the first bytes are those of a header of the PROXY protocol, which nobody has
    /// allowed.
    pub(crate) async fn begins_proxied(&mut self) -> Result<bool, NetError> {
        let first = self.recv().await?;
        if first.is_empty() {
            return Err(NetError::Closed);
        }
        let begins = proxied::begins(&first);
        self.put_back(first);
        Ok(begins)
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
        if self.packed.is_some() {
            return Box::pin(self.send_packed(bytes)).await;
        }
        self.send_as_is(bytes).await
    }

    /// Sends whole commands to the other side, in order. Waits only while too much is unsent. With
    /// compression, each begins to count anew.
    pub async fn send_commands(&mut self, bytes: impl Into<Chunk>) -> Result<(), NetError> {
        if self.packed.is_some() {
            return Box::pin(self.send_commands_packed(bytes.into())).await;
        }
        self.send(bytes).await
    }

    /// A command begins with the next byte that is queued: with compression, each begins to count
    /// anew.
    pub fn begin_command(&mut self) {
        if let Some(packed) = &mut self.packed {
            packed.frames.begin();
        }
    }

    /// Whether the next frame that is sent has the number of a command's first.
    #[must_use]
    pub fn is_next_frame_first(&self) -> bool {
        self.packed
            .as_ref()
            .is_some_and(|packed| packed.frames.is_next_first())
    }

    async fn send_commands_packed(&mut self, mut bytes: Chunk) -> Result<(), NetError> {
        while !bytes.is_empty() {
            let command = bytes.split_to(packet::command_len(&bytes));
            if let Some(packed) = &mut self.packed {
                packed.frames.begin();
            }
            self.send_packed(command).await?;
        }
        if let Some(packed) = &mut self.packed {
            packed.frames.expect_answer();
        }
        Ok(())
    }

    async fn send_packed(&mut self, mut bytes: Chunk) -> Result<(), NetError> {
        for piece in bytes.chunks_mut(PIECE_MAX) {
            let Some(packed) = &mut self.packed else {
                break;
            };
            let frame = packed.pack(piece);
            if !frame.is_empty() {
                self.send_as_is(Chunk::from(frame)).await?;
            }
        }
        Ok(())
    }

    async fn send_as_is(&mut self, bytes: Chunk) -> Result<(), NetError> {
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

    /// Queues bytes for the other side, in order, without waiting: whoever has much to send asks
    /// the socket for [`room`](Socket::room) in between.
    ///
    /// # Errors
    /// As [`Conn::send`].
    pub fn queue(&mut self, bytes: impl Into<Chunk>) -> Result<(), NetError> {
        let mut bytes = bytes.into();
        self.sent += bytes.len() as u64;
        let Some(packed) = &mut self.packed else {
            return self.queue_as_is(bytes);
        };
        let frames: Vec<_> = bytes
            .chunks_mut(PIECE_MAX)
            .map(|piece| packed.pack(piece))
            .collect();
        frames
            .into_iter()
            .filter(|frame| !frame.is_empty())
            .try_for_each(|frame| self.queue_as_is(Chunk::from(frame)))
    }

    fn queue_as_is(&mut self, bytes: Chunk) -> Result<(), NetError> {
        match &mut self.tls {
            None => self.socket.queue(bytes)?,
            Some(tls) => {
                for piece in bytes.chunks(64 << 10) {
                    self.socket.queue(tls.plain_to_send(piece)?)?;
                }
            }
        }
        Ok(())
    }

    /// Wait until all is with the kernel.
    pub async fn flush(&mut self) -> Result<(), NetError> {
        Ok(self.socket.flush().await?)
    }

    /// The next packet, whole. Cancel-safe: what has come of it is still there for the next call.
    ///
    /// # Errors
    /// [`NetError::Closed`] between packets; [`NetError::TooLarge`] when its payload is longer than
    /// `limit`: what has come of it is still to be read then.
    pub async fn packet(&mut self, limit: usize) -> Result<Packet, NetError> {
        let mut chunk = self.recv().await?;
        if chunk.is_empty() {
            return Err(NetError::Closed);
        }
        if let Some((len, seq)) = packet::whole(&chunk)
            && len < packet::MAX_PAYLOAD
        {
            if len > limit {
                self.rest = Some(chunk);
                return Err(NetError::TooLarge { limit, seq });
            }
            let end = packet::HEADER_LEN + len;
            if chunk.len() > end {
                let first = chunk.split_to(end);
                self.rest = Some(chunk);
                chunk = first;
            }
            self.seq = seq.wrapping_add(1);
            return Ok(Packet {
                bytes: chunk,
                start: packet::HEADER_LEN,
                seq,
            });
        }
        // On the heap, because every idle client waits in this function and few packets are cut.
        Box::pin(self.gathered(chunk, limit)).await
    }

    /// A packet of several buffers, or of several pieces of 16 MiB.
    async fn gathered(&mut self, first: Chunk, limit: usize) -> Result<Packet, NetError> {
        let mut come = Partly {
            bytes: first.to_vec(),
            conn: self,
        };
        drop(first);
        // where a piece begins; bytes of payload up to its end
        let (mut piece, mut payload) = (0, 0);
        loop {
            come.up_to(piece + packet::HEADER_LEN).await?;
            let head = &come.bytes[piece..];
            let (len, seq) = packet::header(&[head[0], head[1], head[2], head[3]]);
            payload += len;
            if payload > limit {
                return Err(NetError::TooLarge { limit, seq });
            }
            let end = piece + packet::HEADER_LEN + len;
            come.up_to(end).await?;
            if len == packet::MAX_PAYLOAD {
                piece = end;
                continue;
            }
            let mut bytes = std::mem::take(&mut come.bytes);
            come.conn.keep(bytes.split_off(end));
            come.conn.seq = seq.wrapping_add(1);
            if piece == 0 {
                return Ok(Packet {
                    bytes: Chunk::from(bytes),
                    start: packet::HEADER_LEN,
                    seq,
                });
            }
            take_headers_out(&mut bytes);
            return Ok(Packet {
                bytes: Chunk::from(bytes),
                start: 0,
                seq,
            });
        }
    }

    /// Reads a packet that is too large to its end, and drops it as it comes: its first byte, and
    /// the number of its last piece. Most clients look for an answer only when all of their command
    /// is sent.
    ///
    /// `came` goes up with every byte, for who wants to know whether it goes on.
    ///
    /// # Errors
    /// The connection ends within the packet.
    pub async fn skip(&mut self, came: &Cell<usize>) -> Result<(u8, u8), NetError> {
        let mut begins = None;
        loop {
            let first = self.recv().await?.to_vec();
            let mut head = Partly {
                bytes: first,
                conn: self,
            };
            head.up_to(packet::HEADER_LEN).await?;
            let (len, seq) =
                packet::header(&[head.bytes[0], head.bytes[1], head.bytes[2], head.bytes[3]]);
            drop(head);
            let mut left = packet::HEADER_LEN + len;
            while left > 0 {
                let mut chunk = self.recv().await?;
                if chunk.is_empty() {
                    return Err(NetError::Io(std::io::ErrorKind::UnexpectedEof.into()));
                }
                let dropped = chunk.split_to(left.min(chunk.len()));
                let at = packet::HEADER_LEN + len - left; // in this piece, with its header
                begins =
                    begins.or_else(|| dropped.get(packet::HEADER_LEN.checked_sub(at)?).copied());
                left -= dropped.len();
                came.set(came.get() + dropped.len());
                if !chunk.is_empty() {
                    self.put_back(chunk);
                }
            }
            if len < packet::MAX_PAYLOAD {
                self.seq = seq.wrapping_add(1);
                return Ok((begins.unwrap_or_default(), seq));
            }
        }
    }

    fn keep(&mut self, tail: Vec<u8>) {
        self.rest = if tail.is_empty() {
            None
        } else {
            Some(Chunk::from(tail))
        };
    }

    /// Send one payload as the next packet of a dialogue (handshake, authentication).
    pub async fn reply(&mut self, payload: &[u8]) -> Result<(), NetError> {
        let framed = self.frame(payload);
        self.send(framed).await
    }

    /// Returns what [`reply`](Self::reply) would send, for who sends it otherwise.
    #[must_use]
    pub fn frame(&mut self, payload: &[u8]) -> Vec<u8> {
        let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
        packet::append(&mut framed, &mut self.seq, payload);
        framed
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
                return Err(NetError::Tls(
                    "the other side left during the handshake".to_owned(),
                ));
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

    /// Sends a peer away that did not ask for it. Closing while something of it is unread would
    /// reset the connection, and the peer might lose our last words: so our side ends first, and
    /// what still comes is dropped, for a moment.
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

/// A part of a packet. What has come is given back to the connection if nobody waits for the rest.
struct Partly<'a> {
    bytes: Vec<u8>,
    conn: &'a mut Conn,
}

impl Partly<'_> {
    /// Waits for so many bytes.
    async fn up_to(&mut self, n: usize) -> Result<(), NetError> {
        while self.bytes.len() < n {
            let chunk = self.conn.next_bytes().await?;
            if chunk.is_empty() {
                return Err(NetError::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
            self.bytes.extend_from_slice(&chunk);
        }
        Ok(())
    }
}

impl Drop for Partly<'_> {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.conn.keep(std::mem::take(&mut self.bytes));
        }
    }
}

/// From pieces of 16 MiB with their headers to the payload.
fn take_headers_out(bytes: &mut Vec<u8>) {
    let (mut from, mut to) = (0, 0);
    while from < bytes.len() {
        let end = bytes
            .len()
            .min(from + packet::HEADER_LEN + packet::MAX_PAYLOAD);
        bytes.copy_within(from + packet::HEADER_LEN..end, to);
        to += end - from - packet::HEADER_LEN;
        from = end;
    }
    bytes.truncate(to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::Rt;
    use rt::sim::{Faults, Limits};
    use std::rc::Rc;

    /// One end that says what it is told to, and a connection at the other.
    fn with<F: Future<Output = ()>>(test: impl FnOnce(Rt, Socket, Conn) -> F) {
        let limits = Limits {
            time_max: Duration::from_secs(3600),
            turns_max: 10_000_000,
        };
        rt::sim::run_with(1, Faults::perfect(), limits, |rt| async move {
            let at: Address = "10.0.0.1:3306".parse().unwrap();
            let listener = rt.listen(&at, rt::ListenOptions::default()).unwrap();
            let (said, heard) = (
                rt.connect(&at).await.unwrap(),
                listener.accept().await.unwrap(),
            );
            test(rt, said, Conn::new(heard)).await;
        });
    }

    fn framed(payload: &[u8]) -> Vec<u8> {
        let mut framed = Vec::new();
        packet::append(&mut framed, &mut 0, payload);
        framed
    }

    /// Says it in another task: more than a window of bytes waits to be read.
    fn say(rt: &Rt, socket: Socket, bytes: Vec<u8>) {
        rt.spawn(async move {
            socket.send(bytes).await.unwrap();
            socket.flush().await.unwrap();
            std::future::pending::<()>().await;
        });
    }

    #[test]
    fn what_has_come_of_a_packet_is_not_lost_when_nobody_waits_for_the_rest() {
        for size in [200, 20_000, packet::MAX_PAYLOAD + 100] {
            with(|rt, socket, mut conn| async move {
                let payload: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
                let bytes = framed(&payload);
                let cuts = [1, 3, 4, 5, 50, 80, bytes.len() - 50, bytes.len()];
                rt.spawn({
                    let rt = rt.clone();
                    async move {
                        let mut from = 0;
                        for cut in cuts {
                            socket.send(bytes[from..cut].to_vec()).await.unwrap();
                            from = cut;
                            rt.sleep(Duration::from_secs(2)).await;
                        }
                        socket.send(framed(b"next")).await.unwrap();
                        std::future::pending::<()>().await;
                    }
                });
                let mut waited = 0;
                let packet = loop {
                    match rt
                        .timeout(Duration::from_secs(1), conn.packet(1 << 26))
                        .await
                    {
                        Ok(packet) => break packet.unwrap(),
                        Err(_) => waited += 1,
                    }
                };
                assert!(waited > 5, "{waited}");
                assert!(packet.payload() == payload);
                assert_eq!(conn.packet(100).await.unwrap().payload(), b"next");
            });
        }
    }

    #[test]
    fn who_sends_what_cannot_be_decrypted_is_told_at_once() {
        with(|rt, socket, mut conn| async move {
            let own = crate::tls::SelfSigned::generate().unwrap();
            let acceptor = Acceptor::new(&own.certificate, &own.key).unwrap();
            let mut session = Connector::new(&crate::tls::Settings::default())
                .unwrap()
                .begin("10.0.0.1")
                .unwrap();
            let heard = Rc::new(Cell::new(None));
            rt.spawn({
                let heard = heard.clone();
                async move {
                    loop {
                        let done = session.step().unwrap();
                        socket.send(session.take_out()).await.unwrap();
                        if done {
                            break;
                        }
                        session.feed(&socket.recv().await.unwrap());
                    }
                    socket
                        .send(session.plain_to_send(b"hello").unwrap())
                        .await
                        .unwrap();
                    socket
                        .send([&[23, 3, 3, 0, 40][..], &[7; 40]].concat())
                        .await
                        .unwrap();
                    let error = loop {
                        session.feed(&socket.recv().await.unwrap());
                        match session.read() {
                            Ok(_ticket) => assert!(!session.is_over()),
                            Err(error) => break error,
                        }
                    };
                    heard.set(Some(error.to_string()));
                    std::future::pending::<()>().await;
                }
            });
            conn.accept_tls(&acceptor).await.unwrap();
            assert_eq!(conn.recv().await.unwrap().to_vec(), b"hello");
            assert!(conn.recv().await.is_err());
            rt.sleep(Duration::from_secs(1)).await;
            let heard = heard.take().unwrap_or_default();
            assert!(heard.contains("bad record mac"), "{heard}");
        });
    }

    #[test]
    fn a_packet_that_is_too_large_is_skipped_to_its_end_and_no_further() {
        for size in [
            11,
            70_000,
            packet::MAX_PAYLOAD - 1,
            packet::MAX_PAYLOAD,
            2 * packet::MAX_PAYLOAD + 5,
        ] {
            with(|rt, socket, mut conn| async move {
                let mut bytes = framed(&vec![b'x'; size]);
                bytes.extend(framed(b"next"));
                say(&rt, socket, bytes);
                // The second piece may be the one that is too much.
                for limit in [10, size - 1] {
                    assert!(
                        matches!(conn.packet(limit).await, Err(NetError::TooLarge { .. })),
                        "{size}"
                    );
                }
                let (begins, seq) = conn.skip(&Cell::new(0)).await.unwrap();
                assert_eq!(
                    (begins, usize::from(seq)),
                    (b'x', size / packet::MAX_PAYLOAD)
                );
                assert_eq!(conn.packet(10).await.unwrap().payload(), b"next");
            });
        }
    }
}
