//! A result as it is kept, and as it is written for one client: with or without
//! CLIENT_DEPRECATE_EOF, MariaDB's extended types and the byte that says whether columns are
//! described, with that session's flags.

use crate::gathered::Said;
use crate::names::TableNames;
use crate::tables::Versions;
use std::sync::atomic::{AtomicBool, AtomicU64};
use wire::caps::{self, Caps};
use wire::outline::{Count, Outline};
use wire::packet::{self, HEADER_LEN, MAX_PAYLOAD};
use wire::{definition, ok, status};

/// Flags of a result that tell of the result, or of session state that is in its key. The others
/// are the session's.
const OF_THE_RESULT: u16 =
    status::NO_GOOD_INDEX | status::NO_INDEX | status::NO_BACKSLASH_ESCAPES | status::ANSI_QUOTES;

/// The packets of one result set, numbered as with CLIENT_DEPRECATE_EOF and without a byte behind
/// the number of columns, without its last packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    packets: Box<[u8]>,
    definitions_at: usize, // <= rows_at
    rows_at: usize,        // <= packets.len()
    /// Its columns are not described.
    bare: bool,
    /// [`caps::MARIADB_EXTENDED_TYPES`], if its columns are described with them, or nothing.
    types: Caps,
    /// Number of the last definition.
    definitions_seq: u8,
    /// Number of the last packet here.
    last_seq: u8,
    status: u16,
    rows: u64,
}

impl Made {
    /// Reads what was written for a client with these caps. `None` if it is anything but one whole
    /// result set without an error.
    pub(crate) fn read(bytes: &[u8], caps: Caps, said: Said) -> Option<Self> {
        let classic = !caps::has(caps, caps::DEPRECATE_EOF);
        let mut walk = Walk {
            bytes,
            at: 0,
            seq: 0,
        };
        let mut packets = Vec::with_capacity(bytes.len());
        let (columns, bare) = columns(walk.next()?, caps)?;
        let count = &bytes[HEADER_LEN..walk.at - usize::from(caps::tells_of_definitions(caps))];
        packets.extend_from_slice(&packet::make_header(count.len(), 1));
        packets.extend_from_slice(count);
        let (first, definitions_at) = (walk.at, packets.len());
        for _ in 0..if bare { 0 } else { columns } {
            let definition = walk.next()?;
            if definition.first() == Some(&ok::ERR_HEADER) {
                return None;
            }
        }
        packets.extend_from_slice(&bytes[first..walk.at]);
        let definitions_seq = walk.seq;
        if classic && !is_end(walk.next()?, true) {
            return None;
        }
        let shift = u8::from(classic);
        let rows_at = packets.len();
        let mut rows = 0;
        loop {
            let payload = walk.next()?;
            if is_end(payload, classic) {
                break;
            }
            if payload.first() == Some(&ok::ERR_HEADER) {
                return None;
            }
            rows += 1;
            packets.extend_from_slice(&packet::make_header(
                payload.len(),
                walk.seq.wrapping_sub(shift),
            ));
            packets.extend_from_slice(payload);
        }
        if walk.at != bytes.len() || rows != said.rows {
            return None;
        }
        let last_seq = walk.seq.wrapping_sub(1 + shift);
        let status = said.status & OF_THE_RESULT;
        Some(Self {
            packets: packets.into(),
            definitions_at,
            rows_at,
            bare,
            types: caps & caps::MARIADB_EXTENDED_TYPES,
            definitions_seq,
            last_seq,
            status,
            rows,
        })
    }

    /// Whether a client with these caps can read it.
    fn fits(&self, caps: Caps) -> bool {
        (!self.bare || caps::has(caps, caps::OPTIONAL_METADATA))
            && (!caps::has(caps, caps::MARIADB_EXTENDED_TYPES) || self.types != 0)
    }

