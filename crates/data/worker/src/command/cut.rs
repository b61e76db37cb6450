//! Results that a rule limits: followed row by row, and ended with an error where there would be too many.

use crate::command::follower::Follower;
use rt::Chunk;
use wire::packet;
use wire::packet::{HEADER_LEN, MAX_PAYLOAD};

/// Follows a response with a limit of rows.
pub(crate) struct Cut {
    rows_max: u64,
    server: Packets,
    client: Packets,
    /// The beginning of a packet that does not tell yet whether it is one too many.
    held: Vec<u8>, // <= HEADER_LEN
}

/// Part of a chunk that the client is to get.
pub(crate) struct Passed {
    pub(crate) out: Chunk,
    /// The end of the response among what came.
    pub(crate) end: Option<usize>,
    /// The limit is passed, and what comes now is no longer for the client: the number of the
    /// packet that must say so.
    pub(crate) cut: Option<u8>,
}

impl Cut {
    pub(crate) fn after(rows_max: u64) -> Self {
        Self {
            rows_max,
            server: Packets::default(),
            client: Packets::default(),
            held: Vec::new(),
        }
    }

    pub(crate) fn rows_max(&self) -> u64 {
        self.rows_max
    }

    pub(crate) fn follow(
        &mut self,
        follower: &mut Follower,
        chunk: &Chunk,
    ) -> Result<Passed, wire::Malformed> {
        let before = self.held.len();
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(chunk);
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if self.server.between() && rest.len() <= HEADER_LEN && !rest.starts_with(&[0; 3]) {
                self.held = rest.to_vec();
                break;
            }
            let piece = self.server.piece(rest);
            let (passed, mut end) = follower.follow(Chunk::from(rest[..piece].to_vec()))?;
            let too_many = follower.response().rows() > self.rows_max;
            if too_many {
                // The rest is nobody's, but where it ends must be known: nothing more may come.
                at += piece;
                end = follower.follow(Chunk::from(bytes[at..].to_vec()))?.1;
            } else {
                self.client.pass(&passed);
                out.extend_from_slice(&passed);
            }
            if too_many || end.is_some() {
                let end = end.map(|used| (at + used).saturating_sub(before));
                return Ok(Passed {
                    out: Chunk::from(out),
                    end,
                    cut: too_many.then_some(self.client.next_seq),
                });
            }
            at += piece;
        }
        Ok(Passed {
            out: Chunk::from(out),
            end: None,
            cut: None,
        })
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
    /// Number of the next packet.
    next_seq: u8,
}

impl Packets {
    /// No packet has begun that is not over.
    fn between(&self) -> bool {
        self.left == 0 && self.header.is_empty() && !self.full
    }

    /// Up to the next beginning of a packet that continues none, or to the end of what came.
    fn piece(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if self.left == 0 {
                let take = (HEADER_LEN - self.header.len()).min(bytes.len() - at);
                self.header.extend_from_slice(&bytes[at..at + take]);
                at += take;
                let Some(header) = self.header.first_chunk::<HEADER_LEN>() else {
                    break;
                };
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
    use crate::command::follower::Flags;
    use crate::known::answer::Turn;
    use wire::caps::{self, Caps};
    use wire::response::Expect;
    use wire::resultset::{Column, Writer};

    const SERVER: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;

    /// A result of four rows, and where its third begins.
    fn four_rows() -> (Vec<u8>, usize) {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, 0, SERVER, 2);
        writer.columns(&[Column::integer("n")]);
        for row in [&b"1"[..], b"2"] {
            writer.text_row([Some(row)]);
        }
        let third = writer.out.len();
        for row in [&b"3"[..], b"4"] {
            writer.text_row([Some(row)]);
        }
        writer.end(0);
        (bytes, third)
    }

    #[test]
    fn a_result_that_is_cut_is_followed_to_its_end_however_it_comes() {
        let (stream, third) = four_rows();
        for client in [SERVER, caps::PROTOCOL_41] {
            for size in 1..=stream.len() {
                let flags = Flags {
                    before: 2,
                    elsewhere: 0,
                };
                let (caps, turn) = ((SERVER, client), Turn::after(0));
                let mut follower = Follower::new(Expect::Query, caps, None, turn, 0, flags);
                let mut cut = Cut::after(2);
                let (mut got, mut seq, mut ended) = (Vec::new(), None, false);
                for chunk in stream.chunks(size) {
                    assert!(!ended, "{size}");
                    let chunk = Chunk::from(chunk.to_vec());
                    if seq.is_some() {
                        ended = follower.follow(chunk).unwrap().1.is_some();
                        continue;
                    }
                    let passed = cut.follow(&mut follower, &chunk).unwrap();
                    got.extend_from_slice(&passed.out);
                    seq = passed.cut;
                    assert!(passed.end.is_none_or(|used| used == chunk.len()), "{size}");
                    ended = passed.end.is_some();
                }
                assert!(ended, "{size}");
                if client == SERVER {
                    assert_eq!((&got[..], seq), (&stream[..third], Some(5)), "{size}");
                } else {
                    // An EOF more after the definitions.
                    assert_eq!((got.len(), seq), (third + 9, Some(6)), "{size}");
                }
            }
        }
    }

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
