//! Prepared statements are executed, closed and reset by their ids.

use crate::command::follower::Follower;
use crate::command::job::{Text, What};
use crate::command::prepared::{ClientStatement, Execution, Types, unknown};
use crate::command::preparing::Preparing;
use crate::command::trouble::Ended;
use crate::known::answer;
use crate::known::answer::Complaint;
use crate::known::bound::Bound;
use crate::known::epoch::Epoch;
use crate::session::Session;
use crate::statement::internal;
use crate::statement::preparing::quiet;
use backend::Bindings;
use bridge::{Counter, EventKind};
use config::Repeats;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use wire::attributes::Attributes;
use wire::command::Execute;
use wire::execute::Parts;
use wire::moved::Moved;
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

impl Session {
    /// COM_STMT_PREPARE: on a server of the statement's hostgroup, which says what is in it.
    pub(crate) async fn prepare(&mut self, epoch: &Epoch, sql: &[u8]) -> Result<(), Ended> {
        self.core.tally.up(Counter::ComFrontendStmtPrepare);
        // Before anything can be wrong with it: what refers to the last statement that was prepared
        // is not about the one before.
        let client = self.statements.next_id();
        if let Some(complaint) = self.statements.is_full_for(sql, epoch) {
            return self
                .refuse_unasked(epoch, (EventKind::Prepare, 0), sql, &complaint)
                .await;
        }
        let rewritten = self.rewritten(epoch, sql);
        let moved = rewritten
            .as_ref()
            .and_then(|(_, made)| Moved::new(made.params_before, &made.params));
        let sql = rewritten.as_ref().map_or(sql, |(_, made)| &made.text);
        let class = quiet(self.lexing().class(sql));
        if internal::asked(sql, &class, self.lexing()).is_some() {
            let words = "This command is not supported in the prepared statement protocol yet";
            let complaint = Complaint::with(1295, "HY000", words);
            return self
                .refuse_unasked(epoch, (EventKind::Prepare, 0), sql, &complaint)
                .await;
        }
        let (moved, outline) = (moved.map(Rc::new), Cell::new(None));
        let preparing = Preparing {
            client,
            moved,
            naming: None,
            statement: OnceCell::new(),
            outline,
        };
        self.whole(epoch, sql, &class, "Prepare", What::Prepare(&preparing))
            .await
    }
}
