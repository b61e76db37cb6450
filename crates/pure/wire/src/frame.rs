//! Compression: how the stream of packets is cut into frames, and packed.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html>
//! Seven bytes of header: length of what follows (three, little-endian), a sequence number of the frames' own, and the length of
//! it unpacked (three), or zero if it is not packed. Frames and packets know nothing of each other: a frame may hold a part of a
//! packet, or many. The number starts from zero with each command; an answer goes on from it.
//!
//! What is unpacked comes in pieces, while the frame arrives: a frame that says that it is large costs no memory for saying so.

use crate::ok::{EOF_HEADER, OK_HEADER};
use crate::{Malformed, caps, ok, packet, status};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Operation as _};

/// Length of a frame's header.
pub const HEADER_LEN: usize = 7;
/// What goes into one frame of ours at most, and what comes out of one step of unpacking.
pub const PIECE_MAX: usize = 64 << 10;
/// Less than this is not worth packing; servers say so too.
const PACKED_LEN_MIN: usize = 50;
/// A frame is not larger than 16 MiB unpacked, so nothing may refer to what is further back.
const ZSTD_WINDOW_LOG_MAX: u32 = 24;
/// Unpackers that have grown beyond this for a frame are not kept.
const KEPT_FRAME_MAX: usize = 1 << 20;
/// So many unpackers of each kind are kept for the next frames.
const KEPT_MAX: usize = 4;

/// How frames are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// CLIENT_COMPRESS.
    Zlib,
    /// CLIENT_ZSTD_COMPRESSION_ALGORITHM.
    Zstd,
}

impl Algorithm {
    /// What both sides' capabilities come to. Of two, servers take zlib.
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

/// What packs and unpacks, lent to whoever has a frame in hand: each is large, and a silent connection needs none.
#[derive(Default)]
pub struct Codecs {
    deflate: Vec<(i32, Compress)>,
    zstd: Option<(i32, zstd::bulk::Compressor<'static>)>,
    inflates: Vec<Decompress>,
    unzstds: Vec<zstd::stream::raw::Decoder<'static>>,
}

impl std::fmt::Debug for Codecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Codecs({} + {} kept)", self.inflates.len(), self.unzstds.len())
    }
}

impl Codecs {
    /// Packs into `room`; `None` if it does not get smaller.
    fn pack(&mut self, algorithm: Algorithm, level: i32, plain: &[u8], room: &mut [u8]) -> Option<usize> {
        match algorithm {
            Algorithm::Zlib => {
                let at = self.deflate.iter().position(|(of, _)| *of == level).unwrap_or_else(|| {
                    // -1 is the library's own choice.
                    let wanted = u32::try_from(level).map_or_else(|_| Compression::default(), Compression::new);
                    self.deflate.push((level, Compress::new(wanted, true)));
                    self.deflate.len() - 1
                });
                let (_, deflate) = self.deflate.get_mut(at)?;
                deflate.reset();
                match deflate.compress(plain, room, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => usize::try_from(deflate.total_out()).ok(),
                    _ => None,
                }
            }
            Algorithm::Zstd => {
                if self.zstd.as_ref().is_none_or(|(of, _)| *of != level) {
                    self.zstd = Some((level, zstd::bulk::Compressor::new(level).ok()?));
                }
                let (_, compressor) = self.zstd.as_mut()?;
                compressor.compress_to_buffer(plain, room).ok()
            }
        }
    }

    fn lend(&mut self, algorithm: Algorithm) -> Result<Decoder, Malformed> {
        match algorithm {
            Algorithm::Zlib => {
                let mut inflate = self.inflates.pop().unwrap_or_else(|| Decompress::new(true));
                inflate.reset(true);
                Ok(Decoder::Zlib(inflate))
            }
            Algorithm::Zstd => {
                let fresh = || {
                    let mut decoder = zstd::stream::raw::Decoder::new()?;
                    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
                    Ok::<_, std::io::Error>(decoder)
                };
                let mut decoder = match self.unzstds.pop() {
                    Some(kept) => kept,
                    None => fresh().map_err(|_| Malformed::new("zstd cannot begin"))?,
                };
                decoder.reinit().map_err(|_| Malformed::new("zstd cannot begin"))?;
                Ok(Decoder::Zstd(Box::new(decoder)))
            }
        }
    }

