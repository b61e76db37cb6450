//! Prepared statements of a client: its ids, the types it bound, the long data it sent ahead.
//! `preparing.rs` makes them.

use crate::command::follower::Follower;
use crate::command::job::{Text, What};
use crate::command::prepared::{ClientStatement, Execution, Types, unknown};
use crate::command::trouble::Ended;
use crate::known::answer;
use crate::known::answer::Complaint;
use crate::known::bound::Bound;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::Bindings;
use bridge::{Counter, EventKind};
use config::Repeats;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use wire::attributes::Attributes;
use wire::command::Execute;
use wire::execute::Parts;
use wire::outline::Outline;

impl Execution<'_> {
    /// The client got this answer, and remembered that of its columns before.
    pub(crate) fn told(&self, reply: &Follower, before: Option<Outline>) {
        self.outline.set(reply.outline(before));
        self.told_columns(reply.response().columns());
    }
}

impl Session {
    /// COM_STMT_EXECUTE: routed anew each time, on whichever connection it gets.
    pub(crate) async fn execute(
        &mut self,
        epoch: &Epoch,
        execute: &Execute<'_>,
    ) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendStmtExecute);
        let Some((id, mut statement)) = self.statements.lend(execute.id) else {
            return self
                .refuse(&unknown(epoch, execute.id, "mysqld_stmt_execute"))
                .await;
        };
        // Executing a statement closes its cursor, wherever that is.
        self.close_cursor(id, &mut statement);
        let outcome = self.execute_known(epoch, execute, id, &mut statement).await;
        statement.forget_long();
        self.statements.take_back(id, statement);
        outcome
    }

    async fn execute_known(
        &mut self,
        epoch: &Epoch,
        execute: &Execute<'_>,
        id: u32,
        statement: &mut ClientStatement,
    ) -> Result<(), Ended> {
        if statement.overflow {
            let words = "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes";
            let complaint = Complaint::with(1105, "HY000", words);
            return self
                .refuse_unasked(
                    epoch,
                    (EventKind::Execute, id),
                    &statement.prepared.sql,
                    &complaint,
                )
                .await;
        }
        let params = statement.params();
        let mut payload = Vec::with_capacity(execute.params.len() + 16);
        let parts = Parts::read(execute, params, self.caps).and_then(|parts| {
            let long = |i: usize| u16::try_from(i).is_ok_and(|i| statement.long.contains_key(&i));
            let types = statement.types();
            match &statement.moved {
                Some(moved) => moved.execute(&parts, &mut payload, 0, types, long)?,
                None => parts.rewrite(&mut payload, 0, params, types, long)?,
            }
            let attributes = Attributes::of_execution(&parts, params, long)?;
            Ok((parts, attributes))
        });
        let (names, attributes) = match parts {
            Ok((parts, attributes)) => {
                if let Some(types) = parts.plain_types(params) {
                    Types::bind(&mut statement.types, types, statement.moved.as_deref());
                } else if let Some(types) = &mut statement.types {
                    types.bindings = types.bindings.again();
                }
                // Those of parameters that move are not looked for.
                (
                    parts.names(params).filter(|_| statement.moved.is_none()),
                    attributes,
                )
            }
            Err(malformed) => {
                self.core.tally.up(Counter::UnexpectedFrontendPackets);
                let code = if epoch.claims_mariadb() { 1210 } else { 1835 };
                let complaint = Complaint::with(code, "HY000", malformed.to_string());
                return self
                    .refuse_unasked(
                        epoch,
                        (EventKind::Execute, id),
                        &statement.prepared.sql,
                        &complaint,
                    )
                    .await;
            }
        };
        let prepared = Rc::clone(&statement.prepared);
        let long = statement.take_long();
        let params = statement
            .moved
            .as_ref()
            .map_or(params, |moved| moved.from().len());
        let bound = Bound {
            payload,
            params,
            names,
            long,
        };
        let lexing = self.lexing_as_prepared(statement.lexing, &prepared);
        let (cursor, outline) = (
            Cell::new(None),
            Cell::new(self.outline_told(statement.outline)),
        );
        let bindings = statement
            .types
            .as_ref()
            .map_or(&Bindings::NONE, |types| &types.bindings);
        let execution = Execution {
            known: &prepared,
            instead: OnceCell::new(),
            lexing,
            client: id,
            cursor,
            outline,
            columns: Cell::new(statement.columns),
            attributes,
            bound,
            bindings,
        };
        let outcome = self
            .run(epoch, statement.asked.as_deref(), &execution)
            .await;
        statement.cursor = execution.cursor.take();
        statement.outline = execution.outline.get();
        statement.columns = execution.columns.get();
        outcome
    }

    /// Does an execution. `asked`: the text that rules are asked with, if not what was prepared.
    async fn run(
        &mut self,
        epoch: &Epoch,
        asked: Option<&[u8]>,
        execution: &Execution<'_>,
    ) -> Result<(), Ended> {
        let (prepared, what) = (execution.known, What::Execute(execution));
        let comes_alone = asked.is_none()
            && !execution.is_bulk()
            && !execution.opens_cursor()
            && !execution.has_long();
        let judged = match comes_alone && epoch.repeats != Repeats::Never {
            true => {
                let mut executed = epoch.executed.borrow_mut();
                executed.find(prepared, execution.lexing, &epoch.digest)
            }
            false => None,
        };
        let Some(judged) = judged else {
            let class = prepared.class(execution.lexing);
            let text = asked.unwrap_or(&prepared.sql);
            return self.whole(epoch, text, &class, "Execute", what).await;
        };
        let said = (&*prepared.sql, &*judged);
        if self.express(epoch, said, "Execute", what).await?.is_break() {
            return Ok(());
        }
        let text = Text {
            sql: &prepared.sql,
            class: &judged.class,
            judged: Some(&judged),
        };
        self.whole_of(epoch, text, "Execute", what).await
    }

    /// COM_STMT_SEND_LONG_DATA has no answer; what is wrong with it is said at the execution.
    pub(crate) fn keep_long_data(
        &mut self,
        epoch: &Epoch,
        id: u32,
        param: u16,
        data: &[u8],
    ) -> Result<(), Ended> {
        let limit = usize::try_from(epoch.snapshot.variables.mysql_max_allowed_packet)
            .unwrap_or(usize::MAX);
        self.statements.keep_ahead(id, param, data, limit);
        Ok(())
    }

    /// COM_STMT_CLOSE has no answer.
    pub(crate) fn close_statement(&mut self, id: u32) {
        self.core.tally.up(Counter::ComFrontendStmtClose);
        if let Some((id, mut statement)) = self.statements.remove(id) {
            self.close_cursor(id, &mut statement);
            self.core.tally.down(Counter::StmtClientActiveTotal);
        }
    }

    /// COM_STMT_RESET: long data is forgotten, a cursor closed.
    pub(crate) async fn reset_statement(&mut self, epoch: &Epoch, id: u32) -> Result<(), Ended> {
        let Some((found, mut statement)) = self.statements.lend(id) else {
            self.remembered.counts_by_itself(-1);
            return self.refuse(&unknown(epoch, id, "mysqld_stmt_reset")).await;
        };
        statement.forget_long();
        self.close_cursor(found, &mut statement);
        self.statements.take_back(found, statement);
        self.remembered.counts_by_itself(0);
        let flags = self.flags();
        self.hand_over(answer::ok(1, self.caps, flags, "")).await
    }
}
