//! The compiled rules decide what a plain reading of the chain says, over many thousands of random rules and statements,
//! and a mistake would be seen.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use config::{Memo, RuleRow};
use plan::differential::World;

/// Bytes from a seed: a generator that everybody can write again (splitmix64).
fn bytes(mut seed: u64) -> Vec<u8> {
    let word = std::iter::from_fn(move || {
        seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (seed ^ seed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some((z ^ z >> 31).to_le_bytes())
    });
    word.take(500).flatten().collect()
}

#[test]
fn the_compiled_form_is_the_chain() {
    let mut decisions = 0;
    for seed in 0..400 {
        let world = World::made_of(&bytes(seed));
        let mut memo = Memo::default();
        for _ in 0..2 {
            let wrong = world.disagreement(&world.rules, &mut memo).unwrap();
            assert!(wrong.is_none(), "seed {seed}: {}", wrong.unwrap_or_default());
        }
        decisions += 2 * world.told().len();
    }
    assert!(decisions > 8_000, "{decisions}");
}

/// A mistake in what the rows mean, by its name.
type Mistake = (&'static str, fn(&mut RuleRow));

const MISTAKES: [Mistake; 12] = [
    ("client_addr is not looked at", |row| row.client_addr = None),
    ("a % is a character", |row| row.client_addr = row.client_addr.take().map(|like| like.replace('%', "\0"))),
    ("proxy_port is not looked at", |row| row.proxy_port = None),
    ("proxy_addr is not looked at", |row| row.proxy_addr = None),
    ("digest is not looked at", |row| row.digest = None),
    ("a negation is forgotten", |row| row.negate_match_pattern = 0),
    ("case matters", |row| row.re_modifiers = None),
    ("match_pattern is tried on the digest", |row| {
        row.match_digest = row.match_digest.take().or_else(|| row.match_pattern.clone())
    }),
    ("flagIN is not looked at", |row| row.flagIN = 0),
    ("weighted flags are not drawn", |row| row.attributes.clear()),
    ("nothing is rewritten", |row| row.replace_pattern = None),
    ("a rule is looked at too late", |row| row.rule_id += 2 * (row.rule_id % 2)),
];

#[test]
fn a_planted_mistake_is_seen() {
    for (name, plant) in MISTAKES {
        let seen = (0..100).any(|seed| {
            let world = World::made_of(&bytes(seed));
            let mut rules = world.rules.clone();
            rules.iter_mut().for_each(plant);
            if name.ends_with("too late") {
                rules.dedup_by_key(|row| row.rule_id);
                rules.sort_by_key(|row| row.rule_id);
                rules.dedup_by_key(|row| row.rule_id);
            }
            !matches!(world.disagreement(&rules, &mut Memo::default()), Ok(None))
        });
        assert!(seen, "nobody saw: {name}");
    }
}

/// What is remembered of other rules is a mistake, too; it is seen, so the memo is really asked.
#[test]
fn a_memo_of_other_rules_is_seen() {
    let mut memo = Memo::default();
    let seen = (0..100).any(|seed| {
        let world = World::made_of(&bytes(seed));
        world.disagreement(&world.rules, &mut memo).unwrap().is_some()
    });
    assert!(seen);
}
