//! Packets to a client: whole, and numbered, in frames.

use super::{Algorithm, Codecs, Frames, PIECE_MAX};
use crate::ok::{EOF_HEADER, OK_HEADER};
use crate::{caps, ok, packet, status};
use flate2::{Compress, Compression, FlushCompress, Status};
use zstd::stream::raw::Operation as _;

/// The largest frame of ours, unpacked: what does not get smaller gets a little larger, and a
/// frame's length has three bytes.
pub(super) const FRAME_PLAIN_MAX: usize = 0xFF_FFFF - PIECE_MAX / 2;

/// Packets on their way into frames as servers make them: several to a frame, but none cut, unless
/// a frame cannot hold it: then by the end of a full one. There are clients that cannot put
/// together more.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Packets that are all there, and after them one of which some is missing. At most
    /// [`PIECE_MAX`].
    pub(super) pending: Vec<u8>,
    /// Bytes of those that are all there.
    whole: usize,
    /// Bytes that are missing, once the header of the packet is there.
    left: usize,
    /// A packet that is larger than `pending` may be.
    large: Option<Large>,
    /// `pending` begins with so many bytes of a packet whose header is in the frame before.
    tail: usize,
    pub(super) numbers: Numbering,
}

/// Numbers of the packets to a client. Servers count on through an answer, and take the number of
/// the frame whenever they have read, or a result is over and nothing is left of its frame. There
/// are clients that look.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    next: u8,
    /// The next packet takes the number of its frame, if it is the first there.
    pub(super) anew: bool,
    /// The next packet goes on with the payload of the last.
    joins: bool,
}

impl Numbering {
    /// The number of a packet of so many bytes; `frame`: of the frame that it begins.
    fn take(&mut self, len: usize, frame: Option<u8>) -> u8 {
        let now = match frame {
            Some(frame) if self.anew && !self.joins => frame,
            _ => self.next,
        };
        self.anew = false;
        self.joins = len == packet::MAX_PAYLOAD;
        self.next = now.wrapping_add(1);
        now
    }
}

/// Whether it may be the end of a result that others follow. A row can look so: nothing depends on
/// it but how the next frame counts.
fn ends_one_of_several(payload: &[u8]) -> bool {
    let status = match *payload {
        [EOF_HEADER, _, _, low, high] => u16::from_le_bytes([low, high]),
        [OK_HEADER | EOF_HEADER, ..] => {
            ok::Ok::read(payload, caps::PROTOCOL_41).map_or(0, |ok| ok.status)
        }
        _ => 0,
    };
    status & status::MORE_RESULTS != 0
}

/// A frame that is packed while its packet arrives.
struct Large {
    encoder: Encoder,
    packed: Vec<u8>,
    plain_len: usize,
    left: usize,
    /// Bytes of the packet for which the frame has no room; less than [`PIECE_MAX`].
    beyond: usize,
}

impl std::fmt::Debug for Large {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Large({} of {} left)", self.left, self.plain_len)
    }
}

enum Encoder {
    Zlib(Box<Compress>),
    Zstd(Box<zstd::stream::raw::Encoder<'static>>),
    /// No encoder: the frame is not packed.
    None,
}

/// Room for what comes out of an encoder in one step.
const ROOM: usize = 16 << 10;

impl Encoder {
    fn new(algorithm: Algorithm, level: i32, plain_len: usize) -> Self {
        match (algorithm, u32::try_from(level)) {
            (Algorithm::Zlib, Ok(0)) => Self::None,
            // Level 1 never stores what does not get smaller, and such a frame would grow beyond
            // what its length can say.
            (Algorithm::Zlib, Ok(1)) => Self::new(algorithm, 2, plain_len),
            (Algorithm::Zlib, wanted) => Self::Zlib(Box::new(Compress::new(
                wanted.map_or_else(|_| Compression::default(), Compression::new),
                true,
            ))),
            (Algorithm::Zstd, _) => {
                let made = zstd::stream::raw::Encoder::new(level).and_then(|mut encoder| {
                    // Its tables are then no larger than they have to be.
                    encoder.set_pledged_src_size(Some(plain_len as u64))?;
                    Ok(encoder)
                });
                made.map_or(Self::None, |encoder| Self::Zstd(Box::new(encoder)))
            }
        }
    }

    fn write(&mut self, mut plain: &[u8], packed: &mut Vec<u8>) {
        while !plain.is_empty() {
            let (at, room) = (packed.len(), ROOM.max(plain.len()));
            let (used, made) = match self {
                Self::None => {
                    packed.extend_from_slice(plain);
                    return;
                }
                Self::Zlib(deflate) => {
                    packed.resize(at + room, 0);
                    let (read, made) = (deflate.total_in(), deflate.total_out());
                    deflate
                        .compress(plain, &mut packed[at..], FlushCompress::None)
                        .expect("a stream that has not ended takes more");
                    (
                        (deflate.total_in() - read) as usize,
                        (deflate.total_out() - made) as usize,
                    )
                }
                Self::Zstd(encoder) => {
                    packed.resize(at + room, 0);
                    let status = encoder
                        .run_on_buffers(plain, &mut packed[at..])
                        .expect("a stream that has not ended takes more");
                    (status.bytes_read, status.bytes_written)
                }
            };
            packed.truncate(at + made);
            plain = &plain[used..];
        }
    }

