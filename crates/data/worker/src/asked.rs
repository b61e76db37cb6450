//! The command that a server is sent for a statement.

use crate::bulk::UNSUPPORTED;
use crate::preparing::Shown;
use crate::relay::Failed;
use crate::session::Session;
use crate::statement::{Job, What};
use backend::{Backend, BackendFailed};
use bridge::Counter;
use sql::{Leaves, Reads};
use wire::command::COM_STMT_PREPARE;
use wire::packet;
use wire::response::Expect;

/// A command, and what is to be done with its answer.
pub(crate) struct Asked {
    /// As bytes for the wire.
    pub(crate) command: Vec<u8>,
    pub(crate) expect: Expect,
    /// What the client is to see in the answer to a COM_STMT_PREPARE.
    pub(crate) shown: Option<Shown>,
    /// How the server knows the statement that is executed, if it was prepared.
    pub(crate) executed: Option<Executed>,
}

/// How a server knows a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executed {
    /// By an id.
    Id(u32),
    /// By the name of a slot.
    Slot(u32),
}

impl Executed {
    /// As servers say it in error 1243.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::Id(id) => format!("({id})"),
            Self::Slot(slot) => format!("({})", backend::slot_name(slot)),
        }
    }

    /// The server knows it no more, or shall forget it.
    pub(crate) fn forget(self, backend: &mut Backend) {
        match self {
            Self::Id(id) => backend.forget_prepared(id),
            Self::Slot(slot) => backend.empty_slot(slot),
        }
    }
}

impl Session {
    /// The text of a statement that reads ROW_COUNT(), with what that is for the session; `None` if it must be asked where the statement before was.
    pub(crate) fn with_row_count(&self, job: &Job<'_>) -> Option<Vec<u8>> {
        // Of several, and of a program, each has a number of its own; a definition would keep this one for good.
        let plain = !job.class.multi && !job.class.ddl && !job.class.leaves.intersects(Leaves::UNKNOWN_STATE);
        (plain && matches!(job.what, What::Query(_)))
            .then(|| sql::with_row_count(job.sent(), self.lexing(), self.entry.row_count.get()))
            .flatten()
    }

    /// The command for this connection; what has to be there before it is sent. `alone`: the session's last statement was the last there, too.
    pub(crate) async fn command_for(&mut self, backend: &mut Backend, job: &Job<'_>, alone: bool) -> Result<Asked, Failed> {
        let limit_ms = self.limit_ms(job);
        let mut command = Vec::new();
        let (expect, shown, executed) = match job.what {
            What::Query(attributes) => {
                let known = job.class.reads.intersects(Reads::ROW_COUNT) && !alone;
                let text = if known { self.with_row_count(job) } else { None };
                let (text, caps) = (text.as_deref().unwrap_or_else(|| job.sent()), backend.hello.caps);
                command.reserve_exact(packet::HEADER_LEN + text.len() + 3);
                let attributes = self.attributes_for(job, attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| wire::attributes::write_query(out, text, &attributes, caps));
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
                let text = Box::pin(self.prepared_for(limit_ms, preparing.in_sql(backend, job, max), false)).await?;
                let (attributes, caps) =
                    (self.attributes_for(job, preparing.attributes(), backend.hello.caps), backend.hello.caps);
                packet::append_with(&mut command, &mut 0, |out| wire::attributes::write_query(out, &text, &attributes, caps));
                (Expect::Query, None, None)
            }
            What::Dynamic(dynamic) => {
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                let slot = if dynamic.deallocates() {
                    Box::pin(self.prepared_for(limit_ms, dynamic.bring(backend, max), false)).await?
                } else {
                    dynamic.bring(backend, max).await.map_err(Failed::Backend)?
                };
                let (text, caps) = (dynamic.text(job, slot), backend.hello.caps);
                let attributes = self.attributes_for(job, dynamic.attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| wire::attributes::write_query(out, &text, &attributes, caps));
                (Expect::Query, None, slot.map(Executed::Slot))
            }
            What::Prepare(preparing) => {
                self.core.tally.up(Counter::ComBackendStmtPrepare);
                packet::append_with(&mut command, &mut 0, |out| {
                    out.push(COM_STMT_PREPARE);
                    out.extend_from_slice(job.sent());
                });
                (Expect::Prepare, Some(preparing.shown()), None)
            }
            What::Execute(execution) => {
                if execution.is_bulk() && !wire::bulk::is_known(backend.hello.caps) {
                    let (code, words) = UNSUPPORTED;
                    return Err(Failed::Backend(BackendFailed::Sync { code, state: *b"HY000", message: words.to_owned() }));
                }
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                let id = backend.prepare(execution.prepared, execution.client, max).await.map_err(Failed::Backend)?;
                self.core.tally.up(Counter::ComBackendStmtExecute);
                for command in execution.long_data(id) {
                    self.send(backend, command, limit_ms).await?;
                }
                let caps = backend.hello.caps;
                let attributes = self.attributes_for(job, &execution.attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| execution.write(out, id, &attributes, caps));
                (Expect::Execute, None, Some(Executed::Id(id)))
            }
        };
        Ok(Asked { command, expect, shown, executed })
    }
}
