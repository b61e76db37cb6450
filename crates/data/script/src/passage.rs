//! Rows of an answer on their way through a script: each is seen once, and goes on. Only a piece of
//! them is here at a time.
//!
//! ```text
//! Head ── m.on.rows ─┬─ nothing ─> Passing ─┐
//!  ^                 ├─ r:map ──> Mapping ──┼─ end of rows, another result follows ─> Head
//!  │                 └─ m.error ─> Refused  │
//!  └────────────────────────────────────────┘
//! ```

use crate::host::{Call, Failed};
use crate::outcome::Outcome;
use crate::response::{Field, Response, is_number};
use crate::scripted::Scripted;
use crate::sees::{Batch, Sees};
use std::borrow::Cow;
use wire::caps::Caps;
use wire::packet::{self, HEADER_LEN, MAX_PAYLOAD};
use wire::roles::{Role, Roles};
use wire::row_cells::{Change, RowCells};
use wire::rows::{Columns, Shape};
use wire::types::Type;
use wire::{Malformed, definition, ok};

/// Rows that a script sees in one turn.
const ROWS_MAX: usize = 1000;
/// Name of the hook in messages and statistics.
const HOOK: &str = "on.rows";

/// Answer on its way.
#[derive(Debug)]
pub struct Passage {
    caps: Caps,
    is_binary: bool,
    /// Bytes of a row that the script sees.
    row_len_max: usize,
    roles: Roles,
    /// The beginning of a packet.
    pending: Vec<u8>,
    /// Number of the next packet for the client; none before the first one.
    seq: Option<u8>,
    way: Way,
    /// Number of the result, from 1.
    number: usize,
    head: Head,
    /// An answer without rows is kept.
    keeps: bool,
    is_kept: bool,
    /// The script has answered, or failed, in the place of rows.
    is_refused: bool,
    /// The script has failed, and what is here can go on without it.
    may_pass: bool,
    /// Microseconds that the script has had for this result.
    used_us: u64,
}

/// Fate of the packets that come.
#[derive(Debug)]
enum Way {
    /// Columns are gathered.
    Head,
    Passing(Rest),
    Mapping(Mapping),
    /// The client gets nothing more.
    Refused,
}

/// A row that goes on in pieces.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    /// Bytes of its packet that are still to come.
    left: usize,
    /// The next packet is a part of it.
    continues: bool,
}

/// Columns of a result.
#[derive(Debug, Default)]
struct Head {
    /// Their packets, as they came.
    packets: Vec<u8>,
    table: Columns,
    /// All are here, and the script has not been asked.
    asks: bool,
}

/// Rows that a function sees.
#[derive(Debug)]
struct Mapping {
    /// Columns that it sees, from 0.
    columns: Vec<usize>,
    /// Each column as rows have it, and as the client gets it.
    came: Vec<Shape>,
    goes: Vec<Shape>,
    names: Vec<Vec<u8>>,
    cells: RowCells,
    rows: u64,
}

impl Mapping {
    /// Whether the client was told of other types than rows have.
    fn is_retyped(&self) -> bool {
        self.came != self.goes
    }
}

impl Passage {
    /// An answer to a COM_QUERY or COM_STMT_EXECUTE, written for a client with these capabilities.
    /// `keeps`: without rows it is kept for somebody else to look at.
    #[must_use]
    pub fn new(caps: Caps, is_binary: bool, keeps: bool, row_len_max: usize) -> Self {
        Self {
            caps,
            is_binary,
            row_len_max,
            roles: Roles::new(caps),
            pending: Vec::new(),
            seq: None,
            way: Way::Head,
            number: 1,
            head: Head::default(),
            keeps,
            is_kept: false,
            is_refused: false,
            may_pass: false,
            used_us: 0,
        }
    }

    /// Whether what has come is an answer without rows, which the client has not got.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether the answer has ended with an error of the script's.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Number of the last packet that the client got, if it got any.
    #[must_use]
    pub fn last_seq(&self) -> Option<u8> {
        self.seq.map(|seq| seq.wrapping_sub(1))
    }

