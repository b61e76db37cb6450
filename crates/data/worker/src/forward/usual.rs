//! Usual statements on their connection: they are sent without a stage, and little is learnt from their
//! answers.

use crate::command::ahead::{Before, Sent};
use crate::command::asked::Executed;
use crate::command::follower::Follower;
use crate::command::job::{Job, Told, What};
use crate::command::reads::LARGE;
use crate::command::trouble::{Failed, Trouble};
use crate::core::alone;
use crate::forward::relay::{Ask, doubt_interrupted, relay};
use crate::session::Session;
use backend::{Answered, Backend, Hold, Holds, Idle, Unreported};
use bridge::Counter;
use rt::Chunk;
use std::cell::Cell;
use std::ops::ControlFlow;
use wire::outline::Outline;
use wire::response::{Expect, Outcome};
use wire::{packet, status};

/// Whether nothing keeps a connection, or a transaction alone.
const fn is_free_or_in_transaction(holds: Holds) -> bool {
    holds.is_empty() || holds.is_only(Hold::Transaction)
}

impl Session {
    /// Whether a connection has all that a usual statement needs, and no server could read its text
    /// otherwise than it was read here.
    pub(crate) fn is_usual_there(&self, backend: &Backend, job: &Job<'_>) -> bool {
        let modes = backend.holds.modes() ^ self.reading.flags();
        let is_prepared = || match job.what {
            What::Execute(execution) => {
                backend.has_prepared(execution.prepared(), execution.client, execution.bindings)
            }
            _ => true,
        };
        is_free_or_in_transaction(backend.holds)
            && backend.local.unreported == Unreported::Nothing
            && modes & status::NO_BACKSLASH_ESCAPES == 0
            && backend.has_all(&self.state, None, alone::tracking(job.class))
            && backend.takes_several() == self.several(backend, job)
            && is_prepared()
    }

    /// Asks there, or goes on where that was done already. An execution that the server has lost goes
    /// the long way: [`Failed::Stale`].
    pub(crate) async fn ask_usual(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        ahead: Option<Before>,
    ) -> Result<Told, Trouble> {
        let limit_ms = self.limit_ms(job);
        let mut came = None;
        let (since, sent) = match ahead {
            Some(before) => {
                came = before.came.transpose()?;
                (Some(before.since), before.sent)
            }
            None => {
                let executed = self.executed_there(backend, job).await?;
                let (mut command, sent) = self.writes_usual(backend, job, executed);
                if sent.len >= LARGE || !backend.queue(&mut command)? {
                    self.send(backend, Chunk::from(command), limit_ms).await?;
                }
                (None, sent)
            }
        };
        let ask = Ask {
            since,
            came: Cell::new(came),
            of_partition: job.plan.partition.is_some(),
            ..Ask::to(&sent, limit_ms)
        };
        match relay(self, backend, &ask).await {
            Ok(reply) => {
                if let What::Execute(execution) = job.what {
                    execution.told(&reply, sent.outline);
                }
                backend.local.undisturbed = Some(self.entry.statement.get());
                let told = match self.learn_usual(backend, job, &reply) {
                    Some(told) => told,
                    None => self.learn(backend, job, &reply, sent.executed),
                };
                doubt_interrupted(backend);
                Ok(told)
            }
            Err(trouble) => {
                if matches!(trouble.why, Failed::Stale) {
                    self.is_stale(backend, job, sent.executed, sent.outline);
                }
                Err(trouble)
            }
        }
    }

