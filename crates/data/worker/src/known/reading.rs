//! Flags of how texts of a session are read.

use backend::MODES;

pub(crate) const fn bits(ids: &[u8]) -> u128 {
    let (mut all, mut at) = (0, 0);
    while at < ids.len() {
        all |= 1 << ids[at];
        at += 1;
    }
    all
}

/// How servers read a session's texts, as the flags of its last answer said, or before any, as
/// servers say by themselves; and how sure that is. In the two bytes of the flags, because every
/// idle session has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reading(u16);

impl Reading {
    /// An answer has told it.
    pub(crate) const TOLD: u16 = 1;

    /// Texts are read in both ways.
    pub(crate) const UNSURE: u16 = 2;

    /// A server has read a text otherwise than it was read here.
    pub(crate) const DOUBTS: u16 = 4;

    /// A statement may have set a character set, and its text does not tell which.
    pub(crate) const CHARSET: u16 = 8;

    /// Of the status flags those that tell of its `sql_mode`: [`MODES`].
    pub(crate) const fn flags(self) -> u16 {
        self.0 & MODES
    }

    /// As a number, for [`Reading::of_bits`].
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// As another process has said it.
    pub(crate) const fn of_bits(bits: u16) -> Self {
        Self(bits)
    }

    pub(crate) const fn set_flags(&mut self, flags: u16) {
        self.0 = self.0 & !MODES | flags & MODES;
    }

    pub(crate) const fn is(self, what: u16) -> bool {
        self.0 & what != 0
    }

    pub(crate) const fn put(&mut self, what: u16, on: bool) {
        if on { self.0 |= what } else { self.0 &= !what }
    }
}

const _: () = assert!(
    MODES & (Reading::TOLD | Reading::UNSURE | Reading::DOUBTS | Reading::CHARSET) == 0,
    "a flag of servers is one of ours"
);
