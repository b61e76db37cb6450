//! Compression: how the stream of packets is cut into frames, and packed.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html> Seven
//! bytes of header: length of what follows (three, little-endian), a sequence number of the frames'
//! own, and the length of it unpacked (three), or zero if it is not packed. Frames and packets know
//! nothing of each other: a frame may hold a part of a packet, or many. The number starts from zero
//! with each command; an answer goes on from it.
//!
//! What is unpacked comes in pieces, while the frame arrives: a frame that says that it is large
//! costs no memory for saying so.

mod codecs;
mod whole;

pub use codecs::Codecs;

use crate::{Malformed, caps, packet};
use codecs::Decoder;
use whole::Whole;

/// Length of a frame's header.
pub const HEADER_LEN: usize = 7;
/// Bytes that go into one frame of ours at most, and that come out of one step of unpacking.
pub const PIECE_MAX: usize = 64 << 10;
/// Less than this is not worth packing; servers say so too.
const PACKED_LEN_MIN: usize = 50;
/// How frames are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// CLIENT_COMPRESS.
    Zlib,
    /// CLIENT_ZSTD_COMPRESSION_ALGORITHM.
    Zstd,
}

impl Algorithm {
    /// Returns the algorithm that both sides' capabilities come to. Of two, servers take zlib.
    #[must_use]
    pub const fn agreed(caps: caps::Caps) -> Option<Self> {
        if caps::has(caps, caps::COMPRESS) {
            Some(Self::Zlib)
        } else if caps::has(caps, caps::ZSTD) {
            Some(Self::Zstd)
        } else {
            None
        }
    }

    /// Its name in `protocol_compression_algorithms`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }
}

enum State {
    /// So many bytes of the header are there.
    Header { bytes: [u8; HEADER_LEN], len: usize },
    /// So much comes as it is.
    Plain { left: usize },
    /// So many packed bytes are to come, and so many are to come of them. The last of those wait in
    /// `last` for the end of the frame: whoever gets the end of an answer may rely on nothing being
    /// behind it.
    Packed {
        left: usize,
        plain_left: usize,
        plain_len: usize,
        decoder: Decoder,
        last: Vec<u8>,
    },
}

const BEGINNING: State = State::Header {
    bytes: [0; HEADER_LEN],
    len: 0,
};

/// Both directions of a connection that is compressed.
pub struct Frames {
    algorithm: Algorithm,
    level: i32,
    /// Number of the next frame that we send.
    seq: u8,
    /// The next frame that comes is the first of an answer to one frame of ours.
    first: bool,
    /// Whether what comes now belongs together, and has to be numbered so.
    in_order: bool,
    state: State,
    answers: Whole,
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frames({} {})", self.algorithm.name(), self.level)
    }
}

impl Frames {
    /// From the first byte after the login. A level that the algorithm has not becomes the nearest
    /// that it has.
    #[must_use]
    pub fn new(algorithm: Algorithm, level: i32) -> Self {
        let level = match algorithm {
            Algorithm::Zlib => level.clamp(-1, 9),
            Algorithm::Zstd => level.clamp(1, 22),
        };
        Self {
            algorithm,
            level,
            seq: 0,
            first: false,
            in_order: false,
            state: BEGINNING,
            answers: Whole::default(),
        }
    }

    /// How they are packed.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// At the level of what we send.
    #[must_use]
    pub fn level(&self) -> i32 {
        self.level
    }

    /// A command begins with the next byte that we send.
    pub fn begin(&mut self) {
        self.seq = 0;
        self.first = false;
    }

    /// Whether the next frame that we send has the number of a command's first.
    #[must_use]
    pub fn is_next_first(&self) -> bool {
        self.seq == 0
    }

    /// A whole command is sent, and its answer is all that may come next. One of several frames may
    /// be answered before its end, and is not looked at.
    pub fn expect_answer(&mut self) {
        self.first = self.seq == 1;
    }

