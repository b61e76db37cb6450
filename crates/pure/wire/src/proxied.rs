//! The PROXY protocol, versions 1 and 2: what a load balancer says before anything else of whom it
//! speaks for.
//!
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt> Neither can be the beginning of a
//! login: as the header of a packet, both would announce a length and a number that no login has.

use crate::Malformed;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// How version 1 begins.
const V1: &[u8] = b"PROXY ";
/// The longest of version 1, with its line's end.
const V1_LEN_MAX: usize = 107;
/// How version 2 begins.
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes before the addresses of version 2.
const V2_HEAD_LEN: usize = 16;
/// A header of version 2 that is longer is refused; what follows the addresses seldom has more than
/// a hundred bytes.
pub const HEADER_LEN_MAX: usize = 4096;

/// Kind of the first bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// More have to come before it can be told.
    Unfinished,
    /// Something else: whoever connects speaks for himself.
    NoHeader,
    /// A header of so many bytes.
    Header {
        /// Its length.
        len: usize,
        /// The client; `None` if the balancer speaks for itself (a health check), or for somebody
        /// without such an address.
        client: Option<SocketAddr>,
    },
}

/// Reads the beginning of a connection.
///
/// # Errors
/// It begins as a header and is none: whoever wrote it must not be taken for anybody.
pub fn read(bytes: &[u8]) -> Result<First, Malformed> {
    if bytes.starts_with(V1) {
        return v1(bytes);
    }
    if bytes.starts_with(V2) {
        return v2(bytes);
    }
    let may_become = |begin: &[u8]| begin.starts_with(bytes);
    Ok(if may_become(V1) || may_become(V2) {
        First::Unfinished
    } else {
        First::NoHeader
    })
}

/// Whether a connection begins with a header, whole or not.
#[must_use]
pub fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(V1) || bytes.starts_with(V2)
}

/// Writes a header of version 1 or 2: the client and where it leads; without a client, that we
/// speak for ourselves.
pub fn write(out: &mut Vec<u8>, version: u8, client: Option<SocketAddr>, to: Option<SocketAddr>) {
    let pair = client.zip(to);
    // One family for both: an address of IPv4 beside one of IPv6 is written as IPv6 has it.
    let four =
        pair.and_then(
            |(from, to)| match (from.ip().to_canonical(), to.ip().to_canonical()) {
                (IpAddr::V4(a), IpAddr::V4(b)) => Some((a, b)),
                _ => None,
            },
        );
    let six = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    if version == 1 {
        let line = match (pair, four) {
            (Some((from, to)), Some((a, b))) => {
                format!("PROXY TCP4 {a} {b} {} {}\r\n", from.port(), to.port())
            }
            (Some((from, to)), None) => {
                format!(
                    "PROXY TCP6 {} {} {} {}\r\n",
                    six(from.ip()),
                    six(to.ip()),
                    from.port(),
                    to.port()
                )
            }
            (None, _) => "PROXY UNKNOWN\r\n".to_owned(),
        };
        out.extend_from_slice(line.as_bytes());
        return;
    }
    out.extend_from_slice(V2);
    let mut addresses = Vec::with_capacity(36);
    let family: [u8; 2] = match (pair, four) {
        (Some(_), Some((a, b))) => {
            addresses.extend_from_slice(&a.octets());
            addresses.extend_from_slice(&b.octets());
            [0x21, 0x11]
        }
        (Some((from, to)), None) => {
            addresses.extend_from_slice(&six(from.ip()).octets());
            addresses.extend_from_slice(&six(to.ip()).octets());
            [0x21, 0x21]
        }
        (None, _) => [0x20, 0x00],
    };
    if let Some((from, to)) = pair {
        addresses.extend_from_slice(&from.port().to_be_bytes());
        addresses.extend_from_slice(&to.port().to_be_bytes());
    }
    out.extend_from_slice(&family);
    out.extend_from_slice(&(addresses.len() as u16).to_be_bytes());
    out.extend_from_slice(&addresses);
}

