//! A response that a client gets as it comes, but for session changes that it did not ask for, a
//! byte that says that definitions of columns follow, and definitions of another form.
//!
//! The server may have been asked to tell more than the client was to hear, or agreed with us on
//! less than the client did. Bytes pass untouched while it tells nothing; of a packet that may have
//! to be changed none is passed on before all of it is here.

use super::{Expect, Follow, Response, Taken, Watch};
use crate::caps::{self, Caps};
use crate::packet::{self, HEADER_LEN};
use crate::track::Wish;
use crate::{Malformed, definition, ok};
use std::sync::Arc;

/// Follows one response to a client with the caps of the server, but for those that say whether
/// definitions follow and what they tell.
#[derive(Debug)]
pub struct Sift {
    response: Response,
    caps: Caps,
    client: Caps,
    wish: Option<Arc<Wish>>,
    /// The beginning of a packet that may have to be changed: the client has not got it yet.
    back: Vec<u8>, // <= HEADER_LEN + TAKEN_LEN_MAX
}

/// Bytes that are to be passed on.
#[derive(Debug, PartialEq, Eq)]
pub enum Sifted {
    /// So many bytes of the chunk, as they are.
    AsIs(usize),
    /// These instead.
    Instead(Vec<u8>),
}

impl Sift {
    /// As [`Response::expect`], on a connection with `server`'s caps; the client is told no other
    /// changes than it wished for, all if that is `None`.
    #[must_use]
    pub fn expect(expect: Expect, server: Caps, client: Caps, wish: Option<Arc<Wish>>) -> Self {
        let mut response = Response::expect(expect, server);
        response.take_definitions_for(client);
        Self {
            response,
            caps: server,
            client,
            wish,
            back: Vec::new(),
        }
    }

    /// Whether a client with these caps can be answered so.
    #[must_use]
    pub const fn is_enough(server: Caps, client: Caps) -> bool {
        (server ^ client) & (caps::DEPRECATE_EOF | caps::SESSION_TRACK) == 0
            && (!caps::tells_of_definitions(server) || caps::tells_of_definitions(client))
    }

    /// As [`Response::to_packet`].
    #[must_use]
    pub fn to_packet(mut self, sent: u8) -> Self {
        self.response = self.response.to_packet(sent);
        self
    }

    /// The response, as the server gives it.
    #[must_use]
    pub const fn response(&self) -> &Response {
        &self.response
    }

    /// As [`Response::resume`].
    pub fn resume(&mut self) {
        self.response.resume();
    }

    /// As [`Response::follow`], with what the client is to get.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<(Sifted, Follow), Malformed> {
        let adds = !caps::tells_of_definitions(self.caps);
        let adds = Adds {
            columns: adds && caps::tells_of_definitions(self.client),
            prepared: adds && caps::has(self.client, caps::OPTIONAL_METADATA),
        };
        let mut look = Look {
            caps: self.caps,
            wished: self.wish.is_some(),
            adds,
            found: Vec::new(),
        };
        let followed = self.response.walk(bytes, &mut look)?;
        let (used, later) = match followed {
            Follow::Ended { used } => (used, 0),
            Follow::More => (bytes.len(), self.response.held.len()),
        };
        if look.found.is_empty() && self.back.is_empty() && later == 0 {
            return Ok((Sifted::AsIs(used), followed));
        }
        let before = self.back.len();
        let mut all = std::mem::take(&mut self.back);
        all.extend_from_slice(&bytes[..used]);
        let mut out = Vec::with_capacity(all.len());
        let mut from = 0;
        for Found { at, len, seq, how } in look.found {
            // What was cut began where that began that was kept back.
            let at = at.map_or(0, |at| at + before);
            out.extend_from_slice(&all[from..at]);
            from = at + HEADER_LEN + len;
            self.write(&mut out, seq, &all[at + HEADER_LEN..from], how);
        }
        let to = all.len() - later; // held has no more than what came and was kept back
        out.extend_from_slice(&all[from..to]);
        self.back = all.split_off(to);
        Ok((Sifted::Instead(out), followed))
    }

    fn write(&self, out: &mut Vec<u8>, mut seq: u8, payload: &[u8], how: How) {
        packet::append_with(out, &mut seq, |out| match how {
            How::WithByte => {
                out.extend_from_slice(payload);
                out.push(1);
            }
            How::Defined => definition::write(out, payload, self.caps, self.client),
            How::WithWished => match (ok::Ok::read(payload, self.caps), &self.wish) {
                (Ok(said), Some(wish)) => {
                    let changes = wish.of(said.changes);
                    let said = said.with_changes(&changes);
                    if payload[0] == ok::OK_HEADER {
                        said.write(out, self.caps)
                    } else {
                        said.write_end(out, self.caps)
                    }
                }
                _ => out.extend_from_slice(payload),
            },
        });
    }
}

/// Looks for OK packets with changes, for definitions of another form, and for packets to which the
/// byte is to be added.
struct Look {
    caps: Caps,
    wished: bool,
    adds: Adds,
    found: Vec<Found>,
}

/// Where a byte says that definitions follow, and the server has not said so.
#[derive(Clone, Copy)]
struct Adds {
    columns: bool,
    prepared: bool,
}

/// A packet that the client gets changed.
struct Found {
    /// Where its header begins in the chunk, if all of it lies there.
    at: Option<usize>,
    len: usize,
    seq: u8,
    how: How,
}

/// How a packet is changed.
#[derive(Clone, Copy)]
enum How {
    /// Behind it a byte says that definitions follow.
    WithByte,
    /// Definition in the client's form.
    Defined,
    /// Packet that tells the session changes that were wished for.
    WithWished,
}

