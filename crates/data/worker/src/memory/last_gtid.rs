//! `@@last_gtid` follows the session: MariaDB tells it after each write with what else it tells
//! (docs/decisions/0020), and a text that reads it is sent with the value in its place. The
//! connection may have written for somebody else since.

use crate::command::asked::Knows;
use crate::command::job::{Job, What};
use crate::command::trouble::Failed;
use crate::session::Session;
use crate::session::remembered::LastGtid;
use backend::{Backend, BackendFailed, Hold, Tracking};
use sql::{CommandCounter, Leaves, Reads};

impl Session {
    /// A server has told it.
    pub(crate) fn learn_last_gtid(&self, value: &[u8]) {
        let known = std::str::from_utf8(value)
            .map_or(LastGtid::Unknown, |value| LastGtid::Is(value.into()));
        self.remembered.last_gtid.replace(known);
    }

    /// A statement has run: what may have a number, on a connection whose server does not tell it,
    /// leaves it unknown.
    pub(crate) fn doubt_last_gtid(&self, backend: &Backend, job: &Job<'_>) {
        if !backend.hello.is_mariadb()
            || backend.tells_all()
            || matches!(job.what, What::Prepare(_))
        {
            return;
        }
        let class = job.class;
        // Before what fires triggers the server was asked to tell, and what a transaction ends with
        // was before it.
        let writes = class.ddl
            || class.may_write()
            || class.leaves.intersects(Leaves::SEQUENCE | Leaves::NEXTVAL);
        // Unless the telling was ended for a statement in between, or the session says what it is
        // told.
        let may_end = || self.state.tracks() || self.tracking(job) == Tracking::Off;
        if writes && !class.ends_transaction || backend.holds.has(Hold::Transaction) && may_end() {
            self.remembered.last_gtid.replace(LastGtid::Unknown);
        }
    }

    /// Whether a server is asked as it is: one that has no such thing; and a connection that is
    /// kept for good, where nobody knows better.
    pub(crate) fn leaves_last_gtid(&self, backend: &Backend) -> bool {
        !backend.hello.is_mariadb()
            || backend.holds.has(Hold::NotAllowed)
                && matches!(*self.remembered.last_gtid.borrow(), LastGtid::Unknown)
    }

    /// # Errors
    /// The statement would be told what the connection knows, which may be another session's.
    /// `replaced`: not any more.
    pub(crate) fn answers_last_gtid(
        &self,
        job: &Job<'_>,
        server: Knows,
        replaced: bool,
    ) -> Result<(), Failed> {
        if job.class.ddl {
            return Ok(());
        }
        if job.class.reads.intersects(Reads::WSREP_GTID) && !server.kept {
            let message = "WSREP_LAST_SEEN_GTID() and WSREP_LAST_WRITTEN_GTID() are of a connection, which other sessions use, too: keep it \
                           (multiplex = 0) from before the write on";
            return Err(Failed::Backend(BackendFailed::Sync {
                code: 1235,
                state: *b"42000",
                message: message.to_owned(),
            }));
        }
        let reads = job.class.reads.intersects(Reads::LAST_GTID) && !server.last_gtid;
        if !reads || replaced && self.remembered.last_gtid.borrow().known().is_some() {
            return Ok(());
        }
        if job.class.command == CommandCounter::Show {
            if server.kept {
                return Ok(());
            }
            let message = "What SHOW VARIABLES says of last_gtid is of a connection, which other sessions use, too: ask with SELECT @@last_gtid";
            return Err(Failed::Backend(BackendFailed::Sync {
                code: 1235,
                state: *b"42000",
                message: message.to_owned(),
            }));
        }
        let message = "What @@last_gtid is for this session is not known: ask in a statement of its own, right after a write, or keep the connection \
                       (multiplex = 0)";
        Err(Failed::Backend(BackendFailed::Sync {
            code: 1235,
            state: *b"42000",
            message: message.to_owned(),
        }))
    }
}
