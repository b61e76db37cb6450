//! One connection to a server, and what is known to be set on it.

use crate::ask::{Answer, without_zeros};
use crate::failure::BackendFailed;
use crate::flight::Slot;
use crate::hold::{Hold, Holds};
use crate::key::Key;
use crate::lease::{Lasting, Lease, Local, Unreported};
use crate::own::LockAnswer;
use crate::place::{Place, bump};
use crate::prepared::{Bindings, Here, Prepared};
use crate::slots::Slots;
use crate::state::{Names, Sees, State};
use crate::sync::{self, Foreign, Need, Ways};
use crate::tally::Tally;
use crate::variables::TRANSACTIONS;
use crate::want::{Executes, Tracking};
use bridge::{Counter, FreeConnectionRow};
use net::{Conn, Hello, NetError};
use rt::{Address, Chunk, Instant};
use std::net::SocketAddr;
use std::rc::Rc;
use wire::command::{
    COM_SET_OPTION, COM_STMT_CLOSE, COM_STMT_PREPARE, SET_OPTION_MULTI_STATEMENTS_OFF,
    SET_OPTION_MULTI_STATEMENTS_ON,
};
use wire::response::{Expect, Follow, Outcome, Response};
use wire::{errors, packet};

/// Of an answer that is looked at, so much is kept: one row of one number is all that matters.
const GLIMPSE_LEN_MAX: usize = 4096;

/// Whether a connection may be shared again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Its last response has ended and nothing more came.
    Proven,
    /// Something is or may be on its way: it must be closed.
    Doubtful,
}

/// Number that a connection has in [`Backend::last_session`] after a statement of no session; a new
/// one has 0.
pub const NOBODY: u64 = u64::MAX;

/// A connection to a server. Dropped, it is closed and its permit given back.
#[derive(Debug)]
pub struct Backend {
    /// The connection.
    pub conn: Conn,
    /// Greeting that the server sent at login.
    pub hello: Hello,
    /// Why it cannot be shared.
    pub holds: Holds,
    /// Whether its protocol state is known.
    pub idle: Idle,
    /// The server was told to end what was its last command, and may have been told too late: it
    /// hits what runs there next. Until another is answered there it goes to nobody else, whatever
    /// held it in the meantime.
    pub interrupted: bool,
    pub(crate) place: Rc<Place>,
    pub(crate) key: Key,
    /// Who the server was told is at our end.
    pub(crate) told_client: Option<SocketAddr>,
    pub(crate) state: State,
    /// Statements that the connection began with, see `mysql-init_connect`; a reset undoes them.
    pub(crate) init_connect: Option<Rc<str>>,
    pub(crate) prepared: Here,
    /// Statements that are prepared there in SQL, by names of ours.
    pub(crate) slots: Slots,
    /// Was a statement sent that is too large for the connection to be used for another session?
    pub(crate) retired: bool,
    pub(crate) tally: Rc<Tally>,
    pub(crate) in_use: bool,
    /// Slot of the statement in flight on it, where those are limited.
    pub(crate) slot: Option<Slot>,
    /// Its connection lives on, on another core, and its permit with it.
    pub(crate) lent: bool,
    /// Properties that go with the connection from core to core.
    pub lasting: Lasting,
    /// Knowledge that this core has of the connection.
    pub local: Local,
    /// Properties that belong to the session that has the connection.
    pub lease: Lease,
}

impl Drop for Backend {
    fn drop(&mut self) {
        if !self.lent {
            self.place.room.give();
        }
        if self.in_use {
            self.place.end_use();
        }
        self.tally.down(Counter::ServerConnectionsConnected);
        self.tally.add(
            Counter::StmtServerActiveTotal,
            0u64.wrapping_sub((self.prepared.len() + self.slots.len()) as u64),
        );
    }
}

impl Backend {
    /// Where it leads.
    #[must_use]
    pub fn place(&self) -> &Rc<Place> {
        &self.place
    }

    /// Our end, as the server was to see it: that of the client for whom it was opened, where
    /// servers are told by the PROXY protocol.
    #[must_use]
    pub fn our_end(&self) -> Address {
        self.told_client
            .map_or_else(|| self.conn.socket().local(), Address::Tcp)
    }

