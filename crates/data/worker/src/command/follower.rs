//! Bytes of a response on their way to a client, followed to its end.

use crate::known::answer::Turn;
use rt::Chunk;
use std::sync::Arc;
use wire::caps;
use wire::caps::Caps;
use wire::outline::{Count, Outline};
use wire::response::{Again, Expect, Follow, Outcome, Recode, Response, Sift, Sifted};
use wire::track::Wish;

/// [`Follower::new`] or [`Follower::anew`].
pub(crate) type MakeFollower =
    fn(Expect, (Caps, Caps), Option<Arc<Wish>>, Turn, u8, Flags) -> Follower;

/// SERVER_STATUS_* flags that a client is told though they are not in the server's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flags {
    /// Those of the connection before the command, for an EOF that the server does not send.
    pub(crate) before: u16,
    /// Those of transactions that the session has open on other connections. A driver that is told
    /// of no transaction sends no COMMIT.
    pub(crate) elsewhere: u16,
}

/// Whoever follows the response.
pub(crate) enum Follower {
    Same(Response),
    /// The server tells more than the client asked for, or a byte less than it expects.
    Sifted(Sift),
    /// The client does not speak as the server does.
    Other(Recode),
    /// All of it was known when it came.
    Known(Again),
}

impl Follower {
    pub(crate) fn response(&self) -> &Response {
        match self {
            Self::Same(response) => response,
            Self::Sifted(sift) => sift.response(),
            Self::Other(recode) => recode.response(),
            Self::Known(again) => &again.response,
        }
    }

    pub(crate) fn new(
        expect: Expect,
        (server, client): (Caps, Caps),
        wish: Option<Arc<Wish>>,
        turn: Turn,
        sent: u8,
        flags: Flags,
    ) -> Self {
        // What was sent may have been longer or shorter than what came.
        let ahead = turn.sent.wrapping_sub(sent);
        let remembers =
            expect == Expect::Execute && caps::has(client, caps::MARIADB_CACHE_METADATA);
        let as_said = ahead == 0 && !turn.more && flags.elsewhere == 0;
        if as_said && !remembers && Sift::is_enough(server, client) {
            match wish.filter(|_| caps::has(client, caps::SESSION_TRACK)) {
                None if !Recode::is_needed(server, client) => {
                    Self::Same(Response::expect(expect, server).to_packet(sent))
                }
                wish => Self::Sifted(Sift::expect(expect, server, client, wish).to_packet(sent)),
            }
        } else {
            Self::anew(expect, (server, client), wish, turn, sent, flags)
        }
    }

    /// Writes the response anew, whatever it is.
    pub(crate) fn anew(
        expect: Expect,
        (server, client): (Caps, Caps),
        wish: Option<Arc<Wish>>,
        turn: Turn,
        sent: u8,
        flags: Flags,
    ) -> Self {
        Self::Other(
            Recode::expect(expect, server, client, flags.before)
                .to_packet(sent)
                .after(turn.sent.wrapping_sub(sent), turn.more)
                .besides(flags.elsewhere)
                .telling(wish),
        )
    }

    /// The client knows of so many columns of what is executed, and the response begins here: with
    /// others it is written anew, since its flags say so. `anew` makes who does it.
    pub(crate) fn knowing(&mut self, columns: u16, begins: &[u8], anew: impl FnOnce() -> Self) {
        if !Count::of(begins).may_differ(columns) {
            return;
        }
        if !matches!(self, Self::Other(_)) {
            *self = anew();
        }
        if let Self::Other(recode) = self {
            recode.knowing(columns);
        }
    }

    /// Tells the client this insert id, where rows were numbered here.
    pub(crate) fn numbering(mut self, first: u64) -> Self {
        if let Self::Other(recode) = &mut self {
            recode.numbering(first);
        }
        self
    }

    /// Number of the last packet that the client was sent.
    pub(crate) fn last_seq(&self) -> u8 {
        match self {
            Self::Same(response) => response.last_seq(),
            Self::Sifted(sift) => sift.response().last_seq(),
            Self::Other(recode) => recode.last_seq(),
            Self::Known(again) => again.last_seq,
        }
    }

    /// Returns the outline of the executed statement's columns that the client remembers now, if it
    /// was `before`.
    pub(crate) fn outline(&self, before: Option<Outline>) -> Option<Outline> {
        let recoded = if let Self::Other(recode) = self {
            recode.told()
        } else {
            None
        };
        if self.response().columns() == 0 {
            before
        } else {
            recoded
        }
    }

    /// Nothing of the answer reached the client: it remembers what it did `before`.
    pub(crate) fn told_nothing(&mut self, before: Option<Outline>) {
        if let Self::Other(recode) = self {
            recode.spare(before, true);
        }
    }

    /// Number of the packet that the server expects next.
    pub(crate) fn expected(&self) -> u8 {
        self.response().last_seq().wrapping_add(1)
    }

    /// The file that the server wanted was sent.
    pub(crate) fn resume(&mut self) {
        match self {
            Self::Same(response) => response.resume(),
            Self::Sifted(sift) => sift.resume(),
            Self::Other(recode) => recode.resume(),
            Self::Known(_) => {}
        }
    }

    /// Follows a response that is whole in these bytes, ends well and is all there is. What the client
    /// gets for it, if not these very bytes. `None` for any other, of which something may have been
    /// followed.
    pub(crate) fn whole(&mut self, came: &Chunk) -> Option<Option<Chunk>> {
        let (follow, out) = match self {
            Self::Same(response) => (response.follow(came).ok()?, None),
            Self::Sifted(sift) => {
                let (passed, follow) = sift.follow(came).ok()?;
                match passed {
                    Sifted::AsIs(n) if n == came.len() => (follow, None),
                    Sifted::AsIs(_) => return None,
                    Sifted::Instead(out) => (follow, Some(Chunk::from(out))),
                }
            }
            Self::Other(recode) => {
                let mut out = Vec::with_capacity(came.len() + 16);
                (recode.follow(came, &mut out).ok()?, Some(Chunk::from(out)))
            }
            Self::Known(_) => return None,
        };
        let is_whole = matches!(follow, Follow::Ended { used } if used == came.len())
            && matches!(self.response().outcome(), Outcome::Ok);
        is_whole.then_some(out)
    }

    /// Follows what came; returns what the client is to get, and the end of the response among what
    /// came.
    pub(crate) fn follow(
        &mut self,
        chunk: Chunk,
    ) -> Result<(Chunk, Option<usize>), wire::Malformed> {
        match self {
            Self::Same(response) => match response.follow(&chunk)? {
                Follow::More => Ok((chunk, None)),
                Follow::Ended { used } => {
                    let mut chunk = chunk;
                    chunk.truncate(used);
                    Ok((chunk, Some(used)))
                }
            },
            Self::Sifted(sift) => {
                let (passed, follow) = sift.follow(&chunk)?;
                let end = if let Follow::Ended { used } = follow {
                    Some(used)
                } else {
                    None
                };
                let out = match passed {
                    Sifted::AsIs(n) => {
                        let mut chunk = chunk;
                        chunk.truncate(n);
                        chunk
                    }
                    Sifted::Instead(out) => Chunk::from(out),
                };
                Ok((out, end))
            }
            Self::Other(recode) => {
                let mut out = Vec::with_capacity(chunk.len() + 16);
                match recode.follow(&chunk, &mut out)? {
                    Follow::More => Ok((Chunk::from(out), None)),
                    Follow::Ended { used } => Ok((Chunk::from(out), Some(used))),
                }
            }
            Self::Known(_) => Err(wire::Malformed::new("bytes behind the end of an answer")),
        }
    }
}
