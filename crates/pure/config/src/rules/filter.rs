//! Which of many expressions can match a text at all: one pass looks for what each needs.

use crate::pattern::{AnyOf, Needed, shortest};
use aho_corasick::automaton::OverlappingState;
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, Anchored, Input, MatchKind, StartKind};
use std::collections::HashMap;

/// Rules by texts that their expressions cannot match without.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// Texts that must be at the start: looking for them ends at the first byte that none has.
    start: Option<Texts>,
    /// Texts that must be somewhere.
    inside: Option<Texts>,
}

/// So many expressions may share a start before something rarer inside them is looked for.
const SHARED_MAX: usize = 8;

impl Filter {
    /// From (position, what its expression needs), and the positions of those that need nothing
    /// that is known.
    pub(super) fn of(expressions: Vec<(u32, Needed)>) -> (Self, Vec<u32>) {
        let mut starts: HashMap<&[u8], usize> = HashMap::new();
        let mut insides: HashMap<&[u8], usize> = HashMap::new();
        for (_, needed) in &expressions {
            if let Some(start) = &needed.start {
                *starts.entry(start).or_default() += 1;
            }
            for text in needed.inside.iter().flatten() {
                *insides.entry(text).or_default() += 1;
            }
        }
        let (mut start, mut inside, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for (position, needed) in &expressions {
            let shared = |any: &&AnyOf| {
                any.iter()
                    .map(|text| insides.get(&**text).copied().unwrap_or(1))
                    .sum::<usize>()
            };
            let rarest = needed
                .inside
                .iter()
                .min_by_key(|any| (shared(any), usize::MAX - shortest(any)));
            let begins = needed
                .start
                .as_deref()
                .map(|text| (text, starts.get(text).copied().unwrap_or(1)));
            match (begins, rarest) {
                (Some((text, count)), rarest)
                    if count <= SHARED_MAX || rarest.is_none_or(|any| shared(&any) >= count) =>
                {
                    start.push((text.to_vec(), *position));
                }
                (_, Some(any)) => inside.extend(any.iter().map(|text| (text.to_vec(), *position))),
                _ => rest.push(*position),
            }
        }
        (
            Self {
                start: Texts::of(start, StartKind::Anchored),
                inside: Texts::of(inside, StartKind::Unanchored),
            },
            rest,
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start.is_none() && self.inside.is_none()
    }

    /// Passes the positions of the rules that can match `text`, in no order, perhaps more than
    /// once.
    pub(super) fn candidates(&self, text: &[u8], found: &mut impl FnMut(&[u32])) {
        if let Some(start) = &self.start {
            start.find(Input::new(text).anchored(Anchored::Yes), found);
        }
        if let Some(inside) = &self.inside {
            inside.find(Input::new(text), found);
        }
    }

    /// Bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        [&self.start, &self.inside]
            .into_iter()
            .flatten()
            .map(Texts::bytes)
            .sum()
    }
}

#[derive(Debug)]
struct Texts {
    automaton: AhoCorasick,
    /// `positions[ends[i - 1]..ends[i]]` need text `i`.
    ends: Box<[u32]>,
    positions: Box<[u32]>,
}

impl Texts {
    fn of(mut texts: Vec<(Vec<u8>, u32)>, start: StartKind) -> Option<Self> {
        texts.sort_unstable();
        texts.dedup();
        let (mut ends, mut positions, mut distinct): (Vec<u32>, Vec<u32>, Vec<&[u8]>) =
            Default::default();
        for (text, position) in &texts {
            if distinct.last() != Some(&&**text) {
                distinct.push(text);
                ends.push(0);
            }
            positions.push(*position);
            *ends.last_mut()? = u32::try_from(positions.len()).ok()?;
        }
        if distinct.is_empty() {
            return None;
        }
        let automaton = AhoCorasickBuilder::new()
            .match_kind(MatchKind::Standard)
            .start_kind(start)
            .ascii_case_insensitive(true)
            .build(&distinct)
            .expect("texts of expressions that compiled are far below the limits of an automaton");
        Some(Self {
            automaton,
            ends: ends.into(),
            positions: positions.into(),
        })
    }

    fn find(&self, input: Input<'_>, found: &mut impl FnMut(&[u32])) {
        let (mut last, mut state) = (None, OverlappingState::start());
        loop {
            self.automaton
                .try_find_overlapping(input.clone(), &mut state)
                .expect("built for this way of starting");
            let Some(text) = state.get_match().map(|one| one.pattern().as_usize()) else {
                return;
            };
            // A text that is there again and again, as in a long list, is told once.
            if last == Some(text) {
                continue;
            }
            last = Some(text);
            let start = text.checked_sub(1).map_or(0, |before| self.ends[before]);
            found(&self.positions[start as usize..self.ends[text] as usize]);
        }
    }

    fn bytes(&self) -> usize {
        self.automaton.memory_usage() + size_of_val(&*self.ends) + size_of_val(&*self.positions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_match_is_passed_on() {
        let expressions = [
            (0, "^SELECT .* FROM t10"),
            (1, "^SELECT .* FROM t1"),
            (2, "^INSERT INTO x"),
            (3, "users|orders"),
            (4, ".*"),
            (5, "^DELETE"),
        ];
        let all = expressions
            .iter()
            .map(|(position, text)| (*position, Needed::by_linear(text)))
            .collect();
        let (filter, rest) = Filter::of(all);
        assert_eq!(rest, [4]);
        let found = |text: &str| {
            let mut all = Vec::new();
            filter.candidates(text.as_bytes(), &mut |positions| {
                all.extend_from_slice(positions)
            });
            all.sort_unstable();
            all.dedup();
            all
        };
        assert_eq!(found("select a from T10"), [0, 1]);
        assert_eq!(
            found("insert into x select * from users, orders, users"),
            [2, 3]
        );
        assert_eq!(found(" insert into x"), [0_u32; 0]);
        assert_eq!(found("DELETE FROM USERS"), [3, 5]);
    }
}