    /// A row of `stats_mysql_free_connections`, of a hostgroup that it is idle in.
    pub(crate) fn free_row(&self, hostgroup: u32, now: Instant) -> FreeConnectionRow {
        let ms = |since| u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        let set = |name| {
            let value = self.state.variable(name)?;
            Some(value.trim_matches(['\'', '"']).to_owned())
        };
        let (bytes_received, bytes_sent) = self.conn.bytes();
        FreeConnectionRow {
            descriptor: self.conn.socket().descriptor(),
            hostgroup,
            host: self.place.host().clone(),
            port: self.place.server().port,
            user: self.key.user.as_ref().into(),
            schema: self.state.schema.as_ref().into(),
            init_connect: self.init_connect.as_deref().map(Into::into),
            time_zone: set("time_zone"),
            sql_mode: set("sql_mode"),
            autocommit: self.state.autocommit,
            idle_ms: ms(self.lasting.since),
            age_ms: ms(self.lasting.opened),
            bytes_received,
            bytes_sent,
            queries: self.lasting.queries,
            server_thread_id: self.hello.thread_id,
            server_version: self.hello.version.as_str().into(),
        }
    }

    /// The statement has ended for which it was left in a schema that its session is not in.
    pub fn strays_no_more(&mut self) {
        self.lease.strays = false;
    }

    /// Whether a session's statement of this number was the last command there.
    #[must_use]
    pub fn is_undisturbed(&self, session: u64, statement: u32) -> bool {
        #[cfg(feature = "planted")]
        if crate::planted::NEVER_DISTURBED.get() {
            return true;
        }
        self.lasting.last_session == session && self.local.undisturbed == Some(statement)
    }

    /// A statement of this session runs there now.
    pub fn serves(&mut self, session: u64) {
        if self.lasting.last_session != session {
            self.local.finder = None;
            self.local.others_warnings = self.lasting.warnings_left;
            self.lasting.last_session = session;
        }
    }

    /// Returns the state that is set on the connection.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether the default of a variable, by its name in a [`State`], is not what this connection
    /// began with: one that was set to its default is no more as it was.
    #[must_use]
    pub fn begins_otherwise(&self, name: &str) -> bool {
        self.lasting.ways.begins_otherwise(name)
    }

    /// Returns the state that is set on the connection, to be corrected by what a statement of the
    /// session has just set.
    pub fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    /// When the next of those holds ends that end by themselves.
    #[must_use]
    pub fn ends_by_itself(&self) -> Option<Instant> {
        let delay = self
            .lease
            .delayed_until
            .filter(|_| self.holds.has(Hold::Delay));
        self.lingers_until().into_iter().chain(delay).min()
    }

    /// When it is asked for what it remembers of a statement (the id of an insert, warnings) and
    /// what programs have left, if nothing else keeps it and that ends by itself.
    #[must_use]
    pub fn lingers_until(&self) -> Option<Instant> {
        // Whether there still is a lock is asked then, too.
        let lock = if self.doubts_locks() {
            Hold::UserLock
        } else {
            Hold::Unread
        };
        let left = self.says_what_is_left();
        let programs = if left.is_some() {
            [Hold::Procedure, Hold::Routine]
        } else {
            [Hold::Unread; 2]
        };
        let found = if self.lease.found_rows_until.is_some() {
            Hold::FoundRows
        } else {
            Hold::Unread
        };
        if !self.holds.are_only(&[
            Hold::InsertId,
            Hold::Diagnostics,
            Hold::Unread,
            lock,
            found,
            programs[0],
            programs[1],
        ]) {
            return None;
        }
        let ends = [
            (Hold::InsertId, self.lease.insert_id_until),
            (Hold::Diagnostics, self.lease.warnings_until),
            (Hold::FoundRows, self.lease.found_rows_until),
        ];
        let mut remembered = None;
        for (_, until) in ends.iter().filter(|(hold, _)| self.holds.has(*hold)) {
            remembered = remembered.max(Some((*until)?));
        }
        if remembered.is_none() {
            if self.local.unreported == Unreported::Nothing {
                return left;
            }
            remembered = self.lease.warnings_until;
        }
        remembered.map(|until| left.map_or(until, |left| until.max(left)))
    }

