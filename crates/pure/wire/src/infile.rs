//! The file that a client sends for LOAD DATA LOCAL INFILE: packets of any size, ended by an empty
//! one.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_local_infile_request.html>

use crate::Malformed;
use crate::packet::{self, HEADER_LEN, MAX_PAYLOAD};

/// Follows the packets of a file on their way to the server.
#[derive(Debug, Clone)]
pub struct FilePackets {
    head: [u8; HEADER_LEN],
    /// Bytes of the header that have come.
    have: usize, // < HEADER_LEN
    /// Bytes of the payload that are still to come.
    left: usize,
    /// The packet was full: the next one continues it, be it empty.
    continued: bool,
    /// Number of the next packet.
    next: u8,
    /// Number that the client has for it, where that is known.
    theirs: Option<u8>,
}

impl FilePackets {
    /// Before the first of them, which has this number for the server, and `theirs` for the client;
    /// `None` with compression, where its numbers follow its frames.
    #[must_use]
    pub const fn new(first: u8, theirs: Option<u8>) -> Self {
        Self {
            head: [0; HEADER_LEN],
            have: 0,
            left: 0,
            continued: false,
            next: first,
            theirs,
        }
    }

    /// Number of the last packet.
    #[must_use]
    pub const fn last(&self) -> u8 {
        self.next.wrapping_sub(1)
    }

    /// Follows bytes of the client, cut anywhere, and numbers them for the server. Returns where
    /// the file ended in them, if it did; what follows is the client's next command.
    ///
    /// # Errors
    /// A packet has another number than the client has for it: of a client that could not read its
    /// file, this may be its next command.
    pub fn follow(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, Malformed> {
        self.walk(bytes, |_| ())
    }

    /// [`FilePackets::follow`] for who reads the file: its bytes are added to `file`.
    ///
    /// # Errors
    /// A packet has another number than the client has for it.
    pub fn read(
        &mut self,
        bytes: &mut [u8],
        file: &mut Vec<u8>,
    ) -> Result<Option<usize>, Malformed> {
        self.walk(bytes, |piece| file.extend_from_slice(piece))
    }

    fn walk(
        &mut self,
        bytes: &mut [u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<Option<usize>, Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            if self.left > 0 {
                let n = self.left.min(bytes.len() - at);
                each(&bytes[at..at + n]);
                (self.left, at) = (self.left - n, at + n);
                continue;
            }
            if self.have == HEADER_LEN - 1 {
                if self.theirs.is_some_and(|number| number != bytes[at]) {
                    return Err(Malformed::new("packets out of order"));
                }
                self.theirs = self.theirs.map(|number| number.wrapping_add(1));
                bytes[at] = self.next;
                self.next = self.next.wrapping_add(1);
            }
            self.head[self.have] = bytes[at];
            self.have += 1;
            at += 1;
            if self.have == HEADER_LEN {
                self.have = 0;
                let (len, _) = packet::header(&self.head);
                if len == 0 && !self.continued {
                    return Ok(Some(at));
                }
                self.left = len;
                self.continued = len == MAX_PAYLOAD;
            }
        }
        Ok(None)
    }
}

/// Fuzz target: however the bytes are cut, the file ends at the same place and the numbers are the
/// same.
pub fn fuzz_infile(data: &[u8]) {
    let [first, cut, bytes @ ..] = data else {
        return;
    };
    let mut whole = bytes.to_vec();
    // Numbers of the client count from those of its first packet, now and then.
    let theirs = (cut % 2 == 0).then(|| bytes.get(HEADER_LEN - 1).copied().unwrap_or_default());
    let end = FilePackets::new(*first, theirs).follow(&mut whole);
    let mut pieces = bytes.to_vec();
    let mut file = FilePackets::new(*first, theirs);
    let (mut at, mut ended) = (0, Ok(None));
    for piece in pieces.chunks_mut(usize::from(*cut) % 16 + 1) {
        match file.follow(piece) {
            Ok(None) => at += piece.len(),
            Ok(Some(used)) => {
                ended = Ok(Some(at + used));
                break;
            }
            Err(malformed) => {
                ended = Err(malformed);
                break;
            }
        }
    }
    assert_eq!(end.is_err(), ended.is_err());
    let (Ok(end), Ok(ended)) = (end, ended) else {
        return;
    };
    assert_eq!(end, ended);
    let upto = end.unwrap_or(bytes.len());
    assert_eq!(whole[..upto], pieces[..upto]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_with_an_empty_packet_wherever_it_is_cut() {
        let bytes = b"\x02\0\0\x05ab\x01\0\0\x06c\0\0\0\x07\x01\0\0\0\x0e";
        for cut in 1..bytes.len() {
            let mut file = FilePackets::new(2, Some(5));
            let (mut seen, mut end) = (Vec::new(), None);
            for piece in bytes.chunks(cut) {
                let mut piece = piece.to_vec();
                end = file
                    .follow(&mut piece)
                    .unwrap()
                    .map(|used| seen.len() + used);
                seen.extend_from_slice(&piece);
                if end.is_some() {
                    break;
                }
            }
            assert_eq!(end, Some(15));
            assert_eq!(seen[..15], *b"\x02\0\0\x02ab\x01\0\0\x03c\0\0\0\x04");
        }
    }

    #[test]
    fn an_empty_packet_after_a_full_one_is_not_the_end() {
        let mut bytes = Vec::new();
        packet::append(&mut bytes, &mut 2, &vec![b'x'; MAX_PAYLOAD]);
        let full = bytes.len();
        bytes.extend_from_slice(&[0, 0, 0, 4]);
        assert_eq!(
            FilePackets::new(0, None).follow(&mut bytes),
            Ok(Some(full + 4))
        );
    }

    #[test]
    fn a_command_is_not_taken_for_a_file() {
        let mut command = *b"\x03\0\0\0\x03DO";
        assert!(FilePackets::new(2, Some(2)).follow(&mut command).is_err());
        let mut behind = *b"\x01\0\0\x02a\x03\0\0\0\x03DO";
        assert!(FilePackets::new(2, Some(2)).follow(&mut behind).is_err());
        // Numbers begin anew behind the last one.
        let mut wrapped = *b"\x01\0\0\xffa\0\0\0\0";
        assert_eq!(
            FilePackets::new(7, Some(255)).follow(&mut wrapped),
            Ok(Some(9))
        );
        assert_eq!(wrapped, *b"\x01\0\0\x07a\0\0\0\x08");
    }
}
