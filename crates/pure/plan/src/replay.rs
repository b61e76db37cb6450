//! A digest instead of a statement: where would it go, and can that be said without the statement's
//! literals?

use crate::trace::{Besides, Miss, Trace};
use crate::{Digest, Guarded, Plan, SessionFacts, Statement, Why, decide, rules};
use config::{Rule, Snapshot};
use sql::Shape;

/// Route of a digest, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The decision, where the digest's text stands for the statement.
    pub plan: Plan,
    /// No rule on the way asked for what a digest does not tell: the statement's own text, the
    /// client's address (if it is not known), the listener, the flag that an earlier statement has
    /// left, or chance.
    pub certain: bool,
}

/// Decides for a digest, outside of transactions. `shape`: what the firewall knows its statements
/// by; `all`: it is that of each of them.
#[must_use]
pub fn replay(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    digest: Digest<'_>,
    (shape, all): (Shape, bool),
) -> Replay {
    replay_with(
        snapshot,
        session,
        digest,
        (shape, all),
        Doubt::<false>::of(snapshot, session),
    )
}

fn replay_with<const EVERY_RULE: bool>(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    digest: Digest<'_>,
    (shape, all): (Shape, bool),
    mut doubt: Doubt<EVERY_RULE>,
) -> Replay {
    let statement = stand_in(digest, shape);
    doubt.doubtful |= !doubt.client_known
        && snapshot.variables.mysql_firewall_whitelist_enabled
        && snapshot
            .firewall
            .addresses(&session.user.username)
            .any(|client| !client.is_empty());
    doubt.doubtful |= !all && snapshot.variables.mysql_firewall_whitelist_enabled;
    let plan = decide(snapshot, session, &statement, 0, None, &mut doubt);
    Replay {
        plan,
        certain: !doubt.doubtful,
    }
}

/// The flag with which the chain ends for a digest, and whether that can be said without the
/// statement's literals.
#[must_use]
pub fn flag_at_end(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    digest: Digest<'_>,
) -> (u32, bool) {
    let mut plan = Plan::to(session.user.default_hostgroup);
    let mut doubt = Doubt::<false>::of(snapshot, session);
    // Which flag it is does not depend on the firewall.
    let statement = stand_in(
        digest,
        Shape {
            digest: digest.hash,
            is_shown: true,
        },
    );
    let end = rules::walk(
        &mut plan, snapshot, session, &statement, 0, None, &mut doubt,
    );
    (end.flag, !doubt.doubtful)
}

fn stand_in(digest: Digest<'_>, shape: Shape) -> Statement<'_> {
    Statement {
        text: digest.text,
        digest: Some(digest),
        comment: None,
        prepared: None,
        parameters: None,
        prepares: false,
        guarded: Guarded::Shape(shape),
        routed: crate::Routed::default(),
        numbers: shards::Numbering::Whichever,
        making: shards::Making::Whichever,
        columns: None,
        looked: None,
        answered: None,
    }
}

impl Replay {
    /// Whether two rule sets would do the same; which of their rules say so does not matter.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let done = |plan: &Plan| Plan {
            why: Why::new(),
            ..plan.clone()
        };
        done(&self.plan) == done(&other.plan)
    }

    /// Whether they would, but for the hostgroup.
    #[must_use]
    pub fn is_same_elsewhere(&self, other: &Self) -> bool {
        let mut moved = other.clone();
        moved.plan.leg.hostgroup = self.plan.leg.hostgroup;
        self.is_same(&moved)
    }
}

/// Whether something on the way asked for what a digest does not tell. With `EVERY_RULE` all are
/// asked, also those that cannot matter.
struct Doubt<const EVERY_RULE: bool> {
    client_known: bool,
    doubtful: bool,
}

impl<const EVERY_RULE: bool> Doubt<EVERY_RULE> {
    fn of(snapshot: &Snapshot, session: &SessionFacts<'_>) -> Self {
        // Nobody knows which statements ran before.
        let doubtful = !session.user.fast_forward
            && snapshot.rules.may_leave_a_flag_to(&session.user.username);
        Self {
            client_known: !session.client_addr.is_empty(),
            doubtful,
        }
    }
}

impl<const EVERY_RULE: bool> Trace for Doubt<EVERY_RULE> {
    const LOOKS_AT: Besides = if EVERY_RULE {
        Besides::Everything
    } else {
        Besides::Unsure
    };

    fn missed(&mut self, _: &Rule, why: Miss) {
        self.doubtful |= match why {
            Miss::FlagIn(_)
            | Miss::Username
            | Miss::Schemaname
            | Miss::NoDigest
            | Miss::Digest
            | Miss::MatchDigest => false,
            Miss::ClientAddr => !self.client_known,
            Miss::ProxyAddr | Miss::ProxyPort | Miss::MatchPattern => true,
        };
    }

    fn matched(&mut self, rule: &Rule, _: u32) {
        self.doubtful |=
            rule.match_pattern.is_some() || rule.flag_out.is_none() && rule.flag_outs.is_some();
    }

    fn saw(&mut self, _: &str, _: impl FnOnce() -> String) {}

    fn decided(&mut self, _: &Plan) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::World;

    /// Twenty thousand rules are not asked for each of a hundred thousand digests.
    #[test]
    fn rules_that_cannot_matter_are_not_asked_and_nothing_else_is_told() {
        let (mut certain, mut doubtful) = (0, 0);
        for seed in 0..100u64 {
            let bytes: Vec<u8> = (0..4000u64)
                .map(|n| ((seed * 4001 + n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u8)
                .collect();
            World::made_of(&bytes).each_digest(|snapshot, session, digest| {
                let shape = (
                    Shape {
                        digest: digest.hash,
                        is_shown: true,
                    },
                    true,
                );
                let told = replay(snapshot, session, digest, shape);
                let every = replay_with(
                    snapshot,
                    session,
                    digest,
                    shape,
                    Doubt::<true>::of(snapshot, session),
                );
                assert_eq!(told, every, "seed {seed}, {session:?}, {digest:?}");
                *if told.certain {
                    &mut certain
                } else {
                    &mut doubtful
                } += 1;
            });
        }
        assert!(certain > 100 && doubtful > 100, "{certain}, {doubtful}");
    }
}
