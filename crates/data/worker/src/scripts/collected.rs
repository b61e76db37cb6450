//! Answers that somebody reads before the client does: they are gathered, in a bounded piece of memory, or
//! only followed on their way.

use crate::scripts::rows::Through;
use rt::{Chunk, Instant};
use wire::caps::Caps;
use wire::response::{Expect, Response};

/// The packets of one answer, as the client would have got them.
pub(crate) struct Collected {
    bytes: Vec<u8>, // <= len_max
    /// Where the last piece of them begins.
    last: usize, // <= bytes.len()
    /// None where it goes on as it comes.
    len_max: Option<usize>,
    /// There was more.
    is_cut: bool,
    response: Response,
    seen: u64,
    first: Option<Instant>,
    /// Who collects what goes on.
    behind: Option<Box<Self>>,
    /// A script that sees rows as they come.
    through: Option<Box<Through>>,
}

impl Collected {
    /// Gathers so many bytes at most.
    pub(crate) fn up_to(len_max: usize, expect: Expect, caps: Caps) -> Self {
        Self {
            len_max: Some(len_max),
            ..Self::by_the_way(expect, caps)
        }
    }

    /// Follows an answer that goes on as it comes.
    pub(crate) fn by_the_way(expect: Expect, caps: Caps) -> Self {
        Self {
            bytes: Vec::new(),
            last: 0,
            len_max: None,
            is_cut: false,
            response: Response::expect(expect, caps),
            seen: 0,
            first: None,
            behind: None,
            through: None,
        }
    }

    /// Has a script see rows as they come. An answer that it does not see as rows is gathered.
    pub(crate) fn by_way_of(through: Through, expect: Expect, caps: Caps) -> Self {
        Self {
            through: Some(Box::new(through)),
            ..Self::by_the_way(expect, caps)
        }
    }

    /// The script that sees rows as they come.
    pub(crate) fn through(&self) -> Option<&Through> {
        self.through.as_deref()
    }

    /// Stands in front of somebody else who collects.
    pub(crate) fn in_front_of(&mut self, other: Self) {
        self.behind = Some(Box::new(other));
    }

    /// Whoever was behind it.
    pub(crate) fn take_behind(&mut self) -> Option<Self> {
        self.behind.take().map(|behind| *behind)
    }

    /// Whether it has gone on as it came, or as a script has made it on its way.
    pub(crate) fn goes_by(&self) -> bool {
        let is_kept = |through: &Through| through.passage().is_kept();
        self.len_max.is_none() && !self.through().is_some_and(is_kept)
    }

    /// All that was said, framed; none if there was more than it may hold.
    pub(crate) fn whole(self) -> Option<Vec<u8>> {
        (!self.is_cut).then_some(self.bytes)
    }

    /// The answer as far as it has come.
    pub(crate) fn response(&self) -> &Response {
        &self.response
    }

    /// Bytes of it.
    pub(crate) fn bytes(&self) -> u64 {
        self.seen
    }

    /// When the first of it came.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.first
    }

    /// Takes a piece; gives back what goes on.
    pub(crate) fn add(&mut self, piece: Chunk, now: Instant) -> Option<Chunk> {
        self.first.get_or_insert(now);
        self.seen += piece.len() as u64;
        // What we have written ourselves is well formed.
        let _followed = self.response.follow(&piece);
        let piece = match &mut self.through {
            None => piece,
            Some(through) => {
                let out = through.take(&piece);
                if through.passage().is_kept() {
                    self.last = self.bytes.len();
                    self.bytes.extend_from_slice(&out);
                    return None;
                }
                if out.is_empty() {
                    return None;
                }
                Chunk::from(out)
            }
        };
        let Some(len_max) = self.len_max else {
            return match &mut self.behind {
                None => Some(piece),
                Some(behind) => behind.add(piece, now),
            };
        };
        self.is_cut |= piece.len() > len_max - self.bytes.len();
        if self.is_cut {
            (self.bytes, self.last) = (Vec::new(), 0);
        } else {
            self.last = self.bytes.len();
            self.bytes.extend_from_slice(&piece);
        }
        None
    }

    /// Takes out what it has gathered: a client is asked for something in the middle of its answer.
    /// The question stands apart, as a server sends it.
    pub(crate) fn interrupt(&mut self) -> [Vec<u8>; 2] {
        self.response.resume();
        match &mut self.behind {
            None => {
                let asked = self.bytes.split_off(std::mem::take(&mut self.last));
                [std::mem::take(&mut self.bytes), asked]
            }
            Some(behind) => behind.interrupt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::caps;

    const OK: [u8; 11] = [7, 0, 0, 1, 0, 3, 0, 2, 0, 0, 0];

    fn now() -> Instant {
        Instant::from_ns(1)
    }

    #[test]
    fn an_answer_that_is_too_long_is_not_kept_in_part() {
        let whole = |len_max| {
            let mut collected = Collected::up_to(len_max, Expect::Simple, caps::PROTOCOL_41);
            for piece in [&OK[..5], &OK[5..]] {
                assert!(collected.add(piece.into(), now()).is_none());
            }
            (collected.response().affected_rows(), collected.whole())
        };
        assert_eq!(whole(11), (3, Some(OK.to_vec())));
        assert_eq!(whole(10), (3, None));
    }

    #[test]
    fn an_answer_that_goes_by_is_followed_and_collected_behind() {
        let mut by = Collected::by_the_way(Expect::Simple, caps::PROTOCOL_41);
        assert_eq!(by.add(OK[..].into(), now()).as_deref(), Some(&OK[..]));
        let mut by = Collected::by_the_way(Expect::Simple, caps::PROTOCOL_41);
        by.in_front_of(Collected::up_to(20, Expect::Simple, caps::PROTOCOL_41));
        assert!(by.add(OK[..].into(), now()).is_none());
        assert_eq!(by.response().affected_rows(), 3);
        let behind = by.take_behind().unwrap();
        assert_eq!(behind.whole().as_deref(), Some(&OK[..]));
    }
}
