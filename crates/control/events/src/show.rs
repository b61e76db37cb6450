//! A reader for operators: files of either format, as lines of JSON.

use crate::json;
use bridge::Event;
use std::io::{self, Read, Write};

/// Bytes that are read at once.
const PIECE_LEN: usize = 256 << 10;

/// Writes the statements of a file, ours or ProxySQL's, as lines of JSON. A file of lines is given as it is.
///
/// # Errors
/// In an operator's words: it cannot be read or written, or it ends in the middle of a record, or is something else. What came before
/// has been written.
pub fn show(mut file: impl Read, mut out: impl Write) -> Result<(), String> {
    let unread = |error: io::Error| format!("cannot be read: {error}");
    let unwritten = |error: io::Error| format!("cannot be shown: {error}");
    let (mut bytes, mut lines) = (Vec::new(), Vec::new());
    let (mut at, mut records) = (0_u64, 0_u64);
    loop {
        let is_end = (&mut file).take(PIECE_LEN as u64).read_to_end(&mut bytes).map_err(unread)? == 0;
        if at == 0 && bytes.starts_with(b"{\"") {
            out.write_all(&bytes).map_err(unwritten)?;
            return io::copy(&mut file, &mut out).and_then(|_| out.flush()).map_err(unwritten);
        }
        let mut begin = 0;
        let malformed = loop {
            match Event::read(&bytes[begin..]) {
                Ok(Some((event, len))) => {
                    json::append(&event, &mut lines);
                    (begin, records) = (begin + len, records + 1);
                }
                Ok(None) => break None,
                Err(malformed) => break Some(malformed),
            }
        };
        out.write_all(&lines).map_err(unwritten)?;
        lines.clear();
        bytes.drain(..begin);
        at += begin as u64;
        if let Some(malformed) = malformed {
            return Err(format!("record {} at byte {at} is none: {malformed}", records + 1));
        }
        if is_end {
            out.flush().map_err(unwritten)?;
            return if bytes.is_empty() { Ok(()) } else { Err(format!("record {} at byte {at} is cut off", records + 1)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement that takes `n` bytes more than the shortest.
    fn record(n: usize) -> Vec<u8> {
        let mut body = vec![0, 5];
        body.extend(b"\x01u\x01s\x03c:1");
        body.extend([0xfe, 255, 255, 255, 255, 255, 255, 255, 255]);
        body.extend([1, 2, 0, 0, 0, 0]);
        body.push(0xfd);
        body.extend(&(n as u32).to_le_bytes()[..3]);
        body.extend(vec![b'x'; n]);
        let mut record = (body.len() as u64).to_le_bytes().to_vec();
        record.extend(body);
        record
    }

    fn shown(bytes: &[u8]) -> (Result<(), String>, usize) {
        let mut out = Vec::new();
        let result = show(bytes, &mut out);
        (result, out.iter().filter(|byte| **byte == b'\n').count())
    }

    #[test]
    fn records_across_pieces_are_whole_and_a_file_that_is_cut_off_is_told() {
        let mut bytes = Vec::new();
        for n in [1, PIECE_LEN - 40, 3, 2 * PIECE_LEN, 5] {
            bytes.extend(record(n));
        }
        assert_eq!(shown(&bytes), (Ok(()), 5));
        let last = bytes.len() - record(5).len();
        assert_eq!(shown(&bytes[..bytes.len() - 1]), (Err(format!("record 5 at byte {last} is cut off")), 4));
        assert_eq!(shown(b""), (Ok(()), 0));
    }

    #[test]
    fn lines_are_given_as_they_are_and_nonsense_is_told() {
        assert_eq!(shown(b"{\"hostgroup_id\":1}\n{}\n"), (Ok(()), 2));
        let (told, lines) = shown(b"\x7fELF and so on and on and on");
        assert_eq!((told.unwrap_err().starts_with("record 1 at byte 0 is none"), lines), (true, 0));
    }
}
