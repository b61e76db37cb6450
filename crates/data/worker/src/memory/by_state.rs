//! What servers have made of a text in sessions that had set the same: a bounded memory of a core,
//! by the text and by all that its meaning depends on.

use crate::session::Session;
use crate::session::lexing::Reading;
use crate::statement::Job;
use backend::State;
use hashbrown::HashMap;
use rt::Instant;
use std::rc::Rc;
use wire::caps::Caps;

/// Bytes of a text that is remembered.
pub(super) const TEXT_LEN_MAX: usize = 2 << 10;
/// Bytes of a state that is remembered.
pub(super) const STATE_LEN_MAX: usize = 3 << 10;

/// Result of a text, and the session in which it was said.
struct Said<T> {
    hostgroup: u32,
    user: Rc<str>,
    caps: Caps,
    state: State,
    reading: Reading,
    until: Option<Instant>,
    what: T,
}

/// Things of one kind that are remembered so, at most `MAX` of them.
pub(crate) struct ByState<T, const MAX: usize> {
    texts: HashMap<Box<[u8]>, Vec<Said<T>>, foldhash::fast::RandomState>,
    count: usize,
    /// [`backend::Pools::upgrades`] when the first was remembered.
    upgrades: u64,
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

    /// Remembers what came of a statement. `before`: what was set when it was said, and how texts
    /// were read.
    pub(super) fn add(
        &mut self,
        session: &Session,
        job: &Job<'_>,
        before: (&State, Reading),
        until: Option<Instant>,
        what: T,
    ) {
        if self.count >= MAX {
            self.forget();
        }
        let (state, reading) = before;
        let said = Said {
            hostgroup: job.plan.hostgroup(),
            user: session.user_name.clone(),
            caps: session.caps,
            state: state.without_schema_and_user(),
            reading,
            until,
            what,
        };
        let all = self.texts.entry_ref(job.text).or_default();
        let same = |one: &Said<T>| {
            one.is_said_by(said.hostgroup, &said.user, said.caps)
                && one.reading == said.reading
                && one.state.is_set_alike(&said.state)
        };
        match all.iter_mut().find(|one| same(one)) {
            Some(one) => *one = said,
            None => {
                all.push(said);
                self.count += 1;
            }
        }
    }

    /// Returns what came of this statement before, in a session like this one. A server that has
    /// greeted with another version since has all forgotten.
    pub(super) fn find(&mut self, session: &Session, job: &Job<'_>) -> Option<&T> {
        let upgrades = session.core.pools.upgrades();
        if self.upgrades != upgrades {
            self.forget();
            self.upgrades = upgrades;
        }
        let now = session.core.rt.now();
        let hostgroup = job.plan.hostgroup();
        let found = self.texts.get(job.text)?.iter().find(|one| {
            one.is_said_by(hostgroup, &session.user_name, session.caps)
                && one.reading == session.reading
                && one.until.is_none_or(|until| now < until)
                && (one.state.is_set_alike(&session.state) || any_state_will_do())
        })?;
        Some(&found.what)
    }
}

impl<T> Said<T> {
    fn is_said_by(&self, hostgroup: u32, user: &str, caps: Caps) -> bool {
        self.hostgroup == hostgroup && *self.user == *user && self.caps == caps
    }
}

/// A planted bug of the simulator's tests.
fn any_state_will_do() -> bool {
    #[cfg(feature = "planted")]
    return backend::planted::TAKE_ANY_STATE.get();
    #[cfg(not(feature = "planted"))]
    false
}
