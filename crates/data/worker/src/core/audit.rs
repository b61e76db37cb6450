//! Records of the audit log for clients that are not let in.

use crate::core::Core;
use crate::known::answer::Complaint;
use bridge::{Auditable, Audited, Counter};

/// Host and port.
pub(crate) type Host = (String, u16);

/// Line that the audit log would have for a client that is not in yet; nothing if there is no log.
pub(crate) struct Newcomer(Option<Audited>);

impl Newcomer {
    /// `id`: the number that its session would have. `login`: the user and the schema that it has
    /// named.
    pub(crate) fn new(
        core: &Core,
        id: u32,
        (user, schema): (&str, Option<&str>),
        (client, local): (&Host, &Host),
        tls: bool,
    ) -> Self {
        Self(core.is_audited().then(|| Audited {
            what: Auditable::ConnectErr,
            at_us: core.rt.wall_us(),
            came_us: None,
            session: u64::from(id),
            user: user.to_owned(),
            schema: schema.unwrap_or_default().to_owned(),
            client: in_words((&client.0, client.1)),
            local: in_words((&local.0, local.1)),
            tls,
            why: None,
        }))
    }

    /// Tells the log that the client was refused, and why.
    pub(crate) fn refuse(self, core: &Core, complaint: &Complaint) {
        if let Some(audited) = self.0 {
            core.audit(Audited {
                why: Some(complaint.words.clone()),
                ..audited
            });
        }
    }
}

/// `address:port`; a Unix socket is `localhost`, or its path.
pub(crate) fn in_words((host, port): (&str, u16)) -> String {
    match port {
        0 => host.to_owned(),
        port if host.contains(':') => format!("[{host}]:{port}"),
        port => format!("{host}:{port}"),
    }
}

impl Core {
    /// Whether somebody reads it.
    pub(crate) fn is_audited(&self) -> bool {
        let epoch = self.epoch();
        !epoch.snapshot.variables.mysql_auditlog_filename.is_empty()
    }

    pub(crate) fn audit(&self, audited: Audited) {
        if !(self.auditor.hand)(audited) {
            self.tally.up(Counter::AuditDropped);
        }
    }
}
