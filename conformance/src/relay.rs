//! A relay that knows nothing: what the harness is tried on, since every difference through it is
//! the harness's own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Words that are said behind the server's next bytes, in one piece with them, and are the last of
/// that connection.
pub type LastWords = Arc<Mutex<Option<Vec<u8>>>>;

/// Starts one in front of the port and gives its own; it serves until the process ends.
pub fn start(to: u16) -> io::Result<u16> {
    start_with(to, &LastWords::default())
}

/// Starts one at an address of its own; it serves until the process ends.
pub fn start_at(at: SocketAddr, to: u16) -> io::Result<()> {
    let listener = TcpListener::bind(at)?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || carry(client, to, &LastWords::default()));
        }
    });
    Ok(())
}

/// Starts a relay in front of the port of a server that says more than it was asked, and gives the
/// relay's own. The relay serves until the process ends.
pub fn start_with(to: u16, words: &LastWords) -> io::Result<u16> {
    let words = words.clone();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let words = words.clone();
            thread::spawn(move || carry(client, to, &words));
        }
    });
    Ok(port)
}

/// So much later than its connection is lost a command comes to its server.
const LATE: Duration = Duration::from_millis(1500);

/// Part of a command that a relay loses, with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Its answer: the command is done.
    Answer,
    /// The connection at once: the command comes to the server while others look for what it has done.
    Connection,
    /// The command itself: the server never hears of it.
    Command,
    /// Its answer, in whose place comes an error that leaves it open, as a node of Galera gives one that loses its cluster: the
    /// command is done.
    Error,
}

/// Error 1180 as the first packet of an answer.
const HALFWAY: &[u8] = b"\x31\0\0\x01\xff\x9c\x04#HY000Error while appending the fragment; lost";

/// Starts a relay in front of the port of a server, and gives the relay's own. The answer to the
/// command that `loses` is a part of is lost, and its connection ends. The relay serves until the
/// process ends.
pub fn start_that_loses(to: u16, loses: &LastWords) -> io::Result<u16> {
    start_that_loses_so(to, loses, Lost::Answer)
}

/// As [`start_that_loses`]. `what`: what is lost.
pub fn start_that_loses_so(to: u16, loses: &LastWords, what: Lost) -> io::Result<u16> {
    let loses = loses.clone();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let loses = loses.clone();
            thread::spawn(move || {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else {
                    return;
                };
                let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone())
                else {
                    return;
                };
                let is_lost = Arc::new(AtomicBool::new(false));
                let is_lost_too = is_lost.clone();
                thread::spawn(move || pour_until(server_too, client_too, (what, &is_lost_too)));
                pour_commands(client, server, &loses, (what, &is_lost));
            });
        }
    });
    Ok(port)
}

/// Carries commands until they end, and looks for the one whose answer is to be lost.
fn pour_commands(
    mut client: TcpStream,
    mut server: TcpStream,
    loses: &LastWords,
    (what, is_lost): (Lost, &AtomicBool),
) {
    let _ = server.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let is_part = |text: &Vec<u8>| buffer[..count].windows(text.len()).any(|at| at == text);
        if let Ok(mut loses) = loses.lock()
            && loses.as_ref().is_some_and(is_part)
        {
            *loses = None;
            is_lost.store(true, Ordering::SeqCst);
        }
        let is_lost = is_lost.load(Ordering::SeqCst);
        if is_lost && what == Lost::Connection {
            let _ = client.shutdown(Shutdown::Both);
            thread::sleep(LATE);
        }
        if is_lost && what == Lost::Command || server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Write);
}

/// Carries answers until they end, or one is to be lost.
fn pour_until(mut server: TcpStream, mut client: TcpStream, (what, is_lost): (Lost, &AtomicBool)) {
    let _ = client.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        let is_lost = is_lost.load(Ordering::SeqCst);
        if is_lost && what == Lost::Error {
            let _ = client.write_all(HALFWAY);
        }
        if is_lost || client.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// An address at which one server takes another's place: starts one in front of the port that is
/// `at` there when a client comes, and gives its own. Connections to the port that was there before
/// hear nothing any more, not even an end. `told`: servers are told where a client comes from, by
/// the PROXY protocol.
pub fn start_before(at: &Arc<AtomicU16>, told: bool) -> io::Result<u16> {
    let at = at.clone();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let at = at.clone();
            thread::spawn(move || {
                let to = at.load(Ordering::Relaxed);
                let (Ok(mut server), Ok(from)) =
                    (TcpStream::connect(("127.0.0.1", to)), client.peer_addr())
                else {
                    return;
                };
                let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone())
                else {
                    return;
                };
                let header = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {port}\r\n", from.port());
                if told && server.write_all(header.as_bytes()).is_err() {
                    return;
                }
                let at_too = at.clone();
                thread::spawn(move || pour_while(server_too, client_too, &at_too, to));
                pour_while(client, server, &at, to);
            });
        }
    });
    Ok(port)
}

/// Carries one direction until it ends or another server is there, when it is left open.
fn pour_while(mut from: TcpStream, mut into: TcpStream, at: &AtomicU16, to: u16) {
    let _ = into.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).unwrap_or(0);
        while at.load(Ordering::Relaxed) != to {
            thread::park();
        }
        if count == 0 || into.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = into.shutdown(Shutdown::Write);
}

fn carry(client: TcpStream, to: u16, words: &LastWords) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else {
        return;
    };
    let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    let words = words.clone();
    let back = thread::spawn(move || pour(server_too, client_too, &words));
    pour(client, server, &LastWords::default());
    let _ = back.join();
}

/// Carries one direction until it ends.
pub(crate) fn pour(mut from: TcpStream, mut into: TcpStream, words: &LastWords) {
    let _ = into.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let last = words.lock().ok().and_then(|mut words| words.take());
        let is_last = last.is_some();
        let said = [&buffer[..count], &last.unwrap_or_default()].concat();
        if into.write_all(&said).is_err() || is_last {
            break;
        }
    }
    let _ = into.shutdown(Shutdown::Write);
}
