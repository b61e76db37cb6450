//! Decisions that hold for a statement whatever its values: which are remembered, and under which
//! configurations. docs/decisions/0050.

use backend::Prepared;
use config::{Repeats, Snapshot, User};
use plan::Plan;
use sql::{Class, DigestOptions, Lexing};
use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use wire::response::Head;

/// Decisions that are remembered of one statement at most: users and schemas are few.
const DECISIONS_MAX: usize = 8;

/// Prepared statements that are remembered at most. When there are more, all are forgotten.
const EXECUTED_MAX: usize = 2_000;

/// A statement, whatever its values: all that is asked of its text, and decisions on it.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) class: Class<'static>,
    /// Hash of the digest, and its text.
    pub(crate) digest: (u64, Box<[u8]>),
    /// Decisions for some users.
    pub(crate) decisions: Decisions,
    /// Beginning of its answers.
    pub(crate) answers: Answers,
}

impl Judged {
    /// Of a class and a digest. `None` if the text names a schema to go to: that is one of its
    /// values, and rare.
    pub(crate) fn new(class: Class<'_>, digest: (u64, Box<[u8]>)) -> Option<Self> {
        if class.use_db.is_some() {
            return None;
        }
        Some(Self {
            class: Class {
                use_db: None,
                ..class
            },
            digest,
            decisions: Decisions::default(),
            answers: Answers::default(),
        })
    }
}

/// Beginning of the answers to a statement, up to their rows. Where it is not always the same, the one
/// that is remembered is replaced now and then.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    head: RefCell<Option<Box<Head>>>,
    /// Answers that began otherwise since it is remembered.
    others: Cell<u8>,
}

/// So many answers have to begin otherwise before another beginning is remembered.
const OTHERS: u8 = 16;

impl Answers {
    /// The beginning that is remembered, if there is one.
    pub(crate) fn known(&self) -> Option<Ref<'_, Head>> {
        Ref::filter_map(self.head.borrow(), |head| head.as_deref()).ok()
    }

    /// Remembers how an answer began, unless another beginning is remembered that still comes.
    pub(crate) fn remember(&self, head: impl FnOnce() -> Option<Head>) {
        let others = self.others.get();
        if self.head.borrow().is_some() && others < OTHERS {
            return self.others.set(others + 1);
        }
        self.others.set(0);
        self.head.replace(head().map(Box::new));
    }
}

/// Prepared statements that were executed under one configuration, by their number on this core.
#[derive(Debug, Default)]
pub(crate) struct Executions(HashMap<u64, (Lexing, Rc<Judged>), foldhash::fast::RandomState>);

impl Executions {
    /// Returns what is known of a statement whose text is read so.
    pub(crate) fn find(
        &mut self,
        prepared: &Prepared,
        lexing: Lexing,
        options: &DigestOptions,
    ) -> Option<Rc<Judged>> {
        if let Some((read, judged)) = self.0.get(&prepared.number) {
            return (*read == lexing).then(|| judged.clone());
        }
        let mut digest = Vec::new();
        let hash = prepared.digest(options, &mut digest);
        let judged = Judged::new(prepared.class(lexing), (hash, digest.into_boxed_slice()))?;
        if self.0.len() >= EXECUTED_MAX {
            self.0.clear();
        }
        let judged = Rc::new(judged);
        self.0.insert(prepared.number, (lexing, judged.clone()));
        Some(judged)
    }
}

/// Session that a decision is made for, as far as the decision depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct For<'a> {
    pub(crate) user: &'a Arc<User>,
    /// Schema that the statement is read in; empty for none.
    pub(crate) schema: &'a Rc<str>,
    /// Hostgroup of its open transaction.
    pub(crate) transaction: Option<u32>,
}

/// Decisions on one statement, whatever its values.
#[derive(Debug, Default)]
pub(crate) struct Decisions(RefCell<Vec<Decision>>);

#[derive(Debug)]
struct Decision {
    user: Arc<User>,
    schema: Rc<str>,
    transaction: Option<u32>,
    plan: Rc<Plan>,
}

