//! Blocks of ClickHouse's format Native: rows by columns, each column with its name and type.
//!
//! <https://clickhouse.com/docs/interfaces/formats/Native>. ClickHouse writes what went wrong behind
//! the blocks that it has sent, as words. So every block must repeat the columns of the first, and
//! whatever does not is no row.

use crate::data::{Data, number};
use crate::types::{self, Type};
use std::ops::Range;

/// Columns of a result, at most: MySQL's protocol has no more.
const COLUMNS_MAX: u64 = 4096;
/// Rows of a block, at most.
const ROWS_MAX: u64 = 1 << 24;
/// Bytes of the name of a column or type, at most.
const NAME_MAX: u64 = 1 << 20;

/// Why bytes are no block, or not yet.
#[derive(Debug, PartialEq)]
pub(crate) enum Stop {
    /// More has to come.
    Short,
    /// They are something else.
    Malformed,
    /// A type that is not known here.
    Unknown(String),
    /// JSON in a form of ClickHouse's own, where it could come as a text.
    Json,
}

/// Names and types of the columns of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Head {
    pub(crate) names: Vec<String>,
    pub(crate) types: Vec<Type>,
    /// Types as they were written.
    said: Vec<String>,
}

/// How far a block has been read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Columns and rows, once they are known.
    shape: Option<(usize, usize)>,
    /// Bytes that are understood.
    at: usize,
    names: Vec<String>,
    said: Vec<String>,
    types: Vec<Type>,
    spans: Vec<Range<usize>>,
    /// Of a column of texts, where each begins and ends: it comes in many pieces, and is not looked
    /// through again with each.
    texts: Vec<Option<Vec<(u32, u32)>>>,
    /// Beginning and end of each text of the column that is not whole yet.
    begun: Vec<(u32, u32)>,
}

impl Reading {
    /// Reads on in the bytes of a block, of which more have come: true when it is whole.
    ///
    /// # Errors
    /// [`Stop::Short`] is none: it is `Ok(false)`.
    pub(crate) fn go_on(&mut self, head: Option<&Head>, bytes: &[u8]) -> Result<bool, Stop> {
        match self.read(head, bytes) {
            Ok(()) => Ok(true),
            Err(Stop::Short) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn read(&mut self, head: Option<&Head>, bytes: &[u8]) -> Result<(), Stop> {
        let (columns, rows) = match self.shape {
            Some(shape) => shape,
            None => {
                let mut cursor = Cursor(bytes);
                let (columns, rows) = (cursor.number()?, cursor.number()?);
                let same = head.is_none_or(|head| head.names.len() as u64 == columns);
                if columns > COLUMNS_MAX || rows > ROWS_MAX || !same {
                    return Err(Stop::Malformed);
                }
                self.at = bytes.len() - cursor.0.len();
                *self.shape.insert((columns as usize, rows as usize))
            }
        };
        while self.spans.len() < columns {
            let mut cursor = Cursor(&bytes[self.at..]);
            let (name, said) = (cursor.name()?, cursor.name()?);
            let nth = self.spans.len();
            let of = match head {
                Some(head) if head.names[nth] == name && head.said[nth] == said => {
                    head.types[nth].clone()
                }
                Some(_) => return Err(Stop::Malformed),
                None => types::parse(&said).map_err(Stop::Unknown)?,
            };
            let from = bytes.len() - cursor.0.len();
            let mut texts = None;
            if rows > 0 && is_of_texts(&of) {
                cursor.take(nulls_of_texts(&of, rows))?;
                texts_on(rows, &mut cursor, &mut self.begun)?;
                texts = Some(std::mem::take(&mut self.begun));
            } else if rows > 0 {
                whole(&of, rows, &mut cursor)?;
            }
            self.texts.push(texts);
            self.at = bytes.len() - cursor.0.len();
            self.spans.push(from..self.at);
            self.names.push(name);
            self.said.push(said);
            self.types.push(of);
        }
        Ok(())
    }

    /// The columns of a block that is whole.
    pub(crate) fn head(&self) -> Head {
        Head {
            names: self.names.clone(),
            types: self.types.clone(),
            said: self.said.clone(),
        }
    }

    /// Its rows, how many they are, and how many bytes it took.
    pub(crate) fn block<'b>(
        &mut self,
        bytes: &'b [u8],
    ) -> Result<(Vec<Data<'b>>, usize, usize), Stop> {
        let rows = self.shape.map_or(0, |(_, rows)| rows);
        let mut columns = Vec::with_capacity(self.types.len());
        for ((of, span), texts) in self.types.iter().zip(&self.spans).zip(&mut self.texts) {
            let bytes = &bytes[span.clone()];
            columns.push(match texts.take() {
                Some(texts) => {
                    let (nulls, bytes) = bytes.split_at(nulls_of_texts(of, rows));
                    match of {
                        Type::Nullable(_) => {
                            Data::Nullable(nulls, Box::new(Data::Texts(bytes, texts)))
                        }
                        _ => Data::Texts(bytes, texts),
                    }
                }
                None if rows == 0 => Data::Nothing,
                None => whole(of, rows, &mut Cursor(bytes))?,
            });
        }
        Ok((columns, rows, self.at))
    }
}

/// Whether a column is texts and no more: it may be long, and comes in many pieces.
fn is_of_texts(of: &Type) -> bool {
    match of {
        Type::Nullable(inner) => **inner == Type::String,
        of => *of == Type::String,
    }
}

/// Bytes before the texts that say which of them are NULL.
fn nulls_of_texts(of: &Type, rows: usize) -> usize {
    match of {
        Type::Nullable(_) => rows,
        _ => 0,
    }
}

/// A column: what is said once before its values, and these.
fn whole<'b>(of: &Type, rows: usize, cursor: &mut Cursor<'b>) -> Result<Data<'b>, Stop> {
    prefix(of, cursor)?;
    data(of, rows, cursor)
}

