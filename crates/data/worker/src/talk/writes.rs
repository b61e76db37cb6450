//! Tables that a session has written and whose results it ends.

use crate::session::Session;
use crate::session::cached::Writes;
use cache::Writing;
use std::time::Duration;

/// How long a write whose outcome we do not know is taken to go on: as long as a server may need to
/// obey a KILL.
const LINGERS: Duration = crate::talk::kill::OBEYS;

impl Session {
    pub(crate) fn writing(&mut self) -> &mut Writing {
        if !matches!(self.cached.writes, Writes::These(_)) {
            self.cached.writes = Writes::These(self.core.cache.tables().writing());
        }
        match &mut self.cached.writes {
            Writes::These(writing) => writing,
            Writes::Nothing | Writes::Unwatched => unreachable!("it has just been made"),
        }
    }

    /// Keeps the session's writing going for `LINGERS` more: it may be done yet, or be at work
    /// still. Its connection broke, or the statement was ended from here.
    pub(crate) fn may_write_yet(&self) {
        if let Writes::These(writing) = &self.cached.writes {
            let writing = writing.clone();
            let core = self.core.clone();
            self.core.rt.spawn(async move {
                core.rt.sleep(LINGERS).await;
                drop(writing);
            });
        }
    }
}
