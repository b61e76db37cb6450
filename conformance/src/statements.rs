//! Prepared statements by hand: the commands, and what comes back, packet by packet.

use std::io;

use crate::by_hand::{self, Raw};

fn said(error: io::Error) -> String {
    error.to_string()
}

/// Reads an answer up to this many EOFs, or an error. The packets before them.
pub fn up_to_eof(client: &mut Raw, eofs: usize) -> Result<Vec<Vec<u8>>, String> {
    let (mut all, mut seen) = (Vec::new(), 0);
    while seen < eofs {
        let packet = client.packet().map_err(said)?;
        match packet.first() {
            Some(0xfe) if packet.len() < 9 => seen += 1,
            Some(0xff) => return Err(by_hand::complaint(&packet).to_string()),
            _ => all.push(packet),
        }
    }
    Ok(all)
}

/// COM_STMT_PREPARE; the statement's id, when what it says of parameters and columns has been read.
pub fn prepare(client: &mut Raw, text: impl AsRef<[u8]>) -> Result<u32, String> {
    client
        .command(&[b"\x16", text.as_ref()].concat())
        .map_err(said)?;
    let ok = client.packet().map_err(said)?;
    let Some([0, a, b, c, d, columns @ .., _, _, _]) = ok.first_chunk::<12>() else {
        return Err(by_hand::complaint(&ok).to_string());
    };
    // Each list has an end.
    let lists = columns.chunks(2).filter(|count| **count != [0, 0]).count();
    up_to_eof(client, lists)?;
    Ok(u32::from_le_bytes([*a, *b, *c, *d]))
}

/// COM_STMT_EXECUTE without parameters; its rows, if it opens no cursor.
pub fn execute(client: &mut Raw, id: u32, cursor: bool) -> Result<(), String> {
    client
        .command(
            &[
                &b"\x17"[..],
                &id.to_le_bytes(),
                &[u8::from(cursor), 1, 0, 0, 0],
            ]
            .concat(),
        )
        .map_err(said)?;
    up_to_eof(client, if cursor { 1 } else { 2 }).map(drop)
}

/// COM_STMT_EXECUTE without parameters; its rows as they came.
pub fn rows_of(client: &mut Raw, id: u32) -> Result<String, String> {
    client
        .command(&[&b"\x17"[..], &id.to_le_bytes(), &[0, 1, 0, 0, 0]].concat())
        .map_err(said)?;
    let packets = up_to_eof(client, 2)?;
    // The number of columns, and a definition for each.
    let columns = packets
        .first()
        .and_then(|packet| packet.first())
        .map_or(0, |columns| usize::from(*columns));
    Ok(packets
        .get(1 + columns..)
        .unwrap_or_default()
        .iter()
        .map(|row| row.escape_ascii().to_string())
        .collect::<Vec<_>>()
        .join(" / "))
}

/// COM_STMT_FETCH of this many rows; how many came.
pub fn fetch(client: &mut Raw, id: u32, rows: u32) -> Result<usize, String> {
    client
        .command(&[&b"\x1c"[..], &id.to_le_bytes(), &rows.to_le_bytes()].concat())
        .map_err(said)?;
    up_to_eof(client, 1).map(|rows| rows.len())
}
