//! What a replica has of its source: all that was committed up to a moment that is not long ago.

use super::Server;
use rt::Instant;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// How a server follows another one.
#[derive(Default)]
pub(super) struct Following {
    source: RefCell<Option<Rc<Server>>>,
    /// Longest time that the server is behind its source.
    lag: Cell<Duration>,
    /// Whether the server is one for reads only.
    only_reads: Cell<bool>,
    /// When each line of the log was committed.
    committed: RefCell<Vec<Instant>>,
}

impl Server {
    /// From now on it has what `source` has, later. `only_reads`: there is nothing else for it to
    /// do.
    pub(crate) fn follow(&self, source: &Rc<Self>, lag: Duration, only_reads: bool) {
        self.following.only_reads.set(only_reads);
        *self.following.source.borrow_mut() = Some(source.clone());
        self.following.lag.set(lag);
        self.ground.borrow_mut().copy = Some(Vec::new());
    }

    /// Notes that what is in the log by now was committed by now.
    pub(super) fn date(&self) {
        let lines = self.ground.borrow().log.len();
        self.following
            .committed
            .borrow_mut()
            .resize(lines, self.rt.now());
    }

    /// Reads on in what the source has written, as far as the server has to or farther.
    pub(super) fn catch_up(&self) {
        let source = self.following.source.borrow();
        let Some(source) = &*source else { return };
        let lag = u64::try_from(self.following.lag.get().as_micros()).unwrap_or(u64::MAX);
        let behind = {
            let mut chance = self.chance.borrow_mut();
            Duration::from_micros(if chance.percent(60) {
                lag
            } else {
                chance.below(lag + 1)
            })
        };
        let now = self.rt.now();
        let has = source
            .following
            .committed
            .borrow()
            .partition_point(|at| *at + behind <= now);
        let mut ground = self.ground.borrow_mut();
        if let Some(copy) = &mut ground.copy {
            copy.extend(
                source
                    .ground
                    .borrow()
                    .log
                    .iter()
                    .take(has)
                    .skip(copy.len())
                    .cloned(),
            );
        }
    }

    /// Where the proxy tells reads by what they are, nothing that locks, writes, or begins a
    /// transaction that may write comes here. `only_reads`: in one that said that it does not; what
    /// ends it by itself does not come either.
    pub(super) fn must_not_hear(&self, text: &str, only_reads: bool) -> bool {
        const NEVER: [&str; 5] = ["BEGIN", "XA ", "CALL ", "CREATE TEMPORARY", "LOCK TABLES"];
        const ALONE: [&str; 3] = ["INSERT ", "SAVEPOINT ", "LOAD DATA"];
        let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
        let writes = begins(&NEVER) || text.contains(" GET_LOCK(");
        self.following.only_reads.get()
            && (writes || !only_reads && (begins(&ALONE) || text.ends_with("FOR UPDATE")))
    }
}
