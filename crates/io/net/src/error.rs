//! What goes wrong between two ends of a connection.

use std::fmt;
use std::io;
use wire::Malformed;

/// Why a connection cannot go on.
#[derive(Debug)]
pub enum NetError {
    /// The peer closed it between two packets.
    Closed,
    /// The network failed, or the peer closed it inside a packet.
    Io(io::Error),
    /// The peer does not speak the protocol.
    Malformed(Malformed),
    /// A packet is longer than the limit.
    TooLarge {
        /// Bytes allowed.
        limit: usize,
        /// Sequence number of the piece that was seen last.
        seq: u8,
    },
    /// TLS failed.
    Tls(String),
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection was closed by the other side"),
            Self::Io(error) => write!(f, "{error}"),
            Self::Malformed(malformed) => write!(f, "{malformed}"),
            Self::TooLarge { limit, .. } => write!(f, "a packet is larger than {limit} bytes"),
            Self::Tls(what) => write!(f, "TLS: {what}"),
        }
    }
}

impl std::error::Error for NetError {}

impl From<io::Error> for NetError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Malformed> for NetError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}
