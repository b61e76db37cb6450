//! Statements that are prepared in SQL on one connection, by names of ours: whoever has the
//! connection next finds none of the names that a client has given.

use crate::session::prepared::{Known, Prepared};
use std::rc::Rc;

/// With this begin the names that we give on servers.
const PREFIX: &str = "millrace_";

/// The name of a slot on a server.
#[must_use]
pub fn slot_name(slot: u32) -> String {
    format!("{PREFIX}{slot}")
}

/// Whether this name, in lower case, could be one that we give on servers.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

#[derive(Debug)]
struct Slot {
    /// first <= number < first + slots that there ever were
    number: u32,
    /// None: the server has nothing by this name.
    statement: Option<Known>,
    /// The session that has executed it with user variables; 0 if none has.
    by: u64,
    prepared: As,
}

/// How what is in a slot was prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    Meant,
    /// For the session that has the connection only.
    Otherwise,
    /// For nobody: that session has given the connection back.
    Nothing,
}

impl Slot {
    /// Whether this session may execute it (0: without user variables): MySQL keeps to the types
    /// that another one's have had ([`crate::Bindings`]).
    fn is_for(&self, by: u64) -> bool {
        self.prepared != As::Nothing && (by == 0 || self.by == 0 || self.by == by)
    }
}

/// Longest unused first. A slot is used again without being emptied before: who prepares by a name
/// that there is gives up what had it.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Number of the first, which no client knows: it could say the name in ways that nobody here
    /// can read, such as in a programme on the server.
    first: u32,
    all: Vec<Slot>,
    /// The server has no room for more: the next statement takes the place of one that is there.
    enough: bool,
}

impl Slots {
    /// None yet. `random`: any number.
    pub(crate) fn new(random: u64) -> Self {
        // No slot has the number 0, and none will overflow.
        Self {
            first: (random as u32 >> 1).max(1),
            all: Vec::new(),
            enough: false,
        }
    }

    /// As the ones before, where the server may still have statements by their names: who prepares
    /// by a name that is there gives up what had it.
    pub(crate) fn beginning_at(first: u32) -> Self {
        Self {
            first,
            all: Vec::new(),
            enough: false,
        }
    }

    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    pub(crate) fn has(&self, statement: &Prepared, by: u64) -> bool {
        self.position(statement)
            .is_some_and(|at| self.all[at].is_for(by))
    }

    fn position(&self, statement: &Prepared) -> Option<usize> {
        #[cfg(debug_assertions)]
        if crate::planted::ANY_SLOT.get() {
            return self.all.iter().position(|slot| slot.statement.is_some());
        }
        self.all.iter().position(|slot| {
            slot.statement
                .as_ref()
                .is_some_and(|known| known.number == statement.number)
        })
    }

    /// Where a statement is; it becomes the latest used.
    pub(crate) fn number(&mut self, statement: &Prepared, by: u64) -> Option<u32> {
        let at = self
            .position(statement)
            .filter(|at| self.all[*at].is_for(by))?;
        self.all[at..].rotate_left(1);
        let slot = self.all.last_mut()?;
        slot.by = by.max(slot.by);
        Some(slot.number)
    }

    /// This session is about to execute it with user variables.
    pub(crate) fn bind(&mut self, number: u32, by: u64) {
        if let Some(slot) = self.all.iter_mut().find(|slot| slot.number == number) {
            slot.by = by;
        }
    }

    /// Notes that what is in the slot of this number was prepared otherwise than its session has
    /// meant it.
    pub(crate) fn is_meant_otherwise(&mut self, number: u32) {
        if let Some(slot) = self.all.iter_mut().find(|slot| slot.number == number) {
            slot.prepared = As::Otherwise;
        }
    }

    /// All of that is nobody's any more.
    pub(crate) fn give_up_otherwise(&mut self) {
        for slot in self
            .all
            .iter_mut()
            .filter(|slot| slot.prepared == As::Otherwise)
        {
            slot.prepared = As::Nothing;
        }
    }

