//! What clients do to their connections, for the audit log.

use crate::core::Core;
use crate::known::answer::Complaint;
use crate::session::Session;
use bridge::{Auditable, Audited, Counter};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Takes what clients do to the log's thread. It does not wait; `false` if there was no room.
pub type Audits = Arc<dyn Fn(Audited) -> bool + Send + Sync>;

/// This core's clients, as the audit log sees them.
pub(crate) struct Auditor {
    hand: Audits,
    /// When sessions came, in microseconds since 1970, by their number: of those that have come while
    /// there was a log.
    came: RefCell<HashMap<u32, u64>>,
}

impl Auditor {
    pub(crate) fn new(hand: Audits) -> Self {
        Self {
            hand,
            came: RefCell::default(),
        }
    }
}

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
fn in_words((host, port): (&str, u16)) -> String {
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

    fn audit(&self, audited: Audited) {
        if !(self.auditor.hand)(audited) {
            self.tally.up(Counter::AuditDropped);
        }
    }
}

impl Session {
    /// Tells the log that the session has come, left, or become another. `why`: why it was refused,
    /// or closed.
    pub(crate) fn audit(&self, what: Auditable, why: Option<&str>) {
        let (id, mut all) = (self.entry.id, self.core.auditor.came.borrow_mut());
        let came = match what {
            Auditable::Quit => all.get(&id).copied(),
            Auditable::Close => all.remove(&id),
            _ => None,
        };
        if !self.core.is_audited() {
            return;
        }
        let at_us = self.core.rt.wall_us();
        if what == Auditable::ConnectOk {
            all.insert(id, at_us);
        }
        let client = &self.entry.client;
        self.core.audit(Audited {
            what,
            at_us,
            came_us: came,
            session: u64::from(id),
            user: self.user_name.to_string(),
            schema: self.state.schema.to_string(),
            client: in_words((&client.0, client.1)),
            local: in_words((&self.local, self.local_port)),
            tls: self.client.is_tls(),
            why: why.map(str::to_owned),
        });
    }
}