    /// From now on each frame that comes has to have the number behind the one before, in whichever
    /// direction that went; or no more. Servers ask that of each (`net_serv.cc`, error 1156): a
    /// file that a client breaks off ends with the first frame of its next command.
    pub fn in_order(&mut self, must_be: bool) {
        self.in_order = must_be;
    }

    /// Is what came a whole number of frames?
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Header { len: 0, .. })
    }

    fn header(&mut self, len: usize, unpacked: usize) -> [u8; HEADER_LEN] {
        let [l0, l1, l2, _] = (len as u32).to_le_bytes();
        let [p0, p1, p2, _] = (unpacked as u32).to_le_bytes();
        let seq = self.seq;
        self.seq = seq.wrapping_add(1);
        [l0, l1, l2, seq, p0, p1, p2]
    }

    /// Appends what goes over the wire for these bytes, cut anywhere.
    pub fn pack(&mut self, plain: &[u8], out: &mut Vec<u8>, lent: &mut Codecs) {
        for piece in plain.chunks(PIECE_MAX) {
            let head = out.len();
            let body = head + HEADER_LEN;
            out.resize(body + piece.len(), 0);
            let packed = match piece.len() {
                ..PACKED_LEN_MIN => None,
                // One byte less than it is: what does not fit is not smaller.
                len => lent.pack(
                    self.algorithm,
                    self.level,
                    piece,
                    &mut out[body..body + len - 1],
                ),
            };
            let (len, unpacked) = match packed {
                Some(len) => (len, piece.len()),
                None => {
                    out[body..].copy_from_slice(piece);
                    (piece.len(), 0)
                }
            };
            out.truncate(body + len);
            out[head..body].copy_from_slice(&self.header(len, unpacked));
        }
    }

    /// Takes bytes of the wire and puts what they hold into `out`, which is empty: of one frame
    /// only, so that the numbers of an answer follow the frames that were read, and at most
    /// [`PIECE_MAX`]. Returns how many bytes it took. If nothing was put there, all were taken and
    /// more are needed; if something was, there may be more even without further bytes.
    ///
    /// # Errors
    /// What came answers no command (see [`expect_answer`](Self::expect_answer)) or is not numbered
    /// as it must be (see [`in_order`](Self::in_order)), is not packed as it says, or is longer or
    /// shorter unpacked than it says.
    pub fn unpack(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        lent: &mut Codecs,
    ) -> Result<usize, Malformed> {
        let mut used = 0;
        loop {
            let input = &input[used..];
            match &mut self.state {
                State::Header { bytes, len } => {
                    let now = input.len().min(HEADER_LEN - *len);
                    bytes[*len..*len + now].copy_from_slice(&input[..now]);
                    *len += now;
                    used += now;
                    if *len < HEADER_LEN {
                        return Ok(used);
                    }
                    let [l0, l1, l2, seq, p0, p1, p2] = *bytes;
                    let left = u32::from_le_bytes([l0, l1, l2, 0]) as usize;
                    let plain_len = u32::from_le_bytes([p0, p1, p2, 0]) as usize;
                    if std::mem::take(&mut self.first) && seq != 1 {
                        return Err(Malformed::new("a frame that answers no command"));
                    }
                    if self.in_order && seq != self.seq {
                        return Err(Malformed::new("frames out of order"));
                    }
                    self.seq = seq.wrapping_add(1);
                    self.answers.numbers.anew = true;
                    self.state = match (left, plain_len) {
                        (0, 0) => BEGINNING,
                        (left, 0) => State::Plain { left },
                        (0, _) => return Err(Malformed::new("a compressed frame without content")),
                        (left, plain_len) => State::Packed {
                            left,
                            plain_left: plain_len,
                            plain_len,
                            decoder: lent.lend(self.algorithm)?,
                            last: Vec::new(),
                        },
                    };
                }
                State::Plain { left } => {
                    let now = input.len().min(*left).min(PIECE_MAX);
                    out.extend_from_slice(&input[..now]);
                    *left -= now;
                    if *left == 0 {
                        self.state = BEGINNING;
                    }
                    return Ok(used + now);
                }
                State::Packed {
                    left,
                    plain_left,
                    plain_len,
                    decoder,
                    last,
                } => {
                    let before = out.len();
                    // When all is there, one byte of room shows whether there is more than was
                    // said.
                    let room = (*plain_left).clamp(1, PIECE_MAX);
                    out.resize(before + room, 0);
                    let step =
                        decoder.step(&input[..input.len().min(*left)], &mut out[before..])?;
                    if step.made > *plain_left {
                        return Err(Malformed::new(
                            "a compressed frame that is longer than it says",
                        ));
                    }
                    out.truncate(before + step.made);
                    used += step.used;
                    *left -= step.used;
                    *plain_left -= step.made;
                    if step.ended {
                        if *plain_left > 0 {
                            return Err(Malformed::new(
                                "a compressed frame that is shorter than it says",
                            ));
                        }
                        if *left > 0 {
                            return Err(Malformed::new(
                                "a compressed frame with something behind its end",
                            ));
                        }
                        let plain_len = *plain_len;
                        if let State::Packed { decoder, last, .. } =
                            std::mem::replace(&mut self.state, BEGINNING)
                        {
                            out.extend_from_slice(&last);
                            lent.take_back(decoder, plain_len);
                        }
                    } else if step.used == 0 && step.made == 0 {
                        return match (*left, input.is_empty()) {
                            (0, _) => Err(Malformed::new("a compressed frame that does not end")),
                            (_, true) => Ok(used),
                            (_, false) => {
                                Err(Malformed::new("a compressed frame that makes no progress"))
                            }
                        };
                    } else if *plain_left == 0 {
                        last.append(out);
                    }
                    if !out.is_empty() {
                        return Ok(used);
                    }
                }
            }
        }
    }
}

