//! Which version a server says that it is: clients choose their words by it.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// So long a server has to be reached, and again to say its greeting.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of a greeting that are read.
const GREETING_LEN_MAX: usize = 256;

/// The version in the greeting of a server; port 0 for a socket. None if it does not say one soon.
pub(crate) fn version(host: &str, port: u16) -> Option<String> {
    if port == 0 {
        let stream = UnixStream::connect(host).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        return read(stream);
    }
    let at = (host, port).to_socket_addrs().ok()?.next()?;
    let stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    read(stream)
}

fn read(mut from: impl Read) -> Option<String> {
    let mut greeting = Vec::new();
    let mut piece = [0; GREETING_LEN_MAX];
    // A header of four bytes, the protocol's number, then the words up to a zero.
    while greeting.len() < GREETING_LEN_MAX && !greeting.iter().skip(5).any(|byte| *byte == 0) {
        let len = from.read(&mut piece).ok().filter(|len| *len > 0)?;
        greeting.extend_from_slice(&piece[..len]);
    }
    if greeting.get(4) != Some(&10) {
        // An error: it lets nobody in from here.
        return None;
    }
    let words = greeting.get(5..)?.split(|byte| *byte == 0).next()?;
    let words = std::str::from_utf8(words).ok()?;
    let is_plain = words.chars().all(|c| c.is_ascii_graphic());
    (is_plain && !words.is_empty()).then(|| words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_stands_in_front_of_the_zero() {
        let greeting = b"\x4a\0\0\0\x0a10.11.6-MariaDB\0\x08\0\0\0";
        assert_eq!(read(&greeting[..]).as_deref(), Some("10.11.6-MariaDB"));
        assert_eq!(read(&greeting[..9]), None, "it breaks off");
        assert_eq!(read(&b"\x10\0\0\0\xff\x6a\x04Host is blocked\0"[..]), None);
        assert_eq!(read(&b"\x10\0\0\0\x0aa b\0"[..]), None);
    }
}
