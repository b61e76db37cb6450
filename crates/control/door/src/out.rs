//! Where an answer goes: written row by row, sent in batches, so that a long result never sits in
//! memory.

use crate::conn::Conn;
use crate::{Prepared, Refused};
use std::io;
use wire::caps::{self, Caps};
use wire::execute::Value;
use wire::ok;
use wire::resultset::{Cells, Column, Writer};
use wire::status;

/// Length in bytes from which on what is written is sent.
const BATCH_BYTES: usize = 32 * 1024;

/// Begins the packet that asks for a file.
const FILE_HEADER: u8 = 0xFB;
/// Bytes of a piece of a file, at most.
const PIECE_BYTES_MAX: usize = 64 << 20;

/// Effect of a statement without rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows changed.
    pub affected: u64,
    /// The key that was made.
    pub insert_id: u64,
    /// Words for a person.
    pub info: String,
    /// Number of warnings that SHOW WARNINGS has.
    pub warnings: u16,
}

/// Takes one answer.
pub struct Out<'c> {
    conn: &'c mut Conn,
    buf: Vec<u8>,
    caps: Caps,
    columns: Vec<Column>,
    binary: bool,
    /// Another statement of the same command follows.
    more: bool,
    failed: bool,
}

impl<'c> Out<'c> {
    pub(crate) fn new(conn: &'c mut Conn, caps: Caps, binary: bool) -> Self {
        Self {
            conn,
            buf: Vec::new(),
            caps,
            columns: Vec::new(),
            binary,
            more: false,
            failed: false,
        }
    }

    pub(crate) fn more(&mut self, more: bool) {
        self.more = more;
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// Whether values go as those of a prepared statement.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        self.binary
    }

    /// Asks the client for a file, which comes in pieces ([`Out::piece`]); false if it gives none.
    pub async fn file(&mut self, name: &str) -> io::Result<bool> {
        if !caps::has(self.caps, caps::LOCAL_FILES) {
            return Ok(false);
        }
        self.conn
            .send(|out| {
                out.push(FILE_HEADER);
                out.extend_from_slice(name.as_bytes());
            })
            .await?;
        Ok(true)
    }

    /// The next piece of the file; none at its end, which must be reached before the answer.
    pub async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let piece = self.conn.payload(PIECE_BYTES_MAX).await;
        let piece = piece.map_err(|_| io::Error::from(io::ErrorKind::ConnectionAborted))?;
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// Resolves when the client is gone, whatever it waits for.
    pub async fn gone(&self) {
        self.conn.closed().await;
    }

    fn write(&mut self, status: u16, write: impl FnOnce(&mut Writer<'_>, &[Column])) {
        let status = if self.more {
            status | status::MORE_RESULTS
        } else {
            status
        };
        let mut writer = Writer::new(
            &mut self.buf,
            self.conn.seq.wrapping_sub(1),
            self.caps,
            status,
        );
        write(&mut writer, &self.columns);
        self.conn.seq = writer.seq;
    }

    async fn send(&mut self) -> io::Result<()> {
        if self.buf.is_empty() {
            return Ok(());
        }
        self.conn.send_framed(std::mem::take(&mut self.buf)).await
    }

    /// The whole answer: it is done.
    pub async fn ok(&mut self, done: &Done, status: u16) -> io::Result<()> {
        let ok = ok::Ok {
            affected: done.affected,
            insert_id: done.insert_id,
            info: done.info.as_bytes(),
            warnings: done.warnings,
            ..ok::Ok::default()
        };
        self.write(status, |w, _| w.ok(&ok));
        self.send().await
    }

    /// The whole answer, or the end of one: it went wrong.
    pub async fn err(&mut self, refused: &Refused) -> io::Result<()> {
        self.failed = true;
        let err = ok::Err {
            code: refused.code,
            state: refused.state,
            message: refused.message.as_bytes(),
        };
        self.write(0, |w, _| w.err(&err));
        self.send().await
    }

    /// Rows with these columns follow.
    pub fn columns(&mut self, columns: Vec<Column>, status: u16) {
        self.columns = columns;
        self.write(status, |w, columns| w.columns(columns));
    }

    /// One row. Call [`Out::room`] now and then.
    pub fn row(&mut self, values: &[Value<'_>]) {
        let binary = self.binary;
        self.write(0, |w, columns| {
            if binary {
                w.binary_row(columns, values);
            } else {
                let texts: Vec<Option<std::borrow::Cow<'_, [u8]>>> =
                    values.iter().map(text).collect();
                w.text_row(texts.iter().map(|text| text.as_deref()));
            }
        });
    }

    /// One row of texts, written in place, for a client that has not asked for values
    /// ([`Out::is_binary`]).
    pub fn text_row(&mut self, fill: impl FnOnce(&mut Cells<'_>)) {
        self.write(0, |w, _| w.text_row_with(fill));
    }

    /// Whether [`Out::room`] has something to send.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.buf.len() >= BATCH_BYTES
    }

    /// Sends what is written if that is much, and waits while the client does not read.
    pub async fn room(&mut self) -> io::Result<()> {
        if !self.is_long() {
            return Ok(());
        }
        // The next batch will be as long: it does not have to grow to that.
        let next = Vec::with_capacity(BATCH_BYTES + BATCH_BYTES / 4);
        let batch = std::mem::replace(&mut self.buf, next);
        self.conn.send_framed(batch).await
    }

    /// The rows are complete.
    pub async fn end(&mut self, status: u16) -> io::Result<()> {
        self.write(status, |w, _| w.end(0));
        self.send().await
    }

    /// A whole result.
    pub async fn rows(
        &mut self,
        columns: Vec<Column>,
        rows: &[Vec<Option<String>>],
        status: u16,
    ) -> io::Result<()> {
        self.columns(columns, status);
        for row in rows {
            let values: Vec<_> = row
                .iter()
                .map(|cell| {
                    cell.as_ref()
                        .map_or(Value::Null, |text| Value::Bytes(text.as_bytes()))
                })
                .collect();
            self.row(&values);
            self.room().await?;
        }
        self.end(status).await
    }

    pub(crate) async fn prepared(
        &mut self,
        id: u32,
        prepared: &Prepared,
        status: u16,
    ) -> io::Result<()> {
        self.write(status, |w, _| {
            w.prepared(id, prepared.params, &prepared.columns)
        });
        self.send().await
    }

    pub(crate) async fn fields(&mut self, columns: &[Column], status: u16) -> io::Result<()> {
        self.write(status, |w, _| w.field_list(columns));
        self.send().await
    }

    pub(crate) async fn line(&mut self, line: &str) -> io::Result<()> {
        self.write(0, |w, _| w.line(line.as_bytes()));
        self.send().await
    }
}

fn text<'v>(value: &'v Value<'_>) -> Option<std::borrow::Cow<'v, [u8]>> {
    match value {
        Value::Null => None,
        Value::Bytes(bytes) => Some((*bytes).into()),
        other => Some(other.to_string().into_bytes().into()),
    }
}
