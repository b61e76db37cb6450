//! A statement that is to be prepared: its text on servers, and where its parameters go there.

use crate::command::dynamic::Naming;
use backend::Prepared;
use sql::Lexing;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use wire::caps::Caps;
use wire::moved::Moved;
use wire::outline::Outline;
use wire::response::PREPARED_ID_AT;
use wire::{Malformed, caps};

/// A comment before the first word changes nothing of the answer, and often has what is different
/// each time. Further in it may be a part of a column's name.
pub(crate) fn without_comment(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_start();
    if !text.starts_with(b"/*") {
        return text;
    }
    match sql::words::first_comment(text, Lexing::Escapes) {
        Some(inside) if inside.start == 2 => text
            .get(inside.end + 2..)
            .unwrap_or_default()
            .trim_ascii_start(),
        _ => text,
    }
}

/// A statement that is being prepared.
pub(crate) struct Preparing {
    /// The id by which the client will know it.
    pub(crate) client: u32,
    /// Where its parameters come from, if a template has moved them.
    pub(crate) moved: Option<Rc<Moved>>,
    /// By what name, for one that is prepared in SQL.
    pub(crate) naming: Option<Naming>,
    /// Statement that servers prepare; known when the rules have had their say.
    pub(crate) statement: OnceCell<Rc<Prepared>>,
    /// Outline of the statement's columns that the client was told, if it remembers that.
    pub(crate) outline: Cell<Option<Outline>>,
}

/// The answer of a server to a COM_STMT_PREPARE, as the client is to see it.
pub(crate) struct Shown {
    id: u32,
    moved: Option<Rc<Moved>>,
    pub(crate) outline: Cell<Option<Outline>>,
}

impl Preparing {
    /// In SQL.
    pub(crate) fn by_name(naming: Naming) -> Self {
        Self {
            client: 0,
            moved: None,
            naming: Some(naming),
            statement: OnceCell::new(),
            outline: Cell::new(None),
        }
    }

    pub(crate) fn statement(&self) -> Option<&Rc<Prepared>> {
        self.statement.get()
    }

    pub(crate) fn shown(&self) -> Shown {
        Shown {
            id: self.client,
            moved: self.moved.clone(),
            outline: Cell::new(None),
        }
    }
}

impl Shown {
    /// Changes an answer that is no error, for a client with these caps.
    pub(crate) fn write(
        &self,
        answer: &mut Vec<u8>,
        client: Caps,
        status: u16,
    ) -> Result<(), Malformed> {
        if let Some(moved) = &self.moved {
            *answer = moved.answer(answer, client, status)?;
        }
        if let Some(at) = answer.get_mut(PREPARED_ID_AT) {
            at.copy_from_slice(&self.id.to_le_bytes());
        }
        Ok(())
    }

    /// Of the answer that the client gets: what it says of columns, if the client remembers that.
    pub(crate) fn remember(&self, answer: &[u8], client: Caps) {
        if caps::has(client, caps::MARIADB_CACHE_METADATA) {
            self.outline.set(Outline::of_prepared(answer, client));
        }
    }
}

/// Returns the part of a text that servers prepare.
pub(crate) fn bare(text: &[u8], lexing: Lexing) -> Cow<'_, [u8]> {
    sql::without_inner(without_comment(sql::without_tail_of_prepared(text, lexing)))
}

/// How many parameters a text has.
pub(crate) fn params(sql: &[u8], lexing: Lexing) -> u16 {
    let params = lexing
        .words(sql)
        .filter(|token| token.is_sign(b'?'))
        .count();
    u16::try_from(params).unwrap_or(u16::MAX)
}
