//! A writer that takes no writes any more under a statement: the statement waits for the next one.
//!
//! docs/features/failover.md

use crate::command::job::{Job, Told, What};
use crate::command::trouble::{Ended, Failed};
use crate::command::withheld::runs_others;
use crate::known::answer::cut_off;
use crate::memory::drain::Whom;
use crate::memory::table::TABLE;
use crate::session::Session;
use backend::{Backend, BackendFailed};
use bridge::Counter;
use rt::Instant;
use sql::CommandCounter;
use std::ops::ControlFlow;
use std::time::Duration;

/// So long after a refusal a server is asked again, if nothing is heard of it meanwhile.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Result of waiting for the next writer.
pub(crate) enum Waited {
    /// The statement may be said again.
    Again,
    /// The client has an answer.
    Told(Told),
    /// The time is over: the client reads what the server said.
    InVain,
}

/// Whether it is a COMMIT, and nothing more.
pub(crate) fn commits(job: &Job<'_>) -> bool {
    matches!(job.what, What::Query(_) | What::Execute(_))
        && job.class.command == CommandCounter::Commit
        && !job.class.multi
}

impl Session {
    /// Whether a statement on this connection, if the server says that it takes no writes, has done
    /// nothing, and may be said to the next writer instead. Asked before the statement is sent.
    pub(crate) fn may_wait_for_a_writer(&self, backend: &Backend, job: &Job<'_>) -> bool {
        let servers = &job.epoch.snapshot.servers;
        // The cheapest first: most configurations have no such hostgroup.
        servers.is_of_writers(job.plan.hostgroup())
            && job.epoch.snapshot.variables.mysql_monitor_enabled
            && !backend.holds.carry_state()
            && !runs_others(job.class)
            && !matches!(job.what, What::Raw(..) | What::Refused(_))
            && !self.wants_to_read_only()
    }

    /// The client itself has made its transactions read-only.
    pub(crate) fn wants_to_read_only(&self) -> bool {
        ["transaction_read_only", "tx_read_only"]
            .iter()
            .any(|name| self.state.variable(name).is_some())
    }

    /// The monitor looks at a server at once that has broken off, or takes no writes any more.
    pub(crate) fn have_it_looked_at(&self, backend: &Backend, why: &Failed) {
        let Failed::Backend(failed) = why else { return };
        let is_odd = matches!(
            failed,
            BackendFailed::ReadOnly { .. }
                | BackendFailed::BrokeBefore(_)
                | BackendFailed::BrokeAfter(_)
                | BackendFailed::TooSlow { .. }
        );
        if is_odd {
            let place = backend.place();
            let pools = &self.core.pools;
            pools.have_looked_at(place.host(), place.server().port);
        }
    }

    /// Waits until something else is known of the servers, or a moment has passed. Together no
    /// longer than a statement waits for a connection. `since`: when the first refusal came.
    pub(crate) async fn wait_for_a_writer(
        &mut self,
        job: &Job<'_>,
        since: &mut Option<Instant>,
    ) -> Result<Waited, Ended> {
        let now = self.core.rt.now();
        let limit_ms = job
            .epoch
            .snapshot
            .variables
            .mysql_connect_timeout_server_max;
        let first = since.is_none();
        let waited = now - *since.get_or_insert(now);
        let left = Duration::from_millis(limit_ms).saturating_sub(waited);
        if left.is_zero() {
            return Ok(Waited::InVain);
        }
        if first {
            self.core.tally.up(Counter::StatementsHeldForWriter);
        }
        // What the old one remembers of the session goes along.
        let hostgroup = job.plan.hostgroup();
        let whom = Whom::Command {
            limit_ms: self.limit_ms(job),
            answered: false,
        };
        let is_there = |_: &Self, at: u32, _: &Backend| at == hostgroup;
        match self.drain(is_there, &TABLE, whom).await {
            Err(trouble) if matches!(trouble.why, Failed::Client) => return Err(Ended::Gone),
            Err(trouble) if trouble.state_lost => return Err(Ended::Told(cut_off())),
            // What was only remembered there is lost, as with any server that is lost. Who ends the
            // statement is heard below.
            Ok(()) | Err(_) => {}
        }
        let (rt, pools) = (self.core.rt.clone(), self.core.pools.clone());
        let pause = async {
            let changes = pools.are_placed_anew();
            let _changed_or_not = rt.timeout(left.min(ASK_AGAIN), changes).await;
        };
        Ok(match self.pause_while_wanted(pause).await? {
            ControlFlow::Continue(()) => Waited::Again,
            ControlFlow::Break(told) => Waited::Told(told),
        })
    }
}
