//! Results of a text in sessions that had set the same: a bounded memory of a core, by the text and by all
//! that its meaning depends on.

use crate::known::reading::Reading;
use backend::{Names, Shown, State};
use hashbrown::HashMap;
use rt::Instant;
use std::rc::Rc;
use wire::caps::Caps;
use wire::rows::Rows;

/// Bytes of a text that is remembered.
pub(crate) const TEXT_LEN_MAX: usize = 2 << 10;
/// Bytes of a state that is remembered.
pub(crate) const STATE_LEN_MAX: usize = 3 << 10;

/// Result of a text, and the session in which it was said.
pub(crate) struct Said<T> {
    pub(crate) hostgroup: u32,
    pub(crate) user: Rc<str>,
    pub(crate) caps: Caps,
    pub(crate) state: State,
    pub(crate) reading: Reading,
    pub(crate) until: Option<Instant>,
    pub(crate) what: T,
}

/// Things of one kind that are remembered so, at most `MAX` of them.
pub(crate) struct ByState<T, const MAX: usize> {
    pub(crate) texts: HashMap<Box<[u8]>, Vec<Said<T>>, foldhash::fast::RandomState>,
    pub(crate) count: usize,
    /// [`backend::Pools::upgrades`] when the first was remembered.
    pub(crate) upgrades: u64,
}

impl<T, const MAX: usize> Default for ByState<T, MAX> {
    fn default() -> Self {
        Self {
            texts: HashMap::default(),
            count: 0,
            upgrades: 0,
        }
    }
}

impl<T, const MAX: usize> std::fmt::Debug for ByState<T, MAX> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ByState({} of {MAX})", self.count)
    }
}

impl<T, const MAX: usize> ByState<T, MAX> {
    /// Nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.texts.clear();
        self.count = 0;
    }
}

impl<T> Said<T> {
    pub(crate) fn is_said_by(&self, hostgroup: u32, user: &str, caps: Caps) -> bool {
        self.hostgroup == hostgroup && *self.user == *user && self.caps == caps
    }
}

/// More SETs, or longer ones, are not remembered: 512 of at most 2 KiB, each with two states of at
/// most a few KiB, are 4 MB a core at the very most.
const SETS_MAX: usize = 512;

/// State and warnings that a server has made of a SET.
pub(crate) struct Known {
    pub(crate) after: State,
    pub(crate) reading_after: Reading,
    /// Session changes that its client was told.
    pub(crate) told: Box<[u8]>,
    pub(crate) warned: u16,
    pub(crate) warnings: Option<Kept>,
}

/// SETs of a core under one configuration, by their text.
pub(crate) type Accepted = ByState<Known, SETS_MAX>;

/// More answers are not remembered: 128 of at most 4 KiB with a text of 2 and a state of 3 are some
/// 1.2 MB a core at the very most.
const ANSWERS_MAX: usize = 128;

/// Answers of a core under one configuration, by the text of the question.
pub(crate) type Values = ByState<Rc<Rows>, ANSWERS_MAX>;

/// Warnings that the server showed.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) shown: Shown,
    /// The character set that it is written in.
    pub(crate) names: Names,
    pub(crate) results: Option<Box<str>>,
    pub(crate) mariadb: bool,
}
