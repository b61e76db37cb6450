//! The command that a server is sent for a statement.

use crate::preparing::Shown;
use crate::relay::Failed;
use crate::session::Session;
use crate::statement::{Job, What};
use backend::Backend;
use bridge::Counter;
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
    /// The server's id of the statement that is executed.
    pub(crate) executed: Option<u32>,
}

impl Session {
    /// The command for this connection; what has to be there before it is sent.
    pub(crate) async fn command_for(&mut self, backend: &mut Backend, job: &Job<'_>) -> Result<Asked, Failed> {
        let limit_ms = self.limit_ms(job);
        let mut command = Vec::new();
        let (expect, shown, executed) = match job.what {
            What::Query(attributes) => {
                let (text, caps) = (job.sent(), backend.hello.caps);
                command.reserve_exact(packet::HEADER_LEN + text.len() + 3);
                let attributes = self.attributes_for(job, attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| wire::attributes::write_query(out, text, &attributes, caps));
                (Expect::Query, None, None)
            }
            What::Raw(raw, expect) => {
                packet::append(&mut command, &mut 0, raw);
                (expect, None, None)
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
                let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
                let id = backend.prepare(execution.prepared, execution.client, max).await.map_err(Failed::Backend)?;
                self.core.tally.up(Counter::ComBackendStmtExecute);
                for command in execution.long_data(id) {
                    self.send(backend, command, limit_ms).await?;
                }
                let caps = backend.hello.caps;
                let attributes = self.attributes_for(job, &execution.attributes, caps);
                packet::append_with(&mut command, &mut 0, |out| execution.write(out, id, &attributes, caps));
                (Expect::Execute, None, Some(id))
            }
        };
        Ok(Asked { command, expect, shown, executed })
    }
}
