//! Where packets end in what a server sends, for whoever passes it on without looking at more than
//! their headers and first bytes.

use crate::ok::ERR_HEADER;
use crate::packet::{HEADER_LEN, MAX_PAYLOAD, header};

/// A server's stream of packets, cut anywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Downstream {
    head: [u8; HEADER_LEN],
    /// Bytes of a header that have come.
    have: usize, // < HEADER_LEN
    /// Bytes of the packet that are still to come.
    left: usize,
    /// The first byte of the last packet's payload is still to come.
    begins: bool,
    /// That byte; none of a payload of more than one packet, or without any byte.
    first: Option<u8>,
    /// The last packet is continued by the next.
    full: bool,
    /// Number of the last packet.
    seq: u8,
}

impl Downstream {
    /// Follows these bytes.
    #[inline]
    pub fn follow(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let Some(&next) = rest.first() else { return };
            if self.left > 0 {
                if std::mem::take(&mut self.begins) {
                    self.first = Some(next);
                }
                let now = self.left.min(rest.len());
                self.left -= now;
                rest = &rest[now..];
                continue;
            }
            match rest
                .split_first_chunk::<HEADER_LEN>()
                .filter(|_| self.have == 0)
            {
                Some((head, behind)) => {
                    self.begin(header(head));
                    rest = behind;
                }
                None => {
                    self.head[self.have] = next;
                    self.have += 1;
                    rest = &rest[1..];
                    if self.have == HEADER_LEN {
                        self.have = 0;
                        self.begin(header(&self.head));
                    }
                }
            }
        }
    }

    fn begin(&mut self, (len, seq): (usize, u8)) {
        self.seq = seq;
        let continues = std::mem::replace(&mut self.full, len == MAX_PAYLOAD);
        self.begins = len > 0 && !continues && !self.full;
        self.first = None;
        self.left = len;
    }

    /// Whether what has come ends where a packet does.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        self.left == 0 && self.have == 0 && !self.full
    }

    /// The number behind that of the last packet: a server that has asked for a file and does not
    /// compress takes its first packet with no other.
    #[must_use]
    pub const fn next_number(&self) -> u8 {
        self.seq.wrapping_add(1)
    }

    /// Whether what has come may be whole answers: the last packet may be an OK, EOF or ERR. Some
    /// rows look like these, too.
    #[must_use]
    pub const fn may_have_ended(&self) -> bool {
        self.is_between() && matches!(self.first, Some(0 | 0xFE | ERR_HEADER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet;

    /// Returns what is known behind these bytes, which come in pieces of so many.
    fn behind(bytes: &[u8], cut: usize) -> (bool, bool) {
        let mut downstream = Downstream::default();
        bytes.chunks(cut).for_each(|piece| downstream.follow(piece));
        (downstream.is_between(), downstream.may_have_ended())
    }

    #[test]
    fn an_answer_ends_with_a_packet_and_never_within_one() {
        let (mut bytes, mut seq, mut ends) = (Vec::new(), 1, Vec::new());
        for (payload, ended) in [
            (&b"\x02"[..], false),
            (b"\x03def", false),
            (b"\x03one", false),
            (b"\xfe\0\0\x02\0", true),
        ] {
            packet::append(&mut bytes, &mut seq, payload);
            ends.push((bytes.len(), ended));
        }
        for len in 1..=bytes.len() {
            let expected = ends
                .iter()
                .find(|(end, _)| *end == len)
                .map_or((false, false), |(_, ended)| (true, *ended));
            for cut in [1, 3, 4, 5, len] {
                assert_eq!(behind(&bytes[..len], cut), expected, "{len} by {cut}");
            }
        }
    }

    #[test]
    fn what_has_come_of_nothing_is_between() {
        assert_eq!(behind(b"", 1), (true, false));
        for end in [&b"\0\0\0\x02\0\0\0"[..], b"\xff\x7a\x04#42S02no"] {
            let mut bytes = Vec::new();
            packet::append(&mut bytes, &mut 1, end);
            assert_eq!(behind(&bytes, 2), (true, true));
        }
    }

    #[test]
    fn a_row_of_several_packets_is_no_end_whatever_it_begins_with() {
        for (len, between) in [(MAX_PAYLOAD, true), (MAX_PAYLOAD + 7, true)] {
            let mut bytes = Vec::new();
            packet::append(&mut bytes, &mut 1, &vec![0; len]);
            assert_eq!(behind(&bytes, 1 << 14), (between, false));
            // Its first packet is not all of it.
            assert_eq!(
                behind(&bytes[..HEADER_LEN + MAX_PAYLOAD], 1 << 14),
                (false, false)
            );
        }
    }

    #[test]
    fn what_is_asked_for_has_the_number_behind_the_question_wherever_it_is_cut() {
        let (mut bytes, mut seq) = (Vec::new(), 254);
        for (payload, next) in [
            (&b"\x01"[..], 255),
            (b"\xfbthree.txt", 0),
            (b"", 1),
            (&vec![0; MAX_PAYLOAD][..], 3),
        ] {
            packet::append(&mut bytes, &mut seq, payload);
            for cut in [1, 3, 4, 5, bytes.len()] {
                let mut downstream = Downstream::default();
                bytes.chunks(cut).for_each(|piece| downstream.follow(piece));
                assert_eq!(downstream.next_number(), next, "{cut}");
            }
        }
    }
}
