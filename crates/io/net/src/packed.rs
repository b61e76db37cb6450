//! Compression of a connection: frames between the packets and the socket, or TLS.

use rt::Chunk;
use std::cell::RefCell;
use wire::Malformed;
use wire::frame::{Algorithm, Codecs, Frames};
use wire::packet::Numbers;

thread_local! {
    /// Each packs or unpacks one frame at a time for some connection of this core; one for each
    /// connection would be a quarter of a megabyte.
    static CODECS: RefCell<Codecs> = RefCell::default();
}

/// State that a compressed connection has beyond another.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) frames: Frames,
    /// Bytes that came and were not looked at.
    unread: Chunk,
    answers: Option<Answers>,
}

/// Packets of a server. With compression it numbers them after the frames that it was sent, not
/// after the packets, and nobody who compresses looks. A client of ours may, so they are numbered
/// as they would be without.
#[derive(Debug, Default)]
struct Answers {
    sent: Numbers,
    received: Numbers,
    next: u8,
}

impl Packed {
    pub(crate) fn to_client(algorithm: Algorithm, level: i32) -> Self {
        Self {
            frames: Frames::new(algorithm, level),
            unread: Chunk::empty(),
            answers: None,
        }
    }

    pub(crate) fn to_server(algorithm: Algorithm, level: i32) -> Self {
        Self {
            answers: Some(Answers::default()),
            ..Self::to_client(algorithm, level)
        }
    }

    /// Takes in bytes that came; there must be nothing left of those that came before.
    pub(crate) fn feed(&mut self, bytes: Chunk) {
        debug_assert!(self.unread.is_empty());
        self.unread = bytes;
    }

    /// The next bytes; none if more has to come before.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::new();
        let used =
            CODECS.with_borrow_mut(|codecs| self.frames.unpack(&self.unread, &mut out, codecs))?;
        self.unread.advance(used);
        if self.unread.is_empty() {
            // A buffer of the pool goes back.
            self.unread = Chunk::empty();
        }
        if let Some(Answers { received, next, .. }) = &mut self.answers {
            received.each(&mut out, |seq| {
                *seq = *next;
                *next = next.wrapping_add(1);
            });
        }
        Ok(out)
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.unread.is_empty() && self.frames.is_between()
    }

    /// Returns what goes over the wire for these bytes, which are as they were; a client gets none
    /// before a packet is whole.
    pub(crate) fn pack(&mut self, plain: &mut [u8]) -> Vec<u8> {
        let mut out = Vec::new();
        CODECS.with_borrow_mut(|codecs| match &mut self.answers {
            None => self.frames.pack_whole(plain, &mut out, codecs),
            Some(Answers { sent, next, .. }) => {
                sent.each(plain, |seq| *next = seq.wrapping_add(1));
                self.frames.pack(plain, &mut out, codecs);
            }
        });
        out
    }
}