    /// Appends it for a client with these caps. `session`: the flags of the session that gets it.
    /// `told`: what the client remembers of the columns, if it does.
    fn write(
        &self,
        out: &mut Vec<u8>,
        caps: Caps,
        session: u16,
        told: Option<&mut Option<Outline>>,
    ) {
        let end = ok::Ok {
            status: self.status | session,
            ..ok::Ok::default()
        };
        out.reserve(self.packets.len() + 32);
        let tells = caps::tells_of_definitions(caps);
        let differs = definition::differs(self.types, caps);
        if caps::has(caps, caps::DEPRECATE_EOF) && !tells && !differs {
            out.extend_from_slice(&self.packets);
            let mut seq = self.last_seq.wrapping_add(1);
            packet::append_with(out, &mut seq, |out| end.write_end(out, caps));
            return;
        }
        let (first, rest) = self.packets.split_at(self.definitions_at);
        let (definitions, rows) = rest.split_at(self.rows_at - self.definitions_at);
        let mut written = Vec::new();
        let definitions = if differs {
            definition::write_packets(&mut written, definitions, self.types, caps);
            &written
        } else {
            definitions
        };
        let spared = told.is_some_and(|told| self.spares(caps, definitions, told));
        packet::append_with(out, &mut 1, |out| {
            out.extend_from_slice(&first[HEADER_LEN..]);
            out.extend(tells.then_some(u8::from(!self.bare && !spared)));
        });
        // Packets that stand before each of the rows more or less than there are here.
        let mut shift = 0_u8;
        if spared {
            shift = shift.wrapping_sub(self.definitions_seq.wrapping_sub(1));
        } else {
            out.extend_from_slice(definitions);
        }
        if !caps::has(caps, caps::DEPRECATE_EOF) {
            shift = shift.wrapping_add(1);
            let mut seq = self.definitions_seq.wrapping_add(shift);
            packet::append_with(out, &mut seq, |out| ok::write_eof(out, 0, end.status));
        }
        let mut at = out.len();
        out.extend_from_slice(rows);
        while let Some(header) = out
            .get_mut(at..)
            .and_then(|rest| rest.first_chunk_mut::<HEADER_LEN>())
        {
            let (len, seq) = packet::header(header);
            header[3] = seq.wrapping_add(shift);
            at += HEADER_LEN + len;
        }
        let mut seq = self.last_seq.wrapping_add(1).wrapping_add(shift);
        packet::append_with(out, &mut seq, |out| end.write_end(out, caps));
    }

    /// Whether the client remembers these definitions; it does from now on.
    fn spares(&self, caps: Caps, definitions: &[u8], told: &mut Option<Outline>) -> bool {
        if !caps::has(caps, caps::MARIADB_CACHE_METADATA) || self.bare {
            return false;
        }
        let outline = columns(
            self.packets
                .get(HEADER_LEN..self.definitions_at)
                .unwrap_or_default(),
            0,
        )
        .and_then(|(columns, _)| Outline::of(definitions, columns));
        outline.is_some() && std::mem::replace(told, outline) == outline
    }
}

/// Whole packets that are numbered from 1 without a gap, none of them full.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    seq: u8,
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let (len, seq) = packet::header(rest.first_chunk::<HEADER_LEN>()?);
        self.seq = self.seq.wrapping_add(1);
        if len == MAX_PAYLOAD || seq != self.seq {
            return None;
        }
        let payload = rest.get(HEADER_LEN..HEADER_LEN + len)?;
        self.at += HEADER_LEN + len;
        Some(payload)
    }
}

fn is_end(payload: &[u8], classic: bool) -> bool {
    payload.first() == Some(&ok::EOF_HEADER)
        && if classic {
            payload.len() == 5
        } else {
            payload.len() >= 7
        }
}

/// Of the first packet of a result set, for a client with these caps: their number, and whether the
/// result does without their definitions.
fn columns(payload: &[u8], caps: Caps) -> Option<(u32, bool)> {
    let (count, follow) = match payload.split_last() {
        Some((follow, count)) if caps::tells_of_definitions(caps) => (count, *follow),
        _ => (payload, 1),
    };
    let columns = match *count {
        [n @ 1..=250] => u32::from(n),
        [0xFC, low, high] => u32::from(u16::from_le_bytes([low, high])),
        _ => return None,
    };
    // What its client remembers, others do not.
    (follow == 1 || caps::has(caps, caps::OPTIONAL_METADATA)).then_some((columns, follow == 0))
}

/// A result that is kept.
#[derive(Debug)]
pub struct Entry {
    /// Its packets.
    pub made: Made,
    /// When it was asked for, in nanoseconds of the runtime's clock: it cannot be older than that
    /// says.
    pub asked_at_ns: u64,
    /// When nobody may have it any more, whoever asks.
    pub until_ns: u64,
    /// Digest of the statement as it was sent.
    pub digest: u64,
    /// The tables that it reads, as far as the text tells.
    pub tables: TableNames,
    /// How often they had been written when it was asked for; `None` if nobody watched the writes.
    pub versions: Option<Versions>,
    pub(crate) hits: AtomicU64,
    /// One client fetches a newer one.
    pub(crate) renewing: AtomicBool,
}

impl Entry {
    /// A result to keep.
    #[must_use]
    pub const fn new(
        made: Made,
        asked_at_ns: u64,
        until_ns: u64,
        digest: u64,
        tables: TableNames,
        versions: Option<Versions>,
    ) -> Self {
        Self {
            made,
            asked_at_ns,
            until_ns,
            digest,
            tables,
            versions,
            hits: AtomicU64::new(0),
            renewing: AtomicBool::new(false),
        }
    }

