//! Decisions that hold for a statement whatever its values: which are remembered, and under which
//! configurations. docs/decisions/0050.

use config::{Repeats, Snapshot, User};
use plan::Plan;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Decisions that are remembered of one statement at most: users and schemas are few.
const DECISIONS_MAX: usize = 8;

/// Decisions on one statement, whatever its values.
#[derive(Debug, Default)]
pub(crate) struct Decisions(RefCell<Vec<Decision>>);

#[derive(Debug)]
struct Decision {
    user: Arc<User>,
    schema: Rc<str>,
    plan: Rc<Plan>,
}

impl Decisions {
    /// The decision for a user in a schema.
    pub(crate) fn of(&self, user: &Arc<User>, schema: &str) -> Option<Rc<Plan>> {
        let all = self.0.borrow();
        let mut its = all.iter();
        let is_it = |one: &&Decision| Arc::ptr_eq(&one.user, user) && *one.schema == *schema;
        its.find(is_it).map(|decision| decision.plan.clone())
    }

    /// Remembers one.
    pub(crate) fn add(&self, user: &Arc<User>, schema: &Rc<str>, plan: &Plan) {
        let mut all = self.0.borrow_mut();
        if all.len() >= DECISIONS_MAX {
            all.clear();
        }
        all.push(Decision {
            user: user.clone(),
            schema: schema.clone(),
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
        || !snapshot.scripts.active().is_empty()
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
    fn a_decision_is_of_one_user_in_one_schema_and_there_are_not_too_many() {
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
            numbers: shards::Numbering::Untaken,
        };
        let plan = plan::plan(&snapshot, &facts(&users[0]), &statement, 0);
        let schema = |n: usize| Rc::<str>::from(format!("s{n}"));
        decisions.add(&users[0], &schema(1), &plan);
        assert_eq!(decisions.of(&users[0], "s1").as_deref(), Some(&plan));
        assert!(decisions.of(&users[1], "s1").is_none() && decisions.of(&users[0], "s2").is_none());
        for n in 0..3 * DECISIONS_MAX {
            decisions.add(&users[1], &schema(n), &plan);
            assert!(decisions.0.borrow().len() <= DECISIONS_MAX);
            assert!(decisions.of(&users[1], &schema(n)).is_some());
        }
    }
}
