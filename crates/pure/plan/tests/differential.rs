//! The compiled rules decide what a plain reading of the chain says, over many thousands of random
//! rules and statements, and a mistake would be seen.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use config::{Memo, RuleRow};
use plan::differential::World;

/// Bytes from a seed: a generator that everybody can write again (splitmix64).
fn bytes(seed: u64) -> Vec<u8> {
    so_many_bytes(4000, seed)
}

fn so_many_bytes(count: usize, mut seed: u64) -> Vec<u8> {
    let word = std::iter::from_fn(move || {
        seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (seed ^ seed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        Some((z ^ z >> 31).to_le_bytes())
    });
    word.flatten().take(count).collect()
}

#[test]
fn the_compiled_form_is_the_chain() {
    let mut decisions = 0;
    for seed in 0..400 {
        let world = World::made_of(&bytes(seed));
        let mut memo = Memo::default();
        for _ in 0..2 {
            let wrong = world.disagreement(&world.rules, &mut memo).unwrap();
            assert!(
                wrong.is_none(),
                "seed {seed}: {}",
                wrong.unwrap_or_default()
            );
        }
        decisions += 2 * world.told().len();
    }
    assert!(decisions > 8_000, "{decisions}");
}

/// There, rules name things in more combinations than the index has groups for, and buckets are
/// large.
#[test]
fn the_compiled_form_of_thousands_of_rules_is_the_chain() {
    for seed in 0..6 {
        let world = World::made_of(&so_many_bytes(World::LARGE, seed));
        assert!(world.rules.len() == 3000);
        let mut memo = Memo::default();
        for _ in 0..2 {
            let wrong = world.disagreement(&world.rules, &mut memo).unwrap();
            assert!(
                wrong.is_none(),
                "seed {seed}: {}",
                wrong.unwrap_or_default()
            );
        }
    }
}

/// A mistake in what the rows mean, by its name.
type Mistake = (&'static str, fn(&mut RuleRow));

const MISTAKES: [Mistake; 18] = [
    ("client_addr is not looked at", |row| row.client_addr = None),
    ("a % is a character", |row| {
        row.client_addr = row.client_addr.take().map(|like| like.replace('%', "\0"))
    }),
    ("proxy_port is not looked at", |row| row.proxy_port = None),
    ("proxy_addr is not looked at", |row| row.proxy_addr = None),
    ("digest is not looked at", |row| row.digest = None),
    ("a negation is forgotten", |row| {
        row.negate_match_pattern = 0
    }),
    ("case matters", |row| row.re_modifiers = None),
    ("match_pattern is tried on the digest", |row| {
        row.match_digest = row
            .match_digest
            .take()
            .or_else(|| row.match_pattern.clone())
    }),
    ("flagIN is not looked at", |row| row.flagIN = 0),
    ("weighted flags are not drawn", |row| row.attributes.clear()),
    ("an empty name is one", |row| {
        row.username = row.username.take().map(|name| {
            if name.is_empty() {
                "nobody".into()
            } else {
                name
            }
        })
    }),
    ("cache_empty_result is not kept", |row| {
        row.cache_empty_result = None
    }),
    ("cache_timeout is not kept", |row| row.cache_timeout = None),
    ("gtid_from_hostgroup is not obeyed", |row| {
        row.gtid_from_hostgroup = None
    }),
    ("nothing is mirrored", |row| row.mirror_hostgroup = None),
    ("a copy goes through no rules", |row| {
        row.mirror_flagOUT = None
    }),
    ("nothing is rewritten", |row| row.replace_pattern = None),
    ("a rule is looked at too late", |row| {
        row.rule_id += 2 * (row.rule_id % 2)
    }),
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

/// A memo of other rules is a mistake, too; it is seen, so the memo is really asked.
#[test]
fn a_memo_of_other_rules_is_seen() {
    let mut memo = Memo::default();
    let seen = (0..100).any(|seed| {
        let world = World::made_of(&bytes(seed));
        world
            .disagreement(&world.rules, &mut memo)
            .unwrap()
            .is_some()
    });
    assert!(seen);
}