fn v1(bytes: &[u8]) -> Result<First, Malformed> {
    let bad = Malformed::new("a PROXY header of version 1 that is none");
    let Some(end) = bytes
        .iter()
        .take(V1_LEN_MAX)
        .position(|byte| *byte == b'\n')
    else {
        return if bytes.len() < V1_LEN_MAX {
            Ok(First::Unfinished)
        } else {
            Err(bad)
        };
    };
    let line = bytes[V1.len()..end].strip_suffix(b"\r").ok_or(bad)?;
    let line = str::from_utf8(line).map_err(|_| bad)?;
    let len = end + 1;
    let mut words = line.split(' ');
    let family = words.next().unwrap_or_default();
    if family == "UNKNOWN" {
        return Ok(First::Header { len, client: None });
    }
    let [
        Some(source),
        Some(target),
        Some(source_port),
        Some(target_port),
        None,
    ] = [
        words.next(),
        words.next(),
        words.next(),
        words.next(),
        words.next(),
    ]
    else {
        return Err(bad);
    };
    let address = |text: &str| -> Result<IpAddr, Malformed> {
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().map(IpAddr::V4).map_err(|_| bad),
            "TCP6" => text.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| bad),
            _ => Err(bad),
        }
    };
    let port = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u16>().map_err(|_| bad),
        false => Err(bad),
    };
    let _to = (address(target)?, port(target_port)?);
    Ok(First::Header {
        len,
        client: Some(SocketAddr::new(address(source)?, port(source_port)?)),
    })
}

fn v2(bytes: &[u8]) -> Result<First, Malformed> {
    let Some(head) = bytes.first_chunk::<V2_HEAD_LEN>() else {
        return Ok(First::Unfinished);
    };
    let [.., command, family, high, low] = *head;
    let len = V2_HEAD_LEN + usize::from(u16::from_be_bytes([high, low]));
    if len > HEADER_LEN_MAX {
        return Err(Malformed::new(
            "a PROXY header of version 2 that is too long",
        ));
    }
    let local = match command {
        0x20 => true,
        0x21 => false,
        _ => {
            return Err(Malformed::new(
                "a PROXY header of a version or command that is not known",
            ));
        }
    };
    let Some(addresses) = bytes.get(V2_HEAD_LEN..len) else {
        return Ok(First::Unfinished);
    };
    let short = Malformed::new("a PROXY header of version 2 without its addresses");
    let client = match family {
        _ if local => None,
        0x11 | 0x12 => {
            let [a, b, c, d, _, _, _, _, high, low, _, _] =
                *addresses.first_chunk::<12>().ok_or(short)?;
            Some(SocketAddr::new(
                Ipv4Addr::new(a, b, c, d).into(),
                u16::from_be_bytes([high, low]),
            ))
        }
        0x21 | 0x22 => {
            let [source @ .., _, _] = *addresses.first_chunk::<36>().ok_or(short)?;
            let ip: [u8; 16] = *source.first_chunk().ok_or(short)?;
            let port: [u8; 2] = *source.last_chunk().ok_or(short)?;
            Some(SocketAddr::new(
                Ipv6Addr::from(ip).into(),
                u16::from_be_bytes(port),
            ))
        }
        // Unix sockets and what is to come: the header is sound, and names nobody.
        _ => None,
    };
    Ok(First::Header { len, client })
}