/// Fuzz target: any bytes as frames, cut anywhere: never more than the headers say; and any bytes
/// packed come out again.
pub fn fuzz_frame(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else {
        return;
    };
    let algorithm = if how & 1 == 0 {
        Algorithm::Zlib
    } else {
        Algorithm::Zstd
    };
    let piece = usize::from(how >> 1).max(1);
    let mut codecs = Codecs::default();
    let mut frames = Frames::new(algorithm, i32::from(how % 5));
    let all = |frames: &mut Frames, bytes: &[u8], codecs: &mut Codecs| {
        let mut made = Vec::new();
        for piece in bytes.chunks(piece) {
            let mut used = 0;
            loop {
                let mut out = Vec::new();
                used += frames.unpack(&piece[used..], &mut out, codecs)?;
                assert!(out.len() <= PIECE_MAX);
                if out.is_empty() {
                    assert_eq!(used, piece.len());
                    break;
                }
                made.extend_from_slice(&out);
            }
        }
        Ok::<_, Malformed>(made)
    };
    if let Ok(made) = all(&mut frames, bytes, &mut codecs) {
        // Deflate makes at most 1032 bytes of one; a block of zstd, 128 KiB of four.
        assert!(made.len() <= bytes.len() << 17);
    }
    let mut packets = Vec::new();
    packet::append(&mut packets, &mut 0, bytes);
    let (mut packed, mut frames) = (Vec::new(), Frames::new(algorithm, i32::from(how % 5)));
    for piece in packets.chunks(piece) {
        frames.pack_whole(piece, &mut packed, &mut codecs);
    }
    assert_eq!(
        all(&mut frames, &packed, &mut codecs).as_deref(),
        Ok(packets.as_slice())
    );
    // Numbers are another matter where it says that a result follows; its bytes are its own
    // wherever it is cut.
    let mut anything = bytes.to_vec();
    packet::Numbers::default().each(&mut anything, |seq| *seq = 0);
    let (mut packed, mut frames) = (Vec::new(), Frames::new(algorithm, i32::from(how % 5)));
    for piece in anything.chunks(piece) {
        frames.pack_whole(piece, &mut packed, &mut codecs);
    }
    let mut made = all(&mut frames, &packed, &mut codecs).unwrap_or_default();
    packet::Numbers::default().each(&mut made, |seq| *seq = 0);
    assert!(anything.starts_with(&made));
    let mut packed = Vec::new();
    let mut frames = Frames::new(algorithm, i32::from(how % 5));
    frames.pack(bytes, &mut packed, &mut codecs);
    assert_eq!(all(&mut frames, &packed, &mut codecs).as_deref(), Ok(bytes));
    assert!(frames.is_between());
}

