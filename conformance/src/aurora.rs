//! Servers that answer as instances of Amazon's Aurora do, as far as a monitor asks: each knows all
//! of them. They keep nothing.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// End of the address of an instance, behind its name: `127.1` is at 127.1.0.1.
pub const DOMAIN: &str = ".0.1";

/// A cluster of three.
pub struct Aurora {
    /// Port of each.
    pub port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    writer: u8,
    /// By the number of the instance, from 1 on.
    instances: [Instance; 3],
}

/// Instance of the cluster.
#[derive(Clone, Copy)]
pub struct Instance {
    /// Milliseconds.
    pub lag_ms: u32,
    /// Whether it answers.
    pub answers: bool,
    /// Whether the others know it.
    pub is_known: bool,
}

impl Aurora {
    /// Starts them; instance 1 is the writer.
    pub fn start() -> io::Result<Self> {
        let well = Instance {
            lag_ms: 20,
            answers: true,
            is_known: true,
        };
        let state = Arc::new(Mutex::new(State {
            writer: 1,
            instances: [well; 3],
        }));
        let mut port = 0;
        for number in 1..=3 {
            let listener = TcpListener::bind((Ipv4Addr::new(127, number, 0, 1), port))?;
            port = listener.local_addr()?.port();
            let state = state.clone();
            thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    let state = state.clone();
                    thread::spawn(move || serve(client, number, &state));
                }
            });
        }
        Ok(Self { port, state })
    }

    /// The cluster has chosen another writer.
    pub fn choose(&self, number: u8) {
        lock(&self.state).writer = number;
    }

    /// Changes what an instance says.
    pub fn change(&self, number: u8, change: impl FnOnce(&mut Instance)) {
        change(&mut lock(&self.state).instances[usize::from(number) - 1]);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// Ends with the connection, or when the instance answers no more.
fn serve(mut client: TcpStream, number: u8, state: &Mutex<State>) -> io::Result<()> {
    let answers = || lock(state).instances[usize::from(number) - 1].answers;
    if !answers() {
        return Ok(());
    }
    // Protocol 4.1, plugins, schemas; a number, and 20 bytes for a password that is not looked at.
    let mut greeting = b"\x0a8.0.28\0\x01\0\0\0abcdefgh\0\x0a\xa2\x2d\x02\0\x08\0\x15".to_vec();
    greeting.extend_from_slice(&[0; 10]);
    greeting.extend_from_slice(b"abcdefghijkl\0mysql_native_password\0");
    say(&mut client, 0, &[greeting])?;
    let (seq, _login) = hear(&mut client)?;
    let fine = || b"\0\0\0\x02\0\0\0".to_vec();
    say(&mut client, seq + 1, &[fine()])?;
    loop {
        let (_, command) = hear(&mut client)?;
        if !answers() || command.first() == Some(&1) {
            return Ok(());
        }
        let asks = command
            .windows(19)
            .any(|words| words == b"replica_host_status");
        let answer = if asks {
            known(number, &lock(state))
        } else {
            vec![fine()]
        };
        say(&mut client, 1, &answer)?;
    }
}

/// The answer: four columns, and one row an instance.
fn known(number: u8, state: &State) -> Vec<Vec<u8>> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap_or(0)], text.as_bytes()].concat();
    let end = || b"\xfe\0\0\x02\0".to_vec();
    let mut packets = vec![vec![4]];
    for column in [
        "me",
        "SERVER_ID",
        "SESSION_ID",
        "REPLICA_LAG_IN_MILLISECONDS",
    ] {
        let words = ["def", "", "", "", column, ""].map(text).concat();
        let kind = b"\x0c\x21\0\0\x01\0\0\xfd\0\0\0\0\0";
        packets.push([&words[..], kind].concat());
    }
    packets.push(end());
    for (other, instance) in (1..).zip(state.instances) {
        if !instance.is_known {
            continue;
        }
        let session = if other == state.writer {
            "MASTER_SESSION_ID"
        } else {
            "a0b1"
        };
        let lag = instance.lag_ms.to_string();
        let cells = [
            if other == number { "1" } else { "0" },
            &format!("127.{other}"),
            session,
            &lag,
        ];
        packets.push(cells.map(text).concat());
    }
    packets.push(end());
    packets
}

fn hear(client: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    client.read_exact(&mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut payload = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    client.read_exact(&mut payload)?;
    Ok((header[3], payload))
}

fn say(client: &mut TcpStream, seq: u8, packets: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (packet, at) in packets.iter().zip(0_u8..) {
        let length = u32::try_from(packet.len()).map_err(io::Error::other)?;
        bytes.extend_from_slice(&length.to_le_bytes()[..3]);
        bytes.push(seq.wrapping_add(at));
        bytes.extend_from_slice(packet);
    }
    client.write_all(&bytes)
}
