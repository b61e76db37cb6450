//! Query attributes on their way: what a server gets along with a statement, and what of it is a
//! part of a cached answer's key.

use crate::command::job::Job;
use crate::session::Session;
use sql::{Lexing, OwnNumber, Reads};
use std::borrow::Cow;
use wire::attributes::Attributes;
use wire::caps;
use wire::caps::Caps;

/// Our id of the session, where the operator wants servers to have it:
/// `mysql-add_session_id_attribute`.
const SESSION_ID: &str = "millrace_session_id";

/// They say who asks, for those who trace requests, and another one comes with each statement.
/// Statements that read an attribute are never answered from the cache, so no answer depends on
/// them.
const TRACING: [&[u8]; 3] = [b"traceparent", b"tracestate", b"baggage"];

impl Session {
    /// The attributes for a server with these caps: the client's, and before them ours if that is
    /// asked for.
    pub(crate) fn attributes_for<'a>(
        &self,
        job: &Job<'_>,
        theirs: &'a Attributes,
        server: Caps,
    ) -> Cow<'a, Attributes> {
        if !job.epoch.snapshot.variables.mysql_add_session_id_attribute
            || !caps::has(server, caps::QUERY_ATTRIBUTES)
        {
            return Cow::Borrowed(theirs);
        }
        let mut all = Attributes::default();
        all.push_text(SESSION_ID, &self.entry.id.to_string());
        theirs.iter().for_each(|attribute| all.push(attribute));
        Cow::Owned(all)
    }
}

/// Returns the bytes of attributes that make two questions different ones.
pub(crate) fn for_key(attributes: &Attributes) -> &[u8] {
    if attributes
        .iter()
        .all(|attribute| TRACING.contains(&attribute.name))
    {
        &[]
    } else {
        attributes.bytes()
    }
}

impl Session {
    /// Returns the value of CONNECTION_ID() in this text, if that is the session's number and not
    /// the server's.
    pub(crate) fn own_number(
        &self,
        sql: &[u8],
        lexing: Lexing,
        reads: Reads,
        schema: &str,
    ) -> Option<OwnNumber> {
        if !reads.intersects(Reads::CONNECTION_ID) || self.remembered.numbered.get() {
            return None;
        }
        sql::own_number_from(sql, lexing, schema).map(|from| OwnNumber {
            number: self.entry.id,
            from,
        })
    }

    /// The text with the session's number where it asks for that.
    pub(crate) fn with_own_number(
        &self,
        sql: &[u8],
        lexing: Lexing,
        reads: Reads,
        schema: &str,
    ) -> Option<Vec<u8>> {
        self.own_number(sql, lexing, reads, schema)
            .and_then(|own| sql::with_own_number(sql, lexing, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_traces_makes_no_other_question() {
        let mut attributes = Attributes::default();
        assert!(for_key(&attributes).is_empty());
        attributes.push_text("traceparent", "00-1-2-01");
        assert!(for_key(&attributes).is_empty());
        attributes.push_text("tenant", "a");
        assert!(!for_key(&attributes).is_empty());
    }
}