    fn finish(&mut self, packed: &mut Vec<u8>) {
        loop {
            let at = packed.len();
            let (made, over) = match self {
                Self::None => return,
                Self::Zlib(deflate) => {
                    packed.resize(at + ROOM, 0);
                    let made = deflate.total_out();
                    let status = deflate
                        .compress(&[], &mut packed[at..], FlushCompress::Finish)
                        .expect("a stream can end");
                    (
                        (deflate.total_out() - made) as usize,
                        matches!(status, Status::StreamEnd),
                    )
                }
                Self::Zstd(encoder) => {
                    packed.resize(at + ROOM, 0);
                    let mut room = zstd::stream::raw::OutBuffer::around(&mut packed[at..]);
                    let left = encoder.finish(&mut room, true).expect("a stream can end");
                    (room.pos(), left == 0)
                }
            };
            packed.truncate(at + made);
            if over {
                return;
            }
        }
    }
}

impl Frames {
    /// Appends what goes over the wire for these bytes of packets, as servers do it: no packet is
    /// cut without need, and they are numbered after their frames. What is not a whole packet
    /// waits.
    pub fn pack_whole(&mut self, plain: &[u8], out: &mut Vec<u8>, lent: &mut Codecs) {
        let mut whole = std::mem::take(&mut self.answers);
        let mut rest = plain;
        while !rest.is_empty() {
            if let Some(large) = &mut whole.large {
                let now = rest.len().min(large.left);
                large.encoder.write(&rest[..now], &mut large.packed);
                large.left -= now;
                rest = &rest[now..];
                if large.left == 0 {
                    whole.left = large.beyond;
                    whole.tail = large.beyond;
                    let unpacked = match large.encoder {
                        Encoder::None => 0,
                        _ => large.plain_len,
                    };
                    large.encoder.finish(&mut large.packed);
                    out.extend_from_slice(&self.header(large.packed.len(), unpacked));
                    out.append(&mut large.packed);
                    whole.large = None;
                }
                continue;
            }
            if whole.left > 0 {
                let now = rest.len().min(whole.left);
                whole.pending.extend_from_slice(&rest[..now]);
                whole.left -= now;
                rest = &rest[now..];
                if whole.left == 0 {
                    whole.whole = whole.pending.len();
                }
                continue;
            }
            let now = rest
                .len()
                .min(packet::HEADER_LEN - (whole.pending.len() - whole.whole));
            whole.pending.extend_from_slice(&rest[..now]);
            rest = &rest[now..];
            let Some(head) = whole.pending[whole.whole..].first_chunk::<{ packet::HEADER_LEN }>()
            else {
                break;
            };
            let (len, _) = packet::header(head);
            let total = len + packet::HEADER_LEN;
            if whole.whole + total > PIECE_MAX {
                self.pack_pending(&mut whole, out, lent);
            }
            if total <= PIECE_MAX {
                whole.left = len;
                if len == 0 {
                    whole.whole = whole.pending.len();
                }
                continue;
            }
            let head = packet::make_header(len, whole.numbers.take(len, Some(self.seq)));
            whole.pending.clear();
            let plain_len = total.min(FRAME_PLAIN_MAX);
            let mut encoder = Encoder::new(self.algorithm, self.level, plain_len);
            let mut packed = Vec::new();
            encoder.write(&head, &mut packed);
            let left = plain_len - packet::HEADER_LEN;
            whole.large = Some(Large {
                encoder,
                packed,
                plain_len,
                left,
                beyond: total - plain_len,
            });
        }
        self.pack_pending(&mut whole, out, lent);
        if whole.pending.is_empty() {
            // A silent connection keeps no buffer.
            whole.pending = Vec::new();
        }
        self.answers = whole;
    }

