//! A stage: statements that change nothing but what the proxy keeps of the session are answered at
//! once.

use crate::command::job::{Job, Told, What};
use crate::command::settings::{Meaning, is_certain, meaning, put_back};
use crate::command::trouble::Ended;
use crate::session::Session;
use sql::CommandCounter;
use sql::set::{Assignment, Scope, Setting, Value};
use std::ops::ControlFlow;
use wire::caps;

/// Characters in the name of a user variable.
const USER_VARIABLE_NAME_MAX: usize = 64;

impl Session {
    /// `SET @x = literal`, `SET autocommit = 0`, a SET of what is set already, COMMIT and ROLLBACK
    /// where there is no transaction. Only while no connection is held: what is there is asked there.
    pub(crate) async fn absorb(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let class = job.class;
        let short = class.sets
            || matches!(
                class.command,
                CommandCounter::Commit | CommandCounter::Rollback
            );
        if !short
            || !matches!(job.what, What::Query(_))
            || class.multi
            || !self.held.is_empty()
            || !job.is_as_written()
        {
            return Ok(ControlFlow::Continue(()));
        }
        // It may mean AND CHAIN or RELEASE, too.
        let more = || self.state.variable("completion_type").is_some();
        let ends = class.ends_transaction
            && !class.begins_transaction
            && !class.releases
            && class.leaves.is_empty()
            && !more();
        // With autocommit off, too: where nothing is held, no transaction has begun.
        if ends || class.sets && self.keep_set(job) {
            self.note_absorbed(class, job.text);
            self.say("").await?;
        } else if let Some((told, warned)) = self.take_at_its_word(job) {
            self.note_absorbed(class, job.text);
            self.say_changed((&told, warned)).await?;
        } else {
            return Ok(ControlFlow::Continue(()));
        }
        Ok(ControlFlow::Break(Told::default()))
    }

    /// Keeps what this SET sets, if no server has to hear of it.
    fn keep_set(&mut self, job: &Job<'_>) -> bool {
        let Ok(settings) = sql::set::parse_in(job.text, self.escapes()) else {
            return false;
        };
        // Who asked for session tracking is told of variables that are set, by the server.
        let tracked = caps::has(self.caps, caps::SESSION_TRACK);
        if tracked && self.state.tracks() {
            return false;
        }
        let mut state = self.state.clone();
        for setting in &settings {
            let user = match setting {
                Setting::Variable(Assignment {
                    scope: Scope::User,
                    value: Value::Literal(text),
                    name,
                }) => {
                    // MySQL refuses others.
                    is_certain(text) && name.len() <= USER_VARIABLE_NAME_MAX && !name.ends_with(' ')
                }
                _ => false,
            };
            if tracked && !user {
                return false;
            }
            if matches!(setting, Setting::Role(_)) {
                // What ALL and DEFAULT mean may have changed.
                return false;
            }
            if put_back(setting).is_some_and(|name| self.begins_otherwise(job, name)) {
                // Nothing was set, and the connections of this session have more than the defaults.
                return false;
            }
            match meaning(setting, &self.state) {
                // No transaction is open that it could commit.
                Meaning::Autocommit(Some(on)) => state.autocommit = on,
                Meaning::Travels(change) => {
                    let before = state.clone();
                    if !change(&mut state) || !user && state != before {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        self.state = state;
        true
    }
}
