//! How bytes are cut into packets.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_packets.html> Four bytes
//! of header: length of the payload (three, little-endian) and a sequence number that goes up by
//! one with every packet of an exchange and wraps. A payload of exactly 2^24-1 bytes is not the
//! last: one more packet follows, if only an empty one.

/// Length of a packet header.
pub const HEADER_LEN: usize = 4;
/// The largest payload of one packet; a packet that is this long is continued by the next one.
pub const MAX_PAYLOAD: usize = 0xFF_FFFF;

/// Length of the payload and sequence number.
#[inline]
pub const fn header(h: &[u8; HEADER_LEN]) -> (usize, u8) {
    let [a, b, c, seq] = *h;
    (u32::from_le_bytes([a, b, c, 0]) as usize, seq)
}

/// The header of a packet with `len` bytes of payload; `len` is at most [`MAX_PAYLOAD`].
#[inline]
pub const fn make_header(len: usize, seq: u8) -> [u8; HEADER_LEN] {
    debug_assert!(len <= MAX_PAYLOAD);
    let [a, b, c, _] = (len as u32).to_le_bytes();
    [a, b, c, seq]
}

/// Sequence number of the last packet of a payload of `len` bytes whose first has number 0.
#[inline]
pub const fn last_seq(len: usize) -> u8 {
    (len / MAX_PAYLOAD) as u8
}

/// Number of the last packet of a command of so many bytes, its headers included.
#[inline]
pub const fn last_seq_of_framed(framed: usize) -> u8 {
    (framed.saturating_sub(HEADER_LEN) / (MAX_PAYLOAD + HEADER_LEN)) as u8
}

/// Payload length and sequence number of the first packet of `bytes`, if all of it is there.
#[inline]
pub fn whole(bytes: &[u8]) -> Option<(usize, u8)> {
    let (h, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let (len, seq) = header(h);
    (rest.len() >= len).then_some((len, seq))
}

/// Length of the first command of `bytes`, which are whole commands: up to the next packet with the
/// number 0, which is another's.
pub fn command_len(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(head) = bytes
        .get(end..)
        .and_then(|rest| rest.first_chunk::<HEADER_LEN>())
    {
        let (len, seq) = header(head);
        if seq == 0 && end > 0 {
            return end;
        }
        end += HEADER_LEN + len;
    }
    bytes.len()
}

/// Looks at the numbers of packets in a stream that is cut anywhere.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    head: [u8; HEADER_LEN],
    /// Bytes of the header that have come.
    have: usize, // < HEADER_LEN
    /// Bytes of the payload that are still to come.
    left: usize,
}

impl Numbers {
    /// Follows these bytes and shows each packet's number, to be changed if it has to be.
    pub fn each(&mut self, bytes: &mut [u8], mut see: impl FnMut(&mut u8)) {
        let mut at = 0;
        while at < bytes.len() {
            if self.left > 0 {
                let n = self.left.min(bytes.len() - at);
                (self.left, at) = (self.left - n, at + n);
                continue;
            }
            if self.have == HEADER_LEN - 1 {
                see(&mut bytes[at]);
            }
            self.head[self.have] = bytes[at];
            self.have += 1;
            at += 1;
            if self.have == HEADER_LEN {
                self.have = 0;
                self.left = header(&self.head).0;
            }
        }
    }
}

/// Frames a payload of any size: splits it at 16 MiB - 1 and adds the empty tail packet when it
/// divides exactly. `seq` is the number of the first packet; afterwards it is the number of the
/// next one.
pub fn append(out: &mut Vec<u8>, seq: &mut u8, payload: &[u8]) {
    out.reserve(payload.len() + HEADER_LEN * (payload.len() / MAX_PAYLOAD + 1));
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(MAX_PAYLOAD));
        out.extend_from_slice(&make_header(now.len(), *seq));
        out.extend_from_slice(now);
        *seq = seq.wrapping_add(1);
        rest = later;
        if now.len() < MAX_PAYLOAD {
            return;
        }
    }
}

/// Frames a payload which `fill` writes straight into `out`, so that small packets need no second
/// buffer.
pub fn append_with(out: &mut Vec<u8>, seq: &mut u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    fill(out);
    let len = out.len() - at - HEADER_LEN;
    if len < MAX_PAYLOAD {
        out[at..at + HEADER_LEN].copy_from_slice(&make_header(len, *seq));
        *seq = seq.wrapping_add(1);
    } else {
        // Rare: headers have to be put between, so the payload moves.
        let payload = out.split_off(at + HEADER_LEN);
        out.truncate(at);
        append(out, seq, &payload);
    }
}

