//! PREPARE, EXECUTE and DEALLOCATE PREPARE in SQL: what a session names is routed by its text like
//! any other statement, and prepared wherever it is executed, there by a name of ours. What cannot
//! be told apart goes as it is, and keeps its connection.

use crate::command::dynamic::{Does, Dynamic, Moved, NamedStatement, Naming};
use crate::command::in_sql::{in_their_places, with};
use crate::command::job::{Job, Told, What};
use crate::command::preparing::Preparing;
use crate::command::trouble::{Ended, Failed};
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use crate::statement::preparing::quiet;
use backend::{Backend, BackendFailed, Hold, Interest, Prepared};
use bridge::Counter;
use sql::dynamic::{DISTURBED, Source, dynamic, goes_anywhere, literal, variables_given};
use sql::{Class, CommandCounter, Leaves, Lexing, Reads};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use wire::attributes::Attributes;

/// Statements that name others, or hold them.
pub(crate) const DYNAMIC: Leaves = Leaves::SQL_PREPARE
    .with(Leaves::SQL_EXECUTE)
    .with(Leaves::SQL_DEALLOCATE);

/// On a connection with these there may be names that nobody has told.
const UNTOLD: [Hold; 3] = [Hold::SqlPrepare, Hold::Procedure, Hold::UnknownState];

impl Session {
    /// One of them.
    pub(crate) async fn dynamic(
        &mut self,
        epoch: &Epoch,
        text: &[u8],
        class: Class<'_>,
        attributes: &Attributes,
    ) -> Result<(), Ended> {
        match self.read_dynamic(text) {
            Some(sql::dynamic::Dynamic::Prepare {
                name,
                name_at,
                source,
                source_at,
            }) => {
                let naming = Naming {
                    name: name.into(),
                    outer: text.into(),
                    name_at,
                    source_at,
                    is_written: matches!(source, Some(Source::Text(_))),
                    escapes: self.escapes(),
                    moved: None,
                    attributes: attributes.clone(),
                    slot: Cell::new(0),
                };
                self.prepare_in_sql(epoch, class, naming, source).await
            }
            Some(sql::dynamic::Dynamic::Execute {
                name,
                name_at,
                computes,
            }) => {
                let named = self
                    .statements
                    .names
                    .as_ref()
                    .and_then(|names| names.0.get(&*name));
                let Some(named) = named else {
                    return self
                        .unknown_name(epoch, text, class, attributes, &name, "EXECUTE")
                        .await;
                };
                if computes || !only_executes(&class) {
                    return self
                        .whole(epoch, text, &class, "Query", What::Query(attributes))
                        .await;
                }
                let (mut prepared, mut asked) = (Rc::clone(&named.prepared), named.asked.clone());
                let mut using = None;
                if let Some(moved) = &named.moved {
                    match variables_given(text, self.lexing(), name_at.end) {
                        Some(given) if given.len() == usize::from(moved.arguments) => {
                            using = Some(in_their_places(text, &given, &moved.params))
                        }
                        // As many as the server will refuse.
                        Some(_) => {
                            using = Some(
                                [&b" USING @a"[..], &b", @a".repeat(moved.params.len())].concat(),
                            )
                        }
                        None => (prepared, asked) = (Rc::clone(&moved.before), None),
                    }
                }
                let lexing = self.lexing_as_prepared(named.lexing, &prepared);
                let does = Does::Execute {
                    prepared: prepared.clone(),
                    lexing,
                    escapes: named.escapes,
                    using,
                };
                let inner = self.class_of_inner(&prepared.sql, lexing, class);
                let dynamic = Dynamic {
                    outer: text,
                    at: name_at,
                    attributes,
                    does,
                };
                let asked = asked.as_deref().unwrap_or(&prepared.sql);
                self.whole(epoch, asked, &inner, "Query", What::Dynamic(&dynamic))
                    .await
            }
            Some(sql::dynamic::Dynamic::Immediate {
                source,
                source_at,
                computes: false,
            }) if only_executes(&class) => {
                let inner = self
                    .text_of(&source)
                    .await?
                    .filter(|inner| goes_anywhere(&self.lexing().class(inner)));
                let Some(inner) = inner else {
                    return self
                        .whole(epoch, text, &class, "Query", What::Query(attributes))
                        .await;
                };
                let class = self.class_of_inner(&inner, self.lexing(), class);
                let does = Does::Immediate {
                    escapes: self.escapes(),
                };
                let dynamic = Dynamic {
                    outer: text,
                    at: source_at,
                    attributes,
                    does,
                };
                self.whole(epoch, &inner, &class, "Query", What::Dynamic(&dynamic))
                    .await
            }
            Some(sql::dynamic::Dynamic::Deallocate { name, name_at }) => {
                if self
                    .statements
                    .names
                    .as_ref()
                    .is_none_or(|names| !names.0.contains_key(&*name))
                {
                    return self
                        .unknown_name(epoch, text, class, attributes, &name, "DEALLOCATE PREPARE")
                        .await;
                }
                // DROP PREPARE is the same.
                let class = Class {
                    leaves: class.leaves.without(DYNAMIC),
                    command: CommandCounter::Deallocate,
                    ..class
                };
                let told = self.state.variable("session_track_state_change").is_some();
                let dynamic = Dynamic {
                    outer: text,
                    at: name_at,
                    attributes,
                    does: Does::Deallocate { told },
                };
                self.whole(epoch, text, &class, "Query", What::Dynamic(&dynamic))
                    .await?;
                if !self.turn.failed {
                    self.forget_name(&name);
                }
                Ok(())
            }
            _ => {
                self.whole(epoch, text, &class, "Query", What::Query(attributes))
                    .await
            }
        }
    }

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

