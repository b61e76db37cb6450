//! A prepared statement becomes one of the session, by its id and by its name.

use crate::command::dynamic::{NamedStatement, Naming};
use crate::command::job::Job;
use crate::command::prepared::ClientStatement;
use crate::command::preparing::{Preparing, bare};
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Interest, Prepared, Remembered};
use bridge::Counter;
use config::Variables;
use sql::Reads;
use std::borrow::Cow;
use std::rc::Rc;

impl Session {
    /// The session knows the statement by this name from now on.
    fn add_name(&mut self, naming: &Naming, statement: &Rc<Prepared>, asked: Option<Box<[u8]>>) {
        let named = NamedStatement {
            prepared: Interest::new(statement.clone()),
            asked: asked.map(Rc::from),
            escapes: naming.escapes,
            lexing: self.lexing(),
            moved: naming.moved.clone(),
        };
        self.statements
            .names
            .get_or_insert_default()
            .0
            .insert(naming.name.clone(), named);
        self.core.tally.up(Counter::StmtClientActiveTotal);
    }

    /// Interns what this text means now. Comments around it and behind its first word are for rules
    /// and hints, which are asked with the client's text, and may be others each time.
    pub(crate) fn intern(&self, epoch: &Epoch, sql: &[u8], reads: Reads) -> Rc<Prepared> {
        let sql = Some(bare(sql, self.lexing()))
            .filter(|bare| !bare.is_empty())
            .unwrap_or(Cow::Borrowed(sql));
        let most = most_remembered(&epoch.snapshot.variables);
        let own = self.with_own_number(&sql, self.lexing(), reads, &self.state.schema);
        self.core.statements.intern_own(
            &self.user_name,
            &self.state,
            (&sql, own.map(Vec::into_boxed_slice)),
            most,
        )
    }

    /// The client may execute it from now on. `params`: as many as there are where it was prepared.
    pub(crate) fn add_prepared(&mut self, job: &Job<'_>, preparing: &Preparing, params: u16) {
        let Some(statement) = preparing.statement() else {
            return;
        };
        let asked = (*statement.sql != *job.text).then(|| job.text.into());
        if let Some(naming) = &preparing.naming {
            statement.params.set(params);
            return self.add_name(naming, statement, asked);
        }
        let prepared = ClientStatement::new(
            statement,
            self.lexing(),
            params,
            asked,
            preparing.moved.clone(),
            preparing.outline.get(),
        );
        self.statements.add(preparing.client, prepared);
        self.core.tally.up(Counter::StmtClientActiveTotal);
    }
}

/// Statements that a core remembers, as the operator says.
pub(crate) fn most_remembered(v: &Variables) -> Remembered {
    let clamped = |number| usize::try_from(number).unwrap_or(usize::MAX);
    Remembered {
        statements: clamped(v.mysql_max_stmts_cache),
        bytes: clamped(v.mysql_stmts_cache_max_MB << 20),
    }
}
