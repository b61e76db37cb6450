//! Statements that came before with other values: what they are, and their digests, read once. An
//! application has a few hundred of them and sends each thousands of times.

use crate::known::decisions::Judged;
use hashbrown::{DefaultHashBuilder, HashTable};
use sql::{DigestOptions, Lexing, Skeleton, write_skeleton};
use std::hash::BuildHasher;
use std::rc::Rc;

/// Statements that are remembered at most. When there are more, all are forgotten.
const KNOWN_MAX: usize = 2_000;
/// Bytes of their skeletons and digests, likewise.
const BYTES_MAX: usize = 1 << 20;
/// A statement is remembered when it comes for the second time: of so many the first is known.
const SEEN: usize = 1_024;
/// Statements that are found by how they begin,
const GUESSES: usize = 256;
/// which is so many bytes.
const BEGINNING: usize = 32;

/// Where a text that begins so is guessed.
fn place_of_guess(text: &[u8]) -> usize {
    let mut short = [0; BEGINNING];
    let begins: &[u8; BEGINNING] = text.first_chunk().unwrap_or_else(|| {
        short[..text.len()].copy_from_slice(text);
        &short
    });
    let (words, _) = begins.as_chunks::<8>();
    let mixed = words.iter().fold(0u64, |mixed, word| {
        (mixed ^ u64::from_le_bytes(*word))
            .wrapping_mul(0xFF51_AFD7_ED55_8CCD)
            .rotate_left(29)
    });
    (mixed >> 40) as usize % GUESSES
}

/// A statement, whatever its values.
#[derive(Debug)]
pub(crate) struct Known {
    hash: u64,
    lexing: Lexing,
    skeleton: Skeleton,
    pub(crate) judged: Judged,
}

/// Statements that this core has read, under one set of options for digests.
#[derive(Debug)]
pub(crate) struct Skeletons {
    known: HashTable<Rc<Known>>,
    /// Seeded: texts come from strangers.
    hasher: DefaultHashBuilder,
    bytes: usize,
    /// Low bits of hashes, by their high bits.
    seen: Box<[u32]>,
    /// The skeleton of the statement that is looked for.
    skeleton: Vec<u8>,
    /// By how a text begins, what it was the last time.
    guesses: Box<[Option<Rc<Known>>]>,
}

impl Default for Skeletons {
    fn default() -> Self {
        Self {
            known: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            bytes: 0,
            seen: vec![0; SEEN].into_boxed_slice(),
            skeleton: Vec::new(),
            guesses: vec![None; GUESSES].into_boxed_slice(),
        }
    }
}

impl Skeletons {
    /// Returns what is known of a text that is read so. `None` for one that is to be read.
    pub(crate) fn find(
        &mut self,
        text: &[u8],
        lexing: Lexing,
        options: &DigestOptions,
    ) -> Option<Rc<Known>> {
        let place = place_of_guess(text);
        if let Some(known) = &self.guesses[place]
            && known.lexing == lexing
            && known.skeleton.fits(text, lexing)
        {
            return Some(known.clone());
        }
        let found = self.look_up(text, lexing, options);
        if let Some(known) = &found {
            self.guesses[place] = Some(known.clone());
        }
        found
    }

    /// [`Skeletons::find`], of a text that is not like the last one that began so.
    fn look_up(
        &mut self,
        text: &[u8],
        lexing: Lexing,
        options: &DigestOptions,
    ) -> Option<Rc<Known>> {
        self.skeleton.clear();
        if !write_skeleton(text, lexing, &mut self.skeleton) {
            return None;
        }
        let hash = self.hasher.hash_one(self.skeleton.as_slice());
        let is_it = |known: &Rc<Known>| {
            known.hash == hash
                && known.lexing == lexing
                && *known.skeleton.bytes() == *self.skeleton
        };
        if let Some(known) = self.known.find(hash, is_it) {
            return Some(known.clone());
        }
        self.remember(hash, lexing, options)
    }

    #[cold]
    fn remember(
        &mut self,
        hash: u64,
        lexing: Lexing,
        options: &DigestOptions,
    ) -> Option<Rc<Known>> {
        let [low, high] = [hash as u32, (hash >> 32) as u32];
        let seen = &mut self.seen[high as usize % SEEN];
        if *seen != low {
            *seen = low;
            return None;
        }
        let class = lexing.class(&self.skeleton);
        let mut digest = Vec::new();
        let hash_of_digest = sql::digest(&self.skeleton, options, &mut digest);
        let known = Rc::new(Known {
            hash,
            lexing,
            skeleton: Skeleton::of(&self.skeleton),
            judged: Judged::new(class, (hash_of_digest, digest.into_boxed_slice()))?,
        });
        if self.known.len() >= KNOWN_MAX || self.bytes >= BYTES_MAX {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += known.skeleton.bytes().len() + known.judged.digest.1.len();
        self.known
            .insert_unique(hash, known.clone(), |known| known.hash);
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_known_when_it_comes_again_with_other_values() {
        let (mut all, options) = (Skeletons::default(), DigestOptions::default());
        let mut find = |text: &str, lexing| all.find(text.as_bytes(), lexing, &options);
        assert!(find("SELECT a FROM t WHERE b = 1", Lexing::Escapes).is_none());
        let known = find("SELECT a FROM t WHERE b = 22", Lexing::Escapes).unwrap();
        assert!(known.judged.class.plain_read);
        assert_eq!(&*known.judged.digest.1, b"SELECT a FROM t WHERE b = ?");
        assert!(Rc::ptr_eq(
            &known,
            &find("SELECT a FROM t WHERE b = 3", Lexing::Escapes).unwrap()
        ));
        // Read otherwise it is another.
        assert!(
            find("SELECT a FROM t WHERE b = 3", Lexing::NoEscapes)
                .is_none_or(|other| { !Rc::ptr_eq(&known, &other) })
        );
        for _ in 0..3 {
            assert!(find("SELECT @a", Lexing::Escapes).is_none());
            assert!(find("USE x", Lexing::Escapes).is_none());
        }
    }

    #[test]
    fn their_number_and_bytes_are_bounded() {
        let (mut all, options) = (Skeletons::default(), DigestOptions::default());
        for n in 0..3 * KNOWN_MAX {
            let text = format!("SELECT a{n} FROM t{}", "x".repeat(n % 900));
            for _ in 0..2 {
                all.find(text.as_bytes(), Lexing::Escapes, &options);
            }
            assert!(all.known.len() <= KNOWN_MAX && all.bytes < BYTES_MAX + 4096);
        }
        assert!(!all.known.is_empty());
    }
}
