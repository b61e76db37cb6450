//! A digest instead of a statement: where would it go, and can that be said without the statement's literals?

use crate::trace::{Miss, Trace};
use crate::{Digest, Guarded, Plan, SessionFacts, Statement, Why, decide, rules};
use config::{Rule, Snapshot};

/// What is known of a digest's route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The decision, where the digest's text stands for the statement.
    pub plan: Plan,
    /// No rule on the way asked for what a digest does not tell: the statement's own text, the client's address (if it is
    /// not known), the listener, or chance.
    pub certain: bool,
}

/// Decides for a digest, outside of transactions. `shown`: whether it shows all that a server reads, as [`crate::Guarded::Digest`] has it; `None` where it
/// does of some statements only.
#[must_use]
pub fn replay(snapshot: &Snapshot, session: &SessionFacts<'_>, digest: Digest<'_>, shown: Option<bool>) -> Replay {
    let statement = stand_in(digest, shown.unwrap_or(true));
    let mut doubt = Doubt::of(session);
    doubt.doubtful = !doubt.client_known
        && snapshot.variables.mysql_firewall_whitelist_enabled
        && snapshot.firewall.addresses(&session.user.username).any(|client| !client.is_empty());
    doubt.doubtful |= shown.is_none() && snapshot.variables.mysql_firewall_whitelist_enabled;
    let plan = decide(snapshot, session, &statement, 0, None, &mut doubt);
    Replay { plan, certain: !doubt.doubtful }
}

/// The flag with which the chain ends for a digest, and whether that can be said without the statement's literals.
#[must_use]
pub fn flag_at_end(snapshot: &Snapshot, session: &SessionFacts<'_>, digest: Digest<'_>) -> (u32, bool) {
    let mut plan = Plan::to(session.user.default_hostgroup);
    let mut doubt = Doubt::of(session);
    let end = rules::walk(&mut plan, snapshot, session, &stand_in(digest, true), 0, None, &mut doubt);
    (end.flag, !doubt.doubtful)
}

fn stand_in(digest: Digest<'_>, is_shown: bool) -> Statement<'_> {
    Statement { text: digest.text, digest: Some(digest), comment: None, prepared: None, guarded: Guarded::Digest { is_shown } }
}

impl Replay {
    /// Whether two rule sets would do the same; which of their rules say so does not matter.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let done = |plan: &Plan| Plan { why: Why::new(), ..plan.clone() };
        done(&self.plan) == done(&other.plan)
    }
}

struct Doubt {
    client_known: bool,
    doubtful: bool,
}

impl Doubt {
    const fn of(session: &SessionFacts<'_>) -> Self {
        Self { client_known: !session.client_addr.is_empty(), doubtful: false }
    }
}

impl Trace for Doubt {
    const WHOLE_CHAIN: bool = true;

    fn missed(&mut self, _: &Rule, why: Miss) {
        self.doubtful |= match why {
            Miss::FlagIn(_) | Miss::Username | Miss::Schemaname | Miss::NoDigest | Miss::Digest | Miss::MatchDigest => false,
            Miss::ClientAddr => !self.client_known,
            Miss::ProxyAddr | Miss::ProxyPort | Miss::MatchPattern => true,
        };
    }

    fn matched(&mut self, rule: &Rule, _: u32) {
        self.doubtful |= rule.match_pattern.is_some() || rule.flag_outs.is_some();
    }

    fn saw(&mut self, _: &str, _: impl FnOnce() -> String) {}

    fn decided(&mut self, _: &Plan) {}
}
