//! PREPARE, EXECUTE and DEALLOCATE PREPARE in SQL: what a session names is routed by its text like any other statement, and prepared wherever
//! it is executed, there by a name of ours. What cannot be told apart goes as it is, and keeps its connection.

use crate::answer::Complaint;
use crate::epoch::Epoch;
use crate::preparing::{Preparing, quiet};
use crate::ready::REMEMBERED;
use crate::relay::Failed;
use crate::session::{Ended, Session};
use crate::statement::{Job, Told, What};
use backend::{Backend, BackendFailed, Hold, Interest, Prepared, slot_name};
use bridge::{Counter, EventKind};
use sql::dynamic::{Source, dynamic, literal};
use sql::{Class, CommandCounter, Leaves, Reads};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;
use wire::attributes::Attributes;

/// Statements that name others, or hold them.
pub(crate) const DYNAMIC: Leaves = Leaves::SQL_PREPARE.with(Leaves::SQL_EXECUTE).with(Leaves::SQL_DEALLOCATE);

/// What a statement asks for that another one before it on the same connection would change.
const DISTURBED: Reads = REMEMBERED.with(Reads::ROW_COUNT);

/// On a connection with these there may be names that nobody has told.
const UNTOLD: [Hold; 3] = [Hold::SqlPrepare, Hold::Procedure, Hold::UnknownState];

/// A statement that a session has named.
struct NamedStatement {
    prepared: Interest,
    /// What rules are asked with, where they have made something else of it when it was prepared.
    asked: Option<Rc<[u8]>>,
    /// Whether a backslash escapes where it was written.
    escapes: bool,
}

/// By the session's name.
#[derive(Default)]
pub(crate) struct NamedStatements(BTreeMap<Box<str>, NamedStatement>);

impl NamedStatements {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What a PREPARE in SQL says.
pub(crate) struct Naming {
    name: Box<str>,
    /// The whole statement.
    outer: Box<[u8]>,
    name_at: Range<usize>,
    source_at: Range<usize>,
    /// The text of what is prepared stands in it.
    is_written: bool,
    escapes: bool,
    attributes: Attributes,
    /// Where it is prepared on the connection that was asked; 0 before one was.
    slot: Cell<u32>,
}

/// An EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE.
pub(crate) struct Dynamic<'a> {
    /// The whole statement.
    pub(crate) outer: &'a [u8],
    /// Where the name stands, or the text.
    at: Range<usize>,
    pub(crate) attributes: &'a Attributes,
    does: Does,
}

enum Does {
    /// What the session has named.
    Execute { prepared: Rc<Prepared>, escapes: bool },
    /// A text.
    Immediate { escapes: bool },
    /// The name means nothing any more.
    Deallocate,
}

impl Dynamic<'_> {
    /// What is executed, if it was prepared.
    pub(crate) const fn prepared(&self) -> Option<&Rc<Prepared>> {
        match &self.does {
            Does::Execute { prepared, .. } => Some(prepared),
            Does::Immediate { .. } | Does::Deallocate => None,
        }
    }

    /// As `prepared` of [`plan::Statement`].
    pub(crate) fn sent_anyway<'t>(&'t self, text: &'t [u8]) -> Option<&'t [u8]> {
        match &self.does {
            Does::Execute { prepared, .. } => Some(&prepared.sql),
            Does::Immediate { .. } => None,
            Does::Deallocate => Some(text),
        }
    }

    /// Its parameters are user variables, or its text is one: a connection may have another value, of another session too.
    pub(crate) fn uses_variables(&self) -> bool {
        !matches!(self.does, Does::Deallocate) && self.outer.get(self.at.start..).is_some_and(|rest| rest.contains(&b'@'))
    }

    /// Prepares what it executes, if a connection does not know it; the slot there.
    pub(crate) async fn bring(&self, backend: &mut Backend, max: u64) -> Result<Option<u32>, BackendFailed> {
        match &self.does {
            Does::Execute { prepared, escapes } => backend.slot(prepared, *escapes, max).await.map(Some),
            Does::Immediate { .. } | Does::Deallocate => Ok(None),
        }
    }

    /// What a server gets.
    pub(crate) fn text(&self, job: &Job<'_>, slot: Option<u32>) -> Cow<'_, [u8]> {
        match self.does {
            // Nothing has that name there; what counts is that it is the last statement.
            Does::Deallocate => Cow::Borrowed(b"DO 0"),
            Does::Immediate { .. } if job.is_as_written() => Cow::Borrowed(self.outer),
            Does::Immediate { escapes } => Cow::Owned(with(self.outer, &self.at, &literal(job.sent(), escapes))),
            Does::Execute { .. } => Cow::Owned(with(self.outer, &self.at, slot_name(slot.unwrap_or_default()).as_bytes())),
        }
    }
}

