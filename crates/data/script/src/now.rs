//! Facts of the hook that runs, for the functions that it calls.

use crate::host::{Host, Server};
use crate::outcome::Outcome;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Bytes of the thread's stack that a hook may take before it is told. One stack of Lua's takes another 4 MiB at
/// most, when `string.format` calls it from within.
const STACK_TAKEN_MAX: usize = 1 << 20;

/// Depth of the thread's stack, beneath the place where a call of a script began.
#[derive(Default)]
pub(crate) struct Depth(Cell<usize>);

impl Depth {
    /// A call begins.
    pub(crate) fn begins(&self) {
        self.0.set(place_on_stack());
    }

    /// Whether so much is taken that nothing of the script is called from within any more. Lua counts its own
    /// stack, and that of each coroutine apart.
    pub(crate) fn is_reached(&self) -> bool {
        self.0.get().abs_diff(place_on_stack()) > STACK_TAKEN_MAX
    }
}

/// Where the thread's stack is now.
#[inline(never)]
fn place_on_stack() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// Facts that a hook which runs now may ask.
#[derive(Default)]
pub(crate) struct Now {
    pub(crate) host: RefCell<Option<Rc<dyn Host>>>,
    pub(crate) servers: RefCell<Option<Vec<Server>>>,
    pub(crate) outcome: RefCell<Option<Outcome>>,
    /// Number of the outcome: a script may keep what it looked at, and look again too late.
    pub(crate) serial: Cell<u32>,
    pub(crate) last_serial: Cell<u32>,
    pub(crate) until_us: Cell<u64>,
    /// How deep the turn has come.
    pub(crate) depth: Depth,
    /// Instructions that are left in this turn.
    pub(crate) steps: Cell<u64>,
}

impl Now {
    /// The session whose hook runs.
    pub(crate) fn host(&self) -> Option<Rc<dyn Host>> {
        self.host.borrow().clone()
    }

    /// Looks at the answer that the hook looks at; at an empty one without any.
    pub(crate) fn outcome<R>(&self, looks: impl FnOnce(&Outcome) -> R) -> R {
        match self.outcome.borrow().as_ref() {
            Some(outcome) => looks(outcome),
            None => looks(&Outcome::default()),
        }
    }

    /// Looks at one of several results, from 1; without a number at the answer as a whole.
    pub(crate) fn part<R: Default>(
        &self,
        part: Option<usize>,
        looks: impl FnOnce(&Outcome) -> R,
    ) -> R {
        let outcome = self.outcome.borrow();
        let part = outcome.as_ref().and_then(|one| part_of(one, part));
        part.map(looks).unwrap_or_default()
    }

    /// Whether the time of the hook that runs is over.
    pub(crate) fn is_over(&self) -> bool {
        let host = self.host.borrow();
        let is_late = |host: &Rc<dyn Host>| host.now_us() > self.until_us.get();
        host.as_ref()
            .is_some_and(|host| self.steps.get() == 0 || is_late(host))
    }

    /// A number of steps was done. Whether the time of the hook is over.
    pub(crate) fn looks_up(&self, steps: u32) -> bool {
        let left = self.steps.get().saturating_sub(u64::from(steps));
        self.steps.set(left);
        self.is_over()
    }
}

/// One of several results, from 1; without a number the answer as a whole.
pub(crate) fn part_of(outcome: &Outcome, part: Option<usize>) -> Option<&Outcome> {
    match part {
        None => Some(outcome),
        Some(part) => outcome.parts().get(part.checked_sub(1)?),
    }
}
