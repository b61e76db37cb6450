//! Records of the audit log for a session.

use crate::core::audit::in_words;
use crate::session::Session;
use bridge::{Auditable, Audited};

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
