//! The command that a server is sent for a statement.

use crate::command::asked::{Asked, Executed, Knows, TOLD};
use crate::command::job::{Job, What};
use crate::command::prepared::UNSUPPORTED;
use crate::command::trouble::Failed;
use crate::known::epoch::Epoch;
use crate::memory::found_rows::asks_for_found_rows;
use crate::session::Session;
use crate::session::remembered::LastGtid;
use backend::{Backend, BackendFailed};
use bridge::Counter;
use shards::{Described, KnownColumns};
use sql::{Leaves, Reads};
use std::borrow::Cow;
use wire::command::COM_STMT_PREPARE;
use wire::outline::Outline;
use wire::packet;
use wire::response::Expect;

impl Session {
    /// The text of a statement that reads ROW_COUNT(), FOUND_ROWS() or `@@last_gtid`, with what
    /// that is for the session where the server does not know it; `None` if it must be asked where
    /// the statement before was.
    pub(crate) fn with_counts(&self, job: &Job<'_>, server: Knows) -> Option<Vec<u8>> {
        // Of several, and of a program, each has a number of its own; a definition would keep this
        // one for good.
        let class = job.class;
        let plain = !class.multi
            && !class.ddl
            && (!class.leaves.intersects(Leaves::UNKNOWN_STATE) || backend::is_call(class));
        let is_text = match job.what {
            What::Query(_) => true,
            What::Execute(execution) => !execution.is_bulk(),
            _ => false,
        };
        let found_rows = self
            .found_rows()
            .filter(|_| !server.found_rows && class.reads.intersects(Reads::FOUND_ROWS))
            .map(u64::from);
        let gtid = (!server.last_gtid && class.reads.intersects(Reads::LAST_GTID))
            .then(|| self.remembered.last_gtid.borrow());
        let last_gtid = gtid.as_deref().and_then(LastGtid::known);
        // What is prepared for the one changes what the server knows of the other.
        let forgets =
            (found_rows.is_some() || last_gtid.is_some()) && matches!(job.what, What::Execute(_));
        let row_count = ((!server.row_count || forgets)
            && class.reads.intersects(Reads::ROW_COUNT))
        .then(|| self.remembered.row_count.get());
        let warns = server.warns && matches!(job.what, What::Query(_));
        (plain && is_text && (row_count.is_some() || found_rows.is_some() || last_gtid.is_some()))
            .then(|| {
                let lexing = self.lexing_of(job.what);
                // Not the text that has it already.
                let own =
                    self.own_number(job.sent(), lexing, class.reads, self.schema_of_text(job));
                let counts = sql::Counts {
                    row_count,
                    found_rows,
                    warns,
                    last_gtid,
                    own,
                };
                sql::with_counts(job.sent(), lexing, counts)
            })
            .flatten()
    }

    /// The schema that the names of a statement are read in.
    fn schema_of_text<'s>(&'s self, job: &Job<'s>) -> &'s str {
        match job.what {
            What::Execute(execution) => &execution.prepared().schema,
            _ => &self.state.schema,
        }
    }

    /// Returns the text of [`Self::with_counts`], also with the session's number. Fails where the
    /// server would say something that nobody knows.
    fn counted(&self, job: &Job<'_>, server: Knows) -> Result<Option<Vec<u8>>, Failed> {
        if !job.class.reads.intersects(TOLD) {
            return Ok(None);
        }
        let text = self.with_counts(job, server);
        self.answers_last_gtid(job, server, text.is_some())?;
        let is_made_up = asks_for_found_rows(job.class)
            && !server.found_rows
            && (text.is_none() || self.found_rows().is_none());
        if is_made_up {
            return Err(Failed::Backend(self.unknown_found_rows()));
        }
        // What is prepared has the session's number in its text.
        let own = || {
            self.with_own_number(
                job.sent(),
                self.lexing_of(job.what),
                job.class.reads,
                &self.state.schema,
            )
        };
        Ok(text.or_else(|| matches!(job.what, What::Query(_)).then(own).flatten()))
    }