    fn take_back(&mut self, decoder: Decoder, frame_len: usize) {
        match decoder {
            Decoder::Zlib(inflate) if self.inflates.len() < KEPT_MAX => self.inflates.push(inflate),
            Decoder::Zstd(decoder) if self.unzstds.len() < KEPT_MAX && frame_len <= KEPT_FRAME_MAX => self.unzstds.push(*decoder),
            _ => {}
        }
    }
}

enum Decoder {
    Zlib(Decompress),
    Zstd(Box<zstd::stream::raw::Decoder<'static>>),
}

/// What one step of unpacking has done.
struct Step {
    used: usize,
    made: usize,
    ended: bool,
}

impl Decoder {
    fn step(&mut self, input: &[u8], room: &mut [u8]) -> Result<Step, Malformed> {
        match self {
            Self::Zlib(inflate) => {
                let (read, made) = (inflate.total_in(), inflate.total_out());
                let status = inflate
                    .decompress(input, room, FlushDecompress::None)
                    .map_err(|_| Malformed::new("a compressed frame that is not zlib"))?;
                Ok(Step {
                    used: (inflate.total_in() - read) as usize,
                    made: (inflate.total_out() - made) as usize,
                    ended: matches!(status, Status::StreamEnd),
                })
            }
            Self::Zstd(decoder) => {
                let status =
                    decoder.run_on_buffers(input, room).map_err(|_| Malformed::new("a compressed frame that is not zstd"))?;
                // Before its first byte it asks for its header, which is more than nothing.
                Ok(Step { used: status.bytes_read, made: status.bytes_written, ended: status.remaining == 0 })
            }
        }
    }
}

enum State {
    /// So many bytes of the header are there.
    Header { bytes: [u8; HEADER_LEN], len: usize },
    /// So much comes as it is.
    Plain { left: usize },
    /// So many packed bytes are to come, and so many are to come of them. The last of those wait in `last` for the end of the frame: whoever gets
    /// the end of an answer may rely on nothing being behind it.
    Packed { left: usize, plain_left: usize, plain_len: usize, decoder: Decoder, last: Vec<u8> },
}

const BEGINNING: State = State::Header { bytes: [0; HEADER_LEN], len: 0 };

/// The largest frame of ours, unpacked: what does not get smaller gets a little larger, and a frame's length has three bytes.
const FRAME_PLAIN_MAX: usize = 0xFF_FFFF - PIECE_MAX / 2;

/// Packets on their way into frames as servers make them: several to a frame, but none cut, unless a frame cannot hold it: then by
/// the end of a full one. There are clients that cannot put together more.
#[derive(Debug, Default)]
struct Whole {
    /// Packets that are all there, and after them one of which some is missing. At most [`PIECE_MAX`].
    pending: Vec<u8>,
    /// Bytes of those that are all there.
    whole: usize,
    /// Bytes that are missing, once the header of the packet is there.
    left: usize,
    /// A packet that is larger than `pending` may be.
    large: Option<Large>,
    /// `pending` begins with so many bytes of a packet whose header is in the frame before.
    tail: usize,
    numbers: Numbering,
}

/// Numbers of the packets to a client. Servers count on through an answer, and take the number of the frame whenever they have read, or a result is over
/// and nothing is left of its frame. There are clients that look.
#[derive(Debug, Default)]
struct Numbering {
    next: u8,
    /// The next packet takes the number of its frame, if it is the first there.
    anew: bool,
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

/// Whether it may be the end of a result that others follow. A row can look so: nothing depends on it but how the next frame counts.
fn ends_one_of_several(payload: &[u8]) -> bool {
    let status = match *payload {
        [EOF_HEADER, _, _, low, high] => u16::from_le_bytes([low, high]),
        [OK_HEADER | EOF_HEADER, ..] => ok::Ok::read(payload, caps::PROTOCOL_41).map_or(0, |ok| ok.status),
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
    /// It is not packed.
    None,
}

/// Room for what comes out of an encoder in one step.
const ROOM: usize = 16 << 10;

impl Encoder {
    fn new(algorithm: Algorithm, level: i32, plain_len: usize) -> Self {
        match (algorithm, u32::try_from(level)) {
            (Algorithm::Zlib, Ok(0)) => Self::None,
            // Level 1 never stores what does not get smaller, and such a frame would grow beyond what its length can say.
            (Algorithm::Zlib, Ok(1)) => Self::new(algorithm, 2, plain_len),
            (Algorithm::Zlib, wanted) => {
                Self::Zlib(Box::new(Compress::new(wanted.map_or_else(|_| Compression::default(), Compression::new), true)))
            }
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
                    ((deflate.total_in() - read) as usize, (deflate.total_out() - made) as usize)
                }
                Self::Zstd(encoder) => {
                    packed.resize(at + room, 0);
                    let status =
                        encoder.run_on_buffers(plain, &mut packed[at..]).expect("a stream that has not ended takes more");
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
                    let status = deflate.compress(&[], &mut packed[at..], FlushCompress::Finish).expect("a stream can end");
                    ((deflate.total_out() - made) as usize, matches!(status, Status::StreamEnd))
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

/// Both directions of a connection that is compressed.
pub struct Frames {
    algorithm: Algorithm,
    level: i32,
    /// Number of the next frame that we send.
    seq: u8,
    /// The next frame that comes is the first of an answer to one frame of ours.
    first: bool,
    state: State,
    answers: Whole,
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frames({} {})", self.algorithm.name(), self.level)
    }
}

impl Frames {
    /// From the first byte after the login. A level that the algorithm has not becomes the nearest that it has.
    #[must_use]
    pub fn new(algorithm: Algorithm, level: i32) -> Self {
        let level = match algorithm {
            Algorithm::Zlib => level.clamp(-1, 9),
            Algorithm::Zstd => level.clamp(1, 22),
        };
        Self { algorithm, level, seq: 0, first: false, state: BEGINNING, answers: Whole::default() }
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

    /// A whole command is sent, and its answer is all that may come next. One of several frames may be answered before its end, and
    /// is not looked at.
    pub fn expect_answer(&mut self) {
        self.first = self.seq == 1;
    }

    /// Is what came a whole number of frames?
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Header { len: 0, .. })
    }

    /// Appends what goes over the wire for these bytes of packets, as servers do it: no packet is cut without need, and they are numbered after their frames.
    /// What is not a whole packet waits.
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
            let now = rest.len().min(packet::HEADER_LEN - (whole.pending.len() - whole.whole));
            whole.pending.extend_from_slice(&rest[..now]);
            rest = &rest[now..];
            let Some(head) = whole.pending[whole.whole..].first_chunk::<{ packet::HEADER_LEN }>() else { break };
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
            whole.large = Some(Large { encoder, packed, plain_len, left, beyond: total - plain_len });
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
        while let Some((head, rest)) = whole.pending[at..whole.whole].split_first_chunk_mut::<{ packet::HEADER_LEN }>() {
            let (len, _) = packet::header(head);
            *head = packet::make_header(len, whole.numbers.take(len, (at == 0).then_some(self.seq)));
            at += packet::HEADER_LEN + len;
            if at == whole.whole && ends_one_of_several(rest) {
                whole.numbers.anew = true;
            }
        }
        self.pack(&whole.pending[..whole.whole], out, lent);
        whole.pending.drain(..whole.whole);
        whole.whole = 0;
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
                len => lent.pack(self.algorithm, self.level, piece, &mut out[body..body + len - 1]),
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

    /// Takes bytes of the wire and puts what they hold into `out`, which is empty: of one frame only, so that the numbers of an answer follow the frames that were
    /// read, and at most [`PIECE_MAX`]. Returns how many bytes it took. If nothing was put there, all were taken and more are needed; if
    /// something was, there may be more even without further bytes.
    ///
    /// # Errors
    /// What came answers no command (see [`expect_answer`](Self::expect_answer)), is not packed as it says, or is longer or shorter unpacked than it says.
    pub fn unpack(&mut self, input: &[u8], out: &mut Vec<u8>, lent: &mut Codecs) -> Result<usize, Malformed> {
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
                State::Packed { left, plain_left, plain_len, decoder, last } => {
                    let before = out.len();
                    // When all is there, one byte of room shows whether there is more than was said.
                    let room = (*plain_left).clamp(1, PIECE_MAX);
                    out.resize(before + room, 0);
                    let step = decoder.step(&input[..input.len().min(*left)], &mut out[before..])?;
                    if step.made > *plain_left {
                        return Err(Malformed::new("a compressed frame that is longer than it says"));
                    }
                    out.truncate(before + step.made);
                    used += step.used;
                    *left -= step.used;
                    *plain_left -= step.made;
                    if step.ended {
                        if *plain_left > 0 {
                            return Err(Malformed::new("a compressed frame that is shorter than it says"));
                        }
                        if *left > 0 {
                            return Err(Malformed::new("a compressed frame with something behind its end"));
                        }
                        let plain_len = *plain_len;
                        if let State::Packed { decoder, last, .. } = std::mem::replace(&mut self.state, BEGINNING) {
                            out.extend_from_slice(&last);
                            lent.take_back(decoder, plain_len);
                        }
                    } else if step.used == 0 && step.made == 0 {
                        return match (*left, input.is_empty()) {
                            (0, _) => Err(Malformed::new("a compressed frame that does not end")),
                            (_, true) => Ok(used),
                            (_, false) => Err(Malformed::new("a compressed frame that makes no progress")),
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

/// Fuzz target: any bytes as frames, cut anywhere: never more than the headers say; and any bytes packed come out again.
pub fn fuzz_frame(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    let algorithm = if how & 1 == 0 { Algorithm::Zlib } else { Algorithm::Zstd };
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
    assert_eq!(all(&mut frames, &packed, &mut codecs).as_deref(), Ok(packets.as_slice()));
    // Numbers are another matter where it says that a result follows; its bytes are its own wherever it is cut.
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
mod tests {
    use super::*;

    fn text(len: usize) -> Vec<u8> {
        (0..len).flat_map(|n| format!("{} sacks, ", n * n % 977).into_bytes()).take(len).collect()
    }

    /// All that comes of these bytes, given in pieces.
    fn unpacked(frames: &mut Frames, bytes: &[u8], piece: usize) -> Result<Vec<u8>, Malformed> {
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

    const ALL: [(Algorithm, std::ops::RangeInclusive<i32>); 2] = [(Algorithm::Zlib, -1..=9), (Algorithm::Zstd, 1..=22)];

    #[test]
    fn what_a_server_says_unasked_is_not_taken_for_an_answer() {
        let (mut ours, mut theirs) = (Frames::new(Algorithm::Zlib, 3), Frames::new(Algorithm::Zlib, 3));
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
        theirs.unpack(&command, &mut Vec::new(), &mut codecs).unwrap();
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
                assert!(level == 0 || packed.len() < plain.len() / 2, "{algorithm:?} {level}: {}", packed.len());
                assert!(unpacked(&mut frames, &packed, 16 << 10) == Ok(plain.clone()), "{algorithm:?} {level}");
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
                assert!(unpacked(&mut frames, &packed, piece) == Ok(plain.clone()), "{algorithm:?} {piece}");
            }
        }
    }

    /// Lengths of the frames, unpacked.
    fn lengths(mut packed: &[u8]) -> Vec<usize> {
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
            (&[packet::MAX_PAYLOAD + 300, 7], &[FRAME_PLAIN_MAX, PIECE_MAX / 2 + 4 + 304 + 11]),
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
                    assert!(unpacked(&mut frames, &packed, 16 << 10) == Ok(plain.clone()), "{algorithm:?} {lens:?}");
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
            let frame = &rest[..HEADER_LEN + u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
            let mut plain = unpacked(&mut Frames::new(Algorithm::Zlib, 3), frame, usize::MAX).expect("sound");
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
            payloads.iter().for_each(|payload| packet::append(&mut bytes, &mut 77, payload));
            bytes
        };
        let (more, over) = (&[0xFE, 0, 0, 10, 0][..], &[0xFE, 0, 0, 2, 0][..]);
        let more_ok = &[0, 1, 0xFC, 1, 1, 10, 0, 0, 0][..];
        let (large, huge) = (&text(70_000)[..], &text(packet::MAX_PAYLOAD + 9)[..]);
        // What is given at once, and the numbers in its frames.
        type Case<'a> = (&'a [&'a [&'a [u8]]], &'a [&'a [u8]]);
        let cases: [Case<'_>; 7] = [
            (&[&[b"a", b"b"], &[b"c"]], &[&[1, 2], &[3]]),
            // The first frame ends with its result, so the next begins with the frame's number; in the same frame they go on.
            (&[&[b"a", b"b", b"c", more], &[b"d", over]], &[&[1, 2, 3, 4], &[2, 3]]),
            (&[&[b"a", b"b", b"c", more, b"d", over]], &[&[1, 2, 3, 4, 5, 6]]),
            (&[&[b"a", more_ok], &[b"d", over]], &[&[1, 2], &[2, 3]]),
            (&[&[b"a", b"b", over], &[b"d"]], &[&[1, 2, 3], &[4]]),
            (&[&[b"a", large, b"b"]], &[&[1], &[2], &[3]]),
            (&[&[b"a", more], &[huge, b"b"]], &[&[1, 2], &[2], &[3, 4]]),
        ];
        for (n, (calls, numbers)) in cases.iter().enumerate() {
            let (mut codecs, mut frames, mut packed) = (Codecs::default(), Frames::new(Algorithm::Zlib, 3), Vec::new());
            // Another answer before, and the command.
            frames.pack_whole(&framed(&[b"x", b"y", b"z"]), &mut Vec::new(), &mut codecs);
            frames.unpack(&[1, 0, 0, 0, 0, 0, 0, 3], &mut Vec::new(), &mut codecs).expect("sound");
            for call in *calls {
                frames.pack_whole(&framed(call), &mut packed, &mut codecs);
            }
            assert_eq!(packet_numbers(&packed), *numbers, "case {n}");
        }
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
                frames.unpack(&[*byte], &mut out, &mut codecs).expect("sound");
                made += out.len();
            }
            assert!(made == plain.len() && frames.is_between());
        }
    }

    #[test]
    fn little_and_what_does_not_get_smaller_goes_as_it_is() {
        let mut noise = 1u64;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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
            let (mut codecs, mut packed, mut frames) = (Codecs::default(), Vec::new(), Frames::new(algorithm, 1));
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
        assert!(matches!(deflate.compress(&plain, &mut deflated, FlushCompress::Finish), Ok(Status::StreamEnd)));
        deflated.truncate(usize::try_from(deflate.total_out()).expect("short"));
        for (algorithm, body) in
            [(Algorithm::Zlib, deflated), (Algorithm::Zstd, zstd::bulk::compress(&plain, 19).expect("packed"))]
        {
            let [a, b, c, _] = (body.len() as u32).to_le_bytes();
            let mut bytes = vec![a, b, c, 9, 0xFF, 0xFF, 0xFF];
            bytes.extend_from_slice(&body);
            let (mut codecs, mut frames) = (Codecs::default(), Frames::new(algorithm, 3));
            let (mut used, mut made) = (0, 0);
            loop {
                let mut out = Vec::new();
                used += frames.unpack(&bytes[used..], &mut out, &mut codecs).expect("sound");
                assert!(out.len() <= PIECE_MAX && out.iter().all(|byte| *byte == b'x'));
                if out.is_empty() {
                    break;
                }
                made += out.len();
            }
            assert_eq!((used, made, frames.is_between(), frames.seq), (bytes.len(), plain.len(), true, 10));
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
                unpacked(&mut Frames::new(algorithm, 3), &bytes, 1_000).map(|made| made.len()).map_err(|why| why.what)
            };
            assert_eq!(said(&|_| {}), Ok(5_000));
            assert_eq!(said(&|bytes| bytes[4] -= 1), Err("a compressed frame that is longer than it says"));
            assert_eq!(said(&|bytes| bytes[4] += 1), Err("a compressed frame that is shorter than it says"));
            assert_eq!(said(&|bytes| bytes[6] = 0xFF), Err("a compressed frame that is shorter than it says"));
            assert_eq!(said(&|bytes| bytes[0] -= 1), Err("a compressed frame that does not end"));
            let longer = |bytes: &mut Vec<u8>| {
                bytes[0] += 1;
                bytes.push(0);
            };
            assert_eq!(said(&longer), Err("a compressed frame with something behind its end"));
            assert!(said(&|bytes| bytes[7] ^= 0xFF).is_err());
            assert_eq!(said(&|bytes| bytes[..3].fill(0)), Err("a compressed frame without content"));
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
