//! A statement under way: its text or command, its plan, and the client's answer to it.

use crate::command::ahead::Ahead;
use crate::command::dynamic::Dynamic;
use crate::command::prepared;
use crate::command::preparing::Preparing;
use crate::known::answer::Complaint;
use crate::known::decisions::Judged;
use crate::known::epoch::Epoch;
use plan::{Guarded, Plan};
use sql::Class;
use std::cell::Cell;
use std::rc::Rc;
use wire::attributes::Attributes;
use wire::response::Expect;

/// A text as it came, and what was read in it.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) sql: &'a [u8],
    pub(crate) class: &'a Class<'a>,
    /// The statement that it is with other values, if it came before.
    pub(crate) judged: Option<&'a Judged>,
}

impl<'a> Text<'a> {
    pub(crate) const fn of(sql: &'a [u8], class: &'a Class<'a>) -> Self {
        Self {
            sql,
            class,
            judged: None,
        }
    }
}

/// Plan to be carried out, all decided.
pub(crate) struct Job<'a> {
    pub(crate) epoch: &'a Epoch,
    /// Text that rules are asked with: what the client sent, or what a template has made of it.
    pub(crate) text: &'a [u8],
    /// Of what a server gets.
    pub(crate) class: &'a Class<'a>,
    pub(crate) plan: &'a Plan,
    /// Hash of its digest.
    pub(crate) digest: Option<u64>,
    pub(crate) what: What<'a>,
    /// Whether the statement waits where it is, even if nobody serves there.
    pub(crate) stays: bool,
    /// No stage has anything to do for it: [`Session::is_usual`].
    pub(crate) usual: bool,
    /// Connection that it has already, if any.
    pub(crate) ahead: Option<&'a Cell<Option<Box<Ahead>>>>,
}

impl<'a> Job<'a> {
    /// The text that a server gets.
    pub(crate) fn sent(&self) -> &'a [u8] {
        self.what.sent(self.plan, self.text)
    }

    /// No rule has rewritten it.
    pub(crate) fn is_as_written(&self) -> bool {
        self.plan.remade().is_none()
    }
}

/// Command that is sent to the server.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    /// COM_QUERY with the text of the plan, and what the client has sent along.
    Query(&'a Attributes),
    /// This payload as it is.
    Raw(&'a [u8], Expect),
    /// COM_STMT_PREPARE.
    Prepare(&'a Preparing),
    /// COM_STMT_EXECUTE.
    Execute(&'a prepared::Execution<'a>),
    /// COM_QUERY with an EXECUTE or DEALLOCATE of a statement that the session knows by name, or an
    /// EXECUTE IMMEDIATE.
    Dynamic(&'a Dynamic<'a>),
    /// Nothing: this is the answer.
    Refused(&'a Complaint),
}

impl<'a> What<'a> {
    /// The text that a server gets for the client's.
    pub(crate) fn sent(self, plan: &'a Plan, text: &'a [u8]) -> &'a [u8] {
        match self {
            What::Query(_) | What::Prepare(_) => plan.remade().unwrap_or(text),
            What::Execute(execution) => &execution.prepared().sql,
            What::Dynamic(dynamic) => match dynamic.prepared() {
                Some(prepared) => &prepared.sql,
                None => plan.remade().unwrap_or(text),
            },
            What::Raw(..) | What::Refused(_) => text,
        }
    }

    /// Query attributes that the client has sent along.
    pub(crate) fn attributes(self) -> Option<&'a Attributes> {
        match self {
            What::Query(attributes) => Some(attributes),
            What::Dynamic(dynamic) => Some(dynamic.attributes),
            What::Execute(execution) => Some(&execution.attributes),
            What::Raw(..) | What::Prepare(_) | What::Refused(_) => None,
        }
    }

    /// The text that servers have already, or get whatever rules make of it.
    pub(crate) fn sent_anyway(self, text: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            What::Execute(execution) => Some(&execution.prepared().sql),
            What::Dynamic(dynamic) => dynamic.sent_anyway(text),
            What::Raw(..) => Some(text),
            What::Query(_) | What::Prepare(_) | What::Refused(_) => None,
        }
    }

    /// The part that the firewall looks at.
    pub(crate) const fn guarded(self) -> Guarded {
        match self {
            _ if self.is_init_db() => Guarded::Schema,
            What::Raw(..) => Guarded::Nothing,
            _ => Guarded::Text,
        }
    }

    /// Whether it is COM_INIT_DB.
    pub(crate) const fn is_init_db(self) -> bool {
        matches!(self, What::Raw([wire::command::COM_INIT_DB, ..], _))
    }

    /// The schema that what is executed was prepared in, empty for none: it means that one,
    /// wherever its session is now. `None` for what was not prepared.
    pub(crate) fn prepared_in(self) -> Option<&'a Rc<str>> {
        match self {
            What::Execute(execution) => Some(&execution.prepared().schema),
            What::Dynamic(dynamic) => dynamic.prepared().map(|prepared| &prepared.schema),
            What::Query(_) | What::Raw(..) | What::Prepare(_) | What::Refused(_) => None,
        }
    }
}

/// Numbers of a statement that was carried out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) rows_affected: u64,
    pub(crate) rows_sent: u64,
    pub(crate) insert_id: u64,
    /// Value of ROW_COUNT() after the statement, if it did not fail.
    pub(crate) row_count: i64,
    /// No server was asked.
    pub(crate) from_cache: bool,
}

/// The digest of a statement.
pub(crate) struct Digested {
    pub(crate) hash: u64,
    pub(crate) text: Vec<u8>,
}

impl Digested {
    /// Its text, without literals.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}
