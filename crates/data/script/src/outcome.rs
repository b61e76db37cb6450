//! The answer to a queued query, as a script looks at it.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use wire::caps::Caps;
use wire::definition;
use wire::response::{self, Expect, Response};
use wire::row_cells::RowCells;
use wire::rows::{self, Columns, Shape};
use wire::types::Type;

/// Rows between two whose places are noted.
const ROWS_A_MARK: usize = 16;

/// How a value of this type is read: `i` and `f` are numbers, `t` is text.
pub(crate) const fn kind(of: Type) -> &'static str {
    match of {
        Type::TINY | Type::SHORT | Type::LONG | Type::INT24 | Type::LONGLONG | Type::YEAR => "i",
        Type::FLOAT | Type::DOUBLE => "f",
        _ => "t",
    }
}

/// Numbers of an answer, which are there whether or not its rows are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whether the answer ended with an error.
    pub failed: bool,
    /// Whether the answer has columns.
    pub has_rows: bool,
    /// Rows.
    pub rows: u64,
    /// Bytes of the answer, headers included.
    pub bytes: u64,
    /// SERVER_STATUS_* flags.
    pub status: u16,
    /// Warnings.
    pub warnings: u16,
    /// Affected rows.
    pub affected: u64,
    /// `LAST_INSERT_ID()` of it.
    pub insert_id: u64,
}

/// One answer. Its rows stay packets until somebody reads one.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All of its packets with their headers, as the client would get them; none if they have gone
    /// there already.
    pub packets: Option<Arc<Vec<u8>>>,
    /// Capabilities that those packets were written for.
    pub caps: Caps,
    /// Its rows are binary, as those of COM_STMT_EXECUTE.
    pub is_binary: bool,
    /// Numbers of it.
    pub counts: Counts,
    /// Microseconds until its first packet.
    pub query_us: u64,
    /// Microseconds until its last packet.
    pub response_us: u64,
    columns: OnceCell<Columns>,
    found: RefCell<Found>,
    parts: OnceCell<Vec<Self>>,
}

/// Where rows lie, as far as somebody has looked.
#[derive(Debug, Default)]
struct Found {
    /// Offset of each sixteenth row, from the first on.
    marks: Vec<usize>,
    /// The row that was read last, and where the one behind it begins.
    last: Option<(usize, usize)>,
    cells: RowCells,
}

/// A row that somebody reads.
pub(crate) struct Row<'r> {
    payload: &'r [u8],
    cells: &'r RowCells,
    shapes: &'r [Shape],
}

impl Row<'_> {
    /// The text of a column's value, from 0; none for NULL and for a column that there is not.
    pub(crate) fn text(&self, column: usize) -> Option<Cow<'_, [u8]>> {
        let shape = self.shapes.get(column)?;
        self.cells
            .text(self.payload, column, shape)
            .unwrap_or_default()
    }

    /// Columns.
    pub(crate) const fn len(&self) -> usize {
        self.shapes.len()
    }
}

impl Outcome {
    /// Of these packets, or of what has gone to the client.
    #[must_use]
    pub fn new(packets: Option<Vec<u8>>, caps: Caps, is_binary: bool, counts: Counts) -> Self {
        Self::sharing(packets.map(Arc::new), caps, is_binary, counts)
    }

    /// Of packets that somebody else has, too.
    #[must_use]
    pub fn sharing(
        packets: Option<Arc<Vec<u8>>>,
        caps: Caps,
        is_binary: bool,
        counts: Counts,
    ) -> Self {
        Self {
            packets,
            caps,
            is_binary,
            counts,
            found: RefCell::new(Found {
                cells: RowCells::new(is_binary),
                ..Found::default()
            }),
            ..Self::default()
        }
    }

    /// Columns of a result whose rows have not come.
    pub(crate) fn of_columns(columns: Columns, caps: Caps, is_binary: bool) -> Self {
        let counts = Counts {
            has_rows: true,
            ..Counts::default()
        };
        Self {
            columns: OnceCell::from(columns),
            ..Self::new(None, caps, is_binary, counts)
        }
    }

    fn bytes(&self) -> &[u8] {
        self.packets
            .as_ref()
            .map_or(&[][..], |packets| packets.as_slice())
    }

    /// Payload of the first packet.
    pub(crate) fn first(&self) -> Option<Vec<u8>> {
        let (payload, ..) = wire::packet::join(self.bytes())?;
        Some(payload.into_owned())
    }

