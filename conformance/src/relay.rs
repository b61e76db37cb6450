//! A relay that knows nothing: what the harness is tried on, since every difference through it is the harness's own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// Starts one in front of the port and gives its own; it serves until the process ends.
pub fn start(to: u16) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || carry(client, to));
        }
    });
    Ok(port)
}

fn carry(client: TcpStream, to: u16) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
    let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else { return };
    let back = thread::spawn(move || pour(server_too, client_too));
    pour(client, server);
    let _ = back.join();
}

fn pour(mut from: TcpStream, mut into: TcpStream) {
    let _ = into.set_nodelay(true);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if into.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = into.shutdown(Shutdown::Write);
}
