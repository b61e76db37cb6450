//! Which rules can concern a session: a script with one rule per schema costs the same for the first and the last.
//!
//! Rules name a user, a schema, both or neither. A session's candidates are at most four lists of positions, each
//! ascending; merged, they are the chain without the rules that name somebody or something else.

use super::Rule;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Positions by what their rules name.
#[derive(Debug, Default)]
pub(super) struct Index {
    neither: Vec<u32>,
    by_user: HashMap<Arc<str>, Vec<u32>, FixedState>,
    by_schema: HashMap<Arc<str>, Vec<u32>, FixedState>,
    by_both: HashTable<Both>,
}

#[derive(Debug)]
struct Both {
    user: Arc<str>,
    schema: Arc<str>,
    positions: Vec<u32>,
}

fn hash(user: &str, schema: &str) -> u64 {
    FixedState::default().hash_one((user, schema))
}

impl Index {
    pub(super) fn of(chain: &[Rule]) -> Self {
        let mut index = Self::default();
        for (position, rule) in (0..).zip(chain) {
            let positions = match (&rule.username, &rule.schemaname) {
                (None, None) => &mut index.neither,
                (Some(user), None) => index.by_user.entry(Arc::clone(user)).or_default(),
                (None, Some(schema)) => index.by_schema.entry(Arc::clone(schema)).or_default(),
                (Some(user), Some(schema)) => {
                    let same = |both: &Both| both.user == *user && both.schema == *schema;
                    let rehash = |both: &Both| hash(&both.user, &both.schema);
                    let new = || Both { user: Arc::clone(user), schema: Arc::clone(schema), positions: Vec::new() };
                    let entry = index.by_both.entry(hash(user, schema), same, rehash).or_insert_with(new);
                    &mut entry.into_mut().positions
                }
            };
            positions.push(position);
        }
        index
    }

    #[inline]
    pub(super) fn candidates(&self, user: &str, schema: &str) -> Candidates<'_> {
        let mut lists: [&[u32]; 4] = [&self.neither, &[], &[], &[]];
        if !self.by_user.is_empty() {
            lists[1] = self.by_user.get(user).map_or(&[], Vec::as_slice);
        }
        if !self.by_schema.is_empty() {
            lists[2] = self.by_schema.get(schema).map_or(&[], Vec::as_slice);
        }
        if !self.by_both.is_empty() {
            let found = self.by_both.find(hash(user, schema), |both| *both.user == *user && *both.schema == *schema);
            lists[3] = found.map_or(&[], |both| &both.positions);
        }
        Candidates { lists }
    }
}

/// Positions in the chain, ascending.
#[derive(Debug, Clone)]
pub struct Candidates<'a> {
    lists: [&'a [u32]; 4],
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let first = |list: &&[u32]| list.first().copied().unwrap_or(u32::MAX);
        let least = self.lists.iter_mut().min_by_key(|list| first(list))?;
        let (position, rest) = least.split_first()?;
        *least = rest;
        Some(*position as usize)
    }
}