    /// Ends the holds whose time is over.
    pub fn end_in_time(&mut self, now: Instant) {
        if self.lease.delayed_until.is_some_and(|until| until <= now) {
            self.holds.remove(Hold::Delay);
        }
    }

    /// Sends a command. From here on its protocol state is unknown until the response has ended.
    ///
    /// # Errors
    /// [`BackendFailed::BrokeBefore`] when the connection was seen closed before anything was sent.
    pub async fn send(&mut self, command: Chunk) -> Result<(), BackendFailed> {
        self.begins(command.len())?;
        if !self.lasting.closing.is_empty() {
            let closing = std::mem::take(&mut self.lasting.closing);
            self.conn
                .send_commands(closing)
                .await
                .map_err(BackendFailed::BrokeAfter)?;
        }
        self.conn
            .send_commands(command)
            .await
            .map_err(BackendFailed::BrokeAfter)
    }

    /// Sends a command, if it goes out as it is and nothing has to be waited for: takes it then.
    /// Whether it has.
    ///
    /// # Errors
    /// As [`Backend::send`].
    pub fn queue(&mut self, command: &mut Vec<u8>) -> Result<bool, BackendFailed> {
        let is_plain = self.lasting.closing.is_empty() && self.conn.compression().is_none();
        if !is_plain || self.conn.socket().is_full() {
            return Ok(false);
        }
        self.begins(command.len())?;
        self.conn
            .queue(std::mem::take(command))
            .map_err(BackendFailed::BrokeAfter)?;
        Ok(true)
    }

    /// A command of so many bytes is about to be sent.
    fn begins(&mut self, len: usize) -> Result<(), BackendFailed> {
        if self.idle == Idle::Proven && !self.conn.is_idle() {
            return Err(BackendFailed::BrokeBefore(NetError::Closed));
        }
        self.idle = Idle::Doubtful;
        self.local.undisturbed = None;
        self.lasting.queries += 1;
        bump(&self.place.numbers.queries, 1);
        bump(&self.place.numbers.sent, len as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesSent, len as u64);
        Ok(())
    }

    /// Whoever has it keeps it as long as it is held; nobody else gets it.
    pub fn retire(&mut self) {
        self.retired = true;
    }

    /// The next bytes of a response.
    ///
    /// # Errors
    /// The end of the connection is one.
    pub async fn recv(&mut self) -> Result<Chunk, BackendFailed> {
        let chunk = self.conn.recv().await.map_err(BackendFailed::BrokeAfter)?;
        if chunk.is_empty() {
            return Err(BackendFailed::BrokeAfter(NetError::Closed));
        }
        if let Some(seen) = &mut self.lease.glimpse
            && seen.len() < GLIMPSE_LEN_MAX
        {
            seen.extend_from_slice(&chunk);
        }
        bump(&self.place.numbers.received, chunk.len() as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesRecv, chunk.len() as u64);
        Ok(chunk)
    }

    /// Keeps the beginning of the next answer for [`Backend::learn_owned`] or
    /// [`Backend::seen_answer`].
    pub fn look_at_answer(&mut self) {
        self.lease.glimpse = Some(Vec::new());
    }

    /// The whole answer, if it was looked at and is not too long.
    pub fn seen_answer(&mut self) -> Option<Vec<u8>> {
        self.lease
            .glimpse
            .take()
            .filter(|seen| seen.len() < GLIMPSE_LEN_MAX)
    }