impl Preparing {
    /// The statement for a connection, in a slot that is empty until it was answered.
    pub(crate) async fn in_sql(&self, backend: &mut Backend, job: &Job<'_>, max: u64) -> Result<Vec<u8>, BackendFailed> {
        let (Some(naming), Some(statement)) = (&self.naming, self.statement()) else { return Ok(Vec::new()) };
        let slot = backend.take_slot(statement, max).await?;
        naming.slot.set(slot);
        let text = if naming.is_written && job.is_as_written() {
            naming.outer.clone().into_vec()
        } else {
            with(&naming.outer, &naming.source_at, &literal(job.sent(), naming.escapes))
        };
        // The name comes first.
        Ok(with(&text, &naming.name_at, slot_name(slot).as_bytes()))
    }

    /// What came along with it.
    pub(crate) fn attributes(&self) -> &Attributes {
        self.naming.as_ref().map_or(const { &Attributes::NONE }, |naming| &naming.attributes)
    }
}

/// The text with something else in this place.
fn with(text: &[u8], at: &Range<usize>, instead: &[u8]) -> Vec<u8> {
    [text.get(..at.start).unwrap_or_default(), instead, text.get(at.end..).unwrap_or_default()].concat()
}

/// Whether it does the same wherever it is executed, as far as what it leaves is known.
fn may_move(class: &Class<'_>) -> bool {
    let opaque = DYNAMIC.with(Leaves::UNKNOWN_STATE);
    !class.multi && !class.local_infile && !class.leaves.intersects(opaque) && !class.reads.intersects(DISTURBED)
}

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
            Some(sql::dynamic::Dynamic::Prepare { name, name_at, source, source_at }) => {
                let naming = Naming {
                    name: name.into(),
                    outer: text.into(),
                    name_at,
                    source_at,
                    is_written: matches!(source, Some(Source::Text(_))),
                    escapes: self.escapes(),
                    attributes: attributes.clone(),
                    slot: Cell::new(0),
                };
                self.prepare_in_sql(epoch, class, naming, source).await
            }
            Some(sql::dynamic::Dynamic::Execute { name, name_at }) => {
                let named = self.statements.names.as_ref().and_then(|names| names.0.get(&*name));
                let Some(named) = named else {
                    return self.unknown_name(epoch, text, class, attributes, &name, "EXECUTE").await;
                };
                if !only_executes(&class) {
                    return self.whole(epoch, text, &class, "Query", What::Query(attributes)).await;
                }
                let (prepared, asked) = (Rc::clone(&named.prepared), named.asked.clone());
                let does = Does::Execute { prepared: prepared.clone(), escapes: named.escapes };
                let inner = self.class_of_inner(&prepared.sql, class);
                let dynamic = Dynamic { outer: text, at: name_at, attributes, does };
                let asked = asked.as_deref().unwrap_or(&prepared.sql);
                self.whole(epoch, asked, &inner, "Query", What::Dynamic(&dynamic)).await
            }
            Some(sql::dynamic::Dynamic::Immediate { source, source_at }) if only_executes(&class) => {
                let inner = self.text_of(&source).await?.filter(|inner| may_move(&self.lexing().class(inner)));
                let Some(inner) = inner else {
                    return self.whole(epoch, text, &class, "Query", What::Query(attributes)).await;
                };
                let class = self.class_of_inner(&inner, class);
                let does = Does::Immediate { escapes: self.escapes() };
                let dynamic = Dynamic { outer: text, at: source_at, attributes, does };
                self.whole(epoch, &inner, &class, "Query", What::Dynamic(&dynamic)).await
            }
            Some(sql::dynamic::Dynamic::Deallocate { name }) => {
                if self.statements.names.as_ref().is_none_or(|names| !names.0.contains_key(&*name)) {
                    return self.unknown_name(epoch, text, class, attributes, &name, "DEALLOCATE PREPARE").await;
                }
                let class = Class { leaves: class.leaves.without(DYNAMIC), ..class };
                let dynamic = Dynamic { outer: text, at: 0..text.len(), attributes, does: Does::Deallocate };
                self.whole(epoch, text, &class, "Query", What::Dynamic(&dynamic)).await?;
                if !self.turn.failed {
                    self.forget_name(&name);
                }
                Ok(())
            }
            _ => self.whole(epoch, text, &class, "Query", What::Query(attributes)).await,
        }
    }

    pub(crate) fn read_dynamic<'t>(&self, text: &'t [u8]) -> Option<sql::dynamic::Dynamic<'t>> {
        let told = self.modes & wire::status::ANSI_QUOTES != 0;
        let set = || self.state.variable("sql_mode").is_some_and(|mode| mode.to_ascii_uppercase().contains("ANSI"));
        dynamic(text, self.lexing(), told || set())
    }

    /// What is executed decides where, and what it leaves; its arguments may be asked for where they are.
    pub(crate) fn class_of_inner<'i>(&self, inner: &'i [u8], outer: Class<'_>) -> Class<'i> {
        let mut class = self.lexing().class(inner);
        let reads = outer.reads.without(Reads::PREPARED);
        // User variables are brought, unless only one connection knows them.
        let bound = self.held.asked_for(&Class { reads, ..outer }).is_some();
        class.reads |= if bound { reads } else { reads.without(Reads::USER_VARIABLE) };
        class
    }

    async fn prepare_in_sql(
        &mut self,
        epoch: &Epoch,
        class: Class<'_>,
        naming: Naming,
        source: Option<Source<'_>>,
    ) -> Result<(), Ended> {
        if source.is_some() {
            // The name is free now, be it that the new statement cannot be prepared.
            self.forget_name(&naming.name);
        }
        let bound = self.may_know_names();
        let inner = match &source {
            Some(source) if !bound => self.text_of(source).await?,
            _ => None,
        };
        let Some(inner) = inner.filter(|inner| may_move(&self.lexing().class(inner))) else {
            if backend::is_ours(&naming.name) {
                let words = format!("The name '{}' is one of those that the proxy gives on servers", naming.name);
                let complaint = Complaint::with(1235, "42000", words);
                return self.refuse_unasked(epoch, (EventKind::Query, 0), &naming.outer, &complaint).await;
            }
            let mut class = class;
            if bound {
                // Where the others are.
                class.reads |= Reads::PREPARED;
            }
            self.whole(epoch, &naming.outer, &class, "Query", What::Query(&naming.attributes)).await?;
            if !self.turn.failed {
                // A connection has it.
                self.forget_name(&naming.name);
            }
            return Ok(());
        };
        let max = epoch.snapshot.variables.mysql_stmts_per_client_max;
        if self.statements.len() as u64 >= max {
            let words = format!("Can't create more than max_prepared_stmt_count statements (current value: {max})");
            let complaint = Complaint::with(1461, "42000", words);
            return self.refuse_unasked(epoch, (EventKind::Query, 0), &naming.outer, &complaint).await;
        }
        // A template that leaves the parameters where they are counts here, too.
        let rewritten = self.rewritten(epoch, &inner).filter(|(_, made)| made.params.iter().copied().eq(0..made.params_before));
        let inner = rewritten.as_ref().map_or(&*inner, |(_, made)| &made.text);
        let is_written = naming.is_written && rewritten.is_none();
        let class = Class { command: CommandCounter::Prepare, ..quiet(self.lexing().class(inner)) };
        let preparing = Preparing::by_name(Naming { is_written, ..naming });
        self.whole(epoch, inner, &class, "Query", What::Prepare(&preparing)).await
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
            return self.refuse_unasked(epoch, (EventKind::Query, 0), text, &complaint).await;
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
        self.whole(epoch, text, &class, "Query", What::Query(attributes)).await
    }

    /// Whether there is a connection on which names may mean something that nobody has told.
    fn may_know_names(&self) -> bool {
        self.held.holds().any(|hold| UNTOLD.contains(&hold))
    }

    /// What is to be prepared or executed, if that is certain.
    pub(crate) async fn text_of<'s>(&mut self, source: &'s Source<'_>) -> Result<Option<Cow<'s, [u8]>>, Ended> {
        let name = match source {
            Source::Text(text) => return Ok(Some(Cow::Borrowed(text))),
            Source::Variable(name) => name,
        };
        self.read_all_back().await?;
        let doubt = [Hold::UserVariable, Hold::Procedure, Hold::Routine, Hold::Untold, Hold::UnknownState];
        if self.held.holds().any(|hold| doubt.contains(&hold)) {
            return Ok(None);
        }
        let value = self.state.user_variables().find(|(known, _)| *known == name.as_str());
        Ok(value.and_then(|(_, value)| sql::literal::said(&value.literal)).map(Cow::Owned))
    }

    /// The stage: a name that nothing on any connection has is given back without a server.
    pub(crate) async fn deallocated(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let forgets = matches!(job.what, What::Dynamic(Dynamic { does: Does::Deallocate, .. }));
        if !forgets || self.held.iter().any(|(hostgroup, _)| hostgroup == job.plan.hostgroup()) {
            return Ok(ControlFlow::Continue(()));
        }
        self.say("").await?;
        Ok(ControlFlow::Break(Told::default()))
    }

    /// The session knows the statement by this name from now on.
    pub(crate) fn add_name(&mut self, naming: &Naming, statement: &Rc<Prepared>, asked: Option<Box<[u8]>>) {
        let named = NamedStatement {
            prepared: Interest::new(statement.clone()),
            asked: asked.map(Rc::from),
            escapes: naming.escapes,
        };
        self.statements.names.get_or_insert_default().0.insert(naming.name.clone(), named);
        self.core.tally.up(Counter::StmtClientActiveTotal);
    }

    /// A PREPARE in SQL was answered with OK.
    pub(crate) fn learn_name(&mut self, backend: &mut Backend, job: &Job<'_>, preparing: &Preparing) {
        if let (Some(naming), Some(statement)) = (&preparing.naming, preparing.statement()) {
            backend.learn_slot(statement, naming.slot.get());
            self.add_prepared(job, preparing, crate::preparing::params(job.sent(), self.lexing()));
        }
    }

    /// The name means nothing any more; whether it did.
    fn forget_name(&mut self, name: &str) -> bool {
        let Some(names) = &mut self.statements.names else { return false };
        let gone = names.0.remove(name).is_some();
        if gone {
            self.core.tally.down(Counter::StmtClientActiveTotal);
        }
        if names.0.is_empty() {
            self.statements.names = None;
        }
        gone
    }

    /// Whether a statement may use any of the names, or give them away, without saying so: then they have to be where it runs, and are
    /// known only there from now on.
    pub(crate) fn gives_names(&self, job: &Job<'_>) -> bool {
        let Some(names) = &self.statements.names else { return false };
        let class = job.class;
        if !matches!(job.what, What::Query(_) | What::Execute(_)) {
            return false;
        }
        if class.multi || class.leaves.intersects(Leaves::UNKNOWN_STATE) {
            return !backend::is_call(class) || self.calls_strangers(job);
        }
        class.leaves.intersects(DYNAMIC)
            && match self.read_dynamic(job.sent()) {
                Some(sql::dynamic::Dynamic::Execute { name, .. }) => names.0.contains_key(&*name),
                Some(sql::dynamic::Dynamic::Prepare { .. } | sql::dynamic::Dynamic::Deallocate { .. }) => false,
                Some(sql::dynamic::Dynamic::Immediate { .. }) | None => true,
            }
    }

    /// Prepares all of them by their own names.
    pub(crate) async fn give_names(&mut self, backend: &mut Backend, job: &Job<'_>) -> Result<(), Failed> {
        let Some(names) = &self.statements.names else { return Ok(()) };
        let names: Vec<_> = names.0.iter().map(|(name, named)| (name.clone(), Rc::clone(&named.prepared), named.escapes)).collect();
        let work = async {
            for (name, statement, escapes) in &names {
                match backend.prepare_by_name(name, statement, *escapes).await {
                    // What cannot be prepared any more cannot be executed.
                    Ok(()) | Err(BackendFailed::Sync { .. }) => {}
                    Err(failed) => return Err(failed),
                }
            }
            Ok(())
        };
        self.watched(self.limit_ms(job), work, self.entry.told(false)).await
    }

    /// The names are on a connection that is held.
    pub(crate) fn forget_names(&mut self) {
        let gone = self.statements.names.take().map_or(0, |names| names.len());
        self.core.tally.add(Counter::StmtClientActiveTotal, 0u64.wrapping_sub(gone as u64));
    }
}