    async fn prepare_in_sql(
        &mut self,
        epoch: &Epoch,
        class: Class<'_>,
        naming: Naming,
        source: Option<Source<'_>>,
    ) -> Result<(), Ended> {
        let bound = self.may_know_names();
        let inner = match &source {
            Some(Source::Text(text)) => Some(Cow::Borrowed(&**text)),
            Some(source) if !bound => self.text_of(source).await?,
            _ => None,
        };
        if inner.is_some() {
            // The name is free now, be it that the new statement cannot be prepared. Of a text that
            // nobody here can read, the server says what became of it.
            self.forget_name(&naming.name);
        }
        let (inner, here) = match inner {
            Some(inner) if !bound && goes_anywhere(&self.lexing().class(&inner)) => {
                (Some(inner), None)
            }
            inner => (None, inner),
        };
        let Some(inner) = inner else {
            if backend::is_ours(&naming.name) {
                let words = format!(
                    "The name '{}' is one of those that the proxy gives on servers",
                    naming.name
                );
                let complaint = Complaint::with(1235, "42000", words);
                return self
                    .whole(
                        epoch,
                        &naming.outer,
                        &quiet(class),
                        "Query",
                        What::Refused(&complaint),
                    )
                    .await;
            }
            let mut class = class;
            if bound {
                // Where the others are.
                class.reads |= Reads::PREPARED;
            }
            let own = here.and_then(|inner| {
                self.with_own_number(
                    &inner,
                    self.lexing(),
                    self.lexing().class(&inner).reads,
                    &self.state.schema,
                )
            });
            let outer = match own {
                Some(own) => with(
                    &naming.outer,
                    &naming.source_at,
                    &literal(&own, naming.escapes),
                ),
                None => naming.outer.to_vec(),
            };
            self.whole(
                epoch,
                &outer,
                &class,
                "Query",
                What::Query(&naming.attributes),
            )
            .await?;
            if !self.turn.failed {
                // A connection has it.
                self.forget_name(&naming.name);
            }
            return Ok(());
        };
        if let Some(complaint) = self.statements.is_full_for(&inner, epoch) {
            let class = Class {
                command: CommandCounter::Prepare,
                ..quiet(self.lexing().class(&inner))
            };
            return self
                .whole(epoch, &inner, &class, "Query", What::Refused(&complaint))
                .await;
        }
        let rewritten = self.rewritten(epoch, &inner);
        let mut moved = None;
        if let Some((_, made)) = rewritten.as_ref().filter(|(_, made)| !made.keeps_params()) {
            // What it means is what is set now.
            self.read_all_back().await?;
            let before =
                Interest::new(self.intern(epoch, &inner, self.lexing().class(&inner).reads));
            moved = Some(Rc::new(Moved {
                params: made.params.clone(),
                arguments: made.params_before,
                before,
            }));
        }
        let inner = rewritten.as_ref().map_or(&*inner, |(_, made)| &made.text);
        let is_written = naming.is_written && rewritten.is_none();
        let class = Class {
            command: CommandCounter::Prepare,
            ..quiet(self.lexing().class(inner))
        };
        let preparing = Preparing::by_name(Naming {
            is_written,
            moved,
            ..naming
        });
        self.whole(epoch, inner, &class, "Query", What::Prepare(&preparing))
            .await
    }

    /// A name that the session has not given, or not here: the server says what it thinks of it.
    async fn unknown_name(
        &mut self,
        epoch: &Epoch,
        text: &[u8],
        class: Class<'_>,
        attributes: &Attributes,
        name: &str,
        verb: &str,
    ) -> Result<(), Ended> {
        if backend::is_ours(name) {
            let words = format!("Unknown prepared statement handler ({name}) given to {verb}");
            let complaint = Complaint::with(1243, "HY000", words);
            return self
                .whole(
                    epoch,
                    text,
                    &quiet(class),
                    "Query",
                    What::Refused(&complaint),
                )
                .await;
        }
        let mut class = class;
        if self.may_know_names() {
            // What it asks for is not known: nothing of ours may come before it on its connection.
            class.reads |= Reads::PROFILE;
        } else {
            class.leaves = class.leaves.without(DYNAMIC);
            class.reads = class.reads.without(Reads::PREPARED);
            if class.command == CommandCounter::Unknown {
                // DROP PREPARE is the same as DEALLOCATE PREPARE.
                class.command = CommandCounter::Deallocate;
            }
        }
        self.whole(epoch, text, &class, "Query", What::Query(attributes))
            .await
    }

    /// Whether there is a connection on which names may mean something that nobody has told.
    fn may_know_names(&self) -> bool {
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

    /// The session knows the statement by this name from now on.
    pub(crate) fn add_name(
        &mut self,
        naming: &Naming,
        statement: &Rc<Prepared>,
        asked: Option<Box<[u8]>>,
    ) {
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
    fn forget_name(&mut self, name: &str) -> bool {
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

/// Whether an EXECUTE whose arguments are values does nothing by itself, and asks for nothing that
/// another statement would change.
fn only_executes(outer: &Class<'_>) -> bool {
    outer.leaves.without(Leaves::SQL_EXECUTE).is_empty() && !outer.reads.intersects(DISTURBED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execute_may_do_more_than_execute() {
        let only = |text: &str| only_executes(&sql::class(text.as_bytes()));
        assert!(
            only("EXECUTE s")
                && only("EXECUTE s USING @a, @b")
                && only("EXECUTE s USING LAST_INSERT_ID()")
        );
        assert!(
            !only("EXECUTE s USING @a := 5")
                && !only("EXECUTE s USING f(1)")
                && !only("EXECUTE s USING ROW_COUNT()")
        );
    }
}
