//! The role of each packet in the answer to a COM_QUERY or COM_STMT_EXECUTE, for whoever writes some
//! of them anew.
//!
//! Where a response ends, and what it says of the session, [`crate::response::Response`] tells.
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response.html>

use crate::caps::{self, Caps};
use crate::definition::Shape;
use crate::row_cells::RowCells;
use crate::{Malformed, ok, outline, packet, status};

/// Meaning of a packet, by what came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An OK: a result without rows. `more`: another result follows.
    Ok {
        /// Another result follows.
        more: bool,
    },
    /// An error, which ends the answer.
    Err,
    /// The name of a file that the server wants of the client. What follows its upload is again the
    /// beginning of a result.
    File,
    /// The number of columns.
    Columns,
    /// The definition of a column.
    Definition,
    /// The EOF behind definitions.
    DefinitionsEof,
    /// A row.
    Row,
    /// The end of rows.
    End {
        /// Another result follows.
        more: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    First,
    Definitions(usize),
    Eof,
    Rows,
}

/// Tells the roles of an answer's packets, one after another.
#[derive(Debug, Clone)]
pub struct Roles {
    caps: Caps,
    next: Next,
}

impl Roles {
    /// Of an answer that is written for these capabilities.
    #[must_use]
    pub const fn new(caps: Caps) -> Self {
        Self {
            caps,
            next: Next::First,
        }
    }

    /// Whether the columns are known, so that a row or the end of rows is next.
    #[must_use]
    pub fn is_in_rows(&self) -> bool {
        self.next == Next::Rows
    }

    /// Whether a packet that begins so, of so many bytes, is a row where rows are. A packet of full
    /// length goes on in the next one.
    #[must_use]
    pub const fn is_row(first: u8, len: usize) -> bool {
        match first {
            ok::ERR_HEADER => false,
            ok::EOF_HEADER => len >= packet::MAX_PAYLOAD,
            _ => true,
        }
    }

    /// The role of the next packet, given by its joined payload.
    ///
    /// # Errors
    /// If it is not what the protocol promises.
    pub fn next(&mut self, payload: &[u8]) -> Result<Role, Malformed> {
        let first = payload.first().copied();
        match self.next {
            Next::First => self.first(first, payload),
            Next::Definitions(left) => {
                self.next = match (left, caps::has(self.caps, caps::DEPRECATE_EOF)) {
                    (2.., _) => Next::Definitions(left - 1),
                    (_, true) => Next::Rows,
                    (_, false) => Next::Eof,
                };
                Ok(Role::Definition)
            }
            Next::Eof => {
                self.next = Next::Rows;
                Ok(Role::DefinitionsEof)
            }
            Next::Rows => {
                let first = first.ok_or(Malformed::new("an empty row"))?;
                if Self::is_row(first, payload.len()) {
                    return Ok(Role::Row);
                }
                self.next = Next::First;
                if first == ok::ERR_HEADER {
                    return Ok(Role::Err);
                }
                let status = match caps::has(self.caps, caps::DEPRECATE_EOF) {
                    true => ok::Ok::read(payload, self.caps)?.status,
                    false => ok::read_eof(payload)?.1,
                };
                Ok(Role::End {
                    more: status & status::MORE_RESULTS != 0,
                })
            }
        }
    }

    fn first(&mut self, first: Option<u8>, payload: &[u8]) -> Result<Role, Malformed> {
        match first {
            None => Err(Malformed::new("an empty answer")),
            Some(ok::OK_HEADER) => Ok(Role::Ok {
                more: ok::Ok::read(payload, self.caps)?.status & status::MORE_RESULTS != 0,
            }),
            Some(ok::ERR_HEADER) => Ok(Role::Err),
            Some(0xFB) => Ok(Role::File),
            Some(_) => {
                let (columns, follow) = outline::columns(payload, self.caps)?;
                let columns = usize::try_from(columns)
                    .ok()
                    .filter(|columns| (1..=crate::response::COLUMNS_MAX as usize).contains(columns))
                    .ok_or(Malformed::new("impossible number of columns"))?;
                self.next = match (follow, caps::has(self.caps, caps::DEPRECATE_EOF)) {
                    (true, _) => Next::Definitions(columns),
                    (false, true) => Next::Rows,
                    (false, false) => Next::Eof,
                };
                Ok(Role::Columns)
            }
        }
    }
}

/// Any packets have roles, or are refused, and so have the values of their rows.
pub(crate) fn fuzz(data: &[u8], caps: Caps) {
    let (mut roles, mut shapes) = (Roles::new(caps), Vec::new());
    let mut rest = data;
    while let Some((payload, used, _)) = packet::join(rest) {
        rest = &rest[used..];
        match roles.next(&payload) {
            Err(_) => break,
            Ok(Role::Columns) => shapes.clear(),
            Ok(Role::Definition) => shapes.push(Shape::of(&payload).unwrap_or(Shape::UNTOLD)),
            Ok(Role::Row) => fuzz_row(&payload, &shapes),
            Ok(_) => {}
        }
    }
}

/// A row of which nothing is replaced is as it was.
fn fuzz_row(payload: &[u8], shapes: &[Shape]) {
    for is_binary in [false, true] {
        let mut cells = RowCells::new(is_binary);
        if cells.find(payload, shapes).is_err() {
            continue;
        }
        let mut same = Vec::new();
        let written = cells.write(&mut same, payload, shapes, &[]);
        assert!(written.is_ok() && same.len() <= payload.len());
        for (at, shape) in shapes.iter().enumerate() {
            let text = cells.text(payload, at, shape).expect("found above");
            let change = [(at, text.as_deref())];
            let _of_its_type_or_not = cells.write(&mut Vec::new(), payload, shapes, &change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};

    #[test]
    fn packets_of_several_results_have_roles() {
        for caps in [caps::PROTOCOL_41, caps::PROTOCOL_41 | caps::DEPRECATE_EOF] {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes, 0, caps, 2 | status::MORE_RESULTS);
            writer.columns(&[Column::text("a"), Column::text("b")]);
            writer.text_row([Some(&b"x"[..]), None]);
            writer.end(0);
            let seq = writer.last_seq();
            Writer::new(&mut bytes, seq, caps, 2).ok(&ok::Ok::default());
            let mut roles = Roles::new(caps);
            let (mut rest, mut all) = (&bytes[..], Vec::new());
            while let Some((payload, used, _)) = packet::join(rest) {
                all.push(roles.next(&payload).unwrap());
                rest = &rest[used..];
            }
            let mut wanted = vec![Role::Columns, Role::Definition, Role::Definition];
            if !caps::has(caps, caps::DEPRECATE_EOF) {
                wanted.push(Role::DefinitionsEof);
            }
            wanted.extend([
                Role::Row,
                Role::End { more: true },
                Role::Ok { more: false },
            ]);
            assert_eq!(all, wanted);
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert!(Roles::new(0).next(b"").is_err());
        assert!(Roles::new(0).next(b"\xfd\xff\xff\xff").is_err());
    }
}
