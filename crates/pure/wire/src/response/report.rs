//! What a response can be asked, while it is followed and after its end.

use super::{Form, Next, Outcome, Prepared, Response, Tail};
use crate::ok;

impl Response {
    /// True when the whole response was followed.
    pub fn is_ended(&self) -> bool {
        self.next == Next::Ended && !self.continued && self.skip == 0
    }

    /// How it ended.
    pub fn outcome(&self) -> Outcome<'_> {
        match self.form {
            Form::Err => match ok::Err::read(&self.last) {
                Ok(ok::Err {
                    code,
                    state,
                    message,
                }) => Outcome::Err {
                    code,
                    state,
                    message,
                },
                Err(_) => Outcome::Ok, // take() has read it before it was kept
            },
            Form::Infile => Outcome::LocalInfile(self.last.get(1..).unwrap_or_default()),
            _ => Outcome::Ok,
        }
    }

    /// SERVER_STATUS_* of the last OK or EOF so far; 0 before there was one. An ERR says nothing of
    /// the status.
    pub fn status(&self) -> u16 {
        self.said.status
    }

    /// True if there was an OK or EOF, so that [`Self::status`] means something.
    pub fn is_status_known(&self) -> bool {
        self.said.status_known
    }

    /// Warnings of the last result so far.
    pub fn warnings(&self) -> u16 {
        self.said.warnings
    }

    /// Affected rows, of all results together.
    pub fn affected_rows(&self) -> u64 {
        self.said.affected_rows
    }

    /// The last insert id that was not 0.
    pub fn insert_id(&self) -> u64 {
        self.said.insert_id
    }

    /// Rows that came, of all results together.
    pub fn rows(&self) -> u64 {
        self.said.rows
    }

    /// Columns of the last result set so far.
    pub fn columns(&self) -> u32 {
        self.said.columns
    }

    /// The definitions of the last columns, or of what was prepared, were left out.
    pub const fn is_bare(&self) -> bool {
        self.said.bare
    }

    /// Complete results so far.
    pub fn results(&self) -> u32 {
        self.said.results
    }

    /// Session changes of all OK packets so far, raw: read them with [`crate::track::changes`].
    pub fn session_track(&self) -> &[u8] {
        &self.changes
    }

    /// Session changes, read.
    pub fn changes(&self) -> impl Iterator<Item = crate::track::Change<'_>> {
        crate::track::changes(&self.changes)
    }

    /// True if there were more session changes than are kept: what the session looks like is not
    /// known any more.
    pub fn is_session_track_lost(&self) -> bool {
        self.said.changes_lost
    }

    /// Returns the statement that was prepared.
    pub fn prepared(&self) -> Option<Prepared> {
        self.said.prepared
    }

    /// Where the four bytes of the statement id begin in the bytes that were followed last, if the
    /// packet lies wholly in them. See also [`super::PREPARED_ID_AT`].
    pub fn prepared_id_at(&self) -> Option<usize> {
        self.prepared_id_at
    }

    /// Sequence number of the last packet that was seen.
    pub fn last_seq(&self) -> u8 {
        (self.next_seq as u8).wrapping_sub(1)
    }

    /// Where the last packet of the response (its header) begins in the bytes that were followed
    /// last, if it is an OK, EOF, ERR or file request that lies wholly in them.
    pub fn tail_start(&self) -> Option<usize> {
        self.tail_start
    }

    /// Returns what the last packet of the response said, if it was an OK or EOF: to write it anew
    /// for a client with other caps.
    pub fn tail(&self) -> Option<Tail<'_>> {
        let plain = ok::Ok {
            affected: self.said.affected_last,
            insert_id: self.said.insert_id_last,
            status: self.said.status,
            warnings: self.said.warnings,
            ..ok::Ok::default()
        };
        let full = || {
            if self.last.is_empty() {
                Some(plain)
            } else {
                ok::Ok::read(&self.last, self.caps).ok()
            }
        };
        match self.form {
            Form::Ok => full().map(Tail::Ok),
            Form::End => full().map(Tail::End),
            Form::Eof => Some(Tail::End(plain)),
            Form::None | Form::Err | Form::Infile => None,
        }
    }
}
