//! Values of system variables that a server has told a session that has set the same: drivers and
//! frameworks ask for them at each login. Who asks again in the same words has the same answer, for
//! as long as an operator's SET GLOBAL may go unseen.
//!
//! docs/decisions/0028-a-set-is-taken-at-its-word.md

use crate::command::job::{Job, Told, What};
use crate::command::trouble::Ended;
use crate::known::by_state::{STATE_LEN_MAX, TEXT_LEN_MAX};
use crate::known::reading::Reading;
use crate::session::Session;
use backend::Backend;
use sql::{CommandCounter, Reads};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;
use wire::response::{Outcome, Response};
use wire::status;

/// An operator of a server may change what its sessions begin with (SET GLOBAL).
const LASTS: Duration = Duration::from_secs(60);

impl Session {
    /// A stage: answers what a server has answered a session like this one. Only while no
    /// connection is held: what is there is asked there.
    pub(crate) async fn recall_values(
        &mut self,
        job: &Job<'_>,
    ) -> Result<ControlFlow<Told>, Ended> {
        if !self.held.is_empty() || !self.asks_values(job) {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(answer) = job.epoch.values.borrow_mut().find(self, job).cloned() else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut out = Vec::with_capacity(256);
        let mut writer = self.writer(&mut out, self.turn.sent, self.flags() | self.turn.flags());
        writer.columns_as_said(answer.definitions.iter().map(Vec::as_slice));
        for row in &answer.rows {
            writer.text_row(row.iter().map(Option::as_deref));
        }
        writer.end(0);
        let seq = writer.last_seq();
        self.remembered.has_found_one_row();
        self.end_found_rows();
        self.say_rows(out, seq, 1).await
    }

    /// Whether a statement asks for values alone that the session's state determines.
    fn asks_values(&self, job: &Job<'_>) -> bool {
        let class = job.class;
        class.reads == Reads::SESSION_VARIABLE
            && class.command == CommandCounter::Select
            && class.plain_read
            && job.is_as_written()
            && job.plan.mirror.is_none()
            && !job.plan.new_connection
            && job.text.len() <= TEXT_LEN_MAX
            && job.text.is_ascii()
            && !job.text.contains(&b'\\')
            && matches!(job.what, What::Query(attributes) if attributes.iter().next().is_none())
            && !self.state.tracks()
            && !self.is_unsure()
            && sql::asks_determined_values(job.text)
    }

    /// Has the answer looked at that is to be remembered.
    pub(crate) fn look_for_values(&self, backend: &mut Backend, job: &Job<'_>) {
        if !self.asks_values(job) {
            return;
        }
        if backend.holds.is_empty() {
            backend.look_at_answer();
        } else {
            // Of a statement before.
            backend.seen_answer();
        }
    }

    /// A server has answered it. `reading`: how it read texts when it was asked.
    pub(crate) fn learn_values(
        &self,
        backend: &mut Backend,
        job: &Job<'_>,
        response: &Response,
        reading: Reading,
    ) {
        let Some(seen) = backend.seen_answer() else {
            return;
        };
        let is_plain = matches!(response.outcome(), Outcome::Ok)
            && response.results() == 1
            && response.rows() == 1
            && response.warnings() == 0
            && response.status() & (status::IN_TRANS | status::CURSOR_EXISTS) == 0
            && backend.holds.is_empty();
        if !is_plain || !self.asks_values(job) || self.state.bytes() > STATE_LEN_MAX {
            return;
        }
        let Ok(answer) = wire::rows::read(&seen, backend.hello.caps) else {
            return;
        };
        // Left out for a session that has asked for that, which another may not have.
        if answer.definitions.is_empty() {
            return;
        }
        let until = self.core.rt.now() + LASTS;
        let before = (&self.state, reading);
        let mut values = job.epoch.values.borrow_mut();
        values.add(self, job, before, Some(until), Rc::new(answer));
    }
}