    /// The packets that are all there, numbered, in a frame.
    fn pack_pending(&mut self, whole: &mut Whole, out: &mut Vec<u8>, lent: &mut Codecs) {
        if whole.whole == 0 {
            return;
        }
        let mut at = std::mem::take(&mut whole.tail);
        while let Some((head, rest)) =
            whole.pending[at..whole.whole].split_first_chunk_mut::<{ packet::HEADER_LEN }>()
        {
            let (len, _) = packet::header(head);
            *head =
                packet::make_header(len, whole.numbers.take(len, (at == 0).then_some(self.seq)));
            at += packet::HEADER_LEN + len;
            if at == whole.whole && ends_one_of_several(rest) {
                whole.numbers.anew = true;
            }
        }
        self.pack(&whole.pending[..whole.whole], out, lent);
        whole.pending.drain(..whole.whole);
        whole.whole = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::HEADER_LEN;
    use crate::frame::tests::{ALL, lengths, text, unpacked};

    #[test]
    fn an_answers_packets_are_cut_only_by_the_end_of_a_full_frame() {
        let packets = |lens: &[usize]| {
            let (mut bytes, mut seq) = (Vec::new(), 0);
            for len in lens {
                packet::append(&mut bytes, &mut seq, &text(*len));
            }
            bytes
        };
        let cases: [(&[usize], &[usize]); 6] = [
            (&[5, 100, 0], &[117]),
            (&[40_000, 30_000, 9], &[40_004, 30_017]),
            (&[5, PIECE_MAX - 4, 6], &[9, PIECE_MAX, 10]),
            (&[5, PIECE_MAX - 3, 6], &[9, PIECE_MAX + 1, 10]),
            (&[FRAME_PLAIN_MAX - 4, 7], &[FRAME_PLAIN_MAX, 11]),
            (
                &[packet::MAX_PAYLOAD + 300, 7],
                &[FRAME_PLAIN_MAX, PIECE_MAX / 2 + 4 + 304 + 11],
            ),
        ];
        for (algorithm, _) in ALL {
            for (lens, frames_lens) in cases {
                let plain = packets(lens);
                for piece in [16 << 10, plain.len()] {
                    let (mut codecs, mut packed) = (Codecs::default(), Vec::new());
                    let mut frames = Frames::new(algorithm, 1);
                    for piece in plain.chunks(piece) {
                        frames.pack_whole(piece, &mut packed, &mut codecs);
                    }
                    if piece == plain.len() {
                        assert_eq!(lengths(&packed), frames_lens, "{algorithm:?} {lens:?}");
                    }
                    assert!(
                        unpacked(&mut frames, &packed, 16 << 10) == Ok(plain.clone()),
                        "{algorithm:?} {lens:?}"
                    );
                    assert_eq!(frames.answers.pending.capacity(), 0);
                }
            }
        }
    }

    /// Numbers of the packets in each frame.
    fn packet_numbers(frames: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let (mut rest, mut numbers) = (frames, packet::Numbers::default());
        while let Some((head, body)) = rest.split_first_chunk::<HEADER_LEN>() {
            let frame =
                &rest[..HEADER_LEN + u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
            let mut plain =
                unpacked(&mut Frames::new(Algorithm::Zlib, 3), frame, usize::MAX).expect("sound");
            let mut here = Vec::new();
            numbers.each(&mut plain, |seq| here.push(*seq));
            all.push(here);
            rest = &body[frame.len() - HEADER_LEN..];
        }
        all
    }

    #[test]
    fn packets_are_numbered_as_servers_number_them() {
        let framed = |payloads: &[&[u8]]| {
            let mut bytes = Vec::new();
            payloads
                .iter()
                .for_each(|payload| packet::append(&mut bytes, &mut 77, payload));
            bytes
        };
        let (more, over) = (&[0xFE, 0, 0, 10, 0][..], &[0xFE, 0, 0, 2, 0][..]);
        let more_ok = &[0, 1, 0xFC, 1, 1, 10, 0, 0, 0][..];
        let (large, huge) = (&text(70_000)[..], &text(packet::MAX_PAYLOAD + 9)[..]);
        // What is given at once, and the numbers in its frames.
        type Case<'a> = (&'a [&'a [&'a [u8]]], &'a [&'a [u8]]);
        let cases: [Case<'_>; 7] = [
            (&[&[b"a", b"b"], &[b"c"]], &[&[1, 2], &[3]]),
            // The first frame ends with its result, so the next begins with the frame's number; in
            // the same frame they go on.
            (
                &[&[b"a", b"b", b"c", more], &[b"d", over]],
                &[&[1, 2, 3, 4], &[2, 3]],
            ),
            (
                &[&[b"a", b"b", b"c", more, b"d", over]],
                &[&[1, 2, 3, 4, 5, 6]],
            ),
            (&[&[b"a", more_ok], &[b"d", over]], &[&[1, 2], &[2, 3]]),
            (&[&[b"a", b"b", over], &[b"d"]], &[&[1, 2, 3], &[4]]),
            (&[&[b"a", large, b"b"]], &[&[1], &[2], &[3]]),
            (&[&[b"a", more], &[huge, b"b"]], &[&[1, 2], &[2], &[3, 4]]),
        ];
        for (n, (calls, numbers)) in cases.iter().enumerate() {
            let (mut codecs, mut frames, mut packed) = (
                Codecs::default(),
                Frames::new(Algorithm::Zlib, 3),
                Vec::new(),
            );
            // Another answer before, and the command.
            frames.pack_whole(&framed(&[b"x", b"y", b"z"]), &mut Vec::new(), &mut codecs);
            frames
                .unpack(&[1, 0, 0, 0, 0, 0, 0, 3], &mut Vec::new(), &mut codecs)
                .expect("sound");
            for call in *calls {
                frames.pack_whole(&framed(call), &mut packed, &mut codecs);
            }
            assert_eq!(packet_numbers(&packed), *numbers, "case {n}");
        }
    }
}
