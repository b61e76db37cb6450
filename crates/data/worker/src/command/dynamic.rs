//! Statements that a session has prepared in SQL, by their names, and a PREPARE, EXECUTE or DEALLOCATE as it
//! was read.

use backend::{Backend, BackendFailed, Interest, Prepared};
use sql::Lexing;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use wire::attributes::Attributes;

/// A statement that a session has named.
pub(crate) struct NamedStatement {
    pub(crate) prepared: Interest,
    /// Text that rules are asked with, where they have made something else of the statement when it
    /// was prepared.
    pub(crate) asked: Option<Rc<[u8]>>,
    /// Whether a backslash escapes where it was written.
    pub(crate) escapes: bool,
    /// How its text was read when it was prepared: servers keep to that.
    pub(crate) lexing: Lexing,
    pub(crate) moved: Option<Rc<Moved>>,
}

impl NamedStatement {
    /// Returns the statement that means the same with the parameters that its client knows.
    pub(crate) fn as_named(&self) -> &Rc<Prepared> {
        self.moved
            .as_ref()
            .map_or(&self.prepared, |moved| &moved.before)
    }
}

/// A template has moved the parameters.
pub(crate) struct Moved {
    /// For each parameter, which argument it is.
    pub(crate) params: Vec<u16>,
    /// How many arguments there are.
    pub(crate) arguments: u16,
    /// The statement without the template, for whoever gives arguments that nobody here can read.
    pub(crate) before: Interest,
}

/// By the session's name.
#[derive(Default)]
pub(crate) struct NamedStatements(pub(crate) BTreeMap<Box<str>, NamedStatement>);

impl NamedStatements {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Of their names and texts.
    pub(crate) fn bytes(&self) -> usize {
        let taken = |statement: &NamedStatement| {
            let before = statement
                .moved
                .as_ref()
                .map_or(0, |moved| moved.before.bytes());
            before
                + statement.prepared.bytes()
                + statement.asked.as_ref().map_or(0, |text| text.len())
        };
        self.0
            .iter()
            .map(|(name, statement)| name.len() + taken(statement))
            .sum()
    }
}

/// Parts of a PREPARE in SQL.
pub(crate) struct Naming {
    pub(crate) name: Box<str>,
    /// The whole statement.
    pub(crate) outer: Box<[u8]>,
    pub(crate) name_at: Range<usize>,
    pub(crate) source_at: Range<usize>,
    /// The text of what is prepared stands in it.
    pub(crate) is_written: bool,
    pub(crate) escapes: bool,
    pub(crate) moved: Option<Rc<Moved>>,
    pub(crate) attributes: Attributes,
    /// Where it is prepared on the connection that was asked; 0 before one was.
    pub(crate) slot: Cell<u32>,
}

/// An EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE.
pub(crate) struct Dynamic<'a> {
    /// The whole statement.
    pub(crate) outer: &'a [u8],
    /// Where the name stands, or the text.
    pub(crate) at: Range<usize>,
    pub(crate) attributes: &'a Attributes,
    pub(crate) does: Does,
}

pub(crate) enum Does {
    /// Execution of what the session has named. `using`: what follows the name, if it is not what
    /// the client has said.
    Execute {
        prepared: Rc<Prepared>,
        lexing: Lexing,
        escapes: bool,
        using: Option<Vec<u8>>,
    },
    /// A text.
    Immediate { escapes: bool },
    /// The name means nothing any more. `told`: the client wants the server's own words for that.
    Deallocate { told: bool },
}

impl Dynamic<'_> {
    /// Returns the statement that is executed, if it was prepared.
    pub(crate) const fn prepared(&self) -> Option<&Rc<Prepared>> {
        match &self.does {
            Does::Execute { prepared, .. } => Some(prepared),
            Does::Immediate { .. } | Does::Deallocate { .. } => None,
        }
    }

    /// How servers read the text of what is executed, if it was prepared.
    pub(crate) const fn lexing(&self) -> Option<Lexing> {
        match self.does {
            Does::Execute { lexing, .. } => Some(lexing),
            Does::Immediate { .. } | Does::Deallocate { .. } => None,
        }
    }

    /// Whether it executes nothing.
    pub(crate) const fn deallocates(&self) -> bool {
        matches!(self.does, Does::Deallocate { .. })
    }

    /// As `prepared` of [`plan::Statement`].
    pub(crate) fn sent_anyway<'t>(&'t self, text: &'t [u8]) -> Option<&'t [u8]> {
        match &self.does {
            Does::Execute { prepared, .. } => Some(&prepared.sql),
            Does::Immediate { .. } => None,
            Does::Deallocate { .. } => Some(text),
        }
    }

    /// Its parameters are user variables, or its text is one: a connection may have another value,
    /// of another session too.
    pub(crate) fn uses_variables(&self) -> bool {
        !self.deallocates()
            && self
                .outer
                .get(self.at.start..)
                .is_some_and(|rest| rest.contains(&b'@'))
    }

    /// The session of this life, if it gives user variables for parameters; else 0.
    fn binder(&self, life: u64) -> u64 {
        if self.uses_variables() { life } else { 0 }
    }

    /// Whether a connection knows what it executes, and means there what it means to the session of
    /// this life.
    pub(crate) fn is_there(&self, backend: &Backend, life: u64) -> bool {
        self.prepared()
            .is_none_or(|prepared| backend.has_slot(prepared, self.binder(life)))
    }

    /// Prepares what it executes, if a connection does not know it; the slot there.
    pub(crate) async fn bring(
        &self,
        backend: &mut Backend,
        max: u64,
        life: u64,
    ) -> Result<Option<u32>, BackendFailed> {
        match &self.does {
            Does::Execute {
                prepared, escapes, ..
            } => backend
                .slot(prepared, *escapes, max, self.binder(life))
                .await
                .map(Some),
            Does::Deallocate { told: true } => backend.prepare_to_deallocate().await,
            Does::Immediate { .. } | Does::Deallocate { told: false } => Ok(None),
        }
    }
}
