//! `LASTVAL(s)` is what `NEXTVAL(s)` said last on the connection (MariaDB). A statement that says
//! NEXTVAL itself keeps its connection ([`Hold::Sequence`]); where the default of a column or a
//! trigger says it, no server tells, and who asks for it afterwards would be told what somebody
//! else was given. So writes keep their connection, too, once their user has asked for it; and who
//! asks before is refused, unless this connection knows.

use crate::command::job::{Job, What};
use crate::command::trouble::Failed;
use crate::memory::row::{Memory, never_asked, never_there, nothing_lost};
use crate::session::Session;
use backend::{Backend, BackendFailed, Hold};
use sql::Reads;
use wire::status;

pub(crate) static MEMORY: Memory = Memory {
    holds: &[Hold::Sequence],
    reads: Reads::SEQUENCE.with(Reads::CURRVAL),
    fragile: false,
    is_there: never_there,
    ask: never_asked,
    lose: nothing_lost,
};

impl Session {
    /// A statement is about to run there: what it writes may take numbers from sequences, and what
    /// it asks for it may ask for again.
    pub(crate) fn draw(&self, backend: &mut Backend, job: &Job<'_>) {
        let writes = job.class.may_write();
        if !backend.hello.is_mariadb()
            || !writes && job.class.reads.is_empty()
            || matches!(job.what, What::Prepare(_))
        {
            return;
        }
        if writes && backend.lasting.drew != self.life {
            backend.lasting.drew = self.life;
            self.remembered
                .drawn_at
                .set(self.remembered.drawn_at.get().saturating_add(1));
        }
        let asks = job.class.reads.intersects(Reads::SEQUENCE) && backend.lasting.drew == self.life;
        if (writes || asks) && self.core.asking_lastval.has(&self.user_name) {
            backend.holds.add(Hold::Sequence);
        }
    }

    /// # Errors
    /// It asks for what this connection would answer with a number that another session was given,
    /// or another connection was asked for.
    pub(crate) fn answers_lastval(&self, backend: &Backend, job: &Job<'_>) -> Result<(), Failed> {
        let class = job.class;
        let oracle = class.reads.intersects(Reads::CURRVAL)
            && backend.holds.modes() & status::ANSI_QUOTES != 0;
        let asks = class.reads.intersects(Reads::SEQUENCE) || oracle;
        if !asks
            || class.ddl
            || class.multi
            || !backend.hello.is_mariadb()
            || matches!(job.what, What::Prepare(_) | What::Raw(..))
        {
            return Ok(());
        }
        if [Hold::Sequence, Hold::NotAllowed]
            .iter()
            .any(|hold| backend.holds.has(*hold))
        {
            return Ok(());
        }
        if self.remembered.drawn_at.get() > 0 {
            self.core.asks_lastval(&self.user_name);
        }
        let alone = match self.remembered.drawn_at.get() {
            0 => backend.lasting.drew == 0,
            1 => backend.lasting.drew == self.life,
            _ => false,
        };
        if alone {
            return Ok(());
        }
        let message = "What LASTVAL() is for this session is not known: its writes were on connections that others use, too. From now on this user's writes keep \
                       theirs: write again in a new transaction or session";
        Err(Failed::Backend(BackendFailed::Sync {
            code: 1235,
            state: *b"42000",
            message: message.to_owned(),
        }))
    }
}