/// Whether an EXECUTE does nothing by itself, in its arguments, and asks for nothing that another statement would change.
fn only_executes(outer: &Class<'_>) -> bool {
    outer.leaves.without(Leaves::SQL_EXECUTE).is_empty() && !outer.reads.intersects(DISTURBED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_can_follow_stays_where_it_is() {
        let moves = |text: &str| may_move(&sql::class(text.as_bytes()));
        for text in [
            "SELECT a FROM t WHERE b = ?",
            "INSERT INTO t VALUES (?)",
            "SELECT 1 INTO @x",
            "SET @x = ?",
            "CREATE TEMPORARY TABLE t (a INT)",
            "SELECT LAST_INSERT_ID()",
            "COMMIT",
            "KILL 5",
        ] {
            assert!(moves(text), "{text}");
        }
        for text in [
            "CALL p(?)",
            "SELECT FOUND_ROWS()",
            "SELECT ROW_COUNT()",
            "SHOW WARNINGS",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "EXECUTE s",
            "SELECT 1; SELECT 2",
            "SELEC 1",
        ] {
            assert!(!moves(text), "{text}");
        }
    }

    #[test]
    fn an_execute_may_do_more_than_execute() {
        let only = |text: &str| only_executes(&sql::class(text.as_bytes()));
        assert!(only("EXECUTE s") && only("EXECUTE s USING @a, @b") && only("EXECUTE s USING LAST_INSERT_ID()"));
        assert!(!only("EXECUTE s USING @a := 5") && !only("EXECUTE s USING f(1)") && !only("EXECUTE s USING ROW_COUNT()"));
    }
}