/// Joins the payloads of the packets at the head of `bytes` that make up one message. `None` while
/// some of it is missing. Returns the payload, how many bytes it took from `bytes`, and the
/// sequence number of its last packet.
pub fn join(bytes: &[u8]) -> Option<(std::borrow::Cow<'_, [u8]>, usize, u8)> {
    let (len, seq) = whole(bytes)?;
    if len < MAX_PAYLOAD {
        return Some((
            bytes[HEADER_LEN..HEADER_LEN + len].into(),
            HEADER_LEN + len,
            seq,
        ));
    }
    // Look before copying: all packets must be there.
    let mut end = 0;
    let last = loop {
        let (len, seq) = whole(&bytes[end..])?;
        end += HEADER_LEN + len;
        if len < MAX_PAYLOAD {
            break seq;
        }
    };
    let mut payload = Vec::with_capacity(end);
    let mut at = 0;
    while at < end {
        let (len, _) = whole(&bytes[at..]).expect("looked at above");
        payload.extend_from_slice(&bytes[at + HEADER_LEN..at + HEADER_LEN + len]);
        at += HEADER_LEN + len;
    }
    Some((payload.into(), end, last))
}

/// Fuzz target: whatever the bytes, joining packets neither panics nor reads beyond them.
pub fn fuzz_packet(data: &[u8]) {
    if let Some((payload, used, _)) = join(data) {
        assert!(used <= data.len() && payload.len() < used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packet_of_a_payload_has_the_number_of_full_ones_before_it() {
        for len in [
            0,
            1,
            MAX_PAYLOAD - 1,
            MAX_PAYLOAD,
            MAX_PAYLOAD + 1,
            2 * MAX_PAYLOAD,
        ] {
            let mut next = 0;
            append(&mut Vec::new(), &mut next, &vec![0; len]);
            assert_eq!(last_seq(len), next - 1, "{len}");
        }
    }

    #[test]
    fn headers_are_little_endian() {
        assert_eq!(header(&[1, 2, 3, 4]), (0x03_0201, 4));
        assert_eq!(make_header(0x03_0201, 4), [1, 2, 3, 4]);
    }

    #[test]
    fn a_packet_is_whole_when_its_last_byte_is_there() {
        assert_eq!(whole(&[2, 0, 0, 9, 1]), None);
        assert_eq!(whole(&[2, 0, 0]), None);
        assert_eq!(whole(&[2, 0, 0, 9, 1, 2, 3]), Some((2, 9)));
        assert_eq!(whole(&[0, 0, 0, 0]), Some((0, 0)));
    }

    #[test]
    fn numbers_are_found_wherever_the_packets_are_cut() {
        let bytes = b"\x02\0\0\x05ab\0\0\0\x06\x01\0\0\x07c";
        for cut in 1..=bytes.len() {
            let (mut numbers, mut seen, mut changed) = (Numbers::default(), Vec::new(), Vec::new());
            for piece in bytes.chunks(cut) {
                let mut piece = piece.to_vec();
                numbers.each(&mut piece, |seq| {
                    seen.push(*seq);
                    *seq -= 5;
                });
                changed.extend_from_slice(&piece);
            }
            assert_eq!(seen, [5, 6, 7]);
            assert_eq!(changed, b"\x02\0\0\0ab\0\0\0\x01\x01\0\0\x02c");
        }
    }

    #[test]
    fn a_command_ends_where_the_next_begins() {
        let mut bytes = Vec::new();
        append(&mut bytes, &mut 0, b"close one");
        let first = bytes.len();
        append(&mut bytes, &mut 0, &vec![1; MAX_PAYLOAD + 5]);
        let second = bytes.len() - first;
        append(&mut bytes, &mut 0, b"");
        assert_eq!(command_len(&bytes), first);
        assert_eq!(command_len(&bytes[first..]), second);
        assert_eq!(command_len(&bytes[first + second..]), HEADER_LEN);
        assert_eq!((command_len(&[]), command_len(&[9, 9])), (0, 2));
    }

    #[test]
    fn the_last_packet_of_a_framed_command_is_known() {
        for len in [
            1,
            MAX_PAYLOAD - 1,
            MAX_PAYLOAD,
            MAX_PAYLOAD + 1,
            2 * MAX_PAYLOAD,
        ] {
            let (mut framed, mut next) = (Vec::new(), 0);
            append(&mut framed, &mut next, &vec![0; len]);
            assert_eq!(last_seq_of_framed(framed.len()), next - 1, "{len}");
        }
    }

    #[test]
    fn payloads_are_split_at_16_mib_and_an_exact_multiple_gets_an_empty_tail() {
        for (len, packets) in [
            (0, 1),
            (1, 1),
            (MAX_PAYLOAD - 1, 1),
            (MAX_PAYLOAD, 2),
            (MAX_PAYLOAD + 1, 2),
            (2 * MAX_PAYLOAD, 3),
        ] {
            let payload = vec![7; len];
            let (mut out, mut seq) = (Vec::new(), 254u8);
            append(&mut out, &mut seq, &payload);
            assert_eq!(out.len(), len + packets * HEADER_LEN, "{len}");
            assert_eq!(seq, 254u8.wrapping_add(packets as u8), "{len}");
            let (joined, used, last) = join(&out).expect("whole");
            assert_eq!(
                (joined.len(), used, last),
                (len, out.len(), seq.wrapping_sub(1))
            );
            assert!(join(&out[..out.len() - 1]).is_none());

            let (mut again, mut seq) = (Vec::new(), 254u8);
            append_with(&mut again, &mut seq, |o| o.extend_from_slice(&payload));
            assert!(again == out, "{len}");
        }
    }
}
