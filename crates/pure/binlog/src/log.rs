//! A log that is followed event by event, and the transactions that come of it.

use crate::column::columns;
use crate::event::{CHECKSUM_LEN, Event, HEADER_LEN, Text, is_heartbeat, is_made_up};
use crate::packed;
use crate::place::Place;
use crate::touched::Touched;
use gtid::{Gtid, Set};
use wire::Malformed;
use wire::read::Reader;

/// An event says where it ends in these bytes of its header, and those behind them.
const END_AT: usize = 13;

/// Knowledge of a log while it is followed. Events come as a server sends them, from any beginning
/// of a file on.
#[derive(Debug, Default)]
pub struct Log {
    has_checksums: bool,
    open: Option<Open>,
    /// End of the last event.
    place: Place,
    /// Name of the file that is begun, with its checksum if there are any: the event that says so
    /// follows it.
    begun: Option<Vec<u8>>,
    /// Transactions of files that are over, as the last file says.
    before: Set,
}

/// A transaction that has begun.
#[derive(Debug, Default)]
struct Open {
    gtid: Option<Gtid>,
    /// Goes on to a commit; none if the next text tells.
    to_commit: Option<bool>,
    touched: Touched,
}

/// A transaction that is in the log to its end. A server makes it visible about then, or a little
/// later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its GTID; none if the server keeps none.
    pub gtid: Option<Gtid>,
    /// Tables that it changes.
    pub touched: Touched,
}

impl Log {
    /// Follows an event; the transaction that it ends.
    ///
    /// # Errors
    /// It is none: what follows cannot be understood either.
    pub fn follow(&mut self, event: &[u8]) -> Result<Option<Transaction>, Malformed> {
        self.follow_and(event, &mut |_| Ok(()))
    }

    /// Follows an event, and shows it, and those that are packed in it, before what they mean is
    /// understood.
    ///
    /// # Errors
    /// As [`Log::follow`], and those of `see`.
    pub fn follow_and(
        &mut self,
        event: &[u8],
        see: &mut dyn FnMut(&Event<'_>) -> Result<(), Malformed>,
    ) -> Result<Option<Transaction>, Malformed> {
        let (kind, body) = parts(event)?;
        let body = match self.has_checksums && !is_made_up(kind) {
            true => checked(event, body)?,
            false => body,
        };
        // What a server makes up for its follower is nowhere.
        let end = Reader::new(&event[END_AT..]).u32()?;
        if end > 0 && !is_made_up(kind) {
            self.place = self.place.at(end.into());
        }
        if end > 0 && is_heartbeat(kind) {
            self.place = Place::new(&self.file_named(body), end.into());
        }
        match Event::read(kind, body)? {
            Event::Payload(packed) => match packed::payload(packed)? {
                Some(events) => self.follow_all(&events, see),
                None => {
                    self.open().touched = Touched::everything();
                    Ok(self.ends())
                }
            },
            event => {
                see(&event)?;
                self.takes(event)
            }
        }
    }

    /// Where the last event ends.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Whether no transaction has begun that is not over.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        self.open.is_none()
    }

    /// Transactions of the files before the one that is followed.
    #[must_use]
    pub const fn before(&self) -> &Set {
        &self.before
    }