    /// Takes a piece of the answer, and appends what goes on.
    ///
    /// # Errors
    /// The script has failed: see [`Self::let_pass`] and [`Self::refuse`].
    pub fn follow(
        &mut self,
        script: &Scripted,
        piece: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failed> {
        self.may_pass = false;
        let mut bytes = std::mem::take(&mut self.pending);
        bytes.extend_from_slice(piece);
        let mut at = 0;
        let done = loop {
            if self.head.asks {
                self.head.asks = false;
                if let Err(failed) = self.ask(script, out) {
                    break Err(failed);
                }
            }
            match self.step(script, &bytes[at..], out) {
                Ok(0) => break Ok(()),
                Ok(used) => at += used,
                Err(failed) => break Err(failed),
            }
        };
        bytes.drain(..at);
        self.pending = bytes;
        done
    }

    /// Goes on without the script; false where it cannot.
    #[must_use]
    pub fn let_pass(&mut self, out: &mut Vec<u8>) -> bool {
        let is_retyped = matches!(&self.way, Way::Mapping(mapping) if mapping.is_retyped());
        if !self.may_pass || is_retyped {
            return false;
        }
        self.pass_head(out);
        self.way = Way::Passing(Rest::default());
        true
    }

    /// Ends the answer with this error. What still comes is followed, and goes to nobody.
    pub fn refuse(&mut self, error: &Response, out: &mut Vec<u8>) {
        if let Response::Err {
            code,
            state,
            message,
        } = error
        {
            let error = ok::Err {
                code: *code,
                state: *state,
                message,
            };
            let mut seq = self.seq.unwrap_or(1);
            packet::append_with(out, &mut seq, |out| error.write(out));
            self.seq = Some(seq);
        }
        self.is_refused = true;
        self.head = Head::default();
        self.way = Way::Refused;
    }

    /// Takes one packet or some rows; how many bytes they were.
    fn step(
        &mut self,
        script: &Scripted,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, Failed> {
        match &mut self.way {
            Way::Refused => Ok(bytes.len()),
            Way::Head => self.gather(bytes, out).map_err(malformed),
            Way::Passing(_) => self.pass(bytes, out).map_err(malformed),
            Way::Mapping(_) => self.map(script, bytes, out),
        }
    }

    /// A packet before the rows of a result.
    fn gather(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        let Some((payload, used, _)) = packet::join(bytes) else {
            return Ok(0);
        };
        if self.is_kept {
            out.extend_from_slice(&bytes[..used]);
            return Ok(used);
        }
        let packet = &bytes[..used];
        self.seq.get_or_insert(packet[HEADER_LEN - 1]);
        match self.roles.next(&payload)? {
            Role::Ok { more: false } | Role::Err if self.keeps && self.number == 1 => {
                self.is_kept = true;
                self.seq = None;
                out.extend_from_slice(packet);
            }
            Role::Ok { more } => {
                self.number += usize::from(more);
                self.number_anew(packet, out);
            }
            Role::File => {
                self.number_anew(packet, out);
                // The client answers, and numbers go on behind that.
                (self.seq, self.keeps) = (None, false);
            }
            Role::Definition => {
                let mut described = Vec::with_capacity(payload.len());
                definition::write(&mut described, &payload, self.caps, 0);
                self.head.table.shapes.push(Shape::of(&described)?);
                self.head.table.definitions.push(described);
                self.head.packets.extend_from_slice(packet);
            }
            Role::Columns | Role::DefinitionsEof => self.head.packets.extend_from_slice(packet),
            Role::Err | Role::Row | Role::End { .. } => self.number_anew(packet, out),
        }
        self.head.asks = self.roles.is_in_rows();
        Ok(used)
    }

    /// Asks the script about the columns.
    fn ask(&mut self, script: &Scripted, out: &mut Vec<u8>) -> Result<(), Failed> {
        self.may_pass = true;
        self.used_us = 0;
        let table = std::mem::take(&mut self.head.table);
        let outcome = Outcome::of_columns(table, self.caps, self.is_binary);
        let asked = script.sees_columns(outcome, self.number);
        self.used_us += asked.us;
        let (sees, outcome) = match asked.done {
            Ok(done) => done,
            Err(failed) => return Err(self.fails(script, failed)),
        };
        self.may_pass = false;
        match sees {
            Sees::Nothing => {
                self.tell(script, None);
                self.pass_head(out);
                self.way = Way::Passing(Rest::default());
            }
            Sees::Error(error) => {
                self.tell(script, None);
                self.refuse(&error, out);
            }
            Sees::Rows { columns, kind } => {
                let table = outcome.columns();
                let mut mapping = Mapping {
                    columns,
                    came: table.shapes.clone(),
                    goes: table.shapes.clone(),
                    names: (0..table.shapes.len())
                        .map(|at| outcome.names(at)[0].to_vec())
                        .collect(),
                    cells: RowCells::new(self.is_binary),
                    rows: 0,
                };
                let definitions = kind.map(|kind| mapping.retype(kind, &outcome));
                match definitions {
                    None => self.pass_head(out),
                    Some(definitions) => self.write_head(&definitions, out),
                }
                self.way = Way::Mapping(mapping);
            }
        }
        Ok(())
    }

    /// Writes the columns as they came.
    fn pass_head(&mut self, out: &mut Vec<u8>) {
        let head = std::mem::take(&mut self.head);
        self.number_anew(&head.packets, out);
    }

    /// Writes the columns with other definitions, which have no extended types.
    fn write_head(&mut self, definitions: &[Vec<u8>], out: &mut Vec<u8>) {
        let head = std::mem::take(&mut self.head);
        let (mut rest, mut seq) = (&head.packets[..], self.seq.unwrap_or(1));
        let mut definitions = definitions.iter();
        let mut is_first = true;
        while let Some((payload, used, _)) = packet::join(rest) {
            rest = &rest[used..];
            let definition = match std::mem::take(&mut is_first) {
                true => None,
                false => definitions.next(),
            };
            match definition {
                None => packet::append(out, &mut seq, &payload),
                Some(own) => packet::append_with(out, &mut seq, |out| {
                    definition::write(out, own, 0, self.caps);
                }),
            }
        }
        self.seq = Some(seq);
    }

    /// Packets that go on as they came, but for their numbers.
    fn number_anew(&mut self, packets: &[u8], out: &mut Vec<u8>) {
        let mut seq = self.seq.unwrap_or(1);
        let begin = out.len();
        out.extend_from_slice(packets);
        let mut rest = &mut out[begin..];
        while let Some((len, _)) = packet::whole(rest) {
            rest[HEADER_LEN - 1] = seq;
            seq = seq.wrapping_add(1);
            rest = &mut std::mem::take(&mut rest)[HEADER_LEN + len..];
        }
        self.seq = Some(seq);
    }

    /// Rows that nobody sees, and their end.
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        let Way::Passing(rest) = &mut self.way else {
            return Ok(0);
        };
        let mut seq = self.seq.unwrap_or(1);
        let mut at = 0;
        loop {
            let piece = rest.left.min(bytes.len() - at);
            out.extend_from_slice(&bytes[at..at + piece]);
            (at, rest.left) = (at + piece, rest.left - piece);
            let Some(header) = bytes[at..].first_chunk::<HEADER_LEN>() else {
                break;
            };
            let (len, _) = packet::header(header);
            let is_row = match bytes.get(at + HEADER_LEN) {
                _ if rest.continues => true,
                Some(first) => Roles::is_row(*first, len),
                None => break,
            };
            if !is_row {
                break;
            }
            out.extend_from_slice(&packet::make_header(len, seq));
            seq = seq.wrapping_add(1);
            (rest.left, rest.continues) = (len, len == MAX_PAYLOAD);
            at += HEADER_LEN;
        }
        self.seq = Some(seq);
        if at > 0 {
            return Ok(at);
        }
        self.end(bytes, out)
    }

    /// The packet behind the rows, if all of it is here.
    fn end(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        let Some((payload, used, _)) = packet::join(bytes) else {
            return Ok(0);
        };
        if let Role::End { more: true } = self.roles.next(&payload)? {
            self.number += 1;
        }
        self.way = Way::Head;
        self.number_anew(&bytes[..used], out);
        Ok(used)
    }

    /// Rows that a function of the script sees, or their end.
    fn map(&mut self, script: &Scripted, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Failed> {
        let (mut rows, mut at) = (Vec::new(), 0);
        let mut is_over = false;
        while rows.len() < ROWS_MAX {
            let Some((payload, used, _)) = packet::join(&bytes[at..]) else {
                break;
            };
            let first = payload.first().copied().unwrap_or(ok::ERR_HEADER);
            is_over = !Roles::is_row(first, payload.len());
            if is_over {
                break;
            }
            rows.push(payload);
            at += used;
        }
        self.may_pass = true;
        if rows.is_empty() && is_over {
            self.see_last(script)?;
            self.may_pass = false;
            return self.end(bytes, out).map_err(malformed);
        }
        if rows.is_empty() && bytes.len() > self.row_len_max {
            let words = "a row has more bytes than result_mb_max allows";
            return Err(self.fails(script, Failed(format!("({HOOK}) {words}"))));
        }
        if !rows.is_empty() {
            let begin = out.len();
            if let Err(failed) = self.see(script, &rows, out) {
                out.truncate(begin);
                return Err(self.fails(script, failed));
            }
        }
        Ok(at)
    }

    /// Tells the script that there were so many rows.
    fn see_last(&mut self, script: &Scripted) -> Result<(), Failed> {
        let Way::Mapping(mapping) = &self.way else {
            return Ok(());
        };
        let said = script.sees_last(mapping.rows);
        self.used_us += said.us;
        match said.done {
            Ok(()) => {
                self.tell(script, None);
                Ok(())
            }
            Err(failed) => Err(self.fails(script, failed)),
        }
    }

    /// Has the script see rows, and writes what it makes of them. Nothing counts where it fails.
    fn see(
        &mut self,
        script: &Scripted,
        rows: &[Cow<'_, [u8]>],
        out: &mut Vec<u8>,
    ) -> Result<(), Failed> {
        let Way::Mapping(mapping) = &mut self.way else {
            return Ok(());
        };
        let batch = if mapping.columns.is_empty() {
            Batch::default()
        } else {
            let texts = mapping.texts(rows).map_err(malformed)?;
            let seen = script.sees_rows(rows.len(), &texts);
            self.used_us += seen.us;
            seen.done?
        };
        let mut seq = self.seq.unwrap_or(1);
        mapping.write(rows, &batch, &mut seq, out)?;
        mapping.rows += rows.len() as u64;
        self.seq = Some(seq);
        Ok(())
    }

    fn fails(&self, script: &Scripted, failed: Failed) -> Failed {
        self.tell(script, Some(&failed));
        failed
    }

    /// Counts the call of the hook.
    fn tell(&self, script: &Scripted, failed: Option<&Failed>) {
        script.host().ran(Call {
            hook: HOOK,
            us: self.used_us,
            waits: 0,
            http: (0, 0),
            error: failed.map(|failed| &*failed.0),
        });
    }
}

/// Value of a column that is written anew; none is NULL.
type Written = (usize, Option<Vec<u8>>);

impl Mapping {
    /// Has the seen columns go to the client as this type; the definitions of all.
    fn retype(&mut self, kind: u8, outcome: &Outcome) -> Vec<Vec<u8>> {
        let mut definitions = outcome.columns().definitions.clone();
        for column in &self.columns {
            let field = Field::made_up(&self.names[*column], kind);
            definitions[*column] = field.definition();
            self.goes[*column] = Shape::of(&definitions[*column]).unwrap_or(Shape::UNTOLD);
        }
        definitions
    }

    /// Texts of the columns that are seen, one row behind another.
    fn texts<'r>(
        &mut self,
        rows: &'r [Cow<'_, [u8]>],
    ) -> Result<Vec<Option<Cow<'r, [u8]>>>, Malformed> {
        let mut texts = Vec::with_capacity(rows.len() * self.columns.len());
        for row in rows {
            self.cells.find(row, &self.came)?;
            for column in &self.columns {
                texts.push(self.cells.text(row, *column, &self.came[*column])?);
            }
        }
        Ok(texts)
    }

