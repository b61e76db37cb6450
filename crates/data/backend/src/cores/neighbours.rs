//! The other cores, as the pools of this one reach them.

use crate::cores::word::{Met, Word};
use rt::Rt;
use rt::local::Notify;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How often the first in line looks again by itself: permits of other cores ring no bell here.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// So much longer the first in another core's line must have waited than ours before we leave a
/// server's room to it. Less would have connections closed here and opened there all the time.
pub(crate) const GIVE_WAY: Duration = Duration::from_millis(50);
/// Time that the first in another core's line must have waited longer than ours, where the
/// connection itself can go there: nothing is closed and opened.
pub(crate) const LEND_WAY: Duration = Duration::from_millis(5);

/// The other cores, as the pools of this one reach them. By default there are none.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// Says a word to a core; whether it was left there.
    pub(crate) speak: RefCell<Option<Speak>>,
    pub(crate) others: RefCell<Vec<u32>>,
    last: Cell<u64>,
    /// Who waits for answers.
    asked: RefCell<Vec<Rc<Asked>>>,
}

/// Says a word to a core of this index, and whether that was possible.
pub type Speak = Box<dyn Fn(u32, Word) -> Result<(), ()>>;

impl Neighbours {
    /// How many cores there are, ours included.
    pub(crate) fn cores(&self) -> usize {
        self.others.borrow().len() + 1
    }

    /// Their indexes.
    pub(crate) fn others(&self) -> Vec<u32> {
        self.others.borrow().clone()
    }

    pub(crate) fn say(&self, to: u32, word: Word) -> Result<(), ()> {
        self.speak
            .borrow()
            .as_ref()
            .map_or(Err(()), |speak| speak(to, word))
    }

    /// There are other cores, `others` by their indexes, and this is how they are spoken to.
    pub(crate) fn meet(&self, others: Vec<u32>, speak: Speak) {
        self.others.replace(others);
        self.speak.replace(Some(speak));
    }

    /// Tells all others what a server can do.
    pub(crate) fn tell_of(&self, host: &Arc<str>, port: u16, bulk: bool) {
        for core in self.others.borrow().iter() {
            // Who cannot be told meets the server in the end.
            let _full = self.say(
                *core,
                Word::Met(Met {
                    host: host.clone(),
                    port,
                    bulk,
                }),
            );
        }
    }

    /// Somebody is about to ask the other cores.
    pub(crate) fn begin_asking(&self) -> Asking<'_> {
        let number = self.last.get() + 1;
        self.last.set(number);
        let asked = Rc::new(Asked {
            number,
            ..Asked::default()
        });
        self.asked.borrow_mut().push(asked.clone());
        Asking {
            neighbours: self,
            asked,
        }
    }

    /// One of those that were asked has answered.
    pub(crate) fn answered(&self, number: u64) {
        let asked = self
            .asked
            .borrow()
            .iter()
            .find(|asked| asked.number == number)
            .cloned();
        if let Some(asked) = asked {
            asked.answer();
        }
    }

    pub(crate) fn say_to_all(&self, word: impl Fn() -> Word) {
        for core in self.others() {
            // Who cannot be told looks by itself in a moment.
            let _full = self.say(core, word());
        }
    }
}

/// Somebody who waits for answers.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    pub(crate) unanswered: Cell<usize>,
    pub(crate) bell: Notify,
}

impl Asked {
    /// One more is to answer.
    pub(crate) fn is_expected(&self) {
        self.unanswered.set(self.unanswered.get() + 1);
    }

    /// One has.
    pub(crate) fn answer(&self) {
        self.unanswered.set(self.unanswered.get().saturating_sub(1));
        self.bell.notify_one();
    }

    /// Returns when all have, or it takes too long.
    pub(crate) async fn all_answered(&self, rt: &Rt, within: Duration) {
        let until = rt.now() + within;
        while self.unanswered.get() > 0 && rt.now() < until {
            let _late = rt.timeout(until - rt.now(), self.bell.wait()).await;
        }
    }
}

/// Who asks is forgotten when it does not wait any more.
pub(crate) struct Asking<'a> {
    neighbours: &'a Neighbours,
    pub(crate) asked: Rc<Asked>,
}

impl Asking<'_> {
    /// Tells all other cores; each is to answer.
    pub(crate) fn tell_all(&self, word: impl Fn(u64) -> Word) {
        let neighbours = self.neighbours;
        for core in neighbours.others.borrow().iter() {
            if neighbours.say(*core, word(self.asked.number)).is_ok() {
                self.asked.is_expected();
            }
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let number = self.asked.number;
        self.neighbours
            .asked
            .borrow_mut()
            .retain(|asked| asked.number != number);
    }
}