    /// How the server knows what is executed; it is prepared there first if it is not yet.
    async fn executed_there(
        &self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<Option<Executed>, Trouble> {
        let What::Execute(execution) = job.what else {
            return Ok(None);
        };
        let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
        let prepared = backend.prepare(
            execution.prepared(),
            execution.client,
            execution.bindings,
            max,
        );
        let id = prepared.await.map_err(Failed::Backend)?;
        execution.fits(backend, id).map_err(Failed::Backend)?;
        Ok(Some(Executed::Id(id)))
    }

    /// Writes the command for a statement whose connection has all that it needs. `executed`: how
    /// the server knows what is executed.
    pub(crate) fn writes_usual(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        executed: Option<Executed>,
    ) -> (Vec<u8>, Sent) {
        backend.lease.knew_found_rows = self.knows_found_rows(backend);
        backend.serves(self.life);
        self.draw(backend, job);
        let caps = backend.hello.caps;
        let mut command = Vec::new();
        let (mut outline, mut columns) = (None::<Outline>, None);
        let expect = match (job.what, executed) {
            (What::Execute(execution), Some(Executed::Id(id))) => {
                self.core.tally.up(Counter::ComBackendStmtExecute);
                (outline, columns) = (execution.outline.take(), execution.known_columns());
                command.reserve(packet::HEADER_LEN + execution.len());
                packet::append_with(&mut command, &mut 0, |out| {
                    execution.write(out, id, &execution.attributes, caps)
                });
                Expect::Execute
            }
            (What::Query(attributes), _) => {
                command.reserve_exact(packet::HEADER_LEN + job.sent().len() + 3);
                packet::append_with(&mut command, &mut 0, |out| {
                    wire::attributes::write_query(out, job.sent(), attributes, caps)
                });
                Expect::Query
            }
            _ => unreachable!("is_usual() takes texts and executions"),
        };
        let len = command.len();
        if len as u64 > job.epoch.snapshot.variables.mysql_threshold_query_length {
            backend.retire();
        }
        let sent = Sent {
            len,
            expect,
            executed,
            outline,
            columns,
            demoted: self.withholds_refusal(backend, job),
        };
        (command, sent)
    }

    /// The server has lost the statement, or cannot bring it up to date.
    pub(crate) fn is_stale(
        &self,
        backend: &mut Backend,
        job: &Job<'_>,
        executed: Option<Executed>,
        outline: Option<Outline>,
    ) {
        if let What::Execute(execution) = job.what {
            execution.outline.set(outline);
        }
        // The client does not know of the error, and the server does: its counts are that one's.
        backend.has_failed_unseen();
        if matches!(job.what, What::Dynamic(_)) {
            backend.has_failed(Unreported::Noise);
        }
        if let Some(executed) = executed {
            executed.is_stale(backend);
        }
    }

    /// Learns from an answer that says nothing but rows: all of [`Session::learn`] that there is to
    /// be learnt from it. `None` if it says more.
    pub(crate) fn learn_usual(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        reply: &Follower,
    ) -> Option<Told> {
        let response = reply.response();
        let flags = response.status();
        let says_more = !matches!(response.outcome(), Outcome::Ok)
            || !response.is_status_known()
            || flags & status::AUTOCOMMIT == 0
            || response.results() != 1
            || (response.columns() == 0) == job.class.plain_read
            || response.warnings() > 0
            || response.is_session_track_lost()
            || !response.session_track().is_empty();
        if says_more {
            return None;
        }
        let answered = Answered {
            ok: true,
            status: Some(flags),
            warnings: 0,
            used_tables: false,
        };
        let insert_id = response.insert_id();
        backend.holds.after(job.class, &answered);
        Self::learn_who_led(backend, job);
        Self::learn_warnings_left(backend, job, (false, false), false, 0);
        self.doubt_last_gtid(backend, job);
        self.learn_written(backend, job, response);
        if insert_id != 0 {
            self.learn_insert_id(backend, job, insert_id, response);
        }
        self.learn_recall(backend, job, response, false);
        Self::learn_untold(backend, job);
        self.learn_modes(flags);
        Some(Told {
            rows_affected: response.affected_rows(),
            rows_sent: response.rows(),
            insert_id,
            row_count: response.row_count(),
            from_cache: false,
        })
    }

    /// Keeps the connection of a usual statement for a transaction, or gives it back. One that is
    /// to be looked at first goes the long way.
    pub(crate) fn settle_usual(
        &mut self,
        hostgroup: u32,
        mut backend: Box<Backend>,
    ) -> ControlFlow<(), Box<Backend>> {
        let is_usual = backend.idle == Idle::Proven
            && is_free_or_in_transaction(backend.holds)
            && backend.local.unreported == Unreported::Nothing;
        if !is_usual {
            return ControlFlow::Continue(backend);
        }
        backend.wait_for_silence(self.core.rt.now(), crate::memory::row::SILENT);
        self.held
            .keep_or_release(hostgroup, backend, &self.core.pools);
        ControlFlow::Break(())
    }
}