impl Decisions {
    /// The decision for a session.
    pub(crate) fn of(&self, session: For<'_>) -> Option<Rc<Plan>> {
        let all = self.0.borrow();
        let mut its = all.iter();
        let is_it = |one: &&Decision| {
            Arc::ptr_eq(&one.user, session.user)
                && one.transaction == session.transaction
                && (Rc::ptr_eq(&one.schema, session.schema) || one.schema == *session.schema)
        };
        its.find(is_it).map(|decision| decision.plan.clone())
    }

    /// Remembers one, unless it is remembered.
    pub(crate) fn add(&self, session: For<'_>, plan: &Plan) {
        if self.of(session).is_some() {
            return;
        }
        let mut all = self.0.borrow_mut();
        if all.len() >= DECISIONS_MAX {
            all.clear();
        }
        all.push(Decision {
            user: session.user.clone(),
            schema: session.schema.clone(),
            transaction: session.transaction,
            plan: Rc::new(plan.clone()),
        });
    }
}

/// Statements that may be decided once for all.
pub(crate) fn repeats_of(snapshot: &Snapshot, usual: bool) -> Repeats {
    let looks_at_each = snapshot.has_rates()
        || snapshot.has_priorities()
        || snapshot.has_admission()
        || snapshot.logs().is_some()
        || snapshot.traces().is_some()
        || !snapshot.shards.is_empty()
        || !snapshot.rewrites.is_empty()
        || snapshot.servers.falls_back()
        || snapshot.servers.replays()
        || snapshot.variables.mysql_stats_time_query_processor
        || snapshot.variables.mysql_automatic_detect_sqli;
    match usual && !looks_at_each {
        true => snapshot.rules.repeats(),
        false => Repeats::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_of_one_user_in_one_schema_and_one_transaction_and_there_are_not_too_many() {
        let (decisions, snapshot) = (Decisions::default(), Snapshot::default());
        let rows = ["a", "b"].map(|name| config::UserRow {
            username: name.into(),
            ..config::UserRow::default()
        });
        let all = config::Users::build(rows, &snapshot.variables).unwrap();
        let users = ["a", "b"].map(|name| Arc::clone(all.frontend(name).unwrap()));
        let facts = |user| plan::SessionFacts {
            user,
            schema: "",
            client_addr: "",
            proxy_addr: "",
            proxy_port: 0,
            in_transaction: None,
            begun: false,
            branches: false,
            locked: None,
            next_flag_in: None,
            autocommit: true,
            split: plan::SplitFacts::NONE,
        };
        let statement = plan::Statement {
            text: b"SELECT 1",
            digest: None,
            comment: None,
            prepared: None,
            parameters: None,
            prepares: false,
            guarded: plan::Guarded::Text,
            routed: plan::Routed::default(),
            looked: None,
            answered: None,
            numbers: shards::Numbering::Untaken,
            making: shards::Making::Unasked,
            columns: None,
        };
        let plan = plan::plan(&snapshot, &facts(&users[0]), &statement, 0);
        let schemas = (0..3 * DECISIONS_MAX).map(|n| format!("s{n}").into());
        let schemas: Vec<Rc<str>> = schemas.collect();
        let session = |user: usize, schema: usize, transaction| For {
            user: &users[user],
            schema: &schemas[schema],
            transaction,
        };
        decisions.add(session(0, 1, None), &plan);
        assert_eq!(decisions.of(session(0, 1, None)).as_deref(), Some(&plan));
        for other in [
            session(1, 1, None),
            session(0, 2, None),
            session(0, 1, Some(0)),
        ] {
            assert!(decisions.of(other).is_none());
        }
        for n in 0..schemas.len() {
            decisions.add(session(1, n, Some(7)), &plan);
            assert!(decisions.0.borrow().len() <= DECISIONS_MAX);
            assert!(decisions.of(session(1, n, Some(7))).is_some());
        }
    }
}
