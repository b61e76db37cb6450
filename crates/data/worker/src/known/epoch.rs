//! A configuration as a core has it in force, with what was found out under it.

use crate::known::by_state::{Accepted, Values};
use crate::known::columns::Descriptions;
use crate::known::decisions::{Executions, repeats_of};
use crate::known::generated::Generated;
use crate::known::rates::Rates;
use crate::known::schemas::Schemas;
use crate::known::skeletons::Skeletons;
use bridge::ShardRow;
use config::{Repeats, Snapshot, Variables};
use sql::DigestOptions;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use topology::{Observed, Placed, Policy};

/// One generation of the configuration on this core.
#[derive(Debug)]
pub(crate) struct Epoch {
    pub(crate) snapshot: Snapshot,
    pub(crate) digest: DigestOptions,
    /// Whether the statistics may have one digest where the firewall has several.
    pub(crate) digests_alike: bool,
    /// Whether statements must be digested: see [`Snapshot::needs_digests`].
    pub(crate) digests: bool,
    /// Whether scripts are in force.
    pub(crate) has_scripts: bool,
    /// Scripts that see a client before it is greeted.
    pub(crate) scripts_at_the_door: Vec<Arc<config::Script>>,
    /// Names of scripts that see only what rules send to them.
    pub(crate) scripts_of_rules: Vec<Arc<str>>,
    /// Whether statements share connections in flight in some hostgroup.
    pub(crate) pipelines: bool,
    /// Whether nothing is asked for that each statement is looked at for.
    pub(crate) usual: bool,
    /// Statements that are decided once for all that differ in values only.
    pub(crate) repeats: Repeats,
    /// Whether a statement is logged whose rules do not say; none is at all if `None`.
    pub(crate) logs: Option<bool>,
    /// Which statements are traced, if any.
    pub(crate) traces: Option<config::Traces>,
    /// Matches of each rule, by its position in the chain.
    hits: Rc<RefCell<Vec<u64>>>,
    /// Which rules match which digests, as far as statements have asked.
    pub(crate) memo: Rc<RefCell<plan::Memo>>,
    /// SETs that servers have accepted under this configuration.
    pub(crate) accepted: RefCell<Accepted>,
    /// INSERTs whose id needs no question.
    pub(crate) generated: RefCell<Generated>,
    /// Values of variables that servers have told under this configuration.
    pub(crate) values: RefCell<Values>,
    /// Statements that came before with other values.
    pub(crate) skeletons: RefCell<Skeletons>,
    /// Prepared statements that were executed before.
    pub(crate) executed: RefCell<Executions>,
    /// Columns of sharded tables, in their order.
    pub(crate) descriptions: Rc<Descriptions>,
    /// Schemas that servers were seen to have.
    pub(crate) schemas: Schemas,
    /// Whether statements wait by priority and cost in some hostgroup,
    pub(crate) priorities: bool,
    /// or who waits, and for how long, is said otherwise.
    pub(crate) admission: bool,
    /// Turns of statements, if some have a rate.
    pub(crate) rates: Option<Rates>,
}