    /// An empty slot for a statement: its own, one that nobody needs, a new one while there are
    /// less than `max`, or that of what was not used for longest. True if it had something before.
    pub(crate) fn take(&mut self, statement: &Prepared, max: usize) -> (u32, bool) {
        let free = |slot: &Slot| {
            slot.prepared == As::Nothing || slot.statement.as_ref().is_none_or(Known::is_forgotten)
        };
        let at = match self
            .position(statement)
            .or_else(|| self.all.iter().position(free))
        {
            Some(at) => at,
            None if self.all.len() < max.max(1) && !(self.enough && self.len() > 0) => {
                let number = self
                    .first
                    .saturating_add(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
                self.all.insert(
                    0,
                    Slot {
                        number,
                        statement: None,
                        by: 0,
                        prepared: As::Meant,
                    },
                );
                0
            }
            None => self
                .all
                .iter()
                .position(|slot| slot.statement.is_some())
                .unwrap_or(0),
        };
        self.enough = false;
        let was = self.all[at].statement.take().is_some();
        (self.all[at].number, was)
    }

    pub(crate) fn fill(&mut self, number: u32, statement: &Rc<Prepared>) {
        let Some(at) = self.all.iter().position(|slot| slot.number == number) else {
            return;
        };
        (
            self.all[at].statement,
            self.all[at].by,
            self.all[at].prepared,
        ) = (Some(Known::new(statement)), 0, As::Meant);
        self.all[at..].rotate_left(1);
    }

    /// True if it had something.
    pub(crate) fn empty(&mut self, number: u32) -> bool {
        self.all
            .iter_mut()
            .find(|slot| slot.number == number)
            .is_some_and(|slot| slot.statement.take().is_some())
    }

    /// The server takes no more of them now.
    pub(crate) fn are_enough(&mut self) {
        self.enough = true;
    }

    /// Numbers of those with a statement.
    pub(crate) fn filled(&self) -> Vec<u32> {
        self.all
            .iter()
            .filter(|slot| slot.statement.is_some())
            .map(|slot| slot.number)
            .collect()
    }

    /// Slots with a statement.
    pub(crate) fn len(&self) -> usize {
        self.all
            .iter()
            .filter(|slot| slot.statement.is_some())
            .count()
    }

    /// The server has forgotten them all; how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        let n = self.len();
        self.all.clear();
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interest, State, Statements};

    fn put(slots: &mut Slots, statement: &Rc<Prepared>, max: usize) -> u32 {
        let (number, _) = slots.take(statement, max);
        slots.fill(number, statement);
        number
    }

    #[test]
    fn the_slot_of_what_was_not_used_for_longest_is_taken() {
        let all = Statements::default();
        let [a, b, c] = ["a", "b", "c"].map(|text| {
            all.intern(
                &"u".into(),
                &State::new("", 45),
                text.as_bytes(),
                crate::Remembered {
                    statements: 9,
                    bytes: 1 << 20,
                },
            )
        });
        let _interests = [&a, &b, &c].map(|statement| Interest::new(statement.clone()));
        let mut slots = Slots::new(0);
        assert_eq!((put(&mut slots, &a, 2), put(&mut slots, &b, 2)), (1, 2));
        assert_eq!(slots.number(&a, 0), Some(1));
        assert_eq!(put(&mut slots, &c, 2), 2, "b was used before a");
        assert_eq!(
            (slots.number(&b, 0), slots.number(&c, 0), slots.len()),
            (None, Some(2), 2)
        );
        assert_eq!((a.counts(), b.counts()), ((1, 1), (1, 0)));
        // What fails leaves nothing by its name, which is used next.
        let (number, was) = slots.take(&a, 2);
        assert_eq!((number, was, slots.len()), (1, true, 1));
        assert_eq!((put(&mut slots, &b, 2), slots.len()), (1, 2));
        assert_eq!(
            (slots.clear(), slots.has(&b, 0), b.counts()),
            (2, false, (1, 0))
        );
    }

    #[test]
    fn what_the_core_has_forgotten_gives_its_slot_first() {
        let all = Statements::default();
        let one = |text: &str| {
            all.intern(
                &"u".into(),
                &State::new("", 45),
                text.as_bytes(),
                crate::Remembered {
                    statements: 1,
                    bytes: 1 << 20,
                },
            )
        };
        let mut slots = Slots::new(0);
        let a = one("a");
        put(&mut slots, &a, 9);
        let b = one("b");
        assert_eq!(put(&mut slots, &b, 9), 1, "a is forgotten");
    }
}
