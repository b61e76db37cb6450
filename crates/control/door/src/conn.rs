//! Packets over a socket: whole ones in, batches out. Plain text; see ARCHITECTURE.md for why these ports may be.

use rt::Socket;
use std::fmt;
use std::io;
use wire::packet::{self, HEADER_LEN, MAX_PAYLOAD};

/// Why no packet could be read.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The peer is gone.
    Gone,
    /// It announces more than is allowed.
    TooLarge,
    /// The network says no.
    Io(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the client is gone"),
            Self::TooLarge => f.write_str("the client sent a packet that is too large"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// A socket that packets come from.
pub(crate) struct Conn {
    pub(crate) socket: Socket,
    /// Bytes that came and belong to packets that are not whole yet; without memory while the client is idle.
    buf: Vec<u8>,
    /// Number of the packet that is to be sent next.
    pub(crate) seq: u8,
}

impl Conn {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, buf: Vec::new(), seq: 0 }
    }

    /// The next payload, joined if it came in several packets; at most `max` bytes of it.
    pub(crate) async fn payload(&mut self, max: usize) -> Result<Vec<u8>, Broken> {
        let mut joined = Vec::new();
        loop {
            let len = self.part(max.saturating_sub(joined.len())).await?;
            let part = &self.buf[HEADER_LEN..HEADER_LEN + len];
            if joined.is_empty() && len < MAX_PAYLOAD && self.buf.len() == HEADER_LEN + len {
                // The usual case: one packet, and nothing behind it. Its memory goes with it.
                let mut payload = std::mem::take(&mut self.buf);
                payload.drain(..HEADER_LEN);
                return Ok(payload);
            }
            joined.extend_from_slice(part);
            self.buf.drain(..HEADER_LEN + len);
            if len < MAX_PAYLOAD {
                return Ok(joined);
            }
        }
    }

    /// Waits until a whole packet is at the head of `buf`; its length.
    async fn part(&mut self, max: usize) -> Result<usize, Broken> {
        loop {
            if let Some(head) = self.buf.first_chunk::<HEADER_LEN>() {
                let (len, seq) = packet::header(head);
                if len > max {
                    return Err(Broken::TooLarge);
                }
                if self.buf.len() >= HEADER_LEN + len {
                    self.seq = seq.wrapping_add(1);
                    return Ok(len);
                }
            }
            let chunk = self.socket.recv().await?;
            if chunk.is_empty() {
                return Err(Broken::Gone);
            }
            self.buf.extend_from_slice(&chunk);
        }
    }

    /// Sends a payload as the next packet.
    pub(crate) async fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut out = Vec::new();
        packet::append_with(&mut out, &mut self.seq, fill);
        self.socket.send(out).await
    }
}