fn prefix(of: &Type, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    match of {
        Type::Low(_) => match cursor.u64()? {
            1 => Ok(()),
            _ => Err(Stop::Malformed),
        },
        Type::Json => match cursor.u64()? {
            1 => Ok(()),
            _ => Err(Stop::Json),
        },
        Type::Nullable(inner) | Type::Array(inner) => prefix(inner, cursor),
        Type::Tuple(parts) => parts.iter().try_for_each(|(_, part)| prefix(part, cursor)),
        Type::Map(key, value) => {
            prefix(key, cursor)?;
            prefix(value, cursor)
        }
        _ => Ok(()),
    }
}

fn data<'b>(of: &Type, rows: usize, cursor: &mut Cursor<'b>) -> Result<Data<'b>, Stop> {
    let fixed = |cursor: &mut Cursor<'b>, bytes: usize| {
        let all = rows.checked_mul(bytes).ok_or(Stop::Malformed)?;
        cursor.take(all).map(Data::Fixed)
    };
    match of {
        Type::String | Type::Json => texts(rows, cursor),
        Type::Nullable(inner) => {
            let nulls = cursor.take(rows)?;
            Ok(Data::Nullable(nulls, Box::new(data(inner, rows, cursor)?)))
        }
        Type::Low(inner) => low(inner, rows, cursor),
        Type::Array(inner) => {
            let (ends, all) = ends(rows, cursor)?;
            Ok(Data::Array(ends, Box::new(data(inner, all, cursor)?)))
        }
        Type::Map(key, value) => {
            let (ends, all) = ends(rows, cursor)?;
            let pair = vec![data(key, all, cursor)?, data(value, all, cursor)?];
            Ok(Data::Array(ends, Box::new(Data::Tuple(pair))))
        }
        Type::Tuple(parts) => {
            let parts = parts.iter().map(|(_, part)| data(part, rows, cursor));
            Ok(Data::Tuple(parts.collect::<Result<_, _>>()?))
        }
        plain => fixed(cursor, plain.width()),
    }
}

fn texts<'b>(rows: usize, cursor: &mut Cursor<'b>) -> Result<Data<'b>, Stop> {
    let mut at = Vec::new();
    let all = texts_on(rows, cursor, &mut at)?;
    Ok(Data::Texts(all, at))
}

/// Goes on behind the texts that are known already.
fn texts_on<'b>(
    rows: usize,
    cursor: &mut Cursor<'b>,
    at: &mut Vec<(u32, u32)>,
) -> Result<&'b [u8], Stop> {
    let begin = cursor.0;
    at.reserve(rows.min(begin.len()).saturating_sub(at.len()));
    if let Some((_, to)) = at.last() {
        cursor.take(*to as usize)?;
    }
    let short = |at: usize| u32::try_from(at).map_err(|_| Stop::Malformed);
    while at.len() < rows {
        let len = cursor.number()?;
        let from = begin.len() - cursor.0.len();
        cursor.take(usize::try_from(len).map_err(|_| Stop::Malformed)?)?;
        let to = begin.len() - cursor.0.len();
        at.push((short(from)?, short(to)?));
    }
    Ok(begin)
}

fn ends(rows: usize, cursor: &mut Cursor<'_>) -> Result<(Vec<usize>, usize), Stop> {
    let bytes = cursor.take(rows.checked_mul(8).ok_or(Stop::Malformed)?)?;
    let mut last = 0;
    let mut ends = Vec::with_capacity(rows);
    for eight in bytes.chunks_exact(8) {
        let end = number(eight) as u64;
        if end < last || end > u64::from(u32::MAX) {
            return Err(Stop::Malformed);
        }
        last = end;
        ends.push(end as usize);
    }
    Ok((ends, last as usize))
}

