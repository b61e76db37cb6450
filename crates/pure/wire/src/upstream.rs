//! Where commands begin in what a client sends, for whoever passes it on without looking at more
//! than the headers of packets.

use crate::command::COM_CHANGE_USER;
use crate::packet::{HEADER_LEN, MAX_PAYLOAD, header};

/// A client's stream of packets, cut anywhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Upstream {
    /// Bytes of the packet that are still to come.
    left: usize,
    /// Number of the last packet, as the client has it.
    seq: u8,
    last: Last,
    /// Number of the last packet, as it was passed on.
    passed: u8,
}

/// Packet that was passed on last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    /// A whole command, or nothing yet, or the empty packet that ends a file.
    #[default]
    Whole,
    /// A piece of a file of LOAD DATA LOCAL: another follows.
    Piece,
    /// A packet that the next one continues; of a file?
    Full { file: bool },
}

/// Beginning of some bytes that may be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// So many of them. The rest is the beginning of a packet of which too little has come (at most
    /// [`HEADER_LEN`] bytes, to be shown again with what follows), or a command that is not to be
    /// passed on.
    pub len: usize,
    /// Why no more.
    pub then: Then,
}

/// Reason why no more bytes may be passed on: what comes behind those that may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// More has to come first.
    More,
    /// A command that is not to be passed on. Nothing of it was followed.
    Stop,
    /// A packet with a number that none has there.
    OutOfOrder,
}

/// Command or file that begins in a client's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// A command of this kind.
    Command(u8),
    /// A file, says the client: only its server knows whether it has asked for one. Where the
    /// packets' numbers tell that (no compression), the server sees to it; if that number is 0, a
    /// server that has not asked takes it for a command, and it is one here, too.
    File,
}

impl Upstream {
    /// Follows these bytes; `see` hears what begins where, and says whether it is to be passed on.
    ///
    /// `asked`, of a client that compresses: the number that its server has for the first packet of
    /// a file. Clients count from frames there, each in its own way, and servers that unpack do not
    /// look; so the packets are numbered on from `asked`, whatever number they have, and whoever
    /// reads the frames sees to it that they are in order [within a file](Self::is_in_file). None:
    /// numbers stay as they are.
    #[inline]
    pub fn follow(
        &mut self,
        bytes: &mut [u8],
        asked: Option<u8>,
        mut see: impl FnMut(usize, Begins) -> bool,
    ) -> Passed {
        let mut at = 0;
        loop {
            let now = self.left.min(bytes.len() - at);
            self.left -= now;
            at += now;
            let rest = &mut bytes[at..];
            let passed = |then| Passed { len: at, then };
            let Some(head) = rest.first_chunk::<HEADER_LEN>() else {
                return passed(Then::More);
            };
            let (len, seq) = header(head);
            let next = self.seq.wrapping_add(1);
            let (begins, file) = match self.last {
                Last::Full { file: true } | Last::Piece if asked.is_some() => (false, true),
                Last::Full { .. } | Last::Piece if seq == next => {
                    (false, self.last != Last::Full { file: false })
                }
                Last::Full { .. } => return passed(Then::OutOfOrder),
                // A file that its server did not want to its end, or never asked for.
                Last::Piece if seq != 0 => return passed(Then::OutOfOrder),
                Last::Piece | Last::Whole => (true, seq != 0),
            };
            let number = match asked.filter(|_| file) {
                None => seq,
                Some(asked) if begins => asked,
                Some(_) => self.passed.wrapping_add(1),
            };
            if begins && len > 0 {
                let Some(&command) = rest.get(HEADER_LEN) else {
                    return passed(Then::More);
                };
                if !see(
                    at,
                    if number == 0 {
                        Begins::Command(command)
                    } else {
                        Begins::File
                    },
                ) {
                    return passed(Then::Stop);
                }
            }
            if number != seq
                && let Some(seq) = rest.get_mut(HEADER_LEN - 1)
            {
                *seq = number;
            }
            self.last = match (len, file) {
                (MAX_PAYLOAD, file) => Last::Full { file },
                // It ends a piece that was full, not the file.
                (0, true) if self.last == Last::Full { file: true } => Last::Piece,
                (0, _) | (_, false) => Last::Whole,
                (_, true) => Last::Piece,
            };
            (self.seq, self.passed) = (seq, number);
            self.left = len;
            at += HEADER_LEN;
        }
    }

    /// Whether the next packet belongs to a file.
    #[must_use]
    pub const fn is_in_file(&self) -> bool {
        matches!(self.last, Last::Piece | Last::Full { file: true })
    }

    /// Whether the next packet is no more of what was passed on last, as far as can be told from
    /// that.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        self.left == 0 && !matches!(self.last, Last::Full { .. })
    }
}