    /// Events of a compressed transaction, one behind the other. They have no checksums.
    fn follow_all(
        &mut self,
        events: &[u8],
        see: &mut dyn FnMut(&Event<'_>) -> Result<(), Malformed>,
    ) -> Result<Option<Transaction>, Malformed> {
        let (mut rest, mut ended) = (events, None);
        while !rest.is_empty() {
            let (event, behind) = first_of(rest)?;
            rest = behind;
            let (kind, body) = parts(event)?;
            match Event::read(kind, body)? {
                Event::Payload(_) => return Err(Malformed::new("a compressed event in another")),
                event => {
                    see(&event)?;
                    ended = self.takes(event)?.or(ended);
                }
            }
        }
        Ok(ended)
    }

    /// The file that an event names which a server has made up; behind it may be a checksum.
    fn file_named(&self, body: &[u8]) -> String {
        let checksum = if self.has_checksums { CHECKSUM_LEN } else { 0 };
        let name = &body[..body.len().saturating_sub(checksum)];
        String::from_utf8_lossy(name).into_owned()
    }

    fn open(&mut self) -> &mut Open {
        self.open.get_or_insert_default()
    }

    fn ends(&mut self) -> Option<Transaction> {
        let Open { gtid, touched, .. } = self.open.take().unwrap_or_default();
        Some(Transaction { gtid, touched })
    }

    fn takes(&mut self, event: Event<'_>) -> Result<Option<Transaction>, Malformed> {
        match event {
            Event::Format { has_checksums } => {
                self.has_checksums = has_checksums;
                if let Some(name) = self.begun.take() {
                    self.place = Place::new(&self.file_named(&name), 0);
                }
            }
            Event::File(name) => self.begun = Some(name.to_vec()),
            Event::Before(set) => self.before = set,
            Event::Begins { gtid, to_commit } => {
                self.open = Some(Open {
                    gtid,
                    to_commit,
                    touched: Touched::default(),
                });
            }
            Event::Table(table) => self.open().touched.add(table.schema, table.name),
            Event::Text(text) => return Ok(self.says(&text)),
            Event::PackedText(text) => match packed::text(text.sql)? {
                Some(sql) => return Ok(self.says(&Text { sql: &sql, ..text })),
                None => {
                    self.open().touched = Touched::everything();
                    return Ok(self.ends_if_alone());
                }
            },
            Event::Commits => return Ok(self.ends()),
            Event::Incident => {
                self.open().touched = Touched::everything();
                return Ok(self.ends());
            }
            Event::Rows(_) | Event::Payload(_) | Event::Other => {}
        }
        Ok(None)
    }

    /// A statement: it begins a transaction, ends one, is in one, or is one.
    fn says(&mut self, text: &Text<'_>) -> Option<Transaction> {
        let begins_with = |words: &[&str]| {
            let said = text.sql.split(u8::is_ascii_whitespace);
            let mut said = said.filter(|word| !word.is_empty());
            words.iter().all(|word| {
                let said = said.next();
                said.is_some_and(|said| said.eq_ignore_ascii_case(word.as_bytes()))
            })
        };
        let is = |word: &str| text.sql.trim_ascii().eq_ignore_ascii_case(word.as_bytes());
        if is("BEGIN") || begins_with(&["XA", "START"]) {
            self.open().to_commit = Some(true);
            return None;
        }
        if is("COMMIT") || is("ROLLBACK") {
            return self.ends();
        }
        let changes_nothing = begins_with(&["SAVEPOINT"])
            || begins_with(&["ROLLBACK", "TO"])
            || begins_with(&["RELEASE", "SAVEPOINT"])
            || begins_with(&["XA", "END"]);
        if !changes_nothing {
            self.open().touched.add_text(text);
        }
        self.ends_if_alone()
    }

    fn ends_if_alone(&mut self) -> Option<Transaction> {
        match self.open().to_commit {
            Some(true) => None,
            _ => self.ends(),
        }
    }
}

/// The body of an event without its checksum, which is right.
fn checked<'a>(event: &[u8], body: &'a [u8]) -> Result<&'a [u8], Malformed> {
    let short = Malformed::new("an event without its checksum");
    let (body, told) = body.split_last_chunk::<CHECKSUM_LEN>().ok_or(short)?;
    let mut sum = flate2::Crc::new();
    sum.update(&event[..event.len() - CHECKSUM_LEN]);
    match sum.sum() == u32::from_le_bytes(*told) {
        true => Ok(body),
        false => Err(Malformed::new("an event whose checksum is wrong")),
    }
}

/// The type and the body of an event.
fn parts(event: &[u8]) -> Result<(u8, &[u8]), Malformed> {
    let (first, behind) = first_of(event)?;
    if !behind.is_empty() {
        return Err(Malformed::new("something follows an event"));
    }
    Ok((first[4], &first[HEADER_LEN..]))
}

/// The first of several events, and those behind it.
fn first_of(events: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut r = Reader::new(events);
    let (_seconds, _kind, _server) = (r.u32()?, r.u8()?, r.u32()?);
    let len = usize::try_from(r.u32()?).unwrap_or(usize::MAX);
    if len < HEADER_LEN {
        return Err(Malformed::new("an event that is shorter than its header"));
    }
    let short = Malformed::new("an event that is cut");
    events.split_at_checked(len).ok_or(short)
}

/// Follows any events, one behind the other, without a panic; what is wrong with one ends it. Rows of
/// every table are read.
#[doc(hidden)]
pub fn fuzz_log(data: &[u8]) {
    let (mut log, mut rest) = (Log::default(), data);
    let mut tables = std::collections::BTreeMap::new();
    while let Ok((event, behind)) = first_of(rest) {
        rest = behind;
        let followed = log.follow_and(event, &mut |event| {
            match event {
                Event::Table(table) => drop(tables.insert(table.number, columns(table.columns))),
                Event::Rows(rows) => {
                    if let Some(Ok(columns)) = tables.get(&rows.table) {
                        drop(rows.read(columns));
                    }
                }
                _ => {}
            }
            Ok(())
        });
        let Ok(ended) = followed else { return };
        if let Some(Transaction { touched, .. }) = ended {
            assert!(touched.names().count() == 0 || !touched.is_everything());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_says_how_far_the_log_is() {
        let mut log = Log::default();
        let mut event = vec![
            0, 0, 0, 0, 27, 1, 0, 0, 0, 29, 0, 0, 0, 0x34, 0x12, 0, 0, 0, 0,
        ];
        event.extend(b"log.000007");
        assert_eq!(log.follow(&event), Ok(None));
        assert_eq!(*log.place(), Place::new("log.000007", 0x1234));
    }
}