#[cfg(test)]
pub(super) mod tests {
    use super::whole::FRAME_PLAIN_MAX;
    use super::*;
    use flate2::{Compress, Compression, FlushCompress, Status};

    pub(super) fn text(len: usize) -> Vec<u8> {
        (0..len)
            .flat_map(|n| format!("{} sacks, ", n * n % 977).into_bytes())
            .take(len)
            .collect()
    }

    /// All that comes of these bytes, given in pieces.
    pub(super) fn unpacked(
        frames: &mut Frames,
        bytes: &[u8],
        piece: usize,
    ) -> Result<Vec<u8>, Malformed> {
        let mut codecs = Codecs::default();
        let mut made = Vec::new();
        for piece in bytes.chunks(piece) {
            let mut used = 0;
            loop {
                let mut out = Vec::new();
                used += frames.unpack(&piece[used..], &mut out, &mut codecs)?;
                if out.is_empty() {
                    break;
                }
                made.append(&mut out);
            }
        }
        Ok(made)
    }

    pub(super) const ALL: [(Algorithm, std::ops::RangeInclusive<i32>); 2] =
        [(Algorithm::Zlib, -1..=9), (Algorithm::Zstd, 1..=22)];

    #[test]
    fn what_a_server_says_unasked_is_not_taken_for_an_answer() {
        let (mut ours, mut theirs) = (
            Frames::new(Algorithm::Zlib, 3),
            Frames::new(Algorithm::Zlib, 3),
        );
        let mut codecs = Codecs::default();
        let frame = |frames: &mut Frames, bytes: &[u8], codecs: &mut Codecs| {
            let mut out = Vec::new();
            frames.pack(bytes, &mut out, codecs);
            out
        };
        // An error before the command came: the server's first frame.
        let unasked = frame(&mut theirs, b"\x02\0\0\0\xffx", &mut codecs);
        ours.begin();
        let command = frame(&mut ours, b"\x01\0\0\0\x0e", &mut codecs);
        ours.expect_answer();
        assert!(ours.unpack(&unasked, &mut Vec::new(), &mut codecs).is_err());
        // The answer to the command, and what follows it.
        let mut ours = Frames::new(Algorithm::Zlib, 3);
        ours.begin();
        frame(&mut ours, b"\x01\0\0\0\x0e", &mut codecs);
        ours.expect_answer();
        theirs
            .unpack(&command, &mut Vec::new(), &mut codecs)
            .unwrap();
        for piece in [&b"\x01\0\0\x01"[..], b"\0"] {
            let answer = frame(&mut theirs, piece, &mut codecs);
            let mut out = Vec::new();
            ours.unpack(&answer, &mut out, &mut codecs).unwrap();
            assert_eq!(out, piece);
        }
    }

    #[test]
    fn what_is_packed_at_any_level_comes_out_again() {
        let plain = text(300_000);
        for (algorithm, levels) in ALL {
            for level in levels {
                let (mut codecs, mut packed) = (Codecs::default(), Vec::new());
                let mut frames = Frames::new(algorithm, level);
                frames.pack(&plain, &mut packed, &mut codecs);
                assert!(
                    level == 0 || packed.len() < plain.len() / 2,
                    "{algorithm:?} {level}: {}",
                    packed.len()
                );
                assert!(
                    unpacked(&mut frames, &packed, 16 << 10) == Ok(plain.clone()),
                    "{algorithm:?} {level}"
                );
                assert!(frames.is_between());
            }
        }
    }

