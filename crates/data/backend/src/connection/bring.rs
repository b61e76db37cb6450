//! A session's state comes onto a connection, by as few commands as can be.

use crate::connection::backend::{Backend, refusal};
use crate::failure::BackendFailed;
use crate::session::hold::Hold;
use crate::session::need::{self, Foreign, Need, Ways};
use crate::session::state::{Names, Sees, State};
use crate::session::variables::TRANSACTIONS;
use crate::session::want::Tracking;
use bridge::Counter;
use wire::response::Expect;

impl Backend {
    /// Returns what it takes until a statement of a session may run here: `remembered` as in
    /// [`crate::Want`].
    pub(crate) fn need(
        &self,
        want: &State,
        sees: Sees,
        remembered: Option<u64>,
        tracking: Tracking,
    ) -> Need {
        if self.lease.strays && want.schema.is_empty() && !self.state.schema.is_empty() {
            return self.need_astray(want, sees, remembered, tracking);
        }
        // What is held is the session's own.
        let free = self.holds.is_empty();
        #[cfg(debug_assertions)]
        let remembered = remembered.filter(|_| !crate::planted::TELL_OTHERS.get());
        let foreign = free
            && remembered.is_some_and(|session| {
                self.lasting.last_session != 0 && self.lasting.last_session != session
            });
        // Also where the statement sees none: with a BEGIN, or an error, its session keeps the
        // connection, and what is kept is taken for its own.
        let foreign = Foreign {
            statement: foreign,
            variables: free,
            strange: free && self.local.strange_variables,
        };
        let brings = self.brings_variables(want, sees);
        let tracking = self.tracking_for(want, tracking);
        let ways = self.ways_for(tracking);
        let need = need::whole_need(&self.state, want, brings, foreign, ways);
        let need = if need == Need::Another {
            self.need_as_made(want, brings, foreign, ways)
        } else {
            need
        };
        self.with_tracking(need, tracking)
    }

    /// Returns the need of a statement that means another schema, of a session that is in none.
    #[cold]
    fn need_astray(
        &self,
        want: &State,
        sees: Sees,
        remembered: Option<u64>,
        tracking: Tracking,
    ) -> Need {
        let want = State {
            schema: self.state.schema.clone(),
            ..want.clone()
        };
        self.need(&want, sees, remembered, tracking)
    }

    /// Returns the need of a statement where the server has no words for the session's character
    /// set, but has said what it makes of it.
    #[cold]
    fn need_as_made(
        &self,
        want: &State,
        brings_variables: bool,
        foreign: Foreign,
        ways: Ways,
    ) -> Need {
        let Names::Collation(id) = want.names else {
            return Need::Another;
        };
        let made = self.place.known.made_of.borrow();
        let Some((_, words)) = made.iter().find(|(of, _)| *of == id) else {
            return Need::Another;
        };
        let want = State {
            names: Names::Written(words.clone()),
            ..want.clone()
        };
        need::whole_need(&self.state, &want, brings_variables, foreign, ways)
    }

    /// Whether the session's user variables are to be brought.
    fn brings_variables(&self, want: &State, sees: Sees) -> bool {
        match sees {
            Sees::Nothing => false,
            Sees::InViews => self.state.user.is_some() && !self.state.same_user_variables(want),
            Sees::Variables => true,
        }
    }

    /// Whether all that [`Backend::sync`] would do is done.
    #[must_use]
    pub fn is_ready(
        &self,
        want: &State,
        sees: Sees,
        remembered: Option<u64>,
        tracking: Tracking,
    ) -> bool {
        self.has_all(want, remembered, tracking)
            || self.need(want, sees, remembered, tracking) == Need::Nothing
    }

    /// Whether [`Backend::need`] is [`Need::Nothing`] as most often: neither side has set a
    /// variable, and nothing is asked for that another session may have left.
    #[must_use]
    pub fn has_all(&self, want: &State, remembered: Option<u64>, tracking: Tracking) -> bool {
        (tracking == Tracking::Any || tracking == Tracking::On && self.tells_all())
            && remembered.is_none()
            && !self.local.strange_variables
            && self.state.is_bare_and_like(want)
    }

    /// Whether [`Backend::sync`] would reset it.
    #[must_use]
    pub fn needs_reset(
        &self,
        want: &State,
        sees: Sees,
        remembered: Option<u64>,
        tracking: Tracking,
    ) -> bool {
        !self.holds.is_empty()
            && !self.holds.carry_state()
            && self.need(want, sees, remembered, tracking) == Need::Reset
    }

