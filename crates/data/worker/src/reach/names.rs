//! Names of prepared statements are given to a connection, before a text that a server runs itself.

use crate::command::dynamic::{Does, Dynamic};
use crate::command::job::{Job, Told, What};
use crate::command::preparing::Preparing;
use crate::command::trouble::{Ended, Failed};
use crate::session::Session;
use backend::{Backend, BackendFailed, Hold};
use bridge::Counter;
use sql::dynamic::{Source, dynamic};
use sql::{Class, Leaves, Lexing, Reads};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Statements that name others, or hold them.
pub(crate) const DYNAMIC: Leaves = Leaves::SQL_PREPARE
    .with(Leaves::SQL_EXECUTE)
    .with(Leaves::SQL_DEALLOCATE);

/// On a connection with these there may be names that nobody has told.
const UNTOLD: [Hold; 3] = [Hold::SqlPrepare, Hold::Procedure, Hold::UnknownState];

impl Session {
    pub(crate) fn read_dynamic<'t>(&self, text: &'t [u8]) -> Option<sql::dynamic::Dynamic<'t>> {
        let told = self.reading.flags() & wire::status::ANSI_QUOTES != 0;
        let set = || {
            self.state
                .variable("sql_mode")
                .is_some_and(|mode| mode.to_ascii_uppercase().contains("ANSI"))
        };
        dynamic(text, self.lexing(), told || set())
    }

    /// Returns the class of the statement that is executed, `inner`: it decides where, and what it
    /// leaves. Its arguments, in `outer`, may be asked for where they are.
    pub(crate) fn class_of_inner<'i>(
        &self,
        inner: &'i [u8],
        lexing: Lexing,
        outer: Class<'_>,
    ) -> Class<'i> {
        let mut class = lexing.class(inner);
        let reads = outer.reads.without(Reads::PREPARED);
        // User variables are brought, unless only one connection knows them.
        let bound = self.held.asked_for(&Class { reads, ..outer }).is_some();
        // A procedure may set what it is given.
        class.reads |= if bound || backend::is_call(&class) {
            reads
        } else {
            reads.without(Reads::USER_VARIABLE)
        };
        class
    }

    /// Whether there is a connection on which names may mean something that nobody has told.
    pub(crate) fn may_know_names(&self) -> bool {
        self.held.holds().any(|hold| UNTOLD.contains(&hold))
    }

    /// Returns the text that is to be prepared or executed, if that is certain.
    pub(crate) async fn text_of<'s>(
        &mut self,
        source: &'s Source<'_>,
    ) -> Result<Option<Cow<'s, [u8]>>, Ended> {
        let name = match source {
            Source::Text(text) => return Ok(Some(Cow::Borrowed(text))),
            Source::Variable(name) => name,
        };
        if !self.has_read_variables().await? {
            return Ok(None);
        }
        let value = self
            .state
            .user_variables()
            .find(|(known, _)| *known == name.as_str());
        let value = value
            .filter(|(_, value)| !(value.null || self.is_unsure() && value.literal.contains('\\')));
        Ok(value
            .and_then(|(_, value)| sql::literal::said(&value.literal))
            .map(Cow::Owned))
    }

    /// Asks for what expressions have set. Whether the values of all user variables are known then.
    pub(crate) async fn has_read_variables(&mut self) -> Result<bool, Ended> {
        self.read_all_back().await?;
        let doubt = [
            Hold::UserVariable,
            Hold::Procedure,
            Hold::Routine,
            Hold::Untold,
            Hold::UnknownState,
        ];
        Ok(!self.held.holds().any(|hold| doubt.contains(&hold)))
    }

    /// The stage: a name that nothing on any connection has is given back without a server.
    pub(crate) async fn deallocated(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let forgets = matches!(
            job.what,
            What::Dynamic(Dynamic {
                does: Does::Deallocate { told: false },
                ..
            })
        );
        if !forgets
            || self
                .held
                .iter()
                .any(|(hostgroup, _)| hostgroup == job.plan.hostgroup())
        {
            return Ok(ControlFlow::Continue(()));
        }
        self.say("").await?;
        Ok(ControlFlow::Break(Told::default()))
    }

    /// A PREPARE in SQL was answered with OK.
    pub(crate) fn learn_name(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        preparing: &Preparing,
    ) {
        if let (Some(naming), Some(statement)) = (&preparing.naming, preparing.statement()) {
            backend.learn_slot(statement, naming.slot.get());
            self.add_prepared(
                job,
                preparing,
                crate::command::preparing::params(job.sent(), self.lexing()),
            );
        }
    }

    /// The name means nothing any more; whether it did.
    pub(crate) fn forget_name(&mut self, name: &str) -> bool {
        let Some(names) = &mut self.statements.names else {
            return false;
        };
        let gone = names.0.remove(name).is_some();
        if gone {
            self.core.tally.down(Counter::StmtClientActiveTotal);
        }
        if names.0.is_empty() {
            self.statements.names = None;
        }
        gone
    }

    /// The names that a statement may use or give away without saying so: they have to be where it
    /// runs, and are known only there from now on.
    pub(crate) fn names_to_give(&self, job: &Job<'_>) -> Vec<Box<str>> {
        let Some(names) = &self.statements.names else {
            return Vec::new();
        };
        let class = job.class;
        let runs = match job.what {
            What::Query(_) | What::Execute(_) => true,
            // What is executed, or what rules have made of it, may be a CALL.
            What::Dynamic(dynamic) => !dynamic.deallocates(),
            What::Raw(..) | What::Prepare(_) | What::Refused(_) => false,
        };
        let all = || names.0.keys().cloned().collect();
        if runs && (class.multi || class.leaves.intersects(Leaves::UNKNOWN_STATE)) {
            return if !backend::is_call(class) || self.calls_strangers(job) {
                all()
            } else {
                Vec::new()
            };
        }
        if !runs || !class.leaves.intersects(DYNAMIC) {
            return Vec::new();
        }
        let has = |name: &str| names.0.contains_key(name);
        match self.read_dynamic(job.sent()) {
            Some(sql::dynamic::Dynamic::Execute { name, .. }) if has(&name) => all(),
            // Servers differ in whether it still means what it meant if they cannot make a text of
            // it.
            Some(sql::dynamic::Dynamic::Prepare { name, .. }) if has(&name) => vec![name.into()],
            Some(sql::dynamic::Dynamic::Immediate { .. }) | None => all(),
            Some(_) => Vec::new(),
        }
    }

    /// Prepares these by their own names. Those that are left are on that connection from then on: a
    /// server that has not the schema of one, or no more what it reads, does not know it, and the
    /// session still does.
    pub(crate) async fn give_names(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        given: &mut Vec<Box<str>>,
    ) -> Result<(), Failed> {
        let Some(names) = &self.statements.names else {
            return Ok(());
        };
        let of = |name: &str| {
            names
                .0
                .get(name)
                .map(|named| (Rc::clone(named.as_named()), named.escapes))
        };
        let known: Vec<_> = given
            .drain(..)
            .filter_map(|name| {
                let known = of(&name)?;
                Some((name, known))
            })
            .collect();
        let work = async {
            for (name, (statement, escapes)) in known {
                match backend.prepare_by_name(&name, &statement, escapes).await {
                    Ok(()) => given.push(name),
                    Err(failed @ BackendFailed::Sync { .. }) if failed.crowd().is_none() => {}
                    Err(failed) => return Err(failed),
                }
            }
            Ok(())
        };
        self.prepared_for(self.limit_ms(job), work, false).await
    }

    /// These names are on a connection that is held.
    pub(crate) fn forget_names(&mut self, given: &[Box<str>]) {
        for name in given {
            self.forget_name(name);
        }
    }
}
