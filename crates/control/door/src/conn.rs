//! Packets in, batches out: a connection of `net` with what a server of statements needs of it.

use net::tls::Acceptor;
use net::{Conn as Net, NetError};
use rt::{Address, Rt, Socket};
use std::io;
use std::time::Duration;
use wire::packet;

/// Why no packet could be read.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Packet that announces more than is allowed.
    TooLarge,
    /// The client is gone, breaks the protocol, or is out of time.
    Gone,
}

impl From<NetError> for Broken {
    fn from(error: NetError) -> Self {
        match error {
            NetError::TooLarge { .. } => Self::TooLarge,
            NetError::Closed | NetError::Io(_) | NetError::Malformed(_) | NetError::Tls(_) => {
                Self::Gone
            }
        }
    }
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// One client's connection.
pub(crate) struct Conn {
    net: Net,
    rt: Rt,
    /// How long the client may take to read a piece of its answer.
    patience: Duration,
    /// Number of the packet that is to be sent next.
    pub(crate) seq: u8,
}

impl Conn {
    pub(crate) fn new(socket: Socket, rt: Rt, patience: Duration) -> Self {
        Self {
            net: Net::new(socket),
            rt,
            patience,
            seq: 0,
        }
    }

    pub(crate) fn peer(&self) -> Address {
        self.net.socket().peer()
    }

    /// Reads what was too large to its end, and drops it; the answer is next.
    pub(crate) async fn skip(&mut self) -> Result<(), Broken> {
        self.seq = self
            .net
            .skip(&std::cell::Cell::new(0))
            .await?
            .1
            .wrapping_add(1);
        Ok(())
    }

    /// The next payload, joined if it came in several packets; at most `max` bytes of it.
    pub(crate) async fn payload(&mut self, max: usize) -> Result<Vec<u8>, Broken> {
        let packet = self.net.packet(max).await?;
        self.seq = packet.seq.wrapping_add(1);
        Ok(packet.payload().to_vec())
    }

    /// Resolves when the client is gone.
    pub(crate) async fn closed(&self) {
        self.net.socket().closed().await;
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.net.is_tls()
    }

    /// The client has asked for TLS.
    pub(crate) async fn accept_tls(&mut self, acceptor: &Acceptor) -> Result<(), Broken> {
        Ok(self.net.accept_tls(acceptor).await?)
    }

    /// Sends a payload as the next packet.
    pub(crate) async fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut out = Vec::new();
        packet::append_with(&mut out, &mut self.seq, fill);
        self.send_framed(out).await
    }

    /// Sends packets that have their headers; waits while the client does not read, but not for
    /// ever.
    pub(crate) async fn send_framed(&mut self, packets: Vec<u8>) -> io::Result<()> {
        let sent = self.rt.timeout(self.patience, self.net.send(packets)).await;
        let sent = sent.map_err(|_late| io::Error::from(io::ErrorKind::TimedOut))?;
        sent.map_err(|error| match error {
            NetError::Io(error) => error,
            other => io::Error::other(other.to_string()),
        })
    }
}