    /// Whether a client with these caps can read it.
    #[must_use]
    pub fn fits(&self, caps: Caps) -> bool {
        self.made.fits(caps)
    }

    /// Whether it lacks only the types that a client with these caps is told, so that a newer one
    /// serves more.
    #[must_use]
    pub fn lacks_types(&self, caps: Caps) -> bool {
        !self.fits(caps) && self.fits(caps & !caps::MARIADB_EXTENDED_TYPES)
    }

    /// Appends it for a client with these caps, which it [fits](Self::fits). `session`:
    /// SERVER_STATUS_* flags of the session that gets it. `told`: what the client remembers of the
    /// columns of what it executes.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        caps: Caps,
        session: u16,
        told: Option<&mut Option<Outline>>,
    ) {
        self.made.write(out, caps, session, told);
    }

    /// Columns.
    #[must_use]
    pub const fn columns(&self) -> Count {
        Count::of(&self.made.packets)
    }

    /// Rows.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.made.rows
    }

    /// Bytes of its packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.made.packets.len()
    }

    /// Never: a result set has a packet at least.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.made.packets.is_empty()
    }

    /// How often it was given to somebody.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Bytes on the heap.
    pub(crate) fn heap_len(&self) -> usize {
        self.made.packets.len()
            + self.tables.heap_len()
            + self.versions.as_ref().map_or(0, Versions::heap_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::response::{Expect, Follow, Recode, Response};

    const NEW: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;
    const OLD: Caps = caps::PROTOCOL_41;

    /// Two columns and so many rows, as a server writes them; 0x0020 is NO_INDEX.
    fn response(caps: Caps, rows: usize, status: u16) -> Vec<u8> {
        let mut out = Vec::new();
        let mut seq = 1;
        packet::append(
            &mut out,
            &mut seq,
            if caps::tells_of_definitions(caps) {
                &[2, 1]
            } else {
                &[2]
            },
        );
        for name in [b"a", b"b"] {
            packet::append(&mut out, &mut seq, &[b"\x03def".as_slice(), name].concat());
        }
        if !caps::has(caps, caps::DEPRECATE_EOF) {
            packet::append_with(&mut out, &mut seq, |out| ok::write_eof(out, 0, status));
        }
        for n in 0..rows {
            packet::append(&mut out, &mut seq, format!("\x01x{n}").as_bytes());
        }
        let end = ok::Ok {
            status,
            ..ok::Ok::default()
        };
        packet::append_with(&mut out, &mut seq, |out| end.write_end(out, caps));
        out
    }

    fn said(rows: usize, status: u16) -> Said {
        Said {
            rows: rows as u64,
            status,
            warnings: 0,
        }
    }

    #[test]
    fn either_form_is_kept_as_one_and_written_as_both() {
        let flags = status::AUTOCOMMIT | status::NO_INDEX;
        for rows in [0, 1, 3, 300] {
            let new = Made::read(&response(NEW, rows, flags), NEW, said(rows, flags)).unwrap();
            let forms = [0, caps::OPTIONAL_METADATA, caps::MARIADB_CACHE_METADATA]
                .map(|byte| [NEW | byte, OLD | byte]);
            let forms = forms.as_flattened();
            for caps in forms {
                assert_eq!(
                    Made::read(&response(*caps, rows, flags), *caps, said(rows, flags)),
                    Some(new.clone())
                );
            }
            for caps in forms.iter().copied() {
                let mut out = Vec::new();
                new.write(&mut out, caps, status::AUTOCOMMIT, None);
                assert_eq!(out, response(caps, rows, flags), "{rows} rows");
            }
        }
    }

    #[test]
    fn types_of_columns_are_for_who_asked_for_them() {
        let written = |caps| {
            let mut out = Vec::new();
            let mut writer = wire::resultset::Writer::new(&mut out, 0, caps, 2);
            writer.columns(&[wire::resultset::Column::text("a")]);
            writer.text_row([Some(&b"x"[..])]);
            writer.end(0);
            out
        };
        let types = caps::MARIADB_EXTENDED_TYPES;
        let with = Made::read(&written(NEW | types), NEW | types, said(1, 2)).unwrap();
        let without = Made::read(&written(NEW), NEW, said(1, 2)).unwrap();
        assert!(with.fits(NEW) && with.fits(NEW | types) && !without.fits(NEW | types));
        for caps in [NEW, OLD, NEW | types, OLD | types] {
            let mut out = Vec::new();
            with.write(&mut out, caps, 2, None);
            assert_eq!(out, written(caps), "{caps:x}");
        }
    }

    #[test]
    fn what_is_written_is_a_response_and_what_recode_makes_of_it() {
        let made = Made::read(&response(NEW, 260, 2), NEW, said(260, 2)).unwrap();
        let (mut new, mut old) = (Vec::new(), Vec::new());
        made.write(&mut new, NEW, 2, None);
        made.write(&mut old, OLD, 2, None);
        assert_eq!(
            Response::expect(Expect::Query, NEW).follow(&new).unwrap(),
            Follow::Ended { used: new.len() }
        );
        assert_eq!(
            Response::expect(Expect::Query, OLD).follow(&old).unwrap(),
            Follow::Ended { used: old.len() }
        );
        let mut recoded = Vec::new();
        Recode::expect(Expect::Query, NEW, OLD, 2)
            .follow(&new, &mut recoded)
            .unwrap();
        assert_eq!(recoded, old);
    }

    #[test]
    fn flags_of_the_session_that_filled_it_reach_nobody() {
        let flags = status::AUTOCOMMIT
            | status::IN_TRANS
            | status::NO_GOOD_INDEX
            | status::QUERY_WAS_SLOW
            | status::DB_DROPPED;
        let made = Made::read(&response(NEW, 1, flags), NEW, said(1, flags)).unwrap();
        for caps in [NEW, OLD] {
            let mut out = Vec::new();
            made.write(&mut out, caps, 0, None);
            let mut follow = Response::expect(Expect::Query, caps);
            follow.follow(&out).unwrap();
            assert_eq!(follow.status(), status::NO_GOOD_INDEX);
        }
    }

    #[test]
    fn what_is_not_one_whole_result_set_is_not_kept() {
        let good = response(NEW, 2, 2);
        let read = |bytes: &[u8], caps, rows| Made::read(bytes, caps, said(rows, 2));
        assert!(read(&good, NEW, 2).is_some());
        for cut in 0..good.len() {
            assert!(read(&good[..cut], NEW, 2).is_none(), "cut at {cut}");
        }
        assert!(
            read(&[&good[..], &good[..]].concat(), NEW, 2).is_none(),
            "two of them"
        );
        assert!(read(&good, NEW, 1).is_none(), "another number of rows");
        assert!(read(&good, OLD, 2).is_none(), "the other form");
        let mut gap = good.clone();
        gap[3] = 2;
        assert!(read(&gap, NEW, 2).is_none(), "numbers with a gap");
        let mut okay = Vec::new();
        packet::append_with(&mut okay, &mut 1, |out| ok::Ok::default().write(out, NEW));
        assert!(read(&okay, NEW, 0).is_none(), "an OK");
        let mut error = Vec::new();
        packet::append(&mut error, &mut 1, b"\xFF\x48\x04#42000no");
        assert!(read(&error, NEW, 0).is_none(), "an error");
        let mut late = good[..good.len() - 11].to_vec();
        packet::append(&mut late, &mut 6, b"\xFF\x48\x04#42000no");
        assert!(read(&late, NEW, 2).is_none(), "an error after rows");
    }

    #[test]
    fn what_a_client_remembers_of_columns_is_left_out() {
        let made = Made::read(&response(NEW, 300, 2), NEW, said(300, 2)).unwrap();
        for eof in [0, caps::DEPRECATE_EOF] {
            let caps = OLD | eof | caps::MARIADB_CACHE_METADATA;
            let mut told = None;
            let mut written = || {
                let mut out = Vec::new();
                made.write(&mut out, caps, 2, Some(&mut told));
                out
            };
            let (first, second) = (written(), written());
            assert_eq!(first, response(caps, 300, 2));
            let mut recoded = Vec::new();
            let mut recode = Recode::expect(Expect::Execute, NEW, caps, 2);
            recode.spare(told, true);
            recode.follow(&response(NEW, 300, 2), &mut recoded).unwrap();
            assert_eq!(second, recoded);
            assert!(second.len() < first.len());
            // It is nothing to keep for others.
            assert_eq!(Made::read(&second, caps, said(300, 2)), None);
        }
    }

    #[test]
    fn what_has_no_definitions_is_for_those_who_can_do_without() {
        for caps in [NEW, OLD].map(|caps| caps | caps::OPTIONAL_METADATA) {
            let mut bytes = Vec::new();
            let mut writer = wire::resultset::Writer::new(&mut bytes, 0, caps, 2).bare();
            writer.columns(&[wire::resultset::Column::text("a")]);
            writer.text_row([Some(&b"x"[..])]);
            writer.end(0);
            let made = Made::read(&bytes, caps, said(1, 2)).unwrap();
            assert!(
                made.fits(caps)
                    && !made.fits(NEW)
                    && !made.fits(NEW | caps::MARIADB_CACHE_METADATA)
            );
            let mut out = Vec::new();
            made.write(&mut out, caps, 2, None);
            assert_eq!(out, bytes);
        }
    }
}
