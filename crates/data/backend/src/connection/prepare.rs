//! Statements are prepared on a connection, by the server's ids and by names.

use crate::connection::backend::{Backend, refusal};
use crate::connection::lease::Unreported;
use crate::connection::slots::slot_name;
use crate::failure::BackendFailed;
use crate::session::hold::Hold;
use crate::session::need::{self, Foreign, Need};
use crate::session::prepared::{Bindings, Prepared};
use crate::session::state::{Sees, State};
use crate::session::want::{Executes, Tracking};
use bridge::Counter;
use net::NetError;
use std::rc::Rc;
use wire::command::{COM_STMT_CLOSE, COM_STMT_PREPARE};
use wire::packet;
use wire::response::Expect;

/// How a server comes to know a statement.
#[derive(Debug, Clone, Copy)]
enum Way<'a> {
    /// COM_STMT_PREPARE.
    Id,
    /// PREPARE by a name of ours. Whether a backslash escapes where the statement was written.
    Slot { escapes: bool },
    /// PREPARE by this name.
    Name { name: &'a str, escapes: bool },
}

/// By this number there is nothing that anybody executes.
const NOTHING: u32 = 0;

impl Backend {
    /// Whether a statement is prepared here, and means there what it means to a client that has
    /// bound these.
    #[must_use]
    pub fn has_prepared(&self, statement: &Prepared, client: u32, bindings: &Bindings) -> bool {
        self.prepared
            .at(statement.number, client, self.sticky(bindings))
            .is_some()
    }

    /// Whether a statement is prepared here as the client's execution before left it: on MySQL the
    /// type of a parameter that nothing else says is taken from there.
    pub(crate) fn was_left_with(&self, wants: Executes<'_>) -> bool {
        self.prepared
            .was_left_with(wants.statement.number, self.sticky(wants.bindings))
    }