    #[test]
    fn frames_may_be_cut_anywhere() {
        let plain = text(5_000);
        for (algorithm, _) in ALL {
            let (mut codecs, mut packed) = (Codecs::default(), Vec::new());
            let mut frames = Frames::new(algorithm, 3);
            for piece in [&plain[..3], &plain[3..2_000], &plain[2_000..]] {
                frames.pack(piece, &mut packed, &mut codecs);
            }
            for piece in 1..40 {
                assert!(
                    unpacked(&mut frames, &packed, piece) == Ok(plain.clone()),
                    "{algorithm:?} {piece}"
                );
            }
        }
    }

    /// Lengths of the frames, unpacked.
    pub(super) fn lengths(mut packed: &[u8]) -> Vec<usize> {
        let mut all = Vec::new();
        while let Some((head, rest)) = packed.split_first_chunk::<HEADER_LEN>() {
            let [l0, l1, l2, seq, p0, p1, p2] = *head;
            let len = u32::from_le_bytes([l0, l1, l2, 0]) as usize;
            let unpacked = u32::from_le_bytes([p0, p1, p2, 0]) as usize;
            assert_eq!(usize::from(seq), all.len() % 256);
            all.push(if unpacked == 0 { len } else { unpacked });
            packed = &rest[len..];
        }
        all
    }

    #[test]
    fn the_last_bytes_come_with_the_end_of_their_frame() {
        let plain = text(1_000);
        for (algorithm, _) in ALL {
            let (mut codecs, mut packed) = (Codecs::default(), Vec::new());
            let mut frames = Frames::new(algorithm, 3);
            frames.pack(&plain, &mut packed, &mut codecs);
            let mut made = 0;
            for byte in &packed {
                assert!(made < plain.len(), "{algorithm:?}");
                let mut out = Vec::new();
                frames
                    .unpack(&[*byte], &mut out, &mut codecs)
                    .expect("sound");
                made += out.len();
            }
            assert!(made == plain.len() && frames.is_between());
        }
    }

