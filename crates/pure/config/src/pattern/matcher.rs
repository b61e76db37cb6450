//! Whether an expression matches, not where: one automaton, made state by state as texts ask for
//! it.
//!
//! The general engine of the `regex` crate compiles an expression twice, forwards and backwards, to
//! find where a match begins, and chooses between four ways to search. To say yes or no takes a
//! third of that time and memory.

use super::literals::Needed;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};
use std::sync::Arc;

/// An expression that is compiled is not larger.
const COMPILED_MAX: usize = 10 << 20;
/// States that one search makes are forgotten beyond these bytes, and made again.
const STATES_MAX: usize = 2 << 20;

/// A compiled expression. A clone shares it, and has states of its own.
pub(super) struct Matcher {
    dfa: Arc<DFA>,
    states: Pool<
        Cache,
        Box<dyn Fn() -> Cache + Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>,
    >,
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Matcher")
    }
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        Self::of(self.dfa.clone())
    }
}

/// Compiler for one expression after the other: its memory is used again.
pub(crate) struct Workbench(thompson::Compiler);

impl Default for Workbench {
    fn default() -> Self {
        let config = thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(COMPILED_MAX))
            .which_captures(WhichCaptures::None);
        let mut compiler = thompson::Compiler::new();
        compiler.configure(config);
        Self(compiler)
    }
}

impl Matcher {
    /// Compiles `text`, or says in plain words what is wrong with it; and what a text needs to
    /// match.
    pub(super) fn compile(
        bench: &mut Workbench,
        text: &str,
        caseless: bool,
    ) -> Result<(Self, Needed), String> {
        let notation = syntax::Config::new()
            .unicode(false)
            .utf8(false)
            .case_insensitive(caseless);
        let parsed =
            syntax::parse_with(text, &notation).map_err(|error| super::plain_words(&error))?;
        let too_large = "is too large when it is compiled";
        let nfa = bench.0.build_from_hir(&parsed).map_err(|_| too_large)?;
        let config = DFA::config()
            .match_kind(MatchKind::LeftmostFirst)
            .cache_capacity(STATES_MAX)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(3))
            .minimum_bytes_per_state(Some(10));
        let dfa = DFA::builder()
            .configure(config)
            .build_from_nfa(nfa)
            .map_err(|_| too_large)?;
        Ok((Self::of(Arc::new(dfa)), Needed::of(&parsed)))
    }

    fn of(dfa: Arc<DFA>) -> Self {
        let of = dfa.clone();
        Self {
            dfa,
            states: Pool::new(Box::new(move || of.create_cache())),
        }
    }

    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        let input = Input::new(text).anchored(Anchored::No).earliest(true);
        match self.dfa.try_search_fwd(&mut self.states.get(), &input) {
            Ok(found) => found.is_some(),
            // It makes more states than it uses: this way needs none.
            Err(_) => self.slowly(self.dfa.get_nfa(), input),
        }
    }

    #[cold]
    fn slowly(&self, nfa: &NFA, input: Input<'_>) -> bool {
        PikeVM::new_from_nfa(nfa.clone()).is_ok_and(|vm| vm.is_match(&mut vm.create_cache(), input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_too_many_states_is_still_answered() {
        // Which of the last 200 letters were an a: more states than can be kept.
        let (matcher, _) =
            Matcher::compile(&mut Workbench::default(), "a[ab]{200}c", false).unwrap();
        let mut chance = 1_u64;
        let mut text: Vec<u8> = std::iter::repeat_with(|| {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            b"ab"[(chance >> 40) as usize % 2]
        })
        .take(200_000)
        .collect();
        assert!(!matcher.is_match(&text));
        let end = text.len() - 201;
        text[end] = b'a';
        text.push(b'c');
        assert!(matcher.is_match(&text));
        assert!(
            matcher.slowly(matcher.dfa.get_nfa(), Input::new(&text))
                && !matcher.slowly(matcher.dfa.get_nfa(), Input::new("abc"))
        );
    }

    #[test]
    fn what_would_be_too_large_is_refused() {
        let mut bench = Workbench::default();
        assert!(
            Matcher::compile(&mut bench, "((((a{100}){100}){100}){100})", false)
                .unwrap_err()
                .contains("too large")
        );
        let (next, _) = Matcher::compile(&mut bench, "^ab", false).unwrap();
        assert!(
            next.is_match(b"abc") && !next.is_match(b"cab"),
            "what was refused leaves nothing behind"
        );
    }
}
