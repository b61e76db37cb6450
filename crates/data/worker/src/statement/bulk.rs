//! COM_STMT_BULK_EXECUTE, where all servers are known to have it: an execution like any other, on
//! one connection, with one answer.

use crate::command::job::What;
use crate::command::prepared::{ClientStatement, Execution, UNSUPPORTED, unknown};
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::known::bound::Bound;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::Bindings;
use bridge::{Counter, EventKind};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use wire::attributes::Attributes;
use wire::bulk::Bulk;

impl Session {
    /// MariaDB's bulk execute.
    pub(crate) async fn bulk_execute(
        &mut self,
        epoch: &Epoch,
        id: u32,
        flags: u16,
        rest: &[u8],
    ) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendStmtExecute);
        let Some((known, mut statement)) = self.statements.lend(id) else {
            return self
                .refuse(&unknown(epoch, id, "mysqld_stmt_execute"))
                .await;
        };
        self.close_cursor(known, &mut statement);
        let outcome = self
            .bulk_execute_known(epoch, (known, flags), rest, &mut statement)
            .await;
        statement.forget_long();
        self.statements.take_back(known, statement);
        outcome
    }

    async fn bulk_execute_known(
        &mut self,
        epoch: &Epoch,
        (client, flags): (u32, u16),
        rest: &[u8],
        statement: &mut ClientStatement,
    ) -> Result<(), Ended> {
        if statement.moves() {
            let complaint = Complaint::with(UNSUPPORTED.0, "HY000", UNSUPPORTED.1);
            return self
                .refuse_unasked(
                    epoch,
                    (EventKind::Execute, client),
                    &statement.prepared().sql,
                    &complaint,
                )
                .await;
        }
        let params = statement.params();
        let mut payload = Vec::with_capacity(rest.len() + 2 * params + 8);
        let read = Bulk::read(flags, rest, params).and_then(|bulk| {
            bulk.write(&mut payload, 0, params, statement.types())?;
            Ok(bulk)
        });
        match read {
            #[cfg(debug_assertions)]
            Ok(_) if backend::planted::OLD_TYPES.get() && statement.types().is_some() => {}
            Ok(Bulk {
                types: Some(types), ..
            }) => statement.remember(types.to_vec()),
            Ok(_) => {}
            Err(malformed) => {
                self.core.tally.up(Counter::UnexpectedFrontendPackets);
                let complaint = Complaint::with(1210, "HY000", malformed.to_string());
                return self
                    .refuse_unasked(
                        epoch,
                        (EventKind::Execute, client),
                        &statement.prepared().sql,
                        &complaint,
                    )
                    .await;
            }
        }
        let prepared = Rc::clone(statement.prepared());
        let asked = statement.asked().map(Box::from);
        let bound = Bound::bulk(payload);
        let lexing = self.lexing_as_prepared(statement.lexing(), &prepared);
        let (cursor, outline) = (
            Cell::new(None),
            Cell::new(self.outline_told(statement.outline)),
        );
        let execution = Execution {
            known: &prepared,
            instead: OnceCell::new(),
            lexing,
            client,
            cursor,
            outline,
            columns: Cell::new(0),
            attributes: Attributes::NONE,
            bound,
            bindings: &Bindings::NONE,
        };
        let class = lexing.class(&prepared.sql);
        let asked: &[u8] = asked.as_deref().unwrap_or(&prepared.sql);
        let outcome = self
            .whole(
                epoch,
                asked,
                &class,
                "Bulk_execute",
                What::Execute(&execution),
            )
            .await;
        statement.outline = execution.outline.get();
        outcome
    }
}
