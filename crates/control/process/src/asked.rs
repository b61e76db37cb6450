//! `millrace health`: the question of a container or a script, for images without any other client
//! of HTTP.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Time for each step of the question.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read at most.
const ANSWER_BYTES_MAX: u64 = 8 << 10;

/// Words of the health port of this machine's Millrace, as an error unless the answer is 200.
pub fn ask_health(port: u16, live: bool) -> Result<String, String> {
    let path = if live { "/live" } else { "/ready" };
    let answer = answer(port, path)
        .map_err(|error| format!("nobody answers on 127.0.0.1:{port}: {error}"))?;
    verdict(&answer).map(str::to_owned)
}

fn answer(port: u16, path: &str) -> std::io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWERS_WITHIN)?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Takes an answer of HTTP apart: its words, as an error unless its status is 200.
fn verdict(answer: &str) -> Result<&str, String> {
    let (head, words) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).unwrap_or_default();
    match status {
        "200" => Ok(words.trim()),
        "" => Err("the answer is not HTTP".to_owned()),
        _ => Err(format!("{status}: {}", words.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn only_200_is_healthy() {
        let fine = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfine\n";
        assert_eq!(verdict(fine), Ok("fine"));
        let paused = "HTTP/1.1 503 Service Unavailable\r\n\r\npaused\n";
        assert_eq!(verdict(paused), Err("503: paused".to_owned()));
        for odd in ["", "SSH-2.0-OpenSSH", "\r\n\r\n200"] {
            assert!(verdict(odd).is_err(), "{odd}");
        }
    }
}