/// Which keys there are, and which key each row has.
fn low<'b>(inner: &Type, rows: usize, cursor: &mut Cursor<'b>) -> Result<Data<'b>, Stop> {
    /// One dictionary for several blocks: only asked for by who wants it.
    const SHARED: u64 = 1 << 8;
    if rows == 0 {
        return Ok(Data::Low(Box::new(Data::Nothing), Vec::new(), false));
    }
    let (of, has_null) = match inner {
        Type::Nullable(of) => (&**of, true),
        of => (of, false),
    };
    let flags = cursor.u64()?;
    let width = match flags & 0xFF {
        kind @ 0..=3 => 1_usize << kind,
        _ => return Err(Stop::Malformed),
    };
    if flags & SHARED != 0 {
        return Err(Stop::Malformed);
    }
    let keys = usize::try_from(cursor.u64()?).map_err(|_| Stop::Malformed)?;
    let dictionary = data(of, keys, cursor)?;
    if cursor.u64()? != rows as u64 {
        return Err(Stop::Malformed);
    }
    let indexes = cursor.take(rows.checked_mul(width).ok_or(Stop::Malformed)?)?;
    let index = |bytes: &[u8]| {
        let index = number(bytes);
        (index < keys)
            .then_some(index as u32)
            .ok_or(Stop::Malformed)
    };
    let indexes = indexes.chunks_exact(width).map(index);
    let indexes = indexes.collect::<Result<_, _>>()?;
    Ok(Data::Low(Box::new(dictionary), indexes, has_null))
}

/// Bytes that are still to be read.
struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn take(&mut self, len: usize) -> Result<&'b [u8], Stop> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Stop::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u64(&mut self) -> Result<u64, Stop> {
        Ok(number(self.take(8)?) as u64)
    }

    /// Seven bits a byte, the least first.
    fn number(&mut self) -> Result<u64, Stop> {
        if let [byte @ 0..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        let mut number = 0;
        for (nth, byte) in self.0.iter().take(9).enumerate() {
            number |= u64::from(byte & 0x7F) << (7 * nth);
            if byte & 0x80 == 0 {
                self.0 = &self.0[nth + 1..];
                return Ok(number);
            }
        }
        match self.0.len() {
            0..9 => Err(Stop::Short),
            _ => Err(Stop::Malformed),
        }
    }

    fn name(&mut self) -> Result<String, Stop> {
        let len = self.number()?;
        if len > NAME_MAX {
            return Err(Stop::Malformed);
        }
        Ok(String::from_utf8_lossy(self.take(len as usize)?).into_owned())
    }
}

/// Any bytes, in pieces, are blocks or are refused. For the fuzzer and its corpus.
pub fn fuzz_native(input: &[u8]) {
    let (cut, mut bytes) = match input {
        [cut, bytes @ ..] => (usize::from(*cut), bytes),
        [] => return,
    };
    let mut head: Option<Head> = None;
    loop {
        let mut reading = Reading::default();
        // What is read in pieces is what is read at once.
        let early = reading.go_on(head.as_ref(), &bytes[..cut.min(bytes.len())]);
        let late = match early {
            Ok(false) => reading.go_on(head.as_ref(), bytes),
            other => other,
        };
        if late != Ok(true) {
            return;
        }
        let Ok((columns, rows, used)) = reading.block(bytes) else {
            panic!("what was whole is read again")
        };
        let found = reading.head();
        let mut out = Vec::new();
        for row in 0..rows.min(100) {
            for (of, column) in found.types.iter().zip(&columns) {
                crate::cells::text(of, column, row, &crate::zone::Zones::utc(), &mut out);
            }
        }
        head = Some(found);
        bytes = &bytes[used..];
        if bytes.is_empty() || columns.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let mut bytes = vec![2, 2];
        bytes.extend(b"\x01a\x05UInt8\x01\x02");
        bytes.extend(b"\x01s\x06String\x01x\x04it's");
        bytes
    }

    #[test]
    fn a_block_is_read_whole_however_it_comes_and_words_behind_it_are_no_rows() {
        let bytes = block();
        let mut reading = Reading::default();
        for len in 0..bytes.len() {
            assert_eq!(reading.go_on(None, &bytes[..len]), Ok(false), "{len}");
        }
        assert_eq!(reading.go_on(None, &bytes), Ok(true));
        let (columns, rows, used) = reading.block(&bytes).unwrap();
        assert_eq!((columns.len(), rows, used), (2, 2, bytes.len()));
        let head = reading.head();
        for words in [
            &b"Code: 395, e.displayText() = DB::Exception"[..],
            b"\x02\x01\x01a\x06UInt16\0\0",
        ] {
            let mut next = Reading::default();
            assert_eq!(next.go_on(Some(&head), words), Err(Stop::Malformed));
        }
        assert_eq!(Reading::default().go_on(Some(&head), &bytes), Ok(true));
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let mut seed = 1_u64;
        let good = block();
        for _ in 0..200_000 {
            let mut bytes = good.clone();
            for _ in 0..4 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let at = (seed >> 33) as usize % bytes.len();
                bytes[at] = (seed >> 20) as u8;
            }
            fuzz_native(&bytes);
        }
    }
}
