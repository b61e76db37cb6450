//! A reader for operators: files of either format, as lines of JSON.

use crate::json;
use bridge::Event;
use std::io::{self, Read, Write};

/// Bytes that are read at once.
const PIECE_LEN: usize = 256 << 10;

/// Why a file was not shown to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unshown {
    /// Nobody reads any more: `| head` has what it wanted.
    Unwanted,
    /// Because of this, in an operator's words.
    Because(String),
}

impl From<String> for Unshown {
    fn from(words: String) -> Self {
        Self::Because(words)
    }
}

/// The eighth byte of a record's length is 0, and no byte of a text is.
fn is_lines(file: &[u8]) -> bool {
    file.first() == Some(&b'{') && file.get(7) != Some(&0)
}

fn unwritten(error: io::Error) -> Unshown {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Unshown::Unwanted,
        _ => Unshown::Because(format!("cannot be shown: {error}")),
    }
}

/// Writes the statements of a file, ours or ProxySQL's, as lines of JSON. A file of lines is given
/// as it is.
///
/// # Errors
/// It cannot be read or written, or it ends in the middle of a record, or is something else. What
/// came before has been written.
pub fn show(mut file: impl Read, mut out: impl Write) -> Result<(), Unshown> {
    let unread = |error: io::Error| format!("cannot be read: {error}");
    let (mut bytes, mut lines) = (Vec::new(), Vec::new());
    let (mut at, mut records) = (0_u64, 0_u64);
    loop {
        let is_end = (&mut file)
            .take(PIECE_LEN as u64)
            .read_to_end(&mut bytes)
            .map_err(unread)?
            == 0;
        if at == 0 && is_lines(&bytes) {
            out.write_all(&bytes).map_err(unwritten)?;
            return io::copy(&mut file, &mut out)
                .and_then(|_| out.flush())
                .map_err(unwritten);
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
            return Err(format!("record {} at byte {at} is none: {malformed}", records + 1).into());
        }
        if is_end {
            out.flush().map_err(unwritten)?;
            return if bytes.is_empty() {
                Ok(())
            } else {
                Err(format!("record {} at byte {at} is cut off", records + 1).into())
            };
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

    fn shown(bytes: &[u8]) -> (Result<(), Unshown>, usize) {
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
        assert_eq!(
            shown(&bytes[..bytes.len() - 1]),
            (Err(format!("record 5 at byte {last} is cut off").into()), 4)
        );
        assert_eq!(shown(b""), (Ok(()), 0));
    }

    #[test]
    fn lines_are_given_as_they_are_and_nonsense_is_told() {
        assert_eq!(shown(b"{\"hostgroup_id\":1}\n{}\n"), (Ok(()), 2));
        let (told, lines) = shown(b"\x7fELF and so on and on and on");
        let Err(Unshown::Because(words)) = told else {
            panic!("{told:?}")
        };
        assert_eq!(
            (words.starts_with("record 1 at byte 0 is none"), lines),
            (true, 0)
        );
    }

    /// 0x7b and 0x22 are `{` and `"`.
    #[test]
    fn a_record_whose_length_looks_like_the_beginning_of_a_line_is_a_record() {
        for len in [0x227b, 0x2_227b] {
            let short = record(1).len() - 8;
            let bytes = record(len - short + 1);
            assert!(bytes.starts_with(b"{\""), "{len:x}");
            assert_eq!(shown(&bytes), (Ok(()), 1), "{len:x}");
        }
        assert_eq!(shown(b"{}\n"), (Ok(()), 1), "a file of lines may be short");
        assert_eq!(shown(b"{ \"event\": 1 }\n"), (Ok(()), 1));
    }

    #[test]
    fn nobody_who_reads_is_no_reason_for_words() {
        /// Whoever reads it goes after the first line.
        struct Head;

        impl Write for Head {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        for bytes in [record(1), b"{}\n".to_vec()] {
            assert_eq!(show(&*bytes, Head), Err(Unshown::Unwanted));
        }
    }
}
