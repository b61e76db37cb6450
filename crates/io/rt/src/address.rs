//! Where one can connect to or listen at: a TCP address or the path of a unix socket.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// A place to connect to or to listen at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// The path of a unix stream socket; empty for a peer that never bound a name.
    Unix(PathBuf),
}

impl Address {
    /// The IP address, if there is one.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(at) => Some(at.ip()),
            Self::Unix(_) => None,
        }
    }

    /// The port; 0 for a unix socket, as in a server's row.
    pub fn port(&self) -> u16 {
        match self {
            Self::Tcp(at) => at.port(),
            Self::Unix(_) => 0,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(at) => write!(f, "{at}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(at: SocketAddr) -> Self {
        Self::Tcp(at)
    }
}

/// A text that is neither `ip:port` nor an absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAnAddress(
    /// The text as it was given.
    pub String,
);

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is neither ip:port nor the absolute path of a unix socket",
            self.0
        )
    }
}

impl std::error::Error for NotAnAddress {}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        if text.starts_with('/') {
            return Ok(Self::Unix(PathBuf::from(text)));
        }
        text.parse()
            .map(Self::Tcp)
            .map_err(|_| NotAnAddress(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_what_they_print() {
        for text in ["1.2.3.4:6033", "[::1]:6032", "/tmp/x.sock"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_bare_name_is_refused_in_words() {
        let refusal = "localhost".parse::<Address>().unwrap_err().to_string();
        assert!(refusal.contains("`localhost`"), "{refusal}");
    }
}
