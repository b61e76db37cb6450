//! What the operator wants of the events log.

use crate::Variables;

/// Where statements are logged to, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsLog {
    /// `mysql-eventslog_filename`: beginning of the names of its files; without `/` in front, in
    /// the data directory.
    pub name: Box<str>,
    /// `mysql-eventslog_filesize`: bytes after which the next file is begun.
    pub bytes_max: u64,
    /// `mysql-eventslog_format`.
    pub form: EventsForm,
}

/// Where clients that come and go are logged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLog {
    /// `mysql-auditlog_filename`, as [`EventsLog::name`].
    pub name: Box<str>,
    /// `mysql-auditlog_filesize`: bytes after which the next file is begun.
    pub bytes_max: u64,
}

/// The logs that a thread writes into files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logs {
    /// Statements; none if they are not logged.
    pub events: Option<EventsLog>,
    /// Clients; likewise.
    pub audit: Option<AuditLog>,
}

/// Format of the files of an events log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsForm {
    /// ProxySQL's format 1.
    Binary,
    /// Its format 2: a line of JSON for each statement.
    Json,
}

impl Variables {
    /// All logs that are wanted.
    #[must_use]
    pub fn logs(&self) -> Logs {
        let name = &self.mysql_auditlog_filename;
        Logs {
            events: self.events_log(),
            audit: (!name.is_empty()).then(|| AuditLog {
                name: name.clone(),
                bytes_max: self.mysql_auditlog_filesize,
            }),
        }
    }

    /// None if there is to be none.
    #[must_use]
    pub fn events_log(&self) -> Option<EventsLog> {
        let name = &self.mysql_eventslog_filename;
        let form = if self.mysql_eventslog_format == 2 {
            EventsForm::Json
        } else {
            EventsForm::Binary
        };
        (!name.is_empty()).then(|| EventsLog {
            name: name.clone(),
            bytes_max: self.mysql_eventslog_filesize,
            form,
        })
    }
}