impl Watch for Look {
    fn take(&mut self, taken: Taken, seq: u8, payload: &[u8], at: Option<usize>) {
        let may_tell = self.wished && matches!(taken, Taken::Ok | Taken::End) && payload.len() >= 7;
        let how = match taken {
            Taken::Columns if self.adds.columns => How::WithByte,
            Taken::Prepared if self.adds.prepared => How::WithByte,
            Taken::Definition => How::Defined,
            _ if may_tell
                && ok::Ok::read(payload, self.caps).is_ok_and(|ok| !ok.changes.is_empty()) =>
            {
                How::WithWished
            }
            _ => return,
        };
        self.found.push(Found {
            at,
            len: payload.len(),
            seq,
            how,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};
    use crate::status;

    const CAPS: Caps = caps::PROTOCOL_41 | caps::SESSION_TRACK | caps::DEPRECATE_EOF;

    fn answer(changes: &[u8], last: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let ok = |seq: u8, status: u16, changes: &[u8], out: &mut Vec<u8>| {
            let mut seq = seq;
            packet::append_with(out, &mut seq, |payload| {
                ok::Ok {
                    status,
                    changes,
                    info: b"words",
                    ..ok::Ok::default()
                }
                .write(payload, CAPS);
            });
        };
        ok(1, status::MORE_RESULTS, changes, &mut out);
        let mut writer = Writer::new(&mut out, 1, CAPS, status::MORE_RESULTS);
        writer.columns(&[Column::text("c")]);
        for row in ["a", "a longer row than that"] {
            writer.text_row([Some(row.as_bytes())]);
        }
        writer.end(0);
        ok(7, 2, last, &mut out);
        out
    }

    fn sifted(bytes: &[u8], piece: usize, wish: &Arc<Wish>) -> Vec<u8> {
        let mut sift = Sift::expect(Expect::Query, CAPS, CAPS, Some(wish.clone())).to_packet(0);
        let mut got = Vec::new();
        for chunk in bytes.chunks(piece) {
            match sift.follow(chunk).unwrap().0 {
                Sifted::AsIs(n) => got.extend_from_slice(&chunk[..n]),
                Sifted::Instead(out) => got.extend(out),
            }
        }
        assert!(sift.response().is_ended());
        got
    }

    #[test]
    fn only_changes_that_were_asked_for_pass_however_the_answer_is_cut() {
        let (mine, theirs) = (&b"\x01\x05\x04test"[..], &b"\x02\x011"[..]);
        let wish = Arc::new(Wish::new("", true, false));
        for (came, wanted) in [
            ((mine, mine), (mine, mine)),
            ((theirs, mine), (&b""[..], mine)),
            ((&[theirs, mine].concat()[..], theirs), (mine, &b""[..])),
            ((&b""[..], &b""[..]), (&b""[..], &b""[..])),
        ] {
            let (came, wanted) = (answer(came.0, came.1), answer(wanted.0, wanted.1));
            for piece in (1..40).chain([came.len()]) {
                assert_eq!(sifted(&came, piece, &wish), wanted, "{piece}");
            }
        }
    }

    #[test]
    fn what_tells_nothing_passes_as_it_is() {
        let bytes = answer(b"", b"");
        let mut sift =
            Sift::expect(Expect::Query, CAPS, CAPS, Some(Arc::new(Wish::default()))).to_packet(0);
        let (all, end) = sift.follow(&bytes).unwrap();
        assert_eq!(
            (all, end),
            (
                Sifted::AsIs(bytes.len()),
                Follow::Ended { used: bytes.len() }
            )
        );
    }

    #[test]
    fn a_byte_is_added_where_the_client_expects_one_however_the_answer_is_cut() {
        for byte in [
            caps::OPTIONAL_METADATA,
            caps::MARIADB_CACHE_METADATA,
            caps::MARIADB_EXTENDED_TYPES,
            caps::MARIADB_EXTENDED_TYPES | caps::OPTIONAL_METADATA,
        ] {
            let client = CAPS | byte;
            let result = |caps| {
                let mut out = Vec::new();
                let mut writer = Writer::new(&mut out, 0, caps, status::MORE_RESULTS);
                for names in [&["a", "b"][..], &["c"]] {
                    writer.columns(
                        &names
                            .iter()
                            .map(|name| Column::text(*name))
                            .collect::<Vec<_>>(),
                    );
                    writer.text_row(names.iter().map(|name| Some(name.as_bytes())));
                    writer.end(0);
                    writer.status = 2;
                }
                out
            };
            let prepared = |caps| {
                let mut out = Vec::new();
                Writer::new(&mut out, 0, caps, 2).prepared(7, 2, &[Column::text("a")]);
                out
            };
            assert!(Sift::is_enough(CAPS, client));
            for (expect, came, wanted) in [
                (Expect::Query, result(CAPS), result(client)),
                (Expect::Prepare, prepared(CAPS), prepared(client)),
            ] {
                for piece in (1..60).chain([1000]) {
                    let mut sift = Sift::expect(expect, CAPS, client, None).to_packet(0);
                    let mut got = Vec::new();
                    for chunk in came.chunks(piece) {
                        match sift.follow(chunk).unwrap().0 {
                            Sifted::AsIs(n) => got.extend_from_slice(&chunk[..n]),
                            Sifted::Instead(out) => got.extend(out),
                        }
                    }
                    assert_eq!(got, wanted, "{piece}");
                }
            }
        }
    }
}
