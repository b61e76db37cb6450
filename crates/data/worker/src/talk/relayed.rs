//! A session whose password only its server knows keeps its login.

use crate::command::job::Job;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Backend, BackendFailed, Hold};
use net::NetError;

pub(crate) fn hostgroup(epoch: &Epoch) -> u32 {
    let hostgroup = epoch.snapshot.variables.mysql_relay_logins_hostgroup;
    u32::try_from(hostgroup).unwrap_or(u32::MAX)
}

impl Session {
    /// Whether only a server knows the password of its user.
    pub(crate) fn is_relayed(&self) -> bool {
        self.secret.is_relayed()
    }

    /// Keeps the connection of its login: nobody could open another.
    pub(crate) fn keeps_login(&mut self, mut backend: Box<Backend>) {
        backend.holds.add(Hold::NotAllowed);
        let hostgroup = backend.place().server().hostgroup;
        self.held.put(hostgroup, backend);
        self.entry.shows_held(&self.held, self.core.rt.now());
    }

    /// Returns what the client hears of a failure, and whether its session is over. Where the
    /// connection of its login is gone, it has to log in anew.
    pub(crate) fn tells_of(&self, job: &Job<'_>, failure: &BackendFailed) -> (Complaint, bool) {
        let is_out = matches!(failure, BackendFailed::Unproven)
            && job.plan.hostgroup() == self.user.default_hostgroup;
        let lost = BackendFailed::BrokeBefore(NetError::Closed);
        (Complaint::of(if is_out { &lost } else { failure }), is_out)
    }
}
