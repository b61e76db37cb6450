//! A relay that knows nothing: what the harness is tried on, since every difference through it is the harness's own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What is in it is said behind the server's next bytes, in one piece with them, and is the last of that connection.
pub type LastWords = Arc<Mutex<Option<Vec<u8>>>>;

/// Starts one in front of the port and gives its own; it serves until the process ends.
pub fn start(to: u16) -> io::Result<u16> {
    start_with(to, &LastWords::default())
}

/// The same, for a server that says more than it was asked.
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

fn carry(client: TcpStream, to: u16, words: &LastWords) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
    let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else { return };
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