    /// Columns of its first result. One that cannot be read has none.
    pub(crate) fn columns(&self) -> &Columns {
        self.columns
            .get_or_init(|| rows::columns(self.bytes(), self.caps).unwrap_or_default())
    }

    /// Reads a row of its first result, from 0; none behind the last one. Rows that are read one
    /// after another are found at once.
    pub(crate) fn row<R>(&self, at: usize, see: impl FnOnce(&Row<'_>) -> R) -> Option<R> {
        let shapes = &self.columns().shapes;
        // Memory that is collected meanwhile may run a script's own code.
        let mut found = self.found.try_borrow_mut().ok()?;
        let begin = self.begin_of(&mut found, at)?;
        let (payload, used) = rows::row(self.bytes().get(begin..)?)?;
        found.last = Some((at, begin + used));
        found.cells.find(&payload, shapes).ok()?;
        let row = Row {
            payload: &payload,
            cells: &found.cells,
            shapes,
        };
        Some(see(&row))
    }

    /// Where a row begins, if all rows before it are there.
    fn begin_of(&self, found: &mut Found, at: usize) -> Option<usize> {
        let columns = self.columns();
        if columns.shapes.is_empty() {
            return None;
        }
        if found.marks.is_empty() {
            found.marks.push(columns.rows_at);
        }
        let mark = (at / ROWS_A_MARK).min(found.marks.len() - 1);
        let (mut row, mut begin) = (mark * ROWS_A_MARK, found.marks[mark]);
        if let Some((last, behind)) = found.last.filter(|(last, _)| (row..at).contains(last)) {
            (row, begin) = (last + 1, behind);
        }
        while row < at {
            let (_, used) = rows::row(self.bytes().get(begin..)?)?;
            (row, begin) = (row + 1, begin + used);
            if row == found.marks.len() * ROWS_A_MARK {
                found.marks.push(begin);
            }
        }
        if row == found.marks.len() * ROWS_A_MARK {
            found.marks.push(begin);
        }
        Some(begin)
    }

    /// Whether another result follows the first one.
    pub(crate) fn is_several(&self) -> bool {
        rows::are_several(self.bytes(), self.caps)
    }

    /// Its results, one after another; none where they have gone to the client.
    pub(crate) fn parts(&self) -> &[Self] {
        self.parts.get_or_init(|| {
            let all = rows::results(self.bytes(), self.caps).into_iter();
            all.map(|one| Self::of_one(one, self.caps, self.is_binary))
                .collect()
        })
    }

    /// One whose numbers stand in its packets.
    fn of_one(packets: &[u8], caps: Caps, is_binary: bool) -> Self {
        let expect = match is_binary {
            true => Expect::Execute,
            false => Expect::Query,
        };
        let mut response = Response::expect(expect, caps);
        // The whole was followed on its way; what follows this one is of no matter to it.
        let _followed = response.follow(packets);
        let counts = Counts {
            failed: matches!(response.outcome(), response::Outcome::Err { .. }),
            has_rows: response.columns() > 0,
            rows: response.rows(),
            bytes: packets.len() as u64,
            status: response.status(),
            warnings: response.warnings(),
            affected: response.affected_rows(),
            insert_id: response.insert_id(),
        };
        Self::new(Some(packets.to_vec()), caps, is_binary, counts)
    }

    /// Names of a column: its own, its original one, its table's and that one's original.
    pub(crate) fn names(&self, column: usize) -> [&[u8]; 4] {
        let definition = self.columns().definitions.get(column);
        let names = definition.and_then(|definition| definition::names(definition).ok());
        names.map_or([b""; 4], |[_, _, table, org_table, name, org_name]| {
            [name, org_name, table, org_table]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::resultset::{Column, Writer};

    #[test]
    fn rows_are_found_in_any_order() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 0, 0, 2);
        writer.columns(&[Column::integer("n")]);
        for number in 0..100 {
            writer.text_row([Some(number.to_string().as_bytes())]);
        }
        writer.end(0);
        let outcome = Outcome::new(Some(out), 0, false, Counts::default());
        let read = |at| outcome.row(at, |row| row.text(0).map(Cow::into_owned));
        for at in (0..100).chain([99, 0, 16, 15, 17, 64, 63, 98, 99]) {
            assert_eq!(read(at), Some(Some(at.to_string().into_bytes())), "{at}");
        }
        assert_eq!((read(100), read(5000)), (None, None));
    }
}
