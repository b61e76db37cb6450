//! Changes of a text that may repeat parts of it, which are then what a partition is told of them.

use shards::{Cut, Leg, cut};
use std::ops::Range;

/// A piece of a text, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Which piece.
    pub at: Range<usize>,
    /// Text that takes the place of the piece.
    pub with: Vec<Piece>,
}

/// A part of what is put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// This.
    Text(String),
    /// Copy of the text in this range.
    Copy(Range<usize>),
}

impl Edit {
    /// As a cut of the text that a leg gets.
    fn of(&self, leg: &Leg, text: &[u8]) -> Cut {
        let mut with = Vec::new();
        for piece in &self.with {
            match piece {
                Piece::Text(text) => with.extend_from_slice(text.as_bytes()),
                Piece::Copy(at) => with.extend(copied(leg, text, at)),
            }
        }
        Cut {
            at: self.at.clone(),
            with,
        }
    }
}

/// A part of a text as a leg has it.
fn copied(leg: &Leg, text: &[u8], at: &Range<usize>) -> Vec<u8> {
    // An alias that is put behind it is no part of it.
    let inside =
        |cut: &&Cut| at.start <= cut.at.start && cut.at.end <= at.end && cut.at.start < at.end;
    let moved = |cut: &Cut| Cut {
        at: cut.at.start - at.start..cut.at.end - at.start,
        with: cut.with.clone(),
    };
    let cuts: Vec<_> = leg.cuts.iter().filter(inside).map(moved).collect();
    cut(text.get(at.clone()).unwrap_or_default(), &cuts)
}

/// The text that a leg gets.
pub(crate) fn edited(leg: &Leg, text: &[u8], edits: &[Edit]) -> Vec<u8> {
    let covered = |one: &Cut| {
        edits.iter().any(|edit| {
            edit.at.start <= one.at.start && one.at.end <= edit.at.end && !edit.at.is_empty()
        })
    };
    let mut cuts: Vec<Cut> = leg
        .cuts
        .iter()
        .filter(|one| !covered(one))
        .cloned()
        .collect();
    cuts.extend(edits.iter().map(|edit| edit.of(leg, text)));
    cut(text, &cuts)
}
