//! Settings that a SET makes beside what it names.

use crate::command::job::Job;
use crate::command::settings::{Meaning, meaning};
use crate::session::Session;

impl Session {
    /// Whether `=DEFAULT` is not what the session's connections begin with, be it only those of
    /// another hostgroup.
    pub(crate) fn begins_otherwise(&self, job: &Job<'_>, name: &str) -> bool {
        // Most often nothing has such a beginning.
        backend::begins_otherwise(
            name,
            backend::any_init_connect(&job.epoch.snapshot),
            self.caps,
        )
    }

    /// Whether a SET has each statement commit by itself again.
    pub(crate) fn turns_autocommit_on(&self, text: &[u8]) -> bool {
        let Ok(settings) = sql::set::parse_in(text, self.escapes()) else {
            return false;
        };
        let mut settings = settings.iter();
        settings.any(|setting| {
            matches!(
                meaning(setting, &self.state),
                Meaning::Autocommit(Some(true))
            )
        })
    }
}