    /// A statement has ended that may have made or unmade something by name. `schema`: where its
    /// names are looked for, if not in the current one. `executed`: by its id, so that its values
    /// are numbers and not their digits.
    pub fn learn_owned(
        &mut self,
        class: &sql::Class<'_>,
        text: &[u8],
        schema: Option<&str>,
        ok: bool,
        executed: bool,
    ) {
        let seen = self.seen_answer();
        let number = seen
            .as_ref()
            .filter(|_| executed)
            .and_then(|seen| wire::rows::read_executed_number(seen, self.hello.caps));
        let digits = number
            .map(|number| number.map_or_else(|| "NULL".to_owned(), |number| number.to_string()));
        let seen = seen.filter(|_| !executed);
        let rows = seen
            .and_then(|seen| wire::rows::read(&seen, self.hello.caps).ok())
            .unwrap_or_default();
        let value = match (rows.shapes.as_slice(), rows.rows.as_slice()) {
            // A MariaDB that answers in utf16 writes numbers in it, too.
            ([_], [row]) => row
                .first()
                .map(|value| without_zeros(value.as_deref().unwrap_or(b"NULL"))),
            _ => digits.map(String::into_bytes),
        };
        let limit = self.state.variable("sql_select_limit");
        let no_rows = limit.is_some_and(|limit| limit.parse().is_ok_and(|rows: i64| rows <= 0));
        let answered = LockAnswer {
            value: value.as_deref(),
            no_rows,
        };
        let owned = self.local.owned.get_or_insert_default();
        owned.learn(
            &mut self.holds,
            class,
            text,
            schema.unwrap_or(&self.state.schema),
            ok,
            answered,
        );
    }

    /// A response has ended after `used` of the bytes of the last chunk, of which there were `len`.
    pub fn ended(&mut self, used: usize, len: usize) {
        self.idle = if used == len {
            Idle::Proven
        } else {
            Idle::Doubtful
        };
        self.interrupted = false;
    }

    /// A command of our own whose response nobody reads: OK, or the server's error.
    pub(crate) async fn command(
        &mut self,
        payload: &[u8],
        expect: Expect,
    ) -> Result<Response, BackendFailed> {
        let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
        packet::append(&mut framed, &mut 0, payload);
        self.send(Chunk::from(framed)).await?;
        let mut response =
            Response::expect(expect, self.hello.caps).to_packet(packet::last_seq(payload.len()));
        loop {
            let chunk = self.recv().await?;
            match response
                .follow(&chunk)
                .map_err(|malformed| BackendFailed::BrokeAfter(malformed.into()))?
            {
                Follow::More => {}
                Follow::Ended { used } => {
                    self.ended(used, chunk.len());
                    let refused = match response.outcome() {
                        Outcome::Err { code, .. } => Some(code),
                        _ => None,
                    };
                    if response.warnings() > 0 || refused.is_some() {
                        // No session's.
                        (self.lasting.warnings_left, self.local.others_warnings) = (true, true);
                    }
                    if refused == Some(errors::MUST_CHANGE_PASSWORD.number) {
                        // It stays so when the user has a new password.
                        self.retire();
                    }
                    self.has_told(&response);
                    return Ok(response);
                }
            }
        }
    }

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
        #[cfg(feature = "planted")]
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
        let need = sync::whole_need(&self.state, want, brings, foreign, ways);
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
        sync::whole_need(&self.state, &want, brings_variables, foreign, ways)
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
                    #[cfg(feature = "planted")]
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

    /// Goes into a schema, be it the one that it is in.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server refuses; the connection broke.
    pub async fn enter(&mut self, schema: &Rc<str>) -> Result<(), BackendFailed> {
        self.init_db(schema).await
    }

