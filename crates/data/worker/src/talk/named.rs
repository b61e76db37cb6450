//! Errors of partitions, which name the table as its client knows it.

use crate::known::answer::Complaint;
use crate::session::Session;
use backend::Backend;
use wire::errors::DUPLICATE_KEY;
use wire::response::{Outcome, Response};

impl Session {
    /// An answer by which a partition refuses, in words that name the table as the client knows it.
    /// `None` where the server's own do.
    pub(crate) fn refused_by_name(
        &self,
        backend: &Backend,
        response: &Response,
    ) -> Option<Complaint> {
        let Outcome::Err {
            code,
            state,
            message,
        } = response.outcome()
        else {
            return None;
        };
        if response.results() > 0 || response.columns() > 0 {
            return None;
        }
        let words = self.by_name(backend, (code, message))?;
        Some(Complaint { code, state, words })
    }

    /// An error of a partition that names the table as the client knows it.
    pub(crate) fn named(&self, backend: &Backend, complaint: Complaint) -> Complaint {
        let words = self.by_name(backend, (complaint.code, complaint.words.as_bytes()));
        Complaint {
            words: words.unwrap_or(complaint.words),
            ..complaint
        }
    }

    fn by_name(&self, backend: &Backend, (code, message): (u16, &[u8])) -> Option<String> {
        if code != DUPLICATE_KEY.number {
            return None;
        }
        let epoch = self.core.epoch();
        let hostgroup = backend.place().server().hostgroup;
        let words = epoch.snapshot.shards.duplicate_key(hostgroup, message)?;
        // Values may be in any character set.
        String::from_utf8(words).ok()
    }
}