    /// Those that matter: MariaDB reads each execution by its own types.
    fn sticky<'a>(&self, bindings: &'a Bindings) -> &'a Bindings {
        if self.hello.is_mariadb() {
            &Bindings::NONE
        } else {
            bindings
        }
    }

    /// As [`Self::prepare`], if the statement is here.
    pub fn has_id(
        &mut self,
        statement: &Prepared,
        client: u32,
        bindings: &Bindings,
    ) -> Option<u32> {
        let bindings = self.sticky(bindings);
        self.prepared.id(statement.number, client, bindings)
    }

    /// The server's id of a statement here; prepares it if need be. `client`: the id by which the
    /// client executes it, for its cursors. `bindings`: what it has bound, with this execution.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server refuses to prepare it.
    pub async fn prepare(
        &mut self,
        statement: &Rc<Prepared>,
        client: u32,
        bindings: &Bindings,
        max: u64,
    ) -> Result<u32, BackendFailed> {
        if let Some(id) = self.has_id(statement, client, bindings) {
            return Ok(id);
        }
        let bindings = self.sticky(bindings);
        let id = self.prepare_as_meant(statement, Way::Id, max).await?;
        self.prepared.bind(id, bindings);
        Ok(id)
    }

    /// Prepares a statement as its session meant it.
    async fn prepare_as_meant(
        &mut self,
        statement: &Rc<Prepared>,
        way: Way<'_>,
        max: u64,
    ) -> Result<u32, BackendFailed> {
        if !self.local.unread.session.is_empty() {
            // What would be set back afterwards is not what nobody has asked for yet. Prepared as
            // things are now, it is this session's only.
            self.holds.add(Hold::UnknownState);
            return self.prepare_in_schema(statement, way, max).await;
        }
        // A statement means what it meant when its session prepared it, whatever has been set
        // since.
        let now = self.state.clone();
        // To bring user variables that are known would be to overwrite what nobody knows.
        let user =
            statement.meant.sees() == Sees::Variables && !self.doubts_variables_of(statement);
        let sees = if user { Sees::Variables } else { Sees::Nothing };
        let Some(then) = statement.meant.put_into(&now, user) else {
            return self.prepare_in_schema(statement, way, max).await;
        };
        // MySQL takes the types that they have now, and where it is held nothing makes a variable
        // again what it was before it was first set.
        let is_typed = || {
            user && !self.holds.is_empty()
                && !self.hello.is_mariadb()
                && need::has_others_variables(&now, &then)
        };
        if is_typed() {
            return self.prepare_otherwise(statement, way, max).await;
        }
        let back = need::whole_need(
            &then,
            &now,
            user,
            Foreign {
                statement: false,
                variables: user,
                strange: false,
            },
            self.ways_for(Tracking::Any),
        );
        if !matches!(back, Need::Nothing | Need::Steps { .. }) {
            // A reset would take the statement away again.
            return self.prepare_otherwise(statement, way, max).await;
        }
        match self.sync(&then, sees, None, Tracking::Any).await {
            Ok(()) => {}
            // There is no way to it on a connection that is held.
            Err(BackendFailed::Unfit | BackendFailed::Kept) => {
                return self.prepare_otherwise(statement, way, max).await;
            }
            Err(failed) => return Err(failed),
        }
        let prepared = self.prepare_in_schema(statement, way, max).await;
        if matches!(prepared, Ok(_) | Err(BackendFailed::Sync { .. })) {
            let schema = self.state.schema.clone();
            self.sync(&State { schema, ..now }, sees, None, Tracking::Any)
                .await?;
        }
        prepared
    }

    /// As things are now, and for this session only: until it gives the connection back. What its
    /// name means only this connection knows.
    async fn prepare_otherwise(
        &mut self,
        statement: &Rc<Prepared>,
        way: Way<'_>,
        max: u64,
    ) -> Result<u32, BackendFailed> {
        let prepared = self.prepare_in_schema(statement, way, max).await;
        let number = *prepared.as_ref().unwrap_or(&0);
        match way {
            Way::Id => self.prepared.is_meant_otherwise(number),
            Way::Slot { .. } => self.slots.is_meant_otherwise(number),
            Way::Name { .. } => self.holds.add(Hold::UnknownState),
        }
        self.local.meant_otherwise = true;
        prepared
    }

    /// The session has given it back: nobody executes any more what was prepared for it alone.
    pub(crate) fn close_meant_otherwise(&mut self) {
        if std::mem::take(&mut self.local.meant_otherwise) {
            self.prepared
                .take_meant_otherwise()
                .into_iter()
                .for_each(|id| self.close_statement(id));
            self.slots.give_up_otherwise();
        }
    }

    /// In the schema that it was prepared in, wherever its session is now.
    async fn prepare_in_schema(
        &mut self,
        statement: &Rc<Prepared>,
        way: Way<'_>,
        max: u64,
    ) -> Result<u32, BackendFailed> {
        let now = self.state.schema.clone();
        if statement.schema.is_empty() || statement.schema == now {
            return self.prepare_here(statement, way, max).await;
        }
        if now.is_empty() && self.holds.carry_state() {
            // There is no way back to none.
            return Err(BackendFailed::Kept);
        }
        self.init_db(&statement.schema).await?;
        let prepared = self.prepare_here(statement, way, max).await;
        self.lease.strays = now.is_empty() && prepared.is_ok();
        if !now.is_empty() && matches!(prepared, Ok(_) | Err(BackendFailed::Sync { .. })) {
            // A refusal must not leave its session in a schema that it is not in.
            self.init_db(&now).await?;
        }
        prepared
    }

    async fn prepare_here(
        &mut self,
        statement: &Rc<Prepared>,
        way: Way<'_>,
        max: u64,
    ) -> Result<u32, BackendFailed> {
        if !matches!(way, Way::Id) {
            return self.prepare_in_sql(statement, way, max).await;
        }
        let mut payload = Vec::with_capacity(statement.behind().len() + 1);
        payload.push(COM_STMT_PREPARE);
        payload.extend_from_slice(statement.behind());
        self.tally.up(Counter::ComBackendStmtPrepare);
        let response = self.command(&payload, Expect::Prepare).await?;
        refusal(&response)?;
        let prepared =
            response
                .prepared()
                .ok_or(BackendFailed::BrokeAfter(NetError::Malformed(
                    wire::Malformed::new("a response to COM_STMT_PREPARE without an id"),
                )))?;
        self.know(statement, &prepared, max, true);
        Ok(prepared.id)
    }

    /// Parameters that the server has found in the statement of this id. A text may have others
    /// there than elsewhere: executable comments are for some versions.
    #[must_use]
    pub fn params_of(&self, id: u32) -> Option<u16> {
        self.prepared.params(id)
    }

    /// A statement was prepared here by a client's own COM_STMT_PREPARE. Those beyond `max` are
    /// closed.
    pub fn learn_prepared(
        &mut self,
        statement: &Rc<Prepared>,
        there: &wire::response::Prepared,
        max: u64,
    ) {
        self.know(statement, there, max, false);
    }

    /// Learns what was prepared for whoever executes it next, beside the same statement as others
    /// have executed it.
    pub(crate) fn learn_prepared_beside(
        &mut self,
        statement: &Rc<Prepared>,
        there: &wire::response::Prepared,
        max: u64,
    ) {
        self.tally.up(Counter::ComBackendStmtPrepare);
        self.know(statement, there, max, true);
    }

    fn know(
        &mut self,
        statement: &Rc<Prepared>,
        there: &wire::response::Prepared,
        max: u64,
        beside: bool,
    ) {
        self.tally.up(Counter::StmtServerActiveTotal);
        self.doubt_what_was_meant(statement);
        let max = usize::try_from(self.place.stmts_max(max)).unwrap_or(usize::MAX);
        for id in self
            .prepared
            .insert(statement, (there.id, there.params), max, beside)
        {
            self.close_statement(id);
        }
    }

    /// Holds the connection where the state that a statement is prepared under may not be known:
    /// then nobody else's statement is the same.
    fn doubt_what_was_meant(&mut self, statement: &Prepared) {
        if !self.local.unread.session.is_empty() || self.doubts_variables_of(statement) {
            self.holds.add(Hold::UnknownState);
        }
    }

    /// Whether it names user variables, of which some may have other values here than anybody
    /// knows: set by an expression or a program.
    fn doubts_variables_of(&self, statement: &Prepared) -> bool {
        const DOUBT: [Hold; 5] = [
            Hold::UserVariable,
            Hold::Procedure,
            Hold::Routine,
            Hold::Untold,
            Hold::UnknownState,
        ];
        let unknown = || {
            !self.local.unread.user.is_empty()
                || self.local.strange_variables
                || DOUBT.iter().any(|hold| self.holds.has(*hold))
        };
        statement.meant.sees() == Sees::Variables && unknown()
    }

    /// The server has forgotten it, or its tables have changed too much: prepare it anew next time.
    pub fn forget_prepared(&mut self, id: u32) {
        self.prepared.forget(id);
        self.close_statement(id);
    }

    /// Forgets each id of this statement: what others have executed with other types is of no more
    /// use.
    pub fn forget_statement(&mut self, id: u32) {
        self.prepared
            .likewise(id)
            .into_iter()
            .for_each(|id| self.forget_prepared(id));
    }

    /// The statement of this id has opened a cursor for the client's statement.
    pub fn open_cursor(&mut self, id: u32, client: u32) {
        self.prepared.open_cursor(id, client);
        self.holds.add(Hold::Cursor);
        #[cfg(debug_assertions)]
        crate::planted::forget(&mut self.holds);
    }

    /// The id of the statement whose cursor belongs to the client's statement.
    #[must_use]
    pub fn cursor(&self, client: u32) -> Option<u32> {
        self.prepared.cursor(client)
    }

    /// The server has closed the cursor.
    pub fn cursor_ended(&mut self, client: u32) {
        let others = self.prepared.end_cursor(client);
        self.holds.put(Hold::Cursor, others);
    }

    /// Closes the cursor with its statement: that has no answer to wait for.
    pub fn close_cursor(&mut self, client: u32) {
        if let Some(id) = self.prepared.cursor(client) {
            self.forget_prepared(id);
        }
        self.cursor_ended(client);
    }

    /// Whoever has the connection next knows none of them.
    pub(crate) fn close_all_prepared(&mut self) {
        for id in self.prepared.ids() {
            self.close_statement(id);
        }
        self.prepared.clear();
    }

    /// COM_STMT_CLOSE has no response: it goes along with the next command.
    fn close_statement(&mut self, id: u32) {
        self.tally.up(Counter::ComBackendStmtClose);
        self.tally.down(Counter::StmtServerActiveTotal);
        packet::append_with(&mut self.lasting.closing, &mut 0, |payload| {
            payload.push(COM_STMT_CLOSE);
            payload.extend_from_slice(&id.to_le_bytes());
        });
    }

    /// Whether a statement is prepared here by a name of ours.
    #[must_use]
    pub fn has_slot(&self, statement: &Prepared, by: u64) -> bool {
        self.slots.has(statement, self.sticky_to(by))
    }

    /// MariaDB reads each execution by its own types.
    fn sticky_to(&self, by: u64) -> u64 {
        if self.hello.is_mariadb() { 0 } else { by }
    }

    /// The slot of a statement here; prepares it if need be. `escapes`: whether a backslash escapes
    /// where it was written. `by`: the session that executes it with user variables, or 0.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server refuses to prepare it.
    pub async fn slot(
        &mut self,
        statement: &Rc<Prepared>,
        escapes: bool,
        max: u64,
        by: u64,
    ) -> Result<u32, BackendFailed> {
        let by = self.sticky_to(by);
        if let Some(slot) = self.slots.number(statement, by) {
            return Ok(slot);
        }
        let slot = self
            .prepare_as_meant(statement, Way::Slot { escapes }, max)
            .await?;
        self.slots.bind(slot, by);
        Ok(slot)
    }

    /// A slot in which a statement is about to be prepared. Until [`Backend::learn_slot`] it is
    /// empty.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn take_slot(
        &mut self,
        statement: &Prepared,
        max: u64,
    ) -> Result<u32, BackendFailed> {
        let max = self.place.stmts_max(max);
        let (slot, was) = self
            .slots
            .take(statement, usize::try_from(max).unwrap_or(usize::MAX));
        if !was {
            return Ok(slot);
        }
        self.tally.down(Counter::StmtServerActiveTotal);
        if self.tells_all() {
            // A PREPARE that fails would give up what was there, and the server tells of that
            // change with the answer to another statement.
            let mut payload = Vec::new();
            let text = format!("DEALLOCATE PREPARE {}", slot_name(slot));
            wire::command::write_query(&mut payload, text.as_bytes(), self.hello.caps);
            self.command(&payload, Expect::Query).await?;
        }
        Ok(slot)
    }

    /// The statement was prepared there.
    pub fn learn_slot(&mut self, statement: &Rc<Prepared>, slot: u32) {
        self.tally.up(Counter::StmtServerActiveTotal);
        self.doubt_what_was_meant(statement);
        self.slots.fill(slot, statement);
    }

    /// The server knows nothing by the name of this slot.
    pub fn empty_slot(&mut self, slot: u32) {
        if self.slots.empty(slot) {
            self.tally.down(Counter::StmtServerActiveTotal);
        }
    }

    /// Prepares something for a DEALLOCATE PREPARE that the server itself is to answer; `None` if
    /// it cannot be prepared.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn prepare_to_deallocate(&mut self) -> Result<Option<u32>, BackendFailed> {
        let mut payload = Vec::new();
        let text = format!("PREPARE {} FROM 'DO 0'", slot_name(NOTHING));
        wire::command::write_query(&mut payload, text.as_bytes(), self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        Ok(refusal(&response).is_ok().then_some(NOTHING))
    }

    /// Prepares a statement by the name that its session has for it. From now on only this
    /// connection knows what the name means.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server refuses to prepare it.
    pub async fn prepare_by_name(
        &mut self,
        name: &str,
        statement: &Rc<Prepared>,
        escapes: bool,
    ) -> Result<(), BackendFailed> {
        self.holds.add(Hold::SqlPrepare);
        self.prepare_as_meant(statement, Way::Name { name, escapes }, 0)
            .await?;
        self.local.owned.get_or_insert_default().add_statement(name);
        Ok(())
    }

    /// PREPARE; gives the slot.
    async fn prepare_in_sql(
        &mut self,
        statement: &Rc<Prepared>,
        way: Way<'_>,
        max: u64,
    ) -> Result<u32, BackendFailed> {
        let (slot, name, escapes) = match way {
            Way::Name { name, escapes } => (0, sql::literal::name(name), escapes),
            Way::Slot { escapes } => {
                let slot = self.take_slot(statement, max).await?;
                (slot, slot_name(slot), escapes)
            }
            Way::Id => return Ok(0),
        };
        let mut text = format!("PREPARE {name} FROM ").into_bytes();
        text.extend(sql::dynamic::literal(statement.behind(), escapes));
        let mut payload = Vec::with_capacity(text.len() + 3);
        wire::command::write_query(&mut payload, &text, self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        if let Err(refused) = refusal(&response) {
            self.has_failed(Unreported::Noise);
            return Err(refused);
        }
        self.holds.status(response.status());
        if slot > 0 {
            self.learn_slot(statement, slot);
        }
        Ok(slot)
    }
}
