//! Results of a text are found again in a session that has set the same.

use crate::command::job::Job;
use crate::known::by_state::{ByState, Said};
use crate::known::reading::Reading;
use crate::session::Session;
use backend::State;
use rt::Instant;

impl<T, const MAX: usize> ByState<T, MAX> {
    /// Remembers what came of a statement. `before`: what was set when it was said, and how texts
    /// were read.
    pub(crate) fn add(
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
    pub(crate) fn find(&mut self, session: &Session, job: &Job<'_>) -> Option<&T> {
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

/// A planted bug of the simulator's tests.
fn any_state_will_do() -> bool {
    #[cfg(debug_assertions)]
    return backend::planted::TAKE_ANY_STATE.get();
    #[cfg(not(debug_assertions))]
    false
}