    #[test]
    fn little_and_what_does_not_get_smaller_goes_as_it_is() {
        let mut noise = 1u64;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (noise >> 56) as u8
        })
        .take(5_000)
        .collect();
        let large: Vec<u8> = random
            .iter()
            .cycle()
            .zip(0u32..)
            .map(|(a, n)| a ^ (n.wrapping_mul(2_654_435_769) >> 24) as u8)
            .take(packet::MAX_PAYLOAD)
            .collect();
        for (algorithm, _) in ALL {
            let mut packets = Vec::new();
            packet::append(&mut packets, &mut 0, &large);
            let (mut codecs, mut packed, mut frames) =
                (Codecs::default(), Vec::new(), Frames::new(algorithm, 1));
            frames.pack_whole(&packets, &mut packed, &mut codecs);
            assert_eq!(lengths(&packed), [FRAME_PLAIN_MAX, PIECE_MAX / 2 + 8]);
            assert!(unpacked(&mut frames, &packed, 16 << 10) == Ok(packets));
            for plain in [&b"SELECT 1"[..], &random] {
                let (mut codecs, mut packed) = (Codecs::default(), Vec::new());
                Frames::new(algorithm, 3).pack(plain, &mut packed, &mut codecs);
                assert_eq!(packed.len(), HEADER_LEN + plain.len());
                assert_eq!(packed[4..7], [0, 0, 0]);
            }
        }
    }

    #[test]
    fn a_frame_of_16_mib_comes_in_pieces() {
        let plain = vec![b'x'; 0xFF_FFFF];
        let mut deflated = vec![0; 1 << 17];
        let mut deflate = Compress::new(Compression::best(), true);
        assert!(matches!(
            deflate.compress(&plain, &mut deflated, FlushCompress::Finish),
            Ok(Status::StreamEnd)
        ));
        deflated.truncate(usize::try_from(deflate.total_out()).expect("short"));
        for (algorithm, body) in [
            (Algorithm::Zlib, deflated),
            (
                Algorithm::Zstd,
                zstd::bulk::compress(&plain, 19).expect("packed"),
            ),
        ] {
            let [a, b, c, _] = (body.len() as u32).to_le_bytes();
            let mut bytes = vec![a, b, c, 9, 0xFF, 0xFF, 0xFF];
            bytes.extend_from_slice(&body);
            let (mut codecs, mut frames) = (Codecs::default(), Frames::new(algorithm, 3));
            let (mut used, mut made) = (0, 0);
            loop {
                let mut out = Vec::new();
                used += frames
                    .unpack(&bytes[used..], &mut out, &mut codecs)
                    .expect("sound");
                assert!(out.len() <= PIECE_MAX && out.iter().all(|byte| *byte == b'x'));
                if out.is_empty() {
                    break;
                }
                made += out.len();
            }
            assert_eq!(
                (used, made, frames.is_between(), frames.seq),
                (bytes.len(), plain.len(), true, 10)
            );
        }
    }

    #[test]
    fn a_frame_that_lies_is_refused() {
        let plain = text(5_000);
        for (algorithm, _) in ALL {
            let (mut codecs, mut packed) = (Codecs::default(), Vec::new());
            Frames::new(algorithm, 3).pack(&plain, &mut packed, &mut codecs);
            let said = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut bytes = packed.clone();
                change(&mut bytes);
                unpacked(&mut Frames::new(algorithm, 3), &bytes, 1_000)
                    .map(|made| made.len())
                    .map_err(|why| why.what)
            };
            assert_eq!(said(&|_| {}), Ok(5_000));
            assert_eq!(
                said(&|bytes| bytes[4] -= 1),
                Err("a compressed frame that is longer than it says")
            );
            assert_eq!(
                said(&|bytes| bytes[4] += 1),
                Err("a compressed frame that is shorter than it says")
            );
            assert_eq!(
                said(&|bytes| bytes[6] = 0xFF),
                Err("a compressed frame that is shorter than it says")
            );
            assert_eq!(
                said(&|bytes| bytes[0] -= 1),
                Err("a compressed frame that does not end")
            );
            let longer = |bytes: &mut Vec<u8>| {
                bytes[0] += 1;
                bytes.push(0);
            };
            assert_eq!(
                said(&longer),
                Err("a compressed frame with something behind its end")
            );
            assert!(said(&|bytes| bytes[7] ^= 0xFF).is_err());
            assert_eq!(
                said(&|bytes| bytes[..3].fill(0)),
                Err("a compressed frame without content")
            );
        }
    }

    #[test]
    fn numbers_follow_what_was_read_and_begin_anew_with_a_command() {
        let (mut codecs, mut out) = (Codecs::default(), Vec::new());
        let mut frames = Frames::new(Algorithm::Zlib, 3);
        // Two commands came at once: the first is answered before the second is looked at.
        let both = [1, 0, 0, 0, 0, 0, 0, b'a', 1, 0, 0, 7, 0, 0, 0, b'b'];
        assert_eq!(frames.unpack(&both, &mut out, &mut codecs), Ok(8));
        let mut answer = Vec::new();
        frames.pack(b"one", &mut answer, &mut codecs);
        frames.pack(b"two", &mut answer, &mut codecs);
        assert_eq!((answer[3], answer[13]), (1, 2));
        assert_eq!(frames.unpack(&both[8..], &mut out, &mut codecs), Ok(8));
        assert_eq!((out.as_slice(), frames.seq), (&b"ab"[..], 8));
        frames.begin();
        assert_eq!(frames.seq, 0);
    }
}