    /// Changes the schema. Its name is UTF-8, and the server reads it in the character set of the
    /// client.
    pub(crate) async fn init_db(&mut self, schema: &Rc<str>) -> Result<(), BackendFailed> {
        if schema.is_ascii() || self.state.speaks_utf8() {
            return self.change_schema(schema).await;
        }
        let written = self.ask_for_one("SELECT @@character_set_client").await?;
        let Some(written) = written.filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric()))
        else {
            return Err(BackendFailed::Unfit);
        };
        // Until it is said again, nobody knows.
        let names = std::mem::replace(&mut self.state.names, Names::Unknown);
        self.ask("SET character_set_client=utf8mb4").await?;
        let changed = self.change_schema(schema).await;
        if let Answer::Rows(_) = self
            .ask(&format!("SET character_set_client={written}"))
            .await?
        {
            self.state.names = names;
        }
        changed
    }

    async fn change_schema(&mut self, schema: &Rc<str>) -> Result<(), BackendFailed> {
        self.tally.up(Counter::ComBackendInitDb);
        let mut payload = Vec::with_capacity(schema.len() + 1);
        payload.push(0x02);
        payload.extend_from_slice(schema.as_bytes());
        let response = self.command(&payload, Expect::Simple).await?;
        #[cfg(feature = "planted")]
        if crate::planted::PASS_OVER.get() {
            self.state.schema = schema.clone();
            return Ok(());
        }
        refusal(&response)?;
        self.state.schema = schema.clone();
        Ok(())
    }

    /// Does the server take several statements in one text here? One whose client did not ask for
    /// it must not.
    #[must_use]
    pub fn takes_several(&self) -> bool {
        self.lasting.several
    }

    /// COM_SET_OPTION: several statements in one text, from now on or no longer.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server does not know the command.
    pub async fn take_several(&mut self, on: bool) -> Result<(), BackendFailed> {
        let option = if on {
            SET_OPTION_MULTI_STATEMENTS_ON
        } else {
            SET_OPTION_MULTI_STATEMENTS_OFF
        };
        let [low, high] = option.to_le_bytes();
        let response = self
            .command(&[COM_SET_OPTION, low, high], Expect::Simple)
            .await?;
        refusal(&response)?;
        self.lasting.several = on;
        Ok(())
    }

    /// Sets the time that statements here are told, in millionths of a second since 1970, or has the
    /// server tell its own again.
    ///
    /// # Errors
    /// [`BackendFailed::Sync`] when the server refuses it.
    pub async fn set_moment(&mut self, at_us: Option<u64>) -> Result<(), BackendFailed> {
        let set = match at_us {
            Some(us) => format!("SET timestamp = {}.{:06}", us / 1_000_000, us % 1_000_000),
            None => "SET timestamp = DEFAULT".to_owned(),
        };
        let mut payload = Vec::with_capacity(set.len() + 1);
        wire::command::write_query(&mut payload, set.as_bytes(), self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        refusal(&response)
    }

    /// More bytes of the client that belong to the command that was sent last.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn pass(&mut self, bytes: Chunk) -> Result<(), BackendFailed> {
        bump(&self.place.numbers.sent, bytes.len() as u64);
        self.tally
            .add(Counter::QueriesBackendsBytesSent, bytes.len() as u64);
        self.conn
            .send(bytes)
            .await
            .map_err(BackendFailed::BrokeAfter)
    }

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
    pub(crate) async fn prepare_as_meant(
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
                && sync::has_others_variables(&now, &then)
        };
        if is_typed() {
            return self.prepare_otherwise(statement, way, max).await;
        }
        let back = sync::whole_need(
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

    /// A statement has failed there of which its client is told nothing.
    pub fn has_failed_unseen(&mut self) {
        (self.local.undisturbed, self.local.finder) = (None, None);
        (self.lasting.warnings_left, self.local.others_warnings) = (true, true);
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
    pub(crate) fn doubt_what_was_meant(&mut self, statement: &Prepared) {
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
        #[cfg(feature = "planted")]
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

    /// A statement of the session that keeps this connection is about to run: it counts among those
    /// in flight, and waits for nobody, since others may wait for what the session has here.
    pub fn takes_off(&mut self) {
        if self.place.in_flight.is_limited() && self.slot.is_none() {
            self.slot = self.place.in_flight.slot(false).ok().flatten();
        }
    }

    /// Nothing is in flight on it any more, or nobody counts what is.
    pub fn lands(&mut self) {
        self.slot = None;
    }
}

/// How a server comes to know a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way<'a> {
    /// COM_STMT_PREPARE.
    Id,
    /// PREPARE by a name of ours. Whether a backslash escapes where the statement was written.
    Slot { escapes: bool },
    /// PREPARE by this name.
    Name { name: &'a str, escapes: bool },
}

/// The server's error as ours.
pub(crate) fn refusal(response: &Response) -> Result<(), BackendFailed> {
    match response.outcome() {
        Outcome::Err {
            code,
            state,
            message,
        } => Err(BackendFailed::Sync {
            code,
            state,
            message: String::from_utf8_lossy(message).into_owned(),
        }),
        _ => Ok(()),
    }
}
