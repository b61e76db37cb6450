//! Results that a rule limits: followed row by row, and ended with an error where there would be too many.

use crate::relay::Follower;
use rt::Chunk;
use wire::packet::{self, HEADER_LEN, MAX_PAYLOAD};

/// Follows a response with a limit of rows.
pub(crate) struct Cut {
    rows_max: u64,
    server: Packets,
    client: Packets,
}

/// What the client is to get of a chunk.
pub(crate) struct Passed {
    pub(crate) out: Chunk,
    /// The end of the response among what came.
    pub(crate) end: Option<usize>,
    /// The limit is passed, and what comes now is no longer for the client: the number of the packet that must say so.
    pub(crate) cut: Option<u8>,
}

impl Cut {
    pub(crate) fn after(rows_max: u64) -> Self {
        Self { rows_max, server: Packets::default(), client: Packets::default() }
    }

    pub(crate) fn rows_max(&self) -> u64 {
        self.rows_max
    }

    pub(crate) fn follow(&mut self, follower: &mut Follower, chunk: &Chunk) -> Result<Passed, wire::Malformed> {
        let mut out = Vec::with_capacity(chunk.len());
        let mut at = 0;
        while at < chunk.len() {
            let piece = self.server.piece(&chunk[at..]);
            let (passed, end) = follower.follow(Chunk::from(chunk[at..at + piece].to_vec()))?;
            if follower.response().rows() > self.rows_max {
                return Ok(Passed { out: Chunk::from(out), end: end.map(|used| at + used), cut: Some(self.client.next_seq) });
            }
            self.client.pass(&passed);
            out.extend_from_slice(&passed);
            if let Some(used) = end {
                return Ok(Passed { out: Chunk::from(out), end: Some(at + used), cut: None });
            }
            at += piece;
        }
        Ok(Passed { out: Chunk::from(out), end: None, cut: None })
    }
}

/// Where packets begin in a stream of bytes.
#[derive(Default)]
struct Packets {
    /// Of a header that has been cut.
    header: Vec<u8>,
    /// Bytes of the packet that are still to come.
    left: usize,
    /// The packet was full: the next one continues it.
    full: bool,
    /// What the next packet will be numbered.
    next_seq: u8,
}

impl Packets {
    /// Up to the next beginning of a packet that continues none, or to the end of what came.
    fn piece(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.left == 0 {
                let take = (HEADER_LEN - self.header.len()).min(bytes.len() - at);
                self.header.extend_from_slice(&bytes[at..at + take]);
                at += take;
                let Some(header) = self.header.first_chunk::<HEADER_LEN>() else { break };
                let (len, seq) = packet::header(header);
                self.header.clear();
                self.next_seq = seq.wrapping_add(1);
                self.full = len == MAX_PAYLOAD;
                self.left = len;
            }
            let take = self.left.min(bytes.len() - at);
            self.left -= take;
            at += take;
            if self.left == 0 && !self.full {
                break;
            }
        }
        at
    }

    fn pass(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            at += self.piece(&bytes[at..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_packets_however_the_bytes_come() {
        let mut stream = Vec::new();
        let mut seq = 0;
        for len in [3, 1, 200] {
            packet::append(&mut stream, &mut seq, &vec![7; len]);
        }
        let mut packets = Packets::default();
        assert_eq!((packets.piece(&stream), packets.next_seq), (7, 1));
        assert_eq!((packets.piece(&stream[7..9]), packets.next_seq), (2, 1));
        assert_eq!((packets.piece(&stream[9..]), packets.next_seq), (3, 2));
        packets.pass(&stream[12..]);
        assert_eq!((packets.left, packets.next_seq), (0, 3));
    }
}