/// Fuzz target: any bytes: what was told of the beginning stays true when more come, and a header
/// is no longer than what came.
pub fn fuzz_proxied(data: &[u8]) {
    let whole = read(data);
    if let Ok(First::Header { len, .. }) = whole {
        assert!(len <= data.len() && len <= HEADER_LEN_MAX);
    }
    for cut in 0..data.len().min(HEADER_LEN_MAX) {
        match read(&data[..cut]) {
            Ok(First::Unfinished) => {}
            early => assert_eq!(early, whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &[u8]) -> Result<First, &'static str> {
        read(text).map_err(|why| why.what)
    }

    fn v2_of(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = V2.to_vec();
        bytes.extend_from_slice(&[command, family]);
        bytes.extend_from_slice(&(rest.len() as u16).to_be_bytes());
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn what_is_written_is_read_again() {
        let at = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
        for version in [1, 2] {
            for (client, to, wanted) in [
                (
                    at("192.0.2.7:51234"),
                    at("10.0.0.1:3306"),
                    at("192.0.2.7:51234"),
                ),
                (
                    at("[2001:db8::7]:1"),
                    at("[::1]:3306"),
                    at("[2001:db8::7]:1"),
                ),
                (
                    at("[2001:db8::7]:1"),
                    at("10.0.0.1:3306"),
                    at("[2001:db8::7]:1"),
                ),
                (
                    at("192.0.2.7:51234"),
                    at("[::1]:3306"),
                    at("192.0.2.7:51234"),
                ),
                (None, at("10.0.0.1:3306"), None),
                (at("192.0.2.7:51234"), None, None),
            ] {
                let mut header = Vec::new();
                write(&mut header, version, client, to);
                assert!(begins(&header) && !begins(b"PROX") && !begins(b""));
                let len = header.len();
                header.extend_from_slice(b"a login");
                let Ok(First::Header {
                    len: read_len,
                    client: found,
                }) = read(&header)
                else {
                    panic!("{header:?}")
                };
                let canonical =
                    found.map(|found| SocketAddr::new(found.ip().to_canonical(), found.port()));
                assert_eq!((read_len, canonical), (len, wanted), "version {version}");
            }
        }
    }

    #[test]
    fn a_line_names_the_client() {
        let text = b"PROXY TCP4 192.0.2.7 10.0.0.1 51234 6033\r\n\x20\0\0\x01";
        assert_eq!(
            header(text),
            Ok(First::Header {
                len: 42,
                client: "192.0.2.7:51234".parse().ok()
            })
        );
        let text = b"PROXY TCP6 2001:db8::7 ::1 51234 6033\r\n";
        assert_eq!(
            header(text),
            Ok(First::Header {
                len: text.len(),
                client: "[2001:db8::7]:51234".parse().ok()
            })
        );
        for unknown in [
            &b"PROXY UNKNOWN\r\n"[..],
            b"PROXY UNKNOWN what ever follows\r\n",
        ] {
            assert_eq!(
                header(unknown),
                Ok(First::Header {
                    len: unknown.len(),
                    client: None
                })
            );
        }
    }

    #[test]
    fn a_line_that_is_not_whole_is_waited_for_and_one_that_is_wrong_is_refused() {
        let whole = b"PROXY TCP4 192.0.2.7 10.0.0.1 51234 6033\r\n";
        for cut in 0..whole.len() {
            assert_eq!(header(&whole[..cut]), Ok(First::Unfinished), "{cut}");
        }
        let bad = Err("a PROXY header of version 1 that is none");
        for wrong in [
            "PROXY TCP4 192.0.2.7 10.0.0.1 51234 6033\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 51234\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 51234 6033 1\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 65536 6033\r\n",
            "PROXY TCP4 192.0.2.7 10.0.0.1 +1 6033\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n",
            "PROXY \r\n",
        ] {
            assert_eq!(header(wrong.as_bytes()), bad, "{wrong}");
        }
        assert_eq!(header(&[b"PROXY ".as_slice(), &[b'x'; 101]].concat()), bad);
    }

    #[test]
    fn version_2_names_the_client() {
        let four = [192, 0, 2, 7, 10, 0, 0, 1, 0xC8, 0x22, 0x17, 0x91];
        assert_eq!(
            header(&v2_of(0x21, 0x11, &four)),
            Ok(First::Header {
                len: 28,
                client: "192.0.2.7:51234".parse().ok()
            })
        );
        let mut six = [0; 40];
        (six[0], six[15], six[32], six[33]) = (0x20, 9, 0xC8, 0x22);
        // What follows the addresses is not looked at.
        assert_eq!(
            header(&v2_of(0x21, 0x21, &six)),
            Ok(First::Header {
                len: 56,
                client: "[2000::9]:51234".parse().ok()
            })
        );
        assert_eq!(
            header(&v2_of(0x20, 0x11, &four)),
            Ok(First::Header {
                len: 28,
                client: None
            })
        );
        assert_eq!(
            header(&v2_of(0x20, 0, &[])),
            Ok(First::Header {
                len: 16,
                client: None
            })
        );
        assert_eq!(
            header(&v2_of(0x21, 0x31, &[0; 216])),
            Ok(First::Header {
                len: 232,
                client: None
            })
        );
        let whole = v2_of(0x21, 0x11, &four);
        for cut in 0..whole.len() {
            assert_eq!(header(&whole[..cut]), Ok(First::Unfinished), "{cut}");
        }
    }

    #[test]
    fn version_2_that_is_wrong_is_refused() {
        assert!(header(&v2_of(0x21, 0x11, &[0; 11])).is_err());
        assert!(header(&v2_of(0x21, 0x21, &[0; 35])).is_err());
        assert!(header(&v2_of(0x31, 0x11, &[0; 12])).is_err());
        assert!(header(&v2_of(0x22, 0x11, &[0; 12])).is_err());
        assert!(header(&v2_of(0x21, 0x11, &[0; HEADER_LEN_MAX])).is_err());
    }

    #[test]
    fn a_login_is_no_header() {
        assert_eq!(header(&[0x55, 0, 0, 1, 0x85]), Ok(First::NoHeader));
        assert_eq!(header(b"PROX\0"), Ok(First::NoHeader));
        assert_eq!(header(b"\r\n\r\nx"), Ok(First::NoHeader));
        assert_eq!(header(b""), Ok(First::Unfinished));
    }
}
