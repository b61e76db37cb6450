//! The decision: what is known goes in, a [`Plan`] comes out, and nothing has happened yet.
//!
//! [`plan`] and [`explain`] run the same code; the second has it watched. Each decision is a file:
//! `rules`, `rewrite`, `shards`, `fast_routing`, `split`, `hints`, `fresh`, `transaction`, `answer`,
//! `firewall`, `mirror`; `turns` then chooses a server of the hostgroup.
#![forbid(unsafe_code)]

mod admission;
mod answer;
pub mod differential;
mod explain;
mod fast_routing;
mod firewall;
mod fresh;
mod hints;
mod mirror;
mod outcome;
mod pick;
mod reach;
mod replay;
mod rewrite;
mod rules;
mod several;
mod shards;
mod split;
mod trace;
mod transaction;
mod turns;
mod why;
mod width;

pub use admission::{LIMIT_WORDS, Limit, Window, priority, rank_ns};
pub use explain::{COLUMNS, Explanation, Step, explain};
pub use firewall::{Action, Alarm, AnsiQuotes};
pub use fresh::{Age, Bounds};
pub use outcome::{Answer, Given, Leg, Mirror, Partition, Plan, Shown, Text};
pub use pick::{pick, pick_by};
pub use reach::{MustSee, Settled, Sight};
pub use replay::{Replay, flag_at_end, replay};
pub use several::{Answered, Finishing, Gather, Part, Values};
pub use split::{SplitFacts, split_of};
pub use trace::Miss;
pub use transaction::has_branches;
pub use turns::{credit_after, turn_of};
pub use why::{By, Why};
pub use width::{Width, width};

use ::shards::{KnownColumns, LookedUp, Making, Numbering};
pub use config::Memo;
use config::{Snapshot, User};
use trace::{Silent, Trace};

/// Facts of a session that the decision may know.
#[derive(Debug, Clone, Copy)]
pub struct SessionFacts<'a> {
    /// Who logged in.
    pub user: &'a User,
    /// The current schema; empty for none.
    pub schema: &'a str,
    /// Address of the client, without the port; for a Unix socket whatever the session shows for
    /// it.
    pub client_addr: &'a str,
    /// Address that the client connected to.
    pub proxy_addr: &'a str,
    /// Port that the client connected to.
    pub proxy_port: u16,
    /// The hostgroup on which a transaction is open, or about to begin.
    pub in_transaction: Option<u32>,
    /// Whether the transaction is open.
    pub begun: bool,
    /// Whether the transaction has, or may have, a branch on each hostgroup.
    pub branches: bool,
    /// The hostgroup whose connection holds state of this session that cannot be brought elsewhere.
    pub locked: Option<u32>,
    /// Flag that an earlier plan of this session gave as [`Plan::next_flag_in`].
    pub next_flag_in: Option<u32>,
    /// Whether every statement commits by itself.
    pub autocommit: bool,
    /// For the read/write split.
    pub split: SplitFacts<'a>,
}

/// Facts of a statement that the decision may know.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    /// As the client sent it.
    pub text: &'a [u8],
    /// Its digest. Without one, rules that ask for a digest do not match (see
    /// `Rules::needs_digest`).
    pub digest: Option<Digest<'a>>,
    /// The inside of its first `/* */` comment.
    pub comment: Option<&'a [u8]>,
    /// For an execution of a prepared statement: what was prepared. That is sent, whatever rules
    /// would make of the text now.
    pub prepared: Option<&'a [u8]>,
    /// The values of its `?`, in an execution of a prepared statement, where somebody may ask for them.
    pub parameters: Option<&'a [sql::bound::Bound]>,
    /// Whether the statement is prepared, to be executed with other values each time.
    pub prepares: bool,
    /// Part of the statement that the firewall and, of a change of schema, the rules may judge.
    pub guarded: Guarded,
    /// Route that a script has returned for the statement.
    pub routed: Routed,
    /// Numbers of a sequence that its rows get.
    pub numbers: Numbering,
    /// Knowledge of partitions that are made by themselves.
    pub making: Making,
    /// Columns of sharded tables; none where nobody asks servers.
    pub columns: Option<KnownColumns<'a>>,
    /// Answers of look-ups of sharded tables; none where nobody asks them.
    pub looked: Option<&'a LookedUp>,
    /// Answer of its partitions, if that could not be put together.
    pub answered: Option<&'a Answered>,
}

