//! Where commands begin in what a client sends, for whoever passes it on without looking at more than the headers of packets.

use crate::command::COM_CHANGE_USER;
use crate::packet::{HEADER_LEN, MAX_PAYLOAD, header};

/// A client's stream of packets, cut anywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upstream {
    /// Bytes of the packet that are still to come.
    left: usize,
    /// Number of the last packet, and whether it had a payload, and whether the next one continues it.
    seq: u8,
    filled: bool,
    full: bool,
}

/// What may be passed on of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// So many of them. The rest is the beginning of a packet of which too little has come (at most [`HEADER_LEN`] bytes, to be shown again
    /// with what follows), or a command that is not to be passed on.
    pub len: usize,
    /// Such a command begins there. Nothing of it was followed.
    pub stopped: bool,
}

impl Upstream {
    /// Follows these bytes; `see` hears where a command begins, and its byte, and says whether it is to be passed on.
    #[inline]
    pub fn follow(&mut self, bytes: &[u8], mut see: impl FnMut(usize, u8) -> bool) -> Passed {
        let mut at = 0;
        loop {
            let now = self.left.min(bytes.len() - at);
            self.left -= now;
            at += now;
            let rest = &bytes[at..];
            let Some(head) = rest.first_chunk::<HEADER_LEN>() else { return Passed { len: at, stopped: false } };
            let (len, seq) = header(head);
            // A file of LOAD DATA LOCAL may have more packets than there are numbers; it ends with an empty one.
            let goes_on = self.full || seq != 0 || (self.seq == u8::MAX && self.filled);
            if !goes_on && len > 0 {
                let Some(&command) = rest.get(HEADER_LEN) else { return Passed { len: at, stopped: false } };
                if !see(at, command) {
                    return Passed { len: at, stopped: true };
                }
            }
            (self.seq, self.filled, self.full) = (seq, len > 0, len == MAX_PAYLOAD);
            self.left = len;
            at += HEADER_LEN;
        }
    }

    /// Whether the next packet is no more of what was passed on last, as far as can be told from that.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        self.left == 0 && !self.full
    }
}

/// Fuzz target: however the bytes are cut, the same is passed on and the same commands are seen.
pub fn fuzz_upstream(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else { return };
    let whole = walk(bytes, bytes.len().max(1));
    assert_eq!(walk(bytes, usize::from(cut).max(1)), whole);
}

/// Bytes passed on and commands seen when no more than `cut` bytes come at once.
fn walk(bytes: &[u8], cut: usize) -> (usize, Vec<(usize, u8)>, bool) {
    let (mut upstream, mut seen, mut kept, mut passed) = (Upstream::default(), Vec::new(), Vec::new(), 0);
    for piece in bytes.chunks(cut) {
        kept.extend_from_slice(piece);
        let went = upstream.follow(&kept, |at, command| {
            let passes = command != COM_CHANGE_USER;
            if passes {
                seen.push((passed + at, command));
            }
            passes
        });
        kept.drain(..went.len);
        passed += went.len;
        if went.stopped {
            return (passed, seen, true);
        }
        assert!(kept.len() <= HEADER_LEN);
    }
    (passed, seen, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet;

    fn framed(seq: u8, payload: &[u8]) -> Vec<u8> {
        let (mut out, mut seq) = (Vec::new(), seq);
        packet::append(&mut out, &mut seq, payload);
        out
    }

    #[test]
    fn commands_are_seen_wherever_the_bytes_are_cut() {
        let bytes = [framed(0, b"\x03SELECT 1"), framed(0, b"\x19abcd"), framed(0, b"\x03x")].concat();
        let seen = vec![(0, 3), (13, 0x19), (22, 3)];
        for cut in 1..=bytes.len() {
            assert_eq!(walk(&bytes, cut), (bytes.len(), seen.clone(), false), "{cut}");
        }
    }

    #[test]
    fn a_change_of_user_stops_before_its_first_byte_and_its_look_alike_inside_of_a_command_does_not() {
        let inside = framed(0, b"\x03xx\x06\0\0\0\x11user");
        let bytes = [inside.clone(), framed(0, b"\x11other"), framed(0, b"\x0e")].concat();
        for cut in 1..=bytes.len() {
            assert_eq!(walk(&bytes, cut), (inside.len(), vec![(0, 3)], true), "{cut}");
        }
    }

    #[test]
    fn what_continues_a_command_begins_none() {
        let mut long = framed(0, &[&[3][..], &vec![0x11; 2 * MAX_PAYLOAD]].concat());
        let first = long.len();
        long.extend(framed(0, b"\x0e"));
        assert_eq!(walk(&long, 1 << 14), (long.len(), vec![(0, 3), (first, 0x0e)], false));
    }

    #[test]
    fn a_file_of_more_packets_than_there_are_numbers_begins_no_command() {
        let mut bytes = framed(0, b"\x03LOAD DATA");
        let begin = bytes.len();
        for n in 0..600_u32 {
            bytes.extend(framed((n + 2) as u8, b"\x11line"));
        }
        bytes.extend(framed((600 + 2) as u32 as u8, b""));
        let end = bytes.len();
        bytes.extend(framed(0, b"\x0e"));
        assert!(begin < end);
        for cut in [1, 7, bytes.len()] {
            assert_eq!(walk(&bytes, cut), (bytes.len(), vec![(0, 3), (end, 0x0e)], false));
        }
    }
}