    /// The command for this connection; what has to be there before it is sent. `server`: what the
    /// session remembers, and the server, too.
    pub(crate) async fn command_for(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        server: Knows,
    ) -> Result<Asked, Failed> {
        self.answers_lastval(backend, job)?;
        let limit_ms = self.limit_ms(job);
        let mut command = Vec::new();
        let (expect, shown, executed) = match job.what {
            What::Query(attributes) => {
                let text = self.counted(job, server)?;
                let (text, caps) = (
                    text.as_deref().unwrap_or_else(|| job.sent()),
                    backend.hello.caps,
                );
                command.reserve_exact(packet::HEADER_LEN + text.len() + 3);
                let attributes = self.attributes_for(job, attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| {
                    wire::attributes::write_query(out, text, &attributes, caps)
                });
                (Expect::Query, None, None)
            }
            What::Refused(_) => unreachable!("the client has its answer"),
            What::Raw(raw, expect) => {
                packet::append(&mut command, &mut 0, raw);
                (expect, None, None)
            }
            What::Prepare(preparing) if preparing.naming.is_some() => {
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                // A slot that is in use is given up first.
                let text = Box::pin(self.prepared_for(
                    limit_ms,
                    preparing.in_sql(backend, job, max),
                    false,
                ))
                .await?;
                let (attributes, caps) = (
                    self.attributes_for(job, preparing.attributes(), backend.hello.caps),
                    backend.hello.caps,
                );
                packet::append_with(&mut command, &mut 0, |out| {
                    wire::attributes::write_query(out, &text, &attributes, caps)
                });
                (Expect::Query, None, None)
            }
            What::Dynamic(dynamic) => {
                self.answers_last_gtid(job, server, false)?;
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                let slot = if dynamic.deallocates() {
                    Box::pin(self.prepared_for(
                        limit_ms,
                        dynamic.bring(backend, max, self.life),
                        false,
                    ))
                    .await?
                } else {
                    dynamic
                        .bring(backend, max, self.life)
                        .await
                        .map_err(Failed::Backend)?
                };
                let own = |sql: &[u8], lexing| {
                    self.with_own_number(sql, lexing, job.class.reads, &self.state.schema)
                };
                let inner = if dynamic.prepared().is_some() {
                    None
                } else {
                    own(job.sent(), self.lexing_of(job.what))
                };
                let text = dynamic.text(job, slot, inner.as_deref());
                // Arguments may ask for it, too.
                let (text, caps) = (
                    own(&text, self.lexing()).map_or(text, Cow::Owned),
                    backend.hello.caps,
                );
                let attributes = self.attributes_for(job, dynamic.attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| {
                    wire::attributes::write_query(out, &text, &attributes, caps)
                });
                (Expect::Query, None, slot.map(Executed::Slot))
            }
            What::Prepare(preparing) => {
                self.core.tally.up(Counter::ComBackendStmtPrepare);
                packet::append_with(&mut command, &mut 0, |out| {
                    out.push(COM_STMT_PREPARE);
                    out.extend_from_slice(
                        preparing
                            .statement()
                            .and_then(|known| known.own())
                            .unwrap_or_else(|| job.sent()),
                    );
                });
                (Expect::Prepare, Some(preparing.shown()), None)
            }
            What::Execute(execution) => {
                if execution.is_bulk() && !wire::bulk::is_known(backend.hello.caps) {
                    let (code, words) = UNSUPPORTED;
                    return Err(Failed::Backend(BackendFailed::Sync {
                        code,
                        state: *b"HY000",
                        message: words.to_owned(),
                    }));
                }
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                let prepared = execution.prepared();
                // It was prepared with the number that the session had before it gave itself
                // another.
                let with_another = || self.remembered.numbered.get() && prepared.own().is_some();
                let text = self
                    .counted(job, server)?
                    .or_else(|| with_another().then(|| prepared.sql.to_vec()));
                let id = match text {
                    None => {
                        let work =
                            backend.prepare(prepared, execution.client, execution.bindings, max);
                        work.await.map_err(Failed::Backend)?
                    }
                    Some(text) => {
                        // A statement of its own: the next execution has another number.
                        let once = self.core.statements.once(prepared, &text);
                        let work =
                            backend.prepare(&once, execution.client, execution.bindings, max);
                        Box::pin(self.prepared_for(limit_ms, work, false)).await?
                    }
                };
                execution.fits(backend, id).map_err(Failed::Backend)?;
                self.core.tally.up(Counter::ComBackendStmtExecute);
                for command in execution.long_data(id) {
                    self.send(backend, command, limit_ms).await?;
                }
                let caps = backend.hello.caps;
                let attributes = self.attributes_for(job, &execution.attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| {
                    execution.write(out, id, &attributes, caps)
                });
                let executed = if execution.is_bulk() {
                    Executed::Bulk(id)
                } else {
                    Executed::Id(id)
                };
                (Expect::Execute, None, Some(executed))
            }
        };
        Ok(Asked {
            command,
            expect,
            shown,
            executed,
        })
    }
}

/// The columns that the client of an execution remembers, and how many it knows of.
pub(crate) fn told_before(what: What<'_>) -> (Option<Outline>, Option<u16>) {
    match what {
        What::Execute(execution) => (execution.outline.take(), execution.known_columns()),
        _ => (None, None),
    }
}

impl Session {
    /// Columns that a decision may know; none where no table is sharded.
    pub(crate) fn known_columns<'a>(
        &self,
        epoch: &Epoch,
        known: &'a Described,
    ) -> Option<KnownColumns<'a>> {
        (!epoch.snapshot.shards.is_empty()).then(|| KnownColumns {
            described: known,
            is_utf8: self.state.speaks_utf8(),
        })
    }
}