/// Fuzz target: however the bytes are cut, the same is passed on and the same commands are seen.
pub fn fuzz_upstream(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else {
        return;
    };
    let whole = walk(bytes, bytes.len().max(1));
    assert_eq!(walk(bytes, usize::from(cut).max(1)), whole);
}

/// Bytes passed on and commands seen when no more than `cut` bytes come at once.
fn walk(bytes: &[u8], cut: usize) -> (usize, Vec<(usize, Begins)>, Then) {
    let (mut upstream, mut seen, mut kept, mut passed) =
        (Upstream::default(), Vec::new(), Vec::new(), 0);
    for piece in bytes.chunks(cut) {
        kept.extend_from_slice(piece);
        let went = upstream.follow(&mut kept, None, |at, begins| {
            let passes = begins != Begins::Command(COM_CHANGE_USER);
            if passes {
                seen.push((passed + at, begins));
            }
            passes
        });
        kept.drain(..went.len);
        passed += went.len;
        if went.then != Then::More {
            return (passed, seen, went.then);
        }
        assert!(kept.len() <= HEADER_LEN);
    }
    (passed, seen, Then::More)
}

#[cfg(test)]
mod tests {
    use super::Begins::{Command, File};
    use super::*;
    use crate::packet;

    fn framed(seq: u8, payload: &[u8]) -> Vec<u8> {
        let (mut out, mut seq) = (Vec::new(), seq);
        packet::append(&mut out, &mut seq, payload);
        out
    }

    #[test]
    fn commands_are_seen_wherever_the_bytes_are_cut() {
        let bytes = [
            framed(0, b"\x03SELECT 1"),
            framed(0, b"\x19abcd"),
            framed(0, b"\x03x"),
        ]
        .concat();
        let seen = vec![(0, Command(3)), (13, Command(0x19)), (22, Command(3))];
        for cut in 1..=bytes.len() {
            assert_eq!(
                walk(&bytes, cut),
                (bytes.len(), seen.clone(), Then::More),
                "{cut}"
            );
        }
    }

    #[test]
    fn a_change_of_user_stops_before_its_first_byte_and_its_look_alike_inside_of_a_command_does_not()
     {
        let inside = framed(0, b"\x03xx\x06\0\0\0\x11user");
        let bytes = [inside.clone(), framed(0, b"\x11other"), framed(0, b"\x0e")].concat();
        for cut in 1..=bytes.len() {
            assert_eq!(
                walk(&bytes, cut),
                (inside.len(), vec![(0, Command(3))], Then::Stop),
                "{cut}"
            );
        }
    }

    #[test]
    fn what_continues_a_command_begins_none() {
        let mut long = framed(0, &[&[3][..], &vec![0x11; 2 * MAX_PAYLOAD]].concat());
        let first = long.len();
        long.extend(framed(0, b"\x0e"));
        assert_eq!(
            walk(&long, 1 << 14),
            (
                long.len(),
                vec![(0, Command(3)), (first, Command(0x0e))],
                Then::More
            )
        );
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
        for cut in [1, 7, bytes.len()] {
            assert_eq!(
                walk(&bytes, cut),
                (
                    bytes.len(),
                    vec![(0, Command(3)), (begin, File), (end, Command(0x0e))],
                    Then::More
                )
            );
        }
    }

    #[test]
    fn a_packet_whose_number_is_nowhere_next_ends_it() {
        let whole = framed(0, b"\x03SELECT 1");
        let full = framed(0, &[&[3][..], &vec![b'x'; MAX_PAYLOAD - 1]].concat())
            [..HEADER_LEN + MAX_PAYLOAD]
            .to_vec();
        let piece = framed(255, b"line");
        for (before, seq) in [
            (vec![&full], 0),
            (vec![&full], 2),
            (vec![&whole, &piece], 1),
            (vec![&whole, &piece], 255),
        ] {
            let before = before.into_iter().flatten().copied().collect::<Vec<u8>>();
            let bytes = [before.clone(), framed(seq, b"\x11other")].concat();
            let (len, _, then) = walk(&bytes, 1 << 14);
            assert_eq!((len, then), (before.len(), Then::OutOfOrder), "{seq}");
        }
        // A file that is over has no next packet.
        let bytes = [whole.clone(), framed(2, b""), framed(0, b"\x11other")].concat();
        assert_eq!(walk(&bytes, 3).2, Then::Stop);
    }

    #[test]
    fn a_number_after_the_last_one_is_no_file_without_one() {
        // Numbers that have not run up to 255 do not begin again.
        let bytes = [
            framed(0, b"\x03x"),
            framed(254, b""),
            framed(255, b""),
            framed(0, b"\x11other"),
        ]
        .concat();
        assert_eq!(walk(&bytes, 5).2, Then::Stop);
    }