    /// Whether [`Backend::sync`] would have to say a SET, or reset it.
    #[must_use]
    pub fn needs_sets(&self, want: &State, sees: Sees) -> bool {
        match self.need(want, sees, None, Tracking::Any) {
            Need::Steps { sets, .. } => !sets.is_empty(),
            need => need == Need::Reset,
        }
    }

    /// Whether there is no way to that state which leaves what the connection is held for.
    #[must_use]
    pub fn is_kept_from(
        &self,
        want: &State,
        sees: Sees,
        remembered: Option<u64>,
        tracking: Tracking,
    ) -> bool {
        self.holds.carry_state()
            && matches!(
                self.need(want, sees, remembered, tracking),
                Need::Reset | Need::Another
            )
    }

    /// Brings the session's state here, with its user variables if a statement may see them, and
    /// without what the server remembers of others if the statement asks for that.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] with the server's own words when it refuses; what was not reached
    /// stays as it was. [`BackendFailed::Unfit`] when there is no way, [`BackendFailed::Kept`] when
    /// there is none that leaves it what it is held for.
    pub async fn sync(
        &mut self,
        want: &State,
        sees: Sees,
        remembered: Option<u64>,
        tracking: Tracking,
    ) -> Result<(), BackendFailed> {
        'until_ready: loop {
            match self.need(want, sees, remembered, tracking) {
                Need::Nothing => return Ok(()),
                // A reset, or another connection, would be without what it is held for.
                Need::Reset | Need::Another if self.holds.carry_state() => {
                    return Err(BackendFailed::Kept);
                }
                Need::Reset => self.reset().await?,
                Need::Another => return Err(BackendFailed::Unfit),
                Need::Steps { sets, schema } => {
                    if self.tracking_for(want, tracking) == Tracking::Off && self.tells_all() {
                        // What the session sets of it by itself comes after what we take back.
                        self.track(Tracking::Off).await?;
                        continue;
                    }
                    let before = self.state.clone();
                    // Of others, who have left it to the pool.
                    let undoes = self.holds.is_empty()
                        && before
                            .variables()
                            .any(|(name, _)| want.variable(name).is_none());
                    let brings_variables = self.brings_variables(want, sees);
                    #[cfg(debug_assertions)]
                    let sets = if crate::planted::FORGET_SETS.get() {
                        Vec::new()
                    } else {
                        sets
                    };
                    for set in &sets {
                        self.tally.up(Counter::ComBackendSetNames);
                        let mut payload = Vec::with_capacity(set.len() + 1);
                        wire::command::write_query(&mut payload, set.as_bytes(), self.hello.caps);
                        // A failure in the middle leaves who knows what: said as a state that
                        // equals nothing.
                        self.state.names = Names::Unknown;
                        self.local.plain_quotes = false;
                        let response = self.command(&payload, Expect::Query).await?;
                        if let Err(refused) = refusal(&response) {
                            // The sets before it are done, and nobody keeps count of them: not for
                            // anybody else.
                            self.holds.add(Hold::UnknownState);
                            if undoes {
                                // Perhaps the server knows a variable of theirs no more. After a
                                // reset there are this session's alone.
                                self.reset().await?;
                                continue 'until_ready;
                            }
                            return Err(refused);
                        }
                        self.holds.status(response.status());
                    }
                    let says = |state: &State| state.variable(TRANSACTIONS).is_some();
                    // What a session has said of it, or has taken back, is not ours any more.
                    self.lasting.told_of_transactions &= !says(&before) && !says(want);
                    self.gtids_are_said(&before, want);
                    let user = if brings_variables {
                        want.user.clone()
                    } else {
                        before.user
                    };
                    self.state = State {
                        schema: before.schema,
                        user,
                        ..want.clone()
                    };
                    if schema {
                        self.init_db(&want.schema).await?;
                    }
                    if matches!(
                        self.tracking_for(want, tracking),
                        Tracking::On | Tracking::Calls
                    ) {
                        self.track(tracking).await?;
                        if self.tracking_for(want, tracking) == Tracking::Off {
                            // The server has just said that it tells less of its own than the
                            // session wants to hear.
                            continue;
                        }
                    }
                    return Ok(());
                }
            }
        }
    }
}