/// A script's say of a statement's way. It beats rules and hints; a transaction still stays where it
/// is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Routed {
    /// Hostgroup.
    pub hostgroup: Option<u32>,
    /// Milliseconds that its result may be had from the cache; 0 for neither kept nor had.
    pub cache_ttl_ms: Option<u32>,
}

/// Part of a statement that the firewall may look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// Its text.
    Text,
    /// This; the text is not what a client sent.
    Shape(sql::Shape),
    /// Nothing: it is a command without SQL, such as COM_FIELD_LIST.
    Nothing,
    /// Nothing, and rules only say where it goes: it is COM_INIT_DB, of which they and the
    /// statistics hear nothing in ProxySQL.
    Schema,
}

/// A statement's digest.
#[derive(Debug, Clone, Copy)]
pub struct Digest<'a> {
    /// Hash of the text.
    pub hash: u64,
    /// The statement without its literals.
    pub text: &'a [u8],
}

/// Decides. `random` matters where weights do.
#[must_use]
pub fn plan(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    random: u64,
) -> Plan {
    decide(snapshot, session, statement, random, None, &mut Silent)
}

/// Decides, for somebody who remembers which rules match which digests. The memo must have seen no
/// other rules than those of this snapshot.
#[must_use]
pub fn plan_with(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    random: u64,
    memo: &mut Memo,
) -> Plan {
    decide(
        snapshot,
        session,
        statement,
        random,
        Some(memo),
        &mut Silent,
    )
}

/// Subject of a decision, and what it is made under.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) session: &'a SessionFacts<'a>,
    pub(crate) statement: &'a Statement<'a>,
}

/// The order of these lines is the order of the decisions: a later one overrules the earlier.
fn decide<T: Trace>(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    statement: &Statement<'_>,
    random: u64,
    mut memo: Option<&mut Memo>,
    trace: &mut T,
) -> Plan {
    let mut plan = Plan::to(session.user.default_hostgroup);
    if session.user.fast_forward {
        plan.why.by = By::FastForward;
        trace.decided(&plan);
        return plan;
    }
    let known = memo.as_deref_mut();
    let end = rules::walk(
        &mut plan, snapshot, session, statement, random, known, trace,
    );
    let asked = statement;
    let mut case = Case {
        snapshot,
        session,
        statement,
    };
    let mut sharded = shards::look(&plan, case, trace);
    let as_prepared;
    let statement = match statement.prepared {
        Some(text) => {
            // What rules have to say of what they would make of the text is not known where they
            // cannot make it: `end.unmade` stays.
            plan.send_as_is();
            as_prepared = Statement { text, ..*statement };
            &as_prepared
        }
        None => statement,
    };
    case.statement = statement;
    // Both are for tables that are not sharded.
    if matches!(sharded, shards::Sharded::No | shards::Sharded::Said(_)) {
        fast_routing::look(&mut plan, &snapshot.rules, session, end, trace);
        split::read(&mut plan, snapshot, session, statement, trace);
    }
    hints::obey(&mut plan, statement, trace);
    hints::follow_script(&mut plan, statement.routed, trace);
    fresh::look(&mut plan, snapshot, session, trace);
    shards::lead(&mut plan, &mut sharded, case, trace);
    shards::stay(&mut plan, &sharded, session, trace);
    if statement.guarded == Guarded::Schema {
        plan = plan.way_alone();
        trace.decided(&plan);
        return plan;
    }
    answer::instead(&mut plan, session, end);
    shards::refuse(&mut plan, &sharded, session, asked);
    firewall::guard(
        &mut plan,
        Case {
            statement: asked,
            ..case
        },
        end.flag,
        trace,
    );
    mirror::copy(&mut plan, case, random, trace);
    shards::put_in(&mut plan, sharded, case, memo);
    trace.decided(&plan);
    plan
}