    /// Returns what the server gets of these bytes, what begins where, and why no more. Files are
    /// asked for with this number, and no more than `cut` bytes come at once.
    fn numbered(bytes: &[u8], asked: u8, cut: usize) -> (Vec<u8>, Vec<(usize, Begins)>, Then) {
        let (mut upstream, mut seen, mut kept, mut sent) =
            (Upstream::default(), Vec::new(), Vec::new(), Vec::new());
        for piece in bytes.chunks(cut) {
            kept.extend_from_slice(piece);
            let before = sent.len();
            let went = upstream.follow(&mut kept, Some(asked), |at, begins| {
                let passes = begins != Command(COM_CHANGE_USER);
                if passes {
                    seen.push((before + at, begins));
                }
                passes
            });
            sent.extend(kept.drain(..went.len));
            if went.then != Then::More {
                return (sent, seen, went.then);
            }
        }
        (sent, seen, Then::More)
    }

    /// Whether what comes next is of no file.
    fn is_over(bytes: &[u8]) -> bool {
        let mut upstream = Upstream::default();
        upstream.follow(&mut bytes.to_vec(), Some(2), |_, _| true);
        !upstream.is_in_file()
    }

    #[test]
    fn a_file_is_numbered_on_from_what_its_server_asks_for_and_commands_are_not() {
        // A command of two packets, a file whose numbers begin anew on either side, an empty file,
        // another command.
        let long = framed(0, &[&[3][..], &vec![b'x'; MAX_PAYLOAD]].concat());
        let of = |first: u8| {
            (0..300_u16)
                .flat_map(|n| {
                    framed(
                        first.wrapping_add(n as u8),
                        if n < 299 { b"line" } else { b"" },
                    )
                })
                .collect()
        };
        let (mut theirs, ours): (Vec<u8>, Vec<u8>) = (of(3), of(250));
        // One counts its first packet from the answer and all others from frames, be they at the
        // number of a command.
        theirs[HEADER_LEN - 1] = 17;
        theirs[2 * (HEADER_LEN + 4) + HEADER_LEN - 1] = 0;
        let sent = [
            long.clone(),
            theirs.clone(),
            framed(0, b"\x03y"),
            framed(9, b""),
            framed(0, b"\x0e"),
        ]
        .concat();
        let wanted = [
            long.clone(),
            ours,
            framed(0, b"\x03y"),
            framed(250, b""),
            framed(0, b"\x0e"),
        ]
        .concat();
        let behind = long.len() + theirs.len();
        let seen = vec![
            (0, Command(3)),
            (long.len(), File),
            (behind, Command(3)),
            (behind + 10, Command(0x0e)),
        ];
        for cut in [7, 1 << 14, sent.len()] {
            assert!(
                numbered(&sent, 250, cut) == (wanted.clone(), seen.clone(), Then::More),
                "{cut}"
            );
        }
        for cut in 1..8 {
            let (tail, wanted) = (&sent[behind..], &wanted[behind..]);
            assert_eq!(numbered(tail, 250, cut).0, wanted, "{cut}");
        }
        assert!(
            !is_over(&framed(9, b"line"))
                && is_over(&framed(9, b""))
                && is_over(&framed(0, b"line"))
        );
        // A piece of more than one packet.
        let mut full = framed(5, &vec![b'x'; MAX_PAYLOAD]);
        full.extend(framed(7, b""));
        let (got, _, then) = numbered(&full, 8, 1 << 16);
        assert_eq!(
            (
                got[3],
                got[HEADER_LEN + MAX_PAYLOAD + 3],
                got[got.len() - 1],
                then
            ),
            (8, 9, 10, Then::More)
        );
    }

    #[test]
    fn what_gets_the_number_of_a_command_is_one() {
        let bytes = [
            framed(7, b"\x01line"),
            framed(8, b"more"),
            framed(9, b""),
            framed(0, b"\x0e"),
        ]
        .concat();
        let sent = [
            framed(0, b"\x01line"),
            framed(1, b"more"),
            framed(2, b""),
            framed(0, b"\x0e"),
        ]
        .concat();
        let seen = vec![(0, Command(1)), (bytes.len() - 5, Command(0x0e))];
        for cut in 1..=bytes.len() {
            assert_eq!(
                numbered(&bytes, 0, cut),
                (sent.clone(), seen.clone(), Then::More),
                "{cut}"
            );
        }
        // Else its client becomes somebody else unseen, on a server that has not asked.
        assert_eq!(
            numbered(&framed(7, b"\x11other"), 0, 9),
            (vec![], vec![], Then::Stop)
        );
        assert_eq!(numbered(&framed(7, b"\x11other"), 1, 9).2, Then::More);
    }
}