impl Epoch {
    /// Of a snapshot that was made for this core alone: see [`Snapshot::for_core`]. Here that would
    /// hold up the core's sessions.
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let snapshot = snapshot.clone();
        let digest = snapshot.variables.digest_options();
        let digests_alike = !digest.are_as_whole();
        let digests = snapshot.needs_digests();
        let hits = Rc::new(RefCell::new(vec![0; snapshot.rules.chain().len()]));
        let pipelines = snapshot
            .servers
            .iter()
            .any(|hostgroup| hostgroup.attributes.pipelining > 1);
        let logs = snapshot.logs();
        let traces = snapshot.traces();
        let usual = is_usual_configuration(&snapshot);
        let repeats = repeats_of(&snapshot, usual);
        let rates = snapshot.has_rates().then(Rates::default);
        let (priorities, admission) = (snapshot.has_priorities(), snapshot.has_admission());
        let has_scripts = !snapshot.scripts.active().is_empty();
        let active = snapshot.scripts.active().iter();
        let at_the_door = |script: &&Arc<config::Script>| {
            let early = !script::hooks_of_the_greeting(&script.text).is_empty();
            let judges = script::judges_logins(&script.text, &script.modules);
            script.serves_all() && (early || judges)
        };
        let scripts_at_the_door = active.filter(at_the_door).cloned().collect();
        let mut scripts_of_rules = Vec::new();
        if has_scripts {
            let chain = snapshot.rules.chain().iter();
            scripts_of_rules.extend(chain.filter_map(|rule| rule.script.clone()));
            scripts_of_rules.sort_unstable();
            scripts_of_rules.dedup();
        }
        Self {
            snapshot,
            digest,
            digests_alike,
            digests,
            has_scripts,
            scripts_at_the_door,
            scripts_of_rules,
            pipelines,
            usual,
            repeats,
            logs,
            traces,
            hits,
            memo: Rc::default(),
            accepted: RefCell::default(),
            generated: RefCell::default(),
            values: RefCell::default(),
            skeletons: RefCell::default(),
            executed: RefCell::default(),
            descriptions: Rc::default(),
            schemas: Schemas::default(),
            priorities,
            admission,
            rates,
        }
    }

    /// The one after this. Only a LOAD of rules begins to count them anew.
    pub(crate) fn next(&self, snapshot: &Snapshot) -> Self {
        let mut next = Self::new(snapshot);
        // One with partitions that were made since has the same tables.
        if (self.snapshot.shards).is_of_the_rows_of(&next.snapshot.shards) {
            next.descriptions = self.descriptions.clone();
        }
        if !Arc::ptr_eq(&self.snapshot.rules, &next.snapshot.rules) {
            // Of rules it remembers nothing, and what was counted on the tables stays.
            let spreads = std::mem::take(self.memo.borrow_mut().spreads());
            *next.memo.borrow_mut().spreads() = spreads;
            return next;
        }
        // Shared: what runs by the one before is still counted.
        Self {
            hits: self.hits.clone(),
            memo: self.memo.clone(),
            ..next
        }
    }

    /// Whose server we say we are: the vendors differ in what a reset and a refused change of user
    /// leave.
    pub(crate) fn claims_mariadb(&self) -> bool {
        self.snapshot.variables.claims_mariadb()
    }

    /// Count the rules that matched.
    pub(crate) fn count(&self, plan: &plan::Plan) {
        let matched = plan.why.hits();
        if !matched.is_empty() {
            let mut hits = self.hits.borrow_mut();
            for at in matched {
                if let Some(n) = hits.get_mut(*at as usize) {
                    *n += 1;
                }
            }
        }
    }

    /// Statements on sharded tables.
    pub(crate) fn spreads(&self, reset: bool) -> Vec<ShardRow> {
        let mut memo = self.memo.borrow_mut();
        let rows = memo
            .spreads()
            .iter()
            .map(|(schema, table, count)| ShardRow {
                schema: schema.into(),
                table: table.into(),
                points: count.points,
                some: count.some,
                all: count.all,
                refused: count.refused,
                partitions: count.partitions,
                partitions_max: count.partitions_max,
                finished: count.finished,
                rows_copied: count.rows_copied,
            });
        let rows = rows.collect();
        if reset {
            memo.spreads().clear();
        }
        rows
    }

    /// (rule_id, hits) of all active rules.
    pub(crate) fn hits(&self, reset: bool) -> Vec<(i64, u64)> {
        let mut hits = self.hits.borrow_mut();
        let rows = self
            .snapshot
            .rules
            .chain()
            .iter()
            .zip(hits.iter())
            .map(|(rule, n)| (rule.rule_id, *n))
            .collect();
        if reset {
            hits.fill(0);
        }
        rows
    }
}

/// Places of servers under a configuration, by what was seen of them.
pub(crate) fn placed(snapshot: &Snapshot, observed: &Observed) -> Placed {
    let policy = Policy::of(&snapshot.variables);
    topology::placed(&snapshot.servers, observed, &policy)
}

/// Whether the operator has asked for nothing that is looked at for each statement on its way to a
/// server and back.
fn is_usual_configuration(snapshot: &Snapshot) -> bool {
    let Variables {
        mysql_multiplexing,
        mysql_default_query_delay,
        mysql_connection_delay_multiplex_ms,
        mysql_throttle_max_bytes_per_second_to_client,
        mysql_stats_time_backend_query,
        mysql_firewall_whitelist_enabled,
        mysql_add_session_id_attribute,
        ..
    } = *snapshot.variables;
    let asks = mysql_default_query_delay > 0
        || mysql_connection_delay_multiplex_ms > 0
        || mysql_throttle_max_bytes_per_second_to_client > 0
        || mysql_stats_time_backend_query
        || mysql_firewall_whitelist_enabled
        || mysql_add_session_id_attribute;
    let attributes = || snapshot.servers.iter().map(|group| &group.attributes);
    mysql_multiplexing
        && !asks
        && !snapshot.rules.watches_writes()
        && attributes().all(|group| group.multiplex && group.pipelining <= 1)
}