    /// Writes rows with what a script has changed.
    fn write(
        &mut self,
        rows: &[Cow<'_, [u8]>],
        batch: &Batch,
        seq: &mut u8,
        out: &mut Vec<u8>,
    ) -> Result<(), Failed> {
        let width = self.columns.len();
        let (mut changed, mut dropped) = (
            batch.changed.iter().peekable(),
            batch.dropped.iter().peekable(),
        );
        let is_converted = self.cells.is_binary() && self.is_retyped();
        for (at, row) in rows.iter().enumerate() {
            let mut changes: Vec<Change<'_>> = Vec::new();
            while let Some((place, value)) = changed.next_if(|(place, _)| *place < (at + 1) * width)
            {
                changes.push((self.columns[place - at * width], value.as_deref()));
            }
            if dropped.next_if(|row| **row == at).is_some() {
                continue;
            }
            for (column, value) in &changes {
                self.check(*column, *value)?;
            }
            if changes.is_empty() && !is_converted {
                packet::append(out, seq, row);
                continue;
            }
            self.cells.find(row, &self.came).map_err(malformed)?;
            let others = match is_converted {
                true => self.others(row, &changes)?,
                false => Vec::new(),
            };
            changes.extend(
                others
                    .iter()
                    .map(|(column, text)| (*column, text.as_deref())),
            );
            changes.sort_by_key(|(column, _)| *column);
            changes.dedup_by_key(|(column, _)| *column);
            let mut written = Ok(());
            packet::append_with(out, seq, |out| {
                written = self.cells.write(out, row, &self.goes, &changes);
            });
            written.map_err(malformed)?;
        }
        Ok(())
    }

    /// Values of a row that are written as another type although nobody has changed them.
    fn others(&self, row: &[u8], changes: &[Change<'_>]) -> Result<Vec<Written>, Failed> {
        let is_other = |column: &usize| !changes.iter().any(|(changed, _)| changed == column);
        let columns = self.columns.iter().copied().filter(is_other);
        let others = columns.map(|column| {
            let text = self.cells.text(row, column, &self.came[column]);
            let text = text.map_err(malformed)?.map(Cow::into_owned);
            self.check(column, text.as_deref())?;
            Ok((column, text))
        });
        others.collect()
    }

    /// Refuses a value that is none of its column's type.
    fn check(&self, column: usize, value: Option<&[u8]>) -> Result<(), Failed> {
        let Some(value) = value else { return Ok(()) };
        let kind = self.goes.get(column).map_or(Type::NULL, |shape| shape.kind);
        let fits = match kind {
            Type::NEWDECIMAL | Type::DECIMAL => is_number(value),
            kind => kind.reads(value),
        };
        if fits {
            return Ok(());
        }
        let (value, name) = (
            String::from_utf8_lossy(value),
            String::from_utf8_lossy(self.names.get(column).map_or(b"", |name| name)),
        );
        Err(Failed(format!(
            "({HOOK}) '{value}' is no value of the type that column '{name}' has: say another one, as in r:map(f, {{ \"{name}\", as = \"string\" }})"
        )))
    }
}

fn malformed(malformed: Malformed) -> Failed {
    Failed(format!("({HOOK}) {malformed}"))
}
