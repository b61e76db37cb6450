//! Texts that a server is sent for a PREPARE, EXECUTE or DEALLOCATE in SQL.

use crate::command::dynamic::{Does, Dynamic};
use crate::command::job::Job;
use crate::command::preparing::Preparing;
use backend::{Backend, BackendFailed, slot_name};
use sql::dynamic::literal;
use std::borrow::Cow;
use std::ops::Range;
use wire::attributes::Attributes;

impl Dynamic<'_> {
    /// Returns the text that a server gets. `own`: with the session's number in it, a text that is
    /// executed at once.
    pub(crate) fn text(
        &self,
        job: &Job<'_>,
        slot: Option<u32>,
        own: Option<&[u8]>,
    ) -> Cow<'_, [u8]> {
        match &self.does {
            // Nothing has that name there; what counts is that it is the last statement.
            Does::Deallocate { .. } if slot.is_none() => Cow::Borrowed(b"DO 0"),
            Does::Immediate { .. } if own.is_none() && job.is_as_written() => {
                Cow::Borrowed(self.outer)
            }
            Does::Immediate { escapes } => Cow::Owned(with(
                self.outer,
                &self.at,
                &literal(own.unwrap_or_else(|| job.sent()), *escapes),
            )),
            Does::Execute {
                using: Some(using), ..
            } => {
                let before = self.outer.get(..self.at.start).unwrap_or_default();
                Cow::Owned(
                    [
                        before,
                        slot_name(slot.unwrap_or_default()).as_bytes(),
                        using,
                    ]
                    .concat(),
                )
            }
            Does::Execute { .. } | Does::Deallocate { .. } => Cow::Owned(with(
                self.outer,
                &self.at,
                slot_name(slot.unwrap_or_default()).as_bytes(),
            )),
        }
    }
}

impl Preparing {
    /// The statement for a connection, in a slot that is empty until it was answered.
    pub(crate) async fn in_sql(
        &self,
        backend: &mut Backend,
        job: &Job<'_>,
        max: u64,
    ) -> Result<Vec<u8>, BackendFailed> {
        let (Some(naming), Some(statement)) = (&self.naming, self.statement()) else {
            return Ok(Vec::new());
        };
        let slot = backend.take_slot(statement, max).await?;
        naming.slot.set(slot);
        let text = if let Some(own) = statement.own() {
            with(
                &naming.outer,
                &naming.source_at,
                &literal(own, naming.escapes),
            )
        } else if naming.is_written && job.is_as_written() {
            naming.outer.clone().into_vec()
        } else {
            with(
                &naming.outer,
                &naming.source_at,
                &literal(job.sent(), naming.escapes),
            )
        };
        // The name comes first.
        Ok(with(&text, &naming.name_at, slot_name(slot).as_bytes()))
    }

    /// Returns the attributes that came along with a PREPARE in SQL.
    pub(crate) fn attributes(&self) -> &Attributes {
        self.naming
            .as_ref()
            .map_or(const { &Attributes::NONE }, |naming| &naming.attributes)
    }
}

/// Returns what follows the name, for a statement whose parameters are these arguments.
pub(crate) fn in_their_places(text: &[u8], given: &[Range<usize>], params: &[u16]) -> Vec<u8> {
    let mut using = Vec::new();
    for at in params
        .iter()
        .filter_map(|param| given.get(usize::from(*param)))
    {
        using.extend_from_slice(if using.is_empty() { b" USING " } else { b", " });
        using.extend_from_slice(text.get(at.clone()).unwrap_or_default());
    }
    using
}

/// The text with something else in this place.
pub(crate) fn with(text: &[u8], at: &Range<usize>, instead: &[u8]) -> Vec<u8> {
    [
        text.get(..at.start).unwrap_or_default(),
        instead,
        text.get(at.end..).unwrap_or_default(),
    ]
    .concat()
}
