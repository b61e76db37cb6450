//! Answers to a peer that asks: a greeting that lets everybody in, and texts that are known.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::texts::{self, Rows, cells};
use super::{State, lock};

const ALGORITHM: &str = "admin-cluster_mysql_servers_sync_algorithm";

/// Serves until the end of the model.
pub(super) fn serve(listener: &TcpListener, state: &Arc<Mutex<State>>, ended: &Arc<AtomicBool>) {
    for client in listener.incoming().flatten() {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let (state, ended) = (state.clone(), ended.clone());
        thread::spawn(move || converse(client, &state, &ended));
    }
}

fn converse(mut client: TcpStream, state: &Mutex<State>, ended: &AtomicBool) -> io::Result<()> {
    // Protocol 4.1, plugins, schemas; a number, and 20 bytes for a password that is not looked at.
    let mut greeting = b"\x0a8.0.11\0\x01\0\0\0abcdefgh\0\x0a\xa2\x2d\x02\0\x08\0\x15".to_vec();
    greeting.extend_from_slice(&[0; 10]);
    greeting.extend_from_slice(b"abcdefghijkl\0mysql_native_password\0");
    say(&mut client, 0, &[greeting])?;
    let (seq, _login) = hear(&mut client)?;
    say(&mut client, seq.wrapping_add(1), &[fine()])?;
    loop {
        let (_, command) = hear(&mut client)?;
        if ended.load(Ordering::Relaxed) || command.first() == Some(&1) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(command.get(1..).unwrap_or_default()).into_owned();
        let packets = match answer(&text, &lock(state)) {
            Answer::Fine => vec![fine()],
            Answer::Rows(columns, rows) => result(columns, &rows),
            Answer::Strange => vec![
                [
                    b"\xff\x15\x04#28000".as_slice(),
                    b"ProxySQL Admin Error: near \"PROXY_SELECT\": syntax error",
                ]
                .concat(),
            ],
        };
        say(&mut client, 1, &packets)?;
    }
}

enum Answer {
    Fine,
    Rows(usize, Rows),
    Strange,
}

fn answer(text: &str, state: &State) -> Answer {
    let one = |value: &str| Answer::Rows(1, cells(&[&[value]]));
    if text.starts_with("PROXYSQL CLUSTER_NODE_UUID ") {
        return Answer::Fine;
    }
    match text {
        "SELECT @@version" => one(state.version),
        "SELECT GLOBAL_CHECKSUM()" => one(&state.global().to_string()),
        "SELECT * FROM runtime_checksums_values ORDER BY name" => sums(state),
        "SELECT * FROM stats_mysql_global ORDER BY Variable_Name" => {
            Answer::Rows(2, cells(&[&["ProxySQL_Uptime", "77"], &["Questions", "7"]]))
        }
        "SELECT variable_name, variable_value FROM runtime_global_variables ORDER BY variable_name" =>
        {
            let all = ["admin_variables", "mysql_variables"].map(|name| state.modules.get(name));
            let rows = all
                .into_iter()
                .flatten()
                .flat_map(|module| module.results.concat());
            Answer::Rows(2, rows.collect())
        }
        _ if text.ends_with("= 'admin-cluster_mysql_servers_sync_algorithm'") => {
            let all = state.modules.get("admin_variables");
            let rows = all.into_iter().flat_map(|module| module.results.concat());
            let is_it = |row: &Vec<_>| texts::line(row).starts_with(ALGORITHM);
            let value = |row: Vec<_>| row.into_iter().skip(1).collect();
            Answer::Rows(1, rows.filter(is_it).map(value).collect())
        }
        // A variable that nobody knows is no row.
        _ if text.starts_with("SELECT @@version, ") => Answer::Rows(1, Rows::new()),
        _ => of_module(text, state),
    }
}

fn sums(state: &State) -> Answer {
    let rows = state.modules.iter().map(|(name, module)| {
        let (version, epoch) = (module.version.to_string(), module.epoch.to_string());
        cells(&[&[name, &version, &epoch, &module.checksum]]).remove(0)
    });
    Answer::Rows(4, rows.collect())
}

fn of_module(text: &str, state: &State) -> Answer {
    let about = |head: &str| {
        text.starts_with(&format!(
            "SELECT * FROM runtime_global_variables WHERE variable_name LIKE '{head}-%'"
        ))
    };
    for (name, module) in &state.modules {
        let texts = texts::texts(state.version, name);
        for (nth, (known, columns)) in texts.iter().enumerate() {
            let is_it = known == text
                || *name == "mysql_variables" && about("mysql")
                || *name == "admin_variables" && about("admin");
            if !is_it {
                continue;
            }
            let mut rows = module.results.get(nth).cloned().unwrap_or_default();
            if state.lies {
                rows.pop();
            }
            return Answer::Rows(*columns, rows);
        }
    }
    Answer::Strange
}

fn fine() -> Vec<u8> {
    b"\0\0\0\x02\0\0\0".to_vec()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    match u8::try_from(length) {
        Ok(short @ 0..=250) => [&[short], bytes].concat(),
        _ => [&[0xFC], &length.to_le_bytes()[..], bytes].concat(),
    }
}

fn result(columns: usize, rows: &Rows) -> Vec<Vec<u8>> {
    let end = || b"\xfe\0\0\x02\0".to_vec();
    let mut packets = vec![vec![u8::try_from(columns).unwrap_or(0)]];
    for _ in 0..columns {
        let words = ["def", "", "", "", "column", ""].map(|word| sized(word.as_bytes()));
        let kind = b"\x0c\x21\0\0\x01\0\0\xfd\0\0\0\0\0";
        packets.push([&words.concat()[..], kind].concat());
    }
    packets.push(end());
    for row in rows {
        let cell = |cell: &Option<Vec<u8>>| match cell {
            Some(bytes) => sized(bytes),
            None => vec![0xFB],
        };
        packets.push(row.iter().flat_map(cell).collect());
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
    let (mut bytes, mut number) = (Vec::new(), seq);
    for packet in packets {
        let length = u32::try_from(packet.len()).map_err(io::Error::other)?;
        bytes.extend_from_slice(&length.to_le_bytes()[..3]);
        bytes.push(number);
        bytes.extend_from_slice(packet);
        number = number.wrapping_add(1);
    }
    client.write_all(&bytes)
}
